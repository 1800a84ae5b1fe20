"""Reductions, folds and statistics as users write them, compiled, against NumPy: bits, dtype, kind, strides, errors."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.strategies import assert_same_bits

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7))
N = X.copy()
N[1, 2] = N[3, :] = np.nan
I = RNG.integers(-9, 9, (4, 6))
ARRAYS: dict[str, np.ndarray] = {
    "f64": X,
    "f64-F": np.asfortranarray(X),
    "f64-strided": RNG.standard_normal((9, 14))[::2, ::-2],
    "f64-nan": N,
    "f64-broadcast": np.broadcast_to(X[0], (5, 7)),
    "f32": X.astype("f4"),
    "i64": I,
    "u8": I.astype("u1"),
    "bool": I > 0,
}

ANY: list[Callable[[Any], Any]] = [
    lambda x: np.sum(x),
    lambda x: np.sum(x, axis=0),
    lambda x: np.sum(x, axis=(0, 1), keepdims=True),
    lambda x: np.sum(x, axis=()),
    lambda x: np.sum(x, initial=3),
    lambda x: (np.sum(x, initial=None), np.prod(x, axis=1, initial=None)),
    lambda x: np.sum(x, where=x > 0),
    lambda x: np.sum(x, axis=1, where=x[0] > 0, dtype=np.float32),
    lambda x: x.sum(axis=1, dtype=np.float32),
    lambda x: np.prod(x, axis=1),
    lambda x: np.prod(x, axis=0, where=x > 0, initial=2),
    lambda x: np.mean(x),
    lambda x: np.mean(x, axis=1, keepdims=True),
    lambda x: np.mean(x, axis=1, where=x < 2),
    lambda x: np.mean(x, dtype=np.float32),
    lambda x: np.var(x, axis=0, ddof=1),
    lambda x: np.var(x, where=x > 0),
    lambda x: np.var(x, correction=1),
    lambda x: np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
    lambda x: x.max(),
    lambda x: np.max(x, axis=0, where=x > 0, initial=0),
    lambda x: x.min(axis=1),
    lambda x: np.ptp(x, axis=0) if x.dtype != bool else x,
    lambda x: (x.any(axis=0), np.all(x), np.any(x, axis=(0, 1))),
    lambda x: (x.argmax(), x.argmin(axis=1), np.argmax(x, axis=0, keepdims=True)),
    lambda x: (np.cumsum(x), np.cumsum(x, axis=1), x.cumprod(axis=0)),
    lambda x: (np.cumulative_sum(x, axis=1, include_initial=True), np.cumulative_prod(x, axis=0)),
    lambda x: (np.count_nonzero(x), np.count_nonzero(x, axis=1)),
    lambda x: (np.average(x), np.average(x, axis=1), np.average(x, axis=0, returned=True)),
    lambda x: (np.nansum(x), np.nansum(x, axis=1), np.nanprod(x), np.nancumsum(x, axis=0)),
    lambda x: (np.nanmean(x), np.nanmean(x, axis=0), np.nanvar(x, axis=1), np.nanstd(x)),
    lambda x: (np.nanmax(x, axis=0), np.nanmin(x), np.nanargmin(x)),
    lambda x: (np.diff(x), np.diff(x, n=2, axis=0), np.diff(x, prepend=0), np.ediff1d(x)) if x.dtype != bool else x,
    lambda x: np.trapezoid(x),
    lambda x: (np.logical_and.reduce(x), np.logical_xor.reduce(x, axis=1), np.logical_or.reduce(x, axis=None)),
    lambda x: (np.maximum.accumulate(x, axis=1), np.minimum.accumulate(x, axis=0), np.fmax.reduce(x, axis=1)),
    lambda x: (np.logical_and.accumulate(x), np.fmin.reduce(x, axis=None)),
    lambda x: np.add.reduceat(x, [0, 3, 1], axis=1),
    lambda x: (np.minimum.reduceat(x, [0, 2], axis=0), np.multiply.reduceat(x, [1, 1, 3], axis=1)),
    lambda x: np.multiply.outer(x, x[0]),
    lambda x: np.divide.reduce(x),
    lambda x: (np.median(x), np.percentile(x, [10, 90], axis=1)) if x.dtype != bool else x,
]  # fmt: skip
NUMBERS: list[Callable[[Any], Any]] = [
    lambda x: (
        (np.subtract.reduce(x, axis=1), np.subtract.accumulate(x, axis=1), np.subtract.reduce(x, axis=()))
        if x.dtype != bool
        else x
    ),
    lambda x: np.subtract.reduce(x, initial=3) if x.dtype != bool else x,
    lambda x: np.floor_divide.reduce(x) if x.dtype != bool else x,
    lambda x: np.copysign.accumulate(x, axis=0) if x.dtype.kind == "f" else x,
    lambda x: (np.bitwise_or.reduce(x, axis=1), np.bitwise_xor.reduce(x)) if x.dtype.kind != "f" else x,
    lambda x: np.left_shift.reduce(x % 3) if x.dtype.kind in "iu" else x,
    lambda x: np.gcd.reduce(x, axis=1) if x.dtype.kind in "iu" else x,
]


def same(found: Any, expected: Any, what: str) -> None:
    """Equal kinds, bits and, along axes of more than one element, strides."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for a, b in zip(found, expected, strict=True):
            same(a, b, what)
        return
    assert type(found) is type(expected), (what, type(found), type(expected))
    # the sign of zero is no promise in extremes
    assert_same_bits(found, expected, what, zero_sign=False)
    if isinstance(expected, np.ndarray) and expected.size:
        for d, p, q in zip(expected.shape, found.strides, expected.strides, strict=True):
            assert d == 1 or p == q, (what, found.strides, expected.strides)


