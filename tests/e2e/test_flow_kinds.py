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


test_kinds = cases.tests()
