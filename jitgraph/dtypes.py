"""The dtypes of the IR: NumPy's own `np.dtype` objects, and the short names that dumps use for them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

DType = np.dtype

BOOL = np.dtype(np.bool_)
I8, I16, I32, I64 = (np.dtype(f"i{n}") for n in (1, 2, 4, 8))
U8, U16, U32, U64 = (np.dtype(f"u{n}") for n in (1, 2, 4, 8))
F16, F32, F64 = (np.dtype(f"f{n}") for n in (2, 4, 8))
C64, C128 = np.dtype("c8"), np.dtype("c16")

#: dtypes that compiled code computes with.
COMPILED: tuple[DType, ...] = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, C64, C128)

#: The same in words, for messages.
COMPILED_TEXT = "bool, integers, float16, float32, float64, complex64, complex128"

_NAMES: dict[DType, str] = {
    BOOL: "bool",
    I8: "i8", I16: "i16", I32: "i32", I64: "i64",
    U8: "u8", U16: "u16", U32: "u32", U64: "u64",
    F16: "f16", F32: "f32", F64: "f64", C64: "c64", C128: "c128",
}  # fmt: skip
_OTHER_ORDER = "be" if sys.byteorder == "little" else "le"
#: dtypes in the other byte order, which only memory has: `f64be` is float64 with its bytes swapped. To the native ones.
_SWAPPED: dict[DType, DType] = {d.newbyteorder("S"): d for d in COMPILED if d.itemsize > 1}
_NAMES.update({swapped: _NAMES[d] + _OTHER_ORDER for swapped, d in _SWAPPED.items()})
_BY_NAME = {name: dtype for dtype, name in _NAMES.items()}


def native(dtype: DType) -> DType:
    """The dtype in the machine's byte order: what an element is in a register."""
    return _SWAPPED.get(dtype, dtype)


def in_memory() -> Iterable[DType]:
    """All dtypes that arrays of compiled code may have."""
    return (*COMPILED, *_SWAPPED)


def short_name(dtype: DType) -> str:
    """`f64` for float64, `bool` for bool; NumPy's own name for a dtype outside the compiled set."""
    return _NAMES.get(dtype) or dtype.name


def from_short_name(name: str) -> DType:
    """The dtype that `short_name` prints as `name`.

    Raises:
        KeyError: `name` is no dtype of the IR.
    """
    return _BY_NAME[name]


def is_complex(dtype: DType) -> bool:
    return dtype.kind == "c"


def part_of(dtype: DType) -> DType:
    """The native dtype of the real and the imaginary part of a complex dtype; any other dtype itself, as `native`."""
    dtype = _SWAPPED.get(dtype, dtype)
    return _PARTS.get(dtype, dtype)


def complex_of(part: DType) -> DType:
    """The complex dtype whose parts have the dtype `part`."""
    return C64 if part == F32 else C128


_PARTS: dict[DType, DType] = {C64: F32, C128: F64}


def is_float(dtype: DType) -> bool:
    return dtype.kind == "f"


def is_signed(dtype: DType) -> bool:
    return dtype.kind == "i"


def is_integer(dtype: DType) -> bool:
    """Signed or unsigned integer; bool is not one."""
    return dtype.kind in "iu"
