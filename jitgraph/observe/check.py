"""`check=True`: run NumPy beside the compiled code and name the first operation whose result differs.

Each operation is judged by itself: NumPy evaluates it on the values that the compiled code computed before it, so one
rounding difference is not reported again by all that follows. What is compiled here returns every intermediate, so it
is fused otherwise than the code of the call itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.compiler import compile_graph
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.interpret import Evaluation
from jitgraph.ir.opdef import REGISTRY, Trait

#: NumPy's own distance from the true value, added to ours (its float32 log is the worst).
_NUMPY_ULP = 4.0


def check_graph(graph: Graph, args: Sequence[Any]) -> None:
    """Compare compiled code with NumPy on copies of `args`, operation by operation.

    Raises:
        MismatchError: names the first operation and the user's line, with both values.
    """
    shown = graph.clone()
    values = _return_everything(shown)
    compiled = compile_graph(shown)
    executable = compiled.executable
    try:
        got = executable(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    except compiled.deoptimise:  # these arguments go to another trace, or to Python: there is nothing to compare
        return
    if got is None:
        raise errors.InternalError(f"{graph.name}: the guards do not hold for the arguments to check")
    known = dict(zip(values, got, strict=False))
    run = Evaluation(shown, {k: s.call for k, s in enumerate(shown.sites) if s.call is not None})
    run.bind_arguments(args)
    with np.errstate(all="ignore"):
        for op in shown.body.ops():
            if op.defn.has(Trait.TERMINATOR):
                return
            for value, expected in zip(op.results, run.step(op), strict=True):
                run.env[value] = known.get(value, expected)
                if value in known:
                    _compare(graph, op, expected, known[value])


def _return_everything(graph: Graph) -> list[Value]:
    """Make `graph` return what each of its operations computes, and nothing else; answers those values."""
    values = [r for op in graph.body.ops() for r in op.results]
    end = graph.body.terminator
    end.attrs.pop("mutates", None)
    end.set_operands(values)
    graph.results = []
    return values


def _compare(graph: Graph, op: Op, expected: Any, got: Any) -> None:
    a, b = np.asarray(expected), np.asarray(got)
    if a.shape != b.shape or a.dtype != b.dtype:
        _report(graph, op, f"{a.dtype}{a.shape}", f"{b.dtype}{b.shape}")
    if a.dtype.kind == "f":
        ulp = op.defn.ulp + (_NUMPY_ULP if op.defn.ulp else 0.0)
        folded = "function" in op.attrs and REGISTRY[op.attrs["function"]].ulp > 0
        if op.defn.has(Trait.OPAQUE) or op.regions or folded:  # a loop: its rounding differences add up
            ulp = 1e6
        with np.errstate(all="ignore"):
            off = ~(
                (a == b)
                | (np.isnan(a) & np.isnan(b))
                | (np.abs(a - b) <= ulp * np.spacing(np.maximum(np.abs(a), np.abs(b))))
            )
    else:
        off = a != b
    if np.any(off):
        at = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(off)))
        where = f" at {at}" if a.ndim else ""
        _report(graph, op, f"{np.atleast_1d(a)[at]!r}{where}", f"{np.atleast_1d(b)[at]!r}")


def _report(graph: Graph, op: Op, expected: str, got: str) -> None:
    raise errors.MismatchError(
        errors.describe(
            f"{op.name} of {graph.name}: NumPy gives {expected}, compiled code {got}",
            op.loc,
            remedy="this is a fault of jitgraph: please report it with the function and its arguments.",
        )
    )
