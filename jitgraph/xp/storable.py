"""What may be written into arrays: NumPy's refusals of numbers that do not fit and of sequences for one element."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Value
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.storage import disjoint
from jitgraph.ir.types import IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import Mode, Tensor, plain, read
from jitgraph.xp.core import R, cast, literal, mode_in, tensor


def listed(mode: Mode, value: Any, dtype: np.dtype) -> Tensor:
    """A list that is assigned: its numbers have to fit `dtype`, as those of an array made of it.

    Raises:
        OverflowError, ValueError, TypeError: NumPy's own.
    """
    if mode_in(value) is not None:
        return tensor(converted(mode, value, dtype), mode)
    if dtype.kind not in "biufc" or _has_arrays(value):
        return tensor(value, mode)
    return literal(mode, np.array(value, dtype))


def converted(mode: Mode, items: Any, dtype: np.dtype) -> Any:
    """Nested lists whose numbers are cast to `dtype` one by one: they have to fit.

    Raises:
        OverflowError, ValueError, TypeError: NumPy's own.
    """
    for number in _scalars(items):
        if not check_int(mode, number, dtype):
            check_number(mode, number, dtype, elements=False)
    return _cast(items, dtype)


def check_int(mode: Mode, number: Any, dtype: np.dtype) -> bool:
    """Whether a number is an int of Python's in a trace: then it has to fit `dtype`.

    Raises:
        OverflowError: it is known, and does not.
    """
    if type(number) is not Tensor or number.type.kind != "py_int" or not isinstance(mode, TraceMode):
        return False
    if dtype.kind in "iu":
        mode.check_fits(read(number), dtype)
    return True


def mode_named(mode: Any) -> str:
    """The `mode=` of `take`, `put` and `choose`: NumPy looks at it before anything else.

    Raises:
        ValueError, TypeError: NumPy's own.
    """
    if mode in ("raise", "wrap", "clip"):
        return mode  # type: ignore[no-any-return]
    np.take(np.zeros(1), np.zeros(0, np.intp), mode=mode)  # refuses what is none
    return "raise" if mode is None else ("clip", "wrap", "raise")[int(mode)]


def index_array(x: Any, mode: Mode | None, casting: str) -> Tensor:
    """What `take`, `put` and their kin take for indices, as int64: numbers go through `int`, arrays have to fit.

    Raises:
        DTypeError: the elements are of another kind.
        OverflowError, ValueError, TypeError: NumPy's own.
    """
    whole = np.dtype(np.int64)
    if isinstance(x, list | tuple):
        made = mode_in((x,)) or mode
        t = listed(made, x, whole) if made is not None else tensor(np.array(x, whole), mode)
        return cast(t, whole)  # type: ignore[no-any-return]
    t = tensor(x, mode)
    own = t.type.dtype
    if t.type.kind != "array" and not isinstance(x, np.ndarray):
        check_number(t._storage.mode, x, whole, elements=True)
    elif own.kind not in ("biu" if casting == "same_kind" or own != np.uint64 else "bi"):
        what = "array data" if t.type.ndim else "scalar"
        raise errors.DTypeError(
            f"Cannot cast {what} from dtype('{own}') to dtype('int64') according to the rule '{casting}'"
        )
    return t if own == whole else cast(t, whole)


#: What `stored` takes as it is, but for bools, which take what is not 0.
_NUMBERS = (np.number, np.bool_, complex)
#: What has a value that only its class and the object itself decide.
_PLAIN = (
    str, bytes, type(None), range, list, tuple, dict, set, frozenset, slice, type, type(...), type(NotImplemented),
    int, float, complex, bool,
)  # fmt: skip


def stored(mode: Mode, value: Any, dtype: np.dtype, element: bool) -> Any:
    """What NumPy makes of a value that is assigned, if it is neither an array nor a plain number.

    Texts, None, ranges and lists are converted here, for good: no data are behind them. Lists with traced values are
    made arrays of `dtype`.

    Args:
        element: all axes are indexed by integers: the dtype's own rule for one element, Python's truth for a bool.

    Raises:
        OverflowError, ValueError, TypeError: NumPy's own.
    """
    if type(value) is Tensor:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else _converted(mode, value, dtype, element)
    if isinstance(value, float | np.ndarray) or (isinstance(value, _NUMBERS) and dtype.kind != "b"):
        return value
    if type(value) in (list, tuple):
        if element and dtype.kind == "b":
            return len(value) > 0
        if mode_in(value) is not None or _has_arrays(value):
            return listed(mode, value, dtype)
    return _converted(mode, value, dtype, element) if _is_plain(value) else value


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, np.number | np.bool_ | np.character) or type(value) in _PLAIN


def _converted(mode: Mode, value: Any, dtype: np.dtype, element: bool) -> Tensor:
    if not element:
        return literal(mode, np.array(value, dtype))
    made = np.zeros(1, dtype)
    made[0] = value
    return literal(mode, made[0:1].reshape(()))


def _has_arrays(value: Any) -> bool:
    """Arrays in a list are cast as arrays are: no number is refused."""
    return any(isinstance(v, np.ndarray) or (isinstance(v, list | tuple) and _has_arrays(v)) for v in value)


def _scalars(value: Any) -> Iterator[Any]:
    """The numbers in a list, and in the lists in it."""
    for v in value:
        if isinstance(v, list | tuple):
            yield from _scalars(v)
        elif not isinstance(v, np.ndarray) and not (type(v) is Tensor and v.type.kind == "array"):
            yield v


def _cast(value: Any, dtype: np.dtype) -> Any:
    if isinstance(value, list | tuple):
        return [_cast(v, dtype) for v in value]
    if type(value) is Tensor:
        return cast(value, dtype)
    return value.astype(dtype) if isinstance(value, np.ndarray) else np.array(value, dtype)[()]


#: An error's class and text in place of the own ones of what refuses a number.
Refusal = tuple[str, str]


def check_number(mode: Mode, value: Any, dtype: np.dtype, elements: bool, refusal: Refusal | None = None) -> None:
    """A scalar that is assigned: Python's numbers go through `int`, so NaN and what is out of range raise.

    So do NumPy's where a signed integer is written; an unsigned one takes their low bits, as a cast.

    Args:
        elements: index arrays or a mask choose what is written: then only Python's numbers are converted so.
        refusal: the error to raise in place of all of these.

    Raises:
        ValueError, OverflowError: as Python's `int`, or because the dtype does not hold it.
        DTypeError: a Python complex number for a real dtype.
    """
    kind = value.type.kind if type(value) is Tensor else _kind(value)
    if kind == "py_complex" and dtype.kind in "iuf":
        name = "int" if dtype.kind in "iu" else "float"
        text = "a string or a real number" if name == "float" else "a string, a bytes-like object or a real number"
        raise errors.DTypeError(f"{name}() argument must be {text}, not 'complex'")
    if kind == "np_scalar":
        have = (value.type if type(value) is Tensor else value).dtype
        if elements or dtype.kind != "i" or have.kind not in "iufc" or np.can_cast(have, dtype):
            return
    elif kind != "py_float" or dtype.kind not in "iu":
        return
    if type(value) is not Tensor:
        _whole(value, dtype)
    elif not isinstance(mode, TraceMode):
        _whole(plain(value), dtype)
    else:
        _check_at_run_time(mode, value, dtype, refusal)


def _kind(value: Any) -> str:
    if isinstance(value, np.generic):
        return "np_scalar"
    return {complex: "py_complex", float: "py_float"}.get(type(value), "")


def _whole(value: Any, dtype: np.dtype) -> None:
    whole, info = int(value.real), np.iinfo(dtype)
    if not info.min <= whole <= info.max:
        if not -(2**63) <= whole < 2**63:
            raise OverflowError("Python int too large to convert to C long")
        raise OverflowError(f"Python integer {whole} out of bounds for {dtype.name}")


def _check_at_run_time(mode: TraceMode, value: Tensor, dtype: np.dtype, refusal: Refusal | None) -> None:
    def check(condition: Value, error: str, text: str, *shown: Value) -> None:
        if refusal is None:
            mode.check(condition, error, text, *shown)
        else:
            mode.check(condition, *refusal)

    v = read(value)
    known = constant_of(v)
    if known is not None:
        _whole(known, dtype)
        return
    info, apply = np.iinfo(dtype), mode.builder.apply
    text = f"Python integer {{0}} out of bounds for {dtype.name}"
    if v.type.dtype.kind in "iu":
        if v.type.dtype == np.uint64:
            long = apply(R("le"), v, np.uint64(2**63 - 1))[0]
            check(long, "OverflowError", "Python int too large to convert to C long")
        inside = apply(R("le"), v, v.type.dtype.type(info.max))[0]
        if v.type.dtype.kind == "i":
            inside = apply(R("logical_and"), inside, apply(R("ge"), v, v.type.dtype.type(info.min))[0])[0]
        check(inside, "OverflowError", text, v)
        return
    if v.type.dtype.kind == "c":
        v = apply(R("real"), v)[0]
    f64 = np.dtype(np.float64)
    if v.type.dtype != f64:
        v = apply(R("cast"), v, dtype=f64)[0]
    number = apply(R("eq"), v, v)[0]
    check(number, "ValueError", "cannot convert float NaN to integer")
    finite = apply(R("isfinite"), v)[0]
    check(finite, "OverflowError", "cannot convert float infinity to integer")
    low, high = float(info.min) - 1, float(info.max) + 1  # in float64 both are exact, or the next ones outwards
    above = apply(R("ge") if low == float(info.min) else R("gt"), v, low)[0]
    inside = apply(R("logical_and"), above, apply(R("lt"), v, high)[0])[0]
    check(inside, "OverflowError", text, v)


def check_sequence(value: Any, dtype: np.dtype, ndim: int, scalar: bool, from_list: bool) -> None:
    """A sequence where a single element is written, or a list with more axes than what it is written to.

    Raises:
        ValueError: NumPy makes the element of the sequence.
        TypeError: Python's `complex` or `int` makes it.
    """
    have = value.type.ndim if type(value) is Tensor else np.ndim(value)
    if from_list and have > ndim and not scalar:
        raise errors.ShapeError(
            "setting an array element with a sequence. The requested array would exceed the maximum number of "
            f"dimension of {ndim}."
        )
    if scalar and have and (from_list or _refuses_arrays()):
        if dtype.kind == "c":
            raise errors.DTypeError("must be real number, not list" if from_list else _NO_SCALAR)
        if dtype.kind in "iu" and from_list:
            raise errors.DTypeError("int() argument must be a string, a bytes-like object or a real number, not 'list'")
        raise errors.ShapeError("setting an array element with a sequence.")


_NO_SCALAR = "only 0-dimensional arrays can be converted to Python scalars"


@functools.cache
def _refuses_arrays() -> bool:
    """Whether this NumPy refuses an array of one element where an element is written (2.4), or takes the element."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            np.zeros(1)[0] = np.ones(1)
        except (ValueError, TypeError):
            return True
    return False


