"""What functions return from within loops and behind writes, in whichever types; names that are one array in some turns.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([0.3, -0.2, 0.9, 1.7, -1.4, 0.1, 2.5, -3.0, 0.4, 0.6])
LOW = np.array([0.3, -0.2, -1.9, 1.7, -1.4, 0.1, 2.5, -3.0, 0.4, 0.6])
SMALL = np.full(10, 0.25)
Y = np.array([0.5, -0.25, 2.0, 1.0, -1.0, 0.75, 0.125, 3.0, -2.0, 1.5])


# --- one of several types


@cases.add((X,), (-X,), (SMALL,))
def a_number_or_an_array_behind_a_write(x):
    x[0] = 7
    if x[1] > 0:
        return x.sum()
    return x


@cases.add((X,), (-X,), (SMALL,))
def none_or_an_index_behind_a_write(x):
    x += 0.5
    for i in range(len(x)):
        if x[i] > 2:
            return i
    return None


@cases.add((X,), (LOW,), (SMALL,))
def tuple_or_array_or_none_in_a_loop(x):
    for i in range(len(x)):
        x[i] *= 1
        if x[i] > 1:
            return i, x
        if x[i] < -1:
            return x * 2
    return None


@cases.add((X,), (LOW,), (SMALL,))
def five_ways_out_of_nested_loops(x):
    x[0] = 0.5
    for i in range(len(x)):
        for j in range(len(x)):
            if x[i] * x[j] < -2:
                return i, j
            if x[i] + x[j] > 3:
                return "high"
        if x[i] > 1:
            return x[i : i + 1]
        if x[i] < -1:
            return [x, {"at": i}]
    return {"a": x, "b": 3}


@cases.add((X, 10), (LOW, 10), (SMALL, 10), (SMALL, 2))
def returns_of_a_while(x, n):
    x[0] = x[0]
    if x[1] > 1:
        return [1, x]
    if x[1] > 0.2:
        return [2.5, x]
    i = 0
    while x[i] < 1:
        if x[i] < -1:
            return "low"
        i += 1
        if i >= n - 1:
            return False
    return x[1:]


@cases.add((X,), (LOW,), (SMALL,))
def types_of_two_loops(x):
    s = 0.0
    for i in range(len(x)):
        x[i] += 0.0
        s += x[i]
        if s > 2:
            return s
    for i in range(len(x)):
        if x[i] * s < -1:
            return x, x
    return x, x * 1


@cases.add((X,), (LOW,), (SMALL,))
def kinds_and_dtypes(x):
    x[0] = 1
    for i in range(len(x)):
        if x[i] > 1:
            return np.float32(x[i])
        if x[i] < -1:
            return x.astype("float32")
    return 1.5


@cases.add((X,), (LOW,), (SMALL,))
def a_view_or_something_new(x):
    y = x * 2
    x[0] = 0
    if x[3] > 1:
        return y[::-1], y
    if x[2] < -1:
        return y[2:4]
    return y.reshape(2, 5), x


def found(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return x
        if x[i] < -limit:
            return x * 2
    return x + 1


@cases.add((X, 1.0), (LOW, 1.0), (SMALL, 1.0))
def a_helper_returns_its_argument_or_a_new_array(x, limit):
    y = x + 0
    z = found(y, limit)
    return z, y * 1


# --- one array, several names


@cases.add((X, Y), (LOW, Y))
def two_names_of_one_array_and_a_return(x, y):
    k = x * 2
    t = k
    for i in range(len(x)):
        for j in range(1, len(x)):
            t[i] = y[j]
            m = 0
            while m < 3:
                if y @ x > t[i]:
                    k, t = t, k
                    return k
                m += 1
    return k


@cases.add((X, Y), (LOW, Y))
def names_change_places_in_a_while_that_returns(x, y):
    k = x * 2
    t = k
    m = 0
    while m < 3:
        t[m] = y[m]
        if y[m] > 1:
            k, t = t, k
            return k
        m += 1
    return k


@cases.add((X, Y))
def one_array_in_the_first_turn_only(x, y):
    k = x * 2
    t = k
    for i in range(len(x)):
        t[0] += y[i]
        s = k[0]
        k, t = t + s, k
    return k, t


@cases.add((X, Y))
def a_view_in_the_first_turn_only(x, y):
    k = x * 2
    r = k[1:]
    for i in range(len(x)):
        k[1] = y[i]
        s = r[0]
        k = k + 1
        r = r * s
    return k, r


@cases.add((X, Y))
def bound_anew_in_some_turns_and_written_by_another_name(x, y):
    k = x * 2
    t = k
    for i in range(len(x)):
        if y[i] > 0:
            k = k * 2
        t[0] = y[i]
    return k, t


# --- errors and writes


@cases.add((np.array(1.5), X, 3), (np.array(1.5), X, 20))
def an_array_without_axes_in_a_loop_that_raises(a, x, n):
    for i in range(n):
        a += 1
        x[i]


@cases.add((np.array(1.5), X, 3), (np.array(1.5), X, 20))
def an_array_without_axes_in_a_while_that_raises(a, x, n):
    i = 0
    while i < n and x[0] < 100:
        a[...] = a * 2 - 1
        np.put(a, [0], a + i)
        i += 1
        x[i]
    return a


@cases.add((np.array(180, "u1"), X, 3), (np.array(180, "u1"), X, 20))
def a_mask_of_an_array_without_axes_in_loops_that_raise(a, x, n):
    for i in range(n):
        for j in range(2):
            a[a > 7] |= (a >> 2) + j
            if i > 5:
                raise ValueError("no")
        x[i]
    return a + 1


@cases.add(
    (np.array([64, 64], "u4"), 1, np.array([1, 64], "u8")),
    (np.array([64, 64], "u4"), -1, np.array([1, 64], "u8")),
    reruns=(1,),
)
def put_before_a_number_that_does_not_fit(a, k, b):
    np.put(b, np.array([1, 0]), np.fmin(a, b), mode="wrap")
    return np.clip(a, k, 3)


@cases.add((X, np.ones((10, 10))), (X[:0], np.ones((0, 0))), (X[:3], np.ones((3, 3))))
def a_remainder_by_a_size_of_zero(x, c):
    n = len(x)
    s = 0.0
    for i in range(n):
        s += c[(i + 1) % n, i]
    return s


@cases.add((X, Y))
def a_product_with_a_name_that_may_be_stale(x, y):
    k = y.copy()
    t = k
    if y[0] < -1:
        t = np.ones(len(x))
    for i in range(1, len(x)):
        k[i] -= k @ y
    return t @ y


test_returns = cases.tests()
