"""`pad`, `insert`, `delete`, windows of arrays and their kin, against NumPy over layouts, dtypes and odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

_A = np.random.default_rng(3).normal(size=(5, 4))
ARRAYS: dict[str, np.ndarray] = {
    "C": _A,
    "F": np.asfortranarray(_A),
    "strided": np.random.default_rng(4).normal(size=(10, 8))[::2, ::-2],
    "int": np.random.default_rng(5).integers(0, 9, size=(5, 4)),
    "float32": _A.astype(np.float32),
    "bool": _A > 0,
    "empty": np.zeros((0, 4)),
    "row": _A[:1],
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "pad constant": lambda x: (np.pad(x, 1), np.pad(x, ((0, 2), (1, 0)), constant_values=7), np.pad(x, {0: 2})),
    "pad corners": lambda x: np.pad(x, 1, constant_values=((1, 0), (1, 0))),
    "pad edge": lambda x: np.pad(x, 2, mode="edge"),
    "pad reflect": lambda x: np.pad(x, (2, 9), mode="reflect"),
    "pad symmetric": lambda x: np.pad(x, (1, 9), mode="symmetric"),
    "pad wrap": lambda x: np.pad(x, (3, 9), mode="wrap"),
    "pad by a call back": lambda x: (np.pad(x, 2, mode="linear_ramp"), np.pad(x, 1, mode="maximum")),
    "insert": lambda x: (np.insert(x, 1, 5, axis=1), np.insert(x, -1, [[1], [2]], axis=1), np.insert(x, 0, 9)),
    "insert several": lambda x: (np.insert(x, [3, 1, 1], 7, axis=1), np.insert(x, [0, 2], [[1, 2]], axis=1)),
    "delete": lambda x: (np.delete(x, 1, axis=1), np.delete(x, -1, axis=1), np.delete(x, slice(1, 3), axis=1)),
    "delete several": lambda x: (np.delete(x, [0, -1], axis=1), np.delete(x, x[:1] > 0), np.delete(x, [], axis=0)),
    "insert at a traced place": lambda x: (
        np.insert(x, np.argmax(x[:1] > 0), 5, axis=1),
        np.insert(x, np.sum(x > 9), x[:1], axis=0),
        np.insert(x, -np.sum(x > 9), 7),
    ),
    "delete at a traced place": lambda x: (
        np.delete(x, np.argmax(x[:1] > 0), axis=1),
        np.delete(x, -1 - np.sum(x > 9), axis=1),
    ),
    "kron": lambda x: (np.kron(x, x[:2]), np.kron(x, 2)),
    "block": lambda x: (np.block([[x, x], [x, x]]), np.block([x, x[:, :1]]), np.block(x)),
    "ediff1d": lambda x: np.ediff1d(x * 1.0, to_end=[1.0], to_begin=0.5),
    "diagflat": lambda x: (np.diagflat(x[:2], 1), np.diagflat(x[:2], -2)),
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, (1, 2)).sum(axis=-1),
    "flags": lambda x: (x * x.flags.c_contiguous, x * x.flags.f_contiguous),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_against_numpy(call: str) -> None:
    f = CALLS[call]
    jitted = jg.jit(f)
    for name, x in ARRAYS.items():
        try:
            wanted = f(x)
        except (ValueError, IndexError, TypeError) as error:
            with pytest.raises(type(error)):
                jitted(x)
            continue
        got = jitted(x)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for a, b in pairs:
            assert (a.dtype, a.shape) == (b.dtype, b.shape), (name, a.dtype, a.shape)
            np.testing.assert_array_equal(a, b, err_msg=name)
            if call.startswith("pad") and b.flags.owndata:
                assert a.flags.c_contiguous == b.flags.c_contiguous, name


def test_sizes_stay_symbolic() -> None:
    f = jg.jit(lambda x, k: (np.pad(x, 2, mode="reflect"), np.insert(x, k.size, 1.0), np.hanning(x.size) * x))
    for n in (5, 9, 7):
        x, k = np.arange(float(n)), np.zeros(3)
        wanted = np.pad(x, 2, mode="reflect"), np.insert(x, 3, 1.0), np.hanning(n) * x
        for a, b in zip(f(x, k), wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-15)
    assert f.cache_info().misses == 1


def test_trim_zeros_is_a_view_found_at_run_time() -> None:
    f = jg.jit(lambda x: (np.trim_zeros(x) + 0, np.trim_zeros(x, "f") * 1, np.trim_zeros(x, "b").sum()))
    for x in ([0, 0, 1, 2, 0], [0, 0, 0], [1, 2], [0, 3], [4, 0, 0, 0]):
        a = np.array(x)
        wanted = np.trim_zeros(a) + 0, np.trim_zeros(a, "f") * 1, np.trim_zeros(a, "b").sum()
        for got, b in zip(f(a), wanted, strict=True):
            np.testing.assert_array_equal(got, b)


def test_windows_of_an_array_that_is_written_are_left_to_python() -> None:
    def f(x: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, 2)
        x[0] = 5.0
        return windows.sum()

    with pytest.warns(UserWarning, match="after a write"):
        assert jg.jit(f)(np.arange(4.0)) == f(np.arange(4.0))


def test_positions_found_in_one_array_are_checked_in_another() -> None:
    f = jg.jit(lambda mask, x: x[np.flatnonzero(mask)])
    mask = np.array([True, False, True, False, True])
    np.testing.assert_array_equal(f(mask, np.arange(5.0)), [0, 2, 4])
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 3"):
        f(mask, np.arange(3.0))
    g = jg.jit(lambda i, x: x[np.unravel_index(i, (3, 4))])
    with pytest.raises(IndexError, match="out of bounds"):
        g(np.array([0, 11]), np.ones((2, 3)))
    with pytest.raises(IndexError, match="out of bounds"):
        jg.jit(lambda x: x[np.tril_indices(4)])(np.ones((1, 4)))


def test_complex_results_where_real_ones_have_none() -> None:
    f = jg.jit(lambda x: (np.emath.sqrt(x), np.emath.arccos(x)))
    for x in ([0.25, 1.0], [-0.25, 0.5], [0.5, 2.0], [0.25, 1.0]):
        a = np.array(x)
        for got, wanted in zip(f(a), (np.emath.sqrt(a), np.emath.arccos(a)), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-15)


#: A call of two arguments, and the second ones.
COUNTED: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "pad edge": (lambda x, k: np.pad(x, k, "edge"), (0, 2, -1, (3,), (1, -2), ((0, 0), (2, 1)), ((2, 1), (0, 0)))),
    "pad wrap": (
        lambda x, k: np.pad(x, k, "wrap"),
        (0, 2, -1, ((0, 0), (2, 1)), np.array([[0, 1], [2, 3]]), [[1], [2]]),
    ),
    "pad constant": (np.pad, (1, -1, np.uint8(1), np.array([1, 2], np.uint8), (), 1.0, (True, 1), ((1, 2, 3),))),
    "pad made here": (
        lambda x, k: np.pad(x, np.array([[k, 2], [0, 1]]), "constant", constant_values=[[k], [2]]),
        (0, 1),
    ),
    "pad by None": (lambda x, k: np.pad(x * 1.0, k, constant_values=None), (0, 1)),
    "pad with another's option": (lambda x, k: np.pad(x, k, "edge", stat_length=None), (1,)),
    "windows": (np.lib.stride_tricks.sliding_window_view, (-1, (1, -1), (2, 1), (0, 1), 2)),
    "windows along one axis": (lambda x, k: np.lib.stride_tricks.sliding_window_view(x, (k, 2), (1, 1)), (0, 1, 2, -1)),
    "vsplit": (np.vsplit, (2, 0, 2.0, [1, 3])),
    "vsplit of a row": (lambda x, k: np.vsplit(x[0], k), (1, 0, [1, 3])),
    "hsplit": (np.hsplit, (2, 0, 2.0, [1, 3])),
    "hsplit of a scalar": (lambda x, k: np.hsplit(x[0, 0] + np.zeros(()), k), (1,)),
    "split": (lambda x, k: np.split(x, k), (2, 0, -1, 3)),
    "array_split": (lambda x, k: np.array_split(x, k), (2, 0, -1, 3)),
    "split by a float": (lambda x, k: np.split(x, 2.0) + np.array_split(x, 2.5, axis=k), (1,)),
}


@pytest.mark.filterwarnings("ignore:.*runs in plain Python")
@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_arguments(name: str) -> None:
    f, counts = COUNTED[name]
    jitted = jg.jit(lambda x, k: f(x, k))
    for x in (np.arange(24).reshape(4, 6)[:, ::2], np.zeros((2, 0)), np.ones((0, 2), bool), np.ones((1, 1))):
        for k in counts:
            try:
                wanted = f(x, k)
            except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
                with pytest.raises(type(error)):
                    jitted(x, k)
                continue
            found = jitted(x, k)
            for a, b in zip(found, wanted, strict=True) if isinstance(wanted, list) else [(found, wanted)]:
                assert (a.dtype, a.shape) == (b.dtype, b.shape), (k, x.shape)
                np.testing.assert_array_equal(a, b)
