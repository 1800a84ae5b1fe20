"""Every miss says why: in memory the leaf, guard or size that differs, on disk the part of the key."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.cache import disk
from jitgraph.cache.key import Parts
from jitgraph.cache.nearest import difference

SCALE = 3
A = np.ones((4, 5))


class Model:
    def __init__(self) -> None:
        self.k = 2
        self.w = np.ones(5)


model = Model()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path):
    with jg.config.override(cache=True, cache_dir=str(tmp_path)):
        yield


def add(x, y, n=2):
    return x * y + n


def reasons(f) -> list[str]:
    return list(f.explain_misses()[-1].reasons)


CASES = {
    "dtype": ((A, A + 1), (A.astype("f4"), A + 1), ["x: dtype float64 -> float32"]),
    "rank": ((A, A + 1), (A, A[0].copy()), ["y: 2 axes -> 1 axes"]),
    "layout": ((A, A + 1), (A, np.asfortranarray(A)), ["y: layout C -> F"]),
    "size 1": ((A, A + 1), (A, np.ones((4, 1))), ["y: axes of size 1: none -> 1"]),
    "kind": ((A, A + 1), (A, 2.0), ["y: float64[2d] -> py_float"]),
    "NumPy scalar": ((A, 2.0), (A, np.float32(2)), ["y: py_float -> scalar float32"]),
    "one array": ((A, A + 1), (A, A), ["which arguments are one array: none -> y is x"]),
    "one more": ((A, 1.0), (A, 1.0, 5), ["structure of the arguments: ((*, *),) -> ((*, *, *),)"]),
    "keyword": ((A, 1.0), {"x": A, "y": 1.0}, ["structure of the arguments: ((*, *),) -> ((), {'x': *, 'y': *})"]),
    "sizes": ((A[0].copy(), A[1].copy()), (A[:, 0].copy(), np.ones(4), 2), None),
    "two": ((A, A + 1), (A.T, A.T + 1), ["x: layout C -> F", "y: layout C -> F"]),
}


@pytest.mark.parametrize("case", CASES)
def test_arguments(case: str) -> None:
    first, second, expected = CASES[case]
    f = jg.jit(add)
    f(*first)
    assert reasons(f) == ["the first call"]
    f(**second) if isinstance(second, dict) else f(*second)
    if expected is not None:
        assert reasons(f) == expected
    assert len(f.explain_misses()) == 2
    assert f.explain_misses()[1].nearest == f.explain_misses()[0].signature


def test_read_only() -> None:
    f = jg.jit(add)
    f(A, 1.0)
    b = A.copy()
    b.flags.writeable = False
    f(b, 1.0)
    assert reasons(f) == ["x: writeable -> read-only"]


def test_relations_of_sizes() -> None:
    f = jg.jit(lambda x, y: x[:3] + y)
    f(np.ones(5), np.ones(3))
    f(np.ones(2), np.ones(2))
    assert reasons(f) == ["sizes: n >= 3 does not hold (n = 2)", "sizes: 3 == m does not hold (m = 2)"]


def test_static_values() -> None:
    f = jg.jit(lambda x, m: x**m, static_argnames="m")
    f(A, 2)
    f(A, 3)
    assert reasons(f) == ["m: static int 2 -> static int 3"]


def test_the_world_around() -> None:
    global SCALE
    f = jg.jit(lambda x: x * SCALE + model.k * model.w)
    f(A)
    SCALE = 4
    f(A)
    assert reasons(f) == ["SCALE: 3 -> 4"]
    model.k = 5
    f(A)
    assert reasons(f) == ["model.k: 2 -> 5"]
    model.w = np.ones(5, np.float32)
    f(A)
    assert reasons(f) == ["model.w: dtype float64 -> float32"]
    del model.w
    with pytest.raises(AttributeError):
        f(A)
    model.w = np.ones(5)
    model.k = 2
    SCALE = 3


def test_values_that_python_needed() -> None:
    f = jg.jit(lambda x, n: [x] * n)
    f(np.float64(1), 2)
    f(np.float64(1), 5)
    assert reasons(f) == ["n, whose value is compiled in: 2 -> 5"]


def test_the_other_way() -> None:
    @jg.jit
    def f(x):
        try:
            return x[np.int64(x[0])]
        except IndexError:
            return None

    f(np.zeros(3))
    f(np.full(3, 7.0))
    assert reasons(f) == ["data went another way than that trace assumed"]


def test_the_nearest_is_told() -> None:
    f = jg.jit(add)
    f(A, A + 1)
    f(A.astype("f4"), A.astype("f4") + 1)
    f(A.astype("f4"), A.astype("i4") + 1)
    assert reasons(f) == ["y: dtype float32 -> int32"]


def test_a_report_and_its_bounds() -> None:
    f = jg.jit(add)
    assert str(f.explain_misses()) == "no misses"
    f(A, 1.0)
    miss = f.explain_misses()[0]
    assert miss.source in ("compiled", "memory")
    assert {"trace", "key", "load"} <= set(miss.times_ms)
    text = str(f.explain_misses())
    assert text.startswith(f"add(float64[2d], py_float): {miss.source}, ")
    for k in range(70):
        f(A, y=np.float64(1), n=complex(k) if k % 2 else 1)
        f.clear_cache()
    assert len(f.explain_misses()) <= 64


def test_python_functions() -> None:
    f = jg.jit(lambda x: Path(x).read_text(), fallback="eager")
    with pytest.warns(UserWarning), pytest.raises(OSError):
        f("/no/such/file")
    assert f.explain_misses()[0].source == "python"
    assert f.explain_misses()[0].not_on_disk != ""


PARTS = Parts("1" * 64, "0.45", "2.4.6", "x86_64;znver4;+avx2,+fma;32")
TEXT = "graph @f(%x: f64[n]) {\n  %0 = constant {value = 2}\n}\n"


def stored(parts: Parts = PARTS, text: str = TEXT, key: str = "0" * 64) -> None:
    disk.store(key, "f", disk.Entry({}, b"", {"function": "f", **parts._asdict()}, text))


@pytest.mark.parametrize(
    ("parts", "text", "expected"),
    [
        (PARTS._replace(numpy="2.5.0"), TEXT, "numpy changed: 2.4.6 -> 2.5.0"),
        (PARTS._replace(llvmlite="0.46"), TEXT, "llvmlite changed: 0.45 -> 0.46"),
        (PARTS._replace(jitgraph="2" * 64), TEXT, "jitgraph's sources changed"),
        (PARTS._replace(cpu="x86_64;znver4;+avx2;32"), TEXT, "the CPU changed: +fma -> nothing"),
        (PARTS._replace(cpu="x86_64;znver5;+avx2,+fma;32"), TEXT, "the CPU changed: znver4 -> znver5"),
        (PARTS._replace(blas="8x4"), TEXT, "blas changed: none -> 8x4"),
        (
            PARTS,
            TEXT.replace("2", "3"),
            "the graph changed in line 2: `%0 = constant {value = 2}` -> `%0 = constant {value = 3}`",
        ),
        (PARTS, TEXT + "more", "the graph changed in line 4: `(end)` -> `more`"),
        (PARTS, TEXT, "the graph differs behind what entries keep of its text"),
    ],
)
def test_the_part_of_the_key_that_changed(parts: Parts, text: str, expected: str) -> None:
    assert difference("1" * 64, "f", parts, text) == "no function named f is in it"
    stored()
    assert difference("1" * 64, "f", parts, text) == expected


def test_the_nearest_entry_on_disk() -> None:
    stored(PARTS._replace(numpy="1", cpu="other"))
    stored(text=TEXT.replace("2", "5"), key="1" * 64)
    stored(text=TEXT.replace("2", "5").replace("n", "m"), key="2" * 64)
    assert "= 5}` -> `%0 = constant {value = 2}`" in difference("3" * 64, "f", PARTS, TEXT)
    disk.store("4" * 64, "f", disk.Entry({}, b""))
    for f in disk.files():
        f.path.write_bytes(b"damaged")
    assert difference("3" * 64, "f", PARTS, TEXT) == "no function named f is in it"


def run(program: str, folder: Path, **env: str) -> str:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    environment = {**os.environ, "JITGRAPH_CACHE_DIR": str(folder / "cache"), **env}
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, check=True)
    return done.stderr + done.stdout


def test_the_log_of_two_processes(tmp_path: Path, package_copy: Path) -> None:
    program = """
        import numpy as np, jitgraph as jg
        @jg.jit
        def f(x):
            return np.exp(x) + 1.0
        f(np.ones(3)), f(np.ones((2, 3)))
    """
    env = {"PYTHONPATH": str(package_copy), "JITGRAPH_LOG": "miss,compile", "JITGRAPH_DISPATCH": "python"}
    first = run(program, tmp_path, **env)
    assert "jitgraph: f(float64[1d]): compiled" in first
    assert "not on disk: no function named f is in it" in first
    assert "x: 1 axes -> 2 axes" in first
    assert "jitgraph: compiled f" in first
    second = run(program, tmp_path, **env)
    assert "jitgraph: f(float64[1d]): disk" in second
    assert "compiled" not in second
    third = run(program.replace("1.0", "2.0"), tmp_path, **env)
    assert "the graph changed in line" in third
    assert "value = 1.0" in third
    assert "value = 2.0" in third
    other_cpu = run(program, tmp_path, **env, JITGRAPH_CPU="x86-64-v3")
    assert "the CPU changed" in other_cpu


def test_warmup() -> None:
    f = jg.jit(add)
    jg.warmup(f, jg.ShapeDtype((5, 6), np.float32), jg.ShapeDtype((6,), "f4"), n=2.0)
    assert f.cache_info().entries == 1
    np.testing.assert_array_equal(f(np.ones((2, 3), "f4"), np.ones(3, "f4"), n=1.0), np.full((2, 3), 2, "f4"))
    assert f.cache_info()[:2] == (1, 0)
    jg.warmup(f, np.ones((7, 2), "f4"), np.ones(2, "f4"), n=3.5)
    assert f.cache_info().entries == 1
    assert [f.name for f in disk.files() if not f.name.startswith("jitgraph")] == ["add"]
    with pytest.raises(TypeError, match=r"jg\.jit"):
        jg.warmup(add, A, A)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sizes of arguments are numbers"):
        jg.warmup(f, jg.ShapeDtype((None,)), 1.0)


def test_warmup_runs_nothing() -> None:
    seen = []

    class Solver:
        def __init__(self) -> None:
            self.x = np.zeros(4)

        @jg.jit
        def step(self, dt, state):
            jg.debug.tap(seen.append, dt) if False else None
            self.x += dt
            state["t"] += dt
            return self.x

    s, state = Solver(), {"t": 1.0}
    jg.warmup(s.step, 0.5, state)
    assert (s.x == 0).all()
    assert state == {"t": 1.0}
    assert s.step(0.5, state).tolist() == [0.5] * 4
    assert Solver.step.cache_info().hits == 1
    y = np.ones(3)
    g = jg.jit(lambda y: y.__iadd__(1))
    jg.warmup(g, y)
    assert y.tolist() == [1, 1, 1]
    jg.warmup(g, jg.ShapeDtype((10**9,)))  # asks for no memory
