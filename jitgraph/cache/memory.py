"""The cache of one jitted function: specialisations by key, least recently used out first, with counters."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from jitgraph.forking import open_in_child

T = TypeVar("T")
#: Misses of a function that are told of.
_MISSES = 64


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


class Miss(NamedTuple):
    """A call that needed a new specialisation, and why.

    Attributes:
        function: its name.
        signature: what the call's arguments are, as in `signatures`.
        nearest: the specialisation that was nearest to serving it; empty if there was none.
        reasons: what was in the way, each a sentence.
        source: where the machine code is from: "memory" (an equal graph of this process), "disk", "compiled"; "python"
            if there is none.
        not_on_disk: if it was compiled, what the nearest entry of the disk cache differs in.
        times_ms: of each stage, in the order in which they ran.
    """

    function: str
    signature: str
    nearest: str
    reasons: tuple[str, ...]
    source: str
    not_on_disk: str
    times_ms: dict[str, float]

    def __str__(self) -> str:
        lines = [f"{self.function}{self.signature}: {self.source}, {sum(self.times_ms.values()):.1f} ms"]
        if self.nearest:
            lines.append(f"  nearest: {self.nearest}")
        lines += [f"  {reason}" for reason in self.reasons]
        if self.not_on_disk:
            lines.append(f"  not on disk: {self.not_on_disk}")
        if self.times_ms:
            lines.append("  ms: " + ", ".join(f"{name} {ms:.1f}" for name, ms in self.times_ms.items()))
        return "\n".join(lines)


class Misses(tuple[Miss, ...]):
    """The last misses of a function, oldest first; prints as a report."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "no misses"

    __repr__ = __str__


class Specialisations(Generic[T]):
    """Lists of specialisations by key. Reads are lock-free; changes take the lock."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.RLock()
        open_in_child(self.lock)
        self._lists: OrderedDict[Hashable, tuple[T, ...]] = OrderedDict()
        #: Counts hits that did not come through here.
        self.other_hits: Callable[[], int] = int
        #: Called after `clear`.
        self.cleared: Callable[[], None] | None = None
        self.hits = self.misses = self.compiles = self.disk_hits = 0
        #: Tell of the last misses, for people; what they look up on disk is looked up when asked.
        self.last: deque[Callable[[], Miss]] = deque(maxlen=_MISSES)

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

    def replace(self, key: Hashable, item: T) -> None:
        """Have `item` alone serve the calls of `key`."""
        with self.lock:
            self._lists[key] = (item,)
            if self.cleared is not None:  # native code finds what it serves by itself
                self.cleared()

    def clear(self) -> None:
        with self.lock:
            self._lists.clear()
            if self.cleared is not None:
                self.cleared()

    def __len__(self) -> int:
        return len(self._lists)

    def all(self) -> list[tuple[Any, T]]:
        """Each specialisation under its key."""
        with self.lock:
            return [(key, item) for key, items in self._lists.items() for item in items]

    def info(self) -> CacheInfo:
        entries = sum(len(items) for items in list(self._lists.values()))
        return CacheInfo(self.hits + self.other_hits(), self.misses, self.compiles, self.disk_hits, entries)
