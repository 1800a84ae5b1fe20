"""Flow in a periodic channel under a constant force, until the velocity settles: a `while` around whole-array steps.

The first and last columns of the arrays are ghosts, kept equal to the columns at the other end.
"""

import numpy as np

#: sweeps, rows, columns, tolerance, turns that this takes
SIZES = {
    "tiny": (4, 7, 8, 0.2, 5),
    "small": (20, 21, 21, 0.05, 20),
    "medium": (50, 61, 61, 0.01, 99),
    "large": (50, 121, 121, 0.02, 50),
}
WRITES = ("u", "v", "p")


def wrap(field):
    field[:, 0] = field[:, -2]
    field[:, -1] = field[:, 1]


def right_side(rho, dt, dx, dy, u, v):
    b = np.zeros_like(u)
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * dx)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * dy)
    b[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2.0 * uy * vx - vy**2)
    return b


def pressure(sweeps, p, b, dx, dy):
    for _ in range(sweeps):
        old = p.copy()
        p[1:-1, 1:-1] = (
            (old[1:-1, 2:] + old[1:-1, :-2]) * dy**2
            + (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2
            - dx**2 * dy**2 * b[1:-1, 1:-1]
        ) / (2.0 * (dx**2 + dy**2))
        wrap(p)
        p[-1, :] = p[-2, :]
        p[0, :] = p[1, :]


def advance(new, old, un, vn, slope, dt, dx, dy, nu):
    """One step of `new` from `old`, carried along by (un, vn), against the pressure's slope."""
    here = old[1:-1, 1:-1]
    new[1:-1, 1:-1] = (
        here
        - un[1:-1, 1:-1] * dt / dx * (here - old[1:-1, :-2])
        - vn[1:-1, 1:-1] * dt / dy * (here - old[:-2, 1:-1])
        - dt * slope
        + nu * dt / dx**2 * (old[1:-1, 2:] - 2.0 * here + old[1:-1, :-2])
        + nu * dt / dy**2 * (old[2:, 1:-1] - 2.0 * here + old[:-2, 1:-1])
    )


def channel_flow(sweeps, tolerance, dt, dx, dy, rho, nu, force, u, v, p):
    change = 1.0
    steps = 0
    while change > tolerance:
        un = u.copy()
        vn = v.copy()
        b = right_side(rho, dt, dx, dy, un, vn)
        pressure(sweeps, p, b, dx, dy)
        advance(u, un, un, vn, (p[1:-1, 2:] - p[1:-1, :-2]) / (2.0 * rho * dx) - force, dt, dx, dy, nu)
        advance(v, vn, un, vn, (p[2:, 1:-1] - p[:-2, 1:-1]) / (2.0 * rho * dy), dt, dx, dy, nu)
        wrap(u)
        wrap(v)
        u[0, :] = 0.0
        u[-1, :] = 0.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return steps


def loops(sweeps, tolerance, dt, dx, dy, rho, nu, force, u, v, p):
    rows, columns = u.shape
    un, vn, b, old = np.empty_like(u), np.empty_like(u), np.zeros_like(u), np.empty_like(u)
    square_x, square_y, both = dx**2, dy**2, 2.0 * (dx**2 + dy**2)
    product = square_x * square_y
    change = 1.0
    steps = 0
    while change > tolerance:
        before = 0.0
        for i in range(rows):
            for j in range(columns):
                un[i, j] = u[i, j]
                vn[i, j] = v[i, j]
                before += u[i, j]
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                ux = (u[i, j + 1] - u[i, j - 1]) / (2.0 * dx)
                uy = (u[i + 1, j] - u[i - 1, j]) / (2.0 * dy)
                vx = (v[i, j + 1] - v[i, j - 1]) / (2.0 * dx)
                vy = (v[i + 1, j] - v[i - 1, j]) / (2.0 * dy)
                b[i, j] = rho * ((ux + vy) / dt - ux * ux - 2.0 * uy * vx - vy * vy)
        for _ in range(sweeps):
            for i in range(rows):
                for j in range(columns):
                    old[i, j] = p[i, j]
            for i in range(1, rows - 1):
                for j in range(1, columns - 1):
                    p[i, j] = (
                        (old[i, j + 1] + old[i, j - 1]) * square_y
                        + (old[i + 1, j] + old[i - 1, j]) * square_x
                        - product * b[i, j]
                    ) / both
            for i in range(rows):
                p[i, 0] = p[i, columns - 2]
                p[i, columns - 1] = p[i, 1]
            for j in range(columns):
                p[rows - 1, j] = p[rows - 2, j]
                p[0, j] = p[1, j]
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                u[i, j] = (
                    un[i, j]
                    - un[i, j] * dt / dx * (un[i, j] - un[i, j - 1])
                    - vn[i, j] * dt / dy * (un[i, j] - un[i - 1, j])
                    - dt * ((p[i, j + 1] - p[i, j - 1]) / (2.0 * rho * dx) - force)
                    + nu * dt / square_x * (un[i, j + 1] - 2.0 * un[i, j] + un[i, j - 1])
                    + nu * dt / square_y * (un[i + 1, j] - 2.0 * un[i, j] + un[i - 1, j])
                )
                v[i, j] = (
                    vn[i, j]
                    - un[i, j] * dt / dx * (vn[i, j] - vn[i, j - 1])
                    - vn[i, j] * dt / dy * (vn[i, j] - vn[i - 1, j])
                    - dt * ((p[i + 1, j] - p[i - 1, j]) / (2.0 * rho * dy))
                    + nu * dt / square_x * (vn[i, j + 1] - 2.0 * vn[i, j] + vn[i, j - 1])
                    + nu * dt / square_y * (vn[i + 1, j] - 2.0 * vn[i, j] + vn[i - 1, j])
                )
        for i in range(rows):
            u[i, 0] = u[i, columns - 2]
            u[i, columns - 1] = u[i, 1]
            v[i, 0] = v[i, columns - 2]
            v[i, columns - 1] = v[i, 1]
        after = 0.0
        for j in range(columns):
            u[0, j] = 0.0
            u[rows - 1, j] = 0.0
            v[0, j] = 0.0
            v[rows - 1, j] = 0.0
        for i in range(rows):
            for j in range(columns):
                after += u[i, j]
        change = (after - before) / after
        steps += 1
    return steps


def initialize(size):
    sweeps, rows, columns, tolerance, _ = SIZES[size]
    rng = np.random.default_rng(15)
    u, v, p = np.zeros((rows, columns)), rng.uniform(-0.1, 0.1, (rows, columns)), rng.uniform(0, 0.1, (rows, columns))
    dx, dy = 2.0 / (columns - 3), 2.0 / (rows - 1)
    return sweeps, tolerance, 0.2 * min(dx, dy) ** 2, dx, dy, 1.0, 0.1, 1.0, u, v, p


def element_steps(size):
    sweeps, rows, columns, _, turns = SIZES[size]
    return turns * (sweeps + 3) * rows * columns


def numba_variants():
    return {"slices": channel_flow, "loops": loops}
