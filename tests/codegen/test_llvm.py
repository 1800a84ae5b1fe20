"""Machine code of hand-written loop programs: equal to NumPy, and to the interpreter bit for bit."""

from __future__ import annotations

import linecache
import re
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import target
from jitgraph.codegen.llvm import emit_program
from jitgraph.ir.dims import floordiv, mod, symbol
from jitgraph.ir.graph import Site
from jitgraph.runtime import engine
from tests.checks import calls_of
from tests.loop_programs import (
    F32,
    F64,
    I32,
    I64,
    B,
    L,
    array,
    check,
    const,
    executable,
    i,
    j,
    let,
    m,
    n,
    program,
    scalar_type,
    var,
)

RNG = np.random.default_rng(11)
SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 100)
DIMS_1D = (("n", 0, 0),)


def elementwise(body: list[L.Stmt], buffers: list[L.Buffer], out: L.Buffer, **loop: object) -> L.Program:
    """One vector loop over n in a kernel."""
    loop = {"role": "vector", **loop}
    kernel = L.Function("k", [*buffers, out], ["n"], [], [L.For("i", 0, n, body, **loop)])  # type: ignore[arg-type]
    call = L.CallKernel("k", (*buffers, out), (n,), ())
    return program([call], buffers, [out], dims=DIMS_1D, kernels=[kernel])


# --- elementwise ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("interleave", [1, 2, 3])
def test_saxpy(dtype: np.dtype, interleave: int) -> None:
    x, y, out = (array(name, dtype, n) for name in ("x", "y", "out"))
    body: list[L.Stmt] = [
        L.Load(var("a", dtype), x, (i,)),
        L.Load(var("b", dtype), y, (i,)),
        let("c", "mul", var("a", dtype), const(2.5, dtype)),
        let("d", "add", var("c", dtype), var("b", dtype)),
        L.Store(out, (i,), var("d", dtype)),
    ]
    p = elementwise(body, [x, y], out, interleave=interleave)
    run = executable(p, 2, [out])
    for size in SIZES:
        a, b = RNG.standard_normal((2, size)).astype(dtype)
        check(p, [a, b], [out], [a * dtype.type(2.5) + b], run=run)


def test_exp_chain_is_within_two_ulp() -> None:
    x, out = array("x", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("b", "mul", var("a"), var("a")),
        let("c", "neg", var("b")),
        let("d", "call", var("c"), attr="exp"),
        let("e", "call", var("a"), attr="sin"),
        let("f", "mul", var("d"), var("e")),
        L.Store(out, (i,), var("f")),
    ]
    p = elementwise(body, [x], out)
    a = np.concatenate([RNG.standard_normal(1003) * 3, [0.0, -0.0, np.inf, np.nan, 1e9]])
    with np.errstate(all="ignore"):
        expected = np.exp(-a * a) * np.sin(a)
    (found,) = executable(p, 1, [out])(a)
    np.testing.assert_array_max_ulp(found[:1003], expected[:1003], 4)
    np.testing.assert_array_equal(found[1003:1007], expected[1003:1007])


