"""Kinds of numbers where data end a loop: what the first turn leaves is Python's, what later ones leave is NumPy's.

Each program runs as machine code, with data that end its loop in the first turn, later, in the last, and never, once
with a write to an argument in front that the caller can see, and is compared with Python: kinds, dtypes, values.
"""

import numpy as np
import pytest

import jitgraph as jg
from tests.fuzz.compare import difference, run
from tests.tracing.harness import Jit

ENDS = ([1, 1, 1, 1, 1], [-1, -1, -1, -1, -1], [-1, -1, 1, -1, 1], [-1, -1, -1, -1, 1], [1], [-1], [-1, 1])


def left_by_a_break(x, b, k):
    v = 0
    for i in range(len(x)):
        w = v
        v = v + x[i]
        if b[0] > 0:
            break
    return w, v


def left_by_a_break_from_an_argument(x, b, k):
    v, u = k, 1.5
    for i in range(len(x)):
        w, t = v, u
        v, u = v + x[i], x[i]
        if b[i] > 0:
            break
    else:
        w = v
    return w, v, t


def negative_before_the_loop(x, b, k):
    v = -1
    for i in range(len(x)):
        w = v
        v = x[i]
        if b[i] > 0:
            break
    else:
        w = v
    return w, v


def a_tuple_returned_in_a_turn(x, b, k):
    v = 0
    for i in range(len(x)):
        w = v
        v = v + x[i]
        if b[i] > 0:
            return w, (v, w)
    return w, (v, 2)


def a_number_returned_in_a_turn(x, b, k):
    v = k
    for i in range(len(x)):
        w = v
        v = v + x[i]
        if b[i] > 0:
            return w
    return w


def none_returned_in_a_turn(x, b, k):
    v = None
    for i in range(len(x)):
        w = v
        v = x[i] if v is None else v + x[i]
        if b[i] > 0:
            return w, v
    return v, w


def bound_by_some_turns(x, b, k):
    v = 1.5
    for i in range(len(x)):
        if b[i] > 0:
            w = v, 2
        v = v + x[i]
    return w


def names_that_change_places(x, b, k):
    v, w = 0, True
    for i in range(len(x)):
        if b[i] > 0:
            return v, w
        v, w = w, v + x[i]
    return w, v


def beyond_64_bits(x, b, k):
    v = 2**70 if b[0] > 0 else k
    w = -(2**63) - 1
    for i in range(len(x)):
        u = w
        w = x[i]
        if b[i] > 0:
            break
    return v, v + 1, v > 3, u, w, max(2**64, k)


def too_long_for_a_complex_number(x, b, k):
    v = 0
    for i in range(len(x)):
        if b[i] > 0:
            v = v - np.int64(2**62 + 1)
            break
        v = x[i] * 1j
    return v


def in_a_tuple_beside_an_array(x, b, k):
    v = 0
    if b[0] > 0:
        v = v + x[0]
    t = (v, v)
    return t + np.int8(1), np.ones(2, bool) + t, [t, t] * x[:1], t * k


PROGRAMS = [
    left_by_a_break, left_by_a_break_from_an_argument, negative_before_the_loop, a_tuple_returned_in_a_turn,
    a_number_returned_in_a_turn, none_returned_in_a_turn, bound_by_some_turns, names_that_change_places, beyond_64_bits,
    too_long_for_a_complex_number, in_a_tuple_beside_an_array,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "u8"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_kinds_at_all_ends(program, dtype):
    def written(x, b, k, out):
        out[0] = k
        return program(x, b, k)

    for function in (program, written):
        jitted = jg.jit(function)
        for ends in ENDS:
            given = [np.arange(1, len(ends) + 1).astype(dtype), np.array(ends, float), 3]
            given += [np.zeros(2)] if function is written else []
            expected = run(function, [np.copy(a) if type(a) is np.ndarray else a for a in given])
            found = run(jitted, [np.copy(a) if type(a) is np.ndarray else a for a in given])
            what = difference(given, expected, found, free_zero=True, memory=False)
            assert not what, (ends, what)


def test_a_constant_in_front_is_held_as_unsigned():
    """Where a first turn ends the loop, the name is carried with its kind: no call is given up for it."""
    graph = Jit(left_by_a_break).trace(np.ones(5, np.uint64), np.ones(1), 0).graph
    (loop,) = [op for op in graph.walk() if op.name == "while"]
    assert [str(v.type) for v in loop.results] == ["py_int", "py_bool", "np.u64", "np.u64", "py_bool"]
    assert not [site for site in graph.sites if site.error == "deoptimise"]


def test_a_number_that_no_type_holds_is_given_up_for():
    """An int that only the run knows, beside a uint64: the call in which there is no second turn runs in Python."""
    graph = Jit(a_number_returned_in_a_turn).trace(np.ones(5, np.uint64), np.ones(5), 3).graph
    assert [site for site in graph.sites if site.error == "deoptimise"]
