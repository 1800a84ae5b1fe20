"""The order in which NumPy (from 2.3) reduces an array, as a plan over symbolic sizes that code generation follows.

For floats the order of additions decides the bits. NumPy walks the axes in the order of falling |stride|, each
in its own direction, so that a reversed axis is read from the far end of memory:
1. Axes of size 1 play no part. Neighbours merge where the outer one continues the inner one.
2. If the innermost axis is kept, the reduced axes around it are serial: row after row is added to the row of results.
3. If it is reduced, the innermost run of reduced axes is one flat sequence, cut into chunks of which each is added
   pairwise and then onto the accumulator; reduced axes further out are serial.
A product is serial throughout, in the same order. Integers, bools, maxima, minima, any and all do not depend on it.
Not covered: axes of stride zero (`broadcast` is set), and sizes that turn out to be 1 at run time (`not_one`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise as neighbours
from typing import Any, Literal, TypeAlias

import numpy as np

from jitgraph.ir.dims import Dim, DimLike, as_symbol, dim_max, dim_min, evaluate, floordiv
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.types import TensorType

Order: TypeAlias = Literal["pairwise", "serial", "free"]
ReduceKind: TypeAlias = Literal["sum", "prod", "max", "min", "any", "all"]

#: NumPy's iterator joins inner axes into one call of the inner loop up to this many elements (its default buffer size).
BUFFER = 8192


@dataclass(frozen=True, slots=True)
class ReductionPlan:
    """How one array is reduced. All axes are those of the operand; those of size 1 are in none of the lists.

    Attributes:
        order: "pairwise" if `inner` is added by NumPy's pairwise tree, "serial" if elements go one by one, "free" if
            any grouping gives the same value.
        loops: the axes around the inner run, outermost first, kept and reduced ones as NumPy nests them. An
            accumulator of its own stands for each index of the kept axes.
        kept: the kept axes, outermost first; those of them that are not in `loops` do not exist.
        outer_serial: the reduced axes among `loops`.
        inner: the innermost run of reduced axes, outermost first; empty if the innermost axis is kept.
        merged: whether the inner run is one gapless sequence (of any constant stride).
        chunk: elements of the flat inner run that go into one pairwise call; None: all of them.
        init: what an accumulator starts from: 0 for sums, 1 for products; None: the first element.
        not_one: sizes for which the plan holds only if they are not 1: NumPy would leave their axis out.
        broadcast: whether an axis has stride zero; NumPy's order is then another one.
    """

    order: Order
    loops: tuple[int, ...]
    kept: tuple[int, ...]
    outer_serial: tuple[int, ...]
    inner: tuple[int, ...]
    merged: bool
    chunk: DimLike | None
    init: int | None
    not_one: tuple[DimLike, ...] = ()
    broadcast: bool = False


_INIT: dict[str, int | None] = {"sum": 0, "prod": 1, "max": None, "min": None, "any": 0, "all": 1}


def reduction_order(dtype: np.dtype, kind: ReduceKind) -> Order:
    """Whether the grouping of a reduction shows in its bits."""
    if dtype.kind != "f" or kind not in ("sum", "prod"):
        return "free"
    return "pairwise" if kind == "sum" else "serial"


def reduction_plan(x: TensorType, axes: Sequence[int], kind: ReduceKind = "sum") -> ReductionPlan:
    """The plan of NumPy's `kind` over `axes` (none negative) of an array of type `x`."""
    reduced = frozenset(axes)
    order = [k for k in x.layout.order if x.shape[k] != 1]
    start = len(order)
    while start and order[start - 1] in reduced:
        start -= 1
    loops, inner = tuple(order[:start]), tuple(order[start:])
    sizes = _merged_sizes(x, inner)
    rule = reduction_order(x.dtype, kind)
    outer_serial = tuple(k for k in loops if k in reduced)
    if rule == "pairwise" and not inner:
        rule = "serial"
    kept = tuple(k for k in loops if k not in reduced)
    return ReductionPlan(
        rule,
        loops,
        kept,
        outer_serial,
        inner,
        len(sizes) <= 1,
        _chunk(sizes) if rule == "pairwise" and len(sizes) > 1 else None,
        _INIT[kind],
        tuple(x.shape[k] for k in order if _may_be_one(x.shape[k])) if rule != "free" else (),
        any(k in x.layout.zero for k in order),
    )


