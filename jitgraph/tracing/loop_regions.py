"""`for` and `while` of rewritten functions as region operators.

A loop body is traced once an attempt. The first attempt carries what the syntax suggests: names that a turn may read
before it assigns them, and the storages of arrays that the body writes to. An attempt that finds more (another storage
written, a name of another type at the end of a turn) is undone and made anew. A name whose type changes in the first
turn to one that holds the same numbers (int to float, a Python float to np.float64) is converted before the loop; one
that changes otherwise has the first turn traced in front of the loop. Both hold only if there is a turn: a guard, if
argument sizes decide it, else a check that reruns the call in Python. A second change is an error naming the variable.

Names assigned before they are read in a turn are no inputs of it; behind the loop they have the value of the last turn.
A loop with `break` is a `while` over a counter and the flag. When written arrays change places (`u, v = v, u`), a turn
of the operator is a pair of turns, after which each name stands for its own array again; an odd one is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from jitgraph import errors
from jitgraph.ir.dims import DimLike, floordiv, symbol
from jitgraph.ir.graph import Block, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import python_type
from jitgraph.tensor import Storage, dim_tensor, lift, wrap
from jitgraph.tracing import carried_objects, left_behind, turn_ends, turn_starts
from jitgraph.tracing.branches import Branch
from jitgraph.tracing.carried import Region
from jitgraph.tracing.carried_names import Changed, is_missing, is_whole
from jitgraph.tracing.cells import Reshaped
from jitgraph.tracing.iteration import Range, Sequenced, sequenced
from jitgraph.tracing.joining import convert
from jitgraph.tracing.poison import Poison
from jitgraph.tracing.regions import Mark, Opened, Regions
from jitgraph.tracing.restart import NeedsFirstTurn, Restart
from jitgraph.tracing.rewrite import BranchInfo, LoopInfo
from jitgraph.tracing.same_arrays import compare_stale, is_bound_anew, spoil_stale
from jitgraph.tracing.scopes import Overlay, Scope, caller_scope

_ATTEMPTS = 8
#: Turns of a `while` that are traced in front of its region.
_IN_FRONT = 2
#: Most turns that are traced one by one because no region can be made of them: of one loop, and of all in a trace.
MOST_TURNS, _MOST_IN_ALL = 64, 192


class Unrolled:
    """A `for` over something known while tracing: ordinary Python."""

    __slots__ = ("iterable",)
    traced = False

    def __init__(self, iterable: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def caught(self, error: Exception) -> bool:
        return False

    def stop(self, flag: Any) -> bool:
        """Whether the loop has ended by `break`; under a traced flag the remaining turns do nothing."""
        return flag is True


def _same(error: BaseException) -> BaseException:
    return error


class ForRegion(Region):
    """A `for` over a sequence of traced length."""

    def __init__(self, regions: Regions, sequence: Sequenced, info: LoopInfo, key: Any) -> None:
        super().__init__(regions, info)
        self.own_flag = info.break_flag
        self.sequence = sequence
        #: The statement's name, if its turns are to be traced one by one.
        self.key = key
        self.block = Block()
        self.opened: Opened | None = None
        self.peeling = False
        self.with_break = False
        #: Whether a turn traced in front of the loop has left it: False, or a traced bool.
        self.first_flag: Any = False
        self.has_turn = False
        self.finished = False
        self.counter: Value | None = None
        self.flag: Value | None = None
        #: Turns a turn of the operator stands for: two when arrays change places, so that each is itself again.
        self.turns = 1
        self.turn_at = 0
        self.tail: Branch | None = None

    def __iter__(self) -> ForRegion:
        return self

    def __next__(self) -> None:
        if self.finished:
            raise StopIteration
        if self.turn_at or self.tail is not None:
            return
        self.attempts += 1
        if self.attempts > _ATTEMPTS:
            self.mode.leave(
                "the types of what the loop carries do not settle: they change from turn to turn",
                "give each name one type and shape before the loop.",
            )

    def _opened(self) -> Opened | None:
        return self.opened

    def _blocks(self) -> Sequence[Block]:
        return (self.block,)

    def enter(self, names: dict[str, Any]) -> None:
        """Begin an attempt: the block, its arguments, the index."""
        scope = caller_scope(names)
        self._see_cells(scope)
        if self.tail is not None:
            self.tail.turn()
            return
        if self.turn_at:
            return
        if self.before is None:
            self._begin(scope)
            self._entry_key = turn_starts.key_of(self)
        self.mark = self.regions.mark()
        if self.peeling:
            self.heads = {}
            return
        self.has_turn = self.peeled  # a guard of the attempt before was undone with it
        self.block = Block()
        self.opened = self.regions.open(self.block, self.before)
        self.opened.loop = self
        if self.with_break:
            self.counter = self.block.add_arg(python_type("py_int"), self.info.target)
            self.flag = self.block.add_arg(python_type("py_bool"))
        spoil_stale(self)
        turn_starts.arguments(self, self.block, bind=True)
        self.this_turn = carried_objects.begin_turn(self, self.opened)
        self._bind_cells()

    def element(self) -> Any:
        """What the loop variable is bound to."""
        try:
            return self._element()
        except NeedsFirstTurn as answer:  # a turn writes to the array that the loop goes over: the body meets it
            return Poison(partial(_same, answer))

    def _element(self) -> Any:
        start = 1 if self.peeled else 0
        if self.peeling:
            return self.sequence.element(0)
        if self.tail is not None:
            return self.sequence.element(dim_tensor(self.mode, start + self._groups() * 2))
        if self.turns == 2:
            if self.turn_at == 0:
                self.index = self.mode.index_symbol("pair", 0, self._groups() - 1)
            return self.sequence.element(dim_tensor(self.mode, start + symbol(self.index) * 2 + self.turn_at))
        if self.with_break:
            assert self.counter is not None
            dim = self.mode.bind(self.counter, "i", start, self.sequence.length - 1)
            return self.sequence.element(dim_tensor(self.mode, dim))
        lower, upper, _ = self._bounds()
        self.index = self.mode.index_symbol(self.info.target or "i", lower, upper - 1)
        value = dim_tensor(self.mode, symbol(self.index))
        return value if self._counts_itself() else self.sequence.element(value)

    def _counts_itself(self) -> bool:
        """Whether the operator's index is the number that the user's `range` gives."""
        s = self.sequence
        return isinstance(s, Range) and isinstance(s.step, int) and s.step > 0

    def _groups(self) -> DimLike:
        """Number of pairs of turns."""
        return floordiv(self.sequence.length - int(self.peeled), 2)

    def _bounds(self) -> tuple[DimLike, DimLike, DimLike]:
        s = self.sequence
        if self.turns == 2:
            return 0, self._groups(), 1
        if isinstance(s, Range) and self._counts_itself():
            return (s.start + s.step if self.peeled else s.start), s.stop, s.step
        return int(self.peeled), s.length, 1

    def leave(self, names: dict[str, Any]) -> None:
        """End an attempt: another one, or the operator."""
        scope = caller_scope(names)
        try:
            self._see_cells(scope)
            self._leave(scope)
        except errors.TraceError as error:
            self._unroll(error)
            raise

    def _restart(self, error: errors.TraceError) -> Restart | None:
        known = self.key not in self.mode.unrolled and self.regions.is_countable(self.sequence.length)
        return Restart(unroll=(self.key, error)) if known else None

    def _unroll(self, error: errors.TraceError) -> None:
        """Perhaps the turns can be traced one by one: as many as the arguments say.

        Raises:
            Restart: they can, or will be found to be too many.
        """
        restart = self._restart(error)
        if restart is not None:
            raise restart from None

    def _leave(self, scope: Scope) -> None:
        if self.tail is not None:
            self._end_tail(self.tail, scope)
            return
        if self.needs_first:
            name, self.needs_first, self.opened, self.turn_at = self.needs_first, "", None, 0
            assert self.mark is not None
            self.regions.undo(self.mark, self.block)
            self._peel(Changed(name, self.before.get(name), None))
            return
        if self.opened is not None and self.failure is None:
            self.regions.check_variables(self.opened, scope, self.info.assigned)
        if self.turns == 2 and self.turn_at == 0 and self.failure is None:
            self.turn_at = 1
            self.heads = {n: scope.get(n) for n in self.info.head}
            return
        self.turn_at = 0
        if self.peeling:
            self._end_peeled(scope)
            return
        opened, mark, flag = self.opened, self.mark, self.info.break_flag
        assert opened is not None
        assert mark is not None
        self.opened = None
        try:
            changed = self.regions.close(opened, failed=self.failure is not None, cells=True)
        except Reshaped as answer:
            self._reshaped(str(answer), mark)
            return
        if self.failure is None and self._add_cells(opened):  # first: what they hold is carried, not the storages
            self.regions.undo(mark, self.block)
            return
        new = self._add_storages(changed)
        if self.failure is not None and new:  # what a turn writes before it raises is seen by the caller
            self.failure = None
            self.regions.undo(mark, self.block)
            return
        if self.failure is None:
            stops = bool(flag) and not self.with_break and scope.get(flag) is not False
            self.with_break = self.with_break or stops
            usable = compare_stale(self, mark)
            try:
                fits = self._compare(scope) and usable
            except Changed as change:
                self.regions.undo(mark, self.block)
                self._peel(change)
                return
            if new or stops or not fits:
                self.regions.undo(mark, self.block)
                return
            if self.turns == 1 and not self.with_break and self._changes_places(scope):
                self.regions.undo(mark, self.block)
                self.turns = 2
                self._begin(self.before)
                return
            try:
                left_behind.part_written(self)
            except Changed as change:
                self.regions.undo(mark, self.block)
                self._peel(change)
                return
        needed = turn_ends.needs_turn(self)
        if needed and self.peeled and not self._runs():
            what = f"{needed} has another type if there is one turn"
            stopped = self.first_flag if turn_ends.needs_turn(self, kinds=True) else False
            known = self.regions.deoptimise_unless(self.sequence.length - 1, what, stopped=stopped)
            if not known and turn_ends.tells(self):
                self.regions.undo(mark, self.block)
                return
        if (needed or self._place_of() in self.regions.entered) and not self.has_turn:
            at_least = self.regions.at_least_one(self._rest())
            if at_least is False:
                self.regions.undo(mark, self.block)
                self._no_turn()
                return
            self.has_turn = bool(at_least)
            if at_least:
                self.regions.entered.add(self._place_of())
            if at_least is None:
                self.has_turn = self.regions.deoptimise_unless(
                    self._rest(), f"{needed} has another type if the loop has no turn"
                )
                if not self.has_turn and turn_ends.tells(self):
                    self.regions.undo(mark, self.block)
                    return
        self._emit(scope, changed)

    def _place_of(self) -> Any:
        """The statement, from where its function is called."""
        return self._entry_key[0], self.before.code, self.info.line

    def _reshaped(self, what: str, mark: Mark) -> None:
        """A turn changes Python objects in a way that no region can: is it only the first one? Or few, and known?"""
        self.regions.undo(mark, self.block)
        if not self.peeled and "attribute" in what and self.mode.can_rerun():
            self._peel(Changed(what, None, None))
            return
        self.regions.fail_change(what)

    def _end_peeled(self, scope: Scope) -> None:
        """The first turn is traced in front of the loop; it may have left it by `break`."""
        self.peeling = False
        self.peeled = self.has_turn = True
        self.attempts = 0
        flag = scope.get(self.info.break_flag) if self.info.break_flag else False
        rest = self.mode.example(self.sequence.length - 1)
        ends = isinstance(rest, int) and rest < 1 and self.regions.at_least_one(self.sequence.length - 1) is False
        if flag is True or ends:
            self.finished = True
            self.results = {n: scope.get(n) for n in self.info.after}
            if self.info.break_flag:
                self.results[self.info.break_flag] = flag
            return
        if flag is not False:
            self.first_flag, self.with_break = flag, True
        self._begin(scope)
        self._entry_key = turn_starts.key_of(self)

    def _can_peel(self) -> bool:
        return not self.peeled and not self.peeling

    def _changes_places(self, scope: Scope) -> bool:
        """Whether arrays that the body writes to end a turn as one another: `u, v = v, u`."""
        heads: dict[Storage, str] = {}
        written = False
        for name, carried in self.names.items():
            if is_bound_anew(self, name, carried):
                heads[self.heads[name]._storage] = name
                written = written or self.heads[name]._storage.value is not carried.arguments[0]
        swapped = {}
        for name in heads.values():
            end = scope.get(name)
            other = heads.get(end._storage) if is_whole(end) else None
            if other is not None and other != name:
                swapped[name] = other
        self.pinned = {n for n, m in swapped.items() if swapped.get(m) == n}
        return written and bool(self.pinned)

    def _may_peel(self) -> bool:
        known = self._can_peel() and self.regions.at_least_one(self.sequence.length) is not None
        return known or super()._may_peel()

    def _swapped(self, scope: Scope) -> set[str]:
        found = self.turns == 1 and not self.with_break and self._changes_places(scope)
        return self.pinned if found else set()

    def _end_tail(self, tail: Branch, scope: Scope) -> None:
        """The last turn of an odd number is traced."""
        results = Overlay(self.results or {}, self.before)
        tail.end(scope)
        while tail.turn():
            tail.end(results)
        self.results = {n: tail.get(n) for n in self.info.after}
        self.finished = True

    def _has_turn(self) -> bool:
        self.has_turn = self.has_turn or self.regions.at_least_one(self.sequence.length) is True
        return self.has_turn

    def _index_symbols(self) -> set[str]:
        return set() if self.with_break or self.turns == 2 else {self.index}

    def _last_turn(self) -> dict[str, DimLike]:
        lower, upper, step = self._bounds()
        last = upper - 1 if step == 1 else lower + floordiv(upper - 1 - lower, step) * step
        return {self.index: last} if self._index_symbols() else {}

    def _taken(self, results: Sequence[Value]) -> Any:
        return wrap(self.mode, self.mode.compare("ge", self.sequence.length, 1))

    def _runs(self) -> bool:
        if not self.peeled:
            return self._has_turn()
        return self.first_flag is False and self.regions.at_least_one(self.sequence.length - 1) is True

    def _rest(self) -> DimLike:
        return self.sequence.length

    def _peel(self, change: Changed) -> None:
        """Trace the first turn in front of the loop."""
        if self.peeled:
            if turn_ends.open_options(self, change):
                return
            change.fail(self.place)
        at_least = self.regions.at_least_one(self.sequence.length)
        if at_least is False:
            self._no_turn()
            return
        if at_least is None and not self.regions.deoptimise_unless(
            self.sequence.length, f"{change.name} has another type if the loop has no turn", undo=True
        ):
            if turn_ends.open_options(self, change):
                return
            change.fail(self.place)
        if at_least:
            self.regions.entered.add(self._place_of())
        self.peeling = True
        self.turns, self.pinned = 1, set()  # one turn in front, whatever an attempt held for exchanged
        self.results = None

    def _no_turn(self) -> None:
        """The example sizes say that there is no turn, and a guard that this call has none either."""
        self.finished = True
        self.results = {n: self.before.get(n) for n in self.info.after}
        if self.info.break_flag:
            self.results[self.info.break_flag] = False

    def _emit(self, scope: Scope, changed: dict[Storage, Any]) -> None:
        mode, builder = self.mode, self.mode.builder
        outer = builder.block
        builder.at_end(self.block)
        ends = turn_ends.ends(self, scope, changed)
        if self.with_break:
            assert self.counter is not None
            assert self.flag is not None
            following = builder.apply(REGISTRY["add"], self.counter, 1)[0]
            end = scope.get(self.info.break_flag)
            stop = lift(mode, False if is_missing(end) or self.failure else end)
            ends = [following, convert(mode, stop, python_type("py_bool")), *ends]
        self._yield(ends)
        builder.at_end(outer)
        inits = turn_starts.inits(self)
        types = [v.type for v in inits]
        if not self.with_break:
            lower, upper, step = self._bounds()
            attrs = {"index": self.index, "lower": lower, "upper": upper, "step": step}
            results: Sequence[Value] = builder.emit(REGISTRY["for"], inits, types, attrs, (self.block,)).results
        else:
            flag = convert(mode, lift(mode, self.first_flag), python_type("py_bool"))
            inits = [builder.constant(1 if self.peeled else 0), flag, *inits]
            types = [v.type for v in inits]
            test = Block(types)
            builder.at_end(test)
            more = builder.apply(REGISTRY["lt"], test.args[0], mode.dim_value(self.sequence.length))[0]
            go = builder.apply(REGISTRY["logical_not"], test.args[1])[0]
            self._yield([builder.apply(REGISTRY["logical_and"], more, go)[0]])
            builder.at_end(outer)
            results = builder.emit(REGISTRY["while"], inits, types, {}, (test, self.block)).results
        turn_starts.remember(self)
        left_behind.spoil_written(self)
        self.finished = True
        if self.with_break:
            left_behind.deliver(self, results[2:], scope)
            assert self.results is not None
            self.results[self.info.break_flag] = wrap(mode, results[1])
        else:
            left_behind.deliver(self, results, scope)
            if self.turns == 2:
                self._begin_tail()
            if self.info.break_flag:
                assert self.results is not None
                self.results[self.info.break_flag] = False

    def _begin_tail(self) -> None:
        """After pairs of turns there may be one more."""
        mode = self.mode
        left = self.sequence.length - int(self.peeled) - self._groups() * 2
        if left == 0:
            return
        if left == 1:
            predicate = mode.builder.constant(True)
        else:
            predicate = mode.compare("ne", left, 0)
        names = tuple(n for n in dict.fromkeys((*self.info.after, *self.info.head)) if n not in self.cells)
        self.tail = Branch(self.regions, predicate, BranchInfo(names, (), self.info.assigned))
        self.results = dict(
            self.results or {}, **{n: self.results[n] for n in self.names if self.results and n in self.results}
        )
        self.tail.begin(Overlay(self.results, self.before))
        self.finished = False

    def caught(self, error: Exception) -> bool:
        if isinstance(error, errors.TraceError):
            self._unroll(error)
        return super().caught(error) if self.tail is None else self.tail.caught(error)

    def _may_skip(self) -> bool:
        if self.peeled:
            return True
        return not self.has_turn and self.mode.builder.prove(">=", self.sequence.length, 1) is not True

    def stop(self, flag: Any) -> bool:
        """The operator has the test: the turns traced here end by themselves."""
        return False


class WhileLoop(Region):
    """A `while`: ordinary Python until its test is traced."""

    def __init__(self, regions: Regions, info: LoopInfo, key: Any) -> None:
        super().__init__(regions, info)
        #: The statement's name, and whether its turns may be traced one by one, each under an assumption.
        self.key, self.is_countable = key, regions.mode.can_turn_back()
        self.traced = False  # becomes True with the first traced test
        self.test_block = Block()
        self.block = Block()
        self.opened: Opened | None = None
        self.mark: Mark = regions.mark()
        self.condition: Value | None = None
        self.unrolling = key in regions.mode.unrolled
        self.resuming = False
        self.finished = False
        self.turns = 0
        #: The first test is evaluated in front of the loop, to know whether there is a turn.
        self.asking = self.asked = False
        self.has_turn = False
        #: What a turn did that no region carries: turns are traced in front of one.
        self.failed_change: Changed | None = None

    def _opened(self) -> Opened | None:
        return self.opened

    def _blocks(self) -> Sequence[Block]:
        return (self.test_block, self.block)

    def turn(self) -> bool:
        if self.finished:
            return False
        if not self.traced:
            self.mark = self.regions.mark()
            return True
        self.attempts += 1
        if self.attempts > _ATTEMPTS:
            self.mode.leave(
                "the types of what the loop carries do not settle: they change from turn to turn",
                "give each name one type and shape before the loop.",
            )
        return True

    def enter(self, names: dict[str, Any]) -> None:
        scope = caller_scope(names)
        self._see_cells(scope)
        if self.before is None:
            self._begin(scope)
            self._entry_key = turn_starts.key_of(self)
        if self.resuming or self.asking:
            self.heads = {}
            return
        self.mark = self.regions.mark()
        self.test_block = Block()
        self.opened = self.regions.open(self.test_block, self.before)
        spoil_stale(self)
        turn_starts.arguments(self, self.test_block, bind=True)
        self._bind_cells()

    def test(self, test: Any) -> bool | None:
        """The test of a turn: its truth, or None to begin the turn anew as a region."""
        guards = len(self.mark.guards)
        truth = self.regions.truth(test)
        graph = self.mode.builder.graph
        if self.asking:
            self.asking, self.attempts = False, 0
            if isinstance(truth, Value) and not self.mode.can_rerun():
                self.regions.undo(self.mark)
                return None
            self.has_turn = True
            taken = self.mode.assume(truth, "whether a `while` has a turn") if isinstance(truth, Value) else truth
            return None if taken else False
        if not self.traced or self.resuming:
            decided_by_guard = len(graph.guards) > guards and not self.unrolling
            if isinstance(truth, Value) or decided_by_guard:
                if self.unrolling and isinstance(truth, Value):
                    if self.mode.can_turn_back():  # a turn traced in front of the loop, or all of them
                        self.turns += 1
                        self.unrolling = self.turns > _IN_FRONT or self.key in self.mode.unrolled
                        return self.mode.assume(truth, "whether a `while` has a turn")
                    if self.key in self.mode.unrolled:
                        raise self.mode.unrolled[self.key]
                    if self.failed_change is not None and turn_ends.open_options(self, self.failed_change):
                        self.regions.undo(self.mark)
                        self.unrolling = self.resuming = False
                        self.before = None
                        return None
                    self.mode.leave("the test of a `while` whose body changes shapes depends on data", "use a `for`.")
                self.regions.undo(self.mark)
                self.before = None
                self.traced = True
                return None
            self.turns += 1
            return truth
        # inside the test region
        builder = self.mode.builder
        condition = truth if isinstance(truth, Value) else builder.constant(truth)
        opened = self.opened
        assert opened is not None
        self._yield([condition])
        self.opened = None
        try:
            changed = self.regions.close(opened, cells=True)
        except Reshaped as answer:
            self.regions.fail_change(str(answer))
        names = {cell.name: name for name, cell in self.cells.items()}
        for cell, value in opened.cells:
            if cell.name not in names or self.get(names[cell.name]) is not value:
                self.mode.leave(f"the test of a `while` changes {cell.text}", "change it in the body of the loop.")
        if any(
            changed[s] is not a
            for s, a in zip(self.storages, self.test_block.args[-len(self.storages) :], strict=False)
        ) or any(s not in self.storages for s in changed):
            self.mode.leave("the test of a `while` writes to an array", "write in the body of the loop.")
        self.block = Block()
        self.opened = self.regions.open(self.block, self.before)
        self.opened.loop = self
        turn_starts.arguments(self, self.block, bind=True)
        self.this_turn = carried_objects.begin_turn(self, self.opened)
        self._bind_cells()
        return True

    def leave(self, names: dict[str, Any]) -> None:
        scope = caller_scope(names)
        self._see_cells(scope)
        if self.resuming:
            self.resuming = False
            self.traced = False
            self.before = None
            self.has_turn = self.asked = False  # that was this one
            return
        if self.needs_first:
            name, self.needs_first, self.opened = self.needs_first, "", None
            self.regions.undo(self.mark, self.block, self.test_block)
            self._unroll(Changed(name, self.before.get(name), None))
            return
        opened = self.opened
        assert opened is not None
        if self.failure is None:
            self.regions.check_variables(opened, scope, self.info.assigned)
        self.opened = None
        try:
            changed = self.regions.close(opened, failed=self.failure is not None, cells=True)
        except Reshaped as answer:
            self.regions.fail_change(str(answer))
        if self.failure is None and self._add_cells(opened):
            self.regions.undo(self.mark, self.block, self.test_block)
            return
        new = self._add_storages(changed)
        if self.failure is not None and new:
            self.failure = None
            self.regions.undo(self.mark, self.block, self.test_block)
            return
        if self.failure is None:
            usable = compare_stale(self, self.mark)
            try:
                fits = self._compare(scope) and usable
            except Changed as change:
                self.regions.undo(self.mark, self.block, self.test_block)
                self._unroll(change)
                return
            if new or not fits:
                self.regions.undo(self.mark, self.block, self.test_block)
                return
            try:
                left_behind.part_written(self)
            except Changed as change:
                self.regions.undo(self.mark, self.block, self.test_block)
                self._unroll(change)
                return
            if not self.has_turn and turn_ends.needs_turn(self):
                asks, self.asked = not self.asked, True
                if asks or turn_ends.tells(self):
                    self.regions.undo(self.mark, self.block, self.test_block)
                    self.asking = asks
                    return
        builder = self.mode.builder
        outer = builder.block
        builder.at_end(self.block)
        ends = turn_ends.ends(self, scope, changed)
        asks = bool(self.left)
        if asks:  # one more is carried: whether there was a turn
            ends.append(builder.constant(True))
        self._yield(ends)
        builder.at_end(outer)
        inits = turn_starts.inits(self)
        if asks:
            inits.append(builder.constant(False))
            for block in (self.test_block, self.block):
                block.add_arg(python_type("py_bool"))
        results = builder.emit(
            REGISTRY["while"], inits, [v.type for v in inits], {}, (self.test_block, self.block)
        ).results
        turn_starts.remember(self)
        left_behind.spoil_written(self)
        self.finished = True
        left_behind.deliver(self, results, scope)

    def _taken(self, results: Sequence[Value]) -> Any:
        return wrap(self.mode, results[-1])

    def _has_turn(self) -> bool:
        return self.has_turn

    def _may_skip(self) -> bool:
        return not self.has_turn

    def _restart(self, error: errors.TraceError) -> Restart | None:
        known = self.key not in self.mode.unrolled and self.is_countable
        return Restart(unroll=(self.key, error)) if known else None

    def _can_peel(self) -> bool:
        return not self.unrolling and self.turns < _IN_FRONT

    def _unroll(self, change: Changed) -> None:
        """The body does not fit a region: if sizes of arguments decide the test, take turns under guards."""
        if self.unrolling or (self.turns >= _IN_FRONT and not self.mode.can_turn_back()):
            if turn_ends.open_options(self, change):
                return
            change.fail(self.place)
        self.unrolling = self.resuming = True
        self.failed_change = change
        self.attempts = 0


def loop(regions: Regions, iterable: Any, info: Any) -> Unrolled | ForRegion:
    """The driver of a `for` statement."""
    known = LoopInfo(*info)
    sequence = sequenced(regions.mode, iterable)
    if sequence is None:
        if type(iterable) is Poison:
            iterable.fail()
        if regions.opened and hasattr(type(iterable), "__next__"):
            regions.check_iterator(iterable)
        return Unrolled(iterable)
    key = regions.place_of()
    length, limit = sequence.length, regions.unroll_limit
    if key in regions.mode.unrolled:
        length, limit = regions.mode.concrete_dim(length, "len"), MOST_TURNS
        regions.mode.turns += length
        if length > limit or regions.mode.turns > _MOST_IN_ALL:
            what = f"a loop of {length} turns changes what no loop of machine code can: a list, a dict, shapes or types"
            regions.mode.leave(what, "use arrays made before (out = np.zeros(n); out[i] = ...).")
    if isinstance(length, int) and length <= limit:
        return Unrolled(sequence.element(k) for k in range(length))  # one at a time: turns may write to it
    example = regions.mode.example(sequence.length)
    if isinstance(example, int) and example < 1 and regions.at_least_one(sequence.length) is False:
        return Unrolled([])  # under a guard: what a turn would do need not make sense for these sizes
    return ForRegion(regions, sequence, known, key)


def while_loop(regions: Regions, info: Any) -> WhileLoop:
    """The driver of a `while` statement."""
    return WhileLoop(regions, LoopInfo(*info), regions.place_of())
