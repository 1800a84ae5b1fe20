"""Bits: `x.view(dtype)`, the bytes of an array seen as other elements; `bit_count` and `bit_length` of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.dims import mod
from jitgraph.ir.types import IndexMap
from jitgraph.modes import TraceMode
from jitgraph.ops.bits import LARGER, reinterpreted_type
from jitgraph.tensor import EAGER, Tensor, apply, check_dtype, plain, view_as, view_of
from jitgraph.xp.core import R, as_kind, cast, rewrap, sizes_agree


def view(x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`x.view()` is another view of all of it, `x.view(dtype)` one of its bytes as other elements."""
    mode = x._storage.mode
    if mode is EAGER and (args or kwargs):
        return rewrap(plain(x).view(*args, **kwargs))
    given = dict(zip(("dtype", "type"), args, strict=False)) | kwargs
    dtype = given.get("dtype")
    if dtype is np.ndarray or dtype is None:
        return view_of(x, IndexMap.identity(x.type.shape)) if x.type.kind == "array" else x
    if given.get("type", np.ndarray) is not np.ndarray:
        raise errors.DTypeError("view: type= is not supported under jit")
    return retyped_view(x, np.dtype(dtype))


def retyped_view(x: Tensor, dtype: np.dtype) -> Any:
    """`x.view(dtype)` of a traced array or NumPy scalar."""
    mode = x._storage.mode
    check_dtype(dtype, "view")
    if not isinstance(mode, TraceMode):
        text = "view(dtype) reads memory as another dtype, through which no gradient flows"
        raise errors.GradientTypeError(errors.describe(text, remedy="convert values with x.astype(dtype)."))
    if x.type.kind != "array":
        if x.type.dtype.itemsize != dtype.itemsize:
            text = "view(dtype) of a scalar as elements of another size"
            mode.fail(text, "make it an array first: np.atleast_1d(x).")
        return x if x.type.dtype == dtype else apply(R("bitcast"), x, dtype=dtype)
    have = x.type.dtype.itemsize
    if x.type.shape and dtype.itemsize > have and dtype.itemsize % have == 0:
        ratio = dtype.itemsize // have
        if not sizes_agree(mode, mod(x.type.shape[-1], ratio), 0, LARGER):
            raise errors.ShapeError(errors.describe(LARGER, mode.locate()))
    reinterpreted_type(x.type, dtype)
    return view_as(x, dtype)


def bit_count(x: Tensor) -> Any:
    """The number of set bits of |x|, a Python int."""
    if not isinstance(x._storage.mode, TraceMode):
        return plain(x).bit_count()
    return _as_int(apply(R("bitwise_count"), _magnitude(x)))


def bit_length(x: Tensor) -> Any:
    """The number of bits of |x|: those below the highest set one are set, then counted."""
    if not isinstance(x._storage.mode, TraceMode):
        return plain(x).bit_length()
    bits = _magnitude(x)
    for shift in (1, 2, 4, 8, 16, 32):
        bits = apply(R("bit_or"), bits, apply(R("shift_right"), bits, np.uint64(shift)))
    return _as_int(apply(R("bitwise_count"), bits))


def _magnitude(x: Tensor) -> Any:
    """|x| of an integer scalar as uint64.

    Raises:
        AttributeError: Python or NumPy has no such method for it.
    """
    if x.type.kind == "array" or x.type.dtype.kind not in "iub":
        raise AttributeError(f"'{x.__class__.__name__}' object has no such attribute")
    whole = as_kind(x, "np_scalar")
    if whole.type.dtype.kind == "i":
        whole = apply(R("abs"), whole)
    return cast(whole, np.uint64)


def _as_int(x: Any) -> Any:
    return as_kind(cast(x, np.int64), "py_int")
