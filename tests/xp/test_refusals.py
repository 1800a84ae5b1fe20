"""What a ufunc refuses first: dtypes, that of `out` among them, before shapes; results copied back into `out`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


def into(x: Any, y: Any, o: Any) -> Any:
    np.add(x, y, out=o)
    return np.minimum(x, y, out=o)


def positional(x: Any, y: Any, o: Any) -> Any:
    return np.true_divide(x, y, o)


def without(x: Any, y: Any, o: Any) -> Any:
    return np.arctan2(x, y), x & y


def unary(x: Any, y: Any, o: Any) -> Any:
    return np.sqrt(x, out=o)


def in_dtype(x: Any, y: Any, o: Any) -> Any:
    return np.add(x, y, out=o, dtype=np.float32)


def safely(x: Any, y: Any, o: Any) -> Any:
    return np.add(x, y, out=o, casting="safe")


def under_mask(x: Any, y: Any, o: Any) -> Any:
    return np.add(x, y, out=o, where=y)


def pair(x: Any, y: Any, o: Any) -> Any:
    return np.divmod(x, y, out=(o, o.copy()))


def clipped(x: Any, y: Any, o: Any) -> Any:
    return np.clip(x, y, y, out=o)


def multiplied(x: Any, y: Any, o: Any) -> Any:
    return np.matmul(x, y, out=o)


def outer(x: Any, y: Any, o: Any) -> Any:
    return np.multiply.outer(x, y, out=o)


def added_in_place(x: Any, y: Any, o: Any) -> Any:
    o += x
    return o


def power_in_place(x: Any, y: Any, o: Any) -> Any:
    o **= x
    return o


def shift_in_place(x: Any, y: Any, o: Any) -> Any:
    o <<= x
    return o


def taken(x: Any, y: Any, o: Any) -> Any:
    return np.take(x, [0, 1], axis=0, out=o)


def squeezed(x: Any, y: Any, o: Any) -> Any:
    return x.compress([True, True], axis=0, out=o)


def position(x: Any, y: Any, o: Any) -> Any:
    return np.argmax(x, axis=0, out=o)


def dotted(x: Any, y: Any, o: Any) -> Any:
    return np.dot(x, x.T, out=o)


CALLS = [
    into, positional, without, unary, in_dtype, safely, under_mask, pair, clipped, multiplied, outer, added_in_place,
    power_in_place, shift_in_place, taken, squeezed, position, dotted,
]  # fmt: skip
XS = [np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3)[:, :2]]
YS = [np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(4.0), np.arange(3) + 1j]
OUTS = [
    np.zeros((2, 3)), np.zeros((2, 3), np.int16), np.zeros((4, 5), np.int8), np.zeros((2, 2), np.float32),
    np.zeros(3, bool), np.zeros((1, 3), np.uint8),
]  # fmt: skip


def outcome(f: Callable[..., Any], x: Any, y: Any, o: Any) -> Any:
    """The kind of error, or the values; and what `o` holds then."""
    try:
        with np.errstate(all="ignore"):
            made = f(x, y, o)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError
    return repr([np.asarray(v).tolist() for v in (made if isinstance(made, tuple) else (made,))])


@pytest.mark.parametrize("f", CALLS)
def test_the_first_error_is_numpys(f: Callable[..., Any]) -> None:
    jitted = jg.jit(f, numerics="numpy")
    kinds = set()
    for x, y, o in itertools.product(XS, YS, OUTS):
        given, same = o.copy(), o.copy()
        expected = outcome(f, x, y, given)
        assert outcome(jitted, x, y, same) == expected, (x.dtype, x.shape, y.dtype, y.shape, o.dtype, o.shape)
        np.testing.assert_array_equal(same, given)
        kinds.add(expected if isinstance(expected, type) else None)
    assert kinds & {TypeError, ValueError}


@pytest.mark.parametrize("f", [into, in_dtype, clipped, added_in_place])
def test_eager_tensors_refuse_in_the_same_order(f: Callable[..., Any]) -> None:
    for x, y, o in itertools.product(XS, YS, OUTS):
        tensors = [jg.Tensor(v.copy()) for v in (x, y, o)]
        assert outcome(f, *tensors) == outcome(f, x, y, o.copy())


def test_the_texts_are_numpys() -> None:
    x, o = np.ones((2, 3)), np.zeros(4, np.int8)
    for f in (lambda x, o: np.add(x, x, out=o), lambda x, o: x[0] + x[:, :2], lambda x, o: o.__iadd__(x)):
        with pytest.raises((TypeError, ValueError)) as expected:
            f(x, o)
        with pytest.raises((TypeError, ValueError)) as found:
            jg.jit(f)(x, o)
        if issubclass(expected.type, TypeError):
            assert str(found.value).startswith(str(expected.value))


SCALAR_OUTS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, s: np.maximum(x, True, out=s),
    lambda x, s: np.add(x, x, s),
    lambda x, s: np.add(x, x, out=(s,)),
    lambda x, s: np.modf(x, out=(s, None)),
    lambda x, s: np.sum(x, out=s),
    lambda x, s: x.argmax(out=s),
    lambda x, s: x.cumsum(out=s),
    lambda x, s: x.compress([True], out=s),
    lambda x, s: np.add.reduce(x, out=s),
    lambda x, s: np.add.accumulate(x, out=s),
    lambda x, s: np.add.outer(x, x, out=s),
    lambda x, s: np.concatenate([x, x], out=s),
    lambda x, s: np.matmul(x, x, out=s),
    lambda x, s: np.clip(x, 0, 1, out=s),
    lambda x, s: np.percentile(x, 50, out=s),
)


@pytest.mark.parametrize("number", range(len(SCALAR_OUTS)))
@pytest.mark.parametrize("scalar", ["number", "item", "sum"])
def test_a_scalar_is_no_output(number: int, scalar: str) -> None:
    body = SCALAR_OUTS[number]

    def program(x: Any, items: Any) -> Any:
        s = {"number": 2.0, "item": items[0], "sum": items[0] + x.sum()}[scalar]
        return body(x, s)

    x, items = np.ones((2, 2)), np.ones(2)
    with pytest.raises(TypeError):
        program(x, items)
    with pytest.raises(TypeError, match=r"array|Array"):
        jg.jit(program)(x, items)


def test_an_output_that_is_a_scalar_on_one_path() -> None:
    def program(x: Any) -> Any:
        v = np.array(1.0)
        for _ in range(len(x)):
            np.maximum(v, 2, out=v)
            if x[0] > 0:
                v = v + 1
        return v

    compiled = jg.jit(program)
    for x in (np.zeros(3), np.ones(1), np.zeros(0)):
        expected, found = program(x), compiled(x)
        assert type(expected) is type(found) and expected == found
    with pytest.raises(TypeError, match="return arrays must be of ArrayType"):
        compiled(np.ones(2))


@pytest.mark.parametrize("dtype", ["f8", "c8", "i4", "u1"])
@pytest.mark.parametrize("value", [np.ones((2, 3)), np.ones(1), np.ones(0), [1, 2]], ids=str)
def test_a_sequence_is_no_element(dtype: str, value: Any) -> None:
    def element(x: Any) -> None:
        x[0] = value if isinstance(value, list) else value + 0

    def fill(x: Any) -> None:
        x.fill(value)

    for program in (element, fill):
        with pytest.raises((TypeError, ValueError)) as expected:
            program(np.zeros(3, dtype))
        with pytest.raises(expected.type) as found:
            jg.jit(program)(np.zeros(3, dtype))
        assert str(found.value).startswith(str(expected.value))


DTYPES = ["?", "u1", "f8", "c8"]
ODD = [
    "1", "a", "1.5", b"1", None, [None, 1], ["1", "2"], [1, [2, 3]], [], [[1]], (1,), range(2), {}, {1: 2}, 2**70, [2**70], 1j, [1j, 1],
    np.nan, [np.nan, 1], 300, -1, np.str_("1"), slice(None), int,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_no_array_holds_is_stored_as_numpy_does(dtype: str) -> None:
    def element(x: Any, k: int, value: Any) -> Any:
        x[k] = value

    def part(x: Any, k: int, value: Any) -> Any:
        x[:2] = value

    def chosen(x: Any, k: int, value: Any) -> Any:
        x[[0, 1]] = value

    def masked(x: Any, k: int, value: Any) -> Any:
        x[x > 5] = value

    for program in (element, part, chosen, masked):
        for value in ODD:

            def run(f: Callable[..., Any], value: Any = value, program: Any = program) -> tuple[Any, Any]:
                x = np.ones(3, dtype)
                try:
                    with np.errstate(all="ignore"):
                        f(lambda x, k: program(x, k, value))(x, 1)
                except (TypeError, ValueError, OverflowError) as error:
                    bases = (TypeError, ValueError, OverflowError)
                    return next(b for b in bases if isinstance(error, b)), x.tolist()
                return None, x.tolist()

            assert str(run(lambda f: f)) == str(run(jg.jit)), (program.__name__, value)


def mode_first(x: Any, o: Any, k: int) -> Any:
    return np.take(x, [k, "a"], out=o, mode="bad")


def out_before_indices(x: Any, o: Any, k: int) -> Any:
    return np.take(x, [k, 9], out=o)


def out_before_what_is_chosen(x: Any, o: Any, k: int) -> Any:
    return np.compress([1] * 9, x, out=o)


def empty_before_values(x: Any, o: Any, k: int) -> Any:
    np.put(x[:0], [k], "a")


def mode_of_nothing(x: Any, o: Any, k: int) -> Any:
    np.put(x, [k], [], mode="bad")


def by_number(x: Any, o: Any, k: int) -> Any:
    return np.take(x, [9, -9], mode=1), np.take(x, [9, -9], mode=0), np.take(x, [k], mode=None)


def no_fewer_than_nothing(x: Any, o: Any, k: int) -> Any:
    return np.repeat(x[:0], k - 2), np.repeat(x[1:], k + 1 - x.shape[0])


def fewer_than_nothing(x: Any, o: Any, k: int) -> Any:
    return np.repeat(x, k - 2)


def a_size_below_zero(x: Any, o: Any, k: int) -> Any:
    x[0] = 5
    return x.reshape(k - 3, 2)


def index_before_value(x: Any, o: Any, k: int) -> Any:
    x.astype(np.int64)[k + 9] = x[0] * np.nan


SELECTING = [
    mode_first, out_before_indices, out_before_what_is_chosen, empty_before_values, mode_of_nothing, by_number, no_fewer_than_nothing,
    fewer_than_nothing, a_size_below_zero, index_before_value,
]  # fmt: skip


@pytest.mark.parametrize("f", SELECTING, ids=lambda f: f.__name__)
def test_what_is_refused_first_of_indices_modes_and_sizes(f: Callable[..., Any]) -> None:
    compiled = jg.jit(f)
    for size in (1, 2, 4):
        results = []
        for g in (f, compiled):
            x, o = np.arange(1.0, size + 1), np.zeros(3)
            try:
                results.append((str(g(x, o, 1)), str(x), str(o)))
            except (TypeError, ValueError, IndexError) as error:
                kind = next(k for k in (TypeError, ValueError, IndexError) if isinstance(error, k))
                results.append((str(kind), str(x), str(o)))
        assert results[0] == results[1]


def added(x: Any, z: Any, k: int) -> None:
    np.add(x[:k], x, out=z)


def without_loop(x: Any, z: Any, k: int) -> Any:
    return x[:k] & z


def part_in_place(x: Any, z: Any, k: int) -> None:
    z += x[:k]


def in_a_branch(x: Any, z: Any, k: int) -> None:
    if x.sum() > 3:
        np.matmul(x[:k], x, out=z)


@pytest.mark.parametrize("f", [added, without_loop, part_in_place, in_a_branch], ids=lambda f: f.__name__)
def test_dtypes_are_refused_before_sizes_that_only_the_run_knows(f: Callable[..., Any]) -> None:
    compiled = jg.jit(f)
    for k in (3, 2, 1, 3):
        for g in (f, compiled):
            with pytest.raises(TypeError):
                g(np.arange(1.0, 4), np.zeros(3, int), k)
