"""Recurrences that fold integers: what is finished goes at once, over lanes, into the folds of what comes later.

    for j: p[j] = fold of init(j) and f(p[k], b[k, j]) for k in range(j)
    =>  for each four k: finish p[k]; then for all later j over lanes: row[j] = fold of row[j] and f(p[k], b[k, j])

A minimum, a maximum or a sum of integers is the same in any order. Legal where the loop writes nothing but its own
elements, each in its own turn, and what the folds read besides these is not among them. (Products of floats, which have
an order: `triangle`.)
"""

from __future__ import annotations

import numpy as np

from jitgraph.codegen.loops import (
    Alloc,
    Buffer,
    Check,
    Const,
    DimValue,
    For,
    If,
    Let,
    Load,
    Operand,
    Part,
    Reduce,
    ReduceKind,
    Stmt,
    Store,
    Var,
)
from jitgraph.codegen.loops_walk import walk
from jitgraph.dtypes import BOOL
from jitgraph.ir.dims import DimLike, Facts, dim_max, floordiv, split_linear, substitute, symbol, symbols
from jitgraph.records import dataclass
from jitgraph.schedule.memory import Place, apart, dense, place_of
from jitgraph.schedule.nests import rewritten
from jitgraph.schedule.simplify import index_bounds, index_range
from jitgraph.schedule.statements import Names, Renaming, rebuilt, size

#: Elements that are finished before they go into the folds of later ones.
GROUP = 4
#: The row of folds is gone through from multiples of it on, so that a vector is loaded as it was stored.
ALIGNED = 16
#: Statements of a turn that is written out `GROUP` times.
LARGEST = 60


def updates(body: list[Stmt], facts: Facts, names: Names) -> list[Stmt]:
    """A body whose recurrences of folds run over lanes."""

    def over_lanes(s: For, inside: Facts) -> list[Stmt] | None:
        found = _recurrence(s, inside, names) if s.role == "serial" else None
        return None if found is None else _by_rows(found, inside, names)

    return rewritten(body, facts, over_lanes)


@dataclass(slots=True)
class _Recurrence:
    """A loop whose element needs a fold over the elements before it.

    Attributes:
        before: what a turn does up to the fold.
        fold: over range(extent): `extent` is the distance from the first turn.
        own: the load of the loop's own elements in the fold.
        place: what a turn writes.
        whole: what else the fold reads exists for all turns but the last as `k`, and all as `j`.
    """

    loop: For
    before: list[Stmt]
    fold: Reduce
    own: Load
    place: Place
    whole: bool


def _recurrence(s: For, facts: Facts, names: Names) -> _Recurrence | None:
    if s.step != 1 or s.carried or len(s.body) < 2 or size(s.body) > LARGEST:
        return None
    last = s.body[-1]
    tail = s.body
    if isinstance(last, If):
        tail = last.then
        if last.otherwise or last.merges:
            return None
    if len(tail) < 2 or not isinstance(tail[-2], Reduce) or not isinstance(tail[-1], Store):
        return None
    fold, store = tail[-2:]
    assert isinstance(fold, Reduce)
    assert isinstance(store, Store)
    part = fold.parts[0]
    if len(fold.parts) != 1 or part.order != "free" or part.kind not in ("max", "min", "sum") or part.init is None:
        return None
    if part.result.dtype.kind not in "iu" or store.value != part.result or store.imag is not None:
        return None
    before = s.body[:-2]
    if isinstance(last, If):
        before = [*s.body[:-1], *tail[:-2]]
        if not _asks_for_turns(last, before, fold.extent):
            return None
        if not (
            _reads_it(tail[:-2], store, part.init, s, facts) or (len(tail) == 2 and _holds(before, store, part.init))
        ):
            return None
    if fold.extent - symbol(s.symbol) + s.lower != 0:
        return None
    if not all(isinstance(x, (Let, DimValue, Load, Store, If, Check)) for x in walk(before)):
        return None
    if not all(isinstance(x, (Let, DimValue, Load)) for x in fold.body):
        return None
    place = place_of(store)
    if not dense(place[0]) or any(place_of(x) != place for x in walk(before) if isinstance(x, Store)):
        return None
    loads = [x for x in fold.body if isinstance(x, Load)]
    own = [x for x in loads if _at(x, fold.symbol, fold.extent) == place]
    if len(own) != 1 or not any(fold.symbol in symbols(d) for d in own[0].index) or own[0].imag is not None:
        return None
    others = [x for x in loads if x is not own[0]]
    inside = facts.copy()
    index_range(inside, s.symbol, s.lower, s.upper, 1)
    index_bounds(inside, fold.symbol, 0, fold.extent, 1)
    another = names.symbol()
    index_bounds(inside, another, s.lower, s.upper, 1)
    if not all(apart(place_of(x), _at(store, s.symbol, symbol(another)), inside) for x in others):
        return None
    if not others or not all(x.imag is None and _side_by_side(x, s.symbol) for x in others):
        return None
    square = facts.copy()
    index_range(square, s.symbol, s.lower, s.upper, 1)
    index_range(square, fold.symbol, 0, s.upper - s.lower - 1, 1)
    whole = all(
        dense(x.buffer)
        and all(square.is_le(0, d) and square.is_lt(d, n) for d, n in zip(x.index, x.buffer.shape, strict=True))
        for x in others
    )
    if not whole and any(isinstance(x, Check) for x in walk(before)):
        return None  # it may be that a turn fails before its fold would read what lies outside
    return _Recurrence(s, before, fold, own[0], place, whole)


