"""Programs with gradients: on the tape, compiled, and of the compiled function, against differences."""

import math

import numpy as np

from tests.e2e.programs import Programs

programs = Programs()


def vector(r, n):
    return (r.standard_normal(n),)


def matrix(r, n):
    return (r.standard_normal((n, n + 1)),)


@programs.add(vector, grad=(0,), ulp=16)
def elementwise_functions(x):
    y = np.exp(-x * x) + np.sin(x) * np.cos(x) + np.tanh(x) - np.log1p(x * x) + np.sqrt(x * x + 1) + np.arctan(x)
    return np.sum(y / (1 + np.abs(x)) + np.expm1(0.1 * x) ** 3 + np.square(x) - np.reciprocal(2 + x * x))


@programs.add(lambda r, n: (r.uniform(0.5, 2, n), r.uniform(0.5, 2, n), 1.3), grad=(0, 1, 2), ulp=16)
def binary_functions(x, y, p):
    z = x**p + y**2 + 2.0**x + x / y - np.arctan2(x, y) + np.maximum(x, y) * np.minimum(x, 1.1) - (-p)
    return (z + np.where(x > y, x * y, x - y)).sum() + np.hypot(3.0, 4.0)


@programs.add(matrix, grad=(0,), ulp=16)
def reductions(x):
    return (
        x.sum(axis=0).max()
        + x.mean()
        + x.var(axis=1).sum()
        + x.std()
        + (x.max(axis=1) * x.min(axis=0)[:-1]).sum()
        + np.sqrt((x**2).sum(axis=1, keepdims=True) * np.abs(x)).mean()
        + x[:2, :2].prod()
    )


@programs.add(matrix, grad=(0,), ulp=16)
def views_and_shapes(x):
    a = x.T @ x
    b = x[::-1, 1:].reshape(-1)[::2]
    c = np.concatenate([b, x[0], x[:, 0]])
    d = np.stack([c, c[::-1]], axis=1)
    e = np.flip(d, 0) * np.roll(d, 1, axis=0) + np.broadcast_to(d[:1], d.shape)
    return a.trace() + (e**2).sum() + np.diagonal(a, 1).sum() + np.tril(a).sum() + x[None, :, 0].sum()


@programs.add(lambda r, n: (r.standard_normal((n, 3)), r.integers(0, n, 6)), grad=(0,), ulp=16)
def gathers_and_masks(x, i):
    y = x[i] ** 2
    z = x[i, 1] * x[-1, 2]
    return y.sum() + z.sum() + (x[x > 0] ** 3).sum() + x[:, 0][x[:, 1] < 0].sum() + np.take(x, i, axis=0).max()


@programs.add(lambda r, n: (r.standard_normal(n), 2.0), grad=(0, 1), ulp=16)
def written_arrays(x, s):
    y = np.concatenate([x, x[:2]]) * 0
    y[1:-1] = x
    y[0] = s
    y[1:] += y[:-1] * 0.5
    y[y > 1] *= s
    y *= y
    z = np.empty_like(y)
    z[::2] = y[::2]
    z[1::2] = -y[1::2]
    return z.sum() + z[3] * s


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n) * 0.1), grad=(0, 1), ulp=64)
def loop_over_elements(x, w):
    state = 0.0
    total = 0.0
    for i in range(x.size):
        state = np.tanh(state * 0.5 + x[i])
        total += state * w[i]
    return total


@programs.add(lambda r, n: (r.standard_normal(n), 0.3, 4), grad=(0, 1), ulp=64)
def loop_with_a_branch(x, k, steps):
    for i in range(steps):
        if (x * x).sum() > 2.0:
            x = x * (1 - k)
        elif i % 2 == 0:
            x = np.sin(x) + k
        else:
            x = x + k * x[::-1]
    return (x**2).sum()


@programs.add(lambda r, n: (r.uniform(1, 5, n),), grad=(0,), ulp=64)
def while_loop_to_a_fixed_point(a):
    x = np.ones_like(a)
    while np.abs(x * x - a).max() > 1e-12:
        x = 0.5 * (x + a / x)
    return x.sum()


