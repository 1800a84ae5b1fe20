"""Joins the stages: captured graph, passes, loops, LLVM text, object code, disk cache.

`compile_graph` is the way to machine code; `Stages` reruns single stages for people to read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from jitgraph.cache import disk
from jitgraph.cache.key import digest
from jitgraph.config import config
from jitgraph.ir.graph import Graph
from jitgraph.ir.printer import print_graph
from jitgraph.observe_events import PassReport
from jitgraph.passes.pipeline import run_pipeline

if TYPE_CHECKING:
    from jitgraph.codegen.loops import Program
    from jitgraph.runtime.invoke import Executable


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """The options of `jit` that change machine code."""

    fastmath: frozenset[str] = frozenset()
    numerics: Literal["default", "numpy"] = "default"

    def key(self) -> tuple[str, ...]:
        return (f"fastmath={','.join(sorted(self.fastmath))}", f"numerics={self.numerics}")
