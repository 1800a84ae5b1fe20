"""Scalars of which a loop changes the kind or dtype: Python's 0 before the loop, `np.float64` behind the first turn.

Turns begin with one type. What a name, or an item of a tuple, is before the loop is converted to it where no turn can
see that it was another (`compare`, by `kind_uses`); else the first turn is traced in front of the loop, or the scalar
is carried with a bool that says of which kind it is (`carry`): a node `Boxed` in the structure of the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph.ir.graph import Value
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import LEAF, TreeDef, flatten
from jitgraph.tensor import Tensor
from jitgraph.tracing.capture_mode import is_spoiled
from jitgraph.tracing.carried_names import Carried, Changed, dense, is_array, parts_of
from jitgraph.tracing.kind_uses import sees_kind
from jitgraph.tracing.kinds import Boxed, boxed_as, holder, is_exact, join_kinds
from jitgraph.tracing.merging import Scope, carried_type, exact_types, is_value, type_of

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region

_FLAG = python_type("py_bool")
Pair = tuple[TensorType, TensorType]


def boxes(tree: TreeDef | None, first: int = 0) -> Iterator[tuple[int, Pair]]:
    """The scalars of a structure whose kind depends on the path: the number of the value's leaf, the two types."""
    if tree is None or tree.kind is None:
        return
    if tree.kind is Boxed:
        yield first, tree.meta  # type: ignore[misc]  # the two types
        return
    for child in tree.children:
        yield from boxes(child, first)
        first += child.count


def parts_as(x: Any, tree: TreeDef, negated: Callable[[Value], Value] | None) -> list[Any] | None:
    """The parts of a value in a structure with scalars of two types; None if it has another one."""
    if tree.kind is None:
        return [x] if parts_of(x)[1] is None else None
    if tree.kind is Boxed:
        return boxed_as(x, tree.meta, negated)  # type: ignore[arg-type]  # the two types
    if not any(boxes(tree)):
        leaves, have = parts_of(x)
        return leaves if have == tree else None
    found: list[Any] = []
    kind = type(x)
    if kind is not tree.kind or kind not in (tuple, list, dict) or (kind is dict and tuple(x) != tree.meta):
        return None
    items = list(x.values()) if kind is dict else x
    if len(items) != len(tree.children):
        return None
    for item, child in zip(items, tree.children, strict=True):
        parts = parts_as(item, child, negated)
        if parts is None:
            return None
        found += parts
    return found


def _with_box(tree: TreeDef | None, k: int, box: TreeDef) -> TreeDef:
    """The structure with a box in place of leaf `k`."""
    if tree is None or tree.kind is None:
        return box
    children = []
    for child in tree.children:
        children.append(_with_box(child, k, box) if 0 <= k < child.count else child)
        k -= child.count
    return TreeDef(tree.kind, tree.meta, tuple(children))


def first_new(known: TreeDef | None, end: TreeDef | None, first: int = 0) -> tuple[int, Pair] | None:
    """The first scalar that a turn leaves as one of two types and the loop carries as of one: see `boxes`.

    None, too, where the structures differ in more than that.
    """
    known, end = known or LEAF, end or LEAF
    if end.kind is Boxed:
        return (first, end.meta) if known.kind is None else None  # type: ignore[return-value]  # the two types
    if known.kind is not end.kind or len(known.children) != len(end.children):
        return None
    for old, new in zip(known.children, end.children, strict=True):
        found = first_new(old, new, first)
        if found is not None:
            return found
        first += old.count
    return None


def carry(region: Region, carried: Carried, k: int, end: Any, *types: TensorType) -> bool:
    """From here on a scalar is carried with a bool that says of which kind it is.

    Args:
        k: the number of the leaf.
        end: what a turn leaves; None: something of these types.
        types: what it is at the end of a turn: one of two, or one that it is not before the loop.

    Returns:
        False: another attempt is needed.

    Raises:
        Changed: its value from before is of a third kind.
    """
    init = carried.inits[k]
    have = None if init is None else carried_type(init)
    if have is None or (carried.tree is not None and any(map(is_array, carried.inits))):
        raise Changed(carried.name, carried.types[k], end)
    yes, no = types if len(types) == 2 else (*types, have)
    parts, value = boxed_as(init, (yes, no)), init._storage.value if type(init) is Tensor else init
    joined = None if type(init) is Tensor else holder(yes, no, [init])  # `widen` mends what was too narrow
    joined = joined or join_kinds(yes, no)
    if parts is None or joined is None or not is_exact(region.mode, value, type_of(init), joined):
        raise Changed(carried.name, carried.types[k], end)
    carried.tree = _with_box(carried.tree, k, flatten(Boxed(0, True, yes, no))[1])
    carried.inits[k : k + 1], carried.fixed[k : k + 1] = parts, list(parts)
    carried.types[k : k + 1] = [joined, _FLAG]
    return False


def widen(region: Region, carried: Carried, k: int, pair: Pair) -> bool:
    """Hold a scalar of one of two types in one that holds all numbers of both; whether it was not held so."""
    joined, init = join_kinds(*pair), carried.inits[k]
    if joined is None or joined == carried.types[k] or init is None:
        return False
    value = init._storage.value if type(init) is Tensor else init
    if not is_exact(region.mode, value, type_of(init), joined):
        return False
    carried.types[k] = joined
    return True


