"""Scalar lowerings that take more than one primitive, bit for bit as NumPy's loops. Each sees operands of one dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.opdef import Scalar

_UNSIGNED = {dtypes.I8: dtypes.U8, dtypes.I16: dtypes.U16, dtypes.I32: dtypes.U32, dtypes.I64: dtypes.U64}
_BITS = {dtypes.F32: dtypes.I32, dtypes.F64: dtypes.I64}


def in_single(lower: Callable[..., Any]) -> Callable[..., Any]:
    """float16 as NumPy computes it: all of `lower` in float32, the result rounded once."""

    def lowered(s: Scalar, *operands: Any, **attrs: Any) -> Any:
        for x in operands:
            if s.dtype(x) == dtypes.F16:
                break
        else:
            return lower(s, *operands, **attrs)
        wide = [s.cast(x, dtypes.F32) if s.dtype(x) == dtypes.F16 else x for x in operands]
        found = lower(s, *wide, **attrs)
        return s.cast(found, dtypes.F16) if s.dtype(found) == dtypes.F32 else found

    return lowered


def is_bool(s: Scalar, x: Any) -> bool:
    return s.dtype(x).kind == "b"


def is_float(s: Scalar, x: Any) -> bool:
    return s.dtype(x).kind == "f"


def minimum_of(dtype: np.dtype) -> int:
    return int(np.iinfo(dtype).min)


def truth(s: Scalar, x: Any) -> Any:
    """x != 0 as bool; NaN is true."""
    return x if is_bool(s, x) else s.cmp("ne", x, s.like(0, x))


def is_nan(s: Scalar, x: Any) -> Any:
    return s.cmp("uno", x, x)


def false(s: Scalar) -> Any:
    return s.const(value=False, dtype=dtypes.BOOL)


def true(s: Scalar) -> Any:
    return s.const(value=True, dtype=dtypes.BOOL)


# -------------------------------------------------------------------------------------------------------- arithmetic


def neg(s: Scalar, x: Any) -> Any:
    return s.neg(x) if is_float(s, x) else s.sub(s.like(0, x), x)


def absolute(s: Scalar, x: Any) -> Any:
    """|x|; the least signed integer stays as it is."""
    if is_float(s, x):
        return s.fabs(x)
    if not dtypes.is_signed(s.dtype(x)):
        return x
    zero = s.like(0, x)
    return s.select(s.cmp("lt", x, zero), s.sub(zero, x), x)


def sign(s: Scalar, x: Any) -> Any:
    """-1, 0 or 1; NaN stays NaN."""
    zero, one = s.like(0, x), s.like(1, x)
    if s.dtype(x).kind == "u":
        return s.select(s.cmp("ne", x, zero), one, zero)
    below = s.select(s.cmp("lt", x, zero), s.like(-1, x), zero)
    found = s.select(s.cmp("gt", x, zero), one, below)
    return s.select(is_nan(s, x), x, found) if is_float(s, x) else found


def add(s: Scalar, a: Any, b: Any) -> Any:
    return s.or_(a, b) if is_bool(s, a) else s.add(a, b)


def mul(s: Scalar, a: Any, b: Any) -> Any:
    return s.and_(a, b) if is_bool(s, a) else s.mul(a, b)


def square(s: Scalar, x: Any) -> Any:
    return s.mul(x, x)


def reciprocal(s: Scalar, x: Any) -> Any:
    """1 / x; for integers towards zero, and of zero what NumPy's conversion of infinity gives."""
    if is_float(s, x):
        return s.fdiv(s.like(1, x), x)
    dtype = s.dtype(x)
    zero = s.like(0, x)
    unit = s.cmp("eq", x, s.like(1, x))
    if dtypes.is_signed(dtype):
        unit = s.or_(unit, s.cmp("eq", x, s.like(-1, x)))
    found = s.select(unit, x, zero)
    if dtype in (dtypes.I32, dtypes.I64):
        return s.select(s.cmp("eq", x, zero), s.like(minimum_of(dtype), x), found)
    return found


