"""The text assembler: what it writes is what LLVM reads, and it writes quickly."""

from __future__ import annotations

import math
import struct

import llvmlite.binding as llvm
import pytest

from jitgraph.codegen.assembler import COLD, Assembler, V, float_literal, intrinsic_suffix, llvm_type
from tests.checks import calls_of

P, Q = V("%p", "ptr"), V("%q", "ptr")


def checked(a: Assembler, parameters: str = "ptr %p, ptr %q") -> str:
    """The module's text after LLVM has parsed and verified it."""
    text = "\n".join([*a.declarations(), a.function("f", parameters)])
    module = llvm.parse_assembly(text)
    module.verify()
    return text


@pytest.mark.parametrize(
    ("value", "ty", "literal"),
    [
        (1.0, "double", "0x3FF0000000000000"),
        (-0.0, "double", "0x8000000000000000"),
        (0.1, "float", "0x3FB99999A0000000"),
        (1e39, "float", "0x7FF0000000000000"),
        (-1e39, "float", "0xFFF0000000000000"),
        (1e-45, "float", "0x36A0000000000000"),
        (math.inf, "double", "0x7FF0000000000000"),
        (math.nan, "float", "0x7FF8000000000000"),
        (1.5, "half", "0xH3E00"),
        (1e6, "half", "0xH7C00"),
    ],
)
def test_float_literals_are_exact(value: float, ty: str, literal: str) -> None:
    assert float_literal(value, ty) == literal


def test_float_literal_refuses_other_types() -> None:
    with pytest.raises(TypeError, match="no floating-point literals of type i32"):
        float_literal(1.0, "i32")


def test_types_and_suffixes() -> None:
    assert llvm_type("double") == "double"
    assert llvm_type("float", 16) == "<16 x float>"
    assert intrinsic_suffix("double", 8) == "v8f64"
    assert intrinsic_suffix("ptr") == "p0"
    assert intrinsic_suffix("i32", 4) == "v4i32"


def test_scalar_operand_is_splatted_once_a_block() -> None:
    a = Assembler()
    x, s = a.load(P, "double", lanes=4, align=8), a.load(Q, "double", align=8)
    a.store(a.fadd(a.fmul(x, s), a.fsub(s, a.const(2.0, "double"))), P, align=8)
    a.store(a.fadd(x, s), P, align=8)
    a.label("next")
    a.store(a.fadd(x, s), P, align=8)
    a.ret()
    text = checked(a)
    inserts = [line for line in text.splitlines() if "insertelement" in line and f"double {s.text}," in line]
    assert len(inserts) == 2, "once in each of the two blocks that need it"


def test_operands_of_two_types_are_refused() -> None:
    a = Assembler()
    with pytest.raises(TypeError, match="fadd: operands differ in type: double %x and float %y"):
        a.fadd(V("%x", "double"), V("%y", "float"))
    with pytest.raises(TypeError, match="cannot be splatted"):
        a.add(V("%x", "i64", 2), V("%y", "i64", 4))
    with pytest.raises(TypeError, match="an address is no constant"):
        a.const(1234, "ptr")


def test_every_instruction_is_valid() -> None:
    a = Assembler()
    x = a.load(P, "double", lanes=8, align=8)
    s = a.load(Q, "double", align=8, metadata="!nontemporal !{i32 1}")
    mask = a.fcmp("olt", x, s)
    pointers = a.gep(P, a.iota("i64", 8), "double", inbounds=True)
    y = a.gather(pointers, mask, a.masked_load(Q, mask, a.const(0.0, "double", 8), align=8), align=8)
    for binary in (a.fadd, a.fsub, a.fmul, a.fdiv, a.frem, a.copysign):
        y = binary(y, s)
    for unary in (a.fneg, a.fabs, a.sqrt, a.floor, a.ceil, a.trunc, a.rint):
        y = unary(y)
    y = a.fma(y, s, a.const(math.nan, "double"))
    i = a.fptosi(y, "i64")
    for binary in (a.add, a.sub, a.mul, a.sdiv, a.udiv, a.srem, a.urem, a.shl, a.lshr, a.ashr, a.and_, a.or_, a.xor):
        i = binary(i, a.const(3, "i64"))
    i = a.int_intrinsic("smax", a.not_(a.neg(i)), a.const(-7, "i64"))
    i = a.int_intrinsic("cttz", i, flag=False)
    i, overflow = a.with_overflow("smul", i, a.const(5, "i64"))
    i = a.select(overflow, i, a.const(0, "i64"))
    i = a.add(a.sext(a.trunc_int(i, "i32"), "i64"), a.zext(a.fptoui(y, "i8"), "i64"))
    i = a.add(i, a.fptosi_saturating(a.fpext(a.fptrunc(y, "half"), "float"), "i64"))
    i = a.freeze(a.select(a.any_lane(mask), i, a.poison("i64", 8)))
    y = a.select(a.isnan(y), a.bitcast(i, "double"), a.fadd(a.sitofp(i, "double"), a.uitofp(i, "double")))
    y = a.select(a.all_lanes(mask), y, a.reverse(a.concat(a.slice_lanes(y, 0, 4), a.slice_lanes(y, 4, 4))))
    y = a.insert(y, a.reduce(a.fadd, y), a.trunc_int(a.ptrtoint(P), "i32"))
    t = a.concat(a.extract(y, 7), a.slice_lanes(y, 3, 1))
    t = a.shuffle(t, t, [3, -1])
    t = a.shuffle(t, None, [1])
    stack = a.alloca("double", 4, align=64)
    a.store(a.call("pow", "double", [t, s], attributes="memory(none)"), stack, align=64)
    a.call_void("llvm.memcpy.p0.p0.i64", [a.inttoptr(a.ptrtoint(P)), stack, a.const(32, "i64"), a.const(0, "i1")])
    a.call_pointer_void(Q, [a.call_pointer(Q, "double", [t])])
    a.masked_store(y, P, mask, align=8, metadata="!nontemporal !{i32 1}")
    a.scatter(y, pointers, mask, align=8)
    a.compress_store(a.expand_load(P, mask, y, align=8), P, mask, align=8)
    a.raw("fence seq_cst")
    a.comment("three ways on")
    a.switch(a.extract(i, 0), "other", [(1, "one"), (2, "other")])
    a.label("one")
    a.ret()
    a.label("other")
    a.unreachable()
    checked(a)


