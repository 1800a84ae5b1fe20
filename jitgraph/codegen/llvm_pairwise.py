"""NumPy's pairwise sum of floats, bit for bit.

A call on n elements splits at n // 2 rounded down to a multiple of 8 until at most 128 are left. Such a leaf has 8
accumulators, here the 8 lanes of one vector, added up as ((0+1)+(2+3))+((4+5)+(6+7)), then its last n % 8 elements one
by one; fewer than 8 elements are added one by one from -0.0. Of a complex sum each part goes so, with 4 accumulators
for 8 and leaves of 64. The recursion is a loop with a stack of pending work: the size of a right half, or 0 once the
left half's sum waits.

The additions of a leaf depend on one another, but not on those of the leaves before and behind, which the machine has
in flight at the same time. (To sum several leaves side by side gains at most 15 % in the first cache, and from memory
it costs a factor of three: so many short streams are none to the prefetcher.) The body runs on whole vectors, which may
be wider than the 8 accumulators; these then add the parts of its values in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from jitgraph.codegen.assembler import V
from jitgraph.codegen.llvm_function import I64, TYPES, FunctionEmitter, Level
from jitgraph.codegen.llvm_vector import VectorBody, tail_mask
from jitgraph.codegen.loops import Part, Reduce, Stmt
from jitgraph.codegen.loops_walk import summarize

_LEAF = 16  # accumulators' widths in a leaf
_WIDTH = 8
_STACK = 64  # halving a 63-bit size never goes deeper
_ZERO = V("0", I64)


def _number(value: int) -> V:
    return V(str(value), I64)


class Extra(Protocol):
    """A part whose order does not matter, in vectors: it goes along with the sums. See `llvm_reduce.Accumulator`."""

    p: Part

    def initial(self) -> list[V]: ...

    def step(self, state: list[V], place: V, mask: V | None) -> list[V]: ...

    def finish(self, states: list[list[V]]) -> V: ...


class _Extras:
    """The states of the parts that go along: on the stack, but in registers (`now`) inside of loops."""

    def __init__(self, f: FunctionEmitter, parts: Sequence[Extra]) -> None:
        self.f, self.parts = f, parts
        firsts = [part.initial() for part in parts]
        self.sizes = [len(state) for state in firsts]
        self.now = [x for state in firsts for x in state]
        self.types = [(x.ty, x.lanes) for x in self.now]
        self.places = [f.alloca(ty, lanes=lanes, align=64) for ty, lanes in self.types]
        self.save()

    def load(self) -> list[V]:
        """Take the states into registers."""
        a = self.f.a
        pairs = zip(self.places, self.types, strict=True)
        self.now = [a.load(place, ty, lanes=lanes, align=64) for place, (ty, lanes) in pairs]
        return self.now

    def save(self) -> None:
        for x, place in zip(self.now, self.places, strict=True):
            self.f.a.store(x, place, align=64)

    def step(self, first: V, mask: V | None) -> None:
        """One more vector, whose first element is number `first`."""
        made: list[V] = []
        at = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            made += part.step(self.now[at : at + size], first, mask)
            at += size
        self.now = made

    def finish(self) -> None:
        states, at = self.load(), 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            self.f.values[part.p.result.name] = part.finish([states[at : at + size]])
            at += size


class _Sums(NamedTuple):
    """What the pieces of one reduction share; `spill` is stack memory for vectors, one for each part."""

    f: FunctionEmitter
    body: VectorBody
    level: Level
    parts: list[Part]
    spill: list[V]  # the values of a leaf's last vector
    extras: _Extras
    width: int  # accumulators of a leaf

    def values(self, first: V, mask: V | None) -> list[V]:
        """The parts' values for the vector that begins at `first`."""
        f = self.f
        self.body.at(first, mask, self.level)
        f.hoist_loads = None  # the loop may not run: nothing may be read in front of it
        f.statements(self.body.body)
        self.extras.step(first, mask)
        return [f.wide(f.operand(p.value)) for p in self.parts]

    def add(self, accumulators: list[V], values: list[V]) -> list[V]:
        """The lanes of the accumulators plus each as many lanes of the values, one after the other."""
        a = self.f.a
        for at in range(0, self.body.lanes, self.width):
            slices = [a.slice_lanes(x, at, self.width) for x in values]
            accumulators = [a.fadd(x, y) for x, y in zip(accumulators, slices, strict=True)]
        return accumulators

    def nothing(self) -> list[V]:
        return [self.f.a.const(-0.0, TYPES[p.value.dtype], self.width) for p in self.parts]


