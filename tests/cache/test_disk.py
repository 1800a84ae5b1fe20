"""The disk cache: what is wrong with a file or a folder is a miss, never an error, never a wait."""

import errno
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from jitgraph.cache import disk
from jitgraph.config import config

KEY = "ab" + "0" * 62
OTHER = "cd" + "1" * 62
ENTRY = disk.Entry({"dims": 2, "name": "f"}, b"\x7fELF" + bytes(range(200)), {"function": "f", "cpu": "this one"})
TEXT = disk.Entry(ENTRY.header, ENTRY.code, ENTRY.about, "graph @f() {\n}\n")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path):
    with config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield


def store(key: str = KEY, entry: disk.Entry = TEXT, name: str = "f") -> bool:
    return disk.store(key, name, entry)


def load(key: str = KEY, name: str = "f") -> disk.Entry | None:
    return disk.load(key, name)


def the_file() -> Path:
    (file,) = disk.files()
    return file.path


def everything() -> list[str]:
    return sorted(p.name for p in Path(config.cache_dir).rglob("*") if not p.is_dir())


def test_round_trip() -> None:
    assert load() is None
    assert store()
    assert load() == ENTRY
    assert disk.about(next(disk.files())) == (TEXT.about, TEXT.text)
    assert load(name="g") is None
    assert load(OTHER) is None


@pytest.mark.parametrize("name", ["f", "Class.method", "<lambda>", "größe", "x" * 300, "../../../up", "a/b\0c", ""])
def test_any_name(name: str) -> None:
    assert store(name=name)
    assert load(name=name) == ENTRY
    assert len(everything()) == 1
    assert [f.key for f in disk.of_function(name)] == [KEY]


def test_switched_off() -> None:
    store()
    with config.override(cache=False):
        assert load() is None
        assert not store()


def test_every_flipped_byte_is_a_miss_and_the_file_goes() -> None:
    store()
    path, whole = the_file(), the_file().read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        assert load() is None, at
        assert not path.exists()


def test_every_truncation_is_a_miss_and_so_is_a_longer_file() -> None:
    store()
    path, whole = the_file(), the_file().read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert load() is None, size
        path.write_bytes(bytes(size))  # what some file systems leave after a power failure
        assert load() is None, size
    path.write_bytes(whole + b"\0")
    assert load() is None
    path.write_bytes(whole)
    assert load() == ENTRY


def test_foreign_files_with_right_checksums_are_misses() -> None:
    from jitgraph.cache.key import checksum

    store()
    path = the_file()
    for header in (b"\xff\xff", b"[]", b"{}", b'{"about": 1, "loader": {}}', b"{" * 2000, b""):
        body = len(header).to_bytes(4, "little") + bytes(4) + header + b"code"
        path.write_bytes(b"jitgrph4" + checksum(KEY.encode() + body) + body)
        assert load() is None, header
        path.parent.mkdir(exist_ok=True)


def test_a_file_under_the_name_of_another_key_is_a_miss() -> None:
    store()
    store(OTHER, disk.Entry({}, b"other"))
    first, second = sorted(f.path for f in disk.files())
    second.write_bytes(first.read_bytes())
    assert load(OTHER) is None
    assert load() == ENTRY


def test_what_is_no_file_is_a_miss_and_nobody_waits() -> None:
    store()
    path = the_file()
    path.unlink()
    os.mkfifo(path)  # reading it would wait for a writer
    assert load() is None
    assert store()
    assert load() == ENTRY
    path.unlink()
    path.mkdir()
    assert load() is None
    assert not store()
    assert everything() == []
    assert list(disk.files()) == []


def test_links(tmp_path: Path) -> None:
    store()
    path = the_file()
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert load() == ENTRY
    before = elsewhere.read_bytes()
    assert store(entry=disk.Entry({"new": 1}, b"new"))  # replaces the link, not what it leads to
    assert elsewhere.read_bytes() == before
    path.unlink()
    path.symlink_to(path)  # a circle
    assert load() is None
    assert store()
    real = tmp_path / "real"
    Path(config.cache_dir).rename(real)
    Path(config.cache_dir).symlink_to(real)
    assert load() == ENTRY
    Path(config.cache_dir).unlink()
    Path(config.cache_dir).symlink_to(tmp_path / "nowhere")
    assert load() is None
    assert not store()


