"""The memory plan: which temporaries share bytes, and which go to the heap."""

from __future__ import annotations

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import Alloc, Buffer, Const, For, Free, Load, Stmt, Store, Swap, Var
from jitgraph.codegen.memory import plan_memory
from jitgraph.ir.dims import Dim, DimLike, Facts, evaluate, symbol
from tests.lowered import Lowered, program_of

N = symbol("n")


def buffer(name: str, *shape: DimLike) -> Buffer:
    return Buffer(name, dtypes.F64, shape, (8,) * len(shape))


def make(b: Buffer) -> Alloc:
    return Alloc(b, "scratch")


def use(b: Buffer) -> Stmt:
    return Store(b, (0,), Const(1.0, dtypes.F64))


def plan(body: list[Stmt], facts: Facts | None = None) -> tuple[DimLike, dict[str, Alloc]]:
    total = plan_memory(body, {"n"}, facts or Facts()).bytes
    return total, {s.buffer.name: s for s in walk(body) if isinstance(s, Alloc)}


def walk(body: list[Stmt]) -> list[Stmt]:
    found = []
    for s in body:
        found.append(s)
        if isinstance(s, For):
            found += walk(s.body)
    return found


def test_what_lives_together_shares_nothing() -> None:
    a, b = buffer("a", 10), buffer("b", 10)
    total, allocs = plan([make(a), use(a), make(b), use(b), use(a)])
    assert total == 256
    assert {x.offset for x in allocs.values()} == {0, 128}


def test_the_dead_make_room() -> None:
    a, b, c = buffer("a", 10), buffer("b", 8), buffer("c", 100)
    total, allocs = plan([make(a), use(a), make(b), use(b), make(c), use(c)])
    assert allocs["a"].offset == allocs["b"].offset == 0
    assert total == 128 + 832


def test_equal_symbolic_sizes_share() -> None:
    a, b, c = buffer("a", N), buffer("b", N), buffer("c", N + 1)
    total, allocs = plan([make(a), use(a), make(b), use(b), make(c), use(c)])
    assert allocs["a"].offset == allocs["b"].offset == 0
    assert isinstance(allocs["c"].offset, Dim)
    assert all(evaluate(x.offset, {"n": 13}) % 64 == 0 for x in allocs.values())
    assert evaluate(total, {"n": 13}) == 128 + 128


def test_what_a_loop_uses_lives_until_its_end() -> None:
    a, b = buffer("a", 10), buffer("b", 10)
    total, allocs = plan([make(a), For("k", 0, 5, [use(a), make(b), use(b)])])
    assert total == 256
    assert allocs["a"].offset != allocs["b"].offset


def test_what_is_made_in_a_loop_is_free_behind_it() -> None:
    a, b = buffer("a", 10), buffer("b", 10)
    total, _ = plan([For("k", 0, 5, [make(b), use(b)]), make(a), use(a)])
    assert total == 128


def test_buffers_that_are_exchanged_live_as_long_as_either() -> None:
    a, b, c = buffer("a", 10), buffer("b", 10), buffer("c", 10)
    body: list[Stmt] = [make(a), make(b), use(a), use(b), Swap(a, b), make(c), use(c), use(a)]
    total, allocs = plan(body)
    assert total == 384
    assert len({x.offset for x in allocs.values()}) == 3


def test_unknown_sizes_go_to_the_heap_and_are_freed() -> None:
    a = buffer("a", symbol("c"))
    body = [make(a), use(a), use(a), use(buffer("x", 3))]
    total, allocs = plan(body)
    assert total == 0
    assert allocs["a"].scope == "heap"
    assert isinstance(body[3], Free)


def test_a_bound_of_the_loop_index_makes_the_size_known() -> None:
    facts = Facts()
    facts.bound("k", 0, N - 1)
    a = buffer("a", symbol("k"))
    total, allocs = plan([For("k", 0, N, [make(a), use(a)])], facts)
    assert allocs["a"].scope == "scratch"
    assert evaluate(total, {"n": 17}) == 128


def test_heap_memory_of_a_loop_is_freed_in_each_turn() -> None:
    a = buffer("a", symbol("k"))
    body: list[Stmt] = [make(a), For("i", 0, symbol("k"), [Load(Var("v", dtypes.F64), a, (symbol("i"),))])]
    loop = For("k", 0, N, body)
    plan([loop])
    assert isinstance(loop.body[-1], Free)


def test_a_dying_operand_lies_where_the_result_goes() -> None:
    p = program_of(
        """
        graph @f(%x: f64[n, n]) -> f64[n, n] {
          %a = matmul %x, %x : f64[n, n]
          %b = sqrt %a : f64[n, n]
          %c = neg %b : f64[n, n]
          return %c
        }"""
    )
    assert p.scratch_bytes == 0


def test_an_operand_read_at_other_elements_does_not() -> None:
    run = Lowered(
        """
        graph @f(%x: f64[n]) -> f64[n] {
          %b = neg %x : f64[n]
          %k = kernel %b : f64[n] (%p: f64[n]) {
            %v = view %p {map = (d0: n) -> (n - 1 + -1*d0)} : f64[n]:strided(order=[0], negative=[0])
            %c = add %p, %v : f64[n]
            yield %c
          }
          return %k
        }"""
    )
    assert run.program.scratch_bytes != 0
    run(np.arange(9.0))
