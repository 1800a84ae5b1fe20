"""The rule driver: local rewrites of one op each, applied until none fires.

A rule looks at one op and answers the value that replaces its result (or None), emitting new ops in front of it. Its
docstring is its law. It must not make code worse, so that rewriting ends.
Replacing keeps what can be seen: type, layout where it matters, and that a fresh result shares no memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from jitgraph.errors import InternalError
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.storage import UPDATES, WRITES
from jitgraph.ir.types import TensorType
from jitgraph.records import dataclass

Rewrite: TypeAlias = Callable[[Op, Builder], Value | None]

#: Sweeps over a graph, and rewrites per op in one, before the driver gives up: more than honest rules need.
MAX_SWEEPS = 20
MAX_REWRITES_PER_OP = 50


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A named rewrite of the ops `ops`; with `flags`, only under all of these fast-math flags."""

    name: str
    law: str
    ops: tuple[str, ...]
    flags: frozenset[str]
    run: Rewrite


class RuleSet:
    """Rules of one pass, found by the name of the op they rewrite."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[str, Rule] = {}
        self.by_op: dict[str, list[Rule]] = {}
        RULE_SETS[name] = self

    def rule(self, *ops: str, fast_math: Iterable[str] = ()) -> Callable[[Rewrite], Rewrite]:
        """Decorator: adds a rule for `ops`; its docstring is its law."""

        def add(run: Rewrite) -> Rewrite:
            made = Rule(run.__name__, " ".join((run.__doc__ or "").split()), ops, frozenset(fast_math), run)
            if made.name in self.rules or not made.law:
                raise InternalError(f"the rule {made.name} is declared twice or states no law")
            self.rules[made.name] = made
            for op in ops:
                self.by_op.setdefault(op, []).append(made)
            return run

        return add


#: Every rule set, by name: tests assert that each rule fires in one of them.
RULE_SETS: dict[str, RuleSet] = {}


class _RuleBuilder(Builder):
    """Remembers the ops it made."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.made: list[Op] = []

    def insert(self, op: Op) -> Op:
        self.made.append(op)
        return super().insert(op)


def apply_rules(graph: Graph, rules: RuleSet, fired: Callable[[str], None] | None = None) -> bool:
    """Apply `rules` until none fires; True if one did.

    Args:
        fired: told the name of each rule that fired.
    """
    changed = False
    for _ in range(MAX_SWEEPS):
        if not _sweep(graph, rules, fired):
            return changed
        changed = True
    raise InternalError(f"the rules of {rules.name} do not come to rest")


def _sweep(graph: Graph, rules: RuleSet, fired: Callable[[str], None] | None) -> bool:
    by_op = rules.by_op
    queue = deque(op for op in graph.walk() if op.defn.name in by_op)
    waiting = set(queue)
    b = _RuleBuilder(graph)
    changed = False
    budget = MAX_REWRITES_PER_OP * (len(queue) + 10)

    def enqueue(op: Op) -> None:
        if op not in waiting and op.defn.name in by_op:
            waiting.add(op)
            queue.append(op)

    while queue:
        op = queue.popleft()
        waiting.discard(op)
        if op.block is None:
            continue
        for rule in by_op[op.defn.name]:
            if rule.flags and not rule.flags <= graph.fast_math:
                continue
            b.ahead_of(op)
            value = rule.run(op, b)
            if value is None or not can_replace(op.result, value):
                continue
            changed = True
            budget -= 1
            if not budget:
                raise InternalError(f"the rules of {rules.name} do not come to rest: {rule.name} fires on and on")
            if fired is not None:
                fired(rule.name)
            users = list(op.result.users())
            operands = list(op.operands)
            replace_value(op.result, value, b)
            for used in users:
                enqueue(used)
            for made in b.made:
                enqueue(made)
                for result in made.results:
                    if not result.name and result is value:
                        result.name = op.result.name
            b.made.clear()
            erase_unused(graph, op)
            for operand in operands:
                producer = operand.producer
                if producer is not None:
                    if producer.block is not None and len(operand.uses) == 1:
                        enqueue(next(iter(operand.uses))[0])
                    erase_unused(graph, producer)
            break
        else:
            for made in b.made:  # a rule that gave up half-way
                erase_unused(graph, made)
            b.made.clear()
    return changed


def erase_unused(graph: Graph, op: Op) -> None:
    """Erase `op` if it is pure and unused, then likewise what only it used."""
    stack = [op]
    while stack:
        dead = stack.pop()
        if dead.block is None or not dead.defn.has(Trait.PURE) or any(r.uses for r in dead.results):
            continue
        operands = list(dead.operands)
        graph.erase(dead)
        stack.extend(v.producer for v in operands if v.producer is not None)


