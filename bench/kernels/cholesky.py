"""Cholesky factorisation in place, in the lower triangle: rows of dot products."""

import numpy as np

SIZES = {"tiny": (7,), "small": (30,), "medium": (150,), "large": (500,)}
WRITES = ("A",)


def cholesky(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def loops(A):
    for i in range(A.shape[0]):
        for j in range(i):
            total = 0.0
            for k in range(j):
                total += A[i, k] * A[j, k]
            A[i, j] = (A[i, j] - total) / A[j, j]
        total = 0.0
        for k in range(i):
            total += A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i] - total)


def initialize(size):
    (n,) = SIZES[size]
    A = np.random.default_rng(8).uniform(-1, 1, (n, n))
    return (A @ A.T + n * np.eye(n),)


def element_steps(size):
    (n,) = SIZES[size]
    return n**3 / 6


def numba_variants():
    return {"slices": cholesky, "loops": loops}
