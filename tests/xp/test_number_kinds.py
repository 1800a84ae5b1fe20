"""Python ints beyond 64 bits, ranges of floats, and what NumPy says of numbers that it does not take."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config

LONG = 2**70


@pytest.fixture(autouse=True)
def _quiet():
    with config.override(cache=False), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a call gives or raises, and what it left in its arguments, in a form that compares kinds and bits."""
    args = tuple([x.copy() if isinstance(x, np.ndarray) else x for x in args])
    try:
        found = f(*args)
    except Exception as error:  # noqa: BLE001 - any exception is an outcome
        return next(k for k in type(error).__mro__ if k.__module__ == "builtins")
    leaves = found if isinstance(found, tuple) else (found,)
    return [(type(x), getattr(x, "dtype", None), np.shape(x), np.asarray(x).tobytes()) for x in (*leaves, *args)]


def _same(f: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    jitted = jg.jit(f)
    for args in calls:
        assert _outcome(jitted, args) == _outcome(f, args), args


SCALARS: list[tuple[Any, ...]] = [
    (True,), (1,), (1.5,), (1j,), (np.True_,), (np.int8(1),), (np.uint64(1),), (np.float32(1),), (np.complex64(1),),
    (np.ones(2, bool),), (np.ones(2, np.int8),), (np.ones(2, np.float16),), (np.ones(2, np.complex64),),
]  # fmt: skip


def _copied(x: Any) -> Any:
    x = np.array(x, np.result_type(x, np.int8))
    np.copyto(x, LONG)
    return x


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.less(x, LONG),
        lambda x: np.add(x, LONG),
        lambda x: np.add(x, LONG, dtype=np.float32, casting="unsafe"),
        lambda x: np.logical_or(x, LONG),
        lambda x: np.isclose(x, 2**64 - 1),
        lambda x: np.where(np.array([True, False]), LONG, x),
        lambda x: np.where(x, 2**64, 1.0),
        lambda x: x < 2**63,
        lambda x: x == 2**1100,
        _copied,
    ],
)
def test_ints_beyond_64_bits(function: Callable[..., Any]) -> None:
    _same(function, *SCALARS)


def test_powers_modulo_take_python_ints_only() -> None:
    _same(
        lambda a, b, c: pow(a, b, c),
        (2, 3, 5), (2, -1, 7), (2, 70, 7), (-2, 3, -5), (2, 3, 0), (True, 2, 5), (2.0, 3, 5), (np.int64(2), 3, 5),
        (2, 3, np.int8(5)), (np.arange(3), 2, 3),
    )  # fmt: skip


def test_ranges_go_on_by_the_difference_of_their_first_elements() -> None:
    _same(
        lambda a, b, s: np.arange(a, b, s),
        (1, 2.5, 0.1), (0.1, 3.3, 0.3), (1, 0, -0.3), (np.float16(1), 5, 0.3), (np.float32(0), 5, 0.1),
        (np.int8(100), 300, np.int8(50)), (np.uint8(5), np.uint8(1), 1), (np.nan, 1, 1), (0, np.inf, 1), (0, 1j, 1),
        (0, np.ones(1), 1), (0, np.arange(3), 1),
    )  # fmt: skip
    _same(lambda a, s: np.arange(a, 5, s, dtype=np.float16), (0.1, 0.3), (-0.1, 0.7))
    _same(lambda a, s: np.arange(a, 9, s, dtype=np.int64), (0.8, 1.3), (0, 2.5))
    _same(lambda x: x * np.arange(0.1, 1, 0.1, dtype=np.float16), (np.float16(1),))


def test_triangles_of_no_rows_and_of_float_sizes() -> None:
    _same(lambda n: np.tri(n), (-1,), (np.int64(-2),), (2.5,), (True,))
    _same(lambda n: (np.tri(-1), np.tri(2, -1), np.tri(3, n, -1)), (3,), (-1,))
    _same(lambda n: np.tril_indices(n, 1, 4), (-1,), (3,), (2.5,))


def test_repeats_in_a_list() -> None:
    _same(lambda x, k: np.repeat(x, [k]), (np.arange(3), 2), (np.arange(3), np.int8(2)), (np.arange(3), -1))
    _same(lambda x, k, n: np.repeat(x, (k, n, k)), (np.arange(3), 0, np.int64(2)), (np.arange(3), np.uint8(1), 1))


def test_outputs_of_two_results() -> None:
    def wide(x: Any, out: Any) -> Any:
        return np.modf(x, out=(out, None))

    def alike(x: Any, out: Any) -> Any:
        return np.divmod(x, 2.0, out=(out, out))

    outs = [np.zeros(()), np.zeros(3), np.zeros((2, 3)), np.zeros(3, np.float32), np.zeros(0)]
    for f in (wide, alike):
        _same(f, *[(1.5, out) for out in outs], (np.full(3, 3.5), np.zeros((2, 3))), (np.full(3, 3.5), np.zeros(1)))


def test_bools_are_rounded_to_whole_numbers_only() -> None:
    for decimals in (-1, 0, 1):
        _same(lambda x, decimals=decimals: np.round(x, decimals), (True,), (np.True_,), (np.ones(2, bool),))


def test_least_dtypes() -> None:
    _same(lambda x: np.min_scalar_type(x).itemsize, (300,), (np.int64(3),), (np.arange(3),), (1e10,), (True,))


def test_texts_among_arguments_are_left_to_numpy() -> None:
    _same(lambda x: np.add(x, "a"), (np.ones(2),), (1,))
    with pytest.warns(UserWarning, match="str"):
        assert _outcome(jg.jit(lambda x: np.equal(x, "a")), (np.ones(2),)) is TypeError


def _powers(x: Any, p: Any) -> Any:
    s = x
    for k in range(len(p)):
        s = s ** p[k]
    return s


def test_powers_of_arrays_without_axes_are_scalars() -> None:
    _same(_powers, (np.array(1.5), np.array([2.0, 3.0])), (np.array(1.5), np.zeros(0)), (np.full(2, 1.5), np.ones(9)))
