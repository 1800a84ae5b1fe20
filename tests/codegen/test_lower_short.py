"""Arrays with a short last axis: the same bits as NumPy, at sizes on both sides of the branch."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg

SHAPES = [(5, 7, 3), (40, 17, 3), (1, 300, 4), (129, 1, 2), (2, 128, 5), (3, 50, 15), (4, 9, 16), (6, 5, 40), (0, 4, 3)]


def picture(shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).uniform(-2, 2, shape).astype(dtype)


def channel(x, w):
    return x * w + 1.5


def pixel(x, w):
    return x - x[:, :, :1] * w


def both(x, w):
    y = x * w
    return y, np.maximum(y - x.mean(axis=2, keepdims=True), 0)


def into_part(x, w):
    out = np.zeros(x.shape, x.dtype)
    out[1:, :, :] = x[:-1] * w + x[1:]
    return out


def write(x, w):
    x[:, 1:, :] *= w
    return x


def level(x, w):
    y = np.where(x > 0, np.sqrt(abs(x)) / 3 + x * w, x / 7 - x * x * 0.3 + w)
    return y, y.sum(axis=(0, 1)), (y * y + y / 3 - y * 5 + abs(y) * 2 - y / 9).sum(axis=0)


@pytest.mark.parametrize("f", [channel, pixel, both, into_part, write, level])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_same_bits_as_numpy(f, dtype):
    if dtype == np.int16 and f in (both, level):
        pytest.skip("means and roots of integers are float64")
    compiled = jg.jit(f)
    for shape in SHAPES:
        x, w = picture(shape, dtype), picture((shape[2],), dtype)
        expected, found = f(x.copy(), w), compiled(x.copy(), w)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_branch_is_there():
    text = jg.jit(channel).inspect_ir(picture((5, 7, 3)), picture((3,)), stage="loops")
    assert "cmp lt" in text
    assert "lanes 16" in text
    assert "cmp lt" not in jg.jit(channel).inspect_ir(picture((5, 7, 300)), picture((300,)), stage="loops")


def test_stored_and_reduced_is_computed_once():
    text = jg.jit(level).inspect_ir(picture((5, 70, 30)), picture((30,)), stage="loops")
    assert text.count(" = sqrt ") == 1


def distances(x, w):
    return ((x - w) ** 2).sum(axis=2), np.sqrt(abs(x * w)).max(axis=2), (x > 0).any(axis=2)


def normalised(x, w):
    return x / np.sqrt((x * x).sum(axis=2, keepdims=True) + 1), np.prod(x, axis=2)


def softmax(x, w):
    e = abs(x - x.max(axis=2, keepdims=True)) + w
    return e / e.sum(axis=2, keepdims=True)


def pairs(x, w):
    d = x[0, :, None, :] - x[0, None, :, :] * w
    r = (d * d).sum(axis=2) + 0.5
    return (d / (r * np.sqrt(r))[:, :, None]).sum(axis=1), r


@pytest.mark.parametrize("f", [distances, normalised, softmax, pairs])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_on_lanes(f, dtype, order):
    compiled = jg.jit(f)
    for shape in [(5, 70, 3), (4, 33, 7), (3, 17, 8), (2, 19, 33), (1, 9, 2), (0, 4, 3)]:
        if shape[0] == 0 and f is pairs:
            continue
        x, w = np.array(picture(shape, dtype), order=order), picture((shape[2],), dtype)
        expected, found = f(x, w), compiled(x, w)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_sign_of_zero_of_short_sums():
    x = np.full((40, 3), -0.0)
    for f in (lambda x: x.sum(axis=1), lambda x: x - x.sum(axis=1, keepdims=True)):
        np.testing.assert_array_equal(np.signbit(jg.jit(f)(x)), np.signbit(f(x)))
