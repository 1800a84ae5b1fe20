"""`Let`: the primitives of the `Scalar` protocol as LLVM instructions, on one lane or many.

Integer division is guarded where lanes are off: what stands in them is arbitrary, and the machine traps on zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.assembler import COLD, Assembler, V
from jitgraph.codegen.llvm_function import TYPES, FunctionEmitter
from jitgraph.codegen.loops import Const, DimValue, Let
from jitgraph.codegen.vecmath import FUNCTIONS
from jitgraph.errors import InternalError

_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "uno": "uno"}
_SIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
#: NumPy's names where C has others.
_C_NAMES = {
    "libm.hypot": "hypot", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip

Primitive = Callable[[FunctionEmitter, list[V], Let], V]


def emit_let(f: FunctionEmitter, s: Let) -> None:
    handler = PRIMITIVES.get(s.op)
    if handler is None:
        raise InternalError(f"no primitive {s.op!r} (in the definition of {s.var.name})")
    f.values[s.var.name] = handler(f, [f.operand(x) for x in s.args], s)
    if s.op == "cmp" and s.attr == "eq" and isinstance(s.args[1], Const) and s.args[1].dtype.kind in "iu":
        f.equalities[s.var.name] = s.args[0], int(s.args[1].value)


def emit_dim_value(f: FunctionEmitter, s: DimValue) -> None:
    f.values[s.var.name] = f.lanes_dim(s.dim)


def cast(a: Assembler, x: V, source: np.dtype, target: np.dtype) -> V:
    """x as NumPy's `astype` converts it; a float outside of the integer's range gives some integer."""
    if source == target:
        return x
    ty = TYPES[target]
    if source == dtypes.F16:
        return cast(a, a.half_to_float(x), dtypes.F32, target)
    if target == dtypes.F16:
        if source == dtypes.F64:
            return a.double_to_half(x)
        return a.float_to_half(cast(a, x, source, dtypes.F32))
    if target.kind == "b":
        if source.kind == "f":
            return a.fcmp("une", x, a.like(0.0, x))
        return a.icmp("ne", x, a.like(0, x))
    if source.kind == "f":
        if target.kind == "f":
            return a.fpext(x, ty) if target.itemsize > source.itemsize else a.fptrunc(x, ty)
        if target.itemsize < 4:  # as C on x86: through int32, so that -1.0 is 255
            return a.trunc_int(a.fptosi(x, "i32"), ty)
        if target.kind == "i":
            return a.fptosi(x, ty)
        return a.trunc_int(a.fptosi(x, "i64"), ty) if target.itemsize == 4 else a.fptoui(x, ty)
    if target.kind == "f":
        return a.sitofp(x, ty) if source.kind == "i" else a.uitofp(x, ty)
    if source.kind == "b":
        return a.zext(x, ty)
    if target.itemsize == source.itemsize:
        return x
    if target.itemsize < source.itemsize:
        return a.trunc_int(x, ty)
    return a.sext(x, ty) if source.kind == "i" else a.zext(x, ty)


def compare(a: Assembler, predicate: str, x: V, y: V, dtype: np.dtype) -> V:
    if dtype.kind == "f":
        return a.fcmp(_FLOAT_PREDICATES[predicate], x, y)
    return a.icmp((_SIGNED_PREDICATES if dtype.kind == "i" else _UNSIGNED_PREDICATES)[predicate], x, y)


def _cast(f: FunctionEmitter, args: list[V], s: Let) -> V:
    return cast(f.a, args[0], s.args[0].dtype, s.var.dtype)


def _bitcast(f: FunctionEmitter, args: list[V], s: Let) -> V:
    return f.a.bitcast(args[0], TYPES[s.var.dtype])


def _cmp(f: FunctionEmitter, args: list[V], s: Let) -> V:
    return compare(f.a, s.attr, args[0], args[1], s.args[0].dtype)


def _arithmetic(name: str) -> Primitive:
    """add, sub, mul, neg of floats or integers."""
    integer, real = getattr(Assembler, name), getattr(Assembler, f"f{name}")

    def emit(f: FunctionEmitter, args: list[V], s: Let) -> V:
        if s.args[0].dtype.kind == "f":
            return real(f.a, *args)  # type: ignore[no-any-return]
        return f.here((name, *args), lambda: integer(f.a, *args))

    return emit


def _plain(name: str) -> Primitive:
    method = getattr(Assembler, name)

    def emit(f: FunctionEmitter, args: list[V], s: Let) -> V:
        return method(f.a, *args)  # type: ignore[no-any-return]

    return emit


def _divide(signed: str, unsigned: str) -> Primitive:
    def emit(f: FunctionEmitter, args: list[V], s: Let) -> V:
        a, (x, y) = f.a, args
        if f.mask is not None and y.lanes > 1:
            y = a.select(f.mask, y, a.const(1, y.ty, f.lanes))
        elif f.mask is not None and f.divergent:  # no lane may be on, but what is uniform stays so
            y = a.select(a.any_lane(f.mask), y, a.const(1, y.ty))
        method = signed if s.args[0].dtype.kind == "i" else unsigned
        return getattr(a, method)(x, y)  # type: ignore[no-any-return]

    return emit


def _shr(f: FunctionEmitter, args: list[V], s: Let) -> V:
    return f.a.ashr(*args) if s.args[0].dtype.kind == "i" else f.a.lshr(*args)


def _overflows(operation: str) -> Primitive:
    def emit(f: FunctionEmitter, args: list[V], s: Let) -> V:
        prefix = "s" if s.args[0].dtype.kind == "i" else "u"
        result, overflow = f.a.with_overflow(prefix + operation, *args)
        f.here((operation, *args), lambda: result)  # the same instruction gives the wrapped result
        return overflow

    return emit


def _frem(f: FunctionEmitter, args: list[V], s: Let) -> V:
    """C's fmod, which is exact: on lanes the quotient q by a division, then x - q y in one rounding.

    As the division is rounded, q may be one too large; then x - q y is negative, and x - (q - 1) y the result. Both are
    numbers of the type, so that nothing is rounded. Very large quotients, infinities and NaN are left to C.
    """
    a, lanes = f.a, max(x.lanes for x in args)
    if lanes == 1 or not a.has_fma:
        return library_lanes(f, "fmod", args)
    x, y = (a.splat(z, lanes) for z in args)
    with a.strict():
        dividend, divisor = a.fabs(x), a.fabs(y)
        quotient = a.trunc(a.fdiv(dividend, divisor))
        below = a.fsub(quotient, a.like(1.0, x))
        rest = a.fma(a.fneg(quotient), divisor, dividend)
        rest = a.select(a.fcmp("olt", rest, a.like(0.0, x)), a.fma(a.fneg(below), divisor, dividend), rest)
        quick = a.copysign(rest, x)
        limit = 2.0**52 if x.ty == "double" else 2.0**23
        plain = a.and_(a.fcmp("olt", quotient, a.like(limit, x)), a.fcmp("olt", divisor, a.like(float("inf"), x)))
    before, rare, done = a.block, a.fresh_label("fmod.rare"), a.fresh_label("fmod.done")
    a.condbr(f.any_active(a.not_(plain)), rare, done, weights=COLD)
    a.label(rare)
    exact = library_lanes(f, "fmod", [x, y])
    after = a.block
    a.br(done)
    a.label(done)
    return a.phi([(quick, before), (exact, after)])


def _call(f: FunctionEmitter, args: list[V], s: Let) -> V:
    function = FUNCTIONS.get(s.attr)
    if function is not None and function.vectorised:
        return function.emit(f.a, *args)
    return library_lanes(f, _C_NAMES.get(s.attr, s.attr), args)


def library_lanes(f: FunctionEmitter, name: str, args: list[V]) -> V:
    """C's function of the table, lane by lane in a helper function with a loop: one call site however many lanes."""
    a, ty = f.a, args[0].ty
    callee = f.table_function(f"{name}f" if ty == "float" else name)
    lanes = max(x.lanes for x in args)
    if lanes == 1:
        return a.call_pointer(callee, ty, args)
    helper = f.module.lanes_helper(ty, lanes, len(args))
    wide = [a.splat(x, lanes).typed for x in args]
    vector = f"<{lanes} x {ty}>"
    return a.define(f"call {vector} @{helper}({callee.typed}, {', '.join(wide)})", ty, lanes)


PRIMITIVES: dict[str, Primitive] = {
    "cast": _cast, "bitcast": _bitcast, "cmp": _cmp, "call": _call, "frem": _frem,
    "add": _arithmetic("add"), "sub": _arithmetic("sub"), "mul": _arithmetic("mul"), "neg": _arithmetic("neg"),
    "idiv": _divide("sdiv", "udiv"), "irem": _divide("srem", "urem"), "shr": _shr,
    "add_overflows": _overflows("add"), "sub_overflows": _overflows("sub"), "mul_overflows": _overflows("mul"),
}  # fmt: skip
for _name in ("fdiv", "fma", "muladd", "fabs", "copysign", "sqrt", "floor", "ceil", "trunc", "rint", "select"):
    PRIMITIVES[_name] = _plain(_name)
for _name in ("and_", "or_", "xor", "not_", "shl"):
    PRIMITIVES[_name] = _plain(_name)
