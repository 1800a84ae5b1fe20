"""Traces from disk against fresh ones: programs run in a process that traces them, then in one that recalls the traces.

Both processes run each call of each program in NumPy and compiled. The first traces each call by itself, without a
cache, and then all calls through one jitted function, which leaves its traces on disk. The second has a new function for each
call, in reverse order, so that traces are found by other calls than those they were made for; and one function for
all calls, several times over, which native code serves in the end. What a recalled trace gives has to be what the fresh one
gave, in all that can be seen; and where fresh ones agree with NumPy, so do recalled ones.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jitgraph as jg
from jitgraph import errors, recall
from jitgraph.config import config
from jitgraph.tracing import portable
from tests.e2e.programs import aliases, arrays_of, is_object, public_class, same
from tests.fuzz.arguments import FLOATS, INTEGERS, LAYOUTS, SIZES, Argument, make_arguments
from tests.fuzz.compare import Outcome, difference, layout_difference, run
from tests.fuzz.levels import TooLong, limited
from tests.fuzz.programs import Fuzzed, draw

#: Files of `tests/e2e` with programs as users write them.
USERS = tuple(
    f"test_programs_{name}"
    for name in ("algorithms", "arrays", "equations", "gradients", "learning", "sizes", "small", "structure")
)
#: Of these: what they round depends on how often they were called.
_COUNTING = ("written_global_array",)
_SECONDS = 5
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
#: Calls of each fuzzed program with arguments of other kinds than it was drawn for.
_VARIED = 4
#: How often the second process goes over all calls through one function: native code serves the last round.
_ROUNDS = 3
#: Names of functions whose zeros have no promised sign.
_FREE_ZERO = ("max", "min", "clip")
#: Options of fuzzed programs by seed; `exp` and the like are NumPy's own, and calls back, with the last of them.
_OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"specialize": "shape"}, {}, {}, {"fastmath": True}, {"numerics": "numpy"},
)  # fmt: skip
_DTYPES = (*FLOATS, *INTEGERS, "bool", "complex64", "complex128", "float16", ">f8", ">i4")


class Subject(NamedTuple):
    """A function and its calls.

    Attributes:
        calls: each makes fresh arguments, equal each time.
        differs: what is not NumPy's, of the arguments before the call and two outcomes; empty if nothing.
    """

    name: str
    function: Callable[..., Any]
    calls: Sequence[Callable[[], list[Any]]]
    options: dict[str, Any]
    differs: Callable[[list[Any], Outcome, Outcome], str]


@dataclass(slots=True)
class Seen:
    """What a process saw.

    Attributes:
        calls: (subject, call, round) to what can be seen of it, and in what it differs from NumPy.
        counts: specialisations that were recalled and traced.
        refused: why traces were not kept.
    """

    calls: dict[tuple[str, int, str], tuple[Any, str]] = field(default_factory=dict)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: collections.Counter[str] = field(default_factory=collections.Counter)


# --- what is run


def fuzzed_subjects(folder: Path) -> Iterator[Subject]:
    """The programs that `write` has put in a folder, as functions of modules."""
    for program in pickle.loads((folder / "programs.pickle").read_bytes()):
        name = _module_name(program)
        found = importlib.import_module(name).program
        free_zero = any(f in program.source for f in _FREE_ZERO)
        options = _OPTIONS[program.seed % len(_OPTIONS)]
        yield Subject(name, found, list(_calls(program)), options, partial(_difference, free_zero))


def user_subjects(module: str) -> Iterator[Subject]:
    """The programs of one file of `tests/e2e`."""
    for p in importlib.import_module(f"tests.e2e.{module}").programs:
        if p.fn.__name__ in _COUNTING:
            continue
        calls = [lambda p=p, n=n: list(p.arguments(n)) for n in (*p.sizes, 4, 33)]
        yield Subject(f"{module}.{p.fn.__name__}", p.fn, calls, {"numerics": "numpy"}, partial(_user_difference, p.ulp))


def _difference(free_zero: bool, given: list[Any], expected: Outcome, found: Outcome) -> str:
    what = difference(given, expected, found, free_zero=free_zero)
    return what if what or expected.error is not None else layout_difference(expected, found)


def _user_difference(ulp: float, given: list[Any], expected: Outcome, found: Outcome) -> str:
    if expected.error is not None or found.error is not None:
        kinds = [None if x.error is None else public_class(x.error) for x in (expected, found)]
        return "" if kinds[0] is kinds[1] else f"NumPy raises {expected.error!r}, compiled {found.error!r}"
    try:
        same(found.results, expected.results, ulp, "result")
        same(found.arguments, expected.arguments, ulp, "argument")
        assert aliases(found.results, found.arguments) == aliases(expected.results, expected.arguments), "aliases"
    except AssertionError as e:
        return str(e)
    return ""


def write(folder: Path, programs: Sequence[Fuzzed]) -> None:
    """Put programs in a folder, a module each."""
    (folder / "programs.pickle").write_bytes(pickle.dumps(programs))
    for program in programs:
        (folder / f"{_module_name(program)}.py").write_text(f"import numpy as np\n\n\n{program.source}")


def _module_name(program: Fuzzed) -> str:
    return f"fuzzed_{program.seed}"


def _calls(program: Fuzzed) -> Iterator[Callable[[], list[Any]]]:
    for k in range(len(program.calls)):
        yield lambda k=k: program.make(k)
    r = random.Random(program.seed)
    for k in range(_VARIED):
        arguments = vary(program.arguments, r)
        sizes = r.choice(program.calls)
        if r.random() < 0.3:
            sizes = {name: r.choice((1, *SIZES[:9])) for name in sizes}
        call = len(program.calls) + k if r.random() < 0.5 else 0
        try:
            make_arguments(arguments, sizes, call)
        except Exception:  # noqa: BLE001 - no such view of what is now another array
            continue
        yield lambda a=arguments, s=sizes, c=call: make_arguments(a, s, c)


def vary(arguments: list[Argument], r: random.Random) -> list[Argument]:
    """Arguments of which one or two have another dtype or layout, or are another one."""
    made = list(arguments)
    for _ in range(r.randint(0, 2)):
        k = r.randrange(len(made))
        if made[k].kind != "array":
            kind = r.choice(("int", "float", "bool", "scalar"))
            made[k] = (
                replace(made[k], kind=kind, dtype=r.choice(FLOATS)) if made[k].kind in ("int", "float") else made[k]
            )
        elif k and r.random() < 0.25:
            made[k] = replace(made[k], kind="same", of=r.randrange(k))
        elif r.random() < 0.5:
            made[k] = replace(made[k], dtype=r.choice(_DTYPES))
        else:
            made[k] = replace(made[k], layout=r.choice(LAYOUTS))
    return made


# --- one process


def process(subjects: Iterator[Subject], *, first: bool) -> Seen:
    """Run all subjects in this process, as the one that traces, or the one that recalls."""
    seen = Seen()
    _count(seen)
    for subject in subjects:
        try:
            with limited(8 * _SECONDS):
                (_trace if first else _recall)(subject, seen)
        except TooLong:
            seen.counts["too long"] += 1
    return seen


def _trace(subject: Subject, seen: Seen) -> None:
    kept = _jitted(subject)
    for k in range(len(subject.calls)):
        _note(subject, k, "one function", kept, seen)
        with config.override(cache=False):
            _note(subject, k, "fresh", _jitted(subject), seen)


def _recall(subject: Subject, seen: Seen) -> None:
    for k in reversed(range(len(subject.calls))):
        _note(subject, k, "recalled", _jitted(subject), seen)
    kept = _jitted(subject)
    for n in range(_ROUNDS):
        for k in range(len(subject.calls)):
            _note(subject, k, f"one function, round {n + 1}", kept, seen)


def _jitted(subject: Subject) -> Any:
    return jg.jit(subject.function, **subject.options)


def _note(subject: Subject, call: int, how: str, jitted: Any, seen: Seen) -> None:
    make = subject.calls[call]
    expected = run(subject.function, make())
    if isinstance(expected.error, MemoryError) or visible(run(subject.function, make())) != visible(expected):
        return  # it has a state
    before = seen.counts["recalled"]
    found = run(jitted, make())
    if seen.counts["recalled"] > before:
        seen.counts["calls of recalled traces"] += 1
    if isinstance(found.error, errors.TraceError):
        what = ""
    else:
        what = subject.differs(make(), expected, found)
    seen.calls[subject.name, call, how] = (visible(found), what)
    seen.counts["calls"] += 1


def _count(seen: Seen) -> None:
    """Have what is recalled, and what is not kept, counted."""
    find, put = recall.Recall.find, portable.write

    def counted_find(self: Any, *args: Any) -> Any:
        found = find(self, *args)
        seen.counts["traced" if found.made is None else "recalled"] += 1
        return found

    def counted_write(*args: Any) -> Any:
        try:
            return put(*args)
        except portable.Refused as e:
            seen.refused[str(e)] += 1
            raise

    recall.Recall.find = counted_find  # type: ignore[method-assign]
    portable.write = counted_write


def visible(outcome: Outcome) -> Any:
    """All that can be seen of a call, as plain data: of the error, or results, arguments, and what they share."""
    given = [_plain(x) for x in outcome.arguments]
    if outcome.error is not None:
        e = outcome.error
        return type(e).__name__, str(e), getattr(e, "__notes__", []), given
    arrays = arrays_of([outcome.results, *outcome.arguments])
    shared = [
        (i, k, x is y)
        for i, x in enumerate(arrays)
        for k, y in enumerate(arrays[:i])
        if x is y or np.shares_memory(x, y)
    ]
    return _plain(outcome.results), given, shared


def _plain(x: Any) -> Any:
    """All of a value, with its memory, as plain data."""
    if isinstance(x, np.ndarray | np.generic):
        flags = x.flags
        memory = (x.strides, flags.writeable, flags.owndata, flags.aligned, x.base is None)
        return type(x).__name__, x.dtype.str, x.shape, memory, repr(x.tolist())
    if isinstance(x, tuple | list):
        return type(x).__name__, [_plain(i) for i in x]
    if isinstance(x, dict):
        return type(x).__name__, [(repr(k), _plain(v)) for k, v in x.items()]
    if is_object(x):
        return type(x).__name__, _plain(vars(x))
    return type(x).__name__, _ADDRESS.sub("", repr(x))


# --- both processes


class Report(NamedTuple):
    """What two processes saw.

    Attributes:
        faults: texts.
        counts: of the second process.
        refused: why the first one kept no trace.
    """

    faults: list[str]
    counts: collections.Counter[str]
    refused: collections.Counter[str]


def compare(subjects: str, folder: Path, package: str = "") -> Report:
    """Run subjects in two processes that share a cache.

    Args:
        subjects: "" for the programs written in the folder, or a file of `tests/e2e`.
        package: a folder with a copy of jitgraph: an edit of its sources between the processes would empty the cache.
    """
    env = {**os.environ, "JITGRAPH_CACHE_DIR": str(folder / "cache")}
    env["PYTHONPATH"] = os.pathsep.join([package, *sys.path] if package else sys.path)
    for name in ("JITGRAPH_VERIFY", "JITGRAPH_CACHE", "JITGRAPH_DUMP"):
        env.pop(name, None)
    seen = []
    for part in ("first", "second"):
        command = [sys.executable, "-m", "tests.fuzz.recalled", str(folder), part, subjects]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            return Report(
                [f"the {part} process ends with {done.returncode}\n{done.stderr[-3000:]}"], *[collections.Counter()] * 2
            )
        seen.append(Seen(*pickle.loads((folder / f"{part}.pickle").read_bytes())))
    first, second = seen
    return Report(list(_faults(first, second)), second.counts, first.refused)


def _faults(first: Seen, second: Seen) -> Iterator[str]:
    """A text for each program with a fault."""
    named: set[str] = set()
    for (name, call, how), (found, what) in second.calls.items():
        fresh, known = first.calls.get((name, call, "fresh"), (None, ""))
        kept = first.calls.get((name, call, "one function"), (None, ""))[0]
        if name in named or fresh is None:
            continue
        if found not in (fresh, kept):
            said, other = _apart(fresh, found)
            yield f"{name}, call {call}, {how}: fresh: {said!r:.300}; recalled: {other!r:.300} {what}"
            named.add(name)
        elif what and not known:
            yield f"{name}, call {call}, {how}: {what}"
            named.add(name)


def _apart(a: Any, b: Any) -> tuple[Any, Any]:
    """The first parts that differ."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b):
        for x, y in zip(a, b, strict=True):
            if x != y:
                return _apart(x, y)
    return a, b


def check(seeds: Sequence[int], features: frozenset[str], package: str = "") -> Report:
    """Compare the programs of some seeds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warnings.simplefilter("ignore")
        programs = [draw(seed, features) for seed in seeds]
        write(folder, programs)
        report = compare("", folder, package)
        sources = {_module_name(p): p.source for p in programs}
        faults = [f"{f}\n{sources.get(f.partition(',')[0], '')}" for f in report.faults]
        return report._replace(faults=faults)


def check_users(module: str) -> Report:
    """Compare the programs of a file of `tests/e2e`."""
    with tempfile.TemporaryDirectory() as name:
        return compare(module, Path(name))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.recalled")
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", choices=("first", "second"))
    parser.add_argument("subjects")
    given = parser.parse_args()
    signal.alarm(600)
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(given.folder))
    sys.dont_write_bytecode = True
    subjects = user_subjects(given.subjects) if given.subjects else fuzzed_subjects(given.folder)
    seen = process(subjects, first=given.part == "first")
    (given.folder / f"{given.part}.pickle").write_bytes(pickle.dumps((seen.calls, seen.counts, seen.refused)))


if __name__ == "__main__":
    main()
