"""What all families share: NumPy calls for plain arrays, operands, axes, casts; the table of stand-ins."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import jitgraph.ops  # noqa: F401  # fills the registry
from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import Dim, DimLike
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY, OpDef
from jitgraph.ir.types import IndexMap, Shape
from jitgraph.modes import TraceMode
from jitgraph.sizes import array_shape_text, shape_text
from jitgraph.tensor import (
    EAGER,
    Mode,
    Tensor,
    apply,
    assign,
    check_dtype,
    current_mode,
    dim_tensor,
    lift,
    make,
    plain,
    require_output,
    wrap,
)
from jitgraph.xp.flat import FlatIter
from jitgraph.xp.ufunc_loops import first_refusal, raise_mask

F = TypeVar("F", bound=Callable[..., Any])

#: NumPy callable (also `ufunc.reduce` under `(ufunc, "reduce")`) to the function here that stands for it.
NUMPY_TABLE: dict[Any, Callable[..., Any]] = {}
#: Names that `jitgraph.xp` exports.
EXPORTS: dict[str, Callable[..., Any]] = {}


def R(name: str) -> OpDef:  # noqa: N802  # short, as it is everywhere
    """The operator record of that name."""
    return REGISTRY[name]


# --- which mode


def mode_in(args: Any) -> Mode | None:
    """The mode of the Tensors in nested lists, tuples and dicts of arguments; None if there is no Tensor at all."""
    found: Mode | None = None
    mode: Mode
    for x in args:
        kind = type(x)
        if kind is Tensor:
            mode = x._storage.mode
        elif kind is list or kind is tuple:
            inner = mode_in(x)
            if inner is None:
                continue
            mode = inner
        elif kind is slice:
            inner = mode_in((x.start, x.stop, x.step))
            if inner is None:
                continue
            mode = inner
        elif kind is FlatIter:
            mode = x.base._storage.mode
        else:
            continue
        if mode.name == "trace":
            return mode
        if found is None or found is EAGER:
            found = mode
    return found


def unwrap(x: Any) -> Any:
    """Nested arguments with the data of eager Tensors in their place."""
    kind = type(x)
    if kind is Tensor:
        return plain(x)
    if kind is list:
        return [unwrap(i) for i in x]
    if kind is tuple:
        return tuple([unwrap(i) for i in x])
    if kind is slice:
        return slice(unwrap(x.start), unwrap(x.stop), unwrap(x.step))
    return x


def rewrap(x: Any) -> Any:
    """Arrays and NumPy scalars in a result as Tensors."""
    if isinstance(x, (np.ndarray, np.generic)):
        return wrap(EAGER, x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[rewrap(i) for i in x])
    if isinstance(x, (list, tuple)):
        return type(x)([rewrap(i) for i in x])
    return x


def call_numpy(original: Callable[..., Any], name: str, args: Any, kwargs: Any, tensors: bool) -> Any:
    """NumPy's own function on plain data; Tensors in the arguments make Tensors of the results.

    Raises:
        the error that NumPy raises, as the class of `jitgraph.errors` that is also NumPy's, with the operands named.
    """
    for x in args:
        if isinstance(x, np.ndarray) and x.dtype.kind not in "biufc":
            check_dtype(x.dtype, f"jg.{name}")
    try:
        if not tensors:
            return original(*args, **kwargs)
        result = original(*unwrap(tuple(args)), **{k: unwrap(v) for k, v in kwargs.items()})
    except (ValueError, TypeError, IndexError) as error:
        raise translate(error, name, args) from None
    out = kwargs.get("out")
    if out is not None:
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out
    return rewrap(result)


def lift_plain() -> None:
    """Begin the trace that runs, if any, anew, if the plain arrays that NumPy makes in it can be traced ones."""
    tracing = current_mode()
    if isinstance(tracing, TraceMode):
        tracing.lift_plain()


def translate(error: Exception, name: str, args: Sequence[Any]) -> Exception:
    """NumPy's error as ours, with the operation and its operands named."""
    known = type(error) in _TRANSLATED or isinstance(error, (np.exceptions.AxisError, TypeError))
    if isinstance(error, errors.JitgraphError) or not known:
        return error
    facts = [f"operand {k + 1}: {describe_operand(x)}" for k, x in enumerate(args) if describe_operand(x)]
    text = errors.describe(f"{name}: {error}", facts=facts)
    if isinstance(error, np.exceptions.AxisError):
        return errors.AxisError(text)
    if isinstance(error, TypeError):
        return errors.DTypeError(text)
    if isinstance(error, IndexError):
        return errors.IndexingError(text)
    return errors.ShapeError(text)


