"""What a NumPy function returns, learnt by calling it while tracing, on small stand-ins for its traced operands.

It is called with several contents (zeros, ones, increasing, large, a matrix far from singular; operands alike and
different) and several sizes. Structure, dtypes, ranks and memory orders are those of the first call that succeeds. A
size that is the same for all contents and follows sizes of the operands in all calls is that expression; any other is
known only when the compiled code calls. A promise that does not hold then is noticed there: the call is rerun in
Python, or it is an error.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike, dim_max, dim_min, evaluate, floordiv, symbol, symbols
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.types import TensorType, dense_layout, python_type, scalar_type
from jitgraph.pytree import TreeDef, flatten, register_leaf, unflatten
from jitgraph.records import dataclass
from jitgraph.tensor import Tensor, read
from jitgraph.xp.core import NEGATIVE, size_of

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode

#: Stand-ins have at most this size where an example's is larger (relations of up to 2 between sizes are kept).
_SMALL = 6
_CONTENTS = ("matrix", "increasing", "zeros", "ones", "mixed", "large")
#: What is tried if nothing else does: counts that are not small, numbers between 0 and 1, what is far from singular as
#: a matrix of whichever axes, and the numbers of the call that is traced.
_MANY, _ROUGH, _EXAMPLE = "many", "rough", "example"
#: Rounds of contents: all operands alike, then each another one.
_ROUNDS = (*((k, 0) for k in range(len(_CONTENTS))), (1, 1), (4, 1))


class Unknown:
    """A size that only the call knows; the same object in two places is the same size."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"


@dataclass(frozen=True, slots=True)
class Same:
    """A result that is the very operand of that number."""

    operand: int


register_leaf(Same)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one call returned."""

    tree: TreeDef
    types: tuple[TensorType | Same, ...]


class Refused(Exception):  # noqa: N818  # turned into a TraceError at the user's line
    """The results have no form in compiled code; the text says why."""


def learn(
    mode: CaptureMode, fn: Callable[..., Any], tree: TreeDef, leaves: Sequence[Any], dynamic: Sequence[int]
) -> Any:
    """The types of the results of `fn` as a pytree of `TensorType`s, whose sizes are dims or `Unknown`.

    Args:
        leaves: of (args, kwargs); those numbered in `dynamic` are Tensors or arrays, stand-ins take their places.

    Raises:
        what `fn` raises for all stand-ins, as it raises for these sizes whatever the data; Refused.
    """
    found = _known(mode, fn, tree, leaves, dynamic)
    ints = [leaves[k] for k in dynamic if type(leaves[k]) is Tensor and leaves[k].type.kind == "py_int"]
    unbound = [x for x in ints if x._dim is None and mode.symbol_of(x._storage.value) is None]
    if unbound and any(_has_unknown(t) for t in flatten(found.promised)[0]):
        for x in unbound:  # perhaps the result has as many elements
            if _refuses_negative(mode, fn, tree, leaves, dynamic, x):
                size_of(x)
            else:
                mode.bind(x._storage.value)
        found = _known(mode, fn, tree, leaves, dynamic)
    return found.promised


def _refuses_negative(
    mode: CaptureMode, fn: Callable[..., Any], tree: TreeDef, leaves: Sequence[Any], dynamic: Sequence[int], x: Tensor
) -> bool:
    """Whether an integer is a size, and NumPy says so if it is negative."""
    given = list(leaves)
    for k in dynamic:
        operand = _Operand.of(mode, leaves[k])
        given[k] = -1 if leaves[k] is x else operand.stand_in("ones", _hints(mode, [operand]))
    try:
        _call(fn, tree, given, [given[k] for k in dynamic])
    except Exception as error:  # noqa: BLE001  # whatever it is: it is NumPy's
        return str(error) == NEGATIVE
    return False


def _has_unknown(t: Any) -> bool:
    return isinstance(t, TensorType) and any(isinstance(d, Unknown) for d in t.shape)


def _known(
    mode: CaptureMode, fn: Callable[..., Any], tree: TreeDef, leaves: Sequence[Any], dynamic: Sequence[int]
) -> _Learnt:
    """What `learn` answers, from what was learnt before if there is something."""
    operands = [_Operand.of(mode, leaves[k]) for k in dynamic]
    hints = _hints(mode, operands)
    known = mode.builder.graph.symbols
    free = frozenset([name for name in hints if name not in known or known[name].hint is None])
    static = tuple([(type(x), x) for k, x in enumerate(leaves) if k not in dynamic])
    key: Any = None
    if all(kind in _BY_VALUE for kind, _ in static):
        key = (fn, tree, static, tuple(operands), tuple(hints.items()), free)
        learnt = _learnt.get(key)
        if learnt is not None:
            if not learnt.told_apart:
                _equate(mode, hints)
            return learnt
    try:
        found = _learn(fn, tree, leaves, dynamic, operands, hints, free)
    except Refused:
        raise
    except Exception as error:
        error.__jitgraph_stand_in__ = True  # type: ignore[attr-defined]  # its text tells of them
        _fix(mode, hints)
        raise
    if not found.told_apart:
        _equate(mode, hints)
    if key is not None:
        if len(_learnt) >= _KEPT:
            _learnt.clear()
        _learnt[key] = found
    return found


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What `learn` answers, and whether sizes that are equal in the example need not be."""

    promised: Any
    told_apart: bool


