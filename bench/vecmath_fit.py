"""Re-derive every polynomial of `jitgraph/codegen/vecmath/coefficients.py` by Remez exchange.

    python bench/vecmath_fit.py [name ...]     prints sets, with the weighted error before and after rounding
    python bench/vecmath_fit.py --write        rewrites coefficients.py

A fit makes max |w(t) (f(t) - P(t))| least on an interval. The weight turns an error of P into a relative error of the
function's result, so a printed -58 means that the polynomial adds at most 2^-58 of the result to the rounding errors.

The coefficients are rounded to nearest, or one after another from the constant term up, the rest fitted again to what
the rounded ones left over, which often makes good most of the rounding of the lower terms: the better set is taken.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mpmath
from mpmath import mpf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[[mpf], mpf]

mpmath.mp.dps = 60
TARGET: Final = Path(__file__).parent.parent / "jitgraph" / "codegen" / "vecmath" / "coefficients.py"
HEADER: Final = '''\
"""Polynomial coefficients, lowest degree first; made by bench/vecmath_fit.py, not to be edited by hand."""

from __future__ import annotations

from typing import Final

_h = float.fromhex
Coefficients = dict[str, tuple[float, ...]]'''
SAMPLES_PER_TERM: Final = 40
EXCHANGES: Final = 20


@dataclass(frozen=True, slots=True)
class Fit:
    """One polynomial: `degree` is that of P, the interval is in P's own argument."""

    name: str
    ty: str
    doc: str
    degree: int
    interval: tuple[mpf, mpf]
    function: Function
    weight: Function


def chebyshev(low: mpf, high: mpf, count: int) -> list[mpf]:
    """`count` points of [low, high], denser at the ends, both ends among them."""
    return [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * i / (count - 1)) for i in range(count)]


def evaluate(coefficients: Sequence[mpf], t: mpf) -> mpf:
    """Horner's rule, lowest coefficient first in the sequence."""
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * t + c
    return total


def solve(points: Sequence[mpf], values: Sequence[mpf], weights: Sequence[mpf], first: int, count: int) -> list[mpf]:
    """Coefficients of t^first ... whose weighted error alternates with one size on the points; then that size."""
    rows = len(points)
    matrix = mpmath.matrix(rows, rows)
    right = mpmath.matrix(rows, 1)
    for i, (t, value, weight) in enumerate(zip(points, values, weights, strict=True)):
        for j in range(count):
            matrix[i, j] = t ** (first + j) * weight
        matrix[i, count] = (-1) ** i
        right[i] = value * weight
    return list(mpmath.lu_solve(matrix, right))


def alternation(grid: Sequence[mpf], errors: Sequence[mpf], count: int) -> list[int]:
    """Indices of `count` extrema of alternating sign; where there are more, the smallest end ones go."""
    chosen: list[int] = []
    for i, error in enumerate(errors):
        if chosen and (error > 0) == (errors[chosen[-1]] > 0):
            if abs(error) > abs(errors[chosen[-1]]):
                chosen[-1] = i
        else:
            chosen.append(i)
    while len(chosen) > count:
        chosen.pop(0 if abs(errors[chosen[0]]) < abs(errors[chosen[-1]]) else -1)
    if len(chosen) < count:
        raise ArithmeticError(f"only {len(chosen)} of {count} extrema on {len(grid)} points")
    return chosen


