"""exp and its kin. x = k ln 2 + r with |r| <= ln 2 / 2, then e^r from a polynomial, then the exponent k.

The products of k with the first part of ln 2 are exact because that part is short; r = high + low keeps what rounding r
would lose, which is the difference between 0.9 and 1.02 ulp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import EXP, EXP2, EXPM1, TANH
from jitgraph.codegen.vecmath.function import (
    FORMATS,
    LN2_PARTS,
    horner,
    power_of_two,
    rounded,
    scaled,
)

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

LOG2_E: Final = float.fromhex("0x1.71547652b82fep+0")
# beyond these the result is infinity, or zero; nothing in between is lost, and k stays in a range that scaling can handle
EXP_RANGE: Final = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
EXP2_RANGE: Final = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
EXPM1_RANGE: Final = {"float": (-18.0, 89.0), "double": (-40.0, 710.0)}  # below, the result rounds to -1
TANH_LIMIT: Final = {"float": 10.0, "double": 20.0}  # above, the result rounds to 1


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
    return scaled(a, a.muladd(r, horner(a, r, EXP2[x.ty]), a.like(1.0, x)), k, k_bits)


def expm1(a: Assembler, /, *operands: V) -> V:
    """e^x - 1 = 2 (s p + (s - 1/2)) with p = expm1(r), s = 2^(k - 1)"""
    x = operands[0]
    form = FORMATS[x.ty]
    y = clamped(a, x, *EXPM1_RANGE[x.ty])
    k, k_bits = rounded(a, y, LOG2_E)
    # no reduction below 1/2: p is the result there, and s - 1/2 is 0, so nothing cancels
    small = a.fcmp("olt", a.fabs(y), a.like(0.5, y))
    k = a.select(small, a.like(0.0, k), k)
    k_bits = a.select(small, a.like(0, k_bits), k_bits)
    high, low = reduced(a, y, k)
    r = a.fadd(high, low)
    p = a.fadd(high, a.muladd(a.fmul(r, r), horner(a, r, EXPM1[x.ty]), low))
    s = power_of_two(a, k_bits, x.ty, -1)
    half = a.like(0.5, x)
    usual = a.muladd(p, s, a.fsub(s, half))
    # s - 1/2 is not exact for a large s; then 1/2 is so small that it may go into the other term
    large = a.fadd(a.fsub(a.fmul(p, s), half) if not a.has_fma else a.fma(p, s, a.like(-0.5, x)), s)
    result = a.select(a.fcmp("ogt", k, a.like(form.mantissa_bits - 3, k)), large, usual)
    return a.copysign(a.fmul(result, a.like(2.0, x)), x)


def exp_of_negative(a: Assembler, x: V) -> V:
    """e^x for x <= 0 that is no smaller than the clamp of exp."""
    return exp(a, x)


def sigmoid(a: Assembler, /, *operands: V) -> V:
    """1 / (1 + e^-x), as e^x / (1 + e^x) for a negative x: so small results keep their digits."""
    x = operands[0]
    e = exp(a, a.fneg(a.fabs(x)))
    one = a.like(1.0, x)
    numerator = a.select(a.fcmp("olt", x, a.like(0.0, x)), e, one)
    return a.fdiv(numerator, a.fadd(one, e))


def exp_moderate(a: Assembler, x: V) -> V:
    """e^x where k is a normal exponent, about 1 ulp: for use where the result's error counts little."""
    k, k_bits = rounded(a, x, LOG2_E)
    high, low = reduced(a, x, k)
    r = a.fadd(high, low)
    p = a.fadd(a.muladd(a.fmul(r, r), horner(a, r, EXP[x.ty]), r), a.like(1.0, x))
    return a.fmul(p, power_of_two(a, k_bits, x.ty))


def tanh(a: Assembler, /, *operands: V) -> V:
    """A polynomial below 1, above it 1 - 2 / (e^(2 |x|) + 1)"""
    x = operands[0]
    y = a.fabs(x)
    z = a.fmul(x, x)
    near = a.muladd(a.fmul(x, z), horner(a, z, TANH[x.ty]), x)
    limit = a.like(TANH_LIMIT[x.ty], x)
    y_clamped = a.select(a.fcmp("ogt", y, limit), limit, y)
    e = exp_moderate(a, a.fadd(y_clamped, y_clamped))
    one = a.like(1.0, x)
    far = a.copysign(a.fsub(one, a.fdiv(a.like(2.0, x), a.fadd(e, one))), x)
    # NaN goes the far way, which keeps it; near would too
    return a.copysign(a.select(a.fcmp("olt", y, one), near, far), x)
