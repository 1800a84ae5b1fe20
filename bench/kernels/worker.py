"""One contestant in a process of its own: reads requests as JSON lines, times, answers as JSON lines.

A process each, because compilers change process-wide LLVM options and allocators. The process keeps to one core.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(1, str(Path(__file__).parents[2]))  # the package of this tree, whatever is installed
import corpus


def numpy_function(kernel: corpus.Kernel, variant: str) -> Any:
    return kernel.function


def jitgraph_function(kernel: corpus.Kernel, variant: str) -> Any:
    import jitgraph as jg

    return jg.jit(kernel.function)


def numba_function(kernel: corpus.Kernel, variant: str) -> Any:
    import numba

    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
    return corpus.with_helpers(kernel.variants()[variant], lambda f: numba.njit(cache=True)(f))


def warm_up() -> None:
    """Load what a first compile loads, so that the time of a compile is that of the kernel, and the native dispatcher.

    Without a disk cache the dispatcher is compiled for processes that make many calls only.
    """
    import jitgraph as jg

    function, x = jg.jit(lambda x: x + 1.0), np.ones(3)
    for _ in range(300):
        function(x)


MAKERS = {"numpy": numpy_function, "jitgraph": jitgraph_function, "numba": numba_function}


class Session:
    """The prepared function of the kernel at hand."""

    def __init__(self, who: str) -> None:
        self.who = who

    def prepare(self, name: str, size: str, variant: str, expected: str, seconds: float) -> dict[str, Any]:
        """Compile, run once on fresh arguments, and compare with the outcome pickled in `expected`."""
        self.kernel = corpus.load(name)
        self.args = self.kernel.initialize(size)
        self.work = corpus.copied(self.args)
        if self.who == "jitgraph":
            warm_up()
        start = time.perf_counter()
        self.function = MAKERS[self.who](self.kernel, variant)
        found = corpus.outcome(self.kernel, self.function, self.work)
        first = time.perf_counter() - start
        equal, apart = corpus.difference(pickle.loads(Path(expected).read_bytes()), found)
        answer = {"first_s": first, "equal": equal, "difference": apart}
        once = self.once()
        if self.who == "jitgraph":
            report = self.function.explain(*self.args)
            answer["right"] = equal or 0.0 < apart <= self.kernel.tolerance
            answer["compile_s"] = first - once
            answer |= {"kernels": report.kernels, "host_calls": report.host_calls, "temporaries": report.temporaries}
        else:
            answer["right"] = apart <= corpus.allowed_of_others(self.args)
        self.count = max(1, min(200, int(seconds / max(once, 1e-7))))
        return answer

    def expect(self, name: str, size: str, path: str) -> dict[str, Any]:
        """Pickle NumPy's outcome: made here, as BLAS rounds otherwise with another number of threads."""
        kernel = corpus.load(name)
        found = corpus.outcome(kernel, kernel.function, kernel.initialize(size))
        Path(path).write_bytes(pickle.dumps(found))
        return {}

    def once(self) -> float:
        """Seconds of one call; written arguments are restored first."""
        for i in self.kernel.written:
            np.copyto(self.work[i], self.args[i])
        function, work = self.function, self.work
        start = time.perf_counter()
        function(*work)
        return time.perf_counter() - start

    def sample(self) -> dict[str, float]:
        """As many calls as fit in the time of a round: their median and the least."""
        times = [self.once() for _ in range(self.count)]
        return {"median": statistics.median(times), "least": min(times)}

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.pop("do"):
            case "prepare":
                return self.prepare(**request)
            case "expect":
                return self.expect(**request)
            case "time":
                return self.sample()
            case other:
                raise LookupError(other)


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    session = Session(sys.argv[1])
    out = sys.stdout
    sys.stdout = sys.stderr  # libraries that print must not disturb the answers
    for line in sys.stdin:
        try:
            answer = session.handle(json.loads(line))
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {' | '.join(str(e).splitlines()[:4])}"[:400]}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
