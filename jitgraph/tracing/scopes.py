"""Where names are looked up while paths are traced: the caller's frame, values of our own, one over the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from jitgraph.tensor import Storage
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.poison import unbound


class Scope:
    """The variables of the user's frame at one moment."""

    __slots__ = ("code", "globals", "loaded", "locals", "space")

    def __init__(self, names: dict[str, Any], frame: FrameType) -> None:
        self.locals = dict(names)
        self.globals = dict(frame.f_globals)
        self.code = frame.f_code
        self.space = frame.f_globals
        #: How many globals had been read.
        self.loaded = len(self.space.loaded) if type(self.space) is TraceGlobals else 0

    def get(self, name: str) -> Any:
        """The value of a variable; a `Poison` if it is unbound."""
        if name in self.locals:
            return self.locals[name]
        code = self.code
        if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
            return unbound(name)
        if name in self.globals:
            return self.globals[name]
        found = self.space.first(name, self.loaded) if type(self.space) is TraceGlobals else None
        return unbound(name) if found is None else found[0]


class Names:
    """A scope of one expression: no frame, just values."""

    __slots__ = ("values",)

    def __init__(self, **values: Any) -> None:
        self.values = values

    def get(self, name: str) -> Any:
        return self.values[name] if name in self.values else unbound(name)


class Overlay:
    """A scope in which some names have other values."""

    __slots__ = ("base", "values")

    def __init__(self, values: dict[str, Any], base: Any) -> None:
        self.values, self.base = values, base

    def get(self, name: str) -> Any:
        return self.values[name] if name in self.values else self.base.get(name)


def variables_of(scope: Any) -> dict[str, Any]:
    """The local variables of a scope; none where an expression has its own."""
    if type(scope) is Overlay:
        return {**variables_of(scope.base), **scope.values}
    return scope.locals if type(scope) is Scope else {}


def caller_scope(names: dict[str, Any]) -> Scope:
    """The scope of the function that called our caller."""
    return Scope(names, sys._getframe(2))


@contextmanager
def at_versions(versions: dict[Storage, Any], stale: dict[Storage, Any] | None = None) -> Iterator[None]:
    """Read storages as they were at the end of a region.

    Args:
        stale: those that were unusable there, with the modes that say so.
    """
    stale = stale or {}
    before = [(s, s.mode, s.value) for s in (*versions, *stale)]
    for storage, value in versions.items():
        storage.value = value
    for storage, mode in stale.items():
        storage.mode, storage.value = mode, None
    try:
        yield
    finally:
        for storage, mode, value in before:
            storage.mode, storage.value = mode, value
