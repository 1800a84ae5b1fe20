"""State and core of the emission of one LLVM function: values, dims, addresses, and where invariant code goes.

No mid-level pass runs behind us, so what a loop does not change is written in front of it here. Code is emitted at the
end of the text only; each loop leaves an empty line in its preheader, where what is found to be invariant goes later:

- The *depth* of a symbol is the number of loops around its binding; that of a dim is the largest of its symbols'. A dim
  of depth m that is needed inside loop m + 1 (or deeper) is computed once, in the preheader of loop m + 1.
- Dims and addresses are sums; the terms of smaller depth are split off and hoisted on their own, so that a row's
  address is an addition in the row loop, not a multiplication in the innermost one.
- A table of what is computed already (`memo`) belongs to each preheader and each straight-line stretch of a body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph import dtypes
from jitgraph.abi import CONTEXT_TABLE, TABLE
from jitgraph.codegen.assembler import COLD, Assembler, V
from jitgraph.codegen.loops import Buffer, Operand, Stmt, Var
from jitgraph.errors import InternalError
from jitgraph.ir.dims import Atom, Dim, DimLike, Monomial, as_symbol
from jitgraph.ir.dims import symbols as symbols_of
from jitgraph.target import Target

if TYPE_CHECKING:
    from jitgraph.codegen.llvm import ModuleEmitter
    from jitgraph.codegen.llvm_windows import Window

TYPES: dict[np.dtype, str] = {
    dtypes.BOOL: "i1",
    dtypes.I8: "i8", dtypes.I16: "i16", dtypes.I32: "i32", dtypes.I64: "i64",
    dtypes.U8: "i8", dtypes.U16: "i16", dtypes.U32: "i32", dtypes.U64: "i64",
    dtypes.F16: "half", dtypes.F32: "float", dtypes.F64: "double",
}  # fmt: skip
MEMORY_TYPES: dict[np.dtype, str] = {
    **TYPES, dtypes.BOOL: "i8", dtypes.F16: "i16", dtypes.C64: "[2 x float]", dtypes.C128: "[2 x double]",
}  # fmt: skip


def memory_type(dtype: np.dtype) -> str:
    """The type that elements of `dtype`, in any byte order, are loaded as."""
    return MEMORY_TYPES[dtypes.native(dtype)]


I64 = "i64"
CONTEXT = V("%ctx", "ptr")
#: Instructions of a block, about; see `FunctionEmitter.may_end_block`.
LONGEST_BLOCK = 300


class Level:
    """One loop that is being emitted (level 0: the function): its preheader's text and what is known there."""

    __slots__ = ("chain", "lines", "memo", "outer", "place", "splats", "swaps")

    def __init__(self, place: int, outer: list[dict[Any, V]], swaps: frozenset[str]) -> None:
        self.place = place  # index of the preheader's empty line
        self.lines: list[str] = []
        self.splats: dict[tuple[str, int], V] = {}
        self.memo: dict[Any, V] = {}
        self.outer = outer  # tables of the code around the loop, which dominates it
        self.chain: list[dict[Any, V]] = [{}]  # tables of the body; the last is that of the present branch
        self.swaps = swaps  # buffers exchanged in the loop


class Memory:
    """Where a buffer is: a pointer, or for buffers that are exchanged a variable that holds it.

    `depth` counts the loops around the place where it got its memory.
    """

    __slots__ = ("depth", "pointer", "variable")

    def __init__(self, pointer: V, variable: V | None = None, depth: int = 0) -> None:
        self.pointer = pointer
        self.variable = variable
        self.depth = depth


