"""`range`, `enumerate`, `zip` and `reversed` over traced things: sequences that a `for` may turn into a region.

They are ordinary objects when nothing about them is traced. Otherwise they know their length (a dim) and how to make
the element at an index, which may be the symbol of a loop.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph import pytree
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import Dim, DimLike, dim_max, dim_min, floordiv, mod
from jitgraph.ir.opdef import REGISTRY
from jitgraph.tensor import Tensor, dim_tensor, lift
from jitgraph.xp.core import product
from jitgraph.xp.creation import iota
from jitgraph.xp.flat import FlatIter
from jitgraph.xp.keys import whole
from jitgraph.xp.scalars import BUILTIN_TABLE

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode


def any_traced(x: Any, depth: int = 4) -> bool:
    """Whether a traced value is in nested arguments."""
    kind = type(x)
    if kind is Tensor:
        return x.is_traced  # type: ignore[no-any-return]
    if depth and kind in (tuple, list):
        return any(any_traced(i, depth - 1) for i in x)
    if depth and kind is dict:
        return any(any_traced(i, depth - 1) for i in x.values())
    return isinstance(x, Sequenced) or (kind is FlatIter and x.base.is_traced)


def contains(tracer: Any, x: Tensor, r: builtins.range | Range) -> Any:
    """`x in range(...)` for a traced number."""
    first, step = r.start, r.step
    if isinstance(r, Range):
        last: Any = dim_tensor(tracer.mode, r.stop)
        first = dim_tensor(tracer.mode, first)
        step = dim_tensor(tracer.mode, step)
    else:
        last = r.stop
    rises = tracer.choose(tracer.binary("gt", step, 0), lambda: True, lambda: False)
    inside = tracer.choose(
        rises, lambda: tracer.chain(first, ("le", lambda: x), ("lt", lambda: last)),
        lambda: tracer.chain(first, ("ge", lambda: x), ("gt", lambda: last)),
    )  # fmt: skip
    fits = lambda: tracer.binary("eq", tracer.binary("mod", tracer.binary("sub", x, first), step), 0)  # noqa: E731
    return BUILTIN_TABLE[bool](tracer.and_(inside, fits))


class Sequenced:
    """An iterable of traced length.

    Attributes:
        length: how many elements.
        element: the element at an index (an int, or the Tensor of a size).
    """

    def __init__(self, mode: CaptureMode, length: DimLike, element: Callable[[Any], Any]) -> None:
        self.mode = mode
        self.length = length
        self.element = element

    def __len__(self) -> int:
        return self.mode.concrete_dim(self.length, "len")

    def __iter__(self) -> Iterator[Any]:
        return (self.element(k) for k in builtins.range(len(self)))

    def __getitem__(self, k: Any) -> Any:
        return [*self][k]


class Range(Sequenced):
    """`range` with a traced start, stop or step, or too long to unroll.

    Args:
        start, stop, step: dims; the step is not zero.
        length: how many numbers; None: it follows from the others, and the sign of the step is known.

    Attributes:
        start, stop, step: the same.
    """

    def __init__(
        self, mode: CaptureMode, start: DimLike, stop: DimLike, step: DimLike, length: DimLike | None = None
    ) -> None:
        self.start, self.stop, self.step = start, stop, step
        super().__init__(mode, trips(mode, start, stop, step) if length is None else length, self.at)

    def at(self, k: Any) -> Any:
        """The number at index `k`."""
        index: Any = k._dim if type(k) is Tensor else k
        return dim_tensor(self.mode, self.start + self.step * index)

    def array(self) -> Tensor:
        """What NumPy makes of it: an array of floats if it is empty."""
        return self._iota(np.dtype(float) if self.mode.decide("==", self.length, 0) else np.dtype(np.int64))

    def index_array(self) -> Tensor:
        """What NumPy makes of it where it is an index: `x[range(n), k]`."""
        return self._iota(np.dtype(np.int64))

    def _iota(self, dtype: np.dtype) -> Tensor:
        return iota(self.mode, dim_tensor(self.mode, self.start), dim_tensor(self.mode, self.step), self.length, dtype)

    def __contains__(self, x: Any) -> bool:
        return x in builtins.range(*(self.mode.concrete_dim(d, "index") for d in (self.start, self.stop, self.step)))

    def __reversed__(self) -> Range:
        last = self.start + self.step * (self.length - 1)
        return Range(self.mode, last, self.start - self.step, -self.step, self.length)


def trips(mode: CaptureMode, start: DimLike, stop: DimLike, step: DimLike) -> DimLike:
    """Number of turns of `range(start, stop, step)`, for a step whose sign is known."""
    sign = 1 if mode.decide(">=", step, 1) else -1
    distance = (stop - start) * sign
    stride = step * sign
    count = floordiv(distance + stride - 1, stride) if stride != 1 else distance
    if isinstance(count, int):
        return max(count, 0)
    return count if mode.builder.prove(">=", count, 0) else dim_max(count, 0)


class Ranged:
    """A range that the function returns, as a node of its bounds."""

    __slots__ = ("parts",)

    def __init__(self, r: Range) -> None:
        self.parts = [dim_tensor(r.mode, d) for d in (r.start, r.stop, r.step)]


def _range_of(meta: Any, parts: Any) -> Any:
    return builtins.range(*parts)


pytree.register(Ranged, lambda x: (x.parts, None), _range_of)

_ZERO_STEP = "range() arg 3 must not be zero"


def _stepped(mode: CaptureMode, start: DimLike, stop: DimLike, step: DimLike) -> Range:
    """A range by its parts. The sign of its step is known, guarded, assumed, or else part of the computation.

    Raises:
        ValueError: the step is zero.
    """
    try:
        if mode.decide("==", step, 0):
            raise ValueError(_ZERO_STEP)
        return Range(mode, start, stop, step)
    except Undecided:
        pass
    if mode.can_rerun():
        why = "the sign of the step of a range"
        if mode.assume(mode.compare("ge", step, 1), why):
            return Range(mode, start, stop, _bounded(mode, step, 1, None))
        if mode.assume(mode.compare("lt", step, 0), why):
            return Range(mode, start, stop, _bounded(mode, step, None, -1))
        raise ValueError(_ZERO_STEP)
    mode.check(mode.compare("ne", step, 0), "ValueError", _ZERO_STEP)
    return Range(mode, start, stop, step, _trips_of_either_sign(mode, start, stop, step))


def _bounded(mode: CaptureMode, step: DimLike, lower: int | None, upper: int | None) -> DimLike:
    """A step from here on, where it is known to lie in the inclusive bounds."""
    dim = mode.fresh_symbol("step", "value", lower, upper)
    mode.builder.apply(REGISTRY["bind"], mode.dim_value(step), symbol=str(dim))
    return dim


def _trips_of_either_sign(mode: CaptureMode, start: DimLike, stop: DimLike, step: DimLike) -> DimLike:
    """Number of turns where only the run knows the sign of the step."""

    def op(name: str, *values: Any) -> Any:
        return mode.builder.apply(REGISTRY[name], *values)[0]

    stride, distance = mode.dim_value(step), mode.dim_value(stop - start)
    rises = op("gt", stride, 0)
    towards = op("where", rises, op("sub", distance, 1), op("add", distance, 1))
    steps = op("add", op("floordiv", towards, op("where", op("eq", stride, 0), 1, stride)), 1)
    count = mode.builder.apply(REGISTRY["as_kind"], op("where", op("gt", steps, 0), steps, 0), kind="py_int")[0]
    return mode.bind(count, "trips", 0)


def integer_dim(mode: CaptureMode, x: Any) -> DimLike:
    """A traced or plain integer as a dim.

    Raises:
        TypeError: it is no integer.
    """
    if type(x) is Tensor:
        dim = x._dim
        if isinstance(dim, int | Dim):
            return dim
        t = x.type
        if (t.dtype.kind not in "iu" and t.kind != "py_bool") or t.shape:
            raise TypeError(f"'{x.__class__.__name__}' object cannot be interpreted as an integer")
        return mode.bind(whole(mode, lift(mode, x)), "k")
    return x.__index__()  # type: ignore[no-any-return]


def _range(tracer: Any, *args: Any) -> Any:
    if not any(type(a) is Tensor for a in args):
        plain = builtins.range(*args)
        if len(plain) <= tracer.unroll_limit:
            return plain
        return Range(tracer.mode, plain.start, plain.stop, plain.step)
    mode = tracer.mode
    dims = [integer_dim(mode, a) for a in args]
    if len(dims) == 1:
        dims = [0, dims[0]]
    if len(dims) == 2:
        dims.append(1)
    if len(dims) != 3:
        raise TypeError(f"range expected at most 3 arguments, got {len(dims)}")
    if all(isinstance(d, int) for d in dims):
        return _range(tracer, *dims)
    return _stepped(mode, *dims)


def sequenced(mode: CaptureMode, x: Any) -> Sequenced | None:
    """`x` as a sequence of traced length; None if it is an ordinary iterable."""
    if isinstance(x, Sequenced):
        return x
    if type(x) is Tensor and x.is_traced and x.type.kind == "array" and x.type.shape:
        return Sequenced(mode, x.type.shape[0], lambda k: x[k])
    if type(x) is FlatIter and x.base.is_traced and not x.index:
        return Sequenced(mode, product(x.base.type.shape), lambda k: x[k])
    return None


def _positions(mode: CaptureMode, shape: Any) -> tuple[DimLike, Callable[[Any], tuple[Any, ...]]]:
    """How many positions an array of that shape has, and the index of position `k` in C order."""
    sizes = [integer_dim(mode, d) for d in shape]

    def index(k: Any) -> tuple[Any, ...]:
        left: Any = k._dim if type(k) is Tensor else k
        found: list[Any] = []
        for number, size in enumerate(reversed(sizes)):
            found.append(left if number == len(sizes) - 1 else mod(left, size))
            left = floordiv(left, size)
        return tuple(dim_tensor(mode, d) for d in reversed(found))

    return product(sizes), index


def _ndindex(tracer: Any, *shape: Any) -> Any:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    plain = not any(type(d) is Tensor for d in sizes)
    if plain and math.prod(sizes) <= tracer.unroll_limit:
        return np.ndindex(*sizes)
    return Sequenced(tracer.mode, *_positions(tracer.mode, sizes))


def _ndenumerate(tracer: Any, x: Any) -> Any:
    if type(x) is not Tensor or not x.is_traced:
        return np.ndenumerate(x)
    count, index = _positions(tracer.mode, x.shape)

    def element(k: Any) -> tuple[Any, Any]:
        at = index(k)
        return at, x[at]

    return Sequenced(tracer.mode, count, element)


def _enumerate(tracer: Any, iterable: Any, start: Any = 0) -> Any:
    inner = sequenced(tracer.mode, iterable)
    if inner is None:
        return builtins.enumerate(iterable, start)
    return Sequenced(tracer.mode, inner.length, lambda k: (start + k, inner.element(k)))


def _unequal(number: int, *, is_shorter: bool) -> str:
    """What Python says of arguments of `zip(strict=True)`."""
    before = "argument 1" if number == 2 else f"arguments 1-{number - 1}"
    return f"zip() argument {number} is {'shorter' if is_shorter else 'longer'} than {before}"


def _zip(tracer: Any, *iterables: Any, strict: bool = False) -> Any:
    inner = [sequenced(tracer.mode, x) for x in iterables]
    if not inner or not all(isinstance(s, Sequenced) for s in inner):
        return builtins.zip(*iterables, strict=strict)
    known = [s for s in inner if s is not None]
    length = known[0].length
    mode = tracer.mode
    for number, s in enumerate(known[1:], 2):
        try:
            if not mode.decide("==", length, s.length):
                is_shorter = mode.decide(">", length, s.length)
                if strict:
                    raise ValueError(_unequal(number, is_shorter=is_shorter))
                length = s.length if is_shorter else length
        except Undecided:
            if strict:
                mode.check(mode.compare("le", length, s.length), "ValueError", _unequal(number, is_shorter=True))
                mode.check(mode.compare("ge", length, s.length), "ValueError", _unequal(number, is_shorter=False))
            else:
                length = dim_min(length, s.length)
    return Sequenced(tracer.mode, length, lambda k: tuple([s.element(k) for s in known]))


def _reversed(tracer: Any, iterable: Any) -> Any:
    if isinstance(iterable, Range):
        return iterable.__reversed__()
    inner = sequenced(tracer.mode, iterable)
    if inner is None:
        return builtins.reversed(iterable)
    last = dim_tensor(tracer.mode, inner.length - 1)
    return Sequenced(tracer.mode, inner.length, lambda k: inner.element(last - k))


def _len(tracer: Any, x: Any) -> Any:
    if type(x) is Tensor and x.is_traced:
        shape = x.type.shape
        if x.type.kind != "array" or not shape:
            raise TypeError(
                "len() of unsized object"
                if x.type.kind == "array"
                else f"object of type '{x.__class__.__name__}' has no len()"
            )
        return dim_tensor(tracer.mode, shape[0])
    if isinstance(x, Sequenced):
        return dim_tensor(tracer.mode, x.length)
    if type(x) is FlatIter:
        return x.base.size
    if not isinstance(x, list | tuple | dict | str | set) and hasattr(type(x), "__len__"):
        return tracer.method(x, "__len__")
    return len(x)


#: Stand-ins of this module, which take the tracer first.
BODIES: dict[Any, Callable[..., Any]] = {
    range: _range,
    enumerate: _enumerate,
    zip: _zip,
    np.ndindex: _ndindex,
    np.ndenumerate: _ndenumerate,
    reversed: _reversed,
    len: _len,
}
