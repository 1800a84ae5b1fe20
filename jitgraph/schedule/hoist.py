"""Loop-invariant scalars move in front of their loop, as far out as their operands allow.

What moves has no effect and cannot trap: primitives (integer division only by a constant), dims, and symbols bound to
a scalar. Loads stay: `registers` knows which memory a loop leaves alone.
"""

from __future__ import annotations

from jitgraph.codegen.loops import Bind, Const, DimValue, For, If, Let, Reduce, Stmt, Var, While
from jitgraph.codegen.loops_walk import assigned, read
from jitgraph.ir.dims import symbols
from jitgraph.schedule.statements import changed_inside, with_bodies


def hoist(body: list[Stmt]) -> list[Stmt]:
    """A body in which each scalar is computed in front of the loops that do not change it."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, (For, While, If)):
            out += _moved(s)
        else:
            out.append(s)
    return out


def _moved(s: For | While | If) -> list[Stmt]:
    """A statement behind what was taken out of it."""
    if isinstance(s, If):
        return [changed_inside(s, hoist)]
    if isinstance(s, For) and s.role != "serial":
        return [s]
    taken: list[Stmt] = []
    changed = {c.inner.name for c in s.carried}
    names = {s.symbol} if isinstance(s, For) else set()
    if isinstance(s, While):
        test = _take(hoist(s.test), taken, changed, names)
        inner = _take(hoist(s.body), taken, changed, names)
        return [*taken, with_bodies(s, test, inner)]
    inner = _take(hoist(s.body), taken, changed, names)
    return [*taken, with_bodies(s, inner)]


def _take(body: list[Stmt], taken: list[Stmt], changed: set[str], names: set[str]) -> list[Stmt]:
    """What stays of a body; what does not depend on the loop is appended to `taken`. Straight-line code only: arms of
    branches keep what they compute, which another turn may not need.
    """
    kept: list[Stmt] = []
    for s in body:
        if _movable(s) and not _depends(s, changed, names):
            taken.append(s)
            continue
        _mark(s, changed, names)
        kept.append(s)
    return kept


def _movable(s: Stmt) -> bool:
    if isinstance(s, (DimValue, Bind)):
        return True
    if not isinstance(s, Let):
        return False
    if s.op in ("idiv", "irem"):
        divisor = s.args[1]
        return isinstance(divisor, Const) and int(divisor.value) not in (0, -1)
    return True


def _depends(s: Stmt, changed: set[str], names: set[str]) -> bool:
    if any(isinstance(x, Var) and x.name in changed for x in read(s)):
        return True
    return isinstance(s, DimValue) and any(name in names for name in symbols(s.dim))


def _mark(s: Stmt, changed: set[str], names: set[str]) -> None:
    """Everything a statement that stays assigns or binds is the loop's."""
    changed.update(v.name for v in assigned(s))
    if isinstance(s, (Bind, For, Reduce)):
        names.add(s.symbol)
    for inner in (s.then, s.otherwise) if isinstance(s, If) else (s.body,) if isinstance(s, (For, Reduce)) else ():
        for t in inner:
            _mark(t, changed, names)
