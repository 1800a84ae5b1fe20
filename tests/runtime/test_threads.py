"""The pool of threads: how many there may be, forks, exits, signals, what runs in one thread."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.runtime import threads

linux = pytest.mark.skipif(sys.platform != "linux", reason="threads sleep on Linux's futex")

HEAD = """
import os, sys, time, signal, threading
import numpy as np
import jitgraph as jg
from tests.threads_setup import eager_threads, regions_run

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

@jg.jit
def f(x):
    return np.exp(x) * np.sin(x), x.sum(), x.max(axis=0)

x = np.random.default_rng(0).random((150, 160))
expected = [np.asarray(r).tobytes() for r in f(x)]

def check():
    assert [np.asarray(r).tobytes() for r in f(x)] == expected
"""


def run(text: str, **env: str) -> str:
    """What a program prints that runs to its end in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(text)],
        env={**os.environ, "JITGRAPH_CACHE_DIR": config.cache_dir, "PYTHONPATH": os.pathsep.join(sys.path), **env},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_numbers() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        jg.set_num_threads(0)
    for n in (1.5, "2", None):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            jg.set_num_threads(n)
    before = jg.get_num_threads()
    jg.set_num_threads(5)
    assert jg.get_num_threads() == (5 if sys.platform == "linux" else 1)
    jg.set_num_threads(before)


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/a/b", {"a/cpu.max": "150000 100000"}, 2),
        ("0::/a/b", {"a/cpu.max": "350000 100000", "a/b/cpu.max": "max 100000", "cpu.max": "50000 100000"}, 1),
        ("0::/a", {"a/cpu.max": "max 100000"}, None),
        ("4:cpu,cpuacct:/c", {"cpu,cpuacct/c/cpu.cfs_quota_us": "210000", "cpu,cpuacct/c/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu,cpuacct:/c", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("5:memory:/c", {"memory/c/cpu.max": "1 1"}, None),
        ("", {}, None),
    ],
)  # fmt: skip
def test_quotas_of_cgroups(tmp_path: Path, lines: str, files: dict[str, str], expected: int | None) -> None:
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "cgroup").write_text(lines + "\n")
    assert threads._quota(tmp_path / "cgroup", tmp_path / "fs") == expected


def test_cores_that_we_may_not_use_do_not_count() -> None:
    assert 1 <= threads.usable_cores() <= (os.cpu_count() or 1)


