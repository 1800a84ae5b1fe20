"""One specialisation of a jitted function: a captured graph, its machine code, and how a call goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from jitgraph.compiler import Compiled, compile_graph
from jitgraph.ir.dims import Dim, evaluate, symbol, symbols
from jitgraph.ir.graph import Graph, Result
from jitgraph.ir.layouts import extent
from jitgraph.ir.types import IndexMap
from jitgraph.pytree import TreeDef, chooses, has_choice, unflatten
from jitgraph.source import SourceLoc
from jitgraph.tensor import Tensor, plain, view_array
from jitgraph.tracing import running
from jitgraph.tracing.hidden import MISSING, NO_CALL, Call, Live
from jitgraph.tracing.leaves import Key, leaf_type
from jitgraph.tracing.trace import Assumption, Path, Trace


class Outcome:
    """What a specialisation answers instead of a result."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: The specialisation does not fit this call: try the next.
MISS: Final = Outcome("MISS")
#: The call is to run in plain Python: a number does not fit, written arrays overlap. Nothing was written yet.
RUN_PLAIN: Final = Outcome("RUN_PLAIN")

#: Ops whose time does not follow from the sizes of arguments and results.
_LONG: Final = frozenset(("for", "while", "host_call", "bind"))

Env = dict[str, int]


class OtherPath:
    """The call takes another way than the trace assumed: `path` is what is known of it."""

    __slots__ = ("path",)

    def __init__(self, path: tuple[bool, ...]) -> None:
        self.path = path


class Plain:
    """A specialisation that could not be compiled: its calls run in plain Python (`fallback="eager"`)."""

    __slots__ = ("again", "path", "reason")

    def __init__(self, reason: str, path: tuple[bool, ...] = ()) -> None:
        self.reason = reason
        self.path = path
        self.again = False

    def __call__(self, leaves: Sequence[Any], call: Call = NO_CALL) -> Any:
        return RUN_PLAIN

    def serves(self, leaves: Sequence[Any], call: Call = NO_CALL) -> bool:
        return True

    def assumes(self) -> SourceLoc | None:
        return None


class Recalled(NamedTuple):
    """What follows from the graph of a trace, but for what is in its results and symbols; see `Specialisation`."""

    compiled: Compiled
    exported: dict[str, int]
    is_long: bool


