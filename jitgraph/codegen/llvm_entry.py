"""The entry as functions of bounded length, each of which ends with a call of the next one.

What LLVM does with a function takes time that grows faster than its length (registers and stack slots of values that
live long). Invariants:

1. Parts end between two statements of the entry itself, so what one computes in front of its end dominates that end.
2. What a later part reads of an earlier one goes through a frame on the first one's stack: stored at the end of the
   part that computed it, loaded at the beginning of each part that reads it. Literals and globals need no slot.
3. An entry that exchanges buffers is one part: where those are is a variable of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from jitgraph.abi import SLOT_BYTES, SLOT_DATA, SLOT_STRIDES
from jitgraph.codegen.assembler import V
from jitgraph.codegen.llvm_calls import load_scalar
from jitgraph.codegen.llvm_function import I64, FunctionEmitter, Memory
from jitgraph.codegen.llvm_memory import set_buffer
from jitgraph.codegen.loops import Program
from jitgraph.codegen.loops_walk import swapped

if TYPE_CHECKING:
    from jitgraph.codegen.llvm import ModuleEmitter

#: Lines of a part, about.
LONGEST_PART = 3000
_PARAMETERS = ("%ctx", "%args", "%results", "%dims", "%scratch", "%frame")
_X = TypeVar("_X")


class _Names(dict[str, _X]):
    """What a part knows by name; `find` gets what earlier parts know, at the first use."""

    def __init__(self, find: Callable[[str], _X | None]) -> None:
        super().__init__()
        self.find = find

    def __missing__(self, name: str) -> _X:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        self[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def get(self, name: Any, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


class EntryEmitter:
    """Emits an entry; `f` is the part at hand.

    Args:
        longest: lines of a part.
    """

    def __init__(self, module: ModuleEmitter, name: str, p: Program, longest: int) -> None:
        self.module = module
        self.name = name
        self.p = p
        self.longest = longest
        self.swaps = swapped(p.entry)
        self.f = FunctionEmitter(module, self.swaps)
        self.f.polls = True
        self.parts = [self.f]
        #: What the parts before the present one know: the emitter that computed it, and its value there.
        self._values: dict[tuple[str, str], tuple[FunctionEmitter, V]] = {}
        self._depths: dict[str, int] = {}
        #: Loaded from the frame by the present part.
        self._loaded: dict[tuple[str, str], V] = {}
        self._slots: dict[tuple[FunctionEmitter, str], int] = {}
        self._spills: dict[FunctionEmitter, list[tuple[V, int]]] = {}

    def emit(self) -> None:
        """Bind sizes, strides, buffers and scalars, then run the program's body."""
        p, args, results = self.p, V("%args", "ptr"), V("%results", "ptr")
        for k, (symbol, _, _) in enumerate(p.dims):
            a = self.f.a
            self.f.bind(symbol, a.load(a.gep(V("%dims", "ptr"), 8 * k, "i8"), I64, align=8))
            self._may_end_part()
        for symbol, value in p.sizes:
            self.f.bind(symbol, self.f.dim(value))
            self._may_end_part()
        for e in p.entry_buffers:
            a = self.f.a
            slots = args if e.source == "arg" else results
            at = e.slot * SLOT_BYTES
            if any(e.stride_symbols):
                strides = a.load(a.gep(slots, at + SLOT_STRIDES, "i8"), "ptr", align=8)
                for axis, symbol in enumerate(e.stride_symbols):
                    if symbol:
                        self.f.bind(symbol, a.load(a.gep(strides, 8 * axis, "i8"), I64, align=8))
            set_buffer(self.f, e.buffer, a.load(a.gep(slots, at + SLOT_DATA, "i8"), "ptr", align=8), 0)
            self._may_end_part()
        for k, (buffer, array) in enumerate(p.tables):
            set_buffer(self.f, buffer, self.module.table(k, array), 0)
        for scalar, slot in p.entry_scalars:
            load_scalar(self.f, scalar, args, slot * SLOT_BYTES)
            self._may_end_part()
        for s in p.entry:
            self.f.statements([s])
            self._may_end_part()
        self.f.a.ret(V("0", "i32"))
        self._write()

    def _may_end_part(self) -> None:
        """Go on in a function of its own if this one has grown long."""
        f = self.f
        f.may_end_block()
        if len(f.a.lines) + len(f.entry_lines) + len(f.reloads) < self.longest or self.swaps:
            return
        for kind, known in (("value", f.values), ("symbol", f.symbols), ("buffer", f.buffers)):
            for name, x in known.items():
                value = x if isinstance(x, V) else x.pointer
                if self._loaded.get((kind, name)) is not value:
                    self._values[kind, name] = f, value
                    if isinstance(x, Memory):
                        self._depths[name] = x.depth
        self._loaded = {}
        self._spills[f] = []
        self.f = g = FunctionEmitter(self.module)
        g.a.label("start")
        g.polls = True
        g.depths = f.depths
        g.values = _Names(lambda name: self._find("value", name))
        g.symbols = _Names(lambda name: self._find("symbol", name))
        g.buffers = _Names(self._find_buffer)
        self.parts.append(g)

    def _find(self, kind: str, name: str) -> V | None:
        """What an earlier part knows, in the present one."""
        known = self._values.get((kind, name))
        if known is None:
            return None
        owner, value = known
        if value.is_constant or value.text in _PARAMETERS:
            return value
        slot = self._slots.get((owner, value.text))
        if slot is None:
            slot = self._slots[owner, value.text] = len(self._slots)
            self._spills[owner].append((value, slot))
        a = self.f.a
        memory = {"half": "i16", "i1": "i8"}.get(value.ty, value.ty)

        def load() -> V:
            x = a.load(a.gep(V("%frame", "ptr"), 8 * slot, "i8"), memory, align=8)
            return (
                a.icmp("ne", x, V("0", "i8")) if value.ty == "i1" else a.bitcast(x, "half") if value.ty == "half" else x
            )

        found = self._loaded[kind, name] = self.f.reload(load)
        return found

    def _find_buffer(self, name: str) -> Memory | None:
        pointer = self._find("buffer", name)
        return None if pointer is None else Memory(pointer, None, self._depths[name])

    def _write(self) -> None:
        """The text of all parts."""
        last = len(self.parts) - 1
        parameters = ", ".join(f"ptr {name}" for name in _PARAMETERS)
        for k, f in enumerate(self.parts):
            a = f.a
            if k < last:
                for value, slot in self._spills[f]:
                    a.store(f.to_memory(value), a.gep(V("%frame", "ptr"), 8 * slot, "i8"), align=8)
                    f.may_end_block()
                a.ret(a.define(f"call i32 @{self.name}.{k + 1}({parameters})", "i32"))
            if k:
                text = self.module.body(f, parameters)
                self.module.functions.append(f"define internal i32 @{self.name}.{k}{text}")
                continue
            if last:
                f.entry_lines.insert(0, f"  %frame = alloca i64, i64 {max(1, len(self._slots))}, align 8")
            text = self.module.body(f, ", ".join(f"ptr {name}" for name in _PARAMETERS[:-1]))
            self.module.functions.append(f"define i32 @{self.name}{text}")
