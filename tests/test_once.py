"""What a process has one of is made once, and whole, whichever thread comes first."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from jitgraph.once import once

FIRST_CALLS = """
    import sys, threading
    import numpy as np
    import jitgraph as jg

    def make(k):
        def f(x, n):
            y = x * k
            for i in range(n):
                y = np.where(y > 0, y - 1, y + k)
            return y[n], y.sum()
        return f

    x, start = np.linspace(-1, 2, 12).reshape(3, 4), threading.Barrier(8)
    sys.setswitchinterval(1e-5)
    wrong = []

    def work(k):
        start.wait()
        found, expected = jg.jit(make(k % 4))(x, 2), make(k % 4)(x, 2)
        if not all(np.array_equal(a, b) for a, b in zip(found, expected)):
            wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(len(wrong))
"""


def test_threads_wait_for_the_first() -> None:
    made: list[int] = []

    @once
    def answer() -> list[int]:
        """One list."""
        time.sleep(0.05)
        made.append(1)
        return [len(made)]

    found: list[list[int]] = []
    assert not answer.is_made
    threads = [threading.Thread(target=lambda: found.append(answer())) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answer.is_made
    assert all(x is found[0] for x in found)
    assert made == [1]
    assert answer.__doc__ == "One list."


def test_an_error_is_not_an_answer() -> None:
    turns = iter([ValueError("not yet"), None])

    @once
    def answer() -> int:
        error = next(turns)
        if error is not None:
            raise error
        return 3

    with pytest.raises(ValueError, match=r"^not yet$"):
        answer()
    assert answer() == answer() == 3


def test_first_calls_of_several_threads(tmp_path) -> None:
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(FIRST_CALLS)],
            env={**os.environ, "JITGRAPH_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
