"""Gradients through loops and branches: reverse, forward, and both of the reverse, against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph.errors import GradientError, TraceError
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Result, Symbol
from jitgraph.ir.interpret import interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.ir.verifier import verify
from jitgraph.transforms.check import central_difference, directions, inner
from jitgraph.transforms.graph import grad_graph, jvp_of_ops, vjp_of_ops

rng = np.random.default_rng(0)
X5 = rng.uniform(0.3, 1.5, 5)
X6 = rng.uniform(0.3, 1.5, (6, 4))

PROGRAMS = {
    # s = 1; for i in range(n): s = sin(s * x[i]) + c * s
    "recurrence": (
        """
        graph @f(%x: f64[n], %c: np.f64) -> np.f64 {
          %s0 = constant {value = f64(1.0)} : np.f64
          %s = for %s0 {index = i, lower = 0, step = 1, upper = n} : np.f64 (%a: np.f64) {
            %v = view %x {map = () -> (i)} : f64[]
            %p = mul %a, %v : np.f64
            %q = sin %p : np.f64
            %r = mul %c, %a : np.f64
            %t = add %q, %r : np.f64
            yield %t
          }
          return %s
        }""",
        [X5, np.float64(0.7)],
    ),
    # for t in range(3): x[1:-1] = c * (x[:-2] + x[2:]) * x[1:-1]; sum(x * x)
    "stencil in place": (
        """
        graph @f(%x: f64[n, m], %c: np.f64) -> np.f64 {
          %y = for %x {index = t, lower = 0, step = 1, upper = 3} : f64[n, m] (%a: f64[n, m]) {
            %u = view %a {map = (d0: n - 2, d1: m) -> (d0, d1)} : f64[n - 2, m]
            %d = view %a {map = (d0: n - 2, d1: m) -> (d0 + 2, d1)} : f64[n - 2, m]
            %k = view %a {map = (d0: n - 2, d1: m) -> (d0 + 1, d1)} : f64[n - 2, m]
            %e = add %u, %d : f64[n - 2, m]
            %g = mul %e, %k : f64[n - 2, m]
            %h = mul %c, %g : f64[n - 2, m]
            %z = write %h, %a {map = (d0: n - 2, d1: m) -> (d0 + 1, d1)} : f64[n, m]
            yield %z
          }
          %w = square %y : f64[n, m]
          %s = reduce_sum %w {axes = [0, 1], keepdims = false} : np.f64
          return %s
        }""",
        [X6, np.float64(0.4)],
    ),
    # for i in range(1, n): x[i] = x[i] * x[i - 1] + c
    "scan over elements": (
        """
        graph @f(%x: f64[n], %c: np.f64) -> np.f64 {
          %y = for %x {index = i, lower = 1, step = 1, upper = n} : f64[n] (%a: f64[n]) {
            %p = view %a {map = () -> (i - 1)} : f64[]
            %q = view %a {map = () -> (i)} : f64[]
            %r = mul %p, %q : np.f64
            %s = add %r, %c : np.f64
            %z = write %s, %a {map = () -> (i)} : f64[n]
            yield %z
          }
          %w = square %y : f64[n]
          %l = reduce_sum %w {axes = [0], keepdims = false} : np.f64
          return %l
        }""",
        [X5, np.float64(0.4)],
    ),
    # for i in range(0, n, 2): for j in range(i): s = s * x[j] + c
    "triangle of loops": (
        """
        graph @f(%x: f64[n], %c: np.f64) -> np.f64 {
          %s0 = constant {value = f64(1.0)} : np.f64
          %s = for %s0 {index = i, lower = 0, step = 2, upper = n} : np.f64 (%a: np.f64) {
            %b = for %a {index = j, lower = 0, step = 1, upper = i} : np.f64 (%d: np.f64) {
              %v = view %x {map = () -> (j)} : f64[]
              %p = mul %d, %v : np.f64
              %q = add %p, %c : np.f64
              yield %q
            }
            yield %b
          }
          return %s
        }""",
        [X5, np.float64(0.4)],
    ),
    # for i in range(n - 1, -1, -1): s = s * x[i]
    "downward": (
        """
        graph @f(%x: f64[n]) -> np.f64 {
          %s0 = constant {value = f64(2.0)} : np.f64
          %s = for %s0 {index = i, lower = n - 1, step = -1, upper = -1} : np.f64 (%a: np.f64) {
            %v = view %x {map = () -> (i)} : f64[]
            %p = mul %a, %v : np.f64
            %q = sin %p : np.f64
            yield %q
          }
          return %s
        }""",
        [X5],
    ),
    # s = 1; while abs(s * s - a) > 1e-10: s = 0.5 * (s + a / s)
    "newton": (
        """
        graph @f(%a: np.f64) -> np.f64 {
          %s0 = constant {value = f64(1.0)} : np.f64
          %s = while %s0 : np.f64 (%x: np.f64) {
            %q = square %x : np.f64
            %d = sub %q, %a : np.f64
            %e = abs %d : np.f64
            %t = constant {value = 1e-10} : py_float
            %g = gt %e, %t : np.bool
            yield %g
          } (%y: np.f64) {
            %r = div %a, %y : np.f64
            %u = add %y, %r : np.f64
            %h = constant {value = 0.5} : py_float
            %v = mul %u, %h : np.f64
            yield %v
          }
          return %s
        }""",
        [np.float64(3.0)],
    ),
    # for i: if x[i] > c: s += x[i] ** 2 else: s *= c
    "branch in a loop": (
        """
        graph @f(%x: f64[n], %c: np.f64) -> np.f64 {
          %s0 = constant {value = f64(1.0)} : np.f64
          %s = for %s0 {index = i, lower = 0, step = 1, upper = n} : np.f64 (%a: np.f64) {
            %v = view %x {map = () -> (i)} : f64[]
            %g = gt %v, %c : np.bool
            %b = cond %g : np.f64 () {
              %q = square %v : np.f64
              %p = add %a, %q : np.f64
              yield %p
            } () {
              %p2 = mul %a, %c : np.f64
              yield %p2
            }
            yield %b
          }
          return %s
        }""",
        [X5, np.float64(0.8)],
    ),
    # if c > 0: for i: y = exp(y * c) else: y = x; a check and an untouched counter go along
    "loop in a branch": (
        """
        graph @f(%x: f64[n], %c: np.f64) -> np.f64 {
          %z = constant {value = f64(0.0)} : np.f64
          %g = gt %c, %z : np.bool
          %y = cond %g : f64[n] () {
            %k0 = constant {value = i64(0)} : np.i64
            %k, %l = for %k0, %x {index = t, lower = 0, step = 1, upper = 3} : np.i64, f64[n] (%m: np.i64, %a: f64[n]) {
              check %g {order = 1, site = 0 ValueError "no"}
              %o = constant {value = i64(1)} : np.i64
              %m2 = add %m, %o : np.i64
              %h = cast %m {dtype = f64} : np.f64
              %b = mul %a, %c : f64[n]
              %d = sin %b : f64[n]
              %e = add %d, %h : f64[n]
              yield %m2, %e
            }
            yield %l
          } () {
            yield %x
          }
          %w = mul %y, %x : f64[n]
          %s = reduce_sum %w {axes = [0], keepdims = false} : np.f64
          return %s
        }""",
        [X5, np.float64(0.8)],
    ),
    # the turns of a while bind an integer as an index: k = k * 2 % n; s = s * x[k]
    "bound index": (
        """
        graph @f(%x: f64[n]) -> np.f64 where n >= 0, n != 1, value k >= 0, k <= n - 1 {
          %s0 = constant {value = f64(1.0)} : np.f64
          %k0 = constant {value = i64(1)} : np.i64
          %s, %kk = while %s0, %k0 : np.f64, np.i64 (%a: np.f64, %i: np.i64) {
            %lim = constant {value = i64(4)} : np.i64
            %t = lt %i, %lim : np.bool
            yield %t
          } (%a2: np.f64, %i2: np.i64) {
            bind %i2 {symbol = k}
            %v = view %x {map = () -> (k)} : f64[]
            %p = mul %a2, %v : np.f64
            %q = sin %p : np.f64
            %one = constant {value = i64(1)} : np.i64
            %i3 = add %i2, %one : np.i64
            yield %q, %i3
          }
          return %s
        }""",
        [X5],
    ),
    # two arrays swap roles: for t: u, v = v, sin(u)
    "swap": (
        """
        graph @f(%x: f64[n], %y: f64[n]) -> np.f64 {
          %a, %b = for %x, %y {index = t, lower = 0, step = 1, upper = 3} : f64[n], f64[n] (%u: f64[n], %v: f64[n]) {
            %s = sin %u : f64[n]
            yield %v, %s
          }
          %w = mul %a, %b : f64[n]
          %l = reduce_sum %w {axes = [0], keepdims = false} : np.f64
          return %l
        }""",
        [X5, X5[::-1].copy()],
    ),
    # no turn at all
    "empty loop": (
        """
        graph @f(%x: f64[n]) -> np.f64 {
          %y = for %x {index = t, lower = 4, step = 1, upper = 2} : f64[n] (%u: f64[n]) {
            %s = sin %u : f64[n]
            yield %s
          }
          %w = mul %y, %x : f64[n]
          %l = reduce_sum %w {axes = [0], keepdims = false} : np.f64
          return %l
        }""",
        [X5],
    ),
}


def read(text):
    """A graph; the indices of its loops are declared with the bounds that their loops give."""
    g = parse(text)
    for op in g.walk():
        if op.name == "for":
            lower, upper, step = op.attrs["lower"], op.attrs["upper"], op.attrs["step"]
            first, last = (lower, upper - 1) if step > 0 else (upper + 1, lower)
            g.add_symbol(Symbol(op.attrs["index"], "index", lower=first, upper=last))
    g.results = [Result("fresh", 0)]
    verify(g)
    return g


def program(name):
    text, args = PROGRAMS[name]
    return read(text), args


def value(g):
    return lambda inputs: [np.asarray(interpret(g, [x if x.ndim else x[()] for x in map(np.asarray, inputs)])[0][0])]


def gradient(g, args):
    h = grad_graph(g, range(len(args)))
    verify(h)
    return h, interpret(h, args)[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse(name):
    g, args = program(name)
    before = str(g)
    _, (out, *grads) = gradient(g, args)
    assert str(g) == before
    np.testing.assert_array_equal(out, value(g)(args)[0])
    for k, x in enumerate(args):
        assert np.shape(grads[k]) == np.shape(x)
    arrays = [np.asarray(x) for x in args]
    for seed in range(3):
        along = directions([x.shape for x in arrays], seed)
        (expected,) = central_difference(value(g), arrays, along)
        np.testing.assert_allclose(inner([np.asarray(d) for d in grads], along), expected, rtol=1e-6, atol=1e-8)


def tangent_graph(g, args):
    """(out, tangent) along tangents that are constants of the graph; and those."""
    g = g.clone()
    last = g.body.terminator
    ops = [op for op in g.body.ops() if op is not last]
    along = directions([np.shape(x) for x in args], 5)
    tangents = [g.body.add_arg(a.type, f"t{k}") for k, a in enumerate(list(g.args))]
    outputs = list(last.operands)
    made = jvp_of_ops(Builder(g).ahead_of(last), ops, g.args[: len(args)], tangents, outputs)
    last.set_operands([*outputs, *made])
    g.results = []
    verify(g)
    return g, along


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward(name):
    g, args = program(name)
    h, along = tangent_graph(g, args)
    out, tangent = interpret(h, [*args, *[d[()] for d in along]])[0]
    np.testing.assert_array_equal(out, value(g)(args)[0])
    (expected,) = central_difference(value(g), [np.asarray(x) for x in args], along)
    np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_over_reverse(name):
    g, args = program(name)
    h, _ = gradient(g, args)
    h2, along = tangent_graph(h, args)
    found = interpret(h2, [*args, *[d[()] for d in along]])[0]
    count = 1 + len(args)
    expected = central_difference(lambda xs: interpret(h, [x[()] for x in xs])[0], [np.asarray(x) for x in args], along)
    for a, b in zip(found[count:], expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse_over_reverse(name):
    """The gradient of the gradient's inner product with a constant direction."""
    g, args = program(name)
    h, _ = gradient(g, args)
    along = directions([np.shape(x) for x in args], 5)
    g2 = h.clone()
    last = g2.body.terminator
    ops = [op for op in g2.body.ops() if op is not last]
    b = Builder(g2).ahead_of(last)
    cts = [b.constant(d[()]) for d in along]
    cts = [b.view(c, map=_as(c, x)) if c.type.shape else c for c, x in zip(cts, g2.args, strict=True)]
    grads = last.operands[1:]
    second = vjp_of_ops(b, ops, g2.args, grads, cts)
    last.set_operands(second)
    g2.results = []
    verify(g2)
    found = interpret(g2, args)[0]
    arrays = [np.asarray(x) for x in args]
    expected = central_difference(lambda xs: interpret(h, [x[()] for x in xs])[0][1:], arrays, along)
    for a, e in zip(found, expected, strict=True):  # the Hessian is symmetric
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-7)


