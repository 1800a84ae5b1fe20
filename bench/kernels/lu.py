"""LU factorisation in place, without pivoting: each element by a dot product of what is done left and above."""

import numpy as np

SIZES = {"tiny": (7,), "small": (30,), "medium": (150,), "large": (500,)}
WRITES = ("A",)


def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def loops(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            total = 0.0
            for k in range(j):
                total += A[i, k] * A[k, j]
            A[i, j] = (A[i, j] - total) / A[j, j]
        for j in range(i, n):
            total = 0.0
            for k in range(i):
                total += A[i, k] * A[k, j]
            A[i, j] -= total


def right_looking(A):
    n = A.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            factor = A[i, k]
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]


def initialize(size):
    (n,) = SIZES[size]
    A = np.random.default_rng(7).uniform(-1, 1, (n, n))
    A[np.arange(n), np.arange(n)] += n
    return (A,)


def element_steps(size):
    (n,) = SIZES[size]
    return n**3 / 3


def numba_variants():
    return {"slices": lu, "loops": loops, "right_looking": right_looking}
