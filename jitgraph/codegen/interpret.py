"""Runs loop programs in Python, one scalar at a time: the meaning that machine code is compared with in tests.

Memory is bytes with bounds: an access outside of its buffer's memory is an `InternalError` here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.abi import Interface, ResultSlot
from jitgraph.codegen.dots import ORDERS
from jitgraph.codegen.loops import (
    Address,
    Alloc,
    Bind,
    Buffer,
    CallKernel,
    Check,
    Const,
    DimValue,
    For,
    Free,
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
from jitgraph.errors import InternalError
from jitgraph.ir.dims import DimLike, evaluate
from jitgraph.ir.layouts import extent
from jitgraph.ir.scalar_eval import NumpyScalar
from jitgraph.ops.reduction_plan import chunks_of
from jitgraph.records import dataclass

_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
}


class CheckFailed(Exception):  # noqa: N818  # an outcome that tests look at
    """A check did not hold."""

    def __init__(self, site: int, values: tuple[Any, ...]) -> None:
        super().__init__(f"site {site}: {values}")
        self.site = site
        self.values = values


@dataclass(slots=True)
class Memory:
    """Bytes, and where in them a buffer's first element is."""

    data: np.ndarray  # uint8[size]
    origin: int

    @property
    def address(self) -> int:
        base: int = self.data.__array_interface__["data"][0]
        return base + self.origin


def run_program(
    p: Program,
    interface: Interface,
    args: Sequence[Any],
    hosts: Mapping[int, Callable[..., Any]] | None = None,
    library: Callable[[str, list[Any]], Any] | None = None,
    *,
    poison: bool = False,
) -> list[Any] | None:
    """The fresh results, as `runtime.invoke.Executable` gives them; None if a guard does not hold.

    Args:
        library: calls a C function of the table: its name, and addresses, integers and floats as arguments.
        poison: where the memory plan says that a temporary is dead, its memory is filled with NaNs.

    Raises:
        CheckFailed: a check did not hold.
        InternalError: an access out of bounds, or what the primitives leave undefined.
    """
    with np.errstate(all="ignore"):
        sizes = {symbol: extent(args[slot], axis) for symbol, slot, axis in p.dims}
        for relation, left, right in p.guards:
            if not _RELATIONS[relation](evaluate(left, sizes), evaluate(right, sizes)):
                return None
        results: list[Any] = [None] * len(p.result_dims)
        for slot, shape in enumerate(p.result_dims):
            if shape is not None:
                results[slot] = _empty(interface.results[slot], [evaluate(d, sizes) for d in shape])
        for name, value in p.sizes:
            sizes[name] = evaluate(value, sizes)
        arena = Memory(np.full(evaluate(p.scratch_bytes, sizes), 0xAA, np.uint8), 0)
        run = _Run(p, interface, results, arena, hosts or {}, library)
        run.symbols.update(sizes)
        if poison and p.memory is not None:
            for chain in p.memory.chains:
                end = chain.lives[-1].dies
                if end is not None and chain.outside is None:
                    run.deaths.setdefault(id(end.stmt), []).append((chain.lives[-1].buffer, chain.size))
        for e in p.entry_buffers:
            array = args[e.slot] if e.source == "arg" else results[e.slot]
            for axis, symbol in enumerate(e.stride_symbols):
                if symbol:
                    run.symbols[symbol] = array.strides[axis]
            run.buffers[e.buffer.name] = memory_of(array)
        for b, table in p.tables:
            run.buffers[b.name] = memory_of(np.ascontiguousarray(table))
        for var, slot in p.entry_scalars:
            run.assign(var, args[slot])
        run.body(p.entry)
        return results


def _empty(r: ResultSlot, shape: list[int]) -> np.ndarray:
    back = [r.order.index(axis) for axis in range(len(r.order))]
    return np.empty([shape[axis] for axis in r.order], dtypes.from_short_name(r.dtype)).transpose(back)


