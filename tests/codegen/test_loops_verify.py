"""One small bad program for each invariant of the loop level."""

from __future__ import annotations

import pytest

from jitgraph.codegen.loops_verify import verify
from jitgraph.errors import VerifyError
from jitgraph.ir.dims import symbol
from tests.loop_programs import F32, F64, I32, I64, B, L, array, const, i, let, n, program, var

X = array("x", F64, n)
LOAD = L.Load(var("a"), X, (i,))


def loop(body: list[L.Stmt], **rest: object) -> L.For:
    return L.For("i", 0, n, body, **rest)  # type: ignore[arg-type]


def reduce(part: L.Part, body: list[L.Stmt] | None = None) -> L.Reduce:
    return L.Reduce("i", n, [LOAD] if body is None else body, [part])


BAD: list[tuple[str, list[L.Stmt], str]] = [
    ("twice", [let("b", "neg", const(1.0)), let("b", "neg", const(1.0))], r"b is assigned twice \(invariant 1\)"),
    ("before", [let("b", "neg", var("c"))], r"c is not assigned here \(invariant 1\)"),
    ("outside", [loop([LOAD]), let("b", "neg", var("a"))], r"a is not assigned here \(invariant 1\)"),
    (
        "other branch",
        [L.If(const(True, B), [let("b", "neg", const(1.0))], [let("c", "neg", var("b"))])],
        r"b is not assigned here \(invariant 1\)",
    ),
    (
        "next",
        [loop([], carried=[L.Carry(var("s"), const(0.0), var("t"), var("r"))])],
        r"t is not assigned here \(invariant 1\)",
    ),
    ("dtypes", [let("b", "add", const(1.0), const(1.0, F32))], r"add takes 2 operands of one dtype \(invariant 2\)"),
    ("kind", [let("b", "sqrt", const(1, I64))], r"is int64 \(invariant 2\)"),
    ("result", [let("b", "cmp", const(1.0), const(1.0), attr="lt")], r"cmp of float64 is not float64 \(invariant 2\)"),
    ("predicate", [let("b", "cmp", const(1.0), const(1.0), dtype=B, attr="<")], r"no predicate < \(invariant 2\)"),
    ("unknown", [let("b", "cube", const(1.0))], r"no primitive cube \(invariant 2\)"),
    ("select", [let("b", "select", const(1.0), const(1.0), const(1.0))], r"a bool and two values \(invariant 2\)"),
    ("store", [loop([L.Store(X, (i,), const(1, I32))])], r"int32 stored into x of float64 \(invariant 2\)"),
    ("load", [loop([L.Load(var("a", F32), X, (i,))])], r"a is float32, x holds float64 \(invariant 2\)"),
    ("symbol", [L.Load(var("a"), X, (i,))], r"symbol i of i is not bound here \(invariant 3\)"),
    (
        "bound inside",
        [loop([L.Bind("q", const(1, I64))]), L.DimValue(var("b", I64), symbol("q"))],
        r"symbol q .*\(invariant 3\)",
    ),
    ("alloc", [loop([L.Alloc(array("t", F64, 3), "row")], role="vector")], r"Alloc in a vector loop \(invariant 4\)"),
    (
        "nested",
        [loop([L.For("j", 0, n, [], role="vector")], role="vector")],
        r"a vector loop in a vector loop \(invariant 4\)",
    ),
    ("reduce", [loop([L.Reduce("j", n, [], [])], role="vector")], r"a Reduce in a vector loop \(invariant 4\)"),
    (
        "carried",
        [loop([LOAD], role="vector", carried=[L.Carry(var("s"), const(0.0), var("a"), var("r"))])],
        r"a vector loop carries s \(invariant 5\)",
    ),
    ("step", [loop([], step=0)], r"a loop with step 0 \(invariant 5\)"),
    ("memory", [L.Store(array("t", F64), (), const(1.0))], r"buffer t has no memory here \(invariant 6\)"),
    ("axes", [loop([L.Load(var("a"), X, (i, i))])], r"x has 1 axes and 1 strides, the index 2 \(invariant 6\)"),
    ("site", [L.Check(const(True, B), 3)], r"no site 3 \(invariant 6\)"),
    ("kernel", [L.CallKernel("k", (), (), ())], r"no kernel k \(invariant 6\)"),
    ("library", [L.Library("system", ())], r"no C function system \(invariant 6\)"),
    ("slot", [L.SetResult(0, const(1.0))], r"no result slot 0 \(invariant 6\)"),
    ("pairwise", [reduce(L.Part(var("r"), "max", "pairwise", var("a")))], r"a pairwise max of float64 \(invariant 7\)"),
    (
        "position",
        [reduce(L.Part(var("r"), "argmax", "free", var("a")))],
        r"argmax of float64 gives float64 \(invariant 7\)",
    ),
]


@pytest.mark.parametrize(("body", "message"), [pytest.param(body, message, id=name) for name, body, message in BAD])
def test_bad_programs(body: list[L.Stmt], message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify(program(body, [X], [], dims=[("n", 0, 0)]))


def test_arguments_match_parameters() -> None:
    kernel = L.Function("k", [X], ["n"], [], [])
    good = program([L.CallKernel("k", (X,), (n,), ())], [X], [], dims=[("n", 0, 0)], kernels=[kernel])
    verify(good)
    good.entry[:] = [L.CallKernel("k", (X,), (), ())]
    with pytest.raises(
        VerifyError, match=r"entry: arguments do not match the parameters of k \(invariant 6\)\ncall k\(x; \)"
    ):
        verify(good)
