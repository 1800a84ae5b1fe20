"""Arrays of which a loop needs the last few rows only are rings of these rows, and stay in the first caches.

    for x: {t[x] = f(a[x]); b[x - 2] = g(t[x - 2], t[x])}      t has 4 rows: row r lies in row r mod 4

Legal where all accesses stand in loops of one list of statements, each at a row that is the loop's index plus a
constant, and rows are stored in rising order: a row is lost when the one that many rows later is stored, and nothing
reads it then. Rows that were never stored hold nothing that a program may rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jitgraph.codegen.loops import Alloc, Buffer, DimValue, For, Free, Let, Load, Stmt, Store
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import DimLike, mod, symbol, symbols
from jitgraph.schedule.memory import touched
from jitgraph.schedule.statements import changed_inside, with_bodies

#: Rows of a ring; more are an array like another.
MOST = 8


def rings(body: list[Stmt]) -> list[Stmt]:
    """A body whose temporaries have as many rows as are needed at a time."""
    return _contracted([changed_inside(s, rings) for s in body])


def _contracted(body: list[Stmt]) -> list[Stmt]:
    made = {
        s.buffer.name: s.buffer for s in body if isinstance(s, Alloc) and s.scope != "result" and _by_rows(s.buffer)
    }
    sizes = {name: rows for name, b in made.items() if (rows := _rows_needed(b, body)) is not None}
    if not sizes:
        return body

    def ring(b: Buffer) -> Buffer:
        return Buffer(b.name, b.dtype, (sizes[b.name], *b.shape[1:]), b.strides)

    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Alloc) and s.buffer.name in sizes:
            out.append(Alloc(ring(s.buffer), s.scope, s.offset, s.slot))
        elif isinstance(s, Free) and s.buffer.name in sizes:
            out.append(Free(ring(s.buffer)))
        else:
            out.append(_moved(s, sizes, ring))
    return out


def _by_rows(b: Buffer) -> bool:
    """Whether an array has rows that lie one behind the other."""
    expected: DimLike = b.dtype.itemsize
    for d, stride in zip(reversed(b.shape), reversed(b.strides), strict=True):
        if stride != expected:
            return False
        expected = expected * d
    return len(b.shape) > 1


def _rows_needed(b: Buffer, body: Sequence[Stmt]) -> int | None:
    """How many rows of an array are needed at a time, as a power of two; None: too many, or that is not known."""
    newest: DimLike | None = None
    window = 0
    for s in body:
        if isinstance(s, (Alloc, Free)):
            continue
        stored: set[int] = set()
        loaded: set[int] = set()
        for x in walk([s]):
            if isinstance(x, (Load, Store)):
                if x.buffer.name == b.name:
                    row = _row(x, b, s)
                    if row is None:
                        return None
                    (stored if isinstance(x, Store) else loaded).add(row)
            elif b.name in touched(x):
                return None
        if not (stored or loaded):
            continue
        assert isinstance(s, For)
        if len(stored) > 1:
            return None
        for last in stored:
            ahead = 1 if newest is None else s.lower + last - newest
            if not isinstance(ahead, int) or ahead < 1 or any(row > last for row in loaded):
                return None
            newest = s.upper - 1 + last
            window = max([window, *(last - row for row in loaded)])
        if not stored:
            if newest is None:
                return None
            for row in loaded:
                behind = newest - (s.lower + row)
                if not isinstance(behind, int):
                    return None
                window = max(window, behind)
    rows = 1 << window.bit_length()
    known = b.shape[0]
    return rows if newest is not None and rows <= MOST and not (isinstance(known, int) and known <= rows) else None


def _row(x: Load | Store, b: Buffer, s: Stmt) -> int | None:
    """The row of an access in a statement of the list, seen from the index of that loop."""
    if not isinstance(s, For) or s.role != "serial" or s.step != 1 or s.carried:
        return None
    if not all(isinstance(y, (Let, DimValue, Load, Store, For)) for y in walk(s.body)):
        return None
    if len(x.index) < 2 or x.buffer.strides[0] != b.strides[0]:
        return None
    row = x.index[0] - symbol(s.symbol)
    if not isinstance(row, int) or any(s.symbol in symbols(d) for d in x.index[1:]):
        return None
    return row


def _moved(s: Stmt, sizes: Mapping[str, int], ring: Callable[[Buffer], Buffer]) -> Stmt:
    """A statement that finds the rows in their rings."""
    if isinstance(s, For):
        if not any(isinstance(x, (Load, Store)) and x.buffer.name in sizes for x in walk(s.body)):
            return s
        return with_bodies(s, [_moved(x, sizes, ring) for x in s.body])
    if isinstance(s, (Load, Store)) and s.buffer.name in sizes:
        index = (mod(s.index[0], sizes[s.buffer.name]), *s.index[1:])
        if isinstance(s, Load):
            return Load(s.var, ring(s.buffer), index, s.imag)
        return Store(ring(s.buffer), index, s.value, s.imag)
    return s
