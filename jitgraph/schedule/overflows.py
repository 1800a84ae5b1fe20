"""Overflow checks of sums and products with constants become one range test of the integer they begin with.

    check not (mul_overflows x, 3)                  y = add (mul x, 3), 1
    check not (add_overflows (mul x, 3), 1)   =>    check x in range(-(2**63 // 3), (2**63 - 1) // 3 + 1)

Checks of one site follow each other with nothing between them that could be seen, or fail, so the last may stand for
all; each may be asked for on one path only (`even or not overflows`). A range test is one unsigned comparison that
nothing waits for; the machine's multiplication with overflow is three cycles in the chain of what the loop carries.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import Check, Const, DimValue, For, If, Let, Operand, Reduce, Stmt, Var, While
from jitgraph.codegen.loops_walk import bodies
from jitgraph.records import dataclass, field
from jitgraph.schedule.statements import Names, with_bodies

LEAST, MOST = -(1 << 63), (1 << 63) - 1
U64 = np.dtype(np.uint64)
_FLAGS = {"add_overflows": "add", "sub_overflows": "sub", "mul_overflows": "mul"}


def overflows(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body whose overflow checks with constants are range tests."""
    return _Overflows(names).body(body)


@dataclass(slots=True)
class _Range:
    """Checks in a row that hold exactly if `base` lies in the range, or `guard` is true.

    Attributes:
        exact: what has been found not to overflow, as (factor, addend) of `base`, by primitive and operands.
        at: where the last of the checks stands.
    """

    base: Var
    guard: Operand | None
    check: Check
    at: int
    low: int = LEAST
    high: int = MOST
    exact: dict[tuple[str, tuple[Operand, ...]], tuple[int, int]] = field(default_factory=dict)


class _Overflows:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.lets: dict[str, Let] = {}
        self.dims: set[str] = set()

    def body(self, body: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        run: _Range | None = None
        for s in body:
            if isinstance(s, Let):
                self.lets[s.var.name] = s
                if s.op in ("idiv", "irem"):
                    run = None
                out.append(s)
            elif isinstance(s, DimValue):
                self.dims.add(s.var.name)
                out.append(s)
            elif isinstance(s, Check):
                run = self.check(s, run, out)
            else:
                run = None
                out.append(self.nested(s))
        return out

    def nested(self, s: Stmt) -> Stmt:
        if isinstance(s, (For, While, If, Reduce)):
            return with_bodies(s, *map(self.body, bodies(s)))
        return s

    def check(self, s: Check, run: _Range | None, out: list[Stmt]) -> _Range | None:
        """Append a check to `out`, as part of the run of checks before it if it can be."""
        for guard, flag in self.readings(s.condition):
            if run is not None and (run.guard != guard or (run.check.site, run.check.values) != (s.site, s.values)):
                run = None
            run = self.narrowed(flag, run) or self.narrowed(flag, None)
            if run is None:
                continue
            if run.exact and run.at >= 0:
                del out[run.at]
            run.guard, run.check = guard, s
            condition = self.test(run, out)
            if guard is not None:
                either = self.names.var(dtypes.BOOL)
                out.append(Let(either, "or_", (guard, condition)))
                condition = either
            run.at = len(out)
            out.append(Check(condition, s.site, s.values))
            return run
        out.append(s)
        return None

    def readings(self, condition: Operand) -> Iterator[tuple[Operand | None, Let]]:
        """A condition as `guard or not flag`."""
        let = self.let(condition)
        if let is None:
            return
        if let.op == "or_":
            for guard, other in (let.args, let.args[::-1]):
                for none, flag in self.readings(other):
                    if none is None:
                        yield guard, flag
        elif let.op == "not_":
            flag_let = self.let(let.args[0])
            if flag_let is not None and flag_let.op in _FLAGS and flag_let.args[0].dtype == dtypes.I64:
                yield None, flag_let

    def let(self, x: Operand) -> Let | None:
        return self.lets.get(x.name) if isinstance(x, Var) else None

    def narrowed(self, flag: Let, run: _Range | None) -> _Range | None:
        """The run with what a flag asks for in addition; None if it is no function of the base with constants."""
        op, (a, b) = _FLAGS[flag.op], flag.args
        x = a if isinstance(b, Const) else b
        number = b if isinstance(b, Const) else a
        if not isinstance(x, Var) or not isinstance(number, Const):
            return None
        factor, addend = 1, 0
        if run is None:
            run = _Range(x, None, Check(x, 0), -1)
        elif x != run.base:
            made = self.let(x)
            known = None if made is None else run.exact.get(_key(made.op, made.args))
            if known is None:
                return None
            factor, addend = known
        c = int(number.value)
        if op == "mul":
            factor, addend = c * factor, c * addend
        elif op == "add":
            addend += c
        elif x is a:
            addend -= c
        else:
            factor, addend = -factor, c - addend
        if factor == 0:
            return None
        low, high = (LEAST - addend, MOST - addend) if factor > 0 else (addend - MOST, addend - LEAST)
        size = abs(factor)
        run.low, run.high = max(run.low, -(-low // size)), min(run.high, high // size)
        run.exact[_key(op, flag.args)] = factor, addend
        return run if run.low <= run.high else None

    def test(self, run: _Range, out: list[Stmt]) -> Operand:
        """Whether the base lies in the range."""
        x = run.base
        if run.low > LEAST and run.high < MOST and x.name not in self.dims:
            shifted, unsigned = self.names.var(dtypes.I64), self.names.var(U64)
            inside = self.names.var(dtypes.BOOL)
            out += [
                Let(shifted, "sub", (x, Const(run.low, dtypes.I64))),
                Let(unsigned, "cast", (shifted,)),
                Let(inside, "cmp", (unsigned, Const(run.high - run.low, U64)), "le"),
            ]
            return inside
        holds: Operand = Const(True, dtypes.BOOL)
        for predicate, number, trivial in self.bounds(run):
            if trivial:
                continue
            one = self.names.var(dtypes.BOOL)
            out.append(Let(one, "cmp", (x, Const(number, dtypes.I64)), predicate))
            if isinstance(holds, Var):
                both = self.names.var(dtypes.BOOL)
                out.append(Let(both, "and_", (holds, one)))
                one = both
            holds = one
        return holds

    @staticmethod
    def bounds(run: _Range) -> tuple[tuple[str, int, bool], tuple[str, int, bool]]:
        return ("ge", run.low, run.low == LEAST), ("le", run.high, run.high == MOST)


def _key(op: str, args: tuple[Operand, ...]) -> tuple[str, tuple[Operand, ...]]:
    """A primitive with its operands, which commute but for "sub"."""
    return op, args[::-1] if op != "sub" and isinstance(args[0], Const) else args
