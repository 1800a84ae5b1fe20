"""Index keys: integers, slices and masks of a subscript, checked and turned into dims.

A traced index gets a check with NumPy's message, is made non-negative, and is bound to a symbol; sizes and loop indices
that are proven in range need no check, those of arguments become guards. Slices clamp likewise.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import Dim, DimLike, dim_max, dim_min, floordiv
from jitgraph.ir.graph import Value
from jitgraph.ir.rewrite import constant_array, constant_of
from jitgraph.ir.types import Shape
from jitgraph.modes import TraceMode
from jitgraph.tensor import (
    Mode,
    Tensor,
    plain,
    read,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    literal,
    mode_in,
    tensor,
)
from jitgraph.xp.operators import dim_of

_BAD_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
    "indices"
)


def _loc(mode: Mode) -> Any:
    return mode.locate() if isinstance(mode, TraceMode) else None


def index_error(mode: Mode, text: str) -> errors.IndexingError:
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
            raise index_error(mode, f"index {i} is out of bounds for axis {axis} with size {size}")
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
        if isinstance(mode, TraceMode) and mode.builder.is_for_the_run(i - size):  # the loop may have no turn
            return _checked_dim(mode, i, size, axis)
        raise index_error(
            mode, f"index {_shown(mode, i)} is out of bounds for axis {axis} with size {_shown(mode, size)}"
        )
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


def normalised(mode: TraceMode, value: Value, size: DimLike, axis: int, unused: Value | None = None) -> Value:
    """Run-time indices (a scalar or an array) checked, unless `unused`, and made non-negative."""
    t = value.type
    if t.dtype.kind not in "iu":
        raise index_error(mode, _BAD_INDEX)
    apply_ = mode.builder.apply
    length = mode.dim_value(size)
    if t.dtype != dtypes.I64 and not t.is_python:
        value = apply_(R("cast"), value, dtype=dtypes.I64)[0]
    message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    below = apply_(R("lt"), value, length)[0]
    if t.dtype.kind == "u" and t.dtype.itemsize < dtypes.I64.itemsize:
        mode.check(_or(mode, below, unused), "IndexError", message, value, length)
        return value
    above = apply_(R("ge"), value, mode.dim_value(0 - size))[0]
    mode.check(_or(mode, apply_(R("logical_and"), below, above)[0], unused), "IndexError", message, value, length)
    wrapped = apply_(R("add"), value, length)[0]
    chosen = apply_(R("where"), apply_(R("lt"), value, 0)[0], wrapped, value)[0]
    return (
        chosen
        if chosen.type.shape or chosen.type.kind != "array"
        else apply_(R("as_kind"), chosen, kind="np_scalar")[0]
    )


def _or(mode: TraceMode, condition: Value, other: Value | None) -> Value:
    return condition if other is None else mode.any_of(condition, other)


# --- slices

#: A size whose text is longer gets a name: slices of slices would double it each time.
_LONGEST_SIZE = 200


def slice_bounds(mode: Mode, s: slice, size: DimLike) -> tuple[DimLike, DimLike, DimLike]:
    """(offset, step, length) of a slice of an axis, clamped as Python does.

    Raises:
        ShapeError: the step is zero.
    """
    step, sign = _step(mode, s.step)
    start, stop = _bound(mode, s.start), _bound(mode, s.stop)
    if not sign:
        assert isinstance(mode, TraceMode)
        return _of_any_step(mode, start, stop, step, size)
    if isinstance(size, int) and all(isinstance(b, (int, type(None))) for b in (start, stop)) and isinstance(step, int):
        begin, end, by = slice(start, stop, step).indices(size)
        count = len(range(begin, end, by))
        return (begin if count else 0), by, count
    first: DimLike
    length: DimLike
    forward = sign > 0
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


def _step(mode: Mode, step: Any) -> tuple[DimLike, int]:
    """The step and its sign: 0 if only the run knows it."""
    if step is None:
        return 1, 1
    d = _bound(mode, step)
    assert d is not None
    try:
        if mode.decide("==", d, 0):
            raise errors.ShapeError("slice step cannot be zero")
        return d, 1 if mode.decide(">", d, 0) else -1
    except Undecided:
        return d, 0


def _of_any_step(
    mode: TraceMode, start: DimLike | None, stop: DimLike | None, step: DimLike, size: DimLike
) -> tuple[DimLike, DimLike, DimLike]:
    """Offset, step and length of a slice whose step has a sign that only the run knows."""
    mode.check(mode.compare("ne", step, 0), "ValueError", "slice step cannot be zero")
    b, n = mode.builder, mode.dim_value(size)
    longest = mode.dim_value(size + 1)  # a longer step than that finds nothing else
    by = b.minimum(b.maximum(mode.dim_value(step), mode.dim_value(-1 - size)), longest)
    forward = b.gt(by, 0)
    low = b.where(forward, 0, -1)
    high = b.add(low, n)

    def end(bound: DimLike | None, default: Value) -> Value:
        if bound is None:
            return default
        value = mode.dim_value(bound)
        value = b.where(b.lt(value, 0), b.add(value, n), value)
        return b.minimum(b.maximum(value, low), high)  # type: ignore[no-any-return]

    first = end(start, b.where(forward, low, high))
    last = end(stop, b.where(forward, high, low))
    whole = b.add(b.sub(last, first), b.sub(by, b.where(forward, 1, -1)))
    count = b.maximum(b.floordiv(whole, by), 0)
    first = b.where(b.gt(count, 0), first, 0)
    return (
        mode.bind(_held(mode, first), "b", 0, size),
        mode.bind(_held(mode, by), "b"),
        mode.bind(_held(mode, count), "k", 0, size),
    )


def _held(mode: TraceMode, value: Value) -> Value:
    """A 0-d value as a scalar."""
    return mode.builder.as_kind(value, kind="np_scalar") if value.type.kind == "array" else value


def whole(mode: TraceMode, value: Value) -> Value:
    """A Python integer; a bool is one, too."""
    return mode.builder.apply(R("cast"), value, dtype=dtypes.I64)[0] if value.type.kind == "py_bool" else value


def _bound(mode: Mode, bound: Any) -> DimLike | None:
    """A slice bound as a dim; run-time integers are bound to symbols without a range."""
    if bound is None:
        return None
    d = dim_of(bound)
    if d is not None:
        return d
    if type(bound) is Tensor and isinstance(mode, TraceMode) and bound._storage.mode is mode:
        t = bound.type
        if (t.dtype.kind not in "iu" and t.kind != "py_bool") or t.shape:
            raise errors.DTypeError("slice indices must be integers or None or have an __index__ method")
        return mode.bind(whole(mode, read(bound)), "b")
    if type(bound) is Tensor and isinstance(mode, TraceMode) and isinstance(bound._storage.mode, TraceMode):
        mode.mixed(bound._storage.mode)  # one of the two is not usable any more: says so
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
    if len(repr(length)) > _LONGEST_SIZE:
        value = mode.builder.apply(R("maximum"), mode.dim_value(length), mode.dim_value(0))[0]
        length = mode.bind(value, "k", 0, size)
    return first, length


def _clamped(mode: TraceMode, bound: DimLike, size: DimLike, low: DimLike, high: DimLike) -> DimLike:
    prove = mode.builder.prove
    if prove(">=", bound, 0):
        return bound if prove("<=", bound, high) else dim_min(bound, high)
    if prove("<", bound, 0):
        return dim_max(bound + size, low)
    apply_ = mode.builder.apply
    value = mode.dim_value(bound)
    shifted = apply_(R("where"), apply_(R("lt"), value, 0)[0], apply_(R("add"), value, mode.dim_value(size))[0], value)[
        0
    ]
    clamped = apply_(R("minimum"), apply_(R("maximum"), shifted, mode.dim_value(low))[0], mode.dim_value(high))[0]
    if clamped.type.kind == "array":
        clamped = apply_(R("as_kind"), clamped, kind="np_scalar")[0]
    return mode.bind(clamped, "b", low, high)


# --- keys

#: One entry of a parsed key: what it is and what stands there.
Item = tuple[str, Any]


class Key:
    """A parsed key: one entry per axis of the base, or per new axis.

    Attributes:
        items: ("new", None), ("slice", s), ("int", i), ("array", index) or ("flag", index), in order. A flag is an
            index array along a new axis of size 1: what NumPy makes of a single truth value, one 0 or none. An
            ellipsis that stands for no axis is ("ellipsis", None): it parts what stands around it.
        scalar: integers for all axes and nothing else: the result is a scalar.
        advanced: there are index arrays: the result is a fresh array.
        copied: a 0-d array stands for an integer: NumPy gives a copy of the view then.
    """

    __slots__ = ("advanced", "copied", "items", "scalar")

    def __init__(self, items: list[Item], scalar: bool, copied: bool) -> None:
        self.items = items
        self.scalar = scalar
        self.advanced = any(kind in ("array", "flag") for kind, _ in items)
        self.copied = copied


def parse(mode: Mode, key: Any, shape: Shape) -> Key:
    """Check a key and fill it up to all axes.

    Raises:
        IndexingError: too many indices, two ellipses, something that is no index.
    """
    parts = key if isinstance(key, tuple) else (key,)
    items: list[Item] = []
    used = 0
    ellipsis_at = -1
    copied = False
    for part in parts:
        kind, consumed, part = _classify(mode, part)
        if kind == "ellipsis":
            if ellipsis_at >= 0:
                raise index_error(mode, "an index can only have a single ellipsis ('...')")
            ellipsis_at = len(items)
            continue
        copied = copied or (kind == "int" and _is_array(part))
        items.append((kind, part))
        used += consumed
    if used > len(shape):
        raise index_error(
            mode, f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed"
        )
    fill: list[Item] = [("slice", slice(None))] * (len(shape) - used)
    if ellipsis_at >= 0 and not fill:
        fill = [("ellipsis", None)]
    at = len(items) if ellipsis_at < 0 else ellipsis_at
    scalar = ellipsis_at < 0 and used == len(shape) and all(kind == "int" for kind, _ in items)
    items[at:at] = fill
    return Key(_spread_masks(mode, items, shape), scalar, copied)


def _is_array(part: Any) -> bool:
    return part.type.kind == "array" if type(part) is Tensor else isinstance(part, np.ndarray)


def _classify(mode: Mode, part: Any) -> tuple[str, int, Any]:
    """What a part of a key is, how many axes of the array it takes, and the part; nested lists as arrays."""
    if part is None:
        return "new", 0, None
    if part is Ellipsis:
        return "ellipsis", 0, None
    kind = type(part)
    if kind is slice:
        return "slice", 1, part
    if kind is int:
        return "int", 1, part
    if kind is bool or kind is np.bool_:
        return "flag", 0, part
    if kind is Tensor or isinstance(part, np.ndarray):
        t = part.type if kind is Tensor else part
        if t.dtype.kind == "b":
            return ("mask" if t.ndim else "flag"), t.ndim, part
        if t.dtype.kind not in "iu":
            scalar = kind is Tensor and t.kind != "array"
            raise index_error(
                mode, _BAD_INDEX if scalar else "arrays used as indices must be of integer (or boolean) type"
            )
        return ("int" if t.ndim == 0 else "array"), 1, part
    if isinstance(part, np.integer) or hasattr(part, "__index__"):
        return "int", 1, part
    if hasattr(kind, "index_array"):  # a range of traced bounds
        return "array", 1, part.index_array()
    if isinstance(part, np.generic) or not isinstance(part, Sequence) or isinstance(part, str):
        raise index_error(mode, _BAD_INDEX)
    made: Any = tensor(list(part), mode) if mode_in(part) is not None else np.asarray(part)
    if type(made) is np.ndarray:
        if made.size == 0:  # an empty list is none of floats
            made = made.astype(np.intp)
        if made.dtype.kind in "biu" and isinstance(mode, TraceMode):
            made = literal(mode, made)
    t = made.type if type(made) is Tensor else made
    if t.dtype.kind == "b":
        return "mask", t.ndim, made
    if t.dtype.kind in "iu":
        return "array", 1, made
    raise index_error(mode, _BAD_INDEX)


def _spread_masks(mode: Mode, items: list[Item], shape: Shape) -> list[Item]:
    """Masks as integer arrays, one an axis; truth values as flags."""
    out: list[Item] = []
    axis = 0
    for kind, part in items:
        if kind == "flag":
            out.append(("flag", _flag_index(mode, part)))
            continue
        if kind != "mask":
            out.append((kind, part))
            axis += kind not in ("new", "ellipsis")
            continue
        own: Shape = part.type.shape if type(part) is Tensor else part.shape
        match_mask(mode, own, shape[axis : axis + len(own)], axis)
        known = _known_mask(mode, part)
        if known is not None:
            found = [np.ascontiguousarray(index) for index in np.nonzero(known)]
            out.extend(("array", literal(mode, i) if isinstance(mode, TraceMode) else i) for i in found)
        else:
            out.extend(("array", index) for index in EXPORTS["true_positions"](array_tensor(part, mode)))
        axis += len(own)
    return out


def _flag_index(mode: Mode, flag: Any) -> Any:
    """The index array of a single truth value: one 0 or none."""
    if type(flag) is Tensor:
        known = constant_of(read(flag)) if isinstance(mode, TraceMode) else plain(flag)
        if known is None:
            return EXPORTS["true_positions"](EXPORTS["reshape"](array_tensor(flag, mode), (1,)))[0]
        flag = known
    index = np.zeros(int(bool(flag)), np.intp)
    return literal(mode, index) if isinstance(mode, TraceMode) else index


def _known_mask(mode: Mode, mask: Any) -> np.ndarray | None:
    """The elements of a mask that the program spells out; None if they are data."""
    if not isinstance(mode, TraceMode):
        return None if type(mask) is Tensor else np.asarray(mask)
    if type(mask) is not Tensor:
        return constant_array(mode.lift(mask)) if mask.size > 1 else np.asarray(mask)
    return constant_array(read(mask)) if not mask._steps and mask._storage.mode is mode else None


def match_mask(mode: Mode, own: Shape, sizes: Shape, first: int) -> None:
    """A mask fits the axes it selects from, from axis `first` on; NumPy lets an empty axis of it pass.

    Raises:
        IndexingError: a size differs.
    """
    for k, (have, wanted) in enumerate(zip(own, sizes, strict=True)):
        if have == wanted or (isinstance(have, int) and have == 0):
            continue
        message = (
            f"boolean index did not match indexed array along axis {first + k}; size of axis is {{0}} but size of "
            "corresponding boolean axis is {1}"
        )
        try:
            fits = mode.decide("==", have, wanted) or mode.decide("==", have, 0)
        except Undecided:
            assert isinstance(mode, TraceMode)
            fit = mode.any_of(mode.compare("eq", have, wanted), mode.compare("eq", have, 0))
            mode.check(fit, "IndexError", message, wanted, have)
            continue
        if not fits:
            raise index_error(mode, message.format(_shown(mode, wanted), _shown(mode, have)))


def full_mask(mode: Mode, key: Any, shape: Shape, *, alone: bool = False) -> Tensor | None:
    """The mask of `x[mask]` if that is the whole key and has the array's shape, for certain or under a guard.

    Args:
        alone: not even an ellipsis may stand beside it: NumPy assigns through `x[..., mask]` by other rules.
    """
    if isinstance(key, tuple):
        parts = [p for p in key if p is not Ellipsis or alone]
        if len(parts) != 1 or len(key) > 2:
            return None
        (key,) = parts
    if isinstance(key, list) and key:
        key = tensor(key, mode) if mode_in(key) is not None else np.asarray(key)
        if isinstance(key, np.ndarray) and key.dtype.kind == "b" and isinstance(mode, TraceMode):
            key = literal(mode, key)
    if not shape or mask_rank(key) != len(shape):
        return None
    own = key.type.shape if type(key) is Tensor else key.shape
    for have, wanted in zip(own, shape, strict=True):
        try:
            if not mode.decide("==", have, wanted):
                return None
        except Undecided:
            return None
    return array_tensor(key, mode)


def is_full_mask(key: Any, ndim: int) -> bool:
    """Whether a boolean array of `ndim` axes is the whole key."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    return ndim > 0 and mask_rank(key) == ndim


def mask_rank(key: Any) -> int:
    """Number of axes of a boolean array; 0 for anything else."""
    if type(key) is Tensor:
        return key.type.ndim if key.type.dtype.kind == "b" else 0
    return key.ndim if isinstance(key, np.ndarray) and key.dtype.kind == "b" else 0
