"""Calls of machine code: slots, guards, results of every kind, memory, errors, callbacks, threads."""

from __future__ import annotations

import ctypes
import gc
import json
import threading
import weakref

import numpy as np
import pytest

from jitgraph import target
from jitgraph.abi import CONTEXT_HEAP, Interface
from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.llvm import emit_program
from jitgraph.errors import DTypeError, InternalError, ShapeError
from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Site
from jitgraph.ir.types import TensorType, dense_layout, python_type
from jitgraph.runtime import engine, invoke, linking, table
from jitgraph.runtime.invoke import Deoptimise, Executable
from jitgraph.runtime.pool import pool
from jitgraph.source import SourceLoc
from tests.loop_programs import (
    F32,
    F64,
    I64,
    B,
    L,
    array,
    check,
    const,
    executable,
    i,
    j,
    k,
    let,
    m,
    n,
    program,
    scalar_type,
    types_of,
    var,
)

RNG = np.random.default_rng(3)


def doubled() -> tuple[L.Program, L.Buffer]:
    x, out = array("x", F64, n), array("out", F64, n)
    body: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("b", "mul", var("a"), const(2.0)),
        L.Store(out, (i,), var("b")),
    ]
    return program([L.For("i", 0, n, body, role="vector")], [x], [out], dims=[("n", 0, 0)]), out


# --- guards and results ---------------------------------------------------------------------------------------------


def test_guards_are_tested_before_anything_runs() -> None:
    p, out = doubled()
    p.guards[:] = [(">=", n, 3), ("!=", n, 5), ("<", n, 10), ("==", n * 2 - 8, n - 4 + (n - 4))]
    run = executable(p, 1, [out])
    for size in range(12):
        a = RNG.standard_normal(size)
        found = run(a)
        if 3 <= size < 10 and size != 5:
            np.testing.assert_array_equal(found[0], a * 2)
        else:
            assert found is None


def test_scalars_of_every_kind() -> None:
    """Arguments of each dtype come back as Python numbers and NumPy scalars."""
    names = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
    kinds = [np.dtype(name) for name in names]
    values = [d.type(1 if d.kind == "b" else 100) for d in kinds]
    body: list[L.Stmt] = [L.SetResult(s, var(f"a{s}", d)) for s, d in enumerate(kinds)]
    results = [scalar_type(d) for d in kinds]
    p = program(body, [], results, scalars=[(var(f"a{s}", d), s) for s, d in enumerate(kinds)])
    found = check(p, values, results, values)
    assert [type(x) for x in found] == [d.type for d in kinds]

    python = [python_type("py_bool"), python_type("py_int"), python_type("py_float")]
    given = [True, -(2**63), 0.1]
    body = [L.SetResult(s, var(f"a{s}", t.dtype)) for s, t in enumerate(python)]
    p = program(body, [], python, scalars=[(var(f"a{s}", t.dtype), s) for s, t in enumerate(python)])
    found = check(p, given, python, given)
    assert [type(x) for x in found] == [bool, int, float]


def test_integer_that_does_not_fit_deoptimises() -> None:
    result = scalar_type(I64)
    run = executable(program([L.SetResult(0, var("a", I64))], [], [result], scalars=[(var("a", I64), 0)]), 1, [result])
    with pytest.raises(Deoptimise):
        run(2**63)


def test_scalar_whose_kind_the_run_decides() -> None:
    t = TensorType(F64, (), "maybe_np_float")
    p = program([L.SetResult(0, var("a"), var("q", B))], [], [t], scalars=[(var("a"), 0), (var("q", B), 1)])
    run = executable(p, 2, [t])
    assert type(run(1.5, True)[0]) is np.float64
    assert type(run(1.5, False)[0]) is float


