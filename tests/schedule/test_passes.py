"""The passes over loops on small programs: the text they make, and that it means the same."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import CheckFailed, run_program
from jitgraph.codegen.loops_printer import print_body
from jitgraph.codegen.loops_verify import verify
from jitgraph.ir.dims import DimLike, Facts, symbol
from jitgraph.ir.graph import Site
from jitgraph.schedule.hoist import hoist
from jitgraph.schedule.inline import inline
from jitgraph.schedule.interchange import interchange
from jitgraph.schedule.jam import jam
from jitgraph.schedule.join import join
from jitgraph.schedule.registers import registers
from jitgraph.schedule.simplify import simplify
from jitgraph.schedule.statements import Names, Renaming, rebuilt
from jitgraph.schedule.swaps import without_swaps
from jitgraph.schedule.unused import without_unused
from jitgraph.schedule.versions import versions
from tests.loop_programs import F64, I64, B, L, array, const, executable, i, j, k, let, m, n, program, var

X, Y = array("x", F64, n), array("y", F64, n)
A, C, D = (array(name, F64, n, m) for name in "acd")
OLD, NEW = array("old", F64, n), array("new", F64, n)
r1, c1, r2, c2 = map(symbol, ("r1", "c1", "r2", "c2"))
w = symbol("w")


def facts() -> Facts:
    made = Facts()
    made.bound("n", lower=3)
    made.bound("m", lower=3)
    return made


def load(name: str, b: L.Buffer, *index: DimLike) -> L.Load:
    return L.Load(var(name), b, index)


def store(b: L.Buffer, *index: DimLike, value: L.Operand) -> L.Store:
    return L.Store(b, index, value)


def loop(name: str, lower: DimLike, upper: DimLike, *body: L.Stmt, role: str = "serial", step: int = 1) -> L.For:
    return L.For(name, lower, upper, list(body), step, role)  # type: ignore[arg-type]


def lanes(name: str, lower: DimLike, upper: DimLike, *body: L.Stmt) -> L.For:
    return loop(name, lower, upper, *body, role="vector")


def nest(r: str, c: str, *body: L.Stmt, upper: DimLike = n) -> L.For:
    return loop(r, 0, upper, lanes(c, 0, m, *body))


def checked(d: DimLike) -> list[L.Stmt]:
    """A check that an index is less than n."""
    return [
        L.DimValue(var("at", I64), d),
        L.DimValue(var("size", I64), n),
        let("inside", "cmp", var("at", I64), var("size", I64), dtype=B, attr="lt"),
        L.Check(var("inside", B), 0),
    ]


KERNEL = L.Function(
    "k0", [array("s", F64, w)], ["w"], [var("t")],
    [lanes("e", 0, w, store(array("s", F64, w), symbol("e"), value=var("t"))), let("u", "add", var("t"), const(1.0))],
    [var("u")],
)  # fmt: skip


@dataclass
class Case:
    """What a pass makes of a body."""

    name: str
    apply: Callable[[list[L.Stmt]], list[L.Stmt]]
    body: list[L.Stmt]
    text: str


CASES = [
    Case(
        "values that equal a dim become that dim",
        lambda body: simplify(body, facts()),
        [
            loop(
                "i",
                0,
                n,
                *checked(i),
                L.DimValue(var("d", I64), i),
                let("z", "add", var("d", I64), const(0, I64)),
                L.Bind("q", var("z", I64)),
                load("v", X, symbol("q")),
                store(Y, symbol("q"), value=var("v")),
            )
        ],
        """
            for i in range(0, n) {
              at: i64 = dim i
              size: i64 = dim n
              v: f64 = load x[i]
              store y[i] = v
            }
        """,
    ),
    Case(
        "zeros of both signs are two constants",
        lambda body: simplify(body, facts()),
        [
            load("v", X, 2),
            let("p", "add", var("v"), const(0.0)),
            let("q", "add", var("v"), const(-0.0)),
            let("r", "add", var("v"), const(0.0)),
            store(Y, 0, value=var("p")),
            store(Y, 1, value=var("q")),
            store(Y, 2, value=var("r")),
        ],
        """
            v: f64 = load x[2]
            p: f64 = add v, 0.0
            q: f64 = add v, -0.0
            store y[0] = p
            store y[1] = q
            store y[2] = p
        """,
    ),
    Case(
        "what may trap stays in its loop",
        lambda body: hoist(body),
        [
            L.DimValue(var("s", I64), m - 3),
            loop(
                "i",
                0,
                n,
                loop(
                    "j",
                    0,
                    m - 3,
                    L.DimValue(var("d", I64), i * 2),
                    let("e", "idiv", var("d", I64), var("s", I64)),
                    let("f", "idiv", var("d", I64), const(2, I64)),
                    let("g", "cast", var("f", I64), dtype=F64),
                    let("h", "cast", var("e", I64), dtype=F64),
                    let("o", "add", var("g"), var("h")),
                    store(A, i, j, value=var("o")),
                ),
            ),
        ],
        """
            s: i64 = dim m - 3
            for i in range(0, n) {
              d: i64 = dim 2*i
              f: i64 = idiv d, 2
              g: f64 = cast f
              for j in range(0, m - 3) {
                e: i64 = idiv d, s
                h: f64 = cast e
                o: f64 = add g, h
                store a[i, j] = o
              }
            }
        """,
    ),
    Case(
        "a version without checks",
        lambda body: without_unused(simplify(versions(body, facts(), Names()), facts())),
        [loop("i", 0, k, *checked(i + 1), load("v", X, i + 1), store(X, i, value=var("v")))],
        """
            w1: i64 = dim k
            w2: bool = cmp ge w1, -281474976710656
            w4: bool = cmp le w1, 281474976710656
            w5: bool = and_ w2, w4
            w6: i64 = dim n
            w7: bool = cmp le w6, 281474976710656
            w8: bool = and_ w5, w7
            w9: i64 = dim -k + n - 1
            w10: bool = cmp ge w9, 0
            w11: bool = and_ w8, w10
            if w11 {
              for i in range(0, k) {
                v: f64 = load x[i + 1]
                store x[i] = v
              }
            } else cold {
              for _w12 in range(0, k) {
                w13: i64 = dim _w12 + 1
                w14: i64 = dim n
                w15: bool = cmp lt w13, w14
                check w15 site 0 ()
                w16: f64 = load x[_w12 + 1]
                store x[_w12] = w16
              }
            }
        """,
    ),
    Case(
        "a kernel in a loop",
        lambda body: inline(body, [KERNEL], Names()),
        [loop("i", 0, n, L.CallKernel("k0", (X,), (n,), (const(2.0),), (var("r"),)), store(Y, i, value=var("r")))],
        """
            for i in range(0, n) {
              for _w1 in range(0, n) vector {
                store x[_w1] = 2.0
              }
              w2: f64 = add 2.0, 1.0
              store y[i] = w2
            }
        """,
    ),
    Case(
        "nests over the same elements",
        lambda body: join(body, facts(), Names()),
        [
            loop(
                "t",
                0,
                k,
                nest("r1", "c1", load("v", A, r1, c1), store(C, r1, c1, value=var("v"))),
                nest("r2", "c2", load("w", C, r2, c2), store(A, r2, c2, value=var("w"))),
            )
        ],
        """
            for t in range(0, k) {
              for r1 in range(0, n) {
                for c1 in range(0, m) vector {
                  v: f64 = load a[r1, c1]
                  store c[r1, c1] = v
                  w: f64 = load c[r1, c1]
                  store a[r1, c1] = w
                }
              }
            }
        """,
    ),
    Case(
        "a nest that stays a row behind",
        lambda body: join(body, facts(), Names()),
        [
            loop(
                "t",
                0,
                k,
                nest("r1", "c1", load("v", A, r1, c1), store(C, r1, c1, value=var("v"))),
                nest("r2", "c2", load("w", C, r2 + 1, c2), store(D, r2, c2, value=var("w")), upper=n - 1),
            )
        ],
        """
            for t in range(0, k) {
              for _w1 in range(0, 1) {
                for _w2 in range(0, m) vector {
                  w3: f64 = load a[_w1, _w2]
                  store c[_w1, _w2] = w3
                }
              }
              for r1 in range(1, n) {
                for c1 in range(0, m) vector {
                  v: f64 = load a[r1, c1]
                  store c[r1, c1] = v
                  w: f64 = load c[r1, c1]
                  store d[r1 - 1, c1] = w
                }
              }
            }
        """,
    ),
    Case(
        "a nest that needs all of the first",
        lambda body: join(body, facts(), Names()),
        [
            loop(
                "t",
                0,
                k,
                nest("r1", "c1", load("v", A, r1, c1), store(C, r1, c1, value=var("v"))),
                nest("r2", "c2", load("w", C, n - 1 - r2, c2), store(D, r2, c2, value=var("w"))),
            )
        ],
        """
            for t in range(0, k) {
              for r1 in range(0, n) {
                for c1 in range(0, m) vector {
                  v: f64 = load a[r1, c1]
                  store c[r1, c1] = v
                }
              }
              for r2 in range(0, n) {
                for c2 in range(0, m) vector {
                  w: f64 = load c[n - r2 - 1, c2]
                  store d[r2, c2] = w
                }
              }
            }
        """,
    ),
    Case(
        "the remainder of a longer loop",
        lambda body: join(body, facts(), Names()),
        [
            loop(
                "t",
                0,
                k,
                nest("r1", "c1", load("v", A, r1, c1), store(C, r1, c1, value=var("v"))),
                nest("r2", "c2", load("w", C, r2, c2), store(D, r2, c2, value=var("w")), upper=n - 1),
            )
        ],
        """
            for t in range(0, k) {
              for _w1 in range(0, 1) {
                for _w2 in range(0, m) vector {
                  w3: f64 = load a[_w1, _w2]
                  store c[_w1, _w2] = w3
                }
              }
              for r1 in range(1, n) {
                for c1 in range(0, m) vector {
                  v: f64 = load a[r1, c1]
                  store c[r1, c1] = v
                }
                for c2 in range(0, m) vector {
                  w: f64 = load c[r1 - 1, c2]
                  store d[r1 - 1, c2] = w
                }
              }
            }
        """,
    ),
    Case(
        "a buffer written in place",
        lambda body: without_unused(without_swaps(body)),
        [
            L.Alloc(OLD, "heap"),
            L.Alloc(NEW, "heap"),
            lanes("f", 0, n, load("p", X, symbol("f")), store(OLD, symbol("f"), value=var("p"))),
            loop(
                "t",
                0,
                k,
                lanes(
                    "i", 0, n, load("v", OLD, i), let("w", "mul", var("v"), const(2.0)), store(NEW, i, value=var("w"))
                ),
                L.Swap(OLD, NEW),
            ),
            lanes("o", 0, n, load("q", OLD, symbol("o")), store(Y, symbol("o"), value=var("q"))),
        ],
        """
            alloc old: f64[n] heap
            for f in range(0, n) vector {
              p: f64 = load x[f]
              store old[f] = p
            }
            for t in range(0, k) {
              for i in range(0, n) vector {
                v: f64 = load old[i]
                w: f64 = mul v, 2.0
                store old[i] = w
              }
            }
            for o in range(0, n) vector {
              q: f64 = load old[o]
              store y[o] = q
            }
        """,
    ),
    Case(
        "a buffer whose neighbours are read stays two",
        lambda body: without_unused(without_swaps(body)),
        [
            L.Alloc(OLD, "heap"),
            L.Alloc(NEW, "heap"),
            lanes("f", 0, n, load("p", X, symbol("f")), store(OLD, symbol("f"), value=var("p"))),
            loop(
                "t", 0, k, lanes("i", 0, n, load("v", OLD, n - 1 - i), store(NEW, i, value=var("v"))), L.Swap(OLD, NEW)
            ),
            lanes("o", 0, n, load("q", OLD, symbol("o")), store(Y, symbol("o"), value=var("q"))),
        ],
        """
            alloc old: f64[n] heap
            alloc new: f64[n] heap
            for f in range(0, n) vector {
              p: f64 = load x[f]
              store old[f] = p
            }
            for t in range(0, k) {
              for i in range(0, n) vector {
                v: f64 = load old[-i + n - 1]
                store new[i] = v
              }
              swap old, new
            }
            for o in range(0, n) vector {
              q: f64 = load old[o]
              store y[o] = q
            }
        """,
    ),
    Case(
        "a recurrence inside its nest",
        lambda body: interchange(body, Names()),
        [
            loop(
                "j",
                1,
                m,
                lanes(
                    "i",
                    0,
                    n,
                    load("v", A, i, j - 1),
                    load("w", A, i, j),
                    let("s", "add", var("v"), var("w")),
                    store(A, i, j, value=var("s")),
                ),
            )
        ],
        """
            for i in range(0, n) vector lanes 2 interleave 2 {
              for j in range(1, m) {
                v: f64 = load a[i, j - 1]
                w: f64 = load a[i, j]
                s: f64 = add v, w
                store a[i, j] = s
              }
            }
        """,
    ),
    Case(
        "a recurrence across the nest stays outside",
        lambda body: interchange(body, Names()),
        [loop("j", 1, m, lanes("i", 1, n, load("v", A, n - i, j - 1), store(A, i, j, value=var("v"))))],
        """
            for j in range(1, m) {
              for i in range(1, n) vector {
                v: f64 = load a[-i + n, j - 1]
                store a[i, j] = v
              }
            }
        """,
    ),
    Case(
        "rows side by side",
        lambda body: jam(body, facts(), Names()),
        [
            loop(
                "i",
                1,
                n - 1,
                lanes(
                    "j",
                    0,
                    m,
                    load("v", A, i - 1, j),
                    load("w", A, i + 1, j),
                    let("s", "add", var("v"), var("w")),
                    store(C, i, j, value=var("s")),
                ),
            )
        ],
        """
            for i in range(1, 4*floordiv(n - 2, 4) + 1, 4) {
              for j in range(0, m) vector {
                w1: f64 = load a[i - 1, j]
                w2: f64 = load a[i + 1, j]
                w3: f64 = add w1, w2
                store c[i, j] = w3
                w4: f64 = load a[i, j]
                w5: f64 = load a[i + 2, j]
                w6: f64 = add w4, w5
                store c[i + 1, j] = w6
                w7: f64 = load a[i + 1, j]
                w8: f64 = load a[i + 3, j]
                w9: f64 = add w7, w8
                store c[i + 2, j] = w9
                w10: f64 = load a[i + 2, j]
                w11: f64 = load a[i + 4, j]
                w12: f64 = add w10, w11
                store c[i + 3, j] = w12
              }
            }
            for _w13 in range(4*floordiv(n - 2, 4) + 1, n - 1) {
              for _w14 in range(0, m) vector {
                w15: f64 = load a[_w13 - 1, _w14]
                w16: f64 = load a[_w13 + 1, _w14]
                w17: f64 = add w15, w16
                store c[_w13, _w14] = w17
              }
            }
        """,
    ),
    Case(
        "rows in one vector that lanes of others reach",
        lambda body: jam(body, facts(), Names()),
        [
            loop(
                "i",
                0,
                2,
                lanes("j", 0, n - 2, load("v", Y, j), load("w", Y, i), store(X, i + j, value=var("v"))),
            )
        ],
        """
            for i in range(0, 2) {
              for j in range(0, n - 2) vector {
                v: f64 = load y[j]
                w: f64 = load y[i]
                store x[i + j] = v
              }
            }
        """,
    ),
    Case(
        "maybe no rows at all",
        lambda body: jam(body, facts(), Names()),
        [loop("i", 0, k - 4, lanes("j", 0, m, load("v", A, 0, j), store(C, i, j, value=var("v"))))],
        """
            for i in range(0, 4*floordiv(max(k - 4, 0), 4), 4) {
              for j in range(0, m) vector {
                w1: f64 = load a[0, j]
                store c[i, j] = w1
                w2: f64 = load a[0, j]
                store c[i + 1, j] = w2
                w3: f64 = load a[0, j]
                store c[i + 2, j] = w3
                w4: f64 = load a[0, j]
                store c[i + 3, j] = w4
              }
            }
            for _w5 in range(4*floordiv(max(k - 4, 0), 4), k - 4) {
              for _w6 in range(0, m) vector {
                w7: f64 = load a[0, _w6]
                store c[_w5, _w6] = w7
              }
            }
        """,
    ),
    Case(
        "a stored element is loaded",
        lambda body: registers(body, facts(), Names()),
        [
            store(X, 0, value=const(1.0)),
            load("v", X, 0),
            store(Y, 0, value=var("v")),
            store(X, 0, value=const(2.0)),
        ],
        """
            store y[0] = 1.0
            store x[0] = 2.0
        """,
    ),
    Case(
        "a load that no turn changes",
        lambda body: registers(body, facts(), Names()),
        [loop("i", 0, n, load("v", Y, 0), store(X, i, value=var("v")))],
        """
            v: f64 = load y[0]
            for i in range(0, n) {
              store x[i] = v
            }
        """,
    ),
    Case(
        "an element that each turn adds to",
        lambda body: registers(body, facts(), Names()),
        [
            loop(
                "i",
                0,
                k,
                load("v", Y, i),
                load("w", X, 0),
                let("s", "add", var("v"), var("w")),
                store(X, 0, value=var("s")),
            )
        ],
        """
            w4: i64 = dim k
            w5: bool = cmp gt w4, 0
            if w5 {
              w1: f64 = load x[0]
              for i in range(0, k) carry (w2: f64 = w1 next s -> w3) {
                v: f64 = load y[i]
                s: f64 = add v, w2
              }
              store x[0] = w3
            }
        """,
    ),
    Case(
        "the element of the last turn",
        lambda body: registers(body, facts(), Names()),
        [loop("i", 1, n, load("v", X, i - 1), let("s", "mul", var("v"), const(0.5)), store(X, i, value=var("s")))],
        """
            w1: f64 = load x[0]
            for i in range(1, n) carry (v: f64 = w1 next s -> w2) {
              s: f64 = mul v, 0.5
              store x[i] = s
            }
        """,
    ),
    Case(
        "no load in front of its check",
        lambda body: registers(body, facts(), Names()),
        [
            loop(
                "i",
                0,
                k,
                *checked(i),
                load("v", Y, 0),
                load("w", X, 0),
                let("s", "add", var("v"), var("w")),
                store(X, 0, value=var("s")),
            )
        ],
        """
            for i in range(0, k) {
              at: i64 = dim i
              size: i64 = dim n
              inside: bool = cmp lt at, size
              check inside site 0 ()
              v: f64 = load y[0]
              w: f64 = load x[0]
              s: f64 = add v, w
              store x[0] = s
            }
        """,
    ),
    Case(
        "no load in front of its branch",
        lambda body: registers(body, facts(), Names()),
        [
            L.DimValue(var("a", I64), k),
            L.DimValue(var("b", I64), n),
            let("ok", "cmp", var("a", I64), var("b", I64), dtype=B, attr="lt"),
            loop(
                "i",
                0,
                n,
                L.If(
                    var("ok", B),
                    [load("w", X, k), let("s", "add", var("w"), const(1.0)), store(X, k, value=var("s"))],
                    [],
                ),
            ),
        ],
        """
            a: i64 = dim k
            b: i64 = dim n
            ok: bool = cmp lt a, b
            for i in range(0, n) {
              if ok {
                w: f64 = load x[k]
                s: f64 = add w, 1.0
                store x[k] = s
              }
            }
        """,
    ),
    Case(
        "ranges of loops inside say nothing outside",
        lambda body: registers(body, facts(), Names()),
        [
            loop(
                "i",
                0,
                k,
                loop("j", k, n, store(Y, j, value=const(1.0))),
                load("v", X, 0),
                store(X, n - k, value=const(4.0)),
                store(X, 0, value=var("v")),
            )
        ],
        """
            for i in range(0, k) {
              for j in range(k, n) {
                store y[j] = 1.0
              }
              v: f64 = load x[0]
              store x[-k + n] = 4.0
              store x[0] = v
            }
        """,
    ),
    Case(
        "what nobody reads",
        lambda body: without_unused(body),
        [
            load("v", X, 0),
            L.Alloc(OLD, "heap"),
            loop("i", 0, n, load("w", X, i), let("q", "add", var("w"), var("w")), store(OLD, i, value=var("q"))),
            L.Free(OLD),
            store(Y, 0, value=const(1.0)),
        ],
        """
            store y[0] = 1.0
        """,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_text(case: Case) -> None:
    assert print_body(case.apply(case.body)) == textwrap.dedent(case.text).strip()


def whole(body: list[L.Stmt]) -> L.Program:
    p = program(
        [L.Bind("k", var("turns", I64)), *body], [X, Y, A, C, D], dims=[("n", 2, 0), ("m", 2, 1)],
        scalars=[(var("turns", I64), 5)], kernels=[KERNEL], sites=[Site("IndexError", "out of bounds", None)],
    )  # fmt: skip
    verify(p)
    return p


def outcome(p: L.Program, turns: int, machine: bool) -> tuple[bool, list[bytes]]:
    """Whether a check failed, and the arrays behind the run."""
    numbers = np.random.default_rng(5)
    args = [numbers.integers(-9, 9, shape) / 4.0 for shape in ((6,), (6,), (6, 11), (6, 11), (6, 11))]
    args[0][2] = args[1][3] = args[2][2, 2] = -0.0
    failed = False
    try:
        if machine:
            executable(p, 6, [])(*args, turns)
        else:
            run_program(p, interface_of(p, 6, []), [*args, turns])
    except (CheckFailed, IndexError):
        failed = True
    return failed, [x.tobytes() for x in args]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_meaning(case: Case) -> None:
    """The interpreter and machine code, before and behind the pass."""
    before, after = whole(rebuilt(case.body, Renaming())), whole(case.apply(rebuilt(case.body, Renaming())))
    for turns in (0, 1, 3, 5, 6, 9) if "k" in str(case.text) else (3,):
        if turns > 5 and not any("check" in line for line in print_body(case.body).splitlines()):
            continue
        wanted = outcome(before, turns, machine=False)
        assert outcome(after, turns, machine=False) == wanted
        if turns in (3, 9):
            assert outcome(after, turns, machine=True) == wanted
            assert outcome(replace(before), turns, machine=True) == wanted