def emit_pairwise(
    f: FunctionEmitter,
    s: Reduce,
    body: list[Stmt],
    parts: list[Part],
    extras: Callable[[int], Sequence[Extra]] = lambda _: (),
) -> None:
    """The sums of chunks, which are added one by one onto `init` (None: onto the first chunk's sum).

    `extras` makes, for a number of lanes, the parts that go along.
    """
    a = f.a
    extent = f.dim(s.extent)
    chunk, width = parts[0].chunk, parts[0].width
    step = extent if chunk is None else f.dim(chunk)
    period = None
    if parts[0].period is not None:
        period = a.int_intrinsic("smax", f.dim(parts[0].period), _number(1))
    summary = summarize(body)
    lanes = max(_WIDTH, f.target.lanes(summary.itemsize))
    types = [TYPES[p.value.dtype] for p in parts]
    stack = f.alloca(I64, _STACK, align=8)
    waiting_sums = [f.alloca(ty, _STACK, align=8) for ty in types]
    level = f.open_level(s)
    sums = _Sums(
        f,
        VectorBody(f, s.symbol, lanes, body, summary),
        level,
        parts,
        [f.alloca(ty, lanes=lanes, align=64) for ty in types],
        _Extras(f, extras(lanes)),
        width,
    )
    inits = [f.operand(p.init) if p.init is not None else a.const(-0.0, ty) for p, ty in zip(parts, types, strict=True)]

    # one chunk after the other; a chunk of nothing is a call too, so that the sum of nothing is init + -0.0
    before = a.block
    outer = a.label(a.fresh_label("chunk"))
    start = a.phi([(_ZERO, before)])
    totals = [a.phi([(x, before)]) for x in inits]
    size = a.sub(extent, start)
    if chunk is not None:
        size = a.int_intrinsic("smin", size, step)
        if period is not None:
            size = a.int_intrinsic("smin", size, a.sub(period, a.srem(start, period)))

    # down: split until a leaf is left
    entered = a.block
    descend = a.label(a.fresh_label("descend"))
    place = a.phi([(start, entered)])
    count = a.phi([(size, entered)])
    top = a.phi([(_ZERO, entered)])
    push, leaf = a.fresh_label("push"), a.fresh_label("leaf")
    a.condbr(a.icmp("sgt", count, _number(_LEAF * width)), push, leaf)
    a.label(push)
    left = _half(f, count, width)
    a.store(a.sub(count, left), a.gep(stack, top, I64), align=8)
    a.add_incoming(place, place, push)
    a.add_incoming(count, left, push)
    a.add_incoming(top, a.add(top, _number(1)), push)
    a.br(descend)
    a.label(leaf)
    results = _leaf(sums, place, count, sums.nothing())

    # up: a sum that waits for its right half is put down, one whose halves are both there is added
    after_leaf = a.block
    following = a.add(place, count)
    ascend = a.label(a.fresh_label("ascend"))
    current = [a.phi([(x, after_leaf)]) for x in results]
    height = a.phi([(top, after_leaf)])
    pop, right, both, out = (a.fresh_label(name) for name in ("pop", "right", "both", "chunk.done"))
    a.condbr(a.icmp("eq", height, _ZERO), out, pop)
    a.label(pop)
    below = a.sub(height, _number(1))
    slot = a.gep(stack, below, I64)
    waiting = a.load(slot, I64, align=8)
    places = [a.gep(base, below, x.ty) for base, x in zip(waiting_sums, current, strict=True)]
    a.condbr(a.icmp("ne", waiting, _ZERO), right, both)
    a.label(right)
    for pointer, x in zip(places, current, strict=True):
        a.store(x, pointer, align=4)
    a.store(_ZERO, slot, align=8)
    a.add_incoming(place, following, right)
    a.add_incoming(count, waiting, right)
    a.add_incoming(top, height, right)
    a.br(descend)
    a.label(both)
    for phi, pointer in zip(current, places, strict=True):
        a.add_incoming(phi, a.fadd(a.load(pointer, phi.ty, align=4), phi), both)
    a.add_incoming(height, below, both)
    a.br(ascend)
    a.label(out)

    added = [a.fadd(total, x) for total, x in zip(totals, current, strict=True)]
    done = a.fresh_label("reduce.done")
    if chunk is not None:
        position = a.add(start, size)
        a.add_incoming(start, position, a.block)
        for phi, value in zip(totals, added, strict=True):
            a.add_incoming(phi, value, a.block)
        a.condbr(a.icmp("slt", position, extent), outer, done)
    sums.body.leave()
    f.close_level()
    a.label(done)
    for p, value in zip(parts, added, strict=True):
        f.values[p.result.name] = value
    sums.extras.finish()


