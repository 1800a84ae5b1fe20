"""sinh, cosh, tanh and their inverses, from the reduction of exp and from log1p."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import COSH, SINH, TANH
from jitgraph.codegen.vecmath.exponential import LOG2_E, exp_moderate, reduced
from jitgraph.codegen.vecmath.function import FORMATS, INF, NAN, horner, power_of_two, rounded, signed
from jitgraph.codegen.vecmath.logarithm import log1p_of_sum

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
    high, low = reduced(a, y, k)
    r = a.fadd(high, low)
    low = a.fadd(a.fsub(high, r), low)
    z = a.fmul(r, r)
    sinh_rest = a.muladd(a.fmul(r, z), horner(a, z, SINH[x.ty]), low)
    cosh_rest = a.fmul(z, horner(a, z, COSH[x.ty]))
    form = FORMATS[x.ty]
    power = power_of_two(a, k_bits, x.ty, -2)
    k_int = signed(a, k_bits, x.ty)
    inverse_bits = a.shl(a.sub(a.like(form.bias - 2, k_int), k_int), a.like(form.mantissa_bits, k_int))
    inverse = a.bitcast(a.int_intrinsic("smax", inverse_bits, a.like(0, k_int)), x.ty)
    if odd:
        big, other = a.fsub(power, inverse), a.fadd(power, inverse)
        lost = a.fsub(a.fsub(power, big), inverse)
    else:
        big, other = a.fadd(power, inverse), a.fsub(power, inverse)
        lost = a.fadd(a.fsub(power, big), inverse)
    # big dominates other * r, or is 0
    if a.has_fma:
        total = a.fma(other, r, big)
        lost = a.fadd(lost, a.fma(other, r, a.fsub(big, total)))
    else:
        product = a.fmul(other, r)
        total = a.fadd(big, product)
        lost = a.fadd(lost, a.fadd(a.fsub(big, total), product))
    rest = a.muladd(other, sinh_rest, a.muladd(big, cosh_rest, lost))
    result = a.fmul(a.fadd(total, rest), a.like(2.0, x))
    if not odd:
        return result
    # halving C took a bit from subnormal results
    tiny = a.fcmp("olt", y, a.like(4 * form.smallest_normal, y))
    return a.copysign(a.select(tiny, y, result), x)


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


# above, x^2 + 1 is x^2, and log(2 x) is log(1 + x) + ln 2
DOUBLED: Final = {"float": 2.0**28, "double": 2.0**60}


def root_of_sum(a: Assembler, large: V, square: V, square_low: V) -> tuple[V, V]:
    """sqrt(large + square) as two numbers, FMA being there; `large` need not be the larger one."""
    total = a.fadd(large, square)
    part = a.fsub(total, large)
    total_low = a.fadd(a.fsub(large, a.fsub(total, part)), a.fsub(square, part))
    root = a.sqrt(total)
    remainder = a.fadd(a.fma(a.fneg(root), root, total), a.fadd(total_low, square_low))
    rest = a.fdiv(remainder, a.fadd(root, root))
    zero = a.like(0.0, root)
    return root, a.select(a.fcmp("oeq", root, zero), zero, rest)


def arcsinh(a: Assembler, /, *operands: V) -> V:
    """log(1 + w) for w = |x| + (sqrt(1 + x^2) - 1)"""
    x = operands[0]
    y = a.fabs(x)
    one = a.like(1.0, x)
    square = a.fmul(y, y)
    if a.has_fma:
        root, rest = root_of_sum(a, one, square, a.fma(y, y, a.fneg(square)))
        grown = a.fadd(a.fsub(root, one), rest)
    else:
        grown = a.fdiv(square, a.fadd(a.sqrt(a.fadd(square, one)), one))
    w = a.fadd(y, grown)
    low = a.fadd(a.fsub(y, w), grown)
    doubled = a.fcmp("ogt", y, a.like(DOUBLED[x.ty], y))
    w, low = a.select(doubled, y, w), a.select(doubled, a.like(0.0, y), low)
    result = log1p_of_sum(a, w, low, doubled)
    return a.copysign(a.select(a.fcmp("olt", y, a.like(INF, y)), result, y), x)


def arccosh(a: Assembler, /, *operands: V) -> V:
    """log(1 + w) for w = t + sqrt(2 t + t^2), t = x - 1"""
    x = operands[0]
    one = a.like(1.0, x)
    t = a.fsub(x, one)
    square = a.fmul(t, t)
    if a.has_fma:
        root, rest = root_of_sum(a, a.fadd(t, t), square, a.fma(t, t, a.fneg(square)))
        w = a.fadd(root, t)
        low = a.fadd(a.fadd(a.fsub(root, w), t), rest)
    else:
        root = a.sqrt(a.fadd(a.fadd(t, t), square))
        w = a.fadd(root, t)
        low = a.fadd(a.fsub(root, w), t)
    doubled = a.fcmp("ogt", x, a.like(DOUBLED[x.ty], x))
    w, low = a.select(doubled, x, w), a.select(doubled, a.like(0.0, x), low)
    result = log1p_of_sum(a, w, low, doubled)
    result = a.select(a.fcmp("olt", x, a.like(INF, x)), result, x)
    return a.select(a.fcmp("olt", x, one), a.like(NAN, x), result)


def arctanh(a: Assembler, /, *operands: V) -> V:
    """log(1 + q) / 2 for q = 2 |x| / (1 - |x|)"""
    x = operands[0]
    y = a.fabs(x)
    one = a.like(1.0, x)
    d = a.fsub(one, y)
    d_low = a.fsub(a.fsub(one, d), y)
    n = a.fadd(y, y)
    q = a.fdiv(n, d)
    remainder = a.fma(a.fneg(q), d, n) if a.has_fma else a.like(0.0, x)
    # 1 / (1 - y) = 1 + q/2
    low = a.fmul(a.fsub(remainder, a.fmul(q, d_low)), a.muladd(q, a.like(0.5, x), one))
    result = a.fmul(log1p_of_sum(a, q, low), a.like(0.5, x))
    edge = a.select(a.fcmp("oeq", y, one), a.like(INF, x), a.like(NAN, x))
    return a.copysign(a.select(a.fcmp("olt", y, one), result, edge), x)
