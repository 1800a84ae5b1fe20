"""The interpreter of loop programs: what it computes by itself, and the faults that machine code would not see."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import pairwise, run_program
from jitgraph.errors import InternalError
from jitgraph.ir.graph import Site
from tests.loop_programs import F32, F64, I64, B, CheckFailed, L, array, const, i, let, n, program, types_of, var

RNG = np.random.default_rng(2)
X, OUT = array("x", F64, n), array("out", F64, n)


def run(p: L.Program, *args: object, results: tuple[L.Buffer, ...] = (OUT,)) -> list[object] | None:
    return run_program(p, interface_of(p, len(args), types_of(results)), args)


def one_loop(body: list[L.Stmt], **rest: object) -> L.Program:
    return program([L.For("i", 0, n, body)], [X], [OUT], dims=[("n", 0, 0)], **rest)  # type: ignore[arg-type]


def test_elementwise() -> None:
    body: list[L.Stmt] = [
        L.Load(var("a"), X, (i,)),
        let("b", "mul", var("a"), const(3.0)),
        L.Store(OUT, (i,), var("b")),
    ]
    a = RNG.standard_normal(12)
    (found,) = run(one_loop(body), a) or [None]
    np.testing.assert_array_equal(found, a * 3)


def test_guard() -> None:
    assert run(one_loop([], guards=[(">=", n, 4)]), np.ones(3)) is None


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_pairwise_is_numpys_sum(dtype: np.dtype) -> None:
    for size in (*range(1, 140), 1000, 4097):
        a = (RNG.standard_normal(size) * 10.0 ** RNG.uniform(-6, 6, size)).astype(dtype)
        assert pairwise(list(a), dtype) == np.sum(a)


def test_access_out_of_bounds() -> None:
    body: list[L.Stmt] = [L.Load(var("a"), X, (i + 1,)), L.Store(OUT, (i,), var("a"))]
    with pytest.raises(InternalError, match=r"x\[3\] lies 24 bytes into a memory of 24 bytes"):
        run(one_loop(body), np.ones(3))


def test_division_by_zero_is_a_fault_of_the_lowering() -> None:
    body: list[L.Stmt] = [let("b", "idiv", const(1, I64), const(0, I64))]
    with pytest.raises(InternalError, match="division by zero"):
        run(one_loop(body), np.ones(1))


def test_check() -> None:
    body: list[L.Stmt] = [
        L.Load(var("a"), X, (i,)),
        let("p", "cmp", var("a"), const(2.0), dtype=B, attr="lt"),
        L.Check(var("p", B), 0, (var("a"),)),
    ]
    with pytest.raises(CheckFailed) as caught:
        run(one_loop(body, sites=[Site("ValueError", "{0}")]), np.arange(5.0))
    assert (caught.value.site, caught.value.values) == (0, (2.0,))
