"""Small whole programs, as people write them: each for several sizes."""

import collections
import functools
import itertools
import math

import numpy as np
import pytest

from tests.tracing.harness import check

rng = np.random.default_rng(3)


def vec(n, seed=1):
    return np.random.default_rng(seed).standard_normal(n)


def mat(n, m=None, seed=2):
    return np.random.default_rng(seed).standard_normal((n, m or n))


def spd(n):
    a = mat(n)
    return a @ a.T + n * np.eye(n)


def test_conjugate_gradients():
    def cg(a, b, steps):
        x = np.zeros_like(b)
        r = b - a @ x
        p = r.copy()
        rs = r @ r
        for _ in range(steps):
            ap = a @ p
            alpha = rs / (p @ ap)
            x = x + alpha * p
            r = r - alpha * ap
            new = r @ r
            p = r + (new / rs) * p
            rs = new
        return x

    check(cg, (spd(9), vec(9), 10), (spd(4), vec(4), 3), rtol=1e-6)


def test_power_iteration():
    def power(a, tol):
        v = np.ones(a.shape[0])
        value = 0.0
        for _ in range(100):
            w = a @ v
            new = np.sqrt(w @ w)
            v = w / new
            if abs(new - value) < tol:
                break
            value = new
        return new, v

    check(power, (spd(6), 1e-10), (spd(3), 1e-3), rtol=1e-6)


def test_cholesky():
    def cholesky(a):
        n = a.shape[0]
        out = np.zeros_like(a)
        for j in range(n):
            s = a[j, j] - np.sum(out[j, :j] ** 2)
            out[j, j] = np.sqrt(s)
            for i in range(j + 1, n):
                out[i, j] = (a[i, j] - np.sum(out[i, :j] * out[j, :j])) / out[j, j]
        return out

    check(cholesky, (spd(9),), (spd(11),))


def test_lu_with_pivoting():
    def lu(a):
        a = a.copy()
        n = a.shape[0]
        order = np.arange(n)
        for k in range(n - 1):
            p = k + np.argmax(np.abs(a[k:, k]))
            if p != k:
                row = a[k].copy()
                a[k] = a[p]
                a[p] = row
                t = order[k]
                order[k] = order[p]
                order[p] = t
            for i in range(k + 1, n):
                a[i, k] = a[i, k] / a[k, k]
                a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
        return a, order

    check(lu, (mat(10),), (mat(13),))


def test_gram_schmidt():
    def orthonormal(a):
        q = a.copy()
        for j in range(q.shape[1]):
            for i in range(j):
                q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
            q[:, j] /= np.sqrt(q[:, j] @ q[:, j])
        return q

    check(orthonormal, (mat(12, 9),), (mat(20, 15),), rtol=1e-6)


def test_jacobi_with_residual():
    def solve(u, f, tol, most):
        h = 1.0 / (u.shape[0] - 1)
        for k in range(most):
            new = u.copy()
            new[1:-1] = 0.5 * (u[:-2] + u[2:] + h * h * f[1:-1])
            change = np.max(np.abs(new - u))
            u = new
            if change < tol:
                return u, k
        return u, most

    check(solve, (np.zeros(12), np.ones(12), 1e-3, 50), (np.zeros(20), np.ones(20), 1e-12, 9))


def test_heat_equation_2d():
    def heat(u, dt, steps):
        for _ in range(steps):
            lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
            u[1:-1, 1:-1] += dt * lap
        return u

    check(heat, (mat(8, 9), 0.1, 12), (mat(5, 6), 0.2, 1))


def test_game_of_life():
    def life(cells, steps):
        for _ in range(steps):
            around = np.zeros_like(cells)
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    if dx != 0 or dy != 0:
                        around = around + np.roll(np.roll(cells, dx, axis=0), dy, axis=1)
            cells = np.where((around == 3) | ((cells == 1) & (around == 2)), 1, 0)
        return cells

    start = (rng.random((8, 8)) < 0.4).astype(np.int64)
    check(life, (start, 5), ((rng.random((6, 10)) < 0.4).astype(np.int64), 2))


def test_n_body():
    def step(pos, vel, mass, dt, steps):
        for _ in range(steps):
            d = pos[None, :, :] - pos[:, None, :]
            r2 = (d * d).sum(axis=2) + 0.01
            acc = (d * (mass / (r2 * np.sqrt(r2)))[:, :, None]).sum(axis=1)
            vel = vel + dt * acc
            pos = pos + dt * vel
        return pos, vel

    check(step, (mat(5, 3), mat(5, 3), np.ones(5), 0.01, 20), (mat(7, 3), mat(7, 3), np.ones(7), 0.01, 2))


