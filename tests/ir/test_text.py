"""Printer and parser: the same text both ways, and all that a graph holds in it."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Graph, Guard, Op, Result, Site, Symbol
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.parser import ParseError, parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.types import AxisMap, IndexMap, TensorType
from jitgraph.source import SourceLoc
from tests.checks import calls_of

EVERYTHING = r"""
graph @f(%x: f64[n, m], %y: f64[n, m]:F, %k: py_int, hidden "mod.g" %g: py_float) -> (fresh 0, argument 0, view_of_argument 1 via [(d0: n - 2) -> (d0 + 1, 0), [n, m]] tensor, dim n + 1, static "a\n") where n >= 0, n != 1, m >= 2, m != 1, index i >= 0, i <= n - 3, value v >= 0 if m >= 2, n < 2*m + 100 @ a.py:1:2 fast_math [nsz, reassoc] {
  %c = constant {value = f32(0.1)} : np.f32 @ a.py:3:4
  %d = constant {value = array f64[5] [nan, -inf, inf, -0.0, 1e-300]} : f64[5]
  %e = constant {value = array f64[0, 3] []} : f64[0, 3]
  %z = constant {value = array i64[] 7} : i64[]
  %b = constant {value = array bool[2, 1] [[true], [false]]} : bool[2, 1]
  %u = constant {value = 18446744073709551615} : py_int:u64
  %ok = constant {value = true} : py_bool
  check %ok, %c {order = 1, site = 0 IndexError "index {0} \"q\" ü"} @ <ipython in>:5:6
  check %ok {order = 2, site = 1 ValueError "else" @ b.py:7:8} @ a.py:5:6
  bind %k {symbol = v}
  %0 = view %x {map = (d0: n - 2, d1: m) -> (-d0 + n - 1, d1)} : f64[n - 2, m]:strided(order=[0, 1], negative=[0])
  %1 = view %x {map = (d0: floordiv(n, 2), d1: v) -> (2*d0, (ne1(m))*d1)} : f64[floordiv(n, 2), v]:strided(order=[0, 1], breaks=[0, 1])
  %a = for %x {index = i, lower = 0, step = 1, upper = max(n - 3, 0)} : f64[n, m] @ a.py:9:1 (%a.2: f64[n, m]) {
    %v = view %a.2 {map = (d0: m) -> (i + 1, d0)} : f64[m]
    %a.3 = write %v, %a.2 {map = (d0: m) -> (i, d0)} : f64[n, m]
    yield %a.3
  }
  %r = cond %ok : f64[n, m] () {
    yield %a
  } else {
    %s = add %x, %y : f64[n, m]
    yield %s
  }
  return %r, %a {mutates = [0]}
}
site 2 ValueError "unused"
""".lstrip()


def test_text_comes_back_with_and_without_places() -> None:
    g = parse(EVERYTHING)
    text = print_graph(g)
    assert text == EVERYTHING
    bare = print_graph(g, loc=False)
    assert "a.py" not in bare
    assert print_graph(parse(bare), loc=False) == bare
    assert str(g) == text


def test_regions_are_named_where_there_are_several() -> None:
    text = """
