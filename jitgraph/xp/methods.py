"""What `Tensor` delegates to: ndarray's methods, operators and protocols, and functions that have no operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.modes import TraceMode
from jitgraph.tensor import (
    EAGER,
    METHODS,
    Tensor,
    _convert,
    assign,
    install,
    plain,
)
from jitgraph.xp import (
    bits,
    complexes,
    creation,
    elementwise,
    indexing,
    joining,
    linalg,
    operators,
    placing,
    reductions,
    scalars,
    selecting,
    shape,
    statistics,
    storable,
    ufunc_at,
    writes,
)
from jitgraph.xp.core import (
    EXPORTS,
    NUMPY_TABLE,
    R,
    array_tensor,
    call_numpy,
    fit,
    mode_in,
    rewrap,
    translate,
    unwrap,
)
from jitgraph.xp.flat import FlatIter


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Tensor.__array_ufunc__`."""
    out = kwargs.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        kwargs = {**kwargs, "out": out[0]}
        target = out[0]
        if type(target) is not Tensor and isinstance(target, np.ndarray):
            return _into_plain(ufunc, method, inputs, kwargs, target)
    body = NUMPY_TABLE.get(ufunc if method == "__call__" else (ufunc, method))
    if body is not None:
        return body(*inputs, **kwargs)
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    return without_operator(
        function, f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), inputs, kwargs
    )


def _into_plain(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], target: np.ndarray
) -> Any:
    """`array += tensor`: eager data is written; what is recorded or traced cannot be."""
    mode = mode_in(inputs)
    if mode is None or mode is EAGER:
        getattr(ufunc, method)(*unwrap(tuple(inputs)), **{**{k: unwrap(v) for k, v in kwargs.items()}, "out": target})
        return target
    if isinstance(mode, TraceMode):
        mode.lift_plain()
    what = "a traced value" if mode.name == "trace" else "a Tensor that requires a gradient"
    kind = errors.TraceError if mode.name == "trace" else errors.GradientTypeError
    raise kind(
        errors.describe(
            f"{what} is written into a plain array by {ufunc.__name__}",
            mode.locate() if isinstance(mode, TraceMode) else None,
            remedy="use x = x + y in place of x += y, or make x with np.zeros_like(y).",
        )
    )


