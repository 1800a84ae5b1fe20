"""Elementwise operators: arithmetic, comparisons, logic, bits, rounding, selection and casts.

Operands have the loop dtype that the type rule answered; the scalar lowerings give NumPy's bits, except for `pow` on
floats. Gradients at kinks: a tie of maximum and minimum shares the cotangent equally, `abs` has 0 at 0, `clip` passes
it to `x` on the closed interval; `sign` and rounding have the gradient zero.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy._core import umath

from jitgraph import dtypes
from jitgraph.errors import DTypeError
from jitgraph.ir.opdef import Attrs, Signature
from jitgraph.ir.types import PYTHON_KINDS, Kind, TensorType, python_kind_of, python_type
from jitgraph.ops import lowering as low
from jitgraph.ops import pairs as on_pairs
from jitgraph.ops.families import (
    ELEMENTWISE,
    binary,
    broadcast_layout,
    broadcast_shapes,
    constant_of,
    define,
    dtype_of,
    fresh_layout,
    no_gradient,
    predicate,
    promote,
    require_one_dtype,
    require_supported,
    ufunc_rule,
    unary,
)

# -------------------------------------------------------------------------------------------------------- arithmetic


def _sign_vjp(b: Any, ct: Any, y: Any, x: Any) -> tuple[Any]:
    """0 for real numbers. z / |z| turns with z: (ct - conj(y) Re(y ct)) / |z|, in the convention of records."""
    if dtype_of(x).kind != "c":
        return (None,)
    size = b.abs(x)
    flat = b.eq(size, 0.0)
    turned = b.sub(ct, b.mul(b.conj(y), b.real(b.mul(y, ct))))
    return (b.where(flat, 0.0, b.div(turned, b.where(flat, 1.0, size))),)


def _in_order(x: Any) -> Any:
    """Complex numbers as NumPy's loops over vectors take them, wherever they lie: another record is the other loop."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "c":
        return x
    return x if x.flags.forc and min(x.strides, default=0) >= 0 else x.copy(order="K")


def _of_scalars(ufunc: np.ufunc, operation: Any) -> Any:
    """`ufunc`, or on complex scalars the operator, which NumPy (and Python) compute in another way."""

    def evaluate(*operands: Any) -> Any:
        for x in operands:
            if isinstance(x, np.ndarray) or not (isinstance(x, complex) or np.iscomplexobj(x)):
                return ufunc(*map(_in_order, operands))
        try:
            return operation(*operands)
        except ZeroDivisionError:  # a check in front has raised it
            return complex(np.nan, np.nan)

    return evaluate


unary(
    "neg",
    np.negative,
    "-x.",
    low.neg,
    vjp=lambda b, ct, y, x: (b.neg(ct),),
    linear=True,
    pairs=on_pairs.each_part(low.neg),
)
unary(
    "abs",
    np.absolute,
    "|x|.",
    low.absolute,
    vjp=lambda b, ct, y, x: (b.mul(ct, b.conj(b.sign(x)) if dtype_of(x).kind == "c" else b.sign(x)),),
    evaluate=_of_scalars(np.absolute, abs),
    pairs=on_pairs.absolute,
)
unary(
    "plain_abs",
    np.absolute,
    "|x| of complex numbers as hypot computes it: NumPy's loop that goes element by element.",
    low.absolute,
    vjp=lambda b, ct, y, x: (b.mul(ct, b.conj(b.sign(x))),),
    evaluate=lambda x: np.hypot(x.real, x.imag) if np.result_type(x).kind == "c" else np.absolute(x),
    pairs=on_pairs.plain_absolute,
)
unary("sign", np.sign, "-1, 0 or 1 by the sign of x; NaN of NaN.", low.sign, vjp=_sign_vjp)
unary(
    "square",
    np.square,
    "x * x.",
    low.square,
    vjp=lambda b, ct, y, x: (b.mul(ct, b.mul(x, 2.0)),),
    evaluate=lambda x: np.square(_in_order(x)),
    pairs=on_pairs.square,
)
unary(
    "reciprocal",
    np.reciprocal,
    "1 / x.",
    low.reciprocal,
    vjp=lambda b, ct, y, x: (b.neg(b.mul(ct, b.square(y))),),
    pairs=on_pairs.reciprocal,
)
unary(
    "sqrt",
    np.sqrt,
    "Square root; NaN below zero.",
    lambda s, x: s.sqrt(x),
    vjp=lambda b, ct, y, x: (b.div(ct, b.mul(y, 2.0)),),
)

