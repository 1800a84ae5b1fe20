"""Folds along an axis: running sums, differences, and `reduce`, `accumulate`, `reduceat`, `outer` of the ufuncs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import dim_max
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, apply, dim_tensor, lift, view_of
from jitgraph.xp.core import (
    EXPORTS,
    NUMPY_TABLE,
    R,
    array_tensor,
    as_kind,
    axes_of,
    axis_of,
    call_numpy,
    cast,
    deliver,
    literal,
    mode_in,
    no_bool,
    np_kind,
    numpy_function,
    tensor,
)
from jitgraph.xp.elementwise import PAIRS, UFUNCS, divide, multiply, subtract
from jitgraph.xp.elementwise import where as where_
from jitgraph.xp.reductions import (
    MISSING,
    REDUCED,
    check_target,
    converted,
    given,
    is_only_axis,
    loop_dtype,
    mask_for,
    operand_of,
    reduce_with,
    reduced_axes,
    require_elements,
    require_shape,
    rounds_between,
    start_value,
    sum,
    target_of,
)
from jitgraph.xp.shape import broadcast_to, ravel, reshape_to


def _running(record: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    x, ufunc = operand_of(a), _RUNNING[record]
    final = loop_dtype(ufunc, x, dtype, out)
    if dtype is not None or out is not None:
        x = converted(x, final)
    if axis is None or is_only_axis(axis, x):
        x, axis = ravel(array_tensor(x)), 0
    k = axis_of(no_bool(axis), x.type.ndim, record)
    _require_target(x, out)
    if final.kind == "b":  # asked for: sums of bools are "or", products "and"
        return deliver(apply(R("scan"), x, function=_OF_BOOLS[ufunc], axis=k), out, "unsafe")
    return deliver(cast(apply(R(record), x, axis=k), final), out, "unsafe")


_RUNNING = {"cumsum": np.add, "cumprod": np.multiply}
_OF_BOOLS: dict[Any, str] = {np.add: "logical_or", np.multiply: "logical_and"}


@numpy_function(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _running("cumsum", a, axis, dtype, out)


@numpy_function(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _running("cumprod", a, axis, dtype, out)


def _cumulative(record: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> Any:
    """`cumulative_sum` and `cumulative_prod`; `include_initial` puts the value of nothing in front."""
    t = array_tensor(x)
    if not t.type.shape:
        t = reshape_to(t, (1,))
    if axis is None:
        if t.type.ndim != 1:
            raise errors.ShapeError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    result = _running(record, t, axis, dtype, None)
    if include_initial:
        k = axis_of(axis, result.type.ndim)
        mode = result._storage.mode
        shape = tuple(dim_tensor(mode, 1 if i == k else d) for i, d in enumerate(result.type.shape))
        make = EXPORTS["zeros_like" if record == "cumsum" else "ones_like"]
        result = EXPORTS["concatenate"]([make(result, shape=shape), result], axis=k)
    return deliver(result, out, "unsafe")


@numpy_function(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative("cumsum", x, axis, dtype, out, include_initial)


@numpy_function(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative("cumprod", x, axis, dtype, out, include_initial)


@numpy_function(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = MISSING, append: Any = MISSING) -> Any:
    if type(n) is Tensor:  # an argument's value is baked in
        n = operator.index(n)
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
        if end is MISSING:
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


@numpy_function(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    mode = mode_in((ary, to_end, to_begin))
    x = ravel(array_tensor(ary, mode))
    between = subtract(_part(x, 0, 1), _part(x, 0, 0))
    parts = []
    for end, name in ((to_begin, "to_begin"), (None, ""), (to_end, "to_end")):
        if not name:
            parts.append(between)
        elif end is not None:
            piece = array_tensor(end, mode)
            if not np.can_cast(piece.type.dtype, x.type.dtype, casting="same_kind"):
                raise errors.DTypeError(
                    f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
                )
            parts.append(cast(ravel(piece), x.type.dtype))
    return parts[0] if len(parts) == 1 else EXPORTS["concatenate"](parts)


# --- reduce, accumulate, reduceat, outer of the ufuncs

_BITS = {np.bitwise_and: "reduce_all", np.bitwise_or: "reduce_any"}
_KINDS = {ufunc: record for record, ufunc in REDUCED.items()}


def reduce_by(
    ufunc: np.ufunc, array: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """`ufunc.reduce`: by an operator of its own for sums, products, extremes and truths, else element by element."""
    record = _KINDS.get(ufunc)
    if record is not None:
        return reduce_with(record, array, axis, dtype, out, keepdims, initial, where, ufunc.__name__)
    x = operand_of(array)
    plain = where is True and initial is MISSING and dtype is None and out is None
    if ufunc in _BITS and x.type.dtype.kind == "b" and plain:
        return reduce_with(_BITS[ufunc], x, axis, None, None, keepdims, initial, where, ufunc.__name__)
    if ufunc in (np.fmax, np.fmin) and plain and x.type.dtype.kind != "c":
        return _fmax(ufunc, x, axis, keepdims)
    return _fold(ufunc, x, axis, dtype, out, keepdims, initial, where)


def _fmax(ufunc: np.ufunc, x: Tensor, axis: Any, keepdims: Any) -> Any:
    """The extreme of what is no NaN: NaN counts as the worst value, unless there is nothing else."""
    low = ufunc is np.fmax
    record = "reduce_max" if low else "reduce_min"
    if x.type.dtype.kind != "f" or not x.type.ndim:
        return reduce_with(record, x, axis, None, None, keepdims, MISSING, True, ufunc.__name__)
    axes = axes_of(no_bool(axis), x.type.ndim, ufunc.__name__)
    require_elements(x, axes, ufunc.__name__)
    mask = EXPORTS["isnan"](x)
    kind = x.type.dtype.type
    attrs = {"axes": tuple(sorted(axes)), "keepdims": bool(keepdims)}
    best = apply(R(record), where_(mask, kind(-np.inf if low else np.inf), x), **attrs)
    found = where_(apply(R("reduce_all"), mask, **attrs), kind(np.nan), best)
    return found if best.type.ndim else as_kind(found, best.type.kind)


def _fold(ufunc: np.ufunc, x: Tensor, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    axes = reduced_axes(axis, x, ufunc.__name__)
    if len(axes) > 1 and not _reorderable(ufunc):
        raise errors.ShapeError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    mask = mask_for(where, x)
    starts = given(initial)
    if mask is not None and ufunc.identity is None and not starts:
        raise errors.ShapeError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
            "specify 'initial'"
        )
    check_target(out, ufunc.__name__, x.type.ndim if keepdims else x.type.ndim - len(axes), bool(keepdims))
    found = loop_dtype(ufunc, x, dtype, out)
    x = converted(x, found)
    if not x.type.ndim:
        x, axes, keepdims = reshape_to(array_tensor(x), (1,)), (0,), False
        mask = None if mask is None else reshape_to(mask, (1,))
    if not starts and ufunc.identity is None:
        require_elements(x, axes, ufunc.__name__)
    kept = rounds_between(ufunc, out, found)
    if ufunc in (np.fmax, np.fmin) and not starts and found.kind != "c" and kept is None:
        initial = x.type.dtype.type(np.nan) if found.kind == "f" else _worst(found, low=ufunc is np.fmax)
        starts = True
    if not axes and not starts:  # nothing is combined
        return deliver(apply(R("reduce_max"), x, axes=(), keepdims=bool(keepdims)), out, "unsafe")
    operands = [x]
    if starts or mask is not None:
        first = initial if starts else ufunc.identity
        operands.append(start_value(first, x, found))
    if mask is not None:
        operands.append(mask)
    attrs: dict[str, Any] = {"function": UFUNCS[ufunc], "axes": tuple(sorted(axes)), "keepdims": bool(keepdims)}
    if kept is not None:
        attrs.update(into=kept, by_numpy=True)
    elif ufunc in _UNLIKE_FOLDS:
        attrs["by_numpy"] = True
    return deliver(apply(R("fold"), *operands, **attrs), out, "unsafe")


def _worst(dtype: np.dtype, *, low: bool) -> Any:
    if dtype.kind == "b":
        return np.bool_(not low)
    info = np.iinfo(dtype)
    return dtype.type(info.min if low else info.max)


#: Ufuncs whose vector loops in NumPy combine each element with the first one alone, on some CPUs.
_UNLIKE_FOLDS = frozenset((np.arctan2, np.power))
#: Ufuncs whose elements NumPy combines in any order; others take one axis.
_ANY_ORDER = frozenset((np.fmax, np.fmin))


def _reorderable(ufunc: np.ufunc) -> bool:
    return ufunc.identity is not None or ufunc in _ANY_ORDER


def _require_target(x: Tensor, out: Any) -> None:
    target = target_of(out)
    if target is not None:
        require_shape(x._storage.mode, target, x.type.shape, "provided out is the wrong size for the accumulation.")


def accumulate_by(ufunc: np.ufunc, array: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """`ufunc.accumulate`."""
    x = operand_of(array)
    if not x.type.ndim:
        raise errors.DTypeError("cannot accumulate on a scalar")
    if axis is None and x.type.ndim == 1:
        axis = 0
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    if axis is None or isinstance(axis, tuple):
        raise errors.ShapeError("accumulate does not allow multiple axes")
    if ufunc in (np.add, np.multiply):
        return _running("cumsum" if ufunc is np.add else "cumprod", x, axis, dtype, out)
    x = converted(x, loop_dtype(ufunc, x, dtype, out))
    _require_target(x, out)
    k = axis_of(no_bool(axis), x.type.ndim, f"{ufunc.__name__}.accumulate")
    made = apply(R("scan"), x, function=UFUNCS[ufunc], axis=k)
    return deliver(made, out, "unsafe")


def reduceat_by(ufunc: np.ufunc, array: Any, indices: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """`ufunc.reduceat`; starts are checked before anything is computed."""
    mode = mode_in((array, indices))
    x = np_kind(tensor(array, mode))
    if not x.type.ndim:
        raise errors.DTypeError("cannot reduceat on a scalar")
    k = axis_of(no_bool(axis), x.type.ndim, f"{ufunc.__name__}.reduceat")
    if isinstance(indices, (list, tuple)) and mode_in(indices) is None:
        starts = literal(x._storage.mode, np.asarray(indices).astype(np.intp))
    else:
        starts = array_tensor(indices, mode)
    if starts.type.ndim != 1:
        raise errors.ShapeError("the indices of reduceat must have one dimension")
    if starts.type.dtype.kind not in "iub":
        raise errors.DTypeError(
            f"Cannot cast array data from dtype('{starts.type.dtype}') to dtype('int64') according to the rule 'safe'"
        )
    starts = cast(starts, np.intp)
    size = x.type.shape[k]
    if isinstance(mode, TraceMode):
        fits = EXPORTS["logical_and"](
            EXPORTS["greater_equal"](starts, 0), EXPORTS["less"](starts, dim_tensor(mode, size))
        )
        message = f"index {{0}} out-of-bounds in {ufunc.__name__}.reduceat [0, {{1}})"
        mode.check(lift(mode, fits), "IndexError", message, lift(mode, starts), size)
    final = loop_dtype(ufunc, x, dtype, out)
    x = converted(x, final)
    function = _OF_BOOLS.get(ufunc, UFUNCS[ufunc]) if final.kind == "b" else UFUNCS[ufunc]
    attrs: dict[str, Any] = {"function": function, "axis": k, **({"by_numpy": True} if ufunc in _UNLIKE_FOLDS else {})}
    return deliver(cast(apply(R("reduceat"), x, starts, **attrs), final), out, "unsafe")


def _method(ufunc: np.ufunc, name: str, body: Callable[..., Any]) -> None:
    """Register a ufunc's method: NumPy's own for plain operands, `body` for the others."""

    def function(*args: Any, **kwargs: Any) -> Any:
        mode = mode_in(args) or mode_in(tuple(kwargs.values()))
        if mode is None or mode.name == "eager":
            return call_numpy(getattr(ufunc, name), f"{ufunc.__name__}.{name}", args, kwargs, tensors=mode is not None)
        return body(*args, **kwargs)

    function.__name__ = f"{ufunc.__name__}.{name}"
    NUMPY_TABLE[ufunc, name] = function


def _methods(ufunc: np.ufunc) -> None:
    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = MISSING,
        where: Any = True,
    ) -> Any:
        return reduce_by(ufunc, array, axis, dtype, out, keepdims, initial, where)

    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        return accumulate_by(ufunc, array, axis, dtype, out)

    def reduceat(array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        return reduceat_by(ufunc, array, indices, axis, dtype, out)

    _method(ufunc, "reduce", reduce)
    _method(ufunc, "accumulate", accumulate)
    _method(ufunc, "reduceat", reduceat)


def _outer_method(ufunc: np.ufunc) -> Callable[..., Any]:
    def outer(A: Any, B: Any, /, **kwargs: Any) -> Any:
        mode = mode_in((A, B))
        a, b = tensor(A, mode), tensor(B, mode)
        if a.type.ndim or b.type.ndim:
            a, b = np_kind(a), np_kind(b)
        if b.type.ndim:
            a = reshape_to(array_tensor(a), (*a.type.shape, *(1,) * b.type.ndim))
        return NUMPY_TABLE[ufunc](a, b, **kwargs)

    return outer


for _ufunc in UFUNCS:
    if _ufunc.nin == 2 and _ufunc.nout == 1:
        _methods(_ufunc)
for _ufunc in (*UFUNCS, *PAIRS):
    if _ufunc.nin == 2:
        _method(_ufunc, "outer", _outer_method(_ufunc))
