"""Deriche's recursive filter of a picture: forward and backward along the rows, then along the columns."""

import numpy as np

SIZES = {"tiny": (7, 9), "small": (40, 60), "medium": (200, 240), "large": (800, 1000)}
WRITES = ()
TOLERANCE = 1e-12  # exp


def deriche(alpha, picture):
    rows, columns = picture.shape
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)

    first = np.empty_like(picture)
    second = np.empty_like(picture)
    first[:, 0] = a1 * picture[:, 0]
    first[:, 1] = a1 * picture[:, 1] + a2 * picture[:, 0] + b1 * first[:, 0]
    for j in range(2, columns):
        first[:, j] = a1 * picture[:, j] + a2 * picture[:, j - 1] + b1 * first[:, j - 1] + b2 * first[:, j - 2]
    second[:, -1] = 0.0
    second[:, -2] = a3 * picture[:, -1]
    for j in range(columns - 3, -1, -1):
        second[:, j] = a3 * picture[:, j + 1] + a4 * picture[:, j + 2] + b1 * second[:, j + 1] + b2 * second[:, j + 2]
    result = first + second

    first[0, :] = a1 * result[0, :]
    first[1, :] = a1 * result[1, :] + a2 * result[0, :] + b1 * first[0, :]
    for i in range(2, rows):
        first[i, :] = a1 * result[i, :] + a2 * result[i - 1, :] + b1 * first[i - 1, :] + b2 * first[i - 2, :]
    second[-1, :] = 0.0
    second[-2, :] = a3 * result[-1, :]
    for i in range(rows - 3, -1, -1):
        second[i, :] = a3 * result[i + 1, :] + a4 * result[i + 2, :] + b1 * second[i + 1, :] + b2 * second[i + 2, :]
    return first + second


def loops(alpha, picture):
    """Along the rows with the state in registers, along the columns row by row."""
    rows, columns = picture.shape
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    first = np.empty_like(picture)
    second = np.empty_like(picture)
    result = np.empty_like(picture)
    for i in range(rows):
        y1 = y2 = x1 = 0.0
        for j in range(columns):
            y = a1 * picture[i, j] + a2 * x1 + b1 * y1 + b2 * y2
            first[i, j] = y
            x1, y2, y1 = picture[i, j], y1, y
        y1 = y2 = x1 = x2 = 0.0
        for j in range(columns - 1, -1, -1):
            y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
            result[i, j] = first[i, j] + y
            x2, x1, y2, y1 = x1, picture[i, j], y1, y
    for j in range(columns):
        first[0, j] = a1 * result[0, j]
        first[1, j] = a1 * result[1, j] + a2 * result[0, j] + b1 * first[0, j]
    for i in range(2, rows):
        for j in range(columns):
            first[i, j] = a1 * result[i, j] + a2 * result[i - 1, j] + b1 * first[i - 1, j] + b2 * first[i - 2, j]
    for j in range(columns):
        second[rows - 1, j] = 0.0
        second[rows - 2, j] = a3 * result[rows - 1, j]
    for i in range(rows - 3, -1, -1):
        for j in range(columns):
            second[i, j] = a3 * result[i + 1, j] + a4 * result[i + 2, j] + b1 * second[i + 1, j] + b2 * second[i + 2, j]
    for i in range(rows):
        for j in range(columns):
            result[i, j] = first[i, j] + second[i, j]
    return result


def initialize(size):
    rows, columns = SIZES[size]
    return 0.25, np.random.default_rng(25).uniform(0, 1, (rows, columns))


def element_steps(size):
    rows, columns = SIZES[size]
    return 4 * rows * columns


def numba_variants():
    return {"slices": deriche, "loops": loops}
