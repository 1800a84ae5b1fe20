"""Containers, objects and callables of every kind, as arguments, inside and as results."""

# ruff: noqa: B006, B023, C416, PYI024, UP031, UP032  # as users write

import collections
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import statistics
import types
from typing import NamedTuple

import numpy as np

import jitgraph as jg
from tests.e2e.scenarios import Scenarios, attempt, plain

stories = Scenarios()
X = np.arange(1.0, 6.0)
Y = np.arange(5.0)[::-1].copy()


@stories.add
def dict_keeps_order_and_mixed_keys(jit):
    @jit
    def f(d):
        return {**{k: v * 2 for k, v in d.items()}, "last": d[1] + d["a"]}

    yield f({"a": X, 1: Y, (2, 3): X + 1})
    yield f({1: Y, "a": X})


@stories.add
def ordered_dict_in_and_out(jit):
    @jit
    def f(d):
        out = collections.OrderedDict((k, v + 1) for k, v in reversed(d.items()))
        out.move_to_end("b")
        return out

    yield f(collections.OrderedDict(a=X, b=Y))


@stories.add
def default_dict_in_and_out(jit):
    @jit
    def f(d, x):
        out = collections.defaultdict(list)
        for k, v in d.items():
            out[len(k)].append(v * x)
        return out, d["a"] + x

    out, y = f(collections.defaultdict(float, a=X, bb=Y, cc=X), X)
    yield out.default_factory, dict(out), y


@stories.add
def deque_in_and_out(jit):
    @jit
    def f(q, x):
        out = collections.deque(maxlen=2)
        for a in q:
            out.append(a + x)
        return out

    out = f(collections.deque([X, Y, X], maxlen=5), X)
    yield list(out), out.maxlen, type(out)