@linux
def test_one_thread_loads_nothing_of_the_pool() -> None:
    text = """
        check()
        g = jg.jit(lambda a: a @ a + np.exp(a).sum())
        g(np.ones((300, 300)))
        assert "jitgraph.runtime.threads_code" in sys.modules  # this test's own import
        from jitgraph.runtime import threads
        assert not threads._pool.addresses and threading.active_count() == 1
        assert len(os.listdir("/proc/self/task")) <= 2, os.listdir("/proc/self/task")  # OpenBLAS's, perhaps
    """
    run(text, JITGRAPH_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


@linux
def test_a_forked_child_has_threads_of_its_own() -> None:
    text = """
        with eager_threads():
            jg.set_num_threads(3)
            check()
            before = regions_run()
            stop = []
            def busy():
                while not stop:
                    check()
            other = threading.Thread(target=busy)
            other.start()
            for _ in range(2):
                child = os.fork()
                if not child:
                    check()
                    ran = regions_run()
                    np.testing.assert_array_equal(jg.jit(lambda a: a @ a)(x[:, :150]), x[:, :150] @ x[:, :150])
                    os._exit(0 if ran >= 1 else 7)
                assert os.waitpid(child, 0)[1] == 0
            stop.append(1)
            other.join()
            check()
            assert regions_run() > before
    """
    run(text)


@linux
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        HEAD
        + textwrap.dedent(f"""
        import multiprocessing

        def work(k):
            with eager_threads():
                check()
                return float(f(x + k)[1]), regions_run() > 0

        if __name__ == "__main__":
            with eager_threads():
                check()
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                found = pool.map(work, range(4))
            assert found == [((x + k).sum(), True) for k in range(4)], found
        """)
    )
    environment = {
        **os.environ, "JITGRAPH_CACHE_DIR": config.cache_dir, "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@linux
@pytest.mark.parametrize("how", ["", "sys.exit(0)", "threading.Thread(target=busy, daemon=True).start()"])
def test_the_end_of_the_process(how: str) -> None:
    text = f"""
        def busy():
            while True:
                check()
        with eager_threads():
            jg.set_num_threads(4)
            for _ in range(20):
                check()
            {how}
    """
    run(text)


@linux
@pytest.mark.parametrize(
    ("count", "body"),
    [
        (1, "s = 0.0\n    for i in range(n):\n        s = s * 0.5 + x[i % 7]\n    return s"),
        (1, "s = 0.0\n    while s < n:\n        s = s * 0.5 + x[0]\n    return s"),
        (
            1,
            "s = 0.0\n    for i in range(64):\n        while s < n:\n            s = s * 0.5 + x[i]\n    return s",
        ),
        (2, "y = x.copy()\n    for i in range(n):\n        y[1:] = y[1:] * 0.5 + y[:-1]\n    return y"),
    ],
)
def test_a_signal_ends_a_long_loop(count: int, body: str, tmp_path: Path) -> None:
    """So does what a handler of the user's raises; threads that are no main thread are not asked."""
    (tmp_path / "long_loop.py").write_text(f"def loop(x, n):\n    {body}\n")
    text = f"""
        sys.path.insert(0, {str(tmp_path)!r})
        from long_loop import loop
        jg.set_num_threads({count})
        slow = jg.jit(loop)
        x = np.ones(100_000)
        slow(x, 0)
        class Mine(Exception):
            pass
        def raises(*_):
            raise Mine("told")
        signal.signal(signal.SIGUSR1, raises)
        for sent, kind in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGUSR1, Mine)):
            timer = threading.Timer(0.2, os.kill, (os.getpid(), sent))
            timer.start()
            try:
                slow(x, 10**15)
            except kind as e:
                print(type(e).__name__, *e.args)
            timer.join()
    """
    assert run(text).split() == ["KeyboardInterrupt", "Mine", "told"]


@pytest.mark.skipif(threads.usable_cores() < 2, reason="needs two cores")
@linux
def test_a_worker_leaves_the_core_of_the_caller() -> None:
    text = """
        cores = os.sched_getaffinity(0)
        with eager_threads():
            here = {min(cores)}
            check()
            (worker,) = {int(name) for name in os.listdir("/proc/self/task")} - {os.getpid()}
            assert os.sched_getaffinity(worker) in (cores, cores - here, here)
            os.sched_setaffinity(0, here)
            for _ in range(100_000):
                os.sched_setaffinity(worker, here)
                check()
                if os.sched_getaffinity(worker) == cores - here:
                    print("apart")
                    break
    """
    assert run(text, JITGRAPH_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1").split() == ["apart"]


@linux
def test_a_signal_ends_a_region_of_threads(tmp_path: Path) -> None:
    (tmp_path / "long_region.py").write_text(
        textwrap.dedent("""
            def orbits(a, out):
                for i in range(a.shape[0]):
                    t = a[i]
                    for k in range(100_000):
                        t = t * 0.5 + a[i]
                    out[i] = t
        """)
    )
    text = f"""
        sys.path.insert(0, {str(tmp_path)!r})
        from long_region import orbits
        from jitgraph.runtime import threads
        threads.LONG, threads.LONG_PIECE, threads.POLL_NS = 1000, 10**7, 10**7
        jg.set_num_threads(2)
        slow = jg.jit(orbits)
        slow(np.ones(2), np.zeros(2))
        before = regions_run()
        a, out = np.ones(1_000_000), np.zeros(1_000_000)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            slow(a, out)
        except KeyboardInterrupt:
            print("stopped", regions_run() > before, 0 < (out > 0).sum() < out.size)
        timer.join()
        check()
    """
    assert run(text).split() == ["stopped", "True", "True"]
