"""Operands of dot products computed where they are multiplied: no temporary in between.

    alloc t; for i in range(n) vector { t[i] = x[c[i]] }; reduce k in range(n) (v = dot of a[k], t[k])
    =>  reduce k in range(n) (v = dot of a[k], x[c[k]])

Legal where the temporary has no other reader, and nothing writes what its elements are computed from between its loop
and the product. A call of BLAS on the cold side of a branch has the temporary made there.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    DimValue,
    For,
    Free,
    If,
    Let,
    Load,
    Operand,
    Reduce,
    Stmt,
    Store,
    Var,
)
from jitgraph.codegen.loops_walk import assigned, read, walk
from jitgraph.ir.dims import as_symbol, symbol, symbols
from jitgraph.records import dataclass
from jitgraph.schedule.memory import touched
from jitgraph.schedule.statements import Names, Renaming, changed_inside, dims_of, rebuilt


def operands(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body whose dot products compute their operands."""
    out = [changed_inside(s, lambda inner: operands(inner, names), tests=True) for s in body]
    for k, s in enumerate(out):
        if isinstance(s, Alloc) and s.scope != "result" and len(s.buffer.shape) == 1:
            plan = _plan(out, k)
            if plan is not None:
                return operands(_fused(out, plan, names), names)
    return out


@dataclass(slots=True)
class _Plan:
    """A temporary that a dot product can do without.

    Attributes:
        alloc, fill, use: where in the body its memory, its elements and the product are made.
        value: of the elements, computed by `needed`, statements of the loop that fills it.
    """

    alloc: int
    fill: int
    use: int
    needed: list[Stmt]
    value: Operand


def _plan(body: list[Stmt], at: int) -> _Plan | None:
    alloc = body[at]
    assert isinstance(alloc, Alloc)
    name = alloc.buffer.name
    uses = [k for k, s in enumerate(body) if k > at and _mentions(s, name) and not isinstance(s, Free)]
    if len(uses) != 2:
        return None
    fill, use = uses
    loop, product = body[fill], body[use]
    if not isinstance(loop, (For, Reduce)) or (
        isinstance(loop, For) and (loop.role, loop.lower, loop.step) != ("vector", 0, 1)
    ):
        return None
    stores = [s for s in walk(loop.body) if isinstance(s, Store)]
    own = [s for s in stores if s.buffer.name == name]
    if len(own) != 1 or own[0] not in loop.body or len(own[0].index) != 1 or as_symbol(own[0].index[0]) != loop.symbol:
        return None
    if any(isinstance(s, Load) and s.buffer.name == name for s in walk([loop])):
        return None
    needed = _needed(loop.body, own[0])
    if needed is None:
        return None
    sources = {s.buffer.name for s in needed if isinstance(s, Load)}
    if any(name in sources for name in _written([loop, *body[fill + 1 : use]])):
        return None
    hot = product.then if isinstance(product, If) and product.cold else [product]
    if len(hot) != 1 or not isinstance(hot[0], Reduce) or not _reads_in_turn(hot[0], name):
        return None
    if isinstance(product, If) and any(name in _written([s]) for s in product.then for name in sources):
        return None
    return _Plan(at, fill, use, needed, own[0].value)


def _mentions(s: Stmt, name: str) -> bool:
    return any((isinstance(x, (Load, Store)) and x.buffer.name == name) or name in touched(x) for x in walk([s]))


def _written(body: list[Stmt]) -> Iterator[str]:
    for s in walk(body):
        if isinstance(s, Store):
            yield s.buffer.name
        yield from touched(s)


