"""Python's `sum`, `max` and `min` over arrays and long sequences, written as loops and traced in their place.

Short sequences of known length are unrolled by the stand-ins in `xp/scalars.py`; a loop keeps the size out of the
specialisation, and takes sizes that only the run knows.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from jitgraph.tensor import Tensor
from jitgraph.tracing.iteration import Sequenced
from jitgraph.tracing.kinds import is_narrow
from jitgraph.xp.scalars import BUILTIN_TABLE, EMPTY_MAX, EMPTY_MIN

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


def _body(original: Any, program: Callable[..., Any]) -> Callable[..., Any]:
    assert isinstance(program, FunctionType)
    other = BUILTIN_TABLE[original]

    def body(tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
        alone = len(args) == 1 and not kwargs
        is_one = alone or (original is builtins.sum and args)
        if is_one and (_is_long(tracer, args[0], original) or _is_mixed(tracer, args[0])):
            return tracer.converted(program)(*args, **kwargs)
        return other(*args, **kwargs)

    return body


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
    """Whether the precision of some of the items depends on the path: each operation on them has to know it."""
    mode = tracer.mode
    return bool(mode.kinds) and type(items) in (list, tuple) and any(is_narrow(mode, x) for x in items)


BODIES: Final[dict[Any, Callable[..., Any]]] = {
    original: _body(original, program)
    for original, program in ((builtins.sum, _sum), (builtins.max, _max), (builtins.min, _min))
}
