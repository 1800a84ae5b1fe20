"""`Tracer`: what rewritten functions call in place of calls, attributes, subscripts and operators.

Each method does what Python does, plus three things: functions of NumPy and Python with a compiled form are replaced by
it (found by identity, so aliases, defaults and partials are caught), user functions are replaced by their rewritten
copies, and whatever is read from outside the trace comes as a hidden argument, under a guard, or not at all.
"""

from __future__ import annotations

import builtins
import functools
from collections import deque
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.errors import InternalError, TraceError
from jitgraph.ir.graph import Graph
from jitgraph.tensor import Tensor
from jitgraph.tracing import (
    builtin_programs,
    comparing,
    control_flow,
    effects,
    entrust,
    host,
    iteration,
    kinds,
    numpy_python,
    options,
    ordering,
    texts,
)
from jitgraph.tracing.capture_mode import CaptureMode
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.hidden import Place
from jitgraph.tracing.leaves import is_opaque_function, is_opaque_module
from jitgraph.tracing.members import PLAIN, WRAPPERS, find_on_class
from jitgraph.tracing.operators import FUNCTIONS, Operators
from jitgraph.tracing.outside import Outside
from jitgraph.tracing.poison import Maybe, OneOf, Poison
from jitgraph.tracing.proxies import bare, proxied, proxied_cell
from jitgraph.tracing.restart import NeedsFirstTurn, Restart
from jitgraph.tracing.rewrite import TRACER, is_rewritten, rewritten
from jitgraph.tracing.source_find import nested
from jitgraph.tracing.table import OwnStandin, table
from jitgraph.xp.core import NUMPY_TABLE

#: Modules whose functions have no effect and depend on their arguments only.
PURE: Final = frozenset({
    "builtins", "math", "cmath", "operator", "_operator", "itertools", "functools", "_functools", "collections", "copy",
    "string", "re", "types", "typing", "enum", "numbers", "dataclasses", "abc", "_abc", "contextlib", "fractions",
    "statistics", "bisect", "_bisect", "heapq", "_heapq", "inspect", "warnings", "numpy", "scipy", "jitgraph",
    "textwrap", "struct", "json", "decimal", "_collections", "_collections_abc", "_thread", "datetime", "_json",
})  # fmt: skip
_IMPURE_PARTS: Final = ("random",)
_IMPURE_NAMES: Final = frozenset({
    "open", "input", "breakpoint", "compile", "__import__", "exit", "quit", "datetime.now", "datetime.utcnow",
    "datetime.today", "date.today", "datetime.astimezone", "datetime.timestamp", "datetime.fromtimestamp",
    "date.fromtimestamp",
})  # fmt: skip
#: C functions that call their first argument.
_HIGHER_ORDER: Final = frozenset({map, filter, functools.reduce, sorted})
#: What writes to its first argument, and methods of arrays that write to them.
_WRITING: Final = frozenset(map(id, (np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal)))
_WRITING_METHODS: Final = frozenset({"fill", "sort", "partition", "put", "itemset", "resize", "byteswap"})
#: Functions that look at the types of their arguments alone, or choose a dtype by them.
_LOOKING: Final = frozenset(map(id, (
    isinstance, type, hasattr, getattr, np.result_type, np.can_cast, np.min_scalar_type, np.iscomplexobj, np.isrealobj,
    np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.arange, np.isscalar, np.asarray, np.array, round,
)))  # fmt: skip
#: Methods of arrays that compute with their arguments, or store them.
_COMPUTING_METHODS: Final = frozenset({"clip", "dot", "fill", "searchsorted"})
#: Classes whose instances NumPy takes as they are.
_SIMPLE: Final = PLAIN - {list, tuple, dict} | {np.ndarray}
_lru_wrapper: Final = type(functools.lru_cache(lambda: None))


def _calls_back(f: Any) -> bool:
    return _is_hashable(f) and f in _HIGHER_ORDER


