"""Opening, closing and undoing regions: what `if`, `for` and `while` share.

While a region is open the builder appends to its block, and `CaptureMode.blocks` has it on top. At its end the storages
that were written get back the version from before; the region's driver decides what they hold afterwards.
"""

from __future__ import annotations

import opcode
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Block, Graph, Guard, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import TensorType
from jitgraph.records import dataclass, field
from jitgraph.tensor import Storage, Tensor, lift
from jitgraph.tracing.capture_mode import CaptureMode, user_frame
from jitgraph.tracing.cells import Cell, Reshaped, Snapshot, reached
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.iteration import Sequenced, any_traced
from jitgraph.tracing.outside import Outside
from jitgraph.tracing.poison import Maybe, Poison, unbound_text
from jitgraph.tracing.restart import Exhausted, NeedsFirstTurn
from jitgraph.tracing.scopes import Overlay, Scope
from jitgraph.xp.scalars import only_element


class Endless(errors.LeftToPython):
    """Branches are nested without an end: a recursion that the traced code cannot follow, as both sides are traced."""


#: Branches under which such a recursion was met, by `Regions.place_of`: one side of them is assumed.
ENDLESS: set[Any] = set()
#: Deepest nesting of branches and loops: what goes deeper recurs without an end.
_MOST_NESTED = 30
#: Most regions of a trace that are opened inside of one at the same place: a search that calls itself in a loop or in
#: several branches grows with a power of its depth, where Python's run meets few of its ways.
_MOST_RECURSIVE = 150


@dataclass(slots=True)
class Mark:
    """A moment of the trace to go back to."""

    journal: int
    spoiled: int
    watched: tuple[int, int, int]
    guards: list[Guard]
    facts: Any
    decided: dict[Any, bool]
    #: What the mode concluded from guards and facts: broadcast sizes, counts of masks, symbols of integers.
    concluded: tuple[dict[Any, Any], ...]
    symbols: set[str]
    sites: int
    last: Op | None
    block: Block


@dataclass(slots=True)
class Opened:
    """What is compared when a region closes."""

    block: Block
    journal: int
    outside: dict[Any, Any]
    snapshot: Snapshot
    scope: Any
    stores: dict[Any, Any]
    #: Objects of the user's classes made in the region, by identity.
    born: dict[int, Any] = field(default_factory=dict)
    #: Attributes and items that it changed, with what it left there; set when it closes.
    cells: list[tuple[Cell, Any]] = field(default_factory=list)
    #: Whether it changed anything of the kind.
    is_touched: bool = False
    #: How many arrays were unusable when it was opened.
    spoiled: int = 0
    #: The loop whose turn it is, if it is one.
    loop: Any = None
    #: Where it was opened: code, instruction, which call.
    place: tuple[Any, int, int] | None = None
    #: What was known of bools when it was opened.
    tested: dict[Value, bool] = field(default_factory=dict)


