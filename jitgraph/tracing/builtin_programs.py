"""Python's `sum`, `max` and `min` over arrays and long sequences, written as loops and traced in their place.

Short sequences of known length are unrolled by the stand-ins in `xp/scalars.py`; a loop keeps the size out of the
specialisation, and takes sizes that only the run knows.
"""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitgraph.tensor import Tensor
from jitgraph.tracing.iteration import Sequenced
from jitgraph.tracing.kinds import tag_of
from jitgraph.tracing.leaves import is_opaque_module
from jitgraph.tracing.members import PLAIN
from jitgraph.tracing.poison import OneOf
from jitgraph.xp.scalars import EMPTY_MAX, EMPTY_MIN, LOOKED_INTO

if TYPE_CHECKING:
    from jitgraph.tracing.standins import Tracer


def _sum(items: Any, /, start: Any = 0) -> Any:
    total = start
    for item in items:
        total = total + item
    return total


def _max(items: Any, /) -> Any:
    if len(items) == 0:
        raise ValueError(EMPTY_MAX)
    best = items[0]
    for k in range(1, len(items)):
        item = items[k]
        if item > best:  # noqa: PLR1730  # the meaning of max
            best = item
    return best


def _min(items: Any, /) -> Any:
    if len(items) == 0:
        raise ValueError(EMPTY_MIN)
    best = items[0]
    for k in range(1, len(items)):
        item = items[k]
        if item < best:  # noqa: PLR1730  # the meaning of min
            best = item
    return best


def _any(items: Any, /) -> bool:
    for item in items:  # noqa: SIM110  # the meaning of any
        if item:
            return True
    return False


def _all(items: Any, /) -> bool:
    for item in items:  # noqa: SIM110  # the meaning of all
        if not item:
            return False
    return True


#: The programs by the identity of what they stand for.
PROGRAMS: Final[dict[int, FunctionType]] = {
    id(f): program  # type: ignore[misc]
    for f, program in (
        (builtins.sum, _sum), (builtins.max, _max), (builtins.min, _min), (builtins.any, _any), (builtins.all, _all),
    )
}  # fmt: skip
_PICKING: Final = frozenset(map(id, (builtins.max, builtins.min)))
_TRUTHS: Final = frozenset(map(id, (builtins.any, builtins.all)))


def program_for(tracer: Tracer, f: Any, args: Any, kwargs: Any) -> tuple[FunctionType | None, Any]:
    """The program that stands for a builtin function of these arguments, and its arguments.

    Returns:
        no program if the stand-in will do; the arguments are a list then, where they were an iterator.
    """
    items, program = args[0], PROGRAMS[id(f)]
    if id(f) in _TRUTHS:
        is_listed = len(args) == 1 and not kwargs and type(items) in (list, tuple)
        stops = is_listed and any(type(x) is OneOf or (type(x) is Tensor and x.type.shape) for x in items)
        return (program if stops else None), args
    if id(f) in _PICKING and (len(args) > 1 or kwargs):
        return None, args
    if type(items) is OneOf:
        return None, args
    if not isinstance(items, (*LOOKED_INTO, Sequenced)):
        items = list(tracer.iterable(items))
        args = (items, *args[1:])
    needed = _is_long(tracer, items, f)
    if not needed and type(items) in (list, tuple):
        if id(f) in _PICKING and len(items) > 1:
            return None, tuple(items)
        needed = id(f) not in _PICKING and _is_mixed(tracer, items)
    return (program if needed else None), args


def _is_long(tracer: Tracer, items: Any, original: Any) -> bool:
    if type(items) is Tensor:
        if not items.is_traced or not items.type.shape or (original is not builtins.sum and items.type.ndim > 1):
            return False
        length = items.type.shape[0]
    elif isinstance(items, Sequenced) and original is builtins.sum:
        length = items.length
    else:
        return False
    return not isinstance(length, int) or length > tracer.unroll_limit


def _is_mixed(tracer: Tracer, items: Any) -> bool:
    """Whether the type of some of the items depends on the path, or they are objects with operators of the user's."""
    mode = tracer.mode
    return any(type(x) is OneOf or (mode.kinds and tag_of(mode, x) is not None) or _is_users(x) for x in items)


def _is_users(x: Any) -> bool:
    kind = type(x)
    return kind not in PLAIN and kind is not np.ndarray and not is_opaque_module(kind.__module__)
