"""float16: conversions bit for bit, in hardware and in integer code; compiled functions over every pattern."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.assembler import Assembler, V
from tests.strategies import assert_same_bits

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

HARDWARE = bool(llvm.get_host_cpu_features().get("f16c"))
EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
TYPES = {"half": (np.float16, "i16"), "float": (np.float32, "float"), "double": (np.float64, "double")}
CASES = pytest.mark.parametrize(
    ("has_half", "lanes"), [(False, 1), (False, 8), *([(True, 1), (True, 8)] if HARDWARE else [])]
)


def source(name: str, source_type: str, target_type: str, lanes: int, has_half: bool) -> str:
    """A loop over one conversion; a half lies in memory as an i16."""
    a = Assembler(has_half=has_half)
    memory, stored = TYPES[source_type][1], TYPES[target_type][1]
    before = a.block
    loop, done = a.fresh_label("loop"), a.fresh_label("done")
    a.label(loop)
    i = a.phi([(a.const(0, "i64"), before)])
    x = a.bitcast(a.load(a.gep(V("%x", "ptr"), i, memory), memory, lanes=lanes, align=2), source_type)
    a.store(a.bitcast(getattr(a, name)(x), stored), a.gep(V("%y", "ptr"), i, stored), align=2)
    following = a.add(i, a.const(lanes, "i64"))
    a.add_incoming(i, following, a.block)
    a.condbr(a.icmp("ult", following, V("%n", "i64")), loop, done)
    a.label(done)
    a.ret()
    return "\n".join([*a.declarations(), a.function("kernel", "ptr %x, ptr %y, i64 %n", attributes="nounwind")])


def machine(has_half: bool) -> llvm.TargetMachine:
    cpu, features = (
        ("x86-64", "") if not has_half else (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    )
    if not llvm.get_process_triple().startswith("x86_64"):
        cpu, features = llvm.get_host_cpu_name(), ""
    return llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2, jit=True)


_engines: list[llvm.ExecutionEngine] = []  # machine code lives as long as its engine


def converter(name: str, source_type: str, target_type: str, lanes: int, has_half: bool) -> Callable[..., np.ndarray]:
    module = llvm.parse_assembly(source(name, source_type, target_type, lanes, has_half))
    module.verify()
    assert not any(line.startswith("\tcall") for line in machine(has_half).emit_assembly(module).splitlines())
    engine = llvm.create_mcjit_compiler(module, machine(has_half))
    engine.finalize_object()
    _engines.append(engine)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        engine.get_function_address("kernel")
    )

    def convert(x: np.ndarray) -> np.ndarray:
        y = np.empty(x.shape, TYPES[target_type][0])
        run(x.ctypes.data, y.ctypes.data, x.size)
        return y

    return convert


def near_ties() -> np.ndarray:
    """float64: every half, the middles between neighbours, and what lies just beside them."""
    halves = EVERY[np.isfinite(EVERY)].astype(np.float64)
    halves.sort()
    middles = (halves[1:] + halves[:-1]) / 2
    extremes = np.array([65519.999, 65520.0, 65536.0, 1e10, 1e300, np.inf, np.nan, 2.0**-25, 5e-324, 0.0])
    found = [halves, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf), extremes, -extremes]
    values = np.concatenate(found)
    return values[: values.size // 8 * 8].copy()


@CASES
def test_to_float(has_half: bool, lanes: int) -> None:
    found = converter("half_to_float", "half", "float", lanes, has_half)(EVERY)
    assert_same_bits(found, EVERY.astype(np.float32))


@CASES
def test_from_float(has_half: bool, lanes: int) -> None:
    with np.errstate(over="ignore"):
        x = near_ties().astype(np.float32)
        expected = x.astype(np.float16)
    assert_same_bits(converter("float_to_half", "float", "half", lanes, has_half)(x), expected)


@CASES
def test_from_double_rounds_once(has_half: bool, lanes: int) -> None:
    x = near_ties()
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    assert_same_bits(converter("double_to_half", "double", "half", lanes, has_half)(x), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arithmetic_on_every_pattern() -> None:
    def f(x, y):  # type: ignore[no-untyped-def]
        return [
            x + y, x - y, x * y, x / y, x // y, x % y, np.fmod(x, y), np.sqrt(x), np.floor(x), np.rint(x), -x, abs(x),
            np.sign(x), np.maximum(x, y), x < y, x == y, np.signbit(x), np.copysign(x, y), np.reciprocal(x),
            np.square(x), np.isnan(x), np.where(x > y, x, y), x * 2.5, x + 1, x * np.float32(1.1), np.nextafter(x, y),
            np.spacing(x), np.modf(x)[0], np.frexp(x)[0], np.frexp(x)[1], x.astype(np.float64), x.astype(bool),
        ]  # fmt: skip

    y = np.random.default_rng(0).permutation(EVERY)
    with np.errstate(all="ignore"):
        expected = f(EVERY, y)
    for k, (found, e) in enumerate(zip(jg.jit(f)(EVERY, y), expected, strict=True)):
        assert_same_bits(found, e, f"result {k}", zero_sign=k != 13)


def test_integers_as_halves() -> None:
    """By way of float32, as NumPy converts them."""
    rng = np.random.default_rng(1)
    for code in "?bBhHiIlL":
        x = (rng.integers(0, 1 << 62, 4096) >> rng.integers(0, 62, 4096)).astype(code)
        with np.errstate(over="ignore"):
            expected = x.astype(np.float16)
        assert_same_bits(jg.jit(lambda x: x.astype(np.float16))(x), expected, code)


def test_steps_round_one_by_one() -> None:
    """Fused or not, each operator's result is a float16."""

    def f(x):  # type: ignore[no-untyped-def]
        y = x * 1.1 + 0.3
        for _ in range(3):
            y = y * x - 0.1
        y[1:] += y[:-1]
        return y, y.sum(), y.mean(), y @ y, np.cumsum(y), y.max(), y.reshape(2, -1).sum(axis=0)

    x = np.random.default_rng(2).standard_normal(128).astype(np.float16)
    for found, expected in zip(jg.jit(f)(x.copy()), f(x.copy()), strict=True):
        assert type(found) is type(expected)
        assert_same_bits(found, expected)


def test_scalars() -> None:
    f = jg.jit(lambda s: (s + 1, s * np.float16(3), s * np.float32(0.1), s == 1.5, float(s), -s))
    s = np.float16(1.5)
    expected = (s + 1, s * np.float16(3), s * np.float32(0.1), s == 1.5, float(s), -s)
    assert [(type(x), x) for x in f(s)] == [(type(x), x) for x in expected]
