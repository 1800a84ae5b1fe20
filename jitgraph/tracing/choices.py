"""Arrays that are one of two, depending on data: results that are the one or the other, as in Python.

A merge of two paths copies what each of them left into one new value. Where the copy leaves the function, NumPy's
result would have been an argument, or a view of something older: the trace remembers which, and the recipe of the
result chooses when the call is done. A write to such an array, or to what it may be, is settled otherwise
(`CaptureMode.watch`).
"""

from __future__ import annotations

from typing import Any

from jitgraph.ir.graph import Value
from jitgraph.records import dataclass
from jitgraph.tensor import Storage, Tensor


@dataclass(frozen=True, slots=True)
class Choice:
    """What a merged array is a copy of.

    Attributes:
        flag: a bool of the function's own block.
        options: the arrays if it holds, and if not; None: something new, which the merged array itself stands for.
        merged: the value of the merged array when it was made.
    """

    flag: Value
    options: tuple[Tensor | None, Tensor | None]
    merged: Value


@dataclass(frozen=True, slots=True)
class Watched:
    """A storage that may share memory with others, which no write can follow.

    Attributes:
        sources: those others.
        settle: the branch to assume one side of instead, if a call can turn back there.
    """

    storage: Storage
    sources: list[Storage]
    settle: Any = None
