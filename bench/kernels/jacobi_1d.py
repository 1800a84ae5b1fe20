"""Jacobi sweeps in one dimension: each point becomes the mean of itself and its two neighbours, back and forth."""

import numpy as np

SIZES = {"tiny": (4, 9), "small": (100, 400), "medium": (200, 4000), "large": (1000, 32000)}
WRITES = ("A", "B")


def jacobi_1d(steps, A, B):
    for _ in range(steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def loops(steps, A, B):
    for _ in range(steps):
        for i in range(1, A.shape[0] - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, A.shape[0] - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


def initialize(size):
    steps, n = SIZES[size]
    rng = np.random.default_rng(1)
    return steps, rng.uniform(0, 1, n), rng.uniform(0, 1, n)


def element_steps(size):
    steps, n = SIZES[size]
    return 2 * steps * (n - 2)


def numba_variants():
    return {"slices": jacobi_1d, "loops": loops}
