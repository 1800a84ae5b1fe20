"""NumPy's generalised ufuncs for stacks of vectors and matrices: `vecdot`, `matvec`, `vecmat`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.modes import TraceMode
from jitgraph.tensor import EAGER, Tensor, apply, read, wrap
from jitgraph.xp.core import EXPORTS, R, array_tensor, axis_of, cast, deliver, mode_in, numpy_function, sizes_agree
from jitgraph.xp.shape import moveaxis, retyped


def _define(ufunc: np.ufunc, core: tuple[int, int], kept: int) -> None:
    """The stand-in of `ufunc`.

    Args:
        core: axes that each operand's vectors or matrices take, the last ones.
        kept: axes of a product.
    """
    name = ufunc.__name__

    @numpy_function(ufunc, name=name)
    def function(
        x1: Any,
        x2: Any,
        /,
        out: Any = None,
        *,
        axis: Any = None,
        axes: Any = None,
        keepdims: bool = False,
        casting: str = "same_kind",
        dtype: Any = None,
        **kwargs: Any,
    ) -> Any:
        if set(kwargs) - {"order", "subok"}:
            raise errors.DTypeError(f"{name}: {', '.join(kwargs)} is not supported under jit")
        if keepdims and kept:
            raise errors.DTypeError(f"{name} does not support keepdims")
        mode = mode_in((x1, x2)) or EAGER
        operands = [array_tensor(x, mode) for x in (x1, x2)]
        if dtype is not None:
            operands = [cast(t, dtype) for t in operands]
        placed = _axes(axis, axes, core)
        operands = [t if t.type.ndim < len(at) else at_the_end(t, at) for t, at in zip(operands, placed, strict=False)]
        result = apply(R(name), *_agreed(mode, operands, core, name))
        if len(placed) > 2 and kept and result.type.ndim:
            result = moveaxis(result, -1, placed[2][0])
        if keepdims:
            told = placed[2][0] if len(placed) > 2 and placed[2] else -1 if axis is None else axis
            at = axis_of(told, result.type.ndim + 1)
            result = EXPORTS["expand_dims"](array_tensor(result), at)
        return deliver_stack(result, out, casting, kept + bool(keepdims))

    function.__doc__ = R(name).doc


def deliver_stack(result: Tensor, out: Any, casting: str, core: int) -> Any:
    """A result of a generalised ufunc, as `deliver`; its axes in front of the last `core` are repeated in `out`, and
    left out there where they are 1.

    Raises:
        ShapeError: `out` has another shape.
    """
    target = out[0] if isinstance(out, tuple) else out
    if type(target) is Tensor and type(result) is Tensor:
        while result.type.ndim > max(core, target.type.ndim) and result.type.shape[0] == 1:
            result = EXPORTS["squeeze"](array_tensor(result), 0)
    repeats = not core
    if core and type(target) is Tensor and min(target.type.ndim, result.type.ndim) >= core:
        sizes = zip(result.type.shape[-core:], target.type.shape[-core:], strict=True)
        repeats = all(sizes_agree(result._storage.mode, a, b, "size {0} for an out of size {1}") for a, b in sizes)
    return deliver(result, out, casting, repeats=repeats)


def _axes(axis: Any, axes: Any, core: tuple[int, int]) -> list[Sequence[int]]:
    """The core axes of the operands (and of the result, if told)."""
    if axis is not None:
        return [(axis,)] * 2
    if axes is not None:
        return core_axes(axes)
    return [range(-count, 0) for count in core]


def core_axes(axes: Sequence[Any]) -> list[Sequence[int]]:
    """`axes=` of a generalised ufunc: a tuple for each operand, and for the result if told."""
    return [tuple(a) if isinstance(a, (tuple, list)) else (a,) for a in axes]


def at_the_end(t: Tensor, at: Sequence[int]) -> Tensor:
    """The core axes of an operand moved to the end."""
    where = [axis_of(k, t.type.ndim) for k in at]
    last = list(range(t.type.ndim - len(at), t.type.ndim))
    return t if where == last else moveaxis(t, tuple(where), tuple(last))


def _agreed(mode: Any, operands: list[Tensor], core: tuple[int, int], name: str) -> list[Tensor]:
    """The operands with inner sizes that are literally equal, and outer ones that are equal or 1."""
    a, b = operands
    if a.type.ndim < core[0] or b.type.ndim < core[1]:
        return operands  # the record says what is wrong
    at = b.type.ndim - core[1]
    inner_a, inner_b = a.type.shape[-1], b.type.shape[at]
    if inner_a != inner_b and sizes_agree(mode, inner_a, inner_b, f"{name}: inner sizes differ: {{0}} and {{1}}"):
        shape = b.type.shape
        b = retyped(b, (*shape[:at], inner_a, *shape[at + 1 :]))
    if not isinstance(mode, TraceMode):
        return [a, b]
    outer = [t.type.shape[: t.type.ndim - count] for t, count in zip((a, b), core, strict=True)]
    wide = mode.broadcast_shape(outer, name)
    stretched = []
    for t, count, own in zip((a, b), core, outer, strict=True):
        target = (*wide[len(wide) - len(own) :], *t.type.shape[t.type.ndim - count :])
        stretched.append(wrap(mode, mode.stretch(read(t), target)) if own else t)
    return stretched


_define(np.vecdot, (1, 1), 0)
_define(np.matvec, (2, 1), 1)
_define(np.vecmat, (1, 2), 1)
