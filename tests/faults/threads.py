"""Many threads call one function over changing shapes, dtypes and layouts: `python -m tests.faults.threads --seconds 60`."""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time

import numpy as np

import jitgraph as jg

GAIN = 2.0
KINDS = 40


class State:
    def __init__(self) -> None:
        self.bias = 1.5


STATE = State()


def program(x, y, n=2):
    z = np.maximum(x, y) * GAIN + STATE.bias
    for i in range(x.shape[0]):
        z[i] = z[i] * n + i
    return z, z.sum(), x[::-1]


def arguments(rng: random.Random):
    """Arguments of one call: one of `KINDS` signatures, of any size."""
    kind = random.Random(rng.randrange(KINDS))
    n = 1 if kind.random() < 0.1 else rng.choice((2, 3, 7, 16, 33, 500))
    x, y = (np.linspace(-1, 1, 2 * n).astype(kind.choice(("f8", "f4")))[:: kind.choice((1, 2))][:n] for _ in range(2))
    if kind.random() < 0.3:
        x, y = (np.broadcast_to(a[:, None], (n, 3)).copy(order=kind.choice("CF")) for a in (x, y))
    if kind.random() < 0.2:
        y = kind.choice((0.25, np.float32(2)))
    return (x, y, kind.choice((2, 3.5)))


def same(got, want) -> bool:
    return all(
        type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b)
        for a, b in zip(got, want, strict=True)
    )


def run(seconds: float, threads: int, entries: int = 24) -> tuple[int, list[str]]:
    """How many calls were made, and what differed.

    Args:
        entries: cap of the function's cache: specialisations come and go while others run in them.
    """
    with jg.config.override(entries=entries):
        f = jg.jit(program)
        f(*arguments(random.Random(0)))
    end = time.monotonic() + seconds
    calls = [0] * threads
    faults: list[str] = []

    def work(k: int) -> None:
        rng = random.Random(k)
        while time.monotonic() < end and not faults:
            args = arguments(rng)
            try:
                for _ in range(rng.randrange(1, 20)):
                    if not same(f(*args), program(*args)):
                        faults.append(f"{[getattr(a, 'dtype', type(a)) for a in args]}, {np.shape(args[0])}: differs")
                    calls[k] += 1
                if k == 0 and rng.random() < 0.02:
                    f.clear_cache()
            except Exception as e:  # noqa: BLE001
                faults.append(f"{type(e).__name__}: {e}")

    running = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join(seconds + 120)
        if t.is_alive():
            faults.append("a thread hangs")
    return sum(calls), faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.threads", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=16)
    options = parser.parse_args()
    calls, faults = run(options.seconds, options.threads)
    print(f"{calls} calls, {len(faults)} faults", *faults[:5], sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
