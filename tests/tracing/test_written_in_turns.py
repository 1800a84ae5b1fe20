"""Names that may be an array which a loop, or a later statement, writes: never a copy from before the write.

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


def _rebound_behind_a_write(x, y):
    v = x
    for _ in range(len(y)):
        x[:] = x + 1
        if x[0] > 2:
            v = v * 2
    return v


def _of_one_element(x, y):
    v = x[:]
    for _ in range(min(12, int(np.sum(y > 0)))):
        x[:] = x[::-1]
        if np.max(x) > 1:
            v = v**2
    return v


def _a_merge_and_a_write_behind(x, y):
    v = x
    if y[0] > 0:
        v = y * 2
    if y[1] > 0:
        v = v + 1
    x[0] = 9
    return v.sum()


def _written_by_the_name_of_a_merge(x, y):
    v = x
    if y[0] > 0:
        v = y * 2
    if y[1] > 0:
        v = v + 1
    v[0] = 7
    return v, x


def _one_new_array_behind_two_merges(x, y):
    z = x * 2
    v = z if y[0] > 0 else y * 2
    w = z if y[1] > 0 else y * 3
    w[0] = 5
    return v.sum(), w


def _a_merge_that_a_loop_rebinds(x, y):
    v = x
    if y[0] > 0:
        v = y * 2
    for i in range(len(y)):
        if y[i] > 0:
            v = v * 2
    x[0] = 9
    return v.sum()


def _moved_over_what_is_written(x, y):
    v = x
    for i in range(len(y)):
        if y[i] > 0:
            v = v[::-1]
        x[0] = i
    return v


def _in_a_while(x, y):
    v = x if y[0] > 0 else y * 2
    i = 0
    while i < len(y):
        x[:] = x + 1
        if x[0] > 2:
            v = v * 2
        i += 1
    x[0] = 9
    return v


def _written_behind_the_loop(x, y):
    v = x
    for i in range(len(y)):
        if y[i] > 0:
            v = v * 2
        x[i] += 1
    v[0] = 7
    return x, v


def _its_own_array(x, y):
    v = x.copy()
    for i in range(len(y)):
        x[i] += 1
        if y[i] > 0:
            v = v * 2
    return v


#: Programs of which some calls are refused: whether the name is the array that is written depends on data.
REFUSED = {
    _of_one_element,
    _a_merge_that_a_loop_rebinds,
    _in_a_while,
}
PROGRAMS = [
    _rebound_behind_a_write,
    _of_one_element,
    _a_merge_and_a_write_behind,
    _written_by_the_name_of_a_merge,
    _one_new_array_behind_two_merges,
    _a_merge_that_a_loop_rebinds,
    _moved_over_what_is_written,
    _in_a_while,
    _written_behind_the_loop,
    _its_own_array,
]
DATA = [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 2.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_numpy(f: Callable[..., Any]) -> None:
    check_calls(f, [[np.arange(len(numbers)) + 0.5, np.array(numbers)] for numbers in DATA], refused=f in REFUSED)
