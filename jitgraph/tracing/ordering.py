"""`sorted`, `list.sort`, `max` and `min` with a key, `round` to digits: Python's builtins on traced numbers.

A short sort is a network of comparisons between neighbours, which is stable as Python's; a long one of numbers of one
kind is a stable sort of NumPy's. Python's order of NaNs depends on its algorithm: with one of them Python runs.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type
from jitgraph.tensor import Tensor, lift, wrap
from jitgraph.tracing import host
from jitgraph.tracing.identity import note
from jitgraph.tracing.iteration import any_traced
from jitgraph.tracing.kinds import either, tag_of
from jitgraph.tracing.regions import is_the_users
from jitgraph.xp.core import NUMPY_TABLE
from jitgraph.xp.scalars import BUILTIN_TABLE, element

if TYPE_CHECKING:
    from jitgraph.tracing.standins import Tracer

#: Most items that are sorted by comparisons of neighbours.
_MOST_COMPARED = 12


class _Decided:
    """A key whose comparisons the trace takes for granted."""

    def __init__(self, tracer: Tracer, key: Any) -> None:
        self.tracer, self.key = tracer, key

    def __lt__(self, other: _Decided) -> bool:
        return self.tracer.decided(self.tracer.binary("lt", self.key, other.key))


def _sorted(tracer: Tracer, iterable: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    items = [*tracer.iterable(iterable)]
    keys = items if key is None else [tracer.call(key, x) for x in items]
    if not any_traced(keys):
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[k] for k in order]
    downwards = tracer.decided(reverse)
    if all(_is_number(k) for k in keys):
        if len(items) <= _MOST_COMPARED:
            _refuse_nan(tracer, keys)
            return _by_network(tracer, items, keys, downwards)
        if _of_one_kind(keys) and _of_one_kind(items):
            _refuse_nan(tracer, keys)
            return _by_numpy(items, keys, downwards)
    decided = [_Decided(tracer, k) for k in keys]
    order = sorted(range(len(items)), key=decided.__getitem__, reverse=downwards)
    return [items[k] for k in order]


def sort_list(tracer: Tracer, items: list[Any], /, *, key: Any = None, reverse: Any = False) -> None:
    """`list.sort`."""
    items[:] = _sorted(tracer, items, key=key, reverse=reverse)


def _is_number(x: Any) -> bool:
    if type(x) is Tensor:
        return x.type.kind != "array" and x.type.dtype.kind in "biuf"
    return isinstance(x, bool | int | float | np.number | np.bool_)


def _kind(x: Any) -> Any:
    return (x.type.kind, x.type.dtype) if type(x) is Tensor else (type(x),)


def _of_one_kind(items: list[Any]) -> bool:
    return all(type(x) is Tensor and _is_number(x) for x in items) and len({_kind(x) for x in items}) == 1


def _refuse_nan(tracer: Tracer, keys: list[Any]) -> None:
    """Leave the call to Python if one of the keys is a NaN."""
    mode = tracer.mode
    for k in keys:
        if type(k) is Tensor and k.type.dtype.kind == "f":
            value = lift(mode, k)
            known = mode.builder.apply(REGISTRY["eq"], value, value)[0]
            mode.leave_to_python(known, "the order of NaNs in a sort that depends on data")


def _by_network(tracer: Tracer, items: list[Any], keys: list[Any], downwards: bool) -> list[Any]:
    pairs = [*zip(items, keys, strict=True)]
    same = items is keys
    for last in range(len(pairs) - 1, 0, -1):
        for k in range(last):
            (a, key_a), (b, key_b) = pairs[k], pairs[k + 1]
            swaps = tracer.binary("lt", key_a, key_b) if downwards else tracer.binary("lt", key_b, key_a)

            def pick(x: Any, y: Any, swaps: Any = swaps) -> Any:
                return tracer.choose(swaps, functools.partial(_same, x), functools.partial(_same, y))

            first, second = pick(b, a), pick(a, b)
            pairs[k] = first, first if same else pick(key_b, key_a)
            pairs[k + 1] = second, second if same else pick(key_a, key_b)
    return [item for item, _ in pairs]


def _by_numpy(items: list[Any], keys: list[Any], downwards: bool) -> list[Any]:
    table = NUMPY_TABLE[np.array](keys[::-1] if downwards else keys)
    order = NUMPY_TABLE[np.argsort](table, kind="stable")
    if downwards:
        order = (len(items) - 1 - order)[::-1]
    return [element(items, order[k]) for k in range(len(items))]


def _same(x: Any) -> Any:
    return x


def _are_alike(tracer: Tracer, items: Sequence[Any]) -> bool:
    """Whether they are numbers of one known type."""
    mode = tracer.mode
    same = _is_number(items[0]) and len({_kind(x) for x in items}) == 1
    return same and not (mode.kinds and any(tag_of(mode, x) is not None for x in items))


def _better(tracer: Tracer, relation: str, best: Any, x: Any) -> Any:
    """`x if x > best else best` (or `<`), as Python's max and min choose: one or the other, each of its own type."""
    if _are_alike(tracer, (x, best)):
        return BUILTIN_TABLE[builtins.max if relation == "gt" else builtins.min](best, x)
    mode = tracer.mode
    truth = tracer.regions.truth(tracer.binary(relation, x, best))
    if not isinstance(truth, Value):
        return x if truth else best
    found = either(mode, truth, x, best) if _is_number(x) and _is_number(best) else None
    if found is None:
        return tracer.choose(wrap(mode, truth), functools.partial(_same, x), functools.partial(_same, best))
    return note(mode, found, truth, (x, best))


