"""The microbenchmarks: each a NumPy function of one namespace argument, its inputs, and the bytes it must move.

`make(xp)` builds the function over a NumPy-like namespace, so that every contestant runs the same source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One benchmark.

    Attributes:
        make: namespace -> function.
        inputs: (n, dtype) -> arguments, about n elements in all per array.
        moved: how many arrays of n elements are read or written at least once (for the share of the bandwidth).
        numexpr: the same as a numexpr expression over a, b, c, or "".
        tolerance: allowed relative difference from NumPy (0 demands the same bits of jitgraph).
        skip: contestants that cannot run the source.
    """

    name: str
    group: str
    make: Callable[[Any], Callable[..., Any]]
    inputs: Callable[[int, str], tuple[Any, ...]]
    moved: float
    numexpr: str = ""
    tolerance: float = 0.0
    skip: tuple[str, ...] = ()


def vectors(count: int, low: float = 0.1, high: float = 1.5) -> Callable[[int, str], tuple[Any, ...]]:
    def inputs(n: int, dtype: str) -> tuple[Any, ...]:
        rng = np.random.default_rng(n)
        return tuple(rng.uniform(low, high, n).astype(dtype) for _ in range(count))

    return inputs


def square(n: int, dtype: str, columns: int | None = None) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    width = columns or max(int(n**0.5), 2)
    return (rng.uniform(-1, 1, (max(n // width, 2), width)).astype(dtype),)


def rows512(n: int, dtype: str) -> tuple[Any, ...]:
    return square(n, dtype, min(512, n // 2))


def saxpy(xp):
    def f(x, y):
        return 2.0 * x + y

    return f


def chain(xp):
    def f(x, y):
        return xp.sqrt(xp.exp(-x * x) + y * y) * xp.tanh(x) - 0.5 * y

    return f


def poly8(xp):
    def f(x):
        y = x * 0.1 + 0.2
        for c in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            y = y * x + c
        return y

    return f


def expsin(xp):
    def f(x):
        return xp.exp(-x * x) * xp.sin(x)

    return f


def sigmoid(xp):
    def f(x):
        return 1.0 / (1.0 + xp.exp(-x))

    return f


def where_log(xp):
    def f(x, y):
        return xp.where(x > y, xp.log1p(x), y * y)

    return f


def total(xp):
    def f(x):
        return xp.sum(x)

    return f


def squares_mean(xp):
    def f(x, y):
        d = x - y
        return xp.mean(d * d)

    return f


def variance(xp):
    def f(x):
        return xp.var(x)

    return f


def largest(xp):
    def f(x):
        return xp.max(x)

    return f


def where_largest(xp):
    def f(x):
        return xp.argmax(x)

    return f


def column_sums(xp):
    def f(x):
        return xp.sum(x * x, 0)

    return f


def softmax(xp):
    def f(x):
        e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    return f


def layer_norm(xp):
    def f(x):
        d = x - xp.mean(x, axis=1, keepdims=True)
        return d / xp.sqrt(xp.mean(d * d, axis=1, keepdims=True) + 1e-5)

    return f


def outer_scale(xp):
    def f(x):
        return x * x[0] + x[:, 0][:, None]

    return f


def transposed_add(xp):
    def f(x):
        return x + x.T

    return f


def stencil5(xp):
    def f(x):
        return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])

    return f


CASES: tuple[Case, ...] = (
    Case("saxpy", "chain", saxpy, vectors(2), 3, "2*a + b"),
    Case("sqrt_exp_tanh", "chain", chain, vectors(2), 3, "sqrt(exp(-a*a) + b*b)*tanh(a) - 0.5*b", 1e-5),
    Case("poly8", "chain", poly8, vectors(1), 2),
    Case("expsin", "chain", expsin, vectors(1), 2, "exp(-a*a)*sin(a)", 1e-5),
    Case("sigmoid", "chain", sigmoid, vectors(1), 2, "1/(1 + exp(-a))", 1e-5),
    Case("where_log1p", "chain", where_log, vectors(2), 3, "where(a > b, log1p(a), b*b)", 1e-5),
    Case("sum", "reduce", total, vectors(1), 1),
    Case("mean_square", "reduce", squares_mean, vectors(2), 2),
    Case("var", "reduce", variance, vectors(1), 1),
    Case("max", "reduce", largest, vectors(1), 1),
    Case("argmax", "reduce", where_largest, vectors(1), 1),
    Case("column_sums", "reduce", column_sums, square, 1),
    Case("softmax", "rows", softmax, rows512, 2, "", 1e-5, ("numba",)),
    Case("layer_norm", "rows", layer_norm, rows512, 2, "", 1e-5, ("numba",)),
    Case("outer_scale", "broadcast", outer_scale, square, 2),
    Case(
        "transposed_add",
        "broadcast",
        transposed_add,
        lambda n, d: (square(n, d)[0][: int(n**0.5), : int(n**0.5)].copy(),),
        3,
    ),
    Case("stencil5", "stencil", stencil5, square, 2),
)
