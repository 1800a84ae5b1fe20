"""Arrays that a kernel stores only so that others need not compute a cheap function of what they read anyhow.

    %b, %c = kernel ... {... yield %v, mul %v, 2.0}          %b = kernel ... {... yield %v}
    %d = kernel %b, %c {... sub %x, %c ...}             =>   %d = kernel %b {... sub %x, (mul %b, 2.0) ...}

Fusion computes nothing twice, as what is shared may be dear. Where it takes an operation or two on operands that all
its readers load at the same element, the array costs more than the arithmetic: a store and a load through memory.
"""

from __future__ import annotations

from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.storage import UPDATES

#: What costs about as much as the load that it replaces.
CHEAP = frozenset(["add", "sub", "mul", "neg", "abs", "square", "minimum", "maximum"])
#: Operations that are done again instead of storing their result.
MOST = 2


def rematerialise(graph: Graph) -> bool:
    """Compute cheap results of kernels where they are read; True if one went."""
    changed = False
    for block in list(graph.blocks()):
        for op in block.ops():
            if op.name == "kernel":
                for r in reversed(op.results):
                    changed |= _moved(op, r)
    return changed


def _moved(kernel: Op, r: Value) -> bool:
    users = list(dict.fromkeys(r.users()))
    if not users or any(u.name != "kernel" or u.block is not kernel.block for u in users):
        return False
    inner = kernel.regions[0].terminator.operands[r.index]
    given = {v: out for v, out in zip(kernel.regions[0].terminator.operands, kernel.results, strict=True) if v != inner}
    given.update(zip(kernel.regions[0].args, kernel.operands, strict=True))
    tree: dict[Op, None] = {}
    leaves: dict[Value, None] = {}
    if not _cheap(inner, given, tree, leaves) or not all(_reads(u, r, [given[v] for v in leaves]) for u in users):
        return False
    for u in users:
        _compute_in(u, r, inner, tree, {v: given[v] for v in leaves})
    _without_result(kernel, r)
    for op in reversed(tree):
        if not op.result.uses and op.block is not None:
            for i, operand in enumerate(op.operands):
                operand.uses.pop((op, i), None)
            op.block.unlink(op)
    return True


def _cheap(
    v: Value, given: dict[Value, Value], tree: dict[Op, None], leaves: dict[Value, None], depth: int = MOST
) -> bool:
    """Whether a value in a kernel is a cheap function of arrays that kernels outside can read; fills in which ops make
    it, operands first, and which arrays these are.

    Args:
        depth: the most operations one above the other: no more are looked at than may be done again.
    """
    if v in given:
        leaves[v] = None
        return True
    op = v.producer
    if op is None or op in tree:
        return op is not None
    if op.name == "constant" and not v.type.ndim:
        tree[op] = None
        return True
    if not depth or op.name not in CHEAP or v.type.dtype.kind == "c":
        return False
    if any(x.type.shape != v.type.shape for x in _arrays(op)):
        return False
    if not all(_cheap(x, given, tree, leaves, depth - 1) for x in op.operands):
        return False
    tree[op] = None
    return sum(o.name != "constant" for o in tree) <= MOST


def _arrays(op: Op) -> list[Value]:
    return [x for x in op.operands if x.type.ndim]


def _reads(kernel: Op, r: Value, sources: list[Value]) -> bool:
    """Whether a kernel reads `r` at its own elements only, has `sources` as operands, and leaves these alone."""
    region = kernel.regions[0]
    for operand, arg in zip(kernel.operands, region.args, strict=True):
        if operand is r:
            for user in arg.users():
                whole = user.defn.has(Trait.ELEMENTWISE) and user.result.type.shape == arg.type.shape
                if user.block is not region or not whole:
                    return False
        elif operand in sources and any(
            user.name in UPDATES and user.operands[UPDATES[user.name]] is arg for user in arg.users()
        ):
            return False
    return all(source in kernel.operands for source in sources)


def _compute_in(kernel: Op, r: Value, inner: Value, tree: dict[Op, None], given: dict[Value, Value]) -> None:
    region = kernel.regions[0]
    at = kernel.operands.index(r)
    here = {v: region.args[kernel.operands.index(outer)] for v, outer in given.items()}
    first = region.first
    assert first is not None
    for op in tree:
        operands = [here[v] for v in op.operands]
        copy = Op(op.defn, operands, [x.type for x in op.results], dict(op.attrs), (), op.loc)
        copy.result.name = op.result.name
        here[op.result] = region.insert_before(first, copy).result
    arg = region.args[at]
    arg.replace_all_uses_with(here[inner])
    region.args = [a for a in region.args if a is not arg]
    for i, a in enumerate(region.args):
        a.index = i
    kernel.set_operands([v for v in kernel.operands if v is not r])


def _without_result(kernel: Op, r: Value) -> None:
    terminator = kernel.regions[0].terminator
    terminator.set_operands([v for i, v in enumerate(terminator.operands) if i != r.index])
    kernel.results = [x for x in kernel.results if x is not r]
    for i, x in enumerate(kernel.results):
        x.index = i
