"""Storages at the loop level: which values are versions of one storage, and which are computed in memory chosen for them.

A target is the memory that a later value wants to lie in: a result slot, or a buffer of a loop or branch. It is handed
upwards: the base of an update shares its memory, as does what a region carries where each turn yields a version of what
it was given. Sharing is sound since all versions of one storage share memory after `bufferize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, Union

from jitgraph.codegen.loops import Buffer
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.storage import UPDATES, storage_argument, storage_root

#: A result slot, or a buffer.
Target: TypeAlias = Union[int, Buffer]


def result_targets(graph: Graph, fresh: int) -> dict[Value, Target]:
    """The result slot of each value that may be computed in its memory."""
    wanted: dict[Value, Target] = {}
    for slot, value in enumerate(graph.body.terminator.operands[:fresh]):
        if value.type.kind == "array":
            wanted.setdefault(value, slot)
    targets: dict[Value, Target] = {}
    propagate_targets(graph.body, wanted, targets)
    return targets


def propagate_targets(block: Block, wanted: Mapping[Value, Target], targets: dict[Value, Target]) -> None:
    """Add `wanted` to `targets`, with what follows for the values of `block` and of the regions in it."""
    found = dict(wanted)
    if found:
        _visit(block, found)
    for value, target in found.items():
        targets.setdefault(value, target)


def _visit(block: Block, targets: dict[Value, Target]) -> None:
    for op in block.ops_back():
        if not any(r in targets for r in op.results):
            continue
        name = op.name
        if name in UPDATES:
            targets.setdefault(op.operands[UPDATES[name]], targets[op.result])
        elif name == "reshape":
            x = op.operands[0]
            if op.result.type.layout.is_c and x.type.layout.is_c and x.type.ndim and x.producer is not None:
                targets.setdefault(x, targets[op.result])
        elif name == "kernel":
            region = op.regions[0]
            for result, value in zip(op.results, region.terminator.operands, strict=True):
                base = storage_argument(value)
                if result in targets and base is not None and base.block is region:
                    targets.setdefault(op.operands[base.index], targets[result])
        elif name in ("for", "while"):
            body = op.regions[-1]
            for k, (result, value) in enumerate(zip(op.results, body.terminator.operands, strict=True)):
                if result in targets and storage_argument(value) is body.args[k]:
                    for shared in (value, body.args[k], op.operands[k]):
                        targets.setdefault(shared, targets[result])
            _visit(body, targets)
        elif name == "cond":
            _visit_cond(op, targets)


def _visit_cond(op: Op, targets: dict[Value, Target]) -> None:
    for k, result in enumerate(op.results):
        if result not in targets:
            continue
        values = [r.terminator.operands[k] for r in op.regions]
        roots = [storage_root(v) for v in values]
        if roots[0] is roots[1]:
            targets.setdefault(roots[0], targets[result])
            continue
        for region, value, root in zip(op.regions, values, roots, strict=True):
            inner = root.producer.block if root.producer is not None else root.block
            if inner is region:
                targets.setdefault(value, targets[result])
    for region in op.regions:
        _visit(region, targets)
