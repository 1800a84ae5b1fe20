"""Functions, closures, decorators, generators, recursion, structures.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B023, B905, C417, F401, RET504, UP033

import asyncio
import contextlib
import functools
import itertools
import math
import operator

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])
Y = np.array([2.0, 7.0, -1.0, 8.0, 2.5])
M = np.arange(12.0).reshape(3, 4) - 3


def clamp(v, lo=0.0, *, hi=3.0):
    if v < lo:
        return lo
    elif v > hi:
        return hi
    return v


@cases.add((X,), (Y,))
def helper_in_loop(x):
    out = np.empty_like(x)
    for i, v in enumerate(x):
        out[i] = clamp(v, hi=4.0)
    return out


@cases.add((X, 1.0), (X, -1.0), (X, 9.0))
def helper_with_branches(x, a):
    return clamp(a), clamp(a, -0.5), x * clamp(a, hi=5)


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        r = fn(*args, **kwargs)
        if r is None:
            raise TypeError("no result")
        return r

    return wrapper


def repeat(times):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(x):
            for _ in range(times):
                x = fn(x)
            return x

        return wrapper

    return decorate


@logged
def half(x):
    return x / 2 if x > 1 else x


@repeat(3)
def shrink(x):
    return x * 0.9 if x > 0 else -x


@functools.lru_cache(maxsize=None)
def weights(n):
    return tuple(1.0 / (k + 1) for k in range(n))


@cases.add((2.0,), (0.5,), (-1.0,))
def decorated_helpers(a):
    return half(a), shrink(a)


@cases.add((X, 3), (X, 2))
def cached_helper(x, n):
    t = 0.0
    for w, v in zip(weights(4), x):
        t += w * v
    return t * n


@cases.add((1.5,), (-1.5,))
def lambdas(a):
    f = lambda v: v * 2 if v > 0 else -v
    g = lambda *args, k=1: sum(args) * k
    return f(a), g(a, 1, k=2), (lambda: a)(), list(map(lambda v: v + a, [1, 2]))


@cases.add((X, 1.0), (X, -1.0))
def nonlocal_in_branch(x, c):
    count = 0

    def bump(k):
        nonlocal count
        count += k

    bump(1)
    if c > 0:
        bump(2)
    return count


@cases.add((X, 3), (X, 0), reruns=(1,))
def nonlocal_in_loop(x, n):
    total = 0.0

    def add(v):
        nonlocal total
        total += v

    for i in range(n):
        add(x[i])
    return total


@cases.add((X, 3), (X, 0), reruns=(1,))
def closure_reads_loop_variables(x, n):
    t = 0.0
    for i in range(n):

        def at(k):
            return x[i] * k

        t += at(2)
    return t


counter = 0


@cases.add((X, 3), (X, -3), state=lambda: counter)
def global_statement(x, n):
    global counter
    counter = 5
    if n > 0:
        y = x * n
    else:
        y = -x
    counter += 2
    return y


@cases.add((X, 3), (X, -3), state=lambda: counter)
def global_in_branch(x, n):
    global counter
    counter = 0
    if n > 0:
        counter = n
    return x


@cases.add((X, 3), (X, 0), state=lambda: counter)
def global_in_loop(x, n):
    global counter
    counter = 0
    for i in range(n):
        counter += i
    return x


def power(x, n):
    if n == 0:
        return 1.0
    if n % 2:
        return x * power(x, n - 1)
    h = power(x, n // 2)
    return h * h


@cases.add((X,), (Y,))
def recursion_on_static(x):
    return power(x[0], 10) + power(x, 3)


@cases.add((X, 3), (X, 5), (X, 0))
def recursion_on_int(x, n):
    return power(x, n)


def tree_sum(t):
    if isinstance(t, tuple):
        return sum(tree_sum(c) for c in t)
    return t if t > 0 else 0.0


@cases.add((((1.0, (2.0, -3.0)), 4.0),), ((1.0, 2.0),), (5.0,))
def tree_recursion(t):
    return tree_sum(t)


class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right

    def total(self):
        r = self.value
        for c in (self.left, self.right):
            if c is not None:
                r = r + c.total()
        return r


@cases.add((Node(X, Node(Y), Node(X)),), (Node(X),), (Node(X, None, Node(Y)),))
def tree_of_objects(n):
    return n.total()


class Layer:
    def __init__(self, w, act):
        self.w, self.act = w, act

    def __call__(self, x):
        y = self.w @ x
        if self.act == "relu":
            y = np.maximum(y, 0)
        return y


@cases.add(([Layer(M, "relu"), Layer(M.T, "none")], np.arange(4.0)), ([Layer(M, "none")], np.arange(4.0)))
def model_of_layers(layers, x):
    for layer in layers:
        x = layer(x)
    return x


@cases.add(([X, Y, X[:3]],), ([X],), ([],))
def variable_length_sequences(seqs):
    return [s.sum() for s in seqs if len(s) > 3], len(seqs)


@cases.add(([1.0, 2.0, 3.0],), ([1.0],), ([],))
def list_of_numbers(items):
    t = 0.0
    for v in items:
        if v > 1.5:
            t += v
    return t


@cases.add(({"a": X, "b": Y},), ({"b": X},))
def dict_of_arrays(d):
    t = 0.0
    for k, v in d.items():
        if k == "a":
            t += v.sum()
        else:
            t -= v.max()
    return t, sorted(d)


def gen(n, x):
    for i in range(n):
        yield x * i
    yield -x


@cases.add((X,), (Y,))
def generators_static(x):
    return sum(g for g in gen(3, x)), [g[0] for g in gen(2, x)]


@cases.add((X, 3), (X, 1))
def generators_traced_length(x, n):
    t = 0.0
    for g in gen(n, x):
        t = t + g
    return t


def squares_below(n):
    k = 0
    while k * k < n:
        yield k
        k += 1


@cases.add((10,), (3,), (0,), (2000,))
def generators_with_while(n):
    t = 0
    for v in squares_below(n):
        t += v
    return t


def positive(x):
    for v in x:
        if v > 0:
            yield v


@cases.add((X,), (Y,))
def generators_with_tests(x):
    t = 0.0
    for v in positive(x):
        t += v
    return t


def running():
    total = 0.0
    while True:
        v = yield total
        if v is None:
            return
        total += v


@cases.add((X,), (Y,))
def generators_send(x):
    g = running()
    next(g)
    r = 0.0
    for v in x:
        r = g.send(v)
    return r


def delegating(x):
    yield from gen(2, x)
    yield from (x, x + 1)


@cases.add((X,), (Y,))
def yield_from(x):
    return [v[0] for v in delegating(x)]


async def fetch(x):
    return x * 2


async def gather(x):
    a = await fetch(x)
    b = await fetch(a)
    return a + b


@cases.add((X,), (Y,))
def coroutine_driven_by_hand(x):
    c = gather(x)
    try:
        c.send(None)
    except StopIteration as e:
        return e.value


@contextlib.contextmanager
def doubled(a):
    a *= 2
    try:
        yield a
    finally:
        a /= 2


class Scale:
    def __init__(self, f):
        self.f = f

    def __enter__(self):
        return self.f

    def __exit__(self, *exc):
        return False


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        return kind is ValueError


@cases.add((X.copy(), 2.0), (X.copy(), -2.0))
def context_managers(x, a):
    with doubled(x) as d, Scale(a) as s:
        if s > 0:
            y = d * s
        else:
            y = d - s
    return y, x


@cases.add((X, 2.0), (X, -2.0))
def with_return(x, a):
    with Scale(a) as s:
        if s > 0:
            return x * s
        x = x + 1
    return x


@cases.add((X, 2.0), (X, -2.0))
def with_swallows(x, a):
    y = 0.0
    with Swallow():
        if a < 0:
            raise ValueError("gone")
        y = 1.0
    return x + y


@cases.add((X, 2.0), (X, -2.0))
def with_suppress(x, a):
    y = 0.0
    with contextlib.suppress(ValueError):
        y = math.sqrt(a)
    return x + y


class Rational:
    def __init__(self, n, d):
        if d == 0:
            raise ZeroDivisionError("d")
        self.n, self.d = n, d

    def __mul__(self, o):
        return Rational(self.n * o.n, self.d * o.d)

    def __lt__(self, o):
        return self.n * o.d < o.n * self.d

    def __bool__(self):
        return self.n != 0

    @property
    def value(self):
        return self.n / self.d

    @classmethod
    def whole(cls, n):
        return cls(n, 1)

    @staticmethod
    def gcd(a, b):
        while b:
            a, b = b, a % b
        return a


@cases.add((1, 2), (3, 2), (0, 5), (1, 0))
def user_operators(n, d):
    a = Rational(n, d)
    b = Rational.whole(2) * a
    if a < Rational.whole(1):
        r = b.value
    else:
        r = a.value
    return r, Rational.gcd(n, d), 1 if a else 0


@cases.add((X, 2), (X, 3))
def reduce_and_map(x, n):
    return (
        functools.reduce(lambda a, b: a * n + b, [1, 2, 3]),
        list(map(abs, x)),
        list(filter(None, [0, 1, 2])),
        functools.reduce(operator.add, x),
        list(itertools.accumulate([1.0, n, 3])),
    )


@cases.add((X,), (Y,))
def itertools_over_arrays(x):
    t = 0.0
    for a, b in itertools.product(x[:2], x[2:4]):
        t += a * b
    for a, b in itertools.combinations(x, 2):
        t -= a * b
    for v in itertools.chain(x[:1], [1.0, 2.0]):
        t += v
    return t


@cases.add((X,), (Y,))
def pairwise_over_array(x):
    t = 0.0
    for a, b in itertools.pairwise(x):
        t += (b - a) ** 2
    return t


@cases.add((X, 3.0), (X, -3.0))
def starred_call(x, c):
    args = (c, -c)
    kw = {"hi": c if c > 0 else 1.0}
    return clamp(*args[:1], **kw), max(*args), np.where(*(x > 0, x, c))


@cases.add((X, 3), (X, 7))
def class_in_function(x, n):
    class Box:
        size = 3

        def __init__(self, v):
            self.v = v

        def get(self, k):
            return self.v * k if k > self.size else self.v

    return Box(x).get(n)


@cases.add((X, 3), (X, 7))
def method_bound_early(x, n):
    f = x.sum if n > 5 else x.max
    return f()


@cases.add((X, 3), (X, 7))
def function_by_branch(x, n):
    f = np.sin if n > 5 else np.cos
    return f(x)


@cases.add((X, "sum"), (X, "max"))
def getattr_method(x, name):
    return getattr(x, name)()


def integrate(f, a, b, n):
    h = (b - a) / n
    t = 0.5 * (f(a) + f(b))
    for i in range(1, n):
        t += f(a + i * h)
    return t * h


@cases.add((0.0, 1.0, 10), (0.0, 2.0, 3))
def higher_order(a, b, n):
    return integrate(lambda t: t * t if t > 0.5 else t, a, b, n)


def make_adder(k):
    def add(v):
        return v + k

    return add


@cases.add((X, 3.0), (X, -7.0))
def closures_made_in_branches(x, c):
    f = make_adder(c) if c > 0 else make_adder(-c)
    return f(x)


@cases.add((X, 3.0), (X, -7.0))
def early_bound_default(x, c):
    fs = [lambda v, k=k: v * k for k in range(3)]
    return sum(f(c) for f in fs)


@cases.add((X, 3), (X, 0))
def mutual_recursion(x, n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return x if even(4) else -x


namespace = {"np": np}
exec(
    "def shifted(x, k):\n    return x * k + 1\ndef picky(x):\n    if x[0] > 0:\n        return x\n    return -x",
    namespace,
)
shifted, picky = namespace["shifted"], namespace["picky"]


@cases.add((X, 3.0), (X, -3.0))
def without_source(x, c):
    return shifted(x, c)


@cases.add((X,), (-X,), refused="Python needs the truth of a traced value")
def without_source_decides(x):
    return picky(x)


@cases.add((X, 2), (X, 3))
def eval_lambda(x, n):
    f = eval("lambda v: v * v")
    return f(x) + n


@cases.add((X, 1.0), (X, -1.0))
def return_object_by_branch(x, c):
    if c > 0:
        p = Node(x, None)
    else:
        p = Node(-x, None)
    return p


@cases.add((X, 1.0), (X, -1.0))
def early_return_tuple(x, c):
    if c > 0:
        return x.sum(), x
    return x.max(), -x


@cases.add((X, 1e-6), (X, 1e-1))
def solver_object(x, tol):
    class Solver:
        def __init__(self):
            self.steps = 0

        def run(self, v):
            while v > tol:
                v = v / 2
                self.steps += 1
            return v

    s = Solver()
    return s.run(x[0]), s.steps


@cases.add(([3.0, 1.0, 2.0],), ([2.0, 2.0],), ([1.0],))
def bubble_sort_list(items):
    items = list(items)
    for i in range(len(items)):
        for j in range(len(items) - 1 - i):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items


def quicksort(a):
    if len(a) <= 1:
        return a
    p = a[0]
    rest = a[1:]
    return np.concatenate([quicksort(rest[rest < p]), a[:1], quicksort(rest[rest >= p])])


@cases.add((X[:3],))
def recursive_quicksort(x):
    return quicksort(x)


@cases.add((X, 5), (X, 2))
def while_with_helper_state(x, n):
    stack = [n]
    t = 0
    while stack:
        k = stack.pop()
        t += 1
        if t < 4:
            stack.append(k)
    return t, x


@cases.add((X, 3), (X, 4))
def try_return_else(x, n):
    try:
        y = x[n]
    except IndexError:
        return -1.0
    else:
        if n > 3:
            return y
    return 0.0


test_functions = cases.tests()
