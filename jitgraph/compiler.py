"""Joins the stages: captured graph, passes, loops, LLVM text, object code, disk cache.

`compile_graph` is the way to machine code. `Stages` reruns single stages for people to read.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jitgraph.abi import Interface
from jitgraph.cache import disk
from jitgraph.cache.key import Parts, digest, parts
from jitgraph.config import config
from jitgraph.forking import open_in_child
from jitgraph.ir.graph import Graph
from jitgraph.loading import uncollected
from jitgraph.options import CodeOptions
from jitgraph.records import dataclass, field

if TYPE_CHECKING:
    from jitgraph.codegen.loops import Program
    from jitgraph.runtime.invoke import Executable
    from jitgraph.target import Target

#: Receives each finished stage: (name, text maker, suffix, milliseconds).
StageObserver = Callable[[str, Callable[[], str], str, float], None]
#: Object code kept in the process, over all functions, for graphs that come again: so many, and so many bytes.
_CODES_KEPT = 512
_CODES_BYTES = 32 << 20
#: Characters of a graph's first line that an entry on disk says of itself.
_ABOUT = 400


def apply_options(graph: Graph, options: CodeOptions) -> None:
    """Write the options into a captured graph, whose text is then all that machine code depends on."""
    graph.fast_math = options.fastmath
    bounded = options.numerics == "numpy"
    if bounded or any(
        op.defn.needs_numpy([v.type for v in (*op.operands, *op.results)], op.attrs) for op in graph.walk()
    ):
        from jitgraph.passes.numpy_functions import numpy_functions

        numpy_functions(graph, bounded=bounded)
    graph.loop_casts.clear()


def dot_order(graph: Graph) -> str:
    """The order in which this process's BLAS adds up dot products, if the graph may have one in a loop."""
    return order_now() if _has_products(graph) else ""


def order_now() -> str:
    """The order in which this process's BLAS adds up dot products."""
    if not backend().cpu.recognise().has_fma:
        return ""
    from jitgraph.runtime import dot_core

    return dot_core.core()


def _has_products(graph: Graph) -> bool:
    return any(op.name == "matmul" for op in graph.walk())


def print_graph(graph: Graph, *, loc: bool = True) -> str:
    """The graph's text; see `ir.printer`."""
    from jitgraph.ir import printer

    return printer.print_graph(graph, loc=loc)


class Backend(NamedTuple):
    """The modules that load and call machine code, without LLVM."""

    cpu: ModuleType
    invoke: ModuleType
    llvm_version: str


class Generator(NamedTuple):
    """The modules that make LLVM text of a graph, loaded when nothing is cached."""

    pipeline: ModuleType
    lower: ModuleType
    schedule: ModuleType
    llvm: ModuleType


def backend() -> Backend:
    """The host and the calling of entries."""
    with uncollected():
        import llvmlite

        from jitgraph.runtime import cpu, invoke

    return Backend(cpu, invoke, llvmlite.__version__)


def engine() -> ModuleType:
    """LLVM's code generator."""
    with uncollected():
        from jitgraph.runtime import engine as found

    return found


def generator() -> Generator:
    """Passes, lowering and code emission."""
    with uncollected():
        from jitgraph.codegen import llvm, lower
        from jitgraph.passes import pipeline
    from jitgraph.schedule import pipeline as schedule

    return Generator(pipeline, lower, schedule, llvm)


