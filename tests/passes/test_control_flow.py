"""Golden tests of the passes that clean up: dce, cse, control_flow, invariant_motion, fold."""

from __future__ import annotations

import pytest

from jitgraph.errors import InternalError
from jitgraph.ir.parser import parse
from jitgraph.passes.control_flow import control_flow
from jitgraph.passes.cse import cse
from jitgraph.passes.dce import dce
from jitgraph.passes.fold import fold
from jitgraph.passes.invariant_motion import invariant_motion
from jitgraph.passes.pipeline import PASSES, Pass, check_order, run_pipeline
from tests.checks import SAME, check_pass

# ------------------------------------------------------------------------------------------------------------- dce


def test_dce_erases_chains_and_keeps_effects() -> None:
    check_pass(
        dce,
        """
        graph @f(%x: f64[n], %ok: py_bool) -> f64[n] {
          %a = exp %x : f64[n]
          %b = neg %a : f64[n]
          check %ok {order = 1, site = 0 ValueError "no"}
          %c = neg %x : f64[n]
          return %c
        }""",
        """
        graph @f(%x: f64[n], %ok: py_bool) -> f64[n] {
          check %ok {order = 1, site = 0 ValueError "no"}
          %c = neg %x : f64[n]
          return %c
        }""",
    )


def test_dce_drops_what_a_loop_carries_for_itself() -> None:
    check_pass(
        dce,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[n] where n >= 0, n != 1, index i >= 0, i <= 2 {
          %a, %b = for %x, %y {index = i, lower = 0, step = 1, upper = 3} : f64[n], f64[n] (%p: f64[n], %q: f64[n]) {
            %p2 = exp %p : f64[n]
            %q2 = neg %q : f64[n]
            yield %p2, %q2
          }
          return %b
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[n] where n >= 0, n != 1, index i >= 0, i <= 2 {
          %b = for %y {index = i, lower = 0, step = 1, upper = 3} : f64[n] (%q: f64[n]) {
            %q2 = neg %q : f64[n]
            yield %q2
          }
          return %b
        }""",
    )


def test_dce_erases_dead_loops_but_not_those_with_checks() -> None:
    check_pass(
        dce,
        """
        graph @f(%x: f64[n], %ok: py_bool) -> f64[n] where n >= 0, n != 1, index i >= 0, index j >= 0 {
          %a = for %x {index = i, lower = 0, step = 1, upper = n} : f64[n] (%p: f64[n]) {
            %p2 = exp %p : f64[n]
            yield %p2
          }
          %b = for %x {index = j, lower = 0, step = 1, upper = n} : f64[n] (%q: f64[n]) {
            check %ok {order = 1, site = 0 ValueError "no"}
            yield %q
          }
          return %x
        }""",
        """
        graph @f(%x: f64[n], %ok: py_bool) -> f64[n] where n >= 0, n != 1, index i >= 0, index j >= 0 {
          for {index = j, lower = 0, step = 1, upper = n} () {
            check %ok {order = 1, site = 0 ValueError "no"}
            yield
          }
          return %x
        }""",
    )


def test_dce_keeps_a_bind_only_while_its_symbol_is_used() -> None:
    check_pass(
        dce,
        """
        graph @f(%x: f64[n], %k: py_int, %m: py_int) -> f64[k] where n >= 0, n != 1, value k >= 0, value l >= 0 {
          bind %k {symbol = k}
          bind %m {symbol = l}
          %a = constant {value = 0.5} : py_float
          %b = full %a {dtype = f64, shape = [k]} : f64[k]
          return %b
        }""",
        """
        graph @f(%x: f64[n], %k: py_int, %m: py_int) -> f64[k] where n >= 0, n != 1, value k >= 0, value l >= 0 {
          bind %k {symbol = k}
          %a = constant {value = 0.5} : py_float
          %b = full %a {dtype = f64, shape = [k]} : f64[k]
          return %b
        }""",
        evaluate=False,
    )


def test_dce_prunes_branches_and_conditions_of_while() -> None:
    check_pass(
        dce,
        """
        graph @f(%p: py_bool, %x: f64[], %y: f64[]) -> np.f64 {
          %a, %b = cond %p : np.f64, np.f64 () {
            %u = exp %x : np.f64
            %v = neg %x : np.f64
            yield %u, %v
          } () {
            %s = exp %y : np.f64
            %t = neg %y : np.f64
            yield %s, %t
          }
          %one = constant {value = f64(1.0)} : np.f64
          %big = constant {value = f64(100.0)} : np.f64
          %c, %d, %e = while %one, %one, %b : np.f64, np.f64, np.f64 (%c1: np.f64, %d1: np.f64, %e1: np.f64) {
            %more = lt %c1, %big : np.bool
            yield %more
          } (%c2: np.f64, %d2: np.f64, %e2: np.f64) {
            %c3 = add %c2, %c2 : np.f64
            %d3 = add %d2, %c2 : np.f64
            %e3 = exp %e2 : np.f64
            yield %c3, %d3, %e3
          }
          %r = add %d, %b : np.f64
          return %r
        }""",
        """
        graph @f(%p: py_bool, %x: f64[], %y: f64[]) -> np.f64 {
          %b = cond %p : np.f64 () {
            %v = neg %x : np.f64
            yield %v
          } () {
            %t = neg %y : np.f64
            yield %t
          }
          %one = constant {value = f64(1.0)} : np.f64
          %big = constant {value = f64(100.0)} : np.f64
          %c, %d = while %one, %one : np.f64, np.f64 (%c1: np.f64, %d1: np.f64) {
            %more = lt %c1, %big : np.bool
            yield %more
          } (%c2: np.f64, %d2: np.f64) {
            %c3 = add %c2, %c2 : np.f64
            %d3 = add %d2, %c2 : np.f64
            yield %c3, %d3
          }
          %r = add %d, %b : np.f64
          return %r
        }""",
    )


# ------------------------------------------------------------------------------------------------------------- cse


def test_cse_merges_equal_ops_in_either_order_of_operands_and_inside_regions() -> None:
    check_pass(
        cse,
        """
        graph @f(%x: f64[n], %y: f64[n], %p: py_bool) -> f64[n] {
          %a = add %x, %y : f64[n]
          %b = add %y, %x : f64[n]
          %c = mul %a, %b : f64[n]
          %d = cond %p : f64[n] () {
            %e = mul %a, %a : f64[n]
            %g = mul %b, %b : f64[n]
            %h = add %e, %g : f64[n]
            yield %h
          } () {
            %i = mul %a, %a : f64[n]
            yield %i
          }
          %j = mul %d, %c : f64[n]
          return %j
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n], %p: py_bool) -> f64[n] {
          %a = add %x, %y : f64[n]
          %c = mul %a, %a : f64[n]
          %d = cond %p : f64[n] () {
            %h = add %c, %c : f64[n]
            yield %h
          } () {
            %i = mul %a, %a : f64[n]
            yield %i
          }
          %j = mul %d, %c : f64[n]
          return %j
        }""",
    )


def test_cse_tells_numbers_of_other_types_and_signs_apart() -> None:
    check_pass(
        cse,
        """
        graph @f(%x: f64[n]) -> (np.f64, np.f64, np.f32, py_float, py_int, py_bool) {
          %a = constant {value = f64(0.0)} : np.f64
          %b = constant {value = f64(-0.0)} : np.f64
          %c = constant {value = f32(0.0)} : np.f32
          %d = constant {value = 0.0} : py_float
          %e = constant {value = 0} : py_int
          %g = constant {value = false} : py_bool
          return %a, %b, %c, %d, %e, %g
        }""",
        SAME,
    )


def test_cse_keeps_two_results_and_two_storages_apart() -> None:
    check_pass(
        cse,
        """
        graph @f(%x: f64[n]) -> (f64[n], f64[n], f64[4]) {
          %a = exp %x : f64[n]
          %b = exp %x : f64[n]
          %zero = constant {value = f64(0.0)} : np.f64
          %one = constant {value = f64(1.0)} : np.f64
          %u = full %zero {dtype = f64, shape = [4]} : f64[4]
          %v = full %zero {dtype = f64, shape = [4]} : f64[4]
          %s = write %one, %u {map = () -> (1)} : f64[4]
          %t = write %one, %v {map = () -> (2)} : f64[4]
          %r = add %s, %t : f64[4]
          return %a, %b, %r
        }""",
        SAME,
    )


def test_cse_merges_reductions_that_differ_in_keepdims() -> None:
    check_pass(
        cse,
        """
        graph @f(%x: f64[n, m]) -> (f64[n, m], f64[n], np.f64) {
          %a = reduce_sum %x {axes = [1], keepdims = true} : f64[n, 1]
          %b = reduce_sum %x {axes = [1], keepdims = false} : f64[n]
          %c = reduce_max %x {axes = [0, 1], keepdims = false} : np.f64
          %d = reduce_max %x {axes = [0, 1], keepdims = true} : f64[1, 1]
          %e = sub %x, %a : f64[n, m]
          %g = mul %e, %d : f64[n, m]
          %h = neg %b : f64[n]
          %i = neg %c : np.f64
          return %g, %h, %i
        }""",
        """
        graph @f(%x: f64[n, m]) -> (f64[n, m], f64[n], np.f64) {
          %a = reduce_sum %x {axes = [1], keepdims = true} : f64[n, 1]
          %b = view %a {map = (d0: n) -> (d0, 0)} : f64[n]
          %c = reduce_max %x {axes = [0, 1], keepdims = false} : np.f64
          %d = full %c {dtype = f64, shape = [1, 1]} : f64[1, 1]
          %e = sub %x, %a : f64[n, m]
          %g = mul %e, %d : f64[n, m]
          %h = neg %b : f64[n]
          %i = neg %c : np.f64
          return %g, %h, %i
        }""",
    )
    check_pass(
        cse,
        """
        graph @f(%x: f64[n, m]) -> (f64[n, m], np.f64) {
          %d = reduce_max %x {axes = [0, 1], keepdims = true} : f64[1, 1]
          %c = reduce_max %x {axes = [0, 1], keepdims = false} : np.f64
          %g = mul %x, %d : f64[n, m]
          %i = neg %c : np.f64
          return %g, %i
        }""",
        """
        graph @f(%x: f64[n, m]) -> (f64[n, m], np.f64) {
          %d = reduce_max %x {axes = [0, 1], keepdims = true} : f64[1, 1]
          %v = view %d {map = () -> (0, 0)} : f64[]
          %c = as_kind %v {kind = "np_scalar"} : np.f64
          %g = mul %x, %d : f64[n, m]
          %i = neg %c : np.f64
          return %g, %i
        }""",
    )


# ---------------------------------------------------------------------------------------------------- control flow


def test_known_branch_is_inlined() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %p = constant {value = false} : py_bool
          %a = cond %p : f64[n] () {
            %b = exp %x : f64[n]
            yield %b
          } () {
            %c = neg %x : f64[n]
            yield %c
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %p = constant {value = false} : py_bool
          %a = neg %x : f64[n]
          return %a
        }""",
    )


