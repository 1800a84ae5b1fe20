"""Which buffers may begin in the memory of one that dies: a statement writes over what it reads for the last time.

That needs a proof from the indices alone: each element of the old buffer is read before the same bytes are written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from jitgraph.codegen.loops import Bind, Buffer, CallKernel, For, Function, If, Load, Reduce, Stmt, Store, While
from jitgraph.codegen.loops_walk import names_of, walk
from jitgraph.ir.dims import DimLike, as_symbol, parts_of, split_linear, substitute, symbol, symbols
from jitgraph.records import dataclass, field

#: Pairs of a load and a store beyond so many are not compared.
_PAIRS = 4096


def begins_in_place(stmt: Stmt, old: str, new: str, kernels: Mapping[str, Function]) -> bool:
    """Whether `stmt` may write the buffer `new` into the memory of `old`, at the same address.

    Each load of `old` has to come before each store to `new` that is at the same bytes. Two accesses are at the same
    bytes only if their indices are equal, since both see dense memory by the same strides. Where the indices pin all
    loops around both (equal indices mean the same turn), the order inside a turn decides; else the load has to stand
    in front of the outermost loop around the store. Of a call in pieces, equal indices have to mean the same piece.
    """
    found = _Accesses(kernels)
    found.visit([stmt], _Where({old}, {new}))
    if not found.sound or len(found.loads) * len(found.stores) > _PAIRS:
        return False
    return all(found.before(load, store) for load in found.loads for store in found.stores)


def is_copy(stmt: Stmt, old: str, new: str, kernels: Mapping[str, Function]) -> bool:
    """Whether `stmt` does nothing but store elements of `old` at the same places of `new`."""
    body: Sequence[Stmt] = kernels[stmt.name].body if isinstance(stmt, CallKernel) else [stmt]
    found = _Accesses(kernels)
    found.visit([stmt], _Where({old}, {new}))
    if not found.sound or len(found.loads) != 1 or len(found.stores) != 1:
        return False
    inside = [s for s in walk(list(body)) if not isinstance(s, For)]
    load, store = inside if len(inside) == 2 else (None, None)
    if not isinstance(load, Load) or not isinstance(store, Store):
        return False
    (read,), (write,) = found.loads, found.stores
    same = read.buffer == write.buffer and read.index == write.index
    return same and store.value == load.var and store.imag == load.imag


def stores_to(stmt: Stmt, name: str, kernels: Mapping[str, Function]) -> bool:
    """Whether a statement may write a buffer."""
    for s in walk([stmt]):
        if isinstance(s, Store):
            if s.buffer.name == name:
                return True
        elif isinstance(s, CallKernel):
            inner = zip(s.buffers, kernels[s.name].buffers, strict=True)
            names = [b.name for outer, b in inner if outer.name == name]
            if any(stores_to(x, b, kernels) for b in names for x in kernels[s.name].body):
                return True
        elif not isinstance(s, Load) and name in names_of(s):
            return True
    return False


def is_overwritten_by(stmt: Stmt, buffer: Buffer, kernels: Mapping[str, Function]) -> bool:
    """Whether a statement stores to each element of dense memory, and reads none of it.

    There has to be one store, whose indices are the indices of the loops around it, over all of the shape.
    """
    found = _Accesses(kernels)
    found.visit([stmt], _Where({buffer.name}, set()))
    if found.loads:
        return False
    found = _Accesses(kernels)
    found.visit([stmt], _Where((), {buffer.name}))
    if not found.sound or len(found.stores) != 1 or not _dense(buffer):
        return False
    (store,) = found.stores
    if not _dense(store.buffer) or elements(store.buffer) != elements(buffer) or store.buffer.dtype != buffer.dtype:
        return False
    if store.conditional or len(store.loops) != len(store.index):
        return False
    ranges = {loop.symbol: loop for loop in store.loops}
    for i, size in zip(store.index, store.buffer.shape, strict=True):
        loop = ranges.pop(as_symbol(i) or "", None)
        if loop is None or loop.lower != 0 or loop.upper != size or loop.step != 1:
            return False
    return True


def elements(b: Buffer) -> DimLike:
    """How many elements a buffer has."""
    count: DimLike = 1
    for d in b.shape:
        count = count * d
    return count


@dataclass(slots=True, eq=False)
class _Loop:
    """A loop around an access, over the symbols of the outermost function.

    Attributes:
        of: the call in pieces whose range it goes over.
    """

    symbol: str
    lower: DimLike
    upper: DimLike
    step: DimLike
    of: CallKernel | None


@dataclass(slots=True, eq=False)
class _Access:
    """A load or store: the place, the loops around it from the outermost, the calls in pieces around it, and whether
    it may be left out.
    """

    buffer: Buffer
    index: tuple[DimLike, ...]
    loops: tuple[_Loop, ...]
    split: tuple[CallKernel, ...]
    at: int
    conditional: bool


_Env: TypeAlias = Mapping[str, DimLike]


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a body stands.

    Attributes:
        old, new: what the buffers are called here.
        env: what symbols of this function are.
        loops, split: around it, see `_Access`.
        bounds: symbols of the range of the innermost call in pieces.
    """

    old: Collection[str]
    new: Collection[str]
    env: _Env = field(default_factory=dict)
    loops: tuple[_Loop, ...] = ()
    split: tuple[CallKernel, ...] = ()
    bounds: tuple[str, ...] = ()

    def names(self, name: str) -> bool:
        """Whether it is the name of one of the buffers."""
        return name in self.old or name in self.new


