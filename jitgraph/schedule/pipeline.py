"""The passes of the loop level, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jitgraph.codegen.loops import For, Function, Program, Stmt, While
from jitgraph.codegen.loops_walk import walk
from jitgraph.config import config
from jitgraph.ir.dims import Facts
from jitgraph.ir.graph import Site
from jitgraph.records import dataclass
from jitgraph.schedule.chain import chain
from jitgraph.schedule.cold import cold
from jitgraph.schedule.dots import dots
from jitgraph.schedule.guarded import guarded
from jitgraph.schedule.hoist import hoist
from jitgraph.schedule.inline import inline, used_kernels
from jitgraph.schedule.interchange import interchange
from jitgraph.schedule.jam import jam
from jitgraph.schedule.join import join
from jitgraph.schedule.lanes import lanes
from jitgraph.schedule.operands import operands
from jitgraph.schedule.overflows import overflows
from jitgraph.schedule.parallel import parallel
from jitgraph.schedule.registers import registers
from jitgraph.schedule.rings import rings
from jitgraph.schedule.rows import rows
from jitgraph.schedule.settle import settle
from jitgraph.schedule.simplify import simplify
from jitgraph.schedule.statements import Names
from jitgraph.schedule.streams import streams
from jitgraph.schedule.swaps import without_swaps
from jitgraph.schedule.triangle import triangles
from jitgraph.schedule.unused import without_unused
from jitgraph.schedule.updates import updates
from jitgraph.schedule.versions import versions


@dataclass(slots=True)
class Run:
    """One run of the passes.

    Attributes:
        facts: what holds when the entry starts; loops add what holds inside.
        core: the order in which BLAS adds up dot products, see `dots`.
    """

    kernels: list[Function]
    facts: Facts
    names: Names
    core: str
    sites: Sequence[Site]


#: What runs, in order: each makes a body of the body.
PASSES: tuple[tuple[str, Callable[[list[Stmt], Run], list[Stmt]]], ...] = (
    ("simplify", lambda body, run: without_unused(simplify(body, run.facts, run.names))),
    ("overflows", lambda body, run: overflows(body, run.names)),
    ("hoist", lambda body, run: hoist(body)),
    ("dots", lambda body, run: dots(body, run.core, run.facts, run.names)),
    ("versions", lambda body, run: versions(body, run.facts, run.names)),
    ("inline", lambda body, run: inline(body, run.kernels, run.names)),
    ("simplify", lambda body, run: without_unused(simplify(body, run.facts, run.names))),
    ("operands", lambda body, run: without_unused(operands(body, run.names))),
    ("guarded", lambda body, run: guarded(body, run.names)),
    ("join", lambda body, run: join(body, run.facts, run.names)),
    ("registers", lambda body, run: without_unused(registers(body, run.facts, run.names))),
    ("swaps", lambda body, run: without_swaps(body)),
    ("interchange", lambda body, run: interchange(body, run.names)),
    ("jam", lambda body, run: jam(body, run.facts, run.names)),
    ("rows", lambda body, run: rows(body, run.facts, run.names)),
    ("registers", lambda body, run: registers(body, run.facts, run.names)),
    ("simplify", lambda body, run: without_unused(simplify(body, run.facts, run.names))),
    ("triangles", lambda body, run: triangles(body, run.facts, run.names)),
    ("lanes", lambda body, run: lanes(body, run.facts, run.names, run.sites)),
    ("updates", lambda body, run: updates(body, run.facts, run.names)),
    ("cold", lambda body, run: without_unused(cold(body, run.names))),
    ("hoist", lambda body, run: hoist(body)),
    ("rings", lambda body, run: rings(body)),
    ("settle", lambda body, run: settle(body, run.names)),
)


def optimise(p: Program, facts: Facts, core: str = "") -> Program:
    """A program with its loops made ready for the machine. In one without loops of the user's only kernels are joined.

    Args:
        facts: what holds when the entry starts.
        core: the order in which BLAS adds up dot products, see `dots`.
    """
    for _, made in stages(p, facts, core):
        p = made
        if config.verify:
            from jitgraph.codegen.loops_verify import verify

            verify(p)
    kernels = used_kernels(p.entry, p.kernels)
    left = {k.name for k in kernels}
    return replace(p, kernels=kernels, inlined=[k for k in p.kernels if k.name not in left])


def stages(p: Program, facts: Facts, core: str = "") -> Iterator[tuple[str, Program]]:
    """The program behind each pass, with the name of the pass."""
    run = Run(list(p.kernels), facts, Names(), core, p.sites)
    p = replace(p, entry=chain(p.entry, run.kernels, facts, run.names), kernels=run.kernels)
    yield "chain", p
    for name, apply in PASSES if has_loops(p.entry) else ():
        p = replace(p, entry=apply(p.entry, run), notes=[*run.names.notes])
        yield name, p
    p = streams(p)
    yield "streams", p
    yield "parallel", replace(parallel(p, run.names), notes=[*run.names.notes])


def has_loops(body: list[Stmt]) -> bool:
    """Whether a body has loops that run turn by turn."""
    return any(isinstance(s, While) or (isinstance(s, For) and s.role == "serial") for s in walk(body))
