"""Loops to LLVM: a `Program` becomes the text of one module with the exports `prepare` and `entry` (see `abi`).

Each kernel is an internal function `i32 (ptr ctx, ptr buffers..., i64 symbols..., scalars..., ptr out)`; equal ones are
written once. The text holds no address and names no symbol of the process but libm's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jitgraph.abi import SLOT_BYTES, SLOT_DIMS, SLOT_STRIDES, Status
from jitgraph.codegen.assembler import Assembler, V, one_line
from jitgraph.codegen.llvm_append import append_parts, emit_append, emit_append_by_turns
from jitgraph.codegen.llvm_calls import emit_call_kernel, emit_host, emit_library, emit_set_result
from jitgraph.codegen.llvm_control import emit_check, emit_for, emit_if, emit_while
from jitgraph.codegen.llvm_entry import LONGEST_PART, EntryEmitter
from jitgraph.codegen.llvm_function import I64, TYPES, FunctionEmitter, Memory
from jitgraph.codegen.llvm_heap import heap_function
from jitgraph.codegen.llvm_memory import emit_alloc, emit_free, emit_load, emit_store, emit_swap, free_rows, set_buffer
from jitgraph.codegen.llvm_poll import poll_function
from jitgraph.codegen.llvm_reduce import emit_reduce
from jitgraph.codegen.llvm_scalar import emit_dim_value, emit_let
from jitgraph.codegen.llvm_streams import fence
from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    CallKernel,
    Check,
    DimValue,
    For,
    Free,
    Function,
    Host,
    If,
    Let,
    Library,
    Load,
    Program,
    Reduce,
    SetResult,
    Store,
    Swap,
    While,
)
from jitgraph.codegen.loops_walk import swapped
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Site
from jitgraph.target import Target

ENTRY, PREPARE = "entry", "prepare"
EXPORTS = (ENTRY, PREPARE)
_PREDICATES = {"==": "eq", "!=": "ne", ">=": "sge", "<": "slt", "<=": "sle", ">": "sgt"}


def _emit_bind(f: FunctionEmitter, s: Bind) -> None:
    f.bind(s.symbol, f.as_i64(f.operand(s.value), s.value.dtype))


def _emit_for(f: FunctionEmitter, s: For) -> None:
    parts = append_parts(s) if s.role == "append" and f.lanes == 1 else None
    if parts is None:
        emit_for(f, s)
    elif f.target.has_masks and f.target.triple.startswith("x86_64"):
        emit_append(f, s, *parts)
    else:
        emit_append_by_turns(f, s, *parts)


HANDLERS: dict[type, Callable[[FunctionEmitter, Any], None]] = {
    Let: emit_let, DimValue: emit_dim_value, Bind: _emit_bind, Load: emit_load, Store: emit_store, For: _emit_for,
    While: emit_while, If: emit_if, Reduce: emit_reduce, Alloc: emit_alloc, Free: emit_free,
    Swap: emit_swap, Check: emit_check, CallKernel: emit_call_kernel, Library: emit_library, Host: emit_host,
    SetResult: emit_set_result,
}  # fmt: skip


class ModuleEmitter:
    """Emits the functions of one program, and knows what they share.

    Attributes:
        scratch, results: parameters of the entry that statements may use; `results` is None in kernels.
        flags: fast-math flags of every floating-point instruction.
    """

    def __init__(self, target: Target, sites: list[Site], flags: str = "") -> None:
        self.target = target
        self.sites = sites
        self.flags = flags
        self.handlers = HANDLERS
        self.scratch = V("%scratch", "ptr")
        self.results: V | None = None
        self.functions: list[str] = []
        self.globals: list[str] = []
        self.declarations: dict[str, None] = {}
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._heap: set[str] = set()
        self._parts: set[str] = set()
        self._helpers: dict[tuple[str, int, int], str] = {}
        width = target.vector_bytes * 8
        self.attributes = f'nounwind "prefer-vector-width"="{width}" "no-trapping-math"="true"'

    # --- kernels ----------------------------------------------------------------------------------------------------

    def kernel(self, k: Function) -> None:
        """Emit a kernel, unless one with the same text is there."""
        f = FunctionEmitter(self, swapped(k.body))
        f.polls = k.polls
        parameters = ["ptr %ctx"]
        for i, b in enumerate(k.buffers):
            parameters.append(f"ptr %b{i}")
            set_buffer(f, b, V(f"%b{i}", "ptr"), 0)
        for i, symbol in enumerate(k.symbols):
            parameters.append(f"i64 %s{i}")
            f.bind(symbol, V(f"%s{i}", I64))
        for i, var in enumerate(k.scalars):
            parameters.append(f"{TYPES[var.dtype]} %x{i}")
            f.values[var.name] = V(f"%x{i}", TYPES[var.dtype])
        if k.results:
            parameters.append("ptr %out")
        f.statements(k.body)
        for i, result in enumerate(k.results):
            f.a.store(f.to_memory(f.operand(result)), f.a.gep(V("%out", "ptr"), 8 * i, "i8"), align=8)
        fence(f)
        free_rows(f)
        f.a.ret(V("0", "i32"))
        text = self.body(f, ", ".join(parameters))
        name = self._texts.get(text)
        if name is None:
            name = self._texts[text] = f"k{len(self._texts)}"
            comment = f"; {k.name}: {one_line(', '.join(k.origin))}\n" if k.origin else ""
            self.functions.append(f"{comment}define internal i32 @{name}{text}")
        self._names[k.name] = name

    def kernel_name(self, name: str) -> str:
        """The emitted name of a kernel."""
        return self._names[name]

    def body(self, f: FunctionEmitter, parameters: str) -> str:
        """A function's text behind its name."""
        f.finish()
        for line in f.a.declarations():
            self.declarations[line] = None
        lines = "\n".join([line for line in f.a.lines if line])
        return f"({parameters}) {self.attributes} {{\n{lines}\n}}"

    def lanes_helper(self, ty: str, lanes: int, arity: int) -> str:
        """A function that calls a scalar C function on each lane of its vector operands."""
        key = (ty, lanes, arity)
        name = self._helpers.get(key)
        if name is None:
            name = self._helpers[key] = f"lanes.{ty}.{lanes}.{arity}"
            a = Assembler()
            operands = [V(f"%x{i}", ty, lanes) for i in range(arity)]
            places = [a.alloca(ty, lanes=lanes, align=64) for _ in operands]
            for place, x in zip(places, operands, strict=True):
                a.store(x, place, align=64)
            before = a.block
            loop, done = a.fresh_label("lane"), a.fresh_label("done")
            a.label(loop)
            lane = a.phi([(V("0", I64), before)])
            elements = [a.load(a.gep(place, lane, ty), ty, align=4) for place in places]
            a.store(a.call_pointer(V("%callee", "ptr"), ty, elements), a.gep(places[0], lane, ty), align=4)
            following = a.add(lane, V("1", I64))
            a.add_incoming(lane, following, a.block)
            a.condbr(a.icmp("ult", following, V(str(lanes), I64)), loop, done)
            a.label(done)
            a.ret(a.load(places[0], ty, lanes=lanes, align=64))
            parameters = ", ".join(["ptr %callee", *(x.typed for x in operands)])
            vector = f"<{lanes} x {ty}>"
            text = a.function(name, parameters, returns=vector, prefix="internal", attributes=self.attributes)
            self.functions.append(text)
        return name

    def part(self, kernel: str, types: list[str], ahead: int) -> V:
        """The function `i32 (ctx, closure, lower, upper)` that calls a kernel with bounds on arguments in a closure, of
        which `ahead` stand in front of the bounds.
        """
        name = f"{kernel}.part"
        if name not in self._parts:
            self._parts.add(name)
            a = Assembler()
            values = []
            for k, ty in enumerate(types):
                memory = {"i1": "i8", "half": "i16"}.get(ty, ty)
                x = a.load(a.gep(V("%closure", "ptr"), 8 * k, "i8"), memory, align=8)
                values.append(
                    a.icmp("ne", x, V("0", "i8")) if ty == "i1" else a.bitcast(x, "half") if ty == "half" else x
                )
            bounds = [V("%lower", I64), V("%upper", I64)]
            given = [V("%ctx", "ptr"), *values[:ahead], *bounds, *values[ahead:]]
            a.ret(a.define(f"call i32 @{kernel}({', '.join([x.typed for x in given])})", "i32"))
            parameters = "ptr %ctx, ptr %closure, i64 %lower, i64 %upper"
            self.functions.append(
                a.function(name, parameters, returns="i32", prefix="internal", attributes=self.attributes)
            )
        return V(f"@{name}", "ptr")

    def poll_function(self) -> V:
        """The helper of `llvm_poll`, emitted at first use."""
        if "poll" not in self._heap:
            self._heap.add("poll")
            self.functions.append(poll_function(self.attributes))
        return V("@poll", "ptr")

    def heap_function(self, name: str) -> V:
        """The helper `alloc` or `free` of `llvm_heap`, emitted at first use."""
        if name not in self._heap:
            self._heap.add(name)
            self.functions.append(heap_function(name, self.attributes))
        return V(f"@heap.{name}", "ptr")

    # --- the exports ------------------------------------------------------------------------------------------------

    def entry(self, p: Program) -> None:
        """`entry`: binds sizes, strides, buffers and scalars, then runs the program's body."""
        self.results = V("%results", "ptr")
        EntryEmitter(self, ENTRY, p, LONGEST_PART).emit()
        self.results = None

    def table(self, k: int, array: np.ndarray) -> V:
        """The address of a table, a constant of the module."""
        self.globals.append(_table(f"table{k}", array))
        return V(f"@table{k}", "ptr")

    def prepare(self, p: Program) -> None:
        """`prepare`: sizes of the arguments, guards, sizes of the results and of the arena."""
        f = FunctionEmitter(self)
        a, dims = f.a, V("%dims", "ptr")
        shapes: dict[tuple[int, int], V] = {}
        holds: V | None = None
        known = {symbol: k for k, (symbol, _, _) in enumerate(p.dims)}
        waiting: dict[int, list[tuple[str, DimLike, DimLike]]] = {}
        for g in p.guards:  # tested behind the last of the sizes in it, so that few are at hand at a time
            last = max((known[n] for n in (*f.names_of(g[1]), *f.names_of(g[2]))), default=len(p.dims) - 1)
            waiting.setdefault(last, []).append(g)
        for k, (symbol, slot, axis) in enumerate(p.dims):
            field, k_th = (SLOT_DIMS, axis) if axis >= 0 else (SLOT_STRIDES, -1 - axis)
            if (slot, field) not in shapes:
                shapes[slot, field] = a.load(a.gep(V("%args", "ptr"), slot * SLOT_BYTES + field, "i8"), "ptr", align=8)
            size = a.load(a.gep(shapes[slot, field], 8 * k_th, "i8"), I64, align=8)
            a.store(size, a.gep(dims, 8 * k, "i8"), align=8)
            f.bind(symbol, size)
            f.may_end_block()
            holds = self._tested(f, waiting.pop(k, ()), holds)
        for rest in waiting.values():
            holds = self._tested(f, rest, holds)
        if holds is not None:
            fits, misses = a.fresh_label("fits"), a.fresh_label("misses")
            a.condbr(holds, fits, misses)
            a.label(misses)
            a.ret(V(str(int(Status.GUARD_FAILED)), "i32"))
            a.label(fits)
        at = 0
        for shape in p.result_dims:
            for d in shape or ():
                a.store(f.dim(d), a.gep(V("%result_dims", "ptr"), 8 * at, "i8"), align=8)
                at += 1
            f.may_end_block()
        for symbol, value in p.sizes:
            f.bind(symbol, f.dim(value))
        a.store(f.dim(p.scratch_bytes), V("%scratch_bytes", "ptr"), align=8)
        a.ret(V("0", "i32"))
        text = self.body(f, "ptr %ctx, ptr %args, ptr %dims, ptr %result_dims, ptr %scratch_bytes")
        self.functions.append(f"define i32 @{PREPARE}{text}")

    def _tested(self, f: FunctionEmitter, guards: Iterable[tuple[str, DimLike, DimLike]], holds: V | None) -> V | None:
        """Whether guards hold, too; None: nothing was tested yet."""
        for relation, left, right in guards:
            one = f.a.icmp(_PREDICATES[relation], f.dim(left), f.dim(right))
            holds = one if holds is None else f.a.and_(holds, one)
            f.may_end_block()
        return holds


def _table(name: str, array: np.ndarray) -> str:
    """A constant array as bytes."""
    data = np.ascontiguousarray(array).tobytes()
    text = "".join(f"\\{byte:02x}" for byte in data)
    return f'@{name} = private constant [{len(data)} x i8] c"{text}", align 64'


def emit_program(program: Program, target: Target) -> str:
    """LLVM IR text of a program, with the exports `prepare` and `entry`.

    Raises:
        InternalError: a primitive or C function that nobody knows.
    """
    m = ModuleEmitter(target, program.sites, " ".join(sorted(program.fast_math)))
    for kernel in program.kernels:
        m.kernel(kernel)
    m.entry(program)
    m.prepare(program)
    head = [f"; {program.name}", f'target triple = "{target.triple}"']
    return "\n\n".join(["\n".join([*head, *m.globals]), *m.functions, "\n".join(sorted(m.declarations))]) + "\n"


__all__ = ["ENTRY", "EXPORTS", "PREPARE", "Memory", "emit_program"]
