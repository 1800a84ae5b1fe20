"""NumPy indexing: basic keys are affine views, integer arrays are `take`, masks are `compress`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.rewrite import constant_array
from jitgraph.ir.types import AxisMap, IndexMap, Shape, elementwise_layout
from jitgraph.modes import TraceMode
from jitgraph.records import dataclass
from jitgraph.sizes import array_shape_text
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    plain,
    read,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    empty_result,
    literal,
    mode_in,
    numpy_function,
    product,
    rewrap,
    tensor,
    translate,
    unwrap,
)
from jitgraph.xp.keys import Item, full_mask, index_dim, index_error, normalised, parse, slice_bounds
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
    mask = full_mask(mode, key, shape)
    if mask is not None:
        return compress_by(mode, x, mask)
    parsed = parse(mode, key, shape)
    if not parsed.advanced:
        view = basic_view(mode, x, parsed.items)
        if not parsed.scalar:
            return EXPORTS["copy"](view, order="K") if parsed.copied else view
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
    """Does NumPy make a view for this key? A 0-d array that stands for an integer makes it copy."""
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (list, bool, np.bool_, np.ndarray)):
            return False
        if type(part) is Tensor and (part.type.kind == "array" or part.type.dtype.kind == "b"):
            return False
    return True


def basic_view(mode: Mode, x: Tensor, items: Sequence[Item]) -> Tensor:
    """The view of a key of integers, slices and new axes; arrays leave their axis whole."""
    own = x.type.shape
    shape: list[DimLike] = []
    axes: list[AxisMap] = []
    axis = 0
    for kind, part in items:
        if kind in ("new", "flag"):
            shape.append(1)
            continue
        if kind == "ellipsis":
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


def arrangement(items: Sequence[Item]) -> tuple[list[Any], list[int], bool]:
    """Index arrays in order, the axes they stand at in the basic view, whether they (and integers) are adjacent."""
    arrays, places = [], []
    marks = []
    at = 0
    for position, (kind, part) in enumerate(items):
        if kind in ("array", "flag"):
            arrays.append(part)
            places.append(at)
            marks.append(position)
        elif kind == "int":
            marks.append(position)
            continue
        at += kind != "ellipsis"
    adjacent = all(b - a == 1 for a, b in pairwise(marks))
    return arrays, places, adjacent


def integer_index(mode: Mode, index: Any, size: DimLike, axis: int, wide: Shape = ()) -> Tensor:
    """An index array, checked and not negative.

    Args:
        wide: what it is broadcast to, if that may be empty where the index is not: then nothing is indexed.
    """
    if type(index) is Tensor:
        mark: Any = index._dim
        if mark is SAFE or (type(mark) is Below and _fits(mode, mark.size, size)):
            return index
    if not isinstance(mode, TraceMode):
        given = np.asarray(plain(index))
        given = given.astype(np.intp)
        outside = (given < -size) | (given >= size)
        if outside.any():
            bad = given[outside].reshape(-1)[0]
            raise errors.IndexingError(f"index {bad} is out of bounds for axis {axis} with size {size}")
        return wrap(mode, mode.lift(np.where(given < 0, given + size, given)))
    data = _known_index(mode, index)
    if data is None and 0 in wide:
        return tensor(index, mode)
    if data is None:
        return wrap(mode, normalised(mode, read(tensor(index, mode)), size, axis, _empty(mode, wide)))
    if data.size == 0 or 0 in wide:
        return literal(mode, np.zeros(data.shape, np.int64))
    empty = _empty(mode, wide)
    if isinstance(size, int) and empty is None:
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
    return wrap(mode, normalised(mode, mode.literal(data), size, axis, empty))


def _empty(mode: TraceMode, wide: Shape) -> Any:
    """Whether some size is 0, known only at run time; None where that cannot be."""
    found = None
    for d in wide:
        if isinstance(d, int) or mode.builder.prove(">", d, 0):
            continue
        none = mode.compare("eq", d, 0)
        found = none if found is None else mode.any_of(found, none)
    return found


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
    """Marks index arrays that are in range, of the array that they are made for, by construction."""


class Below:
    """Marks index arrays whose elements are not negative and below a size: positions in an axis of that size."""

    __slots__ = ("size",)

    def __init__(self, size: DimLike) -> None:
        self.size = size


def _fits(mode: Mode, size: DimLike, other: DimLike) -> bool:
    """Whether one size is surely at most another."""
    return size == other or (isinstance(mode, TraceMode) and mode.builder.prove("<=", size, other) is True)


SAFE: Any = _Safe()


@dataclass(slots=True)
class Gathering:
    """What a key with index arrays names.

    Attributes:
        base: the view that the rest of the key makes; the axes of the index arrays are whole.
        places: the axes of `base` that the index arrays stand for, in order.
        indices: one index array for each, in range and not negative, of sizes that broadcast to `wide`.
        wide: the shape that the index arrays have together.
        front: where the axes of `wide` begin in the result: at the first of `places` if all stand side by side.
        nothing: an indexed axis is empty: there are no indices either, or the check of them fails.
    """

    base: Tensor
    places: list[int]
    indices: list[Tensor]
    wide: Shape
    front: int
    nothing: bool = False

    @property
    def others(self) -> list[int]:
        """The other axes of the base."""
        return [k for k in range(self.base.type.ndim) if k not in self.places]

    @property
    def shape(self) -> Shape:
        """The shape of what is read or written."""
        own = self.base.type.shape
        rest = [own[k] for k in self.others]
        return (*rest[: self.front], *self.wide, *rest[self.front :])


def gathering(
    mode: Mode, x: Tensor, items: Sequence[Item], fits: Callable[[Shape], None] = lambda shape: None
) -> Gathering:
    """Check a key with index arrays against `x`.

    Args:
        fits: called with the shape of what is indexed before the indices are checked, as NumPy looks at values first.

    Raises:
        IndexingError: index arrays do not fit each other, or an index is out of bounds (where anything is indexed).
    """
    base = basic_view(mode, x, items)
    arrays, places, adjacent = arrangement(items)
    names = base_axes(items)
    given = [index_tensor(mode, a) for a in arrays]
    wide = common_index_shape(mode, [i.type.shape for i in given])
    found = Gathering(base, places, given, wide, places[0] if adjacent else 0)
    fits(found.shape)
    found.nothing = any(is_empty(mode, base.type.shape[p]) for p in places)
    found.indices = [
        _checked_index(mode, i, wide, base.type.shape[p], names[p]) for i, p in zip(given, places, strict=True)
    ]
    return found


def is_empty(mode: Mode, size: DimLike) -> bool:
    """Whether an axis has no elements, by proof or under a guard; False where only the run knows."""
    try:
        return mode.decide("==", size, 0)
    except Undecided:
        return False


def _checked_index(mode: Mode, index: Tensor, wide: Shape, size: DimLike, axis: int) -> Tensor:
    """The index array in range and with the sizes of `wide`; what is indexed nowhere needs no check."""
    if isinstance(mode, TraceMode):
        own = index.type.shape
        checked = integer_index(mode, index, size, axis, () if len(own) == len(wide) and 1 not in own else wide)
        return wrap(mode, mode.stretch(read(checked), wide))
    if 0 in wide:
        return wrap(mode, mode.lift(np.zeros(index.type.shape, np.intp)))
    return integer_index(mode, index, size, axis)


def index_tensor(mode: Mode, index: Any) -> Tensor:
    """An index array as a Tensor of `mode`."""
    if type(index) is Tensor and index._storage.mode is mode:
        return index
    return tensor(index, mode)


def _gather(mode: Mode, x: Tensor, items: Sequence[Item]) -> Tensor:
    """A key with index arrays: the rest as a view, then `take`."""
    g = gathering(mode, x, items)
    if g.nothing:
        return empty_result(mode, g.shape, x.type.dtype)
    base, places, others = g.base, g.places, g.others
    count = len(g.wide)
    # NumPy's result has the index's axes outermost in memory, then the others as the base has them
    stored = [k for k in base.type.layout.order if k in others]
    moved = _reordered(base, [*places, *stored])
    order = index_order(g)
    turned = order != list(range(count))
    indices = [_turned(i, order) for i in g.indices] if turned else g.indices
    result = array_tensor(apply(R("take"), moved, *indices, axis=0))
    back = [order.index(k) for k in range(count)]
    rest = [count + stored.index(k) for k in others]
    return _reordered(result, [*rest[: g.front], *back, *rest[g.front :]])


def index_order(g: Gathering) -> list[int]:
    """The order in memory of the axes of `wide` in NumPy's result: of the index arrays if nothing else is repeated."""
    count = len(g.wide)
    if any(g.base.type.shape[k] != 1 for k in g.others):
        return list(range(count))
    return list(elementwise_layout(count, [i.type for i in g.indices]).order)


