"""Operators that move elements: views, reshape, copies, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph.errors import AxisError, ShapeError
from jitgraph.ir.dims import DimLike
from jitgraph.ir.opdef import Attrs, Signature
from jitgraph.ir.reshapes import reshape_view_layout
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType, c_layout
from jitgraph.ops.families import (
    MOVEMENT,
    define,
    fresh_layout,
    product,
    promote,
    shape_of,
    shape_text,
    stored_as,
    zeros_like,
)

# -------------------------------------------------------------------------------------------------------------- view


def view_of(x: Any, map: IndexMap) -> np.ndarray:
    """The elements of `x` that `map` selects, sharing its memory; sizes in the map are numbers here."""
    base = np.asarray(x)
    strides = [0] * len(map.shape)
    start = [] if 0 in map.shape else [slice(m.offset, None) for m in map.axes]
    for m, stride in zip(map.axes, base.strides, strict=True):
        if m.axis is not None:
            assert isinstance(m.step, int)
            strides[m.axis] += m.step * stride
    return np.lib.stride_tricks.as_strided(base[(*start, ...)], map.shape, strides)  # type: ignore[arg-type]


def _view_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    map: IndexMap = attrs["map"]
    if len(map.axes) != x.ndim:
        raise ShapeError(f"the map of a view names {len(map.axes)} axes, its base has {x.ndim}")
    return Signature((None,), (TensorType(x.dtype, map.shape, "array", map.layout(x)),))


def _view_vjp(b: Any, ct: Any, y: Any, x: Any, *, map: IndexMap) -> tuple[Any]:
    """The cotangent written into zeros; summed first over the axes that the view repeats."""
    return (scatter(b, ct, map, x),)


def scatter(b: Any, ct: Any, map: IndexMap, base: Any) -> Any:
    """The transpose of a view: at each element of an array like `base`, the sum of `ct` at its places in the view."""
    shape = shape_of(base)
    repeated = [k for k in range(len(map.shape)) if all(m.axis != k for m in map.axes)]
    if repeated:
        ct = b.reduce_sum(ct, axes=tuple(repeated), keepdims=False)
        number = {k: i for i, k in enumerate(k for k in range(len(map.shape)) if k not in repeated)}
        map = IndexMap(
            tuple(d for k, d in enumerate(map.shape) if k not in repeated),
            tuple(m if m.axis is None else AxisMap(m.offset, m.step, number[m.axis]) for m in map.axes),
        )
    if map.is_identity(shape):
        return ct
    if len({m.axis for m in map.axes}) == len(shape) == len(map.shape) and all(
        m.offset == 0 and m.step == 1 and map.shape[m.axis] == d  # type: ignore[index]
        for m, d in zip(map.axes, shape, strict=True)
    ):  # a transpose: the inverse one
        return b.view(ct, map=IndexMap.permute(map.shape, [m.axis for m in map.axes]))  # type: ignore[misc]
    return b.write(ct, zeros_like(b, base), map=map)


define(
    "view",
    "An affine view: slices, transposes, new axes, reversal, broadcasting, diagonals.",
    _view_infer,
    view_of,
    vjp=_view_vjp,
    traits=MOVEMENT,
    numpy=(
        np.transpose,
        np.swapaxes,
        np.moveaxis,
        np.flip,
        np.broadcast_to,
        np.expand_dims,
        np.squeeze,
        np.diagonal,
        np.ndarray.__getitem__,
    ),
    linear=True,
)

# ----------------------------------------------------------------------------------------------------------- reshape


def _reshape_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    shape: Shape = attrs["shape"]
    rest = product(shape) - product(x.shape)
    if isinstance(rest, int) and rest:  # sizes that may still be equal were decided by the front end
        size = product(x.shape)
        raise ShapeError(f"cannot reshape array of size {size} into shape {shape_text(shape)}")
    layout = reshape_view_layout(x, shape) or c_layout(len(shape))
    return Signature((None,), (TensorType(x.dtype, shape, "array", layout),))


def _reshape(x: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.reshape(x, shape)


define(
    "reshape",
    "The elements in C order under another shape.",
    _reshape_infer,
    _reshape,
    vjp=lambda b, ct, y, x, shape: (b.reshape(ct, shape=shape_of(x)),),
    traits=MOVEMENT,
    numpy=(np.reshape, np.ravel, np.ndarray.reshape, np.ndarray.ravel, np.ndarray.flatten),
    linear=True,
)

# -------------------------------------------------------------------------------------------------------------- copy


def _copy_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    order = attrs.get("order", "K")
    axes: Sequence[int] = range(x.ndim)
    if order == "F":
        axes = range(x.ndim - 1, -1, -1)
    elif order == "K":
        axes = x.layout.order
    return Signature((None,), (TensorType(x.dtype, x.shape, "array", fresh_layout(axes, x.shape)),))


define(
    "copy",
    'A fresh array of the same elements: order "C", "F", or "K" as they lie; `reason` says why one was inserted.',
    _copy_infer,
    lambda x, order="K", reason="": np.array(x, order=order, copy=True),
    vjp=lambda b, ct, y, x, order="K", reason="": (ct,),
    traits=MOVEMENT,
    numpy=(np.copy, np.ndarray.copy, np.ascontiguousarray, np.asfortranarray),
    linear=True,
)

# ------------------------------------------------------------------------------------------------------- concatenate


def _concatenate_order(ndim: int, types: Sequence[TensorType]) -> Sequence[int]:
    """The axes of a concatenation as they lie in memory.

    Source: NumPy's `PyArray_CreateMultiSortedStridePerm`: an insertion sort from C order by |stride|, where C order
    wins a conflict between arrays; axes of size 1 do not count.
    """
    if all(t.layout.is_c for t in types):
        return range(ndim)
    ranks = [
        {axis: ndim if axis in t.layout.zero else at for at, axis in enumerate(t.layout.order) if t.shape[axis] != 1}
        for t in types
    ]
    order: list[int] = []
    for axis in range(ndim):
        at = axis
        for k in range(axis - 1, -1, -1):
            pairs = [(r[axis], r[order[k]]) for r in ranks if axis in r and order[k] in r]
            if not pairs:
                continue
            if any(mine >= other for mine, other in pairs):  # as far in as it should be, for one array at least
                break
            at = k
        order.insert(at, axis)
    return order


def _concatenate_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    axis: int = attrs["axis"]
    first = types[0]
    if first.ndim == 0:
        raise ShapeError("zero-dimensional arrays cannot be concatenated")
    if not 0 <= axis < first.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {first.ndim}")
    total: DimLike = 0
    for number, t in enumerate(types):
        if t.ndim != first.ndim:
            raise ShapeError(
                "all the input array dimensions except for the concatenation axis must match exactly, but the array at "
                f"index 0 has {first.ndim} dimension(s) and the array at index {number} has {t.ndim} dimension(s)"
            )
        for k, (a, b) in enumerate(zip(first.shape, t.shape, strict=True)):
            if k != axis and a != b:
                raise ShapeError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but along "
                    f"dimension {k}, the array at index 0 has size {a} and the array at index {number} has size {b}"
                )
        total = total + t.shape[axis]
    dtype = promote("concatenate", types)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    layout = fresh_layout(_concatenate_order(first.ndim, types), shape)
    return Signature((dtype,) * len(types), (TensorType(dtype, shape, "array", layout),))


def _concatenate_vjp(b: Any, ct: Any, y: Any, *operands: Any, axis: int) -> tuple[Any, ...]:
    """Each operand's part of the cotangent."""
    shape = shape_of(y)
    parts = []
    start: DimLike = 0
    for x in operands:
        size = shape_of(x)[axis]
        axes = [AxisMap(0, 1, k) for k in range(len(shape))]
        axes[axis] = AxisMap(start, 1, axis)
        parts.append(b.view(ct, map=IndexMap((*shape[:axis], size, *shape[axis + 1 :]), tuple(axes))))
        start = start + size
    return tuple(parts)


