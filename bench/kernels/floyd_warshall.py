"""Shortest paths between all pairs of nodes (int32), one intermediate node at a time, in place."""

import numpy as np

SIZES = {"tiny": (8,), "small": (60,), "medium": (200,), "large": (600,)}
WRITES = ("path",)


def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, path[:, k, np.newaxis] + path[k])


def loops(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


def loops_with_copied_row(path):
    """Row k apart, so that LLVM sees that it does not change."""
    n = path.shape[0]
    for k in range(n):
        row = path[k].copy()
        for i in range(n):
            first = path[i, k]
            for j in range(n):
                path[i, j] = min(path[i, j], np.int32(first + row[j]))


def initialize(size):
    (n,) = SIZES[size]
    rng = np.random.default_rng(12)
    path = rng.integers(1, 1000, (n, n)).astype(np.int32)
    path[np.arange(n), np.arange(n)] = 0
    path[rng.uniform(0, 1, (n, n)) > 0.7] = 1_000_000
    return (path,)


def element_steps(size):
    (n,) = SIZES[size]
    return n**3


def numba_variants():
    return {"slices": floyd_warshall, "loops": loops, "loops_with_copied_row": loops_with_copied_row}
