"""`NumpyScalar`: the `Scalar` protocol on NumPy arrays and scalars, one array standing for all its elements.

The interpreter of loops and the tests of records run lowerings with it. Callers silence NumPy's warnings.
What the protocol leaves undefined (a zero divisor, a shift by the width, a float out of an integer's range) is
an `InternalError` here: a lowering that reaches it is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import InternalError
from jitgraph.target import host

_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}
_EXACT: dict[str, Callable[[Any, Any], Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_NUMPY_NAMES = {"pow": "power", "libm.hypot": "hypot"}
_BY_ELEMENT: dict[str, Callable[[float], float]] = {"erf": math.erf, "erfc": math.erfc}


class Pair(NamedTuple):
    """Complex numbers by their parts."""

    real: Any
    imag: Any

    @property
    def dtype(self) -> np.dtype:
        return dtypes.complex_of(self.real.dtype)


class NumpyScalar:
    """Primitives on arrays (broadcast against one another) and scalars; see `ir.opdef.Scalar`."""

    def dtype(self, x: Any) -> np.dtype:
        found: np.dtype = x.dtype
        return found

    def const(self, value: Any, dtype: np.dtype) -> Any:
        return np.asarray(value, dtype)[()]

    def like(self, value: Any, x: Any) -> Any:
        return np.asarray(value, x.dtype)[()]

    def cast(self, x: Any, dtype: np.dtype) -> Any:
        if x.dtype.kind == "f" and dtypes.is_integer(dtype):
            bits = dtype.itemsize * 8
            low = -(2.0 ** (bits - 1)) if dtypes.is_signed(dtype) else 0.0
            whole = np.trunc(x)
            if not np.all((whole >= low) & (whole < 2.0 ** (bits - dtypes.is_signed(dtype)))):
                raise InternalError(f"a conversion to {dtype.name} of a value out of its range")
        return x.astype(dtype)

    def bitcast(self, x: Any, dtype: np.dtype) -> Any:
        return np.asarray(x).view(dtype)[()]

    def add(self, a: Any, b: Any) -> Any:
        return np.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return np.subtract(a, b)

    def mul(self, a: Any, b: Any) -> Any:
        return np.multiply(a, b)

    def fdiv(self, a: Any, b: Any) -> Any:
        return np.true_divide(a, b)

    def frem(self, a: Any, b: Any) -> Any:
        return np.fmod(a, b)

    def _require_divisor(self, a: Any, b: Any) -> None:
        least = np.iinfo(a.dtype).min if dtypes.is_signed(a.dtype) else None
        if np.any(b == 0) or (least is not None and np.any((a == least) & (b == -1))):
            raise InternalError("an integer division by zero, or of the least integer by -1")

    def idiv(self, a: Any, b: Any) -> Any:
        self._require_divisor(a, b)
        return np.floor_divide(np.subtract(a, np.fmod(a, b)), b)

    def irem(self, a: Any, b: Any) -> Any:
        self._require_divisor(a, b)
        return np.fmod(a, b)

    def overflows(self, operation: str, a: Any, b: Any) -> Any:
        exact = _EXACT[operation](np.asarray(a).astype(object), np.asarray(b).astype(object))
        info = np.iinfo(a.dtype)
        return np.asarray((exact < int(info.min)) | (exact > int(info.max)), bool)[()]

    def muladd(self, a: Any, b: Any, c: Any) -> Any:
        return self.fma(a, b, c) if host().has_fma else np.add(np.multiply(a, b), c)

    def pair(self, real: Any, imag: Any) -> Pair:
        return Pair(real, imag)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c rounded once, by exact fractions."""
        operands = np.broadcast_arrays(a, b, c)
        with np.errstate(all="ignore"):
            result = np.array(np.add(np.multiply(a, b), c))
        for i in np.ndindex(result.shape):
            p, q, r = (float(x[i]) for x in operands)
            if math.isfinite(p) and math.isfinite(q) and math.isinf(r):
                result[i] = r  # though a * b may overflow
            elif math.isfinite(p) and math.isfinite(q) and math.isfinite(r):
                exact = Fraction(p) * Fraction(q) + Fraction(r)
                if exact:
                    result[i] = _rounded(exact, result.dtype)
        return result[()]

    def neg(self, a: Any) -> Any:
        return np.negative(a)

    def fabs(self, a: Any) -> Any:
        return np.fabs(a)

    def copysign(self, a: Any, b: Any) -> Any:
        return np.copysign(a, b)

    def sqrt(self, a: Any) -> Any:
        return np.sqrt(a)

    def floor(self, a: Any) -> Any:
        return np.floor(a)

    def ceil(self, a: Any) -> Any:
        return np.ceil(a)

    def trunc(self, a: Any) -> Any:
        return np.trunc(a)

    def rint(self, a: Any) -> Any:
        return np.rint(a)

    def cmp(self, predicate: str, a: Any, b: Any) -> Any:
        return _PREDICATES[predicate](a, b)

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)[()]

    def and_(self, a: Any, b: Any) -> Any:
        return np.bitwise_and(a, b)

    def or_(self, a: Any, b: Any) -> Any:
        return np.bitwise_or(a, b)

    def xor(self, a: Any, b: Any) -> Any:
        return np.bitwise_xor(a, b)

    def not_(self, a: Any) -> Any:
        return np.invert(a)

    def _require_shift(self, b: Any) -> None:
        if np.any(b < 0) or np.any(b >= b.dtype.itemsize * 8):
            raise InternalError("a shift by less than zero or by the width or more")

    def shl(self, a: Any, b: Any) -> Any:
        self._require_shift(b)
        return np.left_shift(a, b)

    def shr(self, a: Any, b: Any) -> Any:
        self._require_shift(b)
        return np.right_shift(a, b)

    def call(self, name: str, *args: Any) -> Any:
        """A function of the math library, by NumPy's own where it has one.

        Raises:
            InternalError: there is no such function.
        """
        if name == "sigmoid":
            (x,) = args
            e = np.exp(-np.abs(x))
            return np.divide(np.where(x < 0, e, self.like(1, x)), np.add(self.like(1, x), e))[()]
        by_element = _BY_ELEMENT.get(name)
        if by_element is not None:
            x = np.asarray(args[0])
            values = np.array([by_element(v) for v in x.ravel().tolist()], np.float64)
            return values.reshape(x.shape).astype(x.dtype)[()]
        function = getattr(np, _NUMPY_NAMES.get(name, name), None)
        if function is None:
            raise InternalError(f"no function {name!r}")
        return function(*args)


def _rounded(exact: Fraction, dtype: np.dtype) -> float:
    """The float of `dtype` nearest to `exact`, ties to even; infinity beyond the range."""
    limit = np.finfo(dtype)
    digits, least = limit.nmant + 1, int(limit.minexp) - limit.nmant
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - digits
    while magnitude >= Fraction(2) ** (exponent + digits):
        exponent += 1
    exponent = max(exponent, least)
    scaled = round(magnitude / Fraction(2) ** exponent)  # to even on ties
    try:
        value = math.ldexp(scaled, exponent)
    except OverflowError:
        value = math.inf
    value = value if value <= float(limit.max) else math.inf
    return -value if exact < 0 else value  # no `copysign`: `exact` may be no float
