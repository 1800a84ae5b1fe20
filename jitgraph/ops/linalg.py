"""Matrix products, left to BLAS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph.errors import DTypeError, ShapeError
from jitgraph.ir.opdef import Attrs, Signature, Trait
from jitgraph.ir.reshapes import canonical_order
from jitgraph.ir.types import IndexMap, TensorType, elementwise_layout
from jitgraph.ops.families import (
    broadcast_shapes,
    define,
    drop_axis_map,
    dtype_code,
    fresh_layout,
    has_half,
    loop_dtypes,
    newaxis_map,
    product,
    shape_of,
)

_SIGNATURE = "(n?,k),(k,m?)->(n?,m?)"


def _matmul_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    a, b = types
    for number, t in enumerate(types):
        if t.ndim == 0:
            raise ShapeError(
                f"matmul: Input operand {number} does not have enough dimensions (has 0, gufunc core with signature "
                f"{_SIGNATURE} requires 1)"
            )
    inner_a, inner_b = a.shape[-1], b.shape[max(b.ndim - 2, 0)]
    if inner_a != inner_b:
        raise ShapeError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {_SIGNATURE} "
            f"(size {inner_b} is different from {inner_a})"
        )
    dtype = loop_dtypes("matmul", np.matmul, tuple(dtype_code(t) for t in types))[-1]
    if dtype.kind == "O":
        raise DTypeError("matmul of objects is not supported")
    outer_a, outer_b = _outer(a), _outer(b)
    outer = broadcast_shapes((outer_a, outer_b))
    shape = (*outer, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))
    if not shape:
        return Signature((dtype, dtype), (TensorType(dtype, (), "np_scalar"),))
    order = [*elementwise_layout(len(outer), (outer_a, outer_b)).order, *range(len(outer), len(shape))]
    return Signature((dtype, dtype), (TensorType(dtype, shape, "array", fresh_layout(order, shape)),))


def _outer(t: TensorType) -> TensorType:
    """The axes over which matmul broadcasts, in their order in memory."""
    count = max(t.ndim - 2, 0)
    order = [k for k in t.layout.order if k < count]
    zero = tuple(k for k in t.layout.zero if k < count)
    layout = fresh_layout(canonical_order(order, t.shape[:count]), t.shape[:count])
    return TensorType(t.dtype, t.shape[:count], "array", type(layout)(layout.order, (), (), zero))


def _swapped(b: Any, x: Any) -> Any:
    """The last two axes exchanged."""
    shape = shape_of(x)
    n = len(shape)
    return b.view(x, map=IndexMap.permute(shape, [*range(n - 2), n - 1, n - 2]))


def _vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """da = ct b^T, db = a^T ct; a vector operand is a row on the left and a column on the right."""
    left, right = len(shape_of(p)), len(shape_of(q))
    if left == right == 1:
        return b.mul(ct, q), b.mul(ct, p)
    ndim = len(shape_of(ct))
    if right == 1:  # y[..., i] = sum_k p[..., i, k] q[k]
        column = b.view(ct, map=newaxis_map(shape_of(ct), ndim))
        dq = b.matmul(_swapped(b, p), column)
        return b.mul(column, q), b.view(dq, map=drop_axis_map(shape_of(dq), ndim))
    if left == 1:  # y[..., j] = sum_k p[k] q[..., k, j]
        row = b.view(ct, map=newaxis_map(shape_of(ct), ndim - 1))
        dp = b.matmul(row, _swapped(b, q))
        column = b.view(p, map=newaxis_map(shape_of(p), 1))
        return b.view(dp, map=drop_axis_map(shape_of(dp), ndim - 1)), b.mul(column, row)
    return b.matmul(ct, _swapped(b, q)), b.matmul(_swapped(b, p), ct)


def _jvp(b: Any, tangents: Any, y: Any, p: Any, q: Any) -> Any:
    tp, tq = tangents
    if tq is None:
        return b.matmul(tp, q)
    if tp is None:
        return b.matmul(p, tq)
    return b.add(b.matmul(tp, q), b.matmul(p, tq))


define(
    "matmul",
    "The matrix product over the last two axes; leading axes broadcast.",
    _matmul_infer,
    np.matmul,
    vjp=_vjp,
    jvp=_jvp,
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    numpy=(np.matmul, np.dot, np.vdot, np.inner),
    arity=2,
    by_numpy=has_half,
)


def _scaled_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    """An array of at most two axes and a number of its dtype give an array in C order, or a number."""
    x, _ = types
    return Signature((x.dtype, x.dtype), (TensorType(x.dtype, x.shape, "array" if x.shape else "np_scalar"),))


def _scaled_jvp(b: Any, tangents: Any, y: Any, x: Any, number: Any) -> Any:
    of_x, of_number = tangents
    parts = [b.mul(of_x, number)] if of_x is not None else []
    parts += [b.mul(x, of_number)] if of_number is not None else []
    return parts[0] if len(parts) == 1 else b.add(*parts)


define(
    "scaled",
    "`np.dot` of a vector or matrix and a number: BLAS adds to zeros, loses the sign of zeros, fuses complex products "
    "and takes all times 0 as 0.",
    _scaled_infer,
    lambda x, number: np.dot(x, number),  # noqa: PLW0108  # its parameters are looked at
    vjp=lambda b, ct, y, x, number: (
        b.mul(ct, number),
        b.reduce_sum(b.mul(ct, x), axes=tuple(range(len(shape_of(x)))), keepdims=False),
    ),
    jvp=_scaled_jvp,
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    arity=2,
    by_numpy=lambda types: True,
)


def _dot_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    """(..., k) and (..., k, m) give (..., ..., m) in C order."""
    a, b = types
    dtype = loop_dtypes("matmul", np.matmul, tuple(dtype_code(t) for t in types))[-1]
    at = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[at]:
        raise ShapeError(f"dot: inner sizes differ: {a.shape[-1]} and {b.shape[at]}")
    shape = (*a.shape[:-1], *b.shape[:at], *b.shape[at + 1 :])
    return Signature((dtype, dtype), (TensorType(dtype, shape),))


def _dot_vjp(b: Any, ct: Any, y: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """da = ct b^T, db = a^T ct, of matrices: a row for the axes of `a` that stay, a column for those of `b`."""
    left, right = shape_of(p), shape_of(q)
    at = max(len(right) - 2, 0)
    order = [at, *(k for k in range(len(right)) if k != at)]
    inner, rest = right[at], tuple(right[k] for k in order[1:])
    rows, columns = product(left[:-1]), product(rest)
    matrix = b.reshape(ct, shape=(rows, columns))
    ahead = b.reshape(b.view(q, map=IndexMap.permute(right, order)), shape=(inner, columns))
    dp = b.reshape(b.matmul(matrix, _swapped(b, ahead)), shape=left)
    dq = b.reshape(b.matmul(_swapped(b, b.reshape(p, shape=(rows, inner))), matrix), shape=(inner, *rest))
    back = sorted(range(len(order)), key=order.__getitem__)
    return dp, b.view(dq, map=IndexMap.permute((inner, *rest), back))


def _dot_jvp(b: Any, tangents: Any, y: Any, p: Any, q: Any) -> Any:
    tp, tq = tangents
    parts = [b.dot(tp, q)] if tp is not None else []
    parts += [b.dot(p, tq)] if tq is not None else []
    return parts[0] if len(parts) == 1 else b.add(*parts)


define(
    "dot",
    "`np.dot` of floats in more than two axes: one product of vectors by BLAS for each element.",
    _dot_infer,
    lambda a, b: np.dot(a, b),  # noqa: PLW0108  # its parameters are looked at
    vjp=_dot_vjp,
    jvp=_dot_jvp,
    traits=frozenset({Trait.PURE, Trait.OPAQUE}),
    arity=2,
    by_numpy=lambda types: True,
)
