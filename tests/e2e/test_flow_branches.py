"""Branches, tests, builtins, errors, matches.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B012, N818, SIM107, SIM300, TRY301, UP031, UP032

import math

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])
Y = np.array([2.0, 7.0, -1.0, 8.0, 2.5])
I = np.array([3, 1, 4, 1, 5])
F = X.astype(np.float32)


@cases.add((X, 1.0), (X, -1.0), (X, 0.0))
def one_branch_only(x, c):
    y = x
    if c > 0:
        y = x * 2
    return y


@cases.add((X, 1.0), (X, -1.0), (X, 0.5), (X, 0.0))
def elif_chain_with_other_types(x, c):
    if c > 0.7:
        r = x.sum()
    elif c > 0.2:
        r = 1
    elif c < 0:
        r = 2.5
    else:
        r = x[0]
    return r


@cases.add((X, 1.0), (X, -1.0))
def array_or_scalar(x, c):
    r = x if c > 0 else x.sum()
    return r * 2


@cases.add((X, 1.0), (X, -1.0))
def array_or_none(x, c):
    r = None
    if c > 0:
        r = x + 1
    if r is None:
        return x
    return r


@cases.add((X, 1.0), (X, -1.0))
def tuple_or_array(x, c):
    if c > 0:
        return x, 1
    return x


@cases.add((X, 1.0), (X, -1.0))
def unbound_in_one_branch(x, c):
    if c > 0:
        y = x[0]
    return y + 1


@cases.add((X, 1.0), (X, -1.0))
def deleted_in_one_branch(x, c):
    y = x[0]
    if c > 0:
        del y
    return y + 1


@cases.add((X, 1.0, 2.0), (X, -1.0, 2.0), (X, -1.0, -3.0), (X, 1.0, -3.0))
def nested_ifs(x, a, b):
    if a > 0:
        if b > 0:
            y = x + a
        else:
            y = x - b
        y = y * 2
    else:
        y = x * b
        if b < 0:
            y[0] = a
    return y


@cases.add((X.copy(), 1.0), (X.copy(), -1.0))
def write_in_both(x, c):
    if c > 0:
        x[1:3] = c
    else:
        x[::2] *= 3
        x[1] += 1
    return x.sum()


@cases.add((X, 2), (X, 0), (X, -1))
def and_or_return_operands(x, n):
    a = n and x[0]
    b = n or x[1]
    return a, b, not n


@cases.add((1.5, 0), (0.0, 0), (0.0, 3), (2.0, 4))
def and_or_of_numbers(a, n):
    return a and n, a or n, a and n and 7, a or n or 7, not a, not (a and n)


@cases.add((X, 1), (X, 3), (X, 7))
def or_default(x, n):
    k = n > 2 and 1
    return k, (n > 5 or x[0] > 100), x[0] > 0 and x[1] < 0


@cases.add((1, 2, 3), (3, 2, 1), (1, 1, 1), (-1, 5, 2))
def chained_comparisons(a, b, c):
    return a < b < c, a <= b <= c, a < b > c, a == b == c, a != b != c, 0 < a


@cases.add((X,), (Y,), (-X,))
def chained_on_elements(x):
    if -2 < x[0] <= 3 < x[2]:
        return 1
    if x[0] < x[1] < x[2]:
        return 2
    return 3


@cases.add((X, 5), (X, 1), (X, -2))
def ternaries(x, n):
    a = 1 if n > 3 else (2 if n > 0 else 3)
    b = x[0] if n > 0 else -x[0]
    c = x if n > 3 else x[::-1]
    return a, b, c * a


@cases.add((X, 1.0), (X, -1.0))
def ternary_on_left(x, c):
    (x if c > 0 else np.zeros(5))[0] = 1
    return x * 1


@cases.add((4.0,), (-4.0,), (0.0,))
def assertion(a):
    assert a >= 0
    return math.sqrt(a)


@cases.add((4.0,), (-4.0,), (0.0,))
def assertion_with_text(a):
    assert a >= 0, f"a is {a}, not positive"
    return a * 2


@cases.add((4.0,), (-4.0,), (0.0,))
def assertion_with_value(a):
    assert a >= 0, a
    return a * 2


@cases.add((4.0, 2), (-4.0, 2))
def assertion_with_tuple(a, n):
    assert a >= 0, ("bad", a, n)
    return a * 2


class Diverged(ArithmeticError):
    def __init__(self, step, norm):
        super().__init__(f"diverged at {step}: {norm:.3e}")
        self.step, self.norm = step, norm


@cases.add((X, 3), (X, 5), (X, 60))
def own_exception_with_arguments(x, n):
    y = x
    for k in range(n):
        y = y * 3
        s = float(np.abs(y).max())
        if s > 1e4:
            raise Diverged(k, s)
    return y


class Plainly(Exception):
    pass


@cases.add((X, 3), (X, -5))
def raise_class(x, n):
    if n < 0:
        raise Plainly
    return x * n


@cases.add((X, 3), (X, -5))
def raise_with_two_arguments(x, n):
    if n < 0:
        raise Plainly("n", n)
    return x * n


@cases.add((X, 3), (X, 0), (X, -5))
def raise_from(x, n):
    try:
        r = 10 // n
    except ZeroDivisionError as e:
        raise ValueError(f"n = {n}") from e
    if r < 0:
        raise Plainly(r) from None
    return x * r


@cases.add((X, 3), (X, 0), (X, -5))
def raise_from_new(x, n):
    if n < 0:
        raise ValueError("outer") from KeyError("inner", n)
    return x * n


@cases.add((X, 3), (X, 0), (X, -5))
def caught_here(x, n):
    try:
        if n <= 0:
            raise ValueError(n)
        y = x * n
    except ValueError as e:
        y = x - e.args[0]
    return y


@cases.add((X, 3), (X, 0), (X, -5))
def caught_by_base(x, n):
    try:
        if n < 0:
            raise KeyError("k")
        if n == 0:
            raise IndexError("i")
        y = x * n
    except LookupError:
        y = x - 1
    else:
        y = y + 10
    finally:
        z = 7
    return y, z


@cases.add((3,), (0,), (-1,))
def zero_division_caught(n):
    try:
        return 10 / n
    except ZeroDivisionError:
        return math.inf


@cases.add((X, 2), (X, 5), (X, -6))
def index_error_caught(x, k):
    try:
        return x[k]
    except IndexError:
        return 0.0


def _checked(a):
    if a < 0:
        raise ValueError("negative")
    return math.sqrt(a)


@cases.add((4.0,), (-4.0,))
def raise_in_helper_caught(a):
    try:
        r = _checked(a)
    except ValueError as e:
        return str(e)
    return r


@cases.add((4.0, 1.0), (-4.0, 1.0), (4.0, -1.0))
def reraise(a, b):
    try:
        r = _checked(a) + _checked(b)
    except ValueError:
        if b < 0:
            raise
        r = 0.0
    return r


@cases.add((X.copy(), 1.0), (X.copy(), -1.0))
def finally_writes(x, c):
    try:
        if c < 0:
            raise ValueError("c")
        x[0] = c
    finally:
        x[1] = 9.0
    return x.sum()


@cases.add((X.copy(), 1.0), (X.copy(), -1.0))
def return_in_try_finally(x, c):
    log = []
    try:
        if c > 0:
            return x.sum(), log
        log.append(1)
        return x[0], log
    finally:
        log.append(2)


@cases.add((X, 1.0), (X, -1.0))
def return_in_finally(x, c):
    try:
        if c > 0:
            raise ValueError
        return 1.0
    finally:
        return x[0]


@cases.add((3, 2.5), (-7, 2.5), (7, -2.0), (0, 1.0))
def builtins_on_numbers(n, a):
    return (
        abs(n),
        abs(a),
        int(a),
        float(n),
        bool(n),
        bool(a),
        round(a),
        divmod(n, 3),
        divmod(n, a),
        pow(n, 2),
        pow(a, 2),
        pow(n, 3, 5),
        max(n, 2),
        min(a, 1.5),
        max(n, -n),
        min(3, n, 5),
        sum([n, n, 1]),
        sum((a, a), 0.5),
    )


@cases.add((X,), (Y,), (np.zeros(5),))
def builtins_on_arrays(x):
    return (
        sum(x),
        max(x),
        min(x),
        any(x > 0),
        all(x > 0),
        len(x),
        abs(x),
        round(x[0]),
        int(x[1]),
        float(x[2]),
        bool(x[0] > 0),
        divmod(x[0], 2.0),
        sorted([1, 3, 2]),
    )


@cases.add((3.0, 1.0, 2.0), (1.0, 2.0, 3.0), (2.0, 2.0, 1.0))
def sorted_traced(a, b, c):
    return sorted([a, b, c])


@cases.add((3.0, 1.0, 2.0), (1.0, 2.0, 3.0), (2.0, 2.0, 1.0))
def sorted_traced_reverse(a, b, c):
    s = sorted((a, b, c), reverse=True)
    lo, *rest = s
    return lo, rest


@cases.add((X,), (Y,))
def sorted_of_array(x):
    s = sorted(x)
    return s[0], s[-1], len(s)


@cases.add((3.0, -5.0, 2.0), (1.0, 2.0, -3.0))
def sorted_with_key(a, b, c):
    return sorted([a, b, c], key=abs)


@cases.add((3.0, -5.0), (1.0, 2.0), (2.0, -2.0))
def max_with_key(a, b):
    return max(a, b, key=abs), min([a, b], key=lambda v: v * v)


@cases.add(([], 1.0), ([2.0, 3.0], 1.0))
def max_default(items, a):
    return max(items, default=a), max([a, *items])


@cases.add((7, 2), (-7, 2), (7, -2), (7, 0))
def divmod_of_ints(a, b):
    q, r = divmod(a, b)
    return q, r, a // b, a % b


@cases.add((2, 3), (2, -1), (0, 0), (-2, 3), (0, -1), reruns=(1, 4))
def int_powers(a, n):
    return a**n


@cases.add((2.675, 2), (-0.5, 0), (1.5, 1))
def round_digits(a, n):
    return round(a, 2), round(a, 1), round(a)


@cases.add((3, 0), (-3, 1), (2**40, 5))
def int_bits(n, k):
    return n & 7, n | 8, n ^ 5, ~n, n >> k, n << 2, -n, +n, n.bit_length()


@cases.add((1,), (2,), (3,), (-1,))
def match_literals(n):
    match n:
        case 1:
            r = 10
        case 2 | 3:
            r = 20
        case _:
            r = 0
    return r


@cases.add((X, 1.0), (X, -1.0), (X, 0.0))
def match_guards(x, c):
    match c:
        case v if v > 0:
            return x + v
        case v if v < 0:
            return x - v
    return x


@cases.add(((1.0, 2.0),), ((1.0, 2.0, 3.0),), ((5.0,),))
def match_sequences(p):
    match p:
        case (a,):
            return a
        case (a, b):
            return a * b
        case (a, *rest):
            return a + sum(rest)


@cases.add(({"kind": "a", "v": 2.0},), ({"kind": "b", "v": 2.0, "w": 1.0},), ({"kind": "c"},))
def match_mappings(d):
    match d:
        case {"kind": "a", "v": v}:
            return v
        case {"kind": "b", "v": v, **rest} if v > 0:
            return v, sorted(rest)
        case _:
            return None


@cases.add(("add", 2.0, 3.0), ("mul", 2.0, 3.0), ("neg", 2.0, 3.0), reruns=(2,))
def match_strings(op, a, b):
    match op:
        case "add":
            return a + b
        case "mul":
            return a * b
        case other:
            raise NotImplementedError(other)


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@cases.add((1.0, 2.0), (0.0, 2.0), (1.0, 0.0))
def match_classes(a, b):
    match Point(a, b):
        case Point(x=0.0, y=v):
            return v
        case Point(u, 0.0):
            return -u
        case Point(u, v):
            return u * v


@cases.add((X, 1), (X, 2), (X, 0))
def walrus_in_test(x, n):
    if (m := n * 2) > 3:
        return x * m
    return m


@cases.add((X,), (Y,))
def walrus_in_while(x):
    k = 0
    while (v := x[k]) > 0 and k < 4:
        k += 1
    return k, v


@cases.add((X, 1.0), (X, -1.0))
def walrus_in_branch_expression(x, c):
    y = (t := x[0] * 2) if c > 0 else (t := 1.0)
    return y + t


@cases.add((X, 3), (X, -1))
def walrus_in_and(x, n):
    if n > 0 and (m := n - 1) > 1:
        return m
    return 0


@cases.add((3, 1.5), (0, -2.25))
def texts(n, a):
    if n < 1:
        raise ValueError(f"n={n!r}, a={a:.2f}, both {(n, a)}")
    return n


@cases.add((X, 2.0), (X, -2.0))
def percent_text(x, a):
    if a < 0:
        raise ValueError("a = %g is below %d" % (a, 0))
    return x


@cases.add((X, 2.0), (X, -2.0))
def format_text(x, a):
    if a < 0:
        raise ValueError("a = {} is below {:d}".format(a, 0))
    return x


@cases.add((X, 2.0), (X, -2.0))
def added_text(x, a):
    if a < 0:
        raise ValueError("a is " + str(a))
    return x


@cases.add((5,), (0,), (-3,))
def augmented_assignments(n):
    a = n
    a += 2
    a -= 1
    a *= 3
    a //= 2
    a %= 7
    a **= 2
    a <<= 1
    a >>= 1
    a |= 8
    a &= 29
    a ^= 3
    b = a
    b /= 4
    return a, b


@cases.add((X, I), (Y, I))
def unpacking(x, i):
    a, *b, c = x
    (d, e), f = (i[0], i[1]), i[2]
    first, *_ = b
    return a + c, len(b), d + e + f, first, [*x[:2], *i[:1]]


@cases.add((np.arange(6.0).reshape(2, 3),))
def unpack_rows(m):
    a, b = m
    (p, q, r), s = m
    a[0] = 9.0
    return a + b, p, q, r, s, m.sum()


@cases.add((1.0, 2.0), (2.0, 1.0))
def swap(a, b):
    if a > b:
        a, b = b, a
    return a, b


@cases.add((X.copy(), Y.copy(), 1.0), (X.copy(), Y.copy(), -1.0))
def swap_arrays(x, y, c):
    if c > 0:
        x, y = y, x
    return x - y


@cases.add((X.copy(), Y.copy(), 1.0), (X.copy(), Y.copy(), -1.0))
def swap_then_write(x, y, c):
    if c > 0:
        x, y = y, x
    x[0] = 100.0
    return x - y


@cases.add((X, 1.0), (X, -1.0))
def dict_in_branch(x, c):
    d = {"a": x[0]}
    if c > 0:
        d["a"] = x[1]
    return d


@cases.add((X, 1.0), (X, -1.0))
def list_append_in_branch(x, c):
    out = [x[0]]
    if c > 0:
        out.append(c)
    return out


@cases.add((X, 1.0), (X, -1.0))
def new_dict_per_branch(x, c):
    if c > 0:
        r = {"a": x, "n": 1}
    else:
        r = {"a": -x, "n": 2}
    return r


@cases.add((X, 1.0), (X, -1.0))
def object_attribute_in_branch(x, c):
    p = Point(x, 0.0)
    if c > 0:
        p.y = c
    return p.x * p.y


@cases.add((X, 1.0), (X, -1.0))
def dtype_by_branch(x, c):
    y = x.astype(np.float32) if c > 0 else x
    return y + 1


@cases.add((X, 1.0), (X, -1.0))
def shape_by_branch(x, c):
    y = x[:3] if c > 0 else x
    return y.sum(), y.shape


@cases.add((X, 2), (X, 4), (X, 9))
def slice_by_traced_bound(x, n):
    y = x[:n]
    if len(y) > 3:
        return y.sum()
    return y * 2


@cases.add((X, 1.0), (-X, 1.0), (X * 0, 1.0))
def pass_and_ellipsis(x, c):
    if x[0] > 0:
        pass
    elif x[0] < 0:
        ...
    else:
        c = c + 1
    return c


@cases.add((5,), (11,), (3,))
def is_and_in(n):
    r = n in (3, 5, 7)
    s = n not in [11]
    return r, s, n is None, n is not None


@cases.add((X, 4.0), (X, 9.0))
def in_array(x, v):
    if v in x:
        return 1
    return 0


@cases.add((True, X), (False, X))
def bool_argument(flag, x):
    if flag:
        x = x + 1
    if not flag:
        x = x * 2
    return x, flag, not flag, flag + 1


@cases.add((None, X), (2.0, X), (X, X))
def none_argument(w, x):
    if w is None:
        w = 1.0
    return x * w


@cases.add((X,), (F,), (I,))
def isinstance_and_dtype(x):
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return x / 2
    return x // 2


@cases.add((X, 1.0), (X, -1.0), (X[:0], 1.0))
def guard_clauses(x, c):
    if len(x) == 0:
        return None
    if c < 0:
        return x * 0
    if x[0] > c:
        return x - c
    return x


@cases.add((X, 1), (X, 0))
def if_with_int_test(x, n):
    if n:
        return x
    if not x.any():
        return -x
    return x + 1


@cases.add((X, Y), (Y, X))
def whole_array_tests(x, y):
    if (x > y).any():
        x = np.maximum(x, y)
    if np.all(x >= y):
        x = x - y
    if np.allclose(x, y) or np.array_equal(x, y):
        x = x * 0
    return x


@cases.add((X, 1.0), (X, -1.0), reruns=(0, 1))
def ambiguous_truth(x, c):
    if x > c:
        return 1
    return 0


test_branches = cases.tests()
