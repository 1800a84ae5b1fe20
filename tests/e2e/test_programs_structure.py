"""Programs about how code is put together: arguments, containers, objects, closures, helpers, nesting, errors."""

# ruff: noqa: B007, C405  # written as users write

import collections
import dataclasses
import functools
import math
import operator
from typing import NamedTuple

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e import programs_helpers
from tests.e2e import programs_helpers as helpers_by_another_name
from tests.e2e.programs import Programs, outcome, same
from tests.e2e.programs_helpers import scaled as renamed_helper

programs = Programs()


def vector(r, n):
    return (r.standard_normal(n),)


@programs.add(vector)
def defaults_and_keywords(x, a=2.0, *, b=1.0):
    def inner(y, *rest, scale=1.0, **options):
        return y * scale + sum(rest) + options.get("shift", 0.0) + len(options)

    return inner(x, 1.0, a, scale=b, shift=3.0) + inner(y=x)


@programs.add(lambda r, n: (r.standard_normal(n), (1.0, 2.5), {"k": 3.0, "v": r.standard_normal(n)}))
def tuples_and_dicts(x, pair, table):
    a, b = pair
    out = {"sum": x + table["v"], "scaled": x * table["k"]}
    out["pair"] = (a * x, b)
    for key, value in table.items():
        out[key + "2"] = value * 2
    return out


@programs.add(lambda r, n: ([r.standard_normal(n) for _ in range(3)],))
def list_of_arrays(arrays):
    total = arrays[0] * 0
    for a in arrays:
        total = total + a
    arrays[1] += 1
    return [a / total for a in arrays], sum(arrays), len(arrays), max(a.max() for a in arrays)


@dataclasses.dataclass
class Particle:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 1.0

    def energy(self):
        return 0.5 * self.mass * (self.velocity**2).sum()

    @property
    def momentum(self):
        return self.mass * self.velocity


@programs.add(lambda r, n: (Particle(r.standard_normal(n), r.standard_normal(n), 2.0), 0.1))
def dataclass_with_methods(p, dt):
    p.position += dt * p.velocity
    moved = Particle(p.position * 1, p.velocity - dt * p.position, p.mass)
    return moved, p.energy(), moved.momentum, dataclasses.replace(moved, mass=3.0)


class Point(NamedTuple):
    x: np.ndarray
    y: np.ndarray

    def norm(self):
        return np.sqrt(self.x * self.x + self.y * self.y)


@programs.add(lambda r, n: (Point(r.standard_normal(n), r.standard_normal(n)),))
def named_tuples(p):
    q = p._replace(x=p.y)
    return p.norm() + q.norm(), Point(p.x + 1, p.y), p[0]


class Counter:
    """Holds state between calls."""

    def __init__(self, n):
        self.total = np.zeros(n)
        self.calls = 0
        self.last = None
        self.log = {}

    def push(self, x):
        self.total += x
        self.calls += 1
        self.last = x * 2
        self.log["mean"] = x.mean()
        return self.total / self.calls


@programs.add(lambda r, n: (Counter(n), r.standard_normal(n)), misses=6)  # a capture for each object
def object_with_state(counter, x):
    first = counter.push(x)
    second = counter.push(x + 1)
    return first, second


class Layer:
    def __init__(self, w, b, activation=np.tanh):
        self.w, self.b, self.activation = w, b, activation

    def __call__(self, x):
        return self.activation(x @ self.w + self.b)


def positive_part(x):
    return np.maximum(x, 0)


class Relu(Layer):
    def __init__(self, w, b):
        super().__init__(w, b, activation=positive_part)

    def __call__(self, x):
        return super().__call__(x) + 0.1


class Network:
    def __init__(self, r):
        self.layers = [
            Layer(r.standard_normal((3, 4)), r.standard_normal(4)),
            Relu(r.standard_normal((4, 2)), np.zeros(2)),
        ]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@programs.add(lambda r, n: (Network(r), r.standard_normal((n, 3))), ulp=16, misses=6)  # a capture for each object
def network_of_objects(network, x):
    return network.forward(x)


