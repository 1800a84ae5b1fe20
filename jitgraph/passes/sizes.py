"""What integers of the graph are known to be: sizes (`DimLike`), and which of two is the larger one."""

from __future__ import annotations

from collections.abc import Mapping

from jitgraph import dtypes
from jitgraph.ir.dims import DimLike, symbol, symbols
from jitgraph.ir.graph import Graph, Op, Value

COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])


class Sizes:
    """Sizes of int64 scalars, as a walk in program order meets them.

    Attributes:
        names: values that a `bind` before has made a symbol; `leave` forgets those of a block that ends.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[Value, DimLike] = {}

    def bound(self, op: Op) -> Value | None:
        """Note what a `bind` names; the value if it had no name yet, for `leave`."""
        value = op.operands[0]
        if value in self.names or value.type.dtype != dtypes.I64:
            return None
        self.names[value] = symbol(op.attrs["symbol"])
        return value

    def leave(self, values: list[Value]) -> None:
        for value in values:
            del self.names[value]

    def exact(self, value: Value) -> DimLike | None:
        """The size that a value is as a Python int: arithmetic with it is arithmetic of sizes."""
        producer = value.producer
        if value.type.ndim or value.type.dtype != dtypes.I64:
            return None
        if producer is not None:
            if producer.name == "dim":
                known: DimLike = producer.attrs["value"]
                return known
            if producer.name == "constant":
                return int(producer.attrs["value"])
        return self.names.get(value) if value.type.kind == "py_int" else None

    def of(self, value: Value) -> DimLike | None:
        """The size or number that an integer is known to be, whatever its kind."""
        while True:
            known = self.exact(value)
            if known is None:
                known = self.names.get(value)
            producer = value.producer
            if known is not None or producer is None or producer.name != "as_kind":
                return known
            value = producer.operands[0]

    def is_named(self, value: Value) -> bool:
        """Whether what is known of a value is its name."""
        while value not in self.names and value.producer is not None and value.producer.name == "as_kind":
            value = value.producer.operands[0]
        return value in self.names

    def compare(self, op: Op) -> bool | None:
        """Whether a comparison of two sizes holds, as far as the facts decide it."""
        if op.result.type.ndim or op.operands[0].type.dtype != dtypes.I64:
            return None
        a, b = self.of(op.operands[0]), self.of(op.operands[1])
        if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
            return None
        return self.decide(op.name, a, b)

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool | None:
        """Whether `a relation b`, by proof; None where the facts do not say."""
        facts = self.graph.facts
        if relation in ("gt", "ge"):
            return self.decide("lt" if relation == "gt" else "le", b, a)
        if relation == "lt":
            return True if facts.is_lt(a, b) else False if facts.is_le(b, a) else None
        if relation == "le":
            return True if facts.is_le(a, b) else False if facts.is_lt(b, a) else None
        equal = True if a == b else False if facts.is_ne(a, b) or self._not_one(a, b) else None
        return equal if equal is None or relation == "eq" else not equal

    def _not_one(self, a: DimLike, b: DimLike) -> bool:
        """Is one the size of an argument that is never 1, and the other 1?"""
        found = self.graph.symbols.get(str(a) if b == 1 else str(b) if a == 1 else "")
        return found is not None and found.not_one


def fits(graph: Graph, d: DimLike, loops: Mapping[str, Op]) -> bool:
    """Whether a size is far from the ends of int64 wherever it can be met.

    Sizes of arrays are, and so is an index that counts in small steps from a number or such a size: no run makes 2**50
    turns.

    Args:
        loops: the loops around, by index.
    """
    if isinstance(d, int):
        return abs(d) < FAR
    return len(d.terms) <= _TERMS and all(
        abs(factor) < (_FACTOR if mono else FAR)
        and len(mono) <= 1
        and all(atom.op == "sym" and _counts(graph, atom.name, loops) for atom in mono)
        for mono, factor in d.terms
    )


#: What counts in steps below `SMALL` stays below `FAR` * `SMALL`: a run makes no `FAR` steps.
FAR, SMALL = 2**50, 2**4
_FACTOR, _TERMS = 2**6, 4


def _counts(graph: Graph, name: str, loops: Mapping[str, Op]) -> bool:
    """A size of an argument, or an index that starts at a number or at such a size."""
    found = graph.symbols.get(name)
    if found is None or found.origin == "value":
        return False
    if found.origin == "arg":
        return found.axis >= 0
    loop = loops.get(name)
    if loop is None:
        return False
    start, step = loop.attrs["lower"], loop.attrs["step"]
    if not isinstance(step, int) or abs(step) > SMALL:
        return False
    if isinstance(start, int):
        return abs(start) < FAR
    return all(abs(factor) == 1 and len(mono) == 1 for mono, factor in start.terms) and all(
        s in graph.symbols and graph.symbols[s].origin == "arg" and graph.symbols[s].axis >= 0 for s in symbols(start)
    )
