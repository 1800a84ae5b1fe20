"""Containers in fuzzed programs: what names reach through lists, tuples, dicts and objects, and how it is put back."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

#: Containers deeper than this are not drawn, nor more of their items.
_DEPTH, _ITEMS = 3, 12


def parts(x: Any) -> list[Any] | None:
    """The items of a container, None of anything else."""
    if isinstance(x, list | tuple):
        return list(x)
    if isinstance(x, dict):
        return list(x.values())
    return list(vars(x).values()) if _is_object(x) else None


def _is_object(x: Any) -> bool:
    return hasattr(x, "step") and hasattr(x, "__dict__")


def _inner(path: str, x: Any) -> Iterator[tuple[str, Any]]:
    """The items of a container with the text that names each."""
    if hasattr(x, "_fields"):
        yield from ((f"{path}.{name}", getattr(x, name)) for name in x._fields)
    elif isinstance(x, list | tuple):
        yield from ((f"{path}[{k}]", item) for k, item in enumerate(x[:4]))
    elif isinstance(x, dict):
        yield from ((f"{path}[{key!r}]", item) for key, item in x.items())
    elif _is_object(x):
        yield from ((f"{path}.{name}", item) for name, item in vars(x).items())


def _places(env: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Every path through the containers of the names: text, what is there, and the container it is in (None: a name)."""
    for name, x in env.items():
        yield name, x, None
        for path, item in _inner(name, x):
            yield path, item, x
            yield from ((below, leaf, item) for below, leaf in _inner(path, item))


def array_paths(env: dict[str, Any]) -> list[str]:
    """Arrays that lie in containers."""
    return [path for path, x, held in _places(env) if held is not None and isinstance(x, np.ndarray)]


def container_paths(env: dict[str, Any]) -> list[str]:
    """Containers, by name or within others."""
    return [path for path, x, _ in _places(env) if path[0] != "_" and parts(x) is not None]


def slots(env: dict[str, Any]) -> list[str]:
    """Places in containers that can be assigned to."""
    return [path for path, _, held in _places(env) if held is not None and not isinstance(held, tuple)]


class Reached:
    """All that names reach, as it is now.

    Attributes:
        names: what each is bound to.
    """

    def __init__(self, env: dict[str, Any]) -> None:
        self.names = dict(env)
        self._arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self._contents: list[tuple[Any, Any]] = []
        self._seen: set[int] = set()
        for x in env.values():
            self._note(x)

    def _note(self, x: Any) -> None:
        if id(x) in self._seen:
            return
        self._seen.add(id(x))
        if isinstance(x, np.ndarray):
            if x.flags.writeable:
                self._arrays.append((x, x.copy()))
            return
        inner = parts(x)
        if inner is not None:
            if not isinstance(x, tuple):
                self._contents.append((x, dict(vars(x)) if _is_object(x) else copy.copy(x)))
            for item in inner:
                self._note(item)

    def restore(self, env: dict[str, Any]) -> None:
        """Put everything back."""
        for x, content in self._contents:
            if isinstance(x, list):
                x[:] = content
            else:
                held = x if isinstance(x, dict) else vars(x)
                held.clear()
                held.update(content)
        for x, content in self._arrays:
            x[...] = content
        env.clear()
        env.update(self.names)


def copied(env: dict[str, Any]) -> dict[str, Any]:
    """Names of copies of all that is reached, which can be written where the originals can."""
    memo: dict[int, Any] = {}
    made = copy.deepcopy(env, memo)
    for x in _arrays(env.values()):
        memo[id(x)].flags.writeable = x.flags.writeable
    return made


def is_bounded(x: Any) -> bool:
    """Whether a name that is bound to it may not grow in a loop."""
    return isinstance(x, np.ndarray) or parts(x) is not None


def is_deep(values: Iterable[Any]) -> bool:
    """Whether some value is a container of too many levels or items."""
    return any(_is_deep(x, _DEPTH) for x in values)


def _is_deep(x: Any, levels: int) -> bool:
    inner = parts(x)
    if inner is None:
        return False
    return levels == 0 or len(inner) > _ITEMS or any(_is_deep(i, levels - 1) for i in inner)


def _arrays(values: Iterable[Any]) -> Iterator[np.ndarray]:
    for x in values:
        if isinstance(x, np.ndarray):
            yield x
        else:
            yield from _arrays(parts(x) or ())
