"""The globals that rewritten functions run with: reads are recorded, stores stay here until they are replayed."""

from __future__ import annotations

import builtins
from collections.abc import Callable
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

    def first(self, name: str, known: int) -> tuple[Any] | None:
        """What a name stands for that nobody had read, nor stored, when `known` names had been read.

        None: there is no such name, or it had been deleted.
        """
        if name not in self.loaded:
            if name not in self.live:
                self.outside.guard_no_global(self.live, name)
                return None
            self.loaded[name] = value = self.read(self.live, name)
            self.setdefault(name, value)
        elif name in list(self.loaded)[:known]:
            return None
        return (self.loaded[name],)

    def has(self, name: Any) -> bool:
        """What `name in globals()` says: names that nobody has read yet are there, too."""
        if name in self:
            return True
        if type(name) is not str or name in self.loaded:  # deleted
            return False
        if name not in self.live:
            self.outside.guard_no_global(self.live, name)
            return False
        self[name]  # read for its effect
        return True

    def method(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """What `globals().name(...)` says.

        Raises:
            TraceError: it walks through all names, each of which would be read.
        """
        if name in ("get", "pop", "setdefault", "__getitem__", "__contains__") and args:
            self.has(args[0])
        elif name not in ("update", "__setitem__", "__delitem__"):
            self.refuse()
        return getattr(self, name)(*args, **kwargs)

    def refuse(self) -> NoReturn:
        """Somebody wants to go through all names.

        Raises:
            TraceError: always.
        """
        self.outside.mode.fail(
            "which names a module has is known only when the compiled code runs",
            "name the global: `globals()[name]`, `globals().get(name)` and `name in globals()` are compiled.",
        )

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
