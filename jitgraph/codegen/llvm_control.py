"""`For`, `While`, `If`, `Check`: rotated loops with phis, jumps; in vector loops masks where lanes go different ways.

A vector loop runs whole vectors, then the rest once under a mask. A large body is emitted once only, always under the
mask: there the mask costs nothing beside the work. A loop that is long enough begins with so few elements, under the
same mask, that what it stores from there on are whole aligned vectors: one that straddles two cache lines costs two.

Inside a vector loop, a branch or loop whose condition is the same for all lanes stays one. Otherwise both sides of a
branch run under their masks, a loop runs until no lane is left, and what it carries stays as it is in lanes that left.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_ERROR_SITE, CONTEXT_ERROR_VALUES, Status
from jitgraph.codegen.assembler import COLD, FLOAT_BITS, HOT, V
from jitgraph.codegen.llvm_function import CONTEXT, I64, TYPES, FunctionEmitter, Level
from jitgraph.codegen.llvm_poll import poll
from jitgraph.codegen.llvm_prefetch import prefetch_next
from jitgraph.codegen.llvm_streams import begin_streaming, may_stream, stores_aligned
from jitgraph.codegen.llvm_windows import windows_of
from jitgraph.codegen.loops import (
    Bind,
    Carry,
    Check,
    Const,
    DimValue,
    For,
    If,
    Let,
    Load,
    Merge,
    Operand,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import Summary, bodies, summarize, varying
from jitgraph.ir.dims import split_linear, symbols

#: A vector loop with more work in it is emitted once, under a mask, instead of twice; calls count as many statements.
LARGE_BODY = 64
CALL_WEIGHT = 16
#: Vectors that a loop has at least for its stores to be aligned.
ALIGNED_FROM = 16
#: Statements that compute for each one that loads or stores: with no more, memory is what a loop waits for.
LIGHT = 1.1
#: A branch of a divergent `if` with more statements is skipped when no lane takes it.
LARGE_BRANCH = 6
#: Statements of the test of a `while` that is emitted twice.
SHORT_TEST = 16


def emit_for(f: FunctionEmitter, s: For) -> None:
    if s.role == "vector" and f.lanes == 1 and s.step == 1 and not s.carried:
        emit_vector_for(f, s)
    elif f.lanes > 1 and (f.varies(s.lower) or f.varies(s.upper) or f.varies(s.step)):
        _divergent_for(f, s)
    else:
        _serial_for(f, s)


# --- vector loops ---------------------------------------------------------------------------------------------------


class VectorBody:
    """Sets the emitter to the lanes of a vector loop; `at` places the lanes and their mask, `leave` sets it back."""

    def __init__(self, f: FunctionEmitter, index: str, lanes: int, body: list[Stmt], summary: Summary) -> None:
        self.f, self.index = f, index
        self.body, self.summary = body, summary
        self.widen(lanes)
        f.index = index
        if self.summary.nested:
            f.varying_vars = varying(index, body)

    def widen(self, lanes: int) -> None:
        """From here on emit so many lanes."""
        self.lanes = self.f.lanes = lanes

    def at(self, first: V, mask: V | None, level: Level) -> None:
        """The body's lanes begin at `first`; nothing that was computed for other lanes is known."""
        f = self.f
        f.bind(self.index, first)
        f.mask, f.divergent = mask, False
        f.chain = level.chain = [{}]
        f.hoist_loads = frozenset(self.summary.stored)

    def emit(self, first: V, mask: V | None, level: Level) -> None:
        self.at(first, mask, level)
        self.f.statements(self.body)
        if self.summary.nested:
            poll(self.f, self.body)

    def emit_side_by_side(self, first: V, level: Level, step: int) -> None:
        """The body for `step` lanes, as whole vectors side by side."""
        f, lanes = self.f, self.lanes
        if step > lanes and not self.summary.nested:
            f.windows = windows_of(f, self.body, self.summary.stored, lanes)
        self.widen(step)
        self.emit(first, None, level)
        self.widen(lanes)
        f.windows = {}

    def leave(self) -> None:
        f = self.f
        f.lanes, f.index, f.mask, f.divergent = 1, "", None, False
        f.hoist_loads, f.varying_vars = None, frozenset()
        f.varying_symbols.clear()


