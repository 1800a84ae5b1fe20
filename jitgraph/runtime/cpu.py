"""The CPU that we run on, without LLVM: what `target` says of it is kept in the disk cache, by what `cpuid` answers.

Invariant: what LLVM says of a CPU (its name, its features) follows from what is asked here, so equal answers are one
CPU. Sizes of caches are among the answers, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache

import llvmlite

from jitgraph import target
from jitgraph.cache import disk
from jitgraph.cache.key import checksum, digest, parts
from jitgraph.config import config
from jitgraph.runtime import elf
from jitgraph.runtime.prebuilt import ANY_CPU

_NAME = "jitgraph.cpu"
#: void ask(uint32 leaf, uint32 subleaf, uint32 answers[4]); uint32 states(), of the registers that the system saves.
_ASK = bytes.fromhex("53 49 89 d0 89 f8 89 f1 0f a2 41 89 00 41 89 58 04 41 89 48 08 41 89 50 0c 5b c3")
_STATES = bytes.fromhex("31 c9 0f 01 d0 c3")
#: (leaf, subleaf) to which of EAX, EBX, ECX, EDX say something of the kind of CPU rather than of one of its cores.
_ASKED = {
    (0x0, 0): 0b1111, (0x1, 0): 0b1011, (0x4, 0): 0b1110, (0x4, 1): 0b1110, (0x4, 2): 0b1110, (0x4, 3): 0b1110,
    (0x7, 0): 0b1111, (0x7, 1): 0b1111, (0xD, 1): 0b1000, (0x14, 0): 0b1111, (0x19, 0): 0b1111, (0x1E, 1): 0b1111,
    (0x24, 0): 0b1111, (0x29, 0): 0b1111, (0x80000000, 0): 0b1111, (0x80000001, 0): 0b1111, (0x80000002, 0): 0b1111,
    (0x80000003, 0): 0b1111, (0x80000004, 0): 0b1111, (0x80000005, 0): 0b1111, (0x80000006, 0): 0b1111,
    (0x80000008, 0): 0b0110, (0x80000021, 0): 0b1111,
}  # fmt: skip
#: The first leaf of a range says which one is its last.
_RANGE = 0x7FFFFFFF
_SAVES_STATES = 1 << 27  # of leaf 1, ECX


@cache
def identity() -> str:
    """A digest of what this CPU says of itself; empty where it cannot be asked."""
    if not elf.is_known_system():
        return ""
    try:
        image = elf.map_code(_ASK.ljust(32, b"\xcc") + _STATES)
    except MemoryError:
        return ""
    try:
        return checksum(repr(list(_answers(image))).encode()).hex()
    finally:
        image.close()


def _answers(image: elf.Image) -> Iterator[tuple[int, ...]]:
    base = image.addresses["code"]
    number = ctypes.c_uint32
    answers = (number * 4)()
    ask = ctypes.PYFUNCTYPE(None, number, number, ctypes.c_void_p)(base)
    last = 0
    for (leaf, subleaf), mask in _ASKED.items():
        if leaf & _RANGE and leaf > last:  # beyond the last one a CPU answers something else
            continue
        ask(leaf, subleaf, ctypes.addressof(answers))
        if not leaf & _RANGE:
            last = answers[0]
        yield tuple([x for k, x in enumerate(answers) if mask >> (3 - k) & 1])
        if leaf == 1 and answers[2] & _SAVES_STATES:
            yield (ctypes.PYFUNCTYPE(number)(base + 32)(),)


def recognise() -> target.Target:
    """`target.host()`, without LLVM if the disk cache knows this CPU."""
    if config.cpu and config.cpu != "host":
        return target.host()
    _remember()
    return target.host()


@cache
def _remember() -> None:
    """Have `target` know the CPU: from the disk cache, or else from LLVM, for the next process."""
    known = identity()
    if not known or target.is_known():
        return
    about = parts(known + ANY_CPU, llvmlite.__version__)
    key = digest(_NAME, about)
    found, _ = disk.use(key, _NAME, lambda entry: target.from_plain(entry.header))
    if found is None:
        disk.store(key, _NAME, disk.Entry(target.to_plain(target.host()), b"", {"function": _NAME, **about._asdict()}))
    else:
        target.know(found)
