"""Cheap functions of arrays that are stored anyway are computed where they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.passes.rematerialise import rematerialise
from tests.checks import SAME, check_pass

RNG = np.random.default_rng(5)

HEAD = "graph @f(%x: f64[n], %y: f64[n]) -> f64[n] {"


def kernels(product: str, used: str, results: str, read: str = "%c2", also: str = "") -> str:
    """A kernel that yields a sum and a function of it, and one that reads both."""
    return f"""
        {HEAD}
          %a, %c = kernel %x, %y {{rows = 0}} : f64[n], f64[n] (%x2: f64[n], %y2: f64[n]) {{
            %s = add %x2, %y2 : f64[n]
            %two = constant {{value = 2.0}} : py_float
            {product}
            yield %s, %d
          }}
          %e = kernel %a, %c, %x {{rows = 0}} : f64[n] (%a2: f64[n], %c2: f64[n], %x3: f64[n]) {{
            %v = view %a2 {{map = (d0: n) -> (-d0 + n - 1)}} : f64[n]:strided(order=[0], negative=[0])
            {used}
            %g = sub %f, {read} : f64[n]
            yield %g
          }}
          {also}
          return {results} {{mutates = []}}
        }}"""


def test_a_product_of_what_is_stored_is_computed_again() -> None:
    check_pass(
        rematerialise,
        kernels("%d = mul %s, %two : f64[n]", "%f = mul %v, %a2 : f64[n]", "%e"),
        f"""
        {HEAD}
          %a = kernel %x, %y {{rows = 0}} : f64[n] (%x2: f64[n], %y2: f64[n]) {{
            %s = add %x2, %y2 : f64[n]
            yield %s
          }}
          %e = kernel %a, %x {{rows = 0}} : f64[n] (%a2: f64[n], %x3: f64[n]) {{
            %two = constant {{value = 2.0}} : py_float
            %d = mul %a2, %two : f64[n]
            %v = view %a2 {{map = (d0: n) -> (-d0 + n - 1)}} : f64[n]:strided(order=[0], negative=[0])
            %f = mul %v, %a2 : f64[n]
            %g = sub %f, %d : f64[n]
            yield %g
          }}
          return %e {{mutates = []}}
        }}""",
    )


@pytest.mark.parametrize(
    "text",
    [
        kernels("%d = exp %s : f64[n]", "%f = mul %v, %a2 : f64[n]", "%e"),  # dear
        kernels("%d = mul %s, %y2 : f64[n]", "%f = mul %v, %a2 : f64[n]", "%e"),  # of what the reader does not read
        kernels(
            "%d = mul %s, %two : f64[n]",
            "%w = view %c2 {map = (d0: n) -> (-d0 + n - 1)} : f64[n]:strided(order=[0], negative=[0])\n"
            "            %f = mul %v, %w : f64[n]",
            "%e",
        ),  # read at other elements
        kernels(
            "%d = mul %s, %two : f64[n]", "%f = mul %v, %a2 : f64[n]", "%r", also="%r = cumsum %c {axis = 0} : f64[n]"
        ),
    ],
)
def test_what_stays_stored(text: str) -> None:
    check_pass(rematerialise, text, SAME)


def heat(steps: int, a: np.ndarray, b: np.ndarray) -> None:
    for _ in range(steps):
        b[1:-1] = 0.125 * (a[2:] - 2.0 * a[1:-1] + a[:-2]) + a[1:-1]
        a[1:-1] = 0.125 * (b[2:] - 2.0 * b[1:-1] + b[:-2]) + b[1:-1]


def shared(a: np.ndarray, b: np.ndarray) -> Any:
    s = a + b
    d = s * s - s
    return d[1:] * s[:-1], (d - s).sum(), d.max() - s[::-1]


def overwritten(a: np.ndarray, b: np.ndarray) -> Any:
    s = a + b
    d = 3.0 * s
    a[1:] = s[:-1] + d[:-1]
    s += a
    return d, s, d - s


@pytest.mark.parametrize("f", [lambda a, b: heat(3, a, b), shared, overwritten])
def test_bits_are_numpys(f: Any) -> None:
    a, b = RNG.normal(size=40), RNG.normal(size=40)
    for n in (2, 3, 9, 40):
        expected_args, found_args = [[x[:n].copy() for x in (a, b)] for _ in range(2)]
        expected, found = f(*expected_args), jg.jit(f)(*found_args)
        for x, y in zip([*expected_args, expected], [*found_args, found], strict=True):
            if x is None or isinstance(x, np.ndarray):
                np.testing.assert_array_equal(x, y)
            else:
                for one, other in zip(x, y, strict=True):
                    np.testing.assert_array_equal(one, other)