def test_every_instruction_takes_scalars() -> None:
    a = Assembler()
    x = a.load(P, "float", align=4)
    mask = a.icmp("eq", a.bitcast(x, "i32"), a.const(0, "i32"))
    assert a.any_lane(mask) == a.all_lanes(mask) == mask
    assert a.reverse(x) == a.extract(x, 0) == a.splat(x, 1) == a.reduce(a.fadd, x) == x
    y = a.insert(x, a.const(2.0, "float"), 0)
    a.store(a.muladd(y, x, x), P, align=4)
    a.ret()
    checked(a)


def test_muladd_without_fma_rounds_twice_but_fma_never() -> None:
    a = Assembler(has_fma=False)
    x = a.load(P, "double", align=8)
    a.store(a.muladd(x, x, x), P, align=8)
    assert a.declarations() == []
    a.store(a.fma(x, x, x), P, align=8)
    assert a.declarations() == ["declare double @llvm.fma.f64(double, double, double)"]


def test_loop_with_patched_phi_and_cold_branch() -> None:
    a = Assembler()
    loop, done, entry = a.fresh_label("loop"), a.fresh_label("done"), a.block
    a.label(loop)  # falls through from the entry
    i = a.phi([(a.const(0, "i64"), entry)])
    following = a.add(i, a.const(1, "i64"))
    a.add_incoming(i, following, a.block)
    a.condbr(a.icmp("eq", following, a.const(10, "i64")), done, loop, weights=COLD, metadata="!llvm.loop !0")
    a.label(done)
    a.ret()
    text = "\n".join([a.function("f"), "!0 = distinct !{!0}"])
    llvm.parse_assembly(text).verify()
    assert f"phi i64 [ 0, %entry ], [ {following.text}, %{loop} ]" in text


def test_phi_is_found_where_inserted_lines_moved_it() -> None:
    a = Assembler()
    entry, loop = a.block, a.label("loop")
    i = a.phi([(a.const(0, "i64"), entry)])
    a.lines.insert(1, "  %x = add i64 1, 2")
    a.add_incoming(i, a.add(i, V("%x", "i64")), loop)
    a.br(loop)
    checked(a)


def test_flags_apply_until_strict() -> None:
    a = Assembler(flags="reassoc nnan")
    x = a.load(P, "double", lanes=4, align=8)
    fast = a.fma(a.select(a.fcmp("olt", x, x), a.fneg(x), x), x, x)
    with a.strict():
        a.store(a.fadd(fast, x), P, align=8)
    assert a.flags == "reassoc nnan"
    a.ret()
    text = checked(a)
    assert text.count("reassoc nnan") == 4
    assert "fadd <4 x double>" in text


def test_an_instruction_takes_few_calls() -> None:
    def thousand() -> None:
        a = Assembler()
        x = y = V("%x", "double", 8)
        for _ in range(250):
            y = a.fadd(y, x)
            y = a.fma(y, x, y)
            y = a.select(a.fcmp("olt", y, x), x, y)
        a.function("f")

    assert calls_of(thousand) < 30_000  # 17 calls and returns an instruction: 1.5 ms in all


def test_round_trip_of_random_bit_patterns() -> None:
    for bits in (0x0000000000000001, 0x7FEFFFFFFFFFFFFF, 0x3FF123456789ABCD, 0xC340000000000001):
        value = struct.unpack("<d", struct.pack("<Q", bits))[0]
        assert float_literal(value, "double") == f"0x{bits:016X}"
