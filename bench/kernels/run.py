"""Loop kernels, side by side: `python bench/kernels/run.py [--only lu,adi] [--size medium] [--processes 5] [--json out.json]`.

Every contestant runs in processes of its own, one thread, kept to one core. A pass starts one process a contestant and
times them in turn, round by round, so that a slow spell of the machine hits all; its time is the median of its rounds, and
what is printed is the median over the passes. Written arguments are restored before each call, outside the time. Results and
written arguments are compared with NumPy's first: the same bits where docs/numerics.md promises them, else within the
kernel's tolerance; numba, which sums in orders of its own, within `corpus.allowed_of_others`. All variants of a kernel that
numba can compile are timed; the fastest that is right counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import corpus
import numpy as np

HERE = Path(__file__).parent

WHO = ("numpy", "numba", "jitgraph")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "JITGRAPH_NUM_THREADS"), "1"
)


class Worker:
    """A contestant's process; `folder` keeps what numba compiled."""

    def __init__(self, who: str, variant: str, folder: str) -> None:
        self.who, self.variant = who, variant
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), who],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **ONE_THREAD, "NUMBA_CACHE_DIR": folder, "JITGRAPH_CACHE": "0"},
        )  # fmt: skip

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"process died ({self.process.wait()})"}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def contestants(kernel: corpus.Kernel, who: list[str]) -> list[tuple[str, str]]:
    """Pairs of contestant and variant."""
    return [(w, v) for w in who for v in (kernel.variants() if w == "numba" else ("",))]


def label(who: str, variant: str) -> str:
    return f"{who}:{variant}" if variant else who


def run_kernel(name: str, options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """All contestants on one kernel: a row of the table."""
    kernel = corpus.load(name)
    expected = str(Path(folder) / f"{name}.pickle")
    oracle = Worker("numpy", "", folder)
    failure = oracle.ask(do="expect", name=name, size=options.size, path=expected)
    oracle.close()
    if failure:
        raise SystemExit(f"{name}: {failure['error']}")
    steps = kernel.element_steps(options.size)
    row: dict[str, Any] = {"kernel": name, "size": options.size, "steps": steps, "passes": {}, "notes": {}, "about": {}}
    pairs = contestants(kernel, options.who.split(","))
    middle = statistics.median if options.take == "median" else min
    for _ in range(options.processes):
        ready = []
        for who, variant in pairs:
            key = label(who, variant)
            if key in row["notes"]:
                continue
            worker = Worker(who, variant, folder)
            answer = worker.ask(
                do="prepare", name=name, size=options.size, variant=variant, expected=expected, seconds=options.seconds
            )
            if "error" in answer or not answer["right"]:
                row["notes"][key] = answer.get("error") or f"wrong by {answer['difference']:.2g}"
                worker.close()
                continue
            row["about"].setdefault(key, answer)
            ready.append((key, worker, []))
        for _ in range(options.rounds):
            for _key, worker, samples in ready:
                samples.append(worker.ask(do="time")[options.take])
        for key, worker, samples in ready:
            row["passes"].setdefault(key, []).append(middle(samples))
            worker.close()
    row["seconds"] = {key: middle(times) for key, times in row["passes"].items()}
    for who in options.who.split(","):
        found = [(t, key) for key, t in row["seconds"].items() if key.split(":")[0] == who]
        if found:
            row.setdefault("best", {})[who] = min(found)
    return row


def print_header(who: list[str]) -> None:
    columns = "".join(f"{w:>11}" for w in who)
    print(
        f"{'ns per element-step':22}{columns}  numpy/jg numba/jg  bits  compile kernels hosts  numba's best, its bits"
    )


def print_row(row: dict[str, Any], who: list[str]) -> None:
    best = row.get("best", {})
    cells = "".join(f"{best[w][0] / row['steps'] * 1e9:>11.3g}" if w in best else f"{'-':>11}" for w in who)
    ratios = "".join(f"{ratio(row, w):>9.2f}" if ratio(row, w) else f"{'-':>9}" for w in ("numpy", "numba"))
    ours = row["about"].get("jitgraph")
    about = (
        f"  {'equal' if ours['equal'] else format(ours['difference'], '.0e'):>6}{ours['compile_s']:>7.2f} s"
        f"{len(ours['kernels']):>7}{len(ours['host_calls']):>6}"
        if ours
        else ""
    )
    numba = best.get("numba")
    variant = f"  {numba[1].split(':')[1]}{', equal' if row['about'][numba[1]]['equal'] else ''}" if numba else ""
    print(f"{row['kernel']:22}{cells}{ratios}{about}{variant}", flush=True)
    for key, note in row["notes"].items():
        print(f"    {key}: {note}", flush=True)


def ratio(row: dict[str, Any], who: str) -> float | None:
    """Their time over ours."""
    best = row.get("best", {})
    return best[who][0] / best["jitgraph"][0] if who in best and "jitgraph" in best else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kernels, comma-separated")
    parser.add_argument("--size", default="medium", choices=("tiny", "small", "medium", "large"))
    parser.add_argument("--who", default=",".join(WHO), help=f"among {','.join(WHO)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=5, help="passes, each in new processes")
    parser.add_argument(
        "--seconds", type=float, default=0.05, help="time of a contestant in a round, at least one call"
    )
    parser.add_argument(
        "--take",
        default="median",
        choices=("median", "least"),
        help="least: on a machine with other work, for orientation",
    )
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    who = options.who.split(",")
    chosen = [name for name in options.only.split(",") if name] or corpus.names()
    rows = []
    print_header(who)
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            row = run_kernel(name, options, folder)
            rows.append(row)
            print_row(row, who)
    for other in ("numpy", "numba"):
        ratios = [r for row in rows if (r := ratio(row, other))]
        if ratios:
            mean, least = float(np.exp(np.mean(np.log(ratios)))), min(ratios)
            print(f"{other} / jitgraph over {len(ratios)} kernels: geometric mean {mean:.2f}x, least {least:.2f}x")
    if options.json:
        about = {
            "machine": platform.processor() or platform.machine(), "numpy": np.__version__, "options": vars(options),
            "rows": rows,
        }  # fmt: skip
        Path(options.json).write_text(json.dumps(about, indent=1))


if __name__ == "__main__":
    main()
