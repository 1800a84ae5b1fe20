"""Remainders in indices, as of periodic neighbours (`x[(i + 1) % n]`): none where the facts say that the number is in
range, else a comparison where they say that it is at most one period out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jitgraph import dtypes
from jitgraph.codegen.loops import Bind, DimValue, Let, Stmt, Var
from jitgraph.ir.dims import Atom, Dim, DimLike, symbol

if TYPE_CHECKING:
    from jitgraph.schedule.simplify import State
    from jitgraph.schedule.statements import Names


def unwrapped(d: DimLike, state: State, names: Names, out: list[Stmt]) -> DimLike:
    """A dim without the remainders that the facts of `state` make needless; what is to be computed goes to `out`."""
    if isinstance(d, int) or not any(True for _ in _remainders(d)):
        return d
    total: DimLike = 0
    for mono, coefficient in d.terms:
        term: DimLike = coefficient
        for atom in mono:
            factor: DimLike = Dim((((atom,), 1),))
            if atom.op == "mod":
                a, m = (x for x in atom.args if not isinstance(x, str))
                factor = _remainder(unwrapped(a, state, names, out), m, factor, state, names, out)
            term = term * factor
        total = total + term
    return total


def _remainders(d: Dim) -> Iterator[Atom]:
    return (atom for mono, _ in d.terms for atom in mono if atom.op == "mod")


def _remainder(a: DimLike, m: DimLike, plain: DimLike, state: State, names: Names, out: list[Stmt]) -> DimLike:
    """a mod m."""
    facts = state.facts
    above, below = facts.is_le(0, a), facts.is_lt(a, m)
    if above and below:
        return a
    if not (above or facts.is_le(-m, a)) or not (below or facts.is_lt(a, 2 * m)):
        return plain
    key = ("mod", a, m)
    known = state.find(key)
    if known is not None:
        found = state.dim(known.name) if isinstance(known, Var) else None
        if found is not None:
            return found
    value = names.var(dtypes.I64)
    out.append(DimValue(value, a))
    for needed, predicate, bound, other in ((not above, "lt", 0, a + m), (not below, "ge", m, a - m)):
        if needed:
            limit, shifted, outside, chosen = (names.var(t) for t in (dtypes.I64, dtypes.I64, dtypes.BOOL, dtypes.I64))
            out += [
                DimValue(limit, bound),
                DimValue(shifted, other),
                Let(outside, "cmp", (_value(a, out, names), limit), predicate),
                Let(chosen, "select", (outside, shifted, value)),
            ]
            value = chosen
    name = names.symbol()
    out.append(Bind(name, value))
    facts.bound(name, 0, m - 1)
    state.known[key] = value
    state.dims[value.name] = symbol(name)
    return symbol(name)


def _value(d: DimLike, out: list[Stmt], names: Names) -> Var:
    var = names.var(dtypes.I64)
    out.append(DimValue(var, d))
    return var
