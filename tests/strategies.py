"""What tests draw from: arrays over dtypes, layouts and special values; comparison by bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from jitgraph import dtypes

DTYPES = dtypes.COMPILED
FLOATS = (dtypes.F32, dtypes.F64)
INTEGERS = tuple(d for d in DTYPES if d.kind in "iu")

#: Memory layouts by name. "broadcast" has a zero stride, "zero_d" no axis, "empty" no element.
LAYOUTS = ("C", "F", "permuted", "strided", "padded", "negative", "broadcast", "zero_d", "empty")


def specials(dtype: np.dtype) -> np.ndarray:
    """Values at which operators go wrong: zeros, ones, extremes; for floats NaN, infinities, subnormals, halves."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wanted = [
            0,
            1,
            2,
            3,
            7,
            -1,
            -2,
            -3,
            -7,
            info.min,
            info.min + 1,
            info.max,
            info.max - 1,
            info.max // 2,
            8,
            31,
            63,
            64,
        ]
        return np.array([v for v in wanted if info.min <= v <= info.max], dtype)
    limits = np.finfo(dtype)
    positive = [
        0.0, float(limits.smallest_subnormal), float(limits.tiny), float(limits.eps), 0.1, 0.49999997, 0.5, 1.0,
        1.5, 2.0, 2.5, 3.0, 10.0, 1e4, 2.0**31, 2.0**52, 2.0**53 + 2, 2.0**63, float(limits.max), math.inf, math.nan,
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.array([*positive, *(-v for v in positive)]).astype(dtype)


def numbers(
    rng: np.random.Generator,
    dtype: np.dtype,
    count: int,
    domain: tuple[float, float] | None = None,
    special: float = 0.4,
) -> np.ndarray:
    """`count` values: a share of `special` ones, the others spread over magnitudes (over `domain` if there is one)."""
    if dtype.kind == "b":
        return rng.random(count) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        small = rng.integers(max(info.min, -20), 20, count).astype(dtype)
        values = np.where(rng.random(count) < 0.5, wide, small)
    elif domain is not None:
        values = rng.uniform(max(domain[0], -1e30), min(domain[1], 1e30), count).astype(dtype)
        near = rng.uniform(max(domain[0], -3.0), min(domain[1], 3.0), count).astype(dtype)
        values = np.where(rng.random(count) < 0.5, values, near)
    else:
        values = (rng.standard_normal(count) * 10.0 ** rng.uniform(-6, 6, count)).astype(dtype)
        whole = rng.integers(-50, 50, count).astype(dtype)
        values = np.where(rng.random(count) < 0.7, values, whole)
    return np.where(rng.random(count) < special, rng.choice(specials(dtype), count), values)


def array(
    rng: np.random.Generator,
    dtype: np.dtype,
    layout: str = "C",
    shape: tuple[int, ...] = (3, 4, 5),
    domain: tuple[float, float] | None = None,
    special: float = 0.4,
) -> np.ndarray:
    """An array of `shape` (save for "zero_d" and "empty") in one of `LAYOUTS`."""
    ndim = len(shape)
    if layout == "zero_d":
        return np.array(numbers(rng, dtype, 1, domain, special)[0])
    if layout == "empty":
        shape = (*shape[:-1], 0)
    values = numbers(rng, dtype, math.prod(shape), domain, special).reshape(shape)
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "permuted" and ndim > 1:
        perm = [*range(1, ndim), 0] if ndim > 2 else [1, 0]
        return np.ascontiguousarray(values.transpose(perm)).transpose(np.argsort(perm))
    if layout in ("strided", "padded"):
        step = 2 if layout == "strided" else 1
        base = np.zeros([n * step + (layout == "padded") for n in shape], dtype)
        view = base[(*(slice(0, n * step, step) for n in shape), ...)]
        view[...] = values
        return view
    if layout == "negative":
        flip = tuple(slice(None, None, -1 if k % 2 == 0 else 1) for k in range(ndim))
        return np.ascontiguousarray(values[flip])[flip]
    if layout == "broadcast" and ndim:
        return np.broadcast_to(values[:1], shape)
    return values


def arrays(
    rng: np.random.Generator,
    dtype: np.dtype,
    shape: tuple[int, ...] = (3, 4, 5),
    domain: tuple[float, float] | None = None,
) -> Iterator[tuple[str, np.ndarray]]:
    """One array in each layout, with its name."""
    for layout in LAYOUTS:
        yield layout, array(rng, dtype, layout, shape, domain)


def shapes(max_ndim: int = 4, max_size: int = 7) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, max_size), max_size=max_ndim).map(tuple)


def array_cases(dtypes_: tuple[np.dtype, ...] = DTYPES, max_ndim: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Arrays of any dtype, layout and shape, for hypothesis; a failure shrinks to few axes and small sizes."""

    def build(parts: tuple[np.dtype, str, tuple[int, ...], int]) -> np.ndarray:
        dtype, layout, shape, seed = parts
        if layout in ("zero_d", "empty") or (layout == "broadcast" and 0 in shape):
            layout = "C"
        return array(np.random.default_rng(seed), dtype, layout, shape)

    return st.tuples(st.sampled_from(dtypes_), st.sampled_from(LAYOUTS), shapes(max_ndim), st.integers(0, 2**31)).map(
        build
    )


def same_bits(a: Any, b: Any, zero_sign: bool = True) -> bool:
    """Equal dtype, shape and bits, all NaNs being one; with `zero_sign=False` -0.0 and 0.0 are one, too."""
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real, zero_sign) and same_bits(x.imag, y.imag, zero_sign)
    if x.dtype.kind != "f":
        return bool(np.array_equal(x, y))
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    if zero_sign:
        equal &= (np.signbit(x) == np.signbit(y)) | np.isnan(x)
    return bool(np.all(equal))


def assert_same_bits(a: Any, b: Any, what: str = "", zero_sign: bool = True) -> None:
    """Fail with the first elements that differ."""
    if same_bits(a, b, zero_sign):
        return
    x, y = np.asarray(a), np.asarray(b)
    assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{what}: {x.dtype}{x.shape} against {y.dtype}{y.shape}"
    differs = [i for i in np.ndindex(x.shape) if not same_bits(x[i], y[i], zero_sign)]
    first = "; ".join(f"{i}: {x[i]!r} against {y[i]!r}" for i in differs[:5])
    raise AssertionError(f"{what}: {len(differs)} of {x.size} elements differ: {first}")


def ulp_distance(found: Any, true: Any, dtype: np.dtype) -> np.ndarray:
    """|found - true| in units of the last place of `dtype` at the true value; 0 where both are NaN or equal infinities.

    `true` is in a wider format (float64 for float32) or the best known value.
    """
    x, y = np.asarray(found, np.longdouble), np.asarray(true, np.longdouble)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(y).astype(dtype)).astype(np.longdouble)
        unit = np.where(np.isfinite(unit), unit, np.spacing(np.finfo(dtype).max))
        distance = np.abs(x - y) / unit
    same = (np.isnan(x) & np.isnan(y)) | (x == y)
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance)).astype(np.float64)
