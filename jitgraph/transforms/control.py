"""Gradients through regions: `for`, `while` and `cond`, in both modes; and the surgery on region ops they need.

Reverse mode of a loop is a loop that runs backwards. Its body is a copy of the forward body, which recomputes what the
body's gradient needs from the carried values at the start of the turn, and the sweep over that copy. The forward loop
is extended in place: each carried value that the copy really reads is written, turn by turn, to a stack of shape
[trips, *shape]. Cotangents of the carried values are carried backwards; so are those of values that the body reads from
outside, which the turns add up in place.
A `while` is counted first; then it is a `for` of known length.
Extending in place, rather than replacing, keeps every value that a running trace may still hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from jitgraph.errors import TraceError, describe
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import Dim, DimLike, dim_max, floordiv, substitute, symbol, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.transform import bound_symbols
from jitgraph.ir.types import AxisMap, IndexMap, TensorType
from jitgraph.transforms import jvp, vjp
from jitgraph.transforms.jvp import Forward
from jitgraph.transforms.vjp import Sweep, mark_active, new_symbol, zeros

# --- copies and surgery -----------------------------------------------------------------------------------------------


def captured(op: Op) -> list[Value]:
    """The values from outside that the regions of `op` use, in the order of their first use."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}

    def visit(block: Block) -> None:
        inside.update(block.args)
        for inner in block.ops():
            for x in inner.operands:
                if x not in inside:
                    found[x] = None
            for region in inner.regions:
                visit(region)
            inside.update(inner.results)

    for region in op.regions:
        visit(region)
    return list(found)


def clone_block(
    block: Block, values: dict[Value, Value], b: Builder, env: Mapping[str, DimLike] | None = None
) -> list[Value]:
    """Emit copies of the ops of `block` at `b`, for another evaluation of a part that has run already.

    Checks are left out (they have passed); symbols bound inside get fresh names.

    Args:
        values: what stands for the arguments of the block, and for values around it that do not stand for themselves;
            copies are added.
        env: what stands for symbols.

    Returns:
        what stands for the operands of the block's terminator: zeros if the block raises, so that it never runs again.

    Raises:
        TraceError: a host call whose results are used would run again.
    """
    return _clone_ops(block, values, b, dict(env or {}))


def _clone_ops(block: Block, values: dict[Value, Value], b: Builder, env: dict[str, DimLike]) -> list[Value]:
    for op in block.ops():
        if op is block.last:
            break
        if op.name == "raise":
            return [zeros(b, replaced_type(x.type, env)) for x in block.terminator.operands]
        if op.defn.has(Trait.ORDERED):
            if any(r.uses for r in op.results):
                what = f"the gradient of a loop or branch would have to repeat the {op.name} in it"
                raise TraceError(describe(what, op.loc, remedy="move the call out of the loop or branch"))
            continue
        _clone_op(op, values, b, env)
    return [values.get(x, x) for x in block.terminator.operands]


def _clone_op(op: Op, values: dict[Value, Value], b: Builder, env: dict[str, DimLike]) -> None:
    operands = [values.get(x, x) for x in op.operands]
    attrs = {key: replaced(a, env) for key, a in op.attrs.items()} if env else dict(op.attrs)
    for key in ("index", "symbol"):
        if key in op.attrs:
            old = b.graph.symbols[op.attrs[key]]
            upper = None if old.upper is None else substitute(old.upper, env)
            lower = None if old.lower is None else substitute(old.lower, env)
            attrs[key] = new_symbol(b.graph, old.name, old.origin, lower, upper)
            env[old.name] = symbol(attrs[key])
    for name in op.attrs.get("binds", ()):
        env[name] = symbol(new_symbol(b.graph, name, "value", 0, None))
    if "binds" in op.attrs:
        attrs["binds"] = tuple(str(env[name]) for name in op.attrs["binds"])
    types: Sequence[TensorType] = [replaced_type(r.type, env) for r in op.results]
    regions: list[Block] = []
    for region in op.regions:
        copy = Block()
        for arg in region.args:
            values[arg] = copy.add_arg(replaced_type(arg.type, env), arg.name)
        inner = Builder(b.graph, copy)
        given = _clone_ops(region, values, inner, env)
        inner.emit(REGISTRY["yield"], given, ())
        regions.append(copy)
    if not regions and any(
        new.type.layout != old.type.layout for new, old in zip(operands, op.operands, strict=True) if new is not old
    ):
        types = op.defn.infer([x.type for x in operands], attrs).results
    loc, locate, b.loc, b.locate = b.loc, b.locate, op.loc, None
    copied = b.emit(op.defn, operands, types, attrs, regions)
    b.loc, b.locate = loc, locate
    for old_result, new_result in zip(op.results, copied.results, strict=True):
        new_result.name = old_result.name
        values[old_result] = new_result


