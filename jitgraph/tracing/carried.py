"""What a loop carries from turn to turn: names leaf by leaf, storages; and how an attempt compares with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import is_long
from jitgraph.ir.dims import DimLike, symbols
from jitgraph.ir.graph import Block, Site, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type, same_layout
from jitgraph.pytree import TreeDef, unflatten
from jitgraph.tensor import Storage, Tensor, lift, make, set_version, wrap
from jitgraph.tracing import carried_kinds, carried_objects, carried_options, same_arrays
from jitgraph.tracing.capture_mode import StaleMode, frame_of, is_spoiled, spoil
from jitgraph.tracing.carried_names import Carried, Changed, dense, is_array, is_missing, parts_of, protected
from jitgraph.tracing.cells import Cell
from jitgraph.tracing.exits import RETURNED
from jitgraph.tracing.identity import note
from jitgraph.tracing.joining import (
    UNSET,
    carried_type,
    convert,
    describe,
    inner_symbols,
    is_option,
    is_returned,
    is_value,
    join,
    placeholder,
    remade,
    same_constant,
    same_place,
    same_static,
    sizes_of,
    stays_inside,
    type_of,
)
from jitgraph.tracing.kinds import is_exact
from jitgraph.tracing.objects import Turn
from jitgraph.tracing.origins import look, moved
from jitgraph.tracing.poison import Maybe, OneOf, Poison, as_maybe, unbound_text
from jitgraph.tracing.regions import Mark, Opened, Regions, defined_in, is_the_users, message_of, unmade
from jitgraph.tracing.restart import Restart
from jitgraph.tracing.rewrite import LoopInfo
from jitgraph.tracing.scopes import Scope, at_versions


class NeedsFirstTurn(UnboundLocalError):  # noqa: N818  # an answer
    """A name that only the end of a turn binds is read in a turn of the region: the first turn comes before it.

    Behind the region it is Python's own error.
    """

    def __init__(self, region: Region, name: str) -> None:
        super().__init__(unbound_text(name))
        self.region, self.unbound = region, name


def _are_values(x: Any) -> bool:
    """Whether all parts of a value are known when the code runs only, or numbers."""
    return all(map(is_value, parts_of(x)[0]))


def _shape_symbols(x: Any) -> set[str]:
    """The symbols in the shape of a traced array."""
    return {name for d in x.type.shape for name in symbols(d)} if type(x) is Tensor and x.is_traced else set()


def _unchanged(a: Any, b: Any) -> bool:
    if a is b or same_place(a, b):
        return True
    if type(a) is Tensor or type(b) is Tensor:
        return False
    if is_value(a) and is_value(b):
        return same_constant(a, b)
    return same_static(a, b)


def _shown(name: str) -> str:
    """What the user calls a name."""
    return "the value that the function returns" if name.startswith("_jg_") else name


def _convertible(t: TensorType, end: TensorType | None, init: Any) -> bool:
    """Whether a first turn on the converted value is the same as one on the value of type `t`, to the last bit."""
    if end is None or t.kind == "array" or end.kind == "array":
        return end is not None and t.dtype == end.dtype
    if not t.is_python:
        return t.dtype == end.dtype
    exact = end.is_python or end.dtype.kind != "f" or end.dtype == np.float64
    return exact or (type(init) in (bool, int, float, complex) and init == 0)


class Region:
    """What `for` and `while` share: attempts, carried names and storages."""

    traced = True

    def __init__(self, regions: Regions, info: LoopInfo) -> None:
        self.regions = regions
        self.mode = regions.mode
        self.info = info
        #: A break flag that the operator itself tests: no carried name, and False at the start of each turn.
        self.own_flag = ""
        #: Names of arrays that are themselves again at the end of the body: not carried, their storages are.
        self.pinned: set[str] = set()
        self.place = regions.mode.locate()
        #: The symbol of a `for`'s index.
        self.index = ""
        #: Names, unbound before the loop, of which a turn asks whether an earlier one, or itself, has bound them.
        self.resolved: set[str] = set()
        #: Names with sizes that are data of a turn.
        self.sized_inside: set[str] = set()
        self.before: Any = None
        #: How many scalars of loops in front of the turn have kinds that were not told: see `carried_kinds`.
        self.untold = 0
        self.names: dict[str, Carried] = {}
        self.storages: list[Storage] = []
        self.attempts = 0
        self.peeled = False
        self.results: dict[str, Any] | None = None
        self.heads: dict[str, Any] = {}
        #: Bools of this attempt to what stands for their negation.
        self._negations: dict[Value, Value] = {}
        self.failure: Exception | None = None
        #: Where the attempt began.
        self.mark: Mark | None = None
        #: Names that the last turn leaves bound to a view of an array from before the loop.
        self.left: dict[str, Tensor] = {}
        #: The variables at the end of the turn that was compared last.
        self.end_scope: Any = None
        #: Names that a turn ends with one another's arrays, written: a turn of the operator will be two of them.
        self.swapped: set[str] = set()
        #: Arrays from before the loop that a turn makes unusable: at the start of the next one they are.
        self.stale: dict[Storage, Any] = {}
        #: Leaves that are one new array throughout are carried once: name and number to those of the one carried.
        self.links: dict[tuple[str, int], tuple[str, int]] = {}
        self.unlinked: set[tuple[str, int]] = set()
        #: Leaves that a turn may end with as views of what it found there.
        self.moving: set[tuple[str, int]] = set()
        #: The arrays that leaves are at the start of a turn.
        self.head_parts: dict[tuple[str, int], Tensor] = {}
        #: Leaves of names that a turn may end with one array: name, number, name, number.
        self.twins: set[tuple[str, int, str, int]] = set()
        #: The storages that carried arrays have at the start of a turn: the name and the number of the leaf.
        self.head_leaves: dict[Storage, tuple[Carried, int]] = {}
        #: Names of arrays that turns leave views of only: a name and a leaf that is one.
        self.whole_names: dict[str, tuple[str, int]] = {}
        #: Attributes and items that are carried, by the names they have among the variables.
        self.cells: dict[str, Cell] = {}
        #: A name for whose sake the attempt was given up: the first turn is to be traced in front.
        self.needs_first = ""
        #: Names whose types before the loop and behind a turn differ, where no first turn can be traced in front.
        self.optional: set[str] = set()
        #: Arrays, by name and number of the leaf, whose object's number is carried, and these in the attempt.
        #: The value is which view of its memory it is (`objects.Memory.steps`).
        self.objects: dict[tuple[str, int], tuple[Any, ...] | None] = {}
        self.object_arguments: dict[tuple[str, int], tuple[Value, Value]] = {}
        #: Views from before the loop, by name and number of the leaf, that turns put others in the place of.
        self.exchanged: set[tuple[str, int]] = set()
        #: The turn that is traced, in a trace that numbers objects.
        self.this_turn: Turn | None = None

    # --- attributes and items

    def _see_cells(self, scope: Scope) -> None:
        """Add what carried attributes and items hold to the variables."""
        scope.locals.update({name: cell.get() for name, cell in self.cells.items()})

    def _bind_cells(self) -> None:
        """Set carried attributes and items: in an attempt to what a turn begins with, then to the results."""
        for name, cell in self.cells.items():
            value = self.get(name)
            if type(value) is Poison:
                value.fail()
            cell.set(value)

    def _add_cells(self, opened: Opened) -> bool:
        """Carry the attributes and items that a turn changed; whether there are any that were not."""
        known = {cell.name for cell in self.cells.values()}
        new = [cell for cell, _ in opened.cells if cell.name not in known]
        names = []
        for cell in new:
            name = cell.text if cell.text not in self.cells else f"{cell.text} ({len(self.cells)})"
            self.cells[name] = cell
            self.before.locals[name] = cell.get()
            names.append(name)
        if new:
            info, more = self.info, tuple(names)
            self.info = info._replace(
                head=info.head + more, after=info.after + more, rebound=info.rebound + more,
                assigned=info.assigned + more,
            )  # fmt: skip
            for name in names:
                self._carry(name, self.before.get(name))
        return bool(new)

    # --- the start

    def _begin(self, scope: Scope) -> None:
        """The variables before the loop, and what is likely carried."""
        self.before = scope
        self.names.clear()
        self.links.clear()
        self.storages.clear()
        self.stale.clear()
        for name in self.info.head:
            value = scope.get(name)
            overwritten = name in self.info.unread and any(map(is_array, parts_of(value)[0]))
            if name != self.own_flag and not overwritten:
                self._carry(name, value)
        for name in self.info.written:
            value = scope.get(name)
            if name in self.names or name in self.info.unread:  # of an earlier loop, say: a turn makes its own
                continue
            if type(value) is Tensor and value.is_traced and value.type.kind == "array":
                self._add_storage(value._storage)
        if self.mode.objects is not None:
            self._add_storage(self.mode.objects.clock)
        decided, unlinked, linked = self.regions.decided.get(self._key(), ((), (), ()))
        self.unlinked.update(unlinked)
        same_arrays.link_inits(self)
        for name, tree, types, read, wholes in decided:
            known = self.names.get(name)
            if known is not None and known.tree == tree:
                if read or known.types == list(types):  # else what it was before need not convert
                    for k, t in enumerate(types):
                        if (name, k) not in self.links and (name, k) not in linked:
                            known.types[k] = t
            elif known is None and all(t is not None for t in types):
                self._output(name, scope.get(name), tree, list(types), read=read)
                self.names[name].wholes = dict(wholes)

    def _key(self) -> Any:
        """The loop's place, from where its function is called, and the types that it begins with."""
        entry = [
            (n, str(c.tree), tuple(map(str, map(carried_type, c.inits))))
            for n, c in self.names.items()
            if c.inits[0] is not None
        ]
        return (self.regions.path_of(), self.before.code, self.info, tuple(sorted(entry)), self.peeled)

    def _carry(self, name: str, value: Any, *, rebound: bool | None = None) -> None:
        """Carry a name with its value from before, if that is something to carry."""
        if type(value) is Maybe and not _are_values(value):
            return
        if is_missing(value) or any(map(is_spoiled, parts_of(value)[0])):
            return
        is_array = type(value) is Tensor and value.is_traced and value.type.kind == "array"
        if name in self.pinned:
            rebound = False
        if is_array and not (name in self.info.rebound if rebound is None else rebound):
            self._add_storage(value._storage)  # written in place: the name stays bound to it
            return
        if type(value) is OneOf and carried_options.is_open(self, name, value, value):
            try:
                carried_options.carry(self, name, value, value)
            except Changed as change:  # too many types
                self._fail_type(change)
            return
        leaves, tree = parts_of(value)
        types = [dense(carried_type(x)) for x in leaves]
        if any(t is not None for t in types):
            read = name != RETURNED  # no turn follows one that returns
            self.names[name] = Carried(name, tree, list(leaves), types, list(leaves), read, read_only=protected(leaves))

    def _add_storage(self, storage: Storage) -> None:
        if storage not in self.storages and storage.value is not None and storage.writable:
            self.storages.append(storage)

    def _output(
        self,
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
        found = None if read or is_missing(before) else carried_kinds.as_output(self, before, tree, types, kept)
        if found is not None:
            tree, types, inits, kept = found.tree, found.types, found.inits, found.fixed
        else:
            types, inits = list(types), self._begins(before, tree, types, read=read)
        types = [dense(t) for t in types]
        self.names[name] = Carried(name, tree, inits, types, kept, read, read_only=protected(inits))

    def _begins(self, before: Any, tree: TreeDef | None, types: list[TensorType | None], *, read: bool) -> list[Any]:
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
            if t is None or have is None or (k in known and not carried_kinds.is_kept(self, old[k], t)):
                continue
            joined = t if k in known else join(self.mode, have, t)
            if joined is not None and (read or have == t or joined.kind == "array"):
                inits[k], types[k] = old[k], joined
        return inits

    def _arguments(self, block: Block, *, bind: bool) -> None:
        """Block arguments for all that is carried; names and storages are bound to them."""
        same_arrays.drop_stale_links(self)
        for carried in self.names.values():
            shown = "" if carried.name.startswith("_jg_") else carried.name
            carried.arguments = [None if t is None else block.add_arg(t, shown) for t in carried.types]
            for origins in carried.origins.values():
                origins.arguments = [block.add_arg(python_type("py_int")) for _ in range(origins.width)]
            for argument, init in zip(carried.arguments, carried.inits, strict=True):
                small = type(init) is int and abs(init) < 2**31
                if small and argument is not None and argument.type.kind == "py_int":
                    self.mode.small.add(argument)
        carried_objects.arguments(self, block)
        for storage in list(self.storages):
            if storage.value is None:  # a copy of another one, which turns write: whoever uses it is told
                self.storages.remove(storage)
                continue
            argument = block.add_arg(storage.value.type, storage.value.name)
            if bind:
                set_version(storage, argument)
                self.mode.written_in_turns(storage)
        if bind:
            self.untold = len(self.regions.untold)
            self._negations.clear()
            self.head_leaves, self.head_parts = {}, {}
            self.heads = {n: self._head(c) for n, c in self.names.items() if c.read}
            storages = {(c.name, k): s for s, (c, k) in self.head_leaves.items()}
            same_arrays.watch_heads(self)
            for first, k, second, j in self.twins:
                if (first, k) in storages and (second, j) in storages:
                    self.mode.watch(storages[first, k], [storages[second, j]])
            carried_objects.bind_heads(self)

    def _head(self, carried: Carried) -> Any:
        """The Python value of a carried name at the start of a turn."""
        leaves = self._leaves(carried, carried.arguments)
        for k, x in enumerate(leaves):
            if carried.types[k] is not None and is_array(x):
                self.head_leaves[x._storage] = carried, k
                self.regions.heads[x._storage] = self, carried, k
        for k, origins in carried.origins.items():
            if origins.inside is not None:  # no turn reads it
                continue
            if origins.alone:
                leaves[k] = origins.view(self.mode, 0, origins.arguments)
            else:
                origins.choose(self.mode, leaves[k], origins.arguments)
                self.mode.watch(leaves[k]._storage, origins.storages)
                self._spoil_if_written(carried.name, leaves[k]._storage, origins.storages)
        for k, (x, init) in enumerate(zip(leaves, carried.inits, strict=True)):
            if carried.types[k] is not None and k not in carried.origins and is_array(init):
                views = look(self.mode, init, self._is_outside).views
                sources = [init._storage, *(view._storage for view in views)]
                self.mode.copied(x._storage, sources, partial(self._stale, carried.name))
        for k, x in enumerate(leaves):
            if (carried.name, k) in self.links:
                leaves[k] = self.head_parts[self.links[carried.name, k]]
            elif is_array(x):
                self.head_parts[carried.name, k] = x
        return self._built(carried, leaves)

    def _spoil_if_written(self, name: str, head: Storage, sources: Sequence[Storage]) -> None:
        """What a turn finds may be one of `sources`, and an earlier turn may have written to that: it is not used."""
        for source in sources:
            if head.value is None:
                return
            stale = source.mode
            if type(stale) is StaleMode:
                spoil(self.mode, head, stale.settle, stale.reason, stale.remedy, stale.error)
            elif source in self.storages or self.mode.is_behind(source, self.storages):
                spoil(self.mode, head, None, error=partial(self._stale, name))

    def _stale(self, name: str) -> BaseException:
        """A turn uses a view that its name had before the loop behind a write to the array: a copy is not that view."""
        if self._can_peel() and self._opened() is not None:
            return NeedsFirstTurn(self, name)
        text = f"{_shown(name)} may be a view of an array that a loop writes, and is carried as an array of its own"
        remedy = f"give {name} an array of its own before the loop ({name} = {name}.copy())."
        return errors.LeftToPython(errors.describe(text, self.mode.locate() or self.place, remedy=remedy))

    def _leaves(self, carried: Carried, values: Sequence[Value | None]) -> list[Any]:
        leaves = [f if v is None else wrap(self.mode, v) for v, f in zip(values, carried.fixed, strict=True)]
        for k in carried.read_only:
            if values[k] is not None:
                leaves[k]._storage.writable = False
        self.mode.locked.update({leaves[k]._storage: None for k in carried.perhaps if values[k] is not None})
        for x, value in zip(leaves, values, strict=True):
            if value is not None:
                note(self.mode, x, None)
        return leaves

    def _built(self, carried: Carried, leaves: list[Any]) -> Any:
        return leaves[0] if carried.tree is None else unflatten(carried.tree, leaves)

    def get(self, name: str) -> Any:
        """While a turn is traced the value at its start, after the loop the result."""
        if self.results is not None:
            return self.results[name] if name in self.results else self.before.get(name)
        if name == self.own_flag:
            return False
        if name in self.heads:
            return self.heads[name]
        if name == RETURNED and self._opened() is not None:  # a turn runs: the function has not returned
            return UNSET
        before = self.before.get(name)
        if type(before) is Poison and before.unbound and self._opened() is not None and self._can_peel():
            return Poison(partial(self._unbound, name), unbound=True)
        return before

    def _unbound(self, name: str) -> UnboundLocalError:
        """What reading a name raises that the start of a turn does not bind; behind the loop that is Python's error."""
        return NeedsFirstTurn(self, name) if self._opened() is not None else UnboundLocalError(unbound_text(name))

    def _can_peel(self) -> bool:
        """Whether the first turn may be traced in front of the region."""
        return False

    def _may_peel(self) -> bool:
        """The same, of a name for whose sake it need not be."""
        return self._can_peel() and self.mode.can_rerun()

    def _give_up(self, error: NeedsFirstTurn) -> None:
        """Undo an attempt that needs its first turn traced before it; `leave` goes on from there."""
        opened = self._opened()
        assert opened is not None
        self.regions.close(opened, failed=True)
        self.regions.failed = None
        self.needs_first = error.unbound

    # --- the end of a turn

    def _compare(self, scope: Scope) -> bool:
        """Compare the names at the end of a turn with what was carried; False if another attempt is needed.

        Raises:
            Changed: another attempt will not do.
        """
        self.left, self.end_scope = {}, scope
        self.swapped = self._swapped(scope)
        fits = same_arrays.name_wholes(self, scope)
        for name in dict.fromkeys((*self.info.head, *self.info.after)):
            if name != self.own_flag:
                carried = self.names.get(name)
                end = scope.get(name)
                known = self._compare_new(name, end) if carried is None else self._compare_carried(carried, end)
                fits = known and fits
        fits = same_arrays.compare_links(self, scope) and fits
        fits = same_arrays.compare_twins(self, scope) and fits
        fits = same_arrays.compare_insides(self, scope) and fits
        fits = carried_objects.compare(self, scope) and fits
        return fits and carried_kinds.compare(self, scope)

    def _is_made_inside(self, value: Any) -> bool:
        return any(defined_in(value, block) for block in self._blocks())

    def _compare_new(self, name: str, end: Any) -> bool:
        """A name that is not carried yet."""
        before = self.before.get(name)
        if type(end) is Poison and not end.unbound and not self._is_unread(name):
            end.fail()  # the next turn reads it
        if is_missing(end) or _unchanged(before, end):
            return True
        if type(before) is Poison and not before.unbound and name in self.info.after and not self._has_turn():
            before.fail()  # without a turn it is what could not be merged
        if not is_missing(before) and carried_options.is_open(self, name, before, end):
            carried_options.carry(self, name, before, end)
            return False
        if type(end) is not Maybe and self._is_resolved(name):
            if self._may_peel():
                raise Changed(name, None, end)  # the other turns find it bound
            end = as_maybe(name, end)
        if self._is_unread(name) and self._is_left(end) and (is_missing(before) or self._has_turn()):
            self.left[name] = end
            return True
        if type(before) is Poison and not before.unbound and name in self.info.after and not self._runs():
            before.fail()  # without a turn it is what it was
        if type(before) is Poison and before.unbound and not self._has_turn():
            end = as_maybe(name, end)
        leaves, tree = parts_of(end)
        keeps = self._keeps(name, end)
        wholes = {k: x for k, x in enumerate(leaves) if self._is_unread(name) and not keeps and self._is_strided(x)}
        leaves = [make(x._storage, ()) if k in wholes else x for k, x in enumerate(leaves)]
        maybe = type(end) is Maybe or is_returned(name)
        several = maybe or type(end) is OneOf
        stays = [
            (several and (isinstance(x, str | bytes | type) or is_long(x)))
            or (
                self._is_unread(name)
                and (self.stays(x) if keeps else self._is_left(x))
                and (maybe or self._has_turn())
                and (not several or stays_inside(self.mode, x))
            )
            for x in leaves
        ]
        types = [None if stay else carried_type(x) for x, stay in zip(leaves, stays, strict=True)]
        inner = self._inner()
        sized = [not stay and not inner.isdisjoint(_shape_symbols(x)) for x, stay in zip(leaves, stays, strict=True)]
        if any(size and not self._is_outer(x) for x, size in zip(leaves, sized, strict=True)):
            self.sized_inside.add(name)
            return True
        if self._is_unread(name) and self._runs() and all(self.stays(x) for x in leaves):
            return True  # the same view of what was there before, in each turn
        is_read = name in self.info.head and name != RETURNED
        overwritten = self._is_unread(name) and not keeps and self._runs()
        if is_read and not is_missing(before) and not overwritten:
            if type(before) is Tensor and type(end) is Tensor:
                self._carry(name, before, rebound=True)
                return False
            if type(before) is Maybe and _are_values(before):  # perhaps bound by an earlier loop
                self._carry(name, before, rebound=True)
                return False
            raise Changed(name, before, end)
        if name not in self.info.after and not is_read:
            return True
        if any(t is None and not stay for t, stay in zip(types, stays, strict=True)):
            return True  # text, objects: no run-time value; they stay what they are if they are static
        fixed = [x if stay else None for x, stay in zip(leaves, stays, strict=True)]
        read = is_read and not overwritten
        self._output(name, UNSET if overwritten else before, tree, types, read=read, fixed=fixed)
        self.names[name].wholes, self.names[name].moves = wholes, any(stays) and not keeps
        self.names[name].options = () if is_returned(name) else carried_options.options_in(self, end)
        self.names[name].read_only |= protected(leaves)
        for k, x in enumerate(leaves):
            if not stays[k] and k not in wholes:
                same_arrays.fits_origins(self, self.names[name], k, x)
            if sized[k] and self.names[name].types[k] is not None:  # no type holds for all turns
                del self.names[name]
                self.sized_inside.add(name)
                return True
        return False

    def _is_outside(self, storage: Storage) -> bool:
        """Whether it is a storage from before the loop."""
        return storage.value is not None and not self._is_made_inside(storage.value)

    def _inner(self) -> set[str]:
        """Symbols that hold within a turn only."""
        return inner_symbols(self._blocks()) | {self.index}

    def _blocks(self) -> Sequence[Block]:
        return ()

    def _is_unread(self, name: str) -> bool:
        """Whether a turn assigns the name before it reads it."""
        if name in self.info.unread or name not in self.info.head:
            return True
        return is_missing(self.before.get(name)) and not self._is_resolved(name)

    def _is_resolved(self, name: str) -> bool:
        """Whether a turn needs to know if a name that is unbound before the loop is bound at its start."""
        before = self.before.get(name)
        return name in self.resolved and type(before) is Poison and before.unbound

    def _keeps(self, name: str, end: Any) -> bool:
        """Whether some turns bind the name and others leave what an earlier one bound."""
        return type(end) is Maybe and name not in self.info.unread

    def _is_left(self, end: Any) -> bool:
        """Whether it is a view of an array from before the loop, in a place that is known behind the loop."""
        return self._is_outer(end) and (self._inner() - self._index_symbols()).isdisjoint(sizes_of(end))

    def _is_strided(self, x: Any) -> bool:
        """Whether it is a view, with gaps, of an array made in the turn, whose sizes are known outside of it.

        None of what a turn begins with, if that may be an array from before the loop.
        """
        if not (type(x) is Tensor and x.is_traced and x.type.kind == "array" and x._steps) or self._is_outer(x):
            return False
        known = self._inner().isdisjoint(sizes_of(x) | sizes_of(make(x._storage, ())))
        if not known or x.type.layout.is_dense:
            return False
        found = look(self.mode, x, self._is_outside, self.head_leaves)
        return not found.views and not any(same_arrays.is_shared(self, *self.head_leaves[s]) for s in found.heads)

    def stays(self, x: Any) -> bool:
        """Whether it is the same view of an array from before the loop in each turn."""
        return self._is_outer(x) and self._inner().isdisjoint(sizes_of(x))

    def _index_symbols(self) -> set[str]:
        """Symbols of a turn that have a known value in the last one."""
        return set()

    def _last_turn(self) -> dict[str, DimLike]:
        """Their values in the last turn."""
        return {}

    def _taken(self, results: Sequence[Value]) -> Any:
        """A traced bool: whether there was a turn."""
        raise NotImplementedError

    def _is_outer(self, x: Any) -> bool:
        """Whether it is an array in a storage from before the loop."""
        return (
            type(x) is Tensor
            and x.is_traced
            and x._storage.value is not None
            and x.type.kind == "array"
            and self._is_outside(x._storage)
        )

    def in_turn(self, emit: Callable[[], Any]) -> Any:
        """What `emit` makes at the end of the turn that is traced."""
        builder = self.mode.builder
        block = builder.block
        builder.at_end(self._blocks()[-1])
        try:
            return emit()
        finally:
            builder.at_end(block)

    def _negated(self, flag: Value) -> Value:
        """The negation of a bool of the turn that is traced, made once, at its end."""
        known = self._negations.get(flag)
        if known is None:
            known = self.in_turn(lambda: self.mode.builder.apply(REGISTRY["logical_not"], flag)[0])
            self._negations[flag] = known
        return known

    def end_of(self, name: str, end: Any) -> list[Any]:
        """The parts of a name at the end of a turn, as they are carried if it is."""
        carried = self.names.get(name)
        return parts_of(end)[0] if carried is None or not carried.options else self._end_of(carried, end)[0]

    def _end_of(self, carried: Carried, end: Any) -> tuple[list[Any], TreeDef | None]:
        """The value at the end of a turn, in parts like those that are carried."""
        aligned = carried_options.at_end(self, carried, end)
        if aligned is not None:
            return aligned, carried.tree
        if carried.tree is not None and carried.tree.kind is Maybe:
            end = as_maybe(carried.name, end)
        if carried.tree is not None and any(carried_kinds.boxes(carried.tree)):
            parts = carried_kinds.parts_as(end, carried.tree, self._negated)
            if parts is not None:
                return parts, carried.tree
        leaves, tree = parts_of(end)
        if carried.wholes:
            leaves = [make(x._storage, ()) if k in carried.wholes else x for k, x in enumerate(leaves)]
        return leaves, tree

    def _has_turn(self) -> bool:
        """Whether there surely is a turn: proven, or guarded if argument sizes decide it."""
        return False

    def _runs(self) -> bool:
        """Whether the operator surely has a turn, besides one that is traced in front of it."""
        return self._has_turn()

    def _see_wholes(self, carried: Carried, end: Any) -> None:
        """Views whose arrays are carried in their place are those of this attempt, if they are views at all."""
        leaves = parts_of(end)[0]
        for k, view in list(carried.wholes.items()):
            x = leaves[k] if k < len(leaves) else None
            if type(x) is Tensor and self._is_strided(x):
                carried.wholes[k] = x
            elif type(x) is not Tensor or x._steps != view._steps:
                del carried.wholes[k]

    def _compare_carried(self, carried: Carried, end: Any) -> bool:
        if type(end) is Poison and not end.unbound:
            end.fail()
        if is_missing(end):
            return True
        name = carried.name
        keeps = self._keeps(name, end)
        self._see_wholes(carried, end)
        opens = bool(carried.options) or carried_options.is_open(self, name, self.before.get(name), end)
        if opens and not carried_options.fits(self, carried, end):
            return False
        leaves, tree = self._end_of(carried, end)
        if not carried.read and not carried.options and carried_kinds.is_other(self, carried, leaves, tree):
            del self.names[name]  # begin with what a turn leaves
            self._compare_new(name, end)
            return False
        told = None if tree == carried.tree else carried_kinds.first_new(carried.tree, tree)
        if told is not None:
            return carried_kinds.carry(self, carried, told[0], end, *told[1])
        if tree != carried.tree:
            if is_missing(self.before.get(name)):  # what else an attempt has found out may have changed it
                del self.names[name]
                return False
            raise Changed(carried.name, self.before.get(carried.name), end)
        fits, known = True, dict(carried_kinds.boxes(tree))
        if any(map(is_spoiled, leaves)):
            if not self._can_peel():
                raise self._stale(name)
            raise Changed(name, self.before.get(name), None)
        for k, x in enumerate(leaves):
            t, have = carried.types[k], carried_type(x)
            if x is None and carried.options:
                continue
            if t is None:
                if (name, k) in self.links or (k in carried.origins and carried.origins[k].inside):
                    continue
                if carried.moves and self._is_left(x):
                    carried.fixed[k] = x
                elif k in carried.origins and same_arrays.is_same_form(self, carried.origins[k], x):
                    pass
                elif k in carried.origins or not _unchanged(carried.fixed[k], x):
                    joined = join(self.mode, carried.fixed[k].type, x.type) if self._are_arrays(carried, k, x) else None
                    if joined is None:
                        raise Changed(carried.name, carried.fixed[k], x)
                    carried.types[k], carried.varies = dense(joined), True
                    carried.origins.pop(k, None)
                    same_arrays.fits_origins(self, carried, k, x)
                    fits = False
            elif dense(have) != t and carried.read and self._is_unread(name) and not keeps and self._runs():
                del self.names[name]  # what it was before is of no account: begin with what a turn leaves
                return False
            elif (
                have != t
                and carried.read
                and self._is_unread(name)
                and not keeps
                and tree is None
                and carried_kinds.as_output(self, self.before.get(name), None, [have], [None]) is not None
            ):
                self._output(name, self.before.get(name), None, [have], read=False)
                return False
            elif have != t:
                joined = None if have is None else join(self.mode, t, have)
                value = x._storage.value if type(x) is Tensor else x
                if k in known and have is not None:
                    if carried_kinds.is_kept(self, x, t):
                        continue
                    if carried_kinds.widen(self, carried, k, known[k]):
                        return False
                if joined is None or not _convertible(t, have, carried.inits[k]):
                    if not self._is_overwritten(carried, k, value):
                        raise Changed(carried.name, t, x)
                    carried.read, carried.inits[k], carried.types[k] = False, None, dense(have)
                    fits = False
                    continue
                joined = dense(joined)
                lies = t.kind == "array" and have is not None and not same_layout(t, have) and have.layout.is_dense
                if lies and carried.read and carried.tree is None and self._may_peel():
                    raise Changed(carried.name, t, x)  # from the second turn on it may lie in memory as here
                narrower = joined == t and have is not None and have.is_python and k not in known
                if narrower:  # a float or NumPy's number before the loop, an int from the first turn on
                    if self._may_peel() or not carried.read or have is None:
                        raise Changed(carried.name, t, x)
                    return carried_kinds.carry(self, carried, k, x, have)
                if joined != t:
                    carried.types[k] = joined
                    fits = False
            if t is not None and k not in carried.wholes:
                fits = same_arrays.fits_origins(self, carried, k, x) and fits
        return same_arrays.fits_protection(self, carried, leaves, end) and fits

    def _is_overwritten(self, carried: Carried, k: int, end: Any) -> bool:
        """Whether no turn looked at what a scalar was at its start, though there are paths on which it could."""
        argument = carried.arguments[k]
        if carried.tree is not None or argument is None or argument.type.kind == "array" or argument.uses:
            return False
        if argument in self.mode.asked or argument in self.mode.handed:
            return False
        handed_on = any(type(x) is Tensor and x._storage.value is argument for x in self._left_in_turn())
        return not handed_on and end is not argument and carried.name not in self.left and self._runs()

    def _left_in_turn(self) -> Iterator[Any]:
        """The parts of what the names are bound to at the end of the turn that is compared."""
        for name in dict.fromkeys((*self.info.head, *self.info.after)):
            yield from parts_of(self.end_scope.get(name))[0]

    @staticmethod
    def _are_arrays(carried: Carried, k: int, x: Any) -> bool:
        init = carried.inits[k]
        return is_array(carried.fixed[k]) and is_array(x) and (init is None or is_array(init))

    def ask_first_turn(self) -> None:
        """What a turn begins with in another type than it has before the loop was refused.

        Raises:
            NeedsFirstTurn: the first turn can be traced in front of the loop.
        """
        name = carried_kinds.converted(self) if self._may_peel() else ""
        if name:
            raise NeedsFirstTurn(self, name)

    def _restart(self, error: errors.TraceError) -> Restart | None:
        """What traces the turns one by one, if there are few and the arguments say how many; `error` if that fails."""
        return None

    def _open_options(self, change: Changed) -> bool:
        """Carry a name as one of the types that it has before the loop and behind a turn; whether that is new."""
        name = change.name
        if name in self.optional or name in self.cells or (is_returned(name) and self.before is None):
            return False
        if self.before is not None:  # else turns are traced in front of the loop: its start decides (`is_open`)
            before = self.before.get(name)
            if is_missing(before) or not is_option(before):
                return False
        self.optional.add(name)
        self.attempts = 0
        return True

    def _tells(self) -> bool:
        """Carry names that have other types without a turn as of several, as no call can turn back; any there are.

        Raises:
            LeftToPython: one cannot be.
        """
        if carried_kinds.tell(self):
            return True
        name = self._needs_turn(kinds=True)
        carried, before = self.names.get(name), self.before.get(name)
        if carried is None or carried.read or is_missing(before):
            return False
        change = Changed(name, before, self.end_scope.get(name))
        if not self._open_options(change):
            self._fail_type(change)
        return True

    def _fail_type(self, change: Changed) -> NoReturn:
        name = change.name
        before = str(change.before) if isinstance(change.before, TensorType) else describe(change.before)
        raise errors.LeftToPython(
            errors.describe(
                f"{_shown(name)} changes its type in a loop: {before} at the start of a turn, "
                f"{describe(change.after)} at its end",
                self.place,
                remedy=f"give {_shown(name)} its final type before the loop, e.g. 0.0 for 0, "
                "or an array of the right shape.",
            )
        )

    # --- the operator

    def _inits(self) -> list[Value]:
        """The values from before the loop, converted; emitted at the builder's place."""
        found: list[Value] = []
        for carried in self.names.values():
            known = dict(carried_kinds.boxes(carried.tree))
            for k, (init, t) in enumerate(zip(carried.inits, carried.types, strict=True)):
                if t is not None:
                    init = self._unspoiled(init)
                    if k in known and init is not None:
                        is_exact(self.mode, lift(self.mode, init), type_of(init), t)  # under a check
                    found.append(
                        placeholder(self.mode, t)
                        if init is None or self._is_of_other_size(init, t)
                        else convert(self.mode, lift(self.mode, init), t)
                    )
            for k, origins in carried.origins.items():
                found += origins.codes(self.mode, carried.inits[k], lambda s: True)
        return found + carried_objects.inits(self) + [s.value for s in self.storages]

    def _is_of_other_size(self, init: Any, t: TensorType) -> bool:
        """Whether an array cannot be what is carried: nothing reads it (an inner loop binds the name anew first)."""
        if t.kind != "array" or not is_array(init):
            return False
        pairs = zip(init.type.shape, t.shape, strict=True)
        return any(self.mode.builder.prove("==", d, e) is False for d, e in pairs)

    def _unspoiled(self, x: Any) -> Any:
        """An array from before the loop that a turn makes unusable, as it was."""
        if not is_spoiled(x):
            return x
        mode, value = next((m, v) for s, m, v in self.mode.spoiled if s is x._storage and v is not None)
        made = make(Storage(mode, value), x._steps)
        made._dim = x._dim
        return made

    def _ends(self, scope: Scope, changed: dict[Storage, Any]) -> list[Value]:
        """The values at the end of a turn, converted; emitted at the builder's place."""
        found: list[Value] = []
        for carried in self.names.values():
            end = scope.get(carried.name)
            leaves = [None] * len(carried.types) if is_missing(end) or self.failure else self._end_of(carried, end)[0]
            known = dict(carried_kinds.boxes(carried.tree))
            for k, (x, t, argument) in enumerate(zip(leaves, carried.types, carried.arguments, strict=True)):
                if t is not None and argument is not None:
                    with at_versions(changed):
                        value = argument if x is None else lift(self.mode, x)
                        if k in known and value.type != t:
                            is_exact(self.mode, value, value.type, t)  # under a check
                        found.append(convert(self.mode, value, t))
            for k, origins in carried.origins.items():
                x = leaves[k]
                is_known = self._is_outside if origins.inside is None else lambda _: True
                codes = None if x is None else origins.codes(self.mode, x, is_known)
                found += origins.arguments if codes is None else codes
        return found + carried_objects.ends(self, scope) + [changed[s] for s in self.storages]

    def _deliver(self, results: Sequence[Value], scope: Scope) -> None:
        """Bind names and storages to the results of the operator."""
        if self.failure is not None:
            self._deliver_before(results)
            return
        at = 0
        made: dict[str, list[Any]] = {}
        watched: list[tuple[Storage, list[Storage], bool]] = []
        for carried in self.names.values():
            late = is_returned(carried.name)
            values: list[Value | None] = []
            for t in carried.types:
                values.append(None if t is None else results[at])
                at += t is not None
            for v in values:
                if v is not None and not v.name and not carried.name.startswith("_jg_"):
                    v.name = carried.name
            if carried.moves:
                last = self._last_turn()
                carried.fixed = [moved(x, last) if type(x) is Tensor else x for x in carried.fixed]
            leaves = self._leaves(carried, values)
            for k, view in carried.wholes.items():
                leaves[k] = remade(view, leaves[k]._storage)
            for k, init in enumerate(carried.inits):
                if values[k] is not None and is_array(init) and self._may_skip():
                    watched.append((leaves[k]._storage, [init._storage], late))
            ends = self._end_of(carried, scope.get(carried.name))[0]
            for k, origins in carried.origins.items():
                codes = results[at : at + origins.width]
                at += origins.width
                form = origins.find(self.mode, ends[k]) if k < len(ends) and self._is_outer(ends[k]) else None
                if origins.alone or (form is not None and self._runs()):
                    leaves[k] = origins.view(self.mode, 0 if form is None else form[0], codes)
                    continue
                watched.append((leaves[k]._storage, origins.storages, late))
                origins.choose(self.mode, leaves[k], codes)
            made[carried.name] = leaves
        kept = {name for name in made if self._is_kept(self.names[name], scope.get(name))}
        objects = results[at : at + 2 * len(self.objects)]
        at += len(objects)
        for storage in self.storages:
            if storage.value.name and not results[at].name:
                results[at].name = storage.value.name
            set_version(storage, results[at])
            at += 1
        for storage, sources, late in watched:
            self.mode.watch(storage, sources, late=late)
        for name, leaves in made.items():
            same_arrays.watch_ends(self, leaves, self.end_of(name, scope.get(name)), late=is_returned(name))
            if name in kept:
                made[name] = [self.before.get(name)]
        for (name, k), (other, j) in self.links.items():
            made[name][k] = same_arrays.linked_result(self, (name, k), (other, j), made[other][j])
        for name, carried in self.names.items():
            for k, origins in carried.origins.items():
                if origins.inside is not None:
                    other, j = origins.inside
                    made[name][k] = remade(made[name][k], made[other][j]._storage)
        carried_kinds.leave_untold(self, made)
        same_arrays.share(self, made, scope)
        bound = {name: self._built(self.names[name], leaves) for name, leaves in made.items()}
        same_arrays.watch_twins(self, bound, scope)
        views: dict[int, Tensor] = {}  # names of one array stay names of one
        for name, end in self.left.items():
            view = views.setdefault(id(end), moved(end, self._last_turn()))
            known = name.startswith("_jg_") or self._has_turn()
            bound[name] = view if known else Maybe(name, view, self._taken(results))
        for name in self.info.after:
            if name not in bound:
                bound[name] = self._left_behind(name, scope.get(name))
        carried_objects.deliver(self, bound, objects)
        self.results = bound
        self._bind_cells()

    def _deliver_before(self, results: Sequence[Value]) -> None:
        """A turn raises: behind the loop there was none, and each name stands for what it stood for before."""
        for storage, value in zip(self.storages, results[len(results) - len(self.storages) :], strict=True):
            set_version(storage, value)
        self.results = {n: self.before.get(n) for n in dict.fromkeys((*self.names, *self.info.after))}
        self._bind_cells()

    def _is_kept(self, carried: Carried, end: Any) -> bool:
        """Whether a turn leaves a name bound to the array that it found, unwritten."""
        head = self.heads.get(carried.name)
        known = head is not None and is_array(head) and is_array(self.before.get(carried.name))
        if carried.tree is not None or carried.types[0] is None or head is None or not known:
            return False
        return same_place(end, head) and head._storage.value is carried.arguments[0]

    def _written_heads(self) -> Iterator[tuple[str, Tensor]]:
        """The arrays that names, or parts of values, stood for before the loop, if a turn writes to what it found.

        Yields:
            the name, and the array from before.
        """
        for name, carried in self.names.items():
            heads = parts_of(self.heads.get(name))[0]
            if len(heads) == len(carried.inits):
                for head, init, t, argument in zip(heads, carried.inits, carried.types, carried.arguments, strict=True):
                    known = type(head) is Tensor and type(init) is Tensor and t is not None and t.kind == "array"
                    through = known and head._storage in self.mode.written_through
                    if known and (through or (not is_spoiled(head) and head._storage.value is not argument)):
                        yield name, init

    def _part_written(self) -> None:
        """A name bound to another array in each turn, and written through, begins as one of the caller's.

        Raises:
            Changed: the first turn can be traced in front of the loop, where it writes to that array itself.
        """
        for name, init in self._written_heads():
            if init._storage.origin is not None and self._may_peel():
                raise Changed(name, init, self.end_scope.get(name))

    def _spoil_written(self) -> None:
        """A name bound to another array in each turn, and written through: the array from before is left behind.

        For a loop around it is written to.

        Raises:
            TraceError: it is an argument, or comes from outside: the caller would miss the writes.
        """
        written = list(self._written_heads())
        assert self.mark is not None
        self.mode.forget_copies(self.mark.watched)
        for name, init in written:
            storage = init._storage
            self.mode.written_through.add(storage)
            self.mode.touched(storage)
            if storage.origin is not None:
                self.mode.leave(
                    f"{name} is an array of the caller's, is written to, and stands for another array in the next turn",
                    f"work on copies ({name} = {name}.copy()) and write the result back after the loop.",
                )
            text = f"an array that {name} stood for before a loop that wrote to it is used"
            remedy = "use the variables that the loop leaves, or a copy made before it."
            spoil(self.mode, storage, None, error=self._unknown_behind(text, remedy).error)

    @staticmethod
    def _is_whole(x: Any) -> bool:
        """A traced array that is all of its storage."""
        return type(x) is Tensor and x.is_traced and x.type.kind == "array" and not x._steps

    def _is_bound_anew(self, name: str, carried: Carried) -> bool:
        """A name that stands for another array in each turn, and stood for a whole one before the loop."""
        known = carried.tree is None and carried.types[0] is not None
        return known and self._is_whole(carried.inits[0]) and self._is_whole(self.heads.get(name))

    def _left_behind(self, name: str, end: Any) -> Any:
        """The value of a name that is not carried: as it was, or static."""
        if name in self.sized_inside:
            text = f"the size of {_shown(name)} is known only within a turn of the loop, and it is used after it"
            return self._unknown_behind(text, "use it in the loop, or give it a size that does not depend on data.")
        before = self.before.get(name)
        static = end is None or isinstance(end, str | bytes | type) or callable(end)
        if is_missing(end) or type(end) is Maybe or static or _unchanged(before, end) or is_value(end):
            return end
        if isinstance(end, np.ndarray) and not self.mode.lifts:  # made of numbers that Python knows
            return Poison(partial(Restart, lifts=True))
        text = f"{_shown(name)} is a {type(end).__name__} made in a loop, and used after it"
        return self._unknown_behind(text, "keep its arrays and numbers in variables of their own.")

    def _unknown_behind(self, text: str, remedy: str) -> Poison:
        """Stands for what the last turn leaves, and no operator can: its use begins the trace anew, or fails."""
        error = errors.LeftToPython(errors.describe(text, self.place or self.mode.locate(), remedy=remedy))
        restart = self._restart(error)

        def fail() -> errors.TraceError:
            if restart is not None:
                raise restart
            return error

        return Poison(fail)

    def _may_skip(self) -> bool:
        """Whether the loop may have no turn."""
        return True

    def _skips(self) -> bool:
        """Whether it stays open until the run if the loop has a turn: no call can turn back."""
        return self._may_skip() and not self._runs() and not self.mode.can_rerun()

    def _swapped(self, scope: Scope) -> set[str]:
        """Names that a turn ends with one another's arrays, where that is settled by taking two turns at a time."""
        return set()

    def _needs_turn(self, *, kinds: bool = False) -> str:
        """A name whose type or value behind the loop holds only after a turn; "" if there is none.

        Args:
            kinds: only those that have another type without a turn.
        """
        for name, carried in self.names.items():
            kind = None if carried.tree is None else carried.tree.kind
            if name not in self.info.after or (name.startswith("_jg_") and not is_returned(name)):
                continue
            open_ = kind is Maybe or is_returned(name)
            if open_ and is_missing(self.before.get(name)):  # nobody looks at it without a turn
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

    def _add_storages(self, changed: Iterable[Storage]) -> bool:
        """Carry the storages that an attempt wrote; True if some are new."""
        new = [s for s in changed if s not in self.storages]
        self.storages += new
        return bool(new)

    def _remember(self) -> None:
        known = {n: c for n, c in self.names.items() if n not in self.whole_names}
        names = [(n, c.tree, tuple(c.types), c.read, dict(c.wholes)) for n, c in known.items()]
        self.regions.decided[self._entry_key] = names, frozenset(self.unlinked), frozenset(self.links)

    _entry_key: Any = None

    def caught(self, error: Exception) -> bool:
        """Whether an exception that leaves the body is one that the compiled code shall raise in its turn."""
        opened = self._opened()
        if opened is None:
            return False
        if isinstance(error, NeedsFirstTurn) and error.region is self:
            self._give_up(error)
            return True
        converted = carried_kinds.converted(self) if is_the_users(error) and self._can_peel() else ""
        if converted:  # the first turn begins with another type, and there is perhaps no other
            self._give_up(NeedsFirstTurn(self, converted))
            return True
        if not is_the_users(error):
            self.regions.close(opened, failed=True)
            self.regions.failed = error
            return False
        self.failure, self.left = error, {}
        message, shown, recipe = message_of(error, self.mode)
        changes = opened.snapshot.is_changed() and not self.cells
        if recipe is None or self.mode.is_handled(type(error)) or changes:
            why = unmade(type(error), is_shown=recipe is None, changes=changes)
            self.mode.leave_to_python(self.mode.builder.constant(False), why)
            return True
        graph = self.mode.builder.graph
        graph.sites.append(Site(type(error).__name__, message, frame_of(error)[1] or self.mode.locate(), recipe))
        self.mode.emit_effect("raise", [lift(self.mode, x) for x in shown], site=len(graph.sites) - 1)
        return True

    def _opened(self) -> Opened | None:
        return None

    def _yield(self, values: Sequence[Value]) -> None:
        self.mode.builder.emit(REGISTRY["yield"], values, ())
