"""Branches made smaller: what both sides do is done once, and short branches become selects.

A `cond` becomes a `where` of each result if both sides are computed without regions, and every op of them may run
although its side is not taken: elementwise ones (none traps), sizes, constants, reads proven to be inside their
arrays, and checks, which then hold if their side is not taken. It pays if that is about what a branch that is
predicted wrongly costs: `MAX_COST`, in cycles. Arrays are selected only where that makes one kernel of several: all
users are elementwise or reductions, both sides read the same arrays, and at most `MAX_ARRAY_COST` is computed in vain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import constant_number, replace_value, starts_storage
from jitgraph.ir.storage import UPDATES
from jitgraph.ir.transform import inline
from jitgraph.ir.types import TensorType
from jitgraph.passes.cse import attr_key, op_key
from jitgraph.passes.safety import is_movable, stays_inside

MAX_COST = 16
MAX_ARRAY_COST = 4
#: Cycles of scalar operators, as far as they are not 1; functions with a bound in ulp are too dear.
_COSTS = {"constant": 0, "dim": 1, "as_kind": 0, "cast": 1, "div": 4, "sqrt": 6, "floordiv": 8, "mod": 8, "check": 1}
_DEAR = 100
_BY_POWERS = frozenset(["floordiv", "mod"])


def branches(graph: Graph) -> bool:
    """Merge and select; True if a branch changed."""
    return _Branches(graph).block(graph.body)


class _Branches:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.paired: set[Op] = set()

    def block(self, block: Block) -> bool:
        changed = False
        op = block.first
        while op is not None:
            following = op.next
            for region in op.regions:
                changed |= self.block(region)
            if op.name == "cond":
                changed |= self.heads(op)
                changed |= self.tails(op)
                changed |= self.select(op)
            op = following
        return changed

    # Equal code.

    def heads(self, op: Op) -> bool:
        """if p: a = f(x), ... else: b = f(x), ...: f(x) is computed in front of the branch."""
        then, other = op.regions
        twins = self.twins(op)
        if not twins:
            return False
        target = op.block
        assert target is not None
        moved = [o for o in then.ops() if o in twins]
        alone: set[Op] = set()  # would be stored to be read by ops that now compute it on the way
        for o in reversed(moved):
            if not o.result.type.ndim or not o.defn.has(Trait.ELEMENTWISE):
                continue
            for one, end in ((o, then.terminator), (twins[o], other.terminator)):
                if any(
                    user is not end and UPDATES.get(user.name) != i and (user in alone or user not in self.paired)
                    for user, i in one.result.uses
                ):
                    alone.update((o, twins[o]))
        changed = False
        for o in moved:
            if o in alone or any(_block_of(v) is then for v in o.operands):
                continue
            then.unlink(o)
            target.insert_before(op, o)
            for old, new in zip(twins[o].results, o.results, strict=True):
                old.replace_all_uses_with(new)
            self.graph.erase(twins[o])
            changed = True
        return changed

    def twins(self, op: Op) -> dict[Op, Op]:
        """Ops of the first side to equal ones of the second, which could both be one in front of the branch."""
        then, other = op.regions
        checked = any(o.defn.has(Trait.ORDERED) for region in op.regions for o in region.ops())
        names: dict[Value, Value] = {}
        there: dict[tuple[object, ...], Op] = {}

        def outside(o: Op, region: Block) -> bool:
            if not is_movable(o) or o.name == "copy" or len(o.results) != 1:
                return False
            if checked and not stays_inside(o, self.graph.facts):
                return False
            return all(v in names or _block_of(v) is not region for v in o.operands)

        found: dict[Op, Op] = {}
        for o in other.ops():
            if outside(o, other):
                there.setdefault(op_key(o, names), o)
                names[o.result] = o.result
        taken: set[Op] = set()
        for o in then.ops():
            if not outside(o, then):
                continue
            twin = there.get(op_key(o, names))
            if twin is not None and twin not in taken and _interchangeable(o, twin, op):
                found[o] = twin
                names[o.result] = twin.result
                taken.add(twin)
        self.paired = {*found, *taken}
        return found

    def tails(self, op: Op) -> bool:
        """if p: y = f(x, a) else: y = f(x, b), a and b scalars: the branch gives a or b, f is computed behind it."""
        changed = False
        ends = [region.terminator for region in op.regions]
        for k, result in enumerate(op.results):
            at = op
            while result.uses:
                pair = [end.operands[k].producer for end in ends]
                left, right = pair
                if left is None or right is None:
                    break
                slot = self.slot(op, left, right, k)
                if slot is None:
                    break
                operands = list(left.operands)
                operands[slot] = result
                behind = Op(left.defn, operands, [result.type], dict(left.attrs), (), left.loc)
                assert op.block is not None
                op.block.insert_after(at, behind)
                for user, i in list(result.uses):
                    if user is not behind:
                        user.set_operand(i, behind.result)
                behind.result.name, result.name = result.name, ""
                result.type = left.operands[slot].type
                if right.operands[slot].type != result.type:  # numbers of Python's and NumPy's
                    result.type = replace(result.type, kind="np_scalar")
                for end, o in zip(ends, (left, right), strict=True):
                    end.set_operand(k, self.as_type(end, o.operands[slot], result.type))
                    self.graph.erase(o)
                changed = True
        return changed

    def as_type(self, before: Op, value: Value, t: TensorType) -> Value:
        if value.type == t:
            return value
        b = self.b.ahead_of(before)
        return b.emit(REGISTRY["as_kind"], (value,), (t,), {"kind": t.kind}).result

    def slot(self, op: Op, left: Op, right: Op, k: int) -> int | None:
        """Which operand the last ops of both sides differ in, if it is one scalar and else they are equal."""
        if left.block is not op.regions[0] or right.block is not op.regions[1] or left.defn is not right.defn:
            return None
        scalars = left.defn.has(Trait.ELEMENTWISE) or left.name == "write"
        if not scalars or not is_movable(left) or len(left.results) != 1 or len(left.operands) != len(right.operands):
            return None
        if len(left.result.uses) != 1 or len(right.result.uses) != 1 or left.result.type != right.result.type:
            return None
        differ = [i for i, (a, b) in enumerate(zip(left.operands, right.operands, strict=True)) if a is not b]
        if len(differ) != 1:
            return None
        a, b = left.operands[differ[0]].type, right.operands[differ[0]].type
        if (replace(a, kind=b.kind) if left.name == "write" else a) != b or a.ndim or "array" in (a.kind, b.kind):
            return None
        if _is_dear(left) and all(constant_number(o.operands[differ[0]]) is not None for o in (left, right)):
            return None  # a number that is known makes it cheaper
        if {n: attr_key(v) for n, v in left.attrs.items()} != {n: attr_key(v) for n, v in right.attrs.items()}:
            return None
        if left.name == "write" and (_is_ordered_behind(left) or _is_ordered_behind(right)):
            return None
        return differ[0]

    # Selects.

    def select(self, op: Op) -> bool:
        """if p: y = a else: y = b is y = where(p, a, b)"""
        arrays = any(r.type.ndim for r in op.results)
        if not op.results or not (self.pays_for_arrays(op) if arrays else self.pays(op)):
            return False
        predicate = op.operands[0]
        b = self.b.ahead_of(op)
        holds = {0: b.logical_not(predicate), 1: predicate} if _checks(op) else {}
        for side, region in enumerate(op.regions):
            for o in region.ops():
                if o.name == "check":
                    b.ahead_of(o)
                    o.set_operand(0, b.logical_or(holds[side], o.operands[0]))
        sides = [inline(region, (), op) for region in op.regions]
        b.ahead_of(op)
        for result, then, other in zip(op.results, *sides, strict=True):
            if result.uses:
                replace_value(result, self.choice(predicate, then, other), b)
        self.graph.erase(op)
        return True

    def choice(self, predicate: Value, then: Value, other: Value) -> Value:
        b = self.b
        if then is other:
            return then
        if then.type.dtype.kind == "b" and not then.type.ndim:
            if _is(then, True):
                value: Value = b.logical_or(predicate, other)
            elif _is(other, False):
                value = b.logical_and(predicate, then)
            elif _is(then, False):
                value = b.logical_and(b.logical_not(predicate), other)
            elif _is(other, True):
                value = b.logical_or(b.logical_not(predicate), then)
            else:
                value = b.where(predicate, then, other)
            return value
        found: Value = b.where(predicate, then, other)
        return found

    def pays(self, op: Op) -> bool:
        total = sum(not all(_is_simple(v) for v in pair) for pair in _yields(op))
        for region in op.regions:
            for o in region.ops():
                if o is not region.terminator:
                    total += self.cost(o)
                if total > MAX_COST:
                    return False
        return True

    def cost(self, op: Op) -> int:
        """Cycles of an op of a side, or `_DEAR` if it may not run on the other side."""
        if op.name == "view" and not op.result.type.ndim:
            return 1 if stays_inside(op, self.graph.facts) else _DEAR
        if op.name == "check":
            return 3 if not op.operands[0].type.ndim else _DEAR
        if any(v.type.ndim for v in (*op.operands, *op.results)):
            return _DEAR
        return _scalar_cost(op)

    def pays_for_arrays(self, op: Op) -> bool:
        for r in op.results:
            if not r.type.ndim or not r.type.layout.is_c or not r.uses:
                return False
            if not all(u.defn.has(Trait.ELEMENTWISE) or u.defn.has(Trait.REDUCTION) for u in r.users()):
                return False
        total = 0
        read: list[set[Value]] = []
        for region in op.regions:
            seen: set[Value] = set()
            for o in region.ops():
                seen.update(v for v in o.operands if v.type.ndim and _block_of(v) is not region)
                if o is region.terminator:
                    if any(v.type != r.type for v, r in zip(o.operands, op.results, strict=True)):
                        return False
                    continue
                total += _scalar_cost(o)
            read.append(seen)
        return total <= MAX_ARRAY_COST and (read[0] <= read[1] or read[1] <= read[0])


def _scalar_cost(op: Op) -> int:
    if op.name in ("constant", "dim", "as_kind"):
        return _COSTS[op.name]
    if not op.defn.has(Trait.ELEMENTWISE) or not is_movable(op) or op.defn.ulp:
        return _DEAR
    if op.defn.needs_numpy([v.type for v in (*op.operands, *op.results)], op.attrs):
        return _DEAR
    if op.name in _BY_POWERS:
        number = constant_number(op.operands[1])
        if number is not None and op.result.type.dtype.kind in "iu" and int(number).bit_count() == 1 and number > 0:
            return 1
    return _COSTS.get(op.name, 1)


def _is_dear(op: Op) -> bool:
    return bool(op.defn.ulp) or _COSTS.get(op.name, 1) > 1


def _checks(op: Op) -> bool:
    return any(o.name == "check" for region in op.regions for o in region.ops())


def _yields(op: Op) -> Iterator[tuple[Value, Value]]:
    return zip(*(region.terminator.operands for region in op.regions), strict=True)


def _is_simple(value: Value) -> bool:
    return constant_number(value) is not None and value.type.dtype.kind == "b"


def _is(value: Value, truth: bool) -> bool:
    number = constant_number(value)
    return number is not None and bool(number) == truth


def _block_of(value: Value) -> Block | None:
    return value.producer.block if value.producer is not None else value.block


def _is_ordered_behind(op: Op) -> bool:
    behind = op.next
    while behind is not None:
        if any(o.defn.has(Trait.ORDERED) for o in behind.walk()):
            return True
        behind = behind.next
    return False


def _interchangeable(op: Op, twin: Op, cond: Op) -> bool:
    """Whether equal ops may be one: their types are, and no storage begins at them but as the same results."""
    for a, b in zip(op.results, twin.results, strict=True):
        if a.type != b.type:
            return False
        if starts_storage(a) or starts_storage(b):
            places = [_storage_uses(v, region) for v, region in zip((a, b), cond.regions, strict=True)]
            if places[0] != places[1] or len(places[0]) != 1:
                return False
    return True


def _storage_uses(value: Value, region: Block) -> list[int]:
    """As which results of the branch a storage that begins at `value` is given; -1 for an update of it."""
    return [
        i if user is region.terminator else -1
        for user, i in value.uses
        if user is region.terminator or UPDATES.get(user.name) == i or user.regions
    ]
