"""The reduction plan against NumPy's own sums, bit for bit, and its formulas over symbolic sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitgraph import dtypes
from jitgraph.ir.dims import evaluate, symbol
from jitgraph.ir.types import Layout, TensorType
from jitgraph.ops.reduction_plan import chunks_of, model_reduce, reduction_plan, type_of
from tests.strategies import assert_same_bits

N, M, K = symbol("n"), symbol("m"), symbol("k")


def random_array(rng: np.random.Generator) -> np.ndarray:
    """A float array of wide exponent range whose axes are padded, stepped, reversed and permuted at random."""
    ndim = int(rng.integers(1, 5))
    shape = [int(rng.integers(1, {1: 20000, 2: 60, 3: 20, 4: 9}[ndim])) for _ in range(ndim)]
    if ndim > 1 and rng.random() < 0.3:
        shape[int(rng.integers(ndim))] = int(rng.integers(100, 400))
    step = [int(rng.integers(2, 4)) if rng.random() < 0.15 else 1 for _ in shape]
    pad = [int(rng.integers(0, 2)) if rng.random() < 0.5 else 0 for _ in shape]
    full = [n * k + p for n, k, p in zip(shape, step, pad, strict=True)]
    base = (rng.standard_normal(full) * 10.0 ** rng.uniform(-6, 6, full)).astype(rng.choice(["f4", "f8"]))
    x = base[tuple(slice(0, n * k, k) for n, k in zip(shape, step, strict=True))]
    flip = tuple(slice(None, None, -1) if rng.random() < 0.15 else slice(None) for _ in shape)
    return x[flip].transpose(rng.permutation(ndim))


@pytest.mark.parametrize("seed", range(6))
def test_sums_have_the_bits_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    done = 0
    while done < 40:
        x = random_array(rng)
        axes = tuple(k for k in range(x.ndim) if rng.random() < 0.5) or tuple(range(x.ndim))
        if x.size > 40000:
            continue
        done += 1
        plan = reduction_plan(type_of(x), axes)
        assert_same_bits(model_reduce(x, axes), np.sum(x, axes), f"{x.shape} {x.strides} {axes} {plan}")


@pytest.mark.parametrize("kind", ["prod", "max", "min"])
def test_other_kinds_have_the_bits_of_numpy(kind: str) -> None:
    rng = np.random.default_rng(11)
    reference = {"prod": np.prod, "max": np.max, "min": np.min}[kind]
    done = 0
    while done < 40:
        x = random_array(rng)
        if x.size > 3000:
            continue
        done += 1
        if kind == "prod":
            x = x / np.abs(x).max() + x.dtype.type(1)
        axes = tuple(k for k in range(x.ndim) if rng.random() < 0.5) or tuple(range(x.ndim))
        assert_same_bits(model_reduce(x, axes, kind), reference(x, axes), f"{kind} {x.shape} {x.strides} {axes}")


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (1, 1), (1, 7, 1)])
def test_sums_over_no_or_single_elements(shape: tuple[int, ...]) -> None:
    x = np.full(shape, -0.0)
    for axes in ((0,), tuple(range(len(shape)))):
        assert_same_bits(model_reduce(x, axes), np.sum(x, axes))


def test_the_layout_decides_which_axes_are_inner() -> None:
    c = TensorType(dtypes.F32, (N, M))
    f = TensorType(dtypes.F32, (N, M), "array", Layout((1, 0)))
    rows, columns = reduction_plan(c, (1,)), reduction_plan(c, (0,))
    assert (rows.order, rows.loops, rows.kept, rows.inner, rows.chunk) == ("pairwise", (0,), (0,), (1,), None)
    assert (columns.order, columns.loops, columns.outer_serial, columns.inner) == ("serial", (0, 1), (0,), ())
    swapped = reduction_plan(f, (0,))
    assert (swapped.order, swapped.loops, swapped.inner) == ("pairwise", (1,), (0,))


def test_a_dense_block_is_one_pairwise_call_and_a_padded_one_is_cut() -> None:
    dense = reduction_plan(TensorType(dtypes.F64, (N, M)), (0, 1))
    assert (dense.inner, dense.merged, dense.chunk, dense.loops) == ((0, 1), True, None, ())
    padded = reduction_plan(TensorType(dtypes.F64, (N, M), "array", Layout((0, 1), (0,))), (0, 1))
    assert not padded.merged
    assert evaluate(padded.chunk, {"n": 500, "m": 100}) == 100 * 81
    assert evaluate(padded.chunk, {"n": 500, "m": 9000}) == 9000
    assert evaluate(padded.chunk, {"n": 5, "m": 0}) == 0


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 9000))
@settings(max_examples=60, deadline=None)
def test_the_chunk_formula_is_numpys_loop(a: int, b: int, c: int) -> None:
    """With gaps between three axes: inner ones join up to 8192 elements, then as many stretches as fit."""
    layout = Layout((0, 1, 2), (0, 1))
    symbolic = reduction_plan(TensorType(dtypes.F64, (N, M, K), "array", layout), (0, 1, 2)).chunk
    assert symbolic is not None
    found = evaluate(symbolic, {"n": a, "m": b, "k": c})
    total = a * b * c
    if total == 0:
        return
    length = c * b if c * b <= 8192 else c
    expected = total if total <= 8192 else length if length >= 8192 else length * max(1, 8192 // length)
    assert min(found, total) == min(expected, total)


def test_integers_and_extremes_are_free_of_order() -> None:
    x = TensorType(dtypes.I64, (N, M))
    assert reduction_plan(x, (0, 1)).order == "free"
    assert reduction_plan(TensorType(dtypes.F32, (N, M)), (1,), "max").order == "free"
    assert reduction_plan(TensorType(dtypes.F32, (N, M)), (1,), "prod").order == "serial"


def test_axes_of_size_one_are_left_out() -> None:
    """Without the kept axis, the innermost one, the reduced axis is a flat run."""
    layout = Layout((0, 1), (0,))
    whole = reduction_plan(TensorType(dtypes.F64, (N, M), "array", layout), (0,))
    single = reduction_plan(TensorType(dtypes.F64, (N, 1), "array", layout), (0,))
    assert (whole.order, whole.outer_serial, whole.inner) == ("serial", (0,), ())
    assert (single.order, single.outer_serial, single.inner) == ("pairwise", (), (0,))


def test_a_broadcast_axis_stays_where_its_neighbours_leave_it() -> None:
    x = TensorType(dtypes.F64, (N, M, K), "array", Layout((2, 0, 1), zero=(0, 1)))
    rows, all_axes = reduction_plan(x, (2,)), reduction_plan(x, (0, 1, 2))
    assert (rows.loops, rows.inner) == ((0, 1), (2,))
    assert all_axes.inner == (0, 1, 2)
    assert not all_axes.merged  # the two broadcast ones merge, the third does not continue them


def test_a_cast_array_is_read_through_a_buffer() -> None:
    dense = reduction_plan(TensorType(dtypes.F32, (N, M)), (0, 1), dtype=dtypes.F64)
    assert (dense.chunk, dense.period) == (8192, None)
    padded = reduction_plan(TensorType(dtypes.F32, (N, M), "array", Layout((0, 1), (0,))), (0, 1), dtype=dtypes.F64)
    for n, m, chunk, period in ((10, 10000, 8192, 10000), (100, 3000, 6000, 300000), (5, 7, 35, 35)):
        env = {"n": n, "m": m}
        assert (evaluate(padded.chunk, env), evaluate(padded.period, env)) == (chunk, period)


@given(st.integers(0, 40), st.integers(0, 3), st.booleans())
@settings(max_examples=25, deadline=None)
def test_chunks_begin_anew_in_each_period(size: int, periods: int, ragged: bool) -> None:
    stops = list(chunks_of(size, 7, max(periods, 1) * 10 + ragged))
    assert [a for a, _ in stops] == [0, *(b for _, b in stops)][: len(stops)]
    assert sum(b - a for a, b in stops) == size
    assert all(0 < b - a <= 7 for a, b in stops)


def broadcast_array(rng: np.random.Generator) -> np.ndarray:
    """`random_array` with axes of stride zero."""
    x = random_array(rng)
    some = tuple(slice(0, 1) if rng.random() < 0.4 else slice(None) for _ in x.shape)
    return np.broadcast_to(x[some], x.shape)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["broadcast", "cast", "mask", "cast mask", "initial"])
def test_sums_of_every_kind_have_the_bits_of_numpy(seed: int, how: str) -> None:
    rng = np.random.default_rng(seed)
    done = 0
    while done < 20:
        x = broadcast_array(rng) if rng.random() < 0.5 or how == "broadcast" else random_array(rng)
        axes = tuple(k for k in range(x.ndim) if rng.random() < 0.5) or tuple(range(x.ndim))
        if x.size > 30000:
            continue
        done += 1
        dtype, mask, initial = None, None, None
        kwargs: dict[str, Any] = {}
        if "cast" in how:
            dtype = kwargs["dtype"] = dtypes.F64 if x.dtype == dtypes.F32 else dtypes.F32
        if "mask" in how:
            shape = [1 if rng.random() < 0.2 else n for n in x.shape]
            chosen = np.asarray(rng.random(shape) < rng.choice([0.3, 0.9, 0.99]))
            mask = kwargs["where"] = np.broadcast_to(np.asfortranarray(chosen) if done % 2 else chosen, x.shape)
        if how == "initial":
            initial = kwargs["initial"] = 1.5
        with np.errstate(over="ignore", invalid="ignore"):
            found = model_reduce(x, axes, dtype=dtype, mask=mask, initial=initial)
            expected = np.sum(x, axes, **kwargs)
        assert_same_bits(found, expected, f"{how} {x.shape} {x.strides} {axes}")