class Point(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    scale: float = 2.0
    name: str = "p"

    def norm(self):
        return np.sqrt(self.x**2 + self.y**2) * self.scale


Pair = collections.namedtuple("Pair", "a b", defaults=[3.0])


@stories.add
def named_tuples_with_defaults(jit):
    @jit
    def f(p, q):
        r = p._replace(x=p.x + q.a)
        return r, r.norm(), Pair(q.a * q.b), Point(p.y, p.x, name="new"), p._asdict()

    yield f(Point(X, Y), Pair(X))
    yield f(Point(X, Y, 3.0, "q"), Pair(X, 1.5))


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: np.ndarray
    tag: str = "frozen"
    scale: float = 1.5


@dataclasses.dataclass
class Base:
    w: np.ndarray

    def apply(self, x):
        return self.w * x


@dataclasses.dataclass
class Derived(Base):
    b: np.ndarray | None = None
    extra: list = dataclasses.field(default_factory=list)

    def apply(self, x):
        y = super().apply(x)
        return y if self.b is None else y + self.b


@dataclasses.dataclass(slots=True)
class Slotted:
    w: np.ndarray
    n: int = 3


@stories.add
def dataclasses_of_all_kinds(jit):
    @jit
    def f(a, b, c):
        return (
            dataclasses.replace(a, w=a.w + 1),
            Derived(b.w * 2, b.b, [b.apply(a.w)]),
            Slotted(c.w * c.n),
            dataclasses.asdict(a),
            dataclasses.astuple(c),
        )

    for b in (None, Y):
        out = f(Frozen(X), Derived(X, b), Slotted(Y, 4))
        yield out[0].w, out[0].tag, out[1].w, out[1].b, out[1].extra, out[2].w, out[2].n, out[3], out[4]


@stories.add
def dataclass_fields_that_are_not_init(jit):
    @dataclasses.dataclass
    class Net:
        w: np.ndarray
        total: np.ndarray = dataclasses.field(init=False)

        def __post_init__(self):
            self.total = self.w.sum()

    @jit
    def f(net):
        return Net(net.w + net.total).total, net.total

    yield f(Net(X))


class Attrs:
    """What an attrs-like decorator makes: fields, __init__, __eq__."""

    __attrs_attrs__ = ("w", "b")

    def __init__(self, w, b=0.5):
        self.w, self.b = w, b

    def __eq__(self, other):
        return type(other) is Attrs and self.b == other.b

    def __call__(self, x):
        return self.w * x + self.b


@stories.add
def plain_objects_as_arguments(jit):
    @jit
    def f(layer, x):
        return layer(x), layer.w.sum() + layer.b

    for k in range(4):
        yield f(Attrs(X + k, 0.5 * k), Y)
    layer = Attrs(X)
    yield f(layer, Y)
    layer.b = 10.0
    layer.w = X * 3
    yield f(layer, Y)
    layer.w[0] = 100.0
    yield f(layer, Y)


@stories.add
def new_instances_are_not_captured_anew(jit):
    @jit
    def f(layer, x):
        return layer(x)

    for k in range(10):
        yield f(Attrs(X + k, 0.5 * k), Y)
    yield f.cache_info().misses if hasattr(f, "cache_info") else 1


class WithSlots:
    __slots__ = ("n", "w")

    def __init__(self, w, n=2):
        self.w, self.n = w, n

    def scaled(self, x):
        return self.w * x * self.n


@stories.add
def objects_with_slots(jit):
    @jit
    def f(o, x):
        return o.scaled(x)

    for k in range(3):
        yield f(WithSlots(X + k, k), Y)


@stories.add
def simple_namespace(jit):
    @jit
    def f(ns):
        return types.SimpleNamespace(y=ns.x * 2 + ns.k), ns.x

    out, x = f(types.SimpleNamespace(x=X, k=1.5))
    yield out.y, x
    out, x = f(types.SimpleNamespace(x=Y, k=2.5))
    yield out.y, x


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


@stories.add
def enums_strings_and_other_statics(jit):
    @jit
    def f(x, color, level, name, raw, window, part, names):
        if color is Color.RED and name == "sum" and b"q" in raw:
            x = x * 2
        if "k" in names:
            x = x + 1
        return x[part] + level + sum(window), color, name, level, names

    yield f(X, Color.RED, Level.HIGH, "sum", b"q", range(3), slice(1, 4), {"k", "l"})
    yield f(X, Color.BLUE, Level.LOW, "mean", b"", range(1, 6, 2), slice(None, None, -1), frozenset({"l"}))


@stories.add
def none_and_nested(jit):
    @jit
    def f(a, tree):
        (p, q), d = tree
        out = p if a is None else p + a
        return {"r": [out, (q, None, d["k"][0] * 2)], "d": d}

    yield f(None, ((X, None), {"k": [Y]}))
    yield f(X, ((X, 3), {"k": (Y,)}))


@stories.add
def all_kinds_of_parameters(jit):
    @jit
    def f(a, /, b, c=2.0, *rest, d, e=1.0, **others):
        total = a + b * c + d * e
        for r in rest:
            total = total + r
        for k in sorted(others):
            total = total * others[k]
        return total, sorted(others), len(rest)

    yield f(X, Y, d=1.0)
    yield f(X, Y, 3.0, X, Y, d=2.0, e=X, z=2.0, q=Y)
    yield f(X, b=Y, d=2)
    yield attempt(f, X, text=False)
    yield attempt(f, X, Y, d=1.0, e=2.0, b=1, text=False)


class Model:
    gain = 2.0

    def __init__(self, w):
        self.w = w
        self.calls = 0

    @property
    def total(self):
        return self.w.sum()

    @classmethod
    def make(cls, w):
        return cls(w * cls.gain)

    @staticmethod
    def square(x):
        return x * x

    def __call__(self, x):
        return self.square(x) * self.w + self.total

    def forward(self, x, scale=1.0):
        return self(x) * scale

    half = functools.partialmethod(forward, scale=0.5)

    @functools.cached_property
    def norm(self):
        return np.sqrt((self.w**2).sum())


class Deep(Model):
    def __call__(self, x):
        return super().__call__(x) + Model.square(self.gain)


@stories.add
def methods_of_every_kind(jit):
    @jit
    def f(m, x):
        return m(x), m.half(x), m.forward(x, scale=3.0), type(m).make(x).w, m.square(x), m.norm, isinstance(m, Model)

    for cls in (Model, Deep):
        yield f(cls(X), Y)


@stories.add
def jitted_methods(jit):
    class Net:
        def __init__(self, w):
            self.w = w

        @jit
        def call(self, x):
            return self.w * x

        @classmethod
        @jit
        def build(cls, x):
            return x + 1

        @staticmethod
        @jit
        def twice(x):
            return x * 2

        @property
        @jit
        def total(self):
            return self.w.sum()

        __call__ = call

    net = Net(X)
    yield net.call(Y), Net.build(X), net.build(X), Net.twice(X), net.total, net(Y)
    net.w = Y
    yield net.call(Y), net.total
    yield Net(X * 2).call(Y), Net(X * 2).total


@stories.add
def partials_and_caches(jit):
    def scale(x, k, *, b=0.0):
        return x * k + b

    @functools.lru_cache
    def weights(n):
        return tuple(1.0 / (i + 1) for i in range(n))

    @jit
    def f(g, x):
        return g(x), sum(w * x for w in weights(3))

    yield f(functools.partial(scale, k=2.0), X)
    yield f(functools.partial(scale, k=3.0), X)
    yield f(functools.partial(scale, k=Y, b=1.0), X)
    yield f(functools.partial(scale, k=Y + 1, b=1.0), X)
    yield jit(functools.partial(scale, k=2.0))(X)


@stories.add
def callables_as_arguments(jit):
    @jit
    def f(g, x):
        return g(x) + 1

    yield f(np.sin, X)
    yield f(np.cos, X)
    yield f(lambda x: x * 2, X)
    for k in (1.0, 2.0, 3.0):
        yield f(lambda x, k=k: x * k, X)
        yield f(lambda x: x * k, X)
    m = Model(X)
    yield f(m, Y)
    yield f(m.forward, Y)
    m.w = X + 1
    yield f(m.forward, Y)
    yield f(operator.neg, X)
    yield f(abs, -X)
    yield f(operator.itemgetter(slice(1, 3)), X)
    yield f(operator.methodcaller("sum"), X)
    yield f(operator.attrgetter("T"), X)


@stories.add
def lambdas_made_anew_are_not_captured_anew(jit):
    @jit
    def f(g, x):
        return g(x)

    for _ in range(5):
        yield f(lambda x: x * 2, X)
    yield f.cache_info().misses if hasattr(f, "cache_info") else 1


@stories.add
def closures_made_anew(jit):
    def make(k):
        return lambda x: x * k

    @jit
    def f(g, x):
        return g(x)

    for k in (2.0, 3.0, X, Y):
        yield f(make(k), X)


@stories.add
def generators_consumed_while_tracing(jit):
    def pieces(x, n):
        for k in range(n):
            yield x * k
        yield from (x + 1, x + 2)

    @jit
    def f(x):
        g = pieces(x, 3)
        first = next(g)
        rest = list(g)
        return first, sum(rest), [a for a in pieces(x, 1)], max(float(k) for k in range(3))

    yield f(X)


@stories.add
def iterators_over_structures(jit):
    @jit
    def f(xs, d):
        a = list(zip(xs, reversed(xs), strict=True))
        b = [x * k for k, x in enumerate(xs)]
        c = list(map(lambda p, q: p + q, xs, xs))
        e = list(filter(lambda p: p is not None, [xs[0], None]))
        g = sorted(d, reverse=True)
        h = sorted(d.items(), key=lambda kv: kv[0])
        i = iter(xs)
        first, *rest = i
        *init, last = xs
        return a, b, c, e, g, h, first, rest, init, last, any(k == "a" for k in d), {k: v.sum() for k, v in d.items()}

    yield f([X, Y, X + Y], {"b": X, "a": Y})


@stories.add
def itertools_and_friends(jit):
    @jit
    def f(xs):
        a = list(itertools.chain(xs, [xs[0]]))
        b = [p * q for p, q in itertools.product(xs, repeat=2)]
        c = list(itertools.accumulate(xs))
        d = [q - p for p, q in itertools.pairwise(xs)]
        e = list(itertools.accumulate(xs, operator.mul, initial=1.0))
        g = functools.reduce(operator.add, xs)
        h = functools.reduce(lambda p, q: p * q + 1, xs, 0.0)
        i = [p + q for p, q in itertools.combinations(xs, 2)]
        j = list(itertools.islice(itertools.cycle(xs), 5))
        k = list(itertools.starmap(np.add, zip(xs, xs, strict=True)))
        l = list(itertools.zip_longest(xs, xs[:1]))
        m = [(k, sum(v)) for k, v in itertools.groupby([1.0, 1.0, 2.0])]
        return a, b, c, d, e, g, h, i, j, k, l, m

    yield f([X, Y, X + 1])


@stories.add
def recursion_over_structures(jit):
    def tree_map(g, t):
        if isinstance(t, dict):
            return {k: tree_map(g, v) for k, v in t.items()}
        if isinstance(t, tuple | list):
            return type(t)(tree_map(g, v) for v in t)
        return g(t)

    @jit
    def f(params, rate):
        def norm(t):
            if isinstance(t, dict):
                return sum(norm(v) for v in t.values())
            if isinstance(t, list):
                return sum(map(norm, t))
            return (t * t).sum()

        return tree_map(lambda p: p - rate * p, params), norm(params)

    yield f({"a": [X, Y], "b": {"c": X}}, 0.1)


@stories.add
def a_list_argument_grows(jit):
    @jit
    def f(history, x):
        history.append(x * 2)
        return len(history)

    h = []
    for _ in range(3):
        yield f(h, X), h


@stories.add
def a_list_argument_is_changed(jit):
    @jit
    def f(xs, x):
        xs[0] = x + 1
        xs.insert(1, x)
        xs.pop()
        del xs[-1]
        xs.extend([x, xs[0]])
        xs += [1.0]
        return xs[0].sum()

    xs = [X, Y, X, Y]
    yield f(xs, X), xs
    yield f(xs, Y), xs


@stories.add
def a_dict_argument_is_changed(jit):
    @jit
    def f(params, x):
        params["w"] = params["w"] - 0.1 * x
        params.setdefault("n", 0)
        params["n"] += 1
        params.update(last=x.sum())
        params.pop("old", None)
        return params["w"].sum()

    p = {"w": X, "old": Y}
    for _ in range(3):
        yield f(p, X), p


@stories.add
def results_are_the_argument_containers(jit):
    @jit
    def f(params, xs, o):
        for k in params:
            params[k] = params[k] * 2
        xs[0] += 1
        return params, xs, o, xs[0]

    p, xs, o = {"w": X.copy()}, [Y.copy()], Frozen(X)
    for _ in range(2):
        a, b, c, d = f(p, xs, o)
        yield a is p, b is xs, c is o, d is xs[0], p, xs


@stories.add
def the_same_container_twice(jit):
    @jit
    def f(a, b):
        a.append(1.0)
        return len(a), len(b), a is b

    xs = [X]
    yield f(xs, xs), xs
    yield f([X], [X])


@stories.add
def attributes_of_arguments_change(jit):
    @dataclasses.dataclass
    class State:
        pos: np.ndarray
        step: int = 0

    @jit
    def f(s, dt):
        s.pos = s.pos + dt
        s.step += 1
        return s

    s = State(X)
    for _ in range(3):
        r = f(s, 0.5)
        yield r is s, s.pos, s.step


@stories.add
def attributes_of_plain_objects_change(jit):
    class Counter:
        def __init__(self):
            self.n = 0
            self.last = None

    @jit
    def f(c, x):
        c.n += 1
        c.last = x * c.n
        return c.last.sum()

    c = Counter()
    for _ in range(3):
        yield f(c, X), c.n, c.last
    d = Counter()
    yield f(d, Y), d.n, d.last, c.n


class Vector:
    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Vector(self.data + (other.data if isinstance(other, Vector) else other))

    __radd__ = __add__

    def __mul__(self, k):
        return Vector(self.data * k)

    def __rmul__(self, k):
        return self * k

    def __neg__(self):
        return Vector(-self.data)

    def __matmul__(self, other):
        return (self.data * other.data).sum()

    def __getitem__(self, k):
        return self.data[k]

    def __setitem__(self, k, v):
        self.data[k] = v

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return iter([self.data[0], self.data[1]])

    def __lt__(self, other):
        return self.data < other.data

    def __iadd__(self, other):
        self.data += other.data
        return self

    def __contains__(self, name):
        return name == "data"

    def __abs__(self):
        return np.sqrt(self @ self)

    def __bool__(self):
        return True

    def __eq__(self, other):
        return (self.data == other.data).all()

    __hash__ = None


@stories.add
def operators_of_user_classes(jit):
    @jit
    def f(x, y):
        u, v = Vector(x * 1), Vector(y)
        w = u + 2.0 * v + 1 + -u
        w += v
        w[0] = w[1]
        p, q = w
        return w.data, u @ v, w[1:], len(w), p + q, u < v, "data" in w, abs(v), 1 + u @ v if w else 0, u == v

    yield f(X, Y)


@stories.add
def array_protocol_containers(jit):
    class Quantity:
        def __init__(self, value, unit):
            self.value, self.unit = value, unit

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            values = [i.value if isinstance(i, Quantity) else i for i in inputs]
            return Quantity(getattr(ufunc, method)(*values, **kwargs), self.unit)

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.value)

    @jit
    def f(x):
        q = Quantity(x, "m")
        return np.multiply(q, 2.0).value, np.add(q, q).unit

    yield f(X)


