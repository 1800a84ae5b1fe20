"""Programs about arrays themselves: layouts, views, broadcasting, dtypes, masks, gathers, written arguments."""

# ruff: noqa: C416, RET504  # written as users write

import numpy as np

from tests.e2e.programs import Programs

programs = Programs()


def matrix(r, n):
    return (r.standard_normal((n, n + 1)),)


def vector(r, n):
    return (r.standard_normal(n),)


@programs.add(matrix)
def views_returned(x):
    return x.T, x[1:], x[:, ::-1], x[0], x[..., None], x[::2, 1:-1]


@programs.add(matrix)
def views_of_results(x):
    y = x * 2
    return y, y[1:], y.T


@programs.add(matrix)
def reshape_and_ravel(x):
    return x.reshape(-1), x.ravel(), x.T.ravel(), x.flatten(), x.T.reshape(x.shape), x.reshape(x.shape[1], -1)


@programs.add(lambda r, n: (r.standard_normal((n, 3, 2)),))
def transposes(x):
    return x.transpose(1, 0, 2), np.swapaxes(x, 0, 2), np.moveaxis(x, -1, 0), x.T, np.rollaxis(x, 2)


@programs.add(lambda r, n: (r.standard_normal((n, 4)),))
def flips_and_rotations(x):
    return np.flip(x), np.flipud(x), np.fliplr(x), np.rot90(x), np.flip(x, axis=1) + 1


@programs.add(lambda r, n: (np.asfortranarray(r.standard_normal((n, 4))), r.standard_normal((n, 4))))
def fortran_and_c_together(f, c):
    return f + f, f + c, f * 2, f.sum(axis=0), f.sum(), f.T + c.T, f.copy(), np.zeros_like(f)


@programs.add(lambda r, n: (r.standard_normal((2 * n, 3 * n))[::2, ::3],))
def strided_argument(x):
    return x + 1, x.sum(), x.sum(axis=0), x.copy(), x.T * 2, x.reshape(-1)


@programs.add(lambda r, n: (r.standard_normal((n, n))[::-1, ::-1],))
def reversed_argument(x):
    return x * x, x.sum(), x.cumsum(axis=0), x.argmax(), x[::-1]


@programs.add(lambda r, n: (np.broadcast_to(r.standard_normal(n), (4, n)),))
def broadcast_argument(x):
    return x + 1, x.max(axis=0), x.T


@programs.add(lambda r, n: (r.standard_normal((n, 1)), r.standard_normal((1, n)), r.standard_normal((3, 1, 1))))
def broadcasting_of_all_ranks(a, b, c):
    return a + b, a * b - c, c / (1 + b * b), np.maximum(a, c), (a + b + c).sum(axis=(0, 2))


@programs.add(lambda r, n: (r.standard_normal((n, 2, 1, 3)), r.standard_normal((4, 1)), r.standard_normal(())))
def broadcasting_with_zero_dimensions(a, b, c):
    return a + b, a * c, c + 1, c * c, b - c


@programs.add(lambda r, n: (r.standard_normal((1, n)), r.standard_normal((n, 1)), np.ones((1, 1))))
def sizes_of_one(a, b, c):
    return a + b, a + c, c + c, (b * c).squeeze(), a[0], b.reshape(-1) + a


@programs.add(vector)
def newaxis_everywhere(x):
    return x[None], x[:, None], x[None, :, None], x[:, np.newaxis] * x, np.expand_dims(x, (0, 2))


@programs.add(matrix)
def squeeze_and_atleast(x):
    return x[:1].squeeze(0), np.atleast_2d(x[0]), np.atleast_1d(x), np.atleast_3d(x[0])


@programs.add(matrix)
def writes_through_slices(x):
    x[0] = 1.0
    x[:, 1] += 2
    x[1:, 2:] *= x[:-1, :-2]
    x[-1, ::2] = x[0, ::2] - 1
    x[::-1] -= x * 0.5


@programs.add(matrix)
def writes_through_a_view(x):
    top = x[:2]
    top += 1
    row = top[1]
    row[1:] = row[:-1]
    x.T[0] = -1
    return top, row


@programs.add(matrix)
def writes_through_reshape(x):
    flat = x.reshape(-1)
    flat[::2] = 0
    flat[1] = 5
    return x.sum(), flat


