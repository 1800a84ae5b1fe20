"""Writes through `x.flat` and onto diagonals, which NumPy makes element after element, and what indices may be numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.errors import TraceError
from tests.fuzz.compare import difference, run
from tests.fuzz.programs import function_of


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False):
        yield


def _given(shape: tuple[int, int] = (4, 4)) -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=8), rng.normal(size=shape), np.array([1, 0, 2])]


def _compared(line: str, shape: tuple[int, int] = (4, 4)) -> str:
    """What a statement on x: f64[8], y: f64[shape], k: i64[3] does differently."""
    function = function_of(f"def program(x, y, k):\n    v = None\n    {line}\n    return x, y, v\n", f"<flat {line}>")
    expected, found = run(function, _given(shape)), run(jg.jit(function, numerics="numpy"), _given(shape))
    assert not isinstance(found.error, TraceError)
    return difference(_given(shape), expected, found, free_zero=False)


TAKEN = [
    "x.flat = x", "x.flat[:] = x", "x[:3].flat = x[3:6]", "x[::2].flat = x[1::2]", "x.flat[3:] = x[:3]", "x.flat[3] = x[2]",
    "x.flat[3:5] = x[2:3]", "x.flat[1:] = x.copy()", "x.flat[1:] = list(x)", "x.flat[1:] += x.flat[:-1]", "y.flat = y", "y.T.flat = y.T",
    "y[0].flat = y[1]", "y.flat = x", "y.flat[x.argmax()] = 3", "x[0].flat[:] = 7", "x.flat[2] = x", "x.flat[2] = [1.0]",
    "np.fill_diagonal(y, y[0])", "np.fill_diagonal(y, y[:, 0])", "np.fill_diagonal(y, y.diagonal())", "np.fill_diagonal(y, x)",
    "np.fill_diagonal(y, [])", "np.fill_diagonal(y, x[:0], wrap=True)", "np.fill_diagonal(y, y[1].astype('f4'))",
]  # fmt: skip
LEFT = [
    "x.flat[1:] = x", "x.flat[::-1] = x", "x.flat = x[::-1]", "x[1:].flat = x[:-1]", "x.flat[[0, 1, -1]] = x[::-1]", "x.flat[x > 0] = x",
    "y.flat = y.T", "y.T.flat = y", "y[::-1].flat = y", "y.flat[::2] = y", "y[0].flat = y[:, 0]", "np.fill_diagonal(y, y.diagonal()[::-1])",
    "np.fill_diagonal(y, y[0, ::-1])",
]  # fmt: skip


@pytest.mark.parametrize("line", TAKEN)
def test_flat_writes(line: str) -> None:
    assert not _compared(line)


@pytest.mark.parametrize("line", LEFT)
def test_values_that_an_earlier_write_changes_are_left_to_python(line: str) -> None:
    with pytest.warns(UserWarning, match="plain Python: .*one after the other: NumPy overwrites some first"):
        assert not _compared(line)


def test_diagonals_that_wrap() -> None:
    assert not _compared("np.fill_diagonal(y, x, wrap=True)", (6, 4))
    with pytest.warns(UserWarning, match="NumPy overwrites some first"):
        assert not _compared("np.fill_diagonal(y, y[-1], wrap=True)", (6, 4))


#: What `take` and its kin are given: `int` makes indices of numbers, arrays have to be of integers.
INDICES = [
    "1.5", "np.float32(1.5)", "np.uint64(2)", "[1.5, 2.5]", "[np.float64(2.5)]", "[float(abs(x[0])), 1]", "abs(x[0])", "[k]", "[abs(x[:2])]",
    "np.array(1.5)", "np.array([2], 'u8')", "x[:1]", "1j", "np.nan", "[]", "np.zeros(0)",
]  # fmt: skip
CALLS = ["v = np.take(x, {})", "np.put(x, {}, 9)", "x.put({}, k, 'wrap')", "v = np.choose({}, [x[0], 2.0, 3.0])"]


@pytest.mark.parametrize("index", INDICES)
def test_numbers_as_indices(index: str) -> None:
    for call in CALLS:
        assert not _compared(call.format(index)), call


def test_a_float_counts_repeats() -> None:
    assert not _compared("v = np.repeat(x, np.float32(1.5))")
