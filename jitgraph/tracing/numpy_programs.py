"""NumPy's functions that call back the user, written with array functions: traced in place of NumPy's own source.

They are ordinary NumPy code, which calls `function` as often and in the order that NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """The first row says the shape and dtype of all results, as in NumPy."""
    moved = np.moveaxis(np.asanyarray(arr), axis, -1)
    outer = moved.shape[:-1]
    count = 1
    for size in outer:
        count = count * size
    rows = moved.reshape(count, moved.shape[-1])
    if count == 0:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    first = np.asanyarray(func1d(rows[0], *args, **kwargs))
    results = np.zeros((rows.shape[0], *first.shape), first.dtype)
    results[0] = first
    for k in range(1, rows.shape[0]):
        results[k] = func1d(rows[k], *args, **kwargs)
    shaped = results.reshape(outer + first.shape)
    back = axis if axis >= 0 else axis + len(outer) + 1
    for inner in range(len(first.shape)):
        shaped = np.moveaxis(shaped, len(outer) + inner, back + inner)
    return shaped


def vectorize(self: np.vectorize, *args: Any, **kwargs: Any) -> Any:
    """`np.vectorize(function)(...)`: a loop over the elements, as Python numbers; the first says the dtype."""
    if kwargs or self.excluded or self.signature is not None:
        raise TypeError("np.vectorize with keywords, a signature or excluded arguments has no compiled form")
    arrays = np.broadcast_arrays(*args)
    flat = [a.reshape(-1) for a in arrays]
    if flat[0].shape[0] == 0 and self.otypes is None:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    function = self.pyfunc
    if self.otypes is None:
        first = function(*[a[0] for a in flat])  # a NumPy scalar, the elements are Python numbers: as NumPy does it
        several = isinstance(first, tuple)
        dtypes = [np.asarray(part).dtype for part in (first if several else (first,))]
    else:
        several = len(self.otypes) > 1
        dtypes = [np.dtype(code) for code in self.otypes]
    results = [np.zeros(flat[0].shape[0], dtype) for dtype in dtypes]
    for k in range(flat[0].shape[0]):
        found = function(*[a[k].item() for a in flat])
        if several:
            for result, part in zip(results, found):  # noqa: B905  # traced code
                result[k] = part
        else:
            results[0][k] = found
    shaped = [result.reshape(arrays[0].shape) for result in results]
    return tuple(shaped) if several else shaped[0]
