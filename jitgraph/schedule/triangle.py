"""Triangular recurrences by rows: dot products of what a loop has computed are added up over lanes as it goes on.

    for j: a[j] = f(j, dot of a[k], b[k, j] for k in range(j))
    =>  for each block of four k: finish a[k], then for all later j over lanes: sums[j] += a[k] * b[k, j]

BLAS adds strided vectors in groups of four products onto two sums, so two rows of partial sums hold them, and the last
products of an element, less than four, are added when it is finished. All bits stay. Legal where what the sums read
besides the loop's own elements is not written by the loop.
"""

from __future__ import annotations

from jitgraph import dtypes
from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.loops import (
    Alloc,
    Buffer,
    Const,
    DimValue,
    For,
    Let,
    Load,
    Part,
    Reduce,
    Stmt,
    Store,
    Var,
)
from jitgraph.ir.dims import DimLike, Facts, as_symbol, floordiv, substitute, symbol, symbols
from jitgraph.records import dataclass
from jitgraph.schedule.memory import Place, apart, dense, place_of
from jitgraph.schedule.nests import rewritten
from jitgraph.schedule.simplify import index_bounds, index_range
from jitgraph.schedule.statements import Names, Renaming, rebuilt

#: Products that BLAS adds at a time.
GROUP = 4
#: Rows of sums begin at multiples of it, so that a vector is loaded as it was stored.
ALIGNED = 8


def triangles(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body whose triangular recurrences run over lanes."""

    def over_lanes(s: For, inside: Facts) -> list[Stmt] | None:
        found = _triangle(s, inside, names) if s.role == "serial" else None
        return None if found is None else _by_rows(found, names)

    return rewritten(body, facts, over_lanes)


@dataclass(slots=True)
class _Triangle:
    """A loop whose element j needs a dot product of the elements before it.

    Attributes:
        at: where in the body the product stands.
        own, other: what it multiplies: the loop's elements, and what the loop does not write.
        whole: `other` exists for all k and j of the loop.
    """

    loop: For
    at: int
    product: Reduce
    own: Load
    other: Load
    whole: bool


def _triangle(s: For, facts: Facts, names: Names) -> _Triangle | None:
    if s.step != 1 or s.carried or s.lower != 0:
        return None
    products = [k for k, x in enumerate(s.body) if isinstance(x, Reduce)]
    stores = [x for x in s.body if isinstance(x, Store)]
    if len(products) != 1 or len(stores) != 1 or stores[0].imag is not None:
        return None
    if not all(isinstance(x, (Let, DimValue, Load, Store, Reduce)) for x in s.body):
        return None
    product = s.body[products[0]]
    assert isinstance(product, Reduce)
    part = product.parts[0]
    if len(product.parts) != 1 or part.order != "dot" or not ORDERS[part.model].strided:
        return None
    if as_symbol(product.extent) != s.symbol or len(product.body) != 2:
        return None
    loads = [x for x in product.body if isinstance(x, Load)]
    if {x.var for x in loads} != {part.value, part.factor}:
        return None
    own = [x for x in loads if _at(x, product.symbol, symbol(s.symbol)) == place_of(stores[0])]
    if len(own) != 1 or not any(product.symbol in symbols(d) for d in own[0].index):
        return None
    other = next(x for x in loads if x is not own[0])
    inside = facts.copy()
    index_range(inside, s.symbol, s.lower, s.upper, 1)
    index_bounds(inside, product.symbol, 0, product.extent, 1)
    another = names.symbol()
    index_bounds(inside, another, s.lower, s.upper, 1)
    if not apart(place_of(other), _at(stores[0], s.symbol, symbol(another)), inside):
        return None
    square = facts.copy()
    index_range(square, s.symbol, 0, s.upper, 1)
    index_range(square, product.symbol, 0, s.upper, 1)
    inside_memory = dense(other.buffer) and all(
        square.is_le(0, d) and square.is_lt(d, size) for d, size in zip(other.index, other.buffer.shape, strict=True)
    )
    return _Triangle(s, products[0], product, own[0], other, inside_memory)


def _at(s: Load | Store, name: str, d: DimLike) -> Place:
    """The place of an access at another index."""
    return s.buffer, tuple(substitute(i, {name: d}) for i in s.index)


def _by_rows(t: _Triangle, names: Names) -> list[Stmt]:
    s, size = t.loop, t.loop.upper
    rows = [Buffer(names.buffer("sums"), dtypes.F64, (size,), (8,)) for _ in range(2)]
    index, group = names.symbol(), names.symbol()
    at = symbol(group)
    clear: list[Stmt] = [Store(row, (symbol(index),), Const(0.0, dtypes.F64)) for row in rows]
    start: DimLike = at + GROUP
    if t.whole:
        start = floordiv(start, ALIGNED) * ALIGNED
    finished = [x for k in range(GROUP) for x in _finished(t, rows, at, at + k, names)]
    later = For(index, start, size, _added(t, rows, at, index, names), role="vector")
    whole = floordiv(size, GROUP) * GROUP
    last = For(s.symbol, whole, size, _finished(t, rows, whole, symbol(s.symbol), names))
    return [
        *(Alloc(row, "scratch") for row in rows),
        For(index, 0, size, clear, role="vector"),
        For(group, 0, whole, [*finished, later], GROUP),
        last,
    ]


def _finished(t: _Triangle, rows: list[Buffer], group: DimLike, j: DimLike, names: Names) -> list[Stmt]:
    """Turn `j` of the loop, whose product is done up to a group of four."""
    s, part = t.loop, t.product.parts[0]
    sums = [names.var(dtypes.F64) for _ in rows]
    total = names.var(dtypes.F64)
    inside = Renaming(names=names)
    inside.set_dim(s.symbol, j)
    before = rebuilt(s.body[: t.at], inside)
    index = names.symbol()
    r = Renaming(names=names)
    r.set_dim(s.symbol, j)
    r.set_dim(t.product.symbol, group + symbol(index))
    loads = rebuilt(t.product.body, r)
    assert part.factor is not None
    x, y = r.operand(part.value), r.operand(part.factor)
    rest = Part(total, "sum", "dot", x, sums[0], factor=y, model=part.model.replace(".strided", ".rest"))
    return [
        *before,
        *(Load(v, row, (j,)) for v, row in zip(sums, rows, strict=True)),
        Reduce(index, j - group, loads, [rest]),
        Let(inside.define(part.result), "add", (total, sums[1])),
        *rebuilt(s.body[t.at + 1 :], inside),
    ]


def _added(t: _Triangle, rows: list[Buffer], group: DimLike, index: str, names: Names) -> list[Stmt]:
    """The products of a group of four, added to the partial sums of one later element."""
    f64 = dtypes.F64
    body: list[Stmt] = []
    products: list[Var] = []
    for k in range(GROUP):
        r = Renaming(names=names)
        r.set_dim(t.product.symbol, group + k)
        r.set_dim(t.loop.symbol, symbol(index))
        body += rebuilt([t.own, t.other], r)
        products.append(names.var(f64))
        body.append(Let(products[-1], "mul", (r.operand(t.own.var), r.operand(t.other.var))))
    for k, row in enumerate(rows):
        before, pair, after = (names.var(f64) for _ in range(3))
        body += [
            Load(before, row, (symbol(index),)),
            Let(pair, "add", (products[k], products[k + 2])),
            Let(after, "add", (before, pair)),
            Store(row, (symbol(index),), after),
        ]
    return body