def replaced(attr: Any, env: Mapping[str, DimLike]) -> Any:
    """An attribute with symbols replaced."""
    if isinstance(attr, Dim):
        return substitute(attr, env)
    if isinstance(attr, IndexMap):
        return attr.substitute(dict(env))
    if isinstance(attr, tuple):
        return tuple(replaced(a, env) for a in attr)
    return attr


def replaced_type(t: TensorType, env: Mapping[str, DimLike]) -> TensorType:
    if not env or all(isinstance(d, int) for d in t.shape):
        return t
    return TensorType(t.dtype, tuple(substitute(d, env) for d in t.shape), t.kind, t.layout)


def append_operand(op: Op, value: Value) -> None:
    op.operands.append(value)
    value.uses[(op, len(op.operands) - 1)] = None


def append_result(op: Op, t: TensorType, name: str = "") -> Value:
    value = Value(t, name, op, len(op.results))
    op.results.append(value)
    return value


def append_carried(op: Op, init: Value, name: str = "") -> tuple[list[Value], Value]:
    """One more carried value of a loop; the caller appends the operand of the body's `yield`.

    Returns:
        its argument in each region, and its result.
    """
    append_operand(op, init)
    args = [region.add_arg(init.type, name) for region in op.regions]
    return args, append_result(op, init.type, name)


def erase_unused(graph: Graph, block: Block) -> None:
    """Erase the ops of a block that nothing needs, and what loops in it carry for nobody."""
    for op in block.ops_back():
        defn = op.defn
        if defn.has(Trait.TERMINATOR) or defn.has(Trait.ORDERED) or defn.has(Trait.BINDS):
            continue
        if not any(r.uses for r in op.results) and (not op.regions or _is_silent(op)):
            graph.erase(op)
        elif op.name in ("for", "while"):
            _drop_dead_carried(graph, op)


def _is_silent(op: Op) -> bool:
    return not any(inner.defn.has(Trait.ORDERED) for inner in op.walk())


def _drop_dead_carried(graph: Graph, op: Op) -> None:
    """Remove carried values whose result nobody uses and that only feed themselves."""
    live = {j for j, r in enumerate(op.results) if r.uses}
    terminators = [region.terminator for region in op.regions]
    last = terminators[-1]
    needed: set[Value] = set()
    work: list[Value] = []
    for region in op.regions:
        for inner in region.ops():
            stays = inner.defn.has(Trait.ORDERED) or inner.defn.has(Trait.BINDS) or inner in terminators
            if stays and inner is not last:
                work += inner.operands
            elif inner.regions and not _is_silent(inner):
                work += [*inner.operands, *captured(inner)]
    work += [last.operands[j] for j in live]
    while work:
        x = work.pop()
        if x in needed:
            continue
        needed.add(x)
        if x.producer is not None:
            work += x.producer.operands
            if x.producer.regions:
                work += captured(x.producer)
        elif x.block in op.regions and x.index not in live:
            live.add(x.index)
            work.append(last.operands[x.index])
    dead = [j for j in range(len(op.operands)) if j not in live]
    if not dead:
        return
    last.set_operands([x for j, x in enumerate(last.operands) if j in live])
    for region in op.regions:
        erase_unused(graph, region)
    for region in op.regions:
        region.args = [arg for arg in region.args if arg.index in live]
        for i, arg in enumerate(region.args):
            arg.index = i
    op.set_operands([x for j, x in enumerate(op.operands) if j in live])
    op.results = [r for r in op.results if r.index in live]
    for i, r in enumerate(op.results):
        r.index = i


