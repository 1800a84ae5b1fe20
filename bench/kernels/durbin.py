"""Durbin's recursion: the Yule-Walker equations of a symmetric Toeplitz matrix."""

import numpy as np

SIZES = {"tiny": (8,), "small": (60,), "medium": (400,), "large": (4000,)}
WRITES = ()


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = alpha
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def loops(r):
    n = r.shape[0]
    y = np.empty_like(r)
    z = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = alpha
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        total = 0.0
        for i in range(k):
            total += r[k - 1 - i] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - 1 - i]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def initialize(size):
    (n,) = SIZES[size]
    return (0.9 ** np.arange(1, n + 1) * np.random.default_rng(10).uniform(0.0, 0.5, n),)


def element_steps(size):
    (n,) = SIZES[size]
    return n * n


def numba_variants():
    return {"slices": durbin, "loops": loops}
