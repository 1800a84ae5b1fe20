"""NumPy indexing: basic keys are affine views, integer arrays are `take`, masks are `compress`, `where` and `expand`.

Checks: a traced index gets a check with NumPy's message, is made non-negative, and is bound to a symbol; sizes and loop
indices that are proven in range need no check, those of arguments become guards. Slices clamp likewise.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import Dim, DimLike, dim_max, dim_min, floordiv
from jitgraph.ir.graph import Block, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode, constant_of, shape_text
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    assign,
    dim_tensor,
    lift,
    make,
    plain,
    read,
    set_version,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axis_of,
    cast,
    mode_in,
    numpy_function,
    operand,
    product,
    rewrap,
    tensor,
    translate,
    unwrap,
)
from jitgraph.xp.operators import dim_of
from jitgraph.xp.shape import cut, ravel, reshape_to, transpose

_BAD_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
)


def _loc(mode: Mode) -> Any:
    return mode.locate() if isinstance(mode, TraceMode) else None


def _index_error(mode: Mode, text: str) -> errors.IndexingError:
    return errors.IndexingError(errors.describe(text, _loc(mode)))


# --- one integer


def index_dim(mode: Mode, index: Any, size: DimLike, axis: int) -> DimLike:
    """An integer index as a dim in range(size).

    Raises:
        IndexingError: out of bounds, for certain or (under a guard) for the example sizes.
    """
    i = dim_of(index)
    if i is None and type(index) is Tensor and isinstance(mode, TraceMode):
        known = constant_of(read(index)) if index.type.ndim == 0 else None
        if known is None:
            return _checked(mode, read(index), size, axis)
        i = int(known)
    elif i is None:
        i = operator.index(plain(index))
    if isinstance(i, int) and isinstance(size, int):
        if not -size <= i < size:
            raise _index_error(mode, f"index {i} is out of bounds for axis {axis} with size {size}")
        return i + size if i < 0 else i
    try:
        if mode.decide(">=", i, 0):
            fits, found = mode.decide("<", i, size), i
        else:
            fits, found = mode.decide(">=", i + size, 0), i + size
    except Undecided:
        assert isinstance(mode, TraceMode)
        return _checked_dim(mode, i, size, axis)
    if not fits:
        raise _index_error(mode, f"index {_shown(mode, i)} is out of bounds for axis {axis} with size {_shown(mode, size)}")
    return found


def _shown(mode: Mode, d: DimLike) -> DimLike:
    """An argument's size as the number it has in this call."""
    if isinstance(d, Dim) and isinstance(mode, TraceMode):
        from jitgraph.ir.dims import evaluate, symbols

        env = {}
        for name in symbols(d):
            hint = mode.builder.graph.symbols[name].hint
            if hint is None:
                return d
            env[name] = hint
        return evaluate(d, env)
    return d


def _checked_dim(mode: TraceMode, i: DimLike, size: DimLike, axis: int) -> DimLike:
    """A loop index or data-dependent size: its sign is often known, then only one side is checked."""
    message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    if mode.builder.prove(">=", i, 0):
        if not mode.builder.prove("<", i, size):
            mode.check(mode.compare("lt", i, size), "IndexError", message, i, size)
        return i
    if mode.builder.prove("<", i, 0):
        mode.check(mode.compare("ge", i + size, 0), "IndexError", message, i, size)
        return i + size
    return _checked(mode, mode.dim_value(i), size, axis)


def _checked(mode: TraceMode, value: Value, size: DimLike, axis: int) -> DimLike:
    """A run-time index: checked, made non-negative, bound."""
    return mode.bind(normalised(mode, value, size, axis), "i", 0, size - 1)


