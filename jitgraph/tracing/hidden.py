"""Places outside the arguments that a traced function reads and stores: globals, closure cells, attributes, items.

A `Place` is a way to a value from something that lasts (a module's dict, a cell, an object). At each call `get` reads
the live value, `set` stores a new one. Arrays found at a place are hidden arguments; other values were baked into the
trace under a `ValueGuard`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from types import CellType
from typing import Any

import numpy as np

from jitgraph.errors import InternalError
from jitgraph.tracing.leaves import Key, leaf_type


class Missing:
    """There is no value at the place."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()


class Place(ABC):
    """Where a value lives. `text` is how the user would write it."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str: ...

    @abstractmethod
    def get(self) -> Any:
        """The live value; MISSING if there is none."""

    def set(self, value: Any) -> None:
        raise InternalError(f"{self.text} is no place to store to")

    def delete(self) -> None:
        raise InternalError(f"{self.text} is no place to delete")


@dataclass(slots=True, eq=False, repr=False)
class Global(Place):
    namespace: dict[str, Any]
    name: str

    @property
    def text(self) -> str:
        return self.name

    def get(self) -> Any:
        return self.namespace.get(self.name, MISSING)

    def set(self, value: Any) -> None:
        self.namespace[self.name] = value

    def delete(self) -> None:
        self.namespace.pop(self.name, None)


@dataclass(slots=True, eq=False, repr=False)
class Cell(Place):
    cell: CellType
    name: str

    @property
    def text(self) -> str:
        return self.name

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def set(self, value: Any) -> None:
        self.cell.cell_contents = value

    def delete(self) -> None:
        del self.cell.cell_contents


@dataclass(slots=True, eq=False, repr=False)
class Fixed(Place):
    """An object that the trace holds: an argument that is static, a default, an array made while tracing."""

    value: Any
    name: str

    @property
    def text(self) -> str:
        return self.name

    def get(self) -> Any:
        return self.value


@dataclass(slots=True, eq=False, repr=False)
class Attribute(Place):
    owner: Place
    name: str

    @property
    def text(self) -> str:
        return f"{self.owner.text}.{self.name}"

    def get(self) -> Any:
        owner = self.owner.get()
        return MISSING if owner is MISSING else getattr(owner, self.name, MISSING)

    def set(self, value: Any) -> None:
        setattr(self.owner.get(), self.name, value)

    def delete(self) -> None:
        delattr(self.owner.get(), self.name)


@dataclass(slots=True, eq=False, repr=False)
class Item(Place):
    owner: Place
    key: Hashable

    @property
    def text(self) -> str:
        return f"{self.owner.text}[{self.key!r}]"

    def get(self) -> Any:
        owner = self.owner.get()
        try:
            return MISSING if owner is MISSING else owner[self.key]
        except (LookupError, TypeError):
            return MISSING

    def set(self, value: Any) -> None:
        self.owner.get()[self.key] = value

    def delete(self) -> None:
        del self.owner.get()[self.key]


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

    def get(self) -> Any:
        """The live value (MISSING if it is gone)."""
        return self.place.get()

    def set(self, value: Any) -> None:
        self.place.set(value)

    def fits(self) -> bool:
        """Whether the live value is still of the traced type."""
        value = self.place.get()
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
class ValueGuard:
    """A value read at `place` and baked into the trace. `check` compares: by identity, or numbers and text by value."""

    place: Place
    value: Any
    by_value: bool = field(default=False)

    def check(self) -> bool:
        live = self.place.get()
        if live is self.value:
            return True
        return self.by_value and type(live) is type(self.value) and bool(live == self.value)

    def __str__(self) -> str:
        return f"{self.place.text} is {self.value!r}"


@dataclass(slots=True, eq=False, repr=False)
class StructureGuard:
    """The container at `place` still has the keys (or the length) and class it had."""

    place: Place
    kind: type
    keys: tuple[Hashable, ...] | int

    def check(self) -> bool:
        live: Any = self.place.get()
        if type(live) is not self.kind:
            return False
        found: Any = live
        return len(found) == self.keys if isinstance(self.keys, int) else tuple(found) == self.keys

    def __str__(self) -> str:
        count = self.keys if isinstance(self.keys, int) else len(self.keys)
        return f"{self.place.text} is a {self.kind.__name__} of {count}"


@dataclass(slots=True, eq=False, repr=False)
class SameGuard:
    """Two places still hold one and the same object."""

    place: Place
    other: Place

    def check(self) -> bool:
        return self.place.get() is self.other.get()

    def __str__(self) -> str:
        return f"{self.place.text} is {self.other.text}"


Guard = ValueGuard | StructureGuard | SameGuard

#: Classes whose values are compared by value in a guard.
BY_VALUE = (bool, int, float, complex, str, bytes, np.generic, np.dtype)
