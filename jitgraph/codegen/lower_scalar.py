"""Scalar code at the loop level: the `Scalar` protocol of operator records as `Let` statements, and where code goes.

A `Frame` is a function under construction: it names variables, and maps memory and scalars from outside to
parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Union

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import Buffer, Carry, Const, Let, Load, Operand, Pair, Stmt, Store, Var
from jitgraph.ir.dims import DimLike

#: A scalar of any dtype: complex ones are pairs.
Scalar: TypeAlias = Union[Operand, Pair]


def parts(x: Scalar) -> tuple[Operand, ...]:
    """The real scalars that a scalar consists of."""
    return (x.real, x.imag) if isinstance(x, Pair) else (x,)


def carries(inner: Scalar, init: Scalar, end: Scalar, result: Scalar) -> list[Carry]:
    """What a loop carries of one scalar: of a complex one both parts."""
    found: list[Carry] = []
    for group in zip(*map(parts, (inner, init, end, result)), strict=True):
        a, b, c, d = group
        assert isinstance(a, Var)
        assert isinstance(d, Var)
        found.append(Carry(a, b, c, d))
    return found


def load_of(value: Operand | Pair, buffer: Buffer, index: tuple[DimLike, ...]) -> Load:
    """The load of an element into fresh names."""
    real, imag = (value.real, value.imag) if isinstance(value, Pair) else (value, None)
    assert isinstance(real, Var)
    assert imag is None or isinstance(imag, Var)
    return Load(real, buffer, index, imag)


def store_of(buffer: Buffer, index: tuple[DimLike, ...], value: Scalar) -> Store:
    """The store of an element."""
    if isinstance(value, Pair):
        return Store(buffer, index, value.real, value.imag)
    return Store(buffer, index, value)


class Frame:
    """The entry: buffers and scalars are used as they are.

    Attributes:
        body: the list that receives statements now.
    """

    def __init__(self, body: list[Stmt]) -> None:
        self.body = body
        self.count = 0

    def var(self, dtype: np.dtype) -> Var:
        self.count += 1
        return Var(f"v{self.count}", dtype)

    def scalar_var(self, dtype: np.dtype) -> Var | Pair:
        """Names for a scalar, which is native: of a complex one for both parts."""
        dtype = dtypes.native(dtype)
        part = dtypes.part_of(dtype)
        return Pair(self.var(part), self.var(part)) if part != dtype else self.var(dtype)

    def emit_load(self, buffer: Buffer, index: tuple[DimLike, ...]) -> Var | Pair:
        """Load an element of a buffer of this function."""
        value = self.scalar_var(dtypes.native(buffer.dtype))
        self.body.append(load_of(value, buffer, index))
        return value

    def index(self) -> str:
        """A fresh loop index. Symbols of graphs do not start with an underscore."""
        self.count += 1
        return f"_i{self.count}"

    def buffer(self, buffer: Buffer) -> Buffer:
        """`buffer` of the entry as this function names it."""
        return buffer

    def scalar(self, operand: Scalar) -> Scalar:
        """A scalar of the entry as this function names it."""
        return operand


class KernelFrame(Frame):
    """A kernel function: what it takes from the entry becomes a parameter at first use."""

    def __init__(self) -> None:
        super().__init__([])
        self.buffers: dict[str, tuple[Buffer, Buffer]] = {}
        self.scalars: dict[Var, Var] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        known = self.buffers.get(buffer.name)
        if known is None:
            known = (buffer, Buffer(f"b{len(self.buffers)}", buffer.dtype, buffer.shape, buffer.strides))
            self.buffers[buffer.name] = known
        if known[0] is buffer:
            return known[1]
        return Buffer(known[1].name, buffer.dtype, buffer.shape, buffer.strides)

    def scalar(self, operand: Scalar) -> Scalar:
        if isinstance(operand, Pair):
            return Pair(self._real_scalar(operand.real), self._real_scalar(operand.imag))
        return self._real_scalar(operand)

    def _real_scalar(self, operand: Operand) -> Operand:
        if isinstance(operand, Const):
            return operand
        known = self.scalars.get(operand)
        if known is None:
            known = self.scalars[operand] = Var(f"s{len(self.scalars)}", operand.dtype)
        return known


class LetBuilder:
    """The `Scalar` protocol: each primitive appends a `Let` to the frame's body."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def _let(self, op: str, dtype: np.dtype, args: tuple[Operand, ...], attr: str = "") -> Var:
        frame = self.frame
        frame.count += 1
        var = Var(f"v{frame.count}", dtype)
        frame.body.append(Let(var, op, args, attr))
        return var

    def dtype(self, x: Operand) -> np.dtype:
        return x.dtype

    def const(self, value: Any, dtype: np.dtype) -> Const:
        return constant(value, dtype)

    def pair(self, real: Operand, imag: Operand) -> Pair:
        return Pair(real, imag)

    def like(self, value: Any, x: Operand) -> Const:
        return constant(value, x.dtype)

    def map_parts(self, function: Callable[..., Operand], *args: Any) -> Pair:
        """`function` of the real parts, and of the imaginary parts."""
        return Pair(function(*(x.real for x in args)), function(*(x.imag for x in args)))

    def cast(self, x: Any, dtype: np.dtype) -> Operand:
        """`x` in another dtype; a complex number loses its imaginary part if that is real. Byte order is memory's."""
        dtype = dtypes.native(dtype)
        if x.dtype == dtype:
            return x  # type: ignore[no-any-return]
        part = dtypes.part_of(dtype)
        if part != dtype:
            made: Any = None
            if isinstance(x, Pair):
                made = self.map_parts(lambda p: self.cast(p, part), x)
            else:
                made = Pair(self.cast(x, part), constant(0.0, part))
            return made  # type: ignore[no-any-return]
        if isinstance(x, Pair):
            return self.cast(x.real, dtype)
        if isinstance(x, Const):
            return constant(x.value, dtype, x.dtype)
        return self._let("cast", dtype, (x,), dtypes.short_name(dtype))

    def bitcast(self, x: Operand, dtype: np.dtype) -> Operand:
        if x.dtype == dtype:
            return x
        return self._let("bitcast", dtype, (x,), dtypes.short_name(dtype))

    def add(self, a: Any, b: Any) -> Var:
        if isinstance(a, Pair):
            pair: Any = self.map_parts(self.add, a, b)
            return pair  # type: ignore[no-any-return]
        return self._let("add", a.dtype, (a, b))

    def sub(self, a: Operand, b: Operand) -> Var:
        return self._let("sub", a.dtype, (a, b))

    def mul(self, a: Operand, b: Operand) -> Var:
        return self._let("mul", a.dtype, (a, b))

    def fdiv(self, a: Operand, b: Operand) -> Var:
        return self._let("fdiv", a.dtype, (a, b))

    def frem(self, a: Operand, b: Operand) -> Var:
        return self._let("frem", a.dtype, (a, b))

    def idiv(self, a: Operand, b: Operand) -> Var:
        return self._let("idiv", a.dtype, (a, b))

    def irem(self, a: Operand, b: Operand) -> Var:
        return self._let("irem", a.dtype, (a, b))

    def overflows(self, operation: str, a: Operand, b: Operand) -> Var:
        return self._let(f"{operation}_overflows", dtypes.BOOL, (a, b))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Var:
        return self._let("fma", a.dtype, (a, b, c))

    def muladd(self, a: Operand, b: Operand, c: Operand) -> Var:
        return self._let("muladd", a.dtype, (a, b, c))

    def neg(self, a: Operand) -> Var:
        return self._let("neg", a.dtype, (a,))

    def fabs(self, a: Operand) -> Var:
        return self._let("fabs", a.dtype, (a,))

    def copysign(self, a: Operand, b: Operand) -> Var:
        return self._let("copysign", a.dtype, (a, b))

    def sqrt(self, a: Operand) -> Var:
        return self._let("sqrt", a.dtype, (a,))

    def floor(self, a: Operand) -> Var:
        return self._let("floor", a.dtype, (a,))

    def ceil(self, a: Operand) -> Var:
        return self._let("ceil", a.dtype, (a,))

    def trunc(self, a: Operand) -> Var:
        return self._let("trunc", a.dtype, (a,))

    def rint(self, a: Operand) -> Var:
        return self._let("rint", a.dtype, (a,))

    def cmp(self, predicate: str, a: Operand, b: Operand) -> Var:
        return self._let("cmp", dtypes.BOOL, (a, b), predicate)

    def select(self, condition: Operand, a: Any, b: Any) -> Operand:
        if isinstance(a, Pair):
            pair: Any = self.map_parts(lambda p, q: self.select(condition, p, q), a, b)
            return pair  # type: ignore[no-any-return]
        return a if a is b else self._let("select", a.dtype, (condition, a, b))

    def and_(self, a: Operand, b: Operand) -> Var:
        return self._let("and_", a.dtype, (a, b))

    def or_(self, a: Operand, b: Operand) -> Var:
        return self._let("or_", a.dtype, (a, b))

    def xor(self, a: Operand, b: Operand) -> Var:
        return self._let("xor", a.dtype, (a, b))

    def not_(self, a: Operand) -> Var:
        return self._let("not_", a.dtype, (a,))

    def shl(self, a: Operand, b: Operand) -> Var:
        return self._let("shl", a.dtype, (a, b))

    def shr(self, a: Operand, b: Operand) -> Var:
        return self._let("shr", a.dtype, (a, b))

    def call(self, name: str, *args: Operand) -> Var:
        return self._let("call", args[0].dtype, args, name)


def scalar_constant(value: Any, dtype: np.dtype) -> Scalar:
    """The constant `value` in `dtype`, a pair if that is complex."""
    part = dtypes.part_of(dtype)
    if part == dtype:
        return constant(value, dtype)
    number = np.asarray(value).astype(dtype)
    return Pair(constant(number.real, part), constant(number.imag, part))


def constant(value: Any, dtype: np.dtype, source: np.dtype | None = None) -> Const:
    """The constant `value` in `dtype`, as a Python number."""
    with np.errstate(all="ignore"):
        scalar = np.asarray(value, source).astype(dtype)
    return Const(scalar.item(), dtype)
