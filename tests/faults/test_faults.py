"""Short doses of the fault commands: `python -m tests.faults.storm`, `python -m tests.faults.threads`."""

import subprocess
import sys
from pathlib import Path

import jitgraph
from tests.faults import threads

ROOT = Path(jitgraph.__file__).parents[1]


def test_processes_compile_at_once_and_are_killed() -> None:
    """In a process of its own, as it forks."""
    command = [sys.executable, "-m", "tests.faults.storm", "--rounds", "3", "--processes", "8", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults=()" in done.stdout


def test_threads_call_one_function_over_changing_shapes() -> None:
    calls, faults = threads.run(seconds=8, threads=16)
    assert faults == []
    assert calls > 100
