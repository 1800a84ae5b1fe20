"""Writes by NumPy's functions: `copyto`, `put`, `place`, `putmask`, `fill_diagonal`, and through `x.flat`.

Each is a select, or a write at index arrays, over the operators that subscripts use. Values that are too few are
repeated: the value at a place is found by a remainder, never stored in full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_min, floordiv
from jitgraph.ir.graph import Value
from jitgraph.ir.types import AxisMap, IndexMap, Shape
from jitgraph.modes import TraceMode
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    assign,
    dim_tensor,
    lift,
    plain,
    read,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    lift_plain,
    mask_of,
    mode_in,
    numpy_function,
    operand,
    product,
    sizes_agree,
    tensor,
    unwrap,
)
from jitgraph.xp.indexing import (
    SAFE,
    basic_view,
    getitem,
    integer_index,
)
from jitgraph.xp.keys import mask_rank, parse
from jitgraph.xp.shape import ravel, reshape_to, stretched
from jitgraph.xp.storable import (
    check_number,
    check_sequence,
    index_array,
    listed,
    mode_named,
    refuse_order,
    refuse_overlap,
    refuse_sequence,
    same_size,
    stored,
)
from jitgraph.xp.writes import setitem

# --- what all share


def target_of(x: Any, what: str) -> Tensor:
    """The array that is written.

    Raises:
        TraceError: it is a plain array that the trace does not know.
        DTypeError: it is no array.
        ReadOnlyError: it is read-only.
    """
    from jitgraph.tensor import is_writable

    if type(x) is not Tensor:
        if isinstance(x, np.ndarray):
            lift_plain()
            raise errors.TraceError(
                errors.describe(f"{what} writes to a plain array from outside", remedy="pass it as an argument.")
            )
        raise errors.DTypeError(f"{what}: the first argument must be an array, not {type(x).__name__}")
    if x.type.kind != "array":
        raise errors.DTypeError(f"{what}: the first argument must be an array, not a scalar")
    if not is_writable(x):
        raise errors.ReadOnlyError(f"{what}: output array is read-only")
    return x


def as_dtype(x: Any, dtype: np.dtype, mode: Mode, casting: str = "unsafe") -> Tensor:
    """Values as the flat array of `dtype` that NumPy makes of them: Python's numbers and lists have to fit.

    Args:
        casting: what arrays may be cast by; numbers may be by any.

    Raises:
        OverflowError, ValueError, DTypeError: NumPy's own.
    """
    if isinstance(x, (list, tuple)):
        t = listed(mode, x, dtype)
    else:
        x = stored(mode, x, dtype, element=False)
        check_number(mode, x, dtype, elements=True)
        t = tensor(x, mode)
        is_array = t.type.kind == "array" and isinstance(x, np.ndarray | Tensor)
        if is_array and casting != "unsafe" and not np.can_cast(t.type.dtype, dtype, casting):  # type: ignore[arg-type]
            raise errors.DTypeError(
                f"Cannot cast array data from dtype('{t.type.dtype}') to dtype('{dtype}') according to the rule "
                f"'{casting}'"
            )
    if t.type.dtype != dtype or t.type.kind != "array":
        from jitgraph.xp.core import fit

        value = lift(mode, t)
        t = wrap(mode, fit(mode, value, array_tensor(t).type.with_dtype(dtype), "unsafe"))
    return ravel(array_tensor(t))  # type: ignore[no-any-return]


def is_empty(mode: Mode, size: DimLike) -> bool | None:
    """Whether a size is 0, by proof or guard; None if only the run knows."""
    if isinstance(size, int):
        return size == 0
    try:
        return mode.decide("==", size, 0)
    except Undecided:
        return None


def no_elements(mode: Mode, size: DimLike) -> bool:
    """Whether a size is 0, by proof or guard; a size that only the run knows is checked to be more."""
    found = is_empty(mode, size)
    if found is None:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("ne", size, 0), "deoptimise", "no values to be placed")
    return bool(found)


def with_values(mode: Mode, places: DimLike, count: DimLike) -> DimLike:
    """How many of the places are written: none if there turn out to be no values."""
    if is_empty(mode, count) is not None or same_size(mode, count, places):
        return places
    return dim_min(places, places * count)


def leading(x: Tensor, size: DimLike) -> Tensor:
    """The first elements of an array of one axis; what is known of all its elements is known of them."""
    if size == x.type.shape[0]:
        return x
    found = view_of(x, IndexMap((size,), (AxisMap(0, 1, 0),)))
    found._dim = x._dim
    return found


def _with_values(mode: Mode, chosen: Tensor, count: DimLike) -> Tensor:
    """A mask that is true nowhere if there turn out to be no values."""
    if is_empty(mode, count) is not None:
        return chosen
    assert isinstance(mode, TraceMode)
    return tensor(EXPORTS["logical_and"](chosen, wrap(mode, mode.compare("ne", count, 0))), mode)


def repeated(values: Tensor, places: Any) -> Tensor:
    """The value for each number in `places`, as if the flat `values` went on for ever from the start again."""
    mode, count = values._storage.mode, values.type.shape[0]
    if isinstance(count, int) and count == 1:
        return reshape_to(values, ())
    index = EXPORTS["remainder"](places, count if isinstance(count, int) else dim_tensor(mode, count))
    index = tensor(index, mode)
    index._dim = SAFE
    return apply(R("take"), values, index, axis=0)  # type: ignore[no-any-return]


def positions(mode: Mode, size: DimLike) -> Tensor:
    """0, 1, ..., size - 1."""
    return tensor(EXPORTS["arange"](dim_tensor(mode, size)), mode)


def write_flat(x: Tensor, index: Tensor, values: Tensor) -> None:
    """`x.flat[index] = values` for positions in range, of any layout of `x`."""
    size = product(x.type.shape)
    flat = reshape_to(x, (size,))
    if flat._storage is x._storage:
        setitem(flat, index, values)
        return
    mode = x._storage.mode
    parts: list[Any] = []
    left: Any = index
    for d in reversed(x.type.shape[1:]):
        by = d if isinstance(d, int) else dim_tensor(mode, d)
        parts.append(EXPORTS["remainder"](left, by))
        left = EXPORTS["floor_divide"](left, by)
    parts.append(left)
    for p in parts:
        p._dim = SAFE
    setitem(x, tuple(reversed(parts)), values)


# --- x.flat


def flat_value(x: Tensor) -> Tensor:
    """The elements in C order: a view of `x`, or computed where they are read."""
    return reshape_to(x, (product(x.type.shape),))


def flat_getitem(x: Tensor, key: Any) -> Any:
    """`x.flat[key]`: a scalar or a copy."""
    if isinstance(key, tuple):
        if len(key) != 1:
            raise errors.IndexingError("unsupported iterator index")
        (key,) = key
    found = getitem(flat_value(x), key)
    if type(found) is Tensor and found.type.kind == "array" and found._storage is x._storage:
        return apply(R("copy"), found, order="C")
    return found


def flat_setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x.flat[key] = value`, from the first value again if there are too few."""
    x = target_of(EXPORTS["array"](x) if x.type.kind == "np_scalar" else x, "x.flat")  # into a copy of a scalar
    mode = mode_in((x, key, value)) or x._storage.mode
    if isinstance(key, int | np.integer) or (
        type(key) is Tensor and key.type.kind != "array" and key.type.dtype.kind in "iu"
    ):
        try:
            from_list = isinstance(value, list | tuple)
            value = stored(mode, value, x.type.dtype, element=True)
            check_number(mode, value, x.type.dtype, elements=False, refusal=("ValueError", _SINGLE))
            check_sequence(value, x.type.dtype, 0, scalar=x.type.dtype.kind != "b", from_list=from_list)
            if type(value) is Tensor and not sizes_agree(mode, product(value.type.shape), 1, _SINGLE):
                raise errors.ShapeError(_SINGLE)
        except (ValueError, OverflowError, TypeError):
            raise errors.ShapeError(_SINGLE) from None
    values = as_dtype(value, x.type.dtype, mode)
    count = values.type.shape[0]
    if is_empty(mode, count):
        return
    flat = flat_value(x)
    shares = flat._storage is x._storage
    if not shares:
        flat = apply(R("copy"), flat, order="C")
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    is_mask = mask_rank(key) == 1 or (isinstance(key, list) and np.asarray(key).dtype.kind == "b")
    if is_mask:
        key = EXPORTS["true_positions"](array_tensor(tensor(key, mode)))[0]
    items = parse(mode, key, flat.type.shape)
    if not items.advanced:
        part = basic_view(mode, flat, items.items)
        size = product(part.type.shape)
        fitting = same_size(mode, count, size)
        whole = fitting and _same_elements(part, flat)
        if size != 1:
            refuse_sequence(part if shares and not whole else x, value, _FLAT, ordered=whole or shares)
        if part.type.ndim:
            size = with_values(mode, size, count)
            part = leading(part, size)
        assign(part, reshape_to(values if fitting else _first(values, positions(mode, size)), part.type.shape))
    else:
        if is_empty(mode, count) is None:  # without values no place is looked at
            if type(key) is not Tensor or key.type.ndim != 1:
                key = ravel(array_tensor(index_array(key, mode, "same_kind")))
            key = leading(key, with_values(mode, key.type.shape[0], count))
        places = integer_index(mode, key, flat.type.shape[0], 0)
        size = product(places.type.shape)
        fitting = same_size(mode, count, size)
        refuse_sequence(x, value, _FLAT, ordered=False)
        setitem(flat, ravel(places), values if fitting else repeated(values, positions(mode, size)))
    if not shares:
        assign(x, reshape_to(flat, x.type.shape))


