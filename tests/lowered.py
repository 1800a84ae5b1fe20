"""Graphs through `bufferize` and `lower`, run in every way there is, against the NumPy evaluation of the graph."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import target
from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import run_program
from jitgraph.codegen.llvm import emit_program
from jitgraph.codegen.loops import Program
from jitgraph.codegen.loops_printer import print_program
from jitgraph.codegen.loops_verify import verify as verify_loops
from jitgraph.codegen.lower import lower
from jitgraph.ir.graph import Graph
from jitgraph.ir.interpret import interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.verifier import verify
from jitgraph.passes.bufferize import bufferize
from jitgraph.runtime import engine, table
from jitgraph.runtime.invoke import Executable
from tests.checks import assert_same
from tests.loop_programs import copied


def graph_of(text: str | Graph) -> Graph:
    graph = parse(textwrap.dedent(text).strip()) if isinstance(text, str) else text
    verify(graph)
    return graph


def program_of(text: str | Graph) -> Program:
    """The verified loop program of a graph after `bufferize`."""
    graph = graph_of(text)
    bufferize(graph)
    verify(graph)
    program = lower(graph)
    verify_loops(program)
    return program


def loops_text(text: str) -> str:
    return print_program(program_of(text))


class Lowered:
    """A graph as machine code; `lowered(*args)` runs it in all ways and compares.

    Attributes:
        before: the graph as it was given, the reference.
    """

    def __init__(
        self, text: str | Graph, hosts: Mapping[int, Callable[..., Any]] | None = None, ulp: float = 0
    ) -> None:
        from jitgraph.ir.printer import print_graph

        source = text if isinstance(text, str) else print_graph(text)
        self.before, self.graph = graph_of(source), graph_of(source)
        self.hosts, self.ulp = hosts, ulp
        self.program = program_of(self.graph)
        end = self.graph.body.terminator
        self.mutates = end.attrs.get("mutates", ())
        types = [v.type for v in end.operands[: len(end.operands) - len(self.mutates)]]
        self.interface = interface_of(self.program, len(self.graph.args), types)
        text = emit_program(self.program, target.host())
        code = engine.compile_object(text, target.host(), verify=True)
        self.machine = Executable(self.interface, code, self.graph.sites, hosts)

    def __call__(self, *args: Any, interpreter: bool = True) -> list[Any]:
        """The results of the machine code, and the arguments that it wrote."""
        wanted, finals = interpret(self.before, [copied(a) for a in args], self.hosts)
        found: list[Any] = []
        runs: list[Callable[[list[Any]], list[Any] | None]] = [lambda a: self.machine(*a)]
        if interpreter:
            runs.append(lambda a: run_program(self.program, self.interface, a, self.hosts, table.call, poison=True))
        for run in reversed(runs):
            given = [copied(a) for a in args]
            made = run(given)
            assert made is not None, "a guard does not hold"
            found = [*made, *(given[k] for k in self.mutates)]
            assert_same(_no_signs(found), _no_signs([*wanted, *finals]), self.ulp)
            for k, (a, b) in enumerate(zip(given, args, strict=True)):
                if isinstance(a, np.ndarray) and k not in self.mutates:
                    assert a.tobytes() == np.asarray(b).tobytes(), f"argument {k} was written"
        return found


def _no_signs(values: list[Any]) -> list[Any]:
    """The sign of zero is no promise in minima and maxima; it is compared where tests look for it."""
    return [v + 0 if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for v in values]


def check_lowered(
    text: str, *args: Any, ulp: float = 0, hosts: Mapping[int, Callable[..., Any]] | None = None
) -> list[Any]:
    return Lowered(text, hosts, ulp)(*args)
