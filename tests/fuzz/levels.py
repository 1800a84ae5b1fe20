"""A program at every level: NumPy, the captured graph, the graph behind the passes, the loops, the loops behind their
passes (`schedule`), machine code.

`check` compares each level with eager NumPy. The interpreted levels are compared by values, dtypes, shapes and kinds;
machine code, called as users call it, in everything.
"""

from __future__ import annotations

import functools
import itertools
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np

import jitgraph as jg
from jitgraph import compiler, errors
from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import CheckFailed, run_program
from jitgraph.codegen.loops import Program
from jitgraph.codegen.loops_printer import print_program
from jitgraph.codegen.loops_verify import verify
from jitgraph.codegen.lower import lower
from jitgraph.compiler import Stages
from jitgraph.ir.dims import Facts
from jitgraph.ir.graph import Graph
from jitgraph.ir.interpret import Deoptimise, exception_of, interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.passes.pipeline import PASSES, run_pipeline
from jitgraph.runtime import table
from jitgraph.schedule import pipeline as schedule
from jitgraph.specialise import Specialisation
from jitgraph.tracing.trace import call_key
from tests.fuzz.compare import Outcome, difference, layout_difference, run, undefined, value_difference
from tests.fuzz.programs import Fuzzed
from tests.loop_programs import copied

#: Names of functions whose zeros have no promised sign.
FREE_ZERO = ("max", "min", "clip")
_SHRINK_SECONDS, _INTERPRET_SECONDS = 3, 4
LEVELS = ("graph", "passes", "loops", "schedule", "machine code")


@dataclass(frozen=True, slots=True)
class Difference:
    """A fault.

    Attributes:
        stage: "capture", a pass, "loops", a pass of the schedule, "machine code" or "text" (printer or parser).
    """

    program: Fuzzed
    call: int
    what: str
    stage: str = ""

    def __str__(self) -> str:
        p = self.program
        calls = "\n".join(f"#   {a}" for a in p.arguments)
        return f"--- seed {p.seed}, call {self.call} {p.calls[self.call]}, guilty: {self.stage}\n{p.source}{calls}\n# {self.what}"


@dataclass(slots=True)
class Counts:
    """What was compared: calls at each level, those that ran in plain Python, refused programs by text.

    Attributes:
        layouts: results that lie in memory in another way than NumPy's: no faults, but worth having.
    """

    programs: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    layouts: list[str] = field(default_factory=list)


class Unsupported(Exception):  # noqa: N818
    """The program uses something that is refused with a TraceError."""


class TooLong(BaseException):
    """Python code takes too long; no Exception, so that it is no outcome of a call."""


def _too_long(*_: object) -> None:
    raise TooLong


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """End Python code that takes longer, by `TooLong`; an alarm that was set goes on."""
    handler = signal.signal(signal.SIGALRM, _too_long)
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.alarm(left)


@contextmanager
def limited_work(seconds: float) -> Iterator[None]:
    """The same by the processor's time, which does not depend on what else the machine does; not to be nested."""
    handler = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


@contextmanager
def kept_stages() -> Iterator[dict[int, Stages]]:
    """The stages of the graphs compiled meanwhile, by `id` of the graph, so that none is made twice."""
    made: dict[int, Stages] = {}

    def keep(graph: Graph, *rest: Any) -> Stages:
        return made.setdefault(id(graph), Stages(graph, *rest))

    with mock.patch.object(compiler, "Stages", keep):
        yield made


class Levels:
    """The interpreted levels of one specialisation; `stages` are those its machine code was made by."""

    def __init__(self, specialisation: Specialisation, stages: Stages | None = None) -> None:
        self.specialisation = specialisation
        self.graph = specialisation.graph
        self.stages = stages or Stages(self.graph)
        self.hosts = {k: s.call for k, s in enumerate(self.graph.sites) if s.call is not None}
        end = self.graph.body.terminator
        self.mutates: tuple[int, ...] = end.attrs.get("mutates", ())
        self.plain: Program | None = None

    def of_graph(self, graph: Graph, args: list[Any]) -> list[Any]:
        """The fresh results; `args` get their last values."""
        made, mutated = interpret(graph, [copied(x) for x in args], self.hosts)
        for k, x in zip(self.mutates, mutated, strict=True):
            if args[k].flags.writeable:  # else nothing was written when it ran
                args[k][...] = x
        return made

    def captured(self, args: list[Any]) -> list[Any]:
        return self.of_graph(self.graph, args)

    def final(self, args: list[Any]) -> list[Any]:
        return self.of_graph(self.stages.final(), args)

    def loops(self, args: list[Any]) -> list[Any]:
        if self.plain is None:
            self.plain = lower(self.stages.final())
        return self.of_loops(self.plain, args)

    @functools.cached_property
    def unchanged(self) -> bool:
        """Whether the passes over loops leave the program as it is."""
        return self.plain is not None and print_program(self.plain) == print_program(self.stages.program())

    def schedule(self, args: list[Any]) -> list[Any]:
        program = self.stages.program()
        verify(program)
        return self.of_loops(program, args)

    def of_loops(self, program: Program, args: list[Any]) -> list[Any]:
        final = self.stages.final()
        end = final.body.terminator
        types = [v.type for v in end.operands[: len(end.operands) - len(self.mutates)]]
        interface = interface_of(program, len(final.args), types)
        try:
            made = run_program(program, interface, args, self.hosts, table.call, poison=True)
        except CheckFailed as e:
            raise exception_of(final.sites[e.site], "") from None
        if made is None:
            raise errors.InternalError("a guard of the loops does not hold")
        return list(made)

    def outcome(self, level: str, arguments: list[Any]) -> Outcome | None:
        """What a call gives at a level; None if it is to run in plain Python."""
        args = self.specialisation.trace.arguments(arguments)
        make = {"graph": self.captured, "passes": self.final, "loops": self.loops, "schedule": self.schedule}[level]
        try:
            with np.errstate(all="ignore"):
                results = self.specialisation._result(make(args), args, (tuple(arguments), {}))
        except Deoptimise:
            return None
        except Exception as e:  # noqa: BLE001 - any exception is an outcome
            return Outcome(None, arguments, e)
        return Outcome(results, arguments)


