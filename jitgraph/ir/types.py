"""Types of IR values: dtype, symbolic shape, scalar kind and memory layout; and the affine index maps of views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.dims import DimLike, substitute
from jitgraph.records import dataclass, field

Shape: TypeAlias = tuple[DimLike, ...]

#: What the user would hold: an ndarray, a NumPy scalar, a Python number, or a scalar whose kind depends on the path.
Kind = Literal["array", "np_scalar", "py_bool", "py_int", "py_float", "py_complex", "maybe_np_float"]
PYTHON_KINDS: tuple[Kind, ...] = ("py_bool", "py_int", "py_float", "py_complex")
_PYTHON_DTYPES: dict[Kind, np.dtype] = {
    "py_bool": dtypes.BOOL,
    "py_int": dtypes.I64,
    "py_float": dtypes.F64,
    "py_complex": dtypes.C128,
}
_KIND_OF_DTYPE: dict[np.dtype, Kind] = {dtype: kind for kind, dtype in _PYTHON_DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the axes of an array lie in memory; strides themselves are run-time values.

    Attributes:
        order: the axes from the outermost (largest |stride|) to the innermost.
        breaks: positions k in `order` where `order[k]` does not continue `order[k + 1]` (stride[k] differs from
            size[k + 1] * stride[k + 1]); the last position stands for an innermost stride other than the item size.
        negative: axes whose stride is negative.
        zero: axes whose stride is zero because they are broadcast.
        unaligned: elements may lie at addresses that are no multiple of their alignment: NumPy goes through a buffer.
    """

    order: tuple[int, ...]
    breaks: tuple[int, ...] = ()
    negative: tuple[int, ...] = ()
    zero: tuple[int, ...] = ()
    unaligned: bool = False

    @property
    def is_dense(self) -> bool:
        """One gapless block of memory in some order of the axes, no stride zero or negative."""
        return not (self.breaks or self.negative or self.zero)

    @property
    def is_c(self) -> bool:
        return self.is_dense and self.order == tuple(range(len(self.order)))

    @property
    def is_f(self) -> bool:
        return self.is_dense and self.order == tuple(reversed(range(len(self.order))))

    def __str__(self) -> str:
        if not self.unaligned and self.is_c:
            return "C"
        if not self.unaligned and self.is_f:
            return "F"
        parts = [f"order={list(self.order)}"]
        parts += [f"{name}={list(v)}" for name in ("breaks", "negative", "zero") if (v := getattr(self, name))]
        return f"{'unaligned' if self.unaligned else 'strided'}({', '.join(parts)})"


_C_LAYOUTS: dict[int, Layout] = {n: Layout(tuple(range(n))) for n in range(65)}


def c_layout(ndim: int) -> Layout:
    """C order: the last axis innermost, no gaps."""
    return _C_LAYOUTS[ndim]