@pytest.mark.parametrize("where", ["folder", "shard"])
def test_a_file_where_a_folder_should_be(where: str) -> None:
    store()
    shard = the_file().parent
    disk.clear()
    blocker = shard if where == "shard" else Path(config.cache_dir)
    blocker.parent.mkdir(exist_ok=True)
    blocker.write_text("not a folder")
    assert not store()
    assert load() is None
    assert list(disk.files()) == []
    assert disk.verify() == (0, 0)
    assert disk.clear() == 0
    assert blocker.read_text() == "not a folder"


@pytest.mark.parametrize("folder", ["/proc/no/such", "bad\0name", "/dev/null/x", "x" * 300])
def test_folders_that_cannot_be(folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with config.override(cache_dir=folder):
        assert not store()
        assert load() is None
        assert list(disk.files()) == []
        assert disk.trim(0) == 0
        assert disk.of_function("f") == []
        assert disk.clear() == 0


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with config.override(cache_dir=""):
        monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
        assert disk.folder() == Path("/some/where/jitgraph")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", "/home/someone")
        assert disk.folder() == Path("/home/someone/.cache/jitgraph")
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "")
        import pwd

        assert disk.folder() == Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache" / "jitgraph"
        monkeypatch.delenv("HOME")

        def unknown(uid: int) -> None:
            raise KeyError(uid)

        monkeypatch.setattr(pwd, "getpwuid", unknown)
        assert disk.folder() is None
        assert not store()
        assert load() is None
        assert list(disk.files()) == []


def test_read_only_folders_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user without permissions sees them (the super-user is refused nothing, so calls are made to)."""
    store()

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    opened = os.open
    for name in ("makedirs", "replace", "unlink", "utime"):
        monkeypatch.setattr(disk.os, name, refuse)
    monkeypatch.setattr(disk.os, "open", lambda p, flags, *a: refuse() if flags & os.O_WRONLY else opened(p, flags, *a))
    assert load() == ENTRY
    assert not store(OTHER)
    path = the_file()
    path.write_bytes(b"damaged")
    assert load() is None
    assert path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes the super-user")
def test_files_of_other_users_are_not_run_unless_the_folder_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Path(config.cache_dir)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    with config.override(cache_dir=""):
        store()
        path = the_file()
        os.chown(path, 12345, 12345)
        assert load() is None
        assert disk.about(next(disk.files())) is None
        with config.override(cache_dir=str(base / "jitgraph")):
            assert load() == ENTRY
        os.chown(path, 0, 0)
        assert load() == ENTRY
        path.chmod(0o666)
        assert load() is None


@pytest.mark.parametrize("fails", ["write", "flush", "close"])
def test_a_full_disk(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where writing fails nothing is left, and the entry that is there stays."""
    store(entry=disk.Entry({"old": 1}, b"old"))
    real = os.fdopen

    class Full:
        def __init__(self, f: object) -> None:
            self.f = f

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.f.close()
            if fails == "close":
                raise OSError(errno.ENOSPC, "no space")

        def __getattr__(self, name: str) -> object:
            if name == fails:
                raise OSError(errno.ENOSPC, "no space")
            return getattr(self.f, name)

    monkeypatch.setattr(disk.os, "fdopen", lambda fd, mode: Full(real(fd, mode)) if mode == "wb" else real(fd, mode))
    assert not store()
    assert not store(OTHER)
    assert len(everything()) == 1
    monkeypatch.undo()
    with config.override(cache_dir=config.cache_dir):
        assert next(disk.files()).key == KEY


