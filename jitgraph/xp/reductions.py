"""Reductions with `axis`, `dtype`, `out`, `keepdims`, `initial`, `where`; positions of extremes."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode
from jitgraph.tensor import Mode, Tensor, apply, require_output, view_of
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axes_of,
    axis_of,
    cast,
    deliver,
    mask_of,
    no_bool,
    np_kind,
    numpy_function,
    product,
    sizes_agree,
    tensor,
)
from jitgraph.xp.elementwise import subtract
from jitgraph.xp.shape import ravel, reshape_to, stretched

MISSING = np._NoValue
_EMPTY_REDUCTION = "zero-size array to reduction operation {} which has no identity"
#: The ufunc that each record reduces with.
REDUCED: dict[str, np.ufunc] = {
    "reduce_sum": np.add,
    "reduce_prod": np.multiply,
    "reduce_max": np.maximum,
    "reduce_min": np.minimum,
    "reduce_any": np.logical_or,
    "reduce_all": np.logical_and,
}


def operand_of(a: Any) -> Tensor:
    """The array to reduce; a sequence of Tensors is stacked."""
    x = tensor(a)
    return np_kind(x)  # type: ignore[no-any-return]


def given(x: Any) -> bool:
    """Whether an optional argument was given."""
    return x is not None and x is not MISSING


def loop_dtype(ufunc: np.ufunc, x: Tensor, dtype: Any, out: Any) -> np.dtype:
    """What a reduction computes in: the loop for `dtype=`, else the one that NumPy takes for the array and `out`.

    Raises:
        DTypeError: there is no such loop.
    """
    target = out[0] if isinstance(out, tuple) else out
    first = target.type.dtype if dtype is None and type(target) is Tensor else None
    chosen: dict[str, Any] = {}
    if dtype is not None:
        chosen = {"signature": (np.dtype(dtype), None, None)}
    try:
        found = ufunc.resolve_dtypes((first, x.type.dtype, None), reduction=True, casting="unsafe", **chosen)
    except TypeError as error:
        raise errors.DTypeError(str(error)) from None
    return found[1]


def start_value(initial: Any, x: Tensor, dtype: np.dtype) -> Tensor:
    """`initial=` as a scalar of the dtype of the loop.

    Raises:
        OverflowError: a Python int that does not fit.
    """
    mode = x._storage.mode
    if type(initial) is Tensor:
        return cast(initial, dtype)  # type: ignore[no-any-return]
    packed = np.zeros((), dtype)
    packed[()] = initial
    return tensor(packed[()], mode)


def converted(x: Tensor, dtype: np.dtype) -> Tensor:
    """`x` in the dtype of a loop: NumPy's iterators cast on the way, so broadcast axes stay broadcast."""
    if x.type.dtype == dtype or not x.type.layout.zero:
        return cast(x, dtype)  # type: ignore[no-any-return]
    shape, zero = x.type.shape, x.type.layout.zero
    once = tuple(1 if k in zero else d for k, d in enumerate(shape))
    axes = tuple(AxisMap(0) if k in zero else AxisMap(0, 1, k) for k in range(len(shape)))
    return stretched(cast(view_of(x, IndexMap(once, axes)), dtype), shape)


def target_of(out: Any) -> Tensor | None:
    """The array behind `out=`.

    Raises:
        DTypeError: it is a scalar.
        ReadOnlyError: it is read-only.
    """
    if isinstance(out, tuple):
        (out,) = out
    require_output(out)
    return out if type(out) is Tensor else None


def check_target(out: Any, name: str, ndim: int, keep: bool) -> None:
    target = target_of(out)
    if target is not None and target.type.ndim != ndim:
        raise errors.ShapeError(
            f"output parameter for reduction operation {name} has the wrong number of dimensions: Found "
            f"{target.type.ndim} but expected {ndim}{' (must match the operand when keepdims=True)' if keep else ''}"
        )


