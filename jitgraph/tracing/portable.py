"""Traces as plain data that another process can read, and the tests whether they hold there.

`write` makes numbers, strings and tuples of a trace; `read` makes a trace of these for a function of the same code, or
raises `Elsewhere`. A trace that `read` answers is one that this process could have made, under the guards that it has:

1. Objects are never stored. What a guard compares by identity is written as a *reference* (a module by name; a class
   or function of a module that is not traced by its module and name, with the digest of its code if it is written in
   Python), and read as the live object at the guard's place, if that has the same reference.
2. Functions of the user's are references by the digest of their code, at the place where they are found; jitted ones
   by code and defaults.
3. Namespaces are those of imported modules, by name; cells are the function's own.
4. What tracing takes to be constant within a process is compared (`Reads`): attributes of modules that are not traced,
   and which names are builtins. What it cannot say of another process makes `write` refuse.

Source positions are part of a code's digest, so that errors name the right line.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple
from weakref import ref

import numpy as np

from jitgraph.cache.key import checksum
from jitgraph.ir import dims
from jitgraph.ir.graph import Graph, Guard, Result, Site, Symbol
from jitgraph.ir.types import AxisMap, IndexMap, Layout
from jitgraph.pytree import TreeDef
from jitgraph.source import SourceLoc
from jitgraph.tracing import forms, hidden
from jitgraph.tracing.hidden import MISSING, Call
from jitgraph.tracing.leaves import is_opaque_module
from jitgraph.tracing.trace import Trace


class Refused(Exception):  # noqa: N818  # an answer
    """A trace that cannot be written: why."""


class Elsewhere(Exception):  # noqa: N818  # an answer
    """What was written does not hold in this process."""


#: Records that are written field by field; the number of each is its place here.
_RECORDS: Final[tuple[Any, ...]] = (
    Symbol, Guard, Site, SourceLoc, Result, IndexMap, AxisMap, Layout, hidden.HiddenArg, hidden.Argument,
    hidden.Global, hidden.Cell, hidden.CellOf, hidden.Attribute, hidden.Item, hidden.Fixed, hidden.TypeGuard,
    hidden.StructureGuard, hidden.SameGuard, hidden.DistinctGuard, hidden.MissingGuard, hidden.NotShadowedGuard,
)  # fmt: skip
_NUMBER_OF: Final = {kind: k for k, kind in enumerate(_RECORDS)}
_NODES: Final[tuple[Any, ...]] = (None, tuple, list, dict, type(None))
_PLAIN: Final = frozenset((bool, int, float, complex, str, bytes, type(None)))
_DTYPE_KINDS: Final = "biufcmM"
_MOST_BITS: Final = 2000
#: What the text of an object ends in that has none of its own.
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


class Written(NamedTuple):
    """A trace in plain data.

    Attributes:
        graph: name, symbols, guards, sites, results, names of hidden arguments.
        trace: the other fields of `Trace`, but for those that the call itself says.
        attributes: (module, name, what stands there).
        absent: (module, name, whether it is a builtin).
    """

    graph: tuple[Any, ...]
    trace: tuple[Any, ...]
    attributes: tuple[Any, ...]
    absent: tuple[Any, ...]


_FIELDS: Final = (
    "arg_leaves", "arg_names", "leaf_values", "out_tree", "hidden", "guards_python", "writes", "also_arguments",
)  # fmt: skip
#: The forms of `Written.graph`.
_GRAPH: Final = ("str", "list[Symbol]", "list[Guard]", "list[Site]", "list[Result]", "list[str]")


def write(fn: Any, trace: Trace) -> Written:
    """The trace of a function in plain data.

    Raises:
        Refused: it looked at something that another process could not find, or compare.
    """
    reads, graph = trace.reads, trace.graph
    if type(fn) is not FunctionType or reads is None:
        raise Refused("no Python function")
    if trace.path or trace.replays or any(site.call is not None for site in graph.sites):
        raise Refused("it assumes, stores or calls something")
    if any(r.tensor for r in graph.results):
        raise Refused("it answers Tensors")
    guarded = [g.code for g in trace.guards_python if isinstance(g, hidden.CodeGuard)]
    values = [g.value for g in trace.guards_python if isinstance(g, hidden.ValueGuard)]
    guarded += [f.__code__ for f in map(jitted, values) if f is not None]
    why = reads.refusal([fn.__code__, *guarded]) or next((f.__name__ for f in reads.traced if is_marked(f)), "")
    if why:
        raise Refused(why)
    put = _Writer(fn).put
    symbols = [s for s in graph.symbols.values() if s.origin == "arg"]
    return Written(
        graph=(graph.name, put(symbols), put(graph.guards), put(graph.sites), put(graph.results), put(graph.hidden)),
        trace=tuple([put(getattr(trace, name)) for name in _FIELDS]),
        attributes=tuple([(*key, put_found(value)) for key, value in reads.attributes.items()]),
        absent=tuple([(module, name, _builtin(name)) for module, name in reads.absent]),
    )


def key_of(values: Any) -> Any:
    """What a call's key has, in plain data.

    Raises:
        Refused: there is an object in it.
    """
    return _Writer(None).put(values)


def put_found(value: Any) -> Any:
    """What stands at an attribute of a module that is not traced."""
    if value is MISSING:
        return ("nothing",)
    return _Writer(None).put(value) if _is_value(value) else ("at", reference(value))


def is_marked(f: FunctionType) -> bool:
    """Whether a function is none of the user's, but one that the tracer knows by its attributes."""
    return bool(f.__dict__) and any(key.startswith("__jitgraph") for key in f.__dict__)


