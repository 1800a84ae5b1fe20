"""Views, reshapes, writes: meaning and layout against NumPy; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import dtypes
from jitgraph.errors import AxisError, DTypeError, ShapeError
from jitgraph.ir.dims import symbol
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.reshapes import reshape_view_layout
from jitgraph.ir.types import AxisMap, IndexMap, Layout, TensorType, python_type, scalar_type
from jitgraph.ops.families import drop_axis_map, newaxis_map, reverse_map
from jitgraph.ops.shape import view_of

N, M = symbol("n"), symbol("m")


def type_of(x: np.ndarray) -> TensorType:
    return TensorType(x.dtype, x.shape, "array", layout_of(x.shape, x.strides, x.itemsize))


def facts(layout: Layout, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """What a layout says of the axes that have more than one element."""
    real = [k for k in layout.order if shape[k] != 1]
    broken = set()
    for at in layout.breaks:
        while at >= 0 and shape[layout.order[at]] == 1:
            at -= 1
        if at >= 0:
            broken.add(layout.order[at])
    zero = {k for k in layout.zero if shape[k] != 1}
    return real, broken - zero, {k for k in layout.negative if shape[k] != 1}, zero


def random_step(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, IndexMap]:
    """One view of `x`, by NumPy and as a map."""
    shape = x.shape
    choice = rng.integers(5)
    if choice == 0 and x.ndim:
        axis = int(rng.integers(x.ndim))
        return np.flip(x, axis), reverse_map(shape, axis)
    if choice == 1:
        perm = rng.permutation(x.ndim).tolist()
        return x.transpose(perm), IndexMap.permute(shape, perm)
    if choice == 2 and x.ndim < 5:
        at = int(rng.integers(x.ndim + 1))
        return np.expand_dims(x, at), newaxis_map(shape, at)
    if choice == 3 and 1 in shape:
        at = shape.index(1)
        return np.squeeze(x, at), drop_axis_map(shape, at)
    if x.ndim:
        axis = int(rng.integers(x.ndim))
        start, step = int(rng.integers(0, 2)), int(rng.integers(1, 3))
        if start < shape[axis]:
            view = x[(*(slice(None),) * axis, slice(start, None, step))]
            maps = [AxisMap(0, 1, k) for k in range(x.ndim)]
            maps[axis] = AxisMap(start, step, axis)
            return view, IndexMap(view.shape, tuple(maps))
    return x, IndexMap.identity(shape)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=4))
def test_chains_of_views_are_one_view(seed: int, shape: list[int]) -> None:
    """Composed maps select NumPy's elements and share memory; their layout over a dense base is that of the strides."""
    rng = np.random.default_rng(seed)
    base = np.arange(float(np.prod(shape))).reshape(shape)
    x, whole = base, IndexMap.identity(base.shape)
    for _ in range(rng.integers(1, 5)):
        following, step = random_step(x, rng)
        (t,) = REGISTRY["view"].infer([type_of(x)], {"map": step}).results
        found = view_of(x, step)
        assert found.strides == following.strides or 1 in found.shape
        np.testing.assert_array_equal(found, following)
        assert np.shares_memory(found, base)
        assert t.shape == following.shape
        real = layout_of(following.shape, following.strides, 8)
        said, is_so = facts(t.layout, following.shape), facts(real, following.shape)
        what = f"{type_of(x)} by {step}: {t.layout}, NumPy {following.strides}: {real}"
        assert (said[0], said[2:]) == (is_so[0], is_so[2:]), what
        assert is_so[1] <= said[1], what  # how wide a gap of `x` is, its layout does not say
        x, whole = following, whole.then(step)
        assert facts(whole.layout(type_of(base)), x.shape) == is_so, f"{whole}, NumPy {x.strides}: {real}"
    np.testing.assert_array_equal(view_of(base, whole), x)


def test_views_that_repeat_elements() -> None:
    x = np.arange(5.0)
    assert view_of(x, IndexMap((3, 2), (AxisMap(1, 2, 1),))).tolist() == [[1, 3]] * 3
    (t,) = REGISTRY["view"].infer([type_of(x)], {"map": IndexMap((3, 2), (AxisMap(1, 2, 1),))}).results
    assert (t.layout.zero, t.layout.order) == ((0,), (1, 0))
    assert view_of(2.0, IndexMap((2,), ())).tolist() == [2.0, 2.0]
    assert view_of(np.arange(9.0).reshape(3, 3), IndexMap((3,), (AxisMap(0, 1, 0), AxisMap(0, 1, 0)))).tolist() == [
        0,
        4,
        8,
    ]
    assert view_of(x, IndexMap((0,), (AxisMap(9, 1, 0),))).shape == (0,)


