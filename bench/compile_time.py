"""Compile time by the size of the graph: `python bench/compile_time.py [shape ...] [--ops 100 1000 10000]`.

Each shape of program is compiled with so many operations; printed are microseconds an operation, in all and of each
stage, and how they grow from the smallest to the largest graph. Also `--signatures 10000`: one function called with so
many different signatures, with what the process then holds; and `--tiers`: LLVM's levels of code generation, milliseconds
of each and how fast its code is.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import linecache
import os
import time
import types

import numpy as np

import jitgraph as jg
from jitgraph import compiler
from jitgraph.compiler import Stages, engine, generator
from jitgraph.ir.printer import print_graph
from jitgraph.passes.pipeline import PASSES


def source(text):
    """The function `f` of a program, whose source the tracer finds."""
    name = f"<program {len(linecache.cache)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def program(line, count, head="", tail="    return x\n"):
    return source(f"def f(x, y):\n{head}" + "".join(line.format(i=i) for i in range(count)) + tail)


X = np.ones(10)


def chain(n):
    return program("    x = x * y + {i}.5\n", n // 2), (X, X + 1)


def wide(n):
    """Independent results."""
    made = ", ".join(f"x * {i}.5 + y" for i in range(n // 2))
    return source(f"def f(x, y):\n    return [{made}]\n"), (X, X + 1)


def tree(n):
    """Independent values, summed up."""
    return program("    a = a + (x * {i}.5 + y)\n", n // 3, "    a = x\n", "    return a\n"), (X, X + 1)


def arguments(n):
    names = [f"a{i}" for i in range(n)]
    sums = "".join(f"    s = s + {name}\n" for name in names)
    return source(f"def f({', '.join(names)}):\n    s = 0.0\n{sums}    return s\n"), [X + i for i in range(n)]


def scalars(n):
    return program("    s = s * 1.5 + x[{i}]\n", n // 3, "    s = 0.0\n", "    return s\n"), (np.ones(n), X)


def writes(n):
    return program("    x[{i}] = x[{i}] * 2.0 + y[{i}]\n", n // 3), (np.ones(n), np.ones(n))


def statements(n):
    """One loop of many statements."""
    head = "    for i in range(1, x.shape[0]):\n"
    return program("        x[i] = x[i - 1] * {i}.5 + y[i]\n", n // 3, head), (X, X + 1)


def loops(n):
    """Loops one behind the other."""
    return program("    for i in range(x.shape[0]):\n        x[i] = x[i] * {i}.5 + y[i]\n", n // 4), (X, X + 1)


def branches(n):
    line = "    if t > {i}.5:\n        x = x * {i}.5 + y\n    t = t + {i}.25\n"
    return program(line, n // 4, "    t = x.sum()\n"), (X, X + 1)


def reductions(n):
    return program("    x = x - x.mean() * {i}.5\n", n // 4), (X, X + 1)


def slices(n):
    return program("    x[{i} % 5:] += y[:x.shape[0] - {i} % 5] * {i}.5\n", n // 4), (X, X + 1)


SHAPES = {
    f.__name__: f
    for f in (chain, wide, tree, arguments, scalars, writes, statements, loops, branches, reductions, slices)
}


def stages_of(shape, n):
    """Seconds of each stage."""
    fn, args = SHAPES[shape](n)
    f = jg.jit(fn)
    times = {}

    def timed(name, make):
        start = time.thread_time()
        made = make()
        times[name] = time.thread_time() - start
        return made

    graph = timed("trace", lambda: f.graph(*args))
    timed("key", lambda: print_graph(graph, loc=False))
    final = graph.clone()
    for p in PASSES:
        timed(p.name, lambda p=p: p.run(final))
    stages = Stages(graph)
    stages._final = final
    timed("lower", stages.program)
    text = timed("emit", stages.llvm)
    timed("llvm", lambda: engine().compile_object(text))
    return times


def compile_times(shapes, sizes):
    jg.config.update(cache=False, unroll_limit=10**9)
    generator()
    stages_of("chain", 10)
    for shape in shapes:
        per_op = {}
        for n in sizes:
            gc.collect()
            times = per_op[n] = {name: 1e6 * t / n for name, t in stages_of(shape, n).items()}
            dear = ", ".join(f"{k} {v:.0f}" for k, v in sorted(times.items(), key=lambda i: -i[1])[:7])
            print(f"{shape:11} {n:6} ops {sum(times.values()):8.0f} us/op   {dear}", flush=True)
        first, last = (per_op[n] for n in (sizes[0], sizes[-1]))
        grown = {k: last[k] / max(first[k], 3.0) for k in last if last[k] > 6.0 and last[k] > 2 * max(first[k], 3.0)}
        total = sum(last.values()) / sum(first.values())
        print(f"{shape:11} x{total:.2f} an op; more than twice: {', '.join(f'{k} x{v:.1f}' for k, v in grown.items())}")


def signatures(count):
    """Memory over `count` signatures: dtypes x ranks x layouts x static values."""

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

    @jg.jit(static_argnames="k")
    def f(x, y, k):
        return x * k + y

    jg.config.update(cache=False)
    made = 0
    for k in itertools.count():
        for dtype, rank in itertools.product(["f8", "f4", "i4", "i8", "u2", "c16", "?", "u1", "i2", "f2"], (1, 2, 3)):
            x = np.ones((2,) * rank, dtype)
            x = x.T if rank == 3 else x
            f(x, 1.5, 0.5 * k)
            made += 1
            if made % max(1, count // 10) == 0:
                gc.collect()
                print(f"{made:6} signatures, {resident()} MB, {f.cache_info()}", flush=True)
            if made == count:
                return


def saxpy(x):
    return x * 2.5 + x


def softmax(x):
    e = np.exp(x.reshape(-1, 100) - x.reshape(-1, 100).max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def stencil(x):
    u = x.copy()
    for _ in range(20):
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1]
    return u


def price(x):
    d = (np.log(x) + 0.04) / 0.3
    return x * np.tanh(d) - np.exp(-0.05) * np.tanh(d - 0.3)


def tiers():
    """Code of LLVM's levels 0 to 3: time to make it, time of a call (the least of many, in turns), and equal bits."""
    jg.config.update(cache=False)
    llvm, x = engine(), np.random.default_rng(0).random(10000) + 1.0
    made, compile_object = {}, llvm.compile_object

    def at_level(level):
        def compile_timed(text, target=None, **options):
            if options:  # no code of a graph
                return compile_object(text, target, **options)
            start = time.thread_time()
            code = compile_object(text, target, opt=level)
            made[level] = min(made.get(level, 1e9), 1e3 * (time.thread_time() - start))
            return code

        return compile_timed

    for fn in (saxpy, softmax, stencil, price):
        made.clear()
        functions, best = {}, {}
        for level in (0, 1, 2, 3):
            llvm.compile_object = at_level(level)
            for _ in range(2):
                compiler._codes.clear()
                functions[level] = jg.jit(types.FunctionType(fn.__code__, fn.__globals__, fn.__name__))
                functions[level](x)
        llvm.compile_object = compile_object
        for _ in range(60):
            for level, f in functions.items():
                start = time.perf_counter_ns()
                f(x)
                best[level] = min(best.get(level, 1e12), time.perf_counter_ns() - start)
        same = len({f(x).tobytes() for f in functions.values()}) == 1
        levels = "; ".join(f"{k}: {made[k]:.1f} ms, {best[k] / 1e3:.1f} us" for k in functions)
        print(f"{fn.__name__:8} {levels}; {'equal' if same else 'OTHER'} bits", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--ops", nargs="+", type=int, default=[100, 1000, 10000])
    parser.add_argument("--signatures", type=int, default=0)
    parser.add_argument("--tiers", action="store_true")
    options = parser.parse_args()
    if options.tiers:
        tiers()
    elif options.signatures:
        signatures(options.signatures)
    else:
        compile_times(options.shapes, options.ops)
