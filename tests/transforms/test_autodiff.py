"""`grad`, `vjp`, `jvp` and the rest on plain NumPy functions: outside of a trace (the tape) and inside (the graph)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import autodiff as ad
from jitgraph import pytree, xp
from jitgraph.errors import DTypeError, GradientError, GradientTypeError
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Graph, Op, Result, Symbol
from jitgraph.ir.interpret import interpret
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType
from jitgraph.ir.verifier import verify
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, read, use_mode, wrap

rng = np.random.default_rng(7)
X = rng.uniform(0.3, 1.5, (4, 3))
V = rng.uniform(0.3, 1.5, 6)
W = rng.uniform(0.3, 1.5, (3, 2))


def traced(f, *args):
    """`f` captured as a graph with symbolic sizes, verified and evaluated."""
    g = Graph("f")
    values = []
    for k, x in enumerate(args):
        dims = []
        for axis, size in enumerate(np.shape(x)):
            name = f"n{k}{axis}"
            g.add_symbol(Symbol(name, "arg", k, axis, not_one=True, hint=size))
            dims.append(symbol(name))
        kind = "array" if dims else "np_scalar"
        values.append(g.body.add_arg(TensorType(np.asarray(x).dtype, tuple(dims), kind), f"x{k}"))
    mode = TraceMode(Builder(g))
    with use_mode(mode):
        out = f(*[wrap(mode, v) for v in values])
        flat, structure = pytree.flatten(out)
        results = [read(x) if isinstance(x, Tensor) else mode.lift(x) for x in flat]
    g.body.append(Op(REGISTRY["return"], results, ()))
    g.results = [Result("fresh", i) for i in range(len(results))]
    verify(g)
    return pytree.unflatten(structure, interpret(g, args)[0])


def slices(x):
    """Writes through views, in place."""
    y = x * 1.0
    y[1:-1] += 0.5 * (x[:-2] * x[2:])
    y[::2] *= 2.0
    z = y[::-1]
    z[0] = x[1] * x[2]
    return np.sum(y * y * x)


def masks(x):
    y = np.where(x > 0.8, x * x, np.sin(x))
    return np.sum(np.maximum(y, 0.5) * np.clip(x, 0.4, 1.2))


def masked_write(x):
    y = x * 2.0
    y[x > 0.8] = 0.25
    return np.sum(y * x)


def selected(x):
    return np.sum(np.square(x[x > 0.8]))


def softmax(x):
    e = np.exp(x - np.max(x))
    return np.sum((e / np.sum(e)) * np.arange(6.0))


def statistics(x):
    return np.mean(x) * np.var(x) + np.std(x)


def shapes(x):
    a = x.reshape(2, -1)
    b = np.concatenate([a.T, a.T * 2.0], axis=0)
    c = np.stack([b[0], b[1]])
    return np.sum(np.broadcast_to(c[:, np.newaxis], (2, 3, 2)) * np.cumsum(b, axis=0)[:3])


def indexed(x):
    return np.sum(x[np.array([0, 2, 2, 5])] ** 2)


VECTOR = [slices, masks, masked_write, selected, softmax, statistics, shapes, indexed]


def numerical(f, x, eps=6e-6):
    g = np.zeros_like(x)
    for k in range(x.size):
        d = np.zeros_like(x)
        d.flat[k] = eps
        g.flat[k] = (f(x + d) - f(x - d)) / (2 * eps)
    return g


@pytest.mark.parametrize("f", VECTOR, ids=lambda f: f.__name__)
def test_gradient_on_the_tape(f):
    g = ad.grad(f)(V)
    assert type(g) is np.ndarray
    assert g.dtype == np.float64
    np.testing.assert_allclose(g, numerical(f, V), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", VECTOR, ids=lambda f: f.__name__)
def test_gradient_in_a_trace(f):
    np.testing.assert_allclose(traced(ad.grad(f), V), ad.grad(f)(V), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("f", VECTOR, ids=lambda f: f.__name__)
def test_jvp_agrees_with_vjp(f):
    t = np.linspace(-1.0, 2.0, 6)
    expected = np.sum(ad.grad(f)(V) * t)
    out, tangent = ad.jvp(f, (V,), (t,))
    np.testing.assert_allclose(out, f(V))
    np.testing.assert_allclose(tangent, expected, rtol=1e-12)
    out, tangent = traced(lambda x, d: ad.jvp(f, (x,), (d,)), V, t)
    np.testing.assert_allclose(tangent, expected, rtol=1e-12)


@pytest.mark.parametrize("f", [slices, masks, softmax, statistics, indexed, masked_write], ids=lambda f: f.__name__)
def test_second_order(f):
    ad.check_grads(f, (V,), order=2)
    h = ad.hessian(f)(V)
    np.testing.assert_allclose(h, h.T, rtol=1e-9, atol=1e-11)
    twice = ad.grad(lambda x: np.sum(ad.grad(f)(x) * np.arange(6.0)))
    np.testing.assert_allclose(twice(V), h @ np.arange(6.0), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(traced(twice, V), h @ np.arange(6.0), rtol=1e-9, atol=1e-11)


def loss(w, x, b, y):
    y_pred = np.matmul(x, w) + b
    return np.sum(1 / 2 * (y_pred - y) ** 2)


def test_linear_regression():
    x, y = X, rng.standard_normal((4, 2))
    w, b = W, rng.standard_normal(2)
    value, (dw, db) = ad.value_and_grad(loss, argnums=(0, 2))(w, x, b, y)
    r = x @ w + b - y
    assert value == loss(w, x, b, y)
    np.testing.assert_allclose(dw, x.T @ r, rtol=1e-13)
    np.testing.assert_allclose(db, r.sum(0), rtol=1e-13)
    again = traced(lambda w, b: ad.grad(loss, (0, 2))(w, x, b, y), w, b)
    np.testing.assert_allclose(again[0], dw, rtol=1e-13)
    np.testing.assert_allclose(again[1], db, rtol=1e-13)


def test_backward_with_every_intermediate_gradient_visible():
    x = Tensor([-1.0, 2.0, 3.0], requires_grad=True)
    y = xp.relu(x)
    y.retain_grad()
    z = np.sum(y)
    z.retain_grad()
    z.backward()
    np.testing.assert_array_equal(z.grad.numpy(), 1.0)
    np.testing.assert_array_equal(y.grad.numpy(), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 1.0, 1.0])
    np.sum(x * 2.0).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 3.0, 3.0])
    x.grad = None
    assert x.grad is None


def test_backward_in_place_and_through_views():
    x = Tensor(V, requires_grad=True)
    y = x * 1.0
    y[1:3] *= 3.0
    v = y[::2]
    v += x[0]
    np.sum(y * y).backward()

    def f(x):
        y = x * 1.0
        y[1:3] *= 3.0
        y[::2] += x[0]
        return np.sum(y * y)

    np.testing.assert_allclose(x.grad.numpy(), numerical(f, V), rtol=1e-6)


def test_no_grad():
    x = Tensor(V, requires_grad=True)
    with ad.no_grad():
        assert not (x * 2.0).requires_grad
        with ad.enable_grad():
            assert (x * 2.0).requires_grad
    assert (x * 2.0).requires_grad
    with pytest.raises(GradientError, match="depends on no Tensor"):
        with ad.no_grad():
            y = np.sum(x)
        y.backward()


def test_backward_of_an_array_needs_a_cotangent():
    x = Tensor(V, requires_grad=True)
    with pytest.raises(GradientError, match=re.escape("backward() needs a scalar, got f64[6]")):
        (x * 2.0).backward()
    (x * 2.0).backward(np.arange(6.0))
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(6.0))


def test_structures():
    class Point(NamedTuple):
        a: np.ndarray
        b: np.ndarray

    @dataclass
    class Layer:
        w: np.ndarray
        b: float

    def f(p, layers, k):
        total = np.sum(p.a * p.b)
        for layer in layers:
            total = total + np.sum(layer.w) * layer.b
        return total * k["scale"]

    args = (Point(np.ones(2), np.full(2, 2.0)), [Layer(np.ones(3), 0.5)], {"scale": 3.0})
    dp, dl, dk = ad.grad(f, (0, 1, 2))(*args)
    assert isinstance(dp, Point)
    np.testing.assert_array_equal(dp.a, [6.0, 6.0])
    assert isinstance(dl[0], Layer)
    np.testing.assert_array_equal(dl[0].w, [1.5, 1.5, 1.5])
    assert dl[0].b == 9.0
    assert dk == {"scale": 5.5}


def test_dtypes_and_kinds():
    f32 = V.astype(np.float32)
    assert ad.grad(lambda x: np.sum(x * x))(f32).dtype == np.float32
    assert ad.grad(lambda x: np.sum(x * V))(f32).dtype == np.float32
    g = ad.grad(lambda x: x * x)(3.0)
    assert g == 6.0
    assert np.ndim(g) == 0
    assert type(ad.grad(lambda x: np.sum(x * x))(np.array(2.0))) is np.ndarray
    out = ad.grad(lambda x: np.sum(x * x))(Tensor(V))
    assert type(out) is Tensor
    assert not out.requires_grad


def test_has_aux():
    def f(x):
        y = np.sin(x)
        return np.sum(y), {"y": y}

    g, aux = ad.grad(f, has_aux=True)(V)
    np.testing.assert_array_equal(aux["y"], np.sin(V))
    assert type(aux["y"]) is np.ndarray
    (value, aux), g2 = ad.value_and_grad(f, has_aux=True)(V)
    np.testing.assert_array_equal(g, g2)
    assert value == np.sum(np.sin(V))


def test_vjp_of_a_structure():
    out, pullback = ad.vjp(lambda x, y: {"p": x * y, "s": np.sum(x)}, V, 2.0)
    np.testing.assert_array_equal(out["p"], V * 2.0)
    dx, dy = pullback({"p": np.ones(6), "s": 3.0})
    np.testing.assert_allclose(dx, 2.0 + 3.0)
    np.testing.assert_allclose(dy, V.sum())
    with pytest.raises(GradientError, match="the shapes differ"):
        pullback({"p": np.ones(5), "s": 3.0})
    with pytest.raises(GradientError, match="structure"):
        pullback(np.ones(5))


def test_jacobians():
    def f(x):
        return np.stack([x[0] * x[1], np.sin(x[2]), x[3] * x[4] * x[5]])

    expected = np.zeros((3, 6))
    expected[0, :2] = V[1], V[0]
    expected[1, 2] = np.cos(V[2])
    expected[2, 3:] = V[4] * V[5], V[3] * V[5], V[3] * V[4]
    np.testing.assert_allclose(ad.jacrev(f)(V), expected, rtol=1e-14)
    np.testing.assert_allclose(ad.jacfwd(f)(V), expected, rtol=1e-14)


def test_python_control_flow():
    def newton(a):
        s = 1.0
        while abs(s * s - a) > 1e-13:
            s = 0.5 * (s + a / s)
        return s

    np.testing.assert_allclose(ad.grad(newton)(3.0), 0.5 / np.sqrt(3.0), rtol=1e-9)
    np.testing.assert_allclose(ad.grad(ad.grad(newton))(3.0), -0.25 * 3.0**-1.5, rtol=1e-6)


def test_nested_closure():
    """The inner gradient sees the outer input as a constant, the outer one sees it in the inner result."""
    f = ad.grad(lambda x: x * ad.grad(lambda y: x * y * y)(2.0))
    assert f(3.0) == 24.0
    assert ad.grad(lambda x: x * ad.grad(lambda y: x + y)(1.0))(5.0) == 1.0


def test_same_value_twice():
    def f(x, y):
        return np.sum(x * np.sin(y))

    np.testing.assert_allclose(ad.grad(f, 0)(V, V), np.sin(V))
    np.testing.assert_allclose(traced(lambda v: ad.grad(f, 1)(v, v), V), V * np.cos(V))


def test_custom_gradient():
    class Clipped(ad.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.save(x)
            ctx.limit = limit
            return np.exp(x)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved
            return np.minimum(gradient * np.exp(x), ctx.limit), None

    x = Tensor(np.array([0.0, 5.0]), requires_grad=True)
    np.sum(Clipped.apply(x, 10.0)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 10.0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ad.grad(lambda x: x * 2.0)(V[:3]), GradientError, "grad needs a scalar output, got f64[3]"),
        (lambda: ad.grad(lambda x: x * 2)(3), GradientError, "grad needs float inputs, but argument 0 is py_int"),
        (
            lambda: ad.grad(lambda p: np.sum(p[0]))((V, np.arange(3))),
            GradientError,
            "grad needs float inputs, but leaf 1 of argument 0 is i64[3]",
        ),
        (lambda: ad.grad(lambda x: np.sum(x > 1))(V), GradientError, "grad needs a float output, got np.i64"),
        (lambda: ad.grad(lambda x: (x, x))(1.0), GradientError, "grad needs a scalar output, got 2 results"),
        (lambda: ad.grad(lambda x: "no")(1.0), GradientError, "a result is a str, no array and no number"),
        (lambda: ad.grad(lambda x: x, argnums=1)(1.0), GradientError, "argnums names argument 1, but 1 were given"),
        (lambda: ad.grad(lambda x: float(np.sum(x)))(V), GradientTypeError, "converted to a plain float"),
        (lambda: Tensor(np.ones(3, complex), requires_grad=True), DTypeError, "cannot require a gradient"),
        (lambda: ad.grad(lambda x: np.sum(x * 1j))(V), GradientError, "grad needs a float output, got np.c128"),
        (lambda: Tensor(np.arange(3), requires_grad=True), DTypeError, "cannot require a gradient"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_memory_is_freed_without_the_collector():
    import gc
    import weakref

    gc.disable()
    try:
        x = Tensor(np.ones(10), requires_grad=True)
        y = np.exp(x)
        ref = weakref.ref(read(y).array)
        z = np.sum(y * y)
        z.backward()
        del y, z
        assert ref() is None
    finally:
        gc.enable()


def test_check_grads_finds_a_wrong_gradient():
    class Wrong(ad.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save(x)
            return np.sin(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2.0

    def f(x):
        return Wrong.apply(x) if isinstance(x, Tensor) else np.sin(x)

    with pytest.raises(AssertionError, match="vjp differs"):
        ad.check_grads(f, (V,), modes=("rev",))
    ad.check_grads(np.sin, (V,))
    ad.check_grads(lambda x, k: np.sum(x * k["a"]), (V.astype(np.float32), {"a": V}), order=1)


@pytest.mark.parametrize("f", VECTOR, ids=lambda f: f.__name__)
def test_float32_stays_float32(f):
    x = V.astype(np.float32)
    eager, inline = ad.grad(f)(x), traced(ad.grad(f), x)
    assert eager.dtype == inline.dtype == np.float32
    np.testing.assert_allclose(eager, ad.grad(f)(V), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(inline, eager, rtol=2e-6, atol=2e-6)


def test_layouts():
    """Gradients of transposed, reversed and Fortran-ordered inputs."""
    f = {"F": np.asfortranarray(X), "T": X.T.copy().T, "reversed": X[::-1, ::-1], "strided": np.tile(X, 2)[:, ::2]}

    def loss(x):
        y = x.T * 2.0
        y[1:] *= np.sin(x.T[:-1])
        return np.sum(y * y)

    for x in f.values():
        np.testing.assert_allclose(ad.grad(loss)(x), numerical(loss, np.ascontiguousarray(x)), rtol=1e-6)


def test_empty_and_size_one_axes():
    assert ad.grad(lambda x: np.sum(x * x))(np.ones((0, 3))).shape == (0, 3)
    g = ad.grad(lambda x, y: np.sum(x * y), (0, 1))(np.ones((1, 3)), np.full((4, 1), 2.0))
    np.testing.assert_array_equal(g[0], np.full((1, 3), 8.0))
    np.testing.assert_array_equal(g[1], np.full((4, 1), 3.0))
