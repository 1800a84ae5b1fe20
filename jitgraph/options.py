"""The options of `jit`, as the lower layers take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from jitgraph.ir.graph import Graph

FAST_MATH_FLAGS = frozenset(("contract", "reassoc", "nnan", "ninf", "nsz", "arcp"))


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """The options that change machine code."""

    fastmath: frozenset[str] = frozenset()
    numerics: Literal["default", "numpy"] = "default"

    def apply(self, graph: Graph) -> None:
        """Write the options into a captured graph, whose text is then all that machine code depends on."""
        graph.fast_math = self.fastmath
        if self.numerics == "numpy":
            from jitgraph.passes.numpy_functions import numpy_functions

            numpy_functions(graph)


@dataclass(frozen=True, slots=True)
class JitOptions:
    """Options of `jit`; see there."""

    static_argnames: tuple[str, ...] = ()
    specialize: Literal["shape"] | None = None
    code: CodeOptions = field(default_factory=CodeOptions)
    check: bool | None = None
    fallback: Literal["error", "eager"] = "error"
