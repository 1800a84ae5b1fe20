"""`CaptureMode`: how the operators of one trace of a Python function are emitted, located and refused."""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import Dim, DimLike, symbol, symbols
from jitgraph.ir.graph import Block, Site, Symbol, Value
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import PYTHON_KINDS, IndexMap
from jitgraph.modes import TraceMode
from jitgraph.source import SourceLoc
from jitgraph.tensor import Storage, Tensor, read, wrap
from jitgraph.tracing import floating, host
from jitgraph.tracing.choices import Choice, Watched
from jitgraph.tracing.foresight import Foresight
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.iteration import Range
from jitgraph.tracing.reruns import Handled
from jitgraph.tracing.restart import Restart
from jitgraph.tracing.trace import Assumption

if TYPE_CHECKING:
    from jitgraph.tracing.objects import Objects
    from jitgraph.tracing.outside import Outside


def called_by_user() -> bool:
    """Whether the innermost frame that is traced is the user's, not one of NumPy's own."""
    frame = sys._getframe(1)
    while frame is not None:
        if type(frame.f_globals) is TraceGlobals:
            return frame.f_globals.is_user
        frame = frame.f_back  # type: ignore[assignment]
    return True


def user_frame(frame: Any = None) -> Any:
    """The innermost frame of the user's code in the running trace, from `frame` outwards; None outside of one."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        if type(frame.f_globals) is TraceGlobals and frame.f_globals.is_user:
            return frame
        frame = frame.f_back
    return None


def _is_calling(frame: Any) -> bool:
    """Whether the instruction at hand is a call: the frame's own code does not ask what the callee asks for."""
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and dis.opname[code[at]] == "CACHE":
        at -= 2
    return bool(dis.opname[code[at]].startswith("CALL"))


def user_place() -> SourceLoc | None:
    """Where the user's code stands."""
    frame = user_frame()
    return None if frame is None else SourceLoc.of_instruction(frame.f_code, frame.f_lasti)


def frame_of(error: BaseException) -> tuple[Any, SourceLoc | None]:
    """The innermost frame of the user's code that an error came through, and its place."""
    found, loc = None, None
    tb = error.__traceback__
    while tb is not None:
        space = tb.tb_frame.f_globals
        if type(space) is TraceGlobals and space.is_user:
            found, loc = tb.tb_frame, SourceLoc.of_instruction(tb.tb_frame.f_code, tb.tb_lasti)
        tb = tb.tb_next
    return found, loc


class Shown:
    """A traced scalar in text: a mark, filled in if the text is the message of an error that compiled code raises."""

    __slots__ = ("mode", "x")

    def __init__(self, mode: CaptureMode, x: Tensor) -> None:
        self.mode, self.x = mode, x

    def __format__(self, spec: str) -> str:
        self.mode.shown.append(self.x)
        return f"\x01{len(self.mode.shown) - 1}:{spec}\x01"


#: Assumptions of a trace that are as the traced call has them, or hold, unless a call has shown the opposite; twice as
#: many as calls have shown, if that is more. Those behind do not hold: so a loop that Python runs while a test holds
#: has an end in the trace, and a call that takes more turns goes to another trace.
_HELD: Final = 32
#: Most operators between integer arguments and a number of turns that is made of them.
_MOST_BEHIND: Final = 64
#: Most assumptions of a trace: what asks more of data is a search or a filter of Python's, and each data another way.
_MOST_ASSUMED: Final = 64


