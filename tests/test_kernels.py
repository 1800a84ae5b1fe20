"""The loop kernels of bench/kernels, jitted as they are: results and written arguments have NumPy's bits."""

import sys
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg

sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "kernels"))
import corpus

sys.path.pop(0)


def kinds(outcome):
    return [type(x) for x in outcome]


@pytest.mark.parametrize("name", corpus.names())
def test_kernel_has_numpys_results(name):
    """At two sizes, of which the second reuses the code of the first."""
    kernel = corpus.load(name)
    compiled = jg.jit(kernel.function)
    for size in ("tiny", "small"):
        args = kernel.initialize(size)
        expected = corpus.outcome(kernel, kernel.function, corpus.copied(args))
        found = corpus.outcome(kernel, compiled, corpus.copied(args))
        assert kinds(found) == kinds(expected)
        equal, apart = corpus.difference(expected, found)
        assert equal or 0.0 < apart <= kernel.tolerance, f"{size}: apart by {apart:.2g}"
    assert compiled.cache_info().misses == 1


@pytest.mark.parametrize("name", corpus.names())
def test_only_named_arguments_are_written(name):
    """What the bench restores before each call is all that a call changes."""
    kernel = corpus.load(name)
    args = kernel.initialize("tiny")
    used = corpus.copied(args)
    kernel.function(*used)
    for i, (before, after) in enumerate(zip(args, used, strict=True)):
        if isinstance(before, np.ndarray):
            assert np.array_equal(before, after) != (i in kernel.written)


@pytest.mark.parametrize("name", corpus.names())
def test_what_numba_is_given_computes_the_same(name):
    """The variants are plain functions: run as Python here."""
    kernel = corpus.load(name)
    args = kernel.initialize("tiny")
    expected = corpus.outcome(kernel, kernel.function, corpus.copied(args))
    for variant in kernel.variants().values():
        _, apart = corpus.difference(expected, corpus.outcome(kernel, variant, corpus.copied(args)))
        assert apart <= corpus.allowed_of_others(args)


def test_newton_raises_what_python_raises():
    """An error inside the loop: class, text, and that nothing else is lost."""
    module = corpus.load("newton").module
    compiled = jg.jit(module.newton)
    for args in ((-3.0, np.array([0.0, 2.0, 1.0]), 1e-9, 100), (2.0, np.array([0.0, 5.0]), 1e-30, 7)):
        with pytest.raises((ZeroDivisionError, RuntimeError)) as wanted:
            module.newton(*args)
        with pytest.raises(type(wanted.value)) as got:
            compiled(*args)
        assert str(got.value) == str(wanted.value)