def _safe_divisor(s: Scalar, a: Any, b: Any) -> Any:
    """`b`, or 1 where dividing by it would trap: zero, and -1 under the least integer."""
    bad = s.cmp("eq", b, s.like(0, b))
    if dtypes.is_signed(s.dtype(a)):
        least = s.cmp("eq", a, s.like(minimum_of(s.dtype(a)), a))
        bad = s.or_(bad, s.and_(least, s.cmp("eq", b, s.like(-1, b))))
    return s.select(bad, s.like(1, b), b)


def _float_divmod(s: Scalar, a: Any, b: Any) -> tuple[Any, Any]:
    """NumPy's `npy_divmod`: the quotient is the snapped (a - mod) / b, mod has the sign of b."""
    zero = s.like(0, a)
    mod = s.frem(a, b)
    div = s.fdiv(s.sub(a, mod), b)
    nonzero = s.cmp("ne", mod, zero)  # true for NaN
    flips = s.and_(nonzero, s.xor(s.cmp("lt", b, zero), s.cmp("lt", mod, zero)))
    quotient = s.select(flips, s.sub(div, s.like(1, a)), div)
    floor = s.floor(quotient)
    above = s.cmp("gt", s.sub(quotient, floor), s.like(0.5, a))
    floor = s.select(above, s.add(floor, s.like(1, a)), floor)
    floor = s.select(s.cmp("eq", quotient, zero), s.copysign(zero, s.fdiv(a, b)), floor)
    rest = s.select(flips, s.add(mod, b), s.select(nonzero, mod, s.copysign(zero, b)))
    return floor, rest


def floordiv(s: Scalar, a: Any, b: Any) -> Any:
    """a // b towards minus infinity; integers by zero give 0, the least integer by -1 itself."""
    zero = s.like(0, a)
    if is_float(s, a):
        return s.select(s.cmp("eq", b, zero), s.fdiv(a, b), _float_divmod(s, a, b)[0])
    d = _safe_divisor(s, a, b)
    q = s.idiv(a, d)
    if dtypes.is_signed(s.dtype(a)):
        rest = s.sub(a, s.mul(q, d))
        down = s.and_(s.cmp("ne", rest, zero), s.cmp("lt", s.xor(rest, d), zero))
        q = s.sub(q, s.select(down, s.like(1, a), zero))
    return s.select(s.cmp("eq", b, zero), zero, q)


def mod(s: Scalar, a: Any, b: Any) -> Any:
    """a - b * floor(a / b), with the sign of b; integers by zero give 0, floats NaN."""
    zero = s.like(0, a)
    if is_float(s, a):
        return s.select(s.cmp("eq", b, zero), s.frem(a, b), _float_divmod(s, a, b)[1])
    d = _safe_divisor(s, a, b)
    rest = s.irem(a, d)
    if dtypes.is_signed(s.dtype(a)):
        flips = s.and_(s.cmp("ne", rest, zero), s.cmp("lt", s.xor(rest, d), zero))
        rest = s.add(rest, s.select(flips, d, zero))
    return rest


def fmod(s: Scalar, a: Any, b: Any) -> Any:
    """The remainder of the quotient towards zero, with the sign of a; integers by zero give 0."""
    return s.frem(a, b) if is_float(s, a) else s.irem(a, _safe_divisor(s, a, b))


def power(s: Scalar, a: Any, b: Any) -> Any:
    """Floats by the library's pow. Integers by squaring, wrapping; the front end has refused negative exponents."""
    if is_float(s, a):
        return s.call("pow", a, b)
    dtype = s.dtype(a)
    one, zero = s.like(1, a), s.like(0, a)
    result, base = one, a
    for bit in range(dtype.itemsize * 8 - dtypes.is_signed(dtype)):
        if bit:
            base = s.mul(base, base)
        taken = s.cmp("ne", s.and_(b, s.like(1 << bit, b)), zero)
        result = s.mul(result, s.select(taken, base, one))
    return result


def maximum(s: Scalar, a: Any, b: Any) -> Any:
    """The greater one; NaN if either is. Of two zeros the second, as in NumPy."""
    if is_bool(s, a):
        return s.or_(a, b)
    if not is_float(s, a):
        return s.select(s.cmp("ge", a, b), a, b)
    return s.select(s.or_(s.cmp("gt", a, b), is_nan(s, a)), a, b)


