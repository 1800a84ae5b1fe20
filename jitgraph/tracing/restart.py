"""What a trace learns: it begins anew (`Restart`) or cannot (`Exhausted`), a loop does (`NeedsFirstTurn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitgraph import errors
from jitgraph.tracing.poison import unbound_text

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region


class Restart(BaseException):  # no error: the trace begins anew, knowing more; user code must not catch it
    """Trace again with this decision made.

    Attributes:
        static_leaf: number of an argument leaf whose value Python needs: baked in, under a guard.
        lift: path of a Python number outside that the function also stores: a hidden argument instead of a guard.
        fix: path of a number outside that Python needs the value of: a guard instead of a hidden argument.
        settle: a branch (see `Regions.settled`) whose sides do not fit one graph: one of them is assumed.
        unroll: the place of a loop that no region can be made of, whose turns are traced one by one, and the error.
        objects: which object a name stands for matters: arrays have numbers that say so (see `objects`).
        lifts: an array that NumPy made of static values is written: such arrays are traced.
    """

    def __init__(
        self,
        static_leaf: int = -1,
        lift: str = "",
        fix: str = "",
        settle: Any = None,
        lifts: bool = False,
        unroll: Any = None,
        objects: bool = False,
    ) -> None:
        super().__init__(static_leaf, lift, fix)
        self.static_leaf, self.lift, self.fix, self.settle, self.lifts = static_leaf, lift, fix, settle, lifts
        self.unroll, self.objects = unroll, objects


class Exhausted(Restart):
    """No way to trace on: the trace would be too large, whatever is assumed.

    Attributes:
        error: what the user is told.
    """

    def __init__(self, error: errors.TraceError) -> None:
        super().__init__()
        self.error = error


class NeedsFirstTurn(UnboundLocalError):  # noqa: N818  # an answer
    """A name that only the end of a turn binds is read in a turn of the region: the first turn comes before it.

    Behind the region it is Python's own error.
    """

    def __init__(self, region: Region, name: str) -> None:
        super().__init__(unbound_text(name))
        self.region, self.unbound = region, name
