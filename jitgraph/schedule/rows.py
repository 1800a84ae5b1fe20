"""Dot products of neighbouring rows side by side: `JAM` turns of a loop at once share what they load.

A recurrence, whose turn i needs all before it, multiplies what is there for `JAM` turns, then adds the last products:

    for i: x[i] = f(i, dot of a[i, k], x[k] for k in range(i))
    =>  for each four i: dots of four rows with x[: i & -16], then the rest, row by row

Where a turn has a loop of products up to its own index, the part of it that four turns have in common runs first:

    for i: {for j in range(i): b[i, j] = f(dot of b[i, k], b[j, k] for k in range(j)); more(i)}
    =>  for each four i: {for j in range(i): of four rows; for each row: {for j from there: ...; more}}

Legal where of the accesses that change places no two meet of which one writes. Each sum keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.loops import DimValue, For, Let, Load, Part, Reduce, Stmt, Store, Var
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import DimLike, Facts, as_symbol, floordiv, split_linear, substitute, symbol, symbols
from jitgraph.schedule.memory import Place, apart, place_of
from jitgraph.schedule.nests import rewritten
from jitgraph.schedule.simplify import index_bounds, index_range
from jitgraph.schedule.statements import Names, Renaming, rebuilt

#: Rows side by side.
JAM = 4
#: Elements that BLAS adds in vectors; what is left goes one by one.
WHOLE = 16


def rows(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body whose dot products run in rows side by side where that is legal."""

    def beside(s: For, inside: Facts) -> list[Stmt] | None:
        if s.role != "serial":
            return None
        return _recurrence(s, inside, names) or _triangle(s, inside, names)

    return rewritten(body, facts, beside)


def _product(body: list[Stmt]) -> int | None:
    """Where the one product of contiguous vectors stands in straight-line code, or None."""
    found = [k for k, x in enumerate(body) if isinstance(x, Reduce)]
    if len(found) != 1 or not all(isinstance(x, (Let, DimValue, Load, Store, Reduce)) for x in body):
        return None
    s = body[found[0]]
    assert isinstance(s, Reduce)
    part = s.parts[0]
    if len(s.parts) != 1 or part.order != "dot" or ORDERS[part.model].by_lane:
        return None
    if not all(isinstance(x, (Let, DimValue, Load)) for x in s.body):
        return None
    return found[0]


def _at(s: Load | Store, name: str, d: DimLike) -> Place:
    """The place of an access at another index."""
    return s.buffer, tuple(substitute(i, {name: d}) for i in s.index)


# --- recurrences ----------------------------------------------------------------------------------------------------


def _recurrence(s: For, facts: Facts, names: Names) -> list[Stmt] | None:
    at = _product(s.body)
    if at is None or s.step != 1 or s.carried or s.lower != 0:
        return None
    product = s.body[at]
    assert isinstance(product, Reduce)
    stores = [x for x in s.body if isinstance(x, Store)]
    if len(stores) != 1 or as_symbol(product.extent) != s.symbol:
        return None
    loads = [x for x in product.body if isinstance(x, Load)]
    if len(loads) != len(product.body):
        return None
    own = [x for x in loads if _at(x, product.symbol, symbol(s.symbol)) == place_of(stores[0])]
    if not own or not any(product.symbol in symbols(d) for d in own[0].index):
        return None
    another = names.symbol()
    inside = facts.copy()
    index_range(inside, s.symbol, 0, s.upper, 1)
    index_bounds(inside, product.symbol, 0, product.extent, 1)
    index_bounds(inside, another, 0, s.upper, 1)
    written = _at(stores[0], s.symbol, symbol(another))
    if not all(apart(place_of(x), written, inside) for x in loads if x not in own):
        return None
    return _four_turns(s, at, product, names)


def _four_turns(s: For, at: int, product: Reduce, names: Names) -> list[Stmt]:
    block = names.symbol()
    first = symbol(block)
    whole = floordiv(first, WHOLE) * WHOLE
    part = product.parts[0]
    dots = _side_by_side(product, s.symbol, [Renaming(names=names) for _ in range(JAM)], first, 0, whole, names)
    sums = [p.result for p in dots.parts]
    rest = f"{part.model}.rest"
    more = _side_by_side(
        product, s.symbol, [Renaming(names=names) for _ in range(JAM)], first, whole, first - whole, names, sums, rest
    )
    body: list[Stmt] = [dots, more]
    for k in range(JAM):
        r = Renaming(names=names)
        r.set_dim(s.symbol, first + k)
        body += rebuilt(s.body[:at], r)
        last = _side_by_side(product, s.symbol, [r], first + k, first, k, names, [more.parts[k].result], rest)
        body.append(last)
        body += rebuilt(s.body[at + 1 :], r)
    end = floordiv(s.upper, JAM) * JAM
    main = For(block, 0, end, body, JAM)
    left = rebuilt([For(s.symbol, end, s.upper, s.body)], Renaming(names=names))
    return [main, *left]


