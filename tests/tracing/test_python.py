"""Corners of the language: scopes, classes, generators, comprehensions, exceptions, context managers, calls."""

import contextlib
import dataclasses
import enum
import functools

import numpy as np
import pytest

from tests.tracing.harness import Jit, check

V, W = np.arange(7.0) - 3, np.arange(7.0) * 0.5


def vec(n, seed=1):
    return np.random.default_rng(seed).standard_normal(n)


def test_a_class_in_the_function():
    def f(x):
        scale = 2.0

        class Scaled:
            factor = scale
            names = [str(k) for k in range(3)]  # noqa: RUF012

            def apply(self, y):
                return y * self.factor + len(self.names)

        return Scaled().apply(x)

    check(f, (V,), (vec(3),))


def test_super_properties_class_and_static_methods():
    class Base:
        rate = 0.5

        def __init__(self, w):
            self.w = w

        def forward(self, x):
            return x * self.w

        @classmethod
        def default(cls):
            return cls(cls.rate)

        @staticmethod
        def shift(x):
            return x + 1

    class Derived(Base):
        def __init__(self, w):
            super().__init__(w * 2)

        def forward(self, x):
            return self.shift(super().forward(x)) * self.doubled

        @property
        def doubled(self):
            return self.w * 2

    def f(x, s):
        return Derived(s).forward(x) + Derived.default().forward(x)

    check(f, (V, 2.0), (vec(3), 0.25))


def test_comprehensions_and_walrus():
    def f(xs):
        squares = [y for x in xs if (y := x * x) is not None]
        table = {k: v.sum() for k, v in enumerate(squares)}
        return sum(table.values()), {len(xs)}.pop(), list(map(np.negative, xs))[-1], tuple(x[0] for x in xs)

    check(f, ([V, W],), ([vec(4), vec(4, 2)],))


def test_generators_with_send_and_return():
    def accumulate(x):
        total = x * 0
        while True:
            y = yield total
            if y is None:
                return total
            total = total + y

    def f(x, y):
        g = accumulate(x)
        next(g)
        g.send(x)
        return g.send(y)

    check(f, (V, W), (vec(3), vec(3, 2)))


def test_context_managers_and_finally():
    @contextlib.contextmanager
    def scaled(log):
        log.append("in")
        try:
            yield 2.0
        finally:
            log.append("out")

    def f(x):
        log = []
        with scaled(log) as s, contextlib.suppress(KeyError):
            y = x * s
            {}["missing"]
        try:
            y = y + len(log)
        finally:
            log.append("done")
        return y, log

    check(f, (V,), (vec(3),))


def test_exceptions_between_functions():
    class Stop(Exception):  # noqa: N818
        def __init__(self, value):
            super().__init__("stop")
            self.value = value

    def inner(x):
        raise Stop(x * 2)

    def f(x):
        try:
            inner(x)
        except Stop as stop:
            return stop.value
        return x

    check(f, (V,), (vec(3),))


def test_decorators_with_wraps_and_cache():
    def twice(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) * 2

        return wrapper

    @twice
    def g(x, k=1):
        return x + k

    @functools.lru_cache
    def weights(n):
        return tuple(range(n))

    check(lambda x: g(x) + g(x, k=3) + sum(weights(4)), (V,), (vec(3),))


class Mode(enum.Enum):
    UP = "up"
    DOWN = "down"


@dataclasses.dataclass(frozen=True)
class Options:
    mode: Mode = Mode.UP
    scale: float = 2.0


def test_enums_and_dataclass_options():
    def f(x, options):
        match options:
            case Options(mode=Mode.UP, scale=s):
                return x * s
            case _:
                return x - 1

    check(f, (V, Options()), (V, Options(scale=3.0)), (V, Options(Mode.DOWN)), traces=2)


def test_calls_of_every_form():
    def g(a, /, b, *rest, c=1, **more):
        return a + b * 2 + sum(rest) + c + more.get("d", 0)

    def f(x):
        args, kwargs = (x, x), {"c": 2, "d": 3}
        return g(*args, **kwargs) + g(x, b=x) + g(x, *[x, x], c=x[0])

    check(f, (V,), (vec(3),))