@programs.add(
    lambda r, n: (r.standard_normal((n, n)) * 0.2 + 2 * np.eye(n), r.standard_normal(n)), grad=(0, 1), ulp=256
)
def jacobi_solver(a, b):
    x = np.zeros_like(b)
    d = np.diag(a)
    for _ in range(30):
        x = (b - a @ x + d * x) / d
    return (x * x).sum()


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal((n, n))), grad=(0, 1), ulp=64)
def leapfrog_energy(q, m):
    p = np.zeros_like(q)
    k = m.T @ m / q.size
    for _ in range(5):
        p = p - 0.05 * (k @ q)
        q = q + 0.1 * p
    return 0.5 * (p @ p) + 0.5 * q @ k @ q


@programs.add(
    lambda r, n: (r.standard_normal((n, 4)), r.standard_normal((4, 4)), r.standard_normal((4, 4))),
    grad=(0, 1, 2),
    ulp=64,
)
def attention_loss(x, wq, wk):
    q, k = x @ wq, x @ wk
    s = q @ k.T / math.sqrt(4)
    s = np.where(np.tril(np.ones(s.shape)) > 0, s, -1e9)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    a = e / e.sum(axis=-1, keepdims=True)
    return ((a @ x) ** 2).mean()


@programs.add(
    lambda r, n: (r.standard_normal((n, 6)), r.standard_normal(6), r.standard_normal(6)), grad=(0, 1, 2), ulp=64
)
def layer_norm_loss(x, g, b):
    m = x.mean(axis=-1, keepdims=True)
    v = ((x - m) ** 2).mean(axis=-1, keepdims=True)
    return np.tanh((x - m) / np.sqrt(v + 1e-5) * g + b).sum()


@programs.add(lambda r, n: (r.standard_normal((n + 2, n + 2)), r.standard_normal((3, 3))), grad=(0, 1), ulp=64)
def convolution_loss(image, kernel):
    h, w = image.shape[0] - 2, image.shape[1] - 2
    out = np.zeros_like(image[2:, 2:])
    for i in range(3):
        for j in range(3):
            out += kernel[i, j] * image[i : i + h, j : j + w]
    return (np.maximum(out, 0) ** 2).mean()


@programs.add(lambda r, n: (r.standard_normal((n, n)), 3), grad=(0,), ulp=64)
def heat_2d_loss(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] += 0.1 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4 * v[1:-1, 1:-1])
    return ((v - 0.5) ** 2).sum()


@programs.add(lambda r, n: ((lambda m: m @ m.T + n * np.eye(n))(r.standard_normal((n, n))),), grad=(0,), ulp=256)
def log_determinant_by_cholesky(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for j in range(n):
        s = a[j, j] - (low[j, :j] ** 2).sum()
        low[j, j] = np.sqrt(s)
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - (low[i, :j] * low[j, :j]).sum()) / low[j, j]
    return 2 * np.log(np.diag(low)).sum()


@programs.add(lambda r, n: (r.standard_normal(n), np.sort(r.uniform(0, 1, 6))), grad=(0,), ulp=64)
def cumulative_sums_and_products(x, q):
    return (np.cumsum(x)[::2] ** 2).sum() + np.cumprod(1 + 0.1 * x).sum() + (np.diff(x) ** 2).sum() + q.sum()


@programs.add(lambda r, n: (r.uniform(80, 120, n), 100.0, 0.5, 0.02, 0.3), grad=(0, 1, 2, 3, 4), ulp=64)
def black_scholes_greeks(spot, strike, time, rate, vol):
    def cdf(x):
        return 0.5 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    root = vol * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + 0.5 * vol**2) * time) / root
    return (spot * cdf(d1) - strike * np.exp(-rate * time) * cdf(d1 - root)).sum()


@programs.add(lambda r, n: (r.standard_normal((n, 3)),), grad=(0,), ulp=64)
def lennard_jones_energy(x):
    n = x.shape[0]
    d = x[:, None] - x[None]
    r2 = (d**2).sum(axis=-1) + np.eye(n) + 1.0
    s = 1 / r2**3
    return 0.5 * ((s * s - s) * (1 - np.eye(n))).sum()


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n)), grad=(0, 1), ulp=64)
def early_return_and_ternary(x, y):
    if x.sum() > y.sum():
        return (x * y).sum()
    s = x.max() if x[0] > 0 else y.min()
    return s * (x @ y) + (abs(x[0]) if y[0] > 0 else -y[0])


test_programs = programs.tests()
test_gradients = programs.gradient_tests()
