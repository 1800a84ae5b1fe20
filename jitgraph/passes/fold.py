"""Constant folding: ops on constants are evaluated, sizes that are known become numbers, decided comparisons bools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.builder import Builder, constant_type
from jitgraph.ir.dims import Dim, DimLike, floordiv, mod, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.interpret import as_kind
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import constant_number, replace_value
from jitgraph.ir.transform import Substitution
from jitgraph.ir.types import TensorType
from jitgraph.passes.sizes import COMPARISONS, Sizes, fits

#: Results with more elements stay code: a table in the object costs more than computing them.
MAX_ELEMENTS = 64
_STRUCTURED = frozenset(["view", "write", "reshape", "full", "iota", "copy", "constant", "dim"])
_ROUNDED = frozenset(["floordiv", "mod", "shift_right"])
_POLYNOMIAL = frozenset(["add", "sub", "mul", *_ROUNDED])
_OVERFLOWS = frozenset(["add_overflows", "sub_overflows", "mul_overflows"])


def fold(graph: Graph) -> bool:
    """Evaluate what is known; True if something was.

    One sweep in program order sees every chain of constants; symbols that turn out to be sizes ask for another.
    Functions whose compiled form is within some ulp of the
    true value are evaluated in float64 and rounded, so that folding is at least as near.
    """
    changed = False
    while True:
        folder = _Folder(graph)
        changed |= folder.block(graph.body)
        if not folder.bind_known():
            return changed
        changed = True


class _Folder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.env: dict[str, DimLike] = {}
        self.binds: list[Op] = []
        self.sizes = Sizes(graph)
        self.loops: dict[str, Op] = {}

    def block(self, block: Block) -> bool:
        changed = False
        named: list[Value] = []
        for op in block.ops():
            if op.name == "bind":
                self.bind(op, named)
                continue
            changed |= self.one(op)
            if op.name == "for":
                self.loops[op.attrs["index"]] = op
            for region in op.regions:
                changed |= self.block(region)
        self.sizes.leave(named)
        return changed

    def one(self, op: Op) -> bool:
        name = op.defn.name
        if name == "constant" or op.regions:
            return False
        if name == "dim":
            value = op.attrs["value"]
            return isinstance(value, int) and self.constant(op, value)
        if Trait.PURE not in op.defn.traits or not op.operands or len(op.results) != 1:
            return False
        if name in COMPARISONS and self.comparison(op):
            return True
        if name in _POLYNOMIAL and self.polynomial(op):
            return True
        if name in _OVERFLOWS and self.overflow(op):
            return True
        if name in ("cast", "as_kind") and self.dim_cast(op):
            return True
        if name == "where" and self.choice(op):
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
        value = self.value(op, [_spread(x, v.type) for x, v in zip(numbers, op.operands, strict=True)])
        b = self.b.ahead_of(op)
        replace_value(op.result, b.full(b.constant(value.flat[0]), shape=t.shape, dtype=t.dtype), b)
        self.graph.erase(op)
        return True

    def value(self, op: Op, operands: Sequence[Any]) -> np.ndarray:
        """The op on NumPy operands; functions with a bound in ulp are rounded from float64."""
        dtype = op.result.type.dtype
        with np.errstate(all="ignore"):
            if op.defn.ulp and dtype == dtypes.F32:
                operands = [x.astype(np.float64) if getattr(x, "dtype", None) == dtypes.F32 else x for x in operands]
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

    def comparison(self, op: Op) -> bool:
        """A comparison of sizes that the facts decide."""
        answer = self.sizes.compare(op)
        return answer is not None and self.constant(op, answer)

    def overflow(self, op: Op) -> bool:
        """add_overflows(dim(a), dim(b)) = false where a + b stays far from the ends of int64; likewise - and *"""
        a, b = map(self.sizes.exact, op.operands)
        if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
            return False
        total = a + b if op.name == "add_overflows" else a - b if op.name == "sub_overflows" else a * b
        return fits(self.graph, total, self.loops) and self.constant(op, False)

    def polynomial(self, op: Op) -> bool:
        """dim(a) + dim(b) = dim(a + b), likewise -, *, // and %: sizes are exact modulo 2**64, as int64 is."""
        t = op.result.type
        if t.ndim or t.dtype != dtypes.I64:
            return False
        a, b = map(self.sizes.exact, op.operands)
        if a is None or b is None or (isinstance(a, int) and isinstance(b, int)):
            return False
        if op.name in _ROUNDED:
            if not isinstance(b, int) or not 0 < b < 32:
                return False
            value = mod(a, b) if op.name == "mod" else floordiv(a, b if op.name == "floordiv" else 2**b)
        else:
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

    def choice(self, op: Op) -> bool:
        """where(true, a, b) = a, where(false, a, b) = b for scalars, so that a size is seen through it at once"""
        if op.result.type.ndim:
            return False
        number = constant_number(op.operands[0])
        if number is None:
            return False
        self.b.ahead_of(op)
        replace_value(op.result, op.operands[1 if number else 2], self.b)
        self.graph.erase(op)
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

    def bind(self, op: Op, named: list[Value]) -> None:
        """A symbol bound to a size or a number is that: replaced everywhere when the sweep is over.

        What has no size yet is a size from here on: the symbol. A second symbol of it, of which more is known, stays.
        """
        value = self.sizes.of(op.operands[0])
        name = op.attrs["symbol"]
        if value is None:
            known = self.sizes.bound(op)
            if known is not None:
                named.append(known)
            return
        value = Substitution(self.env).dim(value)
        if isinstance(value, Dim):
            if name in symbols(value):
                return
            if self.sizes.is_named(op.operands[0]) and not self.as_bounded(name, value):
                return
        self.env[name] = value
        self.binds.append(op)

    def as_bounded(self, name: str, value: Dim) -> bool:
        """Whether all that is known of the symbol is known of `value`."""
        facts = self.graph.facts
        lower, upper = facts.lower.get(name), facts.upper.get(name)
        return (lower is None or facts.is_le(lower, value)) and (upper is None or facts.is_le(value, upper))

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
    """A constant as it is computed: arrays, NumPy's scalars and Python's complex numbers have bits of their own.

    Python's unbounded integers cannot leak in.
    """
    if t.kind == "py_complex":
        return complex(value)
    typed = np.asarray(value).astype(t.dtype, copy=False)
    return typed if t.kind == "array" else typed[()]


#: So many elements stand for an array of one number: enough for the vector loops of NumPy.
_VECTOR = 64


def _spread(number: Any, t: TensorType) -> Any:
    """What an operand that is `number` throughout is computed as."""
    return np.full(_VECTOR, number) if t.ndim else _typed(number, t)
