"""`np.errstate` and `np.seterr` around calls: errors that somebody asks for are raised, also where native code serves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errstate
from jitgraph.config import config
from jitgraph.native import layout

X = np.arange(4.0)
#: Of each kind: what it is called, a function that meets it, its argument.
KINDS: dict[str, tuple[Callable[..., Any], Any]] = {
    "divide": (lambda x: 1 / x, X),
    "over": (lambda x: np.exp(x * 1000), X),
    "under": (lambda x: x * 1e-300, np.full(3, 1e-300)),
    "invalid": (lambda x: np.sqrt(x - 2), X),
}


def native(f: Any) -> int:
    """Calls that native code has served."""
    calls = f._dispatcher._native
    return calls.hits if calls is not None else 0


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def warmed(kind: str) -> tuple[Any, Any]:
    f, x = KINDS[kind]
    made = jg.jit(f)
    for _ in range(3):
        with np.errstate(all="ignore"):
            assert np.array_equal(made(x), f(x), equal_nan=True)
    return made, x


def test_errors_are_raised(kind: str) -> None:
    made, x = warmed(kind)
    for _ in range(3):
        with np.errstate(all="ignore"), np.errstate(**{kind: "raise"}), pytest.raises(FloatingPointError):
            made(x)
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            made(x)
    with np.errstate(all="ignore"):
        made(x)


def test_from_the_first_call_on(kind: str) -> None:
    f, x = KINDS[kind]
    made = jg.jit(f)
    for _ in range(3):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            made(x)
    assert made.cache_info().entries == 0
    harmless = np.full(3, 0.01 if kind == "over" else 2.0)
    with np.errstate(all="raise"):
        assert np.array_equal(made(harmless), f(harmless))


def test_others_kinds_are_not_raised(kind: str) -> None:
    made, x = warmed(kind)
    for other in KINDS:
        if other != kind:
            with np.errstate(all="ignore"), np.errstate(**{other: "raise"}):
                made(x)


def test_functions_of_the_users_are_called(kind: str) -> None:
    made, x = warmed(kind)
    seen: list[str] = []
    with np.errstate(all="ignore"), np.errstate(call=lambda text, flag: seen.append(text), **{kind: "call"}):
        made(x)
        made(x)
    assert len(seen) == 2

    class Log:
        def write(self, text: str) -> None:
            seen.append(text)

    with np.errstate(all="ignore"), np.errstate(call=Log(), **{kind: "log"}):
        made(x)
    assert len(seen) == 3


def test_what_is_ignored_or_warned_of_stays_native(kind: str) -> None:
    if config.dispatch != "native" or layout.refusal():
        pytest.skip("calls go through Python")
    made, x = warmed(kind)
    before = native(made)
    for how in ("ignore", "warn"):
        with np.errstate(all=how):
            made(x)
    made(x)
    assert native(made) == before + 3
    with np.errstate(all="ignore"), np.errstate(**{kind: "raise"}), pytest.raises(FloatingPointError):
        made(x)
    assert native(made) == before + 3


def test_the_state_of_a_thread_is_its_own() -> None:
    made, x = warmed("divide")
    found: list[str] = []

    def work() -> None:
        np.seterr(all="raise")
        for _ in range(3):
            try:
                made(x)
            except FloatingPointError:
                found.append("raised")
        np.seterr(all="ignore")
        made(x)
        found.append("ignored")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["raised"] * 3 + ["ignored"]
    with np.errstate(all="ignore"):
        made(x)


def test_a_state_inside_is_compiled() -> None:
    def f(x):
        with np.errstate(divide="raise"):
            return 1 / x

    made = jg.jit(f)
    for _ in range(3):
        with pytest.raises(FloatingPointError, match="divide by zero"):
            made(X)
    assert made.cache_info().entries == 1


def test_whether_errors_are_heard() -> None:
    with np.errstate():
        np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")  # as at first, but set
        assert errstate.VARIABLE is None or errstate.VARIABLE.get() is not errstate.DEFAULT
        assert not errstate.is_heard()
    for how in ("ignore", "warn", "raise", "call", "print", "log"):
        for kind in KINDS:
            with np.errstate(all="ignore"), np.errstate(**{kind: how}):
                assert errstate.is_heard() is (how not in ("ignore", "warn"))
