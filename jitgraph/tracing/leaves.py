"""Leaves of a call: what the specialisation key says of each, and how arguments are named in the graph.

A key is a plain hashable tuple, made at every call by the Python dispatcher, so it is short and cheap:
    ("array", dtype, layout, which axes have size 1, writable)      ndarray (ndim is the layout's)
    ("tensor", ...)                                                 the same for an eager `jg.Tensor`
    ("scalar", dtype)                                               NumPy scalar
    ("py_int",) ("py_float",) ("py_complex",)                       Python numbers: run-time arguments
    ("object", class) ("function", code, ...)                       known by class or code: what is read is guarded
    ("static", type, value)                                         everything else: by value, part of the key
Sizes, strides and numbers are not in the key.
"""

from __future__ import annotations

import enum
import functools
import inspect
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, TypeAlias

import numpy as np

from jitgraph import errors
from jitgraph.config import config
from jitgraph.dtypes import COMPILED, COMPILED_TEXT, native
from jitgraph.ir.layouts import layout_of_array
from jitgraph.ir.types import Layout, TensorType, c_layout, python_type, scalar_type
from jitgraph.pytree import TreeDef, flatten, paths
from jitgraph.source import SourceLoc
from jitgraph.tensor import Tensor, plain

Key: TypeAlias = tuple[Any, ...]

#: A Tensor that requires a gradient: no specialisation serves it.
TAPED: Key = ("taped",)
_PY_INT: Key = ("py_int",)
_PY_FLOAT: Key = ("py_float",)
_PY_COMPLEX: Key = ("py_complex",)
_PYTHON = ("py_int", "py_float", "py_complex")
_COMPILED = frozenset(COMPILED)
#: Names of the first sizes; then s0, s1, ...
SIZE_NAMES = ("n", "m", "k", "l", "p", "q", "r", "s", "t", "u", "v", "w")


class Static:
    """A leaf that is static by the user's wish (`static_argnames`)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Identity:
    """An unhashable object as part of a key: equal only to itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def leaf_type(x: Any) -> Key:
    """The key of a leaf; see the top of the file."""
    kind = type(x)
    if kind is np.ndarray:
        return _array_key("array", x)
    if kind is float:
        return _PY_FLOAT
    if kind is int:
        return _PY_INT if -(2**63) <= x < 2**63 else ("static", int, x)
    if kind is complex:
        return _PY_COMPLEX
    if kind is Tensor:
        if x.requires_grad:
            return TAPED
        array = plain(x)
        if isinstance(array, np.ndarray):
            return _array_key("tensor", array)
        return ("tensor", *leaf_type(array))
    if isinstance(x, np.ndarray):  # another subclass has rules of its own (matrix, masked arrays): refused
        return _array_key("array", x) if kind is np.memmap else ("static", kind, Identity(x))
    if isinstance(x, np.number | np.bool_ | np.datetime64 | np.void):
        dtype = x.dtype
        if kind is dtype.type:  # else a class of the user's, with operators of its own
            return ("scalar", dtype)
    if kind is FunctionType:
        return ("function", x.__code__, id(x.__globals__))
    if kind is MethodType:
        if is_plain_class(type(x.__self__)) and isinstance(x.__func__, FunctionType):
            return ("method", x.__func__.__code__, type(x.__self__))
    elif is_plain_class(kind) or is_container_class(kind):
        return ("object", kind)
    return static_key(x.value if kind is Static else x)


#: Modules whose Python functions are called as they are, and whose objects are static.
OPAQUE: Final = frozenset(sys.stdlib_module_names) | {"numpy", "scipy", "llvmlite", "jitgraph", "builtins"}
_MADE_BY_USERS: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_plain_classes: dict[type, bool] = {functools.partial: True}


def is_opaque_module(name: str) -> bool:
    """Whether functions of the module are called as they stand."""
    root = name.partition(".")[0]
    if name == "jitgraph.random":  # NumPy code like a user's
        return False
    return root in OPAQUE or (bool(config.opaque_modules) and root in config.opaque_modules.split(","))