def jitted(x: Any) -> FunctionType | None:
    """The Python function of a jitted one."""
    if not getattr(type(x), "__jitgraph_jit__", False):
        return None
    wrapped = getattr(x, "__wrapped__", None)
    return wrapped if type(wrapped) is FunctionType and not is_marked(wrapped) else None


def _signature(f: FunctionType) -> tuple[Any, ...]:
    """What a trace that calls a jitted function knows of it without a guard: code, globals, defaults.

    Raises:
        Refused: a default is no plain value.
    """
    defaults = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    if not all(_is_value(x) for x in defaults):
        raise Refused(f"defaults of {f.__name__}")
    put = _Writer(None).put
    return digest_of(f.__code__), _namespace(f.__globals__), put(f.__defaults__), put(f.__kwdefaults__)


def _is_value(value: Any) -> bool:
    if isinstance(value, np.generic):
        return type(value) is value.dtype.type  # no class of the user's
    return type(value) in _PLAIN or isinstance(value, np.dtype)


def _builtin(name: str) -> bool:
    """Whether a name is a builtin, and the one that Python has.

    Raises:
        Refused: somebody has put another one there.
    """
    found = getattr(builtins, name, MISSING)
    if found is MISSING:
        return False
    is_own = isinstance(found, type | BuiltinFunctionType) and found.__module__ == "builtins" and found.__name__ == name
    if not is_own and type(found) is not bool and found is not NotImplemented and found is not Ellipsis:
        raise Refused(f"the builtin {name} is replaced")
    return True


# --- references -----------------------------------------------------------------------------------------------------


def reference(x: Any) -> tuple[Any, ...]:
    """How another process would know an object to be the same: its way from a module.

    Raises:
        Refused: it would not.
    """
    if isinstance(x, ModuleType):
        if sys.modules.get(x.__name__) is x:
            return ("module", x.__name__)
        raise Refused(f"a module that is not found as {x.__name__}")
    module: Any
    name: Any
    if type(x) is np.ufunc:
        module, name = "numpy", x.__name__
    else:
        module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
        if type(x) is BuiltinFunctionType and module is None and isinstance(x.__self__, ModuleType):
            module = x.__self__.__name__
    if not isinstance(module, str) or not isinstance(name, str) or not is_opaque_module(module):
        raise Refused(f"{type(x).__name__} objects")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, MISSING)
    if found is not x:
        raise Refused(f"{module}.{name} is another object")
    code = getattr(x, "__code__", None)
    return ("name", module, name, type(x).__name__, digest_of(code) if isinstance(code, CodeType) else b"")


