"""Horizontal diffusion of a weather model: a Laplacian, fluxes that never run uphill, and their divergence."""

import numpy as np

SIZES = {"tiny": (4, 5, 3), "small": (20, 20, 10), "medium": (100, 100, 30), "large": (200, 200, 100)}
WRITES = ("result",)


def horizontal_diffusion(field, result, coefficient):
    laplacian = 4.0 * field[1:-1, 1:-1, :] - (
        field[2:, 1:-1, :] + field[:-2, 1:-1, :] + field[1:-1, 2:, :] + field[1:-1, :-2, :]
    )
    across = laplacian[1:, 1:-1, :] - laplacian[:-1, 1:-1, :]
    uphill = across * (field[2:-1, 2:-2, :] - field[1:-2, 2:-2, :]) > 0
    flux_x = np.where(uphill, 0.0, across)
    along = laplacian[1:-1, 1:, :] - laplacian[1:-1, :-1, :]
    uphill = along * (field[2:-2, 2:-1, :] - field[2:-2, 1:-2, :]) > 0
    flux_y = np.where(uphill, 0.0, along)
    result[:, :, :] = field[2:-2, 2:-2, :] - coefficient * (
        flux_x[1:, :, :] - flux_x[:-1, :, :] + flux_y[:, 1:, :] - flux_y[:, :-1, :]
    )


def loops(field, result, coefficient):
    """The Laplacian in an array, the fluxes of each element twice."""
    rows, columns, levels = result.shape
    laplacian = np.empty((rows + 2, columns + 2, levels))
    for i in range(rows + 2):
        for j in range(columns + 2):
            for k in range(levels):
                laplacian[i, j, k] = 4.0 * field[i + 1, j + 1, k] - (
                    field[i + 2, j + 1, k] + field[i, j + 1, k] + field[i + 1, j + 2, k] + field[i + 1, j, k]
                )
    for i in range(rows):
        for j in range(columns):
            for k in range(levels):
                here = field[i + 2, j + 2, k]
                middle = laplacian[i + 1, j + 1, k]
                down = laplacian[i + 2, j + 1, k] - middle
                down = 0.0 if down * (field[i + 3, j + 2, k] - here) > 0 else down
                up = middle - laplacian[i, j + 1, k]
                up = 0.0 if up * (here - field[i + 1, j + 2, k]) > 0 else up
                right = laplacian[i + 1, j + 2, k] - middle
                right = 0.0 if right * (field[i + 2, j + 3, k] - here) > 0 else right
                left = middle - laplacian[i + 1, j, k]
                left = 0.0 if left * (here - field[i + 2, j + 1, k]) > 0 else left
                result[i, j, k] = here - coefficient[i, j, k] * (down - up + right - left)


def initialize(size):
    rows, columns, levels = SIZES[size]
    rng = np.random.default_rng(24)
    field = rng.uniform(0, 1, (rows + 4, columns + 4, levels))
    return field, np.zeros((rows, columns, levels)), rng.uniform(0, 1, (rows, columns, levels))


def element_steps(size):
    rows, columns, levels = SIZES[size]
    return rows * columns * levels


def numba_variants():
    return {"slices": horizontal_diffusion, "loops": loops}
