"""The table of vector functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath import (
    error_function,
    exponential,
    hyperbolic,
    inverse,
    logarithm,
    power,
    root,
    trigonometric,
)
from jitgraph.codegen.vecmath.function import VectorFunction, libm_lanes

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V
    from jitgraph.codegen.vecmath.function import Emitter

FUNCTIONS: Final[dict[str, VectorFunction]] = {}


def _define(
    name: str, emitter: Emitter, arity: int, ulp_single: float, ulp_double: float, doc: str, source: str
) -> None:
    FUNCTIONS[name] = VectorFunction(name, arity, doc, source, {"float": ulp_single, "double": ulp_double}, emitter)


def library_function(name: str, symbol: str, arity: int, ulp_single: float, ulp_double: float) -> VectorFunction:
    """C's function `symbol`, called lane by lane: for what has no recipe."""

    def emitter(a: Assembler, /, *x: V) -> V:
        return libm_lanes(a, symbol, *x)

    ulp = {"float": ulp_single, "double": ulp_double}
    doc, source = f"C's {symbol}, lane by lane", "the C library; the bounds are glibc's"
    return VectorFunction(name, arity, doc, source, ulp, emitter, vectorised=False)


_REMEZ: Final = "additive range reduction after Cody and Waite, own minimax polynomial (bench/vecmath_fit.py)"

_LOG: Final = "own minimax polynomial; in double the series of atanh"

_define("exp", exponential.exp, 1, 1.0, 1.0, "e^x", _REMEZ)
_define("exp2", exponential.exp2, 1, 1.0, 1.0, "2^x", _REMEZ)
_define("expm1", exponential.expm1, 1, 1.0, 1.0, "e^x - 1", _REMEZ)
_define("sigmoid", exponential.sigmoid, 1, 1.0, 1.0, "1 / (1 + e^-x)", "exp of -|x|, rounding errors carried")
_define("log", logarithm.log, 1, 1.0, 1.0, "natural logarithm", _LOG)
_define("log2", logarithm.log2, 1, 1.0, 1.0, "logarithm to the base 2", _LOG)
_define("log10", logarithm.log10, 1, 1.0, 1.0, "logarithm to the base 10", _LOG)
_define("log1p", logarithm.log1p, 1, 1.0, 1.0, "log(1 + x)", "as log, with the rounding error of 1 + x added back")
_define("sin", trigonometric.sin, 1, 1.0, 1.0, "sine; C's beyond 39000 (float), 2^20 (double)", _REMEZ)
_define("cos", trigonometric.cos, 1, 1.0, 1.0, "cosine; C's beyond 39000 (float), 2^20 (double)", _REMEZ)
_define("tan", trigonometric.tan, 1, 1.0, 1.0, "tangent; C's beyond 39000 (float), 2^20 (double)", _REMEZ)
_define("arcsin", inverse.arcsin, 1, 1.0, 1.0, "inverse sine", "own minimax polynomial, half-angle formula")
_define("arccos", inverse.arccos, 1, 1.0, 1.0, "inverse cosine", "own minimax polynomial, half-angle formula")
_define("arctan", inverse.arctan, 1, 1.0, 1.0, "inverse tangent", "own minimax polynomial on [0, 1]")
_define("arctan2", inverse.arctan2, 2, 1.0, 1.0, "angle of the point (x, y), operands y, x", "as arctan")
_define("sinh", hyperbolic.sinh, 1, 1.0, 1.0, "hyperbolic sine", "addition theorem, own minimax polynomials")
_define("cosh", hyperbolic.cosh, 1, 1.0, 1.0, "hyperbolic cosine", "addition theorem, own minimax polynomials")
_define("tanh", hyperbolic.tanh, 1, 1.0, 1.0, "hyperbolic tangent", "own minimax polynomial below 1, exp above")
_define("arcsinh", hyperbolic.arcsinh, 1, 1.0, 1.0, "inverse hyperbolic sine", "log1p of two numbers")
_define("arccosh", hyperbolic.arccosh, 1, 1.0, 1.0, "inverse hyperbolic cosine", "log1p of two numbers")
_define("arctanh", hyperbolic.arctanh, 1, 1.0, 1.0, "inverse hyperbolic tangent", "log1p of two numbers")
_define("cbrt", root.cbrt, 1, 1.0, 1.0, "cube root", "own minimax polynomial, Householder's and Newton's iterations")
_define("hypot", root.hypot, 2, 1.0, 1.0, "sqrt(x^2 + y^2)", "scaling by powers of 2, Dekker's exact squares")
_define("erf", error_function.erf, 1, 1.0, 1.0, "error function", "own minimax polynomials of erf and of log(erfc)")
_define("erfc", error_function.erfc, 1, 1.0, 1.0, "1 - erf(x)", "Shepherd and Laframboise 1981, own coefficients")
_define(
    "pow", power.pow_, 2, 1.0, 1.0, "x^y as C's Annex F has it; double without FMA calls C's", "log2 as two numbers"
)
for _record in (
    library_function("lgamma", "lgamma", 1, 7.0, 4.0),
    library_function("tgamma", "tgamma", 1, 8.0, 10.0),
):
    FUNCTIONS[_record.name] = _record
