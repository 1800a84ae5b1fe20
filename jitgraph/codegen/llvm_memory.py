"""`Load`, `Store` and what gives memory: whole vectors where the index steps by the item size, gathers elsewhere.

An address in a vector loop is a polynomial in the loop's index: c * index + rest. With c the item size it is a vector,
with c = 0 a scalar for all lanes, with minus the item size a reversed vector, otherwise, or where the rest differs
between lanes, a gather or scatter.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from jitgraph import dtypes
from jitgraph.abi import CONTEXT_ERROR_SITE, CONTEXT_RESULT, Status
from jitgraph.codegen.assembler import COLD, V
from jitgraph.codegen.llvm_function import CONTEXT, I64, MEMORY_TYPES, FunctionEmitter, Memory, memory_type
from jitgraph.codegen.llvm_streams import store_past_caches
from jitgraph.codegen.llvm_windows import from_window
from jitgraph.codegen.loops import STACK_BYTES, Alloc, Buffer, Free, Load, Store, Swap
from jitgraph.ir.dims import DimLike, split_linear

#: Arguments may lie anywhere. It costs nothing: no instruction for whole vectors asks for the alignment of an element.
ALIGN = 1


class Access(NamedTuple):
    """How the lanes reach their elements: `pointer` is one for each lane for "gather", the first lane's for "vector",
    "strided" (`step` bytes between lanes) and "uniform", the last lane's for "reversed".
    """

    how: Literal["uniform", "vector", "reversed", "strided", "gather"]
    pointer: V
    step: DimLike = 0


def access(f: FunctionEmitter, buffer: Buffer, index: tuple[DimLike, ...]) -> Access:
    """Where the element (of each lane) is."""
    offset = f.offset(buffer, index)
    if not f.varies(offset):
        return Access("uniform", f.pointer(buffer, offset))
    split = split_linear(offset, f.index) if f.index else None
    if split is not None and not f.varies(split[0]) and not f.varies(split[1]):
        step = split[0]
        if step == buffer.dtype.itemsize:
            return Access("vector", f.pointer(buffer, offset))
        if step == -buffer.dtype.itemsize:
            last = (f.lanes - 1) * buffer.dtype.itemsize
            return Access("reversed", f.a.gep(f.pointer(buffer, offset), -last, "i8"))
        if f.mask is None:
            return Access("strided", f.pointer(buffer, offset), step)
        return Access("gather", _strided(f, buffer, f.pointer(buffer, offset), step))
    fixed, varying = f.split_varying(offset)
    return Access("gather", f.step(f.pointer(buffer, fixed), varying, buffer.dtype, f.lanes_dim))


def _strided(f: FunctionEmitter, buffer: Buffer, first: V, step: DimLike) -> V:
    """Addresses first, first + step, ..."""
    a, size = f.a, buffer.dtype.itemsize
    if isinstance(step, int):
        ty, step = (memory_type(buffer.dtype), step // size) if step % size == 0 else ("i8", step)
        return a.gep(first, a.vector([lane * step for lane in range(f.lanes)], I64), ty)
    lanes = f.lanes
    offsets = f.remember(
        ("stride", step, lanes), f.depth_of(step), lambda: a.mul(a.splat(f.dim(step), lanes), a.iota(I64, lanes))
    )
    return a.gep(first, offsets, "i8")


def _steps(f: FunctionEmitter, step: DimLike, count: int) -> V:
    return f.a.mul(f.dim(step), V(str(count), I64))


def _lane_pointers(f: FunctionEmitter, pointer: V, step: DimLike) -> list[V]:
    """The address of each lane's element: plain loads and stores are quicker than a gather or scatter of as many."""
    a = f.a
    if isinstance(step, int):
        return [a.gep(pointer, lane * step, "i8") for lane in range(f.lanes)]
    depth = f.depth_of(step)
    distances = [f.remember(("step", step, k), depth, partial(_steps, f, step, k)) for k in range(8)]
    found = []
    for lane in range(f.lanes):
        if lane and lane % 8 == 0:
            eight = f.remember(("step", step, 8), depth, partial(_steps, f, step, 8))
            pointer = a.gep(pointer, eight, "i8")
        found.append(a.gep(pointer, distances[lane % 8], "i8") if lane % 8 else pointer)
    return found


def _load_lanes(f: FunctionEmitter, pointers: list[V], ty: str) -> V:
    a = f.a
    total = a.poison(ty, f.lanes)
    for lane, pointer in enumerate(pointers):
        total = a.insert(total, a.load(pointer, ty, align=ALIGN), lane)
    return total


