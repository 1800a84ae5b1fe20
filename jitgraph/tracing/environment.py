"""`os.environ` in a trace: what is read of it is guarded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn

from jitgraph.tracing.hidden import Fixed, Item, MissingGuard, StructureGuard, ValueGuard

if TYPE_CHECKING:
    from jitgraph.tracing.outside import Outside

_PLACE = Fixed(os.environ, "os.environ")


class Environment(Mapping[str, str]):
    """The variables as they are while tracing; a call that finds one changed is traced anew."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def __getitem__(self, name: str) -> str:
        place = Item(_PLACE, name)
        try:
            value = os.environ[name]
        except KeyError:
            self.outside.guard(MissingGuard(place))
            raise
        self.outside.guard(ValueGuard(place, value, by_value=True))
        return value

    def __iter__(self) -> Iterator[str]:
        names = tuple(os.environ)
        self.outside.guard(StructureGuard(_PLACE, type(os.environ), names))
        return iter(names)

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def __setitem__(self, name: str, value: str) -> NoReturn:
        self.outside.mode.fail("os.environ is changed in a jitted function", "set it before the call.")