def lanes_for(f: FunctionEmitter, itemsize: int) -> int:
    return f.target.lanes(itemsize)


def tail_mask(f: FunctionEmitter, left: V, lanes: int, skip: V | None = None) -> V:
    """The first `left` of the lanes, without the first `skip` (both i64)."""
    a = f.a
    ty = I64 if lanes <= 8 else "i32" if lanes <= 16 else "i8"

    def splat(x: V) -> V:
        return a.splat(a.trunc_int(x, ty) if ty != I64 else x, lanes)

    if skip is None:
        return a.icmp("ult", a.iota(ty, lanes), splat(left))
    return a.icmp("ult", a.sub(a.iota(ty, lanes), splat(skip)), splat(a.sub(left, skip)))


def emit_vector_for(f: FunctionEmitter, s: For) -> None:
    a = f.a
    summary = summarize(s.body)
    lanes = s.lanes or _lanes(f, s, summary)
    if lanes == 1:
        _serial_for(f, s)
        return
    lower, upper = f.dim(s.lower), f.dim(s.upper)
    count = f.dim(s.upper - s.lower)
    distance = s.upper - s.lower
    known = distance if isinstance(distance, int) else None
    done = a.fresh_label("vector.done")
    if known is None:
        start = a.fresh_label("vector")
        a.condbr(a.icmp("sgt", count, V("0", I64)), start, done)
        a.label(start)
    elif known <= 0:
        return
    level = f.open_level(s)
    body = VectorBody(f, s.symbol, lanes, s.body, summary)
    aligned = None if known is not None and known < ALIGNED_FROM * lanes else _aligned(body)
    if summary.statements + CALL_WEIGHT * summary.calls > LARGE_BODY and (known is None or known % lanes):
        skip = None if aligned is None else _lanes_ahead(f, body, aligned, lower, level)
        if skip is not None:
            skip = a.select(a.icmp("sge", count, V(str(ALIGNED_FROM * lanes), I64)), skip, V("0", I64))
        _masked_loop(f, body, lower, upper, level, skip)
    elif aligned is not None:
        _head_main_and_tail(f, body, (lower, upper, count), aligned, level, _interleave(s, summary), may_stream(f, s))
    else:
        _main_and_tail(f, body, lower, count, level, known, _interleave(s, summary))
    body.leave()
    f.close_level()
    a.label(done)