def refuse_overlap(x: Tensor, values: Any, what: str, *, counted: bool = False) -> None:
    """Refuse values for single elements of `x` that are another view of these: NumPy overwrites some first.

    Which ones depends on how its copy loops are compiled, so no other code can have its results.

    Args:
        counted: there is a value for each element written, so that values that are `x` itself go where they are.

    Raises:
        TraceError: `values` is a view of the storage of `x`, and nothing proves the two to be apart.
    """
    mode = x._storage.mode
    if type(values) is not Tensor or values._storage is not x._storage or not isinstance(mode, TraceMode):
        return
    if all(d == 1 for d in values.type.shape):
        return
    own, other = _as_map(x), _as_map(values)
    if counted and own is not None and own == other:
        return
    if own is None or other is None or not disjoint(own, other, mode.builder.graph.facts):
        mode.leave(
            f"{what} takes its values from another view of the elements written, some of which NumPy overwrites first",
            "copy them first: `values.copy()`.",
        )


def refuse_sequence(x: Tensor, values: Any, what: str, *, ordered: bool = True) -> None:
    """Refuse values that NumPy writes one by one, in C order and without a copy, where an earlier write may change one.

    None is changed where, along each axis that the target has, some axis of memory is walked alike by both: then what
    is read for an element is no element written before it.

    Source: `iter_ass_subscript`.

    Args:
        ordered: the elements of `x` are written one after the other, each once; else some of them, anyhow.

    Raises:
        TraceError: `values` is a view of the storage of `x` of the same dtype; nothing proves the order to be right.
    """
    mode = x._storage.mode
    if type(values) is not Tensor or values._storage is not x._storage or not isinstance(mode, TraceMode):
        return
    if values.type.dtype != x.type.dtype or all(d == 1 for d in values.type.shape):
        return
    own, other = _as_map(x), _as_map(values)
    if own is not None and other is not None:
        alike = {p.axis for p, q in zip(own.axes, other.axes, strict=True) if p == q}
        same = len(own.shape) == len(other.shape) and all(
            same_size(mode, a, b) for a, b in zip(own.shape, other.shape, strict=True)
        )
        if ordered and same and alike.issuperset(range(len(own.shape))):
            return
        if disjoint(own, other, mode.builder.graph.facts):
            return
    mode.leave(
        f"{what} takes its values from the elements written, one after the other: NumPy overwrites some first",
        "copy them first: `values.copy()`.",
    )


