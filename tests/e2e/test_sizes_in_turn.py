"""One jitted function called with sizes in turn: relations of sizes that hold, hold by chance, and do not hold.

Each call is compared with NumPy, its exceptions too; sizes that were seen before compile nothing anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from tests.fuzz.compare import difference, run

#: n, m and k of each call: n - 1 == 1, n == m, n // 2 == m and sizes of 0 and 1 by chance, the first ones again.
SIZES = [(5, 3, 2), (6, 3, 2), (2, 3, 1), (3, 3, 3), (1, 3, 1), (0, 2, 1), (4, 2, 2), (2, 0, 0), (1, 1, 1), (5, 3, 2)]
_CASES: list[tuple[Callable[..., Any], Callable[..., tuple[Any, ...]]]] = []


def case(make: Callable[..., tuple[Any, ...]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a program, and how its arguments are made of a generator and the sizes."""

    def add(program: Callable[..., Any]) -> Callable[..., Any]:
        _CASES.append((program, make))
        return program

    return add


def _matrix_and_every_second_row(r: np.random.Generator, n: int, m: int, k: int) -> tuple[Any, ...]:
    x = r.standard_normal((n, m))
    return x, x[::2]


def _matrix_and_row_of_bools(r: np.random.Generator, n: int, m: int, k: int) -> tuple[Any, ...]:
    return r.standard_normal((n, m)), r.random((1, m)) < 0.6


def _vectors_and_mask(r: np.random.Generator, n: int, m: int, k: int) -> tuple[Any, ...]:
    return r.standard_normal(n), r.standard_normal(m), r.random(n) < 0.6


@case(_matrix_and_every_second_row)
def a_mask_of_a_view_of_the_same_array(x, y):
    return x[1:][y > 0]


@case(_matrix_and_row_of_bools)
def a_mask_of_one_row(x, q):
    return x[1:][q], x[:1][q]


@case(lambda r, n, m, k: (r.standard_normal((1, m)), r.random((n, m)) < 0.6))
def one_row_under_a_mask(x, q):
    return x[q[1:]]


@case(_matrix_and_row_of_bools)
def writes_under_a_mask_of_one_row(x, q):
    y = x[1:].copy()
    y[q] = np.arange(np.count_nonzero(q))
    x[1:][q] = 0.5
    return y


@case(_matrix_and_row_of_bools)
def sums_and_writes_of_what_may_be_nothing(x, w):
    return np.sum(x[1:], where=w), np.add(x[1:], 1, where=w, out=x[1:])


@case(lambda r, n, m, k: (r.standard_normal((n, 1)), r.standard_normal((n, m))))
def sums_of_repeated_elements_under_a_mask(x, y):
    z = np.broadcast_to(x, y.shape)
    return np.sum(z, axis=1, where=z > 0), np.sum(z, axis=0, where=z > 0), np.sum(z + 0 * y, axis=0, where=z > 0)


@case(lambda r, n, m, k: (r.standard_normal((n, m)), r.standard_normal((k, n)), r.standard_normal((1, m))))
def products(x, y, z):
    return x[1:].T @ z, x.T @ y[:1].T


@case(lambda r, n, m, k: (r.standard_normal((n, m)), r.standard_normal((1, m)), r.standard_normal((k, m))))
def joined(x, y, z):
    return np.concatenate([y, x[1:]], axis=1), np.stack([x[:1], y]), np.vstack([x, z])


@case(lambda r, n, m, k: (r.standard_normal(n), k))
def a_number_as_a_size(x, k):
    return x.reshape(k, -1)


@case(lambda r, n, m, k: (r.standard_normal((n, m)), k))
def a_number_as_the_last_size(x, k):
    return x.reshape(-1, k)


@case(lambda r, n, m, k: (r.standard_normal((n, m)), r.standard_normal(k)))
def a_diagonal_filled(x, v):
    np.fill_diagonal(x, v)
    return x


@case(lambda r, n, m, k: (r.standard_normal((n, m)), r.random(n) < 0.6, r.standard_normal((2, k, m))))
def values_with_more_axes(x, q, v):
    x[q] = v
    return x


@case(lambda r, n, m, k: (r.standard_normal(n), np.sort(r.standard_normal(m))))
def a_histogram_of_given_edges(x, edges):
    return np.histogram(x, bins=edges)


