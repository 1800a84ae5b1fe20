"""What nobody reads is dropped: scalars, symbols, branches and loops without effect, buffers that are only written."""

from __future__ import annotations

from collections.abc import Iterable

from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    CallKernel,
    Check,
    DimValue,
    For,
    Free,
    If,
    Let,
    Load,
    Operand,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import bodies, read, walk
from jitgraph.ir.dims import symbols
from jitgraph.schedule.memory import touched
from jitgraph.schedule.statements import dims_of, with_bodies


def without_unused(body: list[Stmt], needed: Iterable[Operand] = ()) -> list[Stmt]:
    """A body without the scalars and buffers that nobody reads (`needed`: what is read behind it)."""
    body = _without_buffers(body, _unread(body))
    used = {x.name for x in needed if isinstance(x, Var)}
    names: set[str] = set()
    return _sweep(body, used, names)


def _sweep(body: list[Stmt], used: set[str], names: set[str]) -> list[Stmt]:
    """Backwards: `used` and `names` hold the scalars and symbols that what comes later reads."""
    kept: list[Stmt] = []
    for s in reversed(body):
        if isinstance(s, (Let, DimValue)) and s.var.name not in used:
            continue
        if isinstance(s, Load) and s.var.name not in used and (s.imag is None or s.imag.name not in used):
            continue
        if isinstance(s, Bind) and s.symbol not in names:
            continue
        if isinstance(s, (For, While)):
            s = _sweep_loop(s, used, names)
            if isinstance(s, For) and not s.body and not s.carried:
                continue
        elif isinstance(s, If):
            merges = [m for m in s.merges if m.result.name in used]
            used |= {x.name for m in merges for x in (m.then, m.otherwise) if isinstance(x, Var)}
            then, otherwise = _sweep(s.then, used, names), _sweep(s.otherwise, used, names)
            if not (then or otherwise or merges):
                continue
            s = If(s.condition, then, otherwise, merges, s.cold)
        elif isinstance(s, Reduce):
            parts = [p for p in s.parts if p.result.name in used]
            if not parts and not any(isinstance(x, (Store, Check, CallKernel)) for x in walk(s.body)):
                continue
            parts = parts or s.parts[:1]  # its body does something else, too
            used |= {x.name for p in parts for x in (p.value, p.factor) if isinstance(x, Var)}
            s = Reduce(s.symbol, s.extent, _sweep(s.body, used, names), parts, s.lanes)
        used |= {x.name for x in read(s) if isinstance(x, Var)}
        for d in dims_of(s):
            names.update(symbols(d))
        kept.append(s)
    kept.reverse()
    return kept


def _sweep_loop(s: For | While, used: set[str], names: set[str]) -> For | While:
    """A loop without what it carries for nobody: what is read in the body or behind the loop is kept.

    What a sweep with fewer carried values finds to be used is used with more of them, too: all sweeps share the sets.
    """
    kept = {c.inner.name for c in s.carried if c.result.name in used}
    while True:
        carried = [c for c in s.carried if c.inner.name in kept]
        used |= {c.next.name for c in carried if isinstance(c.next, Var)}
        body = _sweep(s.body, used, names)
        if isinstance(s, While):
            used |= {s.condition.name} if isinstance(s.condition, Var) else set()
            test = _sweep(s.test, used, names)
        more = {c.inner.name for c in s.carried if c.inner.name in used}
        if more <= kept:
            break
        kept |= more
    if isinstance(s, While):
        return with_bodies(s, test, body, carried=carried)
    return with_bodies(s, body, carried=carried)


def _unread(body: list[Stmt]) -> set[str]:
    """Buffers that are made in the body and only stored to."""
    made: set[str] = set()
    read_from: set[str] = set()
    for s in walk(body):
        if isinstance(s, Alloc):
            if s.scope != "result":
                made.add(s.buffer.name)
        elif isinstance(s, Load):
            read_from.add(s.buffer.name)
        elif not isinstance(s, (Store, Free)):
            read_from.update(touched(s))
    return made - read_from


def _without_buffers(body: list[Stmt], names: set[str]) -> list[Stmt]:
    if not names:
        return body
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, (Alloc, Free, Store)) and s.buffer.name in names:
            continue
        made = s
        if isinstance(s, (For, While, If, Reduce)):
            made = with_bodies(s, *(_without_buffers(inner, names) for inner in bodies(s)))
        out.append(made)
    return out
