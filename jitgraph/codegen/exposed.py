"""Arrays without axes that the caller sees: loops carry them as scalars, and an error may end a loop.

Law: what a turn makes of such an argument is in its memory before anything that follows can raise.
"""

from __future__ import annotations

from jitgraph.ir.graph import Block, Graph, Value
from jitgraph.ir.opdef import BRANCHES
from jitgraph.ir.storage import UPDATES


def exposed_versions(graph: Graph) -> dict[Value, Value]:
    """The versions of written arguments without axes that ops inside of loops make, with the argument of each."""
    written = graph.body.terminator.attrs.get("mutates", ())
    owner = {graph.args[k]: graph.args[k] for k in written if not graph.args[k].type.ndim}
    found: dict[Value, Value] = {}

    def base(value: Value) -> Value:
        while value not in owner and value.producer is not None and value.producer.name in ("view", "reshape"):
            value = value.producer.operands[0]
        return value

    def visit(block: Block, *, in_loop: bool) -> None:
        for op in block.ops():
            at = UPDATES.get(op.name)
            if at is not None and base(op.operands[at]) in owner:
                owner[op.result] = owner[base(op.operands[at])]
                if in_loop and not op.result.type.ndim:
                    found[op.result] = owner[op.result]
            handed = op.name in ("for", "while", "kernel")
            for region in op.regions:
                if handed:
                    owner.update({a: owner[v] for a, v in zip(region.args, op.operands, strict=True) if v in owner})
                visit(region, in_loop=in_loop or op.name in ("for", "while"))
            for k, result in enumerate(op.results):
                ends = [r.terminator.operands[k] for r in op.regions[-1:]] if handed else []
                ends += [r.terminator.operands[k] for r in op.regions] if op.name in BRANCHES else []
                known = next((owner[base(v)] for v in ends if base(v) in owner), None)
                if known is not None:
                    owner[result] = known
                    if op.name == "kernel" and in_loop and not result.type.ndim:
                        found[result] = known

    if owner:
        visit(graph.body, in_loop=False)
    return found
