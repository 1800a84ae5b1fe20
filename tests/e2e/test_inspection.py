"""Looking into compiled functions of every sort: text of each stage, round trips, `explain`, dumps, logs, the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.compiler import compile_graph
from jitgraph.config import config
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.passes.pipeline import PASSES, run_pipeline

V = np.arange(8.0)
X = np.arange(9.0).reshape(3, 3) + np.eye(3)
ROOT = Path(__file__).parents[2]


def chain(x, y):
    return np.sqrt(np.exp(-x * x) + y * y) * np.tanh(x) - 0.5 * y


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def heat(u, n):
    for _ in range(n):
        u[1:-1] = 0.5 * (u[:-2] + u[2:])
    return u


def branch(x, s):
    if s > 0:
        x = x * s
    else:
        x = x - s
    return x


def newton(x):
    while abs(x * x - 2) > 1e-9:
        x = x - (x * x - 2) / (2 * x)
    return x


def solve(x):
    return np.linalg.solve(x, x) + 1


def static(x, mode):
    return x.sum() if mode == "sum" else x.mean()


def masks(x):
    x[x > 2] = 0
    return x[x > 0], np.nonzero(x)


def tree(d):
    return {"a": d["x"] + d["y"][0], "b": (d["x"], 3, "text")}


FUNCTIONS = {
    "chain": (jg.jit(chain), (V, V)),
    "softmax": (jg.jit(softmax), (X,)),
    "loop": (jg.jit(heat), (V, 20)),
    "branch": (jg.jit(branch), (V, 2.0)),
    "while": (jg.jit(newton), (3.0,)),
    "host call": (jg.jit(solve), (X,)),
    "static": (jg.jit(static, static_argnames="mode"), (V, "sum")),
    "masks": (jg.jit(masks), (V,)),
    "tree": (jg.jit(tree), ({"x": V, "y": [V, 2]},)),
    "numpy functions": (jg.jit(lambda x: np.exp(x) + 1, numerics="numpy"), (V,)),
    "fast math": (jg.jit(lambda x: (x * x + 1).sum(), fastmath=True), (V,)),
    "argument": (jg.jit(lambda x: x), (V,)),
    "no argument": (jg.jit(lambda: 3), ()),
    "matmul": (jg.jit(lambda a, b: a @ b + 1), (X, X)),
    "gradient": (jg.jit(jg.grad(lambda x: (np.sin(x) * x).sum())), (V,)),
}
EVERY = pytest.mark.parametrize("name", FUNCTIONS)


def arguments(name):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in FUNCTIONS[name][1])


@EVERY
def test_text_of_every_stage(name):
    f, args = FUNCTIONS[name][0], arguments(name)
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    for stage in ("trace", *(p.name for p in PASSES)):
        assert f.inspect_ir(*args, stage=stage).startswith("graph @")
    assert "\nprogram " in "\n" + f.inspect_ir(*args, stage="loops")
    assert "define" in f.inspect_llvm(*args)
    assert f.inspect_llvm(*args) == f.inspect_ir(*args, stage="llvm")
    assert "entry" in f.inspect_asm(*args)
    traced = f.trace(*args)
    lowered = traced.lower()
    assert str(traced) == str(f.graph(*args)) == lowered.as_text("trace")
    assert str(lowered) == f.inspect_ir(*args)
    assert lowered.compile().as_text() == f.inspect_asm(*args)
    for a, b in zip(args, before, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)  # looking runs nothing


@EVERY
def test_graphs_are_parsed_back_to_the_same_bytes(name):
    graph = FUNCTIONS[name][0].graph(*arguments(name))
    texts = [print_graph(graph)]
    run_pipeline(graph.clone(), observer=lambda number, name, g, *_: texts.append(print_graph(g)))
    assert len(texts) == len(PASSES) + 1
    for text in texts:
        assert print_graph(parse(text)) == text
        assert print_graph(parse(text), loc=False) == print_graph(parse(print_graph(parse(text), loc=False)), loc=False)


@EVERY
def test_explain(name):
    found = FUNCTIONS[name][0].explain(*arguments(name))
    first = str(found).split("\n")[0]
    assert f"{len(found.kernels)} kernel" in first
    assert f"{len(found.copies)} cop" in first
    assert all(k.operators for k in found.kernels)
    assert {"host call": ["np.linalg.solve"]}.get(name, [h.name for h in found.host_calls]) == [
        h.name for h in found.host_calls
    ]


def test_explain_of_the_worked_examples():
    one = FUNCTIONS["chain"][0].explain(V, V)
    assert (len(one.kernels), one.temporaries, one.copies) == (1, [], [])
    rows = FUNCTIONS["softmax"][0].explain(X)
    assert (len(rows.kernels), rows.temporaries) == (1, [])
    assert FUNCTIONS["loop"][0].explain(V.copy(), 20).copies == []


def test_a_stage_that_is_none():
    with pytest.raises(
        ValueError, match=r"no stage 'nope'; there are trace, unify_sizes, .*fuse, .*bufferize, loops, llvm"
    ):
        FUNCTIONS["chain"][0].inspect_ir(V, V, stage="nope")


def test_signatures_and_counters():
    f = jg.jit(lambda x, k: x * k)
    f(V, 2)
    f(V, 3.5)
    f(V[::2], 3.5)
    assert f.signatures == ["(float64[1d], py_int)", "(float64[1d], py_float)", f.signatures[2]]
    info = f.cache_info()
    assert info._fields == ("hits", "misses", "compiles", "disk_hits", "entries")
    assert (info.misses, info.entries) == (3, 3)
    f.clear_cache()
    assert f.cache_info().entries == 0
    np.testing.assert_array_equal(f(V, 2), V * 2)


@EVERY
def test_dumps(name, tmp_path):
    f, args = FUNCTIONS[name][0], arguments(name)
    with config.override(dump="trace,fuse,loops,llvm,asm", dump_dir=str(tmp_path), cache=False):
        graph = f.graph(*args)
        graph.name = f"dumped_{len(name)}_{graph.name}"  # compiled anew, whatever is known already
        compile_graph(graph)
    (folder,) = tmp_path.iterdir()
    number = 1 + [p.name for p in PASSES].index("fuse")
    assert sorted(p.name for p in folder.iterdir()) == [
        "00-trace.ir",
        f"{number}-fuse.ir",
        "90-loops.txt",
        "91-llvm.ll",
        "92-asm.s",
    ]
    head, *rest = (folder / f"{number}-fuse.ir").read_text().split("\n", 1)
    assert head.startswith(f"# after fuse ({number}): ")
    assert head.endswith(" ms")
    parse(rest[0].strip())


def test_a_folder_for_dumps_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with config.override(dump="fuse,loops", dump_dir=str(tmp_path / "file"), cache=False):
        np.testing.assert_array_equal(jg.jit(lambda x: x * 5 + 2)(V), V * 5 + 2)
    shown = capsys.readouterr().err
    assert shown.count("no dumps in") == 1
    assert "graph @" in shown


def test_logs(capsys):
    with config.override(log="miss,compile", cache=False):
        f = jg.jit(lambda x: x * 1.5 + 2.5)
        f(V)
        f(V)
    lines = capsys.readouterr().err.strip().split("\n")
    assert [line.partition(" (ms")[0].partition(": compiled, ")[0] for line in lines] == [
        "jitgraph: compiled f",
        f"jitgraph: {f.__wrapped__.__qualname__}(float64[1d])",
        "jitgraph:   the first call",
        "jitgraph:   not on disk: the disk cache is switched off",
        lines[-1],
    ]
    assert lines[-1].startswith("jitgraph:   ms: trace ")


def run(*args, **env):
    command = [sys.executable, "-m", "jitgraph", *args]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_the_command_line(tmp_path):
    env = {"JITGRAPH_CACHE_DIR": str(tmp_path)}
    assert "entries      0 of 0 functions" in run("cache", "info", **env).stdout
    assert run("cache", "ls", **env).stdout == ""
    jg.jit(np.cos)(V)  # with what the runtime makes for itself
    with config.override(cache_dir=str(tmp_path), cache=True):
        for k in (1, 2):
            jg.jit(lambda x, k=k: x * 0.125 - k)(V)
    assert "entries      2 of 1 functions" in run("cache", "info", **env).stdout
    assert len(run("cache", "ls", **env).stdout.strip().split("\n")) == 2
    next(tmp_path.glob("*/*.jgo")).write_bytes(b"damaged")
    done = run("cache", "verify", **env)
    assert (done.returncode, done.stdout) == (1, "1 good, 1 damaged and removed\n")
    assert run("cache", "clear", **env).stdout == "1 entries removed\n"
    settings = run("config", **env, JITGRAPH_LOG="miss").stdout
    assert f"cache_dir = {str(tmp_path)!r}  # JITGRAPH_CACHE_DIR: " in settings
    assert "log = 'miss'" in settings
    wrong = run("cache", "nope")
    assert wrong.returncode == 2
    assert "invalid choice: 'nope'" in wrong.stderr
    assert "JITGRAPH_CACHE_BYTES='many' is no int" in run("config", JITGRAPH_CACHE_BYTES="many").stderr


def test_explain_says_what_python_had_to_know():
    def grows(x, n):
        out = []
        for i in range(n):
            out.append(x[i])
        return out

    assert "n == 2" in jg.jit(grows).explain(np.arange(5.0), 2).guards

    def maybe(x, s):
        if s > 0:
            return None
        return x

    (guard,) = jg.jit(maybe).explain(np.arange(5.0), 1.0).guards
    assert "the other way is traced when met: True in `if s > 0:`" in guard


def test_described_arrays_stand_for_arrays():
    """`jg.ShapeDtype` in every way of looking in: what arrays give, without any; a call does not take it."""

    def f(xs, y):
        return xs["a"] @ y + 1.0

    f = jg.jit(f)
    arrays = ({"a": np.ones((3, 4), np.float32)}, np.ones(4, np.float32))
    described = ({"a": jg.ShapeDtype([3, 4], "f4")}, jg.ShapeDtype(4, np.float32))
    for look in (f.graph, f.explain, f.inspect_ir, f.inspect_llvm, f.memory, f.trace, f.lower):
        assert str(look(*described)).splitlines()[1:] == str(look(*arrays)).splitlines()[1:], look
    with pytest.raises(TypeError):
        f(*described)
    with pytest.raises(TypeError, match="data type 'zz' not understood"):
        jg.ShapeDtype((3,), "zz")
    assert jg.ShapeDtype(3) == jg.ShapeDtype((3,), float)
