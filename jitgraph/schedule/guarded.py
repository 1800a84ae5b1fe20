"""Products whose indices are checked in the loop that multiplies.

    ok = reduce k in range(n) (all of in_range(c[k])); if ok {} else { the error }; check n == m
    if short { v = dot of a[k], x[c[k]] for k in range(m) } else cold { the call }
    =>  if short and n == m { (ok, v) = reduce of both; if ok {} else { the error } } else cold { all of it }

A gather keeps inside the memory whatever the index is, and nothing is written in between, so the product may run before
the error is known.
"""

from __future__ import annotations

from jitgraph import dtypes
from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.loops import Check, DimValue, For, If, Let, Load, Merge, Operand, Reduce, Stmt, Store, Var, While
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import symbol
from jitgraph.records import dataclass
from jitgraph.schedule.memory import Place, touched
from jitgraph.schedule.statements import Names, Renaming, rebuilt


def guarded(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body whose products check the indices of their gathers themselves."""
    out: list[Stmt] = []
    for s in body:
        made = s
        if isinstance(s, For) and s.role == "serial":
            inner = guarded(s.body, names)
            made = For(s.symbol, s.lower, s.upper, inner, s.step, s.role, s.carried, s.lanes, s.interleave)
        elif isinstance(s, While):
            made = While(guarded(s.test, names), s.condition, guarded(s.body, names), s.carried)
        elif isinstance(s, If):
            otherwise = s.otherwise if s.cold else guarded(s.otherwise, names)
            made = If(s.condition, guarded(s.then, names), otherwise, s.merges, s.cold)
        out.append(made)
    for k, s in enumerate(out):
        found = _found(out, k) if isinstance(s, Reduce) else None
        if found is not None:
            return [*out[:k], *_joined(out, found, names), *out[found.use + 1 :]]
    return out


@dataclass(slots=True)
class _Found:
    """The check of indices at `test`, the branch on it behind, a check that the sizes are equal, the product at `use`."""

    test: int
    sizes: int
    use: int


def _found(body: list[Stmt], at: int) -> _Found | None:
    test = body[at]
    assert isinstance(test, Reduce)
    part = test.parts[0]
    if len(test.parts) != 1 or (part.order, part.kind) != ("free", "all") or at + 1 == len(body):
        return None
    error = body[at + 1]
    if not isinstance(error, If) or error.condition != part.result or error.then or error.merges:
        return None
    if any(isinstance(x, Store) or any(touched(x)) for x in walk([test, error])):
        return None
    dims = {s.var.name: s.dim for s in body[: at + 2] if isinstance(s, DimValue)}
    lets: dict[str, Let] = {}
    sizes: int | None = None
    for k in range(at + 2, len(body)):
        s = body[k]
        if isinstance(s, DimValue):
            dims[s.var.name] = s.dim
        elif isinstance(s, Let):
            lets[s.var.name] = s
        elif isinstance(s, Check) and sizes is None:
            sizes = k
        else:
            break
    else:
        return None
    product = body[k]
    if sizes is None or not isinstance(product, If) or not product.cold or len(product.then) != 1:
        return None
    dot = product.then[0]
    if not isinstance(dot, Reduce) or len(dot.parts) != 1 or not isinstance(product.condition, Var):
        return None
    if dot.parts[0].order != "dot" or ORDERS[dot.parts[0].model].by_lane:
        return None
    check = body[sizes]
    assert isinstance(check, Check)
    equal = lets.get(check.condition.name) if isinstance(check.condition, Var) else None
    if equal is None or equal.op != "cmp" or equal.attr != "eq":
        return None
    compared = {dims.get(x.name) for x in equal.args if isinstance(x, Var)}
    if compared != {test.extent, dot.extent} or any(isinstance(x, Load) for x in body[at + 2 : k]):
        return None
    return _Found(at, sizes, k)


def _joined(body: list[Stmt], found: _Found, names: Names) -> list[Stmt]:
    test, error, check, product = (body[k] for k in (found.test, found.test + 1, found.sizes, found.use))
    assert isinstance(test, Reduce)
    assert isinstance(error, If)
    assert isinstance(check, Check)
    assert isinstance(product, If)
    dot = product.then[0]
    assert isinstance(dot, Reduce)
    scalars = [s for s in body[found.test + 2 : found.use] if s is not check]
    both = names.var(dtypes.BOOL)
    again = Renaming(names=names)
    cold = [*rebuilt([test, error], again), check, *product.otherwise]
    hot = [_both(test, dot, names), error]
    merges = [Merge(m.result, m.then, m.otherwise) for m in product.merges]
    return [
        *scalars,
        Let(both, "and_", (check.condition, product.condition)),
        If(both, hot, cold, merges, cold=True),
    ]


def _both(test: Reduce, dot: Reduce, names: Names) -> Reduce:
    """One loop for the two, which loads equal elements once."""
    r = Renaming(names=names)
    r.set_dim(test.symbol, symbol(dot.symbol))
    body = rebuilt(test.body, r)
    known: dict[Place, Operand] = {(s.buffer, s.index): s.var for s in body if isinstance(s, Load) and s.imag is None}
    part = rebuilt([Reduce(test.symbol, test.extent, [], test.parts)], r)[0]
    assert isinstance(part, Reduce)
    part.parts[0].result = test.parts[0].result
    same = Renaming()
    for s in dot.body:
        if isinstance(s, Load) and (s.buffer, s.index) in known:
            same.vars[s.var.name] = known[s.buffer, s.index]
        else:
            body += rebuilt([s], same)
    made = rebuilt([Reduce(dot.symbol, dot.extent, [], dot.parts)], same)[0]
    assert isinstance(made, Reduce)
    return Reduce(dot.symbol, dot.extent, body, [*part.parts, *made.parts])
