"""The vector functions against the true value: every function, width and type within its published bound.

`float` is compared with NumPy in double, `double` with mpmath; bench/vecmath_ulp.py does the same at length.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
from typing import TYPE_CHECKING, Final

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from mpmath import mpf

from jitgraph.codegen.assembler import Assembler, V
from jitgraph.codegen.vecmath import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Array = np.ndarray[tuple[int], np.dtype[np.floating]]

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

HOST: Final = llvm.get_host_cpu_features()
AVX512: Final = bool(HOST.get("avx512f") and HOST.get("avx512dq") and HOST.get("avx512vl"))
FMA: Final = bool(HOST.get("fma"))
DTYPES: Final = {"float": np.float32, "double": np.float64}
WIDTHS: Final = [(ty, lanes) for ty in ("float", "double") for lanes in (1, 2, 4, 8, 16)]
VECTOR: Final = sorted(name for name, function in FUNCTIONS.items() if function.vectorised and function.arity == 1)
TRUE: Final[dict[str, Callable[..., mpf]]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
}
DOMAIN: Final = {  # outside, the result is NaN; at a pole it is infinite
    "log": (0.0, math.inf),
    "log2": (0.0, math.inf),
    "log10": (0.0, math.inf),
    "log1p": (-1.0, math.inf),
    "arcsin": (-1.0, 1.0),
    "arccos": (-1.0, 1.0),
    "arccosh": (1.0, math.inf),
    "arctanh": (-1.0, 1.0),
}
PERIODIC: Final = ("sin", "cos", "tan")
ODD: Final = ("expm1", "log1p", "sin", "tan", "sinh", "tanh", "arcsin", "arctan", "arcsinh", "arctanh", "erf", "cbrt")
_NAN, _INF = math.nan, math.inf
INFINITE: Final = {  # f(-inf), f(inf)
    **dict.fromkeys(("exp", "exp2"), (0.0, _INF)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "arccosh"), (_NAN, _INF)),
    **dict.fromkeys(("sin", "cos", "tan", "arcsin", "arccos", "arctanh"), (_NAN, _NAN)),
    **dict.fromkeys(("sinh", "arcsinh", "cbrt"), (-_INF, _INF)),
    **dict.fromkeys(("tanh", "erf"), (-1.0, 1.0)),
    "expm1": (-1.0, _INF),
    "cosh": (_INF, _INF),
    "arctan": (-math.pi / 2, math.pi / 2),
    "sigmoid": (0.0, 1.0),
    "erfc": (2.0, 0.0),
}
SATURATING: Final = (
    "exp",
    "exp2",
    "expm1",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
)  # far out, nothing changes
_engines: list[llvm.ExecutionEngine] = []  # machine code lives as long as its engine


def source(name: str, ty: str, lanes: int, *, has_fma: bool, has_avx512: bool) -> str:
    """A module with the function applied in a loop, so that its branches and phis stand where users have them."""
    function = FUNCTIONS[name]
    a = Assembler(has_fma=has_fma, has_avx512=has_avx512)
    inputs = [V(f"%x{i}", "ptr") for i in range(function.arity)]
    loop, done, before = a.fresh_label("loop"), a.fresh_label("done"), a.block
    a.label(loop)
    i = a.phi([(a.const(0, "i64"), before)])
    operands = [a.load(a.gep(pointer, i, ty), ty, lanes=lanes, align=2) for pointer in inputs]
    a.store(function.emit(a, *operands), a.gep(V("%y", "ptr"), i, ty), align=2)
    following = a.add(i, a.const(lanes, "i64"))
    a.add_incoming(i, following, a.block)
    a.condbr(a.icmp("ult", following, V("%n", "i64")), loop, done)
    a.label(done)
    a.ret()
    parameters = ", ".join([f"ptr noalias {p.text}" for p in inputs] + ["ptr noalias %y", "i64 %n"])
    definition = a.function("kernel", parameters, attributes='nounwind "prefer-vector-width"="512"')
    return "\n".join([*a.declarations(), definition])


@functools.cache
def kernel(name: str, ty: str, lanes: int, *, has_fma: bool = FMA, has_avx512: bool = AVX512) -> Callable[..., Array]:
    """The compiled loop as a function of arrays whose size is a multiple of the lanes."""
    module = llvm.parse_assembly(source(name, ty, lanes, has_fma=has_fma, has_avx512=has_avx512))
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine(has_fma=has_fma))
    engine.finalize_object()
    _engines.append(engine)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (FUNCTIONS[name].arity + 1), ctypes.c_int64)
    entry = kind(engine.get_function_address("kernel"))

    def call(*x: Array) -> Array:
        y = np.empty_like(x[0])
        entry(*[operand.ctypes.data for operand in x], y.ctypes.data, x[0].size)
        return y

    return call


def machine(*, has_fma: bool = True) -> llvm.TargetMachine:
    """The host, or x86-64 and the like as they were before FMA."""
    target = llvm.Target.from_default_triple()
    if has_fma:
        return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=HOST.flatten(), opt=2)
    return target.create_target_machine(opt=2)


def padded(x: Array) -> Array:
    """To a multiple of 16 elements."""
    return np.resize(x, -(-x.size // 16) * 16)


def boundaries(ty: str) -> Array:
    """Numbers where something changes: zeros, extremes, powers of two, interval ends, with their neighbours; no NaN."""
    dtype = DTYPES[ty]
    info = np.finfo(dtype)
    marks = [0.0, info.smallest_subnormal, info.tiny, info.max, info.eps, 0.5, 1.0, 2**0.5, 0.5**0.5, 0.94, 4.0, 6.0]
    marks += [math.log(2) / 2 * k for k in (1, 2, 3, 30)] + [math.pi / 4 * k for k in (1, 2, 3, 4, 5, 6, 100, 10001)]
    marks += [10.0, 18.0, 20.0, 40.0, 88.0, 88.72284, 89.0, 103.97, 104.0, 127.0, 128.0, 149.0, 150.0]
    marks += [709.78, 710.0, 745.13, 746.0, 1024.0, 1075.0, 39000.0, 1e6, 1e15, 1e22, 1e38, 9.2, 26.6]
    marks += [2.0**power for power in (-27, -12, -4, 20, 24, 28, 53, 60)]
    with np.errstate(all="ignore"):
        x = np.array(marks, dtype=dtype)
        x = x[np.isfinite(x)]
        x = np.concatenate([x, np.nextafter(x, dtype(np.inf)), np.nextafter(x, dtype(-np.inf))])
    x = x[np.isfinite(x)]
    return np.concatenate([x, -x])


def random_numbers(ty: str, count: int) -> Array:
    """Of several distributions; some are NaN or infinite."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << (32 if ty == "float" else 64), count // 4, dtype=np.uint64)
    patterns = bits.astype(np.uint32).view(np.float32) if ty == "float" else bits.view(np.float64)
    scaled = np.ldexp(rng.uniform(-2, 2, count // 4), rng.integers(-30, 18, count // 4))
    near = np.concatenate([rng.uniform(-1.5, 1.5, count // 4), rng.uniform(-12, 12, count // 4)])
    turns = rng.integers(-20000, 20000, count // 8) * (np.pi / 2)
    return np.concatenate([patterns, np.concatenate([scaled, near, turns]).astype(DTYPES[ty])])


@functools.cache
def true_value(name: str, x: float) -> mpf:
    """To 100 digits and more, before rounding; for finite x."""
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    if math.isnan(x) or not low <= x <= high:
        return mpf("nan")
    if x in (low, high) and name.startswith(("log", "arctanh")):
        return mpf("-inf") if x == low else mpf("inf")
    if math.isinf(x):
        return mpf(INFINITE[name][x > 0])
    if name in SATURATING and abs(x) > 1e4:
        x = math.copysign(1e4, x)
    with mpmath.workprec(1300 if name in PERIODIC else 350):
        return +TRUE[name](mpf(x))


def double_errors(name: str, x: Array, y: Array) -> list[float]:
    """ulp of the true value; inf for the wrong kind of number or the wrong sign of zero."""
    errors: list[float] = []
    for operand, result in zip(x.tolist(), y.tolist(), strict=True):
        true = true_value(name, operand)
        nearest = float(true)
        if math.isnan(nearest) or math.isinf(nearest) or math.isnan(result) or math.isinf(result):
            # the one infinity that is allowed beside a finite value is overflow within the bound
            same = (math.isnan(nearest) and math.isnan(result)) or nearest == result
            limit = mpf(2) ** 1024
            overflow = math.isinf(result) and mpmath.isfinite(true) and abs(true) > limit * (1 - mpf(2) ** -53)
            errors.append(0.0 if same or overflow else math.inf)
            continue
        exponent = -1022 if true == 0 else max(int(mpmath.mag(true)) - 1, -1022)
        errors.append(float(abs(mpf(result) - true) / mpf(2) ** (exponent - 52)))
    return errors


def single_errors(y: Array, true: Array) -> Array:
    """As double_errors, for float results and true values in double."""
    with np.errstate(all="ignore"):
        nearest = true.astype(np.float32)
        _, exponent = np.frexp(true)
        errors = np.abs(y.astype(np.float64) - true) / np.ldexp(1.0, np.maximum(exponent - 1, -126) - 23)
        same = (y == nearest) | (np.isnan(y) & np.isnan(nearest))
        return np.where(np.isfinite(errors), errors, np.where(same, 0.0, np.inf))


def reference(name: str, x: Array) -> Array:
    """The function in double, for operands that are floats: NumPy's where it is good to a few ulp, else ours."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        return getattr(np, name)(wide) if hasattr(np, name) else kernel(name, "double", 8)(wide)


@pytest.mark.parametrize("name", VECTOR)
def test_single_is_within_its_bound(name: str) -> None:
    count = 1 << 18
    patterns = np.linspace(0, (1 << 32) - 1, count).astype(np.uint32).view(np.float32)
    x = padded(np.concatenate([patterns, random_numbers("float", count // 4), boundaries("float")]))
    errors = single_errors(kernel(name, "float", 16)(x), reference(name, x))
    worst = int(np.argmax(errors))
    assert errors[worst] <= FUNCTIONS[name].ulp["float"], f"{name}({float(x[worst])!r}) is {errors[worst]:.3f} ulp off"


@pytest.mark.parametrize("name", VECTOR)
def test_double_is_within_its_bound(name: str) -> None:
    x = padded(np.concatenate([random_numbers("double", 1500), boundaries("double")]))
    errors = double_errors(name, x, kernel(name, "double", 8)(x))
    worst = int(np.argmax(errors))
    assert errors[worst] <= FUNCTIONS[name].ulp["double"], f"{name}({float(x[worst])!r}) is {errors[worst]:.3f} ulp off"


@pytest.mark.parametrize(("ty", "lanes"), WIDTHS)
@pytest.mark.parametrize("name", VECTOR)
def test_every_width_gives_the_same_bits(name: str, ty: str, lanes: int) -> None:
    x = padded(np.concatenate([random_numbers(ty, 2000), boundaries(ty)]))
    wide = kernel(name, ty, 16 if ty == "float" else 8)(x)
    np.testing.assert_array_equal(kernel(name, ty, lanes)(x), wide)


@pytest.mark.skipif(not AVX512, reason="the host has one recipe only")
@pytest.mark.parametrize("ty", ["float", "double"])
@pytest.mark.parametrize("name", VECTOR)
def test_avx512_changes_no_bits(name: str, ty: str) -> None:
    x = padded(np.concatenate([random_numbers(ty, 4000), boundaries(ty)]))
    np.testing.assert_array_equal(kernel(name, ty, 8)(x), kernel(name, ty, 8, has_avx512=False)(x))


@pytest.mark.parametrize("ty", ["float", "double"])
@pytest.mark.parametrize("name", VECTOR)
def test_without_fma_within_two_ulp(name: str, ty: str) -> None:
    x = padded(np.concatenate([random_numbers(ty, 30000 if ty == "float" else 600), boundaries(ty)]))
    y = kernel(name, ty, 4, has_fma=False, has_avx512=False)(x)
    errors = single_errors(y, reference(name, x)) if ty == "float" else np.array(double_errors(name, x, y))
    worst = int(np.argmax(errors))
    assert errors[worst] <= 2, f"{name}({float(x[worst])!r}) is {errors[worst]:.3f} ulp off"


@pytest.mark.parametrize("ty", ["float", "double"])
@pytest.mark.parametrize("name", VECTOR)
def test_special_values(name: str, ty: str) -> None:
    dtype = DTYPES[ty]
    call = kernel(name, ty, 16 if ty == "float" else 8)
    x = padded(np.array([math.nan, -math.nan, -math.inf, math.inf, 0.0, -0.0], dtype=dtype))
    y = call(x)
    assert np.isnan(y[:2]).all()
    np.testing.assert_allclose(y[2:4], np.array(INFINITE[name], dtype=dtype), rtol=1e-6)
    if name in ODD:
        zeros = np.array([0.0, -0.0], dtype=dtype)
        np.testing.assert_array_equal(y[4:6].view(np.uint8), zeros.view(np.uint8))
        tiny = padded(np.finfo(dtype).smallest_subnormal * np.array([1, -1, 2, 3, -5, 1000], dtype=dtype))
        if name != "cbrt":
            expected = np.array([float(true_value(name, float(v))) for v in tiny]).astype(dtype)
            np.testing.assert_array_equal(call(tiny), expected)
        x = padded(np.abs(random_numbers(ty, 2000)))
        np.testing.assert_array_equal(call(-x), -call(x)) if name not in ("expm1", "log1p") else None


@pytest.mark.parametrize("name", PERIODIC)
@pytest.mark.parametrize("ty", ["float", "double"])
def test_huge_arguments_beside_small_ones(name: str, ty: str) -> None:
    """Lanes that go to the C library do not disturb their neighbours, wherever they stand."""
    dtype = DTYPES[ty]
    lanes = 16 if ty == "float" else 8
    small = np.random.default_rng(3).uniform(-3, 3, lanes * lanes).astype(dtype)
    mixed = small.copy()
    huge = (np.random.default_rng(4).uniform(1, 9, lanes) * 1e30).astype(dtype)
    mixed[:: lanes + 1] = huge
    call = kernel(name, ty, lanes)
    expected = call(small)
    expected[:: lanes + 1] = [float(true_value(name, float(v))) for v in huge]
    np.testing.assert_allclose(call(mixed), expected, rtol=4 * np.finfo(dtype).eps)


GAMMA: Final = {"lgamma": math.lgamma, "tgamma": math.gamma}
SPECIAL: Final = [0.0, 1.0, 2.0, 3.0, 0.5, 2.5, 1e-3, 1e6, 2.0**-1074, 1e300, math.inf, math.nan]


@pytest.mark.parametrize("has_fma", [True, False] if FMA else [False])
@pytest.mark.parametrize("ty", ["float", "double"])
@pytest.mark.parametrize("name", ["pow", "arctan2", "hypot"])
def test_special_pairs_are_as_in_numpy(name: str, ty: str, has_fma: bool) -> None:
    with np.errstate(all="ignore"):
        values = np.array([*SPECIAL, *(-v for v in SPECIAL)]).astype(DTYPES[ty])
        x, y = (padded(v.ravel()) for v in np.meshgrid(values, values))
        expected = getattr(np, "power" if name == "pow" else name)(x, y)
    result = kernel(name, ty, 8, has_fma=has_fma, has_avx512=AVX512 and has_fma)(x, y)
    np.testing.assert_allclose(result, expected, rtol=4 * np.finfo(DTYPES[ty]).eps, atol=0)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize(("name", "true"), [("pow", mpmath.power), ("arctan2", mpmath.atan2), ("hypot", mpmath.hypot)])
def test_pairs_are_within_their_bounds(name: str, true: Callable[[mpf, mpf], mpf]) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(0, 3, 800), np.ldexp(rng.uniform(1, 2, 800), rng.integers(-1000, 1000, 800))])
    y = np.concatenate([rng.uniform(-30, 30, 800), np.ldexp(rng.uniform(-2, 2, 800), rng.integers(-9, -1, 800))])
    with mpmath.workprec(200):
        exact = [true(mpf(a), mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    errors = [
        float(abs(mpf(r) - e) / mpf(2) ** (max(int(mpmath.mag(e)) - 1, -1022) - 52))
        for r, e in zip(kernel(name, "double", 8)(x, y).tolist(), exact, strict=True)
    ]
    assert max(errors) <= FUNCTIONS[name].ulp["double"]
    with np.errstate(all="ignore"):
        x, y = x.astype(np.float32), y.astype(np.float32)
        wide = kernel(name, "double", 8)(x.astype(np.float64), y.astype(np.float64))
    assert single_errors(kernel(name, "float", 16)(x, y), wide).max() <= FUNCTIONS[name].ulp["float"]


@pytest.mark.parametrize("base", [2, 10])
def test_logarithms_of_powers_of_their_base_are_exact(base: int) -> None:
    exponents = np.arange(-16, 16) if base == 2 else np.arange(16)
    x = padded(np.array([float(base) ** int(e) for e in exponents]))
    np.testing.assert_array_equal(kernel(f"log{base}", "double", 8)(x), padded(exponents.astype(np.float64)))


@pytest.mark.parametrize("name", ["lgamma", "tgamma"])
def test_library_functions_lane_by_lane(name: str) -> None:
    x = padded(np.random.default_rng(6).uniform(0.1, 20, 64))
    np.testing.assert_allclose(kernel(name, "double", 8)(x), [GAMMA[name](v) for v in x.tolist()], rtol=1e-13)


@pytest.mark.skipif(not AVX512, reason="needs 512-bit vectors")
@pytest.mark.parametrize("name", VECTOR)
def test_code_uses_whole_vectors(name: str) -> None:
    module = llvm.parse_assembly(source(name, "double", 8, has_fma=True, has_avx512=True))
    text = machine().emit_assembly(module)
    scalar = re.findall(r"\bv(?:add|mul|sub|fn?madd\d+)sd\b", text)
    assert "%zmm" in text
    assert not scalar, "no arithmetic lane by lane"


def test_half_is_computed_in_float() -> None:
    a = Assembler(has_half=True)
    y = FUNCTIONS["exp"].emit(a, V("%x", "half", 8))
    assert y.type == "<8 x half>"
    assert sum("fpext" in line for line in a.lines) == sum("fptrunc" in line for line in a.lines) == 1


def test_scalar_operands_are_splatted_and_others_refused() -> None:
    a = Assembler()
    assert FUNCTIONS["pow"].emit(a, V("%x", "double", 4), a.const(2.0, "double")).lanes == 4
    with pytest.raises(TypeError, match="exp takes 1 operands, not 2"):
        FUNCTIONS["exp"].emit(a, V("%x", "double"), V("%y", "double"))
    with pytest.raises(TypeError, match="float or double operands of one type"):
        FUNCTIONS["exp"].emit(a, V("%x", "i64"))


def test_no_fast_math_flag_gets_inside() -> None:
    a = Assembler(flags="fast")
    FUNCTIONS["sin"].emit(a, V("%x", "double", 8))
    assert not [line for line in a.lines if " fast " in line]


def test_library_calls_go_the_way_the_owner_says() -> None:
    a = Assembler()
    names: list[str] = []

    def through_table(name: str, ty: str, arguments: Sequence[V]) -> V:
        names.append(name)
        return a.call_pointer(V("%table", "ptr"), ty, arguments)

    a.library = through_table
    FUNCTIONS["sin"].emit(a, V("%x", "float", 8))
    FUNCTIONS["lgamma"].emit(a, V("%x", "float", 2))
    assert names == ["sin", "lgammaf", "lgammaf"]
    assert all("@llvm." in line for line in a.declarations())


@pytest.mark.parametrize("name", VECTOR)
def test_code_without_fma_calls_no_fma(name: str) -> None:
    for ty, lanes in (("float", 4), ("double", 1)):
        module = llvm.parse_assembly(source(name, ty, lanes, has_fma=False, has_avx512=False))
        assert "fma" not in machine(has_fma=False).emit_assembly(module)


def test_records_are_complete() -> None:
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert function.doc
        assert function.source
        assert set(function.ulp) == {"float", "double"}
