"""Operators that make values: constants, sizes, filled arrays, sequences; and `bind`, which makes an integer a size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.builder import constant_type
from jitgraph.ir.opdef import Attrs, Signature, Trait
from jitgraph.ir.types import Shape, TensorType, python_type
from jitgraph.ops.families import (
    PURE,
    define,
    fresh_layout,
    no_gradient,
    require_integer,
    require_supported,
    stored_as,
)


def _constant_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    return Signature((), (constant_type(attrs["value"]),))


define(
    "constant",
    "A number or small array known at compile time.",
    _constant_infer,
    lambda value: value,
    vjp=no_gradient,
    arity=0,
)
define(
    "dim",
    "A size as a Python integer.",
    lambda types, attrs: Signature((), (python_type("py_int"),)),
    lambda value: value,
    vjp=no_gradient,
    arity=0,
)


def _bind_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (i,) = types
    require_integer("bind", i)
    return Signature((dtypes.I64,), ())


define(
    "bind",
    "From here on the symbol stands for this integer.",
    _bind_infer,
    lambda i, symbol: (),
    vjp=no_gradient,
    traits=frozenset({Trait.BINDS}),
)


def _new_array(what: str, attrs: Attrs) -> TensorType:
    """The array that `what` makes: of the shape and dtype, in the order ("C" or "F") of its attributes."""
    shape: Shape = attrs["shape"]
    require_supported(what, (attrs["dtype"],))
    axes = range(len(shape) - 1, -1, -1) if attrs.get("order", "C") == "F" else range(len(shape))
    return TensorType(attrs["dtype"], shape, "array", fresh_layout(axes, shape))


def _full_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    made = _new_array("full", attrs)
    return Signature((stored_as(types[0], made.dtype),), (made,))


def _full_vjp(b: Any, ct: Any, y: Any, v: Any, *, shape: Shape, dtype: np.dtype, order: str = "C") -> tuple[Any]:
    if dtype.kind != "f":
        return (None,)
    return (b.reduce_sum(ct, axes=tuple(range(len(shape))), keepdims=False) if shape else ct,)


define(
    "full",
    "An array of one value throughout.",
    _full_infer,
    lambda v, shape, dtype, order="C": np.full(shape, v, dtype, order),
    vjp=_full_vjp,
    numpy=(np.full, np.zeros, np.ones, np.full_like, np.zeros_like, np.ones_like),
    linear=True,
)


define(
    "empty",
    "An array that holds what its memory held: nothing is stored. Read twice, an element is the same.",
    lambda types, attrs: Signature((), (_new_array("empty", attrs),)),
    lambda shape, dtype, order="C": np.zeros(shape, dtype, order),
    vjp=no_gradient,
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    numpy=(np.empty, np.empty_like),
    arity=0,
)


def _iota_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    dtype: np.dtype = attrs["dtype"]
    require_supported("iota", (dtype,))
    return Signature((dtype, dtype), (TensorType(dtype, (attrs["size"],)),))


def _iota(start: Any, step: Any, size: int, dtype: np.dtype) -> np.ndarray:
    """As NumPy fills `arange`: start + i * step, each operation rounded in the dtype."""
    start, step = np.asarray(start).astype(dtype), np.asarray(step).astype(dtype)
    return np.asarray(start + np.arange(size).astype(dtype) * step, dtype)


def _iota_vjp(b: Any, ct: Any, y: Any, start: Any, step: Any, *, size: Any, dtype: np.dtype) -> tuple[Any, Any]:
    if dtype.kind != "f":
        return None, None
    count = b.iota(0.0, 1.0, size=size, dtype=dtype)
    return b.reduce_sum(ct, axes=(0,), keepdims=False), b.reduce_sum(b.mul(ct, count), axes=(0,), keepdims=False)


define(
    "iota",
    "start + i * step for i in range(size), each operation rounded in the dtype: `np.arange`.",
    _iota_infer,
    _iota,
    vjp=_iota_vjp,
    traits=PURE,
    numpy=(np.arange,),
    linear=True,
    arity=2,
)
