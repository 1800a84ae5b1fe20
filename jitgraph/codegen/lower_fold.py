"""Folds by any operator: `fold`, `scan`, `reduceat`, and running sums. One value is carried along the axis.

Where another axis is the innermost in memory, lanes run along that one.
"""

from __future__ import annotations

from collections.abc import Callable

from jitgraph import dtypes
from jitgraph.codegen.loops import Carry, Const, For, If, Merge, Operand, Part, Reduce, Stmt, Var
from jitgraph.codegen.lower_kernel import Group, Root
from jitgraph.codegen.lower_nest import Axis, loops_over, nest, split_levels
from jitgraph.codegen.lower_scalar import constant
from jitgraph.codegen.lower_values import Slot
from jitgraph.codegen.lower_views import broadcast_index
from jitgraph.ir.dims import DimLike, dim_min, symbol
from jitgraph.ir.graph import Op
from jitgraph.ir.opdef import REGISTRY, OpDef
from jitgraph.ops.fold import folded, identity_of


def _combine(group: Group, function: OpDef, total: Operand, value: Operand) -> Operand:
    """One step; the result has the dtype of the total (comparisons give bools of bools)."""
    made: Operand = function.lower(group.builder, total, value)  # type: ignore[misc]
    return group.builder.cast(made, total.dtype)


def _wrapped(current: list[Stmt], levels: list[list[Stmt]], axes: list[Axis], vector: bool) -> list[Stmt]:
    """`current` inside of loops over `axes`, each with its level's statements in front; the last one of lanes."""
    for k in range(len(axes) - 1, -1, -1):
        role = k == len(axes) - 1 and vector
        loop = For(axes[k].symbol, 0, axes[k].size, current, role="vector" if role else "serial")
        current = [*levels[k], loop]
    return current


def running(group: Group, op: Op, root: Root) -> None:
    """`cumsum` and `cumprod`: from -0.0 or 1, which change nothing."""
    dtype = op.result.type.dtype
    start = constant(1 if op.name == "cumprod" else -0.0 if dtype.kind == "f" else 0, dtype)
    _along(group, op, root, REGISTRY["add" if op.name == "cumsum" else "mul"], start)


def scan(group: Group, op: Op, root: Root) -> None:
    """`accumulate`: the first element as it is, then combined with one after the other."""
    _along(group, op, root, folded(op.attrs), None)


def _along(group: Group, op: Op, root: Root, function: OpDef, start: Operand | None) -> None:
    assert root.memory is not None
    (x,) = op.operands
    axis, dtype = op.attrs["axis"], op.result.type.dtype
    frame = group.frame
    axes, index = loops_over(group.frame.index, x.type.shape)
    along = index[axis]
    by_memory = group.in_memory_order(axes, root.memory, tuple(index))
    order = [a for a in by_memory if symbol(a.symbol) != along]
    outer, frame.body = frame.body, []
    if along == 0:  # an axis of size 1: the elements themselves
        value = group.builder.cast(group.at(x, tuple(index)), dtype)
        if start is not None:
            value = _combine(group, function, start, value)
        group.store(root.memory, tuple(index), value)
        flat, frame.body = frame.body, outer
        outer.extend(nest(order, flat))
        return
    first: Operand | None = start
    if start is None:
        at_first = tuple(0 if k == axis else i for k, i in enumerate(index))
        first = group.builder.cast(group.at(x, at_first), dtype)
        before, frame.body = frame.body, []
        group.store(root.memory, at_first, first)
        stores, frame.body = frame.body, before
    else:
        stores = []
    assert first is not None
    total = frame.var(dtype)
    value = group.builder.cast(group.at(x, tuple(index)), dtype)
    following = _combine(group, function, total, value)
    group.store(root.memory, tuple(index), following)
    flat, frame.body = frame.body, outer
    serial = next(a for a in axes if symbol(a.symbol) == along)
    inner_first = bool(order) and by_memory[-1] is not serial
    levels = split_levels([*order, serial], flat, [total])
    loop = For(
        serial.symbol, 0 if start is not None else 1, serial.size, levels[-1],
        carried=[Carry(total, first, following, frame.var(dtype))],
    )  # fmt: skip
    current: list[Stmt] = [*levels[-2], *stores, loop]
    if stores:  # nothing is stored where there is nothing
        current = _unless_empty(group, serial.size, [*stores, loop], before=levels[-2])
    outer.extend(_wrapped(current, levels, order, inner_first))


def _unless_empty(group: Group, size: DimLike, body: list[Stmt], before: list[Stmt]) -> list[Stmt]:
    """Statements for an axis that has elements: as a loop of at most one turn, where its size is not known."""
    if isinstance(size, int):
        return [*before, *body] if size else []
    return [For(group.frame.index(), 0, dim_min(1, size), [*before, *body])]


