"""`python -m jitgraph`: look after the disk cache, print the settings and the table of NumPy's functions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from jitgraph.cache import disk
from jitgraph.config import config


def _cache(action: str) -> str:
    if action == "verify":
        good, damaged = disk.verify()
        return f"{good} good, {damaged} damaged and removed"
    if action == "clear":
        return f"{disk.trim(0)} entries removed"
    entries = list(disk.files())
    if action == "ls":
        return "\n".join(f"{status.st_size:>9} {path.stem}" for path, status in entries)
    size = sum(status.st_size for _, status in entries)
    return f"{disk.folder()}: {len(entries)} entries, {size} of {config.cache_bytes} bytes"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m jitgraph", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    cache = commands.add_parser("cache", help="the disk cache")
    cache.add_argument("action", choices=("info", "ls", "verify", "clear"))
    commands.add_parser("config", help="the settings and their values")
    commands.add_parser("functions", help="which NumPy functions compiled code has, and how: docs/functions.md")
    options = parser.parse_args(argv)
    if options.command == "functions":
        from jitgraph.observe.functions import table  # loads the tracer

        text = table().rstrip("\n")
    else:
        text = _cache(options.action) if options.command == "cache" else repr(config)
    if text:
        sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
