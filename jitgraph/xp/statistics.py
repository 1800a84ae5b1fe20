"""Means, variances, averages, and the reductions that leave out NaN, in NumPy's steps."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.dtypes import native
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.modes import TraceMode
from jitgraph.sizes import shape_text
from jitgraph.tensor import Mode, Tensor, apply, dim_tensor, lift
from jitgraph.xp.accumulate import cumprod, cumsum
from jitgraph.xp.complexes import conjugate_of, imag_of, real_of
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axes_of,
    cast,
    deliver,
    no_bool,
    numpy_function,
    product,
    sizes_agree,
    tensor,
)
from jitgraph.xp.elementwise import divide, multiply, sqrt, square, subtract
from jitgraph.xp.elementwise import where as where_
from jitgraph.xp.reductions import (
    MISSING,
    argmax,
    argmin,
    check_target,
    given,
    loop_dtype,
    mask_for,
    operand_of,
    prod,
    sum,
    target_of,
)
from jitgraph.xp.shape import broadcast_to, reshape_to, transpose

# --- mean, var, std: the sequence of operations of numpy._core._methods


def _count(x: Tensor, axes: Sequence[int], mask: Any, keep: bool) -> Any:
    """How many elements each result is made of: a number, a size, or an array under a mask."""
    wide = mask_for(mask, x)
    if wide is None:
        return product([x.type.shape[k] for k in axes])
    return sum(wide, axis=tuple(axes), dtype=np.intp, keepdims=keep)


def _divide_by(total: Tensor, count: Any, dtype: Any) -> Tensor:
    """total / count by an `intp` scalar or array, cast to `dtype`: float32 is divided in float64, as in NumPy."""
    if type(count) is Tensor and count.type.ndim > 1 and count.type.layout != total.type.layout:
        return divide(total, count, out=total, casting="unsafe")  # type: ignore[no-any-return]  # its order stays
    result = divide(total, _divisor(total, count))
    return result if result.type.dtype == dtype else cast(result, dtype)  # type: ignore[no-any-return]


@numpy_function(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = MISSING, *, where: Any = MISSING
) -> Any:
    x = operand_of(a)
    keep = bool(keepdims) if given(keepdims) else False
    axes = axes_of(no_bool(axis), x.type.ndim, "mean")
    count = _count(x, axes, where, keep)
    check_target(out, "add", x.type.ndim if keep else x.type.ndim - len(axes), keep)
    half = False
    if dtype is None:
        if x.type.dtype.kind in "iub":
            dtype = np.dtype(np.float64)
        elif native(x.type.dtype) == np.float16:
            dtype, half = np.dtype(np.float32), out is None
    if _kept_in(out, x, dtype) is not None:
        sum(x, tuple(axes), dtype, out, keep, MISSING, where)
        return _divide_in_place(out, count)
    if target_of(out) is not None:
        dtype = loop_dtype(np.add, x, dtype, out)
    total = sum(x, axis=tuple(axes), dtype=dtype, keepdims=keep, where=where)
    result = _divide_by(total, count, total.type.dtype)
    if half:
        result = cast(result, np.float16)
    return deliver(result, out, "unsafe")


def _kept_in(out: Any, x: Tensor, dtype: Any) -> Tensor | None:
    """The `out` of another dtype than the sum's: NumPy then computes each step in it."""
    target = target_of(out)
    return target if target is not None and target.type.dtype != loop_dtype(np.add, x, dtype, out) else None


def _divide_in_place(out: Any, count: Any) -> Tensor:
    target = target_of(out)
    assert target is not None
    return divide(target, _divisor(target, count), out=target, casting="unsafe")  # type: ignore[no-any-return]


def _divisor(total: Tensor, count: Any) -> Any:
    if isinstance(count, int):
        return np.intp(count)
    return count if type(count) is Tensor else as_kind(dim_tensor(total._storage.mode, count), "np_scalar")


