"""Looking at values while compiled code runs: `jg.debug.print`, `tap`, `breakpoint`; in plain Python they do the same.

Inside `jit` they are calls back into Python that take place at each run, in the order of the program, in loops and
branches too. (Python's own `print` runs once, while the function is traced, and shows types.)
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["breakpoint", "print", "tap"]


def _show(template: str, *args: Any, **kwargs: Any) -> None:
    builtins.print(template.format(*args, **kwargs))  # noqa: T201  # what it is for


def print(template: str, *args: Any, **kwargs: Any) -> None:
    """Print values when the code runs: `jg.debug.print("loss {} at {step}", loss, step=k)`.

    Args:
        template: a format string, as of `str.format`.
    """
    _show(template, *args, **kwargs)


def tap(value: T, callback: Callable[[Any], Any]) -> T:
    """Call `callback(value)` when the code runs; answers the value."""
    callback(value)
    return value


def breakpoint(**values: Any) -> None:
    """Stop in the debugger when the code runs; the values that are passed are its `values`."""
    builtins.breakpoint()  # noqa: T100  # what it is for


def _trace_print(tracer: Any, args: Any, kwargs: Any) -> None:
    tracer.effect(_show, args, kwargs)


def _trace_tap(tracer: Any, args: Any, kwargs: Any) -> Any:
    def behind(value: Any, callback: Callable[[Any], Any]) -> None:
        callback(value)

    given = dict(zip(("value", "callback"), args, strict=False)) | kwargs
    tracer.effect(behind, (given["value"], tracer.live(given["callback"])), {})
    return given["value"]


def _trace_breakpoint(tracer: Any, args: Any, kwargs: Any) -> None:
    def behind(**values: Any) -> None:
        builtins.breakpoint()  # noqa: T100  # what it is for

    tracer.effect(behind, args, kwargs)


vars(print)["__jitgraph_trace__"] = _trace_print
vars(tap)["__jitgraph_trace__"] = _trace_tap
vars(breakpoint)["__jitgraph_trace__"] = _trace_breakpoint
