"""Loop-invariant motion: pure ops that compute the same in every turn move in front of their loop."""

from __future__ import annotations

from jitgraph.ir.graph import Block, Graph, Op
from jitgraph.ir.opdef import Trait
from jitgraph.ir.rewrite import starts_storage
from jitgraph.ir.transform import bound_symbols, op_symbols


def invariant_motion(graph: Graph) -> bool:
    """Move invariant pure ops out of `for` and `while`, inner loops first; True if one moved.

    Pure ops may run although the loop makes no turn. What starts a storage stays: each turn needs a fresh one.
    """
    return _loops_in(graph.body)


def _loops_in(block: Block) -> bool:
    changed = False
    for op in block.ops():
        for region in op.regions:
            changed |= _loops_in(region)
        if op.name in ("for", "while"):
            for region in op.regions:
                changed |= _hoist(op, region)
    return changed


def _hoist(loop: Op, region: Block) -> bool:
    target = loop.block
    assert target is not None
    inside = set(bound_symbols(loop))
    for op in region.ops():
        for inner in op.walk():
            inside.update(bound_symbols(inner))
    varying = set(region.args)
    changed = False
    for op in region.ops():
        if _invariant(op, inside) and not any(v in varying for v in op.operands):
            region.unlink(op)
            target.insert_before(loop, op)
            changed = True
        else:
            varying.update(op.results)
    return changed


def _invariant(op: Op, inside: set[str]) -> bool:
    traits = op.defn.traits
    if op.regions or Trait.PURE not in traits or Trait.BINDS in traits or Trait.MAY_RAISE in traits:
        return False
    if any(starts_storage(r) for r in op.results):
        return False
    return not inside or inside.isdisjoint(op_symbols(op))
