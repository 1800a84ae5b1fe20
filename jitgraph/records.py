"""`dataclass` as in `dataclasses`, with slots, made in a third of the time: importing makes a hundred of them.

The standard library's compiles the methods of a class when it is made. Here `__init__`, `__eq__` and `__hash__` are
compiled at their first call, which a process makes of a few classes only, and methods that are seldom called are the
same functions for all classes. `fields`, `replace` and `is_dataclass` work.
"""

from __future__ import annotations

import dataclasses
import reprlib
from dataclasses import field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
        """See `dataclasses.dataclass`."""
        if not slots:
            raise TypeError("records have slots")
        return lambda cls: _record(cls, frozen, eq, repr)


__all__ = ["dataclass", "field"]
_MISSING = dataclasses.MISSING


def _record(cls: Any, frozen: bool, eq: bool, shown: bool) -> Any:
    known: dict[str, Any] = {}
    for base in cls.__mro__[-1:0:-1]:
        known.update(getattr(base, "__dataclass_fields__", {}))
    namespace = dict(cls.__dict__)
    own = [name for name, kind in namespace.get("__annotations__", {}).items() if not str(kind).startswith("ClassVar")]
    fields: dict[str, Any] = dict(known)
    for name in own:
        given = namespace.pop(name, _MISSING)
        f: Any = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        f.name, f.type, f.kw_only = name, namespace["__annotations__"][name], False
        f._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
        fields[name] = f
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    namespace["__slots__"] = tuple([name for name in own if name not in known])
    namespace["__dataclass_fields__"] = fields
    namespace.setdefault("__match_args__", tuple([f.name for f in fields.values() if f.init]))
    if shown:
        namespace.setdefault("__repr__", _repr)
    if frozen:
        namespace.update(__setattr__=_refuse_store, __delattr__=_refuse_store)
        namespace.setdefault("__getstate__", _get_state)
        namespace.setdefault("__setstate__", _set_state)
    hashes = eq and "__hash__" not in cls.__dict__
    if hashes and not frozen:
        namespace["__hash__"] = None
    qualname = cls.__qualname__
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = qualname
    compared = [name for name, f in fields.items() if f.compare]
    methods = _init(made, list(fields.values()), frozen)
    if eq and "__eq__" not in cls.__dict__:
        methods.append(
            ("__eq__", f"(self, other):\n if other.__class__ is self.__class__: return {_tuple('self', compared)} == "
             f"{_tuple('other', compared)}\n return NotImplemented")
        )  # fmt: skip
    if hashes and frozen:
        methods.append(("__hash__", f"(self): return hash({_tuple('self', compared)})"))
    for name, text in methods:
        setattr(made, name, _later(made, name, text, fields))
    return made


def _tuple(owner: str, names: Sequence[str]) -> str:
    return "(" + "".join([f"{owner}.{name}," for name in names]) + ")"


def _init(cls: Any, fields: Sequence[Any], frozen: bool) -> list[tuple[str, str]]:
    if "__init__" in cls.__dict__:
        return []
    parameters, body = ["self"], []
    for f in fields:
        name, value = f.name, f.name
        if f.default_factory is not _MISSING:
            value = f"factory_{name}() if {name} is missing else {name}" if f.init else f"factory_{name}()"
            default = "=missing"
        else:
            default = "" if f.default is _MISSING else f"=default_{name}"
            if not f.init:
                if not default:
                    continue
                value = f"default_{name}"
        if f.init:
            parameters.append(name + default)
        body.append(f" set_{name}(self, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    return [("__init__", f"({', '.join(parameters)}):\n" + ("\n".join(body) or " pass"))]


def _later(cls: Any, name: str, text: str, fields: dict[str, Any]) -> Any:
    """A method that puts the compiled one in its own place when it is called; threads may do so at the same time."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _define(cls, name, text, fields)(self, *args, **kwargs)

    return method


def _define(cls: Any, method: str, text: str, fields: dict[str, Any]) -> Any:
    names: dict[str, Any] = {"missing": _MISSING}
    for name, f in fields.items():
        names[f"default_{name}"], names[f"factory_{name}"] = f.default, f.default_factory
        names[f"set_{name}"] = getattr(cls, name).__set__
    exec(f"def {method}{text}", names)  # noqa: S102  # as `dataclasses` does
    made = names[method]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.{method}", cls.__module__
    setattr(cls, method, made)
    return made


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in self.__dataclass_fields__.values() if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_store(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)