#: Digests of code objects that live, by identity: equal ones may stand in other files.
_digests: dict[int, tuple[ref[CodeType], bytes]] = {}


def digest_of(code: CodeType) -> bytes:
    """A digest of code: what it does and where in the source it stands."""
    number = id(code)
    known = _digests.get(number)
    if known is None or known[0]() is not code:
        link = ref(code, lambda gone: _forget(number, gone))
        known = _digests[number] = (link, checksum(repr(_parts(code)).encode(errors="surrogatepass")))
    return known[1]


def _forget(number: int, gone: ref[CodeType]) -> None:
    """Code has died; another one may have its place by now."""
    known = _digests.get(number)
    if known is not None and known[0] is gone:
        del _digests[number]


def _parts(code: CodeType) -> tuple[Any, ...]:
    return (
        code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_name, code.co_filename,
        code.co_firstlineno, code.co_linetable, getattr(code, "co_exceptiontable", b""),
        [_constant(x) for x in code.co_consts],
    )  # fmt: skip


def _constant(x: Any) -> Any:
    if isinstance(x, CodeType):
        return _parts(x)
    if isinstance(x, tuple | frozenset):
        items = [_constant(i) for i in x]
        return (type(x).__name__, sorted(items, key=repr) if isinstance(x, frozenset) else items)
    return (type(x).__name__, hex(x) if type(x) is int else repr(x))


def _namespace(x: Any) -> str:
    """The name of the module whose namespace it is.

    Raises:
        Refused: it is none's.
    """
    name = x.get("__name__")
    if isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is x:
        return name
    raise Refused("globals of no module")


# --- writing --------------------------------------------------------------------------------------------------------


class _Writer:
    """Values of one trace to plain data: tuples that begin with a tag, and values that are no tuples."""

    def __init__(self, fn: FunctionType | None) -> None:
        self.fn = fn
        self.cells = {id(c): k for k, c in enumerate(fn.__closure__ or ())} if fn is not None else {}

    def put(self, x: Any) -> Any:
        kind = type(x)
        if kind in _PLAIN:
            if kind is str and _ADDRESS.search(x):
                raise Refused("a text with an address in it")
            if kind is int and x.bit_length() > _MOST_BITS:
                raise Refused("a number that is longer than Python shows")
            return x
        if kind is tuple:
            return ("tuple", *[self.put(i) for i in x])
        if kind is list:
            return ("list", *[self.put(i) for i in x])
        if kind is dict:
            return ("dict", *[(self.put(k), self.put(v)) for k, v in x.items()])
        if isinstance(x, np.dtype):
            return ("dtype", self._dtype(x))
        if isinstance(x, np.generic) and kind is x.dtype.type:
            return ("scalar", self._dtype(x.dtype), x.tobytes())
        if kind is dims.Dim:
            return ("dim", *[(tuple([self.put(a) for a in atoms]), factor) for atoms, factor in x.terms])
        if kind is dims.Atom:
            return ("atom", x.op, *[self.put(a) for a in x.args])
        if kind is TreeDef:
            return self._tree(x)
        if kind is type:
            return self._class(x)
        if kind is hidden.ValueGuard:
            return self._value_guard(x)
        if kind is hidden.CodeGuard:
            return ("code", self.put(x.place), digest_of(x.code), _namespace(x.namespace))
        number = _NUMBER_OF.get(kind)
        if number is None:
            raise Refused(f"{kind.__name__} objects")
        return ("record", number, *[self._field(x, name) for name in kind.__dataclass_fields__])

    def _field(self, record: Any, name: str) -> Any:
        value = getattr(record, name)
        if type(record) is hidden.Global and name == "namespace":
            return _namespace(value)
        if type(record) is hidden.Fixed and name == "value":
            return ("function",) if value is self.fn else ("at", reference(value))
        if isinstance(value, CellType):
            number = self.cells.get(id(value))
            if number is None:
                raise Refused("closure cells of other functions")
            return number
        return self.put(value)

    def _dtype(self, d: np.dtype) -> str:
        if d.kind not in _DTYPE_KINDS or d.metadata is not None:
            raise Refused(f"the dtype {d}")
        return d.str if np.dtype(d.str).char == d.char else d.byteorder + d.char  # two names for one size

    def _class(self, x: type) -> Any:
        if x in _PLAIN or x in _NODES:
            return ("class", x.__name__)
        if issubclass(x, np.generic) and getattr(np, x.__name__, None) is x:
            return ("number", x.__name__)
        raise Refused(f"the class {x.__name__}")

    def _tree(self, x: TreeDef) -> Any:
        if x.kind not in _NODES:
            raise Refused(f"containers of {x.kind}")
        return ("tree", _NODES.index(x.kind), self.put(x.meta), *[self._tree(c) for c in x.children])

    def _value_guard(self, x: hidden.ValueGuard) -> Any:
        if x.by_value:
            if not _is_value(x.value):
                raise Refused(f"a {type(x.value).__name__} that was read")
            return ("equal", self.put(x.place), self.put(x.value))
        wrapped = jitted(x.value)
        if wrapped is not None:
            return ("jitted", self.put(x.place), *_signature(wrapped))
        return ("same", self.put(x.place), reference(x.value))


