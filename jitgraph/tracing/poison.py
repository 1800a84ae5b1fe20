"""Names without a usable value: bound so that the first use fails, and dead ones never do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from jitgraph import pytree


class Poison:
    """Stands for a variable that has no value here; whatever is done with it raises `error()`."""

    __slots__ = ("error", "unbound")
    error: Callable[[], BaseException]
    #: Python would find the variable unbound (rather than of two types).
    unbound: bool

    def __init__(self, error: Callable[[], BaseException], *, unbound: bool = False) -> None:
        object.__setattr__(self, "error", error)
        object.__setattr__(self, "unbound", unbound)

    def fail(self) -> NoReturn:
        raise self.error()

    def __getattr__(self, name: str) -> Any:
        self.fail()

    def __setattr__(self, name: str, value: Any) -> None:
        self.fail()

    def __repr__(self) -> str:
        return "<no value here>"


def _refuse(self: Poison, *args: Any, **kwargs: Any) -> Any:
    self.fail()


_METHODS = (
    "call bool len iter next getitem setitem delitem contains index int float complex hash enter exit array "
    "array_ufunc array_function eq ne lt le gt ge neg pos abs invert add sub mul truediv floordiv mod pow matmul and "
    "or xor lshift rshift divmod radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift "
    "rdivmod iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift format str"
)
for _name in _METHODS.split():
    setattr(Poison, f"__{_name}__", _refuse)


class Maybe(Poison):
    """A variable that is bound on some paths only: `value`, if the traced bool `flag` holds when it runs.

    Rewritten code resolves it at each use (`Tracer.use`), with a check. It is a pytree node, so that branches and loops
    carry it.
    """

    __slots__ = ("flag", "name", "value")
    name: str
    value: Any
    flag: Any

    def __init__(self, name: str, value: Any, flag: Any) -> None:
        super().__init__(lambda: UnboundLocalError(unbound_text(name)))
        for slot, x in (("name", name), ("value", value), ("flag", flag)):
            object.__setattr__(self, slot, x)


class OneOf(Poison):
    """What a function returns if that has no type on all paths: `options[which]`, a traced int.

    Results are made of the option that the run names; any other use fails. It is a pytree node.
    """

    __slots__ = ("options", "which")
    which: Any
    options: tuple[Any, ...]

    def __init__(self, which: Any, options: tuple[Any, ...], error: Callable[[], BaseException]) -> None:
        super().__init__(error)
        object.__setattr__(self, "which", which)
        object.__setattr__(self, "options", options)


class _Error:
    """The error of a node, as metadata: all are equal."""

    __slots__ = ("error",)

    def __init__(self, error: Callable[[], BaseException]) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        return type(other) is _Error

    def __hash__(self) -> int:
        return hash(_Error)


pytree.register(
    OneOf,
    lambda x: ([x.which, *x.options], _Error(x.error)),
    lambda meta, parts: OneOf(parts[0], tuple(parts[1:]), meta.error),
    chooses=True,
)


def as_maybe(name: str, x: Any) -> Maybe:
    """A variable that is surely bound, as one that may not be."""
    return x if type(x) is Maybe else Maybe(name, x, True)


pytree.register(Maybe, lambda m: ([m.value, m.flag], m.name), lambda name, parts: Maybe(name, *parts))


def unbound_text(name: str) -> str:
    """What Python says."""
    return f"cannot access local variable {name!r} where it is not associated with a value"


def unbound_name(x: Poison) -> str:
    """The name in the error of an unbound variable."""
    return str(x.error()).split("'", maxsplit=2)[1] if "'" in str(x.error()) else ""


def unbound(name: str) -> Poison:
    """A local variable that Python would find unbound."""
    return Poison(lambda: UnboundLocalError(unbound_text(name)), unbound=True)