def variance(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, mean_given: Any, correction: Any
) -> Tensor:
    """NumPy's `_var`: the mean with kept axes, differences, their squares, the sum, the division."""
    x = operand_of(a)
    keep = bool(keepdims) if given(keepdims) else False
    axes = axes_of(no_bool(axis), x.type.ndim, "var")
    ddof = _delta(ddof, correction)
    check_target(out, "add", x.type.ndim if keep else x.type.ndim - len(axes), keep)
    count = _count(x, axes, where, keep)
    if dtype is None and x.type.dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    if given(mean_given):
        center = tensor(mean_given, x._storage.mode)
    else:
        total = sum(x, axis=tuple(axes), dtype=dtype, keepdims=True, where=where)
        kept_count = _count(x, axes, where, True)
        center = _divide_by(total, kept_count, total.type.dtype)
    difference = subtract(x, center)
    if difference.type.dtype.kind == "c":  # |z|^2, without a fused product
        squares = EXPORTS["add"](square(real_of(difference)), square(imag_of(difference)))
    else:
        squares = square(difference) if difference.type.dtype.kind == "f" else multiply(difference, difference)
    degrees = _degrees(x, count, ddof)
    if _kept_in(out, squares, dtype) is not None:
        sum(squares, tuple(axes), dtype, out, keep, MISSING, where)
        return _divide_in_place(out, degrees)
    if target_of(out) is not None:
        dtype = loop_dtype(np.add, squares, dtype, out)
    total = sum(squares, axis=tuple(axes), dtype=dtype, keepdims=keep, where=where)
    return deliver(_divide_by(total, degrees, total.type.dtype), out, "unsafe")  # type: ignore[no-any-return]


def _delta(ddof: Any, correction: Any) -> Any:
    if not given(correction):
        return ddof
    if type(ddof) is Tensor or ddof != 0:
        raise errors.ShapeError("ddof and correction can't be provided simultaneously.")
    return correction


def _root(found: Tensor, out: Any) -> Tensor:
    """The square root of a variance, which already lies in `out`."""
    target = target_of(out)
    return sqrt(found) if target is None else sqrt(target, out=target)  # type: ignore[no-any-return]


def _degrees(x: Tensor, count: Any, ddof: Any) -> Any:
    """max(count - ddof, 0)."""
    if type(count) is Tensor:
        return EXPORTS["maximum"](subtract(count, ddof), 0)
    if type(ddof) is float and ddof.is_integer():
        ddof = int(ddof)
    mode = x._storage.mode
    if isinstance(count, int) and not isinstance(ddof, Tensor):
        return builtins.max(count - ddof, 0)
    if type(ddof) is int:
        rest: DimLike = count - ddof
        return rest if mode.decide(">=", rest, 0) else 0
    number = as_kind(tensor(dim_tensor(mode, count), mode), "np_scalar")
    return EXPORTS["maximum"](subtract(number, ddof), 0)


@numpy_function(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = MISSING, *,
    where: Any = MISSING, mean: Any = MISSING, correction: Any = MISSING,
) -> Any:  # fmt: skip
    return variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@numpy_function(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = MISSING, *,
    where: Any = MISSING, mean: Any = MISSING, correction: Any = MISSING,
) -> Any:  # fmt: skip
    return _root(variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction), out)


@numpy_function(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = MISSING) -> Any:
    x = operand_of(a)
    keep = bool(keepdims) if given(keepdims) else False
    mode = x._storage.mode
    if weights is None:
        axis = axis if axis is None else axes_of(axis, x.type.ndim, "average")
        result = mean(x, axis, keepdims=keep)
        _some(mode, product(result.type.shape))
        if not returned:
            return result
        count = product([x.type.shape[k] for k in axes_of(axis, x.type.ndim)])
        scale: Any = tensor(dim_tensor(mode, count), mode)
        scale = cast(as_kind(scale, "np_scalar"), result.type.dtype)
        return result, _spread(scale, result)
    w = _weights(x, tensor(weights, mode), axis)
    dtypes = (x.type.dtype, w.type.dtype, *((np.float64,) if x.type.dtype.kind in "iub" else ()))
    dtype = np.result_type(*dtypes)
    scale = sum(w, axis=axis, dtype=dtype, keepdims=keep)
    if isinstance(mode, TraceMode):
        some = EXPORTS["all"](EXPORTS["not_equal"](scale, 0))
        mode.check(lift(mode, some), "ZeroDivisionError", "Weights sum to zero, can't be normalized")
    result = divide(sum(multiply(x, w, dtype=dtype), axis=axis, keepdims=keep), scale)
    return (result, _spread(scale, result)) if returned else result


