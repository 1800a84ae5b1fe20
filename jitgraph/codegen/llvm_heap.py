"""The heap of one call, as helper functions of a module: blocks of `malloc` in a list that hangs on the context.

A block that is freed leaves the list. A large one is kept for the next that is about as large: in a loop, what comes
from the system anew costs a page fault for every 4096 bytes. What is in the list when the call ends, by whichever way,
is freed by the caller (`runtime.invoke`). Nothing goes back into Python. See `abi` for the head of a block.
"""

from __future__ import annotations

from jitgraph.abi import (
    CONTEXT_HAS_SPARES,
    CONTEXT_HEAP,
    CONTEXT_SPARES,
    HEAP_BYTES,
    HEAP_HEAD,
    HEAP_NEXT,
    HEAP_PREVIOUS,
    HEAP_RAW,
    HEAP_SPARES,
)
from jitgraph.codegen.assembler import COLD, Assembler, V

_ALIGN = 64
#: Blocks from this size on are kept; smaller ones `malloc` has at hand itself.
_LARGE_BYTES = 1 << 16


def heap_function(name: str, attributes: str) -> str:
    """`alloc`: ptr (malloc, context, bytes), null if there is no memory; `free`: void (free, context, memory)."""
    return _alloc(attributes) if name == "alloc" else _free(attributes)


def _number(value: int) -> V:
    return V(str(value), "i64")


def _is_null(a: Assembler, pointer: V) -> V:
    return a.icmp("eq", pointer, V("null", "ptr"))


def _spare(a: Assembler, k: int) -> V:
    return a.gep(V("%ctx", "ptr"), CONTEXT_SPARES + 8 * k, "i8")


def _alloc(attributes: str) -> str:
    a = Assembler()
    context, size = V("%ctx", "ptr"), V("%bytes", "i64")
    fresh, look, link = a.fresh_label("fresh"), a.fresh_label("look"), a.fresh_label("link")
    a.condbr(a.icmp("uge", size, _number(_LARGE_BYTES)), look, fresh)
    a.label(look)
    found: list[tuple[V, str]] = []
    for k in range(HEAP_SPARES):
        block = a.load(_spare(a, k), "ptr", align=8)
        there, fits = a.fresh_label("there"), a.fresh_label("fits")
        following = a.fresh_label("next") if k + 1 < HEAP_SPARES else fresh
        a.condbr(_is_null(a, block), following, there)
        a.label(there)
        length = a.load(a.gep(block, HEAP_BYTES, "i8"), "i64", align=8)
        not_wasted = a.icmp("ule", a.lshr(length, _number(1)), size)
        a.condbr(a.and_(a.icmp("uge", length, size), not_wasted), fits, following)
        a.label(fits)
        a.store(V("null", "ptr"), _spare(a, k), align=8)
        found.append((block, a.block))
        a.br(link)
        if following is not fresh:
            a.label(following)
    a.label(fresh)
    grown = a.add(size, a.and_(a.lshr(size, _number(3)), _number(-_LARGE_BYTES // 8)))  # the next may be a bit larger
    raw = a.call_pointer(V("%malloc", "ptr"), "ptr", [a.add(grown, _number(HEAP_HEAD + _ALIGN))])
    none, some = a.fresh_label("none"), a.fresh_label("some")
    a.condbr(_is_null(a, raw), none, some, weights=COLD)
    a.label(none)
    a.ret(V("null", "ptr"))
    a.label(some)
    address = a.and_(a.add(a.ptrtoint(raw), _number(HEAP_HEAD + _ALIGN - 1)), _number(-_ALIGN))
    made = a.gep(a.inttoptr(address), -HEAP_HEAD, "i8")
    a.store(raw, a.gep(made, HEAP_RAW, "i8"), align=8)
    a.store(grown, a.gep(made, HEAP_BYTES, "i8"), align=8)
    found.append((made, a.block))
    a.label(link)
    block = a.phi(found)
    head = a.gep(context, CONTEXT_HEAP, "i8")
    first = a.load(head, "ptr", align=8)
    a.store(first, a.gep(block, HEAP_NEXT, "i8"), align=8)
    a.store(head, a.gep(block, HEAP_PREVIOUS, "i8"), align=8)
    a.store(block, head, align=8)
    others, done = a.fresh_label("others"), a.fresh_label("done")
    a.condbr(_is_null(a, first), done, others)
    a.label(others)
    a.store(a.gep(block, HEAP_NEXT, "i8"), a.gep(first, HEAP_PREVIOUS, "i8"), align=8)
    a.label(done)
    a.ret(a.gep(block, HEAP_HEAD, "i8"))
    parameters = "ptr %malloc, ptr %ctx, i64 %bytes"
    return a.function("heap.alloc", parameters, returns="ptr", prefix="internal", attributes=attributes)


def _free(attributes: str) -> str:
    a = Assembler()
    block = a.gep(V("%memory", "ptr"), -HEAP_HEAD, "i8")
    following, previous = (a.load(a.gep(block, at, "i8"), "ptr", align=8) for at in (HEAP_NEXT, HEAP_PREVIOUS))
    a.store(following, previous, align=8)
    others, unlinked = a.fresh_label("others"), a.fresh_label("unlinked")
    a.condbr(_is_null(a, following), unlinked, others)
    a.label(others)
    a.store(previous, a.gep(following, HEAP_PREVIOUS, "i8"), align=8)
    a.label(unlinked)
    keep, drop, done = a.fresh_label("keep"), a.fresh_label("drop"), a.fresh_label("done")
    length = a.load(a.gep(block, HEAP_BYTES, "i8"), "i64", align=8)
    dropped = [(block, a.block)]
    a.condbr(a.icmp("uge", length, _number(_LARGE_BYTES)), keep, drop)
    a.label(keep)
    a.store(_number(1), a.gep(V("%ctx", "ptr"), CONTEXT_HAS_SPARES, "i8"), align=8)
    kept = block
    for k in range(HEAP_SPARES):  # the one longest there goes where no place is empty
        other = a.load(_spare(a, k), "ptr", align=8)
        a.store(kept, _spare(a, k), align=8)
        kept = other
        more = a.fresh_label("more") if k + 1 < HEAP_SPARES else drop
        if more is drop:
            dropped.append((kept, a.block))
        a.condbr(_is_null(a, kept), done, more)
        if more is not drop:
            a.label(more)
    a.label(drop)
    gone = a.phi(dropped)
    a.call_pointer_void(V("%free", "ptr"), [a.load(a.gep(gone, HEAP_RAW, "i8"), "ptr", align=8)])
    a.br(done)
    a.label(done)
    a.ret()
    parameters = "ptr %free, ptr %ctx, ptr %memory"
    return a.function("heap.free", parameters, prefix="internal", attributes=attributes)
