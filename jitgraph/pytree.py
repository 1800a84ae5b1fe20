"""Containers as trees: `flatten` gives leaves and a hashable `TreeDef`, `unflatten` puts them back.

Nodes are tuples, lists, dicts (in the order of their keys, which is part of the structure; `OrderedDict` and
`defaultdict` too), deques, sets (of static values: no children), named tuples, dataclass instances without further
attributes, `SimpleNamespace`s, None (a node without children) and registered classes. Everything else is a leaf.
Only exact builtin classes count: a subclass of `list` is a leaf unless it is registered.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final, TypeVar

T = TypeVar("T")


class TreeDef:
    """The shape of a tree; equal for equal structure."""

    __slots__ = ("_hash", "children", "count", "kind", "meta")

    def __init__(self, kind: Any, meta: Hashable = None, children: tuple[TreeDef, ...] = ()) -> None:
        #: The class of the node; None for a leaf.
        self.kind: Final = kind
        #: Keys, field names or what the registered `flatten` returned.
        self.meta: Final = meta
        self.children: Final = children
        #: Number of leaves.
        self.count: Final[int] = 1 if kind is None else sum(c.count for c in children)
        self._hash: Final = hash((kind, meta, children))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TreeDef)
            and self._hash == other._hash
            and self.kind is other.kind
            and _is_same_meta(self.meta, other.meta)
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return self._hash

    def is_like(self, other: TreeDef) -> bool:
        """Whether the roots are one kind of node, with as many children."""
        known = self.kind is other.kind and len(self.children) == len(other.children)
        return known and _is_same_meta(self.meta, other.meta)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inner = [repr(c) for c in self.children]
        if self.kind is dict or self.kind is OrderedDict:
            return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(self.meta, inner, strict=True)) + "}"  # type: ignore[call-overload]
        if self.kind is list:
            return f"[{', '.join(inner)}]"
        if self.kind is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        return "None" if self.kind is type(None) else f"{self.kind.__name__}({', '.join(inner)})"


def is_same_key(a: Hashable, b: Hashable) -> bool:
    """Whether equal keys of dicts are one to a program, too: 1, 1.0 and True are not, nor are 0.0 and -0.0."""
    if a is b:
        return True
    return type(a) is type(b) and (not isinstance(a, _INEXACT) or repr(a) == repr(b))


def _is_same_meta(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return bool(a == b) and (type(a) is not tuple or (type(b) is tuple and all(map(is_same_key, a, b))))


#: Classes whose equal objects may be written in two ways, or have equal items of several classes.
_INEXACT: Final = (float, complex, tuple, frozenset)
LEAF: Final = TreeDef(None)
NONE: Final = TreeDef(type(None))

Flatten = Callable[[Any], tuple[Sequence[Any], Hashable]]
Unflatten = Callable[[Any, Sequence[Any]], Any]
_registered: dict[type, tuple[Flatten, Unflatten]] = {}
#: Registered classes whose first child is the number of the one that `unflatten` makes, if it is an int.
_choosing: set[type] = set()
_fields: dict[type, tuple[str, ...]] = {}


def register(
    cls: type[T],
    flatten: Callable[[T], tuple[Sequence[Any], Hashable]],
    unflatten: Callable[[Any, Sequence[Any]], T],
    *,
    chooses: bool = False,
) -> None:
    """Make instances of `cls` nodes: `flatten(x) -> (children, metadata)`, `unflatten(metadata, children) -> x`.

    Args:
        chooses: the first child says which of the others the value is: an int k in its place, and `unflatten` answers
            the k-th of them, without a look at the rest.

    Raises:
        ValueError: the class is registered already.
    """
    if cls in _registered:
        raise ValueError(f"{cls.__name__} is registered already")
    _registered[cls] = (flatten, unflatten)
    if chooses:
        _choosing.add(cls)


def register_leaf(cls: type) -> None:
    """Make instances of a dataclass or named tuple leaves."""
    _fields[cls] = ()


def flatten(tree: Any, leaf: Callable[[Any], Any] | None = None) -> tuple[list[Any], TreeDef]:
    """Leaves in order, and the structure.

    Args:
        leaf: answers what to take as a leaf in place of a value, a node of a registered class whose children are
            taken as they are (or looked into, if it has a true `is_deep`), or None to look inside.
    """
    leaves: list[Any] = []
    if leaf is not None:
        return leaves, _flatten_to(tree, leaves, leaf)
    return leaves, _flatten(tree, leaves)


def _flatten_to(tree: Any, leaves: list[Any], leaf: Callable[[Any], Any]) -> TreeDef:
    found = leaf(tree)
    if type(found) in _registered:
        items, meta = _registered[type(found)][0](found)
        if getattr(found, "is_deep", False):
            return TreeDef(type(found), meta, tuple([_flatten_to(x, leaves, leaf) for x in items]))
        leaves.extend(items)
        return TreeDef(type(found), meta, (LEAF,) * len(items))
    parts = None if found is not None else _parts(tree)
    if parts is None:
        leaves.append(tree if found is None else found)
        return LEAF
    items, meta = parts
    return TreeDef(type(tree), meta, tuple([_flatten_to(x, leaves, leaf) for x in items]))


def _parts(tree: Any) -> tuple[Sequence[Any], Hashable] | None:
    """Children and metadata of any node; None for a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return tree, None
    if kind is dict:
        return list(tree.values()), tuple(tree)
    if tree is None:
        return (), None
    return children(tree)


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = type(tree)
    if kind is tuple or kind is list:
        return TreeDef(kind, None, tuple([_flatten(x, leaves) for x in tree]))
    if kind is dict:
        return TreeDef(dict, tuple(tree), tuple([_flatten(x, leaves) for x in tree.values()]))
    if tree is None:
        return NONE
    parts = children(tree)
    if parts is None:
        leaves.append(tree)
        return LEAF
    items, meta = parts
    return TreeDef(kind, meta, tuple([_flatten(x, leaves) for x in items]))