def test_large_bodies_are_emitted_once_under_a_mask() -> None:
    x, out = array("x", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [L.Load(var("v0"), x, (i,))]
    for step in range(90):
        body.append(let(f"v{step + 1}", ("add", "mul", "sub")[step % 3], var(f"v{step}"), const(1.0 + step / 7)))
    body.append(L.Store(out, (i,), var("v90")))
    p = elementwise(body, [x], out)
    assert emit_program(p, target.host()).count(" fadd ") == 30
    run = executable(p, 1, [out])
    for size in SIZES:
        check(p, [RNG.standard_normal(size)], [out], run=run)


def test_bools_are_bytes_in_memory() -> None:
    x, flags, out = array("x", F32, n), array("flags", B, n), array("out", B, n)
    body: list[L.Stmt] = [
        L.Load(var("a", F32), x, (i,)),
        L.Load(var("f", B), flags, (i,)),
        let("p", "cmp", var("a", F32), const(0.0, F32), dtype=B, attr="gt"),
        let("q", "and_", var("p", B), var("f", B)),
        L.Store(out, (i,), var("q", B)),
    ]
    p = elementwise(body, [x, flags], out)
    run = executable(p, 2, [out])
    for size in SIZES:
        a, f = RNG.standard_normal(size).astype(F32), RNG.random(size) < 0.5
        check(p, [a, f], [out], [(a > 0) & f], run=run)


def test_library_function_lane_by_lane() -> None:
    for dtype in (F32, F64):
        x, y, out = (array(name, dtype, n) for name in ("x", "y", "out"))
        body: list[L.Stmt] = [
            L.Load(var("a", dtype), x, (i,)),
            L.Load(var("b", dtype), y, (i,)),
            let("c", "frem", var("a", dtype), var("b", dtype)),
            L.Store(out, (i,), var("c", dtype)),
        ]
        p = elementwise(body, [x, y], out)
        a, b = RNG.standard_normal((2, 53)).astype(dtype) * 10
        check(p, [a, b], [out], [np.fmod(a, b)])


@pytest.mark.parametrize("source", ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
@pytest.mark.parametrize("to", ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_casts(source: str, to: str) -> None:
    d, t = np.dtype(source), np.dtype(to)
    x, out = array("x", d, n), array("out", t, n)
    body: list[L.Stmt] = [
        L.Load(var("a", d), x, (i,)),
        let("c", "cast", var("a", d), dtype=t),
        L.Store(out, (i,), var("c", t)),
    ]
    values = np.array([0, 1, 2, 3, 100, 127, 77] * 3).astype(d)
    check(elementwise(body, [x], out), [values], [out], [values.astype(t)])


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_integer_primitives(dtype: str) -> None:
    d = np.dtype(dtype)
    x, y = array("x", d, n), array("y", d, n)
    outs = [array(f"out{s}", d, n) for s in range(9)]
    body: list[L.Stmt] = [L.Load(var("a", d), x, (i,)), L.Load(var("b", d), y, (i,))]
    for s, op in enumerate(["add", "sub", "mul", "idiv", "irem", "and_", "or_", "xor", "not_"]):
        operands = [var("a", d)] if op == "not_" else [var("a", d), var("b", d)]
        body += [let(f"r{s}", op, *operands), L.Store(outs[s], (i,), var(f"r{s}", d))]
    p = program([L.For("i", 0, n, body, role="vector")], [x, y], outs, dims=DIMS_1D)
    a = RNG.integers(0 if d.kind == "u" else -100, 100, 37).astype(d)
    b = RNG.integers(1, 50, 37).astype(d)
    with np.errstate(all="ignore"):
        quotient = np.trunc(a.astype(F64) / b).astype(d)
        expected = [a + b, a - b, a * b, quotient, np.fmod(a, b), a & b, a | b, a ^ b, ~a]
    check(p, [a, b], outs, expected)


def test_overflow_flags() -> None:
    x, y, out = array("x", I64, n), array("y", I64, n), array("out", B, n)
    body: list[L.Stmt] = [
        L.Load(var("a", I64), x, (i,)),
        L.Load(var("b", I64), y, (i,)),
        let("p", "add_overflows", var("a", I64), var("b", I64), dtype=B),
        let("q", "mul_overflows", var("a", I64), var("b", I64), dtype=B),
        let("r", "or_", var("p", B), var("q", B)),
        L.Store(out, (i,), var("r", B)),
    ]
    a = np.array([2**62, 1, -(2**63), 3037000500, -1, 5, 2**40, -7, 9])
    b = np.array([2**62, 2, -1, 3037000500, -(2**63), 6, 2**22, -8, 1])
    check(
        elementwise(body, [x, y], out),
        [a, b],
        [out],
        [np.array([True, False, True, True, True, False, False, False, False])],
    )


# --- addresses ------------------------------------------------------------------------------------------------------


def test_two_dimensions_with_broadcast_row_and_column() -> None:
    x, row, col = array("x", F64, n, m), array("row", F64, m), array("col", F64, n, 1, strides=(8, 8))
    out = array("out", F64, n, m)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i, j)),
        L.Load(var("r"), row, (j,)),
        L.Load(var("c"), col, (i, 0)),
        let("s", "add", var("a"), var("r")),
        let("t", "mul", var("s"), var("c")),
        L.Store(out, (i, j), var("t")),
    ]
    nest = L.For("i", 0, n, [L.For("j", 0, m, body, role="vector")])
    p = program([nest], [x, row, col], [out], dims=[("n", 0, 0), ("m", 0, 1)])
    run = executable(p, 3, [out])
    for rows, columns in ((3, 5), (0, 4), (4, 0), (5, 8), (2, 21)):
        a, r, c = RNG.standard_normal((rows, columns)), RNG.standard_normal(columns), RNG.standard_normal((rows, 1))
        check(p, [a, r, c], [out], [(a + r) * c], run=run)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "b1"])
