"""Writes by index: masks are selects or `expand`, integer arrays one write for each index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Value
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode
from jitgraph.sizes import array_shape_text, is_one
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    assign,
    is_writable,
    plain,
    read,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    R,
    array_tensor,
    empty_result,
    fit,
    mode_in,
    settle,
    tensor,
    translate,
    unwrap,
)
from jitgraph.xp.indexing import basic_view, count_of, gathering
from jitgraph.xp.keys import Item, full_mask, is_full_mask, mask_rank, parse
from jitgraph.xp.shape import reshape_to, stretched, transpose
from jitgraph.xp.storable import check_number, check_sequence, refuse_order, refuse_overlap, stored

# --- writing

_MASKED = "NumPy boolean array indexing assignment "
_ROWS = _MASKED + "requires a 0 or 1-dimensional input, input has {} dimensions"


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`."""
    mode = x._storage.mode
    other = mode_in((key, value))
    if mode is EAGER and (other is None or other is EAGER):
        if not isinstance(plain(x), np.ndarray):
            raise errors.DTypeError(f"'{type(plain(x)).__name__}' object does not support item assignment")
        try:
            plain(x)[unwrap(key)] = unwrap(value)
        except (IndexError, TypeError, ValueError) as error:
            if "read-only" in str(error):
                raise errors.ReadOnlyError(str(error)) from None
            raise translate(error, "x[...] = y", (x, value)) from None
        return
    t = x.type
    if t.kind != "array":
        raise errors.DTypeError(f"'{x.__class__.__name__}' object does not support item assignment")
    if not is_writable(x):
        raise errors.ReadOnlyError("assignment destination is read-only")
    if mode is EAGER:
        assert other is not None
        from jitgraph.tensor import _promote

        mode = _promote(x._storage, other)
    from_list = isinstance(value, (list, tuple))
    mask = full_mask(mode, key, t.shape, alone=True)
    if mask is not None:
        value = stored(mode, value, t.dtype, False)
        check_number(mode, value, t.dtype, elements=True)
        if type(value) is Tensor and value.type.ndim == 1:
            refuse_overlap(x, value, "x[mask] = values", counted=True)
        _masked_write(mode, x, mask, value)
        return
    lower = _leading_mask(mode, x, key)
    if lower is not None and _is_single(value):
        wide = reshape_to(lower, (*lower.type.shape, *(1,) * (t.ndim - lower.type.ndim)))
        _masked_write(mode, x, wide, value)
        return
    parsed = parse(mode, key, t.shape)
    if parsed.advanced:  # values are converted before indices are looked at
        value = stored(mode, value, t.dtype, False)
        check_number(mode, value, t.dtype, elements=True)
        if isinstance(mode, TraceMode) and is_full_mask(key, t.ndim):
            _check_rows(mode, key, t.shape, value)
    else:
        view = basic_view(mode, x, parsed.items)
        value = stored(mode, value, t.dtype, parsed.scalar)
        check_number(mode, value, t.dtype, elements=False)
        scalar = parsed.scalar and view.type.dtype.kind != "b"  # bools take the truth of an array of one element
        check_sequence(value, view.type.dtype, view.type.ndim, scalar, from_list)
        refuse_order(view, value)
        assign(view, value)
        return
    scatter(mode, x, parsed.items, value)


def _is_single(value: Any) -> bool:
    return value.type.ndim == 0 if type(value) is Tensor else np.ndim(value) == 0


