"""Reverse mode: one sweep over operations, from the last to the first, that hands cotangents to operands.

The sweep knows two kinds of operations, by the same attributes `defn, operands, results, attrs`: the ops of a graph,
whose values are `Value`s and whose builder emits ops, and those of the eager tape, whose values are `Node`s and whose
builder (`tape.EagerBuilder`) evaluates at once. So gradients of gradients are nothing special in either.
Laws:
1. Only values that depend on the inputs asked for (`active`) and are floats have cotangents.
2. A cotangent has the shape and the dtype of its value; that of zero is None until an operator needs it.
3. Reads of parts (views, takes) add into one cotangent of the whole in place, so that a loop that reads one element a
   turn costs one element a turn.
4. The cotangent of a complex number is the derivative by its real part plus i times that by its imaginary part. Records
   multiply cotangents by complex derivatives; so they are given conjugates, and what they answer is conjugated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import TraceError, describe
from jitgraph.ir.dims import Dim, DimLike
from jitgraph.ir.graph import Graph, Symbol
from jitgraph.ir.opdef import BRANCHES, OpDef
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType

#: A `Value` of a graph or a `Node` of the tape: it has a `type`.
Handle: TypeAlias = Any
#: A `Builder` or an `EagerBuilder`.
AnyBuilder: TypeAlias = Any


class Operation(Protocol):
    """What the sweep needs of an `ir.graph.Op` or a `tape.Record`."""

    @property
    def defn(self) -> OpDef: ...
    @property
    def operands(self) -> Sequence[Handle]: ...
    @property
    def results(self) -> Sequence[Handle]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    @property
    def regions(self) -> Sequence[Any]: ...


#: rule(sweep, op, cotangents of the results): adds to the cotangents of the operands with `sweep.add`.
Rule: TypeAlias = "Callable[[Sweep, Any, list[Handle | None]], None]"
#: Operators whose cotangents are not made one operand at a time by their record: movement, regions, effects.
RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a sweep rule for an operator."""

    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


class Sweep:
    """The reverse sweep: cotangents by value, and the builder that makes new ones.

    Attributes:
        active: values that depend on the inputs asked for.
        keep: values whose cotangents stay in `cotangents` once they have been passed on.
    """

    def __init__(self, b: AnyBuilder, active: Collection[Handle], keep: Collection[Handle] = ()) -> None:
        self.b = b
        self.active = active
        self.keep = keep
        self.cotangents: dict[Handle, Handle] = {}

    def add(self, value: Handle, cotangent: Handle | None) -> None:
        """Add to the cotangent of `value`, if it has one at all; sums broadcast axes away and casts."""
        if cotangent is None or value not in self.active:
            return
        cotangent = conform(self.b, cotangent, value.type)
        old = self.cotangents.get(value)
        self.cotangents[value] = cotangent if old is None else self.b.add(old, cotangent)

    def take(self, value: Handle) -> Handle | None:
        """The cotangent of `value`, removed: the caller passes it on or replaces it."""
        return self.cotangents.pop(value, None)

    def get_or_zeros(self, value: Handle) -> Handle:
        """The cotangent of `value`; zeros if it has none."""
        found = self.cotangents.get(value)
        return zeros(self.b, value.type) if found is None else found

    def run(self, ops: Sequence[Operation]) -> None:
        """Pass all cotangents of results on to operands, from the last operation to the first."""
        b = self.b
        for op in reversed(ops):
            b.loc = getattr(op, "loc", None)
            self.pull(op)

    def pull(self, op: Operation) -> None:
        """Pass the cotangents of one operation's results on to its operands."""
        cotangents = [self.cotangents.get(r) for r in op.results]
        if all(ct is None for ct in cotangents):
            return
        special = RULES.get(op.defn.name)
        if not op.regions and not any(x in self.active for x in op.operands):
            return  # the results are the inputs asked for themselves
        for result in op.results:
            if result not in self.keep:
                self.cotangents.pop(result, None)
        if special is not None:
            special(self, op, cotangents)
            return
        cotangents = [conjugate(self.b, ct) for ct in cotangents]
        for operand, ct in zip(op.operands, record_vjp(self.b, op, cotangents), strict=True):
            self.add(operand, conjugate(self.b, ct))


def conjugate(b: AnyBuilder, ct: Handle | None) -> Handle | None:
    """The conjugate of a complex cotangent; a real one as it is. See law 4."""
    return b.conj(ct) if ct is not None and ct.type.dtype.kind == "c" else ct


def record_vjp(b: AnyBuilder, op: Operation, cotangents: Sequence[Handle | None]) -> Sequence[Handle | None]:
    """The cotangents that the record's own rule makes, one for each operand, as the rule leaves them.

    Raises:
        TraceError: the operator has no gradient.
    """
    defn = op.defn
    if defn.vjp is None:
        raise no_gradient(op)
    if len(op.results) == 1:
        return defn.vjp(b, cotangents[0], op.results[0], *op.operands, **op.attrs)
    filled = tuple(zeros(b, r.type) if ct is None else ct for ct, r in zip(cotangents, op.results, strict=True))
    return defn.vjp(b, filled, tuple(op.results), *op.operands, **op.attrs)


