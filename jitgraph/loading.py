"""Importing modules without Python's cycle collector, which would walk over all that they make again and again.

Its next runs would still do so, once for each of the two younger generations, which takes longer than loading machine
code from disk. So what modules have made is moved to the oldest generation at once.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: More objects than Python itself may have frozen (3.12 does with immortal ones, some hundred), fewer than NumPy has.
_FROZEN_BY_PYTHON = 1000


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection of cycles while modules are imported: what they make stays, and is a good part of all objects."""
    enabled, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if len(sys.modules) != known:
                _age()
            gc.enable()


def _age() -> None:
    """Have all objects in the oldest generation, which takes no time. Those that are garbage are found there later."""
    if hasattr(gc, "freeze") and gc.get_freeze_count() < _FROZEN_BY_PYTHON:  # what the user has frozen stays so
        gc.freeze()
        gc.unfreeze()