def _leading_mask(mode: Mode, x: Tensor, key: Any) -> Tensor | None:
    """The mask of `x[mask]` over the leading axes only."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if 1 <= mask_rank(key) < x.type.ndim:
        mask = array_tensor(key, mode)
        for have, wanted in zip(mask.type.shape, x.type.shape, strict=False):
            try:
                if not mode.decide("==", have, wanted):
                    return None
            except Undecided:
                return None
        return mask
    return None


def _masked_write(mode: Mode, x: Tensor, mask: Tensor, value: Any) -> None:
    """One value for all: a select; one for each true element: `expand`."""
    shape = x.type.shape
    v = tensor(value, mode)
    if v.type.dtype != x.type.dtype:
        scalar = x.type.with_shape(v.type.shape)
        v = wrap(mode, fit(mode, read(v), scalar, "unsafe"))
    if v.type.ndim == 0 or (v.type.ndim == 1 and is_one(mode, v.type.shape[0])):
        if v.type.ndim:
            v = view_of(v, IndexMap((), (AxisMap(0),)))
        assign(x, apply(R("where"), mask, v, x))
        return
    if v.type.ndim > 1:
        raise errors.DTypeError(_ROWS.format(v.type.ndim))
    if isinstance(mode, TraceMode):
        values = _counted(mode, v, count_of(mode, mask))
        value_of = mode.matched(read(mask), shape)
        assign(x, wrap(mode, mode.apply(R("expand"), [read(x), value_of, values], {})[0]))
        return
    count = int(np.count_nonzero(plain(mask)))
    if v.type.shape[0] != count:
        raise errors.ShapeError(
            f"{_MASKED}cannot assign {v.type.shape[0]} input values to the {count} output values where the mask is true"
        )
    assign(x, apply(R("expand"), x, mask, v))


def _check_rows(mode: TraceMode, mask: Any, shape: Shape, value: Any) -> None:
    """`x[mask] = value` with a mask whose sizes only the run compares: where they differ, it is empty."""
    ndim = value.type.ndim if type(value) is Tensor else np.ndim(value)
    if ndim > 1:
        pairs = zip(array_tensor(mask, mode).type.shape, shape, strict=True)
        differs = mode.any_of(*(mode.compare("ne", have, wanted) for have, wanted in pairs if have != wanted))
        mode.check(differs, "TypeError", _ROWS.format(ndim))


def _counted(mode: TraceMode, v: Tensor, wanted: DimLike) -> Value:
    """A value for each true element: as many as are given, or, where only the run knows the sizes, one for all.

    Raises:
        ShapeError: there are more or fewer, known before the run.
    """
    given = v.type.shape[0]
    message = _MASKED + "cannot assign {0} input values to the {1} output values where the mask is true"
    values: Value = read(v)
    try:
        same: bool | None = mode.decide("==", given, wanted)
    except Undecided:
        same = None
    if same:
        return values
    if same is False:
        raise errors.ShapeError(message.format(mode.example(given), mode.example(wanted)))
    fits = mode.compare("eq", given, wanted)
    if mode.builder.prove("==", given, 1) is None:
        fits = mode.any_of(fits, mode.compare("eq", given, 1))
    mode.check(fits, "ValueError", message, given, wanted)
    return mode.stretch(values, (wanted,))


def scatter(mode: Mode, x: Tensor, items: Sequence[Item], value: Any) -> None:
    """`x[..., index, ...] = value`: one write for each index, in order, so that the last one wins."""
    fitted: list[Tensor] = []
    g = gathering(mode, x, items, lambda shape: fitted.append(_fitted(mode, value, x, shape)))
    if g.nothing:
        return
    v = fitted[0]
    if g.front:
        count = len(g.wide)
        v = transpose(v, [*range(g.front, g.front + count), *range(g.front), *range(g.front + count, len(g.shape))])
    order = [*g.places, *g.others]
    moved = transpose(g.base, order) if order != list(range(len(order))) else g.base
    assign(moved, apply(R("scatter"), moved, *g.indices, v, axis=0))


def _broadcast(mode: Mode, x: Tensor, shape: Shape) -> Tensor:
    """`x`, which fits `shape` (decided before), with every axis repeated."""
    if not isinstance(mode, TraceMode):
        return x if x.type.shape == shape else stretched(x, shape)
    value = mode.stretch(read(x), shape)
    if value.type.shape != shape:
        value = mode.view(value, IndexMap.broadcast(value.type.shape, shape))
    return wrap(mode, value)


def _is_none(mode: Mode, size: DimLike) -> bool:
    """Whether a size is 0: by proof, guard or assumption."""
    try:
        return mode.decide("==", size, 0)
    except Undecided as unknown:
        assert isinstance(mode, TraceMode)
        return settle(mode, unknown, "x[index] = values")


def _fitted(mode: Mode, value: Any, x: Tensor, shape: Shape) -> Tensor:
    """The value cast and broadcast to what is written.

    Raises:
        ShapeError: it does not fit.
    """
    v = tensor(value, mode)
    t = x.type.with_shape(shape)
    try:
        fitted = wrap(mode, fit(mode, read(v), t, "unsafe"))
    except errors.ShapeError:
        more = v.type.ndim - len(shape)
        last = v.type.shape[max(more, 0) :]
        if more > 0 and any(_is_none(mode, d) for d in last):  # NumPy looks at the last axes only
            return _fitted(mode, empty_result(mode, last, v.type.dtype), x, shape)
        known = [[mode.example(d) if isinstance(mode, TraceMode) else d for d in s] for s in (v.type.shape, shape)]
        given, wanted = (array_shape_text(tuple(s)) for s in known)
        raise errors.ShapeError(
            f"shape mismatch: value array of shape {given} could not be broadcast to indexing result of shape {wanted}"
        ) from None
    return fitted if fitted.type.shape == shape else _broadcast(mode, array_tensor(fitted), shape)
