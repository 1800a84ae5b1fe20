"""Recurrences that fold integers run over lanes: the text of the nest, NumPy's results, and what stays as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.loops_printer import print_body
from jitgraph.ir.dims import Facts
from jitgraph.schedule.statements import Names
from jitgraph.schedule.updates import updates
from tests.loop_programs import I64, L, array, const, i, j, k, let, n, var

P, Q = array("p", I64, n), array("q", I64, n, n)
NOTE = "folds over lanes"


def recurrence(other: L.Load, kind: str = "max", lower: int = 0) -> L.For:
    """p[j] = fold of p[j] and p[k] + other for k in range(j)."""
    body = [L.Load(var("own", I64), P, (k + lower,)), other, let("sum", "add", var("own", I64), other.var)]
    part = L.Part(var("all", I64), kind, "free", var("sum", I64), var("first", I64))  # type: ignore[arg-type]
    return L.For(
        "j", lower, n,
        [L.Load(var("first", I64), P, (j,)), L.Reduce("k", j - lower, body, [part]), L.Store(P, (j,), part.result)],
    )  # fmt: skip


def applied(s: L.For) -> str:
    facts = Facts()
    facts.bound("n", lower=3)
    return print_body(updates([s], facts, Names()))


def test_four_elements_are_finished_then_added_to_all_later_ones() -> None:
    text = applied(recurrence(L.Load(var("other", I64), Q, (k, j)), "sum"))
    expected = """
        alloc folds.w2: i64[n] scratch at 0
        for _w3 in range(0, n) vector {
          store folds.w2[_w3] = 0
        }
        for _w4 in range(0, 4*floordiv(n - 1, 4), 4) {
          w5: i64 = load p[_w4]
          w6: i64 = load folds.w2[_w4]
          w7: i64 = add w5, w6
          store p[_w4] = w7
          w8: i64 = load p[_w4 + 1]
          w9: i64 = load folds.w2[_w4 + 1]
          w10: i64 = add w8, w9
          w11: i64 = load q[_w4, _w4 + 1]
          w12: i64 = add w7, w11
          w13: i64 = add w10, w12
          store p[_w4 + 1] = w13
          w14: i64 = load p[_w4 + 2]
          w15: i64 = load folds.w2[_w4 + 2]
          w16: i64 = add w14, w15
          w17: i64 = load q[_w4, _w4 + 2]
          w18: i64 = add w7, w17
          w19: i64 = add w16, w18
          w20: i64 = load q[_w4 + 1, _w4 + 2]
          w21: i64 = add w13, w20
          w22: i64 = add w19, w21
          store p[_w4 + 2] = w22
          w23: i64 = load p[_w4 + 3]
          w24: i64 = load folds.w2[_w4 + 3]
          w25: i64 = add w23, w24
          w26: i64 = load q[_w4, _w4 + 3]
          w27: i64 = add w7, w26
          w28: i64 = add w25, w27
          w29: i64 = load q[_w4 + 1, _w4 + 3]
          w30: i64 = add w13, w29
          w31: i64 = add w28, w30
          w32: i64 = load q[_w4 + 2, _w4 + 3]
          w33: i64 = add w22, w32
          w34: i64 = add w31, w33
          store p[_w4 + 3] = w34
          for _w3 in range(16*floordiv(_w4 + 4, 16), n) vector {
            w35: i64 = load folds.w2[_w3]
            w36: i64 = load q[_w4, _w3]
            w37: i64 = add w7, w36
            w38: i64 = add w35, w37
            w39: i64 = load q[_w4 + 1, _w3]
            w40: i64 = add w13, w39
            w41: i64 = add w38, w40
            w42: i64 = load q[_w4 + 2, _w3]
            w43: i64 = add w22, w42
            w44: i64 = add w41, w43
            w45: i64 = load q[_w4 + 3, _w3]
            w46: i64 = add w34, w45
            w47: i64 = add w44, w46
            store folds.w2[_w3] = w47
          }
        }
        for _w48 in range(4*floordiv(n - 1, 4), n) {
          w49: i64 = load p[_w48]
          w50: i64 = load folds.w2[_w48]
          w51: i64 = add w49, w50
          reduce _w52 in range(_w48 - 4*floordiv(n - 1, 4)) (w56: i64 = free sum of w55, init w51) {
            w53: i64 = load p[_w52 + 4*floordiv(n - 1, 4)]
            w54: i64 = load q[_w52 + 4*floordiv(n - 1, 4), _w48]
            w55: i64 = add w53, w54
          }
          store p[_w48] = w56
        }
    """
    assert text == textwrap.dedent(expected).strip()


def test_what_the_loop_writes_itself_stays() -> None:
    """The other operand is among the loop's own elements: its value is not known before."""
    s = recurrence(L.Load(var("other", I64), P, (j,)))
    assert applied(s) == print_body([s])


