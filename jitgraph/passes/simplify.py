"""Algebraic simplification by laws that hold bit for bit, with NaN, infinities, -0.0 too; others ask for fast math."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import RuleSet, apply_rules, constant_number
from jitgraph.ir.types import TensorType
from jitgraph.passes.canonicalise import producer_named

RULES = RuleSet("simplify")


def simplify(graph: Graph) -> bool:
    """Apply the laws until none fires; True if one did."""
    return apply_rules(graph, RULES)


def _number(op: Op, i: int) -> Any:
    """Operand `i` as a number, if all its elements are that number and the op is not complex.

    Complex numbers have laws of their own: 0 and 1 have signed zeros in their parts.
    """
    return None if _kind(op) == "c" else constant_number(op.operands[i])


def _is(number: Any, value: float) -> bool:
    """Is `number` that value, sign of zero included?"""
    if number is None or isinstance(number, np.bool_) or number != value:
        return False
    return value != 0 or number.dtype.kind != "f" or math.copysign(1.0, number) == math.copysign(1.0, value)


def _kind(op: Op) -> str:
    """Kind of the dtype that the op computes in: b, i, u, f, c."""
    return op.operands[0].type.dtype.kind


def _whole(op: Op, i: int) -> Value | None:
    """Operand `i` if it has the shape of the result, so that it may stand for it."""
    x = op.operands[i]
    return x if x.type.shape == op.result.type.shape else None


def _fill(op: Op, b: Builder, value: Any) -> Value:
    """The result of `op`, all elements of which are `value`."""
    t = op.result.type
    number = t.dtype.type(value)
    if t.ndim == 0:
        held = np.asarray(number) if t.kind == "array" else number.item() if t.is_python else number
        return b.emit(REGISTRY["constant"], (), (t,), {"value": held}).result
    return b.emit(REGISTRY["full"], (b.constant(number),), (t,), {"shape": t.shape, "dtype": t.dtype}).result


def _emit(b: Builder, name: str, op: Op, *operands: Value, t: TensorType | None = None, **attrs: Any) -> Value:
    """An op with the result type of `op`, its operands cast already."""
    t = t or op.result.type
    if not t.is_python and operands and all(x.type.is_python for x in operands):  # NumPy's operand is no longer one
        first = operands[0]
        alike = TensorType(first.type.dtype, (), t.kind)
        operands = (b.emit(REGISTRY["as_kind"], (first,), (alike,), {"kind": t.kind}).result, *operands[1:])
    return b.emit(REGISTRY[name], operands, (t,), attrs).result


# Neutral elements.


@RULES.rule("add")
def add_zero(op: Op, _b: Builder) -> Value | None:
    """x + 0 = x for integers; x + -0.0 = x for floats (x + 0.0 is not x where x is -0.0)"""
    zero = _number(op, 1)
    if _kind(op) == "b" or not (_is(zero, -0.0) if _kind(op) == "f" else _is(zero, 0)):
        return None
    return _whole(op, 0)


@RULES.rule("sub")
def sub_zero(op: Op, _b: Builder) -> Value | None:
    """x - 0 = x"""
    return _whole(op, 0) if _is(_number(op, 1), 0.0) else None


@RULES.rule("mul")
def mul_one(op: Op, _b: Builder) -> Value | None:
    """x * 1 = x"""
    return _whole(op, 0) if _is(_number(op, 1), 1) else None


@RULES.rule("div")
def div_one(op: Op, _b: Builder) -> Value | None:
    """x / 1 = x"""
    return _whole(op, 0) if _is(_number(op, 1), 1) else None


@RULES.rule("floordiv")
def floordiv_one(op: Op, _b: Builder) -> Value | None:
    """x // 1 = x for integers"""
    return _whole(op, 0) if _kind(op) in "iu" and _is(_number(op, 1), 1) else None


@RULES.rule("mul")
def mul_zero(op: Op, b: Builder) -> Value | None:
    """x * 0 = 0 for integers"""
    return _fill(op, b, 0) if _kind(op) in "iu" and _is(_number(op, 1), 0) else None


@RULES.rule("mod")
def mod_one(op: Op, b: Builder) -> Value | None:
    """x % 1 = 0 for integers"""
    return _fill(op, b, 0) if _kind(op) in "iu" and _is(_number(op, 1), 1) else None