@pytest.mark.parametrize("name", ARRAYS)
def test_one_array(name: str) -> None:
    x = ARRAYS[name]
    functions = [*ANY, *NUMBERS]
    expected = [f(x) for f in functions]
    for f, wanted in zip(functions, expected, strict=True):
        same(jg.jit(f)(x), wanted, f"line {f.__code__.co_firstlineno} {name}")


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_starts_of_reduceat_are_data(dtype: str) -> None:
    @jg.jit
    def stretches(x: Any, starts: Any) -> Any:
        return np.add.reduceat(x, starts), np.subtract.reduceat(x, starts), np.maximum.reduceat(x, starts)

    x = (RNG.standard_normal(700) * 100).astype(dtype)
    for starts in ([0, 500, 3, 3, 699], [1], []):
        i = np.array(starts, np.intp)
        wanted = np.add.reduceat(x, i), np.subtract.reduceat(x, i), np.maximum.reduceat(x, i)
        same(stretches(x, i), wanted, f"{starts}")
    with pytest.raises(IndexError, match=r"index 700 out-of-bounds in add.reduceat \[0, 700\)"):
        stretches(x, np.array([0, 700]))
    with pytest.raises(IndexError, match="index -1 out-of-bounds"):
        stretches(x, np.array([0, -1]))


OUTS = [
    lambda x, out: np.sum(x, axis=0, out=out),
    lambda x, out: np.mean(x, axis=0, out=out),
    lambda x, out: np.std(x, axis=0, out=out),
    lambda x, out: np.nanmean(x, axis=0, out=out),
    lambda x, out: np.subtract.reduce(x, out=out),
    lambda x, out: np.max(x, axis=0, out=out),
    lambda x, out: np.cumsum(x[0], out=out),
    lambda x, out: np.argmax(x, axis=0, out=out),
    lambda x, out: np.any(x, axis=0, out=out),
]


