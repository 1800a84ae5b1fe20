"""What leaves the function: other kernels, C functions of the table, Python callbacks, scalar results."""

from __future__ import annotations

from jitgraph.abi import (
    CONTEXT_HOST,
    SLOT_BYTES,
    SLOT_DATA,
    SLOT_DIMS,
    SLOT_FLAGS,
    SLOT_STRIDES,
)
from jitgraph.codegen.assembler import COLD, V
from jitgraph.codegen.llvm_function import CONTEXT, I64, MEMORY_TYPES, TYPES, FunctionEmitter
from jitgraph.codegen.loops import Address, Buffer, CallKernel, Const, Host, Library, SetResult, Var
from jitgraph.errors import InternalError


def emit_call_kernel(f: FunctionEmitter, s: CallKernel) -> None:
    """Call a kernel; leave with its status unless that is 0."""
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
    inputs = _slots(f, s.inputs)
    outputs = _slots(f, s.outputs)
    status = a.call_pointer(f.context_field(CONTEXT_HOST), "i32", [CONTEXT, V(str(s.site), I64), inputs, outputs])
    leave_unless_zero(f, status)
    for k, x in enumerate(s.outputs):
        if isinstance(x, Var):
            loaded = a.load(a.gep(outputs, k * SLOT_BYTES, "i8"), MEMORY_TYPES[x.dtype], align=8)
            f.values[x.name] = f.from_memory(loaded, x.dtype)


def _slots(f: FunctionEmitter, items: tuple[Buffer | Var | Const, ...]) -> V:
    a = f.a
    slots = f.alloca("i8", max(1, len(items)) * SLOT_BYTES, align=16)
    for k, x in enumerate(items):
        at = k * SLOT_BYTES
        if isinstance(x, Buffer):
            a.store(f.base(x.name), a.gep(slots, at + SLOT_DATA, "i8"), align=8)
            a.store(_array(f, x.shape), a.gep(slots, at + SLOT_DIMS, "i8"), align=8)
            a.store(_array(f, x.strides), a.gep(slots, at + SLOT_STRIDES, "i8"), align=8)
            a.store(V("0", I64), a.gep(slots, at + SLOT_FLAGS, "i8"), align=8)
        elif x.name in f.values if isinstance(x, Var) else True:
            a.store(f.to_memory(f.operand(x)), a.gep(slots, at, "i8"), align=8)
    return slots


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
    f.a.store(f.to_memory(f.operand(s.value)), pointer, align=8)
    if s.is_numpy is not None:
        f.a.store(f.to_memory(f.operand(s.is_numpy)), f.a.gep(pointer, 8, "i8"), align=8)
