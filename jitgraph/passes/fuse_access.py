"""How one op of a kernel reads another's result: through which views, and whether at the same element.

Views, fills, sequences, constants and sizes cost nothing inside a kernel. They belong to no group: each kernel that
needs one has its own copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitgraph.ir.dims import Facts
from jitgraph.ir.graph import Block, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.storage import UPDATES, WRITES, Space, disjoint, storage_root, target_of
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType
from jitgraph.records import dataclass

#: Copied into each kernel that needs them.
FREE = frozenset(["view", "reshape", "full", "iota", "constant", "dim"])


def is_free(op: Op | None) -> bool:
    return op is not None and op.defn.name in FREE


def domain_of(op: Op) -> Shape | None:
    """The index space over which a kernel would compute `op`; None if it stands in no kernel."""
    defn = op.defn
    name = defn.name
    if name in WRITES:
        base = op.operands[1].producer
        if base is not None and base.name in ("view", "reshape"):
            return None
        shape: Shape = target_of(op)[1].shape
    elif Trait.REDUCTION in defn.traits and "axes" in op.attrs:
        shape = op.operands[0].type.shape
    elif Trait.ELEMENTWISE in defn.traits or name in ("copy", "take"):
        shape = op.result.type.shape
    else:
        return None
    return shape if any(d != 1 for d in shape) else None


def inputs_of(op: Op) -> list[Value]:
    """The operands that an op reads element by element (not the base of a write, nor what a `take` takes from)."""
    name = op.defn.name
    if name in WRITES:
        return op.operands[:1]
    if name == "take":  # an index with all axes of the result, or one that is the same for all elements
        return [v for v in op.operands[1:] if v.type.ndim in (0, op.result.type.ndim)]
    return op.operands


def elsewhere_of(op: Op) -> list[Value]:
    """The operands that an op reads at other elements than its own."""
    name = op.defn.name
    if name in WRITES:
        return op.operands[1:]
    if name == "take":
        return [v for v in op.operands if v not in inputs_of(op)]
    return []


def updated_arguments(region: Block) -> set[int]:
    """Numbers of the arguments of a kernel's region of which ops in it make next versions."""
    bases = (storage_root(o.operands[UPDATES[o.name]]) for o in region.ops() if o.name in UPDATES)
    return {base.index for base in bases if base.block is region}


def sources(op: Op) -> Iterator[Value]:
    """The values behind the operands of `op`, looked up through free ops; all that regions capture, too."""
    if op.regions:
        for value in captured(op):
            yield from _behind(value)
    for value in op.operands:
        yield from _behind(value)


def _behind(value: Value) -> Iterator[Value]:
    producer = value.producer
    if producer is None or not is_free(producer):
        yield value
        return
    for operand in producer.operands:
        yield from _behind(operand)


def captured(op: Op) -> dict[Value, None]:
    """Values from outside that the regions of `op` use."""
    inside: set[Value] = set()
    used: dict[Value, None] = {}
    for inner in op.walk():
        for region in inner.regions:
            inside.update(region.args)
        inside.update(inner.results)
        if inner is not op:
            used.update(dict.fromkeys(inner.operands))
    return {v: None for v in used if v not in inside}


@dataclass(frozen=True, slots=True)
class Access:
    """An operand as seen from the op: element `map(i)` of `base` at index i of the domain.

    `map` None is the same element; `opaque` is an access that is no affine map: then `map` is one of what `base` is
    seen as through the views and reshapes `space`.
    """

    base: Value
    map: IndexMap | None
    opaque: bool = False
    space: Space = ()


def access(value: Value, shape: Shape) -> Access:
    """`value` broadcast to `shape`, through the views behind it."""
    m: IndexMap | None = None
    if value.type.shape != shape:
        m = _aligned(value.type.shape, shape)
    while value.producer is not None and value.producer.name in ("view", "reshape"):
        op = value.producer
        value = op.operands[0]
        if op.name == "reshape":
            steps = [op.result.type.shape]
            while value.producer is not None and value.producer.name in ("view", "reshape"):
                op = value.producer
                steps.append(op.attrs["map"] if op.name == "view" else op.result.type.shape)
                value = op.operands[0]
            return Access(value, m, opaque=True, space=tuple(reversed(steps)))
        inner: IndexMap = op.attrs["map"]
        m = inner if m is None else inner.then(m)
    if m is not None and m.is_identity(value.type.shape):
        m = None
    return Access(value, m)


def harmless(found: Access, space: Space, target: IndexMap, facts: Facts) -> bool:
    """Does a read of the storage that a write goes to see the element that the same index writes, or none of those
    that are written?
    """
    if found.space != space:
        return False
    seen = found.map
    if seen is None:
        shape = space[-1] if space else found.base.type.shape
        seen = IndexMap.identity(shape.shape if isinstance(shape, IndexMap) else shape)
    return seen == target or disjoint(seen, target, facts)


def _aligned(shape: Shape, to: Shape) -> IndexMap:
    shift = len(to) - len(shape)
    return IndexMap(to, tuple(AxisMap(0) if d == 1 else AxisMap(0, 1, k + shift) for k, d in enumerate(shape)))


def is_row_access(found: Access, rows: int) -> bool:
    """Does the access read, for all indices of one row (equal in the first `rows` axes), one element of the base, which
    has that row's index in these axes and 0 in the others?
    """
    base = found.base.type.shape
    if found.opaque or len(base) < rows or any(d != 1 for d in base[rows:]):
        return False
    if found.map is None:
        return True
    for k, m in enumerate(found.map.axes):
        if k < rows:
            if base[k] == 1 and m.axis is None and found.map.shape[k] == 1:
                continue
            if m.axis != k or m.offset != 0 or m.step != 1:
                return False
        elif m.axis is not None or m.offset != 0:
            return False
    return True


def is_row_shape(shape: Shape, domain: Shape, rows: int) -> bool:
    """Has `shape` one element for each row of `domain`: its first `rows` axes, and at most axes of size 1 more?"""
    return len(shape) <= len(domain) and shape[:rows] == domain[:rows] and all(d == 1 for d in shape[rows:])


def rows_lie_together(t: TensorType, rows: int) -> bool:
    """Are the axes behind the first `rows` the innermost ones, in C order and without gaps?"""
    ndim = t.ndim
    if ndim <= rows:
        return True
    layout = t.layout
    inner = tuple(range(rows, ndim))
    if layout.order[rows:] != inner:
        return False
    return not any(k in layout.negative for k in inner) and not any(p >= rows for p in layout.breaks)
