"""Views: reshape, transpose, diagonal, broadcast, flip; sizes and conversions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_max, dim_min, floordiv, mod, ne1
from jitgraph.ir.reshapes import reshape_view_layout
from jitgraph.ir.rewrite import constant_array
from jitgraph.ir.types import AxisMap, IndexMap, Shape, elementwise_layout
from jitgraph.modes import TraceMode
from jitgraph.sizes import shape_text
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    dim_tensor,
    is_writable,
    mode_of,
    plain,
    read,
    reshape_of,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axes_of,
    axis_of,
    cast,
    memory_order,
    mode_in,
    no_bool,
    numpy_function,
    offset_of,
    product,
    shape_of,
    sizes_agree,
    tensor,
    view_tensor,
)
from jitgraph.xp.merging import Unsure, drop_axes, is_known_empty, mergeable, narrowed, order_for, ordered


def place_of(x: Tensor) -> Any:
    mode = x._storage.mode
    return mode.locate() if isinstance(mode, TraceMode) else None


def whole_axes(shape: Shape) -> list[AxisMap]:
    return [AxisMap(0, 1, k) for k in range(len(shape))]


# --- reshape


def reshape_to(x: Tensor, shape: Shape, order: str = "C") -> Tensor:
    """`x.reshape(shape)`; one size may be -1.

    Raises:
        ShapeError: the number of elements differs.
    """
    if order == "F" or (order == "A" and order_for(order, x) == "F"):
        turned = reshape_to(transpose(x), tuple(reversed(shape)))
        return transpose(turned)  # type: ignore[no-any-return]
    own = x.type.shape
    mode = x._storage.mode
    total = product(own)
    if -1 in shape:
        at = shape.index(-1)
        rest = product([d for k, d in enumerate(shape) if k != at])
        if -1 in shape[at + 1 :]:
            raise errors.ShapeError("can only specify one unknown dimension")
        missing = _quotient(mode, total, rest)
        if missing is None:
            raise _misfit(x, shape)
        shape = (*shape[:at], missing, *shape[at + 1 :])
    elif not sizes_agree(mode, total, product(shape), "cannot reshape array of size {0} into {1} elements"):
        raise _misfit(x, shape)
    if mode.name == "trace" and own and (shape == own or _is_no_reshape(mode, x, shape)):
        return view_of(x, IndexMap.identity(own))
    made = reshape_of(x, shape)
    if made._storage is not x._storage and isinstance(mode, TraceMode):
        seen = _strided_view(mode, x, shape)
        if seen is not None:
            return seen
        narrow = narrowed(x, made, lambda t: reshape_view_layout(t, (product(t.shape),)) is not None)
        if narrow is not None:
            return reshape_to(narrow, shape)
        if not is_writable(x) and is_known_empty(x):
            made._storage.writable = False  # NumPy's is a view, of nothing
    return made


def _strided_view(mode: TraceMode, x: Tensor, shape: Shape) -> Tensor | None:
    """`x` in another shape where it is a view only because of the sizes at hand; None where NumPy copies."""
    try:
        narrow = tuple(1 if mode.decide("==", d, 1) else d for d in shape)
        merged = mergeable(x, narrow)
    except Undecided:
        return None
    except Unsure:
        copied = apply(R("reshape"), x, shape=shape)
        mode.watch(copied._storage, [x._storage])
        return copied  # type: ignore[no-any-return]
    if merged is None:
        return None
    seen = reshape_of(merged, narrow)
    if seen._storage is not x._storage:  # a view, but of no layout that types can say
        mode.watch(seen._storage, [x._storage])
        seen._storage.writable = is_writable(x)
    return seen


def _is_no_reshape(mode: Mode, x: Tensor, shape: Shape) -> bool:
    """Whether a strided array keeps its sizes: then, and for some others, NumPy gives a view and not a copy."""
    if x.type.layout.is_c or len(shape) != len(x.type.shape):
        return False
    try:
        return all(mode.decide("==", d, e) for d, e in zip(shape, x.type.shape, strict=True))
    except Undecided:
        return False


def _misfit(x: Tensor, shape: Shape) -> errors.ShapeError:
    return errors.ShapeError(
        errors.describe(
            f"cannot reshape array of size {product(x.type.shape)} into shape {shape_text(shape)}", place_of(x)
        )
    )


def _quotient(mode: Mode, total: DimLike, rest: DimLike) -> DimLike | None:
    """total / rest where it is exact; None where it is not."""
    if isinstance(total, int) and isinstance(rest, int):
        if rest == 0 or total % rest:
            return None
        return total // rest
    if rest == 0:
        return None
    exact = floordiv(total, rest)
    try:
        if mode.decide("==", rest, 0) or not mode.decide("==", mod(total, rest), 0):
            return None
    except Undecided:
        assert isinstance(mode, TraceMode)
        fits = mode.compare("eq", mod(total, rest), 0)
        if not mode.builder.prove("!=", rest, 0):  # what is left over of a division by 0 is 0
            fits = mode.builder.logical_and(mode.compare("ne", rest, 0), fits)
        mode.check(fits, "ValueError", "cannot reshape array of size {0} into shape with {1}", total, rest)
    return exact


@numpy_function(np.reshape, views=True)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    x = view_tensor(a)
    order = memory_order(order)
    if order == "K":
        raise errors.ShapeError("order 'K' is not permitted for reshaping")
    result = reshape_to(x, shape_of(shape if shape is not None else newshape, free=True), order)
    if _is_scalar(a) and not result.type.shape:
        return a
    shares = result._storage is x._storage
    if copy is False and not shares and result.type.shape and 0 not in result.type.shape:
        raise errors.ShapeError("Unable to avoid creating a copy while reshaping.")
    return apply(R("copy"), result, order="F" if order == "F" else "C") if copy is True and shares else result


def set_shape(x: Tensor, shape: Any) -> None:
    """`x.shape = shape` of an array that the caller does not see: the same object with other sizes.

    Raises:
        AttributeError: it would have to be copied.
    """
    seen = reshape_to(x, shape_of(shape))
    if seen._storage is not x._storage:
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."
        )
    x._steps, x._dim, x._type, x._seen = seen._steps, seen._dim, None, None


@numpy_function(np.ravel, views=True)
def ravel(a: Any, order: str = "C") -> Any:
    x = view_tensor(a)
    order = order_for(order, x)
    if order == "K":
        x, order = transpose(x, _as_it_lies(x)), "C"
    x = ordered(x, order)  # where a reshape may still be a view
    return reshape_to(x, (product(x.type.shape),), order)


def _as_it_lies(x: Tensor) -> tuple[int, ...]:
    """The axes in the order of memory; those of stride zero stay among their neighbours, as in NumPy's iterator."""
    layout = x.type.layout
    return (elementwise_layout(x.type.ndim, (x.type,)) if layout.zero else layout).order


