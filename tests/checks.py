"""Helpers of the tests: golden tests of passes, and whole programs against the interpreter."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph.ir.dims import evaluate
from jitgraph.ir.graph import Graph
from jitgraph.ir.interpret import interpret
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.ir.types import TensorType
from jitgraph.ir.verifier import verify

#: `expect=SAME`: the pass must not change the graph.
SAME = object()


def calls_of(f: Callable[[], object]) -> int:
    """How many calls and returns of functions `f` takes: what it costs, whatever else the machine does."""
    count = itertools.count()
    sys.setprofile(lambda frame, event, argument: next(count) and None)
    try:
        f()
    finally:
        sys.setprofile(None)
    return next(count)


def structure(graph: Graph) -> str:
    """The text of a graph with all names of values and the place of nothing."""
    copy = parse(print_graph(graph, loc=False))
    for block in copy.blocks():
        for a in block.args:
            a.name = ""
        for op in block.ops():
            for r in op.results:
                r.name = ""
    return print_graph(copy, loc=False)


def sizes_for(graph: Graph, rng: np.random.Generator, tries: int = 400) -> dict[str, int]:
    """Random sizes of the arguments under which the guards hold."""
    names = [s for s in graph.symbols.values() if s.origin == "arg"]
    for attempt in range(tries):
        env = {}
        for s in names:
            low = max(s.lower if isinstance(s.lower, int) else 0, 2 if s.not_one and attempt < tries // 2 else 0)
            high = s.upper if isinstance(s.upper, int) else low + 6
            env[s.name] = int(rng.integers(low, max(high, low) + 1))
            if s.not_one and env[s.name] == 1:
                env[s.name] = 2
        if all(_holds(g.relation, evaluate(g.left, env), evaluate(g.right, env)) for g in graph.guards):
            return env
    raise AssertionError("no sizes found that satisfy the guards")


def _holds(relation: str, left: int, right: int) -> bool:
    return {"==": left == right, "!=": left != right, ">=": left >= right, "<": left < right}[relation]


def random_array(t: TensorType, env: dict[str, int], rng: np.random.Generator, special: bool = True) -> Any:
    """A value of type `t`; floats include -0.0, NaN and infinities if `special`."""
    shape = tuple(evaluate(d, env) for d in t.shape)
    kind = t.dtype.kind
    if kind == "b":
        data = rng.integers(0, 2, shape).astype(bool)
    elif kind in "iu":
        data = rng.integers(0 if kind == "u" else -5, 6, shape).astype(t.dtype)
    else:
        data = np.asarray(rng.normal(size=shape) * 2).astype(t.dtype)
        if special:
            chosen = np.asarray(rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0], shape), t.dtype)
            data = np.where(rng.random(shape) < 0.2, chosen, data).astype(t.dtype)
    if t.kind != "array":
        number = np.asarray(data).astype(t.dtype)[()]
        return number.item() if t.is_python else number
    array = np.empty([shape[k] for k in t.layout.order], t.dtype).transpose(np.argsort(t.layout.order))
    array[...] = data
    return array


def random_args(graph: Graph, rng: np.random.Generator, special: bool = True) -> list[Any]:
    env = sizes_for(graph, rng)
    return [random_array(a.type, env, rng, special) for a in graph.args]


def outcome(graph: Graph, args: Sequence[Any]) -> tuple[str, list[Any]]:
    """What a call does: its results and mutated arguments, or the exception."""
    try:
        results, mutated = interpret(graph, args)
    except Exception as e:  # noqa: BLE001 - any exception of the program is an outcome
        return f"{type(e).__name__}: {e}", []
    return f"{len(results)} results", [*results, *mutated]


def assert_same(found: Sequence[Any], expected: Sequence[Any], ulp: float = 0) -> None:
    """Equal types, shapes and bits (NaNs are equal); with `ulp`, floats within so many units in the last place."""
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert type(x) is type(y), f"{type(x)} is not {type(y)}"
        a, b = np.asarray(x), np.asarray(y)
        assert a.dtype == b.dtype
        assert a.shape == b.shape, f"shape {a.shape} is not {b.shape}"
        if a.dtype.kind == "c":
            assert_same([a.real, a.imag], [b.real, b.imag], ulp)
            continue
        if a.dtype.kind == "f" and ulp:
            with np.errstate(all="ignore"):
                near = np.abs(a - b) <= ulp * np.spacing(np.maximum(np.abs(a), np.abs(b)))
            equal = (a == b) | (np.isnan(a) & np.isnan(b)) | near
        elif a.dtype.kind == "f":
            equal = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
        else:
            equal = a == b
        assert np.all(equal), f"at {np.argwhere(~np.atleast_1d(equal))[0]}:\n{a}\nis not\n{b}"


def same_outcomes(before: Graph, after: Graph, rounds: int = 3, ulp: float = 0, seed: int = 0) -> None:
    """Both graphs do the same on random arguments."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        args = random_args(before, rng)
        expected, values = outcome(before, args)
        found, other = outcome(after, args)
        assert found == expected
        assert_same(other, values, ulp)


def check_pass(
    run: Callable[[Graph], bool], text: str, expect: Any = None, *, evaluate: bool = True, ulp: float = 0
) -> Graph:
    """Run a pass on a graph; it must give `expect` (a graph's text, or SAME), change nothing in a second run, and mean
    the same on random arguments.

    Args:
        ulp: floats may differ by so many units in the last place (for laws of fast math).
    """
    text = textwrap.dedent(text).strip()
    before, graph = parse(text), parse(text)
    verify(graph)
    printed = print_graph(graph)
    changed = run(graph)
    verify(graph)
    if expect is SAME:
        assert structure(graph) == structure(before), f"changed:\n{graph}"
    elif expect is not None:
        wanted = parse(textwrap.dedent(expect).strip())
        verify(wanted)
        assert structure(graph) == structure(wanted), f"the result is\n{graph}"
    assert changed == (print_graph(graph) != printed), f"the pass says changed = {changed}"
    once = print_graph(graph)
    assert not run(graph), f"a second run says that it changed\n{once}\nto\n{graph}"
    assert print_graph(graph) == once
    if evaluate:
        same_outcomes(before, graph, ulp=ulp)
    return graph


def check_program(
    text: str | Graph,
    run: Callable[[Graph, Sequence[Any]], tuple[list[Any], list[Any]]] | None = None,
    *,
    args: Sequence[Sequence[Any]] = (),
    ulp: float = 0,
    rounds: int = 2,
) -> Graph:
    """A whole program through all passes, verified after each, means the same as before; so does `run`, if given, of
    the optimised graph (say, compiled). Answers the optimised graph.

    Args:
        args: lists of arguments to use, besides random ones.
    """
    from jitgraph.passes.pipeline import PASSES, run_pipeline

    source = print_graph(text) if isinstance(text, Graph) else textwrap.dedent(text).strip()
    before, graph = parse(source), parse(source)
    verify(before)
    run_pipeline(graph, PASSES, verify=True)
    rng = np.random.default_rng(1)
    for given in itertools.chain(args, (random_args(before, rng) for _ in range(rounds))):
        expected, values = outcome(before, given)
        found, other = outcome(graph, given)
        assert found == expected
        assert_same(other, values, ulp)
        if run is not None and values:
            results, mutated = run(graph, [x.copy(order="K") if isinstance(x, np.ndarray) else x for x in given])
            assert_same([*results, *mutated], values, ulp)
    return graph
