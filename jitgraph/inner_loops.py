"""Which inner loop NumPy takes where the bits depend on it: products, squares and absolute values of complex numbers.

Its loops over vectors round a product otherwise than its loops over single elements do. The latter are taken for some
strides, and where an operand and the output lie between each other in memory. What strides an inner loop sees follows
from NumPy's way over the operands: in one piece, or by its iterator, which sorts axes by stride, turns them around if
all go backwards, joins them where it can, and copies operands to a buffer where that makes for longer inner loops.

Source: `try_trivial_single_output_loop`, `NpyIter_AdvancedNew` and `npyiter_find_buffering_setup` of NumPy 2.3 and
later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from jitgraph.dtypes import C64
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.storage import apart
from jitgraph.ir.types import IndexMap, TensorType, c_layout, dense_layout, elementwise_layout
from jitgraph.records import dataclass
from jitgraph.sizes import Sizes, is_one

#: An operand's step in the inner loop: zero, one element, more elements, back.
Pace: TypeAlias = Literal["none", "unit", "forward", "backward"]
#: Elements in NumPy's buffer.
BUFFER = 8192


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operand lies: a view of a storage (or value) of the type `base`; `view` is None if it is not affine.

    Attributes:
        argument: the number of the argument that the storage is.
    """

    storage: object
    base: TensorType
    view: IndexMap | None
    argument: int | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """An operand of a call, or its output.

    Attributes:
        buffered: it is cast, byte-swapped or not aligned, so that the iterator copies it to its buffer.
        place: where it lies, if that is known.
        is_output: the very array object that is the output, too.
    """

    type: TensorType
    buffered: bool = False
    place: Place | None = None
    is_output: bool = False


# ------------------------------------------------------------------------------------------ which loops have no vectors


@cache
def _has(feature: str) -> bool:
    """Whether NumPy takes its loops for CPUs with a feature."""
    return bool(np._core._multiarray_umath.__cpu_features__.get(feature))  # type: ignore[attr-defined]


def _goes_back(dtype: np.dtype, paces: Sequence[Pace]) -> bool:
    """Whether an operand goes back, which vector loads of 32 bits refuse where they are gathers (AVX2 and above)."""
    return dtype == C64 and "backward" in paces[:-1] and _has("AVX2")


def product_is_plain(dtype: np.dtype, paces: Sequence[Pace], crossed: bool) -> bool:
    return crossed or paces[-1] == "none" or _goes_back(dtype, paces)


def square_is_plain(dtype: np.dtype, paces: Sequence[Pace], crossed: bool) -> bool:
    return crossed or "unit" not in paces or _goes_back(dtype, paces)


def absolute_is_plain(dtype: np.dtype, paces: Sequence[Pace], crossed: bool) -> bool:
    """The only one with a loop for AVX-512, where loads and stores of all widths have limits."""
    return crossed or _goes_back(dtype, paces) or ("backward" in paces and _has("AVX512F"))


#: Records to whether they are computed element by element: by the dtype of the loop, the paces of the operands and of
#: the output, and whether an operand and the output cross in memory.
RULES: dict[str, Callable[[np.dtype, Sequence[Pace], bool], bool]] = {
    "mul": product_is_plain,
    "square": square_is_plain,
    "abs": absolute_is_plain,
}


def is_plain(
    sizes: Sizes,
    name: str,
    dtype: np.dtype,
    inputs: Sequence[Side],
    out: Side | None = None,
    mask: TensorType | None = None,
    order: str = "K",
) -> bool:
    """Whether NumPy's inner loop for a call of the record `name` goes element by element.

    Args:
        sizes: decides relations of sizes; what only the run knows is taken to be many, and not in order.
        dtype: of the loop's operands.
        inputs: as they lie in memory, their shapes literally equal, 1 or missing where they broadcast.
        out: the output, if it is given.
        mask: of `where=`.
        order: of a fresh result.
    """
    rule = RULES[name]
    turned = (dtype == C64 or name == "abs") and any(s.type.layout.negative for s in inputs)
    if out is None and not turned and not _may_be_single(sizes, inputs, mask):
        return False  # only steps back keep fresh arrays of many elements from vectors
    if mask is None:
        inputs = _with_copies(sizes, inputs)
        direct = _in_one_piece(sizes, inputs, out)
        if direct is not None:
            return rule(dtype, *direct)
    walk = _Walk(sizes, inputs, out, mask, order)
    if not walk.groups:
        return rule(dtype, ["none"] * (len(inputs) + 1), False)
    answers = [rule(dtype, walk.paces(k), walk.crossed(k)) for k in range(len(walk.groups))]
    return answers[0] if len(set(answers)) == 1 else answers[walk.depth()]


