"""Elementwise functions: NumPy's ufuncs with `out`, `where`, `dtype`, and what is composed of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided, is_long
from jitgraph.ir.types import IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, apply, lift, mode_of, plain, require_output, wrap
from jitgraph.xp.complexes import imag_of, real_of
from jitgraph.xp.core import (
    EXPORTS,
    NUMPY_TABLE,
    R,
    as_kind,
    call_numpy,
    can_cast,
    cast,
    deliver,
    empty_result,
    mask_of,
    mode_in,
    np_kind,
    numpy_function,
    operand,
    product,
    sizes_agree,
    tensor,
)
from jitgraph.xp.merging import ordered
from jitgraph.xp.operators import UNLIKE_SCALARS, turned, ufunc_power
from jitgraph.xp.ufunc_loops import first_refusal, loop_of, signature_of

#: Each ufunc that a record stands for.
UFUNCS: dict[np.ufunc, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div", np.floor_divide: "floordiv",
    np.remainder: "mod", np.fmod: "fmod", np.power: "pow", np.minimum: "minimum", np.maximum: "maximum",
    np.fmin: "fmin", np.fmax: "fmax", np.negative: "neg", np.conjugate: "conj", np.absolute: "abs", np.sign: "sign",
    np.square: "square", np.reciprocal: "reciprocal", np.sqrt: "sqrt", np.copysign: "copysign", np.equal: "eq",
    np.not_equal: "ne", np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge", np.isnan:
    "isnan", np.isinf: "isinf", np.isfinite: "isfinite", np.signbit: "signbit", np.logical_and: "logical_and",
    np.logical_or: "logical_or", np.logical_xor: "logical_xor", np.logical_not: "logical_not", np.bitwise_and:
    "bit_and", np.bitwise_or: "bit_or", np.bitwise_xor: "bit_xor", np.invert: "bit_not", np.left_shift:
    "shift_left", np.right_shift: "shift_right", np.floor: "floor", np.ceil: "ceil", np.trunc: "trunc", np.rint:
    "rint", np.exp: "exp", np.exp2: "exp2", np.expm1: "expm1", np.log: "log", np.log2: "log2", np.log10:
    "log10", np.log1p: "log1p", np.sin: "sin", np.cos: "cos", np.tan: "tan", np.sinh: "sinh", np.cosh: "cosh",
    np.tanh: "tanh", np.arcsin: "arcsin", np.arccos: "arccos", np.arctan: "arctan", np.arctan2: "arctan2",
    np.cbrt: "cbrt", np.arcsinh: "arcsinh", np.arccosh: "arccosh", np.arctanh: "arctanh", np.hypot: "hypot",
    np.float_power: "float_power", np.logaddexp: "logaddexp", np.logaddexp2: "logaddexp2", np.deg2rad: "radians",
    np.radians: "radians", np.rad2deg: "degrees", np.degrees: "degrees", np.fabs: "fabs", np.heaviside: "heaviside",
    np.nextafter: "nextafter", np.spacing: "spacing", np.ldexp: "ldexp", np.bitwise_count: "bitwise_count",
    np.gcd: "gcd", np.lcm: "lcm", np.isnat: "isnat",
}  # fmt: skip
#: Ufuncs with two results: a record for each.
PAIRS: dict[np.ufunc, tuple[str, str]] = {
    np.divmod: ("floordiv", "mod"),
    np.modf: ("modf_fraction", "trunc"),
    np.frexp: ("frexp_mantissa", "frexp_exponent"),
}


_KEYWORDS = frozenset(("out", "where", "casting", "order", "dtype", "subok", "sig", "signature"))


def out_of(ufunc: np.ufunc, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """The inputs of a call, and one entry (perhaps None) for each output.

    Raises:
        DTypeError: too many or too few arguments, `out` twice, or a keyword that ufuncs do not have.
        ShapeError: `out` has another number of entries.
        ReadOnlyError: an output is read-only.
    """
    name, nin, nout = ufunc.__name__, ufunc.nin, ufunc.nout
    unknown = [k for k in kwargs if k not in _KEYWORDS]
    if unknown:
        raise errors.DTypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'")
    if not nin <= len(operands) <= nin + nout:
        raise errors.DTypeError(
            f"{name}() takes from {nin} to {nin + nout} positional arguments but {len(operands)} were given"
        )
    placed = list(operands[nin:])
    given = kwargs.get("out")
    if given is not None:
        if placed:
            raise errors.DTypeError("cannot specify 'out' as both a positional and keyword argument")
        if given is Ellipsis:
            placed = [given] * nout
        elif isinstance(given, tuple):
            if len(given) != nout:
                raise errors.ShapeError("The 'out' tuple must have exactly one entry per ufunc output")
            placed = list(given)
        elif nout > 1:
            raise errors.DTypeError("'out' must be a tuple of arrays")
        else:
            placed = [given]
    for out in placed:
        require_output(out)
    return operands[:nin], placed + [None] * (nout - len(placed))


def ufunc_call(ufunc: np.ufunc, record: str, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a ufunc on traced or recorded operands, with its keyword arguments."""
    operands, (out,) = out_of(ufunc, operands, kwargs)
    into_array = out is not None and out is not Ellipsis
    values = _strong([operand(x) for x in operands])
    casting = kwargs.get("casting", "same_kind")
    signature = signature_of(ufunc, kwargs)
    exact = signature is None and record in ("eq", "ne", "lt", "le", "gt", "ge")  # also of Python ints of any size
    if signature is not None or (casting != "same_kind" and not exact):
        values = with_loop(ufunc, values, signature, casting)
    values = by_loop(record, values, plain=False)
    mask, order = kwargs.get("where", True), kwargs.get("order", "K")
    result = None
    if into_array or mask is not True or order != "K":
        result = by_inner_loop(record, values, out if into_array else None, mask, order)
    if result is None and into_array and mask is True and R(record).ulp and out.type.layout.negative:
        key, values = turned(ufunc, out, values)
        result = _apply_record(record, values, mask)
        result = result[key[len(key) - len(result.type.shape) :]] if len(result.type.shape) <= len(key) else result
    return ufunc_result(np_kind(_apply_record(record, values, mask) if result is None else result), out, kwargs)


