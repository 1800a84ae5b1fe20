"""What a vector function is, and the pieces the recipes share: polynomials, rounding, scaling, scalar calls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from jitgraph.codegen.assembler import COLD, V
from jitgraph.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitgraph.codegen.assembler import Assembler


class Emitter(Protocol):
    """Appends a function's instructions and returns the result."""

    def __call__(self, a: Assembler, /, *x: V) -> V:
        """Operands are of one type, `float` or `double`, and equally wide; so is the result."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """A floating-point type in numbers."""

    ty: str
    int_ty: str
    mantissa_bits: int  # stored ones: 23, 52
    bias: int
    smallest_normal: float

    @property
    def magic(self) -> float:
        """Added to a moderate x, it leaves rint(x) in the sum's low bits; subtracted again it leaves rint(x)."""
        return 1.5 * 2.0**self.mantissa_bits

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`: what `rounded` gives for 0."""
        return ((self.bias + self.mantissa_bits) << self.mantissa_bits) + (1 << (self.mantissa_bits - 1))


FORMATS: Final[Mapping[str, Format]] = {
    "float": Format("float", "i32", 23, 127, 2.0**-126),
    "double": Format("double", "i64", 52, 1023, 2.0**-1022),
}
# ln 2 in two parts; the first is so short that its product with any exponent is exact, with FMA or without
LN2_PARTS: Final[Mapping[str, tuple[float, float]]] = {
    "float": (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
    "double": (float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")),
}


@dataclass(frozen=True, slots=True)
class VectorFunction:
    """An elementwise function as vector code.

    Attributes:
        name: as in NumPy.
        arity: number of operands.
        doc: what it computes, and where its recipe differs between the types.
        source: where the algorithm comes from.
        ulp: largest distance from the true value for `float` and `double`, in units in the last place, on targets with
            FMA. Without FMA it is at most 2 wherever this is less.
        emitter: writes the instructions.
        vectorised: False if it calls the C library lane by lane.
    """

    name: str
    arity: int
    doc: str
    source: str
    ulp: Mapping[str, float]
    emitter: Emitter
    vectorised: bool = True

    def emit(self, a: Assembler, *x: V) -> V:
        """Append the instructions for operands of any width; a scalar one is splatted to the others' width.

        The code may branch, so what follows it can be in another block than what went before: phis take `a.block`
        afterwards. `half` is computed in `float` and rounded once more.
        """
        if len(x) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} operands, not {len(x)}")
        lanes = max(value.lanes for value in x)
        ty = x[0].ty
        if ty == "half":
            return a.float_to_half(self.emit(a, *(a.half_to_float(value) for value in x)))
        if ty not in FORMATS or any(value.ty != ty for value in x):
            raise TypeError(f"{self.name} takes float or double operands of one type, not {[v.type for v in x]}")
        with a.strict():  # compensated arithmetic is all about what fast-math flags would drop
            return self.emitter(a, *(a.splat(value, lanes) for value in x))


def horner(a: Assembler, x: V, coefficients: Sequence[float]) -> V:
    """The polynomial with these coefficients, lowest degree first."""
    total = a.like(coefficients[-1], x)
    for c in coefficients[-2::-1]:
        total = a.muladd(total, x, a.like(c, x))
    return total


def rounded(a: Assembler, x: V, factor: float) -> tuple[V, V]:
    """rint(x * factor) twice: as a float, and as the integer's low bits under some constant high ones."""
    magic = a.like(FORMATS[x.ty].magic, x)
    shifted = a.muladd(x, a.like(factor, x), magic)
    return a.fsub(shifted, magic), a.bitcast(shifted, FORMATS[x.ty].int_ty)


def power_of_two(a: Assembler, k: V, ty: str, offset: int = 0) -> V:
    """2^(k + offset) for an integer k, of which only the low bits matter; the result is normal."""
    form = FORMATS[ty]
    exponent = a.shl(k, a.like(form.mantissa_bits, k))
    return a.bitcast(a.add(exponent, a.like((form.bias + offset) << form.mantissa_bits, k)), ty)


def power_of_two_at_least(a: Assembler, k_bits: V, ty: str) -> V:
    """2^k, or 0 where that is not normal; k is what `rounded` gives, and not above the exponents."""
    form = FORMATS[ty]
    exponent = a.add(a.shl(k_bits, a.like(form.mantissa_bits, k_bits)), a.like(form.bias << form.mantissa_bits, k_bits))
    return a.bitcast(a.int_intrinsic("smax", exponent, a.like(0, k_bits)), ty)


def scaled(a: Assembler, x: V, k_float: V, k_bits: V) -> V:
    """x * 2^k with one rounding, for x near 1 and k from twice below to just above the normal exponents.

    AVX-512 has an instruction. Otherwise two factors of half the exponent each: the first product is exact, and the
    second overflows, or rounds to a subnormal, as it should.
    """
    if a.has_avx512 and x.lanes > 1:
        return avx512(a, "scalef", x, k_float)
    k = signed(a, k_bits, x.ty)
    half = a.ashr(k, a.like(1, k))
    return a.fmul(a.fmul(x, power_of_two(a, half, x.ty)), power_of_two(a, a.sub(k, half), x.ty))


def avx512(a: Assembler, name: str, *x: V, selector: int | None = None) -> V:
    """An AVX-512 arithmetic instruction in its unmasked form, at any width: pieces of 128, 256 or 512 bits.

    LLVM's intrinsics take the operands, a constant selector if the instruction has one, what masked lanes keep, the
    mask, and how to round.
    """
    ty, lanes = x[0].ty, x[0].lanes
    bits = lanes * (32 if ty == "float" else 64)
    if bits > 512:
        half = lanes // 2
        low = avx512(a, name, *[a.slice_lanes(value, 0, half) for value in x], selector=selector)
        return a.concat(low, avx512(a, name, *[a.slice_lanes(value, half, half) for value in x], selector=selector))
    if bits < 128:
        return a.slice_lanes(avx512(a, name, *[a.concat(value, value) for value in x], selector=selector), 0, lanes)
    operands = [*x]
    if selector is not None:
        operands.append(a.const(selector, "i32"))
    if name != "fixupimm":  # which keeps its first operand
        operands.append(x[0])
    operands.append(a.const(-1, f"i{max(8, lanes)}"))
    if bits == 512:
        operands.append(a.const(4, "i32"))  # as the control register says
    return a.call(f"llvm.x86.avx512.mask.{name}.{'ps' if ty == 'float' else 'pd'}.{bits}", ty, operands, lanes=lanes)


def signed(a: Assembler, k_bits: V, ty: str) -> V:
    """The integer of `rounded` without the magic number's bits above it."""
    return a.sub(k_bits, a.like(FORMATS[ty].magic_bits, k_bits))


def sign_bits(a: Assembler, x: V) -> V:
    """The sign bit of x, as an integer with nothing else set."""
    form = FORMATS[x.ty]
    bits = a.bitcast(x, form.int_ty)
    return a.and_(bits, sign_mask(a, bits))


def sign_mask(a: Assembler, bits: V) -> V:
    """The integer with only the top bit set, like `bits`."""
    return a.like(-(1 << (int(bits.ty[1:]) - 1)), bits)


def with_sign(a: Assembler, x: V, signs: V) -> V:
    """x with its sign flipped where `signs` (sign bits) says so."""
    return a.bitcast(a.xor(a.bitcast(x, signs.ty), signs), x.ty)


def libm_name(name: str, ty: str) -> str:
    """C's name: `sinf` for float."""
    return f"{name}f" if ty == "float" else name


def libm_lanes(a: Assembler, name: str, *x: V) -> V:
    """C's function lane by lane."""
    symbol, ty, lanes = libm_name(name, x[0].ty), x[0].ty, x[0].lanes
    if lanes == 1:
        return a.library_call(symbol, ty, x)
    result = a.poison(ty, lanes)
    for lane in range(lanes):
        result = a.insert(result, a.library_call(symbol, ty, [a.extract(value, lane) for value in x]), lane)
    return result


def libm_where(a: Assembler, mask: V, usual: V, name: str, *x: V) -> V:
    """`usual`, but C's function where the mask is set, behind a branch that is hardly ever taken.

    The loop visits only the lanes that need it. It ends the current block.
    """
    cold, loop, done = a.fresh_label(f"{name}.cold"), a.fresh_label(f"{name}.lane"), a.fresh_label(f"{name}.done")
    before = a.block
    a.condbr(a.any_lane(mask), cold, done, weights=COLD)
    a.label(cold)
    if usual.lanes == 1:
        replaced = libm_in_double(a, name, *x)
    else:
        count = max(32, usual.lanes)
        todo = a.zext(a.lane_bits(mask), f"i{count}")
        a.label(loop)
        left = a.phi([(todo, cold)])
        result = a.phi([(usual, cold)])
        lane = a.int_intrinsic("cttz", left, flag=True)
        value = libm_in_double(a, name, *[a.extract(operand, lane) for operand in x])
        replaced = a.insert(result, value, lane)
        rest = a.and_(left, a.add(left, a.like(-1, left)))
        a.add_incoming(left, rest, a.block)
        a.add_incoming(result, replaced, a.block)
        a.condbr(a.icmp("eq", rest, a.like(0, rest)), done, loop)
    after = a.block
    a.label(done)
    return a.phi([(usual, before), (replaced, after)])


def libm_in_double(a: Assembler, name: str, *x: V) -> V:
    """C's function of scalars; of floats in double, which rounds better than C's function of floats."""
    ty = x[0].ty
    return a.fptrunc(a.library_call(name, "double", [a.fpext(value, "double") for value in x]), ty)


NAN: Final = math.nan
INF: Final = math.inf
