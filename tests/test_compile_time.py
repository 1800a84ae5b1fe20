"""No stage's work grows faster than the graph, counted in lines of Python run; and what LLVM gets stays in short blocks."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import jitgraph as jg
from jitgraph.codegen.llvm_function import LONGEST_BLOCK
from jitgraph.compiler import Stages

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


@pytest.mark.parametrize("shape", ["chain", "wide", "arguments", "writes", "statements", "branches"])
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
