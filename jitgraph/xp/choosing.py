"""`np.select`: the first of several arrays whose condition holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.tensor import Tensor, current_mode
from jitgraph.xp.core import array_tensor, cast, mode_in, numpy_function
from jitgraph.xp.creation import full_of, result_type
from jitgraph.xp.placing import copyto
from jitgraph.xp.shape import broadcast_arrays, common_shape


@numpy_function(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """In NumPy's steps: its dtype is that of all choices together, its memory in C order."""
    if len(condlist) != len(choicelist):
        raise errors.ShapeError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise errors.ShapeError("select with an empty condition list is not possible")
    mode = mode_in((condlist, choicelist, default)) or current_mode()
    given = [*choicelist, default]
    try:
        dtype = result_type(*[x if _is_weak(x) else array_tensor(x, mode) for x in given])
    except TypeError as e:
        raise errors.DTypeError(f"Choicelist and default value do not have a common dtype: {e}") from None
    conditions = broadcast_arrays(*[array_tensor(c, mode) for c in condlist])
    choices = broadcast_arrays(*[array_tensor(x, mode) for x in given])
    for k, condition in enumerate(conditions):
        if condition.type.dtype.kind != "b":
            raise errors.DTypeError(f"invalid entry {k} in condlist: should be boolean ndarray")
    mode = choices[-1]._storage.mode
    shape = common_shape(mode, [conditions[0].type.shape, choices[0].type.shape], "select")
    result = full_of(mode, cast(choices[-1], dtype), shape, dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices[:-1]), strict=True):
        copyto(result, choice, where=condition)
    return result


def _is_weak(x: Any) -> bool:
    """A Python number, which takes part in the promotion as one."""
    return type(x) in (int, float, complex) or (
        type(x) is Tensor and x.type.kind in ("py_int", "py_float", "py_complex")
    )
