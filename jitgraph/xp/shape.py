"""Views and other movements of elements: reshape, transpose, broadcast, join, split, flip, roll."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_max, dim_min, floordiv, mod
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode, shape_text
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    dim_tensor,
    lift,
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
    axes_of,
    axis_of,
    cast,
    mode_in,
    numpy_function,
    product,
    shape_of,
    size_of,
    tensor,
    view_tensor,
)


def _loc(x: Tensor) -> Any:
    mode = x._storage.mode
    return mode.locate() if isinstance(mode, TraceMode) else None


def _slices(shape: Shape) -> list[AxisMap]:
    return [AxisMap(0, 1, k) for k in range(len(shape))]


# --- reshape


def reshape_to(x: Tensor, shape: Shape, order: str = "C") -> Tensor:
    """`x.reshape(shape)`; one size may be -1.

    Raises:
        ShapeError: the number of elements differs.
    """
    if order == "F" or (order == "A" and x.type.layout.is_f and not x.type.layout.is_c):
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
    elif not _same(mode, product(shape), total):
        raise _misfit(x, shape)
    if shape == own and x._storage.mode.name == "trace" and own:
        return view_of(x, IndexMap.identity(own))
    return reshape_of(x, shape)


def _misfit(x: Tensor, shape: Shape) -> errors.ShapeError:
    return errors.ShapeError(
        errors.describe(f"cannot reshape array of size {product(x.type.shape)} into shape {shape_text(shape)}", _loc(x))
    )


def _same(mode: Mode, a: DimLike, b: DimLike) -> bool:
    if a == b:
        return True
    try:
        return mode.decide("==", a, b)
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("eq", a, b), "ValueError", "cannot reshape array of size {0} into {1} elements", b, a)
        return True


def _quotient(mode: Mode, total: DimLike, rest: DimLike) -> DimLike | None:
    """total / rest where it is exact; None where it is not."""
    if isinstance(total, int) and isinstance(rest, int):
        if rest == 0 or total % rest:
            return None
        return total // rest
    exact = floordiv(total, rest) if rest != 0 else 0
    if exact * rest == total:
        return exact
    try:
        if mode.decide("==", rest, 0) or not mode.decide("==", mod(total, rest), 0):
            return None
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("eq", mod(total, rest), 0), "ValueError", "cannot reshape array of size {0} into shape with {1}", total, rest)
    return exact


@numpy_function(np.reshape, views=True)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    result = reshape_to(view_tensor(a), shape_of(shape if shape is not None else newshape), order)
    return apply(R("copy"), result, order="C") if copy is True else result


@numpy_function(np.ravel, views=True)
def ravel(a: Any, order: str = "C") -> Any:
    x = view_tensor(a)
    if order == "K":
        order = "F" if x.type.layout.is_f and not x.type.layout.is_c else "C"
    return reshape_to(x, (product(x.type.shape),), order)


def flatten(a: Any, order: str = "C") -> Any:
    """A fresh 1-D copy."""
    x = view_tensor(a)
    flat = ravel(x, order)
    return apply(R("copy"), flat, order="C") if flat._storage is x._storage else flat


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
    return view_of(x, IndexMap(tuple(shape), tuple(AxisMap(0, 1, k) for k in kept)))


@numpy_function(np.squeeze, views=True)
def squeeze(a: Any, axis: Any = None) -> Any:
    x = view_tensor(a)
    shape, mode = x.type.shape, x._storage.mode
    if axis is None:
        gone = [k for k, d in enumerate(shape) if _is_one(mode, d)]
    else:
        gone = list(axes_of(axis, len(shape), "squeeze"))
        if not all(_is_one(mode, shape[k]) for k in gone):
            raise errors.ShapeError(
                errors.describe("cannot select an axis to squeeze out which has size not equal to one", _loc(x))
            )
    if not gone:
        return x if axis is None else view_of(x, IndexMap.identity(shape))
    return drop_axes(x, gone)


def _is_one(mode: Mode, d: DimLike) -> bool:
    return d == 1 or (not isinstance(d, int) and mode.decide("==", d, 1))


def drop_axes(x: Tensor, gone: Sequence[int]) -> Tensor:
    """The view without axes of size 1."""
    kept = [k for k in range(x.type.ndim) if k not in gone]
    place = {k: i for i, k in enumerate(kept)}
    axes = tuple(AxisMap(0, 1, place[k]) if k in place else AxisMap(0, 0, None) for k in range(x.type.ndim))
    return view_of(x, IndexMap(tuple(x.type.shape[k] for k in kept), axes))


# --- transpose


@numpy_function(np.transpose, views=True)
def transpose(a: Any, axes: Any = None) -> Any:
    x = view_tensor(a)
    ndim = x.type.ndim
    if axes is None:
        perm = tuple(range(ndim - 1, -1, -1))
    else:
        if len(axes) != ndim:
            raise errors.ShapeError(errors.describe("axes don't match array", _loc(x)))
        perm = tuple(axis_of(k, ndim, "transpose") for k in axes)
        if len(set(perm)) < ndim:
            raise errors.ShapeError("repeated axis in transpose")
    return view_of(x, IndexMap.permute(x.type.shape, perm))


EXPORTS["permute_dims"] = transpose


@numpy_function(np.swapaxes, views=True)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    x = view_tensor(a)
    perm = list(range(x.type.ndim))
    i, j = axis_of(axis1, len(perm), "swapaxes"), axis_of(axis2, len(perm), "swapaxes")
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
    k = axis_of(axis, ndim, "rollaxis")
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
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A read-only view of the diagonal, its axis last."""
    x = view_tensor(a)
    ndim, mode = x.type.ndim, x._storage.mode
    i, j = axis_of(axis1, ndim, "diagonal"), axis_of(axis2, ndim, "diagonal")
    if i == j:
        raise errors.ShapeError("axis1 and axis2 cannot be the same")
    rows, columns = x.type.shape[i] - max(-offset, 0), x.type.shape[j] - max(offset, 0)
    try:
        size = rows if mode.decide("<=", rows, columns) else columns
        if not mode.decide(">=", size, 0):
            size = 0
    except Undecided:
        size = dim_max(dim_min(rows, columns), 0)
    kept = [k for k in range(ndim) if k not in (i, j)]
    last = len(kept)
    axes = [AxisMap(0, 1, kept.index(k)) if k in kept else AxisMap(0, 1, last) for k in range(ndim)]
    axes[i] = AxisMap(max(-offset, 0), 1, last)
    axes[j] = AxisMap(max(offset, 0), 1, last)
    return view_of(x, IndexMap((*(x.type.shape[k] for k in kept), size), tuple(axes)), writable=False)


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
    own, mode = x.type.shape, x._storage.mode
    shift = len(shape) - len(own)
    axes: list[AxisMap] = []
    for k, d in enumerate(own if shift >= 0 else ()):
        target = shape[k + shift]
        if d == target or _equal(mode, d, target):
            axes.append(AxisMap(0, 1, k + shift))
        elif _is_one(mode, d):
            axes.append(AxisMap(0, 0, None))
        else:
            break
    if shift < 0 or len(axes) < len(own):
        raise errors.ShapeError(
            errors.describe(f"broadcast_to: an array of shape {shape_text(own)} does not broadcast to shape {shape_text(shape)}", _loc(x))
        )
    return view_of(x, IndexMap(tuple(shape), tuple(axes)), writable=False)


