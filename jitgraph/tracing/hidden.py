"""Places outside the trace that a traced function reads and stores: globals, cells, attributes, items, arguments.

A `Place` is a way to a value from something that lasts (a module's dict, a cell, an object) or from the arguments of
the call. `get(call)` reads the live value, where `call` is `(args, kwargs)`; a store is bound to its live owner first
(`owner_of`), so that stores do not move the places of others. Arrays found at a place are hidden arguments; other
values were baked into the trace under a guard. Objects and functions are guarded by class and code, not by identity:
what a trace uses of them are their attributes and cells, places of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from jitgraph.errors import InternalError
from jitgraph.pytree import is_same_key
from jitgraph.records import dataclass, field
from jitgraph.tracing.leaves import Key, leaf_text, leaf_type


class Missing:
    """There is no value at the place."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()

#: The arguments of a call: `(args, kwargs)`.
Call = tuple[tuple[Any, ...], dict[str, Any]]
NO_CALL: Call = ((), {})


class Place(ABC):
    """Where a value lives. `text` is how the user would write it."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str: ...

    @abstractmethod
    def get(self, call: Call = NO_CALL) -> Any:
        """The live value; MISSING if there is none."""

    def owner_of(self, call: Call) -> Any:
        """The live object that a store goes to."""
        raise InternalError(f"{self.text} is no place to store to")

    def put(self, owner: Any, value: Any) -> None:
        """Store the value in the owner."""
        raise InternalError(f"{self.text} is no place to store to")

    def remove(self, owner: Any) -> None:
        """Delete the value in the owner."""
        raise InternalError(f"{self.text} is no place to delete")


@dataclass(slots=True, eq=False, repr=False)
class Argument(Place):
    """An argument of the call: of `args` by number, of `kwargs` by name."""

    key: int | str
    name: str

    @property
    def text(self) -> str:
        return self.name

    def get(self, call: Call = NO_CALL) -> Any:
        return call[1].get(self.key, MISSING) if isinstance(self.key, str) else call[0][self.key]


@dataclass(slots=True, eq=False, repr=False)
class Global(Place):
    namespace: dict[str, Any]
    name: str

    @property
    def text(self) -> str:
        return self.name

    def get(self, call: Call = NO_CALL) -> Any:
        return self.namespace.get(self.name, MISSING)

    def owner_of(self, call: Call) -> Any:
        return self.namespace

    def put(self, owner: Any, value: Any) -> None:
        owner[self.name] = value

    def remove(self, owner: Any) -> None:
        owner.pop(self.name, None)


class _InCell(Place):
    """A closure cell that `owner_of` finds."""

    __slots__ = ()
    name: str

    @property
    def text(self) -> str:
        return self.name

    def put(self, owner: Any, value: Any) -> None:
        owner.cell_contents = value

    def remove(self, owner: Any) -> None:
        del owner.cell_contents


@dataclass(slots=True, eq=False, repr=False)
class Cell(_InCell):
    cell: CellType
    name: str

    def get(self, call: Call = NO_CALL) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def owner_of(self, call: Call) -> Any:
        return self.cell


@dataclass(slots=True, eq=False, repr=False)
class CellOf(_InCell):
    """A closure cell of the function at a place."""

    function: Place
    number: int
    name: str

    def get(self, call: Call = NO_CALL) -> Any:
        try:
            return self.owner_of(call).cell_contents
        except (ValueError, TypeError, AttributeError):
            return MISSING

    def owner_of(self, call: Call) -> Any:
        return self.function.get(call).__closure__[self.number]


@dataclass(slots=True, eq=False, repr=False)
class Fixed(Place):
    """An object that the trace holds: an argument that is static, a class, an array made while tracing."""

    value: Any
    name: str

    @property
    def text(self) -> str:
        return self.name

    def get(self, call: Call = NO_CALL) -> Any:
        return self.value


@dataclass(slots=True, eq=False, repr=False)
class Attribute(Place):
    owner: Place
    name: str

    @property
    def text(self) -> str:
        return f"{self.owner.text}.{self.name}"

    def get(self, call: Call = NO_CALL) -> Any:
        owner = self.owner.get(call)
        return MISSING if owner is MISSING else getattr(owner, self.name, MISSING)

    def owner_of(self, call: Call) -> Any:
        return self.owner.get(call)

    def put(self, owner: Any, value: Any) -> None:
        if isinstance(owner, type | ModuleType):
            setattr(owner, self.name, value)
        else:  # what a `__setattr__` of the user's does was traced
            object.__setattr__(owner, self.name, value)

    def remove(self, owner: Any) -> None:
        delattr(owner, self.name)


@dataclass(slots=True, eq=False, repr=False)
class Item(Place):
    owner: Place
    key: Hashable

    @property
    def text(self) -> str:
        return f"{self.owner.text}[{self.key!r}]"

    def get(self, call: Call = NO_CALL) -> Any:
        owner = self.owner.get(call)
        try:
            return MISSING if owner is MISSING else owner[self.key]
        except (LookupError, TypeError):
            return MISSING

    def owner_of(self, call: Call) -> Any:
        return self.owner.get(call)

    def put(self, owner: Any, value: Any) -> None:
        owner[self.key] = value

    def remove(self, owner: Any) -> None:
        del owner[self.key]


@dataclass(slots=True, eq=False, repr=False)
class Contents(Place):
    """All that the list, deque, set or dict at a place holds: stored as a whole, the container stays itself."""

    container: Place

    @property
    def text(self) -> str:
        return self.container.text

    def get(self, call: Call = NO_CALL) -> Any:
        return self.container.get(call)

    def owner_of(self, call: Call) -> Any:
        return self.container.get(call)

    def put(self, owner: Any, value: Any) -> None:
        if isinstance(owner, list):
            owner[:] = value
            return
        owner.clear()
        (owner.extend if hasattr(owner, "extend") else owner.update)(value)


@dataclass(slots=True, eq=False, repr=False)
class HiddenArg:
    """An argument that the call does not pass: read at `place` when the function is called.

    Attributes:
        index: its number among the graph's arguments.
        key: `leaf_type` of the value that was traced; a call whose live value has another one needs another trace.
    """

    place: Place
    key: Key
    index: int = -1

    @property
    def name(self) -> str:
        return self.place.text

    def get(self, call: Call = NO_CALL) -> Any:
        """The live value (MISSING if it is gone)."""
        return self.place.get(call)

    def fits(self, call: Call = NO_CALL) -> bool:
        """Whether the live value is still of the traced type."""
        value = self.place.get(call)
        return value is not MISSING and leaf_type(value) == self.key


@dataclass(slots=True, eq=False, repr=False)
class Replay:
    """A store to a place outside, repeated after each successful call: the value is leaf tree `tree` of the results.

    Attributes:
        first, count: which leaves of `graph.results` (behind those of the returned value) make the value.
        tree: how they are put together; None: the name is deleted.
    """

    place: Place
    first: int = 0
    count: int = 0
    tree: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Live:
    """A leaf of a result that is the very object at a place."""

    place: Place


def is_same(live: Any, value: Any) -> bool:
    """Whether numbers, text and the like are equal in class and value: 0.0 is not -0.0, and NaN is NaN."""
    if live is value:
        return True
    if type(live) is not type(value):
        return False
    exact = isinstance(live, float | complex | np.inexact)
    return repr(live) == repr(value) if exact else bool(live == value)


@dataclass(slots=True, eq=False, repr=False)
class ValueGuard:
    """A value read at `place` and baked into the trace. `check` compares: by identity, or numbers and text by value."""

    place: Place
    value: Any
    by_value: bool = field(default=False)

    def check(self, call: Call = NO_CALL) -> bool:
        live = self.place.get(call)
        return is_same(live, self.value) if self.by_value else live is self.value

    def __str__(self) -> str:
        return f"{self.place.text} is {self.value!r}"


@dataclass(slots=True, eq=False, repr=False)
class StructureGuard:
    """The container at `place` still has the keys (or the length) and class it had."""

    place: Place
    kind: type
    keys: tuple[Hashable, ...] | int

    def check(self, call: Call = NO_CALL) -> bool:
        live: Any = self.place.get(call)
        if type(live) is not self.kind:
            return False
        found: Any = live
        if isinstance(self.keys, int):
            return len(found) == self.keys
        now = tuple(found)  # 1, 1.0 and True are equal
        return now == self.keys and all(map(is_same_key, now, self.keys))

    def __str__(self) -> str:
        count = self.keys if isinstance(self.keys, int) else len(self.keys)
        return f"{self.place.text} is a {self.kind.__name__} of {count}"


@dataclass(slots=True, eq=False, repr=False)
class SetGuard:
    """The set at `place` still has the same elements."""

    place: Place
    value: Any

    def check(self, call: Call = NO_CALL) -> bool:
        live: Any = self.place.get(call)
        return type(live) is type(self.value) and bool(live == self.value)

    def __str__(self) -> str:
        return f"{self.place.text} is a set of {len(self.value)}"


@dataclass(slots=True, eq=False, repr=False)
class SameGuard:
    """Two places still hold one and the same object."""

    place: Place
    other: Place

    def check(self, call: Call = NO_CALL) -> bool:
        return self.place.get(call) is self.other.get(call)

    def __str__(self) -> str:
        return f"{self.place.text} is {self.other.text}"


@dataclass(slots=True, eq=False, repr=False)
class DistinctGuard:
    """The places still hold different objects."""

    places: Sequence[Place]

    def check(self, call: Call = NO_CALL) -> bool:
        return len({id(p.get(call)) for p in self.places}) == len(self.places)

    def __str__(self) -> str:
        return f"{', '.join(p.text for p in self.places)} are different objects"


@dataclass(slots=True, eq=False, repr=False)
class ClassGuard:
    """The object at `place` is of this class; its attributes are places of their own."""

    place: Place
    kind: type

    def check(self, call: Call = NO_CALL) -> bool:
        return type(self.place.get(call)) is self.kind

    def __str__(self) -> str:
        return f"{self.place.text} is a {self.kind.__name__}"


@dataclass(slots=True, eq=False, repr=False)
class TypeGuard:
    """The value at `place` still has this `leaf_type`: of a hidden argument that the graph makes no use of.

    Python has looked at its class, dtype or rank perhaps, which leaves nothing in the graph.
    """

    place: Place
    key: Key

    def check(self, call: Call = NO_CALL) -> bool:
        live = self.place.get(call)
        return live is not MISSING and leaf_type(live) == self.key

    def __str__(self) -> str:
        return f"{self.place.text} is {leaf_text(self.key)}"


@dataclass(slots=True, eq=False, repr=False)
class MissingGuard:
    """There is still nothing at the place."""

    place: Place

    def check(self, call: Call = NO_CALL) -> bool:
        return self.place.get(call) is MISSING

    def __str__(self) -> str:
        return f"{self.place.text} is missing"


@dataclass(slots=True, eq=False, repr=False)
class NotShadowedGuard:
    """The object at `place` has no attribute of its own that hides the one of its class."""

    place: Place
    name: str

    def check(self, call: Call = NO_CALL) -> bool:
        own = getattr(self.place.get(call), "__dict__", None)
        return own is None or self.name not in own

    def __str__(self) -> str:
        return f"{self.place.text}.{self.name} is its class's"


@dataclass(slots=True, eq=False, repr=False)
class MemberGuard:
    """A method, property or other member of a class is still the one it was (MISSING: there is still none)."""

    owner: type
    name: str
    value: Any
    _bodies: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self._bodies = tuple([base.__dict__ for base in self.owner.__mro__])

    def check(self, call: Call = NO_CALL) -> bool:
        for body in self._bodies:
            if self.name in body:
                return body[self.name] is self.value
        return self.value is MISSING

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name} is as it was"


def member_of(owner: type, name: str) -> Any:
    """The member of a class, as it stands in the class body; MISSING if there is none."""
    for base in owner.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


@dataclass(slots=True, eq=False, repr=False)
class CodeGuard:
    """The function at `place` still runs this code, with these globals; its cells and defaults are places."""

    place: Place
    code: CodeType
    namespace: dict[str, Any]

    def check(self, call: Call = NO_CALL) -> bool:
        live = self.place.get(call)
        return type(live) is FunctionType and live.__code__ is self.code and live.__globals__ is self.namespace

    def __str__(self) -> str:
        return f"{self.place.text} is the function {self.code.co_name}"


Guard = (
    ValueGuard
    | StructureGuard
    | SetGuard
    | SameGuard
    | DistinctGuard
    | ClassGuard
    | TypeGuard
    | MissingGuard
    | NotShadowedGuard
    | MemberGuard
    | CodeGuard
)

#: Classes whose values are compared by value in a guard.
BY_VALUE = (bool, int, float, complex, str, bytes, np.generic, np.dtype)
