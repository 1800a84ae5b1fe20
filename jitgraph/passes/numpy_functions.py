"""Operators that NumPy itself computes become calls of NumPy's own functions.

Always those for which their records have no machine code (`OpDef.by_numpy`, or an elementwise record without
`lower`); under `numerics="numpy"` also the functions whose bits differ from NumPy's. Not part of the pipeline: it runs
once on the captured graph, because the functions behind host calls are not stored with machine code.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jitgraph.ir.graph import Graph, Op, Site
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait


def numpy_functions(graph: Graph, *, bounded: bool = False) -> bool:
    """Turn ops that NumPy computes into `host_call`s of their NumPy meaning; True if there was one.

    Args:
        bounded: also the elementwise ops with an error bound.
    """
    found = [op for op in graph.walk() if by_numpy(op) or (bounded and _is_bounded(op))]
    for op in found:
        _to_host(graph, op)
    if found:
        _renumber(graph)
    return bool(found)


def by_numpy(op: Op) -> bool:
    """Whether machine code cannot compute `op`."""
    return op.defn.needs_numpy([v.type for v in (*op.operands, *op.results)], op.attrs)


def _is_bounded(op: Op) -> bool:
    """Whether the bits of an elementwise op, or of a fold by one, may differ from NumPy's."""
    applied = REGISTRY[op.attrs["function"]] if "function" in op.attrs else op.defn
    return applied.ulp > 0 and applied.has(Trait.ELEMENTWISE)


def _to_host(graph: Graph, op: Op) -> None:
    attrs = dict(op.attrs)
    function = partial(_quiet, op.defn, attrs)
    function.borrows = True  # type: ignore[attr-defined]  # NumPy's bits depend on strides: it gets the operands themselves
    graph.sites.append(Site("host", f"np.{op.name}", op.loc, function))
    types = tuple(r.type for r in op.results)
    host = {"site": len(graph.sites) - 1, "order": 0, "types": types, "effects": False}
    call = Op(REGISTRY["host_call"], op.operands, types, host, (), op.loc)
    assert op.block is not None
    op.block.insert_before(op, call)
    graph.replace(op, call.results)


def _quiet(defn: OpDef, attrs: dict[str, Any], *operands: Any) -> Any:
    with np.errstate(all="ignore"):
        return defn.evaluate(*operands, **attrs)


def _renumber(graph: Graph) -> None:
    """Number the ordered ops anew: their order is that of the blocks."""
    for number, op in enumerate(op for op in graph.walk() if op.defn.has(Trait.ORDERED)):
        op.attrs["order"] = number
