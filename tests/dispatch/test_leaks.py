"""A short dose of `leaks.py`."""

import pytest

from jitgraph.config import config
from tests.dispatch.leaks import CASES, lost


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost(name):
    with config.override(verify=False):
        assert not lost(name, 300)
