"""The memory plan: which temporaries share bytes, and which go to the heap."""

from __future__ import annotations

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.in_place import begins_in_place, is_overwritten_by
from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import run_program
from jitgraph.codegen.loops import Alloc, Buffer, Const, For, Free, If, Load, Stmt, Store, Swap, Var
from jitgraph.codegen.loops_printer import print_program
from jitgraph.codegen.memory import Plan, largest_sum, plan_memory
from jitgraph.ir.dims import DimLike, Facts, evaluate, symbol
from jitgraph.ir.types import TensorType
from jitgraph.runtime import table
from tests.lowered import Lowered, program_of

N, M = symbol("n"), symbol("m")


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
    assert [allocs[name].offset for name in "abc"] == [0, 0, 0]
    assert total == 832


def test_one_that_fits_no_gap_lies_on_top() -> None:
    a, b, c, d = buffer("a", 8), buffer("b", 8), buffer("c", 16), buffer("d", 8)
    total, allocs = plan([make(a), make(b), use(a), use(b), make(c), use(c), use(b), make(d), use(d), use(c)])
    assert total == 128 + 64
    assert allocs["b"].offset == allocs["d"].offset


def test_equal_symbolic_sizes_share() -> None:
    a, b, c = buffer("a", N), buffer("b", N), buffer("c", N + 1)
    made = plan_memory([make(a), use(a), make(b), use(b), make(c), use(c), use(b)], {"n"}, Facts())
    env = {"n": 13}
    check_plan(made, env)
    assert evaluate(made.bytes, env) == 128 + 128


def test_sizes_that_nobody_can_compare_share_the_larger() -> None:
    a, b = buffer("a", N), buffer("b", M)
    made = plan_memory([make(a), use(a), make(b), use(b)], {"n", "m"}, Facts())
    assert [a.lives[0].alloc.offset for a in made.chains if a.lives[0].alloc] == [0, 0]
    for n, m in ((3, 100), (100, 3)):
        env = {"n": n, "m": m}
        for name, value in made.sizes:
            env[name] = evaluate(value, env)
        assert evaluate(made.bytes, env) == 832


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


# --- in place ---------------------------------------------------------------------------------------------------------

I, J, T = symbol("i"), symbol("j"), symbol("t")
V = Var("v", dtypes.F64)


def dense(name: str, *shape: DimLike) -> Buffer:
    strides: list[DimLike] = []
    reach: DimLike = 8
    for d in reversed(shape):
        strides.insert(0, reach)
        reach = reach * d
    return Buffer(name, dtypes.F64, shape, tuple(strides))


def load(b: Buffer, *index: DimLike) -> Stmt:
    return Load(V, b, index)


def store(b: Buffer, *index: DimLike) -> Stmt:
    return Store(b, index, V)


def in_place(stmt: Stmt) -> bool:
    return begins_in_place(stmt, "a", "b", {})


A1, B1, A2, B2 = dense("a", N), dense("b", N), dense("a", N, M), dense("b", N, M)


def test_the_same_element_is_read_before_it_is_written() -> None:
    assert in_place(For("i", 0, N, [load(A1, I), store(B1, I)], role="vector"))
    assert in_place(For("i", 0, N, [For("j", 0, M, [load(A2, I, J), store(B2, I, J)])]))


def test_another_element_may_have_been_written() -> None:
    assert not in_place(For("i", 0, N, [load(A1, I + 1), store(B1, I)]))
    assert not in_place(For("i", 0, N, [load(A1, N - 1 - I), store(B1, I)]))
    assert not in_place(For("i", 0, N, [store(B1, I), load(A1, I)]))


def test_rows_are_read_before_the_row_is_written() -> None:
    row = [For("j", 0, M, [load(A2, I, J)]), For("j", 0, M, [store(B2, I, J)])]
    assert in_place(For("i", 0, N, row))
    assert not in_place(For("i", 0, N, [For("j", 0, M, [load(A2, 0, J)]), For("j", 0, M, [store(B2, I, J)])]))
    turned = Buffer("a", dtypes.F64, (N, M), (8, 8 * N))
    assert not in_place(For("i", 0, N, [For("j", 0, M, [load(turned, I, J), store(B2, I, J)])]))


def test_a_loop_that_names_no_element_comes_again() -> None:
    assert not in_place(For("k", 0, 3, [For("i", 0, N, [load(A1, I), store(B1, I)])]))