def minimum(s: Scalar, a: Any, b: Any) -> Any:
    """The lesser one; NaN if either is. Of two zeros the second, as in NumPy."""
    if is_bool(s, a):
        return s.and_(a, b)
    if not is_float(s, a):
        return s.select(s.cmp("le", a, b), a, b)
    return s.select(s.or_(s.cmp("lt", a, b), is_nan(s, a)), a, b)


def fmax(s: Scalar, a: Any, b: Any) -> Any:
    """The greater one; the other one if one is NaN."""
    if not is_float(s, a):
        return maximum(s, a, b)
    return s.select(s.or_(s.cmp("ge", a, b), is_nan(s, b)), a, b)


def fmin(s: Scalar, a: Any, b: Any) -> Any:
    """The lesser one; the other one if one is NaN."""
    if not is_float(s, a):
        return minimum(s, a, b)
    return s.select(s.or_(s.cmp("le", a, b), is_nan(s, b)), a, b)


def clip(s: Scalar, x: Any, lower: Any, upper: Any) -> Any:
    """min(max(x, lower), upper): where the bounds cross, the upper one."""
    return minimum(s, maximum(s, x, lower), upper)


# ------------------------------------------------------------------------------------------------------- comparisons


def compare(predicate: str) -> Callable[[Scalar, Any, Any], Any]:
    """The lowering of a comparison; NumPy compares int64 with uint64 by value."""

    def lower(s: Scalar, a: Any, b: Any) -> Any:
        left, right = s.dtype(a), s.dtype(b)
        if left != right:
            return _compare_mixed(s, predicate, a, b)
        if left != dtypes.BOOL:
            return s.cmp(predicate, a, b)
        if predicate == "eq":
            return s.not_(s.xor(a, b))
        if predicate == "ne":
            return s.xor(a, b)
        if predicate in ("gt", "ge"):
            a, b = b, a
        return s.and_(s.not_(a), b) if predicate in ("lt", "gt") else s.or_(s.not_(a), b)

    return lower


def _compare_mixed(s: Scalar, predicate: str, a: Any, b: Any) -> Any:
    """int64 with uint64: a negative one is the lesser, otherwise compare as unsigned."""
    a_signed = dtypes.is_signed(s.dtype(a))
    signed = a if a_signed else b
    negative = s.cmp("lt", signed, s.like(0, signed))
    unsigned = s.cmp(predicate, s.cast(a, dtypes.U64), s.cast(b, dtypes.U64))
    holds = predicate == "ne" or predicate in (("lt", "le") if a_signed else ("gt", "ge"))
    return s.or_(negative, unsigned) if holds else s.and_(s.not_(negative), unsigned)


def isnan(s: Scalar, x: Any) -> Any:
    return is_nan(s, x) if is_float(s, x) else false(s)


def isinf(s: Scalar, x: Any) -> Any:
    return s.cmp("eq", s.fabs(x), s.like(float("inf"), x)) if is_float(s, x) else false(s)


def isfinite(s: Scalar, x: Any) -> Any:
    return s.cmp("lt", s.fabs(x), s.like(float("inf"), x)) if is_float(s, x) else true(s)


def signbit(s: Scalar, x: Any) -> Any:
    bits = s.bitcast(x, _BITS[s.dtype(x)])
    return s.cmp("lt", bits, s.like(0, bits))


def logical_and(s: Scalar, a: Any, b: Any) -> Any:
    return s.and_(truth(s, a), truth(s, b))


def logical_or(s: Scalar, a: Any, b: Any) -> Any:
    return s.or_(truth(s, a), truth(s, b))


def logical_xor(s: Scalar, a: Any, b: Any) -> Any:
    return s.xor(truth(s, a), truth(s, b))


def logical_not(s: Scalar, x: Any) -> Any:
    return s.not_(x) if is_bool(s, x) else s.cmp("eq", x, s.like(0, x))


# -------------------------------------------------------------------------------------------------------------- bits


def _in_width(s: Scalar, b: Any) -> Any:
    """Whether a shift count lies in [0, width)."""
    fits = s.cmp("lt", b, s.like(s.dtype(b).itemsize * 8, b))
    return s.and_(s.cmp("ge", b, s.like(0, b)), fits) if dtypes.is_signed(s.dtype(b)) else fits