def _lanes(f: FunctionEmitter, s: For, summary: Summary) -> int:
    """As many lanes as the widest registers have, or, where the loop waits for memory, as are loaded at once: vectors
    twice as wide cost as much, and straddle two cache lines twice as often.
    """
    lanes = lanes_for(f, summary.itemsize)
    if f.target.memory_bytes >= f.target.vector_bytes or summary.nested or summary.calls or _interleave(s, summary) > 1:
        return lanes
    computed = sum(isinstance(x, Let) and x.op != "cmp" for x in s.body)  # a select after it is one instruction, as min
    places = {
        (x.buffer.name, x.index) for x in s.body if isinstance(x, Load) and any(s.symbol in symbols(d) for d in x.index)
    }
    touched = len(places) + sum(isinstance(x, Store) for x in s.body)
    return max(1, f.target.memory_bytes // summary.itemsize) if computed <= LIGHT * touched else lanes


def _aligned(body: VectorBody) -> Store | None:
    """What stores whole vectors, whose first element is known in front of the loop."""
    f = body.f
    bound = {x.symbol for x in body.body if isinstance(x, Bind)}
    for s in body.body:
        if isinstance(s, Store):
            offset = f.offset(s.buffer, s.index)
            split = split_linear(offset, body.index)
            if split is not None and split[0] == s.buffer.dtype.itemsize and bound.isdisjoint(f.names_of(offset)):
                return s
    return None


def _lanes_ahead(f: FunctionEmitter, body: VectorBody, s: Store, lower: V, level: Level) -> V:
    """How many lanes of the aligned vector in which a loop stores its first element lie in front of that.

    Where elements themselves are not aligned, it is any number of lanes.
    """
    a = f.a
    body.at(lower, None, level)
    address = a.ptrtoint(f.pointer(s.buffer, f.offset(s.buffer, s.index)))
    element = a.lshr(address, V(str(s.buffer.dtype.itemsize.bit_length() - 1), I64))
    return a.and_(element, V(str(body.lanes - 1), I64))


def _interleave(s: For, summary: Summary) -> int:
    """How many vectors run side by side, a power of two; four where each carries a sum down an inner loop."""
    if s.interleave > 1:
        return 1 << (s.interleave - 1).bit_length()
    light = summary.statements <= 12 and not (summary.calls or summary.checks)
    inner = [x for x in s.body if bodies(x)]
    sums = [isinstance(x, Reduce) or (isinstance(x, For) and bool(x.carried)) for x in inner]
    flat = all(isinstance(x, (For, Reduce)) and not summarize(x.body).nested for x in inner)
    if light and flat and (any(isinstance(x, Reduce) for x in inner) or (inner and all(sums))):
        return 4
    if light and not inner and _is_stencil(s.body):
        return 4
    return 1


def _is_stencil(body: list[Stmt]) -> bool:
    """Whether neighbours of one array are read and another is written.

    Where two arrays lie a bit more than a multiple of 4096 bytes apart, a load waits for the store before it, whose
    address has the same low bits; of vectors side by side, all loads stand in front of the stores.
    """
    names = [x.buffer.name for x in body if isinstance(x, Load)]
    return len(set(names)) < len(names) and any(isinstance(x, Store) and x.buffer.name not in names for x in body)


def _masked_loop(f: FunctionEmitter, body: VectorBody, lower: V, upper: V, level: Level, skip: V | None = None) -> None:
    """All vectors under a mask, one body; the first one has `skip` lanes in front of the first element."""
    a, lanes = f.a, body.lanes
    start = lower if skip is None else a.sub(lower, skip)
    before, loop = a.block, a.fresh_label("vector.loop")
    a.label(loop)
    first = a.phi([(start, before)])
    skipped = None if skip is None else a.phi([(skip, before)])
    left = a.int_intrinsic("umin", a.sub(upper, first), V(str(lanes), I64))
    body.emit(first, tail_mask(f, left, lanes, skipped), level)
    following = a.add(first, V(str(lanes), I64))
    a.add_incoming(first, following, a.block)
    if skipped is not None:
        a.add_incoming(skipped, V("0", I64), a.block)
    after = a.fresh_label("vector.end")
    a.condbr(a.icmp("slt", following, upper), loop, after)
    a.label(after)


def _head_main_and_tail(
    f: FunctionEmitter,
    body: VectorBody,
    bounds: tuple[V, V, V],
    aligned: Store,
    level: Level,
    interleave: int,
    streams: V | None = None,
) -> None:
    """As `_main_and_tail`; if a long loop stores its first element inside an aligned vector, the rest of that comes
    first. It and what is left in the end are one piece of code.

    What the head leaves out lies in front of it: a load of elements that a store left out would wait for that store.

    Args:
        streams: whether stores pass the caches by, if they all are aligned; the main loop is there twice then.
    """
    a, lanes = f.a, body.lanes
    step, zero_lanes = lanes * interleave, V("0", I64)
    lower, upper, count = bounds
    long, part, main = a.fresh_label("vector.long"), a.fresh_label("vector.part"), a.fresh_label("vector.main")
    loop, rest, after = a.fresh_label("vector.loop"), a.fresh_label("vector.rest"), a.fresh_label("vector.end")
    short = a.block
    a.condbr(a.icmp("sge", count, V(str(ALIGNED_FROM * lanes), I64)), long, main)
    a.label(long)
    skip = _lanes_ahead(f, body, aligned, lower, level)
    first = a.sub(lower, skip)
    begin, start = a.add(first, V(str(lanes), I64)), a.block
    a.condbr(a.icmp("ne", skip, zero_lanes), part, main)

    a.label(part)
    at = a.phi([(first, start)])
    stop = a.phi([(begin, start)])
    skipped = a.phi([(skip, start)])
    is_head = a.phi([(V("true", "i1"), start)])
    left = a.sub(stop, at)
    if interleave > 1:
        left = a.int_intrinsic("umin", left, V(str(lanes), I64))
    body.emit(at, tail_mask(f, left, lanes, skipped), level)
    if interleave > 1:
        following, over = a.add(at, V(str(lanes), I64)), a.fresh_label("vector.over")
        for phi, value in ((at, following), (stop, stop), (skipped, zero_lanes), (is_head, is_head)):
            a.add_incoming(phi, value, a.block)
        a.condbr(a.icmp("slt", following, stop), part, over)
        a.label(over)
    a.condbr(is_head, main, after)
    head = a.block

    a.label(main)
    whole_from = a.phi([(lower, short), (lower, start), (stop, head)])
    whole = a.and_(a.sub(upper, whole_from), V(str(-step), I64))
    end = a.add(whole_from, whole)
    if streams is None:
        a.condbr(a.icmp("ne", whole, zero_lanes), loop, rest)
        _whole_vectors(f, body, (whole_from, end, [main]), (loop, rest), level, step)
    else:
        some, fits, past = a.fresh_label("vector.some"), a.fresh_label("vector.fits"), a.fresh_label("vector.past")
        a.condbr(a.icmp("ne", whole, zero_lanes), some, rest)
        a.label(some)
        a.condbr(streams, fits, loop)
        a.label(fits)
        body.at(whole_from, None, level)
        a.condbr(stores_aligned(f, body.body), past, loop)
        _whole_vectors(f, body, (whole_from, end, [some, fits]), (loop, rest), level, step)
        a.label(past)
        begin_streaming(f, interleave)
        stream = a.fresh_label("vector.stream")
        a.br(stream)
        _whole_vectors(f, body, (whole_from, end, [past]), (stream, rest), level, step)
        f.streaming = 0

    a.label(rest)
    for phi, value in ((at, end), (stop, upper), (skipped, zero_lanes), (is_head, V("false", "i1"))):
        a.add_incoming(phi, value, rest)
    a.condbr(a.icmp("slt", end, upper), part, after)
    a.label(after)


def _whole_vectors(
    f: FunctionEmitter,
    body: VectorBody,
    range_: tuple[V, V, list[str]],
    labels: tuple[str, str],
    level: Level,
    step: int,
) -> None:
    """The loop over whole vectors, `step` lanes at a time.

    Args:
        range_: first index, end, and the blocks that control comes from.
        labels: the loop's and that of what follows.
    """
    a = f.a
    start, end, before = range_
    loop, rest = labels
    a.label(loop)
    first = a.phi([(start, block) for block in before])
    body.emit_side_by_side(first, level, step)
    following = a.add(first, V(str(step), I64))
    a.add_incoming(first, following, a.block)
    a.condbr(a.icmp("slt", following, end), loop, rest)


def _main_and_tail(
    f: FunctionEmitter, body: VectorBody, lower: V, count: V, level: Level, known: int | None, interleave: int
) -> None:
    """Whole vectors, `interleave` of them as one wide vector a turn, then what is left under a mask."""
    a, lanes = f.a, body.lanes
    step = lanes * interleave
    whole = a.and_(count, V(str(-step), I64)) if known is None else V(str(known & -step), I64)
    end = a.add(lower, whole)
    rest = a.fresh_label("vector.rest")
    before = a.block
    if known is None or known >= step:
        loop = a.fresh_label("vector.loop")
        if known is None:
            a.condbr(a.icmp("ne", whole, V("0", I64)), loop, rest)
        a.label(loop)
        first = a.phi([(lower, before)])
        body.emit_side_by_side(first, level, step)
        following = a.add(first, V(str(step), I64))
        a.add_incoming(first, following, a.block)
        a.condbr(a.icmp("slt", following, end), loop, rest)
    a.label(rest)
    if known is not None and known % step == 0:
        return
    if interleave > 1:
        after = a.fresh_label("vector.tail")
        if known is None:
            some = a.fresh_label("vector.some")
            a.condbr(a.icmp("ne", whole, count), some, after)
            a.label(some)
        _masked_loop(f, body, end, a.add(lower, count), level)
        a.label(after)
        return
    left = a.sub(count, whole)
    after = a.fresh_label("vector.end")
    if known is None:
        tail = a.fresh_label("vector.tail")
        a.condbr(a.icmp("ne", left, V("0", I64)), tail, after)
        a.label(tail)
    body.emit(end, tail_mask(f, left, lanes), level)
    a.label(after)


# --- serial loops ---------------------------------------------------------------------------------------------------


def _varying_carry(f: FunctionEmitter, c: Carry) -> bool:
    return f.lanes > 1 and c.inner.name in f.varying_vars


def _carried_value(f: FunctionEmitter, c: Carry, x: Var | Const) -> V:
    value = f.operand(x)
    return f.wide(value) if _varying_carry(f, c) else value


def _serial_for(f: FunctionEmitter, s: For) -> None:
    """for i = lower; i < upper; i += step: rotated, behind one test that there is a first turn."""
    a = f.a
    lower, upper, step = f.dim(s.lower), f.dim(s.upper), f.dim(s.step)
    down = isinstance(s.step, int) and s.step < 0
    inside = "sgt" if down else "slt"
    inits = [_carried_value(f, c, c.init) for c in s.carried]
    distance = s.upper - s.lower
    runs = isinstance(distance, int) and (distance < 0 if down else distance > 0)
    before, done = a.block, a.fresh_label("for.done")
    if not runs:
        start = a.fresh_label("for")
        a.condbr(a.icmp(inside, lower, upper), start, done)
        a.label(start)
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("for.loop")
    a.label(loop)
    at = a.phi([(lower, preheader)])
    inners = [a.phi([(init, preheader)]) for init in inits]
    f.bind(s.symbol, at)
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.inner.name] = inner
    f.hoist_loads = None
    f.chain = level.chain = [{}]
    if f.lanes > 1:
        prefetch_next(f, s, at, lower)
    f.statements(s.body)
    poll(f, s.body)
    nexts = [_carried_value(f, c, c.next) for c in s.carried]
    following = a.add(at, step)
    latch = a.block
    a.add_incoming(at, following, latch)
    for inner, value in zip(inners, nexts, strict=True):
        a.add_incoming(inner, value, latch)
    again = a.icmp(inside, following, upper)
    if s.going is not None:
        going = f.operand(s.going)
        if going.lanes > 1 and f.mask is not None:
            going = a.and_(going, f.mask)
        again = a.and_(again, a.any_lane(going))
    a.condbr(again, loop, done)
    f.close_level()
    a.label(done)
    for c, init, value in zip(s.carried, inits, nexts, strict=True):
        f.values[c.result.name] = value if runs else a.phi([(init, before), (value, latch)])


