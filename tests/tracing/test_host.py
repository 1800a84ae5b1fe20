"""Calls back into Python: results of unknown size, several results, promises that fail, errors, loops, the user's own."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from jitgraph.tracing import host, probe

K = np.array([3, 1, 2, 2, 5, 9, 1])
A = np.random.default_rng(5).normal(size=(5, 4))


def twice(f, *args):
    """Eager and compiled on copies, twice: the last compiled result and the eager one."""
    jitted = jg.jit(f)
    for _ in range(2):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        got = jitted(*copies)
    return got, f(*args)


def assert_equal(got, wanted):
    if isinstance(wanted, tuple | list):
        assert type(got) is type(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_equal(a, b)
        return
    assert type(got) is type(wanted)
    assert np.asarray(got).dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(got, wanted)


# --- sizes that only the call knows


def test_a_result_of_unknown_size_is_computed_with():
    def f(k):
        u = np.unique(k)
        v = np.unique(k * 2)
        return u + v, u[u > 2].sum(), u.shape[0], np.concatenate([u, v]), len(v) * 2

    assert_equal(*twice(f, K))
    assert_equal(*twice(f, np.array([], int)))


def test_one_trace_for_all_sizes():
    f = jg.jit(lambda k: np.unique(k) * 2)
    for n in (2, 5, 0, 9, 3):
        k = np.arange(n) // 2
        np.testing.assert_array_equal(f(k), np.unique(k) * 2)
    assert f.cache_info().misses == 1


def test_unknown_sizes_in_a_loop_and_a_branch():
    def f(x):
        total = 0.0
        for i in range(x.shape[0]):
            u = np.unique(np.round(x[i]))
            if u.size > 2:
                total = total + u[:2].sum()
            else:
                total = total - u.size
        return total

    assert_equal(*twice(f, np.tile(A, (8, 1))))


def test_several_results_and_named_tuples():
    assert_equal(*twice(lambda k: np.unique(k, return_index=True, return_inverse=True, return_counts=True), K))
    got, wanted = twice(lambda k: np.unique_all(k), K)
    assert type(got) is type(wanted)
    got = jg.jit(lambda a: np.linalg.svd(a).S)(A)
    np.testing.assert_array_equal(got, np.linalg.svd(A).S)


def test_sizes_that_follow_the_operands_stay_symbolic():
    f = jg.jit(lambda a: np.linalg.svd(a, full_matrices=False))
    graph = str(f.graph(A))
    assert "min(n, m)" in graph or "min(m, n)" in graph
    for shape in ((5, 4), (4, 5), (2, 7)):
        a = np.random.default_rng(1).normal(size=shape)
        for got, wanted in zip(f(a), np.linalg.svd(a, full_matrices=False), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_square_matrices_are_a_guard():
    f = jg.jit(lambda a: np.linalg.inv(a))
    np.testing.assert_array_equal(f(np.eye(3) * 2), np.eye(3) / 2)
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        f(np.ones((3, 4)))
    np.testing.assert_array_equal(f(np.eye(4)), np.eye(4))


# --- promises


def test_a_dtype_that_depends_on_data_is_traced_twice():
    f = jg.jit(lambda p: np.roots(p) * 2)
    real, imaginary = np.array([1.0, -3.0, 2.0]), np.array([1.0, 0.0, 2.0])
    for p in (real, imaginary, real, imaginary):
        got = f(p)
        assert got.dtype == np.roots(p).dtype
        np.testing.assert_array_equal(got, np.roots(p) * 2)


def test_a_wrong_promise_in_a_loop_is_an_error_at_the_users_line():
    def f(a):
        total = 0.0
        for k in range(20):
            total = total + np.linalg.eigvals(a + k).sum()
        return total

    a = np.array([[0.0, 1.0], [-1.0, 0.0]])
    if np.linalg.eigvals(np.eye(2)).dtype == np.complex128:  # from NumPy 2.5 on it always is
        assert jg.jit(f)(a) == f(a)
        return
    with pytest.raises(errors.DTypeError, match="returned complex128") as info:
        jg.jit(f)(a)
    assert "test_host.py" in str(info.value)


def test_the_user_is_held_to_the_promise():
    wrong = jg.host(lambda x: x[1:], result=lambda x: x)
    with pytest.raises(errors.ShapeError, match="gave shape"):
        jg.jit(lambda x: wrong(x))(np.ones(3))
    masked = jg.host(lambda x: np.ma.masked_less(x, 0), result=lambda x: x)
    with pytest.raises(errors.DTypeError, match="masked array"):
        jg.jit(lambda x: masked(x))(np.ones(3))


# --- errors


def test_errors_of_the_function_come_through_and_earlier_writes_stay():
    def f(x):
        x[0, 0] = 7.0
        return np.linalg.inv(x * 0)

    x = np.ones((2, 2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        jg.jit(f)(x)
    assert x[0, 0] == 7.0


def test_errors_that_the_user_handles():
    def f(x):
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return x * 0

    for x in (np.eye(3), -np.eye(3), np.eye(3)):
        assert_equal(*twice(f, x))


def test_an_error_frees_what_the_call_held():
    seen = []

    def fail(x):
        seen.append(weakref.ref(x))
        raise KeyError("mine")

    failing = jg.host(fail, result=lambda x: x)
    f = jg.jit(lambda k: failing(np.unique(k)))
    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            f(K)
    gc.collect()
    assert [r() for r in seen] == [None] * 3


# --- the user's functions


def test_shape_dtype_with_sizes_of_data():
    def runs(x):
        """Positions where the value changes, and how often each value comes in a row."""
        at = np.flatnonzero(np.diff(x, prepend=x[:1] - 1))
        return at, np.diff(at, append=len(x)).astype(float)

    spec = (jg.ShapeDtype((None,), np.int64), jg.ShapeDtype((None,)))
    hosted = jg.host(runs, result=spec)
    got, wanted = twice(lambda x: [part * 2 for part in hosted(x)], np.array([1, 1, 2, 2, 2, 7]))
    assert_equal(got, wanted)
    follows = jg.host(lambda x: np.outer(x, x), result=lambda x: jg.ShapeDtype((x.shape[0], x.shape[0])))
    assert "f64[n, n]" in str(jg.jit(lambda x: follows(x)).graph(np.ones(3)))
    assert_equal(*twice(lambda x: follows(x) + 1, np.arange(3.0)))
    with pytest.raises(errors.DTypeError, match="a size of a result"):
        jg.jit(lambda x: jg.host(lambda a: a, result=jg.ShapeDtype(("n",)))(x))(np.ones(3))


@pytest.mark.parametrize(
    "give",
    [
        lambda x: x,  # the operand itself
        lambda x: x[::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),  # read-only, stride zero
        lambda x: np.asfortranarray(np.stack([x, x]))[0],
    ],
)
def test_results_of_any_memory_are_copied(give):
    hosted = jg.host(give, result=jg.ShapeDtype((None,)))

    def f(x):
        y = hosted(x)
        y[0] = 9.0
        return y, x + y

    x = np.arange(4.0)
    y = np.array(give(x))
    y[0] = 9.0
    assert_equal(jg.jit(f)(x.copy()), (y, x + y))


def test_effects_keep_their_order_and_get_python_numbers():
    seen = []
    log = jg.host(lambda a, n: seen.append((a.sum(), type(n))), effects=True)

    def f(x, n):
        log(x, n)
        x = x * 2
        log(x, n)
        return x

    jg.jit(f)(np.ones(3), 4)
    assert seen == [(3.0, int), (6.0, int)]


def test_assertions_of_numpy_testing_are_called():
    def f(x):
        np.testing.assert_array_less(x, 3.0)
        return x + 1

    jitted = jg.jit(f)
    np.testing.assert_array_equal(jitted(np.ones(2)), [2, 2])
    with pytest.raises(AssertionError, match="not strictly ordered"):
        jitted(np.full(2, 5.0))


# --- the table


def test_out_and_methods_in_place():
    def f(a):
        a.sort(axis=0)
        a[1].partition(2)
        x = np.empty_like(a)
        np.fft.fftshift(a)
        return x.shape[0]

    a, b = A.copy(), A.copy()
    assert jg.jit(f)(a) == f(b)
    np.testing.assert_array_equal(a, b)


def test_a_result_that_is_the_argument_itself():
    def f(x, edges):
        counts, used = np.histogram(x, bins=edges)
        return counts / counts.sum(), used is edges, used

    edges = np.array([-1.0, 0.0, 1.0])
    got, wanted = twice(f, A, edges)
    assert_equal(got, wanted)
    assert got[1]


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x: x[:1], "shares memory"),
        (lambda x: x.fill(7), "in place"),
        (lambda x: str(x), "text"),
        (lambda x: x.astype(object), "dtype object"),
        (lambda x: object(), "a object"),
    ],
)
def test_what_the_probe_refuses(fn, why):
    x = np.arange(3.0)
    with pytest.raises(probe.Refused, match=why):
        probe._call(fn, probe.flatten(((x,), {}))[1], [x], [x])


def test_functions_of_the_namespace():
    assert_equal(jg.unique(K), np.unique(K))
    assert_equal(*twice(lambda k: jg.sort(k)[::-1] + 0, K))
    tensor = jg.sort(jg.Tensor(A))
    assert type(tensor) is jg.Tensor
    with pytest.raises(errors.GradientTypeError, match="no gradient"):
        jg.histogram(jg.Tensor(A, requires_grad=True))
    assert np.sort in host.TABLE


# --- NumPy's own Python


def test_the_users_line_is_the_place_of_numpys_own_code():
    graph = str(jg.jit(lambda p, x: np.polyval(p, x)).graph(np.ones(3), A))
    assert "test_host.py" in graph
    assert "_impl.py" not in graph


def test_user_functions_inside_of_numpys():
    def f(x, scale):
        return (
            np.apply_along_axis(lambda r: r * scale + r[0], 1, x),
            np.vectorize(lambda a, b: a if a > b else b * 2)(x, 0.1),
            np.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * scale, 0.5]),
        )

    assert_equal(*twice(f, A, 2.0))


def test_polynomial_objects():
    poly, cheb, old = (
        np.polynomial.Polynomial([1.0, 2.0, 3.0]),
        np.polynomial.Chebyshev([1.0, 2.0]),
        np.poly1d([1.0, 2.0]),
    )
    assert_equal(*twice(lambda x: (poly(x), cheb(x), old(x)), A))


def test_namespaces_of_linalg_and_fft():
    def f(a):
        return jg.linalg.inv(a), jg.linalg.norm(a), jg.fft.rfft(a)[0], jg.linalg.cross(a[0], a[1])

    a = np.eye(3) * 2 + 1
    assert_equal(jg.jit(f)(a)[:1], (np.linalg.inv(a),))
    for got, wanted in zip(jg.jit(f)(a), f(a), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-14)
    assert type(jg.linalg.inv(jg.Tensor(a))) is jg.Tensor


def test_walks_over_positions():
    def f(x):
        total = 0.0
        for i, j in np.ndindex(x.shape):
            total += x[i, j] * (i - 2 * j)
        for (i, _), v in np.ndenumerate(x):
            total += v * i
        return total

    for shape in ((5, 4), (2, 2), (3, 0), (1, 3)):
        x = np.random.default_rng(2).normal(size=shape)
        got, wanted = twice(f, x)
        assert type(got) is type(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda x: np.ma.masked_less(x, 0), "masked arrays"),
        (lambda x: np.frompyfunc(lambda a: a, 1, 1)(x), "use np.vectorize"),
        (lambda x: np.nditer(x), r"loop over x\.flat"),
    ],
)
def test_what_is_refused_says_what_to_do(call, why):
    with pytest.raises(errors.TraceError, match=why):
        jg.jit(call)(np.ones(3))


def test_polynomials_made_of_traced_values():
    def f(x):
        fitted = np.polynomial.Polynomial.fit(x, x**2, 2)
        own = np.polynomial.Chebyshev([x[0], 2.0, 1.0])
        other = np.polynomial.Polynomial(x[:3])
        return fitted(x), own(0.5), own.deriv()(x), other.integ()(x), other.coef, other.degree()

    for got, wanted in zip(*twice(f, np.linspace(-1, 2, 6)), strict=True):
        assert type(got) is type(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_a_size_that_is_an_argument_which_nothing_has_used_before():
    def f(rng, n):
        return rng.normal(size=n), rng.random((n, 2)), np.zeros(n)

    x, y, z = jg.jit(f).trace(np.random.default_rng(1), 5).graph.body.terminator.operands
    assert x.type.shape == z.type.shape
    assert y.type.shape == (*z.type.shape, 2)


def test_numbers_that_only_fit_together_are_tried_as_they_are():
    def f(x, n, axis, bins, ends):
        counts, edges, _ = np.histogram2d(x[:, 0], x[:, 1], bins)
        return np.fft.fft(x, n=n, axis=axis), counts, edges, np.histogram(x, 3, range=ends)[1]

    jitted, x = jg.jit(f), np.arange(12.0).reshape(6, 2)
    for args in ((9, 0, ((0, 3.5, 4, 9.0), 4), (2, 7.5)), (10, 1, ((0, 0.5, 4, 4.5), 3), (-8, -7.5))):
        for got, wanted in zip(jitted(x, *args), f(x, *args), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