def _turned(index: Tensor, order: list[int]) -> Tensor:
    """The axes of an index array, the last ones of those in `order`, in that order."""
    shift = len(order) - index.type.ndim
    if shift:
        index = reshape_to(index, (*(1,) * shift, *index.type.shape))
    return _reordered(index, order)


def _reordered(x: Tensor, axes: list[int]) -> Tensor:
    return x if axes == list(range(x.type.ndim)) else transpose(x, axes)


def base_axes(items: Sequence[Item]) -> dict[int, int]:
    """Axis of the basic view to axis of the array, for messages."""
    found = {}
    at = axis = 0
    for kind, _ in items:
        if kind == "ellipsis":
            continue
        if kind != "int":
            found[at] = axis
            at += 1
        axis += kind not in ("new", "flag")
    return found


def common_index_shape(mode: Mode, shapes: list[Shape]) -> Shape:
    """What index arrays broadcast to.

    Raises:
        IndexingError: they do not.
    """
    if len(shapes) == 1:
        return shapes[0]
    message = "shape mismatch: indexing arrays could not be broadcast together with shapes"
    try:
        if isinstance(mode, TraceMode):
            return mode.broadcast_shape(shapes, "", message)
        return np.broadcast_shapes(*shapes)  # type: ignore[arg-type]
    except ValueError:
        known = [tuple(mode.example(d) for d in s) if isinstance(mode, TraceMode) else s for s in shapes]
        raise index_error(mode, f"{message} {' '.join(array_shape_text(s) for s in known)} ") from None