def _picks(original: Callable[..., Any], relation: str) -> Callable[..., Any]:
    without_key = BUILTIN_TABLE[original]

    def pick(tracer: Tracer, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        if key is None and (len(args) == 1 or _are_alike(tracer, args)):
            best = without_key(*args, **kwargs)
            return best if any(best is x for x in args) else note(tracer.mode, best, None)  # one of them
        if key is None:
            return functools.reduce(functools.partial(_better, tracer, relation), args)
        items = [*tracer.iterable(args[0])] if len(args) == 1 else [*args]
        if not items:
            return original(items, key=key, **kwargs)
        best, best_key = items[0], tracer.call(key, items[0])
        for x in items[1:]:
            x_key = tracer.call(key, x)
            better = tracer.binary(relation, x_key, best_key)
            new, old = (x, x_key), (best, best_key)
            best, best_key = tracer.choose(better, functools.partial(_same, new), functools.partial(_same, old))
        return best

    return pick


def _decides(original: Callable[..., Any], decided: bool) -> Callable[..., Any]:
    """`any` or `all`: items are evaluated one after the other, and combined; one that Python refuses is refused where
    no earlier one decides.
    """
    listed = BUILTIN_TABLE[original]

    def decide(tracer: Tracer, iterable: Any, /) -> Any:
        if not hasattr(type(iterable), "__next__"):
            return listed(iterable)
        truths: list[Any] = []
        try:
            for item in iterable:
                truth = tracer.call(bool, item)
                if type(truth) is not Tensor and truth == decided:
                    return decided
                truths.append(truth)
        except Exception as error:
            if not is_the_users(error) or not any_traced(truths):
                raise
            refused = error
        else:
            return listed(truths)

        def refuse() -> Any:
            raise refused

        known = functools.partial(_same, decided)
        return tracer.choose(listed(truths), *((known, refuse) if decided else (refuse, known)))

    return decide


def _round(tracer: Tracer, number: Any, /, ndigits: Any = None) -> Any:
    if type(number) is Tensor and number.is_traced and number.type.is_python and ndigits is not None:
        made = python_type("py_float" if number.type.kind == "py_float" else "py_int")

        def result(*_: Any) -> TensorType:
            return made

        return host.call(tracer.mode, round, result, (number, ndigits), {}, numpy=True)
    return BUILTIN_TABLE[round](number, ndigits)


#: Stand-ins of this module, which take the tracer first.
BODIES: dict[Any, Callable[..., Any]] = {
    builtins.sorted: _sorted,
    builtins.max: _picks(builtins.max, "gt"),
    builtins.min: _picks(builtins.min, "lt"),
    builtins.any: _decides(builtins.any, decided=True),
    builtins.all: _decides(builtins.all, decided=False),
    builtins.round: _round,
}
