"""Walks over loop programs: what a body holds, which scalars differ between lanes, which buffers a loop exchanges."""

from __future__ import annotations

from collections.abc import Iterator

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Address,
    Alloc,
    Bind,
    Buffer,
    CallKernel,
    Check,
    Const,
    DimValue,
    For,
    Host,
    If,
    Let,
    Library,
    Load,
    Operand,
    Pair,
    Reduce,
    SetResult,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from jitgraph.ir.dims import DimLike, symbols
from jitgraph.records import dataclass, field


def bodies(s: Stmt) -> tuple[list[Stmt], ...]:
    """The lists of statements inside a statement."""
    if isinstance(s, (For, Reduce)):
        return (s.body,)
    if isinstance(s, While):
        return s.test, s.body
    if isinstance(s, If):
        return s.then, s.otherwise
    return ()


def walk(body: list[Stmt]) -> Iterator[Stmt]:
    """All statements, those inside another behind it."""
    for s in body:
        yield s
        for inner in bodies(s):
            yield from walk(inner)


def buffers_of(stmt: Stmt) -> Iterator[Buffer]:
    """The buffers that a statement itself reads or writes."""
    if isinstance(stmt, (Load, Store)):
        yield stmt.buffer
    elif isinstance(stmt, CallKernel):
        yield from stmt.buffers
    elif isinstance(stmt, Library):
        yield from (a.buffer for a in stmt.args if isinstance(a, Address))
    elif isinstance(stmt, Host):
        yield from (b for b in (*stmt.inputs, *stmt.outputs) if isinstance(b, Buffer))
    elif isinstance(stmt, Swap):
        yield from (stmt.a, stmt.b)


def names_of(stmt: Stmt) -> Iterator[str]:
    """Names of the buffers that a statement itself reads or writes."""
    yield from (b.name for b in buffers_of(stmt))


def assigned(s: Stmt) -> Iterator[Var]:
    """The scalars that a statement itself assigns for the statements behind it."""
    if isinstance(s, (Let, DimValue)):
        yield s.var
    elif isinstance(s, Load):
        yield s.var
        if s.imag is not None:
            yield s.imag
    elif isinstance(s, (For, While)):
        yield from (c.result for c in s.carried)
    elif isinstance(s, If):
        yield from (m.result for m in s.merges)
    elif isinstance(s, Reduce):
        yield from (p.result for p in s.parts)
    elif isinstance(s, CallKernel):
        yield from s.results
    elif isinstance(s, Library):
        if s.result is not None:
            yield s.result
    elif isinstance(s, Host):
        for x in s.outputs:
            if isinstance(x, Pair):
                yield from (v for v in (x.real, x.imag) if isinstance(v, Var))
            elif isinstance(x, Var):
                yield x


def read(s: Stmt) -> Iterator[Operand]:
    """The operands that a statement itself reads, without those of the statements inside it (but with what loops
    carry and branches merge).
    """
    if isinstance(s, Let):
        yield from s.args
    elif isinstance(s, Bind):
        yield s.value
    elif isinstance(s, Store):
        yield s.value
        if s.imag is not None:
            yield s.imag
    elif isinstance(s, (For, While)):
        for c in s.carried:
            yield c.init
            yield c.next
        if isinstance(s, While):
            yield s.condition
        elif s.going is not None:
            yield s.going
    elif isinstance(s, If):
        yield s.condition
        for m in s.merges:
            yield m.then
            yield m.otherwise
    elif isinstance(s, Reduce):
        for p in s.parts:
            yield p.value
            if p.init is not None:
                yield p.init
            if p.factor is not None:
                yield p.factor
    elif isinstance(s, Check):
        yield s.condition
        yield from s.values
    elif isinstance(s, CallKernel):
        yield from s.scalars
    elif isinstance(s, Library):
        yield from (x for x in s.args if isinstance(x, (Var, Const)))
    elif isinstance(s, Host):
        for x in s.inputs:
            if isinstance(x, Pair):
                yield x.real
                yield x.imag
            elif not isinstance(x, Buffer):
                yield x
    elif isinstance(s, SetResult):
        if isinstance(s.value, Pair):
            yield s.value.real
            yield s.value.imag
        else:
            yield s.value
        if s.is_numpy is not None:
            yield s.is_numpy


@dataclass(slots=True)
class Summary:
    """What a body holds, nested statements included."""

    statements: int = 0
    calls: int = 0  # of vector or libm functions
    itemsize: int = 1  # of the widest scalar or element
    nested: bool = False  # loops or branches
    checks: bool = False
    stored: set[str] = field(default_factory=set)  # names of buffers


