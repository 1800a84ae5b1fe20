"""What records share: type rules taken from NumPy's own promotion, kinds, broadcasting, and helpers for gradients.

Type rules answer in a fixed way:
1. dtypes are those of `ufunc.resolve_dtypes`, Python numbers weak (NEP 50); what NumPy refuses is a `DTypeError` with
   NumPy's words. A weak Python integer fits its loop dtype: the front end has seen to that.
2. Operators on Python numbers alone follow Python: bools count as integers in arithmetic, results are Python numbers.
3. With an axis the result is an array; otherwise NumPy's ufuncs give a NumPy scalar, whatever the operands were.
4. Axes of operands equal the result's, are literally 1, or are missing; anything else is a `ShapeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import DTypeError, ShapeError, UnsupportedDTypeError
from jitgraph.ir.dims import DimLike
from jitgraph.ir.opdef import Attrs, Infer, OpDef, Signature, Trait, Vjp, register
from jitgraph.ir.reshapes import canonical_order
from jitgraph.ir.types import (
    AxisMap,
    IndexMap,
    Kind,
    Layout,
    Shape,
    TensorType,
    c_layout,
    elementwise_layout,
    python_kind_of,
)
from jitgraph.ops.lowering import in_single

#: A dtype, or the Python type of a weak operand: what `resolve_dtypes` takes.
DTypeCode: TypeAlias = "np.dtype | type"

PURE = frozenset({Trait.PURE})
ELEMENTWISE = frozenset({Trait.PURE, Trait.ELEMENTWISE})
COMMUTATIVE = ELEMENTWISE | {Trait.COMMUTATIVE}
MOVEMENT = frozenset({Trait.PURE, Trait.MOVEMENT})

_WEAK: dict[Kind, type] = {"py_int": int, "py_float": float, "py_complex": complex}
_HELD_BY_PYTHON = frozenset((dtypes.BOOL, dtypes.I64, dtypes.F64, dtypes.C128))
_SUPPORTED = frozenset(dtypes.in_memory())


# ------------------------------------------------------------------------------------------------- dtypes and kinds


def require_supported(name: str, used: Sequence[np.dtype]) -> None:
    """Refuse dtypes that compiled code does not compute with.

    Raises:
        UnsupportedDTypeError: one of `used` is no number of theirs.
    """
    for dtype in used:
        if dtype not in _SUPPORTED:
            raise UnsupportedDTypeError(f"{name} does not support {dtype.name} (supported: {dtypes.COMPILED_TEXT})")


def stored_as(value: TensorType, dtype: np.dtype) -> np.dtype:
    """The dtype that a value is cast to before it is stored in memory of `dtype`: scalars are in native byte order."""
    return dtype if value.kind == "array" else dtypes.native(dtype)


def dtype_code(t: TensorType) -> DTypeCode:
    """What promotion sees of an operand: its dtype, or the Python type if it is weak."""
    return _WEAK.get(t.kind) or t.dtype


@lru_cache(maxsize=4096)
def loop_dtypes(name: str, ufunc: np.ufunc, codes: tuple[DTypeCode, ...]) -> tuple[np.dtype, ...]:
    """The dtypes of NumPy's inner loop for these operands: one for each operand, then those of the results.

    Raises:
        DTypeError: NumPy has no such loop, or it needs a dtype that is not supported.
    """
    if all(code is int for code in codes):  # comparisons of Python integers would resolve to object
        codes = (dtypes.I64,) * len(codes)
    try:
        found = ufunc.resolve_dtypes((*codes, *(None,) * ufunc.nout))
    except TypeError as error:
        raise DTypeError(f"{error}") from None
    require_supported(name, found)
    return found


def promote(name: str, types: Sequence[TensorType]) -> np.dtype:
    """The common dtype of operands, Python numbers weak: `np.result_type`.

    Raises:
        DTypeError: there is none that is supported.
    """
    return _promote(name, tuple(dtype_code(t) for t in types))


@lru_cache(maxsize=1024)
def _promote(name: str, codes: tuple[DTypeCode, ...]) -> np.dtype:
    try:
        found = np.result_type(*(code(0) if isinstance(code, type) else code for code in codes))
    except TypeError as error:
        raise DTypeError(f"{name}: {error}") from None
    require_supported(name, (found,))
    return found


def scalar_kind(types: Sequence[TensorType], dtype: np.dtype) -> Kind:
    """The kind of a 0-d result of a ufunc: Python numbers alone stay Python numbers."""
    maybe = False
    for t in types:
        if t.kind == "maybe_np_float":
            maybe = True
        elif not t.is_python:
            return "np_scalar"
    if maybe:
        return "maybe_np_float" if dtype == dtypes.F64 else "np_scalar"
    if dtype == dtypes.U64:
        return "py_int"
    return python_kind_of(dtype) if dtype in _HELD_BY_PYTHON else "np_scalar"


def require_one_dtype(name: str, types: Sequence[TensorType], rule: Callable[..., tuple[np.dtype, ...]]) -> None:
    """A float that is a Python float on one path and `np.float64` on another must not change the dtype."""
    weak = rule(tuple(float if t.kind == "maybe_np_float" else dtype_code(t) for t in types))
    if weak != rule(tuple(dtype_code(t) for t in types)):
        raise DTypeError(
            f"{name}: one operand is a Python float on one path and np.float64 on another, and the result would have "
            "another dtype: convert it with float() or np.float64()"
        )


# ------------------------------------------------------------------------------------------------------------ shapes


def shape_text(shape: Shape) -> str:
    """A shape as NumPy writes it: `(3,)`, `(n, 4)`."""
    return f"({', '.join(str(d) for d in shape)}{',' if len(shape) == 1 else ''})"


def broadcast_shapes(types: Sequence[TensorType]) -> Shape:
    """The common shape of operands.

    Raises:
        ShapeError: two axes differ and neither is literally 1.
    """
    shape: Shape = ()
    for t in types:
        other = t.shape
        if not other or other is shape or other == shape:
            continue
        if not shape:
            shape = other
            continue
        longer, shorter = (shape, other) if len(shape) >= len(other) else (other, shape)
        merged = list(longer)
        for k in range(-len(shorter), 0):
            a, b = longer[k], shorter[k]
            if a == 1:
                merged[k] = b
            elif b not in (1, a):
                texts = " ".join(shape_text(u.shape) for u in types)
                raise ShapeError(f"operands could not be broadcast together with shapes {texts}")
        shape = tuple(merged)
    return shape


def fresh_layout(order: Sequence[int], shape: Shape) -> Layout:
    """The layout of a new array whose axes lie in `order`, outermost first."""
    return Layout(canonical_order(order, shape))


def broadcast_layout(shape: Shape, types: Sequence[TensorType]) -> Layout:
    """The layout of a fresh elementwise result of `shape`."""
    for t in types:
        if not t.layout.is_c:
            return fresh_layout(elementwise_layout(len(shape), types).order, shape)
    return c_layout(len(shape))


def elementwise_type(types: Sequence[TensorType], dtype: np.dtype) -> TensorType:
    """The type of a fresh elementwise result; the kind of a 0-d result is NumPy's or Python's scalar."""
    shape = broadcast_shapes(types)
    if not shape:
        return TensorType(dtype, (), scalar_kind(types, dtype))
    return TensorType(dtype, shape, "array", broadcast_layout(shape, types))


def ufunc_rule(name: str, ufunc: np.ufunc, *, python_bool: bool = False) -> Infer:
    """The type rule of a ufunc with one result.

    With `python_bool` Python bools stay bools (comparisons, logic); without it they count as integers among Python
    numbers alone, as in `True + True`.
    """
    scalars: dict[tuple[tuple[np.dtype, Kind], ...], Signature] = {}

    def infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
        for t in types:
            if t.shape:
                break
        else:  # no axes: the answer depends on dtypes and kinds alone
            key = tuple((t.dtype, t.kind) for t in types)
            if key not in scalars:
                scalars[key] = build(types)
            return scalars[key]
        return build(types)

    def build(types: Sequence[TensorType]) -> Signature:
        codes = tuple(dtype_code(t) for t in types)
        for t in types:
            if t.kind == "maybe_np_float":
                require_one_dtype(name, types, lambda c: loop_dtypes(name, ufunc, c))
            elif t.kind == "py_bool" and not python_bool and all(u.is_python for u in types):
                codes = tuple(int if u.kind == "py_bool" else dtype_code(u) for u in types)
        found = loop_dtypes(name, ufunc, codes)
        if dtypes.F16 in found and all(t.is_python for t in types):  # a function of a Python bool: as of an integer
            found = loop_dtypes(name, ufunc, tuple(int if code == dtypes.BOOL else code for code in codes))
        return Signature(found[:-1], (elementwise_type(types, found[-1]),))

    return infer


def keep(types: Sequence[TensorType]) -> tuple[np.dtype | None, ...]:
    """Operands as they are: for `Signature.operands`."""
    return (None,) * len(types)


def require_integer(name: str, t: TensorType) -> None:
    """Refuse what is no integer.

    Raises:
        DTypeError: `t` is not of an integer dtype.
    """
    if not dtypes.is_integer(t.dtype):
        raise DTypeError(f"{name} takes integers, not {t.dtype.name}")


# ---------------------------------------------------------------------------------------------------------- families


def unary(
    name: str,
    ufunc: np.ufunc,
    doc: str,
    lower: Callable[..., Any] | None,
    *,
    vjp: Vjp | None = None,
    infer: Infer | None = None,
    evaluate: Callable[..., Any] | None = None,
    numpy: tuple[Any, ...] | None = None,
    domain: tuple[float, float] | None = None,
    ulp: float = 0.0,
    linear: bool = False,
    pairs: Callable[..., Any] | None = None,
) -> OpDef:
    """An elementwise operator of one operand with the meaning and the types of `ufunc`, unless they are given.

    Like `binary` and `predicate` it computes float16 in float32 and rounds once, as NumPy does. Without `lower` NumPy
    itself computes it.
    """
    return register(
        OpDef(
            name,
            doc,
            infer or ufunc_rule(name, ufunc),
            evaluate or ufunc,
            None if lower is None else in_single(lower),
            vjp,
            linear=linear,
            traits=ELEMENTWISE,
            numpy=(ufunc,) if numpy is None else numpy,
            domain=domain,
            ulp=ulp,
            pairs=pairs,
        )
    )


def binary(
    name: str,
    ufunc: np.ufunc,
    doc: str,
    lower: Callable[..., Any] | None,
    *,
    vjp: Vjp | None = None,
    evaluate: Callable[..., Any] | None = None,
    commutative: bool = False,
    python_bool: bool = False,
    domain: tuple[float, float] | None = None,
    ulp: float = 0.0,
    linear: bool = False,
    pairs: Callable[..., Any] | None = None,
) -> OpDef:
    """An elementwise operator of two operands with the meaning and the types of `ufunc`."""
    return register(
        OpDef(
            name,
            doc,
            ufunc_rule(name, ufunc, python_bool=python_bool),
            evaluate or ufunc,
            None if lower is None else in_single(lower),
            vjp,
            linear=linear,
            traits=COMMUTATIVE if commutative else ELEMENTWISE,
            numpy=(ufunc,),
            domain=domain,
            ulp=ulp,
            arity=2,
            pairs=pairs,
        )
    )


def predicate(
    name: str,
    ufunc: np.ufunc,
    doc: str,
    lower: Callable[..., Any] | None,
    *,
    evaluate: Callable[..., Any] | None = None,
    commutative: bool = False,
    pairs: Callable[..., Any] | None = None,
) -> OpDef:
    """A comparison, test or logical operator: gives bool, and has the gradient zero."""
    return register(
        OpDef(
            name,
            doc,
            ufunc_rule(name, ufunc, python_bool=True),
            evaluate or ufunc,
            None if lower is None else in_single(lower),
            no_gradient,
            traits=COMMUTATIVE if commutative else ELEMENTWISE,
            numpy=(ufunc,),
            arity=ufunc.nin,
            pairs=pairs,
        )
    )


def define(
    name: str,
    doc: str,
    infer: Infer,
    evaluate: Callable[..., Any],
    *,
    lower: Callable[..., Any] | None = None,
    vjp: Vjp | None = None,
    jvp: Callable[..., Any] | None = None,
    traits: frozenset[Trait] = PURE,
    numpy: tuple[Any, ...] = (),
    linear: bool = False,
    arity: int = 1,
    by_numpy: Callable[[Sequence[TensorType]], bool] | None = None,
    pairs: Callable[..., Any] | None = None,
) -> OpDef:
    """Any other operator."""
    return register(
        OpDef(
            name, doc, infer, evaluate, lower, vjp, jvp, linear, traits, numpy,
            arity=arity, by_numpy=by_numpy, pairs=pairs,
        )
    )  # fmt: skip


def has_half_or_complex(types: Sequence[TensorType]) -> bool:
    """`by_numpy` of operators whose machine code is for integers and the larger real floats."""
    return any(t.dtype == dtypes.F16 or t.dtype.kind == "c" for t in types)


def has_half(types: Sequence[TensorType]) -> bool:
    """Whether an operand is float16: `by_numpy` of operators whose machine code has no order of NumPy's for it."""
    return any(t.dtype == dtypes.F16 for t in types)


