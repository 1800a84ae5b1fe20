"""sin, cos and tan. |x| = k pi/2 + r with |r| <= pi/4 and r = high + low; k modulo 4 says which polynomial, which sign.

pi/2 stands in three parts (four without FMA), which is enough up to LIMIT; lanes beyond go to the C library, behind a
branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import COS, SIN, TAN
from jitgraph.codegen.vecmath.function import horner, libm_where, rounded, sign_bits, sign_mask, with_sign

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

_h = float.fromhex
TWO_OVER_PI: Final = _h("0x1.45f306dc9c883p-1")
PI_HALVES: Final = {
    "float": (_h("0x1.921fb6p+0"), _h("-0x1.777a5cp-25"), _h("-0x1.ee59dap-50")),
    "double": (_h("0x1.921fb54442d18p+0"), _h("0x1.1a62633145c07p-54"), _h("-0x1.f1976b7ed8fbcp-110")),
}
# without FMA: three parts of 33 bits, whose products with k are exact, and what remains
PI_HALVES_SHORT: Final = (
    _h("0x1.921fb544p+0"),
    _h("0x1.0b4611a6p-34"),
    _h("0x1.3198a2ep-69"),
    _h("0x1.b839a252049c1p-104"),
)
LIMIT: Final = {"float": 39000.0, "double": 2.0**20}


def reduced(a: Assembler, x: V) -> tuple[V, V, V]:
    """k in an integer's low bits, and x - k pi/2 as high + low, for 0 <= x < LIMIT."""
    k, k_bits = rounded(a, x, TWO_OVER_PI)
    if a.has_fma:
        first, second, third = (a.like(-part, x) for part in PI_HALVES[x.ty])
        start = a.fma(k, first, x)
        # not in one step: where start and product cancel, their sum is exact, and so is the difference below
        high = a.fadd(start, a.fmul(k, second))
        low = a.fma(k, second, a.fsub(start, high))
        return k_bits, high, a.fma(k, third, low)
    if x.ty == "float":
        # the same in double precision: shorter than six parts of 9 bits
        wide_k = a.fpext(k, "double")
        first, second = (a.like(part, wide_k) for part in PI_HALVES_SHORT[:2])
        r = a.fsub(a.fsub(a.fpext(x, "double"), a.fmul(wide_k, first)), a.fmul(wide_k, second))
        high = a.fptrunc(r, "float")
        return k_bits, high, a.fptrunc(a.fsub(r, a.fpext(high, "double")), "float")
    first, second, third, rest = (a.like(part, x) for part in PI_HALVES_SHORT)
    start = a.fsub(x, a.fmul(k, first))
    product = a.fmul(k, second)
    middle = a.fsub(start, product)
    lost = a.fsub(a.fsub(start, middle), product)
    product = a.fmul(k, third)
    high = a.fsub(middle, product)
    low = a.fadd(a.fsub(a.fsub(middle, high), product), lost)
    low = a.fsub(low, a.fmul(k, rest))
    total = a.fadd(high, low)  # high may have cancelled nearly all of itself: then low is not small beside it
    return k_bits, total, a.fadd(a.fsub(high, total), low)


def sin_of_reduced(a: Assembler, r: V, low: V) -> V:
    """sin(r + low) for |r| <= pi/4"""
    z = a.fmul(r, r)
    return a.fadd(r, a.muladd(a.fmul(r, z), horner(a, z, SIN[r.ty]), low))


def cos_of_reduced(a: Assembler, r: V, low: V) -> V:
    """cos(r + low) = 1 - z/2 + (z^2 P(z) - r low), with the error of rounding 1 - z/2 put into the last term"""
    z = a.fmul(r, r)
    half, one = a.like(-0.5, z), a.like(1.0, z)
    start = a.muladd(z, half, one)
    lost = a.muladd(z, half, a.fsub(one, start))
    tail = a.muladd(a.fmul(z, z), horner(a, z, COS[r.ty]), a.muladd(a.fneg(r), low, lost))
    return a.fadd(start, tail)


def sin_or_cos(a: Assembler, x: V, quarter_turns: int) -> V:
    """sin(x + quarter_turns pi/2)"""
    y = a.fabs(x)
    k, r, low = reduced(a, y)
    if quarter_turns:
        k = a.add(k, a.like(quarter_turns, k))
    odd = a.icmp("ne", a.and_(k, a.like(1, k)), a.like(0, k))
    result = a.select(odd, cos_of_reduced(a, r, low), sin_of_reduced(a, r, low))
    top = int(k.ty[1:]) - 1
    negative = a.shl(k, a.like(top - 1, k))  # bit 1 of k to the sign's place
    if not quarter_turns:
        negative = a.xor(negative, a.bitcast(x, k.ty))  # sin is odd
    result = with_sign(a, result, a.and_(negative, sign_mask(a, k)))
    return libm_where(a, a.fcmp("ogt", y, a.like(LIMIT[x.ty], y)), result, "cos" if quarter_turns else "sin", x)


def sin(a: Assembler, /, *operands: V) -> V:
    """The sine"""
    return sin_or_cos(a, operands[0], 0)


def cos(a: Assembler, /, *operands: V) -> V:
    """The cosine"""
    return sin_or_cos(a, operands[0], 1)


def tan(a: Assembler, /, *operands: V) -> V:
    """The tangent w of r as two numbers; for an odd k -1/w, with a Newton step that also takes in w's second number."""
    x = operands[0]
    y = a.fabs(x)
    k, r, low = reduced(a, y)
    z = a.fmul(r, r)
    one = a.like(1.0, x)
    # what low, and the rounding of z where it shows, do to tan(r): d tan = (1 + tan^2) dr, tan^2 being about z + z^2
    slope = a.muladd(a.muladd(z, z, z), low, low)
    if a.has_fma:
        slope = a.fma(a.fmul(r, a.like(0.5, r)), a.fma(r, r, a.fneg(z)), slope)
    tail = a.muladd(r, a.fmul(z, horner(a, z, TAN[x.ty])), slope)
    w = a.fadd(r, tail)
    rest = a.fadd(a.fsub(r, w), tail)
    quotient = a.fdiv(a.like(-1.0, x), w)
    if a.has_fma:
        error = a.fma(quotient, rest, a.fma(quotient, w, one))
        quotient = a.fma(quotient, error, quotient)
    odd = a.icmp("ne", a.and_(k, a.like(1, k)), a.like(0, k))
    result = with_sign(a, a.select(odd, quotient, w), sign_bits(a, x))
    return libm_where(a, a.fcmp("ogt", y, a.like(LIMIT[x.ty], y)), result, "tan", x)
