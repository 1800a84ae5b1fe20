"""Random numbers: NumPy's generators draw the same stream as in plain Python; `jg.random` by explicit keys."""

# ruff: noqa: B007, RUF007

import random

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e.scenarios import Scenarios, attempt

stories = Scenarios()
X = np.arange(1.0, 6.0)


@stories.add
def functions_of_the_module(jit):
    @jit
    def f(x):
        a = np.random.rand(3)
        b = np.random.randn(2, 2)
        c = np.random.normal(0.0, 2.0, size=x.shape)
        d = np.random.uniform(-1, 1)
        e = np.random.randint(0, 10, size=4)
        g = np.random.randint(5)
        h = np.random.permutation(5)
        i = np.random.choice(5, 3, replace=False)
        j = np.random.random()
        k = np.random.standard_normal(x.shape[0])
        return x + c, a, b, d, e, g, h, i, j, k, np.random.exponential(2.0, 3), np.random.poisson(3.0, 2)

    np.random.seed(3)
    for _ in range(3):
        yield f(X)
    yield f(np.ones(8))
    np.random.seed(3)
    yield f(X)


@stories.add
def the_seed_is_set_inside(jit):
    @jit
    def f(x, seed):
        np.random.seed(seed)
        return x + np.random.rand(5)

    yield f(X, 1), f(X, 1), f(X, 2)


@stories.add
def a_generator_as_an_argument(jit):
    @jit
    def f(rng, x):
        y = x + rng.normal(size=x.shape)
        if y.sum() > 15:
            y = y * rng.random()
        return y, rng.integers(0, 10), rng.integers(0, 10, size=3, dtype=np.int32), rng.random(dtype=np.float32)

    rng = np.random.default_rng(5)
    for _ in range(4):
        yield f(rng, X)
    other = np.random.default_rng(6)
    yield f(other, X), f(rng, X)


@stories.add
def a_generator_in_a_closure_and_an_attribute(jit):
    rng = np.random.default_rng(1)

    class Layer:
        def __init__(self, seed):
            self.rng = np.random.default_rng(seed)
            self.rate = 0.5

        def __call__(self, x):
            return np.where(self.rng.random(x.shape) < self.rate, x, 0.0)

    @jit
    def f(layer, x):
        return layer(x) + rng.standard_normal(x.shape)

    a = Layer(2)
    for layer in (a, a, Layer(3), a):
        yield f(layer, X)


@stories.add
def a_legacy_random_state(jit):
    @jit
    def f(r, x):
        return x * r.rand(5) + r.randint(3), r.randn()

    r = np.random.RandomState(0)
    for _ in range(3):
        yield f(r, X)


@stories.add
def a_generator_made_inside(jit):
    @jit
    def f(x, seed):
        rng = np.random.default_rng(seed)
        return x + rng.normal(size=5), rng.random()

    @jit
    def g(x):
        rng = np.random.default_rng(42)
        noise = rng.uniform(size=(3, 2))
        state = np.random.RandomState(7)
        return x + rng.normal(size=5), noise, state.rand(2)

    @jit
    def h(x):
        rng = np.random.Generator(np.random.PCG64(3))
        return x * rng.random()

    for _ in range(2):
        yield f(X, 1), f(X, 2), g(X), h(X)


@stories.add
def draws_in_loops_and_branches(jit):
    @jit
    def f(rng, x, n):
        total = np.zeros(5)
        for i in range(n):
            step = rng.normal(size=5)
            if step[0] > 0:
                total += step
            else:
                total -= rng.random(5) * x
        return total

    rng = np.random.default_rng(9)
    for n in (0, 1, 10, 100):
        yield f(rng, X, n)


@stories.add
def monte_carlo(jit):
    @jit
    def pi(n):
        x = np.random.rand(n)
        y = np.random.rand(n)
        return 4 * (x**2 + y**2 < 1).mean()

    np.random.seed(0)
    for n in (10, 1000, 1001):
        yield pi(n)


