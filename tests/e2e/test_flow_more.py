"""More control flow.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B007, B012, B905, PIE808, RUF059, TRY301

import contextlib
import itertools
import math

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])
Y = np.array([2.0, 7.0, -1.0, 8.0, 2.5])
I = np.array([3, 1, 4, 1, 5])
M = np.arange(12.0).reshape(3, 4) - 3


class Acc:
    def __init__(self, v):
        self.v, self.items = v, []

    def add(self, x):
        self.v += x
        return self.v

    @property
    def double(self):
        return self.v * 2

    @double.setter
    def double(self, x):
        self.v = x / 2


@cases.add((X, 3), (X, 5))
def two_names_one_object(x, n):
    a = Acc(0.0)
    b = a
    for i in range(n):
        a.add(x[i])
        b.v *= 2
    return a.v, b.v, a is b


@cases.add((X, 1.0), (X, -1.0))
def same_object_in_list_and_name(x, c):
    a = Acc(1.0)
    l = [a, a]
    if c > 0:
        l[0].v = c
    else:
        a.v -= 1
    return l[1].v


@cases.add((X, 3), (X, 0))
def array_shared_by_attribute_and_name(x, n):
    a = Acc(np.zeros(5))
    y = a.v
    for i in range(n):
        a.v[i] = x[i]
        y[0] += 1
    return y, a.v, y is a.v


@cases.add((X, 3), (X, 2))
def attribute_rebound_while_name_keeps(x, n):
    a = Acc(x * 1)
    y = a.v
    for i in range(n):
        a.v = a.v + 1
    y[0] = 100.0
    return y, a.v


@cases.add((X, 1.0), (X, -1.0))
def list_item_swapped(x, c):
    l = [x, x * 2]
    if c > 0:
        l[0], l[1] = l[1], l[0]
    return l[0] - l[1]


@cases.add((X, 3))
def property_in_loop(x, n):
    a = Acc(1.0)
    for i in range(n):
        a.double = a.double + x[i]
    return a.double


@cases.add((I,), (I * 2,))
def match_in_loop(codes):
    n = [0, 0]
    t = 0.0
    for c in codes:
        match int(c):
            case 1:
                t += 1
            case 3 | 4 as k:
                t += k * 10
            case k if k > 4:
                t -= k
                if k > 8:
                    break
            case _:
                continue
        n[0] += 1
    return t, n


@cases.add((1, 2.0), (2, 2.0), (3, 0.0))
def match_tuple(op, a):
    match (op, a):
        case (1, v):
            return v
        case (2, v) | (3, v) if v > 1:
            return v * 2
        case _:
            raise ValueError(f"op {op}")


@cases.add((True,), (False,))
def match_singletons(flag):
    match flag:
        case True:
            return 1
        case False:
            return 2


@cases.add((None,), (3,))
def match_none(x):
    match x:
        case None:
            return 0
        case int():
            return x + 1


@cases.add((X,), (Y,))
def walrus_chain(x):
    best = 0.0
    if (a := x[0]) > 0 and (b := x[1]) > 0 and (c := a * b) > best:
        best = c
    return best, a


@cases.add((X, 2), (X, 7))
def walrus_in_comprehension(x, n):
    return [y for v in (1, 2, 3) if (y := v * 2) > 2], n


@cases.add((X, 3.0), (X, 9.0))
def walrus_while_else(x, v):
    k = -1
    while (k := k + 1) < len(x):
        if x[k] == v:
            break
    else:
        k = -1
    return k


@cases.add((X, 1.0), (X, -1.0), reruns=(0, 1))
def conditional_return_in_finally(x, c):
    r = 0.0
    for v in x:
        try:
            if v < 0:
                raise ValueError("neg")
            r += v
        finally:
            if c > 0:
                continue
    return r


@cases.add((X, 1.0), (X, -1.0))
def nested_try(x, c):
    log = []
    try:
        try:
            if c < 0:
                raise KeyError("k")
            log.append("body")
        finally:
            log.append("inner")
    except KeyError:
        log.append("caught")
    else:
        log.append("else")
    finally:
        log.append("outer")
    return log


@cases.add((X, 1.0), (X, -1.0))
def exception_with_state(x, c):
    state = Acc(0.0)
    try:
        state.add(1.0)
        if c < 0:
            raise ValueError("c")
        state.add(10.0)
    except ValueError:
        state.add(100.0)
    return state.v


@contextlib.contextmanager
def guarded(log):
    log.append("in")
    try:
        yield log
    except ValueError:
        log.append("caught")
    finally:
        log.append("out")


@cases.add((X, 1.0), (X, -1.0))
def contextmanager_that_swallows(x, c):
    log = []
    with guarded(log):
        if c < 0:
            raise ValueError("c")
        log.append("body")
    return log, x.sum()


class Timer:
    def __init__(self):
        self.n = 0

    def __enter__(self):
        self.n += 1
        return self

    def __exit__(self, *a):
        self.n += 10


@cases.add((X, np.array([0, 1, 2])), (X, np.array([0, 9, 2])))
def checks_inside_with(x, idx):
    t = Timer()
    s = 0.0
    with t:
        for k in range(len(idx)):
            s += x[idx[k]]
    return s, t.n


@cases.add((X, 3), (X, 12))
def deep_recursion_by_int(x, n):
    def go(k):
        if k <= 0:
            return x[0]
        return go(k - 1) * 0.5 + 1

    return go(n)


@cases.add((10,), (2,))
def fib_recursive(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(4) + n


@cases.add((np.array([5.0, 2.0, 9.0, 1.0]),), (np.array([1.0]),))
def merge_sort(a):
    def sort(v):
        if len(v) < 2:
            return v
        m = len(v) // 2
        l, r = sort(v[:m]), sort(v[m:])
        out = np.empty_like(v)
        i = j = 0
        for k in range(len(v)):
            if j >= len(r) or (i < len(l) and l[i] <= r[j]):
                out[k] = l[i]
                i += 1
            else:
                out[k] = r[j]
                j += 1
        return out

    return sort(a)


@cases.add((X,), (Y,))
def iterators_by_hand(x):
    it = iter(x)
    a = next(it)
    b = next(it, 0.0)
    rest = sum(it)
    return a, b, rest


@cases.add((X, 3), (X, 1))
def counting_generator(x, n):
    ids = itertools.count(10)
    out = 0
    for _ in range(n):
        out += next(ids)
    return out, next(ids)


@cases.add((X, 2.0), (X, 9.0))
def any_all_with_conditions(x, c):
    if any(v > c for v in x) and not all(v > -9 for v in x):
        return 1
    if all([x[0] > c, x[2] > c]) or any((x[1] > c, c > 8)):
        return 2
    return 3


@cases.add((X, 7, 2), (X, -7, 2), (X, 7, -3))
def range_contains(x, n, s):
    return n in range(0, 10), len(range(0, 10, abs(s))), list(range(3))[n % 3]


@cases.add((X, 3, 1), (X, 3, 0))
def range_step_zero_handled(x, n, s):
    try:
        t = 0
        for i in range(0, n, s):
            t += i
    except ValueError as e:
        return str(e)
    return t


@cases.add((I, X), (I[:2], X))
def steps_from_data(steps, x):
    t = 0.0
    for s in steps:
        for i in range(0, 5, s):
            t += x[i] * s
    return t


@cases.add((np.array([2, -1, 3]),), (np.array([2, 0, 3]),))
def steps_of_either_sign_from_data(steps):
    t = 0
    for s in steps:
        for i in range(10, 0, s):
            t += 1
            if t > 100:
                break
        for i in range(0, 10, s):
            t += i
    return t


@cases.add((X, 2), (X, 3), (X, 9))
def sorted_inside_loop(x, n):
    t = 0.0
    for i in range(n):
        a, b, c = sorted((x[i % 5], x[(i + 1) % 5], x[(i + 2) % 5]))
        t += b
    return t


@cases.add((X,), (np.array([1.0, np.nan, -2.0]),), reruns=(1,))
def sorted_with_nan(x):
    return sorted([x[0], x[1], x[2]])


@cases.add((X, 2.0), (Y, -2.0))
def sort_list_of_pairs(x, c):
    pairs = [(x[0], 0), (x[1], 1), (c, 2)]
    pairs.sort(key=lambda p: p[0])
    return pairs


@cases.add((0.5, 2), (2.5, -1), (1234.567, -2), (-0.125, 2))
def round_variants(a, n):
    return round(a), round(a, 2), round(a, 0), round(a, -2), round(n, 1), round(n, -1)


@cases.add((X, 5.0), (X, -5.0))
def assert_inside_helper(x, c):
    def check(v):
        assert v > 0, f"bad {v:.1f}"
        return v

    return x / check(c)


@cases.add((X, 5.0), (X, -5.0))
def assert_caught(x, c):
    try:
        assert c > 0, "neg"
    except AssertionError as e:
        return e.args
    return c


@cases.add((X, 3), (X, 0))
def else_of_empty_loops(x, n):
    for i in range(n):
        pass
    else:
        i = -1
    while n > 10:
        n -= 1
    else:
        n = n + 100
    return i, n


@cases.add((X, 3.0), (X, 100.0))
def del_of_carried(x, c):
    t = 0.0
    for v in x:
        if v > c:
            break
        t += v
    del v
    return t


@cases.add((X, 3), (X, 5), (X, 0))
def tuple_unpacking_in_for(x, n):
    pairs = [(1, 2), (3, 4), (5, 6)]
    t = 0
    for (a, b), v in zip(pairs, x):
        if a > n:
            break
        t += a * b * v
    return t


@cases.add((X, 1.0), (X, -1.0))
def star_args_by_branch(x, c):
    args = (x, 2.0) if c > 0 else (x, 3.0)
    return np.multiply(*args)


@cases.add((X, 100), (X, 1))
def loop_with_python_floats(x, n):
    e, term = 1.0, 1.0
    for k in range(1, n):
        term /= k
        e += term
        if term < 1e-17:
            break
    return e, k, math.isclose(e, math.e)


@cases.add((X, 3, 1.0), (X, 3, -1.0), (X, 0, 1.0), reruns=(2,))
def function_changes_in_loop(x, n, c):
    f = abs
    for i in range(n):
        x = x + f(c)
    g = (lambda v: v + 1) if c > 0 else (lambda v: v - 1)
    return g(x)


@cases.add(
    (X, 2.0),
)
def nested_functions_with_defaults(x, c):
    def outer(k=c):
        def inner(m=k * 2):
            return m + k if m > 3 else m

        return inner() + inner(1.0)

    return outer(), outer(5.0)


@cases.add((X, 3))
def complex_loop(x, n):
    z = 0j
    for i in range(n):
        z = z * z + complex(x[i], 0.5)
        if abs(z) > 100:
            break
    return z, i


@cases.add((8, 0.3), (20, -0.8))
def mandelbrot_point(n, a):
    z = 0j
    c = complex(a, 0.1)
    for k in range(n):
        if abs(z) > 2:
            return k
        z = z * z + c
    return n


@cases.add((M, 1.0), (M[:2], 0.5), (-M, 0.0), (M + 20, 0.0))
def sizes_of_data_that_do_not_fit(x, c):
    chosen = x[x > c]
    try:
        total = chosen + x
    except ValueError:
        total = x
    return chosen, total


@cases.add((M, 1.0), (M + 20, 0.0))
def a_name_that_only_the_handler_binds(x, c):
    chosen = x[x > c]
    try:
        chosen = chosen + x
    except (TypeError, ValueError):
        handled = np.where(x > 0, 0.5, 3)
    return chosen, handled


test_more = cases.tests()
