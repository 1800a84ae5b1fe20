"""The heap of one call, as helper functions of a module: blocks of `malloc` in a list that hangs on the context.

A block that is freed leaves the list. What is in the list when the call ends, by whichever way, is freed by the caller
(`runtime.invoke`). Nothing goes back into Python. `malloc` is the pool's, which has at hand what was freed before. See
`abi` for the head of a block.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_HEAP, HEAP_HEAD, HEAP_NEXT, HEAP_PREVIOUS, HEAP_RAW
from jitgraph.codegen.assembler import COLD, Assembler, V

_ALIGN = 64


def heap_function(name: str, attributes: str) -> str:
    """`alloc`: ptr (malloc, context, bytes), null if there is no memory; `free`: void (free, context, memory)."""
    return _alloc(attributes) if name == "alloc" else _free(attributes)


def _number(value: int) -> V:
    return V(str(value), "i64")


def _is_null(a: Assembler, pointer: V) -> V:
    return a.icmp("eq", pointer, V("null", "ptr"))


def _alloc(attributes: str) -> str:
    a = Assembler()
    context, size = V("%ctx", "ptr"), V("%bytes", "i64")
    raw = a.call_pointer(V("%malloc", "ptr"), "ptr", [a.add(size, _number(HEAP_HEAD + _ALIGN))])
    none, some = a.fresh_label("none"), a.fresh_label("some")
    a.condbr(_is_null(a, raw), none, some, weights=COLD)
    a.label(none)
    a.ret(V("null", "ptr"))
    a.label(some)
    address = a.and_(a.add(a.ptrtoint(raw), _number(HEAP_HEAD + _ALIGN - 1)), _number(-_ALIGN))
    block = a.gep(a.inttoptr(address), -HEAP_HEAD, "i8")
    a.store(raw, a.gep(block, HEAP_RAW, "i8"), align=8)
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
    a.call_pointer_void(V("%free", "ptr"), [a.load(a.gep(block, HEAP_RAW, "i8"), "ptr", align=8)])
    a.ret()
    parameters = "ptr %free, ptr %ctx, ptr %memory"
    return a.function("heap.free", parameters, prefix="internal", attributes=attributes)
