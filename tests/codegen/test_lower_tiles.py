"""Arrays read across the inner loop go over tiles: every element once, whatever the sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import jitgraph as jg

SHAPES = [(3, 4, 5), (127, 2, 129), (130, 1, 65), (0, 3, 4), (2, 128, 128), (5, 129, 131)]


def turned(x):
    return x.transpose(2, 1, 0) * 2.0 + 1.0


def rotated(x):
    return x.transpose(2, 0, 1) - 1.0


def with_itself(x):
    n = min(x.shape[1:])
    y = x[:, :n, :n]
    return y + y.transpose(0, 2, 1)


@pytest.mark.parametrize("f", [turned, rotated, with_itself])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_as_numpy(f, dtype):
    compiled = jg.jit(f)
    for shape in SHAPES:
        x = np.random.default_rng(1).uniform(-1, 1, shape).astype(dtype)
        np.testing.assert_array_equal(compiled(x), f(x))


def test_tiles_are_there():
    text = jg.jit(lambda x: x + x.T).inspect_ir(np.ones((9, 9)), stage="loops")
    assert len(re.findall(r"range\(\w+, \w+, 128\)", text)) == 2
