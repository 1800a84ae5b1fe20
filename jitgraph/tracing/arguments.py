"""The arguments as the traced function gets them: copies of the caller's containers, known by their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jitgraph import pytree
from jitgraph.pytree import TreeDef
from jitgraph.records import dataclass
from jitgraph.tensor import Tensor
from jitgraph.tracing.container_copies import CONTAINERS, empty_like
from jitgraph.tracing.hidden import MISSING, NO_CALL, Argument, Attribute, Call, Item, Place, SameGuard
from jitgraph.tracing.leaves import Static, is_container_class, is_plain_class
from jitgraph.tracing.outside import Outside


@dataclass(slots=True, eq=False, repr=False)
class Child(Place):
    """A child of an instance of a registered class."""

    owner: Place
    number: int

    @property
    def text(self) -> str:
        return f"{self.owner.text}[{self.number}]"

    def get(self, call: Call = NO_CALL) -> Any:
        parts = pytree.children(self.owner.get(call))
        return MISSING if parts is None else parts[0][self.number]


class Arguments:
    """Puts the leaves of a call together to arguments that the trace knows by their places.

    Args:
        leaves: as the function sees them.
        positional: the names of the parameters that take positions; `rest` is that of `*args`.
    """

    def __init__(self, outside: Outside, leaves: Sequence[Any], positional: Sequence[str], rest: str) -> None:
        self.outside = outside
        self.leaves: Iterator[Any] = iter(leaves)
        self.positional, self.rest = positional, rest

    def build(self, tree: TreeDef, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments; `tree` is the structure of `(args,)` or `(args, kwargs)`."""
        found: list[Any] = []
        for k, (child, live) in enumerate(zip(tree.children[0].children, args, strict=True)):
            name = self.positional[k] if k < len(self.positional) else f"{self.rest}[{k - len(self.positional)}]"
            found.append(self._build(Argument(k, name), live, child))
        named: dict[str, Any] = {}
        if len(tree.children) > 1:
            keys: Any = tree.children[1].meta
            for key, child in zip(keys, tree.children[1].children, strict=True):
                named[key] = self._build(Argument(key, key), kwargs[key], child)
        return found, named

    def _build(self, place: Place, live: Any, tree: TreeDef) -> Any:
        kind = tree.kind
        if kind is None:
            x = next(self.leaves)
            if type(x) is not Tensor and type(live) is not Static:
                if hasattr(type(x), "__next__") and not is_plain_class(type(x)):
                    return self.outside.iterator(place)
                if is_container_class(type(x)):
                    return self.outside.lift(place, x)
                self.outside.argument_object(place, x)
            elif type(x) is Tensor and x.is_traced and x.type.kind == "array":
                self.outside.argument_array(place, x)
            return x
        if kind is type(None):
            return None
        known = self.outside.copies.get(id(live))
        if known is not None:  # the same container again
            for _ in range(tree.count):
                next(self.leaves)
            self.outside.guard(SameGuard(place, known[3]))
            return known[1]
        if kind in CONTAINERS and kind is not tuple:
            return self._fill(place, live, tree, empty_like(live))
        parts = pytree.children(live) if kind is not tuple else (live, None)
        assert parts is not None
        items = [
            self._build(self._inner(place, tree, k), x, child)
            for k, (x, child) in enumerate(zip(parts[0], tree.children, strict=True))
        ]
        made = tuple(items) if kind is tuple else pytree.node(kind, tree.meta, items)
        self.outside.adopt_argument(place, live, made)
        return made

    def _fill(self, place: Place, live: Any, tree: TreeDef, made: Any) -> Any:
        if isinstance(live, dict):
            for child, (key, x) in zip(tree.children, list(live.items()), strict=True):
                made[key] = self._build(Item(place, key), x, child)
        elif isinstance(live, set):
            made.update(live)
        else:
            for k, (child, x) in enumerate(zip(tree.children, list(live), strict=True)):
                made.append(self._build(Item(place, k), x, child))
        self.outside.adopt_argument(place, live, made)
        return made

    @staticmethod
    def _inner(place: Place, tree: TreeDef, k: int) -> Place:
        kind = tree.kind
        if kind is tuple:
            return Item(place, k)
        if pytree.is_registered(kind):
            return Child(place, k)
        if issubclass(kind, tuple):
            return Item(place, k)
        meta: Any = tree.meta
        return Attribute(place, meta[k])
