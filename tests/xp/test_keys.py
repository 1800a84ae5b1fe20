"""Random keys against NumPy: traced with symbolic sizes, on other sizes, eager, recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import jitgraph.xp as jg
from jitgraph.tensor import Tensor
from tests.xp.harness import same, trace

BOUND = st.none() | st.integers(-6, 6)
SLICE = st.builds(slice, BOUND, BOUND, st.sampled_from([None, 1, 2, 3, -1, -2]))
ARRAY = st.lists(st.integers(-3, 2), min_size=0, max_size=3).map(lambda v: np.array(v, np.int64))


@st.composite
def keys(draw: Any, ndim: int, advanced: bool) -> tuple[Any, ...]:
    parts: list[Any] = []
    used = 0
    ellipsis = False
    while used < ndim and draw(st.booleans() | st.just(True)):
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "new", "ellipsis"] + (["array", "mask"] if advanced else []))
        )
        if kind == "new":
            parts.append(None)
            if len(parts) > 4:
                break
            continue
        if kind == "ellipsis":
            if not ellipsis:
                parts.append(Ellipsis)
                ellipsis = True
            used += 1
            continue
        parts.append(
            {
                "int": lambda: draw(st.integers(-3, 2)),
                "slice": lambda: draw(SLICE),
                "array": lambda: draw(ARRAY),
                "mask": lambda: np.array(draw(st.lists(st.booleans(), min_size=3, max_size=3))),
            }[kind]()
        )
        used += 1
    return tuple(parts)


BASE = np.arange(60.0).reshape(3, 4, 5)[:, :3, :3]
CUBE = np.arange(27.0).reshape(3, 3, 3)


@settings(max_examples=250, deadline=None)
@given(keys(3, advanced=True), st.sampled_from([CUBE, BASE, np.asfortranarray(CUBE), CUBE[::-1]]))
def test_reads(key: tuple[Any, ...], array: np.ndarray) -> None:
    def f(x):
        return x[key]

    try:
        expected = f(array)
    except IndexError:
        with pytest.raises(IndexError):
            trace(f, array)
        with pytest.raises(IndexError):
            f(Tensor(array))
        return
    traced = trace(f, array)
    same(traced(array)[0], expected)
    same(f(Tensor(array)), expected)
    same(f(Tensor(array, requires_grad=True)), expected)


@settings(max_examples=200, deadline=None)
@given(keys(3, advanced=True), st.booleans(), st.sampled_from([CUBE, BASE, np.asfortranarray(CUBE)]))
def test_writes(key: tuple[Any, ...], whole: bool, array: np.ndarray) -> None:
    try:
        target = array[key]
    except IndexError:
        assume(False)
        return
    value: Any = np.arange(np.size(target)).reshape(np.shape(target)) * 1.5 if whole else 7.5

    def f(x):
        x[key] = value

    expected = array.copy(order="K")
    f(expected)
    same(trace(f, array)(array)[1][0], expected)
    for t in (Tensor(array.copy(order="K")), Tensor(array.copy(order="K"), requires_grad=True)):
        f(t)
        same(t, expected)


@settings(max_examples=150, deadline=None)
@given(BOUND, BOUND, st.sampled_from([None, 1, 2, -1, -3]), st.lists(st.integers(2, 7), min_size=1, max_size=4))
def test_a_slice_holds_for_all_sizes_that_its_guards_let_through(a: Any, b: Any, step: Any, sizes: list[int]) -> None:
    def f(x):
        return x[a:b:step] + 0.0

    traced = trace(f, np.arange(5.0))
    for n in sizes:
        x = np.arange(float(n))
        holds = all(_holds(g, n) for g in traced.graph.guards)
        if holds:
            same(traced(x)[0], f(x))


def _holds(guard: Any, n: int) -> bool:
    from jitgraph.ir.dims import evaluate

    left, right = (evaluate(d, {"n0_0": n}) for d in (guard.left, guard.right))
    return {"==": left == right, "!=": left != right, ">=": left >= right, "<": left < right}[guard.relation]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(-7, 7),
    st.integers(-7, 7),
    st.sampled_from([None, 1, 2, -1, -3]),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=4),
)
def test_slices_by_run_time_integers(a: int, b: int, step: Any, others: list[tuple[int, int]]) -> None:
    def f(x, i, j):
        return x[i:j:step] * 2

    x = np.arange(5.0)
    traced = trace(f, x, a, b)
    assert not [g for g in traced.graph.guards if "n0_0" not in str(g)]
    for i, j in [(a, b), *others]:
        same(traced(x, i, j)[0], f(x, i, j))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum"]),
    st.sampled_from([None, 0, 1, -1, (0, 1), (0, 2), (-1, 0)]),
    st.booleans(),
    st.sampled_from([np.float64, np.float32, np.int32, np.uint8, np.bool_, np.int64]),
    st.sampled_from([0, 1, 2]),
)
def test_reductions(name: str, axis: Any, keepdims: bool, dtype: Any, layout: int) -> None:
    rng = np.random.default_rng(layout)
    x = rng.integers(0, 5, (3, 4, 5)).astype(dtype)
    x = [x, np.asfortranarray(x), x.transpose(2, 0, 1)[::-1]][layout]
    kwargs: dict[str, Any] = {"axis": axis}
    if name in ("argmax", "argmin", "cumsum"):
        assume(not isinstance(axis, tuple))
    if name != "cumsum":
        kwargs["keepdims"] = keepdims

    def f(a):
        return getattr(np, name)(a, **kwargs)

    expected = f(x)
    same(trace(f, x)(x)[0], expected)
    same(f(Tensor(x)), expected)
    same(getattr(jg, name)(x, **kwargs), expected)
    if np.dtype(dtype).kind == "f":
        same(f(Tensor(x, requires_grad=True)), expected)
