"""`with` in a trace: entering and leaving run as rewritten code, and errors that a context takes are left to Python."""

from __future__ import annotations

import contextlib
import dis
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from jitgraph.tracing.leaves import is_opaque_function

if TYPE_CHECKING:
    from jitgraph.tracing.standins import Tracer

_GENERATED = type(contextlib.contextmanager(lambda: iter(()))())


class Context:
    """A context manager of the user's in a trace.

    Args:
        takes: exceptions that it may take, or that it looks at when they pass.
        swallows: whether it may take them.
    """

    def __init__(self, tracer: Tracer, manager: Any, takes: tuple[type[BaseException], ...], swallows: bool) -> None:
        self.tracer, self.manager = tracer, manager
        self.takes = takes
        self.watching = tracer.mode.handled if swallows else tracer.mode.noticed

    def __enter__(self) -> Any:
        value = self._call("__enter__")
        self.watching.append(self.takes)
        return value

    def __exit__(self, *error: object) -> Any:
        self.watching.pop()
        taken = self._call("__exit__", *error)
        return taken and not (isinstance(error[0], type) and issubclass(error[0], self.tracer.Refusals))

    def _call(self, name: str, *args: Any) -> Any:
        method = self.tracer.member(type(self.manager), name)
        if isinstance(method, FunctionType) and not is_opaque_function(method):
            return self.tracer.call(method, self.manager, *args)
        return getattr(self.manager, name)(*args)


def context(tracer: Tracer, manager: Any) -> Any:
    """What `with` is to enter in place of `manager`."""
    kind = type(manager)
    if isinstance(manager, contextlib.suppress):
        return Context(tracer, manager, tuple(manager._exceptions), swallows=True)  # type: ignore[attr-defined]
    if kind is _GENERATED:
        return Context(tracer, manager, (BaseException,), swallows=_catches(manager.gen.gi_code))
    leave = tracer.member(kind, "__exit__")
    if isinstance(leave, FunctionType) and not is_opaque_function(leave):
        return Context(tracer, manager, (BaseException,), swallows=_may_return_true(leave.__code__))
    return manager


def _catches(code: CodeType) -> bool:
    """Whether a generator has an `except` clause."""
    return any(i.opname == "CHECK_EXC_MATCH" for i in dis.get_instructions(code))


def _may_return_true(code: CodeType) -> bool:
    """Whether a function may return something else than None and False."""
    before = None
    for i in dis.get_instructions(code):
        if i.opname == "RETURN_CONST" and i.argval:
            return True
        if i.opname == "RETURN_VALUE" and (before is None or before.opname != "LOAD_CONST" or before.argval):
            return True
        before = i
    return False
