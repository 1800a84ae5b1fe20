"""Modified Gram-Schmidt: an orthonormal basis of the columns and the triangular factor."""

import numpy as np

SIZES = {"tiny": (8, 5), "small": (30, 24), "medium": (150, 120), "large": (400, 300)}
WRITES = ("A",)


def gram_schmidt(A):
    rows, columns = A.shape
    Q = np.zeros((rows, columns))
    R = np.zeros((columns, columns))
    for k in range(columns):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, columns):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def loops(A):
    rows, columns = A.shape
    Q = np.zeros((rows, columns))
    R = np.zeros((columns, columns))
    for k in range(columns):
        total = 0.0
        for i in range(rows):
            total += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(total)
        for i in range(rows):
            Q[i, k] = A[i, k] / R[k, k]
        for i in range(rows):
            for j in range(k + 1, columns):
                R[k, j] += Q[i, k] * A[i, j]
        for i in range(rows):
            for j in range(k + 1, columns):
                A[i, j] -= Q[i, k] * R[k, j]
    return Q, R


def initialize(size):
    rows, columns = SIZES[size]
    return (np.random.default_rng(9).uniform(-1, 1, (rows, columns)),)


def element_steps(size):
    rows, columns = SIZES[size]
    return rows * columns * columns


def numba_variants():
    return {"slices": gram_schmidt, "loops": loops}
