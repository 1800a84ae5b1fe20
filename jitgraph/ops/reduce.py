"""Reductions over axes, extremes' positions, and running sums.

`axes` are sorted axis numbers, none negative. Sums and products of bools and small integers run in the default integer,
as in NumPy; with the attribute `dtype` they cast each element to it on the way. They take the value to start from
as a second operand (the last one of `reduce_sum_where`). The order of a float sum follows from the operand's layout:
see `reduction_plan`. The gradient of a maximum is shared equally among ties, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import AxisError, DTypeError, ShapeError
from jitgraph.ir.opdef import Attrs, Infer, Signature, Trait
from jitgraph.ir.types import Shape, TensorType, elementwise_layout
from jitgraph.ops.families import (
    PURE,
    define,
    dtype_of,
    expand,
    fresh_layout,
    has_half,
    has_half_or_complex,
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


def reduced_type(
    x: TensorType, axes: Sequence[int], keepdims: bool, dtype: np.dtype, mask: TensorType | None = None
) -> TensorType:
    """The type of a reduction's result: the kept axes keep their order in memory, as in NumPy (that of `mask` counts).

    Raises:
        AxisError: an axis is out of range.
        UnsupportedDTypeError: it is of a dtype that nothing is computed in.
    """
    require_supported("reduction", (dtypes.native(dtype),))
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
    if x.layout.is_c and mask is None:
        return TensorType(dtype, shape)
    order = [number[k] for k in elementwise_layout(x.ndim, (x,) if mask is None else (x, mask)).order if k in number]
    return TensorType(dtype, shape, "array", fresh_layout(order, shape))


def _by_numpy_in(name: str) -> Callable[[Sequence[TensorType]], bool]:
    """What NumPy itself reduces: complex numbers go by their parts in sums, by their truth in any and all."""
    if name in ("reduce_any", "reduce_all"):
        return has_half
    if name == "reduce_sum":  # from real to complex numbers, or back, NumPy takes buffers of its own
        return lambda types: has_half(types) or _casts_complex(types[0].dtype, types[-1].dtype)
    return has_half_or_complex


def _casts_complex(x: np.dtype, total: np.dtype) -> bool:
    return x != total and "c" in (x.kind, total.kind)


def _worst(dtype: np.dtype, *, low: bool) -> Any:
    """The extreme of nothing: the front end asks for it only to combine it with a value to start from."""
    if dtype.kind in "fc":
        return dtype.type(-np.inf if low else np.inf)
    if dtype.kind == "b":
        return np.bool_(not low)
    info = np.iinfo(dtype)
    return dtype.type(info.min if low else info.max)


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
        x, *initial = types
        cast_to = attrs.get("dtype")
        dtype = accumulator_dtype(name, ufunc, x.dtype) if cast_to is None else cast_to
        result = reduced_type(x, attrs["axes"], attrs.get("keepdims", False), dtype)
        return Signature((None if cast_to is not None else dtype, *(dtype for _ in initial)), (result,))

    def evaluate(x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        nothing = ufunc.identity is None and any(np.shape(x)[k] == 0 for k in axes)
        given = {"initial": _worst(np.asarray(x).dtype, low=ufunc is np.maximum)} if nothing else {}
        return ufunc.reduce(x, axis=tuple(axes), keepdims=keepdims, **given)

    def evaluate_from(
        x: Any, initial: Any = None, *, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None
    ) -> Any:
        given = {} if initial is None else {"initial": np.asarray(initial)[()]}
        return ufunc.reduce(x, axis=tuple(axes), keepdims=keepdims, dtype=dtype, **given)

    additive = ufunc in (np.add, np.multiply)
    define(
        name,
        doc,
        infer,
        evaluate_from if additive else evaluate,
        vjp=vjp,
        jvp=jvp,
        traits=REDUCTION,
        numpy=(*numpy, ufunc.reduce),
        linear=linear,
        arity=-1 if additive else 1,
        by_numpy=_by_numpy_in(name),
    )


def _whole(b: Any, ct: Any) -> Any:
    """The cotangent of the value that every result starts from."""
    rank = len(shape_of(ct))
    return b.reduce_sum(ct, axes=tuple(range(rank)), keepdims=False) if rank else ct


def _sum_vjp(
    b: Any, ct: Any, y: Any, x: Any, *initial: Any, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None
) -> tuple[Any, ...]:
    return (expand(b, ct, shape_of(x), axes, keepdims), *(_whole(b, ct) for _ in initial))


def _prod_slope(b: Any, y: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The product of all other elements: y / x, or where x is the only zero the product of the rest."""
    shape = shape_of(x)
    zero = b.eq(x, 0.0)
    filled = b.where(zero, 1.0, x)
    zeros = expand(b, b.reduce_sum(zero, axes=axes, keepdims=keepdims), shape, axes, keepdims)
    rest = expand(b, b.reduce_prod(filled, axes=axes, keepdims=keepdims), shape, axes, keepdims)
    alone = b.logical_and(zero, b.eq(zeros, 1))
    return b.where(alone, rest, b.where(zero, 0.0, b.div(expand(b, y, shape, axes, keepdims), filled)))


