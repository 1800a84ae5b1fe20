"""Reductions with `axis`, `dtype`, `out`, `keepdims`, `initial`, `where`; mean, var, std in NumPy's steps."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_max
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, apply, dim_tensor, lift
from jitgraph.xp.core import (
    EXPORTS,
    NUMPY_TABLE,
    R,
    array_tensor,
    as_kind,
    axes_of,
    axis_of,
    cast,
    deliver,
    mode_in,
    np_kind,
    numpy_function,
    product,
    tensor,
)
from jitgraph.xp.elementwise import divide, multiply, sqrt, square, subtract
from jitgraph.xp.elementwise import where as where_
from jitgraph.xp.operators import binary
from jitgraph.xp.shape import ravel, reshape_to, stretched

_MISSING = np._NoValue
_EMPTY_REDUCTION = "zero-size array to reduction operation {} which has no identity"


def _operand(a: Any) -> Tensor:
    """The array to reduce; a sequence of Tensors is stacked."""
    x = tensor(a)
    return np_kind(x)  # type: ignore[no-any-return]


def _given(x: Any) -> bool:
    return x is not None and x is not _MISSING


def reduce_with(
    record: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any, name: str
) -> Any:
    """One reduction. `where=` puts the identity in the place of what is left out; `initial` is combined at the end."""
    x = _operand(a)
    axes = () if _is_only_axis(axis, x) else axes_of(axis, x.type.ndim, name)
    keep = bool(keepdims) if _given(keepdims) else False
    if dtype is not None:
        x = cast(x, dtype)
    if where is not True and _given(where):
        neutral = _identity(record, x.type.dtype, initial, name)
        mask = tensor(where, x._storage.mode)
        x = apply(R("where"), mask, x, neutral)
    elif record in ("reduce_max", "reduce_min", "argmax", "argmin") and not _given(initial):
        _require_elements(x, axes, name)
    if not x.type.ndim:
        result: Tensor = (
            np_kind(as_kind(x, "np_scalar"))
            if record not in ("reduce_any", "reduce_all")
            else EXPORTS["not_equal"](x, 0)
        )
        if record in ("reduce_sum", "reduce_prod"):
            result = apply(R(record), array_tensor(x), axes=(), keepdims=False)
    else:
        if record == "reduce_sum" and x.type.ndim > 1 and x.type.dtype.kind == "f":
            _settle_ones(x)
        result = apply(R(record), x, axes=tuple(sorted(axes)), keepdims=keep)
    if _given(initial):
        combine = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "maximum", "reduce_min": "minimum"}[record]
        result = apply(R(combine), result, cast(tensor(initial, x._storage.mode), result.type.dtype))
    return deliver(result, out)


def _settle_ones(x: Tensor) -> None:
    """Guard which derived sizes (`n - 1`) are 1: NumPy's order of summation leaves such axes out."""
    mode = x._storage.mode
    for d in x.type.shape:
        if not isinstance(d, int):
            with contextlib.suppress(Undecided):
                mode.decide("!=", d, 1)


def _is_only_axis(axis: Any, x: Tensor) -> bool:
    """`ufunc.reduce` takes the axes 0 and -1 of an array without axes."""
    return not x.type.ndim and isinstance(axis, (int, np.integer)) and axis in (0, -1)


def _identity(record: str, dtype: np.dtype, initial: Any, name: str) -> Any:
    """What leaves a reduction unchanged."""
    if record == "reduce_sum":
        return dtype.type(-0.0 if dtype.kind == "f" else 0)
    if record == "reduce_prod":
        return dtype.type(1)
    if record in ("reduce_any", "reduce_all"):
        return record == "reduce_all" if dtype.kind == "b" else dtype.type(record == "reduce_all")
    if not _given(initial):
        raise errors.ShapeError(
            f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify "
            "'initial'"
        )
    low = record == "reduce_max"
    if dtype.kind == "f":
        return dtype.type(-np.inf if low else np.inf)
    if dtype.kind == "b":
        return not low
    info = np.iinfo(dtype)
    return dtype.type(info.min if low else info.max)