def summarize(body: list[Stmt], into: Summary | None = None) -> Summary:
    total = into if into is not None else Summary()
    for s in body:
        total.statements += 1
        kind = type(s)
        if kind is Let:
            assert isinstance(s, Let)
            total.itemsize = max(total.itemsize, s.var.dtype.itemsize)
            total.calls += s.op in ("call", "frem")
        elif kind is Load or kind is Store:
            assert isinstance(s, (Load, Store))
            total.itemsize = max(total.itemsize, dtypes.part_of(s.buffer.dtype).itemsize)
            if isinstance(s, Store):
                total.stored.add(s.buffer.name)
        elif kind is DimValue:
            total.itemsize = 8
        elif kind is Check:
            total.checks = True
        else:
            inner = bodies(s)
            if inner:
                total.nested = True
                for b in inner:
                    summarize(b, total)
    return total


def swapped(function_body: list[Stmt]) -> dict[int, frozenset[str]]:
    """Names of the buffers that each loop (by `id`) exchanges, under 0 those of the whole body; empty without any."""
    found: dict[int, frozenset[str]] = {}

    def visit(body: list[Stmt]) -> set[str]:
        names: set[str] = set()
        for s in body:
            if isinstance(s, Swap):
                names |= {s.a.name, s.b.name}
            else:
                inner: set[str] = set()
                for b in bodies(s):
                    inner |= visit(b)
                if inner:
                    found[id(s)] = frozenset(inner)
                    names |= inner
        return names

    total = visit(function_body)
    if total:
        found[0] = frozenset(total)
    return found


def has_swaps(body: list[Stmt]) -> bool:
    return any(isinstance(s, Swap) for s in walk(body))


def varying(index: str, body: list[Stmt]) -> frozenset[str]:
    """Names of the scalars in the body of a vector loop over `index` that may differ between lanes.

    A carried scalar varies if its first or a later value does, or if the lanes leave its loop at different turns.
    """
    scalars: set[str] = set()
    indices = {index}

    def of(x: Operand | Const) -> bool:
        return isinstance(x, Var) and x.name in scalars

    def of_dims(*ds: DimLike) -> bool:
        return any(name in indices for d in ds for name in symbols(d))

    def visit(statements: list[Stmt]) -> None:
        for s in statements:
            if isinstance(s, Let):
                if any(of(x) for x in s.args):
                    scalars.add(s.var.name)
            elif isinstance(s, DimValue):
                if of_dims(s.dim):
                    scalars.add(s.var.name)
            elif isinstance(s, Load):
                if of_dims(*s.index):
                    scalars.add(s.var.name)
                    if s.imag is not None:
                        scalars.add(s.imag.name)
            elif isinstance(s, Bind):
                if of(s.value):
                    indices.add(s.symbol)
            elif isinstance(s, If):
                visit(s.then)
                visit(s.otherwise)
                split = of(s.condition)
                for m in s.merges:
                    if split or of(m.then) or of(m.otherwise):
                        scalars.add(m.result.name)
            elif isinstance(s, Reduce):
                visit(s.body)
                scalars.update(p.result.name for p in s.parts if of(p.value) or (p.factor is not None and of(p.factor)))
            elif isinstance(s, (For, While)):
                _visit_loop(s)

    def _visit_loop(s: For | While) -> None:
        while True:
            size = len(scalars) + len(indices)
            if isinstance(s, For):
                apart = of_dims(s.lower, s.upper, s.step)
                if of_dims(s.lower, s.step):
                    indices.add(s.symbol)
            else:
                visit(s.test)
                apart = of(s.condition)
            for c in s.carried:
                if apart or of(c.init) or of(c.next):
                    scalars.update((c.inner.name, c.result.name))
            visit(s.body)
            if len(scalars) + len(indices) == size:
                return

    visit(body)
    return frozenset(scalars)


def hosts(body: list[Stmt]) -> Iterator[Host]:
    return (s for s in walk(body) if isinstance(s, Host))


def called(body: list[Stmt]) -> Iterator[str]:
    """Names of the kernels that a body calls."""
    return (s.name for s in walk(body) if isinstance(s, CallKernel))


__all__ = [
    "Alloc", "Library", "Summary", "assigned", "bodies", "called", "has_swaps", "hosts", "names_of", "read",
    "summarize", "swapped", "varying", "walk",
]  # fmt: skip
