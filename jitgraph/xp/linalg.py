"""Products of matrices and vectors, over `matmul`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.dtypes import part_of
from jitgraph.ir.dims import DimLike
from jitgraph.modes import TraceMode
from jitgraph.sizes import is_one, shape_text
from jitgraph.tensor import EAGER, Mode, Tensor, apply, read, wrap
from jitgraph.xp.complexes import conjugate_of, is_complex, real_of
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axes_of,
    axis_of,
    cast,
    deliver,
    mode_in,
    np_kind,
    numpy_function,
    product,
    sizes_agree,
    tensor,
)
from jitgraph.xp.elementwise import absolute, multiply, sqrt, square, subtract
from jitgraph.xp.operators import power
from jitgraph.xp.reductions import sum
from jitgraph.xp.shape import diagonal, moveaxis, ravel, reshape_to, retyped, swapaxes, transpose
from jitgraph.xp.vectors import at_the_end, core_axes, deliver_stack


def _pair(a: Any, b: Any) -> tuple[Mode, Tensor, Tensor]:
    mode = mode_in((a, b)) or EAGER
    return mode, np_kind(tensor(a, mode)), np_kind(tensor(b, mode))


def product_of(a: Tensor, b: Tensor, what: str) -> Tensor:
    """`matmul` of operands with at least one axis; inner and outer sizes are made equal by guards or checks.

    Raises:
        ShapeError: the inner sizes differ.
    """
    mode = a._storage.mode
    inner_a, inner_b = a.type.shape[-1], b.type.shape[max(b.type.ndim - 2, 0)]
    if inner_a != inner_b:
        b = _matched(mode, a, b, inner_a, inner_b, what)
    if isinstance(mode, TraceMode) and (a.type.ndim > 2 or b.type.ndim > 2):
        outer_a, outer_b = a.type.shape[:-2], b.type.shape[:-2]
        if outer_a != outer_b:
            outer = mode.broadcast_shape([outer_a, outer_b], what)
            a = wrap(mode, mode.stretch(read(a), (*outer, *a.type.shape[-2:]))) if a.type.ndim > 2 else a
            b = wrap(mode, mode.stretch(read(b), (*outer, *b.type.shape[-2:]))) if b.type.ndim > 2 else b
    return apply(R("matmul"), a, b)  # type: ignore[no-any-return]


def _matched(mode: Mode, a: Tensor, b: Tensor, inner_a: DimLike, inner_b: DimLike, what: str) -> Tensor:
    axis_b = max(b.type.ndim - 2, 0)
    if not sizes_agree(mode, inner_a, inner_b, f"{what}: inner sizes differ: {{0}} and {{1}}"):
        last = a.type.ndim - 1
        if isinstance(mode, TraceMode):
            inner_a, inner_b = mode.example(inner_a), mode.example(inner_b)
        raise errors.ShapeError(
            errors.describe(
                f"{what}: inner dimensions differ: the left operand has {inner_a} on axis {last}, the right one "
                f"{inner_b} on axis {axis_b}",
                mode.locate() if isinstance(mode, TraceMode) else None,
                facts=(f"left:  {a.type}", f"right: {b.type}"),
                remedy=f"give the right operand {inner_a} on axis {axis_b}, or the left one {inner_b} on axis {last}.",
            )
        )
    shape = b.type.shape
    return retyped(b, (*shape[:axis_b], inner_a, *shape[axis_b + 1 :]))


@numpy_function(np.matmul)
def matmul(
    x1: Any, x2: Any, /, out: Any = None, *, casting: str = "same_kind", dtype: Any = None, **kwargs: Any
) -> Any:
    _, a, b = _pair(x1, x2)
    placed = core_axes(kwargs.pop("axes", None) or ())
    if placed:
        a, b = (at_the_end(t, k) for t, k in zip((a, b), placed, strict=False))
    for number, t in enumerate((a, b)):
        if not t.type.shape:
            text = f"matmul: Input operand {number} does not have enough dimensions (has 0, gufunc core with signature "
            raise errors.ShapeError(errors.describe(f"{text}{np.matmul.signature} requires 1)", _place(t)))
    loop = np.result_type(a.type.dtype, b.type.dtype) if dtype is None else np.dtype(dtype)
    turned = not placed and _fills_columns(out, a, b, loop)
    a, b = _cast_matrix(a, loop), _cast_matrix(b, loop)
    if turned:
        b = _matched(b._storage.mode, a, b, a.type.shape[-1], b.type.shape[-2], "x @ y")
        result = swapaxes(product_of(swapaxes(b, -1, -2), swapaxes(a, -1, -2), "x @ y"), -1, -2)
    else:
        result = product_of(a, b, "x @ y")
    if len(placed) > 2 and placed[2]:
        return deliver(moveaxis(result, tuple(range(-len(placed[2]), 0)), placed[2]), out, casting)
    return deliver_stack(result, out, casting, (a.type.ndim > 1) + (b.type.ndim > 1))


def _fills_columns(out: Any, a: Tensor, b: Tensor, loop: np.dtype) -> bool:
    """Whether `out` is a matrix whose rows are closer than its columns: NumPy computes the transposed product then."""
    target = out[0] if isinstance(out, tuple) else out
    if type(target) is not Tensor or min(target.type.ndim, a.type.ndim, b.type.ndim) < 2 or loop.kind not in "fc":
        return False
    t, mode = target.type, target._storage.mode
    if t.dtype != loop or t.layout.unaligned or not isinstance(mode, TraceMode):
        return False
    if 1 in (*t.shape[-2:], a.type.shape[-1]):
        return False
    order = t.layout.order
    return order.index(t.ndim - 1) < order.index(t.ndim - 2)


def _cast_matrix(x: Tensor, dtype: np.dtype) -> Tensor:
    """An operand of `matmul` in the dtype of its loop: if not as it is, then a copy whose matrices are in C order.

    Source: NumPy's iterator, which casts, swaps and aligns operands of generalised ufuncs into arrays that it lays out.
    """
    t = x.type
    if t.dtype == dtype and not t.layout.unaligned:
        return x
    made = cast(x, dtype)
    moved = t.ndim > 1 or made.type.layout.unaligned
    ordered = isinstance(x._storage.mode, TraceMode) and moved and dtype.kind in "fc"
    return apply(R("copy"), made, order="C") if ordered else made  # type: ignore[no-any-return]


def _place(t: Tensor) -> Any:
    mode = t._storage.mode
    return mode.locate() if isinstance(mode, TraceMode) else None


@numpy_function(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    _, x, y = _pair(a, b)
    if not x.type.shape or not y.type.shape:
        loop = np.result_type(x.type.dtype, y.type.dtype)
        if out is not None and (loop.kind not in "fc" or loop == np.float16):
            made = multiply(x, y, out=out)
            return made if made.type.shape else made[()]
        return _into(_times_number(x, y), out)
    few = x.type.ndim <= 2 and y.type.ndim <= 2
    return _into((_dot_of_few if few else _dot_of_many)(x, y, "dot"), out)


def _into(made: Tensor, out: Any) -> Any:
    """What `dot` returns: into `out` only if that is laid out as a result of its own would be."""
    if type(out) is Tensor:
        t = out.type
        if t.dtype != made.type.dtype or t.ndim != made.type.ndim or not t.layout.is_c or t.layout.unaligned:
            raise errors.ShapeError(
                "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
            )
    found = deliver(made, out)
    return found if found is made or made.type.shape else found[()]


def _dot_of_few(x: Tensor, y: Tensor, what: str) -> Tensor:
    """`dot` of vectors and matrices: which of BLAS's functions NumPy asks decides the bits of complex numbers."""
    if _is_complex_outer(x, y):
        return _dot_of_many(x, y, what)
    if _are_single(x, y):
        return _single(x, y)
    if np.result_type(x.type.dtype, y.type.dtype).kind == "c" and (_is_one(x) or _is_one(y)):
        return _times_one(x, y, what)
    return product_of(*_for_blas(x, y), what)


