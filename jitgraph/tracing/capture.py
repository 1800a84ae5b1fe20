"""`trace`: a Python function and example arguments to a `Graph` and what a dispatcher needs to call it again.

    trace(fn, args, kwargs, TraceOptions()) -> Trace

Each dynamic leaf of the call (array, NumPy scalar, Python int or float) is one graph argument, hidden arguments follow.
The function runs as a rewritten copy (`rewrite`), in a `CaptureMode` whose builder makes the graph. What was learnt on
the way (Python needs the value of a number; a guarded number is stored) restarts the trace with that decision.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.config import config
from jitgraph.ir import builder as ir_builder
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import DimLike, symbol
from jitgraph.ir.graph import Graph, Site, Symbol, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.pytree import TreeDef
from jitgraph.records import dataclass, field
from jitgraph.source import SourceLoc
from jitgraph.tensor import Storage, Tensor, lift, make, plain, use_mode
from jitgraph.tracing.arguments import Arguments
from jitgraph.tracing.capture_mode import CaptureMode, frame_of, user_place
from jitgraph.tracing.donation import donate, overlaps
from jitgraph.tracing.hidden import MISSING, Call, Fixed, Global, Item, Place, Replay, TypeGuard
from jitgraph.tracing.leaves import (
    SIZE_NAMES,
    CallSpec,
    Key,
    Static,
    alias_pattern,
    check_leaf,
    is_dynamic,
    leaf_type,
    type_of_leaf,
)
from jitgraph.tracing.objects import Objects
from jitgraph.tracing.outside import Outside
from jitgraph.tracing.regions import is_the_users, leak, message_of, sweep, unmade
from jitgraph.tracing.reruns import settle_reruns
from jitgraph.tracing.restart import Exhausted, Restart
from jitgraph.tracing.results import Results, prune
from jitgraph.tracing.standins import Tracer
from jitgraph.tracing.trace import Path, Trace, TraceOptions

_RESTARTS = 40
#: A branch that is settled for more visits (the turns of a loop traced one by one) is settled for all.
_VISITS = 3


def trace(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: TraceOptions | None = None,
    spec: CallSpec | None = None,
    path: tuple[bool, ...] = (),
) -> Trace:
    """Capture `fn` for arguments like these.

    Args:
        fn: a Python function, method or callable object; a wrapper's `__wrapped__` is not looked for.
        spec: made from `fn` and the options once; made here if None.
        path: answers to what the trace asks of data (`CaptureMode.assume`); True beyond them.

    Raises:
        TraceError: the function does something that cannot be captured; the text says where and how to mend it.
        ShapeError, DTypeError, IndexingError, AxisError: what NumPy would refuse, at the user's line.
        whatever the function raises for these arguments whatever their data.
    """
    options = options or TraceOptions()
    spec = spec or CallSpec(fn, options.static_argnames)
    leaves, tree = spec.flatten(args, kwargs)
    decisions = _Decisions()
    if isinstance(path, Path):
        decisions.settled |= path.settled
    first: errors.TraceError | None = None
    for _ in range(_RESTARTS):
        capture = _Capture(fn, options, spec, leaves, tree, decisions, (args, kwargs), path)
        try:
            return capture.run()
        except Exhausted as exhausted:
            raise exhausted.error from None
        except Restart as restart:
            decisions.add(restart)
        except errors.TraceError as error:  # perhaps this call goes another way
            first = first or next(iter(decisions.unrolled.values()), error)
            if len(capture.mode.assumed) <= len(path):
                raise first from None
            path = (*capture.mode.assumed[:-1], not capture.mode.assumed[-1])
    raise first or next(iter(decisions.unrolled.values()), None) or errors.TraceError(_too_many(fn))


def _too_many(fn: Callable[..., Any]) -> str:
    what = f"{getattr(fn, '__name__', fn)} has too many branches on data whose sides fit no graph"
    return errors.describe(what, remedy="give each name one type, shape and array in all branches and turns.")


@dataclass(slots=True)
class _Decisions:
    """What earlier attempts of a trace found out."""

    static_leaves: set[int] = field(default_factory=set)
    lifted: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)
    settled: set[Any] = field(default_factory=set)
    unrolled: dict[Any, errors.TraceError] = field(default_factory=dict)
    lifts: bool = False
    objects: bool = False

    def add(self, restart: Restart) -> None:
        self.lifts = self.lifts or restart.lifts
        self.objects = self.objects or restart.objects
        if restart.static_leaf >= 0:
            self.static_leaves.add(restart.static_leaf)
        if restart.settle is not None:
            self.settled.add(restart.settle)
            place = restart.settle[0]
            if sum(1 for other, _ in self.settled if other == place) > _VISITS:
                self.settled.add((place, 0))
        if restart.unroll is not None:
            self.unrolled[restart.unroll[0]] = restart.unroll[1]
        if restart.lift:
            self.lifted.add(restart.lift)
            self.fixed.discard(restart.lift)
        if restart.fix:
            if restart.fix in self.lifted:
                raise errors.TraceError(
                    errors.describe(
                        f"Python needs the value of {restart.fix}, which the function also changes: "
                        "each call would be traced anew",
                        remedy="pass it as an argument and return the new value.",
                    )
                )
            self.fixed.add(restart.fix)


class _Capture:
    """One attempt of a trace."""

    def __init__(
        self,
        fn: Callable[..., Any],
        options: TraceOptions,
        spec: CallSpec,
        leaves: list[Any],
        tree: TreeDef,
        decisions: _Decisions,
        call: Call,
        path: tuple[bool, ...],
    ) -> None:
        self.fn = fn
        self.call = call
        self.spec = spec
        self.options = options
        self.leaves, self.tree = leaves, tree
        self.decisions = decisions
        name = getattr(fn, "__name__", None) or type(fn).__name__
        self.graph = Graph(name if name.isidentifier() else "f")
        self.graph.fast_math = options.fast_math
        self.mode = CaptureMode(Builder(self.graph))
        self.outside = Outside(self.mode, self._hidden_argument, decisions.lifted, decisions.fixed)
        self.mode.outside = self.outside
        self.mode.path = path
        self.mode.settled, self.mode.unrolled = decisions.settled, decisions.unrolled
        self.mode.lifts = decisions.lifts
        self.mode.exact = options.exact
        limit = config.unroll_limit if options.unroll_limit is None else options.unroll_limit
        self.tracer = Tracer(self.mode, self.outside, limit)
        if decisions.objects:
            self.mode.objects = Objects(self.mode, self.tracer.regions.opened)
        self.sizes = 0
        self.names: list[str] = []
        self.leaf_names = spec.names(tree)
        self.keys = tuple([leaf_type(x) for x in leaves])
        self.arg_leaves: list[int] = []
        self.inputs: list[Storage] = []

    # --- arguments

    def _size(self, hint: int, arg: int, axis: int) -> DimLike:
        """The size of an axis of an argument: 1 is literal, others are symbols."""
        if hint == 1 or self.options.specialize == "shape":
            return hint
        taken = self.graph.symbols
        while True:
            k = self.sizes
            name = SIZE_NAMES[k] if k < len(SIZE_NAMES) else f"s{k - len(SIZE_NAMES)}"
            self.sizes += 1
            if name not in taken:
                break
        self.graph.add_symbol(Symbol(name, "arg", arg, axis, lower=0, not_one=True, hint=hint))
        return symbol(name)

    def _argument(self, x: Any, key: Key, name: str) -> Tensor:
        check_leaf(x, key, name, SourceLoc.of_definition(self.fn))
        index = len(self.graph.args)
        shape = np.shape(plain(x))
        t = type_of_leaf(x, key, [self._size(d, index, k) for k, d in enumerate(shape)])
        value = self.graph.body.add_arg(t, _identifier(name))
        if t.kind == "array":
            self.mode.strides[index] = plain(x).strides
        writable = t.kind != "array" or bool(plain(x).flags.writeable)
        storage = Storage(self.mode, value, index, writable)
        self.inputs.append(storage)
        self.mode.foresight.arguments.append(x)
        self.names.append(name)
        self.mode.tensors = self.mode.tensors or key[0] == "tensor"
        return make(storage, (), t)

    def _hidden_argument(self, x: Any, name: str) -> Tensor:
        if isinstance(x, np.ndarray):
            self._check_class(x, name, user_place() or SourceLoc.of_definition(self.fn))
        return self._argument(x, leaf_type(x), name)

    def _lifted_leaves(self) -> list[Any]:
        """The leaves as the function sees them."""
        found: list[Any] = []
        known: dict[int, Any] = {}
        for k, (x, key) in enumerate(zip(self.leaves, self.keys, strict=True)):
            name = self.leaf_names[k] if k < len(self.leaf_names) else f"arg{k}"
            if not is_dynamic(key) or k in self.decisions.static_leaves:
                x = x.value if type(x) is Static else x
                if isinstance(x, np.ndarray) and key[0] == "static":
                    self._check_class(x, f"argument {name}", SourceLoc.of_definition(self.fn))
                found.append(x)
                continue
            data = plain(x)
            same = known.get(id(data)) if isinstance(data, np.ndarray) else None
            if same is None:
                same = self._argument(x, key, name)
                self.mode.leaf_of[same._storage.value.index] = k
                self.arg_leaves.append(k)
                if isinstance(data, np.ndarray):
                    known[id(data)] = same
                    self.outside.arrays[id(data)] = (data, same, None)
                    if data is not x:
                        self.outside.arrays[id(x)] = (x, same, None)
            found.append(same)
        return found

    def _check_class(self, x: np.ndarray, what: str, loc: SourceLoc | None) -> None:
        if type(x) is np.ndarray or isinstance(x, np.memmap):
            return
        masked = isinstance(x, np.ma.MaskedArray)
        is_a = "a masked array" if masked else f"a {type(x).__name__}, a subclass of ndarray with rules of its own"
        argument, _, name = what.rpartition(" ")
        verb = "pass" if argument else "use"
        raise errors.UnsupportedDTypeError(
            errors.describe(
                f"{what} is {is_a}, which is not supported",
                loc,
                remedy=f"{verb} {name}.filled(...) and {name}.mask." if masked else f"{verb} np.asarray({name}).",
            )
        )

    # --- the run

    def run(self) -> Trace:
        mode = self.mode
        token = ir_builder._current.set(mode.builder)
        try:
            with use_mode(mode):
                lifted = self._lifted_leaves()
                args, kwargs = Arguments(self.outside, lifted, self.spec.positional, self.spec.rest).build(
                    self.tree, *self.call
                )
                self._check_arity(args, kwargs)
                self._owner()
                result = self.tracer.call(self.fn, *args, **kwargs)
                if self.tracer.regions.failed is not None:
                    raise self.tracer.regions.failed  # noqa: TRY301  # the function's own
                if self.tracer.regions.abandoned:
                    sweep(self.graph)
                return self._finish(result)
        except (errors.TraceError, errors.InternalError, Restart) as error:
            if not isinstance(error, errors.TraceError):
                raise
            raise _at_user_line(error).with_traceback(error.__traceback__) from error.__cause__
        except Exception as error:
            if any(s.error == "deoptimise" for s in self.graph.sites) and is_the_users(error):
                with use_mode(mode):
                    return self._raising(error)
            if not isinstance(error, errors.JitgraphError):
                raise
            located = _at_user_line(error).with_traceback(error.__traceback__)
            self._note_effects(located)
            raise located from error.__cause__
        finally:
            ir_builder._current.reset(token)
            mode.closed = True

    def _raising(self, error: Exception) -> Trace:
        """The function raises if what was assumed of data holds, and no check reruns the call: a graph that does so."""
        mode = self.mode
        if isinstance(error, errors.JitgraphError):
            error = _at_user_line(error)
        mode.blocks[:] = [self.graph.body]
        mode.builder.at_end(self.graph.body)
        self.graph.results.clear()  # of a return that one of its values fails
        message, shown, recipe = message_of(error, mode)
        changes = self._has_stored()  # what is stored outside is repeated behind calls that succeed
        if recipe is None or changes:
            why = unmade(type(error), is_shown=True, changes=changes)
            mode.leave_to_python(mode.builder.constant(False), why)
        else:
            self.graph.sites.append(Site(type(error).__name__, message, frame_of(error)[1], recipe))
            values = [mode.builder.constant(False), *(lift(mode, x) for x in shown)]
            mode.emit_effect("check", values, site=len(self.graph.sites) - 1)
        sweep(self.graph)
        return self._finish(None)

    def _note_effects(self, error: Exception) -> None:
        """Mark an error of the function's own behind something that it changes outside, or may raise before."""
        if any(s.origin is not None for s, _ in self.mode.journal) or self._has_stored() or self.graph.sites:
            error.__jitgraph_effects__ = True  # type: ignore[attr-defined]

    def _owner(self) -> None:
        """A bound method's object, or a callable object, is read at call time."""
        fn = self.fn
        if isinstance(fn, MethodType):
            self.outside.argument_object(Fixed(fn.__self__, "self"), fn.__self__)
        elif not isinstance(fn, FunctionType):
            self.outside.argument_object(Fixed(fn, "self"), fn)
        function = getattr(fn, "__func__", fn)
        if isinstance(function, FunctionType):
            self.outside.argument_object(Fixed(function, function.__name__), function)

    def _check_arity(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Python's own TypeError for a wrong call, naming the function."""
        if isinstance(self.fn, FunctionType | MethodType):
            try:
                inspect.signature(self.fn).bind(*args, **kwargs)
            except TypeError as error:
                text = f"{self.graph.name}() {error}"
                loc = SourceLoc.of_definition(self.fn)
                raise errors.SignatureError(
                    errors.describe(text, loc, remedy="call it with the parameters of its signature.")
                ) from None

    # --- results

    def _finish(self, result: Any) -> Trace:
        self.mode.definition = SourceLoc.of_definition(self.fn)
        values, out_tree = self.outside.flatten(result)
        replays: list[Replay] = []
        for place, value in self._stores():
            if type(place) is Item:
                place.key = self.mode.known_key(place.key)
            if value is MISSING:
                replays.append(Replay(place))
                continue
            leaves, tree = self.outside.flatten(value)
            replays.append(Replay(place, len(values), len(leaves), tree))
            values += leaves
        self.mode.show({x._storage for x in values if type(x) is Tensor})
        returned: list[Value] = []
        Results(self.outside, self.mode.tensors).record(values, returned)
        if self.options.donate_argnames:
            donated = self.spec.leaves_of(self.tree, self.options.donate_argnames)
            if not overlaps(self.leaves, donated):
                origins = [k for k, leaf in self.mode.leaf_of.items() if leaf in donated]
                given = [s for s in self.inputs if s.origin in origins]
                donate(self.mode, self.graph.results, returned, given)
        written = [s for s in self.inputs if s.origin is not None and s.value is not self.graph.args[s.origin]]
        for s in written:
            if s.value is None:
                lift(self.mode, make(s))  # a stale argument: says so
        writes = tuple(s.origin for s in written if s.origin is not None)
        self.mode.builder.emit(REGISTRY["return"], [*returned, *(s.value for s in written)], (), {"mutates": writes})
        if self.mode.objects is not None and self.mode.objects.asked:
            self.outside.keep_arrays_apart(self.mode.objects.wholes())
        self._check_leaks()
        settle_reruns(self.graph, stores=bool(replays))
        hidden = sorted(self.outside.hidden, key=lambda h: h.index)
        hidden, names, unused = prune(self.graph, hidden, self.names)
        types = [TypeGuard(h.place, h.key) for h in unused if not isinstance(h.place, Fixed)]
        self.graph.hidden = [h.name for h in hidden]
        self.outside.reads.traced = self.tracer.traced_functions()
        return Trace(
            graph=self.graph,
            in_tree=self.tree,
            keys=self.keys,
            aliases=alias_pattern(self.leaves),
            arg_leaves=tuple(self.arg_leaves),
            arg_names=tuple(names),
            leaf_values={k: self.leaves[k] for k in sorted(self.decisions.static_leaves)},
            out_tree=out_tree,
            hidden=hidden,
            replays=replays,
            guards_python=[*self.outside.guards, *self.outside.distinct_guards(), *types],
            writes=self.graph.body.terminator.attrs["mutates"],
            also_arguments=self.outside.also_arguments,
            held=[x for x, k in zip(self.leaves, self.keys, strict=True) if k[0] == "static"],
            path=Path.of(self.mode.assumed, self.mode.settled),
            reads=self.outside.reads,
        )

    def _check_leaks(self) -> None:
        """Values made in a branch or loop stay inside, but for those that it hands on.

        Raises:
            TraceError: a Python object that the trace does not look into kept one (a generator, an iterator).
        """
        op = leak(self.graph) if self.tracer.regions.used else None
        if op is not None:
            what = (
                "an iterator, a generator or another Python object keeps a value of a loop's turn or a branch beyond it"
            )
            remedy = "keep such values in variables, lists, dicts or attributes, or make the loop static."
            raise errors.LeftToPython(errors.describe(what, op.loc, remedy=remedy))

    def _has_stored(self) -> bool:
        """Whether the function stored anything outside."""
        spaces = self.tracer.namespaces()
        in_names = any(space.stores() or space.deleted() for space in spaces) or any(self.tracer.cell_stores())
        return in_names or bool(self.outside.state())

    def _stores(self) -> list[tuple[Place, Any]]:
        """What the function stored outside: (place, value)."""
        found: list[tuple[Place, Any]] = []
        for namespace in self.tracer.namespaces():
            for name, value in namespace.stores().items():
                self.outside.lift_if_stored(name)
                found.append((Global(namespace.live, name), value))
            found += [(Global(namespace.live, name), MISSING) for name in namespace.deleted()]
        for place, name, value in self.tracer.cell_stores():
            self.outside.lift_if_stored(name)
            found.append((place, value))
        for place, value in self.outside.changes():
            self.outside.lift_if_stored(place.text)
            found.append((place, value))
        return found


def _identifier(name: str) -> str:
    """A value name from a leaf's: `p.w`, `xs[0]` as `p.w`, `xs.0`."""
    return re.sub(r"[^\w.]+", ".", name).strip(".")


_NAME = re.compile(r"[A-Za-z_]\w*")


def _at_user_line(error: errors.JitgraphError) -> errors.JitgraphError:
    """The error with the user's line and the operands that stand in it, as far as its text has them not."""
    frame, loc = frame_of(error)
    if loc is None or frame is None:
        return error
    text = str(error)
    what, *rest = text.split("\n")
    where = errors.describe("", loc).split("\n")[1]
    if not any(re.match(r"  \S+:\d+", line) for line in rest):
        rest.insert(0, where)
    if not isinstance(error, errors.TraceError):
        facts = _operands(frame, loc)
        at = 1 if rest and re.match(r"  \S+:\d+", rest[0]) else 0
        rest[at:at] = [f for f in facts if not any(line.strip().startswith(f.strip()) for line in rest)]
    return type(error)("\n".join([what, *rest]))


def _operands(frame: Any, loc: SourceLoc) -> list[str]:
    """`  x: f64[n]` for each traced variable in the user's line."""
    found: list[str] = []
    names = dict.fromkeys(_NAME.findall(loc.text))
    variables = frame.f_locals
    for name in names:
        x = variables.get(name)
        if type(x) is Tensor and x.is_traced:
            found.append(f"  {name}: {x.type}")
    return found