def test_branch_that_gives_an_argument_back_gives_a_copy_of_it() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %p = constant {value = true} : py_bool
          %a = cond %p : f64[n] () {
            yield %x
          } () {
            %c = neg %x : f64[n]
            yield %c
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %p = constant {value = true} : py_bool
          %a = copy %x {order = "C"} : f64[n]
          return %a
        }""",
    )


def test_branches_that_agree() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %y = exp %x : f64[n]
          %a = cond %p : f64[n] () {
            yield %y
          } () {
            yield %y
          }
          %b = neg %a : f64[n]
          return %b
        }""",
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %y = exp %x : f64[n]
          %b = neg %y : f64[n]
          return %b
        }""",
    )


def test_loops_of_no_and_of_one_turn() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[n]) -> f64[n] where n >= 0, n != 1, index i >= 0, index j >= 0, index k >= 0 {
          %a = neg %x : f64[n]
          %b = for %a {index = i, lower = n + 1, step = 1, upper = n} : f64[n] (%c: f64[n]) {
            %d = exp %c : f64[n]
            yield %d
          }
          %e = for %b {index = j, lower = n, step = 1, upper = n + 1} : f64[n] (%g: f64[n]) {
            %s = dim {value = j} : py_int
            %t = cast %s {dtype = f64} : py_float
            %h = mul %g, %t : f64[n]
            yield %h
          }
          %l = for %e {index = k, lower = 5, step = -3, upper = 3} : f64[n] (%o: f64[n]) {
            %q = dim {value = k} : py_int
            %r = cast %q {dtype = f64} : py_float
            %u = sub %o, %r : f64[n]
            yield %u
          }
          return %l
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] where n >= 0, n != 1, index i >= 0, index j >= 0, index k >= 0 {
          %a = neg %x : f64[n]
          %s = dim {value = n} : py_int
          %t = cast %s {dtype = f64} : py_float
          %h = mul %a, %t : f64[n]
          %q = dim {value = 5} : py_int
          %r = cast %q {dtype = f64} : py_float
          %u = sub %h, %r : f64[n]
          return %u
        }""",
    )


