"""What tracing might freeze: state that changes between calls, effects, exceptions, kinds that depend on the path.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B006, DTZ005, F811, F821, ICN001, PTH123, Q000, RET504, TRY301

import contextlib
import datetime
import logging
import os
import random
import sys
import time
import types
import uuid
import warnings

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e.scenarios import Scenarios, attempt

stories = Scenarios()
X = np.arange(1.0, 6.0)
Y = np.arange(5.0)[::-1].copy()

GAIN = 2.0
TABLE = {"k": 2.0}
LIMITS = [0.0, 1.0]
WEIGHTS = np.arange(5.0)
COUNT = 0


@stories.add
def globals_that_change(jit):
    global GAIN, WEIGHTS, LIMITS

    @jit
    def f(x):
        return x * GAIN + TABLE["k"] + WEIGHTS + LIMITS[0]

    yield f(X)
    GAIN = 3.0
    yield f(X)
    TABLE["k"] = 5.0
    yield f(X)
    WEIGHTS = np.ones(5)
    yield f(X)
    WEIGHTS[0] = 9.0
    yield f(X)
    LIMITS[0] = 4.0
    yield f(X)
    GAIN, TABLE["k"], WEIGHTS = 2.0, 2.0, np.arange(5.0)
    LIMITS = [0.0, 1.0]
    GAIN = 2
    yield f(np.arange(5))
    GAIN = 2.0


@stories.add
def closures_that_change(jit):
    k, w = 1.0, X

    @jit
    def f(x):
        return x * k + w

    yield f(X)
    k = 2.5
    yield f(X)
    w = Y
    yield f(X)


@stories.add
def nonlocal_counter(jit):
    n = 0

    @jit
    def f(x):
        nonlocal n
        n += 1
        return x * n

    for _ in range(3):
        yield f(X), n


@stories.add
def global_counter(jit):
    global COUNT
    COUNT = 0

    @jit
    def f(x):
        global COUNT
        COUNT = COUNT + 1
        return x + COUNT

    for _ in range(3):
        yield f(X), COUNT


@stories.add
def globals_that_a_loop_or_a_branch_reads_or_stores_first(jit):
    global COUNT, LATEST, GONE
    COUNT, LATEST, GONE = 0, 1.0, 5

    @jit
    def loop(x):
        global COUNT
        for v in x:
            if v > 2.0:
                COUNT += 1
        return x * 2.0

    @jit
    def branch(x):
        global LATEST
        if x[0] > 0.0:
            LATEST = x[1]
        return x + 1.0

    @jit
    def deleted(x):
        global GONE
        del GONE
        GONE = 3
        for i in range(len(x)):
            GONE = GONE + i
        return x * GONE

    for x in (X, -X, np.arange(20.0)):
        yield loop(x), COUNT
        yield branch(x), LATEST
        yield deleted(x), GONE


@stories.add
def stores_in_front_of_an_error_that_is_certain(jit):
    global COUNT
    COUNT, calls = 0, 0

    @jit
    def f(x):
        global COUNT
        COUNT += 1
        raise KeyError(3)

    @jit
    def g(x):
        nonlocal calls
        calls += 1
        if np.ones(3) == 2.0:
            return x
        return x + 1.0

    for x in (X, Y):
        yield attempt(f, x), COUNT
        yield attempt(g, x), calls


@stories.add
def mutable_default_as_a_memo(jit):
    @jit
    def f(x, memo={"n": 0}):
        memo["n"] += 1
        return x * memo["n"]

    for _ in range(3):
        yield f(X)


@stories.add
def a_method_is_replaced(jit):
    class Model:
        def gain(self):
            return 2.0

        def run(self, x):
            return x * self.gain()

    m = Model()
    f = jit(m.run)

    @jit
    def g(x):
        return m.run(x)

    @jit
    def h(model, x):
        return model.run(x)

    yield f(X), g(X), h(m, X)
    Model.gain = lambda self: 3.0
    yield f(X), g(X), h(m, X)
    m.gain = lambda: 4.0
    yield f(X), g(X), h(m, X)
    del m.gain
    yield f(X), g(X), h(m, X)
    Model.gain = property(lambda self: lambda: 5.0)
    yield f(X), g(X), h(m, X)


@stories.add
def a_method_appears_on_the_class(jit):
    class Base:
        def k(self):
            return 2.0

    class Child(Base):
        pass

    @jit
    def f(o, x):
        return x * o.k()

    o = Child()
    yield f(o, X)
    Child.k = lambda self: 3.0
    yield f(o, X)


@stories.add
def an_operator_is_replaced(jit):
    class V:
        def __init__(self, x):
            self.x = x

        def __add__(self, other):
            return V(self.x + other)

    @jit
    def f(x):
        return (V(x) + 1.0).x

    yield f(X)
    V.__add__ = lambda self, other: V(self.x - other)
    yield f(X)


@stories.add
def class_attributes_change(jit):
    class Config:
        scale = 2.0
        shift = X

    @jit
    def f(x):
        return x * Config.scale + Config.shift

    yield f(X)
    Config.scale = 3.0
    yield f(X)
    Config.shift = Y
    yield f(X)


@stories.add
def class_attribute_hidden_by_an_instance(jit):
    class Config:
        scale = 2.0

    c = Config()

    @jit
    def f(x):
        return x * c.scale

    yield f(X)
    c.scale = 5.0
    yield f(X)
    del c.scale
    Config.scale = 7.0
    yield f(X)


@stories.add
def class_counter(jit):
    class Counter:
        n = 0

    @jit
    def f(x):
        Counter.n += 1
        return x * Counter.n

    for _ in range(3):
        yield f(X), Counter.n


@stories.add
def module_attributes(jit):
    mod = types.ModuleType("settings_of_a_test")
    mod.CONST = 2.0
    mod.WEIGHTS = X
    mod.MODE = "a"
    mod.scale = lambda x: x * 2

    @jit
    def f(x):
        return mod.scale(x) * mod.CONST + mod.WEIGHTS if mod.MODE == "a" else x

    yield f(X)
    mod.CONST = 3.0
    yield f(X)
    mod.WEIGHTS = Y
    yield f(X)
    mod.scale = lambda x: x - 1
    yield f(X)
    mod.MODE = "b"
    yield f(X)


@stories.add
def a_helper_is_replaced(jit):
    def helper(x):
        return x * 2

    @jit
    def f(x):
        return helper(x)

    yield f(X)

    def helper(x):
        return x * 3

    yield f(X)
    helper.__code__ = (lambda x: x * 4).__code__
    yield f(X)


@stories.add
def defaults_are_replaced(jit):
    def helper(x, k=2.0):
        return x * k

    @jit
    def f(x):
        return helper(x)

    yield f(X)
    helper.__defaults__ = (5.0,)
    yield f(X)


@stories.add
def function_attributes(jit):
    def f(x):
        f.calls += 1
        return x * f.calls

    f.calls = 0
    g = jit(f)
    for _ in range(3):
        yield g(X), f.calls


@stories.add
def a_list_outside_grows(jit):
    log = []

    @jit
    def f(x):
        log.append(x.sum())
        return x * len(log)

    for _ in range(3):
        yield f(X), log


@stories.add
def a_dict_outside_as_a_cache(jit):
    cache = {}

    @jit
    def f(x, key):
        if key not in cache:
            cache[key] = x * 2
        return cache[key] + x

    yield f(X, "a"), sorted(cache)
    yield f(X, "b"), sorted(cache)
    yield f(Y, "a"), sorted(cache)


@stories.add
def a_set_outside(jit):
    seen = set()

    @jit
    def f(x, name):
        fresh = name not in seen
        seen.add(name)
        return x * 2 if fresh else x

    yield f(X, "a"), sorted(seen)
    yield f(X, "a"), sorted(seen)
    yield f(X, "b"), sorted(seen)


@stories.refused("is an iterator from outside", "next(numbers)")
def an_iterator_outside(jit):
    numbers = iter([1.0, 2.0, 3.0])

    @jit
    def f(x):
        return x * next(numbers)

    for _ in range(3):
        yield f(X)


@stories.add
def a_random_module_and_time(jit):
    @jit
    def f(x):
        return x * random.random()

    for seed in (1, 2, 1):
        random.seed(seed)
        yield f(X), f(X)


@stories.add
def clocks(jit):
    @jit
    def f(x):
        start = time.perf_counter()
        y = x * 2
        return y, time.perf_counter() - start >= 0, time.time()

    a, b = f(X), f(X)
    time.sleep(0.002)
    c = f(X)
    yield a[0], a[1], a[2] <= b[2] < c[2]


@stories.add
def environment(jit):
    @jit
    def f(x):
        return x * float(os.environ.get("JG_TEST_SCALE", "1.0"))

    os.environ["JG_TEST_SCALE"] = "2.0"
    yield f(X)
    os.environ["JG_TEST_SCALE"] = "3.0"
    yield f(X)
    del os.environ["JG_TEST_SCALE"]
    yield f(X)


@stories.refused("frozen", "datetime.datetime.now()")
def dates(jit):
    @jit
    def f(x):
        return x * datetime.datetime.now().second

    yield f(X).shape


@stories.refused("frozen", "uuid.uuid4()")
def unique_ids(jit):
    @jit
    def f(x):
        return {uuid.uuid4().hex: x}

    yield len(f(X))


@stories.refused("open", "open(path)")
def files(jit):
    path = __file__

    @jit
    def f(x):
        with open(path) as file:
            return x * len(file.readline())

    yield f(X)


@stories.add
def warnings_of_the_function(jit):
    @jit
    def f(x):
        warnings.warn("deprecated", DeprecationWarning, stacklevel=2)
        return x * 2

    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield f(X), [(str(w.message), w.category) for w in caught if w.category is not UserWarning]


@stories.add
def logging_of_the_function(jit):
    found = []
    logger = logging.getLogger("jitgraph.test")
    logger.setLevel(logging.INFO)

    class Handler(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    handler = Handler()
    logger.addHandler(handler)

    @jit
    def f(x, name):
        logger.info("called %s", name)
        logger.debug("not shown")
        return x * 2

    yield f(X, "a"), found
    yield f(X, "a"), found
    logger.removeHandler(handler)


@stories.add
def suppressed_warnings(jit):
    @jit
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = np.log(x - 3.0)
        return y

    yield np.isnan(f(X))


@stories.add
def print_options(jit):
    @jit
    def f(x):
        with np.printoptions(precision=3):
            return x * 2

    yield f(X)


class OwnError(ValueError):
    def __init__(self, code, detail=""):
        super().__init__(code, detail)
        self.code = code


@stories.add
def static_exceptions(jit):
    @jit
    def f(x, mode):
        if mode == "bad":
            raise OwnError(7, "static")
        if mode == "chain":
            try:
                raise KeyError("inner")
            except KeyError as e:
                raise RuntimeError("outer") from e
        assert x.ndim == 1, f"got {x.ndim} axes"
        return x

    yield attempt(f, X, "bad"), attempt(f, X, "chain"), attempt(f, X[None], "ok"), f(X, "ok")


@stories.add
def exceptions_that_depend_on_data(jit):
    @jit
    def f(x, limit):
        top = x.max()
        if top > limit:
            raise ValueError(f"max {top:.2f} is above {limit}")
        if x[0] < 0:
            raise OwnError(3, "negative")
        assert x[1] < 100, "too large"
        return x / top

    for x, limit in ((X, 10.0), (X, 3.0), (-X, 10.0), (X, 10.0)):
        yield attempt(f, x, limit)
    yield attempt(f, X * 60, 1000.0, text=False)


@stories.add
def arguments_of_exceptions(jit):
    @jit
    def f(x):
        if x[0] > 1:
            raise OwnError(42, "why")
        return x

    for x in (X, X + 1):
        try:
            yield f(x)
        except OwnError as e:
            yield e.args, e.code, type(e).__name__


@stories.add
def raise_from_with_data(jit):
    @jit
    def f(x):
        if x.sum() > 20:
            try:
                raise KeyError("k")
            except KeyError as e:
                raise RuntimeError("outer") from e
        return x

    yield attempt(f, X)
    try:
        f(X * 10)
    except RuntimeError as e:
        yield str(e), type(e.__cause__).__name__ if e.__cause__ else None


@stories.add
def exceptions_before_and_after_writes(jit):
    @jit
    def f(x, out):
        out[0] = x[0]
        if x[1] > 10:
            raise ValueError("stop")
        out[1] = x[1]
        return out

    for x in (X, X * 10):
        out = np.zeros(3)
        yield attempt(f, x, out), out


@stories.add
def handlers_of_static_errors(jit):
    @jit
    def f(x, d, name):
        try:
            y = d[name] * x
        except KeyError:
            y = x
        else:
            y = y + 1
        finally:
            z = x * 3
        try:
            import_missing = x.no_such_attribute
        except AttributeError as e:
            import_missing = len(str(e)) > 0
        try:
            x + np.ones(3)
        except ValueError:
            y = y + 10
        with contextlib.suppress(KeyError):
            d["never"]
        return y, z, import_missing

    yield f(X, {"a": Y}, "a")
    yield f(X, {"a": Y}, "b")


@stories.add
def handlers_of_traced_errors(jit):
    @jit
    def f(x, k):
        try:
            return x[k]
        except IndexError:
            return -1.0

    for k in (2, 7, -1, -9, 0):
        yield f(X, k)


@stories.add
def handler_of_a_division(jit):
    @jit
    def f(x, n):
        try:
            k = 10 / n
        except ZeroDivisionError:
            k = 0.0
        return x * k

    for n in (2, 0, 4.0, 0.0):
        yield f(X, n)


@stories.add
def handler_with_a_raise(jit):
    @jit
    def f(x):
        total = x.sum()
        try:
            if total > 20:
                raise ValueError("large")
            y = x * 2
        except ValueError:
            y = x * 0
        finally:
            z = total
        return y, z

    for x in (X, X * 10, X):
        yield f(x)


@stories.add
def handler_that_raises_another(jit):
    @jit
    def f(x, k):
        try:
            v = x[k]
        except IndexError as e:
            raise KeyError("no such row") from e
        return v * 2

    yield attempt(f, X, 1), attempt(f, X, 100), attempt(f, X, 2)


@stories.add
def handler_in_a_loop(jit):
    @jit
    def f(x, idx):
        total = 0.0
        for i in range(len(idx)):
            try:
                total += x[idx[i]]
            except IndexError:
                total -= 1.0
        return total

    yield f(X, np.array([0, 9, 2]))
    yield f(X, np.array([0, 1, 2]))


@stories.add
def handler_after_a_write(jit):
    @jit
    def f(x, k):
        x[0] = 7.0
        try:
            x[k] = 1.0
        except IndexError:
            x[1] = 2.0
        return x

    for k in (2, 9):
        yield f(X.copy(), k)


@stories.add
def handler_after_a_write_in_a_loop(jit):
    @jit
    def f(x, y, idx):
        for i in range(len(idx)):
            try:
                y[i] = x[idx[i]]
            except IndexError:
                y[i] = 0.0

    yield f(X, X * 0, np.array([0, 9, 2]))


@stories.add
def handler_of_a_linear_algebra_error(jit):
    @jit
    def f(a, b):
        try:
            return np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            return np.zeros_like(b)

    yield f(np.eye(3) * 2, np.ones(3))
    yield f(np.zeros((3, 3)), np.ones(3))


@stories.add
def errstate_raise(jit):
    @jit
    def f(x, y):
        with np.errstate(divide="raise", invalid="raise"):
            return x / y

    yield (
        attempt(f, X, X, text=False),
        attempt(f, X, np.zeros(5), text=False),
        attempt(f, np.zeros(5), np.zeros(5), text=False),
    )


@stories.add
def errstate_raise_handled(jit):
    @jit
    def f(x, y):
        with np.errstate(all="raise"):
            try:
                z = x / y
            except FloatingPointError:
                z = x * 0
        return z

    yield f(X, X), f(X, Y)


@stories.add
def errstate_raise_of_functions(jit):
    @jit
    def f(x):
        with np.errstate(invalid="raise"):
            return np.sqrt(x)

    @jit
    def g(x):
        with np.errstate(divide="raise"):
            return np.log(x)

    yield attempt(f, X, text=False), attempt(f, -X, text=False), attempt(g, X - 1, text=False)


@stories.add
def errstate_of_every_condition(jit):
    def story(kind, f, *cases):
        def guarded(*args):
            with np.errstate(**{kind: "raise"}):
                return f(*args)

        compiled = jit(guarded)
        return [attempt(compiled, *args, text=False) for args in cases]

    big, small = np.full(3, 1e300), np.full(3, 1e-300)
    yield story("over", lambda a, b: a * b, (X, X), (big, big), (np.full(3, np.inf), big))
    yield story("over", lambda a: np.exp(a), (X,), (big,), (-big,))
    yield story("over", lambda a: np.sum(a), (X,), (np.full(3, 1e308),))
    yield story("under", lambda a, b: a * b, (X, X), (small, small), (small * 0, small))
    yield story("invalid", lambda a, b: a - b, (X, X), (big * big, big * big), (np.full(2, np.nan), np.ones(2)))
    yield story("divide", lambda a: np.log(a), (X,), (X - 1,), (np.full(2, np.nan),))
    yield story("divide", lambda a, b: a // b, (np.arange(3), np.ones(3, int)), (np.arange(3), np.arange(3)))
    yield story("divide", lambda a: a[0] / a[1], (X,), (np.array([1.0, 0.0]),), (np.array([0.0, 0.0]),))
    yield story("all", lambda a: np.sqrt(a).sum() / a.mean(), (X,), (-X,), (X * 0,))
    yield story("divide", lambda a: 1.0 / a.astype(np.float32), (X,), (X - 2,))


@stories.add
def errstate_in_parts_and_as_a_decorator(jit):
    @jit
    def f(x):
        y = 1.0 / x
        with np.errstate(divide="raise"):
            with np.errstate(divide="ignore"):
                z = 2.0 / x
            w = 1.0 / (x + 1.0)
        return y, z, w

    yield f(X - 1), attempt(f, X - 2, text=False)


@stories.refused("np.errstate(...='call')", "np.errstate(divide='call'")
def errstate_that_calls(jit):
    @jit
    def f(x):
        with np.errstate(divide='call', call=print):  # fmt: skip
            return 1.0 / x

    yield f(X)


@stories.add
def errstate_ignore(jit):
    @jit
    def f(x):
        with np.errstate(divide="ignore", invalid="ignore"):
            y = 1.0 / (x - 1)
        return np.where(np.isinf(y), 0.0, y)

    yield f(X)


@stories.add
def kinds_of_merged_floats(jit):
    @jit
    def f(x, c):
        s = x[0] if c > 0 else 0.0
        return s

    @jit
    def g(x, c):
        total = 0.0
        for i in range(x.shape[0]):
            if c > 0:
                total = total + x[i]
        return total

    for c in (1, 0):
        yield f(X, c), g(X, c)


@stories.add
def merged_floats_meet_float32(jit):
    @jit
    def f(x, a, c):
        s = x[0] if c > 0 else 0.5
        return a * s

    for c in (1, 0):
        yield f(X, np.ones(3, np.float32), c)


@stories.add
def merged_int_and_float(jit):
    @jit
    def f(x, c):
        if c > 0:
            s = 1
        else:
            s = 2.5
        return s, x * s

    for c in (1, 0):
        yield f(X, c)


@stories.add
def merged_int_float_and_int_array(jit):
    @jit
    def f(x, c):
        s = 2 if c > 0 else 2.5
        return x * s

    for c in (1, 0):
        yield f(np.arange(3), c)


@stories.add
def merged_bool_and_int(jit):
    @jit
    def f(c):
        s = True if c > 0 else 0
        return s

    yield f(1), f(0)


@stories.add
def accumulator_starts_as_an_int(jit):
    @jit
    def f(x):
        total = 0
        for v in x:
            if v > 2:
                total += v
        return total

    yield f(X), f(X * 0), f(X[:0])


@stories.add
def best_so_far(jit):
    @jit
    def f(x):
        best = None
        for k in range(x.shape[0]):
            if best is None or x[k] > best:
                best = x[k]
        return best

    yield f(X)


@stories.add
def names_bound_at_the_end_of_a_turn(jit):
    @jit
    def f(x):
        for i in range(x.shape[0]):
            if i > 0:
                x[i] += prev
            prev = x[i]
        return x

    yield f(X.copy()), f(Y.copy())


@stories.add
def while_with_a_change_of_type(jit):
    @jit
    def f(u, tol):
        change, n = 1.0, 0
        while change > tol:
            old = u.copy()
            u = u * np.float32(0.5)
            change = np.abs(u - old).max()
            n += 1
        return u, change, n

    yield f(np.ones(4, np.float32), 1e-2)
    yield f(np.ones(4, np.float32), 2.0)


@stories.add
def while_with_an_int_that_becomes_float(jit):
    @jit
    def f(x):
        s, k = 0, 0
        while k < 4:
            s = s + x[k]
            k += 1
        return s

    yield f(X), f(X.astype(np.float32))


@stories.add
def sentinel_until_found(jit):
    @jit
    def f(x, v):
        found = -1
        for i in range(len(x)):
            if x[i] == v:
                found = i
                break
        return found

    yield f(X, 3.0), f(X, 30.0)


@stories.add
def result_of_two_kinds(jit):
    @jit
    def f(x):
        if x[0] > 1:
            return x.sum()
        return 0

    yield f(X), f(X + 1)


@stories.add
def array_or_number(jit):
    @jit
    def f(x, n):
        total = 0.0
        for k in range(n):
            total = total + x * k
        return total

    yield f(X, 3), f(X, 1)


@stories.add
def names_of_the_result_and_attributes(jit):
    @jit
    def f(x: np.ndarray, k: float = 2.0) -> np.ndarray:
        """Doc."""
        return x * k

    yield f.__name__, f.__doc__, f.__defaults__ if hasattr(f, "__defaults__") else (2.0,), f(X)


@stories.add
def object_in_a_global_is_replaced(jit):
    class Model:
        def __init__(self, w, act):
            self.w, self.act = w, act

    space = {"model": Model(X, np.sin), "np": np}
    exec("def f(x):\n    return model.act(model.w * x)\n", space)
    f = jit(space["f"])
    yield f(X)
    space["model"] = Model(Y, np.sin)
    yield f(X)
    space["model"] = Model(Y, np.cos)
    yield f(X)
    space["model"].act = np.tanh
    yield f(X)


@stories.add
def attribute_appears_and_goes(jit):
    class Box:
        pass

    b = Box()

    @jit
    def f(x):
        if hasattr(b, "bias"):
            return x + b.bias
        return x * getattr(b, "scale", 2.0)

    yield f(X)
    b.scale = 4.0
    yield f(X)
    b.bias = 1.0
    yield f(X)
    del b.bias
    yield f(X)


@stories.add
def numpy_aliases_are_replaced(jit):
    space = {"act": np.sin}
    exec("def f(x):\n    return act(x)\n", space)
    f = jit(space["f"])
    yield f(X)
    space["act"] = np.cos
    yield f(X)


@stories.add
def the_type_of_an_attribute_changes(jit):
    class Box:
        k = 1

    b = Box()

    @jit
    def f(x):
        return x * b.k

    for k in (1, 2.5, np.float32(2), X, True, 3):
        b.k = k
        yield f(X), f(np.arange(5, dtype=np.float32))


@stories.add
def static_arguments(jit):
    f = jit(lambda x, mode, n: x * n if mode == "mul" else x + n)
    yield f(X, "mul", 2), f(X, "add", 2), f(X, "mul", 3), f(X, mode="add", n=2.5)


def _print_lines(capsys_text):
    return [line for line in capsys_text.splitlines() if line]


def test_print_shows_types_and_warns(capsys):
    @jg.jit
    def f(x):
        print("x is", x)
        return x * 2

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(X)
        f(X)
    printed = capsys.readouterr().out
    assert printed.startswith("x is")
    assert "f64[n]" in printed
    assert [w.category for w in caught] == [UserWarning]
    assert "traced" in str(caught[0].message)


assert sys  # kept for programs that patch modules

test_frozen = stories.tests()


SOURCELESS = """
def argument(rng, n):
    return rng.random(n)
