"""Small programs: Python's own ways, kinds and dtypes, variables that are bound on some paths."""

# ruff: noqa: B007, C417, E712  # written as users write

import numpy as np

from tests.e2e.programs import Programs

programs = Programs()


def vector(r, n):
    return (r.standard_normal(n),)


def matrix(r, n):
    return (r.standard_normal((n, n + 1)),)


def integers(r, n):
    return (r.integers(-20, 20, n),)


def scattered(r, n):
    return (r.standard_normal(n + 4), r.integers(0, n, 6), r.standard_normal(6))


@programs.add(vector, misses=2)
def items_as_python_numbers(x):
    return x.sum().item(), float(x.max()), int(x.argmax()), x.argmax().item(), bool(x.any())


@programs.add(vector, misses=2)
def rebinding_and_writing(x):
    y = x
    y = y + 1
    x[0] = 100
    return y, x


@programs.add(vector, misses=2)
def chained_views_written(x):
    a = x[1:4]
    b = a[::-1]
    b += 1
    a *= 2
    return b, a, x


@programs.add(matrix, misses=2)
def a_view_read_after_its_base_is_written(x):
    r = x[1]
    x[1] = 0
    return r, r + 1


@programs.add(matrix, misses=2)
def a_copy_read_after_its_base_is_written(x):
    r = x[1].copy()
    x[1] = 0
    return r


@programs.add(vector, misses=2)
def two_masked_assignments(x):
    x[x > 0], x[x <= 0] = 1.0, -1.0


@programs.add(vector, misses=2)
def index_from_argmax(x):
    i = int(np.argmax(x))
    return x[i], x[:i], i, x[i:].sum()


@programs.add(vector, misses=2)
def count_as_a_size(x):
    k = (x > 0).sum()
    return k, x[:k], np.arange(k), k / len(x)


@programs.add(vector, misses=2)
def descending_index_arrays(x):
    n = len(x)
    idx = np.arange(n - 1, -1, -1)
    return x[idx], x[idx[::2]], idx


@programs.add(integers, misses=2)
def integer_division_and_powers(x):
    return (
        x // 3,
        x % 3,
        -x // 2,
        x / 2,
        np.floor_divide(x, -3),
        np.remainder(x, -3),
        np.fmod(x, 3),
        x**2,
        np.power(x, 3),
        np.abs(x),
        np.sign(x),
        x.astype(np.uint8),
        x.clip(-3, 3),
    )


@programs.add(integers, misses=2)
def statistics_of_integers(x):
    return (
        x.mean(),
        x.std(),
        x.var(),
        x.sum(),
        x.prod(),
        x.max(),
        x.min(),
        x.cumsum(),
        np.cumprod(x[:4]),
        x.sum(dtype=float),
        x.dot(x),
        x @ x,
    )


@programs.add(lambda r, n: (r.standard_normal(n) > 0,), misses=2)
def statistics_of_bools(m):
    return (
        m.sum(),
        m.mean(),
        m.astype(float),
        ~m,
        m.cumsum(),
        m.argmax(),
        m & True,
        m | False,
        m == True,
        np.count_nonzero(m),
        m.any(),
        m.all(),
        m.nonzero(),
        m * 2,
        m + 1.5,
        -(m * 1),
        m.max(),
        m.min(),
        m.std(),
    )


@programs.add(lambda r, n: (r.standard_normal(n).astype("f4"),), misses=2)
def float32_stays_float32(x):
    return (
        x * 2,
        x * 2.5,
        x / 3,
        x + np.float32(1),
        x * np.float64(2),
        x.sum(),
        x.mean(),
        x.var(),
        x**2,
        x.astype("f8").sum(),
        np.sqrt(np.abs(x)),
        x * np.arange(len(x)),
        x * True,
        1 / x,
        x.sum() * 2,
        x[0] * 2.5,
        x[0] * np.float64(1),
        float(x[0]) * x,
        x.dot(x),
        x.cumsum(),
        x.std(ddof=1),
    )


@programs.add(lambda r, n: (r.standard_normal((n, 3, 2)),), misses=2)
def reductions_of_three_axes(x):
    return (
        x.sum((0, 2)),
        x.mean((1, 2)),
        x.max(1),
        x.transpose(2, 0, 1).sum(1),
        x.swapaxes(0, 1).mean(0),
        x.reshape(-1, 2).T,
        x.reshape(x.shape[0], -1).sum(1),
        x.ravel(order="F"),
        x.reshape((3, -1), order="F"),
        x.std((0, 1), keepdims=True),
        x[..., 0] @ x[..., 1].T,
    )


