"""The key of a compiled graph: a digest of everything the machine code depends on.

Invariants:
1. The captured graph's canonical text (no locations): types, guards, constants, check messages, fast-math flags.
2. Versions: jitgraph's code generator, llvmlite (LLVM), NumPy (its loops, BLAS and summation order are relied on).
3. The CPU: name and features; the order in which NumPy's BLAS adds up dot products, for a graph with products.
Argument and captured array contents are not in it: they are arguments.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

import numpy as np

try:  # `hashlib` has this function from there, but loads OpenSSL first: some milliseconds of every start
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def checksum(data: bytes) -> bytes:
    """A digest of 32 bytes."""
    found: bytes = blake2b(data, digest_size=32).digest()
    return found


@cache
def generator() -> str:
    """What identifies jitgraph's own sources: name, size and time of each file, so that an edit is a miss."""
    found: list[tuple[str, str, int, int]] = []
    folders = [os.path.dirname(os.path.dirname(__file__))]
    for folder in folders:  # the dearest part of every start of a process: no path is looked up twice
        opened = os.open(folder, os.O_RDONLY) if os.stat in os.supports_dir_fd else None
        try:
            for name in os.listdir(folder if opened is None else opened):
                if name.endswith(".py"):
                    status = os.stat(f"{folder}/{name}" if opened is None else name, dir_fd=opened)
                    found.append((folder, name, status.st_size, status.st_mtime_ns))
                elif "." not in name and name != "__pycache__" and os.path.isdir(f"{folder}/{name}"):
                    folders.append(f"{folder}/{name}")
        finally:
            if opened is not None:
                os.close(opened)
    return checksum(repr(sorted(found)).encode()).hex()


class Parts(NamedTuple):
    """What a key is made of beside the graph's text: stored with the entry, so that a miss can be explained.

    Attributes:
        jitgraph: digest of the sources of jitgraph.
        llvmlite, numpy: versions.
        cpu: the CPU's name and features.
        blas: order in which BLAS adds up dot products; empty if the graph has none.
    """

    jitgraph: str
    llvmlite: str
    numpy: str
    cpu: str
    blas: str = ""


def parts(cpu: str, llvm: str, blas: str = "") -> Parts:
    """The parts of keys made in this process.

    Args:
        llvm: version of llvmlite.
    """
    return Parts(generator(), llvm, np.__version__, cpu, blas)


def digest(canonical_text: str, made_of: Parts) -> str:
    """A hex key of 64 characters.

    Args:
        canonical_text: the captured graph printed without locations.
    """
    return checksum("\0".join((*made_of, canonical_text)).encode()).hex()
