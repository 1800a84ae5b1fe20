"""Results from the pool against fresh memory: `python bench/memory.py [--n 10000000] [--rounds 15] [--threads 1]`.

`2 * x + y` on float64, all contestants in one process, in turn, round by round; the least time of the rounds counts, of
the clock and of the process (all its threads), as the machine may be busy. "drop": the result is gone before the next call; "keep": all results of a round stay, memory
given back between the rounds. Contestants that are not installed are left out.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import jitgraph as jg


def saxpy(x, y):
    return 2.0 * x + y


def contestants():
    """Name and function of each."""
    ours = jg.jit(saxpy)

    def fresh(x, y):
        with jg.config.override(pool=False):
            return ours(x, y)

    found = {"pool": ours, "np.empty": fresh, "numpy": saxpy}
    try:
        import numba

        found["numba"] = numba.njit(saxpy)
    except ImportError:
        pass
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        compiled = jax.jit(saxpy)
        found["jax"] = lambda x, y: compiled(x, y).block_until_ready()
    except ImportError:
        pass
    return found


def resident():
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def timed(function, x, y, keep):
    """Least seconds of one call among a few: by the clock, and of the process."""
    kept, clock, process = [], 1e9, 1e9
    for _ in range(keep or 2):
        began, start = time.process_time(), time.perf_counter()
        result = function(x, y)
        clock, process = min(clock, time.perf_counter() - start), min(process, time.process_time() - began)
        if keep:
            kept.append(result)
        del result
    return clock, process


def table(name, n, rounds, keep):
    """One line for each contestant: best time, bytes moved per second, ratios to the pool."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    best = {}
    functions = contestants()
    for function in functions.values():
        np.testing.assert_array_equal(np.asarray(function(x, y)), saxpy(x, y))
    low, high = 1 << 60, 0
    for _ in range(rounds):
        for who, function in functions.items():
            jg.trim_memory() if keep else None
            best[who] = tuple(map(min, best.get(who, (1e9, 1e9)), timed(function, x, y, keep)))
            if who == "pool":
                low, high = min(low, resident()), max(high, resident())
    print(f"{name}, n = {n}, {rounds} rounds; resident with the pool {low >> 20} to {high >> 20} MB")
    for who, (clock, process) in best.items():
        ratios = f"{clock / best['pool'][0]:6.2f}x {process / best['pool'][1]:6.2f}x of the processor"
        print(f"  {who:9} {1e3 * clock:8.3f} ms {24e-9 * n / clock:6.1f} GB/s {ratios}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are cores")
    options = parser.parse_args()
    if options.threads:
        jg.config.update(num_threads=options.threads)
    table("drop", options.n, options.rounds, 0)
    table("keep", options.n, max(3, options.rounds // 4), 4)


if __name__ == "__main__":
    main()
