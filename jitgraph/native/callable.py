"""The type of jitted functions: a heap type over a plain Python class, with room for a vectorcall.

Instances have two more words behind those of the Python class: the address of a vectorcall, and one that is its own.
While the first is 0 CPython calls `__call__` of the Python class; `patch` puts native code there. No LLVM is needed.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_DEFAULT, _METHOD_DESCRIPTOR, _HAVE_VECTORCALL = 1 << 18, 1 << 17, 1 << 11
_MEMBERS, _SSIZE, _READONLY = 72, 19, 1  # Py_tp_members, Py_T_PYSSIZET, Py_READONLY
_keep: list[Any] = []


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


def supported() -> bool:
    """Whether this interpreter has types as they are made here: CPython with its lock, 64 bits."""
    threads = not getattr(sys, "_is_gil_enabled", lambda: True)()
    return sys.implementation.name == "cpython" and not threads and ctypes.sizeof(ctypes.c_void_p) == 8


def callable_type(base: type) -> type:
    """A subclass of `base` of the same name whose instances can be patched; `base` itself where that is not possible.

    Args:
        base: a Python class with `__call__` and `__get__`.
    """
    known = _types.get(base)
    if known is None:
        known = _types[base] = _new_type(base) if supported() else base
    return known


_types: dict[type, type] = {}


def _new_type(base: type) -> type:
    at = base.__basicsize__
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", _SSIZE, at, _READONLY, None))
    slots = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(members)))
    name = f"{base.__module__}.{base.__name__}".encode()
    spec = _Spec(name, at + 16, 0, _DEFAULT | _HAVE_VECTORCALL | _METHOD_DESCRIPTOR, slots)
    _keep.extend((members, slots, spec))  # the type points at them
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec), ctypes.py_object)(
        ("PyType_FromSpecWithBases", ctypes.pythonapi)
    )
    made: type = make(ctypes.byref(spec), (base,))
    return made


def is_patchable(x: Any) -> bool:
    """Whether the object has room for a vectorcall."""
    kind = type(x)
    return kind.__base__ is not None and kind.__basicsize__ == kind.__base__.__basicsize__ + 16


def block_offset(kind: type) -> int:
    """Where instances of a type that `callable_type` made have their own word."""
    return kind.__basicsize__ - 8


def patch(x: Any, vectorcall: int, block: int) -> None:
    """Serve calls of `x` by native code. The block has to live until `unpatch`, or as long as `x`."""
    words = (ctypes.c_int64 * 2).from_address(id(x) + block_offset(type(x)) - 8)
    words[1] = block
    words[0] = vectorcall


def unpatch(x: Any) -> None:
    """Serve calls of `x` by Python again."""
    if is_patchable(x):
        patch(x, 0, 0)
