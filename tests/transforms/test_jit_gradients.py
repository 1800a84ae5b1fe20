"""Gradients under `jit` (in line in the graph), over `jit` (jitted gradients), and of jitted parts on the tape."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.errors import GradientError, TraceError

rng = np.random.default_rng(11)
V = rng.uniform(0.3, 1.5, 7)
A = rng.uniform(0.3, 1.5, (6, 5))
COEFFICIENTS = rng.uniform(0.3, 1.5, 7)


def numerical(f, x, eps=6e-6):
    g = np.zeros_like(x)
    for k in range(x.size):
        d = np.zeros_like(x)
        d.flat[k] = eps
        g.flat[k] = (f(x + d) - f(x - d)) / (2 * eps)
    return g


def chain(x):
    return np.sum(np.exp(-x * x) * np.tanh(x) - 0.5 * x)


def heat(u):
    """A time loop that writes slices in place."""
    u = u.copy()
    for _ in range(u.shape[0] * 2):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return np.sum(u * u * u)


def recurrence(x):
    s = 1.0
    for i in range(x.shape[0]):
        s = np.sin(s * x[i]) + 0.5 * s
    return s


def scan(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = y[i] * y[i - 1] + 0.3
    return np.sum(y * y)


def branchy(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.8:
            total = total + x[i] * x[i]
        else:
            total = total * 0.5 + np.sin(x[i])
    return total


def newton(x):
    a = np.sum(x)
    s = 1.0
    while abs(s * s - a) > 1e-12:
        s = 0.5 * (s + a / s)
    return s


def uses_global(x):
    return np.sum(np.sin(x) * COEFFICIENTS)


def masked(x):
    y = x * 2.0
    y[x > 0.8] = 0.25
    return np.sum(y * x) + np.sum(np.square(x[x > 0.8]))


CASES = [(chain, V), (heat, A), (recurrence, V), (scan, V), (branchy, V), (newton, V), (uses_global, V), (masked, V)]
ids = [f.__name__ for f, _ in CASES]


@pytest.mark.parametrize(("f", "x"), CASES, ids=ids)
def test_under_jit(f, x):
    g = jg.jit(lambda x: jg.grad(f)(x))
    found = g(x)
    np.testing.assert_allclose(found, numerical(f, x), rtol=2e-6, atol=1e-7)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, jg.grad(f)(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("f", "x"), CASES, ids=ids)
def test_over_jit(f, x):
    value, gradient = jg.value_and_grad(jg.jit(f))(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, jg.grad(f)(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("f", "x"), CASES, ids=ids)
def test_jvp_under_jit(f, x):
    t = np.linspace(-1.0, 1.0, x.size).reshape(x.shape)
    out, tangent = jg.jit(lambda x, t: jg.jvp(f, (x,), (t,)))(x, t)
    np.testing.assert_allclose(out, f(x), rtol=1e-12)
    np.testing.assert_allclose(tangent, np.sum(jg.grad(f)(x) * t), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("f", "x"), CASES, ids=ids)
def test_jitted_part_on_the_tape(f, x):
    j = jg.jit(f)
    found = jg.grad(lambda x: np.exp(0.1 * j(x * 1.5)))(x)
    expected = jg.grad(lambda x: np.exp(0.1 * f(x * 1.5)))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    t = jg.Tensor(x, requires_grad=True)
    j(t).backward()
    np.testing.assert_allclose(t.grad.numpy(), jg.grad(f)(x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("f", "x"), CASES[:5], ids=ids[:5])
def test_second_order_under_jit(f, x):
    w = np.linspace(-1.0, 1.0, x.size).reshape(x.shape)
    hvp = lambda x: jg.grad(lambda x: np.sum(jg.grad(f)(x) * w))(x)
    np.testing.assert_allclose(jg.jit(hvp)(x), hvp(x), rtol=1e-8, atol=1e-10)
    forward = lambda x: jg.jvp(jg.grad(f), (x,), (w,))[1]
    np.testing.assert_allclose(jg.jit(forward)(x), hvp(x), rtol=1e-8, atol=1e-10)


def test_one_compile_for_all_sizes():
    g = jg.jit(jg.grad(chain))
    for n in range(2, 12):
        x = rng.standard_normal(n)
        np.testing.assert_allclose(g(x), jg.grad(chain)(x), rtol=1e-12, atol=1e-14)
    assert g.cache_info().compiles == 1


def test_gradient_of_jit_keeps_options_and_static_arguments():
    @jg.jit(static_argnames="power")
    def f(x, power):
        return np.sum(x**power)

    np.testing.assert_allclose(jg.grad(f)(V, power=3), 3 * V**2, rtol=1e-12)
    t = jg.Tensor(V, requires_grad=True)
    f(t, power=2).backward()
    np.testing.assert_allclose(t.grad.numpy(), 2 * V, rtol=1e-12)


def test_linear_regression_under_jit():
    def loss(w, x, b, y):
        y_pred = np.matmul(x, w) + b
        return np.sum(1 / 2 * (y_pred - y) ** 2)

    x, y = A, rng.standard_normal((6, 2))
    w, b = rng.standard_normal((5, 2)), rng.standard_normal(2)
    dw, db = jg.jit(jg.grad(loss, argnums=(0, 2)))(w, x, b, y)
    r = x @ w + b - y
    np.testing.assert_allclose(dw, x.T @ r, rtol=1e-12)
    np.testing.assert_allclose(db, r.sum(0), rtol=1e-12)


def test_per_element_derivatives():
    """Greeks: derivatives of a price by several arguments, summed over elements and so element by element."""

    def price(s, k, t):
        d = (np.log(s / k) + 0.5 * t) / np.sqrt(t)
        return s * jg.erf(d) - k * np.exp(-0.1 * t) * jg.erf(d - np.sqrt(t))

    s, k, t = rng.uniform(0.5, 2.0, (3, 50))
    greeks = jg.jit(jg.grad(lambda s, k, t: np.sum(price(s, k, t)), argnums=(0, 1, 2)))
    for found, i in zip(greeks(s, k, t), range(3), strict=True):
        args = [s, k, t]
        up, down = [list(args) for _ in range(2)]
        up[i], down[i] = args[i] + 1e-6, args[i] - 1e-6
        np.testing.assert_allclose(found, (price(*up) - price(*down)) / 2e-6, rtol=1e-6, atol=1e-8)


def test_check_grads_of_a_jitted_function():
    jg.check_grads(jg.jit(chain), (V,), order=2)


def test_errors_under_jit():
    with pytest.raises(GradientError, match=r"grad needs a scalar output, got f64\[n\]"):
        jg.jit(jg.grad(lambda x: x * 2.0))(V)

    @jg.jit
    def host(x):
        return jg.grad(lambda x: np.sum(np.linalg.inv(x)))(x)

    with pytest.raises(TraceError, match="no gradient for a host call"):
        host(np.eye(3))


def squared(w, x, y):
    return np.mean((x @ w - y) ** 2)


def descent(w, x, y):
    """A gradient inside a loop of the graph."""
    for _ in range(20):
        w = w - 0.1 * jg.grad(squared)(w, x, y)
    return w


def tangent_newton(x):
    """A gradient inside a while loop."""
    while abs(x * x - 2.0) > 1e-10:
        x = x - (x * x - 2.0) / jg.grad(lambda v: v * v - 2.0)(x)
    return x


def pulled(x):
    out, pullback = jg.vjp(lambda x: np.sin(x) * x, x)
    return pullback(out)[0] + pullback(np.ones_like(x))[0]


def step(p, x):
    g = jg.grad(lambda p: np.sum(np.tanh(x @ p["w"] + p["b"])))(p)
    return {k: p[k] - 0.1 * g[k] for k in p}


def through_descent(w, x, y):
    return jg.grad(lambda w: squared(descent(w, x, y), x, y))(w)


DATA = (rng.standard_normal((3, 2)), rng.standard_normal((20, 3)), rng.standard_normal((20, 2)))


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (descent, DATA),
        (tangent_newton, (1.0,)),
        (pulled, (V,)),
        (step, ({"w": DATA[0], "b": DATA[2][0]}, DATA[1])),
        (through_descent, DATA),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_gradients_inside_of_programs(f, args):
    found, expected = jg.pytree.flatten(jg.jit(f)(*args)), jg.pytree.flatten(f(*args))
    assert found[1] == expected[1]
    for a, b in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_hessian_under_jit():
    f = jg.hessian(lambda x: np.sum(x**3) + x[0] * x[1])
    np.testing.assert_allclose(jg.jit(f, specialize="shape")(V), f(V), rtol=1e-12, atol=1e-13)
    with pytest.raises(GradientError, match="needs known sizes"):
        jg.jit(f)(V)