binary(
    "add",
    np.add,
    "a + b; `or` of bools.",
    low.add,
    vjp=lambda b, ct, y, p, q: (ct, ct),
    commutative=True,
    linear=True,
    pairs=on_pairs.each_part(low.add),
)
binary(
    "sub",
    np.subtract,
    "a - b.",
    lambda s, a, b: s.sub(a, b),
    vjp=lambda b, ct, y, p, q: (ct, b.neg(ct)),
    linear=True,
    pairs=on_pairs.each_part(lambda s, a, b: s.sub(a, b)),
)
binary(
    "mul",
    np.multiply,
    "a * b; `and` of bools.",
    low.mul,
    vjp=lambda b, ct, y, p, q: (b.mul(ct, q), b.mul(ct, p)),
    commutative=True,
    evaluate=_of_scalars(np.multiply, operator.mul),
    pairs=on_pairs.mul,
)


def _plain_product(a: Any, b: Any) -> Any:
    """A product of complex numbers whose four products are rounded each, of arrays as of scalars."""
    made = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), np.result_type(a, b))
    if made.dtype.kind != "c":
        return np.multiply(a, b)
    made.real = a.real * b.real - a.imag * b.imag
    made.imag = a.real * b.imag + a.imag * b.real
    return made if made.ndim else made[()]


binary(
    "plain_mul",
    np.multiply,
    "a * b of complex numbers without a fused multiply-add: NumPy's loop that goes element by element.",
    low.mul,
    vjp=lambda b, ct, y, p, q: (b.mul(ct, q), b.mul(ct, p)),
    commutative=True,
    evaluate=_plain_product,
    pairs=on_pairs.plain_mul,
)


def _div_vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    scaled = b.div(ct, q)
    return scaled, b.neg(b.mul(scaled, y))


binary(
    "div",
    np.true_divide,
    "a / b; integers give float64.",
    lambda s, a, b: s.fdiv(a, b),
    vjp=_div_vjp,
    evaluate=_of_scalars(np.true_divide, operator.truediv),
    pairs=on_pairs.div,
)
binary(
    "floordiv",
    np.floor_divide,
    "floor(a / b); of integers by zero 0.",
    low.floordiv,
    vjp=no_gradient,
)
binary(
    "mod",
    np.remainder,
    "a - b * floor(a / b): the sign of b.",
    low.mod,
    vjp=lambda b, ct, y, p, q: (ct, b.neg(b.mul(ct, b.floordiv(p, q)))),
)
binary(
    "fmod",
    np.fmod,
    "C's remainder: the sign of a.",
    low.fmod,
    vjp=lambda b, ct, y, p, q: (ct, b.neg(b.mul(ct, b.trunc(b.div(p, q))))),
)


def _powered(b: Any, x: Any, p: float) -> Any:
    """x ** p for a known p, in the way that costs least."""
    if p == 1:
        return x
    if p == 2:
        return b.square(x)
    if p == 0.5:
        return b.sqrt(x)
    if p == -1:
        return b.reciprocal(x)
    return b.pow(x, float(p))


def _pow_vjp(b: Any, ct: Any, y: Any, x: Any, p: Any) -> tuple[Any, Any]:
    """p x^(p-1), and y log x; the exponent's gradient is 0 where x is 0. A constant exponent needs no logarithm."""
    known = constant_of(p)
    if known is not None:
        if known == 0:
            return None, None
        return (ct if known == 1 else b.mul(ct, b.mul(_powered(b, x, known - 1), float(known)))), None
    flat = b.eq(p, 0.0)
    slope = b.mul(p, b.pow(x, b.where(flat, 1.0, b.sub(p, 1.0))))
    logarithm = b.log(b.where(b.eq(x, 0.0), 1.0, x))
    return b.mul(ct, b.where(flat, 0.0, slope)), b.mul(ct, b.mul(y, logarithm))


