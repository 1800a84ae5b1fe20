"""The interpreter: regions, writes through views, checks, layouts and kinds as NumPy has them."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401
from jitgraph.errors import InternalError
from jitgraph.ir.interpret import Deoptimise, apply_map, copy_alike, in_layout, interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.types import AxisMap, IndexMap, Layout, dense_layout


def test_loop_writes_through_views_and_leaves_arguments_alone() -> None:
    g = parse(
        """
        graph @cumulate(%x: f64[n]) -> argument 0 where n >= 0, n != 1, index i >= 1 {
          %r = for %x {index = i, lower = 1, step = 1, upper = n} : f64[n] (%v: f64[n]) {
            %a = view %v {map = () -> (i - 1)} : f64[]
            %b = view %v {map = () -> (i)} : f64[]
            %s = add %a, %b : np.f64
            %w = write %s, %v {map = () -> (i)} : f64[n]
            yield %w
          }
          return %r {mutates = [0]}
        }""".replace("-> argument 0", "-> (argument 0)")
    )
    x = np.arange(5.0)
    results, mutated = interpret(g, [x])
    assert results == []
    np.testing.assert_array_equal(mutated[0], np.cumsum(np.arange(5.0)))
    np.testing.assert_array_equal(x, np.arange(5.0))


def test_while_cond_and_python_numbers() -> None:
    g = parse("""
        graph @newton(%a: py_float) -> py_float {
          %half = constant {value = 0.5} : py_float
          %small = constant {value = 1e-12} : py_float
          %zero = constant {value = 0.0} : py_float
          %negative = lt %a, %zero : py_bool
          %start = cond %negative : py_float () {
            yield %half
          } () {
            yield %a
          }
          %r = while %start : py_float (%x: py_float) {
            %q = square %x : py_float
            %d = sub %q, %a : py_float
            %e = abs %d : py_float
            %go = gt %e, %small : py_bool
            yield %go
          } (%y: py_float) {
            %t = div %a, %y : py_float
            %s = add %t, %y : py_float
            %n = mul %s, %half : py_float
            yield %n
          }
          return %r
        }""")
    (root,), _ = interpret(g, [2.0])
    assert type(root) is float
    assert root == pytest.approx(2**0.5)


def test_checks_raise_what_their_site_says() -> None:
    g = parse("""
        graph @f(%k: i64[n], %ok: py_bool) -> () {
          %zero = constant {value = 0} : py_int
          %c = ge %k, %zero : bool[n]
          check %c, %k {order = 1, site = 0 IndexError "index {0} is negative"}
          check %ok {order = 2, site = 1 deoptimise "overflow"}
          raise %zero {order = 3, site = 2 ShapeError "end {0}"}
          return
        }""")
    with pytest.raises(IndexError, match="index -2 is negative"):
        interpret(g, [np.array([3, -2, -5]), True])
    with pytest.raises(Deoptimise, match="overflow"):
        interpret(g, [np.array([3, 2]), False])
    with pytest.raises(ValueError, match="end 0") as e:
        interpret(g, [np.array([3, 2]), True])
    assert type(e.value).__name__ == "ShapeError"


def test_sizes_from_data_and_from_bound_integers() -> None:
    g = parse("""
        graph @f(%x: f64[n], %k: py_int) -> (f64[c], f64[m], py_int) where n >= 0, n != 1, value c >= 0, value m >= 0 {
          %zero = constant {value = 0.0} : py_float
          %mask = gt %x, %zero : bool[n]
          %bits = cast %mask {dtype = i64} : i64[n]
          %count = reduce_sum %bits {axes = [0]} : np.i64
          bind %count {symbol = c}
          %y = compress %x, %mask {size = c} : f64[c]
          %z = mul %y, %y : f64[c]
          bind %k {symbol = m}
          %w = full %zero {dtype = f64, shape = [m]} : f64[m]
          %d = dim {value = 2*c + m} : py_int
          return %z, %w, %d
        }""")
    (z, w, d), _ = interpret(g, [np.array([-1.0, 2.0, 3.0]), 4])
    np.testing.assert_array_equal(z, [4.0, 9.0])
    assert w.shape == (4,)
    assert d == 8


def test_host_calls_reach_the_function_of_their_site() -> None:
    g = parse("""
        graph @f(%x: f64[n]) -> f64[n] {
          %y = host_call %x {order = 1, site = 0 host "numpy.sort"} : f64[n]
          return %y
        }""")
    (y,), _ = interpret(g, [np.array([3.0, 1.0])], {0: np.sort})
    np.testing.assert_array_equal(y, [1.0, 3.0])
    with pytest.raises(InternalError, match="no Python function"):
        interpret(g, [np.array([3.0, 1.0])])


def test_arguments_that_do_not_fit_are_refused() -> None:
    g = parse("graph @f(%x: f64[n], %y: f64[m]) -> () where n >= 0, m >= 0 if m == n {\n  return\n}")
    with pytest.raises(InternalError, match="the guard m == n does not hold: 3 and 2"):
        interpret(g, [np.zeros(2), np.zeros(3)])
    with pytest.raises(InternalError, match="argument x"):
        interpret(g, [np.zeros((2, 2)), np.zeros(3)])
    with pytest.raises(InternalError, match="takes 2 arguments, 1 given"):
        interpret(g, [np.zeros(2)])


def test_results_lie_in_memory_as_their_types_say() -> None:
    g = parse("""
        graph @f(%x: f64[n, m]) -> (f64[n, m]:F, f64[n, m]) {
          %a = copy %x {order = "F"} : f64[n, m]:F
          %b = neg %a : f64[n, m]:F
          %c = copy %b {order = "C"} : f64[n, m]
          return %b, %c
        }""")
    (b, c), _ = interpret(g, [np.arange(6.0).reshape(2, 3)])
    assert b.flags.f_contiguous
    assert c.flags.c_contiguous


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_in_layout(order: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    y = in_layout(x, dense_layout(order))
    np.testing.assert_array_equal(x, y)
    assert y.transpose(order).flags.c_contiguous
    assert in_layout(x, Layout((0, 1, 2), breaks=(1,))) is x


def test_apply_map_is_numpys_view() -> None:
    x = np.arange(30).reshape(5, 6)
    m = IndexMap((4, 2, 3), (AxisMap(4, -1, 0), AxisMap(1, 2, 2)))
    expected = np.broadcast_to(x[4:0:-1, None, 1:6:2], (4, 2, 3))
    np.testing.assert_array_equal(apply_map(x, m), expected)
    diagonal = IndexMap((5,), (AxisMap(0, 1, 0), AxisMap(1, 1, 0)))
    view = apply_map(x, diagonal)
    np.testing.assert_array_equal(view, np.diagonal(x, 1))
    view[0] = 100
    assert x[0, 1] == 100
    assert apply_map(x, IndexMap((0, 6), (AxisMap(9, 1, 0), AxisMap(0, 1, 1)))).shape == (0, 6)
    with pytest.raises(InternalError, match="leaves its base"):
        apply_map(x, IndexMap((5,), (AxisMap(1, 1, 0), AxisMap(0))))


@pytest.mark.parametrize(
    "m",
    [
        IndexMap.permute((3, 4, 5), (2, 0, 1)),
        IndexMap((4, 5, 3), (AxisMap(2, -1, 2), AxisMap(0, 1, 0), AxisMap(4, -1, 1))),
        IndexMap.identity((3, 4, 5)),
    ],
)
def test_the_inverse_of_a_view_of_all_elements(m: IndexMap) -> None:
    x = np.arange(60).reshape(3, 4, 5)
    inverse = m.inverse(x.shape)
    assert inverse is not None
    np.testing.assert_array_equal(apply_map(apply_map(x, m), inverse), x)
    assert m.then(inverse).is_identity(x.shape)


def test_views_of_some_elements_have_no_inverse() -> None:
    assert IndexMap((2, 4), (AxisMap(1, 1, 0), AxisMap(0, 1, 1))).inverse((3, 4)) is None
    assert IndexMap((3, 4, 1), (AxisMap(0, 1, 0), AxisMap(0, 1, 1))).inverse((3, 4)) is None
    assert IndexMap((3,), (AxisMap(0, 1, 0), AxisMap(0, 1, 0))).inverse((3, 3)) is None


def test_copy_alike_keeps_strides() -> None:
    x = np.arange(40.0).reshape(8, 5)[::-2, 1:4].T
    y = copy_alike(x)
    np.testing.assert_array_equal(x, y)
    assert y.strides == x.strides
    y[0, 0] = -1
    assert x[0, 0] != -1