def _divergent_for(f: FunctionEmitter, s: For) -> None:
    """Each lane has its own bounds: turn k until no lane has a turn k; lane by lane the index is lower + k * step."""
    a = f.a
    saved = f.mask, f.divergent
    lower, upper, step = f.lanes_dim(s.lower), f.lanes_dim(s.upper), f.lanes_dim(s.step)
    upper = f.wide(upper)
    inside = "sgt" if isinstance(s.step, int) and s.step < 0 else "slt"
    inits = [_carried_value(f, c, c.init) for c in s.carried]
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("lanes.loop")
    a.label(loop)
    at = a.phi([(lower, preheader)])
    inners = [a.phi([(init, preheader)]) for init in inits]
    active = a.icmp(inside, f.wide(at), upper)
    if saved[0] is not None:
        active = a.and_(active, saved[0])
    body, done = a.fresh_label("lanes.body"), a.fresh_label("lanes.done")
    a.condbr(a.any_lane(active), body, done)
    a.label(body)
    f.bind(s.symbol, at)
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.inner.name] = inner
    f.mask, f.divergent, f.hoist_loads = active, True, None
    f.chain = level.chain = [{}]
    f.statements(s.body)
    for c, inner in zip(s.carried, inners, strict=True):
        a.add_incoming(inner, a.select(active, f.wide(f.operand(c.next)), inner), a.block)
    a.add_incoming(at, a.add(at, step), a.block)
    a.br(loop)
    f.close_level()
    a.label(done)
    f.mask, f.divergent = saved
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.result.name] = inner