def test_lanes_that_lie_apart_stay() -> None:
    s = recurrence(L.Load(var("other", I64), Q, (j, k)))
    assert applied(s) == print_body([s])


def test_an_offset_is_heeded() -> None:
    """The fold begins at the first element of the loop, or the loop stays."""
    assert "vector" in applied(recurrence(L.Load(var("other", I64), Q, (k, j)), lower=1))
    s = recurrence(L.Load(var("other", I64), Q, (k, j)))
    s.lower = 1
    assert applied(s) == print_body([s])


def test_a_float_stays() -> None:
    row, f64 = array("r", np.dtype(float), n), np.dtype(float)
    body: list[L.Stmt] = [L.Load(var("own"), row, (k,)), let("twice", "add", var("own"), var("own"))]
    part = L.Part(L.Var("all", f64), "max", "free", var("twice"), const(0.0))
    s = L.For(
        "j", 0, n, [L.DimValue(var("d", I64), i), L.Reduce("k", j, body, [part]), L.Store(row, (j,), part.result)]
    )
    assert applied(s) == print_body([s])


# --- as source ------------------------------------------------------------------------------------------------------


def longest(table: np.ndarray, gains: np.ndarray) -> None:
    """Longest ways: each row of its own, from left to right."""
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            for e in range(c):
                table[r, c] = max(table[r, c], table[r, e] + gains[e, c])


def cheapest(table: np.ndarray, gains: np.ndarray) -> None:
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            for e in range(c):
                table[r, c] = min(table[r, c], gains[e, c] - table[r, e])


def counted(table: np.ndarray, gains: np.ndarray) -> None:
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            for e in range(c):
                table[r, c] += table[r, e] * gains[e, c]


def folded(table: np.ndarray, gains: np.ndarray) -> None:
    """Nussinov's shape: rows from the last to the first, the other operand in rows that are done."""
    size = table.shape[1]
    for r in range(size - 1, -1, -1):
        for c in range(r + 1, size):
            table[r, c] = max(table[r, c], table[r, c - 1])
            if r < c - 1:
                table[r, c] = max(table[r, c], table[r + 1, c - 1] + gains[r, c])
            for e in range(r + 1, c):
                table[r, c] = max(table[r, c], table[r, e] + table[e + 1, c])


PROGRAMS = [longest, cheapest, counted, folded]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_numpys(function: Callable[..., None], dtype: type) -> None:
    jitted = jg.jit(function)
    for size in (2, 3, 4, 5, 6, 7, 9, 16, 18, 21, 33):
        numbers = np.random.default_rng(size)
        table, gains = (numbers.integers(0, 3, (size, size)).astype(dtype) for _ in range(2))
        other = table.copy()
        with np.errstate(over="ignore"):
            function(table, gains)
            jitted(other, gains)
        assert np.array_equal(table, other), size
    assert not jitted.explain(table, gains).host_calls


def test_explain_says_so() -> None:
    table = np.zeros((9, 9), np.int32)
    assert NOTE in str(jg.jit(longest).explain(table, table.copy()))
