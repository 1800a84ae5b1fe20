"""Kernels in a row joined row by row, and temporaries kept as rings of rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

RNG = np.random.default_rng(17)


def diffusion(u: np.ndarray) -> Any:
    lap = 4.0 * u[1:-1, 1:-1] - (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    across = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux = np.where(across * (u[2:-1, 2:-2] - u[1:-2, 2:-2]) > 0, 0.0, across)
    return u[2:-2, 2:-2] - 0.1 * (flux[1:] - flux[:-1])


def twice(u: np.ndarray) -> Any:
    v = u[1:] * 0.5 + u[:-1]
    return v[1:] * 0.5 - v[:-1]


def thrice(u: np.ndarray) -> Any:
    a = u[2:] + u[:-2] - u[1:-1]
    b = a[2:] + a[:-2] - a[1:-1]
    return b[1:] * b[:-1]


def flipped(u: np.ndarray) -> Any:
    """Rows are read in the other order: all of them are needed."""
    v = u[1:] - u[:-1]
    return v[::-1] + u[1:]


def kept(u: np.ndarray) -> Any:
    """The array in between is a result."""
    v = u[1:] - u[:-1]
    return v, v[1:] * v[:-1]


def again(u: np.ndarray) -> Any:
    """The array in between is read later, too."""
    v = u[1:] - u[:-1]
    w = v[1:] * v[:-1]
    return w, v.sum(), w[1:, ::-1] - v[1:-1]


def into(u: np.ndarray) -> None:
    v = u[1:] - u[:-1]
    u[1:-1] = v[1:] + v[:-1]


def gap(u: np.ndarray) -> Any:
    v = np.sqrt(np.abs(u))
    w = v[3:] + v[:-3]
    return w[1:] - w[:-1]


def columns(u: np.ndarray) -> Any:
    v = u[:, 1:] - u[:, :-1]
    return v[:, 1:] * v[:, :-1]


def scalars(u: np.ndarray) -> Any:
    s = float(u[0, 0]) * 2.0
    v = u[1:] * s + u[:-1]
    return v[1:] * s - v[:-1] * u[0, 1]


def mixed(u: np.ndarray) -> Any:
    v = (u[1:] - u[:-1]).astype(np.float32)
    return (v[1:] > v[:-1]) & (u[1:-1] > 0)


FUNCTIONS = [diffusion, twice, thrice, flipped, kept, again, into, gap, columns, scalars, mixed]


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "three axes"])
def test_results_are_numpys(f: Callable[..., Any], layout: str) -> None:
    compiled = jg.jit(f)
    for shape in ((7, 6), (31, 17)):
        x = RNG.standard_normal((*shape, 5) if layout == "three axes" else shape)
        if layout == "F":
            x = np.asfortranarray(x)
        if layout == "three axes" and f in (scalars, again):
            x = x[..., 0]

        def laid(x: np.ndarray = x) -> np.ndarray:
            if layout == "strided":
                return np.repeat(x, 2, 1)[:, ::2]
            return x.copy(order="K")

        expected, found = laid(), laid()
        wanted, given = f(expected), compiled(found)
        np.testing.assert_array_equal(found, expected)
        if wanted is None:
            continue
        for w, g in zip(*((r if isinstance(r, tuple) else (r,)) for r in (wanted, given)), strict=True):
            np.testing.assert_array_equal(g, w)
            assert np.asarray(g).strides == np.asarray(w).strides


def loops(f: Callable[..., Any]) -> str:
    return jg.jit(f).inspect_ir(RNG.standard_normal((40, 30)), stage="loops")


@pytest.mark.usefixtures("whole_loops")
def test_a_chain_is_one_kernel_and_its_arrays_are_rings() -> None:
    text = loops(diffusion)
    assert re.findall(r"call (\w+)", text) == ["k0_k2"]
    assert re.findall(r"alloc \w+: (\S+), ", text) == ["f64[2", "f64[2"]


def inner(u: np.ndarray) -> Any:
    v = u[1:, 1:] - u[:-1, 1:]
    return v[1:, 1:] * v[:-1, 1:]


@pytest.mark.usefixtures("whole_loops")
def test_the_second_kernel_runs_a_row_behind_the_first() -> None:
    kernel = loops(inner).split("program")[0]
    names: dict[str, str] = {}
    body = re.sub(r"\b_?w\d+\b", lambda m: names.setdefault(m[0], f"x{len(names)}"), kernel[kernel.index("  for") :])
    expected = """
      for x0 in range(0, 1) {
        for x1 in range(0, m - 1) vector {
          x2: f64 = load u[x0 + 1, x1 + 1]
          x3: f64 = load u[x0, x1 + 1]
          x4: f64 = sub x2, x3
          store t1[mod(x0, 2), x1] = x4
        }
      }
      for x5 in range(1, n - 1) {
        for x6 in range(0, m - 1) vector {
          x7: f64 = load u[x5 + 1, x6 + 1]
          x8: f64 = load u[x5, x6 + 1]
          x9: f64 = sub x7, x8
          store t1[mod(x5, 2), x6] = x9
        }
        for x10 in range(0, m - 2) vector {
          x11: f64 = load t1[mod(x5, 2), x10 + 1]
          x12: f64 = load t1[mod(x5 + 1, 2), x10 + 1]
          x13: f64 = mul x11, x12
          store r2[x5 - 1, x10] = x13
        }
      }
    }"""
    assert body.split() == expected.split()


@pytest.mark.parametrize("f", [flipped, kept, again, columns])
def test_what_is_needed_as_a_whole_stays_whole(f: Callable[..., Any]) -> None:
    assert "mod(" not in loops(f)


def stepping(u: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        flux = u[1:] - u[:-1]
        u[1:-1] += 0.1 * (flux[1:] - flux[:-1])
    return u


def test_rings_in_loops() -> None:
    u = RNG.standard_normal((33, 21))
    expected, found = u.copy(), u.copy()
    stepping(expected, 70)
    compiled = jg.jit(stepping)
    compiled(found, 70)
    np.testing.assert_array_equal(found, expected)
