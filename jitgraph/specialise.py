"""One specialisation of a jitted function: a captured graph, its machine code, and how a call goes through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from jitgraph.compiler import Compiled, compile_graph
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import Dim, evaluate, symbols
from jitgraph.ir.graph import Graph, Result
from jitgraph.ir.transform import dims_of_attr
from jitgraph.ir.types import IndexMap
from jitgraph.pytree import unflatten
from jitgraph.tensor import Tensor, plain, view_array
from jitgraph.tracing.capture import Trace
from jitgraph.tracing.hidden import MISSING
from jitgraph.tracing.leaves import Key, is_dynamic


class Outcome:
    """What a specialisation answers instead of a result."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: The specialisation does not fit this call: try the next.
MISS: Final = Outcome("MISS")
#: The call is to run in plain Python: a number does not fit, arrays overlap while one is written. Nothing was written yet.
RUN_PLAIN: Final = Outcome("RUN_PLAIN")

Env = dict[str, int]


class Plain:
    """A specialisation that could not be compiled: its calls run in plain Python (`fallback="eager"`)."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return RUN_PLAIN


class Specialisation:
    """A traced and compiled version of a function for one key.

    Args:
        trace: what was captured.
        keys: the keys of the call's leaves.
    """

    def __init__(self, trace: Trace, keys: Sequence[Key]) -> None:
        self.trace = trace
        self.graph: Graph = trace.graph
        self._exported = export_symbols(self.graph)
        self.compiled: Compiled = compile_graph(self.graph)
        self._prepare = self.compiled.executable.prepare
        self._deoptimise = self.compiled.deoptimise
        self._run = self.compiled.executable.run
        self._dynamic = [k for k, key in enumerate(keys) if is_dynamic(key)]
        self._unwrap = [k for k, key in enumerate(keys) if key[0] == "tensor"]
        self._all_dynamic = len(self._dynamic) == len(keys) and not self._unwrap
        self._hidden = trace.hidden
        self._guards = trace.guards_python
        self._mutates: tuple[int, ...] = tuple(self.graph.body.terminator.attrs.get("mutates", ()))
        self._sizes = [(s.name, s.arg, s.axis) for s in self.graph.symbols.values() if s.origin == "arg"]
        self._recipes = [_recipe(r) for r in self.graph.results]
        returned = len(self.graph.results) - sum(r.count for r in trace.replays)
        self._returned = returned
        #: One fresh array or scalar and nothing else: the shortest way back.
        self._single = trace.out_tree.kind is None and not trace.replays and self._recipes[:1] == [None] and returned == 1

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The result of the call, MISS or RUN_PLAIN.

        Raises:
            whatever the function raises.
        """
        for guard in self._guards:
            if not guard.check():
                return MISS
        args = leaves if self._all_dynamic else [plain(leaves[k]) if k in self._unwrap else leaves[k] for k in self._dynamic]
        if self._hidden:
            args = list(args)
            for h in self._hidden:
                value = h.get()
                if value is MISSING or not h.fits():
                    return MISS
                args.append(plain(value))
        if self._mutates and self._overlap(args):
            return RUN_PLAIN
        try:
            frame = self._prepare(args)
            if frame is None:
                return MISS
            made = self._run(frame)
        except self._deoptimise:
            return RUN_PLAIN
        if self._single:
            return made[0]
        return self._result(made, args)

    def _overlap(self, args: Sequence[Any]) -> bool:
        """Whether an argument that is written shares memory with another one (the same object twice is in the key)."""
        for written in self._mutates:
            target = args[written]
            for k, other in enumerate(args):
                if k != written and isinstance(other, np.ndarray) and other is not target and np.may_share_memory(target, other):
                    return True
        return False

    def _result(self, made: Sequence[Any], args: Sequence[Any]) -> Any:
        env: Env = {name: args[arg].shape[axis] for name, arg, axis in self._sizes}
        for name, slot in self._exported.items():
            env[name] = int(made[slot])
        leaves: list[Any] = []
        for r, recipe in zip(self.graph.results, self._recipes, strict=True):
            value = made[r.index] if recipe is None else recipe(made, args, leaves, env)
            leaves.append(Tensor(value) if r.tensor and type(value) is not Tensor else value)
        at = self._returned
        for replay in self.trace.replays:
            if replay.tree is None:
                replay.place.delete()
            else:
                replay.place.set(unflatten(replay.tree, leaves[at : at + replay.count]))
                at += replay.count
        return unflatten(self.trace.out_tree, leaves[: self._returned])


def export_symbols(graph: Graph) -> dict[str, int]:
    """Return what only the run knows and the recipes of results need: sizes and offsets bound by ops.

    Answers the result slot of each such symbol, appended to the operands of `return`.
    """
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
    from jitgraph.ir.dims import symbol

    values = [builder.dim(value=symbol(name)) for name in needed]
    end.set_operands([*end.operands[:fresh], *values, *end.operands[fresh:]])
    return {name: fresh + k for k, name in enumerate(needed)}


def _recipe(r: Result) -> Callable[..., Any] | None:
    """How a result leaf is made: `(fresh results, arguments, result leaves so far, sizes)`; None: the fresh result itself."""
    if r.how == "fresh":
        return None
    if r.how == "argument":
        return lambda made, args, leaves, env: args[r.index]
    if r.how == "view_of_argument":
        return lambda made, args, leaves, env: _view(args[r.index], r.steps, env)
    if r.how == "view_of_result":
        return lambda made, args, leaves, env: _view(plain(leaves[r.index]), r.steps, env)
    if r.how == "dim":
        return lambda made, args, leaves, env: evaluate(r.dim, env)
    return lambda made, args, leaves, env: r.value


def _view(array: Any, steps: Sequence[Any], env: Env) -> Any:
    for step in steps:
        if isinstance(step, IndexMap):
            numbers = step.substitute(dict(env))
            array = view_array(array, numbers)
        else:
            array = array.reshape([evaluate(d, env) for d in step])
    return array