_FLAT = "x.flat[...] = values"
_SINGLE = "Error setting single item of array."


def _first(values: Tensor, places: Tensor) -> Tensor:
    """`repeated` values that keep their axis."""
    found = repeated(values, places)
    return found if found.type.ndim else tensor(EXPORTS["broadcast_to"](found, places.type.shape))


def set_flat(x: Tensor, value: Any) -> None:
    """`x.flat = value`."""
    flat_setitem(x, slice(None), value)


# --- copyto, put, place, putmask


@numpy_function(np.copyto, views=True)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if _same_elements(dst, src):  # NumPy sees this before it looks whether it may write
        return
    x = target_of(dst, "copyto")
    refuse_order(x, src)
    if where is True:
        assign(x, operand(src), casting)
        return
    mode = x._storage.mode
    if mode is EAGER and mode_in((src, where)) in (None, EAGER):
        np.copyto(plain(x), unwrap(src), casting=casting, where=unwrap(where))  # type: ignore[arg-type]
        return
    mode = mode_in((dst, src, where)) or mode
    mask = mask_of(where, mode)
    value = wrap(mode, fitted_to(mode, src, x, casting))
    chosen = stretched_mask(mode, mask, x.type.shape, "could not broadcast where mask from shape")
    assign(x, apply(R("where"), chosen, value, x))