def array_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Tensor.__array_function__`."""
    body = NUMPY_TABLE.get(func)
    if body is not None:
        return body(*args, **kwargs)
    name = f"{getattr(func, '__module__', 'np').replace('numpy', 'np')}.{getattr(func, '__name__', func)}"
    return without_operator(func, name, args, kwargs)


def without_operator(func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function that no operator stands for: NumPy itself for eager data."""
    mode = mode_in(args) or mode_in(tuple(kwargs.values()))
    if isinstance(mode, TraceMode):
        return mode.unsupported(name, args, kwargs, func)
    if (
        mode is not None
        and mode is not EAGER
        and any(type(x) is Tensor and x.requires_grad for x in (*args, *kwargs.values()))
    ):
        raise errors.GradientTypeError(
            errors.describe(
                f"{name} has no gradient here",
                remedy="use x.numpy(), through which no gradient flows, or differentiate a jitted function: where "
                "NumPy writes this one in Python, it is traced there.",
            )
        )
    return call_numpy(func, name, args, kwargs, tensors=True)


def _by_numpy(name: str) -> Callable[..., Any]:
    """An ndarray method without an operator."""

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        mode = mode_in((x, args))
        if isinstance(mode, TraceMode):
            func = getattr(np, name, None)
            if func is None or name in _IN_PLACE:
                return mode.unsupported(f"ndarray.{name}", (x, *args), kwargs, None)
            return mode.unsupported(f"np.{name}", (x, *args), kwargs, func)
        data = _convert(x, "array" if name not in ("tobytes", "tofile", "dump", "dumps") else name)
        return rewrap(getattr(data, name)(*unwrap(args), **{k: unwrap(v) for k, v in kwargs.items()}))

    method.__name__ = name
    return method


_IN_PLACE = frozenset(("sort", "partition", "resize", "byteswap", "setfield", "setflags"))


def reshape(x: Tensor, *sizes: Any, order: str = "C", copy: Any = None) -> Any:
    target = sizes[0] if len(sizes) == 1 else sizes
    return shape.reshape(x, target, order=order, copy=copy)


def transpose(x: Tensor, *axes: Any) -> Any:
    if not axes or (len(axes) == 1 and axes[0] is None):
        return shape.transpose(x) if x.type.kind == "array" else x
    (first, *rest) = axes
    whole = isinstance(first, (tuple, list, np.ndarray)) or (type(first) is Tensor and first.type.ndim)
    return shape.transpose(x, first if whole and not rest else axes)


def fill(x: Tensor, value: Any) -> None:
    if x.type.kind != "array":  # NumPy fills an array that it makes of the scalar
        return
    from_list = isinstance(value, (list, tuple))
    value = storable.stored(mode_in((x, value)) or EAGER, value, x.type.dtype, element=True)
    if from_list or (type(value) is Tensor and value.type.ndim) or np.ndim(value):
        storable.check_sequence(value, x.type.dtype, 0, scalar=x.type.dtype.kind != "b", from_list=from_list)
    storable.check_number(mode_in((x, value)) or EAGER, value, x.type.dtype, elements=False)
    assign(x, value)


def partition(x: Tensor, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    if x._storage.mode is EAGER:
        plain(x).partition(unwrap(kth), axis, kind, order)
        return
    placing.target_of(x, "partition")
    array: Any = x
    made: Any = np.partition(array, kth, axis, kind, order)  # type: ignore[call-overload]
    assign(x, made)


def copy(x: Tensor, order: str = "C") -> Any:
    if x.type.kind != "array":
        return x
    return creation.array(x, order=order)


def astype(
    x: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    if x._storage.mode is EAGER and not copy and plain(x).dtype == np.dtype(dtype):
        return x
    if x._storage.mode is EAGER:
        return rewrap(plain(x).astype(dtype, order, casting, subok, copy))
    return shape.converted(x, dtype, order, casting, subok, copy)


def item(x: Tensor, *args: Any) -> Any:
    """The Python number of one element."""
    mode = x._storage.mode
    if not isinstance(mode, TraceMode):
        return plain(x).item(*args) if isinstance(plain(x), (np.ndarray, np.generic)) else plain(x)
    if args:
        key = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        if len(key) == 1 and x.type.ndim != 1:
            x = shape.ravel(array_tensor(x))
        elif len(key) != x.type.ndim:
            raise errors.ShapeError("incorrect number of indices for array")
        x = indexing.getitem(x, key)
    elif x.type.shape:
        if not all(d == 1 for d in x.type.shape):
            raise errors.ShapeError("can only convert an array of size 1 to a Python scalar")
        x = shape.reshape_to(x, ())
    kind = x.type.dtype.kind
    table = scalars.BUILTIN_TABLE
    return table[{"b": bool, "f": float, "c": complex}.get(kind, int)](x)


#: Most elements that `tolist` makes values of the graph.
_LONGEST_LIST = 100


def tolist(x: Tensor) -> Any:
    if x.is_traced:
        if not x.type.shape:
            return item(x)
        mode, count = x._storage.mode, 1
        for d in x.type.shape:
            count *= mode.concrete_dim(d, "len")  # type: ignore[attr-defined]
        if count > _LONGEST_LIST:
            mode.fail(  # type: ignore[attr-defined]
                f"tolist() of {count} elements, each of which is a result of its own",
                "return the array, and call tolist() on what the jitted function returns.",
            )
        return [tolist(part) if type(part) is Tensor else part for part in indexing.iterate(x)]
    return plain(x).tolist()


def clip(x: Tensor, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    return elementwise.clip(x, min, max, out=out, **kwargs)


def flat(x: Tensor) -> Any:
    return FlatIter(x) if x._storage.mode is not EAGER else _convert(x, "array").flat


def set_flat(x: Tensor, value: Any) -> None:
    if x._storage.mode is EAGER:
        plain(x).flat = unwrap(value)
    else:
        placing.set_flat(x, value)


def squeeze(x: Tensor, axis: Any = None) -> Any:
    return shape.squeeze(x, axis)


def repeat(x: Tensor, repeats: Any, axis: Any = None) -> Any:
    return joining.repeat(x, repeats, axis)


def cumulative(name: str) -> Callable[..., Any]:
    return lambda x, axis=None, dtype=None, out=None: EXPORTS[name](x, axis=axis, dtype=dtype, out=out)


def dot(x: Tensor, b: Any, out: Any = None) -> Any:
    return linalg.dot(x, b, out=out)


def choose(x: Tensor, *choices: Any, out: Any = None, mode: str = "raise") -> Any:
    return selecting.choose(x, choices[0] if len(choices) == 1 else choices, out, mode)


def compress(x: Tensor, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return selecting.compress(condition, x, axis, out)


def put(x: Tensor, indices: Any, values: Any, mode: str = "raise") -> None:
    placing.put(x, indices, values, mode)


def flatten(x: Tensor, order: str = "C") -> Any:
    return rewrap(plain(x).flatten(order)) if x._storage.mode is EAGER else shape.flatten(x, order)


def iterate(x: Tensor) -> Any:
    return indexing.iterate(x)


def is_integer(x: Tensor) -> Any:
    if not x.is_traced:
        return plain(x).is_integer()
    whole = operators.binary("eq", x, elementwise.trunc(x))
    return scalars.bool_(elementwise.logical_and(whole, elementwise.isfinite(x)))


def _python_method(name: str) -> Callable[..., Any]:
    def method(x: Tensor, *args: Any) -> Any:
        return getattr(_convert(x, "int"), name)(*args)

    return method


def _rounding(original: Callable[..., Any]) -> Callable[..., Any]:
    def method(x: Tensor, *args: Any) -> Any:
        if x.is_traced:
            table = scalars.BUILTIN_TABLE if original is round else NUMPY_TABLE
            return table[original](x, *args)
        if original is round and x.type.shape:
            return EXPORTS["round"](x, *args)
        return original(_convert(x, "float"), *args)

    return method


FRONT = SimpleNamespace(
    **operators.METHODS,
    __getitem__=indexing.getitem, __setitem__=writes.setitem, __floor__=_rounding(math.floor),
    __ceil__=_rounding(math.ceil), __trunc__=_rounding(math.trunc), __round__=_rounding(round),
    array_ufunc=array_ufunc, translate=translate, array_function=array_function, fit=fit, iterate=iterate,
    matrix_transpose=shape.matrix_transpose,
    sum=reductions.sum, prod=reductions.prod, max=reductions.max, min=reductions.min, mean=statistics.mean,
    var=statistics.var, std=statistics.std, any=reductions.any, all=reductions.all, argmax=reductions.argmax,
    argmin=reductions.argmin, cumsum=cumulative("cumsum"), cumprod=cumulative("cumprod"),
    reshape=reshape, transpose=transpose, ravel=shape.ravel, flatten=flatten, squeeze=squeeze, swapaxes=shape.swapaxes,
    diagonal=shape.diagonal, repeat=repeat, fill=fill, copy=copy, astype=astype, item=item, tolist=tolist,
    view=bits.view, clip=clip, conj=complexes.conjugate_of, conjugate=complexes.conjugate_of, real=complexes.real_of,
    imag=complexes.imag_of, flat=flat, dot=dot, take=selecting.take, set_flat=set_flat, partition=partition,
    flat_getitem=placing.flat_getitem, flat_setitem=placing.flat_setitem, compress=compress, choose=choose,
    nonzero=indexing.nonzero, put=put, trace=linalg.trace, round=EXPORTS["round"],
    is_integer=is_integer, as_integer_ratio=_python_method("as_integer_ratio"), hex=_python_method("hex"),
    bit_length=bits.bit_length,
    bit_count=bits.bit_count,
)  # fmt: skip
for _name in METHODS:
    if not hasattr(FRONT, _name):
        setattr(FRONT, _name, _by_numpy(_name))
install(FRONT)
ufunc_at.install_at()

__all__ = ["FRONT", "R", "array_tensor"]
