"""`ufunc.at`: every index counts, also repeated ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.graph import Block
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode
from jitgraph.tensor import EAGER, Mode, Tensor, apply, assign, make, plain, read, set_version, view_of, wrap
from jitgraph.xp.core import EXPORTS, NUMPY_TABLE, R, array_tensor, mode_in, product, tensor, unwrap
from jitgraph.xp.elementwise import UFUNCS
from jitgraph.xp.indexing import arrangement, base_axes, basic_view, common_index_shape, integer_index
from jitgraph.xp.keys import parse
from jitgraph.xp.placing import fitted_to, target_of
from jitgraph.xp.shape import reshape_to, stretched, transpose


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None) -> None:
    """`ufunc.at(a, indices, b)`: every index counts, also repeated ones; casts are unsafe, as NumPy's are.

    A key without index arrays names each element once: one write. Index arrays make a loop of the graph, but for sums,
    which have an operator (`scatter_add`).
    """
    m = mode_in((a, indices, b))
    if m is None:
        ufunc.at(a, indices, *(() if b is None else (b,)))
        return
    if type(a) is not Tensor and not isinstance(a, np.ndarray):
        raise errors.DTypeError("first operand must be array")
    x = target_of(a, f"{ufunc.__name__}.at")
    if m is EAGER:
        ufunc.at(plain(x), unwrap(indices), *(() if b is None else (unwrap(b),)))
        return
    if ufunc.nout > 1:
        raise errors.ShapeError("Only single output ufuncs supported at this time")
    if ufunc.nin == 1 and b is not None:
        raise errors.ShapeError("second operand provided when ufunc is unary")
    if ufunc.nin == 2 and b is None:
        raise errors.ShapeError("second operand needed for ufunc")
    value = None if b is None else array_tensor(tensor(b, m))
    parsed = parse(m, indices, x.type.shape)
    view = basic_view(m, x, parsed.items)
    if not parsed.advanced:
        assign(view, _applied(ufunc, view, value), "unsafe")
        return
    arrays, places, adjacent = arrangement(parsed.items)
    names = base_axes(parsed.items)
    found = [integer_index(m, i, view.type.shape[p], names[p]) for i, p in zip(arrays, places, strict=True)]
    wide = common_index_shape(m, [i.type.shape for i in found])
    rest = tuple(d for k, d in enumerate(view.type.shape) if k not in places)
    front = places[0] if adjacent else 0
    target = (*rest[:front], *wide, *rest[front:])
    if value is not None:
        value = _spread(m, value, target)
        count = len(wide)
        if front:
            value = transpose(value, [*range(front, front + count), *range(front), *range(front + count, len(target))])
        value = reshape_to(value, (product(wide), *rest))
    flat = [reshape_to(_spread(m, i, wide), (product(wide),)) for i in found]
    order = [*places, *(k for k in range(view.type.ndim) if k not in places)]
    moved = transpose(view, order) if order != list(range(view.type.ndim)) else view
    if _sums(ufunc, x, value) and len(flat) == 1:
        given = EXPORTS["negative"](value) if ufunc is np.subtract else value
        assign(moved, apply(R("scatter_add"), moved, flat[0], given, axis=0))
    elif isinstance(m, TraceMode):
        _at_loop(m, ufunc, moved, flat, value)
    else:
        _at_once(m, ufunc, moved, flat, value)


#: Their loops over elements by index have no vectors, whose products of complex numbers are rounded otherwise.
_PRODUCTS = frozenset((np.multiply, np.square))


def _sums(ufunc: np.ufunc, x: Tensor, value: Tensor | None) -> bool:
    """Whether the operator for sums does it: dtypes agree, and taking away is adding the negative."""
    dtype = x.type.dtype
    if value is None or value.type.dtype != dtype or dtype.kind == "b":
        return False
    return ufunc is np.add or ufunc is np.subtract


def _applied(ufunc: np.ufunc, old: Tensor, value: Tensor | None) -> Any:
    function = NUMPY_TABLE.get(ufunc)
    if function is None:
        raise errors.TraceError(
            errors.describe(
                f"np.{ufunc.__name__}.at has no compiled form",
                remedy="keep it outside the jitted function, wrap it with jg.host, or use @jit(fallback='eager').",
            )
        )
    if ufunc in _PRODUCTS and any(v is not None and v.type.dtype.kind == "c" for v in (old, value)):
        return apply(R("plain_mul"), old, old if value is None else value)
    mode = old._storage.mode
    if isinstance(mode, TraceMode) and mode.exact and ufunc in UFUNCS and R(UFUNCS[ufunc]).ulp:
        old, value = _laid_out(old), None if value is None else _laid_out(value)  # NumPy's loop sees one element
    return function(old) if value is None else function(old, value)


def _laid_out(x: Tensor) -> Tensor:
    return apply(R("copy"), x, order="C") if x.type.ndim and not x.type.layout.is_c else x


def _spread(mode: Mode, x: Tensor, shape: Shape) -> Tensor:
    """`x` broadcast to `shape`.

    Raises:
        ShapeError: it does not fit.
    """
    if x.type.shape == shape:
        return x
    try:
        return stretched(x, shape)
    except errors.ShapeError:
        raise errors.ShapeError("array is not broadcastable to correct shape") from None


def _at_loop(mode: TraceMode, ufunc: np.ufunc, target: Tensor, indices: list[Tensor], value: Tensor | None) -> None:
    """A loop of the graph over the indices, in order: each turn reads, computes and writes one place."""
    count = indices[0].type.shape[0]
    b = mode.builder
    storage = target._storage
    entry = storage.value
    given = [read(i) for i in indices]
    values = None if value is None else read(value)
    symbol = mode.fresh_symbol("j", "index", 0, count - 1)
    body = Block([entry.type])
    outer, before = b.block, b.before
    b.at_end(body)
    storage.value = body.args[0]
    places = []
    for i, size in zip(given, target.type.shape, strict=False):
        one = mode.view(i, IndexMap((), (AxisMap(symbol, 0, None),)))
        places.append(mode.bind(b.apply(R("as_kind"), one, kind="np_scalar")[0], "i", 0, size - 1))
    rest = target.type.shape[len(indices) :]
    whole = [AxisMap(0, 1, k) for k in range(len(rest))]
    spot = view_of(
        make(storage, target._steps, target._type), IndexMap(rest, (*(AxisMap(p, 0, None) for p in places), *whole))
    )
    part = None if values is None else wrap(mode, mode.view(values, IndexMap(rest, (AxisMap(symbol, 0, None), *whole))))
    result = _applied(ufunc, spot, part)
    version = mode.write(body.args[0], spot._steps, fitted_to(mode, result, spot, "unsafe"))
    b.emit(REGISTRY["yield"], [version], ())
    b.block, b.before = outer, before
    storage.value = entry
    attrs = {"index": str(symbol), "lower": 0, "upper": count, "step": 1}
    set_version(storage, b.emit(REGISTRY["for"], [entry], [entry.type], attrs, [body]).result)


def _at_once(mode: Mode, ufunc: np.ufunc, target: Tensor, indices: list[Tensor], value: Tensor | None) -> None:
    """On the tape, where the indices are known: one step for each."""
    known = [np.asarray(plain(i)) for i in indices]
    for k in range(len(known[0])):
        key = tuple(int(i[k]) for i in known)
        rest = target.type.shape[len(key) :]
        axes = (*(AxisMap(p, 0, None) for p in key), *(AxisMap(0, 1, j) for j in range(len(rest))))
        spot = view_of(target, IndexMap(rest, axes))
        part = None
        if value is not None:
            row = (AxisMap(k, 0, None), *(AxisMap(0, 1, j) for j in range(len(rest))))
            part = view_of(value, IndexMap(rest, row))
        assign(spot, _applied(ufunc, spot, part), "unsafe")


def _at_method(ufunc: np.ufunc) -> Any:
    def method(a: Any, indices: Any, b: Any = None, /) -> None:
        at(ufunc, a, indices, b)

    method.__name__ = f"{ufunc.__name__}.at"
    return method


def install_at() -> None:
    """`ufunc.at` for every ufunc on single elements that has a stand-in: NumPy has none for products of vectors."""
    ufuncs = [u for u in NUMPY_TABLE if isinstance(u, np.ufunc) and u.signature is None]
    for ufunc in [u for u in ufuncs if u.nout == 1 and u.nin <= 2]:
        NUMPY_TABLE[ufunc, "at"] = _at_method(ufunc)
