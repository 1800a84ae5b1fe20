"""Results in the memory of arguments that the caller gives away (`donate_argnames`).

A donated array takes the place of one fresh result of its dtype, sizes and memory order: the trace ends with writing
the result into the argument, which is returned as it is, as `x[...] = y; return x` would. All that holds for writes to
arguments holds then: the write is the last thing that happens, what is read later is copied, and overlapping arguments
are known. An array that is read-only, that overlaps another argument, or that the function writes or returns itself
stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Result, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import IndexMap
from jitgraph.modes import TraceMode
from jitgraph.tensor import Storage, plain


def overlaps(leaves: Sequence[Any], donated: Collection[int]) -> bool:
    """Whether a donated leaf (by number) may share memory with another leaf of the call."""
    arrays = [(k, x) for k, x in enumerate(map(plain, leaves)) if isinstance(x, np.ndarray)]
    return any(k != j and np.may_share_memory(x, y) for k, x in arrays if k in donated for j, y in arrays)


def donate(mode: TraceMode, results: list[Result], returned: list[Value], storages: Iterable[Storage]) -> None:
    """Put fresh results into donated arrays.

    Args:
        results: the recipes of the leaves; changed.
        returned: the operands of `return`; those that find a place are taken out.
        storages: of the donated arguments.
    """
    shown = {r.index for r in results if r.how in ("argument", "view_of_argument")}
    for storage in storages:
        index = storage.origin
        arg = mode.builder.graph.args[index] if index is not None else None
        if index is None or arg is None or storage.value is not arg or index in shown or not storage.writable:
            continue
        fitting = [k for k, r in enumerate(results) if r.how == "fresh" and _alike(returned[r.index], arg)]
        k = next((k for k in fitting if returned[results[k].index].type.shape == arg.type.shape), None)
        if k is None:
            k = next((k for k in fitting if _same_sizes(mode.builder, returned[results[k].index], arg)), None)
        if k is None or results[k].read_only:
            continue
        value = returned[results[k].index]
        if sum(v is value for v in returned) > 1:
            continue
        whole = IndexMap.identity(arg.type.shape)
        if value.type.shape != arg.type.shape:
            value = mode.renamed(value, whole)
        storage.value = mode.builder.apply(REGISTRY["write"], value, arg, map=whole)[0]
        _take_out(results, returned, results[k].index)
        results[k] = Result("argument", index, tensor=results[k].tensor)


def _alike(value: Value, arg: Value) -> bool:
    """Whether an array and an argument have the same dtype, rank and order in memory, without gaps."""
    t, other = value.type, arg.type
    same = t.kind == "array" and t.dtype == other.dtype and t.ndim == other.ndim and t.layout == other.layout
    return same and t.layout.is_dense and not t.layout.unaligned


def _same_sizes(builder: Builder, value: Value, arg: Value) -> bool:
    """Whether the sizes are equal in the example; a guard has it so from now on."""
    known = {s.name for s in builder.graph.symbols.values() if s.origin == "arg" and s.hint is not None}
    pairs = list(zip(value.type.shape, arg.type.shape, strict=True))
    if any(name not in known for pair in pairs for d in pair for name in symbols(d)):
        return False
    return all(builder.decide("==", a, b) for a, b in pairs)


def _take_out(results: list[Result], returned: list[Value], index: int) -> None:
    """One operand less for `return`."""
    del returned[index]
    for k, r in enumerate(results):
        if r.how in ("fresh", "choice") and r.index > index:
            results[k] = replace(r, index=r.index - 1)
