"""NumPy's functions that choose elements or make index arrays: `choose`, `compress`, `ix_`, `unravel_index`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, floordiv
from jitgraph.modes import TraceMode
from jitgraph.tensor import Mode, Tensor, apply, current_mode, dim_tensor, lift, read, wrap
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axis_of,
    cast,
    deliver,
    empty_result,
    fresh_scalar,
    mode_in,
    no_bool,
    numpy_function,
    product,
    shape_of,
    tensor,
)
from jitgraph.xp.indexing import SAFE, Below, getitem, integer_index, is_empty, true_positions
from jitgraph.xp.placing import is_empty as is_without
from jitgraph.xp.placing import positions, write_flat
from jitgraph.xp.reductions import deliver_copied, require_copied
from jitgraph.xp.shape import along, broadcast_to, ravel, reshape_to, transpose
from jitgraph.xp.storable import index_array, mode_named
from jitgraph.xp.writes import setitem


def size_value(mode: Mode, d: DimLike) -> Any:
    """A size as an operand."""
    return d if isinstance(d, int) else dim_tensor(mode, d)


def must(mode: Mode, condition: Any, error: type[errors.JitgraphError], text: str, *values: Any) -> None:
    """Raise `error` unless all of `condition` is true: now where that is known, else when the code runs."""
    if isinstance(mode, TraceMode):
        operands = [lift(mode, v) for v in values]
        mode.check(read(tensor(condition, mode)), error.__name__, text, *operands)
    elif not bool(np.all(condition.numpy() if type(condition) is Tensor else condition)):
        raise error(text.format(*[np.ravel(v.numpy())[0] if type(v) is Tensor else v for v in values]))


# --- taking


@numpy_function(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at integer positions; `mode` "wrap" and "clip" change what is out of range."""
    mode = mode_named(mode)
    m = mode_in((a, indices, out))
    x = array_tensor(a, m)
    m = x._storage.mode
    x, k = along(x, no_bool(axis), "take")
    size = x.type.shape[k]
    index = index_array(indices, m, "same_kind")
    shape = x.type.shape
    require_copied(m, out, (*shape[:k], *index.type.shape, *shape[k + 1 :]), x.type.dtype, _OTHER_SHAPE)
    _require_elements(m, size, index)
    checked = by_mode(m, index, size, k, mode)
    if checked.type.ndim == 0 and m.name == "trace":
        checked = as_kind(checked, "np_scalar")
    return deliver_copied(apply(R("take"), x, checked, axis=k), out, _OTHER_SHAPE)


_OTHER_SHAPE = "output array does not match result of ndarray.take"


_NOTHING_TO_TAKE = "cannot do a non-empty take from an empty axes."


def _require_elements(mode: Mode, size: DimLike, index: Tensor) -> None:
    """NumPy takes nothing from an empty axis.

    Raises:
        IndexingError: there are indices, but no elements.
    """
    try:
        if not mode.decide("==", size, 0) or mode.decide("==", product(index.type.shape), 0):
            return
    except Undecided:
        assert isinstance(mode, TraceMode)
        some = mode.compare("ne", size, 0)
        none = mode.compare("eq", product(index.type.shape), 0)
        mode.check(mode.any_of(some, none), "IndexError", _NOTHING_TO_TAKE)
        return
    raise errors.IndexingError(_NOTHING_TO_TAKE)


def by_mode(m: Mode, index: Tensor, size: DimLike, axis: int, mode: str) -> Tensor:
    """Indices brought into range as `mode` says: "raise", "wrap" or "clip".

    Raises:
        IndexingError: out of range, in mode "raise".
    """
    if mode == "raise":
        return integer_index(m, index, size, axis)
    if mode == "clip":
        made = tensor(EXPORTS["clip"](index, 0, size_value(m, size - 1)), m)
    else:
        made = tensor(EXPORTS["remainder"](index, size_value(m, size)), m)
    if made is not index:
        made._dim = SAFE
    return made


