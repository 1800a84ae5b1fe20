"""Names whose type a turn of a loop looks at, though no operator of the graph shows it: the first turn has another."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config

_USES = ["v**0", "np.ndim(v)", "len(np.shape(v))", "np.size(v)", "(v and 0)", "np.asarray(v).dtype.itemsize"]
_NEXT = ["np.reshape(r % r, (-1, 2))", "r * 1.5", "r.sum()"]
#: What `t` and `w` are, as long as `v` is the Python number that it begins with, and behind that.
_OPEN = [
    ("0 if v else v", "w + t"),
    ("0 if r[0] > 0 else r[0]", "v + t"),
    ("max(v, 0)", "t * v"),
    ("min(v, r[0])", "w - t"),
    ("v if r[0] > 0 else 1", "t - v"),
]


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False, verify=True):
        yield


def _function(lines: list[str]) -> Callable[[Any], Any]:
    source = (
        "\n    ".join(["def f(a):", "v, w = 0, 0", "for r in a:", *(f"    {line}" for line in lines), "return v, w"])
        + "\n"
    )
    name = f"<looked at {source}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"]  # type: ignore[no-any-return]


def _same(f: Callable[[Any], Any], a: np.ndarray) -> None:
    for x, y in zip(f(a.copy()), jg.jit(f, numerics="numpy")(a.copy()), strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("use", _USES)
@pytest.mark.parametrize("new", _NEXT)
def test_an_array_from_the_second_turn_on(use: str, new: str) -> None:
    f = _function([f"w = w + {use}", f"v = {new}"])
    for n in (4, 2):
        a = np.arange(n * n).reshape(n, n) + 1
        try:
            f(a)
        except ValueError:  # (-1, 2) and a row do not fit, an array has no truth
            with pytest.raises(ValueError, match=r"broadcast|truth"):
                jg.jit(f)(a)
        else:
            _same(f, a)


@pytest.mark.parametrize(("t", "w"), _OPEN)
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_kinds_that_meet_open_kinds(t: str, w: str, dtype: Any) -> None:
    f = _function([f"t = {t}", f"w = {w}", "v = r[0]"])
    for rows in ([[1], [2], [3]], [[-1], [2], [-3]], [[2]], [[-2]], [[0], [0]]):
        _same(f, np.array(rows, dtype))
