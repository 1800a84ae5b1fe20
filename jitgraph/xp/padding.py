"""`pad`: constants are written around the array, edges and reflections are gathered; other modes are NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.modes import TraceMode
from jitgraph.tensor import Mode, Tensor, assign, dim_tensor
from jitgraph.xp.core import (
    EXPORTS,
    array_tensor,
    mode_in,
    not_negative,
    np_kind,
    numpy_function,
    size_of,
    sizes_agree,
    tensor,
)
from jitgraph.xp.creation import arange, full_of
from jitgraph.xp.editing import like_source, seems_fortran
from jitgraph.xp.elementwise import clip
from jitgraph.xp.indexing import getitem
from jitgraph.xp.selecting import take
from jitgraph.xp.storable import check_number

minimum, remainder = EXPORTS["minimum"], EXPORTS["remainder"]
_GATHERED = ("edge", "reflect", "symmetric", "wrap")


@numpy_function(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    x = array_tensor(array, mode_in((array, pad_width)))
    tracing = x._storage.mode
    plain = not kwargs or (kwargs == {"reflect_type": "even"} and mode in ("reflect", "symmetric"))
    if set(kwargs) == {"constant_values"} and kwargs["constant_values"] is not None and mode == "constant":
        plain = True
    if not isinstance(mode, str) or mode not in ("constant", "empty", *_GATHERED) or not plain:
        if not isinstance(tracing, TraceMode):
            raise errors.TraceError(f"np.pad with the mode {mode!r} has no compiled form")
        if callable(mode):
            tracing.leave("np.pad by a function has no compiled form", "use a mode that is a name.")
        return tracing.unsupported("np.pad", (array, pad_width, mode), kwargs, np.pad)
    ndim = x.type.ndim
    widths = _widths(tracing, pad_width, ndim)
    if mode in ("constant", "empty"):
        return _surrounded(x, widths, _pairs(kwargs.get("constant_values", 0), ndim))
    made = x
    for axis, (left, right) in enumerate(widths):
        if isinstance(left, Tensor) or isinstance(right, Tensor) or left or right:
            made = _gathered(made, axis, left, right, mode)
    return _surrounded(x, widths, widths) if made is x else like_source(made, x)


def _widths(mode: Mode, given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """How much stands before and after each axis.

    Raises:
        TypeError: no signed integers.
        ValueError: below zero.
    """
    if isinstance(given, dict):
        found: list[tuple[Any, Any]] = [(0, 0)] * ndim
        for axis, width in given.items():
            found[axis] = (width[0], width[1]) if isinstance(width, list | tuple) else (width, width)
        given = found
    leaves, _ = _leaves(given)
    dtypes = [x.type.dtype if isinstance(x, Tensor) else np.asarray(x).dtype for x in leaves]
    if not dtypes or np.result_type(*dtypes).kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    text = "index can't contain negative values"
    pairs = _pairs(given, ndim)
    return [(not_negative(mode, before, text), not_negative(mode, after, text)) for before, after in pairs]


def _leaves(given: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The numbers of nested sequences and arrays, and the shape of their nest."""
    if isinstance(given, Tensor) and given.type.ndim:
        given = [getitem(given, k) for k in range(len(given))]
    elif isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        return [given], ()
    parts = [_leaves(i) for i in given]
    if len({shape for _, shape in parts}) > 1:
        raise errors.ShapeError("setting an array element with a sequence: np.pad takes numbers or pairs of them")
    return [x for leaves, _ in parts for x in leaves], (len(parts), *(parts[0][1] if parts else ()))


def _pairs(given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """(before, after) for each axis, of one number, of one pair, or of what can be broadcast to a pair an axis."""
    leaves, shape = _leaves(given)
    if len(shape) < 3 and (len(leaves) == 1 or (len(leaves) == 2 and shape != (2, 1))):
        return [(leaves[0], leaves[-1])] * ndim
    places = np.broadcast_to(np.arange(len(leaves)).reshape(shape), (ndim, 2))
    return [(leaves[before], leaves[after]) for before, after in places.tolist()]


def _surrounded(x: Tensor, widths: list[tuple[Any, Any]], values: list[tuple[Any, Any]]) -> Tensor:
    """A new array with `x` in its middle; each axis in turn is filled with its values, over the corners."""
    mode = x._storage.mode
    sizes = [d if isinstance(d, int) else dim_tensor(mode, d) for d in x.type.shape]
    shape = tuple(left + size + right for size, (left, right) in zip(sizes, widths, strict=True))
    zero = np.zeros((), x.type.dtype)[()]
    out = full_of(mode, zero, tuple(size_of(d) for d in shape), x.type.dtype, "F" if seems_fortran(x) else "C")
    middle = [slice(left, left + size) for size, (left, _) in zip(sizes, widths, strict=True)]
    assign(getitem(out, (*middle, ...)), x)
    for axis, (left, right) in enumerate(widths):
        before, after = values[axis]
        around = [*[slice(None)] * axis, slice(None), *middle[axis + 1 :]]
        for width, value, part in (
            (left, before, slice(None, left)),
            (right, after, slice(left + sizes[axis], None)),
        ):
            if isinstance(width, Tensor) or width:
                around[axis] = part
                number = np_kind(tensor(value, mode))  # NumPy has the values in an array
                check_number(mode, number, x.type.dtype, elements=False)
                assign(getitem(out, (*around, ...)), number)
    return out


def _gathered(x: Tensor, axis: int, left: Any, right: Any, how: str) -> Tensor:
    """One axis made longer: which element stands at each place."""
    mode = x._storage.mode
    d = x.type.shape[axis]
    if mode.decide("==", d, 0):
        text = f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
        if not sizes_agree(mode, size_of(left) + size_of(right), 0, text):
            raise errors.ShapeError(text)
        return x
    n = d if isinstance(d, int) else dim_tensor(mode, d)
    place = arange(left + n + right) - left
    if how == "edge" or mode.decide("==", d, 1):
        index = clip(place, 0, n - 1)
    elif how == "wrap":
        index = remainder(place, n)
    elif how == "reflect":
        period = 2 * (n - 1)
        there = remainder(place, period)
        index = minimum(there, period - there)
    else:
        there = remainder(place, 2 * n)
        index = minimum(there, 2 * n - 1 - there)
    return take(x, index, axis=axis)  # type: ignore[no-any-return]
