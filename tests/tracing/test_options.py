"""Names of one of several types in loops and behind writes: None or a number, one text or another, arrays of two ranks.

Each program runs as machine code, on data that takes all its ways, and is compared with Python: results, arguments,
shared memory. None of them may be left to Python.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from tests.fuzz.compare import difference, run
from tests.fuzz.levels import serving


def modes_by_name(x):
    mode, n = "up", 0
    for i in range(len(x)):
        if mode == "up":
            n += 1
            if x[i] > 0.7:
                mode = "down"
        elif mode == "down":
            n -= 1
            if x[i] < 0.3:
                mode = "flat"
        elif x[i] > 0.5:
            mode = "up"
    return n, mode


def text_in_a_tuple(x):
    level, counts = "none", np.zeros(3)
    for i in range(len(x)):
        counts[0 if level in ("none", "low") else 1] += 1
        level = "low" if x[i] < 0.3 else "mid" if x[i] < 0.6 else "high"
        if level == "high":
            counts[2] += x[i]
    return level, counts


def last_seen(x):
    last, out = None, np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0.5:
            last = x[i]
        out[i] = -1 if last is None else last
    return out, last


def best_of_some(x):
    best = at = None
    for i in range(len(x)):
        if x[i] > 0.5:
            if best is None:
                best, at = x[i], i
            elif x[i] < best and x[i] != 0:
                best, at = x[i], i - 0
    return best, at


def segments(x):
    start, found, k = None, np.zeros((10, 2)), 0
    for i in range(len(x)):
        if x[i] > 0.5 and start is None:
            start = i
        elif x[i] <= 0.5 and start is not None:
            if k < 10:
                found[k] = start, i
                k += 1
            start = None
    return found, k


def set_back_to_none(x):
    best = None
    for i in range(len(x)):
        best = x[i] if best is None else max(best, x[i])
        if best > 0.95:
            best = None
    return best


def pairs(x):
    found = None
    for i in range(len(x)):
        if x[i] > 0.5:
            found = (x[i], i)
        if found is not None and found[1] > 3:
            x[i] = found[0]
    return found


def a_search_in_two_loops(x):
    found = None
    for i in range(len(x)):
        for j in range(i):
            if x[i] - x[j] > 0.9:
                found = (i, j)
                break
        if found is not None:
            break
    return found


def a_while_until_something_is_found(x):
    k, i = None, 0
    while i < len(x) and k is None:
        if x[i] > 0.8:
            k = i
        i += 1
    return k, i


def truth_and_equality(x):
    m = None
    for i in range(len(x)):
        if not m and x[i] > 0.3:
            m = i
        if m == 3:
            x[i] = 9
        if m != None and m > 5:  # noqa: E711 - it is what some write
            x[i] = 8
    return m


def three_types(x):
    u = None
    for i in range(len(x)):
        if x[i] > 0.5:
            u = np.float32(x[i])
        elif x[i] > 0.3:
            u = i
        elif x[i] > 0.2:
            u = None
        if u is not None:
            x[i] += u
    return u


def a_class_is_asked_for(x):
    m = None
    for i in range(len(x)):
        if x[i] > 0.4:
            m = i
        x[i] = isinstance(m, int) + 2
    return m


def arrays_of_two_ranks(x):
    v = np.zeros(3)
    for i in range(len(x)):
        v = np.zeros((2, 3)) + i if x[i] > 0.5 else v + 1
        x[i] = v.ndim + np.log(v + 2).sum()
    return v


def an_operand_of_two_ranks(x):
    for i in range(len(x)):
        x[i] = np.sum((x if x[i] > 0.5 else 2) * x[0])
    return x


def an_array_or_none(x):
    f = None
    for i in range(len(x)):
        if x[i] > 0.5:
            f = x * 2
        if f is not None:
            f[0] += 1
            x[0] = f[0]
    return f


def in_an_attribute_of_a_container(x):
    state = {"last": None, "n": 0}
    for i in range(len(x)):
        if x[i] > 0.5:
            state["last"] = x[i]
            state["n"] += 1
    return state["last"], state["n"]


def through_a_function(x):
    def add(total, y):
        return y if total is None else total + y

    total = None
    for i in range(len(x)):
        if x[i] > 0.2:
            total = add(total, x[i])
    return total


def stored_in_a_list(x):
    v, t = x * 2, 0.0
    for i in range(len(x)):
        w = x[i] if x[i] > 0.5 else x[:2]
        q, d = [v, w], {"p": v, "q": w}
        q[0], q[1] = q[1], q[0]
        d["p"] = q[0]
        q[0] += 1
        t += np.sum(q[0]) + np.sum(d["p"])
    return v, t


def kept_in_a_list(x):
    kept, v = [], None
    for i in range(5):
        if x[i] > 0.5:
            v = x[i]
        kept.append(v)
    return kept


def builtins_of_arrays_or_none(x):
    n = total = 0
    for i in range(len(x)):
        v = x if x[i] > 0.5 else None
        w = x[i] if x[i] > 0.5 else None
        total += sum([0 if y is None else y for y in (w, 1.0, w)])
        n += any([v is None, w]) + all([w, 1]) + isinstance(v, np.ndarray)
    return total, n


def a_sum_of_several(x):
    total = 0
    for i in range(len(x)):
        a = x[i] if x[i] > 0.5 else x
        b = x * 2 if x[i] > 0.3 else 1
        total = sum([a, b, a, b])
    return total


def functions_and_classes(x):
    r, t = 0.0, abs
    for i in range(len(x)):
        f = np.add if x[i] > 0.5 else np.multiply
        r = f(t(r), x[i])
        t = abs if x[i] < 0.2 else float if x[i] < 0.6 else doubled
    return r, t


def doubled(y):
    return y * 2 - 1


def a_case_of_a_class(x):
    n = 0
    for i in range(len(x)):
        v = x[i] if x[i] > 0.5 else None if x[i] > 0.2 else i
        match v:
            case None:
                n += 1
            case int() | str():
                n += 10
            case _:
                n += 100
    return n


def an_argument_that_some_turns_replace(x):
    u, v = x, x[1:]
    for i in range(len(x)):
        if x[i] > 0.9:
            u = 2.5
        v = v if x[i] < 0.95 else None
    return u, v


def an_argument_in_a_tuple(x):
    u = x
    for i in range(len(x)):
        u = (x, i) if x[i] > 0.5 else u
    return u


PROGRAMS = [
    an_argument_that_some_turns_replace, an_argument_in_a_tuple, builtins_of_arrays_or_none, a_sum_of_several, functions_and_classes, a_case_of_a_class,
    modes_by_name, text_in_a_tuple, last_seen, best_of_some, segments, set_back_to_none, pairs, a_search_in_two_loops,
    a_while_until_something_is_found, truth_and_equality, three_types, a_class_is_asked_for, arrays_of_two_ranks,
    an_operand_of_two_ranks, an_array_or_none, through_a_function, stored_in_a_list, kept_in_a_list,
]  # fmt: skip


def compared(function: Callable[..., Any], scale: float, seed: int, *, compiled: bool = True) -> None:
    jitted = jg.jit(function, numerics="numpy")
    x = np.random.default_rng(seed).random(100) * scale
    given, mine = [x.copy()], [x.copy()]
    expected, found = run(function, given), run(jitted, mine)
    assert not difference([x], expected, found, free_zero=False)
    assert not compiled or serving(jitted, [x.copy()]) is not None


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs(function):
    for scale, seed in ((1.0, 0), (0.25, 1)):
        compared(function, scale, seed)


def test_an_option_that_python_refuses_raises():
    def f(x):
        v, s = None, 0.0
        for i in range(len(x)):
            if x[i] > 0.5:
                v = x[i]
            s += v
        return s

    for scale, seed in ((1.0, 0), (1.0, 3), (0.25, 1)):
        compared(f, scale, seed, compiled=False)
    with pytest.raises(TypeError, match="unsupported operand type"):
        jg.jit(f)(np.zeros(9))


def test_no_test_where_the_one_around_has_told():
    def f(x):
        v, s = None, 0.0
        for i in range(len(x)):
            if x[i] > 0.5:
                v = x[i]
            if v is not None and x[i] < v:
                s += v
        return s

    text = jg.jit(f).inspect_ir(np.ones(100), stage="trace")
    assert "check" not in text
    compared(f, 1.0, 0)


def test_what_cannot_be_told_is_refused():
    def f(x):
        v = None
        for i in range(len(x)):
            if x[i] > 0.5:
                v = x * 2
            x[0] += sum(y for y in v)
        return v

    with pytest.raises(errors.TraceError, match=r"v is .*None"):
        jg.jit(f).inspect_ir(np.ones(100), stage="trace")


def test_numpy_says_what_it_refuses():
    def f(x):
        v = None
        for i in range(len(x)):
            if x[i] > 0.5:
                v = x[i]
            x[i] = np.maximum(v, 0.7)
        return v

    for scale, seed in ((1.0, 0), (1.0, 3), (0.25, 1)):
        compared(f, scale, seed, compiled=False)
    x = np.ones(9)
    assert jg.jit(f)(x) == 1.0
    with pytest.raises(TypeError, match="not supported between"):
        jg.jit(f)(np.zeros(9))


def test_an_array_of_objects_is_refused():
    def f(x):
        v = None
        for i in range(len(x)):
            y = np.full(3, v)
            v = x[i] + y.ndim
        return v

    with pytest.raises(errors.TraceError, match="holds objects"):
        jg.jit(f)(np.ones(100))


def test_the_truth_of_more_elements_than_one():
    def f(x):
        n = 0
        for i in range(len(x)):
            if x[x > 0.5]:
                n += i
        return n

    jitted = jg.jit(f)
    with pytest.raises(ValueError, match="truth value of an array with more than one element"):
        jitted(np.array([0.7, 0.8, 0.1]))
    assert jitted(np.array([0.7, 0.2, 0.1])) == 3


def test_a_sum_without_a_result_is_an_error():
    def f(x, y):
        return sum([x, y])

    for y in (None, "a", {}):
        with pytest.raises(TypeError, match=r"unsupported operand|did not contain a loop"):
            jg.jit(f)(np.ones(3), y)
