"""What NumPy does by its loops and checks: bits of single complex products, which error comes first, what overlaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.xp.storable import _overwrites


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False):
        yield


def _product_in_place(a: Any) -> Any:
    b = a.copy()
    b *= a
    return b


def _square_in_place(a: Any) -> Any:
    b = a.copy()
    b **= 2
    return b


def _scaled_in_place(a: Any) -> Any:
    b = a.copy().reshape(1, 1)
    b *= 1.1 + 0.3j
    return b


def _product_into_itself(a: Any) -> Any:
    b = a.copy()
    return np.multiply(b, a, out=b)


#: NumPy takes its iterator for some, whose strides of zero its vector loops refuse.
PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "two arrays of one axis": lambda a: a * a,
    "unequal ranks": lambda a: a.reshape(1, 1) * a,
    "unequal ranks, the wider one behind": lambda a: a * a.reshape(1, 1, 1),
    "a new axis": lambda a: a[None] * a.reshape(1, 1),
    "an array without axes": lambda a: a.reshape(()) * a.reshape(1, 1),
    "a NumPy scalar": lambda a: a.reshape(1, 1) * a[0],
    "a Python number": lambda a: a.reshape(1, 1) * (1.1 + 0.3j),
    "cast in one axis": lambda a: a * a.astype(np.complex64),
    "cast in two axes": lambda a: a.reshape(1, 1) * np.complex128(1.1 + 0.3j),
    "reals in two axes": lambda a: a.real.reshape(1, 1) * (1.1 + 0.3j),
    "swapped": lambda a: np.square(a.astype(">c16").reshape(1, 1)),
    "swapped in one axis": lambda a: np.square(a.astype(">c16")),
    "into another array": lambda a: np.multiply(a, a, out=np.zeros(1, a.dtype)),
    "into an array of another rank": lambda a: np.multiply(a, a, out=np.zeros((1, 1), a.dtype)),
    "where": lambda a: np.multiply(a, a, where=a == a, out=a * 0),
    "into itself": _product_into_itself,
    "in place": _product_in_place,
    "squared in place": _square_in_place,
    "scaled in place": _scaled_in_place,
    "outer": lambda a: np.outer(a, a),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", PRODUCTS)
def test_complex_products_of_one_element(name: str, dtype: type) -> None:
    rng = np.random.default_rng(0)
    data = (rng.normal(size=24) + 1j * rng.normal(size=24)).astype(dtype)
    jitted = jg.jit(PRODUCTS[name])
    for k in range(len(data)):
        wanted, found = PRODUCTS[name](data[k : k + 1].copy()), jitted(data[k : k + 1].copy())
        assert wanted.dtype == found.dtype
        assert wanted.shape == found.shape
        assert wanted.tobytes() == found.tobytes()


def _augmented(x: Any) -> None:
    x += -1


def _augmented_slice(x: Any) -> None:
    x[::2] += np.ones(7)


#: A read-only output is refused before anything else is wrong.
WRITES: dict[str, Callable[[Any], Any]] = {
    "a number that does not fit": _augmented,
    "a shape that does not fit": _augmented_slice,
    "a ufunc": lambda x: np.add(x, -1, out=x),
    "a ufunc of another shape": lambda x: np.square(x, out=x[:1]),
    "a reduction": lambda x: np.sum(x, axis=0, out=x),
    "a running sum": lambda x: np.cumsum(x, out=x[:2]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_read_only_output_is_refused_first(name: str) -> None:
    x = np.arange(4, dtype=np.uint64)
    x.flags.writeable = False
    for call in (WRITES[name], jg.jit(WRITES[name])):
        with pytest.raises(ValueError, match="read-only"):
            call(x)


def _masked(x: Any, m: Any) -> Any:
    x[m] = x[:3]
    return x


def _masked_apart(x: Any, m: Any) -> Any:
    x[:4][m[:4]] = x[4:6]
    return x


def _placed(x: Any, m: Any) -> Any:
    np.place(x, m, x[1:])
    return x


def _placed_backwards(x: Any, m: Any) -> Any:
    np.place(x, m, x[::-1])
    return x


def _masked_copy(x: Any, m: Any) -> Any:
    x[m] = x[:3].copy()
    return x


def _spread(x: Any, m: Any) -> Any:
    x[::2] = x[:4]
    return x


def _spread_from_one(x: Any, m: Any) -> Any:
    np.copyto(x[1::2], x[1:5])
    return x


def _in_order(x: Any, m: Any) -> Any:
    x[:4] = x[::2]
    x[1:] = x[:-1]
    x[:-1] = x[1:]
    x[::2] = x[1::2]
    x[::-1] = x
    y = x.reshape(2, 4)
    y[:, 0] = y[0, :2]
    y[0, 1:] = y[0, :-1]
    return x


MASK = np.array([True, False, True, False, False, False, True, False])


@pytest.mark.parametrize("function", [_masked, _placed])
def test_values_that_numpy_overwrites_are_left_to_python(function: Callable[..., Any]) -> None:
    with pytest.warns(UserWarning, match="plain Python: .* takes its values from another view of the elements written"):
        found = jg.jit(function)(np.arange(8.0), MASK)
    np.testing.assert_array_equal(found, function(np.arange(8.0), MASK))


@pytest.mark.parametrize("function", [_spread, _spread_from_one])
def test_values_with_another_step_over_the_target_are_left_to_python(function: Callable[..., Any]) -> None:
    with pytest.warns(UserWarning, match="plain Python: .* NumPy overwrites some before it reads them"):
        found = jg.jit(function)(np.arange(8.0), MASK)
    np.testing.assert_array_equal(found, function(np.arange(8.0), MASK))


def test_the_rule_for_values_over_the_target_is_numpys() -> None:
    for first, start, target, source in itertools.product(range(7), range(7), STEPS, STEPS):
        x = np.arange(12.0)
        size = min(len(x[first::target]), len(x[start::source]))
        wanted = x.copy()
        wanted[first::target][:size] = x[start::source][:size].copy()
        x[first::target][:size] = x[start::source][:size]
        assert _overwrites(target, source, start - first, size) == (not np.array_equal(x, wanted))


STEPS = (1, 2, 3, 4, -1, -2, -3)


@pytest.mark.parametrize("function", [_masked_apart, _placed_backwards, _masked_copy, _in_order])
def test_values_apart_are_written(function: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(jg.jit(function)(np.arange(8.0), MASK), function(np.arange(8.0), MASK))


def test_bools_to_the_power_of_a_run_time_two() -> None:
    def power(x: Any, k: int) -> Any:
        return x**k

    jitted = jg.jit(power)
    for k in (2, 3, 2, 0):
        wanted, found = power(MASK, k), jitted(MASK, k)
        assert wanted.dtype == found.dtype
        np.testing.assert_array_equal(found, wanted)


_INFINITE = complex(1, np.inf)
_SHAPES = [
    ((1,), (1,)),
    ((1, 1), (1,)),
    ((1, 1), (1, 1)),
    ((2, 1), (1, 2)),
    ((1, 1), (1, 4)),
    ((2,), (2,)),
    ((5, 1), (1,)),
]


def _alike(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)  # NaNs and signs of zeros, too


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("function", [np.matmul, np.dot])
def test_products_of_infinities(function: Callable[..., Any], dtype: str) -> None:
    jitted = jg.jit(lambda x, y: function(x, y), numerics="numpy")
    with np.errstate(all="ignore"):
        for first, second in _SHAPES:
            a, b = np.full(first, _INFINITE, dtype), np.full(second, _INFINITE, dtype)
            assert _alike(jitted(a, b), function(a, b)), (first, second)


def test_products_of_as_many_infinities_as_the_run_finds() -> None:
    def f(x: Any, k: int) -> Any:
        part = x[: int(np.sum(x.real[:k] > 0))]
        return part @ part

    a = np.full(5, _INFINITE)
    jitted = jg.jit(f, numerics="numpy")
    with np.errstate(all="ignore"):
        for k in range(4):
            assert _alike(jitted(a, k), f(a, k))


def _by_number(a: Any, b: Any) -> None:
    a **= 2.5


def _by_array(a: Any, b: Any) -> None:
    a **= b


def _by_row(a: Any, b: Any) -> None:
    a **= b[0]


def _by_itself(a: Any, b: Any) -> None:
    a **= a


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("function", [_by_number, _by_array, _by_row, _by_itself])
def test_powers_in_place_of_reversed_arrays(function: Callable[..., Any], dtype: str) -> None:
    rng = np.random.default_rng(4)
    jitted = jg.jit(function, numerics="numpy")
    if dtype == "i4" and function is _by_number:
        pytest.skip("NumPy refuses it")
    for key in (np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1], np.s_[::1]):
        a, b = (rng.uniform(1, 5, (17, 9)).astype(dtype) for _ in range(2))
        mine = a.copy()
        with np.errstate(all="ignore"):
            function(a[key], b)
            jitted(mine[key], b)
        np.testing.assert_array_equal(mine, a)


_REALS = [0.0, -1.0, np.nan, np.inf, 1.5]
_DTYPES = ["bool", "i1", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_orders_of_complex_scalars(dtype: str) -> None:
    """NumPy's scalars and its ufunc treat a NaN in different ways; the dtypes decide which of them compares."""

    def f(x, y):
        a, b = x[0], y[0]
        return a < b, a <= b, a > b, a >= b, b < a, b <= a, b > a, b >= a, a == b, b != a

    jitted = jg.jit(f)
    values = np.array([complex(a, b) for a in _REALS for b in _REALS], dtype)
    for other in _DTYPES:
        second = np.array([complex(1, np.nan) if other[0] == "c" else 1], other)
        for k in range(len(values)):
            x = values[k : k + 1]
            with np.errstate(invalid="ignore"):
                expected = f(x, second)
            found = jitted(x, second)
            assert found == expected, (x, second)
            assert {type(v) for v in found} == {np.bool_}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", "?", "c8"])