_TRANSLATED = (ValueError, TypeError, IndexError)


def describe_operand(x: Any) -> str:
    """`f64[3, 4]`, `py_int`; empty for what is no operand."""
    if type(x) is Tensor:
        return str(x.type)
    if isinstance(x, np.ndarray):
        return f"{x.dtype}[{', '.join(map(str, x.shape))}]"
    return type(x).__name__ if isinstance(x, (int, float, np.generic)) else ""


def class_text(x: Any) -> str:
    """The class of an operand (a Tensor, a value of the graph, anything else) as Python's errors name it."""
    t = x.type if isinstance(x, (Value, Tensor)) else None
    if t is not None and t.is_python:
        return repr(t.kind.removeprefix("py_"))
    kind = type(x) if t is None else t.dtype.type if t.kind == "np_scalar" else np.ndarray
    return repr(f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__)


def refused_operands(sign: str, a: Any, b: Any) -> errors.DTypeError:
    """Python's error for an operator that these operands do not have."""
    names = f"{class_text(a)} and {class_text(b)}"
    if sign in ("<", "<=", ">", ">="):
        return errors.DTypeError(f"'{sign}' not supported between instances of {names}")
    return errors.DTypeError(f"unsupported operand type(s) for {'** or pow()' if sign == '**' else sign}: {names}")


def numpy_function(*originals: Any, views: bool = False, creates: bool = False, name: str = "") -> Callable[[F], F]:
    """Make the decorated body the stand-in of NumPy's functions `originals`.

    Plain arguments (and eager Tensors, unless `views`) go to NumPy itself; the body runs for traced and recorded ones.

    Args:
        views: the result shares memory, so that eager Tensors need the body as well.
        creates: makes arrays out of nothing: inside a trace the body runs without traced arguments too.
    """

    def decorate(body: F) -> F:
        original = originals[0]
        label = name or body.__name__

        @functools.wraps(body)
        def function(*args: Any, **kwargs: Any) -> Any:
            mode = mode_in(args)
            if kwargs and (mode is None or mode is EAGER):
                inner = mode_in(kwargs.values())
                if inner is not None:
                    mode = inner
            if mode is None:
                tracing = current_mode()
                if not creates or tracing is None:
                    made = call_numpy(original, label, args, kwargs, tensors=False)
                    return tracing.lifted(made) if isinstance(tracing, TraceMode) and tracing.lifts else made
            elif mode is EAGER and not views and not (creates and current_mode() is not None):
                return call_numpy(original, label, args, kwargs, tensors=True)
            mark = mode.mark() if isinstance(mode, TraceMode) else None
            while True:
                try:
                    given = kwargs.get("out")
                    for out in given if type(given) is tuple else (given,):
                        require_output(out)
                    return body(*args, **kwargs)
                except errors.JitgraphError as error:
                    first = first_refusal(original, args, kwargs, error)
                    is_first = isinstance(original, np.ufunc) and isinstance(first, errors.DTypeError)
                    if is_first and mark is not None and isinstance(mode, TraceMode):
                        mode.drop_checks(mark)
                    raise (mode.located(first) if isinstance(mode, TraceMode) else first) from None
                except Undecided as unknown:
                    tracing = mode if isinstance(mode, TraceMode) else current_mode()
                    assert isinstance(tracing, TraceMode)
                    settle(tracing, unknown, label)

        for f in originals:
            NUMPY_TABLE[f] = function
        EXPORTS[label] = function
        return function  # type: ignore[return-value]

    return decorate


