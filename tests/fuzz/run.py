"""Long runs: `python -m tests.fuzz.run --count 20000 --seed 0 --jobs 2`. Prints each fault, shrunk, with the stage to blame.

The programs run in child processes, so that one that kills its process is a finding, too.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from jitgraph.config import config
from tests.fuzz import captured
from tests.fuzz.grammar import DEFAULT_FEATURES, FEATURES
from tests.fuzz.levels import LEVELS, Counts, Difference, Unsupported, check, shrink
from tests.fuzz.programs import Fuzzed, draw

#: A program that takes more seconds of the processor is a fault, as is one that waits; one that needs more memory fails.
_SECONDS, _WAIT, _BYTES = 60, 600, 8 << 30
#: Programs of one pair of processes that traces and recalls.
_RECALLED = 100


def child(seeds: range, features: frozenset[str], shrinks: bool, quick: bool, levels: tuple[str, ...] | None) -> None:
    """Check programs at some levels and as machine code (no verifier if `quick`), or as they are captured only (None).

    What is found goes to stdout, line by line.
    """
    faulthandler.enable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    with config.override(cache=False, verify=not quick):
        for seed in seeds:
            print(f"@{seed}", flush=True)
            limits(_SECONDS, _WAIT)
            counts = Counts()
            start = time.perf_counter()
            try:
                found = _check(draw(seed, features), counts, levels)
                if found is not None:
                    limits(0, 0)
                    found = check(draw(seed, features)) or found  # at all levels, to say which stage is to blame
                    print(shrink(found) if shrinks else found, flush=True)
                    print("FAULT", flush=True)
            except Unsupported as e:
                print(f"REFUSED {seed} {e}", flush=True)
            except Exception:  # noqa: BLE001 - a fault of the tools
                print(f"--- seed {seed}\n{source_of(seed, features)}\n{traceback.format_exc()}\nFAULT", flush=True)
            if time.perf_counter() - start > 10:
                print(f"SLOW {seed}: {time.perf_counter() - start:.1f} s", flush=True)
            for text in counts.layouts[:1]:
                print(f"LAYOUT {seed} {text}", flush=True)
            print(f"COUNTS {json.dumps({**counts.levels, 'programs': 1})}", flush=True)
    print("DONE", flush=True)


def _check(program: Fuzzed, counts: Counts, levels: tuple[str, ...] | None) -> Difference | None:
    if levels is not None:
        return check(program, counts, levels)
    with captured.interpreted():
        return captured.check(program, counts)


def limits(seconds: int, wait: int) -> None:
    """End the process after so many seconds of the processor, or of the clock; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(wait)


def source_of(seed: int, features: frozenset[str]) -> str:
    """The text of a program, for a report that must not fail."""
    try:
        return draw(seed, features).source
    except Exception as e:  # noqa: BLE001
        return f"(cannot be drawn: {type(e).__name__}: {e})"


