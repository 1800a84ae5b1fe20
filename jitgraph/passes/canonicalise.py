"""One form for what can be written in several: views, casts, writes, order of operands."""

from __future__ import annotations

import numpy as np

from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import (
    RuleSet,
    apply_rules,
    constant_number,
    copy_of,
    is_alias,
    only_user,
    shares_memory,
    starts_storage,
)
from jitgraph.ir.storage import UPDATES
from jitgraph.ir.types import AxisMap, IndexMap, TensorType

RULES = RuleSet("canonicalise")
#: Versions of a storage that a rule looks through: what each of a thousand writes looks through must have an end.
_MOST_VERSIONS = 100


def canonicalise(graph: Graph) -> bool:
    """Bring each op to its canonical form; True if one changed."""
    commuted = _constants_right(graph)
    return apply_rules(graph, RULES) or commuted


def _constants_right(graph: Graph) -> bool:
    """op(c, x) = op(x, c) for commutative ops: constants, and what is one number throughout, stand on the right."""
    changed = False
    for op in graph.walk():
        if len(op.operands) == 2 and op.defn.has(Trait.COMMUTATIVE):
            left, right = op.operands
            if _rank_constant(left) > _rank_constant(right) and op.defn.commutes((left.type, right.type)):
                op.set_operands((right, left))
                changed = True
    return changed


def _rank_constant(value: Value) -> int:
    """2 for a constant, 1 for an array of one number throughout, else 0."""
    if value.producer is None:
        return 0
    if value.producer.name == "constant":
        return 2
    return int(value.producer.name in ("full", "view") and constant_number(value) is not None)


def producer_named(value: Value, name: str) -> Op | None:
    """The op behind `value`, if it is called `name`."""
    producer = value.producer
    return producer if producer is not None and producer.name == name else None


def view_as(b: Builder, base: Value, m: IndexMap, t: TensorType) -> Value:
    """The view `m` of `base`, with the type that it had in another form."""
    return b.emit(REGISTRY["view"], (base,), (t,), {"map": m}).result


# Views.


@RULES.rule("view")
def identity_view(op: Op, _b: Builder) -> Value | None:
    """view(x, identity) = x"""
    x = op.operands[0]
    return x if op.attrs["map"].is_identity(x.type.shape) and x.type.kind == op.result.type.kind else None


@RULES.rule("view")
def view_of_view(op: Op, b: Builder) -> Value | None:
    """view(view(x, m1), m2) = view(x, m1 then m2)"""
    inner = producer_named(op.operands[0], "view")
    if inner is None:
        return None
    return view_as(b, inner.operands[0], inner.attrs["map"].then(op.attrs["map"]), op.result.type)


@RULES.rule("view")
def view_of_written(op: Op, _b: Builder) -> Value | None:
    """view(write(v, x, m), m) = v"""
    written = producer_named(op.operands[0], "write")
    if written is None or written.attrs["map"] != op.attrs["map"] or not _injective(op.attrs["map"]):
        return None
    value = written.operands[0]
    same = (
        value.type.shape == op.result.type.shape and value.type.dtype == op.result.type.dtype
    )  # down to the byte order
    return value if same else None


@RULES.rule("view")
def view_of_full(op: Op, b: Builder) -> Value | None:
    """view(full(v), m) = full(v), of the view's shape"""
    fill = producer_named(op.operands[0], "full")
    t = op.result.type
    if fill is None or only_user(op.operands[0]) is None or not t.layout.is_dense:
        return None  # other users: one array serves both, so a smaller one saves nothing
    return b.emit(REGISTRY["full"], fill.operands, (t,), {**fill.attrs, "shape": t.shape}).result


def _injective(m: IndexMap) -> bool:
    """Does each element of the view stand at its own place (no axis broadcast, no step 0)?"""
    used = {a.axis for a in m.axes if a.axis is not None}
    steps = all(a.axis is None or (isinstance(a.step, int) and a.step != 0) for a in m.axes)
    return steps and all(k in used or d == 1 for k, d in enumerate(m.shape))


@RULES.rule("reshape")
def reshape_identity(op: Op, _b: Builder) -> Value | None:
    """reshape(x, shape of x) = x"""
    x = op.operands[0]
    return x if x.type.shape == op.result.type.shape and x.type.kind == op.result.type.kind else None


