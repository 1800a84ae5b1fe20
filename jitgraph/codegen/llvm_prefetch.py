"""Loops inside of lanes: what the next lanes will need is brought to the caches while these run.

    for i in range(n) vector:
        for k in range(q): ... a[i, k] ...      and a hint for a[i + lanes, ...]

Each lane walks along a row of its own, so that a loop has as many streams as lanes times arrays, each of a few cache
lines only: the machine's own prefetcher, which follows a few long streams, sees none of them. A hint never faults, so
it may point past the end. A recurrence along rows of 100 elements, in arrays of 3 MB, becomes twice as quick.

Where rows lie next to one another the next lanes' elements are one piece of memory, which is asked for line by line
from its begin. Elsewhere turn t asks for line t // 8 of an eighth of the lanes (of 8 bytes each).
"""

from __future__ import annotations

from jitgraph.codegen.assembler import V
from jitgraph.codegen.llvm_function import I64, FunctionEmitter
from jitgraph.codegen.loops import For, Load, Store
from jitgraph.ir.dims import DimLike, split_linear

#: Bytes of a cache line.
_LINE = 64


def prefetch_next(f: FunctionEmitter, s: For, at: V, lower: V) -> None:
    """Hints for what the lanes behind these load and store in turn `at` of the serial loop `s`."""
    if s.step not in (1, -1):
        return
    turn: V | None = None
    seen: set[tuple[str, DimLike]] = set()
    for access in s.body:
        if not isinstance(access, (Load, Store)):
            continue
        offset = f.offset(access.buffer, access.index)
        found = _walks(f, s, offset, access.buffer.dtype.itemsize)
        if found is None:
            continue
        step, rest, way = found
        key = access.buffer.name, rest if isinstance(rest, int) else rest - rest.constant
        if key in seen:  # a neighbour: mostly of the same line
            continue
        seen.add(key)
        if turn is None:
            turn = f.a.sub(at, lower) if s.step == 1 else f.a.sub(lower, at)
        _hint(f, s, access, step, way, turn)


def _walks(f: FunctionEmitter, s: For, offset: DimLike, size: int) -> tuple[DimLike, DimLike, int] | None:
    """Bytes from lane to lane, what does not depend on lane or turn, and the way in which a lane walks along its row
    element by element; None for other accesses.
    """
    split = split_linear(offset, f.index)
    if split is None or split[0] in (0, size, -size) or f.varies(split[0]) or f.varies(split[1]):
        return None
    inner = split_linear(split[1], s.symbol)
    if inner is None or inner[0] not in (size, -size):
        return None
    assert isinstance(s.step, int)
    return split[0], inner[1], s.step if inner[0] == size else -s.step


def _hint(f: FunctionEmitter, s: For, access: Load | Store, step: DimLike, way: int, turn: V) -> None:
    a, size = f.a, access.buffer.dtype.itemsize
    turns = _LINE // size  # in which a lane uses up a line
    each = max(1, f.lanes // turns)  # lines that a turn asks for
    gap = step - (s.upper - s.lower) * (size if s.step == 1 else -size)
    near = isinstance(gap, int) and gap <= _LINE

    def distance() -> V:
        """From the first lane's element in this turn to the first line that the turn asks for."""
        if near:
            first = f.dim(step * (f.lanes if way > 0 else 2 * f.lanes - 1))
            return a.add(first, a.mul(turn, V(str(way * size * (f.lanes - 1)), I64)))
        line = a.mul(a.udiv(turn, V(str(turns), I64)), V(str(way * _LINE), I64))
        lane = a.mul(a.and_(turn, V(str(turns - 1), I64)), V(str(each), I64))
        lanes = a.mul(a.add(lane, V(str(f.lanes), I64)), f.dim(step))
        return a.sub(a.add(line, lanes), a.mul(turn, V(str(way * size), I64)))

    key = ("prefetch", step, way, size, turn.text)
    pointer = f.pointer(access.buffer, f.offset(access.buffer, access.index))
    place = a.gep(pointer, f.here(key, distance), "i8")
    write = V("1" if isinstance(access, Store) else "0", "i32")
    for k in range(each):
        line = a.gep(place, V(str(way * _LINE * k), I64) if near else f.dim(step * k), "i8")
        a.call_void("llvm.prefetch.p0", [line, write, V("3", "i32"), V("1", "i32")])
