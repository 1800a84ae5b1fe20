"""Objects from outside in the hands of code that is not traced: builtins, the standard library, iteration.

What such code reads of an object would be frozen. So methods that the user's class has are called through the tracer;
other code gets a clone whose attributes are lifted; and where an object itself is looked at (as a key), each call must
pass the same one.
"""

from __future__ import annotations

import functools
import operator
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any, Final

from jitgraph.tensor import Tensor
from jitgraph.tracing import effects, kinds, options
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.hidden import member_of
from jitgraph.tracing.iteration import any_traced
from jitgraph.tracing.leaves import is_opaque_module, is_plain_class
from jitgraph.tracing.poison import OneOf

#: Builtins and the methods of a class that they call, in order.
_DUNDERS: Final[dict[Any, tuple[str, ...]]] = {
    repr: ("__repr__",), str: ("__str__", "__repr__"), format: ("__format__",), hash: ("__hash__",), abs: ("__abs__",),
    int: ("__int__", "__index__"), float: ("__float__",), complex: ("__complex__",), bool: ("__bool__", "__len__"),
    round: ("__round__",), divmod: ("__divmod__",), iter: ("__iter__",), next: ("__next__",),
    reversed: ("__reversed__",), len: ("__len__",), operator.index: ("__index__",),
}  # fmt: skip
BY_ID: Final = {id(f): names for f, names in _DUNDERS.items()}
#: Functions that look at the class alone, or only pass the object on.
_SAFE: Final = frozenset((
    isinstance, issubclass, type, callable, id, list.append, list.insert, list.extend, deque.append, functools.partial,
))  # fmt: skip
#: Functions that walk through their arguments.
ITERATING: Final = frozenset(map(id, (
    sum, max, min, any, all, sorted, enumerate, zip, map, filter, list, tuple, set, frozenset, dict, functools.reduce,
)))  # fmt: skip
_SAFE_METHODS: Final = frozenset(("append", "insert", "extend", "appendleft", "setdefault", "values", "items"))
_KEYED: Final = (dict, set, frozenset)
_CLONED_ALSO: Final = (UserDict, UserList)


def _is_users(kind: type) -> bool:
    return kind.__flags__ & (1 << 9) != 0 and not is_opaque_module(kind.__module__)


def dunder(tracer: Any, f: Any, args: Any, kwargs: Any) -> Any:
    """A builtin on an object of a user's class, by that class's method; NotImplemented if it is something else."""
    kind = type(args[0])
    if kind is TraceGlobals:
        args[0].refuse()
    if kind is Tensor or not _is_users(kind):
        return NotImplemented
    for name in BY_ID[id(f)]:
        method = tracer.member(kind, name)
        if isinstance(method, FunctionType):
            result = tracer.call(method, *args, **kwargs)
            return len_truth(result) if f is bool and name == "__len__" else result
    return NotImplemented


def len_truth(n: Any) -> Any:
    return n != 0


def truth(tracer: Any, x: Any) -> Any:
    """What decides a test on `x`."""
    kind = type(x)
    if kind is OneOf:
        return options.choose(tracer, x, lambda option: tracer.call(bool, truth(tracer, option)))
    if kind is Tensor or not _is_users(kind):
        return x
    result = dunder(tracer, bool, (x,), {})
    return x if result is NotImplemented else result


def iterable(tracer: Any, x: Any) -> Any:
    """What is iterated over in place of `x`."""
    kind = type(x)
    if kind is TraceGlobals:
        x.refuse()
    if kind is Tensor or not _is_users(kind):
        return x
    method = tracer.member(kind, "__iter__")
    if isinstance(method, FunctionType):
        return _steps(tracer, tracer.call(method, x))
    if method is None and isinstance(tracer.member(kind, "__getitem__"), FunctionType):
        return _items(tracer, x)
    return x


def _steps(tracer: Any, iterator: Any) -> Any:
    step = tracer.member(type(iterator), "__next__") if _is_users(type(iterator)) else None
    return _taken(tracer, step, iterator) if isinstance(step, FunctionType) else iterator


def _taken(tracer: Any, step: Any, iterator: Any) -> Iterator[Any]:
    while True:
        try:
            x = tracer.call(step, iterator)
        except StopIteration:
            return
        yield x


def _items(tracer: Any, x: Any) -> Iterator[Any]:
    k = 0
    while True:
        try:
            item = tracer.item(x, k)
        except IndexError:
            return
        yield item
        k += 1


def contains(tracer: Any, x: Any, container: Any) -> Any:
    """`x in container`."""
    kind = type(container)
    if tracer.mode.kinds and kinds.tag_of(tracer.mode, container):
        return tracer.told(lambda c: contains(tracer, x, c), container)
    if kind is Tensor and container.is_traced:
        if container.type.kind != "array":
            raise TypeError(f"argument of type {container.__class__.__name__!r} is not iterable")
        return tracer.call(bool, tracer.method(tracer.binary("eq", container, x), "any"))
    if _is_users(kind) and kind is not Tensor:
        method = tracer.member(kind, "__contains__")
        if isinstance(method, FunctionType):
            return tracer.call(bool, tracer.call(method, container, x))  # Python's `in` is a bool
        walked = iterable(tracer, container)
        if walked is not container:
            return _is_among(tracer, walked, x)
    if kind is TraceGlobals:
        return container.has(x)
    if isinstance(container, _KEYED):
        tracer.outside.pin(x)
    elif kind in (list, tuple) and (_is_users(type(x)) or any_traced((x, container))):
        return _is_among(tracer, container, x)
    return x in container


def _is_among(tracer: Any, items: Any, x: Any) -> Any:
    found: Any = False
    for item in items:
        found = tracer.or_(found, functools.partial(_same, tracer, item, x))
    return tracer.call(bool, found)


def _same(tracer: Any, a: Any, b: Any) -> Any:
    return True if a is b else tracer.binary("eq", a, b)


def entrusted(tracer: Any, f: Any, args: Any, kwargs: Any) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """A function that is not traced, and its arguments as it may see them."""
    owner = getattr(f, "__self__", None)
    outside = tracer.outside
    if not outside.objects or (_is_hashable(f) and f in _SAFE):
        return f, list(args), kwargs
    if isinstance(owner, _KEYED):
        for x in args:
            outside.pin(x)
        return f, list(args), kwargs
    if isinstance(owner, list | deque | tuple) and f.__name__ in _SAFE_METHODS:
        return f, list(args), kwargs
    if type(owner) is list and any(_is_compared(tracer, x) for x in owner):
        owner[:] = [_seen(tracer, x) for x in owner]
    if type(f) is MethodType or owner is not None:
        seen = _seen(tracer, owner)
        if seen is not owner:
            f = getattr(seen, f.__name__)
    return f, [_seen(tracer, x) for x in args], {k: _seen(tracer, x) for k, x in kwargs.items()}


def _seen(tracer: Any, x: Any) -> Any:
    kind = type(x)
    if isinstance(x, functools.partial) or effects.is_stateful(x):
        return x
    if is_plain_class(kind) or kind in _CLONED_ALSO:
        return tracer.outside.clone_of(x)
    if kind in (list, tuple) and any(_is_compared(tracer, i) for i in x):
        return kind([_seen(tracer, i) for i in x])
    return x


def _is_compared(tracer: Any, x: Any) -> bool:
    """Whether it is an object from outside whose class says how it is compared."""
    kind = type(x)
    if not tracer.outside.knows(x) or not is_plain_class(kind):
        return False
    return any(isinstance(member_of(kind, f"__{n}__"), FunctionType) for n in ("lt", "gt", "le", "ge", "eq", "add"))


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True
