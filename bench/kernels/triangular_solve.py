"""Forward substitution with a lower triangular matrix, row by row."""

import numpy as np

SIZES = {"tiny": (8,), "small": (64,), "medium": (400,), "large": (2000,)}
WRITES = ()


def triangular_solve(L, b):
    x = np.empty_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def loops(L, b):
    x = np.empty_like(b)
    for i in range(b.shape[0]):
        total = 0.0
        for j in range(i):
            total += L[i, j] * x[j]
        x[i] = (b[i] - total) / L[i, i]
    return x


def initialize(size):
    (n,) = SIZES[size]
    rng = np.random.default_rng(11)
    L = np.tril(rng.uniform(-1, 1, (n, n)))
    L[np.arange(n), np.arange(n)] = n
    return L, rng.uniform(-1, 1, n)


def element_steps(size):
    (n,) = SIZES[size]
    return n * n / 2


def numba_variants():
    return {"slices": triangular_solve, "loops": loops}
