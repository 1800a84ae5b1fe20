"""Loops that a pass once got wrong, or must never get wrong: against NumPy, through machine code."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

X = np.array([1.0, -1.0, 2.0, -2.0, 3.0])


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, list[bytes]]:
    """The result or the error as text, and the arrays behind the call."""
    given = copy.deepcopy(args)
    try:
        found = f(*given)
        text = repr(np.asarray(found).tobytes())
    except Exception as e:  # noqa: BLE001 - any exception is an outcome
        text = f"{type(e).__name__}: {e}"
    return text, [x.tobytes() for x in given if isinstance(x, np.ndarray)]


def same(f: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    compiled = jg.jit(f)
    for args in calls:
        assert outcome(compiled, args) == outcome(f, args), args[1:]


def test_a_load_stays_behind_its_check() -> None:
    def far(x: np.ndarray, n: int, m: int) -> Any:
        s = 0.0
        for i in range(n):
            for _ in range(m):
                s += x[i * 10**8]
        return s

    same(far, (X, 3, 2), (X, 0, 5), (X, 3, 0), (X, 1, 1), (X, 1, 4))


def test_a_load_that_no_turn_changes_stays_behind_its_check() -> None:
    def fixed(x: np.ndarray, n: int, k: int) -> Any:
        s = 0.0
        for _ in range(n):
            s += x[k]
        return s

    same(fixed, (X, 3, 10**9), (X, 0, 10**9), (X, 2, -(10**9)), (X, 3, 4), (X, 3, -5))


def test_a_load_stays_in_its_branch() -> None:
    def guarded(x: np.ndarray, n: int, k: int) -> None:
        for i in range(n):
            for j in range(3):
                if 0 <= k < len(x):
                    x[k] += i * j

    same(guarded, (X, 3, 0), (X, 3, 4), (X, 3, 10**9), (X, 3, -5), (X, 0, 0))


def test_a_branch_that_reads_before_an_error() -> None:
    def sometimes(x: np.ndarray, n: int, k: int) -> Any:
        s = 1.0
        for i in range(n):
            if x[k] > 0:
                s += x[i]
            else:
                s -= x[i]
        return s

    same(sometimes, (X, 3, 2), (X, 0, 10**9), (X, 3, 10**9), (X, 5, 4), (X, 6, 4), (X, 0, -7))


def test_writes_before_an_error_stay() -> None:
    def running(x: np.ndarray, y: np.ndarray, n: int) -> None:
        for i in range(n):
            y[0] += x[i]
            x[i] = y[0] * 0.5
            y[i] = x[2 * i]

    same(running, (X, X + 1.0, 2), (X, X + 1.0, 3), (X, X + 1.0, 5), (X, X + 1.0, 9))


@pytest.mark.parametrize("n", [1, 2, 2**62 // 10**8 * 2 + 5, 2**64 // 10**8 + 1, 2**64 // 10**8 + 3, 2**63 - 1])
def test_bounds_whose_last_index_overflows(n: int) -> None:
    """The test in front of a clean version must not wrap around."""

    def far(x: np.ndarray, n: int) -> Any:
        s = 0.0
        for i in range(n):
            s += x[i * 10**8]
        return s

    same(far, (X, n))


def test_zeros_keep_their_signs() -> None:
    def signs(x: np.ndarray, n: int) -> Any:
        s = 0.0
        for i in range(n):
            zero = 0.0 if x[i] > 0 else -0.0
            s = np.copysign(1.0, zero) + 2.0 * s + np.copysign(1.0, -zero + 0.0) + np.copysign(4.0, -zero + -0.0)
        return s

    same(signs, (X, 5))


def test_ranges_that_end_before_they_begin() -> None:
    def negative(x: np.ndarray, y: np.ndarray, n: int) -> None:
        m = len(x)
        for i in range(n - 7):
            for j in range(m):
                x[j] = x[j] * 0.5 + y[i]

    same(negative, *((X, np.arange(10.0), n) for n in (0, 3, 7, 8, 12)))


def test_a_loop_inside_that_has_no_turn() -> None:
    def triangle(x: np.ndarray, n: int, k: int) -> None:
        for i in range(n):
            for j in range(k, n):
                x[j] += 1.0
            x[n - k] = x[0] + i

    same(triangle, (X, 4, 4), (X, 4, 2), (X, 4, 0), (X, 0, 0), (X, 3, 5))


def test_rows_that_lie_in_one_vector() -> None:
    def overlapping(x: np.ndarray, y: np.ndarray, n: int) -> None:
        for i in range(n):
            x[i : i + 3] = y[i : i + 3] * x[i]

    same(overlapping, (np.arange(12.0), np.arange(12.0) + 0.5, 9), (np.arange(12.0), np.arange(12.0), 4))


def test_a_swap_beside_other_loops() -> None:
    def relax(a: np.ndarray, n: int) -> Any:
        b = a.copy()
        for _ in range(n):
            for i in range(1, len(a) - 1):
                b[i] = (a[i - 1] + a[i + 1]) * 0.5
            a, b = b, a
        return a + 2.0 * b

    same(relax, *((X, n) for n in (0, 1, 2, 5)))
