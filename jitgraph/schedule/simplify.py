"""Forward simplification of one function: constants, equal scalars, conditions that loops and branches decide.

One walk with what holds at each point: facts on dims (a loop index lies in its range, a check has passed), truths of
conditions, and a table of the scalars computed already on the way here. Symbols bound to a dim that is known become
that dim, so that addresses are affine in the loop indices again.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Bind,
    Carry,
    Check,
    Const,
    DimValue,
    For,
    If,
    Let,
    Load,
    Operand,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import assigned
from jitgraph.ir.dims import Dim, DimLike, Facts, symbol, symbols
from jitgraph.ir.scalar_eval import NumpyScalar
from jitgraph.schedule.magnitudes import bound_of, merged, within
from jitgraph.schedule.statements import Names, Renaming, rebuilt
from jitgraph.schedule.wraps import unwrapped

TRUE, FALSE = Const(True, dtypes.BOOL), Const(False, dtypes.BOOL)
#: Primitives that are folded where all operands are constants; what they give has one meaning on every machine.
_FOLDED = frozenset(
    {
        *("add", "sub", "mul", "neg", "and_", "or_", "xor", "not_", "cmp", "select", "cast"),
        *("fdiv", "fabs", "sqrt", "floor", "ceil", "trunc", "rint", "idiv", "irem", "shl", "shr"),
    }
)
#: More facts than this are not kept: each question goes through all of them.
FACTS_KEPT = 48
_COMMUTATIVE = frozenset(("add", "mul", "and_", "or_", "xor", "add_overflows", "mul_overflows"))
_NEUTRAL = frozenset(("add", "sub", "mul", "or_", "xor"))
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


class State:
    """What holds at one point: a child sees what holds around it, and forgets its own at its end.

    Attributes:
        known: the scalar that holds the value of a key.
        truths: conditions, by name, that have a known value.
        dims: the dim that an int64 scalar equals.
    """

    def __init__(self, facts: Facts, outer: State | None = None) -> None:
        self.facts = facts
        self.outer = outer
        self.known: dict[Any, Operand] = {}
        self.truths: dict[str, bool] = {}
        self.bounds: dict[str, tuple[float, bool]] = {}
        self.dims: dict[str, DimLike] = {}

    def child(self) -> State:
        return State(self.facts.copy(), self)

    def around(self) -> Iterator[State]:
        """This state and those around it, innermost first."""
        at: State | None = self
        while at is not None:
            yield at
            at = at.outer

    def find(self, key: Any) -> Operand | None:
        return next((at.known[key] for at in self.around() if key in at.known), None)

    def dim(self, name: str) -> DimLike | None:
        return next((at.dims[name] for at in self.around() if name in at.dims), None)

    def truth(self, name: str) -> bool | None:
        return next((at.truths[name] for at in self.around() if name in at.truths), None)

    def all_bounds(self) -> Mapping[str, tuple[float, bool]]:
        """Bounds on the magnitudes of floats, by name, with whether they are strict."""
        return ChainMap(*(at.bounds for at in self.around()))


class Simplifier:
    """Simplifies the body of one function.

    Attributes:
        meaning: how a condition was computed.
    """

    def __init__(self, facts: Facts, names: Names | None = None) -> None:
        self.state = State(facts)
        self.names = names
        self.r = Renaming()
        self.meaning: dict[str, Let] = {}
        self.sums: dict[str, Let] = {}
        self.floats: dict[str, Let] = {}
        #: What the loops around carry.
        self.waited: set[str] = set()
        self.over_lanes = False
        self.evaluate = NumpyScalar()

    # --- walks ------------------------------------------------------------------------------------------------------

    def body(self, body: Iterable[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in body:
            self.statement(s, out)
        return out

    def scoped(self, body: Iterable[Stmt], state: State) -> list[Stmt]:
        """A body whose knowledge ends with it."""
        outer, self.state = self.state, state
        try:
            return self.body(body)
        finally:
            self.state = outer

    def statement(self, s: Stmt, out: list[Stmt]) -> None:
        handler = getattr(self, "_" + type(s).__name__.lower(), None)
        if handler is not None:
            handler(s, out)
        else:
            out.extend(rebuilt([s], self.r))

    # --- scalars ----------------------------------------------------------------------------------------------------

    def _let(self, s: Let, out: list[Stmt]) -> None:
        args = tuple(self.operand(x) for x in s.args)
        found = self.value(s.op, args, s.attr, s.var.dtype)
        if found is not None:
            self.r.vars[s.var.name] = found
            return
        op, args, attr = self.canonical(s.op, args, s.attr)
        if op == "select" and self.off_chain(s.var, args, out):
            return
        key = (op, args, attr, s.var.dtype)
        known = self.state.find(key)
        if known is not None:
            self.r.vars[s.var.name] = known
            return
        let = Let(s.var, op, args, attr)
        self.state.known[key] = s.var
        if s.var.dtype == dtypes.BOOL:
            self.meaning[s.var.name] = let
        if s.var.dtype.kind in "fb":
            self.floats[s.var.name] = let
        if op in _NEUTRAL and s.var.dtype != dtypes.BOOL:
            self.sums[s.var.name] = let
        out.append(let)

    def off_chain(self, var: Var, args: tuple[Operand, ...], out: list[Stmt]) -> bool:
        """`select c, x + y, x` as `x + select c, y, neutral`, where x is carried by a loop and so waited for: the
        choice is made beside it. -0.0 is neutral for sums of floats, 0.0 for differences, with signs of zero and NaN.
        """
        if self.names is None or not self.waited or var.dtype.kind != "f":
            return False  # a choice of integers is as quick as a sum
        condition, yes, no = args
        for flipped, (changed, kept) in enumerate(((yes, no), (no, yes))):
            let = self.sums.get(changed.name) if isinstance(changed, Var) else None
            if let is None or not isinstance(kept, Var) or kept.name not in self.waited:
                continue
            left, right = let.args
            if left != kept and (right != kept or let.op not in _COMMUTATIVE):
                continue
            other = right if left == kept else left
            if other == kept:
                continue
            neutral = Const(_neutral(let.op, var.dtype), var.dtype)
            beside = self.names.var(var.dtype)
            sides = (neutral, other) if flipped else (other, neutral)
            out.append(Let(beside, "select", (condition, *sides)))
            made = Let(var, let.op, (kept, beside) if left == kept else (beside, kept))
            self.sums[var.name] = made
            out.append(made)
            return True
        return False

    def operand(self, x: Operand) -> Operand:
        x = self.r.operand(x)
        if isinstance(x, Var) and x.dtype == dtypes.BOOL:
            truth = self.state.truth(x.name)
            if truth is not None:
                return TRUE if truth else FALSE
        return x

    def value(self, op: str, args: tuple[Operand, ...], attr: str, dtype: np.dtype) -> Operand | None:
        """What a primitive gives, where that is an operand or a constant."""
        if op in _FOLDED and all(isinstance(x, Const) for x in args):
            folded = self.fold(op, [x for x in args if isinstance(x, Const)], attr, dtype)
            if folded is not None:
                return folded
        if op == "cmp":
            return self.compare(attr, *args)
        if op == "select":
            condition, yes, no = args
            if isinstance(condition, Const):
                return yes if condition.value else no
            if yes == no:
                return yes
            if yes == TRUE and no == FALSE:
                return condition
        elif op == "cast" and args[0].dtype == dtype:
            return args[0]
        elif dtype == dtypes.BOOL:
            return _bools(op, args)
        elif dtype.kind in "iu":
            return _integers(op, args, dtype)
        return None

    def fold(self, op: str, args: list[Const], attr: str, dtype: np.dtype) -> Const | None:
        """The constant that a primitive of constants gives, or None where it is undefined or not a number."""
        values = [np.asarray(x.value).astype(x.dtype)[()] for x in args]
        if op in ("idiv", "irem") and (values[1] == 0 or (values[1] == -1 and dtype.kind == "i")):
            return None
        if op in ("shl", "shr") and not 0 <= int(values[1]) < 8 * dtype.itemsize:
            return None
        with np.errstate(all="ignore"):
            if op == "cmp":
                found = self.evaluate.cmp(attr, *values)
            elif op == "cast":
                if values[0].dtype.kind == "f" and dtype.kind in "iu":
                    return None
                found = self.evaluate.cast(values[0], dtype)
            else:
                found = getattr(self.evaluate, op)(*values)
        if found != found:  # noqa: PLR0124 - the sign and payload of NaN are the machine's
            return None
        return Const(found.item(), dtype)

    def dim(self, x: Operand) -> DimLike | None:
        """The dim that an int64 operand equals."""
        if x.dtype != dtypes.I64:
            return None
        if isinstance(x, Const):
            return int(x.value)
        return self.state.dim(x.name)

    def compare(self, predicate: str, x: Operand, y: Operand) -> Operand | None:
        """A comparison that the facts decide."""
        if x == y and x.dtype.kind != "f":
            return TRUE if predicate in ("eq", "le", "ge") else FALSE
        if x.dtype.kind == "f":
            return TRUE if within(predicate, x, y, self.state.all_bounds(), self.floats) else None
        a, b = self.dim(x), self.dim(y)
        if a is None or b is None:
            return None
        return decided(self.state.facts, predicate, a, b)

    def canonical(self, op: str, args: tuple[Operand, ...], attr: str) -> tuple[str, tuple[Operand, ...], str]:
        """One way to write equal conditions, and products and sums of integers."""
        if op == "select" and args[1].dtype == dtypes.BOOL:
            condition, yes, no = args
            if no in (FALSE, condition):
                return "and_", (condition, yes), ""
            if yes in (TRUE, condition):
                return "or_", (condition, no), ""
        if op in _COMMUTATIVE and isinstance(args[0], Const) and args[0].dtype.kind != "f":
            return op, args[::-1], attr
        return op, args, attr

    def _dimvalue(self, s: DimValue, out: list[Stmt]) -> None:
        d = self.r.dim(s.dim)
        if isinstance(d, int):
            self.r.vars[s.var.name] = Const(d, dtypes.I64)
            return
        known = self.state.find(d)
        if known is not None:
            self.r.vars[s.var.name] = known
            return
        self.state.known[d] = s.var
        self.state.dims[s.var.name] = d
        out.append(DimValue(s.var, d))

    def _bind(self, s: Bind, out: list[Stmt]) -> None:
        value = self.operand(s.value)
        d = self.dim(value)
        if d is not None:
            self.r.set_dim(s.symbol, d)
            return
        self.r.forget_dim(s.symbol)
        if isinstance(value, Var):
            self.state.dims[value.name] = symbol(s.symbol)
        out.append(Bind(s.symbol, value))

    # --- control ----------------------------------------------------------------------------------------------------

    def assume(self, x: Operand, truth: bool) -> None:
        """From here on a condition has this value."""
        if not isinstance(x, Var):
            return
        state = self.state
        state.truths[x.name] = truth
        let = self.meaning.get(x.name)
        if let is None:
            return
        if let.op == "not_":
            self.assume(let.args[0], not truth)
        elif let.op == ("and_" if truth else "or_"):
            for part in let.args:
                self.assume(part, truth)
        elif let.op == "cmp":
            bound = bound_of(x, self.floats) if truth else None
            if bound is not None:
                state.bounds[bound[0].name] = bound[1:]
            a, b = self.dim(let.args[0]), self.dim(let.args[1])
            if a is not None and b is not None:
                learn(state.facts, let.attr if truth else _OPPOSITE.get(let.attr, ""), a, b)

    def _check(self, s: Check, out: list[Stmt]) -> None:
        condition = self.operand(s.condition)
        if condition == TRUE:
            return
        check = Check(condition, s.site, tuple(self.operand(x) for x in s.values))
        if not merged(check, out, self.floats):
            out.append(check)
        self.assume(condition, True)

    def decision(self, x: Operand) -> Operand:
        """A condition, or its value if what is known here decides the comparison that it was computed by."""
        x = self.operand(x)
        let = self.meaning.get(x.name) if isinstance(x, Var) else None
        if let is None or let.op != "cmp":
            return x
        found = self.compare(let.attr, *let.args)
        return x if found is None else found

    def _if(self, s: If, out: list[Stmt]) -> None:
        condition = self.decision(s.condition)
        if isinstance(condition, Const):
            taken = bool(condition.value)
            self.statements(s.then if taken else s.otherwise, out)
            for m in s.merges:
                self.r.vars[m.result.name] = self.operand(m.then if taken else m.otherwise)
            return
        sides = []
        for truth, body in ((True, s.then), (False, s.otherwise)):
            outer, self.state = self.state, self.state.child()
            self.assume(condition, truth)
            made = rebuilt(body, self.r) if s.cold and not truth else self.body(body)
            values = [self.operand(m.then if truth else m.otherwise) for m in s.merges]
            sides.append((made, values))
            self.state = outer
        merges = []
        for m, yes, no in zip(s.merges, sides[0][1], sides[1][1], strict=True):
            if yes == no:
                self.r.vars[m.result.name] = yes
            else:
                merges.append(type(m)(m.result, yes, no))
        if sides[0][0] or sides[1][0] or merges:
            out.append(If(condition, sides[0][0], sides[1][0], merges, s.cold))

    def statements(self, body: Iterable[Stmt], out: list[Stmt]) -> None:
        for s in body:
            self.statement(s, out)

    def _for(self, s: For, out: list[Stmt]) -> None:
        lower, upper, step = self.r.dim(s.lower), self.r.dim(s.upper), self.r.dim(s.step)
        upper = _plain_upper(lower, upper, step)
        trips = upper - lower
        if isinstance(trips, int) and isinstance(step, int) and (trips <= 0 if step > 0 else trips >= 0):
            for c in s.carried:
                self.r.vars[c.result.name] = self.operand(c.init)
            return
        carried = self.carried(s)
        state = self.state.child()
        outside = self.r.dims.get(s.symbol)
        self.r.forget_dim(s.symbol)
        index_range(state.facts, s.symbol, lower, upper, step)
        around, self.over_lanes = self.over_lanes, self.over_lanes or s.role != "serial"
        body = self.scoped(s.body, state)
        self.over_lanes = around
        self.close(carried)
        if outside is not None:
            self.r.set_dim(s.symbol, outside)
        out.append(For(s.symbol, lower, upper, body, step, s.role, carried, s.lanes, s.interleave))

    def carried(self, s: For | While) -> list[Carry]:
        self.waited.update(c.inner.name for c in s.carried)
        return [Carry(c.inner, self.operand(c.init), c.next, c.result) for c in s.carried]

    def close(self, carried: list[Carry]) -> None:
        for c in carried:
            c.next = self.r.operand(c.next)

    def _while(self, s: While, out: list[Stmt]) -> None:
        carried = self.carried(s)
        outer, self.state = self.state, self.state.child()
        test = self.body(s.test)
        condition = self.operand(s.condition)
        self.assume(condition, True)
        body = self.body(s.body)
        self.state = outer
        self.close(carried)
        out.append(While(test, condition, body, carried))

    def _reduce(self, s: Reduce, out: list[Stmt]) -> None:
        state = self.state.child()
        made = rebuilt([s], self.r)[0]
        assert isinstance(made, Reduce)
        index_range(state.facts, made.symbol, 0, made.extent, 1)
        made.body = self.scoped(made.body, state)
        for p in made.parts:
            p.value = self.r.operand(p.value)
            p.factor = None if p.factor is None else self.r.operand(p.factor)
        out.append(made)

    def _load(self, s: Load, out: list[Stmt]) -> None:
        out.append(Load(s.var, self.r.buffer(s.buffer), self.index(s.index, out), s.imag))

    def _store(self, s: Store, out: list[Stmt]) -> None:
        imag = None if s.imag is None else self.operand(s.imag)
        index = self.index(s.index, out)
        out.append(Store(self.r.buffer(s.buffer), index, self.operand(s.value), imag))

    def index(self, index: tuple[DimLike, ...], out: list[Stmt]) -> tuple[DimLike, ...]:
        """An index without needless remainders."""
        if self.names is None or self.over_lanes:
            return self.r.index(index)
        return tuple(unwrapped(self.r.dim(d), self.state, self.names, out) for d in index)


def _neutral(op: str, dtype: np.dtype) -> float | int:
    """What `op` on the right does not change anything with."""
    if op == "mul":
        return 1
    return -0.0 if op == "add" and dtype.kind == "f" else 0


def decided(facts: Facts, predicate: str, a: DimLike, b: DimLike) -> Const | None:
    """The value of a comparison of dims where the facts prove one."""
    if predicate in ("gt", "ge"):
        return decided(facts, {"gt": "lt", "ge": "le"}[predicate], b, a)
    if predicate == "lt":
        return TRUE if facts.is_lt(a, b) else FALSE if facts.is_le(b, a) else None
    if predicate == "le":
        return TRUE if facts.is_le(a, b) else FALSE if facts.is_lt(b, a) else None
    if predicate in ("eq", "ne"):
        if facts.is_ne(a, b):
            return TRUE if predicate == "ne" else FALSE
        if b - a == 0:
            return TRUE if predicate == "eq" else FALSE
    return None


def learn(facts: Facts, predicate: str, a: DimLike, b: DimLike) -> None:
    """Record a comparison of dims that holds."""
    if len(facts.nonnegative) >= FACTS_KEPT:
        return
    if predicate in ("gt", "ge"):
        learn(facts, {"gt": "lt", "ge": "le"}[predicate], b, a)
    elif predicate == "lt":
        facts.assume_nonnegative(b - a - 1)
    elif predicate == "le":
        facts.assume_nonnegative(b - a)
    elif predicate == "eq":
        facts.assume_nonnegative(b - a)
        facts.assume_nonnegative(a - b)


def index_range(facts: Facts, name: str, lower: DimLike, upper: DimLike, step: DimLike) -> None:
    """Record the range of a loop index, and that the loop has a turn: what holds inside."""
    low, high = index_bounds(facts, name, lower, upper, step)
    trips = high - low
    if isinstance(trips, Dim):
        facts.assume_nonnegative(trips)


def index_bounds(facts: Facts, name: str, lower: DimLike, upper: DimLike, step: DimLike) -> tuple[DimLike, DimLike]:
    """Record the range of a loop index: what holds of dims that mention it, which only the loop has.

    Returns:
        The smallest index and the largest.
    """
    down = isinstance(step, int) and step < 0
    low, high = (upper + 1, lower) if down else (lower, upper - 1)
    for known in [d for d in facts.nonnegative if name in symbols(d)]:
        del facts.nonnegative[known]  # of another loop over a symbol of this name
    facts.bound(name, low, high)
    return low, high


def _plain_upper(lower: DimLike, upper: DimLike, step: DimLike) -> DimLike:
    """An upper bound without the `max` that only says that there may be no turn."""
    if isinstance(upper, int) or not isinstance(step, int) or step < 0 or not isinstance(lower, int):
        return upper
    if len(upper.terms) == 1 and upper.terms[0][1] == 1 and len(upper.terms[0][0]) == 1:
        atom = upper.terms[0][0][0]
        if atom.op == "max":
            args = [a for a in atom.args if not isinstance(a, str)]
            rest = [a for a in args if not (isinstance(a, int) and a <= lower)]
            if len(rest) == 1:
                return rest[0]
    return upper


def _bools(op: str, args: tuple[Operand, ...]) -> Operand | None:
    if op == "and_":
        for x, y in (args, args[::-1]):
            if x in (TRUE, y):
                return y
            if x == FALSE:
                return FALSE
    elif op == "or_":
        for x, y in (args, args[::-1]):
            if x in (FALSE, y):
                return y
            if x == TRUE:
                return TRUE
    elif op == "xor":
        for x, y in (args, args[::-1]):
            if x == FALSE:
                return y
    return None


def _integers(op: str, args: tuple[Operand, ...], dtype: np.dtype) -> Operand | None:
    """Identities of integer arithmetic."""

    def is_(x: Operand, value: int) -> bool:
        return isinstance(x, Const) and int(x.value) == value

    if op in ("add", "or_", "xor"):
        for x, y in (args, args[::-1]):
            if is_(x, 0):
                return y
    elif op in ("sub", "shl", "shr"):
        if is_(args[1], 0):
            return args[0]
        if op == "sub" and args[0] == args[1]:
            return Const(0, dtype)
    elif op == "mul":
        for x, y in (args, args[::-1]):
            if is_(x, 1):
                return y
            if is_(x, 0):
                return x
    elif op == "and_":
        for x, y in (args, args[::-1]):
            if is_(x, 0) or x == y:
                return x
    elif op == "idiv" and is_(args[1], 1):
        return args[0]
    return None


def simplify(body: list[Stmt], facts: Facts, names: Names | None = None) -> list[Stmt]:
    """A body simplified under the facts that hold in front of it; scalars that nobody reads are left to `dce`."""
    return Simplifier(facts.copy(), names).body(body)


__all__ = ["FALSE", "TRUE", "Simplifier", "assigned", "decided", "index_bounds", "index_range", "learn", "simplify"]