class Regions:
    """The open regions of a trace.

    Attributes:
        failed: an error that left a region; user code must not swallow it.
        decided: types that loops settled on, by place and entry types: nested loops begin with them.
        entered: places of loops for whose turn there was a guard, as a name has another type without one: the next
            attempt at a loop around them may begin with that type, and the guard is needed all the same.
    """

    def __init__(self, mode: CaptureMode, outside: Outside, unroll_limit: int) -> None:
        self.unroll_limit = unroll_limit
        self.mode = mode
        self.builder = mode.builder
        self.outside = outside
        self.failed: BaseException | None = None
        #: An exception left a region: blocks inside of it may have been given up half traced.
        self.abandoned = False
        self.decided: dict[Any, Any] = {}
        self.entered: set[Any] = set()
        self.opened: list[Opened] = []
        #: Scalars behind loops of perhaps no turn, which would leave them as Python's numbers: the value, the type of
        #: these, the name's key; and the keys of names whose kinds such loops carry (`carried_kinds.leave_untold`).
        self.untold: list[tuple[Value, TensorType, Any]] = []
        self.telling: set[Any] = set()
        #: The arrays that turns of loops begin with: the loop, what it carries there, the number of the leaf.
        self.heads: dict[Storage, tuple[Any, Any, int]] = {}
        self._visits: dict[Any, int] = {}
        self._recursive = 0
        #: Objects of the user's classes that the trace made, by identity.
        self.made: dict[int, Any] = {}
        #: The globals of all modules in the trace; set by the tracer.
        self.namespaces: Callable[[], Any] = list
        #: Reads an attribute of an object; set by the tracer.
        self.attribute: Callable[[Any, str], Any] = getattr
        #: Whether the trace has branches or loops.
        self.used = False
        #: What functions stored in closure cells from outside: (cell, name) to the value; set by the tracer.
        self.stores: Callable[[], dict[Any, Any]] = dict

    def place_of(self) -> Any:
        """A name for the statement at hand."""
        frame = user_frame()
        return None if frame is None else (frame.f_code, frame.f_lasti)

    @staticmethod
    def path_of() -> tuple[Any, ...]:
        """The calls that lead to the statement at hand: one function may be called from several places."""
        found: list[Any] = []
        frame = user_frame()
        while frame is not None:
            if type(frame.f_globals) is TraceGlobals and frame.f_globals.is_user:
                found.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        return tuple(found)

    def key_of(self) -> Any:
        """A name for the branch at hand, the same when the trace begins anew: its place, and how often it was met."""
        place = self.place_of()
        count = self._visits[place] = self._visits.get(place, 0) + 1
        return place, count

    def is_settled(self, key: Any) -> bool:
        """Whether one side of the branch at hand is assumed: its sides, or those of some other visits, fit no graph."""
        settled = self.mode.settled
        return key in settled or ((key[0], 0) in settled and self.mode.can_turn_back())

    @property
    def depth(self) -> int:
        return len(self.mode.blocks) - 1

    # --- open and close

    def open(self, block: Block, scope: Any) -> Opened:
        self.used = True
        if len(self.opened) == _MOST_NESTED:
            what, remedy = "a function calls itself, and data decides when it ends", "write it as a loop."
            raise Endless(errors.describe(what, self.mode.locate(), remedy=remedy))
        frame = user_frame()
        place = None if frame is None else (frame.f_code, frame.f_lasti, id(frame))
        if place is not None and any(o.place[:2] == place[:2] and o.place != place for o in self.opened if o.place):
            self._recursive += 1
            if self._recursive > _MOST_RECURSIVE:
                what = "a function calls itself in too many ways to trace them all"
                text = errors.describe(what, self.mode.locate(), remedy="write it as a loop.")
                raise Exhausted(errors.LeftToPython(text))
        self.mode.blocks.append(block)
        self.builder.at_end(block)
        snapshot = Snapshot(
            self.outside, reached(self.outside, _variables(scope), self.made), self.attribute, self.namespaces
        )
        opened = Opened(block, len(self.mode.journal), self.outside.state(), snapshot, scope, self.stores())
        opened.place = place
        opened.spoiled, opened.tested = len(self.mode.spoiled), dict(self.mode.tested)
        self.opened.append(opened)
        return opened

    def note(self, made: Any) -> None:
        """An object of a user's class was made."""
        self.made[id(made)] = made
        if self.opened:
            self.opened[-1].born[id(made)] = made

    def check_owner(self, owner: Any, name: str) -> None:
        """An attribute of an object that the trace made may be set where the change is seen.

        Raises:
            TraceError: it may not: the object has slots, or was made by code that is not traced.
        """
        if self.opened and id(owner) not in self.opened[-1].born:
            is_seen = id(owner) in self.made and type(getattr(owner, "__dict__", None)) is dict
            if not is_seen or not any(r.holder is owner.__dict__ for r, _ in self.opened[-1].snapshot.containers):
                self.fail_change(f"the attribute {name} of a {type(owner).__name__}")

    def check_iterator(self, x: Any) -> None:
        """An iterator may be advanced in the region that made it.

        Raises:
            TraceError: it comes from around.
        """
        for opened in self.opened:
            for name, value in _variables(opened.scope).items():
                if value is x:
                    self.fail_change(f"the iterator {name}")
            for held, items in opened.snapshot.containers:
                if any(i is x for i in (items.values() if type(items) is dict else items)):
                    self.fail_change(f"an iterator in {held.text}")

    def check_variables(self, opened: Opened, now: Any, assigned: Collection[str]) -> None:
        """Variables that the statement itself does not assign are as they were.

        Raises:
            TraceError: a function that it calls changed one.
        """
        before = opened.scope
        for held, value in opened.snapshot.bound():
            if held.text not in assigned or now.get(held.text) is not value:
                self.fail_change(held.describe())
        if isinstance(before, Scope) and isinstance(now, Scope):
            assigned = {*assigned, *opened.snapshot.variables}
            for name, value in now.locals.items():
                if before.locals.get(name, value) is not value and name not in assigned and not name.startswith("_jg_"):
                    self.fail_change(f"the variable {name}")
        for key, value in self.stores().items():
            if opened.stores.get(key) is not value and key[1] not in assigned:
                self.fail_change(f"the variable {key[1]}")

    def close(self, opened: Opened, *, failed: bool = False, cells: bool = False) -> dict[Storage, Any]:
        """Leave the region; storages from before it that were written, with their last versions.

        Python objects are as they were before it; `opened.cells` says what the region left in them.

        Args:
            failed: it is given up, or ends in an error.
            cells: the caller hands on what was left in Python objects.

        Raises:
            TraceError: the region changed a Python object in a way that cannot be handed on; `Reshaped` if `cells`.
        """
        mode = self.mode
        self.abandoned = self.abandoned or failed
        while mode.blocks[-1] is not opened.block:
            mode.blocks.pop()
        while self.opened.pop() is not opened:
            pass
        mode.tested = opened.tested
        snapshot = opened.snapshot
        found: list[tuple[Cell, Any]] = []
        reshaped = ""
        try:
            found = [(cell, cell.get()) for cell in snapshot.changed()]
        except Reshaped as answer:
            reshaped = str(answer)
        opened.is_touched = bool(found or reshaped)
        snapshot.restore()
        if not failed:
            if found and not cells:
                reshaped = reshaped or found[0][0].text
            if not reshaped:
                self._check_untouched(opened)
        mode.blocks.pop()
        self.builder.at_end(mode.blocks[-1])
        changed = self._restore(opened, failed)
        if not failed:
            try:
                opened.cells = [(snapshot.settled(cell), value) for cell, value in found]
            except Reshaped as answer:
                reshaped = str(answer)
            if reshaped and cells:
                raise Reshaped(reshaped)
            if reshaped:
                self.fail_change(reshaped)
        return changed

    def _restore(self, opened: Opened, failed: bool) -> dict[Storage, Any]:
        entry: dict[Storage, Any] = {}
        for storage, old in self.mode.journal[opened.journal :]:
            if storage not in entry:
                entry[storage] = old
        del self.mode.journal[opened.journal :]
        if failed:  # `undo` makes arrays usable again: with the versions from before
            spoiled = self.mode.spoiled
            spoiled[opened.spoiled :] = [(s, mode, entry.get(s, old)) for s, mode, old in spoiled[opened.spoiled :]]
        changed: dict[Storage, Any] = {}
        for storage, old in entry.items():
            if not defined_in(old, opened.block):
                changed[storage] = storage.value
                storage.value = old
        return changed

    def revive(self, opened: Opened, written: Collection[Storage]) -> dict[Storage, Any]:
        """Arrays from before a closed side of a branch that it made unusable, with their modes; they are usable again.

        Args:
            written: storages that it wrote, whose values are those from before already.
        """
        first: dict[Storage, tuple[Any, Any]] = {}
        kept: list[tuple[Storage, Any, Any]] = []
        for storage, mode, old in self.mode.spoiled[opened.spoiled :]:
            outer = storage in first or storage in written or (old is not None and not defined_in(old, opened.block))
            if outer:
                first.setdefault(storage, (mode, old))
            else:
                kept.append((storage, mode, old))
        self.mode.spoiled[opened.spoiled :] = kept
        stale = {storage: storage.mode for storage in first}
        for storage, (mode, old) in first.items():
            storage.mode = mode
            if storage not in written:
                storage.value = old
        return stale

    def _check_untouched(self, opened: Opened) -> None:
        before = opened.outside
        for key, value in self.outside.state().items():
            if before.get(key) is not value:
                self.fail_change("an object from outside the function")

    def ask_first_turns(self, error: Exception, within: object = None) -> None:
        """What a branch or a loop (`within`) was refused may be of a type that a name has from a loop's second turn on.

        Raises:
            NeedsFirstTurn: the first turn of a loop around it can be traced in front of that loop.
        """
        if isinstance(error, TypeError | LookupError | AttributeError | ArithmeticError):
            for opened in reversed(self.opened):
                if opened.loop is not None and opened.loop is not within:
                    opened.loop.ask_first_turn()

    def fail_change(self, what: str) -> NoReturn:
        self.mode.leave(
            f"{what} is changed under a test or in a loop that the compiled code decides when it runs",
            "use arrays made before (out = np.zeros(n); out[i] = ...), or variables of the function itself, "
            "or make the test or the loop static.",
        )

    # --- undo

    def mark(self) -> Mark:
        graph, builder = self.mode.builder.graph, self.builder
        return Mark(
            len(self.mode.journal),
            len(self.mode.spoiled),
            self.mode.watching(),
            list(graph.guards),
            graph.facts.copy(),
            dict(builder._decided),
            self.mode.conclusions(),
            set(graph.symbols),
            len(graph.sites),
            builder.block.last,
            builder.block,
        )

    def undo(self, mark: Mark, *blocks: Block) -> None:
        """Forget everything since `mark`: ops (those in the abandoned `blocks` too), writes, guards, symbols, sites."""
        graph, builder = self.builder.graph, self.builder
        for block in blocks:
            discard(block)
        while mark.block.last is not mark.last:
            op = mark.block.last
            assert op is not None
            for inner in op.walk():
                _drop_uses(inner)
            mark.block.unlink(op)
        for storage, mode, old in reversed(self.mode.spoiled[mark.spoiled :]):
            storage.mode, storage.value = mode, old
        del self.mode.spoiled[mark.spoiled :]
        self.mode.stop_watching(mark.watched)
        for storage, old in reversed(self.mode.journal[mark.journal :]):
            storage.value = old
        del self.mode.journal[mark.journal :]
        graph.guards[:] = mark.guards
        arguments = {n: s for n, s in graph.symbols.items() if n not in mark.symbols and s.origin == "arg"}
        facts = mark.facts.copy()
        for name in [n for n in graph.symbols if n not in mark.symbols and n not in arguments]:
            del graph.symbols[name]
        for name, s in arguments.items():
            facts.bound(name, s.lower, s.upper)
        graph.facts = facts
        builder._decided = dict(mark.decided)
        self.mode.restore_conclusions(mark.concluded)
        del graph.sites[mark.sites :]

    # --- tests

    def truth(self, x: Any) -> bool | Value:
        """The truth of `x`: known, decided under a guard, or a bool value of the graph.

        Raises:
            ValueError: an array of more than one element, as NumPy.
        """
        if type(x) is not Tensor:
            if type(x) is Poison:
                x.fail()
            return len(x) > 0 if isinstance(x, Sequenced) else bool(x)
        if not x.is_traced:
            return bool(x)
        mode = self.mode
        dim = x._dim
        if dim is not None and x.type.kind == "py_int":
            try:
                return not mode.decide("==", dim, 0)  # type: ignore[arg-type]  # a py_int has a size, no ratio
            except Undecided:
                pass
        t = x.type
        value: Value = lift(mode, only_element(mode, x) if t.shape else x)
        known = constant_of(value)
        if known is not None:
            return bool(known)
        apply = mode.builder.apply
        if value.type.dtype.kind != "b":
            value = apply(REGISTRY["ne"], value, 0)[0]
        if value.type.kind != "py_bool":
            value = apply(REGISTRY["as_kind"], value, kind="py_bool")[0]
        return value

    def resolve(self, x: Maybe) -> Any:
        """The value of a variable that is bound on some paths only, with Python's error for the others."""
        truth = self.truth(x.flag)
        if isinstance(truth, Value):
            for opened in self.opened:
                if opened.loop is not None:
                    opened.loop.resolved.add(x.name)
            self.mode.check(truth, "UnboundLocalError", unbound_text(x.name))
        elif not truth:
            x.fail()
        return x.value

    # --- the number of turns

    def at_least_one(self, trips: DimLike) -> bool | None:
        """Whether a loop runs at least once: proven, or guarded; None if only the run can tell."""
        try:
            return self.mode.decide(">=", trips, 1)
        except Undecided:
            return None

    def is_countable(self, trips: DimLike) -> bool:
        """Whether the number of turns follows from the sizes of arguments and from integers among them."""
        return self.mode.integers_behind(trips) is not None

    def deoptimise_unless(self, trips: DimLike, why: str, *, stopped: Any = False, undo: bool = False) -> bool:
        """Rerun the call in Python when the loop has no turn; False if something visible may have been written.

        Args:
            stopped: a traced bool: whether a turn in front of it ended the loop.
            undo: arrays of the caller's that were written are put back, if that is all.
        """
        mode = self.mode
        if not (mode.can_rerun() or (undo and mode.can_turn_back())):
            return False
        runs = mode.compare("ge", trips, 1)
        if stopped is not False:
            apply = mode.builder.apply
            runs = apply(REGISTRY["logical_and"], runs, apply(REGISTRY["logical_not"], lift(mode, stopped))[0])[0]
        if mode.can_rerun():
            mode.check(runs, "deoptimise", why)
        else:
            mode.leave_to_python(runs, why)
        return True


