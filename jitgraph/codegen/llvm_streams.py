"""Stores that pass the caches by: when a vector loop runs with them, and what has to follow (see `For.streams`).

On x86 only: elsewhere they are hints that were not measured.
"""

from __future__ import annotations

from jitgraph.abi import TABLE_STREAM
from jitgraph.codegen.assembler import V
from jitgraph.codegen.llvm_function import I64, FunctionEmitter
from jitgraph.codegen.loops import For, Stmt, Store

#: Shorter vectors are stored as usual.
_LEAST_BYTES = 16


def may_stream(f: FunctionEmitter, s: For) -> V | None:
    """Whether what a nest moves is so much that its stores should pass the caches by; None where they never do."""
    if s.streams == 0 or not f.target.triple.startswith("x86_64"):
        return None
    limit = f.entry_memo.get("stream")
    if limit is None:
        limit = f.entry_memo["stream"] = f.in_entry(lambda: f.table_field(TABLE_STREAM, I64))
    moved = f.dim(s.streams)
    depth = f.depth_of(s.streams)
    return f.remember(("stream", s.streams), depth, lambda: f.a.icmp("sgt", moved, limit))


def stores_aligned(f: FunctionEmitter, body: list[Stmt]) -> V:
    """Whether all stores of a vector loop's body are to whole aligned vectors, at the lanes where the emitter is."""
    a = f.a
    bits: V | None = None
    for s in body:
        if isinstance(s, Store):
            size = f.lanes * s.buffer.dtype.itemsize
            address = a.ptrtoint(f.pointer(s.buffer, f.offset(s.buffer, s.index)))
            inside = a.and_(address, V(str(size - 1), I64))
            bits = inside if bits is None else a.or_(bits, inside)
    assert bits is not None
    return a.icmp("eq", bits, V("0", I64))


def begin_streaming(f: FunctionEmitter, parts: int) -> None:
    """From here on stores of whole vectors, as `parts` aligned ones, pass the caches by, until `f.streaming = 0`."""
    if f.streamed is None:
        f.streamed = f.alloca("i8", align=1)
        place = f.streamed
        f.entry_lines.append(f"  store i8 0, ptr {place.text}")
    f.a.store(V("1", "i8"), f.streamed)
    f.streaming = parts


def store_past_caches(f: FunctionEmitter, value: V, pointer: V) -> None:
    """Store a whole vector, whose parts `stores_aligned` has found aligned."""
    size = value.lanes * _bytes_of(value.ty)
    step = size // f.streaming
    if step >= _LEAST_BYTES:
        f.a.store(value, pointer, align=step, metadata="!nontemporal !{i32 1}")
    else:
        f.a.store(value, pointer, align=1)


def fence(f: FunctionEmitter) -> None:
    """What other threads see behind this, they see with all that was stored before."""
    if f.streamed is None:
        return
    a = f.a
    some, done = a.fresh_label("fence"), a.fresh_label("fenced")
    a.condbr(a.icmp("ne", a.load(f.streamed, "i8"), V("0", "i8")), some, done)
    a.label(some)
    a.call_void("llvm.x86.sse.sfence", [])
    a.label(done)


def _bytes_of(ty: str) -> int:
    return {"double": 8, "float": 4, "half": 2}[ty] if not ty.startswith("i") else int(ty[1:]) // 8
