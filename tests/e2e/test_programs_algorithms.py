"""Programs with loops over indices: factorisations, dynamic programming, graphs, fractals, sequences."""

import math

import numpy as np

from tests.e2e.programs import Programs

programs = Programs()


def square(r, n):
    return (r.standard_normal((n, n)) + n * np.eye(n),)


@programs.add(square)
def lu_in_place(a):
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return a


@programs.add(square)
def lu_with_outer(a):
    a = a.copy()
    for k in range(len(a)):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.tril(a, -1) + np.eye(len(a)), np.triu(a)


@programs.add(lambda r, n: (r.standard_normal((n, n)),))
def lu_with_pivoting(a):
    a = a.copy()
    n = a.shape[0]
    pivots = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            row = a[k].copy()
            a[k] = a[p]
            a[p] = row
            old = pivots[k]
            pivots[k] = pivots[p]
            pivots[p] = old
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
    return a, pivots


@programs.add(lambda r, n: ((lambda m: m @ m.T + np.eye(n))(r.standard_normal((n, n))),), ulp=64)
def cholesky_by_columns(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j] - low[j, :j] @ low[j, :j])
        low[j + 1 :, j] = (a[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j]) / low[j, j]
    return low


@programs.add(lambda r, n: ((lambda m: m @ m.T + np.eye(n))(r.standard_normal((n, n))),), ulp=64)
def cholesky_by_elements(a):
    n = len(a)
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(j):
                s += low[i, k] * low[j, k]
            if i == j:
                low[i, j] = math.sqrt(a[i, i] - s)
            else:
                low[i, j] = (a[i, j] - s) / low[j, j]
    return low


@programs.add(lambda r, n: (r.standard_normal((n + 2, n)),), ulp=256)
def gram_schmidt(a):
    q = a.copy()
    for j in range(a.shape[1]):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        q[:, j] /= np.sqrt(q[:, j] @ q[:, j])
    return q


@programs.add(lambda r, n: (r.standard_normal((n + 2, n)),), ulp=256)
def qr_modified_gram_schmidt(a):
    m, n = a.shape
    q = np.empty((m, n))
    rr = np.zeros((n, n))
    v = a.copy()
    for i in range(n):
        rr[i, i] = np.sqrt((v[:, i] ** 2).sum())
        q[:, i] = v[:, i] / rr[i, i]
        rr[i, i + 1 :] = q[:, i] @ v[:, i + 1 :]
        v[:, i + 1 :] -= q[:, i][:, None] * rr[i, i + 1 :]
    return q, rr