class FunctionEmitter:
    """Emits statements into one function.

    Attributes:
        values: scalars by name; one lane if uniform.
        symbols: int64 values by name; in a vector loop its index stands for the first lane's.
        lanes, mask, index: of the vector loop around: lane count (1 outside), active lanes (None: all), index symbol.
        divergent: some lanes, perhaps all, are off by control flow (not just a tail).
        varying_vars: names of scalars that differ between lanes, where nested loops need to know ahead.
        polls: outermost loops look for signals.
        hoist_loads: buffers whose uniform loads may not be hoisted, or None if none may.
    """

    def __init__(self, module: ModuleEmitter, swaps: dict[int, frozenset[str]] | None = None) -> None:
        self.module = module
        self.target: Target = module.target
        t = self.target
        self.a = Assembler(has_fma=t.has_fma, has_avx512=t.has_avx512, has_half=t.has_half, flags=module.flags)
        self.a.lines.append("")
        self.values: dict[str, V] = {}
        self.symbols: dict[str, V] = {}
        self.depths: dict[str, int] = {}
        self.buffers: dict[str, Memory] = {}
        self.swaps = swaps or {}
        #: Row buffers from the heap that are made in front of all loops.
        self.rows: list[V] = []
        self.entry_lines: list[str] = []
        self.reloads: list[str] = []
        self._reloads_block = 0
        self.entry_memo: dict[Any, V] = {}
        self.levels: list[Level] = [Level(1, [], self.swaps.get(0, frozenset()))]
        self.chain: list[dict[Any, V]] = self.levels[0].chain
        self.depth = 0
        self.lanes = 1
        self.mask: V | None = None
        self.index = ""
        self.divergent = False
        self.varying_vars: frozenset[str] = frozenset()
        self.varying_symbols: set[str] = set()
        #: Conditions `x == number` of integers, by name: an `If` after another on them is a jump.
        self.equalities: dict[str, tuple[Operand, int]] = {}
        self.hoist_loads: frozenset[str] | None = None
        #: Loads that share vectors where a vector loop runs several side by side; see `llvm_windows`.
        self.windows: dict[object, Window] = {}
        self.polls = False
        #: In how many aligned parts stores of whole vectors pass the caches by (0: they do not), and the variable that
        #: says in the end whether some have.
        self.streaming = 0
        self.streamed: V | None = None
        #: Where the ways out of long blocks lead to.
        self.way_out: str | None = None
        self._offsets: dict[Any, DimLike] = {}
        self._names: dict[Dim, tuple[str, ...]] = {}
        self.extra: list[str] = []  # text of helper functions

    # --- statements -------------------------------------------------------------------------------------------------

    def statements(self, body: list[Stmt]) -> None:
        """Emit a list of statements."""
        handlers = self.module.handlers
        for stmt in body:
            handlers[type(stmt)](self, stmt)
            self.may_end_block()

    def may_end_block(self) -> None:
        """End a block that has grown long: what LLVM does with one takes time that grows with the square of its length,
        and it joins blocks between which there is no choice. So a way out is offered that is never taken.
        """
        a = self.a
        if len(a.lines) - a.block_line < LONGEST_BLOCK:
            return
        following = a.fresh_label("on")
        a.condbr(a.icmp("eq", CONTEXT, V("null", "ptr")), self._out(), following, weights=COLD)
        a.label(following)

    def _out(self) -> str:
        if self.way_out is None:
            self.way_out = self.a.fresh_label("out")
        return self.way_out

    def reload(self, make: Callable[[], V]) -> V:
        """Emit a load behind the entry's allocas, in short blocks. The code proper has a block of its own then."""
        a, lines = self.a, self.reloads
        if len(lines) - self._reloads_block >= LONGEST_BLOCK:
            test = self._redirected(lines, {}, lambda: a.icmp("eq", CONTEXT, V("null", "ptr")))
            following = a.fresh_label("on")
            lines += [f"  br i1 {test.text}, label %{self._out()}, label %{following}", f"{following}:"]
            self._reloads_block = len(lines)
        return self._redirected(lines, {}, make)

    def branch(self, body: list[Stmt]) -> None:
        """Emit statements that dominate nothing behind them: what they compute is forgotten."""
        self.chain.append({})
        self.statements(body)
        self.chain.pop()

    def finish(self) -> None:
        """Put the code that belongs to the function's entry where it belongs."""
        self.a.lines[1] = "\n".join([*self.entry_lines, *self.reloads])
        if self.way_out is not None:
            self.a.label(self.way_out)
            self.a.ret(V("0", "i32"))

    # --- scalars ----------------------------------------------------------------------------------------------------

    def operand(self, x: Operand) -> V:
        """The value of an operand, one lane if it is uniform."""
        if isinstance(x, Var):
            return self.values[x.name]
        return self.constant(x.value, x.dtype)

    def constant(self, value: Any, dtype: np.dtype) -> V:
        """A literal of `dtype`."""
        if dtype.kind == "f":
            return self.a.const(float(value), TYPES[dtype])
        if dtype.kind == "b":
            return V("true" if value else "false", "i1")
        number = int(value)
        if number >= 1 << (dtype.itemsize * 8 - 1):  # LLVM reads literals as signed
            number -= 1 << (dtype.itemsize * 8)
        return V(str(number), TYPES[dtype])

    def wide(self, x: V) -> V:
        """x in all lanes of the vector loop around."""
        return self.a.splat(x, self.lanes)

    def as_i64(self, x: V, dtype: np.dtype) -> V:
        """An integer or bool as int64."""
        if x.ty == I64:
            return x
        return self.a.sext(x, I64) if dtype.kind == "i" else self.a.zext(x, I64)

    def to_memory(self, x: V, dtype: np.dtype | None = None) -> V:
        """x as it is stored in memory of `dtype`: a bool as a byte, a half as its bits, bytes swapped."""
        if x.ty == "half":
            x = self.a.bitcast(x, "i16")
        if dtype is not None and not dtype.isnative:
            return self.swapped(x)
        return self.a.zext(x, "i8") if x.ty == "i1" else x

    def swapped(self, x: V) -> V:
        """x with its bytes in the other order."""
        bits = {"float": "i32", "double": "i64"}.get(x.ty)
        if bits is None:
            return self.a.int_intrinsic("bswap", x)
        return self.a.bitcast(self.a.int_intrinsic("bswap", self.a.bitcast(x, bits)), x.ty)

    def from_memory(self, x: V, dtype: np.dtype) -> V:
        """What was loaded as `memory_type(dtype)`, of one part of a complex number."""
        if not dtype.isnative:
            x, dtype = self.swapped(x), dtypes.native(dtype)
        if dtype == dtypes.F16:
            return self.a.bitcast(x, "half")
        return self.a.icmp("ne", x, self.a.like(0, x)) if dtype.kind == "b" else x

    def any_active(self, x: V) -> V:
        """Whether a condition holds in an active lane, as one i1."""
        a = self.a
        if self.mask is not None and (x.lanes > 1 or self.divergent):
            x = a.and_(x, self.mask)
        return a.any_lane(x)

    # --- the entry and preheaders -----------------------------------------------------------------------------------

    def in_entry(self, make: Callable[[], V]) -> V:
        """Emit into the function's entry, where everything is dominated: allocas, pointers of the context."""
        return self._redirected(self.entry_lines, {}, make)

    def alloca(self, ty: str, count: int = 1, *, lanes: int = 1, align: int | None = None) -> V:
        """Stack memory, in the entry."""
        return self.in_entry(lambda: self.a.alloca(ty, count, lanes=lanes, align=align))

    def context_field(self, offset: int) -> V:
        """A pointer in the context."""
        found = self.entry_memo.get(offset)
        if found is None:
            a = self.a
            found = self.in_entry(lambda: a.load(a.gep(CONTEXT, offset, "i8"), "ptr", align=8))
            self.entry_memo[offset] = found
        return found

    def table_function(self, name: str) -> V:
        """The address of a C function of `abi.TABLE`."""
        found = self.entry_memo.get(name)
        if found is None:
            if name not in TABLE:
                raise InternalError(f"no C function {name!r} in the table")
            a, table = self.a, self.context_field(CONTEXT_TABLE)
            found = self.in_entry(lambda: a.load(a.gep(table, 8 * TABLE.index(name), "i8"), "ptr", align=8))
            self.entry_memo[name] = found
        return found

    def table_field(self, offset: int, ty: str) -> V:
        """What stands `offset` bytes into the table, now: threads may change it between two calls."""
        a, table = self.a, self.context_field(CONTEXT_TABLE)
        return a.load(a.gep(table, offset, "i8"), ty, align=8)

    def _redirected(self, lines: list[str], splats: dict[tuple[str, int], V], make: Callable[[], V]) -> V:
        a = self.a
        before = a.lines, a._splats
        a.lines, a._splats = lines, splats
        try:
            return make()
        finally:
            a.lines, a._splats = before

    def hoisted(self, depth: int, make: Callable[[], V]) -> V:
        """Emit straight-line code into the preheader of loop `depth + 1`."""
        level = self.levels[depth + 1]
        before = self.depth, self.chain
        self.depth, self.chain = depth, [*level.outer, level.memo]
        try:
            return self._redirected(level.lines, level.splats, make)
        finally:
            self.depth, self.chain = before

    def open_level(self, loop: object = None) -> Level:
        """Begin a loop's preheader here; the loop's body is one deeper from now on."""
        self.a.lines.append("")
        level = Level(len(self.a.lines) - 1, list(self.chain), self.swaps.get(id(loop), frozenset()))
        self.levels.append(level)
        self.depth += 1
        self.chain = level.chain
        return level

    def close_level(self) -> None:
        """End of the loop's body: its preheader is complete."""
        level = self.levels.pop()
        self.a.lines[level.place] = "\n".join(level.lines)
        self.depth -= 1
        self.chain = self.levels[-1].chain

    def remember(self, key: Any, depth: int, make: Callable[[], V]) -> V:
        """The value that `make` computes from what has `depth` at most, computed once as far out as may be."""
        if depth < self.depth:
            level = self.levels[depth + 1]
            found = level.memo.get(key)
            if found is None:
                found = self._known(level.outer, key)
                if found is None:
                    found = self.hoisted(depth, make)
                level.memo[key] = found
            return found
        return self.here(key, make)

    @staticmethod
    def _known(chain: list[dict[Any, V]], key: Any) -> V | None:
        """What is computed already under `key`."""
        for memo in reversed(chain):
            found: V | None = memo.get(key)
            if found is not None:
                return found
        return None

    def here(self, key: Any, make: Callable[[], V]) -> V:
        """The value of `key` in this stretch of code, computed once."""
        found = self._known(self.chain, key)
        if found is None:
            found = self.chain[-1][key] = make()
        return found

    # --- dims -------------------------------------------------------------------------------------------------------

    def bind(self, symbol: str, value: V) -> None:
        """From here on `symbol` stands for an int64; one that differs between lanes is varying."""
        if symbol in self.symbols:  # what was computed from its last value is stale
            for memo in self.chain:
                memo.clear()
        self.symbols[symbol] = value
        self.depths[symbol] = self.depth
        if value.lanes > 1:
            self.varying_symbols.add(symbol)
        else:
            self.varying_symbols.discard(symbol)

    def names_of(self, d: DimLike) -> tuple[str, ...]:
        """The symbols of a dim."""
        if type(d) is int:
            return ()
        assert isinstance(d, Dim)
        names = self._names.get(d)
        if names is None:
            names = self._names[d] = tuple(symbols_of(d))
        return names

    def depth_of(self, d: DimLike) -> int:
        depth = 0
        for name in self.names_of(d):
            depth = max(depth, self.depths[name])
        return depth

    def varies(self, d: DimLike) -> bool:
        """Whether a dim differs between the lanes of the vector loop around."""
        if self.lanes == 1:
            return False
        return any(name == self.index or name in self.varying_symbols for name in self.names_of(d))

    def dim(self, d: DimLike) -> V:
        """The value of a dim that no varying symbol but the vector loop's index (its first lane) is in."""
        if isinstance(d, int):
            return V(str(d), I64)
        name = as_symbol(d)
        if name is not None:
            return self.symbols[name]
        depth = self.depth_of(d)
        return self.remember(d, depth, lambda: self._sum(d, depth))

    def _sum(self, d: Dim, depth: int) -> V:
        low, high = self.split_depth(d, depth) if depth else (0, d)
        if high == 0 or isinstance(high, int):
            low, high = 0, d
        return self._add_terms(self.dim(low) if low != 0 else None, high, self.dim)

    def split_depth(self, d: DimLike, depth: int) -> tuple[DimLike, DimLike]:
        """(what is known further out, what has `depth`) of a sum."""
        if isinstance(d, int):
            return d, 0
        low = [term for term in d.terms if self._term_depth(term[0]) < depth]
        if not low:
            return 0, d
        return sum_of(low), sum_of([term for term in d.terms if self._term_depth(term[0]) >= depth])

    def _term_depth(self, mono: Monomial) -> int:
        depth = 0
        for atom in mono:
            if atom.op == "sym":
                depth = max(depth, self.depths[atom.key])
            else:
                for inner in atom.dims():
                    depth = max(depth, self.depth_of(inner))
        return depth

    def lanes_dim(self, d: DimLike) -> V:
        """The value of any dim: a vector if it varies."""
        if not self.varies(d):
            return self.dim(d)
        assert isinstance(d, Dim)
        name = as_symbol(d)
        if name is not None:
            return self._index_lanes(name)
        fixed, varying = self.split_varying(d)
        return self.here(
            ("lanes", d),
            lambda: self._add_terms(self.dim(fixed) if fixed != 0 else None, varying, self.lanes_dim),
        )

    def _term_varies(self, mono: Monomial) -> bool:
        return any(self.varies(Dim((((atom,), 1),))) for atom in mono)

    def split_varying(self, d: DimLike) -> tuple[DimLike, DimLike]:
        """(what all lanes have in common, what differs) of a sum."""
        if isinstance(d, int):
            return d, 0
        fixed = [term for term in d.terms if not self._term_varies(term[0])]
        return sum_of(fixed), sum_of([term for term in d.terms if self._term_varies(term[0])])

    def _index_lanes(self, name: str) -> V:
        value = self.symbols[name]
        if name != self.index or value.lanes > 1:
            return value
        key = ("index", name, value.text)
        return self.here(key, lambda: self.a.add(self.wide(value), self.a.iota(I64, self.lanes)))

    def _add_terms(self, total: V | None, d: DimLike, value_of: Callable[[DimLike], V]) -> V:
        """total + d, term by term."""
        a = self.a
        if isinstance(d, int):
            return V(str(d), I64) if total is None else a.add(total, V(str(d), I64))
        for mono, coefficient in d.terms:
            product: V | None = None
            for atom in mono:
                factor = value_of(Dim((((atom,), 1),))) if atom.op == "sym" else self._atom(atom, value_of)
                product = factor if product is None else a.mul(product, factor)
            if product is None:
                product = V(str(coefficient), I64)
            elif coefficient == -1 and total is not None:
                total = a.sub(total, product)
                continue
            elif coefficient != 1:
                product = self._times(product, coefficient)
            total = product if total is None else a.add(total, product)
        assert total is not None
        return total

    def _times(self, x: V, factor: int) -> V:
        a = self.a
        if factor > 0 and factor & (factor - 1) == 0:
            return a.shl(x, a.like(factor.bit_length() - 1, x))
        return a.mul(x, a.like(factor, x))

    def _atom(self, atom: Atom, value_of: Callable[[DimLike], V]) -> V:
        """floordiv, mod, min, max or ne1 of dims."""
        a = self.a
        args = [value_of(arg) for arg in atom.args if not isinstance(arg, str)]
        if atom.op in ("min", "max"):
            total = args[0]
            for arg in args[1:]:
                total = a.int_intrinsic("smin" if atom.op == "min" else "smax", total, arg)
            return total
        if atom.op == "ne1":
            return a.zext(a.icmp("ne", args[0], a.like(1, args[0])), I64)
        x, y = args
        divisor = atom.args[1]
        if isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0:
            if atom.op == "mod":
                return a.and_(x, V(str(divisor - 1), I64))
            return a.ashr(x, V(str(divisor.bit_length() - 1), I64))
        if not isinstance(divisor, int):  # hoisted code may see a zero that the program never uses
            y = a.select(a.icmp("eq", y, a.like(0, y)), a.like(1, y), y)
        remainder = a.srem(x, y)
        off = a.icmp("ne", remainder, a.like(0, remainder))
        off = a.and_(off, a.icmp("slt", a.xor(remainder, y), a.like(0, remainder)))
        if atom.op == "mod":
            return a.select(off, a.add(remainder, y), remainder)
        return a.sub(a.sdiv(x, y), a.zext(off, I64))

    # --- addresses --------------------------------------------------------------------------------------------------

    def offset(self, buffer: Buffer, index: tuple[DimLike, ...]) -> DimLike:
        """Byte offset of an element."""
        key = (index, buffer.strides)
        found = self._offsets.get(key)
        if found is None:
            found = 0
            for at, stride in zip(index, buffer.strides, strict=True):
                if at != 0:
                    found = found + at * stride
            self._offsets[key] = found
        return found

    def buffer_depth(self, name: str) -> int:
        """The deepest loop around that allocates or exchanges the buffer: its address is fixed inside loops within."""
        memory = self.buffers[name]
        if memory.variable is not None:
            for depth in range(self.depth, memory.depth, -1):
                if name in self.levels[depth].swaps:
                    return depth
        return memory.depth

    def base(self, name: str) -> V:
        """The address of a buffer's first element."""
        memory = self.buffers[name]
        if memory.variable is None:
            return memory.pointer
        variable = memory.variable
        depth = self.buffer_depth(name)
        if depth < self.depth:
            return self.remember(("base", name), depth, lambda: self.a.load(variable, "ptr", align=8))
        return self.a.load(variable, "ptr", align=8)

    def pointer(self, buffer: Buffer, offset: DimLike) -> V:
        """The address `offset` bytes into a buffer (of the first lane, if the vector loop's index is in it)."""
        if offset == 0:
            return self.base(buffer.name)
        depth = max(self.depth_of(offset), self.buffer_depth(buffer.name))
        if depth >= self.depth and self.buffers[buffer.name].variable is not None:
            return self._pointer_here(buffer, offset, depth)
        return self.remember((buffer.name, offset), depth, lambda: self._pointer_here(buffer, offset, depth))

    def _pointer_here(self, buffer: Buffer, offset: DimLike, depth: int) -> V:
        a = self.a
        if isinstance(offset, int):
            return a.gep(self.base(buffer.name), offset, "i8")
        constant = offset.constant
        if constant:  # constants are free in the machine's addresses: share the rest
            return a.gep(self.pointer(buffer, offset - constant), constant, "i8")
        low, high = self.split_depth(offset, depth) if depth else (0, offset)
        if low == 0 or high == 0:
            return self.step(self.base(buffer.name), offset, buffer.dtype, self.dim)
        return self.step(self.pointer(buffer, low), high, buffer.dtype, self.dim)

    def step(self, base: V, offset: DimLike, dtype: np.dtype, value_of: Callable[[DimLike], V]) -> V:
        """base + offset, in elements where the offset is a multiple of them: the machine scales by 2, 4, 8 for free."""
        size = dtype.itemsize
        if isinstance(offset, Dim) and all(coefficient % size == 0 for _, coefficient in offset.terms):
            elements = Dim(tuple([(mono, coefficient // size) for mono, coefficient in offset.terms]))
            return self.a.gep(base, value_of(elements), memory_type(dtype))
        return self.a.gep(base, value_of(offset), "i8")


def sum_of(terms: list[tuple[Monomial, int]]) -> DimLike:
    """The dim with these terms, which are some of a canonical dim's."""
    if not terms:
        return 0
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    return Dim(tuple(terms))
