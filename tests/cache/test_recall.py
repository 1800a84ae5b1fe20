"""Traces from disk: calls of a later process need no tracer, and nothing that has changed since is overlooked."""

from __future__ import annotations

import importlib
import json
import numbers
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import recall
from jitgraph.cache import disk
from jitgraph.config import config
from jitgraph.runtime import elf, linking
from jitgraph.tracing import portable

X = np.linspace(-1.0, 2.0, 24).reshape(4, 6)
FACTOR = 3
WEIGHTS = np.arange(6.0)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> Iterator[None]:
    with config.override(cache_dir=str(tmp_path / "cache"), verify=False):
        yield


def recalled(f: Callable[..., Any], *calls: tuple[Any, ...]) -> bool:
    """Whether a new jitted function, which answers as `f` does, needs no trace for any of the calls."""
    made = jg.jit(getattr(f, "__wrapped__", f))
    for args in calls:
        ours, theirs = copies(args), copies(args)
        compare(made(*ours), f(*theirs))
        compare(ours, theirs)
    return all("recall" in miss.times_ms for miss in made.explain_misses())


def copies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([x.copy("K") if isinstance(x, np.ndarray) else x for x in args])


def compare(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            compare(a, b)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        compare(list(found.values()), list(expected.values()))
    else:
        if isinstance(expected, np.ndarray):
            assert (found.dtype, found.strides, found.flags.writeable) == (
                expected.dtype, expected.strides, expected.flags.writeable,
            )  # fmt: skip
        if isinstance(expected, str) or expected is None:
            assert found == expected
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-14)  # exp and tanh are not NumPy's


# --- what is recalled


def helper(x: Any, by: float = 0.5) -> Any:
    return np.sqrt(np.abs(x)) * by


inner = jg.jit(helper)


def ten_operations(x, y):
    a = x * y + 1.0
    b = np.exp(-a) + np.sqrt(np.abs(y))
    c = np.where(a > b, a, b) - x
    return np.tanh(c) * a + b


def in_place(x, n):
    x[1:] += x[:-1] * n
    x *= FACTOR


def pieces(x):
    return x[::2], {"rows": x.shape[0], "sum": x.sum(axis=1)}, x.T, [x.max(), 3, None, "text"]


def loops(x, n):
    total = x[0, 0]
    for i in range(n):
        if x[i, 0] > 0:
            total += x[i, 1]
    return total, helper(x) + inner(x, by=2.0)


def weighted(x, *, scale=2.0):
    return (x @ WEIGHTS) * scale + len(x) + np.pi


