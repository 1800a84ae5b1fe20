"""`append` loops on lanes: under a mask, values are packed to the front of a vector and written behind those before.

The loop carries one count. Its `If` binds the count to a symbol and stores at that place; behind it the count grows by
the condition. What does not look so, and whatever else reads the place, runs turn by turn. On CPUs that cannot pack
lanes in one instruction all of it does, but without a branch, which would be mispredicted half of the time: where the
condition fails the store goes to memory that nobody reads.
"""

from __future__ import annotations

from jitgraph.codegen.assembler import V, intrinsic_suffix
from jitgraph.codegen.llvm_function import I64, FunctionEmitter
from jitgraph.codegen.llvm_vector import VectorBody, lanes_for, tail_mask
from jitgraph.codegen.loops import Bind, Check, DimValue, For, If, Let, Load, Stmt, Store
from jitgraph.codegen.loops_walk import Summary, summarize
from jitgraph.ir.dims import split_linear, symbols


def append_parts(s: For) -> tuple[list[Stmt], If, str] | None:
    """(statements before the branch, the branch, the symbol of the place), or None if the loop is no plain append."""
    if len(s.carried) != 1 or s.step != 1:
        return None
    branches = [k for k, x in enumerate(s.body) if isinstance(x, If)]
    if len(branches) != 1:
        return None
    at = branches[0]
    before, branch, behind = s.body[:at], s.body[at], s.body[at + 1 :]
    assert isinstance(branch, If)
    if branch.otherwise or branch.merges or not _counts(s, branch, behind):
        return None
    inner = s.carried[0].inner
    places = [x.symbol for x in branch.then if isinstance(x, Bind) and x.value == inner]
    if len(places) != 1 or any(not isinstance(x, (Let, Load, DimValue, Bind, Check)) for x in before):
        return None
    place = places[0]
    for x in branch.then:
        if isinstance(x, Store):
            if x.imag is not None:
                return None
            offset = sum((i * t for i, t in zip(x.index, x.buffer.strides, strict=True)), 0)
            split = split_linear(offset, place)
            if split is None or split[0] != x.buffer.dtype.itemsize or s.symbol in symbols(split[1]):
                return None
        elif isinstance(x, Load):
            if any(place in symbols(i) for i in x.index):
                return None
        elif isinstance(x, DimValue):
            if place in symbols(x.dim):
                return None
        elif not isinstance(x, (Let, Bind)):
            return None
    loaded = {x.buffer.name for x in s.body + branch.then if isinstance(x, Load)}
    if any(isinstance(x, Store) and x.buffer.name in loaded for x in branch.then):
        return None
    return before, branch, place


def _counts(s: For, branch: If, behind: list[Stmt]) -> bool:
    """Whether the statements behind the branch make next = inner + (1 if the condition held)."""
    if len(behind) != 2:
        return False
    one, total = behind
    carry = s.carried[0]
    return (
        isinstance(one, Let)
        and isinstance(total, Let)
        and one.op == "cast"
        and one.args == (branch.condition,)
        and total.op == "add"
        and total.args in ((carry.inner, one.var), (one.var, carry.inner))
        and carry.next == total.var
    )