# --- reading --------------------------------------------------------------------------------------------------------


def read(fn: FunctionType, written: Sequence[Any], known: dict[str, Any], call: Call) -> Trace:
    """The trace of a function whose code is that of the one it was written for.

    Args:
        known: what the call says of itself: `in_tree`, `keys`, `aliases`.

    Raises:
        Elsewhere: something is not as it was.
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError: it is no such data.
    """
    data = Written(*written)
    if is_marked(fn):
        raise Elsewhere(fn.__name__)
    for module, name, found in data.attributes:
        owner = sys.modules.get(module)
        if owner is None or repr(_found(owner, name)) != repr(found):  # NaN is NaN, 0.0 is not -0.0
            raise Elsewhere(f"{module}.{name}")
    for module, name, is_builtin in data.absent:
        owner = sys.modules.get(module)
        if owner is None or name in vars(owner) or _is_builtin(name) is not is_builtin:
            raise Elsewhere(f"the name {name}")
        if vars(owner).get("__builtins__", builtins) not in (builtins, vars(builtins)):
            raise Elsewhere("builtins of its own")
    get = _Reader(fn, call).get
    parts = [get(x) for x in data.graph]
    for part, form in zip(parts, _GRAPH, strict=True):
        forms.check(part, form)
    graph = Graph(parts[0])
    graph.symbols = {s.name: s for s in parts[1]}
    graph.guards, graph.sites, graph.results, graph.hidden = parts[2:]
    values = [get(x) for x in data.trace]
    forms.check_fields(Trace, values, _FIELDS)
    return Trace(graph=graph, replays=[], **known, **dict(zip(_FIELDS, values, strict=True)))


def _found(owner: ModuleType, name: str) -> Any:
    try:
        return put_found(getattr(owner, name, MISSING))
    except Refused:
        return None


def _is_builtin(name: str) -> bool | None:
    try:
        return _builtin(name)
    except Refused:
        return None


