"""Scalar loops over lanes, remainders in indices, choices beside the chain: what the nests are, and NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

RNG = np.random.default_rng(7)


def outer_sums(a: np.ndarray, b: np.ndarray) -> None:
    for i in range(len(b)):
        total = 0.0
        for j in range(len(a)):
            total += a[j] * b[i]
        b[i] = total


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def halvings(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x)):
        turns, value = 0, x[i]
        while value > 0.1:
            value *= 0.5
            turns += 1
        out[i] = turns


def mirrored(a: np.ndarray) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[j, i]


def exchanged(a: np.ndarray, b: np.ndarray) -> None:
    for i in range(len(a)):
        kept = a[i]
        a[i] = b[i]
        b[i] = kept


def larger(x: np.ndarray) -> int:
    count = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            count += 1
    return count


def running(a: np.ndarray) -> None:
    for i in range(1, len(a)):
        a[i] = a[i - 1] * 0.5 + a[i]


def histogram(x: np.ndarray, counts: np.ndarray) -> None:
    for i in range(len(x)):
        counts[int(x[i] * 10)] += 1


def periodic(u: np.ndarray, out: np.ndarray) -> None:
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = u[(i + 1) % n, j] + u[(i - 1) % n, j] + u[i, (j + 1) % m] + u[i, (j - 1) % m]


def skipping(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x)):
        total = 0.0
        for j in range(len(x)):
            if j != i:
                total -= a[i, j] * x[j]
        out[i] = total


def floats(*shape: int) -> np.ndarray:
    return RNG.random(shape)


#: program, arguments, marks that its nests have, marks that they must not have
PROGRAMS: list[tuple[Callable[..., Any], tuple[np.ndarray, ...], str, str]] = [
    (outer_sums, (floats(37), floats(29)), "for i in range(0, m) vector", "range(0, n) vector"),
    (product, (floats(9, 11), floats(11, 13), floats(9, 13)), "vector", "load c["),
    (halvings, (floats(41), np.zeros(41, int)), "for i in range(0, n) vector", ""),
    (mirrored, (floats(17, 17),), "for j in range(0, i) vector", ""),
    (exchanged, (floats(31), floats(31)), "for i in range(0, n) vector", ""),
    (larger, (floats(100),), "free sum", "carry"),
    (running, (floats(29),), "carry", "vector"),
    (histogram, (floats(50), np.zeros(10, int)), "", "vector"),
    (periodic, (floats(8, 9), np.zeros((8, 9))), "vector", "mod("),
    (skipping, (floats(12, 12), floats(12), np.zeros(12)), "", ""),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
@pytest.mark.parametrize("size", [None, 1, 0])
def test_results_are_numpys(program: tuple[Any, ...], size: int | None) -> None:
    plain, arguments, _, _ = program
    if size is not None:
        arguments = tuple(x[(slice(size),) * x.ndim] for x in arguments)
        if plain is histogram and size:
            arguments = (np.zeros(1), arguments[1])
    expected, given = ([x.copy() for x in arguments] for _ in range(2))
    with np.errstate(all="ignore"):
        result = plain(*expected)
    found = jg.jit(plain)(*given)
    assert type(found) is type(result)
    assert found == result
    for x, y in zip(given, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.usefixtures("whole_loops")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_nests(program: tuple[Any, ...]) -> None:
    plain, arguments, there, absent = program
    text = jg.jit(plain).inspect_ir(*(x.copy() for x in arguments), stage="loops")
    text = text[text.index("\nprogram") if "\nprogram" in text else 0 :].split("else cold")[0]
    assert there in text, text
    assert not absent or absent not in text, text


def test_a_choice_beside_the_chain_keeps_the_sign_of_zero() -> None:
    """-0.0 is what a sum that adds nothing stays at."""

    def total(x: np.ndarray, start: float) -> float:
        s = start
        for i in range(len(x)):
            if x[i] > 0.5:
                s += x[i]
        return s

    def rest(x: np.ndarray, start: float) -> float:
        s = start
        for i in range(len(x)):
            if x[i] > 0.5:
                s -= x[i]
        return s

    for plain in (total, rest):
        for start in (-0.0, 0.0, float("nan"), float("inf")):
            found, expected = jg.jit(plain)(np.zeros(5), start), plain(np.zeros(5), start)
            assert np.float64(found).tobytes() == np.float64(expected).tobytes()