def test_round_works_in_its_out(dtype: str) -> None:
    """Its steps round to the dtype of `out`, which may have more axes but not more elements."""
    x = np.array([1.26, -38.55, 0.449, 250.5, 2.5, 13.49])
    x = abs(x).astype(dtype) if dtype == "u1" else x.astype(dtype)
    for out_dtype, decimals, shape in itertools.product(
        ["f2", "f8", "i4", "c16"], [-1, 0, 1, 3], [(6,), (1, 6), (2, 6), (7,)]
    ):

        def rounded(x: Any, out: Any, decimals: int = decimals) -> Any:
            return np.round(x, decimals, out=out)

        expected, found = np.zeros(shape, out_dtype), np.zeros(shape, out_dtype)
        try:
            with np.errstate(all="ignore"):
                rounded(x, expected)
        except (TypeError, ValueError) as e:
            with pytest.raises(TypeError if isinstance(e, TypeError) else ValueError):
                jg.jit(rounded)(x, found)
            continue
        assert jg.jit(rounded)(x, found) is found
        assert found.tobytes() == expected.tobytes(), (out_dtype, decimals, shape)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_means_of_swapped_halves_are_summed_in_float32(axis: int | None) -> None:
    x = np.random.default_rng(2).normal(size=(40, 7)).astype(">f2")
    expected, found = np.mean(x, axis=axis), jg.jit(lambda a: np.mean(a, axis=axis), numerics="numpy")(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("size", [2, 5, 9])
def test_products_in_place_of_what_lies_backwards(size: int, step: int) -> None:
    def by_scalar(x: Any, y: Any) -> None:
        x *= y[0]

    def by_array(x: Any, y: Any) -> None:
        x *= y

    rng = np.random.default_rng(size)
    for f, g in ((by_scalar, jg.jit(by_scalar)), (by_array, jg.jit(by_array))):
        for _ in range(20):
            a, b = ((rng.normal(size=size) + 1j * rng.normal(size=size)).astype("c8") for _ in range(2))
            expected, found = a.copy()[::-1], a.copy()[::-1]
            f(expected, b[::step])
            g(found, b[::step])
            assert found.tobytes() == expected.tobytes()


ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "dot of a scalar": lambda x: x.sum().dot(2.0),
    "partition of a scalar": lambda x: x.sum().partition(0),
    "length of a scalar": lambda x: x.sum().__len__(),
    "text method": lambda x: x.append(1),
    "no such method": lambda x: x.abs(),
    "of Tensors": lambda x: x.numpy(),
    "of our types": lambda x: x.type,
    "of floats": lambda x: x.is_integer(),
    "of ints": lambda x: x.astype(int).bit_count(),
    "of a Python float": lambda x: float(x[0, 0]).astype(int),
    "stored": lambda x: setattr(x, "foo", 1),
    "stored in a scalar": lambda x: setattr(x.sum(), "foo", 1),
    "shape of a scalar": lambda x: setattr(x.sum(), "shape", (1,)),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_that_are_missing(name: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    with pytest.raises(AttributeError) as wanted:
        ATTRIBUTES[name](x)
    with pytest.raises(AttributeError) as found:
        jg.jit(ATTRIBUTES[name])(x)
    assert str(found.value) == str(wanted.value)


def _what_there_is(x: Any) -> Any:
    names = [
        "dot",
        "__len__",
        "partition",
        "is_integer",
        "detach",
        "__array_interface__",
        "sum",
        "dtype",
        "T",
        "append",
    ]
    values = (x, x.sum(), float(x[0, 0]), x.shape[0], x[0] > 1)
    return [hasattr(v, n) for v in values for n in names], getattr(x.sum(), "dot", 3), x.__array_namespace__() is np


def test_attributes_that_there_are() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert jg.jit(_what_there_is)(x) == _what_there_is(x)


def test_items_cannot_be_deleted() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        del y[0]

    for x in (np.arange(3.0), np.float64(2)):
        with pytest.raises((ValueError, TypeError)) as wanted:
            f(x)
        with pytest.raises(type(wanted.value)) as found:
            jg.jit(f)(x)
        assert str(found.value) == str(wanted.value)


def test_diagonals_of_too_few_axes() -> None:
    text = "^(diag requires an array|axis2: axis 1 is out of bounds)"
    for f in (lambda x: x.diagonal(), lambda x: x.trace(), np.trace, lambda x: x.swapaxes(0, 1)):
        with pytest.raises(ValueError, match=text) as wanted:
            f(np.arange(3.0))
        with pytest.raises(ValueError, match=text) as found:
            jg.jit(f)(np.arange(3.0))
        assert str(found.value).split("\n")[0] == str(wanted.value)
        assert isinstance(found.value, IndexError) == isinstance(wanted.value, IndexError)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i8", "i1", "c8"])
def test_dtypes_of_linspace(dtype: str) -> None:
    """The common dtype of the ends, in which Python's numbers are weak."""

    def f(x: Any, n: int) -> Any:
        python = x[0].item()
        ends = [(x[0], x[1]), (x[0], 2.5), (1, x[1]), (python, python), (python, np.float32(9)), (np.int8(3), x[0])]
        return [
            np.linspace(a, b, n, **how) for a, b in ends for how in ({}, {"endpoint": False}, {"dtype": np.float32})
        ]

    x = np.array([1, 3]).astype(dtype)
    with np.errstate(all="ignore"):
        for n in (5, 70):
            for found, expected in zip(jg.jit(f, numerics="numpy")(x, n), f(x, n), strict=True):
                np.testing.assert_array_equal(found, expected, strict=True)


def test_hypot_is_pythons() -> None:
    functions = [lambda a, b, c: math.hypot(a, b), lambda a, b, c: math.hypot(a, b, c), lambda a, b, c: math.hypot(a)]
    rng = np.random.default_rng(4)
    drawn = (rng.normal(size=(400, 3)) * 10.0 ** rng.integers(-200, 200, (400, 1))).tolist()
    special = [0.0, -0.0, -2.5, math.inf, -math.inf, math.nan, 1.7e308, 5e-324, 3e-310, 2.0**-1022]
    for function in functions:
        jitted = jg.jit(function)
        for a, b, c in [*drawn, *itertools.product(special, special, (0.0, 1.0))]:
            wanted, found = function(a, b, c), jitted(a, b, c)
            assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (a, b, c)
    assert jg.jit(lambda a: math.hypot())(1.0) == 0.0


def _math_functions(x: Any, y: Any) -> Any:
    return (
        math.exp(x), math.log(x), math.log(x, y), math.sin(x), math.cosh(x), math.tanh(x), math.cbrt(x), math.erf(x),
        math.erfc(x), math.pow(x, y), math.atan2(x, y), math.log1p(x),
    )  # fmt: skip


def test_math_is_the_c_librarys_under_exact_numerics() -> None:
    exact, quick = jg.jit(_math_functions, numerics="numpy"), jg.jit(_math_functions)
    for x, y in np.random.default_rng(4).uniform(0.1, 6, (100, 2)).tolist():
        assert exact(x, y) == _math_functions(x, y)
        np.testing.assert_allclose(quick(x, y), _math_functions(x, y), rtol=5e-16)
    assert np.isclose(jg.jit(lambda v: math.erfc(v))(20.0), math.erfc(20.0), rtol=1e-15, atol=0)
    for text, x in (("math domain error", -1.0), ("math range error", 1000.0)):
        with pytest.raises((ValueError, OverflowError), match=text):
            exact(x, 1.0)


def test_rows_are_written_by_masks_of_no_elements_only() -> None:
    def fill(a: np.ndarray, limit: float) -> np.ndarray:
        some = np.compress(a < limit, a)
        a[some >= 0] = some[None] * 2
        return a

    jitted = jg.jit(fill)
    for limit, error in ((0.0, None), (2.0, IndexError), (9.0, TypeError), (0.0, None)):
        if error is None:
            np.testing.assert_array_equal(jitted(np.arange(3.0), limit), fill(np.arange(3.0), limit))
            continue
        for function in (fill, jitted):
            with pytest.raises(error):
                function(np.arange(3.0), limit)
