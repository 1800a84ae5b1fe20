"""Run the tests of dispatch, and those of whole programs that matter to it, on every CPython that can be found.

    python -m tests.dispatch.interpreters [python ...] [--all]

Interpreters are this one, those named as arguments or in JITGRAPH_PYTHONS (by the system's path separator), and python3.11, python3.12
and python3.13 on the path. One that lacks NumPy, llvmlite, pytest or hypothesis is told of and left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("python3.11", "python3.12", "python3.13")
QUICK = ("tests/dispatch", "tests/runtime/test_invoke.py")
MORE = (
    "tests/e2e/test_jit.py",
    "tests/e2e/test_robustness.py",
    "tests/e2e/test_keys.py",
    "tests/e2e/test_flow_state.py",
)
_ABOUT = (
    "import sys, numpy, llvmlite, pytest, hypothesis\n"
    "print(sys.implementation.name, sys.version.split()[0], 'NumPy', numpy.__version__, 'llvmlite', llvmlite.__version__)"
)


def interpreters(named: list[str]) -> dict[str, str]:
    """Executables to what they are, each version of Python with its NumPy once."""
    found: dict[str, str] = {}
    candidates = [sys.executable, *named, *filter(None, os.environ.get("JITGRAPH_PYTHONS", "").split(os.pathsep))]
    candidates += [path for path in map(shutil.which, VERSIONS) if path]
    for path in candidates:
        asked = subprocess.run([path, "-c", _ABOUT], capture_output=True, text=True, check=False, cwd=ROOT)
        if asked.returncode:
            lines = asked.stderr.strip().splitlines() or ["does not start"]
            why = next((line for line in reversed(lines) if "Error" in line), lines[0])  # of launchers: the first line
            sys.stdout.write(f"{path}: left out: {why}\n")
        elif asked.stdout not in found.values():
            found[path] = asked.stdout
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="*")
    parser.add_argument("--all", action="store_true", help="more tests of whole programs")
    options = parser.parse_args()
    failed = 0
    for path, about in interpreters(options.python).items():
        for dispatch in ("native", "python", "both"):
            sys.stdout.write(f"--- {about.strip()}, dispatch {dispatch}\n")
            sys.stdout.flush()
            tests = [*QUICK, *(MORE if options.all else ())]
            done = subprocess.run(
                [path, "-m", "pytest", "-q", "-x", *tests],
                env=os.environ | {"JITGRAPH_DISPATCH": dispatch},
                cwd=ROOT,
                check=False,
            )
            failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