class Totals:
    """What all children found."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.faults = 0
        self.levels: collections.Counter[str] = collections.Counter()
        self.refused: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
        self.layouts: list[str] = []

    def line(self, line: str) -> bool:
        """Take note of a line; False if it is to be shown."""
        if line == "FAULT\n":
            self.faults += 1
        elif line.startswith("REFUSED"):
            _, seed, text = line.rstrip().split(" ", 2)
            self.refused[text[:110]].append(int(seed))
        elif line.startswith("LAYOUT"):
            self.layouts.append(line[7:].rstrip())
        elif line.startswith("COUNTS"):
            self.levels.update(json.loads(line[7:]))
        else:
            return False
        return True


def job(seeds: range, given: argparse.Namespace, totals: Totals) -> None:
    """Run children over some seeds; a new one when one dies."""
    at, end, step = seeds.start, seeds.stop, seeds.step
    while at < end:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.run",
            "--child",
            "--seed",
            str(at),
            "--count",
            str(end),
            "--jobs",
            str(step),
        ]
        command += ["--no-shrink"] * given.no_shrink + ["--quick"] * given.quick + ["--captured"] * given.captured
        command += ["--with", given.features, "--levels", given.levels]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stderr is not None
        noise: list[str] = []
        reader = threading.Thread(target=lambda p=process, n=noise: n.extend(p.stderr.readlines()[-30:]))
        reader.start()
        done = False
        for line in process.stdout:
            done = done or line == "DONE\n"
            with totals.lock:
                if done:
                    pass
                elif line.startswith("@"):
                    at = int(line[1:])
                elif not totals.line(line):
                    print(line, end="", flush=True)
        reader.join()
        if process.wait() == 0 and done:
            return
        with totals.lock:
            source = source_of(at, features_of(given))
            print(f"--- seed {at} ends the process with {process.returncode}\n{source}{''.join(noise)}", flush=True)
            totals.faults += 1
        at += step


def features_of(given: argparse.Namespace) -> frozenset[str]:
    names = {name for name in given.features.split(",") if name}
    unknown = names - set(FEATURES)
    if unknown:
        raise SystemExit(f"no features {', '.join(unknown)}; there are {', '.join(FEATURES)}")
    return DEFAULT_FEATURES | names


def levels_of(given: argparse.Namespace) -> tuple[str, ...]:
    names = tuple(name for name in given.levels.split(",") if name and not given.quick)
    if unknown := set(names) - set(LEVELS[:-1]):
        raise SystemExit(f"no levels {', '.join(unknown)}; there are {', '.join(LEVELS[:-1])}")
    return names


def recall_run(given: argparse.Namespace) -> int:
    """Compare recalled traces with fresh ones: user programs first, then seeds, so many at a time."""
    from tests.fuzz import recalled

    seeds = range(given.seed, given.seed + given.count)
    parts = [seeds[k : k + _RECALLED] for k in range(0, given.count, _RECALLED)]
    features = features_of(given)
    tasks: list[Callable[[], recalled.Report]] = [partial(recalled.check, part, features) for part in parts]
    tasks += [partial(recalled.check_users, name) for name in recalled.USERS]
    counts, refused, faults = collections.Counter[str](), collections.Counter[str](), 0
    start = time.perf_counter()
    with ThreadPoolExecutor(given.jobs) as pool:
        for report in pool.map(lambda task: task(), tasks):
            counts += report.counts
            refused += report.refused
            faults += len(report.faults)
            for text in report.faults:
                print(f"--- {text}", flush=True)
    print(f"{dict(counts)}, {faults} faults, {time.perf_counter() - start:.0f} s; not kept:")
    for why, count in refused.most_common():
        print(f"  {count} {why}")
    return int(faults > 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description="Fuzz jit against NumPy.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--with", dest="features", default="", help=f"more features, comma-separated: {', '.join(FEATURES)}"
    )
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--quick", action="store_true", help="machine code only, no verifier: more programs in a time")
    parser.add_argument("--captured", action="store_true", help="no code at all: the captured graphs, interpreted")
    parser.add_argument(
        "--levels",
        default=",".join(LEVELS[:-1]),
        help="those to compare beside machine code; `graph,schedule` is the fastest that sees all faults",
    )
    parser.add_argument("--refused", action="store_true", help="list the seeds of refused programs")
    parser.add_argument("--recall", action="store_true", help="compare traces from disk with fresh ones")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.child:
        seeds = range(given.seed, given.count, given.jobs)
        levels = None if given.captured else levels_of(given)
        child(seeds, features_of(given), not given.no_shrink, given.quick or given.captured, levels)
        return 0
    if given.recall:
        return recall_run(given)
    start = time.perf_counter()
    end, totals = given.seed + given.count, Totals()
    threads = [
        threading.Thread(target=job, args=(range(given.seed + k, end, given.jobs), given, totals))
        for k in range(given.jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = sum(map(len, totals.refused.values()))
    took = time.perf_counter() - start
    if totals.layouts:
        print(f"{len(totals.layouts)} programs with results that lie in memory in another way (no faults):")
    for text in totals.layouts:
        print(f"  {text}")
    print(
        f"seeds {given.seed} to {end - 1}: {totals.levels['programs']} programs, {totals.faults} faults, {refused} refused, {took:.0f} s"
    )
    print(
        "calls compared: "
        + ", ".join(
            f"{name} {totals.levels[name]}" for name in (*LEVELS, *sorted(totals.levels.keys() - {*LEVELS, "programs"}))
        )
    )
    for text, seeds in sorted(totals.refused.items(), key=lambda item: -len(item[1])):
        print(f"  {len(seeds)} {text}" + (f" {seeds[:12]}" if given.refused else ""))
    return int(totals.faults > 0)


if __name__ == "__main__":
    sys.exit(main())
