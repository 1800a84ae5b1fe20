"""Loop-invariant motion: pure ops that compute the same in every turn move in front of their loop."""

from __future__ import annotations

from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, Trait
from jitgraph.ir.rewrite import starts_storage
from jitgraph.ir.storage import UPDATES
from jitgraph.ir.transform import bound_symbols, op_symbols
from jitgraph.passes.safety import guarded_by, is_movable, names_of, needs


def invariant_motion(graph: Graph) -> bool:
    """Move invariant pure ops out of `for` and `while`, inner loops first; True if one moved.

    Pure ops may run although the loop makes no turn, whole branches and `for` loops of them too. What starts a storage
    stays: each turn needs a fresh one. So does a view that is not proven to be inside its base behind a check of the
    same turn: in front of the check it may leave its base. A check of what does not change moves too if it is the
    first effect of a turn: in front of the loop it holds if the loop makes no turn.
    """
    motion = _Motion(graph)
    changed = motion.block(graph.body)
    motion.renumber()
    return changed


def hoist_from(graph: Graph, loop: Op) -> bool:
    """Move what is invariant in a loop in front of it."""
    motion = _Motion(graph)
    changed = motion.loop(loop)
    motion.renumber()
    return changed


class _Motion:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.checks_moved = False
        self.names = names_of(graph)

    def renumber(self) -> None:
        """The order of effects is that of their places: a check in front of a loop may have had a later number."""
        if self.checks_moved:
            ordered = (op for op in self.graph.walk() if op.defn.has(Trait.ORDERED))
            for number, op in enumerate(ordered):
                op.attrs["order"] = number

    def block(self, block: Block) -> bool:
        changed = False
        for op in block.ops():
            for region in op.regions:
                changed |= self.block(region)
            if op.name in ("for", "while"):
                changed |= self.loop(op)
        return changed

    def loop(self, loop: Op) -> bool:
        inside = set(bound_symbols(loop))
        for region in loop.regions:
            for op in region.ops():
                for inner in op.walk():
                    inside.update(bound_symbols(inner))
        changed = False
        for region in loop.regions:
            changed |= self.hoist(loop, region, inside)
        return changed

    def hoist(self, loop: Op, region: Block, inside: set[str]) -> bool:
        target = loop.block
        assert target is not None
        varying = set(region.args)
        guards = self.counted(loop)
        first = loop.name == "for" or region is loop.regions[0]  # no effect of the turn was met
        changed = False
        for op in region.ops():
            if op.name == "check" and first and self.leaves(loop, op, varying):
                region.unlink(op)
                target.insert_before(loop, op)
                changed = self.checks_moved = True
                continue
            for inner in op.walk():
                if inner.name in UPDATES or inner.defn.has(Trait.ORDERED):
                    first = False
                if inner.name == "check":
                    guards |= guarded_by(inner.operands[0], self.names)
            if self.moves(op, varying, inside) and not self.relies_on(op, guards):
                region.unlink(op)
                target.insert_before(loop, op)
                changed = True
            else:
                varying.update(op.results)
        return changed

    def relies_on(self, op: Op, guards: set[str]) -> bool:
        """Whether a view in the op may be outside its base if one of the checks fails."""
        return bool(guards) and any(not guards.isdisjoint(needs(o, self.graph.facts)) for o in op.walk())

    def counted(self, loop: Op) -> set[str]:
        """The symbols of a range that may be empty: views may rely on a turn, and so on them, to be inside."""
        return set() if self.turns(loop) else {*symbols(loop.attrs["lower"]), *symbols(loop.attrs["upper"])}

    def turns(self, loop: Op) -> bool:
        """Whether it is known that the loop makes a turn, or begins one: the test of a `while`."""
        if loop.name == "while":
            return True
        lower, upper, step = loop.attrs["lower"], loop.attrs["upper"], loop.attrs["step"]
        return isinstance(step, int) and self.graph.facts.is_lt(*((lower, upper) if step > 0 else (upper, lower)))

    def leaves(self, loop: Op, op: Op, varying: set[Value]) -> bool:
        """Whether a check moves in front of its loop, where it holds too if there is no turn."""
        if any(v in varying or v.type.ndim for v in op.operands):
            return False
        if self.turns(loop):
            return True
        lower, upper, step = loop.attrs["lower"], loop.attrs["upper"], loop.attrs["step"]
        guards = guarded_by(op.operands[0], self.names)
        if not isinstance(step, int) or any(self.relies_on(o, guards) for o in loop.regions[0].ops()):
            return False  # without a turn it would not keep views inside that could follow
        b = self.b.ahead_of(loop)
        low, high = (lower, upper) if step > 0 else (upper, lower)
        none = b.ge(*(b.constant(d) if isinstance(d, int) else b.dim(value=d) for d in (low, high)))
        op.set_operand(0, b.logical_or(op.operands[0], none))
        return True

    def moves(self, op: Op, varying: set[Value], inside: set[str]) -> bool:
        if op.regions:
            return (op.name == "for" or op.name in BRANCHES) and self.region_moves(op, varying, inside)
        if not is_movable(op) or any(v in varying for v in op.operands) or any(map(starts_storage, op.results)):
            return False
        return not inside or inside.isdisjoint(op_symbols(op))

    def region_moves(self, op: Op, varying: set[Value], inside: set[str]) -> bool:
        """Whether a branch or loop computes scalars from what does not vary, without effects."""
        if any(r.type.ndim for r in op.results):
            return False
        own = {name for inner in op.walk() for name in bound_symbols(inner)}
        for inner in op.walk():
            if any(v in varying for v in inner.operands) or inner.name == "while":
                return False
            if not (inner.regions or inner.name == "yield" or is_movable(inner)):
                return False
        return (inside - own).isdisjoint(op_symbols(op))