def test_strips_name_their_tile() -> None:
    inner = For("i", T, T + 16, [load(A1, I), store(B1, I)])
    assert in_place(For("t", 0, N, [inner], 16))
    assert not in_place(For("t", 0, N, [For("i", T, T + 17, [load(A1, I), store(B1, I)])], 16))


def test_elements_of_other_sizes_lie_elsewhere() -> None:
    small = Buffer("b", dtypes.F32, (N,), (4,))
    assert not in_place(For("i", 0, N, [load(A1, I), Store(small, (I,), Const(1.0, dtypes.F32))]))


def test_what_is_overwritten_as_a_whole() -> None:
    whole = For("i", 0, N, [For("j", 0, M, [load(A2, I, J), store(B2, I, J)])])
    assert is_overwritten_by(whole, B2, {})
    assert not is_overwritten_by(whole, A2, {})
    assert not is_overwritten_by(For("i", 1, N, [store(B1, I)]), B1, {})
    assert not is_overwritten_by(For("i", 0, N, [load(B1, I), store(B1, I)]), B1, {})
    condition = Var("c", dtypes.BOOL)
    assert not is_overwritten_by(For("i", 0, N, [If(condition, [store(B1, I)], [])]), B1, {})


# --- the plan of graphs -----------------------------------------------------------------------------------------------

SOFTMAX = """
    graph @attention(%q: f64[n, m], %k: f64[k, m], %v: f64[k, l]) -> f64[n, l] {
      %t = view %k {map = (d0: m, d1: k) -> (d1, d0)} : f64[m, k]:F
      %s = matmul %q, %t : f64[n, k]
      %p = kernel %s {rows = 1} : f64[n, k] (%a: f64[n, k]) {
        %m = reduce_max %a {axes = [1], keepdims = true} : f64[n, 1]
        %d = sub %a, %m : f64[n, k]
        %e = exp %d : f64[n, k]
        %z = reduce_sum %e {axes = [1], keepdims = true} : f64[n, 1]
        %y = div %e, %z : f64[n, k]
        yield %y
      }
      %o = matmul %p, %v : f64[n, l]
      return %o
    }"""


def places(text: str) -> list[str]:
    """The lines of the program that say where memory lies."""
    lines = print_program(program_of(text)).split("program ")[1].splitlines()
    return [x.strip() for x in lines if x.strip().startswith(("alloc", "mem.", "scratch"))]


def test_golden_attention() -> None:
    assert places(SOFTMAX) == [
        "scratch: 64*floordiv(8*k*n + 63, 64) bytes",
        "alloc t3: f64[n, k] scratch at 0",
        "alloc t4: f64[n, k] scratch at 0",
    ]


def test_golden_layers_of_other_widths() -> None:
    """Each second array may lie in the result, where the run says that it fits."""
    assert places(
        """
        graph @layers(%x: f64[n, m], %a: f64[m, k], %b: f64[k, l], %c: f64[l, p]) -> f64[n, p] {
          %r = matmul %x, %a : f64[n, k]
          %s = matmul %r, %b : f64[n, l]
          %t = matmul %s, %c : f64[n, p]
          return %t
        }"""
    ) == [
        "mem.0 = min(max(-8*k*n + 8*n*p + 1, 0), 1)",
        "mem.1 = max(-64*floordiv(8*k*n + 63, 64)*mem.0 + 64*floordiv(8*k*n + 63, 64) + 64*floordiv(8*l*n + 63, 64), "
        "64*floordiv(8*l*n + 63, 64))",
        "scratch: mem.1 bytes",
        "alloc t4: f64[n, k] scratch in r6 if mem.0, else at 64*floordiv(8*l*n + 63, 64)",
        "alloc t5: f64[n, l] scratch at 0",
    ]


def test_the_result_serves_what_is_dead_before_it() -> None:
    text = """
        graph @f(%x: f64[n, n]) -> f64[n, n] {
          %a = matmul %x, %x : f64[n, n]
          %b = matmul %a, %a : f64[n, n]
          %c = matmul %b, %b : f64[n, n]
          return %c
        }"""
    assert places(text) == [
        "scratch: 64*floordiv(8*n*n + 63, 64) bytes",
        "alloc t1: f64[n, n] scratch in r3",
        "alloc t2: f64[n, n] scratch at 0",
    ]
    Lowered(text)(np.arange(16.0).reshape(4, 4))


