"""Shared by all tests: a disk cache of their own, the verifier after every pass, no test that asks the clock."""

import shutil
from pathlib import Path

import hypothesis
import pytest

import jitgraph
from jitgraph.config import config

hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache")), verify=True):
        yield


@pytest.fixture
def whole_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops stay where they are: none is made a function for threads."""
    monkeypatch.setattr("jitgraph.schedule.parallel.split_of", lambda body: None)


@pytest.fixture(scope="session")
def package_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as it is now, for processes that share a cache: an edit of the sources empties it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(Path(jitgraph.__file__).parent, folder / "jitgraph")
    return folder
