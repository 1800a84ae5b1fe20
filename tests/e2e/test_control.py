"""Loops and branches behind the passes that change them: the same results, errors and writes as NumPy; what is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.loops import Alloc, CallKernel, For, If, Program, While
from jitgraph.ir.parser import parse
from jitgraph.passes.pipeline import count_ops, run_pipeline

X = np.linspace(-1.0, 2.0, 20)
M = X[:16].reshape(4, 4) + 4 * np.eye(4)


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """Result or exception, and the arguments as they are left."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    try:
        result = f(*given)
    except Exception as e:  # noqa: BLE001 - any exception of the program is an outcome
        result = (type(e), str(e))
    return result, given


def check(f: Callable[..., Any], *calls: tuple[Any, ...]) -> Any:
    """The jitted function, which does what `f` does in each call."""
    compiled = jg.jit(f)
    for args in calls:
        (expected, left), (found, changed) = outcome(f, args), outcome(compiled, args)
        same(found, expected)
        same(changed, left)
    return compiled


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
        return
    assert type(found) is type(expected), f"{found!r} is not {expected!r}"
    if isinstance(expected, (np.ndarray, np.generic)):
        assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def text(compiled: Any, *args: Any, stage: str = "dce_again") -> str:
    return str(compiled.inspect_ir(*args, stage=stage))


# ------------------------------------------------------------------------------------------------- known and implied


def test_ranges_without_and_with_one_turn() -> None:
    def f(x, n):
        s = 0.0
        for i in range(n, n):
            s += x[i]
        for i in range(n, n + 1):
            s += x[i]
        for i in range(n, n - 3, -3):
            s -= 2 * x[i]
        return s

    compiled = check(f, (X, 3), (X, 0), (X, -20), (X, 20), (X, -21), (X, 2**63 - 1))
    assert "= for" not in text(compiled, X, 3)


def test_conditions_that_loops_imply() -> None:
    def f(x, n):
        s = 0.0
        for i in range(n):
            if i < n:
                s += x[i]
            else:
                s = s * x[0]
            for j in range(i + 1, n):
                if i + 1 < n and j > i:
                    s += x[j]
                else:
                    s -= x[j]
        return s

    compiled = check(f, (X, 7), (X, 20), (X, 21), (X, 1))
    assert "cond" not in text(compiled, X, 7)
    assert "mul" not in text(compiled, X, 7)


def test_conditions_that_branches_imply() -> None:
    def f(x, n, p):
        if n > 3:
            y = x + 1 if n >= 4 else x * 2
            if p:
                return y * 3 if n != 3 and p else y / 3
            return y
        if n <= 3:
            return x - 1
        return x / 7

    compiled = check(f, (X, 3, True), (X, 4, True), (X, 4, False), (X, 3, False))
    found = text(compiled, X, 3, True)
    assert "div" not in found
    assert found.count("cond") == 1


def test_a_view_that_a_branch_or_a_turn_keeps_inside_is_not_read_without_it() -> None:
    def f(x, n, k):
        s = 0.0
        for _ in range(n):
            if k < x.shape[0]:
                s += x[k]
            else:
                s -= 1.0
        return s

    def g(x, n, m):
        s = x[0] * 0
        for i in range(n):
            for _ in range(m):
                s += x[i]
        return s

    far = 10**12
    check(f, (X, 3, 2), (X, 3, far), (X, 0, far), (X, 3, -far), (X, 0, -far))
    check(g, (X, 20, 2), (X, 200, 0), (X, 21, 1))


# -------------------------------------------------------------------------------------------------- selects and tails


def test_chains_of_branches_that_write_become_selects() -> None:
    def f(x):
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            if x[i] > 1.0:
                y[i] = 1.0
            elif x[i] < -0.5:
                y[i] = -0.5
            else:
                y[i] = x[i]
        return y

    compiled = check(f, (X,), (np.array([np.nan, np.inf, -np.inf, -0.0]),), (np.empty(0),))
    assert "cond" not in text(compiled, X)


def test_extremes_with_their_places() -> None:
    def f(x):
        best, place = x[0], 0
        for i in range(1, x.shape[0]):
            if x[i] > best:
                best, place = x[i], i
        return best, place

    compiled = check(f, (X,), (-X,), (np.array([np.nan, 1.0]),), (np.array([1.0, np.nan, 2.0]),))
    assert "cond" not in text(compiled, X)


