"""Loops.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B007, B905, F821, N818, RET503, RUF007, RUF015, TRY301

import contextlib
import math

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])
Y = np.array([2.0, 7.0, -1.0, 8.0, 2.5])
I = np.array([3, 1, 4, 1, 5])
F = X.astype(np.float32)
M = np.arange(12.0).reshape(3, 4) - 3
Z = np.zeros(0)


@cases.add((0, 10, 3), (10, 0, -3), (5, 5, 1), (0, 10, -1), (3, -20, -7), (0, 5, 0))
def range_with_traced_step(a, b, s):
    t = 0
    for i in range(a, b, s):
        t = t * 3 + i
    return t


@cases.add((X, 1), (X, 2), (X, 3), (X, 7), (X, 0), (X, -1), reruns=(5,))
def every_nth(x, s):
    t = 0.0
    for i in range(0, len(x), s):
        t += x[i]
    return t


@cases.add((X, -1), (X, -2), (X, 1))
def backwards_by_step(x, s):
    out = np.zeros_like(x)
    k = 0
    for i in range(len(x) - 1, -1, s):
        out[k] = x[i]
        k += 1
    return out, k


@cases.add((X, 1, 1), (X, 2, 3), (X, 3, 2))
def nested_steps(x, s, t):
    r = 0.0
    for i in range(0, len(x), s):
        for j in range(i, len(x), t):
            r += x[i] * x[j]
    return r


@cases.add((20, 1), (20, 2), (50, 3))
def sieve(n, first):
    p = np.ones(n, dtype=np.bool_)
    p[:2] = False
    for i in range(2, n):
        if p[i]:
            for j in range(i * i, n, i):
                p[j] = False
    return p, first


@cases.add((8,), (16,), (32,))
def butterfly_strides(n):
    x = np.arange(float(n))
    h = 1
    while h < n:
        for i in range(0, n, h * 2):
            for j in range(i, i + h):
                a, b = x[j], x[j + h]
                x[j] = a + b
                x[j + h] = a - b
        h *= 2
    return x


@cases.add((X, 2), (X, -2), (X, 1))
def index_after_stepped_loop(x, s):
    i = -1
    for i in range(0, 5 if s > 0 else -5, s):
        pass
    return i


@cases.add((X, 2), (X, 3), (X, 9))
def reversed_stepped_range(x, s):
    t = 0
    for i in reversed(range(0, 9, s)):
        t = t * 10 + i
    return t, len(range(0, 9, s))


@cases.add((X, 2), (X, 3), (X, 9))
def enumerate_stepped_range(x, s):
    t = 0
    for k, i in enumerate(range(1, 9, s)):
        t += k * i
    return t


@cases.add((X, 2), (X, 3))
def zip_of_stepped_ranges(x, s):
    t = 0
    for i, j, v in zip(range(0, 100, s), range(100, 0, -s), x):
        t += (i - j) * int(v)
    return t


@cases.add((X, 0), (X, 3), (X, -2), reruns=(0, 2))
def range_bounds(x, n):
    t = 0.0
    for i in range(n):
        t += x[i]
    for i in range(n, 5):
        t -= x[i]
    return t


@cases.add((5,), (0,), (100,))
def long_static_range(n):
    s = 0
    for i in range(1000):
        s += i * n
    return s


@cases.add((X,), (Z,), (F,), (I,))
def over_elements(x):
    t = 0
    for v in x:
        t = t + v * v
    return t


@cases.add((M,), (M[:1],), (M[:, :0],))
def over_rows(m):
    t = 0.0
    for row in m:
        for v in row:
            if v < 0:
                continue
            t += v
    return t


@cases.add((M.copy(),), (M.T.copy(),))
def rows_written(m):
    for row in m:
        row -= row.mean()
    for k, row in enumerate(m):
        row[0] = k
    return m.sum()


@cases.add((M.copy(),), (M.T,))
def columns(m):
    out = np.empty(m.shape[1])
    for j, col in enumerate(m.T):
        out[j] = col.max() - col.min()
    return out


@cases.add(
    (M.copy(), 2),
)
def views_in_loop(m, k):
    for a, b in zip(m[:-1], m[1:]):
        b += a * 0.5
    for r in m[::2, 1:]:
        r[:] = 1
    return m


@cases.add((X, Y), (X, Y[:3]), (Z, Y))
def zip_arrays(x, y):
    t = 0.0
    for a, b in zip(x, y):
        t += a * b
    return t


@cases.add((X, Y), (X, Y[:3]), reruns=(1,))
def zip_strict(x, y):
    t = 0.0
    for a, b in zip(x, y, strict=True):
        t += a * b
    return t


@cases.add((X, Y))
def nested_iterators(x, y):
    t = 0.0
    for i, (a, b) in enumerate(zip(x, reversed(y)), start=2):
        t += i * a * b
    for k, v in reversed(list(enumerate(x))):
        t = t * 0.5 + v * k
    for (i, a), b in zip(enumerate(x), y[::-1]):
        t += i * (a - b)
    return t


@cases.add((X, 3), (X, 5))
def zip_array_with_list(x, n):
    t = 0.0
    for a, b in zip(x, [1.0, 2.0, n]):
        t += a * b
    return t


@cases.add((X, 3.5), (X, -5.0), (X, 100.0))
def break_with_else(x, v):
    for i in range(len(x)):
        if x[i] > v:
            r = i
            break
    else:
        r = -1
    return r


@cases.add((X, 4.0), (X, 3.0), (X, 100.0))
def continue_and_break(x, v):
    t = 0.0
    n = 0
    for a in x:
        if a < 0:
            continue
        if a == v:
            break
        t += a
        n += 1
    return t, n


@cases.add((M, 2.0), (M, 100.0), (M, -3.0))
def break_of_inner_only(m, v):
    found = np.full(m.shape[0], -1)
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] >= v:
                found[i] = j
                break
    return found


@cases.add((M, 2.0), (M, 100.0), (M, -3.0))
def return_from_nested(m, v):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] >= v:
                return i, j
    return -1, -1


@cases.add((M, 2.0), (M, 100.0))
def return_or_none(m, v):
    for i, row in enumerate(m):
        if row.sum() > v:
            return i
    return None


@cases.add((M, 2.0), (M, 100.0))
def implicit_none(m, v):
    for i, row in enumerate(m):
        if row.sum() > v:
            return row


@cases.add((M, 2.0), (M, 100.0))
def for_else_in_for(m, v):
    n = 0
    for row in m:
        for a in row:
            if a > v:
                break
        else:
            n += 1
            continue
        n += 100
        break
    return n


@cases.add((10, 0.5), (0, 0.5), (50, 0.9))
def while_else(n, a):
    t = 0.0
    while n > 0:
        t = t * a + 1
        n -= 1
        if t > 5:
            break
    else:
        t = -t
    return t, n


@cases.add((27,), (1,), (97,))
def collatz_steps(n):
    k = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k


@cases.add((100.0,), (2.0,), (0.0,), (-1.0,))
def newton_root(a):
    if a < 0:
        raise ValueError(f"no root of {a}")
    if a == 0:
        return 0.0
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


class NoConvergence(ArithmeticError):
    pass


@cases.add((2.0, 50), (2.0, 2), (1e9, 3))
def newton_with_raise(a, limit):
    x = a
    for k in range(limit):
        f = x * x - a
        if abs(f) < 1e-10:
            return x, k
        x -= f / (2 * x)
    raise NoConvergence(f"after {limit} steps: {x}", limit)


@cases.add((48, 18), (7, 0), (0, 0), (-48, 18))
def euclid(a, b):
    while b:
        a, b = b, a % b
    return a


@cases.add((10,), (0,), (90,), (100,), reruns=(3,))
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@cases.add((3, 5), (7, 30), (2, 100), reruns=(1, 2))
def int_power_by_loop(b, n):
    r = 1
    while n:
        if n & 1:
            r *= b
        b *= b
        n >>= 1
    return r


@cases.add((20,), (21,), (25,), (3,), reruns=(1, 2))
def factorial(n):
    r = 1
    for i in range(2, n + 1):
        r *= i
    return r


@cases.add((X,), (Y,))
def int_to_float_in_turn(x):
    s = 0
    for v in x:
        s += v
    return s


@cases.add((X, 3), (X, 0), reruns=(1,))
def int_to_python_float(x, n):
    s = 0
    for i in range(n):
        s = s + 0.5
    return s


@cases.add((X, 3), (X, 0), reruns=(1,))
def bool_to_int(x, n):
    s = False
    for i in range(n):
        s = s + (x[i] > 0)
    return s


@cases.add((X, 3), (X, 0), reruns=(1,))
def int_to_array(x, n):
    s = 0
    for i in range(n):
        s = s + x * i
    return s


@cases.add((X, 3), (X, 0), (X, 1), reruns=(1,))
def none_first(x, n):
    best = None
    for i in range(n):
        if best is None or x[i] > best:
            best = x[i]
    return best


@cases.add((X,), (Y,))
def best_of_array(x):
    best = None
    where = None
    for i, v in enumerate(x):
        if best is None or v < best:
            best, where = v, i
    return best, where


@cases.add((X, 3), (X, 0))
def bound_in_loop_only(x, n):
    for i in range(n):
        last = x[i]
    return last, i


@cases.add((X, 10.0), (X, 3.0))
def bound_under_condition(x, v):
    for a in x:
        if a > v:
            hit = a
    return hit


@cases.add((X, 3), (X, 0), reruns=(1,))
def loop_variable_kept(x, n):
    i = 10
    for i in range(n):
        x = x + i
    return x, i


@cases.add((X, 3), (X, 0))
def loop_variable_assigned(x, n):
    t = 0
    for i in range(n):
        i = i * 2
        t += i
    return t


@cases.add((X, 3), (X, 5))
def deleted_in_loop(x, n):
    t = 0.0
    for i in range(n):
        v = x[i]
        t += v
        del v
    return t


@cases.add((X, 3), (X, 1), reruns=(0, 1))
def deleted_then_used(x, n):
    for i in range(n):
        v = x[i]
    del v
    return v


@cases.add((X, 3), (X, 0))
def grows_in_loop(x, n):
    y = x[:1]
    for i in range(n):
        y = np.concatenate([y, x])
    return y


@cases.add((X, 3), (X, 0))
def list_grows_in_traced_loop(x, n):
    out = []
    for i in range(n):
        out.append(x[i])
    return out


@cases.add((X,), (Y,))
def list_over_static_sequence(x):
    out = []
    for w in (1.0, 2.0, 3.0):
        out.append(x * w)
    return np.stack(out)


@cases.add((X,), (X[:3],))
def comprehension_over_array(x):
    return [v * 2 for v in x]


@cases.add((X,), (X[:3],))
def comprehension_over_traced_range(x):
    return np.array([x[i] * i for i in range(len(x))])


@cases.add((X,), (X[:3],))
def filtered_comprehension(x):
    return [v for v in x if v > 0]


@cases.add((X, 3), (X, 0), (X, 4))
def comprehension_over_int(x, n):
    return [x[i] for i in range(n)]


@cases.add((X,), (Y,))
def generator_expressions(x):
    return (
        sum(v * v for v in x),
        any(v > 4 for v in x),
        all(v > -9 for v in x),
        max(v for v in x),
        min(abs(v) for v in x),
        sum(1 for v in x if v > 0),
    )


@cases.add((X,), (X[:3],))
def dict_and_set_comprehensions(x):
    d = {k: x[k] for k in range(len(x))}
    s = {k % 2 for k in range(len(x))}
    return d, s


@cases.add((M,))
def nested_comprehensions(m):
    return [[a + b for b in row] for row in m for a in (1.0, 2.0)][0], [v for row in m for v in row][-1]


@cases.add((X.copy(), Y.copy(), 1), (X.copy(), Y.copy(), 4), (X.copy(), Y.copy(), 0))
def ping_pong(a, b, n):
    for _ in range(n):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a


@cases.add((X.copy(), 3, 1.0), (X.copy(), 3, -1.0))
def branch_in_loop_writes(x, n, c):
    for i in range(n):
        if c > 0:
            x[i] += 1
        elif x[i] > 0:
            x[i] = 0
        else:
            x[i] *= 2
    return x


@cases.add((6,), (1,), (0,))
def triangular_loops(n):
    t = 0
    for i in range(n):
        for j in range(i):
            for k in range(j, i):
                t += i * j - k
    return t


@cases.add((X, 100), (X, 2))
def while_true(x, n):
    k = 0
    while True:
        k += 1
        if k * k > n:
            break
    return k


@cases.add((X, 3), (X, -1))
def while_true_return(x, n):
    i = 0
    while True:
        if i >= n:
            return i, x.sum()
        i += 1


@cases.add((X, 1e-3), (X, 1e-8))
def while_on_array(x, tol):
    k = 0
    while np.abs(x).max() > tol:
        x = x * 0.5
        k += 1
    return x, k


@cases.add((X, 2), (X, 9))
def while_and_bound(x, n):
    i = 0
    while i < n and i < len(x) and x[i] > -1.2:
        i += 1
    return i


@cases.add((X, 2), (X, 0))
def while_not_or(x, n):
    i = 0
    done = False
    while not done or i < n:
        i += 1
        done = i >= 3
    return i, done


@cases.add((np.array([5.0, 2, 9, 1, 7, 3]),), (np.array([1.0]),))
def insertion_sort(a):
    for i in range(1, len(a)):
        v = a[i]
        j = i - 1
        while j >= 0 and a[j] > v:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = v
    return a


@cases.add((np.array([1.0, 3, 5, 7]), 5.0), (np.array([1.0, 3, 5, 7]), 4.0), (np.array([1.0, 3, 5, 7]), 99.0))
def binary_search(a, v):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < v:
            lo = mid + 1
        elif a[mid] == v:
            return mid
        else:
            hi = mid
    return -1


@cases.add((X, 3), (X, 0))
def break_in_with(x, n):
    t = 0.0
    for v in x:
        with contextlib.suppress(ZeroDivisionError):
            if v > n:
                break
            t += v
    return t


@cases.add((X, 3.5), (X, 99.0))
def break_in_try_finally(x, c):
    t = 0.0
    k = 0
    for v in x:
        try:
            if v > c:
                break
            t += v
        finally:
            k += 1
    return t, k


@cases.add((X, 3.5), (X, 99.0))
def return_in_try_finally_in_loop(x, c):
    count = np.zeros(1)
    for v in x:
        try:
            if v > c:
                return v, count
        finally:
            count[0] += 1
    return -1.0, count


@cases.add((X, 3.5), (X, 99.0), (X, -5.0))
def continue_in_try(x, c):
    t = 0.0
    for v in x:
        try:
            if v > c:
                continue
        finally:
            t += 1
        t += v
    return t


@cases.add((X, 0.0), (X, -100.0), reruns=(0,))
def try_in_loop(x, c):
    t = 0.0
    for v in x:
        try:
            if v < c:
                raise ValueError("low")
            t += v
        except ValueError:
            t -= 1
    return t


@cases.add((np.array([1, 2, 0, 4]),), (np.array([1, 2, 3, 4]),), reruns=(0,))
def zero_division_in_loop(i):
    t = 0.0
    for k in range(len(i)):
        try:
            t += 1 / int(i[k])
        except ZeroDivisionError:
            t = -1.0
    return t


@cases.add((X, 2.0), (X, 4.5), (X, 9.0))
def raise_in_loop(x, c):
    for k, v in enumerate(x):
        if v > c:
            raise NoConvergence(f"x[{k}] = {v:.3f}", k)
    return x.sum()


@cases.add((X, 2.0), (X, 9.0))
def raise_in_while_else(x, c):
    k = 0
    while k < len(x):
        if x[k] > c:
            break
        k += 1
    else:
        raise LookupError(c)
    return k


@cases.add((X, 2), (X, 4), (X, 5))
def assert_in_loop(x, n):
    for k in range(n):
        assert x[k] > -1.2, (k, "too low")
    return n


@cases.add((3, 1.0), (0, 1.0))
def tuple_carried(n, a):
    state = (a, 0)
    for _ in range(n):
        state = (state[0] * 2, state[1] + 1)
    return state


@cases.add((3, 1.0), (0, 1.0))
def dict_carried(n, a):
    s = {"a": a, "k": 0}
    for _ in range(n):
        s = {"a": s["a"] / 2, "k": s["k"] + 1}
    return s


@cases.add((3, 1.0), (0, 1.0))
def dict_item_assigned_in_loop(n, a):
    s = {"a": a, "k": 0}
    for _ in range(n):
        s["a"] = s["a"] / 2
        s["k"] += 1
    return s


class Particle:
    def __init__(self, x, v):
        self.x, self.v = x, v

    def step(self, dt):
        self.x = self.x + self.v * dt
        return self

    def __add__(self, other):
        return Particle(self.x + other.x, self.v + other.v)


@cases.add((3, 1.0), (0, 1.0))
def object_attributes_in_loop(n, a):
    p = Particle(a, 0.5)
    for _ in range(n):
        p.step(0.1)
        p.v *= 0.9
    return p.x, p.v


@cases.add((3, 1.0), (0, 1.0))
def objects_rebound_in_loop(n, a):
    p = Particle(a, 0.5)
    for _ in range(n):
        p = p + Particle(1.0, a)
    return p


@cases.add((X, 2), (X, 5))
def list_item_assigned_in_loop(x, n):
    acc = [0.0, 0.0]
    for i in range(n):
        acc[i % 2] += x[i]
    return acc


@cases.add((X, 2), (X, 5))
def list_item_static_in_loop(x, n):
    acc = [0.0, 0]
    for i in range(n):
        acc[0] += x[i]
        acc[1] += 1
    return acc


@cases.add((4, X), (1, X))
def slices_by_index(n, x):
    out = np.zeros(6)
    for i in range(1, n):
        out[i - 1 : i + 1] += x[i - 1 : i + 1]
        out[-1] = out[:i] @ x[:i]
    return out


@cases.add((M,), (M[:2],))
def loop_over_shape(m):
    n, k = m.shape
    t = 0.0
    for i, j in [(a, b) for a in range(2) for b in range(2)]:
        t += m[i, j]
    for i in range(n * k):
        t += m.flat[i] * i
    return t


@cases.add((X, 3))
def loop_invariant_none(x, n):
    w = None
    for i in range(n):
        if w is None:
            x = x + 1
        else:
            x = x - w
    return x


@cases.add((M,), (M.T.copy(),))
def ndindex_and_ndenumerate(m):
    t = 0.0
    for i, j in np.ndindex(m.shape):
        t += m[i, j] * (i - j)
    for (i, j), v in np.ndenumerate(m):
        if v < 0:
            break
        t += v * i
    return t


@cases.add((X, 3), (X, 0), (X, 1), reruns=(1,))
def two_loops_share_names(x, n):
    s = 0.0
    for i in range(n):
        s += x[i]
    t = s
    for i in range(n, 5):
        s -= x[i]
        t = s
    return s, t, i


@cases.add((5, 0.1), (0, 0.1), (2000, 0.1))
def logistic(n, x):
    hist = np.empty(n)
    for i in range(n):
        x = 3.7 * x * (1 - x)
        hist[i] = x
    return hist, x


@cases.add((X, 3), (X, 0))
def accumulate_in_tuple_swap(x, n):
    lo, hi = math.inf, -math.inf
    for i in range(n):
        lo, hi = min(lo, x[i]), max(hi, x[i])
    return lo, hi


@cases.add((X, 4), (X, 0))
def flag_carried(x, n):
    found = False
    for i in range(n):
        if x[i] < 0 and not found:
            found = True
    return found


@cases.add((12, 5), (5, 12), (0, 3))
def while_two_conditions(a, b):
    k = 0
    while a > 0 < b:
        if a > b:
            a -= b
        else:
            b -= a
        k += 1
    return a, b, k


@cases.add((2**62, 3), (1, 3), reruns=(0,))
def int_overflow_in_loop(a, n):
    for _ in range(n):
        a = a * 2 + 1
    return a


@cases.add((2**62, 3), (5, 3), reruns=(0,))
def int_overflow_then_down(a, n):
    for _ in range(n):
        a = a * 4
    for _ in range(n):
        a = a // 4
    return a


@cases.add((np.int64(2**62), 3), (np.int64(1), 3))
def numpy_int_wraps(a, n):
    for _ in range(n):
        a = a * 2 + 1
    return a


@cases.add((X, 100), reruns=(0,))
def grows_in_a_long_loop(x, n):
    y = x[:1]
    for i in range(n):
        y = np.concatenate([y, x])
    return y


@cases.add((837799,), (77031,), (113383,), (2**61 + 1,))
def collatz_peak(n):
    top = n
    while n != 1:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        top = max(top, n)
    return top


@cases.add(*((X, Y, n, n) for n in range(6)), (X, Y, 3, 0), (X, Y, 0, 3), (X, X, 3, 3), reruns=(0, 7))
def names_change_places_inside(x, y, n, m):
    for i in range(n):
        for j in range(m):
            y, x = x, y
    return x, y


@cases.add(*((X, Y, n) for n in range(6)), reruns=(0,))
def names_change_places_three_loops_down(x, y, n):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if k % 2 == 0:
                    y, x = x, y
    return x, y


@cases.add(*((X, Y, n) for n in range(6)), reruns=(0,))
def names_change_places_in_a_while(x, y, n):
    z, t = x, y
    for i in range(n):
        j = 0
        while j < n + i:
            if x[j % 5] > 0:
                t, z = z, t
            j += 1
    return z, t, x, y


@cases.add(*((k * np.ones((n, n)),) for n in (1, 2, 4, 16) for k in (1, -1)))
def a_length_that_becomes_a_sum(a):
    v = 0
    for r in a[::-1]:
        w = 0
        while w < a.shape[0]:
            w += 1
            b = np.tanh(a)
            v = len(b)
            b.sort()
            if a.ravel()[:1].sum() > 0:
                break
        v = v + np.sum(r)
    return w, v


@cases.add((X, 0), (X, 1), (X, 3))
def views_of_an_array_of_numbers_that_python_knows(x, n):
    v = np.atleast_1d(np.float64(-0.5)) * 2
    w = np.atleast_1d(np.float64(3))
    for i in range(n):
        t = v[None, :]
        if x[i] > 0:
            u = w[::-1]
        else:
            u = w
    return v, t, w, u


@cases.add(*((np.arange(1.0 * n * n).reshape(n, n), np.arange(n)[::-1].copy()) for n in (3, 5, 1)))
def ranges_as_arrays(a, k):
    n = len(k)
    rows = a[range(n)], a[:, range(0, n, 2)], a[range(n - 1, -1, -1), k], a[0][range(n - len(a))], a[range(2 - n % 2)]
    a[range(n), k] -= 1
    a[:, 0] = range(n)
    return rows, k + range(n), range(n) * k[0], np.add(range(n), k), np.maximum(range(n - len(a)), a[:0, 0])


@cases.add((np.zeros((4, 2)), 100), (np.zeros((5, 2)), 3))
def ranges_of_a_turn_as_indices(a, n):
    for i in range(n):
        a[range(i % 4), 0] += 1
    return a


test_loops = cases.tests()
