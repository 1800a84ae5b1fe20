"""sinh, cosh, tanh and their inverses, from the reduction of exp and from log1p."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import COSH, SINH, TANH
from jitgraph.codegen.vecmath.exponential import LOG2_E, exp_moderate, reduced
from jitgraph.codegen.vecmath.function import FORMATS, horner, power_of_two, rounded, signed

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

# a little above the largest operand with a finite result, so that k is still a normal exponent when halved twice
OVERFLOW: Final = {"float": 89.5, "double": 710.6}
TANH_LIMIT: Final = {"float": 10.0, "double": 20.0}  # above, the result rounds to 1


def clamped_above(a: Assembler, x: V, high: float) -> V:
    """x, at most `high`; NaN stays NaN."""
    return a.select(a.fcmp("ogt", x, a.like(high, x)), a.like(high, x), x)


def sinh_or_cosh(a: Assembler, x: V, *, odd: bool) -> V:
    """With |x| = k ln 2 + r, C = cosh(k ln 2) / 2 and S = sinh(k ln 2) / 2:
    sinh |x| = 2 (S cosh r + C sinh r), cosh |x| = 2 (C cosh r + S sinh r).

    The largest terms, S + C r or C + S r, are added with their rounding error kept. Halved, C does not overflow before
    the result does.
    """
    y = clamped_above(a, a.fabs(x), OVERFLOW[x.ty])
    k, k_bits = rounded(a, y, LOG2_E)
    r, low = reduced(a, y, k)
    z = a.fmul(r, r)
    sinh_rest = a.muladd(a.fmul(r, z), horner(a, z, SINH[x.ty]), low)
    cosh_rest = a.fmul(z, horner(a, z, COSH[x.ty]))
    form = FORMATS[x.ty]
    power = power_of_two(a, k_bits, x.ty, -2)
    k_int = signed(a, k_bits, x.ty)
    inverse_bits = a.shl(a.sub(a.like(form.bias - 2, k_int), k_int), a.like(form.mantissa_bits, k_int))
    inverse = a.bitcast(a.int_intrinsic("smax", inverse_bits, a.like(0, k_int)), x.ty)
    big, other = a.fadd(power, inverse), a.fsub(power, inverse)
    if odd:
        big, other = other, big
    # big dominates other * r, or is 0
    if a.has_fma:
        total = a.fma(other, r, big)
        lost = a.fma(other, r, a.fsub(big, total))
    else:
        product = a.fmul(other, r)
        total = a.fadd(big, product)
        lost = a.fadd(a.fsub(big, total), product)
    rest = a.muladd(other, sinh_rest, a.muladd(big, cosh_rest, lost))
    result = a.fmul(a.fadd(total, rest), a.like(2.0, x))
    return a.copysign(result, x) if odd else result


def sinh(a: Assembler, /, *operands: V) -> V:
    """The hyperbolic sine"""
    return sinh_or_cosh(a, operands[0], odd=True)


def cosh(a: Assembler, /, *operands: V) -> V:
    """The hyperbolic cosine"""
    return sinh_or_cosh(a, operands[0], odd=False)


def tanh(a: Assembler, /, *operands: V) -> V:
    """A polynomial below 1, above it 1 - 2 / (e^(2 |x|) + 1)"""
    x = operands[0]
    y = a.fabs(x)
    z = a.fmul(x, x)
    near = a.muladd(a.fmul(x, z), horner(a, z, TANH[x.ty]), x)
    held = clamped_above(a, y, TANH_LIMIT[x.ty])
    e = exp_moderate(a, a.fadd(held, held))
    one = a.like(1.0, x)
    far = a.fsub(one, a.fdiv(a.like(2.0, x), a.fadd(e, one)))
    return a.copysign(a.select(a.fcmp("olt", y, one), near, far), x)