def count_of(mode: TraceMode, mask: Tensor) -> DimLike:
    """The number of true elements of a mask, as a size; the same one for masks that are computed alike."""
    value = read(mask)
    known = constant_array(value)
    if known is not None:
        return int(np.count_nonzero(known))
    found = mode.count_of_mask(value)
    if found is None:
        total = mode.apply(R("reduce_sum"), [value], {"axes": tuple(range(mask.type.ndim)), "keepdims": False})[0]
        found = mode.bind(total, "k", 0, product(mask.type.shape))
        mode.note_count(value, found)
    return found


def compress_by(mode: Mode, x: Tensor, mask: Tensor) -> Tensor:
    """`x[mask]`, the mask of the shape of `x`."""
    if not isinstance(mode, TraceMode):
        return apply(R("compress"), x, mask, size=None)  # type: ignore[no-any-return]
    size = count_of(mode, mask)
    value = mode.matched(read(mask), x.type.shape)
    return wrap(mode, mode.apply(R("compress"), [read(x), value], {"size": size})[0])


@numpy_function(np.nonzero)
def nonzero(a: Any) -> Any:
    """The indices of what is not zero, one array an axis: the columns of one array."""
    found = true_positions(a)
    if len(found) == 1:
        return found
    table = EXPORTS["stack"](found, axis=1)
    columns = []
    for k, t in enumerate(found):
        column = getitem(table, (slice(None), k))
        column._dim = t._dim
        columns.append(column)
    return tuple(columns)


def true_positions(a: Any, known: DimLike | None = None) -> tuple[Tensor, ...]:
    """The indices of what is not zero, one new array an axis; their number may be known."""
    x = array_tensor(a)
    if x.type.ndim == 0:
        raise errors.ShapeError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    mode = x._storage.mode
    if x.type.dtype.kind != "b":
        x = EXPORTS["not_equal"](x, 0)
    count: DimLike | None = known
    if isinstance(mode, TraceMode):
        count = count_of(mode, x) if known is None else known
    results = mode.apply(R("nonzero"), [read(x)], {"size": count})
    found = []
    for r, size in zip(results, x.type.shape, strict=True):
        t = wrap(mode, r)
        mark: Any = Below(size)
        t._dim = mark
        found.append(t)
    return tuple(found)


EXPORTS["true_positions"] = true_positions


@numpy_function(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return true_positions(ravel(array_tensor(a)))[0]


def iterate(x: Tensor) -> Iterator[Any]:
    """The parts of `x` along its first axis."""
    t = x.type
    if not t.shape:
        what = "iteration over a 0-d array" if t.kind == "array" else f"'{x.__class__.__name__}' object is not iterable"
        raise errors.DTypeError(what)
    count = len(x)
    return (getitem(x, k) for k in range(count))
