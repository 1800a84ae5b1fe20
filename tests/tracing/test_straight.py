"""Functions without control flow: arithmetic, views, writes, aliasing, containers, keywords, helpers, objects."""

import dataclasses
import functools
import math
import typing

import numpy as np
import pytest

from tests.tracing.harness import Jit, check

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((6, 5)), rng.standard_normal((6, 5))
V, W = rng.standard_normal(7), rng.standard_normal(7)


def vec(n, seed=1):
    return np.random.default_rng(seed).standard_normal(n)


def test_arithmetic_for_all_sizes():
    def f(x, y):
        return (x + y) * (x - y) / (1.5 + y * y)

    check(f, (V, W), (vec(3), vec(3)), (vec(100), vec(100)))
    check(f, (X, Y), (vec(12).reshape(3, 4), vec(12).reshape(3, 4)))


def test_numpy_functions():
    check(lambda x: np.sqrt(np.abs(x)) + np.maximum(x, 0.5), (V,), (vec(4),))


def test_scalars_are_weak_arguments():
    check(lambda x, s, k: x * s + k, (V.astype("f4"), 2.5, 3), (V.astype("f4"), 0.25, -1))


def test_reductions_and_kinds():
    check(lambda x: (x.sum(), x.sum(axis=0), x.mean(axis=1, keepdims=True), x[1, 2]), (X,), (vec(12).reshape(3, 4),))


def test_guarded_broadcasting_needs_another_trace_for_another_relation():
    check(lambda x, y: x + y, (X, X[0]), (vec(12).reshape(3, 4), vec(4)), (X, vec(1)), traces=2)


def test_slices_and_stencil():
    check(lambda x: x[1:-1, 1:-1] * 2 + x[:-2, 1:-1] - x[2:, 1:-1], (X,), (vec(60).reshape(6, 10),))


def test_write_to_a_slice_is_seen_by_the_caller():
    def f(x, y):
        x[1:-1] += y[1:-1]
        x[0] = 7

    check(f, (V, W), (vec(4), vec(4)))


def test_returns_the_argument_itself():
    def f(x):
        x += 1
        return x

    check(f, (V,), (X,), traces=2)


def test_returns_views_of_arguments():
    check(lambda x: (x[1:], x.T, x[::2, None], x.reshape(-1)), (X,), (vec(24).reshape(6, 4),))


def test_returns_views_of_results():
    def f(x):
        y = x * 2
        return y[1:], y, y[:1]

    check(f, (V,), (vec(5),))

    def g(x):
        return (x * 2).T

    check(g, (X,))


def test_write_through_a_view_of_a_view():
    def f(x):
        y = x[1:]
        z = y[::2]
        z[...] = -1
        y *= 2
        return z.sum()

    check(f, (V,), (vec(12),))


def test_read_after_write():
    def f(x):
        y = x[:3]
        a = y + 1
        x[0] = 100.0
        return a, y + 1

    check(f, (V,), (vec(5),))


def test_same_array_passed_twice():
    def f(x, y):
        x += y
        return x is y, x, y

    a = vec(4)
    f_ = Jit(f)
    b = a.copy()
    assert f(a, a)[0] is True
    r = f_(b, b)
    assert r[0] is True
    assert r[1] is b
    assert r[2] is b
    np.testing.assert_array_equal(a, b)


def test_sizes_are_numbers():
    check(lambda x: (x.shape, x.shape[0] * 2 + 1, x.ndim, x.size, len(x)), (X,), (vec(12).reshape(3, 4),))


def test_sizes_in_arithmetic():
    check(lambda x: x.sum() / x.size + x.shape[0], (X,), (vec(12).reshape(3, 4),))


def test_creation_from_sizes():
    def f(x):
        out = np.zeros((x.shape[0], 3))
        out[:, 0] = x[:, 0]
        out[:, 1] = np.arange(x.shape[0])
        return out

    check(f, (X,), (vec(12).reshape(3, 4),))