def _require_elements(x: Tensor, axes: Sequence[int], name: str) -> None:
    """Extremes of nothing are an error."""
    mode = x._storage.mode
    count = product([x.type.shape[k] for k in axes])
    message = _EMPTY_REDUCTION.format({"max": "maximum", "min": "minimum"}.get(name, name))
    if name.startswith("arg"):
        message = f"attempt to get {name} of an empty sequence"
    try:
        empty = builtins.any(mode.decide("==", x.type.shape[k], 0) for k in axes)
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("gt", count, 0), "ValueError", message)
        return
    if empty:
        raise errors.ShapeError(
            errors.describe(f"{name}: {message}", mode.locate() if isinstance(mode, TraceMode) else None)
        )


@numpy_function(np.sum)
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _MISSING,
    initial: Any = _MISSING,
    where: Any = _MISSING,
) -> Any:
    return reduce_with("reduce_sum", a, axis, dtype, out, keepdims, initial, where, "sum")


@numpy_function(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _MISSING,
    initial: Any = _MISSING,
    where: Any = _MISSING,
) -> Any:
    return reduce_with("reduce_prod", a, axis, dtype, out, keepdims, initial, where, "prod")


@numpy_function(np.max, np.amax)
def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _MISSING, initial: Any = _MISSING, where: Any = _MISSING
) -> Any:
    return reduce_with("reduce_max", a, axis, None, out, keepdims, initial, where, "max")


@numpy_function(np.min, np.amin)
def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = _MISSING, initial: Any = _MISSING, where: Any = _MISSING
) -> Any:
    return reduce_with("reduce_min", a, axis, None, out, keepdims, initial, where, "min")


EXPORTS["amax"], EXPORTS["amin"] = max, min


@numpy_function(np.any)
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _MISSING, *, where: Any = _MISSING) -> Any:
    return reduce_with("reduce_any", a, axis, None, out, keepdims, None, where, "any")


@numpy_function(np.all)
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _MISSING, *, where: Any = _MISSING) -> Any:
    return reduce_with("reduce_all", a, axis, None, out, keepdims, None, where, "all")


