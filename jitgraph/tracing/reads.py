"""What a trace has looked at beside its guards and hidden arguments, so that another process may do without the trace.

Within a process some things are taken to stay as they are: what NumPy's and Python's own modules hold, which names are
builtins, what functions answer that are called while tracing. A process that finds the trace on disk has to look at
them again (`portable`), or has to trace: wherever a trace meets something that is not listed here, it gives up.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, UnionType
from typing import Any, Final

import numpy as np

from jitgraph.tensor import Tensor
from jitgraph.tracing.source_find import nested

#: Classes whose methods, and which as functions, depend on their arguments only and have no effect beside them.
_CLASSES: Final = frozenset((
    bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, slice, range, object, enumerate, zip,
    reversed, np.dtype, np.finfo, np.iinfo,
))  # fmt: skip
#: Of these: what the process says of them, or of the objects in them.
_SETS: Final = (set, frozenset)
_HASHING: Final = frozenset(("__hash__", "__sizeof__", "__reduce__", "__reduce_ex__", "__dir__"))
#: Functions that look into classes, and those that make texts.
_CLASS_TESTS: Final = (isinstance, issubclass)
_TEXTS: Final = frozenset((repr, str, format, ascii))
_TEXT_METHODS: Final = frozenset(("__repr__", "__str__", "__format__", "format", "format_map", "__mod__"))
#: Classes whose objects have the same text in each process.
_SPELT: Final = frozenset((bool, int, float, complex, str, bytes, type(None), slice, range, type))
_METHODS: Final = frozenset(
    type(x) for x in (str.join, object.__init__, object().__str__, dict.__dict__["fromkeys"], int.__add__)
)
_BUILTINS: Final = frozenset((
    abs, all, any, ascii, bin, callable, chr, divmod, format, hex, isinstance, issubclass, iter, len, max, min, next,
    oct, ord, pow, repr, round, sorted, sum,
))  # fmt: skip
_MODULES: Final = ("math", "cmath", "_operator")
_NUMPY: Final = frozenset((
    np.result_type, np.promote_types, np.can_cast, np.issubdtype, np.shape, np.ndim, np.size, np.isscalar,
    np.iterable, np.broadcast_shapes, np.min_scalar_type,
))  # fmt: skip
#: Stand-ins with a tracer that read nothing else.
_STANDINS: Final = frozenset(map(id, (
    getattr, hasattr, type, range, enumerate, zip, reversed, len, sum, max, min, sorted, round, np.ndindex,
    np.ndenumerate,
)))  # fmt: skip
_REFUSED: Final = {
    dis.opmap[name]: why
    for name, why in (
        ("IMPORT_NAME", "imports"), ("IMPORT_FROM", "imports"), ("LOAD_BUILD_CLASS", "makes a class"),
        ("BUILD_SET", "makes a set"), ("SET_ADD", "makes a set"),
    )
    if name in dis.opmap
}  # fmt: skip


class Reads:
    """Of one trace.

    Attributes:
        why: why another process has to trace; empty if it need not.
        attributes: (module, name) to what modules that are not traced had there; MISSING: nothing.
        absent: names that were not among a module's globals, so that they are builtins, or nothing.
        traced: the functions that were traced.
    """

    __slots__ = ("absent", "attributes", "traced", "why")

    def __init__(self) -> None:
        self.why = ""
        self.attributes: dict[tuple[str, str], Any] = {}
        self.absent: dict[tuple[str, str], None] = {}
        self.traced: list[FunctionType] = []

    def give_up(self, why: str) -> None:
        """Another process has to trace."""
        self.why = self.why or why

    def attribute(self, owner: ModuleType, name: str, value: Any) -> None:
        """An attribute of a module that is not traced."""
        self.attributes[owner.__name__, name] = value

    def missing(self, namespace: dict[str, Any], name: str) -> None:
        """A name that is no global."""
        module = namespace.get("__name__")
        if isinstance(module, str):
            self.absent[module, name] = None
        else:
            self.give_up("globals of no module")

    def standin(self, f: Any) -> None:
        """A function that is replaced by one that sees the tracer."""
        module = getattr(f, "__module__", None) or ""
        if id(f) not in _STANDINS and module.partition(".")[0] != "numpy":
            self.give_up(f"calls {getattr(f, '__name__', f)}")

    def called(self, f: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> None:
        """A function that is called as it stands, while tracing."""
        if not _is_plain(f) or not _are_plain(f, (*args, *(kwargs or {}).values())):
            self.give_up(f"calls {getattr(f, '__qualname__', type(f).__name__)}")

    def made(self, x: Any) -> None:
        """What an operator of Python's own has made: the order of a set is another in each process."""
        if type(x) in _SETS:
            self.give_up("makes a set")

    def refusal(self, guarded: Sequence[CodeType]) -> str:
        """Why another process has to trace; empty if it need not.

        Args:
            guarded: code that guards look at: each function that was traced has to have such code, or to be in it, or
                to be one of NumPy's.
        """
        known = [inner for code in guarded for inner in nested(code)]
        for f in self.traced:
            own = (f.__module__ or "").partition(".")[0] in ("numpy", "jitgraph")
            if not own and f.__code__ not in known:
                self.give_up(f"{f.__name__} is found in no way that another process could go")
        for code in known:
            for number in _REFUSED.keys() & code.co_code[::2]:
                self.give_up(f"{code.co_name} {_REFUSED[number]}")
            if any(type(x) is frozenset for x in code.co_consts) and _walks_constant_set(code):
                self.give_up(f"{code.co_name} makes a set")
        return self.why


