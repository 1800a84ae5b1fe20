"""Vector loops: whole vectors, then the rest once under a mask.

A large body is emitted once only, always under the mask: there the mask costs nothing beside the work. A loop that is
long enough begins with so few elements, under the same mask, that what it stores from there on are whole aligned
vectors: one that straddles two cache lines costs two.
"""

from __future__ import annotations

from jitgraph.codegen.assembler import V
from jitgraph.codegen.llvm_function import I64, FunctionEmitter, Level
from jitgraph.codegen.llvm_poll import poll
from jitgraph.codegen.llvm_streams import begin_streaming, may_stream, stores_aligned
from jitgraph.codegen.llvm_windows import windows_of
from jitgraph.codegen.loops import Bind, For, Let, Load, Reduce, Stmt, Store
from jitgraph.codegen.loops_walk import Summary, bodies, summarize, varying
from jitgraph.ir.dims import split_linear, symbols

#: A vector loop with more work in it is emitted once, under a mask, instead of twice; calls count as many statements.
LARGE_BODY = 64
CALL_WEIGHT = 16
#: Vectors that a loop has at least for its stores to be aligned.
ALIGNED_FROM = 16
#: Statements that compute for each one that loads or stores: with no more, memory is what a loop waits for.
LIGHT = 1.1


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


def emit_vector_for(f: FunctionEmitter, s: For, summary: Summary, lanes: int) -> None:
    """`s`, whose body `summary` is of, over so many lanes."""
    a = f.a
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


def lanes_of(f: FunctionEmitter, s: For, summary: Summary) -> int:
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
        _whole_vectors(f, body, (lower, end, [before]), (loop, rest), level, step)
    a.label(rest)
    if known is not None and known % step == 0:
        return
    if known is not None and known % step == 1:
        # not under a mask: of a store of one known lane LLVM makes a scalar store, as wide as what was truncated for it
        body.widen(1)
        body.emit(end, None, level)
        body.widen(lanes)
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
