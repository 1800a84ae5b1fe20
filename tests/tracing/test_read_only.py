"""Arrays that nobody may write to on some paths or in some turns: results say what NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False, verify=True):
        yield


def _array_from_the_second_turn_on(x, k):
    v = 0.0
    for _ in range(k):
        w = x[1:] + 1
        if w.sum() > 0:
            v = w.diagonal()
    return w, v


def _in_an_inner_loop(x, k):
    v = 0.0
    for _ in range(len(x) - 1):
        w = x[1:] + 1
        for _ in range(k):
            v = w.diagonal()
    return w, v


def _writable_before(x, k):
    w = x + 1
    v = w + 1
    for _ in range(k):
        if w.sum() > 0:
            v = w.diagonal()
        w = w + 1
    return w, v


def _of_one_branch(x, k):
    w = x + k
    v = w.diagonal() if w.sum() > 0 else w[0] + 1
    return w, v[1:], v


def _of_one_branch_of_a_turn(x, k):
    w, v = x + 1, 0
    for i in range(k):
        v = w.diagonal() if w.sum() > i else w[0] + 1
        w = w + 1
    return w, v


def _of_the_turn_before(x, k):
    w = v = u = 0.0
    for i in range(k):
        w = x + 1
        u = v
        if w.sum() > i:
            v = w.diagonal()
        else:
            v = w[0]
    return w, v, u


def _row_of_one(x, k):
    v = np.zeros((2, 3))
    for i in range(k):
        w = x + 1
        if w.sum() > i:
            v = np.broadcast_to(w[0], (2, len(w)))
        else:
            v = w[:2]
    return v[0], v


@pytest.mark.filterwarnings("ignore:.*that is read-only on one path")
@pytest.mark.parametrize(
    "f",
    [
        _array_from_the_second_turn_on,
        _in_an_inner_loop,
        _writable_before,
        _of_one_branch,
        _of_one_branch_of_a_turn,
        _of_the_turn_before,
        _row_of_one,
    ],
)
def test_results_are_read_only_as_in_numpy(f: Callable[..., tuple[Any, ...]]) -> None:
    jitted = jg.jit(f)
    for x in (np.ones((3, 3)), -np.ones((3, 3)) * 9, np.ones((4, 4))):
        for k in (1, 2, 3):
            wanted, found = f(x, k), jitted(x, k)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)
                assert np.asarray(a).flags.writeable == np.asarray(b).flags.writeable, (x[0, 0], k)
            shared = [[np.shares_memory(a, b) for a in wanted] for b in wanted]
            assert [[np.shares_memory(a, b) for a in found] for b in found] == shared
