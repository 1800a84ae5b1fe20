"""What users call to compile: `jit`, and the function object that it makes; `host`.

Decorating is cheap: what calls need (`dispatch`, and with it the tracer and the passes) is loaded at the first one.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

from jitgraph.native.callable import callable_type, unpatch
from jitgraph.options import FAST_MATH_FLAGS, CodeOptions, JitOptions

if TYPE_CHECKING:
    from jitgraph.cache.memory import CacheInfo, Misses
    from jitgraph.dispatch import Dispatcher, Lowered, Traced
    from jitgraph.ir.graph import Graph
    from jitgraph.observe.explain import Explanation
    from jitgraph.observe.memory import MemoryReport
    from jitgraph.pickling import Sources

_making = threading.Lock()


class JitFunction:
    """A function compiled by `jit`: called like the original, with methods to look into it.

    Attributes:
        __wrapped__: the function as it was written.
    """

    #: Recognised without an import by the layers below.
    __jitgraph_jit__ = True

    def __new__(cls, fn: Callable[..., Any], options: JitOptions) -> JitFunction:  # noqa: PYI034  # of a subclass
        made: JitFunction = object.__new__(callable_type(cls))
        return made

    def __init__(self, fn: Callable[..., Any], options: JitOptions) -> None:
        if not callable(fn):
            raise TypeError(f"jit takes a function, got {type(fn).__name__}")
        _check_names(fn, options.static_argnames, "static_argnames")
        _check_names(fn, options.donate_argnames, "donate_argnames")
        self.__wrapped__: Callable[..., Any]
        functools.update_wrapper(self, fn)
        self._options = options
        self._call: Callable[[tuple[Any, ...], dict[str, Any]], Any] = self._first_call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls come here until native code serves them (`native`)."""
        return self._call(args, kwargs)

    def __del__(self) -> None:
        unpatch(self)  # what native code reads goes with the attributes

    def _first_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._dispatcher(args, kwargs)

    @functools.cached_property
    def _dispatcher(self) -> Dispatcher:
        from jitgraph.loading import uncollected

        with uncollected():
            from jitgraph.dispatch import Dispatcher

        with _making:
            if self._call == self._first_call:
                self._call = Dispatcher(self.__wrapped__, self, self._options)
            return self._call  # type: ignore[return-value]

    def __jitgraph_rejit__(self, fn: Callable[..., Any], same_arguments: bool) -> JitFunction:
        """`fn` jitted with the options of this function; static names hold if it has the same arguments.

        Nothing is given away: a gradient needs the arguments as they are.
        """
        static = self._options.static_argnames if same_arguments else ()
        return JitFunction(fn, self._options._replace(static_argnames=static, donate_argnames=()))

    # --- looking in: at calls with arguments like these; `jg.ShapeDtype(shape, dtype)` stands for an array

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Capture the function for arguments like these, without compiling or running it."""
        from jitgraph.dispatch import Traced

        return Traced(self._dispatcher.look(args, kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Capture and optimise for arguments like these; `.compile()` makes machine code."""
        return self.trace(*args, **kwargs).lower()

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The captured graph for arguments like these; print it."""
        return self._dispatcher.look(args, kwargs).graph

    def inspect_ir(self, *args: Any, stage: str = "fuse", **kwargs: Any) -> str:
        """The IR behind a stage: `trace`, a pass (`fuse`, `cse`, ...), `loops` or `llvm`.

        Raises:
            ValueError: no such stage.
        """
        return self._dispatcher.stages(args, kwargs).after(stage)

    def inspect_llvm(self, *args: Any, **kwargs: Any) -> str:
        """The LLVM IR text for arguments like these."""
        return self._dispatcher.stages(args, kwargs).llvm()

    def inspect_asm(self, *args: Any, **kwargs: Any) -> str:
        """The assembly for arguments like these."""
        return self._dispatcher.stages(args, kwargs).assembly()

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Where each line of the function goes: kernels, temporaries, copies, host calls, guards. Runs nothing."""
        return self._dispatcher.explain(args, kwargs)

    def memory(self, *args: Any, **kwargs: Any) -> MemoryReport:
        """The memory of a call with arguments like these (`jg.ShapeDtype(shape, dtype)` stands for an array): its peak,
        how long each buffer lives, and whose memory it lies in. Runs nothing.
        """
        return self._dispatcher.memory(args, kwargs)

    def cache_info(self) -> CacheInfo:
        """Counters: `(hits, misses, compiles, disk_hits, entries)`."""
        return self._dispatcher.cache.info()

    def explain_misses(self) -> Misses:
        """Why the last calls that needed a new specialisation did: the difference to the nearest one, in memory and on
        disk, and what the stages of making it took.
        """
        return self._dispatcher.explain_misses()

    def clear_cache(self) -> None:
        """Forget all specialisations in memory; the disk cache stays."""
        self._dispatcher.cache.clear()

    @property
    def signatures(self) -> list[str]:
        """The specialisations held, as text."""
        return self._dispatcher.signatures()

    # --- behaving as a function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit {getattr(self, '__qualname__', self.__wrapped__)!s}>"

    def __reduce__(self) -> Any:
        """By reference, as functions are pickled; by value, with the options, by picklers that take functions so."""
        from jitgraph.pickling import reduce

        return reduce(self, self.__wrapped__, self._options, _unmade)

    def __setstate__(self, state: tuple[Callable[..., Any], JitOptions, Sources]) -> None:
        from jitgraph.pickling import know_sources

        fn, options, sources = state
        know_sources(fn, sources)
        self.__init__(fn, options)  # type: ignore[misc]  # pickled by value: made here, once the function is whole

    def __copy__(self) -> JitFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> JitFunction:
        return self


