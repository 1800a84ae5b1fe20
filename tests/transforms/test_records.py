"""Gradients of every differentiable record, in both modes, in graphs and on the tape, against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import evaluate, ne1, symbol
from jitgraph.ir.graph import Graph, Op, Symbol
from jitgraph.ir.interpret import interpret
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import AxisMap, IndexMap, TensorType
from jitgraph.ir.verifier import verify
from jitgraph.ops.families import no_gradient
from jitgraph.transforms import graph as graphs
from jitgraph.transforms.check import central_difference, directions, inner
from jitgraph.transforms.tape import TAPE, Node, pull_back, push_forward

F64 = np.dtype("f8")
N, M = symbol("n"), symbol("m")
SIZES = {"n": 4, "m": 3}


def case(name, *shapes, low=-2.0, high=2.0, extra=(), id="", **attrs):
    """One application of an operator: shapes of the float operands; `extra` operands are constants behind them."""
    return pytest.param(name, shapes, (low, high), extra, attrs, id=id or f"{name}-{'-'.join(map(str, shapes))}")


def plain(d):
    return evaluate(d, SIZES)


def concrete(attr):
    if isinstance(attr, IndexMap):
        return attr.substitute(SIZES)
    if isinstance(attr, tuple):
        return tuple(concrete(a) for a in attr)
    return attr if isinstance(attr, (int, str, np.dtype)) or attr is None else plain(attr)


UNARY = {
    "neg": (-2, 2), "abs": (0.2, 2), "plain_abs": (0.2, 2), "square": (-2, 2), "reciprocal": (0.5, 2), "sqrt": (0.5, 2), "exp": (-2, 2),
    "exp2": (-2, 2), "expm1": (-2, 2), "log": (0.5, 3), "log2": (0.5, 3), "log10": (0.5, 3), "log1p": (-0.5, 3),
    "sin": (-3, 3), "cos": (-3, 3), "tan": (-1, 1), "sinh": (-2, 2), "cosh": (-2, 2), "tanh": (-2, 2),
    "arcsin": (-0.8, 0.8), "arccos": (-0.8, 0.8), "arctan": (-2, 2), "sigmoid": (-3, 3),
    "relu": (0.1, 2), "erf": (-2, 2), "erfc": (-2, 2), "cbrt": (0.3, 2), "arcsinh": (-2, 2), "arccosh": (1.2, 3), "arctanh": (-0.8, 0.8),
    "radians": (-2, 2), "degrees": (-2, 2), "fabs": (0.2, 2), "frexp_mantissa": (0.55, 0.9), "modf_fraction": (0.1, 0.9),
}  # fmt: skip
BINARY = {
    "add": (-2, 2), "sub": (-2, 2), "mul": (-2, 2), "plain_mul": (-2, 2), "div": (0.5, 2), "pow": (0.5, 2),
    "minimum": (-2, 2), "maximum": (-2, 2), "fmin": (-2, 2), "fmax": (-2, 2), "copysign": (0.3, 2), "arctan2": (0.3, 2),
    "mod": (0.5, 2), "fmod": (0.5, 2), "hypot": (0.3, 2), "float_power": (0.5, 2), "logaddexp": (-2, 2),
    "logaddexp2": (-2, 2), "heaviside": (0.5, 2), "nextafter": (-2, 2),
}  # fmt: skip
SLICE = IndexMap((N - 2, M), (AxisMap(1), AxisMap(2, 1, 0), AxisMap(0, 1, 1)))
STEPS = IndexMap((2, M), (AxisMap(3, -2, 0), AxisMap(0, 1, 1)))
MASK = np.array([[True, False, True], [False, False, True], [True, True, False], [False, True, True]])
CASES = [
    *(case(name, (N, M), low=lo, high=hi) for name, (lo, hi) in UNARY.items()),
    *(case(name, (N, M), (M,), low=lo, high=hi) for name, (lo, hi) in BINARY.items()),
    *(case(name, (), (N, 1), low=lo, high=hi) for name, (lo, hi) in BINARY.items()),
    case("pow", (N,), extra=(3.0,), id="pow-3"),
    case("pow", (N,), low=0.5, extra=(0.5,), id="pow-half"),
    case("pow", (N,), low=0.5, extra=(-1.0,), id="pow-minus-1"),
    case("pow", (N,), extra=(2.0,), id="pow-2"),
    case("clip", (N, M), extra=(-0.5, 0.7)),
    case("cast", (N, M), dtype=F64),
    case("as_kind", (), kind="py_float"),
    case("full", (), shape=(N, M), dtype=F64),
    case("iota", (), (), size=N, dtype=F64),
    case("reduce_sum", (N, M), axes=(0,), keepdims=False),
    case("reduce_sum", (N, M), axes=(1,), keepdims=True, id="sum-keep"),
    case("reduce_sum", (N, M), axes=(0, 1), keepdims=False, id="sum-all"),
    case("reduce_sum", (N, M), (), axes=(1,), keepdims=False, id="sum-from-a-value"),
    case("reduce_sum", (N, M), axes=(1,), keepdims=False, dtype=F64, id="sum-cast"),
    case("reduce_prod", (N, M), (), axes=(1,), keepdims=False, id="prod-from-a-value"),
    case("reduce_prod", (N, M), axes=(1,), keepdims=False),
    case("reduce_max", (N, M), axes=(0,), keepdims=True),
    case("reduce_min", (N, M), axes=(0, 1), keepdims=False),
    case("cumsum", (N, M), axis=1),
    case("cumprod", (N, M), axis=0),
    case("view", (2, N, M), map=SLICE, id="view-slice"),
    case("view", (N, M), map=STEPS, id="view-negative-step"),
    case("view", (N, M), map=IndexMap((M, N), (AxisMap(0, 1, 1), AxisMap(0, 1, 0))), id="view-transpose"),
    case("view", (N, M), map=IndexMap((N, 1, M), (AxisMap(N - 1, -1, 0), AxisMap(0, 1, 2))), id="view-flip-newaxis"),
    case("view", (1, M), map=IndexMap((2, N, M), (AxisMap(0), AxisMap(0, 1, 2))), id="view-broadcast"),
    case("view", (N, N), map=IndexMap((N,), (AxisMap(0, 1, 0), AxisMap(0, 1, 0))), id="view-diagonal"),
    case("view", (N, M), map=IndexMap((M,), (AxisMap(2), AxisMap(0, 1, 0))), id="view-row"),
    case("view", (N, 1), map=IndexMap((N,), (AxisMap(0, 1, 0), AxisMap(0))), id="view-drop-axis"),
    case("view", (N,), map=IndexMap((N, M), (AxisMap(0, ne1(N), 0),)), id="view-run-time-stride"),
    case("reshape", (N, M), shape=(M, 2, 2)),
    case("copy", (N, M), order="F"),
    case("concatenate", (N, M), (1, M), (N, M), axis=0),
    case("write", (N - 2, M), (2, N, M), map=SLICE),
    case("write", (), (2, N, M), map=SLICE, id="write-scalar"),
    case("write", (M, N), (N, M), map=IndexMap((M, N), (AxisMap(0, 1, 1), AxisMap(0, 1, 0))), id="write-all"),
    case("write_through", (N,), (N, M), steps=((N * M,), IndexMap((N,), (AxisMap(1, 2, 0),)))),
    case("write_through", (N * M,), (N, M), steps=((N * M,), IndexMap((N * M,), (AxisMap(N * M - 1, -1, 0),))), id="through-all"),
    case("matmul", (N, M), (M, 2)),
    case("matmul", (N, M), (M,), id="matmul-vector"),
    case("matmul", (N,), (N, M), id="vector-matmul"),
    case("matmul", (N,), (N,), id="dot"),
    case("scaled", (N, M), (), id="matrix-number"),
    case("dot", (2, N, M), (M, 2), id="many-matrix"),
    case("dot", (N, M), (2, M, 4), id="matrix-many"),
    case("dot", (2, N, M), (M,), id="many-vector"),
    case("matmul", (2, N, M), (1, M, 5), id="matmul-stack"),
    case("matmul", (2, N, M), (M,), id="matmul-stack-vector"),
    case("matmul", (M,), (2, M, N), id="vector-matmul-stack"),
    case("vecdot", (N, M), (N, M)),
    case("vecdot", (N, M), (M,), id="vecdot-stack"),
    case("matvec", (N, M), (M,)),
    case("matvec", (2, N, M), (2, M), id="matvec-stack"),
    case("vecmat", (N,), (N, M)),
    case("vecmat", (2, N), (N, M), id="vecmat-stack"),
    case("ldexp", (N, M), extra=(np.int64(3),)),
    case("take", (N, M), extra=(np.array([[0, 3], [3, 1]]),), axis=0),
    case("take", (N, M), extra=(np.array([0, 2, 2, 1]),), axis=1, id="take-axis-1"),
]  # fmt: skip


def operands(shapes, bounds, seed):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(*bounds, [plain(d) for d in s])) for s in shapes]


def graph_of(shapes):
    """A graph with one float argument for each shape, behind one that has all sizes."""
    g = Graph("f")
    for axis, (name, size) in enumerate(SIZES.items()):
        g.add_symbol(Symbol(name, "arg", 0, axis, lower=2, hint=size, not_one=True))
    g.body.add_arg(TensorType(F64, (N, M)), "sizes")
    args = [g.body.add_arg(TensorType(F64, s, "array" if s else "np_scalar"), f"x{k}") for k, s in enumerate(shapes)]
    return g, args


def run(g, results, inputs):
    """Finish a graph, verify and evaluate it."""
    g.body.append(Op(REGISTRY["return"], results, ()))
    verify(g)
    return interpret(g, [np.zeros(tuple(SIZES.values())), *inputs])[0]


def order_of(name, extra, values):
    """Constants stand behind the float operands, but a mask or index stands where the operator has it."""
    return [*values, *extra]


def check(name, shapes, bounds, extra, attrs, arrange=order_of):
    xs = operands(shapes, bounds, seed=len(name))
    along = directions([x.shape for x in xs], 1)
    fixed = {k: concrete(a) for k, a in attrs.items()}

    def numeric(inputs):
        return [np.asarray(REGISTRY[name].evaluate(*arrange(name, extra, list(inputs)), **fixed), np.float64)]

    (expected,) = central_difference(numeric, xs, along)
    weights = directions([expected.shape], 2)

    # tape
    leaves = [TAPE.leaf(x if x.shape else x[()]) for x in xs]
    (y,) = TAPE.apply(REGISTRY[name], arrange(name, [TAPE.lift(e) for e in extra], leaves), fixed)
    cts, _ = pull_back([y], [Node(weights[0] if expected.shape else weights[0][()])], leaves)
    tape_grads = [np.zeros(x.shape) if ct is None else np.asarray(ct.array) for ct, x in zip(cts, xs, strict=True)]
    assert [g.shape for g in tape_grads] == [x.shape for x in xs]
    np.testing.assert_allclose(inner(tape_grads, along), inner(weights, [expected]), rtol=2e-7, atol=1e-7)
    (tangent,) = push_forward([y], leaves, [Node(d if d.shape else d[()]) for d in along], 1)
    np.testing.assert_allclose(tangent.array, expected, rtol=2e-7, atol=1e-7)

    # graph, reverse
    out_shape = np.shape(numeric(xs)[0])
    g, args = graph_of(shapes)
    b = Builder(g)
    consts = [b.constant(e) for e in extra]
    segment = graphs.Segment(b)
    (out,) = b.apply(REGISTRY[name], *arrange(name, consts, args), **attrs)
    ct = g.body.add_arg(TensorType(F64, out.type.shape, "array" if out.type.shape else "np_scalar"), "ct")
    grads = graphs.vjp_of_ops(b, segment.ops(), args, [out], [ct])
    assert [v.type.shape for v in grads] == list(shapes)
    found = run(g, grads, [*xs, weights[0]])
    for a, e in zip(found, tape_grads, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-12, atol=1e-13)

    # graph, forward
    g, args = graph_of([*shapes, *shapes])
    b = Builder(g)
    consts = [b.constant(e) for e in extra]
    segment = graphs.Segment(b)
    count = len(shapes)
    (out,) = b.apply(REGISTRY[name], *arrange(name, consts, args[:count]), **attrs)
    tangents = graphs.jvp_of_ops(b, segment.ops(), args[:count], args[count:], [out])
    assert tangents[0].type.shape == out.type.shape
    found = run(g, tangents, [*xs, *along])
    assert np.shape(found[0]) == out_shape
    np.testing.assert_allclose(found[0], expected, rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "shapes", "bounds", "extra", "attrs"), CASES)
def test_record(name, shapes, bounds, extra, attrs):
    check(name, shapes, bounds, extra, attrs)


def front(name, extra, values):
    """The constant operand stands first (`where`) or second (`expand`, `scatter_add`)."""
    return [*extra, *values] if name == "where" else [values[0], *extra, *values[1:]]


def test_where():
    check("where", ((4, 3), (3,)), (-2.0, 2.0), (MASK,), {}, front)


def test_where_scalar():
    check("where", ((), (4, 3)), (-2.0, 2.0), (MASK,), {}, front)


def test_scatter_add():
    check("scatter_add", ((N, M), (3, M)), (-2.0, 2.0), (np.array([1, 1, 3]),), {"axis": 0}, front)


def test_scatter():
    check("scatter", ((N, M), (3, M)), (-2.0, 2.0), (np.array([1, 1, 3]),), {"axis": 0}, front)


def test_expand():
    check("expand", ((4, 3), (7,)), (-2.0, 2.0), (MASK,), {}, front)


def test_expand_scalar():
    check("expand", ((4, 3), ()), (-2.0, 2.0), (MASK,), {}, front)


def test_compress():
    xs = operands([(4, 3)], (-2.0, 2.0), 3)
    weights = directions([(7,)], 1)
    g, args = graph_of([(4, 3)])
    b = Builder(g)
    mask = b.constant(MASK)
    segment = graphs.Segment(b)
    out = b.compress(args[0], mask, size=7)
    ct = b.constant(weights[0])
    (grad,) = graphs.vjp_of_ops(b, segment.ops(), args, [out], [ct])
    (found,) = run(g, [grad], xs)
    expected = np.zeros((4, 3))
    expected[MASK] = weights[0]
    np.testing.assert_array_equal(found, expected)
    leaf = TAPE.leaf(xs[0])
    (y,) = TAPE.apply(REGISTRY["compress"], [leaf, TAPE.lift(MASK)], {"size": 7})
    (ct,), _ = pull_back([y], [Node(weights[0])], [leaf])
    np.testing.assert_array_equal(ct.array, expected)
    (tangent,) = push_forward([y], [leaf], [Node(expected)], 1)
    np.testing.assert_array_equal(tangent.array, weights[0])


def test_every_differentiable_record_is_tested():
    tested = {
        "conj",
        "real",
        "imag",
        "with_real",
        "with_imag",
        "sign",
        "vdot",
        "squared_norm",
        "python_complex",
        "reduce_sum_parts",
    }
    tested |= {c.values[0] for c in CASES} | {
        "where",
        "scatter",
        "scatter_add",
        "expand",
        "compress",
        "reduce_sum_where",
    }
    have = {name for name, d in REGISTRY.items() if d.vjp not in (None, no_gradient)}
    assert have - tested == {"check"}


def test_sum_over_a_size_that_may_be_one_at_run_time():
    """The broadcast axis of a run-time stride is summed exactly when its size is 1."""
    for rows in (1, 4):
        base = IndexMap((5,), (AxisMap(0, ne1(rows), 0),))
        x = TAPE.leaf(np.arange(1.0, rows + 1.0))
        (y,) = TAPE.apply(REGISTRY["view"], [x], {"map": IndexMap((rows if rows > 1 else 5,), base.axes)})
        (ct,), _ = pull_back([y], [Node(np.ones(y.type.shape))], [x])
        np.testing.assert_array_equal(ct.array, [5.0] if rows == 1 else np.ones(4))