def by_inner_loop(
    record: str, values: Sequence[Any], out: Any = None, mask: Any = True, order: str = "K"
) -> Tensor | None:
    """A complex product, square or absolute value as NumPy's inner loop computes it into `out`; None: no such call."""
    if record not in ("mul", "square", "abs") or not (out is None or type(out) is Tensor):
        return None
    mode = mode_of((*values, out))
    if not isinstance(mode, TraceMode):
        return None
    lifted = [lift(mode, v) for v in values]
    if not mode.has_inner_loop(lifted):
        return None
    place = None if out is None else mode.place(out)
    places = []
    for v in values:
        shares = out is not None and type(v) is Tensor and v.type.kind == "array" and v._storage is out._storage
        places.append(None if not shares else place if v is out else mode.place(v))
    given = None if out is None or place is None else (out.type, place)
    where = None if mask is True else lift(mode, mask).type
    return wrap(mode, mode.by_inner_loop(record, list(zip(lifted, places, strict=True)), given, where, order)[0])


#: `UNLIKE_SCALARS` where the call has an output or keywords, be they the defaults: `np.square` knows scalars else.
_UNLIKE_SCALARS_WITH_KEYWORDS = {**UNLIKE_SCALARS, "square": "c"}


def by_loop(record: str, values: list[Any], *, plain: bool = True) -> list[Any]:
    """The operands of a ufunc's call: scalars as 0-d arrays where operators on scalars give other bits.

    Args:
        plain: the call has operands only.
    """
    kinds = (UNLIKE_SCALARS if plain else _UNLIKE_SCALARS_WITH_KEYWORDS).get(record)
    dtypes = [x.type.dtype if type(x) is Tensor else np.result_type(x) for x in values] if kinds is not None else []
    if kinds is not None and any(d.kind in kinds for d in dtypes):
        for k, x in enumerate(values):
            if type(x) is Tensor and x.type.kind == "np_scalar":
                return [as_kind(v, "array") if j == k else v for j, v in enumerate(values)]
    return values


