"""A sparse matrix, stored by row pointers, times a vector: a gather and a dot product for each row."""

import numpy as np

#: rows, elements a row on average
SIZES = {"tiny": (9, 3), "small": (100, 8), "medium": (4096, 20), "large": (100_000, 12)}
WRITES = ()


def spmv(starts, columns, values, x):
    y = np.empty(starts.shape[0] - 1, values.dtype)
    for i in range(y.shape[0]):
        here = columns[starts[i] : starts[i + 1]]
        y[i] = values[starts[i] : starts[i + 1]] @ x[here]
    return y


def loops(starts, columns, values, x):
    y = np.empty(starts.shape[0] - 1, values.dtype)
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
    return y


def initialize(size):
    rows, each = SIZES[size]
    rng = np.random.default_rng(26)
    starts = np.concatenate(([0], np.cumsum(rng.integers(0, 2 * each + 1, rows)))).astype(np.int64)
    columns = rng.integers(0, rows, starts[-1]).astype(np.int64)
    return starts, columns, rng.uniform(-1, 1, starts[-1]), rng.uniform(-1, 1, rows)


def element_steps(size):
    rows, each = SIZES[size]
    return rows * each


def numba_variants():
    return {"slices": spmv, "loops": loops}
