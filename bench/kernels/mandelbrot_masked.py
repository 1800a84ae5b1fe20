"""The Mandelbrot set in whole arrays: each step works on the points, chosen by a mask, that have not escaped."""

import numpy as np

#: columns, rows, limit, steps that points take in all
SIZES = {
    "tiny": (9, 7, 12, 342),
    "small": (40, 30, 50, 17860),
    "medium": (120, 120, 200, 710760),
    "large": (300, 300, 200, 4465682),
}
WRITES = ()


def mandelbrot_masked(left, right, bottom, top, columns, rows, limit):
    cx, cy = np.meshgrid(np.linspace(left, right, columns), np.linspace(bottom, top, rows))
    x = np.zeros_like(cx)
    y = np.zeros_like(cy)
    count = np.zeros(cx.shape, np.int64)
    for n in range(limit):
        inside = x * x + y * y <= 4.0
        count[inside] = n + 1
        xi, yi = x[inside], y[inside]
        x[inside] = xi * xi - yi * yi + cx[inside]
        y[inside] = 2.0 * xi * yi + cy[inside]
    return count, x, y


def loops(left, right, bottom, top, columns, rows, limit):
    """Point by point, with an exit of its own."""
    cx = np.linspace(left, right, columns)
    cy = np.linspace(bottom, top, rows)
    count = np.zeros((rows, columns), np.int64)
    x = np.zeros((rows, columns))
    y = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            a = b = 0.0
            n = 0
            while n < limit and a * a + b * b <= 4.0:
                a, b = a * a - b * b + cx[j], 2.0 * a * b + cy[i]
                n += 1
            count[i, j] = n
            x[i, j] = a
            y[i, j] = b
    return count, x, y


def initialize(size):
    columns, rows, limit, _ = SIZES[size]
    return -2.0, 0.6, -1.3, 1.3, columns, rows, limit


def element_steps(size):
    return SIZES[size][3]


def numba_variants():
    return {"loops": loops}
