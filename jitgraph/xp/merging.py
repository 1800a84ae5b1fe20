"""Strided arrays that lie in one piece, or whose axes a reshape merges, for the sizes at hand.

`x[:, ::2].reshape(-1)` is a view where NumPy makes one: for an even number of columns. A view of axes that lie in one
piece in their base is then written as a view of the flattened base, whose layout says that nothing is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations, pairwise
from typing import Any, TypeAlias

from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.reshapes import continues
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, apply, make, reshape_of, view_of
from jitgraph.xp.core import R, memory_order, product

#: An array of more axes whose sizes are not known is asked about each of them, not about several at once.
_MOST_AXES = 5


class Unsure(Exception):  # noqa: N818  # an answer
    """Two axes continue one another by the strides of an argument, not by its type; or that is not known."""


def mergeable(x: Tensor, shape: Shape) -> Tensor | None:
    """`x` with one axis in place of those that a reshape to `shape` merges, if they continue one another.

    Returns:
        None if two of them do not.

    Raises:
        Unsure: see there.
    """
    mode = x._storage.mode
    t = x.type
    if not isinstance(mode, TraceMode):
        return None
    base, seen = _base_of(x)
    try:
        axes = [k for k, d in enumerate(t.shape) if not mode.decide("==", d, 1)]
        runs = _runs(mode, axes, t.shape, shape)
        if runs is None:
            return None
        if all(_continue(mode, t, base, seen, a, b) for run, _ in runs for a, b in pairwise(run)):
            return _merged(base, seen, axes, runs)
    except Undecided:
        pass
    return None


def _base_of(x: Tensor) -> tuple[Tensor, IndexMap]:
    """What `x` is the last view of, and this view."""
    if x._steps and isinstance(x._steps[-1], IndexMap):
        return make(x._storage, x._steps[:-1]), x._steps[-1]
    return x, IndexMap.identity(x.type.shape)


Run: TypeAlias = tuple[list[int], DimLike]


def _runs(mode: TraceMode, axes: list[int], old: Shape, new: Shape) -> list[Run] | None:
    """The shortest runs of `axes` of the old ones with the product of a run of new ones, each with this product of new
    sizes.

    Raises:
        Undecided: sizes that are data.
    """
    runs: list[Run] = []
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
        runs.append((run, right))
    return runs


def _continue(mode: TraceMode, t: TensorType, x: Tensor, seen: IndexMap, a: int, b: int) -> bool:
    """Whether a step along axis `a` of the view `seen` of `x`, of type `t`, is a run of axis `b`.

    Raises:
        Unsure, Undecided
    """
    if continues(t, a, b):
        return True
    base = x.type
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
    if step_a == 1 and mode.builder.prove("==", run, whole):
        return False  # the layout says that the axes of the base do not
    origin = x._storage.origin
    if not x._steps and origin is not None:
        outer, inner = mode.stride(origin, order[p]), mode.stride(origin, order[q])
        if outer is not None and inner is not None and not mode.decide("==", step_a * outer, run * inner):
            return False
    raise Unsure


def _merged(base: Tensor, seen: IndexMap, wide: list[int], runs: list[Run]) -> Tensor:
    """The view `seen` of `base` with each run of its axes as one, by way of a reshape of the base.

    Args:
        wide: the axes that have not one element, by a guard perhaps; the others are left out.
    """
    order = base.type.layout.order
    place = {axis: p for p, axis in enumerate(order)}
    of_view = {m.axis: k for k, m in enumerate(seen.axes) if m.axis is not None}
    moving = [run for run, _ in runs if len(run) > 1 and run[0] in of_view]  # axes that repeat need no span
    spans = {place[of_view[run[0]]]: place[of_view[run[-1]]] for run in moving}
    gone = {axis for run, _ in runs for axis in run[:-1]}
    kept = [k for k in wide if k not in gone]
    number = {k: i for i, k in enumerate(kept)}
    sizes: list[DimLike] = []
    axes: list[AxisMap] = []
    p = 0
    while p < len(order):
        last = spans.get(p, p)
        offset: DimLike = 0
        for axis in order[p : last + 1]:
            offset = offset * base.type.shape[axis] + seen.axes[axis].offset
        inner = seen.axes[order[last]]
        sizes.append(product([base.type.shape[axis] for axis in order[p : last + 1]]))
        axes.append(AxisMap(offset, inner.step, None if inner.axis is None else number.get(inner.axis)))
        p = last + 1
    shape = list(seen.shape)
    for run, size in runs:
        shape[run[-1]] = size
    turned = base if list(order) == sorted(order) else view_of(base, IndexMap.permute(base.type.shape, order))
    flat = reshape_of(turned, tuple(sizes))
    return view_of(flat, IndexMap(tuple(shape[k] for k in kept), tuple(axes)))


# --- one piece


def is_contiguous(x: Tensor, order: str) -> bool:
    """Whether `x` lies in one piece in this order, "C" or "F", for the sizes at hand: where axes have one element, more
    arrays do than their type says, a slice of all there is leaves no gaps, and what is empty lies in any order.

    Raises:
        Undecided: sizes that are data decide it.
        Unsure: see there.
    """
    mode, t = x._storage.mode, x.type
    if t.is_contiguous(order) or not isinstance(mode, TraceMode):
        return t.is_contiguous(order)
    base, seen = _base_of(x)
    wide: list[int] = []
    undecided: Undecided | None = None
    for k, d in enumerate(t.shape):
        try:
            if mode.decide("==", d, 1):
                continue
        except Undecided as error:
            undecided = error
        wide.append(k)
    if order == "F":
        wide.reverse()
    innermost = not wide or _is_innermost(mode, base.type, seen, wide[-1])
    if innermost and all(_continue(mode, t, base, seen, a, b) for a, b in pairwise(wide)):
        return True
    if undecided is not None:
        raise undecided
    return is_known_empty(x)


def is_known_empty(x: Tensor) -> bool:
    """Whether it has no element, for the sizes at hand; not if data decide it."""
    try:
        return any(x._storage.mode.decide("==", d, 0) for d in x.type.shape)
    except Undecided:
        return False


def _is_innermost(mode: TraceMode, base: TensorType, seen: IndexMap, axis: int) -> bool:
    """Whether a step along this axis of the view `seen` is one element."""
    layout = base.layout
    places = [p for p, k in enumerate(layout.order) if seen.axes[k].axis == axis]
    if len(places) != 1:
        return False
    p = places[0]
    k = layout.order[p]
    if k in (*layout.zero, *layout.negative) or any(q >= p for q in layout.breaks):
        return False
    inner = product([base.shape[j] for j in layout.order[p + 1 :] if j not in layout.zero])
    return mode.decide("==", seen.axes[k].step * inner, 1)


def is_fortran(x: Tensor) -> bool:
    """Whether `x` lies in Fortran order and not in C order too, for the sizes at hand.

    Raises:
        Undecided: sizes that are data decide it.
        Unsure: see there.
    """
    t = x.type
    if sum(d != 1 for d in t.shape) < 2 or t.layout.is_c:
        return False
    return is_contiguous(x, "F") and not is_contiguous(x, "C")


def order_for(order: Any, x: Tensor) -> str:
    """`order=` as "C", "F" or "K", where "A" is Fortran's for an array that lies so and not in C order too.

    Raises:
        ShapeError: another word.
    """
    found = memory_order(order)
    if found != "A":
        return found
    try:
        return "F" if is_fortran(x) else "C"
    except (Undecided, Unsure):
        if x.type.layout.is_f:  # where it lies in both orders, nobody sees which one is taken
            return "F"
        mode = x._storage.mode
        assert isinstance(mode, TraceMode)
        mode.leave("the order of memory of an array whose sizes or strides are data", "name the order, 'C' or 'F'.")


def ordered(x: Tensor, order: str) -> Tensor:
    """`x`, or a copy where "C", "F" or "A" asks for another order in memory."""
    order = order_for(order, x)
    if order == "K" or x.type.is_contiguous(order):
        return x
    try:
        return x if is_contiguous(x, order) else apply(R("copy"), x, order=order)
    except Undecided:
        copied = apply(R("copy"), x, order=order)
        return copied if narrowed(x, copied, lambda t: t.is_contiguous(order)) is None else x
    except Unsure:
        copied, mode = apply(R("copy"), x, order=order), x._storage.mode
        assert isinstance(mode, TraceMode)
        mode.watch(copied._storage, [x._storage])
        return copied  # type: ignore[no-any-return]


# --- axes of one element


def narrowed(x: Tensor, copied: Tensor, fits: Callable[[TensorType], bool]) -> Tensor | None:
    """`x` without axes that have one element by a guard, if a type like this `fits`; None if there are no such axes.

    Where only the run knows whether there are, the copy is noted as what NumPy may make a view.
    """
    mode = x._storage.mode
    if not isinstance(mode, TraceMode):
        return None
    sizes: list[DimLike] = []
    tried: list[set[int]] = []
    wide = [k for k, d in enumerate(x.type.shape) if not isinstance(d, int)]
    most = len(wide) if len(wide) <= _MOST_AXES else 1
    for axes in chain.from_iterable(combinations(wide, count) for count in range(1, most + 1)):
        if any(known <= set(axes) for known in tried):
            continue
        narrow = drop_axes(x, axes)
        if fits(narrow.type):
            tried.append(set(axes))
            count = product([x.type.shape[k] for k in axes])
            try:
                if mode.decide("==", count, 1):
                    return narrow
            except Undecided:
                sizes.append(count)
    if sizes:
        mode.perhaps_view(copied._storage, x._storage, sizes)
    return None


def drop_axes(x: Tensor, gone: Sequence[int]) -> Tensor:
    """The view without axes of size 1."""
    kept = [k for k in range(x.type.ndim) if k not in gone]
    place = {k: i for i, k in enumerate(kept)}
    axes = tuple(AxisMap(0, 1, place[k]) if k in place else AxisMap(0, 0, None) for k in range(x.type.ndim))
    return view_of(x, IndexMap(tuple(x.type.shape[k] for k in kept), axes))
