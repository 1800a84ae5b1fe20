"""Object code of functions written by hand in LLVM IR: compiled once for any CPU, from then on read from disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import llvmlite

from jitgraph.cache import disk
from jitgraph.cache.key import Parts, digest, parts
from jitgraph.target import Target

#: How the CPU of entries ends that are for all of an architecture.
ANY_CPU = ";any"


def object_code(
    name: str, text_of: Callable[[str], str], made_of: str, passes: Sequence[str] = (), opt: int = 2
) -> bytes:
    """The object code of `text_of(triple)`, without instructions that some CPU of this architecture lacks.

    Args:
        name: what the disk cache lists it as.
        made_of: what the text depends on beside jitgraph's sources.
        passes, opt: see `engine.compile_object`.
    """
    about = _about()
    key = digest(made_of, about)
    entry = disk.load(key, name)
    if entry is not None:
        return entry.code
    from jitgraph.runtime import engine

    triple = engine.process_triple()
    target = Target("x86-64" if triple.startswith("x86_64") else "generic", "", triple)
    code = engine.compile_object(text_of(triple), target, opt=opt, passes=passes)
    disk.store(key, name, disk.Entry({}, code, {"function": name, **about._asdict()}))
    return code


def is_stored(name: str, made_of: str) -> bool:
    """Whether `object_code` would find the code on disk."""
    return disk.load(digest(made_of, _about()), name) is not None


def _about() -> Parts:
    """What the code is made of; LLVM, which takes long to load, need not be asked."""
    return parts(f"{sys.platform};{machine()}{ANY_CPU}", llvmlite.__version__)


def machine() -> str:
    """The architecture, as the system calls it."""
    if hasattr(os, "uname"):
        return os.uname().machine
    import platform

    return platform.machine()
