"""The Mandelbrot set point by point: a loop for each, left as soon as the point escapes."""

import numpy as np

#: columns, rows, limit, steps that points take in all
SIZES = {
    "tiny": (9, 7, 12, 342),
    "small": (30, 24, 50, 10536),
    "medium": (100, 100, 150, 380678),
    "large": (200, 200, 200, 1977156),
}
WRITES = ()


def mandelbrot_points(left, right, bottom, top, columns, rows, limit):
    count = np.zeros((rows, columns), np.int64)
    dx = (right - left) / (columns - 1)
    dy = (top - bottom) / (rows - 1)
    for i in range(rows):
        for j in range(columns):
            cx, cy = left + j * dx, bottom + i * dy
            x, y = 0.0, 0.0
            for n in range(limit):
                if x * x + y * y > 4.0:
                    break
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                count[i, j] = n + 1
    return count


def loops(left, right, bottom, top, columns, rows, limit):
    """The count in a register."""
    count = np.zeros((rows, columns), np.int64)
    dx = (right - left) / (columns - 1)
    dy = (top - bottom) / (rows - 1)
    for i in range(rows):
        for j in range(columns):
            cx, cy = left + j * dx, bottom + i * dy
            x = y = 0.0
            n = 0
            while n < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                n += 1
            count[i, j] = n
    return count


def initialize(size):
    columns, rows, limit, _ = SIZES[size]
    return -2.0, 0.6, -1.3, 1.3, columns, rows, limit


def element_steps(size):
    return SIZES[size][3]


def numba_variants():
    return {"as_is": mandelbrot_points, "loops": loops}
