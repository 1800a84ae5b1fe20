"""Arrays put together anew: `insert`, `delete`, `trim_zeros`, `block`, `kron`, windows; checked conversions."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_max
from jitgraph.ir.types import IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, dim_tensor, is_writable, read, view_of
from jitgraph.xp.core import (
    EXPORTS,
    NUMPY_TABLE,
    array_tensor,
    axes_of,
    axis_of,
    cast,
    mode_in,
    not_negative,
    numpy_function,
    size_of,
    sizes_agree,
    tensor,
)
from jitgraph.xp.creation import arange, array, asarray, ascontiguousarray, asfortranarray, diag, full_of
from jitgraph.xp.elementwise import isfinite, multiply, where
from jitgraph.xp.flags import flags
from jitgraph.xp.indexing import getitem
from jitgraph.xp.joining import concatenate, vstack
from jitgraph.xp.merging import Unsure, is_fortran
from jitgraph.xp.reductions import all, any, argmax
from jitgraph.xp.scalars import BUILTIN_TABLE
from jitgraph.xp.selecting import compress
from jitgraph.xp.shape import broadcast_to, flip, moveaxis, ravel, reshape_to
from jitgraph.xp.writes import setitem


def _trace(*inputs: Any) -> TraceMode | None:
    mode = mode_in(inputs)
    return mode if isinstance(mode, TraceMode) else None


def _by_host(name: str, *args: Any, **kwargs: Any) -> Any:
    """The call back into NumPy, for the cases that have no compiled form."""
    mode = _trace(args, tuple(kwargs.values()))
    if mode is None:
        raise errors.GradientTypeError(f"np.{name} has no gradient for these arguments: use x.numpy()")
    return mode.unsupported(f"np.{name}", args, kwargs, getattr(np, name))


def _axis_and_array(arr: Any, axis: Any, what: str) -> tuple[Tensor, int]:
    """The array, flattened without an axis, and the axis."""
    x = array_tensor(arr)
    if axis is None:
        return (x if x.type.ndim == 1 else ravel(x)), 0
    return x, axis_of(axis, x.type.ndim, what)


def like_source(made: Any, x: Tensor) -> Any:
    """A new array in the memory order that NumPy gives it: Fortran's where `x` has that, else C."""
    return asfortranarray(made) if seems_fortran(x) else made


def seems_fortran(x: Tensor) -> bool:
    """Whether it lies in Fortran order alone; where only the run knows, its type says (no value depends on it)."""
    try:
        return is_fortran(x)
    except (Undecided, Unsure):
        return x.type.layout.is_f


def _slices(x: Tensor, axis: int, part: slice) -> Any:
    return getitem(x, (slice(None),) * axis + (part,))