def _may_be_one(d: DimLike) -> bool:
    """A size of an argument is not 1 (that is part of the key); a derived one may be."""
    return isinstance(d, Dim) and as_symbol(d) is None


def _merged_sizes(x: TensorType, run: Sequence[int]) -> list[DimLike]:
    """Sizes of a run of axes after merging those that continue one another."""
    if not run:
        return []
    place = {axis: at for at, axis in enumerate(x.layout.order)}
    sizes: list[DimLike] = [x.shape[run[0]]]
    for outer, axis in neighbours(run):
        if any(k in x.layout.breaks for k in range(place[outer], place[axis])):
            sizes.append(x.shape[axis])
        else:
            sizes[-1] = sizes[-1] * x.shape[axis]
    return sizes


def _chunk(sizes: Sequence[DimLike]) -> DimLike:
    """The length of a pairwise call over a run that did not merge into one axis, as a formula over the sizes.

    The inner axes whose product is at most `BUFFER` make one stretch, and as many stretches as fit go into one call;
    where all axes fit, that is at least the whole run. An axis joins if the product up to it is at most `BUFFER`,
    which is min(1, BUFFER // product).
    """
    stretch = product = sizes[-1]
    for d in sizes[-2:0:-1]:
        product = product * d
        joins = dim_min(1, floordiv(BUFFER, dim_max(product, 1)))
        stretch = stretch * (1 + joins * (d - 1))
    return stretch * dim_max(1, floordiv(BUFFER, dim_max(stretch, 1)))


# ---------------------------------------------------------------------------------------------- the plan as a model


def type_of(x: np.ndarray) -> TensorType:
    """The type of a concrete array."""
    return TensorType(x.dtype, x.shape, "array", layout_of(x.shape, x.strides, x.itemsize))


def pairwise(a: np.ndarray) -> Any:
    """The sum of a 1-d array by NumPy's tree: halves down to 128 elements, eight accumulators in a leaf."""
    n = len(a)
    if n < 8:
        total = a.dtype.type(-0.0)
        for value in a:
            total = total + value
        return total
    if n <= 128:
        full = n - n % 8
        lanes = a[:8].copy()
        for i in range(8, full, 8):
            lanes = lanes + a[i : i + 8]
        total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
        for value in a[full:]:
            total = total + value
        return total
    half = n // 2
    half -= half % 8
    return pairwise(a[:half]) + pairwise(a[half:])


def model_reduce(x: np.ndarray, axes: Sequence[int], kind: ReduceKind = "sum") -> Any:
    """What NumPy gives for `kind` over `axes` of a float array, by following the plan one element at a time."""
    plan = reduction_plan(type_of(x), axes, kind)
    chunk = None if plan.chunk is None else evaluate(plan.chunk, {})
    ones = [k for k in range(x.ndim) if x.shape[k] == 1]
    nested = x.transpose([*plan.loops, *plan.inner, *ones]).reshape([x.shape[k] for k in (*plan.loops, *plan.inner)])
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    result: dict[tuple[int, ...], Any] = {}
    for index in np.ndindex(*(x.shape[k] for k in plan.loops)):
        key = tuple(i for i, k in zip(index, plan.loops, strict=True) if k in plan.kept)
        flat = nested[index].ravel()
        total: Any = result.get(key, None if plan.init is None else x.dtype.type(plan.init))
        if plan.order == "pairwise":
            step = chunk or max(len(flat), 1)
            for start in range(0, len(flat), step):
                total = combine(total, pairwise(flat[start : start + step]))
        else:
            values_left = flat if total is not None else flat[1:]
            total = flat[0] if total is None else total
            for value in values_left:
                total = combine(total, value)
        result[key] = total
    kept_shape = [x.shape[k] for k in plan.kept]
    values = np.full(kept_shape, 0 if plan.init is None else plan.init, x.dtype)
    for key, total in result.items():
        values[key] = total
    logical = [k for k in range(x.ndim) if k not in axes]
    inverse = sorted(range(len(plan.kept)), key=lambda i: plan.kept[i])
    return values.transpose(inverse).reshape([x.shape[k] for k in logical])[()]
