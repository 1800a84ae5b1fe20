"""Golden tests of what masks and gathers become: rules of `masks`, `absorb`, `check_arrays`."""

from __future__ import annotations

import pytest

from jitgraph.ir.parser import parse
from jitgraph.ir.rewrite import apply_rules
from jitgraph.passes.absorb import absorb
from jitgraph.passes.checks import check_arrays
from jitgraph.passes.masks import RULES, masks
from tests.checks import SAME, check_pass

_HEAD = """graph @f(%x: f64[n], %y: f64[n], %m: bool[n], %s: np.f64) -> RESULT where n >= 2, n != 1, value c >= 0 {
  %bits = cast %m {dtype = i64} : i64[n]
  %count = reduce_sum %bits {axes = [0]} : np.i64
  bind %count {symbol = c}
"""


def text(result: str, body: str) -> str:
    return _HEAD.replace("RESULT", result) + body + "\n  return %r\n}"


#: Rule: (type of the result, body, body afterwards); the result is a write to a copy where a storage is updated.
CASES = {
    "expand_of_selected": (
        "f64[n]",
        """
          %b = copy %x {order = "C"} : f64[n]
          %a = compress %x, %m {size = c} : f64[c]
          %d = compress %y, %m {size = c} : f64[c]
          %e = exp %d : f64[c]
          %v = mul %a, %e : f64[c]
          %r = expand %b, %m, %v : f64[n]""",
        """
          %b = copy %x {order = "C"} : f64[n]
          %e = exp %y : f64[n]
          %v = mul %x, %e : f64[n]
          %w = where %m, %v, %b : f64[n]
          %r = write %w, %b {map = (d0: n) -> (d0)} : f64[n]""",
    ),
    "expand_of_number": (
        "f64[n]",
        """
          %b = copy %x {order = "C"} : f64[n]
          %r = expand %b, %m, %s : f64[n]""",
        """
          %b = copy %x {order = "C"} : f64[n]
          %w = where %m, %s, %b : f64[n]
          %r = write %w, %b {map = (d0: n) -> (d0)} : f64[n]""",
    ),
    "reduction_of_selected": (
        "np.f64",
        """
          %a = compress %x, %m {size = c} : f64[c]
          %e = exp %a : f64[c]
          %r = reduce_max %e {axes = [0], keepdims = false} : np.f64""",
        """
          %e = exp %x : f64[n]
          %least = constant {value = f64(-inf)} : np.f64
          %w = where %m, %e, %least : f64[n]
          %r = reduce_max %w {axes = [0], keepdims = false} : np.f64""",
    ),
    "sum_of_selected": (
        "np.f64",
        """
          %a = compress %x, %m {size = c} : f64[c]
          %e = exp %a : f64[c]
          %r = reduce_sum %e {axes = [0], keepdims = false} : np.f64""",
        """
          %e = exp %x : f64[n]
          %r = packed_sum %e, %m {size = c} : np.f64""",
    ),
    "selected_after_computing": (
        "f64[c]",
        """
          %a = compress %x, %m {size = c} : f64[c]
          %d = compress %y, %m {size = c} : f64[c]
          %r = mul %a, %d : f64[c]""",
        """
          %v = mul %x, %y : f64[n]
          %r = compress %v, %m {size = c} : f64[c]""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rule_fires_and_holds(name: str) -> None:
    result, body, after = CASES[name]
    fired: list[str] = []
    apply_rules(parse(text(result, body)), RULES, fired.append)
    assert name in fired
    check_pass(masks, text(result, body), text(result, after))


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(RULES.rules)


@pytest.mark.parametrize(
    "body",
    [
        # the values are those under another mask
        """%k = logical_not %m : bool[n]
          %t = compress %y, %k {size = c} : f64[c]
          %b = copy %x {order = "C"} : f64[n]
          %r = expand %b, %m, %t : f64[n]""",
        # values from elsewhere
        """%o = full %s {dtype = f64, shape = [c]} : f64[c]
          %b = copy %x {order = "C"} : f64[n]
          %r = expand %b, %m, %o : f64[n]""",
        # a product rounds in the order of its elements
        """%a = compress %x, %m {size = c} : f64[c]
          %p = reduce_prod %a {axes = [0], keepdims = false} : np.f64
          %r = full %p {dtype = f64, shape = [n]} : f64[n]""",
        # an array of them is needed anyway
        """%a = compress %x, %m {size = c} : f64[c]
          %p = reduce_sum %a {axes = [0], keepdims = false} : np.f64
          %t = cumsum %a {axis = 0} : f64[c]
          %u = reduce_max %t {axes = [0], keepdims = false} : np.f64
          %v = add %p, %u : np.f64
          %r = full %v {dtype = f64, shape = [n]} : f64[n]""",
        # a dear function of few elements
        """%a = compress %x, %m {size = c} : f64[c]
          %e = exp %a : f64[c]
          %b = copy %x {order = "C"} : f64[n]
          %p = cumsum %e {axis = 0} : f64[c]
          %r = expand %b, %m, %p : f64[n]""",
    ],
)
def test_what_is_selected_otherwise_stays(body: str) -> None:
    check_pass(masks, text("f64[n]", body), SAME, evaluate=False)


def test_masks_are_computed_where_they_are_read() -> None:
    check_pass(
        absorb,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[c] where n >= 2, n != 1, value c >= 0 {
          %zero = constant {value = 0.0} : py_float
          %m = gt %x, %zero : bool[n]
          %bits = cast %m {dtype = i64} : i64[n]
          %count = reduce_sum %bits {axes = [0]} : np.i64
          bind %count {symbol = c}
          %e = exp %y : f64[n]
          %r = compress %e, %m {size = c} : f64[c]
          return %r
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[c] where n >= 2, n != 1, value c >= 0 {
          %zero = constant {value = 0.0} : py_float
          %m = gt %x, %zero : bool[n]
          %bits = cast %m {dtype = i64} : i64[n]
          %count = reduce_sum %bits {axes = [0]} : np.i64
          bind %count {symbol = c}
          %r = kernel %y, %x {rows = 0} : f64[c] (%v: f64[n], %u: f64[n]) {
            %e = exp %v : f64[n]
            %z = constant {value = 0.0} : py_float
            %k = gt %u, %z : bool[n]
            %t = compress %e, %k {size = c} : f64[c]
            yield %t
          }
          return %r
        }""",
    )


def test_dear_operands_that_others_need_are_not_computed_twice() -> None:
    check_pass(
        absorb,
        """
        graph @f(%x: f64[n]) -> (f64[n], i64[]) where n >= 2, n != 1 {
          %e = exp %x : f64[n]
          %r = argmax %e {axis = 0} : np.i64
          return %e, %r
        }""".replace("i64[]", "np.i64"),
        SAME,
    )


def test_checks_of_arrays_are_found_along_with_other_work() -> None:
    check_pass(
        check_arrays,
        """
        graph @f(%x: f64[n], %i: i64[m]) -> f64[m] where n >= 2, n != 1, m >= 2, m != 1 {
          %d = dim {value = n} : py_int
          %ok = lt %i, %d : bool[m]
          check %ok, %i, %d {order = 1, site = 0 IndexError "index {0} is out of bounds for axis 0 with size {1}"}
          %r = take %x, %i {axis = 0} : f64[m]
          return %r
        }""",
        """
        graph @f(%x: f64[n], %i: i64[m]) -> f64[m] where n >= 2, n != 1, m >= 2, m != 1 {
          %d = dim {value = n} : py_int
          %ok = lt %i, %d : bool[m]
          %all = reduce_all %ok {axes = [0], keepdims = false} : np.bool
          %copy = lt %i, %d : bool[m]
          check %copy, %i, %d, %all {guarded = true, order = 1, site = 0 IndexError "index {0} is out of bounds for axis 0 with size {1}"}
          %r = take %x, %i {axis = 0} : f64[m]
          return %r
        }""",
        evaluate=False,
    )
