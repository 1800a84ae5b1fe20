"""What a turn of a loop leaves, compared with what the loop was taken to carry: it fits, or another attempt is made.

The functions answer whether it fits, and note what the next attempt carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph.ir.builder import is_long
from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Value
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import TensorType, same_layout
from jitgraph.tensor import Storage, Tensor, lift, make
from jitgraph.tracing import carried_kinds, carried_objects, carried_options, same_arrays, turn_starts
from jitgraph.tracing.capture_mode import is_spoiled
from jitgraph.tracing.carried_names import (
    Carried,
    Changed,
    are_values,
    dense,
    is_array,
    is_missing,
    parts_of,
    protected,
    unchanged,
)
from jitgraph.tracing.exits import RETURNED
from jitgraph.tracing.joining import (
    UNSET,
    carried_type,
    convert,
    is_option,
    is_returned,
    join,
    stays_inside,
)
from jitgraph.tracing.kinds import is_exact
from jitgraph.tracing.poison import Maybe, OneOf, Poison, as_maybe
from jitgraph.tracing.scopes import Scope, at_versions

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region


def _convertible(t: TensorType, end: TensorType | None, init: Any) -> bool:
    """Whether a first turn on the converted value is the same as one on the value of type `t`, to the last bit."""
    if end is None or t.kind == "array" or end.kind == "array":
        return end is not None and t.dtype == end.dtype
    if not t.is_python:
        return t.dtype == end.dtype
    if t.kind == "py_int" and end.kind == "np_scalar" and end.dtype.kind in "iu" and end.dtype != np.int64:
        return _is_known_within(init, end.dtype)  # NumPy refuses others
    exact = end.is_python or end.dtype.kind != "f" or end.dtype == np.float64
    return exact or (type(init) in (bool, int, float, complex) and init == 0)


def _is_known_within(number: Any, dtype: np.dtype) -> bool:
    """Whether a Python int is known, and one that an integer dtype holds."""
    value = number._storage.value if type(number) is Tensor else None
    known = number if type(number) is not Tensor else None if value is None else constant_of(value)
    info = np.iinfo(dtype)
    return isinstance(known, int) and info.min <= known <= info.max


def _shape_symbols(x: Any) -> set[str]:
    """The symbols in the shape of a traced array."""
    return {name for d in x.type.shape for name in symbols(d)} if type(x) is Tensor and x.is_traced else set()


def compare(region: Region, scope: Scope) -> bool:
    """Compare the names at the end of a turn with what was carried; False if another attempt is needed.

    Raises:
        Changed: another attempt will not do.
    """
    region.left, region.end_scope = {}, scope
    region.swapped = region._swapped(scope)
    fits = same_arrays.name_wholes(region, scope)
    for name in dict.fromkeys((*region.info.head, *region.info.after)):
        if name != region.own_flag:
            carried = region.names.get(name)
            end = scope.get(name)
            if type(end) is Poison and end.unbound and not region._is_unread(name):
                before = region.before.get(name)
                if not is_missing(before):  # deleted: the next turn finds it unbound
                    raise Changed(name, before, end)
            known = _compare_new(region, name, end) if carried is None else _compare_carried(region, carried, end)
            fits = known and fits
    fits = same_arrays.compare_links(region, scope) and fits
    fits = same_arrays.compare_twins(region, scope) and fits
    fits = same_arrays.compare_insides(region, scope) and fits
    fits = carried_objects.compare(region, scope) and fits
    return fits and carried_kinds.compare(region, scope)


def _compare_new(region: Region, name: str, end: Any) -> bool:
    """A name that is not carried yet."""
    before = region.before.get(name)
    if type(end) is Poison and not end.unbound and not region._is_unread(name):
        end.fail()  # the next turn reads it
    if is_missing(end) or unchanged(before, end):
        return True
    if type(before) is Poison and not before.unbound and name in region.info.after and not region._has_turn():
        before.fail()  # without a turn it is what could not be merged
    if not is_missing(before) and carried_options.is_open(region, name, before, end):
        carried_options.carry(region, name, before, end)
        return False
    if type(end) is not Maybe and region._is_resolved(name):
        if region._may_peel():
            raise Changed(name, None, end)  # the other turns find it bound
        end = as_maybe(name, end)
    if region._is_unread(name) and region._is_left(end) and (is_missing(before) or region._has_turn()):
        region.left[name] = end
        return True
    if type(before) is Poison and not before.unbound and name in region.info.after and not region._runs():
        before.fail()  # without a turn it is what it was
    if type(before) is Poison and before.unbound and not region._has_turn():
        end = as_maybe(name, end)
    leaves, tree = parts_of(end)
    keeps = region._keeps(name, end)
    wholes = {k: x for k, x in enumerate(leaves) if region._is_unread(name) and not keeps and region._is_strided(x)}
    leaves = [make(x._storage, ()) if k in wholes else x for k, x in enumerate(leaves)]
    maybe = type(end) is Maybe or is_returned(name)
    several = maybe or type(end) is OneOf
    stays = [
        (several and (isinstance(x, str | bytes | type) or is_long(x)))
        or (
            region._is_unread(name)
            and (region.stays(x) if keeps else region._is_left(x))
            and (maybe or region._has_turn())
            and (not several or stays_inside(region.mode, x))
        )
        for x in leaves
    ]
    types = [None if stay else carried_type(x) for x, stay in zip(leaves, stays, strict=True)]
    inner = region._inner()
    sized = [not stay and not inner.isdisjoint(_shape_symbols(x)) for x, stay in zip(leaves, stays, strict=True)]
    if any(size and not region._is_outer(x) for x, size in zip(leaves, sized, strict=True)):
        region.sized_inside.add(name)
        return True
    if region._is_unread(name) and region._runs() and all(region.stays(x) for x in leaves):
        return True  # the same view of what was there before, in each turn
    is_read = name in region.info.head and name != RETURNED
    overwritten = region._is_unread(name) and not keeps and region._runs()
    if is_read and not is_missing(before) and not overwritten:
        if type(before) is Tensor and type(end) is Tensor:
            turn_starts.carry(region, name, before, rebound=True)
            return False
        if type(before) is Maybe and are_values(before):  # perhaps bound by an earlier loop
            turn_starts.carry(region, name, before, rebound=True)
            return False
        raise Changed(name, before, end)
    if name not in region.info.after and not is_read:
        return True
    if any(t is None and not stay for t, stay in zip(types, stays, strict=True)):
        return True  # text, objects: no run-time value; they stay what they are if they are static
    fixed = [x if stay else None for x, stay in zip(leaves, stays, strict=True)]
    read = is_read and not overwritten
    turn_starts.output(region, name, UNSET if overwritten else before, tree, types, read=read, fixed=fixed)
    region.names[name].wholes, region.names[name].moves = wholes, any(stays) and not keeps
    region.names[name].options = () if is_returned(name) else carried_options.options_in(region, end)
    region.names[name].read_only |= protected(leaves)
    return _fit_new(region, region.names[name], leaves)


def _fit_new(region: Region, carried: Carried, leaves: Sequence[Any]) -> bool:
    """What the arrays that a name is from now on may be is known; whether no attempt will carry it: no type holds."""
    inner = region._inner()
    for k, x in enumerate(leaves):
        if carried.types[k] is not None and k not in carried.wholes:
            same_arrays.fits_origins(region, carried, k, x)
        if carried.types[k] is not None and not inner.isdisjoint(_shape_symbols(x)):
            del region.names[carried.name]
            region.sized_inside.add(carried.name)
            return True
    return False


def _see_wholes(region: Region, carried: Carried, end: Any) -> None:
    """Views whose arrays are carried in their place are those of this attempt, if they are views at all."""
    leaves = parts_of(end)[0]
    for k, view in list(carried.wholes.items()):
        x = leaves[k] if k < len(leaves) else None
        if type(x) is Tensor and region._is_strided(x):
            carried.wholes[k] = x
        elif type(x) is not Tensor or x._steps != view._steps:
            del carried.wholes[k]


def _compare_carried(region: Region, carried: Carried, end: Any) -> bool:
    if type(end) is Poison and not end.unbound:
        end.fail()
    if is_missing(end):
        return True
    name = carried.name
    keeps = region._keeps(name, end)
    _see_wholes(region, carried, end)
    opens = bool(carried.options) or carried_options.is_open(region, name, region.before.get(name), end)
    if opens and not carried_options.fits(region, carried, end):
        return False
    leaves, tree = region._end_of(carried, end)
    if not carried.read and not carried.options and carried_kinds.is_other(region, carried, leaves, tree):
        del region.names[name]  # begin with what a turn leaves
        _compare_new(region, name, end)
        return False
    told = None if tree == carried.tree else carried_kinds.first_new(carried.tree, tree)
    if told is not None:
        return carried_kinds.carry(region, carried, told[0], end, *told[1])
    if tree != carried.tree:
        if is_missing(region.before.get(name)):  # what else an attempt has found out may have changed it
            del region.names[name]
            return False
        raise Changed(carried.name, region.before.get(carried.name), end)
    fits, known = True, dict(carried_kinds.boxes(tree))
    if any(map(is_spoiled, leaves)):
        if not region._can_peel():
            raise region._stale(name)
        raise Changed(name, region.before.get(name), None)
    for k, x in enumerate(leaves):
        t, have = carried.types[k], carried_type(x)
        if x is None and carried.options:
            continue
        if t is None:
            if (name, k) in region.links or (k in carried.origins and carried.origins[k].inside):
                continue
            if carried.moves and region._is_left(x):
                carried.fixed[k] = x
            elif k in carried.origins and same_arrays.is_same_form(region, carried.origins[k], x):
                pass
            elif k in carried.origins or not unchanged(carried.fixed[k], x):
                joined = join(region.mode, carried.fixed[k].type, x.type) if _are_arrays(carried, k, x) else None
                if joined is None:
                    raise Changed(carried.name, carried.fixed[k], x)
                carried.types[k], carried.varies = dense(joined), True
                carried.origins.pop(k, None)
                same_arrays.fits_origins(region, carried, k, x)
                fits = False
        elif dense(have) != t and carried.read and region._is_unread(name) and not keeps and region._runs():
            del region.names[name]  # what it was before is of no account: begin with what a turn leaves
            return False
        elif (
            have != t
            and carried.read
            and region._is_unread(name)
            and not keeps
            and tree is None
            and carried_kinds.as_output(region, region.before.get(name), None, [have], [None]) is not None
        ):
            turn_starts.output(region, name, region.before.get(name), None, [have], read=False)
            return _fit_new(region, region.names[name], leaves)
        elif have != t:
            joined = None if have is None else join(region.mode, t, have)
            value = x._storage.value if type(x) is Tensor else x
            if k in known and have is not None:
                if carried_kinds.is_kept(region, x, t):
                    continue
                if carried_kinds.widen(region, carried, k, known[k]):
                    return False
            if joined is None or not _convertible(t, have, carried.inits[k]):
                if not _is_overwritten(region, carried, k, value):
                    raise Changed(carried.name, t, x)
                carried.read, carried.inits[k], carried.types[k] = False, None, dense(have)
                return _fit_new(region, carried, leaves)
            joined = dense(joined)
            lies = t.kind == "array" and have is not None and not same_layout(t, have) and have.layout.is_dense
            if lies and carried.read and carried.tree is None and region._may_peel():
                raise Changed(carried.name, t, x)  # from the second turn on it may lie in memory as here
            narrower = joined == t and have is not None and have.is_python and k not in known
            if narrower:  # a float or NumPy's number before the loop, an int from the first turn on
                if region._may_peel() or not carried.read or have is None:
                    raise Changed(carried.name, t, x)
                return carried_kinds.carry(region, carried, k, x, have)
            if joined != t:
                carried.types[k] = joined
                fits = False
        if t is not None and k not in carried.wholes:
            fits = same_arrays.fits_origins(region, carried, k, x) and fits
    return same_arrays.fits_protection(region, carried, leaves, end) and fits


def _is_overwritten(region: Region, carried: Carried, k: int, end: Any) -> bool:
    """Whether no turn looked at what a scalar was at its start, though there are paths on which it could."""
    argument = carried.arguments[k]
    if carried.tree is not None or argument is None or argument.type.kind == "array" or argument.uses:
        return False
    if argument in region.mode.asked or argument in region.mode.handed:
        return False
    handed_on = any(type(x) is Tensor and x._storage.value is argument for x in _left_in_turn(region))
    return not handed_on and end is not argument and carried.name not in region.left and region._runs()


def _left_in_turn(region: Region) -> Iterator[Any]:
    """The parts of what the names are bound to at the end of the turn that is compared."""
    for name in dict.fromkeys((*region.info.head, *region.info.after)):
        yield from parts_of(region.end_scope.get(name))[0]


def _are_arrays(carried: Carried, k: int, x: Any) -> bool:
    init = carried.inits[k]
    return is_array(carried.fixed[k]) and is_array(x) and (init is None or is_array(init))


def open_options(region: Region, change: Changed) -> bool:
    """Carry a name as one of the types that it has before the loop and behind a turn; whether that is new."""
    name = change.name
    if name in region.optional or name in region.cells or (is_returned(name) and region.before is None):
        return False
    if region.before is not None:  # else turns are traced in front of the loop: its start decides (`is_open`)
        before = region.before.get(name)
        if is_missing(before) or not is_option(before):
            return False
    region.optional.add(name)
    region.attempts = 0
    return True


def tells(region: Region) -> bool:
    """Carry names that have other types without a turn as of several, as no call can turn back; any there are.

    Raises:
        LeftToPython: one cannot be.
    """
    if carried_kinds.tell(region):
        return True
    name = needs_turn(region, kinds=True)
    carried, before = region.names.get(name), region.before.get(name)
    if carried is None or carried.read or is_missing(before):
        return False
    change = Changed(name, before, region.end_scope.get(name))
    if not open_options(region, change):
        change.fail(region.place)
    return True


def ends(region: Region, scope: Scope, changed: dict[Storage, Any]) -> list[Value]:
    """The values at the end of a turn, converted; emitted at the builder's place."""
    found: list[Value] = []
    for carried in region.names.values():
        end = scope.get(carried.name)
        leaves = [None] * len(carried.types) if is_missing(end) or region.failure else region._end_of(carried, end)[0]
        known = dict(carried_kinds.boxes(carried.tree))
        for k, (x, t, argument) in enumerate(zip(leaves, carried.types, carried.arguments, strict=True)):
            if t is not None and argument is not None:
                with at_versions(changed):
                    value = argument if x is None else lift(region.mode, x)
                    if k in known and value.type != t:
                        is_exact(region.mode, value, value.type, t)  # under a check
                    found.append(convert(region.mode, value, t))
        for k, origins in carried.origins.items():
            x = leaves[k]
            is_known = region._is_outside if origins.inside is None else lambda _: True
            codes = None if x is None else origins.codes(region.mode, x, is_known)
            found += origins.arguments if codes is None else codes
    return found + carried_objects.ends(region, scope) + [changed[s] for s in region.storages]


def needs_turn(region: Region, *, kinds: bool = False) -> str:
    """A name whose type or value behind the loop holds only after a turn; "" if there is none.

    Args:
        kinds: only those that have another type without a turn.
    """
    for name, carried in region.names.items():
        kind = None if carried.tree is None else carried.tree.kind
        if name not in region.info.after or (name.startswith("_jg_") and not is_returned(name)):
            continue
        open_ = kind is Maybe or is_returned(name)
        if open_ and is_missing(region.before.get(name)):  # nobody looks at it without a turn
            continue
        if kind is OneOf:
            if carried.inits[0] is None:  # no option: it is not bound
                return name
            continue
        known = dict(carried_kinds.boxes(carried.tree))
        for k, (init, t) in enumerate(zip(carried.inits, carried.types, strict=True)):
            have = None if init is None else carried_type(init)
            if t is None or (have is not None and (k in known or k - 1 in known)):
                continue
            if have is None or have.dtype != t.dtype or have.kind != t.kind:
                return name
            if have.kind == "array" and not kinds and not open_:
                return name
    return ""
