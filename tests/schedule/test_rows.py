"""The text that the passes over rows make of a loop, and that it means the same: rings, triangles, rows side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import pytest

from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import run_program
from jitgraph.codegen.loops_printer import print_body
from jitgraph.codegen.loops_verify import verify
from jitgraph.ir.dims import DimLike, Facts, symbol
from jitgraph.schedule.rings import rings
from jitgraph.schedule.rows import rows
from jitgraph.schedule.statements import Names
from jitgraph.schedule.triangle import triangles
from tests.loop_programs import F64, L, array, executable, i, j, k, let, m, n, program, var

X, Y, S = array("x", F64, n), array("y", F64, n), array("s", F64, n, n)
A, C, T = (array(name, F64, n, m) for name in "act")
#: Bytes that a row of sums has room in.
ROW = 512
r1, c1, r2, c2 = map(symbol, ("r1", "c1", "r2", "c2"))


def facts() -> Facts:
    made = Facts()
    made.bound("n", lower=3)
    return made


def loop(name: str, lower: DimLike, upper: DimLike, *body: L.Stmt, role: str = "serial") -> L.For:
    return L.For(name, lower, upper, list(body), 1, role)  # type: ignore[arg-type]


def load(name: str, b: L.Buffer, *index: DimLike) -> L.Load:
    return L.Load(var(name), b, index)


def store(b: L.Buffer, *index: DimLike, value: str) -> L.Store:
    return L.Store(b, index, var(value))


def dot(extent: DimLike, u: L.Load, v: L.Load, model: str) -> L.Reduce:
    return L.Reduce("k", extent, [u, v], [L.Part(var("d"), "sum", "dot", u.var, factor=v.var, model=model)])


def last_two_rows() -> list[L.Stmt]:
    """Differences of neighbouring rows of an array in between."""
    return [
        L.Alloc(T, "heap"),
        loop("r1", 0, 1, loop("c1", 0, m, load("v", A, r1, c1), store(T, r1, c1, value="v"), role="vector")),
        loop(
            "r2", 1, n,
            loop("c1", 0, m, load("w", A, r2, c1), store(T, r2, c1, value="w"), role="vector"),
            loop(
                "c2", 0, m, load("p", T, r2, c2), load("q", T, r2 - 1, c2), let("s", "sub", var("p"), var("q")),
                store(C, r2, c2, value="s"), role="vector",
            ),
        ),
        L.Free(T),
    ]  # fmt: skip


def by_columns() -> list[L.Stmt]:
    """x[j] = y[j] - x[:j] @ s[:j, j]"""
    product = dot(j, load("u", X, k), load("v", S, k, j), "skylakex.strided")
    return [
        loop("j", 0, n, load("b", Y, j), product, let("z", "sub", var("b"), var("d")), store(X, j, value="z")),
    ]


def by_rows() -> list[L.Stmt]:
    """x[i] = y[i] - s[i, :i] @ x[:i]"""
    product = dot(i, load("u", S, i, k), load("v", X, k), "skylakex")
    return [
        loop("i", 0, n, load("b", Y, i), product, let("z", "sub", var("b"), var("d")), store(X, i, value="z")),
    ]


RINGS = """
    alloc t: f64[2, m] heap
    for r1 in range(0, 1) {
      for c1 in range(0, m) vector {
        v: f64 = load a[r1, c1]
        store t[mod(r1, 2), c1] = v
      }
    }
    for r2 in range(1, n) {
      for c1 in range(0, m) vector {
        w: f64 = load a[r2, c1]
        store t[mod(r2, 2), c1] = w
      }
      for c2 in range(0, m) vector {
        p: f64 = load t[mod(r2, 2), c2]
        q: f64 = load t[mod(r2 + 1, 2), c2]
        s: f64 = sub p, q
        store c[r2, c2] = s
      }
    }
    free t
