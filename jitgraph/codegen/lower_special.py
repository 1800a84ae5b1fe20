"""Ops with nests of their own: joining, positions of extremes, and whatever moves elements by data.

What depends on the order of elements (appending under a mask, adding at indices that may repeat) runs in serial
loops that carry the count; sizes that it finds become symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Carry,
    Check,
    Const,
    For,
    If,
    Operand,
    Part,
    Reduce,
    Stmt,
)
from jitgraph.codegen.lower_fold import FOLDS
from jitgraph.codegen.lower_kernel import Group, Nest, Root
from jitgraph.codegen.lower_nest import Axis, loops_over, nest, split_levels
from jitgraph.codegen.lower_scalar import KernelFrame
from jitgraph.codegen.lower_stream import packed_sum
from jitgraph.codegen.lower_values import Evaluator, Index, Slot, finish_kernel, origin_of
from jitgraph.codegen.lower_views import broadcast_index
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Op
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.ops.index import index_shape

if TYPE_CHECKING:
    from jitgraph.codegen.lower import Lowering


# ------------------------------------------------------------------------------------------------------- concatenation


def _concatenate(group: Group, op: Op, root: Root) -> None:
    assert root.memory is not None
    axis = op.attrs["axis"]
    at: DimLike = 0
    for x in op.operands:
        shape = x.type.shape
        maps = tuple(AxisMap(at if k == axis else 0, 1, k) for k in range(len(shape)))
        part = root.memory.view(IndexMap(shape, maps))
        group.emit_stores(Nest(root.stage, shape, None, [Root("store", x, shape, root.stage, None, part)]))
        at = at + shape[axis]


# ------------------------------------------------------------------------------------------------ positions of extremes


def _position(group: Group, op: Op, root: Root) -> None:
    """Along the innermost axis in memory a `Reduce`; else the lanes run along another axis, each with a search."""
    (x,) = op.operands
    axis, keep = op.attrs["axis"], op.attrs.get("keepdims", False)
    frame, b = group.frame, group.builder
    axes, index = loops_over(group.frame.index, x.type.shape)
    by_symbol = {a.symbol: a for a in axes}
    along = by_symbol.get(str(index[axis]))
    order = [by_symbol[str(index[k])] for k in x.type.layout.order if index[k] != 0 and k != axis]
    innermost = next((k for k in reversed(x.type.layout.order) if index[k] != 0), axis)
    at = tuple(0 if k == axis else i for k, i in enumerate(index) if keep or k != axis)
    outer, frame.body = frame.body, []
    if along is None:
        end: Operand = Const(0, dtypes.I64)
        flat, frame.body = frame.body, outer
        current: list[Stmt] = [*flat]
        levels: list[list[Stmt]] = [[] for _ in order]
    elif innermost == axis or not order:
        value = group.at(x, tuple(index))
        levels = split_levels([*order, along], frame.body)
        end = frame.var(dtypes.I64)
        part = Part(end, "argmax" if op.name == "argmax" else "argmin", "free", value)
        reduce = Reduce(along.symbol, along.size, levels.pop(), [part])
        current = [*levels.pop(), reduce]
    else:
        first_index = tuple(0 if k == axis else i for k, i in enumerate(index))
        first = group.at(x, first_index)
        before, frame.body = frame.body, []
        value = group.at(x, tuple(index))
        best, place = frame.var(value.dtype), frame.var(dtypes.I64)
        better = b.cmp("gt" if op.name == "argmax" else "lt", value, best)
        if value.dtype.kind == "f":
            nan = b.cmp("uno", value, value)
            better = b.or_(better, b.and_(nan, b.not_(b.cmp("uno", best, best))))
        best_next = b.select(better, value, best)
        place_next = b.select(better, group.dim(index[axis]), place)
        levels = split_levels([*order, along], [*before, *frame.body], (best, place))
        end, last = frame.var(dtypes.I64), frame.var(value.dtype)
        carried = [Carry(best, first, best_next, last), Carry(place, Const(0, dtypes.I64), place_next, end)]
        loop = For(along.symbol, 1, along.size, levels.pop(), carried=carried)
        current = [*levels.pop(), loop]
    frame.body = current
    if root.memory is not None:
        group.store(root.memory, at, end)
    else:
        group.slots[op.result] = Slot(end, root.stage)
    frame.body = outer
    for k in range(len(order) - 1, -1, -1):
        vector = k == len(order) - 1 and innermost != axis and along is not None
        loop = For(order[k].symbol, 0, order[k].size, current, role="vector" if vector else "serial")
        current = [*levels[k], loop]
    outer.extend(current)


# -------------------------------------------------------------------------------------------------- moving by indices


def _scatter(group: Group, op: Op, root: Root) -> None:
    """Serial over the indices, which may repeat; the lanes run along the axes behind."""
    assert root.memory is not None
    base, *where, values = op.operands
    axis, count = op.attrs["axis"], len(where)
    frame, b = group.frame, group.builder
    wide = index_shape([w.type for w in where])
    rank = len(wide)
    shape = (*base.type.shape[:axis], *wide, *base.type.shape[axis + count :])
    axes, index = loops_over(group.frame.index, shape)
    outer, frame.body = frame.body, []
    at = tuple(index[axis : axis + rank])
    places = [
        group.within(group.at(w, broadcast_index(at, w.type.shape)), base.type.shape[axis + k])
        for k, w in enumerate(where)
    ]
    target = (*index[:axis], *places, *index[axis + rank :])
    value = group.at(values, broadcast_index(tuple(index), values.type.shape))
    if op.name == "scatter_add":
        old = group.load(root.memory, target)
        value = b.add(old, b.cast(value, old.dtype))
    group.store(root.memory, target, value)
    flat, frame.body = frame.body, outer
    behind = any(d != 1 for d in base.type.shape[axis + count :])
    if not any(d != 1 for d in wide):
        behind = behind or bool(axes)
    outer.extend(_ordered_nest(axes, flat, vector=behind))


def _ordered_nest(axes: list[Axis], flat: list[Stmt], *, vector: bool) -> list[Stmt]:
    """Loops in this order, nothing moved out of them that reads what they write."""
    current = flat
    for k in range(len(axes) - 1, -1, -1):
        last = k == len(axes) - 1
        current = [For(axes[k].symbol, 0, axes[k].size, current, role="vector" if vector and last else "serial")]
    return current


# -------------------------------------------------------------------------------------------------------------- masks


def _counted_nest(
    e: Evaluator,
    shape: Shape,
    turn: Callable[[Index, Operand], Operand],
    start: Operand | None = None,
    role: Literal["serial", "append"] = "serial",
) -> Operand:
    """Loops over `shape` in C order that carry a count; `turn(index, count)` emits a turn and gives the next one.

    `role` is that of the innermost loop.
    """
    frame = e.frame
    axes, index = loops_over(e.frame.index, shape)
    init = Const(0, dtypes.I64) if start is None else start
    if not axes:
        return turn(tuple(index), init)
    inners = [frame.var(dtypes.I64) for _ in axes]
    outer, frame.body = frame.body, []
    following = turn(tuple(index), inners[-1])
    current: list[Stmt] = frame.body
    frame.body = outer
    for k in range(len(axes) - 1, -1, -1):
        result = frame.var(dtypes.I64)
        begin = inners[k - 1] if k else init
        carried = [Carry(inners[k], begin, following, result)]
        inner = k == len(axes) - 1
        current = [For(axes[k].symbol, 0, axes[k].size, current, role=role if inner else "serial", carried=carried)]
        following = result
    frame.body.extend(current)
    return following


def _expand(group: Group, op: Op, root: Root) -> None:
    """One value for all: selected between it and the old element. An array of values: the next one for each true."""
    assert root.memory is not None
    base, mask, values = op.operands
    memory, b = root.memory, group.builder
    if values.type.ndim == 0:
        frame = group.frame
        axes, index = loops_over(group.frame.index, base.type.shape)
        outer, frame.body = frame.body, []
        chosen = group.at(mask, tuple(index))
        value = b.cast(group.at(values, ()), base.type.dtype)
        old = group.load(memory, tuple(index))
        group.store(memory, tuple(index), b.select(chosen, value, old))
        flat, frame.body = frame.body, outer
        outer.extend(nest(group.in_memory_order(axes, memory, tuple(index)), flat))
        return

    def turn(index: Index, count: Operand) -> Operand:
        def hit() -> None:
            at = () if values.type.shape == (1,) else (group.bind(count),)
            value = group.at(values, at or (0,))
            group.store(memory, index, value)

        return _append(group, group.at(mask, index), count, hit)

    _counted_nest(group, base.type.shape, turn)


def _append(e: Evaluator, condition: Operand, count: Operand, hit: Callable[[], None]) -> Operand:
    """If the condition holds run `hit`; the count after it."""
    frame = e.frame
    outer, frame.body = frame.body, []
    memo = dict(e.memo)
    hit()
    then, frame.body = frame.body, outer
    e.memo = memo
    frame.body.append(If(condition, then, []))
    return e.builder.add(count, e.builder.cast(condition, dtypes.I64))


def _compress(group: Group, op: Op, root: Root) -> None:
    x, mask = op.operands
    memory = root.memory
    assert memory is not None

    def turn(index: Index, count: Operand) -> Operand:
        def hit() -> None:
            group.store(memory, (group.bind(count),), group.at(x, index))

        return _append(group, group.at(mask, index), count, hit)

    _counted_nest(group, mask.type.shape, turn, role="append")


def _nonzero(low: Lowering, op: Op) -> None:
    (mask,) = op.operands
    origin = origin_of([op])
    memories = [low.destination(r) for r in op.results]
    low.places.update(zip(op.results, memories, strict=True))
    e = Evaluator(low, KernelFrame(), {})

    def turn(index: Index, count: Operand) -> Operand:
        def hit() -> None:
            at = (e.bind(count),)
            for memory, i in zip(memories, index, strict=True):
                e.store(memory, at, e.dim(i))

        return _append(e, e.at(mask, index), count, hit)

    _counted_nest(e, mask.type.shape, turn, role="append")
    finish_kernel(low, e, [], f"k{len(low.kernels)}", origin)


def check_array(low: Lowering, op: Op, origin: list[str]) -> None:
    """A check of every element, in C order: the first that fails is reported with the values there.

    Where it is known whether all hold (the last operand of a guarded check), elements are looked at only if one fails.
    """
    condition, *values = op.operands
    guarded = bool(op.attrs.get("guarded"))
    holds_all = low.scalar(values.pop()) if guarded else None
    outside = low.frame.body
    if holds_all is not None:
        low.frame.body = []
    frame = KernelFrame()
    e = Evaluator(low, frame, {})
    axes, index = loops_over(e.frame.index, condition.type.shape)
    outer, frame.body = frame.body, []
    holds = e.at(condition, tuple(index))
    real = [v for v in values[:4] if v.type.dtype.kind != "c"]
    shown = tuple(e.at(v, broadcast_index(tuple(index), v.type.shape)) for v in real)
    frame.body.append(Check(holds, op.attrs["site"], shown))
    flat, frame.body = frame.body, outer
    outer.extend(nest(axes, flat))
    finish_kernel(low, e, [], f"k{len(low.kernels)}", origin)
    if holds_all is not None:
        outside.append(If(holds_all, [], low.frame.body))
        low.frame.body = outside


#: Roots with nests of their own, by operator.
SPECIAL: dict[str, Callable[[Group, Op, Root], None]] = {
    "concatenate": _concatenate,
    **FOLDS,
    "argmax": _position,
    "argmin": _position,
    "compress": _compress,
    "packed_sum": packed_sum,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "expand": _expand,
}
HANDLERS: dict[str, Callable[[Lowering, Op], None]] = {"nonzero": _nonzero}
