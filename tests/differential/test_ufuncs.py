"""Every NumPy ufunc and operator through machine code: dtypes, kinds of scalars (NEP 50), special values, exceptions.

Under numerics="numpy" bits, dtype, kind and class of the exception are NumPy's; by default functions are within a few
units of the last place. All operators of a pair of operands are one compiled function.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.strategies import numbers, same_bits, ulp_distance

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CODES = "?bBhHiIlLefd"
UFUNCS = sorted(
    {f for name in dir(np) if isinstance(f := getattr(np, name), np.ufunc) and f.signature is None},
    key=lambda f: f.__name__,
)
OPERATORS: dict[str, Any] = {
    f.__name__: f
    for f in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
        operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.eq, operator.ne,
        operator.lt, operator.le, operator.gt, operator.ge,
    )
}  # fmt: skip
#: The sign of a zero among equals is not promised.
FREE_ZERO = {np.maximum, np.minimum, np.fmax, np.fmin}


def outcome(f: Any, *args: Any) -> Any:
    """The result, or the exception."""
    with np.errstate(all="ignore"):
        try:
            return f(*args)
        except (TypeError, ValueError, ArithmeticError) as error:
            return error


def builtin_classes(error: Exception) -> tuple[type, ...]:
    general = (Exception, BaseException, object, ArithmeticError)
    return tuple(c for c in type(error).__mro__ if c.__module__ == "builtins" and c not in general)


def assert_same(found: Any, expected: Any, what: str, zero_sign: bool = True) -> None:
    if isinstance(expected, Exception):
        assert isinstance(found, builtin_classes(expected)), f"{what}: {expected!r}, but {found!r}"
        return
    if isinstance(expected, tuple):
        assert type(found) is tuple, f"{what}: {found!r}"
        for f, e in zip(found, expected, strict=True):
            assert_same(f, e, what, zero_sign)
        return
    assert type(found) is type(expected), f"{what}: {expected!r}, but {found!r}"
    assert same_bits(found, expected, zero_sign), f"{what}: {expected!r}, but {found!r}"


def compiled(functions: list[Any], args: tuple[Any, ...], numerics: str) -> list[Any]:
    """What each function answers, all of them in one compiled function."""

    def many(*xs: Any) -> list[Any]:
        return [f(*xs) for f in functions]

    return jg.jit(many, numerics=numerics)(*args)  # type: ignore[no-any-return, call-overload]


def part(ufunc: np.ufunc, start: int) -> Any:
    """The ufunc of its own operands among all."""
    return lambda *xs: ufunc(*xs[start : start + ufunc.nin])


def operands_of(ufunc: np.ufunc, code: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    x, y = (numbers(rng, np.dtype(code), 90) for _ in range(2))
    if ufunc is np.ldexp:
        y = rng.integers(-2200, 2200, 90).astype("i")
    if ufunc is np.power and code in "bhil":
        y = np.abs(y) >> 1
    return (x, y)[: ufunc.nin]


@pytest.mark.parametrize(
    ("code", "numerics"), [*((c, "numpy") for c in "?bBHilLefd"), *((c, "default") for c in "?hefd")]
)
def test_every_ufunc(code: str, numerics: str) -> None:
    rng = np.random.default_rng(CODES.index(code))
    kept = []
    for ufunc in UFUNCS:
        args = operands_of(ufunc, code, rng)
        expected = outcome(ufunc, *args)
        if isinstance(expected, Exception):
            if numerics == "numpy":
                assert_same(outcome(jg.jit(lambda *xs: ufunc(*xs)), *args), expected, f"{ufunc.__name__} {code}")  # noqa: B023
        else:
            kept.append((ufunc, args, expected))
    for nin in (1, 2):
        chosen = [k for k in kept if k[0].nin == nin]
        flat = [x for _, args, _ in chosen for x in args]
        functions = [part(ufunc, nin * i) for i, (ufunc, _, _) in enumerate(chosen)]
        for (ufunc, args, expected), found in zip(chosen, compiled(functions, tuple(flat), numerics), strict=True):
            what = f"{ufunc.__name__} of {code}"
            if numerics == "numpy" or np.asarray(expected[0]).dtype.kind != "f":
                assert_same(found, expected, what, ufunc not in FREE_ZERO)
            elif isinstance(expected, np.ndarray):
                assert found.dtype == expected.dtype, what
                with np.errstate(all="ignore"):
                    wide = ufunc(
                        *(x.astype("f8") if x.dtype.kind == "f" and ufunc is not np.spacing else x for x in args)
                    )
                true = wide if code in "ef" and ufunc is not np.nextafter else expected
                distance = np.where(found == expected, 0.0, ulp_distance(found, true, found.dtype))
                assert distance.max() <= 3, what


def values_of(code: str, rng: np.random.Generator) -> np.ndarray:
    dtype = np.dtype(code)
    if dtype.kind == "b":
        return rng.random(3) < 0.5
    if dtype.kind == "f":
        return rng.choice([0.0, -0.0, 1.0, 2.5, -3.5, np.inf, np.nan, -1e-3, 7.0], 3).astype(dtype)
    info = np.iinfo(dtype)
    pool = [0, 1, 2, 3, 7, info.max, info.max - 1, *([-1, -7, info.min, info.min + 1] if info.min else [])]
    return np.array([pool[k] for k in rng.integers(0, len(pool), 3)], dtype)


PYTHON = [True, 0, 1, -1, 3, 100, 300, -300, 2**31, 2**62, -(2**63), 0.0, 1.5, -2.0, float("nan"), 1e300]
BINARY: dict[str, Any] = {
    **OPERATORS,
    **{f.__name__: f for f in UFUNCS if f.nin == 2 and f not in FREE_ZERO},
}


def pairs(seed: int, count: int) -> list[tuple[str, Any, Any]]:
    """Pairs of operands of all kinds: arrays, NumPy scalars, 0-d arrays, Python numbers."""
    rng = np.random.default_rng(seed)
    operands: list[tuple[str, Any]] = []
    for code in CODES:
        v = values_of(code, rng)
        operands += [(f"array {code}", v), (f"scalar {code}", v[0]), (f"0-d {code}", np.array(v[1]))]
    strong = len(operands)
    operands += [(f"Python {x!r}", x) for x in PYTHON]
    chosen = []
    for _ in range(count):
        i, j = int(rng.integers(strong)), int(rng.integers(len(operands)))
        (left, a), (right, b) = operands[i], operands[j]
        if rng.random() < 0.5:
            left, a, right, b = right, b, left, a
        chosen.append((f"{left} with {right}", a, b))
    return chosen


@pytest.mark.parametrize("seed", range(3))
def test_promotion_of_all_kinds(seed: int) -> None:
    """Both operands as arguments; Python numbers as constants, too."""
    for what, a, b in pairs(seed, 8):
        good, bad = [], []
        for name, f in BINARY.items():
            expected = outcome(f, a, b)
            (bad if isinstance(expected, Exception) else good).append((name, f, expected))
        forms = [(lambda f: f, (a, b))]
        if isinstance(b, (bool, int, float)) and not isinstance(b, np.generic):
            forms.append((lambda f: lambda x: f(x, b), (a,)))  # noqa: B023
        elif isinstance(a, (bool, int, float)) and not isinstance(a, np.generic):
            forms.append((lambda f: lambda y: f(a, y), (b,)))  # noqa: B023
        for form, args in forms:
            answers = compiled([form(f) for _, f, _ in good], args, "numpy")
            for (name, _, expected), found in zip(good, answers, strict=True):
                assert_same(found, expected, f"{name}: {what}")
            for name, f, expected in bad[seed::6]:
                answer = outcome(jg.jit(form(f), numerics="numpy"), *args)
                assert_same(answer, expected, f"{name}: {what}")


BIG = 2**70
LONG: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "uint64 + 2**63": (lambda x: x + 2**63, (np.array([1, 2], np.uint64),)),
    "uint64 + 2**64": (lambda x: x + 2**64, (np.array([1, 2], np.uint64),)),
    "int64 + 2**63": (lambda x: x + 2**63, (np.array([1, 2]),)),
    "float * 2**70": (lambda x: x * BIG, (np.array([1.5, -np.inf]),)),
    "float32 + 2**70": (lambda x: x + BIG, (np.array([1.5], np.float32),)),
    "int64 < 2**63": (lambda x: (x < 2**63, x == BIG, x >= -BIG), (np.array([1, 2**62]),)),
    "uint64 against its limits": (
        lambda x: (x > -1, x == 2**64 - 1, x < BIG, x >= 2**63),
        (np.array([1, 2**64 - 1], np.uint64),),
    ),
    "a uint64 scalar": (lambda s: (s, s - np.uint64(1), s == 2**64 - 1), (np.uint64(2**64 - 1),)),
    "an int that no slot holds": (lambda n: n + 1, (BIG,)),
    "an int that overflows": (lambda n: (n * 4, n + n + 1, -n), (2**62,)),
    "the least int": (lambda n: (-n, abs(n)), (-(2**63),)),
    "an int with a longer one": (lambda n: (n + BIG, n < BIG, n == BIG, (n * BIG) // 2**69), (5,)),
    "a float with a long int": (lambda s: (s * BIG, s < BIG, s == BIG + 1), (1.5,)),
    "powers": (lambda n: (2**n + 2 ** (n * 20), n**50, 1 << (n * 30)), (3,)),
    "a long int for a uint64": (lambda n, x: x + n, (2**63, np.array([1], np.uint64))),
    "numbers that do not fit": (lambda x, n: x + n, (np.array([1], np.uint8), 300)),
    "numbers that do": (lambda x, n: (x + n, x < 10 * n), (np.array([1], np.uint8), 30)),
}


@pytest.mark.parametrize("name", LONG)
def test_python_integers_beyond_a_dtype(name: str) -> None:
    f, args = LONG[name]
    expected, found = outcome(f, *args), outcome(jg.jit(f), *args)
    if isinstance(expected, (int, float)):
        assert (type(found), found) == (type(expected), expected)
    elif isinstance(expected, tuple) and not isinstance(expected[0], (np.ndarray, np.generic)):
        assert [(type(x), x) for x in found] == [(type(x), x) for x in expected]
    else:
        assert_same(found, expected, name)


EDGES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "division": (
        lambda a, b: (a // b, a % b, np.fmod(a, b), np.divmod(a, b)),
        (np.array([5, -5, 0, -(2**63)]), np.array([0, 0, 0, -1])),
    ),
    "scalars by zero": (lambda a, b: (a // b, a % b), (np.int64(5), np.int64(0))),
    "least int8": (lambda a, b: (a // b, a % b, -a, abs(a)), (np.int8(-128), np.int8(-1))),
    "shifts": (lambda a, b: (a << b, a >> b), (np.array([1, 2, -3]), np.array([64, -1, 63]))),
    "negative powers": (lambda a, b: a**b, (np.array([2, 3]), np.array([1, -1]))),
    "a negative power": (lambda a: a**-1, (np.array([2, 3]),)),
    "a negative float power": (lambda a: a**-1.0, (np.array([2, 3]),)),
    "np.power, negative": (np.power, (np.array([2, 3]), np.array([1, -1]))),
    "minus of bools": (lambda b: b - b, (np.array([True, False]),)),
    "negative bools": (lambda b: -b, (np.array([True, False]),)),
    "positive bools": (lambda b: +b, (np.array([True, False]),)),
    "roots of scalars": (lambda s: (s**0.5, np.sqrt(s)), (np.float64(-0.0),)),
    "roots of arrays": (lambda x: x**0.5, (np.array([-0.0, 4.0]),)),
    "bools": (lambda b: (b + b, b * b, b**2, b << 1, ~b, np.sqrt(b)), (np.array([True, False]),)),
    "a bool": (lambda b: (np.add(b, b), np.sqrt(b), np.exp(b), b * 2), (np.bool_(True),)),
}


_NONE, _SOME = np.array([], int), np.array([3, 0, 2])
_ODD = np.array([True, False, True])
#: Functions, each with the calls to make of it.
NEGATIVE_POWERS: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "known": (lambda x: x**-2, [(_SOME,), (_NONE,), (np.zeros((0, 2), "i1"),), (np.zeros((2, 0), "?"),), (np.array(2),), (np.int64(2),)]),
    "data": (
        lambda x, y: x**y,
        [(_SOME, -2), (_NONE, -2), (_SOME, 2), (_NONE, np.int64(-2)), (_NONE, np.array(-1)), (_NONE[:, None], _SOME - 2), (3, _NONE),
         (np.int64(3), np.int64(-1)), (np.array(3), np.array(-1)), (_NONE.astype("u1"), -1)],
    ),
    "of a size that is data": (lambda x, m: x[m] ** -1, [(_SOME, _ODD), (_SOME, _ODD & False)]),
    "asked for": (
        lambda x, y, m: np.power(x, y, where=m, out=np.zeros(3, int)),
        [(_SOME, np.array([1, -1, 2]), _ODD), (_SOME, np.array([1, -1, 2]), ~_ODD), (_SOME, -1, _ODD & False), (_SOME, -1, _ODD)],
    ),
    "known, asked for": (lambda x, m: np.power(x, -1, where=m, out=x.copy()), [(_SOME, _ODD & False), (_SOME, _ODD)]),
}  # fmt: skip


@pytest.mark.parametrize("name", NEGATIVE_POWERS)
def test_negative_powers_raise_where_there_is_an_element(name: str) -> None:
    f, calls = NEGATIVE_POWERS[name]
    jitted = jg.jit(f)
    outcomes = [(outcome(f, *args), outcome(jitted, *args)) for args in calls]
    for args, (expected, found) in zip(calls, outcomes, strict=True):
        assert_same(found, expected, f"{name} {args}")
    assert {isinstance(expected, ValueError) for expected, _ in outcomes} == {True, False}


@pytest.mark.parametrize("name", EDGES)
def test_edges_of_integers(name: str) -> None:
    f, args = EDGES[name]
    assert_same(outcome(jg.jit(f, numerics="numpy"), *args), outcome(f, *args), name)


def test_the_sign_of_a_half_that_was_a_double() -> None:
    """LLVM's copysign of halves would ask a library for the rounding of the double that the sign came from."""

    def program(x: Any) -> Any:
        return np.copysign(np.std(x[None], axis=1), np.mean(x, axis=-1)), np.copysign(x, np.mean(x))

    for value in (2.5, -2.5):
        x = np.broadcast_to(np.float16(value), (7,))
        for expected, found in zip(program(x), jg.jit(program)(x), strict=True):
            assert found.dtype == expected.dtype
            assert found.tobytes() == expected.tobytes()
