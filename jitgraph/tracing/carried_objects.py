"""The numbers of array objects (`objects.py`) that a loop carries for its names, where a trace has such numbers.

They stand between what is carried for names and the storages. A name has one for each array in it that is another
object at the end of a turn than before the loop. So has each option of a name of several types, by its place among the
parts that are carried; where a turn leaves another option, it has the number of no object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from jitgraph.ir.graph import Block, Value
from jitgraph.ir.types import python_type
from jitgraph.pytree import unflatten
from jitgraph.tracing import carried_options
from jitgraph.tracing.carried_names import is_missing, parts_of
from jitgraph.tracing.identity import note
from jitgraph.tracing.joining import remade, same_place
from jitgraph.tracing.objects import UNSEEN, Made, Memory, Objects, Turn, is_bound_in, is_object, joined, object_of
from jitgraph.tracing.poison import Maybe
from jitgraph.tracing.scopes import Scope, variables_of

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region
    from jitgraph.tracing.regions import Opened

    #: The number of an array, and where it lies.
    _Known: TypeAlias = tuple[Value, Memory]


def _leaves(value: Any) -> list[Any]:
    """The parts of what a name stands for, bound or not."""
    return parts_of(value.value if type(value) is Maybe else value)[0]


def _starts(region: Region, name: str) -> list[Any]:
    """The parts that a name has before the loop, in the order in which they are carried."""
    carried = region.names.get(name)
    return carried.inits if carried is not None and carried.options else _leaves(region.before.get(name))


def _ends(region: Region, name: str, value: Any) -> list[Any]:
    """The parts of what a turn leaves, in the order in which they are carried."""
    carried = region.names.get(name)
    if carried is None or not carried.options:
        return _leaves(value)
    return [] if is_missing(value) else carried_options.at_end(region, carried, value) or []


def _part(leaves: Sequence[Any], k: int) -> Any:
    x = leaves[k] if k < len(leaves) else None
    return x if is_object(x) else None


def begin_turn(region: Region, opened: Opened) -> Turn | None:
    """Note what is there when a turn begins."""
    objects = region.mode.objects
    if objects is None:
        return None
    names = [*variables_of(opened.scope).values(), *region.heads.values()]
    for _, held in opened.snapshot.containers:
        names += held.values() if type(held) is dict else held
    return objects.begin_turn(x for value in names for x in _leaves(value))


def arguments(region: Region, block: Block) -> None:
    number = python_type("py_int")
    region.object_arguments = {key: (block.add_arg(number), block.add_arg(number)) for key in region.objects}


def bind_heads(region: Region) -> None:
    """What names stand for at the start of a turn has the numbers that are carried."""
    carried = _by_name(region, region.object_arguments)
    names = (*region.heads, *carried) if region.mode.objects is not None else [name for name, _ in region.exchanged]
    for name in dict.fromkeys(names):
        if name in region.heads or (name in region.info.head and name not in region.names):
            region.heads[name] = _renewed(region, name, region.get(name), carried.get(name, {}))


def compare(region: Region, scope: Scope) -> bool:
    """Whether all objects that a turn leaves are those that are carried; else they are from here on."""
    if region.mode.objects is None:
        return _compare_views(region, scope)
    objects, fits = region.mode.objects, True
    inner = region._inner()
    turn = [region.this_turn] if region.this_turn else []
    for name in dict.fromkeys((*region.info.head, *region.info.after)):
        if name == region.own_flag:
            continue
        starts = _starts(region, name)
        for k, x in enumerate(_ends(region, name, scope.get(name))):
            before = _part(starts, k)
            key = name, k
            if not is_object(x) or (
                key not in region.objects and before is not None and object_of(before) is object_of(x)
            ):
                continue
            steps: Any = region.in_turn(partial(objects.memory, x, *turn)).steps
            first = UNSEEN if before is None else objects.memory(before).steps
            steps = None if is_bound_in(steps, inner) else joined(first, steps)
            if key not in region.objects:  # what a turn begins with was not known
                region.objects[key], fits = first, False
            elif region.objects[key] not in (None, steps):  # one that changes goes on changing
                region.objects[key], fits = steps if region.objects[key] is UNSEEN else None, False
    return fits


def _compare_views(region: Region, scope: Scope) -> bool:
    """Whether views from before the loop that no value is carried for are the objects they were, not equal ones."""
    fits = True
    for name in dict.fromkeys((*region.info.head, *region.info.after)):
        value, carried = scope.get(name), region.names.get(name)
        if name == region.own_flag or is_missing(value):
            continue
        starts = _starts(region, name) if carried is None else carried.fixed
        for k, x in enumerate(_ends(region, name, value)):
            before = _part(starts, k)
            stays = carried is None or (k < len(carried.types) and carried.types[k] is None)
            known = stays and before is not None and same_place(before, x) and (name, k) not in region.exchanged
            if known and object_of(before) is not object_of(x):
                region.exchanged.add((name, k))
                fits = False
    return fits


def inits(region: Region) -> list[Value]:
    """The numbers before the loop, emitted at the builder's place."""
    objects = region.mode.objects
    if objects is None:
        return []
    return [n for name, k in region.objects for n in objects.numbers(_part(_starts(region, name), k))[:2]]


