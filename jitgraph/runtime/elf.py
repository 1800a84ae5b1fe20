"""Object code to memory without LLVM: the relocatable ELF files that it makes for x86-64, as far as ours go.

Loading LLVM takes longer than everything else that a process needs to run machine code from the disk cache. What is
put into memory here is sections that code reads or runs (one mapping, then read-only) and sections that it writes
(the pages behind it). Whatever a file has beyond what is listed in `_RELOCATIONS` is not ours to load: `place` says
so, and LLVM's linker takes it.

Source: "System V Application Binary Interface, AMD64 Architecture Processor Supplement", chapters 4.1 and 4.4.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Sequence
from functools import cache

_HEAD = struct.Struct("<4sBBBB8xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_RELOCATABLE, _X86_64 = 1, 62
_NOBITS, _RELA, _SYMTAB = 8, 4, 2
_WRITE, _ALLOC, _TLS = 0x1, 0x2, 0x400
_UNDEFINED, _RESERVED = 0, 0xFF00
_READ_RUN = mmap.PROT_READ | mmap.PROT_EXEC
#: jmp *0(%rip), whose target's address stands behind it.
_STUB = b"\xff\x25\x00\x00\x00\x00"
_STUB_BYTES = 16
#: No program is as large as this.
_MOST_BYTES = 1 << 28
#: Kinds of relocations by number: value, bytes.
_ABSOLUTE, _RELATIVE, _CALL, _BY_TABLE = range(4)
_RELOCATIONS = {
    1: (_ABSOLUTE, 8),
    2: (_RELATIVE, 4),
    4: (_CALL, 4),
    9: (_BY_TABLE, 4),
    41: (_BY_TABLE, 4),
    42: (_BY_TABLE, 4),
}


class Unfamiliar(Exception):  # noqa: N818  # an answer
    """A file that is not loaded here."""


class _Section:
    __slots__ = ("address", "align", "entry", "flags", "info", "kind", "link", "name", "offset", "size")

    def __init__(self, row: tuple[int, ...]) -> None:
        (
            self.name, self.kind, self.flags, self.address, self.offset, self.size, self.link, self.info, self.align,
            self.entry,
        ) = row  # fmt: skip


class Image:
    """Code in memory, until `close`.

    Attributes:
        at: where it begins.
        addresses: of the exported functions.
    """

    __slots__ = ("_bytes", "addresses", "at")

    def __init__(self, at: int, size: int) -> None:
        self.at, self._bytes = at, size
        self.addresses: dict[str, int] = {}

    def close(self) -> None:
        """Give the memory back."""
        at, self.at = self.at, 0
        if at:
            _system().munmap(at, self._bytes)


class _System:
    """Functions of the C library."""

    def __init__(self) -> None:
        self.process = ctypes.CDLL(None)
        word, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
        source = self.process
        self.mmap = ctypes.CFUNCTYPE(pointer, pointer, word, number, number, number, ctypes.c_long)(("mmap", source))
        self.munmap = ctypes.CFUNCTYPE(number, pointer, word)(("munmap", source))
        self.mprotect = ctypes.CFUNCTYPE(number, pointer, word, number)(("mprotect", source))


_system = cache(_System)


def is_known_system() -> bool:
    """Whether object code of this machine is what this module knows."""
    return sys.platform == "linux" and sys.maxsize > 2**32 and os.uname().machine == "x86_64"


def place(code: bytes, names: Sequence[str]) -> Image:
    """Put object code into memory.

    Args:
        names: exported functions.

    Raises:
        Unfamiliar: it has something that is not known here, or is no object code.
        MemoryError: the system gives no memory, or none that code may run in.
    """
    try:
        return _Placed(code).image(names)
    except (struct.error, IndexError, ValueError, KeyError) as e:
        raise Unfamiliar(f"no such object file: {e}") from e


def map_code(code: bytes) -> Image:
    """Machine code that needs nothing else, at the address "code".

    Raises:
        MemoryError: the system gives no memory, or none that code may run in.
    """
    size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
    made = _reserved(size)
    made.addresses["code"] = made.at
    _put(made, code, size)
    return made


def _reserved(size: int) -> Image:
    """Pages to write to."""
    at = _system().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if at is None or at == ctypes.c_void_p(-1).value:
        raise MemoryError("no memory for machine code")
    return Image(at, size)


def _put(image: Image, content: bytes, runs: int) -> None:
    """Fill the pages, of which the first `runs` bytes may run from then on, and not be written any more."""
    ctypes.memmove(image.at, content, len(content))
    if runs and _system().mprotect(image.at, runs, _READ_RUN):
        image.close()
        raise MemoryError("the system lets no new code run")


class _Placed:
    """One file on its way into memory: offsets in the image of sections, symbols, stubs and table entries."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        head = _HEAD.unpack_from(code)
        magic, bits, order, _, _, kind, machine, _, _, _, sections, _, _, _, _, size, count, _ = head
        if (magic, bits, order, kind, machine, size) != (b"\x7fELF", 2, 1, _RELOCATABLE, _X86_64, _SECTION.size):
            raise Unfamiliar("no relocatable file of x86-64")
        end = sections + size * count
        if not 0 < sections <= end <= len(code):
            raise Unfamiliar("a file that ends too early")
        self.sections = [_Section(row) for row in _SECTION.iter_unpack(code[sections:end])]
        #: Offset of each section that is loaded.
        self.at: dict[int, int] = {}
        self.stubs: dict[int, int] = {}
        self.table: dict[int, int] = {}
        tables = [s for s in self.sections if s.kind == _SYMTAB]
        if len(tables) != 1:
            raise Unfamiliar("no table of symbols")
        self.symbols = list(_SYMBOL.iter_unpack(self._bytes(tables[0])))
        self.strings = self._bytes(self.sections[tables[0].link])
        self.patches = self._patches()
        self.size = self.writable = 0
        self._lay_out()

    def _bytes(self, s: _Section) -> bytes:
        found = self.code[s.offset : s.offset + s.size]
        if len(found) != s.size:
            raise Unfamiliar("a file that ends too early")
        return found

    def _name(self, symbol: int) -> str:
        start = self.symbols[symbol][0]
        return self.strings[start : self.strings.index(b"\0", start)].decode()

    def _patches(self) -> list[tuple[int, int, int, int, int, int]]:
        """(section, offset, kind, bytes, symbol, addend) of each place to fill in."""
        found = []
        for s in self.sections:
            if s.kind == 9 or (s.kind == _RELA and s.entry != _RELOCATION.size):
                raise Unfamiliar("relocations in another form")
            if s.kind != _RELA or not self.sections[s.info].flags & _ALLOC:
                continue
            target = self.sections[s.info]
            for offset, kind, symbol, addend in _RELOCATION.iter_unpack(self._bytes(s)):
                if kind not in _RELOCATIONS:
                    raise Unfamiliar(f"relocation {kind}")
                how, size = _RELOCATIONS[kind]
                if offset + size > target.size or target.kind == _NOBITS:
                    raise Unfamiliar("a relocation outside of its section")
                if how == _CALL and self.symbols[symbol][3] == _UNDEFINED:
                    self.stubs.setdefault(symbol, 0)
                if how == _BY_TABLE:
                    self.table.setdefault(symbol, 0)
                found.append((s.info, offset, how, size, symbol, addend))
        return found

    def _lay_out(self) -> None:
        """Offsets of everything: what is only read and run, then, on pages of its own, what is written."""
        at = 0
        for written in (False, True):
            if written:
                for symbol in self.stubs:
                    at = -(-at // _STUB_BYTES) * _STUB_BYTES
                    self.stubs[symbol] = at
                    at += _STUB_BYTES
                for symbol in self.table:
                    at = -(-at // 8) * 8
                    self.table[symbol] = at
                    at += 8
                at = self.writable = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE
            for k, s in enumerate(self.sections):
                if not s.flags & _ALLOC or bool(s.flags & _WRITE) != written:
                    continue
                if s.flags & _TLS or s.align > mmap.PAGESIZE:
                    raise Unfamiliar("a section that is none of ours")
                at = -(-at // max(1, s.align)) * max(1, s.align)
                self.at[k] = at
                at += s.size
        if at > _MOST_BYTES:
            raise Unfamiliar("a file that asks for much memory")
        self.size = -(-max(at, 1) // mmap.PAGESIZE) * mmap.PAGESIZE

    def _value(self, symbol: int, base: int) -> int:
        """The address of a symbol."""
        _, _, _, section, value, _ = self.symbols[symbol]
        if section == _UNDEFINED:
            return _address(self._name(symbol))
        if section >= _RESERVED:
            raise Unfamiliar("a symbol of no section")
        if value > self.sections[section].size:
            raise Unfamiliar("a symbol outside of its section")
        return base + self.at[section] + int(value)

    def image(self, names: Sequence[str]) -> Image:
        content = bytearray(self.size)
        for k, at in self.at.items():
            s = self.sections[k]
            if s.kind != _NOBITS:
                content[at : at + s.size] = self._bytes(s)
        made = _reserved(self.size)
        try:
            self._fill(content, made.at)
            made.addresses.update(self._exports(names, made.at))
        except BaseException:
            made.close()
            raise
        _put(made, bytes(content), self.writable)
        return made

    def _fill(self, content: bytearray, base: int) -> None:
        for symbol, at in self.stubs.items():
            content[at : at + _STUB_BYTES] = (_STUB + struct.pack("<Q", self._value(symbol, base))).ljust(_STUB_BYTES)
        for symbol, at in self.table.items():
            struct.pack_into("<Q", content, at, self._value(symbol, base))
        for section, offset, how, _, symbol, addend in self.patches:
            at = self.at[section] + offset
            if how == _ABSOLUTE:
                struct.pack_into("<Q", content, at, self._value(symbol, base) + addend)
                continue
            if how == _BY_TABLE:
                target = self.table[symbol]
            elif how == _CALL and symbol in self.stubs:
                target = self.stubs[symbol]
            else:
                target = self._value(symbol, base) - base
            struct.pack_into("<i", content, at, target + addend - at)

    def _exports(self, names: Sequence[str], base: int) -> dict[str, int]:
        wanted = set(names)
        found = {}
        for k, (_, info, _, section, _, _) in enumerate(self.symbols):
            if section != _UNDEFINED and info >> 4 and self._name(k) in wanted:
                found[self._name(k)] = self._value(k, base)
        if len(found) != len(wanted):
            raise Unfamiliar(f"no function {min(wanted - found.keys())}")
        return found


def _address(name: str) -> int:
    """Where the C library of the process has a function.

    Raises:
        Unfamiliar: nowhere.
    """
    try:
        return ctypes.cast(getattr(_system().process, name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise Unfamiliar(f"no function {name} in the process") from None
