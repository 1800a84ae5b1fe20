"""log and its kin: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log x = k ln 2 + log(1 + f).

The exponent is had by subtracting the bits of sqrt(1/2) from those of x as integers, so that k is what stands above the
mantissa and no comparison is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import LOG
from jitgraph.codegen.vecmath.function import FORMATS, INF, LN2_PARTS, NAN, horner

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

ROOT_HALF_BITS: Final = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCC}
# 1 / m on [sqrt(1/2), sqrt(2)] by the best straight line, as A - B (m - 1): 6 % off
RECIPROCAL_A: Final = (24 * 2**0.5 - 16) / 17
RECIPROCAL_B: Final = 16 / 17


def split(a: Assembler, x: V) -> tuple[V, V]:
    """k as an integer and 1 + f, for a positive normal x."""
    form = FORMATS[x.ty]
    bits = a.bitcast(x, form.int_ty)
    root = a.like(ROOT_HALF_BITS[x.ty], bits)
    above = a.sub(bits, root)
    k = a.ashr(above, a.like(form.mantissa_bits, bits))
    fraction = a.and_(above, a.like((1 << form.mantissa_bits) - 1, bits))
    return k, a.bitcast(a.add(fraction, root), x.ty)


def log_of_parts(a: Assembler, k: V, f: V, correction: V | None = None) -> V:
    """k ln 2 + log(1 + f) + correction, k as a float."""
    first, second = LN2_PARTS[f.ty]
    low = a.fmul(k, a.like(second, k)) if correction is None else a.muladd(k, a.like(second, k), correction)
    half_square = a.fmul(a.fmul(f, a.like(0.5, f)), f)
    if f.ty == "float":
        tail = a.muladd(a.fmul(a.fmul(f, f), f), horner(a, f, LOG["float"]), low)
    else:
        s = a.fdiv(f, a.fadd(f, a.like(2.0, f)))
        z = a.fmul(s, s)
        series = a.muladd(z, horner(a, z, LOG["double"]), half_square)
        tail = a.muladd(s, series, low)
    return a.muladd(k, a.like(first, k), a.fadd(f, a.fsub(tail, half_square)))


def with_specials(a: Assembler, x: V, result: V, pole: float) -> V:
    """NaN below the pole, -inf at it, and +inf and NaN as they are."""
    result = a.select(a.fcmp("olt", x, a.like(INF, x)), result, x)
    below = a.select(a.fcmp("oeq", x, a.like(pole, x)), a.like(-INF, x), a.like(NAN, x))
    return a.select(a.fcmp("ugt", x, a.like(pole, x)), result, below)


def normalised(a: Assembler, x: V) -> tuple[V, V]:
    """x scaled up if it is subnormal, and the exponent this takes from it, as an integer."""
    form = FORMATS[x.ty]
    shift = form.mantissa_bits + 1
    small = a.fcmp("olt", x, a.like(form.smallest_normal, x))
    y = a.select(small, a.fmul(x, a.like(2.0**shift, x)), x)
    zero = a.const(0, form.int_ty, x.lanes)
    return y, a.select(small, a.like(-shift, zero), zero)


def log(a: Assembler, /, *operands: V) -> V:
    """The natural logarithm"""
    x = operands[0]
    y, adjust = normalised(a, x)
    k, m = split(a, y)
    k_float = a.sitofp(a.add(k, adjust), x.ty)
    return with_specials(a, x, log_of_parts(a, k_float, a.fsub(m, a.like(1.0, x))), 0.0)


def log1p(a: Assembler, /, *operands: V) -> V:
    """log(1 + x); k is that of the rounded 1 + x, but f is made from x itself, and what rounding f loses is added back."""
    x = operands[0]
    form = FORMATS[x.ty]
    one = a.like(1.0, x)
    k, _ = split(a, a.fadd(x, one))
    # 2^-k, by way of 2^(2 - k), which is normal for the largest k too
    exponent = a.sub(a.const((form.bias + 2) << form.mantissa_bits, k.ty), a.shl(k, a.like(form.mantissa_bits, k)))
    scale = a.fmul(a.bitcast(exponent, x.ty), a.like(0.25, x))
    offset = a.fsub(scale, one)
    f = a.muladd(x, scale, offset)
    lost = a.muladd(x, scale, a.fsub(offset, f)) if a.has_fma else a.fadd(a.fmul(x, scale), a.fsub(offset, f))
    correction = a.fmul(lost, a.muladd(f, a.like(-RECIPROCAL_B, f), a.like(RECIPROCAL_A, f)))
    result = log_of_parts(a, a.sitofp(k, x.ty), f, correction)
    return a.copysign(with_specials(a, x, result, -1.0), x)