def test_writes_that_end_anywhere(tmp_path: Path) -> None:
    """A limit of the file size stops the write at that byte."""
    program = (
        "import resource, signal\n"
        "from jitgraph.cache import disk\n"
        "e = disk.Entry({'n': 1}, bytes(20000))\n"
        "for size in (0, 1, 7, 100, 4096, 8192, 20000):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "    assert not disk.store('00' * 32, 'f', e)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "assert list(disk._listed()) == []\n"
        "assert disk.store('00' * 32, 'f', e) and disk.load('00' * 32, 'f').code == bytes(20000)\n"
    )
    env = {**os.environ, "JITGRAPH_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)


def test_no_files_to_be_opened() -> None:
    store()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        assert load() is None
        assert not store(OTHER)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert load() == ENTRY


def test_what_killed_writers_leave_goes() -> None:
    store()
    shard = the_file().parent
    old, fresh, ahead = (shard / f".new-{k}-1-2" for k in range(3))
    for path in (old, fresh, ahead):
        path.write_bytes(b"half an entry")
    os.utime(old, (time.time() - 3600,) * 2)
    os.utime(ahead, (time.time() + 3600,) * 2)
    disk.trim(config.cache_bytes)
    assert (old.exists(), fresh.exists(), ahead.exists()) == (False, True, False)
    assert load() == ENTRY
    assert disk.clear() == 1
    assert everything() == []
    assert not Path(config.cache_dir).exists()


def test_a_store_survives_a_clear_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = os.replace, 0

    def cleared(a: str, b: str) -> None:
        nonlocal count
        count += 1
        if count == 1:
            disk.clear()
        real(a, b)

    monkeypatch.setattr(disk.os, "replace", cleared)
    assert store()
    assert load() == ENTRY


def test_clear_leaves_what_is_not_ours() -> None:
    store()
    shard = the_file().parent
    (shard / "notes.txt").write_text("mine")
    (Path(config.cache_dir) / "more.jgo").write_text("mine")
    assert disk.clear() == 1
    assert everything() == ["more.jgo", "notes.txt"]


def keys(count: int) -> list[str]:
    return [f"{16 * i + 1:02x}" + "0" * 62 for i in range(count)]


def test_trim_removes_the_least_recently_used() -> None:
    for age, key in enumerate(keys(4)):
        store(key)
        os.utime(next(f.path for f in disk.files() if f.key == key), (1000 + age, 1000 + age))
    assert load(keys(4)[0]) == ENTRY  # used now
    size = next(disk.files()).bytes
    assert disk.trim(23 * size // 10) == 2
    assert [load(k) is not None for k in keys(4)] == [True, False, False, True]


def test_entries_used_in_the_future_go_first() -> None:
    for key in keys(3):
        store(key)
    ahead = next(f for f in disk.files() if f.key == keys(3)[1])
    os.utime(ahead.path, (time.time() + 1e6,) * 2)
    assert disk.trim(23 * ahead.bytes // 10) == 1
    assert [load(k) is not None for k in keys(3)] == [True, False, True]


def test_the_cap_holds() -> None:
    big = disk.Entry({}, bytes(range(256)) * 40)
    with config.override(cache_bytes=100_000):
        for k in range(80):
            assert store(f"{k * 37 % 256:02x}" + f"{k:062x}", big, name=f"f{k}")
        total = sum(f.bytes for f in disk.files())
        assert total < 100_000 + 16 * 2 * 11_000
        assert disk.trim(100_000) >= 0
        assert 0 < sum(f.bytes for f in disk.files()) <= 100_000
        assert not store(KEY, disk.Entry({}, bytes(200_000)))


def test_verify_counts_and_removes() -> None:
    store()
    store(OTHER)
    next(f.path for f in disk.files() if f.key == OTHER).write_bytes(b"x")
    assert disk.verify() == (1, 1)
    assert disk.verify() == (1, 0)


def test_many_processes_store_load_trim_and_clear(tmp_path: Path) -> None:
    code = (
        "from jitgraph.cache import disk\n"
        "import sys\n"
        "for i in range(60):\n"
        "    k = f'{i % 5 * 16:02x}' + '0' * 62\n"
        "    e = disk.Entry({'n': i % 5}, bytes(50000))\n"
        "    assert disk.store(k, 'f', e)\n"
        "    got = disk.load(k, 'f')\n"
        "    assert got is None or got == e\n"
        "    if i % 20 == int(sys.argv[1]): disk.clear()\n"
        "    if i % 20 == 7: disk.verify()\n"
    )
    env = {**os.environ, "JITGRAPH_CACHE_DIR": str(tmp_path), "JITGRAPH_CACHE_BYTES": "200000"}
    running = [subprocess.Popen([sys.executable, "-c", code, str(k)], env=env) for k in range(3)]
    assert [p.wait() for p in running] == [0, 0, 0]
    assert disk.verify()[1] == 0
