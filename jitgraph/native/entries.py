"""From a specialisation to the records that native code reads (`records.py`).

`make_entry` refuses what native code cannot do (an argument of a kind that it does not know, a guard that runs Python):
such calls stay with the Python dispatcher. What an entry admits is exactly what the key and the guards of the
specialisation admit, or less: less costs time, more would be wrong.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from jitgraph import dtypes, pytree
from jitgraph.abi import ResultSlot
from jitgraph.ir.dims import Atom, Dim, DimLike
from jitgraph.ir.graph import Result
from jitgraph.ir.types import IndexMap, Layout
from jitgraph.native import records
from jitgraph.native.records import (
    Answer,
    Array,
    Entry,
    Expansion,
    Frame,
    Guard,
    Leaf,
    Number,
    Out,
    Place,
    Release,
    State,
    Step,
    Strided,
    ViewStep,
)
from jitgraph.pytree import TreeDef
from jitgraph.runtime import invoke
from jitgraph.specialise import Specialisation
from jitgraph.tracing import hidden
from jitgraph.tracing.arguments import Child
from jitgraph.tracing.hidden import MISSING, Call, Live
from jitgraph.tracing.leaves import Key, Static, leaf_type

_C, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_MOST_FRAMES = 32
#: Static values that are compared by `==` where they are not the same object, after their classes.
_COMPARED = (str, bytes, bool, int)
#: The words of an entry that say which calls it admits.
_ADMITTING = (
    Entry.NARGS, Entry.NKW, Entry.NAMES, Entry.EXPANSIONS, Entry.EXPANSION_AT, Entry.LEAVES, Entry.LEAF_AT,
    Entry.HIDDEN,
    Entry.HIDDEN_AT, Entry.PLACES, Entry.PLACE_AT, Entry.GUARDS, Entry.GUARD_AT, Entry.ALIASED, Entry.ALIAS_AT,
)  # fmt: skip
_PYTHON_DTYPES = {"py_int": "i64", "py_float": "f64", "py_complex": "c128"}


class Refused(Exception):  # noqa: N818  # an answer
    """Native code cannot serve the specialisation: why."""


class NativeEntry:
    """The records of one specialisation, and the Python objects that they point at.

    Attributes:
        words: the record `Entry`.
        specialisation: what it calls.
    """

    def __init__(self, specialisation: Specialisation, like: NativeEntry | None = None) -> None:
        self.specialisation = specialisation
        #: Arrays by content, shared with other entries of the specialisation.
        self._arrays: dict[tuple[int, ...], Any] = {} if like is None else like._arrays
        self.words = (ctypes.c_int64 * Entry.WORDS)()
        self.address = ctypes.addressof(self.words)
        self.keep: list[Any] = []
        self.frames: list[Any] = []

    def pointer(self, x: Any) -> int:
        """The address of an object, which lives as long as the entry."""
        self.keep.append(x)
        return id(x)

    def array(self, words: Iterable[int]) -> int:
        """The address of an array of words."""
        values = tuple(words)
        made = self._arrays.get(values)
        if made is None:
            made = self._arrays[values] = (ctypes.c_int64 * max(1, len(values)))(*values)
        return ctypes.addressof(made)

    def admits_as(self, other: NativeEntry) -> bool:
        """Whether the two, of one specialisation, admit the same calls: equal arrays of words are one."""
        return all(self.words[k] == other.words[k] for k in _ADMITTING)

    def records(self, rows: Sequence[Sequence[int]]) -> int:
        """The address of records one behind the other."""
        return self.array(word for row in rows for word in row)

    def objects(self, found: Sequence[Any]) -> int:
        """The address of an array of objects."""
        return self.array([self.pointer(x) for x in found])

    def add_frame(self) -> None:
        """One more call may run at the same time."""
        if len(self.frames) >= _MOST_FRAMES:
            return
        executable = self.specialisation.compiled.executable
        frame = invoke.Frame(executable)
        frame.made = [None] * len(executable.interface.results)
        words = (ctypes.c_int64 * Frame.WORDS)()
        words[Frame.CONTEXT] = frame.address
        words[Frame.DIMS] = frame.dims_address
        words[Frame.RESULT_DIMS] = frame.result_dims_address
        words[Frame.SIZE] = frame.size_address
        words[Frame.SLOTS] = frame.slots_address
        words[Frame.OBJECT] = id(frame)
        self.frames.append((frame, words))
        words[Frame.NEXT] = self.words[Entry.FRAMES]
        self.words[Entry.FRAMES] = ctypes.addressof(words)


def make_entry(
    specialisation: Specialisation,
    keys: Sequence[Key],
    aliases: Sequence[int],
    tree: TreeDef,
    leaves: Sequence[Any],
    call: Call,
    shaped: bool,
    failed: Callable[..., Any],
    like: NativeEntry | None = None,
) -> NativeEntry:
    """An entry for calls like `call`, which the specialisation serves.

    Args:
        keys, aliases, tree, leaves: of the call, as its key has them.
        shaped: sizes are part of the key.
        failed: called with (frame, status, call) where the machine code stopped.
        like: another entry of the specialisation, if there is one.

    Raises:
        Refused: native code cannot serve it.
    """
    return _Maker(NativeEntry(specialisation, like), keys, aliases, leaves, call, shaped).make(tree, failed)


class _Maker:
    def __init__(
        self,
        entry: NativeEntry,
        keys: Sequence[Key],
        aliases: Sequence[int],
        leaves: Sequence[Any],
        call: Call,
        shaped: bool,
    ) -> None:
        specialisation = entry.specialisation
        self.specialisation, self.trace, self.graph = specialisation, specialisation.trace, specialisation.graph
        self.interface = specialisation.compiled.executable.interface
        self.keys, self.aliases, self.leaves, self.call = keys, aliases, leaves, call
        self.shaped = shaped
        self.entry = entry
        self.expansions: list[list[int]] = []
        self.items = 0
        #: The item of each leaf.
        self.leaf_items: list[int] = []
        #: The first item of each object among the arguments, by identity.
        self.object_items: dict[int, int] = {}
        self.places: list[list[int]] = []
        self.place_numbers: dict[int, int] = {}
        self.item_places: dict[int, int] = {}
        #: Instructions that compute numbers, and the number of each dim.
        self.number_steps: list[list[int]] = []
        self.numbers = 0
        #: The leaf of each item that is an array.
        self.array_rows: dict[int, list[int]] = {}

    def make(self, tree: TreeDef, failed: Callable[..., Any]) -> NativeEntry:
        entry, trace, interface = self.entry, self.trace, self.interface
        words = entry.words
        args, kwargs = self.call
        if self.specialisation.keeps_call:
            raise Refused("functions behind it look at the call")
        words[Entry.NARGS], words[Entry.NKW] = len(args) + len(kwargs), len(kwargs)
        words[Entry.NAMES] = entry.objects(list(kwargs))
        self._containers(tree, args, kwargs)
        slots = {leaf: slot for slot, leaf in enumerate(trace.arg_leaves)}
        rows = [
            self._leaf(self.leaves[k], self.keys[k], self.leaf_items[k], slots.get(k, -1), self.shaped)
            for k in range(len(self.keys))
        ]
        words[Entry.LEAVES] = len(rows)
        words[Entry.FIRST_HIDDEN] = self.items
        guards = self._guards()
        hidden_places = []
        watched = [g for g in trace.guards_python if isinstance(g, hidden.TypeGuard)]
        read: list[hidden.HiddenArg | hidden.TypeGuard] = [*trace.hidden, *watched]
        for k, h in enumerate(read):
            hidden_places.append(self._place(h.place))
            value = h.place.get(self.call)
            if value is MISSING or leaf_type(value) != h.key:
                raise Refused(f"{h.place.text}, which the call has given another type")
            slot = len(trace.arg_leaves) + k if k < len(trace.hidden) else -1
            rows.append(self._leaf(value, h.key, self.items + k, slot, shaped=False))
        words[Entry.HIDDEN], words[Entry.HIDDEN_AT] = len(hidden_places), entry.array(hidden_places)
        words[Entry.LEAF_AT] = entry.records(rows)
        words[Entry.EXPANSIONS], words[Entry.EXPANSION_AT] = len(self.expansions), entry.records(self.expansions)
        words[Entry.PLACES], words[Entry.PLACE_AT] = len(self.places), entry.records(self.places)
        words[Entry.GUARDS], words[Entry.GUARD_AT] = len(guards), entry.records(guards)
        self.array_rows = {row[Leaf.ITEM]: row for row in rows if row[Leaf.KIND] == Leaf.ARRAY}
        self._aliases()
        self._arrays(rows)
        addresses = self.specialisation.compiled.executable.addresses
        words[Entry.PREPARE], words[Entry.RUN] = addresses["prepare"], addresses["entry"]
        arguments = [self.leaf_items[leaf] for leaf in trace.arg_leaves]
        arguments += [self.items + k for k in range(len(trace.hidden))]
        words[Entry.ARGUMENTS], words[Entry.ARGUMENT_AT] = len(arguments), entry.array(arguments)
        self._results(arguments)
        words[Entry.RELEASE] = Release.ALWAYS if self.specialisation.is_long else Release.BY_SIZE  # of Python's lock
        words[Entry.FAILED] = entry.pointer(failed)
        total = self.items + len(hidden_places)
        for count, most in (
            (total, records.MAX_ITEMS),
            (len(self.places), records.MAX_PLACES),
            (interface.arguments, records.MAX_SLOTS),
            (len(interface.results), records.MAX_RESULTS),
            (trace.out_tree.count, records.MAX_VALUES),
        ):
            if count > most:
                raise Refused("too many arguments or results")
        if interface.arguments != len(arguments):
            raise Refused("arguments that no leaf gives")
        entry.add_frame()
        return entry

    # --- arguments

    def _containers(self, tree: TreeDef, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Items and expansions of all containers, leaves in the order in which `pytree.flatten` finds them."""
        children = list(tree.children[0].children)
        if len(tree.children) > 1:
            children += tree.children[1].children
        self.items = len(args) + len(kwargs)
        for item, (child, x) in enumerate(zip(children, (*args, *kwargs.values()), strict=True)):
            self._container(child, x, item)

    def _container(self, tree: TreeDef, x: Any, item: int) -> None:
        entry, kind = self.entry, tree.kind
        self.object_items.setdefault(id(x), item)
        if kind is None:
            self.leaf_items.append(item)
            return
        parts = pytree._parts(x)
        if parts is None:
            raise Refused("a container that changed")
        children = list(parts[0])
        first, keys = self.items, 0
        if kind is type(None):
            how = Expansion.NONE
        elif kind is tuple or (issubclass(kind, tuple) and not pytree.is_registered(kind)):
            how = Expansion.TUPLE
        elif kind is list:
            how = Expansion.LIST
        elif kind is dict:
            how, keys = Expansion.DICT, entry.objects(list(x))
        elif isinstance(parts[1], tuple) and pytree._fields.get(kind) == parts[1]:
            own = getattr(x, "__dict__", None)
            plain = own is not None and not any(hasattr(getattr(kind, n, None), "__set__") for n in parts[1])
            how, keys = Expansion.OWN_DICT if plain else Expansion.ATTRIBUTES, entry.objects(parts[1])
            if own is not None and not plain:
                raise Refused("a dataclass with descriptors")
        else:
            raise Refused(f"containers of class {kind.__name__}")
        if len(children) != len(tree.children):
            raise Refused("a container that changed")
        self.expansions.append([how, item, entry.pointer(kind), len(children), first, keys])
        self.items += len(children)
        for k, (child, value) in enumerate(zip(tree.children, children, strict=True)):
            self._container(child, value, first + k)

    def _leaf(self, x: Any, key: Key, item: int, slot: int, shaped: bool) -> list[int]:
        entry = self.entry
        x = x.value if type(x) is Static else x
        row = [0] * Leaf.WORDS
        row[Leaf.ITEM], row[Leaf.SLOT], row[Leaf.TYPE] = item, slot, entry.pointer(type(x))
        tag = key[0]
        if tag == "array":
            self._array_leaf(row, x, key, shaped)
        elif tag == "py_int":
            row[Leaf.KIND] = Leaf.INTEGER
        elif tag in ("py_float", "py_complex", "scalar"):
            row[Leaf.KIND], row[Leaf.BYTES] = Leaf.NUMBER, dtype_of(key).itemsize
        elif tag == "static":
            row[Leaf.KIND] = Leaf.EQUAL if _is_exact(x) or isinstance(x, np.dtype) else Leaf.IDENTITY
            row[Leaf.VALUE] = entry.pointer(x)
            if type(x) in (slice, set, frozenset):
                raise Refused(f"static values of class {type(x).__name__}")
        elif tag == "object":
            row[Leaf.KIND] = Leaf.CLASS
        elif tag == "function" and type(x) is FunctionType:
            row[Leaf.KIND] = Leaf.FUNCTION
            row[Leaf.VALUE], row[Leaf.OTHER] = entry.pointer(x.__code__), entry.pointer(x.__globals__)
        else:
            raise Refused(f"arguments known as {tag}")
        if slot >= 0 and tag != "array":
            wanted = dict(self.interface.scalars).get(slot)
            if tag not in ("scalar", *_PYTHON_DTYPES) or wanted not in (None, dtypes.short_name(dtype_of(key))):
                raise Refused("a number that is passed in another form")
        return row

    def _array_leaf(self, row: list[int], x: np.ndarray, key: Key, shaped: bool) -> None:
        entry = self.entry
        _, dtype, layout, _, writeable = key
        if x.dtype != dtype or not isinstance(layout, Layout):
            raise Refused("an array that changed")
        row[Leaf.KIND] = Leaf.ARRAY
        row[Leaf.DESCR] = entry.pointer(x.dtype)
        row[Leaf.TYPE_NUM], row[Leaf.BYTEORDER] = x.dtype.num, ord(x.dtype.byteorder)
        row[Leaf.NDIM], row[Leaf.BYTES] = x.ndim, x.itemsize
        row[Leaf.MASK] = _C | _ALIGNED | _WRITEABLE
        is_c = bool(x.flags.c_contiguous)
        row[Leaf.FLAGS] = is_c * _C | (not layout.unaligned) * _ALIGNED | bool(writeable) * _WRITEABLE
        row[Leaf.ONES] = sum(1 << k for k, d in enumerate(x.shape) if d == 1)
        if x.ndim >= 63:
            raise Refused("an array of very many axes")
        if not is_c:
            rows = strided_rows(layout, x.shape)
            row[Leaf.STRIDES], row[Leaf.STRIDED] = entry.records(rows), len(rows)
        if shaped:
            row[Leaf.DIMS] = entry.array(x.shape)

    def _aliases(self) -> None:
        """Which arrays are the same object, as in the key."""
        entry = self.entry
        arrays = [k for k, key in enumerate(self.keys) if key[0] == "array"]
        position = {k: j for j, k in enumerate(arrays)}
        row: list[int] = []
        for k in arrays:
            first = self.aliases[k] if self.aliases else k
            row += [self.leaf_items[k], position[first]]
        entry.words[Entry.ALIASED], entry.words[Entry.ALIAS_AT] = len(arrays), entry.array(row)

    def _arrays(self, leaves: Sequence[Sequence[int]]) -> None:
        rows = [
            [leaf[Leaf.SLOT], leaf[Leaf.NDIM], leaf[Leaf.BYTES], int(leaf[Leaf.SLOT] in self.trace.writes)]
            for leaf in leaves
            if leaf[Leaf.KIND] == Leaf.ARRAY and leaf[Leaf.SLOT] >= 0
        ]
        words = self.entry.words
        words[Entry.ARRAYS], words[Entry.ARRAY_AT] = len(rows), self.entry.records(rows)
        words[Entry.WRITES] = int(any(row[Array.WRITTEN] for row in rows))

    # --- what the trace read from outside

    def _add_place(self, kind: int, owner: int = 0, pointer: int = 0, name: int = 0) -> int:
        self.places.append([kind, owner, pointer, name])
        return len(self.places) - 1

    def _item_place(self, item: int) -> int:
        if item not in self.item_places:
            self.item_places[item] = self._add_place(Place.ITEM, item)
        return self.item_places[item]

    def _place(self, place: hidden.Place) -> int:
        """The number of a place; the places that it is read through come before it."""
        known = self.place_numbers.get(id(place))
        if known is None:
            known = self.place_numbers[id(place)] = self._new_place(place)
        return known

    def _state_word(self, place: hidden.Place) -> int:
        """Which word of the state is what stands at a place: an item, if the arguments' containers expand to it."""
        root: Any = place
        while isinstance(root, hidden.Attribute | hidden.Item | Child):
            root = root.owner
        item = self.object_items.get(id(place.get(self.call))) if isinstance(root, hidden.Argument) else None
        return State.PLACES + self._place(place) if item is None else State.ITEMS + item

    def _new_place(self, place: hidden.Place) -> int:
        entry = self.entry
        if isinstance(place, hidden.Argument):
            args, kwargs = self.call
            if isinstance(place.key, int):
                return self._item_place(place.key)
            if place.key not in kwargs:
                raise Refused("an argument that is not there")
            return self._item_place(len(args) + list(kwargs).index(place.key))
        if isinstance(place, hidden.Global) and type(place.namespace) is dict:
            return self._add_place(Place.GLOBAL, 0, entry.pointer(place.namespace), entry.pointer(place.name))
        if isinstance(place, hidden.Cell):
            return self._add_place(Place.CELL, 0, entry.pointer(place.cell))
        if isinstance(place, hidden.CellOf):
            return self._add_place(Place.CELL_OF, self._place(place.function), 0, place.number)
        if isinstance(place, hidden.Fixed):
            return self._add_place(Place.FIXED, 0, entry.pointer(place.value))
        if isinstance(place, hidden.Attribute):
            return self._add_place(Place.ATTRIBUTE, self._place(place.owner), entry.pointer(place.name))
        if isinstance(place, hidden.Item):
            return self._add_place(Place.SUBSCRIPT, self._place(place.owner), entry.pointer(place.key))
        if isinstance(place, hidden.Contents):
            return self._place(place.container)
        raise Refused(f"places of class {type(place).__name__}")

    def _guards(self) -> list[list[int]]:
        rows = []
        for k, value in self.trace.leaf_values.items():
            if isinstance(value, np.ndarray):
                raise Refused("an array whose value is known")
            rows.append(self._same(self._item_place(self.leaf_items[k]), value))
        for k, where in self.trace.also_arguments:
            rows.append([Guard.SAME, self._item_place(self.leaf_items[k]), 0, 0, self._place(where)])
        for guard in self.trace.guards_python:
            if not isinstance(guard, hidden.TypeGuard):  # leaves without a slot
                rows.append(self._guard(guard))
        return rows

    def _same(self, place: int, value: Any) -> list[int]:
        """See `hidden.is_same`."""
        pointer = self.entry.pointer(value)
        if isinstance(value, float | complex | np.inexact):
            exact = type(value) in (float, complex) or isinstance(value, np.inexact)
            size = np.asarray(value).nbytes
            return [Guard.BITS if exact and size <= 16 else Guard.IS, place, pointer, 0, size]
        return [Guard.EQUAL, place, pointer, 0, 0]

    def _guard(self, g: hidden.Guard) -> list[int]:
        entry = self.entry
        if isinstance(g, hidden.MemberGuard):
            member = 0 if g.value is MISSING else entry.pointer(g.value)
            return [Guard.MEMBER, 0, entry.pointer(g.owner), entry.pointer(g.name), member]
        if isinstance(g, hidden.DistinctGuard):
            numbers = [self._state_word(p) for p in g.places]
            return [Guard.DISTINCT, 0, entry.array(numbers), 0, len(numbers)]
        if isinstance(g, hidden.SetGuard):
            raise Refused("a set that was read")
        place = self._place(g.place)
        if isinstance(g, hidden.ValueGuard):
            return self._same(place, g.value) if g.by_value else [Guard.IS, place, entry.pointer(g.value), 0, 0]
        if isinstance(g, hidden.SameGuard):
            return [Guard.SAME, place, 0, 0, self._place(g.other)]
        if isinstance(g, hidden.ClassGuard):
            return [Guard.CLASS, place, entry.pointer(g.kind), 0, 0]
        if isinstance(g, hidden.MissingGuard):
            return [Guard.MISSING, place, 0, 0, 0]
        if isinstance(g, hidden.NotShadowedGuard):
            return [Guard.NOT_SHADOWED, place, entry.pointer(g.name), 0, 0]
        if isinstance(g, hidden.CodeGuard):
            return [Guard.CODE, place, entry.pointer(g.code), entry.pointer(g.namespace), 0]
        if isinstance(g, hidden.StructureGuard):
            kind = entry.pointer(g.kind)
            if isinstance(g.keys, int):
                return [Guard.LENGTH, place, kind, 0, g.keys]
            if g.kind is dict:
                return [Guard.KEYS, place, kind, entry.objects(g.keys), len(g.keys)]
        raise Refused(f"guards of class {type(g).__name__}")

    # --- results

    def _results(self, arguments: Sequence[int]) -> None:
        entry, executable = self.entry, self.specialisation.compiled.executable
        rows = [self._out(r, executable.recipe_address(k)) for k, r in enumerate(self.interface.results)]
        words = entry.words
        words[Entry.RESULTS], words[Entry.RESULT_AT] = len(rows), entry.records(rows)
        words[Entry.SCALARS] = sum(row[Out.KIND] != Out.ARRAY for row in rows)
        entry.keep.append(executable)
        steps = self._template(arguments)
        if self.specialisation.is_single and self.interface.results[0].sized:
            words[Entry.ANSWER] = Answer.SINGLE
        elif steps is not None:
            words[Entry.ANSWER] = Answer.TEMPLATE
            words[Entry.NUMBERS], words[Entry.NUMBER_AT] = len(self.number_steps), entry.records(self.number_steps)
            words[Entry.TEMPLATE], words[Entry.TEMPLATE_AT] = len(steps), entry.records(steps)
        else:
            words[Entry.ANSWER] = Answer.FINISH
            words[Entry.FINISH] = entry.pointer(self.specialisation.finish)

    def _out(self, r: ResultSlot, recipe: int) -> list[int]:
        dtype = dtypes.from_short_name(r.dtype)
        row = [0] * Out.WORDS
        row[Out.KIND] = {
            "array": Out.ARRAY, "np_scalar": Out.NP_SCALAR, "py_float": Out.FLOAT, "py_int": Out.INT,
            "py_bool": Out.BOOL, "py_complex": Out.COMPLEX, "maybe_np_float": Out.MAYBE_NP_FLOAT,
        }[r.kind]  # fmt: skip
        row[Out.DESCR], row[Out.BYTES] = self.entry.pointer(dtype), dtype.itemsize
        row[Out.NDIM], row[Out.RECIPE] = len(r.order), recipe
        row[Out.SIZED] = int(r.kind == "array" and r.sized)
        if r.order != tuple(range(len(r.order))):
            if r.order == tuple(reversed(range(len(r.order)))):
                row[Out.FORTRAN] = 1
            else:
                row[Out.ORDER] = self.entry.array(r.order)
        return row

    def _template(self, arguments: Sequence[int]) -> list[list[int]] | None:
        """Instructions that put the result together; None where Python has to."""
        if self.trace.replays:
            return None
        steps: list[list[int]] = []
        results = iter(self.graph.results)

        def put(tree: TreeDef) -> bool:
            kind = tree.kind
            if kind is None:
                step = self._result_step(next(results), arguments)
                if step is not None:
                    steps.append(step)
                return step is not None
            if kind is type(None):
                steps.append([Step.OBJECT, self.entry.pointer(None), 0])
                return True
            if kind not in (tuple, list, dict) or not all(put(child) for child in tree.children):
                return False
            how = {tuple: Step.TUPLE, list: Step.LIST, dict: Step.DICT}[kind]
            keys = self.entry.objects(list(tree.meta)) if kind is dict else 0  # type: ignore[call-overload]
            steps.append([how, len(tree.children), keys])
            return True

        return steps if put(self.trace.out_tree) else None

    def _result_step(self, r: Result, arguments: Sequence[int]) -> list[int] | None:
        if r.tensor or r.read_only:
            return None
        if r.how == "fresh":
            slot = self.interface.results[r.index]
            return [Step.MADE, r.index, 0] if slot.kind != "array" or slot.sized else None
        if r.how == "argument":
            return [Step.ITEM, arguments[r.index], 0]
        if r.how == "static":
            return None if type(r.value) is Live else [Step.OBJECT, self.entry.pointer(r.value), 0]
        if r.how == "dim":
            if not isinstance(r.dim, Dim):
                return [Step.OBJECT, self.entry.pointer(operator.index(r.dim)), 0]
            first = self._numbers([r.dim])
            return None if first is None else [Step.NUMBER, first, 0]
        if r.how in ("view_of_argument", "view_of_result"):
            return self._view_step(r, arguments)
        return None

    def _view_step(self, r: Result, arguments: Sequence[int]) -> list[int] | None:
        """The step for a view of an argument or of a fresh result."""
        made, index = 0, r.index
        if r.how == "view_of_result":
            base = self.graph.results[r.index]
            if base.how == "argument":
                index = base.index
            elif base.how == "fresh" and not base.read_only and not base.tensor:
                made, index = 1, base.index
            else:
                return None
        if made:
            slot = self.interface.results[index]
            if slot.kind != "array" or not slot.sized:
                return None
            ndim, size = len(slot.order), dtypes.from_short_name(slot.dtype).itemsize
            dense = slot.order == tuple(range(ndim))
        else:
            index = arguments[index]
            row = self.array_rows.get(index)
            if row is None or row[Leaf.TYPE] != id(np.ndarray):
                return None
            ndim, size, dense = row[Leaf.NDIM], row[Leaf.BYTES], row[Leaf.STRIDES] == 0
        if not r.steps:  # the array itself
            return [Step.MADE if made else Step.ITEM, index, 0]
        rows = []
        for step in r.steps:
            found = self._view_row(step, ndim, dense)
            if found is None:
                return None
            dense = not isinstance(step, IndexMap)
            ndim = found[ViewStep.NDIM]
            rows.append(found)
        return [Step.VIEW, self.entry.array([made, index, len(rows), self.entry.records(rows), size]), 0]

    def _view_row(self, step: Any, ndim: int, dense: bool) -> list[int] | None:
        """A step of a view of an array of `ndim` axes; None if only NumPy can take it."""
        if isinstance(step, IndexMap):
            shape, axes = step.shape, step.axes
            if len(axes) != ndim or not axes:
                return None
            first = self._numbers([*shape, *(m.offset for m in axes), *(m.step for m in axes)])
            if first is None:
                return None
            at = first + len(shape)
            table = [(at + k, at + len(axes) + k, -1 if m.axis is None else m.axis) for k, m in enumerate(axes)]
            return [len(shape), first, len(axes), self.entry.records(table)]
        if not isinstance(step, tuple) or not dense:
            return None
        first = self._numbers(step)
        return None if first is None else [len(step), first, 0, 0]

    def _numbers(self, dims: Sequence[DimLike]) -> int | None:
        """Have native code compute these sizes; the number of the first, those of the others follow."""
        first = self.numbers
        for d in dims:
            if not self._evaluate(d):
                return None
            self.number_steps.append([Number.KEEP, self.numbers, 0])
            self.numbers += 1
        if self.numbers > records.MAX_NUMBERS:
            raise Refused("too many views")
        return first

    def _evaluate(self, d: DimLike) -> bool:
        """Instructions that leave `d` on the stack; False if a symbol is not known."""
        steps = self.number_steps
        if not isinstance(d, Dim):
            steps.append([Number.CONSTANT, operator.index(d), 0])
            return True
        for k, (atoms, factor) in enumerate(d.terms):
            steps.append([Number.CONSTANT, factor, 0])
            for atom in atoms:
                if not self._atom(atom):
                    return False
                steps.append([Number.MUL, 0, 0])
            if k:
                steps.append([Number.ADD, 0, 0])
        return True

    def _atom(self, atom: Atom) -> bool:
        steps = self.number_steps
        if atom.op == "sym":
            known = self.graph.symbols.get(atom.name)
            if known is not None and known.origin == "arg":
                how, axis = (Number.SIZE, known.axis) if known.axis >= 0 else (Number.STRIDE, -1 - known.axis)
                steps.append([how, known.arg, axis])
                return True
            if atom.name in self.specialisation.exported:
                steps.append([Number.RESULT, self.specialisation.exported[atom.name], 0])
                return True
            return False
        if not all(self._evaluate(x) for x in atom.args if not isinstance(x, str)):
            return False
        if atom.op == "ne1":
            steps.append([Number.NOT_ONE, 0, 0])
        else:
            how = {"floordiv": Number.FLOORDIV, "mod": Number.MOD, "min": Number.MIN, "max": Number.MAX}[atom.op]
            steps += [[how, 0, 0]] * (len(atom.args) - 1)
        return True


