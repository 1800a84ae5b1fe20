"""The small operand of an update is copied, so that the whole update can be in place.

    path[:] = minimum(path, path[:, k, newaxis] + path[k])

reads, beside the element it writes, a row and a column of what it writes. NumPy computes the whole right-hand side
first, and so would two kernels with an array between them. But what is smaller by an axis is cheap to copy: then all
that is read of the storage is the element that is written at the same index, and `fuse` makes one kernel of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.storage import WRITES, target_of
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.passes.fuse_access import Access, access, domain_of, harmless, inputs_of, is_free


def snapshot(graph: Graph) -> bool:
    """Copy small views of what writes overwrite, where all else they read is harmless; True if one was copied."""
    changed = False
    for block in list(graph.blocks()):
        if block.parent is None or block.parent.name != "kernel":
            for op in list(block.ops()):
                if op.name in WRITES:
                    changed |= _mend(graph, op)
    return changed


def _mend(graph: Graph, write: Op) -> bool:
    domain = domain_of(write)
    value, base = write.operands
    if domain is None or value.type.shape != domain:
        return False
    storage = access(base, base.type.shape).base
    space, target = target_of(write)
    small: dict[Op, list[int]] = {}
    for op, i in _reads(write, domain):
        found = access(op.operands[i], domain)
        if found.base is not storage or harmless(found, space, target, graph.facts):
            continue
        if found.opaque or op is write or op.operands[i].type.ndim == 0 or not _is_smaller(found, domain):
            return False
        small.setdefault(op, []).append(i)
    copies: dict[Value, Value] = {}
    for op in _in_order(small, write):  # the first reader of a view has its copy made
        for i in small[op]:
            old = op.operands[i]
            copied = copies.get(old)
            if copied is None:
                copied = copies[old] = _copy(Builder(graph).ahead_of(op), old)
            op.set_operand(i, copied)
    return bool(small)


def _in_order(ops: Collection[Op], last: Op) -> list[Op]:
    """Ops of one block in their order; the last of them is `last` or in front of it."""
    found: list[Op] = []
    at: Op | None = last
    while at is not None and len(found) < len(ops):
        if at in ops:
            found.append(at)
        at = at.prev
    return found[::-1]


def _reads(write: Op, domain: Shape) -> Iterator[tuple[Op, int]]:
    """The operands read over the domain by the elementwise ops that compute what is written, and by the write."""
    stack, met = [write], {write}
    while stack:
        op = stack.pop()
        inputs = inputs_of(op)
        for i, value in enumerate(op.operands):
            if value not in inputs:
                continue
            yield op, i
            p = value.producer
            if p is None or p in met or p.block is not write.block or is_free(p):
                continue
            if p.defn.has(Trait.ELEMENTWISE) and p.defn.lower is not None and domain_of(p) == domain:
                met.add(p)
                stack.append(p)


def _is_smaller(found: Access, domain: Shape) -> bool:
    """Is what is read the same all along some axis of the domain?"""
    return found.map is not None and any(d != 1 for d in _unnamed(found.map))


def _unnamed(m: IndexMap) -> list[DimLike]:
    """Sizes of the axes of a view along which it repeats."""
    named = {a.axis for a in m.axes}
    return [d for k, d in enumerate(m.shape) if k not in named]


def _copy(b: Builder, value: Value) -> Value:
    """A copy of a view, without the axes along which it repeats."""
    found = access(value, value.type.shape)
    m = found.map
    reason = f"a part of {found.base.name or 'an array'} that the statement overwrites is read for all its elements"
    attrs = {"order": "C", "reason": reason}
    if m is None or found.opaque or all(d == 1 for d in _unnamed(m)):
        return b.emit(REGISTRY["copy"], (value,), (value.type.with_shape(value.type.shape),), attrs).result
    named = {a.axis for a in m.axes}
    shape = tuple(d if k in named else 1 for k, d in enumerate(m.shape))
    row = b.view(found.base, map=IndexMap(shape, m.axes))
    copied = b.emit(REGISTRY["copy"], (row,), (row.type.with_shape(shape),), attrs).result
    back = tuple(AxisMap(0, 1, k) if k in named else AxisMap(0) for k in range(len(shape)))
    spread: Value = b.view(copied, map=IndexMap(m.shape, back))
    return spread
