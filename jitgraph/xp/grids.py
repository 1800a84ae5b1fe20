"""`np.mgrid`, `np.ogrid`, `np.r_` and `np.c_`: what their subscripts make of traced sizes, numbers and arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.tensor import EAGER, Tensor, dim_tensor
from jitgraph.xp.core import EXPORTS, NEGATIVE, array_tensor, cast, mode_in, tensor
from jitgraph.xp.joining import concatenate
from jitgraph.xp.selecting import must
from jitgraph.xp.shape import reshape_to, transpose


def _range(s: slice, dtype: np.dtype | None = None) -> Any:
    """One slice as numbers, `start + k * step`: an imaginary step is a count, with the end included."""
    start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
    if isinstance(step, complex):
        count = int(abs(step))
        by = EXPORTS["true_divide"](EXPORTS["subtract"](s.stop, start), float(count - 1)) if count > 1 else 1.0
        numbers = EXPORTS["arange"](0, count, 1, float)
    else:
        made = tensor(EXPORTS["arange"](start, s.stop, step))
        if dtype is None or dtype.kind != "f":
            return made
        by = step
        numbers = EXPORTS["arange"](dim_tensor(made._storage.mode, made.type.shape[0]), dtype=dtype)
    return EXPORTS["add"](EXPORTS["multiply"](numbers, by), start)


def _is_float(s: slice) -> bool:
    for part in (s.start, s.stop, s.step):
        if type(part) is Tensor and part.type.dtype.kind == "f":
            return True
        if isinstance(part, (float, complex, np.floating)):
            return True
    return False


def grid(sparse: bool, key: Any) -> Any:
    """`np.mgrid[key]`, or `np.ogrid[key]` if `sparse`."""
    if not isinstance(key, tuple):
        return _range(key)
    dtype = np.dtype(float) if any(_is_float(s) for s in key) else None
    if not sparse:
        _check_counts(key)
    ranges = [_range(s, dtype) for s in key]
    grids = EXPORTS["meshgrid"](*ranges, sparse=sparse, indexing="ij")
    return tuple(grids) if sparse else EXPORTS["stack"](grids)


def _check_counts(key: tuple[Any, ...]) -> None:
    """Of several slices none may run backwards by a step and more: NumPy counts them, where `arange` takes none."""
    mode = mode_in([part for s in key for part in (s.start, s.stop, s.step)])
    for s in key:
        start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
        if isinstance(step, complex):
            continue
        way, least = EXPORTS["subtract"](s.stop, start), EXPORTS["negative"](step)
        if type(step) is not int:
            way, least = EXPORTS["true_divide"](way, step), -1
        reached = EXPORTS["less" if type(step) is int and step < 0 else "greater"](way, least)
        must(mode or EAGER, reached, errors.ShapeError, NEGATIVE)


def rows(key: Any) -> Any:
    """`np.r_[key]`"""
    return _joined(key, 0, 1, -1)


def columns(key: Any) -> Any:
    """`np.c_[key]`"""
    return _joined(key, -1, 2, 0)


def _joined(key: Any, axis: int, ndmin: int, place: int) -> Any:
    """Slices, numbers and arrays one behind the other, with axes of size 1 added in front.

    Args:
        place: where the axes of an array stand among the added ones: its first axis, or -1 for the end.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    if parts and isinstance(parts[0], str):
        directive = parts.pop(0)
        if directive in ("r", "c"):
            raise errors.TraceError(errors.describe("matrices have no compiled form", remedy="use 2-D arrays."))
        numbers = [int(n) for n in directive.split(",")]
        axis = numbers[0]
        ndmin = numbers[1] if len(numbers) > 1 else ndmin
        place = numbers[2] if len(numbers) > 2 else place
    mode = mode_in(parts)
    objects: list[Tensor] = []
    promotes: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            raise errors.ShapeError("special directives must be the first entry.")
        x: Any = _range(part) if isinstance(part, slice) else part
        weak = type(x) in (bool, int, float, complex) or (type(x) is Tensor and x.type.is_python)
        t = array_tensor(x, mode)
        own = t.type.ndim
        promotes.append(_weak_value(x) if weak else t.type.dtype)
        if own < ndmin:
            t = reshape_to(t, (*(1,) * (ndmin - own), *t.type.shape))
            if place != -1 and own:
                t = transpose(t, _order(ndmin, ndmin - own, place, isinstance(part, slice)))
        objects.append(t)
    dtype = np.result_type(*promotes)
    return concatenate([cast(t, dtype) if t.type.dtype != dtype else t for t in objects], axis=axis)


def _order(ndmin: int, added: int, place: int, swaps: bool) -> list[int]:
    """The axes of an array with `added` axes in front, brought to where they are wanted; a slice only swaps two."""
    order = list(range(ndmin))
    if swaps:
        order[-1], order[place] = order[place], order[-1]
        return order
    first = place + added + 1 if place < 0 else place
    return order[:first] + order[added:] + order[first:added]


def _weak_value(x: Any) -> Any:
    if type(x) is Tensor:
        return {"py_bool": False, "py_int": 0, "py_float": 0.0}.get(x.type.kind, 0j)
    return x


#: What stands for a subscript of NumPy's objects, by their class (and whether the grid is sparse).
SUBSCRIPTS: dict[type, Callable[[Any, Any], Any]] = {
    type(np.mgrid): lambda owner, key: grid(False, key),
    type(np.ogrid): lambda owner, key: grid(True, key),
    type(np.r_): lambda owner, key: rows(key),
    type(np.c_): lambda owner, key: columns(key),
}
