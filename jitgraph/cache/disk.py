"""The disk cache: one file an entry, checksummed, replaced atomically, shared by processes and machines, capped.

A file: 8 bytes magic; 32 bytes BLAKE2b of the key and the rest; two lengths of 4 bytes; a JSON header of the first
length (what the entry was made of, and what the loader needs); object code of the second; the rest is the graph's
text, deflated, for people who ask why another graph missed. Where: `<folder>/<two digits of the function's
name>/<key>.<name>.jgo`.

Invariants:
1. Whatever is wrong with a file or the folder is a miss, never an error, never a wait: nothing of the user's depends
   on it.
2. A reader sees all of a file or none of it: files are written beside their place and renamed, and the checksum tells
   what a crash of the machine, a full disk or somebody else left there. No locks, so nobody can die holding one.
3. Code is run only if nobody else could have written it: files of other users (but root) are misses, unless the user
   named the folder.
4. What an entry says is used inside `use`, so that content of another form than its reader knows is a miss, too.
5. Times are compared with the file system's own: clocks of machines that share a folder may differ.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jitgraph.cache.key import checksum
from jitgraph.config import config
from jitgraph.errors import InternalError
from jitgraph.records import dataclass, field

_MAGIC = b"jitgrph4"
_LENGTHS = struct.Struct("<II")
_FIRST = 8 + 32  # the checksum covers what follows
_HEAD = _FIRST + _LENGTHS.size
_SUFFIX = ".jgo"
_NEW = ".new-"
#: Seconds after which a file that a writer has not renamed is left over: the writer was killed.
_LEFT_OVER = 600
#: How often a writer begins anew as somebody clears the cache meanwhile.
_TRIES = 8
#: No entry is as large as this.
_MOST_BYTES = 1 << 30
#: Text of a graph kept beside its code; of longer ones the beginning.
_TEXT_BYTES = 64 << 10
#: Most entries of a function that are looked at for the one nearest to a miss.
_LOOKED_AT = 16
_LISTED = 512
#: What comes of reading content of another form: it is data, so no other fault hides among these.
_UNFIT = (
    ArithmeticError, AttributeError, EOFError, InternalError, LookupError, MemoryError, RecursionError, StopIteration,
    TypeError, ValueError, struct.error,
)  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is stored.

    Attributes:
        header: what the loader needs; JSON-able.
        code: object code.
        about: what the entry was made of, by name (`key.Parts`).
        text: canonical text of the graph; empty in what `load` answers.
    """

    header: dict[str, Any]
    code: bytes
    about: dict[str, str] = field(default_factory=dict)
    text: str = ""


class File(NamedTuple):
    """An entry's file: where, the key and (shortened) function name in its file name, size, time of last use."""

    path: Path
    key: str
    name: str
    bytes: int
    used: float


def folder() -> Path | None:
    """The cache's folder (not made here); None where there is no home to have one in."""
    if config.cache_dir:
        return Path(config.cache_dir)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):  # the standard says that others are to be ignored
        return Path(base) / "jitgraph"
    if sys.platform == "linux":
        home = os.environ.get("HOME") or _home_of_user()
        return Path(home) / ".cache" / "jitgraph" if home.startswith("/") else None
    from platformdirs import user_cache_path  # the import costs some milliseconds

    try:
        return user_cache_path("jitgraph", appauthor=False)
    except RuntimeError:  # no home
        return None


def _home_of_user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def _path(base: Path, key: str, name: str) -> str:
    safe = "".join([c if c.isascii() and (c.isalnum() or c == "_") else "-" for c in name[:40]])
    return f"{base}/{checksum(name.encode())[:1].hex()}/{key}.{safe}{_SUFFIX}"


def load(key: str, name: str) -> Entry | None:
    """The entry of `key`, or None if there is none that can be trusted.

    Args:
        name: the function's; part of where the entry is.
    """
    base = folder() if config.cache else None
    if base is None:
        return None
    path = _path(base, key, name)
    data = _read(path)
    if data is None:
        return None
    entry = _decode(data, key)
    if entry is None:
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # least recently used goes first
    return entry


