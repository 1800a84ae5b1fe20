"""Programs that data send different ways behind a write that the caller can see: what was written is put back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from tests.fuzz.arguments import Argument
from tests.fuzz.levels import check
from tests.fuzz.programs import Fuzzed
from tests.tracing.harness import Jit

_F = Argument("array", "float64", ("n",), seed=1)
_SWAPPED = Argument("array", ">f4", ("n", "m"), "negative", seed=3)
_SIZES = [{"n": 7, "m": 4}, {"n": 7, "m": 4}, {"n": 3, "m": 5}]


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False), np.errstate(all="ignore"):
        yield


PROGRAMS = {
    "another type": (["a0[0] = 3", "v = 1", "if np.sum(a0) > 4:", "    v = a0 * 2"], "v, a0", [_F]),
    "the side that is not assumed": (["a0[0] = 3", "v = 1", "if np.sum(a0) < 4:", "    v = a0 * 2", "a0 += 1"], "v, a0", [_F]),
    "two branches, two arguments": (
        ["a0[0] = 3", "a1 *= 2", "v = 1", "if np.sum(a0) < 4:", "    v = a0 * 2", "    a1 += 3", "a0 += np.sum(v)",
         "if np.sum(a1) > 9:", "    v = [v, 1]"], "v, a0, a1", [_F, _F],
    ),
    "other results": (["a0 *= a0", "if np.max(a0) > 100:", "    return a0, np.argmin(a0)"], "[a0]", [_F]),
    "no result": (["a0 += 1", "if np.sum(a0) > 4:", "    return None"], "a0", [_F]),
    "what Python refuses of a list": (["a0[:] -= 1", "v = a0 > 0", "if np.sum(a0) > -400:", "    v = [1, v]"], "v << 1", [_F]),
    "an error behind another write": (
        ["a0[:] -= 1", "v = 1", "if np.sum(a0) < -400:", "    v = a0", "a0[0] = 9", "w = v[2]", "a0[9] = 3"], "w", [_F],
    ),
    "an error on one side": (["a0 += 1", "if np.sum(a0) > 4:", "    a0[0] = 9", "    a0[99] = 1"], "a0", [_F]),
    "behind a loop": (["for i in range(len(a0)):", "    a0[i] *= 2", "v = 1", "if np.sum(a0) < 4:", "    v = a0[1:]"], "v, a0", [_F]),
    "a handled error": (["a0 += 1", "v = 0", "try:", "    v = 1 // int(np.sum(a0 > 9))", "except ZeroDivisionError:", "    v = 7"], "v, a0", [_F]),
    "a handled index": (["a0 += 1", "v = 0", "try:", "    v = a0[int(np.sum(a0 > 0)) + 9]", "except IndexError:", "    v = 7", "a0 += v"], "v, a0", [_F]),
    "an array of the other byte order": (["a0 += 1", "v = 1", "if np.sum(a0) > 4:", "    v = a0 * 2"], "v, a0", [_SWAPPED]),
    "an array twice": (["a0 += a1", "v = 1", "if np.sum(a0) > 4:", "    v = a0 * 2", "a1[0] = 1"], "v, a0", [_F, Argument("same")]),
    "arrays that overlap": (["a0 += 1", "v = 1", "if np.sum(a0) > 4:", "    v = a0 * 2", "a1[0] = 1"], "v, a0", [_F, Argument("view", view="[::2]")]),
    "one of two arrays": (["a0[0] = 1", "v = a0", "if np.sum(a0) < 4:", "    v = a0 * 1", "v[1] = 5"], "v", [_F]),
    "one of two kinds": (["a0[0] = 1", "v = 0", "if np.sum(a0) < 4:", "    v = np.float32(2)", "w = v / 2 + a0"], "w", [_F]),
    "a loop that may have no turn": (["a0[0] = 1", "v = 0", "for i in range(int(np.sum(a0 > 0))):", "    v = a0 + v"], "v", [_F]),
    "a branch in a branch": (["a0[0] = 1", "v = 0", "if np.sum(a0) > -99:", "    a0[1] = 4", "    if np.max(a0) > 3:", "        v = a0"], "v", [_F]),
    "a while that shortens an array": (["a0 += 1", "v = a0 * 2", "while np.sum(v > 0) > 1:", "    v = v[1:]"], "v, a0", [_F]),
    "a while that lengthens an array": (["v = a0 * 2", "while np.sum(v) < 30:", "    v = np.append(v, 5.0)"], "v, a0", [_F]),
    "sizes that are data in a while": (["w = 0", "while w < 3 and np.sum(a0) < 90:", "    v = np.flatnonzero(a0) + w", "    w += 1"], "v, w", [_F]),
    "a static array made in a while": (["w = 0", "while w < 5 and np.sum(a0) < 1e6:", "    a0 += a0", "    v = np.reshape(7, -1)", "    w += 1"], "v, w", [_F]),
    "a static array on one path of a loop": (
        ["v = np.cumprod(3)", "for i in range(10):", "    if np.sum(a0) > i:", "        continue", "    v = np.searchsorted(a0, 2.0)"], "v", [_F],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_behind_a_write(name: str) -> None:
    lines, returned, arguments = PROGRAMS[name]
    found = check(Fuzzed(1, arguments, lines, _SIZES, returned))
    assert found is None, str(found)


def test_the_elements_are_put_back_in_front_of_the_check() -> None:
    def f(x):
        x[0] = 1
        return x if np.sum(x) > 0 else None

    graph = Jit(f).trace(np.ones(3)).graph
    names = [op.name for op in graph.body.ops()]
    assert names[names.index("cond") + 1] == "check"
    (cond,) = [op for op in graph.body.ops() if op.name == "cond"]
    assert [op.name for op in cond.regions[1].ops()] == ["write", "yield"]
    assert graph.sites[0].error == "deoptimise"


def test_no_copy_where_nothing_was_written() -> None:
    def f(x):
        v = x if np.sum(x) > 0 else None
        x[0] = 1
        return v

    graph = Jit(f).trace(np.ones(3)).graph
    assert "cond" not in [op.name for op in graph.walk()]


def test_an_array_without_axes_is_not_put_back() -> None:
    def f(x):
        x += 1
        v = 1
        if np.sum(x) > 0:
            v = [x]
        return v

    x = np.ones(())
    with pytest.warns(UserWarning, match="runs in plain Python: .*if the test at line"):
        [found] = jg.jit(f)(x)
    assert found is x
    assert x == 2


def test_an_effect_is_not_undone() -> None:
    def f(x):
        x[0] = 1
        warnings.warn("x", stacklevel=1)
        v = 1
        if np.sum(x) > 0:
            v = [x]
        return v

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert len(jg.jit(f)(np.ones(3))) == 1
    assert sum("runs in plain Python: " in str(w.message) for w in seen) == 1
    assert sum(str(w.message) == "x" for w in seen) == 1


def test_a_drawn_number_is_drawn_once() -> None:
    def f(rng, x):
        x[0] = rng.normal()
        return x if np.sum(x) > 2 else None

    jitted = jg.jit(f)
    rng, mine = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(6):
        x, y = np.ones(3), np.ones(3)
        first, second = f(rng, x), jitted(mine, y)
        np.testing.assert_array_equal(x, y)
        assert (first is None) == (second is None)
    assert rng.random() == mine.random()