def _some(mode: Mode, size: DimLike) -> None:
    """NumPy divides the number of elements by that of the averages.

    Raises:
        ZeroDivisionError: there are none of these.
    """
    try:
        if mode.decide("==", size, 0):
            raise ZeroDivisionError("division by zero")
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("ne", size, 0), "ZeroDivisionError", "division by zero")


def _spread(scale: Tensor, result: Tensor) -> Tensor:
    """The sum of weights in the shape of the averages."""
    if not result.type.shape or scale.type.shape == result.type.shape:
        return scale
    return EXPORTS["copy"](broadcast_to(array_tensor(scale), result.type.shape))  # type: ignore[no-any-return]


def _weights(x: Tensor, w: Tensor, axis: Any) -> Tensor:
    """Weights in a shape that broadcasts against `x`: those of the axes named stand along them."""
    mode, shape = x._storage.mode, x.type.shape
    message = "Shape of weights must be consistent with shape of a along specified axis."
    unequal = "Axis must be specified when shapes of a and weights differ."
    text, error = (unequal, "TypeError") if axis is None else (message, "ValueError")
    if w.type.ndim == x.type.ndim and all(
        sizes_agree(mode, p, q, text, error=error) for p, q in zip(w.type.shape, shape, strict=True)
    ):
        return w
    if axis is None:
        raise errors.DTypeError(unequal)
    axes = axes_of(axis, x.type.ndim, "average")
    if w.type.ndim != len(axes) or not all(
        sizes_agree(mode, p, shape[k], message) for p, k in zip(w.type.shape, axes, strict=True)
    ):
        raise errors.ShapeError(f"{message[:-1]}: {shape_text(w.type.shape)}")
    w = transpose(array_tensor(w), tuple(int(k) for k in np.argsort(axes)))
    return reshape_to(w, tuple(d if k in axes else 1 for k, d in enumerate(shape)))


# --- without NaN: the sequence of operations of numpy.lib._nanfunctions_impl


def _without_nan(x: Tensor, value: float) -> tuple[Tensor, Tensor | None]:
    """`x` with `value` for NaN, and where NaN was; the latter None for what has no NaN."""
    if x.type.dtype.kind not in "fc":
        return x, None
    if x.type.layout.zero:  # NumPy fills a copy, in which broadcast axes are the innermost ones
        order = x.type.layout.order
        back = tuple(int(k) for k in np.argsort(order))
        filled, mask = _without_nan(apply(R("copy"), transpose(x, order), order="C"), value)
        assert mask is not None
        return transpose(filled, back), transpose(mask, back)
    mask = EXPORTS["isnan"](x)
    filled = _as_swapped(where_(mask, x.type.dtype.type(value), x), x)
    return (filled if x.type.ndim else as_kind(filled, x.type.kind)), mask


def _as_swapped(made: Tensor, x: Tensor) -> Tensor:
    """What NumPy makes in a copy of `x` has the byte order of `x`: sums of it go through a buffer."""
    return made if x.type.dtype.isnative else cast(made, made.type.dtype.newbyteorder())


def _floats_only(x: Tensor, dtype: Any, out: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise errors.DTypeError("If a is inexact, then dtype must be inexact")
    if type(out) is Tensor and out.type.dtype.kind not in "fc":
        raise errors.DTypeError("If a is inexact, then out must be inexact")


@numpy_function(np.nansum)
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = MISSING, initial: Any = MISSING,
    where: Any = MISSING,
) -> Any:  # fmt: skip
    x, _ = _without_nan(operand_of(a), 0)
    return sum(x, axis, dtype, out, keepdims, initial, where)


@numpy_function(np.nanprod)
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = MISSING, initial: Any = MISSING,
    where: Any = MISSING,
) -> Any:  # fmt: skip
    x, _ = _without_nan(operand_of(a), 1)
    return prod(x, axis, dtype, out, keepdims, initial, where)