def plain_if_single(
    sizes: Sizes,
    name: str,
    dtype: np.dtype,
    inputs: Sequence[Side],
    out: Side | None = None,
    mask: TensorType | None = None,
    order: str = "K",
) -> bool | DimLike:
    """`is_plain`, or a size that only the run knows: element by element if that is 1, which makes the difference.

    Sizes that cannot be larger than 1 (what a mask of one element selects) are 1: of no elements there are no bits.
    """
    given = [*inputs, *([] if out is None else [out])]
    builder = sizes.builder
    unknown = dict.fromkeys(
        d for s in given for d in s.type.shape if not isinstance(d, int) and builder.is_for_the_run(d)
    )
    if not unknown:
        return is_plain(sizes, name, dtype, inputs, out, mask, order)

    def answer(ones: Collection[DimLike]) -> bool:
        narrow = [_with_ones(s, ones) for s in given]
        seen = None if mask is None else _with_ones(Side(mask), ones).type
        return is_plain(sizes, name, dtype, narrow[: len(inputs)], narrow[-1] if out is not None else None, seen, order)

    ones = [d for d in unknown if builder.graph.facts.is_le(d, 1)]
    result = unknown if out is None else out.type.shape
    others = [d for d in dict.fromkeys(result) if d in unknown and d not in ones]
    many = answer(ones if others else unknown)  # no operand is larger than the output
    return others[0] if len(others) == 1 and not many and answer(unknown) else many


def _with_ones(s: Side, ones: Collection[DimLike]) -> Side:
    """An operand some of whose sizes are taken to be 1."""
    shape = s.type.shape
    if not any(d in ones for d in shape):
        return s
    return replace(s, type=s.type.with_shape(tuple(1 if d in ones else d for d in shape), s.type.layout))


def _may_be_single(sizes: Sizes, inputs: Sequence[Side], mask: TensorType | None) -> bool:
    """Whether a fresh result has one element, as far as that matters: not in one piece, unless it lies reversed."""
    shapes = {s.type.shape for s in inputs if s.type.ndim}
    dims = [d for shape in shapes for d in shape]
    if any(sizes.builder.prove("==", d, 1) is False for d in dims):
        return False
    direct = mask is None and len(shapes) == 1 and not any(s.buffered and s.type.ndim > 1 for s in inputs)
    if direct and any(d != 1 for d in dims):
        return False
    return all(is_one(sizes, d) for d in dims)


def _holds(sizes: Sizes, relation: str, a: DimLike, b: DimLike, otherwise: bool) -> bool:
    try:
        return sizes.decide(relation, a, b)
    except Undecided:
        return otherwise


# --------------------------------------------------------------------------------------------------------- in one piece


def _with_copies(sizes: Sizes, inputs: Sequence[Side]) -> list[Side]:
    """Short operands of one axis are cast in front, as long as each that has to be cast is one."""
    kept = list(inputs)
    for k, s in enumerate(inputs):
        if s.buffered:
            if s.type.ndim != 1 or not _holds(sizes, "<=", s.type.shape[0], BUFFER, otherwise=True):
                break
            kept[k] = Side(s.type.with_shape(s.type.shape))
    return kept


def _in_one_piece(sizes: Sizes, inputs: Sequence[Side], out: Side | None) -> tuple[list[Pace], bool] | None:
    """The paces of one inner loop over all, and whether an operand crosses the output; None: the iterator is taken."""
    moving = [s for s in inputs if s.type.ndim] + ([] if out is None else [out])
    shape = moving[0].type.shape if moving else ()
    ndim = len(shape)
    for s in moving:
        if len(s.type.shape) != ndim:
            return None
        for d, e in zip(s.type.shape, shape, strict=True):
            if d != e and not _holds(sizes, "==", d, e, otherwise=True):
                return None
        if s.buffered:
            return None
    single = all(is_one(sizes, d) for d in shape)
    if ndim > 1 and not single:
        ways = {(s.type.is_contiguous("C"), s.type.is_contiguous("F")) for s in moving}
        if len(ways) > 1 or (False, False) in ways:
            return None
    if out is not None and not all(
        (s.is_output and not single) or _may_run_ahead(sizes, s, out, single) for s in inputs
    ):
        return None
    paces: list[Pace] = []
    for s in inputs:
        if not s.type.ndim:
            paces.append("none")
        else:
            paces.append("unit" if ndim > 1 else _pace(sizes, s))
    paces.append("unit" if out is None or ndim != 1 else _pace(sizes, out))
    if out is not None and paces[-1] == "backward":
        return None
    axes = range(ndim)
    return paces, out is not None and any(_cross(sizes, s, out, ndim, axes) for s in inputs)