@RULES.rule("mul")
def mul_minus_one(op: Op, b: Builder) -> Value | None:
    """x * -1 = -x for signed integers and floats"""
    if _kind(op) not in "if" or not _is(_number(op, 1), -1) or _whole(op, 0) is None:
        return None
    return _emit(b, "neg", op, op.operands[0])


@RULES.rule("div")
def div_power_of_two(op: Op, b: Builder) -> Value | None:
    """x / 2**k = x * 2**-k: both round the same exact value"""
    divisor = _number(op, 1)
    if divisor is None or not np.isfinite(divisor) or divisor == 0 or op.result.type.kind == "py_float":
        return None
    if _whole(op, 0) is None:
        return None
    mantissa, exponent = math.frexp(float(divisor))
    limits = np.finfo(divisor.dtype)
    if abs(mantissa) != 0.5 or divisor == 1 or not limits.minexp <= 1 - exponent <= limits.maxexp - 1:
        return None
    return _emit(b, "mul", op, op.operands[0], b.constant(divisor.dtype.type(1) / divisor))


@RULES.rule("floordiv", "mod")
def floor_power_of_two(op: Op, b: Builder) -> Value | None:
    """x // 2**k = x >> k and x mod 2**k = x & (2**k - 1) for integers: both round down"""
    divisor = op.operands[1]
    number = _number(op, 1)
    if number is None or _kind(op) not in "iu" or divisor.type.ndim or number <= 0 or int(number) & (int(number) - 1):
        return None
    name, value = (
        ("shift_right", int(number).bit_length() - 1) if op.name == "floordiv" else ("bit_and", int(number) - 1)
    )
    t = divisor.type
    held = value if t.is_python else np.array(value, t.dtype) if t.kind == "array" else t.dtype.type(value)
    constant = b.emit(REGISTRY["constant"], (), (divisor.type,), {"value": held}).result
    return _emit(b, name, op, op.operands[0], constant)


# Negation and signs.


@RULES.rule("sub")
def sub_neg(op: Op, b: Builder) -> Value | None:
    """x - (-y) = x + y"""
    inner = producer_named(op.operands[1], "neg")
    return _emit(b, "add", op, op.operands[0], inner.operands[0]) if inner is not None else None


@RULES.rule("add")
def add_neg(op: Op, b: Builder) -> Value | None:
    """x + (-y) = x - y; (-x) + y = y - x"""
    for i in (1, 0):
        inner = producer_named(op.operands[i], "neg")
        if inner is not None and _kind(op) != "b":
            return _emit(b, "sub", op, op.operands[1 - i], inner.operands[0])
    return None


@RULES.rule("mul", "div")
def signs_cancel(op: Op, b: Builder) -> Value | None:
    """(-x) * (-y) = x * y; (-x) / (-y) = x / y, for floats, and * for integers"""
    left, right = producer_named(op.operands[0], "neg"), producer_named(op.operands[1], "neg")
    if left is None or right is None or (_kind(op) != "f" and op.name == "div"):
        return None
    return _emit(b, op.name, op, left.operands[0], right.operands[0])


@RULES.rule("abs")
def abs_of_signed(op: Op, b: Builder) -> Value | None:
    """abs(-x) = abs(x) for signed real x; abs(abs(x)) = abs(x)"""
    inner = op.operands[0].producer
    if inner is None or inner.name not in ("neg", "abs") or _kind(op) == "c":  # the bits depend on the layout
        return None
    if inner.name == "abs":
        return op.operands[0]
    return None if _kind(op) == "u" else _emit(b, "abs", op, inner.operands[0])  # unsigned, -x is 2**bits - x


@RULES.rule("square")
def square_of_signed(op: Op, b: Builder) -> Value | None:
    """square(-x) = square(abs(x)) = square(x) for real x"""
    inner = op.operands[0].producer
    if inner is None or inner.name not in ("neg", "abs") or _kind(inner) == "c":
        return None
    return _emit(b, "square", op, inner.operands[0])


# Products and powers.


@RULES.rule("mul")
def mul_self(op: Op, b: Builder) -> Value | None:
    """x * x = square(x)"""
    if op.operands[0] is not op.operands[1] or _kind(op) == "b":
        return None
    return _emit(b, "square", op, op.operands[0])


#: `x ** p` of NumPy where p is one of these scalars. Python's own floats take C's pow instead.
_POWERS = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}