def test_results_in_other_orders_of_memory() -> None:
    shape = (n, m, 3)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        sizes = {0: n, 1: m, 2: 3}
        strides: dict[int, object] = {}
        step: object = 8
        for axis in reversed(order):
            strides[axis] = step
            step = step * sizes[axis]
        out = L.Buffer("out", F64, shape, tuple(strides[axis] for axis in range(3)))  # type: ignore[misc]
        x = array("x", F64, *shape)
        body: list[L.Stmt] = [L.Load(var("a"), x, (i, j, k)), L.Store(out, (i, j, k), var("a"))]
        nest = L.For("i", 0, n, [L.For("j", 0, m, [L.For("k", 0, 3, body, role="vector")])])
        p = program([nest], [x], [out], dims=[("n", 0, 0), ("m", 0, 1)])
        t = TensorType(F64, shape, "array", dense_layout(order))
        code = engine.compile_object(emit_program(p, target.host()))
        a = RNG.standard_normal((4, 5, 3))
        (found,) = Executable(interface_of(p, 1, [t]), code)(a)
        np.testing.assert_array_equal(found, a)
        assert [found.strides.index(s) for s in sorted(found.strides, reverse=True)] == list(order)


def test_result_of_no_axes_is_memory() -> None:
    out = array("out", F64)
    p = program([L.Store(out, (), const(4.0))], [], [out])
    (found,) = check(p, [], [out], [np.array(4.0)])
    assert isinstance(found, np.ndarray)


def test_unused_arguments_may_be_anything() -> None:
    result = scalar_type(I64)
    run = executable(program([L.SetResult(0, var("a", I64))], [], [result], scalars=[(var("a", I64), 1)]), 3, [result])
    assert run(object(), 7, "text") == [7]


def test_tables_are_constants_of_the_code() -> None:
    weights, out = array("w", F32, 5), array("out", F32, 5)
    values = np.array([1, -2, 0.5, np.inf, 3], F32)
    p = program(
        [L.For("i", 0, 5, [L.Load(var("a", F32), weights, (i,)), L.Store(out, (i,), var("a", F32))], role="vector")],
        [],
        [out],
    )
    p.tables.append((weights, values))
    check(p, [], [out], [values])


# --- memory ---------------------------------------------------------------------------------------------------------


