"""Storages: chains of versions that may share one piece of memory.

An update (`write`, `write_through`, `scatter`, `scatter_add`, `expand`) makes the next version of its base. Regions
hand versions on: what a loop carries stays in its storage if each turn yields a version of what it was given; a branch
does if both sides do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, Union

from jitgraph.ir.dims import DimLike, Facts
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.types import AxisMap, IndexMap, Shape

#: Ops whose result is the next version of the operand named.
UPDATES: dict[str, int] = {"write": 1, "write_through": 1, "scatter": 0, "scatter_add": 0, "expand": 0}
#: Those of them that store a value element by element.
WRITES = frozenset(["write", "write_through"])
#: Views, at least one of them a reshape, that lead from an array to the one that an index map is a map of.
Space: TypeAlias = tuple[Union[IndexMap, Shape], ...]

_Less: TypeAlias = Callable[[DimLike, DimLike], bool]


def target_of(op: Op) -> tuple[Space, IndexMap]:
    """Which elements of its base an op of `WRITES` stores."""
    if op.name == "write":
        return (), op.attrs["map"]
    *space, last = op.attrs["steps"]
    return tuple(space), last


def extended(space: Space, map: IndexMap, base_shape: Shape, steps: Space) -> Space:
    """The space of what is seen through `steps` (a reshape first) in a view of `space`; identities are left out."""
    shape = space[-1] if space else base_shape
    if isinstance(shape, IndexMap):
        shape = shape.shape
    return (*space, *steps) if map.is_identity(shape) else (*space, map, *steps)


def storage_root(value: Value) -> Value:
    """The first version of the storage of `value`, going through updates and the regions that make them."""
    return _root(value, None)


def storage_before(value: Value, owner: Op) -> Value:
    """The version that a region of `owner` makes `value` of: the last one from outside, if the storage begins there."""
    return _root(value, owner)


def _root(value: Value, owner: Op | None) -> Value:
    """The same; with `owner`, no further than to the first version from outside its regions.

    So a chain of branches is walked once, not once for each side of each.
    """
    while value.producer is not None and (owner is None or value.producer.block in owner.regions):
        op = value.producer
        name = op.name
        if name in UPDATES:
            value = op.operands[UPDATES[name]]
        elif not op.regions or (value.type.ndim == 0 and value.type.kind != "array"):
            return value
        elif name == "kernel":
            base = _root(op.regions[0].terminator.operands[value.index], op)
            if base.block is not op.regions[0]:
                return value
            value = op.operands[base.index]
        elif name in ("for", "while"):
            body = op.regions[-1]
            if _root(body.terminator.operands[value.index], op) is not body.args[value.index]:
                return value
            value = op.operands[value.index]
        else:
            bases = [_root(r.terminator.operands[value.index], op) for r in op.regions]
            if any(base is not bases[0] for base in bases):
                if any(base.producer is not None and base.producer.block in op.regions for base in bases):
                    return value
                bases = [storage_root(base) for base in bases]  # perhaps versions of one storage
                if any(base is not bases[0] for base in bases):
                    return value
            value = bases[0]
    return value


def storage_argument(value: Value) -> Value | None:
    """The block argument whose storage `value` is a version of; None if the storage begins at an op."""
    root = storage_root(value)
    return root if root.producer is None else None


def disjoint(a: IndexMap, b: IndexMap, facts: Facts) -> bool:
    """Whether it is proven that two views of one base have no element in common."""
    return apart(a, b, facts.is_lt)


def apart(a: IndexMap, b: IndexMap, less: _Less) -> bool:
    """Whether two views of one base have no element in common, by an order of sizes that is proven or decided."""
    return any(
        _apart(_range(p, a), _range(q, b), less) or _other_residue(p, q) for p, q in zip(a.axes, b.axes, strict=True)
    )


def _range(m: AxisMap, view: IndexMap) -> tuple[DimLike, DimLike] | None:
    """First and last base index along an axis, in rising order."""
    if m.axis is None:
        return m.offset, m.offset
    if not isinstance(m.step, int):
        return None
    end = m.offset + m.step * (view.shape[m.axis] - 1)
    return (m.offset, end) if m.step >= 0 else (end, m.offset)


def _apart(p: tuple[DimLike, DimLike] | None, q: tuple[DimLike, DimLike] | None, less: _Less) -> bool:
    return p is not None and q is not None and (less(p[1], q[0]) or less(q[1], p[0]))


def _other_residue(p: AxisMap, q: AxisMap) -> bool:
    """Every other element and the ones between them, say."""
    difference = p.offset - q.offset
    return (
        isinstance(difference, int)
        and isinstance(p.step, int)
        and p.step == q.step
        and p.axis is not None
        and q.axis is not None
        and abs(p.step) > 1
        and difference % p.step != 0
    )
