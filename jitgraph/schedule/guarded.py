"""Products whose indices are checked in the loop that multiplies.

    ok = reduce k in range(n) (all of -l <= c[k] < l); if ok {} else { the error }; check n == m
    if short { v = dot of a[k], x[wrapped c[k]] for k in range(m) } else cold { the call }
    =>  if short and n == m { (good, w) = reduce k in range(m) (all of 0 <= c[k] < l; dot of a[k], x[c[k]]) }
        if good { v = w } else cold { all of it }

A gather keeps inside the memory whatever the index is, and nothing is written in between, so the product may run before
the error is known. Indices that count from the end take the cold side.
"""

from __future__ import annotations

from collections.abc import Mapping

from jitgraph import dtypes
from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.loops import (
    Check,
    Const,
    DimValue,
    If,
    Let,
    Load,
    Merge,
    Operand,
    Part,
    Reduce,
    Stmt,
    Store,
    Var,
)
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import DimLike, symbol
from jitgraph.records import dataclass
from jitgraph.schedule.memory import Place, touched
from jitgraph.schedule.simplify import FALSE, TRUE
from jitgraph.schedule.statements import Names, Renaming, changed_inside, rebuilt

_ZERO = Const(0, dtypes.I64)


def guarded(body: list[Stmt], names: Names) -> list[Stmt]:
    """A body whose products check the indices of their gathers themselves."""
    return _guarded(body, {s.var.name: s.dim for s in walk(body) if isinstance(s, DimValue)}, names)


def _guarded(body: list[Stmt], dims: Mapping[str, DimLike], names: Names) -> list[Stmt]:
    out = [changed_inside(s, lambda inner: _guarded(inner, dims, names), tests=True) for s in body]
    for k, s in enumerate(out):
        found = _found(out, k) if isinstance(s, Reduce) else None
        joined = None if found is None else _joined(out, found, dims, names)
        if found is not None and joined is not None:
            return [*out[:k], *joined, *out[found.use + 1 :]]
    return out


@dataclass(slots=True)
class _Found:
    """Where the check of indices stands (the branch on it is next), the check that the sizes are equal, the product."""

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


def _joined(body: list[Stmt], found: _Found, dims: Mapping[str, DimLike], names: Names) -> list[Stmt] | None:
    test, error, check, product = (body[k] for k in (found.test, found.test + 1, found.sizes, found.use))
    assert isinstance(test, Reduce)
    assert isinstance(check, Check)
    assert isinstance(product, If)
    dot = product.then[0]
    assert isinstance(dot, Reduce)
    quick = _both(test, dot, dims, names)
    if quick is None or len(product.merges) != 1:
        return None
    scalars = [s for s in body[found.test + 2 : found.use] if s is not check]
    r = Renaming(names=names)
    cold = rebuilt([test, error, check, product], r)
    result = product.merges[0].result
    slow = r.operand(result)
    both, good = names.var(dtypes.BOOL), names.var(dtypes.BOOL)
    value = names.var(result.dtype)
    inside, total = (p.result for p in quick.parts)
    return [
        *scalars,
        Let(both, "and_", (check.condition, product.condition)),
        If(both, [quick], [], [Merge(good, inside, FALSE), Merge(value, total, Const(0.0, result.dtype))]),
        If(good, [], cold, [Merge(result, value, slow)], cold=True),
    ]


def _both(test: Reduce, dot: Reduce, dims: Mapping[str, DimLike], names: Names) -> Reduce | None:
    """One loop for the two, where no index counts from the end; None if the test has another form."""
    r = Renaming(names=names)
    r.set_dim(test.symbol, symbol(dot.symbol))
    checked = _index(test, dims)
    if checked is None:
        return None
    loads, index, n = checked
    body = rebuilt(loads, r)
    known: dict[Place, Operand] = {(s.buffer, s.index): s.var for s in body if isinstance(s, Load) and s.imag is None}
    place = r.operand(index)
    unsigned, size = names.var(dtypes.U64), names.var(dtypes.U64)
    inside, all_inside = names.var(dtypes.BOOL), names.var(dtypes.BOOL)
    body += [
        Let(unsigned, "cast", (place,), "u64"),
        Let(size, "cast", (n,), "u64"),
        Let(inside, "cmp", (unsigned, size), "lt"),
    ]
    same = Renaming(names=names)
    same.set_dim(dot.symbol, symbol(dot.symbol))
    for s in dot.body:
        at = same.index(s.index) if isinstance(s, Load) else ()
        if isinstance(s, Load) and (s.buffer, at) in known:
            same.vars[s.var.name] = known[s.buffer, at]
            continue
        copy = rebuilt([s], same)[0]
        if isinstance(copy, Let) and (copy.op, copy.attr, copy.args) == ("cmp", "lt", (place, _ZERO)):
            assert isinstance(s, Let)
            same.vars[s.var.name] = FALSE
        else:
            body.append(copy)
    p = dot.parts[0]
    assert p.factor is not None
    value, factor, total = same.operand(p.value), same.operand(p.factor), names.var(p.result.dtype)
    return Reduce(
        dot.symbol,
        dot.extent,
        body,
        [
            Part(all_inside, "all", "free", inside, TRUE),
            Part(total, "sum", "dot", value, factor=factor, model=p.model),
        ],
    )


def _index(test: Reduce, dims: Mapping[str, DimLike]) -> tuple[list[Stmt], Operand, Operand] | None:
    """The loads of a test `-n <= c and c < n`, the index c and the size n."""
    lets = {x.var.name: x for x in test.body if isinstance(x, Let)}
    value = test.parts[0].value
    both = lets.get(value.name) if isinstance(value, Var) else None
    loads: list[Stmt] = [x for x in test.body if isinstance(x, Load)]
    if both is None or both.op != "and_" or len(loads) + len(lets) != len(test.body):
        return None
    high, low = (lets.get(x.name) if isinstance(x, Var) else None for x in both.args)
    if high is None or low is None or (high.op, high.attr, low.op, low.attr) != ("cmp", "lt", "cmp", "ge"):
        return None
    sizes = [dims.get(x.args[1].name) if isinstance(x.args[1], Var) else None for x in (high, low)]
    if sizes[0] is None or sizes[1] is None or sizes[0] + sizes[1] != 0 or high.args[0] != low.args[0]:
        return None
    index = high.args[0]
    made_here = any(isinstance(x, Load) and x.var == index for x in loads)
    return (loads, *high.args) if made_here and index.dtype == dtypes.I64 else None  # type: ignore[return-value]
