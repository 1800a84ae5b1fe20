"""The order in which NumPy (from 2.3) reduces an array, as a plan over symbolic sizes that code generation follows.

For floats the order of additions decides the bits. NumPy's iterator walks the axes in the order of falling |stride|,
each in its own direction, so that a reversed axis is read from the far end of memory; an axis of stride zero stays
where its neighbours leave it (`ir.types.elementwise_layout` is the rule):
1. Axes of size 1 play no part. Neighbours merge where the outer one continues the inner one in every operand (the array
   and the mask of `where=`); two axes of stride zero merge.
2. If the innermost axis is kept, the reduced axes around it are serial: row after row is added to the row of results.
3. If it is reduced, the innermost run of reduced axes is one flat sequence, cut into chunks of which each is added
   pairwise and then onto the accumulator; reduced axes further out are serial.
4. A chunk is one call of NumPy's inner loop. An operand that is cast (`dtype=`; byte-swapped and unaligned arrays too)
   goes through a buffer of 8192 elements; so does one whose axes do not merge, if that saves calls (`_Run.calls` has
   the comparison of costs). What fits into the buffer is one chunk.
5. Under a mask each stretch of true elements inside a chunk is added pairwise, one after the other.
A product is serial throughout, in the same order. Integers, bools, maxima, minima, any and all do not depend on it.
A size that may turn out to be 1 at run time asks for two plans. Not covered: `np.setbufsize`, and an `out=` whose axes
lie in another order than the array's, or whose dtype is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import numpy as np

from jitgraph.ir.dims import DimLike, dim_max, dim_min, evaluate, floordiv
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.types import TensorType, elementwise_layout
from jitgraph.records import dataclass

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
        period: the chunks begin anew after so many elements; None: never.
        init: what an accumulator starts from: 0 for sums, 1 for products; None: the first element.
    """

    order: Order
    loops: tuple[int, ...]
    kept: tuple[int, ...]
    outer_serial: tuple[int, ...]
    inner: tuple[int, ...]
    merged: bool
    chunk: DimLike | None
    period: DimLike | None
    init: int | None


_INIT: dict[str, int | None] = {"sum": 0, "prod": 1, "max": None, "min": None, "any": 0, "all": 1}


def reduction_order(dtype: np.dtype, kind: ReduceKind) -> Order:
    """Whether the grouping of a reduction shows in its bits."""
    if dtype.kind != "f" or kind not in ("sum", "prod"):
        return "free"
    return "pairwise" if kind == "sum" else "serial"


def reduction_plan(
    x: TensorType,
    axes: Sequence[int],
    kind: ReduceKind = "sum",
    *,
    dtype: np.dtype | None = None,
    mask: TensorType | None = None,
) -> ReductionPlan:
    """The plan of NumPy's `kind` over `axes` (none negative) of an array of type `x`.

    Args:
        dtype: what is computed in; None: the dtype of `x`. Any other goes through a buffer.
        mask: type of the mask of `where=`, of the shape of `x`.
    """
    reduced = frozenset(axes)
    operands = (x,) if mask is None else (x, mask)
    walked = elementwise_layout(x.ndim, operands).order if mask is not None or x.layout.zero else x.layout.order
    order = [k for k in walked if x.shape[k] != 1]
    start = len(order)
    while start and order[start - 1] in reduced:
        start -= 1
    loops, inner = tuple(order[:start]), tuple(order[start:])
    dtype = x.dtype if dtype is None else dtype
    rule = reduction_order(dtype, kind)
    around = tuple(takewhile(lambda k: k not in reduced, reversed(loops)))
    run = _Run.of(operands, inner, around, buffered=dtype != x.dtype or x.layout.unaligned)
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
        len(run.sizes) <= 1,
        *(run.calls() if rule == "pairwise" else (None, None)),
        _INIT[kind],
    )


def continues(t: TensorType, outer: int, inner: int) -> bool:
    """Whether stride[outer] == size[inner] * stride[inner]."""
    if outer in t.layout.zero or inner in t.layout.zero:
        return outer in t.layout.zero and inner in t.layout.zero
    place = {axis: at for at, axis in enumerate(t.layout.order)}
    return place[outer] < place[inner] and not any(k in t.layout.breaks for k in range(place[outer], place[inner]))


def _holds(a: DimLike, b: DimLike) -> DimLike:
    """1 if a <= b, else 0."""
    return dim_max(0, dim_min(1, b - a + 1))