@numpy_function(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    x = tensor(a)
    mask = x if x.type.dtype.kind == "b" else EXPORTS["not_equal"](x, 0)
    count = sum(mask, axis=axis, keepdims=keepdims)
    whole = axis is None and not keepdims and count._storage.mode.name == "trace"
    return as_kind(count, "py_int") if whole and _COUNTS_IN_PYTHON else count


#: NumPy counts all elements as a Python int up to 2.3, as a NumPy scalar since.
_COUNTS_IN_PYTHON = not isinstance(np.count_nonzero(np.zeros(1)), np.generic)


@numpy_function(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _MISSING) -> Any:
    return deliver(subtract(max(a, axis, None, keepdims), min(a, axis, None, keepdims)), out)


# --- mean, var, std: the sequence of operations of numpy._core._methods


def _count(x: Tensor, axes: Sequence[int], mask: Any, keep: bool) -> Any:
    """How many elements each result is made of: a number, a size, or an array under a mask."""
    if not _given(mask) or mask is True:
        return product([x.type.shape[k] for k in axes])
    wide = stretched(array_tensor(mask, x._storage.mode), x.type.shape)
    return sum(wide, axis=tuple(axes), dtype=np.intp, keepdims=keep)


def _divide_by(total: Tensor, count: Any, dtype: Any) -> Tensor:
    """total / count by an `intp` scalar or array, cast to `dtype`: float32 is divided in float64, as in NumPy."""
    if isinstance(count, int):
        divisor: Any = np.intp(count)
    elif type(count) is Tensor:
        divisor = count
    else:
        divisor = as_kind(dim_tensor(total._storage.mode, count), "np_scalar")
    result = divide(total, divisor)
    return result if result.type.dtype == dtype else cast(result, dtype)  # type: ignore[no-any-return]


@numpy_function(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _MISSING, *, where: Any = _MISSING
) -> Any:
    x = _operand(a)
    keep = bool(keepdims) if _given(keepdims) else False
    axes = axes_of(axis, x.type.ndim, "mean")
    count = _count(x, axes, where, keep)
    half = False
    if dtype is None:
        if x.type.dtype.kind in "iub":
            dtype = np.dtype(np.float64)
        elif x.type.dtype == np.float16:
            dtype, half = np.dtype(np.float32), True
    total = sum(x, axis=tuple(axes), dtype=dtype, keepdims=keep, where=where)
    result = _divide_by(total, count, total.type.dtype)
    if half:
        result = cast(result, np.float16)
    return deliver(result, out, "unsafe")


def variance(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, mean_given: Any, correction: Any
) -> Tensor:
    """NumPy's `_var`: the mean with kept axes, differences, their squares, the sum, the division."""
    x = _operand(a)
    keep = bool(keepdims) if _given(keepdims) else False
    axes = axes_of(axis, x.type.ndim, "var")
    if _given(correction):
        ddof = correction
    count = _count(x, axes, where, keep)
    if dtype is None and x.type.dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    if _given(mean_given):
        center = tensor(mean_given, x._storage.mode)
    else:
        total = sum(x, axis=tuple(axes), dtype=dtype, keepdims=True, where=where)
        kept_count = _count(x, axes, where, True)
        center = _divide_by(total, kept_count, total.type.dtype)
    difference = subtract(x, center)
    squares = square(difference) if difference.type.dtype.kind == "f" else multiply(difference, difference)
    total = sum(squares, axis=tuple(axes), dtype=dtype, keepdims=keep, where=where)
    degrees = _degrees(x, count, ddof)
    return _divide_by(total, degrees, total.type.dtype)


def _degrees(x: Tensor, count: Any, ddof: Any) -> Any:
    """max(count - ddof, 0)."""
    if type(count) is Tensor:
        return EXPORTS["maximum"](subtract(count, ddof), 0)
    if isinstance(ddof, float) and ddof.is_integer():
        ddof = int(ddof)
    mode = x._storage.mode
    if isinstance(count, int) and not isinstance(ddof, Tensor):
        return builtins.max(count - ddof, 0)
    if isinstance(ddof, int):
        rest: DimLike = count - ddof
        return rest if mode.decide(">=", rest, 0) else 0
    number = as_kind(tensor(dim_tensor(mode, count), mode), "np_scalar")
    return EXPORTS["maximum"](subtract(number, ddof), 0)


@numpy_function(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _MISSING, *,
    where: Any = _MISSING, mean: Any = _MISSING, correction: Any = _MISSING,
) -> Any:  # fmt: skip
    return deliver(variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction), out, "unsafe")


@numpy_function(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _MISSING, *,
    where: Any = _MISSING, mean: Any = _MISSING, correction: Any = _MISSING,
) -> Any:  # fmt: skip
    return deliver(sqrt(variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)), out, "unsafe")


@numpy_function(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = _MISSING) -> Any:
    x = _operand(a)
    keep = bool(keepdims) if _given(keepdims) else False
    if weights is None:
        result = mean(x, axis, keepdims=keep)
        if returned:
            scale: Any = _count(x, axes_of(axis, x.type.ndim), None, keep)
            full = EXPORTS["full_like"](result, dim_tensor(x._storage.mode, scale))
            return result, full
        return result
    w = tensor(weights, x._storage.mode)
    dtype = (
        np.result_type(x.type.dtype, w.type.dtype, np.float64)
        if x.type.dtype.kind in "iub"
        else np.result_type(x.type.dtype, w.type.dtype)
    )
    if w.type.ndim != x.type.ndim:
        if axis is None:
            raise errors.DTypeError("Axis must be specified when shapes of a and weights differ.")
        k = axis_of(axis, x.type.ndim, "average")
        w = reshape_to(w, tuple(w.type.shape[0] if i == k else 1 for i in range(x.type.ndim)))
        w = stretched(w, x.type.shape)
    scale = sum(w, axis=axis, dtype=dtype, keepdims=keep)
    mode = x._storage.mode
    if isinstance(mode, TraceMode):
        some = EXPORTS["all"](EXPORTS["not_equal"](scale, 0))
        mode.check(lift(mode, some), "ZeroDivisionError", "Weights sum to zero, can't be normalized")
    result = divide(sum(multiply(x, w, dtype=dtype), axis=axis, keepdims=keep), scale)
    return (result, scale) if returned else result


