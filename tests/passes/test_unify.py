"""unify_sizes: equality guards make one symbol of two."""

from jitgraph.passes.unify import unify_sizes
from tests.checks import SAME, check_pass


def test_equal_sizes_become_one_symbol() -> None:
    check_pass(
        unify_sizes,
        """
        graph @f(%x: f64[n], %y: f64[m]) -> f64[n] where n >= 0, n != 1, m >= 0, m != 1 if n == m {
          %v = view %y {map = (d0: n) -> (d0)} : f64[n]
          %z = add %x, %v : f64[n]
          return %z {mutates = []}
        }""",
        expect="""
        graph @f(%x: f64[n], %y: f64[n]) -> f64[n] where n >= 0, n != 1, m = arg(1, 0), m >= 0, m != 1 if n == m {
          %v = view %y {map = (d0: n) -> (d0)} : f64[n]
          %z = add %x, %v : f64[n]
          return %z {mutates = []}
        }""",
    )


def test_a_size_that_is_another_plus_one() -> None:
    check_pass(
        unify_sizes,
        """
        graph @f(%x: f64[n], %y: f64[m]) -> f64[n] where n >= 0, n != 1, m >= 0, m != 1 if m - 1 == n {
          %v = view %y {map = (d0: m - 1) -> (d0)} : f64[m - 1]
          %w = view %v {map = (d0: n) -> (d0)} : f64[n]
          %z = add %x, %w : f64[n]
          return %z {mutates = []}
        }""",
        expect="""
        graph @f(%x: f64[n], %y: f64[n + 1]) -> f64[n] where n >= 0, n != 1, m = arg(1, 0), m >= 0, m != 1 if m - 1 == n {
          %v = view %y {map = (d0: n) -> (d0)} : f64[n]
          %w = view %v {map = (d0: n) -> (d0)} : f64[n]
          %z = add %x, %w : f64[n]
          return %z {mutates = []}
        }""",
    )


def test_inequalities_unify_nothing() -> None:
    check_pass(
        unify_sizes,
        """
        graph @f(%x: f64[n], %y: f64[m]) -> f64[n] where n >= 0, n != 1, m >= 0, m != 1 if m >= n {
          %z = neg %x : f64[n]
          return %z {mutates = []}
        }""",
        expect=SAME,
    )


def test_a_view_that_is_the_whole_array_lies_as_it() -> None:
    check_pass(
        unify_sizes,
        """
        graph @f(%x: f64[n, k], %y: f64[m, k]:F) -> np.f64 where n >= 0, n != 1, m >= 0, m != 1, k >= 0, k != 1 if n == m {
          %v = view %y {map = (d0: n, d1: k) -> (d0, d1)} : f64[n, k]:strided(order=[1, 0], breaks=[0])
          %z = reduce_sum %v {axes = [0, 1], keepdims = false} : np.f64
          return %z {mutates = []}
        }""",
        expect="""
        graph @f(%x: f64[n, k], %y: f64[n, k]:F) -> np.f64 where n >= 0, n != 1, m = arg(1, 0), m >= 0, m != 1, k >= 0, k != 1 if n == m {
          %v = view %y {map = (d0: n, d1: k) -> (d0, d1)} : f64[n, k]:F
          %z = reduce_sum %v {axes = [0, 1], keepdims = false} : np.f64
          return %z {mutates = []}
        }""",
    )
