"""Checks that give a call up to plain Python must not stand behind a write that the caller can see.

Law: a rerun is right as long as nothing visible has happened, and then always. So such a check moves ahead of the first
visible write if what it tests is known there; otherwise it raises an error at the user's line, with the earlier writes
kept.
"""

from __future__ import annotations

from dataclasses import replace

from jitgraph import errors
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, Trait
from jitgraph.ir.storage import UPDATES
from jitgraph.ir.transform import bound_symbols, op_symbols
from jitgraph.records import dataclass

#: Most ops that are moved for one check.
_SLICE_OPS = 64


@dataclass(frozen=True, slots=True)
class Handled:
    """What stands behind the site of a check that leaves an error to Python's own run: what is the matter with it.

    Attributes:
        undone: what the caller could see of the call is put back in front of the check.
    """

    why: str
    undone: bool = False


def settle_reruns(graph: Graph, *, stores: bool = False) -> None:
    """Move or change the checks of "deoptimise" sites that stand behind a visible write; `return` is there already.

    Args:
        stores: the function stores in Python objects, which is repeated only when it has returned: a call in which it
            raises, before anything visible is written, runs in Python.

    Raises:
        TraceError: an error that the user's `try` handles cannot be left to Python.
    """
    if stores:
        _leave_errors_to_python(graph)
    end = graph.body.terminator
    storages = {graph.args[k] for k in end.attrs["mutates"]}
    late: list[Op] = []
    first: list[Op] = []
    _visit(graph, graph.body, storages, False, late, first)
    if not late:
        return
    anchor = first[0]
    while anchor.block is not graph.body:
        assert anchor.block is not None
        assert anchor.block.parent is not None
        anchor = anchor.block.parent
    known: set[Value] = set(graph.args)
    symbols = {s.name for s in graph.symbols.values() if s.origin == "arg"}
    for op in graph.body.ops():
        if op is anchor:
            break
        known.update(op.results)
        symbols.update(bound_symbols(op))
    for check in late:
        needed = _slice(check, known, symbols)
        if needed is None:
            if not getattr(graph.sites[check.attrs["site"]].call, "undone", False):
                _raise_instead(graph, check)
            continue
        for op in [*needed, check]:
            assert op.block is not None
            op.block.unlink(op)
            graph.body.insert_before(anchor, op)
            known.update(op.results)
    _renumber(graph.body, 0)


def _is_effect(graph: Graph, op: Op) -> bool:
    """Whether a call back does what a call that is given up cannot take back."""
    if not op.attrs.get("effects"):
        return False
    return not getattr(getattr(graph.sites[op.attrs["site"]].call, "fn", None), "undone", False)


def _leave_errors_to_python(graph: Graph) -> None:
    storages = {graph.args[k] for k in graph.body.terminator.attrs["mutates"]}
    for op in graph.body.ops():
        visible = [o for o in op.walk() if _is_effect(graph, o) or (o.name == "write" and o.operands[1] in storages)]
        if visible or (op.regions and any(v in storages for v in op.operands)):
            return
        storages.update(r for r in op.results if op.operands and op.name == "write" and op.operands[1] in storages)
        for inner in op.walk():
            if inner.name in ("check", "raise") and graph.sites[inner.attrs["site"]].error != "deoptimise":
                site = graph.sites[inner.attrs["site"]]
                graph.sites.append(replace(site, error="deoptimise", call=None))
                inner.attrs["site"] = len(graph.sites) - 1


def _visit(graph: Graph, block: Block, storages: set[Value], written: bool, late: list[Op], first: list[Op]) -> bool:
    """Collect the checks behind visible writes; whether the block has written at its end. `first`: the first write."""
    for op in block.ops():
        if op.name == "check":
            if written and graph.sites[op.attrs["site"]].error == "deoptimise":
                late.append(op)
            continue
        visible = (op.name in UPDATES and _base(op.operands[UPDATES[op.name]]) in storages) or _is_effect(graph, op)
        if visible and not first:
            first.append(op)
        if op.name in ("view", "reshape"):
            continue
        if any(v in storages for v in op.operands) or op.regions:
            written = _regions(graph, op, storages, written, late, first)
            storages.update(r for r in op.results if r.type.kind == "array" and _carries(op, r, storages))
        written |= visible
    return written


def _base(value: Value) -> Value:
    """What a value is a view of: an update of a view of all of a storage is made in the storage's own memory."""
    while value.producer is not None and value.producer.name in ("view", "reshape"):
        value = value.producer.operands[0]
    return value


def _carries(op: Op, result: Value, storages: set[Value]) -> bool:
    """Whether a result is a version of a visible storage."""
    if op.name in UPDATES:
        return op.operands[UPDATES[op.name]] in storages
    if op.name in ("for", "while"):
        return op.operands[result.index] in storages
    if op.name in BRANCHES:
        return any(region.terminator.operands[result.index] in storages for region in op.regions)
    return False


def _regions(graph: Graph, op: Op, storages: set[Value], written: bool, late: list[Op], first: list[Op]) -> bool:
    if not op.regions:
        return written
    if op.name in ("for", "while"):
        for region in op.regions:
            storages.update(a for a, v in zip(region.args, op.operands, strict=True) if v in storages)
        trial: list[Op] = []
        writes = sum([_visit(graph, region, set(storages), False, [], trial) for region in op.regions]) > 0
        for region in op.regions:  # what a turn writes is there in the next one
            _visit(graph, region, storages, written or writes, late, first)
        return written or writes
    return sum([_visit(graph, region, storages, written, late, first) for region in op.regions]) > 0


def _slice(check: Op, known: set[Value], symbols: set[str]) -> list[Op] | None:
    """The scalar ops that make the check's operands of what is known at the anchor, in order; None: it cannot be."""
    found: dict[Op, None] = {}

    def visit(value: Value) -> bool:
        op = value.producer
        if value in known or op in found:
            return True
        if op is None or op.regions or len(found) > _SLICE_OPS or value.type.shape:
            return False
        if op.name in UPDATES:  # of an array without axes: what was written
            return False
        traits = op.defn.traits
        if (
            Trait.PURE not in traits
            or Trait.BINDS in traits
            or Trait.MAY_RAISE in traits
            or not symbols.issuperset(op_symbols(op))
        ):
            return False
        if not all(visit(v) for v in op.operands):
            return False
        found[op] = None
        return True

    return list(found) if all(visit(v) for v in check.operands) else None


def _raise_instead(graph: Graph, check: Op) -> None:
    site = graph.sites[check.attrs["site"]]
    if isinstance(site.call, Handled):
        raise errors.LeftToPython(
            errors.describe(
                f"{site.call.why}, after a write that the caller can see",
                site.loc,
                remedy="test for the condition with an `if`, write to a copy, or use fallback='eager'.",
            )
        )
    error = "OverflowError" if "integer" in site.message or "overflow" in site.message else "TraceError"
    why = "the call cannot be rerun in Python, for arrays of the caller's may have been written"
    text = f"{site.message}; {why} (use NumPy numbers, np.int64(k))"
    changed = replace(site, error=error, message=text)
    if changed not in graph.sites:
        graph.sites.append(changed)
    check.attrs["site"] = graph.sites.index(changed)


def _renumber(block: Block, order: int) -> int:
    """Number the ordered ops anew, as they now stand."""
    for op in block.ops():
        if "order" in op.attrs and Trait.ORDERED in op.defn.traits:
            order += 1
            op.attrs["order"] = order
        for region in op.regions:
            order = _renumber(region, order)
    return order