@RULES.rule("pow")
def pow_special(op: Op, b: Builder) -> Value | None:
    """x ** 2 = square(x), x ** 0.5 = sqrt(x), x ** -1 = 1 / x for scalar exponents: NumPy computes them so

    Square roots of arrays only, and not of float16, where C's pow has another zero and infinity.
    """
    exponent = _number(op, 1)
    if exponent is None or op.operands[1].type.ndim or _whole(op, 0) is None or op.result.type.kind == "py_float":
        return None
    name = _POWERS.get(float(exponent)) if _kind(op) == "f" else "square" if exponent == 2 else None
    if name == "sqrt" and (op.result.type.kind != "array" or op.result.type.dtype == dtypes.F16):
        return None
    return _emit(b, name, op, op.operands[0]) if name is not None else None


@RULES.rule("pow")
def pow_one(op: Op, _b: Builder) -> Value | None:
    """x ** 1 = x"""
    return _whole(op, 0) if _is(_number(op, 1), 1) else None


@RULES.rule("pow")
def pow_zero(op: Op, b: Builder) -> Value | None:
    """x ** 0 = 1, even for NaN"""
    exponent = _number(op, 1)
    return _fill(op, b, 1) if exponent is not None and exponent == 0 and _whole(op, 0) is not None else None


@RULES.rule("pow")
def pow_three(op: Op, b: Builder) -> Value | None:
    """x ** 3 = x * x * x for integers"""
    if _kind(op) not in "iu" or not _is(_number(op, 1), 3) or _whole(op, 0) is None:
        return None
    x = op.operands[0]
    return _emit(b, "mul", op, _emit(b, "square", op, x), x)


# An operand with itself.


@RULES.rule("sub", "bit_xor")
def difference_of_self(op: Op, b: Builder) -> Value | None:
    """x - x = 0, x ^ x = 0 for integers"""
    if op.operands[0] is not op.operands[1] or _kind(op) not in "iub":
        return None
    return _fill(op, b, 0)


@RULES.rule("minimum", "maximum", "fmin", "fmax", "bit_and", "bit_or", "logical_and", "logical_or")
def idempotent(op: Op, _b: Builder) -> Value | None:
    """min(x, x) = max(x, x) = x & x = x | x = x; bools likewise under and, or"""
    if op.operands[0] is not op.operands[1] or op.operands[0].type.dtype != op.result.type.dtype:
        return None
    return op.operands[0]


@RULES.rule("eq", "le", "ge", "ne", "lt", "gt")
def compare_self(op: Op, b: Builder) -> Value | None:
    """x == x, x <= x, x >= x are true, x != x, x < x, x > x false, for integers and bools"""
    if op.operands[0] is not op.operands[1] or _kind(op) not in "iub":
        return None
    return _fill(op, b, op.name in ("eq", "le", "ge"))


@RULES.rule("ne")
def nan_test(op: Op, b: Builder) -> Value | None:
    """x != x = isnan(x)"""
    if op.operands[0] is not op.operands[1] or _kind(op) != "f":
        return None
    return _emit(b, "isnan", op, op.operands[0])


@RULES.rule("minimum", "maximum")
def absorbed(op: Op, _b: Builder) -> Value | None:
    """min(min(x, y), y) = min(x, y), max likewise, for real x and y (of two complex NaNs the first one is chosen)"""
    if _kind(op) == "c":
        return None
    for i in (0, 1):
        inner = producer_named(op.operands[i], op.name)
        if inner is not None and op.operands[1 - i] in inner.operands:
            return _whole(op, i)
    return None


# Bits and logic.


@RULES.rule("bit_and", "bit_or", "bit_xor")
def bits_with_constant(op: Op, b: Builder) -> Value | None:
    """x & 0 = 0, x & -1 = x, x | 0 = x, x | -1 = -1, x ^ 0 = x (-1: all bits; for bools True)"""
    number = _number(op, 1)
    if number is None:
        return None
    zero, ones = not number, bool(number == ~number.dtype.type(0))
    if (op.name == "bit_and" and zero) or (op.name == "bit_or" and ones):
        return _fill(op, b, number)
    if zero or (op.name == "bit_and" and ones):
        return _whole(op, 0)
    return None


@RULES.rule("logical_and", "logical_or")
def logic_with_constant(op: Op, b: Builder) -> Value | None:
    """x and true = x, x and false = false, x or true = true, x or false = x, for bools"""
    number = _number(op, 1)
    if number is None or _kind(op) != "b":
        return None
    if bool(number) == (op.name == "logical_or"):
        return _fill(op, b, number)
    return _whole(op, 0)


