"""Borders between the axes of a view that the run may find closed: `x[:, ::2]` has one stride if its rows are even,
`x[:, :k]` no gaps if `k` is all of the axis.

NumPy joins such axes, and adds up what is one sequence in other chunks. Types say of a border whether it is closed for
all sizes; where the sizes of a call tell, the chunks of a plan are formulas over both answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from jitgraph.codegen.lower_views import dense_strides
from jitgraph.ir.dims import DimLike, Facts, dim_max
from jitgraph.ir.graph import Value
from jitgraph.ir.types import TensorType
from jitgraph.ops.reduction_plan import ReductionPlan, continues
from jitgraph.records import dataclass

#: Borders of one reduction that are looked at: each of them doubles the formulas.
MOST_BORDERS = 2


@dataclass(slots=True)
class Border:
    """Between two axes of an operand that follow one another.

    Attributes:
        operand: 0 for the array, 1 for the mask.
        axes: the outer and the inner one.
        closed: 1 if the outer one goes on where the inner one ends, else 0.
    """

    operand: int
    axes: tuple[int, int]
    closed: DimLike

    def shut(self, t: TensorType) -> TensorType:
        """The type of the operand if it is closed."""
        order = t.layout.order
        between = range(order.index(self.axes[0]), order.index(self.axes[1]))
        breaks = tuple(at for at in t.layout.breaks if at not in between)
        return t.with_shape(t.shape, replace(t.layout, breaks=breaks))


def borders_of(
    operands: Sequence[Value], types: Sequence[TensorType], plan: ReductionPlan, facts: Facts
) -> list[Border]:
    """The borders in the inner run of a plan (and that to the axis around it) of which only the run knows."""
    axes = [*plan.loops[-1:], *plan.inner]
    found: list[Border] = []
    for number, (v, t) in enumerate(zip(operands, types, strict=True)):
        strides: list[DimLike] | None = None
        for outer, inner in pairwise(axes):
            place = t.layout.order.index
            if continues(t, outer, inner) or place(outer) > place(inner) or {outer, inner} & {*t.layout.zero}:
                continue
            strides = strides if strides is not None else strides_of(v)
            if strides is None:
                break
            size = t.shape[inner]
            gap = strides[outer] - size * strides[inner]
            if _opens(gap, size, facts):
                continue
            found.append(Border(number, (outer, inner), dim_max(0, 1 - gap) * dim_max(0, 1 + gap)))
    return found[:MOST_BORDERS]


def _opens(gap: DimLike, size: DimLike, facts: Facts) -> bool:
    """Whether a border is open wherever there are elements."""
    return facts.is_ne(gap, 0) or (size != 0 and (facts.is_le(size, gap) or facts.is_le(size, 0 - gap)))


def strides_of(value: Value) -> list[DimLike] | None:
    """The strides, in elements (of complex numbers for their parts), of an array or a view of one that lies gapless;
    None where only its memory would tell.
    """
    maps = []
    while True:
        producer = value.producer
        if producer is not None and producer.name == "view":
            maps.append(producer.attrs["map"])
            value = producer.operands[0]
            continue
        if producer is not None and producer.name in ("real", "imag"):  # all of its strides are twice as wide
            value = producer.operands[0]
            continue
        outside = value.block.parent if producer is None and value.block is not None else None
        if outside is None or outside.name != "kernel":
            break
        value = outside.operands[value.index]
    t = value.type
    if t.layout.breaks or t.layout.zero or t.layout.negative:
        return None
    strides = [*dense_strides(t.shape, t.layout.order, 1)]
    for map in reversed(maps):
        seen: list[DimLike] = [0] * len(map.shape)
        for m, stride in zip(map.axes, strides, strict=True):
            if m.axis is not None:
                seen[m.axis] = seen[m.axis] + stride * m.step
        strides = seen
    return strides
