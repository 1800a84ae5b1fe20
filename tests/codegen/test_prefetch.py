"""Hints for the next lanes: which loops have them, and that they change no bits."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg

RNG = np.random.default_rng(3)
HINT = "call void @llvm.prefetch"


def along_rows(x, y):
    found = y[:, -1]
    for k in range(y.shape[1] - 2, -1, -1):
        found = x[:, k] - y[:, k] * found
        x[:, k] = found


def along_columns(x, y):
    for k in range(1, x.shape[0]):
        x[k, :] = y[k, :] - 0.5 * x[k - 1, :]


def compared(function, x, y):
    """The LLVM text of a function that writes its first argument, after a comparison with NumPy."""
    compiled, expected = jg.jit(function), x.copy()
    text = compiled.inspect_llvm(x, y)
    function(expected, y)
    compiled(x, y)
    np.testing.assert_array_equal(x, expected)
    return text


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(5, 7), (64, 3), (70, 40), (33, 2)])
def test_rows_of_lanes_are_asked_for(shape: tuple[int, int], dtype: type) -> None:
    x, y = (RNG.normal(size=shape).astype(dtype) for _ in range(2))
    text = compared(along_rows, x, y)
    hints = [line for line in text.splitlines() if HINT in line]
    assert len(hints) >= 2  # x, which is loaded and stored, once; and y
    assert all(line.endswith("i32 0, i32 3, i32 1)") for line in hints)


@pytest.mark.parametrize("view", [np.s_[:, 3:-2], np.s_[::2], np.s_[:, ::-1], np.s_[::-1, 1:]])
def test_views_of_rows(view: object) -> None:
    x, y = (RNG.normal(size=(66, 40))[view] for _ in range(2))
    compared(along_rows, x, y)


def test_lanes_side_by_side_need_none() -> None:
    x, y = (RNG.normal(size=(20, 64)) for _ in range(2))
    assert HINT not in compared(along_columns, x, y)