@RULES.rule("bit_not", "logical_not")
def not_not(op: Op, _b: Builder) -> Value | None:
    """not not x = x (logical: for bools)"""
    inner = producer_named(op.operands[0], op.name)
    if inner is None or (op.name == "logical_not" and inner.operands[0].type.dtype.kind != "b"):
        return None
    return inner.operands[0]


_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


@RULES.rule("logical_not", "bit_not")
def not_comparison(op: Op, b: Builder) -> Value | None:
    """not (x == y) = x != y and back; for integers not (x < y) = x >= y and so on (floats: NaN forbids)"""
    inner = op.operands[0].producer
    if inner is None or inner.name not in _OPPOSITE or _kind(op) != "b":
        return None
    if inner.name not in ("eq", "ne") and _kind(inner) in "fc":
        return None
    return _emit(b, _OPPOSITE[inner.name], op, *inner.operands)


@RULES.rule("shift_left", "shift_right")
def shift_by_zero(op: Op, _b: Builder) -> Value | None:
    """x << 0 = x >> 0 = x"""
    return _whole(op, 0) if _is(_number(op, 1), 0) else None


# Selection.


@RULES.rule("where")
def where_same(op: Op, _b: Builder) -> Value | None:
    """where(c, x, x) = x"""
    return _whole(op, 1) if op.operands[1] is op.operands[2] else None


@RULES.rule("where")
def where_known(op: Op, _b: Builder) -> Value | None:
    """where(true, x, y) = x; where(false, x, y) = y"""
    number = _number(op, 0)
    return None if number is None else _whole(op, 1 if number else 2)


@RULES.rule("where")
def where_not(op: Op, b: Builder) -> Value | None:
    """where(not c, x, y) = where(c, y, x)"""
    c = op.operands[0].producer
    if c is None or c.name not in ("logical_not", "bit_not") or _kind(c) != "b":
        return None
    return _emit(b, "where", op, c.operands[0], op.operands[2], op.operands[1])


@RULES.rule("where")
def where_of_where(op: Op, b: Builder) -> Value | None:
    """where(c, where(c, x, _), y) = where(c, x, y); where(c, x, where(c, _, y)) = where(c, x, y)"""
    c, x, y = op.operands
    inner_x, inner_y = producer_named(x, "where"), producer_named(y, "where")
    if inner_x is not None and inner_x.operands[0] is c:
        return _emit(b, "where", op, c, inner_x.operands[1], y)
    if inner_y is not None and inner_y.operands[0] is c:
        return _emit(b, "where", op, c, x, inner_y.operands[2])
    return None


@RULES.rule("where")
def where_of_bools(op: Op, _b: Builder) -> Value | None:
    """where(c, true, false) = c for bools"""
    if op.result.type.dtype.kind != "b" or op.operands[0].type.dtype.kind != "b":
        return None
    x, y = _number(op, 1), _number(op, 2)
    return _whole(op, 0) if x is not None and y is not None and x and not y else None


@RULES.rule("where")
def where_of_own_condition(op: Op, b: Builder) -> Value | None:
    """where(c, x, c) = c and x, where(c, c, y) = where(c, true, y) = c or y for bools: Python's `and` and `or`"""
    c, x, y = op.operands
    if any(v.type.dtype.kind != "b" for v in op.operands) or c.type.shape != op.result.type.shape:
        return None
    made: Value | None = None
    if _held(y) is _held(c):
        made = b.logical_and(c, x)
    elif _held(x) is _held(c) or _number(op, 1) == True:  # noqa: E712 - may be None
        made = b.logical_or(c, y)
    return made


def _held(value: Value) -> Value:
    """The value itself, whatever kind of scalar it is made."""
    while value.producer is not None and value.producer.name == "as_kind":
        value = value.producer.operands[0]
    return value


# Rounding and tests of whole numbers.

_ROUNDING = ("floor", "ceil", "trunc", "rint")


@RULES.rule(*_ROUNDING)
def round_of_whole(op: Op, _b: Builder) -> Value | None:
    """floor, ceil, trunc, rint of what they gave, or of an integer, is that"""
    x = op.operands[0]
    inner = x.producer
    if x.type.dtype != op.result.type.dtype:
        return None
    if inner is not None and inner.name == "cast" and inner.operands[0].type.dtype.kind in "iub":
        return x
    whole = x.type.dtype.kind in "iub" or (inner is not None and inner.name in _ROUNDING)
    return x if whole else None


