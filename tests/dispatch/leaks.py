"""Many calls of each kind: no object, reference or memory is lost or released twice.

python -m tests.dispatch.leaks --count 1000000
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jitgraph as jg
from tests.dispatch.samples import Pair, Slotted

FACTOR = 2.0
WEIGHTS = np.ones(6)


class Layer:
    def __init__(self) -> None:
        self.w = np.full(6, 3.0)
        self.rate = 0.5

    @jg.jit
    def forward(self, x):
        return x * self.w * self.rate


@jg.host(result=np.float64(0))
def back(x):
    return np.float64(x + 1)


X, Y = np.arange(6.0), np.arange(6.0) + 1
BIG = 3.14159e7
ROWS = np.arange(12.0).reshape(3, 4)[::-1, ::2]
TREE = {"w": [X, Y], "b": (X,)}


def out_of_range(x, i):
    return x[i]


def optional(x, i):
    try:
        return x[i]
    except IndexError:
        return None


#: Name to function and arguments.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "array": (lambda x, y: x * 2 + y, (X, Y), {}),
    "strided": (lambda x: x + 1, (ROWS,), {}),
    "floats": (lambda a, b: a * b, (BIG, 2.5), {}),
    "ints": (lambda a, b: (a * b, a), (10**12, 7), {}),
    "NumPy scalars": (lambda a: (a + 1, a > 2), (np.float64(3e9),), {}),
    "complex": (lambda a: a * 2, (1e9 + 2j,), {}),
    "keywords": (lambda x, a=1.0: x * a, (X,), {"a": BIG}),
    "tuple": (lambda x, y: (x + y, [x, y], {"a": x.sum(), "b": None}), (X, Y), {}),
    "tree": (lambda p: {"w": p["w"][0] + 1, "b": p["b"]}, (TREE,), {}),
    "dataclass": (lambda p: p.w + p.b, (Pair(X, Y),), {}),
    "slots": (lambda p: p.w + p.b, (Slotted(X, Y),), {}),
    "globals": (lambda x: np.sqrt(x) * FACTOR + WEIGHTS, (X,), {}),
    "views": (lambda x: (x[::2], x + 1), (X,), {}),
    "unknown sizes": (lambda x: x[x > 2], (X,), {}),
    "host call": (lambda x: back(x) * 2, (BIG,), {}),
    "errors": (out_of_range, (X, 99), {}),
    "two ways": (optional, (X, 99), {}),
    "wrong names": (lambda x: x + 1, (), {"z": X}),
    "text": (lambda x, how: x + 1 if how == "up" else x - 1, (X, "up"), {}),
    "method": (Layer().forward, (X,), {}),
    "written": (lambda x, y: np.multiply(x, y, out=x), (np.ones(6), np.ones(6)), {}),
    "arrays that miss": (lambda x: x + 1, (np.ma.masked_array([1.0]),), {}),
    "large": (lambda x: x + 1, (np.zeros(10_000),), {}),
    "temporaries": (lambda x: (x @ x.T) @ x, (np.ones((40, 40)),), {}),
}


def objects(x: Any, found: list[Any]) -> list[Any]:
    """Every object of a tree of arguments."""
    found.append(x)
    for child in x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ():
        objects(child, found)
    if isinstance(x, Pair | Slotted):
        objects([x.w, x.b], found)
    return found


def rss_bytes() -> int:
    """Memory of the process that is in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 if Path("/proc/self/statm").exists() else 0


#: Cases that raise, and cases that only Python serves.
RAISING = ("errors", "wrong names", "arrays that miss")
SLOW = ("wrong names", "arrays that miss")


def lost(name: str, count: int) -> str:
    """What `count` calls of a case have lost; empty if nothing."""
    f, args, kwargs = CASES[name]
    f = f if hasattr(f, "__self__") else jg.jit(f)

    def run(n: int) -> None:
        if name not in RAISING:
            for _ in range(n):
                f(*args, **kwargs)
            return
        for _ in range(n):
            try:
                f(*args, **kwargs)
            except (TypeError, IndexError):
                continue
            raise AssertionError(f"{name} raised nothing")

    count = min(count, 2000) if name in SLOW else count
    watched = [*objects([args, kwargs], []), None, np.ndarray, float, FACTOR, WEIGHTS, f, X.dtype, Layer]
    run(300)  # from the 200th call on calls are native, if the disk cache has no code for them
    gc.collect()
    before, held, memory = [sys.getrefcount(x) for x in watched], len(gc.get_objects()), rss_bytes()
    run(count)
    gc.collect()
    after, holding, growth = [sys.getrefcount(x) for x in watched], len(gc.get_objects()), rss_bytes() - memory
    drift = {str(type(x)): b - a for x, a, b in zip(watched, before, after, strict=True) if abs(b - a) > 8}
    if drift:
        return f"references {drift}"
    if holding - held > 50:
        return f"{holding - held} objects"
    return f"{growth} bytes" if growth > 16 << 20 else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("cases", nargs="*", help="all if none is named")
    options = parser.parse_args()
    wrong = 0
    for name in options.cases or CASES:
        found = lost(name, options.count)
        wrong += bool(found)
        sys.stdout.write(f"{name:20s} {found or 'nothing lost'}\n")
        sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