def as_output(region: Region, before: Any, t: TensorType | None) -> tuple[TreeDef, list[TensorType | None]] | None:
    """The structure of a scalar of one type before a loop and of another behind a turn; None if no type holds both."""
    have = None if is_spoiled(before) or not is_value(before) else carried_type(before)
    if t is None or have is None:
        return None
    pair = exact_types(region.mode, before)
    pair = pair if t in pair else [*pair, t]
    joined = join_kinds(*pair) if len(pair) == 2 else None
    if joined is None or not _holds(joined, t):
        return None
    checked = type(before) is Tensor and have.kind == "py_int"  # by `_inits`
    known = type(before) is not Tensor and is_exact(region.mode, before, have, joined)
    if have != joined and not (known or checked or _holds(joined, have)):
        return None
    return flatten(Boxed(0, True, *pair))[1], [joined, _FLAG]


def _holds(t: TensorType, other: TensorType) -> bool:
    """Whether a scalar of type `t` is any number that one of the other type is."""
    rounds = other.dtype.kind in "iu" and other.dtype.itemsize == 8 and t.dtype.kind in "fc"
    return np.can_cast(other.dtype, t.dtype, "safe") and not rounds


def _is_converted(carried: Carried, k: int) -> TensorType | None:
    """What a scalar that turns read is before the loop, if they begin with another type."""
    init, t = carried.inits[k], carried.types[k]
    have = None if init is None or t is None or not carried.read or is_spoiled(init) else carried_type(init)
    return have if have is not None and dense(have) != t else None


def converted(region: Region) -> str:
    """A name that turns begin with in another type than it has before the loop; "" if there is none."""
    for name, carried in region.names.items():
        if any(_is_converted(carried, k) is not None for k in range(len(carried.inits))):
            return name
    return ""


def compare(region: Region, scope: Scope) -> bool:
    """Scalars from before that are carried in another type; False if one is carried with its kind now.

    Raises:
        Changed: the first turn shows what they are.
        LeftToPython: a turn shows it, and neither can be.
    """
    before: dict[Value, TensorType] = {}
    names: dict[Value, str] = {}
    for carried in region.names.values():
        known = dict(boxes(carried.tree))
        for k, argument in enumerate(carried.arguments):
            have = None if argument is None or k in known else _is_converted(carried, k)
            if argument is not None and have is not None and have.is_python:
                before[argument], names[argument] = have, carried.name
    untold = region.regions.untold[region.untold :]
    del region.regions.untold[region.untold :]
    if not before and not untold:
        return True
    ends = set(region.mode.asked)
    for name in (*region.info.head, *region.info.after):
        leaves = parts_of(scope.get(name))[0]
        ends |= {x._storage.value for x in leaves if type(x) is Tensor and x._storage.value is not None}
    telling = region.regions.telling
    new = [key for value, t, key in untold if key not in telling and sees_kind({value: t}, ends)]
    if new:
        telling.update(new)
        return False
    shown = [names[a] for a, t in before.items() if sees_kind({a: t}, ends)]
    if not shown and len(before) > 1 and sees_kind(before, ends):
        shown = list(names.values())
    if not shown:
        return True
    if region._may_peel():
        name = shown[0]
        raise Changed(name, next(t for a, t in before.items() if names[a] == name), scope.get(name))
    return not tell(region, *shown)


def tell(region: Region, *names: str) -> bool:
    """Carry Python numbers that turns make another type's with their kind, as no call can turn back; any there are.

    Args:
        names: those meant; none: all that are used behind the loop.
    """
    found = False
    for name in names or region.info.after:
        carried = region.names.get(name)
        if carried is None or not carried.read or not (names or _is_left_behind(region, name)):
            continue
        known = dict(boxes(carried.tree))
        for k in reversed(range(len(carried.inits))):
            have, t = _is_converted(carried, k), carried.types[k]
            if k in known or have is None or t is None or join_kinds(t, have) is None or not have.is_python:
                continue
            carry(region, carried, k, None, t)
            found = True
    return found


def _is_left_behind(region: Region, name: str) -> bool:
    """Whether the kind of a name is carried: the loops of the same function around leave it for what follows them.

    Of one that only their turns use, such as the sum of a row that is stored, few see the kind: see `leave_untold`.
    """
    around = [o.loop for o in region.regions.opened if o.loop is not None]
    known = all(name in loop.info.after for loop in around if loop.before.code is region.before.code)
    return known or _key(region, name) in region.regions.telling


def _key(region: Region, name: str) -> Any:
    """A name of a loop, from where its function is called."""
    return region._entry_key[0], region.info.line, name


def leave_untold(region: Region, results: dict[str, list[Any]]) -> None:
    """Behind a loop of perhaps no turn its names have the types of turns: the loop around sees whether that shows.

    Args:
        results: what the parts of names are behind the loop.
    """
    if not region._may_skip() or not region.regions.opened:
        return
    for name, leaves in results.items():
        carried = region.names[name]
        known = dict(boxes(carried.tree))
        for k, x in enumerate(leaves):
            have = None if k in known or type(x) is not Tensor else _is_converted(carried, k)
            if have is not None and have.is_python:
                region.regions.untold.append((x._storage.value, have, _key(region, name)))
