"""What is hardly ever needed leaves the straight path: errors of indices, indices from the end, what only they read.

An index that only the run knows is tested twice, against -n and n, and taken from the end where it is negative. Here it
is one unsigned comparison, and all of that is done where it fails. A bound of a slice that only the run knows is within
the axis as a rule: one comparison, which is foreseen, so that what the slice is used for need not wait for the choices
that move it there. Scalars that only a cold arm reads move into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from jitgraph import dtypes
from jitgraph.codegen.loops import Check, Const, DimValue, If, Let, Merge, Operand, Stmt, Var
from jitgraph.codegen.loops_walk import read, walk
from jitgraph.ir.dims import DimLike
from jitgraph.schedule.statements import Names, changed_inside, with_bodies


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
            elif isinstance(s, Let) and s.op == "select" and s.var.dtype == dtypes.I64:
                out += self.bound(s)
            else:
                out.append(changed_inside(s, self.body, tests=True))
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
        number, shifted, wrapped = (self.names.var(t) for t in (dtypes.I64, dtypes.I64, dtypes.I64))
        negative = self.names.var(dtypes.BOOL)
        rare: list[Stmt] = [
            s,
            Let(shifted, "add", (x, number)),
            Let(negative, "cmp", (x, Const(0, dtypes.I64)), "lt"),
            Let(wrapped, "select", (negative, shifted, x)),
        ]
        return [DimValue(number, size), *self.unless(x, "lt", number, rare, Merge(let.var, x, wrapped))]

    def unless(self, x: Var, predicate: str, size: Operand, rare: list[Stmt], merge: Merge) -> list[Stmt]:
        """What is done unless 0 <= x < size (or <=), a size that is not negative."""
        place, limit, inside = (self.names.var(t) for t in (dtypes.U64, dtypes.U64, dtypes.BOOL))
        return [
            Let(place, "cast", (x,)),
            Let(limit, "cast", (size,)),
            Let(inside, "cmp", (place, limit), predicate),
            If(inside, [], rare, [merge], cold=True),
        ]

    def bound(self, s: Let) -> list[Stmt]:
        """A choice; if it is the last of `min(max(x + n if x < 0 else x, 0), n)`, x itself where 0 <= x <= n."""
        low, size = s.args[1:]
        positive, below = self.let(low, "select"), self.let(s.args[0], "cmp")
        if positive is None or below is None or (below.attr, below.args) != ("le", (low, size)):
            return [s]
        place, zero = positive.args[1:]
        above, moved = self.let(positive.args[0], "cmp"), self.let(place, "select")
        if above is None or moved is None or (above.attr, above.args) != ("ge", (place, zero)):
            return [s]
        x, n = moved.args[2], self.dim(size)
        if self.dim(zero) != 0 or not isinstance(x, Var) or n is None or not self.is_from_the_end(moved, x, n):
            return [s]
        chosen = self.names.var(dtypes.I64)
        return self.unless(x, "le", size, [Let(chosen, "select", s.args)], Merge(s.var, x, chosen))

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
        if test is None or let.args[2] != x or (test.attr, test.args[0], self.dim(test.args[1])) != ("lt", x, 0):
            return False
        if shifted is None:
            place, end = self.dim(x), self.dim(let.args[1])
            return place is not None and end is not None and end == place + size
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
            made = with_bodies(s, then, otherwise)
            if s.cold:
                add(otherwise, otherwise)
        elif isinstance(s, (Let, DimValue)):
            reader = readers.get(s.var.name)
            if reader is not None and reader[1] == uses[s.var.name]:
                reader[0].insert(0, s)
                add(reader[0], [s])
                continue
        else:
            made = changed_inside(s, lambda inner: _sunk(inner, uses))
        out.append(made)
    out.reverse()
    return out
