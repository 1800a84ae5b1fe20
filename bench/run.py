"""Microbenchmarks, side by side: `python bench/run.py [--sizes 1000,100000] [--only chain] [--json out.json]`.

Every contestant that is installed runs the same NumPy source in a process of its own, one thread each, in turn, round
by round; results are checked against NumPy first. Times are medians of the rounds. `bandwidth` is the share of the
copy bandwidth of this machine, at the same size, measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from cases import CASES

HERE = Path(__file__).parent
WHO = ("numpy", "jitgraph", "numba", "jax", "torch", "numexpr")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "JITGRAPH_NUM_THREADS"), "1"
)


class Worker:
    """A contestant's process."""

    def __init__(self, who):
        env = {
            **os.environ,
            **ONE_THREAD,
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        }
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), who],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
        )  # fmt: skip

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "process died"}

    def close(self):
        self.process.kill()
        self.process.wait()


def copy_bandwidth(n_bytes):
    """Bytes per second of a copy between two kept arrays of this size, read plus written."""
    n = max(n_bytes // 16, 64)
    a, b = np.ones(n), np.empty(n)
    count = max(1, int(2e7 // (n * 8)))
    best = 1e9
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            np.copyto(b, a)
        best = min(best, (time.perf_counter() - start) / count)
    return 16 * n / best


def unit(seconds):
    for scale, name in ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms")):
        if seconds < 1000 * scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds:.3g} s"


def run_case(case, n, dtype, workers, rounds):
    row = {"case": case.name, "group": case.group, "n": n, "dtype": dtype, "seconds": {}, "notes": {}}
    ready = []
    for who, worker in workers.items():
        answer = worker.ask(do="prepare", case=case.name, n=n, dtype=dtype)
        if "error" in answer:
            row["notes"][who] = answer["error"]
            continue
        limit = case.tolerance or (0.0 if who == "jitgraph" else 1e-3)
        if answer["difference"] > limit:
            row["notes"][who] = f"wrong by {answer['difference']:.2g}"
            continue
        row.setdefault("bits_off", {})[who] = answer["bits_off"]
        row.setdefault("first_s", {})[who] = answer["first_s"]
        ready.append(who)
    samples = {who: [] for who in ready}
    for _ in range(rounds):
        for who in ready:
            samples[who].append(workers[who].ask(do="time")["seconds"])
    row["seconds"] = {who: statistics.median(s) for who, s in samples.items()}
    row["best"] = {who: min(s) for who, s in samples.items()}
    moved = case.moved * n * np.dtype(dtype).itemsize
    if "jitgraph" in row["seconds"]:
        row["bandwidth"] = moved / row["best"]["jitgraph"] / copy_bandwidth(int(moved))
    return row


def print_row(row, who):
    ours = row["seconds"].get("jitgraph")
    cells = []
    for w in who:
        t = row["seconds"].get(w)
        if t is None:
            cells.append(f"{'-':>16}")
        elif w == "jitgraph" or ours is None:
            cells.append(f"{unit(t):>16}")
        else:
            cells.append(f"{unit(t):>9} {t / ours:5.2f}x")
    share = f"{100 * row['bandwidth']:5.0f} %" if "bandwidth" in row else ""
    print(f"{row['case']:15} {row['n']:>9} {row['dtype']:8}" + "".join(cells) + f"  {share}", flush=True)
    for w, note in row["notes"].items():
        if w == "jitgraph":
            print(f"    {w}: {note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000,10000000")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--only", default="", help="cases or groups, comma-separated")
    parser.add_argument("--who", default="numpy,jitgraph,numba,jax,numexpr", help=f"among {','.join(WHO)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    workers = {}
    for who in options.who.split(","):
        worker = Worker(who)
        answer = worker.ask(do="import")
        if "error" in answer:
            print(f"{who}: {answer['error']}")
            worker.close()
        else:
            workers[who] = worker
    names = list(workers)
    print(f"{'':34}" + "".join(f"{w:>16}" for w in names) + "  of copy bandwidth")
    rows = []
    for case in CASES:
        if only and not {case.name, case.group} & only:
            continue
        for dtype in options.dtypes.split(","):
            for n in map(int, options.sizes.split(",")):
                row = run_case(case, n, dtype, workers, options.rounds)
                rows.append(row)
                print_row(row, names)
    for worker in workers.values():
        worker.close()
    for who in names:
        ratios = [
            r["seconds"][who] / r["seconds"]["jitgraph"]
            for r in rows
            if who in r["seconds"] and "jitgraph" in r["seconds"]
        ]
        if ratios and who != "jitgraph":
            print(
                f"geometric mean, {who} / jitgraph over {len(ratios)} rows: {float(np.exp(np.mean(np.log(ratios)))):.2f}x"
            )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