def emit_while(f: FunctionEmitter, s: While) -> None:
    if f.lanes == 1 and len(s.test) <= SHORT_TEST and all(isinstance(x, (Let, DimValue, Load)) for x in s.test):
        _rotated_while(f, s)
        return
    a = f.a
    apart = f.lanes > 1 and isinstance(s.condition, Var) and s.condition.name in f.varying_vars
    saved = f.mask, f.divergent
    inits = [_carried_value(f, c, c.init) for c in s.carried]
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("while")
    a.label(loop)
    inners = [a.phi([(init, preheader)]) for init in inits]
    active: V | None = None
    if apart:
        active = a.phi([(f.mask if f.mask is not None else a.const(1, "i1", f.lanes), preheader)])
        f.mask, f.divergent = active, True
    f.hoist_loads = None
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.inner.name] = inner
    f.chain = level.chain = [{}]
    f.statements(s.test)
    condition = f.operand(s.condition)
    body, done = a.fresh_label("while.body"), a.fresh_label("while.done")
    if apart:
        assert active is not None
        f.mask = a.and_(active, f.wide(condition))
        condition = a.any_lane(f.mask)
    a.condbr(condition, body, done)
    a.label(body)
    still = f.mask
    f.statements(s.body)
    poll(f, s.body, bounded=False)
    for c, inner in zip(s.carried, inners, strict=True):
        value = _carried_value(f, c, c.next)
        if apart:
            assert still is not None
            value = a.select(still, value, inner)
        a.add_incoming(inner, value, a.block)
    if apart:
        assert active is not None
        assert still is not None
        a.add_incoming(active, still, a.block)
    a.br(loop)
    f.close_level()
    a.label(done)
    f.mask, f.divergent = saved
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.result.name] = inner


