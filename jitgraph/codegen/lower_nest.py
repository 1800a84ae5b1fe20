"""Loop nests from straight-line bodies: which axes merge into one loop, and how far out each statement may stand.

A body is written once, over one index symbol per axis; the order of the loops, the merging of axes that lie next to
one another in every buffer, and the hoisting of what does not change in the inner loops are decided here, from the
accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jitgraph.codegen.loops import (
    Bind,
    Buffer,
    Const,
    DimValue,
    For,
    If,
    Let,
    Load,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
)
from jitgraph.ir.dims import Dim, DimLike, dim_min, symbol, symbols
from jitgraph.records import dataclass


@dataclass(slots=True)
class Axis:
    """One loop to be: index `symbol` from 0 to `size`; `role` says which neighbours it may merge with."""

    symbol: str
    size: DimLike
    role: str = ""


def loops_over(new_index: Callable[[], str], sizes: Sequence[DimLike]) -> tuple[list[Axis], list[DimLike]]:
    """A loop axis for each size but 1, and the index."""
    axes = []
    index: list[DimLike] = []
    for d in sizes:
        if d == 1:
            index.append(0)
        else:
            axes.append(Axis(new_index(), d))
            index.append(symbol(axes[-1].symbol))
    return axes, index


def affine(d: DimLike, names: Mapping[str, object]) -> tuple[dict[str, DimLike], DimLike] | None:
    """(coefficient of each of `names` in `d`, the rest); None if `d` is not affine in them."""
    if isinstance(d, int):
        return {}, d
    found: dict[str, DimLike] = {}
    rest: list[tuple[tuple, int]] = []  # type: ignore[type-arg]
    for mono, coefficient in d.terms:
        inside = None
        for position, atom in enumerate(mono):
            if atom.op == "sym":
                if atom.key in names:
                    if inside is not None:
                        return None
                    inside = position
            elif any(s in names for a in atom.dims() for s in symbols(a)):
                return None
        if inside is None:
            rest.append((mono, coefficient))
        else:
            others = mono[:inside] + mono[inside + 1 :]
            factor: DimLike = Dim(((others, coefficient),)) if others else coefficient
            found[mono[inside].key] = found.get(mono[inside].key, 0) + factor
    if not rest:
        return found, 0
    if len(rest) == 1 and not rest[0][0]:
        return found, rest[0][1]
    return found, Dim(tuple(rest))


@dataclass(slots=True)
class Access:
    """A load or store, and which loop symbols each of its index dims mentions."""

    stmt: Load | Store
    #: index dim -> (symbol, offset) for `symbol + offset`.
    plain: dict[int, tuple[str, DimLike]]
    position: dict[str, int]


def accesses_of(body: Iterable[Stmt], names: Mapping[str, object], opaque: set[str]) -> Iterator[Access]:
    """The loads and stores of a body; symbols used in any other way than `index = symbol + offset` become opaque."""
    for stmt in body:
        if isinstance(stmt, (Load, Store)):
            access = Access(stmt, {}, {})
            for k, d in enumerate(stmt.index):
                if isinstance(d, int):
                    continue
                split = affine(d, names)
                if split is None:
                    opaque.update(s for s in symbols(d) if s in names)
                    continue
                for name, factor in split[0].items():
                    if factor != 1 or len(split[0]) > 1 or name in access.position:
                        opaque.add(name)
                    else:
                        access.plain[k] = (name, split[1])
                        access.position[name] = k
            yield access
        elif isinstance(stmt, DimValue):
            opaque.update(s for s in symbols(stmt.dim) if s in names)
        elif isinstance(stmt, For):
            for d in (stmt.lower, stmt.upper, stmt.step):
                opaque.update(s for s in symbols(d) if s in names)
            yield from accesses_of(stmt.body, names, opaque)
        elif isinstance(stmt, Reduce):
            opaque.update(s for s in symbols(stmt.extent) if s in names)
            yield from accesses_of(stmt.body, names, opaque)
        elif isinstance(stmt, If):
            yield from accesses_of(stmt.then, names, opaque)
            yield from accesses_of(stmt.otherwise, names, opaque)
        elif isinstance(stmt, While):
            yield from accesses_of(stmt.test, names, opaque)
            yield from accesses_of(stmt.body, names, opaque)


def merge_axes(axes: list[Axis], body: list[Stmt]) -> list[Axis]:
    """Merge neighbouring axes (outer to inner) that are contiguous in every access; rewrites the accesses.

    Two axes merge if they have the same role and each access either mentions neither, or has them on two axes of its
    buffer where one step of the outer is the inner one's whole extent.
    """
    if len(axes) < 2:
        return axes
    names = {a.symbol: None for a in axes}
    opaque: set[str] = set()
    accesses = list(accesses_of(body, names, opaque))
    merged = [axes[-1]]
    for outer in reversed(axes[:-1]):
        inner = merged[-1]
        if (
            outer.role != inner.role
            or outer.symbol in opaque
            or inner.symbol in opaque
            or not all(contiguous(a, outer, inner) for a in accesses)
        ):
            merged.append(outer)
            continue
        for access in accesses:
            if outer.symbol in access.position:
                _merge_access(access, outer.symbol, inner.symbol)
        merged[-1] = Axis(inner.symbol, outer.size * inner.size, inner.role)
    merged.reverse()
    return merged


def contiguous(access: Access, outer: Axis, inner: Axis) -> bool:
    p, q = access.position.get(outer.symbol), access.position.get(inner.symbol)
    if p is None or q is None:
        return p is None and q is None
    buffer = access.stmt.buffer
    return (
        access.plain[q][1] == 0
        and buffer.shape[q] == inner.size
        and buffer.strides[p] == buffer.shape[q] * buffer.strides[q]
    )


def _merge_access(access: Access, outer: str, inner: str) -> None:
    stmt = access.stmt
    p, q = access.position.pop(outer), access.position[inner]
    buffer, offset = stmt.buffer, access.plain[p][1]
    shape, strides, index = list(buffer.shape), list(buffer.strides), list(stmt.index)
    index[q] = index[q] + offset * shape[q]
    access.plain[q] = (inner, offset * shape[q])
    shape[q] = shape[p] * shape[q]
    for items in (shape, strides, index):
        del items[p]
    access.plain = {k - (k > p): v for k, v in access.plain.items() if k != p}
    access.position = {s: k - (k > p) for s, k in access.position.items()}
    stmt.buffer = Buffer(buffer.name, buffer.dtype, tuple(shape), tuple(strides))
    stmt.index = tuple(index)


def split_levels(axes: list[Axis], body: list[Stmt], carried: Sequence[Var] = ()) -> list[list[Stmt]]:
    """The statements by the loop they stand in: [0] in front of the nest, [k] in the body of `axes[k - 1]`.

    A statement stands in the innermost loop that it depends on; stores, checks and compound statements in the last one,
    whose carried scalars are `carried`. Nothing is read in front of a loop that is known to have no turn: the array
    may have no element.
    """
    depth = len(axes)
    empty = max((k + 1 for k, a in enumerate(axes) if a.size == 0), default=0)
    level_of_symbol = {a.symbol: k + 1 for k, a in enumerate(axes)}
    level_of_var = dict.fromkeys(carried, depth)
    levels: list[list[Stmt]] = [[] for _ in range(depth + 1)]

    def of_dim(d: DimLike) -> int:
        if isinstance(d, int):
            return 0
        level = 0
        for mono, _ in d.terms:
            for atom in mono:
                if atom.op == "sym":
                    level = max(level, level_of_symbol.get(atom.key, 0))
                else:
                    for inner in atom.dims():
                        level = max(level, of_dim(inner))
        return level

    for stmt in body:
        if isinstance(stmt, Let):
            level = 0
            for arg in stmt.args:
                if isinstance(arg, Var):
                    level = max(level, level_of_var.get(arg, 0))
            level_of_var[stmt.var] = level
        elif isinstance(stmt, Load):
            level = empty
            for d in stmt.index:
                level = max(level, of_dim(d))
            level_of_var[stmt.var] = level
            if stmt.imag is not None:
                level_of_var[stmt.imag] = level
        elif isinstance(stmt, DimValue):
            level = level_of_var[stmt.var] = of_dim(stmt.dim)
        elif isinstance(stmt, Bind):
            level = 0 if isinstance(stmt.value, Const) else level_of_var.get(stmt.value, 0)
            level_of_symbol[stmt.symbol] = level
        else:
            level = depth
            if isinstance(stmt, (For, While)):
                level_of_var.update((c.result, depth) for c in stmt.carried)
            elif isinstance(stmt, If):
                level_of_var.update((m.result, depth) for m in stmt.merges)
            elif isinstance(stmt, Reduce):
                level_of_var.update((p.result, depth) for p in stmt.parts)
        levels[level].append(stmt)
    return levels


#: Sides of the tiles in which what lies across the inner loop is read: its cache lines, one for each element of a
#: tile's row, stay near until the next rows have used them up.
STRIP = 128


def across(axes: list[Axis], body: list[Stmt]) -> int | None:
    """The outer axis along which something lies gapless that the innermost loop would gather."""
    names = {a.symbol: None for a in axes}
    inner = axes[-1].symbol
    for access in accesses_of(body, names, set()):
        buffer, at = access.stmt.buffer, access.position.get(inner)
        size = buffer.dtype.itemsize
        if at is None or buffer.strides[at] in (size, -size):
            continue
        for k, axis in enumerate(axes[:-1]):
            other = access.position.get(axis.symbol)
            if other is not None and buffer.strides[other] in (size, -size):
                return k
    return None


def nest(axes: list[Axis], body: list[Stmt], vector: bool = True, tile: tuple[str, str] | None = None) -> list[Stmt]:
    """The loops over `axes` (outer to inner) around `body`; the innermost is a vector loop if `vector`.

    With two fresh symbols `tile`, an inner loop that gathers along what another axis has gapless goes over tiles of
    both: for a in range(0, n, STRIP): for b in range(0, m, STRIP): for i in a's strip: for j in b's strip.
    """
    axes = merge_axes(axes, body)
    crossed = across(axes, body) if tile is not None and len(axes) > 1 else None
    bounds: dict[str, tuple[DimLike, DimLike]] = {}
    tiles: list[tuple[str, DimLike]] = []
    if crossed is not None:
        assert tile is not None
        axes = [*axes[:crossed], *axes[crossed + 1 : -1], axes[crossed], axes[-1]]
        for name, axis in zip(tile, axes[-2:], strict=True):
            if not (isinstance(axis.size, int) and axis.size <= STRIP):
                bounds[axis.symbol] = symbol(name), dim_min(symbol(name) + STRIP, axis.size)
                tiles.append((name, axis.size))
    levels = split_levels(axes, body)
    inner = levels[-1]
    for k in range(len(axes) - 1, -1, -1):
        axis = axes[k]
        lower, upper = bounds.get(axis.symbol, (0, axis.size))
        last = k == len(axes) - 1
        loop = For(axis.symbol, lower, upper, inner, role="vector" if vector and last else "serial")
        if k == len(axes) - 2:
            for name, size in reversed(tiles):
                loop = For(name, 0, size, [loop], STRIP)
        inner = [*levels[k], loop]
    return inner
