"""Flow in a cavity whose lid moves: the Navier-Stokes equations with an iterated pressure equation."""

import numpy as np

SIZES = {"tiny": (2, 3, 7, 8), "small": (5, 20, 21, 21), "medium": (20, 50, 81, 81), "large": (25, 50, 201, 201)}
WRITES = ("u", "v", "p")


def right_side(b, rho, dt, dx, dy, u, v):
    b[1:-1, 1:-1] = rho * (
        1.0 / dt * ((u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * dx) + (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * dy))
        - ((u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * dx)) ** 2
        - 2.0 * ((u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * dx))
        - ((v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * dy)) ** 2
    )


def pressure(sweeps, p, b, dx, dy):
    for _ in range(sweeps):
        old = p.copy()
        p[1:-1, 1:-1] = ((old[1:-1, 2:] + old[1:-1, :-2]) * dy**2 + (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2) / (
            2.0 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2.0 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0.0


def cavity_flow(steps, sweeps, dt, dx, dy, rho, nu, u, v, p):
    b = np.zeros_like(u)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        right_side(b, rho, dt, dx, dy, u, v)
        pressure(sweeps, p, b, dx, dy)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2.0 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu
            * (
                dt / dx**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
                + dt / dy**2 * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
            )
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2.0 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu
            * (
                dt / dx**2 * (vn[1:-1, 2:] - 2.0 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
                + dt / dy**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
            )
        )
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, -1] = 0.0
        u[-1, :] = 1.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        v[:, 0] = 0.0
        v[:, -1] = 0.0


def loops(steps, sweeps, dt, dx, dy, rho, nu, u, v, p):
    """Element loops, two buffers for each field; invariant factors are kept apart only where the bits allow it."""
    rows, columns = u.shape
    b = np.zeros_like(u)
    old = np.empty_like(p)
    un = np.empty_like(u)
    vn = np.empty_like(v)
    square_x, square_y = dx**2, dy**2
    both, factor = 2.0 * (dx**2 + dy**2), dx**2 * dy**2 / (2.0 * (dx**2 + dy**2))
    for _ in range(steps):
        for i in range(rows):
            for j in range(columns):
                un[i, j] = u[i, j]
                vn[i, j] = v[i, j]
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                ux = (u[i, j + 1] - u[i, j - 1]) / (2.0 * dx)
                vy = (v[i + 1, j] - v[i - 1, j]) / (2.0 * dy)
                uy = (u[i + 1, j] - u[i - 1, j]) / (2.0 * dy)
                vx = v[i, j + 1] - v[i, j - 1]
                b[i, j] = rho * (1.0 / dt * (ux + vy) - ux * ux - 2.0 * (uy * vx / (2.0 * dx)) - vy * vy)
        for _ in range(sweeps):
            for i in range(rows):
                for j in range(columns):
                    old[i, j] = p[i, j]
            for i in range(1, rows - 1):
                for j in range(1, columns - 1):
                    p[i, j] = (
                        (old[i, j + 1] + old[i, j - 1]) * square_y + (old[i + 1, j] + old[i - 1, j]) * square_x
                    ) / both - factor * b[i, j]
            for i in range(rows):
                p[i, columns - 1] = p[i, columns - 2]
            for j in range(columns):
                p[0, j] = p[1, j]
            for i in range(rows):
                p[i, 0] = p[i, 1]
            for j in range(columns):
                p[rows - 1, j] = 0.0
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                u[i, j] = (
                    un[i, j]
                    - un[i, j] * dt / dx * (un[i, j] - un[i, j - 1])
                    - vn[i, j] * dt / dy * (un[i, j] - un[i - 1, j])
                    - dt / (2.0 * rho * dx) * (p[i, j + 1] - p[i, j - 1])
                    + nu
                    * (
                        dt / square_x * (un[i, j + 1] - 2.0 * un[i, j] + un[i, j - 1])
                        + dt / square_y * (un[i + 1, j] - 2.0 * un[i, j] + un[i - 1, j])
                    )
                )
                v[i, j] = (
                    vn[i, j]
                    - un[i, j] * dt / dx * (vn[i, j] - vn[i, j - 1])
                    - vn[i, j] * dt / dy * (vn[i, j] - vn[i - 1, j])
                    - dt / (2.0 * rho * dy) * (p[i + 1, j] - p[i - 1, j])
                    + nu
                    * (
                        dt / square_x * (vn[i, j + 1] - 2.0 * vn[i, j] + vn[i, j - 1])
                        + dt / square_y * (vn[i + 1, j] - 2.0 * vn[i, j] + vn[i - 1, j])
                    )
                )
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, columns - 1] = 0.0
        u[rows - 1, :] = 1.0
        v[0, :] = 0.0
        v[rows - 1, :] = 0.0
        v[:, 0] = 0.0
        v[:, columns - 1] = 0.0


def initialize(size):
    steps, sweeps, rows, columns = SIZES[size]
    rng = np.random.default_rng(14)
    u, v, p = (rng.uniform(-0.1, 0.1, (rows, columns)) for _ in range(3))
    dx, dy = 2.0 / (columns - 1), 2.0 / (rows - 1)
    return steps, sweeps, 0.2 * min(dx, dy) ** 2, dx, dy, 1.0, 0.1, u, v, p


def element_steps(size):
    steps, sweeps, rows, columns = SIZES[size]
    return steps * (sweeps + 3) * rows * columns


def numba_variants():
    return {"slices": cavity_flow, "loops": loops}
