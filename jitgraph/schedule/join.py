"""Loops in a row become one loop where what the second does at an index needs the first only up to there.

    for i: b[i] = f(a[i - 1], a[i])          for i: {b[i] = f(a[i - 1], a[i]); c[i - 1] = g(b[i - 1], b[i])}
    for i: c[i] = g(b[i], b[i + 1])          (and what is left of either range, alone)

All of the first loop ran before the second. In the joined loop turn x1 of the first stands before turn x2 of the
second if x1 <= x2 + shift, so that must hold for each two accesses to one element of which one writes. Indices are
affine, so their distance x1 - x2 is a constant for each pair, or they never meet, or the loops stay apart. The shift is
the largest distance. For loops over lanes the same holds: the statements of a vector run one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from jitgraph.codegen.loops import Alloc, Carry, DimValue, For, Let, Load, Stmt, Store, Var
from jitgraph.codegen.loops_walk import read, walk
from jitgraph.ir.dims import DimLike, Facts, dim_min, symbol, symbols
from jitgraph.schedule.memory import Place, accesses, apart, place_of
from jitgraph.schedule.simplify import index_range
from jitgraph.schedule.statements import Names, Renaming, changed_inside, rebuilt, size, with_bodies

#: Statements of a joined body: more would not stay in registers.
LARGEST = 90
#: Turns that the second loop may run behind the first.
FURTHEST = 2


def join(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body with loops joined where that is legal and pays."""
    return Joiner(facts.copy(), names).body(body, inside=False)


class Joiner:
    def __init__(self, facts: Facts, names: Names) -> None:
        self.facts, self.names = facts, names

    def body(self, body: list[Stmt], *, inside: bool) -> list[Stmt]:
        """`inside`: of a loop, where joining pays."""
        out: list[Stmt] = []
        for s in body:
            if inside and isinstance(s, For) and is_plain(s):
                self.append(s, out)
            else:
                out.append(s)
        return [self.nested(s) for s in out]

    def nested(self, s: Stmt) -> Stmt:
        if isinstance(s, For) and s.role in ("serial", "vector"):
            outer = self.facts
            self.facts = outer.copy()
            index_range(self.facts, s.symbol, s.lower, s.upper, s.step)
            inner = self.body(s.body, inside=True)
            self.facts = outer
            return with_bodies(s, inner)
        return changed_inside(s, lambda body: self.body(body, inside=True))

    def append(self, second: For, out: list[Stmt]) -> None:
        """Join a loop with the one that ends `out`, else put it behind."""
        at = len(out)
        while at and _movable(out[at - 1]):
            at -= 1
        first = out[at - 1] if at else None
        if isinstance(first, For) and is_plain(first):
            between = out[at:]
            joined = self.joined(first, second) if self.may_pass(between, first) else None
            if joined is not None:
                out[at - 1 :] = [*between, *joined]
                return
        out.append(second)

    def may_pass(self, between: Sequence[Stmt], first: For) -> bool:
        """Whether statements behind a loop may stand in front of it."""
        facts = self.facts.copy()
        stores = [place for place, writes in _accesses(first, facts) if writes]
        results = {c.result.name for c in first.carried}
        if any(isinstance(x, Var) and x.name in results for s in between for x in read(s)):
            return False
        return all(apart(place_of(s), b, facts) for s in between if isinstance(s, Load) for b in stores)

    def joined(self, first: For, second: For) -> list[Stmt] | None:
        """The loops that do what both did, or None."""
        if size([first, second]) > LARGEST or not _pays(first, second):
            return None
        facts = self.facts.copy()
        of_first, of_second = (list(_accesses(s, facts)) for s in (first, second))
        shift = self.shift(first, second, of_first, of_second, facts)
        if shift is None:
            return None
        made = self.fused(first, second, shift)
        if made is not None:
            self.names.note("run as one loop", first.symbol, second.symbol)
        return made

    def shift(
        self,
        first: For,
        second: For,
        of_first: Sequence[tuple[Place, bool]],
        of_second: Sequence[tuple[Place, bool]],
        facts: Facts,
    ) -> int | None:
        """How far the second loop has to stay behind, as a constant; None: they cannot be joined."""
        inner = _inner_symbols(first) | _inner_symbols(second)
        distances: list[int] = []
        handed: set[int] = set()  # distances at which the second loop reads what the first wrote
        meets = False
        for a, writes in of_first:
            for b, overwrites in of_second:
                if a[0].name != b[0].name:
                    continue
                if a[0] == b[0] and not (writes or overwrites):
                    meets = True
                    continue
                if not (writes or overwrites):
                    continue
                if apart(a, b, facts):
                    continue
                distance = _distance(a, b, first.symbol, second.symbol, inner)
                if distance is None:
                    return None
                distances.append(distance)
                if writes and not overwrites:
                    handed.add(distance)
        if not distances:
            if not meets:
                return None
            found = first.lower - second.lower
            return found if isinstance(found, int) else None
        aligned = first.lower - second.lower
        if not isinstance(aligned, int):
            return None
        behind = max(0, max(distances) - aligned)
        if first.role == second.role == "vector" and handed - {aligned}:
            return None  # a vector that straddles two that were just stored waits for both to reach the cache
        rows = first.role == second.role == "serial" and not second.carried
        if behind and not (rows and behind <= FURTHEST):
            return None
        left = first.upper - second.upper - (aligned + behind)
        if rows and isinstance(left, int) and 0 < left <= FURTHEST - behind:
            behind += left  # both end together, and nothing is left of either
        return aligned + behind

    def fused(self, first: For, second: For, shift: int) -> list[Stmt] | None:
        """One loop over what the ranges have in common, and the rest of each."""
        lower2, upper2 = second.lower + shift, second.upper + shift
        low = _order(self.facts, first.lower, lower2)
        if low is None:
            return None
        start = lower2 if low <= 0 else first.lower
        if not (self.facts.is_le(start, first.upper) and self.facts.is_le(start, upper2)):
            return None  # a range may be empty, and what is left of the other is not what its bounds say
        high = _order(self.facts, first.upper, upper2)
        stop = dim_min(first.upper, upper2) if high is None else first.upper if high <= 0 else upper2
        pieces: list[tuple[DimLike, DimLike]] = []  # of the second range, in its own index
        out: list[Stmt] = []
        if low < 0:
            out.append(self.part(first, first.lower, start))
        elif low > 0:
            pieces.append((second.lower, start - shift))
        pieces.append((start - shift, stop - shift))
        if high is None or high < 0:
            pieces.append((stop - shift, second.upper))
        parts = self.chain(second, pieces)
        at = 1 if low > 0 else 0
        x, tail = first.symbol, parts[at]
        r = Renaming()
        r.set_dim(tail.symbol, symbol(x) - shift)
        role: Literal["serial", "vector"] = "vector" if first.role == second.role == "vector" else "serial"
        body = [*first.body, *rebuilt(tail.body, r)]
        carried = [Carry(c.inner, c.init, r.operand(c.next), c.result) for c in tail.carried]
        out += parts[:at]
        out.append(For(x, start, stop, body, 1, role, carried, max(first.lanes, second.lanes)))
        if high is None or high > 0:
            out.append(self.part(first, stop, first.upper))
        return [*out, *parts[at + 1 :]]

    def chain(self, s: For, pieces: Sequence[tuple[DimLike, DimLike]]) -> list[For]:
        """A loop as one loop for each piece of its range, in order: each carries on what the one before has carried."""
        made: list[For] = []
        inits = [c.init for c in s.carried]
        for k, (lower, upper) in enumerate(pieces):
            last = k == len(pieces) - 1
            part = For(s.symbol, lower, upper, s.body, 1, s.role, s.carried, s.lanes, s.interleave)
            copied = part if last else rebuilt([part], Renaming(names=self.names))[0]
            assert isinstance(copied, For)
            carried = [Carry(c.inner, init, c.next, c.result) for c, init in zip(copied.carried, inits, strict=True)]
            inits = [c.result for c in carried]
            made.append(For(copied.symbol, lower, upper, copied.body, 1, s.role, carried, s.lanes, s.interleave))
        return made

    def part(self, s: For, lower: DimLike, upper: DimLike) -> For:
        """A part of the range of a loop that carries nothing."""
        part = For(s.symbol, lower, upper, s.body, 1, s.role, [], s.lanes, s.interleave)
        made = rebuilt([part], Renaming(names=self.names))[0]
        assert isinstance(made, For)
        return made


