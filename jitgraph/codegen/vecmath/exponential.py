"""exp and its kin. x = k ln 2 + r with |r| <= ln 2 / 2, then e^r from a polynomial, then the exponent k.

The products of k with the first part of ln 2 are exact because that part is short; r = high + low keeps what rounding r
would lose, which is the difference between 0.9 and 1.02 ulp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import EXP, EXP2, EXPM1
from jitgraph.codegen.vecmath.function import (
    FORMATS,
    LN2_PARTS,
    horner,
    power_of_two,
    power_of_two_at_least,
    rounded,
    scaled,
)

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

LN2: Final = float.fromhex("0x1.62e42fefa39efp-1")
LOG2_E: Final = float.fromhex("0x1.71547652b82fep+0")
# beyond these the result is infinity, or zero; nothing in between is lost, and scaling can handle the k there are
EXP_RANGE: Final = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
EXP2_RANGE: Final = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
EXPM1_RANGE: Final = {"float": (-18.0, 89.0), "double": (-40.0, 710.0)}  # below, the result rounds to -1


def clamped(a: Assembler, x: V, low: float, high: float) -> V:
    """x moved into [low, high]; NaN stays NaN."""
    x = a.select(a.fcmp("olt", x, a.like(low, x)), a.like(low, x), x)
    return a.select(a.fcmp("ogt", x, a.like(high, x)), a.like(high, x), x)


def reduced(a: Assembler, x: V, k: V) -> tuple[V, V]:
    """x - k ln 2 as high + low; high is exact, low the second part of ln 2 times -k."""
    first, second = LN2_PARTS[x.ty]
    return a.muladd(k, a.like(-first, k), x), a.fmul(k, a.like(-second, k))


def exp(a: Assembler, /, *operands: V) -> V:
    """e^x"""
    x = clamped(a, operands[0], *EXP_RANGE[operands[0].ty])
    k, k_bits = rounded(a, x, LOG2_E)
    high, low = reduced(a, x, k)
    r = a.fadd(high, low)
    tail = a.muladd(a.fmul(r, r), horner(a, r, EXP[x.ty]), low)
    return scaled(a, a.fadd(a.fadd(high, tail), a.like(1.0, x)), k, k_bits)


def exp2(a: Assembler, /, *operands: V) -> V:
    """2^x; x - rint(x) is exact, so nothing has to be compensated."""
    x = clamped(a, operands[0], *EXP2_RANGE[operands[0].ty])
    k, k_bits = rounded(a, x, 1.0)
    r = a.fsub(x, k)
    grown = a.muladd(r, a.like(LN2, r), a.fmul(a.fmul(r, r), horner(a, r, EXP2[x.ty])))
    return scaled(a, a.fadd(grown, a.like(1.0, x)), k, k_bits)


def expm1(a: Assembler, /, *operands: V) -> V:
    """e^x - 1 = 2 (s p + (s - 1/2)) for p = e^r - 1, s = 2^(k - 1)"""
    x = operands[0]
    y = clamped(a, x, *EXPM1_RANGE[x.ty])
    k, k_bits = rounded(a, y, LOG2_E)
    # no reduction up to 1/2: p is the result there. Halving p at k = 1 and a negative r would cancel; at k = -1 nothing
    # cancels, so that reduction begins where it does by itself
    small = a.and_(a.fcmp("ogt", y, a.like(-LN2_PARTS[x.ty][0] / 2, y)), a.fcmp("olt", y, a.like(0.5, y)))
    k = a.select(small, a.like(0.0, k), k)
    high, low = reduced(a, y, k)
    r = a.fadd(high, low)
    square = a.fmul(r, r)
    # 1/2 apart from the polynomial, where adding it would cost half an ulp of it
    halves = a.muladd(square, a.like(0.5, r), low)
    p = a.fadd(high, a.muladd(a.fmul(square, r), horner(a, r, EXPM1[x.ty]), halves))
    s = power_of_two(a, k_bits, x.ty, -1)
    # p s is exact; s - 1/2 is not for a large s, where p s is so large that it can take what was lost
    half = a.like(0.5, x)
    start = a.fsub(s, half)
    lost = a.fsub(a.fsub(s, start), half)
    result = a.fadd(a.muladd(p, s, lost), start)
    return a.copysign(a.select(small, p, a.fmul(result, a.like(2.0, x))), x)


def sigmoid(a: Assembler, /, *operands: V) -> V:
    """It is 1 / (1 + e) for e = e^-|x|, and e / (1 + e) for a negative x, which keeps the digits of small results.

    e, 1 + e and the quotient carry their rounding errors; the exponent of e in the numerator goes in last, so that a
    subnormal result is rounded once.
    """
    x = operands[0]
    one, zero = a.like(1.0, x), a.like(0.0, x)
    lowest = a.like(EXP_RANGE[x.ty][0], x)
    y = a.fneg(a.fabs(x))
    y = a.select(a.fcmp("olt", y, lowest), lowest, y)
    k, k_bits = rounded(a, y, LOG2_E)
    high, low = reduced(a, y, k)
    r = a.fadd(high, low)
    t = a.fadd(high, a.muladd(a.fmul(r, r), horner(a, r, EXP[x.ty]), low))
    p = a.fadd(one, t)
    p_low = a.fadd(a.fsub(one, p), t)
    # below 2^-60 or so e vanishes beside 1, so its exponent may be held where 2^k is normal
    e_scale = power_of_two_at_least(a, k_bits, x.ty)
    e = a.fmul(p, e_scale)
    d = a.fadd(one, e)
    d_low = a.muladd(p_low, e_scale, a.fadd(a.fsub(one, d), e))
    negative = a.fcmp("olt", x, zero)
    numerator = a.select(negative, p, one)
    numerator_low = a.select(negative, p_low, zero)
    reciprocal = a.fdiv(one, d)
    quotient = a.fmul(numerator, reciprocal)
    if a.has_fma:
        error = a.fadd(a.fma(a.fneg(quotient), d, numerator), a.fma(a.fneg(quotient), d_low, numerator_low))
        quotient = a.fma(error, reciprocal, quotient)
    else:  # the remainder is out of reach: a division and an addition to round
        quotient = a.fdiv(numerator, d)
        error = a.fsub(numerator_low, a.fmul(quotient, d_low))
        quotient = a.fadd(quotient, a.fmul(error, reciprocal))
    k = a.select(negative, k, zero)
    return scaled(a, quotient, k, a.select(negative, k_bits, a.like(FORMATS[x.ty].magic_bits, k_bits)))


def exp_moderate(a: Assembler, x: V, low: V | None = None) -> V:
    """e^(x + low) where k is a normal exponent, about 1 ulp: for use where the result's error counts little."""
    k, k_bits = rounded(a, x, LOG2_E)
    first, second = LN2_PARTS[x.ty]
    r = a.muladd(k, a.like(-first, k), x)
    r = a.muladd(k, a.like(-second, k), r if low is None else a.fadd(r, low))
    p = a.fadd(a.muladd(a.fmul(r, r), horner(a, r, EXP[x.ty]), r), a.like(1.0, x))
    return a.fmul(p, power_of_two(a, k_bits, x.ty))
