"""Joining the values that one name has on two paths: types that both fit, constants, containers leaf by leaf."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import CellType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jitgraph import errors
from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Block, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import IndexMap, Shape, TensorType, python_type
from jitgraph.tensor import Storage, Tensor, is_writable, lift, make, wrap
from jitgraph.tracing.cells import MOST_ITEMS, Cell
from jitgraph.tracing.choices import Choice
from jitgraph.tracing.identity import note
from jitgraph.tracing.iteration import any_traced
from jitgraph.tracing.joining import (
    UNSET,
    Unset,
    alike,
    convert,
    describe,
    exact_types,
    inner_symbols,
    is_option,
    is_returned,
    is_value,
    join,
    options_of,
    placeholder,
    remade,
    renumbered,
    same_constant,
    same_place,
    same_static,
    sizes_of,
    stays_inside,
    structure,
    type_of,
)
from jitgraph.tracing.kinds import Boxed, Tag, holder, is_exact, join_kinds, tag_of
from jitgraph.tracing.objects import Memory, is_bound_in, is_object, joined, object_of
from jitgraph.tracing.origins import Origins, bound, choice_of, form_of, look
from jitgraph.tracing.poison import Maybe, OneOf, Poison, as_maybe, unbound_name
from jitgraph.tracing.restart import Restart
from jitgraph.tracing.scopes import at_versions, variables_of

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode

_T = TypeVar("_T")
#: Packages whose objects are none of the user's.
_OTHERS = ("builtins", "jitgraph", "numpy")


class Merge:
    """Collects pairs of values that become the results of one `cond`, and makes the merged values of them.

    Args:
        blocks: the regions the two values come from; conversions are emitted at their ends.
        is_outer: whether a storage existed before the regions.
        versions: for each region the versions that it leaves of storages from outside.
        stale: for each region those that it makes unusable, with the modes that say so.
        born: for each region the objects of the user's classes that it made, by identity.
        cells: for each region the attributes and items that it changed, with what it left there.
        settle: the branch, if one of its sides may be assumed instead (`Regions.key_of`).
        before: the variables in front of the branch.
        predicate: which of the regions runs.
    """

    def __init__(
        self,
        mode: CaptureMode,
        blocks: Sequence[Block],
        is_outer: Callable[[Storage], bool],
        versions: Sequence[dict[Storage, Any]],
        stale: Sequence[dict[Storage, Any]],
        born: Sequence[dict[int, Any]],
        cells: Sequence[Sequence[tuple[Cell, Any]]],
        settle: Any,
        predicate: Value,
        before: Any,
    ) -> None:
        self.predicate = predicate
        self.before = before
        self.born = born
        self.cells = cells
        self.settle = settle
        self.versions = versions
        self.stale = stale
        self.mode = mode
        self.blocks = blocks
        self.is_outer = is_outer
        self.types: list[TensorType] = []
        self.yields: tuple[list[Value], list[Value]] = ([], [])
        self._storages: dict[tuple[int, int], Callable[[Sequence[Value]], Storage]] = {}
        self._made: dict[Any, Storage] = {}
        #: What is made of each new storage of a side: a merged storage, the view that it stands for, whether it is
        #: only part of what the function returns.
        self._merged: tuple[dict[Storage, list[tuple[Storage, tuple[Any, ...], bool]]], ...] = ({}, {})
        #: What arrays of the regions may be, by branches in them.
        self._perhaps: dict[Storage, set[Storage]] = {}
        self._halves: dict[Any, int] = {}
        self._kept: list[Any] = []
        #: What makes the arrays merged of two objects.
        self._plans: dict[tuple[int, int], Callable[[Sequence[Value]], Tensor]] = {}
        #: Those of them that a variable stands for, not only what the function returns.
        self._variables: set[tuple[int, int]] = set()
        self._inner = inner_symbols(blocks)

    def pair(self, a: Value, b: Value, t: TensorType) -> int:
        """Yield `a` from one side and `b` from the other; the number of the result."""
        for k, value in enumerate((a, b)):
            self.yields[k].append(self._in(k, lambda v=value: convert(self.mode, v, t)))  # type: ignore[misc]
        self.types.append(t)
        return len(self.types) - 1

    def _in(self, k: int, emit: Callable[[], Any]) -> Any:
        builder = self.mode.builder
        block = builder.block
        builder.at_end(self.blocks[k])
        try:
            return emit()
        finally:
            builder.at_end(block)

    def _read(self, k: int, x: Any) -> Value:
        with at_versions(self.versions[k], self.stale[k]):
            return self._in(k, lambda: lift(self.mode, x))  # type: ignore[no-any-return]

    def merge(self, name: str, a: Any, b: Any, line: str) -> Callable[[Sequence[Value]], Any]:
        """How to make the merged value from the results of the `cond`."""
        if a is b or same_place(a, b):
            if a is b or not is_object(a) or object_of(a) is object_of(b):
                return lambda results: a
            return self._noted(lambda results: remade(a, a._storage), a, b)
        for poison in (a, b):
            if type(poison) is Poison and not poison.unbound:
                return self._poisoned(poison)
        missing_a, missing_b = type(a) in (Poison, Unset), type(b) in (Poison, Unset)
        if missing_a and missing_b:
            return lambda results: a if type(a) is Unset else b
        if missing_a or missing_b:
            side, x = (1, b) if missing_a else (0, a)
            missing = a if missing_a else b
            if missing is UNSET:
                return self._half(name, x, side)
            if name.startswith("_jg_"):  # an unbound variable is returned
                name = unbound_name(missing) or name
            known = as_maybe(name, x)
            value = self._half(name, known.value, side)
            flag_a, flag_b = (False, known.flag) if missing_a else (known.flag, False)
            flag = self.merge(name, flag_a, flag_b, line)
            return lambda results: Maybe(name, value(results), flag(results))
        if (type(a) is Maybe or type(b) is Maybe) and not is_returned(name):
            return self._maybe(name, as_maybe(name, a), as_maybe(name, b), line)
        if type(a) is OneOf or type(b) is OneOf:
            merges = is_returned(name) or (is_option(a) and is_option(b))
            return self._one_of(name, a, b, line) if merges else self._mismatch(name, a, b, line)
        if type(a) is Maybe or type(b) is Maybe:
            a, b = as_maybe(name, a), as_maybe(name, b)
        if is_value(a) and is_value(b):
            if type(a) is not Tensor and type(b) is not Tensor and same_constant(a, b):
                return lambda results: a
            form = self._form(a, b)
            if form is not None:
                return self._noted(form, a, b)
            tagged = self._kinds(a, b)
            if tagged is not None:
                return self._noted(tagged, a, b)
            t = join(self.mode, type_of(a), type_of(b))
            if t is not None and t.kind != "array" and exact_types(self.mode, a) != exact_types(self.mode, b):
                t = None  # the kind would depend on the path
            if t is not None and t.kind == "array" and type_of(a).dtype != type_of(b).dtype:
                t = None  # the dtype would depend on the path
            if t is not None:
                if not self._inner.isdisjoint(name for d in t.shape for name in symbols(d)):
                    return self._size_inside(name)
                return self._noted(self._tensors(name, a, b, t), a, b)
            return self._mismatch(name, a, b, line)
        if self.settle is not None and (self._has_other_name(name, a) or self._has_other_name(name, b)):
            return self._mismatch(name, a, b, line)  # a change by one name is seen by the other on one path only
        parts_a, parts_b = self._left(0, lambda: structure(a)), self._left(1, lambda: structure(b))
        if parts_a is not None and parts_b is not None and parts_a[1] == parts_b[1]:
            from jitgraph.pytree import unflatten

            plans = [self.merge(name, x, y, line) for x, y in zip(parts_a[0], parts_b[0], strict=True)]
            tree = parts_a[1]
            return lambda results: unflatten(tree, [plan(results) for plan in plans])
        kind = type(a)
        if kind is type(b) and kind in (tuple, list) and len(a) == len(b) and any_traced((a, b)):
            pairs = zip(self._left(0, lambda: [*a]), self._left(1, lambda: [*b]), strict=True)
            items = [self.merge(f"{name}[{k}]", x, y, line) for k, (x, y) in enumerate(pairs)]
            return lambda results: kind([plan(results) for plan in items])
        if type(a) is type(b) and id(a) in self.born[0] and id(b) in self.born[1] and list(vars(a)) == list(vars(b)):
            made = object.__new__(type(a))
            attributes = {k: self.merge(f"{name}.{k}", x, vars(b)[k], line) for k, x in vars(a).items()}

            def build(results: Sequence[Value]) -> Any:
                vars(made).update({k: plan(results) for k, plan in attributes.items()})
                return made

            return build
        if same_static(a, b):
            return lambda results: a
        return self._mismatch(name, a, b, line)

    def _poisoned(self, poison: Poison) -> Callable[[Sequence[Value]], Any]:
        """What a side could not merge: one of two within one of two, so that this branch is settled first."""
        settle = self.settle
        if settle is not None:
            poison = Poison(lambda: Restart(settle=settle))
        return lambda results: poison

    def _left(self, side: int, read: Callable[[], _T]) -> _T:
        """What `read` answers of containers as a side left them: what it changed in them is undone by now."""
        cells = [(cell, value) for cell, value in self.cells[side] if type(cell.holder) is not CellType]
        before = [cell.get() for cell, _ in cells]
        for cell, value in cells:
            cell.set(value)
        try:
            return read()
        finally:
            for (cell, _), value in zip(cells, before, strict=True):
                cell.set(value)

    def _has_other_name(self, name: str, x: Any) -> bool:
        """Whether a container that can change is known by another name from before the branch."""
        if type(x) not in (list, dict, set, bytearray, deque):
            return False
        variables = [(k, v) for k, v in variables_of(self.before).items() if not k.startswith("_jg_")]
        return any((v is x and k != name) or _holds(v, x) for k, v in variables)

    def _noted(self, plan: Callable[[Sequence[Value]], Any], a: Any, b: Any) -> Callable[[Sequence[Value]], Any]:
        """The plan of a value that is one of two objects in Python."""
        objects = self.mode.objects
        if objects is None or not (is_object(a) or is_object(b)):
            return lambda results: note(self.mode, plan(results), self.predicate, (a, b), self.settle)
        sides = [self._in(k, lambda x=x: objects.numbers(x)) for k, x in enumerate((a, b))]  # type: ignore[misc]
        at, memory_at = (self.pair(sides[0][n], sides[1][n], python_type("py_int")) for n in (0, 1))
        steps = joined(*[side[2] for side, x in zip(sides, (a, b), strict=True) if is_object(x)])
        if is_bound_in(steps, self._inner):
            steps = None

        def build(results: Sequence[Value]) -> Any:
            made = note(self.mode, plan(results), self.predicate, (a, b), self.settle)
            objects.name(made, results[at], Memory(results[memory_at], steps))
            return made

        return build

    def _form(self, a: Any, b: Any) -> Callable[[Sequence[Value]], Any] | None:
        """Views of one array from outside that differ in numbers only: the view with the merged numbers."""
        if not all(type(x) is Tensor and x.is_traced and x.type.kind == "array" for x in (a, b)):
            return None
        found = form_of(self.mode, a, b, self._inner) if self.is_outer(a._storage) else None
        if found is None:
            return None
        form, *sides = found
        values = [[self._in(k, lambda d=d: self.mode.dim_value(d)) for d in side] for k, side in enumerate(sides)]  # type: ignore[misc]
        at = [self.pair(x, y, python_type("py_int")) for x, y in zip(*values, strict=True)]
        return lambda results: form.filled(bound(self.mode, [results[k] for k in at], form.sizes))

    def _kinds(self, a: Any, b: Any) -> Callable[[Sequence[Value]], Any] | None:
        """Scalars of two types that one value holds exactly: that value and a bool; None if there is no such type."""
        types = list(dict.fromkeys([*exact_types(self.mode, a), *exact_types(self.mode, b)]))
        if len(types) != 2 or any(t.kind == "array" for t in types):
            return None
        values = [self._read(0, a), self._read(1, b)]
        joined = holder(types[0], types[1], values) or join_kinds(*types)
        if joined is None:
            return None
        if not all(self._in(k, lambda v=v: is_exact(self.mode, v, v.type, joined)) for k, v in enumerate(values)):  # type: ignore[misc]
            return None
        flags = [self._flag(k, x, types[0]) for k, x in enumerate((a, b))]
        at = self.pair(values[0], values[1], joined)
        flag_at = self.pair(flags[0], flags[1], python_type("py_bool"))
        mode = self.mode

        def build(results: Sequence[Value]) -> Tensor:
            mode.kinds[results[at]] = Tag(results[flag_at], types[0], types[1])
            return wrap(mode, results[at])

        return build

    def _flag(self, k: int, x: Any, yes: TensorType) -> Value:
        """Whether a scalar is of type `yes`, emitted on side `k`."""
        tag = tag_of(self.mode, x)
        if tag is None:
            known = type_of(x) == yes
            self.mode.ask(x)  # the bool stands for the type that it has here
            return self._in(k, lambda: self.mode.builder.constant(known))  # type: ignore[no-any-return]
        if tag.yes == yes:
            return tag.flag
        return self._in(k, lambda: self.mode.builder.apply(REGISTRY["logical_not"], tag.flag)[0])  # type: ignore[no-any-return]

    def _one_of(self, name: str, a: Any, b: Any, line: str) -> Callable[[Sequence[Value]], Any]:
        """What a name is on two paths, in two types: the options of both, and the number of the one."""
        sides = [options_of(x) for x in (a, b)]
        options: list[list[Any]] = [[x, UNSET] for x in sides[0]]
        numbers: list[int] = []
        for y in sides[1]:
            fitting = [k for k, (x, other) in enumerate(options) if other is UNSET and alike(self.mode, x, y)]
            numbers.append(fitting[0] if fitting else len(options))
            if fitting:
                options[fitting[0]][1] = y
            else:
                options.append([UNSET, y])
        plans = [self.merge(name, x, y, line) for x, y in options]
        first = self._read(0, a.which if type(a) is OneOf else 0)
        second = self._read(1, self._in(1, lambda: renumbered(b.which, numbers)) if type(b) is OneOf else numbers[0])
        at = self.pair(first, second, python_type("py_int"))
        error = self._mismatch_error(name, a, b, line)
        mode = self.mode
        return lambda results: OneOf(wrap(mode, results[at]), tuple([plan(results) for plan in plans]), error)

    def _mismatch(self, name: str, a: Any, b: Any, line: str) -> Callable[[Sequence[Value]], Any]:
        stays = id(a) not in self.born[0] and id(b) not in self.born[1]
        if self.settle is None and stays and (is_returned(name) or (is_option(a) and is_option(b))):
            return self._one_of(name, a, b, line)
        poison = Poison(self._mismatch_error(name, a, b, line))
        return lambda results: poison

    def _mismatch_error(self, name: str, a: Any, b: Any, line: str) -> Callable[[], BaseException]:
        shown = "the result" if name.startswith("_jg_") else name
        mode, loc = self.mode, self.mode.locate()
        text = f"{shown} is {describe(a)} if the test at {line} holds and {describe(b)} otherwise"
        settle = self.settle
        lifts = isinstance(a, np.ndarray) or isinstance(b, np.ndarray)  # made of numbers that Python knows

        def error() -> BaseException:
            if settle is not None:
                return Restart(settle=settle)
            if lifts and not mode.lifts:
                return Restart(lifts=True)
            return errors.LeftToPython(
                errors.describe(
                    text, loc or mode.locate(), remedy="give it one type in both branches, or make the test static."
                )
            )

        return error

    def _size_inside(self, name: str) -> Callable[[Sequence[Value]], Any]:
        """A name whose size is data of one side: no type holds behind the branch."""
        shown = "the result" if name.startswith("_jg_") else name
        mode, loc = self.mode, self.mode.locate()
        settle = self.settle

        def error() -> BaseException:
            if settle is not None:
                return Restart(settle=settle)
            return errors.LeftToPython(
                errors.describe(
                    f"the size of {shown} is known only inside of the branch that makes it, and it is used after it",
                    loc or mode.locate(),
                    remedy="use it in the branch, or give it a size that depends on no data (np.where for a mask).",
                )
            )

        poison = Poison(error)
        return lambda results: poison

    def _maybe(self, name: str, a: Maybe, b: Maybe, line: str) -> Callable[[Sequence[Value]], Any]:
        """A name that some paths leave unbound, on both sides."""
        value, flag = self.merge(name, a.value, b.value, line), self.merge(name, a.flag, b.flag, line)
        return lambda results: Maybe(name, value(results), flag(results))

    def _half(self, name: str, x: Any, side: int, *, untagged: bool = False) -> Callable[[Sequence[Value]], Any]:
        """A name bound on one side only: the other side yields something that nobody looks at.

        Args:
            untagged: `x` is the number alone of a scalar whose kind depends on the path.
        """
        parts = None if untagged else self._left(side, lambda: structure(x))
        if parts is not None:
            from jitgraph.pytree import unflatten

            leaves, tree = parts
            tagged = tree.kind is Boxed
            plans = [self._half(name, leaf, side, untagged=tagged) for leaf in leaves]
            return lambda results: unflatten(tree, [plan(results) for plan in plans])
        if id(x) in self.born[side]:
            x_a, x_b = (x, None) if side == 0 else (None, x)
            return self._mismatch(name, x_a, x_b, "a test")
        if type(x) is Poison and not x.unbound:
            return self._poisoned(x)
        if not (type(x) is Tensor and x.is_traced):
            return lambda results: x
        if not self._inner.isdisjoint(name for d in x.type.shape for name in symbols(d)):
            return self._size_inside(name)
        is_known = self._inner.isdisjoint(sizes_of(x))
        is_outer = x.type.kind == "array" and self.is_outer(x._storage)
        is_known = is_known and stays_inside(self.mode, x)
        if is_outer and is_known:  # a view of what was there before stays one, and the object that the side says
            if self.mode.objects is None or object_of(x) is not x:
                return lambda results: x
            return self._noted(lambda results: remade(x, x._storage), *((x, None) if side == 0 else (None, x)))
        is_whole = is_known and not is_outer and bool(x._steps)
        if is_whole and self._inner.isdisjoint(name for d in x._storage.value.type.shape for name in symbols(d)):
            whole = self._half(name, make(x._storage, ()), side)
            return self._noted(
                lambda results: remade(x, whole(results)._storage), *((x, None) if side == 0 else (None, x))
            )
        value = self._read(side, x)
        t = value.type
        if t.kind == "array" and not t.layout.is_dense:
            t = TensorType(t.dtype, t.shape)
        other = self._in(1 - side, lambda: placeholder(self.mode, t))
        key = (side, id(x._storage), x._steps)
        if key not in self._halves:
            self._kept.append(x._storage)
            self._halves[key] = self.pair(value, other, t) if side == 0 else self.pair(other, value, t)
        k, mode = self._halves[key], self.mode
        options = (x, None) if side == 0 else (None, x)
        if t.kind != "array":
            return self._noted(lambda results: wrap(mode, results[k]), *options)
        writable = is_writable(x)
        origins, codes = self._origins(*options)

        def build(results: Sequence[Value]) -> Tensor:
            made = make(self._made.setdefault(key, Storage(mode, results[k], None, writable)), ())
            twin = self._join_twins(made._storage, side, x, is_returned(name))
            if twin is not None and not codes:
                mode.choices[made._storage] = Choice(
                    self.predicate, (twin, None) if side == 0 else (None, twin), results[k]
                )
            if origins.storages:
                mode.watch(made._storage, origins.storages, self.settle, late=is_returned(name))
            if codes:
                origins.choose(mode, made, [results[n] for n in codes])
            elif origins.storages:
                mode.choices[made._storage] = Choice(self.predicate, options, results[k])
            return made

        return self._noted(build, *options)

    def _tensors(self, name: str, a: Any, b: Any, t: TensorType) -> Callable[[Sequence[Value]], Any]:
        mode = self.mode
        if t.kind != "array":
            k = self.pair(self._read(0, a), self._read(1, b), t)
            return lambda results: wrap(mode, results[k])
        inner = not self.is_outer(a._storage) and not self.is_outer(b._storage)
        one_of = choice_of(mode, a) is not None or choice_of(mode, b) is not None
        if inner and not one_of and a._steps == b._steps and a._storage.value.type == b._storage.value.type:
            key = (id(a._storage), id(b._storage))
            self._kept.append((a._storage, b._storage))
            if key not in self._storages:
                k = self.pair(a._storage.value, b._storage.value, a._storage.value.type)

                def joined(results: Sequence[Value]) -> Storage:
                    storage = self._made.setdefault(key, Storage(mode, results[k]))
                    wholes = make(a._storage, ()), make(b._storage, ())
                    twins = [self._join_twins(storage, n, x, is_returned(name)) for n, x in enumerate(wholes)]
                    if any(twin is not None for twin in twins):
                        mode.choices[storage] = Choice(self.predicate, (twins[0], twins[1]), results[k])
                    return storage

                self._storages[key] = joined
            get = self._storages[key]
            return lambda results: remade(a, get(results))
        if not is_returned(name):
            self._variables.add((id(a), id(b)))
        known = self._plans.get((id(a), id(b)))
        if known is not None:
            return known
        k = self.pair(self._read(0, a), self._read(1, b), t)
        origins, codes = self._origins(a, b)
        sources = origins.storages

        once: list[Tensor] = []  # two names of one pair are one array

        def fresh(results: Sequence[Value]) -> Tensor:
            if once:
                return once[0]
            late = (id(a), id(b)) not in self._variables
            tensor = wrap(mode, results[k])
            once.append(tensor)
            tensor._storage.writable = is_writable(a) or is_writable(b)
            twins = [self._join_twins(tensor._storage, side, x, late) for side, x in enumerate((a, b))]
            # what is new on a side is the merged array itself, which nobody may write to if he may not there
            mixed = is_writable(a) != is_writable(b)
            locked = make(Storage(mode, results[k], None, writable=False), ()) if mixed else None
            options = [
                x if self.is_outer(x._storage) else twin if is_writable(x) else locked
                for x, twin in zip((a, b), twins, strict=True)
            ]
            if sources:
                mode.watch(tensor._storage, sources, self.settle, late=late)
            if codes:
                origins.choose(mode, tensor, [results[n] for n in codes])
            elif sources or mixed or any(twin is not None for twin in twins):
                mode.choices[tensor._storage] = Choice(self.predicate, (options[0], options[1]), results[k])
            if mixed:
                mode.locked[tensor._storage] = self.settle
            return tensor

        self._plans[id(a), id(b)] = fresh
        self._kept.append((a, b))
        return fresh

    def _join_twins(self, made: Storage, side: int, x: Tensor, late: bool) -> Tensor | None:
        """Names of one new array that are two arrays from here on: none of them is written any more.

        Args:
            made: what a name of the array `x`, new on `side`, stands for.
            late: the name is only part of what the function returns.

        Returns:
            the same array by the other name, if there is one.
        """
        if self.is_outer(x._storage):
            return None
        twins = self._merged[side].setdefault(x._storage, [])
        known = any(storage is made and late >= is_late for storage, _, is_late in twins)
        others = [twin for twin in twins if twin[0] is not made]
        if not known:
            perhaps = [t for s, ts in self._merged[side].items() if self._may_be_one(s, x._storage) for t in ts]
            for storage, _, is_late in (*others, *perhaps):
                self.mode.watch(made, [storage], self.settle, late=late or is_late)
            twins.append((made, x._steps, late))
        for storage, steps, _ in others:
            rest = _seen_from(steps, x, x._storage.value.type.shape)
            if rest is not None and not is_bound_in(rest, self._inner):
                return make(storage, rest)
        return None

    def _may_be_one(self, a: Storage, b: Storage) -> bool:
        """Whether branches within the regions make one of two arrays what the other one is, on some path."""
        if a is b:
            return False
        for storage in (a, b):
            if storage not in self._perhaps:
                reached = self.mode.perhaps(storage)
                self._perhaps[storage] = {s for s in reached if s is storage or not self.is_outer(s)}
        return not self._perhaps[a].isdisjoint(self._perhaps[b])

    def _origins(self, *sides: Any) -> tuple[Origins, list[int]]:
        """What the merged array may be, and the results that say what it is; none where the predicate does."""
        found = [look(self.mode, x, self.is_outer) for x in sides]
        origins = Origins()
        origins.add(self.mode, [view for f in found for view in f.views], self._inner)
        direct = all(x is None or self.is_outer(x._storage) or choice_of(self.mode, x) is None for x in sides)
        if not origins.forms or (direct and not any(form.width for form in origins.forms)):
            return origins, []
        codes = [
            self._in(k, lambda x=x: origins.codes(self.mode, x, self.is_outer))  # type: ignore[misc]
            for k, x in enumerate(sides)
        ]
        return origins, [self.pair(x, y, x.type) for x, y in zip(*codes, strict=True)]


def _holds(value: Any, x: Any, depth: int = 3) -> bool:
    """Whether a container, or an object of the user's, has `x` in it."""
    kind = type(value)
    if isinstance(value, list | tuple | deque):
        items: Sequence[Any] = [*value]
    elif isinstance(value, dict):
        items = [*value.values()]
    elif kind is Maybe:
        items = [value.value]
    elif isinstance(value, type) or not kind.__dictoffset__ or kind.__module__.partition(".")[0] in _OTHERS:
        return False
    else:
        items = [*vars(value).values()]
    return len(items) <= MOST_ITEMS and any(i is x or (depth > 0 and _holds(i, x, depth - 1)) for i in items)


def _seen_from(steps: tuple[Any, ...], x: Tensor, shape: Shape) -> tuple[Any, ...] | None:
    """What leads to the view `x` from another one of its storage; None where that is not known to have all of `x`.

    Args:
        steps: those of the other view.
        shape: of the storage.
    """
    if steps == x._steps[: len(steps)]:
        return x._steps[len(steps) :]
    back = steps[0].inverse(shape) if len(steps) == 1 and isinstance(steps[0], IndexMap) else None
    if back is None or not x._steps or not isinstance(x._steps[0], IndexMap):
        return None if back is None else (back, *x._steps)
    return (back.then(x._steps[0]), *x._steps[1:])