def is_opaque_function(f: FunctionType) -> bool:
    """Whether a Python function is called as it stands. Where nobody said of which module it is, it is a user's."""
    module = f.__module__
    return module is not None and module != "builtins" and is_opaque_module(module)


def is_container_class(kind: type) -> bool:
    """Whether instances are lists, dicts or sets of a class of their own."""
    return issubclass(kind, dict | list | set | deque) and kind.__flags__ & _MADE_BY_USERS != 0


def generators() -> tuple[type, ...]:
    """NumPy's classes of random generators: none while `numpy.random` is not imported, as it then has no instances."""
    module = sys.modules.get("numpy.random")
    return tuple([getattr(module, name) for name in ("Generator", "RandomState") if hasattr(module, name)])


def is_plain_class(kind: type) -> bool:
    """Whether instances are known by class and attributes: classes that users write, of nothing but attributes."""
    known = _plain_classes.get(kind)
    if known is None:
        known = kind in generators() or (
            not issubclass(kind, type | enum.Enum | BaseException)
            and all(
                base is object or (base.__flags__ & _MADE_BY_USERS and base.__module__.partition(".")[0] != "jitgraph")
                for base in kind.__mro__
            )
            and not is_opaque_module(kind.__module__)
        )
        _plain_classes[kind] = known
    return known


def _array_key(tag: str, x: np.ndarray) -> Key:
    shape = x.shape
    flags = x.flags
    behaved = flags.c_contiguous and flags.aligned
    return (
        tag,
        x.dtype,
        c_layout(len(shape)) if behaved else layout_of_array(x),
        tuple([k for k, d in enumerate(shape) if d == 1]) if 1 in shape else (),
        flags.writeable,
    )


def static_key(x: Any) -> Key:
    """The key of a static value: by value if it can be hashed, else by identity.

    Values that Python takes for equal have different keys: 0.0 and -0.0, and `(1,)`, `(1.0,)` and `(True,)`.
    """
    kind = type(x)
    if kind is float or kind is complex or (isinstance(x, np.inexact) and kind is x.dtype.type):
        return ("static", kind, repr(x))  # NaN is NaN
    if kind is tuple:
        return ("static", tuple, tuple([static_key(i) for i in x]))
    if kind is slice:
        return ("static", slice, (static_key(x.start), static_key(x.stop), static_key(x.step)))
    if kind is set or kind is frozenset:
        return ("static", kind, frozenset([static_key(i) for i in x]))
    try:
        hash(x)
    except TypeError:
        return ("static", kind, Identity(x))
    return ("static", kind, x)


def leaf_text(key: Key) -> str:
    """The key of a leaf for people: `float64[2d]`, `py_float`."""
    if key[0] in ("array", "tensor") and len(key) > 3:
        return f"{key[1].name}[{len(key[2].order)}d]" + ("" if key[2].is_c else f":{key[2]}")
    return " ".join([_part_text(getattr(part, "__name__", part)) for part in key])


def _part_text(part: Any) -> str:
    if type(part) is tuple and all(type(k) is tuple and k[0] == "static" for k in part):
        return f"({', '.join([leaf_text(k).removeprefix('static ') for k in part])})"
    try:
        return str(part)
    except ValueError:  # Python shows no longer integers
        return f"an integer of {part.bit_length()} bits" if type(part) is int else type(part).__name__


def key_text(keys: Sequence[Key]) -> str:
    """The keys of all leaves for people: `(float64[2d], py_float)`."""
    return f"({', '.join(map(leaf_text, keys))})"


#: Tags of keys of leaves that are no arguments of the graph.
_FIXED: Final = frozenset(("static", "object", "function", "method"))


def is_dynamic(key: Key) -> bool:
    return key[0] not in _FIXED


def check_leaf(x: Any, key: Key, name: str, loc: SourceLoc | None = None) -> None:
    """Refuse array leaves that compiled code cannot read.

    Raises:
        DTypeError: dtype is not supported.
    """
    if key[0] in _FIXED or key[0] in _PYTHON:
        return
    dtype = np.asarray(plain(x)).dtype
    if native(dtype) not in _COMPILED:
        raise errors.UnsupportedDTypeError(
            errors.describe(
                f"argument {name} has dtype {dtype}, which is not supported (supported: {COMPILED_TEXT})",
                loc,
                remedy=_conversion(dtype, name),
            )
        )


