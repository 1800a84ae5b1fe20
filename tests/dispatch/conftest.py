"""Counting the ways back into Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from jitgraph.api import JitFunction
from jitgraph.config import config
from jitgraph.native import code, layout
from jitgraph.native.callable import block_offset, callable_type


@pytest.fixture(autouse=True, scope="session")
def _native_code() -> None:
    """Calls are native from the second one on, as where the code is in the disk cache."""
    if not layout.refusal():
        code.vectorcall_address(block_offset(callable_type(JitFunction)))


@pytest.fixture
def crossings() -> Callable[[Callable[[], Any]], int]:
    """A function that counts the calls of Python functions inside a call of its argument, a lambda; 0 under other dispatchers."""

    def count(f: Callable[[], Any]) -> int:
        if config.dispatch != "native":
            return 0
        found = []
        sys.setprofile(
            lambda frame, event, argument: found.append(frame.f_code.co_qualname) if event == "call" else None
        )
        try:
            f()
        finally:
            sys.setprofile(None)
        return len(found) - 1

    return count
