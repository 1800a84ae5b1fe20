"""Nests whose stores may pass the caches by, where the arrays are larger than these (`For.streams`).

A store that goes through the caches reads the line first; one that does not saves that, a quarter of what `a*x + y`
moves. It pays only where memory is what a loop waits for, and where what it moves does not fit the last cache: this the
run decides, from the bytes noted here. It needs whole lines one after the other, so all stores must be vectors along
the innermost loop, to buffers that the kernel neither reads (their lines are in the cache anyway, or should be) nor
makes for itself. Bits are not concerned.
"""

from __future__ import annotations

from dataclasses import replace

from jitgraph.codegen.loops import Alloc, DimValue, For, Let, Load, Program, Stmt, Store
from jitgraph.codegen.loops_walk import bodies, walk
from jitgraph.ir.dims import DimLike, split_linear, symbols

#: Cycles that a vector's load or store takes from memory, about; a loop that computes longer does not wait for memory.
_CYCLES = 4
_SLOW = {"fdiv": 10, "sqrt": 12, "idiv": 40, "irem": 40, "frem": 100, "call": 100}
#: Fewer turns of the innermost loop than this are not worth another version of it.
_LEAST = 256


def streams(p: Program) -> Program:
    """The program with the nests of its kernels marked that may stream."""
    kernels = []
    for k in p.kernels:
        body = _marked(k.body, (), {s.buffer.name for s in walk(k.body) if isinstance(s, (Load, Alloc))})
        kernels.append(k if body is None else replace(k, body=body))
    return replace(p, kernels=kernels)


def _marked(body: list[Stmt], around: tuple[For, ...], read: set[str]) -> list[Stmt] | None:
    """The body with its marked loops; None if there are none.

    Args:
        read: names of the buffers to which stores do not stream.
    """
    found: list[Stmt] = []
    changed = False
    for s in body:
        if isinstance(s, For) and s.role != "append" and not s.carried and s.going is None:
            nest = (*around, s)
            if s.role == "vector":
                moved = _bytes_moved(nest, read)
                if moved != 0:
                    s, changed = replace(s, streams=moved), True
            elif sum(bool(bodies(x)) for x in s.body) == 1:  # of two, one waits less for memory
                inner = _marked(s.body, nest, read)
                if inner is not None:
                    s, changed = replace(s, body=inner), True
        found.append(s)
    return found if changed else None


def _bytes_moved(nest: tuple[For, ...], read: set[str]) -> DimLike:
    """The bytes of all arrays that a nest goes over, 0 if it may not stream."""
    loop = nest[-1]
    trips = {s.symbol: s.upper - s.lower for s in nest if s.step == 1}
    if len(trips) < len(nest) or any(name in trips for d in trips.values() for name in symbols(d)):
        return 0
    count = trips[loop.symbol]
    if (isinstance(count, int) and count < _LEAST) or loop.interleave > 1:
        return 0
    cycles = 0
    sizes: dict[str, DimLike] = {}
    written: set[str] = set()
    for s in loop.body:
        if isinstance(s, Let):
            cycles += _SLOW.get(s.op, 1)
        elif isinstance(s, (Load, Store)):
            step = _step(s, loop.symbol)
            size = s.buffer.dtype.itemsize
            if step is None or step not in ((size,) if isinstance(s, Store) else (0, size, -size)):
                return 0
            if isinstance(s, Store):
                written.add(s.buffer.name)
            if step == 0 or s.buffer.name in sizes:
                continue
            total: DimLike = size
            used = {name for d in s.index for name in symbols(d)}
            for name, trip in trips.items():
                if name in used:
                    total = total * trip
            sizes[s.buffer.name] = total
        elif not isinstance(s, DimValue):
            return 0
    if not written or not read.isdisjoint(written) or cycles > _CYCLES * len(sizes):
        return 0
    moved: DimLike = 0
    for total in sizes.values():
        moved = moved + total
    return moved


def _step(s: Load | Store, symbol: str) -> int | None:
    """The bytes from one lane's element to the next; None if they are no constant."""
    total: DimLike = 0
    for d, stride in zip(s.index, s.buffer.strides, strict=True):
        total = total + d * stride
    if symbol not in symbols(total):
        return 0
    split = split_linear(total, symbol)
    return split[0] if split is not None and isinstance(split[0], int) else None
