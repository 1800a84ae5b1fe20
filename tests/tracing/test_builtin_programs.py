"""Python's `sum`, `max` and `min` over arrays of many elements, or of lengths that only the run knows."""

import numpy as np
import pytest

import jitgraph as jg

REAL = np.array([1.5, np.nan, -3.0, 0.25] * 5)
WHOLE = np.arange(20)


def outcome(function, args):
    try:
        with np.errstate(all="ignore"):
            return function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    except ValueError as error:
        return (type(error), str(error))


CASES = {
    "sum": (lambda x: sum(x), REAL[2:]),
    "sum of ints": (lambda x: sum(x), WHOLE),
    "sum wraps as its dtype does": (lambda x: sum(x), (WHOLE * 20).astype(np.int8)),
    "sum of bools": (lambda x: sum(x), WHOLE > 3),
    "sum of zeros with a sign": (lambda x: sum(x), np.full(20, -0.0)),
    "sum with a start": (lambda x: sum(x, 0.5), WHOLE),
    "sum of rows": (lambda x: sum(x), WHOLE.reshape(10, 2) * 1.5),
    "sum of complex numbers": (lambda x: sum(x), REAL[2:] + 1j),
    "sum of a slice": (lambda x, n: sum(x[:n]), WHOLE, 7),
    "sum of nothing": (lambda x, n: sum(x[:n]), WHOLE, 0),
    "sum of a range": (lambda n: sum(range(3, n, 2)), 30),
    "max": (lambda x: max(x), WHOLE[::-1]),
    "max looks at NaN as Python does": (lambda x: max(x), REAL),
    "max that begins with NaN": (lambda x: max(x), np.roll(REAL, -1)),
    "max of a slice": (lambda x, n: max(x[n:]), REAL, 2),
    "max of nothing": (lambda x, n: max(x[n:]), REAL, 20),
    "min": (lambda x: min(x), WHOLE.astype(np.float32)),
    "min of nothing": (lambda x, n: min(x[n:]), REAL, 20),
}


@pytest.mark.parametrize("name", CASES)
def test_result_is_pythons(name):
    function, *args = CASES[name]
    expected, found = outcome(function, args), outcome(jg.jit(function), args)
    assert type(found) is type(expected)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(np.real(found)), np.signbit(np.real(expected)))


def test_size_is_no_part_of_the_key():
    @jg.jit
    def f(x):
        return sum(x) - max(x)

    for n in (20, 300, 9):
        x = np.arange(n) * 0.1
        assert f(x) == sum(x) - max(x)
    assert f.cache_info().compiles == 1


def test_inside_loops_the_length_may_follow_the_index():
    @jg.jit
    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = sum(x[: i + 1]) + max(x[: i + 1]) * min(x[i:])
        return out

    np.testing.assert_array_equal(f(REAL[2:]), f.__wrapped__(REAL[2:]))


def test_ndarray_as_a_constructor_takes_sizes_known_at_the_call():
    @jg.jit
    def f(n):
        x = np.ndarray(n + 1)
        y = np.ndarray(shape=(n, 2), dtype=np.int8, order="F")
        x[:] = 1.5
        y[:] = 3
        return x, y

    for n in (2, 5):
        for got, wanted in zip(f(n), f.__wrapped__(n), strict=True):
            assert got.dtype == wanted.dtype
            assert got.flags.f_contiguous == wanted.flags.f_contiguous
            np.testing.assert_array_equal(got, wanted)
    assert f.cache_info().compiles == 1