@stories.add
def random_walk(jit):
    @jit
    def walk(rng, n):
        position = np.zeros(n + 1)
        for k in range(n):
            position[k + 1] = position[k] + (1.0 if rng.random() < 0.5 else -1.0)
        return position

    rng = np.random.default_rng(0)
    yield walk(rng, 50), walk(rng, 20)


@stories.add
def shuffles(jit):
    @jit
    def f(rng, x):
        rng.shuffle(x)
        y = rng.permutation(x)
        return y, rng.permuted(np.arange(4)), rng.choice(x, 3)

    rng = np.random.default_rng(0)
    x = np.arange(8.0)
    for _ in range(3):
        yield f(rng, x), x


@stories.add
def shuffle_of_the_module(jit):
    @jit
    def f(x):
        np.random.shuffle(x)
        return x

    np.random.seed(1)
    x = np.arange(6)
    yield f(x), x, f(x) is x


@stories.add
def parameters_that_are_traced(jit):
    @jit
    def f(rng, mu, sigma, p, n):
        return (
            rng.normal(mu, sigma),
            rng.normal(mu.mean(), sigma[0], size=3),
            rng.binomial(n, p),
            rng.uniform(0.0, sigma, size=(2, 5)),
            rng.integers(0, n),
            rng.gamma(2.0, size=n),
        )

    rng = np.random.default_rng(4)
    yield f(rng, X, X / 10, 0.3, 7), f(rng, X + 1, X, 0.5, 9)


@stories.add
def dropout_and_init(jit):
    def init(rng, sizes):
        return [(rng.normal(0, 0.1, (m, n)), np.zeros(n)) for m, n in zip(sizes[:-1], sizes[1:], strict=True)]

    @jit
    def f(rng, x, rate):
        params = init(rng, (5, 4, 3))
        for w, b in params:
            x = np.tanh(x @ w + b)
            keep = rng.random(x.shape) > rate
            x = x * keep / (1 - rate)
        return x

    rng = np.random.default_rng(4)
    yield f(rng, np.ones((2, 5)), 0.2), f(rng, np.ones((2, 5)), 0.2)


@stories.add
def python_random(jit):
    @jit
    def f(x):
        return x * random.random() + random.uniform(0, 2), random.randint(0, 9), random.gauss(0, 1)

    random.seed(3)
    yield f(X), f(X)

    @jit
    def g(r, x):
        return x * r.random(), r.choice([1.0, 2.0, 3.0])

    r = random.Random(3)
    yield g(r, X), g(r, X), f(X)


@stories.add
def python_seed_inside(jit):
    @jit
    def f(x):
        random.seed(5)
        return x * random.random()

    yield f(X), f(X)


@stories.add
def draws_into_arrays(jit):
    @jit
    def f(rng, x):
        rng.random(out=x)
        rng.standard_normal(out=x[1:3])
        return x.sum()

    rng = np.random.default_rng(0)
    x = np.zeros(5)
    for _ in range(2):
        yield f(rng, x), x.copy()


@stories.add
def errors_of_generators(jit):
    @jit
    def f(rng, s):
        return rng.normal(0.0, s, 3)

    rng = np.random.default_rng(0)
    yield f(rng, 1.0), attempt(f, rng, -1.0), f(rng, 2.0)


@stories.add
def a_kind_that_depends_on_a_draw(jit):
    @jit
    def f(rng):
        u = rng.random()
        return 1 if u < 0.5 else u

    rng = np.random.default_rng(0)
    for _ in range(6):
        yield f(rng)


@stories.refused("Generator.spawn", "rng.spawn(2)")
def spawned_generators(jit):
    @jit
    def f(rng, x):
        a, b = rng.spawn(2)
        return x + a.random() + b.random()

    yield f(np.random.default_rng(0), X)


@stories.refused("Generator.bit_generator", "rng.bit_generator.state")
def state_of_a_generator(jit):
    @jit
    def f(rng, x):
        return x * rng.bit_generator.state["has_uint32"]

    yield f(np.random.default_rng(0), X)


test_random = stories.tests()
assert jg
assert pytest
