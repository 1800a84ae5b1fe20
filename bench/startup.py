"""Process start to first result: `python bench/startup.py`. Whole processes, in turn, over the time of `import numpy`.

Cold uses an empty disk cache for every process, warm a filled one; byte code is cached in both, as in every installation.
The last line of the first part is what a warm first call takes when all modules that it needs are imported before it
(the call proper: read the entry, check it, load the code, run). Also: cost of `import jitgraph`, call overhead on 16
elements, and compile time of chains of 10, 100, 300 and 1000 operations in a warm process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PROGRAM = """
import numpy as np
{setup}
def f(x, y):
    a = x * y + 1.0
    b = np.exp(-a) + np.sqrt(y)
    c = np.where(a > b, a, b) - x
    return np.tanh(c) * a + b
f = {wrap}(f)
x = np.linspace(0.1, 1.0, 1000)
"""
CALL = "f(x, x + 1)\n"
# prints the modules that the call brings in
MODULES = "import sys\nbefore = set(sys.modules)\n" + CALL + "print(*sorted(set(sys.modules) - before))\n"
# prints the time of the call in ms
TIMED = (
    "import importlib, time\nfor name in {modules!r}:\n    importlib.import_module(name)\n"
    "start = time.perf_counter()\n" + CALL + "print(1e3 * (time.perf_counter() - start))\n"
)
VARIANTS = {
    "numpy": "import numpy as np\n",
    "import jitgraph": "import numpy as np\nimport jitgraph\n",
    "jitgraph cold": PROGRAM.format(setup="import jitgraph as jg", wrap="jg.jit") + CALL,
    "jitgraph warm": PROGRAM.format(setup="import jitgraph as jg", wrap="jg.jit") + CALL,
    "numba": PROGRAM.format(setup="import numba", wrap="numba.njit") + CALL,
    "jax": PROGRAM.format(setup="import jax; jax.config.update('jax_enable_x64', True)", wrap="jax.jit") + CALL,
}


class Programs:
    """Programs in files of one folder, with a byte-code cache and a warm disk cache of their own."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def run(self, code, cache):
        """Seconds of a whole process that runs `code`, and what it printed."""
        file = self.folder / "program.py"
        if not file.exists() or file.read_text() != code:
            file.write_text(code)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"PYTHONPYCACHEPREFIX": str(self.folder / "pyc"), "JITGRAPH_CACHE_DIR": cache}
        start = time.perf_counter()
        done = subprocess.run([sys.executable, file], env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return time.perf_counter() - start, done.stdout


def processes(rounds=7):
    with tempfile.TemporaryDirectory() as folder:
        programs, warm = Programs(folder), str(Path(folder) / "warm")
        times = {name: [] for name in VARIANTS}
        for turn in range(rounds + 1):
            for name, code in list(VARIANTS.items()):
                with tempfile.TemporaryDirectory() as cold:
                    try:
                        t, _ = programs.run(code, warm if name.endswith("warm") else cold)
                    except RuntimeError as e:
                        print(f"{name}: {e}")
                        del VARIANTS[name], times[name]
                        continue
                if turn:
                    times[name].append(t)
        base = statistics.median(times["numpy"])
        for name, t in times.items():
            print(
                f"{name:18} {1e3 * statistics.median(t):8.0f} ms   over import numpy {1e3 * (statistics.median(t) - base):8.0f} ms"
            )
        start = PROGRAM.format(setup="import jitgraph as jg", wrap="jg.jit")
        programs.run(start + MODULES, warm)  # fills the cache
        modules = programs.run(start + MODULES, warm)[1].split()
        calls = [float(programs.run(start + TIMED.format(modules=modules), warm)[1]) for _ in range(2 * rounds + 1)]
        print(f"jitgraph warm      {statistics.median(calls):8.1f} ms   over imports")


def call_overhead():
    import jitgraph as jg

    f = jg.jit(lambda x, y: x * y + 1.0)
    x = np.ones(16)
    f(x, x)
    y = x + 1
    f(x, y)
    for name, fn in (
        ("jitgraph f(x, y)", lambda: f(x, y)),
        ("numpy x * y + 1.0", lambda: x * y + 1.0),
        ("np.add(x, y)", lambda: np.add(x, y)),
    ):
        best = 1e9
        for _ in range(15):
            start = time.perf_counter()
            for _ in range(2000):
                fn()
            best = min(best, (time.perf_counter() - start) / 2000)
        print(f"{name:18} {1e6 * best:8.2f} us per call, 16 float64")


def compile_times():
    import jitgraph as jg

    def chain(n, turn):
        def f(x, y):
            for i in range(n // 2):
                x = x * y + (1.0 + i + 0.1 * turn)  # constants of its own: an equal graph is not compiled again
            return x

        return f

    with jg.config.override(cache=False, unroll_limit=10**6):
        x = np.ones(10)
        jg.jit(chain(4, 9))(x, x + 1)
        for n in (10, 100, 300, 1000):
            times = []
            for turn in range(3):
                f = jg.jit(chain(n, turn))
                start = time.perf_counter()
                f(x, x + 1)
                times.append(time.perf_counter() - start)
            print(f"compile {n:5} ops  {1e3 * min(times):8.1f} ms (trace, passes, code)")


if __name__ == "__main__":
    processes()
    call_overhead()
    compile_times()