def ufunc_result(result: Tensor, out: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a ufunc as `out`, `where`, `casting` and `order` ask for it."""
    casting = kwargs.get("casting", "same_kind")
    mask = kwargs.get("where", True)
    as_array = out is Ellipsis
    out = None if as_array else out
    if mask is not True:
        result = select_into(result, mask, out, casting)
    if as_array:
        result = as_kind(tensor(result), "array")
    if out is not None:
        return deliver(result, out, casting, repeats=True)
    return ordered(result, kwargs.get("order", "K"))


def with_loop(
    ufunc: np.ufunc, values: Sequence[Any], signature: tuple[Any, ...] | None = None, casting: str = "same_kind"
) -> list[Any]:
    """The operands cast to the loop of `ufunc` that NumPy would take, or to the one of that signature."""
    loop = loop_of(ufunc, [tensor(x) for x in values], (), signature, casting)
    return [_into_loop(tensor(x), t) for x, t in zip(values, loop, strict=False)]


def _into_loop(x: Tensor, dtype: np.dtype) -> Tensor:
    """An operand in the dtype of its loop; a Python int must fit."""
    mode = x._storage.mode
    if x.type.kind == "py_int" and dtype.kind in "iu" and isinstance(mode, TraceMode):
        mode.check_fits(lift(mode, x), dtype)
    if x.type.layout.zero and x.type.dtype != dtype and isinstance(mode, TraceMode):
        return _cast_repeated(mode, x, dtype)
    made: Tensor = cast(x, dtype)
    if made is not x and isinstance(mode, TraceMode):
        mode.builder.in_loop(lift(mode, made))
    return made


def _cast_repeated(mode: TraceMode, x: Tensor, dtype: np.dtype) -> Tensor:
    """A broadcast operand as one of another dtype: NumPy casts in its buffer, so that the result lies as without it."""
    from jitgraph.xp.shape import broadcast_to

    repeated = x.type.layout.zero
    try:
        known = all(mode.decide("<=", 1, x.type.shape[axis]) for axis in repeated)
    except Undecided:
        known = False
    if not known:
        return cast(x, dtype)  # type: ignore[no-any-return]
    once = x[tuple([slice(0, 1) if axis in repeated else slice(None) for axis in range(x.type.ndim)])]
    return broadcast_to(cast(once, dtype), x.type.shape)  # type: ignore[no-any-return]


def select_into(result: Tensor, where_: Any, out: Any, casting: str = "same_kind") -> Tensor:
    """`where=`: elsewhere the elements of `out` stay (zeros without `out`)."""
    mode = mode_of((result, where_, out if type(out) is Tensor else (out or (None,))[0]))
    result = tensor(result, mode)
    mask = mask_of(where_, mode)
    old = out[0] if isinstance(out, tuple) else out
    if old is None:
        shapes: list[Any] = [result.type.shape, mask.type.shape]
        wide = mode.broadcast_shape(shapes, "where") if isinstance(mode, TraceMode) else np.broadcast_shapes(*shapes)
        old = empty_result(mode, wide, result.type.dtype)
    if type(old) is not Tensor:
        raise errors.DTypeError("return arrays must be of ArrayType")
    if not can_cast(result.type, old.type.dtype, casting):
        raise errors.DTypeError(
            f"Cannot cast ufunc output from dtype('{result.type.dtype}') to dtype('{old.type.dtype}') with casting "
            f"rule '{casting}'"
        )
    return apply(R("where"), mask, cast(tensor(result), old.type.dtype), old)  # type: ignore[no-any-return]


def _apply_record(record: str, values: Sequence[Any], where_: Any = True) -> Any:
    """The operator; integer powers with NumPy's error for negative exponents."""
    return ufunc_power(values[0], values[1], where_) if record == "pow" else apply(R(record), *values)


def _strong(values: list[Any]) -> list[Any]:
    """The operands of a ufunc: Python numbers alone are NumPy's, as in `np.add(True, True)`.

    Ints beyond 64 bits stay weak: NumPy compares them as they are, makes floats of them beside floats, refuses others.
    """
    for x in values:
        if not (x.type.is_python if type(x) is Tensor else type(x) in (bool, int, float)):
            return values
    mode = mode_in(values)
    return [x if is_long(x) else as_kind(tensor(x, mode), "np_scalar") for x in values]


def _define_ufunc(ufunc: np.ufunc, record: str) -> Callable[..., Any]:
    nin = ufunc.nin
    label = ufunc.__name__

    def function(*operands: Any, **kwargs: Any) -> Any:
        if not kwargs and len(operands) == nin:
            for x in operands:
                if type(x) is Tensor and x._storage.mode.name != "eager":
                    values = by_loop(record, _strong([operand(v) for v in operands]))
                    return np_kind(_apply_record(record, values))
        mode = mode_in(operands)
        if kwargs and (mode is None or mode.name == "eager"):
            mode = mode_in(tuple(kwargs.values())) or mode
        if mode is None or mode.name == "eager":
            return call_numpy(ufunc, label, operands, kwargs, mode is not None)
        mark = mode.mark() if isinstance(mode, TraceMode) else None
        try:
            return ufunc_call(ufunc, record, operands, kwargs)
        except (errors.ShapeError, errors.DTypeError) as error:
            first = first_refusal(ufunc, operands, kwargs, error)
            if isinstance(mode, TraceMode) and mark is not None and isinstance(first, errors.DTypeError):
                mode.drop_checks(mark)
            raise first from None

    function.__name__ = function.__qualname__ = label
    function.__doc__ = (
        f"NumPy's `{label}` on arrays, Tensors and traced values: {R(record).doc}" if record in _registered() else label
    )
    NUMPY_TABLE[ufunc] = function
    EXPORTS[label] = function
    return function


def _registered() -> Any:
    from jitgraph.ir.opdef import REGISTRY

    return REGISTRY


for _ufunc, _record in UFUNCS.items():
    _define_ufunc(_ufunc, _record)

add, subtract, multiply, divide = (EXPORTS[k] for k in ("add", "subtract", "multiply", "divide"))
maximum, minimum, square, sqrt, absolute = (EXPORTS[k] for k in ("maximum", "minimum", "square", "sqrt", "absolute"))
exp, log, log1p, isnan, equal = (EXPORTS[k] for k in ("exp", "log", "log1p", "isnan", "equal"))
logical_and, logical_or, isfinite, less_equal = (
    EXPORTS[k] for k in ("logical_and", "logical_or", "isfinite", "less_equal")
)
floor_divide, remainder, rint, trunc = (EXPORTS[k] for k in ("floor_divide", "remainder", "rint", "trunc"))


@numpy_function(np.positive)
def positive(*operands: Any, **kwargs: Any) -> Any:
    (x,), (out,) = out_of(np.positive, operands, kwargs)
    (value,) = with_loop(np.positive, (x,), signature_of(np.positive, kwargs), kwargs.get("casting", "same_kind"))
    if value.type.kind == "array" and value.type.layout.zero:  # a ufunc gives repeated axes memory of their own
        return ufunc_result(apply(R("neg"), apply(R("neg"), value)), out, kwargs)
    return ufunc_result(duplicate(value), out, kwargs)


def _as_wide_as(outs: Sequence[Any], results: list[Any]) -> list[Any]:
    """The results of a call repeated to the common shape of its outputs, which one that is not given has, too."""
    shapes = [out.type.shape for out in outs if type(out) is Tensor]
    shape, mode = results[0].type.shape, results[0]._storage.mode
    if all(s == shape for s in shapes) or not isinstance(mode, TraceMode):
        return results
    from jitgraph.xp.shape import broadcast_to

    wide = mode.broadcast_shape([shape, *shapes], "out")
    if wide == shape:
        return results
    return [duplicate(broadcast_to(as_kind(r, "array"), wide)) for r in results]


def _define_pair(ufunc: np.ufunc, records: tuple[str, str]) -> None:
    label = ufunc.__name__

    @numpy_function(ufunc, name=label)
    def function(*operands: Any, **kwargs: Any) -> Any:
        inputs, outs = out_of(ufunc, operands, kwargs)
        values = _strong([operand(x) for x in inputs])
        values = with_loop(ufunc, values, signature_of(ufunc, kwargs), kwargs.get("casting", "same_kind"))
        results = [np_kind(apply(R(r), *values)) for r in records]  # before any is written: `out` may be an operand
        results = _as_wide_as(outs, results)
        made = list(zip(results, outs, strict=True))
        if type(outs[0]) is Tensor and outs[0].type.dtype == results[0].type.dtype:
            # Of outputs that share memory NumPy fills copies, put back last to first; what it casts is written in turn.
            return tuple([ufunc_result(r, out, kwargs) for r, out in reversed(made)][::-1])
        return tuple(ufunc_result(r, out, kwargs) for r, out in made)

    function.__doc__ = f"NumPy's `{label}`: {R(records[0]).doc} and: {R(records[1]).doc}"


for _ufunc, _records in PAIRS.items():
    _define_pair(_ufunc, _records)
divmod_ = EXPORTS["divmod"]


def duplicate(x: Tensor) -> Tensor:
    """A fresh array (or scalar) of the same elements, in their memory order."""
    if x.type.kind == "array" and x.type.shape:
        return apply(R("copy"), x, order="K")  # type: ignore[no-any-return]
    return np_kind(as_kind(x, "np_scalar"))  # type: ignore[no-any-return]


@numpy_function(np.where)
def where(condition: Any, x: Any = np._NoValue, y: Any = np._NoValue, /) -> Any:
    """`x` where `condition`, else `y`; with the condition alone, `nonzero`."""
    if x is np._NoValue and y is np._NoValue:
        from jitgraph.xp.indexing import nonzero

        return nonzero(condition)
    if x is np._NoValue or y is np._NoValue:
        raise errors.ShapeError("either both or neither of x and y should be given")
    c = tensor(condition)
    if c.type.dtype.kind != "b":
        c = EXPORTS["not_equal"](c, 0)
    a, b = operand(x), operand(y)
    if (not isinstance(a, Tensor) and not isinstance(b, Tensor)) or _all_python(a, b):
        dtype = np.result_type(*[(v.type.dtype if isinstance(v, Tensor) else v) for v in (a, b)])
        a, b = (cast(tensor(v, c._storage.mode), dtype) for v in (a, b))
    a, b = _wrapped(a, b, c), _wrapped(b, a, c)
    result = apply(R("where"), c, a, b)
    return as_kind(result, "array")


def _wrapped(x: Any, other: Any, c: Tensor) -> Any:
    """A Python int beside an integer dtype: `np.where` casts it, whatever its value (NumPy 2.5 refuses some)."""
    if not isinstance(other, Tensor | np.ndarray | np.generic):
        return x
    t = tensor(other, c._storage.mode).type
    whole = x.type.kind == "py_int" if type(x) is Tensor else type(x) is int
    if not whole or t.is_python or t.dtype.kind not in "iu":
        return x
    if type(x) is int:
        return np.where(True, x, np.zeros((), t.dtype))[()]  # NumPy's own answer, or its error
    return cast(as_kind(x, "np_scalar"), t.dtype)


def _all_python(*values: Any) -> bool:
    return all(
        v.type.is_python if type(v) is Tensor else isinstance(v, (bool, int, float)) and not isinstance(v, np.generic)
        for v in values
    )


def _open_bounds(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Python ints at or past the limits of an integer dtype bound nothing (the rule of numpy._core._methods._clip)."""
    dtype = tensor(a).type.dtype
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    return low, high


@numpy_function(np.clip)
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **kwargs: Any
) -> Any:
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    low, high = _open_bounds(a, low, high)
    if tensor(a).type.is_python:  # an array first of all, so not weak
        a = as_kind(tensor(a), "np_scalar")
    if low is None and high is None:
        return ufunc_result(duplicate(tensor(a)), out, kwargs)
    if high is None:
        return maximum(a, low, out=out, **kwargs)
    if low is None:
        return minimum(a, high, out=out, **kwargs)
    try:
        return ufunc_result(np_kind(apply(R("clip"), operand(a), operand(low), operand(high))), out, kwargs)
    except errors.ShapeError as error:
        raise first_refusal(R("clip").evaluate, (a, low, high), {**kwargs, "out": out}, error) from None


@numpy_function(np.round, np.around)
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """To the given number of decimals, halves to even: scale, round, scale back, as NumPy does it: all in `out`, and
    so in its dtype.

    Raises:
        ShapeError: `out` has another size.
    """
    x = tensor(a)
    decimals = operator.index(decimals)
    if type(out) is Tensor and x.type.shape != out.type.shape:
        wrong = "invalid output shape"
        if not sizes_agree(x._storage.mode, product(x.type.shape), product(out.type.shape), wrong):
            raise errors.ShapeError(wrong)
    if x.type.dtype.kind == "b":
        if decimals != 0 and out is None:
            what = f"Cannot cast ufunc '{'multiply' if decimals > 0 else 'divide'}' output from dtype('float64')"
            raise errors.DTypeError(f"{what} to dtype('bool') with casting rule 'same_kind'")
        x = cast(x, np.float16)
    if x.type.dtype.kind in "iu":
        if decimals >= 0:
            return deliver(duplicate(x), out, repeats=True)
        if out is None:
            power = float(10**-decimals)
            return cast(multiply(rint(divide(x, power)), power), x.type.dtype)
    elif x.type.dtype.kind == "c":  # each part on its own
        parts = (round_(part(x), decimals) for part in (real_of, imag_of))
        return deliver(np_kind(apply(R("with_imag"), cast(next(parts), x.type.dtype), next(parts))), out, repeats=True)
    if decimals == 0:
        return deliver(rint(x), out, repeats=True)
    power = float(10 ** abs(decimals))
    first, second = (multiply, divide) if decimals > 0 else (divide, multiply)
    if out is None:
        return second(rint(first(x, power)), power)
    made = deliver(first(x, power), out, repeats=True)
    return second(rint(made, out=made), power, out=made)


EXPORTS["around"] = EXPORTS["round"] = EXPORTS.pop("round_")


@numpy_function(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return trunc(x, out=out)


@numpy_function(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    t = tensor(x)
    if t.type.dtype.kind == "c":
        real, imag = (nan_to_num(part(t), True, nan, posinf, neginf) for part in (real_of, imag_of))
        both = apply(R("with_imag"), cast(tensor(real), t.type.dtype), imag)
        if not copy and t.type.kind == "array":
            return deliver(both, t)
        return cast(both, t.type.dtype) if t.type.ndim else np_kind(both)
    if t.type.dtype.kind != "f":
        return duplicate(t)
    info = np.finfo(t.type.dtype)
    top = info.max if posinf is None else posinf
    bottom = info.min if neginf is None else neginf
    kind = t.type.dtype.type
    value = where(
        isnan(t), kind(nan), where(equal(t, kind(np.inf)), kind(top), where(equal(t, kind(-np.inf)), kind(bottom), t))
    )
    if not copy and t.type.kind == "array":
        return deliver(value, t)
    return cast(value, t.type.dtype) if t.type.ndim else as_kind(value, "np_scalar")  # bytes stay in their order


@numpy_function(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x, y = tensor(a), tensor(b)
    if y.type.is_python:  # stays weak, as a float
        y = as_kind(cast(y, np.float64), "py_float") if y.type.dtype.kind in "biu" else y
    elif y.type.dtype.kind not in "fc":
        y = cast(y, np.result_type(y.type.dtype, 1.0))
    near = less_equal(absolute(subtract(x, y)), atol + rtol * abs(y))  # type: ignore[arg-type]  # its own `abs`
    result = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    if equal_nan:
        result = logical_or(result, logical_and(isnan(x), isnan(y)))
    return result


@numpy_function(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    from jitgraph.xp.reductions import all as all_

    return as_kind(tensor(all_(isclose(a, b, rtol, atol, equal_nan))), "py_bool")


@numpy_function(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    from jitgraph.xp.reductions import all as all_

    x, y = tensor(a1), tensor(a2)
    mode = x._storage.mode
    if x.type.ndim != y.type.ndim or not all(
        mode.decide("==", p, q) for p, q in zip(x.type.shape, y.type.shape, strict=True)
    ):
        return False
    same = equal(x, y)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return as_kind(tensor(all_(same)), "py_bool")


def _beyond_numpy(name: str) -> Callable[..., Any]:
    """A function that NumPy lacks, straight from its record."""
    defn = R(name)

    def function(x: Any, /) -> Any:
        t = operand(x)
        if type(t) is not Tensor:
            return call_numpy(
                defn.evaluate, name, (np.asarray(t) if not isinstance(t, np.generic) else t,), {}, tensors=False
            )
        return np_kind(apply(defn, t))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = defn.doc
    EXPORTS[name] = function
    return function


BEYOND = ("sigmoid", "relu", "erf", "erfc")
for _name in BEYOND:
    if _name in _registered():
        _beyond_numpy(_name)


def logical_where(mask: Any, x: Any, y: Any) -> Any:
    """`where` without NumPy's 0-d rule, for composing."""
    return apply(R("where"), mask, x, y)


__all__ = ["IndexMap", "plain"]
