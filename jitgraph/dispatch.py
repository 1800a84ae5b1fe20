"""From a call of a jitted function to one of its specialisations: keys, misses, and the methods that look inside.

Loaded at the first call: importing jitgraph and decorating functions needs none of it. What a first call does not need
(gradients, reports, comparison with NumPy) is imported where it is used, to keep that call short.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph import errors
from jitgraph.cache.memory import Specialisations
from jitgraph.compiler import Stages, apply_options
from jitgraph.config import config
from jitgraph.ir.graph import Graph
from jitgraph.ir.layouts import extent
from jitgraph.options import JitOptions
from jitgraph.pytree import TreeDef
from jitgraph.records import dataclass
from jitgraph.specialise import MISS, RUN_PLAIN, OtherPath, Plain, Specialisation
from jitgraph.tensor import current_mode
from jitgraph.tracing.capture import Trace, TraceOptions, call_key, trace
from jitgraph.tracing.capture_mode import Assumption
from jitgraph.tracing.leaves import TAPED, CallSpec

if TYPE_CHECKING:
    from jitgraph.observe.explain import Explanation

#: Classes that are leaves wherever they stand.
_LEAVES = frozenset((np.ndarray, float, int, np.float64, np.float32, np.int64))
#: Most traces of one key that differ in what they assume of data; further ways run in Python.
_PATHS = 12
#: Most assumptions that calls have shown of one trace; where they show more, it runs in Python.
_ASSUMED = 500
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class Dispatcher:
    """The calls of one jitted function.

    Args:
        fn: the Python function.
        jitted: the object that users call, for gradients through it.
    """

    def __init__(self, fn: Callable[..., Any], jitted: Any, options: JitOptions) -> None:
        self.fn = fn
        self.jitted = jitted
        self.options = options
        self.name: str = getattr(fn, "__qualname__", None) or type(fn).__name__
        self.spec = CallSpec(fn, options.static_argnames)
        self.trace_options = TraceOptions(static_argnames=options.static_argnames, specialize=options.specialize or "")
        self._flat: dict[int, TreeDef] = {}
        self.cache: Specialisations[Specialisation | Plain] = Specialisations(config.entries)

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        """What the function returns for these arguments.

        Raises:
            TraceError: it cannot be captured, and `fallback` is "error".
            whatever the function raises.
        """
        if config.disable_jit or current_mode() is not None:
            return self.fn(*args, **kwargs)
        leaves, tree = self._flatten(args, kwargs)
        key = call_key(leaves, tree, self.trace_options.specialize)
        if config.check if self.options.check is None else self.options.check:
            from jitgraph.observe.check import check_graph

            captured = self.trace(args, kwargs)
            check_graph(captured.graph, captured.arguments(leaves, (args, kwargs)))
        cache = self.cache
        path: tuple[bool, ...] = ()
        for item in cache.get(key):
            if path and item.path[: len(path)] != path:
                continue
            result = item(leaves, (args, kwargs))
            if type(result) is OtherPath:
                path = result.path
            elif result is not MISS:
                cache.hits += 1
                break
        else:
            result = self._miss(key, leaves, args, kwargs, path)
        return self.fn(*args, **kwargs) if result is RUN_PLAIN else result

    def _flatten(self, args: Args, kwargs: Kwargs) -> tuple[list[Any], TreeDef]:
        """Leaves and structure of a call; arrays and numbers in positions, the usual case, take a short way."""
        if kwargs or self.spec.static:
            return self.spec.flatten(args, kwargs)
        for x in args:
            if type(x) not in _LEAVES:
                return self.spec.flatten(args, kwargs)
        tree = self._flat.get(len(args))
        if tree is None:
            tree = self._flat[len(args)] = self.spec.flatten(args, kwargs)[1]
        return list(args), tree

    def _miss(self, key: Any, leaves: list[Any], args: Args, kwargs: Kwargs, path: tuple[bool, ...]) -> Any:
        """Make the specialisation that is missing, and call through it; on Tensors of the tape become one operation."""
        if TAPED in key[1]:
            from jitgraph.autodiff import taped_call

            return taped_call(self.jitted, leaves, key[0])
        with self.cache.lock:
            known = self.cache.get(key)
            for item in known:  # another thread may have made it meanwhile
                result = MISS if path and item.path[: len(path)] != path else item(leaves, (args, kwargs))
                if type(result) is OtherPath:
                    path = result.path
                elif result is not MISS:
                    return result
            self.cache.misses += 1
            if "miss" in config.log:
                count = len(self.cache.all())
                sys.stderr.write(f"jitgraph: {self.name}: none of {count} specialisations fits {key_text(key)}\n")
            for _ in range(_PATHS):
                if len(path) > _ASSUMED or sum(1 for item in self.cache.get(key) if item.path) >= _PATHS:
                    return RUN_PLAIN
                made = self._specialise(key, args, kwargs, path)
                self.cache.add(key, made)
                result = made(leaves, (args, kwargs))
                if type(result) is not OtherPath:
                    break
                path = result.path
            else:
                return RUN_PLAIN
        if result is MISS:
            raise errors.InternalError(f"the new specialisation of {self.name} does not serve the call it was made for")
        return result

    def _specialise(self, key: Any, args: Args, kwargs: Kwargs, path: tuple[bool, ...] = ()) -> Specialisation | Plain:
        try:
            made = Specialisation(self.trace(args, kwargs, path), key[1])
        except errors.TraceError as e:
            if self.options.fallback != "eager":
                raise
            warnings.warn(f"{self.name} runs in plain Python: {e}", UserWarning, stacklevel=5)
            return Plain(str(e), path)
        except Exception as e:
            if hasattr(e, "__jitgraph_effects__"):
                self._run_into(e, args, kwargs)
            raise
        if made.compiled.source == "compiled":
            self.cache.compiles += 1
        elif made.compiled.source == "disk":
            self.cache.disk_hits += 1
        return made

    def _run_into(self, error: Exception, args: Args, kwargs: Kwargs) -> None:
        """What the function does before an error that the trace found: its writes stay, an earlier error counts.

        Raises:
            what the function raises, if it is something else than `error`.
        """
        try:
            self.fn(*args, **kwargs)
        except Exception as own:
            known = next(c for c in type(own).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
            if not isinstance(error, known):
                raise

    def trace(self, args: Args, kwargs: Kwargs, path: tuple[bool, ...] = ()) -> Trace:
        """Capture the function for arguments like these; `path` answers what it asks of data."""
        captured = trace(self.fn, args, kwargs, self.trace_options, self.spec, path)
        apply_options(captured.graph, self.options.code)
        return captured

    def stages(self, args: Args, kwargs: Kwargs) -> Stages:
        return Stages(self.trace(args, kwargs).graph)

    def explain(self, args: Args, kwargs: Kwargs) -> Explanation:
        """See `JitFunction.explain`."""
        from jitgraph.observe.explain import explain

        captured = self.trace(args, kwargs)
        stages = Stages(captured.graph)
        leaves, tree = self.spec.flatten(args, kwargs)
        dynamic = captured.arguments(leaves, (args, kwargs))
        sizes = {s.name: extent(dynamic[s.arg], s.axis) for s in captured.graph.symbols.values() if s.origin == "arg"}
        names = self.spec.names(tree)
        guards = [f"{names[k]} == {value!r}" for k, value in captured.leaf_values.items() if k < len(names)]
        guards += map(str, captured.guards_python)
        for site in captured.graph.sites:
            if isinstance(site.call, Assumption) and site.loc is not None:
                answer = captured.path[site.call.number]
                guards.append(f"line {site.loc.line}, the other way is traced when met: {answer} in `{site.loc.text}`")
        return explain(captured.graph, stages.final(), stages.program(), sizes, guards)

    def signatures(self) -> list[str]:
        return [key_text(key) for key, _ in self.cache.all()]


def key_text(key: Any) -> str:
    """A specialisation key for people: `(float64[2d], py_float)`."""
    parts = []
    for k in key[1]:
        if k[0] in ("array", "tensor") and len(k) > 3:
            parts.append(f"{k[1].name}[{len(k[2].order)}d]" + ("" if k[2].is_c else f":{k[2]}"))
        else:
            parts.append(" ".join(str(getattr(p, "__name__", p)) for p in k))
    return f"({', '.join(parts)})"


@dataclass(slots=True)
class Traced:
    """A captured function (`f.trace(*args)`)."""

    captured: Trace

    @property
    def graph(self) -> Graph:
        return self.captured.graph

    def lower(self) -> Lowered:
        return Lowered(Stages(self.captured.graph))

    def __str__(self) -> str:
        return str(self.captured.graph)


@dataclass(slots=True)
class Lowered:
    """A captured function and its later stages (`f.lower(*args)`)."""

    stages: Stages

    def as_text(self, stage: str = "fuse") -> str:
        """The IR behind a stage, as `inspect_ir`."""
        return self.stages.after(stage)

    def compile(self) -> CompiledCode:
        """Machine code."""
        return CompiledCode(self.stages)

    def __str__(self) -> str:
        return self.stages.after("fuse")


@dataclass(slots=True)
class CompiledCode:
    """Machine code to look at."""

    stages: Stages

    def as_text(self) -> str:
        """The assembly."""
        return self.stages.assembly()
