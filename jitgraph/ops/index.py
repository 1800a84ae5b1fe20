"""Operators that read and write by data: integer indices and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import AxisError, ShapeError
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

#: Binds a symbol, so that it stands where it is as long as the symbol is used.
_BINDING = frozenset({Trait.MOVEMENT, Trait.BINDS, Trait.OPAQUE})

# ------------------------------------------------------------------------------------------------------ integer index


def _require_axis(axis: int, t: TensorType) -> None:
    if not 0 <= axis < t.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {t.ndim}")


def _taken_shape(x: TensorType, index: TensorType, axis: int) -> tuple[Any, ...]:
    return (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _take_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, index = types
    require_integer("take", index)
    _require_axis(attrs["axis"], x)
    shape = _taken_shape(x, index, attrs["axis"])
    return Signature((None, dtypes.I64), (TensorType(x.dtype, shape, "array" if shape else "np_scalar"),))


define(
    "take",
    "Elements at integer positions along an axis; each is in range and not negative.",
    _take_infer,
    lambda x, index, axis: np.take(x, index, axis=axis),
    vjp=lambda b, ct, y, x, index, axis: (b.scatter_add(zeros_like(b, x), index, ct, axis=axis), None),
    jvp=lambda b, tangents, y, x, index, axis: b.take(tangents[0], index, axis=axis),
    traits=MOVEMENT,
    numpy=(np.take, np.ndarray.take, np.ndarray.__getitem__),
    arity=2,
)


def _scatter_add_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    base, index, values = types
    require_integer("scatter_add", index)
    _require_axis(attrs["axis"], base)
    shape = _taken_shape(base, index, attrs["axis"])
    require_fits(values.shape, shape)
    return Signature((None, dtypes.I64, base.dtype), (TensorType(base.dtype, base.shape, "array", base.layout),))


def _scatter_add(base: Any, index: Any, values: Any, axis: int) -> Any:
    result = np.array(base, order="K", copy=True)
    np.add.at(result, (*(slice(None),) * axis, index), values)
    return result


define(
    "scatter_add",
    "The next version of `base`: values added at integer positions along an axis, one after the other (`np.add.at`).",
    _scatter_add_infer,
    _scatter_add,
    vjp=lambda b, ct, y, base, index, values, axis: (ct, None, b.take(ct, index, axis=axis)),
    jvp=lambda b, tangents, y, base, index, values, axis: (
        tangents[0]
        if tangents[2] is None
        else b.scatter_add(zeros_like(b, base) if tangents[0] is None else tangents[0], index, tangents[2], axis=axis)
    ),
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    numpy=(np.add.at,),
    arity=3,
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


def _compress_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, mask = types
    _require_mask(x, mask)
    return Signature((None, dtypes.BOOL), (TensorType(x.dtype, (symbol_dim(attrs["symbol"]),)),))


define(
    "compress",
    "x[mask]: the elements under true, in C order; binds the symbol of their number.",
    _compress_infer,
    lambda x, mask, symbol: np.asarray(x)[mask],
    vjp=lambda b, ct, y, x, mask, symbol: (b.expand(zeros_like(b, x), mask, ct), None),
    jvp=lambda b, tangents, y, x, mask, symbol: select_by_mask(b, tangents[0], mask, shape_of(y)[0]),
    traits=_BINDING,
    numpy=(np.ndarray.__getitem__, np.compress, np.extract),
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
    found = TensorType(dtypes.I64, (symbol_dim(attrs["symbol"]),))
    return Signature((dtypes.BOOL,), (found,) * mask.ndim)


define(
    "nonzero",
    "The indices of the true elements in C order, one array an axis; binds the symbol of their number.",
    _nonzero_infer,
    lambda mask, symbol: np.nonzero(mask),
    vjp=no_gradient,
    traits=_BINDING,
    numpy=(np.nonzero, np.flatnonzero, np.argwhere),
)
