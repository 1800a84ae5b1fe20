"""`Reduce`: NumPy's pairwise order, BLAS's order of a dot product, element by element, or lanes in any grouping.

The first two have files of their own, `llvm_pairwise` and `llvm_dot`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from jitgraph.codegen.assembler import V
from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.llvm_dot import emit_dot
from jitgraph.codegen.llvm_function import I64, FunctionEmitter
from jitgraph.codegen.llvm_pairwise import emit_pairwise
from jitgraph.codegen.llvm_scalar import compare
from jitgraph.codegen.llvm_vector import VectorBody, lanes_for, tail_mask
from jitgraph.codegen.loops import Const, Part, Reduce, Stmt, While
from jitgraph.codegen.loops_walk import Summary, summarize
from jitgraph.codegen.reduce_passes import passes_of
from jitgraph.errors import InternalError

#: Vectors side by side where lanes run a `while` whose statements, so many at most, wait for one another.
WAITING = 4
LIGHT_LOOP = 20


def emit_reduce(f: FunctionEmitter, s: Reduce) -> None:
    """Each order takes a pass over the elements (`reduce_passes`)."""
    passes = passes_of(s)
    dots = next((x.parts for x in passes if x.order == "dot"), [])
    free = next((x.parts for x in passes if x.order == "free"), [])
    if len(passes) == 2 and dots and _conditions(free) and not ORDERS[dots[0].model].by_lane:
        emit_dot(f, s, s.body, dots, free)
        return
    for x in passes:
        if x.order == "pairwise":
            emit_pairwise(f, s, x.body, x.parts, partial(_accumulators, f, x.along))
        elif x.order == "dot":
            emit_dot(f, s, x.body, x.parts)
        elif x.order == "serial":
            _serial(f, s, x.body, x.parts)
        else:
            _free(f, s, x.body, x.parts)


def _accumulators(f: FunctionEmitter, parts: list[Part], lanes: int) -> list[Accumulator]:
    return [Accumulator(f, p, lanes) for p in parts]


def _conditions(parts: list[Part]) -> bool:
    """Whether all parts, of which there are some, ask whether a condition holds throughout."""
    return bool(parts) and all(p.kind == "all" and isinstance(p.init, Const) and p.init.value for p in parts)


# --- how two values combine -----------------------------------------------------------------------------------------


def combine(f: FunctionEmitter, kind: str, dtype: np.dtype, x: V, y: V) -> V:
    """One step of a reduction: x so far, y the next; min and max keep a NaN of either."""
    a = f.a
    if kind == "sum":
        return a.fadd(x, y) if dtype.kind == "f" else a.or_(x, y) if dtype.kind == "b" else a.add(x, y)
    if kind == "prod":
        return a.fmul(x, y) if dtype.kind == "f" else a.and_(x, y) if dtype.kind == "b" else a.mul(x, y)
    if kind == "any":
        return a.or_(x, y)
    if kind == "all":
        return a.and_(x, y)
    if kind not in ("max", "min"):
        raise InternalError(f"no reduction {kind!r}")
    if dtype.kind == "f":
        keep = a.fcmp("oge" if kind == "max" else "ole", x, y)
        return a.select(a.or_(keep, a.fcmp("uno", x, x)), x, y)
    return a.select(compare(a, "ge" if kind == "max" else "le", x, y, dtype), x, y)


def identity(kind: str, dtype: np.dtype) -> float:
    """The value that changes nothing; -0.0 for float sums."""
    if kind == "sum":
        return -0.0 if dtype.kind == "f" else 0
    if kind == "prod":
        return 1
    if kind in ("any", "all"):
        return int(kind == "all")
    low = kind in ("max", "argmax")
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    if dtype.kind == "b":
        return int(not low)
    info = np.iinfo(dtype)
    return int(info.min if low else info.max)


def _init(f: FunctionEmitter, p: Part) -> V:
    if p.init is not None:
        return f.operand(p.init)
    return f.constant(identity(p.kind, p.value.dtype), p.value.dtype)


# --- element by element ---------------------------------------------------------------------------------------------


def _serial(f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part]) -> None:
    """Scalar loop; min and max begin with their identity if `init` is None."""
    a = f.a
    extent = f.dim(s.extent)
    done, loop, start = a.fresh_label("reduce.done"), a.fresh_label("reduce.loop"), a.fresh_label("reduce")
    firsts: list[V] = []
    for p in parts:
        if p.kind in ("argmax", "argmin"):
            firsts += [f.constant(identity(p.kind, p.value.dtype), p.value.dtype), V("0", I64)]
        else:
            firsts.append(_init(f, p))
    before = a.block
    a.condbr(a.icmp("sgt", extent, V("0", I64)), start, done)
    a.label(start)
    level = f.open_level(s)
    preheader = a.block
    a.label(loop)
    at = a.phi([(V("0", I64), preheader)])
    states = [a.phi([(first, preheader)]) for first in firsts]
    f.bind(s.symbol, at)
    f.chain = level.chain = [{}]
    f.statements(body)
    nexts: list[V] = []
    k = 0
    for p in parts:
        value = f.operand(p.value)
        if p.kind in ("argmax", "argmin"):
            best, position = states[k : k + 2]
            better = _better(f, p, value, best)
            nexts += [a.select(better, value, best), a.select(better, at, position)]
            k += 2
        else:
            nexts.append(combine(f, p.kind, p.value.dtype, states[k], value))
            k += 1
    following = a.add(at, V("1", I64))
    latch = a.block
    a.add_incoming(at, following, latch)
    for state, value in zip(states, nexts, strict=True):
        a.add_incoming(state, value, latch)
    a.condbr(a.icmp("slt", following, extent), loop, done)
    f.close_level()
    a.label(done)
    results = [a.phi([(first, before), (value, latch)]) for first, value in zip(firsts, nexts, strict=True)]
    k = 0
    for p in parts:
        arg = p.kind in ("argmax", "argmin")
        f.values[p.result.name] = results[k + 1 if arg else k]
        k += 2 if arg else 1


def _better(f: FunctionEmitter, p: Part, value: V, best: V) -> V:
    """Whether a value takes the place of the best so far: strictly better, or the first NaN."""
    a, low = f.a, p.kind == "argmin"
    if p.value.dtype.kind == "f":
        return a.and_(a.fcmp("ult" if low else "ugt", value, best), a.fcmp("ord", best, best))
    return compare(a, "lt" if low else "gt", value, best, p.value.dtype)


# --- any grouping ---------------------------------------------------------------------------------------------------


class Accumulator:
    """The vector state of one part: one vector, or two (value and NaN mask; value and position).

    In the loop over whole turns a position is the number of the turn, an int32; `positioned` makes it an index.
    """

    def __init__(self, f: FunctionEmitter, p: Part, lanes: int) -> None:
        self.f, self.p, self.lanes = f, p, lanes
        self.dtype = p.value.dtype
        self.positions = p.kind in ("argmax", "argmin")
        self.nans = p.kind in ("max", "min") and self.dtype.kind == "f"

    def initial(self) -> list[V]:
        a, f = self.f.a, self.f
        value = a.splat(f.constant(identity(self.p.kind, self.dtype), self.dtype), self.lanes)
        if self.positions:
            return [value, a.const(0, "i32", self.lanes)]
        return [value, a.const(0, "i1", self.lanes)] if self.nans else [value]

    def positioned(self, state: list[V], step: int, start: int) -> list[V]:
        """The state with numbers of turns of `step` elements made indices; its lanes began at `start`."""
        if not self.positions:
            return state
        a = self.f.a
        turns = a.mul(a.zext(state[1], I64), a.const(step, I64, self.lanes))
        return [state[0], a.add(turns, a.iota(I64, self.lanes, start))]

    def step(self, state: list[V], place: V, mask: V | None) -> list[V]:
        """One more vector. `place` is the number of the turn, or the index of the first lane."""
        f, a, p = self.f, self.f.a, self.p
        value = f.wide(f.operand(p.value))
        if self.positions:
            better = _better(f, p, value, state[0])
            if mask is not None:
                better = a.and_(better, mask)
            here = f.wide(place)
            if place.ty == I64:
                here = a.add(here, a.iota(I64, self.lanes))
            return [a.select(better, value, state[0]), a.select(better, here, state[1])]
        if self.nans:
            better = a.fcmp("ogt" if p.kind == "max" else "olt", value, state[0])
            nan = a.fcmp("uno", value, value)
            if mask is not None:
                better, nan = a.and_(better, mask), a.and_(nan, mask)
            return [a.select(better, value, state[0]), a.or_(state[1], nan)]
        result = combine(f, p.kind, self.dtype, state[0], value)
        return [result if mask is None else a.select(mask, result, state[0])]

    def join(self, x: list[V], y: list[V]) -> list[V]:
        """Two states in one; for positions the lower one where the values are equal, or both NaN."""
        f, a, p = self.f, self.f.a, self.p
        if self.positions:
            better = _better(f, p, y[0], x[0])
            if self.dtype.kind == "f":
                both = a.fcmp("uno", x[0], x[0])
                same = a.or_(a.fcmp("oeq", x[0], y[0]), a.and_(both, a.fcmp("uno", y[0], y[0])))
            else:
                same = a.icmp("eq", x[0], y[0])
            better = a.or_(better, a.and_(same, a.icmp("slt", y[1], x[1])))
            return [a.select(better, y[0], x[0]), a.select(better, y[1], x[1])]
        if self.nans:
            better = a.fcmp("ogt" if p.kind == "max" else "olt", y[0], x[0])
            return [a.select(better, y[0], x[0]), a.or_(x[1], y[1])]
        return [combine(f, p.kind, self.dtype, x[0], y[0])]

    def finish(self, states: list[list[V]]) -> V:
        """The scalar result of all lanes of all states, `init` included."""
        f, a = self.f, self.f.a
        while len(states) > 1:
            pairs = zip(states[::2], states[1::2], strict=True)
            states = [self.join(x, y) for x, y in pairs]
        state, lanes = states[0], self.lanes
        if self.dtype.kind == "b" and not self.positions:
            return self._finish_bool(state[0])
        if self.nans:
            state = [state[0], state[1]]
        while lanes > 1:
            half = lanes // 2
            low = [a.slice_lanes(x, 0, half) for x in state]
            high = [a.slice_lanes(x, half, half) for x in state]
            state = self.join(low, high)
            lanes = half
        if self.positions:
            return state[1]
        result = state[0]
        if self.nans:
            result = a.select(state[1], a.const(np.nan, result.ty), result)
        if self.p.init is not None:
            result = combine(f, self.p.kind, self.dtype, f.operand(self.p.init), result)
        return result

    def _finish_bool(self, value: V) -> V:
        a, kind = self.f.a, self.p.kind
        some = kind in ("any", "sum", "max")
        result = a.any_lane(value) if some else a.all_lanes(value)
        if self.p.init is not None:
            result = combine(self.f, "any" if some else "all", self.dtype, self.f.operand(self.p.init), result)
        return result


def _waits(body: list[Stmt], summary: Summary) -> bool:
    """Whether lanes run loops of few statements, each of which waits for the one before it."""
    small = summary.statements <= LIGHT_LOOP and not summary.calls
    return small and any(isinstance(x, While) for x in body)


def _interleave(summary: Summary) -> int:
    """Vectors per turn: several hide the latency of the accumulation, where the body is small."""
    if summary.calls or summary.nested or summary.checks or summary.statements > 16:
        return 1
    return 2 if summary.statements > 6 else 4


def _free(f: FunctionEmitter, s: Reduce, body: list[Stmt], parts: list[Part]) -> None:
    a = f.a
    summary = summarize(body)
    widest = max([summary.itemsize, *(p.value.dtype.itemsize for p in parts)])
    if any(p.kind in ("argmax", "argmin") for p in parts):
        widest = max(widest, 4)
    lanes = s.lanes or lanes_for(f, widest)
    if not s.lanes and _waits(s.body, summary):
        lanes *= WAITING
    accumulators = [Accumulator(f, p, lanes) for p in parts]
    count = _interleave(summary)
    early = len(parts) == 1 and parts[0].kind in ("any", "all") and not summary.checks and not summary.stored
    extent = f.dim(s.extent)
    step = lanes * count
    level = f.open_level(s)
    vector = VectorBody(f, s.symbol, lanes, body, summary)
    initial = [[acc.initial() for acc in accumulators] for _ in range(count)]
    flat = [x for group in initial for state in group for x in state]
    whole = a.and_(extent, V(str(-step), I64))
    if isinstance(s.extent, int):
        whole = V(str(s.extent // step * step), I64)
    # whole turns: `count` vectors, each with accumulators of its own
    loop, rest, found = a.fresh_label("reduce.loop"), a.fresh_label("reduce.rest"), a.fresh_label("reduce.found")
    before = a.block
    a.condbr(a.icmp("sgt", whole, V("0", I64)), loop, rest)
    a.label(loop)
    first = a.phi([(V("0", I64), before)])
    phis = [a.phi([(x, before)]) for x in flat]
    nexts: list[V] = []
    at = 0
    for k in range(count):
        here = first if k == 0 else a.add(first, V(str(k * lanes), I64))
        vector.at(here, None, level)
        f.hoist_loads = None  # the loop may not run: nothing may be read in front of it
        f.statements(body)
        for acc in accumulators:
            size = len(acc.initial())
            turn = a.trunc_int(a.lshr(first, V(str(step.bit_length() - 1), I64)), "i32") if acc.positions else here
            nexts += acc.step(phis[at : at + size], turn, None)
            at += size
    following = a.add(first, V(str(step), I64))
    latch = a.block
    exits: list[tuple[str, V]] = []
    if early:
        group = _merged(accumulators, nexts, count, step)[0][0]
        stop = a.any_lane(group) if parts[0].kind == "any" else a.not_(a.all_lanes(group))
        more = a.fresh_label("reduce.more")
        a.condbr(stop, found, more)
        exits.append((latch, V("true" if parts[0].kind == "any" else "false", "i1")))
        a.label(more)
        latch = more
    a.add_incoming(first, following, latch)
    for phi, value in zip(phis, nexts, strict=True):
        a.add_incoming(phi, value, latch)
    a.condbr(a.icmp("slt", following, whole), loop, rest)
    a.label(rest)
    joined = [a.phi([(x, before), (y, latch)]) for x, y in zip(flat, nexts, strict=True)]
    merged = _merged(accumulators, joined, count, step)
    # what is left, under a mask, vector by vector
    states = [x for state in merged for x in state]
    tail, done = a.fresh_label("reduce.tail"), a.fresh_label("reduce.done")
    before = a.block
    a.condbr(a.icmp("slt", whole, extent), tail, done)
    a.label(tail)
    first = a.phi([(whole, before)])
    phis = [a.phi([(x, before)]) for x in states]
    mask = tail_mask(f, a.int_intrinsic("umin", a.sub(extent, first), V(str(lanes), I64)), lanes)
    vector.at(first, mask, level)
    f.hoist_loads = None
    f.statements(body)
    ends: list[V] = []
    at = 0
    for acc, state in zip(accumulators, merged, strict=True):
        ends += acc.step(phis[at : at + len(state)], first, mask)
        at += len(state)
    following = a.add(first, V(str(lanes), I64))
    latch = a.block
    a.add_incoming(first, following, latch)
    for phi, value in zip(phis, ends, strict=True):
        a.add_incoming(phi, value, latch)
    a.condbr(a.icmp("slt", following, extent), tail, done)
    a.label(done)
    final = [a.phi([(x, before), (y, latch)]) for x, y in zip(states, ends, strict=True)]
    vector.leave()
    f.close_level()
    at = 0
    for acc, state in zip(accumulators, merged, strict=True):
        f.values[acc.p.result.name] = acc.finish([final[at : at + len(state)]])
        at += len(state)
    if early:
        after = a.block
        value = f.values[parts[0].result.name]
        a.label(found)
        f.values[parts[0].result.name] = a.phi([(value, after), *((x, block) for block, x in exits)])


def _merged(accumulators: list[Accumulator], flat: list[V], count: int, step: int) -> list[list[V]]:
    """The states of the vectors of one turn joined: for each part one."""
    groups: list[list[list[V]]] = [[] for _ in accumulators]
    at = 0
    for k in range(count):
        for acc, group in zip(accumulators, groups, strict=True):
            size = 2 if acc.positions or acc.nans else 1
            group.append(acc.positioned(flat[at : at + size], step, k * acc.lanes))
            at += size
    merged: list[list[V]] = []
    for acc, states in zip(accumulators, groups, strict=True):
        while len(states) > 1:
            states = [acc.join(x, y) for x, y in zip(states[::2], states[1::2], strict=True)]
        merged.append(states[0])
    return merged
