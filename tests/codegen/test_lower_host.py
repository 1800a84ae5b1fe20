"""Host calls whose results have sizes that only the call knows: called first, fetched when the memory is there."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.codegen.loops_printer import print_program
from jitgraph.errors import VerifyError
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.verifier import verify
from tests.lowered import Lowered

UNIQUE = """
    graph @f(%x: i64[n]) -> i64[k] where n >= 0, n != 1, value k >= 0 {
      %u = host_call %x {binds = ["k"], effects = false, order = 1, site = 0 host "np.unique"} : i64[k]
      %y = add %u, %u : i64[k]
      return %y
    }"""
LOOP = """
    graph @f(%x: i64[n], %start: i64[]) -> i64[] where n >= 0, n != 1, index i >= 0, i <= 2, value k >= 0 {
      %r = for %start {index = i, lower = 0, step = 1, upper = 3} : i64[] (%t: i64[]) {
        %u, %c = host_call %x, %t {binds = ["k"], effects = false, order = 1, site = 0 host "both"} : i64[k], np.i64
        %s = reduce_sum %u {axes = [0], keepdims = false} : np.i64
        %a = add %s, %t : np.i64
        %b = add %a, %c : np.i64
        %z = as_kind %b {kind = "array"} : i64[]
        yield %z
      }
      return %r
    }"""


@pytest.mark.parametrize("x", [[3, 1, 3, 2], [], [5, 5]])
def test_a_size_from_the_call(x: list[int]) -> None:
    f = Lowered(UNIQUE, {0: np.unique})
    f(np.array(x, np.int64))
    text = print_program(f.program)
    assert "host site 0" in text
    assert "sizes [0.0]" in text
    assert "results of site 0" in text
    assert f.interface.sizes == {0: ((0, 0),)}
    assert type(f.interface).from_plain(f.interface.to_plain()) == f.interface


def test_in_a_loop_with_a_scalar_beside() -> None:
    def both(x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.int64]:
        return np.unique(x)[: int(t) % 2 + 1], np.int64(7)

    Lowered(LOOP, {0: both})(np.array([4, 4, 9, 1]), np.array(1, np.int64))


def test_text_and_binding() -> None:
    graph = parse(UNIQUE)
    verify(graph)
    text = print_graph(graph)
    assert 'binds = ["k"]' in text
    assert print_graph(parse(text)) == text
    with pytest.raises(VerifyError, match="the symbol k is not bound here"):
        verify(parse(UNIQUE.replace('binds = ["k"], ', "")))
