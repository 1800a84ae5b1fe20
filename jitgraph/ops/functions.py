"""Mathematical functions, lowered to the vector math library by name.

`ulp` bounds the distance of compiled results from the true value, on the whole domain of the function; eager results
are NumPy's own. `domain` is where differential tests draw from, besides the special values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.opdef import Attrs, Infer, Signature
from jitgraph.ir.types import TensorType
from jitgraph.ops import lowering as low
from jitgraph.ops.families import binary, elementwise_type, require_supported, ufunc_rule, unary

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)


def float_like(name: str) -> Infer:
    """The type rule of NumPy's float functions, for functions that NumPy lacks."""
    return ufunc_rule(name, np.exp)


# ----------------------------------------------------------------------------------------- exponentials, logarithms

unary("exp", np.exp, "e^x.", low.call("exp"), vjp=lambda b, ct, y, x: (b.mul(ct, y),), domain=(-750.0, 710.0), ulp=1.0)
unary(
    "exp2",
    np.exp2,
    "2^x.",
    low.call("exp2"),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.mul(y, _LN2)),),
    domain=(-1080.0, 1024.0),
    ulp=1.0,
)
unary(
    "expm1",
    np.expm1,
    "e^x - 1, exact near zero.",
    low.call("expm1"),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.add(y, 1.0)),),
    domain=(-50.0, 710.0),
    ulp=1.0,
)
unary(
    "log",
    np.log,
    "Natural logarithm.",
    low.call("log"),
    vjp=lambda b, ct, y, x: (b.div(ct, x),),
    domain=(0.0, 1e300),
    ulp=1.0,
)
unary(
    "log2",
    np.log2,
    "Logarithm to base 2.",
    low.call("log2"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.mul(x, _LN2)),),
    domain=(0.0, 1e300),
    ulp=1.0,
)
unary(
    "log10",
    np.log10,
    "Logarithm to base 10.",
    low.call("log10"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.mul(x, _LN10)),),
    domain=(0.0, 1e300),
    ulp=1.0,
)
unary(
    "log1p",
    np.log1p,
    "log(1 + x), exact near zero.",
    low.call("log1p"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.add(x, 1.0)),),
    domain=(-1.0, 1e300),
    ulp=1.0,
)

# ----------------------------------------------------------------------------------------------------- trigonometry

unary(
    "sin", np.sin, "Sine.", low.call("sin"), vjp=lambda b, ct, y, x: (b.mul(ct, b.cos(x)),), domain=(-1e4, 1e4), ulp=1.0
)
unary(
    "cos",
    np.cos,
    "Cosine.",
    low.call("cos"),
    vjp=lambda b, ct, y, x: (b.neg(b.mul(ct, b.sin(x))),),
    domain=(-1e4, 1e4),
    ulp=1.0,
)
unary(
    "tan",
    np.tan,
    "Tangent.",
    low.call("tan"),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.add(b.square(y), 1.0)),),
    domain=(-1e4, 1e4),
    ulp=1.0,
)
unary(
    "sinh",
    np.sinh,
    "Hyperbolic sine.",
    low.call("sinh"),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.cosh(x)),),
    domain=(-720.0, 720.0),
    ulp=1.0,
)
unary(
    "cosh",
    np.cosh,
    "Hyperbolic cosine.",
    low.call("cosh"),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.sinh(x)),),
    domain=(-720.0, 720.0),
    ulp=1.0,
)
unary(
    "tanh",
    np.tanh,
    "Hyperbolic tangent.",
    low.call("tanh"),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.sub(1.0, b.square(y))),),
    domain=(-25.0, 25.0),
    ulp=1.0,
)
unary(
    "arcsin",
    np.arcsin,
    "Inverse sine, in [-pi/2, pi/2].",
    low.call("arcsin"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.sqrt(b.sub(1.0, b.square(x)))),),
    domain=(-1.0, 1.0),
    ulp=1.0,
)
unary(
    "arccos",
    np.arccos,
    "Inverse cosine, in [0, pi].",
    low.call("arccos"),
    vjp=lambda b, ct, y, x: (b.neg(b.div(ct, b.sqrt(b.sub(1.0, b.square(x))))),),
    domain=(-1.0, 1.0),
    ulp=1.0,
)
unary(
    "arctan",
    np.arctan,
    "Inverse tangent, in [-pi/2, pi/2].",
    low.call("arctan"),
    vjp=lambda b, ct, y, x: (b.div(ct, b.add(b.square(x), 1.0)),),
    domain=(-1e6, 1e6),
    ulp=1.0,
)


def _arctan2_vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    scaled = b.div(ct, b.add(b.square(p), b.square(q)))
    return b.mul(scaled, q), b.neg(b.mul(scaled, p))


binary(
    "arctan2",
    np.arctan2,
    "The angle of the point (b, a).",
    low.call("arctan2"),
    vjp=_arctan2_vjp,
    domain=(-1e6, 1e6),
    ulp=1.0,
)

# --------------------------------------------------------------------------------------------- functions of our own


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _by_math(function: Callable[[float], float]) -> Callable[[Any], Any]:
    def evaluate(x: Any) -> Any:
        """By `math` in float64, rounded once."""
        array = np.asarray(x)
        values = np.array([function(v) for v in array.ravel().tolist()], np.float64)
        return values.reshape(array.shape).astype(array.dtype if array.dtype.kind == "f" else np.float64)[()]

    return evaluate


def _relu_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    dtype = dtypes.I64 if x.kind == "py_bool" else x.dtype
    require_supported("relu", (dtype,))
    return Signature((dtype,), (elementwise_type(types, dtype),))


unary(
    "sigmoid",
    np.exp,
    "1 / (1 + exp(-x)), formed so that nothing overflows.",
    low.call("sigmoid"),
    infer=float_like("sigmoid"),
    evaluate=_sigmoid,
    vjp=lambda b, ct, y, x: (b.mul(ct, b.mul(y, b.sub(1.0, y))),),
    numpy=(),
    domain=(-750.0, 50.0),
    ulp=1.0,
)
unary(
    "erf",
    np.exp,
    "The error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.",
    low.call("erf"),
    infer=float_like("erf"),
    evaluate=_by_math(math.erf),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.mul(b.exp(b.neg(b.square(x))), _TWO_OVER_ROOT_PI)),),
    numpy=(),
    domain=(-7.0, 7.0),
    ulp=1.0,
)
unary(
    "erfc",
    np.exp,
    "1 - erf(x), as exact where that is near 0.",
    low.call("erfc"),
    infer=float_like("erfc"),
    evaluate=_by_math(math.erfc),
    vjp=lambda b, ct, y, x: (b.mul(ct, b.mul(b.exp(b.neg(b.square(x))), -_TWO_OVER_ROOT_PI)),),
    numpy=(),
    domain=(-7.0, 26.0),
    ulp=1.0,
)
unary(
    "relu",
    np.maximum,
    "max(x, 0); the gradient at 0 is 0.",
    low.relu,
    infer=_relu_infer,
    evaluate=lambda x: np.maximum(x, np.asarray(x).dtype.type(0)),
    vjp=lambda b, ct, y, x: (b.where(b.gt(x, 0.0), ct, 0.0),),
    numpy=(),
)
