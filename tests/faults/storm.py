"""Many processes compile one function at the same moment, and some are killed: `python -m tests.faults.storm --rounds 200`.

Each round has a function of its own, a few processes' worth of entries as cap of the cache, and sometimes a cleared
cache. What has to hold: no process that lives ends with another result than NumPy's, or not at all; whatever the killed
ones left, no entry is damaged, and left-over files are no more than were killed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np

import jitgraph as jg
from jitgraph.cache import disk

_SECONDS = 120.0


class Report(NamedTuple):
    rounds: int
    finished: int
    killed: int
    left_over: int
    faults: tuple[str, ...]


def program(k: int):
    """A function that no round before has compiled."""

    def f(x, y):
        s = x * k + y
        for i in range(x.shape[0]):
            s[i] = np.sqrt(s[i] * s[i] + k)
        return s, s.sum(), np.where(x > y, s, -s)

    return f


def child(k: int, start: float) -> int:
    """Compile and call; 0 if the results are NumPy's."""
    f = program(k)
    jitted = jg.jit(f)
    time.sleep(max(0.0, start - time.monotonic()))
    for n in (5, 9, 5):
        x, y = np.linspace(0, 1, n), np.linspace(1, 0, n)
        for got, want in zip(jitted(x, y), f(x, y), strict=True):
            if not np.array_equal(got, want):
                return 3
    return 0


def fork(k: int, start: float) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 4
    try:
        status = child(k, start)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(status)


def one_round(k: int, processes: int, kills: int, window: float, rng: random.Random) -> tuple[int, int, list[str]]:
    """How many finished, how many were killed, and what went wrong."""
    start = time.monotonic() + 0.02
    running = {fork(k, start) for _ in range(processes)}
    doomed = sorted((start + rng.random() * window * 0.6, pid) for pid in rng.sample(sorted(running), kills))
    finished = killed = 0
    faults: list[str] = []
    while running:
        now = time.monotonic()
        while doomed and doomed[0][0] <= now:
            pid = doomed.pop(0)[1]
            if pid in running:
                os.kill(pid, signal.SIGKILL)
        if now > start + _SECONDS:
            faults.append(f"round {k}: {len(running)} hang")
            for pid in running:
                os.kill(pid, signal.SIGKILL)
        for pid in list(running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            running.discard(pid)
            code = os.waitstatus_to_exitcode(status)
            if code == 0:
                finished += 1
            elif code == -signal.SIGKILL:
                killed += 1
            else:
                faults.append(f"round {k}: a process ended with {code}")
        time.sleep(0.001)
    return finished, killed, faults


def storm(rounds: int, processes: int, seed: int, folder: Path, talk: bool = False) -> Report:
    rng = random.Random(seed)
    faults: list[str] = []
    finished = killed = 0
    with jg.config.override(cache=True, cache_dir=str(folder), cache_bytes=120_000):
        begin = time.monotonic()
        child(1000 + seed, 0.0)  # loads all there is to load
        window = (time.monotonic() - begin) * max(1, processes // 2)
        for k in range(rounds):
            if rng.random() < 0.2:
                disk.clear()
            begin = time.monotonic()
            done, dead, wrong = one_round(k + 2, processes, rng.randrange(processes), window, rng)
            window = 0.5 * window + 0.5 * (time.monotonic() - begin)
            finished, killed = finished + done, killed + dead
            faults += wrong
            damaged = disk.verify()[1]
            if damaged:
                faults.append(f"round {k}: {damaged} damaged entries")
            if sum(f.bytes for f in disk.files()) > 400_000:
                faults.append(f"round {k}: the cap does not hold")
            if talk:
                print(f"round {k + 1}: {finished} finished, {killed} killed, {len(faults)} faults", flush=True)
        left = sum(1 for _ in folder.rglob(".new-*"))
        if left > killed:
            faults.append(f"{left} files left over by {killed} killed processes")
        disk.trim(disk.config.cache_bytes, disk.now_of_files() + 3600)
        if any(folder.rglob(".new-*")):
            faults.append("left-over files stay")
    return Report(rounds, finished, killed, left, tuple(faults))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = storm(options.rounds, options.processes, options.seed, Path(folder) / "cache", talk=True)
    print(report)
    return int(bool(report.faults))


if __name__ == "__main__":
    sys.exit(main())
