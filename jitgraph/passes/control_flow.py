"""Control flow that is known: constant branches, loops of no or one turn, values that regions only pass through."""

from __future__ import annotations

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.rewrite import constant_number, replace_value
from jitgraph.ir.transform import Substitution, has_effects, inline


def control_flow(graph: Graph) -> bool:
    """Simplify `cond`, `for`, `while` and `check` whose course is known; True if one changed."""
    return _Simplifier(graph).block(graph.body)


class _Simplifier:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)

    def block(self, block: Block) -> bool:
        changed = False
        op = block.first
        while op is not None:
            for region in op.regions:
                changed |= self.block(region)
            following = op.next
            if self.one(op):
                changed = True
            op = following
        return changed

    def one(self, op: Op) -> bool:
        if op.name == "cond":
            if self.known_branch(op):
                return True
            changed = self.same_yields(op)
            return self.empty_branches(op) or changed
        if op.name == "for":
            return self.no_turn(op) or self.one_turn(op) or self.passed_through(op)
        if op.name == "while":
            return self.never_entered(op) or self.passed_through(op)
        if op.name == "check" and constant_number(op.operands[0]) is not None and constant_number(op.operands[0]):
            self.graph.erase(op)
            return True
        return False

    def replace(self, op: Op, values: list[Value]) -> None:
        self.b.ahead_of(op)
        for old, new in zip(op.results, values, strict=True):
            replace_value(old, new, self.b)
        self.graph.erase(op)

    def known_branch(self, op: Op) -> bool:
        """cond(true, a, b) = a; cond(false, a, b) = b"""
        number = constant_number(op.operands[0])
        if number is None:
            return False
        self.replace(op, inline(op.regions[0 if number else 1], (), op))
        return True

    def same_yields(self, op: Op) -> bool:
        """A result for which both branches yield the same outer value is that value."""
        changed = False
        branches = [region.terminator.operands for region in op.regions]
        for i, r in enumerate(op.results):
            value = branches[0][i]
            if r.uses and value is branches[1][i]:
                self.b.ahead_of(op)
                replace_value(r, value, self.b)
                changed = True
        return changed

    def empty_branches(self, op: Op) -> bool:
        """A cond whose results nobody uses, without effects, is nothing."""
        if any(r.uses for r in op.results) or has_effects(op):
            return False
        self.graph.erase(op)
        return True

    def no_turn(self, op: Op) -> bool:
        """for over an empty range = what it carries"""
        lower, upper, step = op.attrs["lower"], op.attrs["upper"], op.attrs["step"]
        facts = self.graph.facts
        backwards = isinstance(step, int) and step < 0
        if not (facts.is_le(lower, upper) if backwards else facts.is_le(upper, lower)):
            return False
        self.replace(op, list(op.operands))
        return True

    def one_turn(self, op: Op) -> bool:
        """for over one index = the body at that index"""
        lower, upper, step = op.attrs["lower"], op.attrs["upper"], op.attrs["step"]
        if all(isinstance(d, int) for d in (lower, upper, step)):
            if len(range(lower, upper, step)) != 1:
                return False
        elif not (isinstance(step, int) and step > 0 and upper - lower == 1):
            return False
        region = op.regions[0]
        index = Substitution({op.attrs["index"]: lower})
        for inner in region.ops():
            index.apply(inner)
        self.replace(op, inline(region, op.operands, op))
        return True

    def never_entered(self, op: Op) -> bool:
        """while whose first test is constant false = what it carries"""
        number = constant_number(op.regions[0].terminator.operands[0])
        if number is None or number:
            return False
        values = [op.operands[i] for i in range(len(op.results))]
        self.replace(op, values)
        return True

    def passed_through(self, op: Op) -> bool:
        """A carried value that each turn yields as it came is its initial value."""
        changed = False
        body = op.regions[-1]
        for i, value in enumerate(body.terminator.operands):
            if value is not body.args[i]:
                continue
            initial = op.operands[i]
            for carried in [op.results[i], *(region.args[i] for region in op.regions)]:
                used = [u for u in carried.uses if not (u[0] is body.terminator and u[1] == i)]
                if not used:
                    continue
                changed = True
                if carried is op.results[i]:
                    self.b.ahead_of(op)
                    replace_value(carried, initial, self.b)
                else:
                    for user, k in used:
                        user.set_operand(k, initial)
        return changed