def _same_elements(x: Any, y: Any) -> bool:
    """Whether two arrays are the same view of the same memory."""
    if type(x) is not Tensor or type(y) is not Tensor or x._storage is not y._storage or x.type.kind != "array":
        return False
    if x.type.shape != y.type.shape or x.type.dtype != y.type.dtype:
        return False
    own, other = (_moving(t, t._storage.value) for t in (x, y))
    return own == other


def _moving(x: Tensor, base: Any) -> list[Any]:
    """The steps that lead to a view, but those that leave all elements where they are."""
    shape = base.type.shape if isinstance(base, Value) else np.shape(base)
    found: list[Any] = []
    for step in x._steps:
        if isinstance(step, IndexMap):
            if not step.is_identity(shape):
                found.append(step)
            shape = step.shape
        else:
            found.append(step)
            shape = step if isinstance(step, tuple) else None
    return found


def fitted_to(mode: Mode, value: Any, x: Tensor, casting: str) -> Any:
    """The value of the mode that `x[...] = value` would store."""
    from jitgraph.xp.core import fit

    return fit(mode, lift(mode, operand(value)), x.type, casting)


def stretched_mask(mode: Mode, mask: Tensor, shape: Shape, message: str) -> Tensor:
    """A mask broadcast to `shape`.

    Raises:
        ShapeError: it does not fit.
    """
    own = mask.type.shape
    if own == shape or not own:
        return mask
    try:
        return stretched(mask, shape)
    except errors.ShapeError:
        from jitgraph.sizes import shape_text

        raise errors.ShapeError(f"{message} {shape_text(own)} into shape {shape_text(shape)}") from None