@stories.add
def context_managers(jit):
    class Scale:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")
            return 3.0

        def __exit__(self, *exc):
            self.log.append("out")
            return False

    @jit
    def f(x):
        log = []
        with Scale(log) as k, Scale(log):
            y = x * k
        return y, log

    yield f(X)


@stories.add
def match_statements(jit):
    @jit
    def f(t, x):
        match t:
            case {"kind": "scale", "k": k}:
                return x * k
            case [a, b, *rest]:
                return a + b + len(rest)
            case Point(x=u, y=v):
                return u * v
            case (np.ndarray() as a,):
                return a
            case None:
                return x
            case str() | int():
                return x + 1
            case _:
                return x - 1

    yield f({"kind": "scale", "k": 2.0}, X)
    yield f([X, Y, 1, 2], X)
    yield f(Point(X, Y), X)
    yield f(None, X)
    yield f("a", X)
    yield f((X,), X)


@stories.add
def walrus_and_comprehensions(jit):
    @jit
    def f(xs):
        if (n := len(xs)) > 1:
            out = [y for x in xs if (y := x * n) is not None]
        else:
            out = []
        table = {k: {j: xs[j] * k for j in range(2)} for k in range(2)}
        return out, table, [a + b for a in xs for b in xs if a is not b], {i for i in range(3)}

    yield f([X, Y])


