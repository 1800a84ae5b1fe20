"""A loop over time or along a recurrence moves inside the elementwise nests that it repeats.

    for t: {for i vector: a[i, t] = f(a[i, t - 1])}    becomes    for i vector: {for t: a[i, t] = f(a[i, t - 1])}

Legal where each point of the nests' domain keeps to itself: every buffer that is written in the loop is accessed at
places that name the point, and all in the same way, so that no two points share an element. Each point then does what
it did in the same order, and what it hands from turn to turn stays in registers. It pays where something is handed on.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph.codegen.loops import DimValue, For, Let, Load, Stmt, Store
from jitgraph.ir.dims import DimLike, split_linear, substitute, symbol, symbols
from jitgraph.schedule.memory import dense, side_by_side
from jitgraph.schedule.nests import Nest, nest_of
from jitgraph.schedule.statements import Names, changed_inside, with_bodies

#: Statements of a body that is worth running as two vectors side by side: it waits for the turn before.
INTERLEAVED = 24

#: Share of the accesses that step over memory from lane to lane, from which on few lanes are better than many.
MOSTLY_STRIDED = 0.75


def interchange(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body whose innermost serial loops over nests stand inside the nests where that is legal and pays."""
    return [_interchanged(s, names) for s in body]


def _interchanged(s: Stmt, names: Names) -> Stmt:
    if not isinstance(s, For) or s.role != "serial":
        return changed_inside(s, lambda inner: interchange(inner, names))
    made = _inside(s)
    if made is not None:
        names.note("runs inside the loops over elements, in registers", s.symbol)
        return made
    return with_bodies(s, interchange(s.body, names))


def _inside(time: For) -> For | None:
    """The nests of a loop with the loop inside, or None."""
    if time.carried or not time.body:
        return None
    loops: list[For] = []
    body: list[Stmt] = []
    for s in time.body:
        if isinstance(s, (Let, DimValue, Load)):
            body.append(s)  # what a turn computes once is computed at each point
            continue
        nest = nest_of(s)
        if nest is None or (loops and nest.domain() != Nest(loops, []).domain()):
            return None
        loops = loops or nest.loops
        body += nest.over(loops)
    if not loops or any(time.symbol in symbols(d) for loop in loops for d in (loop.lower, loop.upper)):
        return None
    points = [loop.symbol for loop in loops]
    if not _keeps_to_itself(body, points, time.symbol) or not _hands_on(body, time):
        return None
    inner = For(time.symbol, time.lower, time.upper, body, time.step)
    last = loops[-1]
    lanes = For(last.symbol, last.lower, last.upper, [], 1, "vector", [], last.lanes, last.interleave)
    near, far = side_by_side(body, last.symbol)
    if far and far >= MOSTLY_STRIDED * (near + far) and not lanes.lanes:
        lanes.lanes = 2  # each lane walks memory of its own: more of them only wait for one another
    if len(body) <= INTERLEAVED and lanes.interleave == 1:
        lanes.interleave = 2
    return Nest([*loops[:-1], lanes], [inner]).statement()


def _keeps_to_itself(body: Sequence[Stmt], points: Sequence[str], time: str) -> bool:
    """Whether no two points of the domain share an element that is written."""
    accesses = [s for s in body if isinstance(s, (Load, Store))]
    written = {s.buffer.name for s in accesses if isinstance(s, Store)}
    named: dict[str, dict[str, tuple[int, DimLike]]] = {}
    views: dict[str, object] = {}
    for s in accesses:
        name = s.buffer.name
        if name not in written:
            continue
        if not dense(s.buffer) or views.setdefault(name, s.buffer) != s.buffer:
            return False
        places = _places(s.index, points, time)
        if places is None or named.setdefault(name, places) != places:
            return False
    return True


def _places(index: Sequence[DimLike], points: Sequence[str], time: str) -> dict[str, tuple[int, DimLike]] | None:
    """For each index of the domain the axis that names it, and the distance: `index[axis] = point + distance`."""
    found: dict[str, tuple[int, DimLike]] = {}
    for axis, d in enumerate(index):
        inside = [p for p in points if p in symbols(d)]
        if not inside:
            continue
        if len(inside) > 1 or inside[0] in found:
            return None
        distance = d - symbol(inside[0])
        if inside[0] in symbols(distance) or time in symbols(distance):
            return None
        found[inside[0]] = (axis, distance)
    return found if len(found) == len(points) else None


def _hands_on(body: Sequence[Stmt], time: For) -> bool:
    """Whether a turn reads what it, or the one before, has written at the same point."""
    stores = {(s.buffer.name, s.index) for s in body if isinstance(s, Store)}
    if not isinstance(time.step, int):
        return False
    back = {time.symbol: symbol(time.symbol) - time.step}
    before = {(name, tuple(substitute(d, back) for d in index)) for name, index in stores}
    for s in body:
        if isinstance(s, Load):
            place = (s.buffer.name, s.index)
            fixed = all((split_linear(d, time.symbol) or (1,))[0] == 0 for d in s.index)
            if place in before or (place in stores and fixed):
                return True
    return False
