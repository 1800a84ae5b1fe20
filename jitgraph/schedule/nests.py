"""Loop nests without dependences between their turns, as passes move them: a domain, and what is done at each point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitgraph.codegen.loops import DimValue, For, Let, Load, Stmt, Store
from jitgraph.ir.dims import DimLike, Facts, symbol
from jitgraph.records import dataclass
from jitgraph.schedule.simplify import index_range
from jitgraph.schedule.statements import Renaming, changed_inside, rebuilt, with_bodies


@dataclass(slots=True)
class Nest:
    """Loops one inside the other, the innermost over lanes.

    Attributes:
        loops: outermost first; of each only the index, the bounds and how it runs count.
        body: what is done at a point. What stood between the loops is done at each point too.
    """

    loops: list[For]
    body: list[Stmt]

    def statement(self) -> For:
        """The nest as a statement."""
        body = self.body
        for loop in reversed(self.loops):
            body = [For(loop.symbol, loop.lower, loop.upper, body, 1, loop.role, [], loop.lanes, loop.interleave)]
        made = body[0]
        assert isinstance(made, For)
        return made

    def domain(self) -> list[tuple[DimLike, DimLike]]:
        return [(loop.lower, loop.upper) for loop in self.loops]

    def over(self, loops: Sequence[For]) -> list[Stmt]:
        """The body over the indices of other loops with the same domain."""
        r = Renaming()
        for own, other in zip(self.loops, loops, strict=True):
            r.set_dim(own.symbol, symbol(other.symbol))
        return rebuilt(self.body, r)


def nest_of(s: Stmt) -> Nest | None:
    """A statement as a nest: serial loops, each around one other, then a vector loop over straight-line code."""
    loops: list[For] = []
    between: list[Stmt] = []
    while isinstance(s, For) and not s.carried and s.step == 1:
        loops.append(s)
        if s.role == "vector":
            if not all(isinstance(x, (Let, DimValue, Load, Store)) for x in s.body):
                return None
            written = {x.buffer.name for x in s.body if isinstance(x, Store)}
            if any(isinstance(x, Load) and x.buffer.name in written for x in between):
                return None  # at the next point it would be another value
            return Nest(loops, [*between, *s.body])
        if s.role != "serial":
            return None
        inner = [x for x in s.body if isinstance(x, For)]
        others = [x for x in s.body if not isinstance(x, For)]
        if len(inner) != 1 or s.body[-1] is not inner[0]:
            return None
        if not all(isinstance(x, (Let, DimValue, Load)) for x in others):
            return None
        between += others
        s = inner[0]
    return None


def rewritten(body: list[Stmt], facts: Facts, rewrite: Callable[[For, Facts], list[Stmt] | None]) -> list[Stmt]:
    """A body in which loops are what `rewrite` makes of them under the facts there, outer ones first; where it gives
    None, serial loops, whiles and branches (but cold ones) are looked into.
    """
    out: list[Stmt] = []
    for s in body:
        made: Stmt = s
        if isinstance(s, For):
            found = rewrite(s, facts)
            if found is not None:
                out += found
                continue
            if s.role == "serial":
                inside = facts.copy()
                index_range(inside, s.symbol, s.lower, s.upper, s.step)
                inner = rewritten(s.body, inside, rewrite)
                made = with_bodies(s, inner)
        else:
            made = changed_inside(s, lambda inner: rewritten(inner, facts, rewrite))
        out.append(made)
    return out
