"""`f.memory`: the plan keeps its promises, and what it says is what calls ask of the pool, to the byte."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.observe.memory import MemoryReport
from jitgraph.pytree import flatten
from jitgraph.runtime.pool import Pool, pool

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def attention(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.T
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)) @ v


def layers(x: Any, ws: Any, bs: Any) -> Any:
    for w, b in zip(ws, bs, strict=True):
        x = np.maximum(x @ w + b, 0.0)
    return x


def loss(ws: Any, x: Any, y: Any) -> Any:
    for w in ws:
        x = np.tanh(x @ w)
    return ((x - y) ** 2).mean()


def specs(rows: int, widths: list[int]) -> tuple[Any, ...]:
    pairs = list(itertools.pairwise(widths))
    return (
        jg.ShapeDtype((rows, widths[0])),
        [jg.ShapeDtype(pair) for pair in pairs],
        [jg.ShapeDtype((b,)) for _, b in pairs],
    )


# --- the bars: at most 1.1 times the largest sum of live bytes ----------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "m", "d", "e"), [(512, 512, 64, 64), (100, 1000, 32, 8), (1000, 100, 8, 500), (7, 9, 3, 5)]
)
def test_attention(n: int, m: int, d: int, e: int) -> None:
    report = jg.jit(attention).memory(jg.ShapeDtype((n, d)), jg.ShapeDtype((m, d)), jg.ShapeDtype((m, e)))
    assert report.lower_bound == 8 * (n * m + n * e)
    assert report.peak <= report.lower_bound + 63
    softmax = report.in_place
    assert [b.in_place_of for b in softmax] == ["s"]
    assert softmax[0].line > 0


@pytest.mark.parametrize(
    "widths",
    [
        [64] * 21,
        [64, 256] * 10 + [64],
        [784] + [512] * 10 + [256] * 9 + [10],
        list(range(100, 310, 10)),
    ],
)
def test_twenty_layers(widths: list[int]) -> None:
    report = jg.jit(layers).memory(*specs(32, widths))
    assert report.peak <= 1.1 * report.lower_bound
    assert len(report.in_place) == 19  # the last product lies in the result from the start
    reused = {name for b in report.buffers for name in b.reuses}
    assert len(reused) >= 16


def test_one_program_serves_all_sizes() -> None:
    f = jg.jit(layers)
    plans = {text.split(":")[0] for text in (str(f.memory(*specs(n, [w] * 5))) for n, w in ((8, 16), (64, 32)))}
    assert plans == {"layers"}
    ratios = [(r := f.memory(*specs(n, [w] * 5))).peak / r.lower_bound for n, w in ((8, 16), (64, 32), (128, 512))]
    assert ratios == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("rows", "width", "most"), [(64, 64, 1.05), (512, 32, 1.05)])
def test_gradients(rows: int, width: int, most: float) -> None:
    ws = [normal(width, width) / width for _ in range(6)]
    report = jg.jit(jg.grad(loss)).memory(ws, normal(rows, width), normal(rows, width))
    assert report.peak <= most * report.lower_bound
    assert len(report.in_place) >= 6


# --- what is said is what is asked --------------------------------------------------------------------------------------


def in_loop(x: Any, n: Any) -> Any:
    y = x @ x
    for _ in range(n):
        t = np.tanh(y)
        y = t @ x + y * 0.5
    return y


def exchange(x: Any, n: Any) -> Any:
    a, b = x @ x, x + 1
    for _ in range(n):
        a, b = b @ x * 0.01, a + b
    return a, b


def either(x: Any, k: Any) -> Any:
    a = x @ x
    if k > 0:
        b = np.exp(a * 0.01) @ x
    else:
        b = (a + 1) @ x
        b = b @ a
    return b + a


def neighbours(x: Any) -> Any:
    a = x @ x
    b = a[1:-1] + a[2:] + a[:-2]
    return b @ x


def turned(x: Any) -> Any:
    a = x @ x.T
    return (a + a.T) @ a


def masks(x: Any) -> Any:
    a = x @ x
    m = a > 0
    return m, np.where(m, a, 0.0) @ x


def sums(x: Any) -> Any:
    return np.cumsum(np.cumsum(x @ x, axis=1), axis=0) @ x


def partly(x: Any) -> Any:
    a = x @ x
    a[1:] += a[:-1]
    b = a * 2
    b[:, 0] = 3
    return b @ x


def narrow(x: Any) -> Any:
    a = x @ x.T
    b = a.astype(np.float32) * 2
    return (b @ b).astype(np.float64) + 1


def shapes(x: Any) -> Any:
    b = (x @ x * 2).reshape(32, 128)
    return (b + 1).T @ b


def called(x: Any) -> Any:
    return np.fft.fft(x @ x.T).real @ x


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (attention, (normal(100, 16), normal(120, 16), normal(120, 40))),
    (layers, (normal(40, 64), [normal(64, 64) for _ in range(4)], [normal(64) for _ in range(4)])),
    (in_loop, (normal(64, 64) / 64, 5)),
    (in_loop, (normal(64, 64) / 64, 0)),
    (exchange, (normal(64, 64) / 64, 5)),
    (either, (normal(64, 64) / 64, 1)),
    (either, (normal(64, 64) / 64, 0)),
    (neighbours, (normal(64, 64),)),
    (turned, (normal(64, 64),)),
    (masks, (normal(64, 64),)),
    (sums, (normal(64, 64),)),
    (partly, (normal(64, 64),)),
    (narrow, (normal(64, 64),)),
    (shapes, (normal(64, 64),)),
    (called, (normal(64, 64),)),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f"{f.__name__}-{k}" for k, (f, _) in enumerate(PROGRAMS)])
def test_right_to_the_byte(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    wanted = f(*copy.deepcopy(args))
    jitted = jg.jit(f)
    report = jitted.memory(*args)
    found = jitted(*copy.deepcopy(args))
    for a, b in zip(flatten(found)[0], flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if f is narrow else 1e-10, atol=1e-9)
    assert report.exact
    assert asked_by(lambda: jitted(*args)) == report.pool_bytes
    small = sum(x.nbytes for x in flatten(found)[0] if isinstance(x, np.ndarray) and x.nbytes < 16384)
    assert report.peak == report.pool_bytes + small
    assert report.lower_bound <= report.peak


def asked_by(call: Callable[[], Any]) -> int:
    """The most bytes that a call asks of the pool at a time."""
    memory = pool()
    if not isinstance(memory, Pool) or not memory.makes_arrays:
        pytest.skip("results come from NumPy's allocator here")
    memory.reset_peak()
    before = memory.counters().asked
    call()
    return memory.counters().asked_peak - before


# --- the report ---------------------------------------------------------------------------------------------------------


def test_the_report_in_full() -> None:
    report = jg.jit(attention).memory(jg.ShapeDtype((300, 40)), jg.ShapeDtype((200, 40)), jg.ShapeDtype((200, 30)))
    first = attention.__code__.co_firstlineno
    assert str(report) == (
        "attention: peak 552000 bytes = 72000 of results + 480000 of arena; lower bound 552000 bytes (1.00 of it)\n"
        f"  1. cblas_dgemm (line {first + 1})\n"
        f"  2. k0: reduce_max, sub, exp, reduce_sum, div (lines {first + 2}, {first + 3})\n"
        f"  3. cblas_dgemm (line {first + 3})\n"
        f"  s: f64[300, 200], 480000 bytes (line {first + 1}), steps 1 to 2, arena at 0\n"
        f"  div: f64[300, 200], 480000 bytes (line {first + 3}), steps 2 to 3, arena at 0, in place of s\n"
        f"  result 0: f64[300, 30], 72000 bytes (line {first + 3}), steps 3 to 3\n"
        "  beside: work space of BLAS (cblas_dgemm)"
    )


def test_nothing_runs() -> None:
    ran: list[int] = []

    def noted(x: np.ndarray) -> np.ndarray:
        ran.append(1)
        return x

    host = jg.host(noted, result=lambda x: jg.ShapeDtype(x.shape, x.dtype))
    report = jg.jit(lambda x: host(x @ x) + 1).memory(jg.ShapeDtype((1 << 15, 1 << 15)))
    assert not ran
    assert report.peak >= 8 << 30
    assert len(report.host_calls) == 1


def test_what_only_the_run_knows() -> None:
    report = jg.jit(lambda x: np.sort(x[x > 0] * 2)).memory(normal(100))
    assert not report.exact
    assert any(b.size_bytes is None for b in report.buffers)
    assert "what only the run knows" in str(report)


def test_a_result_is_written_where_it_lies() -> None:
    report = jg.jit(lambda x: np.tanh(x).T @ x).memory(normal(50, 50))
    assert [b.kind for b in report.buffers] == ["temporary", "result"]
    assert not [step for step in report.steps if "copy" in step.text]


# --- `out=` -------------------------------------------------------------------------------------------------------------


def out_of_product(a: Any, b: Any, out: Any) -> Any:
    return np.matmul(a, b, out=out)


def out_behind_product(a: Any, b: Any, out: Any) -> None:
    np.exp(a @ b, out=out)


def out_twice(a: Any, b: Any, out: Any) -> None:
    np.add(a, b, out=out)
    np.multiply(out, a, out=out)


def by_subscript(a: Any, b: Any, out: Any) -> None:
    out[...] = (a @ b) * 2 + a


@pytest.mark.parametrize("f", [out_of_product, out_behind_product, out_twice, by_subscript])
def test_out_makes_no_temporary(f: Callable[..., Any]) -> None:
    a, b = normal(40, 40), normal(40, 40)
    wanted = np.zeros((40, 40))
    f(a, b, wanted)
    jitted = jg.jit(f)
    report: MemoryReport = jitted.memory(a, b, np.zeros((40, 40)))
    assert report.peak == report.arena_bytes == 0
    assert not jitted.explain(a, b, np.zeros((40, 40))).copies
    found = np.zeros((40, 40))
    returned = jitted(a, b, found)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert returned is None or returned is found


def test_out_that_is_read_later_stays() -> None:
    def f(a: Any, out: Any) -> Any:
        t = a @ a
        s = out @ t
        out[...] = t
        return s

    a, out = normal(30, 30), normal(30, 30)
    mine, theirs = out.copy(), out.copy()
    np.testing.assert_allclose(jg.jit(f)(a, mine), f(a, theirs), rtol=1e-12)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_out_is_as_it_was_when_an_error_comes_first() -> None:
    def f(a: Any, i: Any, out: Any) -> None:
        t = a @ a
        if i > 3:
            raise ValueError("too large")
        np.exp(t, out=out)

    out = normal(20, 20)
    before = out.copy()
    with pytest.raises(ValueError, match="too large"):
        jg.jit(f)(normal(20, 20), 5, out)
    np.testing.assert_array_equal(out, before)


def test_rows_of_kernels_are_given_back() -> None:
    """Row buffers that no stack holds come from the pool while their kernel runs."""

    def f(x: Any, n: Any) -> Any:
        total = x * 1.0
        for _ in range(n):
            total = total + np.median(x, axis=1, keepdims=True) + np.cumsum(total[:, ::-1], axis=1)[:, ::-1]
        return total

    x = normal(4, 5000)
    jitted = jg.jit(f)
    few, many = jitted(x, 2), jitted(x, 50)
    np.testing.assert_allclose(few, f(x, 2), rtol=1e-9)
    assert many.shape == (4, 5000)
    del few, many
    assert asked_by(lambda: jitted(x, 50)) == asked_by(lambda: jitted(x, 2))
