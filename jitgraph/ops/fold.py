"""Reductions by any binary operator: `ufunc.reduce`, `accumulate` and `reduceat`, element after element.

The attribute `function` names the elementwise record. Sums, products, extremes and truths have records of their own
(`ops.reduce`), which may go in vectors; these here carry one value along the axis. `by_numpy` asks for NumPy's own
loop, whose results are no plain fold: it keeps its totals in an `out` of another dtype (`into`), or its vector code
takes no notice of what it has so far, or it starts from the first element in spite of an identity (`bare`:
`initial=None`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import AxisError, DTypeError
from jitgraph.ir.opdef import REGISTRY, Attrs, OpDef, Signature
from jitgraph.ir.types import Layout, TensorType, elementwise_layout
from jitgraph.ops.families import define, fresh_layout, has_half_or_complex
from jitgraph.ops.reduce import accumulator_dtype, reduced_type


def folded(attrs: Attrs) -> OpDef:
    """The record of the operator that combines two elements."""
    return REGISTRY[attrs["function"]]


def ufunc_of(function: str) -> np.ufunc:
    """The ufunc behind a record.

    Raises:
        DTypeError: the operator is no ufunc.
    """
    for candidate in REGISTRY[function].numpy:
        if isinstance(candidate, np.ufunc):
            return candidate
    raise DTypeError(f"{function} cannot be folded")


def identity_of(function: str, dtype: np.dtype) -> Any:
    """What NumPy starts a reduction from; None: from the first element."""
    ufunc = ufunc_of(function)
    if ufunc.identity is None:
        return None
    return np.asarray(ufunc.identity).astype(dtype)[()]


def _axis(x: TensorType, axis: int) -> int:
    if not 0 <= axis < x.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
    return axis


def _fold_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, into = types[0], attrs.get("into")
    ufunc = ufunc_of(attrs["function"])
    dtype = x.dtype if into is not None else accumulator_dtype(attrs["function"], ufunc, x.dtype)
    result = reduced_type(x, attrs["axes"], attrs.get("keepdims", False), into or dtype)
    return Signature((dtype, dtype, dtypes.BOOL)[: len(types)], (result,))


def _fold(
    x: Any,
    initial: Any = None,
    mask: Any = True,
    *,
    function: str,
    axes: tuple[int, ...],
    keepdims: bool = False,
    into: Any = None,
    by_numpy: bool = False,
    bare: bool = False,
) -> Any:
    """The ufunc's `reduce`; with `into` into an array of that dtype, in which NumPy keeps what it has so far."""
    given: dict[str, Any] = {} if initial is None else {"initial": np.asarray(initial)[()]}
    if bare:
        given["initial"] = None
    if into is not None:
        shape = [1 if k in axes else d for k, d in enumerate(np.shape(x)) if keepdims or k not in axes]
        given["out"] = np.empty(shape, into)
        given["dtype"] = np.asarray(x).dtype
    return ufunc_of(function).reduce(x, axis=tuple(axes), keepdims=keepdims, where=mask, **given)[()]


define(
    "fold",
    "Combine the elements along axes one by one: `ufunc.reduce(x, axes, initial=, where=)`.",
    _fold_infer,
    _fold,
    arity=-1,
    by_numpy=has_half_or_complex,
)


def _scan_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    (x,) = types
    dtype = accumulator_dtype(attrs["function"], ufunc_of(attrs["function"]), x.dtype)
    _axis(x, attrs["axis"])
    layout = fresh_layout(elementwise_layout(x.ndim, types).order, x.shape)
    return Signature((dtype,), (TensorType(dtype, x.shape, "array", layout),))


define(
    "scan",
    "All partial results of combining the elements along an axis: `ufunc.accumulate(x, axis)`.",
    _scan_infer,
    lambda x, function, axis: ufunc_of(function).accumulate(x, axis=axis),
    by_numpy=has_half_or_complex,
)


def _reduceat_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    x, starts = types
    axis = _axis(x, attrs["axis"])
    dtype = accumulator_dtype(attrs["function"], ufunc_of(attrs["function"]), x.dtype)
    shape = (*x.shape[:axis], starts.shape[0], *x.shape[axis + 1 :])
    # NumPy's iterator sees the array without that axis, which stays where the order of the others leaves it
    zero = (*(k for k in x.layout.zero if k != axis), axis)
    seen = Layout((*(k for k in x.layout.order if k not in zero), *zero), zero=zero)
    order = elementwise_layout(x.ndim, (TensorType(x.dtype, x.shape, "array", seen),)).order
    return Signature((dtype, dtypes.I64), (TensorType(dtype, shape, "array", fresh_layout(order, shape)),))


define(
    "reduceat",
    "Combine the elements of stretches of an axis: `ufunc.reduceat(x, starts, axis)`, starts in range.",
    _reduceat_infer,
    lambda x, starts, function, axis, by_numpy=False: ufunc_of(function).reduceat(x, starts, axis=axis),
    arity=2,
    by_numpy=has_half_or_complex,
)
