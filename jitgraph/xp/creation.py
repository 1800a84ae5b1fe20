"""Arrays out of nothing, out of numbers, and out of other arrays; inside a trace each is a fresh array of the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_max, floordiv
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType
from jitgraph.modes import TraceMode
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    assign,
    check_dtype,
    current_mode,
    lift,
    plain,
    view_of,
    wrap,
)
from jitgraph.xp.core import (
    EXPORTS,
    R,
    array_tensor,
    as_kind,
    axis_of,
    cast,
    literal,
    make_full,
    memory_order,
    mode_in,
    no_bool,
    numpy_function,
    offset_of,
    shape_of,
    size_of,
    tensor,
)
from jitgraph.xp.flat import FlatIter
from jitgraph.xp.merging import order_for, ordered
from jitgraph.xp.operators import binary, dim_of
from jitgraph.xp.storable import check_int, check_number, converted

#: Python's numbers, which take the dtype of NumPy's beside them, by kind.
_WEAK: Final[dict[str, Any]] = {"py_bool": False, "py_int": 0, "py_float": 0.0, "py_complex": 0j}


def _mode(*inputs: Any) -> Mode:
    return mode_in(inputs) or current_mode() or EAGER


def _dtype(dtype: Any, what: str, default: Any = np.float64) -> np.dtype:
    found: np.dtype = np.dtype(default if dtype is None else dtype)
    check_dtype(found, what)
    return found


@numpy_function(np.can_cast)
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """NumPy's rule, known while tracing: of arrays and NumPy's numbers their dtype."""
    if type(from_) is Tensor:
        from_ = from_.type.dtype.type().item() if from_.type.is_python else from_.type.dtype
    return np.can_cast(from_, to, casting)  # type: ignore[arg-type]


@numpy_function(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that NumPy's promotion gives: known while tracing."""
    known = [_WEAK.get(x.type.kind, x.type.dtype) if type(x) is Tensor else x for x in arrays_and_dtypes]
    return np.result_type(*known)


