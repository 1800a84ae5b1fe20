"""Nests whose innermost axis is short, such as the three channels of a picture.

A vector loop of three turns leaves most lanes idle. The two innermost axes together are one gapless run in what is
stored; whatever is read along one of them alone is spread out first, block by block, into a row buffer that lies as
the run does:

    for block in range(0, n, BLOCK):
        for p in range(rows of the block): spread[p * k + lane] = x[block + p] in all lanes, behind k of them in vain
        for q in range(rows * k) vector: out[block * k + q] = f(in[block * k + q], spread[q])

Sizes are symbols: whether such a nest is worth its code is judged by the sizes of the first call (hints), and at run
time a branch on the size chooses between it and the plain one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgraph import dtypes
from jitgraph.codegen.loops import Buffer, Const, DimValue, For, If, Let, Load, Operand, Stmt, Store, Var
from jitgraph.codegen.lower_nest import Access, Axis, accesses_of, contiguous, nest
from jitgraph.codegen.lower_scalar import Frame
from jitgraph.ir.dims import DimLike, dim_min, evaluate, substitute, symbol, symbols
from jitgraph.records import dataclass

if TYPE_CHECKING:
    from jitgraph.codegen.lower_kernel import Group

#: Bytes of the lanes of a vector loop; an axis of fewer elements is short.
VECTOR_BYTES = 64
#: Rows that are spread at a time.
BLOCK = 128


def is_short(group: Group, size: DimLike, limit: int) -> bool:
    """Whether an axis had more than one element, but fewer than `limit`, when the function was captured."""
    if isinstance(size, int):
        return 1 < size < limit
    known = group.low.graph.symbols
    env: dict[str, int] = {}
    for name in symbols(size):
        found = known.get(name)
        if found is None or found.hint is None:
            return False
        env[name] = found.hint
    return 1 < evaluate(size, env) < limit


def short_nest(group: Group, axes: list[Axis], body: list[Stmt]) -> list[Stmt] | None:
    """The nest over merged `axes` that is fast where the last one is short, and the plain one; None: there is none."""
    if len(axes) < 2 or not all(isinstance(s, (Let, Load, Store, DimValue)) for s in body):
        return None
    widest = max(_itemsize(s) for s in body)
    lanes = VECTOR_BYTES // widest
    outer, inner = axes[-2:]
    if not is_short(group, inner.size, lanes):
        return None
    opaque: set[str] = set()
    names = {outer.symbol: None, inner.symbol: None}
    accesses = list(accesses_of(body, names, opaque))
    if outer.symbol in opaque or inner.symbol in opaque or not all(_fits(a, outer, inner) for a in accesses):
        return None
    spread = [a for a in accesses if a.position and len(a.position) == 1]
    stored = {a.stmt.buffer.name for a in accesses if isinstance(a.stmt, Store)}
    if any(a.stmt.buffer.name in stored for a in spread):
        return None
    flat = _Flat(group, outer, inner, lanes).nest(body, {id(a.stmt): a for a in accesses})
    for axis in reversed(axes[:-2]):
        flat = [For(axis.symbol, 0, axis.size, flat)]
    if isinstance(inner.size, int):
        return flat
    frame = group.frame
    before, frame.body = frame.body, []
    few = short_test(group, inner.size, lanes)
    test, frame.body = frame.body, before
    return [*test, If(few, flat, nest(axes, body))]


def short_test(group: Group, size: DimLike, limit: int) -> Var:
    """Emit size < limit."""
    frame = group.frame
    length, few = frame.var(dtypes.I64), frame.var(dtypes.BOOL)
    frame.body += [DimValue(length, size), Let(few, "cmp", (length, Const(limit, dtypes.I64)), "lt")]
    return few


def _itemsize(s: Stmt) -> int:
    if isinstance(s, (Load, Store)):
        return dtypes.part_of(s.buffer.dtype).itemsize
    assert isinstance(s, (Let, DimValue))
    return s.var.dtype.itemsize


def _fits(access: Access, outer: Axis, inner: Axis) -> bool:
    """Whether the run is gapless here, or read along one of its axes only."""
    if len(access.position) == 2:
        return contiguous(access, outer, inner)
    return isinstance(access.stmt, Load)


@dataclass(slots=True)
class _Flat:
    group: Group
    outer: Axis
    inner: Axis
    lanes: int

    @property
    def frame(self) -> Frame:
        return self.group.frame

    def buffer(self, like: Buffer, size: int) -> Buffer:
        made = self.group.low.new_buffer(like.dtype, (size,), (0,))
        self.group.low.row_buffers.append(made)
        return self.frame.buffer(made)

    def nest(self, body: list[Stmt], accesses: dict[int, Access]) -> list[Stmt]:
        frame, k = self.frame, self.inner.size
        block, row, turn = frame.index(), frame.index(), frame.index()
        rows = dim_min(BLOCK, self.outer.size - symbol(block))
        before: list[Stmt] = []
        spreads: list[Stmt] = []
        inside: list[Stmt] = []
        renamed: dict[Var, Operand] = {}
        run = symbol(turn) + symbol(block) * k
        made: dict[tuple[str, tuple[DimLike, ...]], Buffer] = {}
        for s in body:
            if isinstance(s, Let):
                args = tuple([renamed.get(x, x) if isinstance(x, Var) else x for x in s.args])
                inside.append(Let(self._renamed(s.var, renamed), s.op, args, s.attr))
                continue
            if isinstance(s, DimValue):
                inside.append(DimValue(self._renamed(s.var, renamed), s.dim))
                continue
            assert isinstance(s, (Load, Store))
            access = accesses[id(s)]
            buffer, index = s.buffer, s.index
            if len(access.position) == 2:
                buffer, index = self._merged(access, run)
            elif access.position and isinstance(s, Load):
                key = (s.buffer.name, s.index)
                found = made.get(key)
                if found is None:
                    found = made[key] = self.buffer(s.buffer, (BLOCK + 1) * self.lanes)
                    if self.outer.symbol in access.position:
                        spreads += self._spread(s, {self.outer.symbol: symbol(block) + symbol(row)}, found, row)
                    else:
                        before += self._repeated(s, found)
                buffer, index = found, (symbol(turn),)
            if isinstance(s, Load):
                imag = None if s.imag is None else self._renamed(s.imag, renamed)
                inside.append(Load(self._renamed(s.var, renamed), buffer, index, imag))
            else:
                value, other = (renamed.get(x, x) if isinstance(x, Var) else x for x in (s.value, s.imag))
                assert value is not None
                inside.append(Store(buffer, index, value, other))
        blocks: list[Stmt] = [For(row, 0, rows, spreads)] if spreads else []
        blocks.append(For(turn, 0, rows * k, inside, role="vector"))
        return [*before, For(block, 0, self.outer.size, blocks, BLOCK)]

    def _renamed(self, var: Var, renamed: dict[Var, Operand]) -> Var:
        made = self.frame.var(var.dtype)
        renamed[var] = made
        return made

    def _merged(self, access: Access, run: DimLike) -> tuple[Buffer, tuple[DimLike, ...]]:
        """The access with its two axes as one, at the element `run` of it."""
        buffer, k = access.stmt.buffer, self.inner.size
        p, q = access.position[self.outer.symbol], access.position[self.inner.symbol]
        shape, strides, index = list(buffer.shape), list(buffer.strides), list(access.stmt.index)
        index[q] = run + access.plain[p][1] * k
        shape[q] = shape[p] * shape[q]
        for items in (shape, strides, index):
            del items[p]
        return Buffer(buffer.name, buffer.dtype, tuple(shape), tuple(strides)), tuple(index)

    def _spread(self, s: Load, env: dict[str, DimLike], into: Buffer, row: str) -> list[Stmt]:
        """into[row * k :] = the element, as many times as there are lanes; the next row overwrites what is too much."""
        frame = self.frame
        value, lane = frame.var(s.var.dtype), frame.index()
        imag = None if s.imag is None else frame.var(s.imag.dtype)
        at = tuple([substitute(d, env) for d in s.index])
        store = Store(into, (symbol(row) * self.inner.size + symbol(lane),), value, imag)
        return [Load(value, s.buffer, at, imag), For(lane, 0, self.lanes, [store], role="vector", lanes=self.lanes)]

    def _repeated(self, s: Load, into: Buffer) -> list[Stmt]:
        """into = the k elements over and over."""
        frame, k = self.frame, self.inner.size
        once = self.buffer(s.buffer, self.lanes)
        at, row, lane = frame.index(), frame.index(), frame.index()
        value, again = frame.var(s.var.dtype), frame.var(s.var.dtype)
        imag, again_imag = (None, None) if s.imag is None else (frame.var(s.imag.dtype), frame.var(s.imag.dtype))
        index = tuple([substitute(d, {self.inner.symbol: symbol(at)}) for d in s.index])
        first: list[Stmt] = [Load(value, s.buffer, index, imag), Store(once, (symbol(at),), value, imag)]
        copy = For(at, 0, k, first, role="vector")
        store = Store(into, (symbol(row) * k + symbol(lane),), again, again_imag)
        more: list[Stmt] = [Load(again, once, (symbol(lane),), again_imag), store]
        spread = For(lane, 0, self.lanes, more, role="vector", lanes=self.lanes)
        return [copy, For(row, 0, dim_min(BLOCK, self.outer.size), [spread])]