def carried_type(t: TensorType) -> TensorType:
    """The type in which the cotangent or tangent of a value of type `t` crosses the border of a region."""
    return TensorType(t.dtype, t.shape, "array" if t.shape else "np_scalar")


def carry(b: Builder, x: Value | None, t: TensorType) -> Value:
    """`x` (zeros if None) as a value of exactly the type `t`."""
    if x is None:
        x = zeros(b, t)
    if x.type.dtype != t.dtype or x.type.shape != t.shape:
        x = vjp.conform(b, x, t)
    if x.type.kind != t.kind:
        x = b.as_kind(x, kind=t.kind)
    if x.type.layout != t.layout:
        x = b.copy(x, order="C")
    return x


# --- stacks of what a loop carries ------------------------------------------------------------------------------------


def _stack_type(trips: DimLike, t: TensorType) -> TensorType:
    """A stack of values of type `t`: f[trips, ...], each in the memory order of `t`."""
    return TensorType(t.dtype, (trips, *(t.shape[k] for k in t.layout.order)), "array")


def _row(position: DimLike, t: TensorType) -> IndexMap:
    """The view of row `position` of a stack of values of type `t`."""
    return IndexMap(t.shape, (AxisMap(position, 1, None), *(AxisMap(0, 1, k) for k in t.layout.order)))


def _read(b: Builder, stack: Value, position: DimLike, t: TensorType) -> Value:
    row: Value = b.view(stack, map=_row(position, t))
    return row if row.type.kind == t.kind else b.apply(REGISTRY["as_kind"], row, kind=t.kind)[0]


def _record(graph: Graph, loop: Op, value: Value, after: Op | None, position: DimLike, trips: DimLike) -> Value:
    """Extend a `for` so that it stacks `value`, a value of its body, at each turn; the stack after the loop."""
    body = loop.regions[0]
    t = value.type
    stack_type, row = _stack_type(trips, t), _row(position, t)
    for user, i in value.uses:  # recorded before, for another sweep
        if user.name == "write" and i == 0 and user.block is body and user.attrs["map"] == row:
            arg = user.operands[1]
            if arg.block is body and arg.type == stack_type and body.terminator.operands[arg.index] is user.results[0]:
                return loop.results[arg.index]
    init = vjp.filled(Builder(graph).ahead_of(loop), 0, stack_type.shape, t.dtype)
    (arg,), result = append_carried(loop, init)
    following = body.first if after is None else after.next
    assert following is not None
    written: Value = Builder(graph).ahead_of(following).write(value, arg, map=row)
    append_operand(body.terminator, written)
    return result


def trip_count(graph: Graph, loop: Op) -> tuple[DimLike, DimLike]:
    """(turns, turns if there is at least one) of a `for`: the second is simpler and holds inside the loop."""
    lower, upper, step = loop.attrs["lower"], loop.attrs["upper"], loop.attrs["step"]
    span: DimLike
    if isinstance(step, int) and step < 0:
        span = floordiv(lower - upper - step - 1, -step)
    else:
        span = floordiv(upper - lower + step - 1, step)
    if isinstance(span, int):
        return max(span, 0), span
    low = graph.facts.minimum(span)
    return (span if low is not None and low >= 0 else dim_max(0, span)), span


# --- reverse ----------------------------------------------------------------------------------------------------------


