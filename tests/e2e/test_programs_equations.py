"""Programs of numerical analysis: differential equations, iterations, quadrature."""

# ruff: noqa: B007  # written as users write

import numpy as np

from tests.e2e.programs import Programs

programs = Programs()


def vectors(count):
    return lambda r, n: tuple(r.standard_normal(n) for _ in range(count))


@programs.add(vectors(1))
def derivative_central(u):
    d = np.empty_like(u)
    d[1:-1] = (u[2:] - u[:-2]) / 2.0
    d[0] = u[1] - u[0]
    d[-1] = u[-1] - u[-2]
    return d


@programs.add(lambda r, n: (r.standard_normal(n), 0.1, 7))
def heat_explicit(u, k, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@programs.add(lambda r, n: (r.standard_normal(n), 0.1, 7))
def heat_into_a_new_array(u, k, steps):
    for _ in range(steps):
        new = u.copy()
        new[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = new
    return u


@programs.add(lambda r, n: (r.standard_normal((n, n + 2)), 0.1, 5))
def heat_2d_swapping(u, k, steps):
    a = u.copy()
    b = u.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = a[1:-1, 1:-1] + k * (
            a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]
        )
        a, b = b, a
    return a


@programs.add(lambda r, n: (r.standard_normal((n, n + 1, n + 2)),))
def laplacian_3d(u):
    c = u[1:-1, 1:-1, 1:-1]
    out = np.zeros_like(u)
    out[1:-1, 1:-1, 1:-1] = (
        u[2:, 1:-1, 1:-1]
        + u[:-2, 1:-1, 1:-1]
        + u[1:-1, 2:, 1:-1]
        + u[1:-1, :-2, 1:-1]
        + u[1:-1, 1:-1, 2:]
        + u[1:-1, 1:-1, :-2]
        - 6.0 * c
    )
    return out


@programs.add(lambda r, n: (r.standard_normal(n), 0.4, 6))
def heat_periodic_by_roll(u, k, steps):
    for _ in range(steps):
        u = u + k * (np.roll(u, 1) + np.roll(u, -1) - 2 * u)
    return u


@programs.add(lambda r, n: (r.standard_normal((n, n + 1)), 0.1, 4))
def reaction_diffusion(u, k, steps):
    v = np.ones_like(u)
    for _ in range(steps):
        lap = np.roll(u, 1, axis=0) + np.roll(u, -1, axis=0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u
        uvv = u * v * v
        u = u + k * lap - uvv
        v += uvv - 0.05 * v
    return u, v


@programs.add(lambda r, n: (r.standard_normal((n, n)), r.standard_normal((n, n)), 5))
def jacobi_2d(u, f, sweeps):
    for _ in range(sweeps):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1])


@programs.add(lambda r, n: (r.standard_normal((n, n)), 4))
def jacobi_until_converged(u, sweeps):
    change = 1.0
    count = 0
    while change > 1e-2 and count < sweeps:
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        change = np.abs(u - old).max()
        count += 1
    return u, change, count


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n), 3))
def gauss_seidel_1d(u, f, sweeps):
    n = len(u)
    for _ in range(sweeps):
        for i in range(1, n - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])
    return u


@programs.add(lambda r, n: (r.standard_normal((n, n)), 3), sizes=(9, 13))
def gauss_seidel_red_black(u, sweeps):
    for _ in range(sweeps):
        for colour in (0, 1):
            u[1:-1:2, 1 + colour : -1 : 2] = 0.25 * (
                u[0:-2:2, 1 + colour : -1 : 2]
                + u[2::2, 1 + colour : -1 : 2]
                + u[1:-1:2, colour:-2:2]
                + u[1:-1:2, 2 + colour :: 2]
            )
    return u


@programs.add(lambda r, n: (r.standard_normal((n, n)), 1.5, 2))
def successive_over_relaxation(u, omega, sweeps):
    n, m = u.shape
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                u[i, j] += omega * (new - u[i, j])
    return u


@programs.add(lambda r, n: (r.standard_normal(n), 0.5, 6))
def wave_1d(u, c, steps):
    previous = u.copy()
    for _ in range(steps):
        nxt = np.zeros_like(u)
        nxt[1:-1] = 2 * u[1:-1] - previous[1:-1] + c**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        previous, u = u, nxt
    return u