@case(lambda r, n, m, k: (r.integers(-4, 9, (n, m)), r.integers(-4, 9, (k, m)), r.integers(-4, 9, m)))
def contractions_that_repeat(x, y, z):
    return np.einsum("ij,ij->ij", x, y), np.einsum("ij,ij,j->j", x, y, z), np.einsum("...j,...j", x, y)


@case(lambda r, n, m, k: (r.integers(-4, 9, (n, m)),))
def a_diagonal_contracted(x):
    return np.einsum("ii->i", x[: x.shape[1]][: x.shape[0]]) if 0 not in x.shape else x


@case(_vectors_and_mask)
def selections_whose_size_decides_the_form(x, y, q):
    z = x[q]
    return np.delete(z, 0), np.insert(z, 1, 5.0), z


@case(_vectors_and_mask)
def comparisons_with_a_selection(x, y, q):
    z = x[q]
    return np.array_equal(z, y), np.trim_zeros(np.round(z))


@case(_vectors_and_mask)
def selections_extended(x, y, q):
    return np.pad(x[q], 2, mode="edge")


@case(_vectors_and_mask)
def weights_for_a_selection(x, y, q):
    return np.average(x[q], weights=np.abs(y))


@case(lambda r, n, m, k: (r.integers(-4, 9, n), r.integers(-4, 9, m), r.random(n) < 0.6))
def contractions_of_a_selection(x, y, q):
    z = x[q]
    return np.einsum("i,i->i", z, y), np.einsum("i,j->ij", z, y)


@case(lambda r, n, m, k: (r.standard_normal(n), r.random(1) < 0.6))
def loops_over_one_element_or_none(x, q):
    y = np.zeros_like(np.asarray(2.0))
    for v in x[:1][q[: len(x)]]:
        y = y * 2 + v
    return y


@case(lambda r, n, m, k: (r.integers(-4, 9, n), r.integers(-4, 9, m)))
def calls_back_on_what_turns_leave(x, y):
    found = np.zeros(len(x))
    for i in range(len(x)):
        found[i] = np.unique(x[i:]).sum() + np.convolve(x[i:], y[:1])[0] if len(y) else np.lexsort((x[i:],))[0]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("program", "make"), _CASES, ids=[f.__name__ for f, _ in _CASES])
def test_sizes_in_turn(program: Callable[..., Any], make: Callable[..., tuple[Any, ...]]) -> None:
    with config.override(cache=False, verify=True):
        jitted = jg.jit(program)
        for again in (False, True):
            for number, (n, m, k) in enumerate(SIZES):
                given, mine, theirs = (list(make(np.random.default_rng(number), n, m, k)) for _ in range(3))
                before = jitted.cache_info().misses
                expected, found = run(program, theirs), run(jitted, mine)
                what = difference(given, expected, found, free_zero=False)
                assert not what, f"n = {n}, m = {m}, k = {k}: {what}"
                if expected.error is not None:
                    assert isinstance(found.error, type(expected.error)), (n, m, k)
                elif again:
                    assert jitted.cache_info().misses == before, f"compiled again for n = {n}, m = {m}, k = {k}"


def _of_a_bool(x: np.ndarray) -> list[Callable[[], Any]]:
    return [
        lambda: x.reshape(True, -1),
        lambda: x.sum(axis=True),
        lambda: x.mean(axis=(True,)),
        lambda: np.zeros((True, 2)),
        lambda: np.argmax(x, axis=True),
        lambda: np.take(x, [0], axis=True),
        lambda: np.concatenate([x, x], axis=True),
        lambda: np.transpose(x, (True, False)),
        lambda: np.flip(x, axis=True),
        lambda: np.roll(x, True),
        lambda: np.tile(x, True),
        lambda: np.average(x, axis=True),
        lambda: np.pad(x, True),
    ]


@pytest.mark.parametrize("k", range(13))
def test_a_bool_as_an_axis_or_a_size(k: int) -> None:
    def program(x: np.ndarray) -> Any:
        return _of_a_bool(x)[k]()

    x = np.arange(12.0).reshape(3, 4)
    expected, found = run(program, [x]), run(jg.jit(program), [x])
    assert not difference([x], expected, found, free_zero=False)
    assert (expected.error is None) == (found.error is None)
