"""Reductions of whole arrays as reductions of pieces, which threads may share.

A sum of floats is cut at the nodes of NumPy's pairwise tree: `2 ** LEVELS` subtrees are summed on their own, and their
sums added as the tree adds them. Extremes, integer sums and positions, whose order does not matter, are cut at the same
places; a position needs the extreme of its piece beside it. The cut depends on the size alone, so bits do not depend on
the number of threads. Small arrays are one piece, by the same code.

Left alone: what ends early (`any`, `all`), goes element by element, or adds chunk after chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    Buffer,
    CallKernel,
    Const,
    DimValue,
    For,
    Function,
    If,
    Let,
    Load,
    Merge,
    Operand,
    Part,
    Reduce,
    Stmt,
    Store,
    Var,
)
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import DimLike, substitute, symbol, symbols
from jitgraph.schedule.outline import outlined
from jitgraph.schedule.statements import Names, Renaming, rebuilt
from jitgraph.schedule.work import work_of

#: Elements from which on an array is cut, and how often it is halved.
LARGE, LEVELS = 1 << 16, 5
PIECES = 1 << LEVELS


def in_pieces(kernels: Sequence[Function], names: Names) -> tuple[list[Function], dict[str, DimLike]]:
    """Kernels with their reductions in pieces, and the functions of a piece in front of them; the work of each loop
    over pieces, by its index.
    """
    work: dict[str, DimLike] = {}
    made: list[Function] = []
    for k in kernels:
        body: list[Stmt] = []
        for s in k.body:
            if isinstance(s, Reduce) and _fits(s):
                body += _pieces(s, names, work, made, k.origin)
            else:
                body.append(s)
        made.append(k if len(body) == len(k.body) else replace(k, body=body))
    return made, work


def _fits(s: Reduce) -> bool:
    if isinstance(s.extent, int) and s.extent < LARGE:
        return False
    if not any(isinstance(x, Store) for x in walk(s.body)) and all(p.kind in ("any", "all") for p in s.parts):
        return False
    widths = {p.width for p in s.parts if p.order == "pairwise"}
    return len(widths) <= 1 and all(
        p.chunk is None and p.period is None and p.order in ("pairwise", "free") for p in s.parts
    )


class _Maker:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.out: list[Stmt] = []

    def let(self, op: str, *args: Operand, attr: str = "", dtype: np.dtype | None = None) -> Var:
        var = self.names.var(args[-1].dtype if dtype is None else dtype)
        self.out.append(Let(var, op, args, attr))
        return var

    def value(self, d: DimLike) -> Var:
        var = self.names.var(dtypes.I64)
        self.out.append(DimValue(var, d))
        return var

    def bind(self, value: Operand) -> str:
        name = self.names.symbol()
        self.out.append(Bind(name, value))
        return name


def _number(value: int) -> Const:
    return Const(value, dtypes.I64)


def _pieces(
    s: Reduce, names: Names, work: dict[str, DimLike], functions: list[Function], origin: list[str]
) -> list[Stmt]:
    """`s` as calls of a function that reduces a stretch: of the whole array, or where it is large of each piece."""
    m = _Maker(names)
    width = next((p.width for p in s.parts if p.order == "pairwise"), 8)
    first, count, index = names.symbol(), names.symbol(), names.symbol()
    parts = [replace(p, result=names.var(p.result.dtype), init=None if _adds(p) else p.init) for p in s.parts]
    # the stretch of `count` elements from `first` on
    r = Renaming()
    r.set_dim(s.symbol, symbol(index) + symbol(first))
    reduction = Reduce(index, symbol(count), rebuilt(s.body, r), parts, s.lanes)
    function, call = outlined(names.buffer("stretch"), [reduction], origin)
    function.results = [p.result for p in parts]
    functions.append(function)

    def called(at: DimLike, size: DimLike) -> tuple[CallKernel, list[Var]]:
        env = {first: at, count: size}
        results = tuple([names.var(p.result.dtype) for p in parts])
        return replace(call, symbols=tuple([substitute(d, env) for d in call.symbols]), results=results), list(results)

    size = m.value(s.extent)
    large = m.let("cmp", size, _number(LARGE), attr="ge", dtype=dtypes.BOOL)
    alone, whole = called(0, s.extent)
    # pieces
    split, turn = _Maker(names), _Maker(names)
    buffers = [_row(names, p.result.dtype) for p in parts]
    best: dict[int, Buffer] = {}
    node = names.symbol()
    start, length = _descend(turn, node, size, width)
    piece, given = called(symbol(turn.bind(start)), symbol(turn.bind(length)))
    turn.out.append(piece)
    for k, (p, buffer, var) in enumerate(zip(parts, buffers, given, strict=True)):
        value = var
        if p.kind in ("argmax", "argmin"):  # what is at the position found
            value = turn.let("add", var, start)
            at = Renaming(names=names)
            at.set_dim(s.symbol, symbol(turn.bind(value)))
            turn.out += rebuilt([x for x in s.body if not isinstance(x, Store)], at)
            best[k] = _row(names, p.value.dtype)
            turn.out.append(Store(best[k], (symbol(node),), at.operand(p.value)))
        turn.out.append(Store(buffer, (symbol(node),), value))
    work[node] = work_of([s])
    split.out += [Alloc(b, "row") for b in (*buffers, *best.values())]
    split.out.append(For(node, 0, PIECES, turn.out, role="parallel"))
    values: list[Var] = []
    for k, (p, buffer) in enumerate(zip(parts, buffers, strict=True)):
        values.append(_add_up(split, buffer) if p.order == "pairwise" else _gather(split, buffer, best.get(k), p))
    merges = []
    after: list[Stmt] = []
    for p, x, y in zip(s.parts, values, whole, strict=True):
        if p.init is None or not _adds(p):
            merges.append(Merge(p.result, x, y))
        else:
            merges.append(Merge(names.var(p.result.dtype), x, y))
            after.append(Let(p.result, "add" if p.kind == "sum" else "mul", (p.init, merges[-1].result)))
    return [*m.out, If(large, split.out, [alone], merges), *after]


def _adds(p: Part) -> bool:
    """Whether a value that is put in twice counts twice."""
    return p.kind in ("sum", "prod") and p.value.dtype.kind != "b"


def _row(names: Names, dtype: np.dtype) -> Buffer:
    return Buffer(names.buffer("pieces"), dtype, (PIECES,), (dtype.itemsize,))


def _descend(m: _Maker, node: str, size: Var, width: int) -> tuple[Operand, Operand]:
    """First element and size of a node of the tree: its number's bits say left or right, the highest first."""
    number = m.value(symbol(node))
    start: Operand = _number(0)
    length: Operand = size
    for level in range(LEVELS):
        bit = m.let("and_", m.let("shr", number, _number(LEVELS - 1 - level)), _number(1))
        right = m.let("cmp", bit, _number(0), attr="ne", dtype=dtypes.BOOL)
        half = m.let("and_", m.let("shr", length, _number(1)), _number(-width))
        start = m.let("select", right, m.let("add", start, half), start)
        length = m.let("select", right, m.let("sub", length, half), half)
    return start, length


def _add_up(m: _Maker, partial: Buffer) -> Var:
    """The sums of the nodes, level by level."""
    names = m.names
    for level in range(LEVELS):
        at = symbol(names.symbol())
        (node,) = symbols(at)
        a, b, total = (names.var(partial.dtype) for _ in range(3))
        body: list[Stmt] = [Load(a, partial, (2 * at,)), Load(b, partial, (2 * at + 1,)), Let(total, "add", (a, b))]
        m.out.append(For(node, 0, PIECES >> (level + 1), [*body, Store(partial, (at,), total)]))
    found = names.var(partial.dtype)
    m.out.append(Load(found, partial, (0,)))
    return found


def _gather(m: _Maker, partial: Buffer, best: Buffer | None, p: Part) -> Var:
    """What the pieces gave, reduced; of positions that of the piece with the first best value."""
    names = m.names
    index = names.symbol()
    value, result = names.var((best or partial).dtype), names.var(partial.dtype)
    load = Load(value, best or partial, (symbol(index),))
    m.out.append(Reduce(index, PIECES, [load], [replace(p, result=result, value=value)]))
    if best is None:
        return result
    found = names.var(partial.dtype)
    m.out.append(Load(found, partial, (symbol(m.bind(result)),)))
    return found
