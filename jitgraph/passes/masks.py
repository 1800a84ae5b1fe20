"""Rules for what is selected by a mask: used under the same mask again, or only added up, it needs no array of its own.

`compress` of several arrays under one mask, and elementwise functions of these, are elementwise functions of the arrays
themselves, selected afterwards: f(x[m], y[m]) = f(x, y)[m]. So a masked update is a select, one pass in place, and
a reduction whose order does not matter is one over the whole array. All elements are computed then, and the others are
dropped: no operation traps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import RuleSet, apply_rules
from jitgraph.ir.types import IndexMap, TensorType
from jitgraph.ops.families import product

RULES = RuleSet("masks")

#: Operations between the selection and its use, at most.
_MAX_OPS = 40


def masks(graph: Graph) -> bool:
    """Use what is selected by a mask without storing it; True if that was possible somewhere."""
    return apply_rules(graph, RULES)


def _mask_of(value: Value) -> Value | None:
    """The mask under which `value`, a 1-D array, was selected: the one of all `compress` ops it is computed from."""
    mask: Value | None = None
    seen: set[Value] = set()
    stack = [value]
    while stack:
        v = stack.pop()
        if v in seen or not v.type.ndim:
            continue
        seen.add(v)
        op = v.producer
        if op is None or len(seen) > _MAX_OPS or v.type.shape != value.type.shape:
            return None
        if op.name == "compress":
            if mask is None:
                mask = op.operands[1]
            elif op.operands[1] is not mask:
                return None
        elif op.defn.has(Trait.ELEMENTWISE) and len(op.results) == 1 and op.block is value.producer.block:  # type: ignore[union-attr]
            stack.extend(op.operands)
        else:
            return None
    return mask


def _unselected(value: Value, b: Builder, flat: Value | None = None) -> Value:
    """The array of which `value` is the selection.

    Args:
        flat: the mask as one axis, if the array is wanted so: all that was selected from lies in C order.
    """
    made: dict[Value, Value] = {}

    def whole(v: Value) -> Value:
        known = made.get(v)
        if known is not None or not v.type.ndim:
            return v if known is None else known
        op = v.producer
        assert op is not None
        if op.name == "compress":
            x = op.operands[0]
            found = x if flat is None or x.type.shape == flat.type.shape else b.reshape(x, shape=flat.type.shape)
        else:
            found = b.apply(op.defn, *[whole(o) for o in op.operands], **op.attrs)[0]
        made[v] = found
        return found

    return whole(value)


def _selected_from(value: Value) -> list[Value]:
    """What the `compress` ops behind `value` select from."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = [value]
    while stack:
        v = stack.pop()
        if v in seen or v.producer is None or not v.type.ndim:
            continue
        seen.add(v)
        if v.producer.name == "compress":
            found[v.producer.operands[0]] = None
        else:
            stack.extend(v.producer.operands)
    return list(found)


def _is_stored_anyway(value: Value) -> bool:
    """Is something that was selected for `value` used but for reductions and updates, so that it is an array anyway?"""
    seen: set[Value] = set()
    stack = [value]
    while stack:  # back to the selections
        v = stack.pop()
        if v not in seen and v.type.ndim and v.producer is not None:
            seen.add(v)
            stack.extend(() if v.producer.name == "compress" else v.producer.operands)
    stack = list(seen)
    while stack:  # and forward to all that is made of them
        v = stack.pop()
        if len(seen) > _MAX_OPS:
            return True
        for user, i in v.uses:
            if user.name == "expand" and i == 2:
                continue
            if user.defn.has(Trait.REDUCTION) and not user.result.type.ndim:
                continue
            if not user.defn.has(Trait.ELEMENTWISE) or len(user.results) != 1 or user.block is not value.producer.block:  # type: ignore[union-attr]
                return True
            if user.result not in seen:
                seen.add(user.result)
                stack.append(user.result)
    return False


@RULES.rule("expand")
def expand_of_selected(op: Op, b: Builder) -> Value | None:
    """expand(x, m, f(compress(y, m))) = write(where(m, f(y), x), x)"""
    base, mask, values = op.operands
    if values.type.ndim != 1 or _mask_of(values) is not mask:
        return None
    return _update(b.where(mask, _unselected(values, b), base), base, b)


