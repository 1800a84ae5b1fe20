"""NumPy functions that compiled code calls back into Python for, each with a rule for the types of its results.

`TABLE` has those without an operator of their own; `jg.host(fn, result=...)` is the door for the user's. A rule sees
the types of the traced operands (arrays; static arguments as they are) and answers the types of the results; what the
function returns is checked against it at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

import numpy as np

from jitgraph import errors
from jitgraph.ir.graph import Site, Value
from jitgraph.ir.types import TensorType, scalar_type
from jitgraph.pytree import TreeDef, flatten, register_leaf, unflatten
from jitgraph.tensor import Tensor, lift, wrap

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode

P = ParamSpec("P")
R = TypeVar("R")

#: A rule takes the arguments with `TensorType`s in place of arrays and answers a pytree of result types.
Rule = Callable[..., Any]
TABLE: dict[Any, Rule] = {}
register_leaf(TensorType)

_FLOAT = np.dtype("f8")
_INT = np.dtype(np.intp)


def rule_for(*functions: Any) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for f in functions:
            TABLE[f] = rule
        return rule

    return register


def _as_type(x: Any) -> TensorType:
    if isinstance(x, TensorType):
        return x
    array = np.asarray(x)
    return TensorType(array.dtype, array.shape)


def _linalg_dtype(*types: TensorType) -> np.dtype:
    """float32 stays, everything else real becomes float64."""
    return np.dtype("f4") if all(t.dtype == np.float32 for t in types) else _FLOAT


def _refuse(name: str, why: str) -> NoReturn:
    raise errors.ShapeError(f"{name}: {why}")


def _square(name: str, t: TensorType) -> None:
    if t.ndim < 2:
        _refuse(name, f"{t.ndim}-dimensional array given. Array must be at least two-dimensional")


@rule_for(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    a, b = _as_type(a), _as_type(b)
    _square("solve", a)
    if a.ndim != 2 or b.ndim not in (1, 2):
        _refuse("solve", "stacks of matrices are not supported under jit")
    return TensorType(_linalg_dtype(a, b), b.shape)


@rule_for(np.linalg.inv, np.linalg.pinv)
def _inv(a: Any) -> Any:
    a = _as_type(a)
    _square("inv", a)
    return TensorType(_linalg_dtype(a), (*a.shape[:-2], a.shape[-1], a.shape[-2]))


@rule_for(np.linalg.det)
def _det(a: Any) -> Any:
    a = _as_type(a)
    _square("det", a)
    dtype = _linalg_dtype(a)
    return scalar_type(dtype) if a.ndim == 2 else TensorType(dtype, a.shape[:-2])


@rule_for(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    return _inv(a)


@rule_for(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    a = _as_type(a)
    _square("eigvalsh", a)
    return TensorType(_linalg_dtype(a), a.shape[:-1])


@rule_for(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = _as_type(x)
    dtype = x.dtype if x.dtype.kind == "f" else _FLOAT
    if axis is None:
        return TensorType(dtype, (1,) * x.ndim) if keepdims else scalar_type(dtype)
    axes = {k % x.ndim for k in (axis if isinstance(axis, tuple) else (axis,))}
    shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape) if keepdims or k not in axes)
    return TensorType(dtype, shape) if shape else scalar_type(dtype)


@rule_for(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a = _as_type(a)
    if axis is None:
        raise errors.ShapeError("sort: axis=None is not supported under jit: use np.sort(x.ravel())")
    return TensorType(a.dtype, a.shape)


@rule_for(np.argsort)
def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a = _as_type(a)
    if axis is None:
        raise errors.ShapeError("argsort: axis=None is not supported under jit: use np.argsort(x.ravel())")
    return TensorType(_INT, a.shape)


@rule_for(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x = _as_type(x)
    return TensorType(_FLOAT, x.shape) if x.shape else scalar_type(_FLOAT)


@rule_for(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    v = _as_type(v)
    return TensorType(_INT, v.shape) if v.shape else scalar_type(_INT)


@dataclass(frozen=True, slots=True)
class HostCall:
    """What runs behind a `host_call` site: called with the operands, answers the result (a tuple of several), checked.

    Attributes:
        fn: the Python function.
        tree: structure of (args, kwargs); `dynamic` are its leaves that operands fill, `leaves` has the others.
        types: of the results; sizes that are numbers are checked.
        effects: the call is kept even if nobody uses its results.
    """

    fn: Callable[..., Any]
    tree: TreeDef
    leaves: tuple[Any, ...]
    dynamic: tuple[int, ...]
    types: tuple[TensorType, ...]
    result_tree: TreeDef
    name: str
    effects: bool = False

    def __call__(self, *operands: Any) -> Any:
        """Call the function with the operands (arrays, NumPy scalars, Python numbers) in their places.

        Raises:
            TypeError: a result that is not what was promised.
        """
        leaves = list(self.leaves)
        for k, x in zip(self.dynamic, operands, strict=True):
            leaves[k] = x
        args, kwargs = unflatten(self.tree, leaves)
        results, tree = flatten(self.fn(*args, **kwargs))
        if not self.types:
            return None
        if tree != self.result_tree:
            raise errors.DTypeError(f"{self.name} returned {tree}, promised was {self.result_tree}")
        checked = tuple([self._checked(r, t) for r, t in zip(results, self.types, strict=True)])
        return checked[0] if len(checked) == 1 else checked

    def _checked(self, result: Any, t: TensorType) -> Any:
        array = np.asarray(result)
        if array.dtype != t.dtype and t.is_python and np.can_cast(array.dtype, t.dtype, "same_kind"):
            array = array.astype(t.dtype)
        wrong = array.dtype != t.dtype or array.ndim != t.ndim
        wrong = wrong or any(isinstance(d, int) and d != size for d, size in zip(t.shape, array.shape, strict=True))
        if wrong:
            raise errors.DTypeError(
                f"{self.name} returned {array.dtype} of shape {array.shape}, promised was {t}: "
                "give jg.host the dtype and shape that the function really returns"
            )
        if t.kind == "array":
            return np.ascontiguousarray(array).reshape(array.shape)
        return array[()]


def call(
    mode: CaptureMode, fn: Callable[..., Any], rule: Rule, args: Any, kwargs: Any, *, effects: bool = False
) -> Any:
    """Emit a `host_call` of `fn`, whose results have the types that `rule` answers."""
    leaves, tree = flatten((tuple(args), dict(kwargs)))
    dynamic = [k for k, x in enumerate(leaves) if type(x) is Tensor or isinstance(x, np.ndarray)]
    operands: list[Value] = [lift(mode, leaves[k]) for k in dynamic]
    typed = list(leaves)
    for k, v in zip(dynamic, operands, strict=True):
        typed[k] = v.type
    name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__
    module = getattr(fn, "__module__", "") or ""
    shown = (
        f"np.{module.removeprefix('numpy.')}.{name}"
        if module.startswith("numpy.")
        else f"np.{name}"
        if module == "numpy"
        else name
    )
    rule_args, rule_kwargs = unflatten(tree, typed)
    try:
        promised = rule(*rule_args, **rule_kwargs)
    except errors.JitgraphError as error:
        raise mode.located(error) from None
    types, result_tree = flatten(promised)
    for k in dynamic:
        leaves[k] = None
    site = Site(
        "host",
        shown,
        mode.locate(),
        HostCall(fn, tree, tuple(leaves), tuple(dynamic), tuple(types), result_tree, shown, effects),
    )
    mode.builder.graph.sites.append(site)
    results = mode.emit_host(len(mode.builder.graph.sites) - 1, operands, types, effects)
    return unflatten(result_tree, [wrap(mode, r) for r in results]) if types else None


class Host(Generic[P, R]):
    """A Python function that compiled code calls back: what `jg.host` returns.

    Args:
        fn: called with plain arrays and numbers.
        result: what it returns: an example array or number, a pytree of them, a function of the arguments' types
            (`TensorType`s for arrays) that answers such a pytree, or None if nothing.
        effects: it has an effect: it is called in its place in the program even if its result is not used.
    """

    def __init__(self, fn: Callable[P, R], result: Any = None, *, effects: bool = False) -> None:
        self.__wrapped__ = fn
        self.result = result
        self.effects = effects or result is None
        functools.update_wrapper(self, fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.__wrapped__(*args, **kwargs)

    def __jitgraph_trace__(self, tracer: Any, args: Any, kwargs: Any) -> Any:
        return call(tracer.mode, self.__wrapped__, self._types, args, kwargs, effects=self.effects)

    def _types(self, *args: Any, **kwargs: Any) -> Any:
        spec = self.result
        if callable(spec) and not isinstance(spec, type | np.dtype):
            spec = spec(*args, **kwargs)
        leaves, tree = flatten(spec)
        return unflatten(tree, [_spec_type(x) for x in leaves])


def _spec_type(x: Any) -> TensorType:
    """The type that an example stands for."""
    if isinstance(x, TensorType):
        return x
    if type(x) is Tensor:  # an argument of a function that is traced
        return TensorType(x.type.dtype, x.type.shape) if x.type.kind == "array" else x.type
    if isinstance(x, np.ndarray):
        return TensorType(x.dtype, x.shape)
    if isinstance(x, type | np.dtype):
        if x in (float, int, bool):
            return _python(x)  # type: ignore[arg-type]  # a type, for it is one of three
        return scalar_type(np.dtype(x))
    if isinstance(x, np.generic):
        return scalar_type(x.dtype)
    if isinstance(x, bool | int | float):
        return _python(type(x))
    raise errors.DTypeError(f"jg.host: result={x!r} is no array, number or type")


def _python(kind: type) -> TensorType:
    from jitgraph.ir.types import python_type

    return python_type("py_bool" if kind is bool else "py_int" if kind is int else "py_float")
