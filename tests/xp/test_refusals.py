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