def _plain_prod(
    b: Any, x: Any, initial: Sequence[Any], axes: tuple[int, ...], keepdims: bool, dtype: Any
) -> tuple[Any, Any]:
    """`x` in the dtype of the product, and its product without the value to start from (None: that is `y`)."""
    if dtype is not None:
        x = b.cast(x, dtype=dtype)
    return x, b.reduce_prod(x, axes=axes, keepdims=keepdims) if initial else None


def _prod_vjp(
    b: Any, ct: Any, y: Any, x: Any, *initial: Any, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None
) -> tuple[Any, ...]:
    x, own = _plain_prod(b, x, initial, axes, keepdims, dtype)
    slope = _prod_slope(b, y if own is None else own, x, axes, keepdims)
    starts = tuple(_whole(b, b.mul(ct, own)) for _ in initial)
    inner = b.mul(ct, initial[0]) if initial else ct
    return (b.mul(expand(b, inner, shape_of(x), axes, keepdims), slope), *starts)


def _prod_jvp(
    b: Any,
    tangents: Any,
    y: Any,
    x: Any,
    *initial: Any,
    axes: tuple[int, ...],
    keepdims: bool = False,
    dtype: Any = None,
) -> Any:
    x, own = _plain_prod(b, x, initial, axes, keepdims, dtype)
    total = None
    if tangents[0] is not None:
        slope = _prod_slope(b, y if own is None else own, x, axes, keepdims)
        total = b.reduce_sum(b.mul(tangents[0], slope), axes=axes, keepdims=keepdims)
        total = b.mul(total, initial[0]) if initial else total
    if initial and tangents[1] is not None:
        part = b.mul(own, tangents[1])
        total = part if total is None else b.add(total, part)
    return total


def _masked_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, mask, *initial = types
    cast_to = attrs.get("dtype")
    dtype = accumulator_dtype("reduce_sum_where", np.add, x.dtype) if cast_to is None else cast_to
    if mask.shape != x.shape:
        raise ShapeError(f"the mask has shape {mask.shape}, the array {x.shape}")
    result = reduced_type(x, attrs["axes"], attrs.get("keepdims", False), dtype, mask)
    return Signature((None if cast_to is not None else dtype, dtypes.BOOL, *(dtype for _ in initial)), (result,))


def _masked_sum(
    x: Any, mask: Any, initial: Any = None, *, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None
) -> Any:
    given = {} if initial is None else {"initial": np.asarray(initial)[()]}
    return np.add.reduce(x, axis=tuple(axes), keepdims=keepdims, dtype=dtype, where=mask, **given)


def _masked_sum_vjp(
    b: Any, ct: Any, y: Any, x: Any, *given: Any, axes: tuple[int, ...], keepdims: bool = False, dtype: Any = None
) -> tuple[Any, ...]:
    mask, *initial = given
    return (
        b.where(mask, expand(b, ct, shape_of(x), axes, keepdims), 0.0),
        None,
        *(_whole(b, ct) for _ in initial),
    )


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
define(
    "reduce_sum_where",
    "Sum over axes of the elements under a mask, in NumPy's order: stretch by stretch.",
    _masked_infer,
    _masked_sum,
    vjp=_masked_sum_vjp,
    traits=REDUCTION,
    linear=True,
    arity=-1,
    by_numpy=has_half_or_complex,
)


def _sum_of_parts(x: Any, initial: Any = None, *, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    """The real part of the sum of complex numbers that lie as `x` does."""
    flips = tuple(slice(None, None, -1 if step < 0 else 1) for step in x.strides)
    once = tuple(slice(0, 1 if step == 0 else None) for step in x.strides)
    numbers = x[flips][once].astype(dtypes.complex_of(x.dtype), order="K")
    wide = np.broadcast_to(numbers, x.shape)[flips]
    given = {} if initial is None else {"initial": numbers.dtype.type(np.asarray(initial)[()])}
    return np.add.reduce(wide, axis=tuple(axes), keepdims=keepdims, **given).real


def _parts_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, *initial = types
    result = reduced_type(x, attrs["axes"], attrs.get("keepdims", False), x.dtype)
    return Signature((None, *(x.dtype for _ in initial)), (result,))


define(
    "reduce_sum_parts",
    "Sum over axes of the real (or imaginary) parts of complex numbers, in NumPy's order for these.",
    _parts_infer,
    _sum_of_parts,
    vjp=_sum_vjp,
    traits=REDUCTION,
    linear=True,
    arity=-1,
)
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
        by_numpy=has_half_or_complex,
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
    by_numpy=has_half_or_complex,
)
