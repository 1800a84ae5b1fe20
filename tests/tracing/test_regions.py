"""Branches and loops on traced values."""

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from tests.tracing.harness import Jit, check

rng = np.random.default_rng(0)
X = rng.standard_normal((6, 5))
V, W = rng.standard_normal(7), rng.standard_normal(7)


def vec(n, seed=1):
    return np.random.default_rng(seed).standard_normal(n)


def ops(f, *args):
    return [op.name for op in f.trace(*args).graph.walk()]


# --- branches


def test_clipped_step():
    def step(x, g, limit):
        n = np.sqrt(np.sum(g * g))
        if n > limit:
            g = g * (limit / n)
        return x - g

    f = check(step, (V, W, 1.0), (V, W, 1e9), (vec(3), vec(3), 0.1))
    assert "cond" in ops(f, V, W, 1.0)


def test_both_branches_assign():
    def f(x, s):
        if s > 0:
            y = x * s
        elif s < -1:
            y = x - s
        else:
            y = x
        return y + 1

    check(f, (V, 1.0), (V, -2.0), (V, -0.5), (vec(3), 0.0))


def test_early_return():
    def f(x, s):
        if s > 0:
            return x.sum()
        z = x * s
        return z.sum() + s

    check(f, (V, 1.0), (V, -1.0))


def test_write_in_a_branch():
    def f(x, s):
        if s > 0:
            x[0] = s
        else:
            x[1:] *= 2
        return x.sum()

    check(f, (V, 1.0), (V, -1.0))


def test_a_branch_that_raises():
    def f(x, s):
        if s < 0:
            raise ValueError("s must not be negative")
        return x * s

    f_ = check(f, (V, 1.0), (V, 2.0))
    with pytest.raises(ValueError, match="s must not be negative"):
        f_(V, -1.0)
    assert f_.count == 1

    def g(x, s):
        if s >= 0:
            y = np.sqrt(s) * x
        else:
            raise ValueError("bad {s}")
        return y

    g_ = check(g, (V, 1.0), (V, 2.0))
    with pytest.raises(ValueError, match=r"bad \{s\}"):
        g_(V, -1.0)


def test_boolean_operators_ternaries_and_chains():
    def f(a, b, x):
        if a > 0 and b > 0:
            x = x + 1
        if a > 1 or not b > 1:
            x = x * 2
        if 0 < a <= b < 3:
            x = x - 1
        return x * (a if a > b else b)

    check(f, *[(a, b, V) for a in (-1.0, 0.5, 2.0) for b in (-1.0, 0.5, 2.0, 5.0)])


def test_and_does_not_evaluate_its_right_side():
    def f(n, d):
        if d != 0 and n // d > 2:
            return 1
        return 0

    check(f, (7, 2), (7, 0), (2, 2))


def test_branches_that_merge_kinds():
    def f(x, c):
        s = -1.0
        if c > 0:
            s = x[0] * 2
        return s * x

    check(f, (V, 1.0), (V, -1.0))


def test_one_side_is_assumed_where_shapes_differ():
    def f(x, c):
        if c > 0:
            y = x
        else:
            y = x[:2]
        return y + 1

    check(f, (V, 1.0), (V, -1.0))


def test_branches_of_different_shape_in_a_loop():
    def g(x, c):
        for k in range(len(x)):
            if c > k:
                y = x
            else:
                y = x[:2]
            x[0] += (y + 1).sum()
        return x

    check(g, (np.ones(80), 1.0), (np.ones(80), 40.0))  # too many turns to be traced one by one


def test_branches_of_different_shape_fail_where_a_loop_goes_over_one():
    def g(x, c):
        for k in range(len(x)):
            if c > k:
                y = x
            else:
                y = np.ones((2, 2))
            for row in y:
                x[0] += row.sum()
        return x

    with pytest.raises(errors.TraceError, match="y is f64"):
        Jit(g)(np.ones(80), 1.0)


def test_dead_names_may_differ():
    def f(x, c):
        if c > 0:
            t = x * 2
            y = t.sum()
        else:
            t = "no"
            y = x.sum()
        return y

    check(f, (V, 1.0), (V, -1.0))


def test_tests_on_sizes_are_ordinary_python():
    def f(x):
        if x.shape[0] > 4:
            return x[:4]
        return x

    f_ = check(f, (V,), (vec(9),), (vec(3),), traces=2)
    assert "cond" not in ops(f_, V)


