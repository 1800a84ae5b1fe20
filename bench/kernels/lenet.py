"""LeNet, forward: two convolutions by slices with rectifiers and 2x2 maxima, three dense layers (float32)."""

import numpy as np

#: pictures, height, width
SIZES = {"tiny": (2, 16, 20), "small": (4, 28, 28), "medium": (8, 28, 28), "large": (16, 64, 64)}
WRITES = ()


def relu(x):
    return np.maximum(x, np.float32(0.0))


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


def largest_of_four(x):
    n, rows, columns, channels = x.shape
    result = np.empty((n, rows // 2, columns // 2, channels), x.dtype)
    for i in range(rows // 2):
        for j in range(columns // 2):
            result[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return result


def lenet(pictures, conv1, bias1, conv2, bias2, dense1, bias3, dense2, bias4, dense3, bias5):
    x = relu(conv2d(pictures, conv1) + bias1)
    x = largest_of_four(x)
    x = relu(conv2d(x, conv2) + bias2)
    x = largest_of_four(x)
    x = np.reshape(x, (x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]))
    x = relu(x @ dense1 + bias3)
    x = relu(x @ dense2 + bias4)
    return x @ dense3 + bias5


def loop_conv2d_relu(pictures, weights, bias):
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
                    result[b, i, j, o] = max(total[o] + bias[o], np.float32(0.0))
    return result


def loop_largest(x):
    n, rows, columns, channels = x.shape
    result = np.empty((n, rows // 2, columns // 2, channels), x.dtype)
    for b in range(n):
        for i in range(rows // 2):
            for j in range(columns // 2):
                for c in range(channels):
                    result[b, i, j, c] = max(
                        max(x[b, 2 * i, 2 * j, c], x[b, 2 * i, 2 * j + 1, c]),
                        max(x[b, 2 * i + 1, 2 * j, c], x[b, 2 * i + 1, 2 * j + 1, c]),
                    )
    return result


def loops(pictures, conv1, bias1, conv2, bias2, dense1, bias3, dense2, bias4, dense3, bias5):
    x = loop_largest(loop_conv2d_relu(pictures, conv1, bias1))
    x = loop_largest(loop_conv2d_relu(x, conv2, bias2))
    x = np.reshape(x, (x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]))
    x = np.maximum(x @ dense1 + bias3, np.float32(0.0))
    x = np.maximum(x @ dense2 + bias4, np.float32(0.0))
    return x @ dense3 + bias5


def initialize(size):
    n, rows, columns = SIZES[size]
    rng = np.random.default_rng(20)

    def draw(*shape):
        return rng.uniform(-0.5, 0.5, shape).astype(np.float32)

    flat = ((rows - 4) // 2 - 4) // 2 * (((columns - 4) // 2 - 4) // 2) * 16
    return (
        draw(n, rows, columns, 1), draw(5, 5, 1, 6), draw(6), draw(5, 5, 6, 16), draw(16),
        draw(flat, 120), draw(120), draw(120, 84), draw(84), draw(84, 10), draw(10),
    )  # fmt: skip


def element_steps(size):
    n, rows, columns = SIZES[size]
    r2, c2 = (rows - 4) // 2 - 4, (columns - 4) // 2 - 4
    return n * ((rows - 4) * (columns - 4) * 150 + r2 * c2 * 2400)


def numba_variants():
    return {"loops": loops}