@stories.add
def questions_about_values(jit):
    @jit
    def f(x, y, n):
        facts = [
            type(x) is np.ndarray, isinstance(x, np.ndarray), isinstance(n, int), isinstance(n, float),
            x is None, x.shape == y.shape, hasattr(x, "shape"), hasattr(n, "shape"), getattr(x, "missing", 7),
            x.ndim, x.dtype == np.float64, x.dtype.name, callable(x), isinstance(x[0], np.float64), type(x[0]) is np.float64,
            isinstance(x, (list, np.ndarray)), np.isscalar(n), np.ndim(x), issubclass(type(n), int), type(n) is int, x is y,
        ]  # fmt: skip
        return facts, x + y

    yield f(X, Y, 3)
    yield f(X, X, 3.0)


@stories.add
def text_of_static_facts(jit):
    @jit
    def f(x, name):
        key = f"{name}_{x.ndim}d_{x.dtype}"
        return {key: x, "%s-%d" % (name, x.ndim): x + 1, "{}".format(x.dtype): 1}

    yield f(X, "w")


@stories.add
def shallow_and_deep_copies(jit):
    @jit
    def f(d, p):
        shallow, deep = copy.copy(d), copy.deepcopy(d)
        d["a"] += 1
        q = copy.copy(p)
        r = copy.deepcopy(p)
        return shallow["a"] is d["a"], shallow, deep, q.w is p.w, r.w + 1

    yield f({"a": X.copy()}, Frozen(X))


