"""Which elements two accesses may share: buffers by name, indices by proof."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from jitgraph.codegen.loops import (
    Alloc,
    Buffer,
    For,
    Free,
    Load,
    Reduce,
    Stmt,
    Store,
)
from jitgraph.codegen.loops_walk import bodies, names_of, walk
from jitgraph.ir.dims import DimLike, Facts, split_linear, symbols
from jitgraph.schedule.simplify import index_bounds

#: An element as a statement names it: the buffer as it is seen, and the index.
Place: TypeAlias = tuple[Buffer, tuple[DimLike, ...]]


def place_of(s: Load | Store) -> Place:
    return s.buffer, s.index


def dense(b: Buffer) -> bool:
    """Whether each index in range names an element of its own: the axes follow each other gapless, in any order."""
    expected: DimLike = b.dtype.itemsize
    left = [k for k, d in enumerate(b.shape) if d != 1]
    while left:
        k = next((k for k in reversed(left) if b.strides[k] == expected), None)
        if k is None:
            return False
        left.remove(k)
        expected = expected * b.shape[k]
    return True


def apart(a: Place, b: Place, facts: Facts) -> bool:
    """Whether two places are proven to be different elements, whatever the symbols are within the facts."""
    if a[0].name != b[0].name:
        return True
    if a[0] != b[0] or not dense(a[0]):
        return False
    return any(facts.is_ne(i, j) for i, j in zip(a[1], b[1], strict=True))


def side_by_side(body: list[Stmt], lane: str) -> tuple[int, int]:
    """How many indices that change with the lane step from one element of memory to the next, and how many do not."""
    near = far = 0
    for s in walk(body):
        if isinstance(s, (Load, Store)):
            for d, stride in zip(s.index, s.buffer.strides, strict=True):
                if lane in symbols(d):
                    split = split_linear(d, lane)
                    plain = split is not None and split[0] == 1 and stride == s.buffer.dtype.itemsize
                    near, far = near + plain, far + (not plain)
    return near, far


def touched(s: Stmt) -> Iterator[str]:
    """Names of the buffers that a statement itself may read or write in a way that has no single place."""
    if isinstance(s, (Alloc, Free)):
        yield s.buffer.name
    elif not isinstance(s, (Load, Store)):
        yield from names_of(s)


def accesses(body: list[Stmt], facts: Facts) -> Iterator[Load | Store]:
    """All loads and stores of a body; the ranges of the loops inside are recorded in `facts` on the way.

    That these loops have turns is not: it holds for their own accesses only.
    """
    for s in body:
        if isinstance(s, (Load, Store)):
            yield s
            continue
        if isinstance(s, For):
            index_bounds(facts, s.symbol, s.lower, s.upper, s.step)
        elif isinstance(s, Reduce):
            index_bounds(facts, s.symbol, 0, s.extent, 1)
        for inner in bodies(s):
            yield from accesses(inner, facts)