class CaptureMode(TraceMode):
    """The mode of one trace.

    Attributes:
        outside: what is read and stored outside of the trace.
        leaf_of: graph argument number to the leaf of the call that it is; hidden arguments are not in it.
        blocks: the blocks that are open, outermost first.
    """

    outside: Outside

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        builder.locate = user_place
        self.leaf_of: dict[int, int] = {}
        #: Whether a traced number was a key.
        self.hashes = False
        #: Whether there are Tensors among the arguments.
        self.tensors = False
        #: Strides of array arguments in the call that is traced.
        self.strides: dict[int, tuple[int, ...]] = {}
        #: Traced scalars that were formatted in a region.
        self.shown: list[Tensor] = []
        #: Exception classes that the user's `try` statements around handle.
        self.handled: list[tuple[type[BaseException], ...]] = []
        #: The same, of what only looks at them on their way.
        self.noticed: list[tuple[type[BaseException], ...]] = []
        #: Floating-point conditions that raise here, by `np.errstate`'s names.
        self.raising: frozenset[str] = frozenset()
        #: Scalars whose kind depends on the path: the joined value to its `kinds.Tag`.
        self.kinds: dict[Value, Any] = {}
        #: Values whose type Python code asked for: `isinstance(x, int)`, `x.dtype`.
        self.asked: set[Value] = set()
        #: Values that were handed to a function: it may have looked at their types though no operator shows it.
        self.handed: set[Value] = set()
        #: Integers that a loop carries from a small constant on; nothing computes with them while their kind is open.
        self.small: set[Value] = set()
        #: Where the function is defined: the place of what happens when it has returned.
        self.definition: SourceLoc | None = None
        #: Branches of which one side is assumed, by `Regions.key_of`.
        self.settled: set[Any] = set()
        #: Loops whose turns are traced one by one, by `Regions.place_of`, with the error of the region.
        self.unrolled: dict[Any, errors.TraceError] = {}
        #: How many turns of them there are so far.
        self.turns = 0
        #: What bools are in this call, if that is cheap to know.
        self.foresight = Foresight(builder.graph)
        #: Answers to `assume`, in order, that calls of the compiled code gave; further ones are foreseen, or guessed.
        self.path: tuple[bool, ...] = ()
        #: The same, by the places that asked.
        self.answered: dict[SourceLoc | None, list[bool]] = {}
        #: The answers of this trace.
        self.assumed: list[bool] = []
        self.known_flags: dict[Value, bool] = {}
        #: What the tests of the branches around say of bools.
        self.tested: dict[Value, bool] = {}
        #: Whether a value of several types is its option k, by the number that says so and k (see `options`).
        self.option_flags: dict[tuple[Value, int], Value] = {}
        #: Whether a call back with an effect was emitted.
        self.effects = False
        self.blocks: list[Block] = [builder.block]
        #: Symbols that integers were bound to, by integers and bounds, with the blocks of the ops.
        self._bound: dict[tuple[Value, DimLike | None, DimLike | None], list[tuple[Block, DimLike]]] = {}
        #: Storages that may share memory with others on one path.
        self._watched: list[Watched] = []
        #: Copies that may be views of another storage, with the key to settle that: see `perhaps_view`.
        self._perhaps: list[tuple[Storage, Storage, Any]] = []
        #: What functions return, to be watched from the end of their calls on.
        self._returned: list[Watched] = []
        #: Storages that were made unusable, with their mode and value from before.
        self.spoiled: list[tuple[Storage, Any, Any]] = []
        #: Copies at the start of a turn of arrays from before a loop: (copy, arrays, the error of a stale one).
        self._copied: list[tuple[Storage, list[Storage], Callable[[], BaseException]]] = []
        #: What merged arrays are copies of.
        self.choices: dict[Storage, Choice] = {}
        #: What merged values are in Python, by identity (see `identity`).
        self.either: dict[int, Any] = {}
        #: Storages that were written, on some path, by what a merge made of them.
        self.written_through: set[Storage] = set()
        #: The numbers that say which object a name stands for, in a trace where that matters.
        self.objects: Objects | None = None
        #: Merged arrays that are read-only on one path, with the branch whose way is assumed if one is written.
        self.locked: dict[Storage, Any] = {}

    def ask(self, x: Any) -> None:
        """Python code asks for the type of `x`, and no operator of the graph shows it: see `carried_kinds.compare`."""
        if type(x) is Tensor and x.is_traced and not x._steps:
            self.asked.add(x._storage.value)

    def hand(self, arguments: Iterable[Any]) -> None:
        """A function gets `arguments`, in a turn or a branch: see `handed`."""
        for x in arguments:
            if type(x) is Tensor and not x._steps:
                self.handed.add(x._storage.value)
            elif type(x) is list or type(x) is tuple:
                self.hand(x)

    def apply(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Value, ...]:
        results = super().apply(defn, values, attrs)
        if self.raising:
            floating.check(self, defn, values, results)
        return results

    def lift_plain(self) -> None:
        if not self.lifts:
            raise Restart(lifts=True)

    def lifted(self, made: Any) -> Any:
        if isinstance(made, np.ndarray) and made.dtype.kind in "biufc" and made.dtype.isnative:
            return self.outside.static.constant(made, "array")
        return type(made)([self.lifted(x) for x in made]) if type(made) in (tuple, list) else made

    def refused_at(self) -> SourceLoc | None:
        return super().refused_at() or self.definition

    def stride(self, argument: int, axis: int) -> Dim | None:
        example = self.strides.get(argument)
        if example is None:
            return None
        symbols = self.builder.graph.symbols
        known = next(
            (s for s in symbols.values() if s.origin == "arg" and (s.arg, s.axis) == (argument, -1 - axis)), None
        )
        if known is not None:
            return symbol(known.name)
        count = 0
        while f"stride{count}" in symbols:
            count += 1
        name = f"stride{count}"
        self.builder.graph.add_symbol(Symbol(name, "arg", argument, -1 - axis, lower=None, hint=example[axis]))
        return symbol(name)

    def is_visible(self, value: Value) -> bool:
        """Whether a value of the graph is made where the builder's place may use it."""
        block: Block | None = value.block if value.producer is None else value.producer.block
        return block in self.blocks or block is self.builder.block

    def watch(self, storage: Storage, sources: list[Storage], settle: Any = None, *, late: bool = False) -> None:
        """`storage` holds a value that is, on some path, the memory of `sources`: write one, and the other is unread.

        Args:
            settle: the branch whose way is assumed if one is written all the same.
            late: it is what a function returns: what runs until then runs on paths on which it has not returned.
        """
        sources = [s for s in sources if s is not storage]
        if sources:
            (self._returned if late else self._watched).append(Watched(storage, sources, settle))

    def perhaps_view(self, storage: Storage, source: Storage, sizes: list[DimLike]) -> None:
        """The run is given up for Python where one of the sizes is 1, once the function shows that it matters."""
        frame = user_frame()
        key = (("view", frame.f_code, frame.f_lasti) if frame is not None else ("view",), 0)
        if key not in self.settled:
            self.watch(storage, [source], key)
            self._perhaps.append((storage, source, key))
        elif self.can_turn_back():
            for d in sizes:
                self.leave_to_python(self.compare("ne", d, 1), "a reshape is a view where an axis has one element")
        else:
            self.watch(storage, [source])

    def show(self, storages: set[Storage]) -> None:
        """The function returns what is in these storages: whether one is a view of another one matters.

        Raises:
            Restart: see `perhaps_view`.
        """
        for storage, source, key in self._perhaps:
            if storage in storages and (source in storages or source.origin is not None):
                raise Restart(settle=key)

    def watch_as(self, storage: Storage, known: Storage, *, late: bool = False) -> None:
        """`storage` may be all that `known` may be."""
        for w in [w for w in (*self._watched, *self._returned) if w.storage is known]:
            self.watch(storage, w.sources, w.settle, late=late)

    def watch_returned(self, known: int) -> None:
        """A call has returned: what it returned is watched from here on.

        Args:
            known: how many storages were to be watched late when it began.
        """
        self._watched += self._returned[known:]
        del self._returned[known:]

    def may_share(self, a: Storage, b: Storage) -> bool:
        """Whether one of two storages is watched for the other's sake."""
        return any(
            (w.storage is a and any(s is b for s in w.sources)) or (w.storage is b and any(s is a for s in w.sources))
            for w in (*self._watched, *self._returned)
        )

    def perhaps(self, storage: Storage) -> set[Storage]:
        """The storages whose memory `storage` is on some path, itself among them."""
        found, waiting = {storage}, [storage]
        while waiting:
            new = self.watched_with(waiting.pop()) - found
            found |= new
            waiting += new
        return found

    def watched_with(self, storage: Storage) -> set[Storage]:
        """What a storage may share memory with."""
        return {s for w in (*self._watched, *self._returned) if w.storage is storage for s in w.sources}

    def on_write(self, storage: Storage, old: Any) -> None:
        super().on_write(storage, old)
        self.outside.static.on_write(storage)
        self.touched(storage)

    def meet_locked(self, storage: Storage, what: str) -> NoReturn:
        """It matters whether an array is read-only, which is so on one path."""
        if self.locked[storage] is not None:
            raise Restart(settle=self.locked[storage])
        self.leave(f"{what} that is read-only on one path", "copy it first (x = x.copy()).")

    def touched(self, storage: Storage) -> None:
        """`storage` is written, by its own name or by that of what a loop carries in its place."""
        if storage in self.locked:
            self.meet_locked(storage, "a write to an array")
        lent = self._behind(storage)
        settle = next((w.settle for w in self._watched if w.storage is storage and w.settle is not None), None)
        if any(s.origin is not None for s in lent):  # the caller would miss the write
            if settle is not None:
                raise Restart(settle=settle)
            self.leave(
                "a write to an array that may be one of two, depending on a traced test or the turns of a loop",
                "copy it first (x = x.copy()), or write in the branches.",
            )
        for source in lent:
            self.written_through.add(source)
            if source.value is not None:
                spoil(self, source, settle)
        self._lose_copies([storage, *lent])
        for copy, sources, error in self._copied:
            if copy is storage:
                for source in sources:
                    if source.value is not None:
                        spoil(self, source, None, error=error)

    def copied(self, storage: Storage, sources: list[Storage], error: Callable[[], BaseException]) -> None:
        """`storage` is a copy of what `sources` hold now, where Python has views: no longer so when one is written.

        Args:
            error: what a use of the others raises from then on.
        """
        self._copied.append((storage, sources, error))

    def _behind(self, storage: Storage) -> list[Storage]:
        """The storages whose memory `storage` is on some path; those of them that may be one of others, too."""
        found: list[Storage] = []
        waiting = [storage] if self._watched else []
        while waiting:
            at = waiting.pop()
            for w in self._watched:
                if w.storage is at:
                    new = [s for s in w.sources if s is not storage and s not in found]
                    found += new
                    waiting += new
        return found

    def _lose_copies(self, written: list[Storage]) -> None:
        """What may be the memory of a storage that is written, on some path, cannot be used any more.

        That of a merge of merges is so, too: what may be what may be that memory.
        """
        reached = dict.fromkeys(written)
        waiting = list(reached)
        while waiting:
            at = waiting.pop(0)
            for copy, sources, error in self._copied:
                if copy not in reached and any(at is s for s in sources):
                    reached[copy] = None
                    waiting.append(copy)
                    if copy.value is not None:
                        spoil(self, copy, None, error=error)
            for w in self._watched:
                if w.storage not in reached and any(at is s for s in w.sources):
                    reached[w.storage] = None
                    waiting.append(w.storage)
                    if w.storage.value is not None:
                        spoil(self, w.storage, w.settle)

    def written_in_turns(self, storage: Storage) -> None:
        """A loop writes to `storage`: what may be its memory is not known at the start of a turn."""
        self._lose_copies([storage])

    def is_behind(self, storage: Storage, sources: Container[Storage]) -> bool:
        """Whether `storage` may be the memory of one of `sources`, on some path."""
        return any(s in sources for s in self._behind(storage))

    def watching(self) -> tuple[int, int, int]:
        """How many storages are watched, for `stop_watching`; those of what is returned last."""
        return len(self._watched), len(self._copied), len(self._returned)

    def stop_watching(self, known: tuple[int, int, int]) -> None:
        """Forget the storages that are watched since: an attempt that is given up made them."""
        del self._watched[known[0] :]
        del self._copied[known[1] :]
        del self._returned[known[2] :]

    def forget_copies(self, known: tuple[int, int, int]) -> None:
        """No turn of the loop follows, at the start of which `copied` was told of arrays."""
        del self._copied[known[1] :]

    def conclusions(self) -> tuple[dict[Any, Any], ...]:
        bound = {value: list(known) for value, known in self._bound.items()}
        return *super().conclusions(), bound, dict(self.known_flags), {"turns": self.turns}

    def restore_conclusions(self, known: tuple[dict[Any, Any], ...]) -> None:
        super().restore_conclusions(known)
        self._bound = {value: list(places) for value, places in known[2].items()}
        self.known_flags = dict(known[3])
        self.turns = known[4]["turns"]
        del self.assumed[len(self.known_flags) :]

    def foreign(self, array: np.ndarray) -> Value:
        return self.outside.static.foreign(array)

    def lift(self, x: Any) -> Value:
        if isinstance(x, (list, tuple)):
            array = np.asarray(x)
            if array.dtype.kind in "biuf":  # numbers only: their values are part of the trace
                return self.builder.constant(array)
        if isinstance(x, Range):
            return read(x.array())  # type: ignore[no-any-return]
        return super().lift(list(x) if type(x) is range else x)

    def bind(
        self, value: Value, prefix: str = "i", lower: DimLike | None = None, upper: DimLike | None = None
    ) -> DimLike:
        """One symbol for one integer, wherever its op is in scope; an integer argument's is known to the caller."""
        key = (value, lower, upper)
        known = self.symbol_of(value) if lower is None and upper is None else self._symbol(key)
        if known is not None:
            return known
        dim = super().bind(value, prefix, lower, upper)
        name, graph = str(dim), self.builder.graph
        if value.block is graph.body and lower is None and upper is None and name in graph.symbols:
            graph.symbols[name] = Symbol(name, "value", arg=value.index, axis=-1)
        self._bound.setdefault(key, []).append((self.builder.block, dim))
        return dim

    def symbol_of(self, value: Any) -> DimLike | None:
        """The symbol that an integer is bound to, if it is; that of a size before another one."""
        found = self._symbol((value, 0, None))
        return self._symbol((value, None, None)) if found is None else found

    def _symbol(self, key: tuple[Value, DimLike | None, DimLike | None]) -> DimLike | None:
        return next((dim for block, dim in self._bound.get(key, ()) if block in self.blocks), None)

    def index_symbol(self, name: str, lower: DimLike, upper: DimLike) -> str:
        """A symbol for a loop index with inclusive bounds."""
        graph = self.builder.graph
        if not name.isidentifier() or name.startswith("_"):
            name = graph.unused_name("i")
        elif name in graph.symbols:
            name = graph.unused_name(name)
        graph.add_symbol(Symbol(name, "index", lower=lower, upper=upper))
        return name

    def index_value(self, name: str) -> DimLike:
        return symbol(name)

    def known_key(self, key: Any) -> Any:
        """A key of a dict or an item of a set as Python has it: a traced number that was hashed is a known one."""
        if type(key) is Tensor and key.is_traced:
            return self.concrete(key, "hash")
        if type(key) is tuple or type(key) is frozenset:
            known = [self.known_key(k) for k in key]
            return key if all(a is b for a, b in zip(known, key, strict=True)) else type(key)(known)
        return key

    def know_keys(self, container: Any) -> None:
        """Make the keys of a dict, or the items of a set, known ones: no traced value outlives the trace in them."""
        known = [self.known_key(k) for k in container]
        if all(a is b for a, b in zip(known, container, strict=True)):
            return
        items = list(container.values()) if isinstance(container, dict) else known
        container.clear()
        container.update(zip(known, items, strict=True) if isinstance(container, dict) else known)

    def concrete(self, x: Tensor, wanted: str) -> Any:
        self.hashes = self.hashes or wanted == "hash"
        if wanted == "format" and (len(self.blocks) > 1 or self.assumed):
            return Shown(self, x)
        value = x._storage.value
        if (
            isinstance(value, Value)
            and value.block is self.builder.graph.body
            and (x.type.kind in PYTHON_KINDS or (x.type.kind == "np_scalar" and wanted == "index"))
            and wanted != "bool"
        ):
            self.specialise(value)
        return super().concrete(x, wanted)

    def refuse(self, x: Tensor, wanted: str) -> NoReturn:
        """As in every trace; what code that is not traced (`filter`, `list.index`) asks for is left to Python."""
        if wanted == "bool" and _is_calling(user_frame()):
            self.leave("code that is not traced needs the truth of a traced value", "write it as a loop.")
        super().refuse(x, wanted)

    def concrete_dim(self, dim: DimLike, wanted: str) -> int:
        """As in every trace; an integer argument that the size is made of becomes part of the specialisation."""
        if isinstance(dim, Dim):
            for value in self.integers_behind(dim) or ():
                self.specialise(value)
        return super().concrete_dim(dim, wanted)

    def integers_behind(self, dim: DimLike) -> list[Value] | None:
        """Scalar arguments that a size follows from, beside sizes of arguments; None if other data is behind it."""
        graph = self.builder.graph
        made = {op.attrs["symbol"]: op.operands[0] for block in self.blocks for op in block.ops() if op.name == "bind"}
        found: list[Value] = []
        waiting: list[Value | DimLike] = [dim]
        for _ in range(_MOST_BEHIND):
            if not waiting:
                return found
            x = waiting.pop()
            if not isinstance(x, Value):
                for s in [graph.symbols[name] for name in symbols(x)]:
                    if s.origin == "value" and s.arg >= 0:
                        found.append(graph.args[s.arg])
                    elif s.origin == "value" and s.name in made:
                        waiting.append(made[s.name])
                    elif s.origin != "arg":
                        return None
            elif x.type.ndim or x.type.dtype.kind not in "iub":
                return None
            elif x.producer is None:
                if x.block is not graph.body or not (x.index in self.leaf_of or self.outside.number_path(x)):
                    return None
                found.append(x)
            elif x.producer.name == "dim":
                waiting.append(x.producer.attrs["value"])
            elif x.producer.regions or Trait.PURE not in x.producer.defn.traits:
                return None
            else:
                waiting += x.producer.operands
        return None

    def specialise(self, value: Value) -> None:
        """Trace anew with an argument, or a number from outside, that Python knows; nothing if it is neither.

        Raises:
            Restart: it is one.
        """
        leaf = self.leaf_of.get(value.index)
        if leaf is not None:
            raise Restart(static_leaf=leaf)
        path = self.outside.number_path(value)
        if path:
            raise Restart(fix=path)

    def repr_of(self, x: Tensor) -> str | None:
        if len(self.blocks) == 1 and not self.assumed:
            return str(self.concrete(x, "repr")) if x.type.kind == "py_int" and isinstance(x._dim, Dim) else None
        return Shown(self, x).__format__("!r")

    def check(self, condition: Value, error: str, message: str, *values: Value | DimLike) -> None:
        """As in every trace, but an error that the user's `try` handles is none: the call is rerun in Python.

        Raises:
            TraceError: it cannot be rerun, for something visible may have been written.
        """
        if (self.handled or self.noticed) and error != "deoptimise":
            kind = getattr(errors, error, None) or getattr(builtins, error, None)
            if isinstance(kind, type) and (self.is_handled(kind) or (self.can_turn_back() and self.is_noticed(kind))):
                if self.can_turn_back():
                    if not self.assume(condition, f"{error} handled by `try`"):
                        shown = [wrap(self, v if isinstance(v, Value) else self.dim_value(v)) for v in values]
                        raise kind(message.format(*shown))
                    return
                self.leave_to_python(condition, f"{error} that depends on data is handled by `try`")
                return
        super().check(condition, error, message, *values)

    def is_handled(self, kind: type) -> bool:
        """Whether a `try` of the user's around handles exceptions of this class."""
        return any(issubclass(kind, h) for handlers in self.handled for h in handlers)

    def is_noticed(self, kind: type) -> bool:
        """Whether a `with` around does something when such an exception passes."""
        return any(issubclass(kind, h) for handlers in self.noticed for h in handlers)

    def leave_to_python(self, condition: Value, why: str) -> None:
        """Rerun the call in Python unless `condition`; `settle_reruns` sees to it that nothing visible precedes it."""
        undone = self.can_turn_back() and self._put_back(condition)
        sites = self.builder.graph.sites
        sites.append(Site("deoptimise", why, self.locate(), Handled(why, undone)))
        self.emit_effect("check", [condition], site=len(sites) - 1)

    def can_rerun(self) -> bool:
        """Whether the call may be given up and run in Python: nothing visible can have been written so far."""
        return self.can_turn_back() and all(s.origin is None for s, _ in self.journal)

    def can_turn_back(self) -> bool:
        """The same, though arrays of the caller's may have been written: their elements can be put back.

        That costs a copy of them in each call; where there is another way, `can_rerun` is what to ask.
        """
        arguments = self.builder.graph.args
        kept = all(s.origin is None or arguments[s.origin].type.shape for s, _ in self.journal)  # scalars are no memory
        return len(self.blocks) == 1 and not self.effects and kept

    def _put_back(self, condition: Value) -> bool:
        """Arrays of the caller's get their first elements back unless `condition`; whether any were written."""
        arguments = self.builder.graph.args
        written = {s: arguments[s.origin] for s, _ in self.journal if s.origin is not None}
        written = {s: first for s, first in written.items() if s.value is not None and s.value is not first}
        if not written:
            return False
        builder = self.builder
        if condition.type.kind != "py_bool":
            condition = builder.apply(REGISTRY["as_kind"], condition, kind="py_bool")[0]
        block, kept, back = builder.block, Block(), Block()
        builder.at_end(kept).emit(REGISTRY["yield"], [s.value for s in written], ())
        builder.at_end(back)
        old = [
            builder.apply(REGISTRY["write"], first, s.value, map=IndexMap.identity(first.type.shape))[0]
            for s, first in written.items()
        ]
        builder.emit(REGISTRY["yield"], old, ())
        builder.at_end(block)
        types = [s.value.type for s in written]
        results = builder.emit(REGISTRY["cond"], [condition], types, {}, (kept, back)).results
        for s, result in zip(written, results, strict=True):
            result.name = s.value.name
            self.journal.append((s, s.value))
            s.value = result
        return True

    def assume(self, flag: Any, why: str) -> bool:
        """The truth of a traced bool, taken for granted: a call where it is the other one goes to another trace.

        Args:
            flag: the graph's value; None of this is needed for a constant.
            why: what the user did, for the error.

        Raises:
            TraceError: something visible may have been written, or this is a loop or a branch: no call can turn back.
        """
        known = constant_of(flag)
        if known is not None:
            return bool(known)
        if flag in self.known_flags:
            return self.known_flags[flag]
        if not self.can_turn_back():
            self.leave(
                f"{why} depends on data, in a loop, in a branch or after an effect that the caller can see",
                "do it before the effect and outside of the loop, or give both cases one type.",
            )
        number = len(self.assumed)
        if number >= _MOST_ASSUMED:
            self.leave(f"{why} depends on data, and so did {number} before it", "use a loop in the function itself.")
        place = self.locate()
        if number < len(self.path):
            answer = self.path[number]
            self.answered.setdefault(place, []).append(answer)
        elif number < max(_HELD, 2 * len(self.path)):
            answer = self._guess(flag, self.answered.get(place, [])[-2:])
        else:
            answer = False
        self.assumed.append(answer)
        self.known_flags[flag] = answer
        condition = flag if answer else self.builder.apply(REGISTRY["logical_not"], flag)[0]
        undone = self._put_back(condition)
        sites = self.builder.graph.sites
        sites.append(Site("deoptimise", f"assumption {number}", place, Assumption(number, undone)))
        self.emit_effect("check", [condition], site=len(sites) - 1)
        return answer

    def _guess(self, flag: Value, last: Sequence[bool]) -> bool:
        """What a bool is in the call that is traced, or what it will be; `last`: the last answers at this place."""
        foreseen = self.foresight.truth(flag)
        if foreseen is not None:
            return foreseen
        if len(self.assumed) < 3 * len(self.path) and len(last) == 2 and last[0] == last[1]:
            return last[0]  # a loop that is traced turn by turn goes on as it began
        made = flag.producer
        while made is not None and made.name == "as_kind":
            made = made.operands[0].producer
        return (
            made is None or made.name != "eq" or made.operands[0].type.dtype.kind not in "fc"
        )  # floats are rarely equal

    def unsupported(
        self, name: str, args: Sequence[Any], kwargs: dict[str, Any], func: Callable[..., Any] | None = None
    ) -> Any:
        if func is not None and self.call_numpy is not None:
            return self.call_numpy(func, tuple(args), kwargs)
        return self.no_form(name, args, kwargs)

    def no_form(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A NumPy function without a form here meets a traced value.

        Raises:
            TraceError: with the reason, if one is known.
        """
        why = host.REFUSED.get("frompyfunc" if name.endswith("(vectorized)") else name.removeprefix("np."))
        for module, reason in host.REFUSED_MODULES.items():
            if name.startswith(module.replace("numpy", "np") + "."):
                why = f"it is about {reason}"
        if why is not None:
            self.fail(
                f"{name} has no compiled form: {why}",
                "keep it outside the jitted function, wrap it with jg.host, or use @jit(fallback='eager').",
            )
        return super().unsupported(name, args, kwargs)

    def constant_value(self, value: Any) -> Value:
        return self.builder.constant(value)

    def emit_host(
        self, site: int, operands: Sequence[Value], types: Sequence[Any], effects: bool, binds: tuple[str, ...] = ()
    ) -> tuple[Value, ...]:
        """A call of the Python function behind `site`; `binds` are symbols of sizes that only the call knows."""
        self.effects = self.effects or effects
        attrs = {"site": site, "order": self.next_order(), "types": tuple(types), "effects": effects}
        if binds:
            attrs["binds"] = binds
        return tuple(self.builder.emit(REGISTRY["host_call"], operands, types, attrs).results)


class StaleMode(CaptureMode):
    """The mode of a storage whose content is not known any more: every use fails with the reason."""

    def __init__(
        self, mode: CaptureMode, settle: Any, reason: str, remedy: str, error: Callable[[], BaseException] | None
    ) -> None:  # no state of a mode
        self.builder = mode.builder
        self.settle = settle
        self.error = error
        self.reason, self.remedy = reason, remedy
        self.journal = mode.journal
        self.definition = mode.definition
        self.closed = False
        self.kinds = {}  # to look what a name holds is no use of it

    def _stale(self) -> NoReturn:
        if self.settle is not None:
            raise Restart(settle=self.settle)
        if self.error is not None:
            raise self.error()
        self.leave(self.reason, self.remedy)

    def __getattr__(self, name: str) -> Any:
        self._stale()

    def no_data(self) -> NoReturn:
        self._stale()

    def mixed(self, other: Any) -> NoReturn:
        self._stale()

    def apply(self, defn: Any, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Value, ...]:
        self._stale()

    def view(self, value: Any, step: Any) -> Value:
        self._stale()

    def write(self, base: Any, steps: Any, value: Any) -> Value:
        self._stale()

    def dim_value(self, dim: Any) -> Value:
        self._stale()

    def lift(self, x: Any) -> Value:
        self._stale()


_MAY_SHARE: Final = "an array that may share memory with another one is used after a write to that one"
_COPY_IT: Final = "copy it before the write (x = x.copy())."


def spoil(
    mode: CaptureMode,
    storage: Storage,
    settle: Any,
    reason: str = _MAY_SHARE,
    remedy: str = _COPY_IT,
    error: Callable[[], BaseException] | None = None,
) -> None:
    """Make every later read or write of `storage` fail, by `error` if it is given, or assume a way through `settle`."""
    mode.spoiled.append((storage, storage.mode, storage.value))
    storage.mode = StaleMode(mode, settle, reason, remedy, error)
    storage.value = None


def is_spoiled(x: Any) -> bool:
    """Whether every use of a Tensor fails."""
    return type(x) is Tensor and type(x._storage.mode) is StaleMode
