"""Checks the invariants of loop programs; the first one broken is reported with its statement.

1. A `Var` is assigned once in its function, before its uses; one assigned in a body is not used outside it.
2. Operands of a `Let` have the dtypes that its primitive asks for.
3. Each symbol of a `Dim` is a parameter, the index of an enclosing loop, or bound earlier.
4. A `vector` loop or `Reduce` holds no `Alloc`, `Library`, `Host`, `CallKernel`, `Swap`, and no other of its own kind.
   A vector loop may hold a `Reduce` of dot products in an order of one sum or two, as long for each lane.
5. A `vector` or `parallel` loop carries nothing.
6. Buffers have memory before they are used, and kernels, sites, C functions and result slots exist; arguments match.
7. Pairwise parts of a `Reduce` are sums of floats; argmax and argmin give int64, the others the value's dtype. Parts
   of the order "dot" multiply doubles; the body of their `Reduce` stores nothing.
8. Each pass over the elements of a `Reduce` (`reduce_passes`) keeps the invariants by itself; one of them has all
   stores.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jitgraph import dtypes
from jitgraph.abi import TABLE
from jitgraph.codegen.dots import ORDERS
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
from jitgraph.codegen.loops_printer import print_body
from jitgraph.codegen.loops_walk import walk
from jitgraph.codegen.reduce_passes import Pass, passes_of
from jitgraph.errors import VerifyError
from jitgraph.ir.dims import DimLike, symbols

#: op: (number of operands, their dtype kinds, result: "same" or "bool"); `select`, casts and calls stand in `let`.
_SIGNATURES: dict[str, tuple[int, str, str]] = {
    "fma": (3, "f", "same"),
    "muladd": (3, "f", "same"),
    "neg": (1, "fiu", "same"),
    "not_": (1, "biu", "same"),
    "cmp": (2, "bfiu", "bool"),
}
for _names, _signature in (
    ("add sub mul", (2, "fiu", "same")),
    ("fdiv frem copysign", (2, "f", "same")),
    ("idiv irem shl shr", (2, "iu", "same")),
    ("fabs sqrt floor ceil trunc rint", (1, "f", "same")),
    ("and_ or_ xor", (2, "biu", "same")),
    ("add_overflows sub_overflows mul_overflows", (2, "iu", "bool")),
):
    _SIGNATURES.update(dict.fromkeys(_names.split(), _signature))
_PREDICATES = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "uno"))


def verify(p: Program) -> None:
    """Check a program.

    Raises:
        VerifyError: an invariant is broken; the message names it and shows the statement.
    """
    kernels = {k.name: k for k in p.kernels}
    if len(kernels) != len(p.kernels):
        raise VerifyError("two kernels have one name (invariant 6)")
    for k in p.kernels:
        _Verifier(p, kernels, k.name).function(k)
    _Verifier(p, kernels, "entry").entry(p)


def _parts(x: Operand | Pair) -> tuple[Operand, ...]:
    return (x.real, x.imag) if isinstance(x, Pair) else (x,)


class _Verifier:
    """Walks one function; `scope` holds what is known at the statement, by kind."""

    def __init__(self, p: Program, kernels: dict[str, Function], where: str) -> None:
        self.p, self.kernels, self.where = p, kernels, where
        self.assigned: set[str] = set()
        self.vars: dict[str, np.dtype] = {}
        self.symbols: set[str] = set()
        self.buffers: dict[str, np.dtype] = {}
        self.vector = False
        self.lane_symbol = ""
        self.stmt: Stmt | None = None

    def fail(self, invariant: int, message: str) -> None:
        shown = f"\n{print_body([self.stmt])}" if self.stmt is not None else ""
        raise VerifyError(f"{self.where}: {message} (invariant {invariant}){shown}")

    def function(self, k: Function) -> None:
        self.symbols.update(k.symbols)
        for b in k.buffers:
            self.buffers[b.name] = b.dtype
        for v in k.scalars:
            self.assign(v)
        self.body(k.body)
        self.stmt = None
        for x in k.results:
            self.use(x)

    def entry(self, p: Program) -> None:
        known = {symbol for symbol, _, _ in p.dims}
        self.symbols |= known
        for name, value in p.sizes:
            self.dims(value)
            self.symbols.add(name)
        for _, left, right in p.guards:
            self.dims(left, right)
        self.dims(p.scratch_bytes, *(d for shape in p.result_dims for d in shape or ()))
        for e in p.entry_buffers:
            if e.source == "result" and not (0 <= e.slot < len(p.result_dims) and p.result_dims[e.slot] is not None):
                self.fail(6, f"result {e.slot} of {e.buffer.name} has no size before the run")
            self.symbols.update(s for s in e.stride_symbols if s)
            self.buffers[e.buffer.name] = e.buffer.dtype
        for b, array in p.tables:
            if array.dtype != b.dtype:
                self.fail(6, f"table {b.name} holds {array.dtype}")
            self.buffers[b.name] = b.dtype
        for scalar, _ in p.entry_scalars:
            for part in _parts(scalar):
                assert isinstance(part, Var)
                self.assign(part)
        self.body(p.entry)

    # --- pieces -----------------------------------------------------------------------------------------------------

    def assign(self, v: Var) -> None:
        if v.name in self.assigned:
            self.fail(1, f"{v.name} is assigned twice")
        self.assigned.add(v.name)
        self.vars[v.name] = v.dtype

    def use(self, x: Operand, kinds: str = "", what: str = "operand") -> None:
        if isinstance(x, Var):
            known = self.vars.get(x.name)
            if known is None:
                self.fail(1, f"{x.name} is not assigned here")
            if known != x.dtype:
                self.fail(2, f"{x.name} is {known}, used as {x.dtype}")
        elif not isinstance(x, Const):
            self.fail(2, f"{x!r} is no operand")
        if kinds and x.dtype.kind not in kinds:
            self.fail(2, f"{what} {getattr(x, 'name', '')} is {x.dtype}")

    def dims(self, *ds: DimLike) -> None:
        for d in ds:
            for name in symbols(d):
                if name not in self.symbols:
                    self.fail(3, f"symbol {name} of {d} is not bound here")

    def element(self, b: Buffer, index: tuple[DimLike, ...]) -> None:
        self.buffer(b)
        if len(index) != len(b.shape) or len(b.strides) != len(b.shape):
            self.fail(6, f"{b.name} has {len(b.shape)} axes and {len(b.strides)} strides, the index {len(index)}")
        self.dims(*index, *b.strides)

    def parts_of(self, b: Buffer, real: Operand, imag: Operand | None) -> None:
        """A complex element has two parts of one dtype, any other one."""
        if (imag is not None) != dtypes.is_complex(b.dtype) or (imag is not None and imag.dtype != real.dtype):
            self.fail(2, f"the parts of an element of {b.name}, which holds {b.dtype}")

    def buffer(self, b: Buffer) -> None:
        known = self.buffers.get(b.name)
        if known is None:
            self.fail(6, f"buffer {b.name} has no memory here")
        if known != b.dtype:
            self.fail(6, f"buffer {b.name} holds {known}, used as {b.dtype}")

    def inside(self, body: Iterable[Stmt], *, new_symbols: Iterable[str] = (), new_vars: Iterable[Var] = ()) -> None:
        """A body whose assignments end with it. What follows in the same body (`next`) is checked by the caller."""
        for v in new_vars:
            self.assign(v)
        self.symbols.update(new_symbols)
        self.body(body)

    def body(self, body: Iterable[Stmt]) -> None:
        for s in body:
            self.stmt = s
            self.statement(s)

    def carried(self, carried: list[Carry]) -> None:
        for c in carried:
            self.use(c.init)
            if not c.inner.dtype == c.init.dtype == c.next.dtype == c.result.dtype:
                self.fail(2, f"carried {c.inner.name} changes its dtype")

    # --- statements -------------------------------------------------------------------------------------------------

    def statement(self, s: Stmt) -> None:
        if isinstance(s, Let):
            for x in s.args:
                self.use(x)
            self.let(s)
            self.assign(s.var)
        elif isinstance(s, DimValue):
            self.dims(s.dim)
            if s.var.dtype != dtypes.I64:
                self.fail(2, "a dim is int64")
            self.assign(s.var)
        elif isinstance(s, Bind):
            self.use(s.value, "iu", "a symbol's value")
            self.symbols.add(s.symbol)
        elif isinstance(s, Load):
            self.element(s.buffer, s.index)
            if s.var.dtype != dtypes.part_of(s.buffer.dtype):
                self.fail(2, f"{s.var.name} is {s.var.dtype}, {s.buffer.name} holds {s.buffer.dtype}")
            self.assign(s.var)
            self.parts_of(s.buffer, s.var, s.imag)
            if s.imag is not None:
                self.assign(s.imag)
        elif isinstance(s, Store):
            self.element(s.buffer, s.index)
            self.use(s.value)
            if s.value.dtype != dtypes.part_of(s.buffer.dtype):
                self.fail(2, f"{s.value.dtype} stored into {s.buffer.name} of {s.buffer.dtype}")
            self.parts_of(s.buffer, s.value, s.imag)
            if s.imag is not None:
                self.use(s.imag)
        elif isinstance(s, (For, While, If, Reduce)):
            self.nest(s)
        elif isinstance(s, Check):
            self.use(s.condition, "b", "condition")
            for x in s.values:
                self.use(x)
            self.site(s.site)
        elif isinstance(s, SetResult):
            for part in _parts(s.value):
                self.use(part)
            if s.is_numpy is not None:
                self.use(s.is_numpy, "b")
            self.slot(s.slot)
        else:
            if self.vector:
                self.fail(4, f"{type(s).__name__} in a vector loop")
            self.outside(s)

    def let(self, s: Let) -> None:
        first = s.args[0].dtype if s.args else None
        if first is None:
            self.fail(2, f"{s.op} without operands")
        if s.op == "select":
            condition, yes, no = (*s.args, *[None] * 3)[:3]
            if condition is None or yes is None or no is None or condition.dtype.kind != "b":
                self.fail(2, "select takes a bool and two values")
            elif not yes.dtype == no.dtype == s.var.dtype:
                self.fail(2, "select of different dtypes")
        elif s.op == "call":
            if not all(x.dtype == s.var.dtype and x.dtype.kind == "f" for x in s.args):
                self.fail(2, f"{s.attr} of other than one float dtype")
        elif s.op == "bitcast":
            if first is not None and first.itemsize != s.var.dtype.itemsize:
                self.fail(2, "bitcast between sizes")
        elif s.op == "cast":
            pass
        elif s.op not in _SIGNATURES:
            self.fail(2, f"no primitive {s.op}")
        else:
            count, kinds, result = _SIGNATURES[s.op]
            if len(s.args) != count or any(x.dtype != first for x in s.args):
                self.fail(2, f"{s.op} takes {count} operands of one dtype")
            self.use(s.args[0], kinds)
            if s.op == "cmp" and s.attr not in _PREDICATES:
                self.fail(2, f"no predicate {s.attr}")
            if s.var.dtype != (dtypes.BOOL if result == "bool" else first):
                self.fail(2, f"{s.op} of {first} is not {s.var.dtype}")

    def nest(self, s: For | While | If | Reduce) -> None:
        saved = dict(self.vars), set(self.symbols), dict(self.buffers), self.vector
        if isinstance(s, (For, While)):
            self.carried(s.carried)
        if isinstance(s, For):
            self.dims(s.lower, s.upper, s.step, s.streams)
            if s.streams != 0 and s.role != "vector":
                self.fail(5, f"a {s.role} loop that streams")
            if s.step == 0:
                self.fail(5, "a loop with step 0")
            if s.role in ("vector", "parallel") and s.carried:
                self.fail(5, f"a {s.role} loop carries {s.carried[0].inner.name}")
            if s.role == "vector":
                if self.vector:
                    self.fail(4, "a vector loop in a vector loop")
                self.vector, self.lane_symbol = True, s.symbol
            self.inside(s.body, new_symbols=(s.symbol,), new_vars=[c.inner for c in s.carried])
        elif isinstance(s, While):
            self.inside(s.test, new_vars=[c.inner for c in s.carried])
            self.use(s.condition, "b", "condition")
            self.body(s.body)
        elif isinstance(s, If):
            self.use(s.condition, "b", "condition")
            for body, side in ((s.then, "then"), (s.otherwise, "otherwise")):
                self.body(body)
                self.stmt = s
                for m in s.merges:
                    x = getattr(m, side)
                    self.use(x)
                    if x.dtype != m.result.dtype:
                        self.fail(2, f"{m.result.name} merges {x.dtype}")
                self.vars, self.symbols, self.buffers = dict(saved[0]), set(saved[1]), dict(saved[2])
        else:
            if self.vector and not self.fits_lanes(s):
                self.fail(4, "a Reduce in a vector loop")
            self.dims(s.extent, *(d for p in s.parts for d in (p.chunk, p.period) if d is not None))
            self.vector = True
            self.passes(s)
        self.stmt = s
        if isinstance(s, For) and s.going is not None:
            if s.role != "serial":
                self.fail(5, f"a {s.role} loop with an end of its own")
            self.use(s.going, "b", "condition")
        for c in s.carried if isinstance(s, (For, While)) else ():
            self.use(c.next)
        self.vars, self.symbols, self.buffers, self.vector = saved
        results = [c.result for c in s.carried] if isinstance(s, (For, While)) else []
        results += [m.result for m in s.merges] if isinstance(s, If) else []
        results += [p.result for p in s.parts] if isinstance(s, Reduce) else []
        for v in results:
            self.assign(v)

    def fits_lanes(self, s: Reduce) -> bool:
        """Whether each lane of the vector loop around can run a `Reduce` of its own."""
        same_length = bool(s.parts) and self.lane_symbol not in symbols(s.extent)
        return same_length and all(p.order == "dot" and p.model in ORDERS and ORDERS[p.model].by_lane for p in s.parts)

    def passes(self, s: Reduce) -> None:
        """The body as it is written, and as each pass over the elements runs it."""
        assigned, known, symbols_ = set(self.assigned), self.vars, self.symbols
        stores = [x for x in s.body if isinstance(x, Store)]
        passes = passes_of(s)
        if stores and not any([x for x in one.body if isinstance(x, Store)] == stores for one in passes):
            self.fail(8, "no pass has all stores")
        for one in (*(x for x in passes if x.body is not s.body), Pass(s.parts, [], s.body)):
            self.assigned, self.vars, self.symbols = set(assigned), dict(known), set(symbols_)
            self.inside(one.body, new_symbols=(s.symbol,))
            self.stmt = s
            self.parts([*one.parts, *one.along], s.body)

    def parts(self, parts: list[Part], body: list[Stmt]) -> None:
        for p in parts:
            self.use(p.value)
            if (p.factor is not None) != (p.order == "dot"):
                self.fail(7, f"a factor in the order {p.order}")
            if p.factor is not None:
                self.use(p.factor)
                if p.kind != "sum" or p.model not in ORDERS or not p.value.dtype == p.factor.dtype == dtypes.F64:
                    self.fail(7, f"a dot product {p.model} of {p.value.dtype}")
                if ORDERS[p.model].rest != (p.init is not None):
                    self.fail(7, f"the start of a dot product {p.model}")
                if any(isinstance(x, Store) for x in walk(body)):
                    self.fail(7, "a dot product with stores")
            if p.init is not None:
                self.use(p.init)
            if p.order == "pairwise" and (p.kind != "sum" or p.value.dtype.kind != "f"):
                self.fail(7, f"a pairwise {p.kind} of {p.value.dtype}")
            if p.result.dtype != (dtypes.I64 if p.kind in ("argmax", "argmin") else p.value.dtype):
                self.fail(7, f"{p.kind} of {p.value.dtype} gives {p.result.dtype}")

    def outside(self, s: Stmt) -> None:
        """Statements that vector loops may not hold."""
        if isinstance(s, Alloc):
            self.dims(*s.buffer.shape, *s.buffer.strides, s.offset, s.fits, s.inside)
            if s.host and s.host not in self.buffers:
                self.fail(6, f"{s.buffer.name} lies in {s.host}, which has no memory")
            if s.scope == "result":
                self.slot(s.slot)
            self.buffers[s.buffer.name] = s.buffer.dtype
        elif isinstance(s, Free):
            self.buffer(s.buffer)
        elif isinstance(s, Swap):
            self.buffer(s.a)
            self.buffer(s.b)
        elif isinstance(s, CallKernel):
            self.call(s)
        elif isinstance(s, Library):
            if s.name not in TABLE:
                self.fail(6, f"no C function {s.name}")
            for x in s.args:
                if isinstance(x, Address):
                    self.element(x.buffer, x.index)
                elif isinstance(x, (Var, Const)):
                    self.use(x)
                else:
                    self.dims(x)
            if s.result is not None:
                self.assign(s.result)
        elif isinstance(s, Host):
            self.site(s.site)
            self.dims(*s.offsets)
            for y in (*s.inputs, *s.outputs):
                if isinstance(y, Buffer):
                    self.buffer(y)
                    self.dims(*y.shape, *y.strides)
            for y in s.inputs:
                if not isinstance(y, Buffer):
                    for part in _parts(y):
                        self.use(part)
            for z in s.outputs:
                if not isinstance(z, Buffer):
                    for part in _parts(z):
                        assert isinstance(part, Var)
                        self.assign(part)
        else:
            self.fail(6, f"{type(s).__name__} is no statement")

    def call(self, s: CallKernel) -> None:
        k = self.kernels.get(s.name)
        if k is None:
            self.fail(6, f"no kernel {s.name}")
            return
        for b in s.buffers:
            self.buffer(b)
        self.dims(*s.symbols)
        for x in s.scalars:
            self.use(x)
        given = [b.dtype for b in s.buffers], len(s.symbols), [x.dtype for x in s.scalars], [v.dtype for v in s.results]
        wanted = (
            [b.dtype for b in k.buffers],
            len(k.symbols),
            [v.dtype for v in k.scalars],
            [x.dtype for x in k.results],
        )
        if given != wanted:
            self.fail(6, f"arguments do not match the parameters of {s.name}")
        if s.split is not None:
            self.dims(s.split.cost)
            if s.split.unit < 1 or len(s.symbols) < 2 or s.results:
                self.fail(6, f"{s.name} cannot be called in pieces")
            if s.split.alone is not None:
                self.nest(s.split.alone)
        for v in s.results:
            self.assign(v)

    def site(self, number: int) -> None:
        if not 0 <= number < len(self.p.sites):
            self.fail(6, f"no site {number}")

    def slot(self, number: int) -> None:
        if not 0 <= number < len(self.p.result_dims):
            self.fail(6, f"no result slot {number}")
