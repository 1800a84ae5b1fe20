"""Comparisons of tuples and lists with traced items, and of dataclasses, whose methods Python makes without source."""

from __future__ import annotations

import dataclasses
import operator
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from jitgraph.tracing.iteration import any_traced

if TYPE_CHECKING:
    from jitgraph.tracing.operators import Operators
    from jitgraph.tracing.standins import Tracer

_SEQUENCES: Final = frozenset((list, tuple))
_COMPARED: Final = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_METHODS: Final = {f"__{name}__": name for name in _COMPARED if name != "ne"}
#: Most items that are compared by branches, one in the other.
_MOST = 16


def sequences(tracer: Operators, name: str, a: Any, b: Any) -> Any:
    """`a < b` and its kin for two tuples or two lists of which one has a traced item; else NotImplemented."""
    if type(a) is not type(b) or type(a) not in _SEQUENCES or name not in _COMPARED:
        return NotImplemented
    if min(len(a), len(b)) > _MOST or not (any_traced(a) or any_traced(b)):
        return NotImplemented
    if name in ("eq", "ne") and len(a) != len(b):
        return name == "ne"
    return _from(tracer, name, a, b, 0)


def _from(tracer: Operators, name: str, a: Any, b: Any, k: int) -> Any:
    """The comparison from item `k` on: the first items that are not equal decide."""
    while k < min(len(a), len(b)) and a[k] is b[k]:  # Python does not compare an object with itself
        k += 1
    if k == min(len(a), len(b)):
        return _COMPARED[name](len(a), len(b))
    same = tracer.binary("eq", a[k], b[k])
    if name in ("eq", "ne"):
        return tracer.choose(same, lambda: _from(tracer, name, a, b, k + 1), lambda: name == "ne")
    return tracer.choose(same, lambda: _from(tracer, name, a, b, k + 1), lambda: tracer.binary(name, a[k], b[k]))


def dataclass_method(tracer: Tracer, f: FunctionType, args: Any) -> Any:
    """A call of a comparison that `dataclass` has made; NotImplemented also if `f` is something else."""
    name = _METHODS.get(f.__name__)
    if name is None or len(args) != 2 or f.__code__.co_filename != "<string>":
        return NotImplemented
    a, b = args
    owner = next((c for c in type(a).__mro__ if c.__dict__.get(f.__name__) is f), None)
    if type(a) is not type(b) or "__dataclass_fields__" not in vars(owner or object):
        return NotImplemented
    names = [x.name for x in dataclasses.fields(owner) if x.compare]  # type: ignore[arg-type]
    if name == "eq" and sys.version_info >= (3, 13):  # `self.a == other.a and ...`
        return a is b or not names or _all_equal(tracer, a, b, names)
    first, second = (tuple([tracer.attr(x, n) for n in names]) for x in (a, b))
    return tracer.binary(name, first, second)


def _all_equal(tracer: Tracer, a: Any, b: Any, names: list[str]) -> Any:
    found = tracer.binary("eq", tracer.attr(a, names[0]), tracer.attr(b, names[0]))
    return tracer.and_(found, lambda: _all_equal(tracer, a, b, names[1:])) if names[1:] else found