def _equal(mode: Mode, a: DimLike, b: DimLike) -> bool:
    try:
        return mode.decide("==", a, b)
    except Undecided:
        if _is_one(mode, a):
            return False
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("eq", a, b), "ValueError", "size {0} does not broadcast to {1}", a, b)
        return True


@numpy_function(np.broadcast_arrays, views=True)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    mode = mode_in(args) or EAGER
    tensors = [array_tensor(a, mode) for a in args]
    shape = common_shape(mode, [t.type.shape for t in tensors], "broadcast_arrays")
    return tuple(t if t.type.shape == shape else stretched(t, shape) for t in tensors)


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
        return expand_dims(x, 0) if x.type.ndim == 1 else x  # type: ignore[no-any-return]

    return _at_least(arys, grow)


@numpy_function(np.atleast_3d, views=True)
def atleast_3d(*arys: Any) -> Any:
    def grow(x: Tensor) -> Tensor:
        if x.type.ndim == 0:
            return reshape_to(x, (1, 1, 1))
        if x.type.ndim == 1:
            return expand_dims(x, (0, 2))  # type: ignore[no-any-return]
        return expand_dims(x, 2) if x.type.ndim == 2 else x  # type: ignore[no-any-return]

    return _at_least(arys, grow)


def _at_least(arys: tuple[Any, ...], grow: Any) -> Any:
    mode = mode_in(arys)
    made = tuple(grow(array_tensor(a, mode)) for a in arys)
    return made[0] if len(made) == 1 else made


