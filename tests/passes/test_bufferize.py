"""Updates in place: where copies are needed, where not, and that lowering agrees (each graph is run as machine code too)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgraph.passes.bufferize import bufferize
from tests.checks import SAME, check_pass
from tests.lowered import Lowered

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def check(text: str, expect: Any, *args: Any) -> None:
    check_pass(bufferize, text, expect)
    Lowered(text)(*args)


def test_an_update_of_the_same_elements_is_in_place() -> None:
    check(
        """
        graph @f(%x: f64[n], %y: f64[n - 2]) -> (argument 0) if n >= 2 {
          %k = kernel %x, %y : f64[n] (%p: f64[n], %q: f64[n - 2]) {
            %v = view %p {map = (d0: n - 2) -> (d0 + 1)} : f64[n - 2]
            %a = add %v, %q : f64[n - 2]
            %w = write %a, %p {map = (d0: n - 2) -> (d0 + 1)} : f64[n]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        SAME,
        floats(9),
        floats(7),
    )


def test_reads_of_other_elements_store_the_value_first() -> None:
    check(
        """
        graph @f(%x: f64[n]) -> (argument 0) if n >= 2 {
          %k = kernel %x : f64[n] (%p: f64[n]) {
            %v = view %p {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %a = mul %v, %v : f64[n - 1]
            %w = write %a, %p {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n]) -> (argument 0) if n >= 2 {
          %k = kernel %x : f64[n - 1] (%p: f64[n]) {
            %v = view %p {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %a = mul %v, %v : f64[n - 1]
            yield %a
          }
          %w = write %k, %x {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
          return %w {mutates = [0]}
        }""",
        floats(9),
    )


def test_reads_proven_to_be_elsewhere_stay() -> None:
    check(
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n >= 2 {
          %k = kernel %x : f64[n, m] (%p: f64[n, m]) {
            %v = view %p {map = (d0: m) -> (0, d0)} : f64[m]
            %a = mul %v, %v : f64[m]
            %w = write %a, %p {map = (d0: m) -> (n - 1, d0)} : f64[n, m]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        SAME,
        floats(5, 9),
    )


def test_reads_of_every_other_element_stay() -> None:
    check(
        """
        graph @f(%x: f64[2*n]) -> (argument 0) where n = arg(1, 0), n >= 0, n != 1 {
          %k = kernel %x : f64[2*n] (%p: f64[2*n]) {
            %v = view %p {map = (d0: n) -> (2*d0)} : f64[n]:strided(order=[0], breaks=[0])
            %a = mul %v, %v : f64[n]
            %w = write %a, %p {map = (d0: n) -> (2*d0 + 1)} : f64[2*n]
            yield %w
          }
          return %k {mutates = [0]}
        }""".replace("(%x: f64[2*n])", "(%x: f64[2*n], %y: f64[n])", 1),
        SAME,
        floats(10),
        floats(5),
    )


def test_a_sum_over_the_base_is_complete_before_the_write() -> None:
    check(
        """
        graph @f(%x: f64[n]) -> (argument 0) {
          %k = kernel %x : f64[n] (%p: f64[n]) {
            %s = reduce_sum %p {axes = [0]} : np.f64
            %a = div %p, %s : f64[n]
            %w = write %a, %p {map = (d0: n) -> (d0)} : f64[n]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        SAME,
        floats(9),
    )


def test_rows_are_overwritten_one_by_one() -> None:
    text = """
        graph @f(%x: f64[n, m]) -> (argument 0) if m >= 2 {
          %k = kernel %x {rows = 1} : f64[n, m] (%p: f64[n, m]) {
            %s = reduce_sum %p {axes = [1], keepdims = true} : f64[n, 1]
            %a = div %p, %s : f64[n, m]
            %w = write %a, %p {map = (d0: n, d1: m) -> (d0, d1)} : f64[n, m]
            yield %w
          }
          return %k {mutates = [0]}
        }"""
    check(text, SAME, floats(5, 9))


def test_rows_read_from_other_rows_are_stored_first() -> None:
    text = """
        graph @f(%x: f64[n, m]) -> (argument 0) if m >= 2 {
          %k = kernel %x {rows = 1} : f64[n, m] (%p: f64[n, m]) {
            %f = view %p {map = (d0: n, d1: m) -> (n - 1 + -1*d0, d1)} : f64[n, m]:strided(order=[0, 1], breaks=[0], negative=[0])
            %s = reduce_sum %f {axes = [1], keepdims = true} : f64[n, 1]
            %a = div %p, %s : f64[n, m]
            %w = write %a, %p {map = (d0: n, d1: m) -> (d0, d1)} : f64[n, m]
            yield %w
          }
          return %k {mutates = [0]}
        }"""
    assert bufferize_changes(text)
    Lowered(text)(floats(5, 9))


def bufferize_changes(text: str) -> bool:
    from tests.lowered import graph_of

    return bufferize(graph_of(text))


def test_what_is_written_onto_itself_is_read_first() -> None:
    check(
        """
        graph @f(%x: f64[n]) -> (argument 0) if n >= 2 {
          %v = view %x {map = (d0: n - 1) -> (d0)} : f64[n - 1]
          %w = write %v, %x {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
          return %w {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n]) -> (argument 0) if n >= 2 {
          %v = view %x {map = (d0: n - 1) -> (d0)} : f64[n - 1]
          %c = copy %v {order = "K", reason = "what is written overlaps what is read"} : f64[n - 1]
          %w = write %c, %x {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
          return %w {mutates = [0]}
        }""",
        floats(9),
    )


def test_an_argument_that_is_not_written_is_copied() -> None:
    check(
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %zero = constant {value = 0.0} : py_float
          %w = write %zero, %x {map = () -> (0)} : f64[n]
          return %w
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %zero = constant {value = 0.0} : py_float
          %c = copy %x {order = "K", reason = "the argument x is not written by the function"} : f64[n]
          %w = write %zero, %c {map = () -> (0)} : f64[n]
          return %w
        }""",
        floats(9),
    )


def test_a_later_reader_of_the_old_elements_makes_a_copy_and_is_named() -> None:
    check(
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = mul %x, %x : f64[n]
          %zero = constant {value = 0.0} : py_float
          %w = write %zero, %a {map = () -> (0)} : f64[n]
          %s = sub %w, %a : f64[n] @ model.py:7:3
          return %s
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = mul %x, %x : f64[n]
          %zero = constant {value = 0.0} : py_float
          %c = copy %a {order = "K", reason = "its old elements are read by sub at model.py:7:3"} : f64[n]
          %w = write %zero, %c {map = () -> (0)} : f64[n]
          %s = sub %w, %a : f64[n]
          return %s
        }""",
        floats(9),
    )


def test_a_view_taken_before_and_read_after_makes_a_copy() -> None:
    text = """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = mul %x, %x : f64[n]
          %v = view %a {map = (d0: n) -> (n - 1 + -1*d0)} : f64[n]:strided(order=[0], negative=[0])
          %zero = constant {value = 0.0} : py_float
          %w = write %zero, %a {map = () -> (0)} : f64[n]
          %s = sub %w, %v : f64[n]
          return %s
        }"""
    assert bufferize_changes(text)
    Lowered(text)(floats(9))


def test_results_that_would_be_an_arguments_memory_are_copied() -> None:
    check(
        """
        graph @f(%x: f64[n]) -> (f64[n], f64[n]) {
          %a = neg %x : f64[n]
          return %x, %a
        }""",
        """
        graph @f(%x: f64[n]) -> (f64[n], f64[n]) {
          %a = neg %x : f64[n]
          %c = copy %x {order = "K", reason = "a fresh result would be the memory of the argument x"} : f64[n]
          return %c, %a
        }""",
        floats(9),
    )


def test_two_results_are_two_arrays() -> None:
    text = """
        graph @f(%x: f64[n]) -> (f64[n], f64[n]) {
          %a = neg %x : f64[n]
          return %a, %a
        }"""
    assert bufferize_changes(text)
    first, second = Lowered(text)(floats(9))
    assert not np.shares_memory(first, second)


JACOBI = """
graph @jacobi(%a: f64[n, n], %b: f64[n, n], %t: py_int) -> (argument 0, argument 1) where n >= 0, n != 1, value t, index k if n >= 2 {
  bind %t {symbol = t}
  %r, %s = for %a, %b {index = k, lower = 0, step = 1, upper = t} : f64[n, n], f64[n, n] (%p: f64[n, n], %q: f64[n, n]) {
    %q2 = kernel %p, %q : f64[n, n] (%x: f64[n, n], %y: f64[n, n]) {
      %u = view %x {map = (d0: n - 2, d1: n - 2) -> (d0, d1 + 1)} : f64[n - 2, n - 2]:strided(order=[0, 1], breaks=[0])
      %d = view %x {map = (d0: n - 2, d1: n - 2) -> (d0 + 2, d1 + 1)} : f64[n - 2, n - 2]:strided(order=[0, 1], breaks=[0])
      %m = add %u, %d : f64[n - 2, n - 2]
      %w = write %m, %y {map = (d0: n - 2, d1: n - 2) -> (d0 + 1, d1 + 1)} : f64[n, n]
      yield %w
    }
    %p2 = kernel %q2, %p : f64[n, n] (%x2: f64[n, n], %y2: f64[n, n]) {
      %l = view %x2 {map = (d0: n - 2, d1: n - 2) -> (d0 + 1, d1)} : f64[n - 2, n - 2]:strided(order=[0, 1], breaks=[0])
      %h = view %x2 {map = (d0: n - 2, d1: n - 2) -> (d0 + 1, d1 + 2)} : f64[n - 2, n - 2]:strided(order=[0, 1], breaks=[0])
      %m2 = add %l, %h : f64[n - 2, n - 2]
      %w2 = write %m2, %y2 {map = (d0: n - 2, d1: n - 2) -> (d0 + 1, d1 + 1)} : f64[n, n]
      yield %w2
    }
    yield %p2, %q2
  }
  return %r, %s {mutates = [0, 1]}
}"""


def test_a_jacobi_time_loop_copies_nothing() -> None:
    check_pass(bufferize, JACOBI, SAME, evaluate=False)
    run = Lowered(JACOBI)
    run(floats(9, 9), floats(9, 9), 5)
    assert run.program.scratch_bytes == 0


def test_ping_pong_copies_nothing_in_the_loop() -> None:
    text = JACOBI.replace("yield %p2, %q2", "yield %q2, %p").replace("graph @jacobi", "graph @ping")
    start, end = text.index("    %p2 = kernel"), text.index("    yield %q2, %p")
    text = text[:start] + text[end:]
    text = text.replace("-> (argument 0, argument 1)", "-> (f64[n, n], f64[n, n])").replace(" {mutates = [0, 1]}", "")
    check_pass(bufferize, text, SAME, evaluate=False)
    for turns in (0, 1, 4):
        Lowered(text)(floats(9, 9), floats(9, 9), turns)


def test_a_loop_that_writes_what_is_needed_after_it_gets_a_copy() -> None:
    text = """
        graph @f(%x: f64[n], %t: py_int) -> f64[n] where n >= 0, n != 1, value t, index k {
          bind %t {symbol = t}
          %a = mul %x, %x : f64[n]
          %zero = constant {value = 0.0} : py_float
          %r = for %a {index = k, lower = 0, step = 1, upper = t} : f64[n] (%p: f64[n]) {
            %w = write %zero, %p {map = () -> (0)} : f64[n]
            yield %w
          }
          %s = sub %r, %a : f64[n]
          return %s
        }"""
    assert bufferize_changes(text)
    Lowered(text)(floats(9), 3)
    Lowered(text)(floats(9), 0)


def test_an_argument_is_written_in_place_and_its_readers_get_the_copy() -> None:
    """What the caller sees is written before an error that follows: the old elements are copied, not the argument."""
    check_pass(
        bufferize,
        """
        graph @f(%x: f64[n], %ok: py_bool) -> (f64[n], argument 0) if n >= 1 {
          %zero = constant {value = 0.0} : py_float
          %w = write %zero, %x {map = () -> (0)} : f64[n]
          check %ok {order = 1, site = 0 ValueError "no"}
          %s = neg %x : f64[n]
          return %s, %w {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n], %ok: py_bool) -> (f64[n], argument 0) if n >= 1 {
          %zero = constant {value = 0.0} : py_float
          %old = copy %x {order = "K", reason = "its old elements are read by neg"} : f64[n]
          %w = write %zero, %x {map = () -> (0)} : f64[n]
          check %ok {order = 1, site = 0 ValueError "no"}
          %s = neg %old : f64[n]
          return %s, %w {mutates = [0]}
        }""",
    )


def test_a_loop_that_carries_a_view_of_an_argument_it_writes_copies_the_view() -> None:
    check_pass(
        bufferize,
        """
        graph @f(%x: f64[n, m]) -> (f64[m], argument 0) where n >= 0, m >= 0, index k >= 0, k <= n - 1 if n >= 1 {
          %v = view %x {map = (d0: m) -> (0, d0)} : f64[m]
          %zero = constant {value = 0.0} : py_float
          %r, %y = for %v, %x {index = k, lower = 0, step = 1, upper = n} : f64[m], f64[n, m] (%p: f64[m], %q: f64[n, m]) {
            %w = write %zero, %q {map = () -> (k, 0)} : f64[n, m]
            %s = neg %p : f64[m]
            yield %s, %w
          }
          return %r, %y {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n, m]) -> (f64[m], argument 0) where n >= 0, m >= 0, index k >= 0, k <= n - 1 if n >= 1 {
          %v = view %x {map = (d0: m) -> (0, d0)} : f64[m]
          %zero = constant {value = 0.0} : py_float
          %old = copy %v {order = "K", reason = "the loop carries it twice"} : f64[m]
          %r, %y = for %old, %x {index = k, lower = 0, step = 1, upper = n} : f64[m], f64[n, m] (%p: f64[m], %q: f64[n, m]) {
            %w = write %zero, %q {map = () -> (k, 0)} : f64[n, m]
            %s = neg %p : f64[m]
            yield %s, %w
          }
          return %r, %y {mutates = [0]}
        }""",
    )


def test_a_loop_that_only_hands_through_needs_nothing() -> None:
    text = """
        graph @f(%x: f64[n], %t: py_int) -> np.f64 where n >= 0, n != 1, value t, index k {
          bind %t {symbol = t}
          %zero = constant {value = f64(0.0)} : np.f64
          %r, %s = for %x, %zero {index = k, lower = 0, step = 1, upper = t} : f64[n], np.f64 (%p: f64[n], %c: np.f64) {
            %u = reduce_sum %p {axes = [0]} : np.f64
            %d = add %c, %u : np.f64
            yield %p, %d
          }
          return %s
        }"""
    check_pass(bufferize, text, SAME, evaluate=False)
    Lowered(text)(floats(9), 3)


def test_what_a_loop_starts_from_in_each_turn_is_copied_in_it() -> None:
    text = """
        graph @f(%x: f64[n], %t: py_int) -> np.f64 where n >= 0, n != 1, value t, index k {
          bind %t {symbol = t}
          %a = mul %x, %x : f64[n]
          %zero = constant {value = f64(0.0)} : np.f64
          %s = for %zero {index = k, lower = 0, step = 1, upper = t} : np.f64 (%c: np.f64) {
            %u = reduce_sum %a {axes = [0]} : np.f64
            %w = write %c, %a {map = () -> (0)} : f64[n]
            %v = reduce_sum %w {axes = [0]} : np.f64
            %d = add %u, %v : np.f64
            yield %d
          }
          return %s
        }"""
    assert bufferize_changes(text)
    Lowered(text)(floats(9), 3)


def test_a_branch_writes_in_place() -> None:
    text = """
        graph @f(%x: f64[n], %s: py_float) -> (argument 0) {
          %zero = constant {value = 0.0} : py_float
          %p = gt %s, %zero : py_bool
          %r = cond %p : f64[n] () {
            %w = write %s, %x {map = () -> (0)} : f64[n]
            yield %w
          } () {
            yield %x
          }
          return %r {mutates = [0]}
        }"""
    check_pass(bufferize, text, SAME)
    run = Lowered(text)
    run(floats(9), 2.0)
    run(floats(9), -2.0)


def test_both_branches_write_in_place() -> None:
    text = """
        graph @f(%x: f64[n], %s: py_float) -> (argument 0) {
          %zero = constant {value = 0.0} : py_float
          %p = gt %s, %zero : py_bool
          %r = cond %p : f64[n] () {
            %w = write %s, %x {map = () -> (0)} : f64[n]
            yield %w
          } () {
            %y = mul %x, %x : f64[n]
            %v = write %y, %x {map = (d0: n) -> (d0)} : f64[n]
            yield %v
          }
          return %r {mutates = [0]}
        }"""
    check_pass(bufferize, text, SAME)
    run = Lowered(text)
    run(floats(9), 2.0)
    run(floats(9), -2.0)


def test_a_branch_that_writes_what_is_read_behind_it_copies() -> None:
    text = """
        graph @f(%x: f64[n], %s: py_float) -> (f64[n], f64[n]) {
          %zero = constant {value = 0.0} : py_float
          %a = neg %x : f64[n]
          %p = gt %s, %zero : py_bool
          %r = cond %p : f64[n] () {
            %w = write %s, %a {map = () -> (0)} : f64[n]
            yield %w
          } () {
            yield %a
          }
          %b = sub %r, %a : f64[n]
          return %b, %r
        }"""
    assert bufferize_changes(text)
    run = Lowered(text)
    run(floats(9), 2.0)
    run(floats(9), -2.0)


def test_scatter_and_masked_writes_are_in_place() -> None:
    text = """
        graph @f(%x: f64[n], %i: i64[k], %m: bool[n]) -> (argument 0) {
          %one = constant {value = 1.0} : py_float
          %a = scatter_add %x, %i, %one {axis = 0} : f64[n]
          %b = expand %a, %m, %one : f64[n]
          return %b {mutates = [0]}
        }"""
    check_pass(bufferize, text, SAME, evaluate=False)
    run = Lowered(text)
    run(floats(9), np.array([0, 3, 3, 8]), floats(9) > 0)
    assert run.program.scratch_bytes == 0


def test_a_scatter_that_reads_its_base_reads_a_copy() -> None:
    text = """
        graph @f(%x: f64[n], %i: i64[n]) -> (argument 0) {
          %a = scatter_add %x, %i, %x {axis = 0} : f64[n]
          return %a {mutates = [0]}
        }"""
    assert bufferize_changes(text)
    Lowered(text)(floats(4), np.array([1, 1, 2, 0]))


def test_filled_arrays_are_made_anew_for_each_writer() -> None:
    text = """
        graph @f(%x: f64[n]) -> (f64[n], f64[n]) {
          %zero = constant {value = 0.0} : py_float
          %z = full %zero {dtype = f64, shape = [n]} : f64[n]
          %one = constant {value = 1.0} : py_float
          %a = write %one, %z {map = () -> (0)} : f64[n]
          %b = write %x, %z {map = (d0: n) -> (d0)} : f64[n]
          return %a, %b
        }"""
    Lowered(text)(floats(9))


@pytest.mark.parametrize("inside", [True, False])
def test_two_writes_into_one_array(inside: bool) -> None:
    body = """
            %v = view %p {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %a = mul %v, %v : f64[n - 1]
            %w = write %a, %p {map = (d0: n - 1) -> (d0)} : f64[n]
            %u = view %w {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %b = add %u, %v : f64[n - 1]
            %y = write %b, %w {map = (d0: n - 1) -> (d0 + 1)} : f64[n]"""
    if inside:
        body = f"%y2 = kernel %x : f64[n] (%p: f64[n]) {{ {body}\n yield %y\n }}\n return %y2 {{mutates = [0]}}"
        text = f"graph @f(%x: f64[n]) -> (argument 0) if n >= 2 {{\n{body}\n}}"
    else:
        text = f"graph @f(%p: f64[n]) -> (argument 0) if n >= 2 {{\n{body}\n return %y {{mutates = [0]}}\n}}"
    Lowered(text)(floats(9))


STORED_TWICE = """
graph @f(%x: f64[n], %y: f64[n]) -> (fresh 0, argument 1) if n >= 2 {{
  %v, %w = kernel %x, %y : f64[n - 1], f64[n] (%p: f64[n], %q: f64[n]) {{
    %u = view %p {{map = (d0: n - 1) -> (d0)}} : f64[n - 1]
    %a = mul %u, %u : f64[n - 1]
    %b = write %a, %q {{map = (d0: n - 1) -> (d0 + 1)}} : f64[n]
    yield %a, %b
  }}
  {rest}
}}"""


def test_a_value_that_is_written_is_read_where_it_was_written() -> None:
    text = STORED_TWICE.format(rest="%c = neg %v : f64[n - 1]\n  return %c, %w {mutates = [1]}")
    check(
        text,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> (fresh 0, argument 1) if n >= 2 {
          %w = kernel %x, %y : f64[n] (%p: f64[n], %q: f64[n]) {
            %u = view %p {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %a = mul %u, %u : f64[n - 1]
            %b = write %a, %q {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
            yield %b
          }
          %v = view %w {map = (d0: n - 1) -> (d0 + 1)} : f64[n - 1]
          %c = neg %v : f64[n - 1]
          return %c, %w {mutates = [1]}
        }""",
        floats(9),
        floats(9),
    )


def test_a_value_that_is_overwritten_before_it_is_read_is_stored() -> None:
    rest = """%zero = constant {value = 0.0} : py_float
      %z = write %zero, %w {map = () -> (1)} : f64[n]
      %c = neg %v : f64[n - 1]
      return %c, %z {mutates = [1]}"""
    check(STORED_TWICE.format(rest=rest), SAME, floats(9), floats(9))


def test_a_value_read_where_it_was_written_may_be_seen_in_another_shape() -> None:
    text = STORED_TWICE.format(
        rest="%r = reshape %v {shape = [1, n - 1]} : f64[1, n - 1]\n  %c = neg %r : f64[1, n - 1]\n  return %c, %w {mutates = [1]}"
    )
    check(
        text,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> (fresh 0, argument 1) if n >= 2 {
          %w = kernel %x, %y : f64[n] (%p: f64[n], %q: f64[n]) {
            %u = view %p {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %a = mul %u, %u : f64[n - 1]
            %b = write %a, %q {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
            yield %b
          }
          %v = view %w {map = (d0: n - 1) -> (d0 + 1)} : f64[n - 1]
          %r = reshape %v {shape = [1, n - 1]} : f64[1, n - 1]
          %c = neg %r : f64[1, n - 1]
          return %c, %w {mutates = [1]}
        }""",
        floats(9),
        floats(9),
    )


def test_a_value_whose_view_is_read_behind_an_overwrite_is_stored() -> None:
    rest = """%r = reshape %v {shape = [1, n - 1]} : f64[1, n - 1]
      %zero = constant {value = 0.0} : py_float
      %z = write %zero, %w {map = () -> (1)} : f64[n]
      %c = neg %r : f64[1, n - 1]
      return %c, %z {mutates = [1]}"""
    check(STORED_TWICE.format(rest=rest), SAME, floats(9), floats(9))


def test_writes_that_read_each_others_old_elements_where_they_are_written_stay_in_one_kernel() -> None:
    check(
        """
        graph @f(%x: f64[n], %y: f64[n]) -> (argument 0, argument 1) {
          %a, %b = kernel %x, %y : f64[n], f64[n] (%p: f64[n], %q: f64[n]) {
            %s = add %p, %q : f64[n]
            %w = write %s, %p {map = (d0: n) -> (d0)} : f64[n]
            %d = sub %p, %q : f64[n]
            %v = write %d, %q {map = (d0: n) -> (d0)} : f64[n]
            yield %w, %v
          }
          return %a, %b {mutates = [0, 1]}
        }""",
        SAME,
        floats(9),
        floats(9),
    )


def test_what_is_stored_beside_may_read_the_old_elements() -> None:
    check(
        """
        graph @f(%x: f64[n, m]) -> (fresh 0, argument 0) if n >= 2 {
          %a, %b = kernel %x : f64[m], f64[n, m] (%p: f64[n, m]) {
            %v = view %p {map = (d0: m) -> (1, d0)} : f64[m]
            %t = mul %v, %v : f64[m]
            %u = add %t, %v : f64[m]
            %w = write %u, %p {map = (d0: m) -> (1, d0)} : f64[n, m]
            yield %t, %w
          }
          return %a, %b {mutates = [0]}
        }""",
        SAME,
        floats(4, 9),
    )


def test_what_is_stored_beside_and_reads_other_elements_parts_the_write() -> None:
    graph = check_pass(
        bufferize,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> (argument 0, argument 1) {
          %a, %b = kernel %x, %y : f64[n], f64[n] (%p: f64[n], %q: f64[n]) {
            %s = add %p, %q : f64[n]
            %w = write %s, %p {map = (d0: n) -> (d0)} : f64[n]
            %r = view %p {map = (d0: n) -> (-d0 + n - 1)} : f64[n]:strided(order=[0], negative=[0])
            %d = sub %r, %q : f64[n]
            %v = write %d, %q {map = (d0: n) -> (d0)} : f64[n]
            yield %w, %v
          }
          return %a, %b {mutates = [0, 1]}
        }""",
    )
    (kernel,) = [op for op in graph.walk() if op.name == "kernel"]
    assert [o.name for o in kernel.regions[0].ops() if o.name == "write"] == ["write"]


def test_what_is_stored_over_another_domain_parts_the_write() -> None:
    check(
        """
        graph @f(%x: f64[1, m]) -> (fresh 0, argument 0) {
          %a, %b = kernel %x : f64[m], f64[1, m] (%p: f64[1, m]) {
            %v = view %p {map = (d0: m) -> (0, d0)} : f64[m]
            %t = mul %v, %v : f64[m]
            %u = add %p, %t : f64[1, m]
            %w = write %u, %p {map = (d0: 1, d1: m) -> (d0, d1)} : f64[1, m]
            yield %t, %w
          }
          return %a, %b {mutates = [0]}
        }""",
        None,
        floats(1, 9),
    )