class Tracer(Operators):
    """One trace: see the top of the file. Rewritten code sees it as `_jg_`."""

    Exception = Exception
    #: What no handler of the user's may take: it is about the trace, not about the program.
    Refusals = (TraceError, InternalError, Restart, NeedsFirstTurn)
    locals = staticmethod(builtins.locals)
    slice = slice
    UNSET = control_flow.UNSET

    def __init__(self, mode: CaptureMode, outside: Outside, unroll_limit: int) -> None:
        self.mode = mode
        self.builder = mode.builder
        self.graph: Graph = mode.builder.graph
        self.outside = outside
        self.unroll_limit = unroll_limit
        self.regions = control_flow.Regions(mode, outside, unroll_limit)
        self._namespaces: dict[int, TraceGlobals] = {}
        self._plain_namespaces: dict[int, TraceGlobals] = {}
        self._functions: dict[int, tuple[FunctionType, FunctionType]] = {}
        self._cells: dict[int, tuple[CellType, CellType, Place, Any]] = {}
        self._cell = CellType(self)
        self._setting = []
        self.errors_around = []
        mode.call_numpy = self.call_numpy
        self.regions.stores = self._stores
        self.regions.attribute, self.regions.namespaces = self.attr, self.namespaces

    # --- calls

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self.mode.shown:
            texts.check_reading(self, f, args)
        operation = FUNCTIONS.get(id(f))
        if operation is not None and len(args) == operation[2] and not kwargs:
            return getattr(self, operation[0])(operation[1], *args)
        if id(f) in _WRITING or "out" in kwargs:
            args, kwargs = self._written(f, args, kwargs)
        if len(self.mode.blocks) > 1:
            self.mode.hand((*args, *kwargs.values()))
        if id(f) in _LOOKING:
            for x in (*args, *kwargs.values()):
                self.mode.ask(x)
        for x in args:
            if type(x) not in _SIMPLE and kinds.is_numpys(f):
                args = tuple([self._array_of(x) for x in args])
                break
        if args and id(f) in builtin_programs.PROGRAMS:
            program, args = builtin_programs.program_for(self, f, args, kwargs)
            if program is not None:
                return self.converted(program)(*args, **kwargs)
        if args and (id(f) in entrust.BY_ID or id(f) in entrust.ITERATING):
            several = options.found_in(args, {})
            if several is not None:
                return options.called(self, several, functools.partial(self.call, f), args, kwargs)
        if args and id(f) in entrust.BY_ID:
            result = entrust.dunder(self, f, args, kwargs)
            if result is not NotImplemented:
                return result
        if args and id(f) in entrust.ITERATING:
            args = tuple([self.iterable(x) for x in args])
        standin = table().get(id(f))
        if standin is not None:
            result, args, kwargs = self._by_type(f, args, kwargs)
            if result is not NotImplemented:
                return result
            if standin.__class__ is not OwnStandin:
                try:
                    found = standin(*args, **kwargs)
                except (OverflowError, errors.UnsupportedDTypeError):
                    self._leave_long(f, args, kwargs)
                    raise
                return self.mode.lifted(found) if self.mode.lifts and type(found) is np.ndarray else found
            self.outside.reads.standin(f)
            return standin.body(self, *args, **kwargs)
        kind: Any = type(f)
        if kind is OneOf:
            return options.choose(self, f, lambda option: self.call(option, *args, **kwargs))
        if kind is FunctionType:
            if is_rewritten(f.__code__):
                return f(*args, **kwargs)
            return self._call_function(f, args, kwargs)
        if kind is MethodType:
            if effects.is_stateful(f.__self__):
                return effects.draw(self, f.__self__, f.__name__, args, kwargs)
            if f.__self__ is self:  # made by `callback`
                return f(*args, **kwargs)
            return self.call(f.__func__, f.__self__, *args, **kwargs)
        return self._call_other(f, args, kwargs)

    def _leave_long(self, f: Any, args: Any, kwargs: Any) -> None:
        """A function fails that has an int beyond 64 bits among its arguments: Python calls it if NumPy takes that.

        Raises:
            LeftToPython: it does.
        """
        if kinds.has_long((*args, *kwargs.values())) and not options.overflows(f, args, kwargs):
            self.mode.leave(f"{host.display_name(f)} of an int beyond 64 bits", "use a float.")

    def _array_of(self, x: Any) -> Any:
        """What NumPy makes of an object whose class has a method `__array__` in Python: the method is traced."""
        kind = type(x)
        if kind is list or kind is tuple:
            if _SIMPLE.issuperset(map(type, x)):
                return x
            made = [self._array_of(i) for i in x]
            return x if all(a is b for a, b in zip(made, x, strict=True)) else kind(made)
        if kind in PLAIN or is_opaque_module(kind.__module__) or hasattr(kind, "__array_ufunc__"):
            return x
        method = find_on_class(kind, "__array__")
        if not isinstance(method, FunctionType) or hasattr(kind, "__array_function__"):
            return x
        self.member(kind, "__array__")
        return self.call(method, x)

    def _by_type(self, f: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
        """A call whose arguments have several types, or a kind that depends on the path, as branches.

        Returns:
            the result (NotImplemented: `f` is still to be called), and the arguments, of kinds that are known.
        """
        several = options.found_in(args, kwargs)
        again = functools.partial(self.call, f)
        if several is not None:
            asked = f if kinds.is_numpys(f) else None
            return options.called(self, several, again, args, kwargs, asked), args, kwargs
        given = (*args, *kwargs.values()) if kwargs else args
        if self.mode.kinds and kinds.has_tags(self.mode, f, given) and not _is_error(f):
            try:
                named = {k: kinds.told_in(self.mode, v) for k, v in kwargs.items()}
                return NotImplemented, tuple(kinds.arguments(self.mode, f, args)), named
            except kinds.Open as answer:
                return self.by_kind(answer, lambda: again(*args, **kwargs)), args, kwargs
        return NotImplemented, args, kwargs

    def method(self, owner: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(owner, np.ndarray):
            if name in _WRITING_METHODS:
                owner = self.outside.static.before_write(owner, *args, *kwargs.values())
            elif id(owner) in self.outside.arrays:
                owner = self.outside.static.known_array(owner)
        elif name == "at" and type(owner) is np.ufunc and args and isinstance(args[0], np.ndarray):
            args = (self.outside.static.before_write(*args, *kwargs.values()), *args[1:])
        kind: Any = type(owner)
        if kind is OneOf:
            return options.choose(self, owner, lambda x: self.method(x, name, *args, **kwargs))
        if kind is Tensor:
            several = options.found_in(args, kwargs)
            if several is not None:
                call, asked = functools.partial(self.method, owner, name), getattr(options.sample(owner), name, None)
                return options.called(self, several, call, args, kwargs, asked)
            if self.mode.kinds and any(kinds.tag_of(self.mode, x) for x in (owner, *args)):
                try:
                    computes = name in _COMPUTING_METHODS and not kinds.tag_of(self.mode, owner)
                    decided = kinds.operands if computes else kinds.arguments
                    owner, *rest = decided(self.mode, name, (owner, *args))
                except kinds.Open as answer:
                    return self.by_kind(answer, lambda: self.method(owner, name, *args, **kwargs))
                return self.attr(owner, name)(*rest, **kwargs)
            return self.attr(owner, name)(*args, **kwargs)
        if kind is list and name == "sort":
            ordering.sort_list(self, owner, *args, **kwargs)
            return None
        if kind is effects.Made:
            return effects.draw(self, owner, name, args, kwargs)
        if kind is TraceGlobals:
            return owner.method(name, *args, **kwargs)
        return self.call(self.attr(owner, name), *args, **kwargs)

    def _written(self, f: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Arguments of a function that writes to its first one or to `out`, ndarrays among these made Tensors."""
        given = (*args, *kwargs.values())

        def target(x: Any) -> Any:
            return self.outside.static.before_write(x, *given) if isinstance(x, np.ndarray) else x

        if id(f) in _WRITING and args:
            args = (target(args[0]), *args[1:])
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple([target(x) for x in out]) if isinstance(out, tuple) else target(out)
        return args, kwargs

    def _call_function(self, f: FunctionType, args: Any, kwargs: Any) -> Any:
        special = self._special(f, args, kwargs) if f.__dict__ else NotImplemented
        if special is not NotImplemented:
            return special
        if is_opaque_function(f):
            return self._call_opaque(f, args, kwargs)
        known = self.mode.watching()[2]
        copy = self.converted(f)
        if is_rewritten(copy.__code__):
            result = copy(*args, **kwargs)
        else:
            self.outside.reads.give_up(f"the source of {f.__name__} is not at hand")
            result = comparing.dataclass_method(self, f, args)
            if result is not NotImplemented:
                return result
            args, kwargs = [proxied(self, x) for x in args], {k: proxied(self, x) for k, x in kwargs.items()}
            result = bare(copy(*args, **kwargs))
        self.mode.watch_returned(known)
        return self.regions.resolve(result) if type(result) is Maybe else result

    def _special(self, f: Any, args: Any, kwargs: Any) -> Any:
        """Callables of jitgraph's own: jitted, host and transformed functions, known by a dunder attribute."""
        trace = getattr(f, "__jitgraph_trace__", None)
        if trace is not None:
            self.outside.reads.give_up(f"calls {getattr(f, '__name__', f)}")
            return trace(self, args, kwargs)
        if getattr(f, "__jitgraph_jit__", False):
            return self.call(f.__wrapped__, *args, **kwargs)
        return NotImplemented

    def _call_other(self, f: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(f, type):
            return self._construct(f, args, kwargs)
        kind = type(f)
        if kind is BuiltinFunctionType and type(f.__self__) is np.ufunc:  # np.add.reduce, ...
            body = NUMPY_TABLE.get((f.__self__, f.__name__))
            if body is not None:
                result, args, kwargs = self._by_type(f, args, kwargs)
                if result is not NotImplemented:
                    return result
                return body(*args, **kwargs)
        if kind is functools.partial:
            function, bound, named = (self.attr(f, name) for name in ("func", "args", "keywords"))
            return self.call(function, *bound, *args, **{**named, **kwargs})
        if kind is _lru_wrapper:
            return self.call(f.__wrapped__, *args, **kwargs)
        owner = getattr(f, "__self__", None)
        if isinstance(owner, type) and isinstance(f, WRAPPERS) and f.__name__ == "__call__":
            return self._instance(owner, args, kwargs)
        special = self._special(f, args, kwargs) if not isinstance(f, WRAPPERS) else NotImplemented
        if special is not NotImplemented:
            return special
        if type(f) is Poison:
            f.fail()
        call = self.member(kind, "__call__")
        if isinstance(call, FunctionType):
            return self.call(call, f, *args, **kwargs)
        return self._call_opaque(f, args, kwargs)

    def _construct(self, cls: type, args: Any, kwargs: Any) -> Any:
        if cls is functools.partial:  # a call of it converts its function
            return cls(*args, **kwargs)
        if is_opaque_module(cls.__module__) and not numpy_python.is_traced_class(cls, args, kwargs):
            return self._call_opaque(cls, args, kwargs)
        call = self.member(type(cls), "__call__")
        if isinstance(call, FunctionType):
            return self.call(call, cls, *args, **kwargs)
        return self._instance(cls, args, kwargs)

    def _instance(self, cls: type, args: Any, kwargs: Any) -> Any:
        """What `type.__call__` does."""
        self.outside.reads.give_up(f"makes a {cls.__name__}")
        new = self.member(cls, "__new__")
        if isinstance(new, staticmethod):
            new = new.__func__
        init = self.member(cls, "__init__")
        if not isinstance(new, FunctionType) and not isinstance(init, FunctionType):
            return cls(*args, **kwargs)
        if isinstance(new, FunctionType):
            made = self.call(new, cls, *args, **kwargs)
        elif new is object.__new__:
            made = object.__new__(cls)
        else:
            made = cls.__new__(cls, *args, **kwargs)
        self.regions.note(made)
        if isinstance(made, cls):
            if isinstance(init, FunctionType):
                self.call(init, made, *args, **kwargs)
            elif init is not object.__init__:
                init(made, *args, **kwargs)
        return made

    def _call_opaque(self, f: Any, args: Any, kwargs: Any) -> Any:
        """A function of C, of the standard library or of NumPy, called as it stands."""
        if not isinstance(getattr(f, "__self__", None), list | dict | set | deque):  # those pass it on
            result, args, kwargs = self._by_type(f, args, kwargs)
            if result is not NotImplemented:
                return result
        if self.regions.opened:
            for x in (getattr(f, "__self__", None), *args):
                if hasattr(type(x), "__next__"):
                    self.regions.check_iterator(x)
        drawn = effects.bound(f)
        if drawn is not None:
            return effects.draw(self, *drawn, args, kwargs)
        module = self._module_of(f)
        root = module.partition(".")[0]
        if root in ("numpy", "math") and numpy_python.traced_values(args, kwargs):
            implementation = numpy_python.implementation(f)
            if implementation is None:
                if host.rule_of(f) is not None:
                    return host.call_numpy(self.mode, f, args, kwargs)
                implementation = f if numpy_python.is_helper(f) else None
            if implementation is not None:
                return numpy_python.call(self, implementation, args, kwargs)
            known = host.display_name(f)
            if ".".join(module.split(".")[:2]) in host.REFUSED_MODULES or known.removeprefix("np.") in host.REFUSED:
                return self.mode.no_form(host.display_name(f), args, kwargs)
            if module.startswith("numpy.testing") and getattr(f, "__name__", "").startswith("assert_"):
                return host.call(self.mode, f, numpy_python.nothing, args, kwargs, effects=True)
        name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
        impure = root not in PURE or any(p in module.split(".") for p in _IMPURE_PARTS) or name in _IMPURE_NAMES
        impure = impure and not name.startswith("PurePath")
        if impure and not _is_error(f):
            self._refuse_opaque(module, name, args, kwargs)
        self.outside.reads.called(f, args, kwargs)
        f, args, kwargs = entrust.entrusted(self, f, args, kwargs)
        if args:
            maps = _calls_back(f)
            args = [self.callback(a, types=maps) for a in args]
        if kwargs:
            kwargs = {k: self.callback(v) for k, v in kwargs.items()}
        try:
            result = f(*args, **kwargs)
        except (TypeError, ValueError, AttributeError) as error:
            is_own = isinstance(error, errors.JitgraphError) or _calls_back(f) or root == "numpy"
            if is_own or not iteration.any_traced((args, kwargs)):
                raise
            self.mode.leave(f"{name} needs the value of what is traced", "call it on what is known, or after the call.")
        return self.adopt(result, name) if root in ("numpy", "scipy") else result

    def call_numpy(self, f: Any, args: Any, kwargs: Any) -> Any:
        """A function of NumPy's that has no operator: traced, called back, or refused."""
        implementation = numpy_python.implementation(f)
        if numpy_python.traced_values(args, kwargs):
            if implementation is not None:
                return numpy_python.call(self, implementation, args, kwargs)
            if host.rule_of(f) is None:
                return self.mode.no_form(host.display_name(f), args, kwargs)
        return self._call_opaque(f, args, kwargs)

    def _refuse_opaque(self, module: str, name: str, args: Any, kwargs: Any) -> NoReturn:
        full = name if module in ("", "builtins") or name.startswith(f"{module}.") else f"{module}.{name}"
        if iteration.any_traced((args, kwargs)):
            self.mode.leave(
                f"{full} has no compiled form and cannot be called with traced values",
                f"wrap it with jg.host({name}, result=...), or keep it outside.",
            )
        self.mode.fail(
            f"{full} may give another result at each call; while tracing it would run once and be frozen",
            "call it outside and pass the result as an argument, wrap it with jg.host, or use @jit(fallback='eager').",
        )

    @staticmethod
    def _module_of(f: Any) -> str:
        owner = getattr(f, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            kind = owner if isinstance(owner, type) else type(owner)
            name = getattr(f, "__name__", "")
            for base in kind.__mro__:  # a method of C, perhaps of a class that the user's derives from
                if name in base.__dict__ and not isinstance(base.__dict__[name], FunctionType):
                    return base.__module__ or ""
            return kind.__module__ or ""
        if isinstance(f, np.ufunc):
            return "numpy"
        module = getattr(f, "__module__", None)
        if module is None:
            owner = getattr(f, "__objclass__", None)
            module = owner.__module__ if owner is not None else type(f).__module__
        return module if isinstance(module, str) else ""

    def callback(self, x: Any, *, types: bool = False) -> Any:
        """An argument of an opaque function; the user's functions go there as their rewritten copies.

        Args:
            types: classes such as `float` are functions here.
        """
        kind = type(x)
        if kind is FunctionType:
            if not is_rewritten(x.__code__) and not is_opaque_function(x):
                return self.converted(x)
        elif kind is MethodType and type(x.__func__) is FunctionType:
            return MethodType(self.callback(x.__func__), x.__self__)
        elif (
            (id(x) in table() and (types or not isinstance(x, type)))
            or kind is functools.partial
            or getattr(kind, "__jitgraph_jit__", False)
        ):
            return functools.partial(self.call, x)
        return x

    def adopt(self, x: Any, name: str) -> Any:
        """What NumPy made while tracing, out of static values: arrays become values of the graph."""
        if type(x) is Tensor:
            return x
        if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
            return self.outside.static.constant(x, name)
        if type(x) in (tuple, list):
            return type(x)([self.adopt(i, name) for i in x])
        return x

    # --- functions

    def converted(self, f: FunctionType) -> FunctionType:
        """The rewritten copy of a user's function for this trace; without source, a copy with traced globals."""
        known = self._functions.get(id(f))
        if known is not None:
            return known[1]
        code = f.__code__
        made = rewritten(code)
        new = code if made is None else made.code
        namespace = self.namespace(f.__globals__) if made is not None else self.plain_namespace(f.__globals__)
        for inner in nested(code):
            if not inner.co_flags & 0x1:  # a class body looks names up past `__missing__`
                namespace.preload(inner.co_names)
        cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
        numbers = {n: k for k, n in enumerate(code.co_freevars)}
        closure = tuple([self._cell if n == TRACER else self.cell(f, numbers[n], cells[n], n) for n in new.co_freevars])
        if made is None:
            closure = tuple([self._plain_cell(c) for c in closure])
        copy = FunctionType(new, namespace, f.__name__, self._defaults(f), closure)
        copy.__kwdefaults__ = (
            None
            if f.__kwdefaults__ is None
            else {k: self.outside.lift_default(f, k, v) for k, v in f.__kwdefaults__.items()}
        )
        copy.__qualname__, copy.__module__ = f.__qualname__, f.__module__
        copy.__dict__.update(f.__dict__)
        self._functions[id(f)] = (f, copy)
        return copy

    def traced_functions(self) -> list[FunctionType]:
        """The functions of which there are copies."""
        return [f for f, _ in self._functions.values()]

    def _defaults(self, f: FunctionType) -> tuple[Any, ...] | None:
        if f.__defaults__ is None:
            return None
        return tuple([self.outside.lift_default(f, k, v) for k, v in enumerate(f.__defaults__)])

    def namespace(self, live: dict[str, Any]) -> TraceGlobals:
        """The globals of one module in this trace."""
        if type(live) is TraceGlobals:
            return live
        found = self._namespaces.get(id(live))
        if found is None:
            found = TraceGlobals(live, self.outside.read_global, self.outside.reads.missing, self.outside)
            if not found.is_user:  # NumPy's own globals are what they are
                found.read = lambda space, name: self.adopt(space[name], name)
            self._namespaces[id(live)] = found
        return found

    def plain_namespace(self, live: dict[str, Any]) -> TraceGlobals:
        """The globals of functions whose source is not at hand: objects come as proxies."""
        if type(live) is TraceGlobals:
            return live
        found = self._plain_namespaces.get(id(live))
        if found is None:
            found = TraceGlobals(
                live,
                lambda space, name: proxied(self, self.outside.read_global(space, name)),
                self.outside.reads.missing,
                self.outside,
            )
            for name in {"print", "input", "open"} - live.keys():
                found.loaded[name] = value = proxied(self, getattr(builtins, name))
                dict.__setitem__(found, name, value)
            self._plain_namespaces[id(live)] = found
        return found

    def _plain_cell(self, cell: CellType) -> CellType:
        try:
            content = proxied_cell(self, cell.cell_contents)
        except ValueError:
            return cell
        return cell if content is cell.cell_contents else CellType(content)

    def cell(self, f: FunctionType, number: int, old: CellType, name: str) -> CellType:
        """The cell that stands for a closure cell in this trace."""
        known = self._cells.get(id(old))
        if known is not None:
            return known[1]
        new = CellType()
        place = self.outside.cell_place(f, number, old, name)
        self._cells[id(old)] = (old, new, place, None)
        try:
            content = old.cell_contents
        except ValueError:
            return new
        if name == "__class__":
            value = content
        else:
            value = self.outside.read_cell(place, content)
        new.cell_contents = value
        self._cells[id(old)] = (old, new, place, value)
        return new

    def _stores(self) -> dict[Any, Any]:
        """What functions stored in closure cells from outside so far."""
        return {(id(place), name): value for place, name, value in self.cell_stores()}

    def cell_stores(self) -> list[tuple[Place, str, Any]]:
        """Closure cells that were bound anew: (their place, name, value)."""
        found = []
        for _, new, place, value in self._cells.values():
            try:
                now = new.cell_contents
            except ValueError:
                continue
            if now is not value:
                found.append((place, place.text, now))
        return found

    def namespaces(self) -> Sequence[TraceGlobals]:
        return [*self._namespaces.values(), *self._plain_namespaces.values()]

    def live(self, f: Any) -> Any:
        """A function that traced code defines, as one that runs behind a host call: with the live world around it.

        Raises:
            TraceError: it uses a traced value that is not passed to it.
        """
        if type(f) is not FunctionType or not is_rewritten(f.__code__):
            return f
        places = set(f.__code__.co_positions())
        found = [
            (len(places.intersection(inner.co_positions())), inner)
            for original, _ in self._functions.values()
            for inner in nested(original.__code__)
            if inner.co_name == f.__code__.co_name and inner.co_firstlineno == f.__code__.co_firstlineno
        ]
        code = max(found, key=lambda pair: pair[0])[1] if found else None
        namespace = f.__globals__
        if code is None or not isinstance(namespace, TraceGlobals):
            self.mode.fail(
                f"{f.__name__} runs outside of the trace, and its source is not at hand", "define it outside."
            )
        olds = {id(new): old for old, new, _, _ in self._cells.values()}
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        closure = tuple([olds.get(id(cells[n])) or self._live_cell(f, n, cells[n]) for n in code.co_freevars])
        made = FunctionType(code, namespace.live, f.__name__, f.__defaults__, closure)
        made.__kwdefaults__ = f.__kwdefaults__
        return made

    def _live_cell(self, f: FunctionType, name: str, cell: CellType) -> CellType:
        content = cell.cell_contents
        if iteration.any_traced(content) or id(content) in self.outside.copied:
            self.mode.fail(
                f"{f.__name__} is called when the compiled code runs, and uses {name} of the trace",
                f"pass {name} to it as an argument.",
            )
        return CellType(content)

    def effect(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Call a function without a result each time that the compiled code comes here, with the run's values."""
        effects.emit(self, fn, lambda *a, **k: None, args, kwargs)


def _is_error(f: Any) -> bool:
    """Whether it is a class of exceptions."""
    return isinstance(f, type) and issubclass(f, BaseException)


def _is_hashable(f: Any) -> bool:
    try:
        hash(f)
    except TypeError:
        return False
    return True