def test_containers_in_and_out():
    def f(d, t):
        return {"a": d["x"] + t[0], "b": [t[1], d["x"].sum()], "c": None, "d": "text"}

    check(f, ({"x": V}, (W, 3)), ({"x": vec(3)}, (vec(3), 4)))


class Point(typing.NamedTuple):
    x: np.ndarray
    y: np.ndarray


@dataclasses.dataclass
class State:
    position: np.ndarray
    time: float

    def advanced(self, velocity, dt=0.5):
        return State(self.position + velocity * dt, self.time + dt)


def test_named_tuples_and_dataclasses():
    check(lambda p: Point(p.y, p.x * 2), (Point(V, W),), (Point(vec(2), vec(2)),))
    check(lambda s, v: s.advanced(v).advanced(v, dt=1.0), (State(V, 0.0), W), (State(vec(3), 1.5), vec(3)))


def test_keywords_defaults_and_star_arguments():
    def f(x, *rest, scale=2.0, **options):
        for r in rest:
            x = x + r
        return x * scale + options.get("shift", 0)

    check(f, (V,), (V, W, traces_keywords(scale=3.0)), (V, W, W, traces_keywords(shift=1.5)), traces=3)


def traces_keywords(**kwargs):
    return {"kwargs": True, **kwargs}


def test_static_arguments():
    def f(x, mode):
        return x + 1 if mode == "up" else x - 1

    check(f, (V, "up"), (V, "down"), (W, "up"), traces=2)


def test_a_number_that_python_needs_is_baked_in_under_a_guard():
    def f(x, k):
        return x * [1.0, 2.0, 3][k]  # numbers of two kinds: no array of them

    f_ = check(f, (V, 1), (W, 1), (V, 2), traces=2)
    (made,) = f_.traces.values()
    assert made[0].leaf_values == {1: 1}


def helper(x, scale=2.0):
    return np.exp(x * scale)


def test_helpers_partials_lambdas():
    half = functools.partial(helper, scale=0.5)
    twice = lambda f, x: f(f(x))
    check(lambda x: half(x) + helper(x) + twice(np.sin, x), (V,), (vec(3),))


def test_functions_in_a_table():
    table = {"z": np.zeros, "max": np.max, "exp": np.exp}

    def f(x):
        return table["z"](x.shape[0]) + table["exp"](x) + table["max"]([x[0], x[1]])

    check(f, (V,), (vec(3),))


def test_math_functions_on_numbers():
    check(lambda s, x: x * math.sqrt(s) + math.pi + math.floor(s), (2.5, V), (7.25, V))


def test_lists_of_arrays():
    def f(xs):
        total = sum(xs)
        return total, np.stack(xs), [x * 2 for x in xs if x is not None]

    check(f, ([V, W],), ([vec(3), vec(3, 2)],))


def test_star_and_unpacking():
    def f(pair):
        (a, b), c = pair
        return np.add(*[a, b]) + c

    check(f, (((V, W), 3.0),), (((vec(2), vec(2)), 4.0),))


class Model:
    kinds = ("linear",)

    def __init__(self, w, b):
        self.w = w
        self.b = b
        self.calls = 0
        self.history = [0.0, 0.0]

    @property
    def scale(self):
        return self.w.sum()

    def apply(self, x):
        return self._linear(x) * self.scale

    def _linear(self, x):
        return x @ self.w + self.b

    def count(self, x):
        self.calls += 1
        return x + self.calls

    def remember(self, x):
        self.history[1] = x.sum()
        return x

    def __call__(self, x):
        return self.apply(x)


def test_objects_give_hidden_arguments():
    m = Model(rng.standard_normal((5, 2)), 0.5)
    f = Jit(m.apply)
    np.testing.assert_allclose(f(X), m.apply(X))
    m.w = m.w + 1
    np.testing.assert_allclose(f(X), m.apply(X))
    m.b = 2.0
    np.testing.assert_allclose(f(X), m.apply(X))
    assert f.count == 1
    (made,) = next(iter(f.traces.values()))
    assert [h.name for h in made.hidden] == ["self.w", "self.b"] or [h.name for h in made.hidden] == ["w", "b"]


