"""What takes one pass where NumPy takes several, and remainders on lanes: the same bits as NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.target import host

SIZES = [2, 3, 7, 8, 9, 15, 16, 17, 100, 127, 128, 129, 257, 513, 1000, 5003]


def statistics(x):
    return x.sum(), x.min(), x.max(), (x > 0).all(), (x > 0).any(), (x * x).sum(), (x > 0).sum()


def dear(x):
    y = np.sqrt(abs(x) * 2 + 1)
    return y, y.sum(), y.max(), y.min()


@pytest.mark.parametrize("f", [statistics, dear])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_extremes_in_one_pass(f, dtype):
    compiled = jg.jit(f)
    rng = np.random.default_rng(7)
    for n in SIZES:
        x = rng.uniform(-1, 1, n).astype(dtype)
        for _ in range(2):
            for expected, found in zip(f(x), compiled(x), strict=True):
                np.testing.assert_array_equal(found, expected)
            x[rng.integers(n)] = np.nan


@pytest.mark.skipif(host().vector_bytes < 64, reason="counts the instructions of 64-byte vectors")
def test_one_pass_is_taken():
    text = jg.jit(dear).inspect_ir(np.ones(100), stage="llvm")
    assert text.count("= call <8 x double> @llvm.sqrt.v8f64") == 2  # whole vectors, and the last one


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", [np.fmod, np.remainder, np.floor_divide])
def test_remainders(f, dtype):
    compiled = jg.jit(lambda x, y: f(x, y))
    bits = np.uint32 if dtype == np.float32 else np.uint64
    rng = np.random.default_rng(11)
    n = 4099
    anything = [rng.integers(0, np.iinfo(bits).max, n, dtype=bits).view(dtype) for _ in range(2)]
    y = (rng.uniform(-1, 1, n) * 2.0 ** rng.integers(-20, 20, n)).astype(dtype)
    near = (y * rng.integers(-1000, 1000, n) * (1 + rng.integers(-2, 3, n) * np.finfo(dtype).eps)).astype(dtype)
    special = rng.choice([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny / 8, 1e30], (2, n))
    for a, b in (anything, (near, y), special.astype(dtype)):
        with np.errstate(all="ignore"):
            expected = f(a, b)
        found = compiled(a, b)
        same = (found.view(bits) == expected.view(bits)) | (np.isnan(found) & np.isnan(expected))
        assert same.all(), (a[~same][:3], b[~same][:3], found[~same][:3], expected[~same][:3])
