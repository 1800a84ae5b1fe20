"""Vector loops that begin inside an aligned vector: every start, lengths around the bound, and nothing written beside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import target
from jitgraph.codegen.llvm_vector import ALIGNED_FROM


def doubled(x: np.ndarray, out: np.ndarray) -> None:
    out[:] = x + x


def neighbours(x: np.ndarray, out: np.ndarray) -> None:
    """Several vectors side by side a turn."""
    out[1:-1] = x[:-2] + x[1:-1] + x[2:]


def large(x: np.ndarray, out: np.ndarray) -> None:
    """So many statements that all vectors are under a mask."""
    for _ in range(9):
        x = x * x + x - (x + 1) * (x - 2) + x * 3
    out[:] = x


def in_place(x: np.ndarray, out: np.ndarray) -> None:
    """The index beside the elements: lanes in front of the first one have numbers, too."""
    out += x * np.arange(len(x)).astype(x.dtype)


def reversed_input(x: np.ndarray, out: np.ndarray) -> None:
    out[:] = x[::-1] - out


def of_two_sizes(x: np.ndarray, out: np.ndarray) -> None:
    out[:] = np.where(x > 2, x, out)


def far_neighbours(x: np.ndarray, out: np.ndarray) -> None:
    out[2:-3] = x[4:-1] + x[:-5] - x[1:-4] + x[2:-3] - x[5:]


FUNCTIONS = [far_neighbours, doubled, neighbours, large, in_place, reversed_input, of_two_sizes]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int8])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_start(function: Callable[..., None], dtype: type) -> None:
    jitted = jg.jit(function)
    size = np.dtype(dtype).itemsize
    lanes = target.host().lanes(size)
    numbers = np.random.default_rng(3)
    lengths = {ALIGNED_FROM * lanes + d for d in (-1, 0, 1, lanes - 1, 5 * lanes + 3)} | {ALIGNED_FROM * lanes // 2 + 3}
    for length in sorted(lengths):
        for start in range(0, 64 // size, max(1, 8 // size)):
            memory = numbers.integers(0, 4, length + 64 // size * 3).astype(dtype)
            others = numbers.integers(0, 4, len(memory)).astype(dtype)
            at = -memory.ctypes.data % 64 // size + start
            wanted, found = memory.copy(), memory
            with np.errstate(over="ignore"):
                function(others[3 : 3 + length], wanted[at : at + length])
            jitted(others[3 : 3 + length], found[at : at + length])
            assert wanted.tobytes() == found.tobytes(), (length, start)


def test_elements_that_are_not_aligned() -> None:
    jitted = jg.jit(doubled)
    for start in (1, 4, 9, 60):
        memory = np.zeros(8 * 600, np.uint8)
        out = memory[start : start + 8 * 500].view(np.float64)
        x = np.random.default_rng(start).uniform(-1, 1, 500)
        jitted(x, out)
        assert np.array_equal(out, x + x)
        assert not memory[:start].any()
        assert not memory[start + 8 * 500 :].any()


def test_rows_of_a_nest_begin_at_their_own_places() -> None:
    def rows(a: np.ndarray, out: np.ndarray) -> None:
        for _ in range(2):
            out[1:-1, 1:-1] = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
            a[1:-1, 1:-1] = out[1:-1, 1:-1]

    jitted = jg.jit(rows)
    for columns in (150, 151, 152, 163, 300):
        first = np.random.default_rng(columns).uniform(-1, 1, (11, columns))
        a, b = first.copy(), np.zeros_like(first)
        rows(a, b)
        other, out = first.copy(), np.zeros_like(first)
        jitted(other, out)
        assert np.array_equal(a, other)
        assert np.array_equal(b, out)


def test_a_long_loop_has_a_head_and_a_short_one_none() -> None:
    def known(x: np.ndarray) -> np.ndarray:
        return x[:40] * 2.0

    x = np.zeros(600)
    assert "vector.long" in jg.jit(doubled).inspect_llvm(x, x.copy())
    assert "vector.long" not in jg.jit(known).inspect_llvm(np.zeros(40))


def test_neighbours_come_from_registers() -> None:
    """Six loads of vectors for each three of four vectors side by side, where a register can be shuffled as a whole."""
    if not target.host().has_avx512:
        pytest.skip("no shuffles across registers")
    x = np.zeros(600)
    text = jg.jit(neighbours).inspect_llvm(x, x.copy())
    main = max(text.split("vector.loop")[1:], key=lambda part: part.count("shufflevector")).split("br i1")[0]
    assert main.count("load <8 x double>") == 6
    assert "load <32 x double>" not in main
