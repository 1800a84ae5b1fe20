"""Maxwell's equations in two dimensions by finite differences in time: two electric fields and a magnetic one."""

import numpy as np

SIZES = {"tiny": (3, 7, 9), "small": (20, 50, 60), "medium": (100, 200, 220), "large": (100, 900, 1000)}
WRITES = ("ex", "ey", "hz")


def fdtd_2d(steps, ex, ey, hz, source):
    for t in range(steps):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def loops(steps, ex, ey, hz, source):
    rows, columns = hz.shape
    for t in range(steps):
        for j in range(columns):
            ey[0, j] = source[t]
        for i in range(1, rows):
            for j in range(columns):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(rows):
            for j in range(1, columns):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(rows - 1):
            for j in range(columns - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def initialize(size):
    steps, rows, columns = SIZES[size]
    rng = np.random.default_rng(4)
    ex, ey, hz = (rng.uniform(0, 1, (rows, columns)) for _ in range(3))
    return steps, ex, ey, hz, np.sin(0.1 * np.arange(steps))


def element_steps(size):
    steps, rows, columns = SIZES[size]
    return steps * rows * columns


def numba_variants():
    return {"slices": fdtd_2d, "loops": loops}
