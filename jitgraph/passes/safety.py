"""What may run although the program would not have come to it: other paths, no turn of a loop, a check that fails."""

from __future__ import annotations

from collections.abc import Mapping

from jitgraph.ir.dims import DimLike, Facts, symbols
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.rewrite import constant_number

#: Beside the symbols that a view relies on, and what a check that always fails speaks of: nothing passes it.
ANY = "*"


def is_movable(op: Op) -> bool:
    """Whether an op is nothing but its result, wherever it stands."""
    traits = op.defn.traits
    return not op.regions and Trait.PURE in traits and Trait.BINDS not in traits and Trait.MAY_RAISE not in traits


def stays_inside(op: Op, facts: Facts) -> bool:
    """Whether a view is proven to be inside its base, so that it may be read whatever has not been checked yet."""
    return not needs(op, facts)


def needs(op: Op, facts: Facts) -> set[str]:
    """The symbols that a view relies on to be inside its base, if that is not proven: checks of them keep it inside.

    `ANY` is among them then.
    """
    found: set[str] = set()
    if op.name != "view":
        return found
    m = op.attrs["map"]
    for axis, size in zip(m.axes, op.operands[0].type.shape, strict=True):
        extent: DimLike = 1 if axis.axis is None else m.shape[axis.axis]
        if isinstance(axis.step, int) or axis.axis is None:
            step = axis.step if axis.axis is not None else 0
            far = axis.offset + step * (extent - 1)
            low, high = (axis.offset, far) if step >= 0 else (far, axis.offset)
            if (low == 0 and high == size - 1) or (facts.is_le(0, low) and facts.is_lt(high, size)):
                continue
        names = {**symbols(axis.offset), **symbols(extent), **symbols(axis.step)}
        found.update(names or symbols(size), (ANY,))
    return found


def names_of(graph: Graph) -> dict[Value, set[str]]:
    """The symbols that values are bound to."""
    found: dict[Value, set[str]] = {}
    for op in graph.walk():
        if op.name == "bind":
            found.setdefault(op.operands[0], set()).add(op.attrs["symbol"])
    return found


def guarded_by(condition: Value, names: Mapping[Value, set[str]], depth: int = 8) -> set[str]:
    """The symbols that a condition speaks of, `ANY` for one that is never met; `names` are those of values."""
    op = condition.producer
    found = names.get(condition, set())
    if op is None or not depth:
        return found
    if op.name == "constant" and condition.type.dtype.kind == "b" and not constant_number(condition):
        return found | {ANY}
    if op.name == "dim":
        return found | set(symbols(op.attrs["value"]))
    return found.union(*(guarded_by(v, names, depth - 1) for v in op.operands))
