"""Reductions over axes, extremes' positions, and running sums.

`axes` are sorted axis numbers, none negative. Sums and products of bools and small integers run in the default integer,
as in NumPy. The order of a float sum follows from the operand's layout: see `reduction_plan`. The gradient of a maximum
is shared equally among ties, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import AxisError, DTypeError
from jitgraph.ir.opdef import Attrs, Infer, Signature, Trait
from jitgraph.ir.types import Shape, TensorType, elementwise_layout
from jitgraph.ops.families import (
    PURE,
    define,
    dtype_of,
    expand,
    fresh_layout,
    has_half,
    no_gradient,
    require_supported,
    reverse_map,
    shape_of,
)

REDUCTION = PURE | {Trait.REDUCTION}


@lru_cache(maxsize=256)
def accumulator_dtype(name: str, ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    """The dtype that `ufunc.reduce` computes in.

    Raises:
        DTypeError: NumPy has no such reduction, or needs a dtype that is not supported.
    """
    try:
        found = ufunc.resolve_dtypes((None, dtype, None), reduction=True)[1]
    except TypeError as error:
        raise DTypeError(f"{error}") from None
    require_supported(name, (found,))
    return found


def reduced_type(x: TensorType, axes: Sequence[int], keepdims: bool, dtype: np.dtype) -> TensorType:
    """The type of a reduction's result: the kept axes keep their order in memory, as in NumPy.

    Raises:
        AxisError: an axis is out of range.
    """
    for axis in axes:
        if not 0 <= axis < x.ndim:
            raise AxisError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
    shape: Shape
    if keepdims:
        shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
        number = {k: k for k in range(x.ndim)}
    else:
        kept = [k for k in range(x.ndim) if k not in axes]
        shape = tuple(x.shape[k] for k in kept)
        number = {k: i for i, k in enumerate(kept)}
    if not shape:
        return TensorType(dtype, (), "np_scalar")
    if x.layout.is_c:
        return TensorType(dtype, shape)
    order = [number[k] for k in elementwise_layout(x.ndim, (x,)).order if k in number]
    return TensorType(dtype, shape, "array", fresh_layout(order, shape))


def _reduction(
    name: str,
    ufunc: np.ufunc,
    doc: str,
    vjp: Callable[..., Any],
    numpy: tuple[Any, ...],
    *,
    jvp: Callable[..., Any] | None = None,
    linear: bool = False,
) -> None:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
        (x,) = types
        dtype = accumulator_dtype(name, ufunc, x.dtype)
        return Signature((dtype,), (reduced_type(x, attrs["axes"], attrs.get("keepdims", False), dtype),))

    def evaluate(x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        return ufunc.reduce(x, axis=tuple(axes), keepdims=keepdims)

    names = (*numpy, ufunc.reduce)
    define(name, doc, infer, evaluate, vjp=vjp, jvp=jvp, traits=REDUCTION, numpy=names, linear=linear, by_numpy=has_half)


def _sum_vjp(b: Any, ct: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool = False) -> tuple[Any]:
    return (expand(b, ct, shape_of(x), axes, keepdims),)


def _prod_slope(b: Any, y: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The product of all other elements: y / x, or where x is the only zero the product of the rest."""
    shape = shape_of(x)
    zero = b.eq(x, 0.0)
    filled = b.where(zero, 1.0, x)
    zeros = expand(b, b.reduce_sum(zero, axes=axes, keepdims=keepdims), shape, axes, keepdims)
    rest = expand(b, b.reduce_prod(filled, axes=axes, keepdims=keepdims), shape, axes, keepdims)
    alone = b.logical_and(zero, b.eq(zeros, 1))
    return b.where(alone, rest, b.where(zero, 0.0, b.div(expand(b, y, shape, axes, keepdims), filled)))


def _prod_vjp(b: Any, ct: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool = False) -> tuple[Any]:
    return (b.mul(expand(b, ct, shape_of(x), axes, keepdims), _prod_slope(b, y, x, axes, keepdims)),)