define(
    "concatenate",
    "Arrays one behind the other along an axis; `stack` is this on views with a new axis.",
    _concatenate_infer,
    lambda *arrays, axis: np.concatenate(arrays, axis=axis),
    vjp=_concatenate_vjp,
    traits=MOVEMENT,
    numpy=(np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack),
    linear=True,
    arity=-1,
)

# ------------------------------------------------------------------------------------------------------------- write


def require_fits(shape: Shape, into: Shape) -> None:
    """Values of `shape` broadcast into `into` as it is.

    Raises:
        ShapeError: an axis differs and is not literally 1, or there are too many.
    """
    fits = len(shape) <= len(into) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(into), strict=False))
    if not fits:
        raise ShapeError(
            f"could not broadcast input array from shape {shape_text(shape)} into shape {shape_text(into)}"
        )


def _write_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    value, base = types
    map: IndexMap = attrs["map"]
    if len(map.axes) != base.ndim:
        raise ShapeError(f"the map of a write names {len(map.axes)} axes, its base has {base.ndim}")
    require_fits(value.shape, map.shape)
    return Signature((stored_as(value, base.dtype), None), (base,))


def _through_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    value, base = types
    shape = base.shape
    for step in attrs["steps"]:
        if isinstance(step, IndexMap):
            if len(step.axes) != len(shape):
                raise ShapeError(f"the map of a write names {len(step.axes)} axes, its base has {len(shape)}")
            shape = step.shape
            continue
        rest = product(step) - product(shape)
        if isinstance(rest, int) and rest:
            raise ShapeError(f"cannot reshape array of size {product(shape)} into shape {shape_text(step)}")
        shape = step
    require_fits(value.shape, shape)
    return Signature((stored_as(value, base.dtype), None), (base,))