def legacy(rng, n):
    return np.random.rand(n)
def python(rng, n):
    return n + random.random()
def imported(rng, n):
    return n + uniform(0.0, 1.0)
def clock(rng, n):
    return n + time.perf_counter()
def attribute(rng, n):
    return n + rng.uniform(-1.0, 1.0) + holder.rng.normal(size=n)
def method(rng, n):
    return holder.draw(n)
def keyword(rng, n):
    return of(rng=rng, n=n)
def of(n, rng):
    return rng.integers(0, 1 << 40, n)
class Holder:
    def draw(self, n):
        return self.rng.normal(size=n)
def both(a, b):
    a.x = a.x + b
    return a, {"k": [a]}
"""


def test_arguments_of_functions_without_source_come_back_as_they_are():
    space = {"__name__": "typed", "np": np}
    exec(SOURCELESS, space)
    a = space["Holder"]()
    a.x = np.ones(3)
    f = jg.jit(space["both"])
    for _ in range(2):
        first, second = f(a, 1.0)
        assert first is a
        assert second["k"][0] is a
    np.testing.assert_array_equal(a.x, np.full(3, 3.0))


@pytest.mark.parametrize(
    "name", ["argument", "legacy", "python", "imported", "clock", "attribute", "method", "keyword"]
)
def test_effects_without_source_are_not_frozen(name):
    """In functions whose source is not at hand (typed at a prompt, made by `exec`) each call draws anew."""
    space = {"__name__": "typed", "np": np, "random": random, "time": time, "uniform": random.uniform}
    exec(SOURCELESS, space)
    eager, compiled = np.random.default_rng(5), np.random.default_rng(5)
    space["holder"] = space["Holder"]()
    f = jg.jit(space[name])

    def calls(g, rng):
        np.random.seed(3)
        random.seed(3)
        space["holder"].rng = np.random.default_rng(6)
        return [g(rng, 3) for _ in range(4)]

    wanted, got = calls(space[name], eager), calls(f, compiled)
    if name == "clock":
        assert np.all(np.diff(got) > 0)
    else:
        np.testing.assert_array_equal(got, wanted)
    assert eager.bit_generator.state == compiled.bit_generator.state
    assert f.cache_info().compiles == 1


def test_a_function_of_no_module_is_a_users():
    """`exec` in a dict without `__name__` gives functions of "builtins", or of none."""
    space = {"np": np}
    exec("def f(n):\n    return np.random.rand(n)\n", space)
    assert space["f"].__module__ in (None, "builtins")
    np.random.seed(3)
    wanted = [space["f"](3) for _ in range(3)]
    np.random.seed(3)
    f = jg.jit(space["f"])
    np.testing.assert_array_equal([f(3) for _ in range(3)], wanted)