def replace_value(old: Value, new: Value, b: Builder) -> None:
    """Every use of `old` becomes `new`, an equal value, or a copy of it where one must be told from the other:

    - another kind of scalar is converted (`as_kind`),
    - another memory layout is copied where a user may see it (sums round in the order of memory),
    - a fresh result that would be an argument, a view, or another result is copied,
    - as is a matrix that would meet itself in a product: BLAS computes x.T @ x by another function, with other bits.
    `b` stands where `new` is visible.
    """
    if new is old:
        return
    if new.type.dtype != old.type.dtype or new.type.ndim != old.type.ndim:
        raise InternalError(f"{old.type} replaced by {new.type}")
    if new.type.kind != old.type.kind:
        new = b.emit(REGISTRY["as_kind"], (new,), (old.type,), {"kind": old.type.kind}).result
    if not old.name:
        old.name = new.name
    elif not new.name:
        new.name = old.name
    copy: Value | None = None
    other_layout = new.type.layout != old.type.layout
    was_alias = is_alias(old) and not (old.producer is not None and old.producer.regions)
    for op, i in list(old.uses):
        if (
            (other_layout and not _layout_blind(op, i))
            or (_is_fresh_result(op, i) and (_is_returned(new) or (is_alias(new) and not was_alias)))
            or _meets_itself(op, i, new)
        ):
            if copy is None:
                copy = copy_of(new, old.type, b)
                copy.name = old.name
            op.set_operand(i, copy)
        else:
            op.set_operand(i, new)


def can_replace(old: Value, new: Value) -> bool:
    """False if a user sees the layout of `old`, which `new` has not and no copy can have (a view with gaps), or would
    multiply `new` by itself.
    """
    if any(_meets_itself(op, i, new) for op, i in old.uses):
        return False
    if new.type.layout == old.type.layout or old.type.layout.is_dense:
        return True
    return all(_layout_blind(op, i) for op, i in old.uses)


def copy_of(value: Value, t: TensorType, b: Builder) -> Value:
    """A fresh array of the elements of `value`, laid out as `t`."""
    order = "F" if t.layout.is_f and not t.layout.is_c else "C" if t.layout.is_c else "K"
    return b.emit(REGISTRY["copy"], (value,), (t,), {"order": order}).result


def _layout_blind(op: Op, i: int) -> bool:
    """The op does not see the layout of its operand `i`: its result's is written in its type."""
    return op.defn.has(Trait.ELEMENTWISE) or (op.name in WRITES and i == 0)


def _meets_itself(op: Op, i: int, new: Value) -> bool:
    """Operand `i` of a matrix product becomes an array of which the other one is a view, and was not before."""
    if op.name == "view":
        return any(_meets_itself(user, k, new) for user, k in op.result.uses)
    if op.name != "matmul":
        return False
    old, other = (_viewed(v) for v in (op.operands[i], op.operands[1 - i]))
    return _viewed(new) is other is not old


def _viewed(value: Value) -> Value:
    while value.producer is not None and value.producer.name == "view":
        value = value.producer.operands[0]
    return value


def _is_fresh_result(op: Op, i: int) -> bool:
    return op.name == "return" and i < len(op.operands) - len(op.attrs.get("mutates", ()))


def shares_memory(value: Value) -> bool:
    """May the memory of `value` be that of an argument, another value or another result?"""
    return is_alias(value) or _is_returned(value)


def is_alias(value: Value) -> bool:
    """Is `value` an argument, a view, a version of a storage: something that may be another name for memory?"""
    if not value.type.ndim and value.type.kind != "array":
        return False
    producer = value.producer
    return producer is None or producer.name in _ALIASES or bool(producer.regions)


def _is_returned(value: Value) -> bool:
    return value.type.kind == "array" and any(op.name == "return" for op in value.users())


_ALIASES = frozenset(["view", "reshape", "constant", *UPDATES])


def starts_storage(value: Value) -> bool:
    """Is some use one that updates `value` in place, or gives it away as a fresh result?"""
    if value.type.kind != "array":
        return False
    return any(UPDATES.get(op.name) == i or op.name in ("for", "while", "yield", "return") for op, i in value.uses)


def only_user(value: Value) -> Op | None:
    """The op that uses `value`, if it is used once."""
    if len(value.uses) != 1:
        return None
    return next(iter(value.uses))[0]


def constant_number(value: Value) -> Any:
    """The number, in the dtype of `value`, that every element of it is, if it is a constant, a fill of one or a view of
    these; else None.
    """
    producer = value.producer
    while producer is not None and producer.name in _SPREADS:
        producer = producer.operands[0].producer
    if producer is None or producer.name != "constant":
        return None
    number = producer.attrs["value"]
    if isinstance(number, np.ndarray) and number.ndim:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(number).astype(value.type.dtype)[()]


_SPREADS = frozenset(["full", "view", "as_kind", "copy", "reshape"])


def constant_of(value: Any) -> Any:
    """The number behind a constant scalar value; None if it is not one."""
    producer = value.producer
    if producer is None or producer.defn.name != "constant" or value.type.shape:
        return None
    known = producer.attrs["value"]
    return known[()] if isinstance(known, np.ndarray) else known


def constant_array(value: Value) -> np.ndarray | None:
    """The elements of a constant array; None if `value` is not one."""
    producer = value.producer
    if producer is None or producer.defn.name != "constant":
        return None
    return np.asarray(producer.attrs["value"])
