"""What functions without source see of the world outside: proxies that read attributes through the tracer."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, WrapperDescriptorType
from typing import Any, Final

from jitgraph.tensor import Tensor
from jitgraph.tracing.leaves import is_opaque_function, is_opaque_module, is_plain_class

_get = object.__getattribute__
#: Opaque modules with functions that answer anew, or do something, at each call.
_WITH_EFFECTS: Final = frozenset(("logging", "numpy", "numpy.random", "random", "time", "warnings"))


class Proxy:
    """Stands for an object, a function or a module of the user's: whatever is read of it is read through the tracer."""

    __slots__ = ("_owner", "_tracer")

    def __init__(self, tracer: Any, owner: Any) -> None:
        object.__setattr__(self, "_tracer", tracer)
        object.__setattr__(self, "_owner", owner)

    def __getattribute__(self, name: str) -> Any:
        tracer, owner = _get(self, "_tracer"), _get(self, "_owner")
        return type(owner) if name == "__class__" else proxied(tracer, tracer.attr(owner, name))

    def __setattr__(self, name: str, value: Any) -> None:
        _get(self, "_tracer").set_attr(unwrapped(value), _get(self, "_owner"), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tracer = _get(self, "_tracer")
        given = [unwrapped(x) for x in args]
        named = {k: unwrapped(x) for k, x in kwargs.items()}
        return proxied(tracer, tracer.call(_get(self, "_owner"), *given, **named))

    def __getitem__(self, key: Any) -> Any:
        tracer = _get(self, "_tracer")
        return proxied(tracer, tracer.item(_get(self, "_owner"), unwrapped(key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        _get(self, "_tracer").set_item(unwrapped(value), _get(self, "_owner"), unwrapped(key))

    def __iter__(self) -> Iterator[Any]:
        return iter(_get(self, "_tracer").method(_get(self, "_owner"), "__iter__"))

    def __len__(self) -> int:
        return int(_get(self, "_tracer").method(_get(self, "_owner"), "__len__"))

    def __eq__(self, other: object) -> bool:
        return bool(_get(self, "_tracer").binary("eq", _get(self, "_owner"), unwrapped(other)))

    def __hash__(self) -> int:
        owner = _get(self, "_owner")
        _get(self, "_tracer").outside.pin(owner)
        return hash(owner)


def _operator(name: str, *, mirrored: bool) -> Any:
    def operate(self: Proxy, other: Any) -> Any:
        tracer, owner = _get(self, "_tracer"), _get(self, "_owner")
        values = (unwrapped(other), owner) if mirrored else (owner, unwrapped(other))
        return proxied(tracer, tracer.binary(name, *values))

    return operate


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
):
    setattr(Proxy, f"__{_name.rstrip('_')}__", _operator(_name, mirrored=False))
    setattr(Proxy, f"__r{_name.rstrip('_')}__", _operator(_name, mirrored=True))


def proxied(tracer: Any, x: Any) -> Any:
    """A value as a function without source may see it."""
    kind = type(x)
    if kind is Tensor or isinstance(x, type):
        return x
    if kind is FunctionType:
        return x if is_opaque_function(x) else Proxy(tracer, x)
    if kind is ModuleType:
        return x if is_opaque_module(x.__name__) and x.__name__ not in _WITH_EFFECTS else Proxy(tracer, x)
    if kind in (MethodType, BuiltinFunctionType) or is_plain_class(kind):  # `random.random`, `time.time` answer anew
        return Proxy(tracer, x)
    return Proxy(tracer, x) if kind is WrapperDescriptorType else x


def proxied_cell(tracer: Any, x: Any) -> Any:
    """What a cell of a function without source holds: a frozen dataclass stores its fields by `object.__setattr__`."""
    return Proxy(tracer, x) if x is object else proxied(tracer, x)


def bare(x: Any) -> Any:
    """A result without proxies, also in containers, which stay the objects that they are where they can."""
    kind = type(x)
    if kind is tuple:
        items = [bare(i) for i in x]
        return x if all(map(operator.is_, items, x)) else tuple(items)
    if kind is list or kind is dict:
        for key, value in list(enumerate(x) if kind is list else x.items()):
            found = bare(value)
            if found is not value:
                x[key] = found
        return x
    return unwrapped(x)


def unwrapped(x: Any) -> Any:
    """The object itself behind a proxy."""
    return _get(x, "_owner") if type(x) is Proxy else x
