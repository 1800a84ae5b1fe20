"""Which results are one object, or share memory: what branches and loops bind to two names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.errors import TraceError
from jitgraph.ir.printer import print_graph
from jitgraph.ir.rewrite import constant_of
from tests.fuzz.compare import difference, run
from tests.tracing.harness import Jit


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False, verify=True):
        yield


def _new_view_on_one_side(x):
    v = x[1:]
    w = v
    if x[0] > 0:
        v = x[1:]
    return v, w


def _two_views_become_one(x):
    v, w = x[1:], x[1:]
    if x[0] > 0:
        w = v
    return v, w


def _three_ways(x):
    v = x[::-2]
    w = x
    if x[0] > 0:
        v = v[1:]
    elif x[1] > 0:
        w = v
    return w, v


def _exchanged(x):
    v, w = x[1:], x[1:]
    z = v
    if x[0] > 0:
        v, w = w, v
    return v, w, z


def _in_an_expression(x):
    v = x[1:]
    return (v if x[0] > 0 else x[2:]), v


def _chosen_twice(x):
    y = x * 2
    v = y[1:]
    w = v if x[0] > 0 else y[1:]
    u = w if x[1] > 0 else v
    return v, w, u


def _handed_through(x):
    def choose(a, b):
        for i in range(len(a)):
            if a[i] > 0:
                return b
        return a[1:]

    v = x[1:]
    w = choose(x, v)
    return v, w, choose(x, w)


def _items(x):
    d = {"a": x[1:], "b": x[1:]}
    for i in range(len(x)):
        if x[i] > 0:
            d["a"] = d["b"]
        if x[i] > 2:
            d["b"] = x[1:]
    return d


def _row_of_a_turn(x):
    w = x[0:2]
    for i in range(len(x) - 1):
        v = x[i : i + 2]
        if x[i] > 0:
            w = v
    return v, w


def _bound_by_some_turns(x):
    for i in range(len(x) - 1):
        v = x[i : i + 2]
        if x[i] >= 0:
            w = v
    return v, w


def _anew_in_some_turns(x):
    v = x[1:]
    w = v
    for i in range(len(x)):
        if x[i] > 0:
            v = x[1:]
    return v, w


def _back_and_forth(x):
    v, w = x[1:], x[1:]
    z = v
    for i in range(len(x)):
        if x[i] > 0:
            v, w = w, v
    return v, w, z


def _views_of_a_new_array(x):
    y = x * 2
    v = y[1:]
    w = v
    for i in range(len(x) - 1):
        if x[i] > 0:
            w = y[1:]
        else:
            v = w
    return v, w, y


def _new_arrays(x):
    v = np.zeros(3)
    w = v
    for i in range(len(x)):
        v = np.zeros(3) + i
        if x[i] > 0:
            w = v
    return v, w


def _a_while(x):
    v = x[1:]
    w = v
    i = 0
    while i < len(x):
        if x[i] > 0:
            v = x[1:]
        if x[i] > 2:
            w = v
        i += 1
    return v, w


def _nested(x):
    v = x[1:]
    w = u = v
    for i in range(len(x)):
        for j in range(len(x)):
            if x[j] > 0:
                v = x[1:]
            if x[j] > 2:
                w = v
        if x[i] > 0:
            u = w
    return v, w, u


def _views_with_gaps_of_a_turn(x):
    for i in range(len(x)):
        v = np.flip(x * i)
        w = v[::2]
        u = w[1:]
    return v, w, u


def _moving_over_a_new_array(x):
    v = x * 2
    for i in range(len(x)):
        if x[i] > 0:
            v = v.swapaxes(0, -1)
        w = v[None]
    return v, w


def _and_a_view_of_it(x):
    v = x * 2
    w = v[None]
    for i in range(len(x)):
        if x[i] > 0:
            v = v.swapaxes(0, -1)
        else:
            w = v[None]
    return v, w


def _a_view_of_what_some_turns_make(x):
    v = x * 2
    for i in range(len(x)):
        if x[i] > 0:
            v = v + 1
        else:
            w = v[:2]
    return v, w


def _views_that_inner_loops_take(x):
    for i in range(10):
        v = x[:2] * i
        for j in range(len(x)):
            if x[j] + 9 > i:
                w = v.reshape(2, 1)
    return v, w


def _written_by_a_name_that_some_turns_bind_anew(x):
    v = x * 2
    w = v
    for i in range(len(x)):
        if x[i] > 0:
            w = v * 1
        w += 1
    return v, w


def _later_turns_raise(x):
    k = 1
    for i in range(len(x)):
        x += k
        k = 1.5
        if x[i] > 0:
            return x
    return k


def _later_turns_raise_with_shapes(x):
    v = x
    for i in range(len(x)):
        v = v[:, None] * 1 if i else v + 1
        if x[0] > 0:
            return x, v
        v = v @ x
    return v


def _is_in_turns(x):
    v = x[1:]
    w = v
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            v = x[1:]
        if v is w:
            n += 1
        if x[i] > 2:
            w = v
    return n, v is w


def _is_an_argument(x):
    v = x
    while v.sum() < 20:
        v = v + 1
    return v is x


def _is_behind_nested_loops(x):
    v = x * 1
    w = v
    n = 0
    for _ in range(len(x)):
        for j in range(len(x)):
            if x[j] > 0:
                v = v + 1
            n += v is w
        w = v
        n += v is w
    return n, v is w


def _is_of_items(x):
    d = {"a": x, "b": x}
    for i in range(len(x)):
        if x[i] > 0:
            d["a"] = x * 1
        elif x[i] < 0:
            d["b"] = d["a"]
    return d["a"] is d["b"], d["a"] is x


def _is_of_arrays_that_change_places(x):
    u, v = x * 1, x * 2
    first = u
    for i in range(len(x)):
        u[i] = v[i] + 1
        u, v = v, u
    return u is first, v is first, u is v


def _one_of_two_types(x):
    for i in range(len(x)):
        v = 0.0
        if x[i] > 0:
            v = x * 2
            w = v
    return v, w


def _none_or_an_array(x):
    v = w = None
    for i in range(len(x)):
        if x[i] > 0:
            v = x + i
        if x[i] > 2:
            w = v
    return v, w, v is w


def _options_change_places(x):
    v, w = x[1:], 1.5
    u = v
    for i in range(len(x)):
        if x[i] > 0:
            v, w = w, v
    return v, w, u


def _more_options_in_later_turns(x):
    v = w = x.sum()
    u = None
    for i in range(len(x)):
        if x[i] > 2:
            v = x[1:].reshape(-1, 1)
        elif x[i] > 0:
            v = x[1:]
            w = v
        elif x[i] < 0:
            u, w = v, None
    return v, w, u


def _the_option_is_another_one_in_the_end(x):
    v = w = x * 1
    for i in range(len(x)):
        if x[i] > 0:
            v = w
        elif x[i] < 0:
            v = 0.0
        else:
            w = x * 2
    return v, w


def _several_types_in_nested_loops(x):
    v = w = None
    for i in range(len(x)):
        for j in range(len(x)):
            if x[j] > 0:
                v = x[:2] * i
            elif x[j] < 0:
                v = 1
        if x[i] > 0:
            w = v
    return v, w


def _is_of_several_types_in_turns(x):
    v = w = None
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            v = x + i
        elif x[i] < 0:
            v = "text"
        n += v is w
        w = v
    return n, v is w


def _back_to_the_same_object(x):
    v, w = x[:-1], x[::2]
    u = None
    for i in range(len(x)):
        if x[i] > 2 and u is v:
            continue
        w = v
        u = v
    return v, w


def _another_equal_view(x):
    w, v = x[1:], x[1:]
    for i in range(len(x)):
        for _ in range(len(x)):
            if x[i] > 2:
                w = None
            v = w
    return v is w


def _views_of_turns_among_types(x):
    v = x + 1
    w = 0.0
    for i in range(len(x)):
        w = x[::2]
        if x[i] == x[0]:
            w, v = v, w
    return v, w


def _the_argument_itself_in_each_turn(x):
    y = x * 3
    v = w = u = x
    for _ in range(len(x)):
        if w is x:
            w = v
            v = y
            w = u
    return v, w


def _unbound_and_of_several_types(x):
    y = x * 3
    v = x > 5
    for i in range(len(x)):
        u = x[1:]
        if v is x:
            u = w  # noqa: F821  # unbound in the first turn, whose test is false
        else:
            v = y
            if x[i] <= x[0]:
                u = v
                w = x + i
        w, u = u, w
    return v, w, u


def _a_slice_up_to_a_number_of_the_run(x):
    a = x[: x[0]]
    c = x + 1
    for i in range(len(x)):
        if x[i] > 1:
            a = c
    return a, c


def _a_view_with_gaps_of_one_of_two(x):
    y = x + 1
    for i in range(len(x)):
        b = x
        if x[i] > 0:
            b = y
        b = b[::2]
    return b[1:], b, y


_DATA = [
    (0, 0, 0, 0),
    (1, 0, 0, 0),
    (0, 1, 0, 0),
    (1, 1, 1, 1),
    (0, 3, 0, -3),
    (3, 0, 0, 3),
    (-3, 0, -4, 1),
    (1, 3, -2),
]
_FUNCTIONS = [
    f
    for f in list(globals().values())
    if callable(f) and getattr(f, "__code__", None) and "x" in f.__code__.co_varnames[:1]
]


@pytest.mark.parametrize("f", _FUNCTIONS)
def test_objects_and_memory(f: Callable[..., Any]) -> None:
    jitted = Jit(f)
    for numbers in _DATA:
        x = np.array(numbers, np.int64)
        expected, found = run(f, [x.copy()]), run(jitted, [x.copy()])
        assert difference([x], expected, found, free_zero=False) == ""


@pytest.mark.parametrize(
    "f",
    [
        _three_ways,
        _row_of_a_turn,
        _new_arrays,
        _views_with_gaps_of_a_turn,
        _is_in_turns,
        _more_options_in_later_turns,
        _a_slice_up_to_a_number_of_the_run,
        _a_view_with_gaps_of_one_of_two,
    ],
)
def test_machine_code(f: Callable[..., Any]) -> None:
    jitted = jg.jit(f)
    for numbers in _DATA * 2:  # native dispatch from the second call on
        x = np.array(numbers, np.int64)
        expected, found = run(f, [x.copy()]), run(jitted, [x.copy()])
        assert difference([x], expected, found, free_zero=False) == ""


def _first_of(p, q):
    return p if p[0] > q[0] else q[1:]


def test_a_write_by_a_name_of_two_views_says_what_it_is() -> None:
    def f(x, k):
        a = x[:k]
        c = a[1:k]
        for _ in range(len(x)):
            a = _first_of(x, c)
        a[:k] += a[:3]
        return a

    with pytest.raises(TraceError, match="a write to an array that may be one of two"):
        Jit(f)(np.arange(6.0), 2)


def test_a_loop_without_turns_may_write_to_what_is_read_only() -> None:
    def f(x, k):
        for i in range(k):
            x[i] = 1.0
        return x

    x = np.zeros(3)
    x.flags.writeable = False
    jitted = jg.jit(f)
    assert jitted(x, 0) is x
    with pytest.raises(ValueError, match="read-only"):
        jitted(x, 2)
    assert Jit(f).trace(x, 0).writes == ()


def test_one_object_by_number() -> None:
    found = print_graph(Jit(_new_view_on_one_side).trace(np.ones(4)).graph, loc=False)
    assert (
        found.strip()
        == """