@stories.add
def vars_and_dict(jit):
    @jit
    def f(o):
        return {k: v * 2 for k, v in vars(o).items()}, sorted(o.__dict__)

    yield f(types.SimpleNamespace(a=X, b=2.0))
    yield f(Attrs(X))


@stories.add
def counters_and_statistics(jit):
    @jit
    def f(x, names):
        count = collections.Counter(names)
        return (
            x * count["a"],
            count.most_common(1),
            math.sqrt(2.0) + math.pi,
            statistics.mean([1, 2, 3]),
            math.hypot(3, 4),
        )

    yield f(X, ("a", "b", "a"))


@stories.add
def chain_maps_and_proxies(jit):
    @jit
    def f(x):
        c = collections.ChainMap({"a": x}, {"b": x * 2})
        p = types.MappingProxyType({"k": x})
        return c["a"] + c["b"], p["k"], dict(c)

    yield f(X)


@stories.add
def functions_that_return_functions(jit):
    def compose(*fs):
        def run(x):
            for g in fs:
                x = g(x)
            return x

        return run

    @jit
    def f(x):
        return compose(np.sin, lambda y: y * 2, abs)(x)

    yield f(X)


@stories.add
def decorated_functions(jit):
    def logged(g):
        @functools.wraps(g)
        def wrapper(*args, **kwargs):
            return g(*args, **kwargs) + 1

        return wrapper

    @jit
    @logged
    def f(x):
        return x * 2

    @logged
    @jit
    def g(x):
        return x * 2

    yield f(X), g(X), f.__name__


