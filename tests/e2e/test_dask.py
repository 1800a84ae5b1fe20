"""`map_blocks` of a jitted function on a LocalCluster of processes: the workers' machine code is from the disk cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jitgraph as jg

pytest.importorskip("dask.array")
pytest.importorskip("distributed")
pytest.importorskip("cloudpickle")
ROOT = Path(jg.__file__).parents[1]


def test_the_example(tmp_path: Path, package_copy: Path) -> None:
    """The workers are told apart from the client by their misses: none has compiled."""
    env = {
        **os.environ,
        "JITGRAPH_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(package_copy),
        "JITGRAPH_DISPATCH": "python",
    }
    command = [sys.executable, str(ROOT / "examples" / "dask_blocks.py")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert lines[0] == "dask and NumPy: the same bits"
    sources = [line.rpartition("machine code from ")[2] for line in lines[1:]]
    assert "disk" in sources
    assert set(sources) <= {"disk", "nowhere, it got no block"}
