"""NumPy indexing: basic keys are affine views, integer arrays are `take`, masks are `compress`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode, constant_array, shape_text
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    dim_tensor,
    plain,
    read,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axis_of,
    literal,
    mode_in,
    numpy_function,
    product,
    rewrap,
    tensor,
    translate,
    unwrap,
)
from jitgraph.xp.keys import full_mask, index_dim, index_error, match_mask, normalised, parse, slice_bounds
from jitgraph.xp.shape import ravel, reshape_to, transpose

# --- reading


def getitem(x: Tensor, key: Any) -> Any:
    """`x[key]`."""
    mode = x._storage.mode
    key_mode = mode_in((key,))
    if key_mode is not None and key_mode is not mode and key_mode.name != "eager":
        x = tensor(x, key_mode)
        mode = key_mode
    if mode is EAGER:
        return _eager_getitem(x, key)
    shape = x.type.shape
    if x.type.is_python:
        raise errors.DTypeError(f"'{x.__class__.__name__}' object is not subscriptable")
    if x.type.kind != "array":
        x = array_tensor(x)
    mask = full_mask(mode, key, len(shape))
    if mask is not None:
        return compress_by(mode, x, mask)
    parsed = parse(mode, key, shape)
    if not parsed.advanced:
        view = basic_view(mode, x, parsed.items)
        if not parsed.scalar:
            return view
        return wrap(mode, mode.apply(R("as_kind"), [read(view)], {"kind": "np_scalar"})[0])
    return _gather(mode, x, parsed.items)


def _eager_getitem(x: Tensor, key: Any) -> Any:
    array = plain(x)
    try:
        result = array[unwrap(key)]
    except (IndexError, TypeError, ValueError) as error:
        raise translate(error, "x[...]", (x,)) from None
    if not isinstance(result, np.ndarray) or not isinstance(array, np.ndarray) or not _is_basic(key):
        return rewrap(result)
    view = basic_view(EAGER, x, parse(EAGER, key, array.shape).items)
    view._seen = (x._storage.value, None, result)
    return view


def _is_basic(key: Any) -> bool:
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (list, bool, np.bool_)):
            return False
        if type(part) is Tensor or isinstance(part, np.ndarray):
            t = part.type if type(part) is Tensor else part
            if t.ndim or t.dtype.kind == "b":
                return False
    return True


def basic_view(mode: Mode, x: Tensor, items: Sequence[tuple[str, Any]]) -> Tensor:
    """The view of a key of integers, slices and new axes; arrays leave their axis whole."""
    own = x.type.shape
    shape: list[DimLike] = []
    axes: list[AxisMap] = []
    axis = 0
    for kind, part in items:
        if kind in ("new", "empty"):
            shape.append(int(kind == "new"))
            continue
        size = own[axis]
        if kind == "int":
            axes.append(AxisMap(index_dim(mode, part, size, axis), 0, None))
        elif kind == "slice":
            if part.start is None and part.stop is None and part.step is None:
                offset, step, length = 0, 1, size
            else:
                offset, step, length = slice_bounds(mode, part, size)  # type: ignore[assignment]
            axes.append(AxisMap(offset, step, len(shape)))
            shape.append(length)
        else:
            axes.append(AxisMap(0, 1, len(shape)))
            shape.append(size)
        axis += 1
    return view_of(x, IndexMap(tuple(shape), tuple(axes)))


def arrangement(items: Sequence[tuple[str, Any]]) -> tuple[list[Any], list[int], bool]:
    """Index arrays in order, the axes they stand at in the basic view, whether they (and integers) are adjacent."""
    arrays, places = [], []
    marks = []
    at = 0
    for position, (kind, part) in enumerate(items):
        if kind == "array":
            arrays.append(part)
            places.append(at)
            marks.append(position)
        elif kind == "int":
            marks.append(position)
            continue
        at += 1
    adjacent = all(b - a == 1 for a, b in pairwise(marks))
    return arrays, places, adjacent


def integer_index(mode: Mode, index: Any, size: DimLike, axis: int) -> Tensor:
    """An index array, checked and not negative."""
    if type(index) is Tensor and index._dim is SAFE:
        return index
    if not isinstance(mode, TraceMode):
        given = np.asarray(plain(index))
        given = given.astype(np.intp) if given.size == 0 else given
        outside = (given < -size) | (given >= size)
        if outside.any():
            bad = given[outside].reshape(-1)[0]
            raise errors.IndexingError(f"index {bad} is out of bounds for axis {axis} with size {size}")
        return wrap(mode, mode.lift(np.where(given < 0, given + size, given)))
    data = _known_index(mode, index)
    if data is not None:
        if data.size == 0:
            return literal(mode, data)
        if isinstance(size, int):
            wrong = (data < -size) | (data >= size)
            if wrong.any():
                bad = data[wrong].reshape(-1)[0]
                raise index_error(mode, f"index {bad} is out of bounds for axis {axis} with size {size}")
            return literal(mode, np.where(data < 0, data + size, data))
        low, high = int(data.min()), int(data.max())
        try:
            if low >= 0 and mode.decide("<", high, size):
                return literal(mode, data)
        except Undecided:
            pass
        return wrap(mode, normalised(mode, mode.literal(data), size, axis))
    return wrap(mode, normalised(mode, read(tensor(index, mode)), size, axis))


def _known_index(mode: TraceMode, index: Any) -> np.ndarray | None:
    """The elements of an index array that the program spells out; None if they are data."""
    if type(index) is not Tensor and mode_in((index,)) is None:
        if isinstance(index, np.ndarray) and index.size > 1:
            known = constant_array(mode.lift(index))  # an array from outside may be data
        else:
            known = np.asarray(index)
    elif type(index) is Tensor and not index._steps and index._storage.mode is mode:
        known = constant_array(read(index))
    else:
        return None
    return None if known is None else known.astype(np.int64)


class _Safe:
    """Marks index arrays that are in range by construction."""


SAFE: Any = _Safe()


def _gather(mode: Mode, x: Tensor, items: Sequence[tuple[str, Any]]) -> Tensor:
    """A key with index arrays: basic part as a view, then `take`."""
    base = basic_view(mode, x, items)
    arrays, places, adjacent = arrangement(items)
    axes_of_base = base_axes(items)
    indices = [integer_index(mode, a, base.type.shape[p], axes_of_base[p]) for a, p in zip(arrays, places, strict=True)]
    index, flat_base, axis = flattened(mode, base, indices, places)
    count = index.type.ndim
    others = [k for k in range(base.type.ndim) if k not in places]
    stored = [k for k in base.type.layout.order if k not in places]
    if (axis or stored != others) and others:
        # NumPy's result has the index's axes outermost in memory, then the others as the base has them
        number = {k: j + (j >= axis) for j, k in enumerate(others)}
        moved = transpose(flat_base, [axis, *(number[k] for k in stored)])
        result = apply(R("take"), moved, index, axis=0)
        before = axis if adjacent else 0
        rest = [count + stored.index(k) for k in others]
        return transpose(array_tensor(result), [*rest[:before], *range(count), *rest[before:]])  # type: ignore[no-any-return]
    order = index.type.layout.order
    if not others and order != tuple(range(count)):  # single elements lie as their indices do
        result = array_tensor(apply(R("take"), flat_base, transpose(index, order), axis=0))
        return transpose(result, [order.index(k) for k in range(count)])  # type: ignore[no-any-return]
    result = apply(R("take"), flat_base, index, axis=axis)
    return array_tensor(result) if not result.type.shape else result


def base_axes(items: Sequence[tuple[str, Any]]) -> dict[int, int]:
    """Axis of the basic view to axis of the array, for messages."""
    found = {}
    at = axis = 0
    for kind, _ in items:
        if kind != "int":
            found[at] = axis
            at += 1
        axis += kind not in ("new", "empty")
    return found


def flattened(mode: Mode, base: Tensor, indices: list[Tensor], places: list[int]) -> tuple[Tensor, Tensor, int]:
    """Several index arrays as one on the product of their axes."""
    if len(indices) == 1:
        return indices[0], base, places[0]
    first = places[0]
    order = [k for k in range(base.type.ndim) if k not in places]
    order[first:first] = places
    moved = transpose(base, order) if order != list(range(base.type.ndim)) else base
    sizes = [base.type.shape[p] for p in places]
    wide = common_index_shape(mode, [i.type.shape for i in indices])
    if isinstance(mode, TraceMode):
        indices = [wrap(mode, mode.stretch(read(i), wide)) for i in indices]
    flat = indices[0]
    for size, index in zip(sizes[1:], indices[1:], strict=True):
        scale = size if isinstance(size, int) else as_kind(dim_tensor(mode, size), "np_scalar")
        flat = EXPORTS["add"](EXPORTS["multiply"](flat, scale), index)
    shape = moved.type.shape
    merged = reshape_to(moved, (*shape[:first], product(sizes), *shape[first + len(sizes) :]))
    return flat, merged, first


def common_index_shape(mode: Mode, shapes: list[Shape]) -> Shape:
    """What index arrays broadcast to.

    Raises:
        IndexingError: they do not.
    """
    try:
        return mode.broadcast_shape(shapes, "") if isinstance(mode, TraceMode) else np.broadcast_shapes(*shapes)  # type: ignore[arg-type]
    except ValueError:
        texts = " ".join(shape_text(s) for s in shapes)
        raise index_error(
            mode, f"shape mismatch: indexing arrays could not be broadcast together with shapes {texts}"
        ) from None


def compress_by(mode: Mode, x: Tensor, mask: Tensor) -> Tensor:
    """`x[mask]`, the mask of the shape of `x`."""
    match_mask(mode, mask.type.shape, x.type.shape, 0)
    if not isinstance(mode, TraceMode):
        return apply(R("compress"), x, mask, symbol="k")  # type: ignore[no-any-return]
    value = mode.stretch(read(mask), x.type.shape)
    count = mode.fresh_symbol("k", "value", 0, product(x.type.shape))
    mode.counted(read(mask), count)
    return wrap(mode, mode.apply(R("compress"), [read(x), value], {"symbol": str(count)})[0])


@numpy_function(np.nonzero)
def nonzero(a: Any) -> Any:
    x = array_tensor(a)
    if x.type.ndim == 0:
        raise errors.ShapeError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    mode = x._storage.mode
    if x.type.dtype.kind != "b":
        x = EXPORTS["not_equal"](x, 0)
    if isinstance(mode, TraceMode):
        count = mode.fresh_symbol("k", "value", 0, product(x.type.shape))
        mode.counted(read(x), count)
        symbol = str(count)
    else:
        symbol = "k"
    results = mode.apply(R("nonzero"), [read(x)], {"symbol": symbol})
    found = []
    for r in results:
        t = wrap(mode, r)
        t._dim = SAFE
        found.append(t)
    return tuple(found)


@numpy_function(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return nonzero(ravel(array_tensor(a)))[0]


@numpy_function(np.argwhere)
def argwhere(a: Any) -> Any:
    return EXPORTS["stack"](nonzero(a), axis=1)


@numpy_function(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    x = array_tensor(a, mode_in((condition, a)))
    if axis is None:
        x, axis = ravel(x), 0
    k = axis_of(axis, x.type.ndim, "compress")
    return getitem(x, (*(slice(None),) * k, tensor(condition, x._storage.mode)))


@numpy_function(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    mode = mode_in((condition, arr))
    return getitem(ravel(array_tensor(arr, mode)), ravel(EXPORTS["not_equal"](array_tensor(condition, mode), 0)))


@numpy_function(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at integer positions; `mode` "wrap" and "clip" change what is out of range."""
    m = mode_in((a, indices)) or EAGER
    x = array_tensor(a, m)
    if axis is None:
        x, axis = ravel(x), 0
    k = axis_of(axis, x.type.ndim, "take")
    size = x.type.shape[k]
    index = tensor(indices, m)
    if mode == "clip":
        index = EXPORTS["clip"](index, 0, dim_tensor(m, size - 1))
    elif mode == "wrap":
        index = EXPORTS["remainder"](index, dim_tensor(m, size))
    elif mode != "raise":
        raise errors.ShapeError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    checked = integer_index(m, index, size, k)
    if index.type.ndim == 0:
        checked = as_kind(checked, "np_scalar") if m.name == "trace" else checked
    result = apply(R("take"), x, checked, axis=k)
    from jitgraph.xp.core import deliver

    return deliver(result, out)


@numpy_function(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    m = mode_in((arr, indices))
    x, index = array_tensor(arr, m), array_tensor(indices, m)
    if axis is None:
        x, axis = ravel(x), 0
    k = axis_of(axis, x.type.ndim, "take_along_axis")
    key = []
    for a, d in enumerate(x.type.shape):
        if a == k:
            key.append(index)
        else:
            along = EXPORTS["arange"](dim_tensor(x._storage.mode, d))
            key.append(
                reshape_to(tensor(along, x._storage.mode), tuple(d if i == a else 1 for i in range(x.type.ndim)))
            )
    return getitem(x, tuple(key))


def iterate(x: Tensor) -> Iterator[Any]:
    """The parts of `x` along its first axis."""
    t = x.type
    if not t.shape:
        what = "iteration over a 0-d array" if t.kind == "array" else f"'{x.__class__.__name__}' object is not iterable"
        raise errors.DTypeError(what)
    count = len(x)
    return (getitem(x, k) for k in range(count))