def _half(f: FunctionEmitter, count: V, width: int) -> V:
    """The size of the left half of `count` elements."""
    return f.a.and_(f.a.lshr(count, _number(1)), _number(-width))


def _leaf(sums: _Sums, place: V, count: V, accumulators: list[V]) -> list[V]:
    """The sums of the `count` elements from `place` on, onto the accumulators."""
    f, a, lanes, width = sums.f, sums.f.a, sums.body.lanes, sums.width
    whole = a.and_(count, _number(-lanes))
    loop, rest = a.fresh_label("leaf.loop"), a.fresh_label("leaf.rest")
    before, entered = a.block, sums.extras.load()
    a.condbr(a.icmp("ne", whole, _ZERO), loop, rest)
    a.label(loop)
    at = a.phi([(_ZERO, before)])
    running = [a.phi([(x, before)]) for x in accumulators]
    along = sums.extras.now = [a.phi([(x, before)]) for x in entered]
    nexts = sums.add(running, sums.values(a.add(place, at), None))
    following = a.add(at, _number(lanes))
    latch = a.block
    a.add_incoming(at, following, latch)
    for phi, x in zip([*running, *along], [*nexts, *sums.extras.now], strict=True):
        a.add_incoming(phi, x, latch)
    a.condbr(a.icmp("slt", following, whole), loop, rest)
    a.label(rest)
    reached = [a.phi([(x, before), (y, latch)]) for x, y in zip(accumulators, nexts, strict=True)]
    sums.extras.now = [a.phi([(x, before), (y, latch)]) for x, y in zip(entered, sums.extras.now, strict=True)]
    sums.extras.save()

    # less than a vector is left: whole widths of it go into the accumulators, others are added to the total one by one
    left = a.sub(count, whole)
    tail, join = a.fresh_label("leaf.tail"), a.fresh_label("leaf.sum")
    before = a.block
    a.condbr(a.icmp("ne", left, _ZERO), tail, join)
    a.label(tail)
    sums.extras.load()
    values = sums.values(a.add(place, whole), tail_mask(f, left, lanes))
    sums.extras.save()
    for x, pointer in zip(values, sums.spill, strict=True):
        a.store(x, pointer, align=64)
    more = reached
    for start in range(0, lanes - width, width):
        full = a.icmp("sge", left, _number(start + width))
        slices = [a.slice_lanes(x, start, width) for x in values]
        more = [a.select(full, a.fadd(x, y), x) for x, y in zip(more, slices, strict=True)]
    latch = a.block
    a.label(join)
    if lanes > width:
        reached = [a.phi([(x, before), (y, latch)]) for x, y in zip(reached, more, strict=True)]
    totals = [_combine_lanes(f, x) for x in reached]
    first = a.and_(left, _number(-width))
    one_by_one, end = a.fresh_label("leaf.element"), a.fresh_label("leaf.end")
    before = a.block
    a.condbr(a.icmp("slt", first, left), one_by_one, end)
    a.label(one_by_one)
    lane = a.phi([(first, before)])
    running = [a.phi([(x, before)]) for x in totals]
    ends = [
        a.fadd(x, a.load(a.gep(pointer, lane, x.ty), x.ty, align=4))
        for x, pointer in zip(running, sums.spill, strict=True)
    ]
    following = a.add(lane, _number(1))
    latch = a.block
    a.add_incoming(lane, following, latch)
    for phi, x in zip(running, ends, strict=True):
        a.add_incoming(phi, x, latch)
    a.condbr(a.icmp("slt", following, left), one_by_one, end)
    a.label(end)
    return [a.phi([(x, before), (y, latch)]) for x, y in zip(totals, ends, strict=True)]


def _combine_lanes(f: FunctionEmitter, x: V) -> V:
    """((0+1)+(2+3))+((4+5)+(6+7)): neighbours are added, until one is left."""
    a = f.a
    while x.lanes > 1:
        even = a.shuffle(x, None, range(0, x.lanes, 2))
        odd = a.shuffle(x, None, range(1, x.lanes, 2))
        x = a.fadd(even, odd)
    return x