def normalised(mode: TraceMode, value: Value, size: DimLike, axis: int) -> Value:
    """Run-time indices (a scalar or an array) checked and made non-negative."""
    t = value.type
    if t.dtype.kind not in "iu":
        raise _index_error(mode, _BAD_INDEX)
    apply_ = mode.builder.apply
    length = mode.dim_value(size)
    if t.dtype != dtypes.I64 and not t.is_python:
        value = apply_(R("cast"), value, dtype=dtypes.I64)[0]
    message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    below = apply_(R("lt"), value, length)[0]
    if t.dtype.kind == "u":
        mode.check(below, "IndexError", message, value, length)
        return value
    above = apply_(R("ge"), value, apply_(R("neg"), length)[0])[0]
    mode.check(apply_(R("logical_and"), below, above)[0], "IndexError", message, value, length)
    wrapped = apply_(R("add"), value, length)[0]
    chosen = apply_(R("where"), apply_(R("lt"), value, 0)[0], wrapped, value)[0]
    return chosen if chosen.type.shape or chosen.type.kind != "array" else apply_(R("as_kind"), chosen, kind="np_scalar")[0]


# --- slices


def slice_bounds(mode: Mode, s: slice, size: DimLike) -> tuple[DimLike, DimLike, DimLike]:
    """(offset, step, length) of a slice of an axis, clamped as Python does.

    Raises:
        ShapeError: the step is zero.
    """
    step = _step(mode, s.step)
    start, stop = _bound(mode, s.start), _bound(mode, s.stop)
    if isinstance(size, int) and all(isinstance(b, (int, type(None))) for b in (start, stop)) and isinstance(step, int):
        first, _, by = slice(start, stop, step).indices(size)
        length = len(range(*slice(start, stop, step).indices(size)))
        return (first if length else 0), by, length
    forward = isinstance(step, Dim) or step > 0
    stride = step if forward else -step
    if start is None and stop is None:
        return (0, step, _ceil(size, stride)) if forward else (size - 1, step, _ceil(size, stride))
    try:
        first, length = _decided(mode, start, stop, size, forward)
    except Undecided:
        assert isinstance(mode, TraceMode)
        first, length = _at_run_time(mode, start, stop, size, forward)
    return first, step, _ceil(length, stride)


def _ceil(length: DimLike, stride: DimLike) -> DimLike:
    return length if stride == 1 else floordiv(length + stride - 1, stride)


def _step(mode: Mode, step: Any) -> DimLike:
    if step is None:
        return 1
    d = _bound(mode, step)
    assert d is not None
    if isinstance(d, int):
        if d == 0:
            raise errors.ShapeError("slice step cannot be zero")
        return d
    try:
        if mode.decide("==", d, 0):
            raise errors.ShapeError("slice step cannot be zero")
        if mode.decide(">", d, 0):
            return d
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("gt", d, 0), "deoptimise", "a slice step that is not positive")
        return d
    raise errors.TraceError(
        errors.describe("a slice with a negative step that is not a constant", _loc(mode), remedy="reverse with x[::-1] first.")
    )


def _bound(mode: Mode, bound: Any) -> DimLike | None:
    """A slice bound as a dim; run-time integers are bound to symbols without a range."""
    if bound is None:
        return None
    d = dim_of(bound)
    if d is not None:
        return d
    if type(bound) is Tensor and isinstance(mode, TraceMode) and bound._storage.mode is mode:
        t = bound.type
        if t.dtype.kind not in "iu" or t.shape:
            raise errors.DTypeError("slice indices must be integers or None or have an __index__ method")
        return mode.bind(read(bound), "b")
    try:
        return operator.index(plain(bound))
    except TypeError:
        raise errors.DTypeError("slice indices must be integers or None or have an __index__ method") from None


def _decided(
    mode: Mode, start: DimLike | None, stop: DimLike | None, size: DimLike, forward: bool
) -> tuple[DimLike, DimLike]:
    """Offset and distance of a slice by proofs and guards."""
    low, high = (0, size) if forward else (-1, size - 1)
    first = _from_end(mode, start, size, low if forward else high)
    last = _from_end(mode, stop, size, high if forward else low)

    def distance() -> DimLike:
        return last - first if forward else first - last

    if not mode.decide(">=", distance(), 0):
        return 0, 0
    if forward:
        if not mode.decide(">=", first, 0):
            first = 0
            if not mode.decide(">=", last, 0):
                return 0, 0
        if not mode.decide("<=", last, size):
            last = size
            if not mode.decide("<=", first, size):
                return 0, 0
    else:
        if not mode.decide("<=", first, size - 1):
            first = size - 1
            if not mode.decide(">=", distance(), 0):
                return 0, 0
        if not mode.decide(">=", last, -1):
            last = -1
            if not mode.decide(">=", distance(), 0):
                return 0, 0
    return first, distance()