def rounds_between(ufunc: np.ufunc, out: Any, dtype: np.dtype) -> np.dtype | None:
    """The dtype of an `out` in which NumPy keeps what it has so far, between elements; None if that changes nothing.

    Args:
        dtype: of the loop.
    """
    target = target_of(out)
    if target is None or target.type.dtype == dtype:
        return None
    into = target.type.dtype
    if dtype.kind == "b" or (dtype.kind in "iu" and into.kind in "iu" and ufunc in _MODULAR):
        return None
    if ufunc in _EXTREMES:
        ordered = dtype.kind in "iuf" and (into.kind == "f" or dtype.kind == "f" or np.can_cast(dtype, into))
        return None if ordered else into
    exact = into.kind == dtype.kind or (dtype.kind == "u" and into.kind == "i")
    return None if exact and dtype.kind in "iu" and np.can_cast(dtype, into) else into


#: Ufuncs of integers whose low bits depend on the low bits of their operands only, and those that go by an order.
_MODULAR = frozenset((np.add, np.multiply, np.subtract, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift))
_EXTREMES = frozenset((np.maximum, np.minimum, np.fmax, np.fmin))


def mask_for(where: Any, x: Tensor) -> Tensor | None:
    """The mask of `where=` in the shape of `x`; None if all elements count.

    Raises:
        DTypeError: it is not of bools.
        ShapeError: it does not fit the array.
    """
    if where is True or not given(where):
        return None
    mask = array_tensor(mask_of(where, x._storage.mode))
    if mask.type.ndim > x.type.ndim:
        raise errors.ShapeError("input operand has more dimensions than allowed by the axis remapping")
    return stretched(mask, x.type.shape)


def reduce_with(
    record: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any, name: str
) -> Any:
    """One reduction. A float sum takes its mask along, as its order depends on it; for others what changes nothing
    stands in the place of what is left out.
    """
    x = operand_of(a)
    axes = reduced_axes(axis, x, name)
    keep = bool(keepdims) if given(keepdims) else False
    ufunc = REDUCED[record]
    mask = mask_for(where, x)
    starts = given(initial)
    check_target(out, ufunc.__name__, x.type.ndim if keep else x.type.ndim - len(axes), keep)
    dtype = None if dtype is None and out is None else loop_dtype(ufunc, x, dtype, out)
    additive = record in ("reduce_sum", "reduce_prod")
    if mask is not None and ufunc.identity is None and not starts:
        raise errors.ShapeError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
            "specify 'initial'"
        )
    if mask is None and not starts and (ufunc.identity is None or initial is None):
        require_elements(x, axes, ufunc.__name__)
    final = dtype if dtype is not None else loop_dtype(ufunc, x, None, None)
    if additive and final.kind == "b":  # asked for: sums of bools are "or", products "and"
        record, additive = {"reduce_sum": "reduce_any", "reduce_prod": "reduce_all"}[record], False
    truths = final.kind == "b" and record not in ("reduce_max", "reduce_min")
    if dtype is not None and not truths and not (additive and dtype.kind in "fc"):
        x = converted(x, dtype)
    first = start_value(initial, x, final) if starts else None
    if not x.type.ndim:
        if mask is None and not starts:
            return deliver(_of_scalar(record, x, final), out, "unsafe")
        x = reshape_to(array_tensor(x), (1,))
        mask, axes, keep = reshape_to(mask, (1,)) if mask is not None else None, (0,), False
    elif record == "reduce_sum" and final.kind in "fc":
        _settle_ones(x)
    attrs: dict[str, Any] = {"axes": tuple(sorted(axes)), "keepdims": keep}
    operands = [x]
    kept = rounds_between(ufunc, out, final)
    if initial is None and mask is None and additive and final.kind in "fc" and kept is None:
        attrs.update(function="add" if record == "reduce_sum" else "mul", by_numpy=True, bare=True)
        return deliver(apply(R("fold"), converted(x, final), **attrs), out, "unsafe")
    if mask is not None and record == "reduce_prod" and (final.kind == "c" or final == dtypes.F16):
        # a factor of 1 changes complex numbers that are not finite, and where float16 is rounded
        operands = [converted(x, final), first if first is not None else final.type(1), mask]
        return deliver(apply(R("fold"), *operands, function="mul", **attrs), out, "unsafe")
    if kept is not None:
        operands = [converted(x, final)]
        if first is not None or ufunc.identity is not None:
            operands.append(first if first is not None else final.type(ufunc.identity))
        operands += [mask] if mask is not None else []
        function = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "maximum", "reduce_min": "minimum"}[record]
        return deliver(apply(R("fold"), *operands, function=function, into=kept, by_numpy=True, **attrs), out, "unsafe")
    if additive and final.kind in "fc" and x.type.dtype != final:
        attrs["dtype"] = final
    if mask is not None:
        if record == "reduce_sum" and final.kind in "fc":
            record = "reduce_sum_where"
            operands.append(mask)
        else:
            operands[0] = apply(R("where"), mask, x, _neutral(record, x.type.dtype, first))
    if additive and first is not None:
        operands.append(first)
    result = apply(R(record), *operands, **attrs)
    if additive and final.kind in "iu":
        result = cast(result, final)  # what wraps may wrap at the end
    if first is not None and not additive:
        result = apply(R({"reduce_max": "maximum", "reduce_min": "minimum"}.get(record, ufunc.__name__)), result, first)
    return deliver(result, out, "unsafe")


