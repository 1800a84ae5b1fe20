"""The key of a compiled graph: a digest of everything the machine code depends on.

Invariants:
1. The captured graph's canonical text (no locations), which holds types, guards, constants, check messages and fast-math flags.
2. Versions: jitgraph's code generator, llvmlite (LLVM), NumPy (its loops, its BLAS and its summation order are relied on).
3. The CPU: name and features.
Argument and captured array contents are not in it: they are arguments.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np


@cache
def generator() -> str:
    """What identifies jitgraph's own sources: name, size and time of each file, so that an edit is a miss."""
    root = Path(__file__).parent.parent
    stats = [(p.name, s.st_size, s.st_mtime_ns) for p in sorted(root.rglob("*.py")) for s in (p.stat(),)]
    return hashlib.sha256(repr(stats).encode()).hexdigest()


def digest(canonical_text: str, cpu: str, llvm: str) -> str:
    """A hex key of 64 characters.

    Args:
        canonical_text: the captured graph printed without locations.
        cpu: the CPU's name and features.
        llvm: version of llvmlite.
    """
    text = f"{generator()}\0{llvm}\0{np.__version__}\0{cpu}\0{canonical_text}"
    return hashlib.sha256(text.encode()).hexdigest()