def test_run_time_strides_gather_and_scatter(dtype: str) -> None:
    """Any stride: positive, negative, zero, of both operands and of what is written."""
    d = np.dtype(dtype)
    x = array("x", d, n, strides=(symbol("sx"),))
    y = array("y", d, n, strides=(symbol("sy"),))
    body: list[L.Stmt] = [L.Load(var("a", d), x, (i,)), L.Store(y, (i,), var("a", d))]
    p = program([L.For("i", 0, n, body, role="vector")], [x, y], [], dims=DIMS_1D, strides={"x": ("sx",), "y": ("sy",)})
    run = executable(p, 2, [])
    base = (RNG.standard_normal(200) * 100).astype(d)
    for step in (1, 3, -1, -2):
        for size in (0, 1, 5, 8, 23, 40):
            source = base[::step][:size]
            goal = np.zeros(200, d)[:: 2 if step > 0 else -3][:size]
            before = goal.copy()
            run(source, goal)
            np.testing.assert_array_equal(goal, source)
            check(p, [source, before], [], run=run)
    broadcast = np.broadcast_to(base[:1], (19,))
    goal = np.zeros(19, d)
    run(broadcast, goal)
    np.testing.assert_array_equal(goal, broadcast)


@pytest.mark.parametrize("dtype", [F64, F32, I32], ids=str)
def test_reversed_is_loaded_as_a_vector(dtype: np.dtype) -> None:
    x, out = array("x", dtype, n), array("out", dtype, n)
    body: list[L.Stmt] = [L.Load(var("a", dtype), x, (n - 1 - i,)), L.Store(out, (i,), var("a", dtype))]
    p = elementwise(body, [x], out)
    assert "gather" not in emit_program(p, target.host())
    run = executable(p, 1, [out])
    for size in SIZES:
        a = RNG.standard_normal(size).astype(dtype)
        check(p, [a], [out], [a[::-1].copy()], run=run)
    backwards: list[L.Stmt] = [L.Load(var("a", dtype), x, (i,)), L.Store(out, (n - 1 - i,), var("a", dtype))]
    p = elementwise(backwards, [x], out)
    for size in (5, 16, 21):
        a = RNG.standard_normal(size).astype(dtype)
        check(p, [a], [out], [a[::-1].copy()])