@programs.add(lambda r, n: (np.tril(r.standard_normal((n, n))) + n * np.eye(n), r.standard_normal(n)), ulp=64)
def forward_substitution(low, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return x


@programs.add(lambda r, n: (np.triu(r.standard_normal((n, n))) + n * np.eye(n), r.standard_normal(n)), ulp=64)
def back_substitution_reversed_range(up, b):
    x = b.copy()
    for i in reversed(range(len(b))):
        x[i] = (x[i] - np.dot(up[i, i + 1 :], x[i + 1 :])) / up[i, i]
    return x


@programs.add(lambda r, n: (r.standard_normal((n, n)) + n * np.eye(n), r.standard_normal(n)))
def gauss_jordan(a, b):
    m = np.concatenate([a, b[:, None]], axis=1)
    for k in range(a.shape[0]):
        m[k] /= m[k, k]
        for i in range(a.shape[0]):
            if i != k:
                m[i] -= m[i, k] * m[k]
    return m[:, -1]


@programs.add(lambda r, n: (r.uniform(1, 10, (n, n)),))
def floyd_warshall(d):
    n = d.shape[0]
    for i in range(n):
        d[i, i] = 0.0
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


@programs.add(lambda r, n: (r.uniform(1, 10, (n, n)),))
def floyd_warshall_in_place_by_elements(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


@programs.add(lambda r, n: (r.uniform(1, 10, 3 * n), r.integers(0, n, 3 * n), r.integers(0, n, 3 * n), n))
def bellman_ford(weight, source, target, n):
    distance = np.full(n, np.inf)
    distance[0] = 0.0
    for _ in range(n - 1):
        for e in range(weight.size):
            u, v = source[e], target[e]
            if distance[u] + weight[e] < distance[v]:
                distance[v] = distance[u] + weight[e]
    return distance


@programs.add(lambda r, n: (r.integers(0, 4, n), r.integers(0, 4, n + 2)))
def edit_distance(a, b):
    m, n = len(a), len(b)
    d = np.zeros((m + 1, n + 1), dtype=np.int64)
    d[:, 0] = np.arange(m + 1)
    d[0, :] = np.arange(n + 1)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[m, n]


@programs.add(lambda r, n: (r.integers(0, 3, n), r.integers(0, 3, n)))
def longest_common_subsequence(a, b):
    table = np.zeros((a.size + 1, b.size + 1), dtype=int)
    for i in range(a.size):
        for j in range(b.size):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


@programs.add(lambda r, n: (r.integers(1, 6, n), r.integers(1, 20, n), 15))
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(weights)):
        w = weights[i]
        best[w:] = np.maximum(best[w:], best[:-w] + values[i])
    return best


@programs.add(lambda r, n: (r.uniform(0, 1, (n, n)),))
def cheapest_path_through_a_grid(cost):
    total = cost.copy()
    for i in range(1, cost.shape[0]):
        total[i, 0] += total[i - 1, 0]
    for j in range(1, cost.shape[1]):
        total[0, j] += total[0, j - 1]
    for i in range(1, cost.shape[0]):
        for j in range(1, cost.shape[1]):
            total[i, j] += min(total[i - 1, j], total[i, j - 1])
    return total[-1, -1]


@programs.add(lambda r, n: (r.standard_normal(n),))
def viterbi_like_maximum_subarray(x):
    best = x[0]
    current = x[0]
    for i in range(1, len(x)):
        current = max(x[i], current + x[i])
        best = max(best, current)
    return best


@programs.add(lambda r, n: (np.linspace(-2, 1, n + 3), np.linspace(-1.2, 1.2, n), 30))
def mandelbrot_of_arrays(x, y, limit):
    cx = x[None, :]
    cy = y[:, None]
    zx = np.zeros((y.size, x.size))
    zy = np.zeros_like(zx)
    count = np.zeros(zx.shape, dtype=np.int32)
    for _ in range(limit):
        inside = zx * zx + zy * zy <= 4.0
        new_x = np.where(inside, zx * zx - zy * zy + cx, zx)
        zy = np.where(inside, 2 * zx * zy + cy, zy)
        zx = new_x
        count += inside
    return count


@programs.add(lambda r, n: (np.linspace(-2, 1, n + 3), np.linspace(-1.2, 1.2, n), 30))
def mandelbrot_by_points(xs, ys, limit):
    out = np.zeros((len(ys), len(xs)), dtype=np.int64)
    for i in range(len(ys)):
        for j in range(len(xs)):
            x = y = 0.0
            k = 0
            while k < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + xs[j], 2 * x * y + ys[i]
                k += 1
            out[i, j] = k
    return out


@programs.add(lambda r, n: (r.standard_normal((n, n + 1)), 25))
def julia_masked_writes(z, limit):
    zx, zy = z.copy(), z[::-1].copy()
    count = np.full(z.shape, limit, dtype=np.int16)
    for k in range(limit):
        nx = zx * zx - zy * zy - 0.4
        zy = 2 * zx * zy + 0.6
        zx = nx
        escaped = (zx * zx + zy * zy > 4) & (count == limit)
        count[escaped] = k
        zx[escaped] = 0
        zy[escaped] = 0
    return count


@programs.add(lambda r, n: (n,))
def fibonacci_table(n):
    f = np.zeros(n + 2, dtype=np.int64)
    f[1] = 1
    for i in range(2, n + 2):
        f[i] = f[i - 1] + f[i - 2]
    return f


@programs.add(lambda r, n: (n * 7 + 6,))
def collatz_steps(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@programs.add(lambda r, n: (int(r.integers(1, 1000)), int(r.integers(1, 1000))))
def greatest_common_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


@programs.add(lambda r, n: (5 * n,))
def sieve_of_eratosthenes(n):
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return np.nonzero(prime)[0]


@programs.add(lambda r, n: (r.standard_normal(n),))
def insertion_sort(x):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


@programs.add(lambda r, n: (r.standard_normal(n),))
def bubble_sort_with_flag(x):
    n = x.shape[0]
    swapped = True
    while swapped:
        swapped = False
        for i in range(n - 1):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
                swapped = True


@programs.add(lambda r, n: (np.sort(r.standard_normal(n)), float(r.standard_normal())))
def binary_search(x, target):
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@programs.add(lambda r, n: (r.standard_normal(n), 0.3))
def first_index_above(x, threshold):
    for i in range(len(x)):
        if x[i] > threshold:
            return i
    return -1


@programs.add(lambda r, n: (r.standard_normal(n),))
def running_maximum(x):
    out = np.empty_like(x)
    top = -np.inf
    for i in range(x.size):
        if x[i] > top:
            top = x[i]
        out[i] = top
    return out


@programs.add(lambda r, n: (r.integers(0, 7, 4 * n),))
def histogram_by_loop(data):
    counts = np.zeros(7, dtype=np.int64)
    for i in range(len(data)):
        counts[data[i]] += 1
    return counts


@programs.add(lambda r, n: (r.integers(0, 7, 4 * n), r.standard_normal(4 * n)))
def histogram_by_masks(data, weights):
    counts = np.zeros(7, dtype=int)
    sums = np.zeros(7)
    for k in range(7):
        mask = data == k
        counts[k] = np.sum(mask)
        sums[k] = np.sum(weights[mask])
    return counts, sums


@programs.add(lambda r, n: (r.standard_normal(n), 0.5))
def horner_polynomial(x, a):
    coefficients = [1.0, -0.5, a, 2.0, -1.25]
    y = np.zeros_like(x)
    for c in coefficients:
        y = y * x + c
    return y


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(4)))
def polynomial_of_an_array_of_coefficients(x, c):
    y = np.zeros_like(x) + c[0]
    for k in range(1, len(c)):
        y = y * x + c[k]
    return y, sum(c[k] * x**k for k in range(4))