# --------------------------------------------------------------------------------------------------------- gradients


def no_gradient(b: Any, ct: Any, y: Any, *operands: Any, **attrs: Any) -> tuple[None, ...]:
    """The gradient is zero wherever it exists."""
    return (None,) * len(operands)


def shape_of(x: Any) -> Shape:
    """The shape of an operand in a gradient rule: a graph value, a Tensor, an array or a number."""
    t = getattr(x, "type", None)
    return t.shape if isinstance(t, TensorType) else tuple(np.shape(x))


def dtype_of(x: Any) -> np.dtype:
    t = getattr(x, "type", None)
    if isinstance(t, TensorType):
        return t.dtype
    found = getattr(x, "dtype", None)
    return found if isinstance(found, np.dtype) else np.asarray(x).dtype


def constant_of(x: Any) -> bool | int | float | None:
    """The number that `x` is known to be while the gradient is formed; None if it is not known."""
    producer = getattr(x, "producer", None)
    if producer is not None and producer.name == "constant":
        x = producer.attrs["value"]
    if isinstance(x, np.generic):
        x = x.item()
    return x if isinstance(x, (bool, int, float)) else None


def zeros_like(b: Any, x: Any) -> Any:
    """Zeros of the shape and dtype of `x`."""
    return b.full(0.0, shape=shape_of(x), dtype=dtype_of(x))


