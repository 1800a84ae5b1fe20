"""The CPU that code is generated for."""

from __future__ import annotations

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