def test_while_that_is_never_entered_and_check_that_holds() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = neg %x : f64[n]
          %no = constant {value = false} : py_bool
          %yes = constant {value = bool(true)} : np.bool
          check %yes {order = 1, site = 0 ValueError "no"}
          %b = while %a : f64[n] (%c: f64[n]) {
            yield %no
          } (%d: f64[n]) {
            %e = exp %d : f64[n]
            yield %e
          }
          return %b
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = neg %x : f64[n]
          %no = constant {value = false} : py_bool
          %yes = constant {value = bool(true)} : np.bool
          return %a
        }
        site 0 ValueError "no\"""",
    )


def test_value_that_every_turn_passes_through() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[n] where n >= 0, n != 1, index i >= 0 {
          %a, %b = for %x, %y {index = i, lower = 0, step = 1, upper = 3} : f64[n], f64[n] (%p: f64[n], %q: f64[n]) {
            %r = mul %p, %q : f64[n]
            yield %r, %q
          }
          %s = add %a, %b : f64[n]
          return %s
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[n] where n >= 0, n != 1, index i >= 0 {
          %a, %b = for %x, %y {index = i, lower = 0, step = 1, upper = 3} : f64[n], f64[n] (%p: f64[n], %q: f64[n]) {
            %r = mul %p, %y : f64[n]
            yield %r, %q
          }
          %s = add %a, %y : f64[n]
          return %s
        }""",
    )


# ------------------------------------------------------------------------------------------------ invariant motion


def test_invariant_ops_leave_all_loops_that_they_do_not_depend_on() -> None:
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[n, m], %y: f64[m]) -> f64[n, m] where n >= 0, n != 1, m >= 0, m != 1, index i >= 0, i <= n - 1, index j >= 0 {
          %a = for %x {index = i, lower = 0, step = 1, upper = n} : f64[n, m] (%b: f64[n, m]) {
            %c = for %b {index = j, lower = 0, step = 1, upper = 2} : f64[n, m] (%d: f64[n, m]) {
              %e = exp %y : f64[m]
              %g = view %x {map = (d0: m) -> (i, d0)} : f64[m]
              %h = mul %e, %g : f64[m]
              %o = write %h, %d {map = (d0: m) -> (i, d0)} : f64[n, m]
              yield %o
            }
            yield %c
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n, m], %y: f64[m]) -> f64[n, m] where n >= 0, n != 1, m >= 0, m != 1, index i >= 0, i <= n - 1, index j >= 0 {
          %e = exp %y : f64[m]
          %a = for %x {index = i, lower = 0, step = 1, upper = n} : f64[n, m] (%b: f64[n, m]) {
            %g = view %x {map = (d0: m) -> (i, d0)} : f64[m]
            %h = mul %e, %g : f64[m]
            %c = for %b {index = j, lower = 0, step = 1, upper = 2} : f64[n, m] (%d: f64[n, m]) {
              %o = write %h, %d {map = (d0: m) -> (i, d0)} : f64[n, m]
              yield %o
            }
            yield %c
          }
          return %a
        }""",
    )