@pytest.mark.parametrize("seed", range(8))
def test_reshapes_are_views_where_numpys_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    views = 0
    for _ in range(150):
        ndim = int(rng.integers(1, 4))
        base = np.zeros([int(rng.choice([1, 2, 3, 4, 6])) for _ in range(ndim)])
        x = base[tuple(slice(None, None, int(rng.choice([1, 1, 1, -1, 2]))) for _ in range(ndim))]
        x = x.transpose(rng.permutation(ndim))
        if rng.random() < 0.2:
            x = np.broadcast_to(x, (3, *x.shape))
        left, shape = x.size, []
        while left > 1 and len(shape) < 3:
            shape.append(int(rng.choice([k for k in range(1, left + 1) if left % k == 0])))
            left //= shape[-1]
        shape = (*shape, left)
        y = np.reshape(x, shape)
        found = reshape_view_layout(type_of(x), shape)
        if not np.shares_memory(x, y):
            assert found is None, f"{x.shape} {x.strides} to {shape}"
            continue
        views += 1
        assert found is not None, f"{x.shape} {x.strides} to {shape}"
        assert facts(found, shape) == facts(layout_of(shape, y.strides, 8), shape)
    assert views > 20


def test_reshapes_of_symbolic_sizes() -> None:
    f_order = TensorType(dtypes.F64, (N, M), "array", Layout((1, 0)))
    assert reshape_view_layout(f_order, (N * M,)) is None
    assert reshape_view_layout(f_order, (N, M, 1)) == Layout((2, 1, 0))
    assert reshape_view_layout(TensorType(dtypes.F64, (N, M)), (M, N)) == Layout((0, 1))
    rows = TensorType(dtypes.F64, (N, 4, 6), "array", Layout((0, 1, 2), (0,)))
    assert reshape_view_layout(rows, (N, 24)) == Layout((0, 1), (0,))
    assert reshape_view_layout(rows, (N, 3, 8)) == Layout((0, 1, 2), (0,))
    assert reshape_view_layout(rows, (4 * N, 6)) is None
    (t,) = REGISTRY["reshape"].infer([f_order], {"shape": (N * M,)}).results
    assert t.layout.is_c
    with pytest.raises(ShapeError, match=r"cannot reshape array of size 6 into shape \(4, 2\)"):
        REGISTRY["reshape"].infer([TensorType(dtypes.F64, (2, 3))], {"shape": (4, 2)})


def test_a_write_is_the_next_version_and_leaves_the_old_one() -> None:
    base = np.zeros((3, 4), order="F")
    map = IndexMap((2, 4), (AxisMap(2, -2, 0), AxisMap(0, 1, 1)))
    found = REGISTRY["write"].evaluate(np.arange(4.0), base, map=map)
    assert found.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 2, 3]]
    assert not base.any()
    assert found.flags.f_contiguous
    signature = REGISTRY["write"].infer([python_type("py_int"), type_of(base)], {"map": map})
    assert signature.operands == (dtypes.F64, None)
    assert signature.results == (type_of(base),)


