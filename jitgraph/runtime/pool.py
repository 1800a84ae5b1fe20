"""The memory pool: results of compiled calls whose memory comes back when the user drops them, and scratch memory.

Fresh memory costs a page fault for every 4096 bytes, twice what a copy costs; so blocks are kept for the next call
(`pool_code` has the machine code). A result is an ordinary array to its user: it owns its memory, which NumPy gives
back through its own protocol of memory handlers (NEP 49), whose pointer is stored in the array. Where NumPy's arrays do
not lie in memory as they did when this was written (`_arrays_known`), results come from NumPy's allocator instead.

What waits in the pool is bounded by the setting `pool_bytes`. Once a second at most, blocks that nobody needed in
that second go back to the system, so memory follows the program from a phase to the next; `trim_memory` gives back all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from jitgraph.config import config
from jitgraph.once import once
from jitgraph.runtime import pool_code
from jitgraph.runtime.pool_arrays import C_ORDER, F_ORDER, OTHER_ORDER, RECIPE_ORDER
from jitgraph.runtime.pool_code import EXPORTS
from jitgraph.runtime.pool_state import AT

_P, _I = ctypes.c_void_p, ctypes.c_int64
#: Smaller results come from NumPy's allocator, which has such at hand, too.
SMALL_BYTES = 16 << 10
_NEVER = 1 << 62
_MOST_BYTES = 1 << 30
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Counters(NamedTuple):
    """What the pool has done, in bytes and blocks.

    Attributes:
        allocations, frees: calls so far.
        hits: allocations served by a block that was waiting.
        asked: bytes asked for and not given back yet; `asked_peak` the most since `reset_peak`, `asked_total` ever.
        used: bytes of the blocks in use, which are rounded up to classes.
        held: bytes of the blocks that wait; `held_blocks` how many.
        taken, released: blocks that came from the system and that went back to it.
        cap: most bytes that may wait.
    """

    allocations: int
    frees: int
    hits: int
    asked: int
    asked_peak: int
    asked_total: int
    used: int
    held: int
    held_blocks: int
    taken: int
    released: int
    cap: int


class Pool:
    """The loaded machine code.

    Attributes:
        addresses: of its functions, for machine code that calls them.
        makes_arrays: whether results may lie in the pool.
        alloc: (bytes, slots, count) to an address aligned to 64, 0 if there is no memory; see `pool_code`.
        free: takes it back.
        array: (address of a `recipe`, address of the sizes, slots, count) to a new array.
    """

    def __init__(self) -> None:
        from jitgraph.runtime import prebuilt

        self.addresses = prebuilt.linked("jitgraph.pool", pool_code.pool_text, "pool", EXPORTS)
        function = ctypes.PYFUNCTYPE
        self.state: int = function(_P)(self.addresses["pool_state"])()
        self.alloc: Callable[..., int | None] = function(_P, _I, _P, _I)(self.addresses["pool_alloc"])
        self.free: Callable[[int], None] = function(None, _P)(self.addresses["pool_free"])
        self.array: Callable[..., np.ndarray] = function(ctypes.py_object, _P, _P, _P, _I)(self.addresses["pool_array"])
        self.trim: Callable[[], int] = function(_I)(self.addresses["pool_trim"])
        process = ctypes.CDLL(None)
        for name in ("mmap", "munmap", "madvise", "aligned_alloc", "free", "sched_yield", "clock_gettime"):
            self.set(name, _address(getattr(process, name)))
        self.set("clock", time.CLOCK_MONOTONIC)
        self.makes_arrays = self._arrays_known()
        self.configure()
        os.register_at_fork(after_in_child=function(None)(self.addresses["pool_forked"]))

    def get(self, name: str) -> int:
        """A field of the state."""
        return _I.from_address(self.state + AT[name]).value

    def set(self, name: str, value: int) -> None:
        """Change a field of the state."""
        _I.from_address(self.state + AT[name]).value = value

    def configure(self) -> None:
        """Heed the settings."""
        self.set("cap", most_bytes())
        if self.get("held") > self.get("cap"):
            self.trim()
        self.set("poison", int(config.poison))
        arrays = self.makes_arrays and config.pool
        self.set("small", _NEVER if not arrays else 0 if config.poison else SMALL_BYTES)

    def counters(self) -> Counters:
        """The counters as they are now."""
        return Counters(*[self.get(name) for name in Counters._fields])

    def reset_peak(self) -> None:
        """From here on `asked_peak` is the most bytes asked for at a time."""
        self.set("asked_peak", self.get("asked"))

    # --- inside -----------------------------------------------------------------------------------------------------

    def _arrays_known(self) -> bool:
        """Whether arrays may be made here: NumPy's objects have the layout that its C headers show, as tried out."""
        try:
            return self._introduce()
        except (AttributeError, ImportError, ValueError):  # another NumPy than the ones known: names are missing
            return False

    def _introduce(self) -> bool:
        """Tell the code of NumPy's functions and try an array."""
        python = ctypes.pythonapi
        core: Any = import_module("numpy._core")
        pointer = ctypes.PYFUNCTYPE(_P, ctypes.py_object, _P)(("PyCapsule_GetPointer", python))
        api = (_P * 306).from_address(pointer(core._multiarray_umath._ARRAY_API, None))
        if api[2] != id(np.ndarray):
            return False
        self.set("new_array", api[94] or 0)
        self.set("array_type", id(np.ndarray))
        self.set("incref", _address(python.Py_IncRef))
        self.set("track", _address(python.PyTraceMalloc_Track))
        head = object.__basicsize__
        self.set("flags_at", head + 48)
        self.set("handler_at", head + 72)
        theirs = ctypes.PYFUNCTYPE(ctypes.py_object)(api[305] or 0)()
        for x in (np.empty(3), np.empty((2, 3), np.int8, "F")):
            if _I.from_address(id(x) + head + 72).value != id(theirs):
                return False
            if ctypes.c_int32.from_address(id(x) + head + 48).value != x.flags.num:
                return False
        make = ctypes.PYFUNCTYPE(ctypes.py_object, _P)(self.addresses["pool_capsule"])
        capsule = make(_address(python.PyCapsule_New))
        python.Py_IncRef(ctypes.py_object(capsule))  # arrays refer to it even when the interpreter ends
        self.set("handler", id(capsule))
        self.set("cap", 1 << 20)
        before = self.get("asked")
        dims = (_I * 3)(2, 3, 4)
        for order, strides in (((0, 1, 2), (96, 32, 8)), ((2, 1, 0), (8, 16, 48)), ((1, 0, 2), (32, 64, 8))):
            plan = recipe(np.dtype(np.float64), order)
            made = self.array(ctypes.addressof(plan), ctypes.addressof(dims), None, 0)
            name = core.multiarray.get_handler_name(made)
            fine = type(made) is np.ndarray and made.strides == strides and made.base is None and name == "jitgraph"
            if not fine or made.dtype != np.float64 or not (made.flags.owndata and made.flags.writeable):
                return False
            if self.get("asked") != before + 192:
                return False
            del made
            if self.get("asked") != before:
                return False
        return True


