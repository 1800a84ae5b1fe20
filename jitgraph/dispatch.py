"""From a call of a jitted function to one of its specialisations: keys, misses, and the methods that look inside.

Loaded at the first call: importing jitgraph and decorating functions needs none of it. What a first call does not need
(gradients, reports, comparison with NumPy) is imported where it is used, to keep that call short.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph import errors
from jitgraph.cache.memory import Miss, Misses, Specialisations
from jitgraph.compiler import Stages, apply_options
from jitgraph.config import config
from jitgraph.errstate import is_heard
from jitgraph.ir.graph import Graph
from jitgraph.ir.layouts import extent
from jitgraph.loading import uncollected
from jitgraph.native.callable import is_patchable
from jitgraph.options import JitOptions
from jitgraph.pytree import TreeDef, flatten, unflatten
from jitgraph.recall import Found, Recall
from jitgraph.records import dataclass
from jitgraph.specialise import MISS, RUN_PLAIN, OtherPath, Plain, Specialisation
from jitgraph.tensor import current_mode
from jitgraph.tracing.leaves import TAPED, CallSpec, key_text
from jitgraph.tracing.trace import Assumption, Trace, TraceOptions, call_key, may_serve

if TYPE_CHECKING:
    from jitgraph.native.both import Comparison
    from jitgraph.native.function import NativeCalls
    from jitgraph.observe.explain import Explanation
    from jitgraph.observe.memory import MemoryReport

#: Classes that are leaves wherever they stand.
_LEAVES = frozenset((np.ndarray, float, int, np.float64, np.float32, np.int64))
#: Most traces of one key that differ in what they assume of data, and as long as no call came back to one of them;
#: further ways run in Python.
_PATHS, _NEW_PATHS = 12, 6
#: All calls of a key go to Python when so many had to, and more than traces served since.
_LOST = 8
#: Parts of a key that native code knows; a call with more is Python's.
_NATIVE_KEY = 4
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def _callers_level() -> int:
    """The `stacklevel` of the innermost frame that is not of this package, for a warning of the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(f"{__package__}."):
        level, frame = level + 1, frame.f_back
    return level


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=_callers_level())


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
        self.trace_options = TraceOptions(
            static_argnames=options.static_argnames,
            specialize=options.specialize or "",
            donate_argnames=options.donate_argnames,
            exact=options.code.numerics == "numpy",
        )
        self._recall = Recall(fn, options)
        self._flat: dict[int, TreeDef] = {}
        self.cache: Specialisations[Specialisation | Plain] = Specialisations(config.entries)
        #: Calls of a key that went to Python for want of a trace, and how many calls traces had served before.
        self._lost: dict[Any, tuple[int, int]] = {}
        #: Lines of the user's that warnings have named.
        self._told: set[str] = set()
        self._native: NativeCalls | None = None
        self.comparison: Comparison | None = None
        #: Whether specialisations that are called again become native entries.
        self._promotes = not options.check and is_patchable(jitted)

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        """What the function returns for these arguments.

        Raises:
            TraceError: it cannot be captured, and `fallback` is "error".
            whatever the function raises.
        """
        if config.disable_jit or current_mode() is not None or is_heard():
            return self.fn(*args, **kwargs)
        leaves, tree = self._flatten(args, kwargs)
        key = self._key(leaves, tree)
        if config.check if self.options.check is None else self.options.check:
            from jitgraph.observe.check import check_graph

            captured = self.trace(args, kwargs)
            check_graph(captured.graph, captured.arguments(leaves, (args, kwargs)))
        if config.dispatch == "both" and len(key) == _NATIVE_KEY:
            return self._compared(key, leaves, args, kwargs)
        return self._serve(key, leaves, args, kwargs, ())

    def _compared(self, key: Any, leaves: list[Any], args: Args, kwargs: Kwargs) -> Any:
        """A call through Python and through native code."""
        from jitgraph.native.both import Comparison

        if self.comparison is None:
            self.comparison = Comparison()
        return self.comparison.call(
            lambda: self._serve(key, leaves, args, kwargs, ()),
            lambda: self.cache.get(key),
            key,
            leaves,
            (args, kwargs),
        )

    def _serve(self, key: Any, leaves: list[Any], args: Args, kwargs: Kwargs, path: tuple[bool, ...]) -> Any:
        """Call through a specialisation whose path begins with `path`; it is made if there is none."""
        cache = self.cache
        for item in cache.get(key):
            if path and not may_serve(item.path, path):
                continue
            result = item(leaves, (args, kwargs))
            if type(result) is OtherPath:
                path = result.path
            elif result is not MISS:
                cache.hits += 1
                item.again = True
                if self._promotes and result is not RUN_PLAIN:
                    self._promote(item, key, leaves, (args, kwargs))
                break
        else:
            result = self._miss(key, leaves, args, kwargs, path)
        return self.fn(*args, **kwargs) if result is RUN_PLAIN else result

    def slow(self, *args: Any, **kwargs: Any) -> Any:
        """A call that native code does not serve."""
        return self(args, kwargs)

    def _promote(self, item: Specialisation | Plain, key: Any, leaves: list[Any], call: tuple[Args, Kwargs]) -> None:
        """Have native code serve calls like this one from now on, if it can."""
        if config.dispatch != "native" or type(item) is not Specialisation or len(key) != _NATIVE_KEY:
            return
        with self.cache.lock:
            native = self._native
            if native is None:
                native = self._native = self._start_native()
            if native is not None:
                native.promote(item, key, leaves, call, partial(self._stopped, item))

    def _start_native(self) -> NativeCalls | None:
        from jitgraph.native.start import is_due, native_calls

        if not is_due(self.jitted):
            return None
        made = native_calls(self.jitted, self.slow)
        if made is None:
            self._promotes = False
        else:
            self.cache.other_hits = lambda: made.hits
            self.cache.cleared = made.clear
        return made

    def _stopped(self, item: Specialisation, frame: Any, status: int, call: tuple[Args, Kwargs]) -> Any:
        """Native code has called `item`, whose machine code stopped with a status: raise, or call in another way."""
        error = item.stopped(frame, status)
        if not isinstance(error, item.compiled.deoptimise):
            raise error
        other = item.other_path(error)
        args, kwargs = call
        if type(other) is not OtherPath:
            return self.fn(*args, **kwargs)
        leaves, tree = self._flatten(args, kwargs)
        key = self._key(leaves, tree)
        return self._serve(key, leaves, args, kwargs, other.path)

    def _key(self, leaves: list[Any], tree: TreeDef) -> Any:
        """The specialisation key of a call; donated arrays that overlap others are not used, by a trace of its own."""
        key = call_key(leaves, tree, self.trace_options.specialize)
        donated = self.options.donate_argnames
        if not donated:
            return key
        from jitgraph.tracing.donation import overlaps

        if overlaps(leaves, self.spec.leaves_of(tree, donated)):
            return (*key, "overlaps")
        return key

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
                result = MISS if path and not may_serve(item.path, path) else item(leaves, (args, kwargs))
                if type(result) is OtherPath:
                    path = result.path
                elif result is not MISS:
                    return result
            self.cache.misses += 1
            for _ in range(_PATHS):
                ways = [item for item in self.cache.get(key) if item.path]
                if len(ways) >= (_PATHS if any(item.again for item in ways) else _NEW_PATHS):
                    return self._lose(key, ways)
                made = self._make(key, leaves, args, kwargs, path)
                result = made(leaves, (args, kwargs))
                if type(result) is not OtherPath:
                    break
                path = result.path
            else:
                return self._lose(key, self.cache.get(key))
        if result is MISS:
            raise errors.InternalError(f"the new specialisation of {self.name} does not serve the call it was made for")
        return result

    def _lose(self, key: Any, ways: Sequence[Specialisation | Plain]) -> Any:
        """A call takes a way through data that no trace has, and there are enough: Python's; all are where most are."""
        hits = self.cache.hits + self.cache.other_hits()
        lost, before = self._lost.get(key, (0, hits))
        if len(self._lost) > config.entries:  # of keys that are no longer called
            self._lost.clear()
        self._lost[key] = (lost + 1, before)
        if not lost:
            place = next((place for item in ways if (place := item.assumes()) is not None), None)
            what = f"{self.name} runs in plain Python where data take another way than {len(ways)} that are compiled"
            remedy = "write it as operations on arrays (np.where, masks), or as a loop that computes numbers."
            _warn(errors.describe(what, place, remedy=remedy))
        elif lost + 1 >= _LOST and lost + 1 > hits - before:
            self.cache.replace(key, Plain("data take too many ways"))
            del self._lost[key]
        return RUN_PLAIN

    def warm(self, args: Args, kwargs: Kwargs) -> None:
        """Have a specialisation for calls like this one, without a call. See `api.warmup`."""
        if config.disable_jit:
            return
        args, kwargs = _examples(args, kwargs)
        leaves, tree = self.spec.flatten(args, kwargs)
        key = self._key(leaves, tree)
        with self.cache.lock:
            if not any(item.serves(leaves, (args, kwargs)) for item in self.cache.get(key)):
                self._make(key, leaves, args, kwargs, ())

    def _make(
        self, key: Any, leaves: list[Any], args: Args, kwargs: Kwargs, path: tuple[bool, ...]
    ) -> Specialisation | Plain:
        """A new specialisation, which the caches then have; why it was needed is noted."""
        nearest = ""
        reasons: tuple[str, ...] = ("the first call",)
        if self.cache:
            from jitgraph.observe.misses import why_missed

            nearest, reasons = why_missed(self.cache, self.spec, key, leaves, (args, kwargs), path)
        made = self._specialise(key, leaves, args, kwargs, path)
        self.cache.add(key, made)
        head = (self.name, key_text(key[1]), nearest, reasons)
        told: Callable[[], Miss]
        if isinstance(made, Plain):
            told = partial(Miss, *head, "python", made.reason, {})
        else:
            code = made.compiled  # of which only what is told is kept: it goes with the specialisation
            told = cache(partial(_compiled_miss, (*head, code.source), code.not_on_disk, made.times_ms))

        self.cache.last.append(told)
        if "miss" in config.log:
            sys.stderr.write("".join([f"jitgraph: {line}\n" for line in str(told()).splitlines()]))
        return made

    def _specialise(
        self, key: Any, leaves: list[Any], args: Args, kwargs: Kwargs, path: tuple[bool, ...] = ()
    ) -> Specialisation | Plain:
        start = time.perf_counter()
        found = Found(None) if path else self._recall.find(key, leaves, (args, kwargs))
        if found.made is not None:
            found.made.times_ms = {"recall": 1e3 * (time.perf_counter() - start)}
            self.cache.disk_hits += 1
            return found.made
        error: Exception | None = None
        try:
            start = time.perf_counter()
            captured = self.trace(args, kwargs, path)
            traced = 1e3 * (time.perf_counter() - start)
            made = Specialisation(captured, key[1])
            made.times_ms = {"trace": traced, **made.compiled.times_ms}
        except (errors.TraceError, RecursionError) as e:
            deep = isinstance(e, RecursionError)  # of the function's, or of a container that holds itself
            if self.options.fallback != "eager" and not deep and not isinstance(e, errors.LeftToPython):
                raise
            text = "it, or what it handles, nests too deep to be traced" if deep else str(e)
            place = next((line for line in text.split("\n") if line.startswith("  ")), text)
            if place not in self._told:
                self._told.add(place)
                _warn(f"{self.name} runs in plain Python: {text}")
            return Plain(text, path)
        except Exception as e:  # noqa: BLE001  # raised below
            error = e
        if error is not None:  # outside of the handler, so that what is raised here has no context of ours
            self._run_into(error, args, kwargs)
            raise error
        if made.compiled.source == "compiled":
            self.cache.compiles += 1
        elif made.compiled.source == "disk":
            self.cache.disk_hits += 1
        self._recall.keep(found.key, made)
        return made

    def _run_into(self, error: Exception, args: Args, kwargs: Kwargs) -> None:
        """What the function does before an error that the trace found: its writes stay, an earlier error counts.

        An error of the user's own, which may hold what was traced, is raised by the function itself.

        Raises:
            what the function raises, unless that is an error of ours that says it better.
        """
        ours = isinstance(error, errors.JitgraphError)
        if not vars(error).pop("__jitgraph_effects__", not ours):
            return
        try:
            self.fn(*args, **kwargs)
        except Exception as own:
            known = next(c for c in type(own).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
            if not ours or not isinstance(error, known):
                raise

    def trace(self, args: Args, kwargs: Kwargs, path: tuple[bool, ...] = ()) -> Trace:
        """Capture the function for arguments like these; `path` answers what it asks of data."""
        with uncollected():
            from jitgraph.tracing.capture import trace

        captured = trace(self.fn, args, kwargs, self.trace_options, self.spec, path)
        apply_options(captured.graph, self.options.code)
        return captured

    def look(self, args: Args, kwargs: Kwargs) -> Trace:
        """Capture the function for arguments like these, some of them described by a `ShapeDtype`."""
        return self.trace(*_examples(args, kwargs))

    def stages(self, args: Args, kwargs: Kwargs) -> Stages:
        return Stages(self.look(args, kwargs).graph)

    def explain(self, args: Args, kwargs: Kwargs) -> Explanation:
        """See `JitFunction.explain`."""
        from jitgraph.observe.explain import explain

        args, kwargs = _examples(args, kwargs)
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

    def memory(self, args: Args, kwargs: Kwargs) -> MemoryReport:
        """See `JitFunction.memory`."""
        from jitgraph.observe.memory import memory_report

        args, kwargs = _examples(args, kwargs)
        captured = self.trace(args, kwargs)
        leaves, _ = self.spec.flatten(args, kwargs)
        dynamic = captured.arguments(leaves, (args, kwargs))
        sizes = {s.name: extent(dynamic[s.arg], s.axis) for s in captured.graph.symbols.values() if s.origin == "arg"}
        return memory_report(Stages(captured.graph).program(), sizes)

    def explain_misses(self) -> Misses:
        """See `JitFunction.explain_misses`."""
        return Misses(told() for told in self.cache.last)

    def signatures(self) -> list[str]:
        return [key_text(key[1]) for key, _ in self.cache.all()]


def _compiled_miss(
    head: tuple[str, str, str, tuple[str, ...], str], not_on_disk: Callable[[], str], times_ms: dict[str, float]
) -> Miss:
    return Miss(*head, not_on_disk(), times_ms)


def _examples(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments, with an array for each `ShapeDtype` among them."""
    with uncollected():
        from jitgraph.tracing.host import ShapeDtype  # a leaf from then on

    described, tree = flatten((args, kwargs))
    if not any(type(x) is ShapeDtype for x in described):
        return args, kwargs
    examples: tuple[Args, Kwargs] = unflatten(tree, [_example(x) for x in described])
    return examples


def _example(x: Any) -> Any:
    """An array as a `ShapeDtype` describes it (of zeros that no memory is behind yet); anything else as it is.

    Raises:
        ValueError: a size is no number.
    """
    from jitgraph.tracing.host import ShapeDtype

    if type(x) is not ShapeDtype:
        return x
    if not all(isinstance(d, int | np.integer) for d in x.shape):
        raise ValueError(f"sizes of arguments are numbers (any serve that compare like the real ones), got {x}")
    return np.zeros([int(d) for d in x.shape], x.dtype)


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