def _prod_jvp(b: Any, tangents: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    return b.reduce_sum(b.mul(tangents[0], _prod_slope(b, y, x, axes, keepdims)), axes=axes, keepdims=keepdims)


def _extreme_share(b: Any, y: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> tuple[Any, Any]:
    """Where x is the extreme, and at how many places it is, as a float of the result's shape."""
    hit = b.eq(x, expand(b, y, shape_of(x), axes, keepdims))
    return hit, b.cast(b.reduce_sum(hit, axes=axes, keepdims=keepdims), dtype=dtype_of(x))


def _extreme_vjp(b: Any, ct: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool = False) -> tuple[Any]:
    hit, count = _extreme_share(b, y, x, axes, keepdims)
    return (b.where(hit, expand(b, b.div(ct, count), shape_of(x), axes, keepdims), 0.0),)


def _extreme_jvp(b: Any, tangents: Any, y: Any, x: Any, *, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    hit, count = _extreme_share(b, y, x, axes, keepdims)
    return b.div(b.reduce_sum(b.where(hit, tangents[0], 0.0), axes=axes, keepdims=keepdims), count)


_reduction("reduce_sum", np.add, "Sum over axes, in NumPy's order.", _sum_vjp, (np.sum,), linear=True)
_reduction("reduce_prod", np.multiply, "Product over axes, one by one.", _prod_vjp, (np.prod,), jvp=_prod_jvp)
_reduction("reduce_max", np.maximum, "Greatest element; NaN wins.", _extreme_vjp, (np.max,), jvp=_extreme_jvp)
_reduction("reduce_min", np.minimum, "Least element; NaN wins.", _extreme_vjp, (np.min,), jvp=_extreme_jvp)
_reduction("reduce_any", np.logical_or, "Whether some element is true.", no_gradient, (np.any,))
_reduction("reduce_all", np.logical_and, "Whether all elements are true.", no_gradient, (np.all,))


# ---------------------------------------------------------------------------------------------- positions of extremes


def _position_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    require_supported("argmax", (x.dtype,))
    t = reduced_type(x, (attrs["axis"],), attrs.get("keepdims", False), dtypes.I64)
    return Signature((None,), (TensorType(dtypes.I64, t.shape, t.kind),))  # a new array in C order


def _position(function: Callable[..., Any]) -> Callable[..., Any]:
    def evaluate(x: Any, axis: int, keepdims: bool = False) -> Any:
        return function(x, axis=axis, keepdims=keepdims)

    return evaluate


for _name, _function, _what in (("argmax", np.argmax, "greatest"), ("argmin", np.argmin, "least")):
    define(
        _name,
        f"Position of the first {_what} element along an axis; the first NaN wins.",
        _position_infer,
        _position(_function),
        vjp=no_gradient,
        numpy=(_function,),
        by_numpy=has_half,
    )


# ------------------------------------------------------------------------------------------------------ running sums


def _running_infer(name: str, ufunc: np.ufunc) -> Infer:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
        (x,) = types
        dtype = accumulator_dtype(name, ufunc, x.dtype)
        if not 0 <= attrs["axis"] < x.ndim:
            raise AxisError(f"axis {attrs['axis']} is out of bounds for array of dimension {x.ndim}")
        layout = fresh_layout(elementwise_layout(x.ndim, types).order, x.shape)
        return Signature((dtype,), (TensorType(dtype, x.shape, "array", layout),))

    return infer


def _reversed(b: Any, x: Any, axis: int) -> Any:
    return b.view(x, map=reverse_map(shape_of(x), axis))


def _reverse_sum(b: Any, x: Any, axis: int) -> Any:
    """Sums from each element to the end of its axis."""
    return _reversed(b, b.cumsum(_reversed(b, x, axis), axis=axis), axis)


def _cumprod_parts(b: Any, x: Any, axis: int) -> tuple[Any, Any, Any, Any]:
    """The zeros, the first zero on the axis, x with ones for zeros, the running product past the first zero."""
    zero = b.eq(x, 0.0)
    first = b.logical_and(zero, b.eq(b.cumsum(zero, axis=axis), 1))
    return zero, first, b.where(zero, 1.0, x), b.cumprod(b.where(first, 1.0, x), axis=axis)


def _cumprod_vjp(b: Any, ct: Any, y: Any, x: Any, *, axis: int) -> tuple[Any]:
    """Exact with zeros: only products up to the first zero, and those past it but for that zero, have a gradient."""
    zero, first, filled, past = _cumprod_parts(b, x, axis)
    before = b.div(_reverse_sum(b, b.mul(ct, y), axis), filled)
    return (b.where(first, _reverse_sum(b, b.mul(ct, past), axis), b.where(zero, 0.0, before)),)


def _cumprod_jvp(b: Any, tangents: Any, y: Any, x: Any, *, axis: int) -> Any:
    (t,) = tangents
    zero, first, filled, past = _cumprod_parts(b, x, axis)
    before = b.mul(y, b.cumsum(b.where(zero, 0.0, b.div(t, filled)), axis=axis))
    return b.add(before, b.mul(past, b.cumsum(b.where(first, t, 0.0), axis=axis)))


define(
    "cumsum",
    "Running sums along an axis, one by one.",
    _running_infer("cumsum", np.add),
    lambda x, axis: np.add.accumulate(x, axis=axis),
    vjp=lambda b, ct, y, x, axis: (_reverse_sum(b, ct, axis),),
    numpy=(np.cumsum, np.add.accumulate),
    by_numpy=has_half,
    linear=True,
)
define(
    "cumprod",
    "Running products along an axis, one by one.",
    _running_infer("cumprod", np.multiply),
    lambda x, axis: np.multiply.accumulate(x, axis=axis),
    vjp=_cumprod_vjp,
    jvp=_cumprod_jvp,
    numpy=(np.cumprod, np.multiply.accumulate),
    by_numpy=has_half,
)
