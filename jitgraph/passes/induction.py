"""Secondary induction: carried integers that change by the same amount in each turn are functions of the index."""

from __future__ import annotations

from jitgraph import dtypes
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import DimLike, dim_max, floordiv, symbol, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import replace_value
from jitgraph.ir.transform import bound_symbols
from jitgraph.passes.sizes import Sizes


def induction(graph: Graph) -> bool:
    """k carried from k0, with k + c for the next turn, is k0 + c * turn; True if one was found.

    Of int64 only, which wraps as the sum does, inner loops first. What stands for k inside is a size if k0 is one, so
    that facts speak of it; the loop then carries k for nobody, and `dce` takes it out.
    """
    return _Induction(graph).block(graph.body)


class _Induction:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.sizes = Sizes(graph)

    def block(self, block: Block) -> bool:
        changed = False
        named: list[Value] = []
        for op in block.ops():
            if op.name == "bind":
                value = self.sizes.bound(op)
                if value is not None:
                    named.append(value)
            for region in op.regions:
                changed |= self.block(region)
            if op.name == "for" and isinstance(op.attrs["step"], int):
                for k in range(len(op.results)):
                    changed |= self.carried(op, k)
        self.sizes.leave(named)
        return changed

    def carried(self, op: Op, k: int) -> bool:
        arg, result = op.regions[0].args[k], op.results[k]
        if arg.type.ndim or arg.type.dtype != dtypes.I64 or arg.type.kind == "array":
            return False
        change = self.change(op, k)
        if change is None:
            return False
        step = op.regions[0].terminator.operands[k]
        used = [u for u in arg.uses if u[0] is not step.producer]
        if not used and not result.uses and all(u[0] is op.regions[0].terminator for u in step.uses):
            return False  # carried for nobody
        turn, turns = _turns(self.graph, op)
        first = op.regions[0].first
        assert first is not None
        self.b.ahead_of(first)
        replace_value(arg, self.after(op.operands[k], change, turn), self.b)
        if result.uses:
            following = op.next
            assert following is not None
            self.b.ahead_of(following)
            replace_value(result, self.after(op.operands[k], change, turns), self.b)
        op.regions[0].terminator.set_operand(k, arg)
        return True

    def change(self, op: Op, k: int) -> DimLike | None:
        """What each turn adds to a carried integer, if that is the same in all of them."""
        region = op.regions[0]
        producer = region.terminator.operands[k].producer
        if producer is None or producer.name not in ("add", "sub") or producer.block is not region:
            return None
        left, right = producer.operands
        if producer.name == "add" and right is region.args[k]:
            left, right = right, left
        if left is not region.args[k]:
            return None
        amount = self.sizes.of(right)
        if amount is None or (isinstance(amount, int) and not amount):
            return None
        if not isinstance(amount, int) and self.varies(op, amount):
            return None
        return amount if producer.name == "add" else -amount

    def varies(self, op: Op, amount: DimLike) -> bool:
        inside = {name for inner in op.walk() for name in bound_symbols(inner)}
        return any(name in inside for name in symbols(amount))

    def after(self, start: Value, change: DimLike, turns: DimLike) -> Value:
        """start + change * turns, in the type of `start`"""
        known = self.sizes.of(start)
        b = self.b
        value: Value = b.dim(value=change * turns if known is None else known + change * turns)
        if known is None:
            value = b.emit(REGISTRY["add"], (start, self.as_kind(value, start)), (start.type,)).result
        return self.as_kind(value, start)

    def as_kind(self, value: Value, like: Value) -> Value:
        if value.type == like.type:
            return value
        return self.b.emit(REGISTRY["as_kind"], (value,), (like.type,), {"kind": like.type.kind}).result


def _turns(graph: Graph, op: Op) -> tuple[DimLike, DimLike]:
    """The number of turns before the one at hand, and that of all."""
    lower, upper, step = op.attrs["lower"], op.attrs["upper"], op.attrs["step"]
    index = symbol(op.attrs["index"])
    turn = floordiv(index - lower, step)
    low, high, size = (lower, upper, step) if step > 0 else (upper, lower, -step)
    turns = floordiv(high - low + (size - 1), size)
    return turn, turns if graph.facts.is_le(low, high) else dim_max(turns, 0)
