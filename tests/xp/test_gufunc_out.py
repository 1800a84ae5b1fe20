"""`out=` of generalised ufuncs: loop axes are repeated as NumPy does, core axes are not."""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg

RNG = np.random.default_rng(8)
SHAPES = [
    (),
    (1,),
    (3,),
    (4,),
    (1, 4),
    (4, 1),
    (2, 4),
    (4, 3),
    (4, 5),
    (1, 5),
    (2, 4, 5),
    (2, 1, 5),
    (3, 4, 4),
    (5, 4, 5),
]
CASES = [
    (np.vecdot, (4, 3), (4, 3)), (np.vecdot, (1, 3), (1, 3)), (np.vecdot, (3,), (3,)),
    (np.matvec, (5, 4, 3), (3,)), (np.vecmat, (4,), (4, 5)),
    (np.matmul, (4, 3), (3, 5)), (np.matmul, (1, 4, 3), (3, 5)), (np.matmul, (3,), (3, 5)), (np.matmul, (3,), (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "left", "right"), CASES)
@pytest.mark.parametrize("shape", SHAPES)
def test_out(function: np.ufunc, left: tuple[int, ...], right: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x, y = RNG.normal(size=left), RNG.normal(size=right)

    def f(x, y, out):
        return function(x, y, out=out)

    expected, found = np.zeros(shape), np.zeros(shape)
    try:
        f(x, y, expected)
    except ValueError:
        with pytest.raises(ValueError, match="out"):
            jg.jit(f)(x, y, found)
        return
    assert jg.jit(f)(x, y, found) is found
    np.testing.assert_allclose(found, expected, rtol=1e-13)