def _rotated_while(f: FunctionEmitter, s: While) -> None:
    """The test stands in front of the loop and at its end: one jump a turn."""
    a = f.a
    inits = [f.operand(c.init) for c in s.carried]

    def test(values: list[V]) -> V:
        for c, value in zip(s.carried, values, strict=True):
            f.values[c.inner.name] = value
        f.statements(s.test)
        return f.operand(s.condition)

    runs = test(inits)
    before, start, done = a.block, a.fresh_label("while"), a.fresh_label("while.done")
    a.condbr(runs, start, done)
    a.label(start)
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("while.loop")
    a.label(loop)
    plain = [t for t in s.test if isinstance(t, (Let, DimValue, Load))]
    tested = [*(t.var.name for t in plain), *(t.imag.name for t in plain if isinstance(t, Load) and t.imag is not None)]
    inners = [a.phi([(init, preheader)]) for init in inits]
    handed = [a.phi([(f.values[name], preheader)]) for name in tested]
    f.values.update(zip((*(c.inner.name for c in s.carried), *tested), (*inners, *handed), strict=True))
    f.hoist_loads = None
    f.chain = level.chain = [{}]
    f.statements(s.body)
    poll(f, s.body, bounded=False)
    nexts = [f.operand(c.next) for c in s.carried]
    again = test(nexts)
    latch = a.block
    for inner, value in zip(inners, nexts, strict=True):
        a.add_incoming(inner, value, latch)
    for inner, name in zip(handed, tested, strict=True):
        a.add_incoming(inner, f.values[name], latch)
    a.condbr(again, loop, done)
    f.close_level()
    a.label(done)
    for c, init, value in zip(s.carried, inits, nexts, strict=True):
        f.values[c.result.name] = a.phi([(init, before), (value, latch)])