def test_what_starts_a_storage_stays_in_its_loop() -> None:
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[n], %z: f64[]) -> f64[n] where n >= 2, n != 1, index i >= 0, i <= n - 1 {
          %a = for %x {index = i, lower = 0, step = 1, upper = n} : f64[n] (%b: f64[n]) {
            %c = full %z {dtype = f64, shape = [n]} : f64[n]
            %v = view %b {map = () -> (i)} : f64[]
            %d = write %v, %c {map = () -> (i)} : f64[n]
            %e = add %b, %d : f64[n]
            yield %e
          }
          return %a
        }""",
        SAME,
    )


def test_a_check_of_what_does_not_change_leaves_its_loop_and_a_view_it_guards_follows() -> None:
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[n], %y: f64[m]) -> f64[n] where n >= 0, n != 1, m >= 0, m != 1, index i >= 0, i <= 2 {
          %a = for %x {index = i, lower = 0, step = 1, upper = 3} : f64[n] (%b: f64[n]) {
            %s = dim {value = m} : py_int
            %t = dim {value = n} : py_int
            %c = eq %s, %t : py_bool
            check %c, %s, %t {order = 0, site = 0 ShapeError "sizes {0} and {1} differ"}
            %v = view %y {map = (d0: n) -> (d0)} : f64[n]
            %w = view %y {map = (d0: m) -> (d0)} : f64[m]
            %e = exp %v : f64[n]
            %r = add %b, %e : f64[n]
            yield %r
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n], %y: f64[m]) -> f64[n] where n >= 0, n != 1, m >= 0, m != 1, index i >= 0, i <= 2 {
          %s = dim {value = m} : py_int
          %t = dim {value = n} : py_int
          %c = eq %s, %t : py_bool
          check %c, %s, %t {order = 0, site = 0 ShapeError "sizes {0} and {1} differ"}
          %v = view %y {map = (d0: n) -> (d0)} : f64[n]
          %w = view %y {map = (d0: m) -> (d0)} : f64[m]
          %e = exp %v : f64[n]
          %a = for %x {index = i, lower = 0, step = 1, upper = 3} : f64[n] (%b: f64[n]) {
            %r = add %b, %e : f64[n]
            yield %r
          }
          return %a
        }""",
    )


