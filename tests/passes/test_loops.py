"""Golden tests of loops: integers that change by the same in each turn, counters, branches that leave, known trips."""

from __future__ import annotations

from jitgraph.passes.control_flow import control_flow
from jitgraph.passes.counters import counters
from jitgraph.passes.fold import fold
from jitgraph.passes.induction import induction
from jitgraph.passes.invariant_motion import invariant_motion
from jitgraph.passes.unswitch import MAX_LOOP, unswitch
from tests.checks import SAME, check_pass

# ------------------------------------------------------------------------------------------------------- induction


def test_carried_integers_are_functions_of_the_index() -> None:
    check_pass(
        induction,
        """
        graph @f(%x: f64[n], %s: py_int) -> (py_int, np.i64) where n >= 0, n != 1, index i >= 2, i <= n - 1, value k {
          bind %s {symbol = k}
          %five = constant {value = i64(5)} : np.i64
          %two = constant {value = 2} : py_int
          %three = constant {value = i64(3)} : np.i64
          %a, %b = for %s, %five {index = i, lower = 2, step = 4, upper = n} : py_int, np.i64 (%c: py_int, %d: np.i64) {
            %cc = ne %c, %two : py_bool
            check %cc {order = 1, site = 0 ValueError "no"}
            %e = add %c, %two : py_int
            %g = sub %d, %three : np.i64
            yield %e, %g
          }
          return %a, %b
        }""",
        """
        graph @f(%x: f64[n], %s: py_int) -> (py_int, np.i64) where n >= 0, n != 1, index i >= 2, i <= n - 1, value k {
          bind %s {symbol = k}
          %five = constant {value = i64(5)} : np.i64
          %two = constant {value = 2} : py_int
          %three = constant {value = i64(3)} : np.i64
          %a, %b = for %s, %five {index = i, lower = 2, step = 4, upper = n} : py_int, np.i64 (%c: py_int, %d: np.i64) {
            %d0 = dim {value = -3*floordiv(i - 2, 4) + 5} : py_int
            %d1 = as_kind %d0 {kind = "np_scalar"} : np.i64
            %c0 = dim {value = 2*floordiv(i - 2, 4) + k} : py_int
            %cc = ne %c0, %two : py_bool
            check %cc {order = 1, site = 0 ValueError "no"}
            %e = add %c0, %two : py_int
            %g = sub %d1, %three : np.i64
            yield %c, %d
          }
          %r = dim {value = -3*max(floordiv(n + 1, 4), 0) + 5} : py_int
          %r1 = as_kind %r {kind = "np_scalar"} : np.i64
          %q = dim {value = 2*max(floordiv(n + 1, 4), 0) + k} : py_int
          return %q, %r1
        }""",
    )


def test_induction_goes_through_two_loops_and_stops_where_the_amount_varies() -> None:
    text = """
        graph @f(%x: f64[n, m]) -> py_int where n >= 0, n != 1, m >= 0, m != 1, index i >= 0, i <= n - 1, index j >= 0, j <= {upper} - 1 {{
          %zero = constant {{value = 0}} : py_int
          %one = constant {{value = 1}} : py_int
          %a = for %zero {{index = i, lower = 0, step = 1, upper = n}} : py_int (%b: py_int) {{
            %c = for %b {{index = j, lower = 0, step = 1, upper = {upper}}} : py_int (%d: py_int) {{
              %e = add %d, %one : py_int
              %p = ne %d, %one : py_bool
              check %p {{order = 1, site = 0 ValueError "no"}}
              yield %e
            }}
            yield %c
          }}
          return %a
        }}"""
    found = str(check_pass(induction, text.format(upper="m")))
    assert "dim {value = m*n}" in found
    assert "dim {value = i*m}" in found
    found = str(check_pass(induction, text.format(upper="i")))
    assert "dim {value = j}" in found  # the inner loop
    assert found.count("= dim") == 2  # not the outer one, whose amount is i


def test_what_only_some_turns_change_stays_carried() -> None:
    check_pass(
        induction,
        """
        graph @f(%x: f64[n], %p: py_bool) -> py_int where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %a = for %zero {index = i, lower = 0, step = 1, upper = n} : py_int (%b: py_int) {
            %c = cond %p : py_int () {
              %d = add %b, %one : py_int
              yield %d
            } () {
              yield %b
            }
            yield %c
          }
          return %a
        }""",
        SAME,
    )


# -------------------------------------------------------------------------------------------------------- counters