@programs.add(vector)
def shift_in_place_forward_and_backward(x):
    x[1:] = x[:-1]
    x[:-1] = x[1:] + x[:-1]
    x[:] = x[::-1]


@programs.add(matrix)
def whole_array_writes(x):
    y = np.empty_like(x)
    y[...] = x
    y[:] = y * 2
    x[...] = 0
    return y


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n)))
def swap_of_halves(x, y):
    temporary = x.copy()
    x[:] = y
    y[:] = temporary
    return x, y


@programs.add(lambda r, n: (lambda x: (x, x))(r.standard_normal(n)))
def one_array_twice(x, y):
    x += 1
    y *= 2
    return x + y


@programs.add(lambda r, n: (lambda x: (x[1:], x[:-1]))(r.standard_normal(n)))
def overlapping_arguments(x, y):
    x += y
    y[::2] = 0
    return x


@programs.add(lambda r, n: (r.standard_normal((n, n)),))
def transpose_added_in_place(x):
    x += x.T
    return x


@programs.add(vector)
def augmented_operators(x):
    x += 1
    x -= 0.5
    x *= 2
    x /= 3
    x **= 2
    x //= 0.25
    x %= 3
    return x


@programs.add(lambda r, n: (r.integers(-50, 50, n), r.integers(1, 9, n)))
def integer_arithmetic(a, b):
    return a + b, a // b, a % b, a * b, a / b, -a, abs(a), a**2, divmod(a, b), a & b, a | b, a ^ b, ~a, a << 2, a >> 1


@programs.add(lambda r, n: tuple(r.integers(0, 100, n).astype(t) for t in ("i1", "u1", "i2", "u4", "i8", "u8")))
def integer_dtypes_mixed(a, b, c, d, e, f):
    return a + b, a * c, b + d, d + e, e + f, b * 2, a - 1, c / b, d // 7, f % 5, b.sum(), a.mean(), c.prod(), b.max()


@programs.add(lambda r, n: (r.integers(-100, 100, n).astype("i1"), r.standard_normal(n).astype("f4")))
def small_integers_and_float32(a, x):
    return (
        a + x,
        a * 0.5,
        x * 2,
        x + 1.5,
        x + np.float64(1),
        a * np.int16(3),
        x / a.astype("f4"),
        (a > x),
        x.sum(),
        x.mean(),
    )


@programs.add(lambda r, n: (r.standard_normal(n) > 0, r.standard_normal(n) > 0))
def boolean_logic(p, q):
    return (
        p & q,
        p | ~q,
        p ^ q,
        np.logical_and(p, q),
        np.logical_not(p),
        p.sum(),
        p.any(),
        q.all(),
        p + q,
        p * q,
        p == q,
        p.astype(int) - q,
        np.where(p, 1, 0),
        p.mean(),
    )


@programs.add(vector)
def casts(x):
    y = x * 100
    return (
        y.astype(int),
        y.astype("i2"),
        y.astype(np.float32),
        y.astype(bool),
        np.int32(y[0]),
        float(y[0]),
        int(y[1]),
        bool(y[2] > 0),
        y.astype(np.int64, copy=False),
        np.asarray(y, dtype=np.float32),
        np.float32(2) * y,
        y.view(),
    )


@programs.add(lambda r, n: (r.uniform(1, 9, n), 3, 2.5, True))
def python_scalars_and_their_kinds(x, i, f, b):
    return (
        i + f,
        i * 2,
        i / 2,
        i // 2,
        f**2,
        x * i,
        x + b,
        i > f,
        -i,
        i % 2,
        round(f),
        abs(-f),
        min(i, f),
        max(i, 5),
        b + 1,
    )


@programs.add(vector)
def numpy_scalars_and_their_kinds(x):
    a, b = x[0], x[1]
    return (
        a + b,
        a * 2,
        a > b,
        np.sqrt(abs(a)),
        x.sum() + 1,
        min(a, b),
        max(a, b),
        a**2,
        -a,
        a == b,
        abs(b),
        divmod(a, b),
    )