def test_selects_of_integers_and_their_overflow() -> None:
    def f(n, limit):
        steps = 0
        while n != 1 and steps < limit:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps, n

    compiled = check(f, (27, 1000), (1, 10), (2**62, 100), (2**62 + 1, 5), (-7, 9))
    assert "cond" not in text(compiled, 27, 1000)
    assert "add_overflows" in text(compiled, 27, 1000)


def test_integers_divided_on_one_side_only() -> None:
    def f(a, b):
        out = np.zeros(a.shape[0], np.int64)
        for i in range(a.shape[0]):
            if b[i] != 0:
                out[i] = a[i] // b[i]
            else:
                out[i] = -1
        return out

    a, b = np.array([7, -7, 5, -(2**63)]), np.array([2, 0, -3, 1])
    check(f, (a, b))


def test_visible_writes_in_front_of_a_check_are_seen() -> None:
    def f(x, n, p):
        for i in range(n):
            x[i] = 5.0
            if p > 2:
                raise ValueError("late")
        return x.sum()

    check(f, (X, 3, 1), (X, 3, 3), (X, 0, 3), (X, 25, 1))


def test_invariant_errors_keep_their_order() -> None:
    def f(x, n, p, q):
        s = 0.0
        for i in range(n):
            if p > 2:
                raise ValueError("first")
            if q > 2:
                raise KeyError("second")
            s += x[i]
        return s

    def g(x, n, p):
        s = 0.0
        for i in range(n):
            s += x[i]
            if p > 2:
                raise ValueError("late")
        return s

    check(f, (X, 3, 1, 1), (X, 3, 3, 3), (X, 3, 1, 3), (X, 0, 3, 3), (X, 25, 1, 1), (X, 25, 1, 3))
    check(g, (X, 3, 1), (X, 3, 3), (X, 0, 3), (X, 25, 1), (X, 25, 3))


def test_arrays_on_both_sides() -> None:
    def f(x, p):
        y = x * 2 if p > 0 else x + 1
        return (y * y).sum()

    def g(x, p):
        if p > 0:
            y = np.exp(x)
            y[0] = 1.0
        else:
            y = np.exp(x)
            y[0] = 2.0
        return y

    def h(x, p):
        y = x if p > 0 else x * 1.0
        y = y + 0
        y[0] = 9.0
        return y, x

    compiled = check(f, (X, 1), (X, -1))
    assert "cond" not in text(compiled, X, 1)
    check(h, (X, 1), (X, -1))
    compiled = jg.jit(g)
    np.testing.assert_allclose(compiled(X, 1), g(X, 1), rtol=1e-15)
    np.testing.assert_allclose(compiled(X, -1), g(X, -1), rtol=1e-15)
    assert text(compiled, X, 1).count("exp %") == 1


# ------------------------------------------------------------------------------------------------ unswitch, induction


def test_branches_on_what_does_not_change() -> None:
    def f(x, mode, scale):
        s = 0.0
        for i in range(x.shape[0]):
            if mode == 0:
                s += x[i] * scale
            elif mode == 1:
                s -= x[i]
            else:
                s = s * 0.5
        return s

    def g(x, p):
        y = x.copy()
        for t in range(9):
            if p:
                y[1:-1] = 0.5 * (y[:-2] + y[2:])
            else:
                y[1:-1] += t
        return y

    compiled = check(f, (X, 0, 2.0), (X, 1, 2.0), (X, 2, 2.0))
    loops = re.findall(r"\bfor\b", text(compiled, X, 0, 2.0))
    assert len(loops) == 3
    check(g, (X, True), (X, False))


def test_twins_of_a_loop_have_symbols_of_their_own() -> None:
    def f(x, idx, p):
        s = x[0] * 0
        for i in range(idx.shape[0]):
            k = idx[i]
            if p > 0:
                s += x[:k].sum() + np.zeros(k).sum()
            else:
                s -= x[k:].sum()
        return s

    idx = np.array([3, 0, 7])
    check(f, (X, idx, 1), (X, idx, -1), (X, idx[:0], 1))