def _power(a: Any, b: Any) -> Any:
    """`**` of scalars is C's pow, `np.power` of arrays a loop of NumPy's own."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.power(a, b)
    x, y = np.asarray(a)[()], np.asarray(b)[()]
    return x**y if x.dtype.kind == y.dtype.kind == "f" else np.power(x, y)


_power.of_arrays = np.power  # type: ignore[attr-defined]


binary(
    "pow",
    np.power,
    "a ** b. Integers wrap; the front end raises NumPy's error for negative integer exponents.",
    low.power,
    vjp=_pow_vjp,
    evaluate=_power,
    ulp=1.0,
)


def _tie_vjp(wins: str, other_nan: bool) -> Any:
    """Gradient of maximum and minimum: to the winner, half each on a tie; `fmax` and `fmin` let NaN lose."""

    def vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
        half = b.where(b.eq(p, q), b.mul(ct, 0.5), 0.0)

        def share(mine: Any, other: Any) -> Any:
            mask = getattr(b, wins)(mine, other)
            if other_nan:
                mask = b.logical_or(mask, b.isnan(other))
            return b.where(mask, ct, half)

        return share(p, q), share(q, p)

    return vjp


for _name, _ufunc, _lower, _wins, _nan in (
    ("maximum", np.maximum, low.maximum, "gt", False),
    ("minimum", np.minimum, low.minimum, "lt", False),
    ("fmax", np.fmax, low.fmax, "gt", True),
    ("fmin", np.fmin, low.fmin, "lt", True),
):
    binary(
        _name,
        _ufunc,
        f"The {'greater' if _wins == 'gt' else 'lesser'} operand; NaN {'loses' if _nan else 'wins'}.",
        _lower,
        vjp=_tie_vjp(_wins, _nan),
        python_bool=True,
        pairs=on_pairs.extreme(f"{_wins[0]}e", nan_wins=not _nan),
    )

binary(
    "copysign",
    np.copysign,
    "|a| with the sign of b.",
    lambda s, a, b: s.copysign(a, b),
    vjp=lambda b, ct, y, p, q: (b.where(b.ne(b.signbit(p), b.signbit(q)), b.neg(ct), ct), None),
)

# ------------------------------------------------------------------------------------------------ comparisons, tests

predicate(
    "eq",
    np.equal,
    "a == b.",
    low.compare("eq"),
    commutative=True,
    pairs=on_pairs.equal,
)
predicate(
    "ne",
    np.not_equal,
    "a != b; true if either is NaN.",
    low.compare("ne"),
    commutative=True,
    pairs=on_pairs.not_equal,
)
predicate(
    "lt", np.less, "a < b.", low.compare("lt"), pairs=on_pairs.ordered("lt"),
    evaluate=_of_scalars(np.less, operator.lt),
)  # fmt: skip
predicate(
    "le", np.less_equal, "a <= b.", low.compare("le"), pairs=on_pairs.ordered("le"),
    evaluate=_of_scalars(np.less_equal, operator.le),
)  # fmt: skip
predicate(
    "gt", np.greater, "a > b.", low.compare("gt"), pairs=on_pairs.ordered("gt"),
    evaluate=_of_scalars(np.greater, operator.gt),
)  # fmt: skip
predicate(
    "ge", np.greater_equal, "a >= b.", low.compare("ge"), pairs=on_pairs.ordered("ge"),
    evaluate=_of_scalars(np.greater_equal, operator.ge),
)  # fmt: skip
predicate("isnan", np.isnan, "Whether x is NaN.", low.isnan, pairs=on_pairs.isnan)
predicate("isinf", np.isinf, "Whether x is infinite.", low.isinf, pairs=on_pairs.isinf)
predicate("isfinite", np.isfinite, "Whether x is neither infinite nor NaN.", low.isfinite, pairs=on_pairs.isfinite)
predicate("signbit", np.signbit, "Whether the sign bit is set; -0.0 and negative NaN have it.", low.signbit)

# ------------------------------------------------------------------------------------------------------- logic, bits

predicate(
    "logical_and",
    np.logical_and,
    "a and b of truth values.",
    low.logical_and,
    commutative=True,
    pairs=on_pairs.of_truth(low.logical_and),
)
predicate(
    "logical_or",
    np.logical_or,
    "a or b of truth values.",
    low.logical_or,
    commutative=True,
    pairs=on_pairs.of_truth(low.logical_or),
)
predicate(
    "logical_xor",
    np.logical_xor,
    "Whether just one is true.",
    low.logical_xor,
    commutative=True,
    pairs=on_pairs.of_truth(low.logical_xor),
)
predicate("logical_not", np.logical_not, "not x.", low.logical_not, pairs=on_pairs.of_truth(low.logical_not))

binary(
    "bit_and",
    np.bitwise_and,
    "a & b.",
    lambda s, a, b: s.and_(a, b),
    vjp=no_gradient,
    commutative=True,
    python_bool=True,
)
binary(
    "bit_or", np.bitwise_or, "a | b.", lambda s, a, b: s.or_(a, b), vjp=no_gradient, commutative=True, python_bool=True
)
binary(
    "bit_xor",
    np.bitwise_xor,
    "a ^ b.",
    lambda s, a, b: s.xor(a, b),
    vjp=no_gradient,
    commutative=True,
    python_bool=True,
)
unary("bit_not", np.invert, "~x; `not` of bools.", lambda s, x: s.not_(x), vjp=no_gradient)
binary("shift_left", np.left_shift, "a << b; 0 for counts outside the width.", low.shift_left, vjp=no_gradient)
binary(
    "shift_right", np.right_shift, "a >> b; sign bits for counts outside the width.", low.shift_right, vjp=no_gradient
)

# ---------------------------------------------------------------------------------------------------------- rounding

unary("floor", np.floor, "The greatest whole number not above x.", low.rounding("floor"), vjp=no_gradient)
unary("ceil", np.ceil, "The least whole number not below x.", low.rounding("ceil"), vjp=no_gradient)
unary("trunc", np.trunc, "x without its fraction.", low.rounding("trunc"), vjp=no_gradient)
unary("rint", np.rint, "The nearest whole number, halves to even.", low.rounding("rint"), vjp=no_gradient)

# --------------------------------------------------------------------------------------------------------- selection


def _where_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    """`np.where` always gives an array, 0-d too."""
    condition, a, b = types
    if "maybe_np_float" in (a.kind, b.kind):
        require_one_dtype("where", (a, b), lambda codes: (promote("where", [_typed(c) for c in codes]),))
    dtype = promote("where", (a, b))
    require_supported("where", (condition.dtype,))
    shape = broadcast_shapes(types)
    result = TensorType(dtype, shape, "array", broadcast_layout(shape, types))
    return Signature((dtypes.BOOL, dtype, dtype), (result,))


def _typed(code: np.dtype | type) -> TensorType:
    """A scalar type with this promotion code."""
    if isinstance(code, np.dtype):
        return TensorType(code, (), "np_scalar")
    return python_type("py_int" if code is int else "py_float" if code is float else "py_complex")


define(
    "where",
    "a where the condition holds, else b; both are evaluated.",
    _where_infer,
    np.where,
    lower=lambda s, c, a, b: s.select(c, a, b),
    pairs=on_pairs.where,
    vjp=lambda b, ct, y, c, p, q: (None, b.where(c, ct, 0.0), b.where(c, 0.0, ct)),
    jvp=lambda b, tangents, y, c, p, q: b.where(
        c, 0.0 if tangents[1] is None else tangents[1], 0.0 if tangents[2] is None else tangents[2]
    ),
    traits=ELEMENTWISE,
    numpy=(np.where,),
    arity=3,
)


#: The ufunc behind `np.clip`; it has the type rule.
_clip_ufunc: np.ufunc = umath.clip  # type: ignore[attr-defined]


def _clip_vjp(b: Any, ct: Any, y: Any, x: Any, lower: Any, upper: Any) -> tuple[Any, Any, Any]:
    raised = b.lt(x, lower)
    capped = b.gt(b.maximum(x, lower), upper)
    outside = b.logical_or(raised, capped)
    return (
        b.where(outside, 0.0, ct),
        None if constant_of(lower) is not None else b.where(b.logical_and(raised, b.logical_not(capped)), ct, 0.0),
        None if constant_of(upper) is not None else b.where(capped, ct, 0.0),
    )


define(
    "clip",
    "min(max(x, lower), upper).",
    ufunc_rule("clip", _clip_ufunc, python_bool=True),
    _clip_ufunc,
    lower=low.in_single(low.clip),
    vjp=_clip_vjp,
    traits=ELEMENTWISE,
    numpy=(np.clip, _clip_ufunc),
    arity=3,
)

# ------------------------------------------------------------------------------------------------------------- casts


def _cast_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    """The same value in another dtype. A Python number stays one if Python has the dtype, as in `float(i)`."""
    (x,) = types
    dtype: np.dtype = attrs["dtype"]
    require_supported("cast", (x.dtype, dtype))
    if x.kind == "array":
        return Signature((None,), (TensorType(dtype, x.shape, "array", fresh_layout(x.layout.order, x.shape)),))
    dtype = dtypes.native(dtype)  # only memory has another byte order
    kind: Kind = "np_scalar"
    if x.is_python and dtype in (dtypes.BOOL, dtypes.I64, dtypes.F64, dtypes.C128):
        kind = python_kind_of(dtype)
    elif x.kind == "maybe_np_float" and dtype == dtypes.F64:
        kind = x.kind
    return Signature((None,), (TensorType(dtype, (), kind),))


def _cast(x: Any, dtype: np.dtype) -> Any:
    if dtype.kind not in "cb" and np.iscomplexobj(x):  # as compiled code, without NumPy's warning
        x = x.real
    return x.astype(dtype) if isinstance(x, np.ndarray) else np.asarray(x).astype(dtype)[()]


def _cast_vjp(b: Any, ct: Any, y: Any, x: Any, *, dtype: np.dtype) -> tuple[Any]:
    source = dtype_of(x)
    return (b.cast(ct, dtype=source) if source.kind in "fc" and dtype.kind in "fc" else None,)


define(
    "cast",
    "x in another dtype, as `astype`.",
    _cast_infer,
    _cast,
    lower=low.cast,
    pairs=on_pairs.cast,
    vjp=_cast_vjp,
    jvp=lambda b, tangents, y, x, dtype: b.cast(tangents[0], dtype=dtype) if dtype.kind in "fc" else None,
    traits=ELEMENTWISE,
    numpy=(np.astype, np.ndarray.astype),
)


def _as_kind_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    kind: Kind = attrs["kind"]
    if x.shape:
        raise DTypeError(f"as_kind takes a scalar, not an array with {x.ndim} axes")
    wanted = python_type(kind).dtype if kind in PYTHON_KINDS else dtypes.F64 if kind == "maybe_np_float" else x.dtype
    if x.dtype != wanted and not (kind == "py_int" and x.dtype == dtypes.U64):
        raise DTypeError(f"a {kind} is held in {wanted.name}, not in {x.dtype.name}")
    return Signature((None,), (TensorType(x.dtype, (), kind),))


def _as_kind(x: Any, kind: Kind) -> Any:
    """What the user would hold: a Python number, a NumPy scalar or a 0-d array."""
    if kind == "array":
        return np.asarray(x)
    if kind in PYTHON_KINDS:
        return x.item() if isinstance(x, (np.generic, np.ndarray)) else x
    return np.asarray(x)[()]


define(
    "as_kind",
    "The same value held as another kind of scalar.",
    _as_kind_infer,
    _as_kind,
    lower=lambda s, x, kind: x,
    pairs=on_pairs.as_kind,
    vjp=lambda b, ct, y, x, kind: (ct,),
    linear=True,
    traits=ELEMENTWISE,
)

# -------------------------------------------------------------------------------------------------- checked integers


def _overflow_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    shape = broadcast_shapes(types)
    kind: Kind = "array" if shape else "py_bool" if all(t.is_python for t in types) else "np_scalar"
    return Signature((dtypes.I64, dtypes.I64), (TensorType(dtypes.BOOL, shape, kind),))


def _overflows(operation: Any) -> Any:
    def evaluate(a: Any, b: Any) -> Any:
        exact = operation(np.asarray(a).astype(object), np.asarray(b).astype(object))
        return np.asarray((exact < -(2**63)) | (exact >= 2**63), bool)[()]

    return evaluate


for _name, _operation, _lower in (
    ("add_overflows", np.add, low.add_overflows),
    ("sub_overflows", np.subtract, low.sub_overflows),
    ("mul_overflows", np.multiply, low.mul_overflows),
):
    define(
        _name,
        f"Whether the exact {_operation.__name__} of two int64 leaves int64.",
        _overflow_infer,
        _overflows(_operation),
        lower=_lower,
        vjp=no_gradient,
        traits=ELEMENTWISE,
        arity=2,
    )
