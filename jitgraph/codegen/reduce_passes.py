"""`Reduce`s whose parts are added in several orders: what goes over the elements together.

1. Parts of one order share a pass. What may go in any grouping goes along with pairwise sums.
2. A pass has the statements that its parts need, by what statements read and assign; nested loops and branches stay
   whole. The last pass has the stores, and what they need.
"""

from __future__ import annotations

from jitgraph.codegen.loops import DimValue, Let, Load, Part, Reduce, Stmt, Store, Var
from jitgraph.codegen.loops_walk import assigned, read, walk
from jitgraph.records import dataclass

_FREE: tuple[object, ...] = ("free", None, None, 8, "")


@dataclass(frozen=True, slots=True)
class Pass:
    """One walk over the elements of a `Reduce`.

    Attributes:
        parts: all of one order.
        along: parts in any grouping that go along with pairwise sums.
        body: what the walk runs for each element.
    """

    parts: list[Part]
    along: list[Part]
    body: list[Stmt]

    @property
    def order(self) -> str:
        return self.parts[0].order


def passes_of(s: Reduce) -> list[Pass]:
    """The passes over the elements, one after the other."""
    groups: dict[tuple[object, ...], list[Part]] = {}
    for part in s.parts:
        groups.setdefault((part.order, part.chunk, part.period, part.width, part.model), []).append(part)
    if len(groups) == 1:
        return [Pass(s.parts, [], s.body)]
    free = groups.get(_FREE, [])
    pairwise = next((key for key in groups if key[0] == "pairwise"), None)
    if pairwise is not None and free and not any(p.kind in ("argmax", "argmin") for p in free):
        del groups[_FREE]
    else:
        pairwise = None
    found: list[Pass] = []
    for k, (key, parts) in enumerate(groups.items()):
        along = free if key == pairwise else []
        stores = k == len(groups) - 1
        body = s.body if len(groups) == 1 else _needed(s.body, [*parts, *along], stores=stores)
        found.append(Pass(parts, along, body))
    return found


def _needed(body: list[Stmt], parts: list[Part], *, stores: bool) -> list[Stmt]:
    """The statements that the parts' values need, and the stores if asked for."""
    wanted = {x.name for p in parts for x in (p.value, p.factor) if isinstance(x, Var)}
    kept: list[Stmt] = []
    for s in reversed(body):
        if isinstance(s, Store) and not stores:
            continue
        if isinstance(s, (Let, DimValue, Load)) and not any(v.name in wanted for v in assigned(s)):
            continue
        kept.append(s)
        wanted.update(x.name for inner in walk([s]) for x in read(inner) if isinstance(x, Var))
    return kept[::-1]