def _store_lanes(f: FunctionEmitter, value: V, pointers: list[V]) -> None:
    for lane, pointer in enumerate(pointers):
        f.a.store(f.a.extract(value, lane), pointer, align=ALIGN)


def emit_load(f: FunctionEmitter, s: Load) -> None:
    if s.imag is not None:
        emit_load_pair(f, s)
        return
    a, buffer = f.a, s.buffer
    ty = memory_type(buffer.dtype)
    if f.lanes == 1:
        loaded = a.load(f.pointer(buffer, f.offset(buffer, s.index)), ty, align=ALIGN)
        f.values[s.var.name] = f.from_memory(loaded, buffer.dtype)
        return
    offset = f.offset(buffer, s.index)
    if not f.varies(offset):
        f.values[s.var.name] = _uniform_load(f, s, offset)
        return
    how, pointer, step = access(f, buffer, s.index)
    if how == "strided":
        loaded = _load_lanes(f, _lane_pointers(f, pointer, step), ty)
    elif how == "gather":
        mask = f.mask if f.mask is not None else a.const(1, "i1", f.lanes)
        loaded = a.gather(pointer, mask, a.const(0, ty, f.lanes), align=ALIGN)
    elif f.mask is None:
        shared = from_window(f, s, offset) if how == "vector" else None
        loaded = a.load(pointer, ty, lanes=f.lanes, align=ALIGN) if shared is None else shared
    else:
        mask = f.mask if how == "vector" else _reversed_mask(f)
        loaded = a.masked_load(pointer, mask, a.const(0, ty, f.lanes), align=ALIGN)
    if how == "reversed":
        loaded = a.reverse(loaded)
    f.values[s.var.name] = f.from_memory(loaded, buffer.dtype)


def _uniform_load(f: FunctionEmitter, s: Load, offset: DimLike) -> V:
    """One element for all lanes: in front of the loop if nothing in it can change or forbid that."""
    a, buffer = f.a, s.buffer
    ty = memory_type(buffer.dtype)

    def load() -> V:
        return f.from_memory(a.load(f.pointer(buffer, offset), ty, align=ALIGN), buffer.dtype)

    depth = max(f.depth_of(offset), f.buffer_depth(buffer.name))
    if f.hoist_loads is not None and depth < f.depth and buffer.name not in f.hoist_loads:
        return f.remember(("load", buffer.name, buffer.dtype, offset), f.depth - 1, load)
    if not f.divergent:
        return load()
    assert f.mask is not None  # perhaps no lane is on, and the address is out of bounds: read a dummy then
    dummy = f.entry_memo.get("dummy")
    if dummy is None:
        dummy = f.entry_memo["dummy"] = f.in_entry(lambda: _zeroed(f))
    pointer = a.select(a.any_lane(f.mask), f.pointer(buffer, offset), dummy)
    return f.from_memory(a.load(pointer, ty, align=ALIGN), buffer.dtype)


# --- complex elements: their parts lie side by side, so that whole vectors are twice as wide and taken apart ----------


def emit_load_pair(f: FunctionEmitter, s: Load) -> None:
    a, part = f.a, dtypes.part_of(s.buffer.dtype)
    ty, size = MEMORY_TYPES[part], part.itemsize
    assert s.imag is not None
    offset = f.offset(s.buffer, s.index)
    if f.lanes == 1:
        places = [f.pointer(s.buffer, offset + at) for at in (0, size)]
        real, imag = (a.load(place, ty, align=ALIGN) for place in places)
    elif not f.varies(offset):
        parts = Buffer(s.buffer.name, part, s.buffer.shape, s.buffer.strides)  # bytes are swapped below
        real, imag = (_uniform_load(f, Load(s.var, parts, s.index), offset + at) for at in (0, size))
    else:
        how, pointer, step = access(f, s.buffer, s.index)
        if how == "strided":
            places = _lane_pointers(f, pointer, step)
            real, imag = (_load_lanes(f, [a.gep(x, at, "i8") for x in places], ty) for at in (0, size))
        elif how == "gather":
            mask = f.mask if f.mask is not None else a.const(1, "i1", f.lanes)
            zeros = a.const(0, ty, f.lanes)
            both_parts = (pointer, _next(f, pointer, part))
            real, imag = (a.gather(place, mask, zeros, align=ALIGN) for place in both_parts)
        else:
            if f.mask is None:
                both = a.load(pointer, ty, lanes=2 * f.lanes, align=ALIGN)
            else:
                both = a.masked_load(pointer, _twice(f, how), a.const(0, ty, 2 * f.lanes), align=ALIGN)
            lanes = range(f.lanes) if how == "vector" else range(f.lanes - 1, -1, -1)
            real = a.shuffle(both, None, [2 * k for k in lanes])
            imag = a.shuffle(both, None, [2 * k + 1 for k in lanes])
    f.values[s.var.name], f.values[s.imag.name] = (f.from_memory(x, s.buffer.dtype) for x in (real, imag))


