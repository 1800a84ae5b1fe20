"""Copies that only the next update of the same array reads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.passes.uncopied import uncopied
from tests.checks import SAME, check_pass

RNG = np.random.default_rng(23)

SWEEP = """
    graph @f(%x: f64[n, m]) -> (argument 0) if n >= 3, m >= 3 {{
      %old = copy %x {{order = "K"}} : f64[n, m]
      %up = view %old {{map = (d0: n - 2, d1: m) -> (d0, d1)}} : f64[n - 2, m]
      %down = view %old {{map = (d0: n - 2, d1: m) -> (d0 + 2, d1)}} : f64[n - 2, m]
      %sum = add %up, %down : f64[n - 2, m]
      %y = write %sum, %x {{map = (d0: n - 2, d1: m) -> (d0 + 1, d1)}} : f64[n, m]
      {rest}
    }}"""


def test_a_sweep_reads_the_array_itself() -> None:
    check_pass(
        uncopied,
        SWEEP.format(rest="return %y {mutates = [0]}"),
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 3, m >= 3 {
          %up = view %x {map = (d0: n - 2, d1: m) -> (d0, d1)} : f64[n - 2, m]
          %down = view %x {map = (d0: n - 2, d1: m) -> (d0 + 2, d1)} : f64[n - 2, m]
          %sum = add %up, %down : f64[n - 2, m]
          %y = write %sum, %x {map = (d0: n - 2, d1: m) -> (d0 + 1, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
    )


@pytest.mark.parametrize(
    "rest",
    [
        "%z = write %up, %y {map = (d0: n - 2, d1: m) -> (d0, d1)} : f64[n, m]\n  return %z {mutates = [0]}",
        "%s = reduce_sum %old {axes = [0, 1], keepdims = false, dtype = f64} : np.f64\n"
        "%z = write %s, %y {map = () -> (0, 0)} : f64[n, m]\n  return %z {mutates = [0]}",
    ],
)
def test_a_copy_that_is_needed_behind_the_update_stays(rest: str) -> None:
    check_pass(uncopied, SWEEP.format(rest=rest), SAME)


def test_an_update_of_the_rows_far_behind_reads_a_copy() -> None:
    check_pass(
        uncopied,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 5 {
          %old = copy %x {order = "K"} : f64[n, m]
          %up = view %old {map = (d0: n - 4, d1: m) -> (d0, d1)} : f64[n - 4, m]
          %sum = add %up, %up : f64[n - 4, m]
          %y = write %sum, %x {map = (d0: n - 4, d1: m) -> (d0 + 4, d1)} : f64[n, m]
          return %y {mutates = [0]}
        }""",
        SAME,
    )


def pressure(p: np.ndarray, b: np.ndarray) -> None:
    for _ in range(70):
        old = p.copy()
        p[1:-1, 1:-1] = (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1]) * 0.25 - b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]


def once(p: np.ndarray, b: np.ndarray) -> None:
    old = p.copy()
    p[2:] -= old[:-2] * b[2:]


def both(p: np.ndarray, b: np.ndarray) -> None:
    old = p.copy()
    p[1:] = old[:-1] * b[1:]
    b[1:] = old[1:] + p[:-1]


def whole(p: np.ndarray, b: np.ndarray) -> None:
    old = p.copy()
    p[:] = old * b
    p[1:-1] = old[2:] + old[:-2]


def other(p: np.ndarray, b: np.ndarray) -> np.ndarray:
    old = p.copy()
    p[0] = 1.0
    p[1:] = old[:-1] + b[1:]
    return old


@pytest.mark.parametrize("f", [pressure, once, both, whole, other])
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_results_are_numpys(f: Callable[..., np.ndarray | None], layout: str) -> None:
    for shape in ((3, 3), (17, 29)):
        elements = RNG.standard_normal(shape), RNG.standard_normal(shape)

        def laid(x: np.ndarray) -> np.ndarray:
            return np.repeat(x, 2, 1)[:, ::2] if layout == "strided" else x.copy(order=layout)

        expected, found = [laid(x) for x in elements], [laid(x) for x in elements]
        wanted, given = f(*expected), jg.jit(f)(*found)
        for w, g in zip(expected, found, strict=True):
            np.testing.assert_array_equal(g, w)
        if wanted is not None:
            np.testing.assert_array_equal(given, wanted)


def test_a_sweep_in_a_loop_copies_nothing() -> None:
    p = RNG.standard_normal((40, 30))
    loops = jg.jit(pressure).inspect_ir(p, p.copy(), stage="loops")
    assert all("[n, m]" not in line for line in loops.splitlines() if "alloc" in line)
