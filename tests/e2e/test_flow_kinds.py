"""Scalars whose precision depends on the path, where no call can turn back: in loops, behind writes to arguments.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

import math

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
F = (np.random.default_rng(0).standard_normal(17) * 100).astype(np.float32)
G = np.abs(np.random.default_rng(1).standard_normal(17)).astype(np.float32)
D = F.astype(np.float64)
H = G.astype(np.float16)
#: All turns one way, all turns the other way, both.
LIMITS = (1e9, -1e9, 0.0)


U = np.array([100, 2, 3], np.uint32)


@cases.add((U, 5), (U[1:], 5), (U[1:], 0), (U[:1], 5))
def a_number_that_only_an_inner_loop_makes_numpys(x, n):
    """Python's 0 takes the dtype of what is added; NumPy's does not."""
    s = 0
    for r in x:
        turns = 0
        while turns < n and not np.any(x > 50):
            s = np.multiply.reduce(s)
            turns += 1
        s = s + r
    return s


#: How many elements of each row are added: none, those of the last row but none of the first, and so on.
COUNTS = tuple(np.array(k) for k in ([0, 0, 0], [0, 0, 3], [0, 2, 0], [2, 0, 0], [1, 2, 3]))
ROWS = tuple((F[:9].reshape(3, 3).astype(t), k) for t in (np.float64, np.float32, np.float16, np.int64) for k in COUNTS)


@cases.add(*ROWS)
def a_sum_of_counted_rows(x, k):
    s = 0.0
    for i in range(len(x)):
        for j in range(k[i]):
            s += x[i, j]
    return s, s * 2, s + 1, np.sqrt(abs(s))


@cases.add(*ROWS)
def a_sum_of_the_last_row(x, k):
    """What the turn before left is forgotten."""
    for i in range(len(x)):
        s = 0
        for j in range(k[i]):
            s = s + x[i, j]
    return s


@cases.add(*ROWS)
def a_number_beside_the_sum_of_rows(x, k):
    s, p = 0, 1
    for i in range(len(x)):
        if k[i] != 2:
            for j in range(k[i]):
                if x[i, j] > 0:
                    s = s + x[i, j]
                    p = p * 2
        s = s * 0.5
    return s, p


@cases.add(*ROWS)
def three_loops(x, k):
    s = 0.0
    for h in range(k[2]):
        for i in range(len(x)):
            for j in range(k[i]):
                s += x[i, j] * h
    return s


@cases.add(*ROWS)
def whiles_in_one_another(x, k):
    s = t = 0
    i = 0
    while i < len(x):
        j = 0
        while j < k[i] and x[i, j] < 50:
            s = s + x[i, j]
            j += 1
        for h in range(j, k[i]):
            t += x[i, h]
        i += 1
    return s, t


@cases.add(*ROWS)
def the_largest_of_rows(x, k):
    best, at = 0.0, -1
    for i in range(len(x)):
        for j in range(k[i]):
            if x[i, j] > best:
                best, at = x[i, j], i
    return best, at


def _total(row, k):
    t = 0
    for j in range(k):
        t = t + row[j]
    return t


@cases.add(*ROWS)
def a_sum_by_a_function(x, k):
    s = v = 0
    for i in range(len(x)):
        v = _total(x[i], k[i])
        s = s + v
    return s, v


@cases.add(
    *((np.ones(shape, t),) for t in (np.float64, np.float32) for shape in ((5, 5), (5, 0), (0, 5), (1, 1), (2, 3)))
)
def rows_without_elements(x):
    """The inner range has a turn or not as the argument's sizes say: the trace of the one is none for the other."""
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j]
    return s


@cases.add(*((np.ones((n, n), t),) for t in (np.float64, np.float32) for n in (6, 3, 2, 1, 0)))
def below_the_diagonal(x):
    s = t = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            s += x[i, j]
            for h in range(j):
                t += x[h, j]
    return s, t


@cases.add(*((F, G, c) for c in LIMITS), (D, G, 0.0), (F, H, 0.0))
def function(y, b, c):
    for j in range(len(y)):
        y[j] -= np.sqrt(abs(b[j] if y[j] < c else 0.5))


@cases.add(*((F, G, c) for c in LIMITS), (F, H, 0.0))
def operator(y, b, c):
    for j in range(len(y)):
        y[j] = y[j] - (b[j] if y[j] < c else 0.3)


@cases.add(*((F, G, c) for c in LIMITS))
def results_of_two_functions(y, b, c):
    for j in range(len(y)):
        if y[j] < c:
            r = np.sqrt(b[j])
        else:
            r = np.sqrt(0.3)
        y[j] = y[j] * r
        y -= r


@cases.add(*((F, G, c) for c in LIMITS))
def chain(y, b, c):
    for j in range(len(y)):
        r = b[j] if y[j] < c else 0.3
        y[j] = -r + abs(r) * max(r, 0.1) + r.real


@cases.add(*((F, G, c) for c in LIMITS))
def behind_a_write(y, b, c):
    y[0] = 3
    r = np.sqrt(b[0]) if y[1] < c else np.sqrt(0.3)
    return y[2] * r, np.sqrt(r), r + r, r * 2, (y * r).sum(dtype=np.float64)


