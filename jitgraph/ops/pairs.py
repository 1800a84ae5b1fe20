"""Scalar lowerings of complex numbers, as pairs of real ones: the `pairs` rules of elementwise records.

The bits are NumPy's. Its array loops multiply and square with one fused multiply-add for each part where the CPU has
it. Operators on NumPy scalars and on Python's complex numbers, and products along an axis, do not. So the rules look at
the types of the operands: kinds other than "array" are such scalars (a ufunc that is called on scalars makes 0-d arrays
of them first). What loops of NumPy's that go element by element do to arrays are records of their own, `plain_mul` and
`plain_abs` (see `inner_loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.opdef import Scalar
from jitgraph.ir.types import TensorType
from jitgraph.ops import lowering as low

Types = Sequence[TensorType]
Lower = Callable[..., Any]


def each_part(rule: Lower) -> Lower:
    """`rule` for the real parts and for the imaginary parts."""

    def lower(s: Scalar, types: Types, *xs: Any) -> Any:
        return s.pair(rule(s, *(x.real for x in xs)), rule(s, *(x.imag for x in xs)))

    return lower


def are_scalars(types: Types) -> bool:
    return all(t.kind != "array" for t in types)


# -------------------------------------------------------------------------------------------------------- arithmetic


def mul(s: Scalar, types: Types, a: Any, b: Any) -> Any:
    return plain_product(s, a, b) if are_scalars(types) else _fused_product(s, a, b)


def square(s: Scalar, types: Types, x: Any) -> Any:
    return mul(s, types, x, x)


def plain_mul(s: Scalar, types: Types, a: Any, b: Any) -> Any:
    return plain_product(s, a, b)


def plain_product(s: Scalar, a: Any, b: Any) -> Any:
    """Four products, each rounded."""
    real = s.sub(s.mul(a.real, b.real), s.mul(a.imag, b.imag))
    return s.pair(real, s.add(s.mul(a.real, b.imag), s.mul(a.imag, b.real)))


def _fused_product(s: Scalar, a: Any, b: Any) -> Any:
    real = s.muladd(a.real, b.real, s.neg(s.mul(a.imag, b.imag)))
    return s.pair(real, s.muladd(a.real, b.imag, s.mul(a.imag, b.real)))


def div(s: Scalar, types: Types, a: Any, b: Any) -> Any:
    """Smith's algorithm; Python divides by the denominator where NumPy multiplies by its reciprocal.

    Source: R. L. Smith, "Algorithm 116: Complex division", 1962.
    """
    right, down = s.fabs(b.real), s.fabs(b.imag)
    by_real = s.cmp("ge", right, down)
    larger, smaller = s.select(by_real, b.real, b.imag), s.select(by_real, b.imag, b.real)
    ratio = s.fdiv(smaller, larger)
    whole = s.add(larger, s.mul(smaller, ratio))
    # by_real: (ar + ai ratio, ai - ar ratio); otherwise (ar ratio + ai, ai ratio - ar)
    first, second = s.select(by_real, a.real, a.imag), s.select(by_real, a.imag, a.real)
    real = s.add(first, s.mul(second, ratio))
    left, scaled = s.select(by_real, a.imag, s.mul(a.imag, ratio)), s.select(by_real, s.mul(a.real, ratio), a.real)
    imag = s.sub(left, scaled)
    if all(t.is_python for t in types):
        quotient = s.pair(s.fdiv(real, whole), s.fdiv(imag, whole))
        unordered = s.cmp("uno", right, down)  # Python gives NaN, whatever a is
        nan = s.like(float("nan"), right)
        return s.pair(s.select(unordered, nan, quotient.real), s.select(unordered, nan, quotient.imag))
    scale = s.fdiv(s.like(1, whole), whole)
    zero = s.like(0, right)
    nothing = s.and_(s.cmp("eq", right, zero), s.cmp("eq", down, zero))
    return s.pair(
        s.select(nothing, s.fdiv(a.real, right), s.mul(real, scale)),
        s.select(nothing, s.fdiv(a.imag, right), s.mul(imag, scale)),
    )


def reciprocal(s: Scalar, types: Types, x: Any) -> Any:
    by_real = s.cmp("le", s.fabs(x.imag), s.fabs(x.real))
    larger, smaller = s.select(by_real, x.real, x.imag), s.select(by_real, x.imag, x.real)
    ratio = s.fdiv(smaller, larger)
    whole = s.add(larger, s.mul(smaller, ratio))
    one = s.like(1, whole)
    real = s.fdiv(s.select(by_real, one, ratio), whole)
    return s.pair(real, s.fdiv(s.select(by_real, s.neg(ratio), s.like(-1, whole)), whole))


def absolute(s: Scalar, types: Types, x: Any) -> Any:
    """NumPy's vector loop: the larger part times sqrt(1 + ratio^2). C's hypot for scalars."""
    if are_scalars(types):
        return plain_absolute(s, types, x)
    real, imag = s.fabs(x.real), s.fabs(x.imag)
    inf, nan, zero, one = (s.like(v, real) for v in (float("inf"), float("nan"), 0, 1))
    infinite = s.or_(s.cmp("eq", real, inf), s.cmp("eq", imag, inf))
    larger = s.select(s.cmp("ge", real, imag), real, imag)
    smaller = s.select(s.cmp("ge", real, imag), imag, real)
    quotient = s.fdiv(smaller, larger)
    ratio = s.select(s.cmp("eq", larger, zero), zero, quotient)
    found = s.mul(s.sqrt(s.muladd(ratio, ratio, one)), larger)
    found = s.select(s.cmp("uno", real, imag), nan, found)
    return s.select(infinite, inf, found)


def plain_absolute(s: Scalar, types: Types, x: Any) -> Any:
    return s.call("libm.hypot", x.real, x.imag)


def conj(s: Scalar, types: Types, x: Any) -> Any:
    return s.pair(x.real, s.neg(x.imag))


def real(s: Scalar, types: Types, x: Any) -> Any:
    return x.real


def imag(s: Scalar, types: Types, x: Any) -> Any:
    return x.imag


def with_real(s: Scalar, types: Types, x: Any, part: Any) -> Any:
    return s.pair(part, x.imag)


def with_imag(s: Scalar, types: Types, x: Any, part: Any) -> Any:
    return s.pair(x.real, part)


# ------------------------------------------------------------------------------------------------ comparisons, logic


def is_nan(s: Scalar, x: Any) -> Any:
    return s.cmp("uno", x.real, x.imag)


def equal(s: Scalar, types: Types, a: Any, b: Any) -> Any:
    return s.and_(s.cmp("eq", a.real, b.real), s.cmp("eq", a.imag, b.imag))


def not_equal(s: Scalar, types: Types, a: Any, b: Any) -> Any:
    return s.or_(s.cmp("ne", a.real, b.real), s.cmp("ne", a.imag, b.imag))


def ordered(predicate: str) -> Lower:
    """lt, le, gt or ge: by the real parts, of arrays unless an imaginary one is NaN, then by the imaginary ones."""

    def lower(s: Scalar, types: Types, a: Any, b: Any) -> Any:
        if not are_scalars(types):
            return order(s, predicate, a, b)
        by_imag = s.and_(s.cmp("eq", a.real, b.real), s.cmp(predicate, a.imag, b.imag))
        return s.or_(s.cmp(predicate[0] + "t", a.real, b.real), by_imag)

    return lower


def order(s: Scalar, predicate: str, a: Any, b: Any) -> Any:
    strictly = s.cmp(predicate[0] + "t", a.real, b.real)
    by_real = s.and_(strictly, s.not_(s.cmp("uno", a.imag, b.imag)))
    return s.or_(by_real, s.and_(s.cmp("eq", a.real, b.real), s.cmp(predicate, a.imag, b.imag)))


def extreme(predicate: str, *, nan_wins: bool) -> Lower:
    """maximum and minimum: a if it is NaN or not behind b; fmax and fmin: a unless b is a number and before it."""

    def lower(s: Scalar, types: Types, a: Any, b: Any) -> Any:
        kept = s.or_(order(s, predicate, a, b), is_nan(s, a if nan_wins else b))
        return s.pair(s.select(kept, a.real, b.real), s.select(kept, a.imag, b.imag))

    return lower


def isnan(s: Scalar, types: Types, x: Any) -> Any:
    return is_nan(s, x)


def isinf(s: Scalar, types: Types, x: Any) -> Any:
    return s.or_(low.isinf(s, x.real), low.isinf(s, x.imag))


def isfinite(s: Scalar, types: Types, x: Any) -> Any:
    return s.and_(low.isfinite(s, x.real), low.isfinite(s, x.imag))


def truth(s: Scalar, x: Any) -> Any:
    """Whether a number is not zero."""
    if not dtypes.is_complex(s.dtype(x)):
        return low.truth(s, x)
    return s.or_(low.truth(s, x.real), low.truth(s, x.imag))


def of_truth(rule: Lower) -> Lower:
    """A logical operator on the truth of its operands."""

    def lower(s: Scalar, types: Types, *xs: Any) -> Any:
        return rule(s, *(truth(s, x) for x in xs))

    return lower


# ------------------------------------------------------------------------------------------------- selection, casts


def where(s: Scalar, types: Types, condition: Any, a: Any, b: Any) -> Any:
    return s.pair(s.select(condition, a.real, b.real), s.select(condition, a.imag, b.imag))


def cast(s: Scalar, types: Types, x: Any, dtype: np.dtype) -> Any:
    """As `astype`: to a real dtype the imaginary part is dropped, to bool a number is true unless both parts are 0."""
    dtype = dtypes.native(dtype)
    part = dtypes.part_of(dtype)
    if not dtypes.is_complex(s.dtype(x)):
        whole = low.cast(s, x, part)
        return s.pair(whole, s.like(0, whole))
    if dtype == dtypes.BOOL:
        return truth(s, x)
    if part == dtype:
        return low.cast(s, x.real, dtype)
    return s.pair(low.cast(s, x.real, part), low.cast(s, x.imag, part))


def as_kind(s: Scalar, types: Types, x: Any, kind: str) -> Any:
    return x