def flatten(a: Any, order: str = "C") -> Any:
    """A fresh 1-D copy."""
    x = view_tensor(a)
    order = order_for(order, x)
    if order == "K":
        x, order = transpose(x, _as_it_lies(x)), "C"
    return reshape_to(apply(R("copy"), x, order=order), (product(x.type.shape),), order)


@numpy_function(np.expand_dims, views=True)
def expand_dims(a: Any, axis: Any) -> Any:
    x = view_tensor(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.type.ndim + len(axes)
    new = axes_of(tuple(axes), ndim, "expand_dims")
    kept = [k for k in range(ndim) if k not in new]
    shape: list[DimLike] = [1] * ndim
    for k, d in zip(kept, x.type.shape, strict=True):
        shape[k] = d
    return reshape_of(x, tuple(shape))


def new_axes(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The view that `np.newaxis` makes at these axes of the result."""
    kept = [k for k in range(x.type.ndim + len(axes)) if k not in axes]
    shape: list[DimLike] = [1] * (x.type.ndim + len(axes))
    for k, d in zip(kept, x.type.shape, strict=True):
        shape[k] = d
    return view_of(x, IndexMap(tuple(shape), tuple(AxisMap(0, 1, k) for k in kept)))


@numpy_function(np.squeeze, views=True)
def squeeze(a: Any, axis: Any = None) -> Any:
    x = view_tensor(a)
    shape, mode = x.type.shape, x._storage.mode
    if axis is None:
        gone = [k for k, d in enumerate(shape) if _is_one(mode, d)]
    elif not shape and type(axis) is int and axis in (0, -1):
        gone = []
    else:
        gone = list(axes_of(no_bool(axis), len(shape), "squeeze"))
        if not all(sizes_agree(mode, shape[k], 1, _NOT_ONE) for k in gone):
            raise errors.ShapeError(errors.describe(_NOT_ONE, place_of(x)))
    if _is_scalar(a):
        return a
    if not gone:
        return x if axis is None or not shape else view_of(x, IndexMap.identity(shape))
    return drop_axes(x, gone)


def along(x: Tensor, axis: Any, what: str) -> tuple[Tensor, int]:
    """An array and its axis to go along: without one all elements are in a row, and so is a single one without axes."""
    if axis is None:
        return ravel(x), 0
    if not x.type.shape:
        x = reshape_to(x, (1,))
    return x, axis_of(axis, x.type.ndim, what)


_NOT_ONE = "cannot select an axis to squeeze out which has size not equal to one"


def _is_one(mode: Mode, d: DimLike) -> bool:
    """Whether an axis is squeezed out; of sizes known at run time only those that are not 1 are compiled."""
    try:
        return mode.decide("==", d, 1)
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("ne", d, 1), "deoptimise", "an axis to squeeze is of size 1")
        return False


# --- transpose


def _numbers_in(axes: Tensor) -> Any:
    """The elements of an array that is spelt out in the function; data are refused."""
    mode: Any = axes._storage.mode
    value = read(axes)
    if mode.name == "trace":
        if value.producer is not None and value.producer.name == "copy":
            value = value.producer.operands[0]
        known = constant_array(value)
        if known is not None:
            return known.tolist()
        return mode.concrete(axes, "array").tolist()
    return plain(axes).tolist()


@numpy_function(np.transpose, views=True)
def transpose(a: Any, axes: Any = None) -> Any:
    x = view_tensor(a)
    ndim = x.type.ndim
    if axes is None:
        perm = tuple(range(ndim - 1, -1, -1))
    else:
        if type(axes) is Tensor and axes.type.shape:
            axes = _numbers_in(axes)
        if len(axes) != ndim:
            raise errors.ShapeError(errors.describe("axes don't match array", place_of(x)))
        perm = tuple(axis_of(k, ndim, "transpose") for k in no_bool(axes))
        if len(set(perm)) < ndim:
            raise errors.ShapeError("repeated axis in transpose")
    return a if _is_scalar(a) else view_of(x, IndexMap.permute(x.type.shape, perm))


def _is_scalar(a: Any) -> bool:
    """A NumPy scalar: its own methods give a scalar again, not a 0-d array."""
    return type(a) is Tensor and a.type.kind == "np_scalar"


EXPORTS["permute_dims"] = transpose


@numpy_function(np.swapaxes, views=True)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    x = view_tensor(a)
    perm = list(range(x.type.ndim))
    i, j = axis_of(axis1, len(perm), "axis1"), axis_of(axis2, len(perm), "axis2")
    perm[i], perm[j] = perm[j], perm[i]
    return view_of(x, IndexMap.permute(x.type.shape, perm))


@numpy_function(np.moveaxis, views=True)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    x = view_tensor(a)
    ndim = x.type.ndim
    wrapped = [v if isinstance(v, (tuple, list)) else (v,) for v in (source, destination)]
    sources, targets = (axes_of(tuple(v), ndim, "moveaxis") for v in wrapped)
    if len(sources) != len(targets):
        raise errors.ShapeError("`source` and `destination` arguments must have the same number of elements")
    perm = [k for k in range(ndim) if k not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, origin)
    return view_of(x, IndexMap.permute(x.type.shape, perm))


@numpy_function(np.rollaxis, views=True)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    x = view_tensor(a)
    ndim = x.type.ndim
    k, start = axis_of(axis, ndim, "rollaxis"), operator.index(start)
    at = axis_of(start, ndim + 1, "rollaxis") if start >= 0 else axis_of(start, ndim, "rollaxis")
    perm = [i for i in range(ndim) if i != k]
    perm.insert(at - 1 if k < at else at, k)
    return view_of(x, IndexMap.permute(x.type.shape, perm))


@numpy_function(np.matrix_transpose, views=True)
def matrix_transpose(x: Any, /) -> Any:
    t = view_tensor(x)
    if t.type.ndim < 2:
        raise errors.ShapeError(f"Input array must be at least 2-dimensional, but it is {t.type.ndim}")
    return swapaxes(t, -1, -2)


@numpy_function(np.diagonal, views=True)
def diagonal(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A read-only view of the diagonal, its axis last."""
    x = view_tensor(a)
    ndim, mode = x.type.ndim, x._storage.mode
    if ndim < 2:
        raise errors.ShapeError("diag requires an array of at least two dimensions")
    i, j = axis_of(axis1, ndim, "axis1"), axis_of(axis2, ndim, "axis2")
    if i == j:
        raise errors.ShapeError("axis1 and axis2 cannot be the same")
    k = offset_of(offset)
    down, right = dim_max(-k, 0), dim_max(k, 0)
    rows, columns = x.type.shape[i] - down, x.type.shape[j] - right
    try:
        size = rows if mode.decide("<=", rows, columns) else columns
        if not mode.decide(">=", size, 0):
            size = 0
    except Undecided:
        size = dim_max(dim_min(rows, columns), 0)
    kept = [a for a in range(ndim) if a not in (i, j)]
    last = len(kept)
    axes = [AxisMap(0, 1, kept.index(a)) if a in kept else AxisMap(0, 1, last) for a in range(ndim)]
    axes[i] = AxisMap(down, 1, last)
    axes[j] = AxisMap(right, 1, last)
    return view_of(x, IndexMap((*(x.type.shape[a] for a in kept), size), tuple(axes)), writable=False)


# --- broadcast


@numpy_function(np.broadcast_to, views=True)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """A read-only view that repeats axes of size 1.

    Raises:
        ShapeError: `array` does not broadcast to `shape`.
    """
    x = view_tensor(array)
    return stretched(x, shape_of(shape))


def stretched(x: Tensor, shape: Shape) -> Tensor:
    """The read-only view of `x` broadcast to `shape`."""
    own, mode = x.type.shape, x._storage.mode
    shift = len(shape) - len(own)
    if isinstance(mode, TraceMode):
        fits = mode.repeats_to(own, shape)
    else:
        fits = all(d in (1, e) for d, e in zip(own, shape[max(shift, 0) :], strict=False))
    if shift < 0 or not fits:
        raise errors.ShapeError(
            errors.describe(
                f"broadcast_to: an array of shape {shape_text(own)} does not broadcast to shape {shape_text(shape)}",
                place_of(x),
            )
        )
    axes: list[AxisMap] = []
    for k, d in enumerate(own, shift):
        if d == shape[k] or (isinstance(mode, TraceMode) and mode.builder.prove("==", d, shape[k])):
            axes.append(AxisMap(0, 1, k))
        elif d == 1 or not isinstance(mode, TraceMode) or mode.builder.prove("==", d, 1):
            axes.append(AxisMap(0, 0, None))
        else:
            axes.append(AxisMap(0, ne1(d), k))
    return view_of(x, IndexMap(tuple(shape), tuple(axes)), writable=False)


@numpy_function(np.broadcast_arrays, views=True)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    mode = mode_in(args) or EAGER
    tensors = [array_tensor(a, mode) for a in args]
    shape = common_shape(mode, [t.type.shape for t in tensors], "broadcast_arrays")
    return tuple(t if _same_sizes(mode, t.type.shape, shape) else stretched(t, shape) for t in tensors)


def _same_sizes(mode: Mode, own: Shape, shape: Shape) -> bool:
    if own == shape:
        return True
    try:
        return len(own) == len(shape) and all(mode.decide("==", d, e) for d, e in zip(own, shape, strict=True))
    except Undecided:
        return False


def common_shape(mode: Mode, shapes: Sequence[Shape], what: str) -> Shape:
    if isinstance(mode, TraceMode):
        return mode.broadcast_shape(shapes, what)
    return np.broadcast_shapes(*shapes)  # type: ignore[arg-type]


@numpy_function(np.broadcast_shapes, views=True)
def broadcast_shapes(*args: Any) -> Any:
    mode = mode_in(args) or EAGER
    shape = common_shape(mode, [shape_of(a) for a in args], "broadcast_shapes")
    return tuple(dim_tensor(mode, d) for d in shape)


@numpy_function(np.atleast_1d, views=True)
def atleast_1d(*arys: Any) -> Any:
    return _at_least(arys, lambda x: reshape_to(x, (1,)) if x.type.ndim == 0 else x)


@numpy_function(np.atleast_2d, views=True)
def atleast_2d(*arys: Any) -> Any:
    def grow(x: Tensor) -> Tensor:
        if x.type.ndim == 0:
            return reshape_to(x, (1, 1))
        return new_axes(x, (0,)) if x.type.ndim == 1 else x

    return _at_least(arys, grow)


@numpy_function(np.atleast_3d, views=True)
def atleast_3d(*arys: Any) -> Any:
    def grow(x: Tensor) -> Tensor:
        if x.type.ndim == 0:
            return reshape_to(x, (1, 1, 1))
        if x.type.ndim == 1:
            return new_axes(x, (0, 2))
        return new_axes(x, (2,)) if x.type.ndim == 2 else x

    return _at_least(arys, grow)


def _at_least(arys: tuple[Any, ...], grow: Any) -> Any:
    mode = mode_in(arys)
    made = tuple(grow(array_tensor(a, mode)) for a in arys)
    return made[0] if len(made) == 1 else made


def retyped(t: Tensor, shape: Shape) -> Tensor:
    """The same array with sizes, known to be equal, written as in `shape`."""
    return view_of(t, IndexMap(shape, tuple(whole_axes(shape))))


# --- flip


@numpy_function(np.flip, views=True)
def flip(m: Any, axis: Any = None) -> Any:
    x = view_tensor(m)
    shape = x.type.shape
    axes = whole_axes(shape)
    for k in axes_of(axis, len(shape), "flip"):
        axes[k] = AxisMap(shape[k] - 1, -1, k)
    if not shape and x._storage.mode.name == "trace":
        return as_kind(x, "np_scalar")  # `m[()]`
    return view_of(x, IndexMap(shape, tuple(axes)))


@numpy_function(np.flipud, views=True)
def flipud(m: Any) -> Any:
    return flip(m, 0)


@numpy_function(np.fliplr, views=True)
def fliplr(m: Any) -> Any:
    return flip(m, 1)


@numpy_function(np.rot90, views=True)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x = view_tensor(m)
    first, second = axes_of(tuple(axes), x.type.ndim, "rot90")
    k = operator.index(k) % 4  # an argument's value is baked in
    if k == 0:
        return view_of(x, IndexMap.identity(x.type.shape))
    if k == 2:
        return flip(x, (first, second))
    return swapaxes(flip(x, second), first, second) if k == 1 else flip(swapaxes(x, first, second), second)


# --- sizes


@numpy_function(np.shape)
def shape(a: Any) -> Any:
    t = tensor(a)
    return () if t.type.is_python else t.shape


@numpy_function(np.ndim)
def ndim(a: Any) -> Any:
    return tensor(a).type.ndim


@numpy_function(np.size)
def size(a: Any, axis: Any = None) -> Any:
    t = tensor(a)
    if axis is None:
        return 1 if t.type.is_python else t.size
    return dim_tensor(t._storage.mode, product([t.type.shape[k] for k in axes_of(axis, t.type.ndim, "size")]))


@numpy_function(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return converted(tensor(x), dtype, copy=copy)


def converted(
    x: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """`ndarray.astype`: a fresh array unless `copy` is false and the dtype is the same."""
    from jitgraph.xp.core import can_cast

    if type(dtype) is Tensor:
        raise errors.DTypeError("Cannot interpret an array as a data type")
    wanted = np.dtype(dtype)
    mode = x._storage.mode
    if casting == "same_value" and isinstance(mode, TraceMode):
        mode.leave("astype with casting='same_value' compares the elements", "cast, and compare them.")
    if not can_cast(x.type, wanted, casting):
        raise errors.DTypeError(
            f"Cannot cast array data from {x.type.dtype!r} to {wanted!r} according to the rule {casting!r}"
        )
    if x.type.is_python:
        x = as_kind(x, "np_scalar")
    order = memory_order(order)
    if x.type.dtype != wanted:
        return ordered(cast(x, wanted), order)
    if x.type.kind != "array" or not copy:
        return ordered(x, order)
    return apply(R("copy"), x, order=order_for(order, x))


def as_value(x: Tensor) -> Tensor:
    """A fresh storage that holds the current elements of `x`, without a copy op."""
    return wrap(mode_of((x,)), read(x))
