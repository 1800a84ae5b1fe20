"""Orders in which BLAS adds up a dot product of doubles: a table of what OpenBLAS's cores do, and each in Python.

Contiguous vectors: four accumulators of eight lanes (`wide`) over n & -32, folded to four of four lanes, which go on to
n & -16; these are added up, then their halves, then the two numbers left; the last n % 16 products one by one.
Strided vectors (one of them is enough): two sums, t1 += x0*y0 + x2*y2 and t2 += x1*y1 + x3*y3, the last n % 4 products
one by one onto t1, result t1 + t2. A "rest" is products one by one onto a sum so far, as both orders end.
"""

from __future__ import annotations

import math
from fractions import Fraction

from jitgraph.records import dataclass


@dataclass(frozen=True, slots=True)
class DotOrder:
    """How a dot product is added up.

    Attributes:
        strided: see above.
        wide: accumulators of eight lanes first.
        halves_first: the halves of each accumulator are added before the accumulators are, and those in pairs.
        fused_rest: the last products are added with one rounding, as all others of contiguous vectors are.
        rest: one by one onto the part's `init`.
    """

    strided: bool = False
    wide: bool = False
    halves_first: bool = False
    fused_rest: bool = False
    rest: bool = False

    @property
    def by_lane(self) -> bool:
        """Whether each lane of a vector loop can add up a product of its own: it takes one sum or two."""
        return self.strided or self.rest

    def evaluate(self, x: list[float], y: list[float], init: float = 0.0) -> float:
        """The sum in this order, exactly rounded at each step."""
        if self.rest:
            return _rest(self, init, x, y)
        return _strided(self, x, y) if self.strided else _contiguous(self, x, y)


#: By the name of the core, ".strided" or ".rest" behind it. `runtime.dot_core` finds out which one this process has.
ORDERS: dict[str, DotOrder] = {
    "skylakex": DotOrder(wide=True, fused_rest=True),
    "skylakex.strided": DotOrder(strided=True, fused_rest=True),
    "skylakex.rest": DotOrder(fused_rest=True, rest=True),
    "haswell": DotOrder(halves_first=True),
    "haswell.strided": DotOrder(strided=True),
    "haswell.rest": DotOrder(rest=True),
}


def fma(x: float, y: float, z: float) -> float:
    """x * y + z, rounded once."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z  # the product itself, which may not fit a float, is finite
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z  # the sign of zero is the same
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf  # `exact` itself fits no float


def _rest(order: DotOrder, total: float, x: list[float], y: list[float]) -> float:
    for u, v in zip(x, y, strict=True):
        total = fma(u, v, total) if order.fused_rest else total + u * v
    return total


def _strided(order: DotOrder, x: list[float], y: list[float]) -> float:
    t1 = t2 = 0.0
    whole = len(x) & -4
    for k in range(0, whole, 4):
        m = [u * v for u, v in zip(x[k : k + 4], y[k : k + 4], strict=True)]
        t1 += m[0] + m[2]
        t2 += m[1] + m[3]
    return _rest(order, t1, x[whole:], y[whole:]) + t2


def _contiguous(order: DotOrder, x: list[float], y: list[float]) -> float:
    whole = len(x) & -16
    if not whole:
        return _rest(order, 0.0, x, y)
    sums = [0.0] * 16
    at = 0
    if order.wide:
        wide = [0.0] * 32
        for at in range(0, len(x) & -32, 32):
            wide = [fma(x[at + k], y[at + k], wide[k]) for k in range(32)]
        sums = [wide[8 * (k // 4) + k % 4] + wide[8 * (k // 4) + 4 + k % 4] for k in range(16)]
        at = len(x) & -32
    for start in range(at, whole, 16):
        sums = [fma(x[start + k], y[start + k], sums[k]) for k in range(16)]
    four = [sums[4 * k : 4 * k + 4] for k in range(4)]
    if order.halves_first:
        pairs = [(a[0] + a[2], a[1] + a[3]) for a in four]
        low, high = (((pairs[0][k] + pairs[1][k]) + (pairs[2][k] + pairs[3][k])) for k in (0, 1))
    else:
        one = [((four[0][k] + four[1][k]) + four[2][k]) + four[3][k] for k in range(4)]
        low, high = one[0] + one[2], one[1] + one[3]
    return _rest(order, low + high, x[whole:], y[whole:])