@programs.add(lambda r, n: (r.standard_normal((n, n)), 4))
def wave_2d_rotating_buffers(u, steps):
    a, b, c = u.copy(), u.copy(), np.zeros_like(u)
    for _ in range(steps):
        c[1:-1, 1:-1] = (
            2 * b[1:-1, 1:-1]
            - a[1:-1, 1:-1]
            + 0.1 * (b[2:, 1:-1] + b[:-2, 1:-1] + b[1:-1, 2:] + b[1:-1, :-2] - 4 * b[1:-1, 1:-1])
        )
        a, b, c = b, c, a
    return b


@programs.add(lambda r, n: (np.zeros(n), np.zeros(n), 9), ulp=8)
def fdtd_1d(ez, hy, steps):
    for t in range(steps):
        hy[:-1] += 0.5 * (ez[1:] - ez[:-1])
        ez[1:] += 0.5 * (hy[1:] - hy[:-1])
        ez[1] += np.exp(-((t - 4.0) ** 2) / 3.0)
    return ez


@programs.add(lambda r, n: (r.standard_normal((n, n)), np.zeros((n, n - 1)), np.zeros((n - 1, n)), 4))
def fdtd_2d(ez, hx, hy, steps):
    for _ in range(steps):
        hx -= 0.5 * (ez[:, 1:] - ez[:, :-1])
        hy += 0.5 * (ez[1:, :] - ez[:-1, :])
        ez[1:-1, 1:-1] += 0.5 * (hy[1:, 1:-1] - hy[:-1, 1:-1] - (hx[1:-1, 1:] - hx[1:-1, :-1]))


@programs.add(lambda r, n: (r.standard_normal(n), 0.3, 5))
def advection_upwind(u, c, steps):
    for _ in range(steps):
        if c > 0:
            u[1:] = u[1:] - c * (u[1:] - u[:-1])
        else:
            u[:-1] = u[:-1] - c * (u[1:] - u[:-1])
    return u


@programs.add(lambda r, n: (r.standard_normal(n), 0.01, 5))
def burgers_lax_friedrichs(u, dt, steps):
    for _ in range(steps):
        flux = 0.5 * u * u
        u_next = u.copy()
        u_next[1:-1] = 0.5 * (u[2:] + u[:-2]) - 0.5 * dt * (flux[2:] - flux[:-2])
        u_next[0] = u_next[-2]
        u_next[-1] = u_next[1]
        u = u_next
    return u


@programs.add(lambda r, n: (r.standard_normal(n),))
def minmod_slopes(u):
    left, right = u[1:-1] - u[:-2], u[2:] - u[1:-1]
    slopes = np.zeros_like(u)
    slopes[1:-1] = np.where(left * right > 0, np.sign(left) * np.minimum(np.abs(left), np.abs(right)), 0.0)
    return slopes


@programs.add(lambda r, n: (r.uniform(1, 9), 1e-12), ulp=4)
def newton_square_root(a, tolerance):
    x = a
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
    return x


@programs.add(lambda r, n: (r.uniform(1, 9, n), 1e-10))
def newton_of_an_array(a, tolerance):
    x = np.ones_like(a)
    steps = 0
    while np.abs(x * x - a).max() > tolerance and steps < 50:
        x = 0.5 * (x + a / x)
        steps += 1
    return x, steps


@programs.add(lambda r, n: (0.0, 2.0, 1e-9), ulp=8)
def bisection(low, high, tolerance):
    def f(x):
        return x**3 - x - 1.0

    while high - low > tolerance:
        middle = (low + high) / 2
        if f(low) * f(middle) <= 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@programs.add(lambda r, n: (1.0, 2.0, 40), ulp=64)
def secant(x0, x1, limit):
    f0, f1 = x0 * x0 - 2.0, x1 * x1 - 2.0
    count = 0
    while abs(f1) > 1e-13 and count < limit:
        x0, x1 = x1, x1 - f1 * (x1 - x0) / (f1 - f0)
        f0, f1 = f1, x1 * x1 - 2.0
        count += 1
    return x1, count


@programs.add(lambda r, n: (float(n),), ulp=8)
def fixed_point_with_break(x):
    for i in range(200):
        new = np.cos(x)
        if abs(new - x) < 1e-8:
            break
        x = new
    return x, i


@programs.add(lambda r, n: (r.standard_normal(n), 0.01, 12), ulp=16)
def runge_kutta_4(y, h, steps):
    def f(t, y):
        return -y + np.sin(t)

    t = 0.0
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
    return t, y


