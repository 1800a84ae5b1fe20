"""Scalar loops over lanes: a loop whose turns do not depend on one another runs several turns at once.

The innermost loop whose lanes mostly lie side by side in memory is taken; loops inside it run in each lane, under a
mask where lanes leave them at different turns. Each lane does what its turn did in the same order, so all bits stay. A
loop that carries integers through sums, minima or maxima is a reduction, in any order. Legal where each two accesses to
one buffer, of which one writes, name the index on one axis with the same distance, or never meet; checks inside may
only be those that run the call anew in Python, as nothing visible was written then.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.loops import (
    Bind,
    Carry,
    Check,
    Const,
    DimValue,
    For,
    If,
    Let,
    Load,
    Operand,
    Part,
    Reduce,
    ReduceKind,
    Stmt,
    Store,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import bodies, read, walk
from jitgraph.codegen.vecmath import FUNCTIONS
from jitgraph.ir.dims import Facts, dim_max, split_linear, symbol, symbols
from jitgraph.ir.graph import Site
from jitgraph.schedule.memory import Place, apart, dense, place_of, side_by_side
from jitgraph.schedule.simplify import index_bounds, index_range
from jitgraph.schedule.statements import Names, Renaming, bound_in, rebuilt, size, with_bodies

#: Share of the accesses whose lanes lie side by side.
SIDE_BY_SIDE = 0.5
#: Statements of a body that is worth it.
LARGEST = 150
#: What has no instruction for lanes.
_SCALAR_ONLY = frozenset(("idiv", "irem", "frem", "mul_overflows"))


def lanes(body: list[Stmt], facts: Facts, names: Names, sites: Sequence[Site]) -> list[Stmt]:
    """A body whose scalar loops run over lanes where that is legal and pays."""
    return _Lanes(facts.copy(), names, sites).body(body)[0]


class _Lanes:
    def __init__(self, facts: Facts, names: Names, sites: Sequence[Site]) -> None:
        self.facts, self.names, self.sites = facts, names, sites

    def body(self, body: list[Stmt]) -> tuple[list[Stmt], bool]:
        """A body, and whether a loop in it runs over lanes."""
        out: list[Stmt] = []
        found = False
        for s in body:
            made, wide = self.statement(s)
            out += made
            found |= wide
        return out, found

    def statement(self, s: Stmt) -> tuple[list[Stmt], bool]:
        if isinstance(s, If):
            then, a = self.body(s.then)
            otherwise, b = (s.otherwise, False) if s.cold else self.body(s.otherwise)
            return [with_bodies(s, then, otherwise)], a or b
        if isinstance(s, While):
            inner, wide = self.body(s.body)
            return [with_bodies(s, s.test, inner)], wide
        if not isinstance(s, For):
            return [s], isinstance(s, Reduce) and not _dots_by_lane(s)
        if s.role != "serial":
            return [s], True
        outer = self.facts
        self.facts = outer.copy()
        index_range(self.facts, s.symbol, s.lower, s.upper, s.step)
        inner, wide = self.body(s.body)
        loop = with_bodies(s, inner)
        made = None
        if not wide:
            made = self.over_lanes(loop)
        elif any(isinstance(x, Reduce) and _dots_by_lane(x) for x in inner):
            made = self.over_lanes(_with_turns_inside(loop))
        self.facts = outer
        return ([loop], wide) if made is None else (made, True)

    def over_lanes(self, s: For) -> list[Stmt] | None:
        """The loop over lanes, or None where that is not legal or does not pay."""
        if s.step != 1 or size(s.body) > LARGEST or not self.fits(s):
            return None
        if not self.independent(s) or not _pays(s):
            return None
        if not s.carried:
            return [For(s.symbol, s.lower, s.upper, s.body, 1, "vector", [], s.lanes, s.interleave)]
        return self.reduction(s)

    def fits(self, loop: For) -> bool:
        """Whether the body of a loop holds nothing but what lanes can do."""
        body = loop.body
        bound = bound_in([loop])
        for s in walk(body):
            if isinstance(s, Check):
                if self.sites[s.site].error != "deoptimise":
                    return False
            elif isinstance(s, Let):
                if s.op in _SCALAR_ONLY:
                    return False
                function = FUNCTIONS.get(s.attr) if s.op == "call" else None
                if s.op == "call" and (function is None or not function.vectorised):
                    return False
            elif isinstance(s, (Load, Store)):
                if s.imag is not None:
                    return False
            elif isinstance(s, Reduce):
                if not _dots_by_lane(s) or any(name in bound for name in symbols(s.extent)):
                    return False
            elif not isinstance(s, (DimValue, Bind, If, While)) and not (isinstance(s, For) and s.role == "serial"):
                return False
        return True

    def independent(self, s: For) -> bool:
        """Whether no turn touches what another one writes."""
        inner = bound_in(s.body)
        facts = self.facts.copy()
        _ranges(s.body, facts)
        other = self.names.symbol()
        index_range(facts, other, s.lower, s.upper, s.step)
        r = Renaming(names=self.names)
        r.set_dim(s.symbol, symbol(other))
        twin = rebuilt(s.body, r)
        _ranges(twin, facts)
        here = [(place_of(x), isinstance(x, Store)) for x in walk(s.body) if isinstance(x, (Load, Store))]
        there = [(place_of(x), isinstance(x, Store)) for x in walk(twin) if isinstance(x, (Load, Store))]
        inner |= bound_in(twin)
        for a, writes in here:
            for b, overwrites in there:
                if not (writes or overwrites) or a[0].name != b[0].name:
                    continue
                if not (_same_turn(a, b, s.symbol, other, inner) or apart(a, b, facts)):
                    return False
        return True

    def counted(self, c: Carry, body: list[Stmt]) -> list[Stmt]:
        """A body that adds `select c, k, 0` in each turn where it chose between the integer carried and its sum."""
        lets = {s.var.name: s for s in body if isinstance(s, Let)}
        last = lets.get(c.next.name) if isinstance(c.next, Var) else None
        if last is None or last.op != "select" or c.inner.dtype.kind not in "iu" or c.inner not in last.args[1:]:
            return body
        other = last.args[2] if last.args[1] == c.inner else last.args[1]
        total = lets.get(other.name) if isinstance(other, Var) else None
        if total is None or total.op != "add" or c.inner not in total.args or total.args[0] == total.args[1]:
            return body
        step = total.args[0] if total.args[1] == c.inner else total.args[1]
        none = Const(0, c.inner.dtype)
        sides = (none, step) if last.args[1] == c.inner else (step, none)
        chosen = self.names.var(c.inner.dtype)
        made: list[Stmt] = [Let(chosen, "select", (last.args[0], *sides)), Let(last.var, "add", (c.inner, chosen))]
        return [x for s in body if s is not total for x in (made if s is last else [s])]

    def reduction(self, s: For) -> list[Stmt] | None:
        """A loop that carries integers as a reduction in any order."""
        body = list(s.body)
        parts: list[Part] = []
        for c in s.carried:
            body = self.counted(c, body)
            found = _folded(c, body)
            if found is None:
                return None
            kind, value, gone = found
            body = [x for x in body if not any(x is g for g in gone)]
            lost = {c.inner.name, *(g.var.name for g in gone)}
            if any(isinstance(x, Var) and x.name in lost for t in walk(body) for x in read(t)):
                return None
            parts.append(Part(c.result, kind, "free", value, c.init))
        if any(isinstance(t, (Store, Reduce)) for t in walk(body)):
            return None
        index = self.names.symbol()
        r = Renaming()
        r.set_dim(s.symbol, symbol(index) + s.lower)
        extent = s.upper - s.lower
        if not self.facts.is_le(0, extent):
            extent = dim_max(extent, 0)
        return [Reduce(index, extent, rebuilt(body, r), parts)]


def _dots_by_lane(s: Reduce) -> bool:
    """Whether each lane can add up dot products of its own."""
    return all(p.order == "dot" and ORDERS[p.model].by_lane for p in s.parts)


def _with_turns_inside(s: For) -> For:
    """The loop with those over lanes in it turn by turn."""
    body: list[Stmt] = [
        For(x.symbol, x.lower, x.upper, x.body) if isinstance(x, For) and x.role == "vector" else x for x in s.body
    ]
    return with_bodies(s, body)


def _ranges(body: list[Stmt], facts: Facts) -> None:
    """Record the ranges of the loops in a body; that they have turns holds for their own accesses only."""
    for s in body:
        if isinstance(s, For):
            index_bounds(facts, s.symbol, s.lower, s.upper, s.step)
        elif isinstance(s, Reduce):
            index_bounds(facts, s.symbol, 0, s.extent, 1)
        for inner in bodies(s):
            _ranges(inner, facts)


def _same_turn(a: Place, b: Place, x: str, other: str, inner: set[str]) -> bool:
    """Whether two accesses meet in one turn only: an axis is the index and one distance in both."""
    if a[0] != b[0] or not dense(a[0]):
        return False
    for i, j in zip(a[1], b[1], strict=True):
        here, there = split_linear(i, x), split_linear(j, other)
        if here is None or there is None or here[0] != there[0] or here[0] not in (1, -1):
            continue
        if here[1] == there[1] and not any(name in inner for name in symbols(here[1])):
            return True
    return False


def _pays(s: For) -> bool:
    """Whether lanes mostly lie side by side, or hardly touch memory."""
    near, far = side_by_side(s.body, s.symbol)
    if near + far == 0:
        return any(isinstance(t, (For, While)) for t in walk(s.body))
    return near >= SIDE_BY_SIDE * (near + far)


def _folded(c: Carry, body: list[Stmt]) -> tuple[ReduceKind, Operand, list[Let]] | None:
    """What a carried integer folds: the kind, the value of a turn, and the statements that fold it."""
    if c.inner.dtype.kind not in "iu" or not isinstance(c.next, Var):
        return None
    lets = {s.var.name: s for s in body if isinstance(s, Let)}
    last = lets.get(c.next.name)
    if last is None:
        return None
    if last.op == "add" and c.inner in last.args and last.args[0] != last.args[1]:
        value = last.args[0] if last.args[1] == c.inner else last.args[1]
        return "sum", value, [last]
    if last.op == "select" and isinstance(last.args[0], Var):
        test = lets.get(last.args[0].name)
        if test is None or test.op != "cmp" or test.attr not in ("lt", "le", "gt", "ge"):
            return None
        if set(test.args) != set(last.args[1:]) or c.inner not in test.args:
            return None
        value = test.args[0] if test.args[1] == c.inner else test.args[1]
        first_wins = last.args[1] == test.args[0]
        larger = (test.attr in ("gt", "ge")) == first_wins
        return ("max" if larger else "min"), value, [test, last]
    return None
