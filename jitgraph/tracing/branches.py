"""A branch on a traced test: both sides are traced, one after the other, and a `cond` merges what they leave behind.

A side that raises becomes a check in front of the other side, which then needs no region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitgraph import errors
from jitgraph.ir.graph import Block, Site, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.records import dataclass, field
from jitgraph.source import SourceLoc
from jitgraph.tensor import Storage, lift, set_version
from jitgraph.tracing.capture_mode import frame_of
from jitgraph.tracing.cells import Cell, Reshaped
from jitgraph.tracing.implied import implied
from jitgraph.tracing.merging import Merge
from jitgraph.tracing.options import narrowed
from jitgraph.tracing.poison import OneOf, Poison
from jitgraph.tracing.regions import (
    ENDLESS,
    Endless,
    Opened,
    Regions,
    defined_in,
    discard,
    is_cheap,
    is_the_users,
    message_of,
    splice,
    unmade,
)
from jitgraph.tracing.restart import Restart
from jitgraph.tracing.rewrite import BranchInfo
from jitgraph.tracing.scopes import Overlay, Scope, caller_scope

#: Makes a merged value of the results of a `cond`.
_Plan = Callable[[Any], Any]


@dataclass(slots=True)
class Raised:
    """An exception that leaves a side: its class, message (a format string) with the values it shows, and place."""

    kind: type[Exception]
    message: str
    values: list[Value]
    place: SourceLoc | None
    recipe: Any


@dataclass(slots=True)
class Side:
    """One traced side."""

    block: Block
    scope: Any = None
    storages: dict[Storage, Any] = field(default_factory=dict)
    #: Arrays from before the branch that it made unusable, with the modes that say so: they are so behind the branch.
    stale: dict[Storage, Any] = field(default_factory=dict)
    #: Objects of the user's classes that it made, by identity.
    born: dict[int, Any] = field(default_factory=dict)
    raised: Raised | None = None
    #: Attributes and items that it changed, with what it left there.
    cells: list[tuple[Cell, Any]] = field(default_factory=list)
    is_touched: bool = False


class Branch:
    """An `if` on a traced test."""

    traced = True

    def __init__(self, regions: Regions, predicate: Value, info: BranchInfo, key: Any = None) -> None:
        self.regions = regions
        self.predicate = predicate
        self.info = info
        self.sides: list[Side] = []
        self.taken = True
        self.before: Any = None
        self.opened: Opened | None = None
        self.inline = False
        self.order = regions.mode.next_order()
        self.place = regions.mode.locate()
        self.results: dict[str, Any] = {}
        #: The branch's name, if one side may be assumed in its place: a call can turn back before it.
        self.settle = key if regions.mode.can_turn_back() else None

    def enter(self, names: dict[str, Any]) -> None:
        self.begin(caller_scope(names))

    def begin(self, scope: Any) -> None:
        self.before = scope

    def turn(self) -> bool:
        """Open the next side; after both, make the `cond`."""
        count = len(self.sides)
        if count == 2:
            if not self.inline:
                try:
                    self._finish()
                except errors.TraceError:
                    if self.settle is not None:
                        raise Restart(settle=self.settle) from None
                    raise
            return False
        self.taken = count == 0
        if count == 1 and self.sides[0].raised is not None:
            # the other side goes on after a check, with no region of its own
            self._check(self.sides[0], holds=False)
            self.inline = True
            self.sides.append(Side(self.regions.builder.block))
            return True
        side = Side(Block())
        self.sides.append(side)
        self.opened = self.regions.open(side.block, self.before)
        self.regions.mode.tested.update(implied(self.predicate, self.taken))
        return True

    def caught(self, error: Exception) -> bool:
        """Whether an exception that leaves a side is one that the compiled code shall raise."""
        if self.inline:
            return False
        opened = self.opened
        assert opened is not None
        side = self.sides[-1]
        if not is_the_users(error):
            if self.settle is not None and isinstance(error, errors.TraceError):
                if isinstance(error, Endless):
                    ENDLESS.add(self.settle[0])
                raise Restart(settle=self.settle) from None
            self.regions.close(opened, failed=True)
            self.regions.failed = error
            return False
        self.regions.ask_first_turns(error)
        mode = self.regions.mode
        message, shown, recipe = message_of(error, mode)
        side.raised = Raised(type(error), message, [lift(mode, x) for x in shown], frame_of(error)[1], recipe)
        if any(s.origin is not None for s, _ in mode.journal[opened.journal :]):
            if self.settle is not None:
                raise Restart(settle=self.settle)
            self.regions.failed = None
            mode.leave(
                "a branch writes to an array of the caller's and then raises an error",
                "raise before the write, or write before the test.",
            )
        return True

    def leave(self, names: dict[str, Any]) -> None:
        self.end(caller_scope(names))

    def end(self, scope: Any) -> None:
        """A side is traced: remember what it left behind."""
        try:
            self._end(scope)
        except errors.TraceError:
            if self.settle is not None:
                raise Restart(settle=self.settle) from None
            raise

    def _end(self, scope: Any) -> None:
        side = self.sides[-1]
        side.scope = scope
        if self.inline:  # the frame still has what the side that raises bound
            kept = self._kept(scope)
            self.results = {n: (self.before if n in kept else scope).get(n) for n in self.info.names}
            return
        assert self.opened is not None
        if side.raised is None:
            self.regions.check_variables(self.opened, scope, self.info.assigned)
            side.born = self.opened.born
            several = {n: v for n in self.info.names if type(v := scope.get(n)) is OneOf}
            known = {n: x for n, v in several.items() if (x := narrowed(self.regions.mode, v)) is not v}
            if known:
                side.scope = Overlay(known, scope)
        try:
            side.storages = self.regions.close(self.opened, failed=side.raised is not None, cells=True)
        except Reshaped as answer:
            self.regions.fail_change(str(answer))
        side.stale = self.regions.revive(self.opened, side.storages)
        side.cells, side.is_touched = self.opened.cells, self.opened.is_touched
        if len(self.sides) == 2 and side.raised is not None:
            first = self.sides[0]
            if first.raised is not None:
                self._both_raise()
                return
            self._check(side, holds=True)
            splice(first.block, self.regions.builder.block)
            for storage, value in first.storages.items():
                if storage not in first.stale:
                    set_version(storage, value)
            self._spoil(first.stale)
            for cell, left in first.cells:
                cell.set(left)
            self.results = {n: first.scope.get(n) for n in self.info.names}
            self.inline = True

    def get(self, name: str) -> Any:
        """The value of a name: from before while the second side is traced, merged afterwards."""
        if name in self.results:
            return self.results[name]
        return self.before.get(name)

    def _kept(self, scope: Any) -> set[str]:
        """Names that have their value from before behind the second side, whatever the frame says."""
        kept = {*self.info.kept}
        if kept and type(scope) is Scope:
            assert self.opened is not None
            shared = self.opened.snapshot.variables  # functions may bind these; the first side's were put back
            kept -= shared.intersection((*scope.code.co_cellvars, *scope.code.co_freevars))
        return kept

    def _check(self, side: Side, *, holds: bool) -> None:
        """Raise the error of `side` unless the predicate is `holds`."""
        assert side.raised is not None
        mode = self.regions.mode
        raised = side.raised
        condition = self.predicate
        plain = not any(op.defn.has(Trait.ORDERED) or op.regions for op in side.block.ops())
        plain = plain and not any(defined_in(v, side.block) for v in raised.values)
        noticed = self.settle is not None and mode.is_noticed(raised.kind)
        # Python objects that the side changed before are changed by Python's own run
        if raised.recipe is None or mode.is_handled(raised.kind) or noticed or side.is_touched:
            if self.settle is not None and raised.recipe is not None:
                raise Restart(settle=self.settle)
            discard(side.block)
            if not holds:
                condition = mode.builder.apply(REGISTRY["logical_not"], condition)[0]
            mode.leave_to_python(
                condition, unmade(raised.kind, is_shown=raised.recipe is None, changes=side.is_touched)
            )
            return
        site = Site(raised.kind.__name__, raised.message, raised.place or self.place, raised.recipe)
        if plain:
            discard(side.block)
            if not holds:
                condition = mode.builder.apply(REGISTRY["logical_not"], condition)[0]
            mode.builder.graph.sites.append(site)
            mode.builder.emit(
                REGISTRY["check"],
                [condition, *raised.values],
                (),
                {"site": len(mode.builder.graph.sites) - 1, "order": self.order},
            )
            return
        mode.builder.graph.sites.append(site)
        block = mode.builder.block
        mode.builder.at_end(side.block)
        mode.emit_effect("raise", raised.values, site=len(mode.builder.graph.sites) - 1)
        mode.builder.emit(REGISTRY["yield"], [], ())
        other = Block()
        mode.builder.at_end(other).emit(REGISTRY["yield"], [], ())
        mode.builder.at_end(block)
        blocks = (other, side.block) if holds else (side.block, other)
        mode.builder.emit(REGISTRY["cond"], [self.predicate], (), {}, blocks)

    def _both_raise(self) -> None:
        """Whatever the test, an error follows."""
        mode = self.regions.mode
        self._check(self.sides[0], holds=False)
        raised = self.sides[1].raised
        assert raised is not None
        discard(self.sides[1].block)
        mode.builder.graph.sites.append(
            Site(raised.kind.__name__, raised.message, raised.place or self.place, raised.recipe)
        )
        never = mode.builder.constant(False)
        mode.emit_effect("check", [never], site=len(mode.builder.graph.sites) - 1)
        self.results = {n: self.before.get(n) for n in self.info.names}
        self.inline = True

    def _finish(self) -> None:
        mode, builder = self.regions.mode, self.regions.builder
        a, b = self.sides
        line = f"line {self.place.line}" if self.place is not None else "the branch"

        def is_outer(storage: Storage) -> bool:
            return not (defined_in(storage.value, a.block) or defined_in(storage.value, b.block))

        merge = Merge(
            mode,
            (a.block, b.block),
            is_outer,
            (a.storages, b.storages),
            (a.stale, b.stale),
            (a.born, b.born),
            (a.cells, b.cells),
            self.settle,
            self.predicate,
            self.before,
        )
        plans: dict[str, _Plan] = {}
        kept = self._kept(b.scope)
        for name in self.info.names:
            value_b = self.before.get(name) if name in kept else b.scope.get(name)
            plans[name] = merge.merge(name, a.scope.get(name), value_b, line)
        cells = {cell.name: cell for side in self.sides for cell, _ in side.cells}
        left = [{cell.name: value for cell, value in side.cells} for side in self.sides]
        fills: list[tuple[Cell, _Plan]] = []
        for identity, cell in cells.items():
            ends = [values.get(identity, cell.get()) for values in left]
            fills.append((cell, merge.merge(cell.text, ends[0], ends[1], line)))
        stale = {**b.stale, **a.stale}
        written = [s for s in dict.fromkeys([*a.storages, *b.storages]) if s not in stale]
        at: list[int] = []
        for storage in written:
            first = a.storages.get(storage, storage.value)
            second = b.storages.get(storage, storage.value)
            at.append(merge.pair(first, second, first.type))
        if not merge.types and not a.block.last and not b.block.last:
            self._fill(plans, fills, ())
            self._spoil(stale)
            return
        if not written and self._flatten(merge):
            self._fill(plans, fills, self._flat)
            self._spoil(stale)
            return
        for block, values in ((a.block, merge.yields[0]), (b.block, merge.yields[1])):
            builder.at_end(block).emit(REGISTRY["yield"], values, ())
        builder.at_end(mode.blocks[-1])
        results = builder.emit(REGISTRY["cond"], [self.predicate], merge.types, {}, (a.block, b.block)).results
        for storage, k in zip(written, at, strict=True):
            if storage.value.name and not results[k].name:
                results[k].name = storage.value.name
            set_version(storage, results[k])
        self._fill(plans, fills, results)
        self._spoil(stale)

    def _spoil(self, stale: dict[Storage, Any]) -> None:
        """Arrays that a side made unusable are so from here on.

        Raises:
            TraceError: one is the caller's, who would miss what the other side writes to it.
        """
        for storage, mode in stale.items():
            self.regions.mode.spoiled.append((storage, storage.mode, storage.value))
            storage.mode, storage.value = mode, None
            if storage.origin is not None and any(storage in side.storages for side in self.sides):
                mode.no_data()

    def _fill(self, plans: dict[str, _Plan], fills: list[tuple[Cell, _Plan]], results: Sequence[Value]) -> None:
        """Bind the merged values."""
        self.results = {n: plan(results) for n, plan in plans.items()}
        for cell, plan in fills:
            value = plan(results)
            if type(value) is Poison:
                if self.settle is not None:
                    raise Restart(settle=self.settle)
                value.fail()
            cell.set(value)

    _flat: list[Value]

    def _flatten(self, merge: Merge) -> bool:
        """Merge scalars by `where`, without a region, if both sides are cheap and pure."""
        a, b = self.sides
        if any(t.kind in ("array", "maybe_np_float") for t in merge.types) or not (
            is_cheap(a.block) and is_cheap(b.block)
        ):
            return False
        builder = self.regions.builder
        splice(a.block, builder.block)
        splice(b.block, builder.block)
        where = REGISTRY["where"]
        self._flat = []
        for x, y, t in zip(*merge.yields, merge.types, strict=True):
            value = builder.apply(where, self.predicate, x, y)[0]
            self._flat.append(value if value.type == t else builder.apply(REGISTRY["as_kind"], value, kind=t.kind)[0])
        return True