class Specialisation:
    """A traced and compiled version of a function for one key.

    Args:
        trace: what was captured.
        keys: the keys of the call's leaves.
        recalled: of a trace from disk, what follows from its graph.
    """

    def __init__(self, trace: Trace, keys: Sequence[Key], recalled: Recalled | None = None) -> None:
        self.trace = trace
        self.graph: Graph = trace.graph
        #: Of tracing and of the stages behind it, in the order in which they ran.
        self.times_ms: dict[str, float] = {}
        #: Whether it has served a call after the one that it was made for.
        self.again = False
        if recalled is None:
            exported = export_symbols(self.graph)
            is_long = any(op.name in _LONG for op in self.graph.walk())
            recalled = Recalled(compile_graph(self.graph), exported, is_long)
        self.compiled = recalled.compiled
        #: The result slot of each symbol that only the run knows.
        self.exported = recalled.exported
        #: Calls may take longer than their arguments and results let expect.
        self.is_long = recalled.is_long
        self._prepare = self.compiled.executable.prepare
        self._deoptimise = self.compiled.deoptimise
        self._run = self.compiled.executable.run
        self._arg_leaves = trace.arg_leaves
        self._direct = trace.arg_leaves == tuple(range(len(keys))) and not any(key[0] == "tensor" for key in keys)
        self._conditional = bool(trace.leaf_values or trace.guards_python or trace.also_arguments)
        self._hidden = trace.hidden
        self.path = trace.path
        #: Functions behind host calls look at the call.
        self.keeps_call = any(hasattr(getattr(s.call, "fn", None), "undone") for s in self.graph.sites)
        self._assumptions = {k: s.call.number for k, s in enumerate(self.graph.sites) if type(s.call) is Assumption}
        self._sizes = [(s.name, s.arg, s.axis) for s in self.graph.symbols.values() if s.origin == "arg"]
        self._recipes = [_recipe(r) for r in self.graph.results]
        #: Views come after the results they are views of.
        self._order = sorted(range(len(self._recipes)), key=lambda k: self.graph.results[k].how == "view_of_result")
        #: The order if some results are one of two, of which only one may be there.
        self._chooses = None
        if any(r.how == "choice" for r in self.graph.results) or has_choice(trace.out_tree):
            self._chooses = lambda made: chosen_order(self.graph.results, wanted_leaves(trace, made), made)
        #: One fresh array or scalar and nothing else: the shortest way back.
        self.is_single = (
            trace.out_tree.kind is None
            and self._recipes == [None]
            and not trace.replays
            and not self.graph.results[0].tensor
        )

    def __call__(self, leaves: Sequence[Any], call: Call = NO_CALL) -> Any:
        """The result of the call, MISS, RUN_PLAIN or an `OtherPath`.

        Args:
            leaves: the leaves of `call`, which is `(args, kwargs)`.

        Raises:
            whatever the function raises.
        """
        trace = self.trace
        if self._conditional and not trace.holds(leaves, call):
            return MISS
        args = leaves if self._direct else [plain(leaves[k]) for k in self._arg_leaves]
        if self._hidden:
            args = list(args)
            for h in self._hidden:
                value = h.place.get(call)
                if value is MISSING or leaf_type(value) != h.key:
                    return MISS
                args.append(plain(value))
        if trace.writes and trace.overlaps(args):
            return RUN_PLAIN
        if self.keeps_call:
            return self._call_kept(args, call)
        try:
            frame = self._prepare(args)
            if frame is None:
                return MISS
            made = self._run(frame)
        except self._deoptimise as other:
            return self.other_path(other)
        if self.is_single:
            return made[0]
        return self._result(made, args, call)

    def serves(self, leaves: Sequence[Any], call: Call = NO_CALL) -> bool:
        """Whether a call would be served, as far as can be told without running it."""
        return serves(self.trace, leaves, call)

    def _call_kept(self, args: Sequence[Any], call: Call) -> Any:
        """A call with functions behind it that look at its arguments, and that may be undone."""
        run = running.begin(call)
        try:
            frame = self._prepare(args)
            if frame is None:
                return MISS
            return self._result(self._run(frame), args, call)
        except self._deoptimise as other:
            run.give_up()
            return self.other_path(other)
        finally:
            running.end()

    def finish(self, made: Sequence[Any], args: Sequence[Any], call: Call, frame: Any) -> Any:
        """The result of a call that native code has made up to here.

        Args:
            made: fresh results; None for those whose size only the run knew, which are in the frame.
            args: the graph's arguments.
        """
        if any(x is not None for x in frame.made):
            made = [x if found is None else found for x, found in zip(made, frame.made, strict=True)]
            frame.made = [None] * len(made)
        return made[0] if self.is_single else self._result(made, args, call)

    def stopped(self, frame: Any, status: int) -> BaseException:
        """What to raise for the status of a call that native code made; the frame may be used again."""
        executable = self.compiled.executable
        error: BaseException = executable.failure(status, frame)
        frame.reset()
        frame.made = [None] * len(executable.interface.results)
        return error

    def assumes(self) -> SourceLoc | None:
        """The place of the last thing that the trace takes for granted of data."""
        places = [s.loc for s in self.graph.sites if isinstance(s.call, Assumption) and s.loc is not None]
        return places[-1] if places else None

    def other_path(self, other: Exception) -> Any:
        number = self._assumptions.get(other.args[1]) if self._assumptions and len(other.args) > 1 else None
        if number is None:
            return RUN_PLAIN
        assert isinstance(self.path, Path), "a trace that assumes has been traced in this process"
        return OtherPath(self.path.other_way(number))

    def _result(self, made: Sequence[Any], args: Sequence[Any], call: Call) -> Any:
        env: Env = {name: extent(args[arg], axis) for name, arg, axis in self._sizes}
        for name, slot in self.exported.items():
            env[name] = int(made[slot])
        leaves: list[Any] = [None] * len(self._recipes)
        for k in self._order if self._chooses is None else self._chooses(made):
            r, recipe = self.graph.results[k], self._recipes[k]
            value = made[r.index] if recipe is None else recipe(made, args, leaves, env)
            if type(value) is Live:
                value = value.place.get(call)
            leaves[k] = Tensor(value) if r.tensor and type(value) is not Tensor else value
        result = unflatten(self.trace.out_tree, leaves[: self.trace.out_tree.count])
        replay_stores(self.trace, leaves, call)
        return result


def serves(trace: Trace, leaves: Sequence[Any], call: Call) -> bool:
    """Whether a call may go through a trace: its guards hold, and its sizes compare as they did."""
    if not trace.valid(leaves, call):
        return False
    args = trace.arguments(leaves, call)
    env = {s.name: extent(args[s.arg], s.axis) for s in trace.graph.symbols.values() if s.origin == "arg"}
    return all(guard.holds(env) for guard in trace.graph.guards)