class _Reader:
    """Plain data to values of one trace."""

    def __init__(self, fn: FunctionType, call: Call) -> None:
        self.fn = fn
        self.call = call

    def get(self, x: Any) -> Any:
        return _READERS[x[0]](self, x) if type(x) is tuple else x

    def _items(self, x: Any) -> list[Any]:
        return [self.get(i) for i in x[1:]]

    def _scalar(self, x: Any) -> Any:
        return np.frombuffer(x[2], np.dtype(x[1]))[0]

    def _class(self, x: Any) -> Any:
        return next(c for c in (*_NODES, *_PLAIN) if c is not None and c.__name__ == x[1])

    def _dim(self, x: Any) -> dims.Dim:
        terms = tuple([(tuple([self.get(a) for a in atoms]), factor) for atoms, factor in x[1:]])
        for atoms, factor in terms:
            forms.check(atoms, "Monomial")
            forms.check(factor, "int")
        return dims.Dim(terms)

    def _atom(self, x: Any) -> dims.Atom:
        args = tuple([self.get(a) for a in x[2:]])
        forms.check(args, "tuple[str, ...]" if x[1] == "sym" else "tuple[DimLike, ...]")
        forms.check(x[1], "str")
        return dims.Atom(x[1], args)

    def _tree(self, x: Any) -> TreeDef:
        return TreeDef(_NODES[x[1]], self.get(x[2]), tuple([self._tree(c) for c in x[3:]]))

    def _record(self, x: Any) -> Any:
        kind = _RECORDS[x[1]]
        fields = list(x[2:])
        if kind is hidden.Global:
            fields = [self._namespace(fields[0]), fields[1]]
        elif kind is hidden.Fixed:
            fields = [self._fixed(fields[0]), fields[1]]
        elif kind is hidden.Cell:
            fields = [(self.fn.__closure__ or ())[fields[0]], fields[1]]
        else:
            fields = [self.get(f) for f in fields]
        forms.check_fields(kind, fields)
        return kind(*fields)

    def _namespace(self, name: str) -> dict[str, Any]:
        module = sys.modules.get(name)
        if module is None:
            raise Elsewhere(f"no module {name}")
        return vars(module)

    def _fixed(self, x: Any) -> Any:
        if x[0] == "function":
            return self.fn
        return _referred(x[1])

    def _equal(self, x: Any) -> hidden.ValueGuard:
        return hidden.ValueGuard(self.get(x[1]), self.get(x[2]), by_value=True)

    def _same(self, x: Any) -> hidden.ValueGuard:
        place = self.get(x[1])
        live = place.get(self.call)
        try:
            if reference(live) == x[2]:
                return hidden.ValueGuard(place, live)
        except Refused:
            pass
        raise Elsewhere(place.text)

    def _jitted(self, x: Any) -> hidden.ValueGuard:
        place = self.get(x[1])
        live = place.get(self.call)
        wrapped = jitted(live)
        try:
            if wrapped is not None and repr(_signature(wrapped)) == repr(tuple(x[2:])):
                return hidden.ValueGuard(place, live)
        except Refused:
            pass
        raise Elsewhere(place.text)

    def _code(self, x: Any) -> hidden.CodeGuard:
        place, namespace = self.get(x[1]), self._namespace(x[3])
        live = place.get(self.call)
        if type(live) is not FunctionType or live.__globals__ is not namespace or digest_of(live.__code__) != x[2]:
            raise Elsewhere(place.text)
        if is_marked(live):
            raise Elsewhere(place.text)
        return hidden.CodeGuard(place, live.__code__, namespace)


def _referred(ref: tuple[Any, ...]) -> Any:
    """The object of a reference.

    Raises:
        Elsewhere: there is none.
    """
    found: Any = sys.modules.get(ref[1], MISSING)
    for part in ref[2].split(".") if ref[0] == "name" else ():
        found = getattr(found, part, MISSING)
    try:
        if found is not MISSING and reference(found) == ref:
            return found
    except Refused:
        pass
    raise Elsewhere(str(ref[1]))


_READERS: Final[dict[str, Callable[[_Reader, Any], Any]]] = {
    "tuple": lambda r, x: tuple(r._items(x)),
    "list": _Reader._items,
    "dict": lambda r, x: {r.get(k): r.get(v) for k, v in x[1:]},
    "dtype": lambda r, x: np.dtype(x[1]),
    "scalar": _Reader._scalar,
    "dim": _Reader._dim,
    "atom": _Reader._atom,
    "tree": _Reader._tree,
    "class": _Reader._class,
    "record": _Reader._record,
    "equal": _Reader._equal,
    "same": _Reader._same,
    "code": _Reader._code,
    "jitted": _Reader._jitted,
    "number": lambda r, x: getattr(np, x[1]),
}