def checked(x, k):
    return x[k] + np.float32(1.5)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (ten_operations, (X, X + 1)),
    (in_place, (X, 2)),
    (pieces, (X,)),
    (pieces, (X.T,)),
    (loops, (X, 4)),
    (weighted, (X,)),
    (checked, (X, 2)),
]


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_second_process_needs_no_trace(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert not recalled(f, args)
    assert recalled(f, args)


def test_a_closure(tmp_path: Path) -> None:
    def made(by: Any) -> Callable[..., Any]:
        return lambda x: x * by

    assert not recalled(made(2), (X,))
    assert recalled(made(2), (X,))
    assert not recalled(made(3), (X,))  # another entry of the same key
    assert not recalled(made(np.arange(6.0)), (X,))
    assert recalled(made(2), (X,))
    assert recalled(made(3), (X,))
    assert recalled(made(np.arange(6.0) * 2), (X,))  # an argument that is hidden


def test_sizes_that_compare_in_another_way() -> None:
    def f(x, y):
        return x + y if x.shape[0] == y.shape[0] else x.sum() + y.sum()

    calls = (np.ones(3), np.ones(3)), (np.ones(3), np.ones(4)), (np.ones(7), np.ones(7))
    assert not recalled(f, *calls)
    assert recalled(f, *calls)
    assert recalled(f, *reversed(calls))


def test_more_traces_of_a_key_than_there_is_room_for() -> None:
    def made(by: int) -> Callable[..., Any]:
        return lambda x: x * by

    for by in range(recall._VARIANTS + 2):
        assert not recalled(made(by), (X,))
    assert sum(recalled(made(by), (X,)) for by in range(recall._VARIANTS + 2)) >= recall._VARIANTS - 1


def test_errors_name_the_line(tmp_path: Path) -> None:
    for _ in range(2):
        made = jg.jit(checked)
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4") as info:
            made(X, 9)
        assert "return x[k] + np.float32(1.5)" in "".join(info.value.__notes__)
    assert "recall" in made.explain_misses()[0].times_ms


def test_native_calls_of_a_trace_from_disk() -> None:
    recalled(pieces, (X,))
    made = jg.jit(pieces)
    for _ in range(5):
        compare(made(X), pieces(X))
    assert made.cache_info()[:4] == (4, 1, 0, 1)


# --- what has changed since

SOURCE = """
import math
import numpy as np
LIMIT = 2.0
TABLE = np.arange(3.0)
def helper(x, by=3):
    return x * by
def f(x):
    return helper(x) + LIMIT + math.floor(2.5) + TABLE[0] + len(hex(17)) + abs(-2)
"""


class Modules:
    """A user's module in versions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = 0

    def __call__(self, old: str = "", new: str = "") -> ModuleType:
        self.version += 1
        path = self.folder / "users_module.py"
        path.write_text(SOURCE.replace(old, new) if old else SOURCE)
        os.utime(path, ns=(self.version * 10**9,) * 2)
        sys.modules.pop("users_module", None)
        importlib.invalidate_caches()
        return importlib.import_module("users_module")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Modules(tmp_path)
    sys.modules.pop("users_module", None)


def test_the_same_module_is_recalled(modules: Modules) -> None:
    assert not recalled(modules().f, (X,))
    assert recalled(modules().f, (X,))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 2.0", "LIMIT = 2"),
        ("LIMIT = 2.0", "LIMIT = -0.0"),
        ("by=3", "by=4"),
        ("x * by", "x / by"),
        ("+ LIMIT", "- LIMIT"),
        ("np.arange(3.0)", "np.arange(3)"),
        ("LIMIT = 2.0", "LIMIT = 2.0\ndef abs(a):\n    return a"),
        ("def helper(x, by=3):\n", "def helper(x, by=3):\n    x = x + 1\n"),
    ],
)
def test_a_module_that_was_edited(modules: Modules, old: str, new: str) -> None:
    assert not recalled(modules().f, (X,))
    assert not recalled(modules(old, new).f, (X,))
    assert recalled(modules(old, new).f, (X,))


def test_functions_of_modules_that_are_replaced(modules: Modules, monkeypatch: pytest.MonkeyPatch) -> None:
    import math

    assert not recalled(modules().f, (X,))
    with monkeypatch.context() as m:
        m.setattr(math, "floor", lambda x: 5)
        assert not recalled(modules().f, (X,))
    with monkeypatch.context() as m:
        m.setattr(math, "floor", math.ceil)
        assert not recalled(modules().f, (X,))
    with monkeypatch.context() as m:
        m.setattr("builtins.hex", oct)
        assert not recalled(modules().f, (X,))
    assert recalled(modules().f, (X,))


def test_what_no_entry_is_made_of(tmp_path: Path) -> None:
    class Scaled:
        by = 2.0

    scaled, seen = Scaled(), []

    def imports(x):
        from math import pi

        return x * pi

    def makes(x):
        return x * Scaled().by

    def reads(x):
        return x * scaled.by

    def stores(x):
        seen.append(1)
        return x + 1

    def environment(x):
        return x * len(os.environ.get("HOME", ""))

    def hashes(x):
        return x * (hash("text") % 2)

    def draws(x, rng):
        return x + rng.standard_normal()

    namespace: dict[str, Any] = {"np": np}
    exec("nowhere = lambda x: x + 1", namespace)
    for f in (imports, makes, reads, stores, environment, hashes, namespace["nowhere"]):
        for _ in range(2):
            assert not recalled(f, (X,)), f
    for _ in range(2):
        assert jg.jit(draws)(X, np.random.default_rng(1)) is not X
    assert not [f for f in disk.files() if f.name.startswith("trace-of")]


def of_a_set(x):
    return [x * len(name) for name in {"alpha", "be", "gam"}]  # noqa: PLC0208


def of_a_set_that_grows(x):
    names = {name + "s" for name in ("alpha", "be", "gam")}
    return x * len(names.pop())


def of_a_set_of_keys(x):
    names = {"alpha": 1, "be": 2}
    return [x * len(name) for name in names.keys() & names.keys()]


def of_set(x):
    return x, ",".join(frozenset(("alpha", "be")))


def of_a_hash(x):
    return x * (str.__hash__("text") % 7) + "text".__hash__() % 5


def of_an_address(x):
    return x, f"{helper}"


def of_an_address_that_is_cut(x):
    return x, len(repr(helper)[-4:])


def of_a_class_that_is_abstract(x):
    return x * (2 if isinstance(x, numbers.Number) else 3)


@pytest.mark.parametrize(
    "f",
    [
        of_a_set, of_a_set_that_grows, of_a_set_of_keys, of_set, of_a_hash, of_an_address, of_an_address_that_is_cut,
        of_a_class_that_is_abstract,
    ],
)  # fmt: skip
def test_what_only_this_process_says(f: Callable[..., Any]) -> None:
    for _ in range(2):
        assert not recalled(f, (X,))


def of_no_order(x, kind):
    text = "{}, {!r}, %s".format(len(x), "a") % (kind,) + f"{kind:>3}"
    if kind in {"a", "b"} and isinstance(x, np.ndarray | int) and isinstance(kind, (str, bytes)):
        return x, text, [*{"k": 1}.items()], str([1, ("b", None)])
    return x


def test_sets_that_are_looked_into_and_texts_of_values() -> None:
    assert not recalled(of_no_order, (X, "a"))
    assert recalled(of_no_order, (X, "a"))


def of_constants(x):
    return x + np.float64(1) / np.float64(0), f"{np.float64(0.1)!r}"


def test_what_constants_are_computed_under() -> None:
    made = jg.jit(of_constants)
    with np.errstate(all="ignore"):
        made(X)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        jg.jit(of_constants)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            jg.jit(of_constants)(X)
    with np.errstate(all="ignore"), np.printoptions(legacy="1.25"):
        assert jg.jit(of_constants)(X)[1] == "0.1"
    with np.errstate(all="ignore"):
        assert recalled(of_constants, (X,))


def with_dtype(x):
    return x.dtype.char, x + 1


def test_two_dtypes_of_one_size() -> None:
    x = np.arange(3)
    assert not recalled(with_dtype, (x,))
    assert jg.jit(with_dtype)(x.astype(np.longlong))[0] == np.dtype(np.longlong).char
    assert recalled(with_dtype, (x,))


def test_values_that_cannot_be_written() -> None:
    def f(x, n):
        return x * 2, n % 7, 0xFFFF if n else 0

    for made in (jg.jit(f), jg.jit(f, static_argnames="n")):
        for n in (10**5000, 10**5000 + 1, 2):
            compare(made(X, n), f(X, n))
        assert "bits" in str(made.explain_misses())

    def deep(x):
        found = x
        for _ in range(40):
            found = [found, [found]][:1]
        return found

    for _ in range(2):
        recalled(deep, (X,))


def test_other_options_and_settings() -> None:
    def f(x, n):
        for _ in range(n):
            x = np.sin(x) + 1
        return x

    for options in ({}, {"static_argnames": "n"}, {"fastmath": True}, {"specialize": "shape"}):
        for expected in (False, True):
            made = jg.jit(f, **options)
            made(X, 3)
            assert ("recall" in made.explain_misses()[0].times_ms) is expected, options
    made = jg.jit(f, specialize="shape")
    made(X[:3], 3)
    assert "recall" not in made.explain_misses()[0].times_ms
    with config.override(unroll_limit=2):
        assert not recalled(f, (X, 3))


def test_a_damaged_entry_is_a_miss() -> None:
    recalled(ten_operations, (X, X))
    (entry,) = [f for f in disk.files() if f.name.startswith("trace-of")]
    data = bytearray(entry.path.read_bytes())
    data[len(data) // 2] ^= 1
    entry.path.write_bytes(data)
    assert not recalled(ten_operations, (X, X))
    assert recalled(ten_operations, (X, X))


def test_switched_off() -> None:
    recalled(ten_operations, (X, X))
    for values in ({"cache": False}, {"verify": True}, {"opaque_modules": "users"}):
        with config.override(**values):
            assert not recalled(ten_operations, (X, X))


def by_name(x):
    return x * globals()["BY_NAME"] + globals().get("NOT_THERE", 2)


BY_NAME = 3


def test_globals_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are guards like names in the code: of the trace, and of its entry."""
    made = jg.jit(by_name)
    compare(made(X), by_name(X))
    for name, value in (("BY_NAME", 4), ("NOT_THERE", 0.5), ("BY_NAME", np.arange(6.0))):
        monkeypatch.setitem(globals(), name, value)
        compare(made(X), by_name(X))
        recalled(by_name, (X,))
        assert recalled(by_name, (X,)) or name == "NOT_THERE" or isinstance(value, np.ndarray)
    monkeypatch.undo()
    with config.override(cache=True):
        compare(made(X), by_name(X))
        recalled(by_name, (X,))


def of_keys(tree):
    return {key: x + 1 for key, x in tree.items()}, list(tree)


def test_keys_that_are_equal_and_not_the_same() -> None:
    """1, 1.0 and True are one key to a dict, and three structures to a trace."""
    made = jg.jit(of_keys)
    keys = (1, True, 1.0, (1, 2), (True, 2), 0.0, -0.0)
    for _ in range(3):
        for key in keys:
            found, expected = made({key: X}), of_keys({key: X})
            compare(found[0], expected[0])
            assert repr(found) == repr(expected)
    assert made.cache_info().entries == len(keys)
    for key in keys:
        again = jg.jit(of_keys)
        assert repr(again({key: X})) == repr(of_keys({key: X}))
        assert "recall" in again.explain_misses()[0].times_ms


class Metres(np.float64):
    def __add__(self, other: Any) -> Any:
        return float(self) + 100 + other


LENGTH: Any = Metres(2)


def of_a_subclass(x):
    return x * LENGTH, LENGTH + 1, isinstance(LENGTH, Metres)


def test_subclasses_of_scalars_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are objects of a class of the user's: none is taken for the number that it is equal to."""
    for _ in range(2):
        found, expected = jg.jit(of_a_subclass)(X), of_a_subclass(X)
        assert repr(found) == repr(expected)
    monkeypatch.setitem(globals(), "LENGTH", np.float64(2))
    for _ in range(2):
        found, expected = jg.jit(of_a_subclass)(X), of_a_subclass(X)
        assert repr(found) == repr(expected)
    monkeypatch.undo()
    assert repr(jg.jit(of_a_subclass)(X)) == repr(of_a_subclass(X))

    def plus(a):
        return a + 1

    made = jg.jit(plus)
    for a in (np.float64(2), Metres(2), np.float64(3), Metres(3)) * 2:
        assert repr(made(a)) == repr(plus(a))
        assert repr(jg.jit(plus)(a)) == repr(plus(a))


WITH_ASSERT = """
import numpy as np
import jitgraph as jg

@jg.jit
def f(x):
    assert __debug__ or x.shape[0] != 3
    assert x.shape[0] != 4, "four"
    return x * (2 if __debug__ else 3)

print(f(np.ones(2))[0], "recall" in f.explain_misses()[0].times_ms)
try:
    f(np.ones(4))
except AssertionError as e:
    print(e)
"""


def test_assertions_that_are_left_out(tmp_path: Path, package_copy: Path) -> None:
    """Under `-O` a function is another one."""
    script = tmp_path / "program.py"
    script.write_text(WITH_ASSERT)
    env = {**os.environ, "JITGRAPH_CACHE_DIR": str(tmp_path / "warm"), "PYTHONPATH": str(package_copy)}
    env.pop("JITGRAPH_VERIFY", None)

    def said(*options: str) -> str:
        command = [sys.executable, *options, str(script)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    for expected in (False, True):
        assert said() == f"2.0 {expected}\nfour\n"
        assert said("-O") == f"3.0 {expected}\n"


def test_what_is_linked_by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where our loader does not know the machine, or something in a file, entries are linked by LLVM."""
    assert not recalled(ten_operations, (X, X))
    made = []
    real = elf.place

    def unfamiliar(code: bytes, names: Any) -> Any:
        made.append(names)
        raise elf.Unfamiliar("another relocation")

    monkeypatch.setattr(linking, "_linked", {})
    monkeypatch.setattr(elf, "place", unfamiliar)
    assert recalled(ten_operations, (X, X))
    assert made
    monkeypatch.setattr(linking, "_linked", {})
    monkeypatch.setattr(elf, "place", real)
    assert recalled(ten_operations, (X, X))


def test_digests_go_with_their_code() -> None:
    known = portable.digest_of(by_name.__code__)
    before = len(portable._digests)
    lines = [portable.digest_of(by_name.__code__.replace(co_firstlineno=k + 1)) for k in range(50)]  # in one place
    assert len(portable._digests) <= before
    assert len({*lines, known}) >= 50
    assert portable.digest_of(by_name.__code__) == known


# --- what a process loads

PROGRAM = """
import json, os, sys
import numpy as np
import jitgraph as jg
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)

@jg.jit
def f(x, y):
    a = x * y + 1.0
    b = np.exp(-a) + np.sqrt(y)
    c = np.where(a > b, a, b) - x
    return np.tanh(c) * a + b

before = set(sys.modules)
x = np.linspace(0.1, 1.0, 1000)
result = f(x, x + 1)
loaded = sorted(set(sys.modules) - before)
files = [p for p in opened if p.endswith(".jgo")]
print(json.dumps([float(result.sum()), loaded, files, sum(map(os.path.getsize, files)), f.cache_info()]))
"""


def test_a_warm_start_loads_neither_tracer_nor_llvm(tmp_path: Path, package_copy: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    env = {**os.environ, "JITGRAPH_CACHE_DIR": str(tmp_path / "warm"), "PYTHONPATH": str(package_copy)}
    env.pop("JITGRAPH_VERIFY", None)
    first, second = (
        json.loads(
            subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(2)
    )
    assert first[0] == second[0]
    assert first[4][2] == 1
    _, loaded, files, size, info = second
    assert info == [0, 1, 0, 1, 1]
    heavy = (
        "jitgraph.ops",
        "jitgraph.xp",
        "jitgraph.passes",
        "jitgraph.codegen",
        "jitgraph.schedule",
        "llvmlite.binding",
    )
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        assert [m for m in loaded if m.startswith(heavy) or m == "jitgraph.tracing.capture"] == []
        assert len(loaded) <= 60
    assert len(files) <= 4  # the trace, the CPU, the memory pool; a second look for another trace
    assert size < 64 << 10
