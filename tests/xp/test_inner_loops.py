"""Complex products, squares and absolute values have the bits of the inner loop that NumPy takes, whatever it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.ir.printer import print_graph
from tests.fuzz.arguments import Argument
from tests.fuzz.levels import check
from tests.fuzz.programs import Fuzzed
from tests.xp.harness import trace

Shape = tuple[int, ...]
Make = Callable[[Shape], Any]


def numbers(shape: Shape, dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def laid_out(layout: str, shape: Shape, dtype: str, seed: int) -> Any:
    """An array of random numbers that lies in memory as `layout` says."""
    x = numbers(shape, dtype, seed)
    if layout == "C":
        return x
    if layout == "F":
        return x.copy("F")
    if layout == "swapped":
        return x.astype(x.dtype.newbyteorder(">"))
    if layout == "strided":
        wide = np.zeros([2 * d for d in shape], dtype)
        wide[tuple([slice(None, None, 2)] * len(shape))] = x
        return wide[tuple([slice(None, None, 2)] * len(shape))]
    if layout == "part":
        wide = np.zeros((*shape[:-1], shape[-1] + 3), dtype)
        wide[..., 1:-2] = x
        return wide[..., 1:-2]
    if layout == "backwards":
        return x[tuple([slice(None, None, -1)] * len(shape))]
    if layout == "rows backwards":
        return x[::-1]
    assert layout == "columns backwards"
    return x[..., ::-1]


def compare(function: Callable[..., Any], jitted: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    wanted, found = make(), make()
    results = function(*wanted), jitted(*found)
    for right, made in zip((results[0], *wanted), (results[1], *found), strict=True):
        if right is not None:
            assert right.dtype == made.dtype
            assert right.tobytes() == made.tobytes()


def in_place(x: Any, y: Any) -> None:
    x *= y


def by_number(x: Any, y: Any) -> None:
    x *= 1.3 + 0.7j


def squared(x: Any, y: Any) -> None:
    x **= 2


def square_into(x: Any, y: Any) -> None:
    np.square(x, out=y)


def into(x: Any, y: Any) -> None:
    np.multiply(x, x, out=y)


def masked(x: Any, y: Any) -> None:
    np.multiply(x, y, out=x, where=y.real > 0)


def size_into(x: Any, y: Any) -> None:
    np.abs(x, out=y.real)


def reversed_again(x: Any, y: Any) -> Any:
    return x[::-1] * y[::-1]


def turned_in_place(x: Any, y: Any) -> None:
    x[..., ::-1] *= y


def over_itself(x: Any, y: Any) -> None:
    np.multiply(x[..., ::-1], y, out=x)


def ahead(x: Any, y: Any) -> None:
    x[..., :-1] *= x[..., 1:]


def behind(x: Any, y: Any) -> None:
    x[..., 1:] *= x[..., :-1]


def between(x: Any, y: Any) -> None:
    half = x.shape[-1] // 2
    x[..., : 2 * half : 2] *= x[..., 1 : 2 * half : 2]


def halves(x: Any, y: Any) -> None:
    half = x.shape[0] // 2
    x[:half] *= x[half : 2 * half]


def column(x: Any, y: Any) -> None:
    x[..., 0] *= x[..., -1]


LAYOUTS = {
    in_place: [("C", "columns backwards"), ("backwards", "part"), ("swapped", "backwards"), ("backwards", "C")],
    by_number: [("backwards", "C"), ("columns backwards", "C")],
    squared: [("strided", "C"), ("part", "C"), ("rows backwards", "C")],
    square_into: [("strided", "strided"), ("C", "backwards"), ("columns backwards", "part")],
    into: [("F", "backwards"), ("columns backwards", "strided")],
    masked: [("rows backwards", "columns backwards"), ("C", "part")],
    size_into: [("C", "backwards"), ("columns backwards", "C")],
    reversed_again: [("columns backwards", "strided"), ("rows backwards", "F"), ("swapped", "backwards")],
    turned_in_place: [("backwards", "strided"), ("C", "rows backwards")],
    over_itself: [("rows backwards", "strided"), ("C", "part")],
    ahead: [("C", "C"), ("part", "C")],
    behind: [("C", "C"), ("part", "C")],
    between: [("C", "C"), ("rows backwards", "C")],
    halves: [("C", "C"), ("columns backwards", "C")],
    column: [("C", "C"), ("F", "C")],
}
CASES = [(f, *pair) for f, pairs in LAYOUTS.items() for pair in pairs]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize(("function", "left", "right"), CASES)
def test_in_place_and_into_arrays(function: Callable[..., Any], left: str, right: str, dtype: str) -> None:
    jitted = jg.jit(function)
    for shape in ((2, 3), (3, 4), (40, 2), (9,)):
        compare(
            function, jitted, lambda shape=shape: (laid_out(left, shape, dtype, 1), laid_out(right, shape, dtype, 2))
        )


def test_long_rows_are_not_buffered() -> None:
    def turned(x: Any, y: Any) -> Any:
        return x[:, ::-1] * y

    def size(x: Any, y: Any) -> Any:
        return np.abs(x[:, ::-1])

    for function in (turned, size):
        jitted = jg.jit(function)
        for rows, columns in itertools.product((2, 3, 5), (7, 4000, 9000)):
            compare(
                function,
                jitted,
                lambda shape=(rows, columns): (numbers(shape, "c8", 1), laid_out("part", shape, "c8", 2)),
            )


@pytest.mark.parametrize("layout", ["C", "backwards", "swapped", "strided"])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 3), (3, 1)])
def test_few_elements(layout: str, shape: Shape) -> None:
    def program(x: Any, y: Any) -> Any:
        made = x * y
        x *= y.reshape(-1)[0]
        return made

    jitted = jg.jit(program)
    for seed in range(12):
        compare(
            program,
            jitted,
            lambda seed=seed: (laid_out(layout, shape, "c8", seed), laid_out("part", shape, "c8", seed + 50)),
        )


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_products_by_index(dtype: str) -> None:
    def by_array(x: Any, y: Any) -> None:
        np.multiply.at(x, np.array([2, 0, 2]), y[:3])

    def by_slice(x: Any, y: Any) -> None:
        np.multiply.at(x, slice(None, None, -1), y)

    def by_mask(x: Any, y: Any) -> None:
        np.square.at(x, y.real > 0)

    for function in (by_array, by_slice, by_mask):
        jitted = jg.jit(function)
        for size in (3, 8):
            compare(function, jitted, lambda size=size: (numbers((size,), dtype, 1), numbers((size,), dtype, 2)))


def test_a_slice_of_one_element_of_swapped_numbers() -> None:
    def program(x: Any, y: Any) -> None:
        if x.shape[0] > 2:
            x[3:, -1:3:2] *= np.sum(np.max(y))

    jitted = jg.jit(program)
    for seed in range(20):
        compare(
            program,
            jitted,
            lambda seed=seed: (numbers((2, 4), ">c8", seed)[::-1, ::-1].T, numbers((4,), "c8", seed + 50)),
        )


@pytest.mark.parametrize("name", ["tan", "log2", "arcsinh"])
def test_functions_of_numpys_into_reversed_arrays(name: str) -> None:
    function = getattr(np, name)

    def itself(x: Any, y: Any) -> None:
        function(x, out=x)

    def another(x: Any, y: Any) -> None:
        function(x, out=y)

    for program in (itself, another):
        jitted = jg.jit(program, numerics="numpy")
        for size in (9, 129):
            for step in (1, -1):
                compare(
                    program,
                    jitted,
                    lambda size=size, step=step: (
                        np.abs(numbers((size,), "c8", 1))[::step],
                        np.zeros(size, "f4")[::-1],
                    ),
                )


def test_plus_of_swapped_numbers_is_native() -> None:
    x = np.arange(6.0).astype(">f8").reshape(2, 3)
    made = jg.jit(lambda x: +x)(x)
    assert made.dtype == (+x).dtype == np.float64
    np.testing.assert_array_equal(made, x)


def test_ordinary_products_ask_for_nothing() -> None:
    def program(x: Any, y: Any) -> Any:
        x *= y
        y[1:] = x[1:] * y[:-1] + x[1:, ::-1]
        return x * y + abs(x) * x.sum() + x**2

    for dtype in ("c8", "c16"):
        traced = trace(program, numbers((3, 4), dtype, 1), numbers((3, 4), dtype, 2))
        text = print_graph(traced.graph)
        assert "plain_" not in text
        assert {str(g) for g in traced.graph.guards if g.relation != "=="} <= {"n0_0 >= 1", "n1_0 >= 1"}  # slices


def test_what_a_guard_lets_through() -> None:
    """How many rows there are decides whether NumPy's iterator fills its buffer with rows that lie backwards."""

    def program(x: Any, y: Any) -> Any:
        return x[:, ::-1] * y

    few, many = (trace(program, numbers((n, 4), "c8", 1), laid_out("part", (n, 4), "c8", 2)) for n in (2, 5))
    assert "plain_mul" in print_graph(few.graph)
    assert "plain_mul" not in print_graph(many.graph)
    assert any(g.relation in (">=", "<") for g in many.graph.guards)