"""
TRIANGLE = """
    alloc sums.w2: f64[n] scratch at 0
    alloc sums.w3: f64[n] scratch at 0
    for _w4 in range(0, n) vector {
      store sums.w2[_w4] = 0.0
      store sums.w3[_w4] = 0.0
    }
    for _w5 in range(0, 4*floordiv(n, 4), 4) {
      w9: f64 = load y[_w5]
      w6: f64 = load sums.w2[_w5]
      w7: f64 = load sums.w3[_w5]
      reduce _w10 in range(0) (w8: f64 = dot skylakex.rest of w11, w12, init w6) {
        w11: f64 = load x[_w10 + _w5]
        w12: f64 = load s[_w10 + _w5, _w5]
      }
      w13: f64 = add w8, w7
      w14: f64 = sub w9, w13
      store x[_w5] = w14
      w18: f64 = load y[_w5 + 1]
      w15: f64 = load sums.w2[_w5 + 1]
      w16: f64 = load sums.w3[_w5 + 1]
      reduce _w19 in range(1) (w17: f64 = dot skylakex.rest of w20, w21, init w15) {
        w20: f64 = load x[_w19 + _w5]
        w21: f64 = load s[_w19 + _w5, _w5 + 1]
      }
      w22: f64 = add w17, w16
      w23: f64 = sub w18, w22
      store x[_w5 + 1] = w23
      w27: f64 = load y[_w5 + 2]
      w24: f64 = load sums.w2[_w5 + 2]
      w25: f64 = load sums.w3[_w5 + 2]
      reduce _w28 in range(2) (w26: f64 = dot skylakex.rest of w29, w30, init w24) {
        w29: f64 = load x[_w28 + _w5]
        w30: f64 = load s[_w28 + _w5, _w5 + 2]
      }
      w31: f64 = add w26, w25
      w32: f64 = sub w27, w31
      store x[_w5 + 2] = w32
      w36: f64 = load y[_w5 + 3]
      w33: f64 = load sums.w2[_w5 + 3]
      w34: f64 = load sums.w3[_w5 + 3]
      reduce _w37 in range(3) (w35: f64 = dot skylakex.rest of w38, w39, init w33) {
        w38: f64 = load x[_w37 + _w5]
        w39: f64 = load s[_w37 + _w5, _w5 + 3]
      }
      w40: f64 = add w35, w34
      w41: f64 = sub w36, w40
      store x[_w5 + 3] = w41
      for _w4 in range(8*floordiv(_w5 + 4, 8), n) vector {
        w42: f64 = load x[_w5]
        w43: f64 = load s[_w5, _w4]
        w44: f64 = mul w42, w43
        w45: f64 = load x[_w5 + 1]
        w46: f64 = load s[_w5 + 1, _w4]
        w47: f64 = mul w45, w46
        w48: f64 = load x[_w5 + 2]
        w49: f64 = load s[_w5 + 2, _w4]
        w50: f64 = mul w48, w49
        w51: f64 = load x[_w5 + 3]
        w52: f64 = load s[_w5 + 3, _w4]
        w53: f64 = mul w51, w52
        w54: f64 = load sums.w2[_w4]
        w55: f64 = add w44, w50
        w56: f64 = add w54, w55
        store sums.w2[_w4] = w56
        w57: f64 = load sums.w3[_w4]
        w58: f64 = add w47, w53
        w59: f64 = add w57, w58
        store sums.w3[_w4] = w59
      }
    }
    for j in range(4*floordiv(n, 4), n) {
      w63: f64 = load y[j]
      w60: f64 = load sums.w2[j]
      w61: f64 = load sums.w3[j]
      reduce _w64 in range(-4*floordiv(n, 4) + j) (w62: f64 = dot skylakex.rest of w65, w66, init w60) {
        w65: f64 = load x[_w64 + 4*floordiv(n, 4)]
        w66: f64 = load s[_w64 + 4*floordiv(n, 4), j]
      }
      w67: f64 = add w62, w61
      w68: f64 = sub w63, w67
      store x[j] = w68
    }