def remez(fit: Fit, fixed: Sequence[mpf]) -> list[mpf]:
    """The coefficients behind `fixed` that make the weighted error least."""
    first, count = len(fixed), fit.degree + 1 - len(fixed)
    low, high = fit.interval
    grid = chebyshev(low, high, SAMPLES_PER_TERM * (count + 1))
    # t^first vanishes at 0, where the fit cannot help any more; the weight does nearly always too
    grid = [t for t in grid if t != 0 or first == 0]
    values = [fit.function(t) - evaluate(fixed, t) for t in grid]
    weights = [fit.weight(t) for t in grid]
    # where the weight all but vanishes there is no extremum to start from
    reach = [weight * abs(t) ** first for t, weight in zip(grid, weights, strict=True)]
    live = [i for i, size in enumerate(reach) if size > max(reach) / 1000]
    chosen = [live[round(i * (len(live) - 1) / count)] for i in range(count + 1)]
    best: list[mpf] = []
    best_error = mpf("inf")
    for _ in range(EXCHANGES):
        solution = solve(
            [grid[i] for i in chosen], [values[i] for i in chosen], [weights[i] for i in chosen], first, count
        )
        coefficients, level = solution[:count], abs(solution[count])
        errors = [
            weight * (value - t**first * evaluate(coefficients, t))
            for t, value, weight in zip(grid, values, weights, strict=True)
        ]
        largest = max(abs(error) for error in errors)
        if largest < best_error:
            best, best_error = coefficients, largest
        if largest < level * mpf("1.0005"):
            break
        try:
            chosen = alternation(grid, errors, count + 1)
        except ArithmeticError as error:
            print(f"  {fit.name} {fit.ty} from t^{first}: {error}", file=sys.stderr)
            break
    return best


