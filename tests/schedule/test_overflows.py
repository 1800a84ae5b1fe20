"""Overflow checks with constants as range tests: the text, and that exactly the same numbers are refused."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.loops_printer import print_body
from jitgraph.ir.dims import symbol
from jitgraph.schedule.overflows import overflows
from jitgraph.schedule.statements import Names
from tests.loop_programs import I64, B, L, const, let, var

RNG = np.random.default_rng(4)
X = var("x", I64)
LEAST, MOST = -(2**63), 2**63 - 1


def flag(name: str, op: str, a: L.Operand, b: L.Operand) -> list[L.Stmt]:
    return [let(f"{name}f", op, a, b, dtype=B), let(name, "not_", var(f"{name}f", B), dtype=B)]


def check(name: str, site: int = 0) -> L.Check:
    return L.Check(var(name, B), site, ())


def text(body: list[L.Stmt]) -> str:
    return print_body(overflows(body, Names())).strip()


def expected(x: str) -> str:
    return textwrap.dedent(x).strip()


def test_a_product_and_a_sum_are_one_range() -> None:
    body = [
        *flag("a", "mul_overflows", X, const(3, I64)),
        check("a"),
        let("y", "mul", X, const(3, I64)),
        *flag("b", "add_overflows", var("y", I64), const(1, I64)),
        check("b"),
        let("z", "add", var("y", I64), const(1, I64)),
    ]
    assert text(body) == expected(
        """
        af: bool = mul_overflows x, 3
        a: bool = not_ af
        w1: i64 = sub x, -3074457345618258602
        w2: u64 = cast w1
        w3: bool = cmp le w2, 6148914691236517204
        y: i64 = mul x, 3
        bf: bool = add_overflows y, 1
        b: bool = not_ bf
        w4: i64 = sub x, -3074457345618258602
        w5: u64 = cast w4
        w6: bool = cmp le w5, 6148914691236517204
        check w6 site 0 ()
        z: i64 = add y, 1
        """
    )


def test_on_one_path_only() -> None:
    even = var("even", B)
    body = [
        *flag("a", "sub_overflows", const(0, I64), X),
        let("c", "or_", even, var("a", B), dtype=B),
        check("c"),
    ]
    assert text(body).endswith(
        expected(
            """
            w1: bool = cmp ge x, -9223372036854775807
            w2: bool = or_ even, w1
            check w2 site 0 ()
            """
        )
    )


def test_a_size_is_compared_as_one() -> None:
    """So that `versions` can compare its extremes in front of the loop."""
    body: list[L.Stmt] = [
        L.DimValue(X, symbol("n")),
        *flag("a", "mul_overflows", X, const(4, I64)),
        check("a"),
    ]
    assert "cmp ge x, -2305843009213693952" in text(body)
    assert "cmp le x, 2305843009213693951" in text(body)


@pytest.mark.parametrize(
    "between",
    [
        [L.Bind("s", X)],
        [let("q", "idiv", const(7, I64), X)],
        [L.Check(const(True, B), 1, ())],
    ],
)
def test_what_checks_do_not_pass(between: list[L.Stmt]) -> None:
    body = [
        *flag("a", "mul_overflows", X, const(3, I64)),
        check("a"),
        *between,
        *flag("b", "add_overflows", X, const(1, I64)),
        check("b"),
    ]
    assert text(body).count("site 0") == 2


def test_of_two_variables_the_flag_stays() -> None:
    body = [*flag("a", "mul_overflows", X, var("y", I64)), check("a")]
    assert overflows(body, Names()) == body


def up(n: int) -> int:
    m = 0
    while m < 1:
        n = 3 * n + 1
        m += 1
    return n


def down(n: int) -> int:
    m = 0
    while m < 1:
        n = 5 - 7 * n
        m += 1
    return n


def both(n: int) -> Any:
    m = 0
    while m < 2:
        n = n * 1000 - 999 if n % 2 == 0 else -n
        m += 1
    return n


def minus(n: int) -> int:
    m = 0
    while m < 1:
        n = -3 * (n - 5) - 1
        m += 1
    return n


@pytest.mark.parametrize("f", [up, down, both, minus])
def test_numbers_at_the_bounds(f: Any) -> None:
    """Python's integers have no bound: what does not fit is computed by Python."""
    g = jg.jit(f)
    edges = [0, 1, -1, LEAST, MOST]
    for factor in (1, 3, 7, 1000):
        edges += [side // factor + k for side in (LEAST, MOST) for k in range(-8, 9)]
    for n in edges:
        if LEAST <= n <= MOST:
            assert g(n) == f(n), n
