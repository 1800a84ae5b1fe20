"""Writes of values of which a run turns out to have none, behind a write that the caller sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


def _place(x: Any, m: Any, v: Any) -> Any:
    np.place(m, m > 98, v)


def _place_nothing(x: Any, m: Any, v: Any) -> Any:
    np.place(m, m > 0, v)


def _putmask(x: Any, m: Any, v: Any) -> Any:
    np.putmask(m, m > 0, v)


def _flat(x: Any, m: Any, v: Any) -> Any:
    m.flat[...] = v
    m.T.flat[1::2] = v
    m[::-1].flat = v


def _flat_at(x: Any, m: Any, v: Any) -> Any:
    m.flat[[5, 1]] = v
    m[::-1].flat[m.ravel() > 2] = v


def _flat_outside(x: Any, m: Any, v: Any) -> Any:
    m.flat[[88, 1]] = v


def _diagonal(x: Any, m: Any, v: Any) -> Any:
    np.fill_diagonal(m, v)
    np.fill_diagonal(m.T, v, wrap=True)


def _resize(x: Any, m: Any, v: Any) -> Any:
    return np.resize(v, (2, 3)), np.resize(v + 1, 4)


PROGRAMS = (_place, _place_nothing, _putmask, _flat, _flat_at, _flat_outside, _diagonal, _resize)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__[1:])
def test_no_values_behind_a_write(program: Callable[..., Any]) -> None:
    def f(x: Any, m: Any) -> Any:
        x[0] = 3
        v = x * 1
        return program(x, m, v[v > 99])

    def seen(called: Callable[..., Any], top: float) -> Any:
        x, m = np.linspace(0, top, 6), np.arange(8.0).reshape(2, 4)
        try:
            found = called(x, m)
        except (ValueError, IndexError) as error:
            found = isinstance(error, IndexError)
        return repr((found, x, m))

    jitted = jg.jit(f, numerics="numpy")
    for top in (200.0, 1.0, 100.0, 0.0):
        assert seen(jitted, top) == seen(f, top)