def use(key: str, name: str, make: Callable[[Entry], T]) -> tuple[T | None, str]:
    """What `make` makes of the entry of `key`.

    Args:
        make: reads data and links code, and no more: what it raises says that the content is none of its own.

    Returns:
        None where there is no entry, or one that does not fit: it is removed, the log (`miss`) tells why, and so does
        the text.
    """
    entry = load(key, name)
    if entry is None:
        return None, ""
    try:
        return make(entry), ""
    except _UNFIT as e:
        why = f"the entry on disk does not fit: {type(e).__name__}: {e}"
    base = folder()
    if base is not None:
        with contextlib.suppress(OSError):
            os.unlink(_path(base, key, name))
    if "miss" in config.log:
        sys.stderr.write(f"jitgraph: {name}: {why}\n")
    return None, why


def _read(path: str) -> bytes | None:
    """The bytes of a file that we may trust; of a pipe, a folder, another user's file, or where reading fails: None."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or not _trusted(status) or status.st_size > _MOST_BYTES:
            return None
        parts = []
        while part := os.read(opened, status.st_size + 1):  # the end is where nothing comes
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(opened)


def _trusted(status: os.stat_result) -> bool:
    if config.cache_dir:
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & stat.S_IWOTH


def _decode(data: bytes, key: str) -> Entry | None:
    """The entry in `data`; None if it is damaged, or that of another key (a renamed file)."""
    if len(data) < _HEAD or data[:8] != _MAGIC or checksum(key.encode() + data[_FIRST:]) != data[8:_FIRST]:
        return None
    found = _header(data)
    if found is None:
        return None
    header, about, at, size = found
    return Entry(header, data[at : at + size], about)


def _header(data: bytes) -> tuple[dict[str, Any], dict[str, str], int, int] | None:
    """Header, what the entry was made of, where its code is and how long; None if the bytes are none of ours."""
    if len(data) < _HEAD or data[:8] != _MAGIC:
        return None
    head, code = _LENGTHS.unpack_from(data, _FIRST)
    try:
        found = json.loads(data[_HEAD : _HEAD + head])
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(found.get(k), dict) for k in ("about", "loader")):
        return None
    if not all(isinstance(text, str) for text in found["about"].values()):
        return None
    return found["loader"], found["about"], _HEAD + head, code


def store(key: str, name: str, entry: Entry) -> bool:
    """Write an entry; False if that cannot be done. A reader sees the old file or the new one, no part of one."""
    base = folder() if config.cache else None
    if base is None:
        return False
    import zlib

    header = json.dumps({"about": entry.about, "loader": entry.header}, sort_keys=True).encode()
    text = zlib.compress(entry.text.encode()[:_TEXT_BYTES], 1)
    body = _LENGTHS.pack(len(header), len(entry.code)) + header + entry.code + text
    data = _MAGIC + checksum(key.encode() + body) + body
    if len(data) > config.cache_bytes:
        return False
    path = _path(base, key, name)
    shard = os.path.dirname(path)
    for tries_left in range(_TRIES, -1, -1):
        new = f"{shard}/{_NEW}{os.getpid()}-{threading.get_ident()}-{time.time_ns()}"  # tempfile loads much
        made = False
        try:
            os.makedirs(shard, mode=0o700, exist_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as f:
                made = True
                f.write(data)
                f.flush()
                now = os.fstat(f.fileno()).st_mtime
            os.replace(new, path)
        except (OSError, ValueError) as e:  # ValueError: a NUL in the folder's name
            if made:
                with contextlib.suppress(OSError):
                    os.unlink(new)
            if tries_left and isinstance(e, FileNotFoundError):  # somebody cleared the cache meanwhile
                continue
            return False
        if int(key[:2], 16) % 16 == 0:  # measuring the folder costs some milliseconds
            trim(config.cache_bytes, now)
        return True
    return False


def files() -> Iterator[File]:
    """All entry files; those that vanish meanwhile are left out."""
    for path, status in _listed():
        key, _, rest = path.name.partition(".")
        if path.name.endswith(_SUFFIX) and _is_key(key):
            name = rest.removesuffix(_SUFFIX[1:]).removesuffix(".")
            yield File(path, key, name, status.st_size, status.st_mtime)


def left_over(now: float) -> Iterator[tuple[Path, int]]:
    """Files that killed writers have left, and their sizes.

    Args:
        now: what time it is for the file system.
    """
    for path, status in _listed():
        if path.name.startswith(_NEW) and abs(now - status.st_mtime) > _LEFT_OVER:
            yield path, status.st_size


def _is_key(text: str) -> bool:
    return len(text) == 64 and all(c in "0123456789abcdef" for c in text)


def _listed() -> Iterator[tuple[Path, os.stat_result]]:
    """The regular files in the cache's shards."""
    base = folder()
    if base is None:
        return
    try:
        shards = [s for s in os.scandir(base) if len(s.name) == 2 and s.is_dir()]
    except (OSError, ValueError):
        return
    for shard in shards:
        try:
            found = list(os.scandir(shard.path))
        except OSError:
            continue
        for entry in found:
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def now_of_files() -> float:
    """What time it is for the file system of the folder; this machine's time where it cannot be written."""
    base = folder()
    if base is not None:
        probe = base / f"{_NEW}{os.getpid()}-{threading.get_ident()}"
        with contextlib.suppress(OSError, ValueError):
            with open(probe, "wb") as f:
                found = os.fstat(f.fileno()).st_mtime
            probe.unlink()
            return found
    return time.time()