def _variables(scope: Any) -> dict[str, Any]:
    """All variables of a scope."""
    if isinstance(scope, Overlay):
        return _variables(scope.base) | scope.values
    return scope.locals if isinstance(scope, Scope) else {}


def defined_in(value: Any, block: Block) -> bool:
    """Whether the value is made in this block itself (not in one around or inside of it)."""
    if not isinstance(value, Value):
        return False
    return value.block is block if value.producer is None else value.producer.block is block


def _drop_uses(op: Op) -> None:
    for i, operand in enumerate(op.operands):
        operand.uses.pop((op, i), None)


def leak(graph: Graph) -> Op | None:
    """An op that uses a value made inside a branch or loop that it does not stand in; None if there is none."""
    around: set[Block] = set()

    def visit(block: Block) -> Op | None:
        around.add(block)
        for op in block.ops():
            for v in op.operands:
                if (v.block if v.producer is None else v.producer.block) not in around:
                    return op
            for region in op.regions:
                if (found := visit(region)) is not None:
                    return found
        around.discard(block)
        return None

    return visit(graph.body)


def discard(block: Block) -> None:
    """Take an abandoned region's ops out of the use lists."""
    for op in block.ops():
        for inner in op.walk():
            _drop_uses(inner)


def sweep(graph: Graph) -> None:
    """Take ops of blocks that were given up out of the use lists."""
    live = set(graph.walk())
    for block in graph.blocks():
        values = [*block.args, *(r for op in block.ops() for r in op.results)]
        for value in values:
            for use in [u for u in value.uses if u[0] not in live]:
                del value.uses[use]