class Vector:
    """User's own operators."""

    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Vector(self.data + other.data)

    def __mul__(self, k):
        return Vector(self.data * k)

    __rmul__ = __mul__

    def __getitem__(self, key):
        return self.data[key]

    def __len__(self):
        return len(self.data)

    def __eq__(self, other):
        return bool((self.data == other.data).all())

    __hash__ = None


@programs.add(vector)
def operators_of_a_users_class(x):
    v = Vector(x)
    w = 2.0 * (v + v * 3)
    return w.data, w[1:], len(w)


WEIGHTS = np.array([0.25, 0.5, 0.25])
OFFSET = 0.5
TABLE = {"a": np.arange(3.0), "b": 2.0}


@programs.add(vector)
def global_arrays_and_tables(x):
    return WEIGHTS[0] * x[:-2] + WEIGHTS[1] * x[1:-1] + WEIGHTS[2] * x[2:] + OFFSET, TABLE["a"] * TABLE["b"]


@programs.add(vector)
def written_global_array(x):
    HISTORY[0] += 1
    HISTORY[1:3] = x[:2]
    return HISTORY.sum() - HISTORY[0]


HISTORY = np.zeros(4)


@programs.add(vector)
def helpers_of_other_modules(x):
    a = programs_helpers.scaled(x, 2.0)
    b = helpers_by_another_name.Statistics(x).standardised()
    return a + renamed_helper(x), b, programs_helpers.CONSTANT * x, programs_helpers.iterate(x, 3)


@programs.add(vector)
def nested_functions_and_closures(x):
    scale = 2.0
    count = 0

    def twice(f):
        def g(v):
            nonlocal count
            count += 1
            return f(f(v))

        return g

    step = twice(lambda v: v * scale + 1)
    return step(step(x)), count


@programs.add(vector)
def recursion(x):
    def tree(v, depth):
        if depth == 0:
            return v
        return tree(v[::2], depth - 1) if depth % 2 else tree(v * 2, depth - 1)

    return tree(x, 3)


@programs.add(vector, ulp=8)
def functional_tools(x):
    compose = functools.reduce(lambda f, g: lambda v: g(f(v)), [np.sin, np.cos, np.abs])
    add3 = functools.partial(np.add, 3.0)
    total = functools.reduce(operator.add, [x, x * 2, x * 3])
    return compose(x), add3(x), total, list(map(np.max, [x, -x])), operator.itemgetter(1)([x, x + 1])


@programs.add(vector)
def comprehensions(x):
    parts = [x * k for k in range(4)]
    table = {k: p.sum() for k, p in enumerate(parts)}
    return np.stack(parts), table, [p[0] for p in parts if p.ndim == 1], sum(p.max() for p in parts), {1: x}[1]


@programs.add(vector)
def walrus_conditional_and_unpacking(x):
    if (n := len(x)) > 2:
        first, *middle, last = [x[0], x[1], x[2], x[-1]]
    else:
        first = last = x[0]
        middle = []
    sign = 1.0 if first > 0 else -1.0
    return n, first * sign, [*middle, last], (*middle, 1)


@programs.add(lambda r, n: (r.standard_normal(n), "fast"))
def strings_steer(x, mode):
    match mode:
        case "fast":
            y = x * 2
        case "slow":
            y = x * 3
        case _:
            raise ValueError(mode)
    return y, f"{mode}-{x.ndim}d", mode


@programs.add(lambda r, n: (r.standard_normal(n), None, True, 3))
def none_and_flags(x, weights=None, centre=True, power=2):
    if centre:
        x = x - x.mean()
    if weights is None:
        weights = np.ones_like(x)
    return (weights * x**power).sum(), weights is None, centre


@programs.add(lambda r, n: (r.standard_normal(n), float(r.standard_normal())))
def branches_on_values(x, t):
    if t > 0 and x[0] > 0:
        y = x + t
        label = 1
    elif t < -1:
        y = x - t
        label = 2
    else:
        y = x * 0
        label = 3
    if not (label == 2 or t > 5):
        y[0] = 9.0
    return y, label