@numpy_function(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumsum(_without_nan(operand_of(a), 0)[0], axis, dtype, out)


@numpy_function(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumprod(_without_nan(operand_of(a), 1)[0], axis, dtype, out)


def _nan_extreme(ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    from jitgraph.xp.accumulate import reduce_by

    keep = bool(keepdims) if given(keepdims) else False
    return reduce_by(ufunc, a, axis, None, out, keep, initial, True if where is MISSING else where)


@numpy_function(np.nanmax)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING, initial: Any = MISSING, where: Any = MISSING
) -> Any:
    return _nan_extreme(np.fmax, a, axis, out, keepdims, initial, where)


@numpy_function(np.nanmin)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING, initial: Any = MISSING, where: Any = MISSING
) -> Any:
    return _nan_extreme(np.fmin, a, axis, out, keepdims, initial, where)


def _nan_position(position: Any, worst: float, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x, mask = _without_nan(operand_of(a), worst)
    mode = x._storage.mode
    if mask is not None and isinstance(mode, TraceMode):
        some = EXPORTS["logical_not"](EXPORTS["any"](EXPORTS["all"](mask, axis=axis)))
        mode.check(lift(mode, some), "ValueError", "All-NaN slice encountered")
    return position(x, axis, out, keepdims=keepdims)


@numpy_function(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = MISSING) -> Any:
    return _nan_position(argmax, -np.inf, a, axis, out, keepdims)


@numpy_function(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = MISSING) -> Any:
    return _nan_position(argmin, np.inf, a, axis, out, keepdims)


def _present(mask: Tensor, axis: Any, keepdims: Any, where: Any) -> Tensor:
    """How many elements are no NaN."""
    return sum(EXPORTS["logical_not"](mask), axis, np.intp, None, keepdims, MISSING, where)  # type: ignore[no-any-return]


@numpy_function(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = MISSING, *, where: Any = MISSING
) -> Any:
    x, mask = _without_nan(operand_of(a), 0)
    if mask is None:
        return mean(x, axis, dtype, out, keepdims, where=where)
    _floats_only(x, dtype, out)
    count = _present(mask, axis, keepdims, where)
    check_target(out, "add", count.type.ndim, False)
    if _kept_in(out, x, dtype) is not None:
        sum(x, axis, dtype, out, keepdims, MISSING, where)
        return _divide_in_place(out, count)
    if target_of(out) is not None:
        dtype = loop_dtype(np.add, x, dtype, out)
    total = sum(x, axis, dtype, None, keepdims, MISSING, where)
    return deliver(_divide_by(total, count, total.type.dtype), out, "unsafe")


def _nan_variance(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, center: Any, correction: Any
) -> Tensor:
    """NumPy's `nanvar`: NaN counts as zero, and so does its distance from the mean."""
    ddof = _delta(ddof, correction)
    x, mask = _without_nan(operand_of(a), 0)
    if mask is None:
        return variance(x, axis, dtype, out, ddof, keepdims, where, center, MISSING)
    _floats_only(x, dtype, out)
    if given(center):
        middle = tensor(center, x._storage.mode)
    else:
        total = sum(x, axis, dtype, None, True, MISSING, where)
        middle = _divide_by(total, _present(mask, axis, True, where), total.type.dtype)
    away = cast(subtract(x, middle), native(x.type.dtype))
    away = where_(mask, x.type.dtype.type(0), away)
    squares = real_of(multiply(away, conjugate_of(away))) if away.type.dtype.kind == "c" else multiply(away, away)
    squares = _as_swapped(squares, x)
    degrees = subtract(_present(mask, axis, keepdims, where), ddof)
    if _kept_in(out, squares, dtype) is not None:
        sum(squares, axis, dtype, out, keepdims, MISSING, where)
        result = _divide_in_place(out, degrees)
    else:
        if target_of(out) is not None:
            dtype = loop_dtype(np.add, squares, dtype, out)
        total = sum(squares, axis, dtype, None, keepdims, MISSING, where)
        result = _divide_by(total, degrees, total.type.dtype)
    bad = EXPORTS["less_equal"](degrees, 0)
    found = where_(bad, result.type.dtype.type(np.nan), result)
    return deliver(found if result.type.ndim else as_kind(found, result.type.kind), out, "unsafe")  # type: ignore[no-any-return]


@numpy_function(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = MISSING, *,
    where: Any = MISSING, mean: Any = MISSING, correction: Any = MISSING,
) -> Any:  # fmt: skip
    return _nan_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@numpy_function(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = MISSING, *,
    where: Any = MISSING, mean: Any = MISSING, correction: Any = MISSING,
) -> Any:  # fmt: skip
    return _root(_nan_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction), out)