@dataclass(slots=True)
class Stages:
    """A captured graph and what the stages make of it, made when first asked for. The captured graph is not changed."""

    captured: Graph
    observer: Callable[..., None] | None = None
    _fused: Graph | None = field(default=None, init=False)
    _final: Graph | None = field(default=None, init=False)
    _program: Program | None = field(default=None, init=False)
    _llvm: str | None = field(default=None, init=False)

    def final(self) -> Graph:
        """The graph behind the last pass, from which loops are made."""
        if self._final is None:
            graph = self.captured.clone()
            generator().pipeline.run_pipeline(graph, verify=config.verify, observer=self.observer)
            self._final = graph
        return self._final

    def after(self, stage: str) -> str:
        """The graph's text behind a pass (`trace`: as captured).

        Raises:
            ValueError: no such stage.
        """
        if stage == "trace":
            return print_graph(self.captured)
        if stage == "loops":
            from jitgraph.codegen.loops_printer import print_program

            return print_program(self.program())
        if stage == "llvm":
            return self.llvm()
        texts: dict[str, str] = {}

        def observer(_: int, name: str, graph: Graph, *__: Any) -> None:
            texts[name] = print_graph(graph) if name == stage else ""

        graph = self.captured.clone()
        generator().pipeline.run_pipeline(graph, observer=observer)
        if stage not in texts:
            raise ValueError(f"no stage {stage!r}; there are trace, {', '.join(texts)}, loops, llvm")
        return texts[stage]

    def program(self) -> Program:
        if self._program is None:
            optimise = partial(generator().schedule.optimise, core=dot_order(self.captured))
            self._program = generator().lower.lower(self.final(), optimise)
        return self._program

    def llvm(self) -> str:
        if self._llvm is None:
            from jitgraph.target import host

            self._llvm = generator().llvm.emit_program(self.program(), host())
        return self._llvm

    def assembly(self) -> str:
        return str(engine().assembly_of(self.llvm()))


class Compiled(NamedTuple):
    """Machine code and how it came about.

    Attributes:
        source: from this process, from the disk cache, or newly made.
        times_ms: of each stage, in the order in which they ran.
        not_on_disk: says, if newly made, what the nearest entry of the disk cache differs in.
        has_products: BLAS may be called.
        key: of the graph.
    """

    executable: Executable
    source: Literal["memory", "disk", "compiled"]
    times_ms: dict[str, float]
    not_on_disk: Callable[[], str] = str
    has_products: bool = False
    key: str = ""

    @property
    def deoptimise(self) -> type[Exception]:
        """What the executable raises when the call is to be run in plain Python."""
        return backend().invoke.Deoptimise  # type: ignore[no-any-return]


_codes: OrderedDict[str, tuple[bytes, dict[str, Any]]] = OrderedDict()
_codes_lock = threading.Lock()
open_in_child(_codes_lock)


def made_now(blas: str = "") -> Parts:
    """What keys made in this process are made of, beside the graph.

    Args:
        blas: order of dot products in BLAS, for a graph that has some.
    """
    from jitgraph.target import host

    return parts(host().key, backend().llvm_version, blas)


def compile_graph(graph: Graph) -> Compiled:
    """Machine code for a captured graph: from this process, from the disk cache, or newly made.

    The graph itself is not changed.
    """
    tools = backend()
    start = time.perf_counter()
    text = print_graph(graph, loc=False)
    tools.cpu.recognise()  # so that LLVM need not be asked
    made_of = made_now(dot_order(graph))
    key = digest(text, made_of)
    times = {"key": 1e3 * (time.perf_counter() - start)}
    with _codes_lock:
        known = _codes.get(key)
    source: Literal["memory", "disk", "compiled"] = "memory"
    missed: Callable[[], str] = str
    executable: Executable | None = None
    start = time.perf_counter()
    if known is not None:
        executable = _executable(graph, *known)
    elif not config.dump:
        found, why = disk.use(key, graph.name, lambda e: ((e.code, e.header), _executable(graph, e.code, e.header)))
        if found is not None:
            (known, executable), source = found, "disk"
        elif why:
            missed = partial(str, why)
    if known is None or executable is None:
        source = "compiled"
        if missed is str:
            missed = _why_not_on_disk(key, graph.name, made_of, text)
        known = _generate(graph, tools.cpu.recognise(), times)
        about = {"function": graph.name, "graph": text.partition("\n")[0][:_ABOUT], **made_of._asdict()}
        disk.store(key, graph.name, disk.Entry(known[1], known[0], about, text))
        start = time.perf_counter()
        executable = _executable(graph, *known)
    with _codes_lock:
        _codes[key] = known
        _codes.move_to_end(key)
        if source != "memory":
            total = sum(len(code) for code, _ in _codes.values())
            while len(_codes) > _CODES_KEPT or (total > _CODES_BYTES and len(_codes) > 1):
                total -= len(_codes.popitem(last=False)[1][0])
    products = _has_products(graph)
    if products:
        tools.invoke.threads.prepare_blas()
    times["load"] = 1e3 * (time.perf_counter() - start)
    return Compiled(executable, source, times, missed, products, key)