@RULES.rule("expand")
def expand_of_number(op: Op, b: Builder) -> Value | None:
    """expand(x, m, v) = write(where(m, v, x), x) for a number v"""
    base, mask, value = op.operands
    if value.type.ndim:
        return None
    return _update(b.where(mask, value, base), base, b)


def _update(value: Value, base: Value, b: Builder) -> Value:
    """The next version of `base`: all of it."""
    return b.write(value, base, map=IndexMap.identity(base.type.shape))  # type: ignore[no-any-return]


#: Elementwise operations that cost no more than to store a result and read it again.
_CHEAP = tuple(
    d.name
    for d in REGISTRY.values()
    if d.has(Trait.ELEMENTWISE) and d.lower is not None and not d.ulp and d.name != "pow"
)


@RULES.rule(*_CHEAP)
def selected_after_computing(op: Op, b: Builder) -> Value | None:
    """f(compress(x, m), compress(y, m)) = compress(f(x, y), m) for a cheap f, where nothing else needs these"""
    if len(op.results) != 1 or op.result.type.ndim != 1:
        return None
    selections = [v.producer for v in op.operands if v.type.ndim]
    first = selections[0]
    if first is None:
        return None
    for s in selections:
        if s is None or s.name != "compress" or s.operands[1] is not first.operands[1] or s.block is not op.block:
            return None
        if any(user is not op for user in s.result.users()) or s.result.type.shape != op.result.type.shape:
            return None
    whole = b.apply(op.defn, *[v.producer.operands[0] if v.type.ndim else v for v in op.operands], **op.attrs)[0]  # type: ignore[union-attr]
    return b.compress(whole, first.operands[1], size=first.attrs["size"])  # type: ignore[no-any-return]


def _neutral(kind: str, dtype: np.dtype) -> Any:
    """What changes no result of a reduction whose order does not matter; None where it does."""
    if kind in ("reduce_any", "reduce_all"):
        return dtype.type(kind == "reduce_all")
    if dtype.kind not in "biu":
        return dtype.type("-inf" if kind == "reduce_max" else "inf") if kind in ("reduce_max", "reduce_min") else None
    if kind in ("reduce_sum", "reduce_prod"):
        return dtype.type(kind == "reduce_prod")
    if dtype.kind == "b":
        return np.bool_(kind == "reduce_min")
    info = np.iinfo(dtype)
    return dtype.type(info.min if kind == "reduce_max" else info.max)


@RULES.rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")
def reduction_of_selected(op: Op, b: Builder) -> Value | None:
    """reduce(f(compress(x, m))) = reduce(where(m, f(x), neutral)) in any order that gives the same result"""
    value, *initial = op.operands
    if value.type.ndim != 1 or op.result.type.ndim or value.type.dtype.kind not in "biuf":
        return None
    if op.attrs.get("dtype", op.result.type.dtype).kind == "f" and op.name not in ("reduce_max", "reduce_min"):
        return None
    mask = _mask_of(value)
    neutral = _neutral(op.name, value.type.dtype)
    if mask is None or neutral is None or _is_stored_anyway(value):
        return None
    chosen = b.where(mask, _unselected(value, b), neutral)
    attrs = {**op.attrs, "axes": tuple(range(mask.type.ndim)), "keepdims": False}
    return b.apply(op.defn, chosen, *initial, **attrs)[0]


@RULES.rule("reduce_sum")
def sum_of_selected(op: Op, b: Builder) -> Value | None:
    """sum(f(compress(x, m))) = packed_sum(f(x), m) where all lies in C order"""
    value, *initial = op.operands
    t = value.type
    if t.ndim != 1 or op.result.type.ndim or initial or t.dtype.char not in "fd" or op.result.type.dtype != t.dtype:
        return None
    mask = _mask_of(value)
    if mask is None or not all(x.type.layout.is_c for x in (mask, *_selected_from(value))):
        return None
    if _is_stored_anyway(value):
        return None
    flat = mask if mask.type.ndim == 1 else b.reshape(mask, shape=(product(mask.type.shape),))
    whole = _unselected(value, b, flat)
    result = TensorType(t.dtype, (), op.result.type.kind)
    return b.emit(REGISTRY["packed_sum"], (whole, flat), (result,), {"size": t.shape[0]}).result
