"""The options of `jit`, as the lower layers take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FAST_MATH_FLAGS = frozenset(("contract", "reassoc", "nnan", "ninf", "nsz", "arcp"))


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """The options that change machine code."""

    fastmath: frozenset[str] = frozenset()
    numerics: Literal["default", "numpy"] = "default"


@dataclass(frozen=True, slots=True)
class JitOptions:
    """Options of `jit`; see there."""

    static_argnames: tuple[str, ...] = ()
    specialize: Literal["shape"] | None = None
    code: CodeOptions = field(default_factory=CodeOptions)
    check: bool | None = None
    fallback: Literal["error", "eager"] = "error"
