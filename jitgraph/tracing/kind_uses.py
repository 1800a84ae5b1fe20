"""Whether a turn of a loop sees that a scalar it begins with was a Python number of another type before the loop.

A loop carries `s = 0` as the type that `s + x[i]` has. That the first turn then begins with another type shows only
where the scalar itself is kept, or where its type decides another's: everything that is computed from it is followed,
with the types that the first turn would have.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from jitgraph.errors import JitgraphError
from jitgraph.ir.builder import constant_type
from jitgraph.ir.graph import Block, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import TensorType

#: Operators with which Python numbers raise and NumPy's do not.
_RAISING = frozenset(("div", "floordiv", "mod", "fmod", "pow"))
#: Operators whose results do not depend on the types of scalars: these are stored as what the array is made of.
_STORING = frozenset(("write", "write_through", "scatter", "scatter_add", "expand", "check", "raise", "cond", "switch"))


def sees_kind(values: dict[Value, TensorType], ends: Collection[Value]) -> bool:
    """Whether other types of values would be noticed in a turn.

    Args:
        values: block arguments to the types (of Python numbers) that they have before the loop.
        ends: what names are bound to at the end of a turn, and what else is looked at.
    """
    types = dict(values)
    work = list(types)
    while work:
        value = work.pop()
        if value in ends and types[value] != value.type:
            return True
        for op in value.users():
            found = _changes(op, value, types)
            if found is None:
                return True
            for result, t in found:
                if types.get(result) != t:
                    types[result] = t
                    work.append(result)
    return False


def _changes(op: Op, value: Value, types: dict[Value, TensorType]) -> Sequence[tuple[Value, TensorType]] | None:
    """Results that would have other types, and which; None if something shows at once."""
    if op.name == "full":
        given = op.attrs["dtype"]
        return None if given == value.type.dtype and given != types[value].dtype else ()
    if op.name == "cast":  # as if it were not there: most are the builder's
        return () if op.result.type.is_python else [(op.result, types[value])]
    if op.name == "yield":
        return [(r, types[value]) for x, r in zip(op.operands, _results(op.block), strict=False) if x is value]
    if op.name in ("for", "while"):
        bodies = [region.args for region in op.regions]
        ends = list(op.results)  # without a turn they are what the loop begins with
        same = [zip(op.operands, args, strict=False) for args in bodies] + [zip(op.operands, ends, strict=False)]
        return [(a, types[value]) for pairs in same for x, a in pairs if x is value]
    if op.name == "where" and value is not op.operands[0] and _is_merge(op):
        return [(user.result, types[value]) for user in op.result.users()]
    if op.name == "as_kind":
        return _of_kind(op, types[value])
    if op.name in _STORING:
        return ()
    if not op.defn.has(Trait.ELEMENTWISE):
        return _of_others(op, types)
    others = [v.type if v in types else _uncast(v) for v in op.operands]
    if _infer(op, others) != op.result.type.dtype:  # the casts are the user's
        others = [v.type for v in op.operands]
    try:
        (found,) = op.defn.infer([types.get(v, t) for v, t in zip(op.operands, others, strict=True)], op.attrs).results
    except JitgraphError:
        return None
    if found.is_python:
        raises = op.name in _RAISING and not constant_of(op.operands[1])
        return None if raises else [(op.result, found)] if found != op.result.type else ()
    return None if found.dtype != op.result.type.dtype else ()


def _is_merge(op: Op) -> bool:
    """Whether it is what a branch of scalars became: the one or the other, each of its own type."""
    return not op.result.type.shape and all(
        u.name == "as_kind" and u.attrs["kind"] != "array" for u in op.result.users()
    )


def _of_kind(op: Op, t: TensorType) -> Sequence[tuple[Value, TensorType]]:
    """What `as_kind` makes: the builder's own for a cast is as if it were not there, an array has a dtype."""
    kind = op.attrs["kind"]
    if kind == "np_scalar":
        return [(op.result, t)]
    dtype = np.result_type(t.dtype)
    return [(op.result, TensorType(dtype, ()))] if kind == "array" and dtype != op.result.type.dtype else ()


def _of_others(op: Op, types: dict[Value, TensorType]) -> Sequence[tuple[Value, TensorType]] | None:
    """The results of an operator on arrays that would have other dtypes; None if it would refuse the operands."""
    if op.name == "host_call":
        return None
    try:
        found = op.defn.infer([types.get(v, v.type) for v in op.operands], op.attrs).results
    except JitgraphError:
        return None
    return [(r, t) for r, t in zip(op.results, found, strict=True) if t.dtype != r.type.dtype]


def _infer(op: Op, operands: Sequence[TensorType]) -> np.dtype | None:
    """The dtype that an operator gives for such operands; None if it has none."""
    try:
        return op.defn.infer(operands, op.attrs).results[0].dtype
    except JitgraphError:
        return None


def _results(block: Block | None) -> Sequence[Value]:
    """What the values that a block yields are behind it."""
    parent = None if block is None else block.parent
    return () if parent is None or (parent.name == "while" and block is parent.regions[0]) else parent.results


def _uncast(value: Value) -> TensorType:
    """The type of an operand before it was cast to that of the operator's loop; of constants that of Python's."""
    producer = value.producer
    if producer is not None and producer.name == "constant" and not value.type.ndim:
        number = np.asarray(producer.attrs["value"]).item()
        return constant_type(int(number) if isinstance(number, float) and number.is_integer() else number)
    if producer is not None and producer.name == "cast" and not value.type.is_python:
        source = producer.operands[0]
        made = source.producer
        return made.operands[0].type if made is not None and made.name == "as_kind" else source.type
    return value.type