graph @f(%k: py_int, %m: py_int) -> py_int {
  %r = switch %k {cases = [-1, 3]} : py_int () {
    yield %k
  } case 3 {
    yield %m
  } else {
    %s = while %k : py_int (%a: py_int) {
      %c = lt %a, %m : py_bool
      yield %c
    } do (%b: py_int) {
      %d = add %b, %b : py_int
      yield %d
    }
    yield %s
  }
  return %r
}
""".lstrip()
    assert print_graph(parse(text)) == text
    unnamed = text.replace("case 3", "()").replace("else", "()").replace("do (", "(")
    assert print_graph(parse(unnamed)) == text


def test_parser_builds_what_the_text_says() -> None:
    g = parse(EVERYTHING)
    n, m = symbol("n"), symbol("m")
    assert g.hidden == ["mod.g"]
    assert g.fast_math == {"nsz", "reassoc"}
    assert g.symbols["n"] == Symbol("n", "arg", 0, 0, 0, None, True)
    assert g.symbols["i"] == Symbol("i", "index", lower=0, upper=n - 3)
    assert g.symbols["v"].origin == "value"
    assert g.guards == [Guard(">=", m, 2), Guard("<", n, 2 * m + 100)]
    assert g.results[0] == Result("fresh", 0)
    assert g.results[2] == Result(
        "view_of_argument", 1, (IndexMap((n - 2,), (AxisMap(1, 1, 0), AxisMap(0))), (n, m)), tensor=True
    )
    assert g.results[4].value == "a\n"
    assert g.sites[0] == Site("IndexError", 'index {0} "q" ü', SourceLoc("<ipython in>", 5, 6))
    assert g.sites[1].loc == SourceLoc("b.py", 7, 8)
    values = [op.attrs["value"] for op in g.walk() if op.name == "constant"]
    assert values[0] == np.float32(0.1)
    assert isinstance(values[0], np.float32)
    assert np.isnan(values[1][0])
    assert np.signbit(values[1][3])
    assert values[2].shape == (0, 3)
    assert values[3].shape == ()
    assert values[5] == 2**64 - 1


@pytest.mark.parametrize(
    "value",
    [1, -1, 1.0, -0.0, float("nan"), float("inf"), True, 1e-5, np.float32(1 / 3), np.int8(-3), np.bool_(True), np.uint64(2**64 - 1),
     np.float64("nan"), np.arange(6).reshape(2, 3), np.array([0.1, 0.2], np.float32), np.zeros((2, 0), np.int16)],
    ids=repr,
)  # fmt: skip
def test_constants_come_back(value: object) -> None:
    g = Graph("f")
    b = Builder(g)
    b.emit(REGISTRY["return"], [b.constant(value)], ())
    g.results = [Result("fresh", 0)]
    text = print_graph(g)
    again = parse(text)
    found = again.body.first.attrs["value"]
    assert type(found) is type(value)
    assert np.asarray(found).dtype == np.asarray(value).dtype
    np.testing.assert_array_equal(found, value, strict=isinstance(value, np.ndarray))
    assert np.array_equal(np.signbit(np.asarray(found, float)), np.signbit(np.asarray(value, float)))
    assert print_graph(again) == text


def test_names_are_the_users_and_unique() -> None:
    g = Graph("my graph")
    x = g.body.add_arg(TensorType(np.dtype("f8"), (symbol("n"),)), "x")
    b = Builder(g)
    for name in ("y", "y", "", "self.w", "2d"):
        x = b.emit(REGISTRY["neg"], [x], [x.type], name=name).result
    b.emit(REGISTRY["return"], [x], ())
    text = print_graph(g)
    assert [line.split(" = ")[0].strip() for line in text.splitlines()[1:6]] == ["%y", "%y.2", "%0", "%self_w", "%_2d"]
    assert text.startswith("graph @my_graph(%x: f64[n]) -> none {")
    assert print_graph(parse(text)).splitlines()[1:] == text.splitlines()[1:]


@pytest.mark.parametrize(
    "name",
    ["a b.py", "<ipython-input-3>", "two\nlines.py", "", "x:1:2 y", "x:1:2", " lead", "- x", "-", "dir/", 'q"\\', "}{,:3:4,", "\u2028x",
     "größe.py", "\ud800"],
)  # fmt: skip
def test_names_of_files_come_back(name: str) -> None:
    g = Graph("f")
    b = Builder(g)
    b.loc = SourceLoc(name, 3, 4)
    b.emit(REGISTRY["return"], [b.constant(1.5)], ())
    g.sites.append(Site("ValueError", "m", SourceLoc(name, 5, 6)))
    text = print_graph(g)
    again = parse(text)
    last = name.rpartition("/")[2]
    assert print_graph(again) == text
    assert [op.loc for op in again.walk()] == [SourceLoc(last, 3, 4)] * 2
    assert again.sites[0].loc == SourceLoc(last, 5, 6)


def test_names_of_symbols_may_have_any_letters() -> None:
    text = """graph @f(%x: f64[länge]) -> f64[länge] where länge >= 0, länge != 1 {
  %y = neg %x : f64[länge]
  return %y
}
"""
    assert print_graph(parse(text)) == text


def test_sizes_that_look_like_other_words() -> None:
    text = """graph @f(%x: f64[f32, nan]) -> py_int where f32 >= 0, f32 != 1, nan >= 0, nan != 1 {
  %d = dim {value = dim(nan + 1)} : py_int
  %e = dim {value = 2*f32} : py_int
  return %d
}
"""
    text = text.replace("2*f32", "dim(2*f32)")
    assert print_graph(parse(text)) == text


def test_facts_and_types_may_be_left_out_by_hand() -> None:
    g = parse("""
        # a comment
        graph @f(%x: f64[n, 3]) -> f64[n, 3] {   # another
          %y = neg %x : f64[n, 3]
          return %y
        }""")
    assert g.symbols["n"].not_one
    assert "where n >= 0, n != 1" in print_graph(g)
    assert g.results == [Result("fresh", 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph @f() -> () {\n  %y = neg %x : f64[]\n  return\n}", "expected a value defined earlier, found '%x'"),
        ("graph @f() -> () {\n  %y = nog : f64[]\n}", "'nog' is none"),
        ("graph @f() -> () {\n  return\n", "expected a word, found ''"),
        ("graph @f(%x: q64[n]) -> () {\n  return\n}", "'q64' is none"),
        ("graph @f(%x: f64[n]) -> f64[n] where k >= 0 {\n  return %x\n}", "k is no size of an argument"),
    ],
)
def test_errors_show_the_line(text: str, message: str) -> None:
    with pytest.raises(ParseError) as e:
        parse(text)
    assert message in str(e.value)
    assert "^" in str(e.value)


def test_printing_many_ops_is_linear() -> None:
    """Counted in calls of functions: the clock depends on what else runs."""

    def chain(count: int) -> Graph:
        body = "".join(f"  %a{i} = add %a{i - 1}, %x : f64[n] @ m.py:{i}:3\n" for i in range(1, count + 1))
        return parse(f"graph @f(%x: f64[n]) -> f64[n] {{\n  %a0 = neg %x : f64[n]\n{body}  return %a{count}\n}}")

    small, large = (calls_of(functools.partial(print_graph, chain(n))) for n in (200, 2000))
    assert small > 200
    assert large < 11 * small


def test_attributes_without_a_text_are_described() -> None:
    g = Graph("f")
    g.body.append(Op(REGISTRY["return"], (), (), {"tag": print}))
    text = print_graph(g)
    assert 'opaque("builtins.print")' in text
    assert print_graph(parse(text)) == text
