"""How long buffers of the entry live.

Positions number the statements in program order. A buffer lives from the first to the last statement that mentions it,
both inclusive; a loop is one statement to what was made in front of it, a branch is not: of it, the statement inside
counts. What is exchanged (`Swap`) lives as long as any of its partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitgraph.codegen.loops import Alloc, Buffer, Free, If, Stmt, Swap
from jitgraph.codegen.loops_walk import bodies, names_of
from jitgraph.ir.dims import DimLike
from jitgraph.records import dataclass


@dataclass(slots=True, eq=False)
class Point:
    """A statement at its place in the program; `last` is the position of its end, that of the statements inside
    counted.
    """

    stmt: Stmt
    first: int
    last: int = 0


@dataclass(slots=True, eq=False)
class Life:
    """A buffer's.

    Attributes:
        alloc, body: where it is made; None and the entry for memory that comes from outside.
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


def size_of(b: Buffer) -> DimLike:
    """Bytes of a dense buffer."""
    size: DimLike = b.dtype.itemsize
    for d in b.shape:
        size = size * d
    return size


def lifetimes(entry: list[Stmt], outside: Sequence[Buffer] = ()) -> tuple[list[Life], int]:
    """The lives of the scratch buffers of the entry and of buffers that come from `outside`, in the order in which they
    are made; the last position of the program.
    """
    lives = [Life(b, None, entry, size_of(b)) for b in outside]
    by_name = {life.buffer.name: life for life in lives}
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
            path.append(Point(stmt, at))
            if isinstance(stmt, Alloc) and stmt.scope == "scratch":
                life = by_name[stmt.buffer.name] = Life(stmt.buffer, stmt, body, size_of(stmt.buffer), at, at)
                life.depth = len(path) - 1
                lives.append(life)
            else:
                for name in names_of(stmt):
                    mention(name)
                if isinstance(stmt, Swap):
                    swaps.append((stmt.a.name, stmt.b.name))
                inner = bodies(stmt)
                if inner:
                    for b in inner:
                        visit(b)
                    at += 1
            path.pop().last = at

    visit(entry)
    for life in lives:
        if life.born is not None and life.dies is not None:
            life.first, life.last = life.born.first, life.dies.last
    _join_exchanged(swaps, by_name)
    return lives, at


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
