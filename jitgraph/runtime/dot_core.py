"""Which order NumPy's BLAS adds a dot product up in: found by trial at first use, and part of the key of object code.

The trial is a few hundred dots of fixed numbers, whose results are hashed; the hash of each order that code generation
knows is in a table. Where none fits, products stay calls of BLAS.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache

import numpy as np

#: Up to this length BLAS adds in one thread.
LONGEST = 10_000
#: Checksums of the results of `trials` in the orders of `codegen.dots.ORDERS`.
_CORES: dict[tuple[int, int], str] = {
    (936140036, 2929303759): "skylakex",
    (235435929, 4004225112): "haswell",
}
_LENGTHS = (*range(1, 66), *range(67, 300, 7), 1000, 4099, LONGEST - 1, LONGEST)


def numbers(count: int, seed: int) -> np.ndarray:
    """Doubles between -1 and 1 with all bits in use, the same on every machine."""
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    state = (state ^ (state >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(32)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def trials() -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
    """Pairs of vectors, and whether BLAS sees them as strided."""
    x, y = numbers(3 * LONGEST, 1), numbers(3 * LONGEST, 2)
    for n in _LENGTHS:
        offset = n % 5
        yield x[offset : offset + n], y[:n], False
        yield x[offset : offset + n], y[: 2 * n : 2], True
        yield x[: 3 * n : 3], y[offset : offset + 2 * n : 2], True


@cache
def core() -> str:
    """The name of the order of `codegen.dots` that this process's dot products are added up in; "" if none."""
    return identified(np.array([np.dot(x, y) for x, y, _ in trials()]))


def identified(results: np.ndarray) -> str:
    """The order that gives these results of the trials."""
    data = results.tobytes()
    return _CORES.get((zlib.crc32(data), zlib.adler32(data)), "")