def test_an_overwritten_argument_serves_and_is_not_copied_to() -> None:
    text = """
        graph @f(%x: f64[n, n], %out: f64[n, n]) -> () {
          %a = matmul %x, %x : f64[n, n]
          %b = write %a, %out {map = (d0: n, d1: n) -> (d0, d1)} : f64[n, n]
          return %b {mutates = [1]}
        }"""
    assert places(text) == ["alloc t2: f64[n, n] scratch in out"]
    run = Lowered(text)
    assert not run.program.kernels
    run(np.arange(16.0).reshape(4, 4), np.zeros((4, 4)))


def test_an_argument_that_an_error_would_show_does_not() -> None:
    text = """
        graph @f(%x: f64[n, n], %k: py_int, %out: f64[n, n]) -> () {
          %a = matmul %x, %x : f64[n, n]
          %zero = constant {value = 0} : py_int
          %ok = gt %k, %zero : py_bool
          check %ok {order = 1, site = 0 ValueError "no"}
          %b = write %a, %out {map = (d0: n, d1: n) -> (d0, d1)} : f64[n, n]
          return %b {mutates = [2]}
        }"""
    assert places(text)[1] == "alloc t2: f64[n, n] scratch at 0"


# --- wrong lifetimes show -----------------------------------------------------------------------------------------------


def test_poison_shows_a_life_that_is_too_short() -> None:
    p = program_of(
        """
        graph @f(%x: f64[n, n]) -> f64[n, n] {
          %a = matmul %x, %x : f64[n, n]
          %b = matmul %a, %x : f64[n, n]
          %c = matmul %b, %a : f64[n, n]
          return %c
        }"""
    )
    x = np.eye(4)
    interface = interface_of(p, 1, [TensorType(np.dtype(float), (N, N))])
    (good,) = run_program(p, interface, [x], library=table.call, poison=True) or [None]
    np.testing.assert_array_equal(good, x)
    assert p.memory is not None
    chain = next(c for c in p.memory.chains if c.lives[0].buffer.name == "t1")
    chain.lives[-1].dies = chain.lives[0].start  # as if nobody read it behind its own product
    (bad,) = run_program(p, interface, [x], library=table.call, poison=True) or [None]
    assert np.isnan(bad).any()


# --- random lives -------------------------------------------------------------------------------------------------------


def random_body(rng: np.random.Generator, count: int) -> list[Stmt]:
    """Buffers of random sizes that are made, used together and dropped."""
    sizes: list[DimLike] = [N, M, N * M, 2 * N, symbol("k"), 100, 7]
    alive: list[tuple[Buffer, int]] = []
    body: list[Stmt] = []
    for at in range(count):
        b = dense(f"b{at}", sizes[rng.integers(len(sizes))])
        body += [make(b), store(b, 0)]
        alive = [(x, until) for x, until in alive if until >= at] + [(b, at + int(rng.integers(0, 5)))]
        body += [load(x, 0) for x, _ in alive]
    return body


def test_random_lives_never_overlap_and_are_packed_well() -> None:
    ratios = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        results = [dense("r0", N), dense("r1", N * M)][: seed % 3]
        body = random_body(rng, int(rng.integers(2, 14)))
        body += [store(r, 0) for r in results]
        made = plan_memory(body, {"n", "m", "k"}, Facts(), results)
        for _ in range(6):
            env = {name: int(rng.integers(0, 300)) for name in ("n", "m", "k")}
            ratios.append(check_plan(made, env))
    assert np.mean(ratios) < 1.2


def check_plan(made: Plan, env: dict[str, int]) -> float:
    """No two chains that live together share a byte; the peak over its lower bound."""
    for name, value in made.sizes:
        env[name] = evaluate(value, env)
    total = evaluate(made.bytes, env)
    spans = []
    for c in made.chains:
        size, where, offset = evaluate(c.size, env), "arena", evaluate(c.offset, env)
        host = c.host if c.host is not None and evaluate(c.fits, env) else c if c.outside is not None else None
        if host is not None:
            assert host.outside is not None
            where, offset = host.outside.buffer.name, evaluate(c.inside, env)
            assert offset + size <= evaluate(host.size, env)
        else:
            assert offset % 64 == 0
            assert offset + size <= total
        spans.append((where, offset, size, c.first, c.last))
    for k, (where, at, size, first, last) in enumerate(spans):
        for where2, at2, size2, first2, last2 in spans[:k]:
            together = first <= last2 and first2 <= last
            assert where != where2 or not together or at + size <= at2 or at2 + size2 <= at or 0 in (size, size2)
    results = sum(evaluate(c.size, env) for c in made.chains if c.outside is not None)
    bound = largest_sum([(c.first, c.last, evaluate(c.size, env)) for c in made.chains])
    return (results + total) / max(bound, 4096)