def _walks_constant_set(code: CodeType) -> bool:
    """Whether a set of constants serves for more than to see what is in it."""
    steps = list(dis.get_instructions(code))
    return any(
        type(a.argval) is frozenset and a.opname.startswith("LOAD_CONST") and b.opname != "CONTAINS_OP"
        for a, b in zip(steps, [*steps[1:], steps[-1]], strict=True)
    )


def _are_plain(f: Any, values: Sequence[Any]) -> bool:
    """Whether a plain function gives the same answer for these values in each process.

    Not for sets, whose order is the process's; nor where classes have a say in which objects are theirs; nor the text
    of an object that is shown by its address.
    """
    owner = getattr(f, "__self__", None)
    if type(owner) in _SETS or any(type(x) in _SETS for x in values):
        return False
    if f in _CLASS_TESTS:
        return all(map(_is_closed, values[1:]))
    if f in _TEXTS or getattr(f, "__name__", "") in _TEXT_METHODS:
        return all(map(_is_spelt, values))
    return True


def _is_closed(kinds: Any) -> bool:
    """Whether the classes say nothing themselves of what belongs to them, as abstract ones do."""
    if isinstance(kinds, tuple | UnionType):
        return all(map(_is_closed, kinds if isinstance(kinds, tuple) else kinds.__args__))
    return type(kinds) is type


def _is_spelt(x: Any) -> bool:
    if isinstance(x, tuple | list):
        return all(map(_is_spelt, x))
    if isinstance(x, dict):
        return all(map(_is_spelt, (*x.keys(), *x.values())))
    return type(x) in _SPELT or isinstance(x, Tensor | np.generic | np.dtype)


def _is_plain(f: Any) -> bool:
    """Whether what a function answers depends on its arguments alone, and that is all it does."""
    if isinstance(f, type):
        return (
            (f in _CLASSES and f not in _SETS)
            or (issubclass(f, np.generic) and f.__module__ == "numpy")
            or (issubclass(f, BaseException) and f.__module__ == "builtins")
        )
    kind = type(f)
    if getattr(f, "__name__", "") in _HASHING:
        return False
    if kind is np.ufunc:
        return getattr(np, f.__name__, None) is f
    if kind is BuiltinFunctionType:
        owner = f.__self__
        if isinstance(owner, ModuleType):
            return f in _BUILTINS if owner is builtins else owner.__name__ in _MODULES or f in _NUMPY
        return type(owner) in _CLASSES or (isinstance(owner, type) and owner in _CLASSES)
    if kind in _METHODS:
        return getattr(f, "__objclass__", None) in _CLASSES
    try:
        return f in _NUMPY
    except TypeError:  # not hashable
        return False