_EMPTY = "cannot replace elements of an empty array"


@numpy_function(np.put, views=True)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`a.flat[ind] = v`, values repeated as needed; `mode` "wrap" and "clip" change positions out of range."""
    number = isinstance(a, np.generic) or (type(a) is Tensor and a.type.kind == "np_scalar")
    if number or type(a) is Tensor:
        mode = mode_named(mode)
    x = target_of(EXPORTS["array"](a) if number else a, "put")  # into a copy of a scalar, as NumPy does
    m = mode_in((a, ind, v)) or EAGER
    if m is EAGER:
        np.put(plain(x), unwrap(ind), unwrap(v), mode)  # type: ignore[arg-type]
        return
    index = ravel(array_tensor(index_array(ind, m, "safe")))
    count, size = index.type.shape[0], product(x.type.shape)
    nothing = is_empty(m, count)
    if not nothing and no_elements(m, size):
        if nothing is None:
            assert isinstance(m, TraceMode)
            m.check(m.compare("eq", count, 0), "IndexError", _EMPTY)
            return
        raise errors.IndexingError(_EMPTY)
    values = as_dtype(v, x.type.dtype, m)
    given = values.type.shape[0]
    if nothing or is_empty(m, given):
        return
    count = with_values(m, count, given)  # without values no place is looked at
    index = leading(index, count)
    if mode == "raise":
        index = integer_index(m, index, size, 0)
    elif mode == "wrap":
        index = EXPORTS["remainder"](index, size if isinstance(size, int) else dim_tensor(m, size))
    else:
        index = EXPORTS["clip"](index, 0, dim_tensor(m, size - 1))
    index._dim = SAFE
    if not same_size(m, given, count):
        values = repeated(values, positions(m, count))
    write_flat(x, index, values)


def _mask_like(mask: Any, x: Tensor, mode: Mode, what: str) -> Tensor:
    """The mask of `place` and `putmask`: as many elements as `x`, in its shape."""
    t = array_tensor(tensor(mask, mode))
    if t.type.dtype.kind != "b":
        t = tensor(EXPORTS["not_equal"](t, 0), mode)
    message = f"{what}: mask and data must be the same size"
    if t.type.shape == x.type.shape:
        return t
    if not sizes_agree(mode, product(t.type.shape), product(x.type.shape), message):
        raise errors.ShapeError(message)
    return reshape_to(t, x.type.shape)


@numpy_function(np.place, views=True)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """The elements where `mask` is true become `vals`, one after the other, from the start again if there are few."""
    x = target_of(arr, "place")
    m = mode_in((arr, mask, vals)) or EAGER
    if m is EAGER:
        np.place(plain(x), unwrap(mask), unwrap(vals))
        return
    if type(vals) is Tensor and vals.type.layout.is_c:  # of all others NumPy makes a copy
        refuse_overlap(x, vals, "np.place")
    chosen = _mask_like(mask, x, m, "place")
    values = as_dtype(vals, x.type.dtype, m, "safe")
    count = values.type.shape[0]
    nothing = is_empty(m, count)
    if nothing is not False:
        some = EXPORTS["any"](chosen)
        text = "Cannot insert from an empty array!"
        if isinstance(m, TraceMode):
            fits = m.apply(R("logical_not"), [read(tensor(some, m))], {})[0]
            if not nothing:
                fits = m.apply(R("logical_or"), [fits, m.compare("ne", count, 0)], {})[0]
            m.check(fits, "ValueError", text)
        elif bool(plain(some)):
            raise errors.ShapeError(text)
        if nothing:
            return
    if count == 1:
        value = reshape_to(values, ())
    else:
        order = EXPORTS["cumsum"](ravel(chosen), dtype=np.int64)
        number = reshape_to(tensor(EXPORTS["subtract"](order, 1), m), x.type.shape)
        value = repeated(values, number)
    assign(x, apply(R("where"), chosen, value, x))


@numpy_function(np.putmask, views=True)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """`a.flat[k] = values[k % len(values)]` for each k where the mask is true."""
    x = target_of(a, "putmask")
    m = mode_in((a, mask, values)) or EAGER
    if m is EAGER:
        np.putmask(plain(x), unwrap(mask), unwrap(values))
        return
    chosen = _mask_like(mask, x, m, "putmask")
    flat = as_dtype(values, x.type.dtype, m, "safe")
    count, size = flat.type.shape[0], product(x.type.shape)
    if is_empty(m, count):
        return
    chosen = _with_values(m, chosen, count)
    if isinstance(count, int) and count == 1:
        value = reshape_to(flat, ())
    elif same_size(m, count, size):
        value = reshape_to(flat, x.type.shape)
    else:
        value = reshape_to(repeated(flat, positions(m, size)), x.type.shape)
    assign(x, apply(R("where"), chosen, value, x))


@numpy_function(np.fill_diagonal, views=True)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """The main diagonal, of all axes at once; with `wrap` it starts again below in a matrix with more rows."""
    x = target_of(a, "fill_diagonal")
    shape, mode = x.type.shape, x._storage.mode
    if len(shape) < 2:
        raise errors.ShapeError("array must be at least 2-d")
    m = mode_in((a, val)) or mode
    for d in shape[1:]:
        if len(shape) > 2 and not sizes_agree(mode, shape[0], d, "All dimensions of input must be of equal length"):
            raise errors.ShapeError("All dimensions of input must be of equal length")
    size = shape[0] if len(shape) > 2 else _smaller(mode, *shape)
    tall = wrap and len(shape) == 2 and not _at_most(mode, shape[0], shape[1])
    steps = shape[1] + 1
    if tall:
        size = floordiv(shape[0] * shape[1] + steps - 1, steps)
    values = as_dtype(val, x.type.dtype, m)
    if is_empty(m, values.type.shape[0]):
        return
    size = with_values(m, size, values.type.shape[0])
    value = values if same_size(m, values.type.shape[0], size) else repeated(values, positions(m, size))
    if not tall:
        view = view_of(x, IndexMap((size,), tuple(AxisMap(0, 1, 0) for _ in shape)))
        refuse_sequence(view, val, _DIAGONAL)
        assign(view, value)
        return
    refuse_sequence(x, val, _DIAGONAL, ordered=False)
    by = steps if isinstance(steps, int) else dim_tensor(m, steps)
    index = tensor(EXPORTS["multiply"](positions(m, size), by), m)
    index._dim = SAFE
    write_flat(x, index, tensor(EXPORTS["broadcast_to"](value, dim_tensor(m, size)), m))


_DIAGONAL = "np.fill_diagonal(x, values)"


def _at_most(mode: Mode, a: DimLike, b: DimLike) -> bool:
    try:
        return mode.decide("<=", a, b)
    except Undecided:
        assert isinstance(mode, TraceMode)
        mode.check(mode.compare("le", a, b), "deoptimise", "a diagonal that may wrap")
        return True


def _smaller(mode: Mode, a: DimLike, b: DimLike) -> DimLike:
    try:
        return a if mode.decide("<=", a, b) else b
    except Undecided:
        return dim_min(a, b)
