"""LLVM behind a few functions: IR text to object code, object code to addresses in this process.

Object code holds no address of the process, so that its bytes may be stored and loaded by another one. What `load`
links lives for ever; what `link` links goes when nobody holds the `Library` any more: whoever calls its code holds it
while the call runs.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from jitgraph.cache.key import checksum
from jitgraph.errors import InternalError
from jitgraph.forking import not_while, open_in_child
from jitgraph.target import Target, host

_T = TypeVar("_T")
_lock = threading.Lock()
open_in_child(_lock)
not_while(llvm.ffi.lib._lock.__enter__, lambda: llvm.ffi.lib._lock.__exit__(None, None, None))
_started = False
_local = threading.local()
#: LLVM's linker that is in use, and how many libraries it has linked.
_jit: llvm.LLJIT | None = None
_jit_links = 0
#: Libraries of one linker: what it keeps of each (some 9 KB) goes only when it goes itself, with the last of them.
_LINKS = 16
#: What is linked, by digest and exports: equal code is not linked again.
_linked: WeakValueDictionary[tuple[bytes, tuple[str, ...]], Library] = WeakValueDictionary()
_numbers = itertools.count()


def _start() -> None:
    """Initialise LLVM once.

    Loop strength reduction is off: it takes up to four fifths of the time of code generation and gains nothing on loops
    whose addresses are emitted hoisted. The option is process-wide and has to be set before the first compile.
    """
    global _started
    with _lock:
        if not _started:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            llvm.set_option("jitgraph", "-disable-lsr")
            _started = True


def _machine(target: Target, opt: int) -> llvm.TargetMachine:
    """The code generator for `target`; one for each thread, as they are not thread-safe."""
    _start()
    machines: dict[tuple[str, str, int], llvm.TargetMachine] | None = getattr(_local, "machines", None)
    if machines is None:
        machines = _local.machines = {}
    key = (target.cpu, target.features, opt)
    if key not in machines:
        # LLVM ends the process where a name it does not know, or a 32-bit CPU's, leaves out what every x86-64 has
        least = "+64bit,+sse2" if target.triple.startswith("x86_64") and not target.features else target.features
        machines[key] = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=least, opt=opt, reloc="pic", codemodel="small"
        )
    return machines[key]


def _parse(text: str, *, verify: bool) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text, context=llvm.create_context())
        if verify:
            module.verify()
    except RuntimeError as e:
        raise InternalError(f"LLVM refuses the generated code: {e}") from e
    return module


def compile_object(
    text: str, target: Target | None = None, *, opt: int = 2, verify: bool = False, passes: Sequence[str] = ()
) -> bytes:
    """Object code of LLVM IR `text`.

    Args:
        passes: LLVM's mid-level passes to run, as llvmlite has them.

    Raises:
        InternalError: LLVM refuses the text.
    """
    machine = _machine(target or host(), opt)
    module = _parse(text, verify=verify)
    if passes:
        manager = llvm.create_new_module_pass_manager()
        for name in passes:
            getattr(manager, f"add_{name}_pass")()
        manager.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return bytes(machine.emit_object(module))


def assembly_of(text: str, target: Target | None = None, *, opt: int = 2) -> str:
    """The assembly of LLVM IR `text`, for people to read."""
    machine = _machine(target or host(), opt)
    return str(machine.emit_assembly(_parse(text, verify=False)))


class Library:
    """Object code linked into this process, as long as somebody holds it.

    It is hidden from the cycle collector, which runs the finalisers of all objects in a cycle, in any order, before it
    takes one apart: the code would go while another finaliser may still call it. It is in no cycle itself.

    Attributes:
        addresses: of the exported functions.
    """

    __slots__ = ("__weakref__", "_jit", "_tracker", "addresses")

    def __init__(self, jit: llvm.LLJIT, tracker: llvm.ResourceTracker, names: Sequence[str]) -> None:
        self._jit = jit
        self._tracker = tracker
        self.addresses = {name: int(tracker[name]) for name in names}
        ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(self))

    def __del__(self) -> None:
        """LLVM takes the memory back: of the library first, of the linker if this was its last one."""
        self._tracker.close()


@atexit.register
def _leave_linked() -> None:
    """At the end of the process code stays: threads that nobody waits for may be running in it."""
    for library in list(_linked.values()):
        _immortal(library)


def load(code: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link object code for ever; see `link`."""
    return _immortal(link(code, names)).addresses


def link(code: bytes, names: Sequence[str]) -> Library:
    """Link object code into this process, for the exported functions `names`. Equal code is linked once.

    Raises:
        InternalError: the code does not link, as when its bytes are damaged.
    """
    global _jit, _jit_links
    _start()
    key = (checksum(code), tuple(names))
    with _lock:
        known = _linked.get(key)
        if known is not None:
            return known
        if _jit is None or _jit_links >= _LINKS:
            _jit, _jit_links = llvm.create_lljit_compiler(), 0
        _jit_links += 1
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            tracker = builder.link(_jit, f"jitgraph.{next(_numbers)}")
        except RuntimeError as e:
            raise InternalError(f"generated code does not link: {e}") from e
        library = _linked[key] = Library(_jit, tracker, names)
        return library


def _immortal(x: _T) -> _T:
    """x, which outlives the interpreter: arrays that die at its end still call the code that takes their memory."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return x


def function(address: int, *argument_types: type, hold_gil: bool = False) -> Callable[..., int]:
    """A C function at `address` that returns int32; the GIL is released around calls unless `hold_gil`."""
    prototype = ctypes.PYFUNCTYPE if hold_gil else ctypes.CFUNCTYPE
    called: Callable[..., int] = prototype(ctypes.c_int32, *argument_types)(address)
    return called
