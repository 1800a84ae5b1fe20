"""`np.emath`: functions that give complex results where real ones have none.

Whether an operand leaves the real domain is data, and it decides the dtype of the result: the trace takes one case for
granted, and a call of the other case goes to a trace of its own (`Mode.assume`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitgraph.xp.elementwise  # noqa: F401  # has them in `EXPORTS`
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, read
from jitgraph.xp.core import EXPORTS, cast, np_kind, numpy_function, tensor
from jitgraph.xp.reductions import any


def _happens(flag: Any, what: str) -> bool:
    """Whether a scalar bool holds: known for recorded values; in a trace it is assumed not to."""
    mode = flag._storage.mode
    if isinstance(mode, TraceMode):
        return not mode.assume(read(EXPORTS["logical_not"](flag)), what)
    return bool(flag)


def _complex(x: Tensor) -> Tensor:
    small = x.type.dtype.itemsize <= (4 if x.type.dtype.kind == "f" else 2) and x.type.dtype.kind != "b"
    return cast(x, np.complex64 if small else np.complex128)  # type: ignore[no-any-return]


def _outside(x: Any, leaves: Any, what: str) -> Tensor:
    """`x`, complex if one of its elements leaves the real domain."""
    t: Tensor = np_kind(tensor(x))
    if t.type.dtype.kind == "c":
        return t
    return _complex(t) if _happens(any(leaves(t)), f"the dtype of {what}") else t


def _negative(t: Tensor) -> Any:
    return EXPORTS["less"](t, 0)


def _beyond_one(t: Tensor) -> Any:
    return EXPORTS["absolute"](t) > 1


@numpy_function(np.emath.sqrt, name="emath_sqrt")
def sqrt(x: Any) -> Any:
    return EXPORTS["sqrt"](_outside(x, _negative, "emath.sqrt"))


@numpy_function(np.emath.log, name="emath_log")
def log(x: Any) -> Any:
    return EXPORTS["log"](_outside(x, _negative, "emath.log"))


@numpy_function(np.emath.log10, name="emath_log10")
def log10(x: Any) -> Any:
    return EXPORTS["log10"](_outside(x, _negative, "emath.log10"))


@numpy_function(np.emath.log2, name="emath_log2")
def log2(x: Any) -> Any:
    return EXPORTS["log2"](_outside(x, _negative, "emath.log2"))


@numpy_function(np.emath.logn, name="emath_logn")
def logn(n: Any, x: Any) -> Any:
    return EXPORTS["log"](_outside(x, _negative, "emath.logn")) / EXPORTS["log"](_outside(n, _negative, "emath.logn"))


@numpy_function(np.emath.power, name="emath_power")
def power(x: Any, p: Any) -> Any:
    base = _outside(x, _negative, "emath.power")
    exponent: Tensor = np_kind(tensor(p, base._storage.mode))
    if exponent.type.dtype.kind in "iu" and _happens(any(EXPORTS["less"](exponent, 0)), "the dtype of emath.power"):
        exponent = cast(exponent, np.float64)
    return EXPORTS["power"](base, exponent)


@numpy_function(np.emath.arccos, name="emath_arccos")
def arccos(x: Any) -> Any:
    return EXPORTS["arccos"](_outside(x, _beyond_one, "emath.arccos"))


@numpy_function(np.emath.arcsin, name="emath_arcsin")
def arcsin(x: Any) -> Any:
    return EXPORTS["arcsin"](_outside(x, _beyond_one, "emath.arcsin"))


@numpy_function(np.emath.arctanh, name="emath_arctanh")
def arctanh(x: Any) -> Any:
    return EXPORTS["arctanh"](_outside(x, _beyond_one, "emath.arctanh"))
