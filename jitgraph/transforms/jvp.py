"""Forward mode: one pass over operations, from the first to the last, that makes the tangent of each result.

As in `vjp`, operations are those of a graph or of the eager tape. How the tangent comes about, in this order:
1. the record's own `jvp`;
2. a record that is linear is applied to the tangents;
3. an elementwise operator has a diagonal Jacobian: its `vjp`, given the tangent of an operand, answers its part;
4. else the `vjp` is transposed: it is linear in the cotangent, and the reverse sweep over what it emits is the `jvp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from jitgraph.ir.builder import Builder
from jitgraph.ir.opdef import Trait
from jitgraph.transforms.vjp import (
    AnyBuilder,
    Handle,
    Operation,
    Sweep,
    broadcast_to,
    has_tangent,
    in_dtype,
    mark_active,
    no_gradient,
    record_vjp,
    zeros,
)

#: rule(forward, op): sets `forward.tangents` of the results.
Rule: TypeAlias = "Callable[[Forward, Any], None]"
RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a forward rule for an operator that does not follow from its record."""

    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


class Forward:
    """The forward pass: tangents by value. In a graph the tangent of a result is made right behind its op."""

    def __init__(self, b: AnyBuilder, tangents: dict[Handle, Handle]) -> None:
        self.b = b
        self.tangents = tangents

    def run(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            if op.regions or any(x in self.tangents for x in op.operands):
                self.push(op)

    def push(self, op: Operation) -> None:
        """Make the tangents of one operation's results."""
        if isinstance(self.b, Builder):
            self.b.loc = op.loc  # type: ignore[attr-defined]  # an op of a graph
            self.b.block, self.b.before = op.block, op.next  # type: ignore[attr-defined]
        special = RULES.get(op.defn.name)
        if special is not None:
            special(self, op)
        elif any(has_tangent(r.type) for r in op.results):
            tangents = [self.tangents.get(x) for x in op.operands]
            for result, tangent in zip(op.results, record_jvp(self.b, op, tangents), strict=True):
                if tangent is not None and has_tangent(result.type):
                    self.tangents[result] = fit(self.b, tangent, result)


def fit(b: AnyBuilder, tangent: Handle, result: Handle) -> Handle:
    """A tangent in the dtype and shape of its value."""
    tangent = in_dtype(b, tangent, result.type.dtype)
    return tangent if tangent.type.shape == result.type.shape else broadcast_to(b, tangent, result.type.shape)


def record_jvp(b: AnyBuilder, op: Operation, tangents: Sequence[Handle | None]) -> Sequence[Handle | None]:
    """The tangents of the results, from those of the operands (None: zero).

    Raises:
        TraceError: the operator has no gradient.
    """
    defn = op.defn
    if defn.jvp is not None:
        results = op.results[0] if len(op.results) == 1 else tuple(op.results)
        made = defn.jvp(b, tangents, results, *op.operands, **op.attrs)
        return (made,) if len(op.results) == 1 and not isinstance(made, (tuple, list)) else tuple(made)
    if defn.linear and not defn.has(Trait.ELEMENTWISE):
        return tuple(b.apply(defn, *_filled(b, op, tangents), **op.attrs))
    if defn.vjp is None:
        raise no_gradient(op)
    if defn.has(Trait.ELEMENTWISE):
        total: Handle | None = None
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                part = record_vjp(b, op, [tangent])[i]
                if part is not None:
                    total = part if total is None else b.add(total, part)
        return (total,)
    return _transposed_vjp(b, op, tangents)


def _filled(b: AnyBuilder, op: Operation, tangents: Sequence[Handle | None]) -> list[Handle]:
    """Tangents with zeros filled in; operands that have none (indices, masks) as they are."""
    return [
        t if t is not None else zeros(b, x.type) if has_tangent(x.type) else x
        for t, x in zip(tangents, op.operands, strict=True)
    ]


def _transposed_vjp(b: AnyBuilder, op: Operation, tangents: Sequence[Handle | None]) -> Sequence[Handle | None]:
    seeds = [zeros(b, r.type) if has_tangent(r.type) else None for r in op.results]
    cotangents, emitted = _recorded(b, lambda: record_vjp(b, op, seeds))
    active: set[Handle] = {s for s in seeds if s is not None}
    mark_active(emitted, active)
    sweep = Sweep(b, active)
    for ct, tangent in zip(cotangents, tangents, strict=True):
        if ct is not None and tangent is not None:
            sweep.add(ct, tangent)
    sweep.run(emitted)
    return [None if s is None else sweep.take(s) for s in seeds]


def _recorded(b: AnyBuilder, run: Callable[[], Any]) -> tuple[Any, Sequence[Operation]]:
    """What `run` returns, and the operations that it made at `b`."""
    if not isinstance(b, Builder):
        return b.recorded(run)  # type: ignore[no-any-return]
    border = b.block.last if b.before is None else b.before.prev
    made = run()
    ops = []
    op = b.block.first if border is None else border.next
    while op is not b.before and op is not None:
        ops.append(op)
        op = op.next
    return made, ops


@rule("host_call")
def _host_call(_forward: Forward, op: Operation) -> None:
    if any(has_tangent(r.type) for r in op.results):
        raise no_gradient(op)
