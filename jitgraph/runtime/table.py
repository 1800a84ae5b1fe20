"""The table of C functions that machine code calls: addresses of `abi.TABLE`, in its order.

libm comes from the process, memory from the pool. BLAS is NumPy's own OpenBLAS, so that products have NumPy's bits; a
NumPy built on another BLAS gets callbacks onto `np.dot`, which are slow per call but right.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jitgraph import signals
from jitgraph.abi import NEVER, TABLE, TABLE_BYTES, TABLE_CLOCK, TABLE_LIMIT, TABLE_SIGNALS, TABLE_STREAM
from jitgraph.errors import InternalError
from jitgraph.once import once
from jitgraph.runtime.cpu import recognise
from jitgraph.runtime.pool import pool

_I = ctypes.c_int64
_P = ctypes.c_void_p
_ROW_MAJOR, _NO_TRANSPOSE, _UPPER = 101, 111, 121
_keep: list[Any] = []  # callbacks and libraries, for as long as the process lives


@once
def table() -> ctypes.Array[ctypes.c_void_p]:
    """The addresses, one for each name of `abi.TABLE`, then what `threads` fills in: one thread until it does."""
    libm, blas = _libm(), blas_library()
    addresses = (ctypes.c_void_p * (TABLE_BYTES // 8))()
    addresses[TABLE_LIMIT // 8] = NEVER
    for k, address in enumerate(signals.addresses()):
        addresses[TABLE_SIGNALS // 8 + k] = address
    addresses[TABLE_CLOCK // 8] = _address(ctypes.CDLL(None), "clock_gettime")
    addresses[TABLE_STREAM // 8] = recognise().l3_bytes * 3 // 4  # where both ways were measured to be as good
    memory = pool()
    for i, name in enumerate(TABLE):
        if name in ("malloc", "free"):
            addresses[i] = memory.addresses[f"pool_{name}"]
        else:
            addresses[i] = _blas_address(blas, name) if name.startswith("cblas_") else _address(libm, name)
    return addresses


def blas_name() -> str:
    """Where the BLAS routines come from, for reports."""
    library = blas_library()
    return "np.dot" if library is None else Path(library._name).name


def _libm() -> ctypes.CDLL:
    for name in (None, "libm.so.6", "libm.dylib", "msvcrt"):
        try:
            library = ctypes.CDLL(name)
        except (OSError, TypeError):
            continue
        if hasattr(library, "atan2f"):
            return library
    raise InternalError("no C maths library found in this process")


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), _P).value or 0


@cache
def blas_library() -> ctypes.CDLL | None:
    """NumPy's bundled OpenBLAS, already loaded by it; None if this NumPy was built otherwise."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs", package / ".libs"):
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():  # noqa: PTH208  # a glob compiles patterns
            if "openblas" not in name:
                continue
            try:
                library = ctypes.CDLL(str(folder / name))
            except OSError:
                continue
            if hasattr(library, "scipy_cblas_dgemm64_"):
                return library
    return None


def _blas_address(library: ctypes.CDLL | None, name: str) -> int:
    """The routine with 64-bit integers: `cblas_dgemm` is `scipy_cblas_dgemm64_`."""
    if library is not None and hasattr(library, f"scipy_{name}64_"):
        return _address(library, f"scipy_{name}64_")
    callback = _fallback(name)
    _keep.append(callback)
    return ctypes.cast(callback, _P).value or 0


def _matrix(address: int, rows: int, columns: int, leading: int, dtype: np.dtype, order: int, trans: int) -> np.ndarray:
    """op(A), rows x columns, of a BLAS operand."""
    if trans != _NO_TRANSPOSE:
        rows, columns = columns, rows
    row, column = (leading, 1) if order == _ROW_MAJOR else (1, leading)
    flat = _elements(address, (rows - 1) * row + (columns - 1) * column + 1 if rows and columns else 0, dtype)
    item = dtype.itemsize
    a = np.lib.stride_tricks.as_strided(flat, (rows, columns), (row * item, column * item))
    return a if trans == _NO_TRANSPOSE else a.T


