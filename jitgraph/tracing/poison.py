"""Names without a usable value: bound so that the first use fails, and dead ones never do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class Poison:
    """Stands for a variable that has no value here; whatever is done with it raises `error()`."""

    __slots__ = ("error",)
    error: Callable[[], Exception]

    def __init__(self, error: Callable[[], Exception]) -> None:
        object.__setattr__(self, "error", error)

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


for _name in ["call", "bool", "len", "iter", "next", "getitem", "setitem", "delitem", "contains", "index", "int", "float", "complex", "hash", "enter", "exit", "array", "array_ufunc", "array_function", "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift", "divmod", "radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rmatmul", "rand", "ror", "rxor", "rlshift", "rrshift", "rdivmod", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor", "ilshift", "irshift", "format", "str"]:
    setattr(Poison, f"__{_name}__", _refuse)


def unbound(name: str) -> Poison:
    """A local variable that Python would find unbound."""
    return Poison(
        lambda: UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")
    )
