r"""A text assembler for the body of one LLVM function: every method appends one instruction and returns its value.

It writes LLVM 22 assembly (opaque pointers) with f-strings, which is an order of magnitude faster than building
`llvmlite.ir` objects, and it needs no llvmlite at all. What it checks is what costs nothing to check: that operands
have one type. The rest is LLVM's verifier's work.

Values are `V(text, ty, lanes)`: `ty` is a scalar type, `lanes` how many of them, 1 meaning a scalar. An operand of one
lane that meets a wider one is splatted, so one emitter serves scalar code and every vector width.

    a = Assembler()
    x = a.load(V("%p", "ptr"), "double", lanes=8, align=8)
    a.store(a.fma(x, x, a.const(1.0, "double")), V("%q", "ptr"), align=8)
    a.ret()
    text = "\n".join([*a.declarations(), a.function("square_plus_one", "ptr %p, ptr %q")])

Names that start with `%v` and a digit, and labels that end in a dot and a number, belong to the assembler. A caller who
names parameters otherwise cannot clash with it.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

FLOAT_BITS: Final = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
COLD: Final = (1, 4000)  # branch weights: the first target is hardly ever taken
HOT: Final = (4000, 1)  # the second is
_SUFFIX: Final = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


def one_line(text: str) -> str:
    """A text for a comment: the name of a file may be of several lines."""
    return " ".join(text.splitlines())


class V(NamedTuple):
    """A value: an SSA name or a constant, as it stands in the text, with its type."""

    text: str
    ty: str
    lanes: int = 1

    @property
    def type(self) -> str:
        """The LLVM type, `double` or `<8 x double>`."""
        return self.ty if self.lanes == 1 else f"<{self.lanes} x {self.ty}>"

    @property
    def typed(self) -> str:
        """Type and value, as an operand of a call is written."""
        return f"{self.type} {self.text}"

    @property
    def is_constant(self) -> bool:
        """Whether the value is a literal, which dominates every block."""
        return self.text[0] != "%"


def llvm_type(ty: str, lanes: int = 1) -> str:
    """`double` for one lane, `<8 x double>` for eight."""
    return ty if lanes == 1 else f"<{lanes} x {ty}>"


def intrinsic_suffix(ty: str, lanes: int = 1) -> str:
    """The part of an overloaded intrinsic's name that stands for a type: `f64`, `v8f64`, `v4i32`, `p0`."""
    scalar = _SUFFIX.get(ty, ty)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def float_literal(value: float, ty: str) -> str:
    """The exact literal of `value` rounded to `ty`: infinities, NaNs and the sign of zero included.

    LLVM writes a `float` as the bits of the double that equals it, a `half` as `0xH` and its own bits.
    """
    if ty == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    try:
        if ty == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        if ty == "half":
            return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    except OverflowError:  # struct refuses what IEEE 754 rounds to infinity
        return float_literal(float("inf") if value > 0 else float("-inf"), ty)
    raise TypeError(f"no floating-point literals of type {ty}")