@numpy_function(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> np.dtype:
    """Of an array its own dtype; of a scalar what its value needs, which only Python may know."""
    x = tensor(a)
    if not x.type.shape and x.type.dtype.kind != "b" and isinstance(x._storage.mode, TraceMode):
        x._storage.mode.leave("the least dtype for a number depends on data", "name the dtype.")
    return np.min_scalar_type(np.empty(1, x.type.dtype) if isinstance(x._storage.mode, TraceMode) else plain(x))


def full_of(mode: Mode, value: Any, shape: Shape, dtype: np.dtype, order: str = "C") -> Tensor:
    """A filled array in `mode`; a Python number that the dtype cannot hold is NumPy's OverflowError."""
    order = memory_order(order)
    if order not in ("C", "F"):
        raise errors.ShapeError("only 'C' or 'F' order is permitted")
    if type(value) is not Tensor:
        casts = isinstance(value, np.generic | float | complex)  # as `copyto` with casting="unsafe"; ints must fit
        value = np.asarray(value).astype(dtype)[()] if casts else np.asarray(value, dtype)
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(value, np.ndarray) or (type(value) is Tensor and value.type.shape):
        made = make_full(mode, np.zeros((), dtype)[()], shape, dtype)
        assign(made, value)
        return made
    check_int(mode, value, dtype)
    if order == "F" and len(shape) > 1 and mode.name == "trace":
        return wrap(mode, mode.apply(R("full"), [lift(mode, value)], {"shape": shape, "dtype": dtype, "order": "F"})[0])
    value = lift(mode, value)
    if mode.name == "trace" and mode.type_of(value).dtype != dtype:
        (value,) = mode.apply(R("cast"), [value], {"dtype": dtype})
    return (
        make_full(mode, value, shape, dtype)
        if mode.name != "tape"
        else wrap(mode, mode.apply(R("full"), [value], {"shape": shape, "dtype": dtype})[0])
    )


def empty_of(mode: Mode, shape: Shape, dtype: np.dtype, order: str = "C") -> Tensor:
    """An array of no value in particular in `mode`: of zeros, but where it is compiled."""
    order = memory_order(order)
    if mode.name != "trace" or not shape or order not in ("C", "F"):
        return full_of(mode, 0, shape, dtype, order)
    attrs = {"shape": shape, "dtype": dtype, **({"order": "F"} if order == "F" and len(shape) > 1 else {})}
    return wrap(mode, mode.apply(R("empty"), [], attrs)[0])


@numpy_function(np.zeros, creates=True)
def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    return full_of(_mode(shape), 0, shape_of(shape), _dtype(dtype, "zeros"), order)


@numpy_function(np.ones, creates=True)
def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    return full_of(_mode(shape), 1, shape_of(shape), _dtype(dtype, "ones"), order)


@numpy_function(np.empty, creates=True)
def empty(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    return empty_of(_mode(shape), shape_of(shape), _dtype(dtype, "empty"), order)


@numpy_function(np.ndarray, creates=True)
def ndarray(
    shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, order: str | None = None
) -> Any:
    """An array as `empty` makes it."""
    mode = _mode(shape)
    if buffer is not None or strides is not None or offset:
        if isinstance(mode, TraceMode):
            mode.fail(
                "np.ndarray() over memory or with strides of its own has no compiled form",
                "use views and reshapes of an array, or np.empty.",
            )
        return np.ndarray(shape, dtype, buffer, offset, strides, order)  # type: ignore[arg-type]
    return empty_of(mode, shape_of(shape), _dtype(dtype, "ndarray"), order or "C")


def _filling(value: Any) -> Any:
    """What fills an array: a list or tuple as an array."""
    return array(value) if type(value) in (list, tuple) else value


@numpy_function(np.full, creates=True)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    fill_value = _filling(fill_value)
    mode = _mode(shape, fill_value)
    if dtype is None:
        dtype = fill_value.type.dtype if type(fill_value) is Tensor else np.asarray(fill_value).dtype
    return full_of(mode, fill_value, shape_of(shape), _dtype(dtype, "full"), order)


def _like(a: Any, value: Any, dtype: Any, order: str, shape: Any, what: str) -> Tensor:
    """An array as `a`, of the `value`; NumPy's `_NoValue`: of none in particular."""
    like = tensor(a)
    t = like.type
    mode, order = _mode(a, shape), memory_order(order)
    sizes = t.shape if shape is None else shape_of(shape)
    wanted = _dtype(dtype, what, t.dtype)
    axes = t.layout.order

    def made_of(shape: Shape, order: str) -> Tensor:
        return (
            empty_of(mode, shape, wanted, order) if value is np._NoValue else full_of(mode, value, shape, wanted, order)
        )

    if order == "K" and len(sizes) == t.ndim and list(axes) not in (sorted(axes), sorted(axes, reverse=True)):
        from jitgraph.xp.shape import transpose

        made = made_of(tuple(sizes[k] for k in axes), "C")
        return transpose(made, [axes.index(k) for k in range(t.ndim)])  # type: ignore[no-any-return]
    turned = list(axes) == sorted(axes, reverse=True) and t.ndim > 1 and not t.layout.is_c
    fortran = turned if order == "K" else order == "F" or (order == "A" and order_for(order, like) == "F")
    return made_of(sizes, "F" if fortran and len(sizes) == t.ndim else "C")


@numpy_function(np.zeros_like, views=True, creates=True)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return _like(a, 0, dtype, order, shape, "zeros_like")


@numpy_function(np.ones_like, views=True, creates=True)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return _like(a, 1, dtype, order, shape, "ones_like")


@numpy_function(np.empty_like, views=True, creates=True)
def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return _like(prototype, np._NoValue, dtype, order, shape, "empty_like")


@numpy_function(np.full_like, views=True, creates=True)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    return _like(a, _filling(fill_value), dtype, order, shape, "full_like")


@numpy_function(np.array, views=True, creates=True)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """A fresh array of the elements of nested lists, arrays, numbers and Tensors."""
    mode = _mode(object)
    if type(copy) is Tensor:
        copy = bool(copy._storage.mode.concrete(copy, "index"))  # type: ignore[attr-defined]
    if type(object) is FlatIter:
        object = object.copy()
        mode = _mode(object)
    if type(object) is Tensor:
        result = _copied(object, dtype, memory_order(order), bool(copy))
    elif isinstance(object, (list, tuple)) and mode_in(object) is not None:
        if dtype is not None:
            dtype = _dtype(dtype, "array")
            object = converted(mode, object, dtype)
        result = _nested(mode, object)
        if not result.type.layout.is_c:  # stacked arrays keep their order, nested lists have none
            result = apply(R("copy"), result, order="C")
        if dtype is not None:
            result = cast(result, dtype)
        if memory_order(order) == "F":
            result = ordered(result, "F")
    else:
        result = _known(mode, np.array(object, dtype, order=order, subok=False))  # type: ignore[call-overload]
    extra = ndmin - result.type.ndim
    if extra > 0:
        from jitgraph.xp.shape import reshape_to

        result = reshape_to(result, (*(1,) * extra, *result.type.shape))
    return result


def fresh(mode: Mode, data: np.ndarray) -> Tensor:
    """A fresh array of the graph with known elements."""
    if mode.name != "trace":
        return wrap(mode, mode.lift(data))
    if data.size == 0 or (
        data.ndim and (data == data.reshape(-1)[0]).all() and data.reshape(-1)[0] == data.reshape(-1)[0]
    ):
        filler = data.reshape(-1)[0] if data.size else np.zeros((), data.dtype)[()]
        if not (isinstance(filler, np.floating) and filler == 0 and np.signbit(data).any()):
            return make_full(mode, filler, data.shape, data.dtype)
    return wrap(mode, mode.builder.constant(np.array(data, order="C")))  # type: ignore[attr-defined]


def _known(mode: Mode, items: Any) -> Tensor:
    data = np.asarray(items)
    check_dtype(data.dtype, "array")
    made = fresh(mode, data)
    return ordered(made, "F") if data.flags.fnc else made


def _copied(x: Tensor, dtype: Any, order: str, copy: bool) -> Tensor:
    if x.type.kind != "array":
        if dtype is not None:
            x = _as_element(x, np.dtype(dtype))
        x = array_tensor(x)
        if dtype is None and x._storage.mode.name == "trace":
            return x
    if dtype is not None and np.dtype(dtype) != x.type.dtype:
        return ordered(cast(x, dtype), _kept(order))
    return apply(R("copy"), x, order=order_for(order, x)) if copy else ordered(x, _kept(order))


def _as_element(x: Tensor, dtype: np.dtype) -> Tensor:
    """A number that an array of `dtype` is made of: Python's have to fit, NumPy's are cast."""
    mode = x._storage.mode
    if not check_int(mode, x, dtype) and x.type.is_python:
        check_number(mode, x, dtype, elements=False)
    return cast(x, dtype)  # type: ignore[no-any-return]


def _kept(order: str) -> str:
    """Where `array` and `asarray` need not copy for the order's sake, "A" takes any."""
    return "K" if order == "A" else order


def _nested(mode: Mode, items: Sequence[Any]) -> Tensor:
    """Nested lists with Tensors in them: stacked level by level."""
    from jitgraph.xp.joining import stack

    parts: list[Any] = []
    for item in items:
        if isinstance(item, (list, tuple)):
            parts.append(_nested(mode, item) if mode_in(item) is not None else _known(mode, item))
        else:
            parts.append(item)
    dims = [dim_of(p) for p in parts]
    if mode.name != "trace" or any(d is None for d in dims):
        weak = [p for p in parts if not (type(p) is Tensor and p.type.shape)]
        if len(weak) == len(parts):
            dtype = np.result_type(*[p.type.dtype if type(p) is Tensor else np.asarray(p).dtype for p in parts])
            parts = [cast(tensor(p, mode), dtype) for p in parts]
    return stack(parts)  # type: ignore[no-any-return]


@numpy_function(np.asarray, np.asanyarray, views=True, creates=True)
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    order = _kept(memory_order(order)) if copy is not True else memory_order(order)
    if type(a) is Tensor and copy is not True:
        if dtype is not None and np.dtype(dtype) != a.type.dtype:
            if a.type.kind != "array":
                return array_tensor(_as_element(a, np.dtype(dtype)))
            return ordered(cast(a, dtype), order)
        return ordered(array_tensor(a), order)
    if isinstance(a, np.ndarray) and copy is not True:  # of static values: another name of it stays one
        made = np.asarray(a, dtype, order)
        if np.may_share_memory(made, a):
            return made
    return array(a, dtype, order=order)


@numpy_function(np.ascontiguousarray, views=True, creates=True)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    x = asarray(a, dtype)
    if type(x) is not Tensor:
        return np.ascontiguousarray(x)
    if x.type.ndim == 0:
        from jitgraph.xp.shape import reshape_to

        return reshape_to(x, (1,))
    return ordered(x, "C")


@numpy_function(np.asfortranarray, views=True, creates=True)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    x = asarray(a, dtype)
    return ordered(x, "F") if type(x) is Tensor else np.asfortranarray(x)


@numpy_function(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return array(a, order=order)


@numpy_function(np.arange, creates=True)
def arange(
    start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, like: Any = None
) -> Any:
    """`start + i * step`; sizes stay sizes, other traced bounds give a size that is known when the code runs."""
    if stop is None:
        start, stop = 0, start
    elif start is None:
        start = 0
    step = 1 if step is None else step
    mode = _mode(start, stop, step)
    if mode_in((start, stop, step)) is None:
        data: np.ndarray = np.arange(start, stop, step, dtype)  # type: ignore[call-overload]
        if mode is EAGER:
            return wrap(mode, data)
        scalar = data.dtype.type
        if data.dtype == np.float16:
            return literal(mode, data)
        return iota(mode, scalar(start), scalar(data[1] - data[0] if len(data) > 1 else step), len(data), data.dtype)
    a, b, c = dim_of(start), dim_of(stop), dim_of(step)
    if dtype is None:
        kinds = [tensor(v, mode).type for v in (start, stop, step)]
        dtype = np.result_type(*[t.dtype for t in kinds])
    if a is not None and b is not None and c is not None and isinstance(mode, TraceMode):
        return iota(mode, start, step, range_length(mode, a, b, c), np.dtype(dtype))
    if not isinstance(mode, TraceMode):
        filled: np.ndarray = np.arange(plain(start), plain(stop), plain(step), dtype)  # type: ignore[call-overload]
        return wrap(mode, mode.lift(filled))
    types = [tensor(v, mode).type for v in (start, stop, step)]
    if any(t.shape or t.dtype.kind == "c" for t in types):
        mode.leave("arange of complex numbers or of arrays", "give it real numbers.")
    wide = all(t.dtype == np.int64 for t in types)  # NumPy's narrow and unsigned scalars wrap on the way
    if np.dtype(dtype).kind in "iu" and (wide or _counts_up(a, types)):
        a, b, c = (integer_dim(mode, v) for v in (start, stop, step))
        try:
            return _stepped(mode, start, step, range_length(mode, a, b, c), np.dtype(dtype))
        except Undecided:  # the run knows which way it goes
            nonzero = lift(mode, binary("ne", step, 0))
            mode.check(nonzero, "ZeroDivisionError", "division by zero")
            start, stop, step = (cast(array_tensor(v, mode), np.int64)[()] for v in (start, stop, step))
    distance = binary("sub", stop, start)
    turns = binary("truediv", distance, step)
    length = EXPORTS["ceil"](turns)
    number = apply(R("eq"), length, length)
    mode.check(lift(mode, number), "ValueError", "arange: cannot compute length")
    held = apply(R("lt"), apply(R("abs"), length), float(2**63 // np.dtype(dtype).itemsize))
    mode.check(lift(mode, held), "ValueError", "Maximum allowed size exceeded")
    count = EXPORTS["maximum"](cast(tensor(length), np.int64), 0)
    if tensor(turns).type.dtype.kind == "f":  # a distance that is divided down to zero counts
        vanished = EXPORTS["logical_and"](apply(R("eq"), turns, 0.0), apply(R("ne"), distance, 0))
        forward = EXPORTS["logical_not"](EXPORTS["signbit"](turns))
        count = EXPORTS["where"](EXPORTS["logical_and"](vanished, forward), 1, count)
    return _stepped(mode, start, step, mode.bind(lift(mode, count), "k", 0), np.dtype(dtype))


def _counts_up(start: Any, types: Sequence[TensorType]) -> bool:
    """Whether a range of integers begins at 0 and has a Python int as step, so that no difference can wrap."""
    return type(start) is int and start == 0 and types[2].kind == "py_int" and types[1].dtype.kind in "iu"


def _stepped(mode: TraceMode, start: Any, step: Any, size: DimLike, dtype: np.dtype) -> Tensor:
    """As NumPy fills `arange`: by the difference of the first two elements, which the dtype may have rounded."""
    kinds = [tensor(x, mode).type.kind for x in (start, step)]
    if dtype.kind in "iu" and all(k in ("py_int", "py_bool") for k in kinds):
        return iota(mode, start, step, size, dtype)
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype  # that loop computes so
    first, second = (cast(cast(array_tensor(x, mode), dtype), wide)[()] for x in (start, binary("add", start, step)))
    difference = binary("sub", second, first)
    if wide.kind == "f":  # one element is `start`, however long the step
        difference = EXPORTS["where"](EXPORTS["isfinite"](difference), difference, 0)
    return cast(iota(mode, first, difference, size, wide), dtype)  # type: ignore[no-any-return]


def integer_dim(mode: TraceMode, x: Any) -> DimLike:
    """An integer scalar as a dim: a size as it is, data bound to a symbol."""
    d = dim_of(x)
    return mode.bind(lift(mode, x), "b") if d is None else d


def range_length(mode: Mode, start: DimLike, stop: DimLike, step: DimLike) -> DimLike:
    """len(range(start, stop, step)).

    Raises:
        ZeroDivisionError: step is zero.
        Undecided: the sign of a step is not known.
    """
    if mode.decide("==", step, 0):
        raise ZeroDivisionError("division by zero")
    forward = mode.decide(">", step, 0)
    distance, stride = (stop - start, step) if forward else (start - stop, -step)
    length = distance if stride == 1 else floordiv(distance + stride - 1, stride)
    try:
        return length if mode.decide(">=", distance, 0) else 0
    except Undecided:
        return dim_max(length, 0)


def iota(mode: Mode, start: Any, step: Any, size: DimLike, dtype: np.dtype) -> Tensor:
    check_dtype(dtype, "arange")
    return wrap(mode, mode.apply(R("iota"), [lift(mode, start), lift(mode, step)], {"size": size, "dtype": dtype})[0])


@numpy_function(np.linspace, creates=True)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """NumPy's sequence of operations: arange * step + start, the last element set to `stop`."""
    mode = _mode(start, stop, num)
    if mode is EAGER or (mode_in((start, stop, num)) is None and isinstance(num, int) and num <= 64):
        made = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)  # type: ignore[call-overload]
        return (fresh(mode, made[0]), made[1]) if retstep else fresh(mode, made)
    count = size_of(num)
    if isinstance(count, int) and count < 0:
        raise errors.ShapeError(f"Number of samples, {count}, must be non-negative.")
    ends = [tensor(v, mode) for v in (start, stop)]
    rank = max(t.type.ndim for t in ends)
    working = np.result_type(*(_WEAK.get(t.type.kind, t.type.dtype) for t in ends), 1.0)
    a, b = (cast(t, working) if rank else as_kind(cast(t, working), "np_scalar") for t in ends)
    divisor = count - 1 if endpoint else count
    out_dtype = working if dtype is None else np.dtype(dtype)
    delta = binary("sub", b, a)
    y = _rows(iota(mode, 0.0, 1.0, count, working), rank)
    step: Any = math.nan
    several, known = _is_several(mode, divisor, retstep)
    if not known:  # as if there were several: one element is `start` all the same
        divisor = dim_max(divisor, 1)
    if several:
        step = binary("truediv", delta, _number(mode, divisor, working))
        still = binary("eq", step, 0)
        spread = EXPORTS["where"](
            EXPORTS["any"](still) if rank else still,
            binary("mul", binary("truediv", y, _number(mode, divisor, working)), delta),
            binary("mul", y, step),
        )
        y = binary("add", spread, a)
        if endpoint and not known:
            at = _rows(iota(mode, 0, 1, count, dtypes.I64), rank)
            y = EXPORTS["where"](binary("eq", at, _number(mode, divisor, dtypes.I64)), b, y)
        elif endpoint:
            rest = y.type.shape[1:]
            axes = (AxisMap(count - 1, 0, None), *(AxisMap(0, 1, k) for k in range(len(rest))))
            assign(view_of(y, IndexMap(rest, axes)), b)
    else:
        y = binary("add", binary("mul", y, delta), a)
    if np.dtype(out_dtype).kind in "iu":
        y = EXPORTS["floor"](y)
    if axis != 0:
        y = EXPORTS["moveaxis"](y, 0, axis)
    y = cast(y, out_dtype)
    return (y, step) if retstep else y


def _rows(x: Tensor, rank: int) -> Tensor:
    """Numbers along the first of `rank + 1` axes."""
    (n,) = x.type.shape
    return view_of(x, IndexMap((n, *(1,) * rank), (AxisMap(0, 1, 0),))) if rank else x


def _is_several(mode: Mode, divisor: DimLike, told: bool) -> tuple[bool, bool]:
    """Whether `linspace` has a step, and whether that is known before the run.

    Args:
        told: the step is a result: NumPy's number, or Python's NaN.
    """
    try:
        return mode.decide(">", divisor, 0), True
    except Undecided:
        if told and isinstance(mode, TraceMode) and mode.can_turn_back():
            some = mode.assume(mode.compare("gt", divisor, 0), "a number of samples")
            return some, not some
        return True, False


def _number(mode: Mode, d: DimLike, dtype: np.dtype) -> Any:
    from jitgraph.tensor import dim_tensor

    return d if isinstance(d, int) else cast(dim_tensor(mode, d), dtype)


@numpy_function(np.eye, creates=True)
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    mode = _mode(N, M, k)
    rows = size_of(no_bool(N))
    columns = rows if M is None else size_of(no_bool(M))
    made = full_of(mode, 0, (rows, columns), _dtype(dtype, "eye"), order)
    if type(k) is not Tensor and k == 0 and rows == columns:
        assign(view_of(made, IndexMap((rows,), (AxisMap(0, 1, 0), AxisMap(0, 1, 0)))), 1)
        return made
    hit = binary(
        "eq", binary("add", _column(iota(mode, 0, 1, rows, np.dtype(int))), k), iota(mode, 0, 1, columns, np.dtype(int))
    )
    assign(made, cast(hit, made.type.dtype))
    return made


def _column(x: Tensor) -> Tensor:
    return _rows(x, 1)


@numpy_function(np.identity, creates=True)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return eye(n, dtype=float if dtype is None else dtype)


@numpy_function(np.tri, creates=True)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:
    mode = _mode(N, M, k)
    rows = range_size(N)
    return cast(tri_mask(mode, rows, rows if M is None else range_size(M), k), _dtype(dtype, "tri"))


def range_size(n: Any) -> DimLike:
    """The length of `arange(n)`: none of a number below 0."""
    if type(n) is int:
        return max(n, 0)
    return tensor(arange(n)).type.shape[0]


def tri_mask(mode: Mode, rows: DimLike, columns: DimLike, k: Any) -> Tensor:
    """True on and below the k-th diagonal."""
    low = _column(iota(mode, 0, 1, rows, np.dtype(int)))
    return binary("ge", binary("add", low, k), iota(mode, 0, 1, columns, np.dtype(int)))  # type: ignore[no-any-return]


def _at_least_square(x: Tensor) -> Tensor:
    """A row is repeated as often as it is long, as NumPy's mask makes it."""
    if x.type.ndim != 1:
        return x
    from jitgraph.xp.shape import broadcast_to

    size = x.type.shape[0]
    return broadcast_to(x, (size, size))  # type: ignore[no-any-return]


@numpy_function(np.tril)
def tril(m: Any, k: Any = 0) -> Any:
    x = _at_least_square(array_tensor(m))
    mask = tri_mask(x._storage.mode, x.type.shape[-2], x.type.shape[-1], k)
    return EXPORTS["where"](mask, x, x.type.dtype.type(0))


@numpy_function(np.triu)
def triu(m: Any, k: Any = 0) -> Any:
    x = _at_least_square(array_tensor(m))
    mask = tri_mask(
        x._storage.mode, x.type.shape[-2], x.type.shape[-1], binary("sub", k, 1) if type(k) is Tensor else k - 1
    )
    return EXPORTS["where"](mask, x.type.dtype.type(0), x)


@numpy_function(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise errors.ShapeError("Valid values for `indexing` are 'xy' and 'ij'.")
    from jitgraph.xp.shape import broadcast_to, ravel, reshape_to

    mode = _mode(*xi)
    inputs = [ravel(array_tensor(x, mode)) for x in xi]
    ndim = len(inputs)
    place = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        place[:2] = [1, 0]
    sizes: list[DimLike] = [1] * ndim
    shaped = []
    for k, x in enumerate(inputs):
        size = x.type.shape[0]
        sizes[place[k]] = size
        shaped.append(reshape_to(x, tuple(size if at == place[k] else 1 for at in range(ndim))))
    if sparse:
        return tuple(apply(R("copy"), x, order="C") if copy else x for x in shaped)
    wide = [broadcast_to(x, tuple(sizes)) for x in shaped]
    return tuple(apply(R("copy"), x, order="C") if copy else x for x in wide)


@numpy_function(np.diag, views=True)
def diag(v: Any, k: Any = 0) -> Any:
    x = array_tensor(v)
    if x.type.ndim == 2:
        from jitgraph.xp.shape import diagonal

        return diagonal(x, k)
    if x.type.ndim != 1:
        raise errors.ShapeError("Input must be 1- or 2-d.")
    by = offset_of(k)
    down, right = dim_max(-by, 0), dim_max(by, 0)
    n = x.type.shape[0] + dim_max(-by, by)
    made = full_of(x._storage.mode, 0, (n, n), x.type.dtype)
    assign(view_of(made, IndexMap((x.type.shape[0],), (AxisMap(down, 1, 0), AxisMap(right, 1, 0)))), x)
    return made


@numpy_function(np.indices, creates=True)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    from jitgraph.xp.joining import stack

    mode = _mode(dimensions)
    grids = meshgrid(
        *[iota(mode, 0, 1, d, np.dtype(dtype)) for d in shape_of(dimensions)], sparse=sparse, indexing="ij"
    )
    return grids if sparse else stack(grids)


@numpy_function(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    from jitgraph.xp.joining import stack

    v = array_tensor(x)
    count = size_of(no_bool(N)) if N is not None else v.type.shape[0]
    if not isinstance(count, int):
        count = v._storage.mode.concrete_dim(count, "vander")  # type: ignore[attr-defined]
    dtype = np.result_type(v.type.dtype, int)
    if count == 0:
        return full_of(v._storage.mode, 1, (*v.type.shape, 0), dtype)
    powers = [full_of(v._storage.mode, 1, v.type.shape, dtype)]
    for _ in range(count - 1):
        powers.append(binary("mul", powers[-1], v))
    return stack(powers[:count] if increasing else powers[:count][::-1], axis=axis_of(-1, 2))
