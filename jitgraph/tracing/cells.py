"""What a region may change in Python objects: attributes and items, which it hands on as it does variables.

A `Snapshot` is taken when a region opens and put back when it closes. What differs is a list of `Cell`s: attributes of
objects that the trace made or that come from outside, items of lists and dicts. A branch merges them, a loop carries
them. A container whose length, order or keys changed is no such thing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from jitgraph.records import dataclass
from jitgraph.tensor import Tensor
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.hidden import MISSING
from jitgraph.tracing.rewrite import TRACER

if TYPE_CHECKING:
    from jitgraph.tracing.outside import Outside


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """A container in reach of a variable: its name, itself, whether its keys are names of attributes."""

    text: str
    holder: Any
    is_object: bool = False

    def describe(self) -> str:
        if type(self.holder) is CellType:
            return f"the variable {self.text}"
        return f"an attribute of {self.text}" if self.is_object else f"the {type(self.holder).__name__} {self.text}"

    def cell(self, key: Any) -> Cell:
        if type(self.holder) is CellType:
            return Cell(self.holder, None, self.text)
        return Cell(self.holder, key, f"{self.text}.{key}" if self.is_object else f"{self.text}[{key!r}]")


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One attribute or item.

    Attributes:
        holder: a list, a dict, the `__dict__` of an object, the record of an attribute from outside, or a cell.
        key: which item of it.
        text: what the user calls it.
        record: of an attribute from outside: its key in `Outside.attributes`.
    """

    holder: Any
    key: Any
    text: str
    record: tuple[int, str] | None = None

    @property
    def name(self) -> tuple[int, Any]:
        return id(self.holder), self.key

    def get(self) -> Any:
        if type(self.holder) is CellType:
            return self.holder.cell_contents
        return _base(self.holder).__getitem__(self.holder, self.key)

    def set(self, value: Any) -> None:
        if type(self.holder) is CellType:
            self.holder.cell_contents = value
        else:
            _base(self.holder).__setitem__(self.holder, self.key, value)


class Reshaped(Exception):  # noqa: N818  # an answer
    """A container has other items than before, or an object other attributes."""


class Snapshot:
    """The attributes and items within reach at one moment.

    Args:
        reached: containers in reach of variables.
        attribute: reads an attribute of an object: (owner, name).
        namespaces: the globals of all modules in the trace.
    """

    def __init__(
        self,
        outside: Outside,
        reached: Iterable[Reached],
        attribute: Callable[[Any, str], Any],
        namespaces: Callable[[], Sequence[TraceGlobals]],
    ) -> None:
        self.namespaces = namespaces
        self.globals = {id(space): space.stores() for space in namespaces()}
        self.outside = outside
        self.attribute = attribute
        self.containers = [(r, _copy(r.holder)) for r in reached]
        #: Variables of enclosing functions, by name.
        self.variables = {r.text for r, _ in self.containers if type(r.holder) is CellType}
        self.known = {id(r.holder) for r, _ in self.containers}
        self.records = {key: record[0] for key, record in outside.attributes.items()}

    def _all(self) -> list[tuple[Reached, Any]]:
        """The containers, with those from outside that have been read since, and what was in them."""
        later = [
            (Reached(place.text, copy), before)
            for _, copy, before, place in self.outside.copies.values()
            if isinstance(copy, _KINDS) and type(before) in _PLAIN and id(copy) not in self.known
        ]
        return self.containers + later

    def changed(self) -> list[Cell]:
        """What differs now.

        Raises:
            Reshaped: more than attributes and items.
        """
        found: list[Cell] = []
        for reached, copy in self._all():
            now = _copy(reached.holder)
            if type(now) is set:
                fits = now == copy
            elif type(reached.holder) is CellType and not copy:  # see `bound`
                fits = True
            elif type(now) is list:
                fits = len(now) == len(copy)
                found += [reached.cell(k) for k, (a, b) in enumerate(zip(now, copy, strict=False)) if a is not b]
            else:
                fits = len(now) == len(copy) and list(now) == list(copy)
                found += [reached.cell(k) for k, b in copy.items() if fits and now[k] is not b]
            if not fits:
                raise Reshaped(reached.describe())
        for space in self.namespaces():
            stores = self.globals.get(id(space), {})
            for name, value in space.stores().items():
                if stores.get(name, space.loaded.get(name, MISSING)) is not value:
                    found.append(Cell(space, name, name))
        for key, record in self.outside.attributes.items():
            if record[0] is not self.records.get(key, record[1]):
                found.append(Cell(record, 0, record[2].text, key))
        return found

    def bound(self) -> list[tuple[Reached, Any]]:
        """Variables of enclosing functions that were unbound and have a value now."""
        empty = [r for r, copy in self.containers if type(r.holder) is CellType and not copy]
        return [(r, content[0]) for r in empty if (content := _copy(r.holder))]

    def is_changed(self) -> bool:
        try:
            return bool(self.changed())
        except Reshaped:
            return True

    def restore(self) -> None:
        """Put everything back."""
        for reached, copy in self._all():
            now = _copy(reached.holder)
            if type(now) is dict:
                same = len(now) == len(copy) and all(now.get(k, MISSING) is v for k, v in copy.items())
            else:
                same = now == copy if type(now) is set else _is_same(now, copy)
            if not same:
                _put_back(reached.holder, copy)
        for space in self.namespaces():
            stores = self.globals.get(id(space), {})
            for name in space.stores():
                if name in stores or name in space.loaded:
                    dict.__setitem__(space, name, stores.get(name, space.loaded.get(name)))
                else:  # stored before it was read
                    dict.__delitem__(space, name)
        for key, record in list(self.outside.attributes.items()):
            before = self.records.get(key, record[1])
            if before is MISSING:  # stored before it was read
                del self.outside.attributes[key]
            else:
                record[0] = before

    def settled(self, cell: Cell) -> Cell:
        """A cell behind `restore`: an attribute that was stored before it was read is read now.

        Raises:
            Reshaped: it has not been there.
        """
        if type(cell.holder) is TraceGlobals and cell.key not in cell.holder:
            if cell.key not in cell.holder.live:
                raise Reshaped(f"the new variable {cell.text}")
            cell.holder[cell.key]  # read for its effect
        if cell.record is None or cell.record in self.outside.attributes:
            return cell
        owner, name = self.outside.objects[cell.record[0]][0], cell.record[1]
        try:
            self.attribute(owner, name)
        except AttributeError:
            raise Reshaped(f"the new attribute {cell.text}") from None
        return Cell(self.outside.attributes[cell.record], 0, cell.text, cell.record)


