"""Two versions of a loop: one without the checks that its bounds decide, run where a test in front says so.

A check in a loop mostly asks whether an index that is affine in the loop indices lies in its range. The smallest and
largest index over all turns are known before the first: `if all in range: clean loop else: loop`. The test has no
effect and reads nothing that the loop writes, so errors stay where they were: behind the writes of earlier turns. The
same test settles whether an index counts from the end, which makes addresses affine in the clean loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Carry,
    Check,
    Const,
    DimValue,
    For,
    If,
    Let,
    Merge,
    Operand,
    Stmt,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import bodies, walk
from jitgraph.ir.dims import Dim, DimLike, Facts, split_linear, symbol, symbols
from jitgraph.records import dataclass, field
from jitgraph.schedule.simplify import FALSE, TRUE, index_range
from jitgraph.schedule.statements import Names, Renaming, assigned_in, bound_in, rebuilt, size, with_bodies

#: Larger loops are not copied.
LARGEST = 1500
#: More conditions than this are not tested in front of a loop.
MOST_TESTS = 40
#: How large symbols may be that a test is computed from: the first that cannot overflow.
_BITS = (48, 40, 31, 30, 28, 25, 20, 15, 10)


@dataclass(slots=True)
class _Wish:
    """A condition in the loop that should have a value in all turns, so that the clean version need not test it."""

    var: str
    truth: bool
    #: Dims that are at least zero in all turns if it has; empty for a condition that does not change in the loop.
    least: tuple[DimLike, ...] = ()
    condition: Var | None = None


@dataclass(slots=True)
class _Scope:
    """What is known of conditions while the body of a loop is searched."""

    lets: dict[str, Let] = field(default_factory=dict)
    loops: list[For] = field(default_factory=list)
    #: Names of the scalars that the loop assigns.
    assigned: set[str] = field(default_factory=set)


def versions(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body whose loops have a clean version where one pays."""
    dims = {s.var.name: s.dim for s in walk(body) if isinstance(s, DimValue)}
    return _Versions(facts.copy(), names, dims).body(body)


