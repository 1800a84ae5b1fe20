"""Products, norms, sums and ufunc.at have NumPy's bits in layouts where it goes another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def unaligned(x: Any) -> Any:
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    memory[...] = x
    return memory


def same_bits(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    wanted, found = make(), make()
    right, made = function(*wanted), jg.jit(function, numerics="numpy")(*found)
    for a, b in zip((right, *wanted), (made, *found), strict=True):
        assert type(a) is type(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
def test_products_into_columns(dtype: str) -> None:
    """NumPy computes the transposed product where rows of `out` are closer than columns."""

    def fill(x: Any, y: Any, out: Any) -> Any:
        return np.matmul(x, y, out=out)

    def in_place(x: Any, y: Any) -> Any:
        return np.matmul(x, y, out=x.T)

    for out in (np.zeros((5, 3), dtype).T, np.zeros((3, 5), dtype), np.zeros((7, 3), dtype)[1:6].T):
        same_bits(fill, lambda out=out: (numbers((3, 4), dtype, 1), numbers((4, 5), dtype, 2), out.copy("K")))
    same_bits(in_place, lambda: (numbers((5, 5), dtype, 1), numbers((5, 5), dtype, 2)))


def test_products_with_a_column_that_is_not_aligned() -> None:
    for dtype in ("f4", "f8", "c8"):
        same_bits(
            lambda x, y: np.array([x[0] @ y[:, 1]]),
            lambda dtype=dtype: (numbers((3, 33), dtype, 1), unaligned(numbers((33, 4), dtype, 2))),
        )


def test_outer_products_of_slices() -> None:
    for dtype in ("c8", "c16"):
        same_bits(
            lambda x, y: np.dot(x[:, 1:], y[:-1]),
            lambda dtype=dtype: (numbers((8, 2), dtype, 1), numbers((2, 7), dtype, 2)),
        )


def test_einsum_is_numpys() -> None:
    for dtype in ("f4", "c8"):
        for text in ("ij,jk->ik", "ij,kj->k", "ij,ij->"):
            same_bits(
                lambda x, y, text=text: np.array(np.einsum(text, x, y)),
                lambda dtype=dtype: (numbers((17, 17), dtype, 1), numbers((17, 17), dtype, 2)),
            )
    x, y = numbers((3, 7), ">f4", 1), numbers((7, 2), ">f4", 2)
    assert jg.jit(lambda x, y: np.einsum("ij,jk->ij", x, y))(x, y).dtype == np.float32


@pytest.mark.parametrize("order", [3, 0.5, -1, 0, np.inf, np.float64(3)])
def test_norms_in_numpys_steps(order: Any) -> None:
    for dtype in ("f4", "f8", "c8"):
        same_bits(lambda x: np.linalg.norm(x, order, axis=-1), lambda dtype=dtype: (numbers((9, 17), dtype, 1) + 2,))
        same_bits(lambda x: np.linalg.norm(x, order), lambda dtype=dtype: (numbers((17,), dtype, 1) + 2,))


def test_norms_that_numpy_refuses() -> None:
    with pytest.raises(ValueError, match="Improper number of dimensions to norm"):
        jg.jit(lambda x: np.linalg.norm(x, axis=(0, 1, 2)))(np.ones((2, 3, 4)))
    assert jg.jit(lambda x: np.linalg.norm(x, np.inf))(np.zeros(0)) == 0


def test_broadcast_axes_are_flattened_where_they_stand() -> None:
    def make() -> tuple[Any, ...]:
        return (np.broadcast_to(numbers((1, 3, 4), "f8", 1), (5, 3, 4)),)

    same_bits(lambda x: x.ravel("K"), make)
    same_bits(lambda x: np.array(np.linalg.norm(x)), make)


def test_sums_of_swapped_arrays_without_nan() -> None:
    def make() -> tuple[Any, ...]:
        x = numbers((9, 1000), ">c8", 1)
        x[3, 5] = np.nan
        return (x,)

    for function in (np.nansum, np.nanmean, np.nanvar):
        same_bits(lambda x, f=function: np.array(f(x)), make)


def test_sums_of_swapped_arrays_lie_as_their_operands() -> None:
    same_bits(
        lambda x, y: np.multiply.reduce(x + y, axis=-1),
        lambda: (numbers((4, 3, 2), "c8", 1).T, np.broadcast_to(numbers((2, 3, 1), ">c8", 2), (2, 3, 4))),
    )


def test_ufunc_at_goes_element_by_element() -> None:
    def program(x: Any, y: Any) -> Any:
        np.arctan2.at(x, [0, 0, -1], y[:1])
        return x

    same_bits(program, lambda: (numbers((4, 3, 2), ">f4", 1).T[::-1], numbers((2, 3, 4), "f4", 2)[..., ::-1]))


def test_averages_of_nothing() -> None:
    f = jg.jit(lambda x: np.average(x, axis=1))
    assert f(np.ones((2, 3))).tolist() == [1, 1]
    with pytest.raises(ZeroDivisionError):
        f(np.ones((0, 3)))
    mean, count = jg.jit(lambda x: np.average(x, axis=1, returned=True))(np.ones((1, 1)))
    assert (mean.tolist(), count.tolist()) == ([1], [1])
