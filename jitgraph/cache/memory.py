"""The cache of one jitted function: specialisations by key, least recently used out first, with counters."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class CacheInfo(NamedTuple):
    """Counters of a jitted function.

    Attributes:
        hits: calls served by an existing specialisation.
        misses: calls that needed a new one.
        compiles: machine code made (an equal graph compiled before in this process is used again).
        disk_hits: machine code loaded from the disk cache instead.
        entries: specialisations held now.
    """

    hits: int
    misses: int
    compiles: int
    disk_hits: int
    entries: int


class Specialisations(Generic[T]):
    """Lists of specialisations by key. Reads are lock-free; changes take the lock."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.RLock()
        self._lists: OrderedDict[Hashable, tuple[T, ...]] = OrderedDict()
        self.hits = self.misses = self.compiles = self.disk_hits = 0

    def get(self, key: Hashable) -> tuple[T, ...]:
        """The specialisations of `key`, in the order to try them."""
        return self._lists.get(key, ())

    def add(self, key: Hashable, item: T) -> None:
        """Put `item` first in the list of `key`; the key used longest ago goes if there are too many."""
        with self.lock:
            self._lists[key] = (item, *self._lists.get(key, ()))[: self.limit]
            self._lists.move_to_end(key)
            while len(self._lists) > self.limit:
                self._lists.popitem(last=False)

    def clear(self) -> None:
        with self.lock:
            self._lists.clear()

    def all(self) -> list[tuple[Hashable, T]]:
        with self.lock:
            return [(key, item) for key, items in self._lists.items() for item in items]

    def info(self) -> CacheInfo:
        entries = sum(len(items) for items in list(self._lists.values()))
        return CacheInfo(self.hits, self.misses, self.compiles, self.disk_hits, entries)
