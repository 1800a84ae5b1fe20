"""Updates in place that read their neighbours: `p[1:-1, 1:-1] += a * (p[:-2, 1:-1] + ...)`.

NumPy computes the whole right-hand side before it writes. So do two kernels with an array between them; but a row may
be written as soon as no row to come reads what it overwrites. If the furthest read is `lag` rows back, the last
`lag + 1` rows wait in a ring that stays in cache:

    for i in range(n):
        ring[i % (lag + 1)] = row i of the right-hand side
        p[i + 1 - lag] = ring[(i - lag) % (lag + 1)]        (from i = lag on)
    the last `lag` rows
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jitgraph.codegen.loops import For, Let, Load, Stmt, Store
from jitgraph.codegen.lower_kernel import Group
from jitgraph.codegen.lower_nest import Axis, affine, nest
from jitgraph.codegen.lower_scalar import KernelFrame
from jitgraph.codegen.lower_values import Index, Place, finish_kernel, origin_of
from jitgraph.codegen.lower_views import Memory
from jitgraph.ir.dims import DimLike, dim_max, mod, symbol
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.types import IndexMap

if TYPE_CHECKING:
    from jitgraph.codegen.lower import Lowering

#: Rows that may wait.
MAX_LAG = 3


def emit_lagged(low: Lowering, op: Op, following: Op | None, places: Mapping[Value, Place]) -> bool:
    """Lower the kernel `op` together with `following`, if that writes its only result into what it reads.

    Args:
        places: where the arguments of the kernel's region lie.
    """
    found = _written(op, following)
    if found is None or following is None or op.attrs.get("rows", 0):
        return False
    base, target = found
    memory = low.places.get(base)
    if not isinstance(memory, Memory):
        return False
    region = op.regions[0]
    value = region.terminator.operands[0]
    ops = [o for o in region.ops() if o.name != "yield"]
    if any(o.defn.lower is None and o.name not in ("view", "constant", "full", "iota", "dim") for o in ops):
        return False
    group = Group(low, ops, places, {value: memory})
    frame = group.frame
    if not isinstance(frame, KernelFrame) or len(group.nests) != 1 or len(group.nests[0].roots) != 1:
        return False
    axes, index = group.axes_of(value.type.shape)
    if len(axes) < 2:
        return False
    at = target.index(index)
    axes = group.in_memory_order(axes, memory, at)
    row, rest = axes[0], axes[1:]
    element = group.at(value, index)
    body: list[Stmt] = frame.body
    frame.body = []
    out = group.store_of(memory, at, element)
    lag = _lag(body, out, row)
    if lag is None:
        return False
    size = lag + 1
    shape = (size, *(a.size for a in rest))
    ring = Memory(low.temporary(memory.buffer.dtype, shape, range(len(shape))))
    place: Index = (mod(symbol(row.symbol), size), *(symbol(a.symbol) for a in rest))
    frame.body = body
    group.store(ring, place, element)
    body = frame.body
    rows = nest(rest, body)
    late, copy = _copy(group, ring, memory, target, index, axes)
    rows.append(For(late, dim_max(symbol(row.symbol) - lag, 0), symbol(row.symbol) - lag + 1, copy))
    frame.body = [For(row.symbol, 0, row.size, rows)]
    if lag:
        late, copy = _copy(group, ring, memory, target, index, axes)
        frame.body.append(For(late, dim_max(row.size - lag, 0), row.size, copy))
    finish_kernel(low, group, [], f"k{len(low.kernels)}", origin_of([*ops, following]))
    low.places[following.results[0]] = memory
    return True


def _written(op: Op, following: Op | None) -> tuple[Value, IndexMap] | None:
    """The storage that `following` writes the only result of `op` into, which nobody else reads, and where."""
    if following is None or len(op.results) != 1 or len(op.result.uses) != 1 or len(following.results) != 1:
        return None
    write = following
    outside: dict[Value, Value] = {}
    if following.name == "kernel":
        region = following.regions[0]
        inside = [o for o in region.ops() if o.name != "yield"]
        if len(inside) != 1:
            return None
        write = inside[0]
        outside = dict(zip(region.args, following.operands, strict=True))
    if write.name != "write":
        return None
    value, base = (outside.get(o, o) for o in write.operands)
    target: IndexMap = write.attrs["map"]
    if value is not op.result or value.type.shape != target.shape:
        return None
    return base, target


def _lag(body: list[Stmt], out: Store, row: Axis) -> int | None:
    """How many rows behind the newest one the body still reads what `out` overwrites; None: too many, or unknown."""
    names = {row.symbol: None}
    buffer = out.buffer
    axis, written = None, 0
    for k, d in enumerate(out.index):
        split = affine(d, names)
        if split is None or (row.symbol in split[0] and (axis is not None or split[0][row.symbol] != 1)):
            return None
        if row.symbol in split[0]:
            axis, written = k, split[1]  # type: ignore[assignment]
    if axis is None:
        return None
    lag = 0
    for s in body:
        if isinstance(s, Let):
            continue
        if not isinstance(s, Load):
            return None
        if s.buffer.name != buffer.name:
            continue
        if s.buffer.shape != buffer.shape or s.buffer.strides != buffer.strides:
            return None
        split = affine(s.index[axis], names)
        if split is None or split[0] != {row.symbol: 1}:
            return None
        back: DimLike = written - split[1]
        if not isinstance(back, int) or back > MAX_LAG:
            return None
        lag = max(lag, back)
    return lag


def _copy(
    group: Group, ring: Memory, memory: Memory, target: IndexMap, index: Index, axes: list[Axis]
) -> tuple[str, list[Stmt]]:
    """A fresh row index, and the loops that write this row from the ring to its place."""
    frame = group.frame
    fresh = [Axis(frame.index(), a.size) for a in axes]
    at = {symbol(a.symbol): symbol(b.symbol) for a, b in zip(axes, fresh, strict=True)}
    late = fresh[0].symbol
    before, frame.body = frame.body, []
    place: Index = (mod(symbol(late), ring.buffer.shape[0]), *(symbol(a.symbol) for a in fresh[1:]))
    value = group.load(ring, place)
    group.store(memory, target.index(tuple([at.get(d, d) if not isinstance(d, int) else d for d in index])), value)
    body, frame.body = frame.body, before
    return late, nest(fresh[1:], body)
