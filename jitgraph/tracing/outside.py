"""What a trace reads and stores outside of itself: hidden arguments, guards, and effects to replay.

Arrays become hidden arguments, read again at each call. Python numbers in globals and cells are baked in under a guard;
floats in attributes and containers are hidden arguments. Containers come as copies with the same rules for their items,
so that C code that walks them meets traced values too; what was changed in a copy is replayed on the live container.
Objects are known by class and place, functions by code and place: their attributes and cells are looked up one by one.
Arguments are a place like others: the containers and objects among them are treated alike.
"""

from __future__ import annotations

import array
import os
from collections import deque
from collections.abc import Callable, Container, Iterable
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitgraph import pytree
from jitgraph.errors import TraceError, describe
from jitgraph.ir.graph import Value
from jitgraph.pytree import TreeDef
from jitgraph.tensor import Storage, Tensor, wrap
from jitgraph.tracing.capture_mode import CaptureMode
from jitgraph.tracing.container_copies import (
    CONTAINERS,
    MAPPINGS,
    SETS,
    Whole,
    attributes_of,
    changes_of,
    copy_of,
    empty_like,
    has_state,
    is_node,
    new_object,
    stored_in,
)
from jitgraph.tracing.effects import Made
from jitgraph.tracing.environment import Environment
from jitgraph.tracing.hidden import (
    BY_VALUE,
    MISSING,
    Attribute,
    Cell,
    CellOf,
    ClassGuard,
    CodeGuard,
    DistinctGuard,
    Fixed,
    Global,
    Guard,
    HiddenArg,
    Item,
    Live,
    MemberGuard,
    MissingGuard,
    NotShadowedGuard,
    Place,
    SameGuard,
    SetGuard,
    StructureGuard,
    ValueGuard,
    member_of,
)
from jitgraph.tracing.iteration import Range, Ranged
from jitgraph.tracing.kinds import Boxed, tag_of
from jitgraph.tracing.leaves import is_container_class, is_plain_class, leaf_type
from jitgraph.tracing.made_containers import filled
from jitgraph.tracing.poison import Poison
from jitgraph.tracing.reads import Reads
from jitgraph.tracing.restart import Restart
from jitgraph.tracing.static_arrays import StaticArrays

_ATOMS = (ModuleType, BuiltinFunctionType, type)
_OPAQUE_STATE = frozenset((bytearray, memoryview, array.array))


