"""arcsin, arccos, arctan, arctan2: an odd polynomial, and an identity that brings large operands into its interval.

The identities divide or take a root; what that rounds off is computed and added at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import ASIN, ATAN
from jitgraph.codegen.vecmath.function import FORMATS, INF, horner, sign_bits

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

_h = float.fromhex
PI_HALF: Final = {
    "float": (_h("0x1.921fb6p+0"), _h("-0x1.777a5cp-25")),
    "double": (_h("0x1.921fb54442d18p+0"), _h("0x1.1a62633145c07p-54")),
}
# quotients of numbers below the first are had from numbers larger by the second: the remainder is normal then
SMALL_DIVISOR: Final = {"float": (2.0**-32, 2.0**64), "double": (2.0**-400, 2.0**500)}


def root_with_rest(a: Assembler, z: V, root: V) -> tuple[V, V]:
    """sqrt(z), which is `root`, as two numbers; the second is 0 for z = 0."""
    if a.has_fma:
        high, twice = root, a.fadd(root, root)
        remainder = a.fma(a.fneg(root), root, z)
    else:
        form = FORMATS[z.ty]
        bits = a.bitcast(root, form.int_ty)
        cut = (form.mantissa_bits + 3) // 2
        high = a.bitcast(a.and_(bits, a.like(-(1 << cut), bits)), z.ty)  # so short that its square is exact
        remainder, twice = a.fsub(z, a.fmul(high, high)), a.fadd(root, high)
    rest = a.fdiv(remainder, twice)
    zero = a.like(0.0, z)
    return high, a.select(a.fcmp("oeq", z, zero), zero, rest)


def arcsin_parts(a: Assembler, x: V) -> tuple[V, V, V, V]:
    """Whether |x| > 1/2; then s, its rest and arcsin(s) - s for s = |x|, or for s = sqrt((1 - |x|) / 2) where it is."""
    y = a.fabs(x)
    half, zero = a.like(0.5, x), a.like(0.0, x)
    large = a.fcmp("ogt", y, half)
    folded = a.muladd(y, a.like(-0.5, x), half)  # exact
    z = a.select(large, folded, a.fmul(y, y))
    root = a.sqrt(folded)
    s = a.select(large, root, y)
    tail = a.fmul(a.fmul(s, z), horner(a, z, ASIN[x.ty]))
    root_high, rest = root_with_rest(a, folded, root)
    return large, a.select(large, root_high, y), a.select(large, rest, zero), tail


def arcsin(a: Assembler, /, *operands: V) -> V:
    """Above 1/2, pi/2 - 2 asin s for s = sqrt((1 - x) / 2)"""
    x = operands[0]
    large, s, rest, tail = arcsin_parts(a, x)
    high, low = (a.like(part, x) for part in PI_HALF[x.ty])
    two = a.like(2.0, x)
    twice = a.fmul(s, two)
    total = a.fsub(high, twice)
    lost = a.fsub(a.fsub(high, total), twice)
    small_terms = a.fmul(a.fadd(tail, rest), two)
    folded = a.fadd(total, a.fadd(a.fsub(lost, small_terms), low))
    return a.copysign(a.select(large, folded, a.fadd(s, tail)), x)


def arccos(a: Assembler, /, *operands: V) -> V:
    """2 arcsin(sqrt((1 - |x|) / 2)), from pi for a negative x; pi/2 - arcsin(x) up to 1/2"""
    x = operands[0]
    large, s, rest, tail = arcsin_parts(a, x)
    negative = a.fcmp("olt", x, a.like(0.0, x))
    high, low = PI_HALF[x.ty]
    zero, one = a.like(0.0, x), a.like(1.0, x)
    # base + sign * factor * (s + rest + tail): base 0, pi/2 or pi
    far = a.select(negative, a.like(2 * high, x), zero)
    far_low = a.select(negative, a.like(2 * low, x), zero)
    base = a.select(large, far, a.like(high, x))
    base_low = a.select(large, far_low, a.like(low, x))
    factor = a.select(large, a.like(2.0, x), one)
    # the sign is that of x if large, else its opposite: pi/2 - arcsin(x), but 2 arcsin(...) is taken from pi for x < 0
    down = a.xor(a.xor(negative, large), a.like(1, negative))
    down = a.select(large, negative, down)
    factor = a.select(down, a.fneg(factor), factor)
    first = a.fmul(s, factor)
    total = a.fadd(base, first)
    lost = a.fadd(a.fsub(base, total), first)
    lost = a.select(a.fcmp("oeq", base, zero), zero, lost)
    return a.fadd(total, a.fadd(a.muladd(a.fadd(tail, rest), factor, lost), base_low))


def arctan_of_quotient(a: Assembler, t: V, rest: V | None, base: V, base_low: V) -> V:
    """base + arctan(t + rest) for |t| <= 1; the rest comes with FMA only."""
    z = a.fmul(t, t)
    one = a.like(1.0, t)
    low = base_low
    if rest is not None:
        # to arctan(t) a change of t counts 1 / (1 + z), roughly 1 - z/2
        low = a.fma(rest, a.fma(z, a.like(-0.5, z), one), low)
        # and what z loses counts -t/6, roughly
        low = a.fma(a.fmul(t, a.like(-0.17, t)), a.fma(t, t, a.fneg(z)), low)
    tail = a.muladd(a.fmul(t, z), horner(a, z, ATAN[t.ty]), low)
    total = a.fadd(base, t)
    lost = a.fadd(a.fsub(base, total), t)
    return a.fadd(total, a.fadd(lost, tail))


def arctan(a: Assembler, /, *operands: V) -> V:
    """Above 1, pi/2 + atan(-1/|x|)"""
    x = operands[0]
    largest = a.like(2.0 ** (100 if x.ty == "float" else 1000), x)  # beyond, arctan rounds to pi/2
    y = a.fabs(x)
    y = a.select(a.fcmp("ogt", y, largest), largest, y)
    one, zero = a.like(1.0, x), a.like(0.0, x)
    large = a.fcmp("ogt", y, one)
    n, d = a.select(large, a.like(-1.0, x), y), a.select(large, y, one)
    high, low = (a.like(part, x) for part in PI_HALF[x.ty])
    base, base_low = a.select(large, high, zero), a.select(large, low, zero)
    t = a.fdiv(n, d)
    # t is exact for d = 1, and 1 / d = -t for n = -1
    rest = a.fmul(a.fma(t, d, a.fneg(n)), t) if a.has_fma else None
    return a.copysign(arctan_of_quotient(a, t, rest, base, base_low), x)


def arctan2(a: Assembler, /, *operands: V) -> V:
    """The angle of the point (x, y), operands in the order y, x; signs of zeros and infinities as in C's Annex F"""
    y, x = operands
    up, right = a.fabs(y), a.fabs(x)
    zero, one, infinity = a.like(0.0, x), a.like(1.0, x), a.like(INF, x)
    signs = sign_bits(a, x)
    negative = a.icmp("ne", signs, a.like(0, signs))
    steep = a.fcmp("ogt", up, right)
    n, d = a.select(steep, right, up), a.select(steep, up, right)
    # inf / inf is the diagonal, 0 / 0 the axis
    diagonal = a.fcmp("oeq", n, infinity)
    n, d = a.select(diagonal, one, n), a.select(diagonal, one, d)
    d = a.select(a.fcmp("oeq", d, zero), one, d)
    # steep turns the angle into pi/2 - it, a negative x into pi - it: together pi/2 + it
    n = a.select(a.xor(steep, negative), a.fneg(n), n)
    high, low = PI_HALF[x.ty]
    base = a.select(negative, a.like(2 * high, x), zero)
    base_low = a.select(negative, a.like(2 * low, x), zero)
    base = a.select(steep, a.like(high, x), base)
    base_low = a.select(steep, a.like(low, x), base_low)
    # a NaN in x alone would be lost: the comparison with y is false then, and n is y
    n = a.select(a.isnan(x), x, n)
    t = a.fdiv(n, d)
    rest = quotient_rest(a, t, n, d) if a.has_fma else None
    return a.copysign(arctan_of_quotient(a, t, rest, base, base_low), y)


def quotient_rest(a: Assembler, t: V, n: V, d: V) -> V:
    """n / d - t, or 0 where t is so small that arctan(t) is t: there the remainder may be below the smallest number."""
    far, step = SMALL_DIVISOR[t.ty]
    small = a.fcmp("olt", d, a.like(far, d))
    grown = a.like(step, d)
    n, d = a.select(small, a.fmul(n, grown), n), a.select(small, a.fmul(d, grown), d)
    rest = a.fdiv(a.fma(a.fneg(t), d, n), d)
    matters = a.fcmp("ogt", a.fabs(t), a.like(2.0 ** (-27 if t.ty == "float" else -56), t))  # not so for an infinite d
    return a.select(matters, rest, a.like(0.0, t))
