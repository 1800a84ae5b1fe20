"""Programs with sizes that are known only when the code runs: of selections, and given as numbers."""

import numpy as np

import jitgraph as jg
from tests.e2e.programs import Programs

programs = Programs()


def vector(r, n):
    return (r.standard_normal(n),)


def vector_and_sizes(r, n):
    return (r.standard_normal(n), 3, 2)


@programs.add(vector)
def shifts_of_a_selection(x):
    y = x[x > 0]
    return np.roll(y, 1), np.roll(y, -2), y[::-1], y[1:], y[:-1], np.diff(y)


@programs.add(vector)
def statistics_of_a_selection(x):
    y = x[x > 0]
    return y @ y, y.mean(), y.std(), y.sum()


@programs.add(vector)
def two_selections(x):
    y = x[x > 0]
    z = x[x <= 0]
    return np.concatenate([y, z]), np.outer(y, z), y[:, None] + z


@programs.add(vector)
def extreme_of_a_selection_that_may_be_empty(x):
    y = x[x > 0]
    return y.max() if y.size > 0 else np.float64(0.0)


@programs.add(vector)
def elements_and_views_of_a_selection(x):
    y = x[np.abs(x) < 10]
    return y.max(), y.argmin(), y[0], y[-1], y.reshape(-1, 1), np.linspace(0, 1, y.size), np.arange(len(y)), y.squeeze()


@programs.add(vector)
def arrays_as_long_as_a_selection(x):
    y = x[x > 0]
    return (
        np.zeros(len(y)),
        np.eye(y.size),
        np.ones_like(y) * 2,
        y.cumsum(),
        np.tile(y, 2),
        np.repeat(y, 2),
        y.size * 2,
        np.full(y.shape, 2.0),
    )


@programs.add(vector)
def positions_of_a_condition(x):
    i = np.nonzero(x > 0)[0]
    return i, x[i], i.size, i * 2, x[i] + 1, np.flatnonzero(x < 0), np.argwhere(x > 0)


@programs.add(vector_and_sizes)
def sizes_from_arguments(x, a, b):
    return (
        np.roll(x, a),
        np.linspace(0, 1, a),
        np.zeros((a, b)),
        x[a:],
        x[:b],
        np.arange(a, a + b),
        np.repeat(x, b),
        np.eye(a),
        np.tile(x, b),
        np.diag(x[:b]),
        np.tri(a),
        np.full((a,), 1),
    )


@programs.add(lambda r, n: (r.standard_normal((12, n)), 3, 4))
def shapes_from_arguments(x, a, b):
    return x.reshape(a, b, -1), x.reshape(a * b, x.shape[1]), np.split(x, 3), x[a], x[:, :b].sum(axis=0)


@programs.add(lambda r, n: (r.standard_normal((n, n)), 2))
def diagonals_from_arguments(x, k):
    np.fill_diagonal(x, 0)
    return np.tril(x, k), np.triu(x, -k), np.diagonal(x, k), np.trace(x)


@programs.add(lambda r, n: (r.standard_normal((n, n)),))
def selected_rows(x):
    m = x[x[:, 0] > 0]
    np.fill_diagonal(m, 1)
    return m, m.T @ m, m @ m.T, np.diagonal(m), np.trace(m), np.tril(m), m.sum(axis=1), m.mean(axis=0)


@programs.add(vector)
def writes_as_long_as_a_selection(x):
    m = x[x > 0]
    out = np.empty(m.shape)
    np.multiply(m, 2, out=out)
    out[...] = m + 1
    out += m
    return out, np.array_equal(m, out), np.clip(m, 0, 1), np.where(m > 1, m, 0)


@programs.add(vector)
def loops_over_a_selection(x):
    i = np.nonzero(x > 0)[0]
    s = 0.0
    for k in range(len(i)):
        s += x[i[k]]
    for v in x[x < 0]:
        s -= v
    return s


@programs.add(vector)
def parts_of_a_selection(x):
    m = x[x > 0]
    k = m.size // 2
    return m[:k], m[k:], m[k], np.split(x, [2, 3]), m[::2], m[m > 0.5]


@programs.add(lambda r, n: (r.standard_normal(n), 0.0, 1.0, n))
def sequences_from_arguments(x, a, b, n):
    t, dt = np.linspace(a, b, n, retstep=True)
    u = np.linspace(a, b, n, endpoint=False)
    return t, dt, u, np.arange(a, b, 0.25), np.linspace(a, b, n + 1)[:-1], np.linspace(0, n, n, dtype=int)


@programs.add(lambda r, n: (r.standard_normal(n), np.zeros(11), 0), sizes=(5, 8, 17, 2), misses=2)
def an_index_that_is_in_range_for_some_sizes(x, y, k):
    """A guard for those, a check for the others, with the writes before it."""
    for i in range(len(x)):
        y[i + k] = x[i] * 2
    return y


@programs.add(lambda r, n: (r.standard_normal((n, 9)),), sizes=(5, 8, 17), misses=2)
def elimination_of_a_matrix_that_is_not_square(a):
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :] / a[k, min(k, 8)]


@programs.add(lambda r, n: (np.ones(n), np.ones(8)), sizes=(17, 8, 5), misses=2)
def a_size_that_may_be_negative(x, k):
    return np.zeros(x.size - k.size + 1).sum()


@programs.add(vector, sizes=(3, 5))
def a_size_that_becomes_negative(x):
    total = 0.0
    for i in range(len(x)):
        x[i] = 0
        total += np.ones(3 - i).sum()
    return total


test_programs = programs.tests()


def test_an_elimination_step_is_one_kernel():
    f = jg.jit(elimination_of_a_matrix_that_is_not_square)
    plan = f.explain(np.eye(5))
    assert len(plan.kernels) == 1
    assert not plan.temporaries


def test_a_window_that_slides_is_one_kernel():
    def smooth(x, w):
        out = np.zeros(len(x) - len(w) + 1)
        for k in range(len(w)):
            out += w[k] * x[k : k + len(out)]
        return out

    plan = jg.jit(smooth).explain(np.ones(9), np.ones(3))
    assert [k.operators for k in plan.kernels if "mul" in k.operators] == [("view", "mul", "add", "write")]
    assert not plan.temporaries


def test_slices_of_slices_grow_by_one_size_each():
    def sliced(x, n):
        made = np.unique(x)[:0:-2]
        for _ in range(n):
            made = made[1:]
        return made

    texts = []
    for n in (5, 10):
        jitted = jg.jit(sliced, static_argnames="n")
        for size in (40, 3, 17):
            np.testing.assert_array_equal(jitted(np.arange(size), n), sliced(np.arange(size), n), strict=True)
        texts.append(str(jitted.graph(np.arange(40), n)))
    assert len(texts[1]) < 3 * len(texts[0])
