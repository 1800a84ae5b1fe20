"""Operands of ops that have loops of their own are computed in these loops.

`compress`, `packed_sum`, `argmax`, `argmin` and scatters read each element once, at the index at hand, but belong to no
group of `fuse`. Elementwise operations that only such an op needs are taken into a kernel with it; those that others
need too are computed twice if they are cheap, as a mask is (`x[x > 0]` counts, then selects): that is less than
storing them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import erase_unused
from jitgraph.ir.storage import UPDATES, storage_root
from jitgraph.passes.fuse_access import is_free

HOSTS = frozenset(["compress", "packed_sum", "argmax", "argmin", "scatter", "scatter_add"])
#: Operations that are rather computed twice than stored.
MAX_COPIED = 8


def absorb(graph: Graph) -> bool:
    """Make kernels of ops in `HOSTS` with what computes their operands; True if one was made."""
    changed = False
    for block in list(graph.blocks()):
        if block.parent is None or block.parent.name != "kernel":
            for op in list(block.ops()):
                if op.name in HOSTS:
                    changed |= _Host(graph, op).run()
    return changed


class _Host:
    def __init__(self, graph: Graph, op: Op) -> None:
        self.graph, self.op = graph, op
        self.inside: set[Op] = {op}
        #: The storage that the op updates.
        self.written: Value | None = None
        self.region = Block()
        self.operands: dict[Value, Value] = {}
        self.copies: dict[Op, Op] = {}

    def run(self) -> bool:
        op = self.op
        at = UPDATES.get(op.name)
        if at is not None:
            base = op.operands[at]
            if base.producer is not None and is_free(base.producer):
                return False
            self.written = storage_root(base)
            if self.reads_what_is_written([v for k, v in enumerate(op.operands) if k != at]):
                return False
        for k, value in enumerate(op.operands):
            if k != at:
                self.gather(value)
        if len(self.inside) == 1:
            return False
        made = [self.resolved(v) for v in op.operands]
        inner = Op(op.defn, made, [r.type for r in op.results], dict(op.attrs), (), op.loc)
        self.region.append(inner)
        self.region.append(Op(REGISTRY["yield"], inner.results, ()))
        b = Builder(self.graph).ahead_of(op)
        types = [r.type for r in op.results]
        kernel = b.emit(REGISTRY["kernel"], list(self.operands), types, {"rows": 0}, (self.region,))
        producers = [v.producer for v in op.operands]
        self.graph.replace(op, kernel.results)
        for p in producers:
            if p is not None:
                erase_unused(self.graph, p)
        return True

    def gather(self, value: Value) -> None:
        """Decide which of the ops behind `value` to take in."""
        copied = 0
        stack = [value]
        while stack:
            v = stack.pop()
            p = v.producer
            if p is None or p in self.inside or not v.type.ndim or p.block is not self.op.block:
                continue
            if is_free(p):
                stack.extend(p.operands)
                continue
            if not p.defn.has(Trait.ELEMENTWISE) or p.defn.lower is None or v.type.shape != value.type.shape:
                continue
            if self.written is not None and (p.defn.ulp or self.reads_what_is_written(p.operands)):
                continue  # in a loop that goes one by one, or while elements change
            if not all(user in self.inside for user in v.users()):
                copied += 1
                if p.defn.ulp or copied > MAX_COPIED:
                    continue
            self.inside.add(p)
            stack.extend(p.operands)

    def reads_what_is_written(self, values: Sequence[Value]) -> bool:
        for v in values:
            while v.producer is not None and v.producer.name in ("view", "reshape"):
                v = v.producer.operands[0]
            if storage_root(v) is self.written:
                return True
        return False

    def resolved(self, value: Value) -> Value:
        """What stands for `value` in the region: a copy of an op that was taken in or is free, or an argument."""
        p = value.producer
        if p is None or (p not in self.inside and not (is_free(p) and self.stands_on_taken(p))):
            known = self.operands.get(value)
            if known is None:
                known = self.operands[value] = self.region.add_arg(value.type, value.name)
            return known
        copy = self.copies.get(p)
        if copy is None:
            made = [self.resolved(v) for v in p.operands]
            copy = Op(p.defn, made, [r.type for r in p.results], dict(p.attrs), (), p.loc)
            copy.result.name = value.name
            self.copies[p] = self.region.append(copy)
        return copy.results[value.index]

    def stands_on_taken(self, op: Op) -> bool:
        """Is a free op one of numbers, or a view of something that is taken in? Other views stay outside: they are
        memory, and the kernel reads that.
        """
        if not op.operands:
            return True
        return any(
            v.producer is not None
            and (v.producer in self.inside or (is_free(v.producer) and self.stands_on_taken(v.producer)))
            for v in op.operands
        )
