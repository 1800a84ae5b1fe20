"""NumPy's own tests give what NumPy gives, jitted: a few calls of each line, in one test of six (`python -m tests.numpy_suite.run`: more)."""

from __future__ import annotations

import pytest

from tests.numpy_suite.left_out import refusal
from tests.numpy_suite.run import MODULES, run_module


@pytest.mark.parametrize("module", MODULES)
def test_module(module: str) -> None:
    report, output = run_module(module, calls=2, every=6)
    assert report is not None, output
    assert report["differ"] == []
    assert [(name, text) for name, text, _ in report["refused"] if refusal(text) is None] == []
    assert sum(report["compared"].values()) > 20
