"""Loop-invariant motion: pure ops that compute the same in every turn move in front of their loop."""

from __future__ import annotations

from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.rewrite import starts_storage
from jitgraph.ir.transform import bound_symbols, op_symbols


def invariant_motion(graph: Graph) -> bool:
    """Move invariant pure ops out of `for` and `while`, inner loops first; True if one moved.

    Pure ops may run although the loop makes no turn. What starts a storage stays: each turn needs a fresh one. So does
    a view of an array in other sizes that a check of the same turn, before it, finds equal: it may leave its base.
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
    checked: set[DimLike] = set()
    changed = False
    for op in region.ops():
        if op.name == "check":
            checked |= _sizes_in(op.operands[0])
        if _invariant(op, inside) and not any(v in varying for v in op.operands) and not _relies_on(op, checked):
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


def _sizes_in(condition: Value, depth: int = 4) -> set[DimLike]:
    """The sizes that a condition is computed from."""
    op = condition.producer
    if op is None or not depth:
        return set()
    if op.name == "dim":
        return {op.attrs["value"]}
    return set().union(*(_sizes_in(v, depth - 1) for v in op.operands))


def _relies_on(op: Op, checked: set[DimLike]) -> bool:
    """Whether a view counts an axis of its base by another size, one that was checked."""
    if op.name != "view" or not checked:
        return False
    base, map = op.operands[0].type.shape, op.attrs["map"]
    for size, axis in zip(base, map.axes, strict=True):
        shown = map.shape[axis.axis] if axis.axis is not None else size
        if shown != size and (shown in checked or size in checked):
            return True
    return False
