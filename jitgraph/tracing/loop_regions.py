"""`for` and `while` of rewritten functions as region operators.

A loop body is traced once an attempt. The first attempt carries what the syntax suggests: names that a turn may read
before it assigns them, and the storages of arrays that the body writes to. An attempt that finds more (another storage
written, a name of another type at the end of a turn) is undone and made anew. A name whose type changes in the first turn
to one that holds the same numbers (int to float, a Python float to np.float64) is converted before the loop; one that
changes its shape has the first turn traced in front of the loop. Both hold only if there is a turn: a guard, if argument
sizes decide it, else a check that reruns the call in Python. A second change is an error that names the variable.

Names assigned before they are read in a turn are no inputs of it; behind the loop they have the value of the last turn.
A loop with `break` is a `while` over a counter and the flag.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jitgraph import errors
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Block, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import TreeDef, unflatten
from jitgraph.tensor import Storage, Tensor, dim_tensor, lift, set_version, wrap
from jitgraph.tracing.iteration import Range, Sequenced, sequenced
from jitgraph.tracing.merging import (
    UNSET,
    Scope,
    carried_type,
    convert,
    describe,
    is_value,
    join,
    placeholder,
    same_constant,
    same_place,
    structure,
)
from jitgraph.tracing.poison import Poison, unbound
from jitgraph.tracing.regions import Mark, Opened, Regions, carried_argument, defined_in
from jitgraph.tracing.rewrite import LoopInfo

_ATTEMPTS = 6


class _Peel(Exception):  # noqa: N818  # an answer
    """The type of a name changes in the first turn to one that its value from before cannot be converted to."""

    def __init__(self, name: str, before: Any, after: Any) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after


class Unrolled:
    """A `for` over something known while tracing: ordinary Python."""

    __slots__ = ("iterable",)
    traced = False

    def __init__(self, iterable: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def caught(self, error: Exception) -> bool:
        return False

    def stop(self, flag: Any) -> bool:
        """Whether the loop has ended by `break`; under a traced flag the remaining turns do nothing."""
        return flag is True


@dataclass(slots=True)
class Carried:
    """A name that a loop carries.

    Attributes:
        tree: structure of its value; `first` is the number of its first leaf among the carried values.
        leaves: for each leaf its carried type, or None for a part that stays as it is (`fixed`).
        inits: for each leaf what it is before the loop (None: nothing, a placeholder will do).
    """

    name: str
    tree: TreeDef | None
    inits: list[Any]
    types: list[TensorType | None]
    fixed: list[Any]
    values: list[Value | None] = field(default_factory=list)
    #: Does the value at the start of a turn matter?
    read: bool = True


class Region:
    """What `for` and `while` share: attempts, carried names and storages."""

    traced = True

    def __init__(self, regions: Regions, info: LoopInfo) -> None:
        self.regions = regions
        self.mode = regions.mode
        self.info = info
        self.place = regions.mode.locate()
        self.before: Scope | None = None
        self.names: dict[str, Carried] = {}
        self.storages: list[Storage] = []
        self.attempts = 0
        self.needs_turn = ""
        self.results: dict[str, Any] = {}
        self.heads: dict[str, Any] = {}
        self.changed: dict[str, tuple[Any, Any]] = {}

    # --- the start of an attempt

    def _begin(self, scope: Scope) -> None:
        """The variables before the loop; at the first attempt, what is likely carried."""
        if self.before is not None:
            return
        self.before = scope
        flag = self.info.break_flag
        for name in self.info.head:
            if name != flag:
                self._carry(name, scope.get(name))
        for name in self.info.written:
            value = scope.get(name)
            if type(value) is Tensor and value.is_traced and value.type.kind == "array" and name not in self.names:
                self._add_storage(value._storage)

    def _carry(self, name: str, value: Any) -> None:
        """Carry a name with its value from before, if that is something to carry."""
        if type(value) is Poison or value is UNSET:
            return
        if type(value) is Tensor and value.is_traced and value.type.kind == "array" and name not in self.info.rebound:
            self._add_storage(value._storage)  # written in place: the name stays bound to it
            return
        parts = structure(value)
        leaves, tree = (([value], None)) if parts is None else parts
        types = [carried_type(x) for x in leaves]
        if all(t is None for t in types):
            return
        dense = [TensorType(t.dtype, t.shape) if t is not None and t.kind == "array" and not t.layout.is_dense else t for t in types]
        self.names[name] = Carried(name, tree, list(leaves), dense, list(leaves))

    def _add_storage(self, storage: Storage) -> None:
        if storage not in self.storages and storage.value is not None:
            self.storages.append(storage)

    def _arguments(self, block: Block) -> None:
        """Block arguments for all that is carried; storages and names get them."""
        for carried in self.names.values():
            carried.values = [None if t is None else carried_argument(block, t, carried.name) for t in carried.types]
        for storage in self.storages:
            argument = block.add_arg(storage.value.type, storage.value.name)
            set_version(storage, argument)
        self.heads = {}
        for name, carried in self.names.items():
            if carried.read:
                self.heads[name] = self._bind(carried, carried.values)

    def _bind(self, carried: Carried, values: Sequence[Value | None]) -> Any:
        """The Python value of a carried name made of graph values."""
        leaves = [f if v is None else wrap(self.mode, v) for v, f in zip(values, carried.fixed, strict=True)]
        return leaves[0] if carried.tree is None else unflatten(carried.tree, leaves)

    def get(self, name: str) -> Any:
        """While tracing a turn the value at its start; after the loop the result."""
        if self.results:
            return self.results.get(name)
        if name == self.info.break_flag:
            return False
        if name in self.heads:
            return self.heads[name]
        assert self.before is not None
        value = self.before.get(name)
        if name in self.names and not self.names[name].read:
            return unbound(name)
        return value

    # --- the end of an attempt

    def _compare(self, scope: Scope, block: Block) -> bool:
        """Compare the names at the end of a turn with what was carried; False if another attempt is needed.

        Raises:
            _Peel: a name changes to a type that its value from before does not convert to.
            TraceError: it did so before.
        """
        fits = True
        for name in dict.fromkeys((*self.info.head, *self.info.after)):
            if name == self.info.break_flag:
                continue
            end = scope.get(name)
            carried = self.names.get(name)
            if carried is None:
                fits = self._compare_new(name, end, block) and fits
            elif not carried.read:
                fits = self._compare_output(carried, end) and fits
            else:
                fits = self._compare_carried(carried, end, block) and fits
        return fits

    def _compare_new(self, name: str, end: Any, block: Block) -> bool:
        """A name that is not carried yet."""
        assert self.before is not None
        before = self.before.get(name)
        if end is before or same_place(end, before):
            return True
        if type(before) is not Tensor and type(end) is not Tensor and is_value(before) and is_value(end) and same_constant(before, end):
            return True
        if type(end) is Poison or end is UNSET:
            return True
        if name in self.info.head and name in self.info.rebound and type(before) is not Poison and before is not UNSET and carried_type(before) is None and structure(before) is None:
            if type(before) is type(end) and not isinstance(before, Tensor) and before == end:
                return True
        # assigned in each turn before it is read, or unbound before: what matters is the value after the last turn
        if name not in self.info.after and name not in self.info.head:
            return True
        parts = structure(end)
        leaves, tree = ([end], None) if parts is None else parts
        types = [carried_type(x) for x in leaves]
        if all(t is None for t in types) and not any(type(x) is Tensor for x in leaves):
            if name in self.info.after and type(before) is not type(end):
                self.needs_turn = self.needs_turn or name
            return True
        carried = Carried(name, tree, [None] * len(leaves), types, list(leaves), read=False)
        if before is UNSET or (name in self.info.head and type(before) is not Poison):
            carried.read = before is not UNSET
        parts = structure(before) if not isinstance(before, Poison) and before is not UNSET else None
        old, old_tree = ([before], None) if parts is None else parts
        convertible = old_tree == tree and len(old) == len(leaves)
        for k, t in enumerate(types):
            init = old[k] if convertible else None
            have = carried_type(init) if init is not None and type(init) is not Poison and init is not UNSET else None
            joined = None if have is None or t is None else join(self.mode, have, t)
            if joined is not None and joined.shape == (t.shape if t is not None else ()):
                carried.inits[k], carried.types[k] = init, joined
                if have != joined:
                    self.needs_turn = self.needs_turn or name
            elif t is not None and before is not UNSET:
                self.needs_turn = self.needs_turn or name
        carried.types = [TensorType(t.dtype, t.shape) if t is not None and t.kind == "array" else t for t in carried.types]
        self.names[name] = carried
        return False

    def _compare_output(self, carried: Carried, end: Any) -> bool:
        parts = structure(end)
        leaves, tree = ([end], None) if parts is None else parts
        if tree != carried.tree:
            if type(end) is Poison or end is UNSET:
                return True
            self._fail_type(carried.name, describe(carried.fixed[0]), describe(end))
        fits = True
        for k, x in enumerate(leaves):
            t, have = carried.types[k], carried_type(x)
            if t is None or have is None or have == t:
                continue
            joined = join(self.mode, t, have)
            if joined is None:
                self._fail_type(carried.name, str(t), str(have))
            if joined != t:
                carried.types[k] = joined
                fits = False
        return fits

    def _compare_carried(self, carried: Carried, end: Any, block: Block) -> bool:
        if type(end) is Poison:
            return True
        parts = structure(end)
        leaves, tree = ([end], None) if parts is None else parts
        if tree != carried.tree:
            raise _Peel(carried.name, self.before.get(carried.name) if self.before else None, end)
        fits = True
        for k, x in enumerate(leaves):
            t = carried.types[k]
            if t is None:
                before = carried.fixed[k]
                if x is before or same_place(x, before) or (type(x) is type(before) and not isinstance(x, Tensor) and x == before):
                    continue
                raise _Peel(carried.name, before, x)
            have = carried_type(x)
            if have is None:
                raise _Peel(carried.name, carried.inits[k], x)
            if have == t:
                continue
            joined = join(self.mode, t, have)
            if joined is None or (carried.name in self.changed and joined != t):
                raise _Peel(carried.name, carried.inits[k], x)
            if joined != t:
                if joined.dtype != t.dtype or joined.kind != t.kind:
                    self.changed[carried.name] = (t, have)
                    self.needs_turn = self.needs_turn or carried.name
                carried.types[k] = joined
                fits = False
        return fits

    def _fail_type(self, name: str, before: str, after: str) -> NoReturn:
        shown = "the value that the function returns" if name.startswith("_jg_") else name
        raise errors.TraceError(
            errors.describe(
                f"{shown} changes its type in a loop: {before} at the start of a turn, {after} at its end",
                self.place,
                remedy=f"give {shown} its final type before the loop, e.g. 0.0 for 0, or an array of the right shape.",
            )
        )

    def _storages_changed(self, changed: dict[Storage, Any]) -> bool:
        """Carry storages that were written; True if there are new ones."""
        new = [s for s in changed if s not in self.storages]
        self.storages += new
        return bool(new)

    # --- the operator

    def _inits(self) -> list[Value]:
        """The values from before the loop, converted; emitted at the builder's place."""
        found = []
        for carried in self.names.values():
            for init, t in zip(carried.inits, carried.types, strict=True):
                if t is not None:
                    found.append(placeholder(self.mode, t) if init is None else convert(self.mode, lift(self.mode, init), t))
        return found + [s.value for s in self.storages]

    def _ends(self, scope: Scope, changed: dict[Storage, Any]) -> list[Value]:
        """The values at the end of a turn, converted; emitted at the builder's place."""
        found = []
        for carried in self.names.values():
            end = scope.get(carried.name)
            missing = type(end) is Poison or end is UNSET
            parts = None if missing else structure(end)
            leaves = [None] * len(carried.types) if missing else [end] if parts is None else parts[0]
            for k, t in enumerate(carried.types):
                if t is None:
                    continue
                value = carried.values[k]
                assert value is not None
                if not missing:
                    value = convert(self.mode, lift(self.mode, leaves[k]), t)
                found.append(value)
        return found + [changed.get(s, s.value) for s in self.storages]

    def _deliver(self, results: Sequence[Value], scope: Scope | None) -> None:
        """Bind names and storages to the results of the operator."""
        at = 0
        bound: dict[str, Any] = {}
        for carried in self.names.values():
            values: list[Value | None] = []
            for t in carried.types:
                values.append(None if t is None else results[at])
                at += t is not None
            for v in values:
                if v is not None and not v.name and not carried.name.startswith("_jg_"):
                    v.name = carried.name
            bound[carried.name] = self._bind(carried, values)
            self._watch(carried, bound[carried.name])
        for storage in self.storages:
            if storage.value.name and not results[at].name:
                results[at].name = storage.value.name
            set_version(storage, results[at])
            at += 1
        assert self.before is not None
        for name in self.info.after:
            if name not in bound and name != self.info.break_flag:
                end = scope.get(name) if scope is not None else self.before.get(name)
                bound[name] = end
        self.results = bound or {"": None}

    def _watch(self, carried: Carried, value: Any) -> None:
        """If the loop may have no turn, an array bound anew in it may still be the one from before."""
        for init in carried.inits:
            if type(init) is Tensor and init.type.kind == "array" and type(value) is Tensor and self._may_skip():
                self.mode.watch(value._storage, [init._storage])

    def _may_skip(self) -> bool:
        return True

    def caught(self, error: Exception) -> bool:
        return False

    def _skip(self, mark: Mark, *blocks: Block) -> None:
        """The loop has no turn, for certain or under a guard: nothing happens."""
        assert self.before is not None
        self.results = {n: self.before.get(n) for n in self.info.after} or {"": None}
        if self.info.break_flag:
            self.results[self.info.break_flag] = False


class ForRegion(Region):
    """A `for` over a sequence of traced length."""

    def __init__(self, regions: Regions, sequence: Sequenced, info: LoopInfo) -> None:
        super().__init__(regions, info)
        self.sequence = sequence
        self.start = 0
        self.peeling = False
        self.with_break = False
        self.finished = False
        self.opened: Opened | None = None
        self.start_mark: Mark | None = None
        self.attempt_mark: Mark | None = None
        self.test: Block | None = None
        self.symbol = ""
        self.counter: Value | None = None
        self.failure: tuple[type, str] | None = None

    def __iter__(self) -> ForRegion:
        return self

    def __next__(self) -> Any:
        if self.finished:
            raise StopIteration
        self.attempts += 1
        if self.attempts > _ATTEMPTS:
            raise errors.InternalError("a loop does not settle on the types of what it carries")
        self.attempt_mark = self.regions.mark()
        if self.start_mark is None:
            self.start_mark = self.attempt_mark
        self._pending = True
        return _Element(self)

    def enter(self, names: dict[str, Any]) -> None:
        raise NotImplementedError
