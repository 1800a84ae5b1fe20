"""Run a NumPy function eagerly and compiled, compare the results, and show times and IR."""

import time
from pathlib import Path

import numpy as np

import jitgraph as jg

OUT = Path(__file__).parent / "out"


def best_ms(fn, *args, repeat=7):
    """The fastest of `repeat` calls, in milliseconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        fn(*args)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def leaves(result):
    """The arrays and scalars of a nested result, in order."""
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in leaves(item)]
    if isinstance(result, dict):
        return [leaf for item in result.values() for leaf in leaves(item)]
    return [result]


def largest_difference(a, b):
    """The largest absolute difference of two results of the same structure, relative to the largest value."""
    worst = 0.0
    for x, y in zip(leaves(a), leaves(b), strict=True):
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        assert x.shape == y.shape, (x.shape, y.shape)
        scale = max(float(np.max(np.abs(x), initial=0.0)), 1e-300)
        worst = max(worst, float(np.max(np.abs(x - y), initial=0.0)) / scale)
    return worst


def compare(title, fn, args, *, tolerance, show_ir=True, mutates=False):
    """Print eager and compiled times of `fn(*args)` and the IR before and after fusion; answer both results.

    Raises:
        AssertionError: the results differ by more than `tolerance` (relative to the largest value).
    """
    compiled = jg.jit(fn)
    fresh = (lambda: tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)) if mutates else (lambda: args)
    eager_result = fn(*fresh())
    start = time.perf_counter()
    compiled_result = compiled(*fresh())
    first_ms = 1e3 * (time.perf_counter() - start)
    difference = largest_difference(eager_result, compiled_result)
    assert difference <= tolerance, f"{title}: results differ by {difference:.3g}"
    eager_ms, compiled_ms = best_ms(fn, *fresh()), best_ms(compiled, *fresh())
    print(f"\n== {title}")
    print(f"NumPy {eager_ms:.2f} ms   compiled {compiled_ms:.2f} ms   {eager_ms / compiled_ms:.1f}x")
    print(f"first call {first_ms:.0f} ms (trace and compile)   largest relative difference {difference:.2g}")
    if show_ir:
        print("\n-- IR as captured")
        print(compiled.inspect_ir(*fresh(), stage="trace"))
        print("-- IR after fusion")
        print(compiled.inspect_ir(*fresh(), stage="fuse"))
        print("-- where each line went")
        print(compiled.explain(*fresh()))
    return eager_result, compiled_result
