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
    found: list[tuple[str, int, int]] = []
    folders = [os.path.dirname(os.path.dirname(__file__))]
    for folder in folders:
        with os.scandir(folder) as entries:  # five times faster than pathlib, and part of every start of a process
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append((entry.path, status.st_size, status.st_mtime_ns))
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return checksum(repr(sorted(found)).encode()).hex()


def digest(canonical_text: str, cpu: str, llvm: str) -> str:
    """A hex key of 64 characters.

    Args:
        canonical_text: the captured graph printed without locations.
        cpu: the CPU's name and features.
        llvm: version of llvmlite.
    """
    text = f"{generator()}\0{llvm}\0{np.__version__}\0{cpu}\0{canonical_text}"
    return checksum(text.encode()).hex()