def test_mandelbrot_counts():
    def mandelbrot(cx, cy, most):
        zx, zy = np.zeros_like(cx), np.zeros_like(cy)
        count = np.zeros(cx.shape, np.int64)
        for _ in range(most):
            inside = zx * zx + zy * zy < 4.0
            zx, zy = np.where(inside, zx * zx - zy * zy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
            count += inside
        return count

    x, y = np.meshgrid(np.linspace(-2, 0.5, 9), np.linspace(-1, 1, 7))
    check(mandelbrot, (x, y, 20), (x[:5], y[:5], 3))


def test_gradient_descent_with_backtracking():
    def minimise(x, steps):
        def value(x):
            return ((x - 1) ** 2).sum() + (x**4).sum()

        for _ in range(steps):
            g = 2 * (x - 1) + 4 * x**3
            t = 1.0
            while value(x - t * g) > value(x) - 0.5 * t * (g @ g):
                t = t * 0.5
            x = x - t * g
        return x

    check(minimise, (vec(5), 9), (vec(3), 2), rtol=1e-9)


def test_runge_kutta():
    def rhs(t, y, k):
        return np.stack([y[1], -k * y[0] - 0.1 * y[1] + np.sin(t)])

    def integrate(y, t, dt, n, k):
        for _ in range(n):
            k1 = rhs(t, y, k)
            k2 = rhs(t + dt / 2, y + dt / 2 * k1, k)
            k3 = rhs(t + dt / 2, y + dt / 2 * k2, k)
            k4 = rhs(t + dt, y + dt * k3, k)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            t = t + dt
        return y, t

    check(integrate, (np.array([1.0, 0.0]), 0.0, 0.01, 30, 2.0), (np.array([0.5, 0.5]), 1.0, 0.1, 9, 1.0), rtol=1e-12)


def test_edit_distance():
    def distance(a, b):
        n, m = a.shape[0], b.shape[0]
        d = np.zeros((n + 1, m + 1), np.int64)
        d[:, 0] = np.arange(n + 1)
        d[0, :] = np.arange(m + 1)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                cost = 0 if a[i - 1] == b[j - 1] else 1
                d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
        return d[n, m]

    check(distance, (rng.integers(0, 3, 9), rng.integers(0, 3, 11)), (rng.integers(0, 3, 15), rng.integers(0, 3, 10)))


def test_prefix_maximum_and_state_machine():
    def f(x):
        best, at, run = x[0], 0, 0
        out = np.empty_like(x)
        for i in range(x.shape[0]):
            if x[i] > best:
                best = x[i]
                at = i
                run = 0
            else:
                run += 1
            out[i] = best
        return out, at, run

    check(f, (vec(12),), (vec(30),))


def test_bubble_sort():
    def sort(x):
        n = x.shape[0]
        for i in range(n):
            for j in range(n - 1 - i):
                if x[j] > x[j + 1]:
                    x[j], x[j + 1] = x[j + 1], x[j]
        return x

    check(sort, (vec(10),), (vec(14),))


def test_sieve():
    def sieve(n):
        prime = np.ones(n + 1, bool)
        prime[:2] = False
        i = 2
        while i * i <= n:
            if prime[i]:
                prime[i * i :: i] = False
            i += 1
        return prime.sum()

    check(sieve, (50,), (100,), (2,))


def test_histogram_by_loop():
    def histogram(x, bins):
        counts = np.zeros(bins, np.int64)
        for i in range(x.shape[0]):
            k = int(x[i] * bins)
            if 0 <= k < bins:
                counts[k] += 1
        return counts

    check(histogram, (rng.random(30), 5), (rng.random(50) * 1.5, 8))


def test_k_means_step():
    def step(points, centers):
        d = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        label = d.argmin(axis=1)
        new = np.zeros_like(centers)
        for k in range(centers.shape[0]):
            mask = label == k
            count = mask.sum()
            if count > 0:
                new[k] = (points * mask[:, None]).sum(axis=0) / count
            else:
                new[k] = centers[k]
        return new, label

    check(step, (mat(30, 2), mat(9, 2, 5)), (mat(50, 2), mat(12, 2, 5)), rtol=1e-12)


def test_exponential_smoothing_and_ewm():
    def smooth(x, alpha):
        out = np.empty_like(x)
        s = x[0]
        for i, v in enumerate(x):
            s = alpha * v + (1 - alpha) * s
            out[i] = s
        return out

    check(smooth, (vec(12), 0.3), (vec(30), 0.9))


def test_horner_over_a_tuple():
    def poly(x, coefficients):
        y = 0.0
        for c in reversed(coefficients):
            y = y * x + c
        return y

    check(poly, (vec(5), (1.0, 2.0, 3.0)), (vec(3), (0.5, 0.25, 4.0)))


def test_numbers_only():
    def compound(balance, rate, years, limit):
        year = 0
        while balance < limit and year < years:
            balance *= 1 + rate
            year += 1
        return balance, year, math.log(balance)

    check(compound, (100.0, 0.05, 30, 300.0), (50.0, 0.1, 5, 1e9))


def test_int_arithmetic():
    def f(n):
        total = 0
        for k in range(1, n + 1):
            if k % 3 == 0 or k % 5 == 0:
                total += k
        return total, n // 7, n % 7, -n // 2, n**2, n / 4

    check(f, (30,), (101,), (1,))


def test_reduce_map_filter_and_itertools():
    def f(xs):
        total = functools.reduce(lambda a, b: a * 2 + b, xs)
        squares = list(map(lambda a: a * a, xs))  # noqa: C417
        pairs = [a @ b for a, b in itertools.combinations(xs, 2)]
        return total, squares[0], sum(pairs)

    check(f, ([vec(3), vec(3, 2), vec(3, 4)],))


def test_named_results():
    Stats = collections.namedtuple("Stats", "mean var")  # noqa: PYI024  # the old form

    def f(x):
        return Stats(x.mean(), x.var())

    check(f, (vec(9),), (vec(31),))


def test_recursion_on_static_values():
    def tree_sum(xs):
        if len(xs) == 1:
            return xs[0]
        return tree_sum(xs[: len(xs) // 2]) + tree_sum(xs[len(xs) // 2 :])

    check(tree_sum, ([vec(3, k) for k in range(5)],))


class Layer:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        return np.tanh(x @ self.w + self.b)


class Network:
    def __init__(self, *sizes):
        self.layers = [Layer(mat(a, b, a + b), vec(b)) for a, b in itertools.pairwise(sizes)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_network_of_objects():
    from tests.tracing.harness import Jit

    net = Network(4, 8, 3)
    f = Jit(net.forward)
    for n in (5, 9):
        x = mat(n, 4)
        np.testing.assert_allclose(f(x), net.forward(x), rtol=1e-12)
    net.layers[0].w = net.layers[0].w * 2
    np.testing.assert_allclose(f(x), net.forward(x), rtol=1e-12)
    assert f.count == 1
    net.layers.append(Layer(mat(3, 3), vec(3)))
    np.testing.assert_allclose(f(x), net.forward(x), rtol=1e-12)
    assert f.count == 2


def test_masks_and_fancy_indices():
    def f(x, index):
        x[x < 0] = 0
        y = x[index]
        return x[x > 0.5].sum(), y

    check(f, (vec(9), np.array([0, 2, -1])), (vec(20), np.array([1, 1])))


def test_out_arguments_and_inplace_functions():
    def f(x, out):
        np.multiply(x, 2.0, out=out)
        np.add(out, x, out=out)
        out.fill(out[0]) if False else None
        return out

    check(f, (vec(5), np.zeros(5)), (vec(9), np.zeros(9)))


@pytest.mark.parametrize("k", range(3))
def test_parametrised_closures(k):
    check(lambda x: x**k + k, (vec(4),), (vec(7),))


def test_moving_average_of_windows():
    def f(x, w):
        n = x.shape[0]
        out = np.zeros(n)
        for i in range(n):
            lo = max(0, i - w)
            hi = min(n, i + w + 1)
            out[i] = x[lo:hi].mean()
        return out

    check(f, (vec(12), 2), (vec(30), 5))


def test_convolution_by_loops():
    def conv(x, k):
        n, m = x.shape
        p, q = k.shape
        out = np.zeros((n - p + 1, m - q + 1))
        for i in range(p):
            for j in range(q):
                out += k[i, j] * x[i : n - p + 1 + i, j : m - q + 1 + j]
        return out

    check(conv, (mat(9, 10), mat(3, 3)), (mat(12, 8), mat(5, 4)))


def test_matrix_multiplication_by_hand():
    def matmul(a, b):
        out = np.zeros((a.shape[0], b.shape[1]))
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(a.shape[1]):
                    out[i, j] += a[i, k] * b[k, j]
        return out

    check(matmul, (mat(9, 10), mat(10, 11)), (mat(12, 15), mat(15, 9)))


def test_sum_of_digits_and_primes():
    def f(n):
        s = 0
        while n > 0:
            s += n % 10
            n //= 10
        return s

    check(f, (98765,), (0,), (10,))


def test_interval_bisection_with_helper_and_early_exit():
    def root(lo, hi, tol):
        f = lambda t: t * t * t - t - 2
        for _ in range(200):
            mid = (lo + hi) / 2
            if hi - lo < tol:
                return mid
            if f(lo) * f(mid) <= 0:
                hi = mid
            else:
                lo = mid
        raise RuntimeError("no convergence")

    check(root, (1.0, 2.0, 1e-10), (1.0, 3.0, 1e-3))
