"""What is hardly ever needed leaves the straight path: errors of indices, indices from the end, what only they read.

An index that only the run knows is tested twice, against -n and n, and taken from the end where it is negative. Here it
is one unsigned comparison, and all of that is done where it fails. Scalars that only a cold arm reads move into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from jitgraph import dtypes
from jitgraph.codegen.loops import Check, Const, DimValue, For, If, Let, Merge, Operand, Stmt, Var, While
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import DimLike
from jitgraph.schedule.statements import Names, read


def cold(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body with what is rare in cold arms."""
    dims = {s.var.name: s.dim for s in walk(body) if isinstance(s, DimValue)}
    lets = {s.var.name: s for s in walk(body) if isinstance(s, Let)}
    made = _Cold(names, dims, lets).body(body)
    uses: Counter[str] = Counter(x.name for s in walk(made) for x in read(s) if isinstance(x, Var))
    return _sunk(made, uses)


class _Cold:
    def __init__(self, names: Names, dims: Mapping[str, DimLike], lets: Mapping[str, Let]) -> None:
        self.names, self.dims, self.lets = names, dims, lets

    def body(self, body: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        chosen = {s.var.name: s for s in body if isinstance(s, Let) and s.op == "select" and s.var.dtype == dtypes.I64}
        done: set[str] = set()
        for s in body:
            if isinstance(s, Check):
                out += self.check(s, chosen, done)
            elif isinstance(s, Let) and s.var.name in done:
                continue
            elif isinstance(s, If):
                otherwise = s.otherwise if s.cold else self.body(s.otherwise)
                out.append(If(s.condition, self.body(s.then), otherwise, s.merges, s.cold))
            elif isinstance(s, While):
                out.append(While(self.body(s.test), s.condition, self.body(s.body), s.carried))
            elif isinstance(s, For) and s.role == "serial":
                inner = self.body(s.body)
                out.append(For(s.symbol, s.lower, s.upper, inner, s.step, s.role, s.carried, s.lanes, s.interleave))
            else:
                out.append(s)
        return out

    def check(self, s: Check, chosen: Mapping[str, Let], done: set[str]) -> list[Stmt]:
        """A check, with what follows from it if it is that of an index."""
        found = self.range_of(s.condition)
        if found is None:
            return [s]
        x, size = found
        for let in chosen.values():
            if let.var.name not in done and self.is_from_the_end(let, x, size):
                break
        else:
            return [s]
        done.add(let.var.name)
        place, limit, inside = (self.names.var(t) for t in (dtypes.U64, dtypes.U64, dtypes.BOOL))
        number, shifted, wrapped = (self.names.var(t) for t in (dtypes.I64, dtypes.I64, dtypes.I64))
        negative = self.names.var(dtypes.BOOL)
        return [
            DimValue(number, size),
            Let(place, "cast", (x,)),
            Let(limit, "cast", (number,)),
            Let(inside, "cmp", (place, limit), "lt"),
            If(
                inside,
                [],
                [
                    s,
                    Let(shifted, "add", (x, number)),
                    Let(negative, "cmp", (x, Const(0, dtypes.I64)), "lt"),
                    Let(wrapped, "select", (negative, shifted, x)),
                ],
                [Merge(let.var, x, wrapped)],
                cold=True,
            ),
        ]

    def range_of(self, condition: Operand) -> tuple[Var, DimLike] | None:
        """(x, n) where the condition is -n <= x < n for a scalar x that is no dim."""
        both = self.let(condition, "and_")
        if both is None:
            return None
        for a, b in (both.args, both.args[::-1]):
            upper, lower = self.let(a, "cmp"), self.let(b, "cmp")
            if upper is None or lower is None or upper.attr != "lt" or lower.attr != "ge":
                continue
            x, size, least = upper.args[0], self.dim(upper.args[1]), self.dim(lower.args[1])
            if not isinstance(x, Var) or x != lower.args[0] or x.name in self.dims or size is None or least is None:
                continue
            if least + size == 0:
                return x, size
        return None

    def is_from_the_end(self, let: Let, x: Var, size: DimLike) -> bool:
        """Whether a choice is `x + n if x < 0 else x`."""
        test, shifted = self.let(let.args[0], "cmp"), self.let(let.args[1], "add")
        if test is None or shifted is None or let.args[2] != x or test.attr != "lt" or test.args[0] != x:
            return False
        if not isinstance(test.args[1], Const) or int(test.args[1].value) != 0:
            return False
        return any(a == x and self.dim(b) == size for a, b in (shifted.args, shifted.args[::-1]))

    def let(self, x: Operand, op: str) -> Let | None:
        found = self.lets.get(x.name) if isinstance(x, Var) else None
        return found if found is not None and found.op == op else None

    def dim(self, x: Operand) -> DimLike | None:
        if isinstance(x, Const):
            return int(x.value) if x.dtype == dtypes.I64 else None
        return self.dims.get(x.name)


def _sunk(body: list[Stmt], uses: Counter[str]) -> list[Stmt]:
    """A body whose scalars stand in the one cold arm that reads them; `uses` counts the reads of the function."""
    out: list[Stmt] = []
    #: The cold arm behind here that reads a scalar, and how often.
    readers: dict[str, tuple[list[Stmt], int]] = {}

    def add(arm: list[Stmt], statements: Iterable[Stmt]) -> None:
        for t in walk(list(statements)):
            for x in read(t):
                if isinstance(x, Var):
                    known = readers.get(x.name)
                    count = known[1] if known is not None and known[0] is arm else 0
                    readers[x.name] = arm, count + 1

    for s in reversed(body):
        made: Stmt = s
        if isinstance(s, If):
            then = _sunk(s.then, uses)
            otherwise = list(s.otherwise) if s.cold else _sunk(s.otherwise, uses)
            made = If(s.condition, then, otherwise, s.merges, s.cold)
            if s.cold:
                add(otherwise, otherwise)
        elif isinstance(s, While):
            made = While(s.test, s.condition, _sunk(s.body, uses), s.carried)
        elif isinstance(s, For) and s.role == "serial":
            inner = _sunk(s.body, uses)
            made = For(s.symbol, s.lower, s.upper, inner, s.step, s.role, s.carried, s.lanes, s.interleave)
        elif isinstance(s, (Let, DimValue)):
            reader = readers.get(s.var.name)
            if reader is not None and reader[1] == uses[s.var.name]:
                reader[0].insert(0, s)
                add(reader[0], [s])
                continue
        out.append(made)
    out.reverse()
    return out
