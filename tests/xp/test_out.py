"""`out=` of reductions and products: what NumPy keeps in it between the elements, and which ones it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.errors import TraceError
from tests.fuzz.compare import difference, run
from tests.fuzz.programs import function_of


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False):
        yield


def _given() -> list[Any]:
    rng = np.random.default_rng(1)
    f = rng.normal(size=(5, 7))
    return [rng.integers(-(2**31), 2**31, (5, 7)).astype("i4"), f, (f + 1j * f[::-1]), np.arange(3.0), np.ones((3, 3))]


def _compared(line: str) -> str:
    """What a statement on i: i4[5, 7], f: f8[5, 7], c: c16[5, 7], x: f8[3], y: f8[3, 3] does differently."""
    function = function_of(
        f"def program(i, f, c, x, y):\n    o = None\n    {line}\n    return i, f, c, x, y, o\n", f"<out {line}>"
    )
    expected, found = run(function, _given()), run(jg.jit(function, numerics="numpy"), _given())
    assert not isinstance(found.error, TraceError)
    return difference(_given(), expected, found, free_zero=True)


#: Totals that are cast to `out` in between: by a cast that keeps no order, the result is another one.
KEPT = [
    ("np.max", "i", "i2"), ("np.min", "i", "i1"), ("np.max", "c", "c8"), ("np.fmax.reduce", "i", "i2"), ("np.fmin.reduce", "i", "u2"),
    ("np.maximum.reduce", "i", "f4"), ("np.sum", "i", "i2"), ("np.sum", "f", "f4"), ("np.gcd.reduce", "i", "i2"), ("np.remainder.reduce", "i", "i1"),
    ("np.bitwise_xor.reduce", "i", "i2"), ("np.ptp", "f", "c8"), ("np.ptp", "i", "i8"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "array", "dtype"), KEPT)
def test_totals_are_kept_in_the_output(function: str, array: str, dtype: str) -> None:
    for axis, size in ((0, 7), (1, 5)):
        assert not _compared(f"o = np.zeros({size}, {dtype!r}); {function}({array}, axis={axis}, out=o)")


def test_an_output_that_is_a_part_of_the_array() -> None:
    assert not _compared("np.ptp(f, axis=0, out=f[0])")


DOT = [
    "o = np.dot(2, True, out=x)", "o = np.dot(2, 3, out=y)", "o = np.dot(2, True, out=np.zeros(()))", "o = np.dot(2.0, 3.5, out=np.zeros(()))",
    "o = np.dot(x, 2, out=y[0])", "o = np.dot(x, 2, out=y[:, 0])", "o = np.dot(x, 2, out=np.zeros(3, complex))", "o = np.dot(x, x, out=np.zeros(()))",
    "o = np.dot(y, y, out=np.zeros((3, 3)))", "o = np.dot(y, y, out=np.zeros((3, 3)).T)", "o = np.dot(y, y, out=np.zeros((6, 3))[::2])",
    "o = np.dot(y[None], y, out=np.zeros((1, 3, 3)))", "o = np.dot(y[None], y, out=np.zeros((1, 3, 3), int))", "o = np.dot(i[:3, :3], i[0, :3], out=np.zeros(3, int))",
]  # fmt: skip


@pytest.mark.parametrize("line", DOT)
def test_outputs_of_dot(line: str) -> None:
    assert not _compared(line)


FOURIER = [
    "o = np.fft.fftn(f, out=np.zeros((5, 7), 'c8'))", "o = np.fft.rfftn(f, out=np.zeros((5, 4), 'c8'))", "o = np.fft.fft(c, out=c)",
    "o = np.fft.rfftn(f, axes=(1, 0), out=np.zeros((3, 7), complex))", "o = np.fft.rfftn(f, axes=(1, 0), out=np.zeros((7, 3), complex).T)",
    "o = np.fft.fft(c[:2], out=c[1:3])", "o = np.fft.fft(x, out=np.zeros(4, complex))", "o = np.fft.fft(x, out=np.zeros(3, '>c8'))",
    "o = np.fft.rfft(x, out=x)", "o = np.fft.fft(x, n=4, out=np.zeros(4, complex))",
]  # fmt: skip


@pytest.mark.parametrize("line", FOURIER)
def test_transforms_work_in_their_output(line: str) -> None:
    assert not _compared(line)


def test_axes_of_a_transform_are_arguments() -> None:
    f = jg.jit(lambda x, axes, out: np.fft.rfftn(x, axes=axes, out=out))
    x = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1), (0, 2), (2, 1)):
        wanted = np.fft.rfftn(x, axes=axes)
        np.testing.assert_array_equal(f(x, axes, np.zeros_like(wanted)), wanted)
