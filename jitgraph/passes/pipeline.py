"""The list of passes, and the driver that runs it.

A pass is a function of a graph that says whether it changed it. `after` names the passes that must stand before it, and
why; the order is checked when this module is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from jitgraph.errors import InternalError, VerifyError
from jitgraph.ir.graph import Graph
from jitgraph.ir.verifier import verify as verify_graph
from jitgraph.passes.absorb import absorb
from jitgraph.passes.branches import branches
from jitgraph.passes.bufferize import bufferize
from jitgraph.passes.canonicalise import canonicalise
from jitgraph.passes.checks import check_arrays
from jitgraph.passes.complex_sums import complex_sums
from jitgraph.passes.conditions import conditions
from jitgraph.passes.control_flow import control_flow
from jitgraph.passes.counters import counters
from jitgraph.passes.cse import cse
from jitgraph.passes.dce import dce
from jitgraph.passes.fold import fold
from jitgraph.passes.fuse import fuse
from jitgraph.passes.induction import induction
from jitgraph.passes.invariant_motion import invariant_motion
from jitgraph.passes.masks import masks
from jitgraph.passes.rematerialise import rematerialise
from jitgraph.passes.simplify import simplify
from jitgraph.passes.snapshot import snapshot
from jitgraph.passes.uncopied import uncopied
from jitgraph.passes.unify import unify_sizes
from jitgraph.passes.unswitch import unswitch
from jitgraph.records import dataclass, field

#: Told after each pass: (number, name, graph, ops before, ops after, milliseconds).
Observer: TypeAlias = Callable[[int, str, Graph, int, int, float], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """One entry of a pipeline.

    Attributes:
        required: cannot be left out.
        after: passes that stand before it, and why.
    """

    name: str
    run: Callable[[Graph], bool]
    required: bool = False
    after: Mapping[str, str] = field(default_factory=dict)


PASSES: tuple[Pass, ...] = (
    Pass("unify_sizes", unify_sizes),
    Pass("complex_sums", complex_sums, required=True),
    Pass("canonicalise", canonicalise, after={"unify_sizes": "views between equal sizes are seen to be none"}),
    Pass("fold", fold, after={"canonicalise": "constants stand on the right, views are composed"}),
    Pass("simplify", simplify, after={"fold": "laws look for constants"}),
    Pass("counters", counters, after={"fold": "numbers and sizes are known"}),
    Pass("induction", induction, after={"fold": "amounts are known to be sizes"}),
    Pass("control_flow", control_flow, after={"fold": "conditions and trip counts are known"}),
    Pass("cse", cse, after={"canonicalise": "equal operations look equal"}),
    Pass("invariant_motion", invariant_motion, after={"cse": "equal ops are one, so one moves"}),
    Pass("dce", dce, after={"cse": "merged ops leave users behind"}),
    Pass("cleanup", canonicalise, after={"control_flow": "inlined regions meet the code around them"}),
    Pass("fold_again", fold, after={"control_flow": "inlined regions have known indices"}),
    Pass("simplify_again", simplify, after={"fold_again": "laws look for constants"}),
    Pass("conditions", conditions, after={"fold_again": "sizes and comparisons of them are known"}),
    Pass("control_flow_again", control_flow, after={"conditions": "predicates are known"}),
    Pass("unswitch", unswitch, after={"control_flow_again": "only branches that are real are left"}),
    Pass("branches", branches, after={"unswitch": "selects of what does not change are no use in a loop"}),
    Pass("masks", masks, after={"cse": "equal masks are one value"}),
    Pass("cse_again", cse, after={"invariant_motion": "what left several loops may be equal"}),
    Pass("invariant_motion_again", invariant_motion, after={"branches": "what stood in branches may leave its loop"}),
    Pass("dce_again", dce, after={"cse_again": "merged ops leave users behind"}),
    Pass("check_arrays", check_arrays, after={"cse_again": "what it copies is not to be merged again"}),
    Pass("absorb", absorb, after={"masks": "what is not stored at all needs no loop"}),
    Pass("uncopied", uncopied, after={"masks": "what is written is known"}),
    Pass("snapshot", snapshot, after={"cse_again": "what it copies is not to be merged again"}),
    Pass("fuse", fuse, after={"dce_again": "kernels compute nothing that is dead"}),
    Pass("rematerialise", rematerialise, after={"fuse": "what kernels store for each other is known"}),
    Pass("bufferize", bufferize, required=True, after={"fuse": "what reads and writes in one kernel is known"}),
)


def check_order(passes: Sequence[Pass]) -> None:
    """Check that each pass stands behind those it names.

    Raises:
        InternalError: one does not, or a name is there twice.
    """
    seen: set[str] = set()
    for p in passes:
        missing = [name for name in p.after if name not in seen]
        if missing:
            raise InternalError(f"the pass {p.name} must stand behind {missing[0]}: {p.after[missing[0]]}")
        if p.name in seen:
            raise InternalError(f"the pass {p.name} is in the pipeline twice")
        seen.add(p.name)


check_order(PASSES)


def run_pipeline(
    graph: Graph,
    passes: Iterable[Pass] = PASSES,
    verify: bool = False,
    observer: Observer | None = None,
) -> bool:
    """Run passes in order; True if one changed the graph.

    Args:
        verify: check all invariants after each pass that changed the graph, and behind the last one.
        observer: told after each pass (for dumps and timings); counting ops costs a walk, so only then.

    Raises:
        VerifyError: a pass broke an invariant; the message names it.
    """
    changed = False
    passes = tuple(passes)
    for number, p in enumerate(passes):
        before = count_ops(graph) if observer is not None else 0
        start = time.perf_counter_ns()
        changed_now = p.run(graph)
        changed |= changed_now
        elapsed_ms = (time.perf_counter_ns() - start) / 1e6
        if verify and (changed_now or number == len(passes) - 1):
            try:
                verify_graph(graph)
            except VerifyError as e:
                raise VerifyError(f"after {p.name}: {e}") from e
        if observer is not None:
            observer(number, p.name, graph, before, count_ops(graph), elapsed_ms)
    return changed


def count_ops(graph: Graph) -> int:
    """The number of ops, those in regions included."""
    return sum(1 for _ in graph.walk())
