"""Operators that NumPy computes become host calls, once, before the pipeline."""

from __future__ import annotations

import numpy as np
import pytest

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
