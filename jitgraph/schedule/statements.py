"""Statements rebuilt: every pass that copies or renames code does it here.

`Renaming` maps scalars to operands and symbols to dims; names that the copied code assigns itself can be made fresh, so
that a function may hold two copies of a body.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, Union, cast

from jitgraph.codegen.loops import (
    Address,
    Alloc,
    Bind,
    Buffer,
    CallKernel,
    Carry,
    Check,
    Const,
    DimValue,
    For,
    Free,
    Host,
    If,
    Let,
    Library,
    Load,
    Merge,
    Operand,
    Pair,
    Part,
    Reduce,
    SetResult,
    Split,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import assigned, bodies, walk
from jitgraph.ir.dims import DimLike, substitute, symbols
from jitgraph.records import dataclass, field

_Nested = TypeVar("_Nested", bound=Union[For, While, If, Reduce])


class Names:
    """Names of a function that nobody uses yet, and where they come from.

    Attributes:
        origin: what a loop's index was called where the loop was written: the user's loop, or the kernel.
        notes: what has been done to which loops, for `explain`.
    """

    def __init__(self, prefix: str = "w") -> None:
        self.prefix = prefix
        self.numbers = itertools.count(1)
        self.origin: dict[str, str] = {}
        self.notes: dict[tuple[str, tuple[str, ...]], None] = {}

    def note(self, what: str, *loops: str) -> None:
        """Record what was done to the loops with these indices."""
        self.notes[what, tuple(dict.fromkeys(self.origin.get(name, name) for name in loops))] = None

    def var(self, dtype: object) -> Var:
        return Var(f"{self.prefix}{next(self.numbers)}", dtype)  # type: ignore[arg-type]

    def symbol(self) -> str:
        return f"_{self.prefix}{next(self.numbers)}"

    def buffer(self, name: str) -> str:
        return f"{name}.{self.prefix}{next(self.numbers)}"


@dataclass(slots=True)
class Renaming:
    """What stands for what in rebuilt code.

    Attributes:
        vars: operand of each scalar by its name.
        dims: dim of each symbol.
        buffers: buffer name of each buffer by its name.
        names: where names come from for what the code assigns; None keeps its names.
    """

    vars: dict[str, Operand] = field(default_factory=dict)
    dims: dict[str, DimLike] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    names: Names | None = None
    _seen: dict[DimLike, DimLike] = field(default_factory=dict)

    def operand(self, x: Operand) -> Operand:
        return self.vars.get(x.name, x) if isinstance(x, Var) else x

    def pair(self, x: Operand | Pair) -> Operand | Pair:
        return Pair(self.operand(x.real), self.operand(x.imag)) if isinstance(x, Pair) else self.operand(x)

    def dim(self, d: DimLike) -> DimLike:
        if isinstance(d, int) or not self.dims:
            return d
        known = self._seen.get(d)
        if known is None:
            known = self._seen[d] = substitute(d, self.dims) if any(s in self.dims for s in symbols(d)) else d
        return known

    def set_dim(self, symbol: str, d: DimLike) -> None:
        self.dims[symbol] = d
        self._seen.clear()

    def forget_dim(self, symbol: str) -> None:
        if self.dims.pop(symbol, None) is not None:
            self._seen.clear()

    def index(self, index: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
        return tuple(map(self.dim, index))

    def buffer(self, b: Buffer) -> Buffer:
        other = self.buffers.get(b.name)
        if other is None and not self.dims:
            return b
        return Buffer(b.name if other is None else other.name, b.dtype, self.index(b.shape), self.index(b.strides))

    def define_buffer(self, b: Buffer) -> Buffer:
        """The buffer that is made under the name of `b`."""
        if self.names is not None:
            self.buffers[b.name] = Buffer(self.names.buffer(b.name), b.dtype, b.shape, b.strides)
        return self.buffer(b)

    def define(self, var: Var) -> Var:
        """The name that `var` is assigned under."""
        if self.names is None:
            return var
        fresh = self.names.var(var.dtype)
        self.vars[var.name] = fresh
        return fresh

    def define_symbol(self, symbol: str) -> str:
        if self.names is None:
            self.forget_dim(symbol)
            return symbol
        from jitgraph.ir.dims import symbol as dim_of

        fresh = self.names.symbol()
        self.names.origin[fresh] = self.names.origin.get(symbol, symbol)
        self.set_dim(symbol, dim_of(fresh))
        return fresh


def rebuilt(body: Iterable[Stmt], r: Renaming) -> list[Stmt]:
    """A copy of a body under a renaming."""
    return [_rebuild(s, r) for s in body]


def _rebuild(s: Stmt, r: Renaming) -> Stmt:
    return _REBUILD[type(s)](s, r)


def _let(s: Let, r: Renaming) -> Stmt:
    args = tuple(map(r.operand, s.args))
    return Let(r.define(s.var), s.op, args, s.attr)


def _dim_value(s: DimValue, r: Renaming) -> Stmt:
    d = r.dim(s.dim)
    return DimValue(r.define(s.var), d)


def _bind(s: Bind, r: Renaming) -> Stmt:
    value = r.operand(s.value)
    return Bind(r.define_symbol(s.symbol), value)


def _load(s: Load, r: Renaming) -> Stmt:
    buffer, index = r.buffer(s.buffer), r.index(s.index)
    return Load(r.define(s.var), buffer, index, None if s.imag is None else r.define(s.imag))


def _store(s: Store, r: Renaming) -> Stmt:
    imag = None if s.imag is None else r.operand(s.imag)
    return Store(r.buffer(s.buffer), r.index(s.index), r.operand(s.value), imag)


def _carries(carried: list[Carry], r: Renaming, body: Callable[[], object]) -> list[Carry]:
    """The carried list around what `body` rebuilds."""
    inits = [r.operand(c.init) for c in carried]
    inners = [r.define(c.inner) for c in carried]
    body()
    nexts = [r.operand(c.next) for c in carried]
    results = [r.define(c.result) for c in carried]
    return [Carry(*parts) for parts in zip(inners, inits, nexts, results, strict=True)]


def _for(s: For, r: Renaming) -> Stmt:
    lower, upper, step = r.dim(s.lower), r.dim(s.upper), r.dim(s.step)
    outside = r.dims.get(s.symbol)
    symbol = r.define_symbol(s.symbol)
    inner: list[Stmt] = []
    carried = _carries(s.carried, r, lambda: inner.extend(rebuilt(s.body, r)))
    if outside is not None:
        r.set_dim(s.symbol, outside)
    going = None if s.going is None else r.operand(s.going)
    return For(symbol, lower, upper, inner, step, s.role, carried, s.lanes, s.interleave, going, r.dim(s.streams))


def _while(s: While, r: Renaming) -> Stmt:
    test: list[Stmt] = []
    inner: list[Stmt] = []
    condition: list[Operand] = []

    def both() -> None:
        test.extend(rebuilt(s.test, r))
        condition.append(r.operand(s.condition))
        inner.extend(rebuilt(s.body, r))

    carried = _carries(s.carried, r, both)
    return While(test, condition[0], inner, carried)


def _if(s: If, r: Renaming) -> Stmt:
    condition = r.operand(s.condition)
    then = rebuilt(s.then, r)
    otherwise = rebuilt(s.otherwise, r)
    merges = [Merge(r.define(m.result), r.operand(m.then), r.operand(m.otherwise)) for m in s.merges]
    return If(condition, then, otherwise, merges, s.cold)


def _reduce(s: Reduce, r: Renaming) -> Stmt:
    extent = r.dim(s.extent)
    symbol = r.define_symbol(s.symbol)
    body = rebuilt(s.body, r)
    parts = [
        Part(
            r.define(p.result),
            p.kind,
            p.order,
            r.operand(p.value),
            None if p.init is None else r.operand(p.init),
            None if p.chunk is None else r.dim(p.chunk),
            None if p.period is None else r.dim(p.period),
            p.width,
            None if p.factor is None else r.operand(p.factor),
            p.model,
        )
        for p in s.parts
    ]
    return Reduce(symbol, extent, body, parts, s.lanes)


def _call(s: CallKernel, r: Renaming) -> Stmt:
    buffers, dims = tuple(map(r.buffer, s.buffers)), r.index(s.symbols)
    scalars = tuple(map(r.operand, s.scalars))
    split = s.split
    if split is not None:
        alone = None if split.alone is None else _for(split.alone, r)
        split = Split(split.unit, r.dim(split.cost), split.each, alone)  # type: ignore[arg-type]  # a `For`, as it was
    return CallKernel(s.name, buffers, dims, scalars, tuple(map(r.define, s.results)), split)


def _argument(x: Union[Operand, Address, DimLike], r: Renaming) -> Union[Operand, Address, DimLike]:
    if isinstance(x, Address):
        return Address(r.buffer(x.buffer), r.index(x.index))
    if isinstance(x, (Var, Const)):
        return r.operand(x)
    return r.dim(x)


def _library(s: Library, r: Renaming) -> Stmt:
    args = tuple(_argument(x, r) for x in s.args)
    return Library(s.name, args, None if s.result is None else r.define(s.result))


def _host(s: Host, r: Renaming) -> Stmt:
    inputs = tuple(r.buffer(x) if isinstance(x, Buffer) else r.pair(x) for x in s.inputs)
    offsets = r.index(s.offsets)

    def output(x: Buffer | Var | Pair) -> Buffer | Var | Pair:
        if isinstance(x, Buffer):
            return r.buffer(x)
        if isinstance(x, Pair):
            real, imag = x.real, x.imag
            assert isinstance(real, Var)
            assert isinstance(imag, Var)
            return Pair(r.define(real), r.define(imag))
        return r.define(x)

    return Host(s.site, inputs, tuple(map(output, s.outputs)), s.sizes, s.waiting, offsets)


def _result(s: SetResult, r: Renaming) -> Stmt:
    is_numpy = None if s.is_numpy is None else r.operand(s.is_numpy)
    return SetResult(s.slot, r.pair(s.value), is_numpy)


_REBUILD: dict[type, Callable[..., Stmt]] = {
    Let: _let, DimValue: _dim_value, Bind: _bind, Load: _load, Store: _store, For: _for, While: _while, If: _if,
    Reduce: _reduce, CallKernel: _call, Library: _library, Host: _host, SetResult: _result,
    Alloc: lambda s, r: Alloc(r.define_buffer(s.buffer), s.scope, r.dim(s.offset), s.slot),
    Free: lambda s, r: Free(r.buffer(s.buffer)),
    Swap: lambda s, r: Swap(r.buffer(s.a), r.buffer(s.b)),
    Check: lambda s, r: Check(r.operand(s.condition), s.site, tuple(map(r.operand, s.values))),
}  # fmt: skip


def with_bodies(s: _Nested, *made: list[Stmt], carried: list[Carry] | None = None) -> _Nested:
    """A loop or branch around other bodies, in the order of `bodies`; with what it carries unless told otherwise."""
    other: Stmt
    if isinstance(s, For):
        own = s.carried if carried is None else carried
        (body,) = made
        other = For(
            s.symbol, s.lower, s.upper, body, s.step, s.role, own, s.lanes, s.interleave, s.going, s.streams
        )  # fmt: skip
    elif isinstance(s, While):
        test, body = made
        other = While(test, s.condition, body, s.carried if carried is None else carried)
    elif isinstance(s, If):
        then, otherwise = made
        other = If(s.condition, then, otherwise, s.merges, s.cold)
    else:
        (body,) = made
        other = Reduce(s.symbol, s.extent, body, s.parts, s.lanes)
    return cast("_Nested", other)


def changed_inside(s: Stmt, change: Callable[[list[Stmt]], list[Stmt]], *, tests: bool = False) -> Stmt:
    """A statement around what `change` makes of the bodies that run turn by turn: those of serial loops, of whiles
    (with `tests` what computes their condition, too) and of branches. Cold arms and other statements stay as they are.
    """
    if isinstance(s, If):
        return with_bodies(s, change(s.then), s.otherwise if s.cold else change(s.otherwise))
    if isinstance(s, While):
        return with_bodies(s, change(s.test) if tests else s.test, change(s.body))
    if isinstance(s, For) and s.role == "serial":
        return with_bodies(s, change(s.body))
    return s


def size(body: Iterable[Stmt]) -> int:
    """Number of statements, nested ones included."""
    return sum(1 + sum(map(size, bodies(s))) for s in body)


def bound_in(body: list[Stmt]) -> set[str]:
    """Symbols that a body binds: loop indices and `Bind`s."""
    return {s.symbol for s in walk(body) if isinstance(s, (For, Reduce, Bind))}


def assigned_in(body: list[Stmt]) -> set[str]:
    """Names of all scalars that a body assigns, what its loops carry included."""
    found: set[str] = set()
    for s in walk(body):
        found.update(v.name for v in assigned(s))
        if isinstance(s, (For, While)):
            found.update(c.inner.name for c in s.carried)
    return found


def dims_of(s: Stmt) -> Iterator[DimLike]:
    """The dims that a statement itself mentions, those of its buffers included."""
    if isinstance(s, DimValue):
        yield s.dim
    elif isinstance(s, (Load, Store)):
        yield from s.index
        yield from s.buffer.strides
    elif isinstance(s, For):
        yield from (s.lower, s.upper, s.step, s.streams)
    elif isinstance(s, Reduce):
        yield s.extent
        yield from (p.chunk for p in s.parts if p.chunk is not None)
        yield from (p.period for p in s.parts if p.period is not None)
    elif isinstance(s, Alloc):
        yield s.offset
        yield from s.buffer.shape
        yield from s.buffer.strides
    elif isinstance(s, CallKernel):
        yield from s.symbols
        if s.split is not None:
            yield s.split.cost
    elif isinstance(s, Library):
        for x in s.args:
            if isinstance(x, Address):
                yield from x.index
                yield from x.buffer.strides
            elif not isinstance(x, (Var, Const)):
                yield x
    elif isinstance(s, Host):
        for y in (*s.inputs, *s.outputs):
            if isinstance(y, Buffer):
                yield from y.shape
                yield from y.strides
        yield from s.offsets