def is_the_users(error: Exception) -> bool:
    """Whether an exception is what the user's code or NumPy's rules raise, rather than a fault in here."""
    if isinstance(error, errors.JitgraphError):
        return not isinstance(error, errors.TraceError | errors.InternalError)
    if isinstance(error, NeedsFirstTurn) or type(error).__module__.startswith("jitgraph.tracing.carried"):
        return False
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or not tb.tb_frame.f_globals.get("__name__", "").startswith("jitgraph."):
        return True
    if isinstance(error, ArithmeticError | ValueError | IndexError | NameError | NotImplementedError):
        return True
    # an error raised here on purpose (`len` of an array without axes, `assert`) is a `raise`, one of an operation that
    # is done for the user comes from C code; a fault in here is neither
    code, name = tb.tb_frame.f_code.co_code[tb.tb_lasti], tb.tb_frame.f_globals["__name__"]
    on_behalf = code in _OPERATIONS and name in _ON_BEHALF
    return isinstance(error, TypeError | AttributeError | KeyError | AssertionError) and (code == _RAISE or on_behalf)


def splice(source: Block, target: Block) -> None:
    """Move the ops of `source` to the end of `target`."""
    for op in source.ops():
        source.unlink(op)
        target.append(op)


def is_cheap(block: Block, limit: int = 6) -> bool:
    """Only a few pure operations on scalars: as well done always."""
    for count, op in enumerate(block.ops()):
        if count == limit or not op.defn.has(Trait.PURE) or op.regions or any(r.type.shape for r in op.results):
            return False
        if any(v.type.kind == "array" for v in op.operands):
            return False
    return True


