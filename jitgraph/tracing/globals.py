"""The globals that rewritten functions run with: reads are recorded, stores stay here until they are replayed."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any


class TraceGlobals(dict[str, Any]):
    """Stands for one module's dict during one trace.

    `LOAD_GLOBAL` comes to `__missing__` the first time a name is read; stores and later reads are the dict's own. The
    live dict is never written here: what differs at the end of the trace is replayed at each call.

    Attributes:
        live: the module's dict.
        loaded: what `read` answered for each name.
        is_user: the module is the user's; NumPy's own functions and ours are no place to show.
    """

    __slots__ = ("is_user", "live", "loaded", "read")

    def __init__(self, live: dict[str, Any], read: Callable[[dict[str, Any], str], Any]) -> None:
        super().__init__(__builtins__=live.get("__builtins__", builtins), __name__=live.get("__name__", ""))
        self.live = live
        self.is_user = live.get("__name__", "").partition(".")[0] not in ("numpy", "jitgraph")
        self.read = read
        self.loaded: dict[str, Any] = dict(self)

    def __missing__(self, name: str) -> Any:
        if name not in self.live:
            raise KeyError(name)
        value = self.read(self.live, name)
        self.loaded[name] = value
        dict.__setitem__(self, name, value)
        return value

    def preload(self, names: tuple[str, ...]) -> None:
        """Read names that class bodies look up behind our back."""
        for name in names:
            if name in self.live and name not in self:
                self[name]  # read for its effect

    def stores(self) -> dict[str, Any]:
        """Names bound or bound anew since they were read."""
        return {n: v for n, v in self.items() if n not in self.loaded or self.loaded[n] is not v}

    def deleted(self) -> list[str]:
        return [n for n in self.loaded if n not in self]
