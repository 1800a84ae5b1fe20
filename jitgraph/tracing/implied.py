"""What the tests of branches say of other bools: within `if a is not None and a > 0` both parts hold."""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph.ir.graph import Op, Value
from jitgraph.ir.rewrite import constant_of


def implied(test: Value, truth: bool) -> dict[Value, bool]:
    """What is known where a bool is `truth`: itself, and operands of `not`, `and` and `or`."""
    found: dict[Value, bool] = {}
    work = [(test, truth)]
    while work:
        value, truth = work.pop()
        found[value] = truth
        op = value.producer
        if op is None:
            continue
        if op.name in ("logical_not", "as_kind"):
            work.append((op.operands[0], truth == (op.name == "as_kind")))
        elif op.name == ("logical_and" if truth else "logical_or"):
            work += [(v, truth) for v in op.operands]
        elif op.name in ("where", "cond"):
            way, sides = op.operands[0], _sides(op, value)
            for holds in (True, False):
                here, there = sides if holds else reversed(sides)
                if _gives(there, way, not holds) is (not truth):  # so the other side was taken
                    work += [(way, holds), (here, truth)]
                    break
    return found


def _sides(op: Op, value: Value) -> Sequence[Value]:
    """What a merged value is if the test holds, and if not."""
    if op.name == "where":
        return op.operands[1:]
    k = op.results.index(value)
    return [region.terminator.operands[k] for region in op.regions]


def _gives(side: Value, way: Value, holds: bool) -> bool | None:
    """The bool that a side is, where the test `way` is `holds`; None if only the run knows."""
    known = constant_of(side)
    if known is not None:
        return bool(known)
    return holds if _plain(side) is _plain(way) else None


def _plain(value: Value) -> Value:
    """A bool without conversions of its kind."""
    while value.producer is not None and value.producer.name == "as_kind":
        value = value.producer.operands[0]
    return value
