"""The table of C functions: every name has an address, and libm's compute what NumPy's do."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.abi import TABLE
from jitgraph.runtime import table


def test_every_name_has_an_address() -> None:
    addresses = list(table.table())[: len(TABLE)]
    assert len(addresses) == len(TABLE)
    assert all(addresses)
    assert len(set(addresses)) == len(TABLE)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("pow", np.power),
        ("fmod", np.fmod),
        ("atan2", np.arctan2),
        ("sin", np.sin),
        ("cbrt", np.cbrt),
        ("hypot", np.hypot),
    ],
)
def test_libm(name: str, function: object) -> None:
    for suffix, dtype in (("", np.float64), ("f", np.float32)):
        arity = len(table.signature(name + suffix)[1])
        arguments = [dtype(v) for v in (0.75, 1.5)[:arity]]
        found = table.call(name + suffix, arguments)
        np.testing.assert_allclose(found, function(*arguments), rtol=1e-6)  # type: ignore[operator]


@pytest.mark.parametrize(("letter", "dtype"), [("d", np.float64), ("c", np.complex64), ("z", np.complex128)])
def test_fallbacks_of_blas(letter: str, dtype: type) -> None:
    """What stands in for BLAS where NumPy has none of its own."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)) for _ in range(2))
    if dtype is np.float64:
        a, b = a.real.copy(), b.real.copy()
    a, b = a.astype(dtype), b.T.astype(dtype)
    b = np.ascontiguousarray(b)
    c = np.empty((3, 3), dtype)
    factors = np.array([1, 0], dtype)
    one, zero = (factors.ctypes.data, factors.ctypes.data + factors.itemsize) if letter in "cz" else (1.0, 0.0)
    gemm = table._fallback(f"cblas_{letter}gemm")
    gemm(101, 111, 111, 3, 3, 4, one, a.ctypes.data, 4, b.ctypes.data, 3, zero, c.ctypes.data, 3)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    if letter in "cz":
        table._fallback(f"cblas_{letter}dotu_sub")(4, a.ctypes.data, 1, b.ctypes.data, 3, c.ctypes.data)
        np.testing.assert_allclose(c[0, 0], np.dot(a[0], b[:, 0]), rtol=1e-5)