def _pace(sizes: Sizes, s: Side) -> Pace:
    """The step along the only axis of an operand."""
    layout = s.type.layout
    if s.type.shape == (1,) and (not layout.zero or _goes(s.place)):
        return _pace_of_one(sizes, s.place)
    if layout.zero:
        return "none"
    return "backward" if layout.negative else _ahead(s.type, 0)


def _goes(place: Place | None) -> bool:
    """Whether the only axis is one of a base's, be it of one element: then a stride of zero stands for any."""
    return place is not None and place.view is not None and any(m.axis == 0 and m.step != 0 for m in place.view.axes)


def _pace_of_one(sizes: Sizes, place: Place | None) -> Pace:
    """The stride of an only element counts, though there is nowhere to go."""
    if place is None or place.view is None:
        return "unit"
    axis = next((k for k, m in enumerate(place.view.axes) if m.axis == 0), None)
    step = 1 if axis is None else place.view.axes[axis].step
    if axis is None or not isinstance(step, int):
        return "unit"
    layout = place.base.layout
    pace: Pace = (
        "backward" if axis in layout.negative else "unit" if place.base.shape[axis] == 1 else _ahead(place.base, axis)
    )
    if place.base.shape[axis] == 1 and place.argument is not None:
        stride = sizes.stride(place.argument, axis)
        if stride is not None and not _holds(sizes, "==", stride, place.base.dtype.itemsize, otherwise=True):
            pace = "backward" if _holds(sizes, "<", stride, 0, otherwise=False) else "forward"
    if step == 1:
        return pace
    return "forward" if (step > 0) != (pace == "backward") else "backward"


def _ahead(t: TensorType, axis: int) -> Pace:
    """The step along an axis, in whatever direction."""
    layout = t.layout
    at = layout.order.index(axis)
    inner = [k for k in layout.order[at + 1 :] if t.shape[k] != 1 and k not in layout.zero]
    return "forward" if inner or any(k >= at for k in layout.breaks) else "unit"


# ------------------------------------------------------------------------------------------------------ by the iterator


