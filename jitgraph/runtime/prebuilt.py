"""Object code of functions written by hand in LLVM IR: compiled once for any CPU, from then on read from disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite
import llvmlite.binding as llvm

from jitgraph.cache import disk
from jitgraph.cache.key import digest, parts
from jitgraph.runtime import engine
from jitgraph.target import Target


def object_code(
    name: str, text_of: Callable[[str], str], made_of: str = "", passes: Sequence[str] = (), opt: int = 2
) -> bytes:
    """The object code of `text_of(triple)`, without instructions that some CPU of this architecture lacks.

    Args:
        name: what the disk cache lists it as.
        made_of: what the text depends on beside jitgraph's sources, if it takes long to make.
        passes, opt: see `engine.compile_object`.
    """
    target = _target()
    triple = target.triple
    text = made_of or text_of(triple)
    about = parts(target.key, llvmlite.__version__)
    key = digest(text, about)
    entry = disk.load(key, name)
    if entry is not None:
        return entry.code
    code = engine.compile_object(text_of(triple) if made_of else text, target, opt=opt, passes=passes)
    disk.store(key, name, disk.Entry({}, code, {"function": name, **about._asdict()}))
    return code


def is_stored(name: str, made_of: str) -> bool:
    """Whether `object_code` would find the code on disk."""
    return disk.load(digest(made_of, parts(_target().key, llvmlite.__version__)), name) is not None


def _target() -> Target:
    triple = llvm.get_process_triple()
    return Target("x86-64" if triple.startswith("x86_64") else "generic", "", triple)
