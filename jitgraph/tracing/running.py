"""The call that runs: what functions behind host calls find of its arguments, and how it is undone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from jitgraph.tracing.hidden import NO_CALL, Call


class Running:
    """One call of compiled code.

    Attributes:
        call: its arguments.
        slots: objects that it made, by number.
        undo: what takes its effects back if it is given up and run in Python instead.
    """

    __slots__ = ("call", "seen", "slots", "undo")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.slots: dict[int, Any] = {}
        self.seen: set[int] = set()
        self.undo: list[Callable[[], None]] = []

    def give_up(self) -> None:
        """Take back what the call did."""
        for undo in reversed(self.undo):
            undo()


class _Calls(threading.local):
    def __init__(self) -> None:
        self.stack: list[Running] = []


_calls = _Calls()


def begin(call: Call) -> Running:
    """A call begins; `end` must follow."""
    made = Running(call)
    _calls.stack.append(made)
    return made


def end() -> None:
    _calls.stack.pop()


def current() -> Running:
    """The call at hand."""
    return _calls.stack[-1] if _calls.stack else Running(NO_CALL)
