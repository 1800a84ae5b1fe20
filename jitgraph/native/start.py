"""Starting native dispatch: for the process, and for a function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from jitgraph.config import config
from jitgraph.native import code, layout
from jitgraph.native.callable import block_offset
from jitgraph.native.records import Off

if TYPE_CHECKING:
    from jitgraph.native.function import NativeCalls


@cache
def _refusal() -> str:
    """Why native dispatch is not to be had in this process; empty if it is."""
    reason = layout.refusal()
    if reason and "miss" in config.log:
        sys.stderr.write(f"jitgraph: calls go through Python: {reason}\n")
    return reason


def is_due(target: Any) -> bool:
    """Whether calls of a jitted function should become native now; see `code.is_due`."""
    return bool(_refusal()) or code.is_due(block_offset(type(target)))


def native_calls(target: Any, slow: Callable[..., Any], heeds: int = Off.ALWAYS | Off.COMPARED) -> NativeCalls | None:
    """The native side of a jitted function, None where it cannot be had. See `NativeCalls`."""
    if _refusal():
        return None
    from jitgraph.loading import uncollected

    with uncollected():  # processes that make few calls do without
        from jitgraph.native.function import NativeCalls

    try:
        return NativeCalls(target, slow, heeds)
    except OSError:  # the dispatcher's own source is not at hand, and its code in no cache
        return None