class Outside:
    """The world outside of one trace.

    Args:
        make_argument: a new graph argument for the array or number: (value, readable name) to its Tensor.
        lifted: paths of Python numbers that are hidden arguments because the function stores them.
        fixed: paths of numbers that are guarded because Python needs their values.
    """

    def __init__(
        self, mode: CaptureMode, make_argument: Callable[[Any, str], Tensor], lifted: set[str], fixed: set[str]
    ) -> None:
        self.mode = mode
        self.make_argument = make_argument
        self.lifted, self.fixed = lifted, fixed
        self.reads = Reads()
        self.hidden: list[HiddenArg] = []
        #: (leaf, place): arrays that are an argument and were found outside as well.
        self.also_arguments: list[tuple[int, Place]] = []
        self.guards: list[Guard] = []
        #: id of an array to (array, its Tensor, where it was found first).
        self.arrays: dict[int, tuple[Any, Tensor, Place | None]] = {}
        #: id of an array's Tensor to (the Tensor, its place).
        self._array_places: dict[int, tuple[Tensor, Place]] = {}
        #: id of an object from outside to (object, its place).
        self.objects: dict[int, tuple[Any, Place]] = {}
        #: Objects guarded by class only: class to ids.
        self._by_class: dict[Any, list[int]] = {}
        #: id of a container from outside to (container, copy, what the copy held at first, place).
        self.copies: dict[int, tuple[Any, Any, Any, Place]] = {}
        #: id of a copy to the place of what it stands for.
        self.copied: dict[int, Place] = {}
        #: (id of an owner, attribute) to [current value, value that was read, place].
        self.attributes: dict[tuple[int, str], list[Any]] = {}
        self._owners: list[Any] = []
        #: Classes that the function itself makes, by identity.
        self.made_classes: dict[int, type] = {}
        #: Names of attributes that were stored on classes: their instances see them.
        self.stored_on_classes: set[str] = set()
        self._paths: dict[Value, str] = {}
        self._guarded: dict[str, Any] = {}
        self._wholes: dict[int, Any] = {}
        self.static: StaticArrays = StaticArrays(self)
        #: id of an object from outside to what code that is not traced sees of it.
        self.clones: dict[int, Any] = {}
        self._members: set[tuple[type, str]] = set()

    # --- reading

    def read_global(self, namespace: dict[str, Any], name: str) -> Any:
        return self.lift(Global(namespace, name), namespace[name])

    def read_cell(self, place: Place, value: Any) -> Any:
        return self.lift(place, value)

    def cell_place(self, f: FunctionType, number: int, cell: CellType, name: str) -> Place:
        """Where a closure cell of a function is found: with the function, if that has a place."""
        known = self.objects.get(id(f))
        return Cell(cell, name) if known is None else CellOf(known[1], number, name)

    def lift_default(self, f: FunctionType, key: int | str, value: Any) -> Any:
        """A default of a parameter, by number or name."""
        if type(value) is Tensor and value.is_traced:
            return value
        known = self.objects.get(id(f))
        if known is None:
            if isinstance(value, np.ndarray) or type(value) in CONTAINERS:
                return self.lift(Fixed(value, f"{f.__name__}.default{key}"), value)
            return value
        owner = Attribute(known[1], "__defaults__" if isinstance(key, int) else "__kwdefaults__")
        return self.lift(Item(owner, key), value)

    def argument_object(self, place: Place, value: Any) -> None:
        """A static argument whose attributes may be read."""
        if isinstance(value, MethodType):
            self.argument_object(Attribute(place, "__self__"), value.__self__)
        elif value is not None and not isinstance(value, (*_ATOMS, *BY_VALUE)):
            known = self.objects.setdefault(id(value), (value, place))
            if known[1] is not place:
                self.guard(SameGuard(place, known[1]))
            else:
                self._different(value)

    def _different(self, value: Any) -> None:
        """Objects of one class at different places stay different objects."""
        self._by_class.setdefault(type(value), []).append(id(value))

    def distinct_guards(self) -> list[Guard]:
        """Guards that what was found as different objects is so at each call: a change of one is none of the other."""
        classes: dict[type, dict[int, Place]] = {}
        for kind, ids in self._by_class.items():
            classes[kind] = {i: self.objects[i][1] for i in ids}
        for i, (live, _, _, place) in self.copies.items():
            if not isinstance(live, tuple | frozenset):
                classes.setdefault(type(live), {}).setdefault(i, place)
        found: list[Guard] = []
        for places in classes.values():
            if len(places) > 1 and not all(isinstance(p, Fixed) for p in places.values()):
                found.append(DistinctGuard(tuple(places.values())))
        return found

    def keep_apart(self, a: Any, b: Any) -> None:
        """What Python found to be two objects by `is` is so at each call (of one class: others never are one)."""
        places = self._place_of(a), self._place_of(b)
        if type(a) is type(b) and None not in places and not all(isinstance(p, Fixed) for p in places):
            self.guard(DistinctGuard(places))  # type: ignore[arg-type]

    def keep_arrays_apart(self, storages: Container[Storage]) -> None:
        """Arrays from outside in these storages are different objects at each call: their numbers were compared."""
        alike: dict[Any, list[tuple[Tensor, Place]]] = {}
        for tensor, place in self._array_places.values():
            if tensor._storage in storages:
                alike.setdefault((tensor.type.dtype, tensor.type.ndim), []).append((tensor, place))
        for found in alike.values():
            places = [place for _, place in found if not isinstance(place, Fixed)]
            given = all(
                tensor._storage.origin in self.mode.leaf_of for tensor, _ in found
            )  # as the key of the call says
            if len(found) > 1 and places and not given:
                self.guard(DistinctGuard(tuple([place for _, place in found])))

    def _place_of(self, x: Any) -> Place | None:
        """Where something that the function got from outside was found."""
        if id(x) in self.copied:
            return self.copied[id(x)]
        known = self.objects.get(id(x)) or self._array_places.get(id(x))
        return None if known is None else known[1]

    def argument_array(self, place: Place, tensor: Tensor) -> None:
        """An array among the arguments; the first place counts: the key of a call says which arrays are one."""
        self._array_places.setdefault(id(tensor), (tensor, place))

    def lift(self, place: Place, value: Any) -> Any:
        """A value found at `place`, as the trace sees it."""
        kind = type(value)
        if kind is np.ndarray or isinstance(value, np.ndarray) or kind is Tensor:
            return self._array(place, value)
        if kind in CONTAINERS or is_container_class(kind):
            return self._container(place, value)
        if kind in _OPAQUE_STATE:
            return self.refused(
                place, f"is a {kind.__name__}, whose content each call may find changed", "pass a list or an array."
            )
        path = place.text
        is_number = kind is int or kind is float or (isinstance(value, np.number | np.bool_))
        if is_number and (
            path in self.lifted or (self._is_inner(place) and kind is not int and path not in self.fixed)
        ):
            return self._number(place, value)
        if isinstance(value, BY_VALUE) or value is None:
            self.guard(ValueGuard(place, value, by_value=True))
            self._guarded[path] = value
            return value
        return self._object(place, value)

    def _object(self, place: Place, value: Any) -> Any:
        known = self.objects.get(id(value))
        if known is not None:
            if known[1].text != place.text or type(known[1]) is not type(place):
                self.guard(SameGuard(place, known[1]))
            return value
        kind = type(value)
        if hasattr(kind, "__next__") and not is_plain_class(kind):
            return self.iterator(place)
        if value is os.environ:
            return Environment(self)
        if kind is BuiltinFunctionType and type(value.__self__) in CONTAINERS:
            self.guard(ValueGuard(place, value))
            return getattr(self.lift(Fixed(value.__self__, f"{place.text}.__self__"), value.__self__), value.__name__)
        if kind is FunctionType:
            self.guard(CodeGuard(place, value.__code__, value.__globals__))
        elif is_plain_class(kind):
            self.guard(ClassGuard(place, kind))
        else:
            self.guard(ValueGuard(place, value))
            if isinstance(value, BuiltinFunctionType | type | ModuleType):
                return value
        if kind is MethodType:
            self.objects.setdefault(id(value.__self__), (value.__self__, Attribute(place, "__self__")))
            return value
        self.objects[id(value)] = (value, place)
        self._different(value)
        return value

    def iterator(self, place: Place) -> Poison:
        """An iterator from outside: taking from it once, while tracing, would be wrong."""
        return self.refused(
            place,
            "is an iterator from outside, from which each call would take further elements",
            "take the elements before the call and pass them, or pass a list.",
        )

    def refused(self, place: Place, why: str, remedy: str) -> Poison:
        """A value that may be passed on but not used."""
        mode = self.mode
        text = f"{place.text} {why}"
        return Poison(lambda: TraceError(describe(text, mode.locate(), remedy=remedy)))

    @staticmethod
    def _is_inner(place: Place) -> bool:
        """An attribute or item, rather than a variable."""
        return isinstance(place, Attribute | Item)

    def guard(self, guard: Guard) -> None:
        self.guards.append(guard)

    def _array(self, place: Place, value: Any) -> Tensor:
        known = self.arrays.get(id(value))
        if known is not None:
            if known[2] is not None:
                self.guard(SameGuard(place, known[2]))
            else:
                leaf = self.mode.leaf_of.get(known[1]._storage.origin if known[1]._storage.origin is not None else -1)
                if leaf is not None:  # it is an argument too
                    self.also_arguments.append((leaf, place))
                else:
                    self.guard(ValueGuard(place, value))
            return known[1]
        return self.hide(place, value)

    def _number(self, place: Place, value: Any) -> Tensor:
        tensor = self.hide(place, value)
        self._paths[tensor._storage.value] = place.text
        return tensor

    def hide(self, place: Place, value: Any) -> Tensor:
        tensor = self.make_argument(value, place.text)
        self.hidden.append(HiddenArg(place, leaf_type(value), tensor._storage.value.index))
        if not isinstance(value, int | float | np.generic):
            self.arrays[id(value)] = (value, tensor, place)
            self._array_places[id(tensor)] = (tensor, place)
        return tensor

    def number_path(self, value: Value) -> str:
        """The path of the hidden number that `value` is; "" if it is none."""
        return self._paths.get(value, "")

    def _container(self, place: Place, value: Any) -> Any:
        known = self.copies.get(id(value))
        if known is not None:
            self.guard(SameGuard(place, known[3]))
            return known[1]
        kind = type(value)
        if kind not in CONTAINERS:
            return self._own_container(place, value)
        if kind in SETS:
            self.guard(SetGuard(place, kind(value)))
            copy: Any = value if kind is frozenset else value.copy()
            self._remember(value, copy, place)
            return copy
        self.guard(StructureGuard(place, kind, tuple(value) if kind in MAPPINGS else len(value)))
        if kind is tuple:
            copy = tuple([self.lift(Item(place, k), v) for k, v in enumerate(value)])
            self._remember(value, copy, place)
            return copy
        copy = empty_like(value)
        self._remember(value, copy, place)  # before its items: containers may hold themselves
        if kind in MAPPINGS:
            for k, v in value.items():
                copy[k] = self.lift(Item(place, k), v)
        else:
            copy.extend([self.lift(Item(place, k), v) for k, v in enumerate(value)])
        self._remember(value, copy, place)
        return copy

    def _own_container(self, place: Place, value: Any) -> Any:
        """A list, dict or set of a class of its own, with attributes perhaps."""
        kind = type(value)
        base: Any = next(b for b in (dict, list, set, deque) if issubclass(kind, b))
        copy = new_object(kind)
        self._remember(value, copy, place)
        if base is set:
            self.guard(SetGuard(place, value.copy()))
            base.update(copy, value)
        elif base is dict:
            self.guard(StructureGuard(place, kind, tuple(value)))
            for k, v in dict.items(value):
                dict.__setitem__(copy, k, self.lift(Item(place, k), v))
        else:
            self.guard(StructureGuard(place, kind, len(value)))
            base.extend(copy, [self.lift(Item(place, k), v) for k, v in enumerate(base.__iter__(value))])
        for name, x in attributes_of(value).items():
            object.__setattr__(copy, name, self.lift(Attribute(place, name), x))
        self._remember(value, copy, place)
        return copy

    def clone_of(self, x: Any) -> Any:
        """An object from outside as one of the trace, with lifted attributes: what code that is not traced may see."""
        known = self.objects.get(id(x))
        if known is None:
            return x
        found = self.clones.get(id(x))
        if found is None:
            kind = type(x)
            found = new_object(kind)
            self.clones[id(x)] = found
            if hasattr(x, "__dict__"):
                self.guard(StructureGuard(Attribute(known[1], "__dict__"), dict, tuple(vars(x))))
            for name, value in attributes_of(x).items():
                now = self.overlay(x, name)
                object.__setattr__(found, name, self.read_attribute(x, name, value) if now is MISSING else now)
            self._remember(x, found, known[1])
        return found

    def _remember(self, live: Any, copy: Any, place: Place) -> None:
        before = None if type(live) in (tuple, frozenset) else copy_of(copy)
        self.copies[id(live)] = (live, copy, before, place)
        self._owners.append(copy)
        self.copied[id(copy)] = place

    def adopt_argument(self, place: Place, live: Any, made: Any) -> None:
        """A container or object among the arguments, whose copy `made` the function gets."""
        known = self.copies.get(id(live))
        if known is None:
            self._remember(live, made, place)
        else:
            self.guard(SameGuard(place, known[3]))

    # --- attributes

    def knows(self, owner: Any) -> bool:
        return id(owner) in self.objects

    def overlay(self, owner: Any, name: str) -> Any:
        """The value of an attribute that was read or stored before; MISSING if it was not."""
        slot = self.attributes.get((id(owner), name))
        return MISSING if slot is None else slot[0]

    def class_overlay(self, kind: type, name: str) -> Any:
        """What was stored on the first class of the resolution order that has the attribute; MISSING if nothing was."""
        for base in kind.__mro__:
            value = self.overlay(base, name)
            if value is not MISSING or name in vars(base):
                return value
        return MISSING

    def read_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """`owner.name`, which is `value` now; lifted if the owner is from outside."""
        if type(value) is Tensor and value.is_traced:
            return value
        known = self.objects.get(id(owner))
        if known is None:
            if isinstance(owner, ModuleType | type) and id(owner) not in self.made_classes:
                known = (owner, Fixed(owner, owner.__name__))
                self.objects[id(owner)] = known
            else:
                return value
        place = Attribute(known[1], name)
        lifted = self.lift(place, value)
        self.attributes[(id(owner), name)] = [lifted, lifted, place]
        self._owners.append(owner)
        return lifted

    def guard_member(self, owner: type, name: str) -> None:
        """A method or other member of a class stays the one it is."""
        if (owner, name) not in self._members:
            self._members.add((owner, name))
            self.guard(MemberGuard(owner, name, member_of(owner, name)))

    def guard_unshadowed(self, owner: Any, name: str) -> None:
        """An object from outside has no attribute of its own of this name."""
        known = self.objects.get(id(owner))
        if known is not None and hasattr(owner, "__dict__"):
            self.guard(NotShadowedGuard(known[1], name))

    def guard_no_global(self, namespace: dict[str, Any], name: str) -> None:
        """A module has no global of this name."""
        self.guard(MissingGuard(Global(namespace, name)))

    def guard_missing(self, owner: Any, name: str) -> None:
        """An object from outside has no attribute of this name."""
        known = self.objects.get(id(owner))
        if known is not None:
            self.guard(MissingGuard(Attribute(known[1], name)))
        elif isinstance(owner, type | ModuleType):
            self.guard(MissingGuard(Attribute(Fixed(owner, owner.__name__), name)))

    def pin(self, x: Any) -> None:
        """The object itself is looked at (hashed, numbered): each call must pass the same one."""
        known = self.objects.get(id(x))
        if known is None:
            return
        if not isinstance(known[1], Fixed):
            self.guard(ValueGuard(known[1], x))
        if member_of(type(x), "__hash__") is not object.__hash__:
            for name, value in attributes_of(x).items():
                if isinstance(value, BY_VALUE):
                    self.guard(ValueGuard(Attribute(known[1], name), value, by_value=True))

    def store_attribute(self, owner: Any, name: str, value: Any) -> bool:
        """Record `owner.name = value` for replay; False if the owner was made in the trace."""
        known = self.objects.get(id(owner))
        if known is None:
            if not isinstance(owner, type | ModuleType) or id(owner) in self.made_classes:
                return False
            known = self.objects[id(owner)] = (owner, Fixed(owner, owner.__name__))
        if isinstance(owner, type):
            self.stored_on_classes.add(name)
        slot = self.attributes.get((id(owner), name))
        if slot is None:
            slot = [None, MISSING, Attribute(known[1], name)]
            self.attributes[(id(owner), name)] = slot
            self._owners.append(owner)
        self.lift_if_stored(slot[2].text)
        slot[0] = value
        return True

    def lift_if_stored(self, path: str) -> None:
        """A number that is stored must not be guarded: every call would find another one.

        Raises:
            Restart: it was guarded.
        """
        value = self._guarded.get(path)
        if (type(value) is int or type(value) is float or isinstance(value, np.number)) and path not in self.lifted:
            raise Restart(lift=path)

    # --- what was changed

    def changes(self) -> Iterable[tuple[Place, Any]]:
        """Attributes and container items that differ from what is outside: (place, value); MISSING means deleted."""
        for now, before, place in self.attributes.values():
            if now is not before:
                yield place, now
        for live, copy, before, place in list(self.copies.values()):
            if before is not None:
                yield from changes_of(live, copy, before, place)

    def state(self) -> dict[Any, Any]:
        """All that was stored so far: place to value; a region compares it."""
        found: dict[Any, Any] = {key: now for key, (now, before, _) in self.attributes.items() if now is not before}
        for live, copy, before, _ in self.copies.values():
            if before is not None:
                found.update(stored_in(live, copy, before))
        return found

    # --- results

    def flatten(self, x: Any) -> tuple[list[Any], TreeDef]:
        """Leaves and structure of a result; what stands for an object or container from outside is a `Live` leaf."""
        return pytree.flatten(x, self._live)

    def _live(self, x: Any) -> Any:
        tag = tag_of(self.mode, x)
        if tag is not None:
            return Boxed(x, wrap(self.mode, tag.flag), tag.yes, tag.no)
        if type(x) is Range:
            return Ranged(x)
        if self.mode.hashes and isinstance(x, dict | set | frozenset):
            if isinstance(x, frozenset):
                return self.mode.known_key(x)
            self.mode.know_keys(x)
        if type(x) is Made:
            return Live(x.place)
        own = isinstance(x, dict | list | tuple | set | deque) and type(x) not in CONTAINERS
        if own and id(x) not in self.copied and id(x) not in self.objects:
            return filled(x, attributes_of(x))
        place = self.copied.get(id(x))
        if place is None:
            known = self.objects.get(id(x))
            if known is None and is_plain_class(type(x)) and not has_state(x) and not is_node(x):
                return self._whole(x)
            if known is None or isinstance(x, type | ModuleType):
                return None
            place = known[1]
        return None if isinstance(place, Fixed) else Live(place)

    def _whole(self, x: Any) -> Whole:
        """An object that the trace made, as a node of its attributes: each call makes one."""
        if id(x) in self._wholes:
            self.mode.fail(
                f"a {type(x).__name__} that the function made is in its result, or in what it stores, twice",
                "return it once, or make its class a dataclass.",
            )
        self._wholes[id(x)] = x
        attributes = attributes_of(x)
        return Whole(type(x), tuple(attributes), list(attributes.values()))
