"""Storages at the loop level: which values are versions of one storage, and which are computed in memory chosen for
them.

A target is the memory that a later value wants to lie in: a result slot, or a buffer of a loop or branch. It is
handed upwards: the base of an update shares its memory, as does what a region carries where each turn yields a
version of what it was given. Sharing is sound since all versions of one storage share memory after `bufferize`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

from jitgraph.codegen.loops import Buffer
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, Trait
from jitgraph.ir.storage import UPDATES, storage_argument, storage_root

#: Ops in a kernel that take a pass of their own.
_PASSES = frozenset(
    [*UPDATES, "argmax", "argmin", "cumsum", "cumprod", "fold", "scan", "reduceat", "concatenate", "matmul"]
)
#: Ops that compute a result into memory of its own.
_FRESH = frozenset(["matmul", "copy", "concatenate", "cumsum", "cumprod", "scan", "take", "compress"])
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
            fresh = []
            for result, value in zip(op.results, region.terminator.operands, strict=True):
                base = storage_argument(value)
                if result in targets and base is not None and base.block is region:
                    targets.setdefault(op.operands[base.index], targets[result])
                elif result in targets:
                    fresh.append(result)
            if fresh and not any(o.defn.has(Trait.REDUCTION) or o.name in _PASSES for o in region.ops()):
                _overwrite(op, region.args, fresh, targets)
        elif op.defn.lower is not None:
            _overwrite(op, op.operands, op.results, targets)
        elif name in ("for", "while"):
            body = op.regions[-1]
            for k, (result, value) in enumerate(zip(op.results, body.terminator.operands, strict=True)):
                if result in targets and storage_argument(value) is body.args[k]:
                    for shared in (value, body.args[k], op.operands[k]):
                        targets.setdefault(shared, targets[result])
            _visit(body, targets)
        elif name in BRANCHES:
            _visit_cond(op, targets)


def _overwrite(op: Op, inside: Sequence[Value], results: Sequence[Value], targets: dict[Value, Target]) -> None:
    """An operand that dies in an elementwise op or kernel lies where the result goes, element by element.

    Args:
        inside: the operands as the ops read them.
    """
    types = {r.type.shape for r in op.results}
    if len(types) > 1:
        return
    for result in results:
        for operand, seen in zip(op.operands, inside, strict=True):
            producer = operand.producer
            if (
                operand.type.ndim
                and operand.type.shape == result.type.shape
                and operand.type.dtype == result.type.dtype
                and operand.type.layout == result.type.layout
                and operand not in targets
                and producer is not None
                and producer.block is op.block
                and _is_fresh(producer, operand)
                and all(user is op for user in operand.users())
                and _elementwise_users(seen)
            ):
                targets[operand] = targets[result]
                break


def _elementwise_users(value: Value) -> bool:
    """Whether all that depends on `value` in its block is computed element by element."""
    depends = {value}
    for user in value.users():
        if user.results and user.defn.lower is None:
            return False
    block = value.block
    if block is None:
        return True
    for op in block.ops():
        if op.results and any(o in depends for o in op.operands):
            if op.defn.lower is None or op.result.type.shape != value.type.shape:
                return False
            depends.add(op.result)
    return True


def _is_fresh(producer: Op, value: Value) -> bool:
    """Whether the op computes the value into memory of its own."""
    if producer.name == "kernel":
        return storage_root(value) is value
    return producer.defn.lower is not None or producer.name in _FRESH


def _visit_cond(op: Op, targets: dict[Value, Target]) -> None:
    for k, result in enumerate(op.results):
        if result not in targets:
            continue
        values = [r.terminator.operands[k] for r in op.regions]
        roots = [storage_root(v) for v in values]
        if all(root is roots[0] for root in roots):
            targets.setdefault(roots[0], targets[result])
            continue
        for region, value, root in zip(op.regions, values, roots, strict=True):
            inner = root.producer.block if root.producer is not None else root.block
            if inner is region:
                targets.setdefault(value, targets[result])
    for region in op.regions:
        _visit(region, targets)
