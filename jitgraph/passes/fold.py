"""Constant folding: ops on constants are evaluated, sizes that are known become numbers, decided comparisons bools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.builder import Builder, constant_type
from jitgraph.ir.dims import Dim, DimLike, symbols
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.interpret import as_kind
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import constant_number, replace_value
from jitgraph.ir.transform import Substitution
from jitgraph.ir.types import TensorType

#: Results with more elements stay code: a table in the object costs more than computing them.
MAX_ELEMENTS = 64
_STRUCTURED = frozenset(["view", "write", "reshape", "full", "iota", "copy", "constant", "dim"])
_COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])
_POLYNOMIAL = frozenset(["add", "sub", "mul"])


def fold(graph: Graph) -> bool:
    """Evaluate what is known; True if something was.

    One sweep in program order sees every chain of constants; symbols that turn out to be sizes ask for another.
    Functions whose compiled form is within some ulp of the
    true value are evaluated in float64 and rounded, so that folding is at least as near.
    """
    changed = False
    while True:
        folder = _Folder(graph)
        for op in graph.walk():
            changed |= folder.one(op)
        if not folder.bind_known():
            return changed
        changed = True


class _Folder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.env: dict[str, DimLike] = {}
        self.binds: list[Op] = []

    def one(self, op: Op) -> bool:
        name = op.defn.name
        if name == "constant" or op.regions:
            return False
        if name == "bind":
            return self.bind(op)
        if name == "dim":
            value = op.attrs["value"]
            return isinstance(value, int) and self.constant(op, value)
        if Trait.PURE not in op.defn.traits or not op.operands or len(op.results) != 1:
            return False
        if name in _COMPARISONS and self.comparison(op):
            return True
        if name in _POLYNOMIAL and self.polynomial(op):
            return True
        if name in ("cast", "as_kind") and self.dim_cast(op):
            return True
        if name in _STRUCTURED or Trait.BINDS in op.defn.traits:
            return False
        if all(v.producer is not None and v.producer.name == "constant" for v in op.operands):
            return self.evaluate(op)
        return Trait.ELEMENTWISE in op.defn.traits and self.uniform(op)

    def uniform(self, op: Op) -> bool:
        """f(full(a), full(b)) = full(f(a, b))"""
        t = op.result.type
        if t.ndim == 0 or not t.layout.is_c:
            return False
        for v in op.operands:  # the cheap test first
            if v.producer is None or v.producer.name not in ("constant", "full", "view"):
                return False
        numbers = [constant_number(v) for v in op.operands]
        if any(x is None for x in numbers):
            return False
        value = self.value(op, numbers)
        if value.shape:
            return False
        b = self.b.ahead_of(op)
        replace_value(op.result, b.full(b.constant(value[()]), shape=t.shape, dtype=t.dtype), b)
        self.graph.erase(op)
        return True

    def value(self, op: Op, operands: Sequence[Any]) -> np.ndarray:
        """The op on NumPy operands; functions with a bound in ulp are rounded from float64."""
        dtype = op.result.type.dtype
        with np.errstate(all="ignore"):
            if op.defn.ulp and dtype == dtypes.F32:
                operands = [np.asarray(x, np.float64) if np.asarray(x).dtype == dtypes.F32 else x for x in operands]
            return np.asarray(op.defn.evaluate(*operands, **op.attrs)).astype(dtype)

    def constant(self, op: Op, value: Any) -> bool:
        self.b.ahead_of(op)
        t = op.result.type
        held = as_kind(value, t)
        if t.kind == "array" or constant_type(held) != t:
            held = np.asarray(held, t.dtype) if t.kind == "array" else held
        made = self.b.emit(REGISTRY["constant"], (), (t,), {"value": held}, name=op.result.name)
        replace_value(op.result, made.result, self.b)
        self.graph.erase(op)
        return True

    def evaluate(self, op: Op) -> bool:
        """An op whose operands are all constants."""
        t = op.result.type
        sizes = [d for d in t.shape if isinstance(d, int)]
        if len(sizes) < t.ndim or any(isinstance(v, Dim) for v in op.attrs.values()):
            return False
        if math.prod(sizes) > MAX_ELEMENTS or not (t.layout.is_c or t.ndim == 0):
            return False
        operands = [v.producer.attrs["value"] for v in op.operands if v.producer is not None]
        value = self.value(op, [_typed(x, v.type) for x, v in zip(operands, op.operands, strict=True)])
        return value.shape == t.shape and self.constant(op, value)

    # Sizes.

    def size(self, value: Value) -> DimLike | None:
        """The size or number that an integer value is known to be."""
        producer = value.producer
        if producer is None or value.type.ndim or value.type.dtype != dtypes.I64:
            return None
        if producer.name == "dim":
            known: DimLike = producer.attrs["value"]
            return known
        if producer.name == "constant":
            return int(producer.attrs["value"])
        return None

    def comparison(self, op: Op) -> bool:
        """A comparison of sizes that the facts decide."""
        if op.result.type.ndim or op.operands[0].type.dtype != dtypes.I64:
            return False
        a, b = self.size(op.operands[0]), self.size(op.operands[1])
        if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
            return False
        answer = self.decide(op.name, a, b)
        return answer is not None and self.constant(op, answer)

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool | None:
        facts = self.graph.facts
        if relation in ("gt", "ge"):
            return self.decide("lt" if relation == "gt" else "le", b, a)
        if relation == "lt":
            return True if facts.is_lt(a, b) else False if facts.is_le(b, a) else None
        if relation == "le":
            return True if facts.is_le(a, b) else False if facts.is_lt(b, a) else None
        equal = True if a == b else False if facts.is_ne(a, b) or self.not_one(a, b) else None
        return equal if equal is None or relation == "eq" else not equal

    def not_one(self, a: DimLike, b: DimLike) -> bool:
        """Is one the size of an argument that is never 1, and the other 1?"""
        symbol = self.graph.symbols.get(str(a) if b == 1 else str(b) if a == 1 else "")
        return symbol is not None and symbol.not_one

    def polynomial(self, op: Op) -> bool:
        """dim(a) + dim(b) = dim(a + b), likewise - and *: sizes are exact modulo 2**64, as int64 is."""
        t = op.result.type
        if t.ndim or t.dtype != dtypes.I64:
            return False
        a, b = self.size(op.operands[0]), self.size(op.operands[1])
        if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
            return False
        value = a + b if op.name == "add" else a - b if op.name == "sub" else a * b
        self.dim(op, value)
        return True

    def dim_cast(self, op: Op) -> bool:
        """cast(dim(a), int64) = as_kind(dim(a), py_int) = dim(a)"""
        producer = op.operands[0].producer
        if producer is None or producer.name != "dim" or op.result.type.dtype != dtypes.I64 or op.result.type.ndim:
            return False
        if op.result.type.kind != "py_int":  # a `dim` is a Python int; what it becomes later stays a cast of it
            return False
        self.dim(op, producer.attrs["value"])
        return True

    def dim(self, op: Op, value: DimLike) -> None:
        if isinstance(value, int):
            self.constant(op, value)
            return
        self.b.ahead_of(op)
        kind = op.result.type.kind
        (made,) = self.b.apply(REGISTRY["dim"], value=value)
        if kind != "py_int":
            (made,) = self.b.apply(REGISTRY["as_kind"], made, kind=kind)
        made.name = op.result.name
        replace_value(op.result, made, self.b)
        self.graph.erase(op)

    def bind(self, op: Op) -> bool:
        """A symbol bound to a size or a number is that: replaced everywhere when the sweep is over."""
        value = self.size(op.operands[0])
        if value is None:
            return False
        name = op.attrs["symbol"]
        if isinstance(value, Dim):
            value = Substitution(self.env).dim(value)
            if name in symbols(value):
                return False
        self.env[name] = value
        self.binds.append(op)
        return False

    def bind_known(self) -> bool:
        if not self.binds:
            return False
        for op in self.binds:
            self.graph.erase(op)
        Substitution(self.env).apply_graph(self.graph)
        for name in self.env:
            del self.graph.symbols[name]
        return True


def _typed(value: Any, t: TensorType) -> Any:
    """A constant as the dtype it is computed in, so that Python's unbounded numbers cannot leak in."""
    return np.asarray(value).astype(t.dtype)[()] if t.ndim == 0 else value