def emit_store_pair(f: FunctionEmitter, s: Store) -> None:
    a, part = f.a, dtypes.part_of(s.buffer.dtype)
    size = part.itemsize
    assert s.imag is not None
    real, imag = (f.to_memory(f.operand(x), s.buffer.dtype) for x in (s.value, s.imag))
    if f.lanes == 1:
        offset = f.offset(s.buffer, s.index)
        for x, at in ((real, 0), (imag, size)):
            a.store(x, f.pointer(s.buffer, offset + at), align=ALIGN)
        return
    how, pointer, step = access(f, s.buffer, s.index)
    real, imag = f.wide(real), f.wide(imag)
    if how == "strided":
        places = _lane_pointers(f, pointer, step)
        _store_lanes(f, real, places)
        _store_lanes(f, imag, [a.gep(x, size, "i8") for x in places])
        return
    if how in ("gather", "uniform"):
        mask = f.mask if f.mask is not None else a.const(1, "i1", f.lanes)
        pointers = f.wide(pointer)
        a.scatter(real, pointers, mask, align=ALIGN)
        a.scatter(imag, _next(f, pointers, part), mask, align=ALIGN)
        return
    lanes = range(f.lanes) if how == "vector" else range(f.lanes - 1, -1, -1)
    both = a.shuffle(real, imag, [at for k in lanes for at in (k, k + f.lanes)])
    if f.mask is None and f.streaming and how == "vector":
        store_past_caches(f, both, pointer)
    elif f.mask is None:
        a.store(both, pointer, align=ALIGN)
    else:
        a.masked_store(both, pointer, _twice(f, how), align=ALIGN)


def _next(f: FunctionEmitter, pointer: V, part: np.dtype) -> V:
    """The addresses of the imaginary parts behind the real ones."""
    return f.a.gep(pointer, part.itemsize, "i8")


