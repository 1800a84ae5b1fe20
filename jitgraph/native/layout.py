"""Offsets in objects of CPython and NumPy that native code reads, tested on live objects before the first use."""

from __future__ import annotations

import ctypes
import struct
import sys
import weakref
from functools import cache
from typing import Any

import numpy as np

from jitgraph import errstate
from jitgraph.dtypes import COMPILED
from jitgraph.once import once

_P, _I = ctypes.c_void_p, ctypes.c_int64
#: Positions in NumPy's table of C functions.
ARRAY_TYPE, SCALAR, NEW_FROM_DESCR, SET_BASE = 2, 60, 94, 282


def _at(address: int, kind: Any = _P) -> Any:
    return kind.from_address(address).value


@cache
def offsets() -> dict[str, int]:
    """The offsets, by the names that `vectorcall.py` uses."""
    head = object.__basicsize__
    return {
        "type": head - 8, "value": head, "size": head, "tuple_items": head + 8, "list_items": head + 8,
        "data": head, "nd": head + 8, "dims": head + 16, "strides": head + 24, "base": head + 32, "descr": head + 40,
        "flags": head + 48, "weak": head + 56, "byteorder": head + 10, "type_num": head + 12,
    }  # fmt: skip


@once
def numpy_table() -> ctypes.Array[ctypes.c_void_p]:
    """NumPy's table of C functions."""
    get = ctypes.PYFUNCTYPE(_P, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return (_P * 300).from_address(get(np._core._multiarray_umath._ARRAY_API, None))  # type: ignore[attr-defined]


@cache
def refusal() -> str:
    """Why native dispatch cannot work in this process; empty if it can."""
    if sys.implementation.name != "cpython":
        return "not CPython"
    if "free-threading build" in sys.version:  # `sysconfig` takes 2 ms to tell
        return "a build of Python without its global lock"
    if struct.calcsize("P") != 8 or sys.byteorder != "little":
        return "not a 64-bit little-endian machine"
    if int(np.__version__.split(".")[0]) < 2:
        return "NumPy is older than 2"
    try:
        wrong = _python_objects() or _arrays() or _scalars() or _functions() or _error_states()
    except (AttributeError, TypeError, ValueError, OverflowError, IndexError) as e:
        return f"the test of the layout of objects failed: {e!r}"
    return f"unknown layout of {wrong} objects" if wrong else ""


def _python_objects() -> str:
    """The kind of Python's objects that do not look as expected, or nothing."""
    o = offsets()
    number = 1.5
    if _at(id(number) + o["type"]) != id(float) or _at(id(number) + o["value"], ctypes.c_double) != number:
        return "float"
    pair = (number, "a")
    if _at(id(pair) + o["size"], _I) != 2 or _at(id(pair) + o["tuple_items"]) != id(number):
        return "tuple"
    items = [number, pair]
    if _at(id(items) + o["size"], _I) != 2 or _at(_at(id(items) + o["list_items"]) + 8) != id(pair):
        return "list"
    both = complex(2.5, -3.0)
    found = [_at(id(both) + o["value"] + k, ctypes.c_double) for k in (0, 8)]
    return "" if found == [2.5, -3.0] else "complex"


def _arrays() -> str:
    o = offsets()
    for a in (
        np.zeros((3, 5)),
        np.zeros((4, 6), "f4")[::2, ::-1],
        np.array(7, "i8"),
        np.zeros((2, 3), ">i4", order="F"),
        np.zeros(17, np.uint8)[1:].view("f8"),
    ):
        i = id(a)
        if _at(i + o["type"]) != id(np.ndarray) or _at(i + o["data"]) != a.__array_interface__["data"][0]:
            return "array"
        if _at(i + o["nd"], ctypes.c_int32) != a.ndim or _at(i + o["descr"]) != id(a.dtype):
            return "array"
        for name, sizes in (("dims", a.shape), ("strides", a.strides)):
            if a.ndim and tuple((_I * a.ndim).from_address(_at(i + o[name]))) != sizes:
                return "array"
        if (_at(i + o["base"]) or 0) != (id(a.base) if a.base is not None else 0) or _at(i + o["weak"]):
            return "array"
        if _at(i + o["flags"], ctypes.c_int32) & 0x701 != a.flags.num & 0x701:
            return "array"
        d = id(a.dtype)
        if _at(d + o["type_num"], ctypes.c_int32) != a.dtype.num:
            return "dtype"
        if _at(d + o["byteorder"], ctypes.c_char).decode() != a.dtype.byteorder:
            return "dtype"
    a = np.zeros(1)
    w = weakref.ref(a)
    return "" if _at(id(a) + o["weak"]) == id(w) else "array"


def _scalars() -> str:
    for dtype in COMPILED:
        x = dtype.type(1.5 + 2.5j if dtype.kind == "c" else 3)
        if ctypes.string_at(id(x) + offsets()["value"], dtype.itemsize) != x.tobytes():
            return str(dtype)
    return ""


def _error_states() -> str:
    """Whether the first word of what NumPy's variable holds tells how errors are handled; see `vectorcall.unheard`."""
    if errstate.VARIABLE is None:
        return "error state"
    for number, how in enumerate(("ignore", "warn", "raise", "call", "print", "log")):
        for shift, kind in ((0, "divide"), (3, "over"), (6, "under"), (9, "invalid")):
            handled: Any = {kind: how}
            with np.errstate(all="ignore"), np.errstate(**handled):
                state = errstate.VARIABLE.get()
                if _at(_at(id(state) + offsets()["value"]), _I) & 0xFFF != number << shift:
                    return "error state"
    return ""


def _functions() -> str:
    """The C functions of NumPy's that are used do what they are thought to do."""
    table = numpy_table()
    if table[ARRAY_TYPE] != id(np.ndarray):
        return "NumPy's table"
    new = ctypes.PYFUNCTYPE(ctypes.py_object, _P, _P, ctypes.c_int, _P, _P, _P, ctypes.c_int, _P)(
        table[NEW_FROM_DESCR]  # type: ignore[arg-type]
    )
    dtype = np.dtype("f8")
    sizes = (_I * 2)(2, 3)
    steps = (_I * 2)(8, 16)
    for strides, flags in ((None, 0), (None, 1), (ctypes.addressof(steps), 0)):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the call takes it
        made = new(id(np.ndarray), id(dtype), 2, ctypes.addressof(sizes), strides, None, flags, None)
        wanted = (24, 8) if strides is None and not flags else (8, 16)
        if type(made) is not np.ndarray or made.shape != (2, 3) or made.dtype != dtype or made.strides != wanted:
            return "new array"
        if not made.flags.owndata or not made.flags.writeable:
            return "new array"
    set_base = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(table[SET_BASE])  # type: ignore[arg-type]
    base = np.zeros(6)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
    made = new(
        id(np.ndarray), id(dtype), 2, ctypes.addressof(sizes), ctypes.addressof(steps), base.ctypes.data, 0x400, None
    )
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(base))
    if set_base(made, base) or made.base is not base or not made.flags.f_contiguous or not made.flags.writeable:
        return "view"
    scalar = ctypes.PYFUNCTYPE(ctypes.py_object, _P, _P, _P)(table[SCALAR])  # type: ignore[arg-type]
    value = ctypes.c_double(2.5)
    x = scalar(ctypes.addressof(value), id(dtype), None)
    return "" if type(x) is np.float64 and x == 2.5 else "scalar"
