"""`x.flat`: the elements of a traced or recorded array in C order, whatever its layout.

What is read is a copy, as with NumPy; what is written goes to the array, from the start again if there are too few
values. A loop over it becomes a loop of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitgraph import tensor as tensors
from jitgraph.tensor import Tensor


class FlatIter:
    """What `x.flat` is, `x` being `base`; `index` is that of the next element of `next()`."""

    __slots__ = ("base", "index")

    def __init__(self, base: Tensor) -> None:
        self.base = base
        self.index = 0

    def __getitem__(self, key: Any) -> Any:
        return tensors._front.flat_getitem(self.base, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        tensors._front.flat_setitem(self.base, key, value)

    def __len__(self) -> int:
        return self.base.size.__index__()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    def copy(self) -> Any:
        """All elements, as a fresh array with one axis."""
        return tensors._front.flatten(self.base)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.copy().__array__(dtype, copy)