class _Accesses:
    """What a statement does to two buffers.

    Attributes:
        loads: of the old one.
        stores: to the new one.
        moving: symbols that the statement gives values: loop indices, integers that were read.
        sound: there is nothing else that might touch the old one's memory, or in an order that is not known.
    """

    def __init__(self, kernels: Mapping[str, Function]) -> None:
        self.kernels = kernels
        self.loads: list[_Access] = []
        self.stores: list[_Access] = []
        self.moving: set[str] = set()
        self.sound = True
        self.at = 0
        self.conditions = 0

    def visit(self, body: Sequence[Stmt], where: _Where) -> None:
        """Note the accesses of a body."""
        for s in body:
            self.at += 1
            if isinstance(s, (Load, Store)):
                self.access(s, where)
            elif isinstance(s, (For, Reduce)):
                self.sound &= not (isinstance(s, For) and s.role == "append")
                loop = self.loop(s, where)
                inner = replace(where, env={**where.env, s.symbol: symbol(loop.symbol)}, loops=(*where.loops, loop))
                ends = isinstance(s, For) and s.going is not None
                self.conditions += ends
                self.visit(s.body, inner)
                self.conditions -= ends
            elif isinstance(s, If):
                self.conditions += 1
                self.visit(s.then, where)
                self.visit(s.otherwise, where)
                self.conditions -= 1
            elif isinstance(s, While):
                self.sound &= not any(where.names(name) for x in walk([s]) for name in names_of(x))
                self.moving.update(x.symbol for x in walk([s]) if isinstance(x, (For, Reduce, Bind)))
            elif isinstance(s, Bind):
                self.moving.add(s.symbol)
            elif isinstance(s, CallKernel) and any(where.names(b.name) for b in s.buffers):
                self.call(s, where)
            else:
                self.sound &= not any(map(where.names, names_of(s)))

    def access(self, s: Load | Store, where: _Where) -> None:
        b = s.buffer
        if isinstance(s, Store) and b.name in where.old:
            self.sound = False
        elif b.name in (where.old if isinstance(s, Load) else where.new):
            shape, strides, index = (
                tuple(substitute(d, where.env) for d in ds) for ds in (b.shape, b.strides, s.index)
            )
            found = _Access(
                Buffer("", b.dtype, shape, strides), index, where.loops, where.split, self.at, self.conditions > 0
            )
            (self.loads if isinstance(s, Load) else self.stores).append(found)

    def loop(self, s: For | Reduce, where: _Where) -> _Loop:
        name = f"{s.symbol}.{self.at}"
        self.moving.add(name)
        if isinstance(s, Reduce):
            return _Loop(name, 0, substitute(s.extent, where.env), 1, None)
        pieces = bool(where.bounds) and (s.lower, s.upper) == tuple(map(symbol, where.bounds))
        lower, upper, step = (substitute(d, where.env) for d in (s.lower, s.upper, s.step))
        return _Loop(name, lower, upper, step, where.split[-1] if pieces else None)

    def call(self, s: CallKernel, where: _Where) -> None:
        k = self.kernels[s.name]
        names = list(zip(s.buffers, k.buffers, strict=True))
        olds, news = (
            {inner.name for outer, inner in names if outer.name in outside} for outside in (where.old, where.new)
        )
        inside = {name: substitute(d, where.env) for name, d in zip(k.symbols, s.symbols, strict=True)}
        inner = _Where(olds, news, inside, where.loops, where.split)
        if s.split is not None:
            inner = replace(inner, split=(*where.split, s), bounds=tuple(k.symbols[-2:]))
        self.visit(k.body, inner)

    # --- proofs -------------------------------------------------------------------------------------------------------

    def before(self, load: _Access, store: _Access) -> bool:
        """Whether the load of an element comes before the store to it."""
        if load.at > store.at:
            return False
        common = [a for a, b in zip(load.loops, store.loops, strict=False) if a is b]
        pieces = [s for s in load.split if s in store.split]
        if not common and not pieces:
            return True
        old, new = load.buffer, store.buffer
        alike = old.strides == new.strides and old.shape == new.shape and old.dtype.itemsize == new.dtype.itemsize
        if not alike or not _dense(old):
            return False
        pinned = {self._pinned(i) for i, j in zip(load.index, store.index, strict=True) if i == j}
        for k in range(len(common) - 1, -1, -1):  # outwards: a strip's index says which tile it is of
            if common[k].symbol in pinned:
                continue
            if not any(_is_strip(c, common[k]) for c in common[k + 1 :] if c.symbol in pinned):
                return False
            pinned.add(common[k].symbol)
        return all(self._same_piece(s, load, store) for s in pieces)

    def _same_piece(self, call: CallKernel, load: _Access, store: _Access) -> bool:
        """Whether accesses of one element are in the same piece of a call."""
        a = next((x for x in load.loops if x.of is call), None)
        b = next((x for x in store.loops if x.of is call), None)
        if a is None or b is None:
            return False
        return a is b or any(
            self._pinned(i) == a.symbol and substitute(i, {a.symbol: symbol(b.symbol)}) == j
            for i, j in zip(load.index, store.index, strict=True)
        )

    def _pinned(self, index: DimLike) -> str:
        """The loop whose turn a value of `index` names, if there is one."""
        names = [s for s in symbols(index) if s in self.moving]
        split = split_linear(index, names[0]) if len(names) == 1 else None
        return names[0] if split is not None and split[0] in (1, -1) else ""


def _is_strip(inner: _Loop, tile: _Loop) -> bool:
    """Whether the loop `inner` goes over the elements of one turn of `tile`: from its index to at most the next."""
    end = symbol(tile.symbol) + tile.step
    return inner.lower == symbol(tile.symbol) and end in (inner.upper, *parts_of(inner.upper, "min"))


def _dense(b: Buffer) -> bool:
    """Whether each index names an element of its own: no gaps, in any order of the axes."""
    axes = list(range(len(b.shape)))
    reach: DimLike = b.dtype.itemsize
    while axes:
        following = next((k for k in axes if b.strides[k] == reach), None)
        if following is None:
            return False
        axes.remove(following)
        reach = reach * b.shape[following]
    return True