def test_containers_merge_leaf_by_leaf():
    def f(x, c):
        if c > 0:
            p = (x.sum(), {"a": 1})
        else:
            p = (x.max(), {"a": 2})
        return p[0] * p[1]["a"]

    check(f, (V, 1.0), (V, -1.0))


def test_assert():
    from tests.tracing.programs import checked

    f = check(checked, (V, 1.0))
    with pytest.raises(AssertionError, match="s is not positive"):
        f(V, -1.0)


def test_helper_with_a_branch():
    def relu_like(x, c):
        if c > 0:
            return x * c
        return -x

    def f(x, c):
        return relu_like(x, c) + relu_like(x, -c)

    check(f, (V, 1.0), (V, -1.0))


def test_nested_branches():
    def f(x, a, b):
        if a > 0:
            if b > 0:
                y = 1.0
            else:
                y = 2.0
            x = x * y
        else:
            y = 3.0
        return x + y

    check(f, (V, 1.0, 1.0), (V, 1.0, -1.0), (V, -1.0, 1.0))


# --- for


def test_sum_in_a_loop():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s = s + x[i]
        return s

    f_ = check(f, (V, 7), (vec(20), 20), (vec(20), 3))
    assert "for" in ops(f_, V, 7)
    check(f, (V, 0), deoptimised=1)


def test_int_becomes_float_in_the_first_turn():
    def f(x):
        s = 0
        for i in range(x.shape[0]):
            s += x[i] * i
        return s

    check(f, (V,), (vec(20),))


def test_loop_writes_to_an_argument():
    def f(x, n):
        for i in range(n):
            x[i] = i * 2.0
        return x

    check(f, (V, 7), (vec(20), 5), (vec(4), 0))


def test_jacobi():
    def jacobi(a, b, steps):
        for _ in range(steps):
            b[1:-1] = 0.25 * (a[:-2] + 2 * a[1:-1] + a[2:])
            a[1:-1] = 0.25 * (b[:-2] + 2 * b[1:-1] + b[2:])

    f = check(jacobi, (V, W, 20), (vec(30), vec(30, 2), 3), (vec(4), vec(4, 2), 0))
    found = ops(f, V, W, 20)
    assert found.count("for") == 1
    assert found.count("write") == 2


def test_rebound_arrays():
    def f(x, n):
        u = x
        for _ in range(n):
            u = 0.5 * (u + np.roll(u, 1)) if False else u * 0.5 + 1
        return u

    check(f, (V, 5), (vec(3), 1))
    check(f, (V, 0), deoptimised=1)


def test_swapped_local_arrays():
    def f(x, n):
        u, v = x.copy(), np.zeros_like(x)
        for _ in range(n):
            v[1:-1] = 0.5 * (u[:-2] + u[2:])
            u, v = v, u
        return u

    check(f, (V, 5), (vec(9), 4))


def test_index_in_a_slice():
    def f(x):
        n = x.shape[0]
        for i in range(n):
            x[i, 0] = x[i, :i].sum()
        return x

    check(f, (rng.standard_normal((9, 9)),), (rng.standard_normal((5, 5)),))


@pytest.mark.parametrize(
    "bounds",
    [lambda n: (1, n), lambda n: (n - 1, -1, -1), lambda n: (0, n, 2), lambda n: (n, 0, -3), lambda n: (2, n - 1, 3)],
)
def test_ranges(bounds):
    def f(x):
        n = x.shape[0]
        total = 0.0
        for i in range(*bounds(n)):
            total = total * 0.5 + (x[i - 1] if i > 0 else x[i])
        return total

    check(f, (V,), (vec(20),), (vec(13),))


def test_nested_loops():
    def f(x):
        n, m = x.shape
        out = np.zeros((n, m))
        for i in range(n):
            acc = 0.0
            for j in range(m):
                acc += x[i, j] * j
                out[i, j] = acc
        return out

    check(f, (X,), (rng.standard_normal((12, 9)),))


def test_triangular_loops():
    def forward(a, b):
        n = a.shape[0]
        x = np.zeros_like(b)
        for i in range(n):
            s = b[i]
            for j in range(i):
                s -= a[i, j] * x[j]
            x[i] = s / a[i, i]
        return x

    def system(n):
        return np.tril(rng.standard_normal((n, n))) + 3 * np.eye(n), rng.standard_normal(n)

    check(forward, system(9), system(4))