def test_what_shapes_are_refused() -> None:
    """With NumPy's words."""
    a, b = TensorType(dtypes.F64, (N, 4)), TensorType(dtypes.F64, (M, 4))
    with pytest.raises(ShapeError, match=r"operands could not be broadcast together with shapes \(n, 4\) \(m, 4\)"):
        REGISTRY["add"].infer([a, b], {})
    with pytest.raises(ShapeError, match=r"could not be broadcast together with shapes \(n, 4\) \(3,\)"):
        REGISTRY["where"].infer([a, TensorType(dtypes.F64, (3,)), python_type("py_float")], {})
    with pytest.raises(ShapeError, match=r"could not broadcast input array from shape \(3,\) into shape \(n, 4\)"):
        REGISTRY["write"].infer([TensorType(dtypes.F64, (3,)), a], {"map": IndexMap.identity((N, 4))})
    with pytest.raises(ShapeError, match=r"could not broadcast input array from shape \(2, n, 4\)"):
        REGISTRY["write"].infer([TensorType(dtypes.F64, (2, N, 4)), a], {"map": IndexMap.identity((N, 4))})
    with pytest.raises(
        ShapeError, match="along dimension 1, the array at index 0 has size 4 and the array at index 1 has size 5"
    ):
        REGISTRY["concatenate"].infer([a, TensorType(dtypes.F64, (N, 5))], {"axis": 0})
    with pytest.raises(ShapeError, match="index 0 has 2 dimension"):
        REGISTRY["concatenate"].infer([a, TensorType(dtypes.F64, (N,))], {"axis": 0})
    with pytest.raises(AxisError, match="axis 2 is out of bounds for array of dimension 2"):
        REGISTRY["concatenate"].infer([a, a], {"axis": 2})
    with pytest.raises(AxisError, match="axis 2 is out of bounds for array of dimension 2"):
        REGISTRY["reduce_sum"].infer([a], {"axes": (2,), "keepdims": False})
    with pytest.raises(AxisError, match="axis -1 is out of bounds"):
        REGISTRY["cumsum"].infer([a], {"axis": -1})
    with pytest.raises(AxisError, match="axis 3 is out of bounds"):
        REGISTRY["take"].infer([a, scalar_type(dtypes.I64)], {"axis": 3})
    with pytest.raises(ShapeError, match=r"core dimension 0, .*size m is different from 4\)"):
        REGISTRY["matmul"].infer([a, b], {})
    with pytest.raises(ShapeError, match="Input operand 1 does not have enough dimensions"):
        REGISTRY["matmul"].infer([a, scalar_type(dtypes.F64)], {})
    with pytest.raises(ShapeError, match=r"the array has shape \(n, 4\), the mask \(m, 4\)"):
        REGISTRY["compress"].infer([a, b.with_dtype(dtypes.BOOL)], {"size": 3})
    with pytest.raises(ShapeError, match="takes 0 or 1 axes of values, not 2"):
        REGISTRY["expand"].infer([a, a.with_dtype(dtypes.BOOL), a], {})
    with pytest.raises(ShapeError, match="Calling nonzero on 0d arrays is not allowed"):
        REGISTRY["nonzero"].infer([scalar_type(dtypes.BOOL)], {"size": 3})
    with pytest.raises(ShapeError, match=r"could not broadcast input array from shape \(m,\) into shape \(n, 3\)"):
        REGISTRY["scatter_add"].infer([a, TensorType(dtypes.I64, (3,)), TensorType(dtypes.F64, (M,))], {"axis": 1})


def test_what_dtypes_are_refused() -> None:
    flags = TensorType(dtypes.BOOL, (N,))
    with pytest.raises(DTypeError, match="numpy boolean subtract, the `-` operator, is not supported"):
        REGISTRY["sub"].infer([flags, flags], {})
    with pytest.raises(DTypeError, match=r"ufunc 'add' cannot use operands|add does not support"):
        REGISTRY["add"].infer([TensorType(np.dtype("M8[s]"), (N,)), TensorType(dtypes.F64, (N,))], {})
    with pytest.raises(DTypeError, match="ufunc 'bitwise_and' not supported for the input types"):
        REGISTRY["bit_and"].infer([TensorType(dtypes.F32, (N,)), TensorType(dtypes.F32, (N,))], {})
    with pytest.raises(DTypeError, match="take takes integers, not float64"):
        REGISTRY["take"].infer([flags, TensorType(dtypes.F64, (3,))], {"axis": 0})
    with pytest.raises(DTypeError, match="a check takes a bool"):
        REGISTRY["check"].infer([scalar_type(dtypes.I64)], {"site": 0, "order": 0})
    with pytest.raises(DTypeError, match="a py_int is held in int64, not in float64"):
        REGISTRY["as_kind"].infer([scalar_type(dtypes.F64)], {"kind": "py_int"})
    with pytest.raises(DTypeError, match="as_kind takes a scalar"):
        REGISTRY["as_kind"].infer([flags], {"kind": "py_int"})
    with pytest.raises(DTypeError, match="full does not support complex256"):
        REGISTRY["full"].infer([python_type("py_int")], {"shape": (3,), "dtype": np.dtype(np.clongdouble)})