def _dot_of_many(x: Tensor, y: Tensor, what: str) -> Tensor:
    """`dot` in more than two axes: of floats NumPy's own, whose sums are those of single products of vectors."""
    ndim = y.type.ndim
    if np.result_type(x.type.dtype, y.type.dtype).kind in "fc":
        inner_x, inner_y = x.type.shape[-1], y.type.shape[max(ndim - 2, 0)]
        if inner_x != inner_y:
            y = _matched(x._storage.mode, x, y, inner_x, inner_y, what)
        return apply(R("dot"), x, y)  # type: ignore[no-any-return]
    return product_of(x, y, what) if ndim <= 2 else _contract(x, moveaxis(y, ndim - 2, 0), 1)


def _is_complex_outer(x: Tensor, y: Tensor) -> bool:
    """A column times a row: of complex numbers BLAS, which `matmul` does not ask here, has other infinities."""
    if not x.type.ndim == y.type.ndim == 2 or "c" not in (x.type.dtype.kind, y.type.dtype.kind):
        return False
    mode, (rows, inner), (other, columns) = x._storage.mode, x.type.shape, y.type.shape
    return is_one(mode, inner) and is_one(mode, other) and not (is_one(mode, rows) or is_one(mode, columns))


def _are_single(x: Tensor, y: Tensor) -> bool:
    """Whether both are one number, of a dtype that NumPy hands to BLAS."""
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    return dtype.kind in "fc" and dtype != np.float16 and _is_one(x) and _is_one(y)


