"""`@jit` end to end: results, dtypes, writes, aliasing and compile counts against eager NumPy."""

import dataclasses
import functools
import math
import threading

import numpy as np
import pytest

import jitgraph as jg


def same(a, b):
    """Same type, dtype, shape and bits (NaNs equal)."""
    assert type(a) is type(b), (type(a), type(b))
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b or (a != a and b != b)


def both(fn, *args, ulp=0.0):
    """Run `fn` eagerly and compiled on copies; results and changed arguments must agree."""
    copy = lambda: [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    first, second = copy(), copy()
    expected = fn(*first)
    got = jg.jit(fn)(*second)
    if ulp:
        assert type(expected) is type(got)
        np.testing.assert_allclose(got, expected, rtol=ulp * np.finfo(np.asarray(expected).dtype).eps, atol=0)
    else:
        same(expected, got)
    for a, b in zip(first, second, strict=True):
        same(a, b)
    return got


rng = np.random.default_rng(0)
X = rng.standard_normal((6, 5))
Y = rng.standard_normal((6, 5))
V = rng.standard_normal(37)


class TestPrograms:
    def test_arithmetic(self):
        both(lambda x, y: (x + y) * (x - y) / (1.5 + y * y), X, Y)

    def test_scalars_are_weak(self):
        x = X.astype(np.float32)
        assert both(lambda x, s: x * s + 1, x, 2.5).dtype == np.float32
        both(lambda x, s: x * s, np.arange(5, dtype=np.int8), 3)

    def test_result_kinds(self):
        both(lambda x: x.sum(), X)
        both(lambda x: (x.sum(), x.sum(axis=0), x.max(), x.mean(axis=1, keepdims=True)), X)
        both(lambda x: x[2, 3] + 1, X)
        both(lambda x: np.where(x[0, 0] > 0, x[0], 0.0), X)

    def test_statistics_have_numpys_bits(self):
        for shape in ((37,), (1000,), (64, 129), (3, 4, 500)):
            for dtype in ("f4", "f8"):
                x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
                for axis in (None, *range(len(shape))):
                    both(lambda x, axis=axis: (x.sum(axis), x.mean(axis), x.var(axis), x.std(axis)), x)
                both(lambda x: (x.T.sum(0), x[..., ::2].sum(-1), x[::-1].sum(0)), x)

    def test_python_results(self):
        both(lambda x: (x.shape[0], x.ndim, x.size, "text", None, x.shape), X)

    def test_pytrees(self):
        def f(d, t):
            return {"a": d["x"] + t[0], "b": [t[1], d["x"].sum()]}

        both(lambda x, y: f({"x": x}, (y, 3)), X, Y)
        g = jg.jit(f)
        same(g({"x": X}, (Y, 3)), f({"x": X}, (Y, 3)))

    def test_slices_views_and_stencils(self):
        both(lambda x: x[1:-1, 1:-1] * 2 + x[:-2, 1:-1] - x[2:, 1:-1], X)
        both(lambda x: x[::-1, ::2] + x[:, :3], X)
        both(lambda x: np.flip(x.T, 0) @ x, X, ulp=4)
        both(lambda x: x[:, None, :] + x[None, :, :], X)
        both(lambda x: x[..., -1], X)

    def test_masks_and_takes(self):
        both(lambda x: x[x > 0], X)
        both(lambda x, i: x[i], X, np.array([0, 2, -1]))
        both(lambda x, i: x.take(i, axis=1), X, np.array([0, 2, 1]))

        def f(x):
            x[x > 0.5] = 0
            return x

        both(f, X)

    def test_writes(self):
        def f(x, y):
            x[1:-1] += y[1:-1]
            x[0] = 7
            x[:, -1] = y[:, 0]

        both(f, X, Y)

        def g(x):
            x[1:] = x[:-1]
            return x * 1

        both(g, X)

    def test_creation(self):
        def f(x):
            out = np.zeros((x.shape[0], 3))
            out[:, 0] = x[:, 0]
            out[:, 1] = np.arange(x.shape[0])
            return out, np.ones_like(x), np.full(4, 2.5), np.eye(3)

        both(f, X)

    def test_concatenate_and_stack(self):
        both(lambda x, y: (np.concatenate([x, y], axis=1), np.stack([x, y]), np.stack([x, y], axis=-1)), X, Y)

    def test_cumsum_and_arg(self):
        both(lambda x: (x.cumsum(), np.cumsum(x, axis=0), x.argmax(), x.argmin(axis=1)), X)

    def test_integers(self):
        a = np.array([7, -7, 5, 0, -128], dtype=np.int8)
        b = np.array([2, 2, 0, 3, -1], dtype=np.int8)
        with np.errstate(all="ignore"):
            both(lambda a, b: (a // b, a % b, a * b, a + b, a & b, a | b, a ^ b, ~a), a, b)

    def test_math_module(self):
        both(lambda s, x: x * math.sqrt(s) + math.pi, 2.0, V)

    def test_softmax(self):
        def softmax(x):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            return e / e.sum(axis=1, keepdims=True)

        both(softmax, X, ulp=8)

    def test_empty_arrays(self):
        e = np.zeros((0, 3))
        both(lambda x: (x + 1, x.sum(), x.sum(axis=0), x.sum(axis=1)), e)

    def test_zero_d(self):
        both(lambda x: x + 1, np.array(3.0))
        both(lambda x: np.multiply(x, x), np.array(3.0))

    def test_all_layouts(self):
        base = rng.standard_normal((8, 10))
        for x in (
            base,
            base.T,
            np.asfortranarray(base),
            base[::2, ::3],
            base[::-1],
            base[:, ::-1],
            np.broadcast_to(base[0], (4, 10)),
        ):
            expected = np.sqrt(x * x + 1)
            got = jg.jit(lambda x: np.sqrt(x * x + 1))(x)
            same(expected, got)
            assert expected.strides == got.strides


class TestAliasing:
    def test_returns_the_argument_itself(self):
        def f(x):
            x += 1
            return x

        x = X.copy()
        assert jg.jit(f)(x) is x
        same(x, X + 1)

    def test_returns_a_view_of_the_argument(self):
        x = X.copy()
        r = jg.jit(lambda x: x[1:, ::2].T)(x)
        assert np.shares_memory(r, x)
        same(r, x[1:, ::2].T)
        r[...] = 0
        assert x[1, 0] == 0

    def test_same_array_twice(self):
        def f(x, y):
            x[1:] = y[:-1]
            return x + y

        a, b = X.copy(), X.copy()
        same(f(a, a), jg.jit(f)(b, b))
        same(a, b)

    def test_overlapping_arguments(self):
        def f(x, y):
            x[...] = y + x
            y *= 2

        a, b = V.copy(), V.copy()
        f(a[1:], a[:-1])
        jg.jit(f)(b[1:], b[:-1])
        same(a, b)

    def test_read_only_argument_raises(self):
        x = X.copy()
        x.flags.writeable = False

        def f(x):
            x[0] = 1

        with pytest.raises(ValueError, match="read-only"):
            jg.jit(f)(x)


GLOBAL = np.arange(5.0)
SCALE = 2.0


class TestState:
    def test_global_array_is_read_at_call_time(self):
        f = jg.jit(lambda x: x + GLOBAL)
        same(f(np.ones(5)), 1 + GLOBAL)
        GLOBAL[0] = 50.0
        same(f(np.ones(5)), 1 + GLOBAL)
        GLOBAL[0] = 0.0
        assert f.cache_info().misses == 1

    def test_global_scalar_is_a_guard(self):
        global SCALE
        f = jg.jit(lambda x: x * SCALE)
        same(f(V), V * 2.0)
        SCALE = 3.0
        same(f(V), V * 3.0)
        SCALE = 2.0

    def test_closures(self):
        w, k = V.copy(), 3

        def f(x):
            return x * w + k

        g = jg.jit(f)
        same(g(V), V * w + 3)
        w[0] = 9
        same(g(V), V * w + 3)

    def test_methods_and_attributes(self):
        class Model:
            def __init__(self, w):
                self.w = w

            @jg.jit
            def __call__(self, x):
                return self.scaled(x) + 1

            def scaled(self, x):
                return x * self.w

        m = Model(V.copy())
        same(m(V), V * m.w + 1)
        m.w = V + 1
        same(m(V), V * m.w + 1)

    def test_keywords_defaults_and_static(self):
        @functools.partial(jg.jit, static_argnames=("mode",))
        def f(x, y=2.0, *, mode="add"):
            return x + y if mode == "add" else x * y

        same(f(V), V + 2.0)
        same(f(V, mode="mul"), V * 2.0)
        same(f(y=3.0, x=V), V + 3.0)
        with pytest.raises(TypeError):
            f()

    def test_dataclass_argument(self):
        @dataclasses.dataclass
        class P:
            x: np.ndarray
            s: float

        f = jg.jit(lambda p: p.x * p.s)
        same(f(P(V, 2.0)), V * 2.0)

    def test_nested_jit(self):
        inner = jg.jit(lambda x: np.sqrt(x * x))
        f = jg.jit(lambda x: inner(x) + inner(x + 1))
        same(f(V), np.sqrt(V * V) + np.sqrt((V + 1) * (V + 1)))
        assert len(f.explain(V).kernels) == 1


class TestControlFlow:
    def test_jacobi_copies_nothing(self):
        def jacobi(a, b, steps):
            for _ in range(steps):
                b[1:-1] = 0.25 * (a[:-2] + 2 * a[1:-1] + a[2:])
                a[1:-1] = 0.25 * (b[:-2] + 2 * b[1:-1] + b[2:])

        both(jacobi, V, V * 0.5, 20)
        f = jg.jit(jacobi)
        assert list(f.explain(V.copy(), V.copy(), 20).copies) == []
        for steps in (0, 1, 2, 100):
            a, b = V.copy(), V.copy()
            c, d = V.copy(), V.copy()
            jacobi(a, b, steps)
            f(c, d, steps)
            same((a, b), (c, d))
        assert f.cache_info().misses == 1

    def test_index_in_a_slice(self):
        def f(x, n):
            s = 0.0
            for i in range(n):
                s = s + x[i, :i].sum()
                x[i, 0] = s
            return s

        both(f, rng.standard_normal((9, 9)), 9)

    def test_newton_while(self):
        def newton(x, a):
            while abs(x * x - a) > 1e-12:
                x = 0.5 * (x + a / x)
            return x

        both(newton, 3.0, 2.0)

    def test_clipped_step(self):
        def step(x, g, limit):
            n = np.sqrt(np.sum(g * g))
            if n > limit:
                g = g * (limit / n)
            return x - g

        both(step, V, V * 2, 1.0)
        both(step, V, V * 2, 1e9)
        f = jg.jit(step)
        f(V, V, 1.0)
        f(V, V, 1e9)
        assert f.cache_info().misses == 1

    def test_index_error_names_the_line_and_keeps_earlier_writes(self):
        def f(x, n):
            for i in range(n):
                x[i] = i * 2.0
            return x

        x = np.zeros(5)
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5") as e:
            jg.jit(f)(x, 7)
        assert "x[i] = i * 2.0" in e.value.__notes__[0]
        same(x, np.arange(5) * 2.0)

    def test_traced_index(self):
        f = jg.jit(lambda x, i: x[i])
        same(f(V, 3), V[3])
        same(f(V, -1), V[-1])
        with pytest.raises(IndexError):
            f(V, 99)
        assert f.cache_info().misses == 1


class TestCompileCounts:
    def test_a_thousand_shapes_one_compile(self):
        f = jg.jit(lambda x, y: np.sqrt(x * x + y * y).sum() + x[1:].sum())
        r = np.random.default_rng(3)
        for _ in range(1000):
            x = r.standard_normal(int(r.integers(2, 400)))
            same(f(x, x + 1), np.sqrt(x * x + (x + 1) * (x + 1)).sum() + x[1:].sum())
        assert f.cache_info().misses == 1

    def test_a_thousand_scalars_one_compile(self):
        f = jg.jit(lambda x, s, k: x * s + k)
        for i in range(1000):
            same(f(V, i * 0.37, i), V * (i * 0.37) + i)
        assert f.cache_info().misses == 1

    def test_threads_compile_once(self):
        f = jg.jit(lambda x: np.exp(x) * 2)
        out = []
        threads = [threading.Thread(target=lambda: out.append(f(V))) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(out) == 8
        assert f.cache_info().misses == 1


class TestKernels:
    def test_a_chain_is_one_kernel_at_full_width(self):
        f = jg.jit(lambda x, y: np.sqrt(np.exp(-x * x) + y * y) * np.tanh(x) - 0.5 * y)
        e = f.explain(V, V)
        assert len(e.kernels) == 1
        assert list(e.temporaries) == []
        asm = f.inspect_asm(V, V)
        from jitgraph.target import host

        register = {64: "zmm", 32: "ymm", 16: "xmm"}[host().vector_bytes]
        assert register in asm

    def test_softmax_is_one_kernel(self):
        def softmax(x):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            return e / e.sum(axis=1, keepdims=True)

        assert len(jg.jit(softmax).explain(X).kernels) == 1


class TestErrors:
    def test_shapes(self):
        def f(x, y):
            return x + y

        with pytest.raises(ValueError, match="could not be broadcast") as e:
            jg.jit(f)(np.ones(3), np.ones(4))
        assert "return x + y" in str(e.value)

    def test_matmul_shapes(self):
        with pytest.raises(ValueError):
            jg.jit(lambda x, w: x @ w)(np.ones((2, 3)), np.ones((4, 2)))

    @pytest.mark.parametrize("bad", [np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], dtype="M8[D]")])
    def test_dtypes(self, bad):
        with pytest.raises(TypeError):
            jg.jit(lambda x: np.exp(x) + 1)(bad)

    def test_axis(self):
        with pytest.raises(np.exceptions.AxisError):
            jg.jit(lambda x: x.sum(axis=3))(X)

    def test_branch_on_array(self):
        with pytest.raises(ValueError, match="truth value"):
            jg.jit(lambda x: 1 if x > 0 else 2)(X)

    def test_a_run_time_size_may_be_the_free_one(self):
        f = jg.jit(lambda x, rows: x.reshape(rows, 2))
        x = np.arange(20)
        for rows in (-1, 10, -1, -3):
            same(f(x, rows), x.reshape(rows, 2))
        with pytest.raises(ValueError, match="reshape"):
            f(x, 3)

    def test_unknown_function_has_a_remedy(self):
        with pytest.raises(TypeError, match=r"jg\.host"):
            jg.jit(lambda x: np.array2string(x))(X)
        f = jg.jit(lambda x: len(np.array2string(x)), fallback="eager")
        with pytest.warns(UserWarning):
            assert f(X) == len(np.array2string(X))


class TestGradients:
    def test_linear_regression(self):
        def loss(w, b, x, y):
            y_pred = np.matmul(x, w) + b
            return np.sum(1 / 2 * (y_pred - y) ** 2)

        r = np.random.default_rng(5)
        w, b, x, y = r.standard_normal(4), 0.3, r.standard_normal((10, 4)), r.standard_normal(10)
        d = x @ w + b - y
        for g in (
            jg.grad(loss, argnums=(0, 1)),
            jg.jit(jg.grad(loss, argnums=(0, 1))),
            jg.grad(jg.jit(loss), argnums=(0, 1)),
        ):
            gw, gb = g(w, b, x, y)
            np.testing.assert_allclose(gw, x.T @ d, rtol=1e-12)
            np.testing.assert_allclose(gb, d.sum(), rtol=1e-12)

    def test_gradient_of_a_loop_with_writes(self):
        def f(x):
            y = x * 1.0
            for _ in range(20):
                y[1:-1] += 0.1 * (y[:-2] - 2 * y[1:-1] + y[2:])
            return (y * y).sum()

        jg.check_grads(f, (V,))
        g = jg.jit(jg.grad(f))
        np.testing.assert_allclose(g(V), jg.grad(f)(V), rtol=1e-10)


def test_a_closure_array_that_was_the_argument_is_looked_up_again():
    w = V.copy()
    f = jg.jit(lambda x: x + w)
    same(f(w), w + w)  # one and the same array at capture
    same(f(V * 3), V * 3 + w)
    same(f(w), w + w)
