"""Functions written by hand in LLVM IR: compiled once for any CPU, from then on their object code is read from disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import llvmlite

from jitgraph.cache import disk
from jitgraph.cache.key import Parts, digest, parts
from jitgraph.runtime import linking
from jitgraph.target import Target

#: How the CPU of entries ends that are for all of an architecture.
ANY_CPU = ";any"


def linked(
    name: str,
    text_of: Callable[[str], str],
    made_of: str,
    exports: Sequence[str],
    passes: Sequence[str] = (),
    opt: int = 2,
) -> dict[str, int]:
    """Addresses, for ever, of functions of `text_of(triple)`, compiled without instructions that some CPUs lack.

    Args:
        name: what the disk cache lists it as.
        made_of: what the text depends on beside jitgraph's sources.
        exports: the functions.
        passes, opt: see `engine.compile_object`.
    """
    found = stored(name, made_of, exports)
    if found is not None:
        return found
    from jitgraph.runtime import engine

    triple = engine.process_triple()
    target = Target("x86-64" if triple.startswith("x86_64") else "generic", "", triple)
    code = engine.compile_object(text_of(triple), target, opt=opt, passes=passes)
    about = _about()
    disk.store(digest(made_of, about), name, disk.Entry({}, code, {"function": name, **about._asdict()}))
    return linking.load(code, exports)


def stored(name: str, made_of: str, exports: Sequence[str]) -> dict[str, int] | None:
    """What `linked` answers, if the code is on disk; None if it is not."""
    return disk.use(digest(made_of, _about()), name, lambda entry: linking.load(entry.code, exports))[0]


def _about() -> Parts:
    """What the code is made of; LLVM, which takes long to load, need not be asked."""
    return parts(f"{sys.platform};{machine()}{ANY_CPU}", llvmlite.__version__)


def machine() -> str:
    """The architecture, as the system calls it."""
    if hasattr(os, "uname"):
        return os.uname().machine
    import platform

    return platform.machine()