def test_a_check_leaves_a_loop_that_may_make_no_turn() -> None:
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[n], %k: py_int) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %z = constant {value = f64(0.0)} : np.f64
          %a = for %z {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %t = constant {value = 5} : py_int
            %c = lt %t, %k : py_bool
            check %c {order = 0, site = 0 ValueError "no"}
            %v = view %x {map = () -> (i)} : f64[]
            %r = add %b, %v : np.f64
            yield %r
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n], %k: py_int) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %z = constant {value = f64(0.0)} : np.f64
          %t = constant {value = 5} : py_int
          %c = lt %t, %k : py_bool
          %l = constant {value = 0} : py_int
          %u = dim {value = n} : py_int
          %none = ge %l, %u : py_bool
          %d = logical_or %c, %none : py_bool
          check %d {order = 0, site = 0 ValueError "no"}
          %a = for %z {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %v = view %x {map = () -> (i)} : f64[]
            %r = add %b, %v : np.f64
            yield %r
          }
          return %a
        }""",
    )


def test_a_check_that_keeps_a_view_inside_stays_with_it_if_there_may_be_no_turn() -> None:
    """In front of the loop nothing would keep the view from being read outside its base."""
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[n], %y: f64[m]) -> np.f64 where n >= 0, n != 1, m >= 0, m != 1, index i >= 0, i <= n - 1 {
          %z = constant {value = f64(0.0)} : np.f64
          %t = constant {value = 5} : py_int
          %s = dim {value = m} : py_int
          %c = lt %t, %s : py_bool
          %a = for %z {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            check %c {order = 0, site = 0 IndexError "no"}
            %v = view %y {map = () -> (5)} : f64[]
            %r = add %b, %v : np.f64
            yield %r
          }
          return %a
        }""",
        SAME,
    )


