"""Small programs of Python control flow on traced values: a table of functions, and the comparison with plain Python."""

import copy
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e.programs import aliases, same


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
        calls: the arguments of each call.
        refused: the text of the TraceError that it raises instead; "" if it is compiled.
        reruns: numbers of the calls that are left to Python, again each time.
        state: what the program changes outside of its arguments.
    """

    fn: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]
    refused: str = ""
    reruns: tuple[int, ...] = ()
    state: Callable[[], Any] | None = None


class Cases(list[Case]):
    """The programs of one file; `tests()` makes their test."""

    def add(self, *calls: tuple[Any, ...], **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.append(Case(fn, calls, **options))
            return fn

        return register

    def tests(self) -> Callable[[Case], None]:
        @pytest.mark.parametrize("case", self, ids=lambda case: case.fn.__name__)
        def test(case: Case) -> None:
            check_case(case)

        return test


@dataclass
class Raised:
    """An exception as it is compared: all that a handler can see of it."""

    kind: type
    text: str
    args: tuple[Any, ...]
    attributes: dict[str, Any]
    cause: Any
    is_quiet: bool


def raised(error: BaseException) -> Raised:
    hidden = type(error).__module__.startswith(("numpy.", "jitgraph."))
    kind = type(error)
    if hidden:
        kind = next(c for c in kind.__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
    attributes = {} if hidden else {k: v for k, v in vars(error).items() if not k.startswith("__")}
    cause = None if error.__cause__ is None else raised(error.__cause__)
    return Raised(kind, str(error), error.args, attributes, cause, error.__suppress_context__)


def outcome(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a call returns, or the exception it raises."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.filterwarnings("ignore", message=".* runs in plain Python")
            return fn(*arguments)
    except (jg.errors.TraceError, jg.errors.InternalError):
        raise
    except Exception as error:  # noqa: BLE001 - it is compared
        return raised(error)


def plain_runs(fn: Callable[..., Any], compiled: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """How often a call of the compiled function runs the function as it stands."""
    count = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is fn.__code__

    sys.setprofile(note)
    try:
        outcome(compiled, arguments)
    finally:
        sys.setprofile(None)
    return count


def check_case(case: Case) -> None:
    """Results, exceptions, changed arguments, state and aliases agree, in each call."""
    compiled = jg.jit(case.fn, numerics="numpy")
    for number, call in enumerate(case.calls):
        first, second = copy.deepcopy(call), copy.deepcopy(call)
        expected = outcome(case.fn, first)
        state = None if case.state is None else copy.deepcopy(case.state())
        if case.refused:
            with pytest.raises(jg.errors.TraceError, match=case.refused) as caught:
                compiled(*second)
            assert "To mend" in str(caught.value)
            continue
        got = outcome(compiled, second)
        same(got, expected, 0, f"result {number}")
        same(second, first, 0, f"argument {number}")
        assert aliases(got, second) == aliases(expected, first)
        if case.state is not None:
            same(case.state(), state, 0, f"state {number}")
        assert plain_runs(case.fn, compiled, copy.deepcopy(call)) == (number in case.reruns), (
            f"call {number} runs in Python"
        )