def _single(x: Tensor, y: Tensor) -> Tensor:
    """`dot` of two single numbers: a product and no sum, which would lose the sign of a zero."""
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    a, b = (as_kind(reshape_to(cast(v, dtype), ()), "np_scalar") for v in (x, y))
    made: Tensor = apply(R("mul"), a, b)
    ndim = x.type.ndim + y.type.ndim - 2
    return reshape_to(array_tensor(made), (1,) * ndim) if ndim else made


def _is_one(x: Tensor) -> bool:
    return all(is_one(x._storage.mode, d) for d in x.type.shape)


def _times_one(x: Tensor, y: Tensor, what: str) -> Tensor:
    """`dot` of a vector or matrix of one element with a row or column: NumPy asks BLAS for a product with a number."""
    one, array = (x, y) if _is_one(x) else (y, x)
    inner_x, inner_y = x.type.shape[-1], y.type.shape[0]
    if inner_x != inner_y:
        _matched(x._storage.mode, x, y, inner_x, inner_y, what)
    made = _times_number(array, as_kind(reshape_to(one, ()), "np_scalar"))
    shape = (*x.type.shape[:-1], *y.type.shape[1:])
    return reshape_to(made, shape)


def _times_number(x: Tensor, y: Tensor) -> Tensor:
    """A product with a number: NumPy casts both, hands those of at most two axes to BLAS, all others it multiplies."""
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    x, y = cast(x, dtype), cast(y, dtype)
    array, number = (x, y) if x.type.shape else (y, x)
    real = dtype.kind == "f" and dtype != np.float16
    if array.type.ndim > 2 or not (dtype.kind == "c" or (real and array.type.shape)):
        return multiply(x, y)  # type: ignore[no-any-return]
    return apply(R("scaled"), array, number)  # type: ignore[no-any-return]