#: As many values as a failed check reports.
_MOST_VALUES = 4
_RAISE = opcode.opmap["RAISE_VARARGS"]
#: What calls C code, and the modules that do so with the user's operands.
_OPERATIONS = {
    code for name, code in opcode.opmap.items()
    if name.startswith(("BINARY_", "CALL", "COMPARE_", "CONTAINS_", "GET_ITER", "PRECALL", "UNARY_", "UNPACK_"))
    or name.endswith("_SUBSCR")
}  # fmt: skip
_ON_BEHALF = {
    f"jitgraph.{name}"
    for name in (
        "tracing.builtin_programs",
        "tracing.entrust",
        "tracing.iteration",
        "tracing.loop_regions",
        "tracing.members",
        "tracing.operators",
        "tracing.ordering",
        "tracing.standins",
        "xp.reductions",
        "xp.scalars",
    )
}
_SHOWN = re.compile("\x01(\\d+):([^\x01]*)\x01")


class Unshowable(Exception):  # noqa: N818  # an answer
    """The text of an exception shows more than a failed check can report: Python is to raise it."""


class Message:
    """Collects the traced values that the texts of an exception show."""

    def __init__(self, mode: CaptureMode) -> None:
        self.mode = mode
        self.values: list[Tensor] = []

    def _number(self, x: Tensor) -> int:
        if x.type.kind == "array" or x.type.dtype.kind not in "biuf":
            raise Unshowable
        self.values.append(x)
        return len(self.values) - 1

    def text(self, text: str) -> str:
        """A text as a format string."""
        if "<traced " in text:
            raise Unshowable
        parts = _SHOWN.split(text)
        message = parts[0].replace("{", "{{").replace("}", "}}")
        for k in range(1, len(parts), 3):
            number, spec, rest = parts[k : k + 3]
            form = spec if spec.startswith("!") or not spec else f":{spec}"
            message += f"{{{self._number(self.mode.shown[int(number)])}{form}}}"
            message += rest.replace("{", "{{").replace("}", "}}")
        return message

    def part(self, x: Any) -> Any:
        """An argument or attribute of an exception, for its recipe."""
        if type(x) is str and ("\x01" in x or "<traced " in x):
            return errors.Template(self.text(x))
        if type(x) is Tensor and x.is_traced:
            return errors.Shown(self._number(x))
        if type(x) in (tuple, list):
            return type(x)([self.part(i) for i in x])
        if any_traced(x):
            raise Unshowable
        return x

    def recipe(self, error: BaseException) -> errors.Recipe:
        """How to make the exception anew."""
        cause = error.__cause__
        return errors.Recipe(
            type(error),
            tuple([self.part(x) for x in error.args]),
            tuple([(k, self.part(x)) for k, x in _attributes(error) if not k.startswith("__jitgraph")]),
            None if cause is None else self.recipe(cause),
            error.__suppress_context__,
        )


