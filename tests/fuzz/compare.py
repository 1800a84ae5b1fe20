"""A fuzzed program in NumPy and compiled: what differs, and which stage is to blame."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np

import jitgraph as jg
from jitgraph import errors
from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import CheckFailed, run_program
from jitgraph.codegen.lower import lower
from jitgraph.ir.graph import Graph
from jitgraph.ir.interpret import interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.verifier import verify
from jitgraph.passes.pipeline import PASSES, run_pipeline
from jitgraph.runtime import table
from tests.fuzz.programs import Fuzzed
from tests.loop_programs import copied

#: What a difference in these means nothing: names of functions whose zeros have no promised sign.
_FREE_ZERO = ("max", "min", "clip")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did: results and arguments, or its exception."""

    results: Any
    arguments: list[Any]
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A fault.

    Attributes:
        stage: "capture", a pass, "loops", "machine code", "text" (printer or parser) or "call".
    """

    program: Fuzzed
    call: int
    what: str
    stage: str = ""

    def __str__(self) -> str:
        p = self.program
        calls = "\n".join(f"#   {a}" for a in p.arguments)
        return f"--- seed {p.seed}, call {self.call} {p.calls[self.call]}, guilty: {self.stage}\n{p.source}{calls}\n# {self.what}"


def run(function: Callable[..., Any], arguments: list[Any]) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            results = function(*arguments)
    except Exception as e:  # noqa: BLE001 - any exception is an outcome
        return Outcome(None, arguments, e)
    return Outcome(results, arguments)


def difference(given: list[Any], expected: Outcome, found: Outcome, free_zero: bool) -> str:
    """What differs; empty if nothing does."""
    if (expected.error is None) != (found.error is None):
        error = found.error or expected.error
        return f"{'compiled' if found.error else 'NumPy'} raises {type(error).__name__}: {error}"
    if expected.error is not None and not isinstance(found.error, type(expected.error)):
        if _line_of(found.error) >= _line_of(expected.error) and not any(map(_unlike, given, found.arguments)):
            return ""  # what comes later in the program fails whatever the data: found out while it was traced
        return f"NumPy raises {expected.error!r}, compiled {found.error!r}"
    if found.error is not None and not any(map(_unlike, given, found.arguments)):
        return ""  # found out while it was traced, before anything was written
    for k, (a, b) in enumerate(zip(expected.arguments, found.arguments, strict=True)):
        what = value_difference(a, b, free_zero)
        if what:
            return f"argument {k}: {what}"
    if expected.error is not None:
        return ""
    first, second = flat(expected.results), flat(found.results)
    if len(first) != len(second) or type(expected.results) is not type(found.results):
        return f"structure: {type(expected.results)} of {len(first)}, {type(found.results)} of {len(second)}"
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        what = value_difference(a, b, free_zero)
        if what:
            return f"result {k}: {what}"
    return alias_difference(first, expected.arguments, second, found.arguments)


def _unlike(a: Any, b: Any) -> bool:
    return bool(value_difference(a, b, free_zero=True))


def _line_of(error: BaseException | None) -> int:
    """The line of the program that raised: of the traceback, or named in the message."""
    assert error is not None
    named = re.search(r"<fuzz[^>]*>:([0-9]+)", str(error))
    if named is not None:
        return int(named.group(1))
    lines = [t.tb_lineno for t in _frames(error) if t.tb_frame.f_code.co_name == "program"]
    return lines[-1] if lines else 0


def _frames(error: BaseException) -> Iterator[TracebackType]:
    tb = error.__traceback__
    while tb is not None:
        yield tb
        tb = tb.tb_next


def flat(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def value_difference(a: Any, b: Any, free_zero: bool) -> str:
    if type(a) is not type(b):
        return f"NumPy has a {type(a).__name__} {a!r:.80}, compiled a {type(b).__name__} {b!r:.80}"
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"NumPy has {x.dtype}{x.shape}, compiled {y.dtype}{y.shape}"
    equal = x == y
    if x.dtype.kind == "f":
        nan = np.isnan(x) & np.isnan(y)
        equal |= nan
        if not free_zero:
            equal &= (np.signbit(x) == np.signbit(y)) | nan
    if not np.all(equal):
        at = tuple(int(i) for i in np.argwhere(~equal)[0]) if x.ndim else ()
        return f"{np.count_nonzero(~np.asarray(equal))} of {x.size} elements differ, at {at}: NumPy {x[at]!r}, compiled {y[at]!r}"
    if isinstance(a, np.ndarray) and a.size > 1:
        strides = [(s, t) for s, t, d in zip(a.strides, b.strides, a.shape, strict=True) if d > 1]
        if any(s != t for s, t in strides):
            return f"strides: NumPy {a.strides}, compiled {b.strides} of shape {a.shape}"
        if a.flags.writeable != b.flags.writeable:
            return f"writeable: NumPy {a.flags.writeable}, compiled {b.flags.writeable}"
    return ""


def alias_difference(first: list[Any], given: list[Any], second: list[Any], mine: list[Any]) -> str:
    """Results that are arguments, or share memory with them or with one another, in one run only."""
    arrays = [k for k, x in enumerate(first) if isinstance(x, np.ndarray)]
    inputs = [k for k, x in enumerate(given) if isinstance(x, np.ndarray)]
    for k in arrays:
        for j in inputs:
            if (first[k] is given[j]) != (second[k] is mine[j]):
                return f"result {k} is argument {j} only in {'NumPy' if first[k] is given[j] else 'compiled code'}"
            a, b = np.shares_memory(first[k], given[j]), np.shares_memory(second[k], mine[j])
            if a != b:
                return f"result {k} shares memory with argument {j} only in {'NumPy' if a else 'compiled code'}"
        for j in arrays:
            if j < k:
                a, b = np.shares_memory(first[k], first[j]), np.shares_memory(second[k], second[j])
                if a != b or (first[k] is first[j]) != (second[k] is second[j]):
                    return f"results {k} and {j} share memory only in {'NumPy' if a else 'compiled code'}"
    return ""


class Unsupported(Exception):  # noqa: N818
    """The program uses something that is refused with a TraceError."""


def check(program: Fuzzed, localise: bool = True) -> Difference | None:
    """Compare a program over its calls.

    Raises:
        Unsupported: it cannot be captured.
    """
    fn = program.function()
    jitted = jg.jit(fn, numerics="numpy")
    free_zero = any(name in program.source for name in _FREE_ZERO)
    for call in range(len(program.calls)):
        expected = run(fn, program.make(call))
        found = run(jitted, program.make(call))
        if isinstance(found.error, (errors.TraceError, errors.DTypeError)):
            raise Unsupported(str(found.error).split("\n", maxsplit=1)[0])
        what = difference(program.make(call), expected, found, free_zero)
        if what:
            made = Difference(program, call, what)
            if found.error is not None and expected.error is None:
                shown = traceback.format_exception(found.error)
                made = replace(made, what=what + "\n" + "".join(shown[-4:]).replace("\n", "\n# "))
            return replace(made, stage=guilty(jitted, program, call)) if localise else made
        if call == 0 and found.error is None:
            try:
                bad_text(jitted.graph(*program.make(call)))
            except Exception as e:  # noqa: BLE001
                return Difference(program, call, f"text: {type(e).__name__}: {e}", "text")
    return None


def bad_text(graph: Graph) -> None:
    """Printing and parsing a captured graph, and each graph that the passes make of it, gives the same bytes."""

    def check_one(g: Graph) -> None:
        text = print_graph(g)
        again = print_graph(parse(text))
        assert again == text, f"parse(print(g)) differs:\n{text}\nto\n{again}"

    check_one(graph)
    run_pipeline(graph.clone(), observer=lambda number, name, g, *_: check_one(g))


def shrink(found: Difference) -> Difference:
    """The same kind of fault in fewer lines, by leaving out lines one at a time."""
    kind = _kind(found)
    changed = True
    while changed:
        changed = False
        lines = found.program.lines
        for k in reversed(range(len(lines))):
            for trial in (
                lines[:k] + lines[k + 1 :],
                lines[:k] + [lines[k][: len(lines[k]) - len(lines[k].lstrip())] + "pass"] + lines[k + 1 :],
            ):
                if trial == lines:
                    continue
                smaller = replace(found.program, lines=trial)
                other = _difference_of(smaller)
                if other is not None and _kind(other) == kind:
                    found, changed = other, True
                    break
            if changed:
                break
        if not changed and "," in found.program.returned.rstrip(","):
            parts = _parts(found.program.returned)
            for k in range(len(parts)):
                smaller = replace(found.program, returned=", ".join(parts[:k] + parts[k + 1 :]))
                other = _difference_of(smaller)
                if other is not None and _kind(other) == kind:
                    found, changed = other, True
                    break
    return found


def _parts(text: str) -> list[str]:
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
    what = d.what.split(":")
    return f"{d.stage}/{what[0] if 'raises' in what[0] else ' '.join(what[1:])[:12]}"


def _difference_of(program: Fuzzed) -> Difference | None:
    try:
        return check(program)
    except Exception:  # noqa: BLE001 - the smaller program is none
        return None


# --- who is to blame


def guilty(jitted: Any, program: Fuzzed, call: int) -> str:
    """The first stage whose result differs from the captured graph's; "capture" if none does."""
    try:
        traced = jitted.trace(*program.make(call)).captured
        graph = traced.graph
        arguments = traced.arguments(program.make(call))
        hosts = {k: s.call for k, s in enumerate(graph.sites) if s.call is not None}
        return _first_difference(graph, arguments, hosts)
    except Exception as e:  # noqa: BLE001 - a report must not fail
        return f"{type(e).__name__} in the stages: {str(e).splitlines()[0] if str(e) else e}"