def dense_layout(order: Sequence[int]) -> Layout:
    """A gapless block whose axes lie in `order`, outermost first."""
    return Layout(tuple(order))


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype, shape, kind and layout of a value. Scalars have shape ()."""

    dtype: np.dtype
    shape: Shape = ()
    kind: Kind = "array"
    layout: Layout = field(default=None)  # type: ignore[assignment]  # filled below, so that C order needs no mention

    def __post_init__(self) -> None:
        if self.layout is None:
            object.__setattr__(self, "layout", _C_LAYOUTS[len(self.shape)])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_python(self) -> bool:
        """A Python number: weak in promotion (NEP 50)."""
        return self.kind in PYTHON_KINDS

    @property
    def is_scalar(self) -> bool:
        """Held in a register: any kind but `array` (a 0-d array is held in memory when it escapes)."""
        return self.kind != "array"

    def is_contiguous(self, order: str) -> bool:
        """Whether it lies in one piece in this order, "C" or "F", wherever axes of size 1 stand."""
        layout = self.layout
        if not layout.is_dense:
            return False
        axes = [k for k in layout.order if self.shape[k] != 1]
        return axes == sorted(axes, reverse=order == "F")

    def with_shape(self, shape: Shape, layout: Layout | None = None) -> TensorType:
        return TensorType(self.dtype, shape, "array", layout)  # type: ignore[arg-type]

    def with_dtype(self, dtype: np.dtype) -> TensorType:
        return replace(self, dtype=dtype)

    def __str__(self) -> str:
        name = dtypes.short_name(self.dtype)
        if self.kind == "array":
            text = f"{name}[{', '.join(str(d) for d in self.shape)}]"
            layout = self.layout
            return text if layout.is_c and not layout.unaligned else f"{text}:{layout}"
        return f"np.{name}" if self.kind == "np_scalar" else self.kind


def same_layout(a: TensorType, b: TensorType) -> bool:
    """Whether two arrays of one shape lie alike in memory: nobody sees where an axis of size 1 stands."""
    return a.layout == b.layout or (1 in a.shape and _without_ones(a) == _without_ones(b))


def _without_ones(t: TensorType) -> tuple[object, ...]:
    """The layout without the axes of size 1; a break at one of them is one at the axis around it."""
    order: list[int] = []
    broken: set[int] = set()
    for position, axis in enumerate(t.layout.order):
        if t.shape[axis] != 1:
            order.append(axis)
        if order and position in t.layout.breaks:
            broken.add(order[-1])
    moving = set(order)
    return order, broken, moving.intersection(t.layout.negative), moving.intersection(t.layout.zero), t.layout.unaligned


def python_type(kind: Kind) -> TensorType:
    """The type of a Python number: `py_int` is held as int64, `py_float` as float64."""
    return TensorType(_PYTHON_DTYPES[kind], (), kind)


def scalar_type(dtype: np.dtype) -> TensorType:
    return TensorType(dtype, (), "np_scalar")


def python_kind_of(dtype: np.dtype) -> Kind:
    """The Python kind that holds `dtype` (int64 is `py_int`).

    Raises:
        KeyError: no Python number is held in that dtype.
    """
    return _KIND_OF_DTYPE[dtype]


def elementwise_layout(ndim: int, operands: Sequence[TensorType]) -> Layout:
    """Layout of the fresh result of an elementwise operation, as NumPy's iterator chooses it with order "K".

    Source: the rule of `npyiter_find_best_axis_ordering`: an insertion sort of the axes, from the last to the first, by
    |stride|, where the first operand that has both strides decides unless a later one says "keep".
    """
    ranks: list[dict[int, int]] = []
    for t in operands:
        if t.ndim == 0:
            continue
        if t.ndim == ndim and t.layout.order != _C_LAYOUTS[ndim].order:
            pass
        shift = ndim - t.ndim
        ranks.append(
            {
                axis + shift: position
                for position, axis in enumerate(t.layout.order)
                if t.shape[axis] != 1 and axis not in t.layout.zero
            }
        )
    if not ranks or all(list(r) == sorted(r) for r in ranks):
        return _C_LAYOUTS[ndim]
    inner_first: list[int] = []
    for axis in reversed(range(ndim)):
        at = len(inner_first)
        for k in range(len(inner_first) - 1, -1, -1):
            ambiguous, swap = True, False
            for rank in ranks:
                if axis in rank and inner_first[k] in rank:
                    if rank[inner_first[k]] > rank[axis]:  # the inner axis has the smaller stride: keep
                        swap = False
                    elif ambiguous:
                        swap = True
                    ambiguous = False
            if not ambiguous:
                if not swap:
                    break
                at = k
        inner_first.insert(at, axis)
    return dense_layout(inner_first[::-1])


@dataclass(frozen=True, slots=True)
class AxisMap:
    """Index into one axis of a base array: `offset + step * d[axis]`; `axis` None means the constant `offset`.

    Constant ones all have the step 1, so that equal maps are equal records.
    """

    offset: DimLike
    step: DimLike = 1
    axis: int | None = None

    def __post_init__(self) -> None:
        if self.axis is None:
            object.__setattr__(self, "step", 1)


def _axis(offset: DimLike, step: DimLike, axis: int | None) -> AxisMap:
    """In normal form: an index that does not move names no axis."""
    return AxisMap(offset) if axis is None or (isinstance(step, int) and step == 0) else AxisMap(offset, step, axis)


@dataclass(frozen=True, slots=True)
class IndexMap:
    """An affine view of a base array: which element of the base stands at each index of the view.

    Attributes:
        shape: the shape of the view.
        axes: one `AxisMap` for each axis of the base. View axes that no base axis mentions are broadcast.

    Text: `(d0: n - 2, d1: m) -> (d0 + 1, d1)`.
    """

    shape: Shape
    axes: tuple[AxisMap, ...]

    @staticmethod
    def identity(shape: Shape) -> IndexMap:
        return IndexMap(shape, tuple(AxisMap(0, 1, k) for k in range(len(shape))))

    @staticmethod
    def permute(shape: Shape, perm: Sequence[int]) -> IndexMap:
        """Axis k of the view is axis perm[k] of the base."""
        where = {axis: k for k, axis in enumerate(perm)}
        return IndexMap(tuple(shape[p] for p in perm), tuple(AxisMap(0, 1, where[a]) for a in range(len(shape))))

    @staticmethod
    def broadcast(shape: Shape, to: Shape) -> IndexMap:
        """The view of an array of `shape` broadcast to `to`; only axes that are literally 1 are stretched."""
        shift = len(to) - len(shape)
        axes = tuple(AxisMap(0, 1, k + shift) if d == to[k + shift] else AxisMap(0) for k, d in enumerate(shape))
        return IndexMap(to, axes)

    def is_identity(self, base_shape: Shape) -> bool:
        return self.shape == base_shape and all(
            m.axis == k and m.offset == 0 and m.step == 1 for k, m in enumerate(self.axes)
        )

    def then(self, outer: IndexMap) -> IndexMap:
        """The map of the view `outer` taken of this view."""
        axes = []
        for m in self.axes:
            if m.axis is None:
                axes.append(m)
                continue
            o = outer.axes[m.axis]
            axes.append(_axis(m.offset + m.step * o.offset, m.step * o.step, o.axis))
        return IndexMap(outer.shape, tuple(axes))

    def inverse(self, base_shape: Shape) -> IndexMap | None:
        """The view of this view that is the base again; None unless this one has each element of the base once."""
        found: dict[int, AxisMap] = {}
        for k, (m, size) in enumerate(zip(self.axes, base_shape, strict=True)):
            if m.axis is None or m.axis in found or m.step not in (1, -1) or self.shape[m.axis] != size:
                return None
            found[m.axis] = _axis(m.offset * -m.step, m.step, k)
        if len(found) != len(self.shape):
            return None
        return IndexMap(base_shape, tuple([found[k] for k in range(len(found))]))

    def index(self, at: Sequence[DimLike]) -> tuple[DimLike, ...]:
        """The base index of the view's element `at`."""
        return tuple(m.offset if m.axis is None else m.offset + m.step * at[m.axis] for m in self.axes)

    def substitute(self, env: dict[str, DimLike]) -> IndexMap:
        return IndexMap(
            tuple(substitute(d, env) for d in self.shape),
            tuple(_axis(substitute(m.offset, env), substitute(m.step, env), m.axis) for m in self.axes),
        )

    def layout(self, base: TensorType) -> Layout:
        """Memory layout of the view; axes of size 1 stand where they leave the others in C (or else F) order."""
        order: list[int] = []
        broken: set[int] = set()
        negative: list[int] = []
        zero = dict.fromkeys(k for k, d in enumerate(self.shape) if d != 1)
        #: The stride of the last axis in `order`, in strides of the base axis at hand, as long as the base is gapless.
        ratio: DimLike = 1
        gapless = True
        for position, base_axis in enumerate(base.layout.order):
            gapless = gapless and position - 1 not in base.layout.breaks
            if base_axis in base.layout.zero or base.shape[base_axis] == 1:
                continue
            m = self.axes[base_axis]
            ratio = ratio * base.shape[base_axis]
            if m.axis is None or self.shape[m.axis] == 1:
                continue
            if m.axis in order:  # a diagonal: two base axes step together
                at = order.index(m.axis)
                broken.update(order[max(at - 1, 0) : at + 1])
                continue
            if order and not (gapless and ratio == self.shape[m.axis] * m.step):
                broken.add(order[-1])
            order.append(m.axis)
            zero.pop(m.axis, None)
            ratio, gapless = m.step, True
            if (_sign(m.step) < 0) != (base_axis in base.layout.negative):
                negative.append(m.axis)
        if order and not (gapless and ratio in (1, -1) and len(base.layout.order) - 1 not in base.layout.breaks):
            broken.add(order[-1])
        placed = [*order, *zero]
        ndim = len(self.shape)
        if len(placed) < ndim:
            if placed == sorted(placed):
                placed = list(range(ndim))
            elif placed == sorted(placed, reverse=True):
                placed = list(range(ndim - 1, -1, -1))
            else:
                for k in range(ndim - 1, -1, -1):
                    if self.shape[k] == 1:
                        placed.insert(placed.index(k + 1) if k + 1 < ndim else len(placed), k)
        breaks = tuple(at for at, k in enumerate(placed) if k in broken)
        return Layout(tuple(placed), breaks, tuple(sorted(negative)), tuple(zero), base.layout.unaligned)

    def __str__(self) -> str:
        heads = ", ".join(f"d{k}: {d}" for k, d in enumerate(self.shape))
        return f"({heads}) -> ({', '.join(_axis_text(m) for m in self.axes)})"


def _sign(step: DimLike) -> int:
    """-1 for a step known to be negative, else 1: run-time steps are normalised to be positive by the front end."""
    return -1 if isinstance(step, int) and step < 0 else 1


def _axis_text(m: AxisMap) -> str:
    """`d0 + 1`, `2*d0`, `-d0 + n - 1`, `(s)*d0`, or the constant offset."""
    if m.axis is None:
        return str(m.offset)
    if isinstance(m.step, int):
        body = {1: "", -1: "-"}.get(m.step, f"{m.step}*") + f"d{m.axis}"
    else:
        body = f"({m.step})*d{m.axis}"
    if m.offset == 0:
        return body
    offset = str(m.offset)
    return f"{body} - {offset[1:]}" if offset[0] == "-" else f"{body} + {offset}"