@stories.add
def functions_of_exec(jit):
    space = {"np": np, "k": 2.0}
    exec("def f(x):\n    return np.sin(x) * k\n", space)
    f = jit(space["f"])
    yield f(X)
    space["k"] = 3.0
    yield f(X)


@stories.add
def a_class_of_metaclass_and_new(jit):
    class Single:
        def __new__(cls, w):
            self = super().__new__(cls)
            self.kind = cls.__name__
            return self

        def __init__(self, w):
            self.w = w

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)

    class Other(Single):
        pass

    @jit
    def f(x):
        o = Other(x)
        return o.w * 2, o.kind

    yield f(X)


@stories.add
def descriptors(jit):
    class Twice:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, o, owner=None):
            return getattr(o, self.name) * 2

        def __set__(self, o, value):
            setattr(o, self.name, value)

    class Holder:
        w = Twice()

        def __init__(self, w):
            self.w = w

        def __getattr__(self, name):
            if name == "extra":
                return self._w + 100
            raise AttributeError(name)

    @jit
    def f(x, h):
        return Holder(x).w, h.w, h.extra, hasattr(h, "nothing")

    yield f(X, Holder(Y))
    yield f(X, Holder(X))


@stories.add
def nested_objects(jit):
    class Layer:
        def __init__(self, w, act):
            self.w, self.act = w, act

        def __call__(self, x):
            return self.act(self.w * x)

    class Net:
        def __init__(self, layers):
            self.layers = layers
            self.config = {"scale": 2.0}

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x * self.config["scale"]

    @jit
    def f(net, x):
        return net(x)

    net = Net([Layer(X, np.tanh), Layer(Y, np.sin)])
    yield f(net, X)
    net.layers[0].w = Y
    yield f(net, X)
    net.layers.append(Layer(X, np.cos))
    yield f(net, X)
    net.config["scale"] = 5.0
    yield f(net, X)
    net.layers[1] = Layer(X, np.exp)
    net.layers[0].act = np.cos
    yield f(Net([Layer(Y, np.tanh), Layer(X, np.sin)]), X)
    yield f(net, X) - np.zeros(5) if False else f(net, Y * 0)


