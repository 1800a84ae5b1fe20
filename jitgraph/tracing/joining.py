"""What two values of a name have in common: type, structure, place; and how one becomes a value of a type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.builder import Undecided, constant_type, is_long
from jitgraph.ir.dims import DimLike, symbols
from jitgraph.ir.graph import Block, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.transform import bound_symbols, dims_of_attr
from jitgraph.ir.types import IndexMap, Kind, TensorType, c_layout, python_type, same_layout, scalar_type
from jitgraph.pytree import TreeDef, children, flatten
from jitgraph.tensor import READ_ONLY, Storage, Tensor, is_writable, make, wrap
from jitgraph.tracing.exits import RETURNED
from jitgraph.tracing.kinds import boxed, tag_of
from jitgraph.tracing.origins import selected
from jitgraph.tracing.poison import OneOf, Poison
from jitgraph.tracing.rewrite import is_rewritten

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode


class Unset:
    """The value of a function that has not returned yet: fits every type."""

    def __repr__(self) -> str:
        return "<not returned>"


UNSET = Unset()


_RANK: dict[Kind, int] = {"py_bool": 0, "py_int": 1, "py_float": 2, "py_complex": 3}


def is_returned(name: str) -> bool:
    """Whether a name stands for what the function returns, or a part of it: none of its statements runs behind that."""
    return name.startswith(RETURNED)


def is_number(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.number | np.bool_)


def is_value(x: Any) -> bool:
    """A traced value, or a number that can become one."""
    return (type(x) is Tensor and x.is_traced) or (is_number(x) and not is_long(x))


def type_of(x: Any) -> TensorType:
    """The type of a traced value or number."""
    return x.type if type(x) is Tensor else constant_type(x)


def same_constant(a: Any, b: Any) -> bool:
    """Two numbers that no program can tell apart."""
    return type(a) is type(b) and repr(a) == repr(b)


def same_static(a: Any, b: Any) -> bool:
    """Two texts, types or tuples of such things, that no program can tell apart; traced values are none."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same_static(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, str | bytes | type):
        return bool(a == b)
    return is_number(a) and same_constant(a, b)


def same_place(a: Any, b: Any) -> bool:
    """Two Tensors that are one view of one storage, or one size."""
    if type(a) is not Tensor or type(b) is not Tensor:
        return False
    if a._storage is b._storage and a._steps == b._steps and a._storage.value is not None:
        return True
    return (
        a._dim is not None
        and a._dim is not READ_ONLY
        and type(a._dim) is type(b._dim)
        and bool(a._dim == b._dim)
        and a._storage.value is b._storage.value
    )


def join(mode: CaptureMode, a: TensorType, b: TensorType) -> TensorType | None:
    """A type that values of both types can be converted to without changing their numbers; None if there is none."""
    if a == b:
        return a
    if a.kind == "array" or b.kind == "array":
        if a.kind != b.kind or a.ndim != b.ndim:
            return None
        if not all(same_dim(mode, x, y) for x, y in zip(a.shape, b.shape, strict=True)):
            return None
        dtype = a.dtype if a.dtype == b.dtype else _wider(a.dtype, b.dtype)
        if dtype is None:
            return None
        layout = a.layout if same_layout(a, b) and a.layout.is_dense else c_layout(a.ndim)
        return TensorType(dtype, a.shape, "array", layout)
    if a.is_python and b.is_python:
        if a.kind not in _RANK or b.kind not in _RANK:
            return None
        return a if _RANK[a.kind] >= _RANK[b.kind] else b
    if a.is_python or b.is_python:
        weak, strong = (a, b) if a.is_python else (b, a)
        order = "biufc"
        if order.index("i" if strong.dtype.kind == "u" else strong.dtype.kind) >= order.index(weak.dtype.kind):
            return scalar_type(strong.dtype)
        return scalar_type(weak.dtype)
    wider = _wider(a.dtype, b.dtype)
    return None if wider is None else scalar_type(wider)


def _wider(a: np.dtype, b: np.dtype) -> np.dtype | None:
    dtype = np.promote_types(a, b)
    return dtype if dtype in dtypes.COMPILED else None