@cases.add(*((F, G, c) for c in LIMITS))
def in_place(y, b, c):
    for j in range(len(y)):
        t = b[j] if y[j] < c else 0.1
        y[j:] += t
        y *= t


@cases.add(*((F, G, c) for c in LIMITS))
def carried(y, b, c):
    t = 0.1
    for j in range(len(y)):
        if y[j] < c:
            t = b[j]
        y[j] -= math.sqrt(t) * t**2
    return t


@cases.add(*((F, G, c) for c in LIMITS))
def conversions(y, b, c):
    for j in range(len(y)):
        y[j] -= np.float32(b[j] if y[j] < c else 0.1) + float(b[j] if y[j] < c else 0.1)


@cases.add(*((F, G, c) for c in LIMITS))
def beside_another_scalar(y, b, c):
    for j in range(len(y)):
        t = np.sqrt(b[j] if y[j] < c else 0.1)
        k = np.minimum(t, y[j])
        if t > y[j]:
            y[j] = k + np.sqrt(t) * np.hypot(t, b[j])


@cases.add(*((F, G, c) for c in LIMITS))
def in_lists(y, b, c):
    y[0] = 1
    items = [b[0] if y[1] < c else 0.1, b[1] if y[2] < c else 0.2]
    return sum(items), max(items), min(items), [v * 2 for v in items], items[0] * items[1]


X = np.array([0.2, 0.8, 0.1, 0.9, 0.3])
#: One type throughout, the other, both.
GIVEN = ((X,), (X[1::2].copy(),), (X[::2].copy(),), (X[::-1].copy(),))


@cases.add(*GIVEN)
def builtins_of_an_int_or_a_float(x):
    found = None
    for i in range(len(x)):
        v = x[i] if x[i] > 0.5 else i + 1
        found = sum([v, 1]), abs(v), round(v, 1), divmod(7, v), pow(v, 2), max(v, 1), min([v, 9]), int(v), float(v)
    return found


@cases.add(*GIVEN)
def builtins_of_a_bool_or_an_int(x):
    found = None
    for i in range(len(x)):
        v = i if x[i] > 0.5 else x[i] > 0.15
        w = i if x[i] > 0.5 else bool(x[i] > 0.15)
        found = sum((v, v)), w * w, +w, -w, int(w), w.real, x[:w].sum(), x[w:].sum()
    return found


@cases.add(*GIVEN)
def precisions_in_sums(x):
    found = None
    for i in range(len(x)):
        v = x[i] if x[i] > 0.5 else np.int8(i + 100)
        found = (
            sum((1, v), 100),
            sum(y for y in [v, v]),
            np.add.reduce(v),
            np.sum([v, 1]),
            np.full(2, v),
            np.maximum(v, 1),
        )
    return found


@cases.add(*GIVEN)
def classes_and_attributes(x):
    found, count = None, 0
    for i in range(len(x)):
        v = x[i] if x[i] > 0.5 else i
        match v:
            case int():
                count += 1
            case np.float64():
                count += 10
        if type(v) is int:
            count += 100
        found = type(v), v.__class__, hasattr(v, "shape"), getattr(v, "ndim", 7), isinstance(v, float), 0 < v < 2
    return found, count


@cases.add(*GIVEN)
def a_method_that_one_of_the_types_has(x):
    total = 0
    for i in range(len(x)):
        v = x[i] if x[i] > 0.5 else i
        total += v.sum()
    return total


@cases.add(*((np.array(x, float),) for x in ([0, 0, 0], [0, 2, 0], [2, 0, 0], [1, 2, 1], [])))
def bound_by_inner_turns_only(x):
    v, w, u = 1, 0, True
    for i in range(len(x)):
        for j in range(int(x[i])):
            v = np.fmod(j, 1e3, dtype=np.float64)
            u = x[j] > 1
        k = 0
        while k < x[i]:
            k += 1
            w = 1.5
    return v, w, u


@cases.add(*GIVEN)
def complex_numbers_before_numpys(x):
    z = complex(x[0], 1)
    return 1j * x[0], x[0] * 1j, 1j + x[0], 1j - x[0], 1j / x[0], z * x[1], z ** x[1], z == x[1], 1j * np.float32(x[0])


@cases.add((X[:2].copy(),), (X[1:3].copy(),))
def the_truth_of_a_view(x):
    n = 0
    for i in range(len(x)):
        if x[1:]:
            n += i
    return n, bool(x[1:]), not x[1:], range(len(x)), range(int(x[0] * 9), len(x), 2)


@cases.add(*GIVEN)
def floats_in_place_of_numpys(x):
    u = w = x[0]
    v, k, f = x[0], 1.5, 0.0
    for i in range(len(x)):
        u **= u
        u = float(x[i])
        w = any([w, i])
        w = i
        f = float(k)
        k = np.float32(x[i])
        v = v if v is None else i / 2
    return u, v, w, f, k


test_kinds = cases.tests()