def _as(c, x):
    return IndexMap(x.type.shape, tuple(AxisMap(0, 1, k) for k in range(len(x.type.shape))))


def test_only_what_the_gradient_reads_is_recorded():
    """A loop that is linear in what it carries keeps no stack; a read element is kept alone, not its array."""
    g = read("""
        graph @f(%x: f64[n], %c: f64[n]) -> np.f64 {
          %y = for %x {index = t, lower = 0, step = 1, upper = 100} : f64[n] (%u: f64[n]) {
            %s = mul %u, %c : f64[n]
            yield %s
          }
          %l = reduce_sum %y {axes = [0], keepdims = false} : np.f64
          return %l
        }""")
    h = grad_graph(g, [0])
    loops = [op for op in h.body.ops() if op.name == "for"]
    assert [len(op.results) for op in loops] == [1, 1]
    g, _ = program("scan over elements")
    h = grad_graph(g, [0])
    forward = next(op for op in h.body.ops() if op.name == "for")
    assert all(len(r.type.shape) <= 1 for r in forward.results)


def test_first_result_must_be_a_scalar():
    g = parse("graph @f(%x: f64[n]) -> f64[n] {\n %y = sin %x : f64[n]\n return %y\n}")
    with pytest.raises(GradientError, match=r"grad needs a scalar output, got f64\[n\]"):
        grad_graph(g, [0])


def test_integer_arguments_have_no_gradient():
    g = parse("graph @f(%k: i64[n]) -> np.f64 {\n %y = constant {value = f64(1.0)} : np.f64\n return %y\n}")
    with pytest.raises(GradientError, match=r"grad needs float inputs, but argument 0 is i64\[n\]"):
        grad_graph(g, [0])


def test_host_calls_have_no_gradient():
    g = read("""
        graph @f(%x: np.f64) -> np.f64 {
          %y = host_call %x {order = 1, site = 0 host "g"} : np.f64
          return %y
        }""")
    with pytest.raises(TraceError, match="no gradient for a host call"):
        grad_graph(g, [0])


def test_seed_is_one():
    g = parse("graph @f(%x: np.f64) -> np.f64 {\n return %x\n}")
    assert interpret(grad_graph(g, [0]), [np.float64(2.0)])[0] == [2.0, 1.0]
