"""The disk cache: one file an entry, checksummed, replaced atomically, shared by processes, capped in size.

File: 8 bytes magic, 32 bytes BLAKE2b of the key and the rest, 4 bytes length of a JSON header, the header, object code.
Whatever is wrong with a file or the folder is a miss, never an error: nothing of the user's depends on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jitgraph.cache.key import checksum
from jitgraph.config import config
from jitgraph.records import dataclass

_MAGIC = b"jitgrph3"
_SHARDS = 256
_SUFFIX = ".jgo"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is stored: object code, and a JSON-able header that the loader needs."""

    header: dict[str, Any]
    code: bytes


def folder() -> Path:
    """The cache's folder (not created here)."""
    if config.cache_dir:
        return Path(config.cache_dir)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "jitgraph"
    if sys.platform == "linux":
        return Path("~/.cache/jitgraph").expanduser()
    from platformdirs import user_cache_path  # the import costs some milliseconds

    return user_cache_path("jitgraph", appauthor=False)


def _path(key: str) -> Path:
    return folder() / key[:2] / (key + _SUFFIX)


def load(key: str) -> Entry | None:
    """The entry of `key`, or None if there is none that can be trusted."""
    if not config.cache:
        return None
    path = _path(key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    entry = _decode(data, key)
    if entry is None:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # least recently used goes first
    return entry


def _decode(data: bytes, key: str) -> Entry | None:
    """The entry in `data`; None if it is damaged, or that of another key (a renamed file)."""
    if len(data) < 44 or data[:8] != _MAGIC or _checksum(key, data[40:]) != data[8:40]:
        return None
    (size,) = struct.unpack_from("<I", data, 40)
    try:
        header = json.loads(data[44 : 44 + size])
    except ValueError:
        return None
    return Entry(header, data[44 + size :]) if isinstance(header, dict) else None


def _checksum(key: str, body: bytes) -> bytes:
    return checksum(key.encode() + body)


def store(key: str, entry: Entry) -> bool:
    """Write an entry; False if the folder cannot be written. A reader sees the old file or the new one, no part."""
    if not config.cache:
        return False
    header = json.dumps(entry.header, sort_keys=True).encode()
    body = struct.pack("<I", len(header)) + header + entry.code
    data = _MAGIC + _checksum(key, body) + body
    path = _path(key)
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.parent / f".new-{os.getpid()}-{threading.get_ident()}-{time.time_ns()}"  # tempfile loads much
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            name = str(new)
            f.write(data)
        Path(name).replace(path)
    except OSError:
        if name:
            with contextlib.suppress(OSError):
                Path(name).unlink()
        return False
    _trim_sometimes(key)
    return True


def files(shard: str = "*") -> Iterator[tuple[Path, os.stat_result]]:
    """All entry files, or those of one shard, with their status; files that vanish meanwhile are left out."""
    try:
        for path in folder().glob(f"{shard}/*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                yield path, path.stat()
    except OSError:
        return


def _trim_sometimes(key: str) -> None:
    """Every 16th entry (by key) looks whether the folder may have grown too large, so that storing stays cheap: its own
    shard, one of 256 that keys fill evenly, stands for all.
    """
    if int(key[:2], 16) % 16:
        return
    count = total = 0
    for _, status in files(key[:2]):
        count, total = count + 1, total + status.st_size
    if count < 8 or total * _SHARDS > config.cache_bytes:  # of few entries a shard tells too little
        trim(config.cache_bytes)


def trim(cap_bytes: int) -> int:
    """If the entries take more than `cap_bytes`, remove the least recently used until a tenth of it is free.

    Returns:
        how many were removed.
    """
    found = sorted(files(), key=lambda f: f[1].st_mtime, reverse=True)
    if sum(status.st_size for _, status in found) <= cap_bytes:
        return 0
    total = removed = 0
    for path, status in found:
        total += status.st_size
        if total > cap_bytes * 9 // 10:
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
    return removed


def verify() -> tuple[int, int]:
    """(good, damaged) entries; damaged ones are removed."""
    good = damaged = 0
    for path, _ in files():
        try:
            entry = _decode(path.read_bytes(), path.stem)
        except OSError:
            continue
        if entry is None:
            damaged += 1
            with contextlib.suppress(OSError):
                path.unlink()
        else:
            good += 1
    return good, damaged
