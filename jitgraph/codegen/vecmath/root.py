"""cbrt: |x| = 8^q a with a in [0.35, 2.83], 1 / cbrt(a) from a polynomial and one iteration, cbrt(a) from one more.

hypot: float by way of double; double scaled by a power of 2, squares and their sum in two parts, one step of Newton's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import CBRT
from jitgraph.codegen.vecmath.function import INF, horner, power_of_two, rounded
from jitgraph.codegen.vecmath.logarithm import exponent_and_fraction

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

CBRT_2: Final = 2.0 ** (1 / 3)


def cbrt(a: Assembler, /, *operands: V) -> V:
    """The cube root"""
    x = operands[0]
    y = a.fabs(x)
    k_float, f = exponent_and_fraction(a, y)
    m = a.fadd(f, a.like(1.0, x))
    q, q_bits = rounded(a, k_float, 1 / 3)
    # -1, 0 or 1: this power of 2 goes into a, its inverse cube root into the guess
    left = a.muladd(q, a.like(-3.0, x), k_float)
    zero, one = a.like(0.0, x), a.like(1.0, x)
    up, down = a.fcmp("ogt", left, zero), a.fcmp("olt", left, zero)
    number = a.fmul(m, a.select(up, a.like(2.0, x), a.select(down, a.like(0.5, x), one)))
    guess = a.fmul(
        horner(a, m, CBRT[x.ty]), a.select(up, a.like(1 / CBRT_2, x), a.select(down, a.like(CBRT_2, x), one))
    )
    # 1 - a r^3 = h, r (1 - h)^(-1/3) = r (1 + h/3 + 2 h^2/9 + ...)
    h = a.muladd(a.fmul(guess, a.fneg(number)), a.fmul(guess, guess), one)
    step = a.fmul(a.muladd(h, a.like(2 / 9, x), a.like(1 / 3, x)), h)
    r = a.muladd(guess, step, guess)
    square = a.fmul(r, r)
    root = a.fmul(number, square)
    # root - (root^3 - a) / (3 root^2), 1 / root^2 being r^2
    root_square = a.fmul(root, root)
    if a.has_fma:
        lost = a.fma(root, root, a.fneg(root_square))
        error = a.fma(lost, root, a.fma(root_square, root, a.fneg(number)))
    else:
        error = a.fsub(a.fmul(root_square, root), number)
    root = a.muladd(a.fmul(error, a.like(-1 / 3, x)), square, root)
    result = a.copysign(a.fmul(root, power_of_two(a, q_bits, x.ty)), x)
    usual = a.and_(a.fcmp("ogt", y, zero), a.fcmp("olt", y, a.like(INF, y)))
    return a.select(usual, result, x)


def hypot(a: Assembler, /, *operands: V) -> V:
    """sqrt(x^2 + y^2) without overflow on the way; infinite if either operand is, NaN or not."""
    x, y = a.fabs(operands[0]), a.fabs(operands[1])
    inf = a.like(INF, x)
    infinite = a.or_(a.fcmp("oeq", x, inf), a.fcmp("oeq", y, inf))
    if x.ty == "float":
        wide, other = a.fpext(x, "double"), a.fpext(y, "double")
        return a.select(infinite, inf, a.fptrunc(a.sqrt(a.fadd(a.fmul(wide, wide), a.fmul(other, other))), "float"))
    greater = a.fcmp("ogt", x, y)
    big, small = a.select(greater, x, y), a.select(greater, y, x)
    one = a.like(1.0, x)
    large, tiny = a.fcmp("ogt", big, a.like(2.0**500, x)), a.fcmp("olt", big, a.like(2.0**-400, x))
    down, up = a.like(2.0**-600, x), a.like(2.0**600, x)
    scale, back = a.select(large, down, a.select(tiny, up, one)), a.select(large, up, a.select(tiny, down, one))
    big, small = a.fmul(big, scale), a.fmul(small, scale)
    high, low = a.fmul(big, big), a.fmul(small, small)
    total = a.fadd(high, low)
    lost = a.fadd(a.fsub(high, total), low)
    lost = a.fadd(lost, a.fadd(_square_error(a, big, high), _square_error(a, small, low)))
    root = a.sqrt(total)
    square = a.fmul(root, root)
    rest = a.fadd(a.fsub(a.fsub(total, square), _square_error(a, root, square)), lost)
    step = a.fdiv(rest, a.fadd(root, root))
    usual = a.fcmp("ogt", root, a.like(0.0, x))
    found = a.fmul(a.select(usual, a.fadd(root, step), root), back)
    return a.select(infinite, inf, found)


def _square_error(a: Assembler, x: V, square: V) -> V:
    """x * x - square, exactly; without FMA by halves of x (Dekker 1971), for |x| in [2^-500, 2^500] or so."""
    if a.has_fma:
        return a.fma(x, x, a.fneg(square))
    split = a.fmul(x, a.like(2.0**27 + 1, x))
    high = a.fsub(split, a.fsub(split, x))
    low = a.fsub(x, high)
    cross = a.fmul(high, low)
    error = a.fadd(a.fsub(a.fmul(high, high), square), a.fadd(cross, cross))
    return a.fadd(error, a.fmul(low, low))
