"""Which array object a name stands for, as a number that branches and loops carry.

Two names are one array in Python on one path, and two on another: `w = v` behind a test, `v = x[1:]` anew in each turn.
Where a function returns both, or `is` asks, the trace begins anew with `Restart(objects=True)`, and its arrays have
numbers. One that nothing merged has a number of its own: an offset, and the count of the turn that made it. A merged
one has that of the side that ran; loops carry those of their names (`carried_objects.py`). Equal numbers: one object.

So that a view of an array that only some turns make is one behind the loop, too, a merged array also has the number of
its memory, an array as a whole, and what view of that it is, if it is the same view on all paths.

What is not seen here (an array that only a caller's variable holds) has a number of its own, and is no other object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.transform import dims_of_attr
from jitgraph.records import dataclass
from jitgraph.tensor import READ_ONLY, Storage, Tensor, make, set_version
from jitgraph.tracing.choices import Choice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitgraph.tracing.capture_mode import CaptureMode

#: The view that a name is which no turn has bound yet: fits any.
UNSEEN: Final = ("unseen",)
#: Turns count in these, so that offsets fit in between.
_STRIDE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """The number of an array that nothing merged.

    Attributes:
        turn: the count of the turn that made it; None: no turn did.
    """

    turn: Value | None
    offset: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Where an array lies.

    Attributes:
        number: of the array that is the whole of its memory.
        steps: which view of that it is; None: one or another.
    """

    number: Value | Made
    steps: tuple[Any, ...] | None


