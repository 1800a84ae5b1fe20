"""Where arrays lie: memory seen through index maps, reshapes that move nothing; and what symbols code depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from jitgraph.codegen.loops import (
    Address,
    Alloc,
    Bind,
    Buffer,
    CallKernel,
    DimValue,
    For,
    Free,
    Host,
    If,
    Library,
    Load,
    Operand,
    Reduce,
    Stmt,
    Store,
    Swap,
    While,
)
from jitgraph.ir.dims import Dim, DimLike, floordiv, is_factor, mod, symbols
from jitgraph.ir.types import IndexMap, Layout, Shape
from jitgraph.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Elements of a buffer.

    Attributes:
        map: which element stands at an index, if the value is a view of the buffer.
        drop: leading axes of the index that the buffer lacks, as it holds one row at a time.
    """

    buffer: Buffer
    map: IndexMap | None = None
    drop: int = 0

    def index(self, at: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
        if self.drop:
            at = at[self.drop :]
        return at if self.map is None else self.map.index(at)

    def view(self, outer: IndexMap) -> Memory:
        return Memory(self.buffer, outer if self.map is None else self.map.then(outer))

    def same(self, other: object) -> bool:
        """Whether both are the same elements at the same index."""
        return (
            isinstance(other, Memory)
            and self.buffer.name == other.buffer.name
            and self.buffer.shape == other.buffer.shape
            and self.map == other.map
            and self.drop == other.drop
        )


def dense_strides(shape: Shape, order: Sequence[int], itemsize: int) -> tuple[DimLike, ...]:
    """Byte strides of a gapless array whose axes lie in `order`, outermost first."""
    strides: list[DimLike] = [0] * len(shape)
    step: DimLike = itemsize
    for axis in reversed(order):
        strides[axis] = step
        step = step * shape[axis]
    return tuple(strides)


def layout_strides(shape: Shape, layout: Layout, itemsize: int, names: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Byte strides of an array of this layout: derived where it says so, else `names[axis]`."""
    strides: list[DimLike] = [0] * len(shape)
    inner: int | None = None
    for position in range(len(layout.order) - 1, -1, -1):
        axis = layout.order[position]
        if axis in layout.zero:
            continue
        if position in layout.breaks:
            strides[axis] = names[axis]
        elif inner is None:
            strides[axis] = -itemsize if axis in layout.negative else itemsize
        else:
            strides[axis] = shape[inner] * strides[inner]
            if (axis in layout.negative) != (inner in layout.negative):
                strides[axis] = -strides[axis]
        inner = axis
    return tuple(strides)


def broadcast_index(index: tuple[DimLike, ...], shape: Shape) -> tuple[DimLike, ...]:
    """The index into an operand of `shape` at `index` of the result it is broadcast to."""
    rank = len(shape)
    if not rank:
        return ()
    tail = index[len(index) - rank :] if len(index) > rank else index
    if 1 in shape:
        return tuple(0 if d == 1 else i for d, i in zip(shape, tail, strict=True))
    return tail


def axis_groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of axes (of size other than 1) of two shapes of one reshape with equal products.

    [n, m, k] to [n, m * k] gives ([0], [0]) and ([1, 2], [1]). What cannot be told apart ends in one last pair.
    """
    left = [k for k, d in enumerate(old) if d != 1]
    right = [k for k, d in enumerate(new) if d != 1]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        first_i, first_j = i, j
        a, b = old[left[i]], new[right[j]]
        i, j = i + 1, j + 1
        while a != b:
            if i < len(left) and (is_factor(a, b) or j == len(right)):
                a, i = a * old[left[i]], i + 1
            elif j < len(right) and (is_factor(b, a) or i == len(left)):
                b, j = b * new[right[j]], j + 1
            else:
                i, j = len(left), len(right)
                break
        groups.append((left[first_i:i], right[first_j:j]))
    if i < len(left) or j < len(right):
        source, target = groups.pop() if groups else ([], [])
        groups.append((source + left[i:], target + right[j:]))
    return groups


def reindex(index: tuple[DimLike, ...], shape: Shape, to: Shape) -> tuple[DimLike, ...]:
    """The index into an array of shape `to` of the element at `index` of its C-order reshape to `shape`."""
    found: list[DimLike] = [0] * len(to)
    if 0 in to:
        return tuple(found)  # there is no element
    groups = axis_groups(shape, to)
    for source, target in groups:
        if not target:
            continue
        flat: DimLike = 0
        for axis in source:
            flat = flat * shape[axis] + index[axis]
        for axis in reversed(target[1:]):
            found[axis] = mod(flat, to[axis])
            flat = floordiv(flat, to[axis])
        found[target[0]] = flat
    return tuple(found)


def as_buffer(memory: Memory) -> Buffer | None:
    """The view as a buffer of its own, if it starts where its memory starts."""
    if memory.drop:
        return None
    m, base = memory.map, memory.buffer
    if m is None:
        return base
    strides: list[DimLike] = [0] * len(m.shape)
    for a, stride in zip(m.axes, base.strides, strict=True):
        if a.offset != 0:
            return None
        if a.axis is not None:
            strides[a.axis] = strides[a.axis] + a.step * stride
    return Buffer(base.name, base.dtype, m.shape, tuple(strides))


def strided(memory: Memory) -> tuple[Buffer, DimLike] | None:
    """The view as a buffer, and the bytes from its memory's address to its first element."""
    if memory.drop:
        return None
    m, base = memory.map, memory.buffer
    if m is None:
        return base, 0
    strides: list[DimLike] = [0] * len(m.shape)
    offset: DimLike = 0
    for a, stride in zip(m.axes, base.strides, strict=True):
        offset = offset + a.offset * stride
        if a.axis is not None:
            strides[a.axis] = strides[a.axis] + a.step * stride
    return Buffer(base.name, base.dtype, m.shape, tuple(strides)), offset


def reshape_memory(memory: Memory, shape: Shape, to: Shape) -> Memory | None:
    """The same memory in another shape, if no element has to move."""
    buffer = as_buffer(memory)
    if buffer is None:
        return None
    strides: list[DimLike] = [0] * len(to)
    groups = axis_groups(shape, to)
    for source, target in groups:
        for outer, inner in pairwise(source):
            if buffer.strides[outer] != shape[inner] * buffer.strides[inner]:
                return None
        if not target:
            continue
        if not source:
            return None
        step = buffer.strides[source[-1]]
        for axis in reversed(target):
            strides[axis] = step
            step = step * to[axis]
    return Memory(Buffer(buffer.name, buffer.dtype, to, tuple(strides)))


def simplify_index(buffer: Buffer, index: tuple[DimLike, ...]) -> tuple[Buffer, tuple[DimLike, ...]]:
    """Undo a division that addressing does again: `x[f // m, f % m]` of contiguous axes is element `f` of them."""
    k = len(index) - 1
    while k > 0:
        d = index[k]
        if isinstance(d, Dim) and len(d.terms) == 1 and len(d.terms[0][0]) == 1:
            atom = d.terms[0][0][0]
            if atom.op == "mod":
                flat, size = atom.args
                if (
                    not isinstance(flat, str)
                    and not isinstance(size, str)
                    and size == buffer.shape[k]
                    and index[k - 1] == floordiv(flat, size)
                    and buffer.strides[k - 1] == buffer.shape[k] * buffer.strides[k]
                ):
                    shape = (*buffer.shape[: k - 1], buffer.shape[k - 1] * buffer.shape[k], *buffer.shape[k + 1 :])
                    strides = (*buffer.strides[: k - 1], *buffer.strides[k:])
                    buffer = Buffer(buffer.name, buffer.dtype, shape, strides)
                    index = (*index[: k - 1], flat, *index[k + 1 :])
        k -= 1
    return buffer, index


# ------------------------------------------------------------------------------------------------- what code depends on


def free_symbols(body: Iterable[Stmt], buffers: Iterable[Buffer], results: Iterable[Operand] = ()) -> list[str]:
    """Symbols that a body and its buffers' sizes use and that the body does not bind, in order of first use."""
    used: dict[str, None] = {}
    bound: set[str] = set()
    seen: set[DimLike] = set()
    seen_buffers: set[int] = set()

    def dim(d: DimLike) -> None:
        if isinstance(d, Dim) and d not in seen:
            seen.add(d)
            used.update(symbols(d))

    def buffer(b: Buffer) -> None:
        if id(b) not in seen_buffers:
            seen_buffers.add(id(b))
            for d in b.shape:
                dim(d)
            for d in b.strides:
                dim(d)

    def visit(stmts: Iterable[Stmt]) -> None:
        for s in stmts:
            if isinstance(s, (Load, Store)):
                buffer(s.buffer)
                for d in s.index:
                    dim(d)
            elif isinstance(s, DimValue):
                dim(s.dim)
            elif isinstance(s, Bind):
                bound.add(s.symbol)
            elif isinstance(s, For):
                bound.add(s.symbol)
                dim(s.lower)
                dim(s.upper)
                dim(s.step)
                dim(s.streams)
                visit(s.body)
            elif isinstance(s, Reduce):
                bound.add(s.symbol)
                dim(s.extent)
                for p in s.parts:
                    for limit in (p.chunk, p.period):
                        if limit is not None:
                            dim(limit)
                visit(s.body)
            elif isinstance(s, If):
                visit(s.then)
                visit(s.otherwise)
            elif isinstance(s, While):
                visit(s.test)
                visit(s.body)
            elif isinstance(s, (Alloc, Free)):
                buffer(s.buffer)
            elif isinstance(s, Swap):
                buffer(s.a)
                buffer(s.b)
            elif isinstance(s, Library):
                for a in s.args:
                    if isinstance(a, Address):
                        buffer(a.buffer)
                        for d in a.index:
                            dim(d)
                    elif isinstance(a, Dim):
                        dim(a)
            elif isinstance(s, CallKernel):
                for d in s.symbols:
                    dim(d)
                if s.split is not None:
                    dim(s.split.cost)
            elif isinstance(s, Host):
                for d in s.offsets:
                    dim(d)
                for x in (*s.inputs, *s.outputs):
                    if isinstance(x, Buffer):
                        buffer(x)

    for b in buffers:
        buffer(b)
    visit(body)
    return [s for s in used if s not in bound]
