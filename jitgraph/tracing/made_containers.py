"""Containers of classes of their own that a function made: how they leave the trace; and who holds traced values."""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, ModuleType
from typing import Any, Final

import numpy as np

from jitgraph import pytree
from jitgraph.records import dataclass
from jitgraph.tensor import Tensor
from jitgraph.tracing.leaves import is_opaque_module

_BASES: Final[tuple[Any, ...]] = (OrderedDict, defaultdict, dict, list, set, deque, tuple)
#: How many objects are looked at within one that is returned as it is.
_MOST: Final = 10_000
#: What nobody looks into: nothing is inside, or all of the program.
_APART: Final = (
    type,
    ModuleType,
    FunctionType,
    GeneratorType,
    CoroutineType,
    AsyncGeneratorType,
    str,
    bytes,
    int,
    float,
)


@dataclass(slots=True, eq=False)
class Filled:
    """A container of a user's class on its way out of the trace: its items, then its attributes."""

    meta: tuple[Any, ...]
    values: list[Any]
    is_deep = True


def filled(x: Any, attributes: dict[str, Any]) -> Filled | None:
    """What a call has to make where the trace made `x`; None if it is no such container, or a node as it is."""
    kind = type(x)
    base = next((b for b in _BASES if issubclass(kind, b)), None)
    if base is None or kind is base or pytree.children(x) is not None:
        return None
    if is_opaque_module(kind.__module__) and kind.__module__ != "collections":
        return None
    maps = issubclass(base, dict)
    keys = tuple(base.keys(x)) if maps else None
    items = [base.__getitem__(x, k) for k in keys or ()] if maps else list(base.__iter__(x))
    option = x.default_factory if base is defaultdict else x.maxlen if base is deque else None
    meta = (kind, base, option, keys, len(items), tuple(attributes))
    return Filled(meta, [*items, *attributes.values()])


def _assemble(meta: Any, values: Sequence[Any]) -> Any:
    kind, base, option, keys, count, names = meta
    items = values[:count]
    made = base.__new__(kind, items) if base is tuple else base.__new__(kind)
    if base is deque:
        base.__init__(made, items, option)
    elif keys is not None:
        if base is defaultdict:
            made.default_factory = option
        for key, item in zip(keys, items, strict=True):
            base.__setitem__(made, key, item)
    elif base is not tuple:
        base.__init__(made, items)
    for name, item in zip(names, values[count:], strict=True):
        object.__setattr__(made, name, item)
    return made


pytree.register(Filled, lambda f: (f.values, f.meta), _assemble)


def holds_traced(x: Any) -> bool:
    """Whether there is a traced value anywhere inside of an object that a call would return as it is."""
    if isinstance(x, _APART):
        return False
    waiting, seen = [x], {id(x)}
    while waiting and len(seen) < _MOST:
        at = waiting.pop()
        if isinstance(at, np.ndarray):
            inner = at.ravel().tolist() if at.dtype.hasobject else []
        else:
            inner = gc.get_referents(at)
        for i in inner:
            if type(i) is Tensor:
                if i.is_traced:
                    return True
            elif id(i) not in seen and not isinstance(i, _APART):
                seen.add(id(i))
                waiting.append(i)
    return False