@RULES.rule("isnan", "isinf", "isfinite")
def tests_of_integers(op: Op, b: Builder) -> Value | None:
    """isnan and isinf of an integer are false, isfinite is true"""
    return _fill(op, b, op.name == "isfinite") if _kind(op) in "iub" else None


@RULES.rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
def reduce_nothing(op: Op, b: Builder) -> Value | None:
    """a reduction over no axes = its operand, cast; a sum of floats begins with 0.0, which -0.0 does not survive"""
    x = op.operands[0]
    if op.attrs["axes"] or x.type.shape != op.result.type.shape or len(op.operands) > 1:
        return None
    dtype = op.result.type.dtype
    if x.type.dtype != dtype:
        if op.name in ("reduce_any", "reduce_all") or x.type.ndim == 0:
            return None
        x = _emit(b, "cast", op, x, dtype=dtype)
    if op.name != "reduce_sum" or dtype.kind in "biu":
        return x
    return _emit(b, "add", op, x, b.constant(dtype.type(0)))


# Fast math: each names the flags it needs.


@RULES.rule("add", fast_math=("nsz",))
def add_any_zero(op: Op, _b: Builder) -> Value | None:
    """x + 0 = x, if the sign of zero may change"""
    number = _number(op, 1)
    return _whole(op, 0) if number is not None and number == 0 and _kind(op) == "f" else None


@RULES.rule("mul", fast_math=("nnan", "ninf", "nsz"))
def mul_any_zero(op: Op, b: Builder) -> Value | None:
    """x * 0 = 0, if there are no NaN and infinities and the sign of zero may change"""
    number = _number(op, 1)
    return _fill(op, b, 0) if number is not None and number == 0 and _kind(op) == "f" else None


@RULES.rule("sub", fast_math=("nnan", "ninf"))
def float_difference_of_self(op: Op, b: Builder) -> Value | None:
    """x - x = 0, if there are no NaN and infinities"""
    return _fill(op, b, 0) if op.operands[0] is op.operands[1] and _kind(op) == "f" else None


@RULES.rule("div", fast_math=("arcp",))
def div_by_constant(op: Op, b: Builder) -> Value | None:
    """x / c = x * (1 / c), if reciprocals may be rounded first"""
    divisor = _number(op, 1)
    if divisor is None or divisor == 0 or not np.isfinite(divisor) or divisor == 1 or _whole(op, 0) is None:
        return None
    with np.errstate(all="ignore"):
        inverse = divisor.dtype.type(1) / divisor
    return _emit(b, "mul", op, op.operands[0], b.constant(inverse)) if np.isfinite(inverse) and inverse else None


@RULES.rule("neg", fast_math=("nsz",))
def neg_of_sub(op: Op, b: Builder) -> Value | None:
    """-(x - y) = y - x, if the sign of zero may change"""
    inner = producer_named(op.operands[0], "sub")
    return _emit(b, "sub", op, inner.operands[1], inner.operands[0]) if inner is not None else None


@RULES.rule("add", "mul", fast_math=("reassoc",))
def combine_constants(op: Op, b: Builder) -> Value | None:
    """(x + c) + d = x + (c + d), (x * c) * d = x * (c * d), if sums and products may be regrouped"""
    inner, outer = producer_named(op.operands[0], op.name), _number(op, 1)
    if inner is None or outer is None or _kind(op) != "f" or Trait.COMMUTATIVE not in op.defn.traits:
        return None
    number = constant_number(inner.operands[1])
    if number is None or inner.operands[0].type.shape != op.result.type.shape:
        return None
    with np.errstate(all="ignore"):
        together = number + outer if op.name == "add" else number * outer
    return _emit(b, op.name, op, inner.operands[0], b.constant(together))


@RULES.rule("mul", fast_math=("reassoc",))
def mul_of_exp(op: Op, b: Builder) -> Value | None:
    """exp(x) * exp(y) = exp(x + y), if functions may be regrouped"""
    left, right = producer_named(op.operands[0], "exp"), producer_named(op.operands[1], "exp")
    if left is None or right is None or left is right:
        return None
    return _emit(b, "exp", op, _emit(b, "add", op, left.operands[0], right.operands[0]))