def _is_exact(x: Any) -> bool:
    """Whether a static value is the same as each of its class that is equal to it: no zero, no tuple of numbers."""
    if type(x) is tuple:
        return all(type(i) in (str, bytes) or (type(i) is tuple and _is_exact(i)) for i in x)
    if type(x) is complex:
        return bool(x.real and x.imag)
    return type(x) in _COMPARED or (type(x) is float and bool(x))


def dtype_of(key: Key) -> np.dtype:
    """The dtype of a number."""
    name = _PYTHON_DTYPES.get(key[0])
    return key[1] if name is None else dtypes.from_short_name(name)


def strided_rows(layout: Layout, shape: Sequence[int]) -> list[list[int]]:
    """What the strides of an array of this layout are like, innermost axis first; `shape` says which sizes are 1."""
    rows: list[list[int]] = []
    inside: int | None = None
    for position in range(len(layout.order) - 1, -1, -1):
        axis = layout.order[position]
        if shape[axis] == 1:
            continue
        row = [0] * Strided.WORDS
        row[Strided.AXIS] = axis
        if axis in layout.zero:
            row[Strided.ZERO] = 1
        else:
            row[Strided.NEGATIVE] = int(axis in layout.negative)
            row[Strided.BREAK] = int(position in layout.breaks)
            row[Strided.LAST] = int(position == len(layout.order) - len(layout.zero) - 1)
            # of two axes with strides of one size the one in front is the outer one
            row[Strided.TIE] = int(inside is not None and axis < inside)
            inside = axis
        rows.append(row)
    return rows