def replay_stores(trace: Trace, leaves: Sequence[Any], call: Call) -> None:
    """Repeat what the function stores outside: all places are found before the first store moves one."""
    owners = [replay.place.owner_of(call) for replay in trace.replays]
    for replay, owner in zip(trace.replays, owners, strict=True):
        if replay.tree is None:
            replay.place.remove(owner)
        else:
            replay.place.put(owner, unflatten(replay.tree, leaves[replay.first : replay.first + replay.count]))


def export_symbols(graph: Graph) -> dict[str, int]:
    """Return what only the run knows and the recipes of results need: sizes and offsets bound by ops.

    Answers the result slot of each such symbol, appended to the operands of `return`.
    """
    from jitgraph.ir.builder import Builder
    from jitgraph.ir.transform import dims_of_attr

    needed: dict[str, None] = {}
    for r in graph.results:
        for d in (*dims_of_attr(r.steps), *([r.dim] if isinstance(r.dim, Dim) else [])):
            for name in symbols(d):
                if graph.symbols[name].origin == "value":
                    needed[name] = None
    if not needed:
        return {}
    end = graph.body.terminator
    mutated = len(end.attrs.get("mutates", ()))
    fresh = len(end.operands) - mutated
    builder = Builder(graph).ahead_of(end)
    values = [builder.dim(value=symbol(name)) for name in needed]
    end.set_operands([*end.operands[:fresh], *values, *end.operands[fresh:]])
    return {name: fresh + k for k, name in enumerate(needed)}


def _recipe(r: Result) -> Callable[..., Any] | None:
    """How a leaf is made of `(fresh results, arguments, leaves so far, sizes)`; None: it is the fresh result itself."""
    if r.how == "fresh":
        return None if not r.read_only else lambda made, args, leaves, env: _view(made[r.index], (), env, r.read_only)
    if r.how == "argument":
        return lambda made, args, leaves, env: args[r.index]
    if r.how == "view_of_argument":
        return lambda made, args, leaves, env: _view(args[r.index], r.steps, env, r.read_only)
    if r.how == "view_of_result":
        return lambda made, args, leaves, env: _view(plain(leaves[r.index]), r.steps, env, r.read_only)
    if r.how == "choice":
        first, second = r.steps
        return lambda made, args, leaves, env: leaves[first if made[r.index] else second]
    if r.how == "dim":
        return lambda made, args, leaves, env: evaluate(r.dim, env)
    return lambda made, args, leaves, env: r.value


def wanted_leaves(trace: Trace, made: Sequence[Any]) -> list[int]:
    """The leaves of a call's result and of what it stores, without those of options that it does not return."""
    found = [k for r in trace.replays for k in range(r.first, r.first + r.count)]

    def visit(tree: TreeDef, at: int) -> None:
        if tree.kind is None or not has_choice(tree):
            found.extend(range(at, at + tree.count))
            return
        children = list(tree.children)
        if chooses(tree.kind):
            found.append(at)
            which = trace.graph.results[at]
            number = made[which.index] if which.how == "fresh" else which.value
            before = sum(c.count for c in children[1 : 1 + number])
            visit(children[1 + number], at + 1 + before)
            return
        for c in children:
            visit(c, at)
            at += c.count

    visit(trace.out_tree, 0)
    return found


def chosen_order(results: Sequence[Result], wanted: Iterable[int], made: Sequence[Any]) -> list[int]:
    """The results to make for those that are wanted, in an order in which each finds what it needs."""
    order: dict[int, None] = {}
    for wanted_leaf in wanted:
        needed = [wanted_leaf]
        while True:  # one leaf needs one other at most
            r = results[needed[-1]]
            if r.how == "choice":
                needed.append(r.steps[0 if made[r.index] else 1])
            elif r.how == "view_of_result":
                needed.append(r.index)
            else:
                break
        order.update(dict.fromkeys(reversed(needed)))
    return list(order)


def _view(array: Any, steps: Sequence[Any], env: Env, read_only: bool = False) -> Any:
    base = array
    for step in steps:
        if isinstance(step, IndexMap):
            numbers = step.substitute(dict(env))
            array = view_array(array, numbers)
        elif isinstance(step, str | np.dtype):
            array = view_array(array, step)  # type: ignore[arg-type]  # a string is a part
        else:
            array = array.reshape([evaluate(d, env) for d in step])
    if read_only:
        array.flags.writeable = False
    if type(base) is np.memmap and type(array) is not np.memmap:  # a view of a mapped file is one, too
        array = array.view(np.memmap)
        array.__array_finalize__(base)
    return array