_COMPARED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def settle(mode: TraceMode, unknown: Undecided, what: str) -> bool:
    """Assume a relation of sizes that only the run knows, on which the form of `what` depends: a trace for each answer.

    Raises:
        TraceError: no call can turn back here, or no other trace can be made.
    """
    relation, a, b = unknown.relation, unknown.a, unknown.b
    holds = mode.assume(mode.compare(_COMPARED[relation], a, b), f"the form of {what} ({unknown})")
    mode.builder.suppose(relation, a, b, holds)
    return holds


# --- operands


def is_tensor(x: Any) -> bool:
    return type(x) is Tensor


def tensor(x: Any, mode: Mode | None = None) -> Tensor:
    """`x` as a Tensor of `mode` (of its own, or of the Tensors in it, if None)."""
    if type(x) is Tensor:
        if mode is None or x._storage.mode is mode:
            return x
        return wrap(mode, lift(mode, x))
    if type(x) is FlatIter:
        return tensor(x.copy(), mode)
    if mode is None:
        mode = mode_in((x,)) or current_mode() or EAGER
    if isinstance(x, (list, tuple)) and mode_in(x) is not None:
        from jitgraph.xp.creation import array

        made = array(x)
        return tensor(made, mode)
    if not isinstance(x, (np.ndarray, np.generic, int, float, complex)):
        made = np.asarray(x)
        check_dtype(made.dtype, "array")
        return literal(mode, made)
    return wrap(mode, mode.lift(x))


def literal(mode: Mode, data: np.ndarray) -> Tensor:
    """An array with elements that are part of the program."""
    return wrap(mode, mode.literal(data) if isinstance(mode, TraceMode) else mode.lift(data))


def array_tensor(x: Any, mode: Mode | None = None) -> Tensor:
    """`x` as a Tensor that is an array: scalars become fresh 0-d arrays."""
    t = tensor(x, mode)
    return t if t.type.kind == "array" else as_kind(t, "array")


def operand(x: Any) -> Any:
    """An operand for `apply`: nested lists with Tensors and `x.flat` become arrays, the rest stays."""
    if isinstance(x, (list, tuple, FlatIter)):
        return tensor(x)
    return x


def as_kind(x: Tensor, kind: str) -> Tensor:
    """The same value held as another kind of scalar or as a 0-d array."""
    mode = x._storage.mode
    if x.type.kind == kind:
        return x
    if mode is EAGER:
        value = plain(x)
        value = (
            np.asarray(value)
            if kind == "array"
            else np.asarray(value)[()]
            if kind == "np_scalar"
            else np.asarray(value).item()
        )
        return wrap(EAGER, value)
    return apply(R("as_kind"), x, kind=kind)  # type: ignore[no-any-return]


def np_kind(x: Any) -> Any:
    """What a NumPy function returns: Python kinds become NumPy scalars."""
    if type(x) is Tensor and x.type.is_python:
        return as_kind(x, "np_scalar")
    return x


def fresh_scalar(x: Tensor) -> Tensor:
    """A 0-d result as NumPy returns it from functions that give scalars."""
    t = x.type
    return as_kind(x, "np_scalar") if t.kind == "array" and not t.shape else x


def cast(x: Any, dtype: Any) -> Any:
    """`x` in another dtype (as `astype`, a fresh value); nothing if it has it."""
    dtype = np.dtype(dtype)
    check_dtype(dtype, "cast")
    t = x.type
    if t.dtype == dtype and not t.is_python:
        return x
    if t.kind == "py_int" and dtype in (np.float32, np.complex64):  # by way of Python's float
        return apply(R("cast"), x, dtype=dtype)
    if t.is_python:
        x = as_kind(x, "np_scalar")
        if t.dtype == dtype:
            return x
    return apply(R("cast"), x, dtype=dtype)


