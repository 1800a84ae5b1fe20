"""Names that loops and branches write through and bind anew: each array that NumPy writes is written, and no other.

Each call is what NumPy makes of it (values, arguments, what shares memory), or a TraceError where `REFUSED` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitgraph.config import config
from tests.tracing.harness import check_calls


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False, verify=True):
        yield


def _written_in_an_inner_loop(a, b):
    v = a
    for _ in range(12):
        for _ in range(len(b)):
            v[:2] += v[1:3]
            v = b + 1
    return v


def _written_in_an_inner_while(a, b):
    v = a
    for _ in range(30):
        j = 0
        while j < 3 and v.sum() < 100:
            v[:2] += 1
            v = b + 1
            j += 1
    return v


def _in_the_first_turn_only(a, b):
    v = a
    for _ in range(30):
        v[:2] += 1
        v = b + 1
    return v


def _by_a_name_bound_in_the_turn(a, b):
    v = a
    for _ in range(30):
        for _ in range(11):
            w = v
            v[:2] += 1
            v = b + 1
    return v, w


def _in_turns_that_data_count(a, b):
    v = a
    for _ in range(11):
        for _ in range(int((a > 0).sum())):
            v[:2] += 1
            v = b + 1
    return v


def _with_an_early_return(a, b):
    v = a
    for _ in range(11):
        for _ in range(11):
            v[:2] += 1
            if v[1] > 3:
                return v
            v = b + 1
    return b


def _with_break(a, b):
    v = a
    for _ in range(11):
        for _ in range(11):
            v[:2] += 1
            if v[1] > 3:
                break
            v = b + 1
    return v


def _in_a_function(a, b):
    def f(v):
        for j in range(11):
            v[j % 3] += 1
            v = v.copy()
        return v

    v = a
    for _ in range(11):
        v = f(v)
    return v


def _an_older_name(a, b):
    v = a * 1
    w = v
    for _ in range(11):
        for _ in range(11):
            v[0] += 1
            v = v + 1
    return v, w


def _one_of_two(a, b):
    v = a if a[0] > 0 else b
    for j in range(11):
        v[j % 3] += 1
        v = v.copy()
    return v


def _one_of_two_in_each_turn(a, b):
    for k in range(11):
        v = a if a[0] > k else b
        v[k % 3] += 1
        v = v.copy()
    return v


def _behind_a_test(a, b):
    v = a
    for i in range(30):
        if b[i % 3] > 0:
            v[:2] += 1
            v = b + 1
    return v


def _exchanged_an_odd_number_of_times(a, b):
    v, w = a + 1, b + 1
    for _ in range(11):
        for _ in range(13):
            v[:2] += 1
            v, w = w, v
    return v, w


def _exchanged_behind_a_turn_in_front(a, b):
    p, q = a, b
    for _ in range(int(b[0]) + 20):
        q[0] += 1
        p, q = q, p
        a = abs(p)
    return a, p, q


def _in_a_branch_that_wrote_before(a, b):
    v = a + 1
    w = v
    for k in range(12):
        if b[k % 3] > 0:
            v[0] += 1
            for _ in range(12):
                v[1] += 1
                v = v - 2
    return v, w.sum()


def _on_one_side_and_read_on_the_other(a, b):
    v = a + 0
    w = v
    for k in range(12):
        if b[k % 3] > 0:
            for r in b:
                v[1] += r
                v = v - 2
            return v
        w[0] += 1
    return w


def _on_a_side_that_raises(a, b):
    v = a + 0
    w = v
    for k in range(12):
        if b[k % 3] > 3:
            for _ in range(12):
                v[1] += 1
                v = v - 2
            raise ValueError(k)
        w[0] += 1
    return v, w


def _of_two_types(a, b):
    v = b + 1
    for _ in range(12):
        a[1] *= 2
        w = 0
        while w < 3 and np.sum(a) < 1e6:
            v += v[::-1]
            v = a <= 2
            w += 1
    return a


def _a_view_of_what_a_turn_begins_with(a, b):
    v = np.stack([a, b]).T
    x = v
    for i in range(len(a) - 2):
        w = v[1:]
        v = v + i
    return w, x


def _two_equal_views_of_a_new_array(a, b):
    for i in range(2, len(a) * 9, 2):
        v = (a + i)[:, None]
        w = v.view()
    return v, w


#: Programs of which some calls are refused: whether the caller's array is written depends on data.
REFUSED = {_with_break, _an_older_name, _one_of_two_in_each_turn, _behind_a_test}
PROGRAMS = [
    _written_in_an_inner_loop,
    _written_in_an_inner_while,
    _in_the_first_turn_only,
    _by_a_name_bound_in_the_turn,
    _in_turns_that_data_count,
    _with_an_early_return,
    _with_break,
    _in_a_function,
    _an_older_name,
    _one_of_two,
    _one_of_two_in_each_turn,
    _behind_a_test,
    _exchanged_an_odd_number_of_times,
    _exchanged_behind_a_turn_in_front,
    _in_a_branch_that_wrote_before,
    _on_one_side_and_read_on_the_other,
    _on_a_side_that_raises,
    _of_two_types,
    _a_view_of_what_a_turn_begins_with,
    _two_equal_views_of_a_new_array,
]
DATA = [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0, 2.0], [1.0, 1.0, 4.0], [-1.0, 2.0, 0.0, 1.0, 5.0]]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_numpy(f: Callable[..., Any]) -> None:
    check_calls(f, [[np.arange(len(numbers)) - 1.0, np.array(numbers)] for numbers in DATA], refused=f in REFUSED)


# --- names that an inner branch makes one array, merged by the branch around it


def _written_behind(x):
    v = x * 1
    w = x * 2
    if x[0] > 0:
        v = x + 1
        if x[1] > 0:
            w = v
    v += 10
    return w


def _a_third_name_in_between(x):
    v = x * 1
    w = x * 2
    u = x
    if x[0] > 0:
        v = x + 1
        if x[1] > 0:
            w = v[::-1]
        if x[2] > 0:
            u = w
    v += 10
    return u, w


def _by_two_branches(x):
    v = x * 1
    w = x * 2
    if x[0] > 0:
        u = x + 1
        if x[1] > 0:
            w = u
        if x[2] > 0:
            v = u
    v += 10
    return v, w


def _returned(x):
    v = x * 1
    w = x * 2
    if x[0] > 0:
        u = x + 1
        if x[1] > 0:
            w = u
        if x[2] > 0:
            v = u
    return v, w


def _in_turns(x):
    for i in range(len(x)):
        if x[0] > 0:
            v = x + i
            if x[i] > 0:
                w = v
    return v, w


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("fn", [_written_behind, _a_third_name_in_between, _by_two_branches, _returned, _in_turns])
def test_an_inner_branch_makes_two_names_one_array(fn):
    signs = ((1, 1, 1), (1, -1, -1), (-1, -1, -1), (1, -1, 1), (1, 1, -1))
    check_calls(fn, [(np.array(s) * np.array([1.0, 2.0, 3.0]),) for s in signs])


# --- containers


def _a_tuple_made_anew(a, b):
    q = (a, 0.0)
    for _ in range(len(b)):
        q = (q[0], q[1] + q[0][0])
    q[0][0] = 7
    return q


def _a_dict_made_anew(a, b):
    d = {"a": a, "t": 0.0}
    for _ in range(len(b)):
        d = {"a": d["a"], "t": d["t"] + b[0]}
    return d["a"], d["t"]


def _one_array_exchanged_with_itself(a, b):
    q = [a, a]
    for _ in range(len(b)):
        q = [q[1], q[0]]
    w = q[0]
    w += 1
    return w


def _an_item_stored_or_a_list_made(a, b):
    q = [a, b]
    if a[0] > 1:
        q[0] = b
    else:
        q = [b, a]
    return q


def _a_list_made_or_items_exchanged(a, b):
    q = [a + 1, b + 1]
    if a[0] > 1:
        q = [q[1], b]
    else:
        q[0], q[1] = q[1], q[0]
    return q[0], q[1]


def _a_dict_changed_or_made(a, b):
    d = {"x": a, "y": [b, 1.0]}
    if a[0] > 1:
        d["x"] = b + 1
        d["y"][1] = 2.0
    else:
        d = {"x": b, "y": [a, 3.0]}
    return d["x"], d["y"][0], d["y"][1]


def _a_list_that_a_dict_holds(a, b):
    q = [a, b]
    d = {"x": q}
    if a[0] > 1:
        q = [b, a]
    q[0] = a + 1
    return d["x"], q


def _a_list_that_a_tuple_holds(a, b):
    q = [a, b]
    d = ((q, 1), 2)
    if a[0] > 1:
        q = [b, a]
    q.append(a + 1)
    return d[0][0], q


_CONTAINERS = [
    _a_list_that_a_dict_holds,
    _a_list_that_a_tuple_holds,
    _a_tuple_made_anew,
    _a_dict_made_anew,
    _one_array_exchanged_with_itself,
    _an_item_stored_or_a_list_made,
    _a_list_made_or_items_exchanged,
    _a_dict_changed_or_made,
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("fn", _CONTAINERS)
def test_containers_of_arrays(fn):
    check_calls(fn, [(np.arange(3.0) + k, np.arange(n) + 7.0) for k in (0, 5) for n in (3, 4)])


# --- a view of what a turn makes, and the array itself, both bound before the loop


def _a_view_and_its_array(a, b):
    v, w = a, b
    for _ in range(len(b)):
        w = v + 1
        v = w[::-1]
    return v, w


def _written_by_the_view(a, b):
    v, w = a, b
    i = 0
    while i < len(b) - 1:
        w = v + 1
        v = w[::-1]
        i += 1
    v[0] = 9
    return v, w


def _in_a_list(a, b):
    q = [a, b]
    for _ in range(len(b)):
        v = q[0] + 1
        q = [v[1:], v]
        q[0] = q[1][::-1]
    return q


@pytest.mark.parametrize("fn", [_a_view_and_its_array, _written_by_the_view, _in_a_list])
def test_a_view_of_what_a_turn_makes(fn):
    check_calls(fn, [(np.arange(3.0), np.arange(n) + 7.0) for n in (3, 1, 0)])