def joined(*steps: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """The view that an array is on all paths."""
    known = [s for s in steps if s is not UNSEEN]
    if not known:
        return UNSEEN
    return known[0] if all(s == known[0] for s in known) else None


def is_bound_in(steps: tuple[Any, ...] | None, inner: set[str]) -> bool:
    """Whether a view depends on symbols of a region."""
    known = () if steps is None or steps is UNSEEN else steps
    return not inner.isdisjoint(name for step in known for d in dims_of_attr(step) for name in symbols(d))


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a loop that is traced.

    Attributes:
        count: a number that no other turn has.
        before: what was there when it began, by identity.
    """

    count: Value
    before: dict[int, Any]


def is_object(x: Any) -> bool:
    """Whether a value is a traced array; one whose elements are not known any more is still the object it was."""
    return type(x) is Tensor and x.is_traced and (x._storage.value is None or x.type.kind == "array")


def object_of(x: Tensor) -> Any:
    """What an array is known by: all of a storage is one object, each view of it another."""
    return x if x._steps or x._dim is READ_ONLY else x._storage


class Objects:
    """The numbers of one trace.

    Attributes:
        clock: how many turns there have been; a storage, so that branches and loops hand it on.
        opened: the open regions of the trace.
        asked: whether `is` compared numbers.
    """

    def __init__(self, mode: CaptureMode, opened: list[Any]) -> None:
        self.mode = mode
        self.opened = opened
        self.clock = Storage(mode, mode.builder.constant(0))
        self.asked = False
        self._known: dict[int, tuple[Any, Value | Made]] = {}
        self._memory: dict[int, Memory] = {}
        self._count = 0

    def emit(self, number: Value | Made | None) -> Value:
        """A number as a value; -1 for None."""
        builder = self.mode.builder
        if isinstance(number, Value):
            return number
        if number is None or number.turn is None:
            return builder.constant(-1 if number is None else number.offset)
        return builder.apply(REGISTRY["add"], number.turn, number.offset)[0]

    def memory(self, x: Tensor, *inner: Turn) -> Memory:
        """Where an array lies.

        Args:
            inner: the turn that is just being ended.
        """
        found = self._memory.get(id(x._storage))
        if found is None or (isinstance(found.number, Value) and not self.mode.is_visible(found.number)):
            found = Memory(self.known(make(x._storage, ()), *inner), ())
        if not x._steps or found.steps is None:
            return found
        return Memory(found.number, None if found.steps is UNSEEN else (*found.steps, *x._steps))

    def numbers(self, x: Any, *inner: Turn) -> tuple[Value, Value, tuple[Any, ...] | None]:
        """The numbers of an array and of its memory, emitted at the builder's place, and which view of that it is."""
        if not is_object(x):
            return self.emit(None), self.emit(None), None
        memory = self.memory(x, *inner)
        return self.emit(self.known(x, *inner)), self.emit(memory.number), memory.steps

    def known(self, x: Tensor, *inner: Turn) -> Value | Made:
        key = object_of(x)
        known = self._known.get(id(key), (None, None))[1]
        made = known.turn if isinstance(known, Made) else known
        if known is None or (made is not None and not self.mode.is_visible(made)):
            turn = None
            if type(key) is Tensor or key.origin is None:
                turns = [*inner, *(o.loop.this_turn for o in reversed(self.opened) if o.loop is not None)]
                turn = next((t.count for t in turns if t is not None and id(key) not in t.before), None)
            self._count += 1
            known = Made(turn, self._count)
            self._known[id(key)] = key, known
        return known

    def name(self, made: Any, number: Value | Made, memory: Memory) -> None:
        """A merged array has this number, and lies there, if it is new."""
        if is_object(made):
            key, storage = object_of(made), made._storage
            if id(key) not in self._known:
                self._known[id(key)] = key, number
                if key is storage:
                    self._memory[id(storage)] = memory

    def begin_turn(self, before: Iterable[Any]) -> Turn:
        """A turn begins: what is made from here on is made in it.

        Args:
            before: values that are there already.
        """
        count = self.mode.builder.apply(REGISTRY["add"], self.clock.value, _STRIDE)[0]
        set_version(self.clock, count)
        known: dict[int, Any] = {}
        for x in before:
            if type(x) is Tensor:
                known[id(x)], known[id(x._storage)] = x, x._storage
        return Turn(count, known)

    def wholes(self) -> set[Storage]:
        """The storages of which all has a number."""
        return {key for key, _ in self._known.values() if type(key) is Storage}

    def same(self, a: Tensor, b: Tensor) -> bool | Value:
        """Whether two arrays are one object, emitted at the builder's place."""
        if object_of(a) is object_of(b):
            return True
        return self.equal(self.known(a), self.known(b))

    def equal(self, first: Value | Made, second: Value | Made) -> bool | Value:
        if type(first) is Made and type(second) is Made:
            return first.offset == second.offset
        if first is second:
            return True
        flag: Value = self.mode.builder.apply(REGISTRY["eq"], self.emit(first), self.emit(second))[0]
        return (
            flag
            if flag.type.kind == "py_bool"
            else self.mode.builder.apply(REGISTRY["as_kind"], flag, kind="py_bool")[0]
        )


def sources(choices: dict[Storage, Choice], storage: Storage) -> list[Storage]:
    """The storages that an array may be in: its own, and those it is chosen from."""
    found = {storage: None}
    waiting = [storage]
    while waiting:
        choice = choices.get(waiting.pop())
        for x in choice.options if choice is not None else ():
            if x is not None and x._storage not in found:
                found[x._storage] = None
                waiting.append(x._storage)
    return list(found)


def is_open(mode: CaptureMode, a: Any, b: Any) -> bool:
    """Whether two results may be one object on some path: a merge made one of them, and they may share memory."""
    if not is_object(a) or not is_object(b) or object_of(a) is object_of(b):
        return False
    s, t = a.type, b.type
    if s.dtype != t.dtype or len(s.shape) != len(t.shape) or (id(a) not in mode.either and id(b) not in mode.either):
        return False
    if any(mode.builder.prove("==", d, e) is False for d, e in zip(s.shape, t.shape, strict=True)):
        return False
    if a._storage is b._storage:
        return bool(a._steps) == bool(b._steps)
    (first, views_a), (second, views_b) = _ways(mode, a), _ways(mode, b)
    return not views_a.isdisjoint(views_b) or any(mode.may_share(s, t) for s in first for t in second)


def _ways(mode: CaptureMode, x: Tensor) -> tuple[list[Storage], set[Storage]]:
    """What is at the ends of the choices that an array is, and the storages that it may be a view of."""
    ends, views = [x._storage], {x._storage} if x._steps else set()
    for storage in sources(mode.choices, x._storage):
        choice = mode.choices.get(storage)
        if choice is None and storage is not x._storage:
            ends.append(storage)
        views.update(o._storage for o in (choice.options if choice is not None else ()) if o is not None and o._steps)
    return ends, views


def may_lie_in(mode: CaptureMode, a: Any, b: Any) -> bool:
    """Whether the result `a` may be a view of all of `b` where a merge made both."""
    if not is_object(a) or not is_object(b) or a._storage is b._storage or a.type.dtype != b.type.dtype or b._steps:
        return False
    if id(a) not in mode.either or id(b) not in mode.either:
        return False
    first, second = _ways(mode, a)[0], _ways(mode, b)[0]
    return any(mode.may_share(s, t) for s in first for t in second)
