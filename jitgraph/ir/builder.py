"""The builder: emits ops into a block, with the casts that type rules ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.dims import Dim, DimLike, as_symbol, evaluate, split_linear, symbols
from jitgraph.ir.graph import Block, Graph, Guard, Op, Value
from jitgraph.ir.opdef import REGISTRY, OpDef
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.source import SourceLoc

_current: ContextVar[Builder | None] = ContextVar("jitgraph_builder", default=None)


def current() -> Builder | None:
    """The builder of the trace that runs in this context, if any."""
    return _current.get()


#: dtypes of Python's own numbers: a Python constant cast to one of them stays a Python number.
_HELD_BY_PYTHON = (dtypes.BOOL, dtypes.I64, dtypes.F64, dtypes.C128)
#: dtypes that NumPy makes of Python's int by way of Python's float.
_SINGLE = (dtypes.F32, dtypes.C64)

#: Each relation as (relation of a guard, operands swapped, negated guard).
_GUARDS: dict[str, tuple[Literal["==", "!=", ">=", "<"], bool, Literal["==", "!=", ">=", "<"]]] = {
    "==": ("==", False, "!="),
    "!=": ("!=", False, "=="),
    ">=": (">=", False, "<"),
    "<": ("<", False, ">="),
    "<=": (">=", True, "<"),
    ">": ("<", True, ">="),
}


#: How many symbols are replaced by their bounds, at most.
_BOUNDS = 8


class Undecided(Exception):  # noqa: N818  # an answer, not an error of the user's
    """A relation of sizes that is neither provable nor a matter of argument sizes: it needs a run-time form."""

    def __init__(self, relation: str, a: DimLike, b: DimLike) -> None:
        super().__init__(f"{a} {relation} {b}")
        self.relation, self.a, self.b = relation, a, b


class Builder:
    """Appends ops at an insertion point. `b.exp(x)`, `b.add(x, 1.0)`: every record is a method.

    Attributes:
        locate: answers the user's place for new ops (None: no location).
    """

    def __init__(self, graph: Graph, block: Block | None = None) -> None:
        self.graph = graph
        self.block = graph.body if block is None else block
        #: Ops go in front of this one; at the end of the block when None.
        self.before: Op | None = None
        self.loc: SourceLoc | None = None
        self.locate: Callable[[], SourceLoc | None] | None = None
        #: Answers of `decide`: (guard relation, left - right) to whether it holds.
        self._decided: dict[tuple[str, DimLike], bool] = {}

    def at_end(self, block: Block) -> Builder:
        self.block, self.before = block, None
        return self

    def ahead_of(self, op: Op) -> Builder:
        """Insert in front of `op`, with its location."""
        assert op.block is not None
        self.block, self.before, self.loc = op.block, op, op.loc
        return self

    def insert(self, op: Op) -> Op:
        if self.before is None:
            return self.block.append(op)
        return self.block.insert_before(self.before, op)

    def emit(
        self,
        defn: OpDef,
        operands: Sequence[Value],
        result_types: Sequence[TensorType],
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        name: str = "",
    ) -> Op:
        """Emit an op as it is: operands already cast, result types given."""
        loc = self.loc if self.locate is None else self.locate()
        op = self.insert(Op(defn, operands, result_types, attrs, regions, loc))
        if name:
            for result in op.results:
                result.name = name
        return op

    def apply(self, defn: OpDef, *operands: Any, **attrs: Any) -> tuple[Value, ...]:
        """Emit an op with the operands cast as its type rule asks; Python and NumPy scalars become constants.

        Raises:
            whatever the type rule raises for operands that NumPy refuses.
        """
        values = [x if isinstance(x, Value) else self.constant(x) for x in operands]
        if defn.name == "cast" and attrs["dtype"] in _SINGLE and values[0].type.kind == "py_int":
            values[0] = self.by_float(values[0])
        signature = defn.infer([v.type for v in values], attrs)
        if signature.operands:
            for i, dtype in enumerate(signature.operands):
                if dtype is not None and values[i].type.dtype != dtype:
                    values[i] = self.in_loop(self.cast_to(values[i], dtype))
        return tuple(self.emit(defn, values, signature.results, attrs).results)

    def in_loop(self, value: Value) -> Value:
        """`value`, an operand that its operator asked for in this dtype."""
        producer = value.producer
        if producer is not None and producer.name == "cast":
            self.graph.loop_casts.add(producer)
        return value

    def cast_to(self, value: Value, dtype: np.dtype) -> Value:
        """`value` in another dtype (as `astype`); constants are converted at once."""
        producer = value.producer
        if producer is not None and producer.name == "constant" and value.type.ndim == 0:
            number = producer.attrs["value"]
            if value.type.kind == "py_int" and dtype in _SINGLE:
                number = float(number)
            with np.errstate(all="ignore"):
                number = np.asarray(number).astype(dtype)[()]
            return self.constant(number.item() if value.type.is_python and dtype in _HELD_BY_PYTHON else number)
        return self.apply(REGISTRY["cast"], value, dtype=dtype)[0]

    def by_float(self, value: Value) -> Value:
        """Python's int as its float, from which NumPy makes a float32 of it; a size is exact in both."""
        exact = value.producer is not None and value.producer.name == "dim"
        return value if exact else self.cast_to(value, np.dtype(np.float64))

    def constant(self, value: Any) -> Value:
        """A constant: Python numbers keep their weak kind, NumPy scalars and small arrays their dtype."""
        return self.emit(REGISTRY["constant"], (), (constant_type(value),), {"value": value}).results[0]

    def prove(self, relation: str, a: DimLike, b: DimLike) -> bool | None:
        """Whether `a relation b` (`== != < <= > >=`) follows from facts and earlier decisions; None: unknown."""
        guard, swapped, _ = _GUARDS[relation]
        if swapped:
            a, b = b, a
        difference = a - b
        if isinstance(difference, int):
            return (
                (difference == 0) == (guard == "==") if guard in ("==", "!=") else (difference >= 0) == (guard == ">=")
            )
        known = self._decided
        facts = self.graph.facts
        if guard in ("==", "!="):
            equal = known.get(("==", difference))
            if equal is None:
                equal = known.get(("==", -difference))
            if equal is None and (facts.is_ne(a, b) or self._not_one(a, b) or self._not_one(b, a)):
                equal = known["==", difference] = False
            return equal if equal is None or guard == "==" else not equal
        at_least = known.get((">=", difference))
        if at_least is None:
            at_least = True if facts.is_le(b, a) else False if facts.is_lt(a, b) else None
            if at_least is not None:  # what is proven stays proven
                known[">=", difference] = at_least
        return at_least if at_least is None or guard == ">=" else not at_least

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool:
        """Whether `a relation b` holds: by proof, else as the example sizes say, under a new guard of the graph.

        An order that involves indices holds if it does at their bounds, which is again a matter of sizes.

        Raises:
            Undecided: not provable, and a symbol in it is no argument's size (or has no example value).
        """
        known = self.prove(relation, a, b)
        if known is not None:
            return known
        env = self._hints(a - b)
        if env is None:
            if self._holds_at_bounds(relation, a, b):
                return True
            raise Undecided(relation, a, b)
        guard, swapped, negated = _GUARDS[relation]
        if swapped:
            a, b = b, a
        difference = a - b
        value = evaluate(difference, env)
        truth = {"==": value == 0, "!=": value != 0, ">=": value >= 0, "<": value < 0}[guard]
        self._guard(guard if truth else negated, a, b)
        self.suppose(guard, a, b, truth)
        return truth

    def suppose(self, relation: str, a: DimLike, b: DimLike, holds: bool) -> None:
        """Note whether a relation holds in all that follows: a guard or a check sees to that."""
        guard, swapped, _ = _GUARDS[relation]
        kind: Literal["==", ">="] = "==" if guard in ("==", "!=") else ">="
        self._decided[kind, b - a if swapped else a - b] = holds == (guard == kind)

    def is_for_the_run(self, d: DimLike) -> bool:
        """Whether a size is none of the arguments' alone: what follows from it need not be reached in this call."""
        known = self.graph.symbols
        return any(name not in known or known[name].origin != "arg" for name in symbols(d))

    def _hints(self, d: DimLike) -> dict[str, int] | None:
        """Example values of the symbols, if all are sizes of arguments."""
        env: dict[str, int] = {}
        for name in symbols(d):
            symbol = self.graph.symbols.get(name)
            if symbol is None or symbol.origin != "arg" or symbol.hint is None:
                return None
            env[name] = symbol.hint
        return env

    def _guard(self, relation: Literal["==", "!=", ">=", "<"], a: DimLike, b: DimLike) -> None:
        difference = a - b
        if len(symbols(difference)) < len({**symbols(a), **symbols(b)}):  # an index on both sides is none of a guard's
            a, b = difference, 0
        if isinstance(a, Dim) and isinstance(b, int):  # n >= 2 rather than n - 2 >= 0
            constant = a.constant
            a, b = a - constant, b - constant
        loc = self.loc if self.locate is None else self.locate()
        self.graph.add_guard(Guard(relation, a, b, loc))

    def _holds_at_bounds(self, relation: str, a: DimLike, b: DimLike) -> bool:
        """Whether an order holds for all indices by a guard: `k < m` for k up to n - 1, if the example has n <= m.

        Only what holds is decided so: what fails is for the run to find, a loop may have no turn.
        """
        if relation in ("==", "!="):
            return False
        gap = a - b if relation in (">=", ">") else b - a
        worst: DimLike = gap - 1 if relation in ("<", ">") else gap
        facts, known = self.graph.facts, self.graph.symbols
        for _ in range(_BOUNDS):  # bounds may be indices of outer loops
            name = next((n for n in symbols(worst) if n in known and known[n].origin != "arg"), None)
            if name is None:
                env = self._hints(worst)
                if env is None or evaluate(worst, env) < 0:
                    return False
                self._guard(">=", worst, 0)
                return True
            split = split_linear(worst, name)
            if split is None or not isinstance(split[0], int) or split[0] == 0:
                return False
            bound = facts.lower.get(name) if split[0] > 0 else facts.upper.get(name)
            if bound is None:
                return False
            worst = split[0] * bound + split[1]
        return False

    def assume_equal(self, a: DimLike, b: DimLike) -> None:
        """Note that two sizes are equal by construction."""
        self._decided["==", a - b] = True

    def _not_one(self, a: DimLike, b: DimLike) -> bool:
        name = as_symbol(a) if b == 1 else None
        return name is not None and name in self.graph.symbols and self.graph.symbols[name].not_one

    def __getattr__(self, name: str) -> Callable[..., Any]:
        defn = REGISTRY.get(name)
        if defn is None:
            raise AttributeError(f"no operator {name!r}")

        def call(*operands: Any, **attrs: Any) -> Any:
            results = self.apply(defn, *operands, **attrs)
            return results[0] if len(results) == 1 else results

        return call


def is_long(number: Any) -> bool:
    """A Python int beyond int64: a constant that nothing computed by machine code can be."""
    return type(number) is int and not -(2**63) <= number < 2**63


def constant_type(value: Any) -> TensorType:
    """The type of a constant.

    Raises:
        TypeError: `value` is no number and no numeric array.
    """
    if isinstance(value, np.ndarray):
        return TensorType(value.dtype, value.shape)
    if isinstance(value, np.generic):
        return scalar_type(value.dtype)
    if isinstance(value, bool):
        return python_type("py_bool")
    if isinstance(value, int):
        if is_long(value):
            return TensorType(dtypes.U64 if 0 <= value < 2**64 else dtypes.I64, (), "py_int")
        return python_type("py_int")
    if isinstance(value, float):
        return python_type("py_float")
    if isinstance(value, complex):
        return python_type("py_complex")
    raise TypeError(f"no constant of type {type(value).__name__}")
