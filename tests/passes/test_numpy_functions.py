"""Operators that NumPy computes become host calls, once, before the pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.ir.interpret import interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.verifier import verify
from jitgraph.passes.numpy_functions import numpy_functions

GRAPH = """
graph @f(%x: f64[n], %h: f16[n]) -> (fresh 0, fresh 1, fresh 2) where n >= 0, n != 1 {
  %a = spacing %x : f64[n]
  %b = exp %a : f64[n]
  %c = mul %b, %x : f64[n]
  %s = reduce_prod %h {axes = [0], keepdims = false} : np.f16
  return %c, %b, %s {mutates = []}
}
"""


@pytest.mark.parametrize(
    ("bounded", "expected"),
    [
        (False, ["host_call", "exp", "mul", "host_call", "return"]),
        (True, ["host_call", "host_call", "mul", "host_call", "return"]),
    ],
)
def test_what_becomes_a_host_call(bounded: bool, expected: list[str]) -> None:
    """Records without machine code always, float16 products too, functions with an error bound if asked."""
    graph, plain = parse(GRAPH), parse(GRAPH)
    assert numpy_functions(graph, bounded=bounded)
    verify(graph)
    assert [op.name for op in graph.body.ops()] == expected
    orders = [op.attrs["order"] for op in graph.body.ops() if "order" in op.attrs]
    assert orders == list(range(len(orders)))
    assert not numpy_functions(graph, bounded=bounded), print_graph(graph)
    args = [np.array([1.5, -2.0, 0.0]), np.array([1.5, 2, 3], np.float16)]
    hosts = {k: site.call for k, site in enumerate(graph.sites)}
    for found, e in zip(interpret(graph, args, hosts)[0], interpret(plain, args)[0], strict=True):
        np.testing.assert_array_equal(found, e)


def of_its_own(x: np.ndarray, y: np.ndarray) -> object:
    return x.astype(np.uint8) ** y.astype(np.uint8), np.asarray(x[0]).astype(np.uint8) ** 0


def of_the_operators(x: np.ndarray, y: np.ndarray) -> object:
    return x[::-1] ** y.astype(np.int16), np.hypot(x[::2], y[::-2].astype(np.float32))


def asked_for(x: np.ndarray, y: np.ndarray) -> object:
    return np.power(x, y * 1.0, dtype=np.int64, casting="unsafe"), np.gcd(x, y.astype(np.int32), dtype=np.int64)


@pytest.mark.parametrize("f", [of_its_own, of_the_operators, asked_for])
def test_casts_of_the_program_and_of_operators_are_told_apart(f: Callable[..., Any]) -> None:
    """NumPy casts in its loop what an operator asks for in another dtype; what the program cast is cast before."""
    x, y = np.arange(1, 9, dtype=np.int8), np.arange(8, dtype=np.int8)
    for a, b in zip(f(x, y), jg.jit(f, numerics="numpy")(x, y), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_numpy_gets_what_an_operator_casts_as_it_was() -> None:
    """The call gets the program's own int16, and the int8 that the operator would cast."""
    x = np.arange(6, dtype=np.int8)
    jitted = jg.jit(lambda x: np.hypot(x.astype(np.int16), x[::-1]), numerics="numpy")
    text = jitted.inspect_ir(x, stage="trace")
    call = re.search(r"host_call (%\w+), (%\w+)", text)
    assert call is not None
    assert [re.findall(rf"{v} = (\w+) .* : (\w+)\[n\]", text) for v in call.groups()] == [
        [("cast", "i16")],
        [("view", "i8")],
    ]