def test_overflow_of_what_only_counts_is_false() -> None:
    check_pass(
        counters,
        """
        graph @f(%x: f64[n], %p: py_bool, %s: py_int) -> (py_int, py_int) where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %a, %b, %d = for %zero, %one, %s {index = i, lower = 0, step = 1, upper = n} : py_int, py_int, py_int (%k: py_int, %l: py_int, %m: py_int) {
            %c = cond %p : py_int () {
              %o = add_overflows %k, %one : py_bool
              %h = logical_not %o : py_bool
              check %h {order = 1, site = 0 ValueError "no"}
              %e = add %k, %one : py_int
              yield %e
            } () {
              yield %k
            }
            %q = add_overflows %l, %l : py_bool
            %r = logical_not %q : py_bool
            check %r {order = 2, site = 0 ValueError "no"}
            %g = add %l, %l : py_int
            %t = add_overflows %m, %one : py_bool
            %u = logical_not %t : py_bool
            check %u {order = 3, site = 0 ValueError "no"}
            %v = add %m, %one : py_int
            yield %c, %g, %v
          }
          return %a, %b
        }""",
        """
        graph @f(%x: f64[n], %p: py_bool, %s: py_int) -> (py_int, py_int) where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %a, %b, %d = for %zero, %one, %s {index = i, lower = 0, step = 1, upper = n} : py_int, py_int, py_int (%k: py_int, %l: py_int, %m: py_int) {
            %c = cond %p : py_int () {
              %o = constant {value = false} : py_bool
              %h = logical_not %o : py_bool
              check %h {order = 1, site = 0 ValueError "no"}
              %e = add %k, %one : py_int
              yield %e
            } () {
              yield %k
            }
            %q = add_overflows %l, %l : py_bool
            %r = logical_not %q : py_bool
            check %r {order = 2, site = 0 ValueError "no"}
            %g = add %l, %l : py_int
            %t = add_overflows %m, %one : py_bool
            %u = logical_not %t : py_bool
            check %u {order = 3, site = 0 ValueError "no"}
            %v = add %m, %one : py_int
            yield %c, %g, %v
          }
          return %a, %b
        }""",
    )


# ------------------------------------------------------------------------------------------------------------ fold


def test_a_value_that_was_bound_is_its_symbol() -> None:
    """range(n, n + 1): its second bound is the first one and 1, so that it has one turn."""
    check_pass(
        fold,
        """
        graph @f(%x: f64[n], %m: py_int) -> (py_int, py_bool) where n >= 0, n != 1, value k, value l, value h >= 0 {
          %one = constant {value = 1} : py_int
          bind %m {symbol = k}
          %a = add %m, %one : py_int
          bind %a {symbol = l}
          %b = as_kind %m {kind = "np_scalar"} : np.i64
          bind %b {symbol = h}
          %c = dim {value = l - k + h} : py_int
          %d = dim {value = h} : py_int
          %e = lt %m, %d : py_bool
          return %c, %e
        }""",
        """
        graph @f(%x: f64[n], %m: py_int) -> (py_int, py_bool) where n >= 0, n != 1, value k, value h >= 0 {
          %one = constant {value = 1} : py_int
          bind %m {symbol = k}
          %a = dim {value = k + 1} : py_int
          %b = as_kind %m {kind = "np_scalar"} : np.i64
          bind %b {symbol = h}
          %c = dim {value = h + 1} : py_int
          %d = dim {value = h} : py_int
          %e = lt %m, %d : py_bool
          return %c, %e
        }""",
        evaluate=False,
    )


def test_ranges_of_one_turn_that_take_a_proof() -> None:
    check_pass(
        control_flow,
        """
        graph @f(%x: f64[]) -> np.f64 where value k, index i >= k, i <= k, index j >= k, j <= k + 2 {
          %zero = constant {value = 0} : py_int
          bind %zero {symbol = k}
          %s = as_kind %x {kind = "np_scalar"} : np.f64
          %a = for %s {index = i, lower = k, step = -3, upper = k - 2} : np.f64 (%b: np.f64) {
            %c = exp %b : np.f64
            yield %c
          }
          %d = for %a {index = j, lower = k, step = 3, upper = k + 3} : np.f64 (%e: np.f64) {
            %g = neg %e : np.f64
            yield %g
          }
          return %d
        }""",
        """
        graph @f(%x: f64[]) -> np.f64 where value k, index i >= k, i <= k, index j >= k, j <= k + 2 {
          %zero = constant {value = 0} : py_int
          bind %zero {symbol = k}
          %s = as_kind %x {kind = "np_scalar"} : np.f64
          %c = exp %s : np.f64
          %g = neg %c : np.f64
          return %g
        }""",
        evaluate=False,
    )


# -------------------------------------------------------------------------------------------------------- unswitch


