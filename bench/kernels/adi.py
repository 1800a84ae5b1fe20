"""Alternating direction implicit diffusion: tridiagonal solves along the columns, then along the rows."""

import numpy as np

SIZES = {"tiny": (2, 7), "small": (5, 30), "medium": (20, 200), "large": (20, 500)}
WRITES = ("u",)


def adi(steps, u):
    n = u.shape[0]
    v, p, q = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    across, along = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b, d, e = -0.5 * across, 1.0 + across, -0.5 * along, 1.0 + along
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -a / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (-d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - d * u[j, 2:] - a * q[1:-1, j - 1]) / (
                a * p[1:-1, j - 1] + b
            )
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]

        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -d / (d * p[1:-1, j - 1] + e)
            q[1:-1, j] = (-a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - a * v[2:, j] - d * q[1:-1, j - 1]) / (
                d * p[1:-1, j - 1] + e
            )
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


def loops(steps, u):
    n = u.shape[0]
    v, p, q = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    across, along = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b, d, e = -0.5 * across, 1.0 + across, -0.5 * along, 1.0 + along
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                below = a * p[i, j - 1] + b
                p[i, j] = -a / below
                q[i, j] = (-d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]) / below
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                below = d * p[i, j - 1] + e
                p[i, j] = -d / below
                q[i, j] = (-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]) / below
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def loops_transposed(steps, u):
    """The recurrence outside, independent systems inside, p and q stored along the systems: LLVM can vectorise."""
    n = u.shape[0]
    v, p, q = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    across, along = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b, d, e = -0.5 * across, 1.0 + across, -0.5 * along, 1.0 + along
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[0, i] = 0.0
            q[0, i] = 1.0
        for j in range(1, n - 1):
            for i in range(1, n - 1):
                below = a * p[j - 1, i] + b
                p[j, i] = -a / below
                q[j, i] = (-d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[j - 1, i]) / below
        for i in range(1, n - 1):
            v[n - 1, i] = 1.0
        for j in range(n - 2, 0, -1):
            for i in range(1, n - 1):
                v[j, i] = p[j, i] * v[j + 1, i] + q[j, i]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[0, i] = 0.0
            q[0, i] = 1.0
        for j in range(1, n - 1):
            for i in range(1, n - 1):
                below = d * p[j - 1, i] + e
                p[j, i] = -d / below
                q[j, i] = (-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[j - 1, i]) / below
        for i in range(1, n - 1):
            u[i, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            for i in range(1, n - 1):
                u[i, j] = p[j, i] * u[i, j + 1] + q[j, i]


def initialize(size):
    steps, n = SIZES[size]
    return steps, np.random.default_rng(6).uniform(0, 1, (n, n))


def element_steps(size):
    steps, n = SIZES[size]
    return 2 * steps * (n - 2) ** 2


def numba_variants():
    return {"slices": adi, "loops": loops, "loops_transposed": loops_transposed}
