"""Loops whose turns are independent, as functions of a range that threads may run in pieces.

A kernel whose statements all run over one range of an index (each at a depth of its own: the axis that a sum over
rows keeps is the inner one) becomes a function of the bounds of that range; else each of its nests does that can, as a
function of its own. Whether threads pay is decided in each call, from the work that the sizes mean. There is one
generated body: a call on the whole range is what runs in one thread. Only a nest inside a loop stays there as well, as
what it shares with the turns around it would be computed in each call.

Legal where each two accesses to one buffer, of which one writes, name the index on one axis of that buffer, with the
same factor and distance: then they are in one turn. Nothing inside may leave with an error, call Python or carry a
value from turn to turn. Bits stay, as each turn does what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    CallKernel,
    DimValue,
    For,
    Free,
    Function,
    If,
    Let,
    Load,
    Program,
    Reduce,
    Split,
    Stmt,
    Store,
    While,
)
from jitgraph.codegen.loops_walk import bodies, walk
from jitgraph.ir.dims import DimLike, dim_min, split_linear, substitute, symbol, symbols
from jitgraph.records import dataclass
from jitgraph.schedule.memory import Place, dense, place_of
from jitgraph.schedule.outline import outlined
from jitgraph.schedule.pieces import in_pieces
from jitgraph.schedule.statements import Names, bound_in
from jitgraph.schedule.work import work_of

#: Work that is never worth it, in picoseconds: the least that a fork and join costs, ten times.
LEAST = 5_000_000
#: Elements of a piece of an innermost loop: whole cache lines and vectors.
ELEMENTS = 64
#: Pieces a thread, where those may be short.
EACH = 4
#: A loop that is known to have fewer turns is split only if no other can be.
FEW = 8


@dataclass(slots=True)
class Found:
    """A way to split statements: the loops that run over the range, and its bounds."""

    loops: list[For]
    lower: DimLike
    upper: DimLike
    unit: int
    each: int


def parallel(p: Program, names: Names) -> Program:
    """A program whose calls are made in pieces where that is legal and may pay."""
    kernels, work = in_pieces(p.kernels, names)
    maker = _Maker(replace(p, kernels=kernels), names, work)
    entry = maker.body(p.entry, inside=False)
    return replace(p, entry=entry, kernels=maker.kernels())


class _Maker:
    def __init__(self, p: Program, names: Names, work: Mapping[str, DimLike]) -> None:
        self.names = names
        self.work = work
        self.by_name = {k.name: k for k in p.kernels}
        self.made: dict[str, tuple[Function, Found | None]] = {}
        self.new: dict[str, list[Function]] = {}
        self.order = [k.name for k in p.kernels]
        self.entry_made: list[Function] = []

    def kernels(self) -> list[Function]:
        """All functions, each in front of those that call it."""
        out: list[Function] = []
        for name in self.order:
            out += self.new.get(name, [])
            out.append(self.made[name][0] if name in self.made else self.by_name[name])
        return [*out, *self.entry_made]

    # --- the entry --------------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt], *, inside: bool) -> list[Stmt]:
        """Statements of the entry, or of a loop in it."""
        out: list[Stmt] = []
        for s in body:
            made: Stmt = s
            if isinstance(s, CallKernel):
                made = self.call(s)
            elif isinstance(s, For):
                made = self.loop(s, inside=inside, into=self.entry_made)
                if made is s and s.role == "serial":
                    made = replace(s, body=self.body(s.body, inside=True))
            elif isinstance(s, While):
                made = replace(s, body=self.body(s.body, inside=True))
            elif isinstance(s, If):
                otherwise = s.otherwise if s.cold else self.body(s.otherwise, inside=inside)
                made = replace(s, then=self.body(s.then, inside=inside), otherwise=otherwise)
            out.append(made)
        return out

    def loop(self, s: For, *, inside: bool, into: list[Function]) -> Stmt:
        """A loop as a call of a function of its own, if it can be split."""
        found = split_of([s])
        if found is None or (inside and not _worth_a_call(s)):
            return s
        cost = self.work[s.symbol] if s.symbol in self.work else work_of([s])
        if isinstance(cost, int) and cost < LEAST:
            return s
        lower, upper = self.names.symbol(), self.names.symbol()
        function, call = outlined(self.names.buffer("part"), [_ranged(s, found.loops, lower, upper)])
        others = [k for k, name in enumerate(function.symbols) if name not in (lower, upper)]
        function.symbols = [*(function.symbols[k] for k in others), lower, upper]
        function.polls = into is self.entry_made
        into.append(function)
        call.symbols = (*(call.symbols[k] for k in others), found.lower, found.upper)
        call.split = Split(found.unit, cost, found.each, s if inside else None)
        return call

    # --- kernels ----------------------------------------------------------------------------------------------------

    def call(self, s: CallKernel) -> Stmt:
        if s.name not in self.made:
            self.made[s.name] = self.kernel(self.by_name[s.name])
        _, found = self.made[s.name]
        if found is None:
            return s
        env = dict(zip(self.by_name[s.name].symbols, s.symbols, strict=True))
        cost = substitute(work_of(self.by_name[s.name].body), env)
        bounds = substitute(found.lower, env), substitute(found.upper, env)
        return replace(s, symbols=(*s.symbols, *bounds), split=Split(found.unit, cost, found.each))

    def kernel(self, k: Function) -> tuple[Function, Found | None]:
        """A kernel as a function of a range, with the range; or with calls of such functions inside, and None."""
        found = split_of(k.body) if not k.results else None
        if found is not None:
            cost = work_of(k.body)
            if isinstance(cost, int) and cost < LEAST:
                return k, None
            lower, upper = self.names.symbol(), self.names.symbol()
            body = [_ranged(s, found.loops, lower, upper) for s in k.body]
            return replace(k, symbols=[*k.symbols, lower, upper], body=body), found
        new: list[Function] = []
        body = self.nests(k.body, new, inside=False)
        if not new:
            return k, None
        for n in new:
            n.origin = k.origin
        self.new[k.name] = new
        return replace(k, body=body), None

    def nests(self, body: list[Stmt], new: list[Function], *, inside: bool) -> list[Stmt]:
        """Statements of a kernel, whose nests are split one by one."""
        out: list[Stmt] = []
        for s in body:
            made: Stmt = s
            if isinstance(s, For):
                made = self.loop(s, inside=inside, into=new)
                if made is s and s.role == "serial":
                    made = replace(s, body=self.nests(s.body, new, inside=True))
            elif isinstance(s, If):
                otherwise = s.otherwise if s.cold else self.nests(s.otherwise, new, inside=inside)
                made = replace(s, then=self.nests(s.then, new, inside=inside), otherwise=otherwise)
            elif isinstance(s, While):
                made = replace(s, body=self.nests(s.body, new, inside=True))
            out.append(made)
        return out


def _worth_a_call(s: For) -> bool:
    """Whether a call in front of a loop inside another costs nothing beside it: it holds loops, or dear functions."""
    return any(isinstance(x, (For, Reduce)) or (isinstance(x, Let) and x.op == "call") for x in walk(s.body))


def _ranged(s: Stmt, loops: list[For], lower: str, upper: str) -> Stmt:
    """A statement with these loops over a range given by symbols."""
    if isinstance(s, For):
        if any(s is x for x in loops):
            return replace(
                s, lower=symbol(lower), upper=symbol(upper), role="serial" if s.role == "parallel" else s.role
            )
        return replace(s, body=[_ranged(x, loops, lower, upper) for x in s.body])
    if isinstance(s, If):
        then, otherwise = ([_ranged(x, loops, lower, upper) for x in b] for b in bodies(s))
        return replace(s, then=then, otherwise=otherwise)
    return s


# --- where it is legal ----------------------------------------------------------------------------------------------


def split_of(body: list[Stmt]) -> Found | None:
    """How statements can be split, by the outermost loops that allow it; None if they cannot."""
    first = next((s for s in body if bodies(s)), None)
    if first is None:
        return None
    inside = bound_in(body)
    stored = {s.buffer.name for s in walk(body) if isinstance(s, Store)}
    rows = {s.buffer.name for s in body if isinstance(s, Alloc)}
    later: Found | None = None
    seen: set[tuple[DimLike, DimLike]] = set()
    for loop in walk([first]):
        if not isinstance(loop, For) or not isinstance(loop.step, int) or loop.step < 1:
            continue
        bounds = loop.lower, loop.upper
        if bounds in seen or any(name in inside for d in bounds for name in symbols(d)):
            continue
        seen.add(bounds)
        loops = _over(body, loop, stored)
        if loops is None or not _independent(loops, rows, inside):
            continue
        whole = (For, While, Reduce, If, CallKernel)
        nested = loop.role != "vector" and any(isinstance(x, whole) for s in loops for x in s.body)
        unit = loop.step if nested else -(-ELEMENTS // loop.step) * loop.step
        found = Found(loops, *bounds, unit, EACH if nested or not _again_and_again(body, loops) else 1)
        distance = loop.upper - loop.lower
        if not isinstance(distance, int) or distance >= FEW * loop.step:
            return found
        later = later or found
    return later


def _again_and_again(body: list[Stmt], loops: list[For]) -> bool:
    """Whether a loop around goes over the range in each of its turns."""
    around = (s for s in walk(body) if isinstance(s, For) and not any(s is x for x in loops))
    return any(any(x is loop for loop in loops) for s in around for x in walk(s.body))


def _over(body: list[Stmt], like: For, stored: set[str]) -> list[For] | None:
    """The loops over the range of `like` that all stores of a body stand in; None if others are in the way."""
    found: list[For] = []
    for s in body:
        if isinstance(s, For):
            if (s.lower, s.upper, s.step) == (like.lower, like.upper, like.step) and (
                s.role == "parallel" or _plain(s)
            ):
                found.append(s)
                continue
            if s.carried or s.going is not None or s.role == "append":
                return None
            inner = _over(s.body, like, stored)
            if inner is None:
                return None
            found += inner
        elif isinstance(s, If):
            for b in bodies(s):
                inner = _over(b, like, stored)
                if inner is None:
                    return None
                found += inner
        elif isinstance(s, Load):
            if s.buffer.name in stored:
                return None
        elif isinstance(s, Alloc):
            if s.scope != "row":
                return None
        elif not isinstance(s, (Let, DimValue, Bind)):
            return None
    return found


def _plain(s: For) -> bool:
    """Whether a loop carries nothing, and holds nothing that may leave, or call what is not known."""
    if s.carried or s.going is not None or s.role == "append":
        return False
    for x in walk(s.body):
        if isinstance(x, Alloc):
            if x.scope != "row":
                return False
        elif not isinstance(x, (Let, DimValue, Bind, Load, Store, For, While, If, Reduce, Free)):
            return False
    return True


def _independent(loops: list[For], rows: set[str], bound: set[str]) -> bool:
    """Whether no turn touches what another one writes, in any of the loops, in whichever turns of loops around them.

    Args:
        rows: buffers that each piece has.
        bound: symbols that the statements bind: those have many values.
    """
    if len(loops) == 1 and loops[0].role == "parallel":
        return True
    found: dict[str, list[tuple[Place, bool, _Turn]]] = {}
    for s in loops:
        private = {x.buffer.name for x in walk(s.body) if isinstance(x, Alloc)}
        private |= {name for name in rows if _made_anew(name, s.body)}
        turn = _Turn(s, bound)
        for x in walk(s.body):
            if isinstance(x, (Load, Store)) and x.buffer.name not in private:
                found.setdefault(x.buffer.name, []).append((place_of(x), isinstance(x, Store), turn))
    for accesses in found.values():
        if not any(writes for _, writes, _ in accesses):
            continue
        first = accesses[0]
        if not dense(first[0][0]):
            return False
        axes = set(range(len(first[0][1])))
        for place, _, turn in accesses:
            if place[0] != first[0][0]:
                return False
            axes = {k for k in axes if _same(first[2].at(first[0][1][k]), turn.at(place[1][k]))}
        if not axes:
            return False
    return True


def _made_anew(name: str, body: list[Stmt]) -> bool:
    """Whether each turn fills a row of its own before it reads it: the first nest that touches it only stores."""
    for s in body:
        touching = [x for x in walk([s]) if isinstance(x, (Load, Store)) and x.buffer.name == name]
        if touching:
            return all(isinstance(x, Store) for x in touching)
    return True


def _same(a: tuple[DimLike, DimLike] | None, b: tuple[DimLike, DimLike] | None) -> bool:
    return a is not None and a == b


class _Turn:
    """How indices depend on the turn of a loop."""

    def __init__(self, loop: For, bound: set[str]) -> None:
        self.loop = loop
        self.bound = bound
        #: Loops over the elements of a block that a turn steps over: their index names the turn as well.
        self.blocks: dict[str, DimLike] = {}
        for s in walk(loop.body):
            if isinstance(s, For) and s.lower == symbol(loop.symbol) and _within(s, loop):
                self.blocks[s.symbol] = 1

    def at(self, d: DimLike) -> tuple[DimLike, DimLike] | None:
        """(factor, distance) of an index that names the turn: indices of two turns differ if these are the same."""
        for name in (self.loop.symbol, *self.blocks):
            split = split_linear(d, name) if name in symbols(d) else None
            if split is None or not isinstance(split[0], int) or split[0] == 0:
                continue
            if any(s in self.bound for s in symbols(split[1])):
                continue
            if name != self.loop.symbol or self.loop.step == 1:
                return split[0], split[1]
            if self.blocks or split[0] != 1 or not isinstance(self.loop.step, int):
                return None
            rest = split[1]  # elements up to the next turn are this turn's, too
            constant = rest if isinstance(rest, int) else rest.constant
            return 1, rest - constant % self.loop.step
        return None


def _within(s: For, loop: For) -> bool:
    """Whether a loop inside goes over at most the elements up to the next turn of the one around."""
    first = symbol(loop.symbol)
    if not isinstance(loop.step, int) or s.step != 1:
        return False
    return s.upper == first + loop.step or s.upper == dim_min(first + loop.step, loop.upper)


__all__ = ["parallel", "split_of"]
