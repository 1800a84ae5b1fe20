"""Entries whose checksum is right and whose content is none that their reader knows: misses, which the log tells of."""

from __future__ import annotations

import marshal
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import compiler, target
from jitgraph.cache import disk
from jitgraph.config import config
from jitgraph.native import code
from jitgraph.runtime import cpu, prebuilt

X = np.linspace(-1.0, 2.0, 24).reshape(4, 6)
LIMIT = 2.5
#: What is no object code; the last one begins like some.
NO_CODE = (b"", b"code", bytes(4096), b"\x7fELF\x02\x01\x01" + bytes(57), b"\x7fELF" + bytes(range(256)) * 8)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> Iterator[None]:
    with config.override(cache_dir=str(tmp_path / "cache"), verify=False, log="miss"):
        compiler._codes.clear()
        yield
        compiler._codes.clear()


def program(x: Any, y: Any) -> Any:
    if y.shape[0] == x.shape[0]:
        x = x + y.reshape(-1, 1)
    return np.sqrt(np.abs(x)) * LIMIT, x[1:, ::2], {"n": x.shape[0], "rows": [x.sum(axis=1), y]}, x.max()


ARGS = (X, np.arange(4.0))


def entry_of(wanted: Callable[[disk.File], bool]) -> tuple[str, str, disk.Entry]:
    """Key, name and content of the one entry that is `wanted`."""
    (file,) = filter(wanted, disk.files())
    found = disk.about(file)
    assert found is not None
    entry = disk.load(file.key, found[0]["function"])
    assert entry is not None
    return file.key, found[0]["function"], replace(entry, text=found[1])


def is_trace(file: disk.File) -> bool:
    return file.name.startswith("trace-of")


def is_graph(file: disk.File) -> bool:
    return file.name == "program"


def answered() -> Any:
    """A new jitted function, whose results are NumPy's."""
    f = jg.jit(program)
    compiler._codes.clear()
    (a, b, c, d), (a2, b2, c2, d2) = f(*ARGS), program(*ARGS)
    for got, want in ((a, a2), (b, b2), (c["rows"][0], c2["rows"][0]), (d, d2)):
        assert type(got) is type(want)
        assert np.array_equal(got, want)
    assert c["n"] == 4
    assert c["rows"][1] is ARGS[1]
    return f


