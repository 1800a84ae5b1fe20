"""`x.flags` and `x.strides` of a traced array, as far as its layout and the guards on its sizes tell them."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from jitgraph.ir.builder import Undecided
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, _convert, dim_tensor, is_writable
from jitgraph.xp.merging import Unsure, is_contiguous

_NAMES: Final = {
    "C_CONTIGUOUS": "c_contiguous", "C": "c_contiguous", "CONTIGUOUS": "c_contiguous", "F_CONTIGUOUS": "f_contiguous",
    "F": "f_contiguous", "FORTRAN": "f_contiguous", "FNC": "fnc", "FORC": "forc", "WRITEABLE": "writeable",
    "W": "writeable", "ALIGNED": "aligned", "A": "aligned", "BEHAVED": "behaved", "CARRAY": "carray",
    "FARRAY": "farray", "OWNDATA": "owndata", "O": "owndata", "WRITEBACKIFCOPY": "writebackifcopy",
    "X": "writebackifcopy",
}  # fmt: skip


class Flags:
    """Answers like ndarray's `flags`; what only the run knows is a TraceError."""

    def __init__(self, x: Tensor, mode: TraceMode) -> None:
        self._x, self._mode = x, mode

    def __getitem__(self, name: str) -> bool:
        if name not in _NAMES:
            raise KeyError("Unknown flag")
        return bool(getattr(self, _NAMES[name]))

    @property
    def c_contiguous(self) -> bool:
        return self._lies("C")

    contiguous = c_contiguous

    @property
    def f_contiguous(self) -> bool:
        return self._lies("F")

    @property
    def fnc(self) -> bool:
        return not self.c_contiguous and self.f_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def writeable(self) -> bool:
        return is_writable(self._x)

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._mode.fail("flags of a traced array are not changed", "set them before or after the call.")

    @property
    def aligned(self) -> bool:
        return self._x._storage.origin is None or self._unknown("the alignment of an argument")

    @property
    def writebackifcopy(self) -> bool:
        return False

    @property
    def behaved(self) -> bool:
        return self.writeable and self.aligned

    @property
    def carray(self) -> bool:
        return self.behaved and self.c_contiguous

    @property
    def farray(self) -> bool:
        return self.behaved and self.fnc

    @property
    def owndata(self) -> bool:
        if self._x._steps:
            return False
        if self._x._storage.origin is None:
            return True
        return self._unknown("whether an argument owns its memory")

    def _lies(self, order: str) -> bool:
        x = self._x
        try:
            return is_contiguous(x, order)
        except (Undecided, Unsure):
            return self._unknown("the contiguity of an array whose sizes or strides are data")

    def _unknown(self, what: str) -> NoReturn:
        self._mode.leave(f"{what} is known only when the compiled code runs", "test it before the call.")


def flags(x: Tensor) -> Any:
    mode = x._storage.mode
    return Flags(x, mode) if isinstance(mode, TraceMode) else _convert(x, "flags").flags


def strides(x: Tensor) -> tuple[Any, ...]:
    """In bytes; of a traced array without gaps, products of its sizes."""
    mode, t = x._storage.mode, x.type
    if not isinstance(mode, TraceMode) or not t.layout.is_dense or not t.ndim:
        return () if not t.ndim else _convert(x, "strides").strides
    found: list[Any] = [0] * t.ndim
    step: Any = t.dtype.itemsize
    for axis in reversed(t.layout.order):
        found[axis] = step if isinstance(step, int) else dim_tensor(mode, step)
        step = step * t.shape[axis]
    return tuple(found)