def _twice(f: FunctionEmitter, how: str) -> V:
    """The mask of the lanes' parts: each lane's bit twice."""
    a, mask = f.a, f.mask if how == "vector" else _reversed_mask(f)
    assert mask is not None
    return f.here(("twice", mask.text), lambda: a.shuffle(mask, None, [k // 2 for k in range(2 * f.lanes)]))


def _zeroed(f: FunctionEmitter) -> V:
    pointer = f.a.alloca(I64, align=8)
    f.a.store(V("0", I64), pointer, align=8)
    return pointer


def _reversed_mask(f: FunctionEmitter) -> V:
    mask = f.mask
    assert mask is not None
    return f.here(("reversed", mask.text), lambda: f.a.reverse(mask))


def emit_store(f: FunctionEmitter, s: Store) -> None:
    if s.imag is not None:
        emit_store_pair(f, s)
        return
    a, buffer = f.a, s.buffer
    value = f.to_memory(f.operand(s.value), buffer.dtype)
    if f.lanes == 1:
        a.store(value, f.pointer(buffer, f.offset(buffer, s.index)), align=ALIGN)
        return
    how, pointer, step = access(f, buffer, s.index)
    value = f.wide(value)
    if how == "strided":
        _store_lanes(f, value, _lane_pointers(f, pointer, step))
        return
    if how in ("gather", "uniform"):
        mask = f.mask if f.mask is not None else a.const(1, "i1", f.lanes)
        a.scatter(value, f.wide(pointer), mask, align=ALIGN)
        return
    if how == "reversed":
        value = a.reverse(value)
    if f.mask is None and f.streaming and how == "vector":
        store_past_caches(f, value, pointer)
    elif f.mask is None:
        a.store(value, pointer, align=ALIGN)
    else:
        a.masked_store(value, pointer, f.mask if how == "vector" else _reversed_mask(f), align=ALIGN)


def size_bytes(buffer: Buffer) -> DimLike:
    """Bytes of a buffer in C order."""
    total: DimLike = buffer.dtype.itemsize
    for size in buffer.shape:
        total = total * size
    return total


def emit_alloc(f: FunctionEmitter, s: Alloc) -> None:
    """Give a buffer memory. Row buffers are made in front of all loops that their size allows."""
    a, buffer = f.a, s.buffer
    if s.scope == "scratch":
        depth = f.depth_of(s.offset)
        pointer = f.remember(("scratch", buffer.name), depth, lambda: _scratch(f, s))
        set_buffer(f, buffer, pointer, depth)
        return
    if s.scope == "result":
        assert f.module.results is not None
        dims = f.alloca(I64, max(1, len(buffer.shape)), align=8)
        for axis, size in enumerate(buffer.shape):
            a.store(f.dim(size), a.gep(dims, axis, I64), align=8)
        arguments = [CONTEXT, V(str(s.slot), I64), V(str(len(buffer.shape)), I64), dims]
        pointer = a.call_pointer(f.context_field(CONTEXT_RESULT), "ptr", arguments)
        check_memory(f, pointer)
        set_buffer(f, buffer, pointer, f.depth)
        return
    size = size_bytes(buffer)
    if s.scope == "row" and isinstance(size, int) and size <= STACK_BYTES:
        set_buffer(f, buffer, f.alloca("i8", max(size, 1), align=64), 0)
        return
    malloc = f.table_function("malloc")

    def call() -> V:
        return a.call_pointer(f.module.heap_function("alloc"), "ptr", [malloc, CONTEXT, f.dim(size)])

    depth = f.depth_of(size) if s.scope == "row" else f.depth
    pointer = f.remember(("row", buffer.name), depth, call) if depth < f.depth else call()
    check_memory(f, pointer)
    if s.scope == "row" and min(depth, f.depth) == 0:
        f.rows.append(pointer)
    set_buffer(f, buffer, pointer, min(depth, f.depth))


def free_rows(f: FunctionEmitter) -> None:
    """Give back the memory of the function's row buffers that are not on its stack."""
    for pointer in f.rows:
        f.a.call_pointer_void(f.module.heap_function("free"), [f.table_function("free"), CONTEXT, pointer])


def _scratch(f: FunctionEmitter, s: Alloc) -> V:
    """The address that the memory plan gives."""
    a = f.a
    host = f.base(s.host) if s.host else None
    if host is not None and s.inside != 0:
        host = a.gep(host, f.dim(s.inside), "i8")
    if host is not None and s.fits == 1:
        return host
    pointer = a.gep(f.module.scratch, f.dim(s.offset), "i8")
    return pointer if host is None else a.select(a.icmp("ne", f.dim(s.fits), V("0", I64)), host, pointer)


def check_memory(f: FunctionEmitter, pointer: V) -> None:
    """Leave with MemoryError (site -1) if an allocation failed."""
    a = f.a
    bad, good = a.fresh_label("no.memory"), a.fresh_label("memory")
    a.condbr(a.icmp("eq", pointer, V("null", "ptr")), bad, good, weights=COLD)
    a.label(bad)
    a.store(V("-1", I64), a.gep(CONTEXT, CONTEXT_ERROR_SITE, "i8"), align=8)
    a.ret(V(str(int(Status.ERROR)), "i32"))
    a.label(good)


def set_buffer(f: FunctionEmitter, buffer: Buffer, pointer: V, depth: int) -> None:
    """From here on `buffer` is at `pointer`, found inside `depth` loops. Exchanged buffers get a variable for it."""
    if buffer.name in f.swaps.get(0, frozenset()):
        known = f.buffers.get(buffer.name)
        variable = known.variable if known is not None and known.variable is not None else f.alloca("ptr", align=8)
        f.a.store(pointer, variable, align=8)
        f.buffers[buffer.name] = Memory(pointer, variable, f.depth)
    else:
        f.buffers[buffer.name] = Memory(pointer, None, depth)


def emit_free(f: FunctionEmitter, s: Free) -> None:
    arguments = [f.table_function("free"), CONTEXT, f.base(s.buffer.name)]
    f.a.call_pointer_void(f.module.heap_function("free"), arguments)


def emit_swap(f: FunctionEmitter, s: Swap) -> None:
    a, one, two = f.a, f.buffers[s.a.name].variable, f.buffers[s.b.name].variable
    assert one is not None
    assert two is not None
    first, second = a.load(one, "ptr", align=8), a.load(two, "ptr", align=8)
    a.store(second, one, align=8)
    a.store(first, two, align=8)
