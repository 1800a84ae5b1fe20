"""What a loop carries from turn to turn: names leaf by leaf, storages; and how an attempt compares with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.ir.dims import DimLike, symbols
from jitgraph.ir.graph import Block, Site, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import TreeDef, unflatten
from jitgraph.tensor import Storage, Tensor, lift, make, set_version, wrap
from jitgraph.tracing.capture_mode import frame_of, is_spoiled, spoil
from jitgraph.tracing.choices import Choice
from jitgraph.tracing.kinds import Boxed, boxed_as, is_exact
from jitgraph.tracing.merging import (
    UNSET,
    Scope,
    at_versions,
    carried_type,
    convert,
    describe,
    inner_symbols,
    is_value,
    join,
    moved,
    placeholder,
    remade,
    same_constant,
    same_place,
    sizes_of,
    structure,
    type_of,
)
from jitgraph.tracing.poison import Maybe, Poison, as_maybe, unbound_text
from jitgraph.tracing.regions import Opened, Regions, defined_in, is_the_users, message_of
from jitgraph.tracing.rewrite import LoopInfo


class Changed(Exception):  # noqa: N818  # an answer
    """A name changes in a turn to something that its value from before cannot be converted to."""

    def __init__(self, name: str, before: Any, after: Any) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after


class NeedsFirstTurn(UnboundLocalError):  # noqa: N818  # an answer
    """A name that only the end of a turn binds is read in a turn of the region: the first turn comes before it.

    Behind the region it is Python's own error.
    """

    def __init__(self, region: Region, name: str) -> None:
        super().__init__(unbound_text(name))
        self.region, self.unbound = region, name


@dataclass(slots=True)
class Carried:
    """A name that a loop carries, leaf by leaf.

    Attributes:
        tree: structure of its value; None: one leaf.
        inits: what each leaf is before the loop; None: nothing that a turn looks at.
        types: the carried type of each leaf; None: a part that stays as it is in `fixed`.
        read: whether a turn may read the value of the one before.
        arguments: the block arguments of the attempt.
        wholes: leaves, by number, that are strided views of new arrays: the whole arrays are carried.
        moves: its parts that stay are views of arrays from before the loop, behind it those of the last turn.
    """

    name: str
    tree: TreeDef | None
    inits: list[Any]
    types: list[TensorType | None]
    fixed: list[Any]
    read: bool = True
    arguments: list[Value | None] = field(default_factory=list)
    wholes: dict[int, Tensor] = field(default_factory=dict)
    moves: bool = False


def parts_of(x: Any) -> tuple[list[Any], TreeDef | None]:
    parts = structure(x)
    return ([x], None) if parts is None else parts


def _is_array(x: Any) -> bool:
    return type(x) is Tensor and x.is_traced and x.type.kind == "array"


def is_missing(x: Any) -> bool:
    return type(x) is Poison or x is UNSET


def _shape_symbols(x: Any) -> set[str]:
    """The symbols in the shape of a traced array."""
    return {name for d in x.type.shape for name in symbols(d)} if type(x) is Tensor and x.is_traced else set()


def _unchanged(a: Any, b: Any) -> bool:
    if a is b or same_place(a, b):
        return True
    if type(a) is Tensor or type(b) is Tensor:
        return False
    if is_value(a) and is_value(b):
        return same_constant(a, b)
    return type(a) is type(b) and isinstance(a, str | bytes | tuple | type(None)) and bool(a == b)


def _dense(t: TensorType | None) -> TensorType | None:
    """The type as it is carried: a strided view is copied to C order."""
    if t is not None and t.kind == "array" and not t.layout.is_dense:
        return TensorType(t.dtype, t.shape)
    return t


def _convertible(t: TensorType, end: TensorType | None, init: Any) -> bool:
    """Whether a first turn on the converted value is the same as one on the value of type `t`, to the last bit."""
    if end is None or t.kind == "array" or end.kind == "array":
        return end is not None and t.dtype == end.dtype
    if not t.is_python:
        return t.dtype == end.dtype
    exact = end.is_python or end.dtype.kind != "f" or end.dtype == np.float64
    return exact or (type(init) in (bool, int, float, complex) and init == 0)


class Region:
    """What `for` and `while` share: attempts, carried names and storages."""

    traced = True

    def __init__(self, regions: Regions, info: LoopInfo) -> None:
        self.regions = regions
        self.mode = regions.mode
        self.info = info
        #: A break flag that the operator itself tests: no carried name, and False at the start of each turn.
        self.own_flag = ""
        #: Names of arrays that are themselves again at the end of the body: not carried, their storages are.
        self.pinned: set[str] = set()
        self.place = regions.mode.locate()
        #: The symbol of a `for`'s index.
        self.index = ""
        #: Names with sizes that are data of a turn.
        self.sized_inside: set[str] = set()
        self.before: Any = None
        self.names: dict[str, Carried] = {}
        self.storages: list[Storage] = []
        self.attempts = 0
        self.peeled = False
        self.results: dict[str, Any] | None = None
        self.heads: dict[str, Any] = {}
        self.failure: Exception | None = None
        #: Names that the last turn leaves bound to a view of an array from before the loop.
        self.left: dict[str, Tensor] = {}
        #: The same, of names that are carried: they keep their array from before if there is no turn.
        self.replaced: dict[str, Tensor] = {}
        #: A name for whose sake the attempt was given up: the first turn is to be traced in front.
        self.needs_first = ""

    # --- the start

    def _begin(self, scope: Scope) -> None:
        """The variables before the loop, and what is likely carried."""
        self.before = scope
        self.names.clear()
        self.storages.clear()
        for name in self.info.head:
            value = scope.get(name)
            overwritten = name in self.info.unread and any(map(_is_array, parts_of(value)[0]))
            if name != self.own_flag and not overwritten:
                self._carry(name, value)
        for name in self.info.written:
            value = scope.get(name)
            if type(value) is Tensor and value.is_traced and value.type.kind == "array" and name not in self.names:
                self._add_storage(value._storage)
        for name, tree, types, read in self.regions.decided.get(self._key(), ()):
            known = self.names.get(name)
            if known is not None and known.tree == tree:
                if read or known.types == list(types):  # else what it was before need not convert
                    known.types = list(types)
            elif known is None and all(t is not None for t in types):
                self._output(name, scope.get(name), tree, list(types), read=read)

    def _key(self) -> Any:
        """The loop's place and the types that it begins with."""
        entry = [
            (n, str(c.tree), tuple(map(str, map(carried_type, c.inits))))
            for n, c in self.names.items()
            if c.inits[0] is not None
        ]
        return (id(self.before.code), self.info, tuple(sorted(entry)), self.peeled)

    def _carry(self, name: str, value: Any, *, rebound: bool | None = None) -> None:
        """Carry a name with its value from before, if that is something to carry."""
        if type(value) is Maybe and not is_value(value.value):
            value = self.regions.resolve(value)
        if is_missing(value) or any(map(is_spoiled, parts_of(value)[0])):
            return
        is_array = type(value) is Tensor and value.is_traced and value.type.kind == "array"
        if name in self.pinned:
            rebound = False
        if is_array and not (name in self.info.rebound if rebound is None else rebound):
            self._add_storage(value._storage)  # written in place: the name stays bound to it
            return
        leaves, tree = parts_of(value)
        types = [_dense(carried_type(x)) for x in leaves]
        if any(t is not None for t in types):
            self.names[name] = Carried(name, tree, list(leaves), types, list(leaves))

    def _add_storage(self, storage: Storage) -> None:
        if storage not in self.storages and storage.value is not None:
            self.storages.append(storage)

    def _output(
        self,
        name: str,
        before: Any,
        tree: TreeDef | None,
        types: list[TensorType | None],
        *,
        read: bool,
        fixed: Sequence[Any] = (),
    ) -> None:
        """Carry a name that has its value from the end of a turn; the one from before if it converts."""
        old, old_tree = parts_of(before)
        inits: list[Any] = [None] * len(types)
        if not is_missing(before) and old_tree == tree and len(old) == len(types):
            for k, t in enumerate(types):
                have = None if is_spoiled(old[k]) else carried_type(old[k])
                joined = None if t is None or have is None else join(self.mode, have, t)
                if joined is not None:
                    inits[k], types[k] = old[k], joined
        kept = list(fixed or [None] * len(types))
        self.names[name] = Carried(name, tree, inits, [_dense(t) for t in types], kept, read)

    def _arguments(self, block: Block, *, bind: bool) -> None:
        """Block arguments for all that is carried; names and storages are bound to them."""
        for carried in self.names.values():
            shown = "" if carried.name.startswith("_jg_") else carried.name
            carried.arguments = [None if t is None else block.add_arg(t, shown) for t in carried.types]
            for argument, init in zip(carried.arguments, carried.inits, strict=True):
                small = type(init) is int and abs(init) < 2**31
                if small and argument is not None and argument.type.kind == "py_int":
                    self.mode.small.add(argument)
        for storage in self.storages:
            argument = block.add_arg(storage.value.type, storage.value.name)
            if bind:
                set_version(storage, argument)
        if bind:
            self.heads = {n: self._bind(c, c.arguments) for n, c in self.names.items() if c.read}

    def _bind(self, carried: Carried, values: Sequence[Value | None], wholes: dict[int, Tensor] | None = None) -> Any:
        """The Python value of a carried name, made of graph values; views of the arrays that are carried whole."""
        leaves = [f if v is None else wrap(self.mode, v) for v, f in zip(values, carried.fixed, strict=True)]
        for k, view in (wholes or {}).items():
            leaves[k] = remade(view, leaves[k]._storage)
        return leaves[0] if carried.tree is None else unflatten(carried.tree, leaves)

    def get(self, name: str) -> Any:
        """While a turn is traced the value at its start, after the loop the result."""
        if self.results is not None:
            return self.results[name] if name in self.results else self.before.get(name)
        if name == self.own_flag:
            return False
        if name in self.heads:
            return self.heads[name]
        before = self.before.get(name)
        if type(before) is Poison and before.unbound and self._opened() is not None and self._can_peel():
            return Poison(lambda: NeedsFirstTurn(self, name), unbound=True)
        return before

    def _can_peel(self) -> bool:
        """Whether the first turn may be traced in front of the region."""
        return False

    def _give_up(self, error: NeedsFirstTurn) -> None:
        """Undo an attempt that needs its first turn traced before it; `leave` goes on from there."""
        opened = self._opened()
        assert opened is not None
        self.regions.close(opened, failed=True)
        self.regions.failed = None
        self.needs_first = error.unbound

    # --- the end of a turn

    def _compare(self, scope: Scope) -> bool:
        """Compare the names at the end of a turn with what was carried; False if another attempt is needed.

        Raises:
            Changed: another attempt will not do.
        """
        fits = True
        self.left, self.replaced = {}, {}
        for name in dict.fromkeys((*self.info.head, *self.info.after)):
            if name != self.own_flag:
                carried = self.names.get(name)
                end = scope.get(name)
                known = self._compare_new(name, end) if carried is None else self._compare_carried(carried, end)
                replaces = carried is not None and carried.tree is None and _is_array(self.before.get(name))
                if replaces and self.regions.depth == 0 and self._is_unread(name) and self._is_left(end):
                    self.replaced[name] = end
                fits = known and fits
        return fits

    def _compare_new(self, name: str, end: Any) -> bool:
        """A name that is not carried yet."""
        before = self.before.get(name)
        if is_missing(end) or _unchanged(before, end):
            return True
        if self._is_unread(name) and self._is_left(end) and (is_missing(before) or self._has_turn()):
            self.left[name] = end
            return True
        if type(before) is Poison and before.unbound and not self._has_turn():
            end = as_maybe(name, end)
        leaves, tree = parts_of(end)
        keeps = self._keeps(name, end)
        wholes = {k: x for k, x in enumerate(leaves) if self._is_unread(name) and not keeps and self._is_strided(x)}
        leaves = [make(x._storage, ()) if k in wholes else x for k, x in enumerate(leaves)]
        maybe = type(end) is Maybe
        stays = [
            self._is_unread(name) and (self._stays(x) if keeps else self._is_left(x)) and (maybe or self._has_turn())
            for x in leaves
        ]
        types = [None if stay else carried_type(x) for x, stay in zip(leaves, stays, strict=True)]
        inner = self._inner()
        sizes = _shape_symbols if keeps else sizes_of  # a copy is carried of what only some turns leave
        if any(not inner.isdisjoint(sizes(x)) for x, stay in zip(leaves, stays, strict=True) if not stay):
            self.sized_inside.add(name)
            return True
        if self._is_unread(name) and self._has_turn() and all(self._is_outer(x) for x in leaves):
            return True  # the same view of what was there before, in each turn
        is_read = name in self.info.head
        overwritten = self._is_unread(name) and not keeps and self._runs()
        if is_read and not is_missing(before) and not overwritten:
            if type(before) is Tensor and type(end) is Tensor:
                self._carry(name, before, rebound=True)
                return False
            if type(before) is Maybe and is_value(before.value):  # perhaps bound by an earlier loop
                self._carry(name, before, rebound=True)
                return False
            raise Changed(name, before, end)
        if name not in self.info.after and not is_read:
            return True
        if any(t is None and not stay for t, stay in zip(types, stays, strict=True)):
            return True  # text, objects: no run-time value; they stay what they are if they are static
        fixed = [x if stay else None for x, stay in zip(leaves, stays, strict=True)]
        self._output(name, UNSET if overwritten else before, tree, types, read=is_read and not overwritten, fixed=fixed)
        self.names[name].wholes, self.names[name].moves = wholes, any(stays) and not keeps
        return False

    def _inner(self) -> set[str]:
        """Symbols that hold within a turn only."""
        return inner_symbols(self._blocks()) | {self.index}

    def _blocks(self) -> Sequence[Block]:
        return ()

    def _is_unread(self, name: str) -> bool:
        """Whether a turn assigns the name before it reads it."""
        return name in self.info.unread or name not in self.info.head or is_missing(self.before.get(name))

    def _keeps(self, name: str, end: Any) -> bool:
        """Whether some turns bind the name and others leave what an earlier one bound."""
        return type(end) is Maybe and name not in self.info.unread

    def _is_left(self, end: Any) -> bool:
        """Whether it is a view of an array from before the loop, in a place that is known behind the loop."""
        return self._is_outer(end) and (self._inner() - self._index_symbols()).isdisjoint(sizes_of(end))

    def _is_strided(self, x: Any) -> bool:
        """Whether it is a view, with gaps, of an array made in the turn, whose sizes are known outside of it."""
        if not (type(x) is Tensor and x.is_traced and x.type.kind == "array" and x._steps) or self._is_outer(x):
            return False
        known = self._inner().isdisjoint(sizes_of(x) | sizes_of(make(x._storage, ())))
        return known and not x.type.layout.is_dense

    def _stays(self, x: Any) -> bool:
        """Whether it is the same view of an array from before the loop in each turn."""
        return self._is_outer(x) and self._inner().isdisjoint(sizes_of(x))

    def _index_symbols(self) -> set[str]:
        """Symbols of a turn that have a known value in the last one."""
        return set()

    def _last_turn(self) -> dict[str, DimLike]:
        """Their values in the last turn."""
        return {}

    def _taken(self, results: Sequence[Value]) -> Any:
        """A traced bool: whether there was a turn."""
        raise NotImplementedError

    def _is_outer(self, x: Any) -> bool:
        """Whether it is an array in a storage from before the loop."""
        if type(x) is not Tensor or not x.is_traced or x.type.kind != "array" or x._storage.value is None:
            return False
        return not any(defined_in(x._storage.value, block) for block in self._blocks())

    @staticmethod
    def _end_of(carried: Carried, end: Any) -> tuple[list[Any], TreeDef | None]:
        """The value at the end of a turn, in parts like those that are carried."""
        if carried.tree is not None and carried.tree.kind is Maybe:
            end = as_maybe(carried.name, end)
        if carried.tree is not None and carried.tree.kind is Boxed:
            parts = boxed_as(end, carried.tree.meta)  # type: ignore[arg-type]  # the two types
            if parts is not None:
                return parts, carried.tree
        leaves, tree = parts_of(end)
        if carried.wholes:
            leaves = [make(x._storage, ()) if k in carried.wholes else x for k, x in enumerate(leaves)]
        return leaves, tree

    def _has_turn(self) -> bool:
        """Whether there surely is a turn: proven, or guarded if argument sizes decide it."""
        return False

    def _runs(self) -> bool:
        """Whether the operator surely has a turn, besides one that is traced in front of it."""
        return self._has_turn()

    def _compare_carried(self, carried: Carried, end: Any) -> bool:
        if type(end) is Poison and not end.unbound:
            end.fail()
        if is_missing(end):
            return True
        name = carried.name
        keeps = self._keeps(name, end)
        leaves, tree = self._end_of(carried, end)
        if tree is not None and tree.kind is Boxed and carried.tree is None:
            return self._carry_kind(carried, end, tree)
        if tree != carried.tree:
            raise Changed(carried.name, self.before.get(carried.name), end)
        fits = True
        for k, x in enumerate(leaves):
            t, have = carried.types[k], carried_type(x)
            if t is None:
                if carried.moves and self._is_left(x):
                    carried.fixed[k] = x
                elif not _unchanged(carried.fixed[k], x):
                    raise Changed(carried.name, carried.fixed[k], x)
            elif _dense(have) != t and carried.read and self._is_unread(name) and not keeps and self._runs():
                del self.names[name]  # what it was before is of no account: begin with what a turn leaves
                return False
            elif have != t:
                joined = None if have is None else join(self.mode, t, have)
                value = x._storage.value if type(x) is Tensor else x
                if tree is not None and tree.kind is Boxed and have is not None and is_exact(self.mode, value, have, t):
                    continue
                if joined is None or not _convertible(t, have, carried.inits[k]):
                    raise Changed(carried.name, t, x)
                joined = _dense(joined)
                if joined != t:
                    carried.types[k] = joined
                    fits = False
        return fits

    def _carry_kind(self, carried: Carried, end: Any, tree: TreeDef) -> bool:
        """From here on a scalar is carried with a bool that says of which kind it is.

        Raises:
            Changed: its value from before is of a third kind.
        """
        init = carried.inits[0]
        parts = None if init is None else boxed_as(init, tree.meta)  # type: ignore[arg-type]  # the two types
        joined = carried_type(parts_of(end)[0][0])
        if parts is None or joined is None or carried_type(init) is None:
            raise Changed(carried.name, carried.types[0], end)
        if not is_exact(self.mode, init._storage.value if type(init) is Tensor else init, type_of(init), joined):
            raise Changed(carried.name, carried.types[0], end)
        carried.tree, carried.inits, carried.fixed = tree, parts, list(parts)
        carried.types = [joined, python_type("py_bool")]
        return False

    def _fail_type(self, change: Changed) -> NoReturn:
        name = change.name
        shown = "the value that the function returns" if name.startswith("_jg_") else name
        before = str(change.before) if isinstance(change.before, TensorType) else describe(change.before)
        raise errors.TraceError(
            errors.describe(
                f"{shown} changes its type in a loop: {before} at the start of a turn, "
                f"{describe(change.after)} at its end",
                self.place,
                remedy=f"give {shown} its final type before the loop, e.g. 0.0 for 0, or an array of the right shape.",
            )
        )

    # --- the operator

    def _inits(self) -> list[Value]:
        """The values from before the loop, converted; emitted at the builder's place."""
        found: list[Value] = []
        for carried in self.names.values():
            for init, t in zip(carried.inits, carried.types, strict=True):
                if t is not None:
                    tagged = carried.tree is not None and carried.tree.kind is Boxed
                    if tagged and init is not None and t.kind != "py_bool":
                        is_exact(self.mode, lift(self.mode, init), type_of(init), t)  # under a check
                    found.append(
                        placeholder(self.mode, t) if init is None else convert(self.mode, lift(self.mode, init), t)
                    )
        return found + [s.value for s in self.storages]

    def _ends(self, scope: Scope, changed: dict[Storage, Any]) -> list[Value]:
        """The values at the end of a turn, converted; emitted at the builder's place."""
        found: list[Value] = []
        for carried in self.names.values():
            end = scope.get(carried.name)
            leaves = [None] * len(carried.types) if is_missing(end) or self.failure else self._end_of(carried, end)[0]
            for x, t, argument in zip(leaves, carried.types, carried.arguments, strict=True):
                if t is not None and argument is not None:
                    with at_versions(changed):
                        found.append(argument if x is None else convert(self.mode, lift(self.mode, x), t))
        return found + [changed[s] for s in self.storages]

    def _deliver(self, results: Sequence[Value], scope: Scope) -> None:
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
            if carried.moves:
                last = self._last_turn()
                carried.fixed = [moved(x, last) if type(x) is Tensor else x for x in carried.fixed]
            bound[carried.name] = self._bind(carried, values, carried.wholes)
            leaf = carried.inits[0]
            if (
                type(leaf) is Tensor
                and leaf.type.kind == "array"
                and type(bound[carried.name]) is Tensor
                and self._may_skip()
            ):
                self.mode.watch(bound[carried.name]._storage, [leaf._storage])
        for storage in self.storages:
            if storage.value.name and not results[at].name:
                results[at].name = storage.value.name
            set_version(storage, results[at])
            at += 1
        for name, result in bound.items():
            self._watch_ends(result, scope.get(name), results)
            if self._is_kept(self.names[name], scope.get(name)):
                bound[name] = self.before.get(name)
        self._share(bound, scope)
        self._watch_twins(bound, scope)
        for name, end in self.replaced.items():
            flag = lift(self.mode, self._taken(results))
            storage = bound[name]._storage
            options = moved(end, self._last_turn()), self.before.get(name)
            self.mode.choices[storage] = Choice(flag, options, storage.value)
        for name, end in self.left.items():
            view = moved(end, self._last_turn())
            bound[name] = view if self._has_turn() else Maybe(name, view, self._taken(results))
        for name in self.info.after:
            if name not in bound:
                bound[name] = self._left_behind(name, scope.get(name))
        self.results = bound

    def _watch_ends(self, result: Any, end: Any, results: Sequence[Value]) -> None:
        """A result that copies what the last turn left in a storage from before: neither is written from here on."""
        for made, left in zip(parts_of(result)[0], parts_of(end)[0], strict=False):
            if type(made) is not Tensor or made.type.kind != "array":
                continue
            if self._is_outer(left):
                self.mode.watch(made._storage, [left._storage])
            elif _is_array(left):  # perhaps one from before, as a branch in the turn decides
                self.mode.watch_as(made._storage, left._storage)

    def _watch_twins(self, bound: dict[str, Any], scope: Scope) -> None:
        """Arrays from here on that may be one at the end of a turn: none of them is written any more."""
        known: list[tuple[Storage, Storage]] = []
        for name, result in bound.items():
            for made, end in zip(parts_of(result)[0], parts_of(scope.get(name))[0], strict=False):
                if _is_array(made) and _is_array(end) and not self._is_outer(end):
                    known.append((made._storage, end._storage))
        for k, (made, end) in enumerate(known):
            twins = [m for m, e in known[:k] if m is not made and (e is end or self.mode.may_share(e, end))]
            if twins:
                self.mode.watch(made, twins)

    def _is_kept(self, carried: Carried, end: Any) -> bool:
        """Whether a turn leaves a name bound to the array that it found, unwritten."""
        head = self.heads.get(carried.name)
        known = head is not None and _is_array(head) and _is_array(self.before.get(carried.name))
        if carried.tree is not None or head is None or not known:
            return False
        return same_place(end, head) and head._storage.value is carried.arguments[0] and not self.failure

    def _share(self, bound: dict[str, Any], scope: Scope) -> None:
        """Names that the last turn leaves bound to views of one new array are views of one array."""
        places: dict[Storage, list[tuple[str, Tensor]]] = {}
        for name, carried in self.names.items():
            end = scope.get(name)
            maybe = carried.tree is not None and carried.tree.kind is Maybe
            if (carried.tree is None or maybe) and self._is_unread(name) and (maybe or self._has_turn()):
                end = end.value if type(end) is Maybe else end
                if type(end) is Tensor and end.is_traced and end.type.kind == "array" and not self._is_outer(end):
                    places.setdefault(end._storage, []).append((name, end))
        for ends in places.values():
            whole = next((name for name, end in ends if not end._steps), None)
            for k, (name, end) in enumerate(ends):
                twin = next((other for other, x in ends[:k] if x is end), None)
                if twin is not None and type(bound[name]) is type(bound[twin]):
                    mine, other = bound[name], bound[twin]
                    bound[name] = Maybe(name, other.value, mine.flag) if type(mine) is Maybe else other
                    continue
                fits = self._inner().isdisjoint(sizes_of(end))
                if whole is None or name == whole or not fits or type(bound[name]) is not type(bound[whole]):
                    continue
                if type(bound[name]) is Maybe:
                    view = remade(end, bound[whole].value._storage)
                    bound[name] = Maybe(name, view, bound[name].flag)
                else:
                    bound[name] = remade(end, bound[whole]._storage)

    def _spoil_written(self) -> None:
        """A name bound to another array in each turn, and written through: the array from before is left behind.

        Raises:
            TraceError: it is an argument, or comes from outside: the caller would miss the writes.
        """
        for name, carried in self.names.items():
            head, init = self.heads.get(name), carried.inits[0]
            if (
                type(head) is not Tensor
                or type(init) is not Tensor
                or head._storage.value is carried.arguments[0]
                or carried.tree is not None
            ):
                continue
            storage = init._storage
            if storage.origin is not None:
                self.mode.fail(
                    f"{name} is an array of the caller's, is written to, and stands for another array in the next turn",
                    f"work on copies ({name} = {name}.copy()) and write the result back after the loop.",
                )
            spoil(
                self.mode, storage, None, f"an array that {name} stood for before a loop that wrote to it",
                "use the variables that the loop leaves, or a copy made before it.",
            )  # fmt: skip

    @staticmethod
    def _is_whole(x: Any) -> bool:
        """A traced array that is all of its storage."""
        return type(x) is Tensor and x.is_traced and x.type.kind == "array" and not x._steps

    def _is_bound_anew(self, name: str, carried: Carried) -> bool:
        """A name that stands for another array in each turn, and stood for a whole one before the loop."""
        return carried.tree is None and self._is_whole(carried.inits[0]) and self._is_whole(self.heads.get(name))

    def _left_behind(self, name: str, end: Any) -> Any:
        """The value of a name that is not carried: as it was, or static."""
        if self.failure is not None:  # a turn raises: behind the loop there was none
            return self.before.get(name)
        if name in self.sized_inside:
            place, mode = self.place, self.mode
            text = f"the size of {name} is known only within a turn of the loop, and it is used after it"
            remedy = "use it in the loop, or give it a size that does not depend on data."
            return Poison(lambda: errors.TraceError(errors.describe(text, place or mode.locate(), remedy=remedy)))
        before = self.before.get(name)
        static = end is None or isinstance(end, str | bytes | type) or callable(end)
        if is_missing(end) or type(end) is Maybe or static or _unchanged(before, end) or is_value(end):
            return end
        mode, place = self.mode, self.place
        text = f"{name} is a {type(end).__name__} made in a loop, and used after it"
        remedy = "keep its arrays and numbers in variables of their own."
        return Poison(lambda: errors.TraceError(errors.describe(text, place or mode.locate(), remedy=remedy)))

    def _may_skip(self) -> bool:
        """Whether the loop may have no turn."""
        return True

    def _needs_turn(self) -> str:
        """A name whose type or value behind the loop holds only after a turn; "" if there is none."""
        for name, carried in self.names.items():
            if (
                name not in self.info.after
                or name.startswith("_jg_")
                or (carried.tree is not None and carried.tree.kind in (Maybe, Boxed))
            ):
                continue
            for init, t in zip(carried.inits, carried.types, strict=True):
                have = None if init is None else carried_type(init)
                if t is not None and (
                    have is None or have.dtype != t.dtype or have.kind != t.kind or have.kind == "array"
                ):
                    return name
        return ""

    def _remember(self) -> None:
        self.regions.decided[self._entry_key] = [(n, c.tree, tuple(c.types), c.read) for n, c in self.names.items()]

    _entry_key: Any = None

    def caught(self, error: Exception) -> bool:
        """Whether an exception that leaves the body is one that the compiled code shall raise in its turn."""
        opened = self._opened()
        if opened is None:
            return False
        if isinstance(error, NeedsFirstTurn) and error.region is self:
            self._give_up(error)
            return True
        if not is_the_users(error):
            self.regions.close(opened, failed=True)
            self.regions.failed = error
            return False
        self.failure, self.left, self.replaced = error, {}, {}
        message, shown, recipe = message_of(error, self.mode)
        if recipe is None:
            self.mode.fail(
                f"a {type(error).__name__} raised in a loop shows an array, or more than 4 values of the run",
                "show fewer numbers, or test before the loop.",
            )
        if self.mode.is_handled(type(error)):
            self.mode.rerun_site(type(error).__name__)
        graph = self.mode.builder.graph
        graph.sites.append(Site(type(error).__name__, message, frame_of(error)[1] or self.mode.locate(), recipe))
        self.mode.emit_effect("raise", [lift(self.mode, x) for x in shown], site=len(graph.sites) - 1)
        return True

    def _opened(self) -> Opened | None:
        return None

    def _yield(self, values: Sequence[Value]) -> None:
        self.mode.builder.emit(REGISTRY["yield"], values, ())