def masked(x: Any, y: Any) -> None:
    m = x.real > 0
    x[m] *= y[m]
    x[m] **= 2


def masked_by_itself(x: Any, y: Any) -> None:
    m = x.real > 0
    x[m] *= x[m][:1]


def counted(x: Any, y: Any) -> None:
    n = int((x.real > 0).sum())
    x[:n] *= y[:n]


@pytest.mark.parametrize("program", [masked, masked_by_itself, counted])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_what_data_select_may_be_one_element(program: Callable[..., Any], dtype: str) -> None:
    """NumPy goes over a single element in place by its loop without vectors."""
    jitted = jg.jit(program)
    for size, seed in itertools.product((1, 2, 3), range(6)):
        compare(program, jitted, lambda n=size, k=seed: (numbers((n,), dtype, k), numbers((n,), dtype, k + 9)))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_an_array_without_axes_under_its_own_mask(dtype: str) -> None:
    def program(x: Any, y: Any) -> None:
        x[x.real < 9] *= y

    jitted = jg.jit(program)
    for seed in range(6):
        compare(program, jitted, lambda k=seed: tuple(np.array(numbers((), dtype, n)) for n in (k, k + 9)))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("size", [1, 5])
def test_one_element_of_an_array_that_lies_backwards(dtype: str, size: int) -> None:
    programs: list[Callable[..., Any]] = [
        lambda x, y: abs(x[:1][::-1]),
        lambda x, y: abs(x[::-1][:1]),
        lambda x, y: x[::-1][:1] * y[:1],
        lambda x, y: np.square(x[::2][:1], out=y[::2][:1]),
        lambda x, y: np.multiply(x[:1], y[:1], out=x[:1][::-1]),
        lambda x, y: np.multiply(y[:1], y[:1], out=x[: np.count_nonzero(x[:1])]),
    ]
    for program, layout in itertools.product(programs, ("C", "backwards", "strided")):
        jitted = jg.jit(program)
        for seed in range(3):
            compare(
                program,
                jitted,
                lambda way=layout, k=seed: (laid_out(way, (size,), dtype, k), numbers((size,), dtype, k + 9)),
            )


@pytest.mark.parametrize(
    "line",
    [
        "np.multiply(np.asarray(np.sum(a0)), a0[::-2], out=a0)",
        "np.multiply(a0[::-2], np.sum(a0), out=a0)",
        "np.square(a0[::-2], out=a0)",
        "np.abs(a0[::-2], out=a0.real)",
    ],
)
def test_one_reversed_element_that_the_output_repeats(line: str) -> None:
    """In the graph and the loops, too: their interpreters compute by NumPy, of operands that lie otherwise."""
    for seed in range(12):
        program = Fuzzed(seed, [Argument("array", "complex64", ("n",), seed=seed)], [line], [{"n": 2}], "a0")
        assert check(program) is None, line


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_squares_of_scalars_with_keywords(dtype: str) -> None:
    def f(x: Any) -> Any:
        z = x[0]
        return np.stack([np.square(z, casting="unsafe"), np.square(z, dtype=z.dtype), np.square(z, order="C")])

    jitted = jg.jit(f, numerics="numpy")
    for seed in range(8):
        x = numbers((3,), dtype, seed)
        assert jitted(x).tobytes() == f(x).tobytes()
