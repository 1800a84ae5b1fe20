"""Conditions that are known where they stand: implied by a branch, a check or a loop around or before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jitgraph import dtypes
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import Dim, DimLike, as_symbol, symbol, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import constant_number, replace_value
from jitgraph.passes.sizes import COMPARISONS, Sizes

#: Facts of ranges and branches at a time: each proof looks at all of them.
MAX_FACTS = 6
#: A comparison of two values: (relation, left, right).
_Relation = tuple[str, Value, Value]
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
#: What else holds if a comparison does, NaNs included, and what does not.
_IMPLIED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "eq": (("eq", "le", "ge"), ("ne", "lt", "gt")),
    "ne": (("ne",), ("eq",)),
    "lt": (("lt", "le", "ne"), ("gt", "ge", "eq")),
    "le": (("le",), ("gt",)),
    "gt": (("gt", "ge", "ne"), ("lt", "le", "eq")),
    "ge": (("ge",), ("lt",)),
}
_AND = frozenset(["logical_and", "bit_and"])
_OR = frozenset(["logical_or", "bit_or"])
_NOT = frozenset(["logical_not", "bit_not"])
_LOGIC = frozenset(["as_kind", *_AND, *_OR, *_NOT])


def conditions(graph: Graph) -> bool:
    """Replace bools that are implied where they are used by constants; True if one was.

    In a branch its predicate holds (or does not), behind a check the condition of the check does, in the body of a
    `while` its test. What follows for comparisons of the same values, and of sizes, is known too.
    """
    return _Walk(graph).block(graph.body)


class _Walk:
    """State of the walk in program order; `undo` forgets what holds in the block at hand only.

    Attributes:
        known: bools.
        relations: comparisons.
        facts: the number of facts of sizes that hold here only.
        passing: what is assumed comes of a check, of which a block may have many.
        numbers: of integers that are no sizes.
        bounds: what sums of sizes without a constant are at least.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.sizes = Sizes(graph)
        self.known: dict[Value, bool] = {}
        self.relations: dict[_Relation, bool] = {}
        self.undo: list[Callable[[], object]] = []
        self.facts = 0
        self.passing = False
        self.numbers: dict[Value, int] = {}
        self.bounds: dict[DimLike, int] = {}
        self.changed = False

    def block(self, block: Block) -> bool:
        start = len(self.undo)
        for op in block.ops():
            self.one(op)
        self.forget(start)
        return self.changed

    def one(self, op: Op) -> None:
        name = op.name
        if name == "bind":
            size = self.size(op.operands[0])
            if size is not None:  # two names of one value
                self.fact(size - symbol(op.attrs["symbol"]))
                self.fact(symbol(op.attrs["symbol"]) - size)
            named = self.sizes.bound(op)
            if named is not None:
                self.undo.append(lambda: self.sizes.leave([named]))
            return
        if self.answers(op):
            return
        for i, value in enumerate(op.operands):
            truth = self.known.get(value)
            asks = i == 0 and name in ("cond", "check", "where") and not value.type.ndim
            if truth is None and asks and not _is_constant(value):
                truth = self.here(value)
            if truth is not None:
                op.set_operand(i, self.constant(op, value, truth))
                self.changed = True
        if name == "check":
            if not op.operands[0].type.ndim:
                self.passing = True
                self.assume(op.operands[0], True)
                self.passing = False
        elif name == "cond":
            self.side(op.regions[0], op.operands[0], True)
            self.side(op.regions[1], op.operands[0], False)
        elif name == "switch":
            for region, case in zip(op.regions, (*op.attrs["cases"], None), strict=True):
                self.case(region, op.operands[0], case)
        elif name == "while":
            self.block(op.regions[0])
            start = len(self.undo)
            self.tested(op)
            self.block(op.regions[1])
            self.forget(start)
        elif name == "for":
            start = len(self.undo)
            self.turn(op)
            self.block(op.regions[0])
            self.forget(start)

    def turn(self, op: Op) -> None:
        """In a turn the range is not empty."""
        lower, upper, step = op.attrs["lower"], op.attrs["upper"], op.attrs["step"]
        if isinstance(step, int):
            gap = upper - lower - 1 if step > 0 else lower - upper - 1
            self.bound(gap) if isinstance(lower, int) or isinstance(upper, int) else self.fact(gap)

    def here(self, value: Value, depth: int = 4) -> bool | None:
        """A condition that stands further out, as far as it is known in this block."""
        known, op = self.value(value), value.producer
        if known is not None or op is None or not depth:
            return known
        if op.name in COMPARISONS:
            return self.compare(op)
        if op.name in _LOGIC:
            return _logic(op.name, [self.here(v, depth - 1) for v in op.operands])
        return None

    def compare(self, op: Op) -> bool | None:
        left, right = op.operands
        known = self.relations.get((op.name, left, right))
        if known is not None:
            return known
        a, b = self.size(left), self.size(right)
        if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
            return None
        return self.between(op.name, a, b)

    def between(self, relation: str, a: DimLike, b: DimLike) -> bool | None:
        """Whether `a relation b`: by what is known of just this difference, or by the facts of ranges and branches."""
        if relation in ("gt", "ge"):
            return self.between("lt" if relation == "gt" else "le", b, a)
        if relation in ("lt", "le"):
            strict = int(relation == "lt")
            if self.at_least(b - a, strict):
                return True
            if self.at_least(a - b, 1 - strict):
                return False
        elif self.at_least(b - a, 1) or self.at_least(a - b, 1):
            return relation == "ne"
        elif self.at_least(b - a, 0) and self.at_least(a - b, 0):
            return relation == "eq"
        return self.sizes.decide(relation, a, b) if self.facts and not self.numbered(a - b) else None

    def at_least(self, d: DimLike, least: int) -> bool:
        if isinstance(d, int):
            return d >= least
        known = self.bounds.get(d - d.constant)
        return known is not None and known + d.constant >= least

    def numbered(self, d: DimLike) -> bool:
        return any(name.startswith("%") for name in symbols(d))

    def case(self, region: Block, value: Value, case: int | None) -> None:
        start = len(self.undo)
        size = self.size(value)
        if case is not None and size is not None:
            for d in _gaps("eq", size, case):
                self.fact(d)
        self.block(region)
        self.forget(start)

    def size(self, value: Value, depth: int = 3) -> DimLike | None:
        """The size of an integer, or one that stands for what is not known of it, for proofs in this walk."""
        known = self.sizes.of(value)
        if known is not None or value.type.dtype != dtypes.I64 or value.type.ndim:
            return known
        op = value.producer
        if op is not None and op.name == "as_kind":
            return self.size(op.operands[0], depth)
        if op is not None and depth and op.name in ("add", "sub") and value.type.kind == "py_int":
            a, b = (self.size(v, depth - 1) for v in op.operands)
            if a is not None and b is not None:
                return a + b if op.name == "add" else a - b
        number = self.numbers.setdefault(value, len(self.numbers))
        return symbol(f"%{number}")

    def side(self, region: Block, predicate: Value, truth: bool) -> None:
        start = len(self.undo)
        self.assume(predicate, truth)
        self.block(region)
        self.forget(start)

    def tested(self, op: Op) -> None:
        """In the body the test holds, of what is carried."""
        test, body = op.regions
        condition = test.terminator.operands[0]
        stack = [condition]
        while stack:
            value = stack.pop()
            producer = value.producer
            if producer is None or producer.block is not test:
                if value.block is test:
                    self.assume(body.args[value.index], True)
                elif value.block is not test:
                    self.assume(value, True)
            elif producer.name == "as_kind" or producer.name in _AND:
                stack.extend(producer.operands)
            elif producer.name in COMPARISONS and all(_visible(v, test) for v in producer.operands):
                left, right = (body.args[v.index] if v.block is test else v for v in producer.operands)
                self.compared(producer.name, left, right, True)

    # What is known.

    def answers(self, op: Op) -> bool:
        """Replace a bool that is known."""
        if len(op.results) != 1 or op.result.type.ndim or op.result.type.dtype.kind != "b" or op.regions:
            return False
        truth = self.truth(op)
        if truth is None or op.name == "constant":
            return False
        replace_value(op.result, self.constant(op, op.result, truth), self.b)
        self.graph.erase(op)
        self.changed = True
        return True

    def truth(self, op: Op) -> bool | None:
        if op.name in COMPARISONS:
            return self.compare(op)
        return _logic(op.name, [self.value(v) for v in op.operands]) if op.name in _LOGIC else None

    def value(self, value: Value) -> bool | None:
        known = self.known.get(value)
        if known is None:
            number = constant_number(value)
            return None if number is None else bool(number)
        return known

    def constant(self, op: Op, like: Value, truth: bool) -> Value:
        """A constant in front of `op`, of the type of `like`."""
        b, t = self.b.ahead_of(op), like.type
        value = b.constant(truth if t.is_python else t.dtype.type(truth))
        if t.kind == "array":
            value = b.emit(REGISTRY["as_kind"], (value,), (t,), {"kind": "array"}).result
        return value

    def assume(self, value: Value, truth: bool) -> None:
        """Take a bool, and what it follows from, for known until `forget`."""
        if value in self.known or value.type.ndim:
            return
        op = value.producer
        if _is_constant(value):
            return
        self.known[value] = truth
        self.undo.append(lambda: self.known.pop(value))
        if op is None:
            return
        if op.name == "as_kind":
            self.assume(op.operands[0], truth)
        elif op.name in _NOT:
            self.assume(op.operands[0], not truth)
        elif op.name in (_AND if truth else _OR):
            for v in op.operands:
                self.assume(v, truth)
        elif op.name in COMPARISONS:
            self.compared(op.name, op.operands[0], op.operands[1], truth)

    def compared(self, name: str, left: Value, right: Value, truth: bool) -> None:
        total = left.type.dtype.kind not in "fcMm" and right.type.dtype.kind not in "fcMm"
        if not truth and (total or name in ("eq", "ne")):
            name, truth = _NEGATED[name], True
        holds, fails = _IMPLIED[name] if truth else ((), (name,))
        for relations, answer in ((holds, True), (fails, False)):
            for relation in relations:
                self.relate((relation, left, right), answer)
                self.relate((_SWAPPED[relation], right, left), answer)
        if truth and total:
            a, b = self.size(left), self.size(right)
            if a is not None and b is not None:
                for d in _gaps(name, a, b):
                    self.bound(d) if self.passing else self.fact(d)

    def relate(self, relation: _Relation, truth: bool) -> None:
        if relation not in self.relations:
            self.relations[relation] = truth
            self.undo.append(lambda: self.relations.pop(relation))

    def bound(self, d: DimLike) -> None:
        """d >= 0, in the block at hand, for comparisons of the same two sizes."""
        if isinstance(d, Dim):
            key = d - d.constant
            before = self.bounds.get(key)
            if before is None or before < -d.constant:
                self.bounds[key] = -d.constant
                self.undo.append(lambda: self.bounds.pop(key) if before is None else self.bounds.update({key: before}))

    def fact(self, d: DimLike) -> None:
        """d >= 0, in the block at hand, for all proofs."""
        self.bound(d)
        facts = self.graph.facts
        if not isinstance(d, Dim) or d in facts.nonnegative or self.facts >= MAX_FACTS or self.numbered(d):
            return
        name = as_symbol(d - d.constant)
        lower = facts.lower.get(name) if name is not None else None
        facts.assume_nonnegative(d)
        self.facts += 1

        def forget() -> None:
            self.facts -= 1
            del facts.nonnegative[d]
            if name is not None and lower is not None:
                facts.lower[name] = lower
            elif name is not None:
                facts.lower.pop(name, None)

        self.undo.append(forget)

    def forget(self, start: int) -> None:
        while len(self.undo) > start:
            self.undo.pop()()


def _gaps(name: str, a: DimLike, b: DimLike) -> Iterator[DimLike]:
    """What is not negative if `a name b`."""
    if name in ("lt", "le", "eq"):
        yield b - a - (name == "lt")
    if name in ("gt", "ge", "eq"):
        yield a - b - (name == "gt")


def _logic(name: str, values: list[bool | None]) -> bool | None:
    """What a logical operator gives for bools of which some are known."""
    if name == "as_kind":
        return values[0]
    if name in _NOT:
        return None if values[0] is None else not values[0]
    if name in _AND:
        return False if False in values else True if None not in values else None
    return True if True in values else False if None not in values else None


def _is_constant(value: Value) -> bool:
    return value.producer is not None and value.producer.name == "constant"


def _visible(value: Value, test: Block) -> bool:
    """Is the value an argument of the block, or from outside it?"""
    block = value.producer.block if value.producer is not None else value.block
    if block is test:
        return value.producer is None
    return True
