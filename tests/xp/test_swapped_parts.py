"""The real and imaginary parts of complex arrays whose bytes are in the other order: views that keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


def _into(x: Any) -> Any:
    x.real += 1
    x.imag[::2] *= x.real[::2]
    return x, x.imag


def _sorted(x: Any) -> Any:
    x.real.sort()
    return x


def _before_a_write(x: Any) -> Any:
    r = x.real
    x[...] = 2 * x
    return r + 1, r


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda x: np.zeros(3, x.imag.dtype),
    "copies": lambda x: (x.real.copy(), np.sort(x.real), np.take(x.imag, [0, 1]), x.real[x.real > 0], x.real.ravel()),
    "results of a native dtype": lambda x: (x.real + 1, -x.imag, np.concatenate([x.real, x.imag]), x.real.max()),
    "sums": lambda x: (x.real.sum(), x.imag.sum(axis=0), x.real.mean(axis=-1), x.imag.std(), np.cumsum(x.real)),
    "numbers in place of NaNs": lambda x: (np.nan_to_num(x), np.nan_to_num(x[..., 0]), np.nan_to_num(x / 0, nan=1.5)),
    "views": lambda x: (x.T.real, x[::-1].imag, x.real[:, ::2]),
    "writes": _into,
    "sort in place": _sorted,
    "a view that a write changes": _before_a_write,
}


@pytest.mark.parametrize("dtype", [">c8", ">c16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_of_swapped_numbers(name: str, dtype: str) -> None:
    f = PROGRAMS[name]
    rng = np.random.default_rng(0)
    for shape, layout in [((3, 4), "C"), ((70, 30), "F"), ((5, 2000), "reversed")]:
        whole = np.array(
            rng.standard_normal(shape) + 1j * rng.standard_normal(shape), dtype, order="F" if layout == "F" else "C"
        )
        mine = whole.copy(order="K")
        x, y = (whole[::-1], mine[::-1]) if layout == "reversed" else (whole, mine)
        with np.errstate(all="ignore"):
            wanted, found = f(x), jg.jit(f, numerics="numpy")(y)
        wanted, found = (z if isinstance(z, tuple) else (z,) for z in (wanted, found))
        for a, b in zip(wanted, found, strict=True):
            assert type(a) is type(b)
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        assert x.tobytes() == y.tobytes()