@programs.add(lambda r, n: (r.standard_normal((n, 3, 2)),), misses=2)
def positions_and_copies_of_three_axes(x):
    return (
        x.argmax(1),
        x.argmin(),
        x.cumsum(1),
        x.any((0, 1)),
        np.all(x > 0, axis=(1, 2)),
        x.prod((0, 1)),
        np.ptp(x, axis=1),
        x.T.copy(),
        np.ascontiguousarray(x.T),
        np.asfortranarray(x),
    )


@programs.add(vector, misses=2)
def wheres(x):
    return (
        np.where(x > 0)[0],
        np.where(x > 0, x, 0),
        np.argwhere(x > 0),
        np.nonzero(x),
        np.flatnonzero(x > 0),
        np.extract(x > 0, x),
        np.compress(x > 0, x),
    )


@programs.add(vector, misses=2)
def sorting_and_searching_by_numpy(x):
    return (
        np.sort(x),
        np.argsort(x),
        np.sort(x)[::-1],
        x[np.argsort(-x)],
        np.searchsorted(np.sort(x), 0.0),
        np.interp(0.5, np.arange(len(x)), x),
    )


@programs.add(lambda r, n: (lambda m: (m @ m.T + n * np.eye(n),))(r.standard_normal((n, n))), misses=2)
def linear_algebra_by_numpy(a):
    return (
        np.linalg.solve(a, a[0]),
        np.linalg.inv(a),
        np.linalg.det(a),
        np.linalg.cholesky(a),
        np.linalg.eigvalsh(a),
        np.linalg.norm(a),
    )


@programs.add(vector, misses=2)
def triangular_loops(x):
    for i in range(3):
        for j in range(i):
            x[i] += x[j]
    return x


@programs.add(vector, misses=2)
def list_of_elements(x):
    acc = []
    for i in range(4):
        acc.append(x[i] * 2)
    return np.array(acc), sum(acc), acc


@programs.add(vector, misses=2)
def dict_that_grows(x):
    d = {}
    for k in ("a", "b"):
        d[k] = x * len(d)
    d.update(c=x.max())
    d.pop("a")
    return d, "b" in d, list(d), len(d)


@programs.add(vector, misses=2)
def sums_by_iteration(x):
    s = 0
    for v in x:
        s = s + v
    t = 0.0
    for i in range(len(x) - 1, 0, -2):
        t += x[i]
    return s, t


@programs.add(vector, misses=2)
def runs_of_positive_elements(x):
    total = 0
    i = 0
    while i < len(x):
        j = i
        while j < len(x) and x[j] > 0:
            total += 1
            j += 1
        i = j + 1
    return total


@programs.add(vector, misses=2)
def argmax_by_loop(x):
    best = -1
    bi = None
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
            bi = i
    return best


@programs.add(vector, misses=2)
def nested_breaks(x):
    found = False
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if x[i] + x[j] > 1.0:
                found = True
                break
        if found:
            break
    return found, i, j


@programs.add(vector, misses=2)
def two_values_carried(x):
    a, b = 0.0, 1.0
    for i in range(len(x)):
        a, b = b, a + b * x[i]
    return a, b


@programs.add(lambda r, n: (r.standard_normal(n), n), misses=2)
def mirrored_writes(x, n):
    out = np.zeros(n)
    for i in range(n):
        out[n - 1 - i] = x[i]
    out[-1] += 1
    out[:-1] -= out[1:]
    return out