_BY_VALUE = frozenset((int, float, bool, str, complex))
_KEPT = 512
#: By function, static arguments, types of the operands and example sizes; loops are traced several times.
_learnt: dict[Any, _Learnt] = {}


def _learn(
    fn: Callable[..., Any],
    tree: TreeDef,
    leaves: Sequence[Any],
    dynamic: Sequence[int],
    operands: Sequence[_Operand],
    hints: dict[str, int],
    free: frozenset[str],
) -> _Learnt:
    seen: list[tuple[dict[str, int], list[Seen]]] = []
    failure: Exception | None = None
    told_apart = False
    for what, env in _environments(hints, free):
        if what == "own" and seen:
            continue
        if not _is_possible(operands, env) or (
            what != "own" and any(o.dim is not None and evaluate(o.dim, env) < 0 for o in operands)
        ):
            continue  # sizes that the guards on them rule out
        found: list[Seen] = []
        for first, step in _ROUNDS if what in ("small", "own") else _ROUNDS[:2]:
            given = list(leaves)
            for number, (k, operand) in enumerate(zip(dynamic, operands, strict=True)):
                given[k] = operand.stand_in(_CONTENTS[(first + step * number) % len(_CONTENTS)], env)
            try:
                found.append(_call(fn, tree, given, [given[k] for k in dynamic]))
            except Refused:
                raise
            except Exception as error:  # noqa: BLE001  # the function's own: perhaps these contents do not suit it
                failure = failure or error
        if found:
            seen.append((env, found))
            told_apart |= what == "apart"
    for _, env in _environments(hints, free) if not seen else ():
        if not _is_possible(operands, env):
            continue
        for content in (_MANY, _ROUGH, _EXAMPLE):
            given = list(leaves)
            for k, operand in zip(dynamic, operands, strict=True):
                given[k] = operand.stand_in(content, env)
            with contextlib.suppress(Exception):
                seen.append((env, [_call(fn, tree, given, [given[k] for k in dynamic])]))
    if not seen:
        raise failure or Refused("no sizes of its operands are known that it could be tried with")
    model = seen[0][1][0]
    candidates = _candidates(operands)
    clamped = [d for o in operands for d in o.dims() if not isinstance(d, int)]
    types = [_general(k, t, seen, candidates, clamped) for k, t in enumerate(model.types)]
    return _Learnt(unflatten(model.tree, types), told_apart)


def _is_possible(operands: Sequence[_Operand], env: dict[str, int]) -> bool:
    """Whether no array has a size below zero."""
    return all(evaluate(d, env) >= 0 for operand in operands for d in operand.type.shape)


