"""What a bound on |x| says of a float x: it is a number, finite, and within the bound, and so is what it truncates to.

`int(x)` asks three questions, each with an error of its own: is x NaN, infinite, out of range. The last implies the
others; `merged` asks it alone, and all of them where it fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from jitgraph.codegen.loops import Check, Const, DimValue, If, Let, Operand, Stmt, Var


def bound_of(x: Operand, lets: Mapping[str, Let]) -> tuple[Var, float, bool] | None:
    """(y, c, strict) where the condition x holds exactly if |y| < c (strict) or |y| <= c, with a finite c."""
    let = lets.get(x.name) if isinstance(x, Var) else None
    if let is None or let.op != "cmp" or let.attr not in ("lt", "le"):
        return None
    size, limit = let.args
    inner = lets.get(size.name) if isinstance(size, Var) else None
    if inner is None or inner.op != "fabs" or not isinstance(inner.args[0], Var) or not isinstance(limit, Const):
        return None
    value = float(limit.value)
    return (inner.args[0], value, let.attr == "lt") if math.isfinite(value) else None


def implied(x: Operand, y: Var, lets: Mapping[str, Let]) -> bool:
    """Whether the condition x holds for all finite numbers y."""
    let = lets.get(x.name) if isinstance(x, Var) else None
    if let is None or let.op != "not_" or not isinstance(let.args[0], Var):
        return False
    test = lets.get(let.args[0].name)
    if test is None or test.op != "cmp":
        return False
    if test.attr == "uno":
        return test.args == (y, y)
    size = lets.get(test.args[0].name) if isinstance(test.args[0], Var) else None
    other = test.args[1]
    is_size = test.args[0] == y or (size is not None and size.op == "fabs" and size.args[0] == y)
    return test.attr == "eq" and is_size and isinstance(other, Const) and math.isinf(float(other.value))


def merged(check: Check, out: list[Stmt], lets: Mapping[str, Let]) -> bool:
    """Put a check behind `out` so that those right in front of it that it implies are asked only where it fails."""
    bound = bound_of(check.condition, lets)
    if bound is None:
        return False
    at, kept, asked = len(out), [], []
    while at and isinstance(out[at - 1], (Let, DimValue, Check)):
        s = out[at - 1]
        if isinstance(s, Check):
            if not implied(s.condition, bound[0], lets):
                break
            asked.append(s)
        else:
            kept.append(s)
        at -= 1
    if not asked:
        return False
    out[at:] = kept[::-1]
    out.append(If(check.condition, [], [*asked[::-1], check], [], cold=True))
    return True


def within(
    predicate: str, x: Operand, y: Operand, bounds: Mapping[str, tuple[float, bool]], lets: Mapping[str, Let]
) -> bool:
    """Whether a comparison of a float with a constant holds, by the bound on its magnitude (True if it is strict)."""
    if not isinstance(x, Var) or not isinstance(y, Const):
        return False
    let = lets.get(x.name)
    of = let.args[0] if let is not None and let.op in ("trunc", "fabs") and isinstance(let.args[0], Var) else x
    if of.name not in bounds:
        return False
    (bound, strict), limit = bounds[of.name], float(y.value)
    if predicate in ("gt", "ge"):
        predicate, limit = {"gt": "lt", "ge": "le"}[predicate], -limit
    return (predicate == "lt" and (limit > bound or (strict and limit == bound))) or (
        predicate == "le" and limit >= bound
    )