# --- positions, running sums


def _position(record: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = _operand(a)
    keep = bool(keepdims) if _given(keepdims) else False
    if not x.type.ndim:
        x = reshape_to(array_tensor(x), (1,))
    ndim = x.type.ndim
    if axis is None:
        flat = ravel(x)
        _require_elements(flat, (0,), record)
        result = apply(R(record), flat, axis=0, keepdims=False)
        if keep:
            result = reshape_to(array_tensor(result), (1,) * ndim)
    else:
        k = axis_of(axis, ndim, record)
        _require_elements(x, (k,), record)
        result = apply(R(record), x, axis=k, keepdims=keep)
    return deliver(result, out)


@numpy_function(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _MISSING) -> Any:
    return _position("argmax", a, axis, out, keepdims)


@numpy_function(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _MISSING) -> Any:
    return _position("argmin", a, axis, out, keepdims)


def _running(record: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    x = _operand(a)
    if dtype is not None:
        x = cast(x, dtype)
    if axis is None or _is_only_axis(axis, x):
        x, axis = ravel(array_tensor(x)), 0
    return deliver(apply(R(record), x, axis=axis_of(axis, x.type.ndim, record)), out)


@numpy_function(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _running("cumsum", a, axis, dtype, out)


@numpy_function(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _running("cumprod", a, axis, dtype, out)


@numpy_function(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    t = tensor(x)
    if axis is None and t.type.ndim != 1:
        raise errors.ShapeError("For arrays which have more than one dimension ``axis`` argument is required.")
    result = _running("cumsum", t, axis or 0 if axis is None else axis, dtype, None)
    if include_initial:
        k = axis_of(0 if axis is None else axis, result.type.ndim)
        shape = result.type.shape
        zero = EXPORTS["zeros_like"](
            result, shape=tuple(dim_tensor(result._storage.mode, 1 if i == k else d) for i, d in enumerate(shape))
        )
        result = EXPORTS["concatenate"]([zero, result], axis=k)
    return deliver(result, out)


@numpy_function(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = _MISSING, append: Any = _MISSING) -> Any:
    from jitgraph.xp.shape import broadcast_to

    if n == 0:
        return a
    if n < 0:
        raise errors.ShapeError(f"order must be non-negative but got {n}")
    x = array_tensor(a)
    if not x.type.ndim:
        raise errors.ShapeError("diff requires input that is at least one dimensional")
    k = axis_of(axis, x.type.ndim, "diff")
    parts = [x]
    for end, at in ((prepend, 0), (append, len(parts))):
        if end is _MISSING:
            continue
        piece = tensor(end, x._storage.mode)
        if not piece.type.ndim:
            piece = broadcast_to(array_tensor(piece), tuple(1 if i == k else d for i, d in enumerate(x.type.shape)))
        parts.insert(0 if at == 0 else len(parts), piece)
    if len(parts) > 1:
        x = EXPORTS["concatenate"](parts, axis=k)
    combine = EXPORTS["not_equal"] if x.type.dtype.kind == "b" else subtract
    for _ in range(n):
        x = combine(_part(x, k, 1), _part(x, k, 0))
    return x


def _part(x: Tensor, axis: int, start: int) -> Tensor:
    """All but the first (start 1) or the last (start 0) element of an axis."""
    from jitgraph.tensor import view_of

    shape, mode = x.type.shape, x._storage.mode
    size = shape[axis] - 1
    try:
        size = size if mode.decide(">=", size, 0) else 0
    except Undecided:
        size = dim_max(size, 0)
    axes = [AxisMap(0, 1, k) for k in range(len(shape))]
    axes[axis] = AxisMap(start if size != 0 else 0, 1, axis)
    return view_of(x, IndexMap((*shape[:axis], size, *shape[axis + 1 :]), tuple(axes)))


@numpy_function(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    values = array_tensor(y)
    k = axis_of(axis, values.type.ndim, "trapezoid")
    if x is None:
        width: Any = dx
    else:
        points = array_tensor(x, values._storage.mode)
        width = diff(points, axis=-1 if points.type.ndim == 1 else k)
        if points.type.ndim == 1:
            width = reshape_to(width, tuple(width.type.shape[0] if i == k else 1 for i in range(values.type.ndim)))
    pair = EXPORTS["add"](_part(values, k, 1), _part(values, k, 0))
    return sum(divide(multiply(width, pair), 2.0), axis=k)


def _nan_masked(name: str, fill: float) -> None:
    """`nansum`, `nanmax`, ...: the reduction with NaN left out."""
    reduction = EXPORTS[name]

    def body(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _MISSING, initial: Any = _MISSING
    ) -> Any:
        x = tensor(a)
        if x.type.dtype.kind == "f":
            x = where_(EXPORTS["isnan"](x), x.type.dtype.type(fill), x)
        kwargs = {"dtype": dtype} if dtype is not None else {}
        return reduction(x, axis=axis, out=out, keepdims=keepdims, initial=initial, **kwargs)

    body.__name__ = f"nan{name}"
    numpy_function(getattr(np, f"nan{name}"), name=f"nan{name}")(body)


for _name, _fill in (("sum", 0.0), ("prod", 1.0)):
    _nan_masked(_name, _fill)


# --- reduce, accumulate, outer, at of the ufuncs


def _reduce_method(record: str) -> Callable[..., Any]:
    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _MISSING,
        where: Any = True,
    ) -> Any:
        return reduce_with(record, array, axis, dtype, out, keepdims, initial, where, record.split("_")[1])

    return reduce


def _method(ufunc: np.ufunc, name: str, body: Callable[..., Any]) -> None:
    """Register a ufunc's method: NumPy's own for plain operands, `body` for the others."""
    from jitgraph.xp.core import call_numpy

    def function(*args: Any, **kwargs: Any) -> Any:
        mode = mode_in(args) or mode_in(tuple(kwargs.values()))
        if mode is None or (mode.name == "eager" and name != "at"):
            return call_numpy(getattr(ufunc, name), f"{ufunc.__name__}.{name}", args, kwargs, tensors=mode is not None)
        return body(*args, **kwargs)

    function.__name__ = f"{ufunc.__name__}.{name}"
    NUMPY_TABLE[ufunc, name] = function


for _ufunc, _record in (
    (np.add, "reduce_sum"), (np.multiply, "reduce_prod"), (np.maximum, "reduce_max"), (np.minimum, "reduce_min"),
    (np.logical_or, "reduce_any"), (np.logical_and, "reduce_all"),
):  # fmt: skip
    _method(_ufunc, "reduce", _reduce_method(_record))


def _accumulate_method(record: str) -> Callable[..., Any]:
    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        return _running(record, array, axis, dtype, out)

    return accumulate


_method(np.add, "accumulate", _accumulate_method("cumsum"))
_method(np.multiply, "accumulate", _accumulate_method("cumprod"))


def _outer_method(ufunc: np.ufunc) -> Callable[..., Any]:
    def outer(A: Any, B: Any, **kwargs: Any) -> Any:
        mode = mode_in((A, B))
        a, b = array_tensor(A, mode), array_tensor(B, mode)
        return NUMPY_TABLE[ufunc](reshape_to(a, (*a.type.shape, *(1,) * b.type.ndim)), b, **kwargs)

    return outer


for _binary in [u for u in NUMPY_TABLE if isinstance(u, np.ufunc) and u.nin == 2]:
    _method(_binary, "outer", _outer_method(_binary))


def sum_of(items: Any, start: Any = 0) -> Any:
    """Python's `sum` of a sequence with Tensors in it."""
    total = start
    for item in items:
        total = binary("add", total, item) if type(total) is Tensor or type(item) is Tensor else total + item
    return total