def ends(region: Region, scope: Scope) -> list[Value]:
    """The numbers at the end of a turn, emitted at the builder's place."""
    objects = region.mode.objects
    if objects is None:
        return []
    found: list[Value] = []
    turn = [region.this_turn] if region.this_turn else []
    for (name, k), carried in region.object_arguments.items():
        end = scope.get(name)
        stays = region.failure is not None or is_missing(end)
        found += carried if stays else objects.numbers(_part(_ends(region, name, end), k), *turn)[:2]
    return found


def deliver(region: Region, bound: dict[str, Any], results: Sequence[Value]) -> None:
    """Behind the loop names stand for objects with the numbers that it leaves.

    Without numbers, arrays that turns bind to a name are noted: they may be what another name stands for.
    """
    pairs = zip(results[::2], results[1::2], strict=True)
    carried = _by_name(region, dict(zip(region.objects, pairs, strict=True)))
    for name in bound if region.mode.objects is not None else {name for name, _ in region.exchanged if name in bound}:
        bound[name] = _renewed(region, name, bound[name], carried.get(name, {}))
    for name, value in bound.items():
        before = _leaves(region.before.get(name))
        for x in _leaves(value):
            if is_object(x) and all(x is not b for b in before) and id(x) not in region.mode.either:
                note(region.mode, x, None)


def _by_name(region: Region, values: dict[tuple[str, int], tuple[Value, Value]]) -> dict[str, dict[int, _Known]]:
    found: dict[str, dict[int, _Known]] = {}
    for (name, k), (number, memory) in values.items():
        found.setdefault(name, {})[k] = number, Memory(memory, region.objects[name, k])
    return found


def _renewed(region: Region, name: str, value: Any, numbers: dict[int, _Known]) -> Any:
    """A value whose arrays are objects with these numbers; without a number one is what it is before the loop."""
    objects = region.mode.objects
    if type(value) is Maybe:
        return Maybe(value.name, _renewed(region, name, value.value, numbers), value.flag)
    leaves, tree = parts_of(value)
    if tree is not None and name not in region.names:  # a container stays the one it is
        return value
    starts, made = _starts(region, name), list(leaves)
    for k, x in enumerate(leaves):
        before = _part(starts, k)
        if objects is None:
            made[k] = _by_another_name(region, x) if (name, k) in region.exchanged and is_object(x) else x
        elif is_object(x) and k in numbers:
            made[k] = _named(objects, x, *numbers[k])
        elif is_object(x) and before is not None and object_of(before) is not object_of(x):
            made[k] = _named(objects, x, objects.known(before), objects.memory(before))
    return made[0] if tree is None else unflatten(tree, made)


def _named(objects: Objects, x: Any, number: Value | Made, memory: Memory) -> Any:
    if object_of(x) is x:
        x = note(objects.mode, remade(x, x._storage), None)
    objects.name(x, number, memory)
    return x


def _by_another_name(region: Region, x: Any) -> Any:
    """The same view, which is one object or another as turns decide."""
    return note(region.mode, remade(x, x._storage), None)