def _side_by_side(
    product: Reduce,
    index: str,
    renamings: list[Renaming],
    first: DimLike,
    start: DimLike,
    extent: DimLike,
    names: Names,
    inits: list[Var] | None = None,
    model: str = "",
) -> Reduce:
    """The product of neighbouring turns, one for each renaming: `extent` elements from `start` on, equal loads once.

    The renamings learn the names of the results.
    """
    along = names.symbol()
    body: list[Stmt] = []
    parts: list[Part] = []
    known: dict[Place, Var] = {}
    part = product.parts[0]
    for k, r in enumerate(renamings):
        r.set_dim(index, first + k)
        r.set_dim(product.symbol, start + symbol(along))
        for x in product.body:
            if isinstance(x, Load):
                place = r.buffer(x.buffer), r.index(x.index)
                if place in known:
                    r.vars[x.var.name] = known[place]
                    continue
                known[place] = r.define(x.var)
                body.append(Load(known[place], *place))
            else:
                body += rebuilt([x], r)
        assert part.factor is not None
        value, factor = r.operand(part.value), r.operand(part.factor)
        init = None if inits is None else inits[k]
        parts.append(Part(r.define(part.result), "sum", "dot", value, init, factor=factor, model=model or part.model))
    return Reduce(along, extent, body, parts)


# --- triangles ------------------------------------------------------------------------------------------------------


def _triangle(s: For, facts: Facts, names: Names) -> list[Stmt] | None:
    if s.step != 1 or s.carried or not s.body or not isinstance(s.body[0], For):
        return None
    inner = s.body[0]
    if inner.role != "serial" or inner.step != 1 or inner.carried or s.symbol in symbols(inner.lower):
        return None
    at = _product(inner.body)
    split = split_linear(inner.upper, s.symbol)
    if at is None or split is None or split[0] != 1:
        return None
    product = inner.body[at]
    assert isinstance(product, Reduce)
    if s.symbol in symbols(product.extent) or not all(
        isinstance(x, (Let, DimValue, Load, Store, Reduce)) for x in walk(s.body[1:])
    ):
        return None
    if not _independent(s, inner, facts, names):
        return None
    block, row = names.symbol(), names.symbol()
    first = symbol(block)
    shared = substitute(inner.upper, {s.symbol: first})
    renamings = [Renaming(names=names) for _ in range(JAM)]
    body: list[Stmt] = []
    for x in inner.body:
        if x is product:
            body.append(_side_by_side(product, s.symbol, renamings, first, 0, product.extent, names))
            continue
        for k, r in enumerate(renamings):
            r.set_dim(s.symbol, first + k)
            body += rebuilt([x], r)
    r = Renaming(names=names)
    r.set_dim(s.symbol, symbol(row))
    later = For(inner.symbol, shared, inner.upper, inner.body)
    turn = rebuilt([later, *s.body[1:]], r)
    jammed = For(inner.symbol, inner.lower, shared, body)
    end = s.lower + floordiv(s.upper - s.lower, JAM) * JAM
    main = For(block, s.lower, end, [jammed, For(row, first, first + JAM, turn)], JAM)
    left = rebuilt([For(s.symbol, end, s.upper, s.body)], Renaming(names=names))
    return [main, *left]


def _independent(s: For, inner: For, facts: Facts, names: Names) -> bool:
    """Whether the products of a later turn, up to the first's, meet nothing that an earlier turn of four touches."""
    inside = facts.copy()
    start, earlier, later = names.symbol(), names.symbol(), names.symbol()
    index_range(inside, start, s.lower, s.upper, 1)
    index_bounds(inside, earlier, symbol(start), s.upper, 1)
    index_bounds(inside, later, symbol(earlier) + 1, s.upper, 1)
    upper = substitute(inner.upper, {s.symbol: symbol(start)})
    moved = list(_accesses([For(inner.symbol, inner.lower, upper, inner.body)], s.symbol, later, inside, names))
    stayed = list(_accesses(s.body, s.symbol, earlier, inside, names))
    return all(
        apart(place_of(a), place_of(b), inside)
        for a in moved
        for b in stayed
        if (isinstance(a, Store) or isinstance(b, Store)) and a.buffer.name == b.buffer.name
    )


def _accesses(body: list[Stmt], index: str, turn: str, facts: Facts, names: Names) -> Iterator[Load | Store]:
    """The accesses of one turn, over indices of their own whose ranges are recorded."""
    r = Renaming(names=names)
    r.set_dim(index, symbol(turn))
    for s in walk(rebuilt(body, r)):
        if isinstance(s, For):
            index_bounds(facts, s.symbol, s.lower, s.upper, s.step)
        elif isinstance(s, Reduce):
            index_bounds(facts, s.symbol, 0, s.extent, 1)
        elif isinstance(s, (Load, Store)):
            yield s