def serving(jitted: Any, arguments: list[Any]) -> Specialisation | None:
    """The specialisation that serves a call; None if it runs in plain Python."""
    dispatcher = jitted._dispatcher
    leaves, tree = dispatcher._flatten(tuple(arguments), {})
    for item in dispatcher.cache.get(call_key(leaves, tree, dispatcher.trace_options.specialize)):
        if not isinstance(item, Specialisation) or not item.trace.valid(leaves):
            continue
        args = item.trace.arguments(leaves)
        if item.trace.writes and item.trace.overlaps(args):
            return None
        try:
            frame = item.compiled.executable.prepare(args)
        except Exception:  # noqa: BLE001 - the call runs in Python
            return None
        if frame is not None:
            frame.done(item.compiled.executable.pool)
            return item
    return None


def check(program: Fuzzed, counts: Counts | None = None, interpreted: Sequence[str] = LEVELS[:-1]) -> Difference | None:
    """Compare a program over its calls, at each level: those of `interpreted`, and as machine code.

    Raises:
        Unsupported: it cannot be captured.
    """
    with kept_stages() as stages:
        return _check(program, Counts() if counts is None else counts, interpreted, stages)


def _check(program: Fuzzed, counts: Counts, interpreted: Sequence[str], stages: dict[int, Stages]) -> Difference | None:
    fn = program.function()
    jitted = jg.jit(fn, numerics="numpy")
    free_zero = any(name in program.source for name in FREE_ZERO)
    known: dict[int, Levels] = {}
    for call in range(len(program.calls)):
        given = program.make(call)
        expected = run(fn, program.make(call))
        if isinstance(expected.error, MemoryError):
            continue
        found = run(jitted, program.make(call))
        if isinstance(found.error, errors.TraceError):
            raise Unsupported(str(found.error).split("\n", maxsplit=1)[0])
        what = difference(given, expected, found, free_zero=free_zero)
        if what and undefined(fn, functools.partial(program.make, call)):
            counts.levels["left out"] += 1
            continue
        layout = "" if what or expected.error is not None else layout_difference(expected, found)
        if layout:
            counts.layouts.append(layout)
        served = serving(jitted, program.make(call))
        if served is None:
            counts.levels["plain Python"] += 1
            if what:
                return Difference(program, call, shown(what, expected, found), "capture")
            continue
        levels = known.setdefault(id(served), Levels(served, stages.get(id(served.graph))))
        for level in interpreted:
            if level == "schedule" and levels.unchanged:
                counts.levels[level] += 1
                continue
            try:
                with limited(_INTERPRET_SECONDS):
                    outcome = levels.outcome(level, program.make(call))
            except TooLong:
                counts.levels[f"{level} given up as slow"] += 1
                continue
            if outcome is None:
                counts.levels["plain Python"] += 1
                continue
            counts.levels[level] += 1
            other = difference(given, expected, outcome, free_zero=free_zero, memory=False)
            if other and undefined(fn, functools.partial(program.make, call)):
                counts.levels["left out"] += 1
            elif other:
                blame = {"passes": _pass_to_blame, "schedule": _loop_pass_to_blame}.get(level)
                stage = blame(levels, program, call) if blame else {"graph": "capture"}.get(level, level)
                return Difference(program, call, shown(other, expected, outcome), stage)
        counts.levels["machine code"] += 1
        if what:
            plain = difference(given, expected, found, free_zero=free_zero, memory=False)
            return Difference(program, call, shown(what, expected, found), "machine code" if plain else "capture")
        if call == 0 and found.error is None:
            try:
                bad_text(served.graph)
            except Exception as e:  # noqa: BLE001
                return Difference(program, call, f"text: {type(e).__name__}: {e}", "text")
    return None


