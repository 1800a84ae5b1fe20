"""The text of loop programs: every statement once, exactly."""

from __future__ import annotations

import numpy as np

from jitgraph.codegen.loops_printer import print_program
from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Site
from jitgraph.source import SourceLoc
from tests.loop_programs import F64, I64, B, L, array, const, i, j, let, n, program, scalar_type, var


def test_every_statement() -> None:
    x, y, t = array("x", F64, n), array("y", F64, n, strides=(symbol("s"),)), array("t", F64, n)
    w = array("w", F64, 2)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("b", "call", var("a"), attr="exp"),
        let("c", "select", const(True, B), var("b"), const(0.5), dtype=F64),
        L.Store(y, (n - 1 - i,), var("c")),
        L.Check(const(True, B), 0, (var("a"),)),
    ]
    kernel = L.Function(
        "k",
        [x, y],
        ["n", "s"],
        [var("f")],
        [L.For("i", 0, n, body, role="vector", lanes=4, interleave=2)],
        [var("f")],
        ["exp f.py:3"],
    )
    loop = L.For(
        "j", n, 0, [let("v", "add", var("u"), const(1.0)), L.Swap(x, t)], step=-1,
        carried=[L.Carry(var("u"), const(0.0), var("v"), var("total"))],
    )  # fmt: skip
    entry: list[L.Stmt] = [
        L.Alloc(t, "scratch", 64),
        L.Alloc(array("h", F64, n, n), "heap"),
        L.CallKernel("k", (x, y), (n, symbol("s")), (const(2.0),), (var("g"),)),
        L.DimValue(var("d", I64), n * 2 + 1),
        L.Bind("q", var("d", I64)),
        loop,
        L.While(
            [let("p", "cmp", var("z"), const(9.0), dtype=B, attr="lt")],
            var("p", B),
            [let("zz", "mul", var("z"), var("g"))],
            [L.Carry(var("z"), const(1.0), var("zz"), var("last"))],
        ),
        L.If(
            const(False, B),
            [L.SetResult(0, var("g"))],
            [L.SetResult(0, var("last"))],
            [L.Merge(var("e"), var("g"), var("last"))],
        ),
        L.Reduce("i", n, [L.Load(var("a"), x, (i,))], [
            L.Part(var("r"), "sum", "pairwise", var("a"), const(-0.0), 8192),
            L.Part(var("o", I64), "argmax", "free", var("a")),
        ]),
        L.Library("cblas_ddot", (n, L.Address(x, (0,)), 1, L.Address(y, (0,)), 1), var("dot")),
        L.Host(1, (x, var("r")), (y, var("w"))),
        L.Free(t),
        L.SetResult(0, var("e"), const(True, B)),
    ]  # fmt: skip
    sites = [Site("IndexError", "bad {0}", SourceLoc("/u/f.py", 3, 5, "f")), Site("host", "sort")]
    p = program(
        entry, [x, y], [scalar_type(F64)], dims=[("n", 0, 0)], scalars=[(var("f"), 2)], kernels=[kernel], sites=sites,
        guards=[(">=", n, 2)], scratch=8 * n + 64, strides={"y": ("s",)},
    )  # fmt: skip
    p.tables.append((w, np.array([1.0, 2.0])))
    assert print_program(p) == EXPECTED
    assert print_program(p) == print_program(p)
    assert str(j) == "j"


EXPECTED = """\
# exp f.py:3
kernel k(x: f64[n], y: f64[n] by (s), f: f64; n, s) -> f {
  for i in range(0, n) vector lanes 4 interleave 2 {
    a: f64 = load x[i]
    b: f64 = call exp a
    c: f64 = select true, b, 0.5
    store y[-i + n - 1] = c
    check true site 0 (a)
  }
}

program test {
  n = size of argument 0, axis 0
  guard n >= 2
  x: f64[n] = argument 0
  y: f64[n] by (s) = argument 1, strides s
  f: f64 = argument 2
  w: f64[2] = table [1.0, 2.0]
  scratch: 8*n + 64 bytes
  alloc t: f64[n] scratch at 64
  alloc h: f64[n, n] heap
  g: f64 = call k(x, y, 2.0; n, s)
  d: i64 = dim 2*n + 1
  bind q = d
  for j in range(n, 0, -1) carry (u: f64 = 0.0 next v -> total) {
    v: f64 = add u, 1.0
    swap x, t
  }
  while carry (z: f64 = 1.0 next zz -> last) {
    p: bool = cmp lt z, 9.0
  } p {
    zz: f64 = mul z, g
  }
  if false {
    result 0 = g
  } else {
    result 0 = last
  } merge (e: f64 = g | last)
  reduce i in range(n) (r: f64 = pairwise sum of a, init -0.0, chunk 8192; o: i64 = free argmax of a) {
    a: f64 = load x[i]
  }
  dot: f64 = library cblas_ddot(n, &x[0], 1, &y[0], 1)
  y, w = host site 1 (x, r)
  free t
  result 0 = e numpy true
}
site 0: IndexError: 'bad {0}' at f.py:3:5
site 1: host: 'sort'
"""
