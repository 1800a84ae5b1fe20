"""LLVM behind two functions: IR text to object code, object code to addresses in this process.

Object code holds no address of the process, so that its bytes may be stored and loaded by another one. The JIT and
every library loaded live for ever: code may be running in some thread, and kernels are small.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import llvmlite.binding as llvm

from jitgraph.errors import InternalError
from jitgraph.target import Target, host

_T = TypeVar("_T")
_lock = threading.Lock()
_started = False
_local = threading.local()
_jit: llvm.LLJIT | None = None
_libraries: list[llvm.ResourceTracker] = []
#: What is linked already: it lives for ever, so equal code is not linked again.
_loaded: dict[tuple[bytes, tuple[str, ...]], dict[str, int]] = {}
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
        machines[key] = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=opt, reloc="pic", codemodel="small"
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
        passes: LLVM's mid-level passes to run, as llvmlite names them. Kernels need none: their text is as it should be.

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


def load(code: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link object code into this process; addresses of the exported functions `names`. Equal code is linked once.

    Raises:
        InternalError: the code does not link, as when its bytes are damaged.
    """
    global _jit
    _start()
    with _lock:
        known = _loaded.get((code, tuple(names)))
        if known is not None:
            return known
        if _jit is None:
            _jit = _immortal(llvm.create_lljit_compiler())
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in names:
            library.export_symbol(name)
        try:
            tracker = library.link(_jit, f"jitgraph.{next(_numbers)}")
        except RuntimeError as e:
            raise InternalError(f"generated code does not link: {e}") from e
        _libraries.append(_immortal(tracker))
        addresses = {name: int(tracker[name]) for name in names}
        _loaded[code, tuple(names)] = addresses
        return addresses


def _immortal(x: _T) -> _T:
    """x, which outlives the interpreter: arrays that die at its end still call the code that takes their memory."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return x


def function(address: int, *argument_types: type, hold_gil: bool = False) -> Callable[..., int]:
    """A C function at `address` that returns int32; the GIL is released around calls unless `hold_gil`."""
    prototype = ctypes.PYFUNCTYPE if hold_gil else ctypes.CFUNCTYPE
    called: Callable[..., int] = prototype(ctypes.c_int32, *argument_types)(address)
    return called