def _through(value: Any, base: Any, steps: Sequence[Any]) -> Any:
    result = np.array(base, order="K", copy=True)
    places = np.arange(result.size).reshape(result.shape)
    for step in steps:
        places = view_of(places, step) if isinstance(step, IndexMap) else places.reshape(step)
    result.flat[places.reshape(-1)] = np.broadcast_to(value, places.shape).reshape(-1)
    return result


def _through_vjp(b: Any, ct: Any, y: Any, value: Any, base: Any, *, steps: Sequence[Any]) -> tuple[Any, Any]:
    seen = ct
    for step in steps:
        seen = b.view(seen, map=step) if isinstance(step, IndexMap) else b.reshape(seen, shape=step)
    return seen, b.write_through(0.0, ct, steps=steps)


def _write(value: Any, base: Any, map: IndexMap) -> Any:
    result = np.array(base, order="K", copy=True)
    view_of(result, map)[...] = value
    return result


define(
    "write",
    "The next version of `base`: `value` at the elements that `map` names, the old elements elsewhere.",
    _write_infer,
    _write,
    vjp=lambda b, ct, y, value, base, map: (
        b.view(ct, map=map),
        b.write(0.0, ct, map=map) if not map.is_identity(shape_of(base)) else None,
    ),
    jvp=lambda b, tangents, y, value, base, map: b.write(
        0.0 if tangents[0] is None else tangents[0],
        zeros_like(b, base) if tangents[1] is None else tangents[1],
        map=map,
    ),
    traits=MOVEMENT,
    numpy=(np.ndarray.__setitem__, np.copyto),
    arity=2,
)

define(
    "write_through",
    "A write through views of which some are reshapes: `steps` lead from `base` to the elements, the last is a map.",
    _through_infer,
    _through,
    vjp=_through_vjp,
    jvp=lambda b, tangents, y, value, base, steps: b.write_through(
        0.0 if tangents[0] is None else tangents[0],
        zeros_like(b, base) if tangents[1] is None else tangents[1],
        steps=steps,
    ),
    traits=MOVEMENT,
    numpy=(np.ndarray.__setitem__, np.copyto),
    arity=2,
)
