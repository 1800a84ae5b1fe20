"""Small operands of updates are copied, so that the update is one kernel in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.ir.graph import Graph
from jitgraph.passes.bufferize import bufferize
from jitgraph.passes.fuse import fuse
from jitgraph.passes.snapshot import snapshot
from tests.checks import SAME, check_pass

RNG = np.random.default_rng(3)


def kernels(graph: Graph) -> list[list[str]]:
    """The names of the ops of each kernel."""
    return [[o.name for o in op.regions[0].ops()] for op in graph.walk() if op.name == "kernel"]


def test_a_row_and_a_column_of_what_is_written_are_copied() -> None:
    graph = check_pass(
        snapshot,
        """
        graph @f(%x: i32[n, m]) -> (argument 0) if n >= 3, m >= 3 {
          %column = view %x {map = (d0: n, d1: 1) -> (d0, 2)} : i32[n, 1]:strided(order=[0, 1], breaks=[0])
          %row = view %x {map = (d0: m) -> (2, d0)} : i32[m]
          %sum = add %column, %row : i32[n, m]
          %least = minimum %x, %sum : i32[n, m]
          %y = write %least, %x {map = (d0: n, d1: m) -> (d0, d1)} : i32[n, m]
          return %y {mutates = [0]}
        }""",
        """
        graph @f(%x: i32[n, m]) -> (argument 0) if n >= 3, m >= 3 {
          %column = view %x {map = (d0: n, d1: 1) -> (d0, 2)} : i32[n, 1]:strided(order=[0, 1], breaks=[0])
          %row = view %x {map = (d0: m) -> (2, d0)} : i32[m]
          %c = copy %column {order = "C", reason = "a part of x that the statement overwrites is read for all its elements"} : i32[n, 1]
          %r = copy %row {order = "C", reason = "a part of x that the statement overwrites is read for all its elements"} : i32[m]
          %sum = add %c, %r : i32[n, m]
          %least = minimum %x, %sum : i32[n, m]
          %y = write %least, %x {map = (d0: n, d1: m) -> (d0, d1)} : i32[n, m]
          return %y {mutates = [0]}
        }""",
    )
    fuse(graph)
    assert not bufferize(graph)
    assert kernels(graph)[-1] == ["add", "minimum", "write", "yield"]


def test_of_a_repeated_row_only_the_row_is_copied() -> None:
    check_pass(
        snapshot,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 1 {
          %row = view %x {map = (d0: n, d1: m) -> (0, d1)} : f64[n, m]:strided(order=[1, 0], zero=[0])
          %sum = add %x, %row : f64[n, m]
          %y = write %sum, %x {map = (d0: n, d1: m) -> (d0, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 1 {
          %row = view %x {map = (d0: n, d1: m) -> (0, d1)} : f64[n, m]:strided(order=[1, 0], zero=[0])
          %one = view %x {map = (d0: 1, d1: m) -> (0, d1)} : f64[1, m]
          %c = copy %one {order = "C", reason = "a part of x that the statement overwrites is read for all its elements"} : f64[1, m]
          %again = view %c {map = (d0: n, d1: m) -> (0, d1)} : f64[n, m]:strided(order=[1, 0], zero=[0])
          %sum = add %x, %again : f64[n, m]
          %y = write %sum, %x {map = (d0: n, d1: m) -> (d0, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
    )


@pytest.mark.parametrize(
    "read",
    [
        "view %x {map = (d0: n, d1: m) -> (-d0 + n - 1, d1)} : f64[n, m]:strided(order=[0, 1], negative=[0])",
        "view %x {map = (d0: n, d1: m) -> (d0, -d1 + m - 1)} : f64[n, m]:strided(order=[0, 1], negative=[1])",
    ],
)
def test_a_read_of_as_many_other_elements_is_left_as_it_is(read: str) -> None:
    check_pass(
        snapshot,
        f"""
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 1, m >= 1 {{
          %other = {read}
          %row = view %x {{map = (d0: m) -> (0, d0)}} : f64[m]
          %a = add %other, %row : f64[n, m]
          %y = write %a, %x {{map = (d0: n, d1: m) -> (d0, d1)}} : f64[n, m]
          return %y {{mutates = [0]}}
        }}""",
        SAME,
    )


def test_a_row_that_is_not_written_needs_no_copy() -> None:
    check_pass(
        snapshot,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 1 {
          %row = view %x {map = (d0: m) -> (0, d0)} : f64[m]
          %below = view %x {map = (d0: n - 1, d1: m) -> (d0 + 1, d1)} : f64[n - 1, m]
          %a = sub %below, %row : f64[n - 1, m]
          %y = write %a, %x {map = (d0: n - 1, d1: m) -> (d0 + 1, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
        SAME,
    )


def _floyd(x: np.ndarray) -> None:
    for k in range(x.shape[0]):
        x[:] = np.minimum(x, np.add.outer(x[:, k], x[k]))


def _eliminate(x: np.ndarray) -> None:
    for k in range(min(x.shape)):
        x[k:] -= x[k] * x[k:, k : k + 1] * 0.01


def _centred(x: np.ndarray) -> None:
    x -= x[0]
    x *= x[:, :1] + x[-1:]


def _first(x: np.ndarray) -> None:
    x += x[0, 0] * x[1, 1]


def _vector(x: np.ndarray) -> None:
    x[1] = x[1] + x[1, :1] + x[1, -1:]


def _transposed(x: np.ndarray) -> None:
    x.T[:] = x.T - x[:, 0] + x.T[2][:, None][: x.shape[1]][:1]


def _broadcast(x: np.ndarray) -> None:
    x[...] = x + np.broadcast_to(x[2], x.shape) + np.broadcast_to(x[:, 1:2], x.shape)


def _shared(x: np.ndarray) -> np.ndarray:
    y = x * x[1]
    x[:] = y + x[:, :1]
    return y


def _other_name(x: np.ndarray) -> None:
    rows = x[::2]
    rows[:] = rows * x[0] + rows[:, -1:]


@pytest.mark.parametrize(
    "f", [_floyd, _eliminate, _centred, _first, _vector, _transposed, _broadcast, _shared, _other_name]
)
@pytest.mark.parametrize("shape", [(5, 7), (19, 19)])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_updates_that_read_rows_of_their_own_are_numpys(f: Callable[..., Any], shape: tuple, layout: str) -> None:
    elements = RNG.standard_normal(shape)

    def laid() -> np.ndarray:
        if layout == "strided":
            return np.repeat(np.repeat(elements, 2, 0), 2, 1)[::2, ::2]
        if layout == "reversed":
            return elements.copy()[::-1, ::-1]
        return elements.copy(order=layout)

    expected, found = laid(), laid()
    if f in (_floyd, _transposed):
        expected, found = (x[: min(shape), : min(shape)] for x in (expected, found))
    wanted, given = f(expected), jg.jit(f)(found)
    np.testing.assert_array_equal(found, expected)
    if wanted is not None:
        np.testing.assert_array_equal(given, wanted)


def test_floyd_warshall_is_one_kernel_in_place() -> None:
    def f(path: np.ndarray) -> None:
        for k in range(path.shape[0]):
            path[:] = np.minimum(path, np.add.outer(path[:, k], path[k]))

    loops = jg.jit(f).inspect_ir(RNG.integers(1, 100, (70, 70)), stage="loops")
    assert all("[n, m]" not in line for line in loops.splitlines() if "alloc" in line)


def test_a_view_that_is_read_twice_is_copied_in_front_of_the_first_reader() -> None:
    check_pass(
        snapshot,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 1 {
          %row = view %x {map = (d0: m) -> (0, d0)} : f64[m]
          %p = mul %x, %row : f64[n, m]
          %d = sub %row, %p : f64[n, m]
          %y = write %d, %x {map = (d0: n, d1: m) -> (d0, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 1 {
          %row = view %x {map = (d0: m) -> (0, d0)} : f64[m]
          %c = copy %row {order = "C", reason = "a part of x that the statement overwrites is read for all its elements"} : f64[m]
          %p = mul %x, %c : f64[n, m]
          %d = sub %c, %p : f64[n, m]
          %y = write %d, %x {map = (d0: n, d1: m) -> (d0, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
    )
