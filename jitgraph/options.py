"""The options of `jit`, as the lower layers take them."""

from __future__ import annotations

from typing import Literal, NamedTuple

FAST_MATH_FLAGS = frozenset(("contract", "reassoc", "nnan", "ninf", "nsz", "arcp"))


class CodeOptions(NamedTuple):
    """The options that change machine code."""

    fastmath: frozenset[str] = frozenset()
    numerics: Literal["default", "numpy"] = "default"


class JitOptions(NamedTuple):
    """Options of `jit`; see there."""

    static_argnames: tuple[str, ...] = ()
    specialize: Literal["shape"] | None = None
    code: CodeOptions = CodeOptions()
    check: bool | None = None
    fallback: Literal["error", "eager"] = "error"
    donate_argnames: tuple[str, ...] = ()
