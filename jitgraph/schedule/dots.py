"""Dot products in loops: calls of BLAS become reductions in BLAS's order, which loops can be built around.

    v = library cblas_ddot(n, &A[i, 0], 1, &B[0, j], m)
    =>  if n <= 10000 { reduce k in range(n) (v = dot of A[i, k], B[k, j]) } else cold { the call }

Longer ones BLAS may share among threads. The order depends on whether both vectors are contiguous: where a step is not
known to be one, it has to be more. Which order it is follows from the name of the core (`runtime.dot_core`).
"""

from __future__ import annotations

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Address,
    Buffer,
    Const,
    DimValue,
    For,
    If,
    Let,
    Library,
    Load,
    Merge,
    Operand,
    Part,
    Reduce,
    Stmt,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import assigned
from jitgraph.ir.dims import DimLike, Facts, symbol
from jitgraph.schedule.simplify import Simplifier, index_range
from jitgraph.schedule.statements import Names, changed_inside, with_bodies

#: Up to this length BLAS adds in one thread.
LONGEST = 10_000


def dots(body: list[Stmt], core: str, facts: Facts, names: Names) -> list[Stmt]:
    """A body whose loops compute dot products themselves; `core` is "" where BLAS's order is not known."""
    return _Dots(core, facts.copy(), names).body(body, inside=False) if core else body


class _Dots:
    def __init__(self, core: str, facts: Facts, names: Names) -> None:
        self.core, self.facts, self.names = core, facts, names
        self.reader = Simplifier(facts)  # reads what conditions mean

    def body(self, body: list[Stmt], *, inside: bool) -> list[Stmt]:
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, Library) and inside and s.name == "cblas_ddot":
                out += self.product(s)
            elif isinstance(s, For) and s.role == "serial":
                with_range = self.facts.copy()
                index_range(with_range, s.symbol, s.lower, s.upper, s.step)
                inner = self.under(with_range, s.body)
                out.append(with_bodies(s, inner))
            elif isinstance(s, While):
                out.append(changed_inside(s, lambda body: self.body(body, inside=True), tests=True))
            elif isinstance(s, If):
                then, otherwise = (self.side(s, side, inside=inside) for side in (True, False))
                out.append(with_bodies(s, then, otherwise))
            else:
                self.learn(s)
                out.append(s)
        return out

    def under(self, facts: Facts, body: list[Stmt]) -> list[Stmt]:
        outer, self.facts = self.facts, facts
        made = self.body(body, inside=True)
        self.facts = outer
        return made

    def side(self, s: If, truth: bool, *, inside: bool) -> list[Stmt]:
        if s.cold and not truth:
            return s.otherwise
        outer, self.facts = self.facts, self.facts.copy()
        self.reader.state.facts = self.facts
        self.reader.assume(s.condition, truth)
        made = self.body(s.then if truth else s.otherwise, inside=inside)
        self.facts = self.reader.state.facts = outer
        return made

    def learn(self, s: Stmt) -> None:
        if isinstance(s, DimValue):
            self.reader.state.dims[s.var.name] = s.dim
        elif isinstance(s, Let) and s.var.dtype == dtypes.BOOL:
            self.reader.meaning[s.var.name] = s

    def product(self, s: Library) -> list[Stmt]:
        n, x, step_x, y, step_y = s.args
        assert isinstance(x, Address)
        assert isinstance(y, Address)
        if s.result is None or any(isinstance(d, (Var, Const, Address)) for d in (n, step_x, step_y)):
            return [s]
        length: DimLike = n  # type: ignore[assignment]
        steps: tuple[DimLike, DimLike] = (step_x, step_y)  # type: ignore[assignment]
        contiguous = all(step == 1 for step in steps)
        model = self.core if contiguous else f"{self.core}.strided"
        tests: list[tuple[DimLike, str, int]] = []
        if not self.facts.is_le(length, LONGEST):
            tests.append((length, "le", LONGEST))
        if not contiguous and not any(self.facts.is_le(2, step) for step in steps):
            tests.append((next(step for step in steps[::-1] if step != 1), "ge", 2))
        result = self.names.var(dtypes.F64) if tests else s.result
        made = self.reduction(length, (x, y), steps, result, model)
        if not tests:
            return [made]
        out: list[Stmt] = []
        holds: Operand | None = None
        for d, predicate, number in tests:
            value, one = self.names.var(dtypes.I64), self.names.var(dtypes.BOOL)
            out += [DimValue(value, d), Let(one, "cmp", (value, Const(number, dtypes.I64)), predicate)]
            if holds is not None:
                both = self.names.var(dtypes.BOOL)
                out.append(Let(both, "and_", (holds, one)))
                one = both
            holds = one
        called = self.names.var(dtypes.F64)
        assert holds is not None
        return [
            *out,
            If(holds, [made], [Library(s.name, s.args, called)], [Merge(s.result, result, called)], cold=True),
        ]

    def reduction(
        self, n: DimLike, vectors: tuple[Address, Address], steps: tuple[DimLike, DimLike], result: Var, model: str
    ) -> Reduce:
        index = self.names.symbol()
        body: list[Stmt] = []
        for at, step in zip(vectors, steps, strict=True):
            body.append(Load(self.names.var(dtypes.F64), *_element(at, step, symbol(index))))
        x, y = (v for s in body for v in assigned(s))
        return Reduce(index, n, body, [Part(result, "sum", "dot", x, factor=y, model=model)])


def _element(at: Address, step: DimLike, k: DimLike) -> tuple[Buffer, tuple[DimLike, ...]]:
    """Element `k` of a vector: along an axis of its buffer if one has this step, else along a further axis."""
    b, stride = at.buffer, step * at.buffer.dtype.itemsize
    for axis in range(len(b.shape) - 1, -1, -1):
        if b.strides[axis] == stride:
            return b, (*at.index[:axis], at.index[axis] + k, *at.index[axis + 1 :])
    return Buffer(b.name, b.dtype, (*b.shape, 1), (*b.strides, stride)), (*at.index, k)


__all__ = ["LONGEST", "dots"]
