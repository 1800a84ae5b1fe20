"""What a region may change in Python objects: attributes and items, which it hands on as it does variables.

A `Snapshot` is taken when a region opens and put back when it closes. What differs is a list of `Cell`s: attributes of
objects that the trace made or that come from outside, items of lists and dicts. A branch merges them, a loop carries
them. A container whose length, order or keys changed is no such thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from jitgraph.records import dataclass
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
        holder: a list, a dict, the `__dict__` of an object, the record of an attribute from outside, or a closure's cell.
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
        return self.holder.cell_contents if type(self.holder) is CellType else self.holder[self.key]

    def set(self, value: Any) -> None:
        if type(self.holder) is CellType:
            self.holder.cell_contents = value
        else:
            self.holder[self.key] = value


class Reshaped(Exception):  # noqa: N818  # an answer
    """A container has other items than before, or an object other attributes."""


class Snapshot:
    """The attributes and items within reach at one moment.

    Args:
        reached: containers in reach of variables.
        attribute: reads an attribute of an object: (owner, name).
    """

    def __init__(self, outside: Outside, reached: Iterable[Reached], attribute: Callable[[Any, str], Any]) -> None:
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
            if type(copy) in _KINDS and type(before) in _KINDS and id(copy) not in self.known
        ]
        return self.containers + later

    def changed(self) -> list[Cell]:
        """What differs now.

        Raises:
            Reshaped: more than attributes and items.
        """
        found: list[Cell] = []
        for reached, copy in self._all():
            holder, kind = reached.holder, type(reached.holder)
            if kind is set:
                fits = holder == copy
            elif kind is CellType:
                now = _copy(holder)
                fits = len(now) == len(copy)
                found += [reached.cell(None) for a, b in zip(now, copy, strict=False) if a is not b]
            elif kind is list:
                fits = len(holder) == len(copy)
                found += [reached.cell(k) for k, (a, b) in enumerate(zip(holder, copy, strict=False)) if a is not b]
            else:
                fits = len(holder) == len(copy) and list(holder) == list(copy)
                found += [reached.cell(k) for k, b in copy.items() if fits and holder[k] is not b]
            if not fits:
                raise Reshaped(reached.describe())
        for key, record in self.outside.attributes.items():
            if record[0] is not self.records.get(key, record[1]):
                found.append(Cell(record, 0, record[2].text, key))
        return found

    def is_changed(self) -> bool:
        try:
            return bool(self.changed())
        except Reshaped:
            return True

    def restore(self) -> None:
        """Put everything back."""
        for reached, copy in self._all():
            holder = reached.holder
            if type(holder) is list:
                holder[:] = copy
            elif type(holder) is CellType:
                if copy:
                    holder.cell_contents = copy[0]
            elif type(holder) is set:
                if holder != copy:
                    holder.clear()
                    holder.update(copy)
            elif len(holder) != len(copy) or any(holder.get(k, MISSING) is not v for k, v in copy.items()):
                holder.clear()
                holder.update(copy)
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
        if cell.record is None or cell.record in self.outside.attributes:
            return cell
        owner, name = self.outside.objects[cell.record[0]][0], cell.record[1]
        try:
            self.attribute(owner, name)
        except AttributeError:
            raise Reshaped(f"the new attribute {cell.text}") from None
        return Cell(self.outside.attributes[cell.record], 0, cell.text, cell.record)


def _copy(holder: Any) -> Any:
    """The items of a container; of a cell a list of what it holds."""
    if type(holder) is not CellType:
        return holder.copy()
    try:
        return [holder.cell_contents]
    except ValueError:
        return []


def reached(outside: Outside, variables: dict[str, Any], made: dict[int, Any]) -> list[Reached]:
    """The lists, dicts, sets and objects of the trace that variables lead to, and all containers from outside.

    Args:
        made: objects of the user's classes that the trace made, by identity.
    """
    found: list[Reached] = []
    seen: set[int] = set()

    def visit(name: str, x: Any, depth: int) -> None:
        kind = type(x)
        if depth < 0:
            return
        if kind is FunctionType:
            for label, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
                if label != TRACER and id(cell) not in seen and (content := _copy(cell)):
                    seen.add(id(cell))
                    found.append(Reached(label, cell))
                    visit(label, content[0], depth - 1)
            return
        if kind not in (list, dict, set, tuple):
            if id(x) in made and id(x) not in seen and type(own := getattr(x, "__dict__", None)) is dict:
                seen.add(id(x))
                found.append(Reached(name, own, is_object=True))
                if depth:
                    for key, item in own.items():
                        visit(f"{name}.{key}", item, depth - 1)
            return
        if id(x) in seen or len(x) > _MOST_ITEMS:
            return
        seen.add(id(x))
        if kind is not tuple:
            found.append(Reached(name, x))
        if depth and kind is not set:
            for key, item in x.items() if kind is dict else enumerate(x):
                visit(f"{name}[{key!r}]", item, depth - 1)

    for _, copy, before, place in outside.copies.values():
        if before is not None and type(copy) in _KINDS and id(copy) not in seen:
            seen.add(id(copy))
            found.append(Reached(place.text, copy))
    for name, x in variables.items():
        visit(name, x, 3)
    return found


_MOST_ITEMS = 1000
_KINDS = (list, dict, set)