@dataclass(frozen=True, slots=True)
class _Operand:
    type: TensorType
    dim: DimLike | None
    foreseen: Callable[[], Any]

    @staticmethod
    def of(mode: CaptureMode, x: Any) -> _Operand:
        foreseen = functools.partial(_foreseen, mode, x)
        if type(x) is Tensor:
            dim = x._dim if x.type.kind == "py_int" else None
            if dim is None and x.type.kind == "py_int":
                dim = mode.symbol_of(x._storage.value)  # perhaps an array has as many elements
            return _Operand(x.type, dim, foreseen)  # type: ignore[arg-type]  # a `py_int` is no ratio
        return _Operand(mode.type_of(mode.lift(x)), None, foreseen)

    def dims(self) -> list[DimLike]:
        return [*self.type.shape] if self.dim is None else [self.dim]

    def stand_in(self, content: str, env: dict[str, int]) -> Any:
        t = self.type
        if self.dim is not None:
            return evaluate(self.dim, env)
        if t.kind == "array":
            return _array(t, [evaluate(d, env) for d in t.shape], content)
        value: float = {"zeros": 0, "ones": 1}.get(content, 2 if t.dtype.kind != "b" else 1)
        if content == _MANY:
            value = {"b": 1, "i": 50, "u": 50}.get(t.dtype.kind, 0.5)
        elif content == _EXAMPLE:
            example = self.foreseen()
            value = value if example is None else example
        number = t.dtype.type(value)
        return number.item() if t.is_python else number


def _foreseen(mode: CaptureMode, x: Any) -> Any:
    return mode.foresight.number(read(x)) if type(x) is Tensor and not x.type.shape else None


def _array(t: TensorType, shape: list[int], content: str) -> np.ndarray:
    """An array of the type with these sizes, its axes in the type's memory order."""
    size = int(np.prod(shape, dtype=np.int64))
    kind = t.dtype.kind
    data: np.ndarray
    if content == "matrix" and len(shape) >= 2:
        n, m = shape[-2:]
        data = np.broadcast_to(np.eye(n, m) * (min(n, m, 7) + 2) + 1, shape)
    elif content == "zeros":
        data = np.zeros(shape)
    elif content in ("ones", "matrix"):
        data = np.ones(shape)
    elif content == _MANY and kind in "fc":  # weights that add up to 1
        data = np.full(shape, 1 / max(shape[-1], 1) if shape else 1.0)
    elif content == _ROUGH:
        data = (np.arange(size) ** 2 * 7 % 101).reshape(shape)
    elif content in ("increasing", _EXAMPLE):
        data = np.arange(size).reshape(shape)
    elif content == "large":
        data = (np.arange(size) * 3 + 50).reshape(shape)
    else:
        data = ((np.arange(size) * 5) % 7 - (3 if kind in "if" else 0)).reshape(shape)
    if kind == "b":
        data = data % 2 > 0
    elif kind in "iu":
        data = np.minimum(data, 100)
    order = t.layout.order if len(t.layout.order) == len(shape) else tuple(range(len(shape)))
    back = [order.index(axis) for axis in range(len(shape))]
    made = np.empty([shape[axis] for axis in order], t.dtype).transpose(back)
    made[...] = data
    return made


def _call(fn: Callable[..., Any], tree: TreeDef, leaves: list[Any], operands: list[Any]) -> Seen:
    before = [x.copy() if isinstance(x, np.ndarray) else x for x in operands]
    args, kwargs = unflatten(tree, leaves)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results, result_tree = flatten(fn(*args, **kwargs))
    for x, old in zip(operands, before, strict=True):
        if isinstance(x, np.ndarray) and not np.array_equal(x, old, equal_nan=x.dtype.kind in "fc"):
            raise Refused("it changes its argument in place")
    return Seen(result_tree, tuple(_result(r, operands) for r in results))