class _Walk:
    """How the iterator goes over operands.

    Attributes:
        groups: axes of the broadcast shape that are gone through as one, the innermost first; none of size 1.
    """

    def __init__(
        self, sizes: Sizes, inputs: Sequence[Side], out: Side | None, mask: TensorType | None, order: str
    ) -> None:
        self.sizes, self.inputs, self.out = sizes, inputs, out
        given = [*inputs, *([] if out is None else [out]), *([] if mask is None else [Side(mask)])]
        self.ndim = ndim = max((s.type.ndim for s in given), default=0)
        shape: list[DimLike] = [1] * ndim
        for s in given:
            for k, d in enumerate(s.type.shape, ndim - s.type.ndim):
                if d != 1:
                    shape[k] = d
        self.shape = shape
        walk = self._order(order, given)
        axes = [k for k in reversed(walk) if not is_one(sizes, shape[k])]
        signs = [[self._sign(s.type, k) for k in range(ndim)] for s in given]
        turned = []
        if out is not None:
            for k in axes:
                if all(sign[k] <= 0 for sign in signs):
                    turned.append(k)
                    for sign in signs:
                        sign[k] = -sign[k]
        #: The output is a copy to be written back, in the order of the walk, backwards where that was turned.
        self.copied = out is not None and any(self._overlaps(s) for s in inputs)
        if self.copied and out is not None:
            given[len(inputs)] = Side(TensorType(out.type.dtype, tuple(shape), "array", dense_layout(walk)))
            signs[len(inputs)] = [-1 if k in turned else 1 for k in range(ndim)]
        #: The operands, but for a fresh output: that lies in the order of the walk. With the signs of their strides.
        self.sides, self.signs = given, signs
        self.groups: list[list[int]] = []
        for k in axes:
            if self.groups and all(self._continues(i, self.groups[-1][-1], k) for i in range(len(self.sides))):
                self.groups[-1].append(k)
            else:
                self.groups.append([k])
        #: For each operand: how many groups, from the inside, are one run of equal steps.
        self.runs = []
        for i in range(len(self.sides)):
            run = 1
            while run < len(self.groups) and self._continues(i, self.groups[run - 1][-1], self.groups[run][0]):
                run += 1
            self.runs.append(run)

    def _order(self, order: str, given: Sequence[Side]) -> tuple[int, ...]:
        if order == "C" and self.out is None:
            return c_layout(self.ndim).order
        if order == "F" and self.out is None:
            return dense_layout(range(self.ndim)[::-1]).order
        return elementwise_layout(self.ndim, [s.type for s in given]).order

    def _axis(self, t: TensorType, axis: int) -> int | None:
        """The axis of an operand that goes along one of the broadcast shape."""
        k = axis - (self.ndim - t.ndim)
        return None if k < 0 or t.shape[k] == 1 or k in t.layout.zero else k

    def _sign(self, t: TensorType, axis: int) -> int:
        k = self._axis(t, axis)
        return 0 if k is None else -1 if k in t.layout.negative else 1

    def _overlaps(self, s: Side) -> bool:
        """Whether the iterator copies the output for the sake of an operand."""
        p, q = s.place, self.out.place if self.out is not None else None
        if p is None or q is None or self.out is None or p.storage is not q.storage:
            return False
        if p.view is None or q.view is None:
            return not s.is_output
        if p.view == q.view:
            return s.type.dtype != self.out.type.dtype
        return not _apart(self.sizes, p.view, q.view)

    def _continues(self, i: int, inner: int, outer: int) -> bool:
        """Whether the step along `outer` goes on where `inner` ends."""
        t, signs = self.sides[i].type, self.signs[i]
        a, b = self._axis(t, inner), self._axis(t, outer)
        if a is None or b is None:
            return a is b
        if signs[inner] != signs[outer]:
            return False
        layout = t.layout
        moving = [k for k in layout.order if t.shape[k] != 1 and k not in layout.zero]
        at = moving.index(b)
        if moving[at + 1 : at + 2] != [a]:
            return False
        begin, end = layout.order.index(b), layout.order.index(a)
        if not any(begin <= k < end for k in layout.breaks):
            return True
        place = self.sides[i].place
        return place is not None and place.view is not None and _joins(self.sizes, place, place.view, a, b)

    def paces(self, depth: int) -> list[Pace]:
        """The paces if groups up to `depth` are one inner loop: operands that are no single run are in the buffer."""
        inner = self.groups[0][0]
        paces: list[Pace] = []
        for s, sign, run in zip(self.sides, self.signs, self.runs, strict=True):
            single = run > depth
            if sign[inner] == 0 and single:
                paces.append("none")
            elif s.buffered or not single:
                paces.append("unit")
            else:
                paces.append("backward" if sign[inner] < 0 else _ahead(s.type, inner - (self.ndim - s.type.ndim)))
        return [*paces[: len(self.inputs)], "unit" if self.out is None else paces[len(self.inputs)]]

    def crossed(self, depth: int) -> bool:
        """Whether an operand and the output lie between each other in an inner loop over the groups up to `depth`."""
        out = self.out
        if out is None or self.copied or out.buffered or self.runs[len(self.inputs)] <= depth:
            return False
        axes = [k for group in self.groups[: depth + 1] for k in group]
        return any(
            not s.buffered and run > depth and _cross(self.sizes, s, out, self.ndim, axes)
            for s, run in zip(self.inputs, self.runs, strict=False)
        )

    def depth(self) -> int:
        """The last group of the inner loop: which one makes the most of the buffer."""
        cost = 1 + sum(s.buffered for s in self.sides)
        best, best_cost = 0, cost
        size = self._size(0, 1)
        for k in range(1, len(self.groups)):
            if cost > 1 and _holds(self.sizes, ">=", size, BUFFER, otherwise=False):
                break
            cost += sum(run == k and not s.buffered for s, run in zip(self.sides, self.runs, strict=True))
            size = self._size(0, k + 1)
            if cost > 1 and _holds(self.sizes, ">", size, BUFFER, otherwise=False):
                better = _holds(self.sizes, "<=", cost * self._size(0, best + 1), best_cost * BUFFER, otherwise=True)
            else:
                better = _holds(self.sizes, "<=", cost, best_cost * self._size(best + 1, k + 1), otherwise=True)
            if better:
                best, best_cost = k, cost
        return best

    def _size(self, first: int, end: int) -> DimLike:
        size: DimLike = 1
        for group in self.groups[first:end]:
            for k in group:
                size = size * self.shape[k]
        return size


# ----------------------------------------------------------------------------------------------------- places in memory


