"""What a trace reads and stores outside of its arguments: hidden arguments, guards, and effects to replay.

Arrays become hidden arguments, read again at each call. Python numbers in globals and cells are baked in under a guard;
floats in attributes and containers are hidden arguments. Lists, tuples and dicts come as copies with the same rules for
their items, so that C code that walks them meets traced values too; what was changed in a copy is replayed on the live
container. Objects keep their identity under a guard, and their attributes are looked up one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.tensor import Tensor, wrap
from jitgraph.tracing.capture_mode import CaptureMode, Restart
from jitgraph.tracing.hidden import (
    BY_VALUE,
    MISSING,
    Attribute,
    Cell,
    Fixed,
    Global,
    Guard,
    HiddenArg,
    Item,
    Place,
    SameGuard,
    StructureGuard,
    ValueGuard,
)
from jitgraph.tracing.leaves import leaf_type

_ATOMS = (ModuleType, FunctionType, BuiltinFunctionType, MethodType, type)
_CONTAINERS = (list, tuple, dict)
#: Arrays made of static values while tracing are constants up to this many elements, else hidden arguments.
_CONSTANT_ELEMENTS = 256


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
        self.hidden: list[HiddenArg] = []
        #: (leaf, place): arrays that are an argument and were found outside as well.
        self.also_arguments: list[tuple[int, Place]] = []
        self.guards: list[Guard] = []
        #: id of an array to (array, its Tensor, where it was found first).
        self.arrays: dict[int, tuple[Any, Tensor, Place | None]] = {}
        #: id of an object from outside to (object, its place).
        self.objects: dict[int, tuple[Any, Place]] = {}
        #: id of a container from outside to (container, copy, snapshot of the copy's items, place).
        self.copies: dict[int, tuple[Any, Any, Any, Place]] = {}
        #: (id of an owner, attribute) to [current value, value that was read, place].
        self.attributes: dict[tuple[int, str], list[Any]] = {}
        self._owners: list[Any] = []
        self._paths: dict[Value, str] = {}
        self._guarded: dict[str, Any] = {}

    # --- reading

    def read_global(self, namespace: dict[str, Any], name: str) -> Any:
        return self.lift(Global(namespace, name), namespace[name])

    def read_cell(self, cell: CellType, name: str, value: Any) -> Any:
        return self.lift(Cell(cell, name), value)

    def lift_default(self, value: Any, name: str) -> Any:
        """A default of a parameter: static, except for arrays."""
        if type(value) is Tensor and value.is_traced:
            return value
        if isinstance(value, np.ndarray) or type(value) in (list, dict):
            return self.lift(Fixed(value, name), value)
        return value

    def argument_object(self, value: Any, name: str) -> None:
        """A static argument whose attributes may be read."""
        if not isinstance(value, (*_ATOMS, *BY_VALUE)) and value is not None:
            self.objects.setdefault(id(value), (value, Fixed(value, name)))

    def lift(self, place: Place, value: Any) -> Any:
        """A value found at `place`, as the trace sees it."""
        kind = type(value)
        if kind is np.ndarray or isinstance(value, np.ndarray) or kind is Tensor:
            return self._array(place, value)
        if kind in _CONTAINERS:
            return self._container(place, value)
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
        self.guard(ValueGuard(place, value))
        if not isinstance(value, (FunctionType, BuiltinFunctionType, MethodType)):
            self.objects.setdefault(id(value), (value, place))
        return value

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
                self.guard(ValueGuard(place, value))
                leaf = self.mode.leaf_of.get(known[1]._storage.origin if known[1]._storage.origin is not None else -1)
                if leaf is not None:  # it is an argument too
                    self.also_arguments.append((leaf, place))
            return known[1]
        return self._hide(place, value)

    def _number(self, place: Place, value: Any) -> Tensor:
        tensor = self._hide(place, value)
        self._paths[tensor._storage.value] = place.text
        return tensor

    def _hide(self, place: Place, value: Any) -> Tensor:
        tensor = self.make_argument(value, place.text)
        self.hidden.append(HiddenArg(place, leaf_type(value), tensor._storage.value.index))
        if not isinstance(value, int | float | np.generic):
            self.arrays[id(value)] = (value, tensor, place)
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
        self.guard(StructureGuard(place, kind, tuple(value) if kind is dict else len(value)))
        if kind is tuple:
            copy: Any = tuple([self.lift(Item(place, k), v) for k, v in enumerate(value)])
            self.copies[id(value)] = (value, copy, None, place)
            return copy
        copy = kind()
        self.copies[id(value)] = (value, copy, None, place)  # before its items: containers may hold themselves
        if kind is dict:
            copy.update({k: self.lift(Item(place, k), v) for k, v in value.items()})
        else:
            copy.extend([self.lift(Item(place, k), v) for k, v in enumerate(value)])
        self.copies[id(value)] = (value, copy, kind(copy), place)
        return copy

    # --- attributes

    def knows(self, owner: Any) -> bool:
        return id(owner) in self.objects

    def overlay(self, owner: Any, name: str) -> Any:
        """The value of an attribute that was read or stored before; None if it was not."""
        slot = self.attributes.get((id(owner), name))
        return None if slot is None else slot[0]

    def read_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """`owner.name`, which is `value` now; lifted if the owner is from outside."""
        known = self.objects.get(id(owner))
        if known is None:
            if isinstance(owner, ModuleType | type):
                known = (owner, Fixed(owner, owner.__name__))
                self.objects[id(owner)] = known
            else:
                return value
        place = Attribute(known[1], name)
        lifted = self.lift(place, value)
        self.attributes[(id(owner), name)] = [lifted, lifted, place]
        self._owners.append(owner)
        return lifted

    def store_attribute(self, owner: Any, name: str, value: Any) -> bool:
        """Record `owner.name = value` for replay; False if the owner was made in the trace."""
        known = self.objects.get(id(owner))
        if known is None:
            return False
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

    def changes(self) -> Iterable[tuple[Place, Any]]:
        """Attributes and container items that differ from what is outside: (place, value); MISSING means deleted.

        Raises:
            TraceError: a list from outside has another length.
        """
        for now, before, place in self.attributes.values():
            if now is not before:
                yield place, now
        for live, copy, snapshot, place in list(self.copies.values()):
            if type(live) is tuple or snapshot is None:
                continue
            if type(live) is dict:
                for key, value in copy.items():
                    if key not in snapshot or snapshot[key] is not value:
                        yield Item(place, key), value
                for key in snapshot:
                    if key not in copy:
                        yield Item(place, key), MISSING
            elif len(copy) != len(snapshot):
                raise errors.TraceError(
                    errors.describe(
                        f"the list {place.text} from outside the jitted function changes its length while it is traced",
                        remedy="return the values instead and append them to the list after the call, or use jg.host.",
                    )
                )
            else:
                for k, value in enumerate(copy):
                    if snapshot[k] is not value:
                        yield Item(place, k), value

    def state(self) -> dict[Any, Any]:
        """All that was stored so far: place to value; a region compares it."""
        found: dict[Any, Any] = {key: now for key, (now, before, _) in self.attributes.items() if now is not before}
        for live, copy, snapshot, _ in self.copies.values():
            if snapshot is None:
                continue
            if type(live) is dict:
                found.update({(id(copy), k): v for k, v in copy.items() if snapshot.get(k) is not v})
            else:
                found.update(
                    {(id(copy), k): v for k, v in enumerate(copy) if k >= len(snapshot) or snapshot[k] is not v}
                )
        return found

    # --- arrays that are no arguments

    def known_array(self, array: Any) -> Tensor:
        """The Tensor of an ndarray that user code holds."""
        known = self.arrays.get(id(array))
        return known[1] if known is not None else self.constant(array, "array")

    def constant(self, array: np.ndarray, name: str) -> Tensor:
        """An array that was made of static values while tracing."""
        known = self.arrays.get(id(array))
        if known is not None:
            return known[1]
        if array.size <= _CONSTANT_ELEMENTS:
            tensor = wrap(
                self.mode,
                self.mode.builder.apply(REGISTRY["copy"], self.mode.builder.constant(np.array(array)), order="K")[0],
            )
        else:
            hidden = self._hide(Fixed(array, name), array)
            tensor = wrap(self.mode, self.mode.builder.apply(REGISTRY["copy"], hidden._storage.value, order="K")[0])
        if len(self.mode.blocks) == 1:  # a value made inside a region is not seen outside of it
            self.arrays[id(array)] = (array, tensor, None)
        return tensor

    def foreign(self, array: np.ndarray) -> Value:
        """An ndarray that meets a traced value.

        Raises:
            TraceError: it came in by a way that cannot be repeated at the next call.
        """
        known = self.arrays.get(id(array))
        if known is not None:
            return known[1]._storage.value  # type: ignore[no-any-return]
        if array.size <= 1:
            return self.mode.builder.constant(np.array(array))
        return self.mode.fail(
            f"an array of shape {array.shape} that is no argument meets a traced value; "
            "it would be frozen into the compiled code",
            "pass it as an argument, or read it from a global, a closure or an attribute inside the function.",
        )
