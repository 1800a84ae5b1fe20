"""Jacobi sweeps in two dimensions: each point becomes the mean of itself and its four neighbours, back and forth."""

import numpy as np

SIZES = {"tiny": (3, 8), "small": (20, 40), "medium": (100, 250), "large": (100, 1300)}
WRITES = ("A", "B")


def jacobi_2d(steps, A, B):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def loops(steps, A, B):
    rows, columns = A.shape
    for _ in range(steps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def initialize(size):
    steps, n = SIZES[size]
    rng = np.random.default_rng(2)
    return steps, rng.uniform(0, 1, (n, n)), rng.uniform(0, 1, (n, n))


def element_steps(size):
    steps, n = SIZES[size]
    return 2 * steps * (n - 2) ** 2


def numba_variants():
    return {"slices": jacobi_2d, "loops": loops}
