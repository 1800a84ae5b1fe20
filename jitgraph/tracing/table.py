"""The table of stand-ins: what is called in place of functions of NumPy and Python, by identity."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from jitgraph.tensor import Tensor
from jitgraph.tracing import effects, floating, iteration, kinds, numpy_python, ordering
from jitgraph.xp.core import NUMPY_TABLE

if TYPE_CHECKING:
    from jitgraph.tracing.standins import Tracer


class OwnStandin:
    """A stand-in that needs the tracer."""

    __slots__ = ("body",)

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body


def _print(tracer: Tracer, *args: Any, **kwargs: Any) -> None:
    """Prints at once, traced values by their types, and warns that calls of the compiled code will not."""
    warnings.warn(
        "print() inside a jitted function runs once, while it is traced; jg.debug.print prints at each run",
        UserWarning,
        stacklevel=3,
    )
    shown = [f"<traced {x.type}>" if type(x) is Tensor and x.is_traced else x for x in args]
    print(*shown, **kwargs)  # noqa: T201  # the user's print


_SENTINEL = object()


def _getattr(tracer: Tracer, owner: Any, name: str, default: Any = _SENTINEL) -> Any:
    if default is _SENTINEL:
        return tracer.attr(owner, name)
    try:
        return tracer.attr(owner, name)
    except AttributeError:
        return default


def _hasattr(tracer: Tracer, owner: Any, name: str) -> bool:
    mode = tracer.mode
    if type(owner) is Tensor and owner.is_traced and not mode.tensors and not kinds.tag_of(mode, owner):
        return hasattr(owner.__class__, name)
    try:
        tracer.attr(owner, name)
    except AttributeError:
        return False
    return True


def _delattr(tracer: Tracer, owner: Any, name: str) -> None:
    tracer.del_attr(owner, name)


def _getenv(tracer: Tracer, key: str, default: Any = None) -> Any:
    return tracer.environment().get(key, default)


def _id(tracer: Tracer, x: Any) -> int:
    tracer.outside.pin(x)
    return id(x)


def _setattr(tracer: Tracer, owner: Any, name: str, value: Any) -> None:
    tracer.set_attr(value, owner, name)


def _type(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and type(args[0]) is Tensor:
        return args[0].__class__
    return type(*args, **kwargs)


def _vars(tracer: Tracer, owner: Any) -> Any:
    return vars(tracer.outside.clone_of(owner))


#: Stand-ins by the identity of what they stand for; the key objects are kept alive beside them.
_standins: dict[int, Any] = {}
_kept: list[Any] = []


def _of_control(control: Any) -> dict[Any, Callable[..., Any]]:
    from jitgraph.tracing import structured

    return structured.BODIES


#: Modules that a function meets only once they are imported, to what makes the stand-ins of their functions.
_LATE: Final = {**effects.LATE, "jitgraph.control": _of_control}
#: Those that were not imported yet.
_late = dict(_LATE)


def table() -> dict[int, Any]:
    if not _standins:
        from jitgraph import xp

        found: dict[Any, Any] = {f: OwnStandin(body) for f, body in numpy_python.standins().items()}
        found.update(NUMPY_TABLE | getattr(xp, "BUILTIN_TABLE", {}))
        own: dict[Any, Callable[..., Any]] = {
            getattr: _getattr,
            hasattr: _hasattr,
            delattr: _delattr,
            id: _id,
            os.getenv: _getenv,
            setattr: _setattr,
            type: _type,
            vars: _vars,
            print: _print,
        }
        bodies = iteration.BODIES | ordering.BODIES | effects.BODIES
        bodies |= floating.BODIES | own
        found.update({f: OwnStandin(body) for f, body in bodies.items()})
        _add(found)
    if not _late.keys().isdisjoint(sys.modules):
        for name in [n for n in _late if n in sys.modules]:
            bodies = _LATE[name](import_module(name))  # which waits for a thread that imports it just now
            _add({f: OwnStandin(body) for f, body in bodies.items()})
            _late.pop(name, None)
    return _standins


def _add(found: dict[Any, Any]) -> None:
    _kept.extend(found)
    _standins.update({id(f): body for f, body in found.items() if not isinstance(f, tuple)})
