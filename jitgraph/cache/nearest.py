"""Why a graph was not in the disk cache: what differs from the nearest entry of a function of the same name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from posixpath import commonprefix

from jitgraph.cache import disk
from jitgraph.cache.key import Parts

_SHOWN = 100


def difference(key: str, name: str, made_of: Parts, text: str) -> str:
    """One sentence for people: what the nearest entry was made of that this key is not.

    Args:
        key: of the graph, which may be stored by now.
        text: the graph's canonical text.
    """
    return difference_from_now(key, name, made_of, text)()


def difference_from_now(key: str, name: str, made_of: Parts, text: str) -> Callable[[], str]:
    """`difference` to the entries that are there now; they are read when somebody asks."""
    if disk.folder() is None:
        return lambda: "there is no home for a disk cache (set JITGRAPH_CACHE_DIR)"
    return partial(_difference, disk.of_function(name), key, name, made_of, disk.text_kept(text))


def _difference(files: Sequence[disk.File], key: str, name: str, made_of: Parts, kept: str) -> str:
    best: tuple[tuple[int, int], str] | None = None
    for file in files:
        found = disk.about(file) if file.key != key else None
        if found is None:
            continue
        about, other = found
        changed = [_part(p, about.get(p, ""), now) for p, now in made_of._asdict().items() if about.get(p, "") != now]
        lines = _lines(other, kept)
        if other != kept or not changed:
            changed.append(_graph(other, kept))
        rank = (len(changed), lines)
        if best is None or rank < best[0]:
            best = (rank, "; ".join(changed))
    if best is None:
        return f"no function named {name} is in it"
    return best[1]


def _part(part: str, old: str, new: str) -> str:
    if part == "jitgraph":
        return "jitgraph's sources changed"
    if part == "cpu":
        gone, come = (sorted(set(_features(a)) - set(_features(b))) for a, b in ((old, new), (new, old)))
        return f"the CPU changed: {_some(gone)} -> {_some(come)}"
    return f"{part} changed: {old or 'none'} -> {new or 'none'}"


def _features(cpu: str) -> list[str]:
    return [f for f in cpu.replace(";", ",").split(",") if f]


def _some(texts: list[str]) -> str:
    return " ".join(texts[:6]) + (" ..." if len(texts) > 6 else "") if texts else "nothing"


def _lines(old: str, new: str) -> int:
    """How many lines are in one text only."""
    a, b = Counter(old.splitlines()), Counter(new.splitlines())
    return (a - b).total() + (b - a).total()


def _graph(old: str, new: str) -> str:
    """The first line in which the texts differ; of long ones the part around the first difference."""
    if old == new:
        return "the graph differs behind what entries keep of its text"
    a, b = old.splitlines(), new.splitlines()
    at = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    was, now = (t[at].strip() if at < len(t) else "(end)" for t in (a, b))
    start = max(0, len(commonprefix([was, now])) - _SHOWN // 4)
    start = was.rfind(" ", 0, start) + 1 if max(len(was), len(now)) > _SHOWN else 0
    return f"the graph changed in line {at + 1}: `{_part_of(was, start)}` -> `{_part_of(now, start)}`"


def _part_of(line: str, start: int) -> str:
    part = line[start : start + _SHOWN]
    return ("... " if start else "") + part + (" ..." if start + _SHOWN < len(line) else "")
