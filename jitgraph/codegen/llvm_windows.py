"""Neighbours from registers: loads of a stencil that lie a few elements apart share the vectors between them.

    x[i - 1], x[i], x[i + 1] of 32 lanes  =>  x[i] as four vectors, one on either side; the others are shuffled

Where a loop runs several vectors side by side, this takes 6 loads in place of 12, of which 8 straddle two cache lines
each. Only elements are read that are read anyhow. For buffers that the loop does not write.
"""

from __future__ import annotations

from jitgraph.codegen.assembler import V
from jitgraph.codegen.llvm_function import FunctionEmitter, memory_type
from jitgraph.codegen.loops import Buffer, Load, Stmt
from jitgraph.ir.dims import Dim, DimLike, split_linear
from jitgraph.records import dataclass

#: Loads that share vectors: with fewer, shuffles cost as much as they save.
LEAST = 3


@dataclass(slots=True)
class Window:
    """Loads of one buffer that differ by a constant number of elements.

    Attributes:
        low, base, high: byte offsets, without what all have in common: of the first and the last load, and of the one
            that is loaded as it stands.
        lanes: of one of the vectors side by side.
        parts: the vectors at `base`; empty until the first of the loads.
    """

    low: int
    base: int
    high: int
    lanes: int
    parts: list[V]


def windows_of(f: FunctionEmitter, body: list[Stmt], stored: set[str], lanes: int) -> dict[object, Window]:
    """The windows of straight-line code in a vector loop, by what their loads have in common."""
    if not f.target.has_avx512:  # elsewhere a shuffle across a register costs two
        return {}
    found: dict[tuple[object, ...], list[int]] = {}
    buffers: dict[tuple[object, ...], Buffer] = {}
    for s in body:
        if not isinstance(s, Load) or s.imag is not None or s.buffer.name in stored or not s.buffer.dtype.isnative:
            continue
        offset = f.offset(s.buffer, s.index)
        split = split_linear(offset, f.index)
        if isinstance(offset, int) or split is None or split[0] != s.buffer.dtype.itemsize:
            continue
        key = _key(s, offset)
        buffers[key] = s.buffer
        if offset.constant not in found.setdefault(key, []):
            found[key].append(offset.constant)
    made: dict[object, Window] = {}
    for key, offsets in found.items():
        offsets.sort()
        low, base, high = offsets[0], offsets[len(offsets) // 2], offsets[-1]
        size = buffers[key].dtype.itemsize
        near = max(high - base, base - low) <= lanes // 2 * size and all((x - base) % size == 0 for x in offsets)
        if len(offsets) >= LEAST and near and size >= 4:  # smaller ones have no such shuffles
            made[key] = Window(low, base, high, lanes, [])
    return made


def _key(s: Load, offset: Dim) -> tuple[object, ...]:
    return s.buffer.name, s.buffer.dtype, offset - offset.constant


def from_window(f: FunctionEmitter, s: Load, offset: DimLike) -> V | None:
    """What a load of whole vectors gives, out of its window; None if it belongs to none."""
    if not f.windows or isinstance(offset, int):
        return None
    w = f.windows.get(_key(s, offset))
    if w is None:
        return None
    a, size, lanes = f.a, s.buffer.dtype.itemsize, w.lanes
    count = f.lanes // lanes

    def load(at: int, vector: int) -> V:
        place = a.gep(f.pointer(s.buffer, offset - offset.constant + at), vector * lanes * size, "i8")
        return a.load(place, memory_type(s.buffer.dtype), lanes=lanes, align=1)

    if not w.parts:
        w.parts += [load(w.base, k) for k in range(count)]
    ahead = (offset.constant - w.base) // size
    if ahead > 0:  # the lanes behind the last part are the last ones of the last vector at `high`
        furthest = (w.high - w.base) // size
        pairs = zip(w.parts, w.parts[1:], strict=False)
        found = [a.shuffle(x, y, range(ahead, ahead + lanes)) for x, y in pairs]
        beyond = [2 * lanes - furthest + k for k in range(ahead)]
        found.append(a.shuffle(w.parts[-1], load(w.high, count - 1), [*range(ahead, lanes), *beyond]))
    elif ahead < 0:
        furthest = (w.base - w.low) // size
        before = [furthest + ahead + k for k in range(-ahead)]
        found = [a.shuffle(load(w.low, 0), w.parts[0], [*before, *range(lanes, 2 * lanes + ahead)])]
        pairs = zip(w.parts, w.parts[1:], strict=False)
        found += [a.shuffle(x, y, range(lanes + ahead, 2 * lanes + ahead)) for x, y in pairs]
    else:
        found = w.parts
    while len(found) > 1:
        found = [a.concat(x, y) for x, y in zip(found[::2], found[1::2], strict=True)]
    return found[0]
