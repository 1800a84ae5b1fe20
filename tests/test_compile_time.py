"""No stage's work grows faster than the graph, counted in lines of Python run; and what LLVM gets stays in short blocks."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen import llvm
from jitgraph.codegen.llvm_function import LONGEST_BLOCK
from jitgraph.compiler import Stages
from jitgraph.ir.graph import Graph, Symbol
from jitgraph.specialise import chosen_order

_BENCH = Path(jg.__file__).parents[1] / "bench" / "compile_time.py"
_spec = importlib.util.spec_from_file_location("compile_time", _BENCH)
assert _spec is not None
bench = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)  # type: ignore[union-attr]
FEW, MANY = 40, 160


def lines_run(shape: str, n: int) -> tuple[dict[str, int], str]:
    """Lines of Python that each stage runs, and the LLVM text in the end."""
    fn, args = bench.SHAPES[shape](n)
    count = 0

    def local(frame, event, arg):
        nonlocal count
        count += event == "line"
        return local

    def counted(make):
        nonlocal count
        count = 0
        before = sys.gettrace()
        sys.settrace(lambda *_: local)
        try:
            return make()
        finally:
            sys.settrace(before)

    found = {}
    with jg.config.override(verify=False, unroll_limit=10**9):
        graph = counted(lambda: jg.jit(fn).graph(*args))
        found["trace"] = count
        stages = Stages(graph)
        for name, make in (("passes", stages.final), ("lower", stages.program), ("emit", stages.llvm)):
            counted(make)
            found[name] = count
    return found, stages.llvm()


@pytest.mark.parametrize("shape", ["chain", "wide", "arguments", "writes", "statements", "loops", "branches"])
def test_work_is_linear(shape: str) -> None:
    lines_run(shape, 8)  # what is imported and remembered once
    few, many = (lines_run(shape, n)[0] for n in (FEW, MANY))
    grown = {stage: many[stage] / few[stage] for stage in few}
    assert all(ratio < 1.5 * MANY / FEW for ratio in grown.values()), grown


@pytest.mark.parametrize("shape", ["wide", "arguments", "writes"])
def test_blocks_stay_short(shape: str) -> None:
    """LLVM's time for a block grows with the square of its length."""
    fn, args = bench.SHAPES[shape](1200)
    with jg.config.override(verify=False, unroll_limit=10**9):
        text = Stages(jg.jit(fn).graph(*args)).llvm()
    blocks = re.split(r"^[\w.]+:$|^define .*$", text, flags=re.MULTILINE)
    assert max(block.count("\n") for block in blocks) < 3 * LONGEST_BLOCK
    assert "out." in text


MIXED = """
def f(x, y, n):
    t = x.sum()
    total = np.float32(0)
    for i in range(n):
        total += np.float32(y[i] * 0.5)
    big = t > 3.0
    a = x[:n] * 2.0 if big else x[:n] + y[:n]
    b = np.cumsum(a) + total
    for i in range(1, n):
        x[i] = x[i - 1] * 0.5 + b[i]
    w = a[a > 1.0]
    z = np.sort(w) + t
    if not big:
        z = z * 2.0
    y[0] = x[n]
    return a, b.reshape(-1, 1), z, total, big, x.mean()
"""


def functions(text: str) -> dict[str, int]:
    """Lines of each function of LLVM text."""
    found = re.finditer(r"^define [^@]*@([\w.]+)\(.*?^}", text, re.MULTILINE | re.DOTALL)
    return {m.group(1): m.group(0).count("\n") for m in found}


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("longest", [20, 60, 200])
def test_an_entry_in_parts_does_what_it_did(monkeypatch: pytest.MonkeyPatch, longest: int, n: int) -> None:
    monkeypatch.setattr(llvm, "LONGEST_PART", longest)
    fn = bench.source(MIXED)
    f = jg.jit(fn)
    with jg.config.override(cache=False):
        for scale in (0.1, 10.0):
            first = [np.arange(6.0) * scale, np.arange(6.0)[::-1].copy(), n]
            second = [first[0].copy(), first[1].copy(), n]
            for got, want in zip(f(*first), fn(*second), strict=True):
                assert type(got) is type(want)
                assert np.array_equal(got, want)
            assert np.array_equal(first[0], second[0])
            assert np.array_equal(first[1], second[1])
        with pytest.raises(IndexError):  # the error of a part far behind
            f(np.ones(4), np.ones(6), 4)
        text = f.inspect_ir(np.arange(6.0), np.arange(6.0), n, stage="llvm")
    assert "entry.1" in functions(text)