@pytest.mark.parametrize("f", OUTS, ids=lambda f: str(f.__code__.co_firstlineno - OUTS[0].__code__.co_firstlineno))
def test_out_takes_part_in_the_dtype(f: Any) -> None:
    for out in (np.zeros(7), np.zeros(7, "f4"), np.zeros(7, int), np.zeros(14)[::2], np.zeros(6), np.zeros((1, 7))):
        given, reference = copy.copy(out), copy.copy(out)
        try:
            f(X, reference)
        except (ValueError, TypeError) as error:
            with pytest.raises(type(error).__mro__[-3] if isinstance(error, TypeError) else ValueError):
                jg.jit(f)(X, given)
            continue
        assert jg.jit(f)(X, given) is given
        assert_same_bits(given, reference)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.subtract.reduce(x, axis=(0, 1)),
        lambda x: np.subtract.reduce(x[:0]),
        lambda x: np.subtract.reduce(x, where=x > 0),
        lambda x: np.max(x[:0]),
        lambda x: np.sum(x, where=np.ones(7)),
        lambda x: np.sum(x, axis=(0, 0)),
        lambda x: np.maximum.accumulate(x, axis=None),
        lambda x: np.bitwise_or.reduce(x),
        lambda x: np.add.reduceat(x, np.array([0.5])),
        lambda x: np.add.reduceat(x, [0, 5]),
        lambda x: np.argmax(x[:0], axis=0),
        lambda x: np.nanargmax(x * np.nan, axis=1),
        lambda x: np.average(x, weights=x[0]),
        lambda x: np.average(x, weights=x * 0),
        lambda x: np.std(x, ddof=1, correction=1),
        lambda x: np.max(x.astype(np.uint8), initial=-5),
    ],
    ids=lambda f: f"line{f.__code__.co_firstlineno}",
)
def test_errors(f: Any) -> None:
    with pytest.raises(Exception) as wanted:  # whatever NumPy raises
        f(X)
    builtin = next(c for c in type(wanted.value).__mro__ if c.__module__ == "builtins")
    with pytest.raises(builtin):
        jg.jit(f)(X)


def test_weights() -> None:
    w = RNG.random((5, 7))
    for f in (
        lambda x, w: np.average(x, weights=w),
        lambda x, w: np.average(x, axis=1, weights=w, returned=True),
        lambda x, w: np.average(x, axis=1, weights=w[0], returned=True),
        lambda x, w: np.average(x, axis=1, weights=w[0], keepdims=True),
        lambda x, w: np.average(x, axis=(1, 0), weights=w.T),
    ):
        same(jg.jit(f)(X, w), f(X, w), f"line {f.__code__.co_firstlineno}")


KERNELS = [
    (lambda x, y: np.sum(x * y, axis=1), 1),
    (lambda x, y: np.sum(x * y, where=x > 0), 1),
    (lambda x, y: np.sum(x * y, dtype=np.float32), 1),
    (lambda x, y: np.nanmean(x), 1),
    (lambda x, y: np.nanvar(x, axis=1), 1),
    (lambda x, y: np.nanmax(x * y, axis=1), 1),
    (lambda x, y: np.var(x, axis=1), 1),
    (lambda x, y: np.var(x), 2),
    (lambda x, y: np.average(x, weights=y), 1),
    (lambda x, y: np.ptp(x + y, axis=1), 1),
    (lambda x, y: np.diff(x, axis=1).sum(), 1),
]


@pytest.mark.parametrize(("f", "count"), KERNELS, ids=lambda v: "" if isinstance(v, int) else "f")
def test_reductions_fuse_with_what_they_reduce(f: Any, count: int) -> None:
    text = str(jg.jit(f).inspect_ir(np.ones((20, 30)), np.ones((20, 30)), stage="fuse"))
    assert text.count(" = kernel ") == count, text


def test_a_size_that_turns_out_one_keeps_numpys_order() -> None:
    def total(x: Any) -> Any:
        return np.sum(x[1:] * x[1:], axis=0), np.sum(x[1:], where=x[1:] > 0)

    compiled = jg.jit(total)
    for n in (2, 3, 40):
        x = RNG.standard_normal((n, 9))
        same(compiled(x), total(x), f"{n} rows")