@dataclass(frozen=True, slots=True)
class _Run:
    """The innermost run of reduced axes, after merging those that continue one another in all operands.

    Attributes:
        sizes: of the merged axes, innermost first.
        costs: for each border, from the innermost outwards: what the iteration costs beyond it, 1 plus the number of
            operands that need a buffer: those that are cast, and those that do not get so far with one stride.
        around: size of the kept axes next to the run, and the cost beyond their border; None: there are none.
        buffered: whether the array is cast.
    """

    sizes: tuple[DimLike, ...]
    costs: tuple[int, ...]
    around: tuple[DimLike, int] | None
    buffered: bool

    @staticmethod
    def of(operands: Sequence[TensorType], inner: Sequence[int], outside: Sequence[int], *, buffered: bool) -> _Run:
        """The run over `inner` (outermost first); `outside` are the kept axes around it, the innermost first."""
        if not inner:
            return _Run((), (), None, buffered)
        shape = operands[0].shape
        sizes: list[DimLike] = []
        costs: list[int] = []
        broken: set[int] = {0} if buffered else set()
        for axis, before in zip(inner[::-1], (None, *inner[:0:-1]), strict=True):
            ends = set() if before is None else {k for k, t in enumerate(operands) if not continues(t, axis, before)}
            if before is None or ends:
                sizes.append(shape[axis])
            else:
                sizes[-1] = sizes[-1] * shape[axis]
            if ends:
                broken |= ends
                costs.append(1 + len(broken))
        if not outside:
            return _Run(tuple(sizes), tuple(costs), None, buffered)
        broken |= {k for k, t in enumerate(operands) if not continues(t, outside[0], inner[0])}
        kept = shape[outside[0]]
        for axis, before in zip(outside[1:], outside, strict=False):
            if not all(continues(t, axis, before) for t in operands):
                break
            kept = kept * shape[axis]
        return _Run(tuple(sizes), tuple(costs), (kept, 2 + len(broken)), buffered)

    def calls(self) -> tuple[DimLike | None, DimLike | None]:
        """(chunk, period) of the plan, as formulas over the sizes.

        NumPy grows the core, an inner part of the axes, by one axis after the other as long as it is smaller than the
        buffer (or nothing is buffered): cost * size <= best_cost * min(size * next, buffer) takes the next axis, of
        which as many cores as fit into the buffer go into one call. The kept axis outside ends that; if it is
        taken the run is one call.
        """
        sizes, costs = self.sizes, self.costs
        if len(sizes) <= 1:
            return (BUFFER, None) if self.buffered and sizes else (None, None)
        if not self.buffered and len(sizes) == 2 and costs[0] == 2:  # usual: twice the inner size fits, or alone
            return sizes[0] * dim_max(1, floordiv(BUFFER, dim_max(sizes[0], 1))), None
        best = size = sizes[0]
        core: DimLike = 1
        going: DimLike = 1
        first_cost = best_cost = 2 if self.buffered else 1
        spent: DimLike = best_cost
        inner_only: DimLike = 1
        cost = first_cost
        for d, following in zip(sizes[1:], costs, strict=True):
            if cost > 1:
                going = going * _holds(size + 1, BUFFER)
            cost = following
            larger = size * d
            takes = going * _holds(cost * best, spent * dim_min(larger, BUFFER))
            core = core + takes * (size - core)
            best = best + takes * (larger - best)
            spent = spent + takes * (cost - spent)
            inner_only = inner_only * (1 - takes)
            size = larger
        fits = _holds(best, BUFFER)
        if not self.buffered:
            fits = _holds(1, fits + inner_only)
        chunk = fits * best + (1 - fits) * core * floordiv(BUFFER, dim_max(core, 1))
        if self.around is not None:
            kept, cost = self.around
            going = going * _holds(size + 1, BUFFER)
            takes = going * _holds(cost * best, spent * dim_min(size * kept, BUFFER))
            chunk = chunk + takes * (size - chunk)
            best = best + takes * (size - best)
        return chunk, best


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


def model_reduce(
    x: np.ndarray,
    axes: Sequence[int],
    kind: ReduceKind = "sum",
    *,
    dtype: np.dtype | None = None,
    mask: np.ndarray | None = None,
    initial: Any = None,
) -> Any:
    """What NumPy gives for `kind` over `axes` of a float array, by following the plan one element at a time.

    Args:
        mask: a bool array of the shape of `x`, broadcast views included.
    """
    plan = reduction_plan(type_of(x), axes, kind, dtype=dtype, mask=None if mask is None else type_of(mask))
    chunk = None if plan.chunk is None else evaluate(plan.chunk, {})
    period = None if plan.period is None else evaluate(plan.period, {})
    ones = [k for k in range(x.ndim) if x.shape[k] == 1]
    shape = [x.shape[k] for k in (*plan.loops, *plan.inner)]
    dtype = x.dtype if dtype is None else dtype
    nested = x.transpose([*plan.loops, *plan.inner, *ones]).reshape(shape).astype(dtype)
    chosen = np.ones(shape, bool) if mask is None else mask.transpose([*plan.loops, *plan.inner, *ones]).reshape(shape)
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    first = plan.init if initial is None else initial
    result: dict[tuple[int, ...], Any] = {}
    for index in np.ndindex(*(x.shape[k] for k in plan.loops)):
        key = tuple(i for i, k in zip(index, plan.loops, strict=True) if k in plan.kept)
        flat, true = nested[index].ravel(), chosen[index].ravel()
        total: Any = result.get(key, None if first is None else dtype.type(first))
        if plan.order == "pairwise":
            step = chunk or max(len(flat), 1)
            for start, stop in chunks_of(len(flat), step, period or max(len(flat), 1)):
                for run in runs_of(true[start:stop]):
                    total = combine(total, pairwise(flat[start:stop][run]))
        else:
            for value in flat[true]:
                total = value if total is None else combine(total, value)
        result[key] = total
    kept_shape = [x.shape[k] for k in plan.kept]
    values = np.full(kept_shape, 0 if first is None else first, dtype)
    for key, total in result.items():
        values[key] = total
    logical = [k for k in range(x.ndim) if k not in axes]
    inverse = sorted(range(len(plan.kept)), key=lambda i: plan.kept[i])
    return values.transpose(inverse).reshape([x.shape[k] for k in logical])[()]


def chunks_of(size: int, chunk: int, period: int) -> Iterator[tuple[int, int]]:
    """Where chunks of `chunk` elements begin and end that begin anew every `period`."""
    start = 0
    while start < size:
        stop = min(start + chunk, start - start % period + period, size)
        yield start, stop
        start = stop


def runs_of(mask: np.ndarray) -> list[slice]:
    """The stretches of true elements."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    return [slice(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]
