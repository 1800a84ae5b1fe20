"""Where temporaries lie: offsets in one arena, or the heap for sizes that only the run knows.

Lowering leaves an `Alloc(scratch)` where a temporary begins to live. Here each gets the first free stretch of the
arena that fits, in the order of the program (stretches are free behind the last use); sizes over symbols that
`prepare` does not know go to the heap, freed behind their last use, unless a bound of the symbol makes them known.
"""

from __future__ import annotations

from collections.abc import Collection

from jitgraph.codegen.loops import (
    Address,
    Alloc,
    Buffer,
    CallKernel,
    Free,
    Host,
    Library,
    Load,
    Stmt,
    Store,
    Swap,
)
from jitgraph.codegen.loops_walk import bodies
from jitgraph.ir.dims import DimLike, Facts, floordiv, split_linear, substitute, symbols
from jitgraph.records import dataclass

ALIGNMENT = 64


@dataclass(slots=True, eq=False)
class _Life:
    alloc: Alloc
    body: list[Stmt]
    first: int
    last: int
    size: DimLike


@dataclass(slots=True)
class _Stretch:
    offset: DimLike
    size: DimLike
    free_from: int


def plan_memory(entry: list[Stmt], known: Collection[str], facts: Facts) -> DimLike:
    """Give each scratch allocation of the entry its offset (or the heap); the bytes of the arena.

    Args:
        known: symbols whose value `prepare` knows.
    """
    lives: list[_Life] = []
    by_name: dict[str, _Life] = {}
    swaps: list[tuple[str, str]] = []
    _measure(entry, lives, by_name, swaps)
    _join_lives(swaps, by_name)
    arena: list[_Stretch] = []
    total: DimLike = 0
    heap: list[_Life] = []
    for life in sorted(lives, key=lambda found: found.first):
        size = _known_size(life.size, known, facts)
        if size is None:
            life.alloc.scope = "heap"
            heap.append(life)
            continue
        size = _rounded(size)
        found = next((s for s in arena if s.free_from <= life.first and _fits(size, s.size)), None)
        if found is None:
            found = _Stretch(total, size, 0)
            arena.append(found)
            total = total + size
        found.free_from = life.last + 1
        life.alloc.offset = found.offset
    for life in heap:
        _free(life)
    return total


def _join_lives(swaps: list[tuple[str, str]], by_name: dict[str, _Life]) -> None:
    """Buffers that exchange their memory live as long as any of them."""
    changed = bool(swaps)
    while changed:
        changed = False
        for names in swaps:
            lives = [by_name[n] for n in names if n in by_name]
            first, last = min((x.first for x in lives), default=0), max((x.last for x in lives), default=0)
            for x in lives:
                changed |= (x.first, x.last) != (first, last)
                x.first, x.last = first, last


def _fits(size: DimLike, stretch: DimLike) -> bool:
    return size == stretch or (isinstance(size, int) and isinstance(stretch, int) and size <= stretch)


def _rounded(size: DimLike) -> DimLike:
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return floordiv(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT


def _known_size(size: DimLike, known: Collection[str], facts: Facts) -> DimLike | None:
    """The size, or an upper bound of it, over known symbols."""
    for _ in range(8):
        unknown = next((s for s in symbols(size) if s not in known), None)
        if unknown is None:
            return size
        upper = facts.upper.get(unknown)
        split = split_linear(size, unknown)
        if upper is None or split is None or not facts.is_le(0, split[0]):
            return None
        size = substitute(size, {unknown: upper})
    return None


def _measure(entry: list[Stmt], lives: list[_Life], by_name: dict[str, _Life], swaps: list[tuple[str, str]]) -> None:
    """First and last position of each scratch buffer.

    A use inside a loop lasts until the end of that loop if the buffer was made outside of it.
    """
    at = 0
    depth_of: dict[str, int] = {}

    def visit(body: list[Stmt], depth: int) -> dict[str, None]:
        """Names used in the body that were made outside of it."""
        nonlocal at
        outer: dict[str, None] = {}
        for stmt in body:
            at += 1
            if isinstance(stmt, Alloc) and stmt.scope == "scratch":
                b = stmt.buffer
                size: DimLike = b.dtype.itemsize
                for d in b.shape:
                    size = size * d
                life = by_name[b.name] = _Life(stmt, body, at, at, size)
                depth_of[b.name] = depth
                lives.append(life)
                continue
            for name in _names(stmt):
                found = by_name.get(name)
                if found is not None:
                    found.last = at
                    if depth_of[name] < depth:
                        outer[name] = None
            if isinstance(stmt, Swap):
                swaps.append((stmt.a.name, stmt.b.name))
            inner_bodies = bodies(stmt)
            if inner_bodies:
                used: dict[str, None] = {}
                for inner in inner_bodies:
                    used.update(visit(inner, depth + 1))
                at += 1
                for name in used:
                    by_name[name].last = at
                    if depth_of[name] < depth:
                        outer[name] = None
        return outer

    visit(entry, 0)


def _names(stmt: Stmt) -> list[str]:
    if isinstance(stmt, (Load, Store)):
        return [stmt.buffer.name]
    if isinstance(stmt, CallKernel):
        return [b.name for b in stmt.buffers]
    if isinstance(stmt, Library):
        return [a.buffer.name for a in stmt.args if isinstance(a, Address)]
    if isinstance(stmt, Host):
        return [b.name for b in (*stmt.inputs, *stmt.outputs) if isinstance(b, Buffer)]
    if isinstance(stmt, Swap):
        return [stmt.a.name, stmt.b.name]
    return []


def _free(life: _Life) -> None:
    """Free a heap buffer behind the last statement of its body that mentions it."""
    name = life.alloc.buffer.name
    last = max(k for k, s in enumerate(life.body) if s is life.alloc or _mentions(s, name))
    life.body.insert(last + 1, Free(life.alloc.buffer))


def _mentions(stmt: Stmt, name: str) -> bool:
    return name in _names(stmt) or any(_mentions(s, name) for body in bodies(stmt) for s in body)