"""
ROWS = """
    for _w2 in range(0, 4*floordiv(n, 4), 4) {
      reduce _w3 in range(16*floordiv(_w2, 16)) (w6: f64 = dot skylakex of w4, w5; w8: f64 = dot skylakex of w7, w5; w10: f64 = dot skylakex of w9, w5; w12: f64 = dot skylakex of w11, w5) {
        w4: f64 = load s[_w2, _w3]
        w5: f64 = load x[_w3]
        w7: f64 = load s[_w2 + 1, _w3]
        w9: f64 = load s[_w2 + 2, _w3]
        w11: f64 = load s[_w2 + 3, _w3]
      }
      reduce _w13 in range(_w2 - 16*floordiv(_w2, 16)) (w16: f64 = dot skylakex.rest of w14, w15, init w6; w18: f64 = dot skylakex.rest of w17, w15, init w8; w20: f64 = dot skylakex.rest of w19, w15, init w10; w22: f64 = dot skylakex.rest of w21, w15, init w12) {
        w14: f64 = load s[_w2, _w13 + 16*floordiv(_w2, 16)]
        w15: f64 = load x[_w13 + 16*floordiv(_w2, 16)]
        w17: f64 = load s[_w2 + 1, _w13 + 16*floordiv(_w2, 16)]
        w19: f64 = load s[_w2 + 2, _w13 + 16*floordiv(_w2, 16)]
        w21: f64 = load s[_w2 + 3, _w13 + 16*floordiv(_w2, 16)]
      }
      w23: f64 = load y[_w2]
      reduce _w24 in range(0) (w27: f64 = dot skylakex.rest of w25, w26, init w16) {
        w25: f64 = load s[_w2, _w2 + _w24]
        w26: f64 = load x[_w2 + _w24]
      }
      w28: f64 = sub w23, w27
      store x[_w2] = w28
      w29: f64 = load y[_w2 + 1]
      reduce _w30 in range(1) (w33: f64 = dot skylakex.rest of w31, w32, init w18) {
        w31: f64 = load s[_w2 + 1, _w2 + _w30]
        w32: f64 = load x[_w2 + _w30]
      }
      w34: f64 = sub w29, w33
      store x[_w2 + 1] = w34
      w35: f64 = load y[_w2 + 2]
      reduce _w36 in range(2) (w39: f64 = dot skylakex.rest of w37, w38, init w20) {
        w37: f64 = load s[_w2 + 2, _w2 + _w36]
        w38: f64 = load x[_w2 + _w36]
      }
      w40: f64 = sub w35, w39
      store x[_w2 + 2] = w40
      w41: f64 = load y[_w2 + 3]
      reduce _w42 in range(3) (w45: f64 = dot skylakex.rest of w43, w44, init w22) {
        w43: f64 = load s[_w2 + 3, _w2 + _w42]
        w44: f64 = load x[_w2 + _w42]
      }
      w46: f64 = sub w41, w45
      store x[_w2 + 3] = w46
    }
    for _w47 in range(4*floordiv(n, 4), n) {
      w48: f64 = load y[_w47]
      reduce _w49 in range(_w47) (w52: f64 = dot skylakex of w50, w51) {
        w50: f64 = load s[_w47, _w49]
        w51: f64 = load x[_w49]
      }
      w53: f64 = sub w48, w52
      store x[_w47] = w53
    }
"""


CASES: list[tuple[Callable[[], list[L.Stmt]], Callable[[list[L.Stmt]], list[L.Stmt]], str]] = [
    (last_two_rows, rings, RINGS),
    (by_columns, lambda body: triangles(body, facts(), Names()), TRIANGLE),
    (by_rows, lambda body: rows(body, facts(), Names()), ROWS),
]
IDS = [case[0].__name__ for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_text(case: tuple[Callable[[], list[L.Stmt]], Callable[[list[L.Stmt]], list[L.Stmt]], str]) -> None:
    body, apply, text = case
    assert print_body(apply(body())) == textwrap.dedent(text).strip()


@pytest.mark.parametrize("size", [3, 4, 7, 8, 21, 38])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_meaning(
    case: tuple[Callable[[], list[L.Stmt]], Callable[[list[L.Stmt]], list[L.Stmt]], str], size: int
) -> None:
    """The interpreter before the pass, and the interpreter and machine code behind it, to the bit."""

    def outcome(body: list[L.Stmt], machine: bool) -> list[bytes]:
        scratch = [s for s in body if isinstance(s, L.Alloc) and s.scope == "scratch"]
        for place, s in enumerate(scratch):  # the memory plan does it in a whole program
            s.offset = place * ROW
        p = program(body, [X, Y, S, A, C], dims=[("n", 0, 0), ("m", 3, 1)], scratch=len(scratch) * ROW)
        verify(p)
        numbers = np.random.default_rng(5)
        shapes = ((size,), (size,), (size, size), (size, 11), (size, 11))
        args = [numbers.normal(size=shape) for shape in shapes]
        if machine:
            executable(p, 5, [])(*args)
        else:
            run_program(p, interface_of(p, 5, []), args)
        return [x.tobytes() for x in args]

    body, apply, _ = case
    wanted = outcome(body(), machine=False)
    assert outcome(apply(body()), machine=False) == wanted
    assert outcome(apply(body()), machine=True) == wanted