def test_loop_over_an_array_zip_and_enumerate():
    def f(x, y):
        s = 0.0
        for k, (a, b) in enumerate(zip(x, y, strict=True)):
            s += a * b * k
        for row in x:
            s += row
        return s

    check(f, (vec(12), vec(12, 2)), (vec(20), vec(20, 2)))


def test_short_loops_are_unrolled():
    def f(x):
        for k in range(3):
            x = x * k + 1
        return x

    assert "for" not in ops(check(f, (V,)), V)


def test_values_of_the_last_turn():
    def f(x, n):
        for i in range(n):
            last = x[i] * 2
        return last, i

    check(f, (V, 5), (V, 1))


def test_first_turn_changes_the_shape():
    def f(x, n):
        acc = 0.0
        for i in range(n):
            acc = acc + x * i
        return acc

    check(f, (V, 5), (vec(3), 9))


def test_branch_in_a_loop():
    def f(x):
        low, high = 0, 0
        for i in range(x.shape[0]):
            if x[i] < 0:
                low += 1
            else:
                high += 1
        return low, high

    check(f, (V,), (vec(30),))


def test_break_continue_and_else():
    def f(x, limit):
        total = 0.0
        for i in range(x.shape[0]):
            if x[i] < 0:
                continue
            total += x[i]
            if total > limit:
                break
        else:
            total = -total
        return total

    check(f, (V, 1.0), (V, 1e9), (vec(40), 2.0))


def test_return_from_a_loop():
    def f(x, y):
        for i in range(x.shape[0]):
            if x[i] > y:
                return i
        return -1

    check(f, (np.arange(9.0), 3.5), (np.arange(12.0), 100.0), (np.arange(12.0), -1.0))


def test_tuple_carried_by_a_loop():
    def f(n):
        state = (0, 1)
        for _ in range(n):
            state = (state[1], state[0] + state[1])
        return state[0]

    check(f, (10,), (0,), (40,))


def test_index_error_in_a_loop_is_a_check():
    def f(x, n):
        for i in range(n):
            x[i] = i * 2.0
        return x

    f_ = Jit(f)
    f_(np.zeros(9), 9)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        f_(np.zeros(5), 7)


def test_raise_in_a_loop():
    def f(x):
        for i in range(x.shape[0]):
            if x[i] == 0:
                raise ZeroDivisionError("a zero")
            x[i] = 1 / x[i]

    f_ = check(f, (V,), (vec(20),))
    with pytest.raises(ZeroDivisionError, match="a zero"):
        f_(np.arange(9.0))


# --- while


def test_newton():
    def newton(x, a):
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    f = check(newton, (3.0, 2.0), (1.0, 9.0))
    assert "while" in ops(f, 3.0, 2.0)


def test_while_on_arrays():
    def f(x):
        n = 0
        while np.sqrt((x * x).sum()) > 1.0:
            x = x * 0.5
            n += 1
        return x, n

    check(f, (V * 10,), (vec(3) * 100,))


def test_while_with_a_size():
    def f(x):
        i, s = 0, 0.0
        while i < x.shape[0]:
            s += x[i]
            i += 2
        return s

    f_ = check(f, (vec(20),), (vec(31),))
    assert "while" in ops(f_, vec(20))


