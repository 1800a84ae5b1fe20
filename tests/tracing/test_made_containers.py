"""Containers of classes of their own that a function makes and returns, and objects that hold traced values."""

from __future__ import annotations

import collections
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


class Rows(list):
    pass


class Named(dict):
    pass


class Pair(tuple):  # noqa: SLOT001
    pass


class Lately(collections.deque):
    pass


class Ordered(collections.OrderedDict):
    pass


class Filling(collections.defaultdict):
    pass


class Numbers(set):
    pass


def _with_attributes(x: Any, k: int) -> Any:
    made = Rows([x])
    made.total = x.sum()  # type: ignore[attr-defined]
    made.append(k)
    return made


MADE: dict[str, Callable[[Any, int], Any]] = {
    "list": lambda x, k: Rows([x, k, x + 1]),
    "dict": lambda x, k: Named(a=x * 2, b=k),
    "tuple": lambda x, k: Pair((x, k)),
    "deque": lambda x, k: Lately([x, k, x * 2], 2),
    "ordered": lambda x, k: Ordered(b=x, a=x + k),
    "default": lambda x, k: Filling(list, {"a": x * 2}),
    "counter": lambda x, k: collections.Counter({"a": k, "b": k + 1}),
    "set": lambda x, k: Numbers([2, 3]),
    "nested": lambda x, k: (Rows([Named(a=Rows([x * 2]))]), k),
    "attributes": _with_attributes,
}
#: What no call can make anew.
LEFT: dict[str, Callable[[Any, int], Any]] = {
    "values": lambda x, k: {"a": x * 2}.values(),
    "iterator": lambda x, k: iter([x * 2]),
    "chain": lambda x, k: collections.ChainMap({"a": x * 2}, {"b": k}),
    "partial": lambda x, k: functools.partial(np.add, x * 2),
    "proxy": lambda x, k: types.MappingProxyType({"a": x * 2}),
    "user dict": lambda x, k: collections.UserDict(a=x * 2),
}


def _shown(x: Any) -> Any:
    """Everything that can be seen of a result."""
    inner: Any = repr(x) if isinstance(x, np.ndarray | np.generic | int | str) else None
    if isinstance(x, functools.partial):
        inner = _shown(x.args)
    elif isinstance(x, collections.abc.Mapping):
        inner = {k: _shown(v) for k, v in x.items()}
    elif inner is None:
        inner = [_shown(v) for v in x]
    own = vars(x) if isinstance(x, Rows) else {}
    more = {name: getattr(x, name, None) for name in ("maxlen", "default_factory")}
    return type(x), inner, {k: _shown(v) for k, v in own.items()}, more


def _assert_same(f: Callable[[Any, int], Any]) -> None:
    jitted = jg.jit(f)
    for size, k in ((2, 1), (3, 2), (3, 3)):
        x = np.arange(float(size))
        assert _shown(jitted(x, k)) == _shown(f(x, k))


@pytest.mark.parametrize("name", MADE)
def test_containers_of_classes_of_their_own(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _assert_same(MADE[name])


@pytest.mark.parametrize("name", LEFT)
def test_what_holds_traced_values_runs_in_python(name: str) -> None:
    with pytest.warns(UserWarning, match="holds what only the run knows"):
        _assert_same(LEFT[name])


def test_stores_of_them_are_repeated() -> None:
    def f(x: Any, k: int, found: Any) -> Any:
        found["a"] = Named(a=x * 2)
        found["l"] = Rows([k])
        return found["a"]["a"] + 1

    jitted = jg.jit(f)
    for k in (1, 2):
        mine: dict[str, Any] = {}
        its: dict[str, Any] = {}
        np.testing.assert_array_equal(jitted(np.arange(2.0), k, mine), f(np.arange(2.0), k, its))
        assert _shown(mine) == _shown(its)