def _from_end(mode: Mode, bound: DimLike | None, size: DimLike, default: DimLike) -> DimLike:
    if bound is None:
        return default
    return bound if mode.decide(">=", bound, 0) else bound + size


def _at_run_time(
    mode: TraceMode, start: DimLike | None, stop: DimLike | None, size: DimLike, forward: bool
) -> tuple[DimLike, DimLike]:
    """Offset and distance of a slice whose bounds are known when the code runs: clamped there."""
    low, high = (0, size) if forward else (-1, size - 1)
    first = (low if forward else high) if start is None else _clamped(mode, start, size, low, high)
    last = (high if forward else low) if stop is None else _clamped(mode, stop, size, low, high)
    length = last - first if forward else first - last
    if not mode.builder.prove(">=", length, 0):
        length = dim_max(length, 0)
    return first, length


def _clamped(mode: TraceMode, bound: DimLike, size: DimLike, low: DimLike, high: DimLike) -> DimLike:
    prove = mode.builder.prove
    if prove(">=", bound, 0):
        return bound if prove("<=", bound, high) else dim_min(bound, high)
    if prove("<", bound, 0):
        return dim_max(bound + size, low)
    apply_ = mode.builder.apply
    value = mode.dim_value(bound)
    shifted = apply_(R("where"), apply_(R("lt"), value, 0)[0], apply_(R("add"), value, mode.dim_value(size))[0], value)[0]
    clamped = apply_(R("minimum"), apply_(R("maximum"), shifted, mode.dim_value(low))[0], mode.dim_value(high))[0]
    if clamped.type.kind == "array":
        clamped = apply_(R("as_kind"), clamped, kind="np_scalar")[0]
    return mode.bind(clamped, "b", low, high)


# --- keys


class Key:
    """A parsed key: one entry per axis of the base, or per new axis.

    Attributes:
        items: ("new",), ("slice", s), ("int", i), ("array", index Tensor or array), in order.
        scalar: integers for all axes and nothing else: the result is a scalar.
    """

    __slots__ = ("advanced", "items", "scalar")

    def __init__(self, items: list[tuple[str, Any]], scalar: bool) -> None:
        self.items = items
        self.scalar = scalar
        self.advanced = any(kind == "array" for kind, _ in items)


