"""More scenarios: programs as users write them, with objects, containers, exceptions and state of every kind.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B007, B010, B023, B028, B905, E742, N805, N818, PYI024, RET504, RUF012, RUF023, SIM114, TRY203, TRY301, UP028, UP031, UP032

import abc
import collections
import contextlib
import copy
import dataclasses
import decimal
import enum
import fractions
import functools
import gc
import itertools
import json
import logging
import math
import operator
import os
import pathlib
import re
import time
import types
import typing
import warnings
import weakref

import numpy as np

from tests.e2e.scenarios import Scenarios, attempt

stories = Scenarios()
Estimate = collections.namedtuple("Estimate", "m P")


class Phase(enum.Enum):
    A = 0
    B = 1


X = np.arange(1.0, 6.0)
Y = np.arange(5.0)[::-1].copy()
X4 = X.astype(np.float32)


@stories.add
def object_identity_of_results(jit):
    class A:
        def __init__(self, w):
            self.w = w

    a = A(X)

    @jit
    def f(o, x):
        return o, o.w is x, [o, o]

    r = f(a, X)
    yield r[0] is a, r[1], r[2][0] is a
    b = A(Y)
    r = f(b, X)
    yield r[0] is b, r[1], r[2][1] is b


@stories.add
def global_obj_in_results(jit):
    class A:
        pass

    a = A()
    a.k = 1.0

    @jit
    def f(x):
        return a, x * a.k

    yield f(X)[0] is a


@stories.add
def setattr_on_two_objects(jit):
    class A:
        def __init__(self):
            self.n = 0
            self.h = []

    @jit
    def f(a, b, x):
        a.n += 1
        b.n += 10
        a.h.append(x.sum())
        b.h.append(0)
        return a.n + b.n

    a, b = A(), A()
    yield f(a, b, X), a.n, b.n, a.h, b.h
    yield f(a, a, X), a.n, a.h
    yield f(a, b, X), a.n, b.n, a.h, b.h


@stories.add
def swap_in_dict(jit):
    @jit
    def f(d):
        d["a"], d["b"] = d["b"], d["a"]

    d = {"a": X, "b": Y}
    f(d)
    yield d["a"] is Y, d["b"] is X
    d = {"a": [X], "b": [Y]}
    p, q = d["a"], d["b"]
    f(d)
    yield d["a"] is q, d["b"] is p


@stories.add
def linked_list(jit):
    class Node:
        def __init__(self, v, nxt=None):
            self.v = v
            self.next = nxt

    @jit
    def f(n):
        t = 0.0
        while n is not None:
            t = t + n.v
            n = n.next
        return t

    yield f(Node(X, Node(Y))), f(Node(X)), f(Node(X, Node(Y, Node(X))))


@stories.add
def tree_objects(jit):
    class T:
        def __init__(self, v, kids=()):
            self.v = v
            self.kids = list(kids)

        def total(self):
            return self.v + sum(k.total() for k in self.kids)

    @jit
    def f(t):
        return t.total()

    yield f(T(X, [T(Y), T(X, [T(Y)])])), f(T(X))


@stories.add
def optimizer(jit):
    class SGD:
        def __init__(self, params, lr):
            self.params = params
            self.lr = lr
            self.v = [np.zeros_like(p) for p in params]
            self.t = 0

        def step(self, grads):
            self.t += 1
            for i, (p, g) in enumerate(zip(self.params, grads)):
                self.v[i] = 0.9 * self.v[i] + g
                p -= self.lr * self.v[i]

    ps = [X.copy(), Y.copy()]
    o = SGD(ps, 0.1)
    f = jit(o.step)
    for k in range(4):
        f([X, Y])
        yield o.t, [p.copy() for p in ps], [v.copy() for v in o.v]


@stories.add
def adam_dict_state(jit):
    @jit
    def update(p, g, s, lr=1e-3):
        s["t"] += 1
        s["m"] = 0.9 * s["m"] + 0.1 * g
        s["v"] = 0.999 * s["v"] + 0.001 * g * g
        return p - lr * s["m"] / (np.sqrt(s["v"]) + 1e-8) / (1 - 0.9 ** s["t"])

    s = {"t": 0, "m": np.zeros(5), "v": np.zeros(5)}
    p = X
    for _ in range(3):
        p = update(p, Y, s)
        yield p, s


@stories.add
def state_in_branch(jit):
    class C:
        n = 0

    c = C()

    @jit
    def f(x):
        if x.sum() > 10:
            c.n += 1
        return x * c.n

    yield f(X), c.n, f(X * 0), c.n, f(X), c.n


@stories.add
def append_in_branch(jit):
    log = []

    @jit
    def f(x):
        if x.max() > 4:
            log.append(x.max())
        return x

    yield f(X), list(log), f(X * 0), list(log), f(X), list(log)


@stories.add
def print_in_branch(jit):
    seen = []

    @jit
    def f(x):
        y = x * 2
        if y[0] > 1:
            y = y + 1
            z = "big"
        else:
            z = "small"
        return y, z

    yield f(X), f(X * 0)


@stories.add
def none_or_array(jit):
    @jit
    def f(x):
        r = None
        if x[0] > 0:
            r = x * 2
        if r is None:
            return -1
        return r

    yield f(X), f(-X)


@stories.add
def early_returns_kinds(jit):
    @jit
    def f(x):
        if x[0] < 0:
            return None
        if x[0] == 0:
            return "zero"
        if x[0] < 2:
            return [x, 1]
        return x.sum()

    for v in (X, -X, X * 0, X + 5):
        yield f(v)


@stories.add
def dict_keys_depend_on_branch(jit):
    @jit
    def f(x):
        d = {"a": x}
        if x.sum() > 3:
            d["b"] = x + 1
        return d

    yield f(X), f(X * 0)


@stories.add
def try_finally_state(jit):
    log = []

    @jit
    def f(x):
        try:
            log.append("in")
            if x[0] > 3:
                raise ValueError("x")
            return x
        finally:
            log.append("out")

    yield f(X), list(log), attempt(f, X + 5), list(log)


@stories.add
def counter_then_raise(jit):
    class C:
        n = 0

    c = C()

    @jit
    def f(x):
        c.n += 1
        if x[0] > 3:
            raise ValueError("big")
        c.n += 10
        return x

    yield f(X), c.n, attempt(f, X + 5), c.n, f(X), c.n


@stories.add
def index_error_after_state(jit):
    log = []

    @jit
    def f(x, k):
        log.append(k)
        return x[k]

    yield f(X, 1), list(log), attempt(f, X, 9, text=False), list(log)


@stories.add
def hash_and_dict_lookup(jit):
    class K:
        pass

    a, b = K(), K()
    reg = {a: 1.0, b: 2.0}

    @jit
    def f(o, x):
        return x * reg[o], o in reg, reg.get(o)

    yield f(a, X), f(b, X), f(a, X)


@stories.add
def set_membership(jit):
    class K:
        pass

    a, b = K(), K()
    s = {a}

    @jit
    def f(o, x):
        return x * 2 if o in s else x

    yield f(a, X), f(b, X)


@stories.add
def custom_eq_hash(jit):
    class P:
        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return self.k == o.k

        def __hash__(self):
            return hash(self.k)

    t = {P(1): 10.0, P(2): 20.0}

    @jit
    def f(p, x):
        return x * t[p]

    yield f(P(1), X), f(P(2), X), f(P(1), X)


@stories.add
def eq_of_objects(jit):
    class P:
        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return self.k == o.k

        __hash__ = None

    @jit
    def f(p, q, x):
        return x if p == q else -x

    yield f(P(1), P(1), X), f(P(1), P(2), X), f(P(1.5), P(1.5), X), f(P(1.5), P(2.5), X)


@stories.add
def repr_of_objects(jit):
    class P:
        def __init__(self, k):
            self.k = k

        def __repr__(self):
            return f"P{self.k}"

    @jit
    def f(p, x):
        return {repr(p): x, f"{p}": 1, str(p): 2}

    yield f(P(1), X), f(P(2), X)


@stories.add
def copy_of_objects(jit):
    class P:
        def __init__(self, k, w):
            self.k = k
            self.w = w

    @jit
    def f(p, x):
        q = copy.copy(p)
        q.k = 5.0
        r = copy.deepcopy(p)
        return q.k * x + r.k + q.w + r.w, p.k

    yield f(P(1.0, X), X), f(P(2.0, Y), X)


@stories.add
def dataclass_asdict_outside(jit):
    @dataclasses.dataclass
    class Cfg:
        lr: float = 0.1
        n: int = 3

    cfg = Cfg()

    @jit
    def f(x):
        d = dataclasses.asdict(cfg)
        return x * d["lr"] + d["n"], dataclasses.replace(cfg, n=5).n, [fl.name for fl in dataclasses.fields(cfg)]

    yield f(X)
    cfg.lr = 0.5
    yield f(X)
    cfg.n = 7
    yield f(X)


@stories.add
def vars_outside(jit):
    ns = types.SimpleNamespace(a=1.0, b=X)

    @jit
    def f(x):
        return x * vars(ns)["a"] + ns.__dict__["b"], sorted(vars(ns))

    yield f(X)
    ns.a = 2.0
    yield f(X)
    ns.b = Y
    yield f(X)
    ns.c = 1
    yield f(X)


@stories.add
def attrgetter_outside(jit):
    class P:
        k = 1.0

    p = P()
    p.w = X
    g = operator.attrgetter("k")

    @jit
    def f(x):
        return x * g(p)

    yield f(X)
    p.k = 3.0
    yield f(X)


@stories.add
def class_body_in_function(jit):
    @jit
    def f(x):
        class L:
            scale = 2.0

            def __call__(self, v):
                return v * self.scale

        return L()(x)

    yield f(X)


@stories.add
def global_function_table(jit):
    acts = {"relu": lambda v: np.maximum(v, 0), "id": lambda v: v}

    @jit
    def f(x, name):
        return acts[name](x)

    yield f(X - 3, "relu"), f(X - 3, "id")
    acts["id"] = lambda v: v * 10
    yield f(X, "id")


@stories.add
def partial_methods_registry(jit):
    class R:
        table = {}

        @classmethod
        def register(cls, name):
            def deco(fn):
                cls.table[name] = fn
                return fn

            return deco

    @R.register("sq")
    def sq(x):
        return x * x

    @jit
    def f(x):
        return R.table["sq"](x)

    yield f(X)

    @R.register("sq")
    def sq2(x):
        return x * x * x

    yield f(X)


@stories.add
def abc_classes(jit):
    class B(abc.ABC):
        @abc.abstractmethod
        def g(self, x): ...
        def run(self, x):
            return self.g(x) + 1

    class C(B):
        def g(self, x):
            return x * 2

    @jit
    def f(o, x):
        return o.run(x)

    yield f(C(), X)


@stories.add
def generic_class(jit):
    Tv = typing.TypeVar("Tv")

    class Box(typing.Generic[Tv]):
        def __init__(self, v: Tv):
            self.v = v

        def get(self) -> Tv:
            return self.v

    @jit
    def f(b):
        return b.get() * 2

    yield f(Box(X)), f(Box(Y)), f(Box(2.0)), f(Box(3))


@stories.add
def dict_subclass(jit):
    class AttrDict(dict):
        __getattr__ = dict.__getitem__

    d = AttrDict(lr=0.1, w=X)

    @jit
    def f(x):
        return x * d.lr + d["w"]

    yield f(X)
    d["lr"] = 0.5
    yield f(X)
    d["w"] = Y
    yield f(X)


@stories.add
def dict_subclass_arg(jit):
    class AttrDict(dict):
        def __getattr__(self, k):
            return self[k]

    @jit
    def f(d, x):
        return x * d.lr + d["w"]

    yield f(AttrDict(lr=0.1, w=X), X)
    yield f(AttrDict(lr=0.7, w=Y), X)
    d = AttrDict(lr=0.7, w=Y)
    yield f(d, X)
    d["lr"] = 9.0
    yield f(d, X)


@stories.add
def list_subclass(jit):
    class L(list):
        pass

    l = L([1.0, 2.0])

    @jit
    def f(x):
        return x * l[0] + len(l)

    yield f(X)
    l[0] = 5.0
    yield f(X)
    l.append(1)
    yield f(X)


@stories.add
def user_list(jit):
    u = collections.UserList([1.0, 2.0])

    @jit
    def f(x):
        return x * u[0] + len(u)

    yield f(X)
    u[0] = 5.0
    yield f(X)
    u.append(3.0)
    yield f(X)


@stories.refused("is a bytearray, whose content", "x * b[0]")
def bytearray_state(jit):
    b = bytearray(b"\x01\x02")

    @jit
    def f(x):
        return x * b[0]

    yield f(X)
    b[0] = 7
    yield f(X)


@stories.add
def memo_decorator(jit):
    def memo(fn):
        cache = {}

        def wrapper(n):
            if n not in cache:
                cache[n] = fn(n)
            return cache[n]

        return wrapper

    @memo
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    @jit
    def f(x):
        return x * fib(10)

    yield f(X), f(X)


@stories.add
def singledispatch(jit):
    @functools.singledispatch
    def g(v):
        return v * 2

    @g.register(int)
    def _(v):
        return v * 100

    @g.register(list)
    def _(v):
        return [g(i) for i in v]

    @jit
    def f(x, k):
        return g(x), g(k), g([x, k])

    yield f(X, 3)


@stories.add
def total_ordering(jit):
    @functools.total_ordering
    class V:
        def __init__(self, k):
            self.k = k

        def __eq__(self, o):
            return self.k == o.k

        def __lt__(self, o):
            return self.k < o.k

    @jit
    def f(x):
        return x * (V(1) <= V(2)), sorted([V(3), V(1)])[0].k, max([V(3), V(1)]).k

    yield f(X)


@stories.add
def contextmanager_gen(jit):
    @contextlib.contextmanager
    def scale(k):
        yield k * 2

    @jit
    def f(x):
        with scale(3.0) as k:
            return x * k

    yield f(X)


@stories.add
def ctx_state(jit):
    class G:
        on = False

    @contextlib.contextmanager
    def enable():
        old = G.on
        G.on = True
        try:
            yield
        finally:
            G.on = old

    @jit
    def f(x):
        with enable():
            y = x * 2 if G.on else x
        return y, G.on

    yield f(X), G.on


@stories.refused("is an iterator from outside", "sum(xs)")
def generator_arg(jit):
    @jit
    def f(xs):
        return sum(xs)

    yield attempt(lambda: f(x for x in [X, Y]))


@stories.add
def swap_loop_kinds(jit):
    @jit
    def f(x):
        best, arg = -1, -1
        for i in range(len(x)):
            if x[i] > best:
                best, arg = x[i], i
        return best, arg

    yield f(X), f(-X), f(X[:0])


@stories.add
def running_max_list(jit):
    @jit
    def f(x):
        m = x[0]
        out = np.empty_like(x)
        for i in range(x.size):
            m = x[i] if x[i] > m else m
            out[i] = m
        return out, m

    yield f(Y)


@stories.add
def while_newton(jit):
    @jit
    def f(a, tol):
        x = a
        err = 1.0
        n = 0
        while err > tol and n < 50:
            new = 0.5 * (x + a / x)
            err = abs(new - x)
            x = new
            n += 1
        return x, err, n

    yield f(2.0, 1e-10), f(np.float64(2.0), 1e-10), f(2, 1e-10), f(2.0, 2.0)


@stories.add
def while_arr(jit):
    @jit
    def f(x, tol):
        diff = np.inf
        while diff > tol:
            y = x / 2
            diff = np.max(np.abs(y - x))
            x = y
        return x, diff

    yield f(X, 0.1), f(X.astype(np.float32), 0.1)


@stories.add
def bisect(jit):
    @jit
    def f(lo, hi):
        for _ in range(60):
            mid = (lo + hi) / 2
            if mid * mid > 2:
                hi = mid
            else:
                lo = mid
        return lo

    yield f(0.0, 2.0), f(0, 2)


@stories.add
def collatz(jit):
    @jit
    def f(n):
        c = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            c += 1
        return c

    yield f(27), f(1), f(7)


@stories.add
def nested_kind(jit):
    @jit
    def f(x, c, d):
        if c > 0:
            s = 0.0 if d > 0 else x[0]
        else:
            s = 1.0
        return s, x * s, s + 1, s > 0, -s

    for c in (1, -1):
        for d in (1, -1):
            yield f(X, c, d), f(X.astype(np.float32), c, d)


@stories.add
def kind_in_list(jit):
    @jit
    def f(x, c):
        l = [x[0], 1.0]
        if c > 0:
            l[0] = 2.0
        return l

    yield f(X, 1), f(X, -1)


@stories.add
def clip_norm(jit):
    @jit
    def f(g, m):
        n = np.sqrt((g * g).sum())
        scale = m / n if n > m else 1.0
        return g * scale, scale

    yield f(X, 1.0), f(X, 100.0), f(X.astype(np.float32), 1.0), f(X.astype(np.float32), 100.0)


@stories.add
def raise_static_after_assume(jit):
    @jit
    def f(x):
        v = None
        if x[0] > 2:
            v = x
        return v + 1

    yield attempt(f, X, text=False), attempt(f, X + 5), attempt(f, X, text=False)


@stories.add
def ema(jit):
    class EMA:
        def __init__(self, d):
            self.d = d
            self.value = None

        def update(self, x):
            if self.value is None:
                self.value = x
            else:
                self.value = self.d * self.value + (1 - self.d) * x
            return self.value

    e = EMA(0.9)
    f = jit(e.update)
    for k in range(3):
        yield f(X + k), e.value

    @jit
    def g(e, x):
        return e.update(x)

    e2 = EMA(0.5)
    for k in range(3):
        yield g(e2, X + k), e2.value


@stories.add
def rng_in_dataclass(jit):
    @dataclasses.dataclass
    class Sim:
        x: np.ndarray
        rng: typing.Any

        def step(self):
            self.x = self.x + self.rng.normal(size=self.x.shape)
            return self.x.sum()

    @jit
    def f(s):
        return s.step()

    s = Sim(X.copy(), np.random.default_rng(0))
    for _ in range(3):
        yield f(s), s.x


@stories.add
def history_dict(jit):
    hist = collections.defaultdict(list)

    @jit
    def f(x):
        hist["mean"].append(x.mean())
        hist["max"].append(x.max())
        return x / x.max()

    for k in range(3):
        yield f(X + k), {k: list(v) for k, v in hist.items()}


@stories.add
def queue_window(jit):
    q = collections.deque(maxlen=3)

    @jit
    def f(x):
        q.append(x.sum())
        return sum(q) / len(q)

    for k in range(5):
        yield f(X + k), list(q)


@stories.add
def counter_obj(jit):
    c = collections.Counter()

    @jit
    def f(x, name):
        c[name] += 1
        return x * c[name]

    yield f(X, "a"), dict(c), f(X, "a"), dict(c), f(X, "b"), dict(c)


@stories.add
def event_hooks(jit):
    class M:
        def __init__(self):
            self.hooks = []

        def __call__(self, x):
            y = x * 2
            for h in self.hooks:
                y = h(y)
            return y

    m = M()

    @jit
    def f(x):
        return m(x)

    yield f(X)
    m.hooks.append(lambda v: v + 1)
    yield f(X)
    m.hooks.append(np.sqrt)
    yield f(X)
    m.hooks.pop(0)
    yield f(X)


@stories.add
def props_with_setter(jit):
    class T:
        def __init__(self):
            self._c = 1.0

        @property
        def f(self):
            return self._c * 9 / 5 + 32

        @f.setter
        def f(self, v):
            self._c = (v - 32) * 5 / 9

    t = T()

    @jit
    def g(x):
        t.f = t.f + x[0]
        return t.f

    for _ in range(3):
        yield g(X), t._c


@stories.add
def class_level_cache(jit):
    class A:
        cache = {}

        def get(self, k, x):
            if k not in A.cache:
                A.cache[k] = x * 2
            return A.cache[k]

    a = A()

    @jit
    def f(x, k):
        return a.get(k, x)

    yield f(X, "p"), f(Y, "p"), f(Y, "q"), sorted(A.cache)


@stories.add
def delattr_and_setattr(jit):
    class A:
        pass

    a = A()
    a.tmp = 1.0

    @jit
    def f(x):
        a.new = x.sum()
        if hasattr(a, "tmp"):
            del a.tmp
        setattr(a, "other", 2)
        return x

    f(X)
    yield sorted(vars(a)), a.new
    f(Y)
    yield sorted(vars(a)), a.new


@stories.add
def del_of_an_attribute_that_comes_back(jit):
    class A:
        @property
        def w(self):
            return self._w

        @w.deleter
        def w(self):
            del self._w

    a = A()

    @jit
    def f(x):
        y = x * a.w
        del a.w
        return y

    for k in range(3):
        a._w = k + 1.0
        yield f(X), sorted(vars(a))


@stories.add
def del_of_an_attribute_that_is_missing(jit):
    class A:
        pass

    a = A()

    @jit
    def f(x):
        del a.w
        return x

    for _ in range(2):
        try:
            f(X)
        except AttributeError:
            yield "AttributeError"
    a.w = 1
    yield f(X), vars(a)


@stories.add
def del_items(jit):
    d = {"a": X, "b": Y}

    @jit
    def f(x):
        v = d.pop("a", None)
        return x if v is None else x + v

    yield f(X), sorted(d), f(X), sorted(d)


@stories.add
def sort_list_inplace(jit):
    l = [3.0, 1.0, 2.0]

    @jit
    def f(x):
        l.sort()
        l.reverse()
        return x * l[0]

    yield f(X), l


@stories.add
def list_of_lists(jit):
    @jit
    def f(m):
        m[0][1] = m[1][0] * 2
        m.append([m[0][0]])
        return m[0][1]

    m = [[X, Y], [Y, X]]
    r = m[0]
    yield f(m), m, m[0] is r


@stories.add
def tuple_of_lists(jit):
    @jit
    def f(t):
        t[0].append(1.0)
        t[1]["k"] = t[0][0]
        return t

    t = ([X], {})
    r = f(t)
    yield r[0] is t[0], r[1] is t[1], t


@stories.add
def object_graph_cycle(jit):
    class N:
        def __init__(self, v):
            self.v = v
            self.peer = None

    a, b = N(X), N(Y)
    a.peer = b
    b.peer = a

    @jit
    def f(n):
        return n.v + n.peer.v + n.peer.peer.v, n.peer.peer is n

    yield f(a), f(b)


@stories.add
def self_containing_list(jit):
    l = [1.0]
    l.append(l)

    @jit
    def f(x):
        return x * l[0], l[1] is l, l[1][1][0]

    yield f(X)


@stories.add
def kwargs_forwarding(jit):
    def core(x, *, scale=1.0, **kw):
        return x * scale + sum(kw.values())

    @jit
    def f(x, **kw):
        return core(x, **kw)

    yield f(X, scale=2.0, a=1, b=2.5), f(X, b=1), f(X)


@stories.add
def star_args(jit):
    @jit
    def f(*xs, **kw):
        a, *b = xs
        return a, len(b), [*b], {**kw}

    yield f(X), f(X, Y), f(X, Y, 3, k=X)


@stories.add
def closures_counter(jit):
    def make():
        n = 0

        def inc():
            nonlocal n
            n += 1
            return n

        return inc

    inc = make()

    @jit
    def f(x):
        return x * inc()

    for _ in range(3):
        yield f(X)


@stories.add
def generator_object_in_function(jit):
    @jit
    def f(x):
        def gen():
            total = 0.0
            while True:
                v = yield total
                if v is None:
                    return
                total = total + v

        g = gen()
        next(g)
        a = g.send(x[0])
        b = g.send(x[1])
        return a, b

    yield f(X)


@stories.add
def lambda_default_capture(jit):
    @jit
    def f(x):
        fs = [lambda v, k=k: v * k for k in range(3)]
        gs = [lambda v: v * k for k in range(3)]
        return [h(x) for h in fs], [g(x) for g in gs]

    yield f(X)


@stories.add
def nested_functions_with_state(jit):
    @jit
    def f(x):
        state = {"n": 0}

        def bump(v):
            state["n"] += 1
            return v * state["n"]

        return bump(x), bump(x), state

    yield f(X)


@stories.add
def exceptions_chain(jit):
    class E1(Exception):
        pass

    @jit
    def f(x, k):
        try:
            if k == "a":
                raise E1("a", 1)
            if k == "b":
                raise ValueError
            return x
        except E1 as e:
            return x * len(e.args)
        except (ValueError, TypeError):
            return -x
        else:
            return x + 100
        finally:
            pass

    for k in "abc":
        yield f(X, k)


@stories.add
def exc_data_types(jit):
    @jit
    def f(x, k):
        if x[0] > 5:
            raise IndexError("i")
        if x[1] > 5:
            raise KeyError(k)
        if x[2] > 5:
            raise StopIteration
        if x[3] > 5:
            raise NotImplementedError(f"got {x[3]} and {k}")
        return x

    for v in (X, X + 5, np.array([0, 9.0, 0, 0]), np.array([0, 0, 9.0, 0]), np.array([0, 0, 0, 9.0])):
        yield attempt(f, v, "key")


@stories.add
def reraise(jit):
    @jit
    def f(x):
        try:
            if x.sum() > 20:
                raise ValueError("s")
        except ValueError:
            raise
        return x

    yield attempt(f, X), attempt(f, X + 9)


@stories.add
def zero_div(jit):
    @jit
    def f(a, b):
        return a / b

    yield f(1.0, 2.0), attempt(f, 1.0, 0.0, text=False), f(np.float64(1), 2.0), f(1, 4)


@stories.add
def assert_data(jit):
    @jit
    def f(x):
        assert (x > 0).all(), "must be positive"
        return np.log(x)

    yield f(X), attempt(f, -X, text=False)


@stories.add
def linalg_try(jit):
    @jit
    def f(a):
        try:
            return np.linalg.inv(a), True
        except np.linalg.LinAlgError:
            return np.linalg.pinv(a), False

    yield f(np.eye(2) * 2), f(np.zeros((2, 2)))


@stories.add
def float_conv(jit):
    @jit
    def f(x):
        return float(x[0]), int(x[1]), bool(x[2] > 0), float(x.sum()) * 2, round(float(x[0]), 1)

    yield f(X)


@stories.add
def str_of_traced(jit):
    @jit
    def f(x):
        return {f"{x.sum()}": 1}

    yield attempt(f, X, text=False)


@stories.add
def percent_format(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError("bad %.2f %s" % (x[0], x[1]))
        return x

    yield f(X), attempt(f, X + 5)


@stories.add
def str_format(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError("bad {:.2f} {}".format(x[0], x[1]))
        return x

    yield f(X), attempt(f, X + 5)


@stories.add
def repr_in_error(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError(f"bad {x[0]!r}")
        return x

    yield f(X), attempt(f, X + 5)


@stories.add
def str_concat(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError("bad " + str(x[0]))
        return x

    yield f(X), attempt(f, X + 5)


@stories.add
def arr_in_error(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError(f"bad {x}")
        return x

    yield f(X), attempt(f, X + 5)


@stories.add
def many_values_error(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError(f"{x[0]} {x[1]} {x[2]} {x[3]} {x[4]} {x.sum()}")
        return x

    yield f(X), attempt(f, X + 5)


@stories.add
def float32_error(jit):
    @jit
    def f(x):
        if x[0] > 3:
            raise ValueError(f"{x[0]} {x.max()} {int(x[1])} {x.shape}")
        return x

    yield f(X.astype(np.float32)), attempt(f, (X * 1.1 + 5).astype(np.float32))


@stories.add
def logging_traced(jit):
    rec = []
    lg = logging.getLogger("h.attack")
    lg.setLevel(10)
    lg.propagate = False

    class H(logging.Handler):
        def emit(self, r):
            rec.append(r.getMessage())

    lg.handlers = [H()]

    @jit
    def f(x):
        lg.info("sum %.1f of %s", x.sum(), x.shape)
        for i in range(3):
            lg.debug("i=%d v=%s", i, x[i])
        return x

    yield f(X), list(rec)
    yield f(np.ones(3)), list(rec)


@stories.add
def time_diff(jit):
    @jit
    def f(x):
        t = time.time()
        y = np.sort(x)
        d = time.time() - t
        return y, d >= 0, type(d) is float

    yield f(Y)


@stories.add
def environ_import(jit):
    from os import environ

    os.environ["HA"] = "3"

    @jit
    def f(x):
        return x * int(environ["HA"]) + ("HB" in environ)

    yield f(X)
    os.environ["HA"] = "5"
    yield f(X)
    os.environ["HB"] = "1"
    yield f(X)
    del os.environ["HB"]
    yield f(X)


@stories.add
def while_true_break(jit):
    @jit
    def f(x, tol):
        n = 0
        while True:
            y = x * 0.5
            n += 1
            if np.abs(y - x).max() < tol:
                break
            x = y
        return y, n

    yield f(X, 0.1)


@stories.add
def first_turn_binding(jit):
    @jit
    def f(x):
        for i in range(len(x)):
            if i == 0:
                best = x[i]
            elif x[i] > best:
                best = x[i]
        return best

    yield f(X), f(Y)


@stories.add
def prev_none(jit):
    @jit
    def f(x):
        prev = None
        d = np.zeros(len(x))
        for i in range(len(x)):
            if prev is not None:
                d[i] = x[i] - prev
            prev = x[i]
        return d

    yield f(X)


@stories.add
def minmax_kind(jit):
    @jit
    def f(x):
        lo, hi = float("inf"), float("-inf")
        for v in x:
            if v < lo:
                lo = v
            if v > hi:
                hi = v
        return lo, hi, hi - lo

    yield f(X), f(X[:0]), f(X.astype(np.float32))


@stories.add
def count_and_mean(jit):
    @jit
    def f(x):
        s, c = 0, 0
        for v in x:
            if v > 2:
                s += v
                c += 1
        return s / c if c else 0, s, c

    yield f(X), f(X * 0)


@stories.add
def int_arrays_kind(jit):
    @jit
    def f(a):
        best = 0
        for v in a:
            if v > best:
                best = v
        return best

    yield f(np.arange(4)), f(np.zeros(3, int)), f(np.arange(4, dtype=np.int32)), f(np.zeros(3, np.int32))


@stories.add
def bound_builtin_method(jit):
    log = []
    add = log.append

    @jit
    def f(x):
        add(x.sum())
        return x

    f(X)
    f(Y)
    yield log


@stories.add
def mlp_training(jit):
    class Linear:
        def __init__(self, rng, m, n):
            self.w = rng.normal(size=(m, n)) * 0.1
            self.b = np.zeros(n)

        def __call__(self, x):
            self.x = x
            return x @ self.w + self.b

        def backward(self, g, lr):
            gw = self.x.T @ g
            gb = g.sum(axis=0)
            gx = g @ self.w.T
            self.w -= lr * gw
            self.b -= lr * gb
            return gx

    class Relu:
        def __call__(self, x):
            self.m = x > 0
            return x * self.m

        def backward(self, g, lr):
            return g * self.m

    class Net:
        def __init__(self, layers):
            self.layers = layers
            self.steps = 0

        def __call__(self, x):
            for l in self.layers:
                x = l(x)
            return x

        def train(self, x, y, lr=0.1):
            p = self(x)
            g = 2 * (p - y) / len(x)
            for l in reversed(self.layers):
                g = l.backward(g, lr)
            self.steps += 1
            return ((p - y) ** 2).mean()

    rng = np.random.default_rng(0)
    net = Net([Linear(rng, 3, 4), Relu(), Linear(rng, 4, 1)])
    x = rng.normal(size=(8, 3))
    y = rng.normal(size=(8, 1))
    train = jit(net.train)
    yield [train(x, y) for _ in range(5)], net.steps, net.layers[0].w
    train2 = jit(Net.train)
    net2 = Net([Linear(rng, 3, 4), Relu(), Linear(rng, 4, 1)])
    yield [train2(n, x, y) for n in (net, net2, net)], net2.steps, net.steps


@stories.add
def particles(jit):
    @dataclasses.dataclass
    class P:
        x: np.ndarray
        v: np.ndarray
        m: float = 1.0

        def kick(self, f, dt):
            self.v = self.v + f / self.m * dt

        def drift(self, dt):
            self.x = self.x + self.v * dt

    @jit
    def step(ps, dt):
        for p in ps:
            p.kick(-p.x, dt)
            p.drift(dt)
        return sum((p.v**2).sum() * p.m / 2 for p in ps)

    ps = [P(X.copy(), Y.copy()), P(Y.copy(), X.copy(), 2.0)]
    for _ in range(3):
        yield step(ps, 0.1), [(p.x, p.v) for p in ps]


@stories.add
def kalman_namedtuple(jit):
    @jit
    def f(s, z, q=0.1, r=1.0):
        P = s.P + q
        K = P / (P + r)
        return Estimate(s.m + K * (z - s.m), (1 - K) * P), K

    s = Estimate(0.0, 1.0)
    for z in (1.0, 2.0, np.float64(3)):
        s, k = f(s, z)
        yield s, k


@stories.add
def fsm_enum(jit):
    class Machine:
        def __init__(self):
            self.mode = Phase.A

        def step(self, x):
            if self.mode is Phase.A and x.sum() > 10:
                self.mode = Phase.B
            elif self.mode is Phase.B and x.sum() < 0:
                self.mode = Phase.A
            return x if self.mode is Phase.A else -x

    m = Machine()
    f = jit(m.step)
    for v in (X * 0, X, X * 0, -X, X):
        yield f(v), m.mode


@stories.add
def config_mutation_between(jit):
    cfg = {"model": {"act": "relu", "layers": [4, 2]}, "lr": 0.1}

    @jit
    def f(x):
        for k in cfg["model"]["layers"]:
            x = x * k
        if cfg["model"]["act"] == "relu":
            x = np.maximum(x, 0)
        return x * cfg["lr"]

    yield f(X - 3)
    cfg["lr"] = 1
    yield f(X - 3)
    cfg["model"]["layers"].append(3)
    yield f(X - 3)
    cfg["model"]["act"] = "id"
    yield f(X - 3)
    cfg["model"] = {"act": "relu", "layers": [1]}
    yield f(X - 3)


@stories.add
def arrays_replaced_and_dtype(jit):
    class B:
        pass

    b = B()
    b.w = X

    @jit
    def f(x):
        return x @ b.w

    yield f(X)
    b.w = X.astype(np.float32)
    yield f(X)
    b.w = np.ones((5, 2))
    yield f(X)
    b.w = np.asfortranarray(np.ones((5, 3)))
    yield f(X)


@stories.add
def readonly_attr(jit):
    class B:
        pass

    b = B()
    b.w = X.copy()
    b.w.flags.writeable = False

    @jit
    def f(x):
        b.w[0] = x[0]
        return x

    yield attempt(f, X, text=False), b.w


@stories.add
def overlapping_attrs(jit):
    class B:
        pass

    b = B()
    base = np.arange(6.0)
    b.a = base[:4]
    b.c = base[2:]

    @jit
    def f(x):
        b.a += 1
        b.c *= 2
        return b.a + b.c

    yield f(X), base


@stories.add
def arg_is_global(jit):
    w = X.copy()

    @jit
    def f(x):
        w[0] += 1
        return x + w

    yield f(Y), w
    yield f(w), w
    yield f(Y), w


@stories.add
def arg_is_attr(jit):
    class B:
        pass

    b = B()
    b.w = X.copy()

    @jit
    def f(o, x):
        o.w[1] = 5.0
        x[0] = 7.0
        return o.w is x, o.w + x

    yield f(b, Y.copy())
    yield f(b, b.w), b.w
    yield f(b, Y.copy())


@stories.add
def same_obj_diff_place(jit):
    class B:
        def __init__(self, k):
            self.k = k

    g = B(1.0)

    @jit
    def f(o, x):
        o.k += 1
        return x * g.k

    o = B(5.0)
    yield f(o, X), o.k, g.k
    yield f(g, X), g.k
    yield f(o, X), o.k


@stories.add
def list_of_objs_order(jit):
    class B:
        def __init__(self, k):
            self.k = k

    @jit
    def f(l, x):
        l.sort(key=lambda b: b.k)
        return [b.k for b in l]

    a, b = B(2), B(1)
    l = [a, b]
    yield f(l, X), l[0] is b, l[1] is a


@stories.add
def swap_objs(jit):
    class B:
        def __init__(self, w):
            self.w = w

    class H:
        pass

    h = H()
    a, b = B(X), B(Y)
    h.p, h.q = a, b

    @jit
    def f(h):
        h.p, h.q = h.q, h.p
        h.p.w = h.p.w + 1

    f(h)
    yield h.p is b, h.q is a, a.w, b.w
    f(h)
    yield h.p is a, h.q is b, a.w, b.w


@stories.add
def new_obj_stored(jit):
    class B:
        def __init__(self, w):
            self.w = w

    class H:
        pass

    h = H()
    h.b = B(X)

    @jit
    def f(h, x):
        h.b = B(x * 2)
        return h.b.w.sum()

    r = f(h, X)
    yield r, type(h.b) is B, h.b.w
    r = f(h, Y)
    yield r, h.b.w


@stories.add
def obj_in_result_new(jit):
    class B:
        def __init__(self, w, k=1):
            self.w = w
            self.k = k

    @jit
    def f(x):
        return B(x * 2)

    yield f(X).w, f(Y).w


@stories.add
def dataclass_with_list_append(jit):
    @dataclasses.dataclass
    class L:
        vals: list = dataclasses.field(default_factory=list)

    l = L()

    @jit
    def f(l, x):
        l.vals.append(x.mean())
        return len(l.vals)

    yield f(l, X), l.vals, f(l, Y), l.vals


@stories.add
def frozen_dataclass_hash_key(jit):
    @dataclasses.dataclass(frozen=True)
    class K:
        a: int
        b: str

    t = {K(1, "x"): 2.0, K(2, "y"): 3.0}

    @jit
    def f(k, x):
        return x * t[k]

    yield f(K(1, "x"), X), f(K(2, "y"), X), f(K(1, "x"), X)


@stories.add
def json_and_re(jit):
    @jit
    def f(x, s):
        d = json.loads(s)
        m = re.match(r"(\w+)-(\d+)", d["name"])
        return x * int(m.group(2)), m.group(1)

    yield f(X, '{"name":"ab-3"}'), f(X, '{"name":"cd-4"}')


@stories.add
def path_frac_decimal(jit):
    @jit
    def f(x, p, q):
        return x * len(p.name), x * float(q), p.suffix

    yield f(X, pathlib.Path("a/b.txt"), fractions.Fraction(1, 3)), f(X, pathlib.Path("c.py"), decimal.Decimal("0.5"))


@stories.add
def generator_fn_state(jit):
    def count():
        n = 0
        while True:
            n += 1
            yield n

    @jit
    def f(x):
        g = count()
        return x * next(g) + next(g)

    yield f(X), f(X)


@stories.add
def zip_dict_items_etc(jit):
    @jit
    def f(d, e):
        out = {}
        for (k, v), (k2, v2) in zip(sorted(d.items()), sorted(e.items())):
            out[k + k2] = v * v2
        out |= {"n": len(out)}
        a, *_, z = out.values()
        return out, a, z, dict(reversed(list(out.items())))

    yield f({"b": X, "a": Y}, {"q": X, "p": 2.0})


@stories.add
def nested_defaultdict(jit):
    @jit
    def f(keys, x):
        t = collections.defaultdict(lambda: collections.defaultdict(float))
        for a, b in keys:
            t[a][b] += x[0]
        return {k: dict(v) for k, v in t.items()}

    yield f([("a", "b"), ("a", "c"), ("a", "b")], X)


@stories.add
def cached_prop_outside(jit):
    class A:
        def __init__(self, w):
            self.w = w
            self.n = 0

        @functools.cached_property
        def norm(self):
            self.n += 1
            return np.sqrt((self.w**2).sum())

    @jit
    def f(a, x):
        return x / a.norm

    a = A(X)
    yield f(a, X), f(a, X), "norm" in vars(a)


@stories.add
def lru_with_counter(jit):
    calls = []

    @functools.lru_cache(None)
    def table(n):
        return np.arange(n) * 2.0

    @jit
    def f(x):
        return x + table(5)

    yield f(X), f(Y)


@stories.add
def slots_mutation(jit):
    class A:
        __slots__ = ("w", "n")

        def __init__(self, w):
            self.w = w
            self.n = 0

    @jit
    def f(a, x):
        a.n += 1
        a.w = a.w + x
        return a.n

    a = A(X)
    yield f(a, X), a.n, a.w, f(a, X), a.n, a.w


@stories.add
def class_with_getattribute(jit):
    class A:
        def __init__(self):
            self.k = 2.0

        def __getattribute__(self, n):
            return object.__getattribute__(self, n)

    a = A()

    @jit
    def f(x):
        return x * a.k

    yield f(X)
    a.k = 3.0
    yield f(X)


@stories.add
def class_with_setattr_hook(jit):
    class A:
        def __init__(self):
            object.__setattr__(self, "log", [])
            self.k = 1.0

        def __setattr__(self, n, v):
            self.log.append(n)
            object.__setattr__(self, n, v)

    a = A()

    @jit
    def f(x):
        a.k = a.k * 2
        return x * a.k

    yield f(X), a.k, a.log
    yield f(X), a.k, a.log


@stories.add
def metaclass_call(jit):
    class Meta(type):
        count = 0

        def __call__(cls, *a):
            Meta.count += 1
            return super().__call__(*a)

    class A(metaclass=Meta):
        def __init__(self, w):
            self.w = w

    @jit
    def f(x):
        return A(x).w * 2

    yield f(X), Meta.count, f(X), Meta.count


@stories.add
def weak_and_gc(jit):
    class A:
        def __init__(self, w):
            self.w = w

    @jit
    def f(a, x):
        return a.w * x

    a = A(X)
    f(a, X)
    r = weakref.ref(a)
    del a
    gc.collect()
    yield r() is None


@stories.add
def recursion_int(jit):
    def fact(n):
        return 1 if n <= 1 else n * fact(n - 1)

    f = jit(lambda x, n: x * fact(n), static_argnames=("n",))
    yield f(X, 4), f(X, 5)


@stories.add
def nested_jit(jit):
    @jit
    def g(o, x):
        o.n += 1
        return x * o.n

    class O:
        n = 0

    o = O()
    o.n = 1

    @jit
    def f(x):
        return g(o, x) + g(o, x)

    yield f(X), o.n, g(o, X), o.n


@stories.add
def in_on_arrays(jit):
    @jit
    def f(x, v):
        return v in x, 3.0 in x, x.sum() in [15.0, 1.0], "a" in {"a": x}

    yield f(X, 2.0), f(X, 9.0)


@stories.add
def is_none_chain(jit):
    @jit
    def f(x, b=None, c=None):
        return x if b is None else x + b if c is None else x + b * c

    yield f(X), f(X, Y), f(X, Y, 2.0)


@stories.add
def try_in_loop_static(jit):
    @jit
    def f(x, ks):
        out = []
        for k in ks:
            try:
                out.append({"a": 1.0, "b": 2.0}[k] * x)
            except KeyError:
                continue
            else:
                out.append(k)
        return out

    yield f(X, ["a", "z", "b"])


@stories.add
def raise_in_helper(jit):
    def chk(v):
        if v < 0:
            raise ValueError(f"negative: {v}")
        return np.sqrt(v)

    @jit
    def f(x):
        return chk(x[0]) + chk(x[1])

    yield f(X), attempt(f, -X), attempt(f, np.array([1.0, -2.0]))


@stories.add
def warn_cond(jit):
    @jit
    def f(x):
        if x[0] > 3:
            warnings.warn("big", RuntimeWarning)
        return x

    for v in (X, X + 5, X):
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            yield f(v), [str(i.message) for i in w if i.category is RuntimeWarning]


@stories.add
def kinds_1(jit):
    @jit
    def f(x):
        s = 0
        for v in x:
            if v > 2:
                s = s + v
            else:
                s = s + 1
        return s

    yield f(X), f(X * 0), f(X4), f(X[:0])


@stories.add
def kinds_2(jit):
    @jit
    def f(x):
        s = 1.0
        for v in x:
            if v > 2:
                s = s * v
        return s / 2, s > 3, -s, abs(s)

    yield f(X), f(X * 0), f(X4)


@stories.add
def kinds_3(jit):
    @jit
    def f(x, out):
        out[0] = 1.0
        s = x[0] if x[1] > 1 else 2.0
        out[1] = s
        return s * 2 + 1, x * s

    yield f(X, np.zeros(3)), f(-X, np.zeros(3))


@stories.add
def kinds_4(jit):
    @jit
    def f(x, out):
        out[0] = 1.0
        s = x[0] if x[1] > 1 else 2.0
        return out * s

    yield f(X, np.zeros(3)), f(-X, np.zeros(3))


@stories.add
def kinds_5(jit):
    @jit
    def f(x, out):
        out[0] = 1.0
        s = x[0] if x[1] > 1 else 2
        return s

    yield f(X, np.zeros(3)), f(-X, np.zeros(3)), f(X4, np.zeros(3)), f(-X4, np.zeros(3))


@stories.add
def kinds_6(jit):
    @jit
    def f(n, c):
        k = n if c > 0 else 2.5
        return k * 2, k + n, k > 2

    yield f(3, 1), f(3, -1), f(2**60, 1)


@stories.add
def kinds_7(jit):
    @jit
    def f(x):
        m = None
        for v in x:
            if m is None or v < m:
                m = v
        return m

    yield f(X), f(Y)


@stories.add
def kinds_8(jit):
    @jit
    def f(x):
        flag = False
        for v in x:
            if v > 3:
                flag = True
        return flag, not flag

    yield f(X), f(X * 0)


@stories.add
def kinds_9(jit):
    @jit
    def f(x):
        flag = False
        for v in x:
            flag = flag or v > 3
        return flag

    yield f(X), f(X * 0), f(X[:0])


@stories.add
def kinds_10(jit):
    @jit
    def f(x):
        ok = True
        for v in x:
            ok = ok and v > 0
        return ok, ok and 5, ok or "no"

    yield f(X), f(-X)


@stories.add
def kinds_11(jit):
    @jit
    def f(x, n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        return a * x[0], a

    yield f(X, 10), f(X, 0), f(X, 90)


@stories.add
def kinds_12(jit):
    @jit
    def f(x, c):
        t = (1, x[0]) if c > 0 else (2.0, 3.0)
        return t, t[0] * x, t[1] + t[0]

    yield f(X, 1), f(X, -1)


@stories.add
def kinds_13(jit):
    @jit
    def f(x, c):
        y = x if c > 0 else x.astype(np.float32)
        return y * 2, y.dtype == np.float32

    yield f(X, 1), f(X, -1)


@stories.add
def kinds_14(jit):
    @jit
    def f(x, c):
        y = x if c > 0 else 3.0
        return np.sum(y), y + 1

    yield f(X, 1), f(X, -1)


@stories.add
def kinds_15(jit):
    @jit
    def f(x):
        r = []
        for i in range(3):
            if x[i] > 2:
                r.append(x[i])
            else:
                r.append(0)
        return r

    yield f(X), f(X * 0)


@stories.add
def kinds_16(jit):
    @jit
    def f(x):
        d = {}
        for i in range(3):
            if x[i] > 2:
                d[i] = x[i]
        return d, len(d)

    yield f(X), f(X * 0)


@stories.add
def kinds_17(jit):
    @jit
    def f(x):
        s = 0.0
        i = 0
        while i < len(x) and s < 5:
            s += x[i]
            i += 1
        return s, i

    yield f(X), f(X * 0 + 9), f(X[:0])


@stories.add
def kinds_18(jit):
    @jit
    def f(x):
        lo = 0
        hi = len(x)
        while lo < hi:
            mid = (lo + hi) // 2
            if x[mid] < 3:
                lo = mid + 1
            else:
                hi = mid
        return lo

    yield f(X), f(X * 10), f(X * 0)


@stories.add
def kinds_19(jit):
    @jit
    def f(x):
        total = 0
        for row in x:
            for v in row:
                if v > 2:
                    total += v
        return total

    yield f(X.reshape(1, 5) * np.ones((3, 1))), f(np.zeros((2, 2)))


@stories.add
def kinds_20(jit):
    @jit
    def f(x):
        best = 0.0
        idx = -1
        for i, v in enumerate(x):
            score = v * v - 3 * v
            if score > best:
                best = score
                idx = i
        return idx, best, best * 2, best / 2 if idx >= 0 else 0

    yield f(X), f(X * 0)


@stories.add
def kinds_21(jit):
    @jit
    def f(x):
        a = x[0]
        if a > 0:
            a = 1.0
        b = a if a > 0.5 else 0
        return a, b, [a, b], {"k": b}, np.float64(a)

    yield f(X), f(-X)


@stories.add
def kinds_22(jit):
    @jit
    def f(x, n):
        r = 1
        for i in range(n):
            r *= x[i]
        return r

    yield f(X, 3), f(X, 0), f(np.arange(1, 6), 4), f(X4, 2)


@stories.add
def kinds_23(jit):
    @jit
    def f(x):
        prev = 0.0
        out = []
        for i in range(3):
            cur = x[i]
            out.append(cur - prev)
            prev = cur
        return out, prev

    yield f(X), f(X4)


@stories.add
def kinds_24(jit):
    @jit
    def f(v):
        y = 0.0
        if v.any():
            y = v.sum()
        if y > 3:
            z = y
        elif y > 1:
            z = 1
        else:
            z = None
        return z

    yield f(X), f(X * 0), f(X / 10)


@stories.add
def kinds_25(jit):
    @jit
    def f(x, mode):
        if mode == 0:
            r = x.sum()
        elif mode == 1:
            r = x.mean()
        elif mode == 2:
            r = x
        else:
            raise ValueError(f"mode {mode}")
        return r

    for m in (0, 1, 2):
        yield f(X, m)
    yield attempt(f, X, 3)


@stories.add
def kinds_26(jit):
    @jit
    def f(x):
        try:
            i = int(x[0])
            v = [10, 20, 30][i]
        except IndexError:
            v = -1
        return v * x

    yield f(X), f(X + 5), f(X * 0)


@stories.add
def kinds_27(jit):
    @jit
    def f(x):
        s = x.sum()
        return math.sqrt(s) if s > 0 else float("nan")

    yield f(X)


@stories.add
def kinds_28(jit):
    @jit
    def f(x):
        n = 0
        for i in range(len(x)):
            if x[i] == 3:
                break
            n += 1
        else:
            n = -1
        return n

    yield f(X), f(X * 0)


@stories.add
def kinds_29(jit):
    @jit
    def f(x, c):
        a = np.int32(3) if c > 0 else 3
        return a, x * a, a + 1

    yield f(np.arange(3, dtype=np.int8), 1), f(np.arange(3, dtype=np.int8), -1)


@stories.add
def kinds_30(jit):
    @jit
    def f(a):
        m = 0
        for v in a:
            if v > m:
                m = v
        return m + 1, m * 2

    yield f(np.arange(4)), f(-np.arange(4)), f(np.arange(4, dtype=np.int8))


@stories.add
def state_1(jit):
    @jit
    def f(x, n):
        cache = {}

        def fib(k):
            if k in cache:
                return cache[k]
            r = k if k < 2 else fib(k - 1) + fib(k - 2)
            cache[k] = r
            return r

        return x * fib(10)

    yield f(X, 1)


@stories.add
def state_2(jit):
    buf = np.zeros(3)

    @jit
    def f(x, i):
        buf[i % 3] = x.sum()
        return buf.mean(), buf

    for i in range(4):
        yield f(X, i)[0], buf.copy()
    yield f(X, 0)[1] is buf


@stories.add
def state_3(jit):
    class Ring:
        def __init__(s, n):
            s.buf = np.zeros(n)
            s.i = 0
            s.full = False

        def push(s, v):
            s.buf[s.i] = v
            s.i += 1
            if s.i == len(s.buf):
                s.i = 0
                s.full = True
            return s.buf.sum()

    r = Ring(3)
    f = jit(r.push)
    for v in range(7):
        yield f(float(v)), r.i, r.full, r.buf.copy()


@stories.add
def state_4(jit):
    class Cfg:
        def __init__(s, **k):
            s.__dict__.update(k)

    @jit
    def f(c, x):
        return x * c.a + c.b

    yield f(Cfg(a=2.0, b=X), X), f(Cfg(a=3, b=1), X), f(Cfg(b=1.0, a=3.5), X)


@stories.add
def state_5(jit):
    class P:
        def __init__(s, x):
            s.x = x

        def __iter__(s):
            for v in s.x[:2]:
                yield v

        def __len__(s):
            return 2

        def __getitem__(s, i):
            return s.x[i]

    @jit
    def f(p):
        a, b = p
        return a + b, [v * 2 for v in p], len(p), p[1], list(p), sum(p), max(p)

    yield f(P(X)), f(P(Y))


@stories.add
def state_6(jit):
    class It:
        def __init__(s, n):
            s.n = n

        def __iter__(s):
            s.k = 0
            return s

        def __next__(s):
            if s.k >= s.n:
                raise StopIteration
            s.k += 1
            return s.k

    @jit
    def f(it, x):
        t = 0
        for k in it:
            t = t + x * k
        return t

    yield f(It(3), X), f(It(2), X)


@stories.add
def state_7(jit):
    class B:
        def __init__(s, v):
            s.v = v

        def __bool__(s):
            return s.v > 2

    @jit
    def f(b, x):
        return x if b else -x

    yield f(B(3), X) + 0, f(B(1), X) + 0, f(B(3.5), X) + 0, f(B(1.5), X) + 0


@stories.add
def state_8(jit):
    class C:
        total = 0
        items = []

        @classmethod
        def add(cls, v):
            cls.total += v
            cls.items.append(v)
            return cls.total

    @jit
    def f(x):
        return x * C.add(2)

    yield f(X), C.total, f(X), C.total, list(C.items)


@stories.add
def state_9(jit):
    def outer():
        state = [0]

        def inc():
            state[0] += 1
            return state[0]

        return inc, state

    inc, state = outer()

    @jit
    def f(x):
        return x * inc()

    yield f(X), f(X), state


@stories.add
def state_10(jit):
    @jit
    def f(d):
        d = dict(d)
        d["z"] = d.pop("a") * 2
        return d

    s = {"a": X, "b": Y}
    yield f(s), sorted(s)


@stories.add
def state_11(jit):
    @jit
    def f(xs):
        xs = list(xs)
        xs.append(xs[0])
        xs[1] = 0.0
        return xs

    s = [X, Y]
    yield f(s), s


@stories.add
def state_12(jit):
    @jit
    def f(xs, ys):
        xs.extend(ys)
        ys.clear()
        return len(xs)

    a, b = [X], [Y, X]
    yield f(a, b), a, b


@stories.add
def state_13(jit):
    @jit
    def f(m):
        for k in list(m):
            if k.startswith("d"):
                del m[k]
        m["n"] = len(m)

    m = {"da": X, "b": Y, "dc": 1}
    yield f(m), m


@stories.add
def state_14(jit):
    @jit
    def f(s, x):
        s.add("k")
        s.discard("a")
        return x * len(s), "a" in s

    s = {"a", "b"}
    yield f(s, X), sorted(s)


@stories.add
def state_15(jit):
    @dataclasses.dataclass(frozen=True)
    class S:
        w: np.ndarray
        n: int = 0

    @jit
    def step(s, x):
        return dataclasses.replace(s, w=s.w + x, n=s.n + 1)

    s = S(X)
    for _ in range(3):
        s = step(s, Y)
        yield s.w, s.n


@stories.add
def state_16(jit):
    calls = []

    def deco(fn):
        @functools.wraps(fn)
        def w(*a):
            calls.append(len(calls))
            return fn(*a)

        return w

    @jit
    @deco
    def f(x):
        return x * 2

    yield f(X), f(X), calls


@stories.add
def state_17(jit):
    @jit
    def f(x, flag=True, /, *, mode="a", **kw):
        return x if flag and mode == "a" else x * len(kw)

    yield f(X) + 0, f(X, False, q=1), f(X, mode="b", z=1, y=2)


@stories.add
def state_18(jit):
    import threading

    lock = threading.Lock()

    @jit
    def f(x):
        with lock:
            return x * 2

    yield attempt(f, X)


@stories.add
def state_19(jit):
    f = jit(lambda x, *, k=[1.0, 2.0]: x * k[0] + k[1])
    yield f(X), f(X, k=[3.0, X])


@stories.add
def state_20(jit):
    @jit
    def f(x):
        a = x[1:4]
        l = [a]
        d = {"v": a}
        a += 10
        return l[0] is d["v"], x, d["v"]

    x = X.copy()
    yield f(x), x


@stories.add
def state_21(jit):
    g = {"w": X.copy()}

    @jit
    def f(x):
        w = g["w"]
        w *= 2
        g["w"] = w + x
        return g["w"]

    w0 = g["w"]
    yield f(Y), w0, g["w"]
    yield f(Y), g["w"]


@stories.add
def state_22(jit):
    @jit
    def f(x):
        r = x.sum()
        if r > 10:
            lvl = "high"
        elif r > 5:
            lvl = "mid"
        else:
            lvl = "low"
        return {lvl: r}, lvl

    yield f(X), f(X / 2), f(X / 10)


@stories.add
def state_23(jit):
    @jit
    def f(x):
        errs = []
        if (x < 0).any():
            errs.append("neg")
        if x.max() > 4:
            errs.append("big")
        if errs:
            raise ValueError(", ".join(errs))
        return np.sqrt(x)

    yield f(X / 2), attempt(f, X), attempt(f, -X), attempt(f, X * np.array([-1, 1, 1, 1, 1]))


@stories.add
def state_24(jit):
    @jit
    def f(xs):
        return {
            k: [v.sum() for v in g]
            for k, g in itertools.groupby(sorted(xs, key=lambda a: a.ndim), key=lambda a: a.ndim)
        }

    yield f([X, np.eye(2), Y])


@stories.add
def state_25(jit):
    @functools.total_ordering
    class V:
        def __init__(s, k, w):
            s.k = k
            s.w = w

        def __lt__(s, o):
            return s.k < o.k

        def __eq__(s, o):
            return s.k == o.k

    a, b = V(1, X), V(2, Y)
    l = [b, a]

    @jit
    def f(x):
        return sorted(l)[0].w + x, max(l).w, min(l) is l[0], l[0] == l[1]

    yield f(X)
    a.k = 5
    yield f(X)


@stories.add
def state_26(jit):
    class V:
        def __init__(s, k):
            s.k = k

        def __lt__(s, o):
            return s.k < o.k

    l = [V(3), V(1), V(2)]

    @jit
    def f(x):
        l.sort()
        return x * l[0].k

    yield f(X), [v.k for v in l]
    l[0].k = 9
    yield f(X), [v.k for v in l]


test_stories = stories.tests()
