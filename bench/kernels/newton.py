"""Newton's iteration for the real root of x**3 + p*x = q, for each q: `while abs(f(x)) > tol`, an early return, errors."""

import numpy as np

#: roots, steps that all take
SIZES = {"tiny": (6, 37), "small": (100, 580), "medium": (5000, 28_548), "large": (100_000, 572_113)}
WRITES = ()


def f(x, p, q):
    return x * x * x + p * x - q


def root(p, q, tol, limit):
    if q == 0.0:
        return 0.0
    x = q
    steps = 0
    while abs(f(x, p, q)) > tol:
        slope = 3.0 * x * x + p
        if slope == 0.0:
            raise ZeroDivisionError("the tangent is level")
        x -= f(x, p, q) / slope
        steps += 1
        if steps > limit:
            raise RuntimeError(f"no root for q = {q} after {limit} steps")
    return x


def newton(p, values, tol, limit):
    roots = np.empty_like(values)
    for i in range(values.shape[0]):
        roots[i] = root(p, values[i], tol, limit)
    return roots


def loop_root(p, q, tol, limit):
    """f once a step; an error's text is constant, as numba asks for."""
    if q == 0.0:
        return 0.0
    x = q
    steps = 0
    value = f(x, p, q)
    while abs(value) > tol:
        slope = 3.0 * x * x + p
        if slope == 0.0:
            raise ZeroDivisionError("the tangent is level")
        x -= value / slope
        value = f(x, p, q)
        steps += 1
        if steps > limit:
            raise RuntimeError("no root")
    return x


def loops(p, values, tol, limit):
    roots = np.empty_like(values)
    for i in range(values.shape[0]):
        roots[i] = loop_root(p, values[i], tol, limit)
    return roots


def initialize(size):
    n, _ = SIZES[size]
    values = np.random.default_rng(27).uniform(-10, 10, n)
    values[::7] = 0.0
    return 2.0, values, 1e-9, 100


def element_steps(size):
    return SIZES[size][1]


def numba_variants():
    return {"as_is": newton, "loops": loops}
