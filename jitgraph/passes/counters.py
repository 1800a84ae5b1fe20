"""Overflow checks of integers that only count: no run is long enough for them to leave int64.

Python's integers do not overflow, so each `k += 1` in compiled code has a check. A value *counts* if it is a number,
a size, bounded by its making, or another one that counts and a small constant. Each such addition takes time, so that
within 2**50 of them (days) it stays below `FAR`; sums of two that count may double and do not count, but they fit.
"""

from __future__ import annotations

from jitgraph import dtypes
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, REGISTRY
from jitgraph.ir.rewrite import constant_number, replace_value
from jitgraph.ir.types import python_type
from jitgraph.passes.sizes import FAR, SMALL, fits

_OVERFLOWS = frozenset(["add_overflows", "sub_overflows", "mul_overflows"])
#: Those that hand on one of their operands, or something between it and 0.
_KEEP = {"as_kind": (0,), "where": (1, 2), "minimum": (0, 1), "maximum": (0, 1)}
_NARROW_BITS = 32


def counters(graph: Graph) -> bool:
    """Overflow of what only counts is false; True if there was one."""
    asked = [op for op in graph.walk() if op.name in _OVERFLOWS]
    if not asked:
        return False
    counting = _Counting(graph)
    b = Builder(graph)
    changed = False
    for op in asked:
        left, right = op.operands
        if not (counting.holds(left) and counting.holds(right)):
            continue
        if op.name == "mul_overflows" and not (_small(left) or _small(right)):
            continue
        b.ahead_of(op)
        no = b.emit(REGISTRY["constant"], (), (python_type("py_bool"),), {"value": False})
        replace_value(op.result, no.result, b)
        graph.erase(op)
        changed = True
    return changed


class _Counting:
    """All int64 scalars count but those that are made otherwise, and what these reach: one sweep along the uses."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.loops: dict[str, Op] = {}
        self.other: set[Value] = set()
        work = [a for a in graph.args if _is_counter(a)]
        feeds: dict[Value, list[Value]] = {}
        for op in graph.walk():
            if op.name == "for":
                self.loops[op.attrs["index"]] = op
            for value in op.results:
                if not _is_counter(value):
                    continue
                sources = self.sources(op, value)
                if sources is None:
                    work.append(value)
                    continue
                for source in sources:
                    feeds.setdefault(source, []).append(value)
            if op.name in ("for", "while"):
                for k, start in enumerate(op.operands):
                    if _is_counter(start):
                        for arg in (region.args[k] for region in op.regions):
                            feeds.setdefault(start, []).append(arg)
                            feeds.setdefault(op.regions[-1].terminator.operands[k], []).append(arg)
        while work:
            value = work.pop()
            if value not in self.other:
                self.other.add(value)
                work.extend(feeds.get(value, ()))

    def holds(self, value: Value) -> bool:
        return _is_counter(value) and value not in self.other

    def sources(self, op: Op, value: Value) -> list[Value] | None:
        """The values that have to count so that a result does; None if it does not anyhow."""
        name = op.name
        if name == "constant":
            return [] if abs(int(op.attrs["value"])) < FAR else None
        if name == "dim":
            return [] if fits(self.graph, op.attrs["value"], self.loops) else None
        if name in ("for", "while"):
            return [op.operands[value.index], op.regions[-1].terminator.operands[value.index]]
        if name in BRANCHES:
            return [region.terminator.operands[value.index] for region in op.regions]
        if name in _KEEP:
            return [op.operands[k] for k in _KEEP[name]]
        if name in ("add", "sub"):
            left, right = op.operands
            return [left] if _small(right) else [right] if _small(left) else None
        if name == "floordiv" and _positive(op.operands[1]):
            return [op.operands[0]]
        if name == "mod" and _positive(op.operands[1]):
            return []
        if name == "cast":
            source = op.operands[0].type.dtype
            return [] if source.kind in "bui" and 8 * source.itemsize <= _NARROW_BITS else None
        return None


def _is_counter(value: Value) -> bool:
    return value.type.dtype == dtypes.I64 and not value.type.ndim


def _small(value: Value) -> bool:
    number = constant_number(value)
    return number is not None and abs(int(number)) < SMALL


def _positive(value: Value) -> bool:
    number = constant_number(value)
    return number is not None and 0 < int(number) < FAR
