"""`is` and `isinstance` on what branches and loops merge: which object, of which class, a name stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.errors import LeftToPython
from tests.tracing.harness import Jit


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False, verify=True):
        yield


class Box:
    """Holds one attribute."""


def _merged(x):
    v = x
    if x.sum() > 6:
        v = x * 1
    w = v
    return v is x, w is v, v is not x, v is None


def _two_arguments(x, y):
    v = x
    if x.sum() > 6:
        v = y
    return v is x, v is y


def _swapped(x, y):
    v = [x, y]
    if x.sum() > 6:
        v[0], v[1] = y, x
    return v[0] is x, v[1] is x, v[0] is v[1]


def _view(x):
    v = x
    if x.sum() > 6:
        v = x[:]
    return v is x


def _new(x):
    w = x * 2
    v = w
    if x.sum() > 6:
        v = w * 1
    return v is w


def _expression(x):
    return (x if x.sum() > 6 else x * 1) is x


def _nested(x):
    if x[0] > 2:
        v = x if x[1] > 2 else x * 1
    else:
        v = x * 3
    return v is x


def _one_side(x):
    if x.sum() > 7:
        v = x
    try:
        return v is x
    except NameError:
        return None


def _attribute(x):
    box = Box()
    box.x = x
    if x.sum() > 6:
        box.x = x * 1
    return box.x is x


def _global(x):
    HELD.x = x
    if x.sum() > 6:
        HELD.x = x * 1
    return HELD.x is x


HELD: Any = Box()


def _scalars(x):
    a = x.sum()
    b = a
    if a > 6:
        a = a + 1
    return a is b


def _in_a_turn(x):
    count = 0
    for i in range(100):
        v = x
        if x[i % 3] > 2:
            v = x * 1
        if v is x:
            count += 1
    return count


def _behind_a_write(x):
    x += 1
    v = x
    if x.sum() > 7:
        v = x * 1
    if v is x:
        x += 5
    return v


def _written_in_a_loop(x):
    y = x * 1
    z = y
    for _ in range(100):
        y[0] += 1
    return z is y, y is x


def _flag(x):
    found = False
    for q in x:
        if q > 2:
            found = True
    if found is False:
        return x * 2
    return found is True, found is not True


def _python_bool(x):
    v = bool(x.sum() > 6)
    return v is True, v is False, v is np.True_


def _numpy_bool(x):
    v = x.sum() > 6
    return v is True, v is np.True_, v is not np.False_, v is (x.max() > 1)


def _either_bool(x):
    flag = bool(x[0] > 2)
    if x.sum() > 4:
        flag = np.bool_(True)
    return flag is True, flag is np.True_


def _pattern(x):
    match bool(x[0] > 2):
        case True:
            return 1
        case False:
            return 2


def _small_int(x):
    count = 0
    for q in x:
        if q > 2:
            count += 1
    none = 0
    return count is none


def _list_of_two_names(x):
    a = [x]
    b = a
    if x.sum() > 6:
        b = list(a)
    b.append(1)
    return a is b, len(a), len(b)


def _dict_of_two_names(x):
    a = {"k": x}
    b = a
    if x.sum() > 6:
        b = dict(a)
    b["k"] = x * 2
    return a is b, a["k"]


def _list_changed_by_its_first_name(x):
    a = [x, 0]
    b = a
    if x.sum() > 6:
        b = [x * 2, 1]
    a[1] = 5
    return b


def _class(x):
    v = 0
    if x.sum() > 6:
        v = 1.5
    return isinstance(v, int), isinstance(v, float), type(v)


def _class_behind_a_write(x):
    x += 1
    v = 0
    if x.sum() > 9:
        v = np.float64(1.5)
    return isinstance(v, int), isinstance(v, (np.generic, str)), v


def _class_in_a_loop(x):
    count = 0
    for i in range(100):
        v = 0
        if x[i % 3] > 2:
            v = 1.5
        if isinstance(v, float):
            count += 1
    return count


PROGRAMS = [
    _merged,
    _two_arguments,
    _swapped,
    _view,
    _new,
    _expression,
    _nested,
    _one_side,
    _attribute,
    _global,
    _scalars,
    _in_a_turn,
    _behind_a_write,
    _written_in_a_loop,
    _flag,
    _python_bool,
    _numpy_bool,
    _either_bool,
    _pattern,
    _small_int,
    _list_of_two_names,
    _dict_of_two_names,
    _list_changed_by_its_first_name,
    _class,
    _class_behind_a_write,
    _class_in_a_loop,
]


def _scalar_of_turns(x):
    v = w = x[0]
    for k in range(len(x)):
        if x[k] > 2:
            v = x[k]
    return v is w


def _number_before_turns(x):
    v = w = 1.5
    for k in range(len(x)):
        if x[k] > 4:
            v = x[k]
    return v is w


def _scalar_or_none(x):
    v = w = None
    for k in range(len(x)):
        if x[k] > 1:
            v = x[k]
        if x[k] > 4:
            w = v
    return v is w


def _largest(x):
    first, second = x[0], x[1]
    return max(first, second) is first


def _counts(x):
    m = n = 0
    for k in range(len(x)):
        m += 1 if x[k] > 2 else 0
        n += 1 if x[k] > 1 else 0
    return m is n


#: Scalars: compiled code has no objects of them.
SCALARS = [_scalar_of_turns, _number_before_turns, _scalar_or_none, _largest, _counts]


@pytest.mark.filterwarnings("ignore:.*runs in plain Python")
@pytest.mark.parametrize("f", SCALARS, ids=lambda f: f.__name__[1:])
def test_only_python_knows_which_scalar_it_is(f) -> None:
    with pytest.raises(LeftToPython, match="`is` asks"):
        Jit(f)(np.array([5.0, 1.0, 0.0]))
    jitted = jg.jit(f)
    for x in (np.ones(3), np.full(3, 5.0), np.array([5.0, 1.0, 0.0]), np.full(3, 2.0)):
        assert jitted(x) is f(x)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__[1:])
def test_is_says_what_python_says(f) -> None:
    jitted = jg.jit(f)
    for first in (np.ones(3), np.full(3, 5.0), np.ones(3), np.array([5.0, 1.0, 0.0]), np.full(3, 2.0)):
        args = [first + k for k in range(f.__code__.co_argcount)]
        expected = f(*[x.copy() for x in args])
        found = jitted(*[x.copy() for x in args])
        np.testing.assert_equal(found, expected)
        assert type(found) is type(expected)


def test_one_array_given_twice() -> None:
    x = np.full(3, 5.0)
    jitted = jg.jit(_two_arguments)
    assert jitted(x, x) == (True, True)
    assert jitted(x, x + 1) == (False, True)


def test_the_test_of_the_branch_decides() -> None:
    graph = Jit(_view).trace(np.ones(3)).graph
    assert graph.sites == []  # no assumption


def _first_or_second(x):
    v = HELD.first
    for i in range(len(x)):
        if x[i] > 1:
            v = HELD.second
    return v is HELD.first, v is HELD.second


def _asked_in_turns(x):
    v, n = HELD.first, 0
    for i in range(len(x)):
        n += v is HELD.second
        v = HELD.second if x[i] > 1 else HELD.first
    return n


def _exchanged_in_turns(x):
    v, w = HELD.first, HELD.second
    for i in range(len(x)):
        if x[i] > 1:
            v, w = w, v
    return v is HELD.first, w is HELD.first, v is w


@pytest.mark.parametrize("f", [_first_or_second, _asked_in_turns, _exchanged_in_turns], ids=lambda f: f.__name__[1:])
def test_arrays_from_outside_that_become_one(f) -> None:
    """Loops compare numbers of objects: which arrays from outside are one is tested before each call."""
    jitted = jg.jit(f)
    for together in (False, True, False, True):
        HELD.first = np.zeros(4)
        HELD.second = HELD.first if together else np.zeros(4)
        for x in (np.zeros(4), np.array([0.0, 2, 2, 0]), np.array([2.0, 0, 2, 2, 0])):
            assert jitted(x) == f(x)
