"""The heat equation on a plate: an explicit time loop over slices, as one would write it in NumPy."""

import numpy as np
from common import compare


def heat(plate, steps, alpha):
    """Advance `plate` (f64[n, m], changed in place) by `steps` explicit steps; its rim is held fixed."""
    for _ in range(steps):
        plate[1:-1, 1:-1] += alpha * (
            plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * plate[1:-1, 1:-1]
        )
    return plate.mean(), plate


def main():
    plate = np.zeros((400, 300))
    plate[0, :] = 100.0
    plate[:, 0] = 50.0
    compare("heat equation, 400 x 300, 200 steps", heat, (plate, 200, 0.2), tolerance=0.0, mutates=True)


if __name__ == "__main__":
    main()
