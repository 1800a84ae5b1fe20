"""LLVM behind a few functions: IR text to object code, and object code to addresses where `linking` asks for that.

Object code holds no address of the process, so that its bytes may be stored and loaded by another one.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

from jitgraph.errors import InternalError
from jitgraph.forking import not_while, open_in_child
from jitgraph.target import Target, host

_lock = threading.Lock()
open_in_child(_lock)
not_while(llvm.ffi.lib._lock.__enter__, lambda: llvm.ffi.lib._lock.__exit__(None, None, None))
_started = False
_local = threading.local()
#: LLVM's linker that is in use, and how many libraries it has linked.
_jit: llvm.LLJIT | None = None
_jit_links = 0
#: Libraries of one linker: what it keeps of each (some 9 KB) goes only when it goes itself, with the last of them.
LINKS = 16
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


def process_triple() -> str:
    """What LLVM calls this machine and system."""
    return str(llvm.get_process_triple())


def assembly_of(text: str, target: Target | None = None, *, opt: int = 2) -> str:
    """The assembly of LLVM IR `text`, for people to read."""
    machine = _machine(target or host(), opt)
    return str(machine.emit_assembly(_parse(text, verify=False)))


def link_by_llvm(code: bytes, names: Sequence[str]) -> tuple[dict[str, int], Callable[[], None]]:
    """Addresses of the functions `names` of object code that LLVM has linked, and what takes the memory back.

    Raises:
        InternalError: the code does not link, as when its bytes are damaged.
    """
    global _jit, _jit_links
    _start()
    with _lock:
        if _jit is None or _jit_links >= LINKS:
            _jit, _jit_links = llvm.create_lljit_compiler(), 0
        _jit_links += 1
        linker = _jit
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            tracker = builder.link(linker, f"jitgraph.{next(_numbers)}")
        except RuntimeError as e:
            raise InternalError(f"generated code does not link: {e}") from e
    held = [linker]

    def close() -> None:
        tracker.close()
        held.clear()  # of the library first, of the linker if this was its last one

    return {name: int(tracker[name]) for name in names}, close
