"""Object code put into memory without LLVM's linker, and the CPU asked without LLVM."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import pytest

from jitgraph import target
from jitgraph.config import config
from jitgraph.errors import InternalError
from jitgraph.runtime import cpu, elf, engine, linking

pytestmark = pytest.mark.skipif(not elf.is_known_system(), reason="object code of other systems is LLVM's to load")

#: Constants to read, memory to write, a table of addresses, a function of the C library, one function that calls another.
TEXT = """
@state = internal global i32 5
@zeros = internal global [100 x i64] zeroinitializer
@word = constant [8 x i32] [i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8]
@visible = global i32 9
@pointers = internal constant [2 x ptr] [ptr @first, ptr @second]
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal i32 @first(i32 %x) noinline {
  %y = load i32, ptr @state
  %z = add i32 %x, %y
  store i32 %z, ptr @state
  ret i32 %z
}
define internal i32 @second(i32 %x) noinline {
  %at = getelementptr [8 x i32], ptr @word, i32 0, i32 %x
  %y = load i32, ptr %at
  %v = load i32, ptr @visible
  %z = mul i32 %y, %v
  ret i32 %z
}
define i32 @call(i32 %which, i32 %x) {
  %at = getelementptr [2 x ptr], ptr @pointers, i32 0, i32 %which
  %f = load ptr, ptr %at
  %r = call i32 %f(i32 %x)
  ret i32 %r
}
define i32 @fill(i32 %n, i32 %k) {
  %bytes = zext i32 %n to i64
  call void @llvm.memset.p0.i64(ptr @zeros, i8 1, i64 %bytes, i1 false)
  %at = getelementptr [100 x i64], ptr @zeros, i32 0, i32 %k
  %v = load i64, ptr %at
  %r = trunc i64 %v to i32
  ret i32 %r
}
"""


def function(image: elf.Image, name: str) -> object:
    return linking.function(image.addresses[name], ctypes.c_int32, ctypes.c_int32)


def test_sections_relocations_and_functions_of_the_process() -> None:
    image = elf.place(engine.compile_object(TEXT), ("call", "fill"))
    call, fill = function(image, "call"), function(image, "fill")
    assert [call(0, 10), call(0, 1)] == [15, 16]
    assert [call(1, k) for k in range(8)] == [9 * k for k in range(1, 9)]
    assert [fill(16, 0), fill(16, 1), fill(16, 2)] == [0x01010101, 0x01010101, 0]
    other = elf.place(engine.compile_object(TEXT), ("call",))
    assert function(other, "call")(0, 0) == 5  # memory of its own
    image.close()
    image.close()
    assert function(other, "call")(0, 2) == 7
    other.close()


def test_nothing_may_be_written_that_runs() -> None:
    image = elf.place(engine.compile_object(TEXT), ("call",))
    at = image.addresses["call"]
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ours = [m for m in maps if int(m[0].partition("-")[0], 16) <= at < int(m[0].partition("-")[2], 16)]
    assert [m[1] for m in ours] == ["r-xp"]
    image.close()


def test_memory_goes_with_the_library() -> None:
    def count() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    codes = [engine.compile_object(f"define i32 @entry() {{\n  ret i32 {k}\n}}\n") for k in range(1000, 1040)]
    before = count()
    libraries = [linking.link(code, ("entry",)) for code in codes]
    assert [linking.function(x.addresses["entry"])() for x in libraries] == list(range(1000, 1040))
    del libraries
    assert count() <= before + 4


@pytest.mark.parametrize("keep", [0, 10, 63, 64, 200, -1])
def test_files_that_end_too_early(keep: int) -> None:
    code = engine.compile_object(TEXT)
    with pytest.raises(elf.Unfamiliar):
        elf.place(code[:keep], ("call",))


def test_damaged_files_are_refused_or_placed_but_never_read_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    code = engine.compile_object(TEXT)
    head = elf._HEAD.unpack_from(code)
    sections = head[8]
    refused = 0
    for at in range(sections, len(code), 3):
        damaged = bytearray(code)
        damaged[at] ^= 0x7F
        try:
            elf.place(bytes(damaged), ("call",)).close()
        except (elf.Unfamiliar, MemoryError):
            refused += 1
    assert refused > 20


def test_what_is_not_known_is_left_to_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    code = engine.compile_object(TEXT + "; for LLVM\n@more = global i64 77\n")
    monkeypatch.delitem(elf._RELOCATIONS, 2)
    with pytest.raises(elf.Unfamiliar, match="relocation 2"):
        elf.place(code, ("call",))
    library = linking.link(code, ("call",))
    assert linking.function(library.addresses["call"], ctypes.c_int32, ctypes.c_int32)(1, 0) == 9


def test_a_function_that_is_nowhere() -> None:
    text = (
        "declare i32 @jitgraph_nowhere()\ndefine i32 @entry() {\n  %r = call i32 @jitgraph_nowhere()\n  ret i32 %r\n}\n"
    )
    code = engine.compile_object(text)
    with pytest.raises(elf.Unfamiliar, match="jitgraph_nowhere"):
        elf.place(code, ("entry",))
    with pytest.raises(elf.Unfamiliar, match="no function other"):
        elf.place(engine.compile_object(TEXT), ("call", "other"))
    with pytest.raises(InternalError, match="does not link"):
        linking.link(code, ("entry",))


def test_another_machine() -> None:
    code = bytearray(engine.compile_object(TEXT))
    struct.pack_into("<H", code, 18, 183)  # AArch64
    with pytest.raises(elf.Unfamiliar, match="x86-64"):
        elf.place(bytes(code), ("call",))


def test_the_cpu_is_the_one_that_llvm_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(cpu.identity()) == 64
    cpu.identity.cache_clear()
    assert cpu.identity() == cpu.identity()
    expected = target._detect()
    with config.override(cache_dir=str(tmp_path)):
        for _ in range(2):  # written, then read
            cpu._remember.cache_clear()
            monkeypatch.setattr(target, "_known", [])
            target._detect.cache_clear()
            assert cpu.recognise() == expected
        assert target._known == [expected]
        assert target._detect.cache_info().currsize == 0
    cpu._remember.cache_clear()
