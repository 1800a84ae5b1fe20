"""Golden tests of branches: equal code in front of and behind them, selects, and conditions that are implied."""

from __future__ import annotations

from jitgraph.passes.branches import branches
from jitgraph.passes.conditions import conditions
from tests.checks import SAME, check_pass

# ------------------------------------------------------------------------------------------------------ equal code


def test_what_both_sides_compute_is_computed_in_front() -> None:
    check_pass(
        branches,
        """
        graph @f(%x: f64[n], %y: f64[n], %p: py_bool) -> (np.f64, np.f64) {
          %a, %b = cond %p : np.f64, np.f64 () {
            %s = reduce_sum %x {axes = [0], keepdims = false} : np.f64
            %e = exp %s : np.f64
            %u = log %e : np.f64
            %v = exp %u : np.f64
            yield %v, %s
          } () {
            %t = reduce_sum %x {axes = [0], keepdims = false} : np.f64
            %g = exp %t : np.f64
            %w = sin %g : np.f64
            %z = exp %w : np.f64
            yield %z, %t
          }
          return %a, %b
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n], %p: py_bool) -> (np.f64, np.f64) {
          %s = reduce_sum %x {axes = [0], keepdims = false} : np.f64
          %e = exp %s : np.f64
          %c, %b = cond %p : np.f64, np.f64 () {
            %u = log %e : np.f64
            yield %u, %s
          } () {
            %w = sin %e : np.f64
            yield %w, %s
          }
          %a = exp %c : np.f64
          return %a, %b
        }""",
    )


