"""A two-dimensional convolution of pictures (float32, channels last): slices, summed over window and input channels."""

import numpy as np

#: pictures, height, width, input channels, output channels, width of the window
SIZES = {
    "tiny": (2, 6, 7, 3, 4, 3),
    "small": (2, 20, 20, 3, 8, 3),
    "medium": (4, 104, 104, 3, 16, 5),
    "large": (8, 104, 104, 16, 16, 5),
}
WRITES = ()


def conv2d(pictures, weights):
    width = weights.shape[0]
    n, rows, columns, _ = pictures.shape
    rows, columns = rows - width + 1, columns - width + 1
    result = np.empty((n, rows, columns, weights.shape[3]), np.float32)
    for i in range(rows):
        for j in range(columns):
            result[:, i, j, :] = np.sum(
                pictures[:, i : i + width, j : j + width, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return result


def loops(pictures, weights):
    width, _, inputs, outputs = weights.shape
    n, rows, columns, _ = pictures.shape
    rows, columns = rows - width + 1, columns - width + 1
    result = np.zeros((n, rows, columns, outputs), np.float32)
    for b in range(n):
        for i in range(rows):
            for j in range(columns):
                for di in range(width):
                    for dj in range(width):
                        for c in range(inputs):
                            value = pictures[b, i + di, j + dj, c]
                            for o in range(outputs):
                                result[b, i, j, o] += value * weights[di, dj, c, o]
    return result


def loops_with_row(pictures, weights):
    """The sums of one pixel in an array of their own."""
    width, _, inputs, outputs = weights.shape
    n, rows, columns, _ = pictures.shape
    rows, columns = rows - width + 1, columns - width + 1
    result = np.empty((n, rows, columns, outputs), np.float32)
    total = np.empty(outputs, np.float32)
    for b in range(n):
        for i in range(rows):
            for j in range(columns):
                for o in range(outputs):
                    total[o] = 0.0
                for di in range(width):
                    for dj in range(width):
                        for c in range(inputs):
                            value = pictures[b, i + di, j + dj, c]
                            for o in range(outputs):
                                total[o] += value * weights[di, dj, c, o]
                for o in range(outputs):
                    result[b, i, j, o] = total[o]
    return result


def initialize(size):
    n, rows, columns, inputs, outputs, width = SIZES[size]
    rng = np.random.default_rng(19)
    return (
        rng.uniform(0, 1, (n, rows, columns, inputs)).astype(np.float32),
        rng.uniform(-1, 1, (width, width, inputs, outputs)).astype(np.float32),
    )


def element_steps(size):
    n, rows, columns, inputs, outputs, width = SIZES[size]
    return n * (rows - width + 1) * (columns - width + 1) * inputs * outputs * width * width


def numba_variants():
    return {"loops": loops, "loops_with_row": loops_with_row}
