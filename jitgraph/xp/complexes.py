"""Complex numbers: parts and conjugates of arrays and scalars, and Python's own arithmetic on traced numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.graph import Value
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import EAGER, Storage, Tensor, apply, lift, make, part_of, plain, wrap
from jitgraph.xp.core import R, deliver, numpy_function, refused_operands, rewrap, tensor

#: Functions of `cmath` with one complex argument and one result.
CMATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log10", "sin", "sinh", "sqrt", "tan",
    "tanh", "phase", "isnan", "isinf", "isfinite",
)  # fmt: skip
_REFUSED = {
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "floordiv": "//", "mod": "%", "and_": "&", "or_": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>", "matmul": "@",
}  # fmt: skip
_ABS_TOO_LARGE = "absolute value too large"


def _message(divide: Any) -> str:
    try:
        divide()
    except ZeroDivisionError as error:
        return str(error)
    raise errors.InternalError("Python did not refuse it")


_ZERO_DIVISION = _message(lambda: 1j / 0j)


def is_complex(x: Tensor) -> bool:
    return x.type.dtype.kind == "c"


def real_of(x: Tensor) -> Any:
    """`x.real`: a view of the real parts; of what is not complex `x` itself, or the int that a Python bool is."""
    if not is_complex(x):
        return +x if x.type.kind == "py_bool" else x  # type: ignore[operator]  # its operators are made in `operators`
    return part_of(x, "real") if x.type.kind == "array" else apply(R("real"), x)


def imag_of(x: Tensor) -> Any:
    """`x.imag`: a view of the imaginary parts; of what is not complex fresh zeros, which are read-only in arrays."""
    if is_complex(x):
        return part_of(x, "imag") if x.type.kind == "array" else apply(R("imag"), x)
    if x._storage.mode is EAGER:
        return rewrap(plain(x).imag)
    if x.type.is_python:
        return 0.0 if x.type.kind == "py_float" else 0
    mode = x._storage.mode
    zero = x.type.dtype.type(0)
    if x.type.kind == "np_scalar":
        return zero
    shape, layout = x.type.shape, x.type.layout
    fortran = layout.is_f and not layout.is_c
    sizes = shape[::-1] if fortran else shape
    zeros = mode.apply(R("full"), [lift(mode, zero)], {"shape": sizes, "dtype": zero.dtype})[0]
    if not x.type.dtype.isnative:
        zeros = mode.apply(R("cast"), [zeros], {"dtype": x.type.dtype})[0]
    axes = range(len(shape))
    order = reversed(axes) if fortran else axes
    return make(Storage(mode, zeros, None, writable=False), (IndexMap(shape, tuple(AxisMap(0, 1, k) for k in order)),))


def conjugate_of(x: Tensor, out: Any = None) -> Any:
    """`x.conj()`: of what is not complex `x` itself."""
    if out is not None:
        return deliver(apply(R("conj"), x) if is_complex(x) else x, out, repeats=True)
    return apply(R("conj"), x) if is_complex(x) else x


@numpy_function(np.real)
def real(val: Any) -> Any:
    return real_of(tensor(val)) if type(val) is not Tensor else real_of(val)


@numpy_function(np.imag)
def imag(val: Any) -> Any:
    return imag_of(tensor(val)) if type(val) is not Tensor else imag_of(val)


# ------------------------------------------------------------------------------------------------ Python's arithmetic


def python_binary(mode: TraceMode, name: str, a: Value, b: Value, record: str) -> Any:
    """An operator on two Python numbers of which one is complex: the other one is made so first, as Python does."""
    if name in _REFUSED:
        raise refused_operands(_REFUSED[name], a, b)
    emit = mode.builder.apply
    x, y = (v if v.type.kind == "py_complex" else mode.builder.cast_to(v, dtypes.C128) for v in (a, b))
    if name == "truediv":
        mode.check(emit(R("ne"), y, 0j)[0], "ZeroDivisionError", _ZERO_DIVISION)
    if name == "pow":
        return wrap(mode, emit(R("python_complex"), x, y, of="pow")[0])
    return wrap(mode, emit(R(record), x, y)[0])


def python_abs(mode: TraceMode, x: Value) -> Any:
    """`abs` of a Python complex number: finite parts with an infinite result are an OverflowError."""
    emit = mode.builder.apply
    found = emit(R("abs"), x)[0]
    fine = emit(R("logical_or"), emit(R("isfinite"), found)[0], emit(R("logical_not"), emit(R("isfinite"), x)[0])[0])[0]
    mode.check(fine, "OverflowError", _ABS_TOO_LARGE)
    return wrap(mode, found)


def complex_of(mode: TraceMode, real: Any = 0, imag: Any = None) -> Any:
    """`complex(real, imag)` of traced numbers: real + imag * 1j."""
    emit = mode.builder.apply
    parts = [python_complex(mode, x) for x in ((real,) if imag is None else (real, imag))]
    if len(parts) == 1:
        return wrap(mode, parts[0])
    x, y = parts
    down = emit(R("real"), y)[0]
    if (type(imag) is Tensor and is_complex(imag)) or isinstance(imag, complex):
        x = emit(R("with_real"), x, emit(R("sub"), emit(R("real"), x)[0], emit(R("imag"), y)[0])[0])[0]
    if (type(real) is Tensor and is_complex(real)) or isinstance(real, complex):
        down = emit(R("add"), emit(R("imag"), x)[0], down)[0]
    return wrap(mode, emit(R("with_imag"), x, down)[0])


def python_complex(mode: TraceMode, x: Any) -> Value:
    """A scalar as a complex128 value of kind `py_complex`."""
    if type(x) is Tensor and x.type.shape:
        if not all(d == 1 for d in x.type.shape):
            mode.refuse(x, "complex")
        from jitgraph.xp.shape import reshape_to

        x = reshape_to(x, ())
    value = lift(mode, x)
    if value.type.kind == "array":
        value = mode.builder.apply(R("as_kind"), value, kind="np_scalar")[0]
    if value.type.dtype != dtypes.C128:
        value = mode.builder.cast_to(value, dtypes.C128)
    if value.type.kind != "py_complex":
        value = mode.builder.apply(R("as_kind"), value, kind="py_complex")[0]
    return value  # type: ignore[no-any-return]
