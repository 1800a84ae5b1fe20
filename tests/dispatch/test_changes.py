"""Programs whose attributes, globals, containers change between calls, each run in NumPy and compiled, by both dispatchers.

What changes: classes, dtypes and ranks of values that Python looks at, which objects are one, what stands in containers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from tests.dispatch.test_arguments import same

#: A program: the function, and what each step changes before it gives the arguments of a call.
Program = tuple[Callable[..., Any], list[Callable[[], tuple[Any, ...]]]]
PROGRAMS: list[Callable[[], Program]] = []

SETTING: Any = 1.0
TABLE: dict[str, Any] = {}
SHARED: list[Any] = []


class Thing:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@dataclass
class Pair:
    a: Any
    b: Any


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    PROGRAMS.append(make)
    return make


def x() -> np.ndarray:
    return np.arange(4.0)


def setting(owner: Any, name: Any, *values: Any) -> list[Callable[[], tuple[Any, ...]]]:
    """Steps that give an attribute or item these values, and pass one array."""

    def step(value: Any) -> Callable[[], tuple[Any, ...]]:
        def change() -> tuple[Any, ...]:
            if isinstance(owner, dict | list):
                owner[name] = value
            else:
                setattr(owner, name, value)
            return (x(),)

        return change

    return [step(v) for v in values]


def passing(*values: Callable[[], tuple[Any, ...]]) -> list[Callable[[], tuple[Any, ...]]]:
    return list(values)


VALUES = (1.5, "text", np.float32(2), np.ones(4), np.ones((2, 4), "f4"), None, 3, True, [1.0], 2.5, np.ones(4))


@program
def class_of_an_attribute():
    o = Thing(a=1.0)

    def f(x):
        return x + (1.0 if isinstance(o.a, float) else 5.0)

    return f, setting(o, "a", *VALUES)


@program
def class_of_an_item_of_a_list():
    items = [1.0]

    def f(x):
        return x + (1.0 if isinstance(items[0], np.ndarray) else 5.0)

    return f, setting(items, 0, *VALUES)


@program
def class_of_an_item_of_a_dict():
    items = {"k": 1.0, "other": 2.0}

    def f(x):
        return x * items["other"] if type(items["k"]) is float else x

    return f, setting(items, "k", *VALUES)


@program
def class_of_a_global():
    def f(x):
        return x + (1.0 if isinstance(SETTING, float) else 5.0)

    def to(value):
        def change():
            global SETTING
            SETTING = value
            return (x(),)

        return change

    return f, [to(v) for v in VALUES]


@program
def class_of_a_variable():
    value: Any = 1.0

    def f(x):
        return x + (1.0 if isinstance(value, np.ndarray) else 5.0)

    def to(new):
        def change():
            nonlocal value
            value = new
            return (x(),)

        return change

    return f, [to(v) for v in VALUES]


@program
def rank_of_an_attribute():
    o = Thing(a=1.0)

    def f(x):
        return x + np.ndim(o.a)

    return f, setting(o, "a", 1.5, np.ones(4), np.ones((2, 4)), np.float64(2), np.ones(1), np.ones((0, 3)))


@program
def dtype_of_an_attribute():
    o = Thing(a=1.0)

    def f(x):
        return x.astype(o.a.dtype)

    return f, setting(o, "a", np.ones(4), np.ones(4, "f4"), np.ones(3, "i4"), np.ones((2, 2), "f4"), np.float32(2))


@program
def length_of_an_attribute():
    o = Thing(a=1.0)

    def f(x):
        return x + len(o.a)

    return f, setting(o, "a", np.ones(4), np.ones(3), [1.0], (), "abc", np.ones((1, 5)), {"a": 1.0})


@program
def attribute_of_an_argument():
    def f(x, p):
        return x + (1 if isinstance(p.a, np.ndarray) else 2)

    return f, passing(*[lambda v=v: (x(), Thing(a=v)) for v in VALUES if v is not None])


@program
def field_of_a_dataclass():
    def f(x, p):
        return x + (p.b if isinstance(p.a, float) else -p.b)

    return f, passing(*[lambda v=v: (x(), Pair(v, 2.0)) for v in VALUES])


@program
def attributes_of_attributes():
    o = Thing(inner=Thing(a=1.0))

    def f(x):
        return x + hasattr(o.inner, "b") + isinstance(o.inner.a, float)

    return f, setting(o, "inner", Thing(a=1.0), Thing(a=2), Thing(a=1.0, b=2), Pair(1.0, 2.0), Thing(a=np.ones(2)))


@program
def an_attribute_that_is_replaced():
    o = Thing(last=0.0)

    def f(x):
        o.last = np.sum(x) if isinstance(o.last, float) else 1
        return x

    return f, setting(o, "last", *VALUES)


@program
def two_lists_or_one():
    def f(a, b):
        a.append(1.0)
        return len(b)

    def one():
        l = [2.0]
        return l, l

    return f, passing(lambda: ([1.0], [2.0]), one, lambda: ([1.0], [2.0]))


@program
def one_list_or_two():
    def f(a, b):
        a.append(1.0)
        return len(b)

    def one():
        l = [2.0]
        return l, l

    return f, passing(one, lambda: ([1.0], [2.0]), one)


@program
def two_dicts_or_one():
    def f(x, a, b):
        a["k"] = x * 2
        return sorted(b), x

    def one():
        d = {"j": 1.0}
        return x(), d, d

    return f, passing(lambda: (x(), {"j": 1.0}, {"j": 2.0}), one, lambda: (x(), {"j": 1.0}, {"j": 2.0}))


@program
def two_objects_or_one():
    def f(x, a, b):
        a.v = x * 2
        return x + b.v

    def one():
        o = Thing(v=1.0)
        return x(), o, o

    return f, passing(lambda: (x(), Thing(v=1.0), Thing(v=2.0)), one, lambda: (x(), Thing(v=1.0), Thing(v=2.0)), one)


@program
def two_dataclasses_or_one():
    def f(x, a, b):
        a.a = x * 2
        return x + b.a

    def one():
        o = Pair(1.0, 2.0)
        return x(), o, o

    return f, passing(lambda: (x(), Pair(1.0, 2.0), Pair(3.0, 2.0)), one, lambda: (x(), Pair(1.0, 2.0), Pair(2.0, 2.0)))


@program
def lists_within_tuples():
    def f(a, b):
        a[0].append(1.0)
        n = len(b[0])
        a[0].pop()
        return n

    def one():
        l = [2.0]
        return (l,), (l,)

    def whole():
        t = ([2.0],)
        return t, t

    return f, passing(lambda: (([1.0],), ([2.0],)), one, whole, lambda: (([1.0],), ([2.0],)))


@program
def lists_within_lists():
    def f(a):
        a[0].append(7.0)
        return [len(row) for row in a]

    def one():
        row = [1.0]
        return ([row, [2.0], row],)

    return f, passing(lambda: ([[1.0], [2.0], [3.0]],), one, lambda: ([[1.0]] * 3,), lambda: ([[1.0], [2.0], [3.0]],))


@program
def a_global_list_as_argument():
    def f(a):
        a.append(1.0)
        return len(SHARED)

    def shared():
        SHARED[:] = [2.0]
        return (SHARED,)

    def other():
        SHARED[:] = [2.0]
        return ([2.0],)

    return f, passing(other, shared, other)


@program
def deques():
    def f(a, b):
        a.append(1.0)
        return list(b)

    def one():
        d = deque([1.0])
        return d, d

    return f, passing(lambda: (deque([1.0]), deque([2.0])), one, lambda: (deque([1.0]), deque([2.0])))


@program
def attributes_that_are_one_list():
    o = Thing(a=[1.0], b=[2.0])

    def f(x):
        o.a.append(np.sum(x))
        return x * len(o.b)

    def one():
        o.a = o.b = [1.0]
        return (x(),)

    def two():
        o.a, o.b = [1.0], [2.0]
        return (x(),)

    return f, passing(two, one, two)


@program
def arrays_by_is():
    o = Thing(a=np.ones(4), b=np.ones(4))

    def f(x):
        return x + (1 if o.a is o.b else 2)

    def one():
        o.a = o.b
        return (x(),)

    def two():
        o.a = np.ones(4)
        return (x(),)

    return f, passing(two, one, two)


@program
def an_argument_by_is():
    o = Thing(a=np.ones(4))

    def f(x):
        return x + (1 if o.a is not x else 2)

    return f, passing(lambda: (x(),), lambda: (o.a,), lambda: (x(),))


@program
def tuples_by_is():
    def f(x, a, b):
        return x + (1 if a is b else 2)

    def one():
        t = (1.0, 2.0)
        return x(), t, t

    return f, passing(lambda: (x(), (float(1), 2.0), (float(3), 2.0)), one, lambda: (x(), (1.5, 2.0), (1.25, 2.0)))


@program
def items_of_a_table():
    def f(x):
        return x * sum(1.0 for v in TABLE.values() if isinstance(v, float)) + len(TABLE)

    def to(**items):
        def change():
            TABLE.clear()
            TABLE.update(items)
            return (x(),)

        return change

    return f, [to(a=1.0, b=2.0), to(a=1.0, b="s"), to(a=1.0), to(b=1.0, a=2.0), to(a=np.float64(1), b=2.0), to()]


@program
def a_function_that_is_replaced():
    o = Thing(f=None)

    def f(x):
        return x if o.f is None else o.f(x)

    def scaled(k):
        return lambda v: v * k

    return f, setting(o, "f", None, np.sqrt, scaled(2.0), scaled(3.0), scaled(2), lambda v: v - 1, abs)


@program
def a_cache_that_grows():
    o = Thing(cache={})

    def f(x):
        key = x.shape[0]
        if key not in o.cache:
            o.cache[key] = np.ones(x.shape[0])
        return x + o.cache[key]

    return f, passing(lambda: (x(),), lambda: (np.arange(5.0),), lambda: (x(),))


@program
def modes_by_text():
    o = Thing(mode="a", scale=1.0)

    def f(x):
        if o.mode == "double":
            o.scale = o.scale * 2
        return x * o.scale

    return f, setting(o, "mode", "single", "double", "single", "double")


@program
def written_arrays_that_are_one():
    o = Thing(a=np.ones(4), b=np.ones(4))

    def f(x):
        o.a += x
        return o.b * 2

    def one():
        o.a = o.b = np.ones(4)
        return (x(),)

    def two():
        o.a, o.b = np.ones(4), np.ones(4)
        return (x(),)

    return f, passing(two, one, two)


@program
def stored_arguments():
    o = Thing(last=np.zeros(4))

    def f(x):
        before = o.last
        o.last = x
        return before is x, before

    kept = np.ones(4)
    return f, passing(lambda: (x(),), lambda: (kept,), lambda: (kept,), lambda: (x(),))


def outcomes(f: Callable[..., Any], steps: list[Callable[[], tuple[Any, ...]]]) -> list[Any]:
    """What the calls answer, and the arguments behind them: each step thrice, then all of them once more."""
    found: list[Any] = []
    for step in [*[s for s in steps for _ in range(3)], *steps, *steps[::-1]]:
        args = step()
        try:
            result = f(*args)
        except Exception as error:  # noqa: BLE001  # compared with NumPy's
            result = next(c.__name__ for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
        found.append((result, [getattr(a, "__dict__", a) for a in args]))
    return found


@pytest.mark.parametrize("dispatch", ["native", "python"])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_as_numpy(make, dispatch):
    wanted = outcomes(*make())
    f, steps = make()
    with config.override(dispatch=dispatch):
        got = outcomes(jg.jit(f), steps)
    for k, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        assert repr(mine) == repr(theirs), k
        same(mine[0], theirs[0])
