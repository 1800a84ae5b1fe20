"""The table `rt` of native code: addresses of C functions and of objects, at places that never move.

The words live as long as the process: a call may be running in some thread, or come from a finaliser at exit.
"""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy as np

from jitgraph import errstate
from jitgraph.config import config
from jitgraph.native import layout
from jitgraph.native.records import Off
from jitgraph.once import once
from jitgraph.runtime.pool import pool
from jitgraph.storage import mode_variable

#: C functions, as CPython and the C library export them.
PYTHON = (
    "Py_IncRef", "Py_DecRef", "PyContextVar_Get", "PyObject_Vectorcall", "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong", "PyFloat_FromDouble", "PyComplex_FromDoubles", "PyTuple_New", "PyList_New", "PyDict_New",
    "PyDict_SetItem", "PyDict_Next", "PyDict_Size", "PyDict_GetItemWithError", "PyDict_Contains", "PyObject_GetAttr",
    "PyObject_GetItem", "PyObject_GenericGetDict", "PyObject_RichCompareBool", "PyObject_Size", "PyUnicode_Compare",
    "PyErr_Clear", "PyErr_Occurred", "PyErr_ExceptionMatches", "PyErr_NoMemory", "PyCell_Get", "PyFunction_GetCode",
    "PyFunction_GetGlobals", "PyFunction_GetClosure", "_PyType_Lookup", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
LIBRARY = ("aligned_alloc",)
#: Of the memory pool; 0 where there is none.
POOL = ("pool_array", "pool_alloc", "memory_free")
NUMPY = ("PyArray_NewFromDescr", "PyArray_Scalar", "PyArray_SetBaseObject")
VALUES = (
    "off", "mode", "errors", "errors_default", "none", "true", "false", "ndarray", "str", "dict", "function",
    "AttributeError", "name_of_dict",
)  # fmt: skip
#: The number of each word.
NUMBERS = {name: k for k, name in enumerate((*PYTHON, *LIBRARY, *NUMPY, *POOL, *VALUES))}

_libc = ctypes.CDLL(None)
_libc.calloc.restype = ctypes.c_void_p
_libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def lasting_words(count: int) -> Any:
    """`count` words that are never freed, 0 at first."""
    return (ctypes.c_int64 * count).from_address(_libc.calloc(count, 8))


@once
def table() -> Any:
    """The table, an array of words; its objects live for ever."""
    words = lasting_words(len(NUMBERS))
    for name in PYTHON:
        words[NUMBERS[name]] = _address(ctypes.pythonapi, name)
    for name in LIBRARY:
        words[NUMBERS[name]] = _address(_libc, name)
    numpy_table = layout.numpy_table()
    words[NUMBERS["PyArray_NewFromDescr"]] = numpy_table[layout.NEW_FROM_DESCR]
    words[NUMBERS["PyArray_Scalar"]] = numpy_table[layout.SCALAR]
    words[NUMBERS["PyArray_SetBaseObject"]] = numpy_table[layout.SET_BASE]
    objects: dict[str, Any] = {
        "mode": mode_variable(), "errors": errstate.VARIABLE, "errors_default": errstate.DEFAULT, "none": None,
        "true": True, "false": False, "ndarray": np.ndarray, "str": str, "dict": dict, "function": types.FunctionType,
        "AttributeError": AttributeError, "name_of_dict": "__dict__",
    }  # fmt: skip
    for name, x in objects.items():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
        words[NUMBERS[name]] = id(x)
    memory = pool()
    words[NUMBERS["memory_free"]] = memory.addresses["pool_free"]
    words[NUMBERS["pool_alloc"]] = memory.addresses.get("pool_alloc", 0)
    words[NUMBERS["pool_array"]] = memory.addresses.get("pool_array", 0) if memory.makes_arrays else 0

    def heed_settings() -> None:
        """Calls are native unless a setting says that Python has to see each one."""
        always = config.disable_jit or config.check or config.dispatch == "python"
        words[NUMBERS["off"]] = Off.ALWAYS * always + Off.COMPARED * (config.dispatch == "both")

    config.watch(heed_settings)
    heed_settings()
    return words
