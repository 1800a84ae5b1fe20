"""`switch`: a branch of any number of sides, from text to machine code."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph import target
from jitgraph.codegen.llvm import emit_program
from jitgraph.errors import VerifyError
from jitgraph.ir.graph import Graph
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.verifier import verify
from jitgraph.passes.control_flow import control_flow
from jitgraph.passes.dce import dce
from tests.checks import SAME, check_pass
from tests.lowered import Lowered, graph_of, loops_text, program_of

TEXT = """
graph @f(%k: py_int, %x: f64[n]) -> (f64[n], py_int) where n >= 0, n != 1 {
  %a, %b = switch %k {cases = [0, 5]} : f64[n], py_int () {
    %c = sqrt %x : f64[n]
    %d = constant {value = 1} : py_int
    yield %c, %d
  } () {
    %e = neg %x : f64[n]
    yield %e, %k
  } () {
    %g = constant {value = 2} : py_int
    yield %x, %g
  }
  return %a, %b {mutates = []}
}
"""


def test_text_reads_back_as_it_was() -> None:
    graph = graph_of(TEXT)
    text = print_graph(graph)
    assert print_graph(parse(text)) == text
    assert "switch %k {cases = [0, 5]} : f64[n], py_int () {" in text


@pytest.mark.parametrize("k", [-1, 0, 1, 5, 6, 2**62, -(2**63)])
def test_the_region_of_the_case_runs(k: int) -> None:
    lowered = Lowered(TEXT)
    first, second = lowered(k, np.array([4.0, 9.0, 16.0]))
    wanted = {0: ([2.0, 3.0, 4.0], 1), 5: ([-4.0, -9.0, -16.0], 5)}.get(k, ([4.0, 9.0, 16.0], 2))
    assert (first == wanted[0]).all()
    assert second == wanted[1]


def test_loops_are_branches_that_compute_in_the_result() -> None:
    text = loops_text(TEXT)
    entry = text[text.index("program f") :]
    assert "v1: bool = cmp eq k, 0" in entry
    assert "v2: bool = cmp eq k, 5" in entry
    assert "  if v1 {" in entry
    assert "    if v2 {" in entry
    assert "merge (v3: i64 = k | 2)" in entry
    assert "merge (v4: i64 = 1 | v3)" in entry
    assert "alloc" not in entry


def test_machine_code_jumps() -> None:
    text = emit_program(program_of(TEXT), target.host())
    assert "switch i64" in text
    assert "i64 0, label %case" in text
    assert "i64 5, label %case" in text


def test_arrays_that_all_sides_write_stay_in_their_memory() -> None:
    text = """
        graph @f(%k: py_int, %x: f64[n]) -> () where n >= 3, n != 1 {
          %v = constant {value = f64(7.0)} : np.f64
          %a = switch %k {cases = [0, 1]} : f64[n] () {
            %c = write %v, %x {map = () -> (0)} : f64[n]
            yield %c
          } () {
            %e = write %v, %x {map = () -> (1)} : f64[n]
            yield %e
          } () {
            %g = write %v, %x {map = () -> (2)} : f64[n]
            yield %g
          }
          return %a {mutates = [1]}
        }"""
    assert "alloc" not in loops_text(text)
    for k in range(4):
        x = np.zeros(4)
        Lowered(text)(k, x)


def test_narrow_and_unsigned_numbers_decide() -> None:
    text = """
        graph @f(%k: u8[]) -> np.i32 {
          %v = view %k {map = () -> ()} : np.u8
          %r = switch %v {cases = [200, 3]} : np.i32 () {
            %a = constant {value = i32(1)} : np.i32
            yield %a
          } () {
            %b = constant {value = i32(2)} : np.i32
            yield %b
          } () {
            %c = constant {value = i32(3)} : np.i32
            yield %c
          }
          return %r {mutates = []}
        }"""
    lowered = Lowered(text)
    for k in (0, 3, 200, 255):
        lowered(np.array(k, np.uint8))


# --- the verifier


def _broken(old: str, new: str) -> Graph:
    return parse(TEXT.strip().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("cases = [0, 5]", "cases = [0]", "3 regions, not 2"),
        ("cases = [0, 5]", "cases = [5, 5]", "integers that differ"),
        ("yield %e, %k", "yield %k, %e", "yields"),
        ("f(%k: py_int", "f(%k: py_float", "one integer operand"),
    ],
)
def test_verifier(old: str, new: str, text: str) -> None:
    with pytest.raises(VerifyError, match=text):
        verify(_broken(old, new))


# --- passes


def test_dce_drops_results_nobody_uses() -> None:
    check_pass(
        dce,
        TEXT.replace("return %a, %b", "return %b").replace("(f64[n], py_int) where", "py_int where"),
        """
        graph @f(%k: py_int, %x: f64[n]) -> py_int where n >= 0, n != 1 {
          %b = switch %k {cases = [0, 5]} : py_int () {
            %d = constant {value = 1} : py_int
            yield %d
          } () {
            yield %k
          } () {
            %g = constant {value = 2} : py_int
            yield %g
          }
          return %b {mutates = []}
        }""",
    )


def test_dce_drops_a_switch_nobody_uses() -> None:
    check_pass(
        dce,
        TEXT.replace("return %a, %b", "return %k").replace("(f64[n], py_int) where", "py_int where"),
        """
        graph @f(%k: py_int, %x: f64[n]) -> py_int where n >= 0, n != 1 {
          return %k {mutates = []}
        }""",
    )


@pytest.mark.parametrize(("number", "wanted"), [(0, "sqrt"), (5, "neg"), (7, "copy")])
def test_a_known_number_is_its_region(number: int, wanted: str) -> None:
    text = """
        graph @f(%x: f64[n]) -> f64[n] where n >= 0, n != 1 {{
          %k = constant {{value = {0}}} : py_int
          %a = switch %k {{cases = [0, 5]}} : f64[n] () {{
            %c = sqrt %x : f64[n]
            yield %c
          }} () {{
            %e = neg %x : f64[n]
            yield %e
          }} () {{
            %g = copy %x {{order = "C"}} : f64[n]
            yield %g
          }}
          return %a {{mutates = []}}
        }}"""
    order = ' {order = "C"}' if wanted == "copy" else ""
    check_pass(
        control_flow,
        text.format(number),
        f"""
        graph @f(%x: f64[n]) -> f64[n] where n >= 0, n != 1 {{
          %k = constant {{value = {number}}} : py_int
          %a = {wanted} %x{order} : f64[n]
          return %a {{mutates = []}}
        }}""",
    )


CHAIN = """
    graph @f(%k: py_int, %x: f64[n]) -> (f64[n], f64[n]) where n >= 0, n != 1 {{
      %zero = constant {{value = 0}} : py_int
      %p = eq %k, %zero : py_bool
      %a, %b = cond %p : f64[n], f64[n] () {{
        %c = sqrt %x : f64[n]
        yield %c, %x
      }} () {{
        %seven = constant {{value = {0}}} : py_int
        %q = eq %seven, %k : py_bool
        %r = cond %q : f64[n] () {{
          %e = neg %x : f64[n]
          yield %e
        }} () {{
          %g = exp %x : f64[n]
          yield %g
        }}
        {1}
      }}
      return %a, %b {{mutates = []}}
    }}"""


def test_tests_of_one_number_after_another_are_a_switch() -> None:
    check_pass(
        control_flow,
        CHAIN.format(7, "yield %x, %r"),
        """
        graph @f(%k: py_int, %x: f64[n]) -> (f64[n], f64[n]) where n >= 0, n != 1 {
          %zero = constant {value = 0} : py_int
          %p = eq %k, %zero : py_bool
          %a, %b = switch %k {cases = [0, 7]} : f64[n], f64[n] () {
            %c = sqrt %x : f64[n]
            yield %c, %x
          } () {
            %e = neg %x : f64[n]
            yield %x, %e
          } () {
            %g = exp %x : f64[n]
            yield %x, %g
          }
          return %a, %b {mutates = []}
        }""",
    )


@pytest.mark.parametrize(
    "text",
    [
        CHAIN.format(0, "yield %x, %r"),  # the second test never holds
        CHAIN.format(7, "%h = neg %x : f64[n]\n        yield %h, %r"),  # the inner branch is not all that is done
    ],
)
def test_other_chains_stay(text: str) -> None:
    check_pass(control_flow, text, SAME)
