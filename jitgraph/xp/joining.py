"""Joining and cutting: concatenate, stack, split, roll, repeat, tile."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import Dim, DimLike, dim_max, dim_min, floordiv, mod
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    dim_tensor,
    is_writable,
    lift,
    plain,
    read,
    view_of,
)
from jitgraph.xp.core import (
    EXPORTS,
    NEGATIVE,
    R,
    array_tensor,
    axis_of,
    cast,
    mode_in,
    no_bool,
    numpy_function,
    product,
    shape_of,
    size_of,
    sizes_agree,
    tensor,
    view_tensor,
)
from jitgraph.xp.shape import (
    along,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    expand_dims,
    moveaxis,
    place_of,
    ravel,
    reshape_to,
    retyped,
    stretched,
    transpose,
    whole_axes,
)

# --- join

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
_MUST_MATCH = "all the input array dimensions except for the concatenation axis must match exactly, but "


def _joined(arrays: Sequence[Any], axis: Any, out: Any, dtype: Any, casting: str, what: str) -> Any:
    mode = mode_in(arrays) or EAGER
    tensors = [array_tensor(a, mode) for a in arrays]
    if not tensors:
        raise errors.ShapeError("need at least one array to concatenate")
    if out is not None and dtype is not None:
        raise errors.DTypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if casting not in _CASTINGS:
        raise errors.ShapeError(
            f"casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe' (got {casting!r})"
        )
    weak = axis is None and any(_is_weak(a) for a in arrays)
    if axis is None:
        if dtype is None and out is None and weak:
            from jitgraph.xp.creation import result_type

            dtype = result_type(*[a if _is_weak(a) else t for a, t in zip(arrays, tensors, strict=True)])
        tensors = [ravel(t) for t in tensors]
        axis = 0
    ndim = tensors[0].type.ndim
    if ndim == 0:
        raise errors.ShapeError("zero-dimensional arrays cannot be concatenated")
    k = axis_of(no_bool(axis), ndim, what)
    if isinstance(mode, TraceMode):
        tensors = _aligned(mode, tensors, k, what)
    wanted = dtype if dtype is not None else out.type.dtype if type(out) is Tensor else None
    if casting != "same_kind" or (wanted is not None and not weak):
        goal = np.dtype(wanted) if wanted is not None else np.result_type(*[t.type.dtype for t in tensors])
        own = [t.type.dtype for t in tensors]
        refused = next((d for d in own if not np.can_cast(d, goal, casting)), None)  # type: ignore[arg-type]
        if refused is not None:
            raise errors.DTypeError(
                f"Cannot cast array data from dtype('{refused}') to dtype('{goal}') according to the rule '{casting}'"
            )
    if wanted is not None:
        tensors = [cast(t, wanted) for t in tensors]
    result = apply(R("concatenate"), *tensors, axis=k)
    if out is None:
        return result if dtype is None else cast(result, dtype)
    from jitgraph.xp.core import deliver

    return deliver(result, out, casting)


def _is_weak(x: Any) -> bool:
    """A Python number, which takes the dtype of NumPy's beside it where arrays are joined flattened."""
    return x.type.is_python if type(x) is Tensor else type(x) in (int, float, complex)


def _aligned(mode: TraceMode, tensors: list[Tensor], axis: int, what: str) -> list[Tensor]:
    """Sizes off the axis made literally equal, by guards or checks."""
    first = tensors[0].type.shape
    aligned = [tensors[0]]
    for number, t in enumerate(tensors[1:], 1):
        shape = t.type.shape
        if len(shape) != len(first):
            raise errors.ShapeError(
                errors.describe(
                    f"{_MUST_MATCH}the array at index 0 has {len(first)} dimension(s) and the array at index "
                    f"{number} has {len(shape)} dimension(s)",
                    mode.locate(),
                )
            )
        for k, (a, b) in enumerate(zip(first, shape, strict=True)):
            if k != axis and a != b and not sizes_agree(mode, b, a, "sizes must match: {0} and {1}"):
                raise errors.ShapeError(
                    errors.describe(
                        f"{_MUST_MATCH}along dimension {k}, the array at index 0 has size {a} and the array at index "
                        f"{number} has size {b}",
                        mode.locate(),
                    )
                )
        goal = (*first[:axis], shape[axis], *first[axis + 1 :])
        aligned.append(t if goal == shape else retyped(t, goal))
    return aligned


