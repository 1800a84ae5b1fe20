"""Pickles of jitted functions: by reference, by value with cloudpickle, in processes that are forked or spawned."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg

cloudpickle = pytest.importorskip("cloudpickle")
X = np.arange(4.0)
FACTOR = 3.0


@jg.jit
def named(x):
    return x * FACTOR


class Model:
    @jg.jit
    def step(self, x):
        return x + self.k

    @staticmethod
    @jg.jit
    def twice(x):
        return 2 * x

    def __init__(self) -> None:
        self.k = 2.0


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch):
    """As a module that is found by its name."""
    module = sys.modules.get(__name__)
    if module is None:
        import types

        module = types.ModuleType(__name__)
        module.__dict__.update(globals())
        monkeypatch.setitem(sys.modules, __name__, module)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_by_reference(pickler, protocol: int) -> None:
    for f in (named, Model.step, Model.twice):
        assert pickle.loads(pickler.dumps(f, protocol=protocol)) is f
    bound = pickle.loads(pickler.dumps(Model().step, protocol=protocol))
    assert bound.__func__ is Model.step
    assert bound(X).tolist() == (X + 2).tolist()
    assert copy.copy(named) is named
    assert copy.deepcopy([named])[0] is named


def test_the_python_pickler() -> None:
    import io

    out = io.BytesIO()
    pickle._Pickler(out).dump(named)
    assert pickle.loads(out.getvalue()) is named


def test_what_has_no_name_takes_cloudpickle() -> None:
    with pytest.raises(pickle.PicklingError, match="use cloudpickle"):
        pickle.dumps(jg.jit(lambda x: x))

    @jg.jit
    def inner(x):
        return x

    with pytest.raises(pickle.PicklingError, match="something else"):
        pickle.dumps(inner)


def test_by_value() -> None:
    k = 5.0

    @jg.jit(static_argnames="n", fastmath=True, fallback="eager")
    def inner(x, n=2):
        """Doc."""
        for _ in range(n):
            x = x * k
        return x

    loaded = cloudpickle.loads(cloudpickle.dumps(inner))
    assert loaded is not inner
    assert loaded._options == inner._options
    assert (loaded.__name__, loaded.__doc__) == ("inner", "Doc.")
    assert loaded(X, n=3).tolist() == (X * 125).tolist()
    f, g = cloudpickle.loads(cloudpickle.dumps([inner, inner]))
    assert f is g


def test_gradients_by_value() -> None:
    g = jg.grad(jg.jit(lambda x: (x * x).sum()))
    assert cloudpickle.loads(cloudpickle.dumps(g))(X).tolist() == (2 * X).tolist()


def run(program: str, folder: Path, *arguments: str) -> str:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    environment = {**os.environ, "JITGRAPH_CACHE_DIR": jg.config.cache_dir}
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


MAIN = """
    import pickle, subprocess, sys
    import numpy as np, jitgraph as jg, cloudpickle

    gain = 2.0

    def helper(x):
        while x.sum() < 100:
            x = x * gain
        return x

    @jg.jit
    def loops(x):
        return helper(x) + 1

    @jg.jit(static_argnames="n")
    def recursive(x, n):
        return x if n == 0 else recursive(x * 2, n - 1)

    class Solver:
        @jg.jit
        def run(self, x):
            return loops(x) * self.k

    if __name__ == "__main__":
        assert pickle.loads(pickle.dumps(loops)) is loops
        s = Solver()
        s.k = 3.0
        things = (loops, recursive, s, s.run, jg.jit(lambda x: x - gain))
        sys.stdout.buffer.write(cloudpickle.dumps(things))
"""
LOADS = """
    import pickle, sys
    import numpy as np
    loops, recursive, s, bound, subtracts = pickle.load(open(sys.argv[1], "rb"))
    x = np.arange(4.0)
    want = x
    while want.sum() < 100:
        want = want * 2
    assert (loops(x) == want + 1).all()
    assert (recursive(x, 3) == x * 8).all()
    assert recursive.__wrapped__.__globals__["recursive"] is recursive
    assert (s.run(x) == (want + 1) * 3).all() and (bound(x) == (want + 1) * 3).all()
    assert (subtracts(x) == x - 2).all()
    assert "while" in str(loops.graph(x))
"""


def test_main_by_value_where_its_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(MAIN))
    environment = {**os.environ, "JITGRAPH_CACHE_DIR": jg.config.cache_dir}
    made = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, check=True).stdout
    (tmp_path / "pickle").write_bytes(made)
    path.unlink()
    (tmp_path / "elsewhere").mkdir()
    run(LOADS, tmp_path / "elsewhere", str(tmp_path / "pickle"))


POOL = """
    import multiprocessing, sys
    import numpy as np, jitgraph as jg

    @jg.jit
    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += np.sqrt(x[i]) * i
        return s

    if __name__ == "__main__":
        data = [np.arange(float(n)) for n in (5, 6, 7, 8)]
        want = [f(x) for x in data] if sys.argv[2] == "warm" else None
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            got = pool.map(f, data)
        assert got == [f(x) for x in data], got
        print("same")
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_pools_of_processes(how: str, start: str, tmp_path: Path) -> None:
    assert run(POOL, tmp_path, how, start) == "same\n"


def test_a_fork_while_another_thread_compiles() -> None:
    """The child compiles and runs whatever locks were held, and code of the parent still runs in it."""
    f = jg.jit(lambda x: np.exp(x) + 1)
    f(X)
    stop = threading.Event()
    failed = []

    def compiles() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            try:
                jg.jit(lambda x, k=k: x * k + np.sin(x))(X)
            except Exception as e:  # noqa: BLE001
                failed.append(e)

    threads = [threading.Thread(target=compiles) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(6):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    same = (f(X) == np.exp(X) + 1).all() and (jg.jit(lambda x: x * 7 - 1)(X) == X * 7 - 1).all()
                    status = 0 if same else 2
                finally:
                    os._exit(status)
            _wait(child)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert failed == []


def _wait(child: int) -> None:
    import signal
    import time

    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")
