"""Scalars of which a loop changes the kind or dtype: Python's 0 before the loop, `np.float64` behind the first turn.

Turns begin with one type. What a name, or an item of a tuple, is before the loop is converted to it where no turn can
see that it was another (`compare`, by `kind_uses`); else the first turn is traced in front of the loop, or the scalar
is carried with a bool that says of which kind it is (`carry`): a node `Boxed` in the structure of the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph.ir.graph import Value
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import LEAF, TreeDef, flatten
from jitgraph.records import dataclass
from jitgraph.tensor import Tensor
from jitgraph.tracing.capture_mode import is_spoiled
from jitgraph.tracing.carried_names import Carried, Changed, dense, is_array, parts_of
from jitgraph.tracing.joining import carried_type, exact_types, is_value, join, same_static, type_of
from jitgraph.tracing.kind_uses import sees_kind
from jitgraph.tracing.kinds import Boxed, boxed_as, holder, is_held, join_kinds
from jitgraph.tracing.scopes import Scope

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region

_FLAG = python_type("py_bool")
Pair = tuple[TensorType, TensorType]


@dataclass(slots=True, eq=False)
class Output:
    """What a loop carries of a value: see `as_output`."""

    tree: TreeDef | None
    types: list[TensorType | None]
    inits: list[Any]
    fixed: list[Any]

    def add(self, init: Any, t: TensorType | None, fixed: Any) -> None:
        self.inits.append(init)
        self.types.append(t)
        self.fixed.append(fixed)


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
    leaves, have = parts_of(x)
    found: list[Any] = []

    def visit(have: TreeDef, to: TreeDef, at: int) -> bool:
        if to.kind is Boxed:
            parts = boxed_as(leaves[at], to.meta, negated) if have.kind in (None, Boxed) else None  # type: ignore[arg-type]  # the two types
            found.extend(parts or ())
            return parts is not None
        if not have.is_like(to):
            return False
        if to.kind is None:
            found.append(leaves[at])
            return True
        for child, goal in zip(have.children, to.children, strict=True):
            if not visit(child, goal, at):
                return False
            at += child.count
        return True

    return found if visit(have or LEAF, tree, 0) else None


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
    if parts is None or joined is None or not is_held(region.mode, value, type_of(init), joined):
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
    if not is_held(region.mode, value, type_of(init), joined):
        return False
    carried.types[k] = joined
    return True


def as_output(
    region: Region, before: Any, tree: TreeDef | None, types: Sequence[TensorType | None], fixed: Sequence[Any]
) -> Output | None:
    """What a loop carries of a value that no turn reads: its scalars may be of two types, before and behind it.

    Args:
        tree: the structure at the end of a turn.
        types: of its leaves; None: one that stays what it is in `fixed`.

    Returns:
        None if no type holds both, the structures differ, or there are arrays beside scalars of two types.
    """
    leaves, have = parts_of(before)
    made = Output(None, [], [], [])

    def visit(have: TreeDef, to: TreeDef, old: int, at: int) -> TreeDef | None:
        if to.kind is None or to.kind is Boxed:
            return _leave(region, leaves[old], to, types[at], fixed[at], made) if have.kind in (None, Boxed) else None
        if not have.is_like(to):
            return None
        children = []
        for child, goal in zip(have.children, to.children, strict=True):
            found = visit(child, goal, old, at)
            if found is None:
                return None
            children.append(found)
            old += child.count
            at += goal.count
        return TreeDef(to.kind, to.meta, tuple(children))

    found = visit(have or LEAF, tree or LEAF, 0, 0)
    if len(made.types) != len(types) and any(t is None or t.kind == "array" for t in types):  # whose numbers are known
        return None
    made.tree = None if found is None or found.kind is None else found
    return None if found is None else made


def is_kept(region: Region, x: Any, t: TensorType) -> bool:
    """Whether a scalar keeps its number as type `t`, under the checks of `turn_starts.inits` and `turn_ends.ends`."""
    return is_held(region.mode, x._storage.value if type(x) is Tensor else x, type_of(x), t)


def is_other(region: Region, carried: Carried, leaves: Sequence[Any], tree: TreeDef | None) -> bool:
    """Whether a turn ends with scalars, or a structure, that what no turn reads was not carried as."""
    if tree != carried.tree:
        return True
    known = dict(boxes(tree))
    for k, (x, t) in enumerate(zip(leaves, carried.types, strict=True)):
        have = None if t is None or t.kind == "array" else carried_type(x)
        if t is None or have is None or have == t or have.kind == "array":
            continue
        if k not in known or not is_kept(region, x, t):
            return True
    return False


def _leave(region: Region, before: Any, to: TreeDef, t: TensorType | None, fixed: Any, made: Output) -> TreeDef | None:
    """Add a leaf that is `before` without a turn, and of type `t` or of one of two types behind one."""
    if t is None or t.kind == "array":
        have = None if is_spoiled(before) else carried_type(before)
        joined = None if t is None or have is None else join(region.mode, have, t)
        if joined is None and (t is not None or not same_static(before, fixed)) and not is_array(before):
            return None
        made.add(before if joined is not None else None, joined or t, fixed)
        return LEAF
    have = None if is_spoiled(before) or not is_value(before) else carried_type(before)
    if have is None or have.kind == "array":
        return None
    types = list(dict.fromkeys([*(to.meta if to.kind is Boxed else (t,)), *exact_types(region.mode, before)]))  # type: ignore[misc]
    if len(types) == 1:
        made.add(before, t, None)
        return LEAF
    if len(types) != 2:
        return None
    value = before._storage.value if type(before) is Tensor else before
    joined = t if to.kind is Boxed else None if type(before) is Tensor else holder(types[0], types[1], [before])
    if joined is None or not is_held(region.mode, value, have, joined):
        joined = join_kinds(*types)
    if joined is None or not _holds(joined, t) or not is_held(region.mode, value, have, joined):
        return None
    pair = types[0], types[1]
    value, flag = boxed_as(before, pair) or (None, None)
    made.add(value, joined, None)
    made.add(flag, _FLAG, None)
    return flatten(Boxed(0, True, *pair))[1]


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
