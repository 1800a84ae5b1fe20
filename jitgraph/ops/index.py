"""Operators that read and write by data: integer indices and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import AxisError, ShapeError
from jitgraph.ir.dims import DimLike
from jitgraph.ir.dims import symbol as symbol_dim
from jitgraph.ir.opdef import Attrs, Signature, Trait
from jitgraph.ir.types import AxisMap, IndexMap, TensorType
from jitgraph.ops.families import (
    MOVEMENT,
    define,
    dtype_of,
    no_gradient,
    product,
    require_integer,
    require_supported,
    shape_of,
    shape_text,
    zeros_like,
)
from jitgraph.ops.shape import require_fits

# ------------------------------------------------------------------------------------------------------ integer index


def _require_axis(axis: int, t: TensorType) -> None:
    if not 0 <= axis < t.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {t.ndim}")


def _taken_shape(x: TensorType, indices: Sequence[TensorType], axis: int) -> tuple[Any, ...]:
    return (*x.shape[:axis], *index_shape(indices), *x.shape[axis + len(indices) :])


def index_shape(indices: Sequence[TensorType]) -> tuple[Any, ...]:
    """What index arrays broadcast to; their sizes are equal or literally 1.

    Raises:
        ShapeError: they are not.
    """
    ndim = max(t.ndim for t in indices)
    shape: list[Any] = [1] * ndim
    for t in indices:
        for k, d in enumerate(t.shape, ndim - t.ndim):
            if shape[k] == 1 and isinstance(shape[k], int):
                shape[k] = d
            elif d not in (1, shape[k]):
                raise ShapeError(f"index arrays of sizes {d} and {shape[k]} do not fit each other")
    return tuple(shape)


def _take_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, *indices = types
    for index in indices:
        require_integer("take", index)
    axis = attrs["axis"]
    _require_axis(axis + len(indices) - 1, x)
    shape = _taken_shape(x, indices, axis)
    casts = (None, *[dtypes.I64] * len(indices))
    return Signature(casts, (TensorType(x.dtype, shape, "array" if shape else "np_scalar"),))


def _take(x: Any, *indices: Any, axis: int) -> Any:
    if len(indices) == 1 and np.shape(x)[axis] == 0:  # a check behind it fails, or nobody looks at the elements
        return np.zeros((*np.shape(x)[:axis], *np.shape(indices[0]), *np.shape(x)[axis + 1 :]), np.asarray(x).dtype)[()]
    if len(indices) == 1:
        return np.take(x, indices[0], axis=axis)
    found = np.asarray(x)[(*(slice(None),) * axis, *indices)]
    return np.ascontiguousarray(found) if found.ndim else found


def _take_vjp(b: Any, ct: Any, y: Any, x: Any, *indices: Any, axis: int) -> tuple[Any, ...]:
    return b.scatter_add(zeros_like(b, x), *indices, ct, axis=axis), *(None,) * len(indices)


define(
    "take",
    "Elements at integer positions: one index array for each axis from `axis` on; all in range and not negative.",
    _take_infer,
    _take,
    vjp=_take_vjp,
    jvp=lambda b, tangents, y, x, *indices, axis: b.take(tangents[0], *indices, axis=axis),
    traits=MOVEMENT,
    numpy=(np.take, np.ndarray.take, np.ndarray.__getitem__),
    arity=-1,
)


def _update_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    base, *indices, values = types
    for index in indices:
        require_integer("scatter", index)
    _require_axis(attrs["axis"] + len(indices) - 1, base)
    require_fits(values.shape, _taken_shape(base, indices, attrs["axis"]))
    casts = (None, *[dtypes.I64] * len(indices), base.dtype)
    return Signature(casts, (TensorType(base.dtype, base.shape, "array", base.layout),))


def _scatter_add(base: Any, *rest: Any, axis: int) -> Any:
    result = np.array(base, order="K", copy=True)
    np.add.at(result, (*(slice(None),) * axis, *rest[:-1]), rest[-1])
    return result


def _scatter_add_vjp(b: Any, ct: Any, y: Any, base: Any, *rest: Any, axis: int) -> tuple[Any, ...]:
    *indices, _ = rest
    return ct, *(None,) * len(indices), b.take(ct, *indices, axis=axis)


def _scatter_add_jvp(b: Any, tangents: Any, y: Any, base: Any, *rest: Any, axis: int) -> Any:
    if tangents[-1] is None:
        return tangents[0]
    old = zeros_like(b, base) if tangents[0] is None else tangents[0]
    return b.scatter_add(old, *rest[:-1], tangents[-1], axis=axis)


define(
    "scatter_add",
    "The next version of `base`: values added at integer positions, one after the other (`np.add.at`). The indices are "
    "those of `take`.",
    _update_infer,
    _scatter_add,
    vjp=_scatter_add_vjp,
    jvp=_scatter_add_jvp,
    traits=frozenset({Trait.PURE}),
    numpy=(np.add.at,),
    arity=-1,
)


def _scatter(base: Any, *rest: Any, axis: int) -> Any:
    result = np.array(base, order="K", copy=True)
    *indices, values = rest
    result[(*(slice(None),) * axis, *indices)] = values
    return result


def _scatter_vjp(b: Any, ct: Any, y: Any, base: Any, *rest: Any, axis: int) -> tuple[Any, ...]:
    """What is overwritten, be it by a later index of the same place, has no gradient."""
    *indices, values = rest
    count = len(indices)
    wide = index_shape([TensorType(dtypes.I64, shape_of(i)) for i in indices])
    own, behind = shape_of(base), len(shape_of(base)) - axis - count
    total = product(wide)
    numbers = b.reshape(b.iota(b.dim(value=0), b.dim(value=1), size=total, dtype=dtypes.I64), shape=wide)
    last = b.scatter(b.full(0, shape=own[axis : axis + count], dtype=dtypes.I64), *indices, numbers, axis=0)
    wins = b.eq(b.take(last, *indices, axis=0), numbers)
    wins = b.reshape(wins, shape=(*wide, *(1,) * behind))
    taken = b.take(ct, *indices, axis=axis)
    cleared = b.scatter(ct, *indices, b.full(0.0, shape=shape_of(values), dtype=dtype_of(ct)), axis=axis)
    return cleared, *(None,) * count, b.where(wins, taken, 0.0)


def _scatter_jvp(b: Any, tangents: Any, y: Any, base: Any, *rest: Any, axis: int) -> Any:
    old = zeros_like(b, base) if tangents[0] is None else tangents[0]
    new = zeros_like(b, rest[-1]) if tangents[-1] is None else tangents[-1]
    return b.scatter(old, *rest[:-1], new, axis=axis)


define(
    "scatter",
    "The next version of `base`: values written at integer positions in C order, the last one wins. The indices are "
    "those of `take`.",
    _update_infer,
    _scatter,
    vjp=_scatter_vjp,
    jvp=_scatter_jvp,
    traits=frozenset({Trait.PURE}),
    numpy=(np.ndarray.__setitem__, np.put, np.put_along_axis),
    arity=-1,
)

# -------------------------------------------------------------------------------------------------------------- masks


def _require_mask(x: TensorType, mask: TensorType) -> None:
    if mask.shape != x.shape:
        raise ShapeError(
            f"boolean index did not match indexed array: the array has shape {shape_text(x.shape)}, "
            f"the mask {shape_text(mask.shape)}"
        )


def mask_positions(b: Any, mask: Any, count: Any) -> Any:
    """For each element of `mask`, flat: which of the `count` true ones it is, or `count` if it is false.

    This is how gradients go through masks without binding another symbol for a size that has one.
    """
    flat = b.reshape(mask, shape=(product(shape_of(mask)),))
    return b.where(flat, b.sub(b.cumsum(flat, axis=0), 1), b.dim(value=count))


def select_by_mask(b: Any, x: Any, mask: Any, count: Any) -> Any:
    """`x[mask]`, of the known size `count`: a scatter into one place more than that, which the false ones share."""
    slots = b.full(0.0, shape=(count + 1,), dtype=dtype_of(x))
    flat = b.reshape(x, shape=(product(shape_of(mask)),))
    filled = b.scatter_add(slots, mask_positions(b, mask, count), flat, axis=0)
    return b.view(filled, map=IndexMap((count,), (AxisMap(0, 1, 0),)))


def _count(attrs: Attrs) -> DimLike:
    """The number of true elements; a symbol of any name where none is known, as in eager mode."""
    size: DimLike | None = attrs["size"]
    return symbol_dim("k") if size is None else size


def _compress_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, mask = types
    _require_mask(x, mask)
    return Signature((None, dtypes.BOOL), (TensorType(x.dtype, (_count(attrs),)),))


define(
    "compress",
    "x[mask]: the elements under true, of which there are `size`, in C order.",
    _compress_infer,
    lambda x, mask, size: np.asarray(x)[mask],
    vjp=lambda b, ct, y, x, mask, size: (b.expand(zeros_like(b, x), mask, ct), None),
    jvp=lambda b, tangents, y, x, mask, size: select_by_mask(b, tangents[0], mask, shape_of(y)[0]),
    traits=MOVEMENT,
    numpy=(np.ndarray.__getitem__, np.compress, np.extract),
    arity=2,
)


def _packed_sum_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, mask = types
    _require_mask(x, mask)
    if x.ndim != 1 or x.dtype.kind != "f":
        raise ShapeError("packed_sum takes floats along one axis")
    return Signature((None, dtypes.BOOL), (TensorType(x.dtype, (), "np_scalar"),))


define(
    "packed_sum",
    "sum(x[mask]) in NumPy's order, of `size` elements. Made by passes from `compress`, behind all gradients.",
    _packed_sum_infer,
    lambda x, mask, size: np.add.reduce(np.ascontiguousarray(np.asarray(x)[mask])),
    vjp=no_gradient,
    traits=MOVEMENT,
    arity=2,
)


def _expand_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    base, mask, values = types
    _require_mask(base, mask)
    if values.ndim > 1:
        raise ShapeError(f"a masked assignment takes 0 or 1 axes of values, not {values.ndim}")
    return Signature((None, dtypes.BOOL, base.dtype), (base,))


def _expand(base: Any, mask: Any, values: Any) -> Any:
    result = np.array(base, order="K", copy=True)
    result[mask] = values
    return result


def _expand_vjp(b: Any, ct: Any, y: Any, base: Any, mask: Any, values: Any) -> tuple[Any, None, Any]:
    kept = b.where(mask, 0.0, ct)
    if not shape_of(values):
        axes = tuple(range(len(shape_of(base))))
        return kept, None, b.reduce_sum(b.where(mask, ct, 0.0), axes=axes, keepdims=False)
    return kept, None, select_by_mask(b, ct, mask, shape_of(values)[0])


define(
    "expand",
    "The next version of `base`: base[mask] = values, values in C order or one for all.",
    _expand_infer,
    _expand,
    vjp=_expand_vjp,
    jvp=lambda b, tangents, y, base, mask, values: b.expand(
        zeros_like(b, base) if tangents[0] is None else tangents[0],
        mask,
        zeros_like(b, values) if tangents[2] is None else tangents[2],
    ),
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    numpy=(np.ndarray.__setitem__, np.place, np.putmask),
    arity=3,
)


def _nonzero_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (mask,) = types
    require_supported("nonzero", (mask.dtype,))
    if mask.ndim == 0:
        raise ShapeError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    found = TensorType(dtypes.I64, (_count(attrs),))
    return Signature((dtypes.BOOL,), (found,) * mask.ndim)


define(
    "nonzero",
    "The indices of the true elements, of which there are `size`, in C order; one array an axis.",
    _nonzero_infer,
    lambda mask, size: np.nonzero(mask),
    vjp=no_gradient,
    traits=MOVEMENT | {Trait.OPAQUE},
    numpy=(np.nonzero, np.flatnonzero, np.argwhere),
)
