"""Python's operators on Tensors: NumPy's rules for arrays and NumPy scalars, Python's own for traced Python numbers.

Python numbers, traced: `/ // %` check for zero, integers check for overflow (site "deoptimise": the call is rerun in
Python), sizes stay sizes (`n - 1`, `n // 2`, `min(n, m)`), and comparisons of sizes are decided at once (a proof, or a
guard), so that `if n > 3` is ordinary Python.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided, is_long
from jitgraph.ir.dims import Dim, DimLike, dim_max, dim_min, floordiv, mod
from jitgraph.ir.graph import Value
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import TensorType
from jitgraph.modes import TraceMode
from jitgraph.ops.families import dtype_code, loop_dtypes
from jitgraph.tensor import (
    EAGER,
    Mode,
    Ratio,
    Tensor,
    apply,
    assign,
    dim_tensor,
    lift,
    make,
    mode_of,
    plain,
    read,
    require_output,
    wrap,
)
from jitgraph.xp import complexes
from jitgraph.xp.core import (
    EXPORTS,
    R,
    as_kind,
    cast,
    mask_of,
    mode_in,
    np_kind,
    operand,
    refused_operands,
    rewrap,
    tensor,
    translate,
)
from jitgraph.xp.ufunc_loops import first_refusal, loop_of

#: Python operator to the operator record.
RECORDS: dict[str, str] = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod", "pow": "pow",
    "matmul": "matmul", "and_": "bit_and", "or_": "bit_or", "xor": "bit_xor", "lshift": "shift_left",
    "rshift": "shift_right", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip
_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=",
}  # fmt: skip
#: The ufuncs of those that may be in place.
_UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and_": np.bitwise_and, "or_": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_BITS = frozenset(("and_", "or_", "xor", "lshift", "rshift"))
#: Records that compute scalars of these kinds in another way than NumPy's loops, which a call of the ufunc runs.
UNLIKE_SCALARS = {"mul": "c", "abs": "c", "pow": "fc", "lt": "c", "le": "c", "gt": "c", "ge": "c"}
_OPERANDS = (int, float, complex, np.generic, np.ndarray, list, tuple)
_OVERFLOW = "Python integer does not fit in 64 bits"


def _python_message(run: Callable[[], Any]) -> str:
    """What this Python says when it refuses something."""
    try:
        run()
    except (ArithmeticError, ValueError) as error:
        return str(error)
    raise errors.InternalError("Python did not refuse it")


#: What Python says of a division by zero, by operator, and whether of floats.
ZERO_MESSAGES = {
    ("truediv", False): _python_message(lambda: 1 / 0),
    ("floordiv", False): _python_message(lambda: 1 // 0),
    ("mod", False): _python_message(lambda: 1 % 0),
    ("truediv", True): _python_message(lambda: 1.0 / 0.0),
    ("floordiv", True): _python_message(lambda: 1.0 // 0.0),
    ("mod", True): _python_message(lambda: 1.0 % 0.0),
    ("pow", True): _python_message(lambda: 0.0**-1.0),
}
_POW_OVERFLOW = _python_message(lambda: 1e300**2.0)
_SHIFT_NEGATIVE = _python_message(lambda: 1 << -1)


def binary(name: str, a: Any, b: Any) -> Any:
    """`a <operator> b` where at least one is a Tensor; `NotImplemented` for what NumPy knows nothing of."""
    for x in (a, b):
        if type(x) is not Tensor and not isinstance(x, _OPERANDS):
            if x is b and type(a) is Tensor:
                _leave_objects(name, a, x)
            return _with_other(name, a, x) if x is b and name in ("eq", "ne") else NotImplemented
    mode = mode_of((a, b))
    if mode is EAGER:
        if (isinstance(a, (list, tuple)) or isinstance(b, (list, tuple))) and mode_in((a, b)) is not EAGER:
            return binary(name, operand(a), operand(b))
        try:
            return rewrap(getattr(operator, name)(plain(a), plain(b)))
        except (ValueError, TypeError) as error:
            raise translate(error, f"x {_SYMBOLS[name]} y", (a, b)) from None
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return _with_list(name, a, b)
    python_a, python_b = is_python(a), is_python(b)
    if python_a and not python_b and name in _COMPLEX_FIRST and _is_complex(a) and _is_float64(b):
        b, python_b = wrap(mode, as_python(mode, lift(mode, b))), True
    if python_a and python_b and mode.name == "trace":
        return python_binary(mode, name, a, b)
    if name in UNLIKE_SCALARS and _is_left_to_ufunc(name, a, b):
        return np_kind(apply(R(RECORDS[name]), *(as_kind(tensor(x, mode), "array") for x in (a, b))))
    if name == "pow":
        return power(a, b)
    if name == "matmul":
        if all(isinstance(x, np.generic) or (type(x) is Tensor and x.type.is_scalar) or is_python(x) for x in (a, b)):
            raise refused_operands("@", a, b)
        from jitgraph.xp.linalg import matmul

        return matmul(a, b)
    return apply(R(RECORDS[name]), a, b)


def _leave_objects(name: str, a: Tensor, x: Any) -> None:
    """An array does not wait for the reflected operator of a user's object: NumPy calls that for each element.

    Nor does a NumPy scalar, if the object is a sequence.

    Raises:
        LeftToPython: so it would be; the result is an array of objects.
    """
    mode, kind = a._storage.mode, type(x)
    is_one = a.type.kind == "array" or (a.type.kind == "np_scalar" and hasattr(kind, "__len__"))
    if not is_one or not isinstance(mode, TraceMode) or hasattr(kind, "__array_ufunc__"):
        return
    is_users = kind.__module__.partition(".")[0] not in ("builtins", "jitgraph", "numpy")
    if is_users and hasattr(kind, f"__r{name}__") and getattr(x, "__array_priority__", 0) <= 0:
        mode.leave(f"an array and a {kind.__name__} give an array of objects", "give the class __array_ufunc__ = None.")


#: Operators of Python's complex numbers, which take np.float64 for the float that it is.
_COMPLEX_FIRST = frozenset(("add", "sub", "mul", "truediv", "pow", "eq", "ne"))


def _is_complex(x: Any) -> bool:
    """A Python complex number."""
    return x.type.kind == "py_complex" if type(x) is Tensor else type(x) is complex


def _is_float64(x: Any) -> bool:
    """A NumPy scalar that is a Python float, too."""
    return x.type.kind == "np_scalar" and x.type.dtype == dtypes.F64 if type(x) is Tensor else type(x) is np.float64


def _is_left_to_ufunc(name: str, a: Any, b: Any) -> bool:
    """Whether NumPy's scalars leave to the ufunc what it computes in another way than they do.

    They compute themselves if one of them has the common dtype, but bools, which ask the ufunc at once.
    """
    kinds = [x.type.kind if type(x) is Tensor else "np_scalar" if isinstance(x, np.generic) else "" for x in (a, b)]
    if kinds != ["np_scalar", "np_scalar"]:
        return False
    first, second = (x.type.dtype if type(x) is Tensor else x.dtype for x in (a, b))
    common = np.promote_types(first, second)
    return common.kind in UNLIKE_SCALARS[name] and (first.kind == "b" or common not in (first, second))


def _with_other(name: str, a: Tensor, other: Any) -> Any:
    """An array compared with None or a text: no element is equal."""
    of_array = a.type.kind == "array" or (a.type.kind == "np_scalar" and other is not None)
    if not of_array or not (other is None or isinstance(other, (str, bytes))):
        return NotImplemented
    if not a.is_traced:
        return rewrap(getattr(operator, name)(plain(a), other))
    same = EXPORTS["full"](a.type.shape, name == "ne")
    return same if a.type.shape else same[()]


def _with_list(name: str, a: Any, b: Any) -> Any:
    """A list with an array is an array; a list times a size is repeated, as Python does it."""
    number, items = (a, b) if type(a) is Tensor else (b, a)
    if name in ("mul", "add") and type(number) is Tensor and number.type.is_python and isinstance(items, (list, tuple)):
        if name == "mul" and number.type.kind in ("py_int", "py_bool"):
            return items * operator.index(number)
        raise refused_operands(_SYMBOLS[name], a, b)
    return binary(
        name, tensor(a) if isinstance(a, (list, tuple)) else a, tensor(b) if isinstance(b, (list, tuple)) else b
    )


def is_python(x: Any) -> bool:
    """A Python number, plain or traced."""
    if type(x) is Tensor:
        return x.type.is_python
    return isinstance(x, (int, float, complex)) and not isinstance(x, np.generic)


# --- Python numbers


def dim_of(x: Any) -> DimLike | None:
    """The size that `x` is: an int, or a traced `py_int` with a known size; None for data."""
    if type(x) is int:
        return x
    if type(x) is Tensor:
        dim = x._dim
        if isinstance(dim, (int, Dim)):
            return dim
    return None


def python_binary(mode: Any, name: str, a: Any, b: Any) -> Any:
    """An operator on two Python numbers of which at least one is traced."""
    left, right = dim_of(a), dim_of(b)
    if left is not None and right is not None:
        result = _dims(mode, name, left, right)
        if result is not None:
            return result
    va, vb = lift(mode, a), lift(mode, b)
    apply_ = mode.builder.apply
    floating = "f" in (va.type.dtype.kind, vb.type.dtype.kind)
    if "c" in (va.type.dtype.kind, vb.type.dtype.kind):
        if name in ("eq", "ne") and not all(_is_float(constant_of(v)) for v in (va, vb)):
            return name == "ne"
        return complexes.python_binary(mode, name, va, vb, RECORDS[name])
    if any(is_long(constant_of(v)) for v in (va, vb)):
        return _with_long(mode, name, va, vb)
    if name in _COMPARISONS:
        return wrap(mode, apply_(R(RECORDS[name]), va, vb)[0])
    if name == "matmul":
        raise refused_operands("@", va, vb)
    if name in _BITS:
        return _python_bits(mode, name, va, vb, floating)
    if name == "pow":
        return _python_power(mode, va, vb, floating)
    if name in ("truediv", "floordiv", "mod"):
        _check_nonzero(mode, vb, ZERO_MESSAGES[name, floating])
    elif not floating:
        _check_overflow(mode, name, va, vb)
    if not floating and name == "truediv":
        va, vb = (apply_(R("cast"), v, dtype=dtypes.F64)[0] for v in (va, vb))
    return wrap(mode, apply_(R(RECORDS[name]), va, vb)[0])


def _is_float(number: Any) -> bool:
    """Whether a number, unless it is an int beyond 64 bits, is one that a float can be."""
    return not is_long(number) or (abs(number) < 2**1023 and float(number) == number)


def _with_long(mode: Any, name: str, a: Any, b: Any) -> Any:
    """An operator on a traced Python number and an int beyond 64 bits: comparisons are known, floats round it, what
    else there is Python computes.
    """
    long, other = (constant_of(a), b) if is_long(constant_of(a)) else (constant_of(b), a)
    floating = other.type.kind == "py_float"
    if not floating and name in _COMPARISONS:
        greater = (long > 0) == (long is constant_of(b))  # is b greater than a?
        return name in (("lt", "le", "ne") if greater else ("gt", "ge", "ne"))
    if floating and name in _BITS:
        raise refused_operands(_SYMBOLS[name], a, b)
    if floating and (name not in _COMPARISONS or _is_float(long)):
        return python_binary(mode, name, *(float(long) if is_long(constant_of(v)) else wrap(mode, v) for v in (a, b)))
    mode.check(mode.builder.constant(value=False), "deoptimise", _OVERFLOW)
    zero = mode.builder.constant(0 if name in _COMPARISONS or name == "pow" else 1)
    return python_binary(mode, name, *(wrap(mode, zero if is_long(constant_of(v)) else v) for v in (a, b)))


def _dims(mode: Any, name: str, a: DimLike, b: DimLike) -> Any:
    """Arithmetic and comparisons of sizes; None where only the value can tell."""
    if name == "add":
        return dim_tensor(mode, a + b)
    if name == "sub":
        return dim_tensor(mode, a - b)
    if name == "mul":
        return dim_tensor(mode, a * b)
    try:
        if name in _COMPARISONS:
            return mode.decide(_SYMBOLS[name], a, b)
        if name in ("floordiv", "mod", "truediv"):
            if mode.decide("==", b, 0):
                raise ZeroDivisionError(ZERO_MESSAGES[name, False])
            if name == "truediv":
                return ratio_tensor(mode, a, b)
            return dim_tensor(mode, floordiv(a, b) if name == "floordiv" else mod(a, b))
    except Undecided:
        return None
    if name == "pow" and isinstance(b, int) and 0 <= b <= 4:
        power: DimLike = 1
        for _ in range(b):
            power = power * a
        return dim_tensor(mode, power)
    return None


def ratio_tensor(mode: Any, numerator: DimLike, denominator: DimLike) -> Any:
    """A quotient of sizes: a `py_float` of which `int()` is again a size."""
    from jitgraph.ir.types import python_type
    from jitgraph.tensor import Storage

    if isinstance(numerator, int) and isinstance(denominator, int):
        return numerator / denominator
    t = make(Storage(mode, None), (), python_type("py_float"))
    t._dim = Ratio(numerator, denominator)
    return t


def _check_nonzero(mode: TraceMode, value: Any, message: str) -> None:
    known = constant_of(value)
    if known is not None:
        if known == 0:
            raise ZeroDivisionError(message)
        return
    mode.check(mode.builder.apply(R("ne"), value, 0)[0], "ZeroDivisionError", message)


def _check_overflow(mode: TraceMode, name: str, a: Any, b: Any) -> None:
    """Integers beyond 64 bits rerun the call in Python."""
    record = {"add": "add_overflows", "sub": "sub_overflows", "mul": "mul_overflows"}.get(name)
    if record is None or (a.type.kind == "py_bool" and b.type.kind == "py_bool"):
        return
    if _is_small(a) and _is_small(b):
        return
    overflows = mode.builder.apply(R(record), a, b)[0]
    mode.check(mode.builder.apply(R("logical_not"), overflows)[0], "deoptimise", _OVERFLOW)


def _is_small(value: Any) -> bool:
    """Surely below 2**31 in size: a bool, a small constant."""
    known = constant_of(value)
    return value.type.kind == "py_bool" or (known is not None and abs(known) < 2**31)


def _python_bits(mode: TraceMode, name: str, a: Any, b: Any, floating: bool) -> Any:
    apply_ = mode.builder.apply
    if floating:
        raise refused_operands(_SYMBOLS[name], a, b)
    if name in ("and_", "or_", "xor"):
        return wrap(mode, apply_(R(RECORDS[name]), a, b)[0])
    known = constant_of(b)
    if known is None:
        mode.check(apply_(R("ge"), b, 0)[0], "ValueError", _SHIFT_NEGATIVE)
    elif known < 0:
        raise ValueError(_SHIFT_NEGATIVE)
    result = apply_(R(RECORDS[name]), a, b)[0]
    if name == "lshift":
        back = apply_(R("shift_right"), result, b)[0]
        mode.check(apply_(R("eq"), back, a)[0], "deoptimise", _OVERFLOW)
    return wrap(mode, result)


def _python_power(mode: TraceMode, a: Any, b: Any, floating: bool) -> Any:
    apply_ = mode.builder.apply
    known = constant_of(b)
    if not floating and not (known is not None and known < 0):
        if known == 0:
            return wrap(mode, apply_(R("pow"), a, b)[0])  # the graph shows that `a` is looked at
        if known is not None and known <= 4:
            result = a
            for _ in range(int(known) - 1):
                _check_overflow(mode, "mul", result, a)
                result = apply_(R("mul"), result, a)[0]
            return wrap(mode, result)
        if known is None:
            mode.check(apply_(R("ge"), b, 0)[0], "deoptimise", "a negative power of an integer is a float")
        wide = apply_(R("pow"), *(apply_(R("cast"), v, dtype=dtypes.F64)[0] for v in (a, b)))[0]
        fits = apply_(R("lt"), apply_(R("abs"), wide)[0], 2.0**62)[0]
        mode.check(fits, "deoptimise", _OVERFLOW)
        return wrap(mode, apply_(R("pow"), a, b)[0])
    x, y = (v if v.type.dtype == dtypes.F64 else apply_(R("cast"), v, dtype=dtypes.F64)[0] for v in (a, b))
    known = constant_of(y)
    if known is None or known < 0:
        bad = apply_(R("logical_and"), apply_(R("eq"), x, 0.0)[0], apply_(R("lt"), y, 0.0)[0])[0]
        mode.check(apply_(R("logical_not"), bad)[0], "ZeroDivisionError", ZERO_MESSAGES["pow", True])
    if known is None or known != math.floor(known):
        real = apply_(R("logical_or"), apply_(R("ge"), x, 0.0)[0], apply_(R("eq"), y, apply_(R("floor"), y)[0])[0])[0]
        real = apply_(R("logical_or"), real, apply_(R("isnan"), x)[0])[0]
        mode.check(real, "deoptimise", "a fractional power of a negative number is complex")
    result = apply_(R("square"), x)[0] if known == 2.0 else apply_(R("pow"), x, y)[0]
    fine = apply_(
        R("logical_or"), apply_(R("isfinite"), result)[0], apply_(R("logical_not"), apply_(R("isfinite"), x)[0])[0]
    )[0]
    if known is None:
        fine = apply_(R("logical_or"), fine, apply_(R("logical_not"), apply_(R("isfinite"), y)[0])[0])[0]
    mode.check(fine, "OverflowError", _POW_OVERFLOW)
    return wrap(mode, as_python(mode, result))


def as_python(mode: Any, value: Any) -> Any:
    """A scalar value as the Python number of its dtype."""
    if value.type.is_python:
        return value
    kind = {"b": "py_bool", "i": "py_int", "f": "py_float", "c": "py_complex"}[value.type.dtype.kind]
    return mode.builder.apply(R("as_kind"), value, kind=kind)[0]


# --- arrays


#: Exponents for which NumPy calls another function.
_SHORT = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}


def _short_cuts(dtype: np.dtype, kind: str) -> dict[float, str]:
    """The exponents of a kind of scalar that have a short cut in powers of an array of this (loop's) dtype.

    Floats have them in NumPy's loop, whatever the kind; complex arrays in the operator, by the number's Python class.
    """
    if dtype.kind == "f":
        return _SHORT
    wanted: tuple[float, ...] = {"py_int": (2.0, -1.0), "py_bool": (), "py_float": (0.5,)}.get(kind, ())
    return {p: _SHORT[p] for p in wanted} if dtype.kind == "c" else {}


def power(a: Any, b: Any) -> Any:
    """`a ** b` of arrays and NumPy scalars, with NumPy's short cuts for some exponents."""
    exponent, mode = _number(b), mode_of((a, b))
    base, t = tensor(a, mode), tensor(b, mode).type
    if base.type.kind != "array" or base.type.is_python:  # NumPy's scalars have no short cuts
        if base.type.dtype.kind in "iu" and not base.type.is_python and exponent == 2 and t.kind == "py_int":
            return apply(R("square"), base)
        return ufunc_power(a, b)
    if base.type.dtype.kind in "iub" and t.dtype.kind in "iub":
        if base.type.dtype.kind == "b" and exponent is None and t.kind == "py_int" and isinstance(mode, TraceMode):
            squared = mode.builder.apply(R("eq"), lift(mode, b), 2)[0]
            exponent = 2 if mode.assume(squared, "the dtype of a power of bools, which is another one for 2,") else None
        if exponent == 2 and t.kind == "py_int":  # of bools: the loop of `np.square`
            return apply(R("square"), cast(base, np.int8) if base.type.dtype.kind == "b" else base)
        return ufunc_power(a, b)
    if t.shape or t.kind == "array" or (exponent is None and not isinstance(mode, TraceMode)):
        return ufunc_power(a, b)
    dtype = loop_dtypes("power", np.power, tuple(dtype_code(x) for x in (base.type, t)))[0]
    shorts = _short_cuts(dtype, t.kind) if t.dtype.kind != "c" else {}
    if exponent is None and shorts:
        return _run_time_power(_for_ufunc(base, dtype), b, shorts)
    short = shorts.get(float(exponent)) if shorts and not isinstance(exponent, complex) else None
    return ufunc_power(a, b) if short is None else apply(R(short), _for_ufunc(base, dtype))


def _for_ufunc(x: Tensor, dtype: np.dtype) -> Tensor:
    """`x` as a ufunc casts it on the way: broadcast axes stay broadcast."""
    from jitgraph.xp.reductions import converted

    return converted(x, dtype)


def _run_time_power(base: Tensor, exponent: Tensor, shorts: dict[float, str]) -> Any:
    """A power whose exponent the run knows: a short cut is another trace, or one of the values to choose from."""
    mode = base._storage.mode
    assert isinstance(mode, TraceMode)
    flags = {name: apply(R("eq"), exponent, value) for value, name in shorts.items()}
    if mode.can_rerun():
        some = functools.reduce(lambda f, g: apply(R("logical_or"), f, g), flags.values())
        if mode.assume(lift(mode, apply(R("logical_not"), some)), "an exponent"):
            return ufunc_power(base, exponent)
        *others, last = flags
        for name in others:
            if mode.assume(lift(mode, flags[name]), "an exponent"):
                return apply(R(name), base)
        return apply(R(last), base)
    result = ufunc_power(base, exponent)
    for name, flag in flags.items():
        result = EXPORTS["where"](flag, apply(R(name), base), result)
    return result if result.type.shape else as_kind(result, "np_scalar")


def ufunc_power(a: Any, b: Any, where: Any = True) -> Any:
    """`np.power`, with its error for negative integer exponents: of the elements that `where` asks for."""
    mode = mode_of((a, b))
    types = [tensor(x, mode).type for x in (a, b)]
    if all(t.dtype.kind in "iub" for t in types):
        dtype = loop_dtypes("power", np.power, tuple(dtype_code(t) for t in types))[0]
        for x, t in zip((a, b), types, strict=True):
            if t.kind == "py_int" and isinstance(mode, TraceMode):
                mode.check_fits(lift(mode, x), dtype)
        if dtype.kind == "i" and types[1].dtype.kind == "i":
            b = _checked_exponent(mode, b, types, dtype, where)
    return apply(R("pow"), a, b)


_NEGATIVE_POWERS = "Integers to negative integer powers are not allowed."


def _checked_exponent(mode: Mode, b: Any, types: Sequence[TensorType], dtype: np.dtype, where: Any) -> Any:
    """The exponent of an integer power, which is not negative where something is computed.

    Raises:
        ShapeError: it is known to be negative, and there are elements.
    """
    known = _number(b)
    if known is not None and known >= 0:
        return b
    if not isinstance(mode, TraceMode):
        if known is not None and 0 not in types[0].shape and where is True:
            raise errors.ShapeError(_NEGATIVE_POWERS)
        return b
    sizes = [d for d in types[0].shape if d not in types[1].shape]
    if where is not True:
        fine = apply(R("logical_or"), apply(R("ge"), b, 0), apply(R("logical_not"), mask_of(where, mode)))
        mode.check(_or_empty(mode, lift(mode, fine), sizes), "ValueError", _NEGATIVE_POWERS)
        return cast(apply(R("maximum"), tensor(b, mode), 0), dtype)  # what is not asked for is computed all the same
    if known is None:
        fine = mode.builder.apply(R("ge"), lift(mode, b), 0)[0]
    else:
        decided = [_is_zero(mode, d) for d in types[0].shape]
        if True in decided:
            return b
        if None not in decided:
            raise errors.ShapeError(_NEGATIVE_POWERS)
        fine, sizes = None, [d for d, zero in zip(types[0].shape, decided, strict=True) if zero is None]
    mode.check(_or_empty(mode, fine, sizes), "ValueError", _NEGATIVE_POWERS)
    return b


def _or_empty(mode: TraceMode, fine: Value | None, sizes: Sequence[DimLike]) -> Value:
    """Whether `fine` holds, or one of the sizes is 0, as the run knows it."""
    flags = [mode.compare("eq", d, 0) for d in sizes if not mode.builder.prove(">", d, 0)]
    return mode.any_of(*([] if fine is None else [fine]), *flags)


def _is_zero(mode: TraceMode, size: DimLike) -> bool | None:
    """Whether a size is 0, by proof or under a guard; None if only the run knows."""
    try:
        return size == 0 if isinstance(size, int) else mode.decide("==", size, 0)
    except Undecided:
        return None


def _number(x: Any) -> Any:
    """The number that `x` is known to be; None for data."""
    if type(x) is Tensor:
        value = x._storage.value
        return constant_of(value) if x.is_traced and value is not None and not x._steps else None
    return x if isinstance(x, (int, float, complex)) else None


def unary(name: str, x: Tensor) -> Any:
    """`-x`, `+x`, `abs(x)`, `~x`."""
    mode = x._storage.mode
    if mode is EAGER:
        return rewrap(getattr(operator, name)(plain(x)))
    t = x.type
    if t.is_python and name == "pos" and t.kind != "py_bool":
        return x
    if t.is_python and isinstance(mode, TraceMode):
        dim = dim_of(x)
        if dim is not None:
            if name == "neg":
                return dim_tensor(mode, -dim)
            if name == "abs":
                try:
                    return x if mode.decide(">=", dim, 0) else dim_tensor(mode, -dim)
                except Undecided:
                    pass
        value = read(x)
        if t.kind == "py_bool":
            value = mode.builder.apply(R("cast"), value, dtype=dtypes.I64)[0]
        if name == "pos":
            return wrap(mode, value)
        if t.kind == "py_complex" and name == "abs":
            return complexes.python_abs(mode, value)
        if t.kind == "py_int" and name in ("neg", "abs"):
            smallest = mode.builder.apply(R("ne"), value, -(2**63))[0]
            mode.check(smallest, "deoptimise", _OVERFLOW)
        record = {"neg": "neg", "abs": "abs", "invert": "bit_not"}[name]
        return wrap(mode, mode.builder.apply(R(record), value)[0])
    if name == "pos":
        if t.dtype.kind == "b":
            raise errors.DTypeError("ufunc 'positive' did not contain a loop with signature matching types bool")
        from jitgraph.xp.elementwise import positive

        return positive(x) if t.kind == "array" and t.shape else as_kind(x, "np_scalar")
    return apply(R({"neg": "neg", "abs": "abs", "invert": "bit_not"}[name]), x)


def divmod_pair(a: Any, b: Any) -> Any:
    quotient = binary("floordiv", a, b)
    return NotImplemented if quotient is NotImplemented else (quotient, binary("mod", a, b))


def in_place(name: str, x: Tensor, other: Any) -> Any:
    """`x += other`: arrays are written through their view; scalars are rebound by Python."""
    if type(other) is not Tensor and not isinstance(other, _OPERANDS):
        return NotImplemented
    mode = x._storage.mode
    if mode is EAGER and (type(other) is not Tensor or other._storage.mode is EAGER):
        target = plain(x)
        if not isinstance(target, np.ndarray):
            return binary(name, x, other)
        try:
            getattr(operator, "i" + name.rstrip("_"))(target, plain(other))
        except (ValueError, TypeError) as error:
            if "read-only" in str(error):
                raise errors.ReadOnlyError(str(error)) from None
            raise translate(error, f"x {_SYMBOLS[name]}= y", (x, other)) from None
        return x
    if x.type.kind != "array":
        return binary(name, x, other)
    require_output(x)
    if name == "matmul":
        _check_ranks(x, other)
    mark = mode.mark() if isinstance(mode, TraceMode) else None
    try:
        _write_over(name, x, other)
    except (errors.ShapeError, errors.DTypeError) as error:
        first = first_refusal(_UFUNCS[name], (x, other), {"out": x}, error)
        if isinstance(mode, TraceMode) and mark is not None and isinstance(first, errors.DTypeError):
            mode.drop_checks(mark)
        raise (mode.located(first) if isinstance(mode, TraceMode) else first) from None
    return x


def _check_ranks(x: Tensor, other: Any) -> None:
    """`x @= other` is of a matrix on the right.

    Raises:
        ShapeError: as NumPy.
    """
    ranks = x.type.ndim, other.type.ndim if type(other) is Tensor else np.ndim(other)
    if 0 in ranks or ranks[1] == 1:
        raise errors.ShapeError(
            "inplace matrix multiplication requires the first operand to have at least one and the second at least "
            "two dimensions."
        )


def _write_over(name: str, x: Tensor, other: Any) -> None:
    """`x += other` of an array."""
    mode = x._storage.mode
    result = _product_in_place(name, x, other)
    if result is None:
        if name == "pow" and x.type.layout.negative and x.type.dtype.kind in "fc":
            key, (a, b) = turned(np.power, x, (x, operand(other)))
            assign(x[key], binary(name, a, b), "same_kind")
            return
        result = binary(name, x, other)
    if len(result.type.shape) > len(x.type.shape):
        raise errors.ShapeError(
            errors.describe(
                f"x {_SYMBOLS[name]}= y: non-broadcastable output operand with shape {x.type.shape} doesn't match the "
                f"broadcast shape {result.type.shape}",
                mode.locate() if isinstance(mode, TraceMode) else None,
            )
        )
    assign(x, result, "same_kind")


def turned(ufunc: np.ufunc, out: Tensor, values: Sequence[Any]) -> tuple[tuple[slice, ...], list[Any]]:
    """The key that reverses `out` along its negative axes, and the operands of a call into it, likewise reversed.

    NumPy's loop gets these strides, or their opposites, and the last bit of functions depends on them. A fresh result
    lies forwards, so that `out` has to for the same bits; in a buffer it does, if not all go backwards. Operands of one
    axis are cast in front, and lie forwards then.
    """
    loop = loop_of(ufunc, values)
    made, ndim = [], len(out.type.shape)
    axes = set(out.type.layout.negative)
    buffered = out.type.dtype != loop[-1] or out.type.layout.unaligned
    for v, dtype in zip(values, loop, strict=False):
        x = tensor(v) if isinstance(v, np.ndarray) else v
        if type(x) is Tensor and x.type.shape:
            if len(x.type.shape) == 1 and x.type.dtype != dtype:
                x = cast(x, dtype)
            elif len(x.type.shape) == 1 and x.type.layout.unaligned:
                x = apply(R("copy"), x, order="K")
            lower, layout = ndim - len(x.type.shape), x.type.layout
            if buffered:
                axes -= {k + lower for k in layout.order if k not in layout.negative and k not in layout.zero}
        made.append(x)
    key = tuple([slice(None, None, -1 if axis in axes else None) for axis in range(ndim)])
    ranks = [len(x.type.shape) if type(x) is Tensor else 0 for x in made]
    return key, [x[key[ndim - rank :]] if 0 < rank <= ndim else x for x, rank in zip(made, ranks, strict=True)]


def _product_in_place(name: str, x: Tensor, other: Any) -> Tensor | None:
    """`x *= other` and `x **= 2` of complex numbers, as NumPy's inner loop computes them; None: no such product."""
    from jitgraph.xp.elementwise import by_inner_loop

    if x.type.dtype.kind != "c":
        return None
    if name == "pow":
        if type(other) is Tensor and other.is_traced and other.type.kind == "py_int":
            squared = apply(R("eq"), other, 2)
            mode: Any = x._storage.mode
            if not mode.can_rerun():
                square = by_inner_loop("square", [x], x)
                return None if square is None else EXPORTS["where"](squared, square, binary(name, x, other))
            other = 2 if mode.assume(lift(mode, squared), "an exponent") else other
        return by_inner_loop("square", [x], x) if type(other) is int and other == 2 else None
    return by_inner_loop("mul", [x, operand(other)], x) if name == "mul" else None


def compare_dims(mode: Any, pick: str, items: list[DimLike]) -> Any:
    """min or max of sizes."""
    return dim_tensor(mode, dim_min(*items) if pick == "min" else dim_max(*items))


def _binary_method(name: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    def forward(a: Tensor, b: Any) -> Any:
        return binary(name, a, b)

    def reflected(a: Tensor, b: Any) -> Any:
        return binary(name, b, a)

    def augmented(a: Tensor, b: Any) -> Any:
        return in_place(name, a, b)

    return forward, reflected, augmented


#: `__add__`, `__radd__`, `__iadd__`, ...
METHODS: dict[str, Callable[..., Any]] = {}
for _name in RECORDS:
    _stem = _name.rstrip("_")
    _forward, _reflected, _augmented = _binary_method(_name)
    METHODS[f"__{_stem}__"] = _forward
    METHODS[f"__r{_stem}__"] = _reflected  # of comparisons, too: Python mirrors them, which loses their order
    if _name not in _COMPARISONS:
        METHODS[f"__i{_stem}__"] = _augmented
METHODS["__divmod__"] = divmod_pair
METHODS["__rdivmod__"] = lambda a, b: divmod_pair(b, a)
METHODS["__neg__"] = lambda x: unary("neg", x)
METHODS["__pos__"] = lambda x: unary("pos", x)
METHODS["__abs__"] = lambda x: unary("abs", x)
METHODS["__invert__"] = lambda x: unary("invert", x)
