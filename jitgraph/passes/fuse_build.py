"""From groups to `kernel` ops: the block is put together anew in the order of the groups."""

from __future__ import annotations

from collections.abc import Iterable

from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.passes.fuse_access import is_free
from jitgraph.passes.fuse_groups import Group


def build(block: Block, groups: Iterable[Group]) -> None:
    """Reorder the ops of `block` by group, each group with a domain as one kernel.

    Free ops go into the kernels that use them; for other users they stand in front of the first.
    """
    ops = list(block.ops())
    position = {op: i for i, op in enumerate(ops)}
    terminator = block.terminator
    for op in ops:
        block.unlink(op)
    placed: set[Op] = set()
    for g in sorted(groups, key=_order):
        if g.domain is None:
            if g.ops[0] is not terminator:
                _place(block, g.ops[0], placed, position)
        else:
            g.ops.sort(key=position.__getitem__)
            _kernel(block, g, placed, position)
    _place(block, terminator, placed, position)
    for op in ops:
        if is_free(op) and op not in placed:
            for i, operand in enumerate(op.operands):
                operand.uses.pop((op, i), None)


def _order(g: Group) -> int:
    return g.order


def erase_free(graph: Graph, block: Block) -> bool:
    """Erase free ops that nothing uses any more, as kernels have copies; True if one was erased."""
    changed = False
    for op in block.ops_back():
        if is_free(op) and not any(r.uses for r in op.results):
            graph.erase(op)
            changed = True
    return changed


def _place(block: Block, op: Op, placed: set[Op], position: dict[Op, int]) -> None:
    """Append `op`, and in front of it the free ops of this block that it uses, or a region of it, if not there yet."""
    stack = [op]
    while stack:
        at = stack[-1]
        if at in placed:
            stack.pop()
            continue
        missing = [
            v.producer
            for inner in (at.walk() if at.regions else (at,))
            for v in inner.operands
            if v.producer is not None and v.producer not in placed and v.producer in position and is_free(v.producer)
        ]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        placed.add(at)
        block.append(at)


def _kernel(block: Block, g: Group, placed: set[Op], position: dict[Op, int]) -> None:
    inside = set(g.ops)
    region = Block()
    operands: dict[Value, Value] = {}
    copies: dict[Op, Op] = {}

    def argument(value: Value) -> Value:
        known = operands.get(value)
        if known is None:
            known = operands[value] = region.add_arg(value.type, value.name)
        return known

    def resolved(value: Value) -> Value:
        """What stands for `value` in the region: itself if made there, a copy of a free op, or an argument."""
        producer = value.producer
        if producer is None or (producer not in inside and not is_free(producer)):
            return argument(value)
        if producer in inside:
            return value
        copy = copies.get(producer)
        if copy is None:
            made = [resolved(v) for v in producer.operands]
            copy = Op(producer.defn, made, [r.type for r in producer.results], dict(producer.attrs), (), producer.loc)
            copy.result.name = value.name
            copies[producer] = region.append(copy)
        return copy.results[value.index]

    outputs: list[Value] = []
    for op in g.ops:
        op.set_operands([resolved(v) for v in op.operands])
        region.append(op)
    for op in g.ops:
        for r in op.results:
            if _used_outside(r, inside, region):
                outputs.append(r)
    if not outputs:  # all of it is dead
        for op in region.ops_back():
            for i, operand in enumerate(op.operands):
                operand.uses.pop((op, i), None)
        return
    region.append(Op(REGISTRY["yield"], outputs, ()))
    last = g.ops[-1]
    kernel = Op(REGISTRY["kernel"], list(operands), [v.type for v in outputs], {"rows": g.rows}, (region,), last.loc)
    for inner, outer in zip(outputs, kernel.results, strict=True):
        outer.name = inner.name
        for user, i in list(inner.uses):
            if user not in inside and user.block is not region:
                user.set_operand(i, outer)
    _place(block, kernel, placed, position)


def _used_outside(value: Value, inside: set[Op], region: Block) -> bool:
    """Does an op outside of the kernel use `value`, be it through free ops?"""
    for user in value.users():
        if user in inside or user.block is region:
            continue
        if not is_free(user) or any(_used_outside(r, inside, region) for r in user.results):
            return True
    return False
