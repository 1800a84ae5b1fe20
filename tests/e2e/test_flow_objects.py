"""Objects, globals, closures and iterators changed by what branches and loops call.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B007, TRY301

import abc
import collections
import contextlib
import dataclasses
import itertools

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])


class A:
    def __init__(self, v):
        self.v = v
        self.k = 0
        self.h = []

    def next(self):
        self.k += 1
        self.v = self.v * 0.5
        return self.v


@cases.add((A(8.0), 1.0), reruns=(0,))
def while_test_changes(a, tol):
    while a.next() > tol:
        pass
    return a.k


@cases.add((X, 1.0), reruns=(0,))
def local_while_test_changes(x, tol):
    a = A(8.0)
    while a.next() > tol:
        x = x + 1
    return a.k, x


@cases.add((X, 3))
def closure_over_cell_called_elsewhere(x, n):
    calls = 0

    def f(v):
        nonlocal calls
        calls += 1
        return v + 1

    def solve(g, v):
        for _ in range(n):
            v = g(v)
        return v

    r = solve(f, 1.0)
    return r, calls


@cases.add((X, 3))
def bound_method_called_elsewhere(x, n):
    a = A(8.0)

    def solve(g):
        t = 0.0
        for _ in range(n):
            t += g()
        return t

    return solve(a.next), a.k


@cases.add((X, 3))
def lambda_over_object(x, n):
    a = A(8.0)
    g = lambda: a.next()
    t = 0.0
    for _ in range(n):
        t += g()
    return t, a.k


G = A(16.0)


@cases.add((X, 3), state=lambda: (G.v, G.k))
def global_object(x, n):
    G.v, G.k = 16.0, 0
    t = 0.0
    for _ in range(n):
        t += G.next()
    return t


D = {"n": 0}


def bump():
    D["n"] += 1


@cases.add((X, 3), state=lambda: dict(D))
def global_dict_in_helper(x, n):
    D["n"] = 0
    for _ in range(n):
        bump()
    return D["n"]


N = 0


def bump_global():
    global N
    N += 1


@cases.add((X, 3), (X, 100), state=lambda: N)
def global_in_helper(x, n):
    global N
    N = 0
    for _ in range(n):
        bump_global()
    return N


class C:
    total = 0

    def hit(self):
        C.total += 1


@cases.add((X, 3), (X, 100), state=lambda: C.total)
def class_attribute(x, n):
    C.total = 0
    c = C()
    for _ in range(n):
        c.hit()
    return C.total


class S:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v

    __hash__ = None


@cases.add((X, 3), (X, 4))
def slots_object(x, n):
    s = S(0.0)
    for i in range(n):
        s.v += x[i]
    return s.v


@cases.add((S(1.0), 3), (S(1.0), 4))
def slots_argument(s, n):
    for i in range(n):
        s.v *= 2
    return s.v


@dataclasses.dataclass
class P:
    x: float
    y: float = 0.0
    tags: list = dataclasses.field(default_factory=list)


@cases.add((P(1.0), 3), (P(2.0), 30))
def dataclass_argument(p, n):
    for i in range(n):
        p.x += p.y
        p.y = p.x * 0.1
    return p


@cases.add((P(1.0), 3), (P(2.0), 5))
def dataclass_replace(p, n):
    for i in range(n):
        p = dataclasses.replace(p, x=p.x + 1)
    return p


@cases.add((P(1.0), 1.0), (P(2.0), -1.0))
def append_to_argument_in_branch(p, c):
    if c > 0:
        p.tags.append(c)
        p.x = c
    return p.x


@cases.add((P(1.0), 3), (P(2.0), 5))
def append_to_argument_in_loop(p, n):
    for i in range(n):
        p.tags.append(i)
    return len(p.tags)


@cases.add((X, 3), (X, 100))
def deque_in_loop(x, n):
    d = collections.deque([0.0, 0.0], maxlen=2)
    for i in range(n):
        d.append(d[0] + d[1] + 1)
    return d[1]


@cases.add((X, 3), (X, 4))
def defaultdict_in_loop(x, n):
    d = collections.defaultdict(float)
    for i in range(n):
        d["a"] += x[i]
    return d["a"]


@cases.add((X, 3), (X, 4))
def counter_in_loop(x, n):
    d = {}
    for i in range(n):
        d[i % 2] = d.get(i % 2, 0) + 1
    return d


@cases.add((X, 3), (X, 4))
def string_built_in_loop(x, n):
    s = ""
    for i in range(n):
        s += "a"
    return s


@cases.add((X, 3))
def accumulate_object(x, n):
    acc = itertools.cycle([1.0, 2.0])
    t = 0.0
    for i in range(n):
        t += next(acc)
    return t


@cases.add((X, 100), reruns=(0,))
def accumulate_object_long(x, n):
    acc = itertools.cycle([1.0, 2.0])
    t = 0.0
    for i in range(n):
        t += next(acc)
    return t


@cases.add((X, 3))
def attribute_iterator(x, n):
    a = A(1.0)
    a.it = itertools.count()
    t = 0
    for i in range(n):
        t += next(a.it)
    return t


@cases.add((X, 100), reruns=(0,))
def attribute_iterator_long(x, n):
    a = A(1.0)
    a.it = itertools.count()
    t = 0
    for i in range(n):
        t += next(a.it)
    return t


@cases.add((X, 3))
def generator_in_closure(x, n):
    it = itertools.count()

    def get():
        return next(it)

    t = 0
    for i in range(n):
        t += get()
    return t


@cases.add((X, 100), reruns=(0,))
def generator_in_closure_long(x, n):
    it = itertools.count()

    def get():
        return next(it)

    t = 0
    for i in range(n):
        t += get()
    return t


@cases.add((X, 1.0), (X, -1.0))
def raise_after_state_change(x, c):
    a = A(1.0)
    try:
        if c < 0:
            a.next()
            raise ValueError
        a.v = 100.0
    except ValueError:
        pass
    return a.v, a.k


@cases.add((X, 3, 2.0), (X, 3, 100.0))
def return_inside_with_in_loop(x, n, c):
    for v in x:
        with contextlib.nullcontext(v) as w:
            if w > c:
                return w
    return None


@cases.add((X.copy(), 3))
def write_through_list_item(x, n):
    views = [x[:2], x[2:]]
    for i in range(n):
        views[0] += 1
        views[1] *= 2
    return x


@cases.add((X.copy(), 3))
def write_through_attr(x, n):
    a = A(x[1:])
    for i in range(n):
        a.v += i
        x[0] += a.v[0]
    return a.v, x


@cases.add((X.copy(), 3))
def list_of_arrays_rotated(x, n):
    l = [x, x * 2, x * 3]
    for i in range(n):
        l[0], l[1], l[2] = l[1], l[2], l[0]
    return l[0] - l[1]


@cases.add((X, 2))
def object_replaced_in_list(x, n):
    l = [A(1.0)]
    for i in range(n):
        l[0] = A(l[0].v + 1)
    return l[0].v


@dataclasses.dataclass(frozen=True)
class Frozen:
    t: float
    y: np.ndarray
    twice: float = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "twice", self.t * 2)


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    v: float
    seen: list = dataclasses.field(default_factory=list)


@cases.add((X, 0.5, 3), (X, 0.5, 80))
def frozen_dataclasses_are_made(x, h, n):
    s = Frozen(0.0, x)
    for _ in range(n):
        s = dataclasses.replace(s, t=s.t + h, y=s.y * h)
    if x[0] > 0:
        s = Frozen(h, x)
    p = FrozenSlots(x[1])
    p.seen.append(h)
    while p.v < 9:
        p = FrozenSlots(abs(p.v) * 2 + 4, p.seen)
    try:
        p.v = 1.0
    except dataclasses.FrozenInstanceError as e:
        return s.t, s.y, s.twice, p.v, p.seen, str(e)


@dataclasses.dataclass(order=True)
class Ordered:
    a: float
    b: float = 0.0
    note: object = dataclasses.field(default=None, compare=False)


@cases.add((X,), (X[::-1].copy(),), (np.full(3, np.nan),))
def dataclasses_and_tuples_are_compared(x):
    p, q = Ordered(x[0], 1.0, "p"), Ordered(x[1], 2.0)
    best = (np.inf, -1)
    for i in range(len(x)):
        if (x[i], i) < best:
            best = (x[i], i)
    some = max([Ordered(v, i) for i, v in enumerate(x[:3])]), min((x[0], 1), (x[1], 0))
    equal = (x[0], 1) == (x[1], 1), (x[0], p.b) == (x[0], 1.0), [x[2], 2] > [x[1], 1, 0], (x[0],) <= (x[0], 3)
    return p == q, p != q, p < q, p >= Ordered(x[0], 1.0), p == 3, best, some, equal


class WithEq:
    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return self.a == other.a if isinstance(other, WithEq) else NotImplemented

    __hash__ = None


@cases.add((X,), (np.full(3, 2.0),))
def unequal_by_eq(x):
    return WithEq(x[0]) != WithEq(x[1]), WithEq(x[0]) != 3


STEPS = [(0, 1), (1, 0), (0, -1), (-1, 0)]


@cases.add((X, 1), (X[::-1].copy(), 2))
def steps_by_a_number(x, m):
    i = j = d = 0
    for k in range(60):
        d = (d + 1) % 4 if x[k % 3] > 1 else (d - 1) % 4
        i, j = i + STEPS[d][0], j + STEPS[d][1]
        dx, dy = STEPS[k % 4]
        i += dx
        j -= dy * m
    days = [31, 29 if x[0] > 3 else 28, 31][m - 1]
    return i, j, days, STEPS[np.argmin(x[:4])], [(x[0], 1), (x[1], 2)][int(x[2] > 0)]


@cases.add((X,), (X[::-1].copy(),), reruns=(0, 1))
def texts_by_a_number(x):
    return ["a", "b", "c", "d", "e"][x.argmax()]


class Shape(abc.ABC):
    made = 0
    factor = 2.0

    def __init__(self, k):
        self.k = k

    @classmethod
    def make(cls, k):
        cls.made += 1
        return cls(k * cls.factor)

    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    def area(self):
        return self.k**2


class Disc(Shape):
    factor = 3.0

    def area(self):
        return self.k * 3


class Sized(type):
    @property
    def size(cls):
        return 7

    def times(cls, k):
        return cls(k * 2)


class Unit(metaclass=Sized):
    def __init__(self, k):
        self.k = k

    @classmethod
    def make(cls, k):
        return cls(k)


@cases.add((X,), (X[::-1].copy(),))
def classes_with_a_metaclass(x):
    shapes = [Square.make(x[0]), Disc.make(x[1])]
    total = 0.0
    for s in shapes:
        total = total + s.area()
    return total, isinstance(shapes[0], Shape), x + Unit.size + Unit.times(2.0).k + Unit.make(3.0).k


@cases.add((X,), (X + 1,))
def a_list_that_holds_itself(x):
    q = [x, x]
    q[0] = q
    if x[0] > 0:
        q[1] = x + 1
    else:
        q = [q, q]
    return q[1]


test_objects = cases.tests()