# --- join


def _joined(arrays: Sequence[Any], axis: Any, out: Any, dtype: Any, casting: str, what: str) -> Any:
    mode = mode_in(arrays) or EAGER
    tensors = [array_tensor(a, mode) for a in arrays]
    if not tensors:
        raise errors.ShapeError("need at least one array to concatenate")
    if axis is None:
        tensors = [ravel(t) for t in tensors]
        axis = 0
    ndim = tensors[0].type.ndim
    if ndim == 0:
        raise errors.ShapeError("zero-dimensional arrays cannot be concatenated")
    k = axis_of(axis, ndim, what)
    if isinstance(mode, TraceMode):
        tensors = _aligned(mode, tensors, k, what)
    wanted = dtype if dtype is not None else out.type.dtype if type(out) is Tensor else None
    if wanted is not None:
        tensors = [cast(t, wanted) for t in tensors]
    result = apply(R("concatenate"), *tensors, axis=k)
    if out is None:
        return result
    from jitgraph.xp.core import deliver

    return deliver(result, out, casting)


def _aligned(mode: TraceMode, tensors: list[Tensor], axis: int, what: str) -> list[Tensor]:
    """Sizes off the axis made literally equal, by guards or checks."""
    first = tensors[0].type.shape
    aligned = [tensors[0]]
    for number, t in enumerate(tensors[1:], 1):
        shape = t.type.shape
        if len(shape) != len(first):
            raise errors.ShapeError(
                errors.describe(
                    "all the input array dimensions except for the concatenation axis must match exactly, but the array at "
                    f"index 0 has {len(first)} dimension(s) and the array at index {number} has {len(shape)} dimension(s)",
                    mode.locate(),
                )
            )
        for k, (a, b) in enumerate(zip(first, shape, strict=True)):
            if k != axis and a != b and not _must_equal(mode, b, a):
                raise errors.ShapeError(
                    errors.describe(
                        "all the input array dimensions except for the concatenation axis must match exactly, but along "
                        f"dimension {k}, the array at index 0 has size {a} and the array at index {number} has size {b}",
                        mode.locate(),
                    )
                )
        goal = (*first[:axis], shape[axis], *first[axis + 1 :])
        aligned.append(t if goal == shape else retyped(t, goal))
    return aligned


def _must_equal(mode: TraceMode, a: DimLike, b: DimLike) -> bool:
    try:
        return mode.decide("==", a, b)
    except Undecided:
        mode.check(mode.compare("eq", a, b), "ValueError", "sizes must match: {0} and {1}", a, b)
        return True


def retyped(t: Tensor, shape: Shape) -> Tensor:
    """The same array with sizes, known to be equal, written as in `shape`."""
    return view_of(t, IndexMap(shape, tuple(_slices(shape))))


@numpy_function(np.concatenate)
def concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    arrays = _items(arrays)
    return _joined(arrays, axis, out, dtype, casting, "concatenate")


EXPORTS["concat"] = concatenate


def _items(arrays: Any) -> list[Any]:
    """The arrays to join: a sequence, or an array taken apart along its first axis."""
    if type(arrays) is Tensor:
        from jitgraph.xp.indexing import iterate

        return list(iterate(arrays))
    return list(arrays)


