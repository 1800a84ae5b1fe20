"""The functions of `test_traced`, compiled: the front end, the passes and the machine code together against NumPy."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.xp import test_traced as traced
from tests.xp.harness import same

X, F, Y, Z = traced.X, traced.F, traced.Y, traced.Z


def _functions(test: Any) -> list[Any]:
    return [f for mark in test.pytestmark if mark.name == "parametrize" for f in mark.args[1]]


CASES = [
    (f, args)
    for test, argument_lists in (
        (traced.test_elementwise, [(X,), (traced.S,)]),
        (traced.test_two_arrays, [(X, Y)]),
        (traced.test_reductions, [(X,), (F,)]),
        (traced.test_views_and_shapes, [(X,), (F,)]),
        (traced.test_advanced_reads, [(X,)]),
        (traced.test_zero_dimensional, [(Z,), (np.float64(2.5),)]),
        (traced.test_python_integers, [(5, Y)]),
        (traced.test_python_floats, [(2.5,)]),
    )
    for f in _functions(test)
    for args in argument_lists
] + [(f, (a,)) for f in traced._writes() for a in (X, F)]


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda v: f"line{v.__code__.co_firstlineno}" if callable(v) else "")
def test_compiled(f: Any, args: tuple[Any, ...]) -> None:
    given, expected_args = copy.deepcopy(args), copy.deepcopy(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = f(*expected_args)
        found = jg.jit(f)(*given)
    transcendental = {"sin", "exp", "arctan2", "power", "logaddexp", "matmul", "dot"} & set(f.__code__.co_names)
    same(found, expected, 3 if transcendental or "**" in _source(f) or "@" in _source(f) else 0, "compiled")
    for a, b in zip(given, expected_args, strict=True):
        same(a, b, 0, "argument")


def _source(f: Any) -> str:
    import linecache

    return linecache.getline(f.__code__.co_filename, f.__code__.co_firstlineno)
