"""How long buffers of the entry live.

Positions number the statements in program order. A buffer lives from the first to the last statement that mentions it,
both inclusive; a loop is one statement to what was made in front of it, a branch is not: of it, the statement inside
counts. What is exchanged (`Swap`) lives as long as any of its partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from jitgraph.codegen.in_place import is_overwritten_by, stores_to
from jitgraph.codegen.loops import Alloc, Buffer, CallKernel, Check, Free, Function, Host, If, Stmt, Swap
from jitgraph.codegen.loops_walk import bodies, names_of, walk
from jitgraph.ir.dims import DimLike
from jitgraph.records import dataclass


@dataclass(slots=True, eq=False)
class Point:
    """A statement at its place in the program; `last` is the position of its end, that of the statements inside
    counted.
    """

    stmt: Stmt
    body: list[Stmt]
    first: int
    last: int = 0


@dataclass(slots=True, eq=False)
class Life:
    """A buffer's.

    Attributes:
        kind: "scratch", "result", or "argument": of an array of the caller's, from where it is overwritten on.
        alloc, body: where it is made; None and the entry for memory that comes from outside.
        free_from: memory from outside may be used behind this position, until the life begins.
        size: bytes.
        born, dies: the statements that mention it first and last; None if nothing does.
        start, end: these, or the branches around them in the body where it is made.
        exchanged: it changes its memory with others.
    """

    buffer: Buffer
    alloc: Alloc | None
    body: list[Stmt]
    size: DimLike
    first: int = 0
    last: int = 0
    born: Point | None = None
    dies: Point | None = None
    start: Point | None = None
    end: Point | None = None
    exchanged: bool = False
    depth: int = 0
    kind: Literal["scratch", "result", "argument"] = "scratch"
    free_from: int = -1


def size_of(b: Buffer) -> DimLike:
    """Bytes of a dense buffer."""
    size: DimLike = b.dtype.itemsize
    for d in b.shape:
        size = size * d
    return size


def lifetimes(
    entry: list[Stmt],
    results: Sequence[Buffer] = (),
    arguments: Sequence[Buffer] = (),
    kernels: Mapping[str, Function] | None = None,
) -> tuple[list[Life], int]:
    """The lives of results, of arguments that are overwritten and of scratch buffers; the last position of the program.

    A result lives to the end. An argument's life is told if it is overwritten as a whole, by a statement of the entry
    that does not read it, and was only read before: from then on, and its memory is free behind the last read and
    behind whatever may leave the call by an error.
    """
    kernels = kernels or {}
    lives = [Life(b, None, entry, size_of(b), kind="result") for b in results]
    by_name = {life.buffer.name: life for life in lives}
    given = {b.name: _Argument(b) for b in arguments}
    barriers: list[int] = []
    swaps: list[tuple[str, str]] = []
    path: list[Point] = []
    at = 0

    def mention(name: str) -> None:
        life = by_name.get(name)
        if life is None:
            return
        k = life.depth
        while k + 1 < len(path) and isinstance(path[k].stmt, If):
            k += 1
        if life.born is None:
            life.born, life.start = path[k], path[life.depth]
        life.dies, life.end = path[k], path[life.depth]

    def visit(body: list[Stmt]) -> None:
        nonlocal at
        for stmt in body:
            at += 1
            path.append(Point(stmt, body, at))
            if isinstance(stmt, (Check, Host)) or (isinstance(stmt, CallKernel) and _may_leave(stmt, kernels)):
                barriers.append(at)
            if isinstance(stmt, Alloc) and stmt.scope == "scratch":
                life = by_name[stmt.buffer.name] = Life(stmt.buffer, stmt, body, size_of(stmt.buffer), at, at)
                life.depth = len(path) - 1
                lives.append(life)
            else:
                for name in names_of(stmt):
                    mention(name)
                    if name in given:
                        given[name].mentioned(path[0])
                if isinstance(stmt, Swap):
                    swaps.append((stmt.a.name, stmt.b.name))
                inner = bodies(stmt)
                if inner:
                    for b in inner:
                        visit(b)
                    at += 1
            path.pop().last = at

    visit(entry)
    lives += [life for g in given.values() if (life := g.life(entry, barriers, kernels)) is not None]
    for life in lives:
        if life.born is not None and life.dies is not None:
            life.first, life.last = life.born.first, life.dies.last
        if life.alloc is None:  # the caller has it
            life.first, life.last = life.first or at + 1, at + 1
    _join_exchanged(swaps, by_name)
    return lives, at


class _Argument:
    """What the statements of the entry do with an argument's memory."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.points: list[Point] = []

    def mentioned(self, p: Point) -> None:
        if not self.points or self.points[-1] is not p:
            self.points.append(p)

    def life(self, entry: list[Stmt], barriers: Sequence[int], kernels: Mapping[str, Function]) -> Life | None:
        name = self.buffer.name
        for k, p in enumerate(self.points):
            if not stores_to(p.stmt, name, kernels):
                continue
            if not is_overwritten_by(p.stmt, self.buffer, kernels):
                return None
            free = max((self.points[k - 1].last if k else 0, *(at for at in barriers if at < p.first)))
            life = Life(self.buffer, None, entry, size_of(self.buffer), kind="argument", free_from=free)
            life.born = life.start = p
            life.dies = life.end = self.points[-1]
            return life
        return None


def _may_leave(call: CallKernel, kernels: Mapping[str, Function]) -> bool:
    """Whether a kernel may end with an error."""
    if call.name not in kernels:
        return True
    return any(
        isinstance(s, Check) or (isinstance(s, CallKernel) and _may_leave(s, kernels))
        for s in walk(kernels[call.name].body)
    )


def _join_exchanged(swaps: Sequence[tuple[str, str]], by_name: Mapping[str, Life]) -> None:
    """Buffers that exchange their memory live as long as any of them."""
    leader: dict[str, str] = {}

    def lead(name: str) -> str:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    for a, b in swaps:
        leader[lead(a)] = lead(b)
    groups: dict[str, list[Life]] = {}
    for name in dict.fromkeys(name for pair in swaps for name in pair):
        if name in by_name:
            by_name[name].exchanged = True
            groups.setdefault(lead(name), []).append(by_name[name])
    for group in groups.values():
        first, last = min(x.first for x in group), max(x.last for x in group)
        for x in group:
            x.first, x.last = first, last


def mentions(stmt: Stmt, name: str) -> bool:
    """Whether a statement, or one inside it, reads, writes or frees a buffer."""
    own = name in names_of(stmt) or (isinstance(stmt, (Alloc, Free)) and stmt.buffer.name == name)
    return own or any(mentions(s, name) for body in bodies(stmt) for s in body)