def _attributes(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The attributes of an exception, those in slots of its classes too (NumPy's `AxisError` has some)."""
    yield from vars(error).items()
    for kind in type(error).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and name.endswith("__"):  # `__dict__`
                continue
            attribute = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name
            if hasattr(error, attribute):
                yield attribute, getattr(error, attribute)


def unmade(kind: type, *, is_shown: bool, changes: bool = False) -> str:
    """Why compiled code does not raise an error of this class."""
    if changes:
        return f"a branch or loop changes Python objects and then raises a {kind.__name__}"
    if is_shown:
        return f"the text of a {kind.__name__} shows an array, or more than {_MOST_VALUES} values of the run"
    return f"{kind.__name__} that depends on data is handled by `try`"


def message_of(error: Exception, mode: CaptureMode) -> tuple[str, list[Tensor], errors.Recipe | None]:
    """The format string of a site that raises `error`, the traced scalars that it shows, and how to make it.

    There is no recipe for an exception that shows arrays, or too many values.
    """
    message = Message(mode)
    text = str(error.args[0]) if len(error.args) == 1 else str(error)
    parts = _SHOWN.split(text)
    shown = "".join("..." if k % 3 == 1 else part for k, part in enumerate(parts) if k % 3 != 2)
    shown = shown.replace("{", "{{").replace("}", "}}")
    try:
        recipe = message.recipe(error)
    except Unshowable:
        return shown, [], None
    if len(message.values) > _MOST_VALUES:
        return shown, [], None
    return shown, message.values, replace(recipe, kinds=tuple([_python_class(x) for x in message.values]))


def _python_class(x: Tensor) -> Any:
    kinds: dict[str, Any] = {"py_bool": bool, "py_int": int, "py_float": float}
    return kinds.get(x.type.kind, x.type.dtype.type)
