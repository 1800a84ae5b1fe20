"""Loops that have come to rest end: which do, which must not, and that results are NumPy's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

RNG = np.random.default_rng(11)


def masked(c: np.ndarray, limit: int) -> Any:
    x, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for n in range(limit):
        inside = x < 4.0
        count[inside] = n + 1
        x[inside] = x[inside] * x[inside] + c[inside]
    return x, count


def counted(c: np.ndarray, limit: int) -> Any:
    x, count = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(limit):
        inside = np.abs(x) <= 2.0
        count += inside
        x = np.where(inside, x * x + c, x)
    return x, count


def active(c: np.ndarray, limit: int) -> Any:
    x, on = np.zeros_like(c), np.ones(c.shape, bool)
    for _ in range(limit):
        x = np.where(on, x * 0.5 + c, x)
        on &= x < 1.5
    return x, on


def outside(c: np.ndarray, limit: int) -> Any:
    x = np.zeros_like(c)
    for _ in range(limit):
        x = np.where(x > 3.0, x, x + c)
    return x


def two_arrays(c: np.ndarray, limit: int) -> Any:
    x, y = c * 0.0, c * 0.5
    for _ in range(limit):
        small = (x * x + y * y < 4.0) & (y > -1.0)
        x, y = np.where(small, x * x - y * y + c, x), np.where(small, 2.0 * x * y - c, y)
    return x, y


def in_place(c: np.ndarray, limit: int) -> None:
    for _ in range(limit):
        c[c < 2.0] *= 1.5


def numbers(c: np.ndarray, limit: int) -> Any:
    x, n = 0.0, 0
    for _ in range(limit):
        if x < 10.0:
            x = x + 0.75
            n += 1
    return x + c, n


def sometimes(c: np.ndarray, limit: int) -> Any:
    """A part of the mask is false for good some time."""
    x = np.zeros_like(c)
    for n in range(limit):
        inside = (x < 4.0) & (n % 3 != 1)
        x = np.where(inside, x + c, x)
    return x


SETTLING = [masked, counted, active, outside, two_arrays, in_place, sometimes]


def by_turn(c: np.ndarray, limit: int) -> Any:
    """The mask is a function of the turn: false in one, true in a later one."""
    x = np.zeros_like(c)
    for n in range(limit):
        inside = (x < 1.0) | (n % 5 == 1)
        x = np.where(inside, x + c, x)
    return x


def half(c: np.ndarray, limit: int) -> Any:
    """One array goes on where the mask is false."""
    x, y = np.zeros_like(c), np.zeros_like(c)
    for _ in range(limit):
        inside = x < 1.0
        x = np.where(inside, x + c, x)
        y += 1.0
    return x, y


def moving(c: np.ndarray, limit: int) -> Any:
    """What goes on is in the mask."""
    x, y = np.zeros_like(c), np.zeros_like(c)
    for _ in range(limit):
        inside = y < 5.0
        x = np.where(inside, x, x + c)
        y += 0.5
    return x, y


def signed_zero(c: np.ndarray, limit: int) -> Any:
    """-0.0 + 0.0 is 0.0: adding what is zero changes a float."""
    x = -np.zeros_like(c)
    for _ in range(limit):
        x = x + np.where(x > 1.0, c, 0.0)
    return x


GOING_ON = [by_turn, half, moving, signed_zero]


def arrays(f: Callable[..., Any], size: int, limit: int) -> None:
    for c in (RNG.uniform(0.01, 1.5, size), RNG.uniform(-2.0, 0.3, size), np.full(size, np.nan), np.full(size, 0.125)):
        expected, found = c.copy(), c.copy()
        with np.errstate(all="ignore"):
            wanted = f(expected, limit)
        given = jg.jit(f)(found, limit)
        np.testing.assert_array_equal(found, expected)
        if wanted is None:
            continue
        for w, g in zip(*((x if isinstance(x, tuple) else (x,)) for x in (wanted, given)), strict=True):
            np.testing.assert_array_equal(g, w)
            np.testing.assert_array_equal(np.signbit(g), np.signbit(w))


@pytest.mark.parametrize("f", [*SETTLING, numbers, *GOING_ON])
def test_results_are_numpys(f: Callable[..., Any]) -> None:
    for size, limit in ((1, 70), (5, 100), (64, 90), (83, 3), (83, 0)):
        arrays(f, size, limit)


def loops_of(f: Callable[..., Any]) -> list[str]:
    text = jg.jit(f).inspect_ir(RNG.uniform(0.0, 1.0, 40), 100, stage="loops")
    return re.findall(r"for \w+ in range\(0, k\w*\).*", text)


@pytest.mark.parametrize("f", SETTLING)
def test_a_loop_ends_when_no_lane_is_inside(f: Callable[..., Any]) -> None:
    (loop,) = loops_of(f)
    assert re.search(r" while \w+ carry", loop), loop


@pytest.mark.parametrize("f", GOING_ON)
def test_a_loop_that_may_change_something_goes_on(f: Callable[..., Any]) -> None:
    assert all(" while " not in loop for loop in loops_of(f))


def test_a_loop_of_numbers_ends() -> None:
    assert any(" while " in loop for loop in loops_of(numbers))


def test_the_mask_of_the_last_vector_counts() -> None:
    """Lanes behind the end hold other numbers, which must not keep the loop going, nor end it."""
    c = np.full(11, 0.5)
    c[-1] = 1e-3
    arrays_equal = jg.jit(outside)(c, 5000)
    np.testing.assert_array_equal(arrays_equal, outside(c, 5000))
