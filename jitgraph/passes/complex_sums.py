"""Reductions of complex numbers as reductions of their real and imaginary parts."""

from __future__ import annotations

from jitgraph import dtypes
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value


def complex_sums(graph: Graph) -> bool:
    """Part complex sums and running sums into those of real numbers.

    sum(z) = sum(real(z)) + i sum(imag(z)), where NumPy's pairwise order is that of complex numbers; so is cumsum(z).
    """
    found = [op for op in graph.walk() if op.name in _RULES and dtypes.is_complex(op.operands[0].type.dtype)]
    for op in found:
        b = Builder(graph).ahead_of(op)
        graph.replace(op, [_RULES[op.name](b, op)])
    return bool(found)


def _sum(b: Builder, op: Op) -> Value:
    where = {"axes": op.attrs["axes"], "keepdims": op.attrs.get("keepdims", False)}
    parts = ([getattr(b, part)(x) for x in op.operands] for part in ("real", "imag"))
    return _joined(b, op, *(b.reduce_sum_parts(*operands, **where) for operands in parts))


def _joined(b: Builder, op: Op, real: Value, imag: Value) -> Value:
    made = b.with_imag(b.cast_to(real, op.result.type.dtype), imag)
    if made.type != op.result.type:  # of a strided operand: the layout that the real one has
        assert made.producer is not None
        made.type = op.result.type
    return made  # type: ignore[no-any-return]


def _running(b: Builder, op: Op) -> Value:
    (x,) = op.operands
    return _joined(b, op, *(b.cumsum(getattr(b, part)(x), axis=op.attrs["axis"]) for part in ("real", "imag")))


_RULES = {"reduce_sum": _sum, "cumsum": _running}