@numpy_function(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x, k = _axis_and_array(arr, axis, "insert")
    mode = x._storage.mode
    n = x.type.shape[k]
    if _is_traced_index(obj):
        new = _inserted(x, values, k)
        count = new.type.shape[k]
        fits = EXPORTS["logical_and"](EXPORTS["greater_equal"](obj, -_number(mode, n)), obj <= _number(mode, n))
        text = f"index {{0}} is out of bounds for axis {k} with size {{1}}"
        assert isinstance(mode, TraceMode)
        mode.check(read(fits), "IndexError", text, read(obj), n)
        at = where(obj < 0, obj + _number(mode, n), obj)
        places = EXPORTS["arange"](_number(mode, n + count))
        behind = places - _number(mode, count)
        index = where(places < at, places, where(behind < at, places - at + _number(mode, n), behind))
        return like_source(EXPORTS["take"](concatenate([x, _fitted(new, x, k)], axis=k), index, axis=k), x)
    if isinstance(obj, bool | np.bool_) or not isinstance(obj, int | np.integer):
        return _insert_many(arr, x, obj, values, axis, k)
    at = int(obj)
    if not mode.decide("<=", at if at >= 0 else -at, n):
        text = f"index {at} is out of bounds for axis {k} with size {n if isinstance(n, int) else _example(mode, n)}"
        raise errors.IndexingError(text)
    new = _fitted(_inserted(x, values, k), x, k)
    pieces = [_slices(x, k, slice(None, at)), new, _slices(x, k, slice(at, None))]
    return like_source(concatenate(pieces, axis=k), x)


def _is_traced_index(obj: Any) -> bool:
    return type(obj) is Tensor and obj.is_traced and not obj.type.shape and obj.type.dtype.kind in "iu"


def _number(mode: Any, d: Any) -> Any:
    """A size as a number of the trace."""
    return d if isinstance(d, int) else dim_tensor(mode, d)


def _inserted(x: Tensor, values: Any, k: int) -> Tensor:
    """The values for one place: their first axis is inserted along axis `k`."""
    new = _of_dtype(values, x)
    while new.type.ndim < x.type.ndim:
        new = getitem(new, None)
    return moveaxis(new, 0, k)  # type: ignore[no-any-return]


def _of_dtype(values: Any, x: Tensor) -> Tensor:
    """What NumPy makes of values for an array: its numbers have to fit."""
    return tensor(asarray(values, x.type.dtype), x._storage.mode)


def _example(mode: Any, n: Any) -> Any:
    return mode.example(n) if isinstance(mode, TraceMode) else n


def _fitted(new: Tensor, x: Tensor, axis: int) -> Tensor:
    """Values broadcast to the sizes of `x` on all axes but one."""
    shape = list(x.type.shape)
    shape[axis] = new.type.shape[axis]
    mode = x._storage.mode
    sizes = tuple(d if isinstance(d, int) else dim_tensor(mode, d) for d in shape)
    return new if new.type.shape == tuple(shape) else broadcast_to(new, sizes)


def _insert_many(arr: Any, x: Tensor, obj: Any, values: Any, axis: Any, k: int) -> Any:
    """Static, not negative places: the pieces between them and the values in turn."""
    places = np.asarray(obj) if isinstance(obj, list | tuple | np.ndarray) and mode_in((obj,)) is None else None
    if places is None or places.ndim != 1 or places.dtype.kind not in "iu" or not places.size or (places < 0).any():
        return _by_host("insert", arr, obj, values, axis)
    mode = x._storage.mode
    if not mode.decide("<=", int(places.max()), x.type.shape[k]):
        size = _example(mode, x.type.shape[k])
        raise errors.IndexingError(f"index {int(places.max())} is out of bounds for axis {k} with size {size}")
    new = _of_dtype(values, x)
    while new.type.ndim < x.type.ndim:
        new = getitem(new, None)
    count = new.type.shape[k]
    if count not in (1, places.size):
        return _by_host("insert", arr, obj, values, axis)
    new = _fitted(new, x, k)
    pieces, start = [], 0
    for number in np.argsort(places, kind="stable"):
        stop = int(places[number])
        pieces.append(_slices(x, k, slice(start, stop)))
        row = 0 if count == 1 else int(number)
        pieces.append(_slices(new, k, slice(row, row + 1)))
        start = stop
    return like_source(concatenate([*pieces, _slices(x, k, slice(start, None))], axis=k), x)


@numpy_function(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x, k = _axis_and_array(arr, axis, "delete")
    mode = x._storage.mode
    n = x.type.shape[k]
    if _is_traced_index(obj):
        at = getitem(EXPORTS["arange"](_number(mode, n)), obj)
        places = EXPORTS["arange"](_number(mode, dim_max(n - 1, 0)))
        return like_source(EXPORTS["take"](x, places + EXPORTS["greater_equal"](places, at), axis=k), x)
    if isinstance(obj, int | np.integer) and not isinstance(obj, bool | np.bool_):
        at = int(obj)
        if not mode.decide("<" if at >= 0 else "<=", at if at >= 0 else -at, n):
            raise errors.IndexingError(
                f"index {at} is out of bounds for axis {k} with size {n if isinstance(n, int) else _example(mode, n)}"
            )
        tail = slice(at + 1, None) if at != -1 else slice(0, 0)
        return like_source(concatenate([_slices(x, k, slice(None, at)), _slices(x, k, tail)], axis=k), x)
    if isinstance(obj, slice) and obj.step in (None, 1) and _is_plain(obj.start) and _is_plain(obj.stop):
        start = obj.start or 0
        tail = slice(0, 0) if obj.stop is None else slice(max(start, obj.stop), None)
        return like_source(concatenate([_slices(x, k, slice(None, start)), _slices(x, k, tail)], axis=k), x)
    keep = full_of(mode, np.True_, (n,), np.dtype(np.bool_))
    places = tensor(obj, mode) if isinstance(obj, list | tuple | np.ndarray) else obj
    if isinstance(obj, bool | np.bool_) or (
        type(places) is Tensor and not places.type.ndim and places.type.dtype.kind == "b"
    ):
        return _by_host("delete", arr, obj, axis)
    if type(places) is Tensor and places.type.dtype.kind == "b":
        text = "boolean array argument obj to delete must be one dimensional and match the axis length of {1}"
        if places.type.ndim != 1 or not sizes_agree(mode, places.type.shape[0], n, text):
            raise errors.ShapeError(text.format(0, n if isinstance(n, int) else _example(mode, n)))
    if type(places) is Tensor and places.type.dtype.kind == "f":
        places = cast(places, np.intp) if not isinstance(obj, Tensor) and not np.size(obj) else places
    setitem(keep, places, False)  # the value
    return compress(keep, x, k)


def _is_plain(bound: Any) -> bool:
    return bound is None or (isinstance(bound, int | np.integer) and int(bound) >= 0)


@numpy_function(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """A view from the first to the last element that is not zero, along each axis."""
    x = array_tensor(filt)
    trim = trim.lower()
    if trim not in {"fb", "bf", "f", "b"}:
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = axes_of(axis, x.type.ndim, "trim_zeros")
    if not axes:
        return filt
    mode = x._storage.mode
    if isinstance(filt, list | tuple) and isinstance(mode, TraceMode):
        mode.leave("np.trim_zeros of a list is a list, of a length that only data tell", "pass an array.")
    whole = [slice(None)] * x.type.ndim
    if builtins.any(mode.decide("==", n, 0) for n in x.type.shape):
        return getitem(x, tuple(slice(0, 0) if k in axes else s for k, s in enumerate(whole)))
    there = EXPORTS["not_equal"](x, 0)
    found = any(there)
    for k in axes:
        n = x.type.shape[k]
        size = n if isinstance(n, int) else dim_tensor(mode, n)
        others = tuple(i for i in range(x.type.ndim) if i != k)
        seen = any(there, axis=others) if others else there
        start = where(found, argmax(seen), 0) if "f" in trim else 0
        last = size - argmax(flip(seen)) if "b" in trim else size
        whole[k] = slice(start, where(found, last, 0))
    return getitem(x, tuple(whole))


@numpy_function(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = ravel(array_tensor(ary, mode_in((ary, to_end, to_begin))))
    mode = x._storage.mode
    parts = []
    for name, part in (("to_begin", to_begin), ("to_end", to_end)):
        if part is not None:
            edge = ravel(array_tensor(part, mode))
            if not np.can_cast(edge.type.dtype, x.type.dtype, casting="same_kind"):
                raise errors.DTypeError(
                    f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
                )
            part = cast(edge, x.type.dtype)
        parts.append(part)
    inner = getitem(x, slice(1, None)) - getitem(x, slice(None, -1))
    given = [p for p in (parts[0], inner, parts[1]) if p is not None]
    return concatenate(given) if len(given) > 1 else inner


@numpy_function(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(array_tensor(v)), k)


@numpy_function(np.kron)
def kron(a: Any, b: Any) -> Any:
    mode = mode_in((a, b))
    x, y = array_tensor(a, mode), array_tensor(b, mode)  # Python numbers are arrays here: not weak
    if not x.type.ndim or not y.type.ndim:
        return multiply(x, y)
    ndim = max(x.type.ndim, y.type.ndim)
    p, q = ((1,) * (ndim - t.type.ndim) + t.type.shape for t in (x, y))
    left = reshape_to(x, tuple(d for size in p for d in (size, 1)))
    right = reshape_to(y, tuple(d for size in q for d in (1, size)))
    return reshape_to(multiply(left, right), tuple(m * n for m, n in zip(p, q, strict=True)))


@numpy_function(np.block)
def block(arrays: Any) -> Any:
    depth = _depth(arrays)
    mode = mode_in((arrays,))
    leaves = _leaves(arrays, mode)
    ndim = max([depth, *(t.type.ndim for t in leaves)])
    made = _joined(arrays, 0, depth, ndim, mode)
    return made if depth else array(made)


def _depth(arrays: Any) -> int:
    """How deep the lists are nested.

    Raises:
        ValueError, TypeError: lists of unequal depth or empty ones, or tuples, as NumPy refuses them.
    """
    if isinstance(arrays, tuple):
        raise TypeError("arrays is a tuple. Only lists can be used to arrange blocks.")
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise ValueError("List depths are mismatched." if depths else "List at arrays cannot be empty")
    return depths.pop() + 1


def _leaves(arrays: Any, mode: Any) -> list[Tensor]:
    if isinstance(arrays, list):
        return [leaf for a in arrays for leaf in _leaves(a, mode)]
    return [array_tensor(arrays, mode)]


def _joined(arrays: Any, level: int, depth: int, ndim: int, mode: Any) -> Tensor:
    if level < depth:
        return concatenate([_joined(a, level + 1, depth, ndim, mode) for a in arrays], axis=level - depth)  # type: ignore[no-any-return]
    x = array_tensor(arrays, mode)
    return reshape_to(x, (1,) * (ndim - x.type.ndim) + x.type.shape)


@numpy_function(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    mode = mode_in((a1, a2))
    x, y = array_tensor(a1, mode), array_tensor(a2, mode)
    assert mode is not None
    for a, b in zip(reversed(x.type.shape), reversed(y.type.shape), strict=False):
        try:
            if not mode.decide("==", a, b) and not mode.decide("==", a, 1) and not mode.decide("==", b, 1):
                return False
        except Undecided:
            return _by_host("array_equiv", a1, a2)
    return BUILTIN_TABLE[bool](all(EXPORTS["equal"](x, y)))


@numpy_function(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    x = EXPORTS["asarray"](a, dtype=dtype, order=order) if order is not None else EXPORTS["asarray"](a, dtype=dtype)
    mode = x._storage.mode
    text = "array must not contain infs or NaNs"
    if x.type.dtype.kind in "fc":
        finite = all(isfinite(x))
        if isinstance(mode, TraceMode):
            mode.check(read(finite), "ValueError", text)
        elif not bool(finite):
            raise ValueError(text)
    return x


@numpy_function(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    wanted = {r.upper()[0] for r in ([requirements] if isinstance(requirements, str) else requirements or ())}
    x = EXPORTS["asarray"](a, dtype=dtype)
    if "O" in wanted:
        return _by_host("require", a, dtype, requirements)
    if "F" in wanted and "C" in wanted:
        raise ValueError('Cannot specify both "C" and "F" order')
    x = asfortranarray(x) if "F" in wanted else ascontiguousarray(x) if "C" in wanted else x
    return x if "W" not in wanted or is_writable(x) else array(x)


@numpy_function(np.isfortran)
def isfortran(a: Any) -> bool:
    """Whether memory is in Fortran order and not in C order too: its layout says so, under a guard on its sizes."""
    return bool(flags(a).fnc)


def _is_at_most(mode: Any, size: DimLike, count: DimLike) -> bool:
    """A relation of sizes, by proof or guard; of sizes that are data by a check."""
    try:
        return bool(mode.decide("<=", size, count))
    except Undecided:
        text = "window shape cannot be larger than input array shape"
        mode.check(mode.compare("le", size, count), "ValueError", text)
        return True


@numpy_function(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """The windows gathered into an array of their own: neither it nor `x` may be written from then on."""
    source = array_tensor(x)
    mode = source._storage.mode
    if writeable:
        text = "sliding_window_view with writeable=True has no compiled form"
        if not isinstance(mode, TraceMode):
            raise errors.TraceError(text)
        mode.leave(text, "write the slices of x.")
    given = window_shape if isinstance(window_shape, list | tuple) else [window_shape]
    sizes = [not_negative(mode, size, "`window_shape` cannot contain negative values") for size in given]
    if axis is None and len(sizes) != source.type.ndim:
        raise ValueError(
            f"Since axis is None, must provide window_shape for all dimensions of `x`; got {len(sizes)} window_shape "
            f"elements and `x.ndim` is {source.type.ndim}."
        )
    ndim = source.type.ndim
    named = range(ndim) if axis is None else axis if isinstance(axis, list | tuple) else (axis,)
    axes = [axis_of(k, ndim, "sliding_window_view") for k in named]  # one may be there twice
    if len(axes) != len(sizes):
        raise ValueError("Must provide matching length window_shape and axis")
    made = source
    for k, size in zip(axes, sizes, strict=True):
        count = made.type.shape[k]
        if not _is_at_most(mode, size_of(size), count):
            raise ValueError("window shape cannot be larger than input array shape")
        starts = tensor(arange((count if isinstance(count, int) else dim_tensor(mode, count)) - size + 1), mode)
        made = moveaxis(EXPORTS["take"](made, getitem(starts, (slice(None), None)) + arange(size), axis=k), k + 1, -1)
    if isinstance(mode, TraceMode) and made is not source:
        mode.watch(made._storage, [source._storage])
        return view_of(made, IndexMap.identity(made.type.shape), writable=False)
    return made


_row_stack = getattr(np, "row_stack", None)  # NumPy 2.x has it, with a warning
if _row_stack is not None:
    NUMPY_TABLE[_row_stack] = vstack