def _result(x: Any, operands: list[Any]) -> TensorType | Same:
    """The type of a result; the operand that it is.

    Raises:
        Refused: it is another view of an operand, or no number and no array of numbers.
    """
    if isinstance(x, np.ndarray):
        for number, operand in enumerate(operands):
            if x is operand:
                return Same(number)
            if isinstance(operand, np.ndarray) and np.shares_memory(x, operand):
                raise Refused("its result shares memory with its argument")
    return _type_of(x)


def _type_of(x: Any) -> TensorType:
    if type(x) is np.ndarray:
        if x.dtype.kind not in "biufc":
            raise Refused(f"it returns an array of dtype {x.dtype}")
        layout = layout_of(x.shape, x.strides, x.itemsize)
        return TensorType(x.dtype, x.shape, "array", dense_layout(layout.order))
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        return scalar_type(x.dtype)
    kinds: dict[type, Any] = {bool: "py_bool", int: "py_int", float: "py_float", complex: "py_complex"}
    kind = kinds.get(type(x))
    if kind is None:
        what = "text" if isinstance(x, str) else f"a {type(x).__name__}"
        raise Refused(f"it returns {what}, which compiled code has no form for")
    return python_type(kind)


# --- sizes of stand-ins


def _hints(mode: CaptureMode, operands: Sequence[_Operand]) -> dict[str, int]:
    """The example value of each symbol in the operands' sizes; those without one get one."""
    known = mode.builder.graph.symbols
    found: dict[str, int] = {}
    for operand in operands:
        for d in operand.dims():
            for name in symbols(d):
                hint = known[name].hint if name in known else None
                if hint is None and name in known and known[name].origin == "value" and known[name].arg >= 0:
                    hint = mode.foresight.number(mode.builder.graph.args[known[name].arg])  # an integer argument
                found[name] = hint if hint is not None else 4 + 3 * len(found)
    if not _is_possible(operands, found):
        _put_within_bounds(mode, found)
    return found


def _put_within_bounds(mode: CaptureMode, hints: dict[str, int]) -> None:
    """Sizes such as `n - r` are none below zero where an index `r` lies in its bounds: half-way between them."""
    known, facts = mode.builder.graph.symbols, mode.builder.graph.facts
    env = {name: s.hint for name, s in known.items() if s.hint is not None}
    for name, value in hints.items():
        if name in env:
            continue
        low, high = (bound.get(name) for bound in (facts.lower, facts.upper))
        ends = [evaluate(d, env) for d in (low, high) if d is not None and all(s in env for s in symbols(d))]
        env[name] = hints[name] = sum(ends) // len(ends) if ends else value


def _environments(hints: dict[str, int], free: frozenset[str]) -> Iterator[tuple[str, dict[str, int]]]:
    """Sizes to try: the example's in small, the example's own, then others with the same relations, and without.

    Args:
        free: symbols without an example, indices of loops perhaps; 0 may be another case.
    """
    values = sorted(set(hints.values()))
    small: dict[int, int] = {}
    for k, value in enumerate(values):
        near = small[values[k - 1]] + min(value - values[k - 1], 3) if k else min(max(value, 2), _SMALL)
        small[value] = near
    yield "small", {name: small[value] for name, value in hints.items()}
    if not hints:
        return
    yield "own", dict(hints)
    yield "larger", {name: small[value] + 4 for name, value in hints.items()}
    if len(values) > 1:  # sizes that follow differences of sizes are no constants
        yield "spread", {name: 2 * small[value] + 3 for name, value in hints.items()}
    if free:
        yield "first", {name: 0 if name in free else small[value] for name, value in hints.items()}
    last = max(small.values()) + 3
    yield "reversed", {name: last - small[value] + 2 for name, value in hints.items()}
    if len(values) < len(hints):
        yield "apart", {name: small[value] + 3 * k for k, (name, value) in enumerate(hints.items())}