def emit_append(f: FunctionEmitter, s: For, before: list[Stmt], branch: If, place: str) -> None:
    a = f.a
    carry = s.carried[0]
    then: list[Stmt] = [
        x for x in branch.then if not isinstance(x, Store) and not (isinstance(x, Bind) and x.symbol == place)
    ]
    stores = [x for x in branch.then if isinstance(x, Store)]
    summary = summarize(branch.then, summarize(before, Summary(itemsize=8)))
    lanes = lanes_for(f, summary.itemsize)
    lower, upper, start = f.dim(s.lower), f.dim(s.upper), f.operand(carry.init)
    outside, done, run = a.block, a.fresh_label("append.done"), a.fresh_label("append")
    a.condbr(a.icmp("slt", lower, upper), run, done)
    a.label(run)
    level = f.open_level(s)
    body = VectorBody(f, s.symbol, lanes, [*before, *then], summary)
    preheader, loop = a.block, a.fresh_label("append.loop")
    a.label(loop)
    first = a.phi([(lower, preheader)])
    count = a.phi([(start, preheader)])
    left = a.int_intrinsic("umin", a.sub(upper, first), V(str(lanes), I64))
    body.at(first, tail_mask(f, left, lanes), level)
    f.bind(place, count)
    f.values[carry.inner.name] = count
    f.statements(before)
    mask = f.mask
    assert mask is not None
    mask = a.and_(f.wide(f.operand(branch.condition)), mask)
    f.mask, f.divergent, f.hoist_loads = mask, True, None
    f.statements(then)
    bits = a.lane_bits(mask)
    hits = a.int_intrinsic("ctpop", a.zext(bits, I64) if lanes < 64 else bits)
    packed_mask = tail_mask(f, hits, lanes)
    for x in stores:
        size = x.buffer.dtype.itemsize
        packed = _packed(f, f.wide(f.to_memory(f.operand(x.value), x.buffer.dtype)), mask)
        a.masked_store(packed, f.pointer(x.buffer, f.offset(x.buffer, x.index)), packed_mask, align=size)
    total = a.add(count, hits)
    following = a.add(first, V(str(lanes), I64))
    latch = a.block
    a.add_incoming(first, following, latch)
    a.add_incoming(count, total, latch)
    a.condbr(a.icmp("slt", following, upper), loop, done)
    body.leave()
    f.close_level()
    a.label(done)
    f.values[carry.result.name] = a.phi([(start, outside), (total, latch)])


def emit_append_by_turns(f: FunctionEmitter, s: For, before: list[Stmt], branch: If, place: str) -> None:
    """The loop without lanes and without a branch."""
    a = f.a
    carry = s.carried[0]
    lower, upper, start = f.dim(s.lower), f.dim(s.upper), f.operand(carry.init)
    spare = f.alloca("i8", 16, align=16)
    outside, done, run = a.block, a.fresh_label("append.done"), a.fresh_label("append")
    a.condbr(a.icmp("slt", lower, upper), run, done)
    a.label(run)
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("append.loop")
    a.label(loop)
    at = a.phi([(lower, preheader)])
    count = a.phi([(start, preheader)])
    f.bind(s.symbol, at)
    f.values[carry.inner.name] = count
    f.hoist_loads = None
    f.chain = level.chain = [{}]
    f.bind(place, count)
    f.statements(before)
    condition = f.operand(branch.condition)
    f.statements([x for x in branch.then if not (isinstance(x, Store) or (isinstance(x, Bind) and x.symbol == place))])
    for x in branch.then:
        if isinstance(x, Store):
            pointer = f.pointer(x.buffer, f.offset(x.buffer, x.index))
            a.store(f.to_memory(f.operand(x.value), x.buffer.dtype), a.select(condition, pointer, spare), align=1)
    total = a.add(count, a.zext(condition, I64))
    following = a.add(at, V("1", I64))
    latch = a.block
    a.add_incoming(at, following, latch)
    a.add_incoming(count, total, latch)
    a.condbr(a.icmp("slt", following, upper), loop, done)
    f.close_level()
    a.label(done)
    f.values[carry.result.name] = a.phi([(start, outside), (total, latch)])


def _packed(f: FunctionEmitter, x: V, mask: V) -> V:
    """The lanes of x that the mask sets, in front. Bytes and 16-bit integers go through int32, as LLVM wants."""
    wide = f.a.zext(x, "i32") if x.ty in ("i8", "i16") else x
    name = f"llvm.experimental.vector.compress.{intrinsic_suffix(wide.ty, x.lanes)}"
    packed = f.a.call(name, wide.ty, [wide, mask, V("poison", wide.ty, x.lanes)], lanes=x.lanes)
    return f.a.trunc_int(packed, x.ty) if wide is not x else packed
