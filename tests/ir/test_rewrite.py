"""The rule driver: rest, names and places, dead operands, and what must be kept when a value is replaced."""

from __future__ import annotations

import pytest

import jitgraph.ops  # noqa: F401
from jitgraph.errors import InternalError
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.rewrite import RULE_SETS, RuleSet, apply_rules, constant_number
from jitgraph.ir.verifier import verify


@pytest.fixture
def rules() -> RuleSet:
    made = RuleSet("for this test")
    del RULE_SETS["for this test"]
    return made


def test_new_op_has_the_name_and_place_of_the_old_one(rules: RuleSet) -> None:
    @rules.rule("exp")
    def exp_is_two(op: Op, b: Builder) -> Value | None:
        """exp(x) = exp2(x * 1.4426950408889634), nearly"""
        return b.exp2(b.mul(op.operands[0], 1.4426950408889634))

    g = parse("""
        graph @f(%x: f64[n]) -> f64[n] {
          %y = neg %x : f64[n] @ f.py:1:2
          %growth = exp %y : f64[n] @ f.py:3:4
          return %growth
        }""")
    fired: list[str] = []
    assert apply_rules(g, rules, fired.append)
    assert fired == ["exp_is_two"]
    verify(g)
    assert "%growth = exp2 %1 : f64[n] @ f.py:3:4" in print_graph(g)
    assert not apply_rules(g, rules)


def test_operands_that_are_dead_now_go_too(rules: RuleSet) -> None:
    @rules.rule("sub")
    def sub_self(op: Op, b: Builder) -> Value | None:
        """x - x = 0 (of integers)"""
        if op.operands[0] is not op.operands[1]:
            return None
        return b.full(0, shape=op.result.type.shape, dtype=op.result.type.dtype)

    g = parse("""
        graph @f(%x: i64[n], %ok: py_bool) -> i64[n] {
          %a = neg %x : i64[n]
          %b = neg %a : i64[n]
          %c = sub %b, %b : i64[n]
          %d = neg %c : i64[n]
          return %d
        }""")
    apply_rules(g, rules)
    assert [op.name for op in g.body.ops()] == ["constant", "full", "neg", "return"]


def test_rules_that_never_rest_are_reported(rules: RuleSet) -> None:
    @rules.rule("add")
    def swapped(op: Op, b: Builder) -> Value | None:
        """x + y = y + x, for ever"""
        if len(b.graph.sites) > 100_000:
            return None
        return b.add(op.operands[1], op.operands[0])

    def stops(rules: RuleSet) -> None:
        g = parse("graph @f(%x: f64[n]) -> f64[n] {\n  %a = add %x, %x : f64[n]\n  return %a\n}")
        apply_rules(g, rules)

    with pytest.raises(InternalError, match="do not come to rest"):
        stops(rules)


def test_rule_that_gives_up_half_way_leaves_nothing_behind(rules: RuleSet) -> None:
    @rules.rule("exp")
    def undecided(op: Op, b: Builder) -> Value | None:
        """nothing"""
        b.neg(b.neg(op.operands[0]))
        return None

    g = parse("graph @f(%x: f64[n]) -> f64[n] {\n  %a = exp %x : f64[n]\n  return %a\n}")
    before = print_graph(g)
    assert not apply_rules(g, rules)
    assert print_graph(g) == before


def test_a_law_is_required_and_names_are_unique(rules: RuleSet) -> None:
    def lawless(op: Op, b: Builder) -> Value | None:
        return None

    with pytest.raises(InternalError, match="states no law"):
        rules.rule("exp")(lawless)
    lawless.__doc__ = "a law"
    rules.rule("exp")(lawless)
    with pytest.raises(InternalError, match="declared twice"):
        rules.rule("exp")(lawless)


def forward(op: Op, _b: Builder) -> Value | None:
    """exp(x) = x, for the sake of the test"""
    return op.operands[0]


def test_fresh_results_stay_apart_from_arguments_and_one_another(rules: RuleSet) -> None:
    rules.rule("exp")(forward)
    g = parse("""
        graph @f(%x: f64[n]) -> (f64[n], f64[n], f64[n]) {
          %a = exp %x : f64[n]
          %b = neg %x : f64[n]
          %c = exp %b : f64[n]
          return %a, %b, %c
        }""")
    apply_rules(g, rules)
    verify(g)
    x, (a, b, c) = g.args[0], g.body.terminator.operands
    assert len({x, a, b, c}) == 4


def test_sums_see_the_old_layout_and_elementwise_ops_do_not(rules: RuleSet) -> None:
    rules.rule("exp")(forward)
    g = parse("""
        graph @f(%x: f64[n, m]:strided(order=[0, 1], breaks=[0])) -> (f64[n], f64[n, m]) {
          %a = exp %x : f64[n, m]
          %s = reduce_sum %a {axes = [1], keepdims = false} : f64[n]
          %t = neg %a : f64[n, m]
          return %s, %t
        }""")
    apply_rules(g, rules)
    verify(g)
    summed = next(op for op in g.walk() if op.name == "reduce_sum").operands[0]
    negated = next(op for op in g.walk() if op.name == "neg").operands[0]
    assert summed.producer is not None
    assert summed.producer.name == "copy"
    assert summed.type.layout.is_c
    assert negated is g.args[0]


def test_layout_that_no_copy_can_have_is_kept(rules: RuleSet) -> None:
    rules.rule("view")(forward)
    text = """
        graph @f(%x: f64[n]) -> np.f64 {
          %v = view %x {map = (d0: n) -> (-d0 + n - 1)} : f64[n]:strided(order=[0], negative=[0])
          %s = reduce_sum %v {axes = [0], keepdims = false} : np.f64
          return %s
        }"""
    g = parse(text)
    assert not apply_rules(g, rules)


def test_constant_number_looks_through_fills_and_views() -> None:
    g = parse("""
        graph @f(%x: f64[n]) -> f64[n] {
          %c = constant {value = 2} : py_int
          %d = constant {value = 2.5} : py_float
          %a = full %d {dtype = i64, shape = [n + 1]} : i64[n + 1]
          %b = view %a {map = (d0: n) -> (d0 + 1)} : i64[n]
          %e = cast %c {dtype = f64} : py_float
          return %x
        }""")
    values = {op.result.name: constant_number(op.result) for op in g.walk() if op.results}
    assert values["c"] == 2
    assert values["b"] == 2
    assert values["b"].dtype == "int64"
    assert values["e"] is None
    assert constant_number(g.args[0]) is None
