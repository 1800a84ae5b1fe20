"""Python's numeric builtins and `math` on traced values: Python's results, kinds and errors."""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided, is_long
from jitgraph.ir.dims import Dim, DimLike, dim_max, dim_min, floordiv
from jitgraph.ir.graph import Value
from jitgraph.ir.rewrite import constant_of
from jitgraph.modes import TraceMode
from jitgraph.tensor import Ratio, Tensor, dim_tensor, lift, read, wrap
from jitgraph.xp import complexes
from jitgraph.xp.core import NUMPY_TABLE, R, as_kind, cast, mode_in, tensor
from jitgraph.xp.indexing import iterate
from jitgraph.xp.operators import (
    _python_message,
    as_python,
    binary,
    dim_of,
    is_python,
)
from jitgraph.xp.reductions import sum_of

#: Builtin to its stand-in.
BUILTIN_TABLE: dict[Any, Callable[..., Any]] = {}


def standin(original: Any, table: dict[Any, Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated body serves traced arguments, `original` the others."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(body)
        def function(*args: Any, **kwargs: Any) -> Any:
            mode = mode_in(args)
            if not isinstance(mode, TraceMode):
                return original(*args, **kwargs)
            return body(mode, *args, **kwargs)

        table[original] = function
        return function

    return decorate


def as_float(mode: TraceMode, x: Any) -> Value:
    """A scalar as a float64 value of kind `py_float`."""
    if type(x) is Tensor and x.type.shape:
        if all(d == 1 for d in x.type.shape):
            from jitgraph.xp.shape import reshape_to

            x = reshape_to(x, ())
        else:
            mode.refuse(x, "float")
    value = lift(mode, x)
    if value.type.kind == "py_complex":
        raise errors.DTypeError("float() argument must be a string or a real number, not 'complex'")
    if value.type.dtype != dtypes.F64:
        if value.type.kind == "array":
            value = mode.builder.apply(R("as_kind"), value, kind="np_scalar")[0]
        value = mode.builder.apply(R("cast"), value, dtype=dtypes.F64)[0]
    return as_python(mode, value) if value.type.kind != "py_float" else value  # type: ignore[no-any-return]


def _op(mode: TraceMode, name: str, *values: Any) -> Value:
    return mode.builder.apply(R(name), *values)[0]


def _unless(mode: TraceMode, bad: Value, error: str, message: str) -> None:
    mode.check(_op(mode, "logical_not", bad), error, message)


# --- math

_DOMAIN = _python_message(lambda: math.sqrt(-1.0))
_RANGE = _python_message(lambda: math.exp(1000.0))
_LOG_DOMAIN = _python_message(lambda: math.log(0.0))
_TRIG_DOMAIN = _python_message(lambda: math.sin(math.inf))
_INT_OF_NAN = _python_message(lambda: int(math.nan))
_INT_OF_INF = _python_message(lambda: int(math.inf))


def _by_libm(mode: TraceMode, function: Any, *args: Any) -> Any:
    """A call back of a function of `math`: the C library's bits, and Python's errors."""
    assert mode.call_numpy is not None
    return mode.call_numpy(function, args, {})


def _math(
    name: str,
    record: str,
    bad: Callable[[TraceMode, Value], Value] | None = None,
    message: str = _DOMAIN,
    overflows: bool = False,
) -> None:
    """`math.<name>` of one argument: `bad(x)` raises ValueError, a result that overflows OverflowError."""
    original = getattr(math, name)
    bounded = R(record).ulp > 0

    @standin(original, NUMPY_TABLE)
    def function(mode: TraceMode, x: Any, /) -> Any:
        if bounded and mode.exact:
            return _by_libm(mode, original, x)
        value = as_float(mode, x)
        if bad is not None:
            _unless(mode, bad(mode, value), "ValueError", message)
        result = _op(mode, record, value)
        if overflows:
            too_big = _op(mode, "logical_and", _op(mode, "isinf", result), _op(mode, "isfinite", value))
            _unless(mode, too_big, "OverflowError", _RANGE)
        return wrap(mode, as_python(mode, result))

    function.__name__ = name


def _below(limit: float, strict: bool = True) -> Callable[[TraceMode, Value], Value]:
    return lambda mode, x: _op(mode, "lt" if strict else "le", x, limit)


def _outside_one(mode: TraceMode, x: Value) -> Value:
    return _op(mode, "gt", _op(mode, "abs", x), 1.0)


def _not_inside_one(mode: TraceMode, x: Value) -> Value:
    return _op(mode, "ge", _op(mode, "abs", x), 1.0)


def _infinite(mode: TraceMode, x: Value) -> Value:
    return _op(mode, "isinf", x)


_math("sqrt", "sqrt", _below(0.0))
_math("exp", "exp", overflows=True)
_math("expm1", "expm1", overflows=True)
_math("log2", "log2", _below(0.0, strict=False), _LOG_DOMAIN)
_math("log10", "log10", _below(0.0, strict=False), _LOG_DOMAIN)
_math("log1p", "log1p", _below(-1.0, strict=False))
_math("sin", "sin", _infinite, _TRIG_DOMAIN)
_math("cos", "cos", _infinite, _TRIG_DOMAIN)
_math("tan", "tan", _infinite, _TRIG_DOMAIN)
_math("asin", "arcsin", _outside_one)
_math("acos", "arccos", _outside_one)
_math("atan", "arctan")
_math("sinh", "sinh", overflows=True)
_math("cosh", "cosh", overflows=True)
_math("tanh", "tanh")
_math("asinh", "arcsinh")
_math("acosh", "arccosh", _below(1.0))
_math("atanh", "arctanh", _not_inside_one)
_math("fabs", "abs")
_math("erf", "erf")
_math("erfc", "erfc")
_math("isnan", "isnan")
_math("isinf", "isinf")
_math("isfinite", "isfinite")
if hasattr(math, "cbrt"):
    _math("cbrt", "cbrt")
if hasattr(math, "exp2"):
    _math("exp2", "exp2", overflows=True)


@standin(math.log, NUMPY_TABLE)
def log(mode: TraceMode, x: Any, /, base: Any = None) -> Any:
    if mode.exact:
        return _by_libm(mode, math.log, x, *(() if base is None else (base,)))
    value = as_float(mode, x)
    _unless(mode, _op(mode, "le", value, 0.0), "ValueError", _LOG_DOMAIN)
    result = wrap(mode, as_python(mode, _op(mode, "log", value)))
    if base is None:
        return result
    return binary("truediv", result, log(base) if type(base) is Tensor else math.log(base))


@standin(math.degrees, NUMPY_TABLE)
def degrees(mode: TraceMode, x: Any, /) -> Any:
    return wrap(mode, _op(mode, "mul", as_float(mode, x), 180.0 / math.pi))


@standin(math.radians, NUMPY_TABLE)
def radians(mode: TraceMode, x: Any, /) -> Any:
    return wrap(mode, _op(mode, "mul", as_float(mode, x), math.pi / 180.0))


@standin(math.atan2, NUMPY_TABLE)
def atan2(mode: TraceMode, y: Any, x: Any, /) -> Any:
    if mode.exact:
        return _by_libm(mode, math.atan2, y, x)
    return wrap(mode, as_python(mode, _op(mode, "arctan2", as_float(mode, y), as_float(mode, x))))


@standin(math.copysign, NUMPY_TABLE)
def copysign(mode: TraceMode, x: Any, y: Any, /) -> Any:
    return wrap(mode, as_python(mode, _op(mode, "copysign", as_float(mode, x), as_float(mode, y))))


@standin(math.fmod, NUMPY_TABLE)
def fmod(mode: TraceMode, x: Any, y: Any, /) -> Any:
    a, b = as_float(mode, x), as_float(mode, y)
    bad = _op(mode, "logical_or", _op(mode, "eq", b, 0.0), _op(mode, "isinf", a))
    nan = _op(mode, "logical_or", _op(mode, "isnan", a), _op(mode, "isnan", b))
    _unless(mode, _op(mode, "logical_and", bad, _op(mode, "logical_not", nan)), "ValueError", _DOMAIN)
    return wrap(mode, as_python(mode, _op(mode, "fmod", a, b)))


@standin(math.pow, NUMPY_TABLE)
def math_pow(mode: TraceMode, x: Any, y: Any, /) -> Any:
    if mode.exact:
        return _by_libm(mode, math.pow, x, y)
    a, b = as_float(mode, x), as_float(mode, y)
    fraction = _op(mode, "ne", b, _op(mode, "floor", b))
    complex_ = _op(mode, "logical_and", _op(mode, "lt", a, 0.0), fraction)
    zero = _op(mode, "logical_and", _op(mode, "eq", a, 0.0), _op(mode, "lt", b, 0.0))
    finite = _op(mode, "logical_and", _op(mode, "isfinite", a), _op(mode, "isfinite", b))
    _unless(mode, _op(mode, "logical_and", _op(mode, "logical_or", complex_, zero), finite), "ValueError", _DOMAIN)
    result = _op(mode, "pow", a, b)
    _unless(mode, _op(mode, "logical_and", _op(mode, "isinf", result), finite), "OverflowError", _RANGE)
    return wrap(mode, as_python(mode, result))


@standin(math.modf, NUMPY_TABLE)
def math_modf(mode: TraceMode, x: Any, /) -> Any:
    value = as_float(mode, x)
    parts = (_op(mode, "modf_fraction", value), _op(mode, "trunc", value))
    return tuple(wrap(mode, as_python(mode, p)) for p in parts)


@standin(math.frexp, NUMPY_TABLE)
def math_frexp(mode: TraceMode, x: Any, /) -> Any:
    value = as_float(mode, x)
    exponent = mode.builder.apply(R("cast"), _op(mode, "frexp_exponent", value), dtype=dtypes.I64)[0]
    return tuple(wrap(mode, as_python(mode, p)) for p in (_op(mode, "frexp_mantissa", value), exponent))


@standin(math.ldexp, NUMPY_TABLE)
def math_ldexp(mode: TraceMode, x: Any, i: Any, /) -> Any:
    value = as_float(mode, x)
    exponent = lift(mode, _whole(mode, i))
    if exponent.type.is_python:
        exponent = mode.builder.apply(R("as_kind"), exponent, kind="np_scalar")[0]
    result = _op(mode, "ldexp", value, exponent)
    too_big = _op(mode, "logical_and", _op(mode, "isinf", result), _op(mode, "isfinite", value))
    _unless(mode, too_big, "OverflowError", _RANGE)
    return wrap(mode, as_python(mode, result))


@standin(math.nextafter, NUMPY_TABLE)
def math_nextafter(mode: TraceMode, x: Any, y: Any, /) -> Any:
    return wrap(mode, as_python(mode, _op(mode, "nextafter", as_float(mode, x), as_float(mode, y))))


def _divisor(name: str) -> None:
    """`math.gcd` and `math.lcm` of any number of integers."""

    @standin(getattr(math, name), NUMPY_TABLE)
    def function(mode: TraceMode, *integers: Any) -> Any:
        found = lift(mode, 0 if name == "gcd" else 1)
        for x in integers:
            found = _op(mode, name, found, lift(mode, _whole(mode, x)))
            least = _op(mode, "ge", found, 0)  # of -2**63 alone, or a multiple beyond 64 bits
            mode.check(least, "deoptimise", "Python integer does not fit in 64 bits")
        return wrap(mode, as_python(mode, found))

    function.__name__ = name


def _whole(mode: TraceMode, x: Any) -> Any:
    """An integer as `operator.index` takes it: a Python int."""
    if type(x) is not Tensor:
        return operator.index(x)
    if x.type.shape or x.type.dtype.kind not in "iub":
        raise errors.DTypeError(f"'{x.__class__.__name__}' object cannot be interpreted as an integer")
    return _integer(mode, x)


_divisor("gcd")


@standin(operator.index, NUMPY_TABLE)
def index(mode: TraceMode, x: Any, /) -> Any:
    return _whole(mode, x)


@standin(math.hypot, NUMPY_TABLE)
def hypot(mode: TraceMode, *coordinates: Any) -> Any:
    """The nearest float, as Python's is but for the rarest ties: the squares are summed in twice the precision.

    All are scaled by the power of two of the greatest, so that nothing overflows on the way. An infinity wins over NaN.
    """
    if not coordinates:
        return 0.0
    values = [_op(mode, "abs", as_float(mode, x)) for x in coordinates]
    top, infinite = values[0], _op(mode, "isinf", values[0])
    for v in values[1:]:
        top = _op(mode, "maximum", top, v)
        infinite = _op(mode, "logical_or", infinite, _op(mode, "isinf", v))
    if len(values) == 1:
        return wrap(mode, as_python(mode, top))
    exponent = _op(mode, "frexp_exponent", top)
    scaled = [as_python(mode, _op(mode, "ldexp", v, _op(mode, "neg", exponent))) for v in values]
    high, low = _exact_square(mode, scaled[0])
    for v in scaled[1:]:
        square, rest = _exact_square(mode, v)
        total = _op(mode, "add", high, square)
        part = _op(mode, "sub", total, high)  # Knuth's sum: what the rounded one leaves
        left = _op(mode, "add", _op(mode, "sub", high, _op(mode, "sub", total, part)), _op(mode, "sub", square, part))
        high, low = total, _op(mode, "add", low, _op(mode, "add", rest, left))
    root = _op(mode, "sqrt", high)
    square, rest = _exact_square(mode, root)
    left = _op(mode, "add", _op(mode, "sub", _op(mode, "sub", high, square), rest), low)
    moves = _op(mode, "gt", root, 0.0)
    step = _op(mode, "div", left, _scalar_where(mode, moves, _op(mode, "mul", root, 2.0), 1.0))  # Newton's
    root = _scalar_where(mode, moves, _op(mode, "add", root, step), root)
    result = as_python(mode, _op(mode, "ldexp", root, exponent))
    found = _scalar_where(mode, infinite, math.inf, result)
    return wrap(mode, as_python(mode, found))


def _exact_square(mode: TraceMode, x: Value) -> tuple[Value, Value]:
    """x * x, rounded, and what that leaves, for |x| <= 2.

    Source: T. J. Dekker, "A Floating-Point Technique for Extending the Available Precision", 1971.
    """
    wide = _op(mode, "mul", x, 134217729.0)
    high = _op(mode, "sub", wide, _op(mode, "sub", wide, x))
    low = _op(mode, "sub", x, high)
    square = _op(mode, "mul", x, x)
    twice = _op(mode, "mul", _op(mode, "mul", high, low), 2.0)
    rest = _op(mode, "add", _op(mode, "sub", _op(mode, "mul", high, high), square), twice)
    return square, _op(mode, "add", rest, _op(mode, "mul", low, low))


def _scalar_where(mode: TraceMode, c: Value, a: Any, b: Any) -> Value:
    chosen = mode.builder.apply(R("where"), c, a, b)[0]
    return as_python(mode, chosen)  # type: ignore[no-any-return]


def _to_integer(mode: TraceMode, x: Any, rounding: str) -> Any:
    """A float as a Python int: NaN and infinities are errors, values beyond 64 bits rerun the call in Python."""
    if type(x) is Tensor:
        dim = x._dim
        if isinstance(dim, (int, Dim)):
            return x
        if isinstance(dim, Ratio):
            return _rounded_ratio(mode, dim, rounding, x)
        if x.type.dtype.kind in "iub":
            return _integer(mode, x)
    value = as_float(mode, x)
    _unless(mode, _op(mode, "isnan", value), "ValueError", _INT_OF_NAN)
    _unless(mode, _op(mode, "isinf", value), "OverflowError", _INT_OF_INF)
    mode.check(
        _op(mode, "lt", _op(mode, "abs", value), 2.0**63), "deoptimise", "Python integer does not fit in 64 bits"
    )
    whole = _op(mode, rounding, value)
    return wrap(mode, as_python(mode, mode.builder.apply(R("cast"), whole, dtype=dtypes.I64)[0]))


def _rounded_ratio(mode: TraceMode, ratio: Ratio, rounding: str, x: Tensor) -> Any:
    """floor, ceil or trunc of a quotient of sizes: again a size."""
    n, d = ratio.numerator, ratio.denominator
    try:
        if rounding == "trunc":
            rounding = "floor" if mode.decide(">=", n, 0) == mode.decide(">", d, 0) else "ceil"
    except Undecided:
        return _integer_of_float(mode, x)
    if rounding == "floor":
        return dim_tensor(mode, floordiv(n, d))
    if rounding == "ceil":
        return dim_tensor(mode, -floordiv(-n, d))
    return _integer_of_float(mode, x)


def _integer_of_float(mode: TraceMode, x: Tensor) -> Any:
    whole = _op(mode, "trunc", read(x))
    return wrap(mode, as_python(mode, mode.builder.apply(R("cast"), whole, dtype=dtypes.I64)[0]))


def _integer(mode: TraceMode, x: Tensor) -> Any:
    """An integer or bool scalar as a Python int."""
    if x.type.shape:
        mode.refuse(x, "int")
    if x.type.kind == "py_int":
        return x
    value = read(x)
    if value.type.kind == "array":
        value = mode.builder.apply(R("as_kind"), value, kind="np_scalar")[0]
    if value.type.dtype == np.uint64:
        mode.check(_op(mode, "le", value, np.uint64(2**63 - 1)), "deoptimise", "Python integer does not fit in 64 bits")
    if value.type.dtype != dtypes.I64:
        value = mode.builder.apply(R("cast"), value, dtype=dtypes.I64)[0]
    return wrap(mode, as_python(mode, value))


for _name, _rounding in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc")):

    def _rounded(mode: TraceMode, x: Any, /, *, _rounding: str = _rounding) -> Any:
        return _to_integer(mode, x, _rounding)

    standin(getattr(math, _name), NUMPY_TABLE)(_rounded)


@standin(math.prod, NUMPY_TABLE)
def prod(mode: TraceMode, iterable: Any, /, *, start: Any = 1) -> Any:
    total = start
    for item in iterate(iterable) if type(iterable) is Tensor else iterable:
        total = total * item
    return total


@standin(math.isclose, NUMPY_TABLE)
def isclose(mode: TraceMode, a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    x, y = as_float(mode, a), as_float(mode, b)
    gap = _op(mode, "abs", _op(mode, "sub", y, x))
    scale = _op(mode, "maximum", _op(mode, "abs", x), _op(mode, "abs", y))
    near = _op(mode, "le", gap, _op(mode, "maximum", _op(mode, "mul", scale, rel_tol), abs_tol))
    finite = _op(mode, "logical_and", _op(mode, "isfinite", x), _op(mode, "isfinite", y))
    return wrap(mode, _op(mode, "logical_or", _op(mode, "eq", x, y), _op(mode, "logical_and", near, finite)))


# --- cmath


def _cmath(name: str) -> None:
    @standin(getattr(cmath, name), NUMPY_TABLE)
    def function(mode: TraceMode, z: Any, /) -> Any:
        return _by_python(mode, name, complexes.python_complex(mode, z))

    function.__name__ = name


def _by_python(mode: TraceMode, name: str, *values: Value) -> Any:
    return wrap(mode, mode.builder.apply(R("python_complex"), *values, of=name)[0])


for _name in complexes.CMATH:
    _cmath(_name)


@standin(cmath.log, NUMPY_TABLE)
def cmath_log(mode: TraceMode, z: Any, base: Any = None, /) -> Any:
    operands = (z,) if base is None else (z, base)
    return _by_python(mode, "log", *(complexes.python_complex(mode, x) for x in operands))


@standin(cmath.polar, NUMPY_TABLE)
def polar(mode: TraceMode, z: Any, /) -> Any:
    value = complexes.python_complex(mode, z)
    return complexes.python_abs(mode, value), _by_python(mode, "phase", value)


@standin(cmath.rect, NUMPY_TABLE)
def rect(mode: TraceMode, r: Any, phi: Any, /) -> Any:
    return _by_python(mode, "rect", as_float(mode, r), as_float(mode, phi))


# --- builtins


@standin(builtins.abs, BUILTIN_TABLE)
def abs_(mode: TraceMode, x: Any, /) -> Any:
    return abs(x)


@standin(builtins.int, BUILTIN_TABLE)
def int_(mode: TraceMode, x: Any = 0, /, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise errors.DTypeError("int() can't convert non-string with explicit base")
    if type(x) is not Tensor:
        return int(x)
    return _to_integer(mode, x, "trunc")


@standin(builtins.float, BUILTIN_TABLE)
def float_(mode: TraceMode, x: Any = 0.0, /) -> Any:
    if type(x) is not Tensor:
        return float(x)
    return x if isinstance(x._dim, Ratio) else wrap(mode, as_float(mode, x))


@standin(builtins.complex, BUILTIN_TABLE)
def complex_(mode: TraceMode, real: Any = 0, imag: Any = None) -> Any:
    return complexes.complex_of(mode, real, imag)


_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"


def only_element(mode: TraceMode, x: Tensor) -> Tensor:
    """The element of an array whose truth is asked for.

    Raises:
        ValueError: it has not just one; where only the run knows, the compiled code raises.
    """
    for size in x.type.shape:
        try:
            if not (size == 1 if isinstance(size, int) else mode.decide("==", size, 1)):
                raise ValueError(_AMBIGUOUS)
        except Undecided:
            mode.check(mode.compare("eq", size, 1), "ValueError", _AMBIGUOUS)
    return x[(0,) * x.type.ndim]  # type: ignore[no-any-return]


@standin(builtins.bool, BUILTIN_TABLE)
def bool_(mode: TraceMode, x: Any = False, /) -> Any:
    if type(x) is not Tensor:
        return bool(x)
    dim = dim_of(x)
    if dim is not None:
        try:
            return mode.decide("!=", dim, 0)
        except Undecided:
            pass
    value = read(only_element(mode, x) if x.type.shape else x)
    if value.type.kind == "array":
        value = mode.builder.apply(R("as_kind"), value, kind="np_scalar")[0]
    if value.type.dtype.kind != "b":
        value = _op(mode, "ne", value, 0)
    return wrap(mode, as_python(mode, value))


def _scalar_class(kind: type[np.generic]) -> None:
    """`np.float32(x)`, `np.uint8(x)`, ...: a scalar of that dtype, an array cast to it; Python integers must fit."""
    dtype = np.dtype(kind)

    @standin(kind, NUMPY_TABLE)
    def construct(mode: TraceMode, x: Any = 0, /) -> Any:
        x = tensor(x, mode)
        if dtype.kind in "iu":
            if x.type.kind == "py_float":
                x = _to_integer(mode, x, "trunc")
            if x.type.kind == "py_int":
                mode.check_fits(lift(mode, x), dtype)
        made = cast(x, dtype)
        return made if made.type.shape else as_kind(made, "np_scalar")

    construct.__name__ = kind.__name__


for _dtype in dtypes.COMPILED:
    _scalar_class(_dtype.type)


@standin(builtins.round, BUILTIN_TABLE)
def round_(mode: TraceMode, number: Any, ndigits: Any = None) -> Any:
    if type(number) is not Tensor:
        return round(number, ndigits)
    t = number.type
    if t.is_python:
        if t.kind in ("py_int", "py_bool") and ndigits is None:
            return _integer(mode, number)
        if ndigits is None:
            return _to_integer(mode, number, "rint")
        mode.fail("round() of a traced Python float to decimals", "use np.round, which rounds as NumPy does.")
    if t.kind == "array":
        raise errors.DTypeError("type numpy.ndarray doesn't define __round__ method")
    if t.dtype.kind == "b":
        raise errors.DTypeError("type numpy.bool doesn't define __round__ method")
    if ndigits is None:
        return _to_integer(mode, number, "rint")
    return NUMPY_TABLE[np.round](number, ndigits)


@standin(builtins.pow, BUILTIN_TABLE)
def pow_(mode: TraceMode, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return base**exp
    types = [lift(mode, x).type for x in (base, exp, mod)]
    if any(t.kind not in ("py_int", "py_bool") for t in types):
        if all(t.is_python for t in types):
            raise errors.DTypeError("pow() 3rd argument not allowed unless all arguments are integers")
        raise errors.DTypeError("unsupported operand type(s) for ** or pow(): arrays and numbers of NumPy's")
    _unless(mode, _op(mode, "eq", lift(mode, mod), 0), "ValueError", "pow() 3rd argument cannot be 0")
    inverse = _op(mode, "lt", lift(mode, exp), 0)
    _unless(mode, inverse, "deoptimise", "a modular inverse is Python's")
    return base**exp % mod


@standin(builtins.divmod, BUILTIN_TABLE)
def divmod_(mode: TraceMode, a: Any, b: Any, /) -> Any:
    return divmod(a, b)


@standin(builtins.len, BUILTIN_TABLE)
def len_(mode: TraceMode, obj: Any, /) -> Any:
    if type(obj) is not Tensor:
        return len(obj)
    if not obj.type.shape:
        raise errors.DTypeError(
            "len() of unsized object"
            if obj.type.kind == "array"
            else f"object of type '{obj.__class__.__name__}' has no len()"
        )
    return dim_tensor(mode, obj.type.shape[0])


def _listed(original: Any) -> None:
    """Let the stand-in of `original` see what a single generator, set or view of a dict yields."""
    body = BUILTIN_TABLE[original]

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], LOOKED_INTO) and (original is builtins.sum or len(args) == 1):
            args = (list(args[0]), *args[1:])
        return body(*args, **kwargs)

    BUILTIN_TABLE[original] = function


#: What is searched for traced values as it is, or holds none.
LOOKED_INTO = (list, tuple, Tensor, np.ndarray, str, bytes, range)


@standin(builtins.sum, BUILTIN_TABLE)
def sum_(mode: TraceMode, iterable: Any, /, start: Any = 0) -> Any:
    return sum_of(iterate(iterable) if type(iterable) is Tensor else iterable, start)


_listed(builtins.sum)


#: What Python says of sequences without elements.
EMPTY_MAX, EMPTY_MIN = _python_message(lambda: max([])), _python_message(lambda: min([]))


def _pick(pick: str) -> Callable[..., Any]:
    original = getattr(builtins, pick)
    record = "gt" if pick == "max" else "lt"

    def body(mode: TraceMode, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("key") is not None:
            return original(*args, **kwargs)
        items = list(args)
        if len(args) == 1:
            items = list(iterate(args[0]) if type(args[0]) is Tensor else args[0])
            if not items:
                return original(items, **kwargs)
        best = items[0]
        for item in items[1:]:
            best = _better(mode, record, best, item)
        return best

    body.__name__ = pick
    made = standin(original, BUILTIN_TABLE)(body)
    _listed(original)
    return made


def _better(mode: TraceMode, record: str, a: Any, b: Any) -> Any:
    """`b if b > a else a` (or `<`), as Python's max and min choose."""
    left, right = dim_of(a), dim_of(b)
    if left is not None and right is not None:
        try:
            return b if mode.decide(">" if record == "gt" else "<", right, left) else a
        except Undecided:
            items: list[DimLike] = [left, right]
            return dim_tensor(mode, dim_max(*items) if record == "gt" else dim_min(*items))
    if type(a) is not Tensor and type(b) is not Tensor:
        return b if (b > a if record == "gt" else b < a) else a
    for x in (a, b):
        if type(x) is Tensor and x.type.shape:
            mode.refuse(x, "bool")
    va, vb = lift(mode, a), lift(mode, b)
    chosen = mode.builder.apply(R("where"), _op(mode, record, vb, va), vb, va)[0]
    if is_python(a) and is_python(b):
        return wrap(mode, as_python(mode, chosen))
    return as_kind(wrap(mode, chosen), "np_scalar")


max_, min_ = _pick("max"), _pick("min")


def _truths(original: Any, record: str, decides: bool) -> None:
    """`any` or `all`: what is known decides as in Python; traced elements are combined."""

    def function(iterable: Any, /) -> Any:
        if type(iterable) is Tensor and iterable.is_traced and iterable.type.ndim == 1:
            return bool_(NUMPY_TABLE[np.any if decides else np.all](iterable))
        total: Any = None
        for item in iterate(iterable) if type(iterable) is Tensor else iterable:
            truth = bool_(item)
            if type(truth) is not Tensor:
                if truth == decides:
                    return decides
            elif total is None:
                total = truth
            else:
                mode = truth._storage.mode
                total = wrap(mode, _op(mode, record, read(total), read(truth)))  # type: ignore[arg-type]
        return (not decides) if total is None else total

    function.__name__ = original.__name__
    BUILTIN_TABLE[original] = function


_truths(builtins.any, "logical_or", decides=True)
_truths(builtins.all, "logical_and", decides=False)


# --- lists of numbers


def element(items: list[Any] | tuple[Any, ...], index: Tensor) -> Any:
    """`items[index]` of a list or tuple: by a traced index only of numbers of one kind, as from an array of them."""
    mode = index._storage.mode
    if not isinstance(mode, TraceMode) or dim_of(index) is not None or index.type.shape or not items:
        return items[index]  # Python asks for the value
    if index.type.dtype.kind not in "iub" or constant_of(read(index)) is not None:
        return items[index]
    width = len(items[0]) if type(items[0]) is tuple else 0
    if width and all(type(x) is tuple and len(x) == width for x in items):  # directions: `dx, dy = STEPS[k]`
        columns = [[x[k] for x in items] for k in range(width)]
        if all(_one_kind(column) is not None for column in columns):
            return tuple([element(column, index) for column in columns])
    kind = _one_kind(items)
    if kind is None:
        return items[index]  # an argument may become part of the specialisation; what is data only Python can ask for
    table = NUMPY_TABLE[np.array](list(items))
    found = tensor(table, mode)[_whole(mode, index)]
    return as_kind(found, kind[0])


def _one_kind(items: Sequence[Any]) -> tuple[str, Any] | None:
    """The kind of all of them; None if there are several, or one is no number."""
    kinds = {_kind_of(x) for x in items}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of(x: Any) -> tuple[str, Any] | None:
    """Scalar kind and dtype; None for what is no number, or does not fit in 64 bits."""
    if type(x) is Tensor:
        if x.type.shape or x.type.kind == "array":
            return None
        return x.type.kind, None if x.type.is_python else x.type.dtype
    if isinstance(x, np.generic):
        return ("np_scalar", x.dtype) if x.dtype.kind in "biufc" else None
    if is_long(x):
        return None
    kind = {bool: "py_bool", int: "py_int", float: "py_float"}.get(type(x))
    return None if kind is None else (kind, None)
