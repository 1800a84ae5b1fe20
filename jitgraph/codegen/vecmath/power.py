"""pow: x^y = 2^(y log2 |x|), and C's Annex F for everything that is not a positive finite number.

In double the logarithm has to carry about 65 bits: it is a sum of two numbers throughout. Operands in float go through
double, where the plain logarithm has bits enough and no intermediate overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import EXP2, POW_ATANH, POW_EXP2, POW_LOG2
from jitgraph.codegen.vecmath.function import (
    INF,
    NAN,
    horner,
    libm_lanes,
    power_of_two,
    rounded,
    scaled,
    sign_bits,
    with_sign,
)
from jitgraph.codegen.vecmath.logarithm import exponent_and_fraction

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

_h = float.fromhex
TWO_LOG2_E: Final = (_h("0x1.71547652b82fep+1"), _h("0x1.777d0ffda0d24p-55"))
LN2_PARTS_EXACT: Final = (_h("0x1.62e42fefa39efp-1"), _h("0x1.abc9e3b39803fp-56"))
THIRD: Final = (_h("0x1.5555555555555p-2"), _h("0x1.5555555555555p-56"))
LIMIT: Final = 1200.0  # 2^this is infinity, 2^-this is 0, in double


def pow_(a: Assembler, /, *operands: V) -> V:
    """The first operand to the power of the second"""
    x, y = operands
    if x.ty == "float":
        wide = power_for_float(a, a.fabs(a.fpext(x, "double")), a.fpext(y, "double"))
        return with_power_specials(a, x, y, a.fptrunc(wide, "float"))
    if not a.has_fma:  # a product's rounding error would take 17 operations
        return libm_lanes(a, "pow", x, y)
    return with_power_specials(a, x, y, power_for_double(a, a.fabs(x), y))


def log2_specials(a: Assembler, x: V, log: V) -> V:
    """-inf for 0; +inf and NaN as they are"""
    log = a.select(a.fcmp("olt", x, a.like(INF, x)), log, x)
    return a.select(a.fcmp("oeq", x, a.like(0.0, x)), a.like(-INF, x), log)


def held(a: Assembler, x: V, limit: float) -> V:
    """x in [-limit, limit]; NaN stays NaN."""
    x = a.select(a.fcmp("ogt", x, a.like(limit, x)), a.like(limit, x), x)
    return a.select(a.fcmp("olt", x, a.like(-limit, x)), a.like(-limit, x), x)


def power_for_float(a: Assembler, x: V, y: V) -> V:
    """x^y for x >= 0 to about 40 bits, where it is neither too large nor too small for a float."""
    k, f = exponent_and_fraction(a, x)
    log = a.muladd(f, horner(a, f, POW_LOG2["double"]), k)  # a division would take longer than its eight degrees
    exponent = held(a, a.fmul(log2_specials(a, x, log), y), 300.0)
    k, k_bits = rounded(a, exponent, 1.0)
    return a.fmul(horner(a, a.fsub(exponent, k), POW_EXP2["double"]), power_of_two(a, k_bits, "double"))


def log2_parts(a: Assembler, x: V) -> tuple[V, V]:
    """log2(x) as two numbers, for x >= 0; log2((1 + s) / (1 - s)) = 2 log2(e) s (1 + z/3 + z^2 P(z)) with z = s^2"""
    k, f = exponent_and_fraction(a, x)
    two = a.like(2.0, x)
    d = a.fadd(f, two)
    d_low = a.fadd(a.fsub(two, d), f)
    inverse = a.fdiv(a.like(1.0, x), d)
    s = a.fmul(f, inverse)
    minus_s = a.fneg(s)
    s_low = a.fmul(a.fma(minus_s, d_low, a.fma(minus_s, d, f)), inverse)
    z = a.fmul(s, s)
    z_low = a.fma(a.fadd(s, s), s_low, a.fma(s, s, a.fneg(z)))
    rest = a.fmul(a.fmul(z, z), horner(a, z, POW_ATANH["double"]))
    third, third_low = (a.like(part, x) for part in THIRD)
    first = a.fmul(z, third)
    first_low = a.fma(z_low, third, a.fma(z, third_low, a.fma(z, third, a.fneg(first))))
    w = a.fadd(first, rest)
    w_low = a.fadd(a.fadd(a.fsub(first, w), rest), first_low)
    scale, scale_low = (a.like(part, x) for part in TWO_LOG2_E)
    main = a.fmul(s, scale)
    main_low = a.fma(s_low, scale, a.fma(s, scale_low, a.fma(s, scale, a.fneg(main))))
    more = a.fmul(main, w)
    more_low = a.fma(main, w_low, a.fma(main_low, w, a.fma(main, w, a.fneg(more))))
    sum_1 = a.fadd(k, main)
    lost = a.fadd(a.fsub(k, sum_1), main)
    sum_2 = a.fadd(sum_1, more)
    lost = a.fadd(a.fadd(lost, a.fadd(a.fsub(sum_1, sum_2), more)), a.fadd(main_low, more_low))
    total = a.fadd(sum_2, lost)
    return total, a.fadd(a.fsub(sum_2, total), lost)


def power_for_double(a: Assembler, x: V, y: V) -> V:
    """x^y for x >= 0"""
    log, log_low = log2_parts(a, x)
    log = log2_specials(a, x, log)
    product = a.fmul(y, log)
    product_low = a.fma(y, log_low, a.fma(y, log, a.fneg(product)))
    moderate = a.fcmp("olt", a.fabs(product), a.like(LIMIT, x))  # beyond, the low part may be a NaN
    exponent = held(a, product, LIMIT)
    exponent_low = a.select(moderate, product_low, a.like(0.0, x))
    # 2^1200 would leave the exponents when halved twice; 1100 still overflows
    exponent = held(a, exponent, 1100.0)
    k, k_bits = rounded(a, exponent, 1.0)
    r = a.fsub(exponent, k)
    t = a.fadd(r, exponent_low)
    t_low = a.fadd(a.fsub(r, t), exponent_low)
    ln2, ln2_low = (a.like(part, t) for part in LN2_PARTS_EXACT)
    main = a.fmul(t, ln2)
    low = a.fma(t, ln2_low, a.fma(t_low, ln2, a.fma(t, ln2, a.fneg(main))))
    tail = a.fma(a.fmul(t, t), horner(a, t, EXP2["double"]), low)
    one = a.like(1.0, t)
    total = a.fadd(one, main)
    p = a.fadd(total, a.fadd(a.fadd(a.fsub(one, total), main), tail))
    return scaled(a, p, k, k_bits)


def with_power_specials(a: Assembler, x: V, y: V, magnitude: V) -> V:
    """|x|^y with its sign, and the exceptions: 1 for x = 1 or y = 0, whatever the other is; NaN for roots of x < 0."""
    zero, one, half = a.like(0.0, x), a.like(1.0, x), a.like(0.5, x)
    up = a.fabs(x)
    # (-1)^(+-inf) is 1, and 1^y needs no rounding
    magnitude = a.select(a.and_(a.fcmp("oeq", up, one), a.fcmp("ord", y, y)), one, magnitude)
    whole = a.fcmp("oeq", a.trunc(y), y)
    halved = a.fmul(y, half)
    odd = a.and_(whole, a.fcmp("one", a.trunc(halved), halved))
    signs = sign_bits(a, x)
    signed = a.select(odd, with_sign(a, magnitude, signs), magnitude)
    root_of_negative = a.and_(a.fcmp("olt", x, zero), a.fcmp("olt", up, a.like(INF, x)))
    root_of_negative = a.and_(root_of_negative, a.fcmp("one", a.trunc(y), y))
    result = a.select(root_of_negative, a.like(NAN, x), signed)
    return a.select(a.or_(a.fcmp("oeq", y, zero), a.fcmp("oeq", x, one)), one, result)
