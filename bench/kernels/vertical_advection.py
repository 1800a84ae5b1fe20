"""Vertical advection of a weather model: a tridiagonal solve for each column of air, level by level."""

import numpy as np

SIZES = {"tiny": (4, 5, 6), "small": (16, 16, 20), "medium": (64, 64, 100), "large": (128, 128, 120)}
WRITES = ("tendency",)


def vertical_advection(tendency, stage, wind, position, forcing, rate):
    rows, columns, levels = stage.shape
    c = np.empty((rows, columns, levels))
    d = np.empty((rows, columns, levels))
    minus, plus = 0.5 * (1.0 - 0.1), 0.5 * (1.0 + 0.1)

    for k in range(1):
        flow = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
        c[:, :, k] = flow * plus
        b = rate - c[:, :, k]
        change = -(flow * minus) * (stage[:, :, k + 1] - stage[:, :, k])
        d[:, :, k] = rate * position[:, :, k] + forcing[:, :, k] + tendency[:, :, k] + change
        c[:, :, k] /= b
        d[:, :, k] /= b

    for k in range(1, levels - 1):
        below = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
        above = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
        a = below * plus
        c[:, :, k] = above * plus
        b = rate - a - c[:, :, k]
        change = -(below * minus) * (stage[:, :, k - 1] - stage[:, :, k]) - (above * minus) * (
            stage[:, :, k + 1] - stage[:, :, k]
        )
        d[:, :, k] = rate * position[:, :, k] + forcing[:, :, k] + tendency[:, :, k] + change
        divided = 1.0 / (b - c[:, :, k - 1] * a)
        c[:, :, k] = c[:, :, k] * divided
        d[:, :, k] = (d[:, :, k] - d[:, :, k - 1] * a) * divided

    for k in range(levels - 1, levels):
        below = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
        a = below * plus
        b = rate - a
        change = -(below * minus) * (stage[:, :, k - 1] - stage[:, :, k])
        d[:, :, k] = rate * position[:, :, k] + forcing[:, :, k] + tendency[:, :, k] + change
        divided = 1.0 / (b - c[:, :, k - 1] * a)
        d[:, :, k] = (d[:, :, k] - d[:, :, k - 1] * a) * divided

    found = d[:, :, levels - 1]
    tendency[:, :, levels - 1] = rate * (found - position[:, :, levels - 1])
    for k in range(levels - 2, -1, -1):
        found = d[:, :, k] - c[:, :, k] * found
        tendency[:, :, k] = rate * (found - position[:, :, k])


def loops(tendency, stage, wind, position, forcing, rate):
    """Column by column: levels are next to one another in memory."""
    rows, columns, levels = stage.shape
    c = np.empty(levels)
    d = np.empty(levels)
    minus, plus = 0.5 * (1.0 - 0.1), 0.5 * (1.0 + 0.1)
    for i in range(rows):
        for j in range(columns):
            flow = 0.25 * (wind[i + 1, j, 1] + wind[i, j, 1])
            b = rate - flow * plus
            change = -(flow * minus) * (stage[i, j, 1] - stage[i, j, 0])
            c[0] = flow * plus / b
            d[0] = (rate * position[i, j, 0] + forcing[i, j, 0] + tendency[i, j, 0] + change) / b
            for k in range(1, levels - 1):
                below = -0.25 * (wind[i + 1, j, k] + wind[i, j, k])
                above = 0.25 * (wind[i + 1, j, k + 1] + wind[i, j, k + 1])
                a = below * plus
                change = -(below * minus) * (stage[i, j, k - 1] - stage[i, j, k]) - (above * minus) * (
                    stage[i, j, k + 1] - stage[i, j, k]
                )
                right = rate * position[i, j, k] + forcing[i, j, k] + tendency[i, j, k] + change
                divided = 1.0 / (rate - a - above * plus - c[k - 1] * a)
                c[k] = above * plus * divided
                d[k] = (right - d[k - 1] * a) * divided
            k = levels - 1
            below = -0.25 * (wind[i + 1, j, k] + wind[i, j, k])
            a = below * plus
            change = -(below * minus) * (stage[i, j, k - 1] - stage[i, j, k])
            right = rate * position[i, j, k] + forcing[i, j, k] + tendency[i, j, k] + change
            divided = 1.0 / (rate - a - c[k - 1] * a)
            found = (right - d[k - 1] * a) * divided
            tendency[i, j, k] = rate * (found - position[i, j, k])
            for k in range(levels - 2, -1, -1):
                found = d[k] - c[k] * found
                tendency[i, j, k] = rate * (found - position[i, j, k])


def initialize(size):
    rows, columns, levels = SIZES[size]
    rng = np.random.default_rng(23)
    fields = [rng.uniform(-1, 1, (rows, columns, levels)) for _ in range(4)]
    wind = rng.uniform(-1, 1, (rows + 1, columns, levels))
    return fields[0], fields[1], wind, fields[2], fields[3], 3.0


def element_steps(size):
    rows, columns, levels = SIZES[size]
    return rows * columns * levels


def numba_variants():
    return {"slices": vertical_advection, "loops": loops}
