"""`np.empty` holds what its memory held: nothing is stored, and nothing is shared."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg


def parts(x):
    out = np.empty(x.shape[0] + 1, x.dtype)
    out[0] = 7
    out[1:] = x * 2
    return out


def in_turns(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        t = np.empty(3)
        t[:2] = x[i]
        t[2] = i
        out[i] = t.sum()
    return out


def two(x):
    a, b = np.empty(x.shape), np.empty(x.shape)
    a[...] = x
    b[...] = x + 1
    return a, b


def by_branch(x):
    out = np.empty(4) if x[0] > 0 else np.zeros(4)
    out[:] = out.shape[0]
    out[1] = x[0]
    return out


@pytest.mark.parametrize("function", [parts, in_turns, two, by_branch])
def test_what_is_written_is_there(function) -> None:
    for sign in (1, -1):
        x = sign * np.arange(1.0, 9.0)
        found, expected = jg.jit(function)(x), function(x)
        for a, b in zip(np.atleast_2d(found), np.atleast_2d(expected), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function", [parts, in_turns])
def test_nothing_is_stored_first(function) -> None:
    text = jg.jit(function).inspect_ir(np.arange(8.0), stage="loops")
    assert "= 0.0" not in text


def test_arrays_are_their_own() -> None:
    a, b = jg.jit(two)(np.arange(5.0))
    assert not np.shares_memory(a, b)


@pytest.mark.parametrize(
    "make", [lambda: np.empty((2, 3), order="F"), lambda: np.empty(()), lambda: np.empty((0, 4), int)]
)
def test_layouts(make) -> None:
    found, expected = jg.jit(make)(), make()
    assert (found.shape, found.dtype, found.strides) == (expected.shape, expected.dtype, expected.strides)


def test_gradients_reach_what_was_written() -> None:
    def loss(x):
        out = np.empty(3)
        out[:2] = x * x
        out[2] = x[0]
        return out.sum()

    x = np.array([3.0, 4.0])
    np.testing.assert_array_equal(jg.grad(jg.jit(loss))(x), [7.0, 8.0])