@vjp.rule("for")
def _for_vjp(sweep: Sweep, op: Op, cotangents: list[Value | None]) -> None:
    b: Builder = sweep.b
    graph, body = b.graph, op.regions[0]
    active = [j for j, arg in enumerate(body.args) if arg in sweep.active]
    outside = [x for x in captured(op) if x in sweep.active]
    trips, span = trip_count(graph, op)
    lower, step = op.attrs["lower"], op.attrs["step"]
    turn = new_symbol(graph, "turn", "index", 0, trips - 1)
    position = span - 1 - symbol(turn)

    back = Block()
    inner = Builder(graph, back)
    inner.loc = op.loc
    types = [carried_type(op.results[j].type) for j in active] + [carried_type(x.type) for x in outside]
    args = [back.add_arg(t) for t in types]
    stacks = [Value(_stack_type(trips, arg.type)) for arg in body.args]
    reads = [_read(inner, s, position, arg.type) for s, arg in zip(stacks, body.args, strict=True)]
    border = back.last
    copies: dict[Value, Value] = dict(zip(body.args, reads, strict=True))
    given = clone_block(body, copies, inner, {op.attrs["index"]: lower + position * step})
    ops = _ops_after(back, border)
    inner_active = {reads[j] for j in active} | set(outside)
    mark_active(ops, inner_active)
    inner_sweep = Sweep(inner, inner_active)
    inner_sweep.cotangents.update(zip(outside, args[len(active) :], strict=True))
    for j, arg in zip(active, args, strict=False):
        inner_sweep.add(given[j], arg)
    inner_sweep.run(ops)
    outs = [inner_sweep.take(reads[j]) for j in active] + [inner_sweep.take(x) for x in outside]
    inner.emit(REGISTRY["yield"], [carry(inner, x, t) for x, t in zip(outs, types, strict=True)], ())
    erase_unused(graph, back)
    forward_turn = floordiv(symbol(op.attrs["index"]) - lower, step)
    originals = {copy: x for x, copy in copies.items() if x.producer is not None and x.producer.block is body}
    carried = list(body.args)
    for read in reads:
        for part in _parts_read(read, originals, _bound_inside(op)):
            stack = _record(graph, op, originals[part], originals[part].producer, forward_turn, trips)
            place = inner.ahead_of(part.producer)  # type: ignore[arg-type]  # a view
            part.replace_all_uses_with(_read(place, stack, position, part.type))
    erase_unused(graph, back)
    for stack, arg in zip(stacks, carried, strict=True):
        if stack.uses:
            stack.replace_all_uses_with(_record(graph, op, arg, None, forward_turn, trips))

    inits = [cotangents[j] for j in active] + [sweep.take(x) for x in outside]
    loop = b.emit(
        op.defn,
        [carry(b, x, t) for x, t in zip(inits, types, strict=True)],
        types,
        {"index": turn, "lower": 0, "upper": trips, "step": 1},
        [back],
    )
    sweep.cotangents.update(zip(outside, loop.results[len(active) :], strict=True))
    for j, result in zip(active, loop.results, strict=False):
        sweep.add(op.operands[j], result)


def _bound_inside(loop: Op) -> set[str]:
    """The symbols that mean something only inside the loop."""
    return {name for op in loop.walk() for name in bound_symbols(op)}


def _parts_read(read: Value, originals: Mapping[Value, Value], local: Collection[str]) -> list[Value]:
    """The views that a loop's copied body reads of a carried array, if they are all it reads, and are smaller.

    Then these are recorded, not the array: `x[i] = f(x[i - 1])` records one element a turn. Versions of the array that
    the body itself writes are followed.

    Args:
        read: what stands for the carried array in the copied body.
        originals: what values of the copied body are copies of.
        local: symbols that the shape of a recorded view must not mention.
    """
    parts: list[Value] = []
    work = [read] if read.type.shape else []
    while work:
        version = work.pop()
        for op, i in version.uses:
            result = op.results[0] if op.results else None
            if op.name == "write" and i == 1 and result is not None and result in originals:
                work.append(result)
            elif (
                op.name == "view"
                and result is not None
                and result in originals
                and result.type.ndim < version.type.ndim
                and not any(name in local for d in originals[result].type.shape for name in symbols(d))
            ):
                parts.append(result)
            else:
                return []
    return parts


def _ops_after(block: Block, op: Op | None) -> list[Op]:
    found: list[Op] = []
    at = block.first if op is None else op.next
    while at is not None:
        found.append(at)
        at = at.next
    return found