def test_recursive_closures_and_default_capture():
    def f(x):
        def power(y, n):
            return y if n == 1 else y * power(y, n - 1)

        adders = [lambda y, k=k: y + k for k in range(3)]
        return power(x, 3) + adders[2](x)

    check(f, (V,), (vec(3),))


def test_del_global_names_and_shadowed_builtins():
    def f(x):
        y = x + 1
        z = y
        del y
        sum = z * 2
        max = [3]
        return sum + len(max)

    check(f, (V,), (vec(3),))


def test_strings_and_formatting_of_static_values():
    def f(x, name):
        label = f"{name}-{x.ndim}" + "%d" % 3 + str(x.dtype)  # noqa: UP031
        return label, x * len(label)

    check(f, (V, "a"), (vec(3), "a"))


def test_sets_sorting_and_keys():
    def f(xs):
        order = sorted(xs, key=lambda name: -len(name))
        return [xs[name] * k for k, name in enumerate(order)], max(len(n) for n in xs)

    check(f, ({"a": V, "bbb": W, "cc": V},))


def test_lambda_functions_themselves():
    check(lambda x, k=2: (lambda y: y * k)(x) if x.ndim == 1 else x, (V,), (vec(3),))
    many = [lambda x: x + 1, lambda x: x + 2, lambda x: x + 3]
    for g in many:
        check(g, (V,))


def test_async_is_refused_and_source_less_code_runs():
    space = {"np": np}
    exec("def f(x, y):\n    return np.exp(x) * y + (x if y.ndim else 1)", space)
    check(space["f"], (V, W), (vec(3), vec(3)))


def test_branches_inside_comprehension_helpers():
    def pick(x, k):
        if x[k] > 0:
            return x[k] * 2
        return -x[k]

    def f(x):
        return sum([pick(x, k) for k in range(3)])

    check(f, (V,), (vec(5),))


def test_truth_of_one_element_arrays():
    def f(x):
        if x[:1] > 0:
            return x * 2
        return x * 3

    check(f, (V,), (np.abs(vec(5)),))


def test_chained_assignment_and_tuple_targets():
    def f(x):
        a = b = x + 1
        b += 1
        (c, d), *rest = (a, b), x, x
        x[0], x[1] = c[1], d[0]
        return a, c, rest[0], a is b

    check(f, (V,), (vec(4),))


class Doubler:
    def __init__(self):
        self.total = 1.0

    def doubled(self, y):
        self.total = self.total * 2
        y[...] = y * 2
        return y


def test_the_target_of_an_update_is_read_before_its_value():
    def attribute(x):
        d = Doubler()
        d.total += d.doubled(x).sum()
        return d.total

    def element(x):
        x[0] += Doubler().doubled(x).sum()
        return x

    def view(x):
        x[0:2] += Doubler().doubled(x)[1:3]
        return x

    def gathered(x):
        x[[0, 1]] -= Doubler().doubled(x)[2]
        return x

    def in_a_dict(x):
        d = {"k": x.sum()}

        def tripled():
            d["k"] = d["k"] * 3
            return d["k"]

        d["k"] -= tripled()
        return d["k"]

    for f in (attribute, element, view, gathered, in_a_dict):
        check(f, (vec(5),), (vec(4),))


@pytest.mark.parametrize("n", [3, 20])
def test_static_ranges(n):
    def f(x):
        for k in range(n):
            x = x + k
        return x

    check(f, (V,), (vec(2),))


def test_a_jitted_function_in_map():
    class Jitted:
        __jitgraph_jit__ = True

        def __init__(self, fn):
            self.__wrapped__ = fn

        def __call__(self, x):
            return self.__wrapped__(x)

    g = Jitted(lambda x: np.zeros(x.shape) + x)
    f = Jit(lambda xs: [*map(g, xs)])
    np.testing.assert_array_equal(f([V, W])[1], W)
