"""`x.view(dtype)` in compiled functions: values, writes through it, and whose memory the results are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors


def set_bits(x: Any) -> Any:
    v = x.view("u8")
    v[0] = 1
    v[1:] |= np.uint64(1 << 63)
    return v


def set_bytes(x: Any) -> Any:
    v = x.view("u1")
    v[::2] = 255
    return x


def add_words(x: Any) -> Any:
    v = x.view("u4")
    v += 1
    return v, x[0]


def turn(x: Any) -> Any:
    v = x.view(np.complex128)
    v *= 1j
    return v


def first_part(x: Any) -> Any:
    v = x.view(float)
    v[0] = 9
    return v


def inverse_root(x: Any) -> Any:
    i = np.int32(0x5F3759DF) - (x.view("i4") >> 1)
    y = i.view("f4")
    return y * (1.5 - 0.5 * x * y * y)


def in_a_branch(x: Any) -> Any:
    if x[0] > 0:
        v = x.view("i8")
        v[0] = 3
    return x


def in_a_loop(x: Any) -> Any:
    v = x.view("u8")
    for i in range(len(x)):
        v[i] = v[i] >> np.uint64(1)
    return x


CASES: dict[str, tuple[Callable[..., Any], Callable[[], np.ndarray]]] = {
    "bits": (set_bits, lambda: np.arange(5.0)),
    "bytes": (set_bytes, lambda: np.arange(6, dtype="u4").reshape(2, 3)),
    "words": (add_words, lambda: np.arange(12, dtype="u1").reshape(3, 4)),
    "complex of parts": (turn, lambda: np.arange(8.0)),
    "parts of complex": (first_part, lambda: np.arange(4.0) + 1j),
    "an argument's slice": (lambda x: x[1:, ::2].view("i8"), lambda: np.arange(12.0).reshape(3, 4)),
    "a transpose": (lambda x: (x.T.view("i8"), x.view("u8").reshape(-1)), lambda: np.arange(12.0).reshape(3, 4)),
    "what is computed": (lambda x: (x[:3] * 2).view("u8") ^ np.uint64(5), lambda: np.arange(12.0)),
    "what a mask picks": (lambda x: x[x > 2].view("i8"), lambda: np.arange(8.0)),
    "halves": (lambda x: x.view("f2") + np.float16(1), lambda: np.arange(8, dtype="u2") * 3000),
    "bools": (lambda x: x.view("i1"), lambda: np.array([True, False])),
    "larger": (lambda x: x.view("u8"), lambda: np.arange(32, dtype="u2").reshape(2, 16)),
    "0-d": (lambda x: x.view(np.int64), lambda: np.array(1.0)),
    "a scalar": (lambda x: x[1].view(np.int64), lambda: np.arange(3.0)),
    "the same": (lambda x: x.view(float), lambda: np.arange(3.0)),
    "an inverse root": (inverse_root, lambda: np.arange(1, 9, dtype="f4")),
    "a branch": (in_a_branch, lambda: np.arange(1.0, 4.0)),
    "a loop": (in_a_loop, lambda: np.arange(100.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_views_of_bytes(name: str) -> None:
    f, make = CASES[name]
    ours, theirs = make(), make()
    found, expected = jg.jit(f)(ours), f(theirs)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for a, b in zip(found, expected, strict=True):
        assert (type(a), a.dtype, a.shape) == (type(b), b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
        assert np.shares_memory(a, ours) == np.shares_memory(b, theirs)
    assert ours.tobytes() == theirs.tobytes()


def test_sizes_that_do_not_fit() -> None:
    f = jg.jit(lambda x: x.view("u4"))
    np.testing.assert_array_equal(f(np.arange(8, dtype="u1")), np.arange(8, dtype="u1").view("u4"))
    for _ in range(2):
        with pytest.raises(ValueError, match="its size must be a divisor of the total size in bytes of the last axis"):
            f(np.arange(6, dtype="u1"))
    np.testing.assert_array_equal(f(np.arange(12, dtype="u1")), np.arange(12, dtype="u1").view("u4"))
    with pytest.raises(ValueError, match="the last axis must be contiguous"):
        jg.jit(lambda x: x.view("u1"))(np.arange(8.0)[::2])
    with pytest.raises(ValueError, match="0d array is only supported if the itemsize is unchanged"):
        jg.jit(lambda x: x.view("u1"))(np.array(1.0))


def test_no_gradient_flows_through_bits() -> None:
    with pytest.raises(errors.GradientTypeError, match="no gradient flows"):
        jg.Tensor([1.0], requires_grad=True).view("i8")