def test_constant_stride() -> None:
    half = floordiv(symbol("N"), 2)
    x, out = array("x", F64, symbol("N")), array("out", F64, half)
    body: list[L.Stmt] = [L.Load(var("a"), x, (2 * i + 1,)), L.Store(out, (i,), var("a"))]
    p = program([L.For("i", 0, half, body, role="vector")], [x], [out], dims=[("N", 0, 0)])
    run = executable(p, 1, [out])
    for size in (2, 6, 16, 18, 50, 51):
        a = RNG.standard_normal(size)
        check(p, [a], [out], [a[1::2][: size // 2].copy()], run=run)


def test_gather_by_loaded_index_and_by_division() -> None:
    """`x[index[i]]`, and the row-major split of a flat index."""
    x, index, out = array("x", F32, m), array("index", I64, n), array("out", F32, n)
    body: list[L.Stmt] = [
        L.Load(var("p", I64), index, (i,)),
        L.Bind("t", var("p", I64)),
        L.Load(var("a", F32), x, (symbol("t"),)),
        L.Store(out, (i,), var("a", F32)),
    ]
    p = program([L.For("i", 0, n, body, role="vector")], [index, x], [out], dims=[("n", 0, 0), ("m", 1, 0)])
    for size in (0, 3, 16, 35):
        a, at = RNG.standard_normal(50).astype(F32), RNG.integers(0, 50, size)
        check(p, [at, a], [out], [a[at]])

    grid, flat = array("grid", F64, n, m, strides=(8, 8 * n)), array("flat", F64, n * m)
    where = (floordiv(i, m), mod(i, m))
    body = [L.Load(var("a"), grid, where), L.Store(flat, (i,), var("a"))]
    p = program([L.For("i", 0, n * m, body, role="vector")], [grid], [flat], dims=[("n", 0, 0), ("m", 0, 1)])
    for shape in ((3, 5), (4, 8), (1, 7)):
        a = np.asfortranarray(RNG.standard_normal(shape))
        check(p, [a], [flat], [a.ravel()])


def test_dim_arithmetic() -> None:
    """Every integer function of dims, on scalars and on lanes, negative operands included."""
    out = array("out", I64, n, 6)
    s = i - m
    values = [floordiv(s, 3), mod(s, 3), floordiv(s, m), mod(s, -5), floordiv(s, 4), 3 * i * m - 7]
    body: list[L.Stmt] = []
    for column, d in enumerate(values):
        body += [L.DimValue(var(f"v{column}", I64), d), L.Store(out, (i, column), var(f"v{column}", I64))]
    for role in ("vector", "serial"):
        x = array("x", F64, n, m)
        p = program([L.For("i", 0, n, body, role=role)], [x], [out], dims=[("n", 0, 0), ("m", 0, 1)])
        t = np.arange(21) - 4
        expected = np.stack([t // 3, t % 3, t // 4, t % -5, t // 4, 3 * np.arange(21) * 4 - 7], axis=1)
        check(p, [np.zeros((21, 4))], [out], [expected])


def test_uniform_loads_are_hoisted_unless_the_loop_stores_there() -> None:
    x, y, out = array("x", F64, n), array("y", F64, 1), array("out", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        L.Load(var("s"), y, (0,)),
        let("c", "mul", var("a"), var("s")),
        L.Store(out, (i,), var("c")),
    ]
    text = emit_program(elementwise(body, [x, y], out), target.host())
    before_loop = text[: re.search(r"^vector.loop.*:$", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    assert "load double, ptr %b1" in before_loop
    body[3] = L.Store(y, (0,), var("c"))
    text = emit_program(elementwise(body, [x, y], out), target.host())
    before_loop = text[: re.search(r"^vector.loop.*:$", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    assert "load double, ptr %b1" not in before_loop
    body[3] = L.Store(out, (i,), var("c"))
    check(elementwise(body, [x, y], out), [RNG.standard_normal(20), np.array([3.0])], [out])


# --- control flow ---------------------------------------------------------------------------------------------------


def test_axis_0_sum_is_a_serial_loop_in_a_vector_loop() -> None:
    x, out = array("x", F32, n, m), array("out", F32, m)
    load = [L.Load(var("a", F32), x, (i, j)), let("t", "add", var("s", F32), var("a", F32))]
    carry = L.Carry(var("s", F32), const(0.0, F32), var("t", F32), var("total", F32))
    body: list[L.Stmt] = [L.For("i", 0, n, load, carried=[carry]), L.Store(out, (j,), var("total", F32))]
    p = program([L.For("j", 0, m, body, role="vector")], [x], [out], dims=[("n", 0, 0), ("m", 0, 1)])
    run = executable(p, 1, [out])
    for shape in ((5, 7), (0, 9), (9, 0), (6, 16), (3, 33)):
        a = RNG.standard_normal(shape).astype(F32)
        expected = np.zeros(shape[1], F32)
        for row in a:
            expected = expected + row
        check(p, [a], [out], [expected], run=run)


NEWTON_TEST: list[L.Stmt] = [
    let("sq", "mul", var("r"), var("r")),
    let("err", "sub", var("sq"), var("a")),
    let("abs", "fabs", var("err")),
    let("tol", "mul", var("a"), const(1e-12)),
    let("far", "cmp", var("abs"), var("tol"), dtype=B, attr="gt"),
]
NEWTON_BODY: list[L.Stmt] = [
    let("q", "fdiv", var("a"), var("r")),
    let("sum", "add", var("r"), var("q")),
    let("half", "mul", var("sum"), const(0.5)),
]


def newton() -> L.While:
    carry = L.Carry(var("r"), var("a"), var("half"), var("root"))
    return L.While(NEWTON_TEST, var("far", B), NEWTON_BODY, [carry])


def reference_newton(a: float) -> float:
    r = a
    while abs(r * r - a) > a * 1e-12:
        r = (r + a / r) * 0.5
    return r


def test_newton_iteration_on_a_scalar() -> None:
    out = array("out", F64)
    p = program([newton(), L.Store(out, (), var("root"))], [], [out], scalars=[(var("a"), 0)])
    run = executable(p, 1, [out])
    for value in (2.0, 1.0, 1e10, 0.25):
        (found,) = check(p, [value], [out], run=run)
        assert found == reference_newton(value)


def test_what_the_test_of_a_loop_computes_is_at_hand_in_its_body() -> None:
    """Emitted in front of the loop and at its end, but computed once a turn."""
    out = array("out", F64, 2)
    test = [let("sq", "mul", var("r"), var("r")), let("more", "cmp", var("sq"), var("a"), dtype=B, attr="lt")]
    body = [let("next", "add", var("r"), const(1.0)), let("sum", "add", var("s"), var("sq"))]
    carried = [
        L.Carry(var("r"), const(1.0), var("next"), var("root")),
        L.Carry(var("s"), const(0.5), var("sum"), var("total")),
    ]
    loop = L.While([*test], var("more", B), [*body], carried)
    stores = [L.Store(out, (0,), var("root")), L.Store(out, (1,), var("total"))]
    p = program([loop, *stores], [], [out], scalars=[(var("a"), 0)])
    run = executable(p, 1, [out])
    for a, root, total in ((0.5, 1.0, 0.5), (1.5, 2.0, 1.5), (20.0, 5.0, 30.5), (np.nan, 1.0, 0.5)):
        check(p, [a], [out], [np.array([root, total])], run=run)


def test_newton_iteration_on_lanes_that_leave_at_different_turns() -> None:
    x, out = array("x", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [L.Load(var("a"), x, (i,)), newton(), L.Store(out, (i,), var("root"))]
    p = elementwise(body, [x], out)
    run = executable(p, 1, [out])
    for size in SIZES:
        a = 10.0 ** RNG.uniform(-3, 6, size)
        check(p, [a], [out], [np.array([reference_newton(v) for v in a.tolist()])], run=run)


def test_branch_on_a_scalar() -> None:
    then: list[L.Stmt] = [let("u", "mul", var("a"), const(2.0))]
    otherwise: list[L.Stmt] = [let("v", "sub", var("a"), const(1.0))]
    branch = L.If(var("p", B), then, otherwise, [L.Merge(var("w"), var("u"), var("v"))])
    test = let("p", "cmp", var("a"), const(0.0), dtype=B, attr="gt")
    result = scalar_type(F64)
    p = program([test, branch, L.SetResult(0, var("w"))], [], [result], scalars=[(var("a"), 0)])
    check(p, [3.0], [result], [np.float64(6.0)])
    check(p, [-3.0], [result], [np.float64(-4.0)])


@pytest.mark.parametrize("large", [False, True])
def test_branch_on_lanes(large: bool) -> None:
    """Both sides run under masks: the integer division never sees the zeros, nor the store the other lanes."""
    x, y, out = array("x", I64, n), array("y", I64, n), array("out", I64, n)
    then: list[L.Stmt] = [let("q", "idiv", var("a", I64), var("b", I64)), L.Store(y, (i,), var("q", I64))]
    then += [let(f"z{s}", "add", var("q", I64), const(s, I64)) for s in range(8 if large else 0)]
    otherwise: list[L.Stmt] = [let("o", "sub", const(0, I64), var("a", I64))]
    body: list[L.Stmt] = [
        L.Load(var("a", I64), x, (i,)),
        L.Load(var("b", I64), y, (i,)),
        let("p", "cmp", var("b", I64), const(0, I64), dtype=B, attr="ne"),
        L.If(var("p", B), then, otherwise, [L.Merge(var("r", I64), var("q", I64), var("o", I64))]),
        L.Store(out, (i,), var("r", I64)),
    ]
    p = elementwise(body, [x, y], out)
    run = executable(p, 2, [out])
    for size in (*SIZES, 40):
        a, b = RNG.integers(0, 90, size), RNG.integers(0, 3, size)
        expected = np.where(b != 0, a // np.where(b, b, 1), -a)
        check(p, [a, b], [out], [expected], run=run)
    zeros = np.zeros(9, np.int64)
    check(p, [zeros + 4, zeros], [out], [zeros - 4], run=run)


def test_uniform_load_under_a_mask_that_may_be_empty() -> None:
    """`out[i] = big[t] if x[i] > 0 else 0` where t is out of bounds when no x is positive."""
    x, big, out = array("x", F64, n), array("big", F64, m), array("out", F64, n)
    then: list[L.Stmt] = [L.Load(var("u"), big, (symbol("t"),))]
    then += [let(f"u{s}", "add", var("u"), const(float(s))) for s in range(2)]
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("p", "cmp", var("a"), const(0.0), dtype=B, attr="gt"),
        L.If(var("p", B), then, [], [L.Merge(var("r"), var("u"), const(0.0))]),
        L.Store(out, (i,), var("r")),
    ]
    entry: list[L.Stmt] = [L.Bind("t", var("t0", I64)), L.For("i", 0, n, body, role="vector")]
    p = program(entry, [x, big], [out], dims=[("n", 0, 0), ("m", 1, 0)], scalars=[(var("t0", I64), 2)])
    a = RNG.standard_normal(13)
    check(p, [a, np.arange(4.0), 3], [out], [np.where(a > 0, 3.0, 0.0)])
    check(p, [-abs(a), np.arange(4.0), 1 << 44], [out], [np.zeros(13)])


def test_triangular_loop_per_lane() -> None:
    """out[i] = sum(x[j] for j < i), the inner bound different in each lane."""
    x, out = array("x", F64, n), array("out", F64, n)
    inner: list[L.Stmt] = [L.Load(var("a"), x, (j,)), let("t", "add", var("s"), var("a"))]
    carry = L.Carry(var("s"), const(0.0), var("t"), var("total"))
    body: list[L.Stmt] = [L.For("j", 0, i, inner, carried=[carry]), L.Store(out, (i,), var("total"))]
    p = elementwise(body, [x], out)
    for size in (0, 5, 8, 19):
        a = RNG.standard_normal(size)
        check(p, [a], [out], [np.concatenate(([0.0], np.cumsum(a)))[:size]])


def test_loop_downwards_with_carried_swap() -> None:
    """Fibonacci over a range with step -2: two carried integers that trade places."""
    result = scalar_type(I64)
    carried = [
        L.Carry(var("a", I64), const(0, I64), var("b", I64), var("ra", I64)),
        L.Carry(var("b", I64), const(1, I64), var("c", I64), var("rb", I64)),
    ]
    loop = L.For("i", symbol("t"), 0, [let("c", "add", var("a", I64), var("b", I64))], step=-2, carried=carried)
    p = program(
        [L.Bind("t", var("t0", I64)), loop, L.SetResult(0, var("ra", I64))], [], [result], scalars=[(var("t0", I64), 0)]
    )
    run = executable(p, 1, [result])
    for start, expected in ((0, 0), (1, 1), (2, 1), (3, 1), (20, 55), (-4, 0)):
        check(p, [start], [result], [np.int64(expected)], run=run)


def test_check_reports_the_first_lane_that_failed() -> None:
    site = Site("IndexError", "index {0} is out of bounds for axis 0 with size {1}")
    x, index, out = array("x", F64, m), array("index", I32, n), array("out", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("p", I32), index, (i,)),
        L.DimValue(var("size", I64), m),
        let("wide", "cast", var("p", I32), dtype=I64),
        let("fits", "cmp", var("wide", I64), var("size", I64), dtype=B, attr="lt"),
        L.Check(var("fits", B), 0, (var("p", I32), var("size", I64))),
        L.Bind("t", var("p", I32)),
        L.Load(var("a"), x, (symbol("t"),)),
        L.Store(out, (i,), var("a")),
    ]
    p = program(
        [L.For("i", 0, n, body, role="vector")], [index, x], [out], dims=[("n", 0, 0), ("m", 1, 0)], sites=[site]
    )
    run = executable(p, 2, [out])
    a = np.arange(10.0)
    check(p, [np.array([1, 2, 9, 0, 3, 5, 5, 1, 8, 0, 4], np.int32), a], [out], run=run)
    for bad in (0, 3, 7, 8, 10):
        at = np.zeros(11, np.int32)
        at[bad:] = 40 - np.arange(11 - bad)
        with pytest.raises(IndexError, match="index 40 is out of bounds for axis 0 with size 10"):
            run(at, a)


def test_swapped_buffers_in_a_time_loop() -> None:
    """Jacobi steps that exchange two buffers instead of copying, then one more read of each."""
    x, y, out = array("x", F64, n), array("y", F64, n), array("out", F64, n)
    step: list[L.Stmt] = [
        L.Load(var("a"), x, (i - 1,)),
        L.Load(var("b"), x, (i + 1,)),
        let("s", "add", var("a"), var("b")),
        let("h", "mul", var("s"), const(0.5)),
        L.Store(y, (i,), var("h")),
    ]
    final: list[L.Stmt] = [
        L.Load(var("p"), x, (i,)),
        L.Load(var("q"), y, (i,)),
        let("r", "sub", var("p"), var("q")),
        L.Store(out, (i,), var("r")),
    ]
    entry: list[L.Stmt] = [
        L.Bind("t", var("t0", I64)),
        L.For("k", 0, symbol("t"), [L.For("i", 1, n - 1, step, role="vector"), L.Swap(x, y)]),
        L.For("i", 0, n, final, role="vector"),
    ]
    p = program(entry, [x, y], [out], dims=DIMS_1D, scalars=[(var("t0", I64), 2)])
    run = executable(p, 3, [out])
    for size, turns in ((20, 5), (3, 2), (33, 4), (10, 0)):
        a = RNG.standard_normal(size)
        u, v = a.copy(), a.copy()
        for _ in range(turns):
            v[1:-1] = (u[:-2] + u[2:]) * 0.5
            u, v = v, u
        check(p, [a, a.copy(), turns], [out], [u - v], run=run)


# --- text -----------------------------------------------------------------------------------------------------------


def test_equal_kernels_are_emitted_once() -> None:
    def kernel(name: str, factor: float) -> L.Function:
        x = array(f"{name}.x", F64, n)
        body: list[L.Stmt] = [
            L.Load(var("a"), x, (i,)),
            let("c", "mul", var("a"), const(factor)),
            L.Store(x, (i,), var("c")),
        ]
        return L.Function(name, [x], ["n"], [], [L.For("i", 0, n, body, role="vector")])

    x = array("x", F64, n)
    calls: list[L.Stmt] = [L.CallKernel(name, (x,), (n,), ()) for name in ("p", "q", "r")]
    kernels = [kernel("p", 2.0), kernel("q", 2.0), kernel("r", 3.0)]
    p = program(calls, [x], [], dims=DIMS_1D, kernels=kernels)
    assert len(re.findall(r"define internal", emit_program(p, target.host()))) == 2
    a = RNG.standard_normal(10)
    expected = a * 2.0 * 2.0 * 3.0
    executable(p, 1, [])(a)
    np.testing.assert_array_equal(a, expected)


def test_full_vectors_in_the_assembly() -> None:
    x, out = array("x", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [L.Load(var("a"), x, (i,)), let("c", "mul", var("a"), var("a")), L.Store(out, (i,), var("c"))]
    host = target.host()
    if not host.triple.startswith("x86_64"):
        pytest.skip("looks for x86 registers")
    assembly = engine.assembly_of(emit_program(elementwise(body, [x], out), host), host)
    assert {64: "zmm", 32: "ymm", 16: "xmm"}[host.memory_bytes] in assembly  # it waits for memory


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_other_x86_cpus(cpu: str) -> None:
    """The same program as code for older CPUs, run here where this one has their instructions."""
    host = target.host()
    if not host.triple.startswith("x86_64"):
        pytest.skip("x86 only")
    x, out = array("x", F32, n), array("out", F32, n)
    body: list[L.Stmt] = [
        L.Load(var("a", F32), x, (n - 1 - i,)),
        let("c", "call", var("a", F32), attr="exp"),
        L.Store(out, (i,), var("c", F32)),
    ]
    t = target.named(cpu)
    text = emit_program(elementwise(body, [x], out), t)
    code = engine.compile_object(text, t, verify=True)
    if t.vector_bytes > host.vector_bytes or (t.has_fma and not host.has_fma):
        return
    from jitgraph.codegen.interface import interface_of
    from jitgraph.runtime.invoke import Executable
    from tests.loop_programs import types_of

    run = Executable(interface_of(elementwise(body, [x], out), 1, types_of([out])), code)
    a = np.linspace(-5, 5, 45, dtype=F32)
    found = run(a)
    assert found is not None
    np.testing.assert_allclose(found[0], np.exp(a[::-1]), rtol=4e-7)


def test_text_takes_few_calls_an_op() -> None:
    x, out = array("x", F64, n), array("out", F64, n)

    def calls(ops: int) -> int:
        body: list[L.Stmt] = [L.Load(var("v0"), x, (i,))]
        body += [let(f"v{s + 1}", "add", var(f"v{s}"), const(1.0)) for s in range(ops)]
        body.append(L.Store(out, (i,), var(f"v{ops}")))
        p = elementwise(body, [x], out)
        emit_program(p, target.host())
        return calls_of(lambda: emit_program(p, target.host()))

    ten, hundred = calls(10), calls(100)
    assert ten < 7000
    assert hundred - ten < 90 * 100


def test_the_name_of_a_file_may_be_of_several_lines() -> None:
    text = "def f(x):\n    y = x * 2\n    return y.sum()\n"
    name = "<made of\nthis text>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    assert jg.jit(space["f"])(np.ones(3)) == 6.0
