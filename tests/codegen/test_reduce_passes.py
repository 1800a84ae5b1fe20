"""Reductions in several orders: which statements each pass over the elements has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen import loops_verify
from jitgraph.codegen.loops_verify import verify
from jitgraph.codegen.reduce_passes import Pass, passes_of
from jitgraph.config import config
from jitgraph.errors import VerifyError
from tests.loop_programs import F32, L, array, i, let, n, program, var

C64 = np.dtype(np.complex64)
X, Y = array("x", C64, n), array("y", C64, n)
BODY: list[L.Stmt] = [
    L.Load(var("re", F32), X, (i,), var("im", F32)),
    let("a", "mul", var("re", F32), var("re", F32), dtype=F32),
    let("b", "neg", var("im", F32), dtype=F32),
    L.Store(Y, (i,), var("re", F32), var("b", F32)),
]


def parts(*orders: tuple[str, int]) -> list[L.Part]:
    return [
        L.Part(var(f"r{k}", F32), "sum", order, var("a", F32), width=width) for k, (order, width) in enumerate(orders)
    ]


def names(body: list[L.Stmt]) -> list[str]:
    return [s.var.name if isinstance(s, (L.Let, L.Load)) else "store" for s in body]


def test_the_last_pass_stores_both_parts_of_a_complex_number() -> None:
    """`b` is read by the imaginary part of the store alone, `im` by `b`."""
    first, last = passes_of(L.Reduce("i", n, BODY, parts(("pairwise", 8), ("pairwise", 4))))
    assert (names(first.body), names(last.body)) == (["re", "a"], ["re", "a", "b", "store"])


def test_a_load_whose_imaginary_part_alone_is_read() -> None:
    body: list[L.Stmt] = [
        BODY[0],
        let("a", "neg", var("im", F32), dtype=F32),
        let("c", "neg", var("re", F32), dtype=F32),
    ]
    for one in passes_of(L.Reduce("i", n, body, parts(("pairwise", 8), ("serial", 8)))):
        assert names(one.body) == ["re", "a"]


def test_parts_of_one_order_share_a_pass_and_free_ones_go_along() -> None:
    (shared,) = passes_of(L.Reduce("i", n, BODY, parts(("pairwise", 8), ("pairwise", 8))))
    assert len(shared.parts) == 2
    assert shared.body is BODY
    (along,) = passes_of(L.Reduce("i", n, BODY, parts(("pairwise", 8), ("free", 8))))
    assert (len(along.parts), len(along.along), along.body) == (1, 1, BODY)


@pytest.mark.parametrize("lost", ["b", "store"])
def test_the_verifier_looks_at_each_pass(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reduce = L.Reduce("i", n, BODY, parts(("pairwise", 8), ("pairwise", 4)))
    p = program([reduce], [X, Y], dims=[("n", 0, 0)])
    verify(p)

    def broken(s: L.Reduce) -> list[Pass]:
        return [Pass(one.parts, one.along, [x for x in one.body if names([x]) != [lost]]) for one in passes_of(s)]

    monkeypatch.setattr(loops_verify, "passes_of", broken)
    what = {"b": r"b is not assigned here \(invariant 1\)", "store": r"no pass has all stores \(invariant 8\)"}[lost]
    with pytest.raises(VerifyError, match=what):
        verify(p)


def deviation_and_sum(x: np.ndarray, y: np.ndarray) -> Any:
    return np.std(x), x / x[:], y * 7 + np.sum(y)


def sums_of_both_kinds(x: np.ndarray, y: np.ndarray) -> Any:
    return np.sum(np.abs(x)), np.sum(x * y), x.conj() * y, np.max(x.imag)


def real_and_complex(x: np.ndarray, y: np.ndarray) -> Any:
    return np.mean(x.real), np.mean(y), x - y, np.prod(x.imag)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("f", [deviation_and_sum, sums_of_both_kinds, real_and_complex])
def test_complex_arrays_are_stored_beside_sums_in_two_orders(f: Any, dtype: str) -> None:
    with config.override(cache=False, verify=True):
        jitted = jg.jit(f)
        for size in (2, 3, 9, 40, 133):
            rng = np.random.default_rng(size)
            x, y = ((rng.normal(size=size) + 1j * rng.normal(size=size)).astype(dtype) for _ in range(2))
            for a, b in zip(f(x, y), jitted(x, y), strict=True):
                np.testing.assert_array_equal(a, b, strict=True)
