"""Locks across `os.fork`: the child has the memory of all threads, but only one thread that could open a lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

#: Locks that come and go.
_locks: WeakSet[Any] = WeakSet()


def open_in_child(lock: Any) -> None:
    """Have a lock (`Lock` or `RLock`) open in children: what it guards is whole between any two lines of Python."""
    _locks.add(lock)


def _open() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


def not_while(hold: Callable[[], Any], release: Callable[[], Any]) -> None:
    """Fork only while this is held: for code of others that no child could tidy up."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=hold, after_in_parent=release, after_in_child=release)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open)
