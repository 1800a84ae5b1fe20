"""Which array object a name stands for, as a number that branches and loops carry.

Two names are one array in Python on one path, and two on another: `w = v` behind a test, `v = x[1:]` anew in each turn.
Where a function returns both, or `is` asks, the trace begins anew with `Restart(objects=True)`, and its arrays have
numbers. One that nothing merged has a number of its own: an offset, and the count of the turn that made it. A merged
one has that of the side that ran; loops carry those of their names (`carried_objects.py`). Equal numbers: one object.

What is not seen here (an array that only a caller's variable holds) has a number of its own, and is no other object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.records import dataclass
from jitgraph.tensor import READ_ONLY, Storage, Tensor, set_version
from jitgraph.tracing.choices import Choice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitgraph.tracing.capture_mode import CaptureMode

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
class Turn:
    """A turn of a loop that is traced.

    Attributes:
        count: a number that no other turn has.
        before: what was there when it began, by identity.
    """

    count: Value
    before: dict[int, Any]


def is_object(x: Any) -> bool:
    """Whether a value is a traced array."""
    return type(x) is Tensor and x.is_traced and x.type.kind == "array"


def object_of(x: Tensor) -> Any:
    """What an array is known by: all of a storage is one object, each view of it another."""
    return x if x._steps or x._dim is READ_ONLY else x._storage


class Objects:
    """The numbers of one trace.

    Attributes:
        clock: how many turns there have been; a storage, so that branches and loops hand it on.
        opened: the open regions of the trace.
    """

    def __init__(self, mode: CaptureMode, opened: list[Any]) -> None:
        self.mode = mode
        self.opened = opened
        self.clock = Storage(mode, mode.builder.constant(0))
        self._known: dict[int, tuple[Any, Value | Made]] = {}
        self._count = 0

    def number(self, x: Any, *inner: Turn) -> Value:
        """The number of an array, emitted at the builder's place; -1 for anything else.

        Args:
            inner: the turn that is just being ended.
        """
        builder = self.mode.builder
        if not is_object(x):
            return builder.constant(-1)
        known = self.known(x, *inner)
        if isinstance(known, Value):
            return known
        if known.turn is None:
            return builder.constant(known.offset)
        return builder.apply(REGISTRY["add"], known.turn, known.offset)[0]

    def known(self, x: Tensor, *inner: Turn) -> Value | Made:
        key = object_of(x)
        known = self._known.get(id(key), (None, None))[1]
        if known is None or (isinstance(known, Value) and not self.mode.is_visible(known)):
            turn = None
            if type(key) is Tensor or key.origin is None:
                loops = [
                    o.loop.this_turn
                    for o in reversed(self.opened)
                    if o.loop is not None and o.loop.this_turn is not None
                ]
                turn = next((t.count for t in (*inner, *loops) if id(key) not in t.before), None)
            self._count += 1
            known = Made(turn, self._count)
            self._known[id(key)] = key, known
        return known

    def name(self, made: Any, number: Value) -> None:
        """A merged array has this number, if it is new."""
        if is_object(made):
            key = object_of(made)
            if id(key) not in self._known:
                self._known[id(key)] = key, number

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

    def same(self, a: Tensor, b: Tensor) -> bool | Value:
        """Whether two arrays are one object, emitted at the builder's place."""
        if object_of(a) is object_of(b):
            return True
        first, second = self.known(a), self.known(b)
        if type(first) is Made and type(second) is Made:
            return first.offset == second.offset
        if first is second:
            return True
        flag: Value = self.mode.builder.apply(REGISTRY["eq"], self.number(a), self.number(b))[0]
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
    first, second = sources(mode.choices, a._storage), sources(mode.choices, b._storage)
    return any(s is t or mode.may_share(s, t) for s in first for t in second)
