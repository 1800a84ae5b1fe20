"""What users call to compile: `jit`, and the function object that it makes."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

from jitgraph import errors
from jitgraph.autodiff import taped_call
from jitgraph.cache.memory import CacheInfo, Specialisations
from jitgraph.compiler import CodeOptions, Stages
from jitgraph.config import config
from jitgraph.ir.graph import Graph
from jitgraph.observe.explain import Explanation, explain
from jitgraph.specialise import MISS, RUN_PLAIN, Plain, Specialisation
from jitgraph.tensor import current_mode
from jitgraph.tracing.capture import Trace, TraceOptions, call_key, trace
from jitgraph.tracing.host import Host
from jitgraph.tracing.leaves import TAPED, CallSpec

FAST_MATH_FLAGS = frozenset(("contract", "reassoc", "nnan", "ninf", "nsz", "arcp"))


@dataclass(frozen=True, slots=True)
class JitOptions:
    """Options of `jit`; see there."""

    static_argnames: tuple[str, ...] = ()
    specialize: Literal["shape"] | None = None
    code: CodeOptions = field(default_factory=CodeOptions)
    check: bool | None = None
    fallback: Literal["error", "eager"] = "error"


class JitFunction:
    """A function compiled by `jit`: called like the original, with methods to look into it.

    Attributes:
        __wrapped__: the function as it was written.
    """

    #: Recognised without an import by the layers below.
    __jitgraph_jit__ = True

    def __init__(self, fn: Callable[..., Any], options: JitOptions) -> None:
        if not callable(fn):
            raise TypeError(f"jit takes a function, got {type(fn).__name__}")
        self.__wrapped__: Callable[..., Any]
        functools.update_wrapper(self, fn)
        self.options = options
        self._spec = CallSpec(fn, options.static_argnames)
        self._trace_options = TraceOptions(static_argnames=options.static_argnames, specialize=options.specialize or "")
        self._cache: Specialisations[Specialisation | Plain] = Specialisations(config.entries)
        self._signature: inspect.Signature | None = None

    # --- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config.disable_jit or current_mode() is not None:
            return self.__wrapped__(*args, **kwargs)
        key, leaves = self._key(args, kwargs)
        if config.check if self.options.check is None else self.options.check:
            self._compare(args, kwargs, leaves)
        for item in self._cache.get(key):
            result = item(leaves)
            if result is not MISS:
                self._cache.hits += 1
                break
        else:
            result = self._miss(key, leaves, args, kwargs)
        if result is RUN_PLAIN:
            return self.__wrapped__(*args, **kwargs)
        return result

    def _compare(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> None:
        """`check=True`: run NumPy beside compiled code on copies of the arguments."""
        from jitgraph.observe.check import check_graph

        captured = self._trace(args, kwargs)
        check_graph(captured.graph, captured.arguments(leaves))

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        """The specialisation key of a call, and its leaves."""
        leaves, tree = self._spec.flatten(args, kwargs)
        return call_key(leaves, tree, self._trace_options.specialize), leaves

    def _miss(self, key: Any, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the specialisation that is missing, and call through it; on Tensors of the tape become one operation."""
        if TAPED in key[1]:
            return taped_call(self, leaves, key[0])
        with self._cache.lock:
            for item in self._cache.get(key):  # another thread may have made it meanwhile
                result = item(leaves)
                if result is not MISS:
                    return result
            self._cache.misses += 1
            self._log_miss(key)
            item = self._specialise(key, args, kwargs)
            self._cache.add(key, item)
        result = item(leaves)
        if result is MISS:
            raise errors.InternalError(f"the new specialisation of {self.__name__} does not serve the call it was made for")
        return result

    def _specialise(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Specialisation | Plain:
        try:
            made = Specialisation(self._trace(args, kwargs), key[1])
        except errors.TraceError as e:
            if self.options.fallback != "eager":
                raise
            warnings.warn(f"{self.__name__} runs in plain Python: {e}", UserWarning, stacklevel=4)
            return Plain(str(e))
        if made.compiled.source == "compiled":
            self._cache.compiles += 1
        elif made.compiled.source == "disk":
            self._cache.disk_hits += 1
        return made

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
        captured = trace(self.__wrapped__, args, kwargs, self._trace_options, self._spec)
        self.options.code.apply(captured.graph)
        return captured

    def __jitgraph_rejit__(self, fn: Callable[..., Any], same_arguments: bool) -> JitFunction:
        """`fn` jitted with the options of this function; static names hold if it has the same arguments."""
        options = self.options if same_arguments else replace(self.options, static_argnames=())
        return JitFunction(fn, options)

    def _log_miss(self, key: Any) -> None:
        if "miss" in config.log:
            known = len(self._cache.all())
            print(f"jitgraph: {self.__name__}: no specialisation among {known} for {key[1]}", file=sys.stderr)

    # --- looking in

    def _stages(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages:
        return Stages(self._trace(args, kwargs).graph)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Capture the function for arguments like these, without compiling or running it."""
        return Traced(self._trace(args, kwargs), self.options.code)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Capture and optimise for arguments like these; `.compile()` makes machine code."""
        return self.trace(*args, **kwargs).lower()

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The captured graph for arguments like these; print it."""
        return self._trace(args, kwargs).graph

    def inspect_ir(self, *args: Any, stage: str = "fuse", **kwargs: Any) -> str:
        """The IR behind a stage: `trace`, a pass (`fuse`, `cse`, ...), `loops` or `llvm`.

        Raises:
            ValueError: no such stage.
        """
        return self._stages(args, kwargs).after(stage)

    def inspect_llvm(self, *args: Any, **kwargs: Any) -> str:
        """The LLVM IR text for arguments like these."""
        return self._stages(args, kwargs).llvm()

    def inspect_asm(self, *args: Any, **kwargs: Any) -> str:
        """The assembly for arguments like these."""
        return self._stages(args, kwargs).assembly()

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Where each line of the function goes: kernels, temporaries, copies, host calls, guards. Runs nothing."""
        captured = self._trace(args, kwargs)
        stages = Stages(captured.graph)
        leaves, _ = self._spec.flatten(args, kwargs)
        dynamic = captured.arguments(leaves)
        sizes = {s.name: dynamic[s.arg].shape[s.axis] for s in captured.graph.symbols.values() if s.origin == "arg"}
        return explain(captured.graph, stages.final(), stages.program(), sizes, map(str, captured.guards_python))

    def cache_info(self) -> CacheInfo:
        """Counters: `(hits, misses, compiles, disk_hits, entries)`."""
        return self._cache.info()

    def clear_cache(self) -> None:
        """Forget all specialisations in memory; the disk cache stays."""
        self._cache.clear()

    @property
    def signatures(self) -> list[str]:
        """The specialisations held, as text."""
        return [_key_text(key) for key, _ in self._cache.all()]

    # --- behaving as a function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit {getattr(self, '__qualname__', self.__wrapped__)!s}>"

    def __reduce__(self) -> Any:
        """By reference, as functions are pickled."""
        return _by_reference, (self.__module__, self.__qualname__)

    def __copy__(self) -> JitFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> JitFunction:
        return self


def _by_reference(module: str, qualname: str) -> Any:
    __import__(module)
    found: Any = sys.modules[module]
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _key_text(key: Any) -> str:
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
    code: CodeOptions

    @property
    def graph(self) -> Graph:
        return self.captured.graph

    def lower(self) -> Lowered:
        return Lowered(self.captured, Stages(self.captured.graph))

    def __str__(self) -> str:
        return str(self.captured.graph)


@dataclass(slots=True)
class Lowered:
    """A captured function and its later stages (`f.lower(*args)`)."""

    captured: Trace
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


@overload
def jit(fn: Callable[..., Any], /, **options: Any) -> JitFunction: ...
@overload
def jit(
    fn: None = None,
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    specialize: Literal["shape"] | None = None,
    fastmath: bool | Iterable[str] = False,
    numerics: Literal["default", "numpy"] = "default",
    check: bool | None = None,
    fallback: Literal["error", "eager"] = "error",
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    specialize: Literal["shape"] | None = None,
    fastmath: bool | Iterable[str] = False,
    numerics: Literal["default", "numpy"] = "default",
    check: bool | None = None,
    fallback: Literal["error", "eager"] = "error",
) -> Any:
    """Compile a function written with NumPy; bare (`@jit`) or with options (`@jit(fastmath=True)`).

    The function is captured at its first call and once more for each new combination of tree structure, dtypes, ranks,
    memory layouts, sizes equal to 1 and static values. Sizes and numbers are run-time values.

    Args:
        static_argnames: parameters whose value is part of the key (and may steer Python).
        specialize: "shape" compiles for the exact sizes.
        fastmath: True or a set among `contract, reassoc, nnan, ninf, nsz, arcp`: gives up NumPy's bits for speed.
        numerics: "numpy" calls NumPy's own transcendental functions: the same bits as eager.
        check: run NumPy beside and report the first operation that differs (None: as the setting `check`).
        fallback: what to do with a function that cannot be captured: raise ("error"), or run it in plain Python ("eager").

    Raises:
        ValueError: an option has a value that is not listed.
    """
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    flags = (FAST_MATH_FLAGS if fastmath else frozenset()) if isinstance(fastmath, bool) else frozenset(fastmath)
    unknown = flags - FAST_MATH_FLAGS
    if unknown:
        raise ValueError(f"fastmath: no flag {sorted(unknown)[0]!r}; there are {', '.join(sorted(FAST_MATH_FLAGS))}")
    for name, value, known in (
        ("specialize", specialize, (None, "shape")),
        ("numerics", numerics, ("default", "numpy")),
        ("fallback", fallback, ("error", "eager")),
    ):
        if value not in known:
            raise ValueError(f"{name}: {value!r} is none of {', '.join(map(repr, known))}")
    options = JitOptions(names, specialize, CodeOptions(flags, numerics), check, fallback)
    return (lambda f: JitFunction(f, options)) if fn is None else JitFunction(fn, options)


def host(fn: Callable[..., Any] | None = None, /, result: Any = None, *, effects: bool = False) -> Any:
    """Let compiled code call a Python function: `jg.host(fn, result=spec)`, or `@jg.host(result=spec)`.

    Args:
        fn: gets plain arrays and NumPy scalars.
        result: what `fn` returns, by example: an array or number of that dtype and shape, a tuple of them, a function
            of the arguments' types that answers these, or None.
        effects: `fn` has an effect, so that each call takes place, in order.

    Outside compiled code the function is called as it is.
    """
    return (lambda f: Host(f, result, effects=effects)) if fn is None else Host(fn, result, effects=effects)
