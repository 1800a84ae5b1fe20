"""erf: an odd polynomial near 0, and further out 1 - exp(-x (1 + g(x))), where g is smooth. erfc: e^(-x^2) times a
slowly varying factor, after Shepherd and Laframboise, "Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x", 1981.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import ERF, ERF_TAIL, ERFC, EXP
from jitgraph.codegen.vecmath.exponential import LOG2_E, exp_moderate, reduced
from jitgraph.codegen.vecmath.function import FORMATS, horner, rounded, scaled

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

CROSSOVER: Final = {"float": 0.94, "double": 1.0}
LIMIT: Final = {"float": 4.0, "double": 6.0}  # above, the result rounds to 1
ERFC_CROSSOVER: Final = 0.72
ERFC_MIDDLE: Final = 3563 / 1024
ERFC_LIMIT: Final = {"float": 10.1, "double": 27.3}  # above, the result rounds to 0


def erf(a: Assembler, /, *operands: V) -> V:
    """The error function"""
    x = operands[0]
    y = a.fabs(x)
    z = a.fmul(x, x)
    near = a.muladd(x, horner(a, z, ERF[x.ty]), x)
    limit = a.like(LIMIT[x.ty], x)
    y_clamped = a.select(a.fcmp("ogt", y, limit), limit, y)
    g = horner(a, y_clamped, ERF_TAIL[x.ty])
    one = a.like(1.0, x)
    minus = a.fneg(y_clamped)
    exponent = a.muladd(minus, g, minus)
    lost = a.muladd(minus, g, a.fsub(minus, exponent))
    far = a.fsub(one, exp_moderate(a, exponent, lost))
    return a.copysign(a.select(a.fcmp("olt", y, a.like(CROSSOVER[x.ty], x)), near, far), x)


def square_parts(a: Assembler, x: V) -> tuple[V, V]:
    """x^2 as two numbers"""
    if a.has_fma:
        square = a.fmul(x, x)
        return square, a.fma(x, x, a.fneg(square))
    form = FORMATS[x.ty]
    bits = a.bitcast(x, form.int_ty)
    upper = a.bitcast(a.and_(bits, a.like(-(1 << (form.mantissa_bits + 3) // 2), bits)), x.ty)
    high, low = a.fmul(upper, upper), a.fmul(a.fsub(x, upper), a.fadd(x, upper))
    square = a.fadd(high, low)
    return square, a.fadd(a.fsub(high, square), low)


def erfc(a: Assembler, /, *operands: V) -> V:
    """1 - erf(x) below 0.72; above, e^(-x^2) P / (1 + 2 x), both factors as sums of two numbers; 2 - it below -0.72"""
    x = operands[0]
    one, two = a.like(1.0, x), a.like(2.0, x)
    # near 0: 1 - x is the sum of two numbers
    start = a.fsub(one, x)
    lost = a.fsub(a.fsub(one, start), x)
    near = a.fadd(start, a.fsub(lost, a.fmul(x, horner(a, a.fmul(x, x), ERF[x.ty]))))
    # P
    y, limit = a.fabs(x), a.like(ERFC_LIMIT[x.ty], x)
    y = a.select(a.fcmp("ogt", y, limit), limit, y)
    middle = a.like(ERFC_MIDDLE, x)
    t = a.fdiv(a.fsub(y, middle), a.fadd(y, middle))
    constant = a.like(ERFC[x.ty][0], x)
    series = a.fmul(t, horner(a, t, ERFC[x.ty][1:]))
    p = a.fadd(constant, series)
    p_low = a.fadd(a.fsub(constant, p), series)
    # P / (1 + 2 y)
    doubled = a.fadd(y, y)
    d = a.fadd(doubled, one)
    d_low = a.fadd(a.fsub(doubled, d), one)
    inverse = a.fdiv(one, d)
    q = a.fmul(p, inverse)
    if a.has_fma:
        remainder = a.fadd(a.fma(a.fneg(q), d, p), a.fma(a.fneg(q), d_low, p_low))
    else:
        q = a.fdiv(p, d)
        remainder = a.fsub(p_low, a.fmul(q, d_low))
    q_low = a.fmul(remainder, inverse)
    # e^(-y^2)
    square, square_low = square_parts(a, y)
    exponent = a.fneg(square)
    k, k_bits = rounded(a, exponent, LOG2_E)
    high, low = reduced(a, exponent, k)
    low = a.fsub(low, square_low)
    r = a.fadd(high, low)
    tail = a.muladd(a.fmul(r, r), horner(a, r, EXP[x.ty]), low)
    grown = a.fadd(high, tail)
    e = a.fadd(one, grown)
    e_low = a.fadd(a.fadd(a.fsub(one, e), grown), a.fadd(a.fsub(high, grown), tail))
    if a.has_fma:
        product = a.fmul(e, q)
        product_low = a.fadd(a.fma(e_low, q, a.fmul(e, q_low)), a.fma(e, q, a.fneg(product)))
    else:  # q + (e - 1) q rounds less than e q
        product = q
        product_low = a.fadd(a.fmul(grown, q), a.fmul(e, q_low))
    far = scaled(a, a.fadd(product, product_low), k, k_bits)
    far = a.select(a.fcmp("olt", x, a.like(0.0, x)), a.fsub(two, far), far)
    return a.select(a.fcmp("olt", a.fabs(x), a.like(ERFC_CROSSOVER, x)), near, far)
