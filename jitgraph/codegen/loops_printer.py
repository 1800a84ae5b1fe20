"""Text of loop programs, for dumps and golden tests: two runs print the same bytes.

kernel saxpy(x: f64[n], y: f64[n], out: f64[n]; n) {
for i in range(0, n) vector {
a: f64 = load x[i]
c: f64 = mul a, 2.0
store out[i] = c
}
}
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Address,
    Alloc,
    Bind,
    Buffer,
    CallKernel,
    Carry,
    Check,
    Const,
    DimValue,
    For,
    Free,
    Function,
    Host,
    If,
    Let,
    Library,
    Load,
    Operand,
    Pair,
    Part,
    Program,
    Reduce,
    SetResult,
    Stmt,
    Store,
    Swap,
    Var,
    While,
)
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Site
from jitgraph.ir.printer import place_text


def print_program(p: Program) -> str:
    """The whole program: kernels, then the entry with what it binds."""
    parts = [print_function(k) for k in p.kernels]
    return "\n\n".join([*parts, _entry(p)]) + "\n"


def print_function(k: Function) -> str:
    """One kernel, with the ops and lines it came from as a comment."""
    parameters = [_typed_buffer(b) for b in k.buffers] + [_typed(v) for v in k.scalars]
    results = f" -> {', '.join(map(_operand, k.results))}" if k.results else ""
    lines = [f"# {', '.join(k.origin)}"] if k.origin else []
    lines.append(f"kernel {k.name}({', '.join(parameters)}; {', '.join(k.symbols)}){results} {{")
    _body(k.body, 1, lines)
    lines.append("}")
    return "\n".join(lines)


def print_body(body: Sequence[Stmt]) -> str:
    """Statements without a function around."""
    lines: list[str] = []
    _body(body, 0, lines)
    return "\n".join(lines)


def _entry(p: Program) -> str:
    lines = [f"program {p.name} {{"]
    for symbol, slot, axis in p.dims:
        lines.append(f"  {symbol} = size of argument {slot}, axis {axis}")
    for relation, left, right in [(g[0], g[1], g[2]) for g in p.guards]:
        lines.append(f"  guard {left} {relation} {right}")
    for e in p.entry_buffers:
        where = "argument" if e.source == "arg" else "result"
        strides = [s for s in e.stride_symbols if s]
        runtime = f", strides {', '.join(s or '-' for s in e.stride_symbols)}" if strides else ""
        lines.append(f"  {_typed_buffer(e.buffer)} = {where} {e.slot}{runtime}")
    for var, slot in p.entry_scalars:
        lines.append(f"  {_typed(var)} = argument {slot}")
    for buffer, array in p.tables:
        lines.append(f"  {_typed_buffer(buffer)} = table {array.tolist()}")
    for slot, shape in enumerate(p.result_dims):
        if shape is not None:
            lines.append(f"  result {slot}: [{', '.join(map(str, shape))}]")
    lines += [f"  {name} = {value}" for name, value in p.sizes]
    if p.scratch_bytes != 0:
        lines.append(f"  scratch: {p.scratch_bytes} bytes")
    if p.fast_math:
        lines.append(f"  fast_math: {', '.join(sorted(p.fast_math))}")
    _body(p.entry, 1, lines)
    lines.append("}")
    for k, site in enumerate(p.sites):
        lines.append(f"site {k}: {_site(site)}")
    return "\n".join(lines)


def _site(site: Site) -> str:
    return f"{site.error}: {site.message!r}" + (f" at {place_text(site.loc)}" if site.loc is not None else "")


def _operand(x: Operand | Pair) -> str:
    if isinstance(x, Pair):
        return f"({_operand(x.real)}, {_operand(x.imag)})"
    if isinstance(x, Var):
        return x.name
    if x.dtype.kind == "b":
        return "true" if x.value else "false"
    return repr(float(x.value)) if x.dtype.kind == "f" else str(int(x.value))


def _typed(v: Operand | Pair) -> str:
    if not isinstance(v, Var):
        return f"{_operand(v)}: {dtypes.short_name(v.dtype)}"
    return f"{v.name}: {dtypes.short_name(v.dtype)}"


def _dims(dims: Sequence[DimLike]) -> str:
    return ", ".join(map(str, dims))


def _typed_buffer(b: Buffer) -> str:
    text = f"{b.name}: {dtypes.short_name(b.dtype)}[{_dims(b.shape)}]"
    return text if b.strides == c_strides(b) else f"{text} by ({_dims(b.strides)})"


def c_strides(b: Buffer) -> tuple[DimLike, ...]:
    """The strides of a buffer in C order, in bytes."""
    strides: list[DimLike] = []
    step: DimLike = b.dtype.itemsize
    for size in reversed(b.shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def _element(b: Buffer, index: Sequence[DimLike]) -> str:
    return f"{b.name}[{_dims(index)}]"


def _carried(carried: Sequence[Carry]) -> str:
    if not carried:
        return ""
    items = [f"{_typed(c.inner)} = {_operand(c.init)} next {_operand(c.next)} -> {c.result.name}" for c in carried]
    return f" carry ({'; '.join(items)})"


def _part(p: Part) -> str:
    init = f", init {_operand(p.init)}" if p.init is not None else ""
    chunk = f", chunk {p.chunk}" if p.chunk is not None else ""
    if p.period is not None:
        chunk += f" of {p.period}"
    if p.factor is not None:
        return f"{_typed(p.result)} = {p.order} {p.model} of {_operand(p.value)}, {_operand(p.factor)}{init}"
    return f"{_typed(p.result)} = {p.order} {p.kind} of {_operand(p.value)}{init}{chunk}"


def _body(body: Sequence[Stmt], depth: int, lines: list[str]) -> None:
    for s in body:
        _statement(s, depth, lines)


def _statement(s: Stmt, depth: int, lines: list[str]) -> None:
    pad = "  " * depth
    if isinstance(s, For):
        step = f", {s.step}" if s.step != 1 else ""
        marks = "" if s.role == "serial" else f" {s.role}"
        marks += f" lanes {s.lanes}" if s.lanes else ""
        marks += f" interleave {s.interleave}" if s.interleave > 1 else ""
        marks += f" while {_operand(s.going)}" if s.going is not None else ""
        marks += f" streams {s.streams}" if s.streams != 0 else ""
        lines.append(f"{pad}for {s.symbol} in range({s.lower}, {s.upper}{step}){marks}{_carried(s.carried)} {{")
        _body(s.body, depth + 1, lines)
        lines.append(f"{pad}}}")
    elif isinstance(s, While):
        lines.append(f"{pad}while{_carried(s.carried)} {{")
        _body(s.test, depth + 1, lines)
        lines.append(f"{pad}}} {_operand(s.condition)} {{")
        _body(s.body, depth + 1, lines)
        lines.append(f"{pad}}}")
    elif isinstance(s, If):
        lines.append(f"{pad}if {_operand(s.condition)} {{")
        _body(s.then, depth + 1, lines)
        if s.otherwise:
            lines.append(f"{pad}}} else cold {{" if s.cold else f"{pad}}} else {{")
            _body(s.otherwise, depth + 1, lines)
        merges = [f"{_typed(m.result)} = {_operand(m.then)} | {_operand(m.otherwise)}" for m in s.merges]
        lines.append(f"{pad}}}" + (f" merge ({'; '.join(merges)})" if merges else ""))
    elif isinstance(s, Reduce):
        lanes = f" lanes {s.lanes}" if s.lanes else ""
        lines.append(f"{pad}reduce {s.symbol} in range({s.extent}){lanes} ({'; '.join(map(_part, s.parts))}) {{")
        _body(s.body, depth + 1, lines)
        lines.append(f"{pad}}}")
    else:
        lines.append(pad + _simple(s))


def _simple(s: Stmt) -> str:
    if isinstance(s, Let):
        attr = f" {s.attr}" if s.attr else ""
        return f"{_typed(s.var)} = {s.op}{attr} {', '.join(map(_operand, s.args))}"
    if isinstance(s, DimValue):
        return f"{_typed(s.var)} = dim {s.dim}"
    if isinstance(s, Bind):
        return f"bind {s.symbol} = {_operand(s.value)}"
    if isinstance(s, Load):
        imag = f", {_typed(s.imag)}" if s.imag is not None else ""
        return f"{_typed(s.var)}{imag} = load {_element(s.buffer, s.index)}"
    if isinstance(s, Store):
        imag = f", {_operand(s.imag)}" if s.imag is not None else ""
        return f"store {_element(s.buffer, s.index)} = {_operand(s.value)}{imag}"
    if isinstance(s, Alloc):
        where = f" {s.slot}" if s.scope == "result" else _place(s) if s.scope == "scratch" else ""
        return f"alloc {_typed_buffer(s.buffer)} {s.scope}{where}"
    if isinstance(s, Free):
        return f"free {s.buffer.name}"
    if isinstance(s, Swap):
        return f"swap {s.a.name}, {s.b.name}"
    if isinstance(s, Check):
        return f"check {_operand(s.condition)} site {s.site} ({', '.join(map(_operand, s.values))})"
    if isinstance(s, CallKernel):
        arguments = [b.name for b in s.buffers] + [_operand(x) for x in s.scalars]
        results = f"{', '.join(map(_typed, s.results))} = " if s.results else ""
        split = "" if s.split is None else f" in pieces of {s.split.unit}, {s.split.each} a thread, work {s.split.cost}"
        split += ", else in line" if s.split is not None and s.split.alone is not None else ""
        return f"{results}call {s.name}({', '.join(arguments)}; {_dims(s.symbols)}){split}"
    if isinstance(s, Library):
        result = f"{_typed(s.result)} = " if s.result is not None else ""
        return f"{result}library {s.name}({', '.join(map(_argument, s.args))})"
    if isinstance(s, Host):
        outputs = (
            f"{', '.join(_operand(x) if isinstance(x, Pair) else x.name for x in s.outputs)} = " if s.outputs else ""
        )
        inputs = [x.name if isinstance(x, Buffer) else _operand(x) for x in s.inputs]
        if s.waiting:
            return f"{outputs}results of site {s.site}"
        sizes = f" sizes [{', '.join(f'{k}.{axis}' for k, axis in s.sizes)}]" if s.sizes else ""
        return f"{outputs}host site {s.site} ({', '.join(inputs)}){sizes}"
    if isinstance(s, SetResult):
        mark = f" numpy {_operand(s.is_numpy)}" if s.is_numpy is not None else ""
        return f"result {s.slot} = {_operand(s.value)}{mark}"
    raise TypeError(f"no statement: {type(s).__name__}")


def _place(s: Alloc) -> str:
    """Where scratch lies."""
    if not s.host:
        return f" at {s.offset}"
    where = f" in {s.host}" + (f" at {s.inside}" if s.inside != 0 else "")
    return where if s.fits == 1 else f"{where} if {s.fits}, else at {s.offset}"


def _argument(x: Operand | Address | DimLike) -> str:
    if isinstance(x, Address):
        return f"&{_element(x.buffer, x.index)}"
    return _operand(x) if isinstance(x, (Var, Const)) else str(x)