class Assembler:
    """Writes the body of one function; the current position is always the end of the text.

    Attributes:
        lines: the instructions so far, without line ends; a label is a line of its own.
        block: label of the block being written, for phis.
        has_fma: whether the target multiplies and adds with one rounding in hardware. `fma` is exact either way (a
            library call per lane without it); `muladd` and the recipes of `vecmath` choose by this flag.
        has_half: whether the target converts between half and float in hardware; elsewhere `half_to_float` and
            `float_to_half` are integer code.
        has_avx512: whether x86's AVX-512 instructions are there (F, DQ, VL), for which `vecmath` has shorter recipes.
        library: how `library_call` calls C's mathematical functions; None means by name, through a declaration.
        flags: fast-math flags for every floating-point instruction that follows, such as `"reassoc contract"`.
    """

    __slots__ = (
        *("_count", "_declared", "_flags", "_open", "_phis", "_splats"),
        *("block", "block_line", "has_avx512", "has_fma", "has_half", "library", "lines"),
    )

    def __init__(
        self,
        *,
        has_fma: bool = True,
        has_avx512: bool = False,
        has_half: bool = False,
        flags: str = "",
        entry: str = "entry",
    ) -> None:
        self.lines: list[str] = [f"{entry}:"]
        self.block = entry
        #: The line at which the current block begins.
        self.block_line = 0
        self.has_fma = has_fma
        self.has_avx512 = has_avx512
        self.has_half = has_half
        self.library: Callable[[str, str, Sequence[V]], V] | None = None
        self._flags = f"{flags} " if flags else ""
        self._count = 0
        self._open = True  # whether the current block still lacks its terminator
        self._declared: dict[str, str] = {}
        self._splats: dict[tuple[str, int], V] = {}  # of this block only: another block need not be dominated
        self._phis: dict[str, int] = {}  # phi to the line it stood on when it was written

    # --- the text ---------------------------------------------------------------------------------------------------

    def declarations(self) -> list[str]:
        """One `declare` line for each function called, sorted by name. Leave out those the module defines itself."""
        return [self._declared[name] for name in sorted(self._declared)]

    def function(
        self, name: str, parameters: str = "", *, returns: str = "void", prefix: str = "", attributes: str = ""
    ) -> str:
        """The whole definition: `define {prefix} {returns} @{name}({parameters}) {attributes} {...}`."""
        start = f"define {prefix} {returns}" if prefix else f"define {returns}"
        end = f" {attributes}" if attributes else ""
        return f"{start} @{name}({parameters}){end} {{\n" + "\n".join(self.lines) + "\n}"

    def comment(self, text: str) -> None:
        """A comment line."""
        self.lines.append(f"  ; {one_line(text)}")

    def raw(self, instruction: str) -> None:
        """An instruction without result, as it stands: the way out for what has no method (fences, atomics)."""
        self.lines.append(f"  {instruction}")

    def define(self, expression: str, ty: str, lanes: int = 1) -> V:
        """An instruction with a result, as it stands behind the `=`."""
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {expression}")
        return V(name, ty, lanes)

    @property
    def flags(self) -> str:
        """The fast-math flags in force, separated by blanks."""
        return self._flags.rstrip()

    @flags.setter
    def flags(self, flags: str) -> None:
        self._flags = f"{flags} " if flags else ""

    @contextmanager
    def strict(self) -> Generator[None]:
        """No fast-math flags inside: for code whose rounding errors are part of the algorithm."""
        flags, self._flags = self._flags, ""
        try:
            yield
        finally:
            self._flags = flags

    # --- constants and lanes ----------------------------------------------------------------------------------------

    def const(self, value: float, ty: str, lanes: int = 1) -> V:
        """A literal: exact for floats (rounded to nearest in `ty`), `true` and `false` for i1, `null` for ptr 0."""
        if ty in FLOAT_BITS:
            text = float_literal(value, ty)
        elif ty == "i1":
            text = "true" if value else "false"
        elif ty == "ptr":
            if value:
                raise TypeError("an address is no constant: object code has to stay valid in another process")
            text = "null"
        else:
            text = str(int(value))
        return V(text, ty) if lanes == 1 else V(f"splat ({ty} {text})", ty, lanes)

    def like(self, value: float, x: V) -> V:
        """A literal of x's type and lanes."""
        return self.const(value, x.ty, x.lanes)

    def vector(self, values: Sequence[float], ty: str) -> V:
        """A vector literal, one value a lane."""
        if len(values) == 1:
            return self.const(values[0], ty)
        lanes = ", ".join(f"{ty} {self.const(value, ty).text}" for value in values)
        return V(f"<{lanes}>", ty, len(values))

    def iota(self, ty: str, lanes: int, start: int = 0) -> V:
        """The vector start, start + 1, ..."""
        return self.vector(range(start, start + lanes), ty)

    def poison(self, ty: str, lanes: int = 1) -> V:
        """A value that does not matter."""
        return V("poison", ty, lanes)

    def splat(self, x: V, lanes: int) -> V:
        """x in every lane. A second splat of the same x in the same block is the first one."""
        if x.lanes == lanes:
            return x
        if x.lanes != 1:
            raise TypeError(f"{x.typed} cannot be splatted to {lanes} lanes")
        if x.text[0] != "%":
            return V("poison" if x.text == "poison" else f"splat ({x.ty} {x.text})", x.ty, lanes)
        known = self._splats.get((x.text, lanes))
        if known is None:
            wide = llvm_type(x.ty, lanes)
            first = self.define(f"insertelement {wide} poison, {x.typed}, i32 0", x.ty, lanes)
            mask = f"<{lanes} x i32> zeroinitializer"
            known = self.define(f"shufflevector {wide} {first.text}, {wide} poison, {mask}", x.ty, lanes)
            self._splats[x.text, lanes] = known
        return known

    def extract(self, x: V, lane: int | V) -> V:
        """One lane of x; x itself if it is a scalar."""
        if x.lanes == 1:
            return x
        return self.define(f"extractelement {x.typed}, {_index(lane)}", x.ty)

    def insert(self, x: V, element: V, lane: int | V) -> V:
        """x with one lane replaced."""
        if x.ty != element.ty or element.lanes != 1:
            raise TypeError(f"insert: {element.typed} is no lane of {x.typed}")
        if x.lanes == 1:
            return element
        return self.define(f"insertelement {x.typed}, {element.typed}, {_index(lane)}", x.ty, x.lanes)

    def shuffle(self, x: V, y: V | None, mask: Sequence[int]) -> V:
        """The lanes of x followed by y that `mask` lists; -1 is a lane that does not matter."""
        y = V("poison", x.ty, x.lanes) if y is None else y
        if x.ty != y.ty or x.lanes != y.lanes or x.lanes == 1:
            raise TypeError(f"shuffle needs two vectors of one type, not {x.typed} and {y.typed}")
        lanes = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in mask)
        wide = self.define(f"shufflevector {x.typed}, {y.typed}, <{len(mask)} x i32> <{lanes}>", x.ty, len(mask))
        return self.define(f"extractelement <1 x {x.ty}> {wide.text}, i32 0", x.ty) if len(mask) == 1 else wide

    def slice_lanes(self, x: V, start: int, count: int) -> V:
        """`count` lanes of x from lane `start` on."""
        if count == x.lanes:
            return x
        return self.extract(x, start) if count == 1 else self.shuffle(x, None, range(start, start + count))

    def concat(self, x: V, y: V) -> V:
        """The lanes of x, then those of y."""
        if x.lanes == 1:
            return self.insert(self.insert(V("poison", x.ty, 2), x, 0), y, 1)
        return self.shuffle(x, y, range(2 * x.lanes))

    def reverse(self, x: V) -> V:
        """The lanes of x, last first."""
        return x if x.lanes == 1 else self.shuffle(x, None, range(x.lanes - 1, -1, -1))

    def reduce(self, combine: Callable[[V, V], V], x: V) -> V:
        """Combine all lanes, the upper half with the lower half again and again: combine(low, high) to one scalar."""
        while x.lanes > 1:
            half, odd = divmod(x.lanes, 2)
            if odd:
                raise TypeError(f"reduce halves its operand, so the number of lanes is a power of two, not {x.lanes}")
            x = combine(self.slice_lanes(x, 0, half), self.slice_lanes(x, half, half))
        return x

    def lane_bits(self, mask: V) -> V:
        """A mask (i1 lanes) as one integer, lane i in bit i."""
        if mask.ty != "i1":
            raise TypeError(f"a mask has i1 lanes, not {mask.type}")
        return mask if mask.lanes == 1 else self.define(f"bitcast {mask.typed} to i{mask.lanes}", f"i{mask.lanes}")

    def any_lane(self, mask: V) -> V:
        """Whether some lane of the mask is set, as a scalar i1."""
        bits = self.lane_bits(mask)
        return bits if mask.lanes == 1 else self.define(f"icmp ne {bits.typed}, 0", "i1")

    def all_lanes(self, mask: V) -> V:
        """Whether every lane of the mask is set, as a scalar i1."""
        bits = self.lane_bits(mask)
        return bits if mask.lanes == 1 else self.define(f"icmp eq {bits.typed}, -1", "i1")

    # --- floating point ---------------------------------------------------------------------------------------------

    def fadd(self, x: V, y: V) -> V:
        """x + y"""
        return self._float_binary("fadd", x, y)

    def fsub(self, x: V, y: V) -> V:
        """x - y"""
        return self._float_binary("fsub", x, y)

    def fmul(self, x: V, y: V) -> V:
        """x * y"""
        return self._float_binary("fmul", x, y)

    def fdiv(self, x: V, y: V) -> V:
        """x / y"""
        return self._float_binary("fdiv", x, y)

    def frem(self, x: V, y: V) -> V:
        """C's fmod, a library call per lane."""
        return self._float_binary("frem", x, y)

    def fneg(self, x: V) -> V:
        """x with its sign flipped, NaN and zero too."""
        return self.define(f"fneg {self._flags}{x.typed}", x.ty, x.lanes)

    def fma(self, x: V, y: V, z: V) -> V:
        """x * y + z with one rounding, on every target."""
        return self.float_intrinsic("fma", x, y, z)

    def muladd(self, x: V, y: V, z: V) -> V:
        """x * y + z with one rounding where the hardware has FMA, with two elsewhere."""
        return self.float_intrinsic("fma", x, y, z) if self.has_fma else self.fadd(self.fmul(x, y), z)

    def fabs(self, x: V) -> V:
        """x with its sign cleared."""
        return self.float_intrinsic("fabs", x)

    def sqrt(self, x: V) -> V:
        """The correctly rounded square root."""
        return self.float_intrinsic("sqrt", x)

    def floor(self, x: V) -> V:
        """Rounded towards minus infinity."""
        return self.float_intrinsic("floor", x)

    def ceil(self, x: V) -> V:
        """Rounded towards infinity."""
        return self.float_intrinsic("ceil", x)

    def trunc(self, x: V) -> V:
        """Rounded towards zero; `trunc_int` is the one for integers."""
        return self.float_intrinsic("trunc", x)

    def rint(self, x: V) -> V:
        """Rounded to nearest, ties to even."""
        return self.float_intrinsic("rint", x)

    def copysign(self, magnitude: V, sign: V) -> V:
        """`magnitude` with the sign of `sign`; by bits, as LLVM's copysign of a half asks a library for the rounding of
        the double that a sign came from.
        """
        ty = {"half": "i16", "float": "i32", "double": "i64"}[magnitude.ty]
        x, y = self.bitcast(magnitude, ty), self.bitcast(sign, ty)
        smallest = self.like(-(2 ** (int(ty[1:]) - 1)), x)
        return self.bitcast(self.or_(self.and_(x, self.not_(smallest)), self.and_(y, smallest)), magnitude.ty)

    def fcmp(self, predicate: str, x: V, y: V) -> V:
        """A comparison: oeq ogt oge olt ole one ord, or with u in front, true also for NaN."""
        x, y = self._agree("fcmp", x, y)
        return self.define(f"fcmp {self._flags}{predicate} {x.type} {x.text}, {y.text}", "i1", x.lanes)

    def isnan(self, x: V) -> V:
        """Whether x is a NaN."""
        return self.fcmp("uno", x, self.like(0.0, x))

    def select(self, condition: V, yes: V, no: V) -> V:
        """`yes` where the condition holds, else `no`, any types; a scalar condition chooses whole vectors."""
        if yes.lanes != no.lanes or yes.ty != no.ty:
            yes, no = self._agree("select", yes, no)
        if condition.ty != "i1":
            raise TypeError(f"select: the condition is an i1, not {condition.type}")
        lanes = condition.lanes
        if lanes not in (1, yes.lanes):
            yes, no = self.splat(yes, lanes), self.splat(no, lanes)
        flags = self._flags if yes.ty in FLOAT_BITS else ""
        kind = yes.type
        return self.define(f"select {flags}{condition.typed}, {kind} {yes.text}, {kind} {no.text}", yes.ty, yes.lanes)

    def float_intrinsic(self, name: str, x: V, *others: V) -> V:
        """`llvm.{name}` of operands of one floating-point type, which is the result's too."""
        operands = self._agree_all(name, (x, *others)) if others else (x,)
        _, ty, lanes = operands[0]
        symbol = f"llvm.{name}.{intrinsic_suffix(ty, lanes)}"
        kind = llvm_type(ty, lanes)
        if symbol not in self._declared:
            self._declared[symbol] = f"declare {kind} @{symbol}({', '.join([kind] * len(operands))})"
        arguments = ", ".join([f"{kind} {operand.text}" for operand in operands])
        return self.define(f"call {self._flags}{kind} @{symbol}({arguments})", ty, lanes)

    # --- integers ---------------------------------------------------------------------------------------------------

    def add(self, x: V, y: V) -> V:
        """x + y, wrapping"""
        return self._binary("add", x, y)

    def sub(self, x: V, y: V) -> V:
        """x - y, wrapping"""
        return self._binary("sub", x, y)

    def mul(self, x: V, y: V) -> V:
        """x * y, wrapping"""
        return self._binary("mul", x, y)

    def sdiv(self, x: V, y: V) -> V:
        """Signed quotient towards zero; undefined for y = 0 and for the most negative x over -1."""
        return self._binary("sdiv", x, y)

    def udiv(self, x: V, y: V) -> V:
        """Unsigned quotient; undefined for y = 0."""
        return self._binary("udiv", x, y)

    def srem(self, x: V, y: V) -> V:
        """Signed remainder with x's sign; undefined where `sdiv` is."""
        return self._binary("srem", x, y)

    def urem(self, x: V, y: V) -> V:
        """Unsigned remainder; undefined for y = 0."""
        return self._binary("urem", x, y)

    def shl(self, x: V, y: V) -> V:
        """x shifted left; poison if y is not less than the width, as for the other shifts."""
        return self._binary("shl", x, y)

    def lshr(self, x: V, y: V) -> V:
        """x shifted right, zeros coming in"""
        return self._binary("lshr", x, y)

    def ashr(self, x: V, y: V) -> V:
        """x shifted right, copies of its sign coming in"""
        return self._binary("ashr", x, y)

    def and_(self, x: V, y: V) -> V:
        """x & y"""
        return self._binary("and", x, y)

    def or_(self, x: V, y: V) -> V:
        """x | y"""
        return self._binary("or", x, y)

    def xor(self, x: V, y: V) -> V:
        """x ^ y"""
        return self._binary("xor", x, y)

    def not_(self, x: V) -> V:
        """~x"""
        return self._binary("xor", x, self.const(1 if x.ty == "i1" else -1, x.ty, x.lanes))

    def neg(self, x: V) -> V:
        """-x, wrapping"""
        return self._binary("sub", self.const(0, x.ty, x.lanes), x)

    def icmp(self, predicate: str, x: V, y: V) -> V:
        """A comparison of integers or pointers: eq ne, sgt sge slt sle (signed), ugt uge ult ule (unsigned)."""
        x, y = self._agree("icmp", x, y)
        return self.define(f"icmp {predicate} {x.type} {x.text}, {y.text}", "i1", x.lanes)

    def int_intrinsic(self, name: str, *operands: V, flag: bool | None = None) -> V:
        """`llvm.{name}` of integers of one type: smin smax umin umax ctpop bitreverse bswap fshl fshr sadd.sat ...

        `flag` is the i1 that abs (the most negative number is poison), ctlz and cttz (zero is poison) want behind.
        """
        operands = self._agree_all(name, operands)
        ty, lanes = operands[0].ty, operands[0].lanes
        arguments = operands if flag is None else (*operands, self.const(flag, "i1"))
        return self.call(f"llvm.{name}.{intrinsic_suffix(ty, lanes)}", ty, arguments, lanes=lanes)

    def with_overflow(self, operation: str, x: V, y: V) -> tuple[V, V]:
        """Result and overflow bit of sadd, uadd, ssub, usub, smul or umul."""
        x, y = self._agree(operation, x, y)
        symbol = f"llvm.{operation}.with.overflow.{intrinsic_suffix(x.ty, x.lanes)}"
        pair = f"{{ {x.type}, {llvm_type('i1', x.lanes)} }}"
        self._declared.setdefault(symbol, f"declare {pair} @{symbol}({x.type}, {x.type})")
        both = self.define(f"call {pair} @{symbol}({x.typed}, {y.typed})", "struct").text
        result = self.define(f"extractvalue {pair} {both}, 0", x.ty, x.lanes)
        return result, self.define(f"extractvalue {pair} {both}, 1", "i1", x.lanes)

    # --- conversions ------------------------------------------------------------------------------------------------

    def bitcast(self, x: V, ty: str, lanes: int | None = None) -> V:
        """The same bits as another type, with as many lanes unless told otherwise."""
        lanes = x.lanes if lanes is None else lanes
        if ty == x.ty and lanes == x.lanes:
            return x
        return self.define(f"bitcast {x.typed} to {llvm_type(ty, lanes)}", ty, lanes)

    def sitofp(self, x: V, ty: str) -> V:
        """Signed integer to float, rounded to nearest"""
        return self._cast("sitofp", x, ty)

    def uitofp(self, x: V, ty: str) -> V:
        """Unsigned integer to float, rounded to nearest"""
        return self._cast("uitofp", x, ty)

    def fptosi(self, x: V, ty: str) -> V:
        """Float to signed integer, towards zero; poison out of range"""
        return self._cast("fptosi", x, ty)

    def fptoui(self, x: V, ty: str) -> V:
        """Float to unsigned integer, towards zero; poison out of range"""
        return self._cast("fptoui", x, ty)

    def fptosi_saturating(self, x: V, ty: str) -> V:
        """Float to signed integer, towards zero; out of range the nearest integer, 0 for NaN."""
        symbol = f"llvm.fptosi.sat.{intrinsic_suffix(ty, x.lanes)}.{intrinsic_suffix(x.ty, x.lanes)}"
        return self.call(symbol, ty, (x,), lanes=x.lanes)

    def sext(self, x: V, ty: str) -> V:
        """To a wider integer, sign kept"""
        return self._cast("sext", x, ty)

    def zext(self, x: V, ty: str) -> V:
        """To a wider integer, zeros in front"""
        return self._cast("zext", x, ty)

    def trunc_int(self, x: V, ty: str) -> V:
        """To a narrower integer, the low bits"""
        return self._cast("trunc", x, ty)

    def fpext(self, x: V, ty: str) -> V:
        """To a wider float"""
        return self._cast("fpext", x, ty)

    def fptrunc(self, x: V, ty: str) -> V:
        """To a narrower float, rounded to nearest"""
        return self._cast("fptrunc", x, ty)

    def half_to_float(self, x: V) -> V:
        """Half to float, exact; without hardware a product with 2^112 puts the exponent right, of subnormals too."""
        if self.has_half:
            return self._cast("fpext", x, "float")
        bits = self.zext(self.bitcast(x, "i16"), "i32")
        magnitude = self.shl(self.and_(bits, self.like(0x7FFF, bits)), self.like(13, bits))
        with self.strict():
            scaled = self.bitcast(self.fmul(self.bitcast(magnitude, "float"), self.const(2.0**112, "float")), "i32")
        special = self.icmp("uge", magnitude, self.like(0x7C00 << 13, magnitude))  # infinite or NaN
        scaled = self.select(special, self.or_(magnitude, self.like(0xFF << 23, magnitude)), scaled)
        sign = self.shl(self.and_(bits, self.like(0x8000, bits)), self.like(16, bits))
        return self.bitcast(self.or_(scaled, sign), "float")

    def float_to_half(self, x: V) -> V:
        """Float to half, rounded to nearest, ties to even; without hardware the sums do the rounding."""
        if self.has_half:
            return self._cast("fptrunc", x, "half")
        bits = self.bitcast(x, "i32")
        sign = self.and_(bits, self.like(-(2**31), bits))
        magnitude = self.xor(bits, sign)
        odd = self.and_(self.lshr(magnitude, self.like(13, bits)), self.like(1, bits))
        rebiased = self.add(self.add(magnitude, self.like(0xFFF - (112 << 23), bits)), odd)
        normal = self.lshr(rebiased, self.like(13, bits))
        half = self.const(0.5, "float")  # its last place is that of a subnormal half
        with self.strict():
            sum_ = self.bitcast(self.fadd(self.bitcast(magnitude, "float"), half), "i32")
        tiny = self.sub(sum_, self.like(126 << 23, bits))
        found = self.select(self.icmp("ult", magnitude, self.like(113 << 23, bits)), tiny, normal)
        nan = self.icmp("ugt", magnitude, self.like(0xFF << 23, bits))
        special = self.select(nan, self.like(0x7E00, bits), self.like(0x7C00, bits))
        found = self.select(self.icmp("uge", magnitude, self.like(143 << 23, bits)), special, found)
        found = self.or_(found, self.lshr(sign, self.like(16, bits)))
        return self.bitcast(self.trunc_int(found, "i16"), "half")

    def double_to_half(self, x: V) -> V:
        """Double to half, rounded once: through a float rounded to odd, which keeps what was lost in its last bit."""
        with self.strict():
            nearest = self._cast("fptrunc", x, "float")
            back = self._cast("fpext", nearest, "double")
            inexact = self.fcmp("one", back, x)
            beyond = self.fcmp("ogt", self.fabs(back), self.fabs(x))
            bits = self.bitcast(nearest, "i32")
            bits = self.sub(bits, self.zext(beyond, "i32"))
            return self.float_to_half(self.bitcast(self.or_(bits, self.zext(inexact, "i32")), "float"))

    def ptrtoint(self, x: V, ty: str = "i64") -> V:
        """The address as an integer"""
        return self._cast("ptrtoint", x, ty)

    def inttoptr(self, x: V) -> V:
        """An integer as an address"""
        return self._cast("inttoptr", x, "ptr")

    def freeze(self, x: V) -> V:
        """x, or some fixed value where x is poison"""
        return self.define(f"freeze {x.typed}", x.ty, x.lanes)

    # --- memory -----------------------------------------------------------------------------------------------------

    def alloca(self, ty: str, count: int = 1, *, lanes: int = 1, align: int | None = None) -> V:
        """Stack memory for `count` elements. In a loop it grows the stack, so it belongs into the entry block."""
        return self.define(f"alloca {llvm_type(ty, lanes)}, i64 {count}{_align(align)}", "ptr")

    def gep(self, base: V, index: V | int, ty: str, *, inbounds: bool = False) -> V:
        """The address `index` elements of type `ty` behind `base`; `i8` makes it an offset in bytes."""
        offset = f"i64 {index}" if isinstance(index, int) else index.typed
        lanes = base.lanes if isinstance(index, int) else max(base.lanes, index.lanes)
        return self.define(f"getelementptr {'inbounds ' if inbounds else ''}{ty}, {base.typed}, {offset}", "ptr", lanes)

    def load(self, pointer: V, ty: str, *, lanes: int = 1, align: int | None = None, metadata: str = "") -> V:
        """One value from memory. `metadata` is text such as `!alias.scope !3, !nontemporal !4`."""
        tail = _align(align) + (f", {metadata}" if metadata else "")
        return self.define(f"load {llvm_type(ty, lanes)}, ptr {pointer.text}{tail}", ty, lanes)

    def store(self, x: V, pointer: V, *, align: int | None = None, metadata: str = "") -> None:
        """One value to memory."""
        tail = _align(align) + (f", {metadata}" if metadata else "")
        self.lines.append(f"  store {x.type} {x.text}, ptr {pointer.text}{tail}")

    def masked_load(self, pointer: V, mask: V, otherwise: V, *, align: int = 1, metadata: str = "") -> V:
        """Lanes the mask sets from consecutive memory, the others from `otherwise`; their memory is not touched."""
        return self._masked("load", (pointer, align), mask, otherwise, metadata=metadata)

    def masked_store(self, x: V, pointer: V, mask: V, *, align: int = 1, metadata: str = "") -> None:
        """Write the lanes the mask sets to consecutive memory."""
        self._masked_void("store", x, (pointer, align), mask, metadata=metadata)

    def gather(self, pointers: V, mask: V, otherwise: V, *, align: int = 1, metadata: str = "") -> V:
        """One load a lane where the mask is set, the lanes of `otherwise` elsewhere."""
        return self._masked("gather", (pointers, align), mask, otherwise, metadata=metadata)

    def scatter(self, x: V, pointers: V, mask: V, *, align: int = 1, metadata: str = "") -> None:
        """One store a lane where the mask is set, first lane first."""
        self._masked_void("scatter", x, (pointers, align), mask, metadata=metadata)

    def expand_load(self, pointer: V, mask: V, otherwise: V, *, align: int = 1) -> V:
        """Consecutive memory into the lanes the mask sets: lane i gets element number popcount(mask below i)."""
        symbol = f"llvm.masked.expandload.{intrinsic_suffix(otherwise.ty, otherwise.lanes)}"
        self._declare(symbol, otherwise.type, ("ptr", mask.type, otherwise.type))
        arguments = f"ptr align {align} {pointer.text}, {mask.typed}, {otherwise.typed}"
        return self.define(f"call {otherwise.type} @{symbol}({arguments})", otherwise.ty, otherwise.lanes)

    def compress_store(self, x: V, pointer: V, mask: V, *, align: int = 1) -> None:
        """The lanes the mask sets, packed, to consecutive memory."""
        symbol = f"llvm.masked.compressstore.{intrinsic_suffix(x.ty, x.lanes)}"
        self._declare(symbol, "void", (x.type, "ptr", mask.type))
        self.lines.append(f"  call void @{symbol}({x.typed}, ptr align {align} {pointer.text}, {mask.typed})")

    # --- calls and control flow -------------------------------------------------------------------------------------

    def call(self, name: str, ty: str, arguments: Sequence[V], *, lanes: int = 1, attributes: str = "") -> V:
        """Call `@name`, declaring it from these arguments; `attributes` go on the declaration."""
        kind = llvm_type(ty, lanes)
        if name not in self._declared:
            self._declare(name, kind, [argument.type for argument in arguments], attributes)
        return self.define(f"call {kind} @{name}({', '.join([x.typed for x in arguments])})", ty, lanes)

    def library_call(self, name: str, ty: str, arguments: Sequence[V]) -> V:
        """Call C's function of scalars `name`: `sin`, `powf`. The owner of the assembler may say how, see `library`."""
        return self.call(name, ty, arguments) if self.library is None else self.library(name, ty, arguments)

    def call_void(self, name: str, arguments: Sequence[V], *, attributes: str = "") -> None:
        """Call `@name`, which returns nothing."""
        if name not in self._declared:
            self._declare(name, "void", [argument.type for argument in arguments], attributes)
        self.lines.append(f"  call void @{name}({', '.join([x.typed for x in arguments])})")

    def call_pointer(self, callee: V, ty: str, arguments: Sequence[V], *, lanes: int = 1) -> V:
        """Call through a function pointer."""
        kind = llvm_type(ty, lanes)
        return self.define(f"call {kind} {callee.text}({', '.join([x.typed for x in arguments])})", ty, lanes)

    def call_pointer_void(self, callee: V, arguments: Sequence[V]) -> None:
        """Call through a function pointer what returns nothing."""
        self.lines.append(f"  call void {callee.text}({', '.join([x.typed for x in arguments])})")

    def fresh_label(self, hint: str) -> str:
        """A label nobody has: the hint, a dot, a number."""
        self._count += 1
        return f"{hint}.{self._count - 1}"

    def label(self, name: str) -> str:
        """Begin the block `name`; a block before it that is still open falls through into it."""
        if self._open:
            self.br(name)
        self.lines.append(f"{name}:")
        self.block = name
        self.block_line = len(self.lines)
        self._open = True
        self._splats.clear()
        return name

    def br(self, target: str, *, metadata: str = "") -> None:
        """Go to a block. `metadata` is text such as `!llvm.loop !5`."""
        self._end(f"br label %{target}", metadata)

    def condbr(
        self, condition: V, yes: str, no: str, *, weights: tuple[int, int] | None = None, metadata: str = ""
    ) -> None:
        """Go to one of two blocks. `weights=COLD` says that the first is hardly ever taken."""
        if weights is not None:
            prof = f'!prof !{{!"branch_weights", i32 {weights[0]}, i32 {weights[1]}}}'
            metadata = f"{prof}, {metadata}" if metadata else prof
        if condition.ty != "i1" or condition.lanes != 1:
            raise TypeError(f"condbr: the condition is one i1, not {condition.type}; see any_lane")
        self._end(f"br i1 {condition.text}, label %{yes}, label %{no}", metadata)

    def switch(self, x: V, default: str, cases: Sequence[tuple[int, str]]) -> None:
        """Go to the block whose number x is."""
        targets = " ".join(f"{x.ty} {number}, label %{target}" for number, target in cases)
        self._end(f"switch {x.typed}, label %{default} [{targets}]", "")

    def phi(self, incoming: Sequence[tuple[V, str]]) -> V:
        """The value that belongs to the block control came from; phis come first in their block."""
        first = incoming[0][0]
        for value, _ in incoming:
            if value.ty != first.ty or value.lanes != first.lanes:
                raise TypeError(f"phi: {value.typed} is no {first.type}")
        pairs = ", ".join([f"[ {value.text}, %{block} ]" for value, block in incoming])
        self._phis[f"%v{self._count}"] = len(self.lines)
        return self.define(f"phi {first.type} {pairs}", first.ty, first.lanes)

    def add_incoming(self, phi: V, value: V, block: str) -> None:
        """Give a phi one more predecessor: a loop's back edge, known only after the loop's body."""
        if value.ty != phi.ty or value.lanes != phi.lanes:
            raise TypeError(f"phi: {value.typed} is no {phi.type}")
        at, start = self._phis[phi.text], f"  {phi.text} = phi "
        if at >= len(self.lines) or not self.lines[at].startswith(start):  # lines were inserted before it
            at = next(i for i in range(len(self.lines) - 1, -1, -1) if self.lines[i].startswith(start))
        self.lines[at] += f", [ {value.text}, %{block} ]"

    def ret(self, x: V | None = None) -> None:
        """Return."""
        self._end("ret void" if x is None else f"ret {x.typed}", "")

    def unreachable(self) -> None:
        """Control never comes here, as behind a call that does not return."""
        self._end("unreachable", "")

    # --- inside -----------------------------------------------------------------------------------------------------

    def _binary(self, operation: str, x: V, y: V) -> V:
        text, ty, lanes = x
        other, other_ty, other_lanes = y
        if lanes != other_lanes or ty != other_ty:
            x, y = self._agree(operation, x, y)
            text, ty, lanes = x
            other = y.text
        name = f"%v{self._count}"
        self._count += 1
        kind = ty if lanes == 1 else f"<{lanes} x {ty}>"
        self.lines.append(f"  {name} = {operation} {kind} {text}, {other}")
        return V(name, ty, lanes)

    def _float_binary(self, operation: str, x: V, y: V) -> V:
        return self._binary(f"{operation} {self._flags}" if self._flags else operation, x, y)

    def _agree(self, operation: str, x: V, y: V) -> tuple[V, V]:
        if x.ty != y.ty:
            raise TypeError(f"{operation}: operands differ in type: {x.typed} and {y.typed}")
        if x.lanes < y.lanes:
            return self.splat(x, y.lanes), y
        return x, self.splat(y, x.lanes)

    def _agree_all(self, operation: str, operands: tuple[V, ...]) -> tuple[V, ...]:
        first = operands[0]
        same = True
        for operand in operands:
            if operand.ty != first.ty:
                raise TypeError(f"{operation}: operands differ in type: {first.typed} and {operand.typed}")
            same = same and operand.lanes == first.lanes
        if same:
            return operands
        lanes = max([operand.lanes for operand in operands])
        return tuple([self.splat(operand, lanes) for operand in operands])

    def _cast(self, operation: str, x: V, ty: str) -> V:
        return x if x.ty == ty else self.define(f"{operation} {x.typed} to {llvm_type(ty, x.lanes)}", ty, x.lanes)

    def _declare(self, name: str, returns: str, parameters: Sequence[str], attributes: str = "") -> None:
        tail = f" {attributes}" if attributes else ""
        self._declared.setdefault(name, f"declare {returns} @{name}({', '.join(parameters)}){tail}")

    def _masked(self, operation: str, address: tuple[V, int], mask: V, otherwise: V, *, metadata: str) -> V:
        pointer, align = address
        pointer_type = pointer.type
        symbol = _masked_symbol(operation, otherwise, pointer)
        self._declare(symbol, otherwise.type, (pointer_type, mask.type, otherwise.type))
        arguments = f"{pointer_type} align {align} {pointer.text}, {mask.typed}, {otherwise.typed}"
        tail = f", {metadata}" if metadata else ""
        return self.define(f"call {otherwise.type} @{symbol}({arguments}){tail}", otherwise.ty, otherwise.lanes)

    def _masked_void(self, operation: str, x: V, address: tuple[V, int], mask: V, *, metadata: str) -> None:
        pointer, align = address
        pointer_type = pointer.type
        symbol = _masked_symbol(operation, x, pointer)
        self._declare(symbol, "void", (x.type, pointer_type, mask.type))
        arguments = f"{x.typed}, {pointer_type} align {align} {pointer.text}, {mask.typed}"
        tail = f", {metadata}" if metadata else ""
        self.lines.append(f"  call void @{symbol}({arguments}){tail}")

    def _end(self, terminator: str, metadata: str) -> None:
        self.lines.append(f"  {terminator}, {metadata}" if metadata else f"  {terminator}")
        self._open = False


def _index(lane: int | V) -> str:
    return f"i32 {lane}" if isinstance(lane, int) else lane.typed


def _align(align: int | None) -> str:
    return "" if align is None else f", align {align}"


def _masked_symbol(operation: str, x: V, pointer: V) -> str:
    return f"llvm.masked.{operation}.{intrinsic_suffix(x.ty, x.lanes)}.{intrinsic_suffix('ptr', pointer.lanes)}"