def children(tree: Any) -> tuple[Sequence[Any], Hashable] | None:
    """Children and metadata of a node of a user's class; None for a leaf."""
    kind = type(tree)
    builtin = _BUILTIN.get(kind)
    if builtin is not None:
        return builtin[0](tree)
    registered = _registered.get(kind)
    if registered is not None:
        items, meta = registered[0](tree)
        return list(items), meta
    names = _fields.get(kind)
    if names is None:
        names = _field_names(kind)
        _fields[kind] = names
    if names:
        if isinstance(tree, tuple):
            return tree, None
        own = getattr(tree, "__dict__", None)
        if own is None or len(own) == len(names):
            return [getattr(tree, name) for name in names], names
    return None


def _field_names(kind: type) -> tuple[str, ...]:
    """Fields of a named tuple or dataclass; () for another class."""
    if issubclass(kind, tuple):
        names = getattr(kind, "_fields", ())
        return tuple(names) if hasattr(kind, "_make") else ()
    return tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of that structure with these leaves.

    Raises:
        ValueError: another number of leaves.
    """
    if len(leaves) != treedef.count:
        raise ValueError(f"{treedef} has {treedef.count} leaves, got {len(leaves)}")
    return _unflatten(treedef, iter(leaves))


def _unflatten(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef.kind
    if kind is None:
        return next(leaves)
    if kind is type(None):
        return None
    if kind in _choosing:
        return _chosen(treedef, leaves)
    items = [_unflatten(c, leaves) for c in treedef.children]
    if kind is tuple:
        return tuple(items)
    if kind is list:
        return items
    if kind is dict:
        return dict(zip(treedef.meta, items, strict=True))  # type: ignore[call-overload]
    return node(kind, treedef.meta, items)


def _chosen(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    """The child that the first one names; a node of them all if that one is no int."""
    first, *rest = treedef.children
    which = _unflatten(first, leaves)
    if type(which) is not int:  # traced
        return node(treedef.kind, treedef.meta, [which, *(_unflatten(c, leaves) for c in rest)])
    made = None
    for k, c in enumerate(rest):
        own = list(itertools.islice(leaves, c.count))
        if k == which:
            made = _unflatten(c, iter(own))
    return made


def node(kind: Any, meta: Any, items: Sequence[Any]) -> Any:
    """A node of a class other than tuple, list and dict, with these children."""
    if kind in _BUILTIN:
        return _BUILTIN[kind][1](meta, items)
    if kind in _registered:
        return _registered[kind][1](meta, items)
    if issubclass(kind, tuple):
        return kind._make(items)
    made = object.__new__(kind)
    for name, item in zip(meta, items, strict=True):
        object.__setattr__(made, name, item)
    return made


def chooses(kind: Any) -> bool:
    """Whether a node of the class stands for one of its children (`register`)."""
    return kind in _choosing


def has_choice(treedef: TreeDef) -> bool:
    """Whether there is such a node in a tree."""
    return treedef.kind in _choosing or any(map(has_choice, treedef.children))


def is_registered(kind: type) -> bool:
    """Whether the class came through `register`."""
    return kind in _registered


def _defaultdict(meta: Any, items: Sequence[Any]) -> Any:
    return defaultdict(meta[0], zip(meta[1:], items, strict=True))


#: Classes of Python's own: to children and metadata, and back.
_BUILTIN: dict[Any, tuple[Callable[[Any], tuple[Sequence[Any], Hashable]], Callable[[Any, Sequence[Any]], Any]]] = {
    OrderedDict: (
        lambda x: (list(x.values()), tuple(x)),
        lambda meta, items: OrderedDict(zip(meta, items, strict=True)),
    ),
    defaultdict: (lambda x: (list(x.values()), (x.default_factory, *x)), _defaultdict),
    deque: (lambda x: (list(x), x.maxlen), lambda meta, items: deque(items, meta)),
    set: (lambda x: ((), frozenset([(type(i), i) for i in x])), lambda meta, items: {i for _, i in meta}),
    SimpleNamespace: (
        lambda x: (list(vars(x).values()), tuple(vars(x))),
        lambda meta, items: SimpleNamespace(**dict(zip(meta, items, strict=True))),
    ),
}


def paths(treedef: TreeDef, name: str = "") -> list[str]:
    """A readable name for each leaf: `x`, `p.w`, `xs[0]`."""
    if treedef.kind is None:
        return [name]
    return [
        path
        for inner, child in zip(child_paths(treedef, name), treedef.children, strict=True)
        for path in paths(child, inner)
    ]


def child_paths(treedef: TreeDef, name: str = "") -> list[str]:
    """A readable name for each child of a node."""
    found: list[str] = []
    meta: Any = treedef.meta if isinstance(treedef.meta, tuple) else ()
    if treedef.kind is defaultdict:
        meta = meta[1:]
    for k in range(len(treedef.children)):
        key = meta[k] if k < len(meta) else k
        if treedef.kind not in (dict, OrderedDict) and isinstance(key, str):
            found.append(f"{name}.{key}" if name else key)
        else:
            found.append(f"{name}[{key!r}]")
    return found
