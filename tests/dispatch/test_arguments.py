"""Arguments of all kinds, in random order, through functions that stay the same: as NumPy each time, by native code where it can."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from tests.dispatch.kinds import ALL, ARRAYS, NUMBERS


def plus(x, y):
    return x * 2 + y


def several(x, y=3, *, k=2.0):
    return x - y, (x * k, [y, k]), {"sum": np.sum(x)}


def nested(p, q=(1, 2.0)):
    return {"a": p["a"] + q[0], "b": (p["b"][0] * q[1], p["b"][1])}


def views(x, y):
    return x, np.asarray(x)[..., ::-1] if np.ndim(x) else x, np.shape(x)


def writes(x, y):
    x *= 2
    if np.ndim(x):
        x[..., :1] = y
    return x, np.sum(y)


def outcome(f, args, kwargs):
    """What a call answers or raises, and its arguments afterwards."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return f(*args, **kwargs), None, args
    except Exception as e:  # noqa: BLE001  # compared with NumPy's
        return None, e, args


def check(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    mine, theirs = copied(args), copied(args)
    got, error, after = outcome(f, mine, kwargs)
    wanted, other, expected = outcome(f.__wrapped__, theirs, kwargs)
    if isinstance(error, jg.errors.JitgraphError) and not isinstance(error, type(other)):
        return  # refused, which `docs/limits.md` tells of
    assert (error is None) == (other is None), (args, kwargs, error, other)
    if error is not None:
        assert isinstance(
            error, next(c for c in type(other).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
        )
    same(got, wanted)
    same(after, expected)


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with memory of their own that lies as theirs; one array twice stays one."""
    memory: dict[int, Any] = {}

    def one(x: Any) -> Any:
        if isinstance(x, dict):
            return {k: one(v) for k, v in x.items()}
        if isinstance(x, tuple):
            return tuple(map(one, x))
        if not isinstance(x, np.ndarray) or x.dtype == object:
            return x
        if id(x) not in memory:
            base = x
            while isinstance(base.base, np.ndarray):
                base = base.base
            new = base.copy(order="K")
            at = (
                new.__array_interface__["data"][0]
                + x.__array_interface__["data"][0]
                - base.__array_interface__["data"][0]
            )
            made = np.ndarray(x.shape, x.dtype, new, at - new.__array_interface__["data"][0], x.strides)
            made.flags.writeable = x.flags.writeable
            memory[id(x)] = made.view(type(x))
        return memory[id(x)]

    return tuple(map(one, args))


def same(x: Any, y: Any) -> None:
    if isinstance(x, np.generic) and isinstance(y, np.generic):  # long and long long are one dtype, of two classes
        assert x.dtype == y.dtype and repr(x) == repr(y)
        return
    assert type(x) is type(y), (x, y)
    if isinstance(x, np.ndarray):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert x.dtype == object or x.tobytes() == y.tobytes(), (x, y)
    elif isinstance(x, tuple | list):
        assert len(x) == len(y)
        for a, b in zip(x, y, strict=True):
            same(a, b)
    elif isinstance(x, dict):
        assert list(x) == list(y)
        for k in x:
            same(x[k], y[k])
    elif isinstance(x, float | complex):
        assert repr(x) == repr(y)
    else:
        assert x is y or x == y or type(x) is object


def random_calls(f: Any, count: int, seed: int) -> int:
    """Random calls; how many native code has served."""
    rng = np.random.default_rng(seed)
    names, numeric = list(ALL), list(ARRAYS) + list(NUMBERS)

    few = rng.choice(numeric, 4)

    def draw() -> Any:
        return ALL[names[rng.integers(len(names))] if rng.random() < 0.05 else few[rng.integers(len(few))]](rng)

    jitted = jg.jit(f)
    for _ in range(count):
        x = draw()
        y = x if rng.random() < 0.1 else draw()
        kwargs: dict[str, Any] = {}
        args: tuple[Any, ...] = (x, y)
        if f is several:
            kwargs = [{}, {"k": y}, {"y": y}, {"y": x, "k": y}, {"k": x, "y": y}, {"z": 1}][rng.integers(6)]
            args = (x, y) if rng.random() < 0.2 else (x,)
        elif f is nested:
            p = [{"a": x, "b": (y, 1)}, {"b": (y, x), "a": x}, {"a": x}][rng.choice(3, p=[0.6, 0.3, 0.1])]
            args = (p,) if rng.random() < 0.5 else (p, (draw(), y))
        for _ in range(2 + int(rng.integers(3))):  # again: by native code
            check(jitted, args, kwargs)
    native = jitted._dispatcher._native
    return native.hits if native is not None else 0


@pytest.mark.parametrize("f", [plus, several, nested, views, writes], ids=lambda f: f.__name__)
def test_random_arguments(f):
    with config.override(verify=False):
        hits = sum(random_calls(f, 15, seed) for seed in range(3))
    assert hits > 20 or config.dispatch != "native"


@pytest.mark.parametrize("kind", list(ARRAYS) + list(NUMBERS))
def test_each_kind_is_served_without_python(kind, crossings):
    rng = np.random.default_rng(0)
    f = jg.jit(plus)
    x = ALL[kind](rng)
    for _ in range(2):
        f(x, 2)
    if kind == "huge int":  # NumPy's part: Python's own numbers
        return
    assert crossings(lambda: f(x, 2)) == 0


def test_layouts_are_told_apart():
    f = jg.jit(plus)
    rng = np.random.default_rng(0)
    makes = [
        ALL[k] for k in ("three", "part", "transposed", "every other", "broadcast", "columns first", "matrix", "row")
    ]
    for _ in range(3):
        for make in makes:
            check(f, (make(rng), 1.5), {})


def strided_arrays(rng):
    """Arrays of three axes in random orders, with gaps, signs, zero strides and sizes of 1."""
    shape = [int(rng.choice([0, 1, 2, 3, 4], p=[0.05, 0.25, 0.3, 0.2, 0.2])) for _ in range(3)]
    base = np.arange(2000.0)
    order = rng.permutation(3)
    strides, step = [0, 0, 0], 8
    for axis in order:
        strides[axis] = step * int(rng.choice([1, 2])) * int(rng.choice([1, -1], p=[0.8, 0.2]))
        step = abs(strides[axis]) * max(1, shape[axis])
        if rng.random() < 0.15:
            strides[axis] = 0
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True) if n)
    return np.lib.stride_tricks.as_strided(base[-low // 8 :], shape, strides)


def test_random_strides_find_the_entry_of_their_layout():
    from jitgraph.ir.layouts import layout_of_array
    from jitgraph.native.entries import strided_rows
    from jitgraph.native.records import Strided

    rng = np.random.default_rng(3)
    layouts: dict[Any, tuple[tuple[bool, ...], Any]] = {}
    arrays = [strided_arrays(rng) for _ in range(1500)]
    for x in arrays:
        if not x.flags.c_contiguous:
            layouts.setdefault((layout_of_array(x), tuple(d == 1 for d in x.shape)), x.shape)
    rows = {key: strided_rows(key[0], shape) for key, shape in layouts.items()}

    def fits(records, x):  # what `strided` of vectorcall.py does
        inner = size = x.itemsize
        negative, outer = False, None
        for r in records:
            stride = x.strides[r[Strided.AXIS]]
            if r[Strided.ZERO]:
                if stride:
                    return False
                continue
            length = abs(stride)
            if stride == 0 or (stride < 0) != r[Strided.NEGATIVE]:
                return False
            if outer is not None and (length < outer or (length == outer and not r[Strided.TIE])):
                return False
            broken = length != inner or (not r[Strided.LAST] and inner != size and (stride < 0) != negative)
            if broken != r[Strided.BREAK]:
                return False
            negative, inner, outer = stride < 0, length * x.shape[r[Strided.AXIS]], length
        return True

    for x in arrays:
        if x.flags.c_contiguous:
            continue
        ones = tuple(d == 1 for d in x.shape)
        own = layout_of_array(x)
        found = [key[0] for key, records in rows.items() if key[1] == ones and fits(records, x)]
        assert found == [own], (x.shape, x.strides, found, own)
    assert len(rows) > 60
