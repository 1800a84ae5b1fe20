"""Two threads against one, in one process, in pairs: `python bench/threads.py [--sizes 100 1000 ...] [--threads 2]`.

Each pair is a run of one thread and a run of several on the same arguments, one behind the other, in changing order; a
ratio is time on one thread over time on several, the median of 15 pairs is shown, each time the least of a few calls.
Bars: 1.8 or more where computing is what takes the time and there are 1e6 elements; nowhere below 0.95.

What a machine can give is measured beside it where computing takes the time ("machine", in the same pairs): threads of
Python that call the same function on one thread each, on parts of their own, against the same calls one behind the
other. Two processors of a virtual machine that are one core give 1.0 to 1.6 there, and no pool of threads gives more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import jitgraph as jg

SIZES = (100, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000)
PAIRS = 15


def softmax(x: Any) -> Any:
    t = np.exp(x - x.max(axis=1, keepdims=True))
    return t / t.sum(axis=1, keepdims=True)


def relax(x: Any) -> Any:
    u = x.copy()
    for _ in range(10):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return u


#: Name, function, rank of the argument, and whether computing is what takes the time.
CASES: tuple[tuple[str, Callable[[Any], Any], int, bool], ...] = (
    ("exp*sin", lambda x: np.exp(x) * np.sin(x), 1, True),
    ("tanh f32", lambda x: np.tanh(x.astype(np.float32)), 1, True),
    ("2*x + 1", lambda x: 2 * x + 1, 1, False),
    ("sum", lambda x: x.sum(), 1, False),
    ("mean, std", lambda x: (x.mean(), x.std()), 1, False),
    ("argmax", lambda x: x.argmax(), 1, False),
    ("sum, axis 0", lambda x: x.sum(axis=0), 2, False),
    ("sum, axis 1", lambda x: x.sum(axis=1), 2, False),
    ("softmax", softmax, 2, True),
    ("transpose", lambda x: x.T + 1, 2, False),
    ("x[x > .5] = 0", lambda x: np.where(x > 0.5, 0, x), 1, False),
    ("relax", relax, 2, False),
)


def argument(size: int, rank: int) -> np.ndarray:
    shape = (size,) if rank == 1 else (max(1, round(size**0.5)), max(1, size // max(1, round(size**0.5))))
    return np.random.default_rng(size).random(shape)


def time_of(function: Callable[[Any], Any], x: np.ndarray, calls: int) -> int:
    best = 1 << 62
    for _ in range(calls):
        start = time.perf_counter_ns()
        function(x)
        best = min(best, time.perf_counter_ns() - start)
    return best


def together(function: Callable[[Any], Any], parts: Sequence[np.ndarray], calls: int) -> float:
    """Time of the calls one behind the other over that of a thread of Python for each part; our pool is not used."""

    def run(part: np.ndarray) -> None:
        for _ in range(calls):
            function(part)

    jg.set_num_threads(1)
    times = []
    for groups in ([parts], [[part] for part in parts]):
        workers = [threading.Thread(target=lambda group=group: [run(part) for part in group]) for group in groups]
        start = time.perf_counter_ns()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        times.append(time.perf_counter_ns() - start)
    return times[0] / times[1]


def ratio(function: Callable[[Any], Any], x: np.ndarray, count: int, machine: bool) -> tuple[float, float, float]:
    """(median ratio, microseconds of one thread, what the machine can give or NaN)."""
    parts = np.array_split(x, count)
    for n in (1, count):
        jg.set_num_threads(n)
        for _ in range(3):
            function(x)
    calls = max(2, min(50, 2_000_000 // max(1, time_of(function, x, 2))))
    ratios, alone, possible = [], [], []
    for k in range(PAIRS):
        found = {}
        for n in (1, count) if k % 2 else (count, 1):
            jg.set_num_threads(n)
            found[n] = time_of(function, x, calls)
        ratios.append(found[1] / found[count])
        alone.append(found[1])
        possible.append(together(function, parts, 10) if machine else float("nan"))
    return statistics.median(ratios), statistics.median(alone) / 1e3, statistics.median(possible)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="+", default=[name for name, *_ in CASES])
    chosen = parser.parse_args(arguments)
    print(f"{'ratio (us on one thread)':24}" + "".join(f"{size:>16,}" for size in chosen.sizes))
    for name, plain, rank, computes in CASES:
        if name not in chosen.cases:
            continue
        function = jg.jit(plain)
        cells, missed = [], False
        for size in chosen.sizes:
            measured = computes and size == 1_000_000
            found, alone, possible = ratio(function, argument(size, rank), chosen.threads, measured)
            missed |= found < 0.95 or (measured and found < 1.8)
            cells.append(f"{found:6.2f} ({alone:7.1f})" + (f" machine {possible:.2f}" if measured else ""))
        print(f"{name:24}" + "".join(cells) + ("  <- bar missed" if missed else ""), flush=True)


if __name__ == "__main__":
    main()