@RULES.rule("reshape")
def reshape_of_reshape(op: Op, b: Builder) -> Value | None:
    """reshape(reshape(x, s1), s2) = reshape(x, s2)"""
    inner = producer_named(op.operands[0], "reshape")
    if inner is None:
        return None
    return b.emit(op.defn, inner.operands, (op.result.type,), dict(op.attrs)).result


@RULES.rule("reshape")
def reshape_of_units(op: Op, b: Builder) -> Value | None:
    """reshape(x, s) = view(x) where s adds or drops only axes of size 1"""
    x = op.operands[0]
    old, new = x.type.shape, op.result.type.shape
    if x.type.kind != "array" or [d for d in old if d != 1] != [d for d in new if d != 1]:
        return None
    at = [k for k, d in enumerate(new) if d != 1]
    axes = []
    for d in old:
        axes.append(AxisMap(0) if d == 1 else AxisMap(0, 1, at.pop(0)))
    m = IndexMap(new, tuple(axes))
    layout = m.layout(x.type)
    if layout != op.result.type.layout:
        return None
    return view_as(b, x, m, op.result.type)


# Writes.


@RULES.rule("write")
def write_through_view(op: Op, b: Builder) -> Value | None:
    """write(write(v, view(x, m1), m2), x, m1) = write(v, x, m1 then m2)"""
    inner = producer_named(op.operands[0], "write")
    if inner is None or not _injective(op.attrs["map"]):
        return None
    seen = producer_named(inner.operands[1], "view")
    base = op.operands[1]
    if seen is None or seen.operands[0] is not base or seen.attrs["map"] != op.attrs["map"]:
        return None
    m = op.attrs["map"].then(inner.attrs["map"])
    return b.emit(op.defn, (inner.operands[0], base), (op.result.type,), {**op.attrs, "map": m}).result


@RULES.rule("write")
def write_of_whole(op: Op, b: Builder) -> Value | None:
    """write(v, x, identity) = v, unless x is (part of) an argument or carried by a loop: then it stays in place"""
    value, base = op.operands
    if not op.attrs["map"].is_identity(base.type.shape) or value.type.shape != base.type.shape:
        return None
    if value is base or _reaches_loop_or_return(op.result):
        return None
    root = _root(base)
    if root is None or root.producer is None or root.producer.regions:
        return None
    if shares_memory(value) or only_user(value) is None or value.type != op.result.type:
        return copy_of(value, op.result.type, b)
    return value


@RULES.rule("write")
def write_of_own_version(op: Op, _b: Builder) -> Value | None:
    """write(v, x, identity) = v where v is x with some elements changed"""
    value, base = op.operands
    if not op.attrs["map"].is_identity(base.type.shape) or value.type != op.result.type or value is base:
        return None
    version = value
    while version is not base:
        if version.producer is None or version.producer.name not in UPDATES:
            return None
        version = version.producer.operands[UPDATES[version.producer.name]]
    return value


def _root(value: Value) -> Value | None:
    """The first version of the storage that `value` is a version of; None if there are too many to look at."""
    for _ in range(_MOST_VERSIONS):
        if value.producer is None or value.producer.name not in UPDATES:
            return value
        value = value.producer.operands[UPDATES[value.producer.name]]
    return None


def _reaches_loop_or_return(value: Value) -> bool:
    """Is some use a place where storages are told apart (carried by a region, or the last version of an argument)?"""
    for op, i in value.uses:
        if op.name in ("for", "while", "yield"):
            return True
        if op.name == "return" and i >= len(op.operands) - len(op.attrs.get("mutates", ())):
            return True
    return False


@RULES.rule("write")
def write_of_own_elements(op: Op, _b: Builder) -> Value | None:
    """write(view(x, m), x, m) = x"""
    seen = producer_named(op.operands[0], "view")
    if seen is None or seen.operands[0] is not op.operands[1] or seen.attrs["map"] != op.attrs["map"]:
        return None
    return op.operands[1] if _injective(op.attrs["map"]) else None


@RULES.rule("copy")
def copy_of_fresh(op: Op, _b: Builder) -> Value | None:
    """copy(x) = x where x is fresh, laid out likewise, and used by nothing else"""
    x = op.operands[0]
    if x.type != op.result.type or only_user(x) is None or shares_memory(x) or x.type.ndim == 0:
        return None
    producer = x.producer
    return x if producer is not None and producer.block is op.block else None


@RULES.rule("copy")
def copy_only_read(op: Op, _b: Builder) -> Value | None:
    """copy(x) = x where x is fresh, laid out likewise, and both are only read"""
    x = op.operands[0]
    if x.type != op.result.type or is_alias(x) or starts_storage(x) or starts_storage(op.result):
        return None
    return x