@programs.add(vector)
def comparisons_and_where(x):
    return (
        x > 0,
        x == x[0],
        np.where(x > 0, x, -x),
        np.where(x > 0, 1, x),
        np.clip(x, -0.5, 0.5),
        x.clip(0),
        np.minimum(x, 0),
        np.select([x < -0.5, x > 0.5], [-1.0, 1.0], 0.0),
        np.sign(x),
        np.isnan(x),
        np.isfinite(x).all(),
        np.heaviside(x, 0.5),
        np.copysign(1.0, x),
    )


@programs.add(lambda r, n: (np.where(r.standard_normal(3 * n) > 0.4, np.nan, r.standard_normal(3 * n)),))
def not_a_number_and_infinity(x):
    y = np.where(np.isnan(x), 0.0, x)
    z = 1 / np.where(y > 0, y, 0)
    return y, np.isinf(z), np.nan_to_num(x), x.max(), np.fmax(x, 0), np.nansum(x), (x != x).sum(), x == x


@programs.add(vector)
def rounding(x):
    y = x * 10
    return np.floor(y), np.ceil(y), np.trunc(y), np.rint(y), np.round(y, 1), y.round(), np.divmod(y, 3)


@programs.add(vector)
def masked_reads(x):
    positive = x[x > 0]
    return positive, positive.sum(), positive.size, len(positive), positive * 2, x[(x > -1) & (x < 1)]


@programs.add(matrix)
def masked_writes(x):
    x[x > 1] = 1
    x[x < -1] *= 0.5
    mask = np.abs(x) < 0.2
    x[mask] = x[mask] + 10
    np.copyto(x, 9.0, where=x > 9)
    x[np.isnan(x)] = 0


@programs.add(matrix)
def masked_rows_and_columns(x):
    rows = x[:, 0] > 0
    return x[rows], x[rows].sum(axis=0), x[:, x[0] > 0], np.compress(rows, x, axis=0), x[np.flatnonzero(rows)]


@programs.add(lambda r, n: (r.standard_normal(n), r.integers(0, n, 6), r.integers(-n, 0, (2, 3))))
def gathers(x, i, j):
    return x[i], x[j], x.take(i), np.take(x, i), x[[0, 2, 1]], x[i] * 2, x[i][1:], x[np.array([1, 0])]


@programs.add(lambda r, n: (r.standard_normal((n, n + 1)), r.integers(0, n, 4), r.integers(0, n, 4)))
def gathers_of_a_matrix(x, i, j):
    return x[i], x[:, j], x[i, j], x[i][:, j], x[i[:, None], j], x[i, 1:], x[2, j], np.take(x, i, axis=1), x[-1, -1]


@programs.add(lambda r, n: (r.standard_normal(n), r.permutation(n)[:4], r.standard_normal(4)))
def scatters(x, i, v):
    x[i] = v
    x[i] += 1
    x[[0, 1]] = x[[1, 0]]
    return x


@programs.add(lambda r, n: (np.zeros(n), r.integers(0, n, 12), r.standard_normal(12)))
def scatter_add(x, i, v):
    np.add.at(x, i, v)
    return x


@programs.add(lambda r, n: (r.standard_normal((n, 4)), r.integers(0, 4, n)))
def take_along_and_one_hot(x, labels):
    rows = np.arange(len(labels))
    return (
        np.take_along_axis(x, labels[:, None], axis=1)[:, 0],
        x[rows, labels],
        np.eye(4)[labels],
        (labels[:, None] == np.arange(4)).astype(np.float32),
    )


@programs.add(lambda r, n: (np.sort(r.uniform(0, 1, n)), r.standard_normal(n), r.uniform(0.1, 0.9, 7)))
def linear_interpolation_by_search(xs, ys, x):
    k = (xs[None, :] < x[:, None]).sum(axis=1)
    k = np.clip(k, 1, len(xs) - 1)
    x0, x1, y0, y1 = xs[k - 1], xs[k], ys[k - 1], ys[k]
    return y0 + (x - x0) * (y1 - y0) / (x1 - x0)


@programs.add(lambda r, n: (r.standard_normal((n, n)), r.uniform(0, n - 2, 5), r.uniform(0, n - 2, 5)))
def bilinear_interpolation(image, y, x):
    i, j = np.floor(y).astype(int), np.floor(x).astype(int)
    fy, fx = y - i, x - j
    return (
        image[i, j] * (1 - fy) * (1 - fx)
        + image[i + 1, j] * fy * (1 - fx)
        + image[i, j + 1] * (1 - fy) * fx
        + image[i + 1, j + 1] * fy * fx
    )


