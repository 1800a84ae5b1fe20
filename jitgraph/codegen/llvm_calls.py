"""What leaves the function: other kernels, C functions of the table, Python callbacks, scalar results."""

from __future__ import annotations

from jitgraph.abi import (
    CONTEXT_HOST,
    SLOT_BYTES,
    SLOT_DATA,
    SLOT_DIMS,
    SLOT_FLAGS,
    SLOT_STRIDES,
    TABLE_LIMIT,
    TABLE_RUN,
)
from jitgraph.codegen.assembler import COLD, V
from jitgraph.codegen.llvm_function import CONTEXT, I64, MEMORY_TYPES, TYPES, FunctionEmitter
from jitgraph.codegen.loops import (
    Address,
    Buffer,
    CallKernel,
    Const,
    Host,
    Library,
    Operand,
    Pair,
    SetResult,
    Split,
    Var,
)
from jitgraph.errors import InternalError
from jitgraph.ir.dims import DimLike


def emit_call_kernel(f: FunctionEmitter, s: CallKernel) -> None:
    """Call a kernel; leave with its status unless that is 0."""
    if s.split is not None:
        _emit_split(f, s, s.split)
        return
    a = f.a
    arguments = [CONTEXT, *(f.base(b.name) for b in s.buffers), *(f.dim(d) for d in s.symbols)]
    arguments += [f.operand(x) for x in s.scalars]
    out: V | None = None
    if s.results:
        out = f.alloca(I64, len(s.results), align=8)
        arguments.append(out)
    name = f.module.kernel_name(s.name)
    status = a.define(f"call i32 @{name}({', '.join([x.typed for x in arguments])})", "i32")
    leave_unless_zero(f, status)
    for k, var in enumerate(s.results):
        assert out is not None
        loaded = a.load(a.gep(out, 8 * k, "i8"), MEMORY_TYPES[var.dtype], align=8)
        f.values[var.name] = f.from_memory(loaded, var.dtype)


def _emit_split(f: FunctionEmitter, s: CallKernel, split: Split) -> None:
    """Where the work is worth it, let the threads call a kernel on pieces, else call it on its whole range (or do what
    it does in line).
    """
    a = f.a
    arguments = [*(f.base(b.name) for b in s.buffers), *(f.dim(d) for d in s.symbols[:-2])]
    scalars = [f.operand(x) for x in s.scalars]
    lower, upper, cost = (f.dim(d) for d in (*s.symbols[-2:], split.cost))
    many, alone, done = a.fresh_label("threads"), a.fresh_label("alone"), a.fresh_label("split.done")
    a.condbr(a.icmp("sgt", cost, f.table_field(TABLE_LIMIT, I64)), many, alone)
    a.label(alone)
    name = f.module.kernel_name(s.name)
    if split.alone is not None:
        f.branch([split.alone])
        one = V("0", "i32")
    else:
        values = [CONTEXT, *arguments, lower, upper, *scalars]
        one = a.define(f"call i32 @{name}({', '.join([x.typed for x in values])})", "i32")
    after_one = a.block
    a.br(done)
    a.label(many)
    given = [*arguments, *scalars]
    closure = f.alloca(I64, max(1, len(given)), align=8)
    for k, x in enumerate(given):
        a.store(f.to_memory(x), a.gep(closure, 8 * k, "i8"), align=8)
    part = f.module.part(name, [x.ty for x in given], len(arguments))
    job = [CONTEXT, part, closure, lower, upper, V(str(split.unit), I64), V(str(split.each), I64), cost]
    two = a.call_pointer(f.table_field(TABLE_RUN, "ptr"), "i32", job)
    after_two = a.block
    a.br(done)
    a.label(done)
    leave_unless_zero(f, a.phi([(one, after_one), (two, after_two)]))


def leave_unless_zero(f: FunctionEmitter, status: V) -> None:
    a = f.a
    bad, good = a.fresh_label("status"), a.fresh_label("called")
    a.condbr(a.icmp("ne", status, V("0", "i32")), bad, good, weights=COLD)
    a.label(bad)
    a.ret(status)
    a.label(good)


