"""Complex numbers: conjugates and parts. `real` and `imag` of an array are views for users; here they are values.

`with_real` and `with_imag` give a complex number with one part exchanged: what a write through such a view stores.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import DTypeError, TraceError
from jitgraph.ir.opdef import Attrs, Infer, Signature
from jitgraph.ir.types import Kind, Layout, TensorType, python_type
from jitgraph.ops import pairs as on_pairs
from jitgraph.ops.families import ELEMENTWISE, broadcast_layout, broadcast_shapes, define, dtype_of, shape_of, unary

unary(
    "conj",
    np.conjugate,
    "The conjugate; of a real number itself.",
    lambda s, x: x,
    vjp=lambda b, ct, y, x: (b.conj(ct),),
    linear=True,
    pairs=on_pairs.conj,
)


def part_layout(layout: Layout) -> Layout:
    """The layout of the real (or imaginary) parts of an array: in steps of a whole element."""
    last = len(layout.order) - 1
    if last < 0 or last in layout.breaks:
        return layout
    return Layout(layout.order, (*layout.breaks, last), layout.negative, layout.zero, layout.unaligned)


def part_type(t: TensorType) -> TensorType:
    """The type of the real or imaginary part, in the same byte order.

    Raises:
        DTypeError: `t` is not complex.
    """
    if not dtypes.is_complex(t.dtype):
        raise DTypeError(f"{t.dtype.name} has no parts")
    part = dtypes.part_of(t.dtype)
    if not t.dtype.isnative:
        part = part.newbyteorder()
    if t.kind == "array":
        return TensorType(part, t.shape, "array", part_layout(t.layout))
    kind: Kind = "py_float" if t.is_python else "np_scalar"
    return TensorType(part, (), kind)


def _part_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    return Signature((None,), (part_type(types[0]),))


def _exchanged_infer(name: str) -> Infer:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
        x, _ = types
        if not dtypes.is_complex(x.dtype):
            raise DTypeError(f"{name} takes a complex number, not {x.dtype.name}")
        shape = broadcast_shapes(types)
        kind: Kind = "array" if shape or x.kind == "array" else x.kind
        layout = broadcast_layout(shape, types) if shape else None
        result = TensorType(x.dtype, shape, kind, layout)  # type: ignore[arg-type]
        return Signature((None, dtypes.part_of(x.dtype)), (result,))

    return infer


def _part(name: str) -> Callable[[Any], Any]:
    def evaluate(x: Any) -> Any:
        return getattr(x, name)

    return evaluate


def _exchange(name: str) -> Callable[..., Any]:
    def evaluate(x: Any, part: Any) -> Any:
        made = np.array(np.broadcast_arrays(x, part)[0], np.result_type(x), order="K")
        getattr(made, name)[...] = part
        return made if isinstance(x, np.ndarray) or np.ndim(part) else made[()]

    return evaluate


_KINDS: dict[str, Kind] = {"phase": "py_float", "isnan": "py_bool", "isinf": "py_bool", "isfinite": "py_bool"}


def _python_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    operand = dtypes.F64 if attrs["of"] == "rect" else dtypes.C128
    return Signature((operand,) * len(types), (python_type(_KINDS.get(attrs["of"], "py_complex")),))


def _python_vjp(b: Any, ct: Any, y: Any, *operands: Any, of: str) -> tuple[Any, ...]:
    raise TraceError(f"no gradient through cmath.{of}: use NumPy's function")


def _by_python(*operands: Any, of: str) -> Any:
    numbers = [x.item() if isinstance(x, np.generic) else x for x in operands]
    return pow(*numbers) if of == "pow" else getattr(cmath, of)(*numbers)


define(
    "python_complex",
    "A function of `cmath`, or `pow`, of Python's complex numbers: by Python itself.",
    _python_infer,
    _by_python,
    vjp=_python_vjp,
    traits=ELEMENTWISE,
    arity=-1,
)


def _vdot_jvp(b: Any, tangents: Any, y: Any, p: Any, q: Any) -> Any:
    first, second = tangents
    parts = [b.vdot(first, q)] if first is not None else []
    parts += [b.vdot(p, second)] if second is not None else []
    return parts[0] if len(parts) == 1 else b.add(*parts)


define(
    "vdot",
    "`np.vdot` of two complex vectors of which one lies reversed, which BLAS does not take: NumPy's own loop.",
    lambda types, attrs: Signature((None, None), (TensorType(types[0].dtype, (), "np_scalar"),)),
    np.vdot,
    vjp=lambda b, ct, y, p, q: (b.mul(b.conj(ct), b.conj(q)), b.mul(b.conj(p), ct)),
    jvp=_vdot_jvp,
    arity=2,
    by_numpy=lambda types: True,
)
define(
    "squared_norm",
    "The sum of the squares of both parts of a complex vector: NumPy's dot products of strided views.",
    lambda types, attrs: Signature((None,), (TensorType(dtypes.part_of(types[0].dtype), (), "np_scalar"),)),
    lambda x: x.real.dot(x.real) + x.imag.dot(x.imag),
    vjp=lambda b, ct, y, x: (b.mul(b.conj(x), b.mul(ct, 2.0)),),
    jvp=lambda b, tangents, y, x: b.reduce_sum(b.mul(b.real(b.mul(b.conj(x), tangents[0])), 2.0), axes=(0,)),
    by_numpy=lambda types: True,
)

#: Rules of gradients, in the convention of records: they are given the conjugate of the cotangent, and answer one.
_VJPS: dict[str, Any] = {
    "real": lambda b, ct, y, x: (b.cast(ct, dtype=dtype_of(x)),),
    "imag": lambda b, ct, y, x: (b.with_imag(b.full(0.0, shape=shape_of(x), dtype=dtype_of(x)), b.neg(ct)),),
    "with_real": lambda b, ct, y, x, part: (b.with_real(ct, b.imag(b.mul(ct, 0.0))), b.real(ct)),
    "with_imag": lambda b, ct, y, x, part: (b.with_imag(ct, b.imag(b.mul(ct, 0.0))), b.neg(b.imag(ct))),
}


def _part_jvp(name: str) -> Callable[..., Any]:
    return lambda b, tangents, y, x: getattr(b, name)(tangents[0])


def _exchanged_jvp(name: str) -> Callable[..., Any]:
    def jvp(b: Any, tangents: Any, y: Any, x: Any, part: Any) -> Any:
        whole, given = tangents
        whole = b.mul(y, 0.0) if whole is None else whole
        return getattr(b, name)(whole, b.mul(part, 0.0) if given is None else given)

    return jvp


for _name, _read, _write, _what in (
    ("real", on_pairs.real, on_pairs.with_real, "real"),
    ("imag", on_pairs.imag, on_pairs.with_imag, "imaginary"),
):
    define(
        _name,
        f"The {_what} part.",
        _part_infer,
        _part(_name),
        lower=lambda s, x: x,
        vjp=_VJPS[_name],
        jvp=_part_jvp(_name),
        traits=ELEMENTWISE,
        pairs=_read,
    )
    define(
        f"with_{_name}",
        f"x with another {_what} part.",
        _exchanged_infer(f"with_{_name}"),
        _exchange(_name),
        lower=lambda s, x, part: x,
        vjp=_VJPS[f"with_{_name}"],
        jvp=_exchanged_jvp(f"with_{_name}"),
        traits=ELEMENTWISE,
        arity=2,
        pairs=_write,
    )
