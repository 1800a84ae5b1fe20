"""Shared by all tests: a disk cache of their own, and the verifier after every pass."""

import pytest

from jitgraph.config import config


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache")), verify=True):
        yield