def _equate(mode: CaptureMode, hints: dict[str, int]) -> None:
    """Sizes that are equal in the example, where the function refuses others: a guard makes them one."""
    first: dict[int, str] = {}
    for name, hint in hints.items():
        other = first.setdefault(hint, name)
        if other != name:
            try:
                mode.decide("==", symbol(other), symbol(name))
            except Undecided:
                continue


def _fix(mode: CaptureMode, hints: dict[str, int]) -> None:
    """The function refuses the example's sizes: a trace that handles the error is one of these sizes only."""
    for name, hint in hints.items():
        with contextlib.suppress(Undecided):
            mode.decide("==", symbol(name), hint)


def _candidates(operands: Sequence[_Operand]) -> list[DimLike]:
    """Expressions that a size of a result may be, the plainest first."""
    dims = list(dict.fromkeys(d for o in operands for d in o.dims()))
    found: dict[DimLike, None] = dict.fromkeys(dims)
    for operand in operands:
        total: DimLike = 1
        for d in operand.type.shape:
            total = total * d
        found[total] = None
    shapes = [o.type.shape for o in operands if o.type.ndim >= 2]
    for shape in shapes:
        found[dim_min(*shape[-2:])] = None
        found[dim_max(*shape[-2:])] = None
    for d in dims:
        for e in (d - 1, d + 1, floordiv(d, 2) + 1, 2 * (d - 1), 2 * d, d + 2, 2 * d - 1, floordiv(d + 7, 8), 8 * d):
            found[e] = None
    for a in dims[:6]:
        for b in dims[:6]:
            for e in (a + b, a + b - 1, a * b, dim_max(a, b), dim_min(a, b), dim_max(a, b) - dim_min(a, b) + 1):
                found[e] = None
    return list(found)


def _general(
    k: int,
    t: TensorType | Same,
    seen: Sequence[tuple[dict[str, int], list[Seen]]],
    candidates: Sequence[DimLike],
    clamped: Sequence[DimLike],
) -> TensorType | Same:
    """The type of result `k`, with sizes in terms of the operands' where they follow them."""
    if isinstance(t, Same) or t.kind != "array":
        return t
    shape: list[Any] = [_size(k, axis, t.ndim, seen, candidates, clamped) for axis in range(t.ndim)]
    return TensorType(t.dtype, tuple(shape), "array", t.layout)


def _size(
    k: int,
    axis: int,
    ndim: int,
    seen: Sequence[tuple[dict[str, int], list[Seen]]],
    candidates: Sequence[DimLike],
    clamped: Sequence[DimLike],
) -> Any:
    values: list[tuple[dict[str, int], int]] = []
    for env, found in seen:
        sizes = {_axis_of(s, k, axis, ndim) for s in found}
        if len(sizes) > 1 or -1 in sizes:
            return Unknown()
        values.append((env, sizes.pop()))
    first = values[0][1]
    if all(size == first for _, size in values) and (len(values) > 1 or not values[0][0]):
        # a size that was clamped to one number in all calls is more likely the result's than that number
        return next((d for d in clamped if all(evaluate(d, env) == first for env, _ in values)), first)
    if len(values) < 3:
        return Unknown()
    for d in candidates:
        if all(evaluate(d, env) == size for env, size in values):
            return d
    return Unknown()


def _axis_of(seen: Seen, k: int, axis: int, ndim: int) -> int:
    """A size of result `k` of one call; -1 if it is no array of that rank."""
    t = seen.types[k] if k < len(seen.types) else None
    if not isinstance(t, TensorType) or t.ndim != ndim:
        return -1
    size = t.shape[axis]
    assert isinstance(size, int), "sizes of stand-ins are numbers"
    return size


def refuse(mode: CaptureMode, name: str, why: str) -> errors.TraceError:
    """The error of a function that `learn` refused."""
    return errors.TraceError(
        errors.describe(
            f"{name} has no compiled form: {why}",
            mode.locate(),
            remedy="keep it outside the jitted function, wrap it with jg.host, or use @jit(fallback='eager').",
        )
    )
