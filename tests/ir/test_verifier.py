"""The verifier: one small bad graph for each invariant, and the text of its error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jitgraph.ops  # noqa: F401
from jitgraph.errors import VerifyError
from jitgraph.ir.graph import Graph, Op, Result
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.parser import parse
from jitgraph.ir.types import TensorType
from jitgraph.ir.verifier import verify

GOOD = """
graph @f(%x: f64[n], %y: f64[n + 1], %p: py_bool, %k: py_int) -> f64[n] where n >= 2, n != 1, index i >= 0, value s >= 0 {
  bind %k {symbol = s}
  %a = exp %x : f64[n] @ f.py:2:5
  %b = mul %a, %x : f64[n] @ f.py:3:5
  check %p {order = 1, site = 0 ValueError "no"}
  check %p {order = 2, site = 0 ValueError "no"}
  %v = view %y {map = (d0: n) -> (d0 + 1)} : f64[n]
  %w = write %v, %y {map = (d0: n) -> (d0)} : f64[n + 1]
  %r = cond %p : f64[n] () {
    yield %a
  } () {
    yield %b
  }
  %l = for %r {index = i, lower = 0, step = 1, upper = n} : f64[n] (%c: f64[n]) {
    %d = neg %c : f64[n]
    yield %d
  }
  %z = constant {value = 0.5} : py_float
  %q = while %l : f64[n] (%e: f64[n]) {
    yield %p
  } (%g: f64[n]) {
    yield %g
  }
  %h = kernel %q, %z {rows = 0} : f64[n] (%m: f64[n], %u: py_float) {
    %o = mul %m, %u : f64[n]
    yield %o
  }
  return %h, %w {mutates = [1]}
}
"""


def find(g: Graph, name: str, number: int = 0) -> Op:
    return [op for op in g.walk() if op.name == name][number]


def test_good_graph_passes() -> None:
    verify(parse(GOOD))


def use_before_definition(g: Graph) -> None:
    exp, mul = find(g, "exp"), find(g, "mul")
    g.body.unlink(exp)
    g.body.insert_after(mul, exp)


def value_of_another_branch(g: Graph) -> None:
    cond = find(g, "cond")
    inner = Op(REGISTRY["neg"], [g.args[0]], [g.args[0].type])
    cond.regions[0].insert_after(None, inner)
    cond.regions[1].terminator.set_operand(0, inner.result)


def missing_use(g: Graph) -> None:
    mul = find(g, "mul")
    del mul.operands[0].uses[(mul, 0)]


def stale_use(g: Graph) -> None:
    g.args[2].uses[(find(g, "neg"), 0)] = None


def no_terminator(g: Graph) -> None:
    g.erase(g.body.terminator)


def terminator_in_the_middle(g: Graph) -> None:
    g.body.insert_after(None, Op(REGISTRY["return"], (), (), {}))


def yield_at_the_end_of_the_body(g: Graph) -> None:
    g.erase(g.body.terminator)
    g.body.append(Op(REGISTRY["yield"], (), ()))


def order_that_falls(g: Graph) -> None:
    find(g, "check", 1).attrs["order"] = 1


def symbol_that_is_not_bound(g: Graph) -> None:
    from jitgraph.ir.dims import symbol

    bind, exp = find(g, "bind"), find(g, "exp")
    g.body.unlink(bind)
    g.body.insert_before(g.body.terminator, bind)
    g.body.insert_before(exp, Op(REGISTRY["dim"], (), [g.args[3].type], {"value": symbol("s")}))


def index_outside_its_loop(g: Graph) -> None:
    from jitgraph.ir.dims import symbol

    g.body.insert_before(g.body.terminator, Op(REGISTRY["dim"], (), [g.args[3].type], {"value": symbol("i")}))


def symbol_that_is_not_declared(g: Graph) -> None:
    del g.symbols["s"]


def wrong_result_type(g: Graph) -> None:
    find(g, "exp").result.type = TensorType(g.args[0].type.dtype, (3,))


def operand_not_cast(g: Graph) -> None:
    exp = find(g, "exp")
    find(g, "mul").set_operand(1, g.args[3])
    assert exp is not None


def refused_operands(g: Graph) -> None:
    find(g, "mul").set_operand(0, g.args[1])


def loop_that_yields_another_type(g: Graph) -> None:
    find(g, "for").regions[0].terminator.set_operand(0, g.args[2])


def branch_without_result(g: Graph) -> None:
    find(g, "cond").regions[1].terminator.set_operands(())


def condition_that_is_no_bool(g: Graph) -> None:
    find(g, "while").regions[0].terminator.set_operand(0, g.args[3])


def kernel_that_sees_outside(g: Graph) -> None:
    kernel = find(g, "kernel")
    kernel.regions[0].first.set_operand(0, kernel.operands[0])


def kernel_with_a_check(g: Graph) -> None:
    kernel = find(g, "kernel")
    flag = kernel.regions[0].add_arg(g.args[2].type)
    kernel.set_operands([*kernel.operands, g.args[2]])
    check = Op(REGISTRY["check"], [flag], (), {"site": 0, "order": 3})
    kernel.regions[0].insert_after(None, check)


def view_outside_of_its_base(g: Graph) -> None:
    from jitgraph.ir.types import AxisMap, IndexMap

    m = find(g, "view").attrs["map"]
    find(g, "view").attrs["map"] = IndexMap(m.shape, (AxisMap(2, 1, 0),))


def map_of_another_rank(g: Graph) -> None:
    from jitgraph.ir.types import IndexMap

    find(g, "write").attrs["map"] = IndexMap(find(g, "write").attrs["map"].shape, ())


def region_with_another_parent(g: Graph) -> None:
    find(g, "for").regions[0].parent = find(g, "cond")


def site_that_is_not_there(g: Graph) -> None:
    find(g, "check").attrs["site"] = 5


def mutates_an_argument_that_is_not_there(g: Graph) -> None:
    g.body.terminator.attrs["mutates"] = (9,)


def result_that_is_not_there(g: Graph) -> None:
    g.results.append(Result("fresh", 1))


def version_of_another_type(g: Graph) -> None:
    g.body.terminator.attrs["mutates"] = (0,)


BAD: list[tuple[int, Callable[[Graph], None], str, str]] = [
    (1, use_before_definition, "operand 0 of mul, %a, is not defined before it", "%b = mul"),
    (1, value_of_another_branch, "is not defined before it", "yield"),
    (2, missing_use, "the use of %a as operand 0 is missing in its use list", "%b = mul"),
    (2, stale_use, "the use list of %p has 5 uses, there are 4", "graph @f"),
    (3, no_terminator, "the block does not end in a terminator", "%h = kernel"),
    (3, terminator_in_the_middle, "return is not the last op of its block", "return"),
    (3, yield_at_the_end_of_the_body, "the block ends in yield, not return", "yield"),
    (4, order_that_falls, "order 1 does not follow 1", "check %p {order = 1"),
    (5, symbol_that_is_not_bound, "the symbol s is not bound here", "dim {value = s}"),
    (5, index_outside_its_loop, "the symbol i is not bound here", "dim {value = i}"),
    (5, symbol_that_is_not_declared, "the symbol s is not declared", "bind"),
    (6, wrong_result_type, "exp: result 0 is f64[3], its type rule says f64[n]", "%a = exp"),
    (6, operand_not_cast, "mul: operand 1 is not cast to float64", "%b = mul"),
    (6, refused_operands, "operands could not be broadcast together with shapes (n + 1,) (n,)", "%b = mul"),
    (7, loop_that_yields_another_type, "for: yields 0 is py_bool, not f64[n]", "%l = for"),
    (7, branch_without_result, "cond: 0 yields, 1 expected", "%r = cond"),
    (7, condition_that_is_no_bool, "the test of a while yields one bool", "%q = while"),
    (8, kernel_that_sees_outside, "the kernel uses a value from outside", "%h = kernel"),
    (8, kernel_with_a_check, "check may not stand in a kernel", "check"),
    (9, view_outside_of_its_base, "the map leaves its base", "%v = view"),
    (9, map_of_another_rank, "the map has not one entry for each axis of f64[n + 1]", "%w = write"),
    (10, region_with_another_parent, "the region does not link to its op", "%l = for"),
    (11, site_that_is_not_there, "there is no site 5", "check"),
    (12, mutates_an_argument_that_is_not_there, "return mutates [9] with 2 operands", "return"),
    (12, result_that_is_not_there, "the result fresh 1 is not there", "return"),
    (12, version_of_another_type, "the last version of argument 0 is f64[n + 1]", "return"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda c: c[1].__name__)
def test_each_invariant_has_a_graph_that_breaks_it(case: tuple[int, Callable[[Graph], None], str, str]) -> None:
    number, spoil, message, line = case
    g = parse(GOOD)
    spoil(g)
    with pytest.raises(VerifyError) as e:
        verify(g)
    text = str(e.value)
    assert text.startswith(f"invariant {number}: ")
    assert message in text.partition("\n")[0]
    lines = text.split("\n")
    at = next(i for i, shown in enumerate(lines) if shown and set(shown.strip()) == {"^"})
    assert line in lines[at - 1]
    assert len(lines[at]) == len(lines[at - 1])


def test_all_invariants_have_a_case() -> None:
    assert {number for number, *_ in BAD} == set(range(1, 13))


def test_sizes_that_a_guard_makes_equal_are_equal() -> None:
    text = """
    graph @f(%x: f64[n], %y: f64[m]) -> () where n >= 0, n != 1, m >= 0, m != 1 if m == n {
      %w = write %x, %y {map = (d0: m) -> (d0)} : f64[m]
      return %w {mutates = [1]}
    }"""
    verify(parse(text))
    with pytest.raises(VerifyError, match="does not fit the map"):
        verify(parse(text.replace(" if m == n", "")))


ELEMENT = """graph @f(%x: f64[n]) -> f64[] where n >= 0, n != 1 if n < {bound} {{
  %v = view %x {{map = () -> ({at})}} : f64[]
  %r = copy %v {{order = "C"}} : f64[]
  return %r {{mutates = []}}
}}"""


def test_elements_of_arrays_that_are_empty_are_never_accessed():
    """Such an op stands behind a check that fails; in an array with elements the same one is a fault."""
    verify(parse(ELEMENT.format(bound=1, at=0)))
    with pytest.raises(VerifyError, match="the map leaves its base"):
        verify(parse(ELEMENT.format(bound=4, at=3)))


CHECKED = """graph @f(%x: f64[n], %p: py_bool) -> f64[] where n >= 0, n != 1, index i >= 0, i <= 11 if n < 3 {{
  for {{index = i, lower = 0, step = 1, upper = 12}} () {{
    {check}
    yield
  }}
  %v = view %x {{map = () -> (11)}} : f64[]
  %r = copy %v {{order = "C"}} : f64[]
  return %r {{mutates = []}}
}}"""


def test_elements_behind_a_check_may_turn_out_to_be_outside() -> None:
    verify(parse(CHECKED.format(check='check %p {order = 1, site = 0 IndexError "no"}')))
    with pytest.raises(VerifyError, match="the map leaves its base"):
        verify(parse(CHECKED.format(check="")))


AXES = """graph @f(%x: f64[n, 1, m]:strided(order=[2, 0, 1]), %y: f64[n, 1, m]:{layout}, %c: py_bool) -> f64[n, 1, m]:F {{
  %r = cond %c : f64[n, 1, m]:F () {{
    %u = copy %x {{order = "K"}} : f64[n, 1, m]:strided(order=[2, 0, 1])
    yield %u
  }} () {{
    %w = copy %y {{order = "K"}} : f64[n, 1, m]:{layout}
    yield %w
  }}
  return %r {{mutates = []}}
}}"""


def test_axes_of_size_one_stand_anywhere():
    verify(parse(AXES.format(layout="strided(order=[1, 2, 0])")))
    with pytest.raises(VerifyError, match="invariant 7"):
        verify(parse(AXES.format(layout="strided(order=[1, 0, 2])")))