@programs.add(lambda r, n: (r.standard_normal(n), float(r.standard_normal())))
def early_returns_of_new_arrays(x, t):
    if t > 1:
        return x * 3
    if t < -1:
        return x * 2
    for i in range(len(x)):
        if x[i] > 1:
            return x * i
    return x - 1


@programs.add(lambda r, n: (r.standard_normal((n, 3)), 4))
def continue_break_and_else(x, limit):
    total = 0.0
    count = 0
    for i in range(x.shape[0]):
        if x[i, 0] < -0.5:
            continue
        total += x[i].sum()
        count += 1
        if count >= limit:
            break
    else:
        total = -total
    return total, count


@programs.add(lambda r, n: (r.standard_normal(n),))
def while_true_with_breaks(x):
    k = 0
    while True:
        if k >= len(x):
            break
        if x[k] > 1.0:
            k += 2
            continue
        x[k] = -x[k]
        k += 1
    return k


@programs.add(lambda r, n: (r.standard_normal(n), 3))
def loop_that_builds_a_list(x, k):
    out = []
    y = x
    for _ in range(4):
        y = y * 0.5 + 1
        out.append(y)
    return np.array(out), out[-1], len(out)


@programs.add(lambda r, n: (r.standard_normal(n), 20))
def early_stopping_optimiser(x, steps):
    best = np.inf
    best_x = x.copy()
    for i in range(steps):
        loss = ((x - 1) ** 2).sum()
        if loss < best:
            best = loss
            best_x[:] = x
        if loss < 1e-3:
            break
        x = x - 0.3 * 2 * (x - 1)
    return best, best_x, i


@programs.add(lambda r, n: (r.standard_normal(n), 2.0, 3), ulp=8)
def math_module(x, a, k):
    return (
        x * math.sqrt(a),
        math.exp(a) + math.log(a),
        math.floor(a * 1.3),
        math.ceil(a),
        math.sin(a) ** 2 + math.cos(a) ** 2,
        math.pi * k,
        math.hypot(3.0, 4.0),
        math.isclose(a, 2.0),
        math.atan2(a, 1.0),
        math.fabs(-a),
        math.pow(a, k),
        math.factorial(4),
        math.isnan(a),
        math.tau,
    )


@programs.add(vector)
def methods_of_arrays(x):
    return (
        x.sum(), x.mean(), x.max(), x.min(), x.argmax(), x.cumsum(), x.clip(0, 1), x.round(2), x.copy(), x.reshape(-1, 1),
        x.astype(np.float32), x.dot(x), x.std(), x.var(), x.all(), x.any(), x.ravel(), x.flatten(), x.squeeze(), x.T,
        x.prod(), x.take([0, 1]), x.repeat(2), x.item(0), x.nonzero(), x.conj(), x.real,
        x.fill(2.0), x.transpose(), x.swapaxes(0, 0), hasattr(x, "ptp"), hasattr(x, "sum"),
    )  # fmt: skip


inner_kernel = jg.jit(lambda a, b: np.sqrt(a * a + b * b))


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n)))
def nested_jit(x, y):
    z = inner_kernel(x, y)
    z = inner_kernel(z, 1.0)

    @jg.jit
    def local(v):
        v += 1
        return v * 2

    return local(z), z


@programs.add(lambda r, n: (r.standard_normal(n),), ulp=8)
def gradient_inside(x):
    def loss(v):
        return (np.sin(v) * v).sum()

    g = jg.grad(loss)(x)
    value, h = jg.value_and_grad(lambda v: (v**3).sum())(x)
    return x - 0.1 * g, value, h


@programs.add(lambda r, n: (r.standard_normal(n),))
def deque_and_counter(x):
    window = collections.deque(maxlen=2)
    for k in range(4):
        window.append(x * k)
    d = collections.defaultdict(list)
    d["a"].append(x + 1)
    ordered = collections.OrderedDict(p=x - 1)
    return window[0] + window[1], d["a"][0], ordered["p"], sorted([3, 1, 2]), set([1, 2]) == {2, 1}


