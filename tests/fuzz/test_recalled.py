"""A small dose of `python -m tests.fuzz.run --recall`, and that it sees what it is there for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import recalled
from tests.fuzz.compare import Outcome
from tests.fuzz.grammar import DEFAULT_FEATURES


@pytest.mark.filterwarnings("ignore")
def test_fixed_seeds(package_copy: Path) -> None:
    report = recalled.check(range(1_040, 1_050), DEFAULT_FEATURES, str(package_copy))
    assert not report.faults, "\n".join(report.faults)
    assert report.counts["calls of recalled traces"] > 50


def seen(x: object, what: str = "") -> recalled.Seen:
    found = (recalled.visible(Outcome(x, [np.ones(2)])), what)
    return recalled.Seen({("f", 0, how): found for how in ("one function", "fresh", "recalled")})


def test_differences_are_seen() -> None:
    x, rows = np.zeros((2, 3)), np.zeros((2, 3))[:, :2]
    read_only = x.copy()
    read_only.flags.writeable = False
    others = (x + 1, -x, x.astype("f4"), x[:1], x.T.copy().T, rows, read_only, (x, x), [x], 0.0, x.copy()[:])
    assert not list(recalled._faults(seen(x), seen(x.copy())))
    for other in others:
        assert list(recalled._faults(seen(x), seen(other))), other
    assert list(recalled._faults(seen((x, x)), seen((x, x.copy()))))
    assert list(recalled._faults(seen(x), seen(x, "not NumPy's")))
    assert not list(recalled._faults(seen(x, "not NumPy's"), seen(x, "not NumPy's")))