# Casts and kinds.


@RULES.rule("cast")
def cast_to_same(op: Op, _b: Builder) -> Value | None:
    """cast(x, dtype of x) = x"""
    x = op.operands[0]
    return x if x.type.dtype == op.result.type.dtype else None


@RULES.rule("cast")
def cast_of_cast(op: Op, b: Builder) -> Value | None:
    """cast(cast(x, d1), d2) = cast(x, d2) where d1 holds every value of x exactly"""
    inner = producer_named(op.operands[0], "cast")
    if inner is None:
        return None
    x = inner.operands[0]
    source, middle, target = x.type.dtype, inner.result.type.dtype, op.result.type.dtype
    if not holds_exactly(source, middle):
        return None
    if middle.kind in "fc" and target.kind in "iu" and not holds_exactly(source, target) and source.kind != "f":
        return None  # out of range, float to int and int to int differ
    if x.type.ndim != op.result.type.ndim:
        return None
    if x.type.kind != "np_scalar" and op.result.type.kind == "np_scalar":
        x = b.apply(REGISTRY["as_kind"], x, kind="np_scalar")[0]  # else Python's True would become its 1.0
    if source == target:
        return x
    return b.emit(op.defn, (x,), (op.result.type,), dict(op.attrs)).result


def holds_exactly(source: np.dtype, target: np.dtype) -> bool:
    """Is every value of `source` a value of `target`?"""
    if source == target or source.kind == "b":
        return True
    if target.kind == "b":
        return False
    if source.kind in "iu" and target.kind in "fc":
        return np.iinfo(source).bits - (source.kind == "i") <= np.finfo(target).nmant + 1
    if source.kind == "f" and target.kind != "f":
        return False
    return bool(np.can_cast(source, target, "safe"))


@RULES.rule("as_kind")
def as_kind_of_same(op: Op, b: Builder) -> Value | None:
    """as_kind(x, k) = x where x is of kind k; as_kind(as_kind(x, j), k) = as_kind(x, k)"""
    x = op.operands[0]
    if x.type.kind == op.result.type.kind:
        return x
    inner = producer_named(x, "as_kind")
    if inner is None:
        return None
    first = inner.operands[0]
    if first.type.kind == op.result.type.kind:
        return first
    return b.emit(op.defn, (first,), (op.result.type,), dict(op.attrs)).result


# Elementwise.


@RULES.rule("neg")
def neg_of_neg(op: Op, _b: Builder) -> Value | None:
    """neg(neg(x)) = x"""
    inner = producer_named(op.operands[0], "neg")
    return inner.operands[0] if inner is not None else None


def _strip_broadcast(op: Op, b: Builder) -> Value | None:
    """op(broadcast(x), y) = op(x, y) where y has the full shape: elementwise ops broadcast themselves"""
    shape = op.result.type.shape
    full = [i for i, v in enumerate(op.operands) if v.type.shape == shape]
    if not shape or (op.result.type.dtype.kind == "c" and all(d == 1 for d in shape)):
        return None  # NumPy multiplies one number by another in other ways if their arrays have not as many axes
    for i, value in enumerate(op.operands):
        seen = producer_named(value, "view")
        if seen is None:
            continue
        x = seen.operands[0]
        if not _is_broadcast(seen.attrs["map"], x) or not any(j != i for j in full):
            continue
        operands = [*op.operands[:i], x, *op.operands[i + 1 :]]
        return b.emit(op.defn, operands, (op.result.type,), dict(op.attrs)).result
    return None


def _is_broadcast(m: IndexMap, x: Value) -> bool:
    """Is the map just NumPy's broadcasting of `x`, along axes that are literally 1 or missing?"""
    shift = len(m.shape) - x.type.ndim
    if shift < 0 or x.type.kind != "array":
        return False
    for k, (a, d) in enumerate(zip(m.axes, x.type.shape, strict=True)):
        if a.offset != 0:
            return False
        if a.axis is None:
            if d != 1:
                return False
        elif a.axis != k + shift or a.step != 1 or m.shape[a.axis] != d:
            return False
    return True


@RULES.rule(
    *("add", "sub", "mul", "div", "floordiv", "mod", "pow", "minimum", "maximum", "where"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
)
def broadcast_operand(op: Op, b: Builder) -> Value | None:
    """f(broadcast(x), y) = f(x, y) where y has the full shape"""
    return _strip_broadcast(op, b)
