"""Gauss-Seidel sweeps in two dimensions: the mean of nine points in place, each from its newest neighbours."""

import numpy as np

SIZES = {"tiny": (2, 7), "small": (5, 30), "medium": (30, 120), "large": (50, 250)}
WRITES = ("A",)


def seidel_2d(steps, A):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            )
            for j in range(1, n - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


def loops(steps, A):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i, j]
                    + (
                        A[i - 1, j - 1]
                        + A[i - 1, j]
                        + A[i - 1, j + 1]
                        + A[i, j + 1]
                        + A[i + 1, j - 1]
                        + A[i + 1, j]
                        + A[i + 1, j + 1]
                    )
                    + A[i, j - 1]
                ) / 9.0


def initialize(size):
    steps, n = SIZES[size]
    return steps, np.random.default_rng(5).uniform(0, 1, (n, n))


def element_steps(size):
    steps, n = SIZES[size]
    return steps * (n - 2) ** 2


def numba_variants():
    return {"slices": seidel_2d, "loops": loops}
