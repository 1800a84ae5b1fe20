"""Dot products in BLAS's order (`dots.ORDERS`), with the operands computed in place.

Contiguous: wide vectors hold all accumulators. Strided: scalars, or inside a vector loop one sum for each of its lanes.
Parts of one `Reduce` run side by side and share what the body loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitgraph.codegen.assembler import V
from jitgraph.codegen.dots import ORDERS, DotOrder
from jitgraph.codegen.llvm_function import I64, TYPES, FunctionEmitter, Level
from jitgraph.codegen.llvm_vector import VectorBody
from jitgraph.codegen.loops import Part, Reduce, Stmt
from jitgraph.codegen.loops_walk import summarize

_ZERO = V("0", I64)
_TAIL = 16  # elements that a turn of the contiguous order's vectors takes
_GROUP = 4  # products that a turn of the strided order takes
_UNROLLED = 4  # products of a rest of known length that are written out

#: What a turn of a loop makes of the sums so far: index of its first element, sums, and the loop.
_Turn = Callable[[V, list[V], Level], list[V]]


def emit_dot(f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part], along: Sequence[Part] = ()) -> None:
    """Parts of one order; `along`: conditions that hold throughout or not, beside those of contiguous vectors."""
    order = ORDERS[parts[0].model]
    f.hoist_loads = None  # the loops may not run: nothing may be read in front of them
    with f.a.strict():
        if order.rest:
            _rest(f, s, body, parts, order)
        elif order.strided:
            _strided(f, s, body, parts, order)
        else:
            _contiguous(f, s, body, parts, order, along)


def _number(value: int) -> V:
    return V(str(value), I64)


def _loop(f: FunctionEmitter, s: Reduce, lower: V, upper: V, step: int, sums: list[V], turn: _Turn) -> list[V]:
    """for at in range(lower, upper, step): sums = turn(at, sums)."""
    a = f.a
    before, start, loop, done = a.block, *(a.fresh_label(name) for name in ("dot", "dot.loop", "dot.done"))
    a.condbr(a.icmp("slt", lower, upper), start, done)
    a.label(start)
    level = f.open_level(s)
    preheader = a.block
    a.label(loop)
    at = a.phi([(lower, preheader)])
    now = [a.phi([(x, preheader)]) for x in sums]
    f.chain = level.chain = [{}]
    nexts = turn(at, now, level)
    following = a.add(at, _number(step))
    latch = a.block
    a.add_incoming(at, following, latch)
    for x, value in zip(now, nexts, strict=True):
        a.add_incoming(x, value, latch)
    a.condbr(a.icmp("slt", following, upper), loop, done)
    f.close_level()
    a.label(done)
    return [a.phi([(x, before), (value, latch)]) for x, value in zip(sums, nexts, strict=True)]


def _operands(f: FunctionEmitter, p: Part) -> tuple[V, V]:
    assert p.factor is not None
    return f.wide(f.operand(p.value)), f.wide(f.operand(p.factor))


def _one_by_one(
    f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part], order: DotOrder
) -> Callable[[V, list[V], Level], list[V]]:
    """The turn of the loop over the last elements."""

    def turn(at: V, sums: list[V], _: Level) -> list[V]:
        f.bind(s.symbol, at)
        f.statements(body)
        return [_add_product(f, order, p, total) for p, total in zip(parts, sums, strict=True)]

    return turn


def _add_product(f: FunctionEmitter, order: DotOrder, p: Part, total: V) -> V:
    x, y = _operands(f, p)
    a = f.a
    return a.fma(x, y, total) if order.fused_rest else a.fadd(total, a.fmul(x, y))


def _rest(f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part], order: DotOrder) -> None:
    starts = [f.wide(f.operand(p.init)) for p in parts if p.init is not None]
    turn = _one_by_one(f, s, body, parts, order)
    if isinstance(s.extent, int) and s.extent <= _UNROLLED:
        ends = starts
        for k in range(s.extent):
            ends = turn(_number(k), ends, f.levels[-1])
    else:
        ends = _loop(f, s, _ZERO, f.dim(s.extent), 1, starts, turn)
    f.values.update((p.result.name, end) for p, end in zip(parts, ends, strict=True))


# --- strided --------------------------------------------------------------------------------------------------------


def _strided(f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part], order: DotOrder) -> None:
    a = f.a
    extent = f.dim(s.extent)
    zeros = [f.wide(a.const(0.0, TYPES[p.value.dtype])) for p in parts]
    whole = a.and_(extent, _number(-_GROUP))

    def group(at: V, sums: list[V], _: Level) -> list[V]:
        products: list[list[V]] = []
        for k in range(_GROUP):
            f.bind(s.symbol, a.add(at, _number(k)) if k else at)
            f.statements(body)
            products.append([a.fmul(*_operands(f, p)) for p in parts])
        nexts: list[V] = []
        for k, (first, second) in enumerate(zip(sums[::2], sums[1::2], strict=True)):
            m = [product[k] for product in products]
            nexts += [a.fadd(first, a.fadd(m[0], m[2])), a.fadd(second, a.fadd(m[1], m[3]))]
        return nexts

    sums = _loop(f, s, _ZERO, whole, _GROUP, [x for x in zeros for _ in range(2)], group)
    firsts = _loop(f, s, whole, extent, 1, sums[::2], _one_by_one(f, s, body, parts, order))
    for p, first, second in zip(parts, firsts, sums[1::2], strict=True):
        f.values[p.result.name] = a.fadd(first, second)


# --- contiguous -----------------------------------------------------------------------------------------------------


def _contiguous(
    f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part], order: DotOrder, along: Sequence[Part]
) -> None:
    a = f.a
    extent = f.dim(s.extent)
    whole = a.and_(extent, _number(-_TAIL))
    summary = summarize(body)
    types = [TYPES[p.value.dtype] for p in parts]

    def vectors(lanes: int, lower: V, upper: V, sums: list[V], holds: list[V]) -> tuple[list[V], list[V]]:
        """The sums and conditions behind the elements from `lower` to `upper`."""

        def turn(at: V, states: list[V], level: Level) -> list[V]:
            vector = VectorBody(f, s.symbol, lanes, body, summary)
            vector.at(at, None, level)
            f.hoist_loads = None
            f.statements(body)
            nexts = [a.fma(*_operands(f, p), total) for p, total in zip(parts, states, strict=False)]
            flags = [a.and_(x, f.wide(f.operand(p.value))) for p, x in zip(along, states[len(parts) :], strict=True)]
            vector.leave()
            return [*nexts, *flags]

        states = _loop(f, s, lower, upper, lanes, [*sums, *(a.const(1, "i1", lanes) for _ in along)], turn)
        here = [a.all_lanes(x) for x in states[len(parts) :]]
        return states[: len(parts)], [a.and_(x, y) for x, y in zip(holds, here, strict=True)]

    def rest(at: V, states: list[V], level: Level) -> list[V]:
        ends = one_by_one(at, states[: len(parts)], level)
        flags = zip(along, states[len(parts) :], strict=True)
        return [*ends, *(a.and_(x, f.operand(p.value)) for p, x in flags)]

    one_by_one = _one_by_one(f, s, body, parts, order)
    yes = [V("true", "i1") for _ in along]
    zeros = [a.const(0.0, ty) for ty in types]
    before, some, tail = a.block, a.fresh_label("dot.vectors"), a.fresh_label("dot.rest")
    a.condbr(a.icmp("ne", whole, _ZERO), some, tail)
    a.label(some)
    lower, holds = _ZERO, yes
    sums = [a.const(0.0, ty, _TAIL) for ty in types]
    if order.wide:
        lower = a.and_(extent, _number(-2 * _TAIL))
        sums, holds = vectors(2 * _TAIL, _ZERO, lower, [a.const(0.0, ty, 2 * _TAIL) for ty in types], holds)
        low = [8 * (k // 4) + k % 4 for k in range(_TAIL)]
        sums = [a.fadd(a.shuffle(x, None, low), a.shuffle(x, None, [k + 4 for k in low])) for x in sums]
    sums, holds = vectors(_TAIL, lower, whole, sums, holds)
    totals = [*(_folded(f, order, x) for x in sums), *holds]
    after = a.block
    a.br(tail)
    a.label(tail)
    starts = [a.phi([(first, before), (total, after)]) for first, total in zip([*zeros, *yes], totals, strict=True)]
    ends = _loop(f, s, whole, extent, 1, starts, rest)
    for p, end in zip([*parts, *along], ends, strict=True):
        f.values[p.result.name] = end


def _folded(f: FunctionEmitter, order: DotOrder, x: V) -> V:
    """The sum of four accumulators of four lanes."""
    a = f.a
    if order.halves_first:
        low = [4 * (k // 2) + k % 2 for k in range(8)]
        x = a.fadd(a.shuffle(x, None, low), a.shuffle(x, None, [k + 2 for k in low]))
        one, two, three, four = (a.slice_lanes(x, at, 2) for at in range(0, 8, 2))
        x = a.fadd(a.fadd(one, two), a.fadd(three, four))
    else:
        one, two, three, four = (a.slice_lanes(x, at, 4) for at in range(0, 16, 4))
        x = a.fadd(a.fadd(a.fadd(one, two), three), four)
        x = a.fadd(a.slice_lanes(x, 0, 2), a.slice_lanes(x, 2, 2))
    return a.fadd(a.extract(x, 0), a.extract(x, 1))
