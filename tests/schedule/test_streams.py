"""Stores that pass the caches by: which nests may have them, that the bits are the same, and the instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import target
from jitgraph.abi import TABLE_STREAM
from jitgraph.codegen.loops_printer import print_body
from jitgraph.codegen.loops_verify import verify
from jitgraph.errors import VerifyError
from jitgraph.ir.dims import DimLike
from jitgraph.runtime import table
from jitgraph.schedule.streams import streams
from tests.loop_programs import F32, F64, L, array, check, const, i, j, let, m, n, program, var

X, Y, Z = (array(name, F64, n) for name in "xyz")
A, C = (array(name, F64, n, m) for name in "ac")
x86 = pytest.mark.skipif(not target.host().triple.startswith("x86_64"), reason="instructions of x86")
RNG = np.random.default_rng(5)


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """Sets the bytes from which on stores pass the caches by."""
    addresses = table.table()
    before = addresses[TABLE_STREAM // 8]

    def put(count: int) -> None:
        addresses[TABLE_STREAM // 8] = count

    yield put
    addresses[TABLE_STREAM // 8] = before


def loop(name: str, upper: DimLike, *body: L.Stmt, role: str = "vector") -> L.For:
    return L.For(name, 0, upper, list(body), 1, role)  # type: ignore[arg-type]


def load(name: str, b: L.Buffer, *index: DimLike) -> L.Load:
    return L.Load(var(name, b.dtype), b, index)


def text(*body: L.Stmt) -> str:
    """The loops of a kernel behind the pass."""
    kernel = L.Function("k0", [X, Y, Z, A, C], ["n", "m"], [], list(body))
    made = streams(program([], kernels=[kernel]))
    return "\n".join(line.strip() for line in print_body(made.kernels[0].body).splitlines() if "for " in line)


ADD = [load("p", X, i), load("q", Y, i), let("r", "add", var("p"), var("q")), L.Store(Z, (i,), var("r"))]


def test_what_a_nest_moves() -> None:
    assert text(loop("i", n, *ADD)) == "for i in range(0, n) vector streams 24*n {"
    half = [load("p", array("x", F32, n), i), let("q", "cast", var("p", F32), dtype=F64), L.Store(Z, (i,), var("q"))]
    assert text(loop("i", n, *half)) == "for i in range(0, n) vector streams 12*n {"
    twice = [load("p", X, i), load("q", X, i + 1), L.Store(Z, (i,), var("p")), L.Store(Y, (i,), var("q"))]
    assert text(loop("i", n, *twice)) == "for i in range(0, n) vector streams 24*n {"


def test_nests_and_what_stays_the_same_in_a_row() -> None:
    body = [load("p", A, i, j), load("q", X, j), let("r", "mul", var("p"), var("q")), L.Store(C, (i, j), var("r"))]
    found = text(loop("i", n, loop("j", m, *body), role="serial"))
    assert found == "for i in range(0, n) {\nfor j in range(0, m) vector streams 16*m*n + 8*m {"
    body = [load("p", A, i, j), load("q", X, i), let("r", "mul", var("p"), var("q")), L.Store(C, (i, j), var("r"))]
    assert "streams 16*m*n {" in text(loop("i", n, loop("j", m, *body), role="serial"))


def test_what_does_not_stream() -> None:
    heavy = [let("s0", "fdiv", var("p"), var("q")), let("s1", "fdiv", var("s0"), var("q"))]
    triangle = [load("p", A, i, j), L.Store(C, (i, j), var("p"))]
    rejected: list[L.Stmt] = [
        loop("i", n, *ADD, role="serial"),
        loop("i", 64, *ADD),
        loop("i", n, load("p", X, i), L.Store(X, (i,), var("p"))),  # in place
        loop("i", n, load("p", X, i), load("q", Y, i), *heavy, L.Store(Z, (i,), var("s1"))),
        loop("i", n, load("p", X, i), let("s", "call", var("p"), attr="exp"), L.Store(Z, (i,), var("s"))),
        loop("i", n, load("p", X, 2 * i), L.Store(Z, (i,), var("p"))),
        loop("i", n, load("p", X, i), L.Store(Z, (n - 1 - i,), var("p"))),
        loop("i", n, load("p", X, i), L.Store(Z, (0,), var("p"))),
        loop("i", n, loop("j", i, *triangle), role="serial"),
    ]
    for s in rejected:
        assert "streams" not in text(s)


def test_a_serial_loop_cannot_stream() -> None:
    bad = loop("i", n, *ADD, role="serial")
    bad.streams = 8 * n
    kernel = L.Function("k0", [X, Y, Z], ["n"], [], [bad])
    with pytest.raises(VerifyError, match="a serial loop that streams"):
        verify(program([], kernels=[kernel]))


def test_kernels_with_two_stores_run(limit: Callable[[int], None]) -> None:
    """Where one of two results is not aligned as the other is, stores go the usual way."""
    limit(0)
    body = [
        load("p", X, i),
        let("q", "add", var("p"), const(1.0)),
        L.Store(Y, (i,), var("p")),
        L.Store(Z, (i,), var("q")),
    ]
    kernel = L.Function("k0", [X, Y, Z], ["n"], [], [loop("i", n, *body)])
    call = L.CallKernel("k0", (X, Y, Z), (n,), ())
    p = streams(program([call], [X, Y], [Z], dims=[("n", 0, 0)], kernels=[kernel]))
    x = RNG.standard_normal(3000)
    for at in range(8):
        y = np.empty(3008)[at : at + 3000]
        check(p, [x, y], [Z], [x + 1])


@jg.jit
def saxpy(x, y):
    return 2 * x + y


@jg.jit
def into(x, out):
    np.multiply(x, x, out=out)


@jg.jit
def both(x, y):
    return x + y, x > y


@jg.jit
def rows(x, y):
    return x * y[:, None] - y[0]


@jg.jit
def neighbours(x):
    return x[2:] - 2 * x[1:-1] + x[:-2]


@jg.jit
def laplace(x):
    return x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1]


@jg.jit
def fills(x):
    return np.zeros(x.shape), np.full(x.shape, 3, np.int16), x.copy()


@jg.jit
def scaled(z):
    return z * (2 - 1j)


@pytest.mark.parametrize("bound", [0, 1 << 40])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2"])
def test_bits_at_every_place(bound: int, dtype: str, limit: Callable[[int], None]) -> None:
    limit(bound)
    memory, out = (RNG.standard_normal(6000) * 100).astype(dtype), np.empty(6000, dtype)
    for size in (1, 15, 64, 127, 128, 129, 1000, 5001):
        for at in (0, 1, 3, 8, 17):
            x, y = memory[at : at + size], memory[::-1][:size]
            assert np.array_equal(saxpy(x, y), saxpy.__wrapped__(x, y))
            for k in (0, 1, 5, 16):
                out[:] = 7
                into(x, out[k : k + size])
                assert np.array_equal(out[k : k + size], x * x)
                assert (out[:k] == 7).all()
                assert (out[k + size :] == 7).all()
            for got, expected in zip(both(x, y), both.__wrapped__(x, y), strict=True):
                assert np.array_equal(got, expected)


@pytest.mark.parametrize("shape", [(7, 300), (30, 257), (3, 1000), (5, 5), (40, 3)])
def test_bits_of_rows_and_complex_numbers(shape: tuple[int, int], limit: Callable[[int], None]) -> None:
    limit(0)
    x, y = RNG.standard_normal(shape), RNG.standard_normal(shape[0])
    assert np.array_equal(rows(x, y), rows.__wrapped__(x, y))
    for got, expected in zip(fills(x), fills.__wrapped__(x), strict=True):
        assert np.array_equal(got, expected)
    if min(shape) > 2:
        assert np.array_equal(laplace(x), laplace.__wrapped__(x))
    flat = x.ravel()
    for at in range(5):
        assert np.array_equal(neighbours(flat[at:]), neighbours.__wrapped__(flat[at:]))
    z = x + 1j
    assert np.array_equal(scaled(z), scaled.__wrapped__(z))
    assert np.array_equal(scaled(z.ravel()), scaled.__wrapped__(z.ravel()))


def assembly(f: jg.JitFunction, *args: object) -> str:
    return str(f.lower(*args).compile().as_text())


@x86
def test_the_instructions() -> None:
    x, y = np.ones(1000), np.ones((30, 1000))
    several = (saxpy, (x, x)), (into, (x, x.copy())), (rows, (y, y[:, 0])), (scaled, (x + 1j,)), (neighbours, (x,))
    for f, args in several:
        made = assembly(f, *args)
        assert "movntp" in made
        assert made.count("sfence") == 1


@jg.jit
def exponential(x):
    return np.exp(x)


@jg.jit
def in_place(x):
    x += 1.0


@jg.jit
def total(x):
    return x.sum()


@x86
def test_what_has_no_such_instructions() -> None:
    x = np.ones(1000)
    for f in (exponential, in_place, total):
        made = assembly(f, x)
        assert "movnt" not in made
        assert "sfence" not in made
