"""Threads, forks, damaged caches, odd functions and arguments, huge graphs, leaks: nothing crashes or goes silently wrong."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import linecache
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from tests.checks import calls_of

ROOT = Path(__file__).parents[2]
V = np.arange(9.0)


@jg.jit
def work(x, k):
    """Sums, a view of the square roots, and a write."""
    s = 0.0
    for i in range(x.shape[0]):
        s = s + x[i] * k
    y = np.sqrt(x * x + k)
    x += 1
    return y[::-1], s


def works(x, k):
    a, b = x.copy(), x.copy()
    (y, s), (z, t) = work.__wrapped__(a, k), work(b, k)
    return bool(np.array_equal(y, z) and s == t and np.array_equal(a, b))


class Owner:
    k = 3

    @jg.jit
    def method(self, x):
        return x * self.k

    @classmethod
    @jg.jit
    def of_class(cls, x):
        return x * cls.k

    @staticmethod
    @jg.jit
    def static(x):
        return x + 1

    @jg.jit
    @staticmethod
    def static_inside(x):
        return x + 2

    @property
    @jg.jit
    def prop(self):
        return np.arange(3.0) * self.k

    @jg.jit
    def __call__(self, x):
        return x - self.k


# --- threads, processes


def test_eight_threads_on_the_same_and_on_different_shapes_and_dtypes():
    work.clear_cache()
    wrong = []

    def run(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(60):
                x = rng.integers(0, 9, rng.integers(1, 60)).astype(rng.choice(["f8", "f4", "i4"]))
                if not works(x, float(rng.integers(1, 5))):
                    wrong.append((seed, x.dtype, x.shape))
        except BaseException as e:  # noqa: BLE001 - reported by the main thread
            wrong.append(repr(e))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert work.cache_info().entries == 6  # three dtypes, and size 1 or not


def _child(queue, folder):
    config.update(cache_dir=folder)
    queue.put((works(np.arange(37.0), 2.0) and works(np.arange(5, dtype="i2"), 2.0), work.cache_info().disk_hits))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes(method, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with config.override(cache_dir=str(tmp_path)):
        work.clear_cache()
        assert works(np.arange(37.0), 2.0)
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        children = [context.Process(target=_child, args=(queue, str(tmp_path))) for _ in range(2)]
        for c in children:
            c.start()
        answers = [queue.get(timeout=60) for _ in children]
        for c in children:
            c.join()
    assert all(right for right, _ in answers)
    assert [c.exitcode for c in children] == [0, 0]


# --- the disk cache

PROGRAM = """
import numpy as np, jitgraph as jg
@jg.jit
def f(x, y): return np.sqrt(x * x + y).sum(axis=0) + x[0]
@jg.jit
def g(x):
    for i in range(x.shape[0]): x[i] += i
