"""Ranges, samples and nested lists of arguments, functions of `operator`, and what is known of dtypes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

_INF = float("inf")
_ENDS = (0, 2.5, np.float32(1), 1j, np.arange(3), np.ones((2, 3)), [1, 2, 5], np.int8(100))


def _sevens(line: Any, widths: Any, axis: Any, options: Any) -> None:
    line[: widths[0]] = 7 + axis


def _written_windows(x: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)
    windows[0] = 9
    return x, windows.sum()


#: A function and the arguments of its calls.
CALLS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "range of long steps": (
        np.arange, [(0, 1, _INF), (0, -1, -_INF), (0, 1, -_INF), (1.5, 2, 1e308), (0, 1, 0.3), (0, 1e-300, 1e308)]
    ),
    "samples between arrays": (lambda a, b, n: np.linspace(a, b, n), [(a, b, 5) for a in _ENDS for b in _ENDS[3:6]]),
    "samples along an axis": (lambda a, b: np.linspace(a, b, 4, axis=-1, dtype=int), [(np.arange(3), 7), (_ENDS[5], 2)]),
    "samples along no axis": (lambda a, b: np.linspace(a, b, 4, axis=1), [(0, 7), (np.arange(3), 7)]),
    "samples and step": (lambda n: np.linspace(0, 1, n, endpoint=False, retstep=True), [(0,), (1,), (3,)]),
    "powers between arrays": (lambda a: (np.logspace(a, 2, 3), np.geomspace(a + 1, 9.0, 3)), [(np.arange(3.0),)]),
    "lists in another order": (
        lambda v, k: (np.array(v, order="F"), np.array([[k, 2], [3, 4]], order="F"), np.array([[1, 2], [3, 4]], order="F")),
        [([[1, 2], [3, 4]], 7)],
    ),
    "sequences by numbers": (lambda v, k: (operator.mul(v, k), operator.mul(k, v)), [([1, 2], np.int64(2)), ((1,), 3)]),
    "lists by arrays": (lambda v, k: operator.mul(v, k), [([1, 2], np.array(2)), ([1, 2], 2.5), ([1, 2], np.True_)]),
    "in place": (lambda v, k: operator.iadd(v, k), [(np.arange(3), 2), ([1, 2], [3])]),
    "signs": (lambda v: (operator.neg(v), operator.invert(v), operator.lt(v, 2)), [(3,), (np.arange(3),), (None,)]),
    "trimmed": (
        lambda x: (np.trim_zeros(x), np.trim_zeros(x, "f", axis=0), np.trim_zeros(x, "B", axis=-1)),
        [(np.pad(np.ones((2, 3)), (1, 2)),), (np.zeros((2, 3)),), (np.zeros((0, 3)),), ([0, 1, 0],)],
    ),
    "deleted by a mask": (np.delete, [(np.arange(5), np.ones(n, bool)) for n in (4, 5, 6)]),
    "whole numbers": (lambda x: x.is_integer(), [(t(v),) for t in (float, np.float16) for v in (_INF, -_INF, 2, 0.5)]),
    "known of dtypes": (lambda x: (np.can_cast(x, np.int8), np.can_cast(x, "f4")), [(np.ones(2),), (np.int8(3),), (3,)]),
    "cast of the same value": (lambda x: x.astype(np.int8, casting="same_value"), [(np.arange(3),), (np.array([300]),)]),
    "mapped": (
        lambda x, v: (np.polynomial.polyutils.mapdomain(x, x, v), np.polynomial.polyutils.getdomain(v)),
        [([0.0, 2], [-2, 2]), ([0.0, 2], np.array([1.0, 5.0]))],
    ),
    "padded by a function": (lambda x: np.pad(x, (1, 2), _sevens), [(np.arange(3),), (np.ones((2, 2)),)]),
    "windows that are written": (_written_windows, [(np.arange(5.0),)]),
    "fitted with more results": (
        lambda x: (np.polyfit(x, x**2 + 1, 1, full=True), np.polyfit(x, x**3, 1, cov=True)), [(np.arange(6.0),)]
    ),
}  # fmt: skip


def _run(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(*[x.copy() if isinstance(x, np.ndarray) else list(x) if isinstance(x, list) else x for x in args])
        except (TypeError, ValueError, IndexError) as error:
            return next(c for c in (TypeError, ValueError, IndexError) if isinstance(error, c))


def _told(x: Any) -> Any:
    if isinstance(x, tuple | list):
        return type(x), [_told(item) for item in x]
    if isinstance(x, np.ndarray):
        return x.dtype, x.shape, x.flags.f_contiguous, x.tolist()
    return type(x), repr(x)


@pytest.mark.parametrize("name", CALLS)
def test_against_numpy(name: str) -> None:
    f, calls = CALLS[name]
    jitted = jg.jit(lambda *args: f(*args), numerics="numpy")
    for args in calls:
        assert _told(_run(f, args)) == _told(_run(jitted, args)), args
