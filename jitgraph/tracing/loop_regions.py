"""`for` and `while` of rewritten functions as region operators.

A loop body is traced once an attempt. The first attempt carries what the syntax suggests: names that a turn may read
before it assigns them, and the storages of arrays that the body writes to. An attempt that finds more (another storage
written, a name of another type at the end of a turn) is undone and made anew. A name whose type changes in the first turn
to one that holds the same numbers (int to float, a Python float to np.float64) is converted before the loop; one that
changes otherwise has the first turn traced in front of the loop. Both hold only if there is a turn: a guard, if argument
sizes decide it, else a check that reruns the call in Python. A second change is an error that names the variable.

Names assigned before they are read in a turn are no inputs of it; behind the loop they have the value of the last turn.
A loop with `break` is a `while` over a counter and the flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jitgraph import errors
from jitgraph.ir.dims import DimLike, symbol
from jitgraph.ir.graph import Block, Site, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import TreeDef, unflatten
from jitgraph.tensor import Storage, Tensor, dim_tensor, lift, set_version, wrap
from jitgraph.tracing.capture_mode import frame_of, spoil
from jitgraph.tracing.iteration import Range, Sequenced, sequenced
from jitgraph.tracing.merging import (
    UNSET,
    Scope,
    caller_scope,
    carried_type,
    convert,
    describe,
    is_value,
    join,
    placeholder,
    same_constant,
    same_place,
    structure,
)
from jitgraph.tracing.poison import Poison
from jitgraph.tracing.regions import Mark, Opened, Regions, message_of
from jitgraph.tracing.rewrite import LoopInfo

_ATTEMPTS = 8


class _Changed(Exception):  # noqa: N818  # an answer
    """A name changes in a turn to something that its value from before cannot be converted to."""

    def __init__(self, name: str, before: Any, after: Any) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after


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


@dataclass(slots=True)
class Carried:
    """A name that a loop carries, leaf by leaf.

    Attributes:
        tree: structure of its value; None: one leaf.
        inits: what each leaf is before the loop; None: nothing that a turn looks at.
        types: the carried type of each leaf; None: a part that stays as it is in `fixed`.
        read: whether a turn may read the value of the one before.
        arguments: the block arguments of the attempt.
    """

    name: str
    tree: TreeDef | None
    inits: list[Any]
    types: list[TensorType | None]
    fixed: list[Any]
    read: bool = True
    arguments: list[Value | None] = field(default_factory=list)


def _parts(x: Any) -> tuple[list[Any], TreeDef | None]:
    parts = structure(x)
    return ([x], None) if parts is None else parts


def _is_missing(x: Any) -> bool:
    return type(x) is Poison or x is UNSET


def _unchanged(a: Any, b: Any) -> bool:
    if a is b or same_place(a, b):
        return True
    if type(a) is Tensor or type(b) is Tensor:
        return False
    if is_value(a) and is_value(b):
        return same_constant(a, b)
    return type(a) is type(b) and isinstance(a, str | bytes | tuple | type(None)) and bool(a == b)


def _dense(t: TensorType | None) -> TensorType | None:
    """The type as it is carried: a strided view is copied to C order."""
    if t is not None and t.kind == "array" and not t.layout.is_dense:
        return TensorType(t.dtype, t.shape)
    return t


class Region:
    """What `for` and `while` share: attempts, carried names and storages."""

    traced = True

    def __init__(self, regions: Regions, info: LoopInfo) -> None:
        self.regions = regions
        self.mode = regions.mode
        self.info = info
        #: A break flag that the operator itself tests: no carried name, and False at the start of each turn.
        self.own_flag = ""
        self.place = regions.mode.locate()
        self.before: Any = None
        self.names: dict[str, Carried] = {}
        self.storages: list[Storage] = []
        self.attempts = 0
        self.peeled = False
        self.results: dict[str, Any] | None = None
        self.heads: dict[str, Any] = {}
        self.failure: Exception | None = None

    # --- the start

    def _begin(self, scope: Scope) -> None:
        """The variables before the loop, and what is likely carried."""
        self.before = scope
        self.names.clear()
        self.storages.clear()
        for name in self.info.head:
            if name != self.own_flag:
                self._carry(name, scope.get(name))
        for name in self.info.written:
            value = scope.get(name)
            if type(value) is Tensor and value.is_traced and value.type.kind == "array" and name not in self.names:
                self._add_storage(value._storage)
        for name, tree, types, read in self.regions.decided.get(self._key(), ()):
            known = self.names.get(name)
            if known is not None and known.tree == tree:
                known.types = list(types)
            elif known is None and all(t is not None for t in types):
                self._output(name, scope.get(name), tree, list(types), read=read)

    def _key(self) -> Any:
        """The loop's place and the types that it begins with."""
        entry = [
            (n, str(c.tree), tuple(map(str, map(carried_type, c.inits))))
            for n, c in self.names.items()
            if c.inits[0] is not None
        ]
        return (id(self.before.code), self.info, tuple(sorted(entry)), self.peeled)

    def _carry(self, name: str, value: Any, *, rebound: bool | None = None) -> None:
        """Carry a name with its value from before, if that is something to carry."""
        if _is_missing(value):
            return
        is_array = type(value) is Tensor and value.is_traced and value.type.kind == "array"
        if is_array and not (name in self.info.rebound if rebound is None else rebound):
            self._add_storage(value._storage)  # written in place: the name stays bound to it
            return
        leaves, tree = _parts(value)
        types = [_dense(carried_type(x)) for x in leaves]
        if any(t is not None for t in types):
            self.names[name] = Carried(name, tree, list(leaves), types, list(leaves))

    def _add_storage(self, storage: Storage) -> None:
        if storage not in self.storages and storage.value is not None:
            self.storages.append(storage)

    def _output(
        self, name: str, before: Any, tree: TreeDef | None, types: list[TensorType | None], *, read: bool
    ) -> None:
        """Carry a name that has its value from the end of a turn; the one from before if it converts."""
        old, old_tree = _parts(before)
        inits: list[Any] = [None] * len(types)
        if not _is_missing(before) and old_tree == tree and len(old) == len(types):
            for k, t in enumerate(types):
                have = carried_type(old[k])
                joined = None if t is None or have is None else join(self.mode, have, t)
                if joined is not None:
                    inits[k], types[k] = old[k], joined
        self.names[name] = Carried(name, tree, inits, [_dense(t) for t in types], [None] * len(types), read)

    def _arguments(self, block: Block, *, bind: bool) -> None:
        """Block arguments for all that is carried; names and storages are bound to them."""
        for carried in self.names.values():
            shown = "" if carried.name.startswith("_jg_") else carried.name
            carried.arguments = [None if t is None else block.add_arg(t, shown) for t in carried.types]
        for storage in self.storages:
            argument = block.add_arg(storage.value.type, storage.value.name)
            if bind:
                set_version(storage, argument)
        if bind:
            self.heads = {n: self._bind(c, c.arguments) for n, c in self.names.items() if c.read}

    def _bind(self, carried: Carried, values: Sequence[Value | None]) -> Any:
        """The Python value of a carried name, made of graph values."""
        leaves = [f if v is None else wrap(self.mode, v) for v, f in zip(values, carried.fixed, strict=True)]
        return leaves[0] if carried.tree is None else unflatten(carried.tree, leaves)

    def get(self, name: str) -> Any:
        """While a turn is traced the value at its start, after the loop the result."""
        if self.results is not None:
            return self.results[name] if name in self.results else self.before.get(name)
        if name == self.own_flag:
            return False
        return self.heads[name] if name in self.heads else self.before.get(name)

    # --- the end of a turn

    def _compare(self, scope: Scope) -> bool:
        """Compare the names at the end of a turn with what was carried; False if another attempt is needed.

        Raises:
            _Changed: another attempt will not do.
        """
        fits = True
        for name in dict.fromkeys((*self.info.head, *self.info.after)):
            if name != self.own_flag:
                carried = self.names.get(name)
                end = scope.get(name)
                known = self._compare_new(name, end) if carried is None else self._compare_carried(carried, end)
                fits = known and fits
        return fits

    def _compare_new(self, name: str, end: Any) -> bool:
        """A name that is not carried yet."""
        before = self.before.get(name)
        if _is_missing(end) or _unchanged(before, end):
            return True
        leaves, tree = _parts(end)
        types = [carried_type(x) for x in leaves]
        is_read = name in self.info.head
        if is_read and not _is_missing(before):
            if type(before) is Tensor and type(end) is Tensor:
                self._carry(name, before, rebound=True)
                return False
            raise _Changed(name, before, end)
        if name not in self.info.after and not is_read:
            return True
        if any(
            t is None for t in types
        ):  # text, objects: no run-time value; they stay what they are if they are static
            return True
        self._output(name, before, tree, types, read=is_read)
        return False

    def _compare_carried(self, carried: Carried, end: Any) -> bool:
        if _is_missing(end):
            return True
        leaves, tree = _parts(end)
        if tree != carried.tree:
            raise _Changed(carried.name, self.before.get(carried.name), end)
        fits = True
        for k, x in enumerate(leaves):
            t, have = carried.types[k], carried_type(x)
            if t is None:
                if not _unchanged(carried.fixed[k], x):
                    raise _Changed(carried.name, carried.fixed[k], x)
            elif have != t:
                joined = None if have is None else join(self.mode, t, have)
                if joined is None:
                    raise _Changed(carried.name, t, x)
                joined = _dense(joined)
                if joined != t:
                    carried.types[k] = joined
                    fits = False
        return fits

    def _fail_type(self, change: _Changed) -> NoReturn:
        name = change.name
        shown = "the value that the function returns" if name.startswith("_jg_") else name
        before = str(change.before) if isinstance(change.before, TensorType) else describe(change.before)
        raise errors.TraceError(
            errors.describe(
                f"{shown} changes its type in a loop: {before} at the start of a turn, {describe(change.after)} at its end",
                self.place,
                remedy=f"give {shown} its final type before the loop, e.g. 0.0 for 0, or an array of the right shape.",
            )
        )

    # --- the operator

    def _inits(self) -> list[Value]:
        """The values from before the loop, converted; emitted at the builder's place."""
        found: list[Value] = []
        for carried in self.names.values():
            for init, t in zip(carried.inits, carried.types, strict=True):
                if t is not None:
                    found.append(
                        placeholder(self.mode, t) if init is None else convert(self.mode, lift(self.mode, init), t)
                    )
        return found + [s.value for s in self.storages]

    def _ends(self, scope: Scope, changed: dict[Storage, Any]) -> list[Value]:
        """The values at the end of a turn, converted; emitted at the builder's place."""
        found: list[Value] = []
        for carried in self.names.values():
            end = scope.get(carried.name)
            leaves = [None] * len(carried.types) if _is_missing(end) or self.failure else _parts(end)[0]
            for x, t, argument in zip(leaves, carried.types, carried.arguments, strict=True):
                if t is not None and argument is not None:
                    found.append(argument if x is None else convert(self.mode, lift(self.mode, x), t))
        return found + [changed[s] for s in self.storages]

    def _deliver(self, results: Sequence[Value], scope: Scope) -> None:
        """Bind names and storages to the results of the operator."""
        at = 0
        bound: dict[str, Any] = {}
        for carried in self.names.values():
            values: list[Value | None] = []
            for t in carried.types:
                values.append(None if t is None else results[at])
                at += t is not None
            for v in values:
                if v is not None and not v.name and not carried.name.startswith("_jg_"):
                    v.name = carried.name
            bound[carried.name] = self._bind(carried, values)
            leaf = carried.inits[0]
            if (
                type(leaf) is Tensor
                and leaf.type.kind == "array"
                and type(bound[carried.name]) is Tensor
                and self._may_skip()
            ):
                self.mode.watch(bound[carried.name]._storage, [leaf._storage])
        for storage in self.storages:
            if storage.value.name and not results[at].name:
                results[at].name = storage.value.name
            set_version(storage, results[at])
            at += 1
        for name in self.info.after:
            if name not in bound:
                bound[name] = scope.get(name)
        self.results = bound

    def _spoil_written(self) -> None:
        """A name bound to another array in each turn, and written through: the array from before is left behind.

        Raises:
            TraceError: it is an argument, or comes from outside: the caller would miss the writes.
        """
        for name, carried in self.names.items():
            head, init = self.heads.get(name), carried.inits[0]
            if (
                type(head) is not Tensor
                or type(init) is not Tensor
                or head._storage.value is carried.arguments[0]
                or carried.tree is not None
            ):
                continue
            storage = init._storage
            if storage.origin is not None:
                self.mode.fail(
                    f"{name} is an array of the caller's, is written to, and stands for another array in the next turn of the loop",
                    f"work on copies ({name} = {name}.copy()) and write the result back after the loop.",
                )
            spoil(
                self.mode, storage, f"an array that {name} stood for before a loop, which wrote to it and then bound {name} to another one",
                "use the variables that the loop leaves, or a copy made before it.",
            )  # fmt: skip

    def _may_skip(self) -> bool:
        """Whether the loop may have no turn."""
        return True

    def _needs_turn(self) -> str:
        """A name whose type or value behind the loop holds only after a turn; "" if there is none."""
        for name, carried in self.names.items():
            if name not in self.info.after or name.startswith("_jg_"):
                continue
            for init, t in zip(carried.inits, carried.types, strict=True):
                have = None if init is None else carried_type(init)
                if t is not None and (
                    have is None or have.dtype != t.dtype or have.kind != t.kind or have.kind == "array"
                ):
                    return name
        return ""

    def _remember(self) -> None:
        self.regions.decided[self._entry_key] = [(n, c.tree, tuple(c.types), c.read) for n, c in self.names.items()]

    _entry_key: Any = None

    def caught(self, error: Exception) -> bool:
        """Whether an exception that leaves the body is one that the compiled code shall raise in its turn."""
        opened = self._opened()
        if opened is None:
            return False
        if isinstance(error, errors.TraceError | errors.InternalError):
            self.regions.close(opened, failed=True)
            self.regions.failed = error
            return False
        self.failure = error
        graph = self.mode.builder.graph
        graph.sites.append(
            Site(type(error).__name__, message_of(error), frame_of(error)[1] or self.mode.locate(), type(error))
        )
        self.mode.emit_effect("raise", [], site=len(graph.sites) - 1)
        return True

    def _opened(self) -> Opened | None:
        return None

    def _yield(self, values: Sequence[Value]) -> None:
        self.mode.builder.emit(REGISTRY["yield"], values, ())


