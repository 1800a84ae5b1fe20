"""`Tracer`: what rewritten functions call in place of calls, attributes, subscripts and operators.

Each method does what Python does, plus three things: functions of NumPy and Python with a compiled form are replaced by
it (found by identity, so aliases, defaults and partials are caught), user functions are replaced by their rewritten
copies, and whatever is read from outside the trace comes as a hidden argument, under a guard, or not at all.
"""

from __future__ import annotations

import builtins
import functools
import operator
import os
import warnings
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NoReturn

import numpy as np

from jitgraph.ir.graph import Graph
from jitgraph.tensor import Tensor
from jitgraph.tracing import control_flow, effects, entrust, floating, host, iteration, kinds, numpy_python, texts
from jitgraph.tracing.capture_mode import CaptureMode
from jitgraph.tracing.environment import Environment
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.hidden import MISSING, Place
from jitgraph.tracing.leaves import is_opaque_module
from jitgraph.tracing.outside import Outside
from jitgraph.tracing.poison import Maybe, Poison
from jitgraph.tracing.proxies import proxied
from jitgraph.tracing.rewrite import TRACER, is_rewritten, rewritten
from jitgraph.tracing.source_find import nested
from jitgraph.xp.core import NUMPY_TABLE, mode_in
from jitgraph.xp.grids import SUBSCRIPTS
from jitgraph.xp.scalars import element

#: Modules whose functions have no effect and depend on their arguments only.
PURE: Final = frozenset({
    "builtins", "math", "cmath", "operator", "_operator", "itertools", "functools", "_functools", "collections", "copy",
    "string", "re", "types", "typing", "enum", "numbers", "dataclasses", "abc", "_abc", "contextlib", "fractions",
    "statistics", "bisect", "_bisect", "heapq", "_heapq", "inspect", "warnings", "numpy", "scipy", "jitgraph",
    "textwrap", "struct", "json", "decimal", "_collections", "_collections_abc", "_thread",
})  # fmt: skip
_IMPURE_PARTS: Final = ("random",)
_IMPURE_BUILTINS: Final = frozenset({"open", "input", "breakpoint", "compile", "__import__", "exit", "quit"})
_WRAPPERS: Final = (
    BuiltinFunctionType,
    type(object.__init__),
    type(object().__str__),
    type(str.join),
    type(dict.__dict__["fromkeys"]),
)
_PLAIN: Final = frozenset({int, float, bool, str, type(None), tuple, list, dict, Tensor})
#: C functions that call their first argument.
_HIGHER_ORDER: Final = frozenset({map, filter, functools.reduce, sorted})
_lru_wrapper: Final = type(functools.lru_cache(lambda: None))

_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    n: getattr(operator, n)
    for n in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "lshift",
        "rshift",
        "and_",
        "or_",
        "xor",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "is_",
        "is_not",
    ]
} | {"in_": lambda a, b: a in b, "not_in": lambda a, b: a not in b}
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {"neg": operator.neg, "pos": operator.pos, "invert": operator.invert}
_AUGMENTED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    n: getattr(operator, n)
    for n in [
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "imatmul",
        "ilshift",
        "irshift",
        "iand",
        "ior",
        "ixor",
    ]
}


