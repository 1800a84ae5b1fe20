"""Random graphs, compiled, against the NumPy interpreter: the same bits (but for the sign of zero in min and max)."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.compiler import compile_graph
from tests.checks import assert_same, outcome, random_args
from tests.passes.strategies import EXACT_UNARY, RandomGraph


@pytest.mark.parametrize("seed", range(5000, 5030))
def test_compiled_random_graph(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("JITGRAPH_CACHE", "0")
    monkeypatch.setenv("JITGRAPH_CACHE_DIR", str(tmp_path))
    graph = RandomGraph(seed, size=20, unary=EXACT_UNARY).graph
    executable = compile_graph(graph).executable
    rng = np.random.default_rng(seed)
    for _ in range(2):
        args = random_args(graph, rng)
        expected, values = outcome(graph, args)
        mine = [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args]
        try:
            results = executable(*mine)
        except Exception as e:  # noqa: BLE001 - compared with the interpreter's
            assert f"{type(e).__name__}: {e}".startswith(expected)
            continue
        assert expected == f"{len(results)} results"
        assert_same(_without_zero_signs([*results, *mine[:2]]), _without_zero_signs(values))


def _without_zero_signs(values: list[object]) -> list[object]:
    return [x + 0.0 for x in values]
