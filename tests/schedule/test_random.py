"""Random loops mean the same behind the passes; `random_loops`, `random_nests` and `random_arrays` run more by hand."""

from __future__ import annotations

import pytest

from jitgraph.config import config
from tests.fuzz.levels import Counts
from tests.schedule import campaign, random_arrays, random_loops, random_nests


@pytest.mark.parametrize("block", range(6))
def test_loops_in_the_interpreter(block: int) -> None:
    for seed in range(25 * block, 25 * (block + 1)):
        found = random_loops.fault(seed)
        assert not found, f"seed {seed}: {found}"


def test_loops_as_machine_code() -> None:
    for seed in range(1000, 1012):
        found = random_loops.fault(seed, machine=True)
        assert not found, f"seed {seed}: {found}"


def test_source_at_all_levels() -> None:
    """NumPy, the loops before and behind the passes, machine code."""
    counts = Counts()
    with config.override(cache=False):
        for seed in range(1, 5):
            found = campaign.found_in(random_nests.draw(seed), counts)
            assert found is None, str(found)
    assert counts.levels["schedule"] and counts.levels["machine code"]


def test_loops_over_fresh_arrays_as_machine_code() -> None:
    counts = Counts()
    with config.override(cache=False):
        for seed in range(8):
            found = campaign.found_in(random_arrays.draw(seed), counts, ())
            assert found is None, str(found)
    assert counts.levels["machine code"] > 20


def test_a_program_that_takes_long_is_a_fault_unless_numpy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_arrays.draw(3)
    assert "takes more than" in campaign.too_long(program)
    monkeypatch.setattr(campaign, "run", _endless)
    monkeypatch.setattr(campaign, "_NUMPY_SECONDS", 0.05)
    assert campaign.too_long(program) == ""


def _endless(*_: object) -> None:
    while True:
        pass
