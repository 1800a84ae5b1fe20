"""Writes by index: masks are selects or `expand`, integer arrays one write for each index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import dim_min
from jitgraph.ir.graph import Block
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    assign,
    dim_tensor,
    is_writable,
    lift,
    make,
    plain,
    read,
    set_version,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    mode_in,
    numpy_function,
    operand,
    product,
    tensor,
    translate,
    unwrap,
)
from jitgraph.xp.indexing import arrangement, base_axes, basic_view, common_index_shape, flattened, integer_index
from jitgraph.xp.keys import full_mask, mask_rank, match_mask, parse
from jitgraph.xp.shape import ravel, reshape_to, stretched, transpose

# --- writing

_MASKED = "NumPy boolean array indexing assignment "


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
    if isinstance(value, (list, tuple)):
        value = tensor(value, mode)
    mask = full_mask(mode, key, len(t.shape))
    if mask is not None:
        _masked_write(mode, x, mask, value)
        return
    lower = _leading_mask(mode, x, key)
    if lower is not None and _is_single(value):
        wide = reshape_to(lower, (*lower.type.shape, *(1,) * (t.ndim - lower.type.ndim)))
        _masked_write(mode, x, wide, value)
        return
    parsed = parse(mode, key, t.shape)
    if not parsed.advanced:
        assign(basic_view(mode, x, parsed.items), value)
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
        match_mask(mode, mask.type.shape, x.type.shape[: mask.type.ndim], 0)
        return mask
    return None


def _masked_write(mode: Mode, x: Tensor, mask: Tensor, value: Any) -> None:
    """One value for all: a select; one for each true element: `expand`."""
    shape = x.type.shape
    if mask.type.ndim == len(shape) and 1 not in mask.type.shape:
        match_mask(mode, mask.type.shape, shape, 0)
    v = tensor(value, mode)
    if v.type.dtype.kind == "c" and x.type.dtype.kind != "c":
        raise errors.DTypeError("float() argument must be a string or a real number, not 'complex'")
    if v.type.dtype != x.type.dtype:
        from jitgraph.xp.core import fit

        scalar = x.type.with_shape(v.type.shape)
        v = wrap(mode, fit(mode, read(v), scalar, "unsafe"))
    if v.type.ndim == 0 or v.type.shape == (1,):
        if v.type.ndim:
            v = reshape_to(v, ())
        assign(x, apply(R("where"), mask, v, x))
        return
    if v.type.ndim > 1:
        raise errors.ShapeError(f"{_MASKED}requires a 0 or 1-dimensional input, input has {v.type.ndim} dimensions")
    if isinstance(mode, TraceMode):
        count = apply(R("reduce_sum"), mask, axes=tuple(range(mask.type.ndim)), keepdims=False)
        length = dim_tensor(mode, v.type.shape[0])
        given, wanted = lift(mode, length), read(count)
        mode.check(
            mode.builder.apply(R("eq"), given, wanted)[0], "ValueError",
            _MASKED + "cannot assign {0} input values to the {1} output values where the mask is true",
            given, wanted,
        )  # fmt: skip
        value_of = mode.stretch(read(mask), shape)
        assign(x, wrap(mode, mode.apply(R("expand"), [read(x), value_of, read(v)], {})[0]))
        return
    count = int(np.count_nonzero(plain(mask)))
    if v.type.shape[0] != count:
        raise errors.ShapeError(
            f"{_MASKED}cannot assign {v.type.shape[0]} input values to the {count} output values where the mask is true"
        )
    assign(x, apply(R("expand"), x, mask, v))


def scatter(mode: Mode, x: Tensor, items: Sequence[tuple[str, Any]], value: Any) -> None:
    """`x[..., index, ...] = value`: one write for each index, in order, so that the last one wins."""
    base = basic_view(mode, x, items)
    arrays, places, adjacent = arrangement(items)
    names = base_axes(items)
    indices = [integer_index(mode, a, base.type.shape[p], names[p]) for a, p in zip(arrays, places, strict=True)]
    index, axis = indices[0], places[0]
    merged = base
    if len(indices) > 1 or index.type.ndim != 1 or axis != 0:
        # bring the indexed axes to the front, as one axis of a work array
        order = [*places, *(k for k in range(base.type.ndim) if k not in places)]
        merged = transpose(base, order)
    wide = common_index_shape(mode, [i.type.shape for i in indices])
    rest = tuple(d for k, d in enumerate(base.type.shape) if k not in places)
    front = axis if adjacent else 0
    target = (*rest[:front], *wide, *rest[front:])
    v = _fitted(mode, value, x, target)
    if front:
        count = len(wide)
        v = transpose(v, [*range(front, front + count), *range(front), *range(front + count, len(target))])
    flat = [reshape_to(_broadcast(mode, i, wide), (product(wide),)) for i in indices]
    v = reshape_to(v, (product(wide), *rest))
    if 0 in v.type.shape:
        return
    if isinstance(mode, TraceMode):
        _scatter_loop(mode, merged, flat, v)
    else:
        _scatter_once(mode, merged, flat, v, base.type.shape, places)


def _broadcast(mode: Mode, x: Tensor, shape: Shape) -> Tensor:
    """`x`, which fits `shape` (decided before), with every axis repeated."""
    if not isinstance(mode, TraceMode):
        return x if x.type.shape == shape else stretched(x, shape)
    value = mode.stretch(read(x), shape)
    if value.type.shape != shape:
        value = mode.view(value, IndexMap.broadcast(value.type.shape, shape))
    return wrap(mode, value)


def _fitted(mode: Mode, value: Any, x: Tensor, shape: Shape) -> Tensor:
    """The value cast and broadcast to what is written."""
    from jitgraph.xp.core import fit

    v = tensor(value, mode)
    t = x.type.with_shape(shape)
    fitted = wrap(mode, fit(mode, read(v), t, "unsafe"))
    return fitted if fitted.type.shape == shape else _broadcast(mode, array_tensor(fitted), shape)


def _scatter_loop(mode: TraceMode, target: Tensor, indices: list[Tensor], value: Tensor) -> None:
    """A loop of the graph that writes element by element."""
    count = value.type.shape[0]
    b = mode.builder
    storage = target._storage
    entry = storage.value
    index_values = [read(i) for i in indices]
    written = read(value)
    symbol = mode.fresh_symbol("j", "index", 0, count - 1)
    body = Block([entry.type])
    outer, before = b.block, b.before
    b.at_end(body)
    storage.value = body.args[0]
    at = []
    for i, size in zip(index_values, target.type.shape, strict=False):
        one = mode.view(i, IndexMap((), (AxisMap(symbol, 0, None),)))
        number = b.apply(R("as_kind"), one, kind="np_scalar")[0]
        at.append(mode.bind(number, "i", 0, size - 1))
    rest = target.type.shape[len(indices) :]
    place = IndexMap(rest, (*(AxisMap(a, 0, None) for a in at), *(AxisMap(0, 1, k) for k in range(len(rest)))))
    row = IndexMap(rest, (AxisMap(symbol, 0, None), *(AxisMap(0, 1, k) for k in range(len(rest)))))
    spot = view_of(make(storage, target._steps, target._type), place)
    version = mode.write(body.args[0], spot._steps, mode.view(written, row))
    b.emit(REGISTRY["yield"], [version], ())
    b.block, b.before = outer, before
    storage.value = entry
    loop = b.emit(
        REGISTRY["for"], [entry], [entry.type], {"index": str(symbol), "lower": 0, "upper": count, "step": 1}, [body]
    )
    set_version(storage, loop.result)


def _scatter_once(
    mode: Mode, target: Tensor, indices: list[Tensor], value: Tensor, shape: Shape, places: list[int]
) -> None:
    """On the tape, where the indices are known: the last write to each place, added into zeros, selected by a mask."""
    sizes = [shape[p] for p in places]
    data: list[Any] = [np.asarray(plain(i)) for i in indices]
    known: Any = tuple(sizes)
    flat: Any = np.ravel_multi_index(tuple(data), known) if len(sizes) > 1 else data[0]
    last = {int(p): k for k, p in enumerate(flat)}
    total = int(np.prod(sizes))  # type: ignore[arg-type]
    rest = target.type.shape[len(indices) :]
    chosen = wrap(mode, mode.lift(np.array(list(last.values()), np.intp)))
    spots = wrap(mode, mode.lift(np.array(list(last), np.intp)))
    mask = np.zeros((total, *(1,) * len(rest)), bool)
    mask[list(last)] = True
    zeros = wrap(mode, mode.lift(np.zeros((total, *rest), target.type.dtype)))
    placed = apply(R("scatter_add"), zeros, spots, apply(R("take"), value, chosen, axis=0), axis=0)
    old = reshape_to(target, (total, *rest))
    merged = apply(R("where"), wrap(mode, mode.lift(mask)), placed, old)
    assign(target, reshape_to(merged, target.type.shape))


def scatter_at(ufunc: np.ufunc, a: Any, indices: Any, b: Any) -> None:
    """`np.add.at`, `np.subtract.at`: every index counts, also repeated ones."""
    if type(a) is not Tensor:
        raise errors.TraceError(
            errors.describe("ufunc.at writes to a plain array from outside", remedy="pass it as an argument.")
        )
    mode = mode_in((a, indices, b))
    assert mode is not None
    if mode is EAGER:
        ufunc.at(plain(a), unwrap(indices), unwrap(b))
        return
    parsed = parse(mode, indices, a.type.shape)
    values = EXPORTS["negative"](b) if ufunc is np.subtract else b
    if not parsed.advanced:
        view = basic_view(mode, a, parsed.items)
        assign(view, EXPORTS["add"](view, values), "same_kind")
        return
    base = basic_view(mode, a, parsed.items)
    arrays, places, _ = arrangement(parsed.items)
    names = base_axes(parsed.items)
    found = [integer_index(mode, i, base.type.shape[p], names[p]) for i, p in zip(arrays, places, strict=True)]
    index, merged, axis = flattened(mode, base, found, places)
    target = (*merged.type.shape[:axis], *index.type.shape, *merged.type.shape[axis + 1 :])
    result = apply(R("scatter_add"), merged, index, _fitted(mode, values, a, target), axis=axis)
    if len(places) == 1:
        assign(base, result)
        return
    order = [k for k in range(base.type.ndim) if k not in places]
    order[places[0] : places[0]] = places
    assign(transpose(base, order), reshape_to(result, tuple(base.type.shape[k] for k in order)))


@numpy_function(np.copyto, views=True)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if type(dst) is not Tensor:
        raise errors.TraceError(
            errors.describe("copyto writes to a plain array from outside", remedy="pass it as an argument.")
        )
    if where is True:
        assign(dst, operand(src), casting)
        return
    value = EXPORTS["where"](where, src, dst)
    assign(dst, value, casting)


@numpy_function(np.put, views=True)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    flat = reshape_to(a, (product(a.type.shape),))
    if flat._storage is not a._storage:
        raise errors.TraceError(errors.describe("put on an array that is not contiguous has no compiled form"))
    setitem(flat, ravel(tensor(ind, mode_in((a, ind)))), v)


@numpy_function(np.fill_diagonal, views=True)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if a.type.ndim != 2 or wrap:
        raise errors.ShapeError("fill_diagonal takes an array with two axes here")
    rows, columns = a.type.shape
    try:
        size = rows if a._storage.mode.decide("<=", rows, columns) else columns
    except Undecided:
        size = dim_min(rows, columns)
    assign(view_of(a, IndexMap((size,), (AxisMap(0, 1, 0), AxisMap(0, 1, 0)))), val)
