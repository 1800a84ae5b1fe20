"""The disk cache: what is wrong with a file or a folder is a miss, never an error."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from jitgraph.cache import disk
from jitgraph.config import config

KEY = "ab" + "0" * 62
ENTRY = disk.Entry({"dims": 2, "name": "f"}, b"\x7fELF" + bytes(range(200)))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path):
    with config.override(cache=True, cache_dir=str(tmp_path)):
        yield


def the_file() -> Path:
    ((path, _),) = disk.files()
    return path


def test_round_trip() -> None:
    assert disk.load(KEY) is None
    assert disk.store(KEY, ENTRY)
    assert disk.load(KEY) == ENTRY


def test_switched_off() -> None:
    disk.store(KEY, ENTRY)
    with config.override(cache=False):
        assert disk.load(KEY) is None
        assert not disk.store(KEY, ENTRY)


@pytest.mark.parametrize("at", [0, 10, 41, 46, -1])
def test_a_flipped_bit_is_a_miss_and_the_file_goes(at: int) -> None:
    disk.store(KEY, ENTRY)
    data = bytearray(the_file().read_bytes())
    data[at] ^= 4
    the_file().write_bytes(bytes(data))
    assert disk.load(KEY) is None
    assert list(disk.files()) == []


@pytest.mark.parametrize("size", [0, 5, 43, 60])
def test_a_truncated_file_is_a_miss(size: int) -> None:
    disk.store(KEY, ENTRY)
    the_file().write_bytes(the_file().read_bytes()[:size])
    assert disk.load(KEY) is None


def test_a_foreign_file_with_a_right_checksum_is_a_miss() -> None:
    import hashlib

    body = struct.pack("<I", 4) + b"\xff\xff\xff\xff" + b"code"
    path = disk.folder() / KEY[:2] / f"{KEY}.jgo"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"jitgrph1" + hashlib.sha256(body).digest() + body)
    assert disk.load(KEY) is None
    body = struct.pack("<I", 2) + json.dumps([]).encode() + b"code"
    path.write_bytes(b"jitgrph1" + hashlib.sha256(body).digest() + body)
    assert disk.load(KEY) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    with config.override(cache_dir=str(blocker)):
        assert not disk.store(KEY, ENTRY)
        assert disk.load(KEY) is None
        assert list(disk.files()) == []


def test_trim_removes_the_least_recently_used() -> None:
    keys = [f"{i:02x}" + "0" * 62 for i in range(1, 5)]
    for age, key in enumerate(keys):
        disk.store(key, ENTRY)
        os.utime(disk.folder() / key[:2] / f"{key}.jgo", (1000 + age, 1000 + age))
    size = next(disk.files())[1].st_size
    assert disk.trim(23 * size // 10) == 2
    assert [disk.load(k) is not None for k in keys] == [False, False, True, True]


def test_verify_counts_and_removes() -> None:
    disk.store(KEY, ENTRY)
    other = "cd" + "1" * 62
    disk.store(other, ENTRY)
    (disk.folder() / "cd" / f"{other}.jgo").write_bytes(b"x")
    assert disk.verify() == (1, 1)
    assert disk.verify() == (1, 0)


def test_many_processes_store_and_load_the_same_keys(tmp_path: Path) -> None:
    code = (
        "from jitgraph.cache import disk\n"
        "e = disk.Entry({'n': 1}, bytes(50000))\n"
        "for i in range(60):\n"
        "    k = f'{i % 5:02x}' + '0' * 62\n"
        "    disk.store(k, e)\n"
        "    got = disk.load(k)\n"
        "    assert got == e\n"
    )
    env = {**os.environ, "JITGRAPH_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(3)]
    assert [p.wait() for p in running] == [0, 0, 0]
    assert disk.verify() == (5, 0)