def no_gradient(op: Operation) -> TraceError:
    """The error for an operator that cannot be differentiated."""
    name = op.defn.name
    what = "no gradient for a host call" if name == "host_call" else f"no gradient for the operator {name}"
    remedy = "keep values that depend on the inputs of the gradient out of it, or write that part with operators"
    return TraceError(describe(what, getattr(op, "loc", None), remedy=remedy))


def is_differentiable(t: TensorType) -> bool:
    """Only floats are inputs and outputs of gradients."""
    return t.dtype.kind == "f"


def has_tangent(t: TensorType) -> bool:
    """Floats have cotangents and tangents, and so have complex numbers in between."""
    return t.dtype.kind in "fc"


def mark_active(ops: Iterable[Operation], active: set[Handle]) -> None:
    """Add to `active` every float or complex value that depends on an active one, those in regions included."""
    for op in ops:
        if op.regions:
            _mark_regions(op, active)
        elif any(x in active for x in op.operands):
            active.update(r for r in op.results if has_tangent(r.type))


def _mark_regions(op: Operation, active: set[Handle]) -> None:
    body = op.regions[-1]
    if op.defn.name in BRANCHES:
        for region in op.regions:
            mark_active(region.ops(), active)
            for result, given in zip(op.results, region.terminator.operands, strict=True):
                if given in active:
                    active.add(result)
        return
    active.update(arg for arg, init in zip(body.args, op.operands, strict=True) if init in active)
    while True:
        size = len(active)
        mark_active(body.ops(), active)
        active.update(arg for arg, given in zip(body.args, body.terminator.operands, strict=True) if given in active)
        if len(active) == size:
            break
    active.update(r for r, arg in zip(op.results, body.args, strict=True) if arg in active)


# --- shapes and zeros -------------------------------------------------------------------------------------------------


def zeros(b: AnyBuilder, t: TensorType) -> Handle:
    """Zeros in the dtype and shape of `t`."""
    if not t.shape:
        return b.constant(t.dtype.type(0))
    return filled(b, 0, t.shape, t.dtype)


def ones(b: AnyBuilder, t: TensorType) -> Handle:
    """Ones in the dtype and shape of `t`: the seed of a gradient."""
    return filled(b, 1, t.shape, t.dtype) if t.shape else b.constant(t.dtype.type(1))


def filled(b: AnyBuilder, value: float, shape: Shape, dtype: np.dtype) -> Handle:
    return b.full(b.constant(dtype.type(value)), shape=shape, dtype=dtype)


def conform(b: AnyBuilder, x: Handle, t: TensorType) -> Handle:
    """A cotangent as the operand of type `t` needs it: broadcast axes summed, the operand's dtype."""
    if x.type.shape != t.shape:
        x = sum_to(b, x, t.shape)
    return in_dtype(b, x, t.dtype)


def in_dtype(b: AnyBuilder, x: Handle, dtype: np.dtype) -> Handle:
    """A cotangent or tangent in the dtype of its value: of a complex one for a real value the real part counts."""
    if x.type.dtype.kind == "c" and dtype.kind == "f":
        x = b.real(x)
    return x if x.type.dtype == dtype else b.cast(x, dtype=dtype)


def sum_to(b: AnyBuilder, x: Handle, shape: Shape) -> Handle:
    """The transpose of broadcasting: `x` summed to `shape`; where `x` is the smaller one it is broadcast."""
    lead = len(x.type.shape) - len(shape)
    if lead >= 0:
        stretched = tuple(lead + k for k, d in enumerate(shape) if d == 1 and x.type.shape[lead + k] != 1)
        axes = tuple(range(lead)) + stretched
        if axes:
            x = b.reduce_sum(x, axes=axes, keepdims=not lead)
            if lead and stretched:
                kept = [k for k in range(len(shape)) if lead + k not in stretched]
                x = b.view(x, map=IndexMap(shape, tuple(AxisMap(0, 1, k) for k in kept)))
    return x if x.type.shape == shape else broadcast_to(b, x, shape)


def broadcast_to(b: AnyBuilder, x: Handle, shape: Shape) -> Handle:
    """`x` broadcast to `shape`; two sizes that only a guard or a check made equal become those of `shape`."""
    have = x.type.shape
    shift = len(shape) - len(have)
    repeated = [d == 1 and shape[shift + k] != 1 for k, d in enumerate(have)]
    axes = tuple(AxisMap(0, 0) if repeated[k] else AxisMap(0, 1, shift + k) for k in range(len(have)))
    return b.view(x, map=IndexMap(shape, axes))


# --- movement ---------------------------------------------------------------------------------------------------------


