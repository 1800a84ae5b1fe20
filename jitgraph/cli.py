"""`python -m jitgraph`: look after the disk cache, print the settings and the table of NumPy's functions."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from jitgraph.cache import disk
from jitgraph.cache.key import Parts
from jitgraph.compiler import made_now
from jitgraph.config import config
from jitgraph.runtime.prebuilt import ANY_CPU


def _cache(action: str, function: str, stale: bool) -> tuple[str, int]:
    """What a command says, and the status to exit with."""
    if action == "verify":
        good, damaged = disk.verify()
        return f"{good} good, {damaged} damaged and removed", int(damaged > 0)
    if action == "clear":
        wanted = None if not (function or stale) else _Wanted(function, stale)
        return f"{disk.clear(wanted)} entries removed", 0
    if action == "ls":
        wanted = _Wanted(function, stale)
        return "\n".join(_line(f) for f in sorted(disk.files(), key=lambda f: -f.used) if wanted(f)), 0
    return _info(), 0


class _Wanted:
    """Which entries a command is about."""

    def __init__(self, function: str, stale: bool) -> None:
        self.function = function
        self.now = made_now() if stale else None

    def __call__(self, file: disk.File) -> bool:
        found = disk.about(file)
        about = found[0] if found else {}
        if self.function and about.get("function") != self.function:
            return False
        return self.now is None or _is_stale(about, self.now)


def _is_stale(about: dict[str, str], now: Parts) -> bool:
    """Whether no process with these versions on this CPU would read the entry."""
    parts = ["jitgraph", "llvmlite", "numpy"]
    if not about.get("cpu", "").endswith(ANY_CPU):
        parts.append("cpu")
    return any(about.get(part) != getattr(now, part) for part in parts)


def _line(file: disk.File) -> str:
    found = disk.about(file)
    used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(file.used))
    what = (
        (found[0].get("graph") or f"@{found[0].get('function', file.name)}")
        if found
        else "(damaged, of an older format, or not ours to read)"
    )
    return f"{used} {file.bytes:>8} {file.key[:12]} {what.removeprefix('graph ').removesuffix(' {')}"


def _info() -> str:
    base = disk.folder()
    if base is None:
        return "no folder: there is no home; set JITGRAPH_CACHE_DIR"
    entries = list(disk.files())
    now = made_now()
    stale = sum(map(_Wanted("", stale=True), entries))
    rest = list(disk.left_over(disk.now_of_files()))
    above = next(p for p in (base, *base.absolute().parents) if p.exists())
    lines = [
        f"folder       {base}",
        f"switched on  {'yes' if config.cache else 'no (JITGRAPH_CACHE)'}",
        f"writable     {'yes' if above.is_dir() and os.access(above, os.W_OK) else 'no'}",
        f"entries      {len(entries)} of {len({f.name for f in entries})} functions",
        f"bytes        {sum(f.bytes for f in entries)} of {config.cache_bytes}",
        f"stale        {stale} of other versions or another CPU",
        f"left over    {len(rest)} files of killed processes, {sum(size for _, size in rest)} bytes",
        f"now          jitgraph {now.jitgraph[:12]}, llvmlite {now.llvmlite}, numpy {now.numpy}",
        f"CPU          {now.cpu.split(';')[1]}",
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m jitgraph", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    cache = commands.add_parser("cache", help="the disk cache")
    cache.add_argument(
        "action",
        choices=("info", "ls", "verify", "clear"),
        help="folder and sizes; entries, last used first; remove damaged ones (status 1 if there are any); remove all",
    )
    cache.add_argument("--function", default="", help="ls, clear: only entries of functions of this name")
    cache.add_argument("--stale", action="store_true", help="ls, clear: only entries of other versions or another CPU")
    commands.add_parser("config", help="the settings and their values")
    commands.add_parser("functions", help="which NumPy functions compiled code has, and how: docs/functions.md")
    options = parser.parse_args(argv)
    status = 0
    if options.command == "functions":
        from jitgraph.observe.functions import table  # loads the tracer

        text = table().rstrip("\n")
    elif options.command == "cache":
        text, status = _cache(options.action, options.function, options.stale)
    else:
        text = repr(config)
    if text:
        sys.stdout.write(f"{text}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
