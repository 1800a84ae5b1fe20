"""`python -m jitgraph cache ...`."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import compiler
from jitgraph.cache import disk
from jitgraph.cli import main


@pytest.fixture
def filled(tmp_path: Path):
    def first(x):
        return np.sin(x) * 1.5

    def second(x, y):
        return x @ y

    with jg.config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        for _ in range(2):  # at the first time the runtime stores what it makes for itself
            compiler._codes.clear()
            disk.clear()
            jg.jit(first)(np.ones(3))
            jg.jit(second)(np.ones((3, 3)), np.ones(3))
        yield tmp_path / "cache"


def run(capsys: pytest.CaptureFixture[str], *args: str, status: int = 0) -> str:
    assert main(["cache", *args]) == status
    return capsys.readouterr().out


def test_info(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "info")
    assert f"folder       {filled}" in out
    assert "entries      2 of 2 functions" in out
    assert "writable     yes" in out
    assert "stale        0 of" in out
    assert "left over    0 files" in out
    left = next(disk.files()).path.parent / ".new-1-2-3"
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 5000,) * 2)
    assert "left over    1 files of killed processes, 4 bytes" in run(capsys, "info")


def test_ls(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "ls").splitlines()
    assert len(out) == 2
    assert any("@first(%x: f64[n]) -> f64[n]" in line for line in out)
    assert "@second" in run(capsys, "ls", "--function", "second")
    assert run(capsys, "ls", "--stale") == ""
    next(disk.files()).path.write_bytes(b"x")
    assert "damaged" in run(capsys, "ls")


def test_verify(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify") == "2 good, 0 damaged and removed\n"
    next(disk.files()).path.write_bytes(b"x")
    assert run(capsys, "verify", status=1) == "1 good, 1 damaged and removed\n"


def test_clear(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "clear", "--function", "first") == "1 entries removed\n"
    assert run(capsys, "clear", "--stale") == "0 entries removed\n"
    with jg.config.override(cpu="x86-64-v3"):
        assert "stale        1 of" in run(capsys, "info")
        assert run(capsys, "clear", "--stale") == "1 entries removed\n"
    jg.jit(lambda x: x + 1)(np.ones(3))
    run(capsys, "clear")
    assert not filled.exists()
    assert "entries      0 of 0" in run(capsys, "info")
    assert run(capsys, "ls") == ""


def test_no_folder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import pwd

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with jg.config.override(cache_dir=""):
        assert "no folder" in run(capsys, "info")
        for action in ("ls", "verify", "clear"):
            run(capsys, action)