@programs.add(vector)
def cumulative(x):
    return x.cumsum(), np.cumprod(x), np.cumsum(x[::-1])[::-1], np.diff(x), np.diff(x, n=2), np.cumsum(x > 0)


@programs.add(matrix)
def cumulative_over_axes(x):
    return x.cumsum(axis=0), np.cumsum(x, axis=-1), np.cumprod(x, axis=1), np.diff(x, axis=0), x.cumsum()


@programs.add(lambda r, n: (r.standard_normal((n, n + 2)), 1))
def summed_area_table(x, k):
    s = np.zeros((x.shape[0] + 1, x.shape[1] + 1))
    s[1:, 1:] = x.cumsum(0).cumsum(1)
    w = 2 * k + 1
    return s[w:, w:] - s[:-w, w:] - s[w:, :-w] + s[:-w, :-w]


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n)))
def joins(x, y):
    return (
        np.concatenate([x, y]),
        np.stack([x, y], axis=1),
        np.vstack([x, y]),
        np.hstack((x, y)),
        np.column_stack((x, y)),
        np.append(x, 1.0),
        np.tile(x, 2),
        np.repeat(x, 2),
        np.concatenate([x[None], y[None]], axis=0),
        np.dstack((x, y)),
    )


@programs.add(lambda r, n: (r.standard_normal((2 * n, 4)),))
def splits(x):
    a, b = np.split(x, 2)
    c, d = np.hsplit(x, 2)
    return a + b, c - d, np.array_split(x, 3)


@programs.add(lambda r, n: (r.standard_normal((n, n)),))
def triangles_and_diagonals(x):
    return np.tril(x), np.triu(x, 1), np.diag(x), np.trace(x), np.diag(x[0]), np.eye(len(x)) * x, np.diagonal(x, 1)


@programs.add(lambda r, n: (n, r.standard_normal(n)))
def creation(n, x):
    return (
        np.zeros(n),
        np.ones((n, 2), dtype=np.float32),
        np.full(n, 7),
        np.arange(n),
        np.arange(1, n, 2),
        np.arange(n) * 0.5,
        np.linspace(0, 1, 5),
        np.eye(n),
        np.identity(3),
        np.zeros_like(x, dtype=int),
        np.full_like(x, 2),
        np.array([x[0], 1.0, 2]),
        np.array([[1, 2], [3, 4]]),
        np.empty(0),
        np.ones(x.shape),
    )


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n + 1)))
def meshes(x, y):
    gx, gy = np.meshgrid(x, y)
    return gx * gy, np.sqrt(gx**2 + gy**2), np.add.outer(x, y), np.outer(x, y), np.subtract.outer(x, x)


@programs.add(lambda r, n: (r.standard_normal((2, n, 3)), r.standard_normal((3, n)), r.standard_normal(n)), ulp=32)
def products(a, b, v):
    return (
        a @ b,
        np.dot(b, v),
        v @ v,
        np.inner(v, v),
        np.matmul(b, v),
        a[0].dot(b),
        np.vdot(v, v),
        b @ b.T,
        b.T @ b,
        v @ b.T,
        np.tensordot(b, v, axes=([1], [0])),
    )


@programs.add(lambda r, n: (r.standard_normal((n, n)),), ulp=32)
def chained_matrix_products(a):
    return a @ a @ a, (a @ a.T).trace(), a.T @ (a @ a[:, 0]), -(a @ a) + 2 * a


@programs.add(lambda r, n: (r.standard_normal((n, 3)),))
def reductions_with_options(x):
    return (
        x.sum(axis=0, keepdims=True),
        x.sum(dtype=np.float32),
        np.sum(x, axis=-1),
        np.add.reduce(x),
        np.multiply.reduce(x, axis=1),
        np.maximum.reduce(x, axis=None),
        np.add.accumulate(x, axis=0),
        np.max(x, initial=0),
        np.max(x, where=x > 0, initial=0.0),
        np.mean(x, axis=(0, 1)),
        np.var(x, axis=0, ddof=1),
    )