def fit(mode: Any, value: Any, t: Any, casting: str) -> Any:
    """`value` of `mode`, cast and broadcast to type `t`: what a write stores.

    Raises:
        DTypeError, ShapeError: as NumPy refuses it.
    """
    have = mode.type_of(value)
    if have.dtype != t.dtype:
        if have.kind == "py_complex" and t.dtype.kind not in "bc" and casting == "unsafe":
            what = "int() argument must be a string, a bytes-like object"
            if t.dtype.kind not in "iu":
                what = "float() argument must be a string"
            raise errors.DTypeError(f"{what} or a real number, not 'complex'")
        if not can_cast(have, t.dtype, casting):
            raise errors.DTypeError(
                errors.describe(
                    f"Cannot cast output from dtype('{have.dtype}') to dtype('{t.dtype}') with casting rule "
                    f"'{casting}'",
                    _loc(mode),
                    remedy=f"use x = x + y for a new array, or y.astype({t.dtype}).",
                )
            )
        if have.kind == "py_int" and mode.name == "trace" and t.dtype.kind in "iu":
            mode.check_fits(value, t.dtype)
        (value,) = mode.apply(R("cast"), [value], {"dtype": t.dtype})
        have = mode.type_of(value)
    if have.shape == t.shape:
        return value
    shape = have.shape
    extra = len(shape) - len(t.shape)
    if extra > 0 and (
        all(d == 1 for d in shape[:extra]) or (mode.name == "trace" and mode.repeats_to(shape[:extra], (1,) * extra))
    ):
        value = mode.view(
            mode.stretch(value, (*(1,) * extra, *shape[extra:])) if mode.name == "trace" else value, shape[extra:]
        )
        shape = shape[extra:]
    if len(shape) <= len(t.shape):
        if mode.name == "trace":
            if mode.repeats_to(shape, t.shape):
                return mode.stretch(value, t.shape)  # `write` repeats axes of size 1
        elif all(d in (1, e) for d, e in zip(reversed(shape), reversed(t.shape), strict=False)):
            return mode.view(value, IndexMap.broadcast(shape, t.shape))
    raise errors.ShapeError(
        errors.describe(
            f"could not broadcast input array from shape {_shown(mode, have.shape)} into shape {_shown(mode, t.shape)}",
            _loc(mode),
        )
    )


def _shown(mode: Any, shape: Shape) -> str:
    """A shape as NumPy writes it in messages of writes, with the sizes of the call that is traced."""
    return array_shape_text(tuple(mode.example(d) for d in shape) if isinstance(mode, TraceMode) else shape)


def can_cast(have: Any, dtype: np.dtype, casting: str) -> bool:
    """NumPy's casting rules; Python numbers are weak under "same_kind"."""
    if casting == "unsafe":
        return True
    if have.is_python and casting == "same_kind":
        order = "biufc"
        weak = {"py_bool": "b", "py_int": "i", "py_float": "f", "py_complex": "c"}[have.kind]
        return order.index("i" if dtype.kind == "u" else dtype.kind) >= order.index(weak)
    return bool(np.can_cast(have.dtype, dtype, casting))  # type: ignore[arg-type]


def _loc(mode: Any) -> Any:
    return mode.locate() if mode.name == "trace" else None


# --- axes and sizes


def memory_order(order: Any) -> str:
    """`order=` as "C", "F", "A" or "K" (None is "K").

    Raises:
        ShapeError: another word.
    """
    if order is None:
        return "K"
    found = order.upper() if isinstance(order, str) else ""
    if found not in ("C", "F", "A", "K"):
        raise errors.ShapeError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return found


NEGATIVE = "negative dimensions are not allowed"


def size_of(x: Any, free: bool = False, negative: str = NEGATIVE) -> DimLike:
    """A size given by the user (int, NumPy integer, traced `py_int`) as a dim.

    Args:
        negative: what is raised for a traced number below zero.
        free: a negative number says that the size follows from the others: it is -1; that a traced one is, is assumed.
    """
    kind = type(x)
    if kind is int:
        return x  # type: ignore[no-any-return]
    if isinstance(x, Dim):
        return x
    if kind is Tensor:
        dim, mode = x._dim, x._storage.mode
        if isinstance(dim, Dim):
            return -1 if free and _is_negative(mode, dim) else _not_negative(mode, dim, negative)
        if isinstance(dim, int):
            return dim
        if isinstance(mode, TraceMode):
            t = x.type
            if t.dtype.kind not in "iu" or t.shape:
                raise errors.DTypeError(f"'{t}' object cannot be interpreted as an integer")
            value = lift(mode, x)
            known = mode.builder.apply(R("ge"), value, 0)[0]
            if free and mode.can_turn_back() and not mode.assume(known, "a negative size"):
                return -1
            mode.check(known, "ValueError", negative)
            return mode.bind(value, "k", 0)
    return operator.index(x)


