"""How much work statements are, in picoseconds, about: what decides whether threads pay.

Constants are those of a core of 2020 with 256-bit vectors and data in its second cache. Sizes stay symbols, so the
answer is computed in each call.
"""

from __future__ import annotations

from collections.abc import Mapping

from jitgraph import dtypes
from jitgraph.codegen.loops import Bind, CallKernel, DimValue, For, If, Let, Library, Load, Reduce, Stmt, Store, While
from jitgraph.codegen.loops_walk import bodies
from jitgraph.codegen.vecmath import FUNCTIONS
from jitgraph.ir.dims import DimLike, floordiv, substitute, symbols

#: For eight bytes of each lane, and for a scalar.
LANE, SCALAR = 60, 300
LANE_MEMORY, SCALAR_MEMORY, APART = 100, 300, 600
#: Of what each turn of the loop around touches again: the first cache has it.
LANE_AGAIN = 30
SLOW = {"fdiv": 6, "sqrt": 6, "idiv": 20, "irem": 20, "frem": 40}
LANE_CALL, SCALAR_CALL = 1500, 10_000
IN_ORDER, PAIRWISE = 1_200, 60
#: Turns of a loop whose number no size tells.
UNKNOWN = 16


def work_of(body: list[Stmt]) -> DimLike:
    """The work of statements, over the symbols from outside of them."""
    return _Work().body(body, {}, "")


class _Work:
    def body(self, body: list[Stmt], bounds: dict[str, tuple[DimLike, DimLike] | None], lane: str) -> DimLike:
        """The work of a body under loops with these bounds, in lanes over `lane` ("" without).

        Indices whose range no symbol from outside tells are None in `bounds`.
        """
        total: DimLike = 0
        for s in body:
            if isinstance(s, Bind):
                bounds = {**bounds, s.symbol: None}
            else:
                total = total + self.statement(s, bounds, lane)
        return total

    def statement(self, s: Stmt, bounds: dict[str, tuple[DimLike, DimLike] | None], lane: str) -> DimLike:
        if isinstance(s, Let):
            return _let(s, lane)
        if isinstance(s, (Load, Store)):
            around = next((name for name in reversed(bounds) if name != lane and bounds[name] is not None), None)
            return _access(s, lane, around)
        if isinstance(s, DimValue):
            return LANE if lane else SCALAR
        if isinstance(s, For):
            lanes = s.symbol if s.role == "vector" else lane
            ends = _ends(s.lower, bounds)[0], _ends(s.upper, bounds)[1]
            inner = self.body(s.body, {**bounds, s.symbol: ends}, lanes)
            waits = len(s.carried) * IN_ORDER
            step = s.step if isinstance(s.step, int) and s.step > 0 else 1
            return _times(s.lower, s.upper, step, inner + waits, bounds)
        if isinstance(s, Reduce):
            ordered = any(p.order == "serial" for p in s.parts)
            inner = self.body(
                s.body, {**bounds, s.symbol: (0, _ends(s.extent, bounds)[1])}, "" if ordered else s.symbol
            )
            return _times(0, s.extent, 1, inner + (IN_ORDER if ordered else PAIRWISE) * len(s.parts), bounds)
        if isinstance(s, While):
            return (self.body(s.test, bounds, lane) + self.body(s.body, bounds, lane)) * UNKNOWN
        if isinstance(s, If):
            then, otherwise = (self.body(b, bounds, lane) for b in bodies(s))
            return then if s.cold or not s.otherwise else floordiv(then + otherwise, 2)
        return SCALAR_CALL if isinstance(s, (CallKernel, Library)) else 0


def _let(s: Let, lane: str) -> int:
    size = max(s.var.dtype.itemsize, 2)
    if s.op == "call":
        function = FUNCTIONS.get(s.attr)
        inlined = function is not None and function.vectorised
        return (LANE_CALL * size // 8 if lane else SCALAR_CALL // 2) if inlined else SCALAR_CALL
    factor = SLOW.get(s.op, 1)
    return factor * LANE * size // 8 if lane else factor * SCALAR


def _access(s: Load | Store, lane: str, around: str | None) -> int:
    size = dtypes.part_of(s.buffer.dtype).itemsize
    if not lane:
        return SCALAR_MEMORY
    for d, stride in zip(s.index, s.buffer.strides, strict=True):
        if lane in symbols(d) and stride != size:
            return APART
    again = around is not None and not any(around in symbols(d) for d in s.index)
    return (LANE_AGAIN if again else LANE_MEMORY) * size // 8


def _times(
    lower: DimLike, upper: DimLike, step: int, inner: DimLike, bounds: Mapping[str, tuple[DimLike, DimLike] | None]
) -> DimLike:
    """The work of a loop: where the bounds depend on loops around, the mean of the first and the last turn of those."""
    distance = upper - lower
    low, high = _ends(distance, bounds)
    if low is high or low == high:
        total = low * inner
    else:
        total = floordiv((low + high) * inner, 2)
    return total if step == 1 else floordiv(total, step)


def _ends(d: DimLike, bounds: Mapping[str, tuple[DimLike, DimLike] | None]) -> tuple[DimLike, DimLike]:
    """A dim at the first and at the last turn of the loops around."""
    inside = [name for name in symbols(d) if name in bounds]
    if not inside:
        return d, d
    if any(bounds[name] is None for name in inside):
        return UNKNOWN, UNKNOWN
    known = {name: bounds[name] for name in inside}
    first: dict[str, DimLike] = {name: found[0] for name, found in known.items() if found is not None}
    last: dict[str, DimLike] = {name: found[1] - 1 for name, found in known.items() if found is not None}
    return substitute(d, first), substitute(d, last)
