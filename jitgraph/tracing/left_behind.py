"""What names stand for behind a loop, and which arrays from before it turns have written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.graph import Value
from jitgraph.tensor import Storage, Tensor, set_version
from jitgraph.tracing import carried_kinds, carried_objects, same_arrays
from jitgraph.tracing.capture_mode import is_spoiled, spoil
from jitgraph.tracing.carried_names import Carried, Changed, is_array, is_missing, parts_of, shown, unchanged
from jitgraph.tracing.joining import is_returned, is_value, remade, same_place
from jitgraph.tracing.origins import moved
from jitgraph.tracing.poison import Maybe, Poison
from jitgraph.tracing.restart import Restart
from jitgraph.tracing.scopes import Scope

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region


def deliver(region: Region, results: Sequence[Value], scope: Scope) -> None:
    """Bind names and storages to the results of the operator."""
    if region.failure is not None:
        _deliver_before(region, results)
        return
    at = 0
    made: dict[str, list[Any]] = {}
    watched: list[tuple[Storage, list[Storage], bool]] = []
    for carried in region.names.values():
        late = is_returned(carried.name)
        values: list[Value | None] = []
        for t in carried.types:
            values.append(None if t is None else results[at])
            at += t is not None
        for v in values:
            if v is not None and not v.name and not carried.name.startswith("_jg_"):
                v.name = carried.name
        if carried.moves:
            last = region._last_turn()
            carried.fixed = [moved(x, last) if type(x) is Tensor else x for x in carried.fixed]
        leaves = region._leaves(carried, values)
        for k, view in carried.wholes.items():
            leaves[k] = remade(view, leaves[k]._storage)
        for k, init in enumerate(carried.inits):
            if values[k] is not None and is_array(init) and region._may_skip():
                watched.append((leaves[k]._storage, [init._storage], late))
        ends = region._end_of(carried, scope.get(carried.name))[0]
        for k, origins in carried.origins.items():
            codes = results[at : at + origins.width]
            at += origins.width
            form = origins.find(region.mode, ends[k]) if k < len(ends) and region._is_outer(ends[k]) else None
            if origins.alone or (form is not None and region._runs()):
                leaves[k] = origins.view(region.mode, 0 if form is None else form[0], codes)
                continue
            watched.append((leaves[k]._storage, origins.storages, late))
            origins.choose(region.mode, leaves[k], codes)
        made[carried.name] = leaves
    kept = {name: _kept(region, region.names[name], scope.get(name)) for name in made}
    objects = results[at : at + 2 * len(region.objects)]
    at += len(objects)
    for storage in region.storages:
        if storage.value.name and not results[at].name:
            results[at].name = storage.value.name
        set_version(storage, results[at])
        at += 1
    for storage, sources, late in watched:
        region.mode.watch(storage, sources, late=late)
    for name, leaves in made.items():
        same_arrays.watch_ends(region, leaves, region.end_of(name, scope.get(name)), late=is_returned(name))
        for k, x in kept[name].items():
            leaves[k] = x
    for (name, k), (other, j) in region.links.items():
        made[name][k] = same_arrays.linked_result(region, (name, k), (other, j), made[other][j])
    for name, carried in region.names.items():
        for k, origins in carried.origins.items():
            if origins.inside is not None:
                other, j = origins.inside
                made[name][k] = remade(made[name][k], made[other][j]._storage)
    carried_kinds.leave_untold(region, made)
    same_arrays.share(region, made, scope)
    bound = {name: region._built(region.names[name], leaves) for name, leaves in made.items()}
    same_arrays.watch_twins(region, bound, scope)
    views: dict[int, Tensor] = {}  # names of one array stay names of one
    for name, end in region.left.items():
        view = views.setdefault(id(end), moved(end, region._last_turn()))
        known = name.startswith("_jg_") or region._has_turn()
        bound[name] = view if known else Maybe(name, view, region._taken(results))
    for name in region.info.after:
        if name not in bound:
            bound[name] = _left_behind(region, name, scope.get(name))
    carried_objects.deliver(region, bound, objects)
    region.results = bound
    region._bind_cells()


def _deliver_before(region: Region, results: Sequence[Value]) -> None:
    """A turn raises: behind the loop there was none, and each name stands for what it stood for before."""
    for storage, value in zip(region.storages, results[len(results) - len(region.storages) :], strict=True):
        set_version(storage, value)
    region.results = {n: region.before.get(n) for n in dict.fromkeys((*region.names, *region.info.after))}
    region._bind_cells()


def _kept(region: Region, carried: Carried, end: Any) -> dict[int, Tensor]:
    """The arrays from before the loop that a turn leaves a name, or a part of it, bound to as it found them."""
    heads, ends = parts_of(region.heads.get(carried.name))[0], region.end_of(carried.name, end)
    if not len(heads) == len(ends) == len(carried.inits):
        return {}
    return {
        k: init
        for k, (head, x, init) in enumerate(zip(heads, ends, carried.inits, strict=True))
        if carried.types[k] is not None
        and k not in carried.origins
        and is_array(head)
        and is_array(init)
        and same_place(x, head)
        and head._storage.value is carried.arguments[k]
    }


def _written_heads(region: Region) -> Iterator[tuple[str, Tensor]]:
    """The arrays that names, or parts of values, stood for before the loop, if a turn writes to what it found.

    Yields:
        the name, and the array from before.
    """
    for name, carried in region.names.items():
        heads = parts_of(region.heads.get(name))[0]
        if len(heads) == len(carried.inits):
            for head, init, t, argument in zip(heads, carried.inits, carried.types, carried.arguments, strict=True):
                known = type(head) is Tensor and type(init) is Tensor and t is not None and t.kind == "array"
                through = known and head._storage in region.mode.written_through
                if known and (through or (not is_spoiled(head) and head._storage.value is not argument)):
                    yield name, init


def part_written(region: Region) -> None:
    """A name bound to another array in each turn, and written through, begins as one of the caller's.

    Raises:
        Changed: the first turn can be traced in front of the loop, where it writes to that array itself.
    """
    for name, init in _written_heads(region):
        if init._storage.origin is not None and region._may_peel():
            raise Changed(name, init, region.end_scope.get(name))


def spoil_written(region: Region) -> None:
    """A name bound to another array in each turn, and written through: the array from before is left behind.

    For a loop around it is written to.

    Raises:
        TraceError: it is an argument, or comes from outside: the caller would miss the writes.
    """
    written = list(_written_heads(region))
    assert region.mark is not None
    region.mode.forget_copies(region.mark.watched)
    for name, init in written:
        storage = init._storage
        region.mode.written_through.add(storage)
        region.mode.touched(storage)
        if storage.origin is not None:
            region.mode.leave(
                f"{name} is an array of the caller's, is written to, and stands for another array in the next turn",
                f"work on copies ({name} = {name}.copy()) and write the result back after the loop.",
            )
        text = f"an array that {name} stood for before a loop that wrote to it is used"
        remedy = "use the variables that the loop leaves, or a copy made before it."
        spoil(region.mode, storage, None, error=_unknown_behind(region, text, remedy).error)


def _left_behind(region: Region, name: str, end: Any) -> Any:
    """The value of a name that is not carried: as it was, or static."""
    if name in region.sized_inside:
        text = f"the size of {shown(name)} is known only within a turn of the loop, and it is used after it"
        return _unknown_behind(region, text, "use it in the loop, or give it a size that does not depend on data.")
    before = region.before.get(name)
    static = end is None or isinstance(end, str | bytes | type) or callable(end)
    if is_missing(end) or type(end) is Maybe or static or unchanged(before, end) or is_value(end):
        return end
    if isinstance(end, np.ndarray) and not region.mode.lifts:  # made of numbers that Python knows
        return Poison(partial(Restart, lifts=True))
    text = f"{shown(name)} is a {type(end).__name__} made in a loop, and used after it"
    return _unknown_behind(region, text, "keep its arrays and numbers in variables of their own.")


def _unknown_behind(region: Region, text: str, remedy: str) -> Poison:
    """Stands for what the last turn leaves, and no operator can: its use begins the trace anew, or fails."""
    error = errors.LeftToPython(errors.describe(text, region.place or region.mode.locate(), remedy=remedy))
    restart = region._restart(error)

    def fail() -> errors.TraceError:
        if restart is not None:
            raise restart
        return error

    return Poison(fail)
