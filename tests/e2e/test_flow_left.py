"""Programs that only Python can run: keys, texts and lists that depend on data. Their calls are made in Python, and told.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B905, DTZ001, ICN001, UP031

import datetime
import json
import struct
import warnings
from collections import Counter, deque

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])
Y = np.array([2.0, 7.0, -1.0])
I = np.array([3, 1, 4, 1, 5])
S = np.array([[2.0, 1.0], [1.0, 3.0]])
A = np.diag([2, 1, 1, 3, 5, 2, 4, 1], 1) + np.diag([2, 1, 1, 3, 5, 2, 4, 1], -1)


# --- left to Python


@cases.add((I,), (I[:3],), reruns=(0, 1))
def a_set_of_integers(a):
    found = set()
    for v in a:
        found.add(int(v))
    return sorted(found), 3 in found


@cases.add((I,), (I[:3],), reruns=(0, 1))
def counts_of_a_list(a):
    return Counter(a.tolist()).most_common(1)


@cases.add((X,), (Y,), reruns=(0, 1))
def a_report(x):
    return f"mean={x.mean():.2f} n={len(x)}", "%.3f" % x.max()


@cases.add((X,), (Y,), reruns=(0, 1))
def functions_of_the_library(x):
    text = json.dumps({"first": float(x[0]), "all": x.tolist()})
    return text, struct.pack("d", x[0]), datetime.timedelta(seconds=float(x[1])), slice(int(x[0]), 9)


@cases.add((X, datetime.date(2021, 3, 4)), (Y, datetime.datetime(2022, 1, 1, 5)))
def dates(x, day):
    later = day + datetime.timedelta(days=2)
    return x * later.day, later.isoformat(), (later - day).total_seconds(), day.strftime("%Y") + str(day.weekday())


@cases.add((X,), (Y,), reruns=(0, 1))
def places_in_a_list(x):
    (at,) = np.where(x > 0)
    return list(zip(at, x[at]))


@cases.add((X,), (Y,), reruns=(0, 1))
def builtins_that_test(x):
    kept = list(filter(lambda v: v > 0, x))
    kept.insert(0, 9.0)
    kept.remove(9.0)
    return kept, sorted(map(tuple, x[:2, None]))


@cases.add((np.array([1, 1, 2, 2, 2, 3], np.uint8),), (np.array([7], np.uint8),), reruns=(0, 1))
def runs_of_bytes(b):
    out = []
    i = 0
    while i < len(b):
        j = i
        while j < len(b) and b[j] == b[i]:
            j += 1
        out.append((b[i], j - i))
        i = j
    return out, b.tobytes()


@cases.add((X, 100), (Y, 70), reruns=(0, 1))
def grows_in_a_long_loop(x, n):
    out = np.empty(0)
    for i in range(n):
        out = np.append(out, x[i % 3] + i)
    return out


@cases.add((A, 0), (A > 0, 1), reruns=(0, 1))
def breadth_first(a, start):
    seen, queue, order = {start}, deque([start]), []
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in range(len(a)):
            if a[u, v] and v not in seen:
                seen.add(v)
                queue.append(v)
    return order


@cases.add((4,), (5,), reruns=(0, 1))
def queens(n):
    """The ways of the recursion are too many to trace: given up soon, not at its end."""
    count = 0
    columns, up, down = np.zeros(n, bool), np.zeros(2 * n, bool), np.zeros(2 * n, bool)

    def place(r):
        nonlocal count
        if r == n:
            count += 1
            return
        for c in range(n):
            if columns[c] or up[r + c] or down[r - c + n]:
                continue
            columns[c] = up[r + c] = down[r - c + n] = True
            place(r + 1)
            columns[c] = up[r + c] = down[r - c + n] = False

    place(0)
    return count


@cases.add((4,), (6,))
def draws_with_weights_of_a_number(n):
    rng = np.random.default_rng(n)
    return rng.choice(n, p=np.full(n, 1 / n))


class Weight:
    def __init__(self, w):
        self.w = w

    def __rmul__(self, x):
        return self.w * x


@cases.add((X, 2.0), (Y, 3.0), reruns=(0, 1))
def an_array_of_objects(x, w):
    return (x * Weight(w)).dtype.kind, x[0] * Weight(w)


# --- compiled


@cases.add((I,), (X,), (I[:3].astype(np.uint8),))
def quartiles(a):
    return np.percentile(a, [25, 50, 75]), np.quantile(a, [0, 1]), np.percentile(a, 50, method="lower")


@cases.add((X, Y), (np.arange(9.0), X))
def products_that_overlap_wholly(a, v):
    return np.correlate(a, v, "valid"), np.convolve(a, v, mode="valid")


@cases.add((X,), (Y,))
def draws_with_weights(w):
    rng = np.random.default_rng(len(w))
    w = np.abs(w)
    return rng.choice(len(w), p=w / w.sum()), rng.choice(w, 2, replace=False)


@cases.add((5,), (9,))
def draws_without_replacement(n):
    rng = np.random.default_rng(n)
    return rng.choice(n, 3, replace=False)


@cases.add((X, 3), (np.arange(9.0), 5), (X, 0))
def shrinks_by_a_count(v, n):
    for i in range(n - 1, -1, -1):
        v = 0.5 * (v[:-1] + v[1:]) + i
    return v


# --- errors of sizes that are handled: the other sizes are another trace


@cases.add((X[:4].reshape(1, 4),), (S,), (X[:4].reshape(2, 2),), (np.ones((3, 2)),))
def inverse_or_none(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None


@cases.add((S, X[:2]), (S, Y), (S, X[1:3]), (S, X[1:4]), (np.eye(3), Y))
def solution_or_text(a, b):
    try:
        return np.linalg.solve(a, b)
    except ValueError:
        return "sizes"


@cases.add((X, Y), (X, X), (Y, X), (X[:2], Y), reruns=(0, 2, 3))
def sum_or_what_numpy_says(x, y):
    try:
        return x + y
    except ValueError as error:
        return type(error).__name__, str(error)


@cases.add((S, 2), (S, 1), (np.ones((3, 3)), -3), reruns=(0, 2))
def sum_or_axis(x, axis):
    try:
        return x.sum(axis=axis)
    except np.exceptions.AxisError as error:
        return error.axis, error.ndim


@cases.add((X, Y), (X, X))
def sum_or_difference(x, y):
    try:
        return x + y
    except ValueError as _:
        return x[:2] - y[:2]


test_left = cases.tests()


def test_a_call_that_is_left_to_python_says_so_once() -> None:
    def f(x):
        return f"{x.sum()}"

    jitted = jg.jit(f)
    with pytest.warns(UserWarning, match="f runs in plain Python: the text of a traced") as seen:
        assert jitted(X) == f(X)
    assert [w.filename for w in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jitted(Y) == f(Y)
    with pytest.raises(jg.errors.LeftToPython, match="the text of a traced"):
        jitted.lower(X)


def test_other_dtypes_are_compiled_all_the_same() -> None:
    @jg.jit
    def f(x):
        return {int(x[0]): x} if x.dtype == np.int64 else x * 2

    with pytest.warns(UserWarning, match="runs in plain Python"):
        assert list(f(I)) == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(f(X), X * 2)