def emit_library(f: FunctionEmitter, s: Library) -> None:
    a = f.a
    arguments: list[V] = []
    for x in s.args:
        if isinstance(x, Address):
            arguments.append(f.pointer(x.buffer, f.offset(x.buffer, x.index)))
        elif isinstance(x, (Var, Const)):
            arguments.append(f.to_memory(f.operand(x)))
        else:
            arguments.append(f.dim(x))
    callee = f.table_function(s.name)
    if s.result is None:
        a.call_pointer_void(callee, arguments)
    else:
        f.values[s.result.name] = a.call_pointer(callee, TYPES[s.result.dtype], arguments)


def emit_host(f: FunctionEmitter, s: Host) -> None:
    """Fill slots for the operands, call, take scalar results out of theirs."""
    a = f.a
    inputs = _slots(f, s.inputs, s.offsets)
    outputs = _slots(f, s.outputs)
    site = V(str(~s.site if s.waiting else s.site), I64)
    status = a.call_pointer(f.context_field(CONTEXT_HOST), "i32", [CONTEXT, site, inputs, outputs])
    leave_unless_zero(f, status)
    for k, x in enumerate(s.outputs):
        if not isinstance(x, Buffer):
            load_scalar(f, x, outputs, k * SLOT_BYTES)


def load_scalar(f: FunctionEmitter, x: Var | Pair, slots: V, at: int) -> None:
    """Take a scalar out of the slot that begins `at` bytes into `slots`; of a complex one both parts."""
    for k, part in enumerate((x,) if isinstance(x, Var) else (x.real, x.imag)):
        assert isinstance(part, Var)
        size = part.dtype.itemsize if k else 0
        loaded = f.a.load(f.a.gep(slots, at + size, "i8"), MEMORY_TYPES[part.dtype], align=4 if k else 8)
        f.values[part.name] = f.from_memory(loaded, part.dtype)


def _store_scalar(f: FunctionEmitter, x: Operand | Pair, slots: V, at: int) -> None:
    """Put a scalar into a slot."""
    for k, part in enumerate((x.real, x.imag) if isinstance(x, Pair) else (x,)):
        size = part.dtype.itemsize if k else 0
        f.a.store(f.to_memory(f.operand(part)), f.a.gep(slots, at + size, "i8"), align=4 if k else 8)


def _slots(f: FunctionEmitter, items: tuple[Buffer | Operand | Pair, ...], offsets: tuple[DimLike, ...] = ()) -> V:
    a = f.a
    slots = f.alloca("i8", max(1, len(items)) * SLOT_BYTES, align=16)
    for k, x in enumerate(items):
        at = k * SLOT_BYTES
        if isinstance(x, Buffer):
            first = f.base(x.name) if not offsets else a.gep(f.base(x.name), f.dim(offsets[k]), "i8")
            a.store(first, a.gep(slots, at + SLOT_DATA, "i8"), align=8)
            a.store(_array(f, x.shape), a.gep(slots, at + SLOT_DIMS, "i8"), align=8)
            a.store(_array(f, x.strides), a.gep(slots, at + SLOT_STRIDES, "i8"), align=8)
            a.store(V("0", I64), a.gep(slots, at + SLOT_FLAGS, "i8"), align=8)
        elif all(part.name in f.values for part in _vars(x)):
            _store_scalar(f, x, slots, at)
    return slots


def _vars(x: Operand | Pair) -> tuple[Var, ...]:
    return tuple(p for p in ((x.real, x.imag) if isinstance(x, Pair) else (x,)) if isinstance(p, Var))


def _array(f: FunctionEmitter, dims: tuple[object, ...]) -> V:
    """int64s on the stack."""
    array = f.alloca(I64, max(1, len(dims)), align=8)
    for k, d in enumerate(dims):
        f.a.store(f.dim(d), f.a.gep(array, k, I64), align=8)  # type: ignore[arg-type]
    return array


def emit_set_result(f: FunctionEmitter, s: SetResult) -> None:
    if f.module.results is None:
        raise InternalError("a kernel cannot set a result of the entry")
    pointer = f.a.gep(f.module.results, s.slot * SLOT_BYTES, "i8")
    _store_scalar(f, s.value, pointer, 0)
    if s.is_numpy is not None:
        f.a.store(f.to_memory(f.operand(s.is_numpy)), f.a.gep(pointer, 8, "i8"), align=8)
