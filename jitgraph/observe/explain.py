"""`f.explain(*args)`: for each line of the user's function, the kernel it went to, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jitgraph.codegen.loops import Alloc, CallKernel, For, If, Library, Program, Stmt, While
from jitgraph.ir.dims import DimLike, evaluate, symbols
from jitgraph.ir.graph import Graph, Op
from jitgraph.ir.opdef import BRANCHES, Trait
from jitgraph.records import dataclass, field
from jitgraph.source import SourceLoc


class Kernel(NamedTuple):
    """One loop nest of machine code: its name, the operators in it, the lines they came from.

    It is a function of its own, or has become part of the loop around it.
    """

    name: str
    operators: tuple[str, ...]
    lines: tuple[int, ...]


class Temporary(NamedTuple):
    """Memory for an intermediate array; `size_bytes` is None where only the run knows it."""

    name: str
    size_bytes: int | None


class Copy(NamedTuple):
    """A copy that a write needed, and why."""

    name: str
    reason: str
    line: int


class HostCall(NamedTuple):
    """A call back into Python."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a function. `str()` is the report.

    Attributes:
        kernels: machine loops, in the order they are first called.
        temporaries: memory beside arguments and results.
        host_calls: calls back into Python.
        guards: what the code assumes of sizes and of outside values.
        copies: copies that writes needed.
        lines: (location, what became of the line).
        loops: what was done to loops.
    """

    name: str
    kernels: list[Kernel]
    temporaries: list[Temporary]
    host_calls: list[HostCall]
    guards: list[str]
    copies: list[Copy]
    lines: list[tuple[SourceLoc, str]] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        out = [
            f"{self.name}: {_count(self.kernels, 'kernel')}, {_count(self.temporaries, 'temporary', 'temporaries')}, "
            f"{_count(self.host_calls, 'host call')}, {_count(self.copies, 'copy', 'copies')}"
        ]
        out += [f"  {loc.filename.rsplit('/', 1)[-1]}:{loc.line}  {loc.text}\n      {what}" for loc, what in self.lines]
        out += [f"  {k.name}: {', '.join(k.operators)}" for k in self.kernels]
        out += [f"  {text}" for text in self.loops]
        out += [
            f"  temporary {t.name}: {'size known at run time' if t.size_bytes is None else f'{t.size_bytes} bytes'}"
            for t in self.temporaries
        ]
        out += [f"  copy of {c.name}: {c.reason}" for c in self.copies]
        out += [f"  guard: {g}" for g in self.guards]
        return "\n".join(out)


def _count(items: Sequence[object], one: str, many: str = "") -> str:
    return f"{len(items)} {one if len(items) == 1 else many or one + 's'}"


def explain(
    captured: Graph, final: Graph, program: Program, sizes: dict[str, int], guards: Iterable[str] = ()
) -> Explanation:
    """Explain a graph.

    Args:
        captured: as traced.
        final: behind all passes.
        program: its loops.
        sizes: values of the argument sizes, for the bytes of temporaries.
        guards: what was assumed of values outside the arguments.
    """
    kernels: list[Kernel] = []
    kernel_of_line: dict[int, list[str]] = {}
    called = list(dict.fromkeys(s.name for s in _statements(program.entry) if isinstance(s, CallKernel)))
    functions = {k.name: k for k in (*program.kernels, *program.inlined)}
    called += [k.name for k in program.inlined]
    for name in called:
        origin = functions[name].origin
        if not origin:  # loops of the entry itself, put into a function that threads may share
            continue
        operators = tuple(text.split(" @ ")[0] for text in origin)
        lines = tuple(dict.fromkeys(int(text.rsplit(":", 2)[-2]) for text in origin if " @ " in text))
        kernels.append(Kernel(name, operators, lines))
        for line in lines:
            kernel_of_line.setdefault(line, []).append(name)
    temporaries = list(_temporaries(program, sizes))
    libraries = {s.name for s in _statements(program.entry) if isinstance(s, Library)}
    hosts = [
        HostCall(final.sites[op.attrs["site"]].message, op.loc.line if op.loc else 0)
        for op in final.walk()
        if op.name == "host_call"
    ]
    copies = [
        Copy(op.operands[0].name or "a value", str(op.attrs["reason"]), op.loc.line if op.loc else 0)
        for op in final.walk()
        if op.name == "copy" and "reason" in op.attrs
    ]
    explanation = Explanation(captured.name, kernels, temporaries, hosts, [*map(str, captured.guards), *guards], copies)
    explanation.lines.extend(_lines(captured, final, kernel_of_line, libraries))
    explanation.loops.extend(_loops(program))
    return explanation


def _temporaries(program: Program, sizes: dict[str, int]) -> Iterator[Temporary]:
    """Memory that is asked for beside arguments and results: what shares an address counts once, by its first name."""
    beside = {s.buffer.name for s in _statements(program.entry) if isinstance(s, Alloc) and s.scope == "heap"}
    for chain in program.memory.chains if program.memory is not None else ():
        if chain.outside is None and chain.fits != 1:
            beside.add(chain.lives[0].buffer.name)
    for s in _statements(program.entry):
        if isinstance(s, Alloc) and s.buffer.name in beside and s.buffer.shape:
            yield Temporary(s.buffer.name, _bytes(s.buffer.shape, s.buffer.dtype, sizes))


def _loops(program: Program) -> Iterator[str]:
    """What the passes over loops did, in the user's words."""
    for what, names in program.notes:
        shown = [f"the loop over {x} (line {program.lines[x]})" if x in program.lines else x for x in names]
        yield f"{' and '.join(shown)}: {what}"


