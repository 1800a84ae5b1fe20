"""`order=` of whatever has it: values, strides and sharing as in NumPy, in small and capital letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

Make = Callable[[np.ndarray, str], Any]

_MADE: dict[str, Make] = {
    "ravel": lambda x, o: x.ravel(o),
    "flatten": lambda x, o: x.flatten(o),
    "reshape": lambda x, o: x.reshape(-1, order=o),
    "method copy": lambda x, o: x.copy(o),
    "copy": lambda x, o: np.copy(x, o),
    "astype": lambda x, o: x.astype(float, order=o),
    "astype of its own": lambda x, o: x.astype(int, order=o, copy=False),
    "array": lambda x, o: np.array(x, order=o),
    "array of another dtype": lambda x, o: np.array(x, float, order=o),
    "array that need not copy": lambda x, o: np.array(x, order=o, copy=None),
    "asarray": lambda x, o: np.asarray(x, order=o),
    "zeros_like": lambda x, o: np.zeros_like(x, order=o),
    "full_like": lambda x, o: np.full_like(x, 3, float, order=o),
    "ufunc": lambda x, o: np.add(x, 1, order=o),
    "zeros": lambda x, o: np.zeros(x.shape, order=o),
}
_ARRAYS = {
    "C": np.arange(6).reshape(2, 3),
    "F": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "permuted": np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
    "strided": np.arange(24).reshape(4, 6)[::2, ::-1],
}


@pytest.mark.parametrize("name", _MADE)
def test_order(name: str) -> None:
    make = _MADE[name]
    for x in _ARRAYS.values():
        for order in "CFAKf":
            jitted = jg.jit(lambda x, order=order: make(x, order))
            try:
                wanted = make(x, order)
            except ValueError:
                with pytest.raises(ValueError, match="order"):
                    jitted(x)
                continue
            found = jitted(x)
            np.testing.assert_array_equal(found, wanted, strict=True)
            assert found.strides == wanted.strides
            assert np.shares_memory(found, x) == np.shares_memory(wanted, x)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_or"])
@pytest.mark.parametrize("dtype", ["?", "b", "i", "f"])
def test_dtype_of_folds(name: str, dtype: str) -> None:
    ufunc, x = getattr(np, name), np.array([3, 0, 1, 1, 2], "h")

    def folds(x: np.ndarray) -> Any:
        at = [0, 3, 1]
        return ufunc.reduce(x, dtype=dtype), ufunc.accumulate(x, dtype=dtype), ufunc.reduceat(x, at, dtype=dtype)

    try:
        wanted = folds(x)
    except TypeError:
        with pytest.raises(TypeError):
            jg.jit(folds)(x)
        return
    for a, b in zip(jg.jit(folds)(x), wanted, strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b, strict=True)