def parse(mode: Mode, key: Any, shape: Shape) -> Key:
    """Check a key and fill it up to all axes.

    Raises:
        IndexingError: too many indices, two ellipses, something that is no index.
    """
    parts = key if isinstance(key, tuple) else (key,)
    items: list[tuple[str, Any]] = []
    used = 0
    ellipsis_at = -1
    for part in parts:
        kind, consumed = _classify(mode, part)
        if kind == "ellipsis":
            if ellipsis_at >= 0:
                raise _index_error(mode, "an index can only have a single ellipsis ('...')")
            ellipsis_at = len(items)
            continue
        if kind == "mask":
            mask = array_tensor(part, mode)
            if mask.type.ndim == 0:
                items.append(("new", None))
                if not bool(part):
                    items[-1] = ("array", np.zeros(0, np.int64))
                    items.insert(len(items) - 1, ("new", None))
                continue
            items.append(("mask", mask))
            used += consumed
            continue
        items.append((kind, part))
        used += consumed
    if used > len(shape):
        raise _index_error(mode, f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    fill: list[tuple[str, Any]] = [("slice", slice(None))] * (len(shape) - used)
    at = len(items) if ellipsis_at < 0 else ellipsis_at
    scalar = ellipsis_at < 0 and not fill and all(kind == "int" for kind, _ in items)
    items[at:at] = fill
    return Key(_spread_masks(mode, items, shape), scalar)


def _classify(mode: Mode, part: Any) -> tuple[str, int]:
    if part is None:
        return "new", 0
    if part is Ellipsis:
        return "ellipsis", 0
    kind = type(part)
    if kind is slice:
        return "slice", 1
    if kind is int:
        return "int", 1
    if kind is bool or kind is np.bool_:
        return "mask", 0
    if kind is Tensor or isinstance(part, np.ndarray):
        t = part.type if kind is Tensor else part
        if t.dtype.kind == "b":
            return "mask", t.ndim
        if t.dtype.kind not in "iu":
            if t.ndim and not isinstance(part, Tensor) and part.size == 0:
                return "array", 1
            raise _index_error(mode, "arrays used as indices must be of integer (or boolean) type" if t.ndim else _BAD_INDEX)
        return ("int" if t.ndim == 0 else "array"), 1
    if isinstance(part, (list, tuple)):
        made = tensor(part, mode).type if mode_in(part) is not None else np.asarray(part)
        if made.dtype.kind == "b":
            return "mask", made.ndim
        if made.dtype.kind in "iu" or (isinstance(made, np.ndarray) and made.size == 0):
            return "array", 1
        raise _index_error(mode, "arrays used as indices must be of integer (or boolean) type")
    if isinstance(part, np.integer) or hasattr(part, "__index__"):
        return "int", 1
    raise _index_error(mode, _BAD_INDEX)


def _spread_masks(mode: Mode, items: list[tuple[str, Any]], shape: Shape) -> list[tuple[str, Any]]:
    """Masks beside other indices as integer arrays, one an axis."""
    out: list[tuple[str, Any]] = []
    axis = 0
    for kind, part in items:
        if kind != "mask":
            out.append((kind, part))
            axis += kind != "new"
            continue
        mask: Tensor = part
        _match_mask(mode, mask, shape[axis : axis + mask.type.ndim], axis)
        out.extend(("array", index) for index in nonzero(mask))
        axis += mask.type.ndim
    return out


def _match_mask(mode: Mode, mask: Tensor, sizes: Shape, first: int) -> None:
    for k, (have, wanted) in enumerate(zip(mask.type.shape, sizes, strict=True)):
        if have == wanted:
            continue
        message = (
            f"boolean index did not match indexed array along axis {first + k}; size of axis is {{0}} but size of "
            "corresponding boolean axis is {1}"
        )
        try:
            same = mode.decide("==", have, wanted)
        except Undecided:
            assert isinstance(mode, TraceMode)
            mode.check(mode.compare("eq", have, wanted), "IndexError", message, wanted, have)
            continue
        if not same:
            raise _index_error(mode, message.format(_shown(mode, wanted), _shown(mode, have)))


def _full_mask(mode: Mode, key: Any, ndim: int) -> Tensor | None:
    """The mask of `x[mask]` if that is the whole key and it covers all axes."""
    if isinstance(key, tuple):
        parts = [p for p in key if p is not Ellipsis]
        if len(parts) != 1:
            return None
        (key,) = parts
    if isinstance(key, list) and key:
        key = tensor(key, mode) if mode_in(key) is not None else np.asarray(key)
    return array_tensor(key, mode) if _mask_rank(key) == ndim else None


def _mask_rank(key: Any) -> int:
    """Number of axes of a boolean array; 0 for anything else."""
    if type(key) is Tensor:
        return key.type.ndim if key.type.dtype.kind == "b" else 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype.kind == "b" else 0


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
    if x.type.kind != "array":
        x = array_tensor(x)
    mask = _full_mask(mode, key, len(shape))
    if mask is not None:
        return compress_by(mode, x, mask)
    parsed = parse(mode, key, shape)
    if not parsed.advanced:
        view = basic_view(mode, x, parsed.items)
        return as_kind(view, "np_scalar") if parsed.scalar else view
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
        if kind == "new":
            shape.append(1)
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


def _arrangement(items: Sequence[tuple[str, Any]]) -> tuple[list[Any], list[int], bool]:
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
    adjacent = all(b - a == 1 for a, b in zip(marks, marks[1:], strict=False))
    return arrays, places, adjacent


def _integer_index(mode: Mode, index: Any, size: DimLike, axis: int) -> Tensor:
    """An index array, checked and not negative."""
    if type(index) is Tensor and index._dim is SAFE:
        return index
    if not isinstance(mode, TraceMode):
        data = np.asarray(plain(index))
        data = data.astype(np.intp) if data.size == 0 else data
        wrong = (data < -size) | (data >= size)
        if wrong.any():
            bad = data[wrong].reshape(-1)[0]
            raise errors.IndexingError(f"index {bad} is out of bounds for axis {axis} with size {size}")
        return wrap(mode, mode.lift(np.where(data < 0, data + size, data)))
    if type(index) is not Tensor or index._storage.mode is not mode:
        data = np.asarray(unwrap(index)) if mode_in((index,)) is not mode else None
        if data is not None:
            data = data.astype(np.int64) if data.dtype != np.int64 else data
            if isinstance(size, int) or data.size == 0:
                wrong = (data < -size) | (data >= size)
                if wrong.any():
                    raise _index_error(mode, f"index {data[wrong].reshape(-1)[0]} is out of bounds for axis {axis} with size {size}")
                return wrap(mode, mode.lift(np.where(data < 0, data + size, data)))
            low, high = int(data.min()), int(data.max())
            if low >= 0 and mode.decide("<", high, size):
                return wrap(mode, mode.lift(data))
            return wrap(mode, normalised(mode, mode.lift(data), size, axis))
    return wrap(mode, normalised(mode, read(tensor(index, mode)), size, axis))


class _Safe:
    """Marks index arrays that are in range by construction."""


SAFE: Any = _Safe()


def _gather(mode: Mode, x: Tensor, items: Sequence[tuple[str, Any]]) -> Tensor:
    """A key with index arrays: basic part as a view, then `take`."""
    base = basic_view(mode, x, items)
    arrays, places, adjacent = _arrangement(items)
    axes_of_base = _base_axes(items)
    indices = [_integer_index(mode, a, base.type.shape[p], axes_of_base[p]) for a, p in zip(arrays, places, strict=True)]
    index, flat_base, axis = _flattened(mode, base, indices, places)
    result = apply(R("take"), flat_base, index, axis=axis)
    if not adjacent and axis:
        count = index.type.ndim
        order = [*range(axis, axis + count), *range(axis), *range(axis + count, result.type.ndim)]
        result = transpose(array_tensor(result), order)
    return array_tensor(result) if not result.type.shape else result


def _base_axes(items: Sequence[tuple[str, Any]]) -> dict[int, int]:
    """Axis of the basic view to axis of the array, for messages."""
    found = {}
    at = axis = 0
    for kind, _ in items:
        if kind != "int":
            found[at] = axis
            at += 1
        axis += kind != "new"
    return found


def _flattened(mode: Mode, base: Tensor, indices: list[Tensor], places: list[int]) -> tuple[Tensor, Tensor, int]:
    """Several index arrays as one on the product of their axes."""
    if len(indices) == 1:
        return indices[0], base, places[0]
    first = places[0]
    order = [k for k in range(base.type.ndim) if k not in places]
    order[first:first] = places
    moved = transpose(base, order) if order != list(range(base.type.ndim)) else base
    sizes = [base.type.shape[p] for p in places]
    flat = indices[0]
    for size, index in zip(sizes[1:], indices[1:], strict=True):
        scale = size if isinstance(size, int) else as_kind(dim_tensor(mode, size), "np_scalar")
        flat = EXPORTS["add"](EXPORTS["multiply"](flat, scale), index)
    shape = moved.type.shape
    merged = reshape_to(moved, (*shape[:first], product(sizes), *shape[first + len(sizes) :]))
    return flat, merged, first


def compress_by(mode: Mode, x: Tensor, mask: Tensor) -> Tensor:
    """`x[mask]`, the mask of the shape of `x`."""
    _match_mask(mode, mask, x.type.shape, 0)
    if not isinstance(mode, TraceMode):
        return apply(R("compress"), x, mask, symbol="k")  # type: ignore[no-any-return]
    value = mode.stretch(read(mask), x.type.shape)
    count = mode.fresh_symbol("k", "value", 0, product(x.type.shape))
    mode.counted(value, count)
    return wrap(mode, mode.apply(R("compress"), [read(x), value], {"symbol": str(count)})[0])


@numpy_function(np.nonzero)
def nonzero(a: Any) -> Any:
    x = array_tensor(a)
    if x.type.ndim == 0:
        raise errors.ShapeError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
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
    checked = _integer_index(m, index, size, k)
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
            key.append(reshape_to(tensor(along, x._storage.mode), tuple(d if i == a else 1 for i in range(x.type.ndim))))
    return getitem(x, tuple(key))


# --- writing


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`."""
    mode = x._storage.mode
    other = mode_in((key, value))
    if mode is EAGER and (other is None or other is EAGER):
        if not isinstance(plain(x), np.ndarray):
            raise errors.DTypeError(f"'{type(plain(x)).__name__}' object does not support item assignment")
        try:
            plain(x)[unwrap(key)] = unwrap(value)
        except (IndexError, TypeError, ValueError) as error:
            if "read-only" in str(error):
                raise errors.ReadOnlyError(str(error)) from None
            raise translate(error, "x[...] = y", (x, value)) from None
        return
    t = x.type
    if t.kind != "array":
        raise errors.DTypeError(f"'{x.__class__.__name__}' object does not support item assignment")
    if mode is EAGER:
        assert other is not None
        from jitgraph.tensor import _promote

        mode = _promote(x._storage, other)
    if isinstance(value, (list, tuple)):
        value = tensor(value, mode)
    mask = _full_mask(mode, key, len(t.shape))
    if mask is not None:
        _masked_write(mode, x, mask, value)
        return
    lower = _leading_mask(mode, x, key)
    if lower is not None and _is_single(value):
        wide = reshape_to(lower, (*lower.type.shape, *(1,) * (t.ndim - lower.type.ndim)))
        _masked_write(mode, x, wide, value)
        return
    parsed = parse(mode, key, t.shape)
    if not parsed.advanced:
        assign(basic_view(mode, x, parsed.items), value)
        return
    scatter(mode, x, parsed.items, value)


def _is_single(value: Any) -> bool:
    return type(value) is not Tensor or value.type.ndim == 0


def _leading_mask(mode: Mode, x: Tensor, key: Any) -> Tensor | None:
    """The mask of `x[mask]` over the leading axes only."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if 1 <= _mask_rank(key) < x.type.ndim:
        mask = array_tensor(key, mode)
        _match_mask(mode, mask, x.type.shape[: mask.type.ndim], 0)
        return mask
    return None


def _masked_write(mode: Mode, x: Tensor, mask: Tensor, value: Any) -> None:
    """One value for all: a select; one for each true element: `expand`."""
    shape = x.type.shape
    if mask.type.ndim == len(shape) and 1 not in mask.type.shape:
        _match_mask(mode, mask, shape, 0)
    v = tensor(value, mode)
    if v.type.dtype.kind == "c" and x.type.dtype.kind != "c":
        raise errors.DTypeError("float() argument must be a string or a real number, not 'complex'")
    if v.type.dtype != x.type.dtype:
        from jitgraph.xp.core import fit

        scalar = x.type.with_shape(v.type.shape)
        v = wrap(mode, fit(mode, read(v), scalar, "unsafe"))
    if v.type.ndim == 0 or v.type.shape == (1,):
        if v.type.ndim:
            v = reshape_to(v, ())
        assign(x, apply(R("where"), mask, v, x))
        return
    if v.type.ndim > 1:
        raise errors.ShapeError(
            f"NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has {v.type.ndim} dimensions"
        )
    if isinstance(mode, TraceMode):
        count = apply(R("reduce_sum"), mask, axes=tuple(range(mask.type.ndim)), keepdims=False)
        length = dim_tensor(mode, v.type.shape[0])
        given, wanted = lift(mode, length), read(count)
        mode.check(
            mode.builder.apply(R("eq"), given, wanted)[0], "ValueError",
            "NumPy boolean array indexing assignment cannot assign {0} input values to the {1} output values where the mask is true",
            given, wanted,
        )  # fmt: skip
        value_of = mode.stretch(read(mask), shape)
        assign(x, wrap(mode, mode.apply(R("expand"), [read(x), value_of, read(v)], {})[0]))
        return
    count = int(np.count_nonzero(plain(mask)))
    if v.type.shape[0] != count:
        raise errors.ShapeError(
            f"NumPy boolean array indexing assignment cannot assign {v.type.shape[0]} input values to the {count} output "
            "values where the mask is true"
        )
    assign(x, apply(R("expand"), x, mask, v))


def scatter(mode: Mode, x: Tensor, items: Sequence[tuple[str, Any]], value: Any) -> None:
    """`x[..., index, ...] = value`: one write for each index, in order, so that the last one wins."""
    base = basic_view(mode, x, items)
    arrays, places, adjacent = _arrangement(items)
    names = _base_axes(items)
    indices = [_integer_index(mode, a, base.type.shape[p], names[p]) for a, p in zip(arrays, places, strict=True)]
    index, axis = indices[0], places[0]
    merged = base
    if len(indices) > 1 or index.type.ndim != 1 or axis != 0:
        # bring the indexed axes to the front, as one axis of a work array
        order = [*places, *(k for k in range(base.type.ndim) if k not in places)]
        merged = transpose(base, order)
    wide = _common(mode, [i.type.shape for i in indices])
    rest = tuple(d for k, d in enumerate(base.type.shape) if k not in places)
    front = axis if adjacent else 0
    target = (*rest[:front], *wide, *rest[front:])
    v = _fitted(mode, value, x, target)
    if front:
        count = len(wide)
        v = transpose(v, [*range(front, front + count), *range(front), *range(front + count, len(target))])
    flat = [reshape_to(_broadcast(mode, i, wide), (product(wide),)) for i in indices]
    v = reshape_to(v, (product(wide), *rest))
    if isinstance(mode, TraceMode):
        _scatter_loop(mode, merged, flat, v)
    else:
        _scatter_once(mode, merged, flat, v, base.type.shape, places)


def _common(mode: Mode, shapes: list[Shape]) -> Shape:
    if isinstance(mode, TraceMode):
        return mode.broadcast_shape(shapes, "index arrays")
    return np.broadcast_shapes(*shapes)  # type: ignore[arg-type]


def _broadcast(mode: Mode, x: Tensor, shape: Shape) -> Tensor:
    from jitgraph.xp.shape import stretched

    return x if x.type.shape == shape else stretched(x, shape)


def _fitted(mode: Mode, value: Any, x: Tensor, shape: Shape) -> Tensor:
    """The value cast and broadcast to what is written."""
    from jitgraph.xp.core import fit

    v = tensor(value, mode)
    t = x.type.with_shape(shape)
    fitted = wrap(mode, fit(mode, read(v), t, "unsafe"))
    return fitted if fitted.type.shape == shape else _broadcast(mode, array_tensor(fitted), shape)


def _scatter_loop(mode: TraceMode, target: Tensor, indices: list[Tensor], value: Tensor) -> None:
    """A loop of the graph that writes element by element."""
    count = value.type.shape[0]
    b = mode.builder
    storage = target._storage
    entry = storage.value
    index_values = [read(i) for i in indices]
    written = read(value)
    symbol = mode.fresh_symbol("j", "index", 0, count - 1)
    body = Block([entry.type])
    outer, before = b.block, b.before
    b.at_end(body)
    storage.value = body.args[0]
    at = []
    for i, size in zip(index_values, target.type.shape, strict=False):
        one = mode.view(i, IndexMap((), (AxisMap(symbol, 0, None),)))
        number = b.apply(R("as_kind"), one, kind="np_scalar")[0]
        at.append(mode.bind(number, "i", 0, size - 1))
    rest = target.type.shape[len(indices) :]
    place = IndexMap(rest, (*(AxisMap(a, 0, None) for a in at), *(AxisMap(0, 1, k) for k in range(len(rest)))))
    row = IndexMap(rest, (AxisMap(symbol, 0, None), *(AxisMap(0, 1, k) for k in range(len(rest)))))
    spot = view_of(make(storage, target._steps, target._type), place)
    version = mode.write(body.args[0], spot._steps, mode.view(written, row))
    b.emit(REGISTRY["yield"], [version], ())
    b.block, b.before = outer, before
    storage.value = entry
    loop = b.emit(
        REGISTRY["for"], [entry], [entry.type], {"index": str(symbol), "lower": 0, "upper": count, "step": 1}, [body]
    )
    set_version(storage, loop.result)


def _scatter_once(mode: Mode, target: Tensor, indices: list[Tensor], value: Tensor, shape: Shape, places: list[int]) -> None:
    """On the tape, where the indices are known: the last write to each place, added into zeros, selected by a mask."""
    sizes = [shape[p] for p in places]
    flat = np.ravel_multi_index([np.asarray(plain(i)) for i in indices], sizes) if len(sizes) > 1 else np.asarray(plain(indices[0]))  # type: ignore[call-overload]
    last = {int(p): k for k, p in enumerate(flat)}
    total = int(np.prod(sizes))  # type: ignore[arg-type]
    rest = target.type.shape[len(indices) :]
    chosen = wrap(mode, mode.lift(np.array(list(last.values()), np.intp)))
    spots = wrap(mode, mode.lift(np.array(list(last), np.intp)))
    mask = np.zeros((total, *(1,) * len(rest)), bool)
    mask[list(last)] = True
    zeros = wrap(mode, mode.lift(np.zeros((total, *rest), target.type.dtype)))  # type: ignore[arg-type]
    placed = apply(R("scatter_add"), zeros, spots, apply(R("take"), value, chosen, axis=0), axis=0)
    old = reshape_to(target, (total, *rest))
    merged = apply(R("where"), wrap(mode, mode.lift(mask)), placed, old)
    assign(target, reshape_to(merged, target.type.shape))


def scatter_at(ufunc: np.ufunc, a: Any, indices: Any, b: Any) -> None:
    """`np.add.at`, `np.subtract.at`: every index counts, also repeated ones."""
    if type(a) is not Tensor:
        raise errors.TraceError(errors.describe("ufunc.at writes to a plain array from outside", remedy="pass it as an argument."))
    mode = mode_in((a, indices, b))
    assert mode is not None
    if mode is EAGER:
        ufunc.at(plain(a), unwrap(indices), unwrap(b))
        return
    parsed = parse(mode, indices, a.type.shape)
    values = EXPORTS["negative"](b) if ufunc is np.subtract else b
    if not parsed.advanced:
        view = basic_view(mode, a, parsed.items)
        assign(view, EXPORTS["add"](view, values), "same_kind")
        return
    base = basic_view(mode, a, parsed.items)
    arrays, places, _ = _arrangement(parsed.items)
    names = _base_axes(parsed.items)
    found = [_integer_index(mode, i, base.type.shape[p], names[p]) for i, p in zip(arrays, places, strict=True)]
    index, merged, axis = _flattened(mode, base, found, places)
    target = (*merged.type.shape[:axis], *index.type.shape, *merged.type.shape[axis + 1 :])
    result = apply(R("scatter_add"), merged, index, _fitted(mode, values, a, target), axis=axis)
    if len(places) == 1:
        assign(base, result)
        return
    order = [k for k in range(base.type.ndim) if k not in places]
    order[places[0] : places[0]] = places
    assign(transpose(base, order), reshape_to(result, tuple(base.type.shape[k] for k in order)))


@numpy_function(np.copyto, views=True)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if type(dst) is not Tensor:
        raise errors.TraceError(errors.describe("copyto writes to a plain array from outside", remedy="pass it as an argument."))
    if where is True:
        assign(dst, operand(src), casting)
        return
    value = EXPORTS["where"](where, src, dst)
    assign(dst, value, casting)


@numpy_function(np.put, views=True)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    flat = reshape_to(a, (product(a.type.shape),))
    if flat._storage is not a._storage:
        raise errors.TraceError(errors.describe("put on an array that is not contiguous has no compiled form"))
    setitem(flat, ravel(tensor(ind, mode_in((a, ind)))), v)


@numpy_function(np.fill_diagonal, views=True)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if a.type.ndim != 2 or wrap:
        raise errors.ShapeError("fill_diagonal takes an array with two axes here")
    rows, columns = a.type.shape
    size = rows if a._storage.mode.decide("<=", rows, columns) else columns
    assign(view_of(a, IndexMap((size,), (AxisMap(0, 1, 0), AxisMap(0, 1, 0)))), val)


def iterate(x: Tensor) -> Iterator[Any]:
    """The parts of `x` along its first axis."""
    t = x.type
    if not t.shape:
        what = "iteration over a 0-d array" if t.kind == "array" else f"'{x.__class__.__name__}' object is not iterable"
        raise errors.DTypeError(what)
    count = len(x)
    return (getitem(x, k) for k in range(count))


