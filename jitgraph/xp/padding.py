"""`pad`: constants are written around the array, edges and reflections are gathered; other modes are NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, assign, dim_tensor
from jitgraph.xp.core import EXPORTS, array_tensor, mode_in, np_kind, numpy_function, size_of, tensor
from jitgraph.xp.creation import arange, full_of
from jitgraph.xp.editing import is_fortran, like_source
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
    options = {key: value for key, value in kwargs.items() if value is not None}
    plain = not options or (mode == "constant" and set(options) == {"constant_values"})
    if options == {"reflect_type": "even"} and mode in ("reflect", "symmetric"):
        plain = True
    if not isinstance(mode, str) or mode not in ("constant", "empty", *_GATHERED) or not plain:
        if callable(mode) or not isinstance(tracing, TraceMode):
            raise errors.TraceError(
                errors.describe(
                    f"np.pad with the mode {mode!r} has no compiled form",
                    tracing.locate() if isinstance(tracing, TraceMode) else None,
                    remedy="use a mode that is a name, or wrap it with jg.host.",
                )
            )
        return tracing.unsupported("np.pad", (array, pad_width, mode), kwargs, np.pad)
    ndim = x.type.ndim
    widths = _pairs(pad_width, ndim, "pad_width")
    for pair in widths:
        for width in pair:
            if not isinstance(width, Tensor) and width < 0:
                raise errors.ShapeError("index can't contain negative values")
    if mode in ("constant", "empty"):
        return _surrounded(x, widths, _pairs(options.get("constant_values", 0), ndim, "constant_values"))
    made = x
    for axis, (left, right) in enumerate(widths):
        if isinstance(left, Tensor) or isinstance(right, Tensor) or left or right:
            made = _gathered(made, axis, left, right, mode)
    return _surrounded(x, widths, widths) if made is x else like_source(made, x)


def _pairs(given: Any, ndim: int, what: str) -> list[tuple[Any, Any]]:
    """(before, after) for each axis, of a number, a pair, or a sequence of pairs, or a dict by axis."""
    if isinstance(given, dict):
        found: list[tuple[Any, Any]] = [(0, 0)] * ndim
        for axis, width in given.items():
            pair = tuple(width) if isinstance(width, list | tuple) else (width, width)
            found[axis] = (pair[0], pair[1])
        return found
    if isinstance(given, Tensor) and given.type.ndim:
        given = [getitem(given, k) for k in range(len(given))]
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        return [(_integer(given, what), _integer(given, what))] * ndim
    items = [list(i) if isinstance(i, list | tuple) else i for i in given]
    if len(items) == 1 and not isinstance(items[0], list):
        items = [items[0], items[0]]
    if len(items) == 2 and not any(isinstance(i, list) for i in items):
        return [(_integer(items[0], what), _integer(items[1], what))] * ndim
    if len(items) == 1:
        items = items * ndim
    if len(items) != ndim or any(not isinstance(i, list) or len(i) not in (1, 2) for i in items):
        raise errors.ShapeError(f"np.pad: {what} does not fit an array of {ndim} axes")
    return [(_integer(i[0], what), _integer(i[-1], what)) for i in items]


def _integer(x: Any, what: str) -> Any:
    if what == "pad_width":
        refused = x.type.dtype.kind not in "iu" if isinstance(x, Tensor) else not isinstance(x, int | np.integer)
        if refused or isinstance(x, bool):
            raise TypeError("`pad_width` must be of integral type.")
        return x if isinstance(x, Tensor) else int(x)
    return x


def _surrounded(x: Tensor, widths: list[tuple[Any, Any]], values: list[tuple[Any, Any]]) -> Tensor:
    """A new array with `x` in its middle; each axis in turn is filled with its values, over the corners."""
    mode = x._storage.mode
    sizes = [d if isinstance(d, int) else dim_tensor(mode, d) for d in x.type.shape]
    shape = tuple(left + size + right for size, (left, right) in zip(sizes, widths, strict=True))
    zero = np.zeros((), x.type.dtype)[()]
    out = full_of(mode, zero, tuple(size_of(d) for d in shape), x.type.dtype, "F" if is_fortran(x) else "C")
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
        raise errors.ShapeError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
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
