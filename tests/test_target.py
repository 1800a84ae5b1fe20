"""The CPU that code is generated for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jitgraph import target
from jitgraph.config import config


def test_host() -> None:
    t = target.host()
    assert t.vector_bytes in (16, 32, 64)
    assert t.lanes(8) * 8 == t.lanes(4) * 4 == t.vector_bytes
    assert 4096 <= t.l1_bytes <= t.l2_bytes
    assert target.host() is t


@pytest.mark.parametrize(
    ("cpu", "width"), [("x86-64", 16), ("x86-64-v3", 32), ("x86-64-v4", 64), ("znver3", 32), ("generic", 16)]
)
def test_named(cpu: str, width: int) -> None:
    with config.override(cpu=cpu):
        t = target.host()
    assert (t.cpu, t.features, t.vector_bytes) == (cpu, "", width)
    assert t.has_masks == (width == 64)
    assert t.key != target.named("x86-64-v2").key


@pytest.mark.parametrize("cpu", ["no-such-cpu", "i386"])
def test_a_cpu_without_64_bits_does_not_end_the_process(cpu: str) -> None:
    """LLVM does so by itself; it says that it does not know the name, and the code is any x86-64's."""
    program = "import numpy as np, jitgraph as jg; print(jg.jit(lambda x: np.sqrt(x) + 1)(np.ones(9)).sum())"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JITGRAPH_CPU": cpu, "JITGRAPH_CACHE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "18.0\n"), run.stderr
