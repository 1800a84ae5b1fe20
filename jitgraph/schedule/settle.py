"""A loop that has come to rest ends.

    for n: inside = f(x); x = select inside, g(x), x        ends behind the turn in which no lane is inside

What a turn carries on is what it was given wherever a mask is false, and the mask is a function of just that and of
what no turn changes: so once it is false it stays false, and the turns to come change nothing. In lanes the loop ends
when that holds for all of them (`For.going`). Checked are the statements, not how they came about: `where`, masks in
indices, `count += inside`, a branch that has become a select, `active &= ...`.
"""

from __future__ import annotations

import math

from jitgraph import dtypes
from jitgraph.codegen.loops import Const, DimValue, For, Let, Load, Operand, Stmt, Var
from jitgraph.ir.dims import symbols
from jitgraph.schedule.statements import Names, changed_inside, with_bodies

#: Masks that are tried of one loop.
MOST = 8
#: What leaves the other operand as it is (on the right of a difference); of floats -0.0 for sums.
_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "or_": 0.0, "xor": 0.0}


def settle(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body whose loops end where they have come to rest."""
    return [_settled(s, names) for s in body]


def _settled(s: Stmt, names: Names) -> Stmt:
    if not isinstance(s, For):
        return changed_inside(s, lambda inner: settle(inner, names))
    body, going = settle(s.body, names), s.going
    if s.role == "serial" and s.carried and going is None:
        turn = _Turn(s)
        found = turn.mask()
        if found is not None:
            going, rest = found
            if rest:  # at rest where it is true
                var = names.var(dtypes.BOOL)
                body = [*body, Let(var, "not_", (going,))]
                going = var
    made = with_bodies(s, body)
    made.going = going
    return made


class _Turn:
    """One turn of a loop over straight-line code.

    Attributes:
        made: the statement that makes each scalar.
        rest: the value of the mask at hand for which nothing is to change.
    """

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.made: dict[str, Stmt] = {}
        self.plain = True
        for s in loop.body:
            if isinstance(s, (Let, DimValue, Load)):
                self.made[s.var.name] = s
                if isinstance(s, Load) and s.imag is not None:
                    self.made[s.imag.name] = s
            else:
                self.plain = False
        self.mask_name, self.rest = "", False
        self.found: dict[tuple[str, str], bool] = {}

    def mask(self) -> tuple[Var, bool] | None:
        """A mask, and its value for which this turn and all to come change nothing."""
        if not self.plain:
            return None
        tried: dict[str, Var] = {}
        for s in self.loop.body:
            if isinstance(s, Let):
                for x in s.args:
                    if isinstance(x, Var) and x.dtype == dtypes.BOOL and len(tried) < MOST:
                        tried.setdefault(x.name, x)
        steady: dict[str, bool] = {}
        for x in tried.values():
            if not self.steady(x, steady):
                continue
            for rest in (False, True):
                self.mask_name, self.rest, self.found = x.name, rest, {}
                if all(self.same(c.next, c.inner.name) for c in self.loop.carried):
                    return x, rest
        return None

    def steady(self, x: Operand, known: dict[str, bool]) -> bool:
        """Whether `x` is a function of what is carried and of what no turn changes."""
        s = self.made.get(x.name) if isinstance(x, Var) else None
        if s is None or not isinstance(x, Var):
            return True
        if x.name not in known:
            index = s.index if isinstance(s, Load) else (s.dim,) if isinstance(s, DimValue) else ()
            known[x.name] = all(self.loop.symbol not in symbols(d) for d in index) and (
                not isinstance(s, Let) or all(self.steady(y, known) for y in s.args)
            )
        return known[x.name]

    # What holds where the mask is at rest.

    def let(self, x: Operand) -> Let | None:
        s = self.made.get(x.name) if isinstance(x, Var) else None
        return s if isinstance(s, Let) else None

    def truth(self, x: Operand) -> bool | None:
        """The value of a bool, if it is known."""
        if isinstance(x, Const):
            return bool(x.value)
        if x.name == self.mask_name:
            return self.rest
        s = self.let(x)
        if s is None or s.op not in ("and_", "or_", "not_") or s.var.dtype != dtypes.BOOL:
            return None
        values = [self.truth(y) for y in s.args]
        if s.op == "not_":
            return None if values[0] is None else not values[0]
        deciding = s.op == "or_"
        if deciding in values:
            return deciding
        return None if None in values else not deciding

    def is_neutral(self, x: Operand, number: float) -> bool:
        """Whether `x` is a number that leaves what it is combined with as it is: 0 or 1, for sums of floats -0.0."""
        if x.dtype.kind == "b":
            known = self.truth(x)
            return known is not None and known == number
        if isinstance(x, Const):
            return bool(x.value == number) and math.copysign(1.0, x.value) == math.copysign(1.0, number)
        s = self.let(x)
        if s is None:
            return False
        if s.op == "cast" and x.dtype.kind in "iu":
            return s.args[0].dtype.kind in "biu" and self.is_neutral(s.args[0], number)
        if s.op == "select":
            return all(self.is_neutral(y, number) for y in self.sides(s))
        return x.dtype.kind in "iu" and number == 0 and s.op in ("mul", "and_") and any(map(self.zero, s.args))

    def zero(self, x: Operand) -> bool:
        return x.dtype.kind in "biu" and self.is_neutral(x, 0)

    def sides(self, s: Let) -> tuple[Operand, ...]:
        """The values of a select that are possible."""
        chosen = self.truth(s.args[0])
        return s.args[1:] if chosen is None else (s.args[1 if chosen else 2],)

    def same(self, x: Operand, inner: str) -> bool:
        """Whether what is carried on is what was given."""
        if isinstance(x, Const):
            return inner == self.mask_name and bool(x.value) == self.rest
        if x.name == inner:
            return True
        key = (x.name, inner)
        known = self.found.get(key)
        if known is None:
            known = self.found[key] = self.made_same(x, inner)
        return known

    def made_same(self, x: Var, inner: str) -> bool:
        if inner == self.mask_name and self.truth(x) == self.rest:
            return True
        s = self.let(x)
        if s is None:
            return False
        if s.op == "select":
            return all(self.same(y, inner) for y in self.sides(s))
        if len(s.args) != 2:
            return False
        a, b = s.args
        kept, other = self.same(a, inner), self.same(b, inner)
        if s.op in _NEUTRAL:
            floats = s.var.dtype.kind == "f"
            number = -0.0 if floats and s.op == "add" else _NEUTRAL[s.op]
            if floats and s.op in ("or_", "xor"):
                return False
            return (kept and self.is_neutral(b, number)) or (s.op != "sub" and other and self.is_neutral(a, number))
        if s.op == "and_" and s.var.dtype == dtypes.BOOL:
            return (kept and self.truth(b) is True) or (other and self.truth(a) is True)
        return False
