"""Region operators and terminators. Their meaning is that of their regions: `ir.interpret` and `codegen` run those.

A `cond` or `switch` has no type rule of its own (what its regions yield is its type) and is emitted with its result
types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitgraph.errors import InternalError
from jitgraph.ir.opdef import Attrs, Signature, Trait
from jitgraph.ir.types import TensorType
from jitgraph.ops.families import define, keep

REGION = frozenset({Trait.CONTROL, Trait.OPAQUE})
TERMINATOR = frozenset({Trait.TERMINATOR})


def _carried(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    """Results are what is carried."""
    return Signature(keep(types), tuple(types))


def by_regions(name: str) -> Callable[..., Any]:
    """The `evaluate` or `infer` of an operator that means nothing without its regions."""

    def refuse(*operands: Any, **attrs: Any) -> Any:
        raise InternalError(f"`{name}` is typed and run by its regions, not by its operands")

    return refuse


def _no_results(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    return Signature(keep(types), ())


def _branch_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    raise InternalError("the types of a branch are those that its regions yield: emit it with them")


define(
    "for",
    "Runs the region for each index in range(lower, upper, step); results are the carried values after the last turn.",
    _carried,
    by_regions("for"),
    traits=REGION,
    arity=-1,
)
define(
    "while",
    "Runs the second region as long as the first one yields true; both see the carried values.",
    _carried,
    by_regions("while"),
    traits=REGION,
    arity=-1,
)
define(
    "cond",
    "Runs the first region if the predicate holds, else the second.",
    _branch_infer,
    by_regions("cond"),
    traits=REGION,
)
define(
    "switch",
    "Runs region k if the integer is cases[k], the last region if it is none of them; the cases differ.",
    _branch_infer,
    by_regions("switch"),
    traits=REGION,
)
define(
    "yield",
    "Ends a region with its results.",
    _no_results,
    lambda *values: values,
    traits=TERMINATOR,
    arity=-1,
)
define(
    "return",
    "Ends the graph: the fresh results, then the last version of each argument that was written (attr `mutates`).",
    _no_results,
    lambda *values, mutates=(): values,
    traits=TERMINATOR,
    arity=-1,
)
