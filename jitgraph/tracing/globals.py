"""The globals that rewritten functions run with: reads are recorded, stores stay here until they are replayed."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from jitgraph.tracing.outside import Outside


class TraceGlobals(dict[str, Any]):
    """Stands for one module's dict during one trace.

    `LOAD_GLOBAL` comes to `__missing__` the first time a name is read; stores and later reads are the dict's own. The
    live dict is never written here: what differs at the end of the trace is replayed at each call.

    Attributes:
        live: the module's dict.
        loaded: what `read` answered for each name.
        missing: told of names that are not there.
        outside: makes a guard of what the function finds out about the dict itself.
        is_user: the module is the user's; NumPy's own functions and ours are no place to show.
    """

    __slots__ = ("is_user", "live", "loaded", "missing", "outside", "read")

    def __init__(
        self,
        live: dict[str, Any],
        read: Callable[[dict[str, Any], str], Any],
        missing: Callable[[dict[str, Any], str], None],
        outside: Outside,
    ) -> None:
        own = {"__builtins__": live.get("__builtins__", builtins), "__name__": live.get("__name__", "")}
        super().__init__(own)
        self.live = live
        self.is_user = live.get("__name__", "").partition(".")[0] not in ("numpy", "jitgraph")
        self.read = read
        self.missing = missing
        self.outside = outside
        self.loaded: dict[str, Any] = own

    def __missing__(self, name: str) -> Any:
        if name not in self.live:
            self.missing(self.live, name)
            raise KeyError(name)
        value = self.read(self.live, name)
        self.loaded[name] = value
        dict.__setitem__(self, name, value)
        return value

    def __contains__(self, name: object) -> bool:
        """What `name in globals()` says: names that nobody has read yet are there, too."""
        if dict.__contains__(self, name):
            return True
        if not isinstance(name, str) or name in self.loaded:  # deleted
            return False
        if name not in self.live:
            self.outside.guard_no_global(self.live, name)
            return False
        self[name]  # read for its effect
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """What `globals().get(name)` says."""
        return self[name] if name in self else default

    def preload(self, names: tuple[str, ...]) -> None:
        """Read names that class bodies look up behind our back."""
        for name in names:
            if name in self.live and name not in self:
                self[name]  # read for its effect

    def stores(self) -> dict[str, Any]:
        """Names bound or bound anew since they were read."""
        return {n: v for n, v in dict.items(self) if n not in self.loaded or self.loaded[n] is not v}

    def deleted(self) -> list[str]:
        return [n for n in self.loaded if not dict.__contains__(self, n)]

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()

    def keys(self) -> Any:
        self._refuse()

    def values(self) -> Any:
        self._refuse()

    def items(self) -> Any:
        self._refuse()

    def copy(self) -> Any:
        self._refuse()

    def _refuse(self) -> NoReturn:
        """Refuse to go through all of a module's names, each of which would be read.

        Raises:
            TraceError: always.
        """
        self.outside.mode.fail(
            "which names a module has is known only when the compiled code runs",
            "name the global: `globals()[name]`, `globals().get(name)` and `name in globals()` are compiled.",
        )
