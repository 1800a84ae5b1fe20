"""What a process has one of."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from jitgraph.forking import open_in_child

_T = TypeVar("_T")


class once(Generic[_T]):  # noqa: N801  # a decorator
    """A function without arguments that is run once; the first thread that calls it does, others wait for the answer.

    `functools.cache` may run it in several threads, of which all but one get an answer that nobody keeps.
    """

    def __init__(self, make: Callable[[], _T]) -> None:
        functools.update_wrapper(self, make)
        self._make = make
        self._made: list[_T] = []
        self._lock = threading.RLock()
        open_in_child(self._lock)

    def __call__(self) -> _T:
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]

    @property
    def is_made(self) -> bool:
        """Whether the answer is there."""
        return bool(self._made)