# --- branches -------------------------------------------------------------------------------------------------------


def emit_if(f: FunctionEmitter, s: If) -> None:
    ways = _ways(f, s)
    if ways:
        _jump(f, s, ways)
        return
    condition = f.operand(s.condition)
    f.hoist_loads = None  # neither inside, where the address may be out of bounds, nor behind a check in there
    if condition.lanes == 1:
        _uniform_if(f, s, condition)
    else:
        _divergent_if(f, s, condition)


def _ways(f: FunctionEmitter, s: If) -> list[tuple[int, If]]:
    """Branches, one in the other, that ask for one integer after another, with these; [] if fewer than two."""
    ways: list[tuple[int, If]] = []
    at: Stmt | None = s if f.lanes == 1 else None
    while isinstance(at, If) and isinstance(at.condition, Var):
        known = f.equalities.get(at.condition.name)
        if known is None or any(case == known[1] for case, _ in ways):
            break
        if ways and known[0] != f.equalities[ways[0][1].condition.name][0]:  # type: ignore[union-attr]  # a Var, as all
            break
        ways.append((known[1], at))
        at = at.otherwise[0] if len(at.otherwise) == 1 else None
    return ways if len(ways) > 1 else []


def _jump(f: FunctionEmitter, s: If, ways: list[tuple[int, If]]) -> None:
    """A jump by number."""
    a = f.a
    assert isinstance(s.condition, Var)
    value = f.operand(f.equalities[s.condition.name][0])
    f.hoist_loads = None
    labels = [a.fresh_label("case") for _ in ways]
    default, done = a.fresh_label("default"), a.fresh_label("switch.done")
    a.switch(value, default, [(case, label) for (case, _), label in zip(ways, labels, strict=True)])
    made = [{m.result.name: m for m in way.merges} for _, way in ways]

    def given(m: Merge, side: int, at: int = 0) -> Operand:
        """What a merge of branch `at` gives if that side runs."""
        if side == at:
            return m.then
        inner = made[at + 1].get(m.otherwise.name) if at + 1 < len(ways) and isinstance(m.otherwise, Var) else None
        return m.otherwise if inner is None else given(inner, side, at + 1)

    ends: list[tuple[list[V], str]] = []
    bodies = [*(way.then for _, way in ways), ways[-1][1].otherwise]
    for side, (label, body) in enumerate(zip([*labels, default], bodies, strict=True)):
        a.label(label)
        f.branch(body)
        ends.append(([f.operand(given(m, side)) for m in s.merges], a.block))
        a.br(done)
    a.label(done)
    for k, m in enumerate(s.merges):
        f.values[m.result.name] = a.phi([(values[k], block) for values, block in ends])


def _uniform_if(f: FunctionEmitter, s: If, condition: V) -> None:
    a = f.a
    then, otherwise, done = a.fresh_label("then"), a.fresh_label("else"), a.fresh_label("if.done")
    a.condbr(condition, then, otherwise, weights=HOT if s.cold else None)
    wide = [
        f.lanes > 1 and any(isinstance(x, Var) and _may_vary(f, x) for x in (m.then, m.otherwise)) for m in s.merges
    ]
    ends: list[tuple[list[V], str]] = []
    for label, body, side in ((then, s.then, "then"), (otherwise, s.otherwise, "otherwise")):
        a.label(label)
        f.branch(body)
        values = [f.operand(getattr(m, side)) for m in s.merges]
        ends.append(([f.wide(v) if w else v for v, w in zip(values, wide, strict=True)], a.block))
        a.br(done)
    a.label(done)
    for k, m in enumerate(s.merges):
        f.values[m.result.name] = a.phi([(values[k], block) for values, block in ends])


