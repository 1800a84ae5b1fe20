"""What a turn of a loop begins with: names leaf by leaf, storages; and what they are before the first one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jitgraph.ir.graph import Block, Value
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import TreeDef
from jitgraph.tensor import Storage, lift, make, set_version
from jitgraph.tracing import carried_kinds, carried_objects, carried_options, same_arrays
from jitgraph.tracing.capture_mode import StaleMode, is_spoiled, spoil
from jitgraph.tracing.carried_names import (
    Carried,
    Changed,
    are_values,
    dense,
    is_array,
    is_missing,
    parts_of,
    protected,
)
from jitgraph.tracing.exits import RETURNED
from jitgraph.tracing.joining import carried_type, convert, join, placeholder, type_of
from jitgraph.tracing.kinds import is_exact
from jitgraph.tracing.origins import look
from jitgraph.tracing.poison import Maybe, OneOf
from jitgraph.tracing.scopes import Scope

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region


def begin(region: Region, scope: Scope) -> None:
    """The variables before the loop, and what is likely carried."""
    region.before = scope
    region.names.clear()
    region.links.clear()
    region.storages.clear()
    region.stale.clear()
    for name in region.info.head:
        value = scope.get(name)
        overwritten = name in region.info.unread and any(map(is_array, parts_of(value)[0]))
        if name != region.own_flag and not overwritten:
            carry(region, name, value)
    for name in region.info.written:
        value = scope.get(name)
        if name in region.names or name in region.info.unread:  # of an earlier loop, say: a turn makes its own
            continue
        if is_array(value):
            add_storage(region, value._storage)
    if region.mode.objects is not None:
        add_storage(region, region.mode.objects.clock)
    decided, unlinked, linked = region.regions.decided.get(key_of(region), ((), (), ()))
    region.unlinked.update(unlinked)
    same_arrays.link_inits(region)
    for name, tree, types, read, wholes in decided:
        known = region.names.get(name)
        if known is not None and known.tree == tree:
            if read or known.types == list(types):  # else what it was before need not convert
                for k, t in enumerate(types):
                    if (name, k) not in region.links and (name, k) not in linked:
                        known.types[k] = t
        elif known is None and all(t is not None for t in types):
            output(region, name, scope.get(name), tree, list(types), read=read)
            region.names[name].wholes = dict(wholes)


def key_of(region: Region) -> Any:
    """The loop's place, from where its function is called, and the types that it begins with."""
    entry = [
        (n, str(c.tree), tuple(map(str, map(carried_type, c.inits))))
        for n, c in region.names.items()
        if c.inits[0] is not None
    ]
    return (region.regions.path_of(), region.before.code, region.info, tuple(sorted(entry)), region.peeled)


def carry(region: Region, name: str, value: Any, *, rebound: bool | None = None) -> None:
    """Carry a name with its value from before, if that is something to carry."""
    if type(value) is Maybe and not are_values(value):
        return
    if is_missing(value) or any(map(is_spoiled, parts_of(value)[0])):
        return
    if name in region.pinned:
        rebound = False
    if is_array(value) and not (name in region.info.rebound if rebound is None else rebound):
        add_storage(region, value._storage)  # written in place: the name stays bound to it
        return
    if type(value) is OneOf and carried_options.is_open(region, name, value, value):
        try:
            carried_options.carry(region, name, value, value)
        except Changed as change:  # too many types
            change.fail(region.place)
        return
    leaves, tree = parts_of(value)
    types = [dense(carried_type(x)) for x in leaves]
    if any(t is not None for t in types):
        read = name != RETURNED  # no turn follows one that returns
        region.names[name] = Carried(name, tree, list(leaves), types, list(leaves), read, read_only=protected(leaves))


def add_storage(region: Region, storage: Storage) -> None:
    if storage not in region.storages and storage.value is not None and storage.writable:
        region.storages.append(storage)


def output(
    region: Region,
    name: str,
    before: Any,
    tree: TreeDef | None,
    types: list[TensorType | None],
    *,
    read: bool,
    fixed: Sequence[Any] = (),
) -> None:
    """Carry a name that has its value from the end of a turn; the one from before if it converts.

    A scalar that no turn reads is of the one type or of the other: both are carried, with a bool.
    """
    kept = list(fixed or [None] * len(types))
    found = None if read or is_missing(before) else carried_kinds.as_output(region, before, tree, types, kept)
    if found is not None:
        tree, types, inits, kept = found.tree, found.types, found.inits, found.fixed
    else:
        types, inits = list(types), _begins(region, before, tree, types, read=read)
    types = [dense(t) for t in types]
    region.names[name] = Carried(name, tree, inits, types, kept, read, read_only=protected(inits))


def _begins(
    region: Region, before: Any, tree: TreeDef | None, types: list[TensorType | None], *, read: bool
) -> list[Any]:
    """What the leaves of a value are before the loop, where that converts; `types` become those of both."""
    inits: list[Any] = [None] * len(types)
    if is_missing(before):
        return inits
    old = parts_of(before)[0] if tree is None else carried_kinds.parts_as(before, tree, None)
    if old is None or len(old) != len(types):
        return inits
    known = dict(carried_kinds.boxes(tree))
    for k, t in enumerate(types):
        have = None if is_spoiled(old[k]) else carried_type(old[k])
        if t is None or have is None or (k in known and not carried_kinds.is_kept(region, old[k], t)):
            continue
        joined = t if k in known else join(region.mode, have, t)
        if joined is not None and (read or have == t or joined.kind == "array"):
            inits[k], types[k] = old[k], joined
    return inits