def test_a_branch_on_what_does_not_change_leaves_its_loop() -> None:
    check_pass(
        unswitch,
        """
        graph @f(%x: f64[n], %p: py_bool) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %zero = constant {value = f64(0.0)} : np.f64
          %a = for %zero {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %v = view %x {map = () -> (i)} : f64[]
            %c = cond %p : np.f64 () {
              %d = add %b, %v : np.f64
              yield %d
            } () {
              %e = exp %b : np.f64
              yield %e
            }
            %g = cond %p : np.f64 () {
              yield %c
            } () {
              %h = neg %c : np.f64
              yield %h
            }
            yield %g
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n], %p: py_bool) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1, index i_1 >= 0, i_1 <= n - 1 {
          %zero = constant {value = f64(0.0)} : np.f64
          %r = cond %p : np.f64 () {
            %a = for %zero {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
              %v = view %x {map = () -> (i)} : f64[]
              %d = add %b, %v : np.f64
              yield %d
            }
            yield %a
          } () {
            %a1 = for %zero {index = i_1, lower = 0, step = 1, upper = n} : np.f64 (%b1: np.f64) {
              %v1 = view %x {map = () -> (i_1)} : f64[]
              %e = exp %b1 : np.f64
              %h = neg %e : np.f64
              yield %h
            }
            yield %a1
          }
          return %r
        }""",
    )


def test_branches_leave_two_loops_one_after_the_other() -> None:
    graph = check_pass(
        unswitch,
        """
        graph @f(%x: f64[n], %p: py_bool, %q: py_bool) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1, index j >= 0, j <= n - 1 {
          %zero = constant {value = f64(0.0)} : np.f64
          %a = for %zero {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %c = for %b {index = j, lower = 0, step = 1, upper = n} : np.f64 (%d: np.f64) {
              %e = cond %p : np.f64 () {
                %g = cond %q : np.f64 () {
                  %h = exp %d : np.f64
                  yield %h
                } () {
                  %k = neg %d : np.f64
                  yield %k
                }
                yield %g
              } () {
                %l = sin %d : np.f64
                yield %l
              }
              yield %e
            }
            yield %c
          }
          return %a
        }""",
    )
    assert [op.name for op in graph.body.ops()] == ["constant", "cond", "return"]
    loops = [op for op in graph.walk() if op.name == "for"]
    assert len(loops) == 6
    assert not any(inner.name == "cond" for op in loops for inner in op.walk())


def test_long_loops_and_loops_that_make_arrays_anew_keep_their_branches() -> None:
    ops = "\n".join(f"%e{k} = exp %e{k - 1} : np.f64" for k in range(1, MAX_LOOP))
    check_pass(
        unswitch,
        f"""
        graph @f(%x: f64[n], %p: py_bool) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1 {{
          %zero = constant {{value = f64(0.0)}} : np.f64
          %a = for %zero {{index = i, lower = 0, step = 1, upper = n}} : np.f64 (%e0: np.f64) {{
            {ops}
            %g = cond %p : np.f64 () {{
              yield %e0
            }} () {{
              yield %e{MAX_LOOP - 1}
            }}
            yield %g
          }}
          return %a
        }}""",
        SAME,
        evaluate=False,
    )
    check_pass(
        unswitch,
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %a = for %x {index = i, lower = 0, step = 1, upper = n} : f64[n] (%b: f64[n]) {
            %g = cond %p : f64[n] () {
              %c = exp %b : f64[n]
              yield %c
            } () {
              %d = neg %b : f64[n]
              yield %d
            }
            yield %g
          }
          return %a
        }""",
        SAME,
    )


# ------------------------------------------------------------------------------------------------ invariant motion


def test_whole_branches_and_loops_of_scalars_leave_their_loop() -> None:
    check_pass(
        invariant_motion,
        """
        graph @f(%x: f64[n], %p: py_bool, %s: f64[]) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1, index j >= 0, j <= 2 {
          %zero = constant {value = f64(0.0)} : np.f64
          %a = for %zero {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %c = for %zero {index = j, lower = 0, step = 1, upper = 3} : np.f64 (%d: np.f64) {
              %e = exp %d : np.f64
              yield %e
            }
            %g = cond %p : np.f64 () {
              %h = neg %c : np.f64
              yield %h
            } () {
              yield %c
            }
            %k = add %b, %g : np.f64
            yield %k
          }
          return %a
        }""",
        """
        graph @f(%x: f64[n], %p: py_bool, %s: f64[]) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1, index j >= 0, j <= 2 {
          %zero = constant {value = f64(0.0)} : np.f64
          %c = for %zero {index = j, lower = 0, step = 1, upper = 3} : np.f64 (%d: np.f64) {
            %e = exp %d : np.f64
            yield %e
          }
          %g = cond %p : np.f64 () {
            %h = neg %c : np.f64
            yield %h
          } () {
            yield %c
          }
          %a = for %zero {index = i, lower = 0, step = 1, upper = n} : np.f64 (%b: np.f64) {
            %k = add %b, %g : np.f64
            yield %k
          }
          return %a
        }""",
    )
