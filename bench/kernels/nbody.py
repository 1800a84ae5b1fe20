"""Bodies that attract one another: leapfrog steps with all pairs of distances as matrices, and the kinetic energy."""

import numpy as np

SIZES = {"tiny": (2, 5), "small": (10, 40), "medium": (100, 150), "large": (100, 600)}
WRITES = ("position", "velocity")


def acceleration(position, mass, softening):
    x, y, z = position[:, 0], position[:, 1], position[:, 2]
    dx = x - x[:, np.newaxis]
    dy = y - y[:, np.newaxis]
    dz = z - z[:, np.newaxis]
    square = dx * dx + dy * dy + dz * dz + softening * softening
    pull = mass / (square * np.sqrt(square))
    result = np.empty_like(position)
    result[:, 0] = np.sum(dx * pull, axis=1)
    result[:, 1] = np.sum(dy * pull, axis=1)
    result[:, 2] = np.sum(dz * pull, axis=1)
    return result


def nbody(steps, dt, softening, mass, position, velocity):
    energy = np.zeros(steps)
    acc = acceleration(position, mass, softening)
    for t in range(steps):
        velocity += acc * dt / 2.0
        position += velocity * dt
        acc = acceleration(position, mass, softening)
        velocity += acc * dt / 2.0
        energy[t] = 0.5 * np.sum(mass[:, np.newaxis] * velocity**2)
    return energy


def loop_acceleration(position, mass, softening, acc):
    n = position.shape[0]
    for i in range(n):
        ax = ay = az = 0.0
        for j in range(n):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + softening * softening
            pull = mass[j] / (square * np.sqrt(square))
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        acc[i, 0] = ax
        acc[i, 1] = ay
        acc[i, 2] = az


def loops(steps, dt, softening, mass, position, velocity):
    n = position.shape[0]
    energy = np.zeros(steps)
    acc = np.empty_like(position)
    loop_acceleration(position, mass, softening, acc)
    for t in range(steps):
        for i in range(n):
            for c in range(3):
                velocity[i, c] += acc[i, c] * dt / 2.0
                position[i, c] += velocity[i, c] * dt
        loop_acceleration(position, mass, softening, acc)
        total = 0.0
        for i in range(n):
            for c in range(3):
                velocity[i, c] += acc[i, c] * dt / 2.0
                total += mass[i] * velocity[i, c] * velocity[i, c]
        energy[t] = 0.5 * total
    return energy


def initialize(size):
    steps, n = SIZES[size]
    rng = np.random.default_rng(16)
    return steps, 0.01, 0.1, np.full(n, 20.0 / n), rng.normal(0, 1, (n, 3)), rng.normal(0, 1, (n, 3))


def element_steps(size):
    steps, n = SIZES[size]
    return (steps + 1) * n * n


def numba_variants():
    return {"slices": nbody, "loops": loops}