def same_dim(mode: CaptureMode, a: DimLike, b: DimLike) -> bool:
    """Equal by proof, or by a guard that holds for the example."""
    known = mode.builder.prove("==", a, b)
    if known is not None:
        return known
    try:
        return mode.decide("==", a, b)
    except Undecided:
        return False


def convert(mode: CaptureMode, value: Value, to: TensorType) -> Value:
    """`value` as type `to` (see `join`), emitted at the builder's place."""
    have = value.type
    if have == to:
        return value
    apply = mode.builder.apply
    if have.kind != "array":
        known = constant_of(value)
        if known is not None:
            number = np.asarray(known).astype(to.dtype)
            return mode.builder.constant(number.item() if to.is_python else number[()])
        if have.dtype != to.dtype:
            if have.is_python:
                value = apply(REGISTRY["as_kind"], value, kind="np_scalar")[0]
            value = apply(REGISTRY["cast"], value, dtype=to.dtype)[0]
        if value.type.kind != to.kind:
            value = apply(REGISTRY["as_kind"], value, kind=to.kind)[0]
        return value
    if have.dtype != to.dtype:
        value = apply(REGISTRY["cast"], value, dtype=to.dtype)[0]
    if not same_layout(value.type, to):
        order = to.layout.order
        moved = apply(REGISTRY["view"], value, map=IndexMap.permute(value.type.shape, order))[0]
        copy = apply(REGISTRY["copy"], moved, order="C")[0]
        back = [order.index(axis) for axis in range(len(order))]
        value = apply(REGISTRY["view"], copy, map=IndexMap.permute(copy.type.shape, back))[0]
    if value.type.shape != to.shape:
        value = mode.matched(value, to.shape)
    return value


def inner_symbols(blocks: Iterable[Block]) -> set[str]:
    """Symbols that ops of these blocks bind: nothing behind their region may have such a size."""
    return {name for block in blocks for op in block.ops() for name in bound_symbols(op)}


def sizes_of(x: Any) -> set[str]:
    """The symbols in the shape of a traced array, and in where it lies in its storage."""
    if type(x) is not Tensor or not x.is_traced:
        return set()
    dims: list[DimLike] = list(x.type.shape)
    for step in x._steps:
        dims += dims_of_attr(step)
    return {name for d in dims for name in symbols(d)}


def stays_inside(mode: CaptureMode, x: Tensor) -> bool:
    """Whether a view may be read on paths that have not checked its indices: it is surely inside of its storage."""
    graph, value = mode.builder.graph, x._storage.value if type(x) is Tensor else None
    if value is None:  # a size, or nothing to be read
        return True
    shape = value.type.shape
    for step in x._steps:
        if isinstance(step, IndexMap):
            for axis, size in zip(step.axes, shape, strict=True):
                extent: DimLike = 1 if axis.axis is None else step.shape[axis.axis]
                names = {**symbols(axis.offset), **symbols(axis.step), **symbols(extent)}
                if all(graph.symbols[n].origin == "arg" for n in names):  # by proof or guard
                    continue
                far = axis.offset + axis.step * (extent - 1) if axis.axis is not None else axis.offset
                ends = {axis.offset, far}  # one without elements has a last one in front of its first
                lowest = {axis.offset} if graph.facts.is_le(0, axis.step) else ends
                highest = {far} if graph.facts.is_le(0, axis.step) else ends
                if not all(graph.facts.is_le(0, d) for d in lowest):
                    return False
                if not all(graph.facts.is_lt(d, size) for d in highest):
                    return False
            shape = step.shape
        elif type(step) is tuple:
            shape = step
    return True


def placeholder(mode: CaptureMode, t: TensorType) -> Value:
    """Some value of type `t` that is never looked at."""
    zero = np.zeros((), t.dtype)[()]
    if t.kind == "array":
        value = mode.builder.apply(REGISTRY["full"], mode.builder.constant(zero), shape=t.shape, dtype=t.dtype)[0]
        return value if value.type == t else convert(mode, value, t)
    return mode.builder.constant(zero.item() if t.is_python else zero)


