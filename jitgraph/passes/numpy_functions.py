"""`numerics="numpy"`: functions whose bits differ from NumPy's become calls of NumPy's own.

Not part of the pipeline: it runs once on the captured graph, because the functions behind host calls are not stored
with machine code.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jitgraph.ir.graph import Graph, Op, Site
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait


def numpy_functions(graph: Graph) -> bool:
    """Turn every elementwise op with an error bound into a `host_call` of its NumPy meaning; True if there was one."""
    found = [op for op in graph.walk() if op.defn.has(Trait.ELEMENTWISE) and op.defn.ulp > 0]
    for op in found:
        _to_host(graph, op)
    if found:
        _renumber(graph)
    return bool(found)


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
