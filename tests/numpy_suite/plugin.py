"""A pytest plugin: NumPy's own tests with each NumPy call run jitted, too (`-p tests.numpy_suite.plugin`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jitgraph.config import config
from tests.numpy_suite.instrument import install
from tests.numpy_suite.probe import Probe

PROBE = Probe()
config.verify = False
_module = os.environ["NUMPY_SUITE_MODULE"]
install((_module, _module.rpartition(".")[2]), PROBE)  # a folder that is no package: pytest imports it by its own name


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Run one test in so many."""
    items[:] = items[:: int(os.environ.get("NUMPY_SUITE_EVERY", "1"))]


def pytest_sessionfinish() -> None:
    report = PROBE.report
    path = os.environ.get("NUMPY_SUITE_REPORT")
    made: dict[str, Any] = {
        "compared": report.compared,
        "differ": report.differ,
        "refused": [[name, text, places] for (name, text), places in report.refused.items()],
        "left": report.left,
    }
    if path:
        Path(path).write_text(json.dumps(made), "utf-8")