def trim(cap_bytes: int, now: float | None = None) -> int:
    """Remove what killed writers left; if the entries take more than `cap_bytes`, the least recently used go until a
    tenth of it is free.

    Args:
        now: what time it is for the file system.

    Returns:
        how many entries were removed.
    """
    if now is None:
        now = now_of_files()
    for path, _ in left_over(now):
        with contextlib.suppress(OSError):
            path.unlink()
    # used in the future, by a clock that was wrong: that would never go
    found = sorted(files(), key=lambda f: f.used if f.used <= now + _LEFT_OVER else 0.0, reverse=True)
    if sum(f.bytes for f in found) <= cap_bytes:
        return 0
    total = removed = 0
    for f in found:
        total += f.bytes
        if total > cap_bytes * 9 // 10:
            with contextlib.suppress(OSError):
                f.path.unlink()
                removed += 1
    return removed


def clear(wanted: Callable[[File], bool] | None = None) -> int:
    """Remove entries; the number removed.

    Args:
        wanted: says which; None: all, and what is then left of the folder if nothing of others is in it.
    """
    removed = 0
    for f in files():
        if wanted is None or wanted(f):
            with contextlib.suppress(OSError):
                f.path.unlink()
                removed += 1
    base = folder()
    if base is None or wanted is not None:
        return removed
    for path, _ in _listed():
        if path.name.startswith(_NEW):
            with contextlib.suppress(OSError):
                path.unlink()
    with contextlib.suppress(OSError, ValueError):
        for shard in [*base.iterdir(), base]:
            if shard is base or len(shard.name) == 2:
                with contextlib.suppress(OSError):
                    shard.rmdir()
    return removed


def verify() -> tuple[int, int]:
    """(good, damaged) entries; damaged ones are removed."""
    good = damaged = 0
    for f in files():
        data = _read(str(f.path))
        if data is None and not os.access(f.path, os.R_OK):
            continue  # another user's
        if data is not None and _decode(data, f.key) is not None:
            good += 1
        else:
            damaged += 1
            with contextlib.suppress(OSError):
                f.path.unlink()
    return good, damaged


def about(file: File) -> tuple[dict[str, str], str] | None:
    """What an entry was made of, and the text of its graph (or the beginning of it); None if it is damaged."""
    import zlib

    data = _read(str(file.path))
    entry = _decode(data, file.key) if data is not None else None
    found = _header(data) if data is not None and entry is not None else None
    if data is None or found is None:
        return None
    _, made_of, at, size = found
    try:
        return made_of, zlib.decompress(data[at + size :]).decode(errors="replace")
    except zlib.error:
        return None


def of_function(name: str) -> list[File]:
    """Some entries of functions of this name, those used last first."""
    base = folder() if config.cache else None
    if base is None:
        return []
    path = Path(_path(base, "", name))
    found = []
    with contextlib.suppress(OSError, ValueError), os.scandir(path.parent) as entries:
        for entry in itertools.islice(entries, _LISTED):
            key = entry.name.partition(".")[0]
            if entry.name.endswith(path.name) and _is_key(key):
                status = entry.stat(follow_symlinks=False)
                found.append(File(Path(entry.path), key, name, status.st_size, status.st_mtime))
    return sorted(found, key=lambda f: f.used, reverse=True)[:_LOOKED_AT]


def text_kept(text: str) -> str:
    """What an entry keeps of a graph's text."""
    return text.encode()[:_TEXT_BYTES].decode(errors="replace")
