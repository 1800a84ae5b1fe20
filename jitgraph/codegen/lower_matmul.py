"""Matrix products: the BLAS routine, flags and operands that NumPy's `matmul` would choose; integers by plain loops.

What NumPy decides at run time from sizes and strides is decided here where they are known, else in branches of the
entry. The rules are those of NumPy's `matmul` inner loop:
1. A size of zero: no BLAS; the result is zero.
2. One row times one column of several elements: dot. A single row or column: gemv if the matrix is blasable. An outer
   product: plain loops.
3. Otherwise gemm; operands that are not blasable are copied first; a matrix times its own transpose is syrk, whose
   upper triangle is then copied to the lower. A matrix is blasable if one stride is the item size and the other
   covers a whole row (or column).
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, TypeAlias, Union

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Address,
    Buffer,
    Carry,
    Const,
    DimValue,
    For,
    If,
    Library,
    Merge,
    Operand,
    Pair,
    Stmt,
)
from jitgraph.codegen.lower_nest import Axis, affine, loops_over
from jitgraph.codegen.lower_scalar import (
    KernelFrame,
    LetBuilder,
    Scalar,
    carries,
    constant,
    scalar_constant,
    store_of,
)
from jitgraph.codegen.lower_values import Evaluator, finish_kernel, origin_of
from jitgraph.codegen.lower_views import Memory, dense_strides
from jitgraph.ir.dims import Dim, DimLike, as_symbol, floordiv, mod, symbol
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.types import Shape
from jitgraph.ops.lowering import mul as low_mul
from jitgraph.ops.pairs import plain_product
from jitgraph.records import dataclass

if TYPE_CHECKING:
    from jitgraph.codegen.lower import Lowering

#: Known, or a bool computed at run time.
Truth: TypeAlias = Union[bool, Operand]

_PREFIXES = {dtypes.F32: "s", dtypes.F64: "d", dtypes.C64: "c", dtypes.C128: "z"}
_ROW_MAJOR, _COLUMN_MAJOR, _NO_TRANS, _TRANS, _UPPER = (Const(n, dtypes.I64) for n in (101, 102, 111, 112, 121))


@dataclass(slots=True)
class _Matrix:
    """A matrix in memory: element (i, j) stands `i * step0 + j * step1` bytes behind the address."""

    address: Address
    rows: DimLike
    columns: DimLike
    step0: DimLike
    step1: DimLike
    transposed: bool = False  # columns lie further apart than rows

    @property
    def t(self) -> _Matrix:
        return _Matrix(self.address, self.columns, self.rows, self.step1, self.step0)


def _matmul(low: Lowering, op: Op) -> None:
    result = op.result
    dtype = result.type.dtype
    shape = result.type.shape
    if not shape and dtype.kind == "f":
        low.places[result] = _Product(low, op).scalar()
        return
    memory = low.destination(result) if shape else Memory(low.temporary(dtype, (), ()))
    if dtype.kind not in "fc":
        _plain(low, op, memory)
    else:
        _Product(low, op).emit(memory)
    if shape:
        low.places[result] = memory
    else:
        low.places[result] = low.frame.emit_load(memory.buffer, memory.index(()))


# -------------------------------------------------------------------------------------------------------- plain loops


def _plain(low: Lowering, op: Op, memory: Memory) -> None:
    """out[..., i, j] = sum over k of a[..., i, k] * b[..., k, j], one by one; lanes along j."""
    a, b = op.operands
    dtype = op.result.type.dtype
    frame = KernelFrame()
    e = Evaluator(low, frame, {})
    shape = op.result.type.shape
    outer_rank = len(shape) - (a.type.ndim > 1) - (b.type.ndim > 1)
    axes, index = loops_over(frame.index, shape)
    along = frame.index()
    k = symbol(along)
    outer = index[:outer_rank]
    row = index[outer_rank : outer_rank + 1] if a.type.ndim > 1 else []
    column = index[-1:] if b.type.ndim > 1 else []
    body, frame.body = frame.body, []
    x = e.at(a, (*_batch(outer, a.type.shape[:-2]), *row, k))
    y = e.at(b, (*_batch(outer, b.type.shape[:-2]), k, *column))
    total = frame.var(dtype)
    builder = e.builder
    following: Operand
    if dtype == dtypes.BOOL:
        following = builder.or_(total, builder.and_(x, y))
    else:
        following = builder.add(total, builder.mul(x, y))
    inner = frame.body
    end = frame.var(dtype)
    loop = For(along, 0, a.type.shape[-1], inner, carried=[Carry(total, constant(0, dtype), following, end)])
    frame.body = [loop]
    e.store(memory, tuple(index), end)
    current, frame.body = frame.body, body
    for n in range(len(axes) - 1, -1, -1):
        role = "vector" if n == len(axes) - 1 else "serial"
        current = [For(axes[n].symbol, 0, axes[n].size, current, role=role)]  # type: ignore[arg-type]
    body.extend(current)
    finish_kernel(low, e, [], f"k{len(low.kernels)}", origin_of([op]))


def _batch(outer: list[DimLike], shape: Shape) -> list[DimLike]:
    """The leading index of an operand at `outer` of the result."""
    tail = outer[len(outer) - len(shape) :] if shape else []
    return [0 if d == 1 else i for d, i in zip(shape, tail, strict=True)]


# --------------------------------------------------------------------------------------------------------------- BLAS


class _Product:
    """One product of floats, over all of its batch."""

    def __init__(self, low: Lowering, op: Op) -> None:
        self.low, self.op = low, op
        self.dtype = op.result.type.dtype
        self.size = self.dtype.itemsize
        self.prefix = _PREFIXES[self.dtype]
        self.builder = LetBuilder(low.frame)
        self.none = scalar_constant(0, self.dtype)
        self.one, self.zero = self._factors()
        self.a, self.b = (low.memory(v) for v in op.operands)

    def _factors(self) -> tuple[Const | Address, Const | Address]:
        """What BLAS multiplies by: 1 for the product, 0 for what was there. Complex ones are read from memory."""
        if self.dtype.kind == "f":
            return Const(1.0, self.dtype), Const(0.0, self.dtype)
        buffer = self.low.temporary(self.dtype, (2,), (0,))
        for k, value in enumerate((1, 0)):
            self.low.frame.body.append(store_of(buffer, (k,), scalar_constant(value, self.dtype)))
        return Address(buffer, (0,)), Address(buffer, (1,))

    def scalar(self) -> Operand:
        """The product of two vectors of real numbers."""
        a, b = self.op.operands
        n = a.type.shape[0]
        x = self._matrix(self.a, a, [], 1, n, vector_row=True)
        y = self._matrix(self.b, b, [], n, 1, vector_row=False)
        found: list[Operand] = []

        def by_turns() -> None:
            total = self.sum_value(x, y, 0, 0)
            assert not isinstance(total, Pair)
            found.append(total)

        positive = self._vectors(x, y)
        if positive is True:
            return self.dot_value(x, y)
        if positive is False:
            by_turns()
            return found[0]
        then = self._inside(lambda: found.append(self.dot_value(x, y)))
        otherwise = self._inside(by_turns)
        result = self.low.frame.var(self.dtype)
        self.low.frame.body.append(If(positive, then, otherwise, [Merge(result, *found)]))
        return result

    def emit(self, memory: Memory) -> None:
        """Decide once, then call for each matrix of the batch. The result goes into `memory`."""
        self.memory = memory
        a, b = self.op.operands
        shape = self.op.result.type.shape
        rank = len(shape) - (a.type.ndim > 1) - (b.type.ndim > 1)
        m = a.type.shape[-2] if a.type.ndim > 1 else 1
        n = a.type.shape[-1]
        p = b.type.shape[-1] if b.type.ndim > 1 else 1
        index: list[DimLike] = []
        axes = []
        for d in shape[:rank]:
            if d == 1:
                index.append(0)
            else:
                axes.append(Axis(self.low.frame.index(), d))
                index.append(symbol(axes[-1].symbol))
        x = self._matrix(self.a, a, _batch(index, a.type.shape[:-2]), m, n, vector_row=True)
        y = self._matrix(self.b, b, _batch(index, b.type.shape[:-2]), n, p, vector_row=False)
        z = self._result(self.memory, index, m, p, a.type.ndim > 1, b.type.ndim > 1)

        def calls() -> None:
            self.product(x, y, z)

        def batch() -> None:
            current = self._inside(calls)
            for axis in reversed(axes):
                current = [For(axis.symbol, 0, axis.size, current)]
            self.low.frame.body.extend(current)

        if not axes and m == 1 and p == 1 and self._vectors(x, y) is True:
            self.dot(x, y, z)  # gives zero for no elements at all
            return
        empty = self.equal(m * n * p, 0)
        self.branch(empty, self.fill, batch)

    def _matrix(
        self, memory: Memory, value: Value, batch: list[DimLike], rows: DimLike, columns: DimLike, *, vector_row: bool
    ) -> _Matrix:
        steps = view_strides(memory, value.type.shape)
        if value.type.ndim == 1:
            at = Address(memory.buffer, memory.index((0,)))
            step = steps[0]
            return _Matrix(at, rows, columns, 0, step) if vector_row else _Matrix(at, rows, columns, step, 0)
        order = value.type.layout.order
        last = value.type.ndim - 1
        transposed = order.index(last) < order.index(last - 1)
        return _Matrix(
            Address(memory.buffer, memory.index((*batch, 0, 0))), rows, columns, steps[-2], steps[-1], transposed
        )

    def _result(
        self, memory: Memory, index: list[DimLike], m: DimLike, p: DimLike, rows: bool, columns: bool
    ) -> _Matrix:
        shape = self.op.result.type.shape
        steps = list(view_strides(memory, shape))
        at = Address(memory.buffer, memory.index((*index, *([0] * (len(shape) - len(index))))))
        step1 = steps.pop() if columns else 0
        step0 = steps.pop() if rows else 0
        return _Matrix(at, m, p, step0, step1)

    # --- NumPy's choice ---------------------------------------------------------------------------------------------

    def product(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        """One matrix product with no size zero."""
        m, n, p = x.rows, x.columns, y.columns
        one_row, one_inner, one_column = self.equal(m, 1), self.equal(n, 1), self.equal(p, 1)
        self.branch(
            self._or(self._or(one_row, one_inner), one_column),
            lambda: self.special(x, y, z, one_row, one_inner, one_column),
            lambda: self.general(x, y, z),
        )

    def special(self, x: _Matrix, y: _Matrix, z: _Matrix, one_row: Truth, one_inner: Truth, one_column: Truth) -> None:
        def vector_matrix() -> Truth:
            return self._and(self._and(one_row, self.blasable_any(y)), self._positive_step(x.step1))

        def matrix_vector() -> Truth:
            return self._and(self._and(one_column, self.blasable_any(x)), self._positive_step(y.step0))

        def wider() -> None:
            self.branch(
                vector_matrix(),
                lambda: self.gemv(y.t, x.address, x.step1, z.address, z.step1),
                lambda: self.branch(
                    matrix_vector(),
                    lambda: self.gemv(x, y.address, y.step0, z.address, z.step0),
                    lambda: self.loops(x, y, z),
                ),
            )

        def not_scalar() -> None:
            thin = self._and(one_inner, self._or(one_column, one_row))
            self.branch(thin, lambda: self.loops(x, y, z), wider)

        self.branch(self._and(one_row, one_column), lambda: self.any_dot(x, y, z), not_scalar)

    def general(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        self.with_blasable(x, lambda x2: self.with_blasable(y, lambda y2: self.into_rows(x2, y2, z)))

    def with_blasable(self, x: _Matrix, then: Callable[[_Matrix], None]) -> None:
        """Go on with `x` or, if BLAS does not take its strides, with a copy."""

        def copied() -> None:
            rows, columns = x.rows, x.columns
            order = (1, 0) if x.transposed else (0, 1)
            buffer = self.low.temporary(self.dtype, (rows, columns), order)
            step0, step1 = dense_strides((rows, columns), order, self.size)
            target = _Matrix(Address(buffer, (0, 0)), rows, columns, step0, step1)
            self.copy(x, target)
            then(target)

        self.branch(self.blasable_any(x), lambda: then(x), copied)

    def into_rows(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        """gemm or syrk into a result in C order; another order is computed aside."""
        fits = self.blasable(z)
        if fits is True:
            self.gemm(x, y, z)
            return
        buffer = self.low.temporary(self.dtype, (z.rows, z.columns), (0, 1))
        aside = _Matrix(Address(buffer, (0, 0)), z.rows, z.columns, z.columns * self.size, self.size)
        self.gemm(x, y, aside)
        self.copy(aside, z)

    # --- calls ------------------------------------------------------------------------------------------------------

    def gemm(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        x_rows, y_rows = self.blasable(x), self.blasable(y)
        same = x.address == y.address and x.rows == y.columns and x.step0 == y.step1 and x.step1 == y.step0
        if same:  # of strides known at run time both may turn out to be one way round
            self.branch(
                self.differ(x_rows, y_rows),
                lambda: self.syrk(x, x_rows, z),
                lambda: self.any_gemm(x, x_rows, y, y_rows, z),
            )
        else:
            self.any_gemm(x, x_rows, y, y_rows, z)

    def syrk(self, x: _Matrix, x_rows: Truth, z: _Matrix) -> None:
        """A matrix times its own transpose."""
        trans, leading = self.flags(x, x_rows)
        args = (_ROW_MAJOR, _UPPER, trans, x.rows, x.columns, self.one, x.address, leading, self.zero, z.address)
        self.call("syrk", *args, floordiv(z.step0, self.size))
        self.mirror(z)

    def any_gemm(self, x: _Matrix, x_rows: Truth, y: _Matrix, y_rows: Truth, z: _Matrix) -> None:
        trans_x, lead_x = self.flags(x, x_rows)
        trans_y, lead_y = self.flags(y, y_rows)
        lead_z = floordiv(z.step0, self.size)
        self.call(
            "gemm", _ROW_MAJOR, trans_x, trans_y, x.rows, y.columns, x.columns,
            self.one, x.address, lead_x, y.address, lead_y, self.zero, z.address, lead_z,
        )  # fmt: skip

    def flags(self, x: _Matrix, by_rows: Truth) -> tuple[Operand, DimLike | Operand]:
        """Whether BLAS sees the matrix transposed, and its leading dimension."""
        rows, columns = floordiv(x.step0, self.size), floordiv(x.step1, self.size)
        if isinstance(by_rows, bool):
            return (_NO_TRANS, rows) if by_rows else (_TRANS, columns)
        b = self.builder
        return b.select(by_rows, _NO_TRANS, _TRANS), b.select(by_rows, self.value(rows), self.value(columns))

    def gemv(self, x: _Matrix, vector: Address, step: DimLike, out: Address, out_step: DimLike) -> None:
        """out = x @ vector."""
        by_rows = self.blasable(x)
        rows, columns = floordiv(x.step0, self.size), floordiv(x.step1, self.size)
        order: Operand
        leading: DimLike | Operand
        if isinstance(by_rows, bool):
            order, leading = (_COLUMN_MAJOR, rows) if by_rows else (_ROW_MAJOR, columns)
        else:
            order = self.builder.select(by_rows, _COLUMN_MAJOR, _ROW_MAJOR)
            leading = self.builder.select(by_rows, self.value(rows), self.value(columns))
        self.call(
            "gemv", order, _TRANS, x.columns, x.rows, self.one, x.address, leading,
            vector, floordiv(step, self.size), self.zero, out, floordiv(out_step, self.size),
        )  # fmt: skip

    def any_dot(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        self.branch(self._vectors(x, y), lambda: self.dot(x, y, z), lambda: self.loops(x, y, z))

    def _vectors(self, x: _Matrix, y: _Matrix) -> Truth:
        """Whether NumPy has BLAS multiply a row and a column: not of one element, whose complex product differs."""
        steps = self._and(self._positive_step(x.step1), self._positive_step(y.step0))
        return self._and(self.at_least(x.columns, 2), steps) if self.dtype.kind == "c" else steps

    def dot(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        total: Scalar
        if self.dtype.kind == "c":
            args = (*self._dot_arguments(x, y), z.address)
            self.low.frame.body.append(Library(f"cblas_{self.prefix}dotu_sub", args))
            found = self.low.frame.emit_load(z.address.buffer, z.address.index)
            total = self.builder.add(self.none, found)
        else:
            total = self.dot_value(x, y)
        self.low.frame.body.append(store_of(z.address.buffer, z.address.index, total))

    def dot_value(self, x: _Matrix, y: _Matrix) -> Operand:
        """A product of real vectors by BLAS; zero for no elements at all."""
        result = self.low.frame.var(self.dtype)
        self.low.frame.body.append(Library(f"cblas_{self.prefix}dot", self._dot_arguments(x, y), result))
        total: Operand = self.builder.add(self.none, result)
        return total

    def _dot_arguments(self, x: _Matrix, y: _Matrix) -> tuple[Address | DimLike, ...]:
        return x.columns, x.address, floordiv(x.step1, self.size), y.address, floordiv(y.step0, self.size)

    def call(self, name: str, *args: Operand | Address | DimLike) -> None:
        self.low.frame.body.append(Library(f"cblas_{self.prefix}{name}", args))

    # --- loops of the entry -----------------------------------------------------------------------------------------

    def fill(self) -> None:
        """The result is zero throughout."""
        shape = self.op.result.type.shape

        def turn(index: list[DimLike]) -> None:
            self.low.frame.body.append(store_of(self.memory.buffer, self.memory.index(tuple(index)), self.none))

        self.nest(list(shape), turn)

    def copy(self, x: _Matrix, to: _Matrix) -> None:
        self.nest([x.rows, x.columns], lambda at: self.move(x, to, at[0], at[1]))

    def mirror(self, z: _Matrix) -> None:
        """The lower triangle from the upper one."""
        frame = self.low.frame
        i, j = frame.index(), frame.index()
        at, other = symbol(i), symbol(j)
        inner = self._inside(lambda: self.move(z, z.t, at, other))
        frame.body.append(For(i, 0, z.rows, [For(j, at + 1, z.rows, inner, role="vector")]))

    def move(self, x: _Matrix, to: _Matrix, i: DimLike, j: DimLike) -> None:
        value = self.low.frame.emit_load(*self.element(x, i, j))
        buffer, index = self.element(to, i, j)
        self.low.frame.body.append(store_of(buffer, index, value))

    def element(self, x: _Matrix, i: DimLike, j: DimLike) -> tuple[Buffer, tuple[DimLike, ...]]:
        """An element as a buffer and an index: the matrix has axes of its own behind those of the address."""
        buffer, index = x.address.buffer, x.address.index
        shape = (*buffer.shape, x.rows, x.columns)
        return Buffer(buffer.name, buffer.dtype, shape, (*buffer.strides, x.step0, x.step1)), (*index, i, j)

    def loops(self, x: _Matrix, y: _Matrix, z: _Matrix) -> None:
        """NumPy's own loop: the products added one by one."""

        def turn(at: list[DimLike]) -> None:
            total = self.sum_value(x, y, at[0], at[1])
            buffer, index = self.element(z, at[0], at[1])
            self.low.frame.body.append(store_of(buffer, index, total))

        self.nest([x.rows, y.columns], turn)

    def sum_value(self, x: _Matrix, y: _Matrix, i: DimLike, j: DimLike) -> Scalar:
        """One element of a product, its terms added one by one."""
        frame = self.low.frame
        along = frame.index()
        total, end = frame.scalar_var(self.dtype), frame.scalar_var(self.dtype)
        following: list[Scalar] = []

        def inner() -> None:
            u = frame.emit_load(*self.element(x, i, symbol(along)))
            v = frame.emit_load(*self.element(y, symbol(along), j))
            product = plain_product if self.dtype.kind == "c" else low_mul
            following.append(self.builder.add(total, product(self.builder, u, v)))

        body = self._inside(inner)
        frame.body.append(For(along, 0, x.columns, body, carried=carries(total, self.none, following[0], end)))
        return end

    def nest(self, sizes: list[DimLike], turn: Callable[[list[DimLike]], None]) -> None:
        axes = []
        index: list[DimLike] = []
        for d in sizes:
            if d == 1:
                index.append(0)
            else:
                axes.append(Axis(self.low.frame.index(), d))
                index.append(symbol(axes[-1].symbol))
        current = self._inside(lambda: turn(index))
        for k in range(len(axes) - 1, -1, -1):
            role = "vector" if k == len(axes) - 1 else "serial"
            current = [For(axes[k].symbol, 0, axes[k].size, current, role=role)]  # type: ignore[arg-type]
        self.low.frame.body.extend(current)

    # --- conditions -------------------------------------------------------------------------------------------------

    def _inside(self, emit: Callable[[], None]) -> list[Stmt]:
        frame = self.low.frame
        outer, frame.body = frame.body, []
        emit()
        inner, frame.body = frame.body, outer
        return inner

    def differ(self, x: Truth, y: Truth) -> Truth:
        """Whether just one of two conditions holds."""
        if isinstance(x, bool) and isinstance(y, bool):
            return x is not y
        one, other = (Const(t, dtypes.BOOL) if isinstance(t, bool) else t for t in (x, y))
        found: Operand = self.builder.xor(one, other)
        return found

    def branch(self, condition: Truth, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            (then if condition else otherwise)()
            return
        self.low.frame.body.append(If(condition, self._inside(then), self._inside(otherwise)))

    def value(self, d: DimLike) -> Operand:
        if isinstance(d, int):
            return Const(d, dtypes.I64)
        var = self.low.frame.var(dtypes.I64)
        self.low.frame.body.append(DimValue(var, d))
        return var

    def _and(self, a: Truth, b: Truth) -> Truth:
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return self.builder.and_(a, b)

    def _or(self, a: Truth, b: Truth) -> Truth:
        if isinstance(a, bool):
            return True if a else b
        if isinstance(b, bool):
            return True if b else a
        return self.builder.or_(a, b)

    def equal(self, a: DimLike, b: DimLike) -> Truth:
        difference = a - b
        if isinstance(difference, int):
            return difference == 0
        factor = gcd(*(c for _, c in difference.terms))
        reduced = Dim(tuple((mono, c // factor) for mono, c in difference.terms))
        if reduced.constant == -1 and self._not_one(reduced + 1):
            return False
        facts = self.low.graph.facts
        if facts.is_lt(0, reduced) or facts.is_lt(reduced, 0):
            return False
        return self.builder.cmp("eq", self.value(a), self.value(b))

    def _not_one(self, d: DimLike) -> bool:
        name = as_symbol(d)
        known = self.low.graph.symbols.get(name) if name is not None else None
        return known is not None and known.not_one

    def at_least(self, a: DimLike, b: DimLike) -> Truth:
        facts = self.low.graph.facts
        if facts.is_le(b, a):
            return True
        if facts.is_lt(a, b):
            return False
        return self.builder.cmp("ge", self.value(a), self.value(b))

    def blasable(self, x: _Matrix) -> Truth:
        """Rows of adjacent elements, whole items apart and not overlapping."""
        adjacent = self.equal(x.step1, self.size)
        if adjacent is False:
            return False
        whole = self.equal(mod(x.step0, self.size), 0)
        return self._and(adjacent, self._and(whole, self.at_least(floordiv(x.step0, self.size), x.columns)))

    def blasable_any(self, x: _Matrix) -> Truth:
        by_rows = self.blasable(x)
        return True if by_rows is True else self._or(by_rows, self.blasable(x.t))

    def _positive_step(self, step: DimLike) -> Truth:
        """A vector that BLAS takes: a positive stride of whole items."""
        return self._and(self.equal(mod(step, self.size), 0), self.at_least(floordiv(step, self.size), 1))


def view_strides(memory: Memory, shape: Shape) -> tuple[DimLike, ...]:
    """Byte strides of a value of `shape` that lies in `memory`."""
    if memory.map is None:
        return memory.buffer.strides
    names = {f"_axis{k}": None for k in range(len(shape))}
    index = memory.map.index(tuple(symbol(s) for s in names))
    strides: list[DimLike] = [0] * len(shape)
    for d, stride in zip(index, memory.buffer.strides, strict=True):
        split = affine(d, names)
        assert split is not None
        for name, factor in split[0].items():
            k = int(name[5:])
            strides[k] = strides[k] + factor * stride
    return tuple(strides)


HANDLERS: dict[str, Callable[[Lowering, Op], None]] = {"matmul": _matmul}