def _copy(holder: Any) -> Any:
    """What is in a container as a list, dict or set, whatever its class does."""
    if type(holder) is CellType:
        try:
            return [holder.cell_contents]
        except ValueError:
            return []
    if isinstance(holder, dict):
        return dict(dict.items(holder))
    return set(set.__iter__(holder)) if isinstance(holder, set) else list(_base(holder).__iter__(holder))


def _base(holder: Any) -> Any:
    return next(b for b in _KINDS if isinstance(holder, b))


def _is_same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _put_back(holder: Any, copy: Any) -> None:
    if type(holder) is CellType:
        if copy:
            holder.cell_contents = copy[0]
        else:
            del holder.cell_contents
        return
    base = _base(holder)
    base.clear(holder)
    if base in (list, deque):
        base.extend(holder, copy)
    else:
        base.update(holder, copy)


def reached(outside: Outside, variables: dict[str, Any], made: dict[int, Any]) -> list[Reached]:
    """The lists, dicts, sets and objects of the trace that variables lead to, and all containers from outside.

    Args:
        made: objects of the user's classes that the trace made, by identity.
    """
    found: list[Reached] = []
    seen: set[int] = set()

    def visit(name: str, x: Any, depth: int) -> None:
        kind = type(x)
        if depth < 0 or kind is Tensor:
            return
        if kind is FunctionType:
            for label, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
                if label != TRACER and id(cell) not in seen:
                    seen.add(id(cell))
                    found.append(Reached(label, cell))
                    for content in _copy(cell):
                        visit(label, content, depth - 1)
            return
        if not isinstance(x, (*_KINDS, tuple)):
            if id(x) in made and id(x) not in seen and type(own := getattr(x, "__dict__", None)) is dict:
                seen.add(id(x))
                found.append(Reached(name, own, is_object=True))
                if depth:
                    for key, item in own.items():
                        visit(f"{name}.{key}", item, depth - 1)
            return
        if id(x) in seen or len(x) > MOST_ITEMS:
            return
        seen.add(id(x))
        items = x if isinstance(x, tuple) else _copy(x)
        if items is not x:
            found.append(Reached(name, x))
        if depth and type(items) is not set:
            for key, item in items.items() if type(items) is dict else enumerate(items):
                visit(f"{name}[{key!r}]", item, depth - 1)

    for _, copy, before, place in outside.copies.values():
        if type(before) in _PLAIN and isinstance(copy, _KINDS) and id(copy) not in seen:
            seen.add(id(copy))
            found.append(Reached(place.text, copy))
    for name, x in variables.items():
        visit(name, x, 3)
    return found


#: In longer containers nobody looks for others.
MOST_ITEMS = 1000
_KINDS = (list, dict, set, deque)
_PLAIN = (list, dict, set)