def _for_blas(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The operands of `dot` as NumPy hands them to BLAS: copied where `matmul` would go its own, other way.

    Source: `cblas_matrixproduct`: strides that are negative or zero, matrices with gaps, and addresses off the grid.
    """
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    if dtype.kind not in "fc" or dtype == np.float16 or not isinstance(x._storage.mode, TraceMode):
        return x, y
    return _blas_operand(cast(x, dtype)), _blas_operand(cast(y, dtype))


def _blas_operand(x: Tensor) -> Tensor:
    if x.type.layout.unaligned:
        x = apply(R("copy"), x, order="K")
    layout = x.type.layout
    gaps = x.type.ndim == 2 and layout.breaks and 1 not in x.type.shape
    return apply(R("copy"), x, order="C") if layout.negative or layout.zero or gaps else x


def _contract(a: Tensor, b: Tensor, count: int) -> Tensor:
    """Sum over the last `count` axes of `a` and the first `count` of `b`, by one matrix product."""
    left, right = a.type.shape, b.type.shape
    rows, columns = left[: len(left) - count], right[count:]
    flat_a = reshape_to(a, (product(rows), product(left[len(rows) :])))
    flat_b = reshape_to(b, (product(right[:count]), product(columns)))
    made = _dot_of_few(flat_a, flat_b, "dot")
    return reshape_to(made, (*rows, *columns)) if rows or columns else _scalar(reshape_to(made, ()))


def _scalar(x: Tensor) -> Tensor:
    from jitgraph.xp.core import as_kind

    return as_kind(x, "np_scalar")


@numpy_function(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    _, x, y = _pair(a, b)
    if not x.type.shape or not y.type.shape:
        return _times_number(x, y)
    if x.type.ndim > 2 or y.type.ndim > 2:
        ndim = y.type.ndim
        return _dot_of_many(x, transpose(y, [*range(ndim - 2), ndim - 1, ndim - 2]) if ndim > 1 else y, "inner")
    return _dot_of_few(x, transpose(y), "inner")


@numpy_function(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    _, x, y = _pair(a, b)
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    first, second = _flat(cast(x, dtype)), _flat(cast(y, dtype))
    layout = first.type.layout
    apart = dtype.kind == "c" and (layout.negative or layout.breaks or layout.zero)  # BLAS conjugates on the way
    sizes = first.type.shape[0], second.type.shape[0]
    if apart and sizes_agree(first._storage.mode, *sizes, "vdot: sizes {0} and {1} differ"):
        return apply(R("vdot"), first, second)
    return product_of(conjugate_of(first), second, "vdot")


def _flat(x: Tensor) -> Tensor:
    """All elements on one axis: as a view wherever one stride reaches them, which BLAS then gets."""
    x = array_tensor(x)
    if x.type.ndim == 1:
        return x
    made = reshape_to(x, (product(x.type.shape),))
    if not made.type.layout.negative or not x.type.ndim:
        return made
    back = tuple(range(x.type.ndim))  # flattened as it lies in memory, and turned behind
    return EXPORTS["flip"](reshape_to(EXPORTS["flip"](x, back), made.type.shape), 0)  # type: ignore[no-any-return]


@numpy_function(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    mode = mode_in((a, b))
    x, y = (ravel(array_tensor(v, mode)) for v in (a, b))
    return multiply(reshape_to(x, (x.type.shape[0], 1)), reshape_to(y, (1, y.type.shape[0])), out=out)


@numpy_function(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    mode = mode_in((a, b))
    x, y = array_tensor(a, mode), array_tensor(b, mode)
    if isinstance(axes, (tuple, list)):
        left, right = (tuple(v) if isinstance(v, (tuple, list)) else (v,) for v in axes)
    else:
        left = tuple(range(x.type.ndim - axes, x.type.ndim))
        right = tuple(range(axes))
    left, right = axes_of(left, x.type.ndim, "tensordot"), axes_of(right, y.type.ndim, "tensordot")
    if len(left) != len(right):
        raise errors.ShapeError("shape-mismatch for sum")
    kept_x = [k for k in range(x.type.ndim) if k not in left]
    kept_y = [k for k in range(y.type.ndim) if k not in right]
    for i, j in zip(left, right, strict=True):
        p, q = x.type.shape[i], y.type.shape[j]
        if not sizes_agree(x._storage.mode, p, q, "shape-mismatch for sum: {0} and {1}"):
            raise errors.ShapeError(
                f"shape-mismatch for sum: {shape_text(x.type.shape)} and {shape_text(y.type.shape)}"
            )
    made = _contract(transpose(x, [*kept_x, *left]), transpose(y, [*right, *kept_y]), len(left))
    return array_tensor(made)


@numpy_function(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return sum(diagonal(array_tensor(a), offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@numpy_function(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    mode = mode_in((a, b))
    x, y = moveaxis(array_tensor(a, mode), axisa, -1), moveaxis(array_tensor(b, mode), axisb, -1)
    (p, third), (q, other) = _components(x), _components(y)
    z = subtract(multiply(p[0], q[1]), multiply(p[1], q[0]))
    if not third and not other:
        return array_tensor(z)
    if third and other:
        parts = [subtract(multiply(p[i], q[j]), multiply(p[j], q[i])) for i, j in ((1, 2), (2, 0))]
    elif other:
        parts = [multiply(p[1], q[2]), EXPORTS["negative"](multiply(p[0], q[2]))]
    else:
        parts = [EXPORTS["negative"](multiply(p[2], q[1])), multiply(p[2], q[0])]
    parts.append(z)
    return EXPORTS["stack"](parts, axis=axis_of(axisc, parts[0].ndim + 1, "cross"))


def _components(x: Tensor) -> tuple[list[Any], bool]:
    """The two or three components of vectors along the last axis, and whether there are three."""
    from jitgraph.xp.indexing import getitem

    mode, size = x._storage.mode, x.type.shape[-1]
    wrong = "incompatible dimensions for cross product (dimension must be 2 or 3)"
    third = size == 3 or (size != 2 and not mode.decide("==", size, 2))
    if third and not sizes_agree(mode, size, 3, wrong):
        raise errors.ShapeError(wrong)
    return [getitem(x, (Ellipsis, k)) for k in range(3 if third else 2)], third


@numpy_function(np.linalg.norm, name="linalg_norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Vector norms of order 1, 2, infinity and 0 < p, and the Frobenius norm."""
    t = array_tensor(x)
    if t.type.dtype.kind in "iub":
        from jitgraph.xp.core import cast

        t = cast(t, np.float64)
    if axis is None and (ord is None or (ord == 2 and t.type.ndim == 1) or (ord in ("f", "fro") and t.type.ndim == 2)):
        flat = ravel(t, "K")
        result = sqrt(apply(R("squared_norm"), flat) if is_complex(flat) else product_of(flat, flat, "norm"))
        return reshape_to(array_tensor(result), (1,) * t.type.ndim) if keepdims else result
    axes = axes_of(axis, t.type.ndim, "norm")
    count = len(axes)
    if count in (1, 2) and (ord is None or (ord == 2 and count == 1) or (ord in ("fro", "f") and count == 2)):
        squares = real_of(multiply(conjugate_of(t), t)) if is_complex(t) else square(t)
        return sqrt(sum(squares, axis=axes, keepdims=keepdims))
    if count == 1:
        (k,) = axes
        if ord == np.inf:
            return EXPORTS["max"](absolute(t), axis=k, keepdims=keepdims, initial=0)
        if ord == -np.inf:
            return EXPORTS["min"](absolute(t), axis=k, keepdims=keepdims)
        if ord == 0:
            return sum(EXPORTS["not_equal"](t, 0).astype(part_of(t.type.dtype)), axis=k, keepdims=keepdims)
        if ord == 1:
            return sum(absolute(t), axis=k, keepdims=keepdims)
        if isinstance(ord, (int, float)):
            size = absolute(t)
            powers = sum(power(size, ord).astype(size.type.dtype), axis=k, keepdims=keepdims)
            root = np.reciprocal(ord, dtype=powers.type.dtype)
            return power(powers, root)
    return _no_norm(x, ord, axis, keepdims, t)


def _no_norm(x: Any, ord: Any, axis: Any, keepdims: bool, t: Tensor) -> Any:
    """A norm without a compiled form: a call back.

    Raises:
        GradientTypeError: a tape records `x`.
    """
    mode = t._storage.mode
    if isinstance(mode, TraceMode):
        return mode.unsupported("np.linalg.norm", (x, ord, axis, keepdims), {}, np.linalg.norm)
    raise errors.GradientTypeError(
        errors.describe(
            f"the norm of order {ord} has no gradient here", remedy="use x.numpy(), through which no gradient flows."
        )
    )
