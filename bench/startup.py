"""Process start to first result: `python bench/startup.py`. Whole processes, in turn, over the time of `import numpy`.

Cold uses an empty disk cache for every process, warm a filled one. Also: cost of `import jitgraph`, call overhead on 16
elements, and compile time of chains of 10, 100, 300 and 1000 operations in a warm process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

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
f(x, x + 1)
"""
VARIANTS = {
    "numpy": ("import numpy as np", None),
    "import jitgraph": ("import numpy as np\nimport jitgraph", None),
    "jitgraph cold": ("import jitgraph as jg", "jg.jit"),
    "jitgraph warm": ("import jitgraph as jg", "jg.jit"),
    "numba": ("import numba", "numba.njit"),
    "jax": ("import jax; jax.config.update('jax_enable_x64', True)", "jax.jit"),
}


def wall(code, env):
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return time.perf_counter() - start


def processes(rounds=5):
    with tempfile.TemporaryDirectory() as warm:
        times = {name: [] for name in VARIANTS}
        for turn in range(rounds + 1):
            for name, (setup, wrap) in list(VARIANTS.items()):
                code = setup if wrap is None else PROGRAM.format(setup=setup, wrap=wrap)
                with tempfile.TemporaryDirectory() as cold:
                    env = {**os.environ, "JITGRAPH_CACHE_DIR": warm if name.endswith("warm") else cold}
                    try:
                        t = wall(code, env)
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
