"""Statements made a function of their own, with the call that stands in their place."""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph.codegen.loops import (
    Alloc,
    Buffer,
    CallKernel,
    Free,
    Function,
    Stmt,
    Var,
)
from jitgraph.codegen.loops_walk import buffers_of, read, walk
from jitgraph.codegen.lower_views import free_symbols
from jitgraph.ir.dims import symbol
from jitgraph.schedule.statements import assigned_in


def outlined(name: str, body: list[Stmt], origin: Sequence[str] = ()) -> tuple[Function, CallKernel]:
    """A function that does what stands in `body`, which nothing behind it reads a scalar of, and its call."""
    buffers: dict[str, Buffer] = {}
    scalars: dict[str, Var] = {}
    own = assigned_in(body)
    local = {s.buffer.name for s in walk(body) if isinstance(s, Alloc)}
    for s in walk(body):
        for b in [s.buffer] if isinstance(s, Free) else buffers_of(s):
            if b.name not in local:
                buffers.setdefault(b.name, b)
        scalars.update((x.name, x) for x in read(s) if isinstance(x, Var) and x.name not in own)
    names = free_symbols(body, buffers.values())
    function = Function(name, list(buffers.values()), names, list(scalars.values()), body, [], list(origin))
    call = CallKernel(name, tuple(buffers.values()), tuple(map(symbol, names)), tuple(scalars.values()))
    return function, call