def arguments(region: Region, block: Block, *, bind: bool) -> None:
    """Block arguments for all that is carried; names and storages are bound to them."""
    same_arrays.drop_stale_links(region)
    for carried in region.names.values():
        name = "" if carried.name.startswith("_jg_") else carried.name
        carried.arguments = [None if t is None else block.add_arg(t, name) for t in carried.types]
        for origins in carried.origins.values():
            origins.arguments = [block.add_arg(python_type("py_int")) for _ in range(origins.width)]
        for argument, init in zip(carried.arguments, carried.inits, strict=True):
            small = type(init) is int and abs(init) < 2**31
            if small and argument is not None and argument.type.kind == "py_int":
                region.mode.small.add(argument)
    carried_objects.arguments(region, block)
    for storage in list(region.storages):
        if storage.value is None:  # a copy of another one, which turns write: whoever uses it is told
            region.storages.remove(storage)
            continue
        argument = block.add_arg(storage.value.type, storage.value.name)
        if bind:
            set_version(storage, argument)
            region.mode.written_in_turns(storage)
    if bind:
        region.untold = len(region.regions.untold)
        region._negations.clear()
        region.head_leaves, region.head_parts = {}, {}
        region.heads = {n: _head(region, c) for n, c in region.names.items() if c.read}
        storages = {(c.name, k): s for s, (c, k) in region.head_leaves.items()}
        same_arrays.watch_heads(region)
        for first, k, second, j in region.twins:
            if (first, k) in storages and (second, j) in storages:
                region.mode.watch(storages[first, k], [storages[second, j]])
        carried_objects.bind_heads(region)


def _head(region: Region, carried: Carried) -> Any:
    """The Python value of a carried name at the start of a turn."""
    leaves = region._leaves(carried, carried.arguments)
    for k, x in enumerate(leaves):
        if carried.types[k] is not None and is_array(x):
            region.head_leaves[x._storage] = carried, k
            region.regions.heads[x._storage] = region, carried, k
    for k, origins in carried.origins.items():
        if origins.inside is not None:  # no turn reads it
            continue
        if origins.alone:
            leaves[k] = origins.view(region.mode, 0, origins.arguments)
        else:
            origins.choose(region.mode, leaves[k], origins.arguments)
            region.mode.watch(leaves[k]._storage, origins.storages)
            _spoil_if_written(region, carried.name, leaves[k]._storage, origins.storages)
    for k, (x, init) in enumerate(zip(leaves, carried.inits, strict=True)):
        if carried.types[k] is not None and k not in carried.origins and is_array(init):
            views = look(region.mode, init, region._is_outside).views
            sources = [init._storage, *(view._storage for view in views)]
            region.mode.copied(x._storage, sources, partial(region._stale, carried.name))
    for k, x in enumerate(leaves):
        if (carried.name, k) in region.links:
            leaves[k] = region.head_parts[region.links[carried.name, k]]
        elif is_array(x):
            region.head_parts[carried.name, k] = x
    return region._built(carried, leaves)


def _spoil_if_written(region: Region, name: str, head: Storage, sources: Sequence[Storage]) -> None:
    """What a turn finds may be one of `sources`, and an earlier turn may have written to that: it is not used."""
    for source in sources:
        if head.value is None:
            return
        stale = source.mode
        if type(stale) is StaleMode:
            spoil(region.mode, head, stale.settle, stale.reason, stale.remedy, stale.error)
        elif source in region.storages or region.mode.is_behind(source, region.storages):
            spoil(region.mode, head, None, error=partial(region._stale, name))


def inits(region: Region) -> list[Value]:
    """The values from before the loop, converted; emitted at the builder's place."""
    found: list[Value] = []
    for carried in region.names.values():
        known = dict(carried_kinds.boxes(carried.tree))
        for k, (init, t) in enumerate(zip(carried.inits, carried.types, strict=True)):
            if t is not None:
                init = _unspoiled(region, init)
                if k in known and init is not None:
                    is_exact(region.mode, lift(region.mode, init), type_of(init), t)  # under a check
                found.append(
                    placeholder(region.mode, t)
                    if init is None or _is_of_other_size(region, init, t)
                    else convert(region.mode, lift(region.mode, init), t)
                )
        for k, origins in carried.origins.items():
            found += origins.codes(region.mode, carried.inits[k], lambda s: True)
    return found + carried_objects.inits(region) + [s.value for s in region.storages]


def _is_of_other_size(region: Region, init: Any, t: TensorType) -> bool:
    """Whether an array cannot be what is carried: nothing reads it (an inner loop binds the name anew first)."""
    if t.kind != "array" or not is_array(init):
        return False
    pairs = zip(init.type.shape, t.shape, strict=True)
    return any(region.mode.builder.prove("==", d, e) is False for d, e in pairs)


def _unspoiled(region: Region, x: Any) -> Any:
    """An array from before the loop that a turn makes unusable, as it was."""
    if not is_spoiled(x):
        return x
    mode, value = next((m, v) for s, m, v in region.mode.spoiled if s is x._storage and v is not None)
    made = make(Storage(mode, value), x._steps)
    made._dim = x._dim
    return made


def remember(region: Region) -> None:
    """What an attempt found out: the same loop begins with it, when it is traced again."""
    known = {n: c for n, c in region.names.items() if n not in region.whole_names}
    names = [(n, c.tree, tuple(c.types), c.read, dict(c.wholes)) for n, c in known.items()]
    region.regions.decided[region._entry_key] = names, frozenset(region.unlinked), frozenset(region.links)