def same_size(mode: Mode, a: DimLike, b: DimLike) -> bool:
    """Whether two sizes are known to be equal: by proof or guard."""
    try:
        return mode.decide("==", a, b)
    except Undecided:
        return False


def refuse_order(x: Tensor, values: Any) -> None:
    """Refuse `x = values` of two views along one axis where NumPy overwrites a value before it reads it.

    It goes forward, or backward if the values begin in front of the target and reach it, and makes no copy of values in
    one axis. With equal steps that is right, and for `x[:n] = x[::2]`, not for `x[::2] = x[:n]`.

    Source: `raw_array_assign_array`.

    Raises:
        TraceError: some value is overwritten first (perhaps, where the size is a symbol).
    """
    mode = x._storage.mode
    if type(values) is not Tensor or values._storage is not x._storage or not isinstance(mode, TraceMode):
        return
    own, other = _as_map(x), _as_map(values)
    if own is None or other is None or not len(own.shape) == len(other.shape) == 1 or other.shape == (1,):
        return
    pairs = [(p, q) for p, q in zip(own.axes, other.axes, strict=True) if p != q or p.axis is not None]
    if len(pairs) != 1:
        return
    ((target, source),) = pairs
    steps, gap = (target.step, source.step), source.offset - target.offset
    if target.axis is None or source.axis is None or not all(isinstance(step, int) for step in steps):
        return
    if _overwrites(target.step, source.step, gap, own.shape[0]):
        mode.leave(
            "the values lie over the elements written, with another step: NumPy overwrites some before it reads them",
            "copy them first: `values.copy()`.",
        )


def _overwrites(target: DimLike, source: DimLike, gap: DimLike, size: DimLike) -> bool:
    """Whether element j of the values, at `gap + j * source`, is some element k of the target, at `k * target`, written
    before it is read.
    """
    if not isinstance(target, int) or not isinstance(source, int) or target * source < 0:
        return False  # opposite directions: NumPy makes a copy
    if target < 0:
        gap, target, source = gap + (size - 1) * (source - target), -target, -source
    if not isinstance(gap, int):
        return False
    steps = target - source if gap >= 0 else source - target
    for ahead in range(1, steps + 1):  # k = j - ahead going forward, j + ahead going backward
        j, rest = divmod(abs(gap) + target * ahead, steps)
        if not rest and (not isinstance(size, int) or j + ahead * (gap < 0) < size):
            return True
    return False


def _as_map(x: Tensor) -> IndexMap | None:
    """The elements of the storage that a view has, if its steps are all affine."""
    base = x._storage.value
    made = IndexMap.identity(base.type.shape) if isinstance(base, Value) else None
    for step in x._steps:
        if made is None or not isinstance(step, IndexMap):
            return None
        made = made.then(step)
    return made
