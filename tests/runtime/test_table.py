"""The table of C functions: every name has an address, and libm's compute what NumPy's do."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.abi import TABLE
from jitgraph.runtime import table


def test_every_name_has_an_address() -> None:
    addresses = list(table.table())
    assert len(addresses) == len(TABLE)
    assert all(addresses)
    assert len(set(addresses)) == len(TABLE)


@pytest.mark.parametrize(
    ("name", "function"),
    [("pow", np.power), ("fmod", np.fmod), ("atan2", np.arctan2), ("sin", np.sin), ("cbrt", np.cbrt)],
)
def test_libm(name: str, function: object) -> None:
    for suffix, dtype in (("", np.float64), ("f", np.float32)):
        arity = len(table.signature(name + suffix)[1])
        arguments = [dtype(v) for v in (0.75, 1.5)[:arity]]
        found = table.call(name + suffix, arguments)
        np.testing.assert_allclose(found, function(*arguments), rtol=1e-6)  # type: ignore[operator]