def test_while_that_changes_shapes_is_unrolled_under_guards():
    def f(x):
        while len(x) > 1:
            x = x[: len(x) // 2] + x[len(x) // 2 : len(x) // 2 * 2]
        return x

    check(f, (vec(8),), (vec(4),), traces=None)


def test_while_true_with_break():
    def f(x, tol):
        k = 0
        while True:
            y = np.cos(x)
            k += 1
            if np.max(np.abs(y - x)) < tol:
                break
            x = y
        return y, k

    check(f, (V, 1e-3), (vec(4), 1e-8))


def test_collatz():
    def f(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    check(f, (6,), (27,), (2,))


def test_gcd_and_bisection():
    def gcd(a, b):
        while b:
            a, b = b, a % b
        return a

    check(gcd, (12, 18), (17, 5))

    def bisect(lo, hi, target):
        for _ in range(60):
            mid = 0.5 * (lo + hi)
            if mid * mid < target:
                lo = mid
            else:
                hi = mid
        return lo

    check(bisect, (0.0, 2.0, 2.0), (0.0, 9.0, 7.0))


# --- what cannot be


def test_a_list_that_grows_in_a_loop():
    def f(x, n):
        out = []
        for i in range(n):
            out.append(x[i])
        return out

    check(f, (V, 3), (V, 7), (V, 0), traces=3)  # turns traced one by one
    with pytest.raises(errors.TraceError, match="the list out is changed under a test or in a loop"):
        Jit(f)(vec(100), 100)


def test_a_second_change_of_type():
    def f(x, n):
        s = x
        for _ in range(n):
            s = s[:, None] * 1.0
        return s

    check(f, (V, 3))  # turns traced one by one
    with pytest.raises(errors.TraceError, match="s changes its type in a loop"):
        Jit(f)(V, 100)


def test_an_array_has_no_truth():
    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(ValueError, match="ambiguous"):
        Jit(f)(V)


def test_swapped_argument_arrays():
    def f(u, v, n):
        for k in range(n):
            v[1:-1] = 0.5 * (u[:-2] + u[2:]) + k
            u, v = v, u
        return u.sum(), u * 1

    f_ = check(f, *[(V, W, n) for n in (0, 1, 2, 5, 8)], (vec(9), vec(9, 2), 3))
    found = ops(f_, V, W, 5)
    assert found.count("for") == 1
    assert found.count("copy") == 0

    def g(u, v, tol):
        error, steps = 1.0, 0
        for _ in range(u.shape[0]):
            v[1:-1] = 0.5 * (u[:-2] + u[2:])
            error = np.max(np.abs(u - v))
            u, v = v, u
            steps += 1
        return error, steps

    check(g, (vec(12), vec(12, 2), 1e-3), (vec(15), vec(15, 2), 1e-3))


def test_an_array_left_behind_by_a_loop():
    def f(x, n):
        u, v = x.copy(), np.zeros_like(x)
        first = u
        for _ in range(n):
            u[0] = u[0] + 1
            u, v = v, u * 2
        return u, first

    for n in (5, 4):  # turn by turn
        check(f, (V, n))
    with pytest.raises(errors.TraceError, match="an array that u stood for before a loop"):
        Jit(f)(V, 500)


def test_many_branches_in_a_row():
    source = (
        "def f(x, k):\n" + "".join(f"    if k == {i}:\n        return x * {i}\n" for i in range(30)) + "    return x\n"
    )
    import linecache

    linecache.cache["<branches>"] = (len(source), None, source.splitlines(keepends=True), "<branches>")
    space = {}
    exec(compile(source, "<branches>", "exec"), space)
    check(space["f"], (V, 3), (V, 29), (V, 99), traces=3, static_argnames=("k",))


def test_rebound_then_written():
    def f(x, n):
        u = x
        for _ in range(n):
            u = u * 2
        u[0] = 0
        return u

    check(f, (V, 5), (vec(3), 1))


def test_a_name_for_an_array_that_a_branch_writes():
    def f(x, c):
        if c > 0:
            x[0] = 10.0
            y = x
        else:
            y = x + 1
        return y * 1

    check(f, (V, 1.0), (V, -1.0))

    def g(x, n):
        y = x * 2
        for i in range(n):
            x[i] = 5.0
            y = x
        return y.sum()

    check(g, (V, 5), (vec(9), 1))


def test_a_name_bound_in_one_branch_only():
    def f(x, a, b):
        if a > 0:
            y = x * 2
        if b > 0:
            x = x + y
        return x

    f_ = check(f, (V, 1.0, 1.0), (V, -1.0, -1.0), (V, 1.0, -1.0), aliases=False)
    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        f_(V, -1.0, 1.0)

    def g(x, n):
        for i in range(n):
            if x[i] > 0:
                first = x[i]
                found = True
                break
        else:
            found = False
        if found:
            return first
        return x[0] * 0

    check(g, (V, 7), (-np.arange(1.0, 9), 8), (np.arange(9.0), 3))

    def h(x):
        k = 0
        while x > 1.0:
            last = x
            x = x / 2
            k += 1
        if k > 0:
            return last, k
        return x, k

    h_ = check(h, (9.0,), (0.5,))
    assert h_.count == 1


def test_the_message_of_an_error_shows_values():
    def f(x, n):
        if n > x.shape[0]:
            raise IndexError(f"{n} is more than {x.shape[0]} {{}} {x.sum():.2f}")
        for i in range(n):
            if x[i] < 0:
                raise ValueError(f"x[{i}] = {x[i]:.1f} is negative")
        return n

    f_ = Jit(f)
    assert f_(np.ones(9), 3) == 3
    with pytest.raises(IndexError, match=r"12 is more than 9 \{\} 9.00"):
        f_(np.ones(9), 12)
    x = np.ones(9)
    x[4] = -2.5
    with pytest.raises(ValueError, match=r"x\[4\] = -2.5 is negative"):
        f_(x, 9)
    assert f_.count == 1


def test_errors_that_the_user_handles_are_left_to_python():
    def f(x, i):
        try:
            return x[i]
        except IndexError:
            return 0.0

    f_ = Jit(f)
    assert f_(V, 3) == V[3]
    assert f_(V, 99) == 0.0
    assert f_.deoptimised == 0

    def g(x, s):
        try:
            if s < 0:
                raise ValueError("negative")  # noqa: TRY301
            x = x * s
        except ValueError:
            x = x * 0
        return x

    g_ = Jit(g)
    np.testing.assert_array_equal(g_(V, 2.0), V * 2)
    np.testing.assert_array_equal(g_(V, -2.0), V * 0)
    assert g_.count == 1

    def h(x, s):
        x[0] = 1.0
        try:
            if s < 0:
                raise ValueError("negative")  # noqa: TRY301
        except ValueError:
            x[1] = 2.0

    check(h, (V, 1.0), (V, -1.0))
    names = [op.name for op in Jit(h).trace(V.copy(), 1.0).graph.body.ops()]
    assert names.index("check") < names.index("write")  # the test is made in front of the write

    def k(x, s):
        x[0] = s
        try:
            if x.sum() < 0:
                raise ValueError("negative")  # noqa: TRY301
        except ValueError:
            x[1] = 2.0

    check(k, (V, 1.0), (V - 9, 1.0))


def test_a_branch_that_writes_and_raises():
    def f(x, s):
        if s < 0:
            x[0] = 0.0
            raise ValueError("late")
        return x * s

    jitted, x = jg.jit(f), V.copy()
    np.testing.assert_array_equal(jitted(x, 2.0), V * 2)
    with pytest.raises(ValueError, match="late"):
        jitted(x, -1.0)
    assert x[0] == 0.0

    def g(x):
        for k in range(len(x)):
            if x[k] < 0:
                x[0] = 0.0
                raise ValueError("late")
        return x

    with pytest.raises(errors.TraceError, match="writes to an array of the caller's and then raises"):
        Jit(g)(np.ones(80))


class Account:
    def __init__(self, balance):
        self.balance = balance

    def add(self, x):
        self.balance = self.balance + x


def test_objects_changed_in_a_loop_are_carried():
    def f(x, n):
        a = Account(0.0)
        for i in range(n):
            a.add(x[i])
        return a.balance

    f_ = check(f, (V, 7), (V, 3))
    assert ops(f_, V, 7).count("for") == 1


def test_objects_made_in_branches():
    def f(x, c):
        if c > 0:
            a = Account(x.sum())
            a.add(1.0)
        else:
            a = Account(x.max())
        return a.balance * 2

    check(f, (V, 1.0), (V, -1.0))

    def g(x, n):
        for i in range(n):
            a = Account(x[i])
        return a.balance

    with pytest.raises(errors.TraceError, match="a is a Account made in a loop"):
        Jit(g)(vec(100), 100)


def test_variables_changed_by_a_callee_are_carried():
    def f(x, n):
        total = 0.0

        def add(v):
            nonlocal total
            total = total + v

        for i in range(n):
            add(x[i])
        return total

    f_ = check(f, (V, 7), (V, 3))
    assert ops(f_, V, 7).count("for") == 1


def test_containers_changed_in_a_branch():
    def f(x, c):
        state = {"log": []}
        if c > 0:
            state["log"].append(x.sum())
        return x

    check(f, (V, 1.0), (V, -1.0))


def test_nested_containers_changed_in_a_loop_are_refused():
    def f(x):
        state = {"log": []}
        for k in range(len(x)):
            state["log"].append(x[k])
        return x

    check(f, (V,))  # turns traced one by one
    with pytest.raises(errors.TraceError, match=r"the list state\['log'\] is changed"):
        Jit(f)(vec(100))


def test_nonlocal_in_the_function_itself():
    total = 0.0

    def f(x, n):
        nonlocal total
        for i in range(n):
            total = total + x[i]
        return n

    f_ = Jit(f)
    f_(V, 7)
    assert total == V.cumsum()[-1]  # one by one; Python's `sum` compensates from 3.12 on


def test_an_array_whose_name_an_inner_loop_binds_anew_while_another_name_writes_it():
    def f(x, y):
        k = x * 2
        t = k
        for i in range(1, len(x)):
            k[i - 1] = t[0]
            for j in range(len(x)):
                k = y * 2
                k[j] += 1
                t[1:-1] = x[-1]
            k[i] = t[i]
        return k, t

    check(f, (V, W), (vec(3), vec(3, 2)), (vec(2), vec(2, 2)), traces=None)


def _first_turn(x):
    for i in range(len(x)):
        if i == 0:
            w = x[0]
        w = w + x[i]
    return w


def _perhaps_bound_then_bound(x):
    for i in range(len(x)):
        if x[i] > 1:
            w = x[i]
        v = w
        w = v + 1
    return w


def _exchanged(x):
    v = "t"
    for i in range(len(x)):
        if x[i - 1] > 1:
            w = x
        for _ in range(len(x)):
            w, v = v, w
    return v, w


def _of_a_row(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(i + 1):
            if j == 0:
                best = x[0]
            best = max(best, x[j])
        out[i] = best
    return out


def _behind_a_write(x):
    n = int(x[-1])
    x[0] = 5.0
    for i in range(n):
        if i == 0:
            w = x[1]
        w = w * 2 + x[i]
    return w


def _not_looked_at(x):
    v = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            w = 1.5
            if x[i] > 1:
                v += w
        w = 0.5
    return v, w


@pytest.mark.parametrize(
    "f", [_first_turn, _perhaps_bound_then_bound, _exchanged, _of_a_row, _behind_a_write, _not_looked_at],
    ids=lambda f: f.__name__[1:],
)  # fmt: skip
def test_a_turn_finds_bound_what_the_turn_before_left(f):
    """Unbound before the loop, bound at the end of each turn: only the first one may find it unbound."""
    for numbers in ([3.0, 0, 0, 0, 2], [0.0, 0, 3, 1], [3.0] * 4, [0.0, -1, 5, -2, 0], [1.0, 2, 0, 2, 3, 4, 6]):
        x = np.array(numbers)
        expected, jitted = x.copy(), x.copy()
        try:
            want = f(expected)
        except UnboundLocalError as error:
            with pytest.raises(UnboundLocalError, match=str(error)):
                Jit(f)(jitted)
        else:
            got = Jit(f)(jitted)
            np.testing.assert_equal(got, want)
            np.testing.assert_array_equal(jitted, expected)


def test_the_first_turn_binds_and_the_others_ask_nothing():
    body = next(op for op in Jit(_first_turn).trace(V).graph.walk() if op.name == "for").regions[0]
    assert "check" not in [op.name for op in body.ops()]


def test_a_loop_of_perhaps_no_turn_behind_a_branch_of_two_types():
    """Without a turn a name is what the branch left: it has a value, though no one type."""

    def f(x, k):
        a = x[:-1]
        b = x * 2
        if k > 1:
            a = x
        for _ in range(k):
            a = b
        return a + 1

    def g(x, k):
        a = None
        if x[0] > 2:
            a = x
        x[1] = 3.0
        for i in range(k):
            a = x[i:]
        return a

    def h(x, k):
        a = None
        if x[0] > 2:
            a = x
        i = 0
        while i < k:
            a = x * i
            i += 1
        return a

    for fn in (f, g, h):
        jitted = Jit(fn)
        for numbers in ([0.0, 1, 2], [3.0, 1, 2, 3]):
            for k in (3, 0, 1, 2):
                x, y = np.array(numbers), np.array(numbers)
                np.testing.assert_equal(jitted(y, k), fn(x, k))
                np.testing.assert_array_equal(y, x)