class ForRegion(Region):
    """A `for` over a sequence of traced length."""

    def __init__(self, regions: Regions, sequence: Sequenced, info: LoopInfo) -> None:
        super().__init__(regions, info)
        self.own_flag = info.break_flag
        self.sequence = sequence
        self.block = Block()
        self.opened: Opened | None = None
        self.mark: Mark | None = None
        self.peeling = False
        self.with_break = False
        self.has_turn = False
        self.finished = False
        self.index = ""
        self.counter: Value | None = None
        self.flag: Value | None = None

    def __iter__(self) -> ForRegion:
        return self

    def __next__(self) -> None:
        if self.finished:
            raise StopIteration
        self.attempts += 1
        if self.attempts > _ATTEMPTS:
            raise errors.InternalError("a loop does not settle on the types of what it carries")

    def _opened(self) -> Opened | None:
        return self.opened

    def enter(self, names: dict[str, Any]) -> None:
        """Begin an attempt: the block, its arguments, the index."""
        scope = caller_scope(names)
        if self.before is None:
            self._begin(scope)
            self._entry_key = self._key()
        self.mark = self.regions.mark()
        if self.peeling:
            self.heads = {}
            return
        self.block = Block()
        self.opened = self.regions.open(self.block, self.before)
        if self.with_break:
            self.counter = self.block.add_arg(python_type("py_int"), self.info.target)
            self.flag = self.block.add_arg(python_type("py_bool"))
        self._arguments(self.block, bind=True)

    def element(self) -> Any:
        """What the loop variable is bound to."""
        start = 1 if self.peeled else 0
        if self.peeling:
            return self.sequence.element(0)
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

    def _bounds(self) -> tuple[DimLike, DimLike, DimLike]:
        s = self.sequence
        if isinstance(s, Range) and self._counts_itself():
            return (s.start + s.step if self.peeled else s.start), s.stop, s.step
        return int(self.peeled), s.length, 1

    def leave(self, names: dict[str, Any]) -> None:
        """End an attempt: another one, or the operator."""
        scope = caller_scope(names)
        if self.peeling:
            self.peeling = False
            self.peeled = self.has_turn = True
            self.attempts = 0
            self._begin(scope)
            return
        opened, mark, flag = self.opened, self.mark, self.info.break_flag
        assert opened is not None
        assert mark is not None
        changed = self.regions.close(opened, failed=self.failure is not None)
        self.opened = None
        if self.failure is None:
            new = [s for s in changed if s not in self.storages]
            self.storages += new
            stops = bool(flag) and not self.with_break and scope.get(flag) is not False
            self.with_break = self.with_break or stops
            try:
                fits = self._compare(scope)
            except _Changed as change:
                self.regions.undo(mark, self.block)
                self._peel(change)
                return
            if new or stops or not fits:
                self.regions.undo(mark, self.block)
                return
        needed = self._needs_turn()
        if needed and not self.has_turn:
            at_least = self.regions.at_least_one(self._rest())
            if at_least is False:
                self.regions.undo(mark, self.block)
                self._no_turn()
                return
            self.has_turn = bool(at_least)
            if at_least is None:
                self.has_turn = self.regions.deoptimise_unless(
                    self._rest(), f"{needed} has another type if the loop has no turn"
                )
        self._emit(scope, changed)

    def _rest(self) -> DimLike:
        return self.sequence.length

    def _peel(self, change: _Changed) -> None:
        """Trace the first turn in front of the loop."""
        if self.peeled:
            self._fail_type(change)
        at_least = self.regions.at_least_one(self.sequence.length)
        if at_least is False:
            self._no_turn()
            return
        if at_least is None and not self.regions.deoptimise_unless(
            self.sequence.length, f"{change.name} has another type if the loop has no turn"
        ):
            self._fail_type(change)
        self.peeling = True
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
        ends = self._ends(scope, changed)
        if self.with_break:
            assert self.counter is not None
            assert self.flag is not None
            following = builder.apply(REGISTRY["add"], self.counter, 1)[0]
            end = scope.get(self.info.break_flag)
            stop = lift(mode, False if _is_missing(end) or self.failure else end)
            ends = [following, convert(mode, stop, python_type("py_bool")), *ends]
        self._yield(ends)
        builder.at_end(outer)
        inits = self._inits()
        types = [v.type for v in inits]
        if not self.with_break:
            lower, upper, step = self._bounds()
            attrs = {"index": self.index, "lower": lower, "upper": upper, "step": step}
            results: Sequence[Value] = builder.emit(REGISTRY["for"], inits, types, attrs, (self.block,)).results
        else:
            inits = [builder.constant(1 if self.peeled else 0), builder.constant(False), *inits]
            types = [v.type for v in inits]
            test = Block(types)
            builder.at_end(test)
            more = builder.apply(REGISTRY["lt"], test.args[0], mode.dim_value(self.sequence.length))[0]
            go = builder.apply(REGISTRY["logical_not"], test.args[1])[0]
            self._yield([builder.apply(REGISTRY["logical_and"], more, go)[0]])
            builder.at_end(outer)
            results = builder.emit(REGISTRY["while"], inits, types, {}, (test, self.block)).results
        self._remember()
        self._spoil_written()
        self.finished = True
        if self.with_break:
            self._deliver(results[2:], scope)
            assert self.results is not None
            self.results[self.info.break_flag] = wrap(mode, results[1])
        else:
            self._deliver(results, scope)
            if self.info.break_flag:
                assert self.results is not None
                self.results[self.info.break_flag] = False

    def _may_skip(self) -> bool:
        return not self.has_turn and self.mode.builder.prove(">=", self.sequence.length, 1) is not True

    def stop(self, flag: Any) -> bool:
        """The operator has the test: the turns traced here end by themselves."""
        return False


