"""Strided views whose axes a reshape merges: whether they continue one another in memory, as the sizes at hand have it.

`x[:, ::2].reshape(-1)` is a view where NumPy makes one: for an even number of columns. A view of axes that lie in one
piece in their base is then written as a view of the flattened base, whose layout says that nothing is broken.
"""

from __future__ import annotations

from itertools import pairwise

from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType
from jitgraph.modes import TraceMode
from jitgraph.ops.shape import continues
from jitgraph.tensor import Tensor, make, reshape_of, view_of
from jitgraph.xp.core import product


class Unsure(Exception):  # noqa: N818  # an answer
    """Only the strides of an argument say whether two axes continue one another."""


def mergeable(x: Tensor, shape: Shape) -> Tensor | None:
    """`x` with the axes that a reshape to `shape` merges as one axis each, if they continue one another.

    Returns:
        None if two of them do not, or nothing is to be merged: then `x` itself says all.

    Raises:
        Unsure: see there.
    """
    mode = x._storage.mode
    t = x.type
    if not isinstance(mode, TraceMode) or not x._steps or not isinstance(x._steps[-1], IndexMap):
        return None
    try:
        runs = _runs(mode, t.shape, shape)
        if runs is None:
            return None
        base = make(x._storage, x._steps[:-1])
        seen: IndexMap = x._steps[-1]
        if all(_continue(mode, t, base.type, seen, a, b) for run in runs for a, b in pairwise(run)):
            return _merged(base, seen, [run for run in runs if len(run) > 1])
    except Undecided:
        pass
    return None


def _runs(mode: TraceMode, old: Shape, new: Shape) -> list[list[int]] | None:
    """The shortest runs of old axes whose products are those of runs of new axes; None if only together they are equal.

    Raises:
        Undecided: sizes that are data.
    """
    axes = [k for k, d in enumerate(old) if not mode.decide("==", d, 1)]
    runs: list[list[int]] = []
    i = j = 0
    while i < len(axes) and j < len(new):
        run, left, right = [axes[i]], old[axes[i]], new[j]
        i, j = i + 1, j + 1
        while not mode.decide("==", left, right):
            if mode.decide("<", left, right):
                if i == len(axes):
                    return None
                left, i = left * old[axes[i]], i + 1
                run.append(axes[i - 1])
            else:
                if j == len(new):
                    return None
                right, j = right * new[j], j + 1
        runs.append(run)
    return runs


def _continue(mode: TraceMode, t: TensorType, base: TensorType, seen: IndexMap, a: int, b: int) -> bool:
    """Whether a step along axis `a` of the view is a run of axis `b`.

    Raises:
        Unsure, Undecided
    """
    if continues(t, a, b):
        return True
    order = base.layout.order
    firsts = [p for p, axis in enumerate(order) if seen.axes[axis].axis == a]
    seconds = [p for p, axis in enumerate(order) if seen.axes[axis].axis == b]
    if len(firsts) != 1 or len(seconds) != 1:
        return False
    p, q = firsts[0], seconds[0]
    step_a, step_b = seen.axes[order[p]].step, seen.axes[order[q]].step
    if p > q or (order[p] in base.layout.negative) != (order[q] in base.layout.negative):
        return False
    if order[p] in base.layout.zero or order[q] in base.layout.zero:
        return False
    run = t.shape[b] * step_b
    whole: DimLike = product([base.shape[k] for k in order[p + 1 : q + 1]])
    if not any(k in base.layout.breaks for k in range(p, q)):
        return mode.decide("==", step_a * whole, run)
    if step_a != 1 or mode.builder.prove("<=", run, whole):
        return False
    raise Unsure


def _merged(base: Tensor, seen: IndexMap, runs: list[list[int]]) -> Tensor:
    """The view `seen` of `base` with each run of its axes as one, by way of a reshape of the base."""
    order = base.type.layout.order
    place = {axis: p for p, axis in enumerate(order)}
    of_view = {m.axis: k for k, m in enumerate(seen.axes) if m.axis is not None}
    spans = {place[of_view[run[0]]]: (place[of_view[run[-1]]], run) for run in runs}
    gone = {axis for run in runs for axis in run[:-1]}
    kept = [k for k in range(len(seen.shape)) if k not in gone]
    number = {k: i for i, k in enumerate(kept)}
    sizes: list[DimLike] = []
    axes: list[AxisMap] = []
    p = 0
    while p < len(order):
        last, run = spans.get(p, (p, []))
        offset: DimLike = 0
        for axis in order[p : last + 1]:
            offset = offset * base.type.shape[axis] + seen.axes[axis].offset
        inner = seen.axes[order[last]]
        sizes.append(product([base.type.shape[axis] for axis in order[p : last + 1]]))
        axes.append(AxisMap(offset, inner.step, None if inner.axis is None else number[inner.axis]))
        p = last + 1
        if run:
            number[run[-1]] = number[inner.axis]  # type: ignore[index]
    shape = list(seen.shape)
    for run in runs:
        shape[run[-1]] = product([seen.shape[k] for k in run])
    turned = base if list(order) == sorted(order) else view_of(base, IndexMap.permute(base.type.shape, order))
    flat = reshape_of(turned, tuple(sizes))
    return view_of(flat, IndexMap(tuple(shape[k] for k in kept), tuple(axes)))