def _needed(body: list[Stmt], store: Store) -> list[Stmt] | None:
    """The statements that a stored value is computed by; None if some of them are loops or branches."""
    wanted = {store.value.name} if isinstance(store.value, Var) else set()
    wanted_symbols: set[str] = set()
    kept: list[Stmt] = []
    for s in body[: body.index(store)][::-1]:
        makes = {v.name for v in assigned(s)}
        if isinstance(s, Bind) and s.symbol in wanted_symbols:
            pass
        elif not makes & wanted:
            continue
        if not isinstance(s, (Let, DimValue, Load, Bind)) or (isinstance(s, Load) and s.imag is not None):
            return None
        kept.append(s)
        wanted.update(x.name for x in read(s) if isinstance(x, Var))
        for d in dims_of(s):
            wanted_symbols.update(symbols(d))
    return kept[::-1]


def _reads_in_turn(s: Reduce, name: str) -> bool:
    """Whether a product of one part reads a buffer at its own index, in straight-line code."""
    loads = [x for x in s.body if isinstance(x, Load) and x.buffer.name == name]
    return (
        all(p.order == "dot" for p in s.parts)
        and all(isinstance(x, (Let, DimValue, Load, Bind)) for x in s.body)
        and all(len(x.index) == 1 and as_symbol(x.index[0]) == s.symbol for x in loads)
    )


def _fused(body: list[Stmt], plan: _Plan, names: Names) -> list[Stmt]:
    alloc, loop, product = body[plan.alloc], body[plan.fill], body[plan.use]
    assert isinstance(alloc, Alloc)
    assert isinstance(loop, (For, Reduce))
    name = alloc.buffer.name
    rest = [s for s in loop.body if not (isinstance(s, Store) and s.buffer.name == name)]
    filled: list[Stmt]
    if isinstance(loop, Reduce):
        filled = [Reduce(loop.symbol, loop.extent, rest, loop.parts, loop.lanes)]
    else:
        filled = [For(loop.symbol, 0, loop.upper, rest, 1, "vector", [], loop.lanes, loop.interleave)]
    if isinstance(product, If):
        hot = product.then[0]
        assert isinstance(hot, Reduce)
        cold = product.otherwise
        if _mentions(If(product.condition, [], cold, []), name):
            cold = _made_there(alloc, loop, plan, cold, names)
        used: Stmt = If(product.condition, [_inside(hot, loop.symbol, name, plan, names)], cold, product.merges, True)
    else:
        assert isinstance(product, Reduce)
        used = _inside(product, loop.symbol, name, plan, names)
    out: list[Stmt] = []
    for k, s in enumerate(body):
        if k == plan.fill:
            out += filled
        elif k == plan.use:
            out.append(used)
        elif not (isinstance(s, (Alloc, Free)) and s.buffer.name == name):
            out.append(s)
    return out


def _inside(s: Reduce, index: str, name: str, plan: _Plan, names: Names) -> Reduce:
    """A product whose loads of the temporary are what its elements are computed by."""
    body: list[Stmt] = []
    found = Renaming()
    for x in s.body:
        if isinstance(x, Load) and x.buffer.name == name:
            r = Renaming(names=names)
            r.set_dim(index, symbol(s.symbol))
            body += rebuilt(plan.needed, r)
            found.vars[x.var.name] = r.operand(plan.value)
        else:
            body += rebuilt([x], found)
    made = rebuilt([Reduce(s.symbol, s.extent, body, s.parts, s.lanes)], found)[0]
    assert isinstance(made, Reduce)
    return made


def _made_there(alloc: Alloc, loop: For | Reduce, plan: _Plan, cold: list[Stmt], names: Names) -> list[Stmt]:
    """The cold side of a branch, which has the temporary to itself."""
    extent = loop.upper if isinstance(loop, For) else loop.extent
    store = Store(alloc.buffer, (symbol(loop.symbol),), plan.value)
    fill = For(loop.symbol, 0, extent, [*plan.needed, store], 1, "vector")
    freed: list[Stmt] = [Free(alloc.buffer)] if alloc.scope == "heap" else []
    return [alloc, *rebuilt([fill], Renaming(names=names)), *cold, *freed]
