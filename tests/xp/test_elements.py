"""Numbers that arrays are made of: Python's have to fit, each is cast on its own, ints become float32 by way of float."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


def array_of(x: Any, v: Any) -> Any:
    return np.array(v, x.dtype)


def listed(x: Any, v: Any) -> Any:
    return np.array([[v, 2.5]], x.dtype), np.asarray((v, 3), dtype=x.dtype)


def filled(x: Any, v: Any) -> Any:
    return np.full(2, v, x.dtype), np.full_like(x, v)


def assigned(x: Any, v: Any) -> Any:
    x[:] = [v, 1]
    return x


def element(x: Any, v: Any) -> Any:
    x[0] = v
    return x


def inserted(x: Any, v: Any) -> Any:
    return np.insert(x, 0, v), np.insert(x, [0, 1], v)


def padded(x: Any, v: Any) -> Any:
    return np.pad(x, 1, constant_values=v)


def weak(x: Any, v: Any) -> Any:
    return x + v


def joined(x: Any, v: Any) -> Any:
    return np.concatenate([x, v, 2], axis=None)


_EXACT = 2**60 + 2**36 + 1  # a float32 of this int is another one than that of its float64
_FITTING = (3, 300, -129, -1, True, 2.75, 1e300, float("nan"), 2**53 + 1, np.int64(300), np.float64(-7.5))


def same(f: Callable[..., Any], g: Callable[..., Any], dtype: str, value: Any) -> bool:
    def run(h: Callable[..., Any]) -> Any:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                made = h(np.zeros(2, dtype), value)
            except (OverflowError, ValueError, TypeError) as error:
                return next(c for c in (OverflowError, ValueError, TypeError) if isinstance(error, c))
        made = made if isinstance(made, tuple) else (made,)
        return [(m.dtype, m.shape, m.tobytes()) for m in made]

    return bool(run(f) == run(g))


@pytest.mark.parametrize("f", [array_of, listed, filled, assigned, inserted, padded], ids=lambda f: f.__name__)
def test_numbers_have_to_fit(f: Callable[..., Any]) -> None:
    jitted = jg.jit(f, numerics="numpy")
    for dtype in ("i1", "u4", "i8", "f4"):
        for value in _FITTING:
            unpromised = f in (filled, padded) and not isinstance(value, int) and not abs(value) < 2**31
            assert unpromised or same(f, jitted, dtype, value), (dtype, value)


@pytest.mark.parametrize("f", [array_of, listed, filled, element, weak, inserted], ids=lambda f: f.__name__)
def test_ints_become_single_floats_by_way_of_float(f: Callable[..., Any]) -> None:
    jitted = jg.jit(f, numerics="numpy")
    assert all(same(f, jitted, dtype, value) for dtype in ("f4", "c8") for value in (_EXACT, -_EXACT))


def test_flattened_numbers_are_weak() -> None:
    jitted = jg.jit(joined)
    for dtype in ("i1", "f4", "c8"):
        assert all(same(joined, jitted, dtype, v) for v in (3, 300, 2.5, 1j, True, np.int16(1)))


def places(x: Any, q: Any, k: Any) -> Any:
    return np.percentile(x, [q, 50], axis=k), np.quantile(x, q / 100, k), np.median(x, axis=(k,))


def test_axis_and_places_of_quantiles_are_arguments() -> None:
    jitted = jg.jit(places, numerics="numpy")
    for dtype in ("f4", "i8"):
        x = np.arange(12).reshape(3, 4).astype(dtype)
        for k in (0, 1, -1):
            for a, b in zip(places(x, 25, k), jitted(x, 25, k), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)


def test_joins_cast_as_asked() -> None:
    x, y, out = np.arange(3), np.array([2.5, 3.5, 4.5]), np.zeros(6)
    asked: list[dict[str, Any]] = [
        {"dtype": "i8", "casting": "safe"}, {"dtype": "c8", "casting": "no"}, {"casting": "equiv"},
        {"casting": "same_value"}, {"out": out, "dtype": "f8"}, {"out": out, "casting": "no"},
    ]  # fmt: skip
    for options in asked:

        def joined_as(x: Any, y: Any, options: Any = options) -> Any:
            return np.concatenate([x, y], **options)

        with pytest.raises((TypeError, ValueError)) as expected:
            joined_as(x, y)
        with pytest.raises(expected.type):
            jg.jit(joined_as)(x, y)
    swapped = jg.jit(lambda x, y: np.stack([x, y], dtype=">f8", casting="safe"))(x, y)
    assert swapped.dtype == ">f8"
    np.testing.assert_array_equal(swapped, [x, y])


def test_sums_in_long_doubles_are_refused() -> None:
    with pytest.raises(jg.errors.DTypeError):
        jg.jit(lambda x: np.sum(x, dtype="g"))(np.ones(3))


def inverted(x: Any, b: Any, k: Any) -> Any:
    return np.linalg.tensorinv(x, ind=k), np.linalg.tensorsolve(x, b)


def test_tensors_of_more_axes_are_solved() -> None:
    jitted = jg.jit(inverted, numerics="numpy")
    x, b = np.random.default_rng(0).standard_normal((3, 4, 4, 3)), np.ones((3, 4))
    for k in (2, 2):
        for want, got in zip(inverted(x, b, k), jitted(x, b, k), strict=True):
            np.testing.assert_array_equal(want, got)


def beside_rows(x: Any, v: Any) -> Any:
    return np.array([[v, 2], [0, 1]]), np.asarray([(0.5, True), [x[0], v]]), np.stack([[v, 2], [0, 1]])


def test_rows_of_known_numbers_stand_beside_traced_ones() -> None:
    jitted = jg.jit(beside_rows)
    for dtype in ("i1", "u8", "f4", "c8", "?"):
        assert all(same(beside_rows, jitted, dtype, v) for v in (3, 2.5, 1j, True, np.int16(1)))
