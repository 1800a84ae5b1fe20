"""Arrays that a loop fills get no first value; all others do."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg
from tests.lowered import Lowered, loops_text

TEXT = """
graph @f(%x: f64[n, 3]) -> (f64[n, 3], f64[n]) where n >= 0, n != 1, index i >= 0, i <= n - 1 {{
  %one = constant {{value = f64(1.0)}} : np.f64
  %a = full %one {{shape = [n, 3], dtype = f64}} : f64[n, 3]
  %b = full %one {{shape = [n], dtype = f64}} : f64[n]
  %c, %d = for %a, %b {{index = i, lower = 0, upper = n, step = 1}} : f64[n, 3], f64[n] (%p: f64[n, 3], %q: f64[n]) {{
    %r = view %x {{map = (d0: 3) -> (i, d0)}} : f64[3]
    %s = view %x {{map = () -> (i, 0)}} : np.f64
    {0}
    %v = write %s, %q {{map = () -> (-i + n - 1)}} : f64[n]
    yield %u, %v
  }}
  return %c, %d {{mutates = []}}
}}
"""
FILLED = "call k"


@pytest.mark.parametrize(
    "row",
    [
        "%u = write %r, %p {map = (d0: 3) -> (i, d0)} : f64[n, 3]",
        "%u = write %r, %p {map = (d0: 3) -> (-i + n - 1, d0)} : f64[n, 3]",
    ],
)
def test_whole_rows_in_turn(row: str) -> None:
    text = TEXT.format(row)
    entry = loops_text(text)
    entry = entry[entry.index("program f") :]
    assert FILLED not in entry[: entry.index("for i in")]
    for n in (0, 2, 5):
        Lowered(text)(np.arange(3.0 * n).reshape(n, 3))


@pytest.mark.parametrize(
    "row",
    [
        "%t = view %r {map = (d0: 2) -> (d0)} : f64[2]\n"
        "    %u = write %t, %p {map = (d0: 2) -> (i, d0)} : f64[n, 3]",  # a part of the row
        "%u = write %r, %p {map = (d0: 3) -> (0, d0)} : f64[n, 3]",  # always the same row
        "%o = view %p {map = (d0: 3) -> (-i + n - 1, d0)} : f64[3]\n"
        "    %t = add %o, %r : f64[3]\n"
        "    %u = write %t, %p {map = (d0: 3) -> (i, d0)} : f64[n, 3]",  # rows are read
    ],
)
def test_what_is_not_filled_or_is_read_has_its_first_value(row: str) -> None:
    text = TEXT.format(row)
    entry = loops_text(text)
    entry = entry[entry.index("program f") :]
    assert FILLED in entry[: entry.index("for i in")]
    for n in (2, 5):
        Lowered(text)(np.arange(3.0 * n).reshape(n, 3))


def test_loops_of_users() -> None:
    def filled(xs, n):
        out = np.empty(n)
        for i in range(n):
            out[i] = xs[i] * 2.0
        return out

    def from_one(xs, n):
        out = np.ones(n)
        for i in range(1, n):
            out[i] = xs[i]
        return out

    def until(xs, n):
        out = np.ones(n)
        for i in range(n):
            out[i] = xs[i]
            if xs[i] > 15.0:
                break
        return out

    def summed(xs, n):
        out, total = np.ones(n), np.zeros(n)
        for i in range(n):
            out[i] = xs[i]
            total += out
        return total

    def neighbours(xs, n):
        out, found = np.ones(n), np.zeros(n)
        for i in range(n):
            out[i] = xs[i]
            found[i] = out[n - 1 - i]
        return found

    def reduced(xs, n):
        out, found = np.ones((n, 3)), 0.0
        for i in range(n):
            out[i] = xs[i] * 0.5
            found += np.max(out[:, 1])
        return np.array([found])

    xs = np.arange(20.0)
    for f in (filled, from_one, until, summed, neighbours, reduced):
        for n in (0, 1, 20):
            assert (jg.jit(f)(xs, n) == f(xs, n)).all()