def random_call(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """An array of a random layout and random arguments of a sum."""
    ndim = int(rng.integers(1, 4))
    shape = [int(rng.integers(1, {1: 20000, 2: 150, 3: 20}[ndim])) for _ in range(ndim)]
    step = [int(rng.integers(1, 3)) for _ in shape]
    pad = [int(rng.integers(0, 2)) for _ in shape]
    full = [n * k + p for n, k, p in zip(shape, step, pad, strict=True)]
    base = (rng.standard_normal(full) * 10.0 ** rng.uniform(-6, 6, full)).astype(rng.choice(["f4", "f8"]))
    x = base[tuple(slice(0, n * k, k) for n, k in zip(shape, step, strict=True))]
    x = x[tuple(slice(None, None, -1) if rng.random() < 0.15 else slice(None) for _ in shape)]
    x = np.broadcast_to(x[tuple(slice(0, 1) if rng.random() < 0.2 else slice(None) for _ in shape)], shape)
    x = x.transpose(rng.permutation(ndim))
    kwargs: dict[str, Any] = {"axis": tuple(k for k in range(ndim) if rng.random() < 0.5) or None}
    kwargs["keepdims"] = bool(rng.random() < 0.3)
    if rng.random() < 0.3:
        kwargs["dtype"] = np.float64 if x.dtype == np.float32 else np.float32
    if rng.random() < 0.2:
        kwargs["initial"] = 1.25
    if rng.random() < 0.3:
        chosen = np.asarray(rng.random([1 if rng.random() < 0.2 else n for n in x.shape]) < 0.9)
        kwargs["where"] = np.asfortranarray(chosen) if rng.random() < 0.5 else chosen
    return x, kwargs


@pytest.mark.parametrize("seed", range(6))
def test_random_layouts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        x, kwargs = random_call(rng)
        mask = kwargs.pop("where", True)
        options = {k: v for k, v in kwargs.items() if k != "initial"}

        def f(x: Any, mask: Any, kwargs: Any = kwargs, options: Any = options) -> Any:
            if mask is True:
                return np.sum(x, **kwargs), np.mean(x, **options), np.sum(x * 3, **kwargs)
            return np.sum(x, where=mask, **kwargs), np.mean(x, where=mask, **options), np.prod(x, where=mask, **kwargs)

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            same(jg.jit(f)(x, mask), f(x, mask), f"{x.shape} {x.strides} {x.dtype} {kwargs}")


def test_folds_of_functions_with_a_bound() -> None:
    def folds(x: Any) -> Any:
        return np.hypot.reduce(x, axis=1), np.logaddexp.accumulate(x, axis=0), np.arctan2.reduceat(x, [0, 2], axis=0)

    for found, wanted in zip(jg.jit(folds)(X), folds(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    same(jg.jit(folds, numerics="numpy")(X), folds(X), "numpy's functions")

    def odd(x: Any) -> Any:
        """On some CPUs NumPy's vector loops of these are no folds; they are what they are."""
        return np.arctan2.reduce(x, axis=1), np.power.reduce(np.abs(x)), np.power.reduceat(np.abs(x), [0, 2], axis=0)

    same(jg.jit(odd)(X), odd(X), "NumPy's loops")
    jg.jit(folds, check=True)(X)


def test_folds_in_loops() -> None:
    def loop(x: Any, k: Any) -> Any:
        out = np.zeros((x.shape[0], 5))
        for i in range(x.shape[0]):
            out[i, 0] = np.subtract.reduce(x[i], initial=1.0)
            out[i, 1] = np.add.reduceat(x[i], np.array([0, 4]))[1]
            out[i, 2] = np.maximum.accumulate(x[i])[k]
            out[i, 3] = np.sum(x[i], where=x[k] > 0)
            out[i, 4] = np.median(x[i]) + np.nanmax(x[i]) + np.average(x[i], weights=x[k] ** 2)
        return out

    x = RNG.standard_normal((60, 7))
    same(jg.jit(loop)(x, 3), loop(x, 3), "loop")


def test_operators_without_a_gradient_say_so() -> None:
    for f in (lambda x: np.maximum.accumulate(x).sum(), lambda x: np.add.reduceat(x, [0, 2]).sum()):
        with pytest.raises(jg.errors.JitgraphError, match="no gradient for the operator"):
            jg.grad(f)(X[0])