def _check_names(fn: Callable[..., Any], names: tuple[str, ...], option: str) -> None:
    """Refuse names, given by an option, that name no parameter.

    Raises:
        ValueError: one does not.
    """
    if not names:
        return
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return
    unknown = [name for name in names if name not in parameters]
    if unknown and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        raise ValueError(f"{option}: {unknown[0]!r} is no parameter of {getattr(fn, '__name__', fn)}")


def _unmade() -> JitFunction:
    """What a pickle by value begins with: its function may refer to it."""
    return JitFunction.__new__(JitFunction, _unmade, JitOptions())


@overload
def jit(fn: Callable[..., Any], /) -> JitFunction: ...
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
    donate_argnames: str | Iterable[str] = (),
) -> Callable[[Callable[..., Any]], JitFunction]: ...
@overload
def jit(
    fn: Callable[..., Any],
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    specialize: Literal["shape"] | None = None,
    fastmath: bool | Iterable[str] = False,
    numerics: Literal["default", "numpy"] = "default",
    check: bool | None = None,
    fallback: Literal["error", "eager"] = "error",
    donate_argnames: str | Iterable[str] = (),
) -> JitFunction: ...
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
    donate_argnames: str | Iterable[str] = (),
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
        fallback: what to do with a function that cannot be captured: raise ("error"), or run it in Python ("eager").
        donate_argnames: parameters whose arrays the caller gives away: a result of the same dtype, sizes and memory
            order is put there, and is then that very array object. Afterwards only the results may be used. Arrays that
            are read-only or overlap other arguments are left alone.

    Raises:
        ValueError: an option has a value that is not listed.
    """
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    flags = (FAST_MATH_FLAGS if fastmath else frozenset[str]()) if isinstance(fastmath, bool) else frozenset(fastmath)
    unknown = flags - FAST_MATH_FLAGS
    if unknown:
        raise ValueError(f"fastmath: no flag {min(unknown)!r}; there are {', '.join(sorted(FAST_MATH_FLAGS))}")
    for name, value, known in (
        ("specialize", specialize, (None, "shape")),
        ("numerics", numerics, ("default", "numpy")),
        ("fallback", fallback, ("error", "eager")),
    ):
        if value not in known:
            raise ValueError(f"{name}: {value!r} is none of {', '.join(map(repr, known))}")
    given = (donate_argnames,) if isinstance(donate_argnames, str) else tuple(donate_argnames)
    both = set(names) & set(given)
    if both:
        raise ValueError(f"donate_argnames: {min(both)!r} is static, so it is no array")
    options = JitOptions(names, specialize, CodeOptions(flags, numerics), check, fallback, given)
    return (lambda f: _jitted(f, options)) if fn is None else _jitted(fn, options)


def _jitted(fn: Any, options: JitOptions) -> Any:
    """`fn` jitted; what is jitted already, or wrapped as a static or class method, is jitted inside."""
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(_jitted(fn.__func__, options))
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, JitFunction):
        return JitFunction(types.MethodType(fn.__func__.__wrapped__, fn.__self__), options)
    if isinstance(fn, JitFunction):
        return JitFunction(fn.__wrapped__, options)
    return JitFunction(fn, options)


def warmup(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Compile a jitted function for calls like `fn(*args, **kwargs)` without calling it; the caches then have it.

    Args:
        fn: made by `jit`, or a bound method that is.
        args, kwargs: as for a call; `jg.ShapeDtype(shape, dtype)` stands for an array.

    Raises:
        TypeError: `fn` is not jitted.
        TraceError: it cannot be captured, as at a call.
    """
    if isinstance(fn, types.MethodType):
        return warmup(fn.__func__, fn.__self__, *args, **kwargs)
    if not isinstance(fn, JitFunction):
        raise TypeError(f"jg.warmup takes a function made by jg.jit, got {type(fn).__name__}")
    fn._dispatcher.warm(args, kwargs)
    return None


def host(fn: Callable[..., Any] | None = None, /, result: Any = None, *, effects: bool = False) -> Any:
    """Let compiled code call a Python function: `jg.host(fn, result=spec)`, or `@jg.host(result=spec)`.

    Args:
        fn: gets plain arrays (copies), NumPy scalars and Python numbers. Its exceptions come through as they are, with
            the writes before it kept.
        result: what `fn` returns, by example: an array or number of that dtype and shape; a dtype, for a NumPy scalar;
            `jg.ShapeDtype(shape, dtype)`, whose sizes may be None: only the call knows them; a tuple, list or dict of
            these for several results; a function of the arguments (traced ones as their types) that answers any of
            these, as `lambda x: jg.ShapeDtype((x.shape[0], None))`; or None.
        effects: `fn` has an effect, so that each call takes place, in order.

    Raises (in compiled code):
        DTypeError, ShapeError: `fn` returned something else than it promised.

    Outside compiled code the function is called as it is.
    """
    from jitgraph.tracing.host import Host

    return (lambda f: Host(f, result, effects=effects)) if fn is None else Host(fn, result, effects=effects)


# called in a trace it gets the function itself, not a copy that is traced
vars(host)["__jitgraph_trace__"] = lambda tracer, args, kwargs: host(*args, **kwargs)
