"""What a call costs: a jitted function beside a ufunc of NumPy's and a function of Numba's, in one process.

    python bench/calls.py [--rounds 60]

Each line is the least of many short rounds, in nanoseconds of this thread's time; the loop is subtracted. Rounds of all functions
take turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import jitgraph as jg

FACTOR = 2.0
CALLS = 2000


@dataclass
class Pair:
    w: Any
    b: Any


class Layer:
    def __init__(self) -> None:
        self.w = np.full(16, 3.0)
        self.rate = 0.5

    @jg.jit
    def forward(self, x):
        return x * self.w * self.rate


@jg.jit
def two_ops(x, y):
    return x * 2 + y


@jg.jit
def eight(a, b, c, d, e, f, g, h):
    return a + b + c + d + e + f + g + h


@jg.jit
def keywords(x, *, a, b):
    return x * a + b


@jg.jit
def nested(p):
    (a, b), (c, d) = p["w"], p["b"]
    return {"w": [a + 1, b + 1], "b": (c * 2, d * 2)}


@jg.jit
def pair(p, x):
    return p.w * x + p.b


@jg.jit
def numbers(a, b):
    return a * b + 1.0


@jg.jit
def with_global(x):
    return np.sqrt(x) * FACTOR


@jg.jit
def three_results(x, y):
    return x + y, x - y, x * y


@jg.jit
def view(x):
    return x[::2]


@jg.jit
def strided(x):
    return x + 1


def loop(expression: str, **names: Any) -> Callable[[int], None]:
    """A function that evaluates the expression so many times."""
    scope = dict(names)
    exec(f"def run(n):\n    for _ in range(n):\n        {expression}\n", scope)
    made: Callable[[int], None] = scope["run"]
    return made


def functions() -> dict[str, Callable[[int], None]]:
    """The loops to time, by name."""
    x = np.arange(16.0)
    arrays = dict(zip("abcdefgh", [x + k for k in range(8)], strict=True))
    names = ", ".join(arrays)
    tree = {"w": [x, x + 1], "b": (x + 2, x + 3)}
    made = {
        "empty loop": loop("pass"),
        "np.add(x, y)": loop("f(x, y)", f=np.add, x=x, y=x + 1),
        "two operators": loop("f(x, y)", f=two_ops, x=x, y=x + 1),
        "eight arrays": loop(f"jit({names})", jit=eight, **arrays),
        "keywords": loop("f(x, a=2.0, b=3.0)", f=keywords, x=x),
        "nested containers, 4 arrays in and out": loop("f(t)", f=nested, t=tree),
        "dataclass": loop("f(p, x)", f=pair, p=Pair(x, x + 1), x=x),
        "Python numbers": loop("f(1.5, 2.5)", f=numbers),
        "global and module": loop("f(x)", f=with_global, x=x),
        "method with attributes": loop("layer.forward(x)", layer=Layer(), x=x),
        "three results": loop("f(x, y)", f=three_results, x=x, y=x + 1),
        "view of an argument": loop("f(x)", f=view, x=x),
        "strided": loop("f(x)", f=strided, x=np.arange(32.0)[::2]),
    }
    try:
        import numba
    except ImportError:
        return made
    compiled = numba.njit(eight.__wrapped__)
    compiled(*arrays.values())
    made["numba, eight arrays"] = loop(f"jit({names})", jit=compiled, **arrays)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    timed = functions()
    for run in timed.values():
        run(5)
    least = dict.fromkeys(timed, float("inf"))
    for _ in range(rounds):
        for name, run in timed.items():
            start = time.thread_time_ns()
            run(CALLS)
            least[name] = min(least[name], (time.thread_time_ns() - start) / CALLS)
    floor = least.pop("empty loop")
    ufunc = least["np.add(x, y)"] - floor
    for name, ns in least.items():
        sys.stdout.write(f"{name:40s} {ns - floor:8.1f} ns  {(ns - floor) / ufunc:6.2f} x np.add\n")
    if "numba, eight arrays" in least:
        ratio = (least["eight arrays"] - floor) / (least["numba, eight arrays"] - floor)
        sys.stdout.write(f"{'eight arrays against numba':40s} {ratio:25.2f}\n")


if __name__ == "__main__":
    main()