@numpy_function(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
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
    axes = whole_axes(shape)
    axes[axis] = AxisMap(start, 1, axis)
    return view_of(x, IndexMap((*shape[:axis], stop - start, *shape[axis + 1 :]), tuple(axes)))


def _split(ary: Any, where: Any, axis: Any, exact: bool) -> list[Tensor]:
    from jitgraph.xp.keys import slice_bounds

    x = view_tensor(ary)
    k = axis_of(axis, x.type.ndim, "split")
    size, mode = x.type.shape[k], x._storage.mode
    if isinstance(where, float | np.floating) and (not exact or where % 1 == 0):
        where = int(where)
    if isinstance(where, (int, np.integer)) or (type(where) is Tensor and where.type.ndim == 0):
        count = int(where) if type(where) is Tensor and where.type.dtype.kind == "f" else operator.index(where)
        if exact and count == 0:
            raise ZeroDivisionError("integer modulo by zero")
        if count <= 0:
            raise errors.ShapeError("number sections must be larger than 0.")
        rest = mod(size, count)
        if exact and not sizes_agree(mode, rest, 0, _UNEVEN):
            raise errors.ShapeError(errors.describe(_UNEVEN, place_of(x)))
        each = floordiv(size, count)  # the first parts have one more
        bounds = [each * i + (0 if exact else dim_min(rest, i)) for i in range(count + 1)]
        return [cut(x, k, a, b) for a, b in pairwise(bounds)]
    marks = [None, *list(where), None]
    parts = []
    for a, b in pairwise(marks):
        start, _, length = slice_bounds(mode, slice(a, b), size)
        parts.append(cut(x, k, start, start + length))
    return parts


_UNEVEN = "array split does not result in an equal division"


@numpy_function(np.split, views=True)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _split(ary, indices_or_sections, axis, True)


@numpy_function(np.array_split, views=True)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _split(ary, indices_or_sections, axis, False)


@numpy_function(np.vsplit, views=True)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if view_tensor(ary).type.ndim < 2:
        raise errors.ShapeError("vsplit only works on arrays of 2 or more dimensions")
    return _split(ary, indices_or_sections, 0, True)


@numpy_function(np.hsplit, views=True)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    if view_tensor(ary).type.ndim == 0:
        raise errors.ShapeError("hsplit only works on arrays of 1 or more dimensions")
    return _split(ary, indices_or_sections, 0 if view_tensor(ary).type.ndim == 1 else 1, True)


@numpy_function(np.unstack, views=True)
def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    return tuple(moveaxis(x, axis, 0))


@numpy_function(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved around the axes: each axis is cut and joined the other way round."""
    x = array_tensor(a)
    if axis is None:
        return reshape_to(roll(ravel(x), shift, 0), x.type.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    if len(axes) != len(shifts):
        axes, shifts = (
            tuple(axes) * (len(shifts) if len(axes) == 1 else 1),
            tuple(shifts) * (len(axes) if len(shifts) == 1 else 1),
        )
    for s, k in zip(shifts, axes, strict=True):
        x = _rolled(x, s, axis_of(k, x.type.ndim, "roll"))
    return x


def _rolled(x: Tensor, shift: Any, axis: int) -> Tensor:
    mode, size = x._storage.mode, x.type.shape[axis]
    by = size_or_data(shift)
    if by is None:
        assert isinstance(mode, TraceMode)
        wrapped = EXPORTS["remainder"](cast(tensor(shift), np.intp), EXPORTS["maximum"](dim_tensor(mode, size), 1))
        by = mode.bind(lift(mode, wrapped), "k", 0, size)
    elif isinstance(by, int) and isinstance(size, int):
        by = by % size if size else 0
    else:
        try:
            if isinstance(by, int) and abs(by) <= 8 and mode.decide(">=", size, abs(by)):
                by = by if by >= 0 else size + by
            else:
                by = 0 if mode.decide("==", size, 0) else mod(by, size)
        except Undecided:
            by = mod(by, dim_max(size, 1))
    parts = [cut(x, axis, size - by, size), cut(x, axis, 0, size - by)]
    joined = _joined(parts, axis, None, None, "same_kind", "roll")
    return joined if x.type.dtype.isnative else cast(joined, x.type.dtype)  # type: ignore[no-any-return]


def size_or_data(x: Any) -> DimLike | None:
    """A size or plain integer; None for data."""
    if type(x) is Tensor and not isinstance(x._dim, (int, type(None))):
        return size_of(x)
    return None if type(x) is Tensor and x.is_traced else int(plain(x))


@numpy_function(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = array_tensor(a)
    x, k = along(x, axis, "repeat")
    if isinstance(repeats, list | tuple) or (repeats.type.ndim if type(repeats) is Tensor else np.ndim(repeats)):
        return repeat_each(x, repeats, k)
    if isinstance(repeats, (float, np.bool_, np.floating)):
        repeats = int(repeats)
    shape = x.type.shape
    count = _count(x._storage.mode, repeats, shape[k])
    wide = (*shape[: k + 1], count, *shape[k + 1 :])
    spread = stretched(expand_dims(x, k + 1), wide)
    return reshape_to(apply(R("copy"), spread, order="C"), (*shape[:k], shape[k] * count, *shape[k + 1 :]))


def _count(mode: Mode, repeats: Any, size: DimLike) -> DimLike:
    """How often each of `size` elements is repeated. Only the size of the result may not be negative."""
    count = repeats._dim if type(repeats) is Tensor else repeats
    is_whole = type(repeats) is not Tensor or repeats.type.dtype.kind in "iu"
    try:
        sure = isinstance(mode, TraceMode) and isinstance(count, int | Dim) and mode.builder.prove(">=", count, 0)
        if is_whole and not sure and mode.decide("==", size, 0):
            return 0
    except Undecided:
        if isinstance(mode, TraceMode) and type(repeats) is Tensor and is_whole and not repeats.type.shape:
            count = count if isinstance(count, Dim) else mode.bind(lift(mode, repeats), "k")
            fits = mode.any_of(mode.compare("ge", count, 0), mode.compare("eq", size, 0))
            mode.check(fits, "ValueError", NEGATIVE)
            return dim_max(count, 0)
    return size_of(repeats)


def repeat_each(x: Tensor, repeats: Any, axis: int) -> Any:
    """`repeat` with one count for each element: where each part begins is marked, and the marks are counted.

    Raises:
        DTypeError, ShapeError: the counts are no integers, negative, or too few.
    """
    from jitgraph.xp.selecting import must, size_value
    from jitgraph.xp.storable import index_array

    mode, size = x._storage.mode, x.type.shape[axis]
    counts = index_array(repeats, mode, "safe")
    if counts.type.ndim != 1:
        raise errors.ShapeError("object too deep for desired array")
    have = counts.type.shape[0]
    if isinstance(have, int) and have == 1:
        counts = stretched(counts, (size,))
    elif not sizes_agree(mode, size, have, "operands could not be broadcast together with shape ({0},) ({1},)"):
        sizes = [mode.example(d) if isinstance(mode, TraceMode) else d for d in (size, have)]
        raise errors.ShapeError(f"operands could not be broadcast together with shape ({sizes[0]},) ({sizes[1]},)")
    must(mode, EXPORTS["greater_equal"](counts, 0), errors.ShapeError, "repeats may not contain negative values.")
    ends = tensor(EXPORTS["cumsum"](counts), mode)
    total = EXPORTS["sum"](counts)
    count = mode.bind(read(tensor(total, mode)), "k", 0) if isinstance(mode, TraceMode) else int(plain(total))
    marks = tensor(EXPORTS["zeros"](size_value(mode, count + 1), dtype=np.int64), mode)
    begins = tensor(EXPORTS["subtract"](ends, counts), mode)
    marked = apply(R("scatter_add"), marks, begins, EXPORTS["ones_like"](begins), axis=0)
    index = EXPORTS["subtract"](EXPORTS["cumsum"](marked[: size_value(mode, count)]), 1)
    return apply(R("take"), x, index, axis=axis)


@numpy_function(np.tile)
def tile(A: Any, reps: Any) -> Any:
    x = array_tensor(A)
    counts = shape_of(reps, bools=True)
    ndim = max(len(counts), x.type.ndim)
    counts = (*(1,) * (ndim - len(counts)), *counts)
    x = reshape_to(x, (*(1,) * (ndim - x.type.ndim), *x.type.shape))
    shape = x.type.shape
    if not is_writable(x) and _is_empty(x):  # NumPy copies nothing: a read-only view
        return reshape_to(x, tuple(c * d for c, d in zip(counts, shape, strict=True)))
    paired: list[DimLike] = []
    spread: list[DimLike] = []
    for c, d in zip(counts, shape, strict=True):
        paired += [1, d]
        spread += [c, d]
    wide = stretched(reshape_to(x, tuple(paired)), tuple(spread))
    return reshape_to(apply(R("copy"), wide, order="C"), tuple(c * d for c, d in zip(counts, shape, strict=True)))


def _is_empty(x: Tensor) -> bool:
    """Whether there are no elements, by a guard; False if only the run knows."""
    try:
        return x._storage.mode.decide("==", product(x.type.shape), 0)
    except Undecided:
        return False
