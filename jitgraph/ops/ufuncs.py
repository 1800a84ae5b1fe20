"""NumPy's less common ufuncs: on the bits of floats, of angles, integers and vectors.

A ufunc with two results is two records: `modf_fraction` with `trunc`, `frexp_mantissa` with `frexp_exponent`,
`floordiv` with `mod`. What has no `lower` is computed by NumPy's own loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import ShapeError
from jitgraph.ir.opdef import Attrs, Infer, Scalar, Signature, Trait
from jitgraph.ir.types import TensorType
from jitgraph.ops import lowering as low
from jitgraph.ops.families import (
    ELEMENTWISE,
    PURE,
    binary,
    broadcast_shapes,
    define,
    dtype_code,
    dtype_of,
    elementwise_type,
    loop_dtypes,
    newaxis_map,
    no_gradient,
    predicate,
    shape_of,
    ufunc_rule,
    unary,
)

_LN2 = math.log(2.0)
_INTEGER = {dtypes.F16: dtypes.I16, dtypes.F32: dtypes.I32, dtypes.F64: dtypes.I64}
_MANTISSA = {dtypes.F32: 23, dtypes.F64: 52}
_BIAS = {dtypes.F32: 127, dtypes.F64: 1023}

# --------------------------------------------------------------------------------------------------------- functions

unary(
    "cbrt",
    np.cbrt,
    "Cube root.",
    low.call("cbrt"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.mul(b.square(y), 3.0)),),
    domain=(-1e300, 1e300),
    ulp=1.0,
)
unary(
    "arcsinh",
    np.arcsinh,
    "Inverse hyperbolic sine.",
    low.call("arcsinh"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.hypot(x, 1.0)),),
    domain=(-1e6, 1e6),
    ulp=1.0,
)
unary(
    "arccosh",
    np.arccosh,
    "Inverse hyperbolic cosine, for x >= 1.",
    low.call("arccosh"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.mul(b.sqrt(b.sub(x, 1.0)), b.sqrt(b.add(x, 1.0)))),),
    domain=(1.0, 1e6),
    ulp=1.0,
)
unary(
    "arctanh",
    np.arctanh,
    "Inverse hyperbolic tangent, for |x| <= 1.",
    low.call("arctanh"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.sub(1.0, b.square(x))),),
    domain=(-1.0, 1.0),
    ulp=1.0,
)
binary(
    "hypot",
    np.hypot,
    "sqrt(a^2 + b^2) without overflow on the way.",
    low.call("hypot"),
    vjp=lambda b, ct, y, p, q: (b.mul(ct, b.div(p, y)), b.mul(ct, b.div(q, y))),
    domain=(-1e6, 1e6),
    ulp=1.0,
)
binary(
    "float_power",
    np.float_power,
    "a ** b in float64.",
    low.call("pow"),
    vjp=lambda b, ct, y, p, q: (
        b.mul(ct, b.mul(q, b.pow(p, b.sub(q, 1.0)))),
        b.mul(ct, b.mul(y, b.log(b.where(b.eq(p, 0.0), 1.0, p)))),
    ),
    domain=(0.0, 40.0),
    ulp=1.0,
)


def _logaddexp(exp: str, scale: float, one: float) -> Callable[[Scalar, Any, Any], Any]:
    """max + log(1 + base^-|a - b|); equal operands, infinite ones too, give a + log 2."""

    def lower(s: Scalar, a: Any, b: Any) -> Any:
        gap = s.sub(a, b)
        larger = s.select(s.cmp("gt", gap, s.like(0, a)), a, b)
        tail = s.call("log1p", s.call(exp, s.neg(s.fabs(gap))))
        if scale != 1:
            tail = s.mul(tail, s.like(scale, a))
        found = s.select(s.cmp("uno", gap, gap), gap, s.add(larger, tail))
        return s.select(s.cmp("eq", a, b), s.add(a, s.like(one, a)), found)

    return lower


binary(
    "logaddexp",
    np.logaddexp,
    "log(e^a + e^b).",
    _logaddexp("exp", 1.0, _LN2),
    vjp=lambda b, ct, y, p, q: (b.mul(ct, b.exp(b.sub(p, y))), b.mul(ct, b.exp(b.sub(q, y)))),
    commutative=True,
    domain=(1.0, 700.0),
    ulp=2.0,
)
binary(
    "logaddexp2",
    np.logaddexp2,
    "log2(2^a + 2^b).",
    _logaddexp("exp2", 1.0 / _LN2, 1.0),
    vjp=lambda b, ct, y, p, q: (b.mul(ct, b.exp2(b.sub(p, y))), b.mul(ct, b.exp2(b.sub(q, y)))),
    commutative=True,
    domain=(1.0, 1000.0),
    ulp=2.0,
)


def _scaled(single: float, double: float) -> Callable[[Scalar, Any], Any]:
    """A product with a constant that NumPy rounds in its own way for float32."""

    def lower(s: Scalar, x: Any) -> Any:
        return s.mul(x, s.like(single if s.dtype(x) == dtypes.F32 else double, x))

    return lower


_PI_SINGLE = np.float32(math.pi)
unary(
    "radians",
    np.radians,
    "Degrees as radians: x * (pi / 180).",
    _scaled(float(_PI_SINGLE / np.float32(180)), math.pi / 180.0),
    vjp=lambda b, ct, y, x: (b.radians(ct),),
    numpy=(np.deg2rad, np.radians),
    linear=True,
)
unary(
    "degrees",
    np.degrees,
    "Radians as degrees: x * (180 / pi).",
    _scaled(float(np.float32(180) / _PI_SINGLE), 180.0 / math.pi),
    vjp=lambda b, ct, y, x: (b.degrees(ct),),
    numpy=(np.rad2deg, np.degrees),
    linear=True,
)
unary("fabs", np.fabs, "|x| as a float.", low.absolute, vjp=lambda b, ct, y, x: (b.mul(ct, b.sign(x)),))


def _heaviside(s: Scalar, x: Any, half: Any) -> Any:
    zero = s.like(0, x)
    step = s.select(s.cmp("lt", x, zero), zero, s.like(1, x))
    return s.select(low.is_nan(s, x), x, s.select(s.cmp("eq", x, zero), half, step))


binary(
    "heaviside",
    np.heaviside,
    "0 below zero, 1 above, b at zero.",
    _heaviside,
    vjp=lambda b, ct, y, x, half: (None, b.where(b.eq(x, 0.0), ct, 0.0)),
)

# ---------------------------------------------------------------------------------------------------- bits of floats


def _nextafter(s: Scalar, x: Any, y: Any) -> Any:
    """One step of the integer that holds the bits: outwards from zero, or towards it."""
    dtype = s.dtype(x)
    half = dtype == dtypes.F16
    a, b = (s.cast(v, dtypes.F32) if half else v for v in (x, y))
    zero = s.like(0, a)
    bits, other = s.bitcast(x, _INTEGER[dtype]), s.bitcast(y, _INTEGER[dtype])
    outwards = s.not_(s.xor(s.cmp("gt", b, a), s.cmp("gt", a, zero)))
    moved = s.add(bits, s.select(outwards, s.like(1, bits), s.like(-1, bits)))
    least = s.or_(s.and_(other, s.like(low.minimum_of(_INTEGER[dtype]), bits)), s.like(1, bits))
    moved = s.select(s.cmp("eq", a, zero), least, moved)
    moved = s.select(s.cmp("eq", a, b), bits if half else other, moved)  # C's answer; of float16 NumPy's own
    found = s.bitcast(moved, dtype)
    return s.select(s.cmp("uno", a, b), s.const(math.nan, dtype), found)


define(
    "nextafter",
    "The next float after a on the way to b.",
    ufunc_rule("nextafter", np.nextafter),
    np.nextafter,
    lower=_nextafter,
    vjp=lambda b, ct, y, p, q: (ct, None),
    traits=ELEMENTWISE,
    numpy=(np.nextafter,),
    arity=2,
)
unary("spacing", np.spacing, "The distance to the next float away from zero.", None, vjp=no_gradient)


def _normal_bits(s: Scalar, x: Any) -> tuple[Any, Any, Any]:
    """The bits of a float made normal, its exponent field, and what that was raised by."""
    dtype, integer = s.dtype(x), _INTEGER[s.dtype(x)]
    mantissa = _MANTISSA[dtype]
    lift = mantissa + 2
    tiny = s.cmp("lt", s.fabs(x), s.like(2.0 ** (1 - _BIAS[dtype]), x))
    bits = s.bitcast(s.select(tiny, s.mul(x, s.like(2.0**lift, x)), x), integer)
    field = s.and_(s.shr(bits, s.like(mantissa, bits)), s.like(2 * _BIAS[dtype] + 1, bits))
    return bits, field, s.select(tiny, s.like(lift, bits), s.like(0, bits))


def _has_exponent(s: Scalar, x: Any) -> Any:
    """Finite and not zero."""
    return s.and_(s.cmp("ne", x, s.like(0, x)), s.cmp("lt", s.fabs(x), s.like(math.inf, x)))


def _mantissa(s: Scalar, x: Any) -> Any:
    dtype = s.dtype(x)
    bits, _, _ = _normal_bits(s, x)
    field = (2 * _BIAS[dtype] + 1) << _MANTISSA[dtype]
    scaled = s.or_(s.and_(bits, s.like(~field, bits)), s.like((_BIAS[dtype] - 1) << _MANTISSA[dtype], bits))
    return s.select(_has_exponent(s, x), s.bitcast(scaled, dtype), x)


def _exponent(s: Scalar, x: Any) -> Any:
    _, field, lift = _normal_bits(s, x)
    found = s.sub(s.sub(field, s.like(_BIAS[s.dtype(x)] - 1, field)), lift)
    return s.cast(s.select(_has_exponent(s, x), found, s.like(0, found)), dtypes.I32)


def _part_of(name: str, ufunc: np.ufunc, part: int) -> Infer:
    """The type rule of one result of a ufunc of one operand with several."""

    def infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
        (x,) = types
        found = loop_dtypes(name, ufunc, (dtype_code(x),))
        if x.kind == "py_bool":
            found = loop_dtypes(name, ufunc, (int,))
        return Signature(found[:1], (elementwise_type(types, found[1 + part]),))

    return infer


unary(
    "frexp_mantissa",
    np.frexp,
    "m of x = m * 2^e, 0.5 <= |m| < 1; what is 0 or not finite stays.",
    _mantissa,
    infer=_part_of("frexp", np.frexp, 0),
    evaluate=lambda x: np.frexp(x)[0],
    vjp=lambda b, ct, y, x: (b.mul(ct, b.exp2(b.neg(b.cast(b.frexp_exponent(x), dtype=dtype_of(y))))),),
    numpy=(),
)
unary(
    "frexp_exponent",
    np.frexp,
    "e of x = m * 2^e, 0.5 <= |m| < 1, as int32; 0 of what is 0 or not finite.",
    _exponent,
    infer=_part_of("frexp", np.frexp, 1),
    evaluate=lambda x: np.frexp(x)[1],
    vjp=no_gradient,
    numpy=(),
)


def _fraction(s: Scalar, x: Any) -> Any:
    whole = s.cmp("eq", s.fabs(x), s.like(math.inf, x))
    rest = s.select(whole, s.like(0, x), s.sub(x, s.trunc(x)))
    return s.copysign(rest, x)


unary(
    "modf_fraction",
    np.modf,
    "x without its whole part, with the sign of x.",
    _fraction,
    infer=_part_of("modf", np.modf, 0),
    evaluate=lambda x: np.modf(x)[0],
    vjp=lambda b, ct, y, x: (ct,),
    numpy=(),
)


def _ldexp(s: Scalar, x: Any, n: Any) -> Any:
    """Three factors, none beyond the format; those below 1 leave room for a mantissa, so that only the last rounds."""
    dtype = s.dtype(x)
    bias, mantissa, integer = _BIAS[dtype], _MANTISSA[dtype], _INTEGER[dtype]
    reach = 3 * bias
    bounded = low.clip(s, n, s.like(-reach, n), s.like(reach, n))
    left = s.cast(bounded, integer)
    for least in (mantissa + 2 - bias, mantissa + 2 - bias, 1 - bias):
        step = low.clip(s, left, s.like(least, left), s.like(bias, left))
        x = s.mul(x, s.bitcast(s.shl(s.add(step, s.like(bias, left)), s.like(mantissa, left)), dtype))
        left = s.sub(left, step)
    return x


binary(
    "ldexp",
    np.ldexp,
    "a * 2^b for an integer b, rounded once.",
    _ldexp,
    vjp=lambda b, ct, y, x, n: (b.mul(ct, b.exp2(b.cast(n, dtype=dtype_of(y)))), None),
)

# ---------------------------------------------------------------------------------------------------------- integers


def _bitwise_count(s: Scalar, x: Any) -> Any:
    """Set bits of |x|, counted in pairs, fours, eights; a product adds up the bytes."""
    x = low.absolute(s, x)
    dtype = s.dtype(x)
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")
    x = s.cast(x, unsigned)

    def mask(byte: int) -> Any:
        return s.like(int.from_bytes(bytes([byte]) * dtype.itemsize, "little"), x)

    def shifted(v: Any, by: int) -> Any:
        return s.shr(v, s.like(by, v))

    x = s.sub(x, s.and_(shifted(x, 1), mask(0x55)))
    x = s.add(s.and_(x, mask(0x33)), s.and_(shifted(x, 2), mask(0x33)))
    x = s.and_(s.add(x, shifted(x, 4)), mask(0x0F))
    if bits > 8:
        x = shifted(s.mul(x, mask(0x01)), bits - 8)
    return s.cast(x, dtypes.U8)


unary("bitwise_count", np.bitwise_count, "The number of set bits of |x|, as uint8.", _bitwise_count, vjp=no_gradient)
binary("gcd", np.gcd, "The greatest common divisor.", None, vjp=no_gradient, commutative=True)
binary("lcm", np.lcm, "The least common multiple.", None, vjp=no_gradient, commutative=True)
predicate("isnat", np.isnat, "Whether x is no time; numbers are refused.", None)

# ----------------------------------------------------------------------------------------------------------- vectors


def _core_rule(ufunc: np.ufunc, core: tuple[int, int], result: Callable[[TensorType, TensorType], Any]) -> Infer:
    """The type rule of a product over the last axes: `core` counts those of each operand, `result` those that stay."""
    name = ufunc.__name__

    def infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
        for number, (t, count) in enumerate(zip(types, core, strict=True)):
            if t.ndim < count:
                raise ShapeError(
                    f"{name}: Input operand {number} does not have enough dimensions (has {t.ndim}, gufunc core with "
                    f"signature {ufunc.signature} requires {count})"
                )
        a, b = types
        inner = a.shape[-1], b.shape[-1] if core[1] == 1 else b.shape[-2]
        if inner[0] != inner[1]:
            raise ShapeError(
                f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                f"{ufunc.signature} (size {inner[1]} is different from {inner[0]})"
            )
        dtype = loop_dtypes(name, ufunc, tuple(dtype_code(t) for t in types))[-1]
        outer = [TensorType(t.dtype, t.shape[: t.ndim - count]) for t, count in zip(types, core, strict=True)]
        shape = (*broadcast_shapes(outer), *result(a, b))
        made = TensorType(dtype, shape) if shape else TensorType(dtype, (), "np_scalar")
        return Signature((dtype, dtype), (made,))

    return infer


def _column(b: Any, x: Any) -> Any:
    return b.view(x, map=newaxis_map(shape_of(x), len(shape_of(x))))


def _row(b: Any, x: Any) -> Any:
    return b.view(x, map=newaxis_map(shape_of(x), len(shape_of(x)) - 1))


def _vecdot_vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    ct = _column(b, ct)
    return b.mul(ct, q), b.mul(ct, p)


def _matvec_vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    return b.mul(_column(b, ct), _row(b, q)), b.vecmat(ct, p)


def _vecmat_vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    return b.matvec(q, ct), b.mul(_column(b, p), _row(b, ct))


for _ufunc, _core, _result, _product_vjp, _doc in (
    (np.vecdot, (1, 1), lambda a, b: (), _vecdot_vjp, "Products of vectors over the last axis."),
    (np.matvec, (2, 1), lambda a, b: a.shape[-2:-1], _matvec_vjp, "Products of matrices with vectors."),
    (np.vecmat, (1, 2), lambda a, b: b.shape[-1:], _vecmat_vjp, "Products of vectors with matrices."),
):
    define(
        _ufunc.__name__,
        _doc,
        _core_rule(_ufunc, _core, _result),
        _ufunc,
        vjp=_product_vjp,
        traits=PURE | {Trait.OPAQUE},
        numpy=(_ufunc,),
        arity=2,
        by_numpy=lambda types: True,
    )