def rounded(value: mpf, ty: str) -> mpf:
    """The nearest number of that type."""
    if ty == "double":
        return mpf(float(value))
    # by way of a double: rounding twice can only matter for a coefficient, never for correctness
    return mpf(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def error_bits(fit: Fit, coefficients: Sequence[mpf]) -> mpf:
    """log2 of the largest weighted error on a grid four times as fine as the fit's."""
    grid = chebyshev(*fit.interval, 4 * SAMPLES_PER_TERM * (fit.degree + 2))
    return mpmath.log(max(abs(fit.weight(t) * (fit.function(t) - evaluate(coefficients, t))) for t in grid), 2)


def derive(fit: Fit) -> tuple[list[mpf], mpf, mpf]:
    """Rounded coefficients, error bits before and after rounding: the best of three ways to round."""
    exact = remez(fit, ())
    nearest = [rounded(c, fit.ty) for c in exact]
    candidates = [nearest]
    for start in ([], [mpf(0.5)]) if abs(exact[0] - 0.5) < 2**-16 else ([],):
        one_by_one: list[mpf] = list(start)
        while len(one_by_one) <= fit.degree:
            one_by_one.append(rounded(remez(fit, one_by_one)[0], fit.ty))
        candidates.append(one_by_one)
    bits, coefficients = min((error_bits(fit, c), c) for c in candidates)
    return coefficients, error_bits(fit, exact), bits


# --- what is fitted ---------------------------------------------------------------------------------------------------


def at(limit: Function, value_at_zero: mpf | float) -> Function:
    """A function with its limit at 0 filled in; near 0 the digits that cancel are bought back by more precision."""

    def filled(t: mpf) -> mpf:
        if t == 0:
            return mpf(value_at_zero)
        with mpmath.workdps(120):
            return +limit(t)

    return filled


def of_square(limit: Function, value_at_zero: mpf | float) -> Function:
    """A function of x as one of t = x^2."""
    return at(lambda t: limit(mpmath.sqrt(t)), value_at_zero)


LN2: Final = mpmath.log(2)
HALF_LN2: Final = LN2 / 2 * mpf("1.0001")
QUARTER_PI: Final = mpmath.pi / 4 * mpf("1.0001")
ROOT: Final = mpmath.sqrt(2)
HALF: Final = mpf("0.5001")


def erf_tail(x: mpf) -> mpf:
    """g with erfc(x) = exp(-x (1 + g(x)))."""
    return -mpmath.log(mpmath.erfc(x)) / x - 1


# among the multiples of 1/1024, here the constant term is all but a float and a double: rounding it costs nothing
ERFC_MIDDLE: Final = mpf(3563) / 1024


def scaled_erfc(t: mpf) -> mpf:
    """(1 + 2 x) e^(x^2) erfc(x) for x = c (1 + t) / (1 - t)"""
    x = ERFC_MIDDLE * (1 + t) / (1 - t)
    return (1 + 2 * x) * mpmath.exp(x**2) * mpmath.erfc(x)


def fits() -> list[Fit]:
    """Every set in the order of the file."""
    made: list[Fit] = []
    for ty in ("float", "double"):
        single = ty == "float"

        def add(
            name: str,
            doc: str,
            degrees: tuple[int, int],
            interval: tuple[mpf, mpf],
            function: Function,
            weight: Function,
            *,
            ty: str = ty,
        ) -> None:
            made.append(Fit(name, ty, doc, degrees[ty == "double"], interval, function, weight))

        add("EXP", "exp(r) = 1 + r + r^2 P(r)", (4, 9), (-HALF_LN2, HALF_LN2),
            at(lambda r: (mpmath.expm1(r) - r) / r**2, 0.5), lambda r: r**2 / mpmath.exp(r))  # fmt: skip
        add("EXP2", "2^r = 1 + r ln 2 + r^2 P(r)", (4, 9), (-HALF, HALF),
            at(lambda r: (mpmath.power(2, r) - 1 - r * mpmath.log(2)) / r**2, LN2**2 / 2),
            lambda r: r**2 / mpmath.power(2, r))  # fmt: skip
        add("EXPM1", "expm1(r) = r + r^2/2 + r^3 P(r)", (4, 10), (-HALF_LN2, HALF),
            at(lambda r: (mpmath.expm1(r) - r - r**2 / 2) / r**3, mpf(1) / 6),
            at(lambda r: abs(r**3 / mpmath.expm1(r)), 0))  # fmt: skip
        if single:
            add("LOG", "log(1 + f) = f - f^2/2 + f^3 P(f)", (7, 7), (1 / ROOT - 1, ROOT - 1),
                at(lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3, mpf(1) / 3),
                at(lambda f: abs(f**3 / mpmath.log1p(f)), 0))  # fmt: skip
        else:
            add("LOG", "2 atanh(s) = 2 s + s z P(z), z = s^2, s = f / (2 + f)", (6, 6), (mpf(0), (3 - 2 * ROOT) ** 2),
                of_square(lambda s: (2 * mpmath.atanh(s) - 2 * s) / s**3, mpf(2) / 3),
                of_square(lambda s: s**3 / (2 * mpmath.atanh(s)), 0))  # fmt: skip
        add("SIN", "sin(r) = r + r z P(z), z = r^2", (2, 5), (mpf(0), QUARTER_PI**2),
            of_square(lambda r: (mpmath.sin(r) - r) / r**3, -mpf(1) / 6),
            of_square(lambda r: r**3 / mpmath.sin(r), 0))  # fmt: skip
        add("COS", "cos(r) = 1 - z/2 + z^2 P(z), z = r^2", (2, 5), (mpf(0), QUARTER_PI**2),
            of_square(lambda r: (mpmath.cos(r) - 1 + r**2 / 2) / r**4, mpf(1) / 24),
            of_square(lambda r: r**4 / mpmath.cos(r), 0))  # fmt: skip
        add("TAN", "tan(r) = r + r z P(z), z = r^2", (6, 13), (mpf(0), QUARTER_PI**2),
            of_square(lambda r: (mpmath.tan(r) - r) / r**3, mpf(1) / 3),
            of_square(lambda r: r**3 / mpmath.tan(r), 0))  # fmt: skip
        add("SINH", "sinh(r) = r + r z P(z), z = r^2", (1, 4), (mpf(0), HALF_LN2**2),
            of_square(lambda r: (mpmath.sinh(r) - r) / r**3, mpf(1) / 6),
            of_square(lambda r: r**3 / mpmath.sinh(r), 0))  # fmt: skip
        add("COSH", "cosh(r) = 1 + z P(z), z = r^2", (2, 4), (mpf(0), HALF_LN2**2),
            of_square(lambda r: (mpmath.cosh(r) - 1) / r**2, 0.5),
            of_square(lambda r: r**2 / mpmath.cosh(r), 0))  # fmt: skip
        add("ASIN", "arcsin(x) = x + x z P(z), z = x^2 <= 1/4", (4, 12), (mpf(0), mpf("0.25")),
            of_square(lambda x: (mpmath.asin(x) - x) / x**3, mpf(1) / 6),
            of_square(lambda x: x**3 / mpmath.asin(x), 0))  # fmt: skip
        add("ATAN", "arctan(t) = t + t z P(z), z = t^2 <= 1", (8, 19), (mpf(0), mpf(1)),
            of_square(lambda t: (mpmath.atan(t) - t) / t**3, -mpf(1) / 3),
            of_square(lambda t: t**3 / mpmath.atan(t), 0))  # fmt: skip
        add("TANH", "tanh(x) = x + x z P(z), z = x^2, |x| < 1", (6, 14), (mpf(0), mpf(1)),
            of_square(lambda x: (mpmath.tanh(x) - x) / x**3, -mpf(1) / 3),
            of_square(lambda x: x**3 / mpmath.tanh(x), 0))  # fmt: skip
        add("CBRT", "m^(-1/3), to be improved by iteration", (3, 5), (1 / ROOT, ROOT),
            lambda m: m ** (-mpf(1) / 3), lambda m: mpmath.cbrt(m))  # fmt: skip
        limit = mpf("0.94") if single else mpf(1)
        add("ERF", "erf(x) = x + x P(z), z = x^2, below the crossover", (6, 12), (mpf(0), limit**2),
            of_square(lambda x: (mpmath.erf(x) - x) / x, 2 / mpmath.sqrt(mpmath.pi) - 1),
            of_square(lambda x: x / mpmath.erf(x), mpmath.sqrt(mpmath.pi) / 2))  # fmt: skip
        add("ERF_TAIL", "erfc(x) = exp(-x (1 + P(x))), above the crossover", (5, 18), (limit, mpf(4 if single else 6)),
            erf_tail, lambda x: x * mpmath.erfc(x) / mpmath.erf(x))  # fmt: skip
        low, high = mpf("0.72"), mpf("10.1") if single else mpf("27.3")
        middle = ERFC_MIDDLE
        add("ERFC", "(1 + 2 x) e^(x^2) erfc(x) = P((x - c) / (x + c)), c = 3563/1024", (9, 21),
            ((low - middle) / (low + middle), (high - middle) / (high + middle)),
            scaled_erfc, lambda t: 1 / scaled_erfc(t))  # fmt: skip
        if single:
            continue  # what follows serves pow, which computes in double
        fifth = (3 - 2 * ROOT) ** 2
        add("POW_ATANH", "atanh(s) = s (1 + z/3 + z^2 P(z)), z = s^2", (0, 6), (mpf(0), fifth),
            of_square(lambda s: (mpmath.atanh(s) / s - 1 - s**2 / 3) / s**4, mpf(1) / 5), lambda z: z**2)  # fmt: skip
        add("POW_LOG2", "log2(1 + f) = f P(f); for results in float", (0, 12), (1 / ROOT - 1, ROOT - 1),
            at(lambda f: mpmath.log1p(f) / f / LN2, 1 / LN2), at(lambda f: LN2 * f / mpmath.log1p(f), LN2))  # fmt: skip
        add("POW_EXP2", "2^r = P(r); for results in float", (0, 6), (-HALF, HALF),
            lambda r: mpmath.power(2, r), lambda r: mpmath.power(2, -r))  # fmt: skip
    return made


def literal(value: mpf) -> str:
    """As Python's float.fromhex reads it, exactly."""
    return float(value).hex()


def main() -> None:
    """Derive the sets named on the command line, all without names; write them if told to."""
    wanted = {name for name in sys.argv[1:] if not name.startswith("-")}
    write = "--write" in sys.argv
    lines = [HEADER]
    sets: dict[str, list[str]] = {}
    for fit in fits():
        if wanted and fit.name not in wanted:
            continue
        coefficients, exact_bits, bits = derive(fit)
        print(
            f"{fit.name:9} {fit.ty:7} degree {fit.degree:2}: 2^{float(exact_bits):.1f}, rounded 2^{float(bits):.1f}",
            flush=True,
        )
        entry = [f"    # {fit.doc}; error 2^{float(bits):.1f}", f'    "{fit.ty}": (']
        entry += [f'        _h("{literal(c)}"),' for c in coefficients] + ["    ),"]
        sets.setdefault(fit.name, []).extend(entry)
    for name, entries in sets.items():
        lines += ["", f"{name}: Final[Coefficients] = {{", *entries, "}"]
    if write:
        TARGET.write_text("\n".join(lines) + "\n")
    elif wanted:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
