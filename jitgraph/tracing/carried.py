"""What a loop carries from turn to turn: names leaf by leaf, storages; and what the rooms around ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from jitgraph import errors
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Block, Site, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.pytree import TreeDef, unflatten
from jitgraph.tensor import Storage, Tensor, lift, make, wrap
from jitgraph.tracing import carried_kinds, carried_options, same_arrays, turn_ends, turn_starts
from jitgraph.tracing.capture_mode import frame_of
from jitgraph.tracing.carried_names import Carried, is_array, is_missing, parts_of, shown
from jitgraph.tracing.cells import Cell
from jitgraph.tracing.exits import RETURNED
from jitgraph.tracing.identity import note
from jitgraph.tracing.joining import UNSET, inner_symbols, sizes_of
from jitgraph.tracing.objects import Turn
from jitgraph.tracing.origins import look
from jitgraph.tracing.poison import Maybe, Poison, as_maybe, unbound_text
from jitgraph.tracing.regions import Mark, Opened, Regions, defined_in, is_the_users, message_of, unmade
from jitgraph.tracing.restart import NeedsFirstTurn, Restart
from jitgraph.tracing.rewrite import LoopInfo
from jitgraph.tracing.scopes import Scope


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
        #: See `turn_starts.key_of`.
        self._entry_key: Any = None
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
                turn_starts.carry(self, name, self.before.get(name))
        return bool(new)

    # --- the start of a turn: see `turn_starts`

    def _begin(self, scope: Scope) -> None:
        turn_starts.begin(self, scope)

    def _stale(self, name: str) -> BaseException:
        """A turn uses a view that its name had before the loop behind a write to the array: a copy is not that view."""
        if self._can_peel() and self._opened() is not None:
            return NeedsFirstTurn(self, name)
        text = f"{shown(name)} may be a view of an array that a loop writes, and is carried as an array of its own"
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

    # --- the end of a turn: see `turn_ends`

    def _compare(self, scope: Scope) -> bool:
        return turn_ends.compare(self, scope)

    def _is_made_inside(self, value: Any) -> bool:
        return any(defined_in(value, block) for block in self._blocks())

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
        if not (is_array(x) and x._steps) or self._is_outer(x):
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

    # --- the operator: see `left_behind`

    def _may_skip(self) -> bool:
        """Whether the loop may have no turn."""
        return True

    def _skips(self) -> bool:
        """Whether it stays open until the run if the loop has a turn: no call can turn back."""
        return self._may_skip() and not self._runs() and not self.mode.can_rerun()

    def _swapped(self, scope: Scope) -> set[str]:
        """Names that a turn ends with one another's arrays, where that is settled by taking two turns at a time."""
        return set()

    def _add_storages(self, changed: Iterable[Storage]) -> bool:
        """Carry the storages that an attempt wrote; True if some are new."""
        new = [s for s in changed if s not in self.storages]
        self.storages += new
        return bool(new)

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
        self.regions.ask_first_turns(error, within=self)
        self.failure, self.left = error, {}
        message, parts, recipe = message_of(error, self.mode)
        changes = opened.snapshot.is_changed() and not self.cells
        if recipe is None or self.mode.is_handled(type(error)) or changes:
            why = unmade(type(error), is_shown=recipe is None, changes=changes)
            self.mode.leave_to_python(self.mode.builder.constant(False), why)
            return True
        graph = self.mode.builder.graph
        graph.sites.append(Site(type(error).__name__, message, frame_of(error)[1] or self.mode.locate(), recipe))
        self.mode.emit_effect("raise", [lift(self.mode, x) for x in parts], site=len(graph.sites) - 1)
        return True

    def _opened(self) -> Opened | None:
        return None

    def _yield(self, values: Sequence[Value]) -> None:
        self.mode.builder.emit(REGISTRY["yield"], values, ())