def _may_repeat(step: DimLike) -> bool:
    """The step of an axis that broadcasts at run time: `ne1(n)` is 0 when the size is 1."""
    return isinstance(step, Dim) and any(atom.op == "ne1" for mono, _ in step.terms for atom in mono)


def _fold_repeats(b: AnyBuilder, ct: Handle, view: IndexMap, base: Shape) -> tuple[Handle, IndexMap]:
    """Sum over the view's axes that repeat elements of the base; the map that is left is injective."""
    axes = [AxisMap(m.offset) if m.axis is None or m.step == 0 else m for m in view.axes]
    shape = list(view.shape)
    for k, m in enumerate(axes):
        if m.axis is not None and _may_repeat(m.step):
            index = b.iota(_dim_value(b, m.offset), _dim_value(b, m.step), size=shape[m.axis], dtype=dtypes.I64)
            shape[m.axis] = base[k]
            ct = b.scatter_add(filled(b, 0, tuple(shape), ct.type.dtype), index, ct, axis=m.axis)
            axes[k] = AxisMap(0, 1, m.axis)
    used = {m.axis for m in axes}
    free = tuple(k for k in range(len(shape)) if k not in used)
    if not free:
        return ct, IndexMap(tuple(shape), tuple(axes))
    kept = [k for k in range(len(shape)) if k in used]
    place = {k: i for i, k in enumerate(kept)}
    smaller = tuple(shape[k] for k in kept)
    if all(shape[k] == 1 for k in free):
        ct = b.view(ct, map=IndexMap(smaller, tuple(AxisMap(0, 1, place.get(k)) for k in range(len(shape)))))
    else:
        ct = b.reduce_sum(ct, axes=free, keepdims=False)
    renamed = (m if m.axis is None else AxisMap(m.offset, m.step, place[m.axis]) for m in axes)
    return ct, IndexMap(smaller, tuple(renamed))


def _dim_value(b: AnyBuilder, d: DimLike) -> Handle:
    return b.constant(d) if isinstance(d, int) else b.dim(value=d)


def inverse(view: IndexMap, base: Shape) -> IndexMap | None:
    """The map from the base back to the view, if the view holds each element of the base just once."""
    axes: list[AxisMap | None] = [None] * len(view.shape)
    for k, m in enumerate(view.axes):
        if m.axis is None:
            if base[k] != 1:
                return None
            continue
        if m.step not in (1, -1) or view.shape[m.axis] != base[k] or axes[m.axis] is not None:
            return None
        axes[m.axis] = AxisMap(-(m.offset * m.step), m.step, k)
    found = tuple(m for m in axes if m is not None)
    return IndexMap(base, found) if len(found) == len(axes) else None


@rule("view")
def _view(sweep: Sweep, op: Operation, cotangents: list[Handle | None]) -> None:
    (x,), (ct,) = op.operands, cotangents
    if x not in sweep.active or ct is None:
        return
    b = sweep.b
    ct, view = _fold_repeats(b, ct, op.attrs["map"], x.type.shape)
    back = inverse(view, x.type.shape)
    if back is not None:
        sweep.add(x, ct if back.is_identity(ct.type.shape) else b.view(ct, map=back))
        return
    old = sweep.take(x)
    if old is None:
        old = zeros(b, x.type)
    else:
        ct = b.add(b.view(old, map=view), ct)
    sweep.cotangents[x] = b.write(conform(b, ct, x.type.with_shape(view.shape)), old, map=view)


@rule("write")
def _write(sweep: Sweep, op: Operation, cotangents: list[Handle | None]) -> None:
    (value, base), (ct,) = op.operands, cotangents
    if ct is None:
        return
    b, view = sweep.b, op.attrs["map"]
    if value in sweep.active:
        sweep.add(value, b.view(ct, map=view))
    if base in sweep.active and inverse(view, base.type.shape) is None:
        sweep.add(base, b.write(filled(b, 0, view.shape, ct.type.dtype), ct, map=view))


@rule("take")
def _take(sweep: Sweep, op: Operation, cotangents: list[Handle | None]) -> None:
    (x, *indices), (ct,) = op.operands, cotangents
    if x in sweep.active:
        old = sweep.get_or_zeros(x)
        sweep.cotangents[x] = sweep.b.scatter_add(old, *indices, ct, axis=op.attrs["axis"])


def new_symbol(
    graph: Graph,
    stem: str,
    origin: Literal["arg", "index", "value"],
    lower: DimLike | None = 0,
    upper: DimLike | None = None,
) -> str:
    """Declare a symbol whose name begins with `stem`."""
    stem = stem.partition(".")[0]
    name = graph.unused_name(f"{stem}.", 1) if stem in graph.symbols else stem
    graph.add_symbol(Symbol(name, origin, lower=lower, upper=upper))
    return name


@rule("host_call")
def _host_call(sweep: Sweep, op: Operation, _cotangents: list[Handle | None]) -> None:
    if any(x in sweep.active for x in op.operands):
        raise no_gradient(op)
