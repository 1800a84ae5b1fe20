"""log and its kin: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log x = k ln 2 + log(1 + f).

The exponent is had by subtracting the bits of sqrt(1/2) from those of x as integers, so that k is what stands above the
mantissa and no comparison is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import LOG
from jitgraph.codegen.vecmath.function import FORMATS, INF, LN2_PARTS, NAN, avx512, horner
from jitgraph.records import dataclass

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

ROOT_HALF: Final = {"float": float.fromhex("0x1.6a09e6p-1"), "double": float.fromhex("0x1.6a09e667f3bccp-1")}
ROOT_HALF_BITS: Final = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCC}
# for vfixupimm, four bits a class of operand, from below: quiet NaN, signalling NaN, 0, 1, -inf, +inf, negative,
# positive; 2 is that NaN, 4 -inf, 3 a NaN, 5 +inf, 0 the result as it is
FIXUP_TABLE: Final = 0x03530422
# 1 / m on [sqrt(1/2), sqrt(2)] by the best straight line, as A - B (m - 1): 6 % off
RECIPROCAL_A: Final = (24 * 2**0.5 - 16) / 17
RECIPROCAL_B: Final = 16 / 17


@dataclass(frozen=True, slots=True)
class Scale:
    """A constant c in pieces: for logarithms to another base than e.

    Attributes:
        factor: c, and factor_low what rounding it loses.
        short: c to half the digits, and short_low the rest.
        cut_bits: how many low bits of f to clear, so that what is left times `short` is exact.
        ln2: c ln 2, so short that its product with an exponent is exact, and ln2_low the rest.
    """

    factor: float
    factor_low: float
    short: float
    short_low: float
    cut_bits: int
    ln2: float
    ln2_low: float


_h = float.fromhex
BASE_2: Final = {
    "float": Scale(_h("0x1.715476p+0"), _h("0x1.4ae0c0p-26"), _h("0x1.714p+0"), _h("0x1.47652cp-12"), 12, 1.0, 0.0),
    "double": Scale(
        _h("0x1.71547652b82fep+0"), _h("0x1.777d0ffda0d24p-56"),
        _h("0x1.715476p+0"), _h("0x1.4ae0bf85ddf44p-26"), 27, 1.0, 0.0,
    ),
}  # fmt: skip
BASE_10: Final = {
    "float": Scale(
        _h("0x1.bcb7b2p-2"), _h("-0x1.5b235ep-27"), _h("0x1.bcap-2"), _h("0x1.7b1526p-14"), 12,
        _h("0x1.344p-2"), _h("0x1.3509f8p-18"),
    ),
    "double": Scale(
        _h("0x1.bcb7b1526e50ep-2"), _h("0x1.95355baaafad3p-57"), _h("0x1.bcb7b1p-2"), _h("0x1.49b9438ca9aaep-28"), 27,
        _h("0x1.34413509f78p-2"), _h("0x1.fef311f12b358p-46"),
    ),
}  # fmt: skip


def split(a: Assembler, x: V) -> tuple[V, V]:
    """k as an integer and 1 + f, for a positive normal x."""
    form = FORMATS[x.ty]
    bits = a.bitcast(x, form.int_ty)
    root = a.like(ROOT_HALF_BITS[x.ty], bits)
    above = a.sub(bits, root)
    k = a.ashr(above, a.like(form.mantissa_bits, bits))
    fraction = a.and_(above, a.like((1 << form.mantissa_bits) - 1, bits))
    return k, a.bitcast(a.add(fraction, root), x.ty)


def series_of_log(a: Assembler, f: V, half_square: V, low: V | None = None) -> V:
    """log(1 + f) - f + f^2/2, plus `low`, for 1 + f in [sqrt(1/2), sqrt(2)]"""
    if f.ty == "float":
        factor, series = a.fmul(a.fmul(f, f), f), horner(a, f, LOG["float"])
    else:
        factor = a.fdiv(f, a.fadd(f, a.like(2.0, f)))
        z = a.fmul(factor, factor)
        series = a.muladd(z, horner(a, z, LOG["double"]), half_square)
    return a.fmul(factor, series) if low is None else a.muladd(factor, series, low)


def log_of_parts(a: Assembler, k: V, f: V, correction: V | None = None) -> V:
    """k ln 2 + log(1 + f) + correction, k as a float."""
    first, second = LN2_PARTS[f.ty]
    low = a.fmul(k, a.like(second, k)) if correction is None else a.muladd(k, a.like(second, k), correction)
    half_square = a.fmul(a.fmul(f, a.like(0.5, f)), f)
    rest = a.fsub(series_of_log(a, f, half_square, low), half_square)
    return a.muladd(k, a.like(first, k), a.fadd(f, rest))


def scaled_log_of_parts(a: Assembler, k: V, f: V, scale: Scale) -> V:
    """(k ln 2 + log(1 + f)) times a constant: f - f^2/2 times the constant is kept as a sum of two numbers."""
    half = a.fmul(f, a.like(0.5, f))
    half_square = a.fmul(half, f)
    main = a.fsub(f, half_square)
    low = a.fsub(a.fsub(f, main), half_square)
    if a.has_fma:
        low = a.fsub(low, a.fma(half, f, a.fneg(half_square)))
        product = a.fmul(main, a.like(scale.factor, f))
        lost = a.fma(main, a.like(scale.factor, f), a.fneg(product))
        lost = a.fma(main, a.like(scale.factor_low, f), lost)
    else:
        # the upper half of the bits times a factor as short is exact
        bits = a.bitcast(main, FORMATS[f.ty].int_ty)
        upper = a.bitcast(a.and_(bits, a.like(-(1 << scale.cut_bits), bits)), f.ty)
        product = a.fmul(upper, a.like(scale.short, f))
        lost = a.fmul(a.fsub(main, upper), a.like(scale.short, f))
        lost = a.fadd(lost, a.fmul(main, a.like(scale.short_low, f)))
    tail = a.muladd(series_of_log(a, f, half_square, low), a.like(scale.factor, f), lost)
    whole = a.fmul(k, a.like(scale.ln2, k))
    if scale.ln2_low:
        tail = a.muladd(k, a.like(scale.ln2_low, k), tail)
    total = a.fadd(whole, product)
    return a.fadd(total, a.fadd(a.fadd(a.fsub(whole, total), product), tail))


def with_specials(a: Assembler, x: V, result: V) -> V:
    """The logarithm of a number below 0 is NaN, that of 0 -inf, +inf and NaN stay as they are."""
    if a.has_avx512 and x.lanes > 1:
        table = a.const(FIXUP_TABLE, FORMATS[x.ty].int_ty, x.lanes)
        return avx512(a, "fixupimm", result, x, table, selector=0)
    zero = a.like(0.0, x)
    result = a.select(a.fcmp("olt", x, a.like(INF, x)), result, x)
    below = a.select(a.fcmp("oeq", x, zero), a.like(-INF, x), a.like(NAN, x))
    return a.select(a.fcmp("ugt", x, zero), result, below)


def normalised(a: Assembler, x: V) -> tuple[V, V]:
    """x scaled up if it is subnormal, and the exponent this takes from it, as an integer."""
    form = FORMATS[x.ty]
    shift = form.mantissa_bits + 1
    small = a.fcmp("olt", x, a.like(form.smallest_normal, x))
    y = a.select(small, a.fmul(x, a.like(2.0**shift, x)), x)
    zero = a.const(0, form.int_ty, x.lanes)
    return y, a.select(small, a.like(-shift, zero), zero)


def exponent_and_fraction(a: Assembler, x: V) -> tuple[V, V]:
    """k as a float, and f, for any positive x."""
    if a.has_avx512 and x.lanes > 1:
        m, k, one = avx512(a, "getmant", x, selector=0), avx512(a, "getexp", x), a.like(1.0, x)
        upper = a.fcmp("oge", m, a.like(2 * ROOT_HALF[x.ty], x))
        m, k = a.select(upper, a.fmul(m, a.like(0.5, x)), m), a.select(upper, a.fadd(k, one), k)
        return k, a.fsub(m, one)
    y, adjust = normalised(a, x)
    k, m = split(a, y)
    return a.sitofp(a.add(k, adjust), x.ty), a.fsub(m, a.like(1.0, x))


def log(a: Assembler, /, *operands: V) -> V:
    """The natural logarithm"""
    x = operands[0]
    return with_specials(a, x, log_of_parts(a, *exponent_and_fraction(a, x)))


def log2(a: Assembler, /, *operands: V) -> V:
    """The logarithm to the base 2, exact for powers of 2"""
    x = operands[0]
    return with_specials(a, x, scaled_log_of_parts(a, *exponent_and_fraction(a, x), BASE_2[x.ty]))


def log10(a: Assembler, /, *operands: V) -> V:
    """The logarithm to the base 10, exact for powers of 10"""
    x = operands[0]
    return with_specials(a, x, scaled_log_of_parts(a, *exponent_and_fraction(a, x), BASE_10[x.ty]))


def log1p_of_sum(a: Assembler, x: V, low: V | None = None, doubled: V | None = None) -> V:
    """log(1 + x + low) for x > -1, low at most an ulp of x; and ln 2 more where `doubled` is set.

    k is that of the rounded 1 + x, but f is made from x itself, and what rounding f loses is added back.
    """
    form = FORMATS[x.ty]
    one = a.like(1.0, x)
    k, _ = split(a, a.fadd(x, one))
    # 2^-k, by way of 2^(2 - k), which is normal for the largest k too
    exponent = a.sub(a.const((form.bias + 2) << form.mantissa_bits, k.ty), a.shl(k, a.like(form.mantissa_bits, k)))
    scale = a.fmul(a.bitcast(exponent, x.ty), a.like(0.25, x))
    offset = a.fsub(scale, one)
    f = a.muladd(x, scale, offset)
    lost = a.muladd(x, scale, a.fsub(offset, f)) if a.has_fma else a.fadd(a.fmul(x, scale), a.fsub(offset, f))
    if low is not None:
        lost = a.muladd(low, scale, lost)
    correction = a.fmul(lost, a.muladd(f, a.like(-RECIPROCAL_B, f), a.like(RECIPROCAL_A, f)))
    k_float = a.sitofp(k, x.ty)
    if doubled is not None:
        k_float = a.select(doubled, a.fadd(k_float, one), k_float)
    return log_of_parts(a, k_float, f, correction)


def log1p(a: Assembler, /, *operands: V) -> V:
    """log(1 + x)"""
    x = operands[0]
    return a.copysign(with_specials(a, a.fadd(x, a.like(1.0, x)), log1p_of_sum(a, x)), x)