@numpy_function(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    mode = mode_in((arrays,)) or EAGER
    tensors = [array_tensor(a, mode) for a in _items(arrays)]
    if not tensors:
        raise errors.ShapeError("need at least one array to stack")
    if any(t.type.ndim != tensors[0].type.ndim for t in tensors):
        raise errors.ShapeError("all input arrays must have the same shape")
    k = axis_of(axis, tensors[0].type.ndim + 1, "stack")
    return _joined([expand_dims(t, k) for t in tensors], k, out, dtype, casting, "stack")


@numpy_function(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    mode = mode_in((tup,))
    return _joined([atleast_2d(array_tensor(a, mode)) for a in _items(tup)], 0, None, dtype, casting, "vstack")


@numpy_function(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    mode = mode_in((tup,))
    parts = [atleast_1d(array_tensor(a, mode)) for a in _items(tup)]
    return _joined(parts, 0 if parts and parts[0].type.ndim == 1 else 1, None, dtype, casting, "hstack")


@numpy_function(np.dstack)
def dstack(tup: Any) -> Any:
    mode = mode_in((tup,))
    return _joined([atleast_3d(array_tensor(a, mode)) for a in _items(tup)], 2, None, None, "same_kind", "dstack")


@numpy_function(np.column_stack)
def column_stack(tup: Any) -> Any:
    mode = mode_in((tup,))
    parts = [array_tensor(a, mode) for a in _items(tup)]
    parts = [transpose(atleast_2d(p)) if p.type.ndim < 2 else p for p in parts]
    return _joined(parts, 1, None, None, "same_kind", "column_stack")


@numpy_function(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    mode = mode_in((arr, values))
    a, b = array_tensor(arr, mode), array_tensor(values, mode)
    if axis is None:
        a, b, axis = ravel(a), ravel(b), 0
    return _joined([a, b], axis, None, None, "same_kind", "append")


# --- split, flip, roll, repeat


def cut(x: Tensor, axis: int, start: DimLike, stop: DimLike) -> Tensor:
    """The view `x[..., start:stop, ...]`, bounds in range."""
    shape = x.type.shape
    axes = _slices(shape)
    axes[axis] = AxisMap(start, 1, axis)
    return view_of(x, IndexMap((*shape[:axis], stop - start, *shape[axis + 1 :]), tuple(axes)))


def _split(ary: Any, where: Any, axis: Any, exact: bool) -> list[Tensor]:
    from jitgraph.xp.indexing import slice_bounds

    x = view_tensor(ary)
    k = axis_of(axis, x.type.ndim, "split")
    size, mode = x.type.shape[k], x._storage.mode
    if isinstance(where, (int, np.integer)) or (type(where) is Tensor and where.type.ndim == 0):
        count = operator.index(where)
        if count <= 0:
            raise errors.ShapeError("number sections must be larger than 0.")
        rest = mod(size, count)
        even = rest if isinstance(rest, int) else 0 if mode.decide("==", rest, 0) else rest
        if not isinstance(even, int):
            even = mode.concrete_dim(even, "split")  # type: ignore[attr-defined]
        if exact and even:
            raise errors.ShapeError(errors.describe("array split does not result in an equal division", _loc(x)))
        each = floordiv(size, count)
        bounds: list[DimLike] = [0]
        for i in range(count):
            bounds.append(bounds[-1] + each + (1 if i < even else 0))
        return [cut(x, k, a, b) for a, b in zip(bounds, bounds[1:], strict=False)]
    marks = [None, *list(where), None]
    parts = []
    for a, b in zip(marks, marks[1:], strict=False):
        start, _, length = slice_bounds(mode, slice(a, b), size)
        parts.append(cut(x, k, start, start + length))
    return parts


@numpy_function(np.split, views=True)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _split(ary, indices_or_sections, axis, True)


@numpy_function(np.array_split, views=True)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _split(ary, indices_or_sections, axis, False)


@numpy_function(np.vsplit, views=True)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return _split(ary, indices_or_sections, 0, True)


@numpy_function(np.hsplit, views=True)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return _split(ary, indices_or_sections, 0 if view_tensor(ary).type.ndim == 1 else 1, True)


@numpy_function(np.unstack, views=True)
def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    return tuple(moveaxis(x, axis, 0))


@numpy_function(np.flip, views=True)
def flip(m: Any, axis: Any = None) -> Any:
    x = view_tensor(m)
    shape = x.type.shape
    axes = _slices(shape)
    for k in axes_of(axis, len(shape), "flip"):
        axes[k] = AxisMap(shape[k] - 1, -1, k)
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
    k %= 4
    if k == 0:
        return view_of(x, IndexMap.identity(x.type.shape))
    if k == 2:
        return flip(x, (first, second))
    return swapaxes(flip(x, second), first, second) if k == 1 else flip(swapaxes(x, first, second), second)


@numpy_function(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved around the axes: each axis is cut and joined the other way round."""
    x = array_tensor(a)
    if axis is None:
        return reshape_to(roll(ravel(x), shift, 0), x.type.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    if len(axes) != len(shifts):
        axes, shifts = (tuple(axes) * (len(shifts) if len(axes) == 1 else 1), tuple(shifts) * (len(axes) if len(shifts) == 1 else 1))
    for s, k in zip(shifts, axes, strict=True):
        x = _rolled(x, s, axis_of(k, x.type.ndim, "roll"))
    return x


def _rolled(x: Tensor, shift: Any, axis: int) -> Tensor:
    mode, size = x._storage.mode, x.type.shape[axis]
    by = size_or_data(shift)
    if by is None:
        assert isinstance(mode, TraceMode)
        wrapped = EXPORTS["remainder"](shift, EXPORTS["maximum"](dim_tensor(mode, size), 1))
        by = mode.bind(lift(mode, wrapped), "k", 0, size)
    elif isinstance(by, int) and isinstance(size, int):
        by = by % size if size else 0
    elif isinstance(by, int) and abs(by) <= 8 and mode.decide(">=", size, abs(by)):
        by = by if by >= 0 else size + by
    elif mode.decide("==", size, 0):
        by = 0
    else:
        by = mod(by, size)
    return _joined([cut(x, axis, size - by, size), cut(x, axis, 0, size - by)], axis, None, None, "same_kind", "roll")  # type: ignore[no-any-return]


def size_or_data(x: Any) -> DimLike | None:
    """A size or plain integer; None for data."""
    if type(x) is Tensor and not isinstance(x._dim, (int, type(None))):
        return size_of(x)
    return None if type(x) is Tensor and x.is_traced else int(plain(x))


@numpy_function(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = array_tensor(a)
    if axis is None:
        x, axis = ravel(x), 0
    k = axis_of(axis, x.type.ndim, "repeat")
    if (type(repeats) is Tensor and repeats.type.ndim) or (not isinstance(repeats, (int, np.integer, Tensor))):
        raise errors.TraceError(
            errors.describe("repeat with one count for each element has no compiled form", _loc(x), remedy="give one count for all.")
        )
    count = size_of(repeats)
    shape = x.type.shape
    wide = (*shape[: k + 1], count, *shape[k + 1 :])
    spread = stretched(expand_dims(x, k + 1), wide)
    return reshape_to(apply(R("copy"), spread, order="C"), (*shape[:k], shape[k] * count, *shape[k + 1 :]))


@numpy_function(np.tile)
def tile(A: Any, reps: Any) -> Any:
    x = array_tensor(A)
    counts = shape_of(reps)
    ndim = max(len(counts), x.type.ndim)
    counts = (*(1,) * (ndim - len(counts)), *counts)
    x = reshape_to(x, (*(1,) * (ndim - x.type.ndim), *x.type.shape))
    shape = x.type.shape
    paired: list[DimLike] = []
    spread: list[DimLike] = []
    for c, d in zip(counts, shape, strict=True):
        paired += [1, d]
        spread += [c, d]
    wide = stretched(reshape_to(x, tuple(paired)), tuple(spread))
    return reshape_to(apply(R("copy"), wide, order="C"), tuple(c * d for c, d in zip(counts, shape, strict=True)))


# --- sizes


@numpy_function(np.shape)
def shape(a: Any) -> Any:
    return tensor(a).shape


@numpy_function(np.ndim)
def ndim(a: Any) -> Any:
    return tensor(a).ndim


@numpy_function(np.size)
def size(a: Any, axis: Any = None) -> Any:
    t = tensor(a)
    if axis is None:
        return t.size
    return dim_tensor(t._storage.mode, product([t.type.shape[k] for k in axes_of(axis, t.type.ndim, "size")]))


@numpy_function(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return converted(tensor(x), dtype, copy=copy)


def converted(x: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
    """`ndarray.astype`: a fresh array unless `copy` is false and the dtype is the same."""
    from jitgraph.xp.core import as_kind, can_cast

    if type(dtype) is Tensor:
        raise errors.DTypeError("Cannot interpret an array as a data type")
    wanted = np.dtype(dtype)
    if not can_cast(x.type, wanted, casting):
        raise errors.DTypeError(f"Cannot cast array data from {x.type.dtype!r} to {wanted!r} according to the rule {casting!r}")
    if x.type.is_python:
        x = as_kind(x, "np_scalar")
    if x.type.dtype != wanted:
        return cast(x, wanted)
    if x.type.kind != "array" or not copy:
        return x
    return apply(R("copy"), x, order="K" if order == "A" else order)


def as_value(x: Tensor) -> Tensor:
    """A fresh storage that holds the current elements of `x`, without a copy op."""
    return wrap(mode_of((x,)), read(x))
