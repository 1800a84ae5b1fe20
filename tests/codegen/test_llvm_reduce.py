"""Reductions in machine code: NumPy's bits for pairwise sums, NumPy's NaN rules for extremes and their positions."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph import target
from jitgraph.codegen.llvm import emit_program
from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Site
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

RNG = np.random.default_rng(5)
SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 33, 64, 65, 127, 130, 300)


def reduction(parts: list[L.Part], dtype: np.dtype, body: list[L.Stmt] | None = None) -> tuple[L.Program, list[object]]:
    """Reduce x over n; `a` is the element."""
    x = array("x", dtype, n)
    body = [L.Load(var("a", dtype), x, (i,))] if body is None else body
    results = [scalar_type(p.result.dtype) for p in parts]
    stores: list[L.Stmt] = [L.SetResult(s, p.result) for s, p in enumerate(parts)]
    return program([L.Reduce("i", n, body, parts), *stores], [x], results, dims=[("n", 0, 0)]), results


def part(kind: str, order: str, dtype: np.dtype, name: str = "r", **rest: object) -> L.Part:
    result = I64 if kind in ("argmax", "argmin") else dtype
    return L.Part(var(name, result), kind, order, var("a", dtype), **rest)  # type: ignore[arg-type]


# --- pairwise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_pairwise_sum_has_the_bits_of_numpy(dtype: np.dtype) -> None:
    p, results = reduction([part("sum", "pairwise", dtype, init=const(-0.0, dtype))], dtype)
    run = executable(p, 1, results)
    for size in (*range(300), *RNG.integers(300, 3000, 150).tolist(), 100_003):
        a = (RNG.standard_normal(size) * 10.0 ** RNG.uniform(-6, 6, size)).astype(dtype)
        found = run(a)[0]
        assert found == (np.sum(a) if size else 0), size
    assert np.signbit(run(np.full(11, -0.0, dtype))[0])
    check(p, [RNG.standard_normal(777).astype(dtype)], results, run=run)


def test_pairwise_sum_of_strided_elements() -> None:
    """The sum over the first axis of a Fortran array, and over every third element."""
    x = array("x", F64, n, strides=(symbol("s"),))
    total = L.Part(var("r"), "sum", "pairwise", var("a"), const(0.0))
    body: list[L.Stmt] = [L.Load(var("a"), x, (i,))]
    entry: list[L.Stmt] = [L.Reduce("i", n, body, [total]), L.SetResult(0, var("r"))]
    result = scalar_type(F64)
    p = program(entry, [x], [result], dims=[("n", 0, 0)], strides={"x": ("s",)})
    run = executable(p, 1, [result])
    base = RNG.standard_normal(4000)
    for step in (1, 3, -1, -2):
        for size in (0, 5, 77, 129, 1000):
            a = base[::step][:size]
            check(p, [a], [result], [np.sum(a)], run=run)


def test_chunks_are_added_one_by_one() -> None:
    p, results = reduction([part("sum", "pairwise", F32, init=const(0.0, F32), chunk=8192)], F32)
    run = executable(p, 1, results)
    for size in (0, 100, 8192, 8193, 40_000):
        a = RNG.standard_normal(size).astype(F32)
        expected = F32.type(0)
        for start in range(0, size, 8192):
            expected = expected + np.sum(a[start : start + 8192])
        assert run(a)[0] == expected
    check(p, [RNG.standard_normal(9000).astype(F32)], results, run=run)


def test_two_pairwise_sums_share_a_pass() -> None:
    body: list[L.Stmt] = [L.Load(var("a"), array("x", F64, n), (i,)), let("b", "mul", var("a"), var("a"))]
    parts = [
        part("sum", "pairwise", F64, "r", init=const(0.0)),
        L.Part(var("s"), "sum", "pairwise", var("b"), const(0.0)),
    ]
    p, results = reduction(parts, F64, body)
    assert emit_program(p, target.host()).count("descend") == emit_program(
        reduction(parts[:1], F64)[0], target.host()
    ).count("descend")
    run = executable(p, 1, results)
    for size in (3, 100, 1000):
        a = RNG.standard_normal(size)
        check(p, [a], results, [np.sum(a), np.sum(a * a)], run=run)


def test_pairwise_sum_of_a_function() -> None:
    """A body with calls and a uniform operand, in rows."""
    x, shift, out = array("x", F64, n, m), array("shift", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i, j)),
        L.Load(var("s"), shift, (i,)),
        let("d", "sub", var("a"), var("s")),
        let("e", "mul", var("d"), var("d")),
    ]
    rows: list[L.Stmt] = [
        L.Reduce("j", m, body, [L.Part(var("r"), "sum", "pairwise", var("e"), const(0.0))]),
        L.Store(out, (i,), var("r")),
    ]
    p = program([L.For("i", 0, n, rows)], [x, shift], [out], dims=[("n", 0, 0), ("m", 0, 1)])
    run = executable(p, 2, [out])
    for shape in ((3, 5), (2, 700), (4, 0), (0, 4), (3, 130)):
        a, s = RNG.standard_normal(shape), RNG.standard_normal(shape[0])
        d = (a - s[:, None]) ** 2
        check(p, [a, s], [out], [d.sum(axis=1)], run=run)


def test_check_in_a_pairwise_sum() -> None:
    site = Site("ValueError", "element {0} is negative")
    x = array("x", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("p", "cmp", var("a"), const(0.0), dtype=B, attr="ge"),
        L.Check(var("p", B), 0, (var("a"),)),
    ]
    result = scalar_type(F64)
    entry: list[L.Stmt] = [
        L.Reduce("i", n, body, [part("sum", "pairwise", F64, init=const(0.0))]),
        L.SetResult(0, var("r")),
    ]
    p = program(entry, [x], [result], dims=[("n", 0, 0)], sites=[site])
    run = executable(p, 1, [result])
    a = RNG.random(501)
    check(p, [a], [result], [np.sum(a)], run=run)
    a[444] = -1.5
    a[445] = -2.5
    with pytest.raises(ValueError, match=r"element -1\.5 is negative"):
        run(a)


# --- serial ---------------------------------------------------------------------------------------------------------


def test_serial_order() -> None:
    parts = [
        part("prod", "serial", F64, "r", init=const(1.0)),
        part("sum", "serial", F64, "s", init=const(0.0)),
        part("argmax", "serial", F64, "t"),
        part("min", "serial", F64, "u"),
    ]
    p, results = reduction(parts, F64)
    run = executable(p, 1, results)
    for size in SIZES:
        a = RNG.standard_normal(size)
        expected = [np.prod(a), np.cumsum(a)[-1], np.argmax(a), np.min(a)]
        check(p, [a], results, expected, run=run)
    assert run(np.empty(0))[:2] == [1.0, 0.0]


# --- any grouping ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_integer_sum_prod_extremes(dtype: str) -> None:
    d = np.dtype(dtype)
    kinds = ["sum", "prod", "max", "min", "argmax", "argmin"]
    parts = [part(kind, "free", d, f"r{s}") for s, kind in enumerate(kinds)]
    parts[0].init = const(3, d)
    p, results = reduction(parts, d)
    run = executable(p, 1, results)
    for size in SIZES:
        a = RNG.integers(0 if d.kind == "u" else -9, 9, size).astype(d)
        with np.errstate(all="ignore"):
            expected = [
                np.add(np.sum(a, dtype=d), d.type(3), dtype=d),
                np.prod(a, dtype=d),
                a.max(),
                a.min(),
                a.argmax(),
                a.argmin(),
            ]
        check(p, [a], results, expected, run=run)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf])
def test_float_extremes(dtype: np.dtype, special: float | None) -> None:
    kinds = ["max", "min", "argmax", "argmin"]
    p, results = reduction([part(kind, "free", dtype, f"r{s}") for s, kind in enumerate(kinds)], dtype)
    run = executable(p, 1, results)
    for size in SIZES:
        a = RNG.integers(-5, 5, size).astype(dtype)
        if special is not None:
            a[RNG.integers(0, size, 2)] = special
        expected = [a.max(), a.min(), a.argmax(), a.argmin()]
        check(p, [a], results, expected, run=run, interpret=size < 40)
    for constant in (np.inf, -np.inf, np.nan):
        a = np.full(37, constant, dtype)
        check(p, [a], results, [a.max(), a.min(), a.argmax(), a.argmin()], run=run)


def test_extreme_with_init() -> None:
    p, results = reduction([part("max", "free", F64, init=const(2.0))], F64)
    check(p, [np.array([1.0, -3.0])], results, [np.float64(2.0)])
    check(p, [np.array([1.0, np.nan])], results, [np.float64(np.nan)])
    check(p, [np.array([])], results, [np.float64(2.0)])


@pytest.mark.parametrize("kind", ["any", "all"])
def test_any_and_all_leave_early(kind: str) -> None:
    p, results = reduction([part(kind, "free", B, init=const(kind == "all", B))], B)
    run = executable(p, 1, results)
    function = getattr(np, kind)
    for size in (0, *SIZES, 5000):
        for density in (0.0, 0.001, 0.999, 1.0):
            a = RNG.random(size) < density
            check(p, [a], results, [function(a)], run=run, interpret=size < 40)


def test_position_of_extreme_bool() -> None:
    p, results = reduction([part("argmax", "free", B), part("argmin", "free", B, "s")], B)
    run = executable(p, 1, results)
    for size in SIZES:
        a = RNG.random(size) < 0.5
        check(p, [a], results, [np.argmax(a), np.argmin(a)], run=run)


def test_free_float_sum_is_close() -> None:
    p, results = reduction([part("sum", "free", F64, init=const(0.0))], F64)
    run = executable(p, 1, results)
    for size in SIZES:
        a = RNG.standard_normal(size)
        np.testing.assert_allclose(run(a)[0], a.sum(), rtol=1e-12, atol=1e-14)


def test_mixed_orders_take_a_pass_each() -> None:
    """max in lanes, sum pairwise, product in series, over a body that stores too: the store goes with the last pass."""
    x, out = array("x", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("b", "mul", var("a"), const(2.0)),
        L.Store(x, (i,), var("b")),
        L.Store(out, (i,), var("b")),
    ]
    parts = [
        L.Part(var("r"), "max", "free", var("b")),
        L.Part(var("s"), "sum", "pairwise", var("b"), const(0.0)),
        L.Part(var("t"), "prod", "serial", var("a"), const(1.0)),
    ]
    results = [out, scalar_type(F64), scalar_type(F64), scalar_type(F64)]
    stores: list[L.Stmt] = [L.SetResult(s + 1, p.result) for s, p in enumerate(parts)]
    p = program([L.Reduce("i", n, body, parts), *stores], [x], results, dims=[("n", 0, 0)])
    for size in (1, 9, 200):
        a = RNG.standard_normal(size)
        b = a * 2.0
        check(p, [a], results, [b, b.max(), b.sum(), np.prod(a)])


def test_softmax_rows_with_a_row_buffer() -> None:
    """Three passes over a row that stays in a buffer: max, exp and sum, division."""
    x, out, row = array("x", F64, n, m), array("out", F64, n, m), array("row", F64, m)
    rows: list[L.Stmt] = [
        L.Alloc(row, "row"),
        L.Reduce("j", m, [L.Load(var("a"), x, (i, j))], [L.Part(var("top"), "max", "free", var("a"))]),
        L.Reduce(
            "j",
            m,
            [
                L.Load(var("b"), x, (i, j)),
                let("c", "sub", var("b"), var("top")),
                let("e", "call", var("c"), attr="exp"),
                L.Store(row, (j,), var("e")),
            ],
            [L.Part(var("sum"), "sum", "pairwise", var("e"), const(0.0))],
        ),
        L.For(
            "j",
            0,
            m,
            [L.Load(var("g"), row, (j,)), let("h", "fdiv", var("g"), var("sum")), L.Store(out, (i, j), var("h"))],
            role="vector",
        ),
    ]
    p = program([L.For("i", 0, n, rows)], [x], [out], dims=[("n", 0, 0), ("m", 0, 1)])
    run = executable(p, 1, [out])
    for shape in ((3, 5), (2, 300), (4, 16), (0, 3)):
        a = RNG.standard_normal(shape) * 5
        e = np.exp(a - a.max(axis=1, keepdims=True))
        (found,) = run(a)
        np.testing.assert_allclose(found, e / e.sum(axis=1, keepdims=True), rtol=1e-14)


def test_constant_extents() -> None:
    """Sizes known when compiling, whole vectors or not."""
    for size in (1, 8, 20, 32, 64):
        x = array("x", I32, size)
        entry: list[L.Stmt] = [
            L.Reduce("i", size, [L.Load(var("a", I32), x, (i,))], [part("sum", "free", I32)]),
            L.SetResult(0, var("r", I32)),
        ]
        result = scalar_type(I32)
        a = RNG.integers(-99, 99, size).astype(I32)
        check(program(entry, [x], [result]), [a], [result], [a.sum(dtype=I32)])