def _at(s: Load | Store, name: str, d: DimLike) -> Place:
    """The place of an access at another index."""
    return s.buffer, tuple(substitute(i, {name: d}) for i in s.index)


def _asks_for_turns(s: If, before: list[Stmt], extent: DimLike) -> bool:
    """Whether a branch is taken if `extent` is positive."""
    known = {x.var: x for x in before if isinstance(x, (Let, DimValue))}
    test = known.get(s.condition) if isinstance(s.condition, Var) else None
    if not isinstance(test, Let) or test.op != "cmp" or test.attr != "gt" or not isinstance(test.args[1], Const):
        return False
    left = known.get(test.args[0]) if isinstance(test.args[0], Var) else None
    return test.args[1].value == 0 and isinstance(left, DimValue) and left.dim - extent == 0


def _reads_it(begin: list[Stmt], store: Store, value: Operand, loop: For, facts: Facts) -> bool:
    """Whether all that is done first is to load as `value` the element that `store` writes, and each turn has one."""
    if len(begin) != 1 or not isinstance(begin[0], Load) or place_of(begin[0]) != place_of(store):
        return False
    inside = facts.copy()
    index_range(inside, loop.symbol, loop.lower, loop.upper, 1)
    sizes = zip(store.index, store.buffer.shape, strict=True)
    return begin[0].var == value and all(inside.is_le(0, d) and inside.is_lt(d, n) for d, n in sizes)


def _holds(before: list[Stmt], store: Store, value: Operand) -> bool:
    """Whether the element that `store` writes holds `value` already."""
    stores = [x for x in before if isinstance(x, (Store, If)) and any(isinstance(y, Store) for y in walk([x]))]
    last = stores[-1] if stores else None
    return isinstance(last, Store) and place_of(last) == place_of(store) and last.value == value


def _side_by_side(s: Load, index: str) -> bool:
    """Whether an access has its lanes side by side, or all at one place."""
    for k, d in enumerate(s.index):
        split = split_linear(d, index)
        if split is None or (split[0] != 0 and (split[0] != 1 or s.buffer.strides[k] != s.buffer.dtype.itemsize)):
            return False
    return True