def _joins(sizes: Sizes, place: Place, view: IndexMap, inner: int, outer: int) -> bool:
    """Whether the sizes are such that one axis of a view goes on where another one ends, in whatever directions."""
    a, b = ([k for k, m in enumerate(view.axes) if m.axis == axis] for axis in (inner, outer))
    if len(a) != 1 or len(b) != 1:
        return False
    layout = place.base.layout
    begin, end = layout.order.index(b[0]), layout.order.index(a[0])
    if begin > end:
        return False
    mine, its = (
        -step if isinstance(step, int) and step < 0 else step for step in (view.axes[a[0]].step, view.axes[b[0]].step)
    )
    mine = mine * view.shape[inner]
    if not any(begin <= k < end for k in layout.breaks):
        for k in layout.order[begin + 1 : end + 1]:
            its = its * place.base.shape[k]
        return _holds(sizes, "==", its, mine, otherwise=False)
    if (a[0] in layout.negative) == (b[0] in layout.negative) or place.argument is None:
        return False  # a gap
    strides = [sizes.stride(place.argument, k) for k in (a[0], b[0])]
    if strides[0] is None or strides[1] is None:
        return False
    return _holds(sizes, "==", its * strides[1], -(mine * strides[0]), otherwise=False)


def _apart(sizes: Sizes, p: IndexMap, q: IndexMap) -> bool:
    """Whether views of one base have no element in common."""
    return apart(p, q, lambda a, b: _holds(sizes, "<", a, b, otherwise=False))


def _cross(sizes: Sizes, s: Side, out: Side, ndim: int, axes: Sequence[int]) -> bool:
    """Whether the memory from the first to the last element of an inner loop over `axes` is partly the output's."""
    p, q = s.place, out.place
    if p is None or q is None or p.storage is not q.storage or p.view is None or q.view is None or p.view == q.view:
        return False
    a, b = _span(p.base, p.view, [k - (ndim - s.type.ndim) for k in axes])
    c, d = _span(q.base, q.view, [k - (ndim - out.type.ndim) for k in axes])
    if _order(sizes, b, c) < 0 or _order(sizes, d, a) < 0:
        return False
    return _order(sizes, a, c) != 0 or _order(sizes, b, d) != 0


def _span(base: TensorType, view: IndexMap, axes: Sequence[int]) -> tuple[list[DimLike], list[DimLike]]:
    """The first and the last element (indices into the base, the outermost axis first, rising with the address)."""
    low: list[DimLike] = []
    high: list[DimLike] = []
    for k in base.layout.order:
        m = view.axes[k]
        step, size = (m.step, view.shape[m.axis]) if m.axis is not None and m.axis in axes else (0, 1)
        ends = [m.offset, m.offset + step * (size - 1)]
        if isinstance(step, int) and step < 0:
            ends.reverse()
        if k in base.layout.negative:
            ends = [-ends[1], -ends[0]]
        low.append(ends[0])
        high.append(ends[1])
    return low, high


def _order(sizes: Sizes, a: Sequence[DimLike], b: Sequence[DimLike]) -> int:
    """-1, 0 or 1: what comes first. Where only the run knows, the first does."""
    for d, e in zip(a, b, strict=True):
        if d != e and not _holds(sizes, "==", d, e, otherwise=False):
            return -1 if _holds(sizes, "<", d, e, otherwise=True) else 1
    return 0


def _may_run_ahead(sizes: Sizes, s: Side, out: Side, single: bool) -> bool:
    """Whether one loop over all reads each element before it is written over: it lies elsewhere, or not behind."""
    p, q = s.place, out.place
    if p is None or q is None or p.storage is not q.storage:
        return True
    if p.view is None or q.view is None:
        return False
    if _apart(sizes, p.view, q.view):
        return True
    if not s.type.ndim:
        return False
    order = _order(sizes, _span(p.base, p.view, ())[0], _span(q.base, q.view, ())[0])
    if single:
        return order != 0
    if s.type.ndim > 1:
        return order >= 0
    mine, its = _only_step(p.base, p.view), _only_step(q.base, q.view)
    if mine is None or its is None or mine[0] != its[0]:
        return False
    return mine[1] >= its[1] and order >= 0 if mine[1] > 0 else mine[1] <= its[1] and order <= 0


def _only_step(base: TensorType, view: IndexMap) -> tuple[int, int] | None:
    """The base axis along which a view of one axis goes, and its step, by the address."""
    moves = [(k, m.step) for k, m in enumerate(view.axes) if m.axis is not None]
    if len(moves) != 1:
        return None
    ((k, step),) = moves
    return (k, -step if k in base.layout.negative else step) if isinstance(step, int) else None
