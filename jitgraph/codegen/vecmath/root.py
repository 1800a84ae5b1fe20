"""cbrt: |x| = 8^q a with a in [0.35, 2.83], 1 / cbrt(a) from a polynomial and one iteration, cbrt(a) from one more."""

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