def _by_rows(t: _Recurrence, facts: Facts, names: Names) -> list[Stmt]:
    s, part = t.loop, t.fold.parts[0]
    dtype = part.result.dtype
    length, count = s.upper - s.lower, s.upper - s.lower - 1  # the last element goes into no fold
    if not facts.is_le(0, count):
        count = dim_max(count, 0)
    if not facts.is_le(0, length):
        length = dim_max(length, 0)
    row = Buffer(names.buffer("folds"), dtype, (length,), (dtype.itemsize,))
    whole = s.lower + floordiv(count, GROUP) * GROUP
    index, group = names.symbol(), names.symbol()
    at = symbol(group)
    clear: list[Stmt] = [Store(row, (symbol(index),), _neutral(part.kind, dtype))]
    finished: list[Stmt] = []
    values: list[Operand] = []
    for k in range(GROUP):
        finished += _finished(t, row, at + k, values, names)
    start: DimLike = at + GROUP - s.lower
    if t.whole:
        start = floordiv(start, ALIGNED) * ALIGNED
    lane = symbol(index) + s.lower
    added: list[Stmt] = [Load(names.var(dtype), row, (symbol(index),))]
    assert isinstance(added[0], Load)
    total: Operand = added[0].var
    for k, value in enumerate(values):
        total = _folded(t, lane, at + k, value, total, added, names)
    added.append(Store(row, (symbol(index),), total))
    later = For(index, start, s.upper - s.lower, added, role="vector")
    last = names.symbol()
    names.note("folds over lanes", s.symbol)
    return [
        Alloc(row, "scratch"),
        For(index, 0, length, clear, role="vector"),
        For(group, s.lower, whole, [*finished, later], GROUP),
        For(last, whole, s.upper, _last(t, row, symbol(last), whole, names)),
    ]


def _neutral(kind: ReduceKind, dtype: np.dtype) -> Const:
    """What changes nothing in a fold."""
    limits = np.iinfo(dtype)
    return Const({"sum": 0, "max": int(limits.min), "min": int(limits.max)}[kind], dtype)


def _combined(kind: ReduceKind, x: Operand, y: Operand, out: list[Stmt], names: Names) -> Operand:
    """The fold of two values."""
    made = names.var(x.dtype)
    if kind == "sum":
        out.append(Let(made, "add", (x, y)))
        return made
    test = names.var(BOOL)
    out += [Let(test, "cmp", (x, y), "ge" if kind == "max" else "le"), Let(made, "select", (test, x, y))]
    return made


def _folded(
    t: _Recurrence, j: DimLike, k: DimLike, value: Operand, total: Operand, out: list[Stmt], names: Names
) -> Operand:
    """`total` and what turn `k`, which wrote `value`, gives turn `j`."""
    part = t.fold.parts[0]
    r = Renaming(names=names)
    r.set_dim(t.loop.symbol, j)
    r.set_dim(t.fold.symbol, k - t.loop.lower)
    r.vars[t.own.var.name] = value
    out += rebuilt([x for x in t.fold.body if x is not t.own], r)
    return _combined(part.kind, total, r.operand(part.value), out, names)


def _begun(t: _Recurrence, row: Buffer, j: DimLike, names: Names) -> tuple[list[Stmt], Operand, Renaming]:
    """What turn `j` does, its fold as far as the row has it, and the names in it."""
    part = t.fold.parts[0]
    r = Renaming(names=names)
    r.set_dim(t.loop.symbol, j)
    out = rebuilt(t.before, r)
    so_far = names.var(row.dtype)
    out.append(Load(so_far, row, (j - t.loop.lower,)))
    assert part.init is not None
    return out, _combined(part.kind, r.operand(part.init), so_far, out, names), r


def _finished(t: _Recurrence, row: Buffer, j: DimLike, values: list[Operand], names: Names) -> list[Stmt]:
    """Turn `j`, behind the turns of its group that wrote `values`, which its own value joins."""
    out, total, r = _begun(t, row, j, names)
    first = j - len(values)
    for k, value in enumerate(values):
        total = _folded(t, j, first + k, value, total, out, names)
    out.append(Store(r.buffer(t.place[0]), r.index(t.place[1]), total))
    values.append(total)
    return out


def _last(t: _Recurrence, row: Buffer, j: DimLike, first: DimLike, names: Names) -> list[Stmt]:
    """Turn `j`, whose row has the fold up to turn `first`."""
    out, total, r = _begun(t, row, j, names)
    part, index = t.fold.parts[0], names.symbol()
    inner = Renaming(names=names)
    inner.set_dim(t.loop.symbol, j)
    inner.set_dim(t.fold.symbol, first - t.loop.lower + symbol(index))
    body = rebuilt(t.fold.body, inner)
    made = names.var(row.dtype)
    out.append(Reduce(index, j - first, body, [Part(made, part.kind, "free", inner.operand(part.value), total)]))
    out.append(Store(r.buffer(t.place[0]), r.index(t.place[1]), made))
    return out