def _first_difference(graph: Graph, arguments: Sequence[Any], hosts: dict[int, Any]) -> str:
    def of_graph(g: Graph) -> Any:
        return _stage(lambda: interpret(g, [copied(a) for a in arguments], hosts))

    try:
        verify(graph)
    except Exception as e:  # noqa: BLE001
        return f"capture ({type(e).__name__}: {str(e).splitlines()[0]})"
    wanted = of_graph(graph)
    stages: list[tuple[str, Any]] = []
    optimised = graph.clone()
    for p in PASSES:
        try:
            run_pipeline(optimised, [p], verify=True)
        except Exception as e:  # noqa: BLE001
            return f"{p.name} ({type(e).__name__}: {e})"
        stages.append((p.name, of_graph(optimised)))
        if not _alike(wanted, stages[-1][1]):
            return p.name
    try:
        program = lower(optimised)
    except Exception as e:  # noqa: BLE001
        return f"lower ({type(e).__name__}: {e})"
    end = optimised.body.terminator
    mutates = end.attrs.get("mutates", ())
    types = [v.type for v in end.operands[: len(end.operands) - len(mutates)]]
    interface = interface_of(program, len(optimised.args), types)

    def loops() -> Any:
        given = [copied(a) for a in arguments]
        try:
            return run_program(program, interface, given, hosts, table.call), [given[k] for k in mutates]
        except CheckFailed as e:
            raise _site_error(optimised, e.site) from None

    if not _alike(wanted, _stage(loops)):
        return "loops"
    from jitgraph.compiler import compile_graph

    executable = compile_graph(graph).executable

    def machine() -> Any:
        given = [copied(a) for a in arguments]
        return executable(*given), [given[k] for k in mutates]

    return "capture" if _alike(wanted, _stage(machine)) else "machine code"


def _site_error(graph: Graph, site: int) -> BaseException:
    from jitgraph.ir.interpret import exception_of

    return exception_of(graph.sites[site], "")


def _stage(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as e:  # noqa: BLE001 - any exception is an outcome
        return e


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a).__name__ == type(b).__name__
    if a is None or b is None or a[0] is None or b[0] is None:
        return False
    return all(not value_difference(x, y, free_zero=True) for x, y in zip([*a[0], *a[1]], [*b[0], *b[1]], strict=True))
