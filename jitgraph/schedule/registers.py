"""Elements of arrays in registers: what is stored and loaded again, and what a loop reads or writes at one place.

1. A load of what was stored or loaded on the way here is that value; a store over which another goes is dropped.
2. A loop that reads an element which nothing in it writes reads it in front.
3. A loop that reads and writes one element in each turn carries it and writes it once, behind (`s[i] += ...`).
4. A loop that reads what the turn before wrote (`a[j - 1]` beside `a[j] = ...`) carries it.

What a failing check leaves behind is visible in arguments, so in a loop with checks only 1 and 2 are done.
"""

from __future__ import annotations

from typing import TypeAlias

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Bind,
    CallKernel,
    Carry,
    Check,
    Const,
    DimValue,
    For,
    Host,
    If,
    Let,
    Load,
    Merge,
    Operand,
    Reduce,
    Stmt,
    Store,
    While,
)
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import DimLike, Facts, substitute, symbol, symbols
from jitgraph.schedule.memory import Place, accesses, apart, place_of, touched
from jitgraph.schedule.simplify import Simplifier, index_range
from jitgraph.schedule.statements import Names, Renaming, bound_in, rebuilt, with_bodies

Parts: TypeAlias = tuple[Operand, ...]


def registers(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body that loads and stores less."""
    return _Registers(facts.copy(), names).body(body, {})


class _Registers:
    def __init__(self, facts: Facts, names: Names) -> None:
        self.facts, self.names = facts, names
        self.r = Renaming()
        self.reader = Simplifier(facts)  # reads what conditions mean

    # --- straight lines ---------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt], held: dict[Place, Parts]) -> list[Stmt]:
        """A body; `held` says which elements are in registers, and is kept up to date."""
        out: list[Stmt] = []
        #: Stores that nothing has looked at yet, by place: where they stand in `out`.
        pending: dict[Place, int] = {}
        dropped: set[int] = set()
        for s in body:
            if isinstance(s, Load):
                self.load(s, held, out, pending)
            elif isinstance(s, Store):
                self.store(s, held, out, pending, dropped)
            elif isinstance(s, (For, While, If, Reduce)):
                pending.clear()
                out += self.nested(s, held)
            else:
                for name in touched(s):
                    _forget(held, name)
                if isinstance(s, Host):
                    held.clear()
                elif isinstance(s, Bind):
                    for place in [p for p in held if any(s.symbol in symbols(d) for d in p[1])]:
                        del held[place]
                if not isinstance(s, (Let, DimValue)):
                    pending.clear()
                made = rebuilt([s], self.r)[0]
                self.learn(made)
                out.append(made)
        return [s for k, s in enumerate(out) if k not in dropped]

    def learn(self, s: Stmt) -> None:
        """What is computed of dims, and which checks have passed."""
        if isinstance(s, DimValue):
            self.reader.state.dims[s.var.name] = s.dim
        elif isinstance(s, Let) and s.var.dtype == dtypes.BOOL:
            self.reader.meaning[s.var.name] = s
        elif isinstance(s, Check):
            self.assume(s.condition, True)

    def assume(self, x: Operand, truth: bool) -> None:
        self.reader.state.facts = self.facts
        self.reader.assume(x, truth)

    def load(self, s: Load, held: dict[Place, Parts], out: list[Stmt], pending: dict[Place, int]) -> None:
        place = place_of(s)
        known = held.get(place)
        variables = (s.var,) if s.imag is None else (s.var, s.imag)
        if known is not None and all(x.dtype == v.dtype for x, v in zip(known, variables, strict=True)):
            self.r.vars.update((v.name, x) for v, x in zip(variables, known, strict=True))
            return
        for other in [p for p in pending if not apart(p, place, self.facts)]:
            del pending[other]
        held[place] = variables
        out.append(s)

    def store(
        self,
        s: Store,
        held: dict[Place, Parts],
        out: list[Stmt],
        pending: dict[Place, int],
        dropped: set[int],
    ) -> None:
        made = rebuilt([s], self.r)[0]
        assert isinstance(made, Store)
        place = place_of(made)
        for other in [p for p in held if p != place and not apart(p, place, self.facts)]:
            del held[other]
        held[place] = (made.value,) if made.imag is None else (made.value, made.imag)
        before = pending.get(place)
        if before is not None:
            dropped.add(before)
        pending[place] = len(out)
        out.append(made)

    # --- loops and branches -----------------------------------------------------------------------------------------

    def nested(self, s: For | While | If | Reduce, held: dict[Place, Parts]) -> list[Stmt]:
        if isinstance(s, If):
            return [self.branch(s, held)]
        self.spoil(s, held)
        if isinstance(s, Reduce) or (isinstance(s, For) and s.role == "append"):
            return rebuilt([s], self.r)
        if isinstance(s, For) and s.role != "serial":
            return [self.lanes(s)]
        outer = self.facts
        self.facts = outer.copy()
        carried = [Carry(c.inner, self.r.operand(c.init), c.next, c.result) for c in s.carried]
        if isinstance(s, While):
            inside = dict(held)
            test = self.body(s.test, inside)
            condition = self.r.operand(s.condition)
            self.assume(condition, True)
            body = self.body(s.body, inside)
            self.facts = outer
            for c in carried:
                c.next = self.r.operand(c.next)
            return [While(test, condition, body, carried)]
        index_range(self.facts, s.symbol, s.lower, s.upper, s.step)
        body = self.body(s.body, dict(held))
        for c in carried:
            c.next = self.r.operand(c.next)
        loop = with_bodies(s, body, carried=carried)
        made = _Loop(self, loop).statements(outer)
        self.facts = outer
        return made

    def lanes(self, s: For) -> For:
        """A loop whose turns are independent: nothing is carried, but each turn has its own registers."""
        outer, self.facts = self.facts, self.facts.copy()
        index_range(self.facts, s.symbol, s.lower, s.upper, s.step)
        body = self.body(s.body, {})
        self.facts = outer
        return with_bodies(s, body)

    def branch(self, s: If, held: dict[Place, Parts]) -> If:
        condition = self.r.operand(s.condition)
        sides: list[list[Stmt]] = []
        ends: list[dict[Place, Parts]] = []
        for truth, body in ((True, s.then), (False, s.otherwise)):
            outer, inside = self.facts, dict(held)
            self.facts = outer.copy()
            self.assume(condition, truth)
            sides.append(self.body(body, inside) if truth or not s.cold else self.cold(body, inside))
            ends.append(inside)
            self.facts = outer
        kept = {p: v for p, v in held.items() if ends[0].get(p) == v == ends[1].get(p)}
        held.clear()
        held.update(kept)
        merges = [Merge(m.result, self.r.operand(m.then), self.r.operand(m.otherwise)) for m in s.merges]
        return If(condition, sides[0], sides[1], merges, s.cold)

    def cold(self, body: list[Stmt], held: dict[Place, Parts]) -> list[Stmt]:
        """A body that is not worth the work."""
        held.clear()
        return rebuilt(body, self.r)

    def spoil(self, s: For | While | Reduce, held: dict[Place, Parts]) -> None:
        """Forget what some turn of a loop may write."""
        facts = self.facts.copy()
        stores = [place_of(x) for x in accesses([s], facts) if isinstance(x, Store)]
        for place in list(held):
            if not all(apart(place, other, facts) for other in stores):
                del held[place]
        for inner in walk([s]):
            for name in touched(inner):
                _forget(held, name)
            if isinstance(inner, Host):
                held.clear()


def _forget(held: dict[Place, Parts], name: str) -> None:
    for place in [p for p in held if p[0].name == name]:
        del held[place]


class _Loop:
    """One serial loop whose body is done: what can be carried out of it."""

    def __init__(self, owner: _Registers, loop: For) -> None:
        self.loop, self.names = loop, owner.names
        self.carried = list(loop.carried)
        self.facts = owner.facts.copy()
        self.found = list(accesses(loop.body, self.facts))
        self.bound = bound_in([loop])
        self.before: list[Stmt] = []
        self.after: list[Stmt] = []

    def statements(self, outside: Facts) -> list[Stmt]:
        loop = self.loop
        if not self.found:
            return [loop]
        opaque: set[str] = set()
        has_checks = has_hosts = False
        for s in walk(loop.body):
            opaque.update(touched(s))
            has_checks |= isinstance(s, (Check, CallKernel))
            has_hosts |= isinstance(s, Host)
        if has_hosts:
            return [loop]
        for s in list(loop.body):
            if any(isinstance(x, (Check, CallKernel)) for x in walk([s])):
                break  # what stands behind may be out of bounds where the check fails
            if isinstance(s, Load) and s.imag is None and s.buffer.name not in opaque:
                self.take_load(s)
        if not has_checks:
            places = dict.fromkeys(place_of(s) for s in self.found if isinstance(s, Store))
            for place in places:
                if place[0].name not in opaque:
                    self.carry_place(place)
            for s in list(loop.body):
                if isinstance(s, Load) and s.imag is None and s.buffer.name not in opaque:
                    self.carry_from_last_turn(s)
        if not (self.before or self.after):
            return [loop]
        whole = [*self.before, loop, *self.after]
        trips = loop.lower - loop.upper if _down(loop) else loop.upper - loop.lower
        if outside.is_lt(0, trips):
            return whole
        return self.guarded(whole, trips)

    def guarded(self, whole: list[Stmt], trips: DimLike) -> list[Stmt]:
        """The statements, run only if the loop has a turn."""
        count, runs = self.names.var(dtypes.I64), self.names.var(dtypes.BOOL)
        merges = []
        for c in self.carried:
            result, c.result = c.result, self.names.var(c.result.dtype)
            merges.append(Merge(result, c.result, c.init))
        return [
            DimValue(count, trips),
            Let(runs, "cmp", (count, Const(0, dtypes.I64)), "gt"),
            If(runs, whole, [], merges),
        ]

    def take_load(self, s: Load) -> None:
        """A load of what the loop does not write goes in front of it."""
        place = place_of(s)
        if self.fixed(place) and all(apart(place, place_of(x), self.facts) for x in self.stores()):
            self.before.append(s)
            self.drop(s)

    def fixed(self, place: Place) -> bool:
        """Whether it is one place in all turns."""
        return not any(name in self.bound for d in (*place[1], *place[0].strides) for name in symbols(d))

    def may_load(self, place: Place) -> bool:
        """Whether an element may be read in front of a loop that has a turn: each turn accesses it, or it exists."""
        if any(isinstance(s, (Load, Store)) and place_of(s) == place for s in self.loop.body):
            return True
        return all(
            self.facts.is_le(0, d) and self.facts.is_lt(d, n) for d, n in zip(place[1], place[0].shape, strict=True)
        )

    def stores(self) -> list[Store]:
        return [x for x in self.found if isinstance(x, Store)]

    def drop(self, s: Load | Store) -> None:
        self.loop.body = [x for x in self.loop.body if x is not s]
        self.found = [x for x in self.found if x is not s]

    def carry_place(self, place: Place) -> None:
        """Carry an element that the loop writes at one place; all its accesses stand in the loop's own body, or in
        branches there.
        """
        same = [x for x in self.found if place_of(x) == place]
        others = [x for x in self.found if place_of(x) != place]
        if not self.fixed(place) or any(isinstance(x, (Load, Store)) and x.imag is not None for x in same):
            return
        if not all(apart(place, place_of(x), self.facts) for x in others):
            return
        if any(place in _inside_loops(s) for s in self.loop.body) or not self.may_load(place):
            return
        dtype = dtypes.native(place[0].dtype)
        first, inner, last = (self.names.var(dtype) for _ in range(3))
        r = Renaming()
        body, value = self.threaded(self.loop.body, place, inner, r)
        self.before.append(Load(first, *place))
        self.loop.body = body
        for c in self.loop.carried:
            c.next = r.operand(c.next)
        self.loop.carried = [*self.loop.carried, Carry(inner, first, value, last)]
        self.after.append(Store(place[0], place[1], last))
        self.found = list(accesses(body, self.facts))

    def threaded(self, body: list[Stmt], place: Place, value: Operand, r: Renaming) -> tuple[list[Stmt], Operand]:
        """A body in which the element is a scalar that starts as `value`, and what it is at the end."""
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, Load) and place_of(s) == place:
                r.vars[s.var.name] = value
            elif isinstance(s, Store) and place_of(s) == place:
                value = r.operand(s.value)
            elif isinstance(s, If) and any(
                place_of(x) == place for x in accesses([s], self.facts) if isinstance(x, Store)
            ):
                condition = r.operand(s.condition)
                then, yes = self.threaded(s.then, place, value, r)
                otherwise, no = self.threaded(s.otherwise, place, value, r)
                merges = [Merge(m.result, r.operand(m.then), r.operand(m.otherwise)) for m in s.merges]
                merged = self.names.var(dtypes.native(place[0].dtype))
                out.append(If(condition, then, otherwise, [*merges, Merge(merged, yes, no)], s.cold))
                value = merged
            elif isinstance(s, If):
                condition = r.operand(s.condition)
                then, _ = self.threaded(s.then, place, value, r)
                otherwise, _ = self.threaded(s.otherwise, place, value, r)
                merges = [Merge(m.result, r.operand(m.then), r.operand(m.otherwise)) for m in s.merges]
                out.append(If(condition, then, otherwise, merges, s.cold))
            else:
                out += rebuilt([s], r)
        return out, value

    def carry_from_last_turn(self, s: Load) -> None:
        """Carry what the turn before stored at the place of this load."""
        loop, place = self.loop, place_of(s)
        if not isinstance(loop.step, int) or self.fixed(place):
            return
        back = {loop.symbol: symbol(loop.symbol) - loop.step}
        source = None
        for x in loop.body:
            if not isinstance(x, Store) or x.imag is not None or x.buffer != s.buffer:
                continue
            if tuple(substitute(d, back) for d in x.index) == place[1]:
                source = x
        if source is None:
            return
        index_facts = self.facts
        for x in self.stores():
            earlier = (x.buffer, tuple(substitute(d, back) for d in x.index))
            if x is not source and not apart(earlier, place, index_facts):
                return
            if not apart(place_of(x), place, index_facts):
                return
        start = {loop.symbol: loop.lower}
        first = self.names.var(s.var.dtype)
        result = self.names.var(s.var.dtype)
        self.before.append(Load(first, s.buffer, tuple(substitute(d, start) for d in place[1])))
        self.drop(s)
        loop.carried = [*loop.carried, Carry(s.var, first, source.value, result)]


def _inside_loops(s: Stmt) -> set[Place]:
    """Places that the loops inside a statement of a body touch."""
    found: set[Place] = set()
    for x in walk([s]):
        if isinstance(x, (For, While, Reduce)):
            found.update(place_of(y) for y in walk([x]) if isinstance(y, (Load, Store)))
    return found


def _down(loop: For) -> bool:
    return isinstance(loop.step, int) and loop.step < 0