def _is_negative(mode: Any, dim: Dim) -> bool:
    """Whether a computed size is below zero, by proof or guard."""
    try:
        return not mode.decide(">=", dim, 0)
    except Undecided:
        return False


def _not_negative(mode: Any, dim: Dim, text: str) -> Dim:
    """A computed size (`n - m + 1`): proven, guarded or checked to be none below zero."""
    try:
        if not mode.decide(">=", dim, 0):
            raise errors.ShapeError(errors.describe(text, _loc(mode)))
    except Undecided:
        mode.check(mode.compare("ge", dim, 0), "ValueError", text)
    return dim


def not_negative(mode: Any, x: Any, text: str) -> Any:
    """A count to compute with: an int, or a traced one that is checked.

    Raises:
        ShapeError: it is below zero; with this text.
    """
    if type(x) is Tensor:
        return dim_tensor(mode, size_of(x, negative=text))
    count = operator.index(x)
    if count < 0:
        raise errors.ShapeError(errors.describe(text, _loc(mode)))
    return count


def offset_of(x: Any) -> DimLike:
    """An integer of any sign (of a diagonal) as a dim."""
    if type(x) is not Tensor:
        return operator.index(x)
    dim, mode = x._dim, x._storage.mode
    if isinstance(dim, (int, Dim)) or not isinstance(mode, TraceMode):
        return dim if isinstance(dim, (int, Dim)) else operator.index(plain(x))
    if x.type.dtype.kind not in "iu" or x.type.shape:
        raise errors.DTypeError(f"'{x.type}' object cannot be interpreted as an integer")
    return mode.bind(lift(mode, x), "b")


def sizes_agree(
    mode: Mode, a: DimLike, b: DimLike, message: str, *, repeats: bool = False, error: str = "ValueError"
) -> bool:
    """Whether two sizes are equal, by proof or guard; sizes known at run time are checked there.

    Args:
        message: of the error; `{0}` and `{1}` are the sizes.
        repeats: an `a` of 1 will do, too.
    """
    try:
        return (repeats and mode.decide("==", a, 1)) or mode.decide("==", a, b)
    except Undecided:
        assert isinstance(mode, TraceMode)
        fits = mode.compare("eq", a, b)
        if repeats:
            fits = mode.any_of(fits, mode.compare("eq", a, 1))
        mode.check(fits, error, message, a, b)
        return True


def no_bool(given: Any) -> Any:
    """An axis or a size, or several of them, as NumPy's converters in C take them: a bool is no integer there.

    Raises:
        DTypeError: a bool is among them.
    """
    for x in given if isinstance(given, (list, tuple)) else (given,):
        if isinstance(x, bool):
            raise errors.DTypeError(errors.describe("an integer is required, not a bool", _current_loc()))
    return given


def shape_of(shape: Any, free: bool = False, *, bools: bool = False) -> Shape:
    """A shape given by the user: an integer or a sequence of them; `free` as for `size_of`.

    Args:
        bools: these are integers, too.

    Raises:
        DTypeError: a bool is among them.
    """
    if not bools:
        no_bool(shape)
    if type(shape) is Tensor and shape.type.kind == "array" and shape.type.ndim == 1:
        return tuple(size_of(shape[k], free) for k in range(len(shape)))
    if isinstance(shape, (list, tuple)):
        return tuple([size_of(d, free) for d in shape])
    if isinstance(shape, np.ndarray) and shape.ndim:
        return tuple(int(d) for d in shape)
    return (size_of(shape, free),)


def axis_of(axis: Any, ndim: int, what: str = "") -> int:
    """An axis in range and not negative.

    Raises:
        AxisError: out of range.
        TypeError: no integer.
    """
    if type(axis) is Tensor:
        axis = axis.__index__()
    try:
        k = operator.index(axis)
    except TypeError as error:
        raise TypeError(str(error)) from None  # the user's, who named it
    if not -ndim <= k < ndim:
        loc = _current_loc()
        raise errors.AxisError(
            errors.describe(
                f"{what + ': ' if what else ''}axis {k} is out of bounds for array of dimension {ndim}", loc
            )
        )
    return k + ndim if k < 0 else k


