"""Every setting of jitgraph: one record each, with type, default, environment variable and meaning.

`config.dump` reads a setting, `config.update(dump="fuse,llvm")` changes some for the process, `with
config.override(...)` for a block. The environment is read once, at import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from jitgraph.records import dataclass


def _switch(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "no", "off", "false")


def _at_least(least: int) -> Callable[[int], bool]:
    return lambda n: n >= least


def _is_log(text: str) -> bool:
    return {word.strip() for word in text.split(",")} <= {"miss", "compile", ""}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    env: str
    default: Any
    parse: Callable[[str], Any]
    doc: str

    def allows(self, value: Any) -> bool:
        """Whether a value of its type is one that it can have."""
        return self.name not in _ALLOWED or _ALLOWED[self.name](value)


SETTINGS: tuple[Setting, ...] = (
    Setting("blas_on_pool", "JITGRAPH_BLAS_ON_POOL", True, _switch, "NumPy's OpenBLAS runs on the threads of kernels."),
    Setting("cache", "JITGRAPH_CACHE", True, _switch, "Use the disk cache."),
    Setting("cache_dir", "JITGRAPH_CACHE_DIR", "", str, "Folder of the disk cache; empty: the user's cache folder."),
    Setting("cache_bytes", "JITGRAPH_CACHE_BYTES", 256 << 20, int, "Size cap of the disk cache, bytes."),
    Setting("entries", "JITGRAPH_ENTRIES", 128, int, "Specialisations kept per function (least recently used go)."),
    Setting("check", "JITGRAPH_CHECK", False, _switch, "Run NumPy beside every compiled call and compare."),
    Setting("cpu", "JITGRAPH_CPU", "", str, "CPU to compile for, as LLVM names it; empty: the host."),
    Setting("disable_jit", "JITGRAPH_DISABLE_JIT", False, _switch, "Jitted functions run as plain Python."),
    Setting("dispatch", "JITGRAPH_DISPATCH", "native", str, "What serves calls: native, python or both."),
    Setting("dump", "JITGRAPH_DUMP", "", str, "Stages to dump, by comma: pass names, trace, loops, llvm, asm, all."),
    Setting("dump_dir", "JITGRAPH_DUMP_DIR", "", str, "Folder for dumps; empty: standard error."),
    Setting("log", "JITGRAPH_LOG", "", str, "Events to log to standard error, comma-separated: miss, compile."),
    Setting("num_threads", "JITGRAPH_NUM_THREADS", 0, int, "Threads of large kernels; 0: the usable cores."),
    Setting("opaque_modules", "JITGRAPH_OPAQUE_MODULES", "", str, "Modules whose functions are traced as they are."),
    Setting("poison", "JITGRAPH_POISON", False, _switch, "Fill fresh memory with ones (NaNs), to find what reads it."),
    Setting("pool", "JITGRAPH_POOL", True, _switch, "Large results lie in a pool that takes their memory back."),
    Setting("pool_bytes", "JITGRAPH_POOL_BYTES", -1, int, "Most bytes the pool keeps; -1: an 8th of memory, 1 GiB."),
    Setting("unroll_limit", "JITGRAPH_UNROLL_LIMIT", 8, int, "Longest `range` that is unrolled; others become loops."),
    Setting("verify", "JITGRAPH_VERIFY", False, _switch, "Run the verifier after every pass."),
)  # fmt: skip

#: Which values of its type a setting can have; all of them where nothing is said.
_ALLOWED: Final[Mapping[str, Callable[[Any], bool]]] = {
    "cache_bytes": _at_least(0),
    "dispatch": ("native", "python", "both").__contains__,
    "entries": _at_least(1),
    "log": _is_log,
    "num_threads": _at_least(0),
    "pool_bytes": _at_least(-1),
    "unroll_limit": _at_least(0),
}


class Config:
    """The settings' current values, as attributes."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._values: dict[str, Any] = {}
        self._watchers: list[Callable[[], None]] = []
        for s in SETTINGS:
            text = env.get(s.env)
            try:
                value = s.default if text is None else s.parse(text)
            except ValueError as e:
                raise ValueError(f"{s.env}={text!r} is no {type(s.default).__name__}: {s.doc}") from e
            if not s.allows(value):
                raise ValueError(f"{s.env}={text!r} is not allowed: {s.doc}")
            self._values[s.name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"no setting {name!r}; there are {', '.join(s.name for s in SETTINGS)}") from None

    def update(self, **values: Any) -> None:
        """Change settings for the process.

        Raises:
            AttributeError: no such setting.
            TypeError: a value of another type than the default's.
            ValueError: a value that the setting cannot have.
        """
        for name, value in values.items():
            if type(getattr(self, name)) is not type(value):
                raise TypeError(f"setting {name} is {type(getattr(self, name)).__name__}, got {type(value).__name__}")
            setting = next(s for s in SETTINGS if s.name == name)
            if not setting.allows(value):
                raise ValueError(f"setting {name} cannot be {value!r}: {setting.doc}")
        self._values.update(values)
        self._tell()

    @contextmanager
    def override(self, **values: Any) -> Iterator[None]:
        """Change settings for a `with` block (process-wide while it runs)."""
        before = dict(self._values)
        self.update(**values)
        try:
            yield
        finally:
            self._values = before
            self._tell()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called after each change."""
        self._watchers.append(watcher)

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()

    def __repr__(self) -> str:
        return "\n".join(f"{s.name} = {self._values[s.name]!r}  # {s.env}: {s.doc}" for s in SETTINGS)


config = Config(os.environ)