def shown(what: str, expected: Outcome, found: Outcome) -> str:
    """With the traceback of an error that only we raise."""
    if found.error is None or expected.error is not None:
        return what
    lines = "".join(traceback.format_exception(found.error)[-4:])
    return what + "\n" + lines.replace("\n", "\n# ")


def bad_text(graph: Graph) -> None:
    """Printing and parsing a graph gives the same bytes."""
    text = print_graph(graph)
    again = print_graph(parse(text))
    assert again == text, f"parse(print(g)) differs:\n{text}\nto\n{again}"


def _pass_to_blame(levels: Levels, program: Fuzzed, call: int) -> str:
    """The first pass behind which the graph gives other results than before."""

    def result(graph: Graph) -> Any:
        args = levels.specialisation.trace.arguments(program.make(call))
        try:
            made = levels.of_graph(graph, args)
        except Exception as e:  # noqa: BLE001 - any exception is an outcome
            return e
        return [*made, *(args[k] for k in levels.mutates)]

    wanted = result(levels.graph)
    graph = levels.graph.clone()
    for p in PASSES:
        try:
            run_pipeline(graph, [p], verify=True)
        except Exception as e:  # noqa: BLE001
            return f"{p.name} ({type(e).__name__}: {e})"
        if not _alike(wanted, result(graph)):
            return p.name
    return "passes"


def _loop_pass_to_blame(levels: Levels, program: Fuzzed, call: int) -> str:
    """The first pass of the schedule behind which the loops give other results than before."""

    def result(made: Program) -> Any:
        args = levels.specialisation.trace.arguments(program.make(call))
        try:
            return [*levels.of_loops(made, args), *(args[k] for k in levels.mutates)]
        except Exception as e:  # noqa: BLE001 - any exception is an outcome
            return e

    graph = levels.stages.final()
    wanted = result(lower(graph.clone()))
    for k in itertools.count(1):
        reached: list[str] = []

        def some(p: Program, facts: Facts, stages: int = k, reached: list[str] = reached) -> Program:
            staged = p
            for name, staged in itertools.islice(schedule.stages(p, facts), stages):
                reached.append(name)
                verify(staged)
            return staged

        try:
            made = lower(graph.clone(), some)
        except Exception as e:  # noqa: BLE001
            return f"schedule: {reached[-1] if reached else ''} ({type(e).__name__}: {e})"
        if len(reached) < k:
            break
        if not _alike(wanted, result(made)):
            return f"schedule: {reached[-1]}"
    return "schedule"


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a).__name__ == type(b).__name__
    return all(not value_difference(x, y, free_zero=True, memory=False) for x, y in zip(a, b, strict=True))


# --- smaller programs with the same fault


def shrink(found: Difference) -> Difference:
    """The same kind of fault in fewer lines and results, by leaving out one at a time."""
    kind = _kind(found)
    changed = True
    end = time.monotonic() + 6 * _SHRINK_SECONDS
    while changed and time.monotonic() < end:
        changed = False
        for smaller in _smaller(found.program):
            other = _difference_of(smaller)
            if other is not None and _kind(other) == kind:
                found, changed = other, True
                break
    return found


def _smaller(program: Fuzzed) -> list[Fuzzed]:
    lines = program.lines
    found: list[Fuzzed] = []
    for k in reversed(range(len(lines))):
        passed = lines[k][: len(lines[k]) - len(lines[k].lstrip())] + "pass"
        found.append(replace(program, lines=lines[:k] + lines[k + 1 :]))
        if passed != lines[k]:
            found.append(replace(program, lines=[*lines[:k], passed, *lines[k + 1 :]]))
    parts = _parts(program.returned)
    if len(parts) > 1:
        found += [replace(program, returned=", ".join(parts[:k] + parts[k + 1 :])) for k in range(len(parts))]
    if len(program.calls) > 1:
        found += [replace(program, calls=[c]) for c in program.calls]
    return found


def _parts(text: str) -> Sequence[str]:
    if text.startswith("{"):
        return [p.split(": ", maxsplit=1)[1] for p in _parts(text[1:-1]) if p]
    if text.startswith("["):
        return _parts(text[1:-1])
    parts, depth = [""], 0
    for c in text.rstrip(","):
        depth += c in "[("
        depth -= c in "])"
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def _kind(d: Difference) -> str:
    what = d.what.split("\n", maxsplit=1)[0].split(":")
    return f"{d.stage.split(' (')[0]}/{what[0] if 'raises' in what[0] else ' '.join(what[1:])[:12]}"


def _difference_of(program: Fuzzed) -> Difference | None:
    """What a smaller program shows; NumPy runs it first, so that a loop without an end is found there."""
    try:
        fn = program.function()
        with limited(_SHRINK_SECONDS):
            for call in range(len(program.calls)):
                run(fn, program.make(call))
        return check(program)
    except (Exception, TooLong):  # noqa: BLE001 - the smaller program is none
        return None