def test_arrays_that_each_side_computes_on_the_way_stay() -> None:
    """In front of the branch exp(x) would be stored, to be read again."""
    check_pass(
        branches,
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %a = cond %p : f64[n] () {
            %e = exp %x : f64[n]
            %u = sqrt %e : f64[n]
            yield %u
          } () {
            %g = exp %x : f64[n]
            %w = neg %g : f64[n]
            yield %w
          }
          return %a
        }""",
        SAME,
    )


def test_sides_that_do_the_same_are_no_branch() -> None:
    check_pass(
        branches,
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %a = cond %p : f64[n] () {
            %e = exp %x : f64[n]
            %u = neg %e : f64[n]
            yield %u
          } () {
            %g = exp %x : f64[n]
            %w = neg %g : f64[n]
            yield %w
          }
          %b = sqrt %a : f64[n]
          return %b
        }""",
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %e = exp %x : f64[n]
          %u = neg %e : f64[n]
          %b = sqrt %u : f64[n]
          return %b
        }""",
    )


def test_a_write_of_one_of_two_numbers_stands_behind_the_branch() -> None:
    check_pass(
        branches,
        """
        graph @f(%x: f64[n], %y: f64[]) -> () where n >= 3, n != 1 {
          %v = view %x {map = () -> (0)} : f64[]
          %s = as_kind %v {kind = "np_scalar"} : np.f64
          %one = constant {value = 1.0} : py_float
          %p = gt %s, %one : np.bool
          %a = cond %p : f64[n] () {
            %u = write %one, %x {map = () -> (2)} : f64[n]
            yield %u
          } () {
            %w = write %s, %x {map = () -> (2)} : f64[n]
            yield %w
          }
          return %a {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n], %y: f64[]) -> () where n >= 3, n != 1 {
          %v = view %x {map = () -> (0)} : f64[]
          %s = as_kind %v {kind = "np_scalar"} : np.f64
          %one = constant {value = 1.0} : py_float
          %p = gt %s, %one : np.bool
          %k = as_kind %one {kind = "np_scalar"} : np.f64
          %b = where %p, %k, %s : f64[]
          %c = as_kind %b {kind = "np_scalar"} : np.f64
          %a = write %c, %x {map = () -> (2)} : f64[n]
          return %a {mutates = [0]}
        }""",
    )


def test_a_write_in_front_of_a_check_stays_in_front_of_it() -> None:
    """The caller sees the write if the check fails."""
    check_pass(
        branches,
        """
        graph @f(%x: f64[n], %p: py_bool, %q: py_bool) -> () where n >= 3, n != 1 {
          %one = constant {value = 1.0} : py_float
          %two = constant {value = 2.0} : py_float
          %a = cond %p : f64[n] () {
            %u = write %one, %x {map = () -> (2)} : f64[n]
            check %q {order = 1, site = 0 ValueError "no"}
            yield %u
          } () {
            %w = write %two, %x {map = () -> (2)} : f64[n]
            yield %w
          }
          return %a {mutates = [0]}
        }""",
        SAME,
    )


# --------------------------------------------------------------------------------------------------------- selects


def test_short_sides_become_selects_and_their_checks_hold_on_the_other_side() -> None:
    check_pass(
        branches,
        """
        graph @f(%n: py_int, %p: py_bool, %q: py_bool) -> (py_int, py_bool, py_bool) {
          %two = constant {value = 2} : py_int
          %three = constant {value = 3} : py_int
          %a, %b, %c = cond %p : py_int, py_bool, py_bool () {
            %h = floordiv %n, %two : py_int
            %yes = constant {value = true} : py_bool
            yield %h, %yes, %q
          } () {
            %o = mul_overflows %n, %three : py_bool
            %k = logical_not %o : py_bool
            check %k {order = 1, site = 0 ValueError "no"}
            %m = mul %n, %three : py_int
            %no = constant {value = false} : py_bool
            yield %m, %q, %no
          }
          return %a, %b, %c
        }""",
        """
        graph @f(%n: py_int, %p: py_bool, %q: py_bool) -> (py_int, py_bool, py_bool) {
          %two = constant {value = 2} : py_int
          %three = constant {value = 3} : py_int
          %np = logical_not %p : py_bool
          %h = floordiv %n, %two : py_int
          %yes = constant {value = true} : py_bool
          %o = mul_overflows %n, %three : py_bool
          %k = logical_not %o : py_bool
          %l = logical_or %p, %k : py_bool
          check %l {order = 1, site = 0 ValueError "no"}
          %m = mul %n, %three : py_int
          %no = constant {value = false} : py_bool
          %r = where %p, %h, %m : i64[]
          %a = as_kind %r {kind = "py_int"} : py_int
          %b = logical_or %p, %q : py_bool
          %c = logical_and %p, %q : py_bool
          return %a, %b, %c
        }""",
        evaluate=False,  # the negation of a check without users is left to `dce`
    )


def test_dear_sides_and_reads_that_are_not_proven_to_be_inside_stay_branches() -> None:
    check_pass(
        branches,
        """
        graph @f(%x: f64[n], %s: f64[], %p: py_bool, %i: py_int) -> (np.f64, np.f64) where n >= 0, n != 1, value k {
          %t = as_kind %s {kind = "np_scalar"} : np.f64
          bind %i {symbol = k}
          %a = cond %p : np.f64 () {
            %e = exp %t : np.f64
            yield %e
          } () {
            yield %t
          }
          %b = cond %p : np.f64 () {
            %z = constant {value = 0} : py_int
            %l = dim {value = n} : py_int
            %c = lt %i, %l : py_bool
            check %c {order = 1, site = 0 IndexError "no"}
            %d = ge %i, %z : py_bool
            check %d {order = 2, site = 0 IndexError "no"}
            %v = view %x {map = () -> (k)} : f64[]
            %w = as_kind %v {kind = "np_scalar"} : np.f64
            yield %w
          } () {
            yield %t
          }
          return %a, %b
        }""",
        SAME,
    )


def test_arrays_are_selected_where_one_kernel_comes_of_it() -> None:
    text = """
        graph @f(%x: f64[n], %z: f64[n], %p: py_bool) -> {results} {{
          %a = cond %p : f64[n] () {{
            %two = constant {{value = 2.0}} : py_float
            %u = mul %x, %two : f64[n]
            yield %u
          }} () {{
            %one = constant {{value = 1.0}} : py_float
            %w = add {other}, %one : f64[n]
            yield %w
          }}
          %b = square %a : f64[n]
          return {returned}
        }}"""
    check_pass(
        branches,
        text.format(results="f64[n]", other="%x", returned="%b"),
        """
        graph @f(%x: f64[n], %z: f64[n], %p: py_bool) -> f64[n] {
          %two = constant {value = 2.0} : py_float
          %u = mul %x, %two : f64[n]
          %one = constant {value = 1.0} : py_float
          %w = add %x, %one : f64[n]
          %a = where %p, %u, %w : f64[n]
          %b = square %a : f64[n]
          return %b
        }""",
    )
    check_pass(branches, text.format(results="f64[n]", other="%z", returned="%b"), SAME)  # reads another array
    check_pass(branches, text.format(results="(f64[n], f64[n])", other="%x", returned="%a, %b"), SAME)  # stored anyhow


# ------------------------------------------------------------------------------------------------------ conditions


def test_a_branch_in_a_branch_on_the_same_predicate_is_known() -> None:
    check_pass(
        conditions,
        """
        graph @f(%x: f64[], %p: py_bool, %q: py_bool) -> (py_bool, py_bool, py_bool) {
          %both = logical_and %p, %q : py_bool
          %a, %b = cond %both : py_bool, py_bool () {
            %n = logical_not %q : py_bool
            yield %p, %n
          } () {
            yield %p, %both
          }
          check %q {order = 1, site = 0 ValueError "no"}
          return %a, %b, %q
        }""",
        """
        graph @f(%x: f64[], %p: py_bool, %q: py_bool) -> (py_bool, py_bool, py_bool) {
          %both = logical_and %p, %q : py_bool
          %a, %b = cond %both : py_bool, py_bool () {
            %n = constant {value = false} : py_bool
            %y = constant {value = true} : py_bool
            yield %y, %n
          } () {
            %no = constant {value = false} : py_bool
            yield %p, %no
          }
          check %q {order = 1, site = 0 ValueError "no"}
          %yes = constant {value = true} : py_bool
          return %a, %b, %yes
        }""",
    )


def test_comparisons_imply_others_of_floats_only_where_nan_allows_it() -> None:
    check_pass(
        conditions,
        """
        graph @f(%x: f64[], %y: f64[]) -> (np.bool, np.bool, np.bool, np.bool) {
          %p = lt %x, %y : np.bool
          %a, %b, %c, %d = cond %p : np.bool, np.bool, np.bool, np.bool () {
            %e = ge %x, %y : np.bool
            %g = ge %y, %x : np.bool
            %h = ne %y, %x : np.bool
            %i = le %y, %x : np.bool
            yield %e, %g, %h, %i
          } () {
            %e1 = ge %x, %y : np.bool
            %g1 = ge %y, %x : np.bool
            %h1 = ne %y, %x : np.bool
            %i1 = gt %y, %x : np.bool
            yield %e1, %g1, %h1, %i1
          }
          return %a, %b, %c, %d
        }""",
        """
        graph @f(%x: f64[], %y: f64[]) -> (np.bool, np.bool, np.bool, np.bool) {
          %p = lt %x, %y : np.bool
          %a, %b, %c, %d = cond %p : np.bool, np.bool, np.bool, np.bool () {
            %e = constant {value = bool(false)} : np.bool
            %g = constant {value = bool(true)} : np.bool
            %h = constant {value = bool(true)} : np.bool
            %i = constant {value = bool(false)} : np.bool
            yield %e, %g, %h, %i
          } () {
            %e1 = ge %x, %y : np.bool
            %g1 = ge %y, %x : np.bool
            %h1 = ne %y, %x : np.bool
            %i1 = constant {value = bool(false)} : np.bool
            yield %e1, %g1, %h1, %i1
          }
          return %a, %b, %c, %d
        }""",
    )


def test_ranges_and_branches_bound_sizes() -> None:
    """i + 1 < n where a loop from i + 1 to n makes a turn; k + 1 <= 10 where k < 10."""
    check_pass(
        conditions,
        """
        graph @f(%x: f64[n], %m: py_int) -> () where n >= 0, n != 1, index i >= 0, i <= n - 1, index j >= i + 1, j <= n - 1, value k {
          bind %m {symbol = k}
          %n = dim {value = n} : py_int
          %ten = constant {value = 10} : py_int
          for {index = i, lower = 0, step = 1, upper = n} () {
            %i = dim {value = i + 1} : py_int
            %c = lt %i, %n : py_bool
            for {index = j, lower = i + 1, step = 1, upper = n} () {
              check %c {order = 1, site = 0 IndexError "no"}
              yield
            }
            yield
          }
          %p = lt %m, %ten : py_bool
          cond %p () {
            %k = dim {value = k + 1} : py_int
            %q = le %k, %ten : py_bool
            check %q {order = 2, site = 0 IndexError "no"}
            yield
          } () {
            %l = dim {value = k + 1} : py_int
            %r = le %l, %ten : py_bool
            check %r {order = 3, site = 0 IndexError "no"}
            yield
          }
          return
        }""",
        """
        graph @f(%x: f64[n], %m: py_int) -> () where n >= 0, n != 1, index i >= 0, i <= n - 1, index j >= i + 1, j <= n - 1, value k {
          bind %m {symbol = k}
          %n = dim {value = n} : py_int
          %ten = constant {value = 10} : py_int
          for {index = i, lower = 0, step = 1, upper = n} () {
            %i = dim {value = i + 1} : py_int
            %c = lt %i, %n : py_bool
            for {index = j, lower = i + 1, step = 1, upper = n} () {
              %yes = constant {value = true} : py_bool
              check %yes {order = 1, site = 0 IndexError "no"}
              yield
            }
            yield
          }
          %p = lt %m, %ten : py_bool
          cond %p () {
            %k = dim {value = k + 1} : py_int
            %q = constant {value = true} : py_bool
            check %q {order = 2, site = 0 IndexError "no"}
            yield
          } () {
            %l = dim {value = k + 1} : py_int
            %r = constant {value = false} : py_bool
            check %r {order = 3, site = 0 IndexError "no"}
            yield
          }
          return
        }""",
    )


def test_the_test_of_a_while_holds_in_its_body() -> None:
    check_pass(
        conditions,
        """
        graph @f(%n: py_int) -> py_int {
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %r = while %zero : py_int (%k: py_int) {
            %c = lt %k, %n : py_bool
            yield %c
          } (%l: py_int) {
            %d = gt %n, %l : py_bool
            check %d {order = 1, site = 0 IndexError "no"}
            %m = add %l, %one : py_int
            %e = gt %n, %m : py_bool
            check %e {order = 2, site = 0 IndexError "no"}
            yield %m
          }
          return %r
        }""",
        """
        graph @f(%n: py_int) -> py_int {
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %r = while %zero : py_int (%k: py_int) {
            %c = lt %k, %n : py_bool
            yield %c
          } (%l: py_int) {
            %d = constant {value = true} : py_bool
            check %d {order = 1, site = 0 IndexError "no"}
            %m = add %l, %one : py_int
            %e = gt %n, %m : py_bool
            check %e {order = 2, site = 0 IndexError "no"}
            yield %m
          }
          return %r
        }""",
    )


def test_two_names_of_one_value_are_equal_from_where_both_are_known() -> None:
    check_pass(
        conditions,
        """
        graph @f(%x: f64[n], %m: py_int) -> (py_bool, py_bool, py_bool) where n >= 0, n != 1, value k, value h >= 0 {
          %zero = constant {value = 0} : py_int
          bind %m {symbol = k}
          %a = ge %m, %zero : py_bool
          check %a {order = 1, site = 0 ValueError "no"}
          bind %m {symbol = h}
          %d = dim {value = h} : py_int
          %e = lt %m, %d : py_bool
          %b = ge %m, %zero : py_bool
          return %a, %e, %b
        }""",
        """
        graph @f(%x: f64[n], %m: py_int) -> (py_bool, py_bool, py_bool) where n >= 0, n != 1, value k, value h >= 0 {
          %zero = constant {value = 0} : py_int
          bind %m {symbol = k}
          %a = ge %m, %zero : py_bool
          check %a {order = 1, site = 0 ValueError "no"}
          bind %m {symbol = h}
          %d = dim {value = h} : py_int
          %e = constant {value = false} : py_bool
          %b = constant {value = true} : py_bool
          %yes = constant {value = true} : py_bool
          return %yes, %e, %b
        }""",
        evaluate=False,
    )