@vjp.rule("while")
def _while_vjp(sweep: Sweep, op: Op, cotangents: list[Value | None]) -> None:
    b: Builder = sweep.b
    graph, body = b.graph, op.regions[1]
    carried = list(op.operands)

    again = Block()
    inner = Builder(graph, again)
    copies = {old: again.add_arg(old.type, old.name) for old in body.args}
    inner.emit(REGISTRY["yield"], clone_block(body, copies, inner), ())

    (_, arg), count = append_carried(op, Builder(graph).ahead_of(op).constant(np.int64(0)), "turns")
    append_operand(body.terminator, Builder(graph).ahead_of(body.terminator).add(arg, np.int64(1)))
    trips = new_symbol(graph, "turns", "value", 0)
    b.emit(REGISTRY["bind"], [count], (), {"symbol": trips})
    index = new_symbol(graph, "turn", "index", 0, symbol(trips) - 1)
    loop = b.emit(
        REGISTRY["for"],
        carried,
        [x.type for x in carried],
        {"index": index, "lower": 0, "upper": symbol(trips), "step": 1},
        [again],
    )
    assert isinstance(sweep.active, set)
    mark_active([loop], sweep.active)
    _for_vjp(sweep, loop, cotangents)


@vjp.rule("cond")
@vjp.rule("switch")
def _cond_vjp(sweep: Sweep, op: Op, cotangents: list[Value | None]) -> None:
    b: Builder = sweep.b
    graph = b.graph
    outside = [x for x in captured(op) if x in sweep.active]
    types = [carried_type(x.type) for x in outside]
    have = [carry(b, sweep.take(x), t) for x, t in zip(outside, types, strict=True)]
    regions: list[Block] = []
    for region in op.regions:
        back = Block()
        inner = Builder(graph, back)
        inner.loc = op.loc
        given = clone_block(region, {}, inner)
        ops = list(back.ops())
        active: set[Value] = set(outside)
        mark_active(ops, active)
        inner_sweep = Sweep(inner, active)
        inner_sweep.cotangents.update(zip(outside, have, strict=True))
        for x, ct in zip(given, cotangents, strict=True):
            inner_sweep.add(x, ct)
        inner_sweep.run(ops)
        outs = [carry(inner, inner_sweep.take(x), t) for x, t in zip(outside, types, strict=True)]
        inner.emit(REGISTRY["yield"], outs, ())
        erase_unused(graph, back)
        regions.append(back)
    branch = b.emit(op.defn, op.operands, types, op.attrs, regions)
    sweep.cotangents.update(zip(outside, branch.results, strict=True))


# --- forward ----------------------------------------------------------------------------------------------------------


@jvp.rule("for")
@jvp.rule("while")
def _loop_jvp(forward: Forward, op: Op) -> None:
    """The loop carries the tangents of what it carries, in the same turn."""
    graph = forward.b.graph
    body = op.regions[-1]
    active: set[Value] = set(forward.tangents)
    mark_active([op], active)
    carried = [j for j, arg in enumerate(body.args) if arg in active]
    ahead = Builder(graph).ahead_of(op)
    results = []
    for j in carried:
        t = carried_type(op.results[j].type)
        args, result = append_carried(op, carry(ahead, forward.tangents.get(op.operands[j]), t))
        forward.tangents[body.args[j]] = args[-1]
        results.append(result)
    given = list(body.terminator.operands)
    Forward(Builder(graph, body), forward.tangents).run(_before_terminator(body))
    end = Builder(graph).ahead_of(body.terminator)
    for j, result in zip(carried, results, strict=True):
        append_operand(body.terminator, carry(end, forward.tangents.get(given[j]), result.type))
        forward.tangents[op.results[j]] = result


@jvp.rule("cond")
@jvp.rule("switch")
def _cond_jvp(forward: Forward, op: Op) -> None:
    """All branches yield the tangents of what they yield."""
    graph = forward.b.graph
    active: set[Value] = set(forward.tangents)
    mark_active([op], active)
    which = [j for j, r in enumerate(op.results) if r in active]
    count = len(op.results)
    for j in which:
        forward.tangents[op.results[j]] = append_result(op, carried_type(op.results[j].type))
    for region in op.regions:
        Forward(Builder(graph, region), forward.tangents).run(_before_terminator(region))
        end = Builder(graph).ahead_of(region.terminator)
        for k, j in enumerate(which):
            tangent = forward.tangents.get(region.terminator.operands[j])
            append_operand(region.terminator, carry(end, tangent, op.results[count + k].type))


def _before_terminator(block: Block) -> list[Op]:
    return [op for op in block.ops() if op is not block.last]
