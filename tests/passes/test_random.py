"""Random graphs through single passes and the whole pipeline: same meaning, effects in order, text that comes back."""

from __future__ import annotations

import pytest

from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.verifier import verify
from jitgraph.passes.fuse import fuse
from jitgraph.passes.pipeline import PASSES, count_ops, run_pipeline
from tests.checks import same_outcomes
from tests.passes.strategies import RandomGraph, effects, late_readers


@pytest.mark.parametrize("seed", range(60))
def test_pipeline_keeps_the_meaning(seed: int) -> None:
    text = print_graph(RandomGraph(seed, size=10 + seed % 25).graph)
    before, after = parse(text), parse(text)
    assert print_graph(before) == text
    run_pipeline(after, verify=True)
    same_outcomes(before, after, rounds=2, seed=seed)
    assert print_graph(parse(print_graph(after))) == print_graph(after)


@pytest.mark.parametrize("seed", range(100, 140))
def test_fusion_keeps_effects_in_order_and_old_versions_in_front(seed: int) -> None:
    text = print_graph(RandomGraph(seed, size=30).graph)
    before, after = parse(text), parse(text)
    fuse(after)
    verify(after)
    same_outcomes(before, after, rounds=2, seed=seed)
    place = {effect: i for i, effect in enumerate(effects(after))}
    order = [e for e in effects(before) if e in place]
    for i, first in enumerate(order):
        for second in order[i + 1 :]:
            if "check" in (first[1], second[1]):
                assert place[first] < place[second]
    assert sum(len(late_readers(b)) for b in after.blocks()) <= sum(len(late_readers(b)) for b in before.blocks())
    assert not fuse(after)


def test_work_per_op_is_constant() -> None:
    """Counted: calls of Python functions by the whole pipeline, on chains of 500 and of 5000 ops."""
    import sys

    def calls(count: int) -> float:
        body = "\n".join(
            f"  %a{i} = {'add' if i % 3 else 'mul'} %a{i - 1}, %{'x' if i % 2 else 'y'} : f64[n]"
            for i in range(1, count)
        )
        text = f"graph @f(%x: f64[n], %y: f64[n]) -> f64[n] {{\n  %a0 = exp %x : f64[n]\n{body}\n  return %a{count - 1}\n}}"
        g = parse(text)
        total = 0

        def count_call(_frame: object, event: str, _arg: object) -> None:
            nonlocal total
            total += event == "call"

        old = sys.getprofile()
        sys.setprofile(count_call)
        try:
            run_pipeline(g, PASSES)
        finally:
            sys.setprofile(old)
        assert count_ops(g) > 0
        return total / count

    small, large = calls(500), calls(5000)
    assert large < 1.5 * small