class WhileLoop(Region):
    """A `while`: ordinary Python until its test is traced."""

    def __init__(self, regions: Regions, info: LoopInfo) -> None:
        super().__init__(regions, info)
        self.traced = False  # becomes True with the first traced test
        self.test_block = Block()
        self.block = Block()
        self.opened: Opened | None = None
        self.mark: Mark = regions.mark()
        self.condition: Value | None = None
        self.unrolling = False
        self.resuming = False
        self.finished = False
        self.turns = 0

    def _opened(self) -> Opened | None:
        return self.opened

    def turn(self) -> bool:
        if self.finished:
            return False
        if not self.traced:
            self.mark = self.regions.mark()
            return True
        self.attempts += 1
        if self.attempts > _ATTEMPTS:
            raise errors.InternalError("a loop does not settle on the types of what it carries")
        return True

    def enter(self, names: dict[str, Any]) -> None:
        scope = caller_scope(names)
        if self.before is None:
            self._begin(scope)
            self._entry_key = self._key()
        if self.resuming:
            self.heads = {}
            return
        self.mark = self.regions.mark()
        self.test_block = Block()
        self.opened = self.regions.open(self.test_block, None)
        self._arguments(self.test_block, bind=True)

    def test(self, test: Any) -> bool | None:
        """The test of a turn: its truth, or None to begin the turn anew as a region."""
        guards = len(self.mark.guards)
        truth = self.regions.truth(test)
        graph = self.mode.builder.graph
        if not self.traced or self.resuming:
            decided_by_guard = len(graph.guards) > guards and not self.unrolling
            if isinstance(truth, Value) or decided_by_guard:
                if self.unrolling and isinstance(truth, Value):
                    self.regions.mode.fail(
                        "the test of a `while` whose body changes shapes depends on data", "use a `for`."
                    )
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
        changed = self.regions.close(opened)
        if any(
            changed[s] is not a
            for s, a in zip(self.storages, self.test_block.args[-len(self.storages) :], strict=False)
        ) or any(s not in self.storages for s in changed):
            self.mode.fail("the test of a `while` writes to an array", "write in the body of the loop.")
        self.block = Block()
        self.opened = self.regions.open(self.block, self.before)
        self._arguments(self.block, bind=True)
        return True

    def leave(self, names: dict[str, Any]) -> None:
        scope = caller_scope(names)
        if self.resuming:
            self.resuming = False
            self.traced = False
            self.before = None
            return
        opened = self.opened
        assert opened is not None
        changed = self.regions.close(opened, failed=self.failure is not None)
        self.opened = None
        if self.failure is None:
            new = [s for s in changed if s not in self.storages]
            self.storages += new
            try:
                fits = self._compare(scope)
            except _Changed as change:
                self.regions.undo(self.mark, self.block, self.test_block)
                self._unroll(change)
                return
            if new or not fits:
                self.regions.undo(self.mark, self.block, self.test_block)
                return
        builder = self.mode.builder
        outer = builder.block
        builder.at_end(self.block)
        self._yield(self._ends(scope, changed))
        builder.at_end(outer)
        inits = self._inits()
        results = builder.emit(
            REGISTRY["while"], inits, [v.type for v in inits], {}, (self.test_block, self.block)
        ).results
        self._remember()
        self._spoil_written()
        self.finished = True
        self._deliver(results, scope)

    def _unroll(self, change: _Changed) -> None:
        """The body does not fit a region: if sizes of arguments decide the test, take turns under guards."""
        if self.unrolling or self.turns:
            self._fail_type(change)
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
        return Unrolled(iterable)
    if isinstance(sequence.length, int) and sequence.length <= regions.unroll_limit:
        return Unrolled([sequence.element(k) for k in range(sequence.length)])
    return ForRegion(regions, sequence, known)


def while_loop(regions: Regions, info: Any) -> WhileLoop:
    """The driver of a `while` statement."""
    return WhileLoop(regions, LoopInfo(*info))