def memory_of(array: np.ndarray) -> Memory:
    """The bytes that the elements of `array` span."""
    low, high = np.lib.array_utils.byte_bounds(array)
    if array.size == 0:
        return Memory(np.empty(0, np.uint8), 0)
    memory: Any = (ctypes.c_char * (high - low)).from_address(low)
    return Memory(np.ndarray((high - low,), np.uint8, memory), array.__array_interface__["data"][0] - low)


class _Run:
    """One function's activation."""

    def __init__(
        self,
        p: Program,
        interface: Interface,
        results: list[Any],
        arena: Memory,
        hosts: Mapping[int, Callable[..., Any]],
        library: Callable[[str, list[Any]], Any] | None,
    ) -> None:
        self.p, self.interface, self.results, self.arena = p, interface, results, arena
        self.hosts, self.library = hosts, library
        self.values: dict[str, Any] = {}
        self.symbols: dict[str, int] = {}
        self.buffers: dict[str, Memory] = {}
        #: What dies behind a statement (by `id`), with its bytes.
        self.deaths: dict[int, list[tuple[Buffer, DimLike]]] = {}
        #: Results of host calls that asked for sizes first, by site.
        self.waiting: dict[int, Any] = {}
        self.scalar = NumpyScalar()
        #: The program's constants as scalars, by `id`.
        self.constants: dict[int, Any] = {}

    def boxed(self, x: Operand | Pair) -> Any:
        """A scalar, a complex one as a whole."""
        if isinstance(x, Pair):
            return np.array([self.operand(x.real), self.operand(x.imag)]).view(x.dtype)[0]
        return self.operand(x)

    def assign(self, x: Var | Pair, value: Any) -> None:
        """Give a scalar its value, a complex one to its parts."""
        if isinstance(x, Var):
            self.values[x.name] = x.dtype.type(value)
            return
        for part, number in zip((x.real, x.imag), (value.real, value.imag), strict=True):
            assert isinstance(part, Var)
            self.values[part.name] = part.dtype.type(number)

    def operand(self, x: Operand) -> Any:
        if isinstance(x, Var):
            return self.values[x.name]
        number = self.constants.get(id(x))
        if number is None:
            number = self.constants[id(x)] = np.asarray(x.value).astype(x.dtype)[()]
        return number

    def dim(self, d: DimLike) -> int:
        return d if type(d) is int else evaluate(d, self.symbols)

    def element(self, b: Buffer, index: tuple[DimLike, ...]) -> np.ndarray:
        """The element, as an array of one that shares its memory."""
        memory, size, dim = self.buffers[b.name], b.dtype.itemsize, self.dim
        at = memory.origin
        for i, s in zip(index, b.strides, strict=True):
            at += dim(i) * dim(s)
        if not 0 <= at <= memory.data.size - size:
            where = [self.dim(i) for i in index]
            raise InternalError(f"{b.name}{where} lies {at} bytes into a memory of {memory.data.size} bytes")
        element: np.ndarray = memory.data[at : at + size].view(b.dtype)
        return element

    def body(self, body: Sequence[Stmt]) -> None:
        for s in body:
            run = _STATEMENTS.get(type(s))
            if run is None:
                raise InternalError(f"{type(s).__name__} is no statement")
            run(self, s)
            if self.deaths:
                for b, size in self.deaths.get(id(s), ()):
                    memory = self.buffers[b.name]
                    memory.data[memory.origin : memory.origin + self.dim(size)] = 0xFF

    def dim_value(self, s: DimValue) -> None:
        self.values[s.var.name] = np.int64(self.dim(s.dim))

    def bind(self, s: Bind) -> None:
        self.symbols[s.symbol] = int(self.operand(s.value))

    def load(self, s: Load) -> None:
        number = self.element(s.buffer, s.index)[0]
        if s.imag is None:
            self.values[s.var.name] = number
        else:
            self.values[s.var.name], self.values[s.imag.name] = number.real, number.imag

    def store(self, s: Store) -> None:
        element = self.element(s.buffer, s.index)
        if s.imag is None:
            element[0] = self.operand(s.value)
        else:
            element.real, element.imag = self.operand(s.value), self.operand(s.imag)

    def counted(self, s: For) -> None:
        self.enter(s)
        for i in range(self.dim(s.lower), self.dim(s.upper), self.dim(s.step)):
            self.symbols[s.symbol] = i
            self.body(s.body)
            going = s.going is None or self.operand(s.going)
            self.advance(s)
            if not going:
                break
        self.leave(s)

    def tested(self, s: While) -> None:
        self.enter(s)
        while True:
            self.body(s.test)
            if not self.operand(s.condition):
                break
            self.body(s.body)
            self.advance(s)
        self.leave(s)

    def branch(self, s: If) -> None:
        taken = bool(self.operand(s.condition))
        self.body(s.then if taken else s.otherwise)
        merged = [self.operand(m.then if taken else m.otherwise) for m in s.merges]
        for m, value in zip(s.merges, merged, strict=True):
            self.values[m.result.name] = value

    def check(self, s: Check) -> None:
        if not self.operand(s.condition):
            raise CheckFailed(s.site, tuple(self.operand(x) for x in s.values))

    def free(self, s: Free) -> None:
        del self.buffers[s.buffer.name]

    def swap(self, s: Swap) -> None:
        a, b = self.buffers[s.a.name], self.buffers[s.b.name]
        self.buffers[s.a.name], self.buffers[s.b.name] = b, a

    def set_result(self, s: SetResult) -> None:
        self.results[s.slot] = self.box(s)

    def compute(self, s: Let) -> None:
        self.values[s.var.name] = self.let(s)

    def let(self, s: Let) -> Any:
        args = [self.operand(x) for x in s.args]
        if s.op in ("cast", "bitcast"):
            return getattr(self.scalar, s.op)(args[0], s.var.dtype)
        if s.op in ("cmp", "call"):
            made = getattr(self.scalar, s.op)(s.attr, *args)
            return made if type(made) is s.var.dtype.type else np.asarray(made).astype(s.var.dtype)[()]
        if s.op.endswith("_overflows"):
            exact = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[s.op[:3]](int(args[0]), int(args[1]))
            info = np.iinfo(s.args[0].dtype)
            return np.bool_(not info.min <= exact <= info.max)
        return getattr(self.scalar, s.op)(*args)

    def enter(self, s: For | While) -> None:
        inits = [self.operand(c.init) for c in s.carried]
        for c, value in zip(s.carried, inits, strict=True):
            self.values[c.inner.name] = value

    def advance(self, s: For | While) -> None:
        nexts = [self.operand(c.next) for c in s.carried]
        for c, value in zip(s.carried, nexts, strict=True):
            self.values[c.inner.name] = value

    def leave(self, s: For | While) -> None:
        for c in s.carried:
            self.values[c.result.name] = self.values[c.inner.name]

    def reduce(self, s: Reduce) -> None:
        elements: list[list[Any]] = [[] for _ in s.parts]
        factors: list[list[Any]] = [[] for _ in s.parts]
        for i in range(self.dim(s.extent)):
            self.symbols[s.symbol] = i
            self.body(s.body)
            for part, found, others in zip(s.parts, elements, factors, strict=True):
                found.append(self.operand(part.value))
                if part.factor is not None:
                    others.append(self.operand(part.factor))
        for part, found, others in zip(s.parts, elements, factors, strict=True):
            if part.order == "dot":
                start = 0.0 if part.init is None else float(self.operand(part.init))
                total = ORDERS[part.model].evaluate([float(x) for x in found], [float(x) for x in others], start)
                self.values[part.result.name] = part.result.dtype.type(total)
                continue
            init = None if part.init is None else self.operand(part.init)
            chunk = None if part.chunk is None else self.dim(part.chunk)
            period = None if part.period is None else self.dim(part.period)
            self.values[part.result.name] = reduce_values(part, found, init, chunk, period)

    def alloc(self, s: Alloc) -> None:
        """Memory of its own has room for one element at least, as NumPy's has: see `Lowering.reads_empty`."""
        if s.scope == "scratch":
            host = self.buffers[s.host] if s.host and self.dim(s.fits) else None
            if host is not None:
                self.buffers[s.buffer.name] = Memory(host.data, host.origin + self.dim(s.inside))
            else:
                self.buffers[s.buffer.name] = Memory(self.arena.data, self.dim(s.offset))
            return
        shape = [self.dim(d) for d in s.buffer.shape]
        if s.scope == "result":
            self.results[s.slot] = array = _empty(self.interface.results[s.slot], shape)
            self.buffers[s.buffer.name] = memory_of(array if array.size else np.empty(1, array.dtype))
        else:
            size = max(1, int(np.prod(shape, dtype=np.int64))) * s.buffer.dtype.itemsize
            self.buffers[s.buffer.name] = Memory(np.full(size, 0xAA, np.uint8), 0)

    def call(self, s: CallKernel) -> None:
        """What can be split is: the last piece runs first, so that a piece that needs one before it shows."""
        symbols = [self.dim(d) for d in s.symbols]
        if s.split is None:
            self.call_on(s, symbols)
            return
        lower, upper = symbols[-2:]
        step = max(1, (upper - lower) // s.split.unit // 3) * s.split.unit
        for start in reversed(range(lower, max(upper, lower + 1), step)):
            self.call_on(s, [*symbols[:-2], start, min(start + step, upper)])

    def call_on(self, s: CallKernel, symbols: list[int]) -> None:
        k = next(k for k in self.p.kernels if k.name == s.name)
        inner = _Run(self.p, self.interface, self.results, self.arena, self.hosts, self.library)
        inner.constants = self.constants
        inner.buffers.update({b.name: self.buffers[a.name] for b, a in zip(k.buffers, s.buffers, strict=True)})
        inner.symbols.update(zip(k.symbols, symbols, strict=True))
        inner.values.update({v.name: self.operand(x) for v, x in zip(k.scalars, s.scalars, strict=True)})
        inner.body(k.body)
        for var, x in zip(s.results, k.results, strict=True):
            self.values[var.name] = inner.operand(x)

    def call_library(self, s: Library) -> None:
        if self.library is None:
            raise InternalError(f"nobody to call {s.name}")
        arguments: list[Any] = []
        for x in s.args:
            if isinstance(x, Address):
                offset = sum(self.dim(i) * self.dim(t) for i, t in zip(x.index, x.buffer.strides, strict=True))
                arguments.append(self.buffers[x.buffer.name].address + offset)
            elif isinstance(x, (Var, Const)):
                arguments.append(self.operand(x).item())
            else:
                arguments.append(self.dim(x))
        answer = self.library(s.name, arguments)
        if s.result is not None:
            self.values[s.result.name] = s.result.dtype.type(answer)

    def view(self, b: Buffer, offset: int = 0) -> np.ndarray:
        """A buffer as an array that shares its memory."""
        memory = self.buffers[b.name]
        shape, strides = [self.dim(d) for d in b.shape], [self.dim(d) for d in b.strides]
        if 0 in shape:
            return np.empty(shape, b.dtype)
        return np.ndarray(shape, b.dtype, memory.data.data, memory.origin + offset, strides)

    def lent(self, b: Buffer, offset: int, borrows: bool) -> np.ndarray:
        """A buffer as a host function sees it: itself, if the function does not keep it."""
        return self.view(b, offset) if borrows else self.view(b, offset).copy("K")

    def host(self, s: Host) -> None:
        if s.waiting:
            answer = self.waiting.pop(s.site)
        else:
            offsets = [self.dim(d) for d in s.offsets or (0,) * len(s.inputs)]
            given = zip(s.inputs, offsets, strict=True)
            function = self.hosts[s.site]
            borrows = getattr(function, "borrows", False)  # the bits of NumPy's functions depend on strides
            inputs = [self.lent(x, at, borrows) if isinstance(x, Buffer) else self.boxed(x) for x, at in given]
            answer = function(*inputs)
        if s.sizes:
            answers = answer if isinstance(answer, tuple) else (answer,)
            self.waiting[s.site] = answer
            for x, (k, axis) in zip(s.outputs, s.sizes, strict=True):
                assert isinstance(x, Var)
                self.values[x.name] = np.int64(np.shape(answers[k])[axis])
            return
        for x, value in zip(s.outputs, answer if len(s.outputs) > 1 else (answer,), strict=False):
            if isinstance(x, Buffer):
                self.view(x)[...] = value
            else:
                self.assign(x, value)

    def box(self, s: SetResult) -> Any:
        value, kind = self.boxed(s.value), self.interface.results[s.slot].kind
        if kind == "np_scalar" or (kind == "maybe_np_float" and s.is_numpy is not None and self.operand(s.is_numpy)):
            return value
        return value.item()


_STATEMENTS: dict[type, Callable[[_Run, Any], None]] = {
    Alloc: _Run.alloc,
    Bind: _Run.bind,
    CallKernel: _Run.call,
    Check: _Run.check,
    DimValue: _Run.dim_value,
    For: _Run.counted,
    Free: _Run.free,
    Host: _Run.host,
    If: _Run.branch,
    Let: _Run.compute,
    Library: _Run.call_library,
    Load: _Run.load,
    Reduce: _Run.reduce,
    SetResult: _Run.set_result,
    Store: _Run.store,
    Swap: _Run.swap,
    While: _Run.tested,
}


# --- reductions -----------------------------------------------------------------------------------------------------


def pairwise(a: Sequence[Any], dtype: np.dtype, width: int = 8) -> Any:
    """NumPy's sum of floats: eight accumulators in leaves of at most 128, halves added recursively.

    A part of complex numbers has four, and leaves of 64.
    """
    n = len(a)
    if n < width:
        total = dtype.type(-0.0)
        for value in a:
            total = total + value
        return total
    if n <= 16 * width:
        full = n - n % width
        acc = list(a[:width])
        for i in range(width, full, width):
            acc = [x + y for x, y in zip(acc, a[i : i + width], strict=True)]
        while len(acc) > 1:
            acc = [x + y for x, y in zip(acc[::2], acc[1::2], strict=True)]
        total = acc[0]
        for value in a[full:]:
            total = total + value
        return total
    half = n // 2
    half -= half % width
    return pairwise(a[:half], dtype, width) + pairwise(a[half:], dtype, width)


def reduce_values(p: Part, values: list[Any], init: Any, chunk: int | None, period: int | None = None) -> Any:
    """What a part makes of its values."""
    dtype = p.value.dtype
    if p.kind in ("argmax", "argmin"):
        function = np.argmax if p.kind == "argmax" else np.argmin
        return np.int64(function(np.array(values, dtype)) if values else 0)
    if p.order == "pairwise":
        total = dtype.type(-0.0) if init is None else init
        size = len(values)
        for start, stop in chunks_of(size, chunk or size, period or size) if size else [(0, 0)]:
            total = total + pairwise(values[start:stop], dtype, p.width)
        return total
    total = init
    for value in values:
        total = value if total is None else _step(p.kind, total, value, dtype)
    return dtype.type(identity_of(p.kind, dtype)) if total is None else total


def _step(kind: str, x: Any, y: Any, dtype: np.dtype) -> Any:
    if kind in ("any", "all"):
        return np.bool_(x or y) if kind == "any" else np.bool_(x and y)
    function = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    return function(x, y, dtype=dtype)


def identity_of(kind: str, dtype: np.dtype) -> Any:
    """The value that changes nothing."""
    if kind in ("any", "all", "sum", "prod"):
        return {"any": False, "all": True, "sum": -0.0 if dtype.kind == "f" else 0, "prod": 1}[kind]
    if dtype.kind == "f":
        return -np.inf if kind == "max" else np.inf
    if dtype.kind == "b":
        return kind == "min"
    return np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max


__all__ = ["CheckFailed", "memory_of", "pairwise", "reduce_values", "run_program"]