@programs.add(lambda r, n: (r.uniform(-1, 1, n), 6))
def legendre_recurrence(x, order):
    p0, p1 = np.ones_like(x), x
    for k in range(2, order):
        p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
    return p1


@programs.add(lambda r, n: (r.standard_normal(n), np.array([0.25, 0.5, 0.25])))
def convolution_by_loop(x, kernel):
    out = np.zeros(len(x) - len(kernel) + 1)
    for k in range(len(kernel)):
        out += kernel[len(kernel) - 1 - k] * x[k : k + len(out)]
    return out


@programs.add(lambda r, n: (r.standard_normal((n, n + 2)), r.standard_normal((3, 3))))
def convolution_2d(image, kernel):
    h, w = image.shape
    out = np.zeros((h - 2, w - 2))
    for i in range(3):
        for j in range(3):
            out += kernel[i, j] * image[i : i + h - 2, j : j + w - 2]
    return out


@programs.add(lambda r, n: (r.standard_normal((2, 3, n, n)), r.standard_normal((4, 3, 2, 2))), ulp=64)
def convolution_layer(x, w):
    batch, _, h, width = x.shape
    out = np.zeros((batch, w.shape[0], h - 1, width - 1))
    for i in range(2):
        for j in range(2):
            patch = x[:, :, i : i + h - 1, j : j + width - 1]
            out += (patch[:, None] * w[None, :, :, i, j, None, None]).sum(axis=2)
    return np.maximum(out, 0)


