"""Sums over views whose axes turn out to follow one another: NumPy adds up one sequence in other chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.lower_borders import borders_of, strides_of
from jitgraph.codegen.lower_views import dense_strides
from jitgraph.config import config
from jitgraph.ir.dims import evaluate, symbol
from jitgraph.ir.parser import parse
from jitgraph.ops.reduction_plan import reduction_plan


def every_other_column(x: Any, y: Any, i: Any) -> Any:
    return x[:, ::2].sum(), x[:, 1::2].mean(), x[:, ::3].sum(), x.T[::2].sum(), x[:, ::-2].sum(), x[::-1, ::2].sum()


def as_many_columns_as_another_array(x: Any, y: Any, i: Any) -> Any:
    return x[:, : len(y)].sum(), x[:, x.shape[1] - len(y) :].sum(), (x * 2)[:, : len(y)].sum()


def as_many_columns_as_data_say(x: Any, y: Any, i: Any) -> Any:
    k = i[0]
    return x[:, :k].sum(), x[:, ::-1][:, :k].sum(), x[:, :k][::-1, ::-1].sum(), x[:, :k].var()


def under_masks(x: Any, y: Any, i: Any) -> Any:
    k = i[0]
    return np.sum(x[:, :k], where=x[:, :k] > 0), np.sum(x[:, ::2], where=(x > 0)[:, 1::2]) if x.shape[1] % 2 == 0 else 0


def in_other_dtypes(x: Any, y: Any, i: Any) -> Any:
    return x[:, ::2].sum(dtype=np.float32), x.astype(np.float32)[:, : i[0]].sum(), (x + 1j * x)[:, : i[0]].sum()


def in_three_axes(x: Any, y: Any, i: Any) -> Any:
    z = x.reshape(-1, 2, x.shape[1])
    return z[:, :, : i[0]].sum(), z[:, 2 - len(y) // x.shape[1] :, : i[0]].sum(), z[:, :, ::2].sum(axis=(1, 2))


PROGRAMS = [
    every_other_column, as_many_columns_as_another_array, as_many_columns_as_data_say, under_masks, in_other_dtypes,
    in_three_axes,
]  # fmt: skip
#: Rows and columns, and how many of these are asked for.
CALLS = [
    (1000, 38, 38),
    (1000, 37, 36),
    (1000, 37, 37),
    (900, 36, 36),
    (9000, 2, 2),
    (9000, 2, 1),
    (20, 900, 900),
    (4, 3, 3),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_bits_are_those_of_the_sizes_at_hand(program: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    with config.override(cache=False, verify=True):
        jitted = jg.jit(program)
        for n, m, k in CALLS:
            args = rng.standard_normal((n, m)), np.zeros(k), np.array([k])
            for number, (expected, found) in enumerate(zip(program(*args), jitted(*args), strict=True)):
                np.testing.assert_array_equal(found, expected, err_msg=f"{n} rows, {k} of {m} columns, sum {number}")


@pytest.mark.parametrize(
    ("view", "closed"),
    [
        ("(d0: floordiv(n + 1, 2), d1: m) -> (2*d0, d1)", None),  # the rows have gaps between them for all sizes
        ("(d0: n, d1: m - 1) -> (d0, d1)", None),
        ("(d0: n, d1: floordiv(m + 1, 2)) -> (d0, 2*d1)", [(36, 1), (37, 0)]),
        ("(d0: n, d1: floordiv(m + 1, 2)) -> (d0, -2*d1 + m - 1)", None),
    ],
)
def test_borders_of_which_only_the_run_knows(view: str, closed: list[tuple[int, int]] | None) -> None:
    graph = parse(f"""
        graph @f(%x: f64[n, m]) -> np.f64 where n >= 0, n != 1, m >= 0, m != 1 {{
          %v = view %x {{map = {view}}} : f64[{view[5:].split(", d1: ", maxsplit=1)[0]}, {view.split("d1: ")[1].split(") ->", maxsplit=1)[0]}]:strided(order=[0, 1], breaks=[0, 1])
          %s = reduce_sum %v {{axes = [0, 1], keepdims = false}} : np.f64
          return %s
        }}""")  # fmt: skip
    (total,) = graph.body.terminator.operands
    v = total.producer.operands[0]
    found = borders_of([v], [v.type], reduction_plan(v.type, (0, 1)), graph.facts)
    if closed is None:
        assert not found
        return
    (border,) = found
    assert border.axes == (0, 1)
    assert [evaluate(border.closed, {"n": 9, "m": m}) for m, _ in closed] == [flag for _, flag in closed]


def test_strides_of_views_of_views() -> None:
    graph = parse("""
        graph @f(%x: f64[n, m]) -> f64[k, floordiv(n + 1, 2)] {
          %a = view %x {map = (d0: floordiv(n + 1, 2), d1: m) -> (2*d0, d1)} : f64[floordiv(n + 1, 2), m]:strided(order=[0, 1], breaks=[0])
          %b = view %a {map = (d0: m, d1: floordiv(n + 1, 2)) -> (d1, -d0 + m - 1)} : f64[m, floordiv(n + 1, 2)]:strided(order=[1, 0], breaks=[0], negative=[0])
          return %b
        }""")  # fmt: skip
    m = symbol("m")
    (b,) = graph.body.terminator.operands
    assert strides_of(b) == [-1, 2 * m]
    assert dense_strides((3, m, 4), (0, 1, 2), 1) == (4 * m, 4, 1)
    assert dense_strides((3, m), (1, 0), 1) == (1, 3)
