"""Which arrays the names that a loop carries stand for: those from before it, one another's, or new ones.

The functions compare what a turn leaves with what the loop was taken to carry (`origins.py`), answer whether it fits,
and note what the next attempt carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jitgraph.tensor import Storage, Tensor, make
from jitgraph.tracing.capture_mode import is_spoiled
from jitgraph.tracing.carried_names import Carried, Changed, dense, is_array, is_missing, is_whole, parts_of, protected
from jitgraph.tracing.identity import note
from jitgraph.tracing.joining import carried_type, is_returned, remade, same_place, sizes_of
from jitgraph.tracing.objects import object_of
from jitgraph.tracing.origins import Found, Origins, form_of, look, through
from jitgraph.tracing.poison import Maybe, OneOf
from jitgraph.tracing.regions import Mark
from jitgraph.tracing.scopes import Overlay, Scope

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region


def is_conditional(carried: Carried) -> bool:
    """Whether nobody looks at what a name stands for unless a turn has bound it."""
    return is_returned(carried.name) or (carried.tree is not None and carried.tree.kind in (Maybe, OneOf))


def is_bound_anew(region: Region, name: str, carried: Carried) -> bool:
    """A name that stands for another array in each turn, and stood for a whole one before the loop."""
    known = carried.tree is None and carried.types[0] is not None
    return known and is_whole(carried.inits[0]) and is_whole(region.heads.get(name))


def link_inits(region: Region) -> None:
    """Leaves that are one array before the loop are taken for one throughout, until a turn shows that they are not."""
    first: dict[Storage, list[tuple[str, int, Tensor]]] = {}
    for name, carried in region.names.items():
        for k, x in enumerate(carried.inits):
            if carried.read and is_array(x) and carried.types[k] is not None and x._storage.value is not None:
                known = first.setdefault(x._storage, [])
                other = next((o for o in known if same_place(o[2], x) and not _is_told_apart(region, o[2], x)), None)
                if other is None:
                    known.append((name, k, x))
                elif (name, k) not in region.unlinked:
                    region.links[name, k] = other[:2]
                    carried.types[k], carried.fixed[k] = None, x


def _is_told_apart(region: Region, a: Tensor, b: Tensor) -> bool:
    """Whether two equal views are two objects to a trace that numbers them."""
    return region.mode.objects is not None and object_of(a) is not object_of(b)


def linked_result(region: Region, key: tuple[str, int], other: tuple[str, int], x: Any) -> Any:
    """What a leaf is behind the loop that is carried as another one: the same array, by its own name."""
    first, second = (region.names[name].inits[k] for name, k in (key, other))
    if is_array(x) and is_array(first) and is_array(second) and object_of(first) is not object_of(second):
        return note(region.mode, remade(x, x._storage), None)
    return x


def watch_heads(region: Region) -> None:
    """Leaves that begin as one array or views of one, and that later turns may tell apart, are carried as two: a turn
    that writes to one of them does not use the other.
    """
    first: dict[Storage, list[Storage]] = {}
    for storage, (carried, k) in region.head_leaves.items():
        init = carried.inits[k]
        if type(init) is Tensor:  # its storage may be left behind already
            others = first.setdefault(init._storage, [])
            if others:
                region.mode.copied(storage, list(others), partial(region._stale, carried.name))
            others.append(storage)


def compare_stale(region: Region, mark: Mark) -> bool:
    """Whether a turn leaves usable what it found so."""
    since = region.mode.spoiled[mark.spoiled :]
    spoiled = {
        s: s.mode
        for s, _, old in since
        if old is not None and (s in region.storages or not region._is_made_inside(old))
    }
    new = spoiled.keys() - region.stale.keys()
    region.stale.update(spoiled)
    region.storages = [s for s in region.storages if s not in region.stale]
    return not new


def spoil_stale(region: Region) -> None:
    for storage, mode in region.stale.items():
        if storage.value is not None:
            region.mode.spoiled.append((storage, storage.mode, storage.value))
            storage.mode, storage.value = mode, None


def name_wholes(region: Region, scope: Scope) -> bool:
    """New arrays that a turn leaves several views of, and no name, get names: the views share what is carried then.

    Whether there is no new one.
    """
    views: dict[Storage, list[tuple[str, int, Tensor]]] = {}
    for name in region.info.after:
        if name == region.own_flag or name in region.whole_names or not region._is_unread(name):
            continue
        for k, x in enumerate(parts_of(scope.get(name))[0]):
            known = is_array(x) and x._storage.value is not None and not region._is_outer(x)
            if known and x._storage not in region.head_leaves and x._storage not in region.mode.choices:
                views.setdefault(x._storage, []).append((name, k, x))
    unnamed = dict.fromkeys(views)
    for known_as, (name, k) in region.whole_names.items():
        leaves = parts_of(scope.get(name))[0]
        storage = leaves[k]._storage if k < len(leaves) and is_array(leaves[k]) else None
        if storage in unnamed:
            del unnamed[storage]
            scope.locals[known_as] = make(storage, ())
    fits = True
    for storage in unnamed:
        whole, ends = make(storage, ()), views[storage]
        several = len({id(x) for _, _, x in ends}) > 1 and all(x._steps for _, _, x in ends)
        if several and region._inner().isdisjoint(sizes_of(whole)):
            region.whole_names[f"_jg_whole_{len(region.whole_names)}"] = ends[0][:2]
            fits = False
    if not fits:
        region.info = region.info._replace(after=tuple(dict.fromkeys((*region.info.after, *region.whole_names))))
    return fits


def compare_links(region: Region, scope: Scope) -> bool:
    """Leaves that a turn ends with one new array; whether that is what is carried."""
    ends: dict[tuple[str, int], Tensor] = {}
    for carried in region.names.values():
        if carried.read and not is_missing(scope.get(carried.name)):
            for k, x in enumerate(region._end_of(carried, scope.get(carried.name))[0]):
                known = k < len(carried.types) and k not in carried.wholes
                if known and is_array(x) and not region._is_outer(x) and x._storage.value is not None:
                    ends[carried.name, k] = x
    fits = True
    for key, other in list(region.links.items()):
        if key not in ends or other not in ends or not same_place(ends[key], ends[other]):
            _unlink(region, key, ends.get(key))
            fits = False
    keys = list(ends)
    for at, key in enumerate(keys):
        carried = region.names[key[0]]
        if {key} & {*region.links, *region.unlinked} or carried.types[key[1]] is None or key[1] in carried.origins:
            continue
        for other in keys[:at]:
            if other not in region.links and is_linked(region, key, other, ends):
                region.links[key] = other
                carried.types[key[1]], carried.fixed[key[1]] = None, ends[key]
                fits = False
                break
    return fits


def drop_stale_links(region: Region) -> None:
    """A name that is of several types from here on is carried as other leaves: nothing is linked to those it had."""
    for key, (name, k) in list(region.links.items()):
        carried = region.names.get(name)
        types = carried.types[k : k + 1] if carried is not None else []
        if not types or (types[0] is not None and types[0].kind != "array"):
            _unlink(region, key, None)


def _unlink(region: Region, key: tuple[str, int], end: Tensor | None) -> None:
    """Carry a leaf by itself, of the type of `end`, or of what it was linked for."""
    del region.links[key]
    region.unlinked.add(key)
    if key[0] in region.names:
        carried = region.names[key[0]]
        carried.types[key[1]] = dense(carried_type(carried.fixed[key[1]] if end is None else end))


def is_linked(
    region: Region, key: tuple[str, int], other: tuple[str, int], ends: dict[tuple[str, int], Tensor]
) -> bool:
    """Whether two leaves are one array at the end of a turn, and were before the loop."""
    first, second = (region.names[name].inits[k] for name, k in (key, other))
    missing = all(is_missing(region.before.get(name)) for name, _ in (key, other))
    before = missing if first is None and second is None else same_place(first, second)
    new = ends[key]._storage not in region.head_leaves and region.names[other[0]].types[other[1]] is not None
    return before and new and same_place(ends[key], ends[other])


def compare_twins(region: Region, scope: Scope) -> bool:
    """Names that a turn ends with one new array: if it writes to what it found, it has to know that they are one."""
    ends: list[tuple[Carried, int, Storage]] = []
    for carried in region.names.values():
        if carried.read and not is_missing(scope.get(carried.name)):
            for k, x in enumerate(region._end_of(carried, scope.get(carried.name))[0]):
                if k < len(carried.types) and carried.types[k] is not None and is_array(x):
                    ends.append((carried, k, x._storage))
    fits = True
    for at, (carried, k, storage) in enumerate(ends):
        for other, j, second in ends[:at]:
            pair = (carried.name, k, other.name, j)
            one = storage is second or region.mode.may_share(storage, second)
            if one and pair not in region.twins and storage not in region.head_leaves:
                region.twins.add(pair)
                fits = fits and not is_written(region, carried, k) and not is_written(region, other, j)
    return fits


def compare_insides(region: Region, scope: Scope) -> bool:
    """Views, in places that are data of a turn, of new arrays that other names are: their places are carried.

    Whether just those are that a turn ends with.
    """
    wholes: dict[Storage, tuple[str, int]] = {}
    ends: list[tuple[Carried, int, Tensor]] = []
    for name, carried in region.names.items():
        end = scope.get(name)
        if is_missing(end) or region._keeps(name, end):
            continue
        unread = not carried.read or name in region.info.unread or name not in region.info.head
        for k, x in enumerate(region._end_of(carried, end)[0]):
            known = k < len(carried.types) and k not in carried.wholes and is_array(x) and not region._is_outer(x)
            if not known or x._storage.value is None:
                continue
            its_own = region.head_leaves.get(x._storage, (carried, k)) == (carried, k)
            if x._steps and unread:
                ends.append((carried, k, x))
            elif not x._steps and its_own and carried.types[k] == x.type and k not in carried.origins:
                wholes.setdefault(x._storage, (name, k))
    fits = True
    for carried, k, x in ends:
        maybe = is_conditional(carried)
        whole = wholes.get(x._storage) if maybe or region._has_turn() else None
        found, old = form_of(region.mode, x, x, region._inner()), carried.origins.get(k)
        if whole is not None and found is not None and found[0].width and (carried.name, k) not in region.unlinked:
            fits = fits and old is not None and old.inside == whole and old.forms[0].sizes == found[0].sizes
            carried.origins[k] = Origins([found[0]], [], alone=True, inside=whole)
            if old is not None:
                carried.origins[k].arguments = old.arguments
            carried.types[k], carried.fixed[k] = None, x
        elif old is not None and old.inside:
            region.unlinked.add((carried.name, k))
            carried.types[k] = dense(carried_type(x))
            del carried.origins[k]
            fits = False
    return fits


def fits_origins(region: Region, carried: Carried, k: int, x: Any) -> bool:
    """Whether all that an array is at the end of a turn is known where it is carried; else it is from here on."""
    if not is_array(x) or x._storage.value is None or carried.name in region.swapped:
        return True
    found = look(region.mode, x, region._is_outside, region.head_leaves)
    forms, fits = bool(found.views), True
    if (carried.name, k) not in region.moving and any(
        region.head_leaves[v._storage] == (carried, k) for v in found.moved
    ):
        region.moving.add((carried.name, k))  # other names may stand for the array that it moves over
        fits = False
    for storage in found.heads:
        other, j = region.head_leaves[storage]
        stays = other is carried and j == k and storage is x._storage and not found.moved
        if not stays and is_shared(region, other, j, others=other is not carried):
            fits = not add_origins(region, other, j, []) and fits
        forms = forms or j in other.origins
    if not forms and not (is_shared(region, carried, k) and region._skips()):
        return fits
    if found.views and is_alone(region, carried, k, found):
        return False
    clashes = is_written(region, carried, k) or x._storage in region.storages
    if clashes and carried.read and carried.tree is None and region.stays(x) and region._may_peel():
        raise Changed(carried.name, region.before.get(carried.name), x)  # from the second turn on it is that view
    views = list(found.views)
    for storage in found.heads:
        other, j = region.head_leaves[storage]
        views += [f.view for f in other.origins[j].forms] if j in other.origins and (other, j) != (carried, k) else []
    for view in found.moved:
        other, j = region.head_leaves[view._storage]
        if j in other.origins:
            views += [through(form.view, view) for form in other.origins[j].forms]
    return not add_origins(region, carried, k, views) and fits


def fits_protection(region: Region, carried: Carried, leaves: Sequence[Any], end: Any) -> bool:
    """Whether the arrays that a turn ends with are read-only just where they are carried so; else they are from now on.

    Raises:
        Changed: they are not so at the start of the first turn.
    """
    arrays = [k for k, x in enumerate(leaves) if carried.types[k] is not None and is_array(x)]
    found = protected(leaves) & {*arrays}
    changed = {k for k in arrays if (k in found) != (k in carried.read_only)}
    known = {k for k in changed if carried.inits[k] is not None and carried.read}
    if known and region._may_peel():
        raise Changed(carried.name, region.before.get(carried.name), end)
    open_ = carried.perhaps | known | {k for k in arrays if leaves[k]._storage in region.mode.locked}
    if open_ == carried.perhaps and changed == known:
        return True
    carried.perhaps, carried.read_only = open_, (found | (carried.read_only & known)) - open_
    return False


def is_alone(region: Region, carried: Carried, k: int, found: Found) -> bool:
    """Whether a leaf is a view of one form of one array from before the loop throughout: no value is carried then."""
    own = all(region.head_leaves[s] == (carried, k) for s in found.heads)
    if carried.varies or found.new or found.moved or not own:
        return False
    init, origins = carried.inits[k], Origins()
    if init is None:
        maybe = is_conditional(carried)
        known = maybe or (is_missing(region.before.get(carried.name)) and region._has_turn())
    else:
        known = is_array(init) and not is_spoiled(init)
    if not known:
        return False
    origins.add(region.mode, found.views if init is None else [*found.views, init], region._inner())
    if len(origins.forms) != 1:
        return False
    origins.alone = True
    carried.types[k], carried.fixed[k] = None, remade(found.views[0], found.views[0]._storage)  # by no other name
    region.exchanged.add((carried.name, k))
    carried.origins.pop(k, None)
    if origins.forms[0].width:
        carried.origins[k] = origins
    return True


def add_origins(region: Region, carried: Carried, k: int, views: list[Tensor]) -> bool:
    """Carry which array a leaf is; whether something was new."""
    init = carried.inits[k]
    new = k not in carried.origins
    origins = carried.origins.setdefault(k, Origins())
    first = [init] if is_array(init) else []
    return origins.add(region.mode, [*first, *views], region._inner()) or new


def is_shared(region: Region, carried: Carried, k: int, *, others: bool = False) -> bool:
    """Whether the array that a leaf is before the loop has another name there, or comes from outside the function.

    In a loop inside of another one: or may be such an array of the loop around.

    Args:
        others: another leaf is a view of it at the end of a turn, too.
    """
    init = carried.inits[k]
    if not is_array(init) or is_written(region, carried, k):
        return False
    storage = init._storage
    if others and (carried.name, k) in region.moving:
        return True
    if storage.origin is not None or init._steps or storage in region.mode.choices:
        return True
    around = region.regions.heads.get(storage)
    if around is not None and around[0] is not region and is_shared(*around):  # so is the one it is in a loop around
        return True
    scope = region.before
    while isinstance(scope, Overlay):
        scope = scope.base
    names = scope.locals if isinstance(scope, Scope) else {}
    return any(
        type(x) is Tensor and x._storage is storage
        for name, value in names.items()
        if name != carried.name and region.links.get((name, 0)) != (carried.name, k)
        for x in parts_of(value)[0]
    )


def is_written(region: Region, carried: Carried, k: int) -> bool:
    """Whether a turn writes to the array that it found: what it was before is settled elsewhere."""
    heads = [s for s, (c, j) in region.head_leaves.items() if c is carried and j == k]
    return any(s.value is not carried.arguments[k] for s in heads)


def is_same_form(region: Region, origins: Origins, x: Any) -> bool:
    """Whether an array has the one form in any case."""
    found = look(region.mode, x, region._is_outside, region.head_leaves)
    known = bool(found.views) and not found.new and not found.heads
    return known and all(origins.find(region.mode, view) is not None for view in found.views)


def watch_ends(region: Region, leaves: Sequence[Any], ends: Sequence[Any], *, late: bool) -> None:
    """Results that copy what the last turn left in a storage from before: neither is written from here on."""
    for made, left in zip(leaves, ends, strict=False):
        if type(made) is not Tensor or made.type.kind != "array":
            continue
        if region._is_outer(left):
            region.mode.watch(made._storage, [left._storage], late=late)
        elif is_array(left):  # perhaps one from before, as a branch in the turn decides
            region.mode.watch_as(made._storage, left._storage, late=late)


def watch_twins(region: Region, bound: dict[str, Any], scope: Scope) -> None:
    """Arrays from here on that may be one at the end of a turn: none of them is written any more."""
    known: list[tuple[Storage, Storage, bool]] = []
    for name, result in bound.items():
        for made, end in zip(parts_of(result)[0], region.end_of(name, scope.get(name)), strict=False):
            if is_array(made) and is_array(end) and not region._is_outer(end):
                known.append((made._storage, end._storage, is_returned(name)))
    sources = [region.mode.watched_with(end) for _, end, _ in known]
    for k, (made, end, late) in enumerate(known):
        twins = [
            (m, x)
            for (m, e, x), others in zip(known[:k], sources, strict=False)
            if m is not made and (e is end or region.mode.may_share(e, end) or not others.isdisjoint(sources[k]))
        ]
        for is_late in (False, True):
            region.mode.watch(made, [m for m, x in twins if (x or late) == is_late], late=is_late)


def _is_view_before(region: Region, key: tuple[str, int], whole: tuple[str, int], end: Tensor) -> bool:
    """Whether a leaf is the same view of another one before the loop as at the end of a turn."""
    init, other = (region.names[name].inits[k] for name, k in (key, whole))
    known = is_array(init) and is_array(other) and init._storage is other._storage and not other._steps
    return known and bool(end._steps) and init._steps == end._steps and region._inner().isdisjoint(sizes_of(end))


def share(region: Region, made: dict[str, list[Any]], scope: Scope) -> None:
    """Names that each turn leaves bound to views of an array that another name has are views of that, if one runs.

    So are names that are these views before the loop, too.
    """
    places: dict[Storage, list[tuple[str, int, Tensor, bool]]] = {}
    for name, carried in region.names.items():
        maybe = is_conditional(carried)
        bound = region._is_unread(name) if maybe else region._has_turn()
        for k, end in enumerate(region.end_of(name, scope.get(name))):
            known = k < len(carried.types) and carried.types[k] is not None and is_array(end)
            if known and not region._is_outer(end) and end._storage.value is not None:
                places.setdefault(end._storage, []).append((name, k, end, bound))
    for ends in places.values():
        ends.sort(key=lambda end: end[3])  # names that are bound before the loop, too, first
        whole = next(((name, k) for name, k, end, _ in ends if not end._steps), None)
        if whole is None:  # or one that is carried in place of a view
            whole = next(((name, k) for name, k, _, bound in ends if bound and k in region.names[name].wholes), None)
        for at, (name, k, end, bound) in enumerate(ends):
            twin = next(((other, j) for other, j, x, _ in ends[:at] if x is end), None)
            if not bound:
                if whole not in (None, (name, k)) and _is_view_before(region, (name, k), whole, end):
                    made[name][k] = remade(end, made[whole[0]][whole[1]]._storage)
                continue
            if twin is not None:
                made[name][k] = made[twin[0]][twin[1]]
            elif whole not in (None, (name, k)) and region._inner().isdisjoint(sizes_of(end)):
                assert whole is not None
                made[name][k] = remade(end, made[whole[0]][whole[1]]._storage)
