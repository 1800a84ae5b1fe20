"""A copy that only the next update of the same array reads is not made.

    old = p.copy()
    p[1:-1, 1:-1] = old[:-2, 1:-1] + old[2:, 1:-1]

The right-hand side may as well read `p`: the update then keeps the few rows that it has overwritten and still needs
(`lower_lagged`), where the copy is a sweep of its own. So this holds for updates that read at most `MAX_LAG` rows back.
"""

from __future__ import annotations

from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.types import IndexMap
from jitgraph.passes.fuse_access import access, domain_of

#: Rows that an update keeps.
MAX_LAG = 3


def uncopied(graph: Graph) -> bool:
    """Read arrays instead of copies of them where one update reads the copy; True if a copy went."""
    changed = False
    for block in list(graph.blocks()):
        if block.parent is None or block.parent.name != "kernel":
            for op in list(block.ops()):
                if op.name == "copy" and _read_by_one_update(op):
                    op.result.replace_all_uses_with(op.operands[0])
                    graph.erase(op)
                    changed = True
    return changed


def _read_by_one_update(copy: Op) -> bool:
    array, copied = copy.operands[0], copy.result
    if array.type != copied.type or array.type.ndim < 2 or access(array, array.type.shape).base is not array:
        return False
    writes = [u for u in array.users() if u.name == "write" and u.operands[1] is array and u.block is copy.block]
    if len(writes) != 1:
        return False
    (write,) = writes
    target: IndexMap = write.attrs["map"]
    if domain_of(write) != target.shape or write.operands[0].type.shape != target.shape:
        return False
    return _all_in(copied, write, target) and _lags(copied, write, target)


def _all_in(copied: Value, write: Op, target: IndexMap) -> bool:
    """Whether what reads the copy is elementwise over the elements written, and only the write needs it."""
    stack, met = [copied], {copied}
    while stack:
        value = stack.pop()
        for user in value.users():
            if user is write:
                if write.operands[1] is value:
                    return False
                continue
            if user.block is not write.block or not user.results:
                return False
            if user.name != "view" and (
                not user.defn.has(Trait.ELEMENTWISE) or user.defn.lower is None or domain_of(user) != target.shape
            ):
                return False
            if user.result not in met:
                met.add(user.result)
                stack.append(user.result)
    return True


def _lags(copied: Value, write: Op, target: IndexMap) -> bool:
    """Whether some read is of another row, and none of one that is overwritten more than `MAX_LAG` rows before."""
    row = copied.type.layout.order[0]
    goal = target.axes[row]
    if goal.axis is None or goal.step != 1:
        return False
    stack: list[Value] = [copied]
    met: set[Op] = set()
    rows: set[int] = set()
    while stack:
        for user in stack.pop().users():
            if user.name == "view":
                stack.append(user.result)
            elif user is write or user in met:
                continue
            else:
                met.add(user)
                for operand in user.operands:
                    found = access(operand, target.shape)
                    if found.base is not copied:
                        continue
                    if found.map is None or found.opaque:
                        return False
                    seen = found.map.axes[row]
                    back = goal.offset - seen.offset
                    if seen.axis != goal.axis or seen.step != 1 or not isinstance(back, int) or back > MAX_LAG:
                        return False
                    rows.add(back)
    return any(rows)