def _address(function: Any) -> int:
    return ctypes.cast(function, _P).value or 0


def recipe(dtype: np.dtype, order: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """What `Pool.array` makes arrays from; keep it, and the dtype, as long as calls may use it.

    Args:
        order: axes from the outermost in memory to the innermost; its length is the rank.
    """
    rank = len(order)
    flags = OTHER_ORDER
    if tuple(order) == tuple(range(rank)):
        flags = C_ORDER
    elif tuple(order) == tuple(reversed(range(rank))):
        flags = F_ORDER
    return (_I * (4 + rank))(id(dtype), rank, flags, dtype.itemsize, *order)


def most_bytes() -> int:
    """The bytes that may wait in the pool: the setting, or an eighth of the memory there is, at most a GiB."""
    if config.pool_bytes >= 0:
        return int(config.pool_bytes)
    found = [8 * _MOST_BYTES]
    with contextlib.suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in _CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError), open(name) as f:  # noqa: PTH123  # pathlib takes longer
            found.append(int(f.read()))  # it may be "max"
    return min(found) // 8


class PlainMemory:
    """What a `Pool` does, with memory of NumPy's and C's own: for systems that the pool is not made for."""

    makes_arrays = False

    def __init__(self) -> None:
        self._kept: dict[int, np.ndarray] = {}
        process = ctypes.CDLL(None)
        self.addresses = {"pool_malloc": _address(process.malloc), "pool_free": _address(process.free)}
        self._free = ctypes.PYFUNCTYPE(None, _P)(self.addresses["pool_free"])

    def alloc(self, size: int, slots: object = None, count: int = 0) -> int | None:
        """See `Pool`."""
        try:
            block = np.empty(size + 64, np.uint8)
        except MemoryError:
            return None
        address: int = (block.__array_interface__["data"][0] + 63) & -64
        self._kept[address] = block
        return address

    def free(self, address: int) -> None:
        """Take back what `alloc` or the function `pool_malloc` gave."""
        if self._kept.pop(address, None) is None:
            self._free(address)

    def array(self, plan: int, dims: int, slots: object = None, count: int = 0) -> np.ndarray:
        """See `Pool`."""
        head = (_I * 4).from_address(plan)
        rank = head[1]
        dtype = ctypes.cast(head[0], ctypes.py_object).value
        shape = list((_I * rank).from_address(dims)) if rank else []
        order = (_I * rank).from_address(plan + RECIPE_ORDER) if rank else ()
        if head[2] != OTHER_ORDER:
            return np.empty(shape, dtype, "F" if head[2] == F_ORDER else "C")
        made = np.empty([shape[axis] for axis in order], dtype)
        return made.transpose([list(order).index(axis) for axis in range(rank)])

    def configure(self) -> None:
        """Nothing to heed."""

    def trim(self) -> int:
        """Nothing waits."""
        return 0

    def counters(self) -> Counters:
        """Nothing is counted."""
        return Counters(*[0] * len(Counters._fields))

    def reset_peak(self) -> None:
        """Nothing is counted."""


@once
def pool() -> Pool | PlainMemory:
    """The process's pool, started at the first call."""
    made = Pool() if sys.platform == "linux" else PlainMemory()
    config.watch(made.configure)
    return made


def trim_memory() -> int:
    """Give the memory that waits for the next calls back to the system; answers how many bytes."""
    return pool().trim() if pool.is_made else 0


__all__ = ["SMALL_BYTES", "Counters", "PlainMemory", "Pool", "most_bytes", "pool", "recipe", "trim_memory"]
