"""What leaves the straight path: errors and indices from the end, bounds of slices outside the axis."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.loops_printer import print_body
from jitgraph.schedule.cold import cold
from jitgraph.schedule.statements import Names
from jitgraph.schedule.unused import without_unused
from tests.loop_programs import F64, I64, B, L, array, const, let, n, symbol, var

Y, PLACES = array("y", F64, n), array("places", I64, n)
ZERO = const(0, I64)


def bound(low: str = "ge", high: str = "le") -> list[L.Stmt]:
    """The bound of a slice: `p` moved into an axis of `n`."""
    p, size = var("p", I64), var("size", I64)
    return [
        L.Load(p, PLACES, (0,)),
        L.DimValue(size, n),
        let("negative", "cmp", p, ZERO, dtype=B, attr="lt"),
        let("shifted", "add", p, size),
        let("moved", "select", var("negative", B), var("shifted", I64), p, dtype=I64),
        let("above", "cmp", var("moved", I64), ZERO, dtype=B, attr=low),
        let("least", "select", var("above", B), var("moved", I64), ZERO, dtype=I64),
        let("below", "cmp", var("least", I64), size, dtype=B, attr=high),
        let("q", "select", var("below", B), var("least", I64), size, dtype=I64),
        L.Bind("at", var("q", I64)),
        L.Store(Y, (symbol("at"),), const(1.0)),
    ]


def index() -> list[L.Stmt]:
    """An index `p` of an axis of `n`, checked and taken from the end."""
    p, size, least = var("p", I64), var("size", I64), var("least", I64)
    return [
        L.Load(p, PLACES, (0,)),
        L.DimValue(size, n),
        L.DimValue(least, -n),
        let("high", "cmp", p, size, dtype=B, attr="lt"),
        let("low", "cmp", p, least, dtype=B, attr="ge"),
        let("inside", "and_", var("high", B), var("low", B)),
        L.Check(var("inside", B), 0),
        let("negative", "cmp", p, ZERO, dtype=B, attr="lt"),
        let("shifted", "add", p, size),
        let("q", "select", var("negative", B), var("shifted", I64), p, dtype=I64),
        L.Bind("at", var("q", I64)),
        L.Store(Y, (symbol("at"),), const(1.0)),
    ]


def text(body: list[L.Stmt]) -> str:
    return print_body(without_unused(cold(body, Names())))


def test_a_bound_within_the_axis_is_itself() -> None:
    wanted = """
        p: i64 = load places[0]
        size: i64 = dim n
        w2: u64 = cast p
        w3: u64 = cast size
        w4: bool = cmp le w2, w3
        if w4 {
        } else cold {
          negative: bool = cmp lt p, 0
          shifted: i64 = add p, size
          moved: i64 = select negative, shifted, p
          above: bool = cmp ge moved, 0
          least: i64 = select above, moved, 0
          below: bool = cmp le least, size
          w1: i64 = select below, least, size
        } merge (q: i64 = p | w1)
        bind at = q
        store y[at] = 1.0
    """
    assert text(bound()) == textwrap.dedent(wanted).strip()


@pytest.mark.parametrize("tests", [("gt", "le"), ("ge", "lt"), ("lt", "le"), ("ge", "ge")])
def test_choices_that_are_no_bound_stay(tests: tuple[str, str]) -> None:
    assert text(bound(*tests)) == print_body(bound(*tests))


def test_an_index_is_one_comparison() -> None:
    wanted = """
        p: i64 = load places[0]
        size: i64 = dim n
        w1: i64 = dim n
        w5: u64 = cast p
        w6: u64 = cast w1
        w7: bool = cmp lt w5, w6
        if w7 {
        } else cold {
          least: i64 = dim -n
          high: bool = cmp lt p, size
          low: bool = cmp ge p, least
          inside: bool = and_ high, low
          check inside site 0 ()
          w2: i64 = add p, w1
          w4: bool = cmp lt p, 0
          w3: i64 = select w4, w2, p
        } merge (q: i64 = p | w3)
        bind at = q
        store y[at] = 1.0
    """
    assert text(index()) == textwrap.dedent(wanted).strip()


# --- results --------------------------------------------------------------------------------------------------------


def products(starts: np.ndarray, stops: np.ndarray, v: np.ndarray) -> Any:
    y = np.zeros(starts.shape[0])
    for i in range(starts.shape[0]):
        y[i] = v[starts[i] : stops[i]] @ v[starts[i] : stops[i]]
    return y


def raised(starts: np.ndarray, stops: np.ndarray, v: np.ndarray) -> Any:
    for i in range(starts.shape[0]):
        v[starts[i] : stops[i]] += 1.0
    return v.sum()


def sizes(starts: np.ndarray, stops: np.ndarray, v: np.ndarray) -> Any:
    y = np.zeros(starts.shape[0], np.int64)
    for i in range(starts.shape[0]):
        y[i] = v[starts[i] :][: stops[i]].size * 100 + v[stops[i] : starts[i] : -1].size
    return y


def of_slices(starts: np.ndarray, stops: np.ndarray, v: np.ndarray) -> Any:
    total, i = 0.0, 0
    while i < starts.shape[0]:
        w = v[starts[i] : stops[i]][i - 3 : stops[i]]
        total += w.sum() if w.size else -1.0
        i += 1
    return total


@pytest.mark.parametrize("function", [products, raised, sizes, of_slices])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_bounds_anywhere(function: Callable[..., Any], length: int) -> None:
    """Within the axis, at its ends, from its end, outside on both sides, and at the ends of the integers."""
    ends = [-(2**63), -9, -8, -7, -6, -1, 0, 1, 3, 6, 7, 8, 9, 2**63 - 1]
    pairs = np.array(list(itertools.product(ends, ends)), np.int64)
    v = np.arange(1.0, length + 1)
    ours, theirs = v.copy(), v.copy()
    got = jg.jit(function)(pairs[:, 0], pairs[:, 1], ours)
    wanted = function(pairs[:, 0], pairs[:, 1], theirs)
    assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
    assert ours.tobytes() == theirs.tobytes()
