"""`Storage`, the memory that views share, and `Mode`, how operators, views and writes are carried out on it.

`tensor` exports these names. The value of a storage is an ndarray or NumPy scalar (eager), a node of the tape
(gradients) or an `ir.graph.Value` (traced).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from jitgraph import errors
from jitgraph.ir.dims import DimLike
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.opdef import OpDef
from jitgraph.ir.types import AxisMap, IndexMap, Kind, Shape, TensorType, python_type

#: One step of a chain of views: an affine map, the sizes of a reshape that is a view, a part of complex numbers, or
#: another dtype for the same bytes.
Part: TypeAlias = Literal["real", "imag"]
Step: TypeAlias = IndexMap | Shape | Part | np.dtype


class Mode(Protocol):
    """How operators, views and writes are carried out on values of one sort."""

    #: "eager", "tape" or "trace".
    name: str

    def apply(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]: ...
    def view(self, value: Any, step: Step) -> Any:
        """`value` seen through one step; the reshape is one that needs no copy."""
        ...

    def write(self, base: Any, steps: Sequence[Step], value: Any) -> Any:
        """The next version of a storage at `base`: `value` (of its dtype, in the view's shape) written through."""
        ...

    def type_of(self, value: Any) -> TensorType: ...
    def lift(self, x: Any) -> Any:
        """A plain number or ndarray, or a value of a lower mode, as a value of this mode."""
        ...

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool:
        """Whether `a relation b`.

        Raises:
            Undecided: see `ir.builder.Builder.decide`.
        """
        ...


class TapeMode(Mode, Protocol):
    """The mode of the eager gradient tape: values are nodes that hold an ndarray."""

    def leaf(self, array: np.ndarray) -> Any:
        """A node for which gradients are accumulated."""
        ...

    def data(self, value: Any) -> Any:
        """The ndarray or NumPy scalar that the node holds."""
        ...

    def requires_grad(self, value: Any) -> bool: ...
    def retain(self, value: Any) -> None: ...
    def backward(self, value: Any, gradient: np.ndarray | None) -> None:
        """Accumulate gradients into the leaves that `value` depends on.

        Raises:
            ValueError: no gradient is given and `value` is no scalar.
        """
        ...

    def grad(self, leaf: Any) -> np.ndarray | None: ...
    def set_grad(self, leaf: Any, gradient: np.ndarray | None) -> None: ...


class EagerMode:
    """NumPy itself: values are ndarrays, NumPy scalars and Python numbers; warnings are NumPy's."""

    name = "eager"

    def apply(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        result = defn.evaluate(*values, **attrs)
        return result if isinstance(result, tuple) else (result,)

    def view(self, value: Any, step: Step) -> Any:
        return view_array(value, step)

    def write(self, base: Any, steps: Sequence[Step], value: Any) -> Any:
        target = base
        for step in steps:
            target = view_array(target, step)
        target[...] = value
        return base

    def type_of(self, value: Any) -> TensorType:
        return type_of_array(value)

    def lift(self, x: Any) -> Any:
        return x

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool:
        return bool(_RELATIONS[relation](a, b))


_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

EAGER = EagerMode()
_mode: ContextVar[Mode | None] = ContextVar("jitgraph_mode", default=None)


def current_mode() -> Mode | None:
    """The mode of the trace that runs in this context, if any."""
    return _mode.get()


def mode_variable() -> ContextVar[Mode | None]:
    """What `current_mode` reads, for native code."""
    return _mode


@contextmanager
def use_mode(mode: Mode | None) -> Iterator[None]:
    """Make `mode` the current one: creation functions and operators on plain arrays work in it."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def type_of_array(value: Any) -> TensorType:
    """The type of an ndarray, NumPy scalar or Python number."""
    if isinstance(value, np.ndarray):
        return TensorType(value.dtype, value.shape, "array", layout_of(value.shape, value.strides, value.itemsize))
    if isinstance(value, np.generic):
        return TensorType(value.dtype, (), "np_scalar")
    kind = _PYTHON_KINDS.get(type(value))
    if kind is None:
        raise errors.DTypeError(f"no array and no number: {type(value).__name__}")
    return python_type(kind)


_PYTHON_KINDS: dict[type, Kind] = {bool: "py_bool", int: "py_int", float: "py_float", complex: "py_complex"}


def view_array(array: Any, step: Step) -> Any:
    """The NumPy view that one step makes of an ndarray; a NumPy scalar is viewed as a 0-d array."""
    array = np.asarray(array)
    if isinstance(step, str):
        return array.real if step == "real" else array.imag
    if isinstance(step, np.dtype):
        return array.view(step)
    if not isinstance(step, IndexMap):
        return array.reshape(step)
    if 0 in step.shape or any(m.axis is not None and m.step == 0 for m in step.axes):
        return _strided(array, step)
    view = array[(*(_indices(m, step.shape) for m in step.axes), ...)]
    axes = [m.axis for m in step.axes if m.axis is not None]
    while len(set(axes)) < len(axes):
        first = next(k for k, axis in enumerate(axes) if axis in axes[k + 1 :])
        second = axes.index(axes[first], first + 1)
        view = view.diagonal(0, first, second)  # becomes the last axis
        axes = [axis for k, axis in enumerate(axes) if k not in (first, second)] + [axes[first]]
        try:
            view.flags.writeable = bool(array.flags.writeable)
        except ValueError:  # the owner of the memory is read-only, though this array is not
            return _strided(array, step)
    if axes != sorted(axes):
        view = view.transpose(sorted(range(len(axes)), key=axes.__getitem__))
    if len(axes) < len(step.shape):
        view = view[tuple([slice(None) if k in axes else None for k in range(len(step.shape))])]
    return view if view.shape == step.shape else np.broadcast_to(view, step.shape)  # type: ignore[arg-type]  # numbers


def _indices(m: AxisMap, shape: Sequence[Any]) -> Any:
    """How an axis of the base is indexed: by a number, or by the slice that an axis of the view is."""
    if m.axis is None:
        return m.offset
    stop: Any = m.offset + m.step * shape[m.axis]
    return slice(m.offset, None if stop < 0 else stop, m.step)


def _strided(array: Any, step: IndexMap) -> np.ndarray:
    """A view that no index makes: it has no elements, or has them at several places."""
    strides: list[Any] = [0] * len(step.shape)
    for m, stride in zip(step.axes, array.strides, strict=True):
        if m.axis is not None:
            strides[m.axis] += m.step * stride  # sizes are numbers here
    shape: Any = step.shape
    if 0 in shape:
        empty = array[(slice(0), *[slice(None)] * (array.ndim - 1))] if array.ndim else array[None][:0]
        made = np.ndarray(shape, array.dtype, empty, 0, strides)
        made.flags.writeable = bool(array.flags.writeable)
        return made
    used = {m.axis for m in step.axes}
    writeable = bool(array.flags.writeable) and all(k in used or d == 1 for k, d in enumerate(shape))
    start = array[(*(m.offset for m in step.axes), ...)]
    return np.lib.stride_tricks.as_strided(start, shape, strides, writeable=writeable)


class Storage:
    """One piece of array memory, seen by views; see the top of the file."""

    __slots__ = ("__weakref__", "leaf", "mode", "origin", "value", "writable")

    def __init__(self, mode: Mode, value: Any, origin: int | None = None, writable: bool = True) -> None:
        self.mode = mode
        self.value = value
        self.origin = origin
        self.writable = writable
        #: The tape's node that collects the gradient, for a Tensor made with `requires_grad=True`.
        self.leaf: Any = None


class Ratio:
    """Two sizes divided, held by a `py_float`, so that `int(n / 2)` is again a size."""

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator: DimLike, denominator: DimLike) -> None:
        self.numerator = numerator
        self.denominator = denominator