class _Versions:
    def __init__(self, facts: Facts, names: Names, dims: Mapping[str, DimLike]) -> None:
        self.facts, self.names, self.dims = facts, names, dims
        #: Conditions of branches whose other side is cold: the version with all checks takes that one.
        self.cold: set[str] = set()

    def body(self, body: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, (For, While)) and (isinstance(s, While) or s.role == "serial"):
                out += self.loop(s)
            elif isinstance(s, If):
                out.append(with_bodies(s, *map(self.body, bodies(s))))
            else:
                out.append(s)
        return out

    def loop(self, s: For | While) -> list[Stmt]:
        inside = bound_in([s])
        wishes = list(self.wishes(s, inside)) if size([s]) <= LARGEST else []
        tests: dict[Dim, None] = {}
        conditions: dict[Var, bool] = {}
        granted: dict[str, Operand] = {}
        for wish in wishes:
            needed = [d for d in wish.least if not self.facts.is_le(0, d)]
            if any(self.facts.is_lt(d, 0) for d in needed):
                continue  # some turn will fail it
            if len(tests) + len(conditions) >= MOST_TESTS:
                break
            granted[wish.var] = TRUE if wish.truth else FALSE
            if wish.condition is not None:
                conditions[wish.condition] = wish.truth
            tests.update((d, None) for d in needed if isinstance(d, Dim))
        if not granted:
            return [self.inner(s)]
        if not tests and not conditions:
            return [self.inner(_with(s, granted, None))]
        strongest = _strongest(tests, self.facts)
        limit = _limit(strongest)
        return [self.inner(s)] if limit is None else self.branch(s, granted, strongest, limit, conditions)

    def inner(self, s: For | While) -> For | While:
        """The loops inside get versions of their own."""
        if isinstance(s, While):
            return with_bodies(s, *map(self.body, bodies(s)))
        outer = self.facts.copy()
        index_range(self.facts, s.symbol, s.lower, s.upper, s.step)
        body = self.body(s.body)
        self.facts = outer
        return with_bodies(s, body)

    def branch(
        self,
        s: For | While,
        granted: Mapping[str, Operand],
        tests: Sequence[Dim],
        limit: int,
        conditions: Mapping[Var, bool],
    ) -> list[Stmt]:
        """The two versions behind their test. No symbol of `tests` may exceed `limit`, or they might overflow."""
        out: list[Stmt] = []
        holds: Operand | None = None

        def also(x: Operand) -> None:
            nonlocal holds
            if holds is None:
                holds = x
                return
            both = self.names.var(dtypes.BOOL)
            out.append(Let(both, "and_", (holds, x)))
            holds = both

        def compare(d: DimLike, predicate: str, number: int) -> None:
            value, one = self.names.var(dtypes.I64), self.names.var(dtypes.BOOL)
            out.extend([DimValue(value, d), Let(one, "cmp", (value, Const(number, dtypes.I64)), predicate)])
            also(one)

        names = dict.fromkeys(name for d in tests for name in symbols(d))
        lows = [name for name in names if not self.facts.is_le(-limit, symbol(name))]
        highs = [name for name in names if not self.facts.is_le(symbol(name), limit)]
        for name in lows:
            compare(symbol(name), "ge", -limit)
        for name in highs:
            compare(symbol(name), "le", limit)
        for d in tests:
            compare(d, "ge", 0)
        for condition, truth in conditions.items():
            if truth:
                also(condition)
            else:
                flipped = self.names.var(dtypes.BOOL)
                out.append(Let(flipped, "not_", (condition,)))
                also(flipped)
        outer = self.facts.copy()
        for name in lows:
            if self.facts.lower.setdefault(name, -limit) != -limit:
                self.facts.assume_nonnegative(symbol(name) + limit)
        for name in highs:
            if self.facts.upper.setdefault(name, limit) != limit:
                self.facts.assume_nonnegative(limit - symbol(name))
        for d in tests:
            self.facts.assume_nonnegative(d)
        clean = self.inner(_with(s, granted, None))
        self.facts = outer
        if isinstance(s, For):
            self.names.note("runs without the checks of indices that its bounds decide", s.symbol)
        clean.carried = [Carry(c.inner, c.init, c.next, self.names.var(c.result.dtype)) for c in clean.carried]
        twin = _with(_cold_side(s, self.cold), {}, self.names)
        merges = [
            Merge(c.result, a.result, b.result) for c, a, b in zip(s.carried, clean.carried, twin.carried, strict=True)
        ]
        assert holds is not None
        out.append(If(holds, [clean], [twin], merges, cold=True))
        return out

    # --- what checks ask ----------------------------------------------------------------------------------------------

    def wishes(self, s: For | While, inside: set[str]) -> Iterator[_Wish]:
        yield from self._wishes_of(s, _Scope(assigned=assigned_in([s])), inside)

    def _wishes_of(self, s: For | While, scope: _Scope, inside: set[str]) -> Iterator[_Wish]:
        if isinstance(s, For):
            scope.loops.append(s)
        for body in bodies(s):
            yield from self._search(body, scope, inside)
        if isinstance(s, For):
            scope.loops.pop()

    def _search(self, body: Sequence[Stmt], scope: _Scope, inside: set[str]) -> Iterator[_Wish]:
        for s in body:
            if isinstance(s, Let):
                scope.lets[s.var.name] = s
                if s.op == "select" and s.var.dtype == dtypes.I64:  # an index that may count from the end
                    yield from self._wish(s.args[0], False, scope, inside, wraps=True)
            elif isinstance(s, Check):
                yield from self._wish(s.condition, True, scope, inside)
            elif isinstance(s, If):
                if s.cold and isinstance(s.condition, Var):
                    self.cold.add(s.condition.name)
                    yield from self._wish(s.condition, True, scope, inside)
                yield from self._search(s.then, scope, inside)
                yield from self._search(s.otherwise, scope, inside)
            elif isinstance(s, While) or (isinstance(s, For) and s.role == "serial"):
                yield from self._wishes_of(s, scope, inside)

    def _wish(
        self, x: Operand, truth: bool, scope: _Scope, inside: set[str], *, wraps: bool = False
    ) -> Iterator[_Wish]:
        if not isinstance(x, Var):
            return
        let = scope.lets.get(x.name)
        if let is None:
            if not wraps and x.name not in scope.assigned:
                yield _Wish(x.name, truth, condition=x)
            return
        if let.op == "and_" and truth:
            for part in let.args:
                yield from self._wish(part, True, scope, inside)
        elif let.op == "or_" and not truth:
            for part in let.args:
                yield from self._wish(part, False, scope, inside)
        elif let.op == "not_" and not wraps:
            yield from self._wish(let.args[0], not truth, scope, inside)
        elif let.op == "cmp":
            a, b = map(self.dim, let.args)
            if a is None or b is None:
                return
            if wraps and not (let.attr == "lt" and b == 0):
                return
            least = _nonnegative(let.attr, a, b, truth)
            if least is None:
                return
            extremes = [self.least(d, scope.loops, inside) for d in least]
            if all(d is not None for d in extremes):
                yield _Wish(x.name, truth, tuple(d for d in extremes if d is not None))

    def dim(self, x: Operand) -> DimLike | None:
        """The dim that an operand equals."""
        if isinstance(x, Const):
            return int(x.value) if x.dtype == dtypes.I64 else None
        return self.dims.get(x.name)

    def least(self, d: DimLike, loops: Sequence[For], inside: set[str]) -> DimLike | None:
        """The smallest value of a dim over all turns of the loops, innermost last; None where it is not known."""
        for s in reversed(loops):
            if isinstance(d, int):
                return d
            split = split_linear(d, s.symbol)
            if split is None:
                return None
            factor, rest = split
            if factor == 0:
                continue
            down = isinstance(s.step, int) and s.step < 0
            low, high = (s.upper + 1, s.lower) if down else (s.lower, s.upper - 1)
            if self.facts.is_le(0, factor):
                d = factor * low + rest
            elif self.facts.is_le(factor, 0):
                d = factor * high + rest
            else:
                return None
        if any(name in inside for name in symbols(d)):
            return None
        return d


