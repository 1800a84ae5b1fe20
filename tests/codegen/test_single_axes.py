"""Axes whose size turns out to be 1: NumPy leaves them out of the order of its sums, and looks at their strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config


def first_columns(x: Any, chosen: Any) -> Any:
    return x[:, : int(np.sum(chosen))].sum(0)


def first_columns_kept(x: Any, chosen: Any) -> Any:
    k = int(np.sum(chosen))
    return np.sum(x[:, :k] * 2, axis=0, keepdims=True) + x[:, :k]


def compressed(x: Any, chosen: Any) -> Any:
    return np.compress(chosen, x, axis=1).mean(0)


def first_rows_of_transposed(x: Any, chosen: Any) -> Any:
    return x.T[: int(np.sum(chosen)), ::-1].sum(1)


def deviation(x: Any, chosen: Any) -> Any:
    return np.std(x[:, : int(np.sum(chosen))], axis=0)


def two_axes(x: Any, chosen: Any) -> Any:
    return x.reshape(5, -1, x.shape[1])[:, :, : int(np.sum(chosen))].sum((0, 1))


def in_another_dtype(x: Any, chosen: Any) -> Any:
    return np.sum(x[:, : int(np.sum(chosen))], axis=0, dtype=np.float64 if x.itemsize < 8 else np.float32)


def two_open_axes(x: Any, chosen: Any) -> Any:
    k = int(np.sum(chosen))
    return x.reshape(-1, 5, x.shape[1])[:, 4 - k :, :k].sum(0)


def every_other_column(x: Any, chosen: Any) -> Any:
    return x[:, ::-2].sum(0), x[:, 1::2].mean(0), x[:, ::3].std(0)


def under_a_mask(x: Any, chosen: Any) -> Any:
    return x[:, ::-2].sum(0, where=x[:, ::-2] > 0.2), x[:, :2].sum(0)


PROGRAMS = [
    first_columns, first_columns_kept, compressed, first_rows_of_transposed, deviation, two_axes, in_another_dtype,
    two_open_axes, every_other_column, under_a_mask,
]  # fmt: skip


CASES = [*((f, "f4") for f in PROGRAMS), (first_columns, "f8"), (first_columns, "c8")]


@pytest.mark.parametrize(("f", "dtype"), CASES)
def test_sums_beside_an_axis_that_may_have_one_element(f: Callable[..., Any], dtype: str) -> None:
    """One function serves all widths but those that a guard keeps apart; 200 rows are more than one leaf."""
    jitted = jg.jit(f)
    with config.override(cache=False, verify=True):
        for width in (2, 3):
            x = np.random.default_rng(width).random((200, width)).astype(dtype)
            for given in (x, np.asfortranarray(x)[::-1]):
                for count in (1, 2):
                    chosen = np.arange(width) < count
                    expected, found = f(given, chosen), jitted(given, chosen)
                    for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (expected, found)), strict=True):
                        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize(
    ("f", "branches"),
    [
        (first_columns, 1),
        (lambda x, chosen: x[chosen].sum(0), 0),  # of one row as of many: each element onto zero
        (lambda x, chosen: x[chosen].sum(1), 0),  # rows stay rows
        (lambda x, chosen: x[:, chosen].max(0), 0),
        (lambda x, chosen: x[:, 1:].sum(0), 0),  # a guard knows
        (lambda x, chosen: x.sum(0), 0),
    ],
)  # fmt: skip
def test_only_where_the_order_would_be_another_one_there_are_two(f: Callable[..., Any], branches: int) -> None:
    x = np.ones((3, 3))
    text = jg.jit(f).inspect_ir(x, np.array([True, True, False]), stage="loops")
    assert text.count("cmp eq") == branches


@pytest.mark.parametrize("f", [lambda x: np.expm1(x), lambda x: np.expm1(x[::-2]), lambda x: np.expm1(x[::-1][:1])])
def test_numpys_functions_see_the_strides_of_single_elements(f: Callable[..., Any]) -> None:
    """Vector code or none: NumPy decides by the sign of a stride that leads nowhere."""
    jitted = jg.jit(f, numerics="numpy")
    for value in np.random.default_rng(0).random(100) * 3:
        x = np.full(1, value)
        for given in (x, x[::-1], x[::-2], np.broadcast_to(value, (1,)), np.broadcast_to(value, (1,))[::-2]):
            np.testing.assert_array_equal(f(given), jitted(given), strict=True)
