"""Attributes, items and variables of closures in branches and loops; loops that are traced turn by turn."""

import numpy as np
import pytest

from jitgraph import errors
from tests.tracing.harness import Jit, check

V = np.arange(1.0, 6.0)


class State:
    def __init__(self, x):
        self.x, self.k = x, 0

    def step(self):
        self.x = self.x * 0.5
        self.k += 1


def test_attributes_are_carried():
    def f(s, n):
        for _ in range(n):
            s.step()
        return s.k

    f_ = Jit(f)
    (loop,) = [op for op in f_.trace(State(8.0), 3).graph.walk() if op.name == "for"]
    assert sorted(str(v.type) for v in loop.operands) == ["py_float", "py_int"]
    assert sorted(v.name for v in loop.results) == ["s.k", "s.x"]
    for n in (0, 3, 50):
        mine, its = State(8.0), State(8.0)
        assert f_(mine, n) == f(its, n)
        assert (mine.x, mine.k) == (its.x, its.k)
    assert f_.count == 1


def test_items_are_merged():
    def f(x, c):
        d = {"a": x[0], "n": 0}
        if c > 0:
            d["n"] += 1
            d["a"] = c
        return d

    f_ = check(f, (V, 1.0), (V, -1.0), traces=None)
    assert f_.count <= 2


def test_a_variable_of_a_closure_that_another_function_changes():
    def f(x, n):
        calls = 0

        def g(v):
            nonlocal calls
            calls += 1
            return v + 1

        def repeat(h, v):
            for _ in range(n):
                v = h(v)
            return v

        return repeat(g, 0.5), calls

    check(f, (V, 3), (V, 20))


def test_a_function_that_a_side_calls_binds_a_variable():
    def unbound_before(x, s):
        def bind():
            nonlocal w
            w = 3

        if x[0] > s:
            bind()
        if s > 50:
            w = 5
        return w

    f = Jit(unbound_before)
    assert f(V, -9.0) == 3
    with pytest.raises(UnboundLocalError):
        f(V, 9.0)
    assert f(V, 99.0) == 5

    def on_the_other_side(x, s):
        def bind():
            nonlocal w
            w = k * x

        k = 0
        for i in range(len(x)):
            k = k + 1
            if x[i] > s:
                w = x
            else:
                bind()
        return w

    check(on_the_other_side, *[(V, s) for s in (-9.0, 0.0, 9.0)], traces=None)

    def defined_in_a_side(x, s):
        if x[0] > s:

            def bind():
                nonlocal w
                w = x * 2

            bind()
        elif x[0] > s - 50:
            w = x
        return w

    f = check(defined_in_a_side, (V, -9.0), (V, 9.0))
    with pytest.raises(UnboundLocalError):
        f(V, 99.0)


def test_a_function_reads_a_variable_that_some_paths_bind():
    def f(x, s):
        if x[0] > s:
            w = x * 2

        def read():
            return w + 1, [w[k] for k in range(2)], (lambda: w - 1)()

        return read()

    g = check(f, (V, -9.0))
    with pytest.raises(NameError, match="'w'"):
        g(V, 9.0)


def test_a_turn_finds_a_name_deleted():
    def f(x, y, n):
        try:
            for _ in range(n):
                del x
        except UnboundLocalError:
            return y * 2
        return y

    g = Jit(f)
    for n in (0, 1, 2, 30):
        np.testing.assert_array_equal(g(V, V, n), f(V, V, n))


def test_few_turns_are_traced_one_by_one_and_many_are_refused():
    def f(x):
        out = []
        for v in x:
            out.append(v * 2)
        return out

    f_ = check(f, (V,), (V[:3],), traces=2)
    assert "for" not in [op.name for op in f_.trace(V).graph.walk()]
    with pytest.raises(errors.TraceError, match="the list out is changed"):
        Jit(f)(np.arange(65.0))


def test_a_list_that_grows_over_a_range_whose_step_is_an_argument():
    def batches(x, k):
        for i in range(0, len(x), k):
            yield x[i : i + k]

    def f(x, k):
        return [b.sum() * c.sum() for b, c in zip(batches(x, k), batches(x * 2, k), strict=True)]

    for n in (2, 3, -1):
        np.testing.assert_array_equal(Jit(f)(V, n), f(V, n))


def test_an_iterator_from_around_a_loop_is_seen():
    def f(x):
        it = iter([1.0, 2.0, 3.0, 4.0, 5.0])
        t = 0.0
        for v in x:
            t += v * next(it)
        return t

    check(f, (V,))
    with pytest.raises(errors.TraceError, match="the iterator it is changed"):
        Jit(f)(np.arange(65.0))


def test_a_value_that_a_generator_keeps_is_refused():
    def f(x):
        def running():
            total = 0.0
            while True:
                total += yield total

        held = {"g": (running(),)}
        next(held["g"][0])
        for v in x:
            r = held["g"][0].send(v)
        return r

    with pytest.raises(errors.TraceError, match="keeps a value of a loop's turn"):
        Jit(f)(np.arange(65.0))


@pytest.mark.parametrize("step", [1, 2, 7, -1, -3])
def test_steps_of_either_sign(step):
    def f(x, s):
        t = 0.0
        for i in range(0 if s > 0 else 4, 0 if s < 0 else 5, s):
            t = t * 2 + x[i]
        return t

    f_ = Jit(f)
    assert f_(V, step) == f(V, step)


def test_the_sign_of_a_step_is_assumed_once():
    def f(n, s):
        t = 0
        for i in range(0, n, s):
            t += i
        return t

    f_ = Jit(f)
    for n, s in ((10, 1), (10, 3), (-10, -3), (10, -1), (0, 5), (-5, -1)):
        assert f_(n, s) == f(n, s)
    with pytest.raises(ValueError, match="range\\(\\) arg 3 must not be zero"):
        f_(3, 0)
