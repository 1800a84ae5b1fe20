"""NumPy's own tests, jitted: `python -m tests.numpy_suite.run [test_umath ...]` prints what differs and what is refused.

A module of another package than `numpy._core` has its name in front: `lib.test_function_base`, `linalg.test_linalg`.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.numpy_suite.left_out import refusal

MODULES = ("test_umath", "test_ufunc", "test_indexing", "test_multiarray", "test_numeric")
#: More modules: `--more` runs these, too.
MORE = (
    *(f"lib.test_{name}" for name in (
        "function_base", "shape_base", "index_tricks", "arraysetops", "nanfunctions", "twodim_base", "stride_tricks",
        "arraypad", "histograms", "type_check", "ufunclike", "polynomial",
    )),
    *(f"test_{name}" for name in (
        "scalarmath", "scalar_methods", "half", "einsum", "shape_base", "function_base", "casting_unittests",
        "array_coercion", "regression", "item_selection", "conversion_utils", "nep50_promotions", "umath_complex",
        "umath_accuracy",
    )),
    "linalg.test_linalg", "linalg.test_regression", "fft.test_pocketfft", "fft.test_helper",
    *(f"polynomial.test_{name}" for name in (
        "polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polyutils", "classes",
    )),
)  # fmt: skip

#: As many calls of each line as a run of everything compares.
_ALL = 250


def run_module(
    module: str, select: str = "", calls: int = _ALL, every: int = 1, seconds: int = 3000, wide: bool = False
) -> tuple[dict[str, Any] | None, str]:
    """The report of one test module, run in a process of its own; None and the output's end if that process died.

    Args:
        select: pytest's `-k`.
        calls: how many calls of each line are compared; few leave out tests that NumPy calls slow, too.
        every: one test in so many runs.
        wide: calls of numbers alone are compared, too, and calls that NumPy refuses.
    """
    package, _, name = module.rpartition(".")
    name = f"numpy.{package or '_core'}.tests.{name}"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable, "-X", "faulthandler", "-m", "pytest", "-p", "tests.numpy_suite.plugin", "-q", "--no-header", "--tb=no",
            "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", folder, "-c", os.devnull,
            "--pyargs", name, *(["-k", select] if select else []),
            *(["-m", "not slow"] if calls < _ALL else []),
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False,
            env={**os.environ, "NUMPY_SUITE_MODULE": name, "NUMPY_SUITE_REPORT": str(report), "NUMPY_SUITE_CALLS": str(calls), "NUMPY_SUITE_EVERY": str(every), "JITGRAPH_CACHE": "0",
                 "NUMPY_SUITE_WIDE": str(int(wide))},
        )  # fmt: skip
        if not report.exists():
            return None, (done.stdout + done.stderr)[-4000:]
        return json.loads(report.read_text("utf-8")), done.stdout[-300:]


def show(module: str, report: dict[str, Any], lines: int) -> None:
    differ, refused = report["differ"], report["refused"]
    print(f"=== {module}: {sum(report['compared'].values())} calls the same, {len(differ)} differ, ", end="")
    print(f"{sum(len(places) for _, _, places in refused)} refused")
    groups: dict[str, list[Any]] = collections.defaultdict(list)
    for name, place, what in differ:
        groups[name].append((place, what))
    for name, found in sorted(groups.items(), key=lambda g: -len(g[1])):
        print(f"  {name}: {len(found)} differ")
        seen: set[str] = set()
        for place, what in found:
            if place not in seen and len(seen) < lines:
                seen.add(place)
                print(f"    {place}: {what}")
    for name, text, places in sorted(refused, key=lambda r: -len(r[2])):
        why = refusal(text)
        print(f"  {name}: refused {len(places)} times{f', rightly ({why})' if why else ''}: {text} ({places[0]})")
    for why, times in sorted(report["left"].items(), key=lambda r: -r[1]):
        print(f"  not compared {times}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_suite.run", description="NumPy's tests through jit.")
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--more", action="store_true", help="the modules of `MORE`, too")
    parser.add_argument("--wide", action="store_true", help="calls of numbers alone, too, and what NumPy refuses")
    parser.add_argument("-k", default="", help="pytest's selection of tests")
    parser.add_argument("--calls", type=int, default=_ALL, help="calls of each line that are compared")
    parser.add_argument("--lines", type=int, default=3, help="places shown of each function that differs")
    given = parser.parse_args()
    faults = 0
    for module in (*given.modules, *(MORE if given.more else ())):
        report, text = run_module(module, given.k, given.calls, wide=given.wide)
        if report is None:
            print(f"=== {module}: the process died\n{text}")
            faults += 1
            continue
        show(module, report, given.lines)
        print(text.splitlines()[-1] if text else "")
        faults += len(report["differ"])
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