def test_secondary_induction() -> None:
    def f(x, n, m):
        k, down = 0, 5
        y = np.zeros((n, m))
        for i in range(n):
            for j in range(m):
                y[i, j] = x[k]
                k += 1
            down -= 2
        return y, k, down

    def g(x, n):
        k, r = 5, np.int64(3)
        s = 0.0
        for i in range(2, n, 4):
            s += x[k] * i
            k += 3
            r = r + 7
        return s, k, r

    def h(x):
        k = 2 * x.shape[0]
        s = 0.0
        for i in range(x.shape[0] - 1, -1, -1):
            k -= 2
            s += x[k // 2] * i
        return s, k

    compiled = check(f, (X, 4, 5), (X, 4, 6), (X, 0, 5), (X, 2, 0))
    assert "overflows" not in text(compiled, X, 4, 5)
    check(g, (X, 14), (X, 18), (X, 22), (X, 40))
    compiled = check(h, (X,), (X[:0],))
    assert "check" not in text(compiled, X)


def test_counters_near_the_end_of_int64() -> None:
    def f(k, n):
        for _ in range(n):
            k += 1
        return k

    def g(n):
        k = 1
        for _ in range(n):
            k = k + k
        return k

    check(f, (5, 3), (2**63 - 3, 1), (2**63 - 3, 2), (2**63 - 3, 5), (2**63 - 1, 0))
    check(g, (5,), (62,), (63,), (100,))


def test_dead_loops_and_values_carried_for_nobody() -> None:
    def f(x, n):
        unused, other = 0.0, x * 1.0
        s = 0.0
        for i in range(n):
            unused = unused * 2 + i
            other = other * 2 + unused
            s += i
        for i in range(n):
            other = other + i
        return s

    found = text(check(f, (X, 5), (X, 0)), X, 5)
    assert found.count("for ") == 1
    assert "f64[n]" not in found.split("{", 1)[1]


# ---------------------------------------------------------------------------------------------------------- memory


def rebuilt(u, n, dt):
    for _ in range(n):
        u = u + dt * (u * u - u)
    return u


def pair_rebuilt(u, v, n, dt):
    for _ in range(n):
        w = u - dt * v
        v = v + dt * u
        u = w
    return u, v


def ping_pong(a, b, n):
    a, b = a.copy(), b.copy()
    for _ in range(n):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a


def three_buffers(a, n):
    b, c, a = np.zeros_like(a), np.zeros_like(a), a.copy()
    for _ in range(n):
        c[1:-1] = 2 * b[1:-1] - a[1:-1] + 0.1 * (b[:-2] + b[2:])
        a, b, c = b, c, a
    return b


def fresh(a, n):
    for _ in range(n):
        new = np.empty_like(a)
        new[0], new[-1] = a[0], a[-1]
        new[1:-1] = 0.5 * (a[:-2] + a[2:])
        a = new
    return a


def until(u, tol):
    err = 1.0
    while err > tol:
        new = 0.5 * u + 1.0
        err = np.abs(new - u).max()
        u = new
    return u


def runge_kutta(y, n, h):
    for _ in range(n):
        k1 = -y
        k2 = -(y + 0.5 * h * k1)
        k3 = -(y + 0.5 * h * k2)
        k4 = -(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def two_steps(a, b, n):
    a, b = a.copy(), b.copy()
    for _ in range(n):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a[1:-1] = 0.5 * (b[:-2] + b[2:])
    return a


@pytest.mark.parametrize(
    ("f", "calls", "most"),
    [
        (rebuilt, [(X / 4, 20, 0.1), (X / 4, 1, 0.1)], 2),
        (pair_rebuilt, [(X, X + 1, 20, 0.1)], 4),
        (ping_pong, [(X, X + 1, 7), (X, X + 1, 8), (X, X + 1, 0)], 2),
        (three_buffers, [(X, 7), (X, 8), (X, 9), (X, 0)], 3),
        (fresh, [(X, 9), (X, 1)], 2),
        (until, [(X, 1e-3), (X, 2.0)], 2),
        (runge_kutta, [(X, 20, 0.1)], 2),
        (two_steps, [(X, X + 1, 9)], 2),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_loops_reuse_their_memory(f: Callable[..., Any], calls: list[tuple[Any, ...]], most: int) -> None:
    """No allocation and no copy in a turn: buffers are exchanged."""
    compiled = check(f, *calls)
    explained = compiled.explain(*calls[0])
    assert not explained.copies
    assert len(explained.temporaries) <= most
    program = compiled._dispatcher.stages(calls[0], {}).program()
    operators = {k.name: k.operators for k in explained.kernels}
    turns = list(in_loops(program))
    assert not [s for s in turns if isinstance(s, Alloc)]
    assert not [s.name for s in turns if isinstance(s, CallKernel) and operators[s.name] in ((), ("copy",))]


def in_loops(program: Program) -> Iterator[Any]:
    """The statements of the entry that run in each turn of a loop."""

    def visit(body: list[Any], inside: bool) -> Iterator[Any]:
        for s in body:
            if inside:
                yield s
            if isinstance(s, For):
                yield from visit(s.body, True)
            elif isinstance(s, While):
                yield from visit([*s.test, *s.body], True)
            elif isinstance(s, If):
                yield from visit([*s.then, *s.otherwise], inside)

    return visit(program.entry, False)


# ------------------------------------------------------------------------------------------------------------- size


def test_the_trip_count_does_not_change_the_code() -> None:
    """A trip count that is an argument needs no new code; one that is a number is just another number in it."""

    def f(x, n):
        for _ in range(n):
            x = x * 0.5 + 1.0
        return x

    compiled = jg.jit(f)
    for n in (9, 10, 1000, 20000):
        same(compiled(X, n), f(X, n))
    assert compiled.cache_info().compiles == 1

    limit = jg.config.unroll_limit

    def g(x, n):
        s = 0.0
        for i in range(n):
            s = s * 0.5 + x[i % 7] * i
        return s

    static = jg.jit(g, static_argnames="n")
    texts = {n: static.inspect_llvm(X, n) for n in (223, 227, 1009, 10**8 + 7)}  # no other number in the text
    assert min(texts) > limit
    lines = {n: len(t.splitlines()) for n, t in texts.items()}
    assert len(set(lines.values())) == 1
    assert len({re.sub(rf"\b{n}\b", "N", t) for n, t in texts.items()}) == 1
    same(static(X, 100), g(X, 100))
    same(static(X, limit), g(X, limit))


def program(statements: int) -> str:
    """A loop with a scalar that goes through branches in branches, and an array that some of them write."""
    ops = "\n".join(
        f"""
        %p{k} = gt %a{k}, %zero : np.bool
        %a{k + 1}, %y{k + 1} = cond %p{k} : np.f64, f64[n] () {{
          %e{k} = exp %a{k} : np.f64
          %w{k} = write %e{k}, %y{k} {{map = () -> (i)}} : f64[n]
          yield %e{k}, %w{k}
        }} else {{
          %g{k} = cond %q{k % 5} : np.f64 () {{
            %h{k} = sin %a{k} : np.f64
            yield %h{k}
          }} else {{
            yield %a{k}
          }}
          yield %g{k}, %y{k}
        }}"""
        for k in range(statements)
    )
    flags = ", ".join(f"%q{k}: py_bool" for k in range(5))
    return f"""
        graph @f(%x: f64[n], {flags}) -> np.f64 where n >= 0, n != 1, index i >= 0, i <= n - 1 {{
          %zero = constant {{value = f64(0.0)}} : np.f64
          %r, %y = for %zero, %x {{index = i, lower = 0, step = 1, upper = n}} : np.f64, f64[n] (%a0: np.f64, %y0: f64[n]) {{
            {ops}
            yield %a{statements}, %y{statements}
          }}
          return %r, %y {{mutates = [0]}}
        }}"""


def test_branches_do_not_make_programs_grow_or_passes_slow() -> None:
    """Each pass is linear: a chain of branches is walked once, not once for each way through it."""
    counts = {}
    for statements in (10, 50, 200):
        graph = parse(program(statements))
        run_pipeline(graph)
        counts[statements] = count_ops(graph)
    assert counts[50] < 5.5 * counts[10]
    assert counts[200] < 5.5 * counts[50]