@programs.add(lambda r, n: (r.standard_normal(n), np.empty(n), np.zeros(n, dtype=bool)))
def out_and_where_arguments(x, out, flags):
    np.add(x, 1, out=out)
    np.multiply(out, 2, out=out, where=x > 0)
    np.greater(x, 0, out=flags)
    r = np.sqrt(np.abs(x), out=out[...])
    return r


@programs.add(lambda r, n: (r.integers(0, 256, (n, n + 1, 3), dtype=np.uint8),))
def photograph_to_grey(image):
    x = image / 255.0
    grey = 0.2126 * x[..., 0] + 0.7152 * x[..., 1] + 0.0722 * x[..., 2]
    return (np.clip(grey, 0, 1) * 255 + 0.5).astype(np.uint8), image.mean(axis=(0, 1)), 255 - image


@programs.add(lambda r, n: (r.integers(0, 256, (n, n + 1), dtype=np.uint8), 100))
def threshold_and_invert(image, level):
    binary = np.where(image > level, 255, 0).astype(np.uint8)
    return binary, np.uint8(255) - image, image // 2 + image // 2, image.astype(np.int16) - 128, image > 200


@programs.add(lambda r, n: (r.uniform(0, 1, (n + 2, n + 3)),))
def sobel_filter(g):
    gx = (g[:-2, 2:] + 2 * g[1:-1, 2:] + g[2:, 2:]) - (g[:-2, :-2] + 2 * g[1:-1, :-2] + g[2:, :-2])
    gy = (g[2:, :-2] + 2 * g[2:, 1:-1] + g[2:, 2:]) - (g[:-2, :-2] + 2 * g[:-2, 1:-1] + g[:-2, 2:])
    m = np.sqrt(gx * gx + gy * gy)
    return m / m.max()


@programs.add(lambda r, n: (r.uniform(0, 1, (n, n + 1)),))
def box_blur_of_a_padded_image(g):
    h, w = g.shape
    p = np.empty((h + 2, w + 2))
    p[1:-1, 1:-1] = g
    p[0, 1:-1], p[-1, 1:-1] = g[0], g[-1]
    p[:, 0], p[:, -1] = p[:, 1], p[:, -2]
    total = np.zeros_like(g)
    for i in range(3):
        for j in range(3):
            total += p[i : i + h, j : j + w]
    return total / 9


@programs.add(lambda r, n: (r.uniform(0, 1, (n, n + 1)), 0.7))
def unsharp_mask(g, amount):
    blurred = g.copy()
    blurred[1:-1] = (g[:-2] + 2 * g[1:-1] + g[2:]) / 4
    blurred[:, 1:-1] = (blurred[:, :-2] + 2 * blurred[:, 1:-1] + blurred[:, 2:]) / 4
    return np.clip(g + amount * (g - blurred), 0, 1)


@programs.add(lambda r, n: (r.uniform(0, 1, (n, n, 3)), np.array([1.1, 1.0, 0.9])), ulp=8)
def white_balance_and_gamma(x, gains):
    y = np.minimum(x * gains, 1.0)
    low = y <= 0.0031308
    return np.where(low, 12.92 * y, 1.055 * y ** (1 / 2.4) - 0.055)


@programs.add(lambda r, n: (r.integers(0, 2**16, n), 5))
def bit_fields(x, shift):
    return x >> shift & 0xF, x << 3, (x & 1) == 0, x | 1 << shift, x ^ -1, ~x & 0xFF, np.bitwise_and(x, 7), np.invert(x)


@programs.add(lambda r, n: (r.integers(-128, 128, n).astype(np.int8), r.integers(0, 256, n).astype(np.uint8)))
def wrap_around(a, b):
    return (
        a + a,
        a * a,
        -a,
        abs(a),
        b + b,
        b - np.uint8(200),
        b * b,
        a << 1,
        b >> 1,
        ~b,
        a.sum(),
        b.cumsum(),
        np.negative(b),
    )


@programs.add(lambda r, n: (r.standard_normal((0, 3)), r.standard_normal(0)))
def empty_arrays(x, v):
    return (
        x + 1,
        x.sum(),
        x.sum(axis=0),
        x.T,
        v @ v,
        x @ x.T,
        v.cumsum(),
        np.concatenate([v, v]),
        x[x > 0],
        v.mean(axis=None),
    )


