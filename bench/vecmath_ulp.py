"""Measure the vector functions: largest error in ulp, wrong special values, and nanoseconds per element.

    python bench/vecmath_ulp.py [name ...] [--all] [--stride N] [--points N] [--no-fma] [--no-avx512] [--speed]

float: every N-th bit pattern (`--all`: each of the 2^32, a minute a function) against the same function in
double, whose own errors are 2^-29 of a float's ulp. double: random points of several distributions against mpmath.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time
from typing import TYPE_CHECKING, Final

import llvmlite.binding as llvm
import mpmath
import numpy as np
from mpmath import mpf

from jitgraph.codegen.assembler import Assembler, V
from jitgraph.codegen.vecmath import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Array = np.ndarray[tuple[int], np.dtype[np.floating]]

mpmath.mp.prec = 140
Measured = tuple[float, "float | tuple[float, ...]", int]
CHUNK: Final = 1 << 16  # small enough for the caches
REFERENCES: Final[dict[str, Callable[..., mpf]]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.ln2,
    "log10": mpmath.log10,
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
    "pow": mpmath.power,
    "arctan2": mpmath.atan2,
    "hypot": mpmath.hypot,
}
INTERVALS: Final = {  # for timing
    **dict.fromkeys(("log", "log2", "log10", "cbrt"), (0.01, 100)),
    **dict.fromkeys(("sin", "cos", "tan"), (-100, 100)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), (-1, 1)),
    "log1p": (-0.9, 10),
    "arccosh": (1, 9),
    "pow": (0.1, 9),
}


class Kernel:
    """A loop over one function, called on arrays whose size is a multiple of `lanes`."""

    def __init__(self, name: str, ty: str, lanes: int, *, has_fma: bool = True, has_avx512: bool = True) -> None:
        function = FUNCTIONS[name]
        a = Assembler(has_fma=has_fma, has_avx512=has_avx512)
        inputs = [V(f"%x{i}", "ptr") for i in range(function.arity)]
        loop, done, before = a.fresh_label("loop"), a.fresh_label("done"), a.block
        a.label(loop)
        i = a.phi([(a.const(0, "i64"), before)])
        operands = [a.load(a.gep(pointer, i, ty), ty, lanes=lanes, align=4) for pointer in inputs]
        a.store(function.emit(a, *operands), a.gep(V("%y", "ptr"), i, ty), align=4)
        following = a.add(i, a.const(lanes, "i64"))
        a.add_incoming(i, following, a.block)
        a.condbr(a.icmp("ult", following, V("%n", "i64")), loop, done)
        a.label(done)
        a.ret()
        parameters = ", ".join([f"ptr noalias {p.text}" for p in inputs] + ["ptr noalias %y", "i64 %n"])
        definition = a.function("kernel", parameters, attributes='nounwind "prefer-vector-width"="512"')
        self.module = llvm.parse_assembly("\n".join([*a.declarations(), definition]))
        self.module.verify()
        features = llvm.get_host_cpu_features()
        for feature in () if has_fma else ("fma", "fma4"):
            features[feature] = False
        for feature in list(features):
            features[feature] = features[feature] and (
                (has_fma and has_avx512) or not feature.startswith(("avx512", "avx10"))
            )
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name() if has_fma and has_avx512 else "x86-64", features=features.flatten(), opt=2
        )
        self.engine = llvm.create_mcjit_compiler(self.module, machine)
        self.engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (function.arity + 1), ctypes.c_int64)
        self.entry = kind(self.engine.get_function_address("kernel"))

    def __call__(self, *x: Array) -> Array:
        """The function of arrays of one shape."""
        y = np.empty_like(x[0])
        self.entry(*[operand.ctypes.data for operand in x], y.ctypes.data, x[0].size)
        return y


def single_errors(result: Array, true: Array) -> Array:
    """Errors of float results in ulp of the true value; inf for the wrong kind of number or the wrong sign."""
    power = (true.view(np.int64) & 0x7FF0_0000_0000_0000).view(np.float64)
    errors = np.abs(result.astype(np.float64) - true) / np.maximum(power * 2.0**-23, 2.0**-149)
    (special,) = np.nonzero(~np.isfinite(errors))
    if special.size:
        y, nearest = result[special], true[special].astype(np.float32)
        # what rounds to the same float is right even where the true value is beyond the largest
        errors[special] = np.where((y == nearest) | (np.isnan(y) & np.isnan(nearest)), 0.0, np.inf)
    errors[((result.view(np.int32) < 0) != (true.view(np.int64) < 0)) & ~np.isnan(result)] = np.inf
    return errors


def measure_single(name: str, stride: int, flags: dict[str, bool]) -> Measured:
    """Largest error, where, and how many patterns are more than one ulp off."""
    kernel, double = Kernel(name, "float", 16, **flags), Kernel(name, "double", 8)
    worst, place, above = 0.0, math.nan, 0
    for start in range(0, 1 << 32, CHUNK * stride):
        patterns = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, dtype=np.uint64)
        patterns = np.resize(patterns, -(-patterns.size // 16) * 16)
        x = patterns.astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            errors = single_errors(kernel(x), double(x.astype(np.float64)))
        at = int(np.argmax(errors))
        above += int(np.count_nonzero(errors > 1))
        if errors[at] > worst:
            worst, place = float(errors[at]), float(x[at])
    return worst, place, above


def measure_single_pairs(name: str, count: int, flags: dict[str, bool]) -> Measured:
    """The same for functions of two operands, on random pairs."""
    kernel, double = Kernel(name, "float", 16, **flags), Kernel(name, "double", 8)
    rng = np.random.default_rng(2)
    worst, place, above = 0.0, math.nan, 0
    for turn in range(count // CHUNK):
        if turn % 4 == 0:
            x, y = rng.integers(0, 1 << 32, (2, CHUNK), dtype=np.uint64).astype(np.uint32).view(np.float32)
        else:
            x, y = rng.uniform(-1, 1, (2, CHUNK)).astype(np.float32) * np.float32([2, 30, 4][turn % 3])
            x = abs(x) if turn % 4 == 1 else x
        with np.errstate(all="ignore"):
            errors = single_errors(kernel(x, y), double(x.astype(np.float64), y.astype(np.float64)))
        at = int(np.argmax(errors))
        above += int(np.count_nonzero(errors > 1))
        if errors[at] > worst:
            worst, place = float(errors[at]), (float(x[at]), float(y[at]))
    return worst, place, above


def points(rng: np.random.Generator, count: int) -> Array:
    """Doubles of several distributions: all bit patterns, all moderate exponents, uniform, near multiples of pi/2."""
    part = count // 8
    return np.concatenate(
        [
            rng.integers(0, 1 << 64, part, dtype=np.uint64).view(np.float64),
            np.ldexp(rng.uniform(-2, 2, 2 * part), rng.integers(-40, 22, 2 * part)),
            rng.uniform(-1.5, 1.5, 2 * part),
            rng.uniform(-12, 12, part),
            rng.uniform(-746, 746, part),
            rng.integers(-(1 << 20), 1 << 20, part) * (np.pi / 2),
        ]
    )


def double_error(result: float, true: mpf) -> float:
    """Error in ulp of the true value; inf where it is not even the same kind of number."""
    if mpmath.isnan(true) or math.isnan(result):
        return 0.0 if mpmath.isnan(true) and math.isnan(result) else math.inf
    if float(true) == result:
        if math.isinf(result) or result == 0:
            return 0.0
    elif math.isinf(result) or math.isinf(float(true)):
        return math.inf
    exponent = -1022 if true == 0 else max(int(mpmath.floor(mpmath.log(abs(true), 2))), -1022)
    return float(abs(mpf(result) - true) / mpmath.ldexp(1, exponent - 52))


def true_value(name: str, *x: float) -> mpf:
    """The value at 140 bits; NaN outside the domain."""
    if any(math.isnan(value) for value in x):
        return mpf("nan")
    try:
        if name in ("sin", "cos", "tan") and math.isinf(x[0]):
            return mpf("nan")
        if name in ("sin", "cos", "tan"):
            with mpmath.workprec(1300):
                return +REFERENCES[name](mpf(x[0]))
        if name in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid", "erf", "erfc") and abs(x[0]) > 1e4:
            return REFERENCES[name](mpf(math.copysign(1e4, x[0])))
        with mpmath.workprec(400):
            value = REFERENCES[name](*[mpf(v) for v in x])
    except (ValueError, ZeroDivisionError):
        return mpf("-inf") if name.startswith("log") and x[0] in (0, -1) else mpf("nan")
    return value if isinstance(value, mpf) else mpf("nan")


def measure_double(name: str, count: int, flags: dict[str, bool]) -> Measured:
    """As measure_single."""
    kernel = Kernel(name, "double", 8, **flags)
    rng = np.random.default_rng(1)
    arity = FUNCTIONS[name].arity
    x = [np.resize(points(rng, count), count // 8 * 8) for _ in range(arity)]
    results = kernel(*x)
    worst, place, above = 0.0, math.nan, 0
    for *operands, result in zip(*x, results, strict=True):
        error = double_error(float(result), true_value(name, *map(float, operands)))
        above += error > 1
        if error > worst:
            worst, place = error, tuple(map(float, operands)) if arity > 1 else float(operands[0])
    return worst, place, above


def speed(name: str, flags: dict[str, bool]) -> str:
    """Least ns per element over 65536 elements, float then double."""
    texts: list[str] = []
    for ty, dtype, lanes in (("float", np.float32, 16), ("double", np.float64, 8)):
        kernel = Kernel(name, ty, lanes, **flags)
        low, high = INTERVALS.get(name, (-4, 4))
        x = [np.random.default_rng(i).uniform(low, high, 65536).astype(dtype) for i in range(FUNCTIONS[name].arity)]
        best = math.inf
        for _ in range(300 if FUNCTIONS[name].vectorised else 10):
            start = time.perf_counter_ns()
            kernel(*x)
            best = min(best, time.perf_counter_ns() - start)
        texts.append(f"{best / 65536:.3f}")
    return " ; ".join(texts)


def main(arguments: Sequence[str] | None = None) -> None:
    """One line for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true", help="every float, not each 257th")
    parser.add_argument("--stride", type=int, default=257)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--no-fma", action="store_true")
    parser.add_argument("--no-avx512", action="store_true")
    parser.add_argument("--speed", action="store_true", help="time only")
    options = parser.parse_args(arguments)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    flags = {"has_fma": not options.no_fma, "has_avx512": not (options.no_fma or options.no_avx512)}
    for name in options.names or [name for name in FUNCTIONS if FUNCTIONS[name].vectorised]:
        line = f"{name:8} ns {speed(name, flags)}"
        if not options.speed:
            if FUNCTIONS[name].arity == 1:
                worst, place, above = measure_single(name, 1 if options.all else options.stride, flags)
            else:
                worst, place, above = measure_single_pairs(name, 1 << (32 if options.all else 24), flags)
            line += f" | float {worst:.3f} ulp at {place!r} ({above} > 1)"
            worst, place, above = measure_double(name, options.points, flags)
            line += f" | double {worst:.3f} ulp at {place!r} ({above} > 1)"
        print(line, flush=True)


if __name__ == "__main__":
    main()
