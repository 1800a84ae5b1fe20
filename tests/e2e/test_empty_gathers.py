"""Gathers from arrays that turn out to be empty: the elements may be read before the index is found to be out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

FIRST = np.array([1, 0])


def _kept(a: Any) -> Any:
    v = a[a != 0]
    np.copyto(v, v[FIRST].sum())
    return v


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: a[a != 0][FIRST].sum(),
    "of positions": lambda a: np.flatnonzero(a)[FIRST].sum(),
    "a chain": lambda a: (a[a != 0] * 2)[FIRST] + 1,
    "variance": lambda a: a[a != 0][FIRST].var(),
    "into what is returned": _kept,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_index_into_nothing_raises(name: str) -> None:
    f = PROGRAMS[name]
    jitted = jg.jit(f, numerics="numpy")
    np.testing.assert_array_equal(jitted(np.ones(5)), f(np.ones(5)))
    for nothing in (np.zeros(0), np.zeros(5)):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
            jitted(nothing)
