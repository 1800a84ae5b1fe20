"""`donate_argnames`: results in arrays that the caller gives away."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.pytree import flatten

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def _after_writes(x: Any, g: Any) -> Any:
    x = x - 0.1 * g
    return x, x[1:]


def _loop(x: Any, w: Any) -> Any:
    for _ in range(12):
        x = np.tanh(x @ w)
    return x


#: (function, arguments, results that are donated arrays).
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], list[bool]]] = [
    (lambda x: np.tanh(x) * 2, (normal(50, 40),), [True]),
    (lambda x, w: np.tanh(x) @ w, (normal(50, 50), normal(50, 50)), [True]),
    (lambda x, w: x @ w + x, (normal(50, 50), normal(50, 50)), [True]),
    (lambda x, w: (x @ w, x + 1), (normal(50, 50), normal(50, 50)), [False, True]),
    (lambda x, w: (x.sum(), x[::-1] + w), (normal(50, 50), normal(50, 50)), [False, True]),
    (lambda x: x, (normal(50, 50),), [True]),
    (lambda x: (x, x + 1), (normal(50, 50),), [True, False]),
    (lambda x: (x + 1, x + 2), (normal(50, 50),), [True, False]),
    (lambda x: np.cumsum(x), (normal(50),), [True]),
    (lambda x: x[::-1] * 2, (normal(50),), [True]),
    (lambda x: x + 1, (np.asfortranarray(normal(30, 20)),), [True]),
    (lambda x: x.astype(np.float32), (normal(50, 50),), [False]),
    (lambda x: x[1:] + 1, (normal(50, 50),), [False]),
    (lambda x: x.T @ x, (normal(50, 40),), [False]),
    (lambda x: x + 1, (normal(50, 50)[::2],), [False]),
    (lambda x: float(x.sum()) + x * 0, (normal(50, 50),), [True]),
    (_after_writes, (normal(100), normal(100)), [True, False]),
    (_loop, (normal(20, 20), normal(20, 20)), [True]),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_results_and_where_they_lie(case: int) -> None:
    f, args, same = CASES[case]
    wanted = flatten(f(*copy.deepcopy(args)))[0]
    jitted = jg.jit(f, donate_argnames="x")
    for _ in range(3):
        given = copy.copy(args[0]) if not args[0].flags.c_contiguous else args[0].copy()
        given = np.repeat(args[0], 2, axis=0)[::2] if not args[0].flags.forc else given
        found = flatten(jitted(given, *args[1:]))[0]
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
            assert type(a) is type(b)
            assert np.shape(a) == np.shape(b)
        assert [x is given for x in found] == same


def test_what_may_not_be_used_is_left_alone() -> None:
    f = jg.jit(lambda x, y: x + y, donate_argnames="x")
    x, y = normal(100), normal(100)
    wanted = x + y
    x.flags.writeable = False
    found = f(x, y)
    assert found is not x
    np.testing.assert_array_equal(found, wanted)
    x.flags.writeable = True
    whole = normal(101)
    for a, b in ((x, x), (x, x[:]), (whole[:-1], whole[1:]), (whole[1:], whole[:-1])):
        before = a.copy(), b.copy()
        found = f(a, b)
        np.testing.assert_array_equal(found, before[0] + before[1])
        assert not np.may_share_memory(found, a)
        np.testing.assert_array_equal(a, before[0])
    wanted = x + y
    assert f(x, y) is x
    np.testing.assert_array_equal(x, wanted)


def test_hidden_arguments_that_overlap() -> None:
    held = normal(100)

    def f(x: Any) -> Any:
        return held[::-1] + x

    jitted = jg.jit(f, donate_argnames="x")
    x = normal(100)
    wanted = held[::-1] + x
    assert jitted(x) is x
    np.testing.assert_array_equal(x, wanted)
    wanted = held[::-1] + held
    np.testing.assert_array_equal(jitted(held), wanted)


def test_sizes_that_differ_are_no_miss() -> None:
    f = jg.jit(lambda x, w: x @ w, donate_argnames="x")
    x = normal(10, 10)
    assert f(x, normal(10, 10)) is x
    x, w = normal(10, 10), normal(10, 4)
    np.testing.assert_allclose(f(x, w), x @ w)
    x = normal(8, 6)
    wanted = x @ (w := normal(6, 6))
    assert f(x, w) is x
    np.testing.assert_allclose(x, wanted)


def test_training_in_place() -> None:
    @jg.jit(donate_argnames=("params", "speed"))
    def step(params: Any, speed: Any, slopes: Any) -> Any:
        speed = {k: 0.9 * speed[k] + slopes[k] for k in speed}
        return {k: params[k] - 0.1 * speed[k] for k in params}, speed

    params, slopes = {"w": normal(30, 20), "b": normal(20)}, {"w": normal(30, 20), "b": normal(20)}
    speed = {k: np.zeros_like(v) for k, v in params.items()}
    mine, velocity = copy.deepcopy((params, speed))
    for _ in range(4):
        velocity = {k: 0.9 * velocity[k] + slopes[k] for k in velocity}
        mine = {k: mine[k] - 0.1 * velocity[k] for k in mine}
        made, moved = step(params, speed, slopes)
        assert all(made[k] is params[k] and moved[k] is speed[k] for k in params)
        params, speed = made, moved
    for k in params:
        np.testing.assert_allclose(params[k], mine[k], rtol=1e-13)
    report = step.memory(params, speed, slopes)
    assert report.peak == 0
    assert report.result_bytes == 0


def test_an_error_leaves_the_argument_as_it_was() -> None:
    @jg.jit(donate_argnames="x")
    def f(x: Any, i: Any) -> Any:
        y = np.tanh(x @ x) * 2
        if i > 3:
            raise ValueError("too large")
        return y

    x = normal(10, 10)
    before = x.copy()
    with pytest.raises(ValueError, match="too large"):
        f(x, 5)
    np.testing.assert_array_equal(x, before)
    assert f(x, 1) is x


def test_an_overflow_that_python_takes_over() -> None:
    @jg.jit(donate_argnames="x")
    def f(x: Any, n: Any) -> Any:
        y = x * 2
        return y, n * n

    x = normal(10)
    before = x.copy()
    found, square = f(x, 3)
    assert found is x
    x[:] = before
    found, square = f(x, 2**40)
    np.testing.assert_array_equal(found, before * 2)
    assert square == 2**80


def test_gradients_give_nothing_away() -> None:
    f = jg.jit(lambda x: (x * x).sum(), donate_argnames="x")
    x = normal(10)
    before = x.copy()
    np.testing.assert_allclose(jg.grad(f)(x), 2 * x)
    np.testing.assert_array_equal(x, before)


def test_inside_another_function_nothing_is_given_away() -> None:
    inner = jg.jit(lambda x: x + 1, donate_argnames="x")
    outer = jg.jit(lambda x: inner(x) * x)
    x = normal(10)
    before = x.copy()
    np.testing.assert_allclose(outer(x), (before + 1) * before)
    np.testing.assert_array_equal(x, before)


def test_wrong_names() -> None:
    with pytest.raises(ValueError, match="donate_argnames: 'q' is no parameter of f"):

        @jg.jit(donate_argnames="q")
        def f(x: Any) -> Any:
            return x

    with pytest.raises(ValueError, match="donate_argnames: 'x' is static, so it is no array"):
        jg.jit(lambda x: x, donate_argnames="x", static_argnames="x")
