"""Attributes and subscripts of rewritten functions: read under guards or as hidden arguments, stored for replay."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitgraph.tensor import Tensor
from jitgraph.tracing import effects, kinds, options, texts
from jitgraph.tracing.capture_mode import CaptureMode
from jitgraph.tracing.control_flow import Regions
from jitgraph.tracing.environment import Environment
from jitgraph.tracing.hidden import MISSING
from jitgraph.tracing.leaves import is_opaque_module
from jitgraph.tracing.outside import Outside
from jitgraph.tracing.poison import OneOf
from jitgraph.xp.core import class_text, mode_in
from jitgraph.xp.grids import SUBSCRIPTS
from jitgraph.xp.scalars import element
from jitgraph.xp.shape import set_shape

WRAPPERS: Final = (
    BuiltinFunctionType,
    type(object.__init__),
    type(object().__str__),
    type(str.join),
    type(dict.__dict__["fromkeys"]),
)
PLAIN: Final = frozenset({int, float, bool, str, type(None), tuple, list, dict, Tensor})
_MADE_BY_USERS: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def find_on_class(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _is_frozen_dataclass(kind: type) -> bool:
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


#: Attributes of arrays that say what they are made of.
_TYPED: Final = frozenset(("dtype", "itemsize", "nbytes", "strides"))
#: Subscripts that may be, or hold, a value of several types.
_SEVERAL: Final = frozenset((OneOf, tuple, slice))
#: Members of a class that an attribute of the object itself would hide.
_MEMBERS: Final = (FunctionType, classmethod, staticmethod, property, functools.partialmethod)


def _put_into(value: Any, owner: Any, index: Any) -> None:
    """`owner[index] = value`."""
    owner[index] = value


class Members:
    """What a tracer does for attributes and subscripts."""

    mode: CaptureMode
    outside: Outside
    regions: Regions
    #: Attributes that a `__setattr__` of the user's is setting.
    _setting: list[tuple[type, str]]

    if TYPE_CHECKING:

        def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any: ...
        def augmented(self, name: str, a: Any, b: Any) -> Any: ...
        def by_kind(self, answer: kinds.Open, compute: Callable[[], Any]) -> Any: ...

    def attr(self, owner: Any, name: str) -> Any:
        if self.outside.clones:
            owner = self.outside.clones.get(id(owner), owner)
        kind = type(owner)
        if kind is OneOf:
            return options.choose(self, owner, lambda x: self.attr(x, name))
        if kind is effects.Made or effects.is_stateful(owner):
            if not callable(getattr(owner.__class__, name, None)):
                effects.draw(self, owner, "bit_generator", (), {})
            return functools.partial(effects.draw, self, owner, name) if kind is effects.Made else getattr(owner, name)
        if kind is Tensor or owner is self:
            if self.mode.kinds and kinds.tag_of(self.mode, owner):
                return self.told(lambda x: self.attr(x, name), owner)
            if kind is Tensor and owner.is_traced:
                self._require(owner, name)
                if owner.type.kind != "array" or name in _TYPED:
                    self.mode.ask(owner)
                if owner.type.kind == "py_bool" and not name.startswith("__"):
                    owner = +owner  # the attributes of an int
            return getattr(owner, name)
        if kind is ModuleType:
            if is_opaque_module(owner.__name__):
                value = getattr(owner, name, MISSING)
                self.outside.reads.attribute(owner, name, value)
                if value is MISSING:
                    return getattr(owner, name)  # says so
                return self.environment() if value is os.environ else value
            value = self.outside.overlay(owner, name)
            if value is MISSING:
                value = self._attribute(owner, kind, name, None)
                value = self.outside.read_attribute(owner, name, value)
            return value
        if kind in PLAIN:
            return getattr(owner, name)
        if name == "__dict__" and self.outside.knows(owner) and not isinstance(owner, type):
            return vars(self.outside.clone_of(owner))
        own = getattr(owner, "__dict__", ())
        found = find_on_class(kind, name)
        if found is not None or name not in own:
            self.member(kind, name)
        if type(found) is property and found.fget is not None:
            return self.call(found.fget, owner)
        getter = None if found is None or type(found) is FunctionType else find_on_class(type(found), "__get__")
        if isinstance(getter, FunctionType) and not is_opaque_module(type(found).__module__):
            return self.call(getter, found, owner, kind)
        if found is None and not isinstance(owner, type) and kind is not ModuleType:
            getter = find_on_class(kind, "__getattr__")
            if isinstance(getter, FunctionType) and name not in getattr(owner, "__dict__", {}):
                self.member(kind, "__getattr__")
                self.outside.guard_unshadowed(owner, name)
                return self.call(getter, owner, name)
        if type(found) is functools.cached_property:
            own = getattr(owner, "__dict__", {})
            if name not in own and not self.outside.knows(owner):
                value = self.call(found.func, owner)
                own[name] = value
                return value
        value = self.outside.overlay(owner, name)
        if value is MISSING and name in self.outside.stored_on_classes and name not in own:
            value = self.outside.class_overlay(owner if isinstance(owner, type) else kind, name)
        if value is MISSING:
            value = self._attribute(owner, kind, name, found)
            own = kind is not FunctionType and not isinstance(owner, type) and name in getattr(owner, "__dict__", ())
            if not own and type(value) in (MethodType, FunctionType, *WRAPPERS):
                return value
            if isinstance(owner, type) and (name.startswith("__") or is_opaque_module(owner.__module__)):
                return value
            value = self.outside.read_attribute(owner, name, value)
        return value

    def _require(self, owner: Tensor, name: str) -> None:
        """A traced array or number has the attributes of what it stands for, and a Tensor's own among Tensors.

        Raises:
            AttributeError: there is no such attribute.
            LeftToPython: there is, and nothing stands for it.
        """
        kind = owner.__class__
        if not hasattr(kind, name):
            if not (self.mode.tensors and hasattr(Tensor, name)):
                raise AttributeError(f"{class_text(owner)} object has no attribute {name!r}")
        elif not hasattr(Tensor, name):
            self.mode.leave(f"{name} of {class_text(owner)[1:-1]} is for Python to know", "read it outside.")

    def told(self, compute: Callable[..., Any], *values: Any) -> Any:
        """What an operation gives on scalars whose kind depends on the path: each side of a branch knows it."""
        try:
            return compute(*[kinds.told_in(self.mode, x) for x in values])
        except kinds.Open as answer:
            return self.by_kind(answer, lambda: self.told(compute, *values))

    def environment(self) -> Environment:
        """What stands for `os.environ`."""
        return Environment(self.outside)

    def member(self, kind: type, name: str) -> Any:
        """A member of a class (None if it has none), under a guard if users wrote the class."""
        found = find_on_class(kind, name)
        users = kind.__flags__ & _MADE_BY_USERS and not is_opaque_module(kind.__module__)
        if users and (found is None or hasattr(type(found), "__get__") or name.startswith("__")):
            self.outside.guard_member(kind, name)
        return found

    def _attribute(self, owner: Any, kind: type, name: str, found: Any) -> Any:
        """`getattr(owner, name)`, with guards on where it was found."""
        if isinstance(owner, type):
            value = getattr(owner, name, MISSING)
            if value is MISSING:
                self.outside.guard_missing(owner, name)
            elif isinstance(value, MethodType | FunctionType) and not is_opaque_module(owner.__module__):
                self.outside.guard_member(owner, name)
            return getattr(owner, name)
        own = getattr(owner, "__dict__", ())
        if name not in own and isinstance(found, _MEMBERS):
            self.outside.guard_unshadowed(owner, name)
        try:
            return getattr(owner, name)
        except AttributeError:
            self.outside.guard_missing(owner, name)
            self.member(kind, "__getattr__")
            raise

    def set_attr(self, value: Any, owner: Any, name: str) -> None:
        if self.outside.clones:
            owner = self.outside.clones.get(id(owner), owner)
        kind = type(owner)
        if kind is Tensor:
            if owner.is_traced and (owner.type.kind != "array" or not hasattr(np.ndarray, name)):
                setattr(options.sample(owner), name, value)  # says why not
            known = owner._storage.origin is not None and not owner._steps  # the caller's own array
            if name == "shape" and owner.is_traced and not known and len(self.mode.blocks) == 1:
                set_shape(owner, value)
                return
            if name in ("shape", "dtype", "strides"):
                self.mode.fail(
                    f"assignment to .{name} of an array is not supported", "use x.reshape(...), or a new array."
                )
            setattr(owner, name, value)
            return
        found = self.member(kind, name)
        if type(found) is property and found.fset is not None:
            self.call(found.fset, owner, value)
            return
        setter = None if found is None else find_on_class(type(found), "__set__")
        if isinstance(setter, FunctionType):
            self.call(setter, found, owner, value)
            return
        hook = self._hook(owner, "__setattr__", name)
        if hook is not None and not _is_frozen_dataclass(kind):
            self._call_hook(hook, owner, name, value)
        else:
            self._put_attr(owner, name, value)

    def del_attr(self, owner: Any, name: str) -> None:
        """`del owner.name`.

        Raises:
            AttributeError: there is none.
        """
        kind = type(owner)
        deleter = getattr(self.member(kind, name), "fdel", None)
        if deleter is not None:
            self.call(deleter, owner)
            return
        hook = self._hook(owner, "__delattr__", name)
        if hook is not None:
            self._call_hook(hook, owner, name)
            return
        self.attr(owner, name)  # says so if there is none
        self._put_attr(owner, name, MISSING)

    def _hook(self, owner: Any, method: str, name: str) -> FunctionType | None:
        """The `__setattr__` or `__delattr__` of a user's class; None while it runs for this attribute, too."""
        kind = type(owner)
        found = None if isinstance(owner, type) else self.member(kind, method)
        if not isinstance(found, FunctionType) or is_opaque_module(kind.__module__) or (kind, name) in self._setting:
            return None
        return found

    def _call_hook(self, hook: FunctionType, owner: Any, name: str, *value: Any) -> None:
        self._setting.append((type(owner), name))
        try:
            self.call(hook, owner, name, *value)
        finally:
            self._setting.pop()

    def _put_attr(self, owner: Any, name: str, value: Any) -> None:
        """Store an attribute, or delete it (MISSING): noted for each call, or done now to what the trace made."""
        if self.outside.store_attribute(owner, name, value):
            return
        if self.regions.opened and isinstance(owner, type | FunctionType):
            self.regions.fail_change(f"the attribute {name} of {owner.__name__}")
        if not isinstance(owner, type | FunctionType) and id(owner) not in self.outside.copied:
            self.regions.check_owner(owner, name)
        if value is MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)

    def item(self, owner: Any, index: Any) -> Any:
        kind = type(owner)
        if kind is OneOf:
            return options.choose(self, owner, lambda x: self.item(x, index))
        if type(index) in _SEVERAL:
            several = options.found_in((index,), {})
            if several is not None:
                return options.called(self, several, self.item, (owner, index), {})
        if self.mode.kinds and kinds.decide_index(self.mode, owner, index):
            return self.told(self.item, owner, index)
        if self.mode.shown and (texts.is_marked(owner) or texts.is_marked(index)):
            texts.refuse(self)
        if isinstance(owner, dict):
            self.outside.pin(index)
        if kind is Tensor:
            return owner[index]
        if kind is np.ndarray or isinstance(owner, np.ndarray):
            return self.outside.static.known_array(owner)[index]
        if type(index) is Tensor and (kind is list or kind is tuple):
            return element(owner, index)
        if kind not in PLAIN:
            method = self.member(kind, "__getitem__")
            if isinstance(method, FunctionType):
                made = SUBSCRIPTS.get(kind)
                if made is not None and mode_in((index,)) is not None:
                    return made(owner, index)
                return self.call(method, owner, index)
        return owner[index]

    def set_item(self, value: Any, owner: Any, index: Any) -> None:
        if isinstance(owner, list | dict):  # keeps what is stored, and is itself changed: no option takes a place in it
            options.found_in((value,), {})
            several = options.found_in((index,), {})
            if several is not None:
                options.called(self, several, lambda k: self.set_item(value, owner, k), (index,), {})
                return
        else:
            several = options.found_in((value, owner, index), {})
            if several is not None:
                asked = None if type(owner) is OneOf else _put_into
                options.called(self, several, self.set_item, (value, owner, index), {}, asked)
                return
        if self.mode.kinds and (
            kinds.decide_index(self.mode, owner, index) or kinds.is_stored_by_kind(self.mode, value, owner)
        ):
            self.told(self.set_item, value, owner, index)
            return
        if type(owner) not in PLAIN:
            method = self.member(type(owner), "__setitem__")
            if isinstance(method, FunctionType):
                self.call(method, owner, index, value)
                return
            if isinstance(owner, np.ndarray):
                owner = self.outside.static.before_write(owner, index, value)
        owner[index] = value

    def del_item(self, owner: Any, index: Any) -> None:
        if type(owner) is Tensor and owner.is_traced:
            owner, index = options.sample(owner), ...  # says why not
        del owner[index]

    def target_attr(self, owner: Any, attribute: str) -> tuple[Any, str, Any]:
        """What `o.w` of `o.w += v` is; read before `v` is evaluated, as Python does."""
        return owner, attribute, self.attr(owner, attribute)

    def target_item(self, owner: Any, index: Any) -> tuple[Any, Any, Any]:
        return owner, index, self.item(owner, index)

    def augmented_attr(self, name: str, target: tuple[Any, str, Any], value: Any) -> None:
        owner, attribute, old = target
        self.set_attr(self.augmented(name, old, value), owner, attribute)

    def augmented_item(self, name: str, target: tuple[Any, Any, Any], value: Any) -> None:
        owner, index, old = target
        new = self.augmented(name, old, value)
        if new is old and type(old) is Tensor and type(owner) is Tensor and old._storage is owner._storage:
            return  # the view was written through already
        self.set_item(new, owner, index)
