"""Programs as they are captured: the interpreter of the graph stands in for machine code behind the dispatcher.

Without code generation and passes, five times as many programs run in a time; most faults are in the capture.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest import mock

import numpy as np

import jitgraph as jg
from jitgraph import errors, specialise
from jitgraph.config import config
from jitgraph.ir.graph import Graph
from jitgraph.ir.interpret import Deoptimise, Evaluation, interpret
from jitgraph.ir.verifier import verify
from tests.fuzz.compare import difference, run, undefined
from tests.fuzz.levels import FREE_ZERO, Counts, Difference, Unsupported, shown
from tests.fuzz.programs import Fuzzed
from tests.loop_programs import copied


class Executable:
    """What `runtime.invoke` has of machine code, by the interpreter: a frame is the arguments."""

    def __init__(self, graph: Graph) -> None:
        verify(graph)
        self.graph = graph
        self.hosts = {k: s.call for k, s in enumerate(graph.sites) if s.call is not None}
        self.mutates: Sequence[int] = graph.body.terminator.attrs.get("mutates", ())

    def prepare(self, args: Sequence[Any]) -> Sequence[Any] | None:
        if any(type(x) is int and not -(2**63) <= x < 2**63 for x in args):
            raise Deoptimise("a Python integer does not fit")
        try:
            Evaluation(self.graph, self.hosts).bind_arguments(args)
        except errors.InternalError:  # a guard, or sizes that are to be equal
            return None
        return args

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The fresh results; an error leaves the arguments as they are, other than in machine code."""
        made, mutated = interpret(self.graph, [copied(x) for x in args], self.hosts)
        for k, x in zip(self.mutates, mutated, strict=True):
            if args[k].flags.writeable:  # else nothing was written
                args[k][...] = x
        return [np.array(x, order="K") if isinstance(x, np.ndarray) else x for x in made]


class Compiled:
    """What `compiler.compile_graph` makes, without code."""

    source = "memory"
    times_ms: ClassVar[Mapping[str, float]] = {}
    has_products = False
    key = ""
    deoptimise = Deoptimise

    def __init__(self, graph: Graph) -> None:
        self.executable = Executable(graph)

    def not_on_disk(self) -> str:
        return ""


@contextmanager
def interpreted() -> Iterator[None]:
    """Have calls of jitted functions interpret their graphs."""
    with config.override(cache=False, dispatch="python"), mock.patch.object(specialise, "compile_graph", Compiled):
        yield


def check(program: Fuzzed, counts: Counts) -> Difference | None:
    """Compare a program over its calls, while graphs are `interpreted`.

    Raises:
        Unsupported: it cannot be captured.
    """
    fn = program.function()
    jitted = jg.jit(fn, numerics="numpy")
    free_zero = any(name in program.source for name in FREE_ZERO)
    for call in range(len(program.calls)):
        given = program.make(call)
        expected = run(fn, program.make(call))
        if isinstance(expected.error, MemoryError):
            continue
        found = run(jitted, program.make(call))
        if isinstance(found.error, errors.TraceError):
            raise Unsupported(str(found.error).split("\n", maxsplit=1)[0])
        counts.levels["graph"] += 1
        what = difference(given, expected, found, free_zero=free_zero)
        if what and undefined(fn, functools.partial(program.make, call)):
            counts.levels["left out"] += 1
        elif what:
            return Difference(program, call, shown(what, expected, found), "capture")
    return None