@programs.add(lambda r, n: (r.standard_normal((2 * n, 4 * n)),))
def max_and_mean_pooling(x):
    h, w = x.shape
    blocks = x.reshape(h // 2, 2, w // 2, 2)
    return blocks.max(axis=(1, 3)), blocks.mean(axis=(1, 3))


@programs.add(lambda r, n: (r.standard_normal((n, n)),))
def matrix_power_by_squaring(a):
    result = np.eye(a.shape[0])
    k = 5
    while k > 0:
        if k % 2:
            result = result @ a
        a = a @ a
        k //= 2
    return result


@programs.add(lambda r, n: (r.standard_normal((n, n + 1)), r.standard_normal((n + 1, 3))), ulp=16)
def matrix_product_three_loops(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


@programs.add(lambda r, n: (r.integers(0, 2**31, 1)[0], n))
def linear_congruential_generator(seed, count):
    out = np.empty(count, dtype=np.uint32)
    state = np.uint32(seed)
    for i in range(count):
        state = state * np.uint32(1664525) + np.uint32(1013904223)
        out[i] = state
    return out


@programs.add(lambda r, n: (r.integers(0, 2**63, n, dtype=np.uint64),))
def xorshift_rounds(x):
    for _ in range(4):
        x = x ^ (x << np.uint64(13))
        x = x ^ (x >> np.uint64(7))
        x = x ^ (x << np.uint64(17))
    return x


@programs.add(lambda r, n: (r.integers(0, 256, n, dtype=np.uint8),))
def checksum_fletcher(data):
    a = b = 0
    for i in range(len(data)):
        a = (a + int(data[i])) % 255
        b = (b + a) % 255
    return (b << 8) | a


@programs.add(lambda r, n: (r.integers(0, 256, n, dtype=np.uint8),))
def crc_like_table_free(data):
    crc = np.uint32(0xFFFFFFFF)
    for i in range(data.size):
        crc = crc ^ np.uint32(data[i])
        for _ in range(8):
            if crc & np.uint32(1):
                crc = (crc >> np.uint32(1)) ^ np.uint32(0xEDB88320)
            else:
                crc = crc >> np.uint32(1)
    return ~crc


@programs.add(lambda r, n: (r.integers(0, 2**32, n, dtype=np.uint32),))
def population_count(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return (x * np.uint32(0x01010101)) >> 24


@programs.add(lambda r, n: (r.integers(0, 50, n),))
def gray_code_and_back(x):
    gray = x ^ (x >> 1)
    back = gray.copy()
    shift = 1
    while shift < 64:
        back ^= back >> shift
        shift *= 2
    return gray, back


@programs.add(lambda r, n: (r.standard_normal(n), 3))
def median_filter_of_three(x, times):
    for _ in range(times):
        a, b, c = x[:-2], x[1:-1], x[2:]
        y = x.copy()
        y[1:-1] = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
        x = y
    return x


@programs.add(lambda r, n: (r.standard_normal((n, 2)), 0.5, 0.5))
def point_in_polygon(polygon, px, py):
    inside = False
    n = len(polygon)
    j = n - 1
    for i in range(n):
        xi, yi = polygon[i, 0], polygon[i, 1]
        xj, yj = polygon[j, 0], polygon[j, 1]
        if (yi > py) != (yj > py) and px < (xj - xi) * (py - yi) / (yj - yi) + xi:
            inside = not inside
        j = i
    return inside


@programs.add(lambda r, n: (r.standard_normal((n, 2)),))
def polygon_area_and_perimeter(p):
    x, y = p[:, 0], p[:, 1]
    area = 0.5 * np.abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    d = np.diff(np.concatenate([p, p[:1]]), axis=0)
    return area, np.sqrt((d * d).sum(axis=1)).sum()


@programs.add(lambda r, n: (r.standard_normal((n, n)), 2))
def jacobi_eigenvalue_sweeps(m, sweeps):
    a = m + m.T
    n = a.shape[0]
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) > 1e-12:
                    theta = (a[q, q] - a[p, p]) / (2 * a[p, q])
                    t = np.sign(theta) / (abs(theta) + np.sqrt(theta * theta + 1))
                    c = 1 / np.sqrt(t * t + 1)
                    s = t * c
                    row_p, row_q = a[p].copy(), a[q].copy()
                    a[p] = c * row_p - s * row_q
                    a[q] = s * row_p + c * row_q
                    col_p, col_q = a[:, p].copy(), a[:, q].copy()
                    a[:, p] = c * col_p - s * col_q
                    a[:, q] = s * col_p + c * col_q
    return np.diag(a)


@programs.add(lambda r, n: (r.standard_normal(8), np.arange(8.0) * 0), sizes=(1, 2), ulp=64)
def fast_fourier_radix_2(re, im):
    n = 8
    order = np.array([0, 4, 2, 6, 1, 5, 3, 7])
    re, im = re[order], im[order]
    size = 2
    while size <= n:
        half = size // 2
        angle = -2 * np.pi * np.arange(half) / size
        wr, wi = np.cos(angle), np.sin(angle)
        r = re.reshape(n // size, size)
        i = im.reshape(n // size, size)
        tr = r[:, half:] * wr - i[:, half:] * wi
        ti = r[:, half:] * wi + i[:, half:] * wr
        re = np.concatenate([r[:, :half] + tr, r[:, :half] - tr], axis=1).ravel()
        im = np.concatenate([i[:, :half] + ti, i[:, :half] - ti], axis=1).ravel()
        size *= 2
    return re, im


@programs.add(lambda r, n: (r.standard_normal(n),), ulp=512)
def discrete_cosine_transform(x):
    n = x.shape[0]
    k = np.arange(n)
    basis = np.cos(np.pi / n * (k[None, :] + 0.5) * k[:, None])
    return basis @ x


@programs.add(lambda r, n: (r.standard_normal((n, 2)),))
def convex_hull_extreme_and_bounding_box(p):
    low, high = p.min(axis=0), p.max(axis=0)
    return p[p[:, 0].argmin()], np.stack([low, high]), (high - low).prod()


@programs.add(lambda r, n: (r.uniform(0, 1, (n, n)), 10), ulp=256)
def page_rank(links, steps):
    m = links / links.sum(axis=0)
    n = m.shape[0]
    rank = np.ones(n) / n
    for _ in range(steps):
        rank = 0.85 * (m @ rank) + 0.15 / n
    return rank


@programs.add(lambda r, n: (np.arange(n) % 2 == 0, 6))
def rule_110(cells, steps):
    history = np.zeros((steps, cells.size), dtype=bool)
    for t in range(steps):
        history[t] = cells
        left = np.roll(cells, 1)
        right = np.roll(cells, -1)
        cells = (cells | right) & ~(left & cells & right)
    return history


test_programs = programs.tests()