def _find_on_class(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


_MIRRORED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_MADE_BY_USERS: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _mirrored(name: str) -> str:
    """The method that the right operand is asked for."""
    return f"__{_MIRRORED[name]}__" if name in _MIRRORED else f"__r{name}__"


def _is_frozen_dataclass(kind: type) -> bool:
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


class Tracer:
    """One trace: see the top of the file. Rewritten code sees it as `_jg_`."""

    Exception = Exception
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
        #: Attributes that a `__setattr__` of the user's is setting.
        self._setting: list[tuple[type, str]] = []
        #: How many of NumPy's own Python functions are being traced.
        self.numpy_depth = 0
        mode.call_numpy = self.call_numpy
        self.regions.stores = self._stores

    # --- calls

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args and id(f) in entrust.BY_ID:
            result = entrust.dunder(self, f, args, kwargs)
            if result is not NotImplemented:
                return result
        standin = _table().get(id(f))
        if standin is not None:
            if self.mode.kinds and any(kinds.tag_of(self.mode, x) for x in args):
                args = tuple(kinds.operands(self.mode, getattr(f, "__name__", ""), args))
            return (
                standin(*args, **kwargs)
                if standin.__class__ is not _OwnStandin
                else standin.body(self, *args, **kwargs)
            )
        kind = type(f)
        if kind is FunctionType:
            if is_rewritten(f.__code__):
                return f(*args, **kwargs)
            return self._call_function(f, args, kwargs)
        if kind is MethodType:
            if isinstance(f.__self__, effects.STATEFUL):
                return effects.draw(self, f.__self__, f.__name__, args, kwargs)
            if f.__self__ is self:  # made by `callback`
                return f(*args, **kwargs)
            return self.call(f.__func__, f.__self__, *args, **kwargs)
        return self._call_other(f, args, kwargs)

    def method(self, owner: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if type(owner) is Tensor:
            if self.mode.kinds and any(kinds.tag_of(self.mode, x) for x in (owner, *args)):
                owner, *rest = kinds.operands(self.mode, name, (owner, *args))
                return getattr(owner, name)(*rest, **kwargs)
            return getattr(owner, name)(*args, **kwargs)
        if type(owner) is effects.Made:
            return effects.draw(self, owner, name, args, kwargs)
        return self.call(self.attr(owner, name), *args, **kwargs)

    def _call_function(self, f: FunctionType, args: Any, kwargs: Any) -> Any:
        special = self._special(f, args, kwargs) if f.__dict__ else NotImplemented
        if special is not NotImplemented:
            return special
        if is_opaque_module(f.__module__ or ""):
            return self._call_opaque(f, args, kwargs)
        return self.converted(f)(*args, **kwargs)

    def _special(self, f: Any, args: Any, kwargs: Any) -> Any:
        """Callables of jitgraph's own: jitted, host and transformed functions, known by a dunder attribute."""
        trace = getattr(f, "__jitgraph_trace__", None)
        if trace is not None:
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
                return body(*args, **kwargs)
        if kind is functools.partial:
            function, bound, named = (self.attr(f, name) for name in ("func", "args", "keywords"))
            return self.call(function, *bound, *args, **{**named, **kwargs})
        if kind is _lru_wrapper:
            return self.call(f.__wrapped__, *args, **kwargs)
        owner = getattr(f, "__self__", None)
        if isinstance(owner, type) and isinstance(f, _WRAPPERS) and f.__name__ == "__call__":
            return self._instance(owner, args, kwargs)
        special = self._special(f, args, kwargs) if not isinstance(f, _WRAPPERS) else NotImplemented
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
        if is_opaque_module(cls.__module__):
            return self._call_opaque(cls, args, kwargs)
        call = self.member(type(cls), "__call__")
        if isinstance(call, FunctionType):
            return self.call(call, cls, *args, **kwargs)
        return self._instance(cls, args, kwargs)

    def _instance(self, cls: type, args: Any, kwargs: Any) -> Any:
        """What `type.__call__` does."""
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
        drawn = effects.bound(f)
        if drawn is not None:
            return effects.draw(self, *drawn, args, kwargs)
        module = self._module_of(f)
        root = module.partition(".")[0]
        if root in ("numpy", "math") and numpy_python.traced_values(args, kwargs):
            implementation = f if numpy_python.is_helper(self, f) else numpy_python.implementation(f)
            if implementation is not None:
                return numpy_python.call(self, implementation, args, kwargs)
            if host.rule_of(f) is not None:
                return host.call_numpy(self.mode, f, args, kwargs)
            if ".".join(module.split(".")[:2]) in host.REFUSED_MODULES:
                return self.mode.no_form(host.display_name(f), args, kwargs)
            if module.startswith("numpy.testing") and getattr(f, "__name__", "").startswith("assert_"):
                return host.call(self.mode, f, numpy_python.nothing, args, kwargs, effects=True)
        name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or type(f).__name__
        impure = root not in PURE or any(p in module.split(".") for p in _IMPURE_PARTS) or name in _IMPURE_BUILTINS
        impure = impure and not name.startswith("PurePath")
        if impure and not (isinstance(f, type) and issubclass(f, BaseException)):
            self._refuse_opaque(module, name, args, kwargs)
        f, args, kwargs = entrust.entrusted(self, f, args, kwargs)
        if args:
            maps = f in _HIGHER_ORDER if _is_hashable(f) else False
            args = [self.callback(a, types=maps) for a in args]
        if kwargs:
            kwargs = {k: self.callback(v) for k, v in kwargs.items()}
        result = f(*args, **kwargs)
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
            self.mode.fail(
                f"{full} has no compiled form and cannot be called with traced values",
                f"wrap it with jg.host({name}, result=...), keep it outside, or use @jit(fallback='eager').",
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
            if not is_rewritten(x.__code__) and not is_opaque_module(x.__module__ or ""):
                return self.converted(x)
        elif kind is MethodType and type(x.__func__) is FunctionType:
            return MethodType(self.callback(x.__func__), x.__self__)
        elif (
            (id(x) in _table() and (types or not isinstance(x, type)))
            or kind is functools.partial
            or getattr(kind, "__jitgraph_jit__", False)
        ):
            return functools.partial(self.call, x)
        return x

    def adopt(self, x: Any, name: str) -> Any:
        """What NumPy made while tracing, out of static values: arrays become values of the graph."""
        if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
            return self.outside.constant(x, name)
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
        closure = tuple(
            [self._cell if n == TRACER else self.cell(f, numbers[n], cells[n], n) for n in new.co_freevars]
        )
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
            found = TraceGlobals(live, self.outside.read_global)
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
            found = TraceGlobals(live, lambda space, name: proxied(self, self.outside.read_global(space, name)))
            self._plain_namespaces[id(live)] = found
        return found

    def _plain_cell(self, cell: CellType) -> CellType:
        try:
            content = proxied(self, cell.cell_contents)
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
        """What functions stored in globals and cells so far."""
        found = {(id(g), name): value for g in self._namespaces.values() for name, value in g.stores().items()}
        found.update({(id(place), name): value for place, name, value in self.cell_stores()})
        return found

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

    # --- attributes and subscripts

    def attr(self, owner: Any, name: str) -> Any:
        if self.outside.clones:
            owner = self.outside.clones.get(id(owner), owner)
        kind = type(owner)
        if kind is effects.Made or isinstance(owner, effects.STATEFUL):
            if not callable(getattr(owner.__class__, name, None)):
                effects.draw(self, owner, "bit_generator", (), {})
            return functools.partial(effects.draw, self, owner, name) if kind is effects.Made else getattr(owner, name)
        if kind is Tensor or owner is self:
            if kind is Tensor and owner.is_traced and owner.type.is_python and not hasattr(owner.__class__, name):
                raise AttributeError(f"{owner.__class__.__name__!r} object has no attribute {name!r}")
            return getattr(owner, name)
        if kind is ModuleType:
            if is_opaque_module(owner.__name__):
                value = getattr(owner, name)
                return self.environment() if value is os.environ else value
            value = self.outside.overlay(owner, name)
            if value is MISSING:
                value = self._attribute(owner, kind, name, None)
                value = self.outside.read_attribute(owner, name, value)
            return value
        if kind in _PLAIN:
            return getattr(owner, name)
        if name == "__dict__" and self.outside.knows(owner) and not isinstance(owner, type):
            return vars(self.outside.clone_of(owner))
        found = self.member(kind, name)
        if type(found) is property and found.fget is not None:
            return self.call(found.fget, owner)
        getter = None if found is None or type(found) is FunctionType else _find_on_class(type(found), "__get__")
        if isinstance(getter, FunctionType) and not is_opaque_module(type(found).__module__):
            return self.call(getter, found, owner, kind)
        if found is None and not isinstance(owner, type) and kind is not ModuleType:
            getter = self.member(kind, "__getattr__")
            if isinstance(getter, FunctionType) and name not in getattr(owner, "__dict__", {}):
                self.outside.guard_unshadowed(owner, name)
                return self.call(getter, owner, name)
        if type(found) is functools.cached_property:
            own = getattr(owner, "__dict__", {})
            if name not in own and not self.outside.knows(owner):
                value = self.call(found.func, owner)
                own[name] = value
                return value
        value = self.outside.overlay(owner, name)
        if value is MISSING:
            value = self._attribute(owner, kind, name, found)
            own = kind not in (FunctionType, type) and name in getattr(owner, "__dict__", ())
            if not own and type(value) in (MethodType, FunctionType, *_WRAPPERS):
                return value
            if isinstance(owner, type) and (name.startswith("__") or is_opaque_module(owner.__module__)):
                return value
            value = self.outside.read_attribute(owner, name, value)
        return value

    def live(self, f: Any) -> Any:
        """A function that traced code defines, as one that runs behind a host call: with the live world around it.

        Raises:
            TraceError: it uses a traced value that is not passed to it.
        """
        if type(f) is not FunctionType or not is_rewritten(f.__code__):
            return f
        code = next(
            (
                inner
                for original, _ in self._functions.values()
                for inner in nested(original.__code__)
                if inner.co_name == f.__code__.co_name and inner.co_firstlineno == f.__code__.co_firstlineno
            ),
            None,
        )
        namespace = f.__globals__
        if code is None or not isinstance(namespace, TraceGlobals):
            self.mode.fail(f"{f.__name__} runs outside of the trace, and its source is not at hand", "define it outside.")
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

    def environment(self) -> Environment:
        """What stands for `os.environ`."""
        return Environment(self.outside)

    def member(self, kind: type, name: str) -> Any:
        """A member of a class (None if it has none), under a guard if users wrote the class."""
        found = _find_on_class(kind, name)
        users = kind.__flags__ & _MADE_BY_USERS and not is_opaque_module(kind.__module__)
        if users and (found is None or hasattr(type(found), "__get__") or name.startswith("__")):
            self.outside.guard_member(kind, name)
        return found

    def _attribute(self, owner: Any, kind: type, name: str, found: Any) -> Any:
        """`getattr(owner, name)`, with guards on where it was found."""
        if isinstance(owner, type):
            value = getattr(owner, name, MISSING)
            if value is MISSING:
                self.outside.guard_missing(owner, name)
            elif isinstance(value, MethodType | FunctionType) and not is_opaque_module(owner.__module__):
                self.outside.guard_member(owner, name)
            return getattr(owner, name)
        if isinstance(found, FunctionType | classmethod | staticmethod | property | functools.partialmethod):
            if name not in getattr(owner, "__dict__", ()):
                self.outside.guard_unshadowed(owner, name)
        try:
            return getattr(owner, name)
        except AttributeError:
            self.outside.guard_missing(owner, name)
            raise

    def set_attr(self, value: Any, owner: Any, name: str) -> None:
        if self.outside.clones:
            owner = self.outside.clones.get(id(owner), owner)
        kind = type(owner)
        if kind is Tensor:
            if name in ("shape", "dtype", "strides"):
                self.mode.fail(
                    f"assignment to .{name} of an array is not supported", "use x.reshape(...), or a new array."
                )
            setattr(owner, name, value)
            return
        found = self.member(kind, name)
        if type(found) is property and found.fset is not None:
            self.call(found.fset, owner, value)
            return
        setter = None if found is None else _find_on_class(type(found), "__set__")
        if isinstance(setter, FunctionType):
            self.call(setter, found, owner, value)
            return
        setter = None if isinstance(owner, type) else self.member(kind, "__setattr__")
        if isinstance(setter, FunctionType) and not is_opaque_module(kind.__module__):
            if (kind, name) not in self._setting and not _is_frozen_dataclass(kind):
                self._setting.append((kind, name))
                try:
                    self.call(setter, owner, name, value)
                finally:
                    self._setting.pop()
                return
        if not self.outside.store_attribute(owner, name, value):
            if not isinstance(owner, type | FunctionType) and id(owner) not in self.outside.copied:
                self.regions.check_owner(owner, name)
            setattr(owner, name, value)

    def item(self, owner: Any, index: Any) -> Any:
        kind = type(owner)
        if isinstance(owner, dict):
            self.outside.pin(index)
        if kind is Tensor:
            return owner[index]
        if kind is np.ndarray or isinstance(owner, np.ndarray):
            return self.outside.known_array(owner)[index]
        if type(index) is Tensor and (kind is list or kind is tuple):
            return element(owner, index)
        if kind not in _PLAIN:
            method = self.member(kind, "__getitem__")
            if isinstance(method, FunctionType):
                made = SUBSCRIPTS.get(kind)
                if made is not None and mode_in((index,)) is not None:
                    return made(owner, index)
                return self.call(method, owner, index)
        return owner[index]

    def set_item(self, value: Any, owner: Any, index: Any) -> None:
        if type(owner) not in _PLAIN:
            method = self.member(type(owner), "__setitem__")
            if isinstance(method, FunctionType):
                self.call(method, owner, index, value)
                return
            if isinstance(owner, np.ndarray):
                owner = self.outside.known_array(owner)
        if type(value) is Poison:
            value.fail()
        owner[index] = value

    def del_item(self, owner: Any, index: Any) -> None:
        del owner[index]

    def augmented_attr(self, name: str, owner: Any, attribute: str, value: Any) -> None:
        self.set_attr(self.augmented(name, self.attr(owner, attribute), value), owner, attribute)

    def augmented_item(self, name: str, owner: Any, index: Any, value: Any) -> None:
        old = self.item(owner, index)
        new = self.augmented(name, old, value)
        if new is old and type(old) is Tensor and type(owner) is Tensor and old._storage is owner._storage:
            return  # the view was written through already
        self.set_item(new, owner, index)

    # --- operators

    def binary(self, name: str, a: Any, b: Any) -> Any:
        kind_a, kind_b = type(a), type(b)
        if kind_a is Poison or kind_b is Poison:
            (a if kind_a is Poison else b).fail()
        if kind_a is str and name == "mod":
            text = texts.percent(self, a, b)
            if text is not NotImplemented:
                return text
        if name in ("in_", "not_in"):
            found = entrust.contains(self, a, b)
            return found if name == "in_" else self.not_(found)
        if self.mode.kinds and (kinds.tag_of(self.mode, a) or kinds.tag_of(self.mode, b)):
            a, b = kinds.operands(self.mode, name, (a, b))
            return kinds.tag_result(self.mode, name, (a, b), _BINARY[name](a, b))
        if (kind_a in _PLAIN and kind_b in _PLAIN) or not self._is_user_operator(name, kind_a, kind_b):
            return _BINARY[name](a, b)
        plain = name.rstrip("_")
        method, mirrored = self.member(kind_a, f"__{plain}__"), self.member(kind_b, _mirrored(plain))
        order = [(method, a, b), (mirrored, b, a)]
        if kind_b is not kind_a and issubclass(kind_b, kind_a) and isinstance(mirrored, FunctionType):
            order.reverse()
        for f, x, y in order:
            if isinstance(f, FunctionType):
                result = self.call(f, x, y)
                if result is not NotImplemented:
                    return result
            elif f is not None and x is a:
                result = f(x, y)
                if result is not NotImplemented:
                    return result
        return _BINARY[name](a, b)

    def _is_user_operator(self, name: str, *kinds: type) -> bool:
        plain = name.rstrip("_")
        return any(
            isinstance(self.member(k, f"__{plain}__"), FunctionType)
            or isinstance(self.member(k, _mirrored(plain)), FunctionType)
            for k in kinds
            if k not in _PLAIN and not is_opaque_module(k.__module__)
        )

    def augmented(self, name: str, a: Any, b: Any) -> Any:
        a = self.use(a)
        kind = type(a)
        if self.mode.kinds and (kinds.tag_of(self.mode, a) or kinds.tag_of(self.mode, b)):
            a, b = kinds.operands(self.mode, name, (a, b))
            return kinds.tag_result(self.mode, name, (a, b), _AUGMENTED[name](a, b))
        if kind not in _PLAIN and not is_opaque_module(kind.__module__):
            method = self.member(kind, f"__{name}__")
            if isinstance(method, FunctionType):
                result = self.call(method, a, b)
                if result is not NotImplemented:
                    return result
            base = name[1:] + ("_" if name in ("iand", "ior") else "")
            if self._is_user_operator(base, kind, type(b)):
                return self.binary(base, a, b)
        return _AUGMENTED[name](a, b)

    def iterable(self, x: Any) -> Any:
        """What a comprehension or an unpacking goes through."""
        return x if type(x) in _PLAIN else entrust.iterable(self, x)

    def unary(self, name: str, x: Any) -> Any:
        if self.mode.kinds and kinds.tag_of(self.mode, x):
            values = kinds.operands(self.mode, name, (x,))
            return kinds.tag_result(self.mode, name, values, _UNARY[name](values[0]))
        kind = type(x)
        if kind not in _PLAIN and not is_opaque_module(kind.__module__):
            method = self.member(kind, f"__{name}__")
            if isinstance(method, FunctionType):
                return self.call(method, x)
        return _UNARY[name](x)

    # --- tests

    def branch(self, test: Any, info: Any) -> Any:
        return control_flow.branch(self.regions, entrust.truth(self, test), info)

    def loop(self, iterable: Any, info: Any) -> Any:
        return control_flow.loop(self.regions, entrust.iterable(self, iterable), info)

    def while_loop(self, info: Any) -> Any:
        return control_flow.while_loop(self.regions, info)

    def not_(self, x: Any) -> Any:
        return control_flow.logical_not(self.regions, entrust.truth(self, x))

    def and_(self, a: Any, b: Callable[[], Any]) -> Any:
        return control_flow.choose(self.regions, entrust.truth(self, a), b, lambda: a)

    def or_(self, a: Any, b: Callable[[], Any]) -> Any:
        return control_flow.choose(self.regions, entrust.truth(self, a), lambda: a, b)

    def choose(self, test: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        return control_flow.choose(self.regions, entrust.truth(self, test), a, b)

    def chain(self, first: Any, *links: tuple[str, Callable[[], Any]]) -> Any:
        name, get = links[0]
        right = get()
        result = _BINARY[name](first, right)
        if len(links) == 1:
            return result
        return self.and_(result, lambda: self.chain(right, *links[1:]))

    def assert_(self, test: Any, message: Callable[[], Any] | None) -> None:
        control_flow.check(self.regions, test, message)

    def handle(self, *kinds: Any) -> None:
        """A `try` with handlers for these exceptions begins."""
        found: list[type[BaseException]] = []
        for kind in kinds:
            found += kind if isinstance(kind, tuple) else (kind,)
        self.mode.handled.append(tuple(found))

    def handled(self) -> None:
        self.mode.handled.pop()

    def use(self, x: Any) -> Any:
        """A variable that may be unbound is read."""
        return self.regions.resolve(x) if type(x) is Maybe else x

    def named(self, name: str, x: Any) -> Any:
        """The value of an assignment: what the user calls it is its name in the graph."""
        if type(x) is Tensor and not x._steps:
            value = x._storage.value
            if value is not None and x._storage.mode is self.mode and not value.name and value.producer is not None:
                value.name = name
        return x


class _OwnStandin:
    """A stand-in that needs the tracer."""

    __slots__ = ("body",)

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body


def _print(tracer: Tracer, *args: Any, **kwargs: Any) -> None:
    """Prints at once, traced values by their types, and warns that calls of the compiled code will not."""
    warnings.warn(
        "print() inside a jitted function runs once, while it is traced; jg.debug.print prints at each run",
        UserWarning,
        stacklevel=3,
    )
    shown = [f"<traced {x.type}>" if type(x) is Tensor and x.is_traced else x for x in args]
    print(*shown, **kwargs)  # noqa: T201  # the user's print


_SENTINEL = object()


def _getattr(tracer: Tracer, owner: Any, name: str, default: Any = _SENTINEL) -> Any:
    if default is _SENTINEL:
        return tracer.attr(owner, name)
    try:
        return tracer.attr(owner, name)
    except AttributeError:
        return default


def _hasattr(tracer: Tracer, owner: Any, name: str) -> bool:
    try:
        tracer.attr(owner, name)
    except AttributeError:
        return False
    return True


def _delattr(tracer: Tracer, owner: Any, name: str) -> None:
    if not tracer.outside.store_attribute(owner, name, MISSING):
        delattr(owner, name)


def _getenv(tracer: Tracer, key: str, default: Any = None) -> Any:
    return tracer.environment().get(key, default)


def _id(tracer: Tracer, x: Any) -> int:
    tracer.outside.pin(x)
    return id(x)


def _setattr(tracer: Tracer, owner: Any, name: str, value: Any) -> None:
    tracer.set_attr(value, owner, name)


def _type(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and type(args[0]) is Tensor:
        return args[0].__class__
    return type(*args, **kwargs)


def _vars(tracer: Tracer, owner: Any) -> Any:
    return vars(tracer.outside.clone_of(owner))


def _is_hashable(f: Any) -> bool:
    try:
        hash(f)
    except TypeError:
        return False
    return True


#: Stand-ins by the identity of what they stand for; the key objects are kept alive beside them.
_standins: dict[int, Any] = {}
_kept: list[Any] = []


def _table() -> dict[int, Any]:
    if not _standins:
        from jitgraph import xp

        found: dict[Any, Any] = {f: _OwnStandin(body) for f, body in numpy_python.standins().items()}
        found.update(NUMPY_TABLE | getattr(xp, "BUILTIN_TABLE", {}))
        own: dict[Any, Callable[..., Any]] = {
            getattr: _getattr,
            hasattr: _hasattr,
            delattr: _delattr,
            id: _id,
            os.getenv: _getenv,
            setattr: _setattr,
            type: _type,
            vars: _vars,
            print: _print,
        }
        found.update({f: _OwnStandin(body) for f, body in (iteration.BODIES | effects.BODIES | floating.BODIES | own).items()})
        table = {id(f): body for f, body in found.items() if not isinstance(f, tuple)}
        _kept.extend(found)
        _standins.update(table)
    return _standins