def shift_left(s: Scalar, a: Any, b: Any) -> Any:
    """a << b; 0 if the count is negative or at least the width."""
    fits, zero = _in_width(s, b), s.like(0, a)
    return s.select(fits, s.shl(a, s.select(fits, b, zero)), zero)


def shift_right(s: Scalar, a: Any, b: Any) -> Any:
    """a >> b; all sign bits if the count is negative or at least the width."""
    fits, zero = _in_width(s, b), s.like(0, a)
    dtype = s.dtype(a)
    if dtypes.is_signed(dtype):
        return s.shr(a, s.select(fits, b, s.like(dtype.itemsize * 8 - 1, b)))
    return s.select(fits, s.shr(a, s.select(fits, b, zero)), zero)


# ------------------------------------------------------------------------------------------------ rounding and casts


def rounding(primitive: str) -> Callable[[Scalar, Any], Any]:
    """floor, ceil, trunc or rint; integers and bools are whole already."""

    def lower(s: Scalar, x: Any) -> Any:
        return getattr(s, primitive)(x) if is_float(s, x) else x

    return lower


def cast(s: Scalar, x: Any, dtype: np.dtype) -> Any:
    """`astype`. `Scalar.cast` sees floats only in the range of the signed target.

    Out of range, as x86 converts (and NumPy with it): to 8 and 16 bits by way of int32 and to uint32 by way of int64,
    keeping the low bits; to int32 and int64 the least integer. The byte order is memory's: a scalar is native.
    """
    source, dtype = s.dtype(x), dtypes.native(dtype)
    if source == dtype:
        return x
    if source == dtypes.F16:
        return cast(s, s.cast(x, dtypes.F32), dtype)
    if dtype == dtypes.F16 and source != dtypes.F64:
        return s.cast(s.cast(x, dtypes.F32), dtype)
    if dtype.kind == "b":
        return truth(s, x)
    if source.kind != "f" or dtype.kind == "f":
        return s.cast(x, dtype)
    if dtype == dtypes.U64:
        half = s.like(2.0**63, x)
        high = s.xor(_to_signed(s, s.sub(x, half), dtypes.I64), s.const(minimum_of(dtypes.I64), dtypes.I64))
        return s.cast(s.select(s.cmp("lt", x, half), _to_signed(s, x, dtypes.I64), high), dtype)
    through = dtypes.I64 if dtype in (dtypes.I64, dtypes.U32) else dtypes.I32
    whole = _to_signed(s, x, through)
    return whole if through == dtype else s.cast(whole, dtype)


def _to_signed(s: Scalar, x: Any, dtype: np.dtype) -> Any:
    """A float to int32 or int64; out of range and NaN give the least integer."""
    limit = 2.0 ** (dtype.itemsize * 8 - 1)
    if s.dtype(x) == dtypes.F64 and dtype == dtypes.I32:
        above_least = s.cmp("gt", x, s.like(-limit - 1, x))  # -2147483648.9 is -2147483648
    else:
        above_least = s.cmp("ge", x, s.like(-limit, x))
    inside = s.and_(above_least, s.cmp("lt", x, s.like(limit, x)))
    return s.cast(s.select(inside, x, s.like(-limit, x)), dtype)


# --------------------------------------------------------------------------------------------------- checked integers


def add_overflows(s: Scalar, a: Any, b: Any) -> Any:
    return s.overflows("add", a, b)


def sub_overflows(s: Scalar, a: Any, b: Any) -> Any:
    return s.overflows("sub", a, b)


def mul_overflows(s: Scalar, a: Any, b: Any) -> Any:
    return s.overflows("mul", a, b)


# --------------------------------------------------------------------------------------------------------- functions


def call(name: str) -> Callable[..., Any]:
    """The lowering to a function of the math library."""

    def lower(s: Scalar, *operands: Any) -> Any:
        return s.call(name, *operands)

    return lower


def relu(s: Scalar, x: Any) -> Any:
    """max(x, 0); NaN stays NaN."""
    return maximum(s, x, s.like(0, x))
