"""Elements as other dtypes of the same bits: `x.view(dtype)`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import DTypeError, ShapeError
from jitgraph.ir.dims import DimLike, floordiv
from jitgraph.ir.opdef import Attrs, Scalar, Signature
from jitgraph.ir.types import AxisMap, IndexMap, TensorType
from jitgraph.ops.families import ELEMENTWISE, define, newaxis_map, no_gradient, require_supported

#: What NumPy says of larger elements that do not fit.
LARGER = (
    "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the "
    "array."
)


def _bitcast_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    dtype: np.dtype = attrs["dtype"]
    require_supported("bitcast", (x.dtype, dtype))
    if x.dtype.itemsize != dtype.itemsize or dtypes.is_complex(x.dtype) or dtypes.is_complex(dtype):
        raise DTypeError(f"{x.dtype.name} has no elements of {dtype.name} with the same bits")
    if x.kind == "array":
        return Signature((None,), (TensorType(dtype, x.shape, "array", x.layout),))
    return Signature((None,), (TensorType(dtype, (), "np_scalar"),))


def _bitcast(s: Scalar, x: Any, dtype: np.dtype) -> Any:
    if s.dtype(x) == dtypes.BOOL:
        return s.bitcast(s.cast(x, dtypes.U8), dtype)
    if dtype == dtypes.BOOL:
        return s.cmp("ne", x, s.like(0, x))
    return s.bitcast(x, dtype)


define(
    "bitcast",
    "The same bits as another dtype of the same size; of a bool 0 or 1.",
    _bitcast_infer,
    lambda x, dtype: np.asarray(x).view(dtype)[()] if not isinstance(x, np.ndarray) else x.view(dtype),
    lower=_bitcast,
    vjp=no_gradient,
    traits=ELEMENTWISE,
)


def reinterpreted_type(t: TensorType, dtype: np.dtype) -> TensorType:
    """The type of `x.view(dtype)` of an array: the last axis changes with the size of the elements.

    Raises:
        ValueError: another size of a 0-d array, or of one whose last axis is not contiguous, as in NumPy.
    """
    have, want = t.dtype.itemsize, dtype.itemsize
    if have == want:
        return TensorType(dtype, t.shape, "array", t.layout)
    if not t.shape:
        raise ShapeError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    last = t.ndim - 1
    if t.layout.order[-1] != last or last in t.layout.breaks or last in t.layout.negative or last in t.layout.zero:
        raise ShapeError("To change to a dtype of a different size, the last axis must be contiguous")
    size = t.shape[-1]
    if have > want:
        return TensorType(dtype, (*t.shape[:-1], size * (have // want)), "array", t.layout)
    ratio = want // have
    if want % have or (isinstance(size, int) and size % ratio):
        raise ShapeError(LARGER)
    return TensorType(dtype, (*t.shape[:-1], floordiv(size, ratio)), "array", t.layout)


def reinterpret(b: Any, x: Any, dtype: np.dtype) -> Any:
    """`x.view(dtype)` by a builder: casts of bits, shifts and sums of the parts of larger elements."""
    t: TensorType = x.type
    if t.dtype == dtype:
        return x
    if dtypes.is_complex(dtype) or dtypes.is_complex(t.dtype):
        return _complex(b, x, dtype)
    have, want = t.dtype.itemsize, dtype.itemsize
    if have == want:
        return b.bitcast(x, dtype=dtype)
    little, large = sorted((np.dtype(f"u{have}"), np.dtype(f"u{want}")), key=lambda d: d.itemsize)
    bits, ratio = 8 * little.itemsize, large.itemsize // little.itemsize
    places = [bits * k for k in (range(ratio) if sys.byteorder == "little" else reversed(range(ratio)))]
    if have > want:
        whole = b.bitcast(x, dtype=large) if t.dtype != large else x
        column = b.view(whole, map=newaxis_map(t.shape, t.ndim))
        parts = b.cast(b.shift_right(column, b.constant(np.array(places, large))), dtype=little)
        flat = b.reshape(parts, shape=(*t.shape[:-1], t.shape[-1] * ratio))
        return flat if dtype == little else b.bitcast(flat, dtype=dtype)
    parts = b.bitcast(x, dtype=little) if t.dtype != little else x
    total: Any = None
    for k, place in enumerate(places):
        part = b.cast(b.view(parts, map=_every(t.shape, ratio, k)), dtype=large)
        part = b.shift_left(part, large.type(place)) if place else part
        total = part if total is None else b.bit_or(total, part)
    return total if dtype == large else b.bitcast(total, dtype=dtype)


def _every(shape: Sequence[DimLike], ratio: int, start: int) -> IndexMap:
    """Each `ratio`-th element of the last axis from `start` on."""
    last = len(shape) - 1
    axes = [AxisMap(0, 1, k) for k in range(last)]
    return IndexMap((*shape[:-1], floordiv(shape[-1], ratio)), (*axes, AxisMap(start, ratio, last)))


def _complex(b: Any, x: Any, dtype: np.dtype) -> Any:
    """Complex numbers as their parts in turn, and back.

    Raises:
        DTypeError: another dtype than that of the parts.
    """
    t: TensorType = x.type
    if dtypes.is_complex(dtype) and t.dtype == dtypes.part_of(dtype):
        real, imag = (b.view(x, map=_every(t.shape, 2, k)) for k in (0, 1))
        return b.with_imag(b.cast(real, dtype=dtype), imag)
    if dtypes.is_complex(t.dtype) and dtype == dtypes.part_of(t.dtype):
        parts = [b.view(p, map=newaxis_map(t.shape, t.ndim)) for p in (b.real(x), b.imag(x))]
        both = b.concatenate(*parts, axis=t.ndim)
        return b.reshape(both, shape=(*t.shape[:-1], t.shape[-1] * 2))
    raise DTypeError(f"the view of {t.dtype.name} as {dtype.name} is not supported under jit")