x = np.arange(12.0).reshape(3, 4)
assert np.array_equal(f(x, x), f.__wrapped__(x, x))
a, b = np.zeros(20), np.zeros(20)
g(a), g.__wrapped__(b)
assert np.array_equal(a, b)
print(f.cache_info().disk_hits + g.cache_info().disk_hits)
"""


@pytest.fixture
def program(tmp_path, package_copy):
    (tmp_path / "program.py").write_text(PROGRAM)
    folder = tmp_path / "cache"

    def run(**env):
        given = {**os.environ, "PYTHONPATH": str(package_copy), "JITGRAPH_CACHE_DIR": str(folder), **env}
        done = subprocess.run(
            [sys.executable, tmp_path / "program.py"], env=given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    return folder, run


def test_damaged_and_foreign_cache_files_are_misses(program):
    folder, run = program
    assert (run(), run()) == (0, 2)
    files = {p: p.read_bytes() for p in folder.glob("*/*.jgo") if "jitgraph-" not in p.name}  # not our own code
    assert len(files) == 4  # of two functions: a trace and a graph
    damages = {
        "empty": lambda b: b"",
        "half": lambda b: b[: len(b) // 2],
        "one byte less": lambda b: b[:-1],
        "one bit": lambda b: bytes([*b[:-9], b[-9] ^ 4, *b[-8:]]),
        "more": lambda b: b + b"x",
    }
    for a, b in (("empty", "half"), ("one byte less", "one bit"), ("more", "empty")):
        for k, path in enumerate(files):
            path.write_bytes(damages[b if k % 2 else a](files[path]))
        assert run() == 0
    for path, other in zip(files, [*files][1:] + [*files][:1], strict=True):  # each whole, under another one's name
        path.write_bytes(files[other])
    assert run() == 0
    assert run() == 2
    for path in files:
        path.unlink()
        path.mkdir()
    assert run() == 0


def test_folders_that_cannot_be_used(program, tmp_path):
    folder, run = program
    assert run(JITGRAPH_CACHE="0") == 0
    assert not folder.exists()
    folder.write_text("a file")
    assert run() == run() == 0
    assert run(JITGRAPH_CACHE_DIR="/proc/nowhere") == 0
    folder.unlink()
    assert run() == 0
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o500)
    assert run() == 2
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o700)
    assert run(JITGRAPH_CACHE_DIR="", XDG_CACHE_HOME="", HOME=str(tmp_path / "none" / "none")) == 0


def test_files_are_damaged_under_a_running_process(tmp_path):
    with config.override(cache_dir=str(tmp_path), cache=True):
        f = jg.jit(lambda x: x * 3.5 - 1.25)
        np.testing.assert_array_equal(f(V), V * 3.5 - 1.25)
        for path in tmp_path.glob("*/*.jgo"):
            path.write_bytes(b"damaged")
        np.testing.assert_array_equal(f(V), V * 3.5 - 1.25)
        f.clear_cache()
        np.testing.assert_array_equal(f(V), V * 3.5 - 1.25)


# --- behaving as a function


def test_pickle_copy_weakref_signature():
    assert pickle.loads(pickle.dumps(work)) is work
    assert copy.copy(work) is work
    assert copy.deepcopy({"f": work})["f"] is work
    assert weakref.ref(work)() is work
    assert str(inspect.signature(work)) == "(x, k)"
    assert (work.__name__, work.__module__, work.__doc__) == ("work", __name__, work.__wrapped__.__doc__)
    assert inspect.getsource(work).startswith("@jg.jit\ndef work")
    wrapped = functools.wraps(work)(lambda *a: work(*a))
    np.testing.assert_array_equal(wrapped(V.copy(), 1.0)[0], work.__wrapped__(V.copy(), 1.0)[0])
    assert repr(work) == "<jit work>"


def test_methods():
    o = Owner()
    for f, expected in [
        (o.method, V * 3), (o.of_class, V * 3), (Owner.of_class, V * 3), (o.static, V + 1), (o.static_inside, V + 2), (o, V - 3),
        (jg.jit(o.method), V * 3), (functools.partial(Owner.method, o), V * 3), (jg.jit(jg.jit(lambda x: x + 5)), V + 5),
    ]:  # fmt: skip
        np.testing.assert_array_equal(f(V), expected)
    np.testing.assert_array_equal(o.prop, np.arange(3.0) * 3)
    o.k = 5
    np.testing.assert_array_equal(o.method(V), V * 5)


def test_lambdas_in_one_line():
    a, b, c = jg.jit(lambda x: x + 1), jg.jit(lambda x: x * 10), jg.jit(lambda x: (lambda y: y * 2)(x))
    np.testing.assert_array_equal(a(V), V + 1)
    np.testing.assert_array_equal(b(V), V * 10)
    np.testing.assert_array_equal(c(V), V * 2)


def test_functions_without_source_and_as_in_a_shell():
    space = {"np": np}
    exec("def g(x):\n    s = 0.0\n    for i in range(len(x)):\n        s = s + x[i]\n    return s", space)
    assert jg.jit(space["g"])(np.arange(20.0)) == 190.0
    np.testing.assert_array_equal(jg.jit(eval("lambda x: x * 2"))(V), V * 2)
    text = "def h(x):\n    if x[0] > 5:\n        x = x * 2\n    return x + 1\n"
    linecache.cache["<shell-1>"] = (len(text), None, text.splitlines(True), "<shell-1>")
    exec(compile(text, "<shell-1>", "exec"), space)
    for x in (V, V + 9):
        np.testing.assert_array_equal(jg.jit(space["h"])(x), space["h"](x))


def test_decorated_functions():
    def twice(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            return fn(*args, **kwargs) * 2

        return inner

    outside = jg.jit(twice(lambda x: x + 1))
    inside = twice(jg.jit(lambda x: x + 1))
    np.testing.assert_array_equal(outside(V), (V + 1) * 2)
    np.testing.assert_array_equal(inside(V), (V + 1) * 2)
    partial = jg.jit(functools.partial(work.__wrapped__, k=2.0))
    np.testing.assert_array_equal(partial(V.copy())[0], work.__wrapped__(V.copy(), 2.0)[0])
    np.testing.assert_array_equal(jg.jit(np.sin, numerics="numpy")(V), np.sin(V))


# --- odd arguments


def _plus_one(a):
    return a + 1


ODD = {
    "unaligned": np.frombuffer(b"\0" * 33, "u1")[1:].view("f8"),
    "field of a record": np.zeros(3, [("a", "i1"), ("b", "f8")])["b"],
    "read-only": np.broadcast_to(V, (2, 9)),
    "empty": np.zeros((0, 3)),
    "past int64": 2**70,
    "numpy bool": np.bool_(True),
    "bool": True,
    "complex number": 1 + 2j,
    "nan": float("nan"),
    "overlapping": np.lib.stride_tricks.sliding_window_view(V, 3),
    "int enum": __import__("enum").IntEnum("E", "A B").B,
    "None": None,
    "set": {1, 2},
    "text": "abc",
    "object": object(),
    "list": [1.0, 2.0],
    "dict": {"a": 1},
    "generator": (i for i in range(3)),
    "memoryview": memoryview(b"abc"),
    "type": int,
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arguments_do_as_in_numpy(name):
    x = ODD[name]
    try:
        expected = _plus_one(x)
    except TypeError:
        with pytest.raises(TypeError):
            jg.jit(_plus_one)(x)
        return
    for _ in range(2):
        found = jg.jit(_plus_one)(x)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)


def test_memory_maps(tmp_path):
    m = np.memmap(tmp_path / "data", np.float64, "w+", shape=(5,))

    @jg.jit
    def f(x):
        x[1:] = 3.0
        return x * 2

    np.testing.assert_array_equal(f(m), [0, 6, 6, 6, 6])
    m.flush()
    np.testing.assert_array_equal(np.fromfile(tmp_path / "data"), [0, 3, 3, 3, 3])


# --- exceptions


class Mine(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("kind", [Mine, KeyboardInterrupt, SystemExit, ZeroDivisionError])
def test_exceptions_of_host_functions_pass_through(kind):
    def fail(x):
        raise kind("mine")

    host = jg.host(fail, result=V)

    @jg.jit
    def f(x):
        x[0] = 5.0
        y = host(x * 2)
        x[1] = 6.0
        return y

    for _ in range(3):
        x = V.copy()
        with pytest.raises(kind, match="mine"):
            f(x)
        assert (x[0], x[1]) == (5.0, 1.0)
    inline = jg.jit(lambda x: jg.host(fail, result=x)(x))
    with pytest.raises(kind, match="mine"):
        inline(V)


def test_a_trace_that_is_interrupted_leaves_nothing_behind():
    @jg.jit
    def f(x, how):
        y = x + 1
        if how == "interrupted":
            raise KeyboardInterrupt
        return y

    with pytest.raises(KeyboardInterrupt):
        f(V, "interrupted")
    np.testing.assert_array_equal(f(V, "whole"), V + 1)
    np.testing.assert_array_equal(jg.jit(lambda x: x * 2)(V), V * 2)


def test_deep_recursion():
    def deep(x, n):
        return x if n == 0 else deep(x + 1, n - 1)

    np.testing.assert_array_equal(jg.jit(lambda x: deep(x, 50))(V), deep(V, 50))
    with pytest.raises(RecursionError), pytest.warns(UserWarning, match="nests too deep"):
        jg.jit(lambda x: deep(x, 100_000))(V)
    np.testing.assert_array_equal(jg.jit(lambda x: x - 1)(V), V - 1)


def test_a_host_function_that_calls_a_jitted_one():
    inner = jg.jit(lambda x: x + 1)
    host = jg.host(lambda x: inner(x), result=V)
    np.testing.assert_array_equal(jg.jit(lambda x: host(x) * 2)(V), (V + 1) * 2)


# --- size and leaks


def chain(lines):
    steps = ("x * y + 0.5", "np.sqrt(x * x + y)", "x - y")
    text = "def f(x, y):\n" + "".join(f"    x = {steps[k % 3]}\n" for k in range(lines)) + "    return x\n"
    space = {"np": np}
    exec(compile(text, f"<chain-{lines}>", "exec"), space)
    return space["f"]


def test_a_huge_graph_compiles_in_linear_time():
    x, y = np.random.default_rng(0).random((2, 40))
    spent = {}
    with config.override(cache=False, verify=False):
        for lines in (300, 1200):
            f = chain(lines)
            compiled = jg.jit(f)
            spent[lines] = calls_of(functools.partial(compiled, x, y))
            np.testing.assert_array_equal(compiled(x, y), f(x, y))
    assert spent[1200] < 4.4 * spent[300], spent


def rss_kib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_calls_leak_nothing():
    x, y = np.arange(32.0), np.arange(6.0)
    masks = jg.jit(lambda v: v[v > 2])
    host = jg.jit(lambda v: np.sort(v) + 1)
    views = jg.jit(lambda v, k: (v * k, v[1:], v.sum()))
    element = jg.jit(lambda v, i: v[i])

    @jg.jit
    def written(v):
        v[...] = v + 1
        return v

    def all_of_them():
        views(x, 2.0)
        masks(y)
        written(y)
        host(y)
        with contextlib.suppress(IndexError):
            element(y, 99)
        views(np.empty(all_of_them.size), 1.0)
        all_of_them.size = all_of_them.size % 5000 + 2

    all_of_them.size = 2
    for _ in range(2000):
        all_of_them()
    gc.collect()
    counts, before = (sys.getrefcount(x), sys.getrefcount(y)), rss_kib()
    for _ in range(20_000):
        all_of_them()
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts
    assert rss_kib() - before < 4096
    assert views.cache_info().entries == 1
