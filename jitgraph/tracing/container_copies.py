"""Copies of containers and objects from outside, which a trace sees in their place: making them, and what changed."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

from jitgraph import pytree
from jitgraph.records import dataclass
from jitgraph.tracing.hidden import MISSING, Attribute, Contents, Item, Place, member_of
from jitgraph.tracing.leaves import generators

MAPPINGS = (dict, OrderedDict, defaultdict)
SEQUENCES = (list, tuple, deque)
SETS = (set, frozenset)
CONTAINERS = frozenset((*MAPPINGS, *SEQUENCES, *SETS))


def empty_like(container: Any) -> Any:
    """An empty container of the same class and options."""
    if type(container) is defaultdict:
        return defaultdict(container.default_factory)
    if type(container) is deque:
        return deque(maxlen=container.maxlen)
    return type(container)()


def new_object(kind: Any) -> Any:
    """An instance whose `__init__` has not run."""
    plain = member_of(kind, "__new__") is object.__dict__["__new__"]
    return object.__new__(kind) if plain else kind.__new__(kind)


def copy_of(container: Any) -> Any:
    """A shallow copy; objects by their attributes."""
    kind = type(container)
    if kind in CONTAINERS:
        return container.copy() if hasattr(container, "copy") else container
    if isinstance(container, dict | list | set | deque):
        return Both(plain_copy(container), attributes_of(container))
    return attributes_of(container)


@dataclass(slots=True, eq=False)
class Both:
    """What a container of a class of its own holds: its items, as a builtin, and its attributes."""

    items: Any
    attributes: dict[str, Any]


def plain_copy(container: Any) -> Any:
    base: Any = next(b for b in (dict, list, set, deque) if isinstance(container, b))
    return dict(dict.items(container)) if base is dict else base(base.__iter__(container))


def attributes_of(x: Any) -> dict[str, Any]:
    """The attributes that an object has of its own, slots included."""
    found: dict[str, Any] = {}
    for base in type(x).__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                value = getattr(x, name, MISSING)
                if value is not MISSING:
                    found[name] = value
    found.update(getattr(x, "__dict__", {}))
    return found


def same_items(a: Any, b: Any) -> bool:
    """Whether two builtin containers hold the same objects."""
    if isinstance(a, set):
        return bool(a == b)
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return all(k in b and b[k] is v for k, v in a.items())
    return all(x is y for x, y in zip(a, b, strict=True))


def stored_in(live: Any, copy: Any, before: Any) -> dict[Any, Any]:
    """What was changed in a copy so far: identity and key to value."""
    found: dict[Any, Any] = {}
    kind = type(live)
    if isinstance(before, Both):
        now_plain = plain_copy(copy)
        for part, old in ((now_plain, before.items), (attributes_of(copy), before.attributes)):
            if not same_items(part, old):
                found[(id(copy), type(part).__name__)] = object()
        return found
    if kind in SETS:
        if copy != before:
            found[(id(copy), "")] = tuple(copy)
        return found
    if kind in SEQUENCES:
        if len(copy) != len(before) or any(a is not b for a, b in zip(copy, before, strict=True)):
            found.update({(id(copy), k): v for k, v in enumerate(copy)})
            found[(id(copy), "")] = len(copy)
        return found
    now = copy if kind in MAPPINGS else attributes_of(copy)
    found.update({(id(copy), k): v for k, v in now.items() if before.get(k, MISSING) is not v})
    if len(now) != len(before):
        found[(id(copy), "")] = len(now)
    return found


def changes_of(live: Any, copy: Any, before: Any, place: Place) -> Iterable[tuple[Place, Any]]:
    """How a container or object was changed: item by item if its order and length stay, else all of it."""
    kind = type(live)
    if isinstance(before, Both):
        plain = plain_copy(copy)
        yield from changes_of(before.items, plain, before.items, place)
        yield from changes_of(None, copy, before.attributes, place)
        return
    if kind in SETS:
        if copy != before:
            yield Contents(place), list(copy)
        return
    if kind in SEQUENCES:
        same = [len(copy) == len(before), *(a is b for a, b in zip(copy, before, strict=False))]
        if not same[0] or (kind is deque and not all(same)):
            yield Contents(place), list(copy)
        else:
            yield from ((Item(place, k), now) for k, now in enumerate(copy) if not same[k + 1])
        return
    items = kind in MAPPINGS
    now_all = copy if items else attributes_of(copy)
    kept = [k for k in before if k in now_all]
    if items and list(now_all)[: len(kept)] != kept:
        yield Contents(place), dict(copy)
        return
    for key, value in now_all.items():
        if before.get(key, MISSING) is not value:
            yield (Item(place, key) if items else Attribute(place, key)), value
    for key in before:
        if key not in now_all:
            yield (Item(place, key) if items else Attribute(place, key)), MISSING


@dataclass(slots=True, eq=False)
class Whole:
    """An object of a user's class on its way out of the trace."""

    kind: type
    names: tuple[str, ...]
    values: list[Any]
    is_deep = True


def _assemble(meta: Any, values: Sequence[Any]) -> Any:
    made = new_object(meta[0])
    for name, x in zip(meta[1], values, strict=True):
        object.__setattr__(made, name, x)
    return made


pytree.register(Whole, lambda w: (w.values, (w.kind, w.names)), _assemble)


def has_state(x: Any) -> bool:
    """Whether there is more to an object than its attributes."""
    return type(x) is functools.partial or type(x) in generators()


def is_node(x: Any) -> bool:
    """Whether an object is a node for `pytree`."""
    return pytree.children(x) is not None
