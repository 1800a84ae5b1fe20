"""`JITGRAPH_DISPATCH=both`: each call goes through Python and then through native code, and the two are compared.

For finding faults of the native dispatcher. Calls that may not happen twice (host calls, stores outside of the
arguments) go through Python only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgraph.errors import InternalError
from jitgraph.native.callable import callable_type
from jitgraph.native.function import NativeCalls
from jitgraph.native.records import Off
from jitgraph.native.start import native_calls
from jitgraph.pytree import flatten
from jitgraph.specialise import Plain, Specialisation
from jitgraph.tracing.hidden import Call

_COMPARED = (int, str, bytes, tuple, list, dict, set)


class _Target:
    """What is called in place of the user's function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _UNSERVED

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self


_UNSERVED = object()
#: The machine code has left the call to Python.
_LEFT = object()


def _stopped(item: Specialisation, frame: Any, status: int, call: Call) -> Any:
    error = item.stopped(frame, status)
    if isinstance(error, item.compiled.deoptimise):
        return _LEFT
    raise error


class Comparison:
    """The native side of a jitted function whose calls go through Python, too.

    Attributes:
        compared: calls so far that native code has served as well.
    """

    def __init__(self) -> None:
        self.target: Any = object.__new__(callable_type(_Target))
        self.native: NativeCalls | None = native_calls(self.target, lambda *args, **kwargs: _UNSERVED, Off.ALWAYS)
        self.compared = 0

    def call(
        self,
        python: Callable[[], Any],
        known: Callable[[], Sequence[Specialisation | Plain]],
        key: Any,
        leaves: Sequence[Any],
        call: Call,
    ) -> Any:
        """The result of `python()`.

        Args:
            known: the specialisations of this key.

        Raises:
            InternalError: native code does something else.
            whatever `python` raises.
        """
        arrays = [x for x in leaves if isinstance(x, np.ndarray) and x.flags.writeable]
        before = [x.copy() for x in arrays]
        wanted, error = _outcome(python)
        if self.native is None:
            return _done(wanted, error)
        items = known()
        if any(type(item) is not Specialisation or not _is_repeatable(item) for item in items):
            return _done(wanted, error)
        after = [x.copy() for x in arrays]
        _restore(arrays, before)
        args, kwargs = call
        found, other = _outcome(lambda: self.target(*args, **kwargs))
        if found is _UNSERVED:
            for item in items:
                if type(item) is Specialisation and item.serves(leaves, call):
                    self.native.promote(item, key, leaves, call, partial(_stopped, item))
            found, other = _outcome(lambda: self.target(*args, **kwargs))
        if found is not _UNSERVED and found is not _LEFT:
            self.compared += 1
            what = _difference(found, other, wanted, error, leaves)
            if not what and not all(_same(x, y) for x, y in zip(arrays, after, strict=True)):
                what = "the arguments afterwards"
            if what:
                raise InternalError(f"native dispatch differs from Python's in {what}: {found!r} for {wanted!r}")
        _restore(arrays, after)
        return _done(wanted, error)


def _is_repeatable(item: Specialisation) -> bool:
    trace = item.trace
    hidden = any(k >= len(trace.arg_leaves) for k in trace.writes)
    return not (trace.replays or item.compiled.executable.interface.hosts or hidden)


def _outcome(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except BaseException as e:  # noqa: BLE001  # raised again by `_done`
        return None, e


def _done(result: Any, error: BaseException | None) -> Any:
    if error is not None:
        raise error
    return result


def _restore(arrays: Sequence[np.ndarray], contents: Sequence[np.ndarray]) -> None:
    for x, y in zip(arrays, contents, strict=True):
        x[...] = y


def _difference(
    found: Any, other: BaseException | None, wanted: Any, error: BaseException | None, leaves: Sequence[Any]
) -> str:
    if type(other) is not type(error) or str(other) != str(error):
        return f"the exception ({other!r} for {error!r})"
    first, second = flatten(found), flatten(wanted)
    if first[1] != second[1]:
        return "the structure of the result"
    given = {id(x) for x in leaves}
    for x, y in zip(first[0], second[0], strict=True):
        if not _same(x, y) or ((id(x) in given or id(y) in given) and isinstance(x, np.ndarray) and x is not y):
            return "the result"
    return ""


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, tuple | list) and type(x) is type(y):
        return len(x) == len(y) and all(map(_same, x, y))
    if type(x) is not type(y):
        return False
    if isinstance(x, np.ndarray):
        if x.dtype != y.dtype or x.shape != y.shape or x.flags.writeable != y.flags.writeable:
            return False
        return bool(x.tobytes() == y.tobytes())
    if isinstance(x, np.generic):
        return bool(x.dtype == y.dtype and x.tobytes() == y.tobytes())
    if isinstance(x, float | complex):
        return repr(x) == repr(y)
    own, other = getattr(x, "__dict__", None), getattr(y, "__dict__", None)
    if own is not None and other is not None and x is not y:  # objects that the function has made
        return list(own) == list(other) and all(map(_same, own.values(), other.values()))
    return x is y or bool(x == y) or not isinstance(x, _COMPARED)
