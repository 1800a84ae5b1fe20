"""`einsum` against NumPy: contractions, diagonals, ellipses, implicit outputs, views, errors, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgraph as jg

_R = np.random.default_rng(0)
a, b, c = _R.normal(size=(3, 4)), _R.normal(size=(4, 5)), _R.normal(size=(5, 3))
T, U, v, s = _R.normal(size=(2, 3, 4)), _R.normal(size=(2, 4, 5)), _R.normal(size=4), _R.normal(size=(4, 4))
k = _R.integers(0, 9, (3, 4))

CASES: list[tuple[Any, ...]] = [
    ("ij,jk->ik", a, b), ("ij,jk", a, b), (" i j , j k -> k i ", a, b), ("ij->ji", a), ("ji", a), ("ij", a),
    ("ii", s), ("ii->i", s), ("ij->", a), ("ij->j", a), ("i->", v), ("i,i", v, v), ("i,j", v, v), ("i,i->i", v, v),
    ("ij,j->i", a, v), ("bij,bjk->bik", T, U), ("bij,bjk->ik", T, U), ("bij,bjk->b", T, U), ("ij,ij->ij", a, a),
    ("ij,ij->", a, a), ("ij,ij->i", a, a), ("ij,jk,kl->il", a, b, c), ("ij,jk,ki->", a, b, c), ("i,ij,j->", a[:, 0], a, v),
    ("...ij,...jk->...ik", T, U), ("...ij->...ji", T), ("...i->...", T), ("ij...,jk->ik...", a, b), ("ii,jk", s, a),
    ("iij->j", _R.normal(size=(3, 3, 2))), ("ij,kj->ik", k, k), ("abc,cd,ef->abdef", T, b, a), (",ij->ij", 2.0, a),
    ("ij,jk->ik", a.astype(np.float32), b.astype(np.float32)), ("ij,jk->ik", a[:1], b), ("ij,jk", np.asfortranarray(a), b),
    ("ij,ij->ij", a, a[:1]), ("ij,jk", k > 3, (k > 3).T), ("ij,jk", a + 1j * a, b), ("ij,j", a[:, ::-1], v[::-1]),
    ("ij,jk->ik", np.zeros((0, 4)), b), ("ij,jk->ik", np.zeros((3, 0)), np.zeros((0, 2))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].replace(" ", ""))
def test_against_numpy(case: tuple[Any, ...]) -> None:
    text, *operands = case
    wanted = np.einsum(text, *operands)
    got = jg.jit(lambda *x: np.einsum(text, *x))(*operands)
    assert type(got) is type(wanted)
    assert (np.asarray(got).dtype, np.shape(got)) == (np.asarray(wanted).dtype, np.shape(wanted))
    np.testing.assert_allclose(got, wanted, rtol=1e-12 if np.asarray(got).dtype != np.float32 else 1e-5, atol=1e-12)


def test_axes_by_number_and_out() -> None:
    def f(x: Any, y: Any, out: Any) -> Any:
        np.einsum(x, [0, 1], y, [1, 2], [2, 0], out=out)
        return np.einsum(x, [Ellipsis, 0], [0, Ellipsis]) + 0

    out, other = np.zeros((5, 3)), np.zeros((5, 3))
    np.testing.assert_array_equal(jg.jit(f)(a, b, out), f(a, b, other))
    np.testing.assert_allclose(out, other, rtol=1e-14)


def test_results_without_a_sum_are_views() -> None:
    def f(x: Any) -> Any:
        np.einsum("ii->i", x)[:] = 7.0
        return np.einsum("ij->ji", x)

    x, y = s.copy(), s.copy()
    got, wanted = jg.jit(f)(x), f(y)
    np.testing.assert_array_equal(x, y)
    assert np.shares_memory(got, x)
    assert got.strides == wanted.strides


@pytest.mark.parametrize(
    ("text", "operands"),
    [("ij,jk->iz", (a, b)), ("ij,jk->ii", (a, b)), ("ij", (a, b)), ("ij,jk", (a, a)), ("ijk", (a,)), ("i", (a,))],
)
def test_errors_are_numpys(text: str, operands: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError) as wanted:
        np.einsum(text, *operands)
    with pytest.raises(type(wanted.value)):
        jg.jit(lambda *x: np.einsum(text, *x))(*operands)


def test_contractions_are_matrix_products_with_gradients() -> None:
    names = [op.name for op in jg.jit(lambda x, y: np.einsum("ij,jk->ik", x, y)).graph(a, b).walk()]
    assert "matmul" in names
    assert "host_call" not in names
    gradient = jg.grad(lambda x, y: np.einsum("ij,jk->ik", x, y).sum())(a, b)
    np.testing.assert_allclose(gradient, np.ones((3, 5)) @ b.T, rtol=1e-13)


ONES = [
    ((1,), (1, 8)),
    ((1, 1), (1, 8)),
    ((8, 1), (1,)),
    ((8, 1), (1, 1)),
    ((1,), (1,)),
    ((3, 1), (1, 4)),
    ((4,), (4, 1)),
]


@pytest.mark.parametrize("dtype", ["c8", "c16", "f4"])
@pytest.mark.parametrize(("left", "right"), ONES)
def test_products_with_one_element_are_blas_products_with_a_number(left: Any, right: Any, dtype: str) -> None:
    rng = np.random.default_rng(5)

    def program(x: Any, y: Any) -> Any:
        return np.dot(x, y), np.inner(x, y.T if y.ndim > 1 else y), np.tensordot(x, y, 1), np.tensordot(x, y, 0)

    compiled = jg.jit(program)
    for _ in range(5):
        x, y = ((rng.normal(size=s) + (1j * rng.normal(size=s) if dtype[0] == "c" else 0)) for s in (left, right))
        x, y = x.astype(dtype), y.astype(dtype)
        for found, expected in zip(compiled(x, y), program(x, y), strict=True):
            assert type(found) is type(expected)
            assert found.shape == expected.shape
            assert found.tobytes() == expected.tobytes()