def structure(x: Any) -> tuple[list[Any], TreeDef] | None:
    """Leaves and tree of a container; None for a leaf."""
    kind = type(x)
    if kind is Tensor:
        node = boxed(x)
        return None if node is None else flatten(x, boxed)
    if kind in (tuple, list, dict) or (not isinstance(x, Tensor | str) and children(x) is not None):
        return flatten(x, boxed)
    return None


def describe(x: Any) -> str:
    """What a variable holds, for an error."""
    if type(x) is Poison:
        return "unbound"
    if type(x) is Tensor:
        return str(x.type)
    if is_number(x):
        return "int" if is_long(x) else str(constant_type(x))
    if type(x) is OneOf:
        return " or ".join(map(describe, x.options))
    return "None" if x is None else repr(x) if isinstance(x, str) and len(x) < 20 else type(x).__name__


class Typed:
    """Stands for a value of which the types alone are known."""

    __slots__ = ("types",)

    def __init__(self, types: list[TensorType]) -> None:
        self.types = types


def kind_of(mode: CaptureMode, x: Any) -> Any:
    """A value that a variable may have, without its numbers: see `is_option`."""
    if type(x) is tuple:
        return tuple([kind_of(mode, i) for i in x])
    return Typed(exact_types(mode, x)) if is_value(x) else x


#: What the graph need not know of an option.
_FIXED: Final = (str, bytes, np.ufunc, BuiltinFunctionType)


def is_option(x: Any) -> bool:
    """Whether a variable may be this on one path and something of another type on another: nothing that can change."""
    if type(x) is OneOf or type(x) is tuple:
        return all(map(is_option, options_of(x) if type(x) is OneOf else x))
    return x is None or type(x) in _FIXED or is_number(x) or is_value(x) or _is_defined(x)


def _is_defined(x: Any) -> bool:
    """Whether it is a class, or a function, that the trace has not made."""
    return isinstance(x, type) or (type(x) is FunctionType and not is_rewritten(x.__code__))


def options_of(x: Any) -> tuple[Any, ...]:
    """What a value may be."""
    return x.options if type(x) is OneOf else (x,)


def alike(mode: CaptureMode, a: Any, b: Any) -> bool:
    """Whether two values are merged as one of one type; either may be a `Typed`."""
    if (type(a) is Typed or is_value(a)) and (type(b) is Typed or is_value(b)):
        first, second = exact_types(mode, a), exact_types(mode, b)
        if first[0].kind != "array" or second[0].kind != "array":
            return first == second
        return first[0].dtype == second[0].dtype and join(mode, first[0], second[0]) is not None
    parts_a, parts_b = structure(a), structure(b)
    if parts_a is not None and parts_b is not None:
        fits = parts_a[1] == parts_b[1]
        return fits and all(alike(mode, x, y) for x, y in zip(parts_a[0], parts_b[0], strict=True))
    return same_static(a, b)


def renumbered(which: Tensor, numbers: Sequence[int]) -> Tensor:
    """A traced number of 0, 1, ... as the number that stands in its place, emitted at the builder's place."""
    mode: Any = which._storage.mode
    value = which._storage.value
    if list(numbers) == list(range(len(numbers))):
        return which
    found = mode.builder.constant(numbers[0])
    for k, number in enumerate(numbers[1:], 1):
        is_it = mode.builder.apply(REGISTRY["eq"], value, k)[0]
        found = selected(mode, is_it, mode.builder.constant(number), found)
    return wrap(mode, found)


def exact_types(mode: CaptureMode, x: Any) -> list[TensorType]:
    """The types that a value may have: two for a scalar whose kind depends on the path."""
    if type(x) is Typed:
        return x.types
    tag = tag_of(mode, x)
    return [type_of(x)] if tag is None else [tag.yes, tag.no]


def remade(x: Tensor, storage: Storage) -> Tensor:
    """The same view of another storage; of its own one, a new object that is the same size, if it is one."""
    made = make(storage, x._steps, x._type if x._steps else None)
    if storage is x._storage or not is_writable(x):
        made._dim = x._dim
    return made


def carried_type(x: Any) -> TensorType | None:
    """The type that a variable is carried with around a loop; None if it is nothing to carry."""
    if not is_value(x):
        return None
    t = type_of(x)
    return python_type(t.kind) if t.is_python else t
