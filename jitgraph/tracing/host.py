"""Calls from compiled code back into Python: NumPy's functions without an operator of their own, and the user's.

`TABLE` (filled by `host_table`) has NumPy's: each with a rule that answers the types of its results from those of its
operands, or `PROBE`: they are learnt by a call on stand-ins (`probe`). `jg.host(fn, result=...)` is the user's door.
What a function returns is checked against what was promised; if it differs, the call is rerun in plain Python as long
as nothing visible has been written, else it raises.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

import numpy as np

from jitgraph import dtypes, errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import Dim, DimLike, dim_max
from jitgraph.ir.graph import Site, Value
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.pytree import TreeDef, flatten, register_leaf, unflatten
from jitgraph.records import dataclass
from jitgraph.source import SourceLoc
from jitgraph.tensor import Tensor, lift, wrap
from jitgraph.tracing.probe import Refused, Same, Unknown, learn, refuse
from jitgraph.xp.core import cast, deliver

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode

P = ParamSpec("P")
R = TypeVar("R")

#: A rule takes the arguments with `TensorType`s in place of arrays and answers a pytree of result types, whose sizes
#: may be `Unknown`.
Rule = Callable[..., Any]


def PROBE(*_args: Any, **_kwargs: Any) -> Any:  # noqa: N802  # a constant that is a rule
    """Stands for a rule: the types are learnt by calls on stand-ins."""
    raise errors.InternalError("a probe is no rule")


#: NumPy's functions that compiled code calls back.
TABLE: Final[dict[Any, Rule]] = {}
#: Further ones as (module, name), in modules that NumPy loads when they are first used.
NAMED: Final[set[tuple[str, str]]] = set()
#: Why functions have no compiled form, by public name: `array2string`, `linalg.LinAlgError`.
REFUSED: Final[dict[str, str]] = {}
#: Modules of which nothing has a compiled form, and why.
REFUSED_MODULES: Final[dict[str, str]] = {
    "numpy.ma": "masked arrays: pass x.filled(...) and x.mask",
    "numpy.char": "text",
    "numpy.strings": "text",
    "numpy.rec": "records",
    "numpy.ctypeslib": "memory of other libraries",
}
#: Functions to the arguments (place and name) whose values the type of a result follows from.
TYPED_BY: Final[dict[Any, tuple[tuple[int, str], ...]]] = {
    np.polyfit: ((2, "deg"),),
    np.linalg.tensorinv: ((1, "ind"),),
    np.linalg.tensorsolve: ((2, "axes"),),
    **dict.fromkeys((np.median, np.nanmedian), ((1, "axis"), (4, "keepdims"))),
    **dict.fromkeys((np.quantile, np.nanquantile, np.percentile, np.nanpercentile), ((2, "axis"), (6, "keepdims"))),
}

#: Functions that return real arrays or complex ones, as the data has it.
DATA_DTYPE: Final[set[Any]] = {np.linalg.eig, np.linalg.eigvals, np.roots, np.poly}
register_leaf(TensorType)


@dataclass(frozen=True, slots=True)
class ShapeDtype:
    """An array by its sizes and dtype: for `jg.host(result=...)`, `jg.warmup`, `f.memory`, `f.explain` and their kin.

    Args:
        shape: numbers, sizes of traced arrays (`x.shape[0]`), and None where only the call knows; one number stands for
            one axis.
        dtype: of the elements.

    Raises:
        TypeError: no dtype.
    """

    shape: Any
    dtype: Any = np.float64

    def __post_init__(self) -> None:
        shape = self.shape
        object.__setattr__(self, "shape", tuple(shape) if isinstance(shape, tuple | list) else (shape,))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def to_type(self) -> TensorType:
        sizes: list[Any] = []
        for d in self.shape:
            size = Unknown() if d is None else d._dim if type(d) is Tensor else d
            if not isinstance(size, int | np.integer | Dim | Unknown):
                raise errors.DTypeError(f"jg.host: a size of a result is {d!r}, which is no number, size or None")
            sizes.append(int(size) if isinstance(size, np.integer) else size)
        return TensorType(self.dtype, tuple(sizes))


register_leaf(ShapeDtype)


class Mismatch(errors.DTypeError):
    """A function returned something else than was promised."""


class Rerun(Exception):  # noqa: N818  # no error: the call is run in plain Python instead
    """A host call cannot go on in compiled code, and nothing visible has been written."""

    __jitgraph_rerun__ = True


@dataclass(frozen=True, slots=True)
class HostCall:
    """What runs behind a `host_call` site: called with the operands, answers the result (a tuple of several), checked.

    Attributes:
        fn: the Python function.
        tree: structure of (args, kwargs); `dynamic` are its leaves that operands fill, `leaves` has the others.
        kinds: of the operands: Python numbers are passed as such.
        types: of the results; sizes that are numbers are checked. `Same` results are operands themselves: not answered.
        effects: the call is kept even if nobody uses its results.
        borrows: the function does not keep its arguments: it sees the memory of the call, read-only.
        exact: NumPy scalars and 0-d arrays are told apart (a user's promise is met by either).
        rerun: the call may be given up and run in plain Python.
        handled: exceptions that the user's `try` around handles.
        loc: the user's place.
    """

    fn: Callable[..., Any]
    tree: TreeDef
    leaves: tuple[Any, ...]
    dynamic: tuple[int, ...]
    kinds: tuple[str, ...]
    types: tuple[TensorType | Same, ...]
    result_tree: TreeDef
    name: str
    effects: bool = False
    borrows: bool = False
    exact: bool = False
    rerun: bool = False
    handled: tuple[type[BaseException], ...] = ()
    loc: SourceLoc | None = None

    def __call__(self, *operands: Any) -> Any:
        """Call the function with the operands (arrays, NumPy scalars, Python numbers) in their places.

        Raises:
            Mismatch: a result that is not what was promised.
            Rerun: in its place, or of an exception that the user handles, where the call can be rerun.
        """
        leaves = list(self.leaves)
        for k, kind, x in zip(self.dynamic, self.kinds, operands, strict=True):
            leaves[k] = self._argument(x, kind)
        args, kwargs = unflatten(self.tree, leaves)
        try:
            answer = self.fn(*args, **kwargs)
        except self.handled as error:
            if self.rerun:
                raise Rerun(str(error)) from error
            text = (
                f"{self.name} raised {type(error).__name__}: {error}, which is handled by `try`, in a loop or after a "
                "write that the caller can see"
            )
            raise errors.TraceError(errors.describe(text, self.loc, remedy="use @jit(fallback='eager').")) from error
        if not self.types:
            return None
        try:
            checked = self._all_checked(answer, leaves)
        except Mismatch as error:
            if self.is_lenient:
                raise Rerun(str(error)) from error
            raise Mismatch(errors.describe(str(error), self.loc)) from None
        return checked[0] if len(checked) == 1 else checked

    @property
    def is_lenient(self) -> bool:
        """Whether a result that was not promised reruns the call in Python: NumPy's types were only learnt."""
        return self.rerun and self.exact

    def _argument(self, x: Any, kind: str) -> Any:
        if self.borrows and isinstance(x, np.ndarray):
            x = x.view()
            x.flags.writeable = False
        elif kind.startswith("py_") and isinstance(x, np.generic):
            return x.item()
        return x

    def _all_checked(self, answer: Any, given: list[Any]) -> tuple[Any, ...]:
        results, tree = flatten(answer)
        if tree != self.result_tree:
            raise Mismatch(f"{self.name} returned {tree}, promised was {self.result_tree}")
        checked = []
        for result, t in zip(results, self.types, strict=True):
            if not isinstance(t, Same):
                checked.append(self._checked(result, t))
            elif result is not given[self.dynamic[t.operand]]:
                raise Mismatch(f"{self.name} returned a new array, promised was one of its arguments")
        return tuple(checked)

    def _checked(self, result: Any, t: TensorType) -> Any:
        if isinstance(result, np.ndarray) and type(result) is not np.ndarray and hasattr(result, "mask"):
            raise Mismatch(f"{self.name} returned a masked array: return result.filled(...)")
        array = np.asarray(result)
        if array.dtype != t.dtype and t.is_python and np.can_cast(array.dtype, t.dtype, "same_kind"):
            array = array.astype(t.dtype)
        wrong = array.dtype != t.dtype or array.ndim != t.ndim
        wrong = wrong or any(isinstance(d, int) and d != size for d, size in zip(t.shape, array.shape, strict=True))
        if self.exact and not wrong and not t.ndim:
            wrong = isinstance(result, np.ndarray) != (t.kind == "array")
        if wrong:
            raise Mismatch(
                f"{self.name} returned {array.dtype} of shape {array.shape}, promised was {t}"
                + ("" if self.exact else ": give jg.host the dtype and shape that the function really returns")
            )
        if t.kind == "array":
            return np.ascontiguousarray(array).reshape(array.shape) if t.layout.is_c else array
        return array[()]


def display_name(fn: Callable[..., Any]) -> str:
    """`np.linalg.solve`; a user's function by its own name."""
    name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__
    module = getattr(fn, "__module__", "") or ""
    if module == "numpy":
        return f"np.{name}"
    return f"np.{module.removeprefix('numpy.')}.{name}" if module.startswith("numpy.") else str(name)


def call(
    mode: CaptureMode,
    fn: Callable[..., Any],
    rule: Rule,
    args: Any,
    kwargs: Any,
    *,
    effects: bool = False,
    numpy: bool = False,
) -> Any:
    """Emit a `host_call` of `fn`, whose results have the types that `rule` answers.

    Args:
        numpy: it is one of NumPy's: it keeps no argument and has the promised kinds.

    Raises:
        TraceError: the types have no form in compiled code.
    """
    leaves, tree = flatten((tuple(args), dict(kwargs)))
    dynamic = [k for k, x in enumerate(leaves) if type(x) is Tensor or isinstance(x, np.ndarray)]
    operands: list[Value] = [lift(mode, leaves[k]) for k in dynamic]
    name = display_name(fn)
    promised = _promised(mode, fn, name, rule, tree, leaves, dynamic, operands)
    answers, result_tree = flatten(promised)
    binds: list[str] = []
    answers = list(_with_symbols(mode, name, answers, binds))
    types = [t for t in answers if not isinstance(t, Same)]
    given = [leaves[k] for k in dynamic]
    kinds = tuple(v.type.kind for v in operands)
    for k in dynamic:
        leaves[k] = None
    rerun = mode.can_rerun() and not effects
    handled = tuple(kind for kinds in mode.handled for kind in kinds)
    site = Site(
        "host",
        name,
        mode.locate(),
        HostCall(
            fn, tree, tuple(leaves), tuple(dynamic), kinds, tuple(answers), result_tree, name, effects, numpy, numpy,
            rerun, handled, mode.locate(),
        ),
    )  # fmt: skip
    mode.builder.graph.sites.append(site)
    results = mode.emit_host(len(mode.builder.graph.sites) - 1, operands, types, effects, tuple(binds))
    fresh = iter([wrap(mode, r) for r in results])
    return unflatten(result_tree, [given[t.operand] if isinstance(t, Same) else next(fresh) for t in answers])


def _promised(
    mode: CaptureMode,
    fn: Callable[..., Any],
    name: str,
    rule: Rule,
    tree: TreeDef,
    leaves: list[Any],
    dynamic: list[int],
    operands: list[Value],
) -> Any:
    """What the rule, or the probe, says of the results."""
    if rule is PROBE:
        try:
            return learn(mode, fn, tree, leaves, dynamic)
        except Refused as why:
            raise refuse(mode, name, str(why)) from None
    typed = list(leaves)
    for k, v in zip(dynamic, operands, strict=True):
        typed[k] = v.type
    rule_args, rule_kwargs = unflatten(tree, typed)
    try:
        return rule(*rule_args, **rule_kwargs)
    except errors.JitgraphError as error:
        raise mode.located(error) from None


def _with_symbols(
    mode: CaptureMode, name: str, types: list[TensorType | Same], binds: list[str]
) -> Iterator[TensorType | Same]:
    """Sizes that only the call knows as new symbols of the graph, whose names `binds` gets."""
    known: dict[Unknown, Dim] = {}
    for t in types:
        if isinstance(t, Same):
            yield t
            continue
        if dtypes.native(t.dtype) not in dtypes.COMPILED:
            raise refuse(mode, name, f"it returns {t.dtype}, and compiled code has {dtypes.COMPILED_TEXT}")
        shape: list[Any] = []
        for d in t.shape:
            if isinstance(d, Unknown):
                if d not in known:
                    known[d] = mode.fresh_symbol("k", "value", 0)
                    binds.append(str(known[d]))
                shape.append(known[d])
            else:
                shape.append(_not_negative(mode, d))
        yield TensorType(t.dtype, tuple(shape), t.kind, t.layout) if shape else t


def _not_negative(mode: CaptureMode, d: DimLike) -> DimLike:
    """A size as `n - 1` follows from larger stand-ins: of what has fewer elements than that there is none."""
    if isinstance(d, int):
        return d
    try:
        return d if mode.decide(">=", d, 0) else 0
    except Undecided:
        return dim_max(d, 0)


def rule_of(f: Any) -> Rule | None:
    """The rule of a function of NumPy's that is called back."""
    try:
        rule = TABLE.get(f)
    except TypeError:  # it has no hash
        return None
    if rule is None and (getattr(f, "__module__", None), getattr(f, "__name__", None)) in NAMED:
        return PROBE
    return rule


def call_numpy(mode: CaptureMode, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call of a function of `TABLE`; its result goes to `out` if there is one."""
    kwargs = dict(kwargs)
    out = kwargs.pop("out", None)
    for at, name in TYPED_BY.get(fn, ()):
        if at < len(args):
            args = (*args[:at], _known(args[at]), *args[at + 1 :])
        elif name in kwargs:
            kwargs[name] = _known(kwargs[name])
    if out is not None and getattr(fn, "__module__", None) == "numpy.fft":
        result = call(mode, _into(fn), _as_first, (out, *args), kwargs, numpy=True)
    elif fn in DATA_DTYPE and mode.can_rerun():
        result = _real_or_complex(mode, fn, args, kwargs)
    else:
        rule = rule_of(fn)
        assert rule is not None
        result = call(mode, fn, rule, args, kwargs, numpy=True)
    return result if out is None else deliver(result, out)


def _as_first(out: TensorType, *args: Any, **kwargs: Any) -> TensorType:
    return TensorType(dtypes.native(out.dtype), out.shape)


def _into(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that works in its `out`, in the dtype and size of that, between its steps."""

    @functools.wraps(fn)
    def into(out: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, out=np.empty(out.shape, dtypes.native(out.dtype)), **kwargs)

    return into


def _known(x: Any) -> Any:
    """Numbers as Python's: their arguments are part of the specialisation."""
    if isinstance(x, tuple | list):
        return type(x)([_known(i) for i in x])
    if type(x) is not Tensor:
        return x
    return bool(x) if x.type.dtype.kind == "b" else operator.index(x)


def _real_or_complex(mode: CaptureMode, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call of a function of `DATA_DTYPE`: the trace takes real results for granted, another one has complex ones."""

    @functools.wraps(fn)
    def both(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten(fn(*args, **kwargs))
        if not all(isinstance(x, np.ndarray | np.generic) for x in leaves):
            raise Rerun(f"{display_name(fn)} returned a Python number")
        real = not any(np.iscomplexobj(x) for x in leaves)
        return unflatten(tree, [x + x.dtype.type(0) * 1j if real else x for x in leaves]), np.bool_(real)

    found, real = call(mode, both, PROBE, args, kwargs, numpy=True)
    if not mode.assume(lift(mode, real), f"the dtype of {display_name(fn)}"):
        return found
    leaves, tree = flatten(found)
    return unflatten(tree, [cast(x, np.zeros((), x.type.dtype).real.dtype) for x in leaves])


class Host(Generic[P, R]):
    """A Python function that compiled code calls back: what `jg.host` returns.

    Args:
        fn: called with plain arrays and numbers.
        result: what it returns: an example array or number, a dtype (a NumPy scalar of it), a `ShapeDtype`, a pytree of
            these, a function of the arguments' types (`TensorType`s for arrays) that answers such a pytree, or None if
            nothing.
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
        return call(tracer.mode, tracer.live(self.__wrapped__), self._types, args, kwargs, effects=self.effects)

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
    if isinstance(x, ShapeDtype):
        return x.to_type()
    if type(x) is Tensor:  # an argument of a function that is traced
        return TensorType(x.type.dtype, x.type.shape) if x.type.kind == "array" else x.type
    if isinstance(x, np.ndarray):
        return TensorType(x.dtype, x.shape)
    if isinstance(x, type | np.dtype):
        kind = _PYTHON.get(x) if isinstance(x, type) else None
        return python_type(kind) if kind is not None else scalar_type(np.dtype(x))
    if isinstance(x, np.generic):
        return scalar_type(x.dtype)
    kind = _PYTHON.get(type(x))
    if kind is None:
        raise errors.DTypeError(f"jg.host: result={x!r} is no array, number or type")
    return python_type(kind)


_PYTHON: Final[dict[type, Any]] = {bool: "py_bool", int: "py_int", float: "py_float", complex: "py_complex"}