def axes_of(axis: Any, ndim: int, what: str = "") -> tuple[int, ...]:
    """The axes of a reduction: all for None.

    Raises:
        AxisError: out of range.
        ValueError: an axis is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)):
        axes = tuple(axis_of(a, ndim, what) for a in axis)
        if len(set(axes)) < len(axes):
            raise errors.ShapeError(f"{what}: duplicate value in 'axis'")
        return axes
    return (axis_of(axis, ndim, what),)


def _current_loc() -> Any:
    mode = current_mode()
    return mode.locate() if isinstance(mode, TraceMode) else None


def product(dims: Sequence[DimLike]) -> DimLike:
    total: DimLike = 1
    for d in dims:
        total = total * d
    return total


def deliver(result: Tensor, out: Any, casting: str = "same_kind", *, repeats: bool = False) -> Any:
    """A result as the caller asked for it: itself, or written to `out`.

    Args:
        repeats: of an operator that broadcasts, also to the shape of `out`.

    Raises:
        ShapeError: `out` has another shape.
    """
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        return result
    if out is Ellipsis:  # an array, where a scalar would come
        return array_tensor(result)
    if type(out) is not Tensor:
        if isinstance(out, np.ndarray):
            lift_plain()
            raise errors.TraceError(
                errors.describe(
                    "out= is a plain array from outside",
                    _current_loc(),
                    remedy="make it with np.empty_like, or wrap it in jg.Tensor.",
                )
            )
        raise errors.DTypeError("return arrays must be of ArrayType")
    require_output(out)
    if type(result) is not Tensor:  # of plain numbers
        result = tensor(result, out._storage.mode)
    shape = result.type.shape
    ranks, open_ = len(out.type.shape) - len(shape), shape != out.type.shape
    if ranks < 0 or (ranks and not repeats) or (not ranks and open_ and not (repeats and 1 in shape)):
        mode = result._storage.mode
        for a, b in zip(shape or (1,), out.type.shape or (1,), strict=False):
            fits = not ranks and sizes_agree(mode, a, b, "size {0} for an out of size {1}", repeats=repeats)
            if not fits:
                raise errors.ShapeError(
                    errors.describe(
                        f"non-broadcastable output operand with shape {shape_text(out.type.shape)} doesn't match the "
                        f"broadcast shape {shape_text(shape)}",
                        _current_loc(),
                    )
                )
    assign(out, result, casting)
    return out


def mask_of(where: Any, mode: Mode) -> Tensor:
    """A `where=` argument: bools, or a sequence of what is true or false; other arrays are refused.

    Raises:
        DTypeError: an array that is not boolean.
    """
    mask = tensor(where, mode)
    if mask.type.dtype.kind != "b":
        if type(where) is Tensor or isinstance(where, np.ndarray):
            raise_mask(mask.type.dtype)
        mask = tensor(EXPORTS["not_equal"](mask, 0), mode)
    return mask


def view_tensor(x: Any) -> Tensor:
    """An operand of a view function: Tensors as they are, arrays and nested lists wrapped."""
    return x if type(x) is Tensor and x.type.kind == "array" else array_tensor(x)


def unwrap_eager(x: Any, *inputs: Any) -> Any:
    """A Tensor made from plain inputs only, in eager mode, as a plain array."""
    if type(x) is Tensor and x._storage.mode is EAGER and mode_in(inputs) is None:
        return plain(x)
    return x


def empty_result(mode: Mode, shape: Shape, dtype: np.dtype) -> Tensor:
    """An array of zeros: what uninitialised memory is for us."""
    zero = np.zeros((), dtype)[()]
    if mode is EAGER or mode.name == "tape":
        return wrap(mode, mode.lift(np.zeros(shape, dtype)))
    return make_full(mode, zero, shape, dtype)


def make_full(mode: Mode, value: Any, shape: Shape, dtype: np.dtype) -> Tensor:
    (made,) = mode.apply(R("full"), [lift(mode, value)], {"shape": shape, "dtype": dtype})
    return wrap(mode, made)


__all__ = ["EXPORTS", "NUMPY_TABLE", "make", "numpy_function"]