def test_scratch_heap_and_large_row_buffers() -> None:
    """x + 1 through a buffer of each scope."""
    x, out = array("x", F64, n), array("out", F64, n)
    for scope, size in (("scratch", n), ("heap", n), ("row", n), ("row", 64)):
        t = array("t", F64, size)
        first: list[L.Stmt] = [
            L.Load(var("a"), x, (i,)),
            let("b", "add", var("a"), const(1.0)),
            L.Store(t, (i,), var("b")),
        ]
        second: list[L.Stmt] = [L.Load(var("c"), t, (i,)), L.Store(out, (i,), var("c"))]
        entry: list[L.Stmt] = [
            L.Alloc(t, scope, 64),  # type: ignore[arg-type]
            L.For("i", 0, n, first, role="vector"),
            L.For("i", 0, n, second, role="vector"),
        ]
        if scope == "heap":
            entry.append(L.Free(t))
        p = program(entry, [x], [out], dims=[("n", 0, 0)], scratch=64 + 8 * n)
        run = executable(p, 1, [out])
        for length in (0, 5, 64):
            a = RNG.standard_normal(length)
            check(p, [a], [out], [a + 1], run=run)
        assert not any(frame.context[CONTEXT_HEAP // 8] for frame in run.pool)


def test_row_buffer_in_a_loop_is_allocated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of unknown size inside the row loop: one allocation for all rows."""
    x, out, row = array("x", F64, n, m), array("out", F64, n, m), array("row", F64, m)
    inner: list[L.Stmt] = [
        L.Alloc(row, "row"),
        L.For("j", 0, m, [L.Load(var("a"), x, (i, j)), L.Store(row, (j,), var("a"))], role="vector"),
        L.For("j", 0, m, [L.Load(var("b"), row, (m - 1 - j,)), L.Store(out, (i, j), var("b"))], role="vector"),
    ]
    p = program([L.For("i", 0, n, inner)], [x], [out], dims=[("n", 0, 0), ("m", 0, 1)])
    run = executable(p, 1, [out])
    a = RNG.standard_normal((6, 11))
    check(p, [a], [out], [a[:, ::-1].copy()], run=run)
    frame = run.prepare([a])
    assert frame is not None
    freed: list[int] = []
    release = invoke.release
    monkeypatch.setattr(invoke, "release", lambda context: freed.append(release(context)))
    run.run(frame)
    assert freed == [1]


def test_heap_of_a_call_that_fails_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn takes a block and frees every second one; a check then ends the call."""
    keep, drop = array("keep", F64, symbol("n")), array("drop", F64, symbol("n"))
    body: list[L.Stmt] = [
        L.Alloc(keep, "heap"),
        L.Alloc(drop, "heap"),
        L.Free(drop),
        L.DimValue(var("i", I64), symbol("i")),
        let("low", "cmp", var("i", I64), L.Const(4, I64), attr="lt", dtype=B),
        L.Check(var("low", B), 0, ()),
    ]
    p = program([L.For("i", 0, 9, body)], [array("x", F64, n)], [], dims=[("n", 0, 0)])
    p.sites.append(Site("ValueError", "too far"))
    run = executable(p, 1, [])
    freed: list[int] = []
    release = invoke.release
    monkeypatch.setattr(invoke, "release", lambda context: freed.append(release(context)))
    with pytest.raises(ValueError, match="too far"):
        run(np.zeros(3))
    assert freed == [5]


def test_large_blocks_are_used_again() -> None:
    """Each turn takes two blocks, one a bit larger than in the turn before, and frees them: two in all, kept for the next
    call."""
    x, out = array("x", F64, n), array("out", F64, n)
    first, second = array("first", F64, 9000 + i), array("second", F64, 30000)
    body: list[L.Stmt] = [
        L.Alloc(first, "heap"),
        L.Alloc(second, "heap"),
        L.Load(var("a"), x, (i,)),
        L.Store(first, (8999,), var("a")),
        L.Store(second, (29999,), const(1.0)),
        L.Load(var("b"), first, (8999,)),
        L.Load(var("c"), second, (29999,)),
        let("d", "add", var("b"), var("c")),
        L.Store(out, (i,), var("d")),
        L.Free(first),
        L.Free(second),
    ]
    p = program([L.For("i", 0, n, body)], [x], [out], dims=[("n", 0, 0)])
    run = executable(p, 1, [out])
    a = RNG.standard_normal(20)
    check(p, [a], [out], [a + 1], run=run)
    before = pool().counters()
    check(p, [a], [out], [a + 1], run=run)
    after = pool().counters()
    assert after.taken == before.taken
    assert after.allocations == before.allocations + 40
    assert after.used == before.used


def test_no_memory_raises() -> None:
    t = array("t", F64, symbol("t"))
    entry: list[L.Stmt] = [L.Bind("t", var("a", I64)), L.Alloc(t, "heap")]
    run = executable(program(entry, [], [], scalars=[(var("a", I64), 0)]), 1, [])
    with pytest.raises(MemoryError):
        run(2**50)
    assert run(4) == []


@pytest.mark.parametrize("role", ["serial", "append"])
def test_compress_appends_to_a_result_of_unknown_size(role: str) -> None:
    """x[x > 0]: count, allocate, append in a serial loop with a carried position."""
    x, out, count = array("x", F64, n), array("out", F64, symbol("t")), symbol("c")
    positive: list[L.Stmt] = [
        L.Load(var("a"), x, (i,)),
        let("p", "cmp", var("a"), const(0.0), dtype=B, attr="gt"),
        let("q", "cast", var("p", B), dtype=I64),
    ]
    append: list[L.Stmt] = [
        L.Load(var("b"), x, (i,)),
        let("r", "cmp", var("b"), const(0.0), dtype=B, attr="gt"),
        L.If(var("r", B), [L.Bind("c", var("at", I64)), L.Store(out, (count,), var("b"))], []),
        let("one", "cast", var("r", B), dtype=I64),
        let("next", "add", var("at", I64), var("one", I64)),
    ]
    carry = L.Carry(var("at", I64), const(0, I64), var("next", I64), var("end", I64))
    entry: list[L.Stmt] = [
        L.Reduce("i", n, positive, [L.Part(var("total", I64), "sum", "free", var("q", I64), const(0, I64))]),
        L.Bind("t", var("total", I64)),
        L.Alloc(out, "result", slot=0),
        L.For("i", 0, n, append, role=role, carried=[carry]),  # type: ignore[arg-type]
        L.SetResult(1, var("end", I64)),
    ]
    results = [TensorType(F64, (symbol("t"),)), scalar_type(I64)]
    p = program(entry, [x], results, dims=[("n", 0, 0)])
    run = executable(p, 1, results)
    assert ("vector.compress" in emit_program(p, target.named("x86-64-v4"))) == (role == "append")
    for size in (0, 1, 7, 40):
        for shift in (-9.0, 0.0, 9.0):
            a = RNG.standard_normal(size) + shift
            check(p, [a], results, [a[a > 0], np.int64(np.sum(a > 0))], run=run)


@pytest.mark.parametrize("dtype", ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_append_elements_of_every_dtype(dtype: str) -> None:
    d = np.dtype(dtype)
    x, mask, out = array("x", d, n), array("mask", B, n), array("out", d, n)
    place = L.Bind("c", var("at", I64))
    body: list[L.Stmt] = [
        L.Load(var("p", B), mask, (i,)),
        L.If(var("p", B), [place, L.Load(var("a", d), x, (i,)), L.Store(out, (symbol("c"),), var("a", d))], []),
        let("one", "cast", var("p", B), dtype=I64),
        let("next", "add", var("at", I64), var("one", I64)),
    ]
    carry = L.Carry(var("at", I64), const(2, I64), var("next", I64), var("end", I64))
    p = program([L.For("i", 0, n, body, role="append", carried=[carry])], [x, mask, out], [], dims=[("n", 0, 0)])
    run = executable(p, 3, [])
    for size in (3, 19, 50):
        a, hits = (RNG.random(size) * 100).astype(d), RNG.random(size) < 0.5
        hits[:2] = False
        expected = np.zeros(size, d)
        expected[2 : 2 + hits.sum()] = a[hits]
        target_array = np.zeros(size, d)
        run(a, hits, target_array)
        np.testing.assert_array_equal(target_array, expected)
        check(p, [a, hits, np.zeros(size, d)], [], run=run)


# --- library --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_matrix_product(dtype: np.dtype) -> None:
    a, b, out = array("a", dtype, n, k), array("b", dtype, k, m), array("out", dtype, n, m)
    name = "cblas_sgemm" if dtype == F32 else "cblas_dgemm"
    one, zero = const(1.0, dtype), const(0.0, dtype)
    call = L.Library(
        name,
        (
            101,
            111,
            111,
            n,
            m,
            k,
            one,
            L.Address(a, (0, 0)),
            k,
            L.Address(b, (0, 0)),
            m,
            zero,
            L.Address(out, (0, 0)),
            m,
        ),
    )
    p = program([call], [a, b], [out], dims=[("n", 0, 0), ("k", 0, 1), ("m", 1, 1)])
    left, right = RNG.standard_normal((5, 7)).astype(dtype), RNG.standard_normal((7, 4)).astype(dtype)
    check(p, [left, right], [out], [left @ right])


def test_library_result() -> None:
    x, y = array("x", F64, n), array("y", F64, n)
    call = L.Library("cblas_ddot", (n, L.Address(x, (0,)), 1, L.Address(y, (0,)), 1), var("r"))
    result = scalar_type(F64)
    p = program([call, L.SetResult(0, var("r"))], [x, y], [result], dims=[("n", 0, 0)])
    a, b = RNG.standard_normal((2, 50))
    check(p, [a, b], [result], [a @ b])


def test_fallbacks_compute_what_blas_does() -> None:
    """The stand-ins for a NumPy without OpenBLAS, against the real routines, transposed and strided."""
    if table.blas_library() is None:
        pytest.skip("the stand-ins are all there is")
    for letter, dtype in (("s", F32), ("d", F64)):
        a, b, c = (RNG.standard_normal((6, 6)).astype(dtype) for _ in range(3))
        x = RNG.standard_normal(12).astype(dtype)
        at_a, at_b, at_x = (v.__array_interface__["data"][0] for v in (a, b, x))
        calls = {
            "gemm": ((101, 112, 111, 4, 5, 6, 1.5, at_a, 6, at_b, 6, 0.5), 6),
            "gemv": ((101, 112, 6, 4, 2.0, at_a, 6, at_x, 2, 0.0), 1),
            "syrk": ((101, 121, 111, 4, 6, 1.0, at_a, 6, 0.0), 6),
        }
        tolerance = 2e-5 if dtype == F32 else 1e-12
        for name, (arguments, leading) in calls.items():
            full = f"cblas_{letter}{name}"
            real, ours = c.copy(), c.copy()
            result, types = table.signature(full)
            stand_in = ctypes.cast(table._fallback(full), ctypes.c_void_p).value or 0
            table.call(full, [*arguments, real.__array_interface__["data"][0], leading])
            ctypes.CFUNCTYPE(result, *types)(stand_in)(*arguments, ours.__array_interface__["data"][0], leading)
            np.testing.assert_allclose(ours, real, rtol=tolerance)
        result, types = table.signature(f"cblas_{letter}dot")
        stand_in = ctypes.cast(table._fallback(f"cblas_{letter}dot"), ctypes.c_void_p).value or 0
        arguments = (6, at_x, 2, at_b, -1)
        ours = ctypes.CFUNCTYPE(result, *types)(stand_in)(*arguments)
        np.testing.assert_allclose(ours, table.call(f"cblas_{letter}dot", list(arguments)), rtol=1e-4)


# --- errors ---------------------------------------------------------------------------------------------------------


def test_error_names_the_line_of_the_user(tmp_path: object) -> None:
    import pathlib

    source = pathlib.Path(str(tmp_path)) / "model.py"
    source.write_text("def f(x, k):\n    return x[k]\n")
    site = Site("IndexingError", "index {0} is out of bounds, {1:.1f} {2}", SourceLoc(str(source), 2, 12, "f"))
    test: list[L.Stmt] = [
        let("p", "cmp", var("a", I64), const(5, I64), dtype=B, attr="lt"),
        L.Check(var("p", B), 0, (var("a", I64), const(0.25), var("p", B))),
    ]
    run = executable(program(test, [], [], scalars=[(var("a", I64), 0)], sites=[site]), 1, [])
    assert run(4) == []
    with pytest.raises(IndexError) as caught:
        run(9)
    assert str(caught.value) == "index 9 is out of bounds, 0.2 False\n  model.py:2, in f:    return x[k]"


def test_deoptimise_site() -> None:
    site = Site("deoptimise", "the sum overflows")
    test: list[L.Stmt] = [
        let("o", "add_overflows", var("a", I64), var("a", I64), dtype=B),
        let("p", "not_", var("o", B)),
        L.Check(var("p", B), 0),
    ]
    run = executable(program(test, [], [], scalars=[(var("a", I64), 0)], sites=[site]), 1, [])
    assert run(2**61) == []
    with pytest.raises(Deoptimise, match="the sum overflows"):
        run(2**62)


def test_kernel_status_and_results_reach_the_entry() -> None:
    site = Site("ZeroDivisionError", "division by zero")
    kernel = L.Function(
        "k",
        [],
        ["s"],
        [var("a", F32), var("q", B)],
        [
            let("p", "cmp", var("a", F32), const(0.0, F32), dtype=B, attr="ne"),
            L.Check(var("p", B), 0),
            let("b", "fdiv", const(1.0, F32), var("a", F32)),
            let("r", "xor", var("q", B), const(True, B)),
            L.DimValue(var("d", I64), symbol("s") * 2),
        ],
        [var("b", F32), var("r", B), var("d", I64)],
    )
    outs = (var("x", F32), var("y", B), var("z", I64))
    call = L.CallKernel("k", (), (7,), (var("f", F32), const(True, B)), outs)
    results = [scalar_type(v.dtype) for v in outs]
    body: list[L.Stmt] = [call, *(L.SetResult(s, v) for s, v in enumerate(outs))]
    p = program(body, [], results, scalars=[(var("f", F32), 0)], kernels=[kernel], sites=[site])
    run = executable(p, 1, results)
    check(p, [4.0], results, [np.float32(0.25), np.False_, np.int64(14)], run=run)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        run(0.0)


def test_damaged_object_code_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="does not link"):
        linking.load(b"no object", ("entry",))
    with pytest.raises(InternalError, match="LLVM refuses"):
        engine.compile_object("define void @f() { ret i32 0 }")


# --- host calls -----------------------------------------------------------------------------------------------------


def host_program() -> tuple[L.Program, list[object]]:
    """Sorts a copy of x with a number beside it, and returns how many elements there were as Python counted them."""
    x, out = array("x", F64, n, strides=(symbol("s"),)), array("out", F64, n)
    site = Site("host", "my_sort")
    body: list[L.Stmt] = [L.Host(0, (x, var("f", F32)), (out, var("c", I64))), L.SetResult(1, var("c", I64))]
    results = [out, scalar_type(I64)]
    p = program(
        body, [x], results, dims=[("n", 0, 0)], scalars=[(var("f", F32), 1)], sites=[site], strides={"x": ("s",)}
    )
    return p, results


def test_host_call() -> None:
    p, results = host_program()
    seen = []

    def my_sort(x: np.ndarray, f: np.float32) -> tuple[np.ndarray, int]:
        seen.append((x, f))
        return np.sort(x) * f, len(x)

    a = RNG.standard_normal(30)[::-2]
    check(p, [a, 2.0], results, [np.sort(a) * 2, np.int64(15)], hosts={0: my_sort})
    assert type(seen[0][1]) is np.float32
    assert seen[0][0].flags.owndata


def test_host_errors_pass_through() -> None:
    p, results = host_program()

    def fails(x: np.ndarray, f: float) -> tuple[np.ndarray, int]:
        raise KeyError("mine")

    run = executable(p, 2, results, {0: fails})
    with pytest.raises(KeyError, match="mine"):
        run(np.ones(3), 1.0)
    run.hosts[0] = lambda x, f: (x[1:], 1)
    with pytest.raises(ShapeError, match=r"my_sort: gave shape \(2,\), but \(3,\) was expected"):
        run(np.ones(3), 1.0)
    run.hosts[0] = lambda x, f: (x * 1j, 1)
    with pytest.raises(DTypeError, match="my_sort: gave complex128, but float64"):
        run(np.ones(3), 1.0)
    run.hosts[0] = lambda x, f: (x, 1)
    assert run(np.ones(3), 1.0)[1] == 1


def test_calls_are_reentrant() -> None:
    p, results = host_program()
    depth = []

    def recursive(x: np.ndarray, f: float) -> tuple[np.ndarray, int]:
        depth.append(len(x))
        if len(x) > 1:
            inner = run(x[1:].copy(), 1.0)
            return np.concatenate([[0.0], inner[0] + 1]), int(inner[1]) + 1
        return x * 0, 1

    run = executable(p, 2, results, {0: recursive})
    found = run(np.ones(6), 1.0)
    np.testing.assert_array_equal(found[0], np.arange(6.0))
    assert found[1] == 6


# --- the rest -------------------------------------------------------------------------------------------------------


def test_threads_share_an_executable() -> None:
    p, out = doubled()
    run = executable(p, 1, [out])
    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(200):
            a = rng.standard_normal(rng.integers(0, 500))
            if not np.array_equal(run(a)[0], a * 2):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_slots_without_knowing_the_layout_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke.array_slot is invoke._slot_by_layout
    monkeypatch.setattr(invoke, "array_slot", invoke._slot_by_interface)
    p, out = doubled()
    a = RNG.standard_normal(9)
    check(p, [a], [out], [a * 2])


def test_interface_survives_json() -> None:
    p, results = host_program()
    interface = interface_of(p, 2, types_of(results))
    assert Interface.from_plain(json.loads(json.dumps(interface.to_plain()))) == interface


def test_executables_die() -> None:
    p, out = doubled()
    run = executable(p, 1, [out])
    run(np.ones(3))
    gone = weakref.ref(run)
    del run
    gc.collect()
    assert gone() is None