def expand_map(shape: Shape, axes: Sequence[int], keepdims: bool) -> IndexMap:
    """The view that brings the result of a reduction over `axes` of an array of `shape` back to that shape."""
    maps = []
    for k in range(len(shape)):
        if k not in axes:
            maps.append(AxisMap(0, 1, k))
        elif keepdims:
            maps.append(AxisMap(0, 0, None))
    return IndexMap(tuple(shape), tuple(maps))


def expand(b: Any, y: Any, shape: Shape, axes: Sequence[int], keepdims: bool) -> Any:
    """A reduction's result (or its cotangent), repeated along the axes that were reduced."""
    return b.view(y, map=expand_map(shape, axes, keepdims)) if axes else y


def newaxis_map(shape: Shape, at: int) -> IndexMap:
    """The view with an axis of size 1 put in at position `at`."""
    return IndexMap(
        (*shape[:at], 1, *shape[at:]), tuple(AxisMap(0, 1, k if k < at else k + 1) for k in range(len(shape)))
    )


def drop_axis_map(shape: Shape, at: int) -> IndexMap:
    """The view without the axis `at`, which has size 1."""
    axes = tuple(AxisMap(0, 0, None) if k == at else AxisMap(0, 1, k - (k > at)) for k in range(len(shape)))
    return IndexMap((*shape[:at], *shape[at + 1 :]), axes)


def reverse_map(shape: Shape, axis: int) -> IndexMap:
    """The view with one axis reversed."""
    axes = [AxisMap(0, 1, k) for k in range(len(shape))]
    axes[axis] = AxisMap(shape[axis] - 1, -1, axis)
    return IndexMap(tuple(shape), tuple(axes))


def product(shape: Sequence[DimLike]) -> DimLike:
    """The number of elements of a shape."""
    total: DimLike = 1
    for d in shape:
        total = total * d
    return total