@programs.add(lambda r, n: (np.array(r.standard_normal()), np.float32(2.5), 3))
def zero_dimensional(a, b, c):
    return (
        a + 1,
        a * b,
        a[()],
        a[...],
        np.where(a > 0, a, 0),
        a.sum(),
        np.sqrt(abs(a)),
        b * c,
        a.reshape(1),
        a.copy(),
        a.ndim,
    )


@programs.add(vector, misses=3)
def ellipsis_and_integer_keys(x):
    y = x[:, None] * x
    return y[..., 0], y[0, ...], y[-1], y[2, 1], y[..., 1:3, 2], y[...], y[1:2], y[-3:-1, -2:], y[10:], y[:100]


@programs.add(lambda r, n: (r.standard_normal((n, n)), 1, 3, 2))
def slices_by_arguments(x, a, b, k):
    return x[a:b], x[a], x[:, -a:], x[b:], x[: x.shape[0] - a], x[a : b + 1, ::k], x[a, b], x[-a, :b]


@programs.add(lambda r, n: (r.standard_normal((n, 4)),))
def shapes_as_numbers(x):
    n, m = x.shape
    return (
        n * m,
        n / m,
        x.size - n,
        len(x),
        x.ndim,
        x / n,
        np.zeros((n + 1, 2 * m)),
        n > 3,
        x.nbytes,
        x.itemsize,
        x.T.shape,
    )


@programs.add(lambda r, n: (r.standard_normal((n, 3)),))
def iteration_over_columns_and_axes(x):
    total = 0.0
    for column in x.T:
        total += column.max() - column.min()
    for k in range(x.ndim):
        total = total + x.sum(axis=k).max()
    a, b, c = x.T
    return total, a * b - c, [row for row in x[:2]], max(x[0]), sum(x[0])


@programs.add(lambda r, n: (r.standard_normal(n),))
def enumerate_and_zip_over_an_array(x):
    total = 0.0
    for i, v in enumerate(x):
        total += i * v
    for a, b in zip(x, x[::-1], strict=True):
        total -= a * b
    return total


@programs.add(lambda r, n: (r.standard_normal((n, n)),), ulp=16)
def norms(x):
    return (
        np.linalg.norm(x),
        np.linalg.norm(x, axis=1),
        np.linalg.norm(x[0]),
        np.linalg.norm(x, ord=1, axis=0),
        np.sqrt(np.sum(np.square(x))),
        np.abs(x).max(),
    )


@programs.add(lambda r, n: (r.uniform(0.1, 3, n),), ulp=8)
def functions(x):
    return (
        np.exp(x), np.log(x), np.sin(x), np.cos(x), np.tan(x), np.tanh(x), np.sqrt(x), np.expm1(x), np.log1p(x),
        np.log2(x), np.log10(x), np.exp2(x), np.sinh(x), np.cosh(x), np.arctan(x), np.arctan2(x, 1 + x),
        np.arcsin(x / 4), np.arccos(x / 4), np.power(x, 1.7), x**0.5, x**-1, x**3, 2**x, np.square(x),
        np.reciprocal(x), np.degrees(x), np.deg2rad(x), np.logaddexp(x, 0), np.float_power(x, 2),
    )  # fmt: skip


def reshaped_and_written(x):
    y = x.reshape(x.shape[0], 2, -1)
    y[:, 0] = 0
    z = x.reshape(x.shape[0] // 2, 2, x.shape[1])
    z += 1
    flat = x.ravel()
    flat[1:3] = 7
    return y, z, flat, y.max()


@programs.add(lambda r, n: (np.asfortranarray(r.standard_normal((2 * n, 6))),))
def reshaped_views_of_fortran_order(x):
    return reshaped_and_written(x)


@programs.add(lambda r, n: (r.standard_normal((2 * n, 12))[:, ::2],))
def reshaped_views_of_a_strided_array(x):
    return reshaped_and_written(x)


@programs.add(lambda r, n: (r.standard_normal((4 * n, 8))[::-2, :6],))
def reshaped_views_of_a_reversed_array(x):
    return reshaped_and_written(x)


@programs.add(vector)
def ravel_of_what_is_not_contiguous(x):
    y = x[::2].ravel()
    y += 1
    return y, x.ravel(), x[1:].ravel()


test_programs = programs.tests()
