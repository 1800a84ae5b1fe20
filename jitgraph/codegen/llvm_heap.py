"""The heap of one call, as helper functions of a module: blocks of `malloc` in a list that hangs on the context.

A block that is freed leaves the list; what is still in it when the call ends, by whichever way, is freed by the caller
(`runtime.invoke.release`). Nothing goes back into Python. See `abi` for the head of a block.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_HEAP, HEAP_HEAD, HEAP_NEXT, HEAP_PREVIOUS, HEAP_RAW
from jitgraph.codegen.assembler import COLD, Assembler, V

_ALIGN = 64


def heap_function(name: str, attributes: str) -> str:
    """`alloc`: ptr (malloc, context, bytes), null if there is no memory; `free`: void (free, memory)."""
    return _alloc(attributes) if name == "alloc" else _free(attributes)


def _alloc(attributes: str) -> str:
    a = Assembler()
    context, size = V("%ctx", "ptr"), V("%bytes", "i64")
    raw = a.call_pointer(V("%malloc", "ptr"), "ptr", [a.add(size, V(str(HEAP_HEAD + _ALIGN), "i64"))])
    none, some = a.fresh_label("none"), a.fresh_label("some")
    a.condbr(a.icmp("eq", raw, V("null", "ptr")), none, some, weights=COLD)
    a.label(none)
    a.ret(V("null", "ptr"))
    a.label(some)
    address = a.and_(a.add(a.ptrtoint(raw), V(str(HEAP_HEAD + _ALIGN - 1), "i64")), V(str(-_ALIGN), "i64"))
    memory = a.inttoptr(address)
    block = a.gep(memory, -HEAP_HEAD, "i8")
    head = a.gep(context, CONTEXT_HEAP, "i8")
    following = a.load(head, "ptr", align=8)
    for value, at in ((raw, HEAP_RAW), (following, HEAP_NEXT), (head, HEAP_PREVIOUS)):
        a.store(value, a.gep(block, at, "i8"), align=8)
    a.store(block, head, align=8)
    link, done = a.fresh_label("link"), a.fresh_label("done")
    a.condbr(a.icmp("eq", following, V("null", "ptr")), done, link)
    a.label(link)
    a.store(a.gep(block, HEAP_NEXT, "i8"), a.gep(following, HEAP_PREVIOUS, "i8"), align=8)
    a.label(done)
    a.ret(memory)
    parameters = "ptr %malloc, ptr %ctx, i64 %bytes"
    return a.function("heap.alloc", parameters, returns="ptr", prefix="internal", attributes=attributes)


def _free(attributes: str) -> str:
    a = Assembler()
    block = a.gep(V("%memory", "ptr"), -HEAP_HEAD, "i8")
    raw, following, previous = (
        a.load(a.gep(block, at, "i8"), "ptr", align=8) for at in (HEAP_RAW, HEAP_NEXT, HEAP_PREVIOUS)
    )
    a.store(following, previous, align=8)
    link, done = a.fresh_label("link"), a.fresh_label("done")
    a.condbr(a.icmp("eq", following, V("null", "ptr")), done, link)
    a.label(link)
    a.store(previous, a.gep(following, HEAP_PREVIOUS, "i8"), align=8)
    a.label(done)
    a.call_pointer_void(V("%free", "ptr"), [raw])
    a.ret()
    return a.function("heap.free", "ptr %free, ptr %memory", prefix="internal", attributes=attributes)