def test_callable_object():
    m = Model(rng.standard_normal((5, 2)), 0.5)
    f = Jit(m)
    np.testing.assert_allclose(f(X), m(X))


def test_a_counter_in_an_object_is_replayed():
    m, n = Model(V, 0.0), Model(V, 0.0)
    f = Jit(m.count)
    for _ in range(4):
        np.testing.assert_array_equal(f(V), n.count(V))
        assert m.calls == n.calls
    assert f.count == 1


def test_a_store_to_a_list_in_an_object_is_replayed():
    m = Model(V, 0.0)
    f = Jit(m.remember)
    f(V)
    assert m.history == [0.0, V.sum()]
    for x in (W, V, W):
        f(x)
        assert m.history == [0.0, x.sum()]
    assert f.count == 2  # a NumPy scalar is there from the first call on


def test_objects_made_inside():
    def f(x):
        m = Model(x, 1.0)
        m.b = m.b + 1
        return m.count(x) + m.b

    check(f, (V,), (vec(2),))


class Vector:
    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Vector(np.add(self.data, other.data if isinstance(other, Vector) else other))

    def __rmul__(self, k):
        return Vector(k * self.data)

    def __getitem__(self, k):
        return self.data[k]

    def __len__(self):
        return len(self.data)


def test_operators_of_user_classes():
    def f(x):
        v = 2.0 * Vector(x) + Vector(x) + 1
        return v.data + len(v) + v[0]

    check(f, (V,), (vec(3),))


def test_generators_are_consumed_while_tracing():
    def powers(x, n):
        y = x
        for _ in range(n):
            yield y
            y = y * x

    def f(x):
        return sum(powers(x, 3))

    check(f, (V,), (vec(3),))


def test_nested_functions_and_nonlocal():
    def f(x):
        total = 0.0

        def add(y):
            nonlocal total
            total = total + y.sum()

        add(x)
        add(x * 2)
        return total

    check(f, (V,), (vec(3),))


def test_isinstance_and_type():
    def f(x, s):
        if not (isinstance(x, np.ndarray) and isinstance(s, float) and type(x) is np.ndarray):
            return None
        return x * s

    check(f, (V, 2.0))


def test_with_try_match_and_walrus():
    def f(x, kind):
        with np.errstate(all="ignore"):
            try:
                y = {"a": x}["b"]
            except KeyError:
                y = x + 1
        match kind:
            case "double":
                y = y * 2
            case _:
                pass
        if (n := len(kind)) > 3:
            y = y + n
        return y

    check(f, (V, "double"), (vec(2), "double"), (V, "x"), traces=2)


def test_nested_jit_is_traced_inline():
    class Jitted:
        __jitgraph_jit__ = True

        def __init__(self, fn):
            self.__wrapped__ = fn

    inner = Jitted(lambda x: np.sqrt(x * x))
    check(lambda x: inner(x) + 1 if False else x, (V,))
    f = Jit(lambda x: inner(x) + inner(x + 1))
    np.testing.assert_array_equal(f(V), np.sqrt(V * V) + np.sqrt((V + 1) * (V + 1)))


def test_specialize_shape():
    f = Jit(lambda x: x * 2, specialize="shape")
    assert str(f.trace(V).graph.args[0].type) == "f64[7]"
    f(V)
    f(vec(3))
    f(V)
    assert f.count == 2


def test_size_one_is_part_of_the_key():
    check(lambda x, y: x + y, (np.ones((1, 4)), np.ones((3, 4))), (np.ones((1, 2)), np.ones((5, 2))))


def test_all_layouts():
    base = rng.standard_normal((8, 10))
    for x in (base, base.T, np.asfortranarray(base), base[::2, ::3], base[::-1], base[:, ::-1]):
        check(lambda x: (np.sqrt(x * x + 1), x.sum(axis=0), x[1:]), (x,))


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f4"])
def test_dtypes(dtype):
    a = (np.arange(6) % 3).astype(dtype)
    check(lambda x: (x + x, x == 1, x.sum(), x.max()), (a,), (a[:4],))
