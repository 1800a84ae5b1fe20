"""Control flow that is known: constant branches, loops of no or one turn, values that regions only pass through."""

from __future__ import annotations

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, REGISTRY, Trait
from jitgraph.ir.rewrite import constant_number, replace_value
from jitgraph.ir.transform import Substitution, has_effects, inline


def control_flow(graph: Graph) -> bool:
    """Simplify `cond`, `for`, `while` and `check` whose course or results are known; True if one changed."""
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
        if op.name in BRANCHES:
            if self.known_branch(op):
                return True
            changed = self.same_yields(op)
            return self.empty_branches(op) or self.one_after_another(op) or changed
        if op.name == "for":
            if self.no_turn(op) or self.one_turn(op):
                return True
            changed = self.passed_through(op)
            return self.same_end(op) or changed
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
        """cond(true, a, b) = a; cond(false, a, b) = b; switch(k, ...) = the region of k"""
        number = constant_number(op.operands[0])
        if number is None:
            return False
        cases = op.attrs.get("cases", (True,))
        self.replace(op, inline(op.regions[cases.index(number) if number in cases else -1], (), op))
        return True

    def one_after_another(self, op: Op) -> bool:
        """cond(k == 0, a, cond(k == 1, b, c)) = switch(k, a, b, c); and if the inner one is a switch already"""
        if op.name != "cond":
            return False
        tested = _number_tested(op.operands[0])
        inner = op.regions[1].terminator.prev
        if tested is None or inner is None or inner.name not in BRANCHES:
            return False
        value, case = tested
        if inner.name == "switch":
            others = (inner.operands[0], tuple(inner.attrs["cases"]))
        else:
            known = _number_tested(inner.operands[0])
            if known is None:
                return False
            others = known[0], (known[1],)
        if others[0] is not value or not _is_only(op.regions[1], inner):
            return False
        if case in others[1]:  # it would never run
            return False
        regions = [op.regions[0], *inner.regions]
        yielded = op.regions[1].terminator.operands
        for region in inner.regions:
            given = region.terminator.operands
            region.terminator.set_operands([given[x.index] if x.producer is inner else x for x in yielded])
        types = [r.type for r in op.results]
        made = Op(REGISTRY["switch"], (value,), types, {"cases": (case, *others[1])}, regions, op.loc)
        assert op.block is not None
        op.block.insert_before(op, made)
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
            new.name = old.name
        del op.regions[0]
        inner.regions.clear()
        self.graph.erase(op)
        return True

    def same_yields(self, op: Op) -> bool:
        """A result for which all branches yield the same outer value is that value."""
        changed = False
        branches = [region.terminator.operands for region in op.regions]
        for i, r in enumerate(op.results):
            value = branches[0][i]
            if r.uses and all(value is branch[i] for branch in branches):
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
        if not isinstance(step, int):
            return False
        facts = self.graph.facts
        low, high, size = (lower, upper, step) if step > 0 else (upper, lower, -step)
        if not (facts.is_lt(low, high) and facts.is_le(high, low + size)):
            return False
        region = op.regions[0]
        index = Substitution({op.attrs["index"]: lower})
        for inner in region.ops():
            index.apply(inner)
        self.replace(op, inline(region, op.operands, op))
        return True

    def same_end(self, op: Op) -> bool:
        """A scalar that each turn makes one constant, and none looks at, is that behind a `for` that has a turn."""
        lower, upper, step = op.attrs["lower"], op.attrs["upper"], op.attrs["step"]
        if not isinstance(step, int):
            return False
        body = op.regions[0]
        first, last = (lower, upper) if step > 0 else (upper, lower)
        changed = False
        for i, value in enumerate(body.terminator.operands):
            result, made = op.results[i], value.producer
            if made is None or made.name != "constant" or value.type.kind == "array":
                continue
            if not result.uses or body.args[i].uses:
                continue
            end = self.b.ahead_of(op).constant(made.attrs["value"])
            if not self.graph.facts.is_lt(first, last):
                turns = [self.b.apply(REGISTRY["dim"], value=d)[0] for d in (first, last)]
                some = self.b.apply(REGISTRY["lt"], *turns)[0]
                if value.type.dtype.kind == "b" and made.attrs["value"]:
                    end = self.b.apply(REGISTRY["logical_or"], some, op.operands[i])[0]
                else:
                    end = self.b.apply(REGISTRY["where"], some, end, op.operands[i])[0]
            replace_value(result, end, self.b)
            changed = True
        return changed

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


def _number_tested(predicate: Value) -> tuple[Value, int] | None:
    """(k, c) of a predicate that is `k == c` for an integer k and a constant c."""
    while predicate.producer is not None and predicate.producer.name == "as_kind":
        predicate = predicate.producer.operands[0]
    op = predicate.producer
    if op is None or op.name != "eq":
        return None
    for value, other in (op.operands, reversed(op.operands)):
        number = constant_number(other)
        if number is not None and value.type.dtype.kind in "iu" and not value.type.ndim:
            return value, int(number)
    return None


def _is_only(region: Block, branch: Op) -> bool:
    """Whether a region does nothing but decide that branch."""
    needed = {branch}
    for op in reversed(list(region.ops())):
        if op is branch or op is region.terminator:
            continue
        if not op.defn.has(Trait.PURE) or any(user not in needed for r in op.results for user in r.users()):
            return False
        needed.add(op)
    return True
