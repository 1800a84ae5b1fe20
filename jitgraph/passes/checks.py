"""Checks of all elements of an array become the check of one truth value, found along with other work on the array.

`check %cond` of an array would be a pass of its own, over a mask in memory. So the truth of all elements is a
reduction, which fuses with what else reads the array (a gather through the indices that are checked). Which element
failed, and the values there, matter only if one did: the condition for that is computed anew then, from copies of the
cheap operations behind it, which stand in no kernel (`ops_for_checks`) and are evaluated where the check reads them.
"""

from __future__ import annotations

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import Trait

#: Operations behind a condition that are computed twice rather than stored.
MAX_COPIED = 16


def check_arrays(graph: Graph) -> bool:
    """Give each check of an array the truth of all its elements as a last operand; True if there was one."""
    changed = False
    for block in list(graph.blocks()):
        for op in list(block.ops()):
            if op.name == "check" and op.operands[0].type.ndim and not op.attrs.get("guarded"):
                _guard(graph, op)
                changed = True
    return changed


def _guard(graph: Graph, op: Op) -> None:
    condition = op.operands[0]
    b = Builder(graph).ahead_of(op)
    holds = b.reduce_all(condition, axes=tuple(range(condition.type.ndim)), keepdims=False)
    copies: dict[Value, Value] = {}
    made = [_copied(v, b, copies) for v in op.operands]
    op.set_operands([*made, holds])
    op.attrs["guarded"] = True


def _copied(value: Value, b: Builder, copies: dict[Value, Value]) -> Value:
    """A copy of the elementwise operations behind `value`, as far as they are cheap and few."""
    known = copies.get(value)
    if known is not None:
        return known
    op = value.producer
    if op is None or not value.type.ndim or not op.defn.has(Trait.ELEMENTWISE) or op.defn.ulp:
        return value
    if len(copies) >= MAX_COPIED:
        return value
    operands = [_copied(v, b, copies) for v in op.operands]
    copies[value] = b.emit(op.defn, operands, [r.type for r in op.results], dict(op.attrs), name=value.name).result
    return copies[value]
