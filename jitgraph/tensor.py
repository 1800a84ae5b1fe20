"""`Tensor`, the array of both modes; `Storage`, the memory that views share; `Mode`, how operators are carried out.

Interfaces (all that other parts need):
- `Storage(mode, value, origin=None, writable=True)`: one piece of memory. `value` is its current version: an ndarray or
  NumPy scalar (eager), a node of the tape (gradients), an `ir.graph.Value` (traced). A write *replaces* it by a new
  version, except in eager mode, where NumPy writes in place. `origin` is the index of the argument it is, or None.
- `Tensor`: a storage and a chain of view steps from it (`IndexMap`, or a tuple of sizes: a reshape); `()` is all of it.
  Made by `wrap(mode, value)` (fresh storage), `view_of`, `reshape_of`, `dim_tensor(mode, dim)` (a size as Python int),
  `Tensor(array)` (the user's constructor). Scalars (kinds `np_scalar`, `py_*`) own a storage that is never written.
- `apply(defn, *operands, **attrs)`: one operator on anything; the mode is that of the operands (traced before taped
  before eager). Plain in, plain out; a Tensor in, a Tensor out.
- `read(x) -> value` in the mode of `x` (re-reads the current version); `assign(x, value)` is `x[...] = value`.
- `Mode` is the protocol; `EAGER` is NumPy itself, `modes.TraceMode` emits through `ir.builder`, the tape is a third.
- `current_mode()` is the mode of the trace that runs in this context, or None; `with use_mode(mode):` sets it.
- `install(front)`: `jitgraph.xp` hands in the functions behind methods and operators, so that imports point down only.

Laws:
1. Two Tensors are views of the same memory exactly if they have the same `_storage`.
2. The type of a storage never changes; a write casts to it.
3. A cached read is reused only while the storage is at the same version and the builder is in the same block.
4. `_dim` set means: kind `py_int`, value exactly that size; it is emitted as a `dim` op when it is used as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.dims import Dim, DimLike
from jitgraph.ir.opdef import REGISTRY, OpDef
from jitgraph.ir.reshapes import reshape_view_layout
from jitgraph.ir.types import IndexMap, Kind, Shape, TensorType, python_type
from jitgraph.storage import (
    EAGER,
    EagerMode,
    Mode,
    Part,
    Ratio,
    Step,
    Storage,
    TapeMode,
    current_mode,
    type_of_array,
    use_mode,
    view_array,
)

__all__ = [
    "EAGER", "METHODS", "READ_ONLY", "EagerMode", "Mode", "Ratio", "Step", "Storage", "TapeMode", "Tensor", "apply",
    "assign", "check_dtype", "current_mode", "dim_tensor", "install", "install_tape", "is_writable", "lift", "make",
    "mode_of", "plain", "read", "require_output", "reshape_of", "set_version", "tape_mode", "type_of_array", "use_mode",
    "view_array", "view_as", "view_of", "wrap",
]  # fmt: skip


class _Missing:
    """Stands in for `jitgraph.xp` until it is imported."""

    def __getattr__(self, name: str) -> Any:
        raise errors.InternalError("jitgraph.xp is not loaded")


_front: Any = _Missing()
_tape: TapeMode | None = None


def install(front: Any) -> None:
    """Hand in the namespace of functions behind methods and operators (`jitgraph.xp.methods`)."""
    global _front
    _front = front


def install_tape(tape: TapeMode) -> None:
    """Hand in the gradient tape."""
    global _tape
    _tape = tape


def tape_mode() -> TapeMode:
    """The gradient tape."""
    if _tape is None:
        from jitgraph.transforms.tape import TAPE  # the first Tensor that requires a gradient loads it

        install_tape(TAPE)
        return TAPE
    return _tape


def _method(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(_front, name)(self, *args, **kwargs)
        except errors.JitgraphError as error:
            mode: Any = self._storage.mode
            if mode.name != "trace":
                raise
            raise mode.located(error) from None

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    return method


def _setter(part: str) -> Callable[..., None]:
    """`x.real = value`: a write of the parts."""

    def assign_part(self: Tensor, value: Any) -> None:
        if self.type.kind != "array":
            raise AttributeError(f"attribute '{part}' of a scalar is not writable")
        seen = getattr(self, part)
        if part == "imag" and self.type.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        assign(seen, value)

    return assign_part


def _class_of(self: Tensor) -> type:
    mode: Any = self._storage.mode
    return mode.class_of(self) if mode.name == "trace" else Tensor


class Tensor:
    """An array (or scalar) of jitgraph: eager, recorded for gradients, or traced.

    Args:
        data: an array or anything that `np.asarray` takes; arrays are wrapped, not copied.
        dtype: converts.
        requires_grad: record operators for `backward()`.

    Raises:
        TypeError: a dtype that is no number and no bool, or `requires_grad` with an integer dtype.
    """

    __slots__ = ("__weakref__", "_dim", "_seen", "_steps", "_storage", "_type")
    __array_priority__ = 1000.0

    _storage: Storage
    _steps: tuple[Step, ...]
    #: Cached type (traced and taped); None: ask.
    _type: TensorType | None
    #: A size (`DimLike`) for a traced `py_int`, a `Ratio` for a traced `py_float`, else None.
    _dim: DimLike | Ratio | None
    #: Cached read: (version, block, value).
    _seen: tuple[Any, Any, Any] | None

    def __init__(self, data: Any, dtype: Any = None, *, requires_grad: bool = False) -> None:
        if type(data) is Tensor:
            data = data.numpy()
        array = np.asarray(data, dtype)
        check_dtype(array.dtype, "jg.Tensor")
        self._steps = ()
        self._type = self._dim = self._seen = None
        if requires_grad:
            if array.dtype.kind != "f":
                raise errors.DTypeError(
                    errors.describe(
                        f"a Tensor of dtype {array.dtype} cannot require a gradient",
                        remedy="convert it first: jg.Tensor(data, dtype=float, requires_grad=True).",
                    )
                )
            tape = tape_mode()
            self._storage = Storage(tape, tape.leaf(array))
            self._storage.leaf = self._storage.value
        else:
            self._storage = Storage(EAGER, array, None, bool(array.flags.writeable))

    # --- what it is

    @property
    def type(self) -> TensorType:
        """dtype, shape (ints, or dims when traced), kind and layout."""
        t = self._type
        if t is None:
            storage = self._storage
            mode = storage.mode
            if mode.name == "trace" and self._steps and storage.value is not None:  # known without emitting the view
                t = storage.value.type
                for step in self._steps:
                    t = mode.view_type(t, step)  # type: ignore[attr-defined]
            else:
                t = mode.type_of(read(self))
            if mode.name != "eager":
                self._type = t
        return t

    @property
    def is_traced(self) -> bool:
        return self._storage.mode.name == "trace"

    @property
    def kind(self) -> Kind:
        return self.type.kind

    @property
    def requires_grad(self) -> bool:
        mode = self._storage.mode
        return mode.name == "tape" and mode.requires_grad(read(self))  # type: ignore[attr-defined]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward()` accumulated, for a Tensor made with `requires_grad=True`."""
        leaf = self._storage.leaf
        if leaf is None or self._steps:
            return None
        gradient = tape_mode().grad(leaf)
        return None if gradient is None else Tensor(gradient)

    @grad.setter
    def grad(self, gradient: Any) -> None:
        leaf = self._storage.leaf
        if leaf is None or self._steps:
            raise AttributeError("only a Tensor made with requires_grad=True collects a gradient")
        if gradient is not None:
            gradient = plain(gradient)
        tape_mode().set_grad(leaf, gradient)

    def backward(self, gradient: Any = None) -> None:
        """Add the gradients of this Tensor to `.grad` of every leaf it was computed from.

        Args:
            gradient: the cotangent, of this shape; may be left out for a scalar (then 1).

        Raises:
            ValueError: it does not require a gradient, or `gradient` is missing.
        """
        mode = self._storage.mode
        if mode.name != "tape":
            raise errors.GradientError(
                errors.describe(
                    "backward() of a Tensor that does not depend on one that requires a gradient",
                    remedy="make the inputs with jg.Tensor(data, requires_grad=True).",
                )
            )
        mode.backward(read(self), None if gradient is None else np.asarray(plain(gradient)))  # type: ignore[attr-defined]

    def retain_grad(self) -> Tensor:
        """Let `backward()` leave the gradient of this intermediate result in `.grad`; returns itself."""
        mode = self._storage.mode
        if mode.name == "tape" and self._storage.leaf is None:
            value = read(self)
            mode.retain(value)  # type: ignore[attr-defined]
            self._storage.leaf = value
        return self

    def detach(self) -> Tensor:
        """The same data, not recorded."""
        return _eager(self.numpy(), None)

    def numpy(self) -> Any:
        """The data as ndarray (or NumPy scalar), without copying; the gradient does not flow through it."""
        mode = self._storage.mode
        if mode.name == "trace":
            return mode.concrete(self, "numpy")  # type: ignore[attr-defined]
        return plain(self)

    def __repr__(self) -> str:
        mode = self._storage.mode
        if mode.name == "trace":
            mark = mode.repr_of(self)  # type: ignore[attr-defined]
            if mark is not None:
                return str(mark)
            return f"<traced {self.type} = {self._dim}>" if isinstance(self._dim, Dim) else f"<traced {self.type}>"
        lines = repr(np.asarray(plain(self))).replace("array(", "jg.Tensor(", 1).split("\n")
        text = "\n".join([lines[0], *("    " + line if line.strip() else "" for line in lines[1:])])
        return f"{text[:-1]}, requires_grad=True)" if self.requires_grad else text

    def __str__(self) -> str:
        return format(self, "") if self.is_traced else str(plain(self))

    def __format__(self, spec: str) -> str:
        if self.is_traced:
            return format(self._storage.mode.concrete(self, "format"), spec)  # type: ignore[attr-defined]
        return format(plain(self), spec)

    __class__ = property(_class_of)  # a tracer passes isinstance for what it stands for

    # --- NumPy's protocols

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(_convert(self, "array"))
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _front.array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return _front.array_function(func, args, kwargs)

    def __bool__(self) -> bool:
        return bool(_convert(self, "bool"))

    def __int__(self) -> int:
        return int(_convert(self, "int"))

    def __float__(self) -> float:
        return float(_convert(self, "float"))

    def __complex__(self) -> complex:
        return complex(_convert(self, "complex"))

    def __index__(self) -> int:
        value = _convert(self, "index")
        return value.__index__()  # type: ignore[no-any-return]

    def __len__(self) -> int:
        shape = self.type.shape
        if not shape:
            raise TypeError("len() of unsized object")
        mode: Any = self._storage.mode
        return shape[0] if isinstance(shape[0], int) else mode.concrete(_size(self, 0), "len")

    def __hash__(self) -> int:
        if self.type.kind == "array":
            raise TypeError(f"unhashable type: {'numpy.ndarray' if self.is_traced else 'Tensor'!r}")
        return hash(_convert(self, "hash"))

    def __iter__(self) -> Iterator[Any]:
        return _front.iterate(self)  # type: ignore[no-any-return]

    def __contains__(self, item: Any) -> bool:
        return bool(_front.any(_front.__eq__(self, item)))

    def __copy__(self) -> Tensor:
        return _front.copy(self)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: Any) -> Tensor:
        return _front.copy(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return Tensor, (_convert(self, "pickle"),)

    __getitem__ = _method("__getitem__")
    __setitem__ = _method("__setitem__")

    # --- attributes of ndarray

    def _array_type(self, name: str) -> TensorType:
        """The type, for an attribute that only arrays and NumPy scalars have."""
        t = self.type
        if t.is_python:
            raise AttributeError(f"'{self.__class__.__name__}' object has no attribute '{name}'")
        return t

    @property
    def dtype(self) -> np.dtype:
        return self._array_type("dtype").dtype

    @property
    def ndim(self) -> int:
        return len(self._array_type("ndim").shape)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: ints; traced sizes are Tensors of kind `py_int`."""
        shape = self._array_type("shape").shape
        mode = self._storage.mode
        if mode.name != "trace":
            return shape
        return tuple(d if isinstance(d, int) else dim_tensor(mode, d) for d in shape)

    @property
    def size(self) -> Any:
        total: DimLike = 1
        for d in self._array_type("size").shape:
            total = total * d
        return total if isinstance(total, int) else dim_tensor(self._storage.mode, total)

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.type.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return _front.strides(self)  # type: ignore[no-any-return]

    @property
    def flags(self) -> Any:
        return _front.flags(self)

    @property
    def base(self) -> Any:
        return _convert(self, "base").base

    @property
    def data(self) -> Any:
        return _convert(self, "data").data

    @property
    def ctypes(self) -> Any:
        return _convert(self, "ctypes").ctypes

    @property
    def device(self) -> str:
        """Where the memory is: "cpu"."""
        self._array_type("device")
        return "cpu"

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        """NumPy, whose functions take Tensors.

        Raises:
            ValueError: NumPy does not implement that version.
        """
        return np.empty(0).__array_namespace__(api_version=api_version)

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """The array itself.

        Raises:
            ValueError: another device than "cpu".
        """
        self._array_type("to_device")
        if device != "cpu" or stream is not None:
            raise ValueError(f"Unsupported device: {device}. Only 'cpu' is accepted.")
        return self

    T = property(_method("transpose"))
    mT = property(_method("matrix_transpose"))  # noqa: N815  # NumPy's name
    real = property(_method("real"), _setter("real"))
    imag = property(_method("imag"), _setter("imag"))
    flat = property(_method("flat"), _method("set_flat"))

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))


_METHOD_NAMES = """
all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate copy cumprod cumsum
diagonal dot dump dumps fill getfield item max mean min nonzero partition prod put ravel repeat reshape setfield
resize round searchsorted setflags sort squeeze std sum swapaxes take tobytes tofile tolist trace transpose
var view flatten is_integer as_integer_ratio hex bit_length bit_count __floor__ __ceil__ __round__ __trunc__
__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __matmul__ __and__ __or__ __xor__ __lshift__
__rshift__ __divmod__ __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rmod__ __rpow__ __rmatmul__
__rand__ __ror__ __rxor__ __rlshift__ __rrshift__ __rdivmod__ __iadd__ __isub__ __imul__ __itruediv__
__ifloordiv__ __imod__ __ipow__ __imatmul__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __eq__ __ne__
__lt__ __le__ __gt__ __ge__ __req__ __rne__ __rlt__ __rle__ __rgt__ __rge__ __neg__ __pos__ __abs__ __invert__
"""
#: ndarray's methods and operators, each a function of the same name in the installed front.
METHODS: tuple[str, ...] = tuple(_METHOD_NAMES.split())
for _name in METHODS:
    setattr(Tensor, _name, _method(_name))


def check_dtype(dtype: np.dtype, what: str) -> None:
    """Refuse dtypes that hold no numbers.

    Raises:
        UnsupportedDTypeError: object, string, bytes, datetime, structured.
    """
    if dtype.kind not in "biufc":
        kinds = {"O": "objects", "U": "text", "S": "bytes", "M": "dates", "m": "time spans", "V": "records"}
        raise errors.UnsupportedDTypeError(
            errors.describe(
                f"{what}: dtype {dtype} holds {kinds.get(dtype.kind, 'no numbers')}; "
                "jitgraph computes with bools and numbers",
                remedy="convert it first, e.g. x.astype(float), or keep this part in plain NumPy.",
            )
        )


def _convert(x: Tensor, wanted: str) -> Any:
    """The data of `x` for a Python or NumPy protocol (`wanted`); refuses where a gradient or a trace would be lost."""
    mode = x._storage.mode
    if mode.name == "trace":
        return mode.concrete(x, wanted)  # type: ignore[attr-defined]
    if wanted in ("array", "float", "int", "complex", "index", "pickle") and x.requires_grad:
        raise errors.GradientTypeError(
            errors.describe(
                "a Tensor that requires a gradient is converted to a plain "
                + {"array": "array", "float": "float", "int": "int"}.get(wanted, "number"),
                remedy="take its data with x.numpy(), through which no gradient flows; to write it into an array, "
                "make that with np.zeros_like(x) or jg.Tensor(array).",
            )
        )
    return plain(x)


def _size(x: Tensor, axis: int) -> Any:
    return dim_tensor(x._storage.mode, x.type.shape[axis])


# --- making Tensors


def make(storage: Storage, steps: tuple[Step, ...] = (), type: TensorType | None = None) -> Tensor:
    """A Tensor that sees `storage` through `steps`."""
    t: Tensor = _new(Tensor)
    t._storage = storage
    t._steps = steps
    t._type = type
    t._dim = None
    t._seen = None
    return t


_new = object.__new__


def wrap(mode: Mode, value: Any, origin: int | None = None) -> Tensor:
    """A Tensor with a fresh storage that holds `value`."""
    return make(Storage(mode, value, origin))


def _eager(value: Any, storage: Storage | None) -> Tensor:
    if storage is None:
        storage = Storage(EAGER, value, None, not isinstance(value, np.ndarray) or bool(value.flags.writeable))
    return make(storage)


def dim_tensor(mode: Mode, dim: DimLike) -> Any:
    """A size as the user sees it: an int if it is known, else a traced `py_int`."""
    if isinstance(dim, int):
        return dim
    t = make(Storage(mode, None), (), _PY_INT)
    t._dim = dim
    return t


_PY_INT = python_type("py_int")


# --- reading and writing


def read(x: Tensor) -> Any:
    """The current value of `x` in its mode."""
    storage = x._storage
    value = storage.value
    steps = x._steps
    if not steps and value is not None:
        return value
    mode = storage.mode
    block = mode.builder.block if mode.name == "trace" else None  # type: ignore[attr-defined]
    seen = x._seen
    if seen is not None and seen[0] is value and seen[1] is block:
        made = None if block is None else seen[2].producer
        if made is None or made.block is not None:  # else the op was undone
            return seen[2]
    if value is None:
        viewed = mode.dim_value(x._dim)  # type: ignore[attr-defined]
    else:
        viewed = value
        for step in steps:
            viewed = mode.view(viewed, step)
    x._seen = (value, block, viewed)
    if block is not None and x._type is None:
        x._type = viewed.type
    return viewed


def plain(x: Any) -> Any:
    """The ndarray or number of an eager or taped Tensor (through which no gradient flows); anything else as it is."""
    if type(x) is not Tensor:
        return x
    mode = x._storage.mode
    if mode.name == "tape":
        return mode.data(read(x))  # type: ignore[attr-defined]
    if mode.name == "trace":
        mode.no_data()  # type: ignore[attr-defined]
    return read(x)


def mode_of(operands: Sequence[Any]) -> Mode:
    """The mode that an operator on `operands` runs in: traced before taped before eager; only Tensors decide."""
    found: Mode = EAGER
    for x in operands:
        if type(x) is Tensor:
            mode = x._storage.mode
            if mode is not found and mode is not EAGER:
                if mode.name == "trace":
                    return mode
                found = mode
    return found


def lift(mode: Mode, x: Any) -> Any:
    """`x` (Tensor, ndarray or number) as a value of `mode`."""
    if type(x) is Tensor:
        other = x._storage.mode
        if other is mode:
            return read(x)
        if other.name == mode.name == "trace":
            mode.mixed(other)  # type: ignore[attr-defined]
        return mode.lift(plain(x))
    return mode.lift(x)


def apply(defn: OpDef, *operands: Any, **attrs: Any) -> Any:
    """One operator on Tensors, arrays and numbers.

    Returns:
        plain arrays and scalars if no operand is a Tensor, else Tensors; a tuple if the operator has several results.

    Raises:
        whatever the record's type rule (traced) or NumPy (eager) raises for operands that do not fit.
    """
    mode = mode_of(operands)
    if mode is EAGER:
        try:
            result = defn.evaluate(*[plain(x) for x in operands], **attrs)
        except (ValueError, TypeError, IndexError) as error:
            raise _front.translate(error, defn.name, operands) from None
        if not any(type(x) is Tensor for x in operands):
            return result
        if isinstance(result, tuple):
            return tuple(_eager(r, None) for r in result)
        return _eager(result, None)
    try:
        results = mode.apply(defn, [lift(mode, x) for x in operands], attrs)
    except (ValueError, TypeError, IndexError) as error:
        raise _front.translate(error, defn.name, operands) from None
    if len(results) == 1:
        return make(Storage(mode, results[0]))
    return tuple(make(Storage(mode, r)) for r in results)


def view_of(x: Tensor, map: IndexMap, writable: bool = True) -> Tensor:
    """The affine view `map` of `x`: same storage, one step more (two affine steps become one)."""
    steps = x._steps
    if steps and isinstance(steps[-1], IndexMap) and x._storage.mode.name == "trace":
        steps = (*steps[:-1], steps[-1].then(map))
    else:
        steps = (*steps, map)
    return _view(x, steps, writable)


def part_of(x: Tensor, part: Part) -> Tensor:
    """The view of the real or the imaginary parts of a complex array."""
    return _view(x, (*x._steps, part))


def view_as(x: Tensor, dtype: np.dtype) -> Tensor:
    """The view of the memory of an array as elements of another dtype."""
    return _view(x, (*x._steps, dtype))


def _view(x: Tensor, steps: tuple[Step, ...], writable: bool = True) -> Tensor:
    t = make(x._storage, steps)
    if not writable or not is_writable(x):
        t._dim = READ_ONLY
    return t


class _ReadOnly(Ratio):
    """Marks a read-only view in the slot that only scalars use."""


READ_ONLY = _ReadOnly(1, 1)


def is_writable(x: Tensor) -> bool:
    """Whether `x[...] = value` is allowed: no view made by `broadcast_to`, `diagonal` or of a read-only array."""
    return x._storage.writable and x._dim is not READ_ONLY


def require_output(x: Any) -> None:
    """Refuse a scalar, or a read-only array, as an output: NumPy does so before it looks at the operands.

    Raises:
        DTypeError: `x` is a NumPy scalar or a Python number.
        ReadOnlyError: `x` is a read-only view.
    """
    if type(x) is Tensor:
        if x.type.kind != "array":
            raise errors.DTypeError("return arrays must be of ArrayType")
        if not is_writable(x):
            raise errors.ReadOnlyError("output array is read-only")


def reshape_of(x: Tensor, shape: Shape) -> Tensor:
    """`x` with other sizes of the same product: a view if NumPy makes one of every such `x`, else a C-order copy."""
    mode = x._storage.mode
    if mode is EAGER:
        array = read(x)
        sizes: Any = shape  # numbers here
        result = np.reshape(array, sizes)
        if not isinstance(array, np.ndarray) or not (result.size == 0 or np.may_share_memory(result, array)):
            return _eager(result, None)
        return _view(x, (*x._steps, shape))
    if reshape_view_layout(x.type, shape) is not None:
        return _view(x, (*x._steps, shape))
    return apply(REGISTRY["reshape"], x, shape=shape)  # type: ignore[no-any-return]


def assign(x: Tensor, value: Any, casting: str = "unsafe") -> None:
    """`x[...] = value`: broadcasts, casts, and makes the next version of the storage.

    Args:
        value: a Tensor, array or number; it is computed before anything is written, so overlap is harmless.
        casting: "unsafe" as assignment, "same_kind" as an augmented operator or `out=`.

    Raises:
        ShapeError: `value` does not broadcast to the shape of `x`.
        ReadOnlyError: `x` is a read-only view.
        DTypeError: the cast is not allowed.
    """
    if not is_writable(x):
        raise errors.ReadOnlyError("assignment destination is read-only")
    storage = x._storage
    mode = storage.mode
    if type(value) is Tensor and mode is EAGER and value._storage.mode is not EAGER:
        mode = _promote(storage, value._storage.mode)
    if mode is EAGER:
        target, source = read(x), plain(value)
        if casting == "unsafe":
            target[...] = source
        else:
            np.copyto(target, source, casting=casting)  # type: ignore[arg-type]
        return
    adapted = _front.fit(mode, lift(mode, value), x.type, casting)
    set_version(storage, mode.write(storage.value, x._steps, adapted))


def set_version(storage: Storage, value: Any) -> None:
    """Make `value` the current version of `storage`; every write ends here."""
    old = storage.value
    storage.value = value
    if storage.mode.name == "trace":
        storage.mode.on_write(storage, old)  # type: ignore[attr-defined]


def _promote(storage: Storage, mode: Mode) -> Mode:
    """An eager storage that receives a recorded or traced value goes on in that mode; its views follow."""
    if mode.name == "trace":
        raise errors.TraceError(
            errors.describe(
                "a traced value is written into an array from outside the traced function",
                remedy="pass the array as an argument, or make it inside with np.zeros.",
            )
        )
    storage.value = mode.lift(storage.value)
    storage.mode = mode
    return mode