def of_graphs(plain: dict[str, Any], code: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Headers and codes of another form."""
    for wrong in NO_CODE:
        yield plain, wrong
    yield {}, code
    for name, value in plain.items():
        yield {k: v for k, v in plain.items() if k != name}, code
        for other in (None, "text", [["text"]], -1, {"x": 0}, {"99": []}, {"0": [1]}):
            if type(other) is not type(value) or value != other:
                yield {**plain, name: other}, code
    yield {**plain, "arguments": 3}, code
    yield {**plain, "arrays": [0, 7]}, code
    yield {**plain, "results": [*plain["results"], ["f64", "array", [0], True]]}, code
    yield {**plain, "results": [["f99", *r[1:]] for r in plain["results"]]}, code
    yield {**plain, "results": [[*r[:2], [5, 5], r[3]] for r in plain["results"]]}, code


def test_machine_code_of_another_form(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answered()
    disk.clear(is_trace)
    key, name, entry = entry_of(is_graph)
    monkeypatch.setattr(compiler, "_generate", lambda *_: (entry.code, entry.header))  # what takes long
    for header, wrong in of_graphs(entry.header, entry.code):
        disk.store(key, name, replace(entry, header=header, code=wrong))
        capsys.readouterr()
        compiler._codes.clear()
        compiled = compiler.compile_graph(jg.jit(program).graph(*ARGS))
        said = capsys.readouterr().err
        if compiled.source == "disk":  # it means the same
            assert compiled.executable.interface == compiler.Interface.from_plain(entry.header), header
        else:
            assert f"jitgraph: {name}: the entry on disk does not fit: " in said
            assert compiled.not_on_disk().startswith("the entry on disk does not fit: ")
            assert entry_of(is_graph)[2].code == entry.code  # written anew
    answered()


def test_the_reason_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    answered()
    key, name, entry = entry_of(is_graph)
    disk.store(key, name, replace(entry, header={**entry.header, "arguments": 9}))
    disk.clear(is_trace)
    capsys.readouterr()
    f = answered()
    (miss,) = f.explain_misses()
    reason = "the entry on disk does not fit: ValueError: 9 arguments and 4 results, not 2, 4"
    assert (miss.source, miss.not_on_disk) == ("compiled", reason)
    assert f"jitgraph: program: {reason}\n" in capsys.readouterr().err


def places(x: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The ways to all parts of plain data."""
    yield path
    if isinstance(x, tuple | list):
        for k, part in enumerate(x):
            yield from places(part, (*path, k))


def put(x: Any, path: tuple[int, ...], value: Any) -> Any:
    if not path:
        return value
    return type(x)([put(part, path[1:], value) if k == path[0] else part for k, part in enumerate(x)])


def test_traces_of_another_form(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever part of a trace is something that no trace has there."""
    answered()
    key, name, entry = entry_of(is_trace)
    whole = marshal.loads(entry.code)
    rng = random.Random(0)
    ways = [p for p in places(whole[:-1]) if p]
    assert len(ways) > 200
    contents = [marshal.dumps(put(whole, p, ("bogus", 1))) for p in rng.sample(ways, 60)]
    contents += [marshal.dumps((*whole[:-1], wrong)) for wrong in NO_CODE]
    contents += [marshal.dumps(x) for x in (whole[:-1], (*whole, 1), None, 5, "text", [[]] * 7, ((),) * 7)]
    contents += [b"", b"\xff", entry.code[:100]]
    entries = [replace(entry, code=content) for content in contents]
    entries += [replace(entry, header=header) for header in ({}, {**entry.header, "marshal": 3}, {"trace": []})]
    entries += [disk.Entry({}, b"[" * 5000, entry.about)]  # which asks for much memory
    unfit = 0
    for wrong in entries:
        disk.store(key, name, wrong)
        capsys.readouterr()
        f = answered()
        unfit += "the entry on disk does not fit: " in capsys.readouterr().err
        assert len(f.explain_misses()) == 1
    assert unfit > 40
    disk.store(key, name, entry)
    assert "recall" in answered().explain_misses()[0].times_ms


def test_numbers_of_a_trace_that_lead_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    answered()
    key, name, entry = entry_of(is_trace)
    written, exported, is_long, products, blas, interface, machine = marshal.loads(entry.code)
    for other in (
        (written, {"n": 99}, is_long, products, blas, interface, machine),
        (written, exported, is_long, products, blas, {**interface, "results": interface["results"][:1]}, machine),
        (written, exported, is_long, products, blas, {**interface, "arguments": 1}, machine),
        (written, exported, is_long, products, blas, {**interface, "sizes": {"40": []}}, machine),
    ):
        disk.store(key, name, replace(entry, code=marshal.dumps(other)))
        capsys.readouterr()
        answered()
        assert "the entry on disk does not fit: ValueError" in capsys.readouterr().err


def test_a_cpu_of_another_form(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if not cpu.identity():
        pytest.skip("this CPU cannot be asked")
    plain = target.to_plain(target.host())

    def known() -> list[target.Target]:
        monkeypatch.setattr(target, "_known", [])
        monkeypatch.setattr(target, "is_known", lambda: False)
        cpu._remember.cache_clear()
        cpu.recognise()
        return target._known

    assert known() == []
    assert known() == [target.from_plain(plain)]
    key, name, entry = entry_of(lambda f: f.name == "jitgraph-cpu")
    wrong: list[dict[str, Any]] = [{}, {**plain, "more": 1}]
    wrong += [{k: v for k, v in plain.items() if k != name} for name in plain]
    wrong += [{**plain, name: None} for name in plain]
    for header in wrong:
        disk.store(key, name, replace(entry, header=header))
        capsys.readouterr()
        assert known() == []
        assert "jitgraph: jitgraph.cpu: the entry on disk does not fit: TypeError" in capsys.readouterr().err
        assert known() == [target.from_plain(plain)]
    cpu._remember.cache_clear()


def text_of(triple: str) -> str:
    return f'target triple = "{triple}"\ndefine i32 @answer() {{\n  ret i32 42\n}}\n'


def test_prebuilt_code_of_another_form(capsys: pytest.CaptureFixture[str]) -> None:
    def made() -> None:
        assert prebuilt.linked("jitgraph.test", text_of, "test", ("answer",)).keys() == {"answer"}

    made()
    key, name, entry = entry_of(lambda f: f.name == "jitgraph-test")
    for wrong in NO_CODE:
        disk.store(key, name, replace(entry, code=wrong))
        capsys.readouterr()
        assert prebuilt.stored("jitgraph.test", "test", ("answer",)) is None
        assert "jitgraph: jitgraph.test: the entry on disk does not fit: " in capsys.readouterr().err
        made()
        assert entry_of(lambda f: f.name == "jitgraph-test")[2].code == entry.code
    assert prebuilt.stored("jitgraph.test", "test", ("no_function",)) is None


def test_the_dispatcher_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its code is there is asked by loading it."""
    offset = 16
    monkeypatch.setattr(code, "_addresses", {})
    monkeypatch.setattr(code, "_waited", 0)
    if code.layout.refusal():
        pytest.skip("calls go through Python here")
    read: list[str] = []
    real = disk._read
    monkeypatch.setattr(disk, "_read", lambda path: (read.append(path), real(path))[1])
    assert not code.is_due(offset)
    address = code.vectorcall_address(offset)
    assert len(read) == 2  # another process may have written it meanwhile
    monkeypatch.setattr(code, "_addresses", {})
    monkeypatch.setattr(code, "_waited", 0)
    assert code.is_due(offset)
    assert code.is_due(offset)
    assert code.vectorcall_address(offset) == address
    assert len(read) == 3


def test_an_entry_says_texts_of_itself() -> None:
    for about in ({"cpu": 5}, {"function": None}, {"numpy": ["2"]}):
        disk.store("ab" * 32, "f", disk.Entry({}, b"", about))  # type: ignore[arg-type]
        assert disk.load("ab" * 32, "f") is None
        assert list(disk.files()) == []