def _nonnegative(predicate: str, a: DimLike, b: DimLike, truth: bool) -> tuple[DimLike, ...] | None:
    """Dims that are at least zero exactly if `a predicate b` has the value."""
    if not truth:
        predicate = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "ne": "eq"}.get(predicate, "")
    if predicate in ("gt", "ge"):
        predicate, a, b = {"gt": "lt", "ge": "le"}[predicate], b, a
    if predicate == "lt":
        return (b - a - 1,)
    if predicate == "le":
        return (b - a,)
    if predicate == "eq":
        return b - a, a - b
    return None


def _limit(tests: Sequence[Dim]) -> int | None:
    """A bound on the symbols of dims, within which 64 bits hold all that is computed on the way to their values."""
    return next((1 << bits for bits in _BITS if all(_largest(d, 1 << bits) < 1 << 62 for d in tests)), None)


def _largest(d: DimLike, limit: int) -> int:
    """What no part of a dim exceeds if no symbol exceeds `limit`, signs aside."""
    if isinstance(d, int):
        return abs(d)
    total = 0
    for mono, factor in d.terms:
        product = abs(factor)
        for atom in mono:
            inner = max((_largest(x, limit) for x in atom.args if not isinstance(x, str)), default=limit)
            product *= max(inner, 1)
        total += product
    return total


def _strongest(tests: Mapping[Dim, None], facts: Facts) -> list[Dim]:
    """Without tests that another one implies."""
    kept: list[Dim] = []
    for d in tests:
        if any(facts.is_le(other, d) for other in kept):
            continue
        kept = [other for other in kept if not facts.is_le(d, other)]
        kept.append(d)
    return kept


def _with(s: For | While, granted: Mapping[str, Operand], names: Names | None) -> For | While:
    """A loop in which some conditions are constants."""
    made = rebuilt([s], _Granting(granted=granted, names=names))[0]
    assert isinstance(made, (For, While))
    return made


def _cold_side(s: For | While, conditions: set[str]) -> For | While:
    """A loop in which branches with these conditions take the cold side."""
    if not conditions:
        return s
    r = Renaming()

    def chosen(body: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for x in body:
            if isinstance(x, If):
                if x.cold and isinstance(x.condition, Var) and x.condition.name in conditions:
                    out += rebuilt(x.otherwise, r)
                    r.vars.update((m.result.name, r.operand(m.otherwise)) for m in x.merges)
                    continue
                merges = [Merge(m.result, m.then, m.otherwise) for m in x.merges]
                made: Stmt = If(r.operand(x.condition), chosen(x.then), chosen(x.otherwise), merges, x.cold)
                for m in merges:
                    m.then, m.otherwise = r.operand(m.then), r.operand(m.otherwise)
            elif isinstance(x, (For, While)):
                made = loop(x)
            else:
                made = rebuilt([x], r)[0]
            out.append(made)
        return out

    def loop(x: For | While) -> For | While:
        carried = [Carry(c.inner, r.operand(c.init), c.next, c.result) for c in x.carried]
        made: For | While
        if isinstance(x, While):
            test = chosen(x.test)
            made = While(test, r.operand(x.condition), chosen(x.body), carried)
        else:
            body = chosen(x.body)
            made = with_bodies(x, body, carried=carried)
        for c in carried:
            c.next = r.operand(c.next)
        return made

    return loop(s)


@dataclass(slots=True)
class _Granting(Renaming):
    """A renaming in which the granted conditions are constants wherever they are read."""

    granted: Mapping[str, Operand] = field(default_factory=dict)

    def operand(self, x: Operand) -> Operand:
        if isinstance(x, Var):
            found = self.granted.get(x.name)
            if found is not None:
                return found
            return self.vars.get(x.name, x)
        return x
