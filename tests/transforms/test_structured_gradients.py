"""Gradients through `jg.cond, switch, while_loop, fori_loop, scan, map, associative_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

ROWS = np.random.default_rng(5).random((12, 3)) + 0.5

GRADIENTS: dict[str, tuple[Callable[..., Any], Any]] = {
    "scan": (lambda xs: jg.scan(lambda c, x: (np.tanh(c * x + c), c.sum() * x), np.ones(3), xs)[1].sum(), ROWS),
    "scan, last": (lambda xs: jg.scan(lambda c, x: (np.tanh(c * x + c), None), np.ones(3), xs)[0].sum(), ROWS),
    "reverse": (lambda xs: jg.scan(lambda c, x: (c * x, c), 1.0, xs, reverse=True)[1].sum(), ROWS[:, 0].copy()),
    "map": (lambda xs: jg.map(lambda x: np.exp(x) @ x, xs).sum(), ROWS),
    "fori_loop": (lambda xs: jg.fori_loop(0, ROWS.shape[0], lambda i, c: np.sin(c + xs[i]), np.zeros(3)).sum(), ROWS),
    "cond": (lambda x: jg.cond(x.sum() > 0, lambda v: (v * v).sum(), lambda v: np.exp(v).sum(), x), ROWS),
    "associative_scan": (
        lambda x: jg.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x * 2))[1].sum(),
        ROWS[:, 0].copy(),
    ),
    "while_loop": (
        lambda a: jg.while_loop(
            lambda s: abs(s[0] * s[0] - a) > 1e-12, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), (1.0, 0)
        )[0],
        np.float64(2.0),
    ),
    "nested": (
        lambda xs: jg.scan(lambda c, r: (c + jg.scan(lambda a, v: (a * v, a), 1.0, r)[1].sum(), None), 0.0, xs)[0],
        ROWS,
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    f, x = GRADIENTS[name]
    eager = jg.grad(f)(x)
    step, turn = 1e-6, np.random.default_rng(1).standard_normal(np.shape(x))
    slope = (f(x + step * turn) - f(x - step * turn)) / (2 * step)
    assert np.sum(eager * turn) == pytest.approx(slope, rel=1e-5)
    np.testing.assert_allclose(jg.jit(jg.grad(f))(x), eager, rtol=1e-9)


def test_gradient_of_a_switch() -> None:
    def f(x, k):
        return jg.switch(k, [lambda v: (v * v).sum(), lambda v: np.exp(v).sum(), lambda v: (v @ v.T).sum()], x)

    for k, wanted in enumerate([2 * ROWS, np.exp(ROWS), np.broadcast_to(2 * ROWS.sum(0), ROWS.shape)]):
        np.testing.assert_allclose(jg.grad(f)(ROWS, k), wanted)
        np.testing.assert_allclose(jg.jit(jg.grad(f))(ROWS, k), wanted)
        found, tangent = jg.jit(lambda x, t, k: jg.jvp(lambda x: f(x, k), (x,), (t,)))(ROWS, np.ones_like(ROWS), k)
        np.testing.assert_allclose(found, f(ROWS, k))
        np.testing.assert_allclose(tangent, np.sum(wanted))


def test_tensors_in_tensors_out() -> None:
    x = jg.Tensor(ROWS, requires_grad=True)
    state, rows = jg.scan(lambda c, r: (c + r, c * r), np.zeros(3), x)
    assert type(state) is jg.Tensor
    assert type(rows) is jg.Tensor
    (rows.sum() + state.sum()).backward()
    wanted = jg.grad(lambda x: sum(p.sum() for p in jg.scan(lambda c, r: (c + r, c * r), np.zeros(3), x)))(ROWS)
    np.testing.assert_allclose(x.grad.numpy(), wanted)
