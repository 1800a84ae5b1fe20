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


_SLICED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gathered": lambda x: x[1:, np.array([0, 0])],
    "permuted": lambda x: x.transpose(1, 2, 0),
    "some rows": lambda x: x[:2],
    "some columns": lambda x: x[:, :2],
    "columns of columns": lambda x: x[:, :2][:, :1],
    "last axis": lambda x: x[..., :2],
    "every other": lambda x: x[..., ::2],
    "reversed": lambda x: x[:, ::-1],
    "picked": lambda x: x[:, 0],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "of a result": lambda x: (x.T + 1)[1:],
}
_SHAPES = [(2, 2, 2), (2, 3, 4), (1, 3, 4), (3, 1, 4), (3, 4, 1), (1, 1, 3), (2, 1, 2), (1, 2, 1), (1, 1, 1), (0, 2, 3)]


@pytest.mark.parametrize("name", _SLICED)
def test_contiguous_by_size(name: str) -> None:
    """What lies in one piece for the sizes at hand alone: its order, what shares its memory, its flags."""
    view = _SLICED[name]

    def arrays(x: np.ndarray) -> tuple[np.ndarray, ...]:
        v = view(x)
        return (
            v,
            np.ravel(v),
            v.ravel("A"),
            v.reshape(-1, order="A"),
            v.flatten("A"),
            np.asfortranarray(v),
            np.ascontiguousarray(v),
            np.zeros_like(v, order="A"),
        )

    def flags(x: np.ndarray) -> tuple[bool, ...]:
        v = view(x)
        return v.flags.c_contiguous, v.flags.f_contiguous, v.flags.fnc, np.isfortran(v)

    compiled, told = jg.jit(arrays), jg.jit(flags)
    for shape in _SHAPES:
        for order in "CF":
            x = np.asarray(np.arange(24.0)[: np.prod(shape)].reshape(shape), order=order)
            wanted, found = arrays(x), compiled(x)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)
                assert b.size == 0 or _steps(a) == _steps(b)
            shared = [[np.shares_memory(a, b) for a in (*wanted, x)] for b in wanted]
            assert [[np.shares_memory(a, b) for a in (*found, x)] for b in found] == shared, (shape, order)
            assert told(x) == flags(x)


def _steps(x: np.ndarray) -> list[int]:
    """The strides that a program can see: of axes of more than one element."""
    return [step for step, size in zip(x.strides, x.shape, strict=True) if size > 1]


@pytest.mark.filterwarnings("ignore:.*the order of memory of an array whose sizes")
def test_order_of_sizes_that_are_data() -> None:
    """In Python: one row alone lies in another order."""

    def f(x: np.ndarray) -> np.ndarray:
        return x[x[:, 0, 0] > 2].transpose(2, 0, 1).reshape(-1, order="A")

    compiled = jg.jit(f)
    for count in (3, 1, 2):
        x = np.arange(12.0).reshape(3, 2, 2) - 4 * (3 - count)
        np.testing.assert_array_equal(compiled(x), f(x), strict=True)


@pytest.mark.parametrize("shape", [(4, 4), (5, 4), (4, 1), (3, 4)])
def test_one_row_of_a_broadcast_argument(shape: tuple[int, int]) -> None:
    """It lies in one piece, for it has no row that repeats; its views are read-only as it is."""

    def f(x: np.ndarray) -> tuple[np.ndarray, ...]:
        v = x[:-3]
        return np.ravel(v), v.reshape(-1), np.ascontiguousarray(v), v.T.ravel("F"), x[:, :-3].ravel()

    x = np.broadcast_to(np.arange(float(shape[1])), shape)
    wanted, found = f(x), jg.jit(f)(x)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
        assert a.size == 0 or (a.flags.writeable, np.shares_memory(a, x)) == (b.flags.writeable, np.shares_memory(b, x))


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0), (2, 2)])
def test_nothing_lies_in_every_order(shape: tuple[int, int]) -> None:
    """Reshapes of nothing are views: read-only where the array is; an order needs no copy."""

    def views(x: np.ndarray) -> tuple[np.ndarray, ...]:
        return x.T.reshape(-1), x.T.ravel(), np.ravel(x, "F"), x.T.reshape(x.shape)

    def orders(x: np.ndarray) -> tuple[np.ndarray, ...]:
        return np.asfortranarray(x), np.ascontiguousarray(x)

    x = np.ones(shape)
    for writable in (True, False):
        x.flags.writeable = writable
        flags = [v.flags.writeable for v in views(x)]
        assert [v.flags.writeable for v in jg.jit(views)(x)] == flags
        assert [v is x for v in jg.jit(orders)(x)] == [v is x for v in orders(x)]
