"""Programs about scalars and dtypes, as NumPy users write them: values, dtypes, kinds, exceptions, written arguments."""

from __future__ import annotations

import copy
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.strategies import same_bits

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Program, tuple[Any, ...]]] = {}


def program(*args: Any) -> Callable[[Program], Program]:
    def keep(f: Program) -> Program:
        PROGRAMS[f.__name__] = f, args
        return f

    return keep


def same(found: Any, expected: Any, near: bool) -> bool:
    """Equal in kind, dtype and bits; with `near` floats may differ by a few units of the last place."""
    if type(found) is not type(expected):
        return False
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(same(a, b, near) for a, b in zip(found, expected, strict=True))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[k], expected[k], near) for k in expected)
    if isinstance(expected, (np.ndarray, np.generic, float)):
        if same_bits(found, expected):
            return True
        a, b = np.asarray(found), np.asarray(expected)
        eps = {"e": 2e-3, "f": 1e-6, "d": 1e-14}.get(a.dtype.char)
        if not near or eps is None or (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        return np.allclose(a.astype(float), b.astype(float), rtol=eps, atol=0, equal_nan=True)
    return bool(found == expected)


HALVES = np.array([1.5, -2.25, 0.1, 60000.0, -0.0, 2.0], np.float16)
GLOBAL = np.array([1, 2, 3], np.float16)
IMAGE = np.random.default_rng(0).integers(0, 256, (6, 7, 3)).astype(np.uint8)


@program(np.random.default_rng(0).standard_normal((8, 5)).astype("f2"))
def softmax_of_halves(x):  # type: ignore[no-untyped-def]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@program(IMAGE)
def grey(image):  # type: ignore[no-untyped-def]
    g = image @ np.array([0.299, 0.587, 0.114])
    return g.astype(np.uint8), image.mean(axis=(0, 1)), 255 - image, (image.astype("f4") / 255) ** 2.2


@program(IMAGE)
def thresholds(image):  # type: ignore[no-untyped-def]
    out = np.zeros_like(image)
    out[image > 127] = 255
    return out, np.where(image > 127, image, 0), np.clip(image.astype("i2") + 50, 0, 255).astype("u1"), np.sqrt(image)


@program(np.arange(10))
def bit_tricks(x):  # type: ignore[no-untyped-def]
    return (
        np.bitwise_count(x), x & -x, x ^ (x >> 1), np.bitwise_xor.reduce(x), ~x, np.left_shift(1, x), np.gcd(x, 6),
        np.lcm(x, 4), np.gcd.reduce(x[1:]), x[3].bit_count(),
    )  # fmt: skip


@program(np.arange(1, 9).astype("u8"))
def xorshift(s):  # type: ignore[no-untyped-def]
    s = s ^ (s << np.uint64(13))
    s = s ^ (s >> np.uint64(7))
    s = s ^ (s << np.uint64(17))
    return s, (s >> np.uint64(11)) * (1.0 / 2**53)


@program(np.uint32(7))
def congruential(s):  # type: ignore[no-untyped-def]
    for _ in range(5):
        s = s * np.uint32(1664525) + np.uint32(1013904223)
    return s


@program(5)
def fibonacci(n):  # type: ignore[no-untyped-def]
    a, b = 0, 1
    for _ in range(n * 20):
        a, b = b, a + b
    return a


@program(30)
def factorial(n):  # type: ignore[no-untyped-def]
    r = 1
    for i in range(1, n + 1):
        r *= i
    return r


@program(48, 36)
def euclid(a, b):  # type: ignore[no-untyped-def]
    while b:
        a, b = b, a % b
    return a


@program(HALVES)
def halves_in_a_loop(x):  # type: ignore[no-untyped-def]
    s = np.float16(0)
    for i in range(len(x)):
        s = s + x[i]
    return s, GLOBAL * 2, GLOBAL[1] * x[0]


@program(HALVES)
def halves_until(x):  # type: ignore[no-untyped-def]
    s, i = np.float16(0), 0
    while i < len(x) and s < 4:
        s += x[i]
        i += 1
    return s, i


@program(HALVES)
def writes_into_halves(x):  # type: ignore[no-untyped-def]
    x[2] = 1e6
    x[3] += 0.1
    x[x < 0] = 0
    x[::2] *= np.float32(1.5)
    return x


@program(HALVES)
def out_and_dtype(x):  # type: ignore[no-untyped-def]
    out = np.empty(6, np.float16)
    np.add(x, 1, out=out)
    np.multiply(x, 2.0, out=out, where=x > 0)
    roots = np.zeros(6, "f4")
    np.sqrt(abs(x), out=roots)
    return out, roots, np.add(x, x, dtype="f4"), np.add(x, 1.5, dtype="f8")


@program(HALVES)
def reductions_of_halves(x):  # type: ignore[no-untyped-def]
    y = x[:3]
    return (
        np.sum(x, dtype=np.float16), y.sum(dtype="f4"), np.add.reduce(y), np.maximum.reduce(x), np.add.accumulate(y),
        y.var(), y.std(), y.mean(dtype="f8"), np.mean(y), x.min(), x.argmin(), x.any(), np.count_nonzero(x), y @ y,
    )  # fmt: skip


@program(HALVES[:4], np.arange(4))
def halves_with_others(x, i):  # type: ignore[no-untyped-def]
    return (
        x + i, x * i.astype("u1"), x + np.float32(1), x + 1, x + 1.5, x * np.int8(2), x**2, x**0.5, i * np.float16(0.5),
        x[i], np.where(i > 1, x, i), x.tolist(), float(x[0]), int(x[0]), x.astype("f8").astype("f2"), x.astype("u1"),
    )  # fmt: skip


@program(np.array([True, False]))
def functions_of_bools(b):  # type: ignore[no-untyped-def]
    return (
        np.sqrt(b), np.exp(b), b / 2, np.floor(b), np.isfinite(b), np.hypot(b, b), np.mean(b), np.arctan2(b, 1),
        np.frexp(b), np.power(b, 2), b**2, b * 1.5, np.add(b, 1), b + np.int8(1), np.round(b), np.square(b), np.rint(b),
    )  # fmt: skip


@program(np.arange(5, dtype="u1"))
def functions_of_bytes(x):  # type: ignore[no-untyped-def]
    return (
        np.sqrt(x), np.log1p(x), np.true_divide(x, 2), np.arctan2(x, x), x**0.5, np.cbrt(x), np.signbit(x), np.deg2rad(x),
        np.modf(x), x / np.uint8(2), x / 2.0, np.sinc(x), np.copysign(x, x), x - np.uint8(2), x * 100, -x, x // 2, x - 3,
    )  # fmt: skip


@program(np.arange(4.0), np.arange(4))
def uncommon_ufuncs(x, i):  # type: ignore[no-untyped-def]
    return (
        np.ldexp(x, i), np.frexp(x)[1] + i, np.modf(x / 3)[1], np.nextafter(x, np.inf), np.spacing(x),
        np.heaviside(x - 1, 0.5), np.float_power(i, -1.0), np.divmod(-i, 3), np.hypot.outer(x, x),
        np.logaddexp.accumulate(x), np.vecdot(x, x), np.arcsinh(x), np.logaddexp2(x, x),
    )  # fmt: skip


@program(np.arange(6.0))
def two_results_into_arrays(x):  # type: ignore[no-untyped-def]
    a, b = np.empty(6), np.empty(6)
    r = np.divmod(x, 2, out=(a, b))
    m, _ = np.modf(x * 0.3, a, None)
    return a, b, r[0] is a, m is a, np.frexp(x, out=(x, np.empty(6, "i4")))[1]


@program(np.arange(3, dtype="i4"))
def limits_of_int32(i):  # type: ignore[no-untyped-def]
    return (
        i + 2**31 - 1, i - 2**31, i * np.int64(2), i + np.int64(2**40), i < 2**40, np.clip(i, -(2**40), 2**40),
        np.maximum(i, -5), i.astype("u4") - 1, np.abs(i - 2**31), i // 0, i % 0,
    )  # fmt: skip


@program(np.arange(3, dtype="i4"), 2**40)
def an_int_that_does_not_fit(i, n):  # type: ignore[no-untyped-def]
    return i + n


@program(np.arange(300).astype("u1"))
def a_size_that_does_not_fit(x):  # type: ignore[no-untyped-def]
    return x + x.shape[0]


@program(np.array([2**63], np.uint64), np.array([-1]))
def signed_with_unsigned(a, b):  # type: ignore[no-untyped-def]
    return a > b, a == b, a + b, a * b, np.maximum(a, b), a != b, a <= b, np.less(b, a)


@program(np.array([0, 1, 2]), np.array([0.0, 1.0, 2.0]))
def zeros_below(i, x):  # type: ignore[no-untyped-def]
    return i / i, x / x, i // 0, i % 0, x // 0, x % 0, 1 / x, i**i, x**-1, 2**i, (-8) ** x, i / 0, -x / 0


@program(np.arange(3.0), 3, 2.5)
def numbers_of_all_kinds(x, n, s):  # type: ignore[no-untyped-def]
    k = x[1]
    return (
        n * x, x**n, n / 2, n // 2, -n, np.int32(n) + x.astype("i4"), np.sqrt(n), n << 2, n.bit_length(), np.add(n, 1),
        s**2, s // 1, int(s), round(s), s * np.float32(1), np.float32(s) * x.astype("f4"), np.sqrt(s), np.array(s),
        k + n, k * s, k // n, divmod(k, n), round(k / 2), min(k, n), sum([k, n]), k == 1, bool(k), k.item(),
    )  # fmt: skip


@program(np.array(2.0))
def zero_dimensional(z):  # type: ignore[no-untyped-def]
    return (
        z + 1, np.sin(z), z.copy(), np.where(z > 1, z, 0), z[()], z.sum(), -z, z.reshape(()), np.add(z, z), z * np.ones(3),
        z.astype(int), z.round(), np.clip(z, 0, 1), np.abs(z), z == 2, np.isclose(z, 2), np.ravel(z), np.modf(z), z**0.5,
    )  # fmt: skip


@program(np.array([3, 5, 7]), "f4", np.int16, np.dtype("u1"))
def dtypes_as_arguments(y, a, b, c):  # type: ignore[no-untyped-def]
    return (
        y.astype(a), y.astype(b), y.astype(c), np.zeros(2, a), np.dtype(a).itemsize, np.result_type(a, b),
        np.can_cast(b, a), np.issubdtype(b, np.integer), np.iinfo(b).max, np.finfo(a).eps, b(3) + y, np.arange(3, dtype=a),
        np.result_type(y, np.float32(1)), np.promote_types("i4", y.dtype), np.min_scalar_type(10), np.isscalar(y[0]),
        isinstance(y[0], np.integer), type(y[0]) is np.int64, y.dtype.kind, y.itemsize, y.astype(np.result_type(y, "f4")),
    )  # fmt: skip


@program(np.arange(4.0))
def casts_that_are_refused(x):  # type: ignore[no-untyped-def]
    return x.astype("i4", casting="safe")


@program(np.array([2.5, -3.7, 0.3]), np.array([12, 18, -6]))
def mathematics_of_scalars(x, i):  # type: ignore[no-untyped-def]
    return (
        math.modf(x[1]), math.frexp(x[0]), math.ldexp(x[0], 3), math.nextafter(x[0], 3), math.gcd(i[0], i[1], i[2]),
        operator.index(i[0]), math.gamma(x[0]), math.fsum(x), math.remainder(x[0], 2), math.ulp(x[0]), math.floor(x[1]),
        math.ceil(x[1]), math.trunc(x[1]), math.isnan(x[0]), math.copysign(x[0], x[1]), math.fmod(x[1], 2),
    )  # fmt: skip


@program(np.array([0.3]))
def mathematics_out_of_its_domain(x):  # type: ignore[no-untyped-def]
    return math.acosh(x[0])


@program(np.array([-1.5, 0, 2.5, np.nan]))
def composed_functions(x):  # type: ignore[no-untyped-def]
    return (
        np.fix(x), np.nan_to_num(x), np.round(x, 1), np.angle(x), np.isposinf(x), np.unwrap(x[:3]), np.sinc(x),
        np.interp(x[:3], [0, 1], [0, 10]), np.isclose(x, x), np.array_equal(x, x), np.allclose(x[:3], x[:3]), x.clip(max=1),
    )  # fmt: skip


@program(np.array([1.0, 0.0, 3.0]))
def any_and_all(x):  # type: ignore[no-untyped-def]
    return (
        any([x[1], 0]), all([x[0], x[2]]), any(v > 2 for v in x), all(v >= 0 for v in x), any(x > 2), all(x > 2),
        1 if any([x[0] > 5, x[1] > 0]) else 2, any([]), all([]), any(x[i] > 2 for i in range(3)), all([True, x[0] > 0]),
        any(k > 5 for k in itertools.count()), all(d > 1 for d in x.shape),
    )  # fmt: skip


@program(np.float64(2.5), np.int32(-7), np.bool_(True), np.uint8(200), np.float16(1.5))
def scalars_of_all_dtypes(s, i, b, u, h):  # type: ignore[no-untyped-def]
    return (
        s.astype(int), s.round(), s.clip(0, 1), s.ravel(), s.T, s.item(), i.astype("u1"), ~i, divmod(i, 3), i.view("u4"),
        b + b, b / b, b**2, b << 1, u + u, -u, u + i, u + h, u < 300, h + s, h + 1.5, h**0.5, int(h), round(h), s // 0,
        i // 0, u // np.uint8(0), np.float32(s) ** 200, s[()], s[...], np.where(b, s, i), np.stack([s, s]), [s, i, b][0],
        isinstance(s, float), isinstance(i, int), s > 1 and i < 0, 1 < s < 3, max(u, np.uint8(3)), pow(i, 2),
    )  # fmt: skip


@program(np.float64(2.5))
def products_of_scalars(s):  # type: ignore[no-untyped-def]
    return s @ s


@program(np.uint8(200))
def a_number_beyond_uint8(u):  # type: ignore[no-untyped-def]
    return u + 300


@pytest.mark.parametrize("numerics", ["numpy", "default"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, numerics: str) -> None:
    f, args = PROGRAMS[name]
    theirs, ours = copy.deepcopy(args), copy.deepcopy(args)
    expected: Any
    try:
        expected = f(*theirs)
    except (TypeError, ValueError, ArithmeticError) as error:
        builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        with pytest.raises(builtin):
            jg.jit(f, numerics=numerics)(*ours)  # type: ignore[call-overload]
        return
    found = jg.jit(f, numerics=numerics)(*ours)  # type: ignore[call-overload]
    near = numerics == "default"
    parts = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    wrong = [f"result {k}: {b!r}, but {a!r}" for k, (a, b) in enumerate(parts) if not same(a, b, near)]
    assert not wrong
    assert same(ours, theirs, near)


TABLE = [10, 20, 30]


def test_lists_of_numbers_by_a_traced_index() -> None:
    i = np.array([2, 0, -1, 5])
    f = jg.jit(lambda i: (TABLE[i[0]], (1.5, 2.5)[i[1]], [TABLE[k] for k in i[:3]]))
    try:
        assert f(i) == (30, 1.5, [30, 10, 30])
        TABLE[2] = 99
        assert f(i) == (99, 1.5, [99, 10, 99])
    finally:
        TABLE[2] = 30
    with pytest.raises(IndexError):
        jg.jit(lambda i: TABLE[i[3]])(i)
    with pytest.warns(UserWarning, match="runs in plain Python"):  # numbers of several kinds
        assert jg.jit(lambda i: [1, 2.5][i[1]])(i) == 1
    np.testing.assert_array_equal(jg.jit(lambda n, a, b: [a, b][n])(1, np.zeros(2), np.ones(2)), np.ones(2))
