"""The passes of the loop level, in order."""

from __future__ import annotations

from dataclasses import replace

from jitgraph.codegen.loops import For, Program, Stmt, While
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import Facts
from jitgraph.schedule.hoist import hoist
from jitgraph.schedule.inline import inline, used_kernels
from jitgraph.schedule.interchange import interchange
from jitgraph.schedule.jam import jam
from jitgraph.schedule.join import join
from jitgraph.schedule.registers import registers
from jitgraph.schedule.settle import settle
from jitgraph.schedule.simplify import simplify
from jitgraph.schedule.statements import Names
from jitgraph.schedule.swaps import without_swaps
from jitgraph.schedule.unused import without_unused
from jitgraph.schedule.versions import versions


def optimise(p: Program, facts: Facts) -> Program:
    """A program with its loops made ready for the machine. One without loops of the user's is returned as it is.

    Args:
        facts: what holds when the entry starts; loops add what holds inside.
    """
    if not has_loops(p.entry):
        return p
    names = Names()
    entry = p.entry
    entry = simplify(entry, facts)
    entry = without_unused(entry)
    entry = hoist(entry)
    entry = versions(entry, facts, names)
    entry = inline(entry, p.kernels, names)
    entry = simplify(entry, facts)
    entry = without_unused(entry)
    entry = join(entry, facts, names)
    entry = registers(entry, facts, names)
    entry = without_swaps(without_unused(entry))
    entry = interchange(entry)
    entry = jam(entry, facts, names)
    entry = registers(entry, facts, names)
    entry = simplify(entry, facts)
    entry = without_unused(entry)
    entry = hoist(entry)
    entry = settle(entry, names)
    return replace(p, entry=entry, kernels=used_kernels(entry, p.kernels))


def has_loops(body: list[Stmt]) -> bool:
    """Whether a body has loops that run turn by turn."""
    return any(isinstance(s, While) or (isinstance(s, For) and s.role == "serial") for s in walk(body))