def _of_scalar(record: str, x: Tensor, dtype: np.dtype) -> Tensor:
    """A reduction of one number: itself in the dtype of the loop; a sum is 0 plus it."""
    if record in ("reduce_any", "reduce_all"):
        return EXPORTS["not_equal"](x, 0)  # type: ignore[no-any-return]
    if record in ("reduce_sum", "reduce_prod"):
        attrs = {"dtype": dtype} if dtype.kind in "fc" and x.type.dtype != dtype else {}
        return apply(R(record), array_tensor(x), axes=(), keepdims=False, **attrs)  # type: ignore[no-any-return]
    return np_kind(as_kind(x, "np_scalar"))  # type: ignore[no-any-return]


def _neutral(record: str, dtype: np.dtype, first: Tensor | None) -> Any:
    """What changes nothing in the place of an element: for extremes what they start from."""
    if record == "reduce_sum":
        return dtype.type(0)
    if record == "reduce_prod":
        return dtype.type(1)
    if record in ("reduce_any", "reduce_all"):
        return dtype.type(record == "reduce_all")
    assert first is not None
    return cast(first, dtype)


def _settle_ones(x: Tensor) -> None:
    """Guard which derived sizes (`n - 1`) are 1: NumPy's order of summation leaves such axes out."""
    mode = x._storage.mode
    if x.type.ndim < 2:
        return
    for d in x.type.shape:
        if not isinstance(d, int):
            with contextlib.suppress(Undecided):
                mode.decide("!=", d, 1)


def reduced_axes(axis: Any, x: Tensor, name: str) -> tuple[int, ...]:
    """The axes that `axis=` of a ufunc's `reduce` names.

    Raises:
        DTypeError: it is a list.
        AxisError, ShapeError: out of range, or an axis twice.
    """
    if isinstance(axis, list):
        raise errors.DTypeError("'list' object cannot be interpreted as an integer")
    return () if is_only_axis(no_bool(axis), x) else axes_of(axis, x.type.ndim, name)


def is_only_axis(axis: Any, x: Tensor) -> bool:
    """`ufunc.reduce` takes the axes 0 and -1 of an array without axes."""
    return not x.type.ndim and isinstance(axis, (int, np.integer)) and axis in (0, -1)