def test_a_view_that_a_turn_keeps_inside_stays_in_its_loop() -> None:
    """y[i + 1] is inside y where i + 1 is below n, as it is in a turn; the last i has none."""
    check_pass(
        invariant_motion,
        """
        graph @f(%y: f64[n]) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1, index j >= i + 1, j <= n - 1 {
          %z = constant {value = f64(0.0)} : np.f64
          %a = for %z {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %c = for %b {index = j, lower = i + 1, step = 1, upper = n} : np.f64 (%d: np.f64) {
              %v = view %y {map = () -> (i + 1)} : f64[]
              %r = add %d, %v : np.f64
              yield %r
            }
            yield %c
          }
          return %a
        }""",
        SAME,
    )


def test_a_check_behind_a_write_or_another_effect_stays() -> None:
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[4], %p: py_bool, %q: py_bool) -> () where index i >= 0, i <= 3 {
          %a = for %x {index = i, lower = 0, step = 1, upper = 4} : f64[4] (%b: f64[4]) {
            %c = constant {value = 1.0} : py_float
            %w = write %c, %b {map = () -> (i)} : f64[4]
            check %p {order = 1, site = 0 ValueError "no"}
            yield %w
          }
          return %a {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[4], %p: py_bool, %q: py_bool) -> () where index i >= 0, i <= 3 {
          %c = constant {value = 1.0} : py_float
          %a = for %x {index = i, lower = 0, step = 1, upper = 4} : f64[4] (%b: f64[4]) {
            %w = write %c, %b {map = () -> (i)} : f64[4]
            check %p {order = 1, site = 0 ValueError "no"}
            yield %w
          }
          return %a {mutates = [0]}
        }""",
    )


# ------------------------------------------------------------------------------------------------------------ fold


def test_fold_evaluates_constants_sizes_and_comparisons() -> None:
    check_pass(
        fold,
        """
        graph @f(%x: f64[n, 3]) -> (np.f64, np.f32, f64[2], py_bool, py_bool, py_int) {
          %a = constant {value = 2} : py_int
          %b = dim {value = 3} : py_int
          %c = add %a, %b : py_int
          %d = cast %c {dtype = f64} : py_float
          %e = sqrt %d : py_float
          %g = as_kind %e {kind = "np_scalar"} : np.f64
          %h = constant {value = f32(0.5)} : np.f32
          %i = exp %h : np.f32
          %j = constant {value = array f64[2] [1.0, -0.0]} : f64[2]
          %k = neg %j : f64[2]
          %n = dim {value = n} : py_int
          %zero = constant {value = 0} : py_int
          %l = ge %n, %zero : py_bool
          %one = constant {value = 1} : py_int
          %m = eq %n, %one : py_bool
          %o = mul %n, %a : py_int
          %p = add %o, %n : py_int
          return %g, %i, %k, %l, %m, %p
        }""",
        """
        graph @f(%x: f64[n, 3]) -> (np.f64, np.f32, f64[2], py_bool, py_bool, py_int) {
          %a = constant {value = 2} : py_int
          %b = constant {value = 3} : py_int
          %c = constant {value = 5} : py_int
          %d = constant {value = 5.0} : py_float
          %e = constant {value = 2.23606797749979} : py_float
          %g = constant {value = f64(2.23606797749979)} : np.f64
          %h = constant {value = f32(0.5)} : np.f32
          %i = constant {value = f32(1.6487212)} : np.f32
          %j = constant {value = array f64[2] [1.0, -0.0]} : f64[2]
          %k = constant {value = array f64[2] [-1.0, 0.0]} : f64[2]
          %q = copy %k {order = "C"} : f64[2]
          %n = dim {value = n} : py_int
          %zero = constant {value = 0} : py_int
          %l = constant {value = true} : py_bool
          %one = constant {value = 1} : py_int
          %m = constant {value = false} : py_bool
          %o = dim {value = 2*n} : py_int
          %p = dim {value = 3*n} : py_int
          return %g, %i, %q, %l, %m, %p
        }""",
        ulp=1,
    )


def test_fold_wraps_as_int64_does_and_keeps_integer_zero_divisions() -> None:
    check_pass(
        fold,
        """
        graph @f() -> (py_int, np.i32, py_bool) {
          %a = constant {value = 9223372036854775807} : py_int
          %b = constant {value = 1} : py_int
          %c = add %a, %b : py_int
          %d = constant {value = i32(7)} : np.i32
          %e = constant {value = i32(0)} : np.i32
          %g = floordiv %d, %e : np.i32
          %h = add_overflows %a, %b : py_bool
          return %c, %g, %h
        }""",
        """
        graph @f() -> (py_int, np.i32, py_bool) {
          %a = constant {value = 9223372036854775807} : py_int
          %b = constant {value = 1} : py_int
          %c = constant {value = -9223372036854775808} : py_int
          %d = constant {value = i32(7)} : np.i32
          %e = constant {value = i32(0)} : np.i32
          %g = constant {value = i32(0)} : np.i32
          %h = constant {value = true} : py_bool
          return %c, %g, %h
        }""",
    )


def test_symbols_bound_to_sizes_are_those_sizes() -> None:
    check_pass(
        fold,
        """
        graph @f(%x: f64[n]) -> f64[k] where n >= 0, n != 1, value k >= 0, value l >= 0 {
          %a = dim {value = n} : py_int
          bind %a {symbol = k}
          %b = dim {value = k + 1} : py_int
          bind %b {symbol = l}
          %c = view %x {map = (d0: k) -> (d0)} : f64[k]
          %d = neg %c : f64[k]
          return %d
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = dim {value = n} : py_int
          %b = dim {value = n + 1} : py_int
          %c = view %x {map = (d0: n) -> (d0)} : f64[n]
          %d = neg %c : f64[n]
          return %d
        }""",
    )


def test_index_of_a_loop_over_a_size_is_in_range() -> None:
    check_pass(
        fold,
        """
        graph @f(%x: f64[n]) -> () where n >= 0, n != 1, value k >= 0, index i >= 0, i <= k - 1 {
          %a = dim {value = n} : py_int
          bind %a {symbol = k}
          for {index = i, lower = 0, step = 1, upper = k} () {
            %i = dim {value = i} : py_int
            %c = lt %i, %a : py_bool
            check %c {order = 1, site = 0 IndexError "no"}
            yield
          }
          return
        }""",
        """
        graph @f(%x: f64[n]) -> () where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %a = dim {value = n} : py_int
          for {index = i, lower = 0, step = 1, upper = n} () {
            %i = dim {value = i} : py_int
            %c = constant {value = true} : py_bool
            check %c {order = 1, site = 0 IndexError "no"}
            yield
          }
          return
        }""",
    )


def test_large_results_stay_code() -> None:
    check_pass(
        fold,
        """
        graph @f() -> f64[70] {
          %a = constant {value = array f64[1] [1.0]} : f64[1]
          %b = constant {value = array f64[2] [1.0, 2.0]} : f64[2]
          %v = view %b {map = (d0: 70) -> (0)} : f64[70]:strided(order=[0], zero=[0])
          %c = mul %a, %v : f64[70]
          return %c
        }""",
        SAME,
    )


def test_elementwise_ops_of_one_number_throughout_are_fills() -> None:
    check_pass(
        fold,
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = constant {value = 4.0} : py_float
          %b = full %a {dtype = f64, shape = [n]} : f64[n]
          %c = sqrt %b : f64[n]
          %o = constant {value = f64(1.0)} : np.f64
          %v = view %o {map = (d0: n) -> ()} : f64[n]:strided(order=[0], zero=[0])
          %d = sub %c, %v : f64[n]
          %e = exp %x : f64[n]
          %g = mul %e, %d : f64[n]
          return %g
        }""",
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %a = constant {value = 4.0} : py_float
          %b = full %a {dtype = f64, shape = [n]} : f64[n]
          %two = constant {value = f64(2.0)} : np.f64
          %c = full %two {dtype = f64, shape = [n]} : f64[n]
          %o = constant {value = f64(1.0)} : np.f64
          %v = view %o {map = (d0: n) -> ()} : f64[n]:strided(order=[0], zero=[0])
          %one = constant {value = f64(1.0)} : np.f64
          %d = full %one {dtype = f64, shape = [n]} : f64[n]
          %e = exp %x : f64[n]
          %g = mul %e, %d : f64[n]
          return %g
        }""",
    )


# -------------------------------------------------------------------------------------------------------- pipeline


def test_order_of_the_pipeline_is_checked() -> None:
    check_order(PASSES)
    with pytest.raises(InternalError, match="must stand behind cse"):
        check_order([Pass("dce", dce, after={"cse": "why"}), Pass("cse", cse)])
    with pytest.raises(InternalError, match="twice"):
        check_order([Pass("dce", dce), Pass("dce", dce)])


def test_observer_hears_of_every_pass() -> None:
    g = parse(
        "graph @f(%x: f64[n]) -> f64[n] {\n %a = neg %x : f64[n]\n %b = neg %a : f64[n]\n %c = neg %b : f64[n]\n return %c\n}"
    )
    heard: list[tuple[int, str, int, int]] = []
    assert run_pipeline(
        g, verify=True, observer=lambda i, name, _g, before, after, ms: heard.append((i, name, before, after))
    )
    assert [h[:2] for h in heard] == [(i, p.name) for i, p in enumerate(PASSES)]
    assert {h[1]: h[2:] for h in heard}["canonicalise"] == (4, 2)


def test_a_constant_end_is_known_behind_the_loop() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%b: py_bool, %k: py_int, %x: f64[n]) -> (py_bool, py_int, py_bool, py_int)
            where n >= 0, n != 1, index i >= 2, i <= n - 1, index j >= 0, j <= 2 {
          %a, %c = for %b, %k {index = i, lower = 2, step = 1, upper = n} : py_bool, py_int (%p: py_bool, %q: py_int) {
            %t = constant {value = true} : py_bool
            %s = constant {value = 7} : py_int
            yield %t, %s
          }
          %d, %e = for %b, %k {index = j, lower = 0, step = 1, upper = 3} : py_bool, py_int (%r: py_bool, %u: py_int) {
            %v = constant {value = false} : py_bool
            %w = constant {value = 8} : py_int
            check %r, %u {order = 1, site = 0 ValueError "{0}"}
            yield %v, %w
          }
          return %a, %c, %d, %e
        }""",
        """
        graph @f(%b: py_bool, %k: py_int, %x: f64[n]) -> (py_bool, py_int, py_bool, py_int)
            where n >= 0, n != 1, index i >= 2, i <= n - 1, index j >= 0, j <= 2 {
          %0 = constant {value = true} : py_bool
          %1 = dim {value = 2} : py_int
          %2 = dim {value = n} : py_int
          %3 = lt %1, %2 : py_bool
          %a = logical_or %3, %b : py_bool
          %4 = constant {value = 7} : py_int
          %5 = dim {value = 2} : py_int
          %6 = dim {value = n} : py_int
          %7 = lt %5, %6 : py_bool
          %8 = where %7, %4, %k : i64[]
          %c = as_kind %8 {kind = "py_int"} : py_int
          %a2, %c2 = for %b, %k {index = i, lower = 2, step = 1, upper = n} : py_bool, py_int (%p: py_bool, %q: py_int) {
            %t = constant {value = true} : py_bool
            %s = constant {value = 7} : py_int
            yield %t, %s
          }
          %d, %e = for %b, %k {index = j, lower = 0, step = 1, upper = 3} : py_bool, py_int (%r: py_bool, %u: py_int) {
            %v = constant {value = false} : py_bool
            %w = constant {value = 8} : py_int
            check %r, %u {order = 1, site = 0 ValueError "{0}"}
            yield %v, %w
          }
          return %a, %c, %d, %e
        }""",
    )
