"""Long runs: `python -m tests.fuzz.run --count 1000 --seed 0`. Prints each fault, shrunk, with the stage to blame.

The programs run in a child process, so that one that kills it is a finding, too.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import subprocess
import sys
import time

from jitgraph.config import config
from tests.fuzz.compare import Unsupported, check, shrink
from tests.fuzz.programs import draw


def child(first: int, count: int, shrinks: bool) -> None:
    faulthandler.enable()
    unsupported: collections.Counter[str] = collections.Counter()
    with config.override(cache=False, verify=True):
        for seed in range(first, first + count):
            print(f"@{seed}", flush=True)
            start = time.perf_counter()
            try:
                found = check(draw(seed))
                if found is not None:
                    print(shrink(found) if shrinks else found, flush=True)
                    print("FAULT", flush=True)
            except Unsupported as e:
                unsupported[str(e)[:100]] += 1
            if time.perf_counter() - start > 20:
                print(f"SLOW {seed}: {time.perf_counter() - start:.1f} s", flush=True)
    for text, times in unsupported.most_common():
        print(f"UNSUPPORTED {times} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description="Fuzz jit against NumPy.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.seed, given.count, not given.no_shrink)
        return 0
    faults, seed, end = 0, given.seed, given.seed + given.count
    unsupported: collections.Counter[str] = collections.Counter()
    while seed < end:
        command = [sys.executable, "-m", "tests.fuzz.run", "--child", "--seed", str(seed), "--count", str(end - seed)]
        process = subprocess.Popen(command + ["--no-shrink"] * given.no_shrink, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("@"):
                seed = int(line[1:])
            elif line == "FAULT\n":
                faults += 1
            elif line.startswith("UNSUPPORTED"):
                _, times, text = line.rstrip().split(" ", 2)
                unsupported[text] += int(times)
            else:
                print(line, end="", flush=True)
        if process.wait() == 0:
            break
        print(f"--- seed {seed} ends the process with {process.returncode}\n{draw(seed).source}", flush=True)
        faults += 1
        seed += 1
    refused = sum(unsupported.values())
    print(f"{given.count} programs, {faults} faults, {refused} refused")
    for text, times in unsupported.most_common(25):
        print(f"  {times} {text}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
