"""Leaves of a call: what the specialisation key says of each, and how arguments are named in the graph.

A key is a plain hashable tuple, made at every call by the Python dispatcher, so it is short and cheap:
    ("array", dtype, layout, which axes have size 1, writable)      ndarray (ndim is the layout's)
    ("tensor", ...)                                                 the same for an eager `jg.Tensor`
    ("scalar", dtype)                                               NumPy scalar
    ("py_int",) ("py_float",)                                       Python numbers: run-time arguments
    ("static", type, value)                                         everything else: by value, part of the key
Sizes, strides and numbers are not in the key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from jitgraph import errors
from jitgraph.dtypes import COMPILED
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.types import Layout, TensorType, c_layout, python_type, scalar_type
from jitgraph.pytree import TreeDef, flatten, paths
from jitgraph.source import SourceLoc
from jitgraph.tensor import Tensor, plain

Key: TypeAlias = tuple[Any, ...]

#: A Tensor that requires a gradient: no specialisation serves it.
TAPED: Key = ("taped",)
_PY_INT: Key = ("py_int",)
_PY_FLOAT: Key = ("py_float",)
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
        return ("scalar", x.dtype)
    return static_key(x.value if kind is Static else x)


def _array_key(tag: str, x: np.ndarray) -> Key:
    shape = x.shape
    layout = c_layout(len(shape)) if x.flags.c_contiguous else layout_of(shape, x.strides, x.itemsize)
    return (
        tag,
        x.dtype,
        layout,
        tuple([k for k, d in enumerate(shape) if d == 1]) if 1 in shape else (),
        x.flags.writeable,
    )


def static_key(x: Any) -> Key:
    """The key of a static value: by value if it can be hashed, else by identity."""
    try:
        hash(x)
    except TypeError:
        return ("static", type(x), Identity(x))
    return ("static", type(x), x)


def is_dynamic(key: Key) -> bool:
    return bool(key[0] != "static")


def check_leaf(x: Any, key: Key, name: str, loc: SourceLoc | None = None) -> None:
    """Refuse array leaves that compiled code cannot read.

    Raises:
        DTypeError: dtype is not supported, or its byte order is not the machine's.
    """
    if key[0] in ("static", "py_int", "py_float"):
        return
    dtype = np.asarray(plain(x)).dtype
    if dtype not in _COMPILED:
        what = "is not in native byte order" if dtype.newbyteorder("=") in _COMPILED else "is not supported"
        raise errors.UnsupportedDTypeError(
            errors.describe(
                f"argument {name} has dtype {dtype}, which {what} (supported: bool, integers, float32, float64)",
                loc,
                remedy=_conversion(dtype, name),
            )
        )


def _conversion(dtype: np.dtype, name: str) -> str:
    if not dtype.isnative:
        return f"convert it before the call: {name}.astype({name}.dtype.newbyteorder('='))."
    if dtype.names:
        return f"pass its fields as arguments: {name}[{dtype.names[0]!r}]."
    if dtype.kind == "c":
        return f"pass {name}.real and {name}.imag, or use @jit(fallback='eager')."
    if dtype.kind in "mM":
        return f"pass its numbers: {name}.astype('int64')."
    return f"convert it before the call, e.g. {name}.astype(float), or use @jit(fallback='eager')."


def type_of_leaf(x: Any, key: Key, sizes: Sequence[Any]) -> TensorType:
    """The IR type of a dynamic leaf with these (symbolic) sizes."""
    tag = key[0]
    if tag == "tensor":
        key = key[1:] if key[1] in ("scalar", "py_int", "py_float") else ("array", *key[1:])
        tag = key[0]
    if tag == "array":
        layout = key[2]
        assert isinstance(layout, Layout)
        return TensorType(np.dtype(key[1]), tuple(sizes), "array", layout)
    if tag == "scalar":
        return scalar_type(np.dtype(key[1]))
    return python_type("py_int" if tag == "py_int" else "py_float")


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
        found: list[str] = []
        for k, child in enumerate(tree.children[0].children):
            name = self.positional[k] if k < len(self.positional) else f"{self.rest}[{k - len(self.positional)}]"
            found += paths(child, name)
        if len(tree.children) > 1:
            keywords = tree.children[1]
            for key, child in zip(keywords.meta, keywords.children, strict=True):  # type: ignore[call-overload]
                found += paths(child, key)
        return found