def _may_vary(f: FunctionEmitter, x: Var) -> bool:
    known = f.values.get(x.name)
    return x.name in f.varying_vars or (known is not None and known.lanes > 1)


def _divergent_if(f: FunctionEmitter, s: If, condition: V) -> None:
    a = f.a
    saved = f.mask, f.divergent
    masks = (condition, a.not_(condition))
    sides: list[list[V]] = []
    for mask, body, side in ((masks[0], s.then, "then"), (masks[1], s.otherwise, "otherwise")):
        f.mask = mask if saved[0] is None else a.and_(mask, saved[0])
        f.divergent = True
        results = [getattr(m, side) for m in s.merges]
        if len(body) > LARGE_BRANCH or summarize(body).nested:
            before, taken, skip = a.block, a.fresh_label("lanes.then"), a.fresh_label("lanes.skip")
            a.condbr(a.any_lane(f.mask), taken, skip)
            a.label(taken)
            f.branch(body)
            values = [f.wide(f.operand(x)) for x in results]
            after = a.block
            a.label(skip)
            sides.append([a.phi([(V("zeroinitializer", v.ty, v.lanes), before), (v, after)]) for v in values])
        else:
            f.branch(body)
            sides.append([f.wide(f.operand(x)) for x in results])
    f.mask, f.divergent = saved
    for m, yes, no in zip(s.merges, *sides, strict=True):
        f.values[m.result.name] = a.select(condition, yes, no)


# --- checks ---------------------------------------------------------------------------------------------------------


def emit_check(f: FunctionEmitter, s: Check) -> None:
    """Leave with the site's error unless the condition holds; the values are those of the first lane that failed."""
    a = f.a
    f.hoist_loads = None
    condition = f.operand(s.condition)
    if condition.text == "true":
        return
    failed = a.not_(condition)
    if f.mask is not None and (f.divergent or failed.lanes > 1):
        failed = a.and_(failed, f.mask)
    bad, good = a.fresh_label("failed"), a.fresh_label("checked")
    a.condbr(a.any_lane(failed), bad, good, weights=COLD)
    a.label(bad)
    lane: V | None = None
    if failed.lanes > 1:
        bits = a.zext(a.lane_bits(failed), I64) if failed.lanes < 64 else a.lane_bits(failed)
        lane = a.trunc_int(a.int_intrinsic("cttz", bits, flag=True), "i32")
    a.store(V(str(s.site), I64), a.gep(CONTEXT, CONTEXT_ERROR_SITE, "i8"), align=8)
    for k, x in enumerate(s.values[:4]):
        value = f.operand(x)
        if value.lanes > 1:
            value = a.extract(value, lane if lane is not None else 0)
        a.store(error_value(f, value, x), a.gep(CONTEXT, CONTEXT_ERROR_VALUES + 8 * k, "i8"), align=8)
    deoptimise = f.module.sites[s.site].error == "deoptimise"
    a.ret(V(str(int(Status.DEOPTIMISE if deoptimise else Status.ERROR)), "i32"))
    a.label(good)


def error_value(f: FunctionEmitter, value: V, x: Var | Const) -> V:
    """A scalar as the int64 of `context.error_values`: integers as they are, floats as the bits of a float64."""
    if x.dtype.kind == "f":
        wide = f.a.half_to_float(value) if value.ty == "half" else value
        wide = wide if wide.ty == "double" else f.a.fpext(wide, "double")
        return f.a.bitcast(wide, I64)
    return f.as_i64(value, x.dtype)


def zero(ty: str, lanes: int = 1) -> V:
    return V("zeroinitializer", ty, lanes) if lanes > 1 else V("0.0" if ty in FLOAT_BITS else "0", ty)


__all__ = ["TYPES", "VectorBody", "emit_check", "emit_for", "emit_if", "emit_while", "lanes_for", "tail_mask", "zero"]