def require_elements(x: Tensor, axes: Sequence[int], name: str) -> None:
    """Extremes of nothing are an error."""
    mode = x._storage.mode
    count = product([x.type.shape[k] for k in axes])
    message = _EMPTY_REDUCTION.format(name)
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
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Any:
    return reduce_with("reduce_sum", a, axis, dtype, out, keepdims, initial, where, "sum")


@numpy_function(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Any:
    return reduce_with("reduce_prod", a, axis, dtype, out, keepdims, initial, where, "prod")


@numpy_function(np.max, np.amax)
def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING, initial: Any = MISSING, where: Any = MISSING
) -> Any:
    return reduce_with("reduce_max", a, axis, None, out, keepdims, initial, where, "max")


@numpy_function(np.min, np.amin)
def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING, initial: Any = MISSING, where: Any = MISSING
) -> Any:
    return reduce_with("reduce_min", a, axis, None, out, keepdims, initial, where, "min")


EXPORTS["amax"], EXPORTS["amin"] = max, min


@numpy_function(np.any)
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING, *, where: Any = MISSING) -> Any:
    return reduce_with("reduce_any", a, axis, None, out, keepdims, MISSING, where, "any")


@numpy_function(np.all)
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING, *, where: Any = MISSING) -> Any:
    return reduce_with("reduce_all", a, axis, None, out, keepdims, MISSING, where, "all")


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
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = MISSING) -> Any:
    high = max(a, axis, out, keepdims)  # `out` may be a part of `a`
    return subtract(high, min(a, axis, None, keepdims), out=out)


# --- positions


def _position(record: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = operand_of(a)
    keep = bool(keepdims) if given(keepdims) else False
    if not x.type.ndim:
        x, keep = reshape_to(array_tensor(x), (1,)), False
    ndim = x.type.ndim
    if axis is None:
        flat = ravel(x)
        require_elements(flat, (0,), record)
        result = apply(R(record), flat, axis=0, keepdims=False)
        if keep:
            result = reshape_to(array_tensor(result), (1,) * ndim)
    else:
        k = axis_of(no_bool(axis), ndim, record)
        require_elements(x, (k,), record)
        result = apply(R(record), x, axis=k, keepdims=keep)
    return deliver_copied(result, out, f"output array does not match result of np.{record}.")


def deliver_copied(result: Tensor, out: Any, message: str) -> Any:
    """A result that NumPy computes in a copy of `out`, in its own dtype, and copies back.

    Raises:
        ShapeError: `out` has another shape.
        DTypeError: no safe cast makes the copy.
    """
    if target_of(out) is None:
        return deliver(result, out)
    require_copied(result._storage.mode, out, result.type.shape, result.type.dtype, message)
    return deliver(result, out, "unsafe")


def require_copied(mode: Mode, out: Any, shape: Shape, dtype: np.dtype, message: str) -> None:
    """What NumPy refuses of `out=` before it computes a result of `shape` and `dtype`: see `deliver_copied`."""
    target = target_of(out)
    if target is None:
        return
    require_shape(mode, target, shape, message)
    have = target.type.dtype
    if not np.can_cast(have, dtype, "safe"):
        raise errors.DTypeError(
            f"Cannot cast array data from dtype('{have}') to dtype('{dtype}') according to the rule 'safe'"
        )


def require_shape(mode: Mode, target: Tensor, shape: Shape, message: str) -> None:
    """`out=` that must have just the shape of the result.

    Raises:
        ShapeError: it has another one.
    """
    if len(shape) != target.type.ndim or not builtins.all(
        sizes_agree(mode, p, q, message) for p, q in zip(target.type.shape, shape, strict=True)
    ):
        raise errors.ShapeError(message)


@numpy_function(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = MISSING) -> Any:
    return _position("argmax", a, axis, out, keepdims)


@numpy_function(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = MISSING) -> Any:
    return _position("argmin", a, axis, out, keepdims)


def sum_of(items: Any, start: Any = 0) -> Any:
    """Python's `sum` of a sequence with Tensors in it."""
    total = start
    for item in items:
        total = total + item
    return total