@programs.add(lambda r, n: (r.standard_normal(n), 3), misses=2)
def slices_by_a_number(x, k):
    return x[k:], x[:-k], x[::k], x[k::-1], x[-k:], x[k : k + 2], x[len(x) // 2], x[: len(x) // k], x[k - 1]


@programs.add(vector, misses=2)
def recursion_on_numbers(x):
    def rec(n):
        return 1 if n < 2 else n * rec(n - 1)

    return x * rec(5)


@programs.add(vector, misses=2)
def local_class_and_with(x):
    class Acc:
        def __init__(self):
            self.s = 0.0
            self.items = []

        def add(self, v):
            self.s += v
            self.items.append(v)
            return self

        def __enter__(self):
            return self

        def __exit__(self, *a):
            return False

    with Acc() as a:
        a.add(x.sum()).add(x.max())
    return a.s, a.items


@programs.add(vector, misses=2)
def try_around_a_reshape(x):
    try:
        y = x.reshape(7, 11, 13)
    except ValueError:
        y = x * 2
    finally:
        z = x + 1
    return y, z


@programs.add(vector, misses=2)
def unusual_signatures(x):
    f = lambda a, /, b, *, c=1: a * b + c
    return (
        f(x, 2, c=3),
        (lambda *a, **k: (len(a), sorted(k)))(x, 1, z=2),
        [*map(lambda t: t * 2, [x])],
        list(filter(None, [0, 1, 2])),
    )


@programs.add(vector, misses=2)
def generator_expression(x):
    g = (v * 2 for v in (x, x + 1))
    a = next(g)
    b = next(g)
    return a, b


@programs.add(vector, misses=3)
def introspection(x):
    return (
        f"{x.shape[0]:d}",
        str(x.dtype),
        x.dtype == np.float64,
        x.dtype.kind,
        isinstance(x, np.ndarray),
        type(x) is np.ndarray,
        np.issubdtype(x.dtype, np.floating),
        np.isscalar(x[0]),
        callable(x),
        hasattr(x, "shape"),
    )


@programs.add(vector, misses=2)
def constants_and_type_functions(x):
    return (
        np.finfo(x.dtype).eps * x,
        np.iinfo(np.int32).max,
        np.result_type(x, 1),
        np.promote_types("f4", "f8"),
        np.dtype("f4").itemsize,
        np.pi * x,
        np.e,
        np.inf,
        np.nan,
    )


@programs.add(matrix, misses=2)
def rows_swapped_through_views(x):
    u, v = x[0], x[1]
    u[:], v[:] = v.copy(), u.copy()
    return u


@programs.add(matrix, misses=2)
def fancy_swaps_and_writes(x):
    x[[0, 1]] = x[[1, 0]]
    x[:, [0, 1]] = x[:, [1, 0]]
    x[x[:, 0] > 0, 1] = 0
    x[np.arange(len(x)), 0] = 7
    return x


@programs.add(matrix, misses=2)
def normalisations(x):
    return (
        x - x.mean(0),
        (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
        x / np.linalg.norm(x, axis=1, keepdims=True),
        x / x.sum(),
        x @ x.T / len(x),
    )


@programs.add(matrix, misses=2)
def contractions(x):
    return (
        x.sum(1),
        np.dot(x, x.T),
        np.tensordot(x, x, 2),
        np.inner(x, x),
        np.outer(x[0], x[1]),
        np.vdot(x, x),
        np.trace(x @ x.T),
        x.dot(x[0]),
    )


@programs.add(vector, misses=2)
def ufunc_methods(x):
    return (
        np.logical_and(x > 0, x < 1),
        np.logical_or.reduce(x > 0),
        np.add.reduce(x),
        np.minimum.reduce(x),
        np.multiply.outer(x, x),
        np.add.accumulate(x),
        np.logical_and.reduce([x > 0, x < 1]),
    )


@programs.add(vector, misses=2)
def arrays_of_parts(x):
    return (
        np.array([1, 2, 3]) * x[0],
        np.asarray([x[0], x[1]]),
        np.array([[x[0], 0], [0, x[1]]]),
        np.array(x),
        np.array([x, x]),
        np.asarray(x),
        np.array(3.0) * x,
        np.array([1, 2], dtype=np.float32),
        np.stack([x[i] for i in range(3)]),
        np.vstack([x, x]),
        np.float64(3) * x,
    )


@programs.add(vector, misses=2)
def creation_functions(x):
    return (
        np.zeros((2,) + x.shape),
        np.ones(x.shape[0], int),
        np.empty((0, 3)),
        np.full((2, 2), x[0]),
        np.arange(x.size, dtype=float),
        np.arange(0, 1, 0.25),
        np.linspace(0, 1, x.size),
        np.tri(3),
        np.diag([1.0, 2.0]),
        np.eye(2, 3, 1),
        np.zeros_like(x, shape=(2, 3)),
        np.broadcast_to(x, (2, x.size)),
        np.indices((2, 2)),
    )


@programs.add(lambda r, n: (np.array(2.5), np.float32(1.5), True, np.int16(3)), misses=2)
def zero_dimensional_arguments(a, b, c, d):
    return (
        a + b,
        a * c,
        d * b,
        d + 1,
        d / 2,
        a > b,
        c + d,
        np.add(a, 1),
        a.shape,
        b.dtype,
        -d,
        d << 2,
        np.sqrt(d),
        abs(-b),
        b // 1,
        d % 2,
        c * 1,
        round(b),
        a.item(),
    )


@programs.add(lambda r, n: (r.standard_normal(n), [1.0, 2.0, 3.0], (4, 5), "s", None, {"k": 1}), misses=2)
def arguments_of_all_kinds(x, l, t, s, n, d):
    return (
        x * l[0],
        np.array(l) * 2,
        sum(l),
        t[0] + t[1],
        s * 2,
        n,
        d["k"] * x,
        l,
        t,
        max(l),
        [v + 1 for v in l],
        len(l),
        x[:3] * np.array(l),
        x[:3] + l,
    )


@programs.add(vector, misses=2)
def array_bound_in_an_inner_loop(x):
    for i in range(len(x)):
        for j in range(i):
            row = x[:3] * j
    return row


@programs.add(vector, misses=2)
def array_bound_and_written_in_an_inner_loop(x):
    for i in range(len(x)):
        for j in range(i):
            row = x[:3] * j
            row[0] += 1
        if i > 1:
            row[1] = 5
    return row, j


@programs.add(vector, misses=2)
def names_bound_in_an_inner_while(x):
    i = 0
    while i < len(x):
        k = 0
        while k < i:
            last = x[k]
            k += 1
        i += 1
    return last, k


@programs.add(vector, misses=2)
def names_bound_in_a_branch(x):
    for i in range(len(x)):
        if x[i] > 0:
            p = i
            q = x[i]
    return p, q


@programs.add(vector, misses=2)
def else_of_an_inner_loop(x):
    for i in range(len(x)):
        for j in range(len(x)):
            if x[j] > x[i]:
                first = j
                break
        else:
            first = -1
        x[i] += first
    return first, i, j


@programs.add(vector, misses=2)
def loop_variables_read_after_the_loops(x):
    for i in range(len(x)):
        for v in x:
            if v > 0:
                t = v
        for w in x[::-1]:
            if w < 0:
                t = w
                break
    return t, v, w


@programs.add(vector, misses=2)
def continue_and_return_from_a_loop(x):
    n = 0
    for i in range(len(x)):
        a = x[i]
        if a < 0:
            continue
        b = a * 2
        n += 1
        if n > 2:
            return b
    return n * 1.0 + x[0]


@programs.add(scattered, misses=2)
def add_at(x, i, v):
    np.add.at(x, i, v)
    return x


@programs.add(scattered, misses=2)
def add_at_of_a_copy(x, i, v):
    y = x.copy()
    np.add.at(y, i, v)
    np.add.at(y, i[:2], v[:2])
    return y, x


@programs.add(scattered, misses=2)
def add_at_and_subtract_at(x, i, v):
    np.add.at(x, i, v)
    s = x.sum()
    x[0] = 9
    np.subtract.at(x, i, v)
    return s, x * 1


@programs.add(scattered, misses=2)
def add_at_of_a_view(x, i, v):
    np.add.at(x[2:], i[:3] % 3, v[:3])
    return x.sum()


@programs.add(scattered, misses=2)
def add_at_in_a_loop(x, i, v):
    for k in range(3):
        np.add.at(x, i, v)
        if x[0] > 0:
            np.add.at(x, i, 1.0)
    return x


@programs.add(scattered, misses=2)
def add_at_of_a_fresh_array(x, i, v):
    y = np.zeros(x.size + 20)
    np.add.at(y, i, v)
    z = y
    np.add.at(y, i, 1.0)
    return z, y


@programs.add(scattered, misses=2)
def add_at_with_two_index_arrays(x, i, v):
    h = np.zeros((20, 20))
    np.add.at(h, (i, i[::-1]), v)
    np.add.at(h, i, 2.0)
    return h


@programs.add(scattered, misses=2)
def add_at_of_own_elements(x, i, v):
    old = x * 1
    np.add.at(x, i, x[i])
    return old, x


@programs.add(scattered, misses=2)
def add_at_then_whole_writes(x, i, v):
    y = x
    y += 0
    np.add.at(y, i, v)
    x[i] = v
    x[:] = x
    x[...] = x * 2
    return x


test_programs = programs.tests()
