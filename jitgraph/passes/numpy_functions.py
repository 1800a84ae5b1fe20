"""Operators that NumPy itself computes become calls of NumPy's own functions.

Always those for which their records have no machine code (`OpDef.by_numpy`, or an elementwise record without
`lower`); under `numerics="numpy"` also the functions whose bits differ from NumPy's. Not part of the pipeline: it runs
once on the captured graph, because the functions behind host calls are not stored with machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitgraph.ir.graph import Graph, Op, Site, Value
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
    called, operands = _uncast(graph, op)
    function = partial(_quiet, called, attrs)
    function.borrows = True  # type: ignore[attr-defined]  # NumPy's bits depend on strides: it gets the operands themselves
    graph.sites.append(Site("host", f"np.{op.name}", op.loc, function))
    types = tuple(r.type for r in op.results)
    host = {"site": len(graph.sites) - 1, "order": 0, "types": types, "effects": False}
    call = Op(REGISTRY["host_call"], operands, types, host, (), op.loc)
    assert op.block is not None
    op.block.insert_before(op, call)
    graph.replace(op, call.results)


def _uncast(graph: Graph, op: Op) -> tuple[OpDef | Callable[..., Any], list[Value]]:
    """What to call, and with what: NumPy casts operands itself, as the way in which it goes over them decides bits.

    A loop that goes backwards, say, may be another one than that over NumPy's buffer.
    """
    function = op.defn.evaluate
    if any(v.type.kind == "array" for v in op.operands):
        function = getattr(function, "of_arrays", function)
    if not isinstance(function, np.ufunc) or len(op.operands) < 2:
        return op.defn, list(op.operands)
    operands = [_source(graph, v) for v in op.operands]
    if operands == list(op.operands):
        return op.defn, operands
    loop = tuple([v.type.dtype for v in (*op.operands, *op.results)])
    return partial(function, signature=loop, casting="unsafe"), operands


def _source(graph: Graph, value: Value) -> Value:
    """What an operand was before the operator itself asked for another dtype."""
    cast = value.producer
    if cast is None or cast not in graph.loop_casts:
        return value
    source = cast.operands[0]
    return value if source.type.is_python else source


def _quiet(called: OpDef | Callable[..., Any], attrs: dict[str, Any], *operands: Any) -> Any:
    function = called.evaluate if isinstance(called, OpDef) else called
    with np.errstate(all="ignore"):
        return function(*operands, **attrs)


def _renumber(graph: Graph) -> None:
    """Number the ordered ops anew: their order is that of the blocks."""
    for number, op in enumerate(op for op in graph.walk() if op.defn.has(Trait.ORDERED)):
        op.attrs["order"] = number