def fold(group: Group, op: Op, root: Root) -> None:
    """`reduce`: from `initial`, the identity or the first element; elements under a false mask are passed over."""
    x, *given = op.operands
    reduced, keep = op.attrs["axes"], op.attrs.get("keepdims", False)
    dtype, function = op.result.type.dtype, folded(op.attrs)
    frame, b = group.frame, group.builder
    axes, index = loops_over(group.frame.index, x.type.shape)
    by_symbol = {a.symbol: a for a in axes}
    order = [(k, by_symbol[str(index[k])]) for k in x.type.layout.order if index[k] != 0]
    kept = [a for k, a in order if k not in reduced]
    serial = [a for k, a in order if k in reduced]
    at = tuple(0 if k in reduced else i for k, i in enumerate(index) if keep or k not in reduced)
    outer, frame.body = frame.body, []
    identity = identity_of(op.attrs["function"], dtype)
    lower = 0
    if given:
        start = b.cast(group.at(given[0], ()), dtype)
    elif identity is not None:
        start = constant(identity, dtype)
    else:
        start = b.cast(group.at(x, tuple(0 if k in reduced else i for k, i in enumerate(index))), dtype)
        lower = 1
    end: Operand = start
    chain: list[tuple[Operand, Var, Var]] = []
    for _ in serial:
        chain.append((chain[-1][1] if chain else start, frame.var(dtype), frame.var(dtype)))
    if serial or not lower:
        total: Operand = chain[-1][1] if chain else start
        value = b.cast(group.at(x, tuple(index)), dtype)
        end = _combine(group, function, total, value)
        if len(given) > 1:
            mask = group.at(given[1], broadcast_index(tuple(index), given[1].type.shape))
            end = b.select(mask, end, total)
    flat, frame.body = frame.body, outer
    levels = split_levels([*kept, *serial], flat, [inner for _, inner, _ in chain])
    current = levels[-1]
    for k in range(len(serial) - 1, -1, -1):
        init, inner, result = chain[k]
        loop = For(serial[k].symbol, lower, serial[k].size, current, carried=[Carry(inner, init, end, result)])
        current, end = [*levels[len(kept) + k], loop], result
    frame.body = current
    if root.memory is not None:
        group.store(root.memory, at, end)
    else:
        group.slots[op.result] = Slot(end, root.stage)
    frame.body = outer
    vector = bool(kept) and order[-1][1] is kept[-1]
    outer.extend(_wrapped(current, levels, kept, vector))


def reduceat(group: Group, op: Op, root: Root) -> None:
    """From each start to the next one (the last: to the end); what does not come before the next start alone."""
    assert root.memory is not None
    x, starts = op.operands
    axis, dtype, function = op.attrs["axis"], op.result.type.dtype, folded(op.attrs)
    frame, b = group.frame, group.builder
    count = starts.type.shape[0]
    axes, index = loops_over(group.frame.index, op.result.type.shape)
    turn = index[axis]
    outer, frame.body = frame.body, []
    begin = group.bind(group.at(starts, (turn,)))
    if turn == 0:  # one start
        stop: DimLike = x.type.shape[axis]
    else:
        last = b.cmp("lt", group.dim(turn), group.dim(count - 1))
        result = frame.var(dtypes.I64)
        then: list[Stmt] = []
        body, frame.body = frame.body, then
        following = group.at(starts, (turn + 1,))
        frame.body = body
        end = group.dim(x.type.shape[axis])
        body.append(If(last, then, [], [Merge(result, following, end)]))
        stop = group.bind(result)
    first = b.cast(group.at(x, tuple(begin if k == axis else i for k, i in enumerate(index))), dtype)
    place = frame.index()
    body, frame.body = frame.body, []
    memo, group.memo = group.memo, dict(group.memo)
    at = tuple(begin + symbol(place) + 1 if k == axis else i for k, i in enumerate(index))
    value = b.cast(group.at(x, at), dtype)
    pairwise = op.attrs["function"] == "add" and dtype.kind == "f"
    if pairwise:
        total = frame.var(dtype)
        inside, frame.body = frame.body, body
        # NumPy calls its pairwise sum only where there is something to add
        size = stop - begin - 1
        some = b.cmp("gt", group.dim(size), Const(0, dtypes.I64))
        added = frame.var(dtype)
        reduce = Reduce(place, size, inside, [Part(total, "sum", "pairwise", value, first)])
        frame.body.append(If(some, [reduce], [], [Merge(added, total, first)]))
        made: Operand = added
    else:
        inner, result_var = frame.var(dtype), frame.var(dtype)
        combined = _combine(group, function, inner, value)
        inside, frame.body = frame.body, body
        frame.body.append(For(place, 0, stop - begin - 1, inside, carried=[Carry(inner, first, combined, result_var)]))
        made = result_var
    group.memo = memo
    group.store(root.memory, tuple(index), made)
    flat, frame.body = frame.body, outer
    current = flat
    for a in reversed(axes):
        current = [For(a.symbol, 0, a.size, current)]
    outer.extend(current)


#: Roots with nests of their own, by operator.
FOLDS: dict[str, Callable[[Group, Op, Root], None]] = {
    "cumsum": running,
    "cumprod": running,
    "scan": scan,
    "fold": fold,
    "reduceat": reduceat,
}
