"""Shared by all tests: a disk cache of their own, and the verifier after every pass."""

import shutil
from pathlib import Path

import pytest

import jitgraph
from jitgraph.config import config


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache")), verify=True):
        yield


@pytest.fixture(scope="session")
def package_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as it is now, for processes that share a cache: an edit of the sources empties it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(Path(jitgraph.__file__).parent, folder / "jitgraph")
    return folder