def _executable(graph: Graph, code: bytes, plain: dict[str, Any]) -> Executable:
    """The machine code of a graph, loaded.

    Raises:
        KeyError, TypeError, ValueError, InternalError: it is none of this graph.
    """
    interface = Interface.from_plain(plain)
    end = graph.body.terminator
    interface.check(len(graph.args), len(end.operands) - len(end.attrs.get("mutates", ())), len(graph.sites))
    hosts = {k: graph.sites[k].call for k in interface.hosts}
    made: Executable = backend().invoke.Executable(interface, code, graph.sites, hosts)
    return made


def with_code(graph: Graph, interface: Interface, code: bytes, *, products: bool) -> Compiled:
    """Machine code from the disk cache for a trace from there: of the graph only name and sites are known."""
    tools = backend()
    executable = tools.invoke.Executable(interface, code, graph.sites, {})
    if products:
        tools.invoke.threads.prepare_blas()
    return Compiled(executable, "disk", {}, has_products=products)


def code_of(compiled: Compiled) -> tuple[bytes, dict[str, Any]] | None:
    """Object code and the plain form of its interface, if they are still at hand."""
    with _codes_lock:
        return _codes.get(compiled.key)


def _why_not_on_disk(key: str, name: str, made_of: Parts, text: str) -> Callable[[], str]:
    if not config.cache:
        return lambda: "the disk cache is switched off"
    if config.dump:
        return lambda: "dumps are asked for, which only compiling makes"
    from jitgraph.cache.nearest import difference_from_now

    return difference_from_now(key, name, made_of, text)


def _generate(graph: Graph, target: Target, times: dict[str, float]) -> tuple[bytes, dict[str, Any]]:
    """Object code and the header that loading it needs."""
    from jitgraph.dump import Dumper

    dumper = Dumper.from_config(graph.name)
    observer = None
    if dumper is not None:
        if dumper.wants("trace"):
            dumper.write(0, "trace", print_graph(graph))
        observer = dumper.after_pass

    def timed(name: str, make: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        made = make()
        times[name] = 1e3 * (time.perf_counter() - start)
        return made

    stages = Stages(graph, observer)
    timed("passes", stages.final)
    program = timed("lower", stages.program)
    text = timed("emit", stages.llvm)
    if dumper is not None:
        if dumper.wants("loops"):
            dumper.write(90, "loops", stages.after("loops"), "txt")
        if dumper.wants("llvm"):
            dumper.write(91, "llvm", text, "ll")
        if dumper.wants("asm"):
            dumper.write(92, "asm", stages.assembly(), "s")
    from jitgraph.codegen.interface import interface_of

    code = timed("llvm", lambda: engine().compile_object(text, target))
    if "compile" in config.log:
        parts = ", ".join(f"{name} {ms:.1f}" for name, ms in times.items())
        sys.stderr.write(f"jitgraph: compiled {graph.name} (ms: {parts}; {len(code)} bytes)\n")
    types = [value.type for value in graph.body.terminator.operands]
    fresh = types[: len(types) - len(graph.body.terminator.attrs.get("mutates", ()))]
    return code, interface_of(program, len(graph.args), fresh).to_plain()