def _movable(s: Stmt) -> bool:
    """Whether a statement behind a loop may stand in front of it, as far as it is not its elements that it loads."""
    return isinstance(s, (Let, DimValue, Load)) or (isinstance(s, Alloc) and s.scope == "scratch")


def is_plain(s: For) -> bool:
    """Whether a loop may be joined: it holds only loops and what computes, loads and stores."""
    if s.step != 1 or s.role not in ("serial", "vector"):
        return False
    return all(
        isinstance(x, (Let, DimValue, Load, Store)) or (isinstance(x, For) and x.role in ("serial", "vector"))
        for x in walk(s.body)
    )


def _pays(first: For, second: For) -> bool:
    if first.carried:
        return False
    scalar = second.role == "serial" and not any(isinstance(x, For) for x in second.body)
    if first.role == second.role:
        return not second.carried and not scalar
    if first.role == "vector" and scalar:  # a recurrence that waits for a division leaves time for the rest
        return any(isinstance(x, Let) and x.op in ("fdiv", "sqrt", "idiv", "irem", "frem") for x in second.body)
    return False


def _accesses(s: For, facts: Facts) -> Iterator[tuple[Place, bool]]:
    index_range(facts, s.symbol, s.lower, s.upper, s.step)
    for x in accesses(s.body, facts):
        yield place_of(x), isinstance(x, Store)


def _inner_symbols(s: For) -> set[str]:
    return {x.symbol for x in walk(s.body) if isinstance(x, For)}


def _distance(a: Place, b: Place, x1: str, x2: str, inner: set[str]) -> int | None:
    """x1 - x2 for the turns in which two accesses meet, if that is one constant."""
    if a[0] != b[0]:
        return None
    for i, j in zip(a[1], b[1], strict=True):
        here, there = i - symbol(x1), j - symbol(x2)
        if any(name in inner or name in (x1, x2) for d in (here, there) for name in symbols(d)):
            continue
        distance = there - here
        if isinstance(distance, int):
            return distance
    return None


def _order(facts: Facts, a: DimLike, b: DimLike) -> int | None:
    """-1, 0 or 1 as a < b, a = b, a > b (or possibly equal where that does no harm); None: not known."""
    distance = a - b
    if distance == 0:
        return 0
    if facts.is_le(a, b):
        return -1
    if facts.is_le(b, a):
        return 1
    return None
