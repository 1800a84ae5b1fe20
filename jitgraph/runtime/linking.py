"""Object code to addresses in this process, and functions of ctypes at these.

What `load` links lives for ever; what `link` links goes when nobody holds the `Library` any more: whoever calls its
code holds it while the call runs. Where `elf` knows the files of this machine, no LLVM is needed for it.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import ref

from jitgraph.cache.key import checksum
from jitgraph.forking import open_in_child
from jitgraph.runtime import elf

_T = TypeVar("_T")
_lock = threading.Lock()
open_in_child(_lock)
_Key = tuple[bytes, tuple[str, ...]]
#: What is linked, by digest and exports: equal code is not linked again.
_linked: dict[_Key, ref[Library]] = {}
#: Where each library is found, and what takes its memory back.
_links: dict[ref[Library], tuple[_Key, Callable[[], None]]] = {}


class Library:
    """Object code linked into this process, as long as somebody holds it.

    It is hidden from the cycle collector, which runs the finalisers of all objects in a cycle, in any order, before it
    takes one apart: the code would go while another finaliser may still call it. It is in no cycle itself.

    Attributes:
        addresses: of the exported functions.
    """

    __slots__ = ("__weakref__", "addresses")

    def __init__(self, addresses: dict[str, int]) -> None:
        self.addresses = addresses
        ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(self))


def _ended(link: ref[Library]) -> None:
    """Take the memory of a library back, when nobody can get it from here any more.

    A method `__del__` of the library would run before that, and let go of the GIL in the middle: another thread would
    be given code that is not there.
    """
    key, close = _links.pop(link)
    if _linked.get(key) is link:
        _linked.pop(key, None)
    close()


@atexit.register
def _leave_linked() -> None:
    """At the end of the process code stays: threads that nobody waits for may be running in it."""
    for link in list(_links):
        library = link()
        if library is not None:
            _immortal(library)


def load(code: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link object code for ever; see `link`."""
    return _immortal(link(code, names)).addresses


def link(code: bytes, names: Sequence[str]) -> Library:
    """Link object code into this process, for the exported functions `names`. Equal code is linked once.

    Raises:
        InternalError: the code does not link, as when its bytes are damaged.
    """
    key = (checksum(code), tuple(names))
    with _lock:
        found = _linked.get(key)
        known = found() if found is not None else None
        if known is None:
            addresses, close = _placed(code, names)
            known = Library(addresses)
            found = ref(known, _ended)
            _links[found] = key, close
            _linked[key] = found
        return known


def _placed(code: bytes, names: Sequence[str]) -> tuple[dict[str, int], Callable[[], None]]:
    """Addresses, and what takes the memory back."""
    if elf.is_known_system():
        try:
            image = elf.place(code, names)
        except (elf.Unfamiliar, MemoryError):  # LLVM knows more, and says what is wrong
            pass
        else:
            return image.addresses, image.close
    from jitgraph.runtime.engine import link_by_llvm

    return link_by_llvm(code, names)


def _immortal(x: _T) -> _T:
    """x, which outlives the interpreter: arrays that die at its end still call the code that takes their memory."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return x


def function(address: int, *argument_types: type, hold_gil: bool = False) -> Callable[..., int]:
    """A C function at `address` that returns int32; the GIL is released around calls unless `hold_gil`."""
    prototype = ctypes.PYFUNCTYPE if hold_gil else ctypes.CFUNCTYPE
    called: Callable[..., int] = prototype(ctypes.c_int32, *argument_types)(address)
    return called
