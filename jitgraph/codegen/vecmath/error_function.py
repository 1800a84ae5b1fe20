"""erf: an odd polynomial near 0, and further out 1 - exp(-x (1 + g(x))), where g is smooth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jitgraph.codegen.vecmath.coefficients import ERF, ERF_TAIL
from jitgraph.codegen.vecmath.exponential import exp_moderate
from jitgraph.codegen.vecmath.function import horner

if TYPE_CHECKING:
    from jitgraph.codegen.assembler import Assembler, V

CROSSOVER: Final = {"float": 0.94, "double": 1.0}
LIMIT: Final = {"float": 4.0, "double": 6.0}  # above, the result rounds to 1


def erf(a: Assembler, /, *operands: V) -> V:
    """The error function"""
    x = operands[0]
    y = a.fabs(x)
    z = a.fmul(x, x)
    near = a.muladd(x, horner(a, z, ERF[x.ty]), x)
    limit = a.like(LIMIT[x.ty], x)
    y_clamped = a.select(a.fcmp("ogt", y, limit), limit, y)
    g = horner(a, y_clamped, ERF_TAIL[x.ty])
    one = a.like(1.0, x)
    exponent = a.muladd(a.fneg(y_clamped), g, a.fneg(y_clamped))
    far = a.fsub(one, exp_moderate(a, exponent))
    return a.copysign(a.select(a.fcmp("olt", y, a.like(CROSSOVER[x.ty], x)), near, far), x)
