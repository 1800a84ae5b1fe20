"""`v.base` of results that are views: the array that NumPy says, by both dispatchers and by `view_array`."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.storage import view_array

A = np.arange(20.0).reshape(4, 5)


def of_a_result(x):
    y = x * 2
    return y, y[1:], y[..., ::-2], y[None], y.T, y[1:][::2], y.reshape(-1)[1:]


def of_an_argument(x):
    return x, x[1:], x.T, x[::2, None], x[:, ::-1], x[0], x[1:].T[1:]


def of_both(x):
    return x[1:], (x + 1)[1:], x[1, 2:], x.real


def seen(f, x):
    """For each result what its base is: the argument, its base, one of the results, an ndarray, or nothing."""
    results = f(x)
    known = {id(x): "argument", **{id(r): k for k, r in enumerate(results)}}
    if x.base is not None:
        known[id(x.base)] = "base of the argument"
    return [None if r.base is None else known.get(id(r.base), type(r.base)) for r in results]


@pytest.mark.parametrize("dispatch", ["native", "python"])
@pytest.mark.parametrize("x", [A.copy(), A.T, A[:, 1:], A[::-1], np.asfortranarray(A), np.ones((0, 3)), A[1:1].copy()])
@pytest.mark.parametrize("f", [of_a_result, of_an_argument, of_both])
def test_bases_of_views(f, x, dispatch):
    if f is of_an_argument and not len(x):
        x = np.ones((1, 3))
    if f is of_both and not len(x):
        x = np.ones((2, 0))
    if f is of_a_result and not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)  # else `reshape` copies, which NumPy makes a view of
    with config.override(dispatch=dispatch):
        g = jg.jit(f)
        for _ in range(3):
            assert seen(g, x) == seen(f, x)


@pytest.mark.parametrize(
    ("base", "view", "expected"),
    [
        (A, IndexMap((3, 4), (AxisMap(1, 1, 0), AxisMap(4, -1, 1))), A[1:, 4:0:-1]),
        (A, IndexMap((5, 4), (AxisMap(0, 1, 1), AxisMap(0, 1, 0))), A.T),
        (A, IndexMap((2,), (AxisMap(1, 1, 0), AxisMap(0, 2, 0))), A[1:].diagonal()[:2] * 0 + [5, 12]),
        (A, IndexMap((1, 3), (AxisMap(2), AxisMap(2, 1, 1))), A[2:3, 2:]),
        (A, IndexMap((2, 5), (AxisMap(2), AxisMap(0, 1, 1))), np.broadcast_to(A[2], (2, 5))),
        (A, IndexMap((), (AxisMap(2), AxisMap(3))), A[2, 3, ...]),
        (A, IndexMap((0, 5), (AxisMap(4, 1, 0), AxisMap(0, 1, 1))), A[4:]),
        (np.array(3.0), IndexMap((1, 1), ()), np.array([[3.0]])),
        (np.array(3.0), IndexMap((0,), ()), np.ones(0)),
    ],
)
def test_view_array(base, view, expected):
    for writeable in (True, False):
        array = base.copy()
        array.flags.writeable = writeable
        made = view_array(array, view)
        np.testing.assert_array_equal(made, expected)
        assert made.base is array and made.shape == expected.shape
        assert made.flags.writeable == (writeable and view.shape != (2, 5))
