"""The table of vector functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath import error_function, exponential, logarithm, trigonometric
from jitgraph.codegen.vecmath.function import VectorFunction, libm_lanes

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V
    from jitgraph.codegen.vecmath.function import Emitter

FUNCTIONS: Final[dict[str, VectorFunction]] = {}


def _define(name: str, emitter: Emitter, ulp_single: float, ulp_double: float, doc: str, source: str) -> None:
    FUNCTIONS[name] = VectorFunction(name, 1, doc, source, {"float": ulp_single, "double": ulp_double}, emitter)


def _library(name: str, symbol: str, arity: int, ulp_single: float, ulp_double: float) -> None:
    def emitter(a: Assembler, /, *x: V) -> V:
        return libm_lanes(a, symbol, *x)

    doc, source = f"C's {symbol}, called lane by lane.", "the C library; the bounds are glibc's"
    FUNCTIONS[name] = VectorFunction(
        name, arity, doc, source, {"float": ulp_single, "double": ulp_double}, emitter, vectorised=False
    )


_REMEZ: Final = "additive range reduction after Cody and Waite, own minimax polynomial (bench/vecmath_fit.py)"

_define("exp", exponential.exp, 1.0, 1.0, "e^x", _REMEZ)
_define("exp2", exponential.exp2, 1.0, 1.0, "2^x", _REMEZ)
_define("expm1", exponential.expm1, 1.3, 1.3, "e^x - 1", _REMEZ)
_define("log", logarithm.log, 1.0, 1.0, "natural logarithm", "own minimax polynomial; double: the series of atanh")
_define("log1p", logarithm.log1p, 1.0, 1.0, "log(1 + x)", "as log, with the rounding error of 1 + x added back")
_define("sin", trigonometric.sin, 1.3, 1.3, "sine; C's beyond 39000 (float), 2^20 (double)", _REMEZ)
_define("cos", trigonometric.cos, 1.3, 1.3, "cosine; C's beyond 39000 (float), 2^20 (double)", _REMEZ)
_define("tan", trigonometric.tan, 1.5, 1.5, "tangent; C's beyond 39000 (float), 2^20 (double)", _REMEZ)
_define("tanh", exponential.tanh, 1.3, 1.3, "hyperbolic tangent", "own minimax polynomial below 1, exp above")
_define("sigmoid", exponential.sigmoid, 2.0, 2.0, "1 / (1 + e^-x)", "exp of -|x|")
_define("erf", error_function.erf, 1.3, 1.3, "error function", "own minimax polynomials of erf and of log(erfc)")
_library("pow", "pow", 2, 1.0, 1.0)
