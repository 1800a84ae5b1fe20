"""What is called in pieces, what is not, and how much work that is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.loops import Buffer, Const, For, Let, Load, Reduce, Stmt, Store, Var
from jitgraph.ir.dims import symbol
from jitgraph.schedule.memory import dense
from jitgraph.schedule.parallel import split_of
from jitgraph.schedule.work import work_of

F64 = np.dtype(np.float64)
N, M, I, J = (symbol(s) for s in ("n", "m", "_i", "_j"))


def matrix(name: str) -> Buffer:
    return Buffer(name, F64, (N, M), (8 * M, 8))


def row(name: str) -> Buffer:
    return Buffer(name, F64, (M,), (8,))


def over(name: str, size: Any, body: list[Stmt], **more: Any) -> For:
    return For(name, 0, size, body, **more)


X, Y, R = matrix("x"), matrix("y"), row("r")


def copy(to: tuple[Any, ...], source: tuple[Any, ...] = (I, J), a: Buffer = X, b: Buffer = Y) -> list[Stmt]:
    return [Load(Var("a", F64), a, source), Store(b, to, Var("a", F64))]


def nest(body: list[Stmt]) -> list[Stmt]:
    return [over("_i", N, [over("_j", M, body, role="vector")])]


def test_the_outermost_loop_that_may_be_split_is() -> None:
    found = split_of(nest(copy((I, J))))
    assert found is not None
    assert [s.symbol for s in found.loops] == ["_i"]
    assert (found.lower, found.upper, found.unit) == (0, N, 1)
    inner = split_of(nest([Load(Var("a", F64), X, (I, J)), Store(R, (J,), Var("a", F64))]))
    assert inner is not None
    assert [s.symbol for s in inner.loops] == ["_j"]
    assert inner.unit == 64


@pytest.mark.parametrize(
    "body",
    [
        nest(copy((I - 1, J - 1), b=X)),  # what another turn reads
        nest(copy((0, 0))),  # one element from all turns
        nest([Store(Buffer("z", F64, (N * M,), (8,)), (I * 3 + J,), Const(0.0, F64))]),  # rows that run into each other
        nest(copy((N - I - 1, J + 1), b=X)),
        [over("_i", N, [Store(Buffer("z", F64, (N,), (0,)), (I,), Const(0.0, F64))])],  # all elements at one place
        [over("_i", N, [Load(Var("a", F64), R, (I,)), Store(R, (I + 1,), Var("a", F64))])],
    ],
)
def test_what_depends_on_another_turn_is_not(body: list[Stmt]) -> None:
    assert split_of(body) is None


def test_several_nests_over_one_axis() -> None:
    """A sum over rows: the axis that stays is the inner one of the second nest."""
    add: list[Stmt] = [
        Load(Var("a", F64), R, (J,)), Load(Var("b", F64), X, (I, J)),
        Let(Var("c", F64), "add", (Var("a", F64), Var("b", F64))), Store(R, (J,), Var("c", F64)),
    ]  # fmt: skip
    body: list[Stmt] = [over("_j", M, [Store(R, (J,), Const(0.0, F64))], role="vector"), *nest(add)]
    found = split_of(body)
    assert found is not None
    assert [s.symbol for s in found.loops] == ["_j", "_j"]
    assert (found.lower, found.upper) == (0, M)


def test_few_turns_are_split_only_if_nothing_else_can_be() -> None:
    three = Buffer("x", F64, (3, M), (8 * M, 8))
    found = split_of([over("_i", 3, [over("_j", M, copy((I, J), a=three, b=Buffer("y", F64, (3, M), (8 * M, 8))))])])
    assert found is not None
    assert found.upper == M
    only = split_of([over("_i", 3, [Store(Buffer("z", F64, (3,), (8,)), (I,), Const(0.0, F64))])])
    assert only is not None
    assert only.upper == 3


def test_gapless_axes_in_any_order_are_dense() -> None:
    assert dense(Buffer("x", F64, (N, M, 4), (8, 8 * 4 * N, 8 * N)))
    assert dense(Buffer("x", F64, (N, 1), (8, 123)))
    assert not dense(Buffer("x", F64, (N, M), (16 * M, 8)))
    assert not dense(Buffer("x", F64, (N, M), (0, 8)))


def test_work_is_a_size() -> None:
    assert work_of(nest(copy((I, J)))) == 200 * N * M
    value = Var("a", F64)
    rows: list[Stmt] = [over("_i", N, [Reduce("_j", I, [Load(value, X, (I, J))], [])])]
    assert str(work_of(rows)) == "50*n*n - 50*n"  # half of a square


def loops(f: Callable[..., Any], *args: Any) -> str:
    return jg.jit(f).inspect_ir(*args, stage="loops")


def accumulate(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total = total * 0.5 + x[i, 0]
    return total


def rows_apart(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * 2


def over_time(x: Any) -> Any:
    for _ in range(100):
        x[1:-1] = x[2:] + x[:-2]
    return x


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: x + 1, 1),
        (lambda x: x.sum(), 1),
        (lambda x: (x.argmax(), x.max()), 2),
        (lambda x: (x > 0).any(), 0),
        (lambda x: np.cumsum(x), 0),
        (accumulate, 0),
    ],
)
def test_programs(function: Callable[..., Any], count: int) -> None:
    text = loops(function, np.ones((9, 8)))
    assert len(re.findall("in pieces of", text)) == count, text


def test_loops_of_the_users() -> None:
    text = loops(rows_apart, np.ones((9, 8)), np.ones((9, 8)))
    assert re.search(r"call part\S+\(x, out; .* 0, \w+\) in pieces of", text), text
    text = loops(over_time, np.ones((9, 8)))
    assert re.search(r"for \w+ in range\(0, 100\) \{[^}]*in pieces of", text), text


def test_small_constant_work_is_left_alone() -> None:
    def fill() -> Any:
        return np.zeros(20) + 1

    assert "in pieces" not in loops(fill)


def test_pieces_are_cut_at_the_nodes_of_the_tree() -> None:
    text = loops(lambda x: x.sum(), np.ones(9))
    assert re.search(r"cmp ge \w+, 65536", text)
    assert "in pieces of 1, 4 a thread, work 160*n" in text
    for level in (16, 8, 4, 2, 1):
        assert f"in range(0, {level}) {{" in text


def test_stretches_of_rows_are_as_long_as_can_be() -> None:
    """A sum over rows is split across them: each piece goes through all rows, so there is one a thread."""
    assert "in pieces of 64, 1 a thread," in loops(lambda x: x.sum(axis=0), np.ones((9, 8)))
    assert "in pieces of 1, 4 a thread," in loops(lambda x: x.sum(axis=1), np.ones((9, 8)))
    assert "in pieces of 64, 4 a thread," in loops(lambda x: x + 1, np.ones(8))
