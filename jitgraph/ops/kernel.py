"""The fused kernel: a group of tensor-level operators that becomes one loop nest. Its meaning is that of its region."""

from __future__ import annotations

from jitgraph.ir.opdef import Trait
from jitgraph.ops.control import by_regions
from jitgraph.ops.families import define

define(
    "kernel",
    "Operators fused into one loop nest that shares `rows` leading axes; emitted with its result types.",
    by_regions("kernel"),
    by_regions("kernel"),
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    arity=-1,
)