def _along(x: Tensor, indices: Any, axis: int) -> tuple[Any, ...]:
    """The key of `take_along_axis`: the indices along one axis, all elements along the others.

    Raises:
        IndexingError: the indices are no integers.
        ShapeError: they have another number of axes.
    """
    mode = x._storage.mode
    index = tensor(indices, mode)
    if index.type.dtype.kind not in "iu":
        raise errors.IndexingError("`indices` must be an integer array")
    ndim = x.type.ndim
    if index.type.ndim != ndim:
        raise errors.ShapeError("`indices` and `arr` must have the same number of dimensions")
    key: list[Any] = []
    for k, d in enumerate(x.type.shape):
        if k == axis:
            key.append(index)
            continue
        along = reshape_to(positions(mode, d), tuple(d if i == k else 1 for i in range(ndim)))
        along._dim = SAFE
        key.append(along)
    return tuple(key)


@numpy_function(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x = array_tensor(arr, mode_in((arr, indices)))
    if axis is None:
        index = tensor(indices, x._storage.mode)
        if index.type.ndim != 1:
            raise errors.ShapeError("when axis=None, `indices` must have a single dimension.")
        x, axis = ravel(x), 0
    return getitem(x, _along(x, indices, axis_of(axis, x.type.ndim, "take_along_axis")))


@numpy_function(np.put_along_axis, views=True)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    mode = mode_in((arr, indices, values))
    assert mode is not None
    x = tensor(arr, mode)
    if axis is None:
        index = tensor(indices, mode)
        if index.type.ndim != 1:
            raise errors.ShapeError("when axis=None, `indices` must have a single dimension.")
        checked = integer_index(mode, index, product(x.type.shape), 0)
        checked._dim = SAFE
        write_flat(x, checked, broadcast_to(array_tensor(values, mode), index.type.shape))
        return
    setitem(x, _along(x, indices, axis_of(axis, x.type.ndim, "put_along_axis")), values)


@numpy_function(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements in C order, from the start again as often as needed; zeros if there are none."""
    x = ravel(array_tensor(a, mode_in((a, new_shape))))
    mode = x._storage.mode
    for d in new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,):
        if type(d) is int and d < 0:
            raise errors.ShapeError("all elements of `new_shape` must be non-negative")
    shape = shape_of(new_shape)
    nothing = is_without(mode, x.type.shape[0])
    if nothing:
        return EXPORTS["zeros"](tuple(size_value(mode, d) for d in shape), dtype=x.type.dtype)
    places = positions(mode, product(shape))
    if not isinstance(x.type.shape[0], int) or x.type.shape[0] != 1:
        places = tensor(EXPORTS["remainder"](places, size_value(mode, x.type.shape[0])), mode)
    else:
        places = tensor(EXPORTS["zeros_like"](places), mode)
    found = apply(R("take"), x, places, axis=0)
    if nothing is None:
        found = EXPORTS["where"](EXPORTS["greater"](size_value(mode, x.type.shape[0]), 0), found, x.type.dtype.type(0))
    return reshape_to(tensor(found, mode), shape)


# --- choosing


@numpy_function(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """For each element of `a` the element there of the choice that it names; one pass of selects."""
    mode = mode_named(mode)
    m = mode_in((a, choices, out))
    assert m is not None
    if type(choices) is Tensor:
        parts: list[Any] = [getitem(choices, k) for k in range(len(choices))]
    else:
        parts = list(choices)
    count = len(parts)
    if not count:
        raise errors.ShapeError("choose: no choices")
    index = index_array(array_tensor(tensor(a, m)), m, "safe")
    dtype = np.result_type(*[_promotes_as(p) for p in parts])
    given = [cast(array_tensor(p, m), dtype) for p in parts]
    if isinstance(m, TraceMode):  # shapes first
        m.broadcast_shape([index.type.shape, *(p.type.shape for p in given)], "choose")
    if mode == "raise":
        inside = EXPORTS["logical_and"](EXPORTS["greater_equal"](index, 0), EXPORTS["less"](index, count))
        must(m, inside, errors.ShapeError, "invalid entry in choice array")
    else:
        index = by_mode(m, index, count, 0, mode)
    result: Any = given[-1]
    for k in range(count - 2, -1, -1):
        result = EXPORTS["where"](EXPORTS["equal"](index, k), given[k], result)
    result = array_tensor(result, m)
    shape = m.broadcast_shape([index.type.shape, result.type.shape], "choose") if isinstance(m, TraceMode) else ()
    if isinstance(m, TraceMode) and shape != result.type.shape:
        result = broadcast_to(result, shape)
    if count == 1 or not result.type.layout.is_c:
        result = apply(R("copy"), result, order="C")
    return deliver(fresh_scalar(result), out, "unsafe")


def _promotes_as(x: Any) -> Any:
    """What NumPy's promotion looks at: a dtype, or a Python number, which is weak."""
    if type(x) is Tensor:
        return {"py_int": 0, "py_float": 0.0, "py_bool": False}.get(x.type.kind, x.type.dtype)
    return x if isinstance(x, (bool, int, float, complex)) else np.asarray(x).dtype


@numpy_function(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function on the elements where its condition holds; the last one elsewhere, if there is one more."""
    mode = mode_in((x, condlist, args, tuple(kw.values())))
    t = array_tensor(x, mode)
    mode = t._storage.mode
    single = type(condlist) is Tensor and condlist.type.ndim == t.type.ndim
    if (
        single
        or (not isinstance(condlist, (list, tuple)) and np.ndim(condlist) == 0)
        or (not isinstance(condlist[0], (list, np.ndarray)) and type(condlist[0]) is not Tensor and t.type.ndim)
    ):
        condlist = [condlist]
    conditions = [EXPORTS["not_equal"](array_tensor(c, mode), 0) for c in condlist]
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        taken = conditions[0]
        for c in conditions[1:]:
            taken = EXPORTS["logical_or"](taken, c)
        conditions.append(EXPORTS["logical_not"](taken))
    elif len(functions) != len(conditions):
        n = len(conditions)
        raise errors.ShapeError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    y = EXPORTS["zeros_like"](t)
    for condition, function in zip(conditions, functions, strict=True):
        value = function(getitem(t, condition), *args, **kw) if isinstance(function, Callable) else function  # type: ignore[arg-type]
        setitem(y, condition, value)
    return y


def _is_single_condition(condlist: Any, x: Tensor) -> bool:
    """Whether `condlist` is one condition rather than a list of them."""
    if type(condlist) is Tensor:
        return condlist.type.ndim == x.type.ndim
    if not isinstance(condlist, (list, tuple, np.ndarray)):
        return True
    first = condlist[0]
    return x.type.ndim > 0 and type(first) is not Tensor and not isinstance(first, (list, np.ndarray))


@numpy_function(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    mode = mode_in((condition, a, out))
    x = array_tensor(a, mode)
    mode = x._storage.mode
    x, k = along(x, axis, "compress")
    chosen = tensor(EXPORTS["not_equal"](array_tensor(condition, mode), 0), mode)
    if chosen.type.ndim != 1:
        raise errors.ShapeError("condition must be a 1-d array")
    return deliver_copied(_compressed(mode, x, chosen, k, out), out, _OTHER_SHAPE)


def _compressed(mode: Mode, x: Tensor, chosen: Tensor, axis: int, out: Any = None) -> Tensor:
    """The elements along an axis where `chosen` is true, which may have another size."""
    size, have = x.type.shape[axis], chosen.type.shape[0]
    try:
        if x.type.ndim == 1 and mode.decide("==", have, size):
            return getitem(x, chosen)  # type: ignore[no-any-return]
        fits = mode.decide("<=", have, size)
    except Undecided:
        fits = False
    (index,) = true_positions(chosen)
    if not fits:
        shape = x.type.shape
        require_copied(mode, out, (*shape[:axis], index.type.shape[0], *shape[axis + 1 :]), x.type.dtype, _OTHER_SHAPE)
        if isinstance(mode, TraceMode) and is_empty(mode, size):
            mode.check(mode.compare("eq", index.type.shape[0], 0), "IndexError", _NOTHING_TO_TAKE)
            return empty_result(mode, (*x.type.shape[:axis], 0, *x.type.shape[axis + 1 :]), x.type.dtype)
        index = wrap(mode, read(index))
        index = integer_index(mode, index, size, axis)
    return apply(R("take"), x, index, axis=axis)  # type: ignore[no-any-return]


@numpy_function(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    mode = mode_in((condition, arr))
    x = ravel(array_tensor(arr, mode))
    chosen = tensor(EXPORTS["not_equal"](array_tensor(condition, mode), 0), x._storage.mode)
    return _compressed(x._storage.mode, x, ravel(chosen), 0)


@numpy_function(np.argwhere)
def argwhere(a: Any) -> Any:
    x = array_tensor(a)
    if x.type.ndim == 0:
        count = true_positions(reshape_to(x, (1,)))[0].type.shape[0]
        return EXPORTS["zeros"]((size_value(x._storage.mode, count), 0), dtype=np.int64)
    return transpose(EXPORTS["stack"](true_positions(x), axis=0))


# --- index arrays


@numpy_function(np.ix_, views=True, creates=True)
def ix_(*args: Any) -> Any:
    """Index arrays that name all combinations, each along an axis of its own."""
    mode = mode_in(args) or current_mode()
    found = []
    for k, given in enumerate(args):
        x = given
        if type(x) is not Tensor and not isinstance(x, np.ndarray) and mode_in((x,)) is None:
            x = np.asarray(x)
            x = x.astype(np.intp) if x.size == 0 else x
            x = wrap(mode, mode.literal(x)) if isinstance(mode, TraceMode) else x
        t = array_tensor(x, mode)
        if t.type.ndim != 1:
            raise errors.ShapeError("Cross index must be 1 dimensional")
        if t.type.dtype.kind == "b":
            (t,) = true_positions(t)
        shape = tuple(t.type.shape[0] if i == k else 1 for i in range(len(args)))
        shaped = reshape_to(t, shape)
        shaped._dim = t._dim
        found.append(shaped)
    return tuple(found)


def triangle_indices(mode: Mode, mask: Tensor, count: DimLike | None) -> tuple[Tensor, ...]:
    """Where a mask is true, when the number of its elements may be known."""
    return tuple(true_positions(mask, count) if count is not None else true_positions(mask))


def _triangle_count(n: DimLike, m: DimLike, k: Any) -> DimLike | None:
    """How many elements lie on and below the k-th diagonal of a square, for the two diagonals that ask no `min`."""
    if n != m or type(k) is Tensor:
        return None
    if k == 0:
        return floordiv(n * (n + 1), 2)
    return floordiv(n * (n - 1), 2) if k == -1 else None


@numpy_function(np.tril_indices, creates=True)
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    rows, columns = _rectangle(n, m)
    mask = tensor(EXPORTS["tri"](n, m, k, dtype=bool))
    return triangle_indices(mask._storage.mode, mask, _triangle_count(rows, columns, k))


@numpy_function(np.triu_indices, creates=True)
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    rows, columns = _rectangle(n, m)
    mask = tensor(
        EXPORTS["logical_not"](
            EXPORTS["tri"](n, m, EXPORTS["subtract"](k, 1) if type(k) is Tensor else k - 1, dtype=bool)
        )
    )
    return triangle_indices(mask._storage.mode, mask, _triangle_count(rows, columns, k if type(k) is Tensor else -k))


def _rectangle(n: Any, m: Any) -> tuple[DimLike, DimLike]:
    from jitgraph.xp.creation import range_size

    rows = range_size(n)
    return rows, rows if m is None else range_size(m)


def _matrix_sizes(arr: Any) -> tuple[Any, Any]:
    x = array_tensor(arr)
    if x.type.ndim != 2:
        raise errors.ShapeError("input array must be 2-d")
    rows, columns = x.type.shape
    mode = x._storage.mode
    return dim_tensor(mode, rows), dim_tensor(mode, columns)


@numpy_function(np.tril_indices_from)
def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    rows, columns = _matrix_sizes(arr)
    return tril_indices(rows, k, columns)


@numpy_function(np.triu_indices_from)
def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    rows, columns = _matrix_sizes(arr)
    return triu_indices(rows, k, columns)


@numpy_function(np.diag_indices, creates=True)
def diag_indices(n: Any, ndim: int = 2) -> Any:
    return (EXPORTS["arange"](n),) * ndim


@numpy_function(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    x = array_tensor(arr)
    if x.type.ndim < 2:
        raise errors.ShapeError("input array must be at least 2-d")
    mode, first = x._storage.mode, x.type.shape[0]
    for d in x.type.shape[1:]:
        try:
            equal = mode.decide("==", first, d)
        except Undecided:
            assert isinstance(mode, TraceMode)
            mode.check(mode.compare("eq", first, d), "ValueError", "All dimensions of input must be of equal length")
            continue
        if not equal:
            raise errors.ShapeError("All dimensions of input must be of equal length")
    return diag_indices(dim_tensor(mode, first), x.type.ndim)


def _only_integers(x: Tensor) -> Tensor:
    if x.type.dtype.kind not in "iu":
        raise errors.DTypeError("only int indices permitted")
    return cast(x, np.int64)  # type: ignore[no-any-return]


@numpy_function(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Flat positions as one index for each axis of an array of that shape."""
    mode = mode_in((indices, shape))
    assert mode is not None
    index = _only_integers(tensor(indices, mode))
    sizes = shape_of(shape, bools=True)
    total = product(sizes)
    low = EXPORTS["greater_equal"](index, 0)
    inside = EXPORTS["logical_and"](low, EXPORTS["less"](index, size_value(mode, total)))
    text = "index {0} is out of bounds for array with size {1}"
    must(mode, inside, errors.ShapeError, text, index, size_value(mode, total))
    found: list[Any] = []
    left: Any = index
    if order not in ("C", "F"):
        raise errors.ShapeError("only 'C' or 'F' order is permitted")
    axes = list(reversed(sizes)) if order == "C" else list(sizes)
    for d in axes[:-1]:
        by = size_value(mode, d)
        found.append(EXPORTS["remainder"](left, by))
        left = EXPORTS["floor_divide"](left, by)
    if axes:
        found.append(EXPORTS["positive"](left) if left is index else left)
    for t, d in zip(found, axes, strict=False):
        if type(t) is Tensor and t.type.ndim:
            mark: Any = Below(d)
            t._dim = mark
    return tuple(found[::-1] if order == "C" else found)


@numpy_function(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """One index for each axis as flat positions in an array of sizes `dims`."""
    m = mode_in((multi_index, dims))
    assert m is not None
    sizes = shape_of(dims, bools=True)
    parts = (
        list(multi_index)
        if type(multi_index) is not Tensor
        else [getitem(multi_index, k) for k in range(len(multi_index))]
    )
    if len(parts) != len(sizes):
        raise errors.ShapeError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    text = "invalid entry in coordinates array"
    indices: list[Any] = []
    parts = [_only_integers(tensor(part, m)) for part in parts]
    if len(parts) > 1 and any(part.type.shape for part in parts):  # where no element is made, none is checked
        parts = EXPORTS["broadcast_arrays"](*parts)
    for index, d, how in zip(parts, sizes, modes, strict=True):
        if how == "raise":
            low = EXPORTS["greater_equal"](index, 0)
            must(m, EXPORTS["logical_and"](low, EXPORTS["less"](index, size_value(m, d))), errors.ShapeError, text)
        else:
            if d == 0 or not isinstance(d, int):
                some = EXPORTS["full_like"](
                    index, size_value(m, d), dtype=bool
                )  # where no element is made, none is checked
                must(m, some, errors.ShapeError, "cannot unravel if shape has zero entries (is empty).")
            index = by_mode(m, index, d, 0, how)
        indices.append(index)
    if order not in ("C", "F"):
        raise errors.ShapeError("only 'C' or 'F' order is permitted")
    pairs = list(zip(indices, sizes, strict=True))
    pairs = pairs if order == "C" else pairs[::-1]
    total: Any = pairs[0][0]
    for index, d in pairs[1:]:
        total = EXPORTS["add"](EXPORTS["multiply"](total, size_value(m, d)), index)
    return EXPORTS["positive"](total) if total is pairs[0][0] else total