def _statements(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """All statements, those in loops and branches included."""
    for s in body:
        yield s
        if isinstance(s, For):
            yield from _statements(s.body)
        elif isinstance(s, While):
            yield from _statements(s.test)
            yield from _statements(s.body)
        elif isinstance(s, If):
            yield from _statements(s.then)
            yield from _statements(s.otherwise)


def _bytes(shape: Sequence[DimLike], dtype: np.dtype, sizes: dict[str, int]) -> int | None:
    total = dtype.itemsize
    for d in shape:
        if not isinstance(d, int) and any(s not in sizes for s in symbols(d)):
            return None
        total *= evaluate(d, sizes)
    return total


def _lines(
    captured: Graph, final: Graph, kernel_of_line: dict[int, list[str]], libraries: set[str]
) -> Iterator[tuple[SourceLoc, str]]:
    """Each line of the captured ops with what became of it, in the order of the source."""
    places: dict[tuple[str, int], SourceLoc] = {}
    ops_at: dict[tuple[str, int], list[Op]] = {}
    for op in captured.walk():
        if op.loc is not None and not op.defn.has(Trait.TERMINATOR) and op.name not in ("constant", "dim"):
            key = (op.loc.filename, op.loc.line)
            places.setdefault(key, op.loc)
            ops_at.setdefault(key, []).append(op)
    left: dict[tuple[str, int], set[str]] = {}
    for op in final.walk():
        if op.loc is not None:
            left.setdefault((op.loc.filename, op.loc.line), set()).add(op.name)
    for key in sorted(places):
        names = left.get(key, set())
        found = kernel_of_line.get(key[1], [])
        if found:
            what = f"kernel {', '.join(found)}"
        elif "matmul" in names:
            what = f"BLAS ({', '.join(sorted(libraries)) or 'inline loops'})"
        elif "host_call" in names:
            what = "a call back into Python"
        elif names & {"for", "while", *BRANCHES}:
            what = f"machine {'branch' if names & BRANCHES else 'loop'}"
        elif names and all(op.type.ndim == 0 for o in ops_at[key] for op in o.results):
            what = "scalar code"
        elif all(o.name in ("view", "reshape") for o in ops_at[key]):
            what = "a view: no code"
        elif names:
            what = f"code of its own: {', '.join(sorted(names))}"
        else:
            what = "no code: folded, merged or unused"
        yield places[key], what