def _conversion(dtype: np.dtype, name: str) -> str:
    if dtype.names:
        return f"pass its fields as arguments: {name}[{dtype.names[0]!r}]."
    if dtype.kind in "mM":
        return f"pass its numbers: {name}.astype('int64')."
    return f"convert it before the call, e.g. {name}.astype(float), or use @jit(fallback='eager')."


def type_of_leaf(x: Any, key: Key, sizes: Sequence[Any]) -> TensorType:
    """The IR type of a dynamic leaf with these (symbolic) sizes."""
    tag = key[0]
    if tag == "tensor":
        key = key[1:] if key[1] == "scalar" or key[1] in _PYTHON else ("array", *key[1:])
        tag = key[0]
    if tag == "array":
        layout = key[2]
        assert isinstance(layout, Layout)
        return TensorType(np.dtype(key[1]), tuple(sizes), "array", layout)
    if tag == "scalar":
        return scalar_type(np.dtype(key[1]))
    return python_type(tag)


def alias_pattern(leaves: Sequence[Any]) -> tuple[int, ...]:
    """For each leaf the first one that is the same array; () when all arrays are different objects."""
    first: dict[int, int] = {}
    pattern: list[int] = []
    for i, x in enumerate(leaves):
        pattern.append(first.setdefault(id(plain(x)), i) if isinstance(x, np.ndarray) or type(x) is Tensor else i)
    return tuple(pattern) if any(p != i for i, p in enumerate(pattern)) else ()


class CallSpec:
    """How calls of one function are flattened.

    Args:
        fn: the function; its signature gives names to positions.
        static: parameters that are static by value.

    Raises:
        ValueError: `static` names no parameter.
    """

    def __init__(self, fn: Callable[..., Any], static: Sequence[str] = ()) -> None:
        try:
            parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        self.positional = [
            p.name
            for p in parameters
            if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ]
        variadic = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
        self.rest = variadic[0] if variadic else "args"
        self.static = frozenset(static)
        names = {p.name for p in parameters}
        if parameters and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            unknown = sorted(self.static - names)
            if unknown:
                raise ValueError(
                    f"static_argnames: {', '.join(unknown)} is no parameter of {getattr(fn, '__name__', fn)}"
                )
        self._static_at = [k for k, name in enumerate(self.positional) if name in self.static]

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], TreeDef]:
        """Leaves of `(args, kwargs)` in order and their tree; static arguments are `Static` leaves."""
        if self.static:
            if self._static_at:
                changed = list(args)
                for k in self._static_at:
                    if k < len(changed):
                        changed[k] = Static(changed[k])
                args = tuple(changed)
            kwargs = {k: Static(v) if k in self.static else v for k, v in kwargs.items()}
        return flatten((args, kwargs) if kwargs else (args,))

    def names(self, tree: TreeDef) -> list[str]:
        """A name for each leaf, from the parameters."""
        return [name for parameter, child in self._children(tree) for name in paths(child, parameter)]

    def leaves_of(self, tree: TreeDef, names: Collection[str]) -> frozenset[int]:
        """Numbers of the leaves that are arguments for these parameters."""
        found: list[int] = []
        count = 0
        for parameter, child in self._children(tree):
            if parameter.partition("[")[0] in names:
                found += range(count, count + child.count)
            count += child.count
        return frozenset(found)

    def _children(self, tree: TreeDef) -> Iterator[tuple[str, TreeDef]]:
        """The arguments of a call, each with the name of its parameter."""
        for k, child in enumerate(tree.children[0].children):
            yield self.positional[k] if k < len(self.positional) else f"{self.rest}[{k - len(self.positional)}]", child
        if len(tree.children) > 1:
            keywords = tree.children[1]
            yield from zip(keywords.meta, keywords.children, strict=True)  # type: ignore[call-overload]