@programs.add(lambda r, n: (r.standard_normal(3), 0.01, n))
def lorenz_trajectory(state, h, steps):
    path = np.empty((steps + 1, 3))
    path[0] = state
    for i in range(steps):
        x, y, z = path[i]
        path[i + 1, 0] = x + h * 10.0 * (y - x)
        path[i + 1, 1] = y + h * (x * (28.0 - z) - y)
        path[i + 1, 2] = z + h * (x * y - 8.0 / 3.0 * z)
    return path


@programs.add(lambda r, n: (r.standard_normal(3), 0.01, n))
def lorenz_with_np_array(state, h, steps):
    def f(s):
        x, y, z = s
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    for _ in range(steps):
        state = state + h * f(state)
    return state


@programs.add(lambda r, n: (r.standard_normal((n, 3)), r.standard_normal((n, 3)), r.uniform(1, 2, n), 0.01, 3), ulp=16)
def verlet_n_body(x, v, mass, h, steps):
    def acceleration(x):
        d = x[None, :, :] - x[:, None, :]
        r2 = (d * d).sum(axis=-1) + 0.1
        return (mass[None, :, None] * d * (r2**-1.5)[:, :, None]).sum(axis=1)

    a = acceleration(x)
    for _ in range(steps):
        v += 0.5 * h * a
        x += h * v
        a = acceleration(x)
        v += 0.5 * h * a
    energy = 0.5 * (mass * (v**2).sum(axis=1)).sum()
    return x, v, energy


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n)))
def leapfrog_of_oscillators(q, p):
    h = 0.05
    for _ in range(10):
        p -= 0.5 * h * q
        q += h * p
        p -= 0.5 * h * q
    return 0.5 * (p @ p + q @ q)


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n), r.uniform(3, 4, n), r.standard_normal(n)))
def thomas_algorithm(lower, upper, diagonal, rhs):
    n = diagonal.shape[0]
    b = diagonal.copy()
    d = rhs.copy()
    for i in range(1, n):
        w = lower[i] / b[i - 1]
        b[i] = b[i] - w * upper[i - 1]
        d[i] = d[i] - w * d[i - 1]
    x = np.zeros(n)
    x[-1] = d[-1] / b[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - upper[i] * x[i + 1]) / b[i]
    return x


@programs.add(lambda r, n: (r.standard_normal(n), np.sort(r.standard_normal(n))))
def trapezium_rule(y, x):
    return ((y[1:] + y[:-1]) * np.diff(x) / 2).sum(), np.trapezoid(y, x)


@programs.add(lambda r, n: (0.0, 3.0, 2 * n), ulp=16)
def simpson_rule(a, b, n):
    x = np.linspace(a, b, n + 1)
    y = np.exp(-x * x)
    return (b - a) / n / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum())


@programs.add(lambda r, n: (r.standard_normal((n, n)), 3))
def game_of_life_float(board, steps):
    alive = (board > 0).astype(np.int64)
    for _ in range(steps):
        neighbours = np.zeros_like(alive)
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                if di or dj:
                    neighbours += np.roll(np.roll(alive, di, 0), dj, 1)
        alive = ((neighbours == 3) | ((alive == 1) & (neighbours == 2))).astype(np.int64)
    return alive


@programs.add(lambda r, n: (r.standard_normal((n, n)), r.standard_normal(n), 6), ulp=64)
def power_iteration(a, v, steps):
    for _ in range(steps):
        w = a @ v
        v = w / np.sqrt(w @ w)
    return v, v @ a @ v


@programs.add(
    lambda r, n: ((lambda m: m @ m.T + n * np.eye(n))(r.standard_normal((n, n))), r.standard_normal(n)), ulp=4096
)
def conjugate_gradient(a, b):
    x = np.zeros_like(b)
    residual = b - a @ x
    p = residual.copy()
    rr = residual @ residual
    for _ in range(b.size):
        ap = a @ p
        alpha = rr / (p @ ap)
        x += alpha * p
        residual -= alpha * ap
        new = residual @ residual
        if new < 1e-20:
            break
        p = residual + (new / rr) * p
        rr = new
    return x


@programs.add(lambda r, n: (r.standard_normal(n), 0.1, 25))
def gradient_descent_with_momentum(x, rate, steps):
    velocity = np.zeros_like(x)
    history = []
    for _ in range(3):
        gradient = 2 * x + 1
        velocity = 0.9 * velocity - rate * gradient
        x = x + velocity
        history.append((x**2).sum())
    return x, history


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n), 10), ulp=8)
def adam(theta, gradient, steps):
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, steps + 1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        theta = theta - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta


test_programs = programs.tests()
