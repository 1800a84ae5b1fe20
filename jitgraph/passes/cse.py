"""Common subexpressions: equal pure ops become one, along dominance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.printer import attr_text
from jitgraph.ir.rewrite import erase_unused, replace_value, starts_storage
from jitgraph.ir.types import AxisMap, IndexMap


def cse(graph: Graph) -> bool:
    """Replace an op by an equal one before it, in its block or one around; True if one was replaced.

    Arrays that start a storage of their own (written later, carried by a loop) stay apart: merging would cost a copy.
    """
    return _Merger(graph).block(graph.body)


class _Merger:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.b = Builder(graph)
        self.seen: dict[tuple[Any, ...], Op] = {}

    def block(self, block: Block) -> bool:
        changed = False
        added: list[tuple[Any, ...]] = []
        for op in block.ops():
            if op.regions:
                for region in op.regions:
                    changed |= self.block(region)
                continue
            traits = op.defn.traits
            if Trait.PURE not in traits or Trait.BINDS in traits or Trait.MAY_RAISE in traits or op.name == "copy":
                continue
            key = op_key(op)
            first = self.seen.get(key)
            if first is None:
                self.seen[key] = op
                added.append(key)
            elif Trait.REDUCTION in traits and first.attrs.get("keepdims", False) != op.attrs.get("keepdims", False):
                changed |= self.reduced(first, op)
            elif _mergeable(first, op):
                for old, new in zip(op.results, first.results, strict=True):
                    if old.uses:
                        self.b.ahead_of(op)
                        replace_value(old, new, self.b)
                self.graph.erase(op)
                changed = True
        for key in added:
            del self.seen[key]
        return changed

    def reduced(self, first: Op, op: Op) -> bool:
        """reduce(x, keepdims) = reduce(x), with axes of size 1 put in or left out"""
        base, t = first.result, op.result.type
        if starts_storage(base) or starts_storage(op.result):
            return False
        b = self.b.ahead_of(op)
        axes = op.attrs["axes"]
        if not base.type.ndim:
            value = b.full(base, shape=t.shape, dtype=t.dtype)
        else:
            kept = [k for k in range(op.operands[0].type.ndim) if k not in axes]
            if op.attrs.get("keepdims", False):
                m = IndexMap(t.shape, tuple(AxisMap(0, 1, k) for k in kept))
            else:
                number = {k: i for i, k in enumerate(kept)}
                m = IndexMap(
                    t.shape,
                    tuple(AxisMap(0, 1, number.get(k)) if k in number else AxisMap(0) for k in range(base.type.ndim)),
                )
            value = b.view(base, map=m)
            if not t.ndim:
                value = b.as_kind(value, kind=t.kind)
        if value.type != t:
            erase_unused(self.graph, value.producer)
            return False
        replace_value(op.result, value, b)
        self.graph.erase(op)
        return True


def op_key(op: Op, names: Mapping[Value, Value] | None = None) -> tuple[Any, ...]:
    """Equal for ops that compute the same values.

    Args:
        names: values that others stand for.
    """
    operands = [id(v) for v in op.operands] if names is None else [id(names.get(v, v)) for v in op.operands]
    if Trait.REDUCTION in op.defn.traits:  # `keepdims` changes the shape only
        return (op.defn.name, *operands, op.attrs["axes"], op.attrs.get("dtype"))
    turned = len(operands) == 2 and Trait.COMMUTATIVE in op.defn.traits and operands[0] > operands[1]
    if turned and op.defn.commutes([v.type for v in op.operands]):
        operands.reverse()
    if not op.attrs:
        return (op.defn.name, *operands)
    return (op.defn.name, *operands, tuple([(k, attr_key(v)) for k, v in sorted(op.attrs.items())]))


def attr_key(value: Any) -> Any:
    """A hashable stand-in for an attribute; numbers of other types or signs of zero are different."""
    if isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
        return (type(value), attr_text(value))
    if isinstance(value, list):
        return tuple(value)
    return value


def _mergeable(first: Op, op: Op) -> bool:
    if any(a.type != b.type for a, b in zip(first.results, op.results, strict=True)):
        return False
    seeds = sum(starts_storage(r) for r in (*first.results, *op.results))
    return seeds == 0
