"""Rows of a nest side by side: `JAM` turns of the loop around the lanes run in one, and share what they load.

    for r in range(0, n, 4): {for v vector: rows r, r + 1, r + 2, r + 3}      and the rows that are left, one by one

Legal where of two accesses to one element, of which one writes, in rows r and r + d, the one of the later row does not
stand at an earlier lane. It pays where rows read the same elements, as stencils and products do.
"""

from __future__ import annotations

from jitgraph.codegen.loops import For, Load, Stmt, Store
from jitgraph.ir.dims import DimLike, Facts, dim_max, floordiv, split_linear, symbol, symbols
from jitgraph.schedule.memory import Place, apart, dense, place_of
from jitgraph.schedule.nests import Nest, nest_of, rewritten
from jitgraph.schedule.simplify import index_bounds, index_range
from jitgraph.schedule.statements import Names, Renaming, rebuilt

#: Rows side by side.
JAM = 4
#: Statements of a row that still stay in registers when there are `JAM`.
LARGEST = 40
#: Loads that have to go for each row that stays.
LEAST_SHARED = 0.2


def jam(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body whose nests run rows side by side where that is legal and pays."""
    return rewritten(body, facts, lambda s, inside: _jammed(s, inside, names))


def _jammed(s: For, facts: Facts, names: Names) -> list[Stmt] | None:
    """The loops that run rows of a nest side by side, and the rows that are left; None where that does not pay."""
    nest = nest_of(s)
    if nest is None or len(nest.loops) != 2 or len(nest.body) > LARGEST:
        return None
    rows, lanes = nest.loops
    if rows.symbol in symbols(lanes.lower) or rows.symbol in symbols(lanes.upper):
        return None
    inside = facts.copy()
    for loop in nest.loops:
        index_range(inside, loop.symbol, loop.lower, loop.upper, 1)
    if not _shares(nest) or not _independent(nest, inside):
        return None
    body: list[Stmt] = []
    for k in range(JAM):
        r = Renaming(names=names)
        r.set_dim(rows.symbol, symbol(rows.symbol) + k)
        body += rebuilt(nest.body, r)
    count = rows.upper - rows.lower
    if not facts.is_le(0, count):
        count = dim_max(count, 0)
    whole = rows.lower + floordiv(count, JAM) * JAM
    main = For(lanes.symbol, lanes.lower, lanes.upper, body, 1, "vector", [], lanes.lanes, lanes.interleave)
    rest = rebuilt([For(rows.symbol, whole, rows.upper, s.body, 1, "serial")], Renaming(names=names))
    names.note(f"runs {JAM} rows side by side", rows.symbol)
    return [For(rows.symbol, rows.lower, whole, [main], JAM), *rest]


def _shares(nest: Nest) -> bool:
    """Whether rows side by side load less than rows one by one."""
    rows = nest.loops[0].symbol
    loads = {(s.buffer.name, s.index) for s in nest.body if isinstance(s, Load)}
    distinct = set()
    for k in range(JAM):
        r = Renaming()
        r.set_dim(rows, symbol(rows) + k)
        distinct |= {(name, r.index(index)) for name, index in loads}
    alone = JAM * len(loads)
    return alone - len(distinct) >= LEAST_SHARED * alone and alone > 0


def _independent(nest: Nest, facts: Facts) -> bool:
    accesses = [(place_of(s), isinstance(s, Store)) for s in nest.body if isinstance(s, (Load, Store))]
    rows, lanes = nest.loops
    other = f"{lanes.symbol}."  # the lane of the later row
    index_bounds(facts, other, lanes.lower, lanes.upper, 1)
    for a, writes in accesses:
        for b, overwrites in accesses:
            if not (writes or overwrites) or a[0].name != b[0].name:
                continue
            for d in range(1, JAM):
                r = Renaming()
                r.set_dim(rows.symbol, symbol(rows.symbol) + d)
                r.set_dim(lanes.symbol, symbol(other))
                later = (b[0], r.index(b[1]))
                if apart(a, later, facts):
                    continue
                distance = _distance(a, later, lanes.symbol, other)
                if distance is None or distance < 0 or (writes and not overwrites and distance):
                    return False  # a vector that straddles two just stored would wait for them
    return True


def _distance(a: Place, b: Place, lane: str, other: str) -> int | None:
    """How many lanes behind `lane` the lane `other` lies where two accesses meet; None if that is not known."""
    if a[0] != b[0] or not dense(a[0]):
        return None
    found: int | None = None
    for i, j in zip(a[1], b[1], strict=True):
        here, there = split_linear(i, lane), split_linear(j, other)
        if here is None or there is None or here[0] != there[0] or here[0] not in (1, -1):
            continue
        ahead: DimLike = here[1] - there[1] if here[0] == 1 else there[1] - here[1]
        if isinstance(ahead, int):
            found = ahead
    return found