def _vector(address: int, n: int, step: int, dtype: np.dtype) -> np.ndarray:
    flat = _elements(address, (n - 1) * abs(step) + 1 if n else 0, dtype)
    return flat[:: abs(step) or 1][:n] if step >= 0 else flat[::-step][:n][::-1]


def _elements(address: int, count: int, dtype: np.dtype) -> np.ndarray:
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.ndarray((count,), dtype, memory)


_BLAS_DTYPES = {letter: np.dtype(code) for letter, code in zip("sdcz", ("f4", "f8", "c8", "c16"), strict=True)}


def _fallback(name: str) -> Any:
    """A C-callable stand-in over `np.dot` with the signature of the CBLAS routine `name` (64-bit integers)."""
    dtype = _BLAS_DTYPES[name[6]]

    def factor(x: Any) -> Any:
        """What to multiply by: complex ones come by address."""
        return _elements(x, 1, dtype)[0] if dtype.kind == "c" else dtype.type(x)

    def update(c: np.ndarray, alpha: Any, product: np.ndarray, beta: Any) -> None:
        first, second = factor(alpha), factor(beta)
        scaled = product if first == 1 else first * product
        c[...] = scaled if second == 0 else scaled + second * c

    def gemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        left = _matrix(a, m, k, lda, dtype, order, ta)
        right = _matrix(b, k, n, ldb, dtype, order, tb)
        update(_matrix(c, m, n, ldc, dtype, order, _NO_TRANSPOSE), alpha, np.dot(left, right), beta)

    def gemv(order, ta, m, n, alpha, a, lda, x, incx, beta, y, incy):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        rows, columns = (m, n) if ta == _NO_TRANSPOSE else (n, m)
        product = np.dot(_matrix(a, rows, columns, lda, dtype, order, ta), _vector(x, columns, incx, dtype))
        update(_vector(y, rows, incy, dtype), alpha, product, beta)

    def dot(n, x, incx, y, incy):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return float(np.dot(_vector(x, n, incx, dtype), _vector(y, n, incy, dtype)))

    def dotu_sub(n, x, incx, y, incy, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        _elements(result, 1, dtype)[0] = np.dot(_vector(x, n, incx, dtype), _vector(y, n, incy, dtype))

    def syrk(order, uplo, ta, n, k, alpha, a, lda, beta, c, ldc):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        left = _matrix(a, n, k, lda, dtype, order, ta)
        target = _matrix(c, n, n, ldc, dtype, order, _NO_TRANSPOSE)
        product = target.copy()
        update(product, alpha, np.dot(left, left.T), beta)
        triangle = np.triu_indices(n) if uplo == _UPPER else np.tril_indices(n)
        target[triangle] = product[triangle]

    functions: dict[str, Callable[..., Any]] = {
        "gemm": gemm, "gemv": gemv, "dot": dot, "dotu_sub": dotu_sub, "syrk": syrk,
    }  # fmt: skip
    result, arguments = signature(name)
    return ctypes.CFUNCTYPE(result, *arguments)(functions[name[7:]])


def signature(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Result and argument types of a C function of the table, as ctypes has them."""
    if not name.startswith("cblas_"):
        real: Any = ctypes.c_float if name.endswith("f") else ctypes.c_double
        binary = name.startswith(("fmod", "pow", "atan2", "hypot"))
        return real, (real, real) if binary else (real,)
    real = {"s": ctypes.c_float, "d": ctypes.c_double}.get(name[6], _P)
    return {
        "gemm": (None, (_I, _I, _I, _I, _I, _I, real, _P, _I, _P, _I, real, _P, _I)),
        "gemv": (None, (_I, _I, _I, _I, real, _P, _I, _P, _I, real, _P, _I)),
        "dot": (real, (_I, _P, _I, _P, _I)),
        "dotu_sub": (None, (_I, _P, _I, _P, _I, _P)),
        "syrk": (None, (_I, _I, _I, _I, _I, real, _P, _I, real, _P, _I)),
    }[name[7:]]


def call(name: str, arguments: list[Any]) -> Any:
    """Call a function of the table from Python: addresses, integers and floats in, a float or None out."""
    result, types = signature(name)
    address = table()[TABLE.index(name)] or 0
    return ctypes.CFUNCTYPE(result, *types)(address)(*arguments)