graph @_new_view_on_one_side(%x: f64[n]) -> (view_of_argument 0 via [(d0: n - 1) -> (d0 + 1)], choice 0 via [0, 2], view_of_argument 0 via [(d0: n - 1) -> (d0 + 1)]) where n >= 0, n != 1 if n >= 1 {
  %0 = constant {value = 0} : py_int
  %1 = view %x {map = () -> (0)} : f64[]
  %2 = as_kind %1 {kind = "np_scalar"} : np.f64
  %3 = constant {value = 0} : py_int
  %4 = constant {value = 0.0} : py_float
  %5 = gt %2, %4 : np.bool
  %6 = as_kind %5 {kind = "py_bool"} : py_bool
  %7 = constant {value = 2} : py_int
  %8 = constant {value = 1} : py_int
  %9 = constant {value = 3} : py_int
  %10 = constant {value = 1} : py_int
  %11 = where %6, %7, %9 : i64[]
  %12 = as_kind %11 {kind = "py_int"} : py_int
  %13 = where %6, %8, %10 : i64[]
  %14 = as_kind %13 {kind = "py_int"} : py_int
  %15 = constant {value = 3} : py_int
  %16 = eq %12, %15 : py_bool
  return %16 {mutates = []}
}
""".strip()
    )


def test_an_option_that_is_not_taken_is_no_object() -> None:
    def f(x):
        v = w = None
        for i in range(len(x)):
            v = None
            if x[i] > 0:
                v = w = x * 2
        return v, w

    graph = Jit(f).trace(np.ones(4)).graph
    branch = next(op for op in graph.walk() if op.name == "cond")
    absent = branch.regions[1].terminator.operands
    numbers = [constant_of(v) for v in absent if v.type.kind == "py_int"]
    assert numbers.count(-1) >= 2  # of the array, and of its memory


def test_nothing_is_carried_where_nobody_can_tell() -> None:
    def f(x):
        u, v = x * 1, x * 2
        for _ in range(len(x)):
            u, v = v + 1, u * 2
        return u, v, x[1:], x[:-1]

    loop = next(op for op in Jit(f).trace(np.ones(4)).graph.walk() if op.name == "for")
    assert len(loop.operands) == 2


def test_nothing_is_carried_for_one_name_of_several_types() -> None:
    def f(x):
        v = None
        for i in range(len(x)):
            if x[i] > 0:
                v = x * 2
        return v, x[1:]

    loop = next(op for op in Jit(f).trace(np.ones(4)).graph.walk() if op.name == "for")
    assert len(loop.operands) == 2  # which, and the elements


_TABLE: dict[Any, Any] = {}
_SEEN: set[Any] = set()


def _keys_of_sizes(x):
    n = len(x)
    found = {n: 1, x.shape: 2, (1, n - 1): 3}
    found.update({x.size + 1: n}, name={n: n})
    _TABLE[n] = x.sum()
    _TABLE.setdefault((n, "s"), []).append({x.shape: n})
    _SEEN.add(x.shape)
    return found, {n, 3}, frozenset([(n, "a")]), sorted(_TABLE, key=str), dict.fromkeys(x.shape)


def _kinds(x):
    if isinstance(x, dict):
        return [(_kinds(k), _kinds(v)) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [type(x), *map(_kinds, x)]
    if isinstance(x, (set, frozenset)):
        return sorted(str(_kinds(v)) for v in x)
    return type(x), str(x)


def test_sizes_as_keys_are_ints_behind_the_trace() -> None:
    seen = []
    for f in (_keys_of_sizes, jg.jit(_keys_of_sizes)):
        _TABLE.clear()
        _SEEN.clear()
        seen.append([_kinds((f(x), _TABLE, _SEEN)) for x in (np.arange(5.0), np.arange(5.0), np.arange(7.0))])
    assert seen[0] == seen[1]


class _Vector:
    def __init__(self, a):
        self.a = np.asarray(a)

    def __add__(self, other):
        return _Vector(self.a + (other.a if isinstance(other, _Vector) else other))

    __radd__ = __add__

    def __array__(self, dtype=None, copy=None):
        return self.a


_LIVE = _Vector(np.arange(4.0))


def _objects_as_arrays(x):
    v = _Vector(x)
    return np.sin(v), np.asarray(_LIVE) + 1, np.concatenate([_LIVE, v]), sum([v, _LIVE, 1]).a, np.dot(_LIVE, x)


def test_objects_that_are_arrays_to_numpy() -> None:
    """What `__array__` reads is read at each call, and `sum` adds by the class's own operator."""
    f = jg.jit(_objects_as_arrays, numerics="numpy")
    for k in range(3):
        _LIVE.a = np.arange(4.0) * (k + 1)
        for found, expected in zip(f(np.ones(4)), _objects_as_arrays(np.ones(4)), strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)
    assert f.cache_info().entries == 1


class Around:
    def __init__(self, v):
        self.v = v

    def __contains__(self, x):
        return abs(x - self.v) < 1


class Listed:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def test_in_is_a_bool_of_pythons():
    def f(x):
        return x[0] in Around(x[1]), x[0] not in Around(x[2]), x[0] in Listed(x[1], x[2]), x[0] in [x[1], x[2]]

    for x in (np.array([1.0, 1.5, 1.0]), np.array([1.0, 4.0, 2.0])):
        found = Jit(f)(x)
        assert found == f(x)
        assert all(type(b) is bool for b in found)