@programs.add(lambda r, n: (r.standard_normal((n, 3)),))
def starred_shapes(x):
    batch, *rest = x.shape
    y = x.reshape(batch, *rest, 1)
    return y, y.shape, tuple(s * 2 for s in y.shape), y.shape[:-1] == x.shape, np.zeros(x.shape + (2,)).shape


@programs.add(lambda r, n: (r.standard_normal(n), n + 5))
def index_error_of_a_loop(x, stop):
    for i in range(stop):
        x[i] += i
    return x


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n + 1)))
def shape_error(x, y):
    x[:] = x + y


@programs.add(lambda r, n: (r.standard_normal(n), n))
def index_error_of_one_read(x, k):
    return x[k]


@programs.add(lambda r, n: (r.standard_normal(n), np.array([0, n])))
def index_error_of_a_gather(x, i):
    return x[i]


@programs.add(lambda r, n: (n, 0))
def division_by_zero(a, b):
    return a // b


@programs.add(lambda r, n: (r.standard_normal(n), -1.0))
def users_error(x, t):
    x[0] = 1
    if t < 0:
        raise ValueError(f"t must not be negative, is {t}")
    x[1] = 2
    return x


@programs.add(lambda r, n: (r.standard_normal(n) - 100,))
def users_assertion(x):
    if not x.min() > -10:
        raise AssertionError("too small")
    return x


@programs.add(lambda r, n: (r.integers(0, 9, n),))
def casting_error(x):
    x += 1.5
    return x


@programs.add(lambda r, n: (r.standard_normal(n),))
def unbound_local(x):
    if x[0] > 100:
        y = x + 1
    return y


@programs.add(lambda r, n: (r.standard_normal((n, 3)), r.standard_normal((4, n))))
def matmul_error(a, b):
    return a @ b


@programs.add(lambda r, n: (r.standard_normal((1, n)), Counter(n)))
def error_that_sizes_decide_after_writes(x, counter):
    x += 1
    counter.calls += 1
    return x[1]


@programs.add(lambda r, n: (r.standard_normal(n),))
def error_of_the_user_after_writes(x):
    x[0] = 5
    if x.ndim == 1:
        raise KeyError("one axis")
    return x


test_programs = programs.tests()


def test_state_of_an_object_over_many_calls():
    jitted = jg.jit(object_with_state)
    a, b = Counter(5), Counter(5)
    r = np.random.default_rng(1)
    for _ in range(4):
        x = r.standard_normal(5)
        same(jitted(a, x), object_with_state(b, x), 0, "result")
        same(a, b, 0, "counter")


def test_jitted_methods_class_methods_and_static_methods():
    class Model:
        bias = 2.0

        def __init__(self, w):
            self.w = w

        @jg.jit
        def call(self, x):
            return x * self.w + self.bias

        @classmethod
        @jg.jit
        def of_class(cls, x):
            return x + cls.bias

        @staticmethod
        @jg.jit
        def of_nothing(x):
            return x - 1

    x = np.arange(4.0)
    m = Model(np.full(4, 3.0))
    same(m.call(x), x * 3 + 2, 0, "")
    same(Model.of_class(x), x + 2, 0, "")
    same(m.of_nothing(x), x - 1, 0, "")
    m.w = np.full(4, 5.0)
    same(m.call(x), x * 5 + 2, 0, "")
    Model.bias = 7.0
    same(m.call(x), x * 5 + 7, 0, "")
    same(Model.of_class(x), x + 7, 0, "")


def test_a_global_counter_and_a_closure_cell_are_stored():
    total = 0.0

    def f(x):
        nonlocal total
        total = total + x.sum()
        return x * total

    def g(x):
        return f(x)

    jitted = jg.jit(g)
    x = np.arange(3.0)
    r1, r2 = jitted(x), jitted(x)
    same(r1, x * 3.0, 0, "")
    same(r2, x * 6.0, 0, "")
    assert total == 6.0


@pytest.mark.parametrize("bad", [(), (1, 2, 3)])
def test_wrong_number_of_arguments(bad):
    def f(x, y):
        return x + y

    a, b = outcome(f, bad), outcome(jg.jit(f), bad)
    assert isinstance(a, TypeError)
    assert isinstance(b, TypeError)