@stories.add
def shared_arrays_in_objects(jit):
    class Holder:
        def __init__(self, a, b):
            self.a, self.b = a, b

    @jit
    def f(h):
        h.a += 1
        return h.a + h.b

    yield f(Holder(X.copy(), Y.copy()))
    z = X.copy()
    yield f(Holder(z, z)), z
    yield f(Holder(X.copy(), Y.copy()))


@stories.add
def objects_that_share_an_object(jit):
    class Node:
        def __init__(self, w):
            self.w = w

    class Tree:
        def __init__(self, left, right):
            self.left, self.right = left, right

    @jit
    def f(t):
        return t.left is t.right, t.left.w + t.right.w

    n = Node(X)
    yield f(Tree(n, n))
    yield f(Tree(n, Node(X)))
    yield f(Tree(n, Node(Y)))


@stories.add
def registered_classes(jit):
    class Box:
        def __init__(self, a, note):
            self.a, self.note = a, note

    jg.pytree.register(Box, lambda b: ([b.a], b.note), lambda note, parts: Box(parts[0], note))

    @jit
    def f(b):
        return Box(b.a + 1, b.note + "!")

    out = f(Box(X, "n"))
    yield out.a, out.note


@stories.add
def sequences_of_traced_scalars(jit):
    @jit
    def f(x, k):
        a, b, *c = x[:4]
        parts = [a, b, float(k), k + 1]
        return np.array(parts), np.stack([x, x * 2]), [*x[:2]], (*c,), sum(parts), max(a, b), min(parts)

    yield f(X, 2)


@stories.add
def objects_made_in_a_loop(jit):
    class Body:
        def __init__(self, p, v):
            self.p, self.v = p, v

        def step(self, dt):
            return Body(self.p + dt * self.v, self.v * 0.9)

    @jit
    def f(x, v):
        bodies = [Body(x, v), Body(v, x)]
        for _ in range(3):
            bodies = [b.step(0.1) for b in bodies]
        return [b.p for b in bodies]

    yield f(X, Y)


@stories.add
def objects_as_keys_and_ids(jit):
    @jit
    def f(o, x):
        table = {o: x * 2}
        return table[o]

    o = object()
    yield f(o, X)


@stories.add
def mutable_defaults(jit):
    @jit
    def f(x, seen=[]):
        seen.append(1)
        return x * len(seen)

    for _ in range(3):
        yield f(X)


@stories.add
def argument_dicts_of_another_order_of_keys(jit):
    @jit
    def f(d):
        return list(d), sum(d.values())

    yield f({"a": X, "b": Y})
    yield f({"b": Y, "a": X})


@stories.refused("async", "async def f")
def coroutine_functions(jit):
    async def f(x):
        return x

    if jit is not plain:
        jit(f)(X)
    yield 1


@stories.refused("generator", "def f")
def generator_functions(jit):
    @jit
    def f(x):
        yield x
        yield x + 1

    list(f(X))
    yield 1


test_structures = stories.tests()