def test_no_part_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's time for a function grows faster than its length."""
    monkeypatch.setattr(llvm, "LONGEST_PART", 1000)
    fn, args = bench.SHAPES["slices"](600)
    with jg.config.override(verify=False):
        text = Stages(jg.jit(fn).graph(*args)).llvm()
    lines = functions(text)
    assert len([name for name in lines if name.startswith("entry")]) > 3
    assert max(lines.values()) < 2000


def test_a_chain_of_branches_returns_one_array() -> None:
    """What the links of the chain make is nobody's: the last one has it."""
    fn, args = bench.SHAPES["branches"](200)
    graph = jg.jit(fn).graph(*args)
    assert [r.how for r in graph.results].count("fresh") == 1
    returned = [v for v in graph.body.terminator.operands if v.type.kind == "array"]
    assert len(returned) == 1


def test_arrays_exchanged_by_branches_are_few_results() -> None:
    """The ways that two arrays may have gone are no more for each exchange than for the one before."""
    lines = "".join(f"    if t > {i}: a, b = b, a\n" for i in range(60))
    fn = bench.source(f"def f(a, b, t):\n{lines}    return a, b\n")
    f = jg.jit(fn)
    args = [np.ones(3), np.zeros(3), np.float64(2.5)]
    assert len(f.graph(*args).results) <= 6 * 60
    a, b = f(*args)
    assert a is args[1]
    assert b is args[0]


def test_many_branches_need_no_deep_stack() -> None:
    """Neither while tracing nor in the call, whose result is one of hundreds."""
    lines = "".join(f"    if t > {i}: x = x + {i}.0\n" for i in range(300))
    f = jg.jit(bench.source(f"def f(x, t):\n{lines}    return x\n"))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    try:
        graph = f.graph(np.ones(2), np.float64(1.5))
        flags = [v.type.kind == "py_bool" for v in graph.body.terminator.operands]
        ways = {taken: chosen_order(graph.results, [0], [taken] * len(flags)) for taken in (False, True)}
    finally:
        sys.setrecursionlimit(limit)
    assert sum(flags) == 300
    assert graph.results[ways[False][0]].how == "argument"
    assert graph.results[ways[True][0]].how == "fresh"
    assert len(ways[False]) == 301


class _Looked(dict):  # type: ignore[type-arg]
    """Symbols that count how often a name is looked for."""

    count = 0

    def __contains__(self, name: object) -> bool:
        _Looked.count += 1
        return super().__contains__(name)


def test_names_of_symbols_are_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that all have one index find a name at once, whatever was found before."""
    init = Graph.__init__

    def counting(self, name: str) -> None:
        init(self, name)
        self.symbols = _Looked()

    monkeypatch.setattr(Graph, "__init__", counting)
    looked = []
    for n in (20, 80):
        fn, args = bench.SHAPES["loops"](5 * n)
        _Looked.count = 0
        with jg.config.override(verify=False):
            graph = jg.jit(fn).graph(*args)
        looked.append(_Looked.count)
        loops = [op.attrs["index"] for op in graph.walk() if op.name == "for"]
        assert len(set(loops)) == len(loops) >= n
    assert looked[1] < 5 * looked[0]


def test_unused_names() -> None:
    graph = Graph("f")
    graph.add_symbol(Symbol("i1", "value"))
    assert [graph.unused_name("i") for _ in range(3)] == ["i0", "i2", "i3"]
    assert graph.unused_name("j_", 1) == "j_1"
    assert graph.clone().unused_name("i") == "i0"
